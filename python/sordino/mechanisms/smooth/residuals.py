"""How far queries are from what replaces them: bounds where the shape of factors is known, searches otherwise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sordino import _core
from sordino.errors import InvalidParameterError
from sordino.workloads.base import Array
from sordino.workloads.smooth.chebyshev import coefficients, largest_bound, nodes, on_circle, polynomials, spectrum
from sordino.workloads.smooth.cube import Cube, grid_points
from sordino.workloads.smooth.factor_shapes import FactorShape, sample_count
from sordino.workloads.smooth.queries import ALL, Rows, SeparableQueries, values_of

__all__ = [
    "BLOCK",
    "MOST_GRID",
    "Factors",
    "SampledFunction",
    "asked_at",
    "check_grid",
    "contraction",
    "products_apart",
]

MOST_GRID = 2**24
"""Values of a function that are asked for at most."""
BLOCK = 2**22
"""Numbers that are in memory at once."""

# Intervals of a grid that bounds come from, at least and at most.
_LEAST_INTERVALS = 64
_MOST_INTERVALS = 2**17
# What a bound may exceed the largest value on its grid by.
_SLACK = 0.02
# A function is looked at between the points on a grid of so many points at most, else at so many scattered ones.
_MOST_CHECKS = 2**20
_SCATTERED = 2**12
_MOST_CORNERS = 2**10


Places: TypeAlias = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Factors:
    """Factors of some products along one axis, as Chebyshev sums.

    Attributes:
        queries: Products.
        cube: The bounds.
        axis: Which coordinate.
        rows: Which of the products.
        coefficients: By a cosine transform of values at as many points, shape (products, points).
        shape: What is known of the factors of all products, if anything.
        checks: Otherwise coordinates between those points, and the values there.
    """

    queries: SeparableQueries
    cube: Cube
    axis: int
    rows: slice
    coefficients: Array
    shape: FactorShape | None
    checks: tuple[Array, Array]

    @staticmethod
    def points(queries: SeparableQueries, cube: Cube, axis: int, degree: int) -> int:
        """Return from how many points coefficients are taken."""
        shape = queries.shape(cube, axis)
        return sample_count(degree) if shape is None else sample_count(degree, shape.nodes)

    @staticmethod
    def sampled(queries: SeparableQueries, cube: Cube, axis: int, degree: int, rows: slice = ALL) -> Factors:
        """Ask factors once, and find their coefficients."""
        count = Factors.points(queries, cube, axis, degree)
        shape = queries.shape(cube, axis)
        between = np.empty(0) if shape is not None else _between(count, degree)
        values = queries.axis_values(cube, axis, np.concatenate([nodes(count), between]), rows)
        checks = (between, values[:, count:])
        return Factors(queries, cube, axis, rows, spectrum(values[:, :count]), shape, checks)

    @property
    def largest(self) -> Array:
        """Largest values, shape (products,): exact for a shape, else those found."""
        if self.shape is None:
            found: Array = np.abs(self.checks[1]).max(axis=1)
            return found
        return largest_factors(self.queries, self.cube, self.axis, self.shape, self.rows)

    def lost(self, own: Array, floor: float) -> Array:
        """Return what factors are off by if `sum_k own_k T_k` replaces them, shape (products,).

        Without a shape the largest difference found, at least the summed coefficients. For a shape a bound: that of
        `sum_k (c_k - own_k) T_k`, and twice the tail beyond the points that the c_k come from.

        Args:
            own: Shape (products, degree).
            floor: Bounds below it need not be sharp.
        """
        degree = own.shape[1]
        left = self.coefficients.copy()
        left[:, :degree] -= own
        bound: Array = np.abs(left).sum(axis=1)
        if self.shape is None:
            u, values = self.checks
            bound = np.maximum(bound, np.abs(values - own @ polynomials(u, degree).T).max(axis=1))
            return bound
        step = max(BLOCK // (4 * left.shape[1]), 1)
        for some in _pieces(np.flatnonzero(bound > floor), step):
            bound[some] = largest_bound(left[some])
        beyond = 2.0 * self.shape.tail(left.shape[1])
        bound = np.minimum(bound + beyond, self.largest + np.abs(own).sum(axis=1))
        self._sharpen(bound, own, np.flatnonzero(beyond > np.maximum(_SLACK * bound, floor)), floor)
        return bound

    def _sharpen(self, bound: Array, own: Array, rows: Places, floor: float) -> None:
        """Lower bounds to the largest difference F on a grid of angles and at the peak, and what is possible between.

        This is an eighth of `|F''| <= curvature + sum_k k^2 |own_k|` times the squared distance of the points, on both
        sides of the peak: grids become finer until it hardly shows.
        """
        assert self.shape is not None
        degree = own.shape[1]
        curvature = self.shape.curvature[self.rows] + np.abs(own) @ np.arange(degree, dtype=np.float64) ** 2
        intervals = 1 << max(degree, _LEAST_INTERVALS - 1).bit_length()
        while len(rows):
            slack = (math.pi / intervals) ** 2 / 8.0 * curvature
            last = intervals >= _MOST_INTERVALS
            # A grid is worth looking at as soon as its slack hardly shows.
            now = rows if last else rows[slack[rows] <= np.maximum(_SLACK * bound[rows], floor)]
            for some in _pieces(now, max(BLOCK // intervals, 1)):
                seen = np.maximum(self._on_grid(own[some], some, intervals), self._at_peak(own[some], some))
                bound[some] = np.minimum(bound[some], seen + slack[some])
            if last:
                break
            rows = rows[slack[rows] > np.maximum(_SLACK * bound[rows], floor)]
            intervals *= 2

    def _values(self, u: Array, some: Places) -> Array:
        return self.queries.axis_values(self.cube, self.axis, u, some + (self.rows.start or 0))

    def _on_grid(self, own: Array, some: Places, intervals: int) -> Array:
        u = np.cos(np.pi * np.arange(intervals + 1) / intervals)
        found: Array = np.abs(self._values(u, some) - on_circle(own, intervals)).max(axis=1)
        return found

    def _at_peak(self, own: Array, some: Places) -> Array:
        assert self.shape is not None
        u = self.shape.peaks[self.rows][some]
        replaced = np.polynomial.chebyshev.chebval(u[:, 0], own.T, tensor=False)
        found: Array = np.abs(self._values(u, some)[:, 0] - replaced)
        return found


def _pieces(rows: Places, step: int) -> Iterator[Places]:
    for first in range(0, len(rows), step):
        yield rows[first : first + step]


def _between(count: int, degree: int) -> Array:
    """Return coordinates beside `nodes(count)`, some more of them, and both edges."""
    return np.concatenate([nodes(count + degree + 1), [-1.0, 1.0]])


def largest_factors(queries: SeparableQueries, cube: Cube, axis: int, shape: FactorShape, rows: Rows) -> Array:
    """Return the largest values of factors in the cube: at an edge, or where they turn. Shape (products,)."""
    peaks = shape.peaks[rows]
    ends = np.broadcast_to([-1.0, 1.0], (len(peaks), 2))
    found: Array = np.abs(queries.axis_values(cube, axis, np.concatenate([peaks, ends], axis=1), rows)).max(axis=1)
    return found


def products_apart(lost: list[Array], largest: list[Array], replaced: list[Array]) -> Array:
    """Return how far products of factors g_j are from those of h_j, at most, shape (products,).

    `prod g - prod h = sum_j h_1 ... h_(j-1) (g_j - h_j) g_(j+1) ...`; and both may be bounded alone.

    Args:
        lost: Bounds of `|g_j - h_j|` on each axis.
        largest: Of `|g_j|`.
        replaced: Of `|h_j|`, from more than their distance.
    """
    bounded = [np.minimum(own, most + apart) for own, most, apart in zip(replaced, largest, lost, strict=True)]
    total = np.zeros(len(lost[0]))
    for j, apart in enumerate(lost):
        total += math.prod(bounded[:j], start=apart) * math.prod(largest[j + 1 :], start=np.ones(1))
    both: Array = math.prod(largest, start=np.ones(1)) + math.prod(bounded, start=np.ones(1))
    return np.minimum(total, both)


@dataclass(frozen=True, eq=False)
class SampledFunction:
    """A function, or several at once, on a grid of Chebyshev points, and where it is compared with what replaces it.

    Attributes:
        coefficients: Shape (queries, points, points, ...).
        axes: Coordinates of a second grid; None if there would be too many points.
        points: Otherwise scattered points and corners of the cube, shape (k, d).
        checks: Values there, shape (queries, k).
    """

    coefficients: Array
    axes: list[Array] | None
    points: Array
    checks: Array

    @staticmethod
    def asked(f: Callable[[Array], Any], cube: Cube, degrees: Sequence[int], samples: int | None) -> SampledFunction:
        """Ask a function once, for all points.

        Coefficients go beyond the degrees where that many values can be asked for.

        Raises:
            InvalidParameterError: It would be asked for too many values, or does not answer.
        """
        count = [max(2 * t, 8) if samples is None else max(samples, t) for t in degrees]
        if samples is None and math.prod(count) > MOST_GRID:
            count = [max(t, 2) for t in degrees]
        check_grid(count)
        between = [_between(c, t) for c, t in zip(count, degrees, strict=True)]
        axes = between if math.prod(map(len, between)) <= _MOST_CHECKS else None
        points = _scattered(len(degrees)) if axes is None else grid_points(axes)
        grid = math.prod(count)
        values = asked_at(f, cube, np.concatenate([grid_points([nodes(c) for c in count]), points]))
        found = coefficients(values[:, :grid].reshape(-1, *count), count, axis=1)
        return SampledFunction(found, axes, points, values[:, grid:])

    def lost(self, own: Array) -> Array:
        """Return what the functions are off by if a Chebyshev sum replaces them, as far as is seen, shape (queries,).

        The summed coefficients left out, or the largest difference at the points of comparison where it is larger.

        Args:
            own: Coefficients of what replaces them, shape (queries, t_1, ..., t_d).
        """
        left = self.coefficients.copy()
        left[tuple(slice(0, size) for size in own.shape)] -= own
        summed = np.abs(left).reshape(len(left), -1).sum(axis=1)
        found: Array = np.maximum(summed, np.abs(self.checks - self._values(own)).max(axis=1))
        return found

    def _values(self, own: Array) -> Array:
        sizes = own.shape[1:]
        if self.axes is None:
            rows = [polynomials(u, size) for u, size in zip(self.points.T, sizes, strict=True)]
            sums = contraction(sizes)
            return np.stack([sums.contract(np.ascontiguousarray(each.reshape(-1)), rows) for each in own])
        for j, (u, size) in enumerate(zip(self.axes, sizes, strict=True)):
            own = np.moveaxis(np.tensordot(own, polynomials(u, size), axes=(j + 1, 1)), -1, j + 1)
        return own.reshape(len(own), -1)


def check_grid(count: Sequence[int]) -> None:
    """Refuse a grid of too many values.

    Raises:
        InvalidParameterError: It has more than `MOST_GRID`.
    """
    if math.prod(count) > MOST_GRID:
        raise InvalidParameterError(
            f"a function in {len(count)} coordinates would be asked for {math.prod(count)} values: ask a product, "
            "such as sordino.smooth.Separable, or give fewer samples"
        )


def asked_at(f: Callable[[Array], Any], cube: Cube, u: Array) -> Array:
    """Return the values of a function at points of the cube, shape (queries, k).

    Raises:
        InvalidParameterError: It does not answer.
    """
    values = values_of(f, cube.data(u), (len(u),))
    return np.ascontiguousarray((values[:, None] if values.ndim == 1 else values).T)


def _scattered(dimension: int) -> Array:
    """Return points all over the cube, the same every time, and corners of it, shape (k, d)."""
    inside = np.random.default_rng(0).uniform(-1.0, 1.0, (_SCATTERED, dimension))
    corners = np.arange(min(2**dimension, _MOST_CORNERS))[:, None] >> np.arange(dimension) & 1
    return np.concatenate([inside, 2.0 * corners - 1.0])


def contraction(sizes: tuple[int, ...]) -> _core.PointFeatures:
    """Return a tensor set of these sizes, for sums of products."""
    return _core.PointFeatures.chebyshev([(-1.0, 1.0)] * len(sizes), list(sizes), 1)
