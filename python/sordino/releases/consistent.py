"""Answers that data without negative counts could have: tables that agree, totals that rise, cells that add up."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain, combinations
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from sordino import _core
from sordino._support.checks import one_of, real
from sordino.errors import InvalidParameterError, UnsupportedMechanismError
from sordino.workloads import Histogram, Marginals, RunningSum
from sordino.workloads.base import Array
from sordino.workloads.constraints import PublicTotal, SignedBound

if TYPE_CHECKING:
    from sordino.releases.release import Release

__all__ = ["Consistency", "Norm", "Shrink", "consistent_values"]

Norm = Literal["answers", "noise"]
Shrink = Literal["independence"]
Set = tuple[int, ...]

# The gap that is left, as a share of half the squared noise: the error is .03 % above that of the nearest tables.
_GAP = 1e-3
_ITERATIONS = 2000
_MOST_RECORDS = 2.0**53
# Least share of all records that a value is taken to have where it is multiplied.
_LEAST_SHARE = 1e-4


@dataclass(frozen=True)
class Consistency:
    """How answers were made consistent.

    Attributes:
        total: Records that all tables hold.
        gap: Half the squared distance to what was published, shrunk if that was asked for, is at most so much above the
            least, in units of half the squared noise; 0 where the nearest is known in closed form.
        converged: Whether the gap is as small as was meant, a thousandth; otherwise more answers may be worse.
        mixed: The share of uniform tables that was mixed in, so that no cell is negative.
        iterations: Of the search.
        moved: Root mean square of what answers changed by.
        shrunk: What each table's association was multiplied by, for sets of attributes; below .5: mostly noise.
    """

    total: float
    gap: float = 0.0
    converged: bool = True
    mixed: float = 0.0
    iterations: int = 0
    moved: float = 0.0
    shrunk: dict[Set, float] = field(default_factory=dict, repr=False)


def consistent_values(release: Release, total: object, shrink: Shrink | None, norm: Norm) -> tuple[Array, Consistency]:
    """Return the values, and how they were made.

    Raises:
        DataTypeError: The total is no number.
        InvalidParameterError: It is negative, or an option means nothing for these queries.
        UnsupportedMechanismError: Nothing is known to be consistent for these queries.
    """
    one_of("norm", norm, get_args(Norm))
    if shrink is not None:
        one_of("shrink", shrink, get_args(Shrink))
    workload = release.workload
    given = _given(release, total)
    if isinstance(workload, Marginals):
        values, report = _tables(release, workload, given, shrink, norm)
    elif shrink is not None or norm != "answers":
        raise InvalidParameterError("shrink and norm are of marginals")
    elif isinstance(workload, RunningSum):
        flat = np.ascontiguousarray(release.unbiased).reshape(-1)
        if given is None:
            values = np.maximum(_core.isotonic(flat), 0.0)
        else:  # the last is the total
            values = np.append(np.clip(_core.isotonic(np.ascontiguousarray(flat[:-1])), 0.0, given), given)
        report = Consistency(float(values[-1]))
    elif type(workload) is Histogram:
        cells = np.ascontiguousarray(release.unbiased).reshape(-1)
        whole = max(float(cells.sum()), 0.0) if given is None else given
        values, report = _on_simplex(cells, whole), Consistency(whole)
    else:
        raise UnsupportedMechanismError(
            f"consistent() serves Marginals, RunningSum and Histogram, not {type(workload).__name__}"
        )
    moved = float(np.sqrt(np.mean((values.reshape(-1) - release.unbiased.reshape(-1)) ** 2)))
    return values.reshape(release.unbiased.shape), Consistency(**{**report.__dict__, "moved": moved})


def _given(release: Release, total: object) -> float | None:
    """Return a public number of records, if one is known."""
    if total is not None:
        found = real("total", total)
        if not 0.0 <= found <= _MOST_RECORDS:
            raise InvalidParameterError("total must not be negative, and at most 2**53")
        return found
    constraint = release.fit.request.constraint
    if isinstance(constraint, SignedBound):
        raise UnsupportedMechanismError("cells that may be negative have no consistent counts")
    return constraint.total if isinstance(constraint, PublicTotal) else None


def _on_simplex(values: Array, total: float) -> Array:
    """Return the nearest cells that are not negative and add up to a total: all lowered by one number, then clipped."""
    falling = np.sort(values)[::-1]
    over = (np.cumsum(falling) - total) / np.arange(1, len(values) + 1)
    kept = int(np.flatnonzero(falling - over > 0.0).max(initial=0)) if total > 0.0 else 0
    if total == 0.0:
        return np.zeros_like(values)
    found: Array = np.maximum(values - over[kept], 0.0)
    return found


# Marginals.


def _centred(table: Array) -> Array:
    """Return a table whose sums along every axis are zero."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def _below(sets: Iterable[Set]) -> list[Set]:
    """Return all subsets of sets but the empty one, the smaller first."""
    found = {subset for s in sets for k in range(1, len(s) + 1) for subset in combinations(s, k)}
    return sorted(found, key=lambda subset: (len(subset), subset))


class _Sizes:
    """Numbers of cells of sets of attributes."""

    def __init__(self, levels: tuple[int, ...]) -> None:
        self.levels = levels

    def shape(self, s: Set) -> tuple[int, ...]:
        return tuple(self.levels[i] for i in s)

    def cells(self, s: Iterable[int]) -> int:
        return math.prod(self.levels[i] for i in s)

    def free(self, s: Set) -> int:
        """Dimension of the residuals."""
        return math.prod(self.levels[i] - 1 for i in s)

    def outside(self, s: Set, t: Set) -> int:
        return self.cells(i for i in s if i not in t)


def _measured(
    release: Release, workload: Marginals, below: list[Set], norm: Norm = "answers"
) -> tuple[float, dict[Set, Array], Array]:
    """Return the total, the residuals of all sets as they were measured, and the variances of their entries.

    Noise is white within the residuals of a set, and uncorrelated between sets; a variance is that of `v_T` in the
    covariance `v_T Π_T`.
    """
    sizes, fit = _Sizes(workload.levels), release.fit
    if fit.mechanism.measures == "output":
        return _of_tables(release, workload, below, norm)
    if fit.mechanism.measures == "identity":
        found: list[float] | None = [sizes.outside(tuple(range(len(sizes.levels))), t) for t in below]
        unit = float(fit.strategy.unit_variances()[0])
    else:
        found, unit = fit.strategy.residual_variances(below), 1.0
    asked = fit.request.workload
    regrouped = found is not None and isinstance(asked, Marginals) and asked.levels != workload.levels
    if found is None or (regrouped and fit.mechanism.measures != "identity"):
        raise UnsupportedMechanismError(
            "noise of another structure than that of these marginals: plan them by 'fourier', 'output' or 'identity'"
        )
    # Tables agree: of each set the residual is in any table above it.
    total, residuals, at, flat = 0.0, {}, 0, release.unbiased.reshape(-1)
    for s in workload.sets:
        table = flat[at : at + sizes.cells(s)].reshape(sizes.shape(s))
        at, total = at + table.size, float(table.sum())
        for t in chain.from_iterable(combinations(s, k) for k in range(1, len(s) + 1)):
            if t not in residuals:
                residuals[t] = _centred(table.sum(axis=tuple(axis for axis, i in enumerate(s) if i not in t)))
    return total, residuals, fit.door.noise**2 * unit * np.array(found, dtype=np.float64)


def _of_tables(
    release: Release, workload: Marginals, below: list[Set], norm: Norm
) -> tuple[float, dict[Set, Array], Array]:
    """Return the same of tables that were measured one by one: the nearest that agree, in the same norm."""
    sizes, unbiased, errors = _Sizes(workload.levels), release.unbiased.reshape(-1), release.stderr.reshape(-1) ** 2
    sums = {t: np.zeros(sizes.shape(t)) for t in below}
    weights, squares = dict.fromkeys(below, 0.0), dict.fromkeys(below, 0.0)
    total, precisions, at = 0.0, 0.0, 0
    for s, weight in zip(workload.sets, workload.weights, strict=True):
        cells = sizes.cells(s)
        table, variance = unbiased[at : at + cells].reshape(sizes.shape(s)), float(errors[at])
        at += cells
        total, precisions = total + table.sum() / (variance * cells), precisions + 1.0 / (variance * cells)
        for t in chain.from_iterable(combinations(s, k) for k in range(1, len(s) + 1)):
            own = variance * sizes.outside(s, t)
            share = 1.0 / own if norm == "noise" else weight / sizes.outside(s, t)
            margin = table.sum(axis=tuple(axis for axis, i in enumerate(s) if i not in t))
            sums[t] = sums[t] + share * _centred(margin)
            weights[t] += share
            squares[t] += share**2 * own
    variances = np.array([squares[t] / weights[t] ** 2 for t in below])
    return float(total / precisions), {t: sums[t] / weights[t] for t in below}, variances


def _shrunk(
    total: float, residuals: dict[Set, Array], variances: dict[Set, float], sizes: _Sizes
) -> tuple[dict[Set, Array], dict[Set, float]]:
    """Return residuals nearer to those of independent attributes, by James and Stein, and by which factors."""
    shares = {}
    for (i,) in (t for t in residuals if len(t) == 1):
        margin = np.maximum(residuals[i,] + total / sizes.levels[i], _LEAST_SHARE * max(total, 1.0))
        shares[i] = margin / margin.sum()
    found, factors = dict(residuals), {}
    for t, y in residuals.items():
        free = sizes.free(t)
        if len(t) < 2 or free < 3:
            continue
        product = np.array(total)
        for i in t:
            product = np.multiply.outer(product, shares[i])
        target = _centred(product)
        distance = float(np.sum((y - target) ** 2))
        factors[t] = max(0.0, 1.0 - (free - 2) * variances[t] / distance) if distance > 0.0 else 0.0
        found[t] = target + factors[t] * (y - target)
    return found, factors


# Subsets of a set are looked at one by one.
_MOST_AXES = 16


def _tables(
    release: Release, workload: Marginals, given: float | None, shrink: Shrink | None, norm: Norm
) -> tuple[Array, Consistency]:
    if any(len(s) > _MOST_AXES for s in workload.sets):
        raise UnsupportedMechanismError(f"consistent() serves tables of at most {_MOST_AXES} attributes")
    sizes, below = _Sizes(workload.levels), _below(workload.sets)
    measured, residuals, variances = _measured(release, workload, below, norm)
    total = max(measured, 0.0) if given is None else given
    factors: dict[Set, float] = {}
    if shrink is not None:
        residuals, factors = _shrunk(total, residuals, dict(zip(below, variances.tolist(), strict=True)), sizes)
    weights = dict.fromkeys(below, 0.0)
    for s, weight in zip(workload.sets, workload.weights, strict=True):
        for t in chain.from_iterable(combinations(s, k) for k in range(1, len(s) + 1)):
            weights[t] += weight / sizes.outside(s, t)
    metric = np.array([weights[t] for t in below])
    free = np.array([sizes.free(t) for t in below], dtype=np.float64)
    if norm == "noise":
        metric = np.where(variances > 0.0, 1.0 / np.where(variances > 0.0, variances, 1.0), metric)
    noise = 0.5 * float(np.sum(metric * free * variances))
    flat = np.concatenate([np.zeros(0), *(residuals[t].reshape(-1) for t in below)])
    tables, gap, mixed, iterations = _core.nearest_tables(
        list(workload.levels),
        [list(s) for s in workload.sets],
        [list(t) for t in below],
        flat,
        metric,
        total,
        _GAP * noise,
        _ITERATIONS,
    )
    share = gap / noise if noise > 0.0 else gap
    return tables, Consistency(total, share, share <= 1.01 * _GAP, mixed, iterations, 0.0, factors)
