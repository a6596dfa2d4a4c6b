"""Sums over all ranges of cells."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sordino import _core
from sordino.errors import UnsupportedMechanismError
from sordino.workloads.base import Spec, Workload, length_of

__all__ = ["AllRanges"]


class AllRanges(Workload):
    """The sum over every range of cells `i..j`, both ends included: all `n (n + 1)/2` of them.

    Answers are ordered by `i`, then by `j`; `ranges` names the ends of each. Of more than 11584 cells, which have more
    than 2**26 ranges, the answers are not listed: ask a release for those that are wanted, by `Release.sum`.

    Args:
        length: Number of cells, 1 to 2**26.

    Raises:
        DataTypeError: The length is no integer.
        InvalidParameterError: The length is out of range.
    """

    kind: ClassVar[str] = "all_ranges"

    def __init__(self, length: int) -> None:
        self.length = length_of("length", length)
        _ = self.core

    @property
    def ranges(self) -> NDArray[np.int64]:
        """First and last cell of each range, shape (answers, 2).

        Raises:
            UnsupportedMechanismError: There are more than 2**26.
        """
        if not self.is_listed:
            raise UnsupportedMechanismError("more than 2**26 ranges are not listed")
        return np.stack(np.triu_indices(self.length), axis=1)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """`(length,)`."""
        return (self.length,)

    @property
    def answers_shape(self) -> tuple[int, ...]:
        """`(length (length + 1)/2,)`."""
        return (self.length * (self.length + 1) // 2,)

    def _build(self) -> _core.Workload:
        return _core.Workload.ranges(self.length)

    def spec(self) -> Spec:
        """Return the constructor's arguments."""
        return {"length": self.length}
