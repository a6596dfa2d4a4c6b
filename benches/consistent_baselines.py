"""The nearest tables that agree and are not negative, in plain numpy: the dual of `sordino.releases.consistent`.

Tables of sets `S` of attributes were measured with equal white noise. `f_T` is the margin on `T`, centred along every
axis, and the table of `S` is the sum over `T` in `S` of `f_T`, spread evenly over the attributes of `S` that are not
in `T`. The dual of the nearest tables in the mean square over all cells is maximised by accelerated projected
gradients of step one, with restarts, one table at a time. It stops where sordino does, so both give the same tables.
So does the same search for tables of pairs in plain Python.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Measured", "Nearest", "half_noise", "least_squares", "nearest", "plain_nearest"]

Array = NDArray[np.float64]
Set = tuple[int, ...]
Tables = dict[Set, Array]

_GAP = 1e-3
_MOST_STEPS = 2000
_LOOK = 5


@dataclass(frozen=True)
class Measured:
    """Least squares of tables that were measured one by one.

    Attributes:
        levels: Levels of the attributes.
        sets: Attributes of the tables.
        total: Records.
        residuals: Centred margins of all sets that are in one of the tables, but of the empty one.
        weights: Their weights in the squared norm of all tables.
        noise: Half the squared noise that is left.
    """

    levels: tuple[int, ...]
    sets: tuple[Set, ...]
    total: float
    residuals: Tables
    weights: dict[Set, float]
    noise: float


@dataclass(frozen=True)
class Nearest:
    """Tables that agree, without negative cells.

    Attributes:
        tables: By their attributes.
        gap: What half the squared distance is at most above the least, as a share of half the squared noise.
        steps: Of the search.
    """

    tables: Tables
    gap: float
    steps: int


def _outside(levels: Sequence[int], s: Set, t: Set) -> int:
    """Return the cells of `s` over those of `t`."""
    return math.prod(levels[i] for i in s if i not in t)


def _subsets(s: Set) -> list[Set]:
    return [t for k in range(1, len(s) + 1) for t in itertools.combinations(s, k)]


def _below(sets: Sequence[Set]) -> list[Set]:
    return sorted({t for s in sets for t in _subsets(s)}, key=lambda t: (len(t), t))


def _margin(table: Array, s: Set, t: Set) -> Array:
    """Return the sums of the table of `s` over what is not in `t`."""
    gone = tuple(axis for axis, i in enumerate(s) if i not in t)
    return table.sum(axis=gone) if gone else table


def _centred(table: Array) -> Array:
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def _measured(levels: Sequence[int], tables: Mapping[Set, Array], stderr: float) -> Measured:
    sets = tuple(tables)
    below = _below(sets)
    sums, weights = {t: np.zeros([levels[i] for i in t]) for t in below}, dict.fromkeys(below, 0.0)
    for s, table in tables.items():
        for t in _subsets(s):
            share = 1.0 / _outside(levels, s, t)
            sums[t] += share * _margin(table, s, t)
            weights[t] += share
    residuals = {t: _centred(sums[t] / weights[t]) for t in below}
    precisions = [1.0 / table.size for table in tables.values()]
    total = float(np.average([table.sum() for table in tables.values()], weights=precisions))
    return Measured(tuple(levels), sets, max(total, 0.0), residuals, weights, half_noise(levels, sets, stderr))


def _made(measured: Measured, residuals: Tables) -> Tables:
    """Return the tables of residuals."""
    found = {}
    for s in measured.sets:
        table = np.full([measured.levels[i] for i in s], measured.total / _outside(measured.levels, s, ()))
        for t in _subsets(s):
            own = residuals[t].reshape([measured.levels[i] if i in t else 1 for i in s])
            table += own / _outside(measured.levels, s, t)
        found[s] = table
    return found


def _family(measured: Measured, dual: Tables) -> Tables:
    """Return the residuals that belong to a dual point."""
    sums = {t: np.zeros_like(y) for t, y in measured.residuals.items()}
    for s, table in dual.items():
        for t in _subsets(s):
            sums[t] += _margin(table, s, t) / _outside(measured.levels, s, t)
    return {t: y + _centred(sums[t]) / measured.weights[t] for t, y in measured.residuals.items()}


def _distance(measured: Measured, residuals: Tables, factor: float = 1.0) -> float:
    """Return half the squared distance of residuals times a factor to those that were measured."""
    squares = (
        measured.weights[t] * float(np.sum((factor * residuals[t] - y) ** 2)) for t, y in measured.residuals.items()
    )
    return 0.5 * sum(squares)


def _inner(a: Tables, b: Tables) -> float:
    return sum(float(np.vdot(a[s], b[s])) for s in a)


def _mixed(measured: Measured, tables: Tables) -> float:
    """Return the share of uniform tables that leaves no cell negative."""
    least = {s: max(-float(table.min()), 0.0) for s, table in tables.items()}
    return max(low / (low + measured.total / tables[s].size) for s, low in least.items())


def half_noise(levels: Sequence[int], sets: Sequence[Set], stderr: float) -> float:
    """Return half the expected squared error of the nearest tables that agree; their total is not counted.

    Args:
        levels: Levels of the attributes.
        sets: Attributes of the tables.
        stderr: Of every measured cell.
    """
    return 0.5 * stderr**2 * sum(math.prod(levels[i] - 1 for i in t) for t in _below(sets))


def least_squares(levels: Sequence[int], tables: Mapping[Set, Array]) -> Tables:
    """Return the nearest tables that agree; cells may be negative.

    Args:
        levels: Levels of the attributes.
        tables: Measured tables by their attributes, in rising order.
    """
    measured = _measured(levels, tables, 1.0)
    return _made(measured, measured.residuals)


def nearest(levels: Sequence[int], tables: Mapping[Set, Array], stderr: float) -> Nearest:
    """Return the nearest tables that agree and are not negative.

    Args:
        levels: Levels of the attributes.
        tables: Measured tables by their attributes, in rising order.
        stderr: Of every cell.
    """
    measured = _measured(levels, tables, stderr)
    dual = {s: np.zeros_like(table) for s, table in tables.items()}
    if measured.total == 0.0:
        return Nearest(dual, 0.0, 0)
    ahead, momentum, lower, best = dual, 1.0, -math.inf, (math.inf, 0.0, dict[Set, Array]())
    for step in itertools.count():
        if step % _LOOK == 0:
            residuals = _family(measured, dual)
            made = _made(measured, residuals)
            lower = max(lower, _distance(measured, residuals) - _inner(dual, made))
            mixed = _mixed(measured, made)
            best = min(best, (_distance(measured, residuals, 1.0 - mixed), mixed, residuals), key=lambda one: one[0])
            if best[0] - lower <= _GAP * measured.noise or step >= _MOST_STEPS:
                break
        made = _made(measured, _family(measured, ahead))
        after = {s: np.maximum(ahead[s] - made[s], 0.0) for s in dual}
        change = {s: after[s] - dual[s] for s in dual}
        following = (1.0 + math.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        if sum(float(np.vdot(ahead[s] - after[s], change[s])) for s in dual) > 0.0:
            ahead, following = after, 1.0
        else:
            ahead = {s: after[s] + (momentum - 1.0) / following * change[s] for s in dual}
        dual, momentum = after, following
    upper, mixed, residuals = best
    kept = _made(measured, {t: (1.0 - mixed) * f for t, f in residuals.items()})
    return Nearest({s: np.maximum(table, 0.0) for s, table in kept.items()}, (upper - lower) / measured.noise, step)


# In plain Python: tables of two attributes, each a list of cells, row by row.

Lists = dict[Set, list[float]]


def _agreeing(levels: Sequence[int], tables: Lists, total: float) -> Lists:
    """Return the nearest tables of pairs that agree and have this total; cells may be negative."""
    margins, weights = [[0.0] * level for level in levels], [0.0] * len(levels)
    centred: dict[Set, list[list[float]]] = {}
    for (i, j), table in tables.items():
        n, m = levels[i], levels[j]
        rows = [table[start : start + m] for start in range(0, n * m, m)]
        across, down, mean = [sum(row) for row in rows], [sum(c) for c in zip(*rows, strict=True)], sum(table) / (n * m)
        margins[i] = [old + new / m for old, new in zip(margins[i], across, strict=True)]
        margins[j] = [old + new / n for old, new in zip(margins[j], down, strict=True)]
        weights[i] += 1.0 / m
        weights[j] += 1.0 / n
        centred[i, j] = [
            [cell - of_row / m - of_column / n + mean for cell, of_column in zip(row, down, strict=True)]
            for row, of_row in zip(rows, across, strict=True)
        ]
    for i, (margin, weight) in enumerate(zip(margins, weights, strict=True)):
        mean = sum(margin) / len(margin)
        margins[i] = [(value - mean) / weight for value in margin]
    return {
        (i, j): [
            total / (levels[i] * levels[j]) + of_row / levels[j] + of_column / levels[i] + cell
            for row, of_row in zip(rows, margins[i], strict=True)
            for cell, of_column in zip(row, margins[j], strict=True)
        ]
        for (i, j), rows in centred.items()
    }


def _joined(combine: Callable[..., float], *several: Lists) -> Lists:
    """Return a function of the same cell of several tables."""
    return {s: list(map(combine, *(tables[s] for tables in several))) for s in several[0]}


def _dot(a: Lists, b: Lists) -> float:
    return sum(sum(map(float.__mul__, a[s], b[s])) for s in a)


def plain_nearest(levels: Sequence[int], tables: Lists, stderr: float) -> Lists:
    """Return what `nearest` does, of tables of pairs."""
    precisions = sum(1.0 / len(table) for table in tables.values())
    total = max(sum(sum(table) / len(table) for table in tables.values()) / precisions, 0.0)
    noise, starting = half_noise(levels, list(tables), stderr), _agreeing(levels, tables, total)
    dual = ahead = _joined(lambda _: 0.0, tables)
    if total == 0.0:
        return dual
    momentum, lower, best, step = 1.0, -math.inf, (math.inf, dual), 0
    while True:
        if step % _LOOK == 0:
            made = _agreeing(levels, _joined(float.__add__, tables, dual), total)
            far = _joined(float.__sub__, made, starting)
            lower = max(lower, 0.5 * _dot(far, far) - _dot(dual, made))
            # The share of uniform tables that leaves no cell negative.
            least = {s: max(-min(table), 0.0) for s, table in made.items()}
            mixed = max(low / (low + total / len(made[s])) for s, low in least.items())
            kept = {s: [(1.0 - mixed) * x + mixed * total / len(table) for x in table] for s, table in made.items()}
            far = _joined(float.__sub__, kept, starting)
            best = min(best, (0.5 * _dot(far, far), kept), key=lambda one: one[0])
            if best[0] - lower <= _GAP * noise or step >= _MOST_STEPS:
                return _joined(lambda x: max(x, 0.0), best[1])
        made = _agreeing(levels, _joined(float.__add__, tables, ahead), total)
        after = _joined(lambda y, x: max(y - x, 0.0), ahead, made)
        change = _joined(float.__sub__, after, dual)
        following = (1.0 + math.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        if _dot(_joined(float.__sub__, ahead, after), change) > 0.0:
            ahead, following = after, 1.0
        else:
            inertia = (momentum - 1.0) / following
            ahead = _joined(lambda y, moved, inertia=inertia: y + inertia * moved, after, change)
        dual, momentum, step = after, following, step + 1
