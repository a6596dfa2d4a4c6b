"""A stream of events before it is opened: counters, noise, expected error, what the guarantee rests on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sordino import _core
from sordino.errors import DataTypeError, InvalidParameterError, PlanFileError, SordinoError
from sordino.plans.stream import StreamPlan
from sordino.privacy.ledger import opened
from sordino.workloads.events.base import EventWorkload

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sordino.plans.stream_planner import StreamComparison
    from sordino.privacy.costs import Cost
    from sordino.privacy.guarantees import Privacy
    from sordino.privacy.ledger import Ledger
    from sordino.privacy.units import Unit
    from sordino.storage.steps import StepStore
    from sordino.streams.events import EventStream
    from sordino.workloads.base import Array

__all__ = ["EventPlan", "Reads"]

Reads = Literal["dense", "lazy"]


@dataclass(frozen=True, eq=False)
class EventPlan:
    """How counts of events will be published: made by `sordino.plan_stream`, costs nothing.

    Attributes:
        workload: What is counted.
        counters: The plan of the running sums, all of them together, in counted units.
        reads: 'dense': every counter is published at every step. 'lazy': what would be published is computed when it is
            read; nothing else is different, except that there are no checkpoints.
    """

    workload: EventWorkload
    counters: StreamPlan = field(repr=False)
    reads: Reads = "dense"

    @property
    def privacy(self) -> Privacy:
        """What everything that the stream publishes guarantees together."""
        return self.counters.privacy

    @property
    def unit(self) -> Unit:
        """For whom, in units of the workload: an edge, a vertex, a letter."""
        return self.counters.unit

    @property
    def cost(self) -> Cost:
        """What the whole stream costs: charged once, when it is opened."""
        return self.counters.cost

    @property
    def mechanism(self) -> str:
        """Full name of the mechanism of the counters."""
        return self.counters.mechanism

    @property
    def coordinates(self) -> int:
        """Number of counters."""
        return self.workload.coordinates

    @property
    def steps(self) -> int:
        """Steps that may be published."""
        return self.counters.steps

    @property
    def horizon(self) -> str:
        """'hard', 'soft' or 'unbounded', as of a `StreamPlan`."""
        return self.counters.horizon

    @property
    def sensitivity(self) -> float:
        """Bound of what neighbours differ by in the measured norm, over the norm of one column of the strategy."""
        single = self.counters.fitted.plan.sensitivity([(1, 1, 1, 1, 1, 1)])
        return self.counters.fitted.door.sensitivity[0] / single * self.workload.counted_unit

    @property
    def needs(self) -> str:
        """The property of the strategy that the sensitivity uses."""
        if self.counters.fitted.mechanism.law == "laplace":
            return "general"  # the l1 norm of all changes
        return self.workload.needs(self.counters.fitted.plan)

    @property
    def rmse(self) -> float:
        """Root mean squared error of a counter over the steps."""
        return self.counters.rmse * self.workload.counted_unit

    @property
    def max_stderr(self) -> float:
        """Largest standard deviation of a counter over the steps."""
        return self.counters.max_stderr * self.workload.counted_unit

    def std(self, steps: Sequence[int] | np.ndarray[Any, Any]) -> Array:
        """Return the standard deviation of every counter at each of these steps, from 1.

        Raises:
            DataTypeError: No integers.
            InvalidParameterError: A step is below 1 or beyond the horizon.
        """
        return self.counters.std(steps) * self.workload.counted_unit

    def half_width(self, steps: Sequence[int] | np.ndarray[Any, Any], level: float, answers: int = 1) -> Array:
        """Return half widths of intervals of a counter at these steps, of which `answers` must hold together.

        Raises:
            InvalidParameterError: The level or a step is out of range.
        """
        return self.counters.half_width(steps, level, answers) * self.workload.counted_unit

    @property
    def promise(self) -> str:
        """The guarantee for one unit, without the unit: '1-differential privacy'."""
        return self.counters.promise

    def guarantee(self) -> str:
        """Return the guarantee in one plain sentence."""
        said = self.workload.protected(self.unit).rstrip(",")
        return f"{said}, is protected by {self.counters.promise}, by everything that the stream publishes together."

    def open(
        self, ledger: Ledger | None = None, *, request_id: str | None = None, store: StepStore | None = None
    ) -> EventStream:
        """Open the stream: the budget of all its steps is charged now.

        Args:
            ledger: Where the cost is charged; None leaves the stream unaccounted.
            request_id: Name of the request, charged at most once.
            store: Where published steps are kept, for checkpoints of `EventStream.counters`; dense only.

        Raises:
            DataTypeError: The ledger is no ledger.
            InvalidParameterError: Noise is deterministic and a ledger is given; a lazy stream is given a store.
            BudgetExceededError: The ledger's total would be exceeded.
            UnsupportedCostError: The ledger cannot count this event.
            DuplicateRequestError: The request was charged before.
            EntropyError: The operating system gives no randomness; the budget stays charged.
        """
        if self.reads != "dense" and store is not None:
            raise InvalidParameterError("what is read lazily is not stored step by step: plan with reads='dense'")

        from sordino.streams.counter import Stream, open_stream  # noqa: PLC0415 - plans open streams

        def stream(key: bytes | None) -> EventStream:
            fitted, counters = self.counters.fitted, self.counters
            if self.reads == "dense":
                return self.workload.open(self, open_stream(counters, store, key))
            lazy = self.workload.open(self, _core.LazyStream(fitted.plan, fitted.door, self.coordinates, key))
            lazy.private = key is None
            return lazy

        made = opened(ledger, request_id, self.cost, self.unit.label, stream)
        if isinstance(made.counters, Stream):
            made.counters.accounted = made.accounted  # what a checkpoint says
        return made

    def attach(self, counters: object, replay: object) -> EventStream:
        """Go on with counters that `sordino.restore` brought back.

        The events so far are not in the checkpoint: `replay` takes them in again. Nothing is published by that.

        Args:
            counters: What `sordino.restore` returned.
            replay: A function of a stream that calls its `update` with the events up to the checkpoint, as they were.

        Raises:
            DataTypeError: They are no stream, or `replay` cannot be called.
            InvalidParameterError: The counters are those of another plan, or other steps were taken in.
        """
        from sordino.streams.counter import Stream  # noqa: PLC0415 - plans open streams

        if not isinstance(counters, Stream):
            raise DataTypeError("counters must be what sordino.restore returned")
        if not callable(replay):
            raise DataTypeError("replay must be a function of a stream")
        if counters.plan.digest != self.counters.digest:
            raise InvalidParameterError("these counters belong to another plan")
        if counters._whole:
            raise InvalidParameterError("these counters belong to a stream of events already: restore them anew")
        stream = self.workload.open(self, counters)
        try:
            stream.replay(replay)
        except BaseException:
            counters._whole = False  # it may be tried again
            raise
        return stream

    def save(self, path: str | Path) -> Path:
        """Write the plan as JSON.

        Raises:
            InputFileError: The file cannot be written.
        """
        return self.counters.save(path)

    @staticmethod
    def load(path: str | Path) -> EventPlan:
        """Read a plan and verify it: the noise is fitted again, and a plan that stores less is refused.

        Raises:
            InputFileError: The file cannot be read.
            PlanFileError: The file is no plan of events, was altered, or understates noise or cost.
        """
        counters = StreamPlan.load(path)
        request = counters.request
        if request.events is None:
            raise PlanFileError("this is a plan of a plain stream: StreamPlan.load")
        from sordino.plans.events_planner import checked_plan  # noqa: PLC0415 - it makes plans

        try:
            return checked_plan(request.events, counters)
        except SordinoError as error:
            raise PlanFileError(f"the plan's counters are not those of its events: {error}") from None

    def compare(self) -> StreamComparison:
        """Return the expected errors of every mechanism for the same counters, in the unit of the workload."""
        from sordino.plans.stream_planner import compare_request  # noqa: PLC0415 - it makes plans

        return compare_request(self.counters.request)

    def explain(self) -> str:
        """Return what will happen and why, in a few lines of text."""
        bounds = f"{self.sensitivity:.6g} times that of one count ({self.needs})"
        lines = [
            repr(self.workload),
            f"mechanism      {self.mechanism}, {self.coordinates} counter{'s' if self.coordinates > 1 else ''}",
            f"guarantee      {self.guarantee()}",
            f"sensitivity    {bounds}",
            f"error          rmse {self.rmse:.6g}, largest standard error {self.max_stderr:.6g}, of a counter",
        ]
        if self.reads == "lazy":
            operations = self.counters.fitted.plan.read_operations(self.counters.request.judged)
            lines.append(f"reads          lazy: {operations:.0f} operations for a counter after the last step")
        else:
            lines.append(f"reads          dense: every counter at every step, {self.counters.memory} bytes of state")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return (
            f"EventPlan({self.workload!r}, {self.privacy!r}, mechanism={self.mechanism!r}, reads={self.reads!r}, "
            f"rmse={self.rmse:.6g})"
        )
