"""From a query to the numbers by which estimated sums are multiplied: public, after the release."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sordino import _core
from sordino.errors import InvalidParameterError, UnsupportedMechanismError
from sordino.smooth.chebyshev import coefficients, damping, nodes, transform
from sordino.smooth.cube import middles
from sordino.smooth.fitting import SmoothFitted
from sordino.smooth.kernel_axes import KernelAxis
from sordino.smooth.queries import KernelQueries, SeparableQueries, values_of
from sordino.smooth.workload import SmoothQueries
from sordino.workloads.base import Array

__all__ = ["MOST_GRID", "Coefficients", "contraction", "grid_points", "outer_products", "reader_of"]

MOST_GRID = 2**24
"""Values of a function that are asked for at most."""

# Queries whose full coefficients are in memory at once, in numbers.
_BLOCK = 2**22
# Gauss-Legendre points of a cell on every axis.
_CELL_NODES = 4


@dataclass(frozen=True)
class Coefficients:
    """Coefficients of some queries.

    Attributes:
        axes: Products over the axes: one array of shape (queries, size) each; None if they are no products.
        full: Otherwise all of them, shape (queries, features).
        truncation: Bound of what the queries lose, shape (queries,).
    """

    axes: list[Array] | None
    full: Array | None
    truncation: Array


class _Reader:
    """Coefficients of queries for one way of summing."""

    def __init__(self, workload: SmoothQueries, fitted: SmoothFitted, noise_level: float) -> None:
        self.workload = workload
        self.cube = workload.cube
        self.fitted = fitted
        self.noise_level = noise_level

    def products(self, queries: SeparableQueries) -> Iterator[Coefficients]:
        """Yield coefficients of the products of separable queries, block by block."""
        raise NotImplementedError

    def function(self, f: Callable[[Array], Any], samples: int | None) -> Coefficients:
        """Return coefficients of a function, or of several at once."""
        raise NotImplementedError

    def _transformed(self, queries: SeparableQueries, axis: int, degree: int) -> Array:
        """Return Chebyshev coefficients of the factors of one axis, well beyond `degree`, shape (products, samples)."""
        samples = max(2 * degree, 32)
        found: Array = queries.axis_values(self.cube, axis, nodes(samples)) @ transform(samples, samples).T
        return found

    def _coefficients(self, f: Callable[[Array], Any], degrees: Sequence[int], samples: int | None) -> Array:
        """Return Chebyshev coefficients of a function, beyond the degrees where that many values can be asked for."""
        count = [max(2 * t, 8) if samples is None else max(samples, t) for t in degrees]
        if samples is None and math.prod(count) > MOST_GRID:
            count = [max(t, 2) for t in degrees]
        return coefficients(self._grid(f, [nodes(c) for c in count]), count, axis=1)

    def _grid(self, f: Callable[[Array], Any], axes: list[Array]) -> Array:
        """Return the values of a function on a tensor grid, shape (queries, grid)."""
        shape = tuple(len(axis) for axis in axes)
        if math.prod(shape) > MOST_GRID:
            raise InvalidParameterError(
                f"a function in {len(shape)} coordinates would be asked for {math.prod(shape)} values: ask a product, "
                "such as sordino.Separable, or give fewer samples"
            )
        points = grid_points([self.cube.middle[j] + u * self.cube.half[j] for j, u in enumerate(axes)])
        values = values_of(f, points, (len(points),))
        values = values[:, None] if values.ndim == 1 else values
        return np.ascontiguousarray(values.T).reshape(-1, *shape)


def outer_products(axes: list[Array]) -> Array:
    """Return the products of one factor of each axis, shape (queries, size, size, ...)."""
    block = axes[0]
    for axis in axes[1:]:
        block = block[..., None] * axis.reshape(-1, *[1] * (block.ndim - 1), axis.shape[1])
    return block


def _spread(changes: list[Array], sizes: list[Array]) -> Array:
    """Return `sum_j changes_j prod_{i != j} sizes_i`: a bound of how far products are apart whose factors are."""
    total = np.zeros(len(changes[0]))
    for j, change in enumerate(changes):
        total += change * math.prod((size for i, size in enumerate(sizes) if i != j), start=np.ones(1))
    return total


def grid_points(axes: list[Array]) -> Array:
    """Return all points of a tensor grid, shape (count, d), the last coordinate moving fastest."""
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


class _Chebyshev(_Reader):
    """Sums of Chebyshev polynomials."""

    def products(self, queries: SeparableQueries) -> Iterator[Coefficients]:
        axes, all_sums, kept_sums, lost = [], [], [], []
        for j, degree in enumerate(self.fitted.sizes):
            found = self._transformed(queries, j, degree)
            own = found[:, :degree] * damping(self.workload.approximation, degree)
            axes.append(np.ascontiguousarray(own))
            all_sums.append(np.abs(found).sum(axis=1))
            kept_sums.append(np.abs(own))
            lost.append(np.abs(found[:, :degree] - own).sum(axis=1) + np.abs(found[:, degree:]).sum(axis=1))
        if self.fitted.indices is None:
            truncation = _spread(lost, all_sums)
        else:
            ones = np.ones(self.fitted.features.features)
            kept = self.fitted.features.contract(ones, [np.ascontiguousarray(axis) for axis in kept_sums])
            truncation = np.maximum(math.prod(all_sums, start=np.ones(1)) - kept, 0.0)
        yield Coefficients(axes, None, truncation)

    def function(self, f: Callable[[Array], Any], samples: int | None) -> Coefficients:
        sizes = self.fitted.sizes
        found = self._coefficients(f, sizes, samples)
        kept = found[(slice(None), *(slice(0, t) for t in sizes))]
        for j, degree in enumerate(sizes):
            shape = [1] * kept.ndim
            shape[j + 1] = degree
            kept = kept * damping(self.workload.approximation, degree).reshape(shape)
        left = found.copy()
        indices = self.fitted.indices
        if indices is None:
            left[(slice(None), *(slice(0, t) for t in sizes))] -= kept
            full = kept.reshape(len(kept), -1)
        else:
            places = (slice(None), *indices.T)
            full = kept[places]
            left[places] -= full
        truncation = np.abs(left).reshape(len(left), -1).sum(axis=1)
        return Coefficients(None, np.ascontiguousarray(full), truncation)


class _Kernel(_Reader):
    """Features of a product kernel."""

    def products(self, queries: SeparableQueries) -> Iterator[Coefficients]:
        if isinstance(queries, KernelQueries) and queries.kernels == self.workload.query_class:
            u = queries.standard(self.cube)
            if np.abs(u).max() <= 1.0:
                axes = [np.ascontiguousarray(axis.features(u[:, j])) for j, axis in enumerate(self.fitted.axes)]
                error = math.prod(1.0 + axis.error for axis in self.fitted.axes) - 1.0
                yield Coefficients(axes, None, np.full(len(u), error))
                return
        # Each query is fitted by features whose noise it is worth: no product any more.
        made, lost, sizes = [], [], []
        for j, axis in enumerate(self.fitted.axes):
            found = self._transformed(queries, j, axis.degree)
            sizes.append(np.abs(found).sum(axis=1))
            lost.append(np.abs(found[:, axis.degree :]).sum(axis=1))
            made.append(found[:, : axis.degree])
        beyond = _spread(lost, sizes)
        step = max(_BLOCK // max(math.prod(axis.degree for axis in self.fitted.axes), 1), 1)
        for first in range(0, len(made[0]), step):
            block = outer_products([own[first : first + step] for own in made])
            yield self._fitted(block, beyond[first : first + step])

    def function(self, f: Callable[[Array], Any], samples: int | None) -> Coefficients:
        degrees = [axis.degree for axis in self.fitted.axes]
        found = self._coefficients(f, degrees, samples)
        inner = (slice(None), *(slice(0, t) for t in degrees))
        kept = found[inner].copy()
        found[inner] = 0.0
        return self._fitted(kept, np.abs(found).reshape(len(found), -1).sum(axis=1))

    def _fitted(self, wanted: Array, beyond: Array) -> Coefficients:
        """Return feature coefficients h that minimise `|Gamma' h - c|^2 + noise^2 |h|^2`, shape (queries, features)."""
        projected, values = wanted, np.ones(())
        for j, axis in enumerate(self.fitted.axes):
            vectors = _vectors(axis)
            projected = np.moveaxis(np.tensordot(projected, vectors, axes=(j + 1, 1)), -1, j + 1)
            values = np.multiply.outer(values, axis.eigenvalues)
        found = projected * (np.sqrt(values) / (values + self.noise_level**2))
        back = found * np.sqrt(values)
        for j, axis in enumerate(self.fitted.axes):
            back = np.moveaxis(np.tensordot(back, _vectors(axis), axes=(j + 1, 0)), -1, j + 1)
        left = np.abs(wanted - back).reshape(len(wanted), -1).sum(axis=1)
        return Coefficients(None, np.ascontiguousarray(found.reshape(len(found), -1)), beyond + left)


def _vectors(axis: KernelAxis) -> Array:
    """Return orthonormal rows, shape (features, degree)."""
    rows: Array = axis.mixing / np.sqrt(axis.eigenvalues)[:, None]
    return rows


class _Histogram(_Reader):
    """Counts of cells: a query is replaced by its averages over them."""

    def _nodes(self, cells: int) -> tuple[Array, Array]:
        """Return coordinates in all cells of an axis, and their weights within a cell."""
        places, weights = np.polynomial.legendre.leggauss(_CELL_NODES)
        return (middles(cells)[:, None] + places[None, :] / cells).reshape(-1), weights / 2.0

    def products(self, queries: SeparableQueries) -> Iterator[Coefficients]:
        axes, ranges, largest = [], [], []
        for j, cells in enumerate(self.fitted.sizes):
            u, weights = self._nodes(cells)
            values = queries.axis_values(self.cube, j, u).reshape(-1, cells, _CELL_NODES)
            mean = values @ weights
            axes.append(np.ascontiguousarray(mean))
            ranges.append(np.abs(values - mean[..., None]).max(axis=(1, 2)))
            largest.append(np.abs(values).max(axis=(1, 2)))
        truncation = _spread(ranges, largest)
        yield Coefficients(axes, None, truncation)

    def function(self, f: Callable[[Array], Any], samples: int | None) -> Coefficients:
        cells = self.fitted.sizes
        values = self._grid(f, [self._nodes(count)[0] for count in cells])
        split = values.reshape(len(values), *(size for count in cells for size in (count, _CELL_NODES)))
        weights = self._nodes(1)[1]
        mean = split
        for j in reversed(range(len(cells))):
            mean = np.tensordot(mean, weights, axes=(2 * j + 2, 0))
        apart = split - mean.reshape(len(values), *(size for count in cells for size in (count, 1)))
        return Coefficients(None, mean.reshape(len(mean), -1), np.abs(apart).reshape(len(mean), -1).max(axis=1))


class _Declared(_Reader):
    """Whitened declared queries."""

    def products(self, queries: SeparableQueries) -> Iterator[Coefficients]:
        raise UnsupportedMechanismError("only the declared queries were measured: release.declared() answers them")

    def function(self, f: Callable[[Array], Any], samples: int | None) -> Coefficients:
        raise UnsupportedMechanismError("only the declared queries were measured: release.declared() answers them")


def reader_of(workload: SmoothQueries, fitted: SmoothFitted, noise_level: float) -> _Reader:
    """Return what reads queries for a fitted mechanism.

    Args:
        workload: What was planned.
        fitted: How.
        noise_level: Standard deviation of the noise in an average with coefficient 1, for what the fit is worth.
    """
    kinds = {"kernel": _Kernel, "histogram": _Histogram}
    kind = kinds.get(fitted.mechanism.strategy, _Chebyshev)
    return (_Declared if workload.declared is not None else kind)(workload, fitted, noise_level)


def contraction(sizes: tuple[int, ...]) -> _core.PointFeatures:
    """Return a tensor set of these sizes, for sums of products."""
    return _core.PointFeatures.chebyshev([(-1.0, 1.0)] * len(sizes), list(sizes), 1)
