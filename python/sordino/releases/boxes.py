"""Sums of cells over boxes of a table, read off a release."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sordino import _core
from sordino._support.checks import flag, integers, open_unit
from sordino._support.private_numbers import array_of
from sordino.errors import InvalidParameterError, ShapeError, UnsupportedMechanismError
from sordino.releases.interval import Interval, interval_around
from sordino.workloads.base import MAX_LENGTH, Array

if TYPE_CHECKING:
    from sordino.mechanisms.linear.fit import LinearFit

__all__ = ["BoxSums", "box_rows", "box_sums", "ends_of"]


# Boxes of so many different sizes get intervals of their own; a few milliseconds each.
_MOST_SIZES = 1000


@dataclass(frozen=True, eq=False)
class BoxSums:
    """Sums over boxes: unbiased, up to the clamping of cells beyond `max_value`.

    Attributes:
        values: The sums, shape (boxes,).
        stderr: Standard deviation of the noise in each.
    """

    values: Array
    stderr: Array
    _fit: LinearFit = field(repr=False)
    _volumes: NDArray[np.int64] = field(repr=False)

    def interval(self, level: float, *, simultaneous: bool = False) -> Interval:
        """Return confidence intervals: exact for Gaussian noise and discrete noise on cells, else wider than needed.

        Args:
            level: Strictly between 0 and 1.
            simultaneous: Whether all intervals shall hold together with this probability.

        Raises:
            InvalidParameterError: The level is out of range.
        """
        open_unit("level", level)
        answers = len(self.stderr) if flag("simultaneous", simultaneous) else 1
        width = self._widths(level, max(answers, 1))
        return interval_around(self.values, width, level, simultaneous)

    def _widths(self, level: float, answers: int) -> Array:
        fit = self._fit
        if fit.one_law or not fit.measures_cells or fit.rows is None:
            return fit.half_widths(self.stderr, level, answers)
        sizes, which = np.unique(self._volumes, return_inverse=True)
        if len(sizes) > _MOST_SIZES:
            return fit.half_widths(self.stderr, level, answers)
        widths = np.array([fit.sum_half_width(int(size), level, answers) for size in sizes])
        return np.asarray(widths[which.reshape(-1)])


def ends_of(boxes: object, shape: tuple[int, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return first and last cells, shape (boxes, axes).

    Raises:
        DataTypeError: Not integers.
        ShapeError: Another shape.
        InvalidParameterError: A box is empty, or not in the table.
    """
    array = array_of("boxes", boxes, "integers")
    if array.ndim == 2 and len(shape) == 1:
        array = array[:, None, :]
    if array.size == 0 and array.ndim == 1:
        array = np.zeros((0, len(shape), 2), dtype=np.int64)
    if array.ndim != 3 or array.shape[1:] != (len(shape), 2):
        raise ShapeError(f"boxes must have shape (boxes, {len(shape)}, 2): first and last cell on every axis")
    ends = integers("boxes", array.reshape(-1), least=0, most=MAX_LENGTH).reshape(array.shape)
    first, last = ends[:, :, 0], ends[:, :, 1]
    if not ((first <= last) & (last < np.array(shape))).all():
        raise InvalidParameterError("boxes must lie in the table, first cells not behind last ones")
    return first, last


def box_rows(boxes: object, shape: tuple[int, ...]) -> Array:
    """Return the boxes as rows of queries.

    Raises:
        SordinoError: The boxes are none of this table.
        UnsupportedMechanismError: There are none, or more than 2**26 entries.
    """
    first, last = ends_of(boxes, shape)
    cells = int(np.prod(shape, dtype=np.int64))
    if not 0 < len(first) * cells <= MAX_LENGTH:
        raise UnsupportedMechanismError("without an estimate of the cells, sums are made of at most 2**26 entries")
    rows = np.ones((len(first), 1))
    for axis, length in enumerate(shape):
        places = np.arange(length)
        inside = (places >= first[:, axis, None]) & (places <= last[:, axis, None])
        rows = (rows[:, :, None] * inside[:, None, :]).reshape(len(first), -1)
    return rows


def box_sums(fit: LinearFit, cells: Array, boxes: object) -> BoxSums:
    """Return the sums of an estimated table over boxes.

    Raises:
        SordinoError: The boxes are none of this table.
    """
    shape = fit.request.workload.input_shape
    first, last = (ends.reshape(-1).tolist() for ends in ends_of(boxes, shape))
    values = _core.box_sums(cells.reshape(-1), list(shape), first, last)
    variances = fit.strategy.box_variances(list(shape), first, last)
    volumes = np.prod(np.reshape(last, (-1, len(shape))) - np.reshape(first, (-1, len(shape))) + 1, axis=1)
    return BoxSums(values, fit.door.noise * np.sqrt(variances), fit, volumes)
