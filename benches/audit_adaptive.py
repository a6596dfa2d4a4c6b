"""Attack mechanisms that look: a record more or less, by the likelihood of what was published.

As `audit.py`: tables that differ by one record in one cell are released under fresh keys, the exact log-likelihood ratio of what
was measured (which nodes, with which shares, is part of it, and the same for both given what came before) is thresholded, and
lower confidence bounds (1 - 1e-4 each) on epsilon must stay below the claim. The tables are such that some draws divide a node and
others do not, and the record is in a cell whose path is long. Of marginals that are chosen the likelihood is that of the measured
tables; their choices are not in it, and have tests of their own. With 1.25 times less noise than planned the bound must exceed the claim.

The exit code is 1 if anything fails. Run `python benches/audit_adaptive.py`.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from audit import lower_bound
from harness import Row, audited, in_process, main, quick, reported
from numpy.typing import NDArray

import sordino as so
from sordino import _core
from sordino.mechanisms.adaptive.marginals import AdaptiveMarginalsFit
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
    "pairs": (np.array([[5, 1], [0, 4]]), _PURE, "adaptive-marginals"),
    "pairs, Gaussian": (np.array([[5, 1], [0, 4]]), _APPROX, "adaptive-marginals"),
}

Readings = tuple[Array, Array, Array, Array]
"""True counts of one table and of the other, what was published, and its variances."""


def _workload(counts: Array, mechanism: str) -> so.workloads.Workload:
    if mechanism == "adaptive-marginals":
        return so.Marginals(counts.shape, k=2)
    lines = [so.AllRanges(n) for n in counts.shape]
    return lines[0] if len(lines) == 1 else so.Kronecker(lines)


def _of_tree(fit: TreeFit, ratio: float, pair: tuple[Array, Array]) -> Callable[[Array], Readings]:
    shape, relation = table_shape(fit.request.workload), fit.request.unit.relation()
    door = _core.PathDoor.fit(shape, fit.mechanism.growth, fit.mechanism.law, relation, fit.domain.max_value, ratio)
    sums = [np.pad(table.reshape(shape).cumsum(0).cumsum(1), ((1, 0), (1, 0))) for table in pair]

    def drawn(cells: Array) -> Readings:
        boxes, values, variances = door.grown(door.measure(cells)).measured()
        top, left, bottom, right = boxes.reshape(-1, 4).T
        one, other = (s[bottom, right] - s[top, right] - s[bottom, left] + s[top, left] for s in sums)
        return one, other, values, variances

    return drawn


def _of_marginals(fit: AdaptiveMarginalsFit, ratio: float, pair: tuple[Array, Array]) -> Callable[[Array], Readings]:
    levels, sets = list(fit.workload.levels), [list(s) for s in fit.sets]
    wanted = [1.0 if len(s) == 2 else 0.0 for s in sets]
    relation = fit.request.unit.relation()
    door = _core.TableDoor.fit(fit.strategy, levels, sets, wanted, relation, fit.domain.max_value, ratio)
    tables = [
        [table.sum(axis=tuple(axis for axis in range(table.ndim) if axis not in s)).reshape(-1) for s in sets]
        for table in pair
    ]

    def drawn(cells: Array) -> Readings:
        looks = door.looks(door.measure(fit.strategy, cells))
        one, other = (np.concatenate([of[number] for number, _, _ in looks]) for of in tables)
        values = np.concatenate([values for _, values, _ in looks])
        return one, other, values, np.concatenate([np.full(len(v), variance) for _, v, variance in looks])

    return drawn


def _losses(drawn: Callable[[Array], Readings], law: str, data: Array) -> Array:
    """Return log-likelihood ratios, of the second table over the first, of releases of `data`."""
    cells = np.ascontiguousarray(data.reshape(-1), dtype=np.int64)
    losses = np.empty(_DRAWS)
    for draw in range(_DRAWS):
        one, other, values, variances = drawn(cells)
        if law == "gaussian":
            loss = ((values - one) ** 2 - (values - other) ** 2) / (2.0 * variances)
        else:
            rates = 2.0 * np.arcsinh(np.sqrt(0.5 / variances))
            loss = rates * (np.abs(values - one) - np.abs(values - other))
        losses[draw] = loss.sum()
    return losses


def _row(name: str) -> Row:
    counts, privacy, mechanism = _CASES[name]
    fit = so.plan(_workload(counts, mechanism), privacy, mechanism=mechanism).fit
    law, delta = fit.mechanism.law, _DELTA if isinstance(privacy, so.ApproxDP) else 0.0
    more = counts.copy()
    more.flat[int(counts.argmax())] += 1

    def bound(ratio: float, pair: tuple[Array, Array]) -> float:
        drawn = (_of_tree if isinstance(fit, TreeFit) else _of_marginals)(fit, ratio, pair)
        zeros, ones = (_losses(drawn, law, data) for data in pair)
        cut = _DRAWS // 5
        return lower_bound(zeros[:cut], ones[:cut], zeros[cut:], ones[cut:], delta)

    # The record may be the one or the other table's.
    pairs = ((counts, more), (more, counts))
    found, planted = (max(bound(ratio, pair) for pair in pairs) for ratio in (fit.ratio, fit.ratio / _UNDER))
    return Row(
        f"{fit.name}, {name}, claim ({_EPSILON:g}, {delta:g})",
        f"ε ≥ {found:.3f}",
        f"1.25 times less noise: ε ≥ {planted:.3f}",
        found / _EPSILON,
        "below the claim; less noise is caught",
        found < _EPSILON < planted,
    )


def _rows(name: str) -> list[Row]:
    return [reported(_row(name))]


def figures() -> list[Row]:
    """Return all rows."""
    return [row for name in _CASES for row in in_process(__file__, name, threads=1)]


if __name__ == "__main__":
    main({name: partial(_rows, name) for name in _CASES}, audited(figures))
