"""The declared bounds of points: data units and the standard cube [-1, 1]^d."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np

from sordino._support.checks import public_array, real
from sordino.errors import DataTypeError, InvalidParameterError
from sordino.workloads.base import Array

__all__ = ["Cube", "bounds_of", "grid_points", "middles"]


def bounds_of(bounds: object, dimension: int) -> tuple[tuple[float, float], ...]:
    """Return declared bounds, one pair a coordinate; one pair alone serves all.

    Raises:
        DataTypeError: No pairs of numbers.
        InvalidParameterError: There are none, too few, or they do not rise.
    """
    if bounds is None:
        raise InvalidParameterError(
            "bounds must be declared, one (low, high) a coordinate, from public knowledge: the least and largest value "
            "of the data are private"
        )
    try:
        pairs = [tuple(islice(pair, 3)) for pair in islice(bounds, dimension + 1)]  # type: ignore[call-overload] # tried
    except (TypeError, NotImplementedError):
        # One pair alone.
        if not isinstance(bounds, tuple | list) or len(bounds) != 2:
            raise DataTypeError("bounds must be pairs (low, high)") from None
        pairs = [tuple(bounds)] * dimension
    if len(pairs) != dimension or any(len(pair) != 2 for pair in pairs):
        raise InvalidParameterError(f"bounds must be {dimension} pairs (low, high), one a coordinate")
    checked = tuple((real("a bound", low), real("a bound", high)) for low, high in pairs)
    if any(not low < high or not high - low < np.inf for low, high in checked):
        raise InvalidParameterError("every lower bound must be below the upper one, at a finite distance")
    return checked


@dataclass(frozen=True)
class Cube:
    """Declared bounds.

    Attributes:
        bounds: (low, high) of every coordinate.
    """

    bounds: tuple[tuple[float, float], ...]

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return len(self.bounds)

    @cached_property
    def middle(self) -> Array:
        """Centre of the cube in data units, shape (d,)."""
        return np.array([low / 2.0 + high / 2.0 for low, high in self.bounds])

    @cached_property
    def half(self) -> Array:
        """Half widths in data units, shape (d,)."""
        return np.array([high / 2.0 - low / 2.0 for low, high in self.bounds])

    def standard(self, points: Array) -> Array:
        """Return public points in units of the cube, not clipped."""
        scaled: Array = (points - self.middle) / self.half
        return scaled

    def data(self, u: Array) -> Array:
        """Return points of the cube in data units."""
        scaled: Array = self.middle + u * self.half
        return scaled

    def scales(self, name: str, lengths: object) -> Array:
        """Return lengths in data units, one or one a coordinate, in half widths of the bounds, shape (d,).

        Raises:
            DataTypeError: Not numbers.
            InvalidParameterError: Not positive, or another number of them.
        """
        array = public_array(name, lengths)
        if array.shape not in {(), (self.dimension,)}:
            raise InvalidParameterError(f"{name} must be a number, or {self.dimension} of them, one a coordinate")
        with np.errstate(over="ignore"):  # refused below
            scaled: Array = np.broadcast_to(array, (self.dimension,)) / self.half
        if not ((scaled >= 1e-6) & (scaled <= 1e6)).all():
            raise InvalidParameterError(f"{name} must be positive, and from 1e-6 to 1e6 half widths of the bounds")
        return scaled


def middles(size: int) -> Array:
    """Return the middles of equal cells of an axis of the cube, shape (size,)."""
    return (np.arange(size) + 0.5) * 2.0 / size - 1.0


def grid_points(axes: list[Array]) -> Array:
    """Return all points of a tensor grid, shape (count, d), the last coordinate moving fastest."""
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
