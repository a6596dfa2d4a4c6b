"""Queries of a summary: public functions, asked after the release, as many as wanted."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sordino._support.checks import integer, public_array, sequence
from sordino.errors import DataTypeError, InvalidParameterError, PlanFileError
from sordino.workloads.base import Array
from sordino.workloads.smooth.cube import Cube
from sordino.workloads.smooth.factor_shapes import FactorShape, geometric_tail
from sordino.workloads.smooth.query_classes import KernelClass, class_from_json

if TYPE_CHECKING:
    from sordino.workloads.smooth.query_classes import GaussianKernels, LaplaceKernels, MaternKernels

    AnyKernels: TypeAlias = GaussianKernels | LaplaceKernels | MaternKernels

__all__ = [
    "ALL",
    "Boxes",
    "KernelQueries",
    "MarginalKernels",
    "MomentQueries",
    "ProductQueries",
    "Query",
    "Rows",
    "Separable",
    "SeparableQueries",
    "values_of",
]

Rows: TypeAlias = slice | NDArray[np.intp]
"""Some of the products."""
ALL = slice(None)

_MOST_NUMBERS = 2**26


class SeparableQueries(Protocol):
    """Queries `f_q(x) = sum_c weights[q, c] prod_j g_{q,c,j}(x_j)`: their coefficients need no grid of the cube."""

    @property
    def weights(self) -> Array:
        """Shape (queries, products each)."""
        ...

    def check(self, cube: Cube) -> None:
        """Refuse queries of other coordinates."""
        ...

    def axis_values(self, cube: Cube, axis: int, u: Array, rows: Rows = ALL) -> Array:
        """Return `g_{q,c,axis}` of these products at coordinates of the cube, shape (products, k).

        Args:
            cube: The bounds.
            axis: Which coordinate.
            u: Shape (k,), or (products, k) for other ones of each product.
            rows: Which of the queries * each products.
        """
        ...

    def shape(self, cube: Cube, axis: int) -> FactorShape | None:
        """Return what is known of `g_{q,c,axis}` between points, of all products; None if nothing is."""
        ...


def _array(name: str, values: object, dimensions: tuple[int, ...]) -> Array:
    """Return a read-only array of finite numbers with one of these numbers of dimensions.

    Raises:
        DataTypeError: No such array.
        InvalidParameterError: Not finite, empty or too large.
    """
    array = public_array(name, values)
    if array.ndim not in dimensions:
        raise DataTypeError(f"{name} must have {' or '.join(map(str, dimensions))} dimensions")
    if not array.size or array.size > _MOST_NUMBERS:
        raise InvalidParameterError(f"{name} must have from 1 to 2**26 entries")
    if not np.isfinite(array).all():
        raise InvalidParameterError(f"{name} must be finite")
    array.flags.writeable = False
    return array


class KernelQueries:
    """Kernel queries `f_q(x) = sum_c weights[q, c] k(x, centres[q, c])`.

    Args:
        kernels: Which kernel.
        centres: In data units, shape (queries, d), or (queries, each, d).
        weights: Shape (queries, each); 1 if None.

    Raises:
        DataTypeError: Not arrays of numbers.
        InvalidParameterError: Shapes do not fit, or entries are not finite.
    """

    def __init__(self, kernels: AnyKernels, centres: object, weights: object = None) -> None:
        if not isinstance(kernels, KernelClass):
            raise DataTypeError("kernels must be a class of kernels, such as sordino.smooth.GaussianKernels(0.5)")
        points = _array("centres", centres, (2, 3))
        points = points[:, None, :] if points.ndim == 2 else points
        given = np.ones(points.shape[:2]) if weights is None else _array("weights", weights, (2,))
        if given.shape != points.shape[:2]:
            raise InvalidParameterError("weights must have one entry a centre, shape (queries, centres each)")
        self.kernels: AnyKernels = kernels
        self.centres: Array = points
        self.weights: Array = given

    def check(self, cube: Cube) -> None:
        """Refuse centres of another dimension.

        Raises:
            InvalidParameterError: Another number of coordinates.
        """
        if self.centres.shape[2] != cube.dimension:
            raise InvalidParameterError(f"centres must have {cube.dimension} coordinates")
        self.kernels.scales(cube)

    def axis_values(self, cube: Cube, axis: int, u: Array, rows: Rows = ALL) -> Array:
        """Return the kernels of one axis, shape (products, k)."""
        centres = self.standard(cube)[rows, axis]
        return self.kernels.profile_of(np.abs(u - centres[:, None]) / self.kernels.scales(cube)[axis])

    def shape(self, cube: Cube, axis: int) -> FactorShape:
        """Return the shape of the kernels of one axis: they turn at their centres."""
        return self.kernels.shape(self.standard(cube)[:, axis], float(self.kernels.scales(cube)[axis]))

    def standard(self, cube: Cube) -> Array:
        """Return all centres in units of the cube, shape (queries * each, d)."""
        return np.ascontiguousarray(cube.standard(self.centres.reshape(-1, cube.dimension)))

    def __len__(self) -> int:
        return len(self.centres)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, KernelQueries)
            and self.kernels == other.kernels
            and np.array_equal(self.centres, other.centres)
            and np.array_equal(self.weights, other.weights)
        )

    def __hash__(self) -> int:
        return hash((self.kernels, self.centres.shape))

    def __repr__(self) -> str:
        return f"<{len(self)} queries of {self.kernels!r}>"

    def to_json(self) -> dict[str, Any]:
        """Return the queries as a JSON object."""
        return {
            "kind": "kernel-queries",
            "kernels": self.kernels.to_json(),
            "centres": self.centres.tolist(),
            "weights": self.weights.tolist(),
        }

    @staticmethod
    def from_json(data: dict[str, Any]) -> KernelQueries:
        """Return the queries that `to_json` wrote.

        Raises:
            PlanFileError: `data` describes no kernel queries.
        """
        if data.keys() != {"kind", "kernels", "centres", "weights"}:
            raise PlanFileError("the plan's declared queries have other fields")
        kernels = class_from_json(data["kernels"])
        try:
            return KernelQueries(kernels, data["centres"], data["weights"])  # type: ignore[arg-type] # checked there
        except (DataTypeError, InvalidParameterError):
            raise PlanFileError("the plan's declared queries are out of range") from None


class MarginalKernels:
    """Kernels of some coordinates, the others averaged over: `f_q(x) = weights[q] prod_j k_j(x_j, centres[q, j])`.

    Args:
        kernels: Which kernel.
        centres: In data units, shape (queries, len(axes)).
        axes: Coordinates that the centres have.
        weights: Shape (queries,); 1 if None.

    Raises:
        DataTypeError: Not arrays of numbers.
        InvalidParameterError: Shapes do not fit, coordinates repeat, or entries are not finite.
    """

    def __init__(self, kernels: AnyKernels, centres: object, axes: Sequence[int], weights: object = None) -> None:
        self.kernels: AnyKernels = kernels
        self.centres: Array = _array("centres", centres, (2,))
        self.axes = tuple(integer("axes", axis, least=0) for axis in sequence("axes", axes, "coordinates"))
        if len(set(self.axes)) != len(self.axes) or self.centres.shape[1] != len(self.axes):
            raise InvalidParameterError("centres must have one column for each of the axes, which must not repeat")
        given = np.ones(len(self.centres)) if weights is None else _array("weights", weights, (1,))
        if given.shape != self.centres.shape[:1]:
            raise InvalidParameterError("weights must have one entry a centre")
        self.weights: Array = given[:, None]

    def check(self, cube: Cube) -> None:
        """Refuse axes that are not there.

        Raises:
            InvalidParameterError: Some are not.
        """
        if not all(0 <= axis < cube.dimension for axis in self.axes):
            raise InvalidParameterError(f"axes must be from 0 to {cube.dimension - 1}")
        self.kernels.scales(cube)

    def axis_values(self, cube: Cube, axis: int, u: Array, rows: Rows = ALL) -> Array:
        """Return the kernels of one coordinate, 1 where it is averaged over, shape (products, k)."""
        if axis not in self.axes:
            return np.ones((len(self.centres[rows]), u.shape[-1]))
        centres = self._standard(cube, axis)[rows]
        return self.kernels.profile_of(np.abs(u - centres[:, None]) / self.kernels.scales(cube)[axis])

    def shape(self, cube: Cube, axis: int) -> FactorShape:
        """Return the shape of the kernels of one coordinate, or of constants."""
        if axis not in self.axes:
            return FactorShape.polynomials(np.zeros(len(self.centres)), np.zeros(len(self.centres)), 0)
        return self.kernels.shape(self._standard(cube, axis), float(self.kernels.scales(cube)[axis]))

    def _standard(self, cube: Cube, axis: int) -> Array:
        centres: Array = (self.centres[:, self.axes.index(axis)] - cube.middle[axis]) / cube.half[axis]
        return centres


class Separable:
    """One query that is a product, `f(x) = prod_j factors[j](x_j)`.

    Args:
        factors: One function a coordinate, from an array of it in data units to an array of values of the same shape.

    Raises:
        DataTypeError: Not functions.
    """

    def __init__(self, factors: Sequence[Callable[[Array], Any]]) -> None:
        self.factors = sequence("factors", factors, "functions, one a coordinate")
        if not self.factors or not all(callable(factor) for factor in self.factors):
            raise DataTypeError("factors must be functions, one a coordinate")
        self.weights: Array = np.ones((1, 1))

    def check(self, cube: Cube) -> None:
        """Refuse another number of factors.

        Raises:
            InvalidParameterError: Another number of coordinates.
        """
        if len(self.factors) != cube.dimension:
            raise InvalidParameterError(f"there must be {cube.dimension} factors, one a coordinate")

    def axis_values(self, cube: Cube, axis: int, u: Array, rows: Rows = ALL) -> Array:
        """Return one factor, shape (1, k)."""
        x = cube.middle[axis] + u * cube.half[axis]
        return values_of(self.factors[axis], x, (len(u),))[None, :]

    def shape(self, cube: Cube, axis: int) -> None:
        """None: functions of users."""
        return


class MomentQueries:
    """Moments `prod_j (x_j - origin_j)^p_j`.

    Args:
        powers: Shape (queries, d), non-negative integers.
        origin: In data units, shape (d,); zero if None.

    Raises:
        DataTypeError: Not arrays of numbers.
        InvalidParameterError: Negative or fractional powers.
    """

    def __init__(self, powers: object, origin: object = None) -> None:
        array = _array("powers", powers, (2,))
        if (array < 0).any() or (array != np.floor(array)).any() or (array > 64).any():
            raise InvalidParameterError("powers must be integers from 0 to 64")
        self.powers: Array = array
        self.origin: Array = np.zeros(array.shape[1]) if origin is None else _array("origin", origin, (1,))
        self.weights: Array = np.ones((len(array), 1))
        if self.origin.shape != array.shape[1:]:
            raise InvalidParameterError("origin must have one number a coordinate")

    def check(self, cube: Cube) -> None:
        """Refuse powers of another number of coordinates.

        Raises:
            InvalidParameterError: Another number of coordinates.
        """
        if self.powers.shape[1] != cube.dimension:
            raise InvalidParameterError(f"powers must have {cube.dimension} columns, one a coordinate")

    def axis_values(self, cube: Cube, axis: int, u: Array, rows: Rows = ALL) -> Array:
        """Return the powers of one coordinate, shape (products, k)."""
        x = cube.middle[axis] + u * cube.half[axis] - self.origin[axis]
        values: Array = x ** self.powers[rows, axis][:, None]
        return values

    def shape(self, cube: Cube, axis: int) -> FactorShape:
        """Return the shape of the powers of one coordinate: they turn at the origin.

        `|(x - o)^p|` has derivatives of at most `p R^(p-1)` and `p (p-1) R^(p-2)` in x, R the largest `|x - o|`.
        """
        half, power = cube.half[axis], self.powers[:, axis]
        origin = (self.origin[axis] - cube.middle[axis]) / half
        reach = half * (1.0 + abs(origin))
        first = half * power * reach ** np.maximum(power - 1.0, 0.0)
        second = half**2 * power * (power - 1.0) * reach ** np.maximum(power - 2.0, 0.0)
        return FactorShape.polynomials(np.full(len(power), origin), first + second, int(power.max()))


class Boxes:
    """Shares of points in boxes with soft sides: `prod_j (s((x_j - lower_j)/w_j) - s((x_j - upper_j)/w_j))`.

    `s` is the logistic function: a side rises from 12 % to 88 % over four widths `w`.

    Args:
        lower: In data units, shape (queries, d); may be -infinity where a side is open.
        upper: Likewise, above `lower`.
        smoothing: w in data units, a number or one a coordinate: the sharper, the larger the error.

    Raises:
        DataTypeError: Not arrays of numbers.
        InvalidParameterError: Not rising, or no positive smoothing.
    """

    def __init__(self, lower: object, upper: object, smoothing: float | Sequence[float]) -> None:
        low, high = (np.atleast_2d(public_array(*side)) for side in (("lower", lower), ("upper", upper)))
        width = public_array("smoothing", smoothing)
        if low.shape != high.shape or low.ndim != 2 or not low.size or not (low < high).all():
            raise InvalidParameterError("lower and upper must have one shape (queries, d), lower below upper")
        if width.shape not in {(), low.shape[1:]} or not np.isfinite(width).all() or not (width > 0.0).all():
            raise InvalidParameterError("smoothing must be positive, one number or one a coordinate")
        self.lower: Array = low
        self.upper: Array = high
        self.smoothing: Array = np.broadcast_to(width, low.shape[1:])
        self.weights: Array = np.ones((len(low), 1))

    def check(self, cube: Cube) -> None:
        """Refuse boxes in another number of coordinates.

        Raises:
            InvalidParameterError: Another number of coordinates.
        """
        if self.lower.shape[1] != cube.dimension:
            raise InvalidParameterError(f"boxes must have {cube.dimension} coordinates")

    def axis_values(self, cube: Cube, axis: int, u: Array, rows: Rows = ALL) -> Array:
        """Return the sides along one coordinate, shape (products, k)."""
        x = (cube.middle[axis] + u * cube.half[axis]) / self.smoothing[axis]
        ends = (end[rows, axis][:, None] / self.smoothing[axis] for end in (self.lower, self.upper))
        rise, fall = (0.5 * (1.0 + np.tanh((x - end) / 2.0)) for end in ends)
        sides: Array = rise - fall
        return sides

    def shape(self, cube: Cube, axis: int) -> FactorShape:
        """Return the shape of the sides along one coordinate: they turn in the middle of the box.

        The logistic function has derivatives of at most 1/4 and `1/(6 sqrt 3)`, and is at most `sqrt 2` where the
        imaginary part is below `3 pi/4`.
        """
        low, high = self.lower[:, axis], self.upper[:, axis]
        # What is narrower has no bound but its size, what is wider is constant.
        width = min(max(float(self.smoothing[axis] / cube.half[axis]), 1e-150), 1e150)
        # With an open side they do not turn.
        turns, closed = np.full(len(low), -1.0), np.isfinite(low) & np.isfinite(high)
        turns[closed] = (low[closed] / 2.0 + high[closed] / 2.0 - cube.middle[axis]) / cube.half[axis]
        sides = np.isfinite(low).astype(np.float64) + np.isfinite(high)
        bend = np.minimum(sides, 1.0) * 0.25 / width + sides / (6.0 * math.sqrt(3.0) * width**2)
        strip = 0.75 * math.pi * width
        return FactorShape(
            turns,
            bend,
            math.ceil(12.0 / width),
            lambda count: geometric_tail(2.0 * math.sqrt(2.0), strip, count),
        )


ProductQueries: TypeAlias = KernelQueries | MarginalKernels | Separable | MomentQueries | Boxes
"""Sums of products of functions of one coordinate each."""

Query: TypeAlias = ProductQueries | Callable[[Array], Any]
"""What a summary can be asked: products, or any function from points, shape (k, d) in data units, to values (k,)."""


def values_of(f: Callable[[Array], Any], points: Array, shape: tuple[int, ...]) -> Array:
    """Call a user's function and check what it returns: shape `shape`, or `shape + (queries,)`.

    Raises:
        InvalidParameterError: It raised an error, returned another shape, or values that are no finite numbers.
    """
    try:
        found = f(points)
    except Exception as error:
        # Queries are public: what went wrong may be said.
        raise InvalidParameterError(f"the query raised {type(error).__name__}: {error}") from error
    try:
        array = np.asarray(found)
        values = array.astype(np.float64) if array.dtype.kind in "iubfO" else None
    except (TypeError, ValueError):
        values = None
    if values is None:
        # Numbers in text are no numbers, and of complex ones a half would be lost.
        raise InvalidParameterError("the query must return real numbers")
    if values.shape[: len(shape)] != shape or values.ndim > len(shape) + 1 or not values.size:
        raise InvalidParameterError(f"the query must return an array of shape {shape}, got {values.shape}")
    if not np.isfinite(values).all():
        raise InvalidParameterError("the query returned values that are not finite somewhere inside the bounds")
    return values
