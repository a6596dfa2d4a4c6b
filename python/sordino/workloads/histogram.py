"""Histograms: every cell of a table."""

from typing import ClassVar

from sordino import _core
from sordino.errors import DataTypeError
from sordino.workloads.base import Spec, Workload, length_of

__all__ = ["Histogram"]


class Histogram(Workload):
    """The counts themselves: `y = x`.

    Args:
        shape: Number of cells, or the shape of a table.

    Raises:
        DataTypeError: The shape is no integer or sequence of integers.
        InvalidParameterError: A size is out of range.
    """

    kind: ClassVar[str] = "histogram"
    per_cell: ClassVar[bool] = True

    def __init__(self, shape: int | tuple[int, ...] | list[int]) -> None:
        sizes = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
        if not sizes:
            raise DataTypeError("shape must name at least one size")
        self.shape = tuple(length_of("shape", size) for size in sizes)
        _ = self.core

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape."""
        return self.shape

    def _build(self) -> _core.Workload:
        cells = 1
        for size in self.shape:
            cells *= size
        return _core.Workload.histogram(length_of("number of cells", cells))

    def spec(self) -> Spec:
        """Return the constructor's arguments."""
        return {"shape": list(self.shape)}
