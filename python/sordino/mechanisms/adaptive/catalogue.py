"""The mechanisms that look, by name: none is taken unasked.

A full name is `strategy-noise`, such as `path-budget-tree-laplace`; the strategy alone means Gaussian noise where the
privacy allows it and Laplace noise under `PureDP`.

====================  =================================================================================================
`path-budget-tree`    counts of nested stretches or boxes, divided further where records are
`full-tree`           counts of nested boxes down to every cell, with budgets that grow; two axes, Laplace noise
`adaptive-marginals`  tables of attributes, measured where an estimate of all of them is furthest off
====================  =================================================================================================
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from sordino.mechanisms.catalogue import Entry
from sordino.workloads import AllRanges, Histogram, Kronecker, Marginals, RunningSum, Workload

__all__ = ["ADAPTIVE_MECHANISMS", "AdaptiveMechanism", "Axis", "axes_of"]

Axis: TypeAlias = Literal["cells", "sums", "ranges"]

_MOST_AXES = 2
_AXES: dict[type[Workload], Axis] = {Histogram: "cells", RunningSum: "sums", AllRanges: "ranges"}


@dataclass(frozen=True)
class AdaptiveMechanism(Entry):
    """A way of looking, with a law of noise."""

    automatic: bool = False

    @property
    def growth(self) -> Literal["adaptive", "full"]:
        """How a tree grows."""
        return "full" if self.strategy == "full-tree" else "adaptive"

    def serves(self, workload: Workload) -> bool:
        """Return whether it is made for this workload."""
        if self.strategy == "adaptive-marginals":
            return isinstance(workload, Marginals)
        axes = axes_of(workload)
        return axes is not None and (self.growth == "adaptive" or len(axes) > 1)


def axes_of(workload: Workload) -> tuple[Axis, ...] | None:
    """Return what is asked along each of one or two axes: cells, running sums or ranges; None of other workloads."""
    if type(workload) is Histogram:
        cells: list[Axis] = ["cells" for _ in workload.input_shape]
        return tuple(cells) if len(cells) <= _MOST_AXES else None
    if isinstance(workload, Kronecker):
        parts = [axes_of(factor) for factor in workload.factors]
        axes = tuple(axis for part in parts if part is not None for axis in part)
        return axes if None not in parts and len(axes) <= _MOST_AXES else None
    axis = _AXES.get(type(workload))
    return None if axis is None or workload.first_step else (axis,)


ADAPTIVE_MECHANISMS: tuple[AdaptiveMechanism, ...] = (
    AdaptiveMechanism("path-budget-tree-laplace", "path-budget-tree", "laplace"),
    AdaptiveMechanism("path-budget-tree-gaussian", "path-budget-tree", "gaussian"),
    AdaptiveMechanism("full-tree-laplace", "full-tree", "laplace"),
    AdaptiveMechanism("adaptive-marginals-laplace", "adaptive-marginals", "laplace"),
    AdaptiveMechanism("adaptive-marginals-gaussian", "adaptive-marginals", "gaussian"),
)
"""All of them."""
