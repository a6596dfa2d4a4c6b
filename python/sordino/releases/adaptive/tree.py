"""A released tree: a table that is fine where records are, and what was measured of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from sordino import _core
from sordino._support.cards import card
from sordino._support.extras import drawn
from sordino.errors import DataTypeError, ShapeError, UnsupportedMechanismError
from sordino.releases.adaptive.file import TREE
from sordino.releases.adaptive.intervals import interval_of_counts
from sordino.releases.boxes import ends_of
from sordino.releases.frames import label_columns, made_frame
from sordino.releases.interval import Interval
from sordino.workloads import Workload
from sordino.workloads.base import Array

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from sordino.mechanisms.adaptive.trees import TreeFit
    from sordino.mechanisms.catalogue import Law

__all__ = ["TreeNodes", "TreeRelease"]

_T = TypeVar("_T")


@dataclass(frozen=True, eq=False)
class TreeNodes:
    """The nodes of a tree, level by level, the top first.

    Attributes:
        boxes: First and last cell on every axis, both included, shape (nodes, axes, 2).
        depths: Levels below the top, shape (nodes,).
        counts: What the table has in each: not negative, and adding up.
        unbiased: The last count with noise of each node that was not divided, which alone is unbiased given where the
            tree has grown: what decided on a division has none, since nodes are divided more often when their noise is
            high. Not-a-number for the others; of a full tree, which decides on nothing, all have one but the top.
        stderr: Standard deviation of its noise; not-a-number where there is none.
    """

    boxes: NDArray[np.int64]
    depths: NDArray[np.int64]
    counts: Array
    unbiased: Array
    stderr: Array
    _law: Law = field(repr=False)

    def interval(self, level: float, *, simultaneous: bool = False) -> Interval:
        """Return confidence intervals for the true counts of the nodes that have an unbiased one; else not-a-number.

        Exact, given where the tree has grown, up to the clamping of cells.

        Args:
            level: Strictly between 0 and 1.
            simultaneous: Whether all intervals shall hold together with this probability.

        Raises:
            InvalidParameterError: The level is out of range.
        """
        return interval_of_counts(self.unbiased, self.stderr, self._law, level, simultaneous)


@dataclass(frozen=True, eq=False)
class TreeRelease:
    """A published tree: queries of its table cost no privacy.

    Attributes:
        fit: How it was made.
        measured: What was published, noisy counts of nodes.
        index: Row labels of the input, where it had any.
        private: False only under `sordino.testing.deterministic_noise`.
        accounted: Whether a ledger was charged.
        other: What `values` answer, if it is not the plan's workload.
    """

    fit: TreeFit
    measured: _core.Measured = field(repr=False)
    index: Any = field(default=None, repr=False)
    private: bool = True
    accounted: bool = False
    other: Workload | None = None

    @property
    def workload(self) -> Workload:
        """What `values` answer."""
        return self.fit.request.workload if self.other is None else self.other

    @property
    def rmse_kind(self) -> str:
        """'noise only': what is spread evenly where the tree has not grown comes on top."""
        return self.fit.rmse_kind

    @cached_property
    def _grown(self) -> _core.GrownTree:
        return self.fit.door.grown(self.measured)

    @cached_property
    def cells(self) -> Array:
        """The table, in the shape of the input: not negative; the count of a leaf is spread evenly over its cells."""
        cells = self._grown.cells().reshape(self.fit.request.workload.input_shape)
        cells.flags.writeable = False
        return cells

    @cached_property
    def nodes(self) -> TreeNodes:
        """Where the tree has grown, and what was measured there."""
        axes = len(self.fit.axes)
        ends = self._grown.regions().reshape(-1, 2, 2)  # node, first or end, axis
        boxes = np.stack([ends[:, 0], ends[:, 1] - 1], axis=2)[:, 2 - axes :]
        unbiased, variances = self._grown.undecided()
        law = self.fit.mechanism.law
        return TreeNodes(boxes, self._grown.depths(), self._grown.counts(), unbiased, np.sqrt(variances), law)

    @cached_property
    def values(self) -> Array:
        """The answers, read off the table.

        Raises:
            UnsupportedMechanismError: There are more than 2**26: ask for some by `sum`.
        """
        workload = self.workload
        if not workload.is_listed:
            raise UnsupportedMechanismError("more than 2**26 answers are not listed: ask for some by sum")
        values = workload.core.apply(np.ascontiguousarray(self.cells).reshape(-1))
        return values.reshape(workload.answers_shape)

    @property
    def labels(self) -> Any:
        """Labels of the cells where each answer belongs to one; else None."""
        if self.index is None or not self.workload.per_cell or len(self.index) != self.workload.core.answers_len:
            return None
        return self.index

    def answer(self, workload: Workload) -> TreeRelease:
        """Answer further queries of the same cells: free, as often as wanted.

        Raises:
            DataTypeError: No workload.
            ShapeError: Another number of cells.
            UnsupportedMechanismError: No linear query of the cells.
        """
        if not isinstance(workload, Workload):
            raise DataTypeError("answer takes a workload")
        if not workload.linear:
            raise UnsupportedMechanismError(f"{workload.kind} is no linear query of the cells")
        if workload.core.input_len != self.fit.request.workload.core.input_len:
            raise ShapeError("the workload has another number of cells than the table")
        return replace(self, other=None if workload == self.fit.request.workload else workload)

    def sum(self, boxes: object) -> Array:
        """Return sums of the cells in boxes of the table, shape (boxes,): free, as often as wanted.

        Args:
            boxes: First and last cell on every axis of the input, both included: integers, shape (boxes, axes, 2); with
                one axis also (boxes, 2).

        Raises:
            DataTypeError: Not integers.
            ShapeError: Another shape.
            InvalidParameterError: A box is empty, or not in the table.
        """
        shape = self.fit.request.workload.input_shape
        first, last = (ends.reshape(-1).tolist() for ends in ends_of(boxes, shape))
        return _core.box_sums(np.ascontiguousarray(self.cells).reshape(-1), list(shape), first, last)

    def query(self, f: Callable[[Array], _T]) -> _T:
        """Return any function of the table: free, as often as wanted.

        Args:
            f: Takes the table, in the shape of the input.

        Raises:
            DataTypeError: `f` is no function.
        """
        if not callable(f):
            raise DataTypeError("a query is a function of the table")
        return f(self.cells)

    def to_frame(self, *, library: str | None = None) -> Any:
        """Return the answers as a frame, one row for each, under what they are called.

        Args:
            library: 'pandas', 'polars' or 'pyarrow'; the first of them that is installed if None.

        Raises:
            MissingDependencyError: The library is not installed.
            UnsupportedMechanismError: There are more than 2**26 answers.
        """
        return made_frame(label_columns(self) | {"value": self.values.reshape(-1)}, library)

    def save(self, path: str | Path) -> Path:
        """Write plan and tree as JSON, large arrays in an `.npz` beside it.

        Raises:
            InputFileError: The file cannot be written.
        """
        return TREE.save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> TreeRelease:
        """Read a tree: further answers are free, as before. The plan is fitted again.

        Raises:
            InputFileError: The file cannot be read.
            PlanFileError: It is no tree, was altered, or does not fit its plan.
        """
        return TREE.load(path, cls)

    def plot(self, path: str | Path | None = None, *, ax: Any = None) -> Any:
        """Draw the table with the leaves of the tree: a line as steps, two axes as a map.

        Args:
            path: Where to save the picture, None to only return it.
            ax: matplotlib's axes to draw into, in place of a figure of its own.

        Returns:
            The matplotlib figure.

        Raises:
            MissingDependencyError: matplotlib is not installed.
        """
        return drawn("tree", self, path, ax=ax)

    def _repr_html_(self) -> str:
        facts = [
            *self.fit.facts(self.private),
            ("nodes", f"{len(self.nodes.depths):,} measured over {self.cells.size:,} cells"),
        ]
        return card(repr(self.workload), facts)
