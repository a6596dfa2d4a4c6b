"""Histograms after every step of a stream: a counter for each cell, for each step, or for each number of a sketch.

==============  ======================================================================================================
`per-cell`      a private running sum for each of the n cells
`compressive`   a private running sum for each of the k numbers of a sketch; the table is recovered when asked for
`per-item`      where step t fills cell t - 1 and no other: every cell gets noise once (parallel composition)
`differenced`   the same table as differences of one running sum by a binary tree: what the paper compares itself with
==============  ======================================================================================================

A record adds one column of the sketch to the counters: `||Phi e_j||` is the square root of its entries (l1: their
number), so the counters *together* have that times the sensitivity of one. The guarantee covers all of them and all
steps.

Source: Li, Zhang, Winslett and Yang 2011, Section 5 (the continual compressive mechanism), with the joint sensitivity:
k counters that spend epsilon each, as printed there, spend k epsilon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from sordino import _core
from sordino._support.private_numbers import amounts_or, summed
from sordino._support.turns import Turn
from sordino._support.uncopied import Uncopied
from sordino.errors import (
    DataTypeError,
    InvalidParameterError,
    ShapeError,
    StreamClosedError,
    UnsupportedMechanismError,
)
from sordino.mechanisms.linear.compression import Compression, compression_within
from sordino.mechanisms.linear.recoveries import Progress, RecoveryResult, hard_threshold, recover_sketch
from sordino.plans.stream import StreamPlan
from sordino.privacy.guarantees import PureDP
from sordino.privacy.ledger import opened
from sordino.releases.sketches import changes
from sordino.streams.counter import largest_entries
from sordino.workloads import RunningHistogram, RunningSum
from sordino.workloads.bases import Basis, basis_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from sordino.privacy.costs import Cost
    from sordino.privacy.guarantees import Privacy
    from sordino.privacy.ledger import Ledger
    from sordino.privacy.units import Unit
    from sordino.storage.steps import StepStore
    from sordino.streams.counter import Stream
    from sordino.workloads.base import Array

__all__ = ["HistogramStream", "HistogramStreamComparison", "HistogramStreamPlan", "compare_histogram_stream"]

# Bytes of a running sum, which is kept even where its noise is not.
_SUM = 8

Way = Literal["per-cell", "compressive", "per-item", "differenced"]


@dataclass(frozen=True, eq=False)
class HistogramStreamPlan:
    """How a changing histogram will be kept: made by `sordino.plan_stream`, costs nothing.

    Attributes:
        workload: Cells and steps.
        way: 'per-cell', 'compressive', 'per-item' or 'differenced'.
        counters: The plan of the running sums, all of them together.
        compression: What the sketch is and how the table is recovered from it.
        basis: In which `HistogramStream.estimate` looks for what is not noise, where all cells are counted.
        pan_private: Whether the state may be looked at once without harm.
    """

    workload: RunningHistogram
    way: Way
    counters: StreamPlan = field(repr=False)
    compression: Compression | None
    basis: Basis
    pan_private: bool = False

    @property
    def privacy(self) -> Privacy:
        """What everything that is published guarantees; with `pan_private`, together with one look at the state."""
        return self.counters.privacy

    @property
    def unit(self) -> Unit:
        """For whom: what one protected thing can change."""
        return self.counters.unit

    @property
    def cost(self) -> Cost:
        """What the whole stream costs."""
        return self.counters.cost

    @property
    def mechanism(self) -> str:
        """Full name, such as 'compressive: blt-gaussian'."""
        tree = "pan-private " if self.pan_private else ""
        return f"{self.way}: {tree}{self.counters.mechanism}"

    @property
    def numbers(self) -> int:
        """Private running sums: n, k or 1."""
        return self.counters.dim

    @property
    def memory(self) -> int:
        """Bytes of the state at the last step: independent of the number of cells for a sketch."""
        return max(self.counters.memory, _SUM * self.numbers)

    @cached_property
    def operator(self) -> _core.SketchOperator | None:
        """The sketch in the core."""
        return None if self.compression is None else self.compression.operator(self.workload.cells)

    def noise(self, step: int) -> float:
        """Standard deviation of the noise in each private number after a step.

        Raises:
            InvalidParameterError: The step is out of range.
        """
        # A pan-private node has noise before and after.
        return float(self.counters.std([step])[0]) * (math.sqrt(2.0) if self.pan_private else 1.0)

    def rmse(self, step: int) -> float:
        """Root mean squared error of the table after a step.

        For a sketch: of its noise alone, for data with no more coefficients than are recovered. Elsewhere exact, for
        the noisy table before any threshold.

        Raises:
            InvalidParameterError: The step is out of range.
        """
        noise = self.noise(step)
        match self.way:
            case "compressive":
                assert self.operator is not None
                assert self.compression is not None
                k, s = self.compression.sizes(self.workload.cells)
                return noise * math.sqrt(s * k / (k - s) / self.operator.column_entries / self.workload.cells)
            case "per-cell":
                return noise
            case "per-item":
                return float(self.counters.std([1])[0]) * math.sqrt(step / self.workload.cells)
            case "differenced":
                return self._difference(step) * math.sqrt(step / self.workload.cells)

    def _difference(self, step: int) -> float:
        """Root mean square of the noise in the differences of `step` sums of a binary tree.

        The sums of steps t - 1 and t share all nodes but the one that ends with t and those that it replaces, one for
        each trailing zero of t.
        """
        steps = np.arange(1, step + 1)
        zeros = np.log2(steps & -steps)
        return float(self.counters.std([1])[0]) * math.sqrt(float(1.0 + zeros.mean()))

    @property
    def promise(self) -> str:
        """The guarantee for one unit, without the unit: '1-differential privacy'."""
        return self.counters.promise

    def guarantee(self) -> str:
        """Return the guarantee in one plain sentence."""
        looks = " together with one look at the state" if self.pan_private else ", but not by its state: that is secret"
        return f"{self.counters.guarantee()[:-1]}, by everything that the stream publishes{looks}."

    def open(
        self, ledger: Ledger | None = None, *, request_id: str | None = None, store: StepStore | None = None
    ) -> HistogramStream:
        """Open the stream: the budget of all its steps is charged now.

        Args:
            ledger: Where the cost is charged; None leaves the stream unaccounted.
            request_id: Name of the request, charged at most once.
            store: Where published steps are kept, for checkpoints of `HistogramStream.counters`.

        Raises:
            DataTypeError: The ledger is no ledger.
            InvalidParameterError: Noise is deterministic and a ledger is given; a pan-private stream is given a store.
            BudgetExceededError: The ledger's total would be exceeded.
            UnsupportedCostError: The ledger cannot count this event.
            DuplicateRequestError: The request was charged before.
            EntropyError: The operating system gives no randomness; the budget stays charged.
        """
        if not self.pan_private:
            return HistogramStream(self, self.counters.open(ledger, request_id=request_id, store=store))
        if store is not None:
            raise InvalidParameterError("a pan-private stream keeps no key: it has no checkpoints and needs no store")
        fitted, dim = self.counters.fitted, self.counters.dim

        def tree(key: bytes | None) -> HistogramStream:
            return HistogramStream(self, _core.PanPrivateTree(fitted.plan, fitted.door, dim, key), private=key is None)

        return opened(ledger, request_id, self.cost, self.unit.label, tree)

    def attach(self, counters: Stream) -> HistogramStream:
        """Go on with counters that `sordino.restore` brought back.

        Cells, basis and seed of a sketch are not in the checkpoint: they must be those of the plan that made it.

        Raises:
            DataTypeError: They are no stream.
            InvalidParameterError: They are not those of this plan.
            UnsupportedMechanismError: The way publishes differences: the sums before the checkpoint are not in it.
        """
        from sordino.streams.counter import Stream  # noqa: PLC0415 - most plans open none

        if not isinstance(counters, Stream):
            raise DataTypeError("counters must be what sordino.restore returned")
        if self.way in {"per-item", "differenced"}:
            raise UnsupportedMechanismError(f"{self.way} keeps what it published, which is not in a checkpoint")
        if self.pan_private or counters.plan.digest != self.counters.digest:
            raise InvalidParameterError("these counters belong to another plan")
        return HistogramStream(self, counters)

    def explain(self) -> str:
        """Return what will happen and why, in a few lines of text."""
        last = self.workload.length or 2**20
        lines = [
            repr(self.workload),
            f"mechanism      {self.mechanism}, {self.numbers} private running sums",
            f"guarantee      {self.guarantee()}",
            f"error          rmse {self.rmse(last):.6g} of a cell after step {last}"
            + (", noise only" if self.way == "compressive" else ""),
            f"state          {self.memory} bytes",
        ]
        if self.compression is not None and self.way == "compressive":
            measurements, sparsity = self.compression.sizes(self.workload.cells)
            lines.append(
                f"sketch         {self.compression.sketch}, {measurements} numbers in place of {self.workload.cells}, "
                f"{sparsity} coefficients recovered in the {self.compression.transform.name} basis"
            )
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"HistogramStreamPlan({self.workload!r}, {self.privacy!r}, mechanism={self.mechanism!r})"


class HistogramStream(Uncopied):
    """An open stream of a changing histogram; `HistogramStreamPlan.open` makes it.

    Its state is as secret as the data, unless it is pan-private. It belongs to one process.

    Attributes:
        plan: How it was planned.
        counters: The private running sums: a `sordino.Stream`, or a tree of the core if pan-private.
        private: False only under `sordino.testing.deterministic_noise`.
        accounted: Whether a ledger was charged.
    """

    def __init__(
        self, plan: HistogramStreamPlan, counters: Stream | _core.PanPrivateTree, private: bool | None = None
    ) -> None:
        self.plan = plan
        self.counters = counters
        if not isinstance(counters, _core.PanPrivateTree):
            counters._whole = True
        self.private: bool = getattr(counters, "private", True) if private is None else private
        self.accounted: bool = getattr(counters, "accounted", False)
        self._guard = Turn("this stream belongs to another process")
        # Differences of sums are what was published of each cell: those of the counters, as far as they were read.
        self._sums: list[float] = []

    @property
    def step(self) -> int:
        """Steps published so far."""
        return self.counters.step

    @property
    def closed(self) -> bool:
        """Whether the stream was closed."""
        return self.counters.closed

    @property
    def pending(self) -> bool:
        """Whether the last step was released and not stored: `resume` stores it."""
        return getattr(self.counters, "pending", False)

    def resume(self) -> None:
        """Store the last step after the store failed, or an interruption.

        Raises:
            StepStoreError: The store failed again.
            InvalidParameterError: Every step was stored.
            ForkError: The stream belongs to another process.
        """
        with self._guard():
            if isinstance(self.counters, _core.PanPrivateTree):
                raise InvalidParameterError("there is nothing to resume: a pan-private stream has no store")
            self.counters.resume()
            self._catch_up()

    def update(self, cells: object, counts: object = None) -> None:
        """Publish the next step.

        Args:
            cells: What the step changes: an integer or an array of them; with `once`, the count of the next cell. A
                cell that does not exist is a null item: the step passes, nothing is said.
            counts: By how much, for each of them: integers, negative to take records away; 1 if None. Clamped.

        Raises:
            DataTypeError: Not integers.
            ShapeError: Another number of counts; with `once`, not one count.
            HorizonError: No steps are left.
            StreamClosedError: The stream was closed.
            ForkError: The stream belongs to another process.
            StepStoreError: The store did not keep the step; call `resume`.
        """
        with self._guard():
            if self.counters.closed:
                raise StreamClosedError("this stream is closed; nothing was released")
            self._catch_up()
            self._publish(cells, counts)
            self._catch_up()

    def _catch_up(self) -> None:
        """Read the sum that was published last, if it was not: after an exception, or `counters.resume`.

        Raises:
            InvalidParameterError: The counters were updated on their own.
        """
        if self.plan.way not in {"per-item", "differenced"} or len(self._sums) == self.step:
            return
        if len(self._sums) + 1 < self.step:
            raise InvalidParameterError("the counters of this stream were updated on their own: its table is lost")
        self._sums.append(float(np.asarray(self.counters.value).reshape(-1)[0]))  # type: ignore[union-attr]

    def _publish(self, cells: object, counts: object) -> None:
        plan = self.plan
        amounts: NDArray[np.int64] | None
        if plan.workload.once:
            amounts = np.atleast_1d(amounts_or("cells", cells))
            if counts is not None or amounts.shape != (1,):
                raise ShapeError("with once=True a step is one count: that of the next cell")
            places = np.array([min(self.step, plan.workload.cells - 1)])
        else:
            places, amounts = changes(cells, counts)
        if plan.way in {"per-item", "differenced"}:
            assert amounts is not None
            row = amounts
        elif plan.operator is not None and plan.way == "compressive":
            sketch = _core.Sketch(plan.operator)
            sketch.update(places, amounts)
            row = sketch.sums()
        else:
            row = summed(places, amounts, plan.workload.cells)
        if isinstance(self.counters, _core.PanPrivateTree):
            self.counters.update(row)
        else:
            self.counters.update(row.reshape(1, -1) if plan.numbers > 1 else row)

    @property
    def sums(self) -> Array:
        """The private numbers published last: of the sketch, of the cells, or of all so far; zeros at first."""
        if isinstance(self.counters, _core.PanPrivateTree):
            return self.counters.answers()
        if self.step == 0:
            return np.zeros(self.plan.numbers)
        return np.atleast_1d(np.asarray(self.counters.value))

    def noisy(self) -> Array:
        """Return the noisy table before any estimate, shape (cells,).

        Raises:
            UnsupportedMechanismError: Only a sketch is kept: use `estimate`.
        """
        plan = self.plan
        if plan.way == "compressive":
            raise UnsupportedMechanismError("a sketch has no noisy cells: use estimate()")
        if plan.way == "per-cell":
            return self.sums
        with self._guard():
            self._catch_up()
        table = np.zeros(plan.workload.cells)
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
        plan = self.plan
        if compression is not None and not isinstance(compression, Compression):
            raise DataTypeError("compression must be a sordino.Compression")
        if self.step == 0:
            raise InvalidParameterError("nothing was published yet")
        cells = plan.workload.cells
        if plan.way == "compressive":
            own = compression or plan.compression
            assert own is not None
            if own.operator(cells) != plan.operator:
                raise InvalidParameterError("recover with the sketch that was measured: same kind, seed and size")
            own = own if basis is None else replace(own, basis=basis_of(basis))
            return recover_sketch(own, cells, self.sums, plan.noise(self.step), progress)
        noise = plan.noise(self.step)
        if plan.way == "per-item":
            noise = float(plan.counters.std([1])[0])
        elif plan.way == "differenced":
            noise = plan._difference(self.step)
        return hard_threshold(self.noisy(), plan.basis if basis is None else basis_of(basis), noise)

    def top(self, count: int) -> tuple[NDArray[np.int64], Array]:
        """Return the cells with the largest noisy counts, and these, the largest first: free, as often as wanted.

        From a sketch by the recovered table.

        Args:
            count: How many, at most the number of cells.

        Raises:
            DataTypeError: No integer.
            InvalidParameterError: Out of range, or nothing was published yet.
        """
        table = self.estimate().values if self.plan.way == "compressive" or self.step == 0 else self.noisy()
        return largest_entries(table, count)

    def close(self) -> None:
        """Wipe key and noise; the stream refuses everything from now on."""
        self.counters.close()

    def __enter__(self) -> HistogramStream:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<HistogramStream {self.plan.mechanism}: step {self.step}>"


def _check_pan_private(workload: RunningHistogram, mechanism: str, horizon: str | None) -> None:
    """Refuse what no pan-private stream can do, before any budget is charged.

    Raises:
        UnsupportedMechanismError: Another mechanism than the tree, or no last step.
    """
    if mechanism not in {"auto", "binary-tree"}:
        raise UnsupportedMechanismError("only a binary tree is pan-private: mechanism='binary-tree' or 'auto'")
    if horizon not in {"hard", None} or workload.length is None:
        raise UnsupportedMechanismError("a pan-private stream needs a length, and ends there: horizon='hard'")


def plan_histogram_stream(
    workload: RunningHistogram,
    plan_counters: Callable[..., StreamPlan],
    *,
    mechanism: str,
    compression: Compression | None,
    basis: Basis | str,
    memory: int | None,
    pan_private: bool,
    options: dict[str, Any],
) -> HistogramStreamPlan:
    """Plan the counters of a changing histogram.

    `auto` counts every cell (with `once`, every cell once), which has less error on all data that was tried; a sketch
    is taken where `compression` is given, or `memory` leaves no room for the counters of all cells.

    Raises:
        InvalidParameterError: An argument is out of range.
        UnsupportedMechanismError: No mechanism serves.
    """
    if compression is not None and not isinstance(compression, Compression):
        raise DataTypeError("compression must be a sordino.Compression")
    if compression is not None and not compression.made:
        raise InvalidParameterError(
            "a stream cannot choose its sparsity from data that is still to come: give a number"
        )
    if options["dim"] != 1 or options["touched"] != 1 or options["signed"] or not options["integral"]:
        raise InvalidParameterError("a RunningHistogram has its own coordinates, and integer counts")
    if pan_private:
        _check_pan_private(workload, mechanism, options["horizon"])
        mechanism = "binary-tree"
    basis = basis_of(basis)
    sums = RunningSum(workload.length)

    def counters(way: Way) -> StreamPlan:
        asked = {**options, "mechanism": mechanism}
        if way == "per-item":
            laplace = plan_counters(sums, **{**asked, "mechanism": "identity-laplace"})
            if isinstance(options["privacy"], PureDP):
                return laplace
            gaussian = plan_counters(sums, **{**asked, "mechanism": "identity-gaussian"})
            return min(laplace, gaussian, key=lambda plan: float(plan.std([1])[0]))
        if way == "differenced":
            return plan_counters(sums, **{**asked, "mechanism": "binary-tree"})
        if way == "compressive":
            assert compression is not None
            operator = compression.operator(workload.cells)
            # A sparse column touches a few numbers, a dense one all.
            asked |= {"dim": operator.description[2], "touched": operator.column_entries, "signed": True}
            return plan_counters(sums, **asked)
        if workload.cells > 2**20:
            raise UnsupportedMechanismError("more than 2**20 counters: give a compression")
        return plan_counters(sums, **{**asked, "dim": workload.cells})

    way: Way = "compressive" if compression is not None else "per-cell"
    if mechanism in {"per-item", "differenced"}:
        if not workload.once:
            raise UnsupportedMechanismError(f"{mechanism} needs once=True: every step fills a cell of its own")
        way = "per-item" if mechanism == "per-item" else "differenced"
    elif workload.once and compression is None and mechanism == "auto" and not pan_private:
        way = "per-item"
    if memory is not None and way == "per-cell":
        one = max(plan_counters(sums, **{**options, "mechanism": mechanism}).memory, _SUM)
        if workload.cells * one > memory:
            way, compression = "compressive", compression_within(memory // one)
    if pan_private and way in {"per-item", "differenced"}:
        raise UnsupportedMechanismError("only counters of cells or of a sketch are pan-private")
    kept = compression if way == "compressive" else None
    (basis if kept is None else kept.transform).core(workload.cells)
    return HistogramStreamPlan(workload, way, counters(way), kept, basis, pan_private)


@dataclass(frozen=True)
class HistogramStreamComparison:
    """The ways to keep a changing histogram side by side, before anything is spent; sketches last.

    What a threshold or a recovery makes of the data cannot be said beforehand. On all data that was tried, noisy cells
    with a threshold had less error than a sketch: a sketch is for want of memory.

    Attributes:
        rows: For each: mechanism, rmse of a cell after the last step, rmse_kind ('exact', or 'noise only' for data that
            is sparse enough), private numbers, bytes of state.
        step: The last step.
        chosen: What `auto` takes.
        refused: Ways that do not serve, with the reason.
    """

    rows: tuple[dict[str, Any], ...]
    step: int
    chosen: str
    refused: dict[str, str]

    def __str__(self) -> str:
        lines = [f"{'mechanism':<44}{'rmse':>12}{'kind':>12}{'numbers':>10}{'bytes':>14}"]
        for row in self.rows:
            mark = " *" if row["mechanism"] == self.chosen else ""
            lines.append(
                f"{row['mechanism']:<44}{row['rmse']:>12.6g}{row['rmse_kind']:>12}{row['numbers']:>10}{row['bytes']:>14}"
                + mark
            )
        return "\n".join(lines)


def compare_histogram_stream(
    workload: RunningHistogram,
    plan: Callable[..., HistogramStreamPlan],
    compression: Compression | None,
    memory: int | None,
) -> HistogramStreamComparison:
    """Return the expected error and the state of every way to keep a changing histogram.

    Args:
        workload: Cells and steps.
        plan: Plans a way by the arguments `mechanism`, `compression` and `memory`.
        compression: Of the sketch; without one no sketch is shown.
        memory: What `auto` has room for.

    Raises:
        UnsupportedMechanismError: No way serves.
    """
    asked: dict[str, dict[str, Any]] = {"per-cell": {}}
    if workload.once:
        asked = {"per-item": {"mechanism": "per-item"}, "differenced": {"mechanism": "differenced"}}
        # Counters of all cells are not what `auto` means here.
        asked["per-cell"] = {"mechanism": "binary-tree"}
    if compression is not None:
        asked["compressive"] = {"compression": compression}
    refused: dict[str, str] = {}
    step = workload.length or 2**20
    rows = []
    for way, arguments in asked.items():
        try:
            made = plan(**arguments)
        except (UnsupportedMechanismError, InvalidParameterError) as error:
            refused[way] = str(error)
            continue
        kind = "noise only" if way == "compressive" else "exact"
        rows.append(
            {
                "mechanism": made.mechanism,
                "rmse": made.rmse(step),
                "rmse_kind": kind,
                "numbers": made.numbers,
                "bytes": made.memory,
            }
        )
    if not rows:
        raise UnsupportedMechanismError("no mechanism serves this stream and privacy: " + "; ".join(refused.values()))
    rows.sort(key=lambda row: (row["rmse_kind"] != "exact", row["rmse"]))
    return HistogramStreamComparison(tuple(rows), step, plan(memory=memory).mechanism, refused)
