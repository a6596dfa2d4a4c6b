"""Histograms that change: a table of counts after every step of a stream."""

from typing import ClassVar

from sordino import _core
from sordino._support.checks import flag
from sordino.errors import InvalidParameterError
from sordino.workloads.base import Spec, Workload, length_of, steps_of

__all__ = ["RunningHistogram"]


class RunningHistogram(Workload):
    """All counts so far, for streams in which every step changes some cells up or down (a turnstile stream).

    Args:
        cells: Number of cells.
        length: Number of steps, None if it is not known.
        once: Whether step t changes cell t - 1 and no other: a table that arrives cell by cell.

    Raises:
        DataTypeError: A number is no integer, or `once` neither True nor False.
        InvalidParameterError: A number is out of range; with `once`, there are more steps than cells.
    """

    kind: ClassVar[str] = "running_histogram"
    linear: ClassVar[bool] = False
    continual: ClassVar[bool] = True

    def __init__(self, cells: int, length: int | None = None, *, once: bool = False) -> None:
        self.cells = length_of("cells", cells)
        self.once = flag("once", once)
        self.length = self.cells if self.once and length is None else steps_of("length", length)
        if self.once and self.length is not None and self.length > self.cells:
            raise InvalidParameterError("with once=True there are at most as many steps as cells")
        _ = self.core

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Cells of the table."""
        return (self.cells,)

    def _build(self) -> _core.Workload:
        return _core.Workload.histogram(self.cells)

    def spec(self) -> Spec:
        """Return the constructor's arguments."""
        return {"cells": self.cells, "length": self.length, "once": self.once}
