"""Running sums that never fall, and histograms that add up."""

from __future__ import annotations

import numpy as np

from sordino import _core
from sordino.releases.answers import Answers
from sordino.releases.consistent.report import Consistency, Wishes
from sordino.releases.consistent.whole import whole_total
from sordino.workloads import Histogram, RunningSum
from sordino.workloads.base import Array

__all__ = ["consistent_cells", "consistent_sums"]


def consistent_sums(release: Answers, workload: RunningSum, wishes: Wishes) -> tuple[Array, Consistency]:
    """Return running sums that never fall, from 0 to the total: the nearest, which are never further from the truth."""
    flat, given = np.ascontiguousarray(release.unbiased).reshape(-1), wishes.total
    if given is None:
        values = np.maximum(_core.isotonic(flat), 0.0)
    else:  # the last is the total
        values = np.append(np.clip(_core.isotonic(np.ascontiguousarray(flat[:-1])), 0.0, given), given)
    if not wishes.whole:
        return values, Consistency(float(values[-1]), never_worse=True)
    whole_total(float(values[-1]))
    if wishes.whole == "unbiased":  # steps of cells, each of the two nearest, with their sums
        whole = np.cumsum(_core.unbiased_table(np.diff(values, prepend=0.0), 1, wishes.seed)).astype(np.float64)
    else:
        whole = np.floor(values + 0.5)
    largest = float(np.abs(whole - values).max())
    return whole, Consistency(float(whole[-1]), whole=largest, never_worse=True)


def consistent_cells(release: Answers, workload: Histogram, wishes: Wishes) -> tuple[Array, Consistency]:
    """Return the nearest cells that are not negative and add up to the total."""
    cells = np.ascontiguousarray(release.unbiased).reshape(-1)
    total = max(float(cells.sum()), 0.0) if wishes.total is None else wishes.total
    tree = np.r_[0, np.full(len(cells) + 1, len(cells))]  # the children of one top
    values = _core.top_down(tree, cells, np.ones(len(cells)), total)
    never_worse = wishes.total is not None
    if not wishes.whole:
        return values, Consistency(total, never_worse=never_worse)
    count = whole_total(total)
    if wishes.whole == "unbiased":
        whole = _core.unbiased_table(values, len(values), wishes.seed).astype(np.float64)
    else:
        whole = _core.whole_top_down(tree, values, count).astype(np.float64)
    largest = float(np.abs(whole - values).max())
    return whole, Consistency(float(whole.sum()), whole=largest, never_worse=never_worse)
