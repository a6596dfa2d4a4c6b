"""From a query to the numbers by which estimated sums are multiplied: public, after the release."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sordino.errors import UnsupportedMechanismError
from sordino.mechanisms.smooth.fit import SmoothFit
from sordino.mechanisms.smooth.kernel_axes import KernelAxis
from sordino.mechanisms.smooth.residuals import (
    BLOCK,
    Factors,
    SampledFunction,
    asked_at,
    check_grid,
    products_apart,
)
from sordino.workloads.base import Array
from sordino.workloads.smooth.base import SmoothQueries
from sordino.workloads.smooth.chebyshev import damping
from sordino.workloads.smooth.cube import grid_points, middles
from sordino.workloads.smooth.queries import KernelQueries, SeparableQueries

__all__ = ["Coefficients", "outer_products", "reader_of"]

# Gauss-Legendre points of a cell on every axis, and their weights.
_CELL_NODES = 4
_CELL_WEIGHTS = np.polynomial.legendre.leggauss(_CELL_NODES)[1] / 2.0


@dataclass(frozen=True)
class Coefficients:
    """Coefficients of some queries.

    Attributes:
        axes: Products over the axes: one array of shape (queries, size) each; None if they are no products.
        full: Otherwise all of them, shape (queries, features).
        truncation: What the queries lose, as `SmoothAnswers` has it, shape (queries,).
    """

    axes: list[Array] | None
    full: Array | None
    truncation: Array


class _Reader:
    """Coefficients of queries for one way of summing."""

    def __init__(self, workload: SmoothQueries, fitted: SmoothFit, noise_level: float) -> None:
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

    def _blocks(self, queries: SeparableQueries, points: int) -> Iterator[slice]:
        """Yield products that are asked at so many points an axis at once."""
        step = max(BLOCK // points, 1)
        for first in range(0, queries.weights.size, step):
            yield slice(first, first + step)

    def _factors(self, queries: SeparableQueries, degrees: Sequence[int]) -> Iterator[list[Factors]]:
        """Yield Chebyshev sums of the factors of every axis, block by block."""
        most = max(Factors.points(queries, self.cube, j, degree) for j, degree in enumerate(degrees))
        for rows in self._blocks(queries, most):
            yield [Factors.sampled(queries, self.cube, j, degree, rows) for j, degree in enumerate(degrees)]

    def _apart(self, factors: list[Factors], own: list[Array], kept: list[Array]) -> Array:
        """Return how far products of factors are from those of Chebyshev sums, shape (products,).

        Args:
            factors: On each axis.
            own: Coefficients of what replaces them, shape (products, degree) each.
            kept: Their sums, shape (products,) each.
        """
        lost = [factor.lost(axis, self._floor) for factor, axis in zip(factors, own, strict=True)]
        return products_apart(lost, [factor.largest for factor in factors], kept)

    @property
    def _floor(self) -> float:
        """What need not be known sharply of a truncation."""
        return self.noise_level / 100.0


def outer_products(axes: list[Array]) -> Array:
    """Return the products of one factor of each axis, shape (queries, size, size, ...)."""
    block = axes[0]
    for axis in axes[1:]:
        block = block[..., None] * axis.reshape(-1, *[1] * (block.ndim - 1), axis.shape[1])
    return block


class _Chebyshev(_Reader):
    """Sums of Chebyshev polynomials."""

    def products(self, queries: SeparableQueries) -> Iterator[Coefficients]:
        degrees = self.fitted.sizes
        for factors in self._factors(queries, degrees):
            axes = [
                np.ascontiguousarray(own.coefficients[:, :degree] * damping(self.workload.approximation, degree))
                for own, degree in zip(factors, degrees, strict=True)
            ]
            kept = [np.abs(axis).sum(axis=1) for axis in axes]
            truncation = self._apart(factors, axes, kept)
            if self.fitted.indices is not None:
                # Products of polynomials that are on no list are left out besides.
                listed = self.fitted.features.contract(
                    np.ones(self.fitted.features.features), [np.abs(axis) for axis in axes]
                )
                truncation += np.maximum(math.prod(kept, start=np.ones(1)) - listed, 0.0)
            yield Coefficients(axes, None, truncation)

    def function(self, f: Callable[[Array], Any], samples: int | None) -> Coefficients:
        sizes, indices = self.fitted.sizes, self.fitted.indices
        sampled = SampledFunction.asked(f, self.cube, sizes, samples)
        kept = sampled.coefficients[(slice(None), *(slice(0, t) for t in sizes))]
        for j, degree in enumerate(sizes):
            shape = [1] * kept.ndim
            shape[j + 1] = degree
            kept = kept * damping(self.workload.approximation, degree).reshape(shape)
        if indices is None:
            return Coefficients(None, np.ascontiguousarray(kept.reshape(len(kept), -1)), sampled.lost(kept))
        places = (slice(None), *indices.T)
        listed = np.zeros_like(kept)
        listed[places] = kept[places]
        return Coefficients(None, np.ascontiguousarray(kept[places]), sampled.lost(listed))


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
        degrees = [axis.degree for axis in self.fitted.axes]
        step = max(BLOCK // math.prod(degrees), 1)
        for factors in self._factors(queries, degrees):
            made = [own.coefficients[:, :degree] for own, degree in zip(factors, degrees, strict=True)]
            beyond = self._apart(factors, made, [np.abs(own).sum(axis=1) for own in made])
            for first in range(0, len(beyond), step):
                wanted = outer_products([own[first : first + step] for own in made])
                found, back = self._fitted(wanted)
                left = np.abs(wanted - back).reshape(len(wanted), -1).sum(axis=1)
                yield Coefficients(None, found, beyond[first : first + step] + left)

    def function(self, f: Callable[[Array], Any], samples: int | None) -> Coefficients:
        degrees = [axis.degree for axis in self.fitted.axes]
        sampled = SampledFunction.asked(f, self.cube, degrees, samples)
        found, back = self._fitted(sampled.coefficients[(slice(None), *(slice(0, t) for t in degrees))])
        return Coefficients(None, found, sampled.lost(back))

    def _fitted(self, wanted: Array) -> tuple[Array, Array]:
        """Return feature coefficients h that minimise `|Gamma' h - c|^2 + noise^2 |h|^2`, and `Gamma' h`.

        Shapes (queries, features) and that of `wanted`.
        """
        projected, values = wanted, np.ones(())
        for j, axis in enumerate(self.fitted.axes):
            vectors = _vectors(axis)
            projected = np.moveaxis(np.tensordot(projected, vectors, axes=(j + 1, 1)), -1, j + 1)
            values = np.multiply.outer(values, axis.eigenvalues)
        found = projected * (np.sqrt(values) / (values + self.noise_level**2))
        back = found * np.sqrt(values)
        for j, axis in enumerate(self.fitted.axes):
            back = np.moveaxis(np.tensordot(back, _vectors(axis), axes=(j + 1, 0)), -1, j + 1)
        return np.ascontiguousarray(found.reshape(len(found), -1)), back


def _vectors(axis: KernelAxis) -> Array:
    """Return orthonormal rows, shape (features, degree)."""
    rows: Array = axis.mixing / np.sqrt(axis.eigenvalues)[:, None]
    return rows


class _Histogram(_Reader):
    """Counts of cells: a query is replaced by its averages over them."""

    def _nodes(self, cells: int) -> Array:
        """Return coordinates in all cells of an axis, both edges last, shape (cells, points)."""
        places = np.append(np.polynomial.legendre.leggauss(_CELL_NODES)[0], [-1.0, 1.0])
        return middles(cells)[:, None] + places / cells

    def products(self, queries: SeparableQueries) -> Iterator[Coefficients]:
        # The edges of cells belong to both: a factor that is monotone within one is most apart there.
        nodes = [self._nodes(cells) for cells in self.fitted.sizes]
        for rows in self._blocks(queries, max(u.size for u in nodes)):
            axes, lost, largest = [], [], []
            for j, u in enumerate(nodes):
                values = queries.axis_values(self.cube, j, u.reshape(-1), rows).reshape(-1, *u.shape)
                mean = values[..., :_CELL_NODES] @ _CELL_WEIGHTS
                apart = np.abs(values - mean[..., None]).max(axis=(1, 2))
                most = np.abs(values).max(axis=(1, 2))
                shape = queries.shape(self.cube, j)
                if shape is not None:
                    peaks = shape.peaks[rows]
                    cell = np.clip(((peaks + 1.0) / 2.0 * len(u)).astype(np.intp), 0, len(u) - 1)
                    peak = queries.axis_values(self.cube, j, peaks, rows)
                    apart = np.maximum(apart, np.abs(peak - np.take_along_axis(mean, cell, axis=1))[:, 0])
                    most = np.maximum(most, np.abs(peak)[:, 0])
                axes.append(np.ascontiguousarray(mean))
                lost.append(apart)
                largest.append(most)
            replaced = [np.abs(axis).max(axis=1) for axis in axes]
            yield Coefficients(axes, None, products_apart(lost, largest, replaced))

    def function(self, f: Callable[[Array], Any], samples: int | None) -> Coefficients:
        cells = self.fitted.sizes
        nodes = [self._nodes(count).reshape(-1) for count in cells]
        check_grid([len(u) for u in nodes])
        values = asked_at(f, self.cube, grid_points(nodes))
        split = values.reshape(len(values), *(size for count in cells for size in (count, _CELL_NODES + 2)))
        mean = split
        for j in reversed(range(len(cells))):
            mean = np.tensordot(
                mean[(slice(None),) * (2 * j + 2) + (slice(0, _CELL_NODES),)], _CELL_WEIGHTS, axes=(2 * j + 2, 0)
            )
        apart = split - mean.reshape(len(values), *(size for count in cells for size in (count, 1)))
        return Coefficients(None, mean.reshape(len(mean), -1), np.abs(apart).reshape(len(mean), -1).max(axis=1))


class _Declared(_Reader):
    """Whitened declared queries."""

    def products(self, queries: SeparableQueries) -> Iterator[Coefficients]:
        raise UnsupportedMechanismError("only the declared queries were measured: release.declared() answers them")

    def function(self, f: Callable[[Array], Any], samples: int | None) -> Coefficients:
        raise UnsupportedMechanismError("only the declared queries were measured: release.declared() answers them")


def reader_of(workload: SmoothQueries, fitted: SmoothFit, noise_level: float) -> _Reader:
    """Return what reads queries for a fitted mechanism.

    Args:
        workload: What was planned.
        fitted: How.
        noise_level: Standard deviation of the noise in an average with coefficient 1, for what the fit is worth.
    """
    kinds = {"kernel": _Kernel, "histogram": _Histogram}
    kind = kinds.get(fitted.mechanism.strategy, _Chebyshev)
    return (_Declared if workload.declared is not None else kind)(workload, fitted, noise_level)
