"""Published answers with their errors and intervals, and further ones from the same measurements."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sordino import _core
from sordino._support.checks import flag
from sordino.errors import DataTypeError, UnsupportedMechanismError
from sordino.mechanisms.linear.half_widths import answer_half_widths
from sordino.mechanisms.linear.projections import Projection
from sordino.mechanisms.linear.recoveries import RecoveryResult
from sordino.releases.boxes import BoxSums, box_rows, box_sums
from sordino.releases.consistent.report import Consistency
from sordino.releases.interval import Interval, interval_around
from sordino.workloads import Matrix, Workload
from sordino.workloads.base import Array

if TYPE_CHECKING:
    from sordino.mechanisms.linear.fit import LinearFit

__all__ = ["Answers"]


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers as they were measured, with their errors; what else follows from them has `Release`.

    Attributes:
        fit: How they were made, with its sparsity chosen.
        index: Row labels of the input, where it had any; `labels` are those of the answers.
        private: False only under `sordino.testing.deterministic_noise`.
        accounted: Whether a ledger was charged.
        post_processing: Methods applied to `values`, in order.
        workload: What `values` answer: the plan's workload, or the one given to `answer`.
        projection: How `values` were projected onto the plan's constraint, None if they were not.
        recovery: The sparse table that was recovered, for mechanisms that look for one.
        asked: The fit as it was asked for, before any choice.
        consistency: How `values` were made consistent, None if they were not.
    """

    fit: LinearFit
    measured: _core.Measured = field(repr=False)
    _values: Array | None = field(repr=False)
    index: Any = field(default=None, repr=False)
    private: bool = True
    accounted: bool = False
    post_processing: tuple[str, ...] = ()
    other: Workload | None = None
    projection: Projection | None = field(default=None, repr=False)
    recovery: RecoveryResult | None = field(default=None, repr=False)
    asked: LinearFit | None = field(default=None, repr=False)
    consistency: Consistency | None = field(default=None, repr=False)
    _unbiased: Array | None = field(default=None, repr=False)
    _stderr: Array | None = field(default=None, repr=False)

    @classmethod
    def of_measured(  # noqa: PLR0917 - what a release is made of
        cls,
        fit: LinearFit,
        measured: _core.Measured,
        index: Any,
        private: bool,
        accounted: bool,
        asked: LinearFit | None,
    ) -> Self:
        """Return the answers as they were measured; a sketch has none before its table is recovered."""
        values: Array | None = None
        if fit.request.workload.is_listed:
            shape = fit.request.workload.answers_shape
            sketched = not fit.has_intervals
            values = np.full(shape, np.nan) if sketched else _core.decode(fit.strategy, measured).reshape(shape)
        return cls(fit, measured, values, index, private, accounted, asked=asked)

    def finished(self) -> Self:
        """Return what the mechanism makes of what was measured: of plain answers, these."""
        return self

    @property
    def values(self) -> Array:
        """The answers, perhaps post-processed.

        Raises:
            UnsupportedMechanismError: There are more than 2**26: ask for some by `sum` or `answer`.
        """
        if self._values is None:
            raise UnsupportedMechanismError("more than 2**26 answers are not listed: ask for some by sum or answer")
        return self._values

    @property
    def workload(self) -> Workload:
        """What `values` answer."""
        return self.fit.request.workload if self.other is None else self.other

    @property
    def rmse_kind(self) -> str:
        """What `fit.rmse` says of `values`: 'exact' or an 'upper bound' as it was planned, or of the 'noise only'.

        Answers that were made consistent keep an upper bound where a theorem says so: with a public total, in the
        answers' own norm, shrunk under Gaussian noise alone, and not made whole.
        """
        if not self.post_processing:
            return self.fit.rmse_kind if self.other is None else "noise only"
        report = self.consistency
        kept = report is not None and report.never_worse and report.whole is None and self.other is None
        return "upper bound" if kept and self.post_processing == ("consistent",) else "noise only"

    @property
    def labels(self) -> Any:
        """Names of the queries, or labels of the cells where each answer belongs to one; else None."""
        if self.workload.answer_names is not None:
            return list(self.workload.answer_names)
        first = self.workload.first_step
        if self.index is None or not self.workload.per_cell or len(self.index) != first + self.values.size:
            return None
        return self.index[first:] if first else self.index

    @property
    def unbiased(self) -> Array:
        """The answers before any post-processing: unbiased, up to the clamping of cells beyond `max_value`.

        Raises:
            UnsupportedMechanismError: Only a sketch was measured: it has no unbiased answers.
        """
        if not self.fit.has_intervals:
            raise UnsupportedMechanismError("a sketch has no unbiased answers, and no intervals around them")
        return self.values if self._unbiased is None else self._unbiased

    @property
    def stderr(self) -> Array:
        """Standard deviation of the noise in `unbiased`, in the shape of the answers; no bias by clamping.

        Raises:
            UnsupportedMechanismError: Only a sketch was measured.
        """
        return self.fit.answers_stderr if self._stderr is None else self._stderr

    def interval(self, level: float, *, simultaneous: bool = False) -> Interval:
        """Return confidence intervals around `unbiased`.

        Exact for Gaussian noise and single Laplace variates; a rigorous upper bound of the width for sums of
        Laplace variates. Simultaneous intervals use Sidak's inequality (Gaussian) or the union bound.

        Args:
            level: Strictly between 0 and 1.
            simultaneous: Whether all intervals shall hold together with this probability.

        Raises:
            InvalidParameterError: The level is out of range.
            UnsupportedMechanismError: Only a sketch was measured.
        """
        unbiased = self.unbiased
        answers = unbiased.size if flag("simultaneous", simultaneous) else 1
        stderr = np.ascontiguousarray(self.stderr).reshape(-1)
        width = answer_half_widths(self.fit, self.workload, stderr, level, answers).reshape(unbiased.shape)
        return interval_around(unbiased, width, level, simultaneous, rounding=self._rounding)

    @property
    def _rounding(self) -> Array | None:
        """A bound on rounding errors of answers decoded from numbers with discrete noise; None for other noise."""
        if self.fit.rows is None:
            return None
        # An answer with weights w of numbers y is off by less than this times |w| |y|, and |w| <= stderr/least.
        least = self.fit.door.noise * math.sqrt(self.fit.strategy.unit_variances().min())
        measured = self.measured.values()
        return self.stderr * (2.0**-46 * math.log2(len(measured) + 2.0) * float(np.linalg.norm(measured)) / least)

    def answer(self, workload: Workload) -> Self:
        """Answer further queries from the same measurements: free.

        Args:
            workload: Queries in the measured row space, on the same cells. Filters and marginals measured by
                `output` answer their own queries only.

        Returns:
            A release of the other answers, with their own standard errors.

        Raises:
            DataTypeError: No workload.
            ShapeError: Another number of cells.
            UnsupportedMechanismError: Outside the measured row space, too many rows, no linear query of the cells, or
                only a sketch was measured.
        """
        if not isinstance(workload, Workload):
            raise DataTypeError("answer takes a workload")
        fitted = self.fit
        if not fitted.has_intervals:
            raise UnsupportedMechanismError("a sketch has no unbiased answers: use query(f) on the recovered table")
        if workload == self.fit.request.workload:
            values = None
            if workload.is_listed:
                values = _core.decode(fitted.strategy, self.measured).reshape(workload.answers_shape)
            return replace(
                self,
                _values=values,
                other=None,
                _unbiased=None,
                _stderr=None,
                post_processing=(),
                projection=None,
                recovery=None,
                consistency=None,
            )
        if not workload.linear:
            raise UnsupportedMechanismError(
                f"{workload.kind} is no linear query of the cells: plan a release of its own"
            )
        cells = fitted.strategy.measured_len
        if fitted.mechanism.measures == "identity" and workload.core.input_len == cells:
            # Every cell was measured: the answers are those of the same noise, planned for the other workload.
            strategy = _core.Strategy(workload.core, "identity", fitted.mechanism.law)
            values, variances = _core.decode(strategy, self.measured), strategy.variances()
        else:
            values, variances = _core.answer(fitted.strategy, self.measured, workload.core)
        shape = workload.answers_shape
        return replace(
            self,
            _values=values.reshape(shape),
            other=workload,
            post_processing=(),
            projection=None,
            recovery=None,
            consistency=None,
            _unbiased=None,
            _stderr=(self.fit.door.noise * np.sqrt(variances)).reshape(shape),
        )

    def _processed(self, values: Array, name: str) -> Self:
        sketched = not self.fit.has_intervals
        unbiased = None if sketched else self.unbiased
        done = (*self.post_processing, name)
        return replace(self, _values=values, _unbiased=unbiased, post_processing=done, consistency=None)

    @cached_property
    def cells(self) -> Array:
        """The estimated table, in the shape of the input: recovered from a sketch, or what the answers are read off.

        Raises:
            UnsupportedMechanismError: Neither a sketch nor what determines the cells was measured.
        """
        shape = self.fit.request.workload.input_shape
        if self.recovery is not None:
            return self.recovery.values.reshape(shape)
        if self._estimate is None:
            raise UnsupportedMechanismError("this mechanism does not estimate cells")
        return self._estimate.reshape(shape)

    @cached_property
    def _estimate(self) -> Array | None:
        """The cells that unbiased answers are read off, flat, where what was measured determines them."""
        cells = self.fit.strategy.cells(self.measured)
        if cells is not None:
            cells.flags.writeable = False
        return cells

    @cached_property
    def _sums(self) -> Array | None:
        """The same; of cells that are measured as one their sum, in the place of the first: parts have no variance."""
        return self.fit.strategy.merged_cells(self.measured)

    def sum(self, boxes: object) -> BoxSums:
        """Return sums of the cells in boxes of the table, with their standard errors: free, as often as wanted.

        Also where the answers are too many to be listed. One call for many boxes is quicker than many calls.

        Args:
            boxes: First and last cell on every axis of the input, both included: integers, shape (boxes, axes, 2); with
                one axis also (boxes, 2).

        Raises:
            DataTypeError: Not integers.
            ShapeError: Another shape.
            InvalidParameterError: A box is empty, or not in the table.
            UnsupportedMechanismError: What was measured does not determine these sums, the workload sorts its cells, or
                only a sketch was measured.
        """
        workload = self.fit.request.workload
        if not workload.linear:
            raise UnsupportedMechanismError(f"{workload.kind} has no cells in their places: no sums over boxes")
        table = self._sums if self._estimate is None else self._estimate
        if table is not None:
            return box_sums(self.fit, table, boxes)
        found = self.answer(Matrix(box_rows(boxes, workload.input_shape)))
        return BoxSums(found.values, found.stderr, self.fit, np.zeros(0, dtype=np.int64))
