"""An open stream of a changing histogram."""

from __future__ import annotations

import weakref
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sordino import _core
from sordino._support.private_numbers import amounts_or, summed
from sordino._support.protocols import TableLike
from sordino.errors import DataTypeError, InvalidParameterError, ShapeError, UnsupportedMechanismError
from sordino.mechanisms.linear.compression import Compression
from sordino.mechanisms.linear.recoveries import Progress, RecoveryResult, hard_threshold, recover_sketch
from sordino.releases.arrays import counts_of
from sordino.releases.sketches import changes
from sordino.streams.base import OverCounters
from sordino.streams.counter import largest_entries
from sordino.streams.steps import KeptSteps, encoded
from sordino.workloads.bases import Basis, basis_of

if TYPE_CHECKING:
    from sordino.mechanisms.stream.table import TableFit
    from sordino.streams.counter import Stream
    from sordino.workloads.base import Array

__all__ = ["HistogramStream"]

_IN_TURN = frozenset(("per-item", "differenced"))


class HistogramStream(OverCounters):
    """An open stream of a changing histogram; `StreamPlan.open` makes it.

    Its state is as secret as the data, unless it is pan-private. It belongs to one process.

    Attributes:
        fit: How it was planned.
        counters: The private running sums: a `sordino.Stream`, or a tree of the core if pan-private.
        private: False only under `sordino.testing.deterministic_noise`.
        accounted: Whether a ledger was charged.
    """

    def __init__(self, fit: TableFit, counters: Stream | _core.PanPrivateTree, private: bool | None = None) -> None:
        super().__init__(counters, private)
        self.fit: TableFit = fit
        # Differences of sums are what was published of each cell: those of the counters, as far as they were read.
        self._sums: list[float] = []
        steps = getattr(counters, "_steps", None)
        if isinstance(steps, KeptSteps):
            # Weak: what gives the row back must not keep this object.
            method = weakref.WeakMethod(self._also)
            steps.also = lambda: found() if (found := method()) is not None else None

    def update(self, cells: object, counts: object = None, *, step_id: str | int | None = None) -> None:
        """Publish the next step.

        Args:
            cells: What the step changes: an integer or an array of them; with `once`, the count of the next cell. A
                cell that does not exist is a null item: the step passes, nothing is said. Or the table of the step
                from `sordino.tables.Windows`.
            counts: By how much, for each of them: integers, negative to take records away; 1 if None. Clamped.
            step_id: Name of the step: given again, nothing is published. Needs a store; in a `sordino.Store` it may be
                an integer that grows.

        Raises:
            DataTypeError: Not integers.
            ShapeError: Another number of counts; with `once`, not one count.
            InvalidParameterError: A table of another step.
            UnitError: A table of another schema, or of a larger unit than the plan's.
            HorizonError: No steps are left.
            StreamClosedError: The stream was closed.
            ForkError: The stream belongs to another process.
            StepStoreError, StoreError: The store did not keep the step; call `resume`, or give it again under its name.
            StreamTakenError: The stream was taken over by somebody else; it is closed.
            StepForgottenError: The step was published so long ago that it is not kept.
        """
        with self._guard():
            self._check_open()
            self._catch_up()
            known = None
            if step_id is not None:
                if isinstance(self.counters, _core.PanPrivateTree):
                    raise InvalidParameterError("a pan-private stream has no store, so no step_id")
                known = self.counters._published_as(step_id)
            if known is None:
                self._publish(cells, counts, step_id)
            self._catch_up()

    def _catch_up(self) -> None:
        """Read the sum that was published last, if it was not: after an exception, or `counters.resume`.

        Raises:
            InvalidParameterError: The counters were updated on their own.
        """
        if self.fit.representation not in _IN_TURN or len(self._sums) == self.step:
            return
        if len(self._sums) + 1 < self.step:
            raise InvalidParameterError("the counters of this stream were updated on their own: its table is lost")
        self._sums.append(float(np.asarray(self.counters.value).reshape(-1)[0]))

    def _also(self) -> str | None:
        """Return the sums published so far, that of the step that is being stored included."""
        if self.fit.representation not in _IN_TURN:
            return None
        held = self.counters._core.held()
        return encoded(self._sums if held is None else [*self._sums, float(held[2][0])])

    def _sums_so_far(self, sums: list[float], behind: list[list[float]]) -> None:
        """Take over what was published before this object was made: sums, and answers of the steps behind them."""
        if self.fit.representation in _IN_TURN:
            self._sums = [*sums, *(value for answers in behind for value in answers)]

    def _publish(self, cells: object, counts: object, step_id: str | int | None) -> None:
        fit = self.fit
        amounts: NDArray[np.int64] | None
        if isinstance(cells, TableLike) and counts is None and not fit.workload.once:
            table = counts_of(cells, fit.request.unit, fit.request.workload, self.step)
            cells = np.flatnonzero(table)
            counts = table[cells]
        if fit.workload.once:
            amounts = np.atleast_1d(amounts_or("cells", cells))
            if counts is not None or amounts.shape != (1,):
                raise ShapeError("with once=True a step is one count: that of the next cell")
            places = np.array([min(self.step, fit.workload.cells - 1)])
        else:
            places, amounts = changes(cells, counts)
        if fit.representation in _IN_TURN:
            assert amounts is not None
            row = amounts
        elif fit.operator is not None and fit.representation == "compressive":
            sketch = _core.Sketch(fit.operator)
            sketch.update(places, amounts)
            row = sketch.sums()
        else:
            row = summed(places, amounts, fit.workload.cells)
        if isinstance(self.counters, _core.PanPrivateTree):
            self.counters.update(row)
        else:
            self.counters.update(row.reshape(1, -1) if fit.numbers > 1 else row, step_id=step_id)

    @property
    def sums(self) -> Array:
        """The private numbers published last: of the sketch, of the cells, or of all so far; zeros at first."""
        if isinstance(self.counters, _core.PanPrivateTree):
            return self.counters.answers()
        if self.step == 0:
            return np.zeros(self.fit.numbers)
        return np.atleast_1d(np.asarray(self.counters.value))

    def noisy(self) -> Array:
        """Return the noisy table before any estimate, shape (cells,).

        Raises:
            UnsupportedMechanismError: Only a sketch is kept: use `estimate`.
        """
        fit = self.fit
        if fit.representation == "compressive":
            raise UnsupportedMechanismError("a sketch has no noisy cells: use estimate()")
        if fit.representation == "per-cell":
            return self.sums
        with self._guard():
            self._catch_up()
        table = np.zeros(fit.workload.cells)
        table[: len(self._sums)] = np.diff(self._sums, prepend=0.0)
        return table

    def estimate(
        self,
        basis: Basis | str | None = None,
        *,
        compression: Compression | None = None,
        progress: Progress | None = None,
    ) -> RecoveryResult:
        """Return the table so far: free, as often as wanted.

        From a sketch the sparse table that explains it; otherwise what is not noise in the basis.

        Args:
            basis: In place of the plan's.
            compression: With another sparsity or recovery than the plan's, of the same sketch.
            progress: Called with (iteration, residual); returning False ends a recovery with the best so far.

        Raises:
            DataTypeError: The compression or the basis is none.
            InvalidParameterError: Nothing was published yet, or the compression is of another sketch.
        """
        fit = self.fit
        if compression is not None and not isinstance(compression, Compression):
            raise DataTypeError("compression must be a sordino.sketches.Compression")
        if self.step == 0:
            raise InvalidParameterError("nothing was published yet")
        cells, law = fit.workload.cells, fit.counters.mechanism.law
        if fit.representation == "compressive":
            own = compression or fit.compression
            assert own is not None
            if own.operator(cells) != fit.operator:
                raise InvalidParameterError("recover with the sketch that was measured: same kind, seed and size")
            own = own if basis is None else replace(own, basis=basis_of(basis))
            return recover_sketch(own, cells, self.sums, fit.noise_at(self.step), law, progress)
        chosen = fit.request.basis if basis is None else basis_of(basis)
        # Differences of a tree: a node is in two of them, one is made of log n nodes, so that the largest eigenvalue of
        # their covariance is at most so many times their mean variance.
        independent = cells // (cells.bit_length() + 2) if fit.representation == "differenced" else None
        return hard_threshold(self.noisy(), chosen, fit.noise_of_cells(self.step), law, independent)

    def top(self, count: int) -> tuple[NDArray[np.int64], Array]:
        """Return the cells with the largest noisy counts, and these, the largest first: free, as often as wanted.

        From a sketch by the recovered table.

        Args:
            count: How many, at most the number of cells.

        Raises:
            DataTypeError: No integer.
            InvalidParameterError: Out of range, or nothing was published yet.
        """
        table = self.estimate().values if self.fit.representation == "compressive" or self.step == 0 else self.noisy()
        return largest_entries(table, count)
