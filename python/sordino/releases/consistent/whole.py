"""Tables in whole numbers, with the margins that they have in common."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from sordino import _core
from sordino.errors import UnsupportedMechanismError
from sordino.releases.consistent.report import Set, Wishes
from sordino.workloads import Marginals
from sordino.workloads.base import Array

__all__ = ["shares", "whole_pairs", "whole_tables", "whole_total"]

# Beyond, the two nearest whole numbers are not told apart well enough.
_MOST_WHOLE = 2**40

_NOT_WHOLE = (
    "tables of three attributes and more that overlap may have no whole numbers with common margins: records() gives "
    "whole tables, at a stated distance"
)


def whole_total(total: float) -> int:
    """Return a total as a whole number.

    Raises:
        UnsupportedMechanismError: It is above 2**40.
    """
    if total > _MOST_WHOLE:
        raise UnsupportedMechanismError("whole numbers are made of at most 2**40 records")
    return round(total)


def shares(values: Array, total: int) -> NDArray[np.int64]:
    """Return whole numbers in proportion to values, by largest remainders."""
    tree = np.r_[0, np.full(values.size + 1, values.size)]
    return _core.whole_top_down(tree, np.ascontiguousarray(values).reshape(-1), total).reshape(values.shape)


def whole_tables(
    workload: Marginals, flat: Array, total: float, empty: Mapping[Set, NDArray[np.bool_]], wishes: Wishes
) -> Array:
    """Return consistent tables in whole numbers, flat.

    Raises:
        UnsupportedMechanismError: Tables of three attributes and more overlap, or several are asked for by chance.
        InvalidParameterError: Empty cells leave no tables with these margins.
    """
    tables, count = workload.split(flat), whole_total(total)
    if not tables:
        return flat
    largest = max(tables, key=len)
    if all(set(s) <= set(largest) for s in tables):
        # One table says all of the others.
        top = tables[largest]
        if len(largest) > 2 and (wishes.whole == "unbiased" or wishes.invariants):
            raise UnsupportedMechanismError(
                "of a table of three attributes and more whole numbers keep the total alone, not public margins, and "
                "nothing by chance"
            )
        if wishes.whole == "unbiased":
            columns = top.shape[-1] if top.ndim else 1
            cells = _core.unbiased_table(np.ascontiguousarray(top).reshape(-1), columns, wishes.seed).reshape(top.shape)
        elif len(largest) == 2:
            cells = whole_pairs(tables, count, empty)[largest]
        else:
            cells = shares(top, count)
        whole = {s: cells.sum(axis=tuple(axis for axis, i in enumerate(largest) if i not in s)) for s in tables}
    elif wishes.whole == "unbiased":
        raise UnsupportedMechanismError("whole numbers by chance are for running sums, histograms and one table")
    elif len(largest) > 2:
        raise UnsupportedMechanismError(_NOT_WHOLE)
    else:
        whole = whole_pairs(tables, count, empty)
    return np.concatenate([np.asarray(whole[s], dtype=np.float64).reshape(-1) for s in tables])


def whole_pairs(
    tables: Mapping[Set, Array], total: int, empty: Mapping[Set, NDArray[np.bool_]]
) -> dict[Set, NDArray[np.int64]]:
    """Return tables of at most two attributes in whole numbers: margins first, by largest remainders, then each pair.

    Raises:
        InvalidParameterError: Empty cells leave no tables with these margins.
    """
    margins: dict[int, NDArray[np.int64]] = {}
    for s, table in tables.items():
        for axis, i in enumerate(s):
            if i not in margins:
                margins[i] = shares(table.sum(axis=tuple(other for other in range(len(s)) if other != axis)), total)
    found: dict[Set, NDArray[np.int64]] = {}
    for s, table in tables.items():
        if len(s) < 2:
            found[s] = margins[s[0]] if s else np.array(total)
            continue
        before = float(table.sum())
        scaled = table * (total / before) if before > 0.0 else np.full(table.shape, total / table.size)
        mask = empty.get(s)
        cells = _core.whole_table(
            np.ascontiguousarray(scaled).reshape(-1),
            margins[s[0]],
            margins[s[1]],
            None if mask is None else np.ascontiguousarray(mask).reshape(-1),
        )
        found[s] = cells.reshape(table.shape)
    return found
