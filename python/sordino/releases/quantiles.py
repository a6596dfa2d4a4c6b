"""Quantiles, means and spreads of what cells stand for, with intervals that cover."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sordino import _core
from sordino._support.checks import numbers, open_unit, real
from sordino.errors import InvalidParameterError, ShapeError, UnsupportedMechanismError
from sordino.releases.answers import Answers
from sordino.workloads import Matrix, RunningSum
from sordino.workloads.base import Array
from sordino.workloads.constraints import PublicTotal

__all__ = ["Moments", "Quantile", "moments_of", "quantile_of"]

# Cells whose running sums are asked for with a share of their total, all rows as a matrix.
_DENSE = 512
# How ends of intervals of ratios are looked for.
_STEPS, _WIDER = 12, 1.01
# A mean is not said where the count is below so many of its errors.
_LEAST_COUNT = 4.0


@dataclass(frozen=True)
class Quantile:
    """Where a share of all records is reached.

    Attributes:
        share: Which one.
        cell: The first cell with which it is reached, as estimated.
        lower: First cell of the interval.
        upper: Last cell of the interval, which holds the true one with probability `level`.
        level: Of the interval.
        value: Within the cell, in proportion, by `edges`; None without them.
        ends: Lower edge of the first and upper edge of the last cell of the interval; None without edges.
    """

    share: float
    cell: int
    lower: int
    upper: int
    level: float
    value: float | None = None
    ends: tuple[float, float] | None = None


@dataclass(frozen=True)
class Moments:
    """Mean and variance of the values that cells stand for.

    Attributes:
        count: Number of records, as estimated.
        mean: Of the values of cells; not-a-number where the count is below 4 of its errors.
        mean_interval: Holds the mean of the values of cells with probability `level`.
        variance: Of the values of cells, likewise; never negative.
        variance_interval: Holds it with probability `level`.
        level: Of each interval.
        binning: How far the mean, and the standard deviation, of the amounts themselves can be from those of the values
            of their cells: half the widest bin; 0 where values were given.
    """

    count: float
    mean: float
    mean_interval: tuple[float, float]
    variance: float
    variance_interval: tuple[float, float]
    level: float
    binning: float

    @property
    def std(self) -> float:
        """Standard deviation."""
        return math.sqrt(self.variance)


def quantile_of(release: Answers, share: object, level: object, edges: object, total: object) -> Quantile:
    """Return where a share of all records is reached.

    The true cell is the first with `c_i - share * c_n >= 0`, for running sums `c`, and these rise: cells with an upper
    end below 0 are before it, cells with a lower end from 0 on are not. Both ends can only fail at one cell, so
    intervals for single answers are enough.

    Raises:
        DataTypeError: An argument is no number.
        ShapeError: Edges have another shape.
        InvalidParameterError: An argument is out of range.
        UnsupportedMechanismError: Running sums of the cells do not follow from what was measured.
    """
    q, level = open_unit("share", share), open_unit("level", level)
    cells = _cells_of(release)
    known = _known(release, total)
    bins = None if edges is None else _edges(edges, cells)
    sums = release.answer(RunningSum(cells))
    fitted = np.maximum(_core.isotonic(np.ascontiguousarray(sums.values)), 0.0)
    target = q * (fitted[-1] if known is None else known)
    cell = min(int(np.searchsorted(fitted, target)), cells - 1)
    over, width = _over(release, sums, q, level, known)
    above, below = np.flatnonzero(over + width >= 0.0), np.flatnonzero(over - width < 0.0)
    lower = int(above[0]) if len(above) else cells - 1
    upper = min(int(below[-1]) + 1, cells - 1) if len(below) else 0
    lower, upper = min(lower, upper), max(lower, upper)
    if bins is None:
        return Quantile(q, cell, lower, upper, level)
    before = fitted[cell - 1] if cell else 0.0
    inside = (target - before) / (fitted[cell] - before) if fitted[cell] > before else 0.5
    value = float(bins[cell] + min(max(inside, 0.0), 1.0) * (bins[cell + 1] - bins[cell]))
    return Quantile(q, cell, lower, upper, level, value, (float(bins[lower]), float(bins[upper + 1])))


def _over(release: Answers, sums: Answers, q: float, level: float, known: float | None) -> tuple[Array, Array]:
    """Return `c_i - q c_n` and the half widths of intervals around it."""
    if known is not None:
        interval = sums.interval(level)
        return sums.values - q * known, 0.5 * (interval.upper - interval.lower)
    cells = len(sums.values)
    if cells <= _DENSE:
        rows = np.tril(np.ones((cells, cells))) - q
        # Of the last, and of others if q is no finite binary fraction, nothing more is needed than what is computed.
        found = release.answer(Matrix(rows))
        interval = found.interval(level)
        return found.values, 0.5 * (interval.upper - interval.lower)
    # Of both at half the risk each.
    interval = sums.interval(0.5 + 0.5 * level)
    width = 0.5 * (interval.upper - interval.lower)
    return sums.values - q * sums.values[-1], width + q * width[-1]


def moments_of(release: Answers, level: object, edges: object, values: object) -> Moments:
    """Return mean and variance of the values of cells.

    A mean `m` is in the interval if `Σ (v_i - m) x_i = 0` is within that sum's own interval (Fieller 1954). The
    variance is the mean square distance from the middle of all values, less that of the mean.

    Raises:
        DataTypeError: An argument is no number.
        ShapeError: Edges or values have another shape.
        InvalidParameterError: An argument is out of range, or neither or both of edges and values are given.
        UnsupportedMechanismError: These sums do not follow from what was measured.
    """
    level = open_unit("level", level)
    cells = _cells_of(release)
    if (edges is None) == (values is None):
        raise InvalidParameterError("give either edges or values of the cells")
    if edges is not None:
        bins = _edges(edges, cells)
        own, binning = 0.5 * (bins[1:] + bins[:-1]), 0.5 * float(np.diff(bins).max())
    else:
        own, binning = numbers("values", values), 0.0
        if own.shape != (cells,):
            raise ShapeError(f"values must have shape {(cells,)}")
    middle = 0.5 * float(own.max() + own.min())
    apart, squares = own - middle, (own - middle) ** 2
    found = release.answer(Matrix(np.stack([np.ones(cells), apart, squares])))
    count = float(found.values[0])
    enough = count > _LEAST_COUNT * float(found.stderr[0])
    each = 0.5 + 0.5 * level  # two intervals say the variance
    first = _ratio(release, apart, level)
    narrow, second = _ratio(release, apart, each), _ratio(release, squares, each)
    nearest = 0.0 if narrow[0] <= 0.0 <= narrow[1] else min(abs(narrow[0]), abs(narrow[1]))
    furthest = max(abs(narrow[0]), abs(narrow[1]))
    of_mean = float(np.clip(found.values[1] / count, apart.min(), apart.max())) if enough else math.nan
    variance = max(float(found.values[2]) / count - of_mean**2, 0.0) if enough else math.nan
    return Moments(
        count,
        middle + of_mean,
        (middle + first[0], middle + first[1]),
        variance,
        (max(second[0] - furthest**2, 0.0), max(second[1] - nearest**2, 0.0)),
        level,
        binning,
    )


def _ratio(release: Answers, values: Array, level: float) -> tuple[float, float]:
    """Return an interval for `Σ v_i x_i / Σ x_i`, within the values' range: a hundredth wider than needed."""
    least, most = float(values.min()), float(values.max())
    if least == most:
        return least, most
    sum_of_values, count = map(float, release.answer(Matrix(np.stack([values, np.ones_like(values)]))).values)
    if count <= 0.0:  # too few records to say anything
        return least, most
    middle = sum_of_values / count

    def width(mean: float) -> float:
        interval = release.answer(Matrix((values - mean)[None, :])).interval(level)
        return 0.5 * float(interval.upper[0] - interval.lower[0])

    def end(sign: float) -> float:
        """Return a mean that is too far away: `|Σ (v_i - m) x_i|` is more than the half width of its interval."""
        mean = middle
        for _ in range(_STEPS):
            allowed = width(mean)
            if count * abs(mean - middle) > allowed:
                return mean
            mean = middle + sign * _WIDER * allowed / count
            if not least < mean < most:
                break
        return most if sign > 0.0 else least

    low, high = end(-1.0), end(1.0)
    return min(max(low, least), most), max(min(high, most), least)


def _cells_of(release: Answers) -> int:
    layout = release.fit.request.workload.layout
    if layout is not None and layout.channels is not None:
        raise UnsupportedMechanismError("amounts stand in two numbers a cell: quantiles are of counts in bins")
    shape = release.fit.request.workload.input_shape
    if len(shape) != 1 or not release.fit.request.workload.linear:
        raise UnsupportedMechanismError("quantiles and means are of cells in one row")
    return shape[0]


def _edges(edges: object, cells: int) -> NDArray[np.float64]:
    found = numbers("edges", edges)
    if found.shape != (cells + 1,):
        raise ShapeError(f"edges must have shape {(cells + 1,)}, one more than cells")
    if not np.isfinite(found).all() or not (np.diff(found) > 0.0).all():
        raise InvalidParameterError("edges must be finite and strictly increasing")
    return found


def _known(release: Answers, total: object) -> float | None:
    if total is not None:
        found = real("total", total)
        if not 0.0 <= found < math.inf:
            raise InvalidParameterError("total must not be negative")
        return found
    constraint = release.fit.request.constraint
    return constraint.total if isinstance(constraint, PublicTotal) else None
