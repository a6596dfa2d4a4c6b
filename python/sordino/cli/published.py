"""What `release` writes: names and numbers of the answers, as JSON or CSV."""

import csv
import io
import math
from pathlib import Path
from typing import Any

import numpy as np

import sordino as so
from sordino.cli.answers import Columns, name_answers, tables_of
from sordino.cli.inputs import Source
from sordino.cli.outputs import to_json
from sordino.errors import InvalidParameterError
from sordino.workloads.base import Array

__all__ = ["check_names", "release_text"]

_NUMBERS = ("value", "unbiased", "stderr", "lower", "upper")


def check_names(source: Source, path: Path | None) -> None:
    """Find out before anything is spent that a column of the output would be called like one of the input.

    Raises:
        InvalidParameterError: A column of records has such a name, and the output is a CSV file.
    """
    taken = [attribute.name for attribute in source.attributes if attribute.name in _NUMBERS]
    if taken and _is_csv(path):
        raise InvalidParameterError(
            f"a CSV file has its own column {taken[0]!r}: rename that of the input, or use .json"
        )


def _is_csv(path: Path | None) -> bool:
    return path is not None and path.suffix.lower() == ".csv"


def release_text(release: so.Release, level: float, source: Source, path: Path | None) -> str:
    """Return what is published, as JSON or CSV: names, values, standard errors, intervals.

    Projected answers come with the unbiased ones, which the standard errors and intervals are about.
    """
    interval = release.interval(level)
    found = (release.values, release.unbiased, release.stderr, interval.lower, interval.upper)
    numbers = {name: np.asarray(column).reshape(-1) for name, column in zip(_NUMBERS, found, strict=True)}
    if release.projection is None:
        del numbers["unbiased"]
    if _is_csv(path):
        names = name_answers(release.workload, source)
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*names, *numbers])
        writer.writerows(zip(*names.values(), *(column.tolist() for column in numbers.values()), strict=True))
        return text.getvalue()
    return to_json(_release_record(release, source, numbers) | {"level": level}) + "\n"


def _release_record(release: so.Release, source: Source, numbers: dict[str, Array]) -> dict[str, Any]:
    plan, projection = release.plan, release.projection
    record = {
        "workload": repr(plan.workload),
        "mechanism": plan.mechanism,
        "guarantee": plan.guarantee(),
        "privacy": plan.privacy.to_json(),
        "unit": plan.unit.to_json(),
        "plan_digest": plan.digest,
        "private": release.private,
        "accounted": release.accounted,
        "rmse": plan.rmse,
        "rmse_kind": plan.rmse_kind,
        "max_stderr": plan.max_stderr,
    }
    if plan.constraint is not None and projection is not None:
        record["projection"] = {
            "constraint": plan.constraint.to_json(),
            "gap": projection.gap,
            "iterations": projection.iterations,
        }
    tables = tables_of(release.workload, source)
    if tables:
        return record | {"tables": _filled(tables, numbers)}
    return record | {"answers": name_answers(release.workload, source) | numbers}


def _filled(tables: list[Columns], numbers: dict[str, Array]) -> list[dict[str, Any]]:
    """Return each table with its columns, their levels, and its numbers nested like the table."""
    shapes = [tuple(len(column.levels) for column in table) for table in tables]
    ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]
    pieces = {name: np.split(column, ends) for name, column in numbers.items()}
    return [
        {
            "columns": [column.name for column in table],
            "levels": [list(column.levels) for column in table],
            **{name: piece[k].reshape(shape) for name, piece in pieces.items()},
        }
        for k, (table, shape) in enumerate(zip(tables, shapes, strict=True))
    ]
