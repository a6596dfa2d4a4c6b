"""From public facts to a fitted summary: features, sizes, weights. Touches no data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from sordino import _core
from sordino._support.checks import integer
from sordino.errors import InvalidParameterError, UnsupportedMechanismError
from sordino.mechanisms.fits import Request
from sordino.mechanisms.smooth.catalogue import SmoothMechanism
from sordino.mechanisms.smooth.fit import SmoothFit
from sordino.mechanisms.smooth.kernel_axes import KernelAxis, kernel_axis, stored_axis
from sordino.mechanisms.smooth.known_total import KnownTotal, total_of_cells, total_of_kernel
from sordino.mechanisms.smooth.measurement import count_is_public, queries
from sordino.privacy.calibration import cost as calibrated_cost
from sordino.privacy.calibration import noise_ratio
from sordino.workloads.base import Array
from sordino.workloads.smooth.base import MOST_FEATURES, memory, total_degree
from sordino.workloads.smooth.chebyshev import damping
from sordino.workloads.smooth.queries import KernelQueries
from sordino.workloads.smooth.query_classes import CoefficientPrior, Indices, KernelClass, KSmooth, QueryClass

__all__ = ["fit_smooth"]

Weights: TypeAlias = Array | list[list[float]]

# Features that sizes chosen automatically may have.
_AUTOMATIC = 2**20
_MOST_KERNEL = 2**22
# Polynomials on an axis: whoever asks a query makes a matrix of twice as many rows and columns, 512 MB at most.
_MOST_DEGREE = 2**12
# Axes of a numpy array, on all its versions, and one for the features.
_MOST_AXES = 31
# Weights below this share of the largest are raised to it: the core has 30 bits for them.
_LEAST_WEIGHT = 2.0**-24
# Numerically known limit of 1 + kappa_t/t: the l1 sensitivity over the number of features, for choosing sizes only.
_PURE_EXCESS = 1.21723
# By how much the logarithm of a density is supposed to change per half width of the bounds, where cells blur it.
_ROUGHNESS = 3.0
# Bias of an answer by declared queries left out, as a share of its noise.
_LOST = 0.03


def fit_smooth(
    request: Request,
    mechanism: SmoothMechanism,
    sizes: tuple[int, ...] | None = None,
    mixings: Sequence[Array] = (),
) -> SmoothFit:
    """Choose sizes, build the features and fit the door to them.

    Args:
        request: What is asked for.
        mechanism: Which mechanism.
        sizes: Polynomials, cells or features on every axis, if they were chosen before.
        mixings: Features of the kernel on every axis, or the whitening of declared queries, if found before.

    Raises:
        UnsupportedMechanismError: The mechanism serves neither these queries nor this privacy.
        InvalidParameterError: Public sizes do not fit.
    """
    mechanism.require(request.privacy)
    workload = queries(request)
    if not mechanism.serves(workload):
        raise UnsupportedMechanismError(
            "declared queries are answered by the kernel mechanism"
            if workload.declared is not None
            else "the kernel mechanism needs a class of kernels, or declared kernel queries"
        )
    sizer = _Sizer(request, mechanism)
    match mechanism.strategy:
        case "kernel" if workload.declared is not None:
            return sizer.declared(mixings[0] if mixings else None)
        case "kernel":
            return sizer.kernel(mixings)
        case "histogram":
            return sizer.histogram(sizes)
        case _:
            return sizer.chebyshev(sizes)


class _Sizer:
    """Sizes and errors of one mechanism for one request."""

    def __init__(self, request: Request, mechanism: SmoothMechanism) -> None:
        self.request = request
        self.mechanism = mechanism
        self.workload = queries(request)
        self.cube = self.workload.cube
        self.replace = count_is_public(request.unit)
        self.ratio = noise_ratio(request.privacy, mechanism.law)
        self.gaussian = mechanism.law == "gaussian"
        self.records = request.unit.records
        self.bounds = list(self.workload.bounds)
        self.most = self.workload.points if self.replace else self.workload.most_points

    @property
    def query_class(self) -> QueryClass:
        """The class; declared queries are served apart."""
        found = self.workload.query_class
        assert not isinstance(found, KernelQueries)
        return found

    def fitted(  # noqa: PLR0917 - what was found out about a mechanism, put together once
        self,
        features: _core.PointFeatures,
        weights: Weights,
        count_weight: float,
        noise: Callable[[Array], float],
        truncation: float,
        sizes: tuple[int, ...],
        indices: Indices | None = None,
        axes: tuple[KernelAxis, ...] = (),
        known_total: KnownTotal | None = None,
    ) -> SmoothFit:
        """Fit the door; `noise` makes the error of a sum from the variances of the features."""
        strategy = _core.Strategy.summed(features, weights, self.mechanism.law, count_weight)
        door = _core.fit(strategy, self.request.unit.relation(), 1, 0, self.ratio)
        variances = door.noise**2 * strategy.variances()
        return SmoothFit(
            request=self.request,
            mechanism=self.mechanism,
            sizes=sizes,
            indices=indices,
            axes=axes,
            features=features,
            strategy=strategy,
            door=door,
            ratio=self.ratio,
            cost=calibrated_cost(self.request.privacy, self.mechanism.law),
            noise=noise(variances) / self.workload.points,
            truncation=truncation,
            stderr=np.sqrt(variances),
            known_total=known_total,
        )

    # Chebyshev sums: chebyshev, weighted, moments.

    def chebyshev(self, sizes: tuple[int, ...] | None) -> SmoothFit:
        workload = self.workload
        if self.mechanism.strategy == "moments":
            return self._chebyshev((3,) * workload.dimension, total_degree(workload.dimension, 3))
        if not isinstance(workload.index_set, str):
            degrees = tuple(int(m) + 1 for m in workload.index_set.max(axis=0))
            return self._chebyshev(degrees, workload.index_set)
        degrees = self._degrees() if sizes is None else sizes
        if workload.index_set == "total":
            return self._chebyshev(degrees, total_degree(workload.dimension, max(degrees)))
        _check_tensor(degrees)
        return self._chebyshev(degrees, None)

    def _chebyshev(self, degrees: tuple[int, ...], listed: Indices | None) -> SmoothFit:
        integer("degree", max(degrees), least=1, most=_MOST_DEGREE)
        features = _core.PointFeatures.chebyshev(self.bounds, list(degrees), self.most, listed)
        # A public number of points: the constant needs no noise.
        first = 1 if self.replace else 0
        axes = self._axes(degrees)
        if listed is None and axes is not None:
            truncation = self.query_class.truncation(None, degrees, self.cube)
            moments = [axis[None, :] for axis in axes]
            constant = math.prod(float(axis[0]) for axis in axes)

            def noise(variances: Array) -> float:
                total = float(features.contract(variances, moments)[0])
                return math.sqrt(max(total - first * constant * float(variances[0]), 0.0))

            return self.fitted(features, self._axis_weights(axes), 0.0, noise, truncation, degrees)
        indices = features.indices()
        assert indices is not None
        values = self.query_class.moments(indices, self.cube) * self._damping(indices, degrees) ** 2
        truncation = self.query_class.truncation(None if listed is None else indices, degrees, self.cube)
        return self.fitted(
            features,
            self._listed_weights(values),
            0.0,
            lambda variances: math.sqrt(float(values[first:] @ variances[first:])),
            truncation,
            degrees,
            None if listed is None else indices,
        )

    def _axes(self, degrees: Sequence[int]) -> list[Array] | None:
        """Return the mean squares of damped coefficients on every axis, where those of products are their products."""
        axes = self.query_class.axis_moments(self.cube)
        if axes is None:
            return None
        made = []
        for axis, degree in zip(axes, degrees, strict=True):
            own = np.zeros(degree)
            own[: len(axis)] = axis[:degree]
            made.append(own * damping(self.workload.approximation, degree) ** 2)
        return made

    def _damping(self, indices: Indices, degrees: Sequence[int]) -> Array:
        out = np.ones(len(indices))
        if self.workload.approximation != "truncate":
            for j, degree in enumerate(degrees):
                out *= damping(self.workload.approximation, degree)[indices[:, j]]
        return out

    @property
    def _power(self) -> float | None:
        """Weights are this power of the mean squares v of coefficients: 1/4 for Gaussian noise, 1/3 for Laplace noise.

        They minimise `sum v_m/w_m^2` for a given l2 (l1) norm of w: by the inequalities of Cauchy-Schwarz and Hoelder
        the least values are `(sum v^(1/2))^2` and `(sum v^(1/3))^3`. None: all weights are 1.
        """
        if self.mechanism.strategy != "weighted":
            return None
        return 0.25 if self.gaussian else 1.0 / 3.0

    def _axis_weights(self, axes: list[Array]) -> Weights:
        """Return weights of the axes, the largest 1."""
        power, least = self._power, _LEAST_WEIGHT ** (1.0 / len(axes))
        if power is None or not all(axis.any() for axis in axes):
            return []
        return [np.maximum((axis / axis.max()) ** power, least).tolist() for axis in axes]

    def _listed_weights(self, moments: Array) -> Weights:
        """Return one weight a feature, the largest 1."""
        if self._power is None or not moments.any():
            return []
        weights: Array = np.maximum((moments / moments.max()) ** self._power, _LEAST_WEIGHT)
        return weights

    def _degrees(self) -> tuple[int, ...]:
        """Return the number of polynomials on every axis."""
        workload = self.workload
        if workload.degree == "paper":
            if not isinstance(workload.query_class, KSmooth):
                raise InvalidParameterError("degree='paper' is n^(1/(2d + K)): it needs query_class=KSmooth(K, B)")
            power = 1.0 / (2 * workload.dimension + workload.query_class.order)
            return (max(math.ceil(workload.points**power - 1e-9), 1),) * workload.dimension
        if workload.degree != "auto":
            return workload.degree if isinstance(workload.degree, tuple) else (workload.degree,) * workload.dimension
        if self.request.objective == "max" and workload.index_set == "tensor":
            return self._surest_degrees()
        best: tuple[float, tuple[int, ...]] | None = None
        worse = 0
        for degrees in self._candidates():
            error = self._predicted(degrees)
            if best is None or error < best[0]:
                best, worse = (error, degrees), 0
            else:
                worse += 1
            if worse > 12:
                break
        if best is None:
            raise InvalidParameterError(f"{workload.dimension} coordinates are too many for a tensor of polynomials")
        return best[1]

    def _surest_degrees(self) -> tuple[int, ...]:
        """Return the degrees whose bound over the whole class is least: rising by a third, until it rises twice."""
        best, degree, worse = (math.inf, 1), 1, 0
        while worse < 2 and degree**self.workload.dimension <= _AUTOMATIC:
            fit = self._chebyshev((degree,) * self.workload.dimension, None)
            bound = fit.class_bound
            if bound is None or fit.noise >= self.query_class.ceiling:
                break  # more polynomials have more noise
            if bound < best[0]:
                best, worse = (bound, degree), 0
            elif bound > best[0]:  # equal is the bound of the class, until something is known
                worse += 1
            degree = max(degree + 1, degree * 4 // 3)
        return (best[1],) * self.workload.dimension

    def _candidates(self) -> Iterator[tuple[int, ...]]:
        """Yield degrees, the fewest features first."""
        dimension, total = self.workload.dimension, self.workload.index_set == "total"
        axes = self.query_class.axis_moments(self.cube)
        seen: set[tuple[int, ...]] = set()
        if axes is None and not total and dimension > _MOST_AXES:
            return
        if axes is None or total:
            most = self.query_class.sizes.shape if isinstance(self.query_class, CoefficientPrior) else None
            for degree in range(1, 513):
                degrees = (degree,) * dimension if most is None else tuple(min(degree, size) for size in most)
                if self._count(degrees) > (_AUTOMATIC if axes is None or total else MOST_FEATURES):
                    return
                if degrees not in seen:
                    seen.add(degrees)
                    yield degrees
            return
        # Largest moment from here on: falling, so that every threshold gives one degree an axis.
        falling = [np.maximum.accumulate(axis[::-1])[::-1] / axis.max() for axis in axes]
        for step in range(160):
            degrees = tuple(max(int((axis > 10.0 ** (-0.125 * step)).sum()), 1) for axis in falling)
            if self._count(degrees) > _AUTOMATIC:
                return
            if degrees not in seen:
                seen.add(degrees)
                yield degrees

    def _count(self, degrees: Sequence[int]) -> int:
        if self.workload.index_set == "total":
            return math.comb(max(degrees) - 1 + len(degrees), len(degrees))
        return math.prod(degrees)

    def _predicted(self, degrees: tuple[int, ...]) -> float:
        """Return noise and truncation by closed forms, without building anything."""
        axes = self.query_class.axis_moments(self.cube)
        weighted = self.mechanism.strategy == "weighted"
        listed = self.workload.index_set == "total"
        power = (0.5 if self.gaussian else 1.0 / 3.0) if weighted else 1.0
        if axes is not None and not listed:

            def total(p: float) -> float:
                return math.prod(float((axis[:d] ** p).sum()) for axis, d in zip(axes, degrees, strict=True))

            constant = math.prod(float(axis[0]) for axis in axes)

            truncation = self.query_class.truncation(None, degrees, self.cube)
        else:
            indices = total_degree(len(degrees), max(degrees)) if listed else _all(degrees)
            moments = self.query_class.moments(indices, self.cube)

            def total(p: float) -> float:
                return float((moments[moments > 0.0] ** p).sum())

            constant = float(moments[0])

            truncation = self.query_class.truncation(indices if listed else None, degrees, self.cube)
        count = self._count(degrees)
        # A public number of points: the constant needs no noise. With weights `v_m/w_m^2 = v_m^p`.
        free = constant ** (power if weighted else 1.0) if self.replace else 0.0
        noisy = max(total(power) - free, 0.0)
        if self.gaussian:
            square = (2.0 if self.replace else 1.0) * (total(power) if weighted else count) * noisy
        else:
            excess = _PURE_EXCESS if self.replace else 1.0
            square = 2.0 * excess**2 * (total(power) if weighted else count) ** 2 * noisy
        return math.hypot(self.ratio * self.records * math.sqrt(square) / self.workload.points, truncation)

    # Kernels.

    def kernel(self, mixings: Sequence[Array]) -> SmoothFit:
        kernels = self.query_class
        assert isinstance(kernels, KernelClass)
        scales = kernels.scales(self.cube)
        if mixings:
            axes = tuple(
                stored_axis(kernels, float(scale), mixing) for scale, mixing in zip(scales, mixings, strict=True)
            )
        else:
            axes = self._kernel_axes(kernels, scales)
        features = _core.PointFeatures.kernel(self.bounds, [axis.mixing for axis in axes], self.most)
        # Averages are ratios where the number of points is measured: weigh it by what an average is worth.
        mean = math.prod(axis.mean for axis in kernels.axes(self.cube))
        count_weight = 0.0 if self.replace else math.sqrt(mean)

        growth = math.prod(1.0 + axis.error for axis in axes) - 1.0
        known = None
        if self.replace:
            # A moved point changes two unit vectors of features.
            known = total_of_kernel(axes, math.sqrt(2.0) * self.ratio * self.records / self.workload.points)
            growth += known.lost

        def noise(variances: Array) -> float:
            if known is not None:
                return math.sqrt(known.share * float(variances[0]))
            return math.sqrt(float(variances[0]) + mean**2 * float(variances[-1]))

        found = tuple(len(axis.eigenvalues) for axis in axes)
        return self.fitted(features, [], count_weight, noise, growth, found, axes=axes, known_total=known)

    def _kernel_axes(self, kernels: KernelClass, scales: Array) -> tuple[KernelAxis, ...]:
        degrees = self._explicit()
        tolerance = min(max(1e-3 * self.ratio * self.records / self.workload.points / len(scales), 1e-7), 1e-2)
        while True:
            axes = tuple(
                kernel_axis(kernels, float(scale), tolerance, None if degrees is None else degrees[j])
                for j, scale in enumerate(scales)
            )
            count = math.prod(len(axis.eigenvalues) for axis in axes)
            if count <= _MOST_KERNEL or tolerance >= 0.01:
                break
            tolerance *= 10.0
        if count > _MOST_KERNEL:
            raise UnsupportedMechanismError(
                f"the kernel's features in {len(scales)} coordinates are {count}, {memory(count)}: declare the "
                "queries, query_class=GaussianKernels(...).at(centres), or name 'weighted'"
            )
        return axes

    def declared(self, whitening: Array | None) -> SmoothFit:
        queries = self.workload.declared
        assert queries is not None
        kernels, noise_level = queries.kernels, self.ratio * self.records / self.workload.points
        features = _core.PointFeatures.declared(
            self.bounds,
            kernels.profile,
            [float(scale) for scale in kernels.scales(self.cube)],
            queries.standard(self.cube),
            np.ascontiguousarray(queries.weights),
            _LOST * noise_level,
            self.most,
            None if whitening is None else np.ascontiguousarray(whitening),
        )
        decoding = features.decoding()
        assert decoding is not None
        matrix, lost = decoding
        norms = (matrix**2).sum(axis=1)
        # The same weight for the number of points as for the largest query.
        typical = float(np.sqrt(norms.mean()))
        count_weight = 0.0 if self.replace else min(math.sqrt(typical / 2.0), 1.0)

        def noise(variances: Array) -> float:
            own = float(norms.mean()) * float(variances[0])
            return math.sqrt(own + (0.0 if self.replace else (typical / 2.0) ** 2 * float(variances[-1])))

        return self.fitted(features, [], count_weight, noise, math.sqrt(float(lost.mean())), ())

    # Coarse grids.

    def histogram(self, sizes: tuple[int, ...] | None) -> SmoothFit:
        cells, noise_square, truncation = self._cells(sizes)
        features = _core.PointFeatures.cells(self.bounds, list(cells), self.most)

        def noise(variances: Array) -> float:
            return math.sqrt(noise_square * float(variances[0]))

        known = total_of_cells(cells) if self.replace else None
        return self.fitted(features, [], 0.0, noise, truncation, cells, known_total=known)

    def _cells(self, sizes: tuple[int, ...] | None) -> tuple[tuple[int, ...], float, float]:
        """Return cells an axis, the summed mean squares of a query over cells, and what cells blur.

        In a cell of half width h a query with derivative f' is off by `h^2/3 f' p'/p` on average, `p` the density of
        the points: sizes are chosen for densities whose logarithm changes by 3 per half width of the bounds.
        """
        kernels, dimension = self.query_class, self.workload.dimension
        if isinstance(kernels, KernelClass):
            known = kernels.axes(self.cube)
            squares, slopes = [axis.square for axis in known], [axis.slope for axis in known]
            # A public number of points takes the mean of a query off its noise.
            constant = math.prod(axis.guess for axis in known) if self.replace else 0.0
        else:
            size = kernels.bound if isinstance(kernels, KSmooth) else math.sqrt(float((kernels.sizes**2).sum()))
            squares, slopes = [size ** (2.0 / dimension)] * dimension, [size**2] * dimension
            constant = 0.0
        product = math.prod(squares)

        def judged(cells: tuple[int, ...]) -> tuple[float, float]:
            blurred = sum(
                slopes[j] * product / squares[j] * (1.0 / (3.0 * cells[j] ** 2)) ** 2 for j in range(dimension)
            )
            return math.prod(cells) * (product - constant), _ROUGHNESS * math.sqrt(blurred)

        chosen = self._explicit() if sizes is None else sizes
        if chosen is not None:
            _check_tensor(chosen)
            return chosen, *judged(chosen)
        variance = 2.0 if self.gaussian else 2.0 * 4.0
        variance *= 1.0 if self.replace else (0.5 if self.gaussian else 0.25)
        scale = (self.ratio * self.records / self.workload.points) ** 2 * variance
        best: tuple[float, tuple[int, ...]] | None = None
        roughness = [math.sqrt(slope / square) for slope, square in zip(slopes, squares, strict=True)]
        for step in range(400):
            fineness = 1.03**step
            cells = tuple(max(round(fineness * r / max(roughness)), 1) for r in roughness)
            if math.prod(cells) > _AUTOMATIC:
                break
            square, blurred = judged(cells)
            error = math.sqrt(square * scale + blurred**2)
            if best is None or error < best[0]:
                best = (error, cells)
        if best is None:
            raise InvalidParameterError(f"{dimension} coordinates are too many for a grid")
        return best[1], *judged(best[1])

    def _explicit(self) -> tuple[int, ...] | None:
        """Return the degree that was given for a mechanism that was named."""
        degree = self.workload.degree
        if self.request.mechanism == "auto" or isinstance(degree, str):
            return None
        return (degree,) * self.workload.dimension if isinstance(degree, int) else degree


def _all(degrees: Sequence[int]) -> Indices:
    """Return all multi-indices below the degrees, shape (count, d)."""
    grid = np.indices(tuple(degrees), dtype=np.uint32).reshape(len(degrees), -1).T
    return np.ascontiguousarray(grid)


def _check_tensor(sizes: Sequence[int]) -> None:
    count = math.prod(sizes)
    if count > MOST_FEATURES:
        raise InvalidParameterError(
            f"{' x '.join(map(str, sizes))} products are too many: {memory(count)}; lower the degree, take "
            "index_set='total', or declare kernel queries"
        )
