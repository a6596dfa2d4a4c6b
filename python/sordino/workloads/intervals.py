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

# Cells for every end from which on ends are sorted in less time than cells are marked.
_FEW = 100


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
    def distinct_cells(self) -> NDArray[np.int64]:
        """The first of each run of cells that no interval tells apart, and that some interval has."""
        starts, covered, _ = self._runs
        return starts[covered]

    @cached_property
    def first_uncovered(self) -> int | None:
        """The first cell that is in no interval, None if there is none."""
        starts, covered, _ = self._runs
        gap = int(starts[~covered][0])  # the last run starts where all have ended
        return gap if gap < self.length else None

    @cached_property
    def _runs(self) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]:
        """Where runs of cells that no interval tells apart start, whether they are in any, and the run of each end."""
        ends = np.concatenate([self.first, self.last + 1])
        if len(ends) * _FEW < self.length:
            starts, run = np.unique(np.concatenate([[0], ends]), return_inverse=True)
            run = run[1:]
        else:
            begins = np.zeros(self.length + 1, dtype=np.bool_)
            begins[0] = begins[ends] = True
            starts, run = np.flatnonzero(begins), (np.cumsum(begins) - 1)[ends]
        begun, ended = (np.bincount(at, minlength=len(starts)) for at in run.reshape(2, -1))
        return starts, np.cumsum(begun - ended) > 0, run

    @cached_property
    def merged(self) -> "Intervals":
        """The same intervals of distinct cells alone; least errors are the same."""
        count = len(self.distinct_cells)
        if count == self.length:
            return self
        _, covered, run = self._runs
        before: NDArray[np.int64] = np.cumsum(covered) - covered  # distinct cells before each run
        first, end = before[run].reshape(2, -1)
        return Intervals(first, end - 1, count, self.weights)

    def answer_weights(self) -> Array | None:
        """Return the weight of each interval, None if none were given."""
        return self.weights

    def _build(self) -> _core.Workload:
        weights = [] if self.weights is None else self.weights.tolist()
        return _core.Workload.intervals(self.length, self.first, self.last, weights)

    def spec(self) -> Spec:
        """Return the constructor's arguments."""
        weights = {} if self.weights is None else {"weights": self.weights}
        return {"first": self.first, "last": self.last, "length": self.length} | weights


def _cells(name: str, values: object) -> NDArray[np.int64]:
    cells = integers(name, values, least=0, most=MAX_LENGTH - 1)
    cells.flags.writeable = False
    return cells
