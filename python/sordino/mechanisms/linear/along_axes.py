"""What products, and unions of products, ask along each axis of their table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from sordino.mechanisms.linear.catalogue import is_measured_as_it_is, of_ranges
from sordino.workloads import Histogram, Kronecker, Union, Workload

__all__ = ["AlongAxes", "along_axes"]

# Cells up to which all that is asked of a table is searched for at once, not along each axis.
_WHOLE = 256
# Axes of several products: errors are sums over all sets of them.
_MOST_AXES = 8


@dataclass(frozen=True)
class AlongAxes:
    """Products along the same axes.

    Attributes:
        parts: The factors of each product.
        weights: How much the squared errors of each count.
        together: Whether they are parts of a union: else there is one.
    """

    parts: tuple[tuple[Workload, ...], ...]
    weights: tuple[float, ...]
    together: bool

    @cached_property
    def axes(self) -> tuple[tuple[Workload, ...], ...]:
        """What is asked along each axis, once each, in one order along all: alike where the same is asked."""
        order = {own: place for place, own in enumerate(dict.fromkeys(own for part in self.parts for own in part))}
        return tuple(
            tuple(sorted(dict.fromkeys(asked), key=order.__getitem__)) for asked in zip(*self.parts, strict=True)
        )

    @property
    def few_cells(self) -> bool:
        """Whether all that is asked of the table can be searched for at once."""
        return math.prod(self.sizes) <= _WHOLE

    @property
    def sizes(self) -> list[int]:
        """Cells along each axis."""
        return [asked[0].core.input_len or 0 for asked in self.axes]

    def measured_as_they_are(self, axis: int) -> bool:
        """Whether cells and totals are all that is asked along an axis."""
        return all(map(is_measured_as_it_is, self.axes[axis]))

    def of_ranges(self, axis: int) -> bool:
        """Whether all that is asked along an axis are ranges of cells in order, not cells and totals alone."""
        return of_ranges(Union(self.axes[axis]))


def along_axes(workload: Workload) -> AlongAxes | None:
    """Return the products along the same axes that are asked of a table; None of others.

    All cells are a product along any axes. Several products have at most eight.
    """
    together = isinstance(workload, Union)
    parts = workload.parts if isinstance(workload, Union) else (workload,)
    weights = workload.weights if isinstance(workload, Union) else (1.0,)
    products = [part.factors for part in parts if isinstance(part, Kronecker)]
    if not products:
        return None
    sizes = [factor.core.input_len or 0 for factor in products[0]]
    if (
        len(sizes) == 1
        or (together and len(sizes) > _MOST_AXES)
        or any([factor.core.input_len for factor in own] != sizes for own in products)
    ):
        return None
    if not all(isinstance(part, Kronecker) or type(part) is Histogram for part in parts):
        return None
    cells = tuple(map(Histogram, sizes))
    factors = tuple(part.factors if isinstance(part, Kronecker) else cells for part in parts)
    return AlongAxes(factors, tuple(weights), together)
