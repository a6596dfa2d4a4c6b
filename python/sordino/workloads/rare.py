"""Counts of rare events."""

from __future__ import annotations

from typing import ClassVar, NoReturn

from sordino._support.checks import integer
from sordino.errors import UnsupportedMechanismError
from sordino.workloads.base import MAX_STEPS, Spec, Workload

__all__ = ["RareCount"]


class RareCount(Workload):
    """The running count of a stream in which few items are not zero.

    Args:
        length: T, number of steps.
        max_count: Public bound on the total count, by which the number of segments is bounded. If the count comes
            beyond it, privacy holds and the answers stay where they are.

    Raises:
        DataTypeError: A number is no integer.
        InvalidParameterError: A number is not from 1 to 2**40.
    """

    kind: ClassVar[str] = "rare_count"
    linear: ClassVar[bool] = False
    continual: ClassVar[bool] = True

    def __init__(self, length: int, max_count: int) -> None:
        self.length = integer("length", length, least=1, most=MAX_STEPS)
        self.max_count = integer("max_count", max_count, least=1, most=MAX_STEPS)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """One counter."""
        return (1,)

    def _build(self) -> NoReturn:
        raise UnsupportedMechanismError("a RareCount is counted on a stream, not in a release")

    def spec(self) -> Spec:
        """Return the constructor's arguments."""
        return {"length": self.length, "max_count": self.max_count}
