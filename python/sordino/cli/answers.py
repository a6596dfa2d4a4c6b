"""What published answers are called: labels of cells, ends of ranges, levels of tables."""

from __future__ import annotations

from itertools import product
from typing import Any, TypeAlias

import sordino as so
from sordino.cli.attributes import Attribute
from sordino.cli.inputs import Source
from sordino.workloads import Workload

__all__ = ["name_answers"]

_Columns: TypeAlias = tuple[Attribute, ...]
"""Columns of a table, the last one running fastest."""


def _tables_of(workload: Workload, source: Source) -> list[_Columns]:
    """Return the tables that the answers fill one after the other; none if they are not tables of columns."""
    columns = source.attributes
    if isinstance(workload, so.Marginals):
        # Counts have no columns with names.
        columns = columns or tuple(Attribute(str(i), range(levels)) for i, levels in enumerate(workload.levels))
        return [tuple(columns[i] for i in chosen) for chosen in workload.sets]
    return [columns] if columns and isinstance(workload, so.Histogram) and workload.per_cell else []


def name_answers(workload: Workload, source: Source) -> dict[str, list[Any]]:
    """Return columns of names, each with an entry for every answer.

    Cells of tables have a level of each column, None for those that are not in their table. Ranges and intervals
    have a `first` and a `last` cell. Others have a `label`: that of the cell if each belongs to one, the name of the
    query, else a number.
    """
    tables = _tables_of(workload, source)
    if tables:
        return _levels(tables)
    if isinstance(workload, so.AllRanges | so.workloads.Intervals):
        cells = _cell_names(source)
        first, last = workload.ranges.T.tolist()
        return {"first": [cells[i] for i in first], "last": [cells[j] for j in last]}
    if workload.per_cell:
        return {"label": _cell_names(source)[workload.first_step :]}
    return {"label": list(workload.answer_names or range(workload.core.answers_len))}


def _levels(tables: list[_Columns]) -> dict[str, list[Any]]:
    names: dict[str, list[Any]] = {column.name: [] for table in tables for column in table}
    for table in tables:
        rows = list(product(*(column.levels for column in table)))
        own = {column.name: [row[k] for row in rows] for k, column in enumerate(table)}
        for name, levels in names.items():
            levels.extend(own.get(name, [None] * len(rows)))
    return names


def _cell_names(source: Source) -> list[Any]:
    if source.labels is not None:
        return list(source.labels.tolist())
    if len(source.attributes) == 1:
        return list(source.attributes[0].levels)
    return [", ".join(map(str, row)) for row in product(*(column.levels for column in source.attributes))]
