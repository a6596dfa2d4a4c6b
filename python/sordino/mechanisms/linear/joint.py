"""One measurement for several products along the same axes: tables of which sets of axes, and what is in them."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

import numpy as np

from sordino import _core
from sordino.accuracy.factorizations import condensed
from sordino.errors import InvalidParameterError, UnsupportedMechanismError
from sordino.mechanisms.catalogue import Law
from sordino.mechanisms.linear.along_axes import AlongAxes
from sordino.mechanisms.linear.catalogue import LONG_AXIS, WRITTEN
from sordino.workloads import Union, Workload
from sordino.workloads.base import Array
from sordino.workloads.union import joined, weighted

__all__ = ["SearchAlong", "joint_tables"]

SearchAlong = Callable[[Workload, Array | None, Array | None], Array]
"""From what is asked along an axis, rows that stand for it if it is not asked as it is, and what was found before, to
the rows that are measured there, shape (rows, cells): under Laplace noise beside the cells."""

# How often axes are searched for, each for the errors of the others, and an error over the best so far from which on
# no turn but the first will do.
_ROUNDS = 4
_HOPELESS = 1.5
# The same where an axis is long: after the first turn too.
_FEW_ROUNDS = 2
_FAR = 1.1
# A gain that is worth another turn.
_SETTLED = 1e-3
# Steps towards the best shares, and a gain that ends them.
_STEPS = 4000
_NEGLIGIBLE = 1e-10
# What a table may save and be left out all the same: it costs time, and bits of the others.
_SPARED = 1e-4
# Weights that make no difference.
_LEAST_WEIGHT = 1e-4
# Steps in which is counted what other tables know of totals, where what is asked along an axis is written out; else one
# start is tried.
_IN_FULL = 50


@dataclass(frozen=True)
class _Axis:
    """What is measured along an axis, and the errors of what is asked there: what totals have of it, and the rest."""

    rows: Array
    total: float
    errors: dict[Workload, tuple[float, float]]

    @classmethod
    def of(cls, asked: tuple[Workload, ...], law: Law, rows: Array) -> _Axis:
        together = Union(asked)
        total, errors = _core.joint_errors(together.core, together.answer_weights(), law, rows)
        return cls(rows, total, dict(zip(asked, errors, strict=True)))


@dataclass(frozen=True)
class _Tables:
    """Shares of the tables of all sets of axes, shape (2, ..., 2), their error, and the precision that sets have."""

    shares: Array
    error: float
    precision: Array


def joint_tables(
    products: AlongAxes, law: Law, search_along: SearchAlong, ended: Callable[[], bool]
) -> tuple[tuple[Array, ...], tuple[float, ...]]:
    """Return what is measured along every axis, and shares of the tables of all sets of axes, the first the high bit.

    A table holds what is measured along its axes, and totals along the others. With `c_i` what a total has along axis
    i, a query whose rests (what no total has of it) are along the axes S has the error `e_S/λ_S`,
    `λ_S = Σ_{T⊇S} w_T² Π_{i∉T} c_i`; shares `w_T` add up to 1, or under Gaussian noise their squares do. Shares are
    found by `w ← (w⁴ g)^{1/3}`, or `(w⁴ g)^{1/4}`, g the slope in `w²`, which never raises the error; the axes in
    turn, each for the weights that the errors along the others give what is asked there (McKenna, Miklau, Hay &
    Machanavajjhala 2018, §6.2-6.3).

    Args:
        products: What is asked.
        law: Of the noise.
        search_along: Searches along an axis.
        ended: Whether to return the best so far.
    """
    # Axes that are alike are searched, and their errors counted, once.
    cells = {n: np.eye(n) if law == "gaussian" else np.zeros((0, n)) for n in products.sizes}
    known: dict[_Asked, Array] = {}

    @cache
    def measured(asked: tuple[Workload, ...], own: _Asked | None) -> _Axis:
        return _Axis.of(asked, law, known[own] if own else cells[asked[0].core.input_len or 0])

    plain = [measured(asked, None) for asked in products.axes]
    best = plain, _best_tables(products, law, plain)
    many = max(products.sizes) > LONG_AXIS
    for start in _starts(products, law, plain, best[1]):
        axes, shares, last = list(plain), start, math.inf
        totals = bool(start.sum() == start.flat[-1])  # else other tables have them
        for turn in range(_FEW_ROUNDS if many else _ROUNDS):
            if ended():
                break
            tables = _Tables(shares, math.inf, _precision(axes, shares))
            for k, asked in enumerate(products.axes):
                own = _asked_along(products, axes, tables, k, totals)
                if own is None or ended():
                    continue
                if own not in known:
                    before = axes[k].rows if axes[k] is not plain[k] and len(axes[k].rows) else None
                    known[own] = search_along(own.workload, own.rows, before)
                with suppress(InvalidParameterError, UnsupportedMechanismError):  # what leaves no digits
                    axes[k] = measured(asked, own)
            found = (_best_tables(products, law, axes, own) for own in (None, start))
            tables = min(found, key=lambda own: own.error)
            if tables.error < best[1].error:
                best = list(axes), tables
            if many and tables.error > _FAR * best[1].error:
                break
            if turn:
                if tables.error > max((1.0 - _SETTLED) * last, _HOPELESS * best[1].error):
                    break
                shares = tables.shares
            last = tables.error
    axes, tables = best
    shares = _without_spare(products, law, axes, tables)
    return tuple(axis.rows for axis in axes), tuple(shares.reshape(-1).tolist())


def _starts(products: AlongAxes, law: Law, axes: list[_Axis], tables: _Tables) -> list[Array]:
    """Return shares to start from: the best of cells, one table of all axes, of few cells those of each product."""
    whole, own = np.zeros_like(tables.shares), np.zeros_like(tables.shares)
    whole.flat[-1] = 1.0
    for part in products.parts:
        own[tuple(int(axis.errors[factor][1] > 0.0) for axis, factor in zip(axes, part, strict=True))] = 1.0
    if max(products.sizes) > WRITTEN:
        return [whole]
    return [tables.shares, whole, *([_normalised(law, own)] if max(products.sizes) <= LONG_AXIS else [])]


def _needed(products: AlongAxes, axes: list[_Axis], but: int | None = None) -> list[Array]:
    """Return the weighted errors of each product by set of axes, one axis left out."""
    each = []
    for part, weight in zip(products.parts, products.weights, strict=True):
        needed = np.array(weight)
        for k, (axis, own) in enumerate(zip(axes, part, strict=True)):
            needed = np.multiply.outer(needed, (1.0, 1.0) if k == but else axis.errors[own])
        each.append(needed)
    return each


def _best_tables(products: AlongAxes, law: Law, axes: list[_Axis], shares: Array | None = None) -> _Tables:
    needed, counts = np.sum(_needed(products, axes), axis=0), _counts(axes)
    if shares is None:
        shares = _normalised(law, np.ones_like(needed))
    asked, last = needed > 0.0, math.inf
    for _ in range(_STEPS):
        precision = _precision(axes, shares)
        if (precision[asked] <= 0.0).any():
            return _Tables(shares, math.inf, precision)
        error = float((needed[asked] / precision[asked]).sum())
        if error >= last * (1.0 - _NEGLIGIBLE):
            break
        last = error
        slopes = np.divide(needed, np.square(precision), out=np.zeros_like(needed), where=asked)
        slopes = counts * _over_sets(slopes, above=False)
        shares = shares * np.sqrt(np.sqrt(slopes)) if law == "gaussian" else np.cbrt(shares**4 * slopes)
        shares = _normalised(law, shares)
    return _Tables(shares, error, precision)


def _normalised(law: Law, shares: Array) -> Array:
    return shares / (np.linalg.norm(shares) if law == "gaussian" else shares.sum())


def _precision(axes: list[_Axis], shares: Array) -> Array:
    """Return how precise the tables are about every set of axes, `λ_S`."""
    return _over_sets(_counts(axes) * np.square(shares), above=True)


def _counts(axes: list[_Axis]) -> Array:
    """Return what a table's totals along axes that are not its own count, by its set of axes."""
    counts = np.ones(())
    for axis in axes:
        counts = np.multiply.outer(counts, (axis.total, 1.0))
    return counts


def _over_sets(values: Array, *, above: bool) -> Array:
    """Return sums over all sets of axes that hold each, or that each holds."""
    for axis in range(values.ndim):
        without, within = np.moveaxis(values, axis, 0)
        both = without + within
        values = np.stack([both, within] if above else [without, both], axis=axis)
    return values


def _without_spare(products: AlongAxes, law: Law, axes: list[_Axis], tables: _Tables) -> Array:
    """Return the shares without tables that save next to nothing, the smallest first."""
    for place in np.argsort(tables.shares, axis=None):
        fewer = tables.shares.copy()
        fewer.flat[place] = 0.0
        if not fewer.any():
            break
        found = _best_tables(products, law, axes, _normalised(law, fewer))
        if found.error > tables.error * (1.0 + _SPARED):
            break
        tables = found
    return tables.shares


@dataclass(frozen=True)
class _Asked:
    """What is asked along an axis, weighted in steps of a percent, and how much its totals count."""

    parts: tuple[tuple[Workload, int, int], ...]

    @property
    def workload(self) -> Workload:
        """All of it, weighted."""
        if len(self.parts) == 1:
            return self.parts[0][0]
        return joined(*(weighted(own, math.exp(step / 100.0)) for own, step, _ in self.parts))

    @property
    def rows(self) -> Array | None:
        """Rows that stand for it where what totals have of it counts less; None where all counts, or cells are many."""
        cells = self.parts[0][0].core.input_len or 0
        if cells > WRITTEN or all(kept == _IN_FULL for _, _, kept in self.parts):
            return None
        each = []
        for own, step, kept in self.parts:
            rows, scale = condensed(own)[0], math.exp(step / 200.0)
            each.append(scale * (rows - (1.0 - kept / _IN_FULL) * rows.mean(axis=1, keepdims=True)))
        return np.vstack(each)


def _asked_along(products: AlongAxes, axes: list[_Axis], tables: _Tables, axis: int, totals: bool) -> _Asked | None:
    """Return what is asked along an axis, with totals or without, weighted by the errors along the others."""
    counted = {own: np.zeros(2) for own in products.axes[axis]}
    for part, needed in zip(products.parts, _needed(products, axes, but=axis), strict=True):
        each = np.divide(needed, tables.precision, out=np.zeros_like(needed), where=tables.precision > 0.0)
        counted[part[axis]] += np.moveaxis(each, axis, 0).reshape(2, -1).sum(axis=1)
    errors = axes[axis].errors
    # Of each the rest, and how much totals count beside it; of totals that alone.
    both: dict[Workload, tuple[float, float]] = {}
    for own, (mean, rest) in counted.items():
        if errors[own][1] > 0.0:
            both[own] = (float(rest), math.sqrt(min(mean / rest, 1.0)) if rest > 0.0 else 1.0)
        elif totals:
            both[own] = (float(mean), 1.0)
    largest = max((weight * sum(errors[own]) for own, (weight, _) in both.items()), default=0.0)
    kept = {own: pair for own, pair in both.items() if pair[0] * sum(errors[own]) > _LEAST_WEIGHT * largest}
    if not any(errors[own][1] for own in kept):
        return None
    most = max(weight for weight, _ in kept.values())
    steps = (
        (own, round(100.0 * math.log(weight / most)), max(round(_IN_FULL * part), 1))
        for own, (weight, part) in kept.items()
    )
    return _Asked(tuple(steps))
