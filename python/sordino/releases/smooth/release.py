"""A released summary: answers to any smooth query, as many as wanted, for free."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sordino import _core
from sordino._support.cards import card
from sordino._support.checks import flag, integer, open_unit, path_of, public_array, real, sequence
from sordino._support.extras import drawn
from sordino.accuracy.half_widths import factor_of_variance, gaussian_half_width
from sordino.errors import DataTypeError, InvalidParameterError, ShapeError, UnsupportedMechanismError
from sordino.mechanisms.smooth.residuals import contraction
from sordino.releases.smooth.file import SUMMARY
from sordino.releases.smooth.grid_measure import GridMeasure, project_summary
from sordino.releases.smooth.readers import Coefficients, outer_products, reader_of
from sordino.workloads.base import Array
from sordino.workloads.smooth.cube import Cube
from sordino.workloads.smooth.queries import KernelQueries, MarginalKernels, ProductQueries, Query, SeparableQueries
from sordino.workloads.smooth.query_classes import GaussianKernels, KernelClass

if TYPE_CHECKING:
    from typing import Any

    from sordino.mechanisms.linear.search import Progress
    from sordino.mechanisms.smooth.fit import SmoothFit
    from sordino.mechanisms.smooth.known_total import KnownTotal

__all__ = ["SmoothAnswers", "SmoothRelease"]

# Coefficients of sums of products that are in memory at once.
_BLOCK = 2**22


@dataclass(frozen=True)
class SmoothAnswers:
    """Answers to queries, averages over the points.

    Attributes:
        values: The answers; a single number for a single query.
        stderr: Standard deviation of the noise in each.
        truncation: How far each query is from what the summary answers in its place, anywhere in the bounds: a bound
            for `KernelQueries`, `MarginalKernels`, `Boxes` and `MomentQueries`, up to rounding; for kernels of the very
            class of a kernel mechanism the largest difference found on a grid. For functions and `Separable` no bound:
            the largest difference found at points that coefficients do not come from, or the summed coefficients left
            out where they are larger.
        law: Law of the noise.
        unprojected: The answers before the release was projected, if it was: intervals are about them.
    """

    values: Array
    stderr: Array
    truncation: Array
    law: str
    unprojected: Array | None = None

    def interval(self, level: float, *, simultaneous: bool = False) -> tuple[Array, Array]:
        """Return ends of intervals that contain the true averages: noise at this level, and the truncation on top.

        Exact for Gaussian noise and a public number of points; a bound for Laplace noise; to first order in the noise
        where the number of points is private. As sure as the truncation is: a function that is narrow between the
        points at which it was asked may be anywhere. Of a projected release around the answers before the projection,
        whose own error is not known.

        Args:
            level: Strictly between 0 and 1.
            simultaneous: Whether all shall hold together with this probability.

        Raises:
            InvalidParameterError: The level is out of range.
        """
        open_unit("level", level)
        answers = max(self.values.size, 1) if flag("simultaneous", simultaneous) else 1
        if self.law == "gaussian":
            width = gaussian_half_width(np.atleast_1d(self.stderr), level, answers).reshape(self.values.shape)
        else:
            width = self.stderr * factor_of_variance(level, answers)
        middle = self.values if self.unprojected is None else self.unprojected
        return middle - width - self.truncation, middle + width + self.truncation

    def clipped(self, low: float = 0.0, high: float = 1.0) -> SmoothAnswers:
        """Return the answers moved into the range that the queries have.

        Raises:
            DataTypeError: An end is no number.
        """
        return replace(self, values=np.clip(self.values, real("low", low), real("high", high)))

    def __float__(self) -> float:
        return float(self.values)


@dataclass(frozen=True, eq=False)
class SmoothRelease:
    """A published summary. Queries of it cost no privacy.

    Attributes:
        fit: How it was made.
        measured: What was published, noisy integers.
        private: False only under `sordino.testing.deterministic_noise`.
        accounted: Whether a ledger was charged.
        post_processing: What was done to the summary, in order.
        grid_measure: The probability measure it was projected onto, if it was.
        names: What the coordinates are called, if they have names: public.
    """

    fit: SmoothFit
    measured: _core.Measured = field(repr=False)
    private: bool = True
    accounted: bool = False
    post_processing: tuple[str, ...] = ()
    grid_measure: GridMeasure | None = field(default=None, repr=False)
    names: tuple[str, ...] | None = None

    @cached_property
    def _decoded(self) -> Array:
        return self.fit.strategy.decode(self.measured.values())

    @cached_property
    def sums(self) -> Array:
        """Estimated sums of the features over the points, shape (features,)."""
        sums = self._decoded[: self.fit.features.features].copy()
        if self._constant:
            # The constant feature of a public number of points.
            sums[0] = self.fit.workload.points
        sums.flags.writeable = False
        return sums

    @cached_property
    def variances(self) -> Array:
        """Variances of the noise in `sums`."""
        variances = self.fit.stderr[: self.fit.features.features] ** 2
        if self._constant:
            variances[0] = 0.0
        variances.flags.writeable = False
        return variances

    @property
    def _polynomial(self) -> bool:
        return self.fit.mechanism.strategy in {"chebyshev", "weighted", "moments"}

    @property
    def _constant(self) -> bool:
        return self.fit.count_is_public and self._polynomial

    @property
    def points(self) -> float:
        """Number of points: public, or estimated, at least 1."""
        if self.fit.count_is_public:
            return float(self.fit.workload.points)
        if self._polynomial:
            return max(float(self.sums[0]), 1.0)
        if self.fit.mechanism.strategy == "histogram":
            return max(float(self.sums.sum()), 1.0)
        return max(float(self._decoded[-1]), 1.0)

    @property
    def stderr_of_points(self) -> float:
        """Standard deviation of the noise in the number of points; 0 if it is public."""
        if self.fit.count_is_public:
            return 0.0
        if self._polynomial:
            return float(self.fit.stderr[0])
        if self.fit.mechanism.strategy == "histogram":
            return float(np.sqrt(self.variances.sum()))
        return float(self.fit.stderr[-1])

    def query(self, query: Query, *, samples: int | None = None) -> SmoothAnswers:
        """Answer a query, or a batch of queries: free, as often as wanted.

        Args:
            query: `GaussianKernels(...).at(centres)`, `Separable`, `MomentQueries`, `Boxes`; or any function from
                points, an array of shape (k, d) in data units, to values of shape (k,), or (k, q) for q queries. A
                function is asked once, for all points of two grids inside the bounds: coefficients come from the
                first, and the second shows what is lost.
            samples: Points an axis of the first grid; twice the number of polynomials if None.

        Returns:
            The averages of the queries over the points, with the noise and the truncation of each.

        Raises:
            InvalidParameterError: The function raised an error, or returned another shape or numbers that are not
                finite; or the query has another number of coordinates.
            UnsupportedMechanismError: Only declared queries were measured.
            DataTypeError: No query.
        """
        if self.grid_measure is not None:
            return self._of_measure(query)
        reader = reader_of(self.fit.workload, self.fit, self._noise_level)
        if isinstance(query, ProductQueries):
            query.check(self.fit.workload.cube)
            return self._products(query, reader.products(query))
        if not callable(query):
            raise DataTypeError("a query is a function, or one of sordino's, such as GaussianKernels(1.0).at(y)")
        if samples is not None:
            samples = integer("samples", samples, least=1)
        dimensions = []

        def asked(points: Array) -> Any:
            values = query(points)
            dimensions.append(np.ndim(values))
            return values

        found = reader.function(asked, samples)
        assert found.full is not None
        values, variances, lost = self._of_full(found.full)
        single = dimensions == [1]
        return self._answers(values, variances, self._shared(found.full), found.truncation + lost, single=single)

    def _products(self, query: SeparableQueries, blocks: Iterator[Coefficients]) -> SmoothAnswers:
        """Answer queries that are sums of products: one weighted sum each, its noise from the summed coefficients."""
        weights = query.weights
        each = weights.shape[1]
        if each > 1:
            return self._sums_of_products(weights, blocks)
        scale = weights[:, 0]
        parts = []
        for found in blocks:
            if found.axes is None:
                assert found.full is not None
                values, variances, lost = self._of_full(found.full)
                parts.append((values, variances, self._shared(found.full), found.truncation + lost))
                continue
            features = self.fit.features
            if self.fit.mechanism.strategy == "histogram":
                features = self._cells
                shared = features.contract(self.variances, found.axes) / float(self.variances.sum())
            elif self._polynomial:
                shared = math.prod((axis[:, 0] for axis in found.axes), start=np.ones(1))
            else:
                shared = np.zeros(len(found.axes[0]))
            values = features.contract(self._corrected, found.axes)
            along = None if self._known is None else self._known.along_axes(found.axes)
            variances = self._less(self._of_squares(features, found.axes), along)
            parts.append((values, variances, shared, found.truncation + self._lost(along)))
        values, variances, shared, truncation = (np.concatenate(column) for column in zip(*parts, strict=True))
        lost = np.abs(scale) * truncation
        return self._answers(scale * values, scale**2 * variances, scale * shared, lost, single=False)

    def _of_squares(self, features: _core.PointFeatures, axes: list[Array]) -> Array:
        """Return the variances of products of coefficients: in closed form where all sums have the same noise."""
        squares = [np.ascontiguousarray(axis**2) for axis in axes]
        if self._level is None:
            return features.contract(self.variances, squares)
        total: Array = math.prod((square.sum(axis=1) for square in squares), start=np.ones(1))
        if self._constant:
            total = np.maximum(total - math.prod((square[:, 0] for square in squares), start=np.ones(1)), 0.0)
        return self._level * total

    @cached_property
    def _level(self) -> float | None:
        """Variance of the noise in every sum but a constant that is known, if it is one and the set is a tensor."""
        noisy = self.variances[1:] if self._constant else self.variances
        if self.fit.indices is not None or not len(noisy) or noisy.min() != noisy.max():
            return None
        return float(noisy[0])

    def _sums_of_products(self, weights: Array, blocks: Iterator[Coefficients]) -> SmoothAnswers:
        each, features = weights.shape[1], self.fit.features.features
        parts, first = [], 0
        for full, truncation in _in_rows(blocks, self.fit.indices, max(_BLOCK // (each * features), 1) * each):
            own = weights[first : first + len(full) // each]
            first += len(own)
            summed = np.einsum("qc,qcm->qm", own, full.reshape(*own.shape, -1))
            lost = (np.abs(own) * truncation.reshape(own.shape)).sum(axis=1)
            answered, noise, more = self._of_full(summed)
            parts.append((answered, noise, self._shared(summed), lost + more))
        values, variances, shared, lost = (np.concatenate(column) for column in zip(*parts, strict=True))
        return self._answers(values, variances, shared, lost, single=False)

    @cached_property
    def _cells(self) -> _core.PointFeatures:
        return contraction(self.fit.sizes)

    @property
    def _known(self) -> KnownTotal | None:
        return self.fit.known_total

    @cached_property
    def _corrected(self) -> Array:
        """The sums, without what a public number of points shows to be noise."""
        return self.sums if self._known is None else self._known.corrected(self.sums, self.points)

    def _less(self, variances: Array, along: Array | None) -> Array:
        """Return variances without that of what is known, for coefficients along it."""
        if self._known is None or along is None:
            return variances
        return np.maximum(variances - float(self.variances[0]) * along**2 / self._known.square, 0.0)

    def _lost(self, along: Array | None) -> Array | float:
        """Return how far averages may be moved by what is nearly known, for coefficients along it."""
        if self._known is None or along is None:
            return 0.0
        return np.abs(along) * self._known.error / self._known.square

    def _of_full(self, full: Array) -> tuple[Array, Array, Array | float]:
        """Return sums of queries, the variances of their noise, and how far what is nearly known may move averages."""
        along = None if self._known is None else self._known.along(full)
        return full @ self._corrected, self._less(full**2 @ self.variances, along), self._lost(along)

    def _shared(self, full: Array) -> Array:
        """Return the covariances of query sums with the number of points, over the variance of that."""
        if self._polynomial:
            constant: Array = full[:, 0]
            return constant
        if self.fit.mechanism.strategy == "histogram":
            return full @ self.variances / float(self.variances.sum())
        return np.zeros(len(full))

    def _answers(
        self, sums: Array, variances: Array, shared: Array, truncation: Array, *, single: bool
    ) -> SmoothAnswers:
        """Turn sums into averages; the noise in the number of points counts to first order.

        `F/N` is off by `(z_F - a z_N)/n`, a the average: `var F + a^2 var N - 2 a cov(F, N)`.
        """
        values = sums / self.points
        if not self.fit.count_is_public:
            count = self.stderr_of_points**2
            variances = np.maximum(variances + (values**2 - 2.0 * values * shared) * count, 0.0)
        stderr = np.sqrt(variances) / self.points
        if single:
            values, stderr, truncation = values[0], stderr[0], truncation[0]
        return SmoothAnswers(np.asarray(values), np.asarray(stderr), np.asarray(truncation), self.fit.mechanism.law)

    @property
    def _noise_level(self) -> float:
        return float(self.fit.stderr[0]) / self.points

    def declared(self) -> SmoothAnswers:
        """Answer the queries that the plan declared.

        Raises:
            UnsupportedMechanismError: The plan declared a class, not queries.
        """
        decoding = self.fit.features.decoding()
        if decoding is None:
            raise UnsupportedMechanismError("no queries were declared: ask release.query")
        matrix, lost = decoding
        values, variances, _ = self._of_full(matrix)
        return self._answers(values, variances, np.zeros(len(values)), np.sqrt(lost), single=False)

    def density(self, points: object, *, bandwidth: object = None, axes: Sequence[int] | None = None) -> SmoothAnswers:
        """Return a kernel density estimate at public points: share of the points per unit of volume of the data.

        Each kernel is normalised to integrate to 1 over the bounds.

        Args:
            points: In data units, shape (k, d), or (k, len(axes)).
            bandwidth: Of Gaussian kernels, in data units, a number or one a coordinate; the kernels of the plan's class
                if None.
            axes: Coordinates whose density is asked for, the others summed out; all if None.

        Raises:
            DataTypeError: Not numbers.
            ShapeError: Another number of coordinates.
            InvalidParameterError: The class is no class of kernels and no bandwidth is given, axes are not there, or
                points are outside the bounds.
        """
        cube = self.fit.workload.cube
        every = tuple(range(cube.dimension))
        listed = every if axes is None else sequence("axes", axes, "integers", most=cube.dimension)
        chosen = tuple(integer("an axis", axis, least=0, most=cube.dimension - 1) for axis in listed)
        at = np.atleast_2d(public_array("points", points))
        if at.ndim != 2 or at.shape[1] != len(chosen):
            raise ShapeError(f"points must have shape (k, {len(chosen)})")
        kernels = self.fit.workload.query_class if bandwidth is None else GaussianKernels(bandwidth)  # type: ignore[arg-type] # checked there
        if not isinstance(kernels, KernelClass):
            raise InvalidParameterError("the plan's class is no class of kernels: give a bandwidth")
        marginal = MarginalKernels(kernels, at, chosen)
        marginal.check(cube)
        if not all(
            ((low <= x) & (x <= high)).all()
            for x, (low, high) in zip(at.T, (cube.bounds[j] for j in chosen), strict=True)
        ):
            raise InvalidParameterError("points must be inside the bounds: the density is one over them")
        volume = _volumes(kernels, at, cube, chosen)
        if chosen == every:
            return self.query(KernelQueries(marginal.kernels, at, 1.0 / volume[:, None]))
        return self.query(MarginalKernels(marginal.kernels, at, chosen, 1.0 / volume))

    def projected(self, grid: int | None = None, *, progress: Progress | None = None) -> SmoothRelease:
        """Return a release of the probability measure on a grid whose sums are nearest to the noisy ones.

        Least squares in the noise's own metric, over all measures on the grid: never a negative density, and answers of
        functions between 0 and 1 stay there. It helps where noise is large (few points, several coordinates) and harms
        where it is not: then the grid's own error remains. What `query` returns as `stderr` and
        `truncation` is that of the unprojected answers, which its intervals are about.

        Args:
            grid: Points of the grid on every axis; if None as many as make about 10**4 in all, at most 65.
            progress: Called with (iteration, gap); returning False ends the search with the best so far.

        Raises:
            UnsupportedMechanismError: Only declared queries were measured.
            InvalidParameterError: The grid is too large.
        """
        measure = project_summary(self.fit, self.sums / self.points, self.variances, grid, progress)
        return replace(self, grid_measure=measure, post_processing=(*self.post_processing, "projected"))

    def _of_measure(self, query: Query) -> SmoothAnswers:
        assert self.grid_measure is not None
        plain = replace(self, grid_measure=None).query(query)
        values = self.grid_measure.query(query, self.fit.workload.cube).reshape(plain.values.shape)
        return replace(plain, values=values, unprojected=plain.values)

    def sample(self, count: int, generator: np.random.Generator | None = None) -> Array:
        """Draw synthetic points from the projected measure, uniform within its cells: public, free.

        Args:
            count: How many.
            generator: Of ordinary, public randomness.

        Returns:
            Points in data units, shape (count, d).

        Raises:
            UnsupportedMechanismError: The release was not projected.
        """
        if self.grid_measure is None:
            raise UnsupportedMechanismError("sample from a measure: release.projected().sample(...)")
        count = integer("count", count, least=1)
        return self.grid_measure.sample(
            count, np.random.default_rng() if generator is None else generator, self.fit.workload.cube
        )

    def save(self, path: str | Path) -> Path:
        """Write the summary as JSON, large arrays in an `.npz` beside it: public, and all that queries need.

        The measure of a projected release is not kept: `projected` finds it again.

        Raises:
            DataTypeError: `path` is no path.
            InputFileError: The file cannot be written.
        """
        return SUMMARY.save(self, path_of(path))

    @staticmethod
    def load(path: str | Path) -> SmoothRelease:
        """Read a summary and verify it: its plan is fitted again, and must be the one that it was made with.

        Raises:
            InputFileError: The file cannot be read.
            PlanFileError: The file is no summary, was altered, or does not fit its plan; or declared queries are
                whitened otherwise on this machine.
        """
        return SUMMARY.load(path, SmoothRelease)

    def _repr_html_(self) -> str:
        facts = [
            *self.fit.facts(self.private),
            ("points", f"{'' if self.fit.count_is_public else 'about '}{self.points:,.0f}"),
        ]
        facts += [("summary", ", ".join(self.post_processing))] if self.post_processing else []
        return card(repr(self.fit.workload), facts)

    def plot(
        self,
        path: str | Path | None = None,
        *,
        axes: Sequence[int] | None = None,
        bandwidth: object = None,
        names: Sequence[str] | None = None,
        ax: Any = None,
    ) -> Any:
        """Draw the density of one or two coordinates, the others summed out.

        Args:
            path: Where the picture is written, if anywhere.
            axes: Which coordinates; the first two, or the only one, if None.
            bandwidth: As `density` takes it.
            names: What the coordinates are called, one each; the release's own if None.
            ax: matplotlib's axes to draw into, in place of a figure of its own.

        Returns:
            The matplotlib figure.

        Raises:
            MissingDependencyError: matplotlib is not installed.
            InvalidParameterError: There are no such coordinates or not one or two, or another number of names.
            UnsupportedMechanismError: Only declared queries were measured.
            InputFileError: The picture cannot be written.
        """
        return drawn("density", self, path, axes=axes, bandwidth=bandwidth, names=names, ax=ax)


def _volumes(kernels: KernelClass, points: Array, cube: Cube, axes: tuple[int, ...]) -> Array:
    """Return the integrals of kernels with centres inside the bounds over some axes of them, shape (k,).

    On both sides of the centre, where kernels may have a kink, by Gauss-Legendre points; beyond 40 lengths all is over.
    """
    places, weights = np.polynomial.legendre.leggauss(128)
    places, weights = (places + 1.0) / 2.0, weights / 2.0
    volume = np.ones(len(points))
    for centres, j in zip(points.T, axes, strict=True):
        u, scale = (centres - cube.middle[j]) / cube.half[j], float(kernels.scales(cube)[j])
        sides = [np.clip((1.0 + sign * u) / scale, 0.0, 40.0) for sign in (-1.0, 1.0)]
        found = sum(side * (kernels.profile_of(side[:, None] * places) @ weights) for side in sides)
        volume *= found * scale * cube.half[j]
    return volume


def _in_rows(blocks: Iterator[Coefficients], indices: Any, count: int) -> Iterator[tuple[Array, Array]]:
    """Yield all coefficients of so many products at a time, and what they lose; of the rest at the end."""
    full, truncation = [], []
    waiting = 0
    for found in blocks:
        for first in range(0, len(found.truncation), count):
            part = slice(first, first + count)
            full.append(_expanded(found, indices, part))
            truncation.append(found.truncation[part])
            waiting += len(full[-1])
            if waiting >= count:
                rows, lost = np.concatenate(full), np.concatenate(truncation)
                yield rows[:count], lost[:count]
                full, truncation, waiting = [rows[count:]], [lost[count:]], waiting - count
    if waiting:
        yield np.concatenate(full), np.concatenate(truncation)


def _expanded(found: Coefficients, indices: Any, part: slice) -> Array:
    """Return all coefficients of some of the products, shape (products, features)."""
    if found.axes is None:
        assert found.full is not None
        return found.full[part]
    axes = [axis[part] for axis in found.axes]
    if indices is not None:
        out = np.ones((len(axes[0]), len(indices)))
        for j, axis in enumerate(axes):
            out *= axis[:, indices[:, j]]
        return out
    return outer_products(axes).reshape(len(axes[0]), -1)
