"""Probability measures on a grid: what a noisy summary is projected onto."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from sordino import _core
from sordino._support.checks import integer
from sordino.errors import InvalidParameterError, UnsupportedMechanismError
from sordino.workloads.base import Array
from sordino.workloads.smooth.chebyshev import polynomials
from sordino.workloads.smooth.cube import Cube, grid_points, middles
from sordino.workloads.smooth.queries import ProductQueries, Query, values_of

if TYPE_CHECKING:
    from sordino.mechanisms.linear.search import Progress
    from sordino.mechanisms.smooth.fit import SmoothFit

__all__ = ["GridMeasure", "project_summary"]

_USUAL = 10_000
_MOST = 2**18
_MOST_HULL = 2**22
_ITERATIONS = 5_000
# Queries whose values on the grid are in memory at once, in numbers.
_BLOCK = 2**22


@dataclass(frozen=True, eq=False)
class GridMeasure:
    """A probability measure on the middles of equal cells.

    Attributes:
        sizes: Cells on every axis.
        weights: Probabilities, shape `sizes`.
        gap: How far the projection is from the nearest measure, at most, in the squared metric of the noise.
        iterations: Steps it took.
    """

    sizes: tuple[int, ...]
    weights: Array = field(repr=False)
    gap: float
    iterations: int

    @property
    def nodes(self) -> list[Array]:
        """Middles of the cells on every axis, in units of the cube."""
        return [middles(size) for size in self.sizes]

    def query(self, query: Query, cube: Cube) -> Array:
        """Return the averages of queries under the measure, shape (queries,)."""
        flat = self.weights.reshape(-1)
        if not isinstance(query, ProductQueries):
            points = cube.data(grid_points(self.nodes))
            found = values_of(query, points, (len(points),))
            return np.atleast_1d(found.T @ flat)
        axes = [query.axis_values(cube, j, u) for j, u in enumerate(self.nodes)]
        step = max(_BLOCK // flat.size, 1) * 16
        parts = []
        for first in range(0, len(axes[0]), step):
            left = np.tensordot(axes[0][first : first + step], self.weights, axes=(1, 0))
            for axis in axes[1:]:
                left = np.einsum("qi,qi...->q...", axis[first : first + step], left)
            parts.append(left)
        sums: Array = (query.weights * np.concatenate(parts).reshape(query.weights.shape)).sum(axis=1)
        return sums

    def sample(self, count: int, generator: np.random.Generator, cube: Cube) -> Array:
        """Draw points, uniform within cells, in data units."""
        cells = generator.choice(self.weights.size, size=count, p=self.weights.reshape(-1))
        places = np.unravel_index(cells, self.sizes)
        u = np.stack([middles(size)[place] for size, place in zip(self.sizes, places, strict=True)], axis=1)
        jitter = generator.uniform(-1.0, 1.0, size=u.shape) / np.array(self.sizes)
        return cube.data(np.clip(u + jitter, -1.0, 1.0))


def project_summary(
    fitted: SmoothFit, averages: Array, variances: Array, grid: int | None, progress: Progress | None
) -> GridMeasure:
    """Return the measure on a grid whose feature averages are nearest to the released ones, with their variances.

    `min sum_m ((F w)_m - S_m/n)^2/var_m` over `w >= 0, sum w = 1`.

    Raises:
        UnsupportedMechanismError: Only declared queries were measured.
        InvalidParameterError: The grid is too large.
    """
    if fitted.workload.declared is not None:
        raise UnsupportedMechanismError("declared queries do not describe a measure")
    dimension = fitted.workload.dimension
    factors: list[Array]
    if fitted.mechanism.strategy == "histogram":
        if grid is not None and (grid,) * dimension != fitted.sizes:
            raise InvalidParameterError(f"a histogram is projected on its own cells: {fitted.sizes}")
        sizes = fitted.sizes
        factors = [np.eye(size) for size in sizes]
    else:
        side = (
            min(max(int(_USUAL ** (1.0 / dimension) + 1e-9), 2), 65) if grid is None else integer("grid", grid, least=1)
        )
        sizes = (side,) * dimension
        if math.prod(sizes) > _MOST:
            raise InvalidParameterError(f"a grid of {math.prod(sizes)} points is too large: at most 2**18")
        u = [middles(size) for size in sizes]
        if fitted.mechanism.strategy == "kernel":
            factors = [axis.features(u[j]).T for j, axis in enumerate(fitted.axes)]
        else:
            degrees = [int(m) + 1 for m in fitted.indices.max(axis=0)] if fitted.indices is not None else fitted.sizes
            factors = [polynomials(u[j], degree).T for j, degree in enumerate(degrees)]
    hull = tuple(len(factor) for factor in factors)
    if math.prod(hull) > _MOST_HULL:
        raise InvalidParameterError("the summary has too many features to be projected")
    target, weights = np.zeros(hull), np.zeros(hull)
    places = (slice(None),) * dimension if fitted.indices is None else tuple(fitted.indices.T)
    shape = hull if fitted.indices is None else (len(averages),)
    # The constant is that of every probability measure.
    known = variances > 0.0
    deviation = np.sqrt(np.where(known, variances, 1.0))
    target[places] = averages.reshape(shape)
    weights[places] = np.where(known, deviation[known].min() / deviation, 0.0).reshape(shape)
    found, gap, iterations = _core.project_measure(
        [np.ascontiguousarray(factor) for factor in factors],
        np.ascontiguousarray(target.reshape(-1)),
        np.ascontiguousarray(weights.reshape(-1)),
        _ITERATIONS,
        progress,
    )
    return GridMeasure(sizes, found.reshape(sizes), gap, iterations)
