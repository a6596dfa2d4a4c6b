"""Which queries are expected: what a summary is made for. Any smooth query can be asked of it afterwards.

A class says, publicly and beforehand, how large the Chebyshev coefficients of its queries are: that decides how many
are measured and how noise is shared among them. It restricts nobody: it only decides where the error is small.

==================  ==================================================================================================
`GaussianKernels`   `exp(-|x - y|^2 / (2 bandwidth^2))`, centres `y` anywhere in the bounds
`LaplaceKernels`    `exp(-sum |x_j - y_j| / scale)`
`MaternKernels`     products of Matern kernels of smoothness 3/2 or 5/2
`KSmooth`           all functions whose derivatives up to an order are bounded: the class of the paper
`CoefficientPrior`  any class, by the root mean square of its coefficients
==================  ==================================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sordino._support.checks import build_record, integer, positive, public_array, sequence
from sordino.errors import InvalidParameterError, PlanFileError
from sordino.workloads.base import Array
from sordino.workloads.smooth.chebyshev import (
    Approximation,
    class_bound,
    damping,
    jackson_width,
    nodes,
    spectrum,
    transform,
    truncation_bound,
    vallee_poussin_norm,
)
from sordino.workloads.smooth.cube import Cube
from sordino.workloads.smooth.factor_shapes import FactorShape, geometric_tail, sample_count

if TYPE_CHECKING:
    from sordino.workloads.smooth.queries import KernelQueries

__all__ = [
    "CoefficientPrior",
    "GaussianKernels",
    "KSmooth",
    "KernelClass",
    "LaplaceKernels",
    "MaternKernels",
    "QueryClass",
    "class_from_json",
]

Lengths: TypeAlias = float | tuple[float, ...]
Indices: TypeAlias = NDArray[np.uint32]

# Coefficients and centres of an axis from which a class of kernels is judged.
_FINE = 512
_CENTRES = 201


def _lengths(name: str, value: object) -> Lengths:
    """Return a positive length, or one a coordinate.

    Raises:
        DataTypeError: Not numbers.
        InvalidParameterError: Not positive and finite.
    """
    if not isinstance(value, list | tuple | np.ndarray):
        return positive(name, value)
    each = sequence(name, value, "positive numbers, one a coordinate")
    if not each:
        raise InvalidParameterError(f"{name} must be a positive number, or one a coordinate")
    return tuple(positive(name, length) for length in each)


@dataclass(frozen=True)
class _Axis:
    """What a class of kernels is on one axis, in units of the cube, centres uniform on it."""

    moments: Array  # E c_k(y)^2
    mean: float  # E k(x, y) for uniform x, y
    square: float  # E k(x, y)^2
    slope: float  # E (dk/dx)^2
    guess: float  # E_y (E_x k(x, y))^2


@lru_cache(maxsize=256)
def _axis(profile: str, scale: float) -> _Axis:
    count = _FINE if scale >= 8.0 / _FINE else 4 * _FINE
    x, centres = nodes(2 * count), np.linspace(-1.0, 1.0, _CENTRES)
    values = _PROFILES[profile].value(np.abs(x[:, None] - centres[None, :]) / scale)
    found = transform(2 * count, count) @ values
    y = np.linspace(-1.0, 1.0, 801)
    kernel = _PROFILES[profile].value(np.abs(y[:, None] - y[None, :]) / scale)
    return _Axis(
        moments=(found**2).mean(axis=1),
        mean=float(kernel.mean()),
        square=float((kernel**2).mean()),
        slope=float((np.diff(kernel, axis=0) ** 2).mean()) * 400.0**2,
        guess=float((kernel.mean(axis=0) ** 2).mean()),
    )


@dataclass(frozen=True)
class _Profile:
    """A kernel of one coordinate, of the distance in units of its length; its derivatives and what follows from them.

    Attributes:
        value: The function.
        slope: Largest first derivative.
        bend: Largest second derivative, at 0 those from its sides.
        variations: (order, total variation over the line of the derivative of this order), the lower ones continuous.
        analytic: Whether it is the Gaussian, bounded by `exp(b^2/2)` at a distance b from the real line.
    """

    value: Callable[[Array], Array]
    slope: float
    bend: float
    variations: tuple[tuple[int, float], ...] = ()
    analytic: bool = False

    @staticmethod
    def nodes(scale: float) -> int:
        """Return how many Chebyshev points resolve kernels of this length."""
        return math.ceil(10.0 / scale)

    def sizes(self, scale: float, count: int) -> Array:
        """Return bounds of `|c_k|` for k below `count`: `2 V/(pi k (k - 1) ... (k - v))`, and 2.

        Source: Trefethen, Approximation Theory and Approximation Practice (2013), Theorem 7.1.
        """
        k, bound = np.arange(count, dtype=np.float64), np.full(count, 2.0)
        for order, variation in self.variations:
            falling = math.prod((np.maximum(k - i, 0.0) for i in range(order + 1)), start=np.ones(count))
            size = np.divide(
                2.0 * variation / (math.pi * scale**order), falling, out=np.full(count, 2.0), where=falling > 0
            )
            bound = np.minimum(bound, size)
        return bound

    def tail(self, scale: float, count: int) -> float:
        """Return a bound of `sum_{k >= count} |c_k|` for kernels of this length anywhere, in half widths.

        With V the variation of the derivative of order v: `2 V/(pi v (count - 1 - v)^v)`; Gaussian: `geometric_tail`.

        Source: Trefethen, Approximation Theory and Approximation Practice (2013), Theorems 7.2 and 8.2.
        """
        bounds = [
            2.0 * variation / (math.pi * order * (scale * (count - 1 - order)) ** order)
            for order, variation in self.variations
            if count - 1 > order
        ]
        if self.analytic:
            bounds += [geometric_tail(math.exp(b * b / 2.0), b * scale, count) for b in _DISTANCES]
        return min(bounds, default=math.inf)


@lru_cache(maxsize=256)
def _largest(profile: str, scale: float, degree: int) -> Array:
    """Return bounds of the coefficients below a degree of kernels anywhere on the axis, as queries are asked.

    A coefficient is a function of the centre, a polynomial of degree below n up to twice the `tail` from there: at 8n
    points it is as large as anywhere, up to a factor (Ehlich and Zeller). Aliases add at most a third to `sizes`.
    """
    kernel = _PROFILES[profile]
    points = nodes(sample_count(degree, kernel.nodes(scale)))
    centres = np.cos(np.pi * np.arange(8 * _FINE + 1) / (8 * _FINE))
    seen = np.zeros(degree)
    for some in np.array_split(centres, math.ceil(len(points) / _FINE)):
        found = spectrum(kernel.value(np.abs(points[None, :] - some[:, None]) / scale))[:, :degree]
        seen = np.maximum(seen, np.abs(found).max(axis=0))
    beyond = 2.0 * kernel.tail(scale, _FINE)
    bound: Array = np.minimum(
        (seen + beyond) / math.cos(math.pi / 16.0) + beyond, 4.0 / 3.0 * kernel.sizes(scale, degree)
    )
    bound[0] = min(bound[0], 1.0)
    return bound


# Distances from the real line, in lengths, from which the best bound of Gaussian kernels is taken.
_DISTANCES = tuple(0.5 * step for step in range(1, 61))
_SLOPE = math.sqrt(5.0) / 3.0 * (2.0 + math.sqrt(5.0)) * math.exp(-(1.0 + math.sqrt(5.0)) / 2.0)

_PROFILES: dict[str, _Profile] = {
    "gaussian": _Profile(lambda a: np.exp(-0.5 * a * a), math.exp(-0.5), 1.0, analytic=True),
    "laplace": _Profile(lambda a: np.exp(-a), 1.0, 1.0, ((1, 4.0),)),
    "matern32": _Profile(
        lambda a: (1.0 + math.sqrt(3.0) * a) * np.exp(-math.sqrt(3.0) * a),
        math.sqrt(3.0) * math.exp(-1.0),
        3.0,
        ((1, 4.0 * math.sqrt(3.0) * math.exp(-1.0)), (3, 8.2 * 3.0**1.5)),
    ),
    "matern52": _Profile(
        lambda a: (1.0 + math.sqrt(5.0) * a + 5.0 / 3.0 * a * a) * np.exp(-math.sqrt(5.0) * a),
        _SLOPE,
        5.0 / 3.0,
        ((1, 4.0 * _SLOPE), (5, 11.1 * 5.0**2.5)),
    ),
}


class KernelClass:
    """Kernels `k(x, y) = prod_j kappa(|x_j - y_j|/length_j)` with `k(x, x) = 1`, centres anywhere in the bounds."""

    kind: ClassVar[str]
    lengths_name: ClassVar[str] = "bandwidth"

    @property
    def profile(self) -> str:
        """Name of the kernel of one axis in the core."""
        return self.kind

    @property
    def lengths(self) -> Lengths:
        """Length, or one a coordinate, in data units."""
        raise NotImplementedError

    def at(self, centres: object, weights: object = None) -> KernelQueries:
        """Return queries with these centres, in data units, shape (queries, d) or (queries, each, d).

        Args:
            centres: Where.
            weights: Of several centres a query, shape (queries, each); 1 if None.

        Raises:
            DataTypeError: Not arrays of numbers.
            InvalidParameterError: Shapes do not fit, or entries are not finite.
        """
        from sordino.workloads.smooth.queries import KernelQueries  # noqa: PLC0415 - queries are made of classes

        return KernelQueries(self, centres, weights)  # type: ignore[arg-type] # a class of kernels

    def scales(self, cube: Cube) -> Array:
        """Return the lengths in half widths of the bounds, shape (d,)."""
        return cube.scales(self.lengths_name, self.lengths)

    def profile_of(self, apart: Array) -> Array:
        """Return the kernel of one axis at distances in units of its length."""
        return _PROFILES[self.profile].value(apart)

    def shape(self, centres: Array, scale: float) -> FactorShape:
        """Return the shape of the kernels of one axis.

        Args:
            centres: In units of the cube, shape (products,).
            scale: The length in half widths.
        """
        profile = _PROFILES[self.profile]
        bend = profile.bend / scale**2 + profile.slope / scale
        return FactorShape(
            centres, np.full(len(centres), bend), profile.nodes(scale), lambda count: profile.tail(scale, count)
        )

    @property
    def ceiling(self) -> float:
        """What no query of the class exceeds."""
        return 1.0

    def axes(self, cube: Cube) -> list[_Axis]:
        """Return what the class is on each axis."""
        return [_axis(self.profile, float(scale)) for scale in self.scales(cube)]

    def axis_moments(self, cube: Cube) -> list[Array] | None:
        """Mean squares of the coefficients on every axis: those of tensor products are their products."""
        return [axis.moments for axis in self.axes(cube)]

    def moments(self, indices: Indices, cube: Cube) -> Array:
        """Return `E c_m^2` for multi-indices, shape (count,)."""
        return _products([axis.moments for axis in self.axes(cube)], indices)

    def largest(self, indices: Indices, cube: Cube) -> Array:
        """Return bounds of `|c_m|` over the class, of coefficients that come from at least twice as many points."""
        counts = [int(most) + 1 for most in indices.max(axis=0, initial=0)]
        axes = [_largest(self.profile, float(s), t) for s, t in zip(self.scales(cube), counts, strict=True)]
        return _products(axes, indices)

    def truncation(self, indices: Indices | None, degrees: Sequence[int], cube: Cube) -> float:
        """Return the root of the summed mean squares of the coefficients left out."""
        axes = [axis.moments for axis in self.axes(cube)]
        total = math.prod(float(axis.sum()) for axis in axes)
        if indices is None:
            kept = [float(axis[:degree].sum()) for axis, degree in zip(axes, degrees, strict=True)]
            # 1 - prod(1 - tail): no cancellation for short tails.
            tails = [float(axis[degree:].sum()) for axis, degree in zip(axes, degrees, strict=True)]
            left = -math.expm1(
                sum(math.log1p(-t / (k + t)) if t < k + t else -math.inf for k, t in zip(kept, tails, strict=True))
            )
            return math.sqrt(total * left)
        return math.sqrt(max(total - float(_products(axes, indices).sum()), 0.0))

    def truncation_bound(self, degrees: Sequence[int], cube: Cube, approximation: Approximation) -> float:
        """Return a bound of the error of cutting off any query of the class, on the whole cube.

        With `e_j` that of one axis `prod_j (1 + e_j) - 1`, as no kernel exceeds 1. Coefficients come from at least 2t
        points, so that the interpolant is off by at most twice the `tail` from there.
        """
        profile = _PROFILES[self.profile]
        total = 1.0
        for scale, degree in zip(self.scales(cube), degrees, strict=True):
            beyond = profile.tail(scale, 2 * degree)
            match approximation:
                case "truncate":
                    lost = profile.tail(scale, degree) + beyond
                case "vallee-poussin":
                    # What lies below the half is kept, and the norm is as in `truncation_bound` of K-smooth functions.
                    own = vallee_poussin_norm()
                    lost = (1.0 + own) * profile.tail(scale, max(degree - degree // 2, 1)) + 2.0 * own * beyond
                case "jackson":
                    lost = jackson_width(degree) * profile.slope / scale + 2.0 * beyond
            total *= 1.0 + lost
        return float(total - 1.0)

    def to_json(self) -> dict[str, Any]:
        """Return the class as a JSON object."""
        lengths = list(self.lengths) if isinstance(self.lengths, tuple) else self.lengths
        return {"kind": self.kind, self.lengths_name: lengths}


def _products(axes: Sequence[Array], indices: Indices) -> Array:
    out = np.ones(len(indices))
    for j, axis in enumerate(axes):
        out *= np.where(indices[:, j] < len(axis), axis[np.minimum(indices[:, j], len(axis) - 1)], 0.0)
    return out


@dataclass(frozen=True)
class GaussianKernels(KernelClass):
    """Gaussian kernels `exp(-sum_j (x_j - y_j)^2 / (2 bandwidth_j^2))`.

    Attributes:
        bandwidth: In data units; a number, or one a coordinate.

    Raises:
        DataTypeError: No number.
        InvalidParameterError: Not positive.
    """

    kind = "gaussian"
    bandwidth: Lengths

    def __post_init__(self) -> None:
        object.__setattr__(self, "bandwidth", _lengths("bandwidth", self.bandwidth))

    @property
    def lengths(self) -> Lengths:
        """The bandwidth."""
        return self.bandwidth


@dataclass(frozen=True)
class LaplaceKernels(KernelClass):
    """Laplace kernels `exp(-sum_j |x_j - y_j| / scale_j)`: with a kink, so summaries of them are long.

    Attributes:
        scale: In data units; a number, or one a coordinate.

    Raises:
        DataTypeError: No number.
        InvalidParameterError: Not positive.
    """

    kind = "laplace"
    lengths_name = "scale"
    scale: Lengths

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _lengths("scale", self.scale))

    @property
    def lengths(self) -> Lengths:
        """The scale."""
        return self.scale


@dataclass(frozen=True)
class MaternKernels(KernelClass):
    """Products of Matern kernels of smoothness 3/2, `(1 + a) exp(-a)` with `a = sqrt(3) |x - y|/scale`, or 5/2.

    Attributes:
        scale: In data units; a number, or one a coordinate.
        smoothness: 1.5 or 2.5.

    Raises:
        DataTypeError: No number.
        InvalidParameterError: Not positive, or another smoothness.
    """

    kind = "matern"
    lengths_name = "scale"
    scale: Lengths
    smoothness: float = 2.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _lengths("scale", self.scale))
        object.__setattr__(self, "smoothness", positive("smoothness", self.smoothness))
        if self.smoothness not in (1.5, 2.5):
            raise InvalidParameterError("smoothness must be 1.5 or 2.5")

    @property
    def profile(self) -> str:
        """Name of the kernel of one axis in the core."""
        return "matern32" if self.smoothness == 1.5 else "matern52"

    @property
    def lengths(self) -> Lengths:
        """The scale."""
        return self.scale

    def to_json(self) -> dict[str, Any]:
        """Return the class as a JSON object."""
        return {**super().to_json(), "smoothness": self.smoothness}


@dataclass(frozen=True)
class KSmooth:
    """Functions whose derivatives along each coordinate up to `order` are at most `bound`, in units of the cube.

    The class `C^K_B` of the paper: coordinates are measured from -1 to 1 between their bounds.

    By Jackson's theorem `|c_m| <= 2^(number of m_j > 0) B min_j (pi/2)^k / (m_j (m_j - 1) ... (m_j - k + 1))` for every
    k up to K, and what a cut-off leaves out has a bound of the same kind
    (`sordino.workloads.smooth.chebyshev.truncation_bound`).

    Attributes:
        order: K, at least 1.
        bound: B.

    Raises:
        DataTypeError: No numbers.
        InvalidParameterError: Out of range.
    """

    kind: ClassVar[str] = "k-smooth"
    order: int
    bound: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", integer("order", self.order, least=1))
        object.__setattr__(self, "bound", positive("bound", self.bound))
        if self.order > 100:
            raise InvalidParameterError("order must be at most 100")

    @property
    def ceiling(self) -> float:
        """What no query of the class exceeds."""
        return self.bound

    def axis_moments(self, cube: Cube) -> list[Array] | None:
        """None: the bounds are no products."""
        return None

    def moments(self, indices: Indices, cube: Cube) -> Array:
        """Return squared bounds of the coefficients: as careful as the bound of what a cut-off leaves out."""
        return self.largest(indices, cube) ** 2

    def largest(self, indices: Indices, cube: Cube) -> Array:
        """Return bounds of the coefficients, shape (count,).

        Of functions below B by Parseval's equation, `sum c_m^2 2^-(axes with m_j > 0) <= B^2`, and by Jackson's.
        """
        most = int(indices.max(initial=0))
        best = np.array([1.0] + [min(class_bound(self.order, k), 1.0) for k in range(1, most + 1)])
        size = np.sqrt(2.0) ** (indices > 0).sum(axis=1)
        bounds: Array = self.bound * np.minimum(size, size**2 * np.min(best[indices], axis=1))
        return bounds

    def truncation(self, indices: Indices | None, degrees: Sequence[int], cube: Cube) -> float:
        """Return a bound for a tensor set; for a list, that of the largest tensor set inside, an estimate."""
        if indices is not None:
            return self.bound * truncation_bound(self.order, [_inner(indices)] * cube.dimension, "truncate")
        return self.truncation_bound(degrees, cube, "truncate")

    def truncation_bound(self, degrees: Sequence[int], cube: Cube, approximation: Approximation) -> float:
        """Return a bound of the error of cutting off any query of the class, on the whole cube."""
        return self.bound * truncation_bound(self.order, degrees, approximation)

    def to_json(self) -> dict[str, Any]:
        """Return the class as a JSON object."""
        return {"kind": self.kind, "order": self.order, "bound": self.bound}


def _inner(indices: Indices) -> int:
    """Return the degree of the largest tensor set that a set of bounded total degree contains."""
    return int(indices.sum(axis=1).max()) // int(indices.shape[1]) + 1


@dataclass(frozen=True, eq=False)
class CoefficientPrior:
    """Any class of queries, by how large its coefficients are: only their ratios decide how noise is shared.

    Attributes:
        sizes: Root mean squares of the coefficients, shape (t_1, ..., t_d); beyond them there are none. A bound over
            the whole class (`SmoothFit.uniform_error`) is about the queries whose coefficients do not exceed them.

    Raises:
        DataTypeError: Not numbers.
        InvalidParameterError: Negative, not finite, or all zero.
    """

    kind: ClassVar[str] = "coefficients"
    sizes: Array = field(repr=False)

    def __post_init__(self) -> None:
        sizes = public_array("sizes", self.sizes)
        if sizes.ndim == 0 or not np.isfinite(sizes).all() or (sizes < 0.0).any() or not sizes.any():
            raise InvalidParameterError("sizes must be non-negative and not all zero, one axis a coordinate")
        sizes.flags.writeable = False
        object.__setattr__(self, "sizes", sizes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CoefficientPrior) and np.array_equal(self.sizes, other.sizes)

    def __hash__(self) -> int:
        return hash((self.kind, self.sizes.shape))

    @property
    def ceiling(self) -> float:
        """What no query exceeds whose coefficients do not exceed the sizes."""
        return float(self.sizes.sum())

    def axis_moments(self, cube: Cube) -> list[Array] | None:
        """None: the sizes are no products."""
        return None

    def moments(self, indices: Indices, cube: Cube) -> Array:
        """Return the squared sizes."""
        return self.largest(indices, cube) ** 2

    def largest(self, indices: Indices, cube: Cube) -> Array:
        """Return the sizes, shape (count,)."""
        if self.sizes.ndim != cube.dimension:
            raise InvalidParameterError("sizes must have one axis a coordinate")
        inside = (indices < np.array(self.sizes.shape)).all(axis=1)
        found = np.zeros(len(indices))
        found[inside] = self.sizes[tuple(indices[inside].T)]
        return found

    def truncation(self, indices: Indices | None, degrees: Sequence[int], cube: Cube) -> float:
        """Return the root of the summed squares of the sizes left out."""
        kept = (
            self.sizes[tuple(slice(0, degree) for degree in degrees)]
            if indices is None
            else self.largest(indices, cube)
        )
        return math.sqrt(max(float((self.sizes**2).sum() - (kept**2).sum()), 0.0))

    def truncation_bound(self, degrees: Sequence[int], cube: Cube, approximation: Approximation) -> float:
        """Return the sum of the sizes left out: a bound for coefficients that do not exceed them.

        Those beyond 2t, the least number of points that coefficients come from, are taken for lower ones: twice.
        """
        kept = self.sizes[tuple(slice(0, degree) for degree in degrees)]
        factors = np.ones(())
        for size, degree in zip(kept.shape, degrees, strict=True):
            factors = np.multiply.outer(factors, damping(approximation, degree)[:size])
        resolved = self.sizes[tuple(slice(0, 2 * degree) for degree in degrees)]
        return float((self.sizes.sum() - (kept * factors).sum()) + (self.sizes.sum() - resolved.sum()))

    def to_json(self) -> dict[str, Any]:
        """Return the class as a JSON object."""
        return {"kind": self.kind, "sizes": self.sizes.tolist()}


QueryClass: TypeAlias = GaussianKernels | LaplaceKernels | MaternKernels | KSmooth | CoefficientPrior

_KINDS: dict[str, type[QueryClass]] = {
    "gaussian": GaussianKernels,
    "laplace": LaplaceKernels,
    "matern": MaternKernels,
    "k-smooth": KSmooth,
    "coefficients": CoefficientPrior,
}


def class_from_json(data: object) -> QueryClass:
    """Return the class that `to_json` wrote.

    Raises:
        PlanFileError: `data` describes no class of queries.
    """
    if not isinstance(data, dict) or data.get("kind") not in _KINDS:
        raise PlanFileError("the plan's class of queries is unknown; it may need a newer sordino")
    fields = {name: value for name, value in data.items() if name != "kind"}
    try:
        build: Callable[..., QueryClass] = _KINDS[data["kind"]]
        return build_record("class of queries", build, fields)
    except TypeError:
        raise PlanFileError("the plan's class of queries has other fields") from None
