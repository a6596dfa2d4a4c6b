"""Any matrix of queries."""

from typing import ClassVar

from sordino import _core
from sordino.errors import InvalidParameterError
from sordino.workloads.base import Spec, Workload, numbers

__all__ = ["Matrix"]


class Matrix(Workload):
    """Queries given as the rows of a matrix: `y = A x`.

    Args:
        A: Shape (queries, cells), finite, not all zero.

    Raises:
        DataTypeError: Not a two-dimensional array of numbers.
        InvalidParameterError: Empty, zero or not finite.
    """

    kind: ClassVar[str] = "matrix"

    def __init__(self, A: object) -> None:
        self.A = numbers("A", A, ndim=2)
        if self.A.size == 0:
            raise InvalidParameterError("A must have at least one row and one column")
        _ = self.core

    @property
    def input_shape(self) -> tuple[int, ...]:
        """`(cells,)`."""
        return (self.A.shape[1],)

    @property
    def answers_shape(self) -> tuple[int, ...]:
        """`(queries,)`."""
        return (self.A.shape[0],)

    def _build(self) -> _core.Workload:
        return _core.Workload.matrix(self.A.shape[0], self.A.shape[1], self.A.reshape(-1))

    def spec(self) -> Spec:
        """Return the constructor's arguments."""
        return {"A": self.A}
