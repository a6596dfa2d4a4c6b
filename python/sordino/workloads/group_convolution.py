"""Convolution over a finite abelian group, and the generalised marginals made from it."""

from collections.abc import Callable
from typing import ClassVar, Self

import numpy as np

from sordino import _core
from sordino._support.checks import integer, numbers
from sordino.errors import DataTypeError, InvalidParameterError
from sordino.workloads.base import Spec, Workload

__all__ = ["GroupConvolution"]

_MAX_BITS = 24


class GroupConvolution(Workload):
    """Convolution over `Z_n1 x ... x Z_nk`: `y_a = sum_b h_(a-b) x_b`.

    Args:
        kernel: `h`, an array of shape (n1, ..., nk), finite, not all zero.

    Raises:
        DataTypeError: The kernel is no array of numbers.
        InvalidParameterError: The kernel is empty, zero or not finite.
    """

    kind: ClassVar[str] = "group_convolution"
    per_cell: ClassVar[bool] = True

    def __init__(self, kernel: object) -> None:
        self.kernel = numbers("kernel", kernel, ndim=None)
        if self.kernel.ndim == 0 or self.kernel.size == 0:
            raise InvalidParameterError("kernel must have at least one axis and one entry")
        _ = self.core

    @classmethod
    def from_predicate(cls, predicate: Callable[[tuple[int, ...]], bool | float], d: int) -> Self:
        """Generalised marginals on `{0, 1}^d`: for every `a`, how many records `b` satisfy `f(a xor b)`.

        A conjunction of some bits gives the cells of a marginal; thresholds and small disjunctive normal
        forms their generalisations (Fawaz, Muthukrishnan & Nikolov 2013, Section 5 of the full version).

        Args:
            predicate: `f`, called with a tuple of `d` bits; its value is the weight of the record.
            d: Number of binary attributes, 1 to 24.

        Raises:
            DataTypeError: The predicate does not return numbers.
            InvalidParameterError: `d` is out of range, or the predicate is zero everywhere.
        """
        d = integer("d", d, least=1, most=_MAX_BITS)
        try:
            values = [float(predicate(bits)) for bits in np.ndindex(*(2,) * d)]
        except Exception:
            raise DataTypeError("the predicate must return a number or bool for every tuple of bits") from None
        return cls(np.array(values).reshape((2,) * d))

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of the kernel."""
        return self.kernel.shape

    def _build(self) -> _core.Workload:
        return _core.Workload.group(list(self.kernel.shape), self.kernel.reshape(-1))

    def spec(self) -> Spec:
        """Return the constructor's arguments."""
        return {"kernel": self.kernel}
