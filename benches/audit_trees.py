"""Attack trees that look: a record more or less, by the likelihood of everything that was published.

As `audit.py`: tables that differ by one record in one cell are released under fresh keys, the exact log-likelihood ratio of what
was measured (which nodes, with which shares, is part of it, and the same for both given what came before) is thresholded, and
lower confidence bounds (1 - 1e-4 each) on epsilon must stay below the claim. The tables are such that some draws divide a node and
others do not, and the record is in a cell whose path is long. With 1.25 times less noise than planned the bound must exceed the claim.

The exit code is 1 if anything fails. Run `python benches/audit_trees.py`.
"""

from functools import partial

import numpy as np
from audit import lower_bound
from harness import Row, audited, in_process, main, quick, reported
from numpy.typing import NDArray

import sordino as so
from sordino import _core
from sordino.mechanisms.adaptive.trees import TreeFit, table_shape

Array = NDArray[np.float64]

_EPSILON, _DELTA = 3.0, 0.05
_UNDER = 1.25
_DRAWS = 20_000 if quick() else 60_000
_PURE, _APPROX = so.PureDP(epsilon=_EPSILON), so.ApproxDP(epsilon=_EPSILON, delta=_DELTA)
_CASES: dict[str, tuple[Array, so.PureDP | so.ApproxDP, str]] = {
    "two cells": (np.array([9, 0]), _PURE, "path-budget-tree"),
    "a line": (np.array([3, 0, 0, 1, 9, 0, 0, 0]), _PURE, "path-budget-tree"),
    "a map": (np.diag([4, 0, 9, 1]), _PURE, "path-budget-tree"),
    "a line, Gaussian": (np.array([3, 0, 0, 1, 9, 0, 0, 0]), _APPROX, "path-budget-tree"),
    "a map, Gaussian": (np.diag([4, 0, 9, 1]), _APPROX, "path-budget-tree"),
    "a full map": (np.diag([1, 1]), _PURE, "full-tree"),
}


def _workload(counts: Array) -> so.workloads.Workload:
    lines = [so.AllRanges(n) for n in counts.shape]
    return lines[0] if len(lines) == 1 else so.Kronecker(lines)


def _losses(door: _core.PathDoor, law: str, pair: tuple[Array, Array], data: Array) -> Array:
    """Return log-likelihood ratios, of the second table over the first, of releases of `data`."""
    flat = np.ascontiguousarray(data.reshape(-1), dtype=np.int64)
    sums = [
        np.pad(table.reshape(table_shape(_workload(table))).cumsum(0).cumsum(1), ((1, 0), (1, 0))) for table in pair
    ]
    losses = np.empty(_DRAWS)
    for draw in range(_DRAWS):
        boxes, values, variances = door.grown(door.measure(flat)).measured()
        top, left, bottom, right = boxes.reshape(-1, 4).T
        one, other = (s[bottom, right] - s[top, right] - s[bottom, left] + s[top, left] for s in sums)
        if law == "gaussian":
            loss = ((values - one) ** 2 - (values - other) ** 2) / (2.0 * variances)
        else:
            rates = 2.0 * np.arcsinh(np.sqrt(0.5 / variances))
            loss = rates * (np.abs(values - one) - np.abs(values - other))
        losses[draw] = loss.sum()
    return losses


def _bound(door: _core.PathDoor, law: str, pair: tuple[Array, Array], delta: float) -> float:
    zeros, ones = (_losses(door, law, pair, data) for data in pair)
    cut = _DRAWS // 5
    return lower_bound(zeros[:cut], ones[:cut], zeros[cut:], ones[cut:], delta)


def _row(name: str) -> Row:
    counts, privacy, mechanism = _CASES[name]
    fit = so.plan(_workload(counts), privacy, mechanism=mechanism).fit
    assert isinstance(fit, TreeFit)
    law, delta = fit.mechanism.law, _DELTA if isinstance(privacy, so.ApproxDP) else 0.0
    more = counts.copy()
    more.flat[int(counts.argmax())] += 1

    def door(ratio: float) -> _core.PathDoor:
        shape, relation = table_shape(fit.request.workload), fit.request.unit.relation()
        return _core.PathDoor.fit(shape, fit.mechanism.growth, law, relation, fit.domain.max_value, ratio)

    # The record may be the one or the other table's.
    pairs = ((counts, more), (more, counts))
    found = max(_bound(door(fit.ratio), law, pair, delta) for pair in pairs)
    planted = max(_bound(door(fit.ratio / _UNDER), law, pair, delta) for pair in pairs)
    sound = found < _EPSILON < planted
    return Row(
        f"{fit.name}, {name}, claim ({_EPSILON:g}, {delta:g})",
        f"ε ≥ {found:.3f}",
        f"1.25 times less noise: ε ≥ {planted:.3f}",
        found / _EPSILON,
        "below the claim; less noise is caught",
        sound,
    )


def _rows(name: str) -> list[Row]:
    return [reported(_row(name))]


def figures() -> list[Row]:
    """Return all rows."""
    return [row for name in _CASES for row in in_process(__file__, name, threads=1)]


if __name__ == "__main__":
    main({name: partial(_rows, name) for name in _CASES}, audited(figures))
