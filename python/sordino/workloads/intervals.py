"""Sums over given intervals of cells."""

from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sordino import _core
from sordino._support.checks import integers, numbers
from sordino.errors import InvalidParameterError
from sordino.workloads.base import MAX_LENGTH, Array, Spec, Workload, check_weights, length_of

__all__ = ["Intervals"]


class Intervals(Workload):
    """The sums over given intervals of a line of cells: `y_t = x_first[t] + ... + x_last[t]`, both ends included.

    What a `Matrix` with rows of ones in a row asks, at any size: cells that no interval tells apart are measured as
    one, and planning takes time by the numbers of cells and intervals, not by their product.

    Args:
        first: First cell of each interval, from 0, shape (intervals,), integers.
        last: Last cell of each, not before its first.
        length: Number of cells, 1 to 2**26.
        weights: Positive weight of each interval's squared error in the mean, shape (intervals,); 1 if None. Answers
            are not scaled.

    Raises:
        DataTypeError: Not arrays of integers, or of numbers.
        ShapeError: Not one-dimensional.
        InvalidParameterError: There are no intervals or more than 2**26, one ends before it begins or lies outside of
            the cells, or a weight is out of range.
    """

    kind: ClassVar[str] = "intervals"

    def __init__(self, first: object, last: object, length: int, weights: object = None) -> None:
        self.length = length_of("length", length)
        self.first, self.last = _cells("first", first), _cells("last", last)
        if len(self.first) != len(self.last):
            raise InvalidParameterError(f"{len(self.first)} first cells for {len(self.last)} last ones")
        self.weights = None if weights is None else numbers("weights", weights)
        if self.weights is not None and len(self.weights) != len(self.first):
            raise InvalidParameterError(f"{len(self.weights)} weights for {len(self.first)} intervals")
        check_weights(self.weights)
        _ = self.core

    @property
    def ranges(self) -> NDArray[np.int64]:
        """First and last cell of each interval, shape (answers, 2)."""
        return np.stack([self.first, self.last], axis=1)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """`(length,)`."""
        return (self.length,)

    @property
    def answers_shape(self) -> tuple[int, ...]:
        """`(intervals,)`."""
        return (len(self.first),)

    @cached_property
    def merged(self) -> "Intervals":
        """The same intervals of distinct cells alone."""
        distinct = self.core.distinct_cells()
        return self if distinct is None else self._on_cells(distinct[0])

    def answer_weights(self) -> Array | None:
        """Return the weight of each interval, None if none were given."""
        return self.weights

    def _build(self) -> _core.Workload:
        weights = [] if self.weights is None else self.weights.tolist()
        return _core.Workload.intervals(self.length, self.first, self.last, weights)

    def _on_cells(self, cells: NDArray[np.int64]) -> "Intervals":
        end = np.searchsorted(cells, self.last, side="right")
        return Intervals(np.searchsorted(cells, self.first), end - 1, len(cells), self.weights)

    def spec(self) -> Spec:
        """Return the constructor's arguments."""
        weights = {} if self.weights is None else {"weights": self.weights}
        return {"first": self.first, "last": self.last, "length": self.length} | weights


def _cells(name: str, values: object) -> NDArray[np.int64]:
    cells = integers(name, values, least=0, most=MAX_LENGTH - 1)
    cells.flags.writeable = False
    return cells
