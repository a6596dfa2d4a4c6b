"""An open stream of events: what every kind of it has in common."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sordino import _core
from sordino._support.checks import flag, integers
from sordino.errors import (
    InvalidParameterError,
    StepConflictError,
    StepStoreError,
    StreamClosedError,
)
from sordino.streams.base import OverCounters, check_left

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

    from sordino.mechanisms.stream.fit import StreamFit
    from sordino.streams.counter import Stream
    from sordino.workloads.base import Array
    from sordino.workloads.events.base import EventWorkload

__all__ = ["EventStream", "step_ends"]

# Changes of dense counters that are laid out at once.
_LAID_OUT = 2**20


def step_ends(events: int, together: bool) -> NDArray[np.uint64]:
    """Return the index after the last event of every step.

    Raises:
        DataTypeError: `together` is neither True nor False.
    """
    if flag("together", together):
        return np.array([events], dtype=np.uint64)
    return np.arange(1, events + 1, dtype=np.uint64)


# Publishes some of the batch's events, the ends of their steps, and the step before the first.
_Publish: TypeAlias = "Callable[[slice, NDArray[np.uint64], int], object]"


class _Part(NamedTuple):
    """Steps that are published together: which of the batch's events are theirs, and where each step ends."""

    start: int
    events: slice
    ends: NDArray[np.uint64]
    publish: _Publish

    @property
    def end(self) -> int:
        """Its last step."""
        return self.start + len(self.ends)


class EventStream(OverCounters):
    """An open stream of events; `StreamPlan.open` makes it.

    Everything that it publishes satisfies the plan's guarantee together, also when events are chosen after seeing
    earlier answers. The events so far are kept: its state is as secret as they are. It belongs to one process.

    Attributes:
        fit: How it was planned.
        counters: The private running sums: a `sordino.Stream`, or what is read by coordinate.
        private: False only under `sordino.testing.deterministic_noise`.
        accounted: Whether a ledger was charged.
    """

    def __init__(self, fit: StreamFit, counters: Stream | _core.LazyStream, private: bool | None = None) -> None:
        super().__init__(counters, private)
        self.fit: StreamFit = fit
        assert fit.events is not None
        self._events: EventWorkload = fit.events
        # Steps whose events come again, None once they have come.
        self._replayed: int | None = None
        # Whether events were taken in that can never be published: all that would follow is of another stream.
        self._torn = False
        # Parts of the last batch that are not published yet.
        self._waiting: deque[_Part] = deque()

    @property
    def step(self) -> int:
        """Steps so far."""
        return self.counters.step if self._replayed is None else self._replayed

    def _check(self, steps: int) -> None:
        """Refuse steps before an event is taken in.

        Raises:
            StreamClosedError: The stream was closed.
            HorizonError: More steps than are left.
            StepStoreError: A part of the last batch waits.
        """
        self._check_open()
        if self._torn:
            raise StreamClosedError("events were taken in that were refused; attach the counters again with a replay")
        if self.pending:
            raise StepStoreError("the last batch is not published to its end: call resume first")
        if self._replayed is not None and steps > self.counters.step - self._replayed:
            raise InvalidParameterError("the replay has more steps than the checkpoint; nothing was released")
        check_left(steps, self.fit.steps - self.step)

    @property
    def pending(self) -> bool:
        """Whether a part of the last batch waits for `resume`: an exception came before it was stored."""
        waiting = bool(self._waiting) and self._waiting[-1].end > self.step
        return waiting or getattr(self.counters, "pending", False)

    def resume(self) -> None:
        """Publish what is left of the last batch, after a failure of the store or an interruption.

        Raises:
            StepStoreError: The store failed again.
            InvalidParameterError: Every step was stored.
            ForkError: The stream belongs to another process.
        """
        with self._guard():
            if not self.pending:
                raise InvalidParameterError("there is nothing to resume: every step was stored")
            if getattr(self.counters, "pending", False):
                self.counters.resume()
            self._go_on()

    def _publish_all(self, ends: NDArray[np.uint64], publish: _Publish, *, at_once: bool = False) -> Any:
        """Publish a batch, part by part unless `at_once`; return what `publish` says of the last part.

        `publish` may be called again for a part of which not all steps were published: whatever comes in between,
        `resume` goes on.
        """
        parts = [(slice(0, int(ends[-1]) if len(ends) else 0), ends)] if at_once else list(self._parts(ends))
        last = self.step
        waiting: deque[_Part] = deque()
        for events, part in parts:
            waiting.append(_Part(last, events, part, publish))
            last += len(part)
        self._waiting = waiting
        return self._go_on()

    def _go_on(self) -> Any:
        found = None
        while self._waiting:
            part = self._waiting[0]
            if self.step < part.end:
                try:
                    found = part.publish(part.events, part.ends, part.start)
                except (StepConflictError, StreamClosedError):
                    self._torn = True
                    self._waiting.clear()
                    self._claim(False)  # they may be attached again
                    raise
            self._waiting.popleft()
        return found

    def replay(self, events: Callable[[Self], object]) -> None:
        """Take in the events of the steps that the counters have published; `StreamPlan.attach` calls this.

        Args:
            events: A function that calls `update` with them, as they were.

        Raises:
            InvalidParameterError: It took in other than the published steps.
        """
        self._replayed = 0
        events(self)
        replayed, self._replayed = self._replayed, None
        if replayed != self.counters.step:
            raise InvalidParameterError("the replay has fewer steps than the checkpoint: feed all events so far")

    def _parts(self, ends: NDArray[np.uint64]) -> Iterator[tuple[slice, NDArray[np.uint64]]]:
        """Cut steps into parts whose changes are laid out at once: their events, and the ends among these."""
        steps = max(_LAID_OUT // self.fit.coordinates, 1)
        for first in range(0, len(ends), steps):
            part, start = ends[first : first + steps], ends[first - 1] if first else np.uint64(0)
            yield slice(int(start), int(part[-1])), part - start

    def _publish(self, rows: NDArray[np.int64], steps: int, start: int) -> Array:
        """Publish rows of changes, but for those that were; return answers of shape (steps, counters).

        Args:
            rows: What the events of the steps behind `start` change.
            steps: How many these are.
            start: The step before the first. An interruption may have come behind some of them, where steps that a
                store holds are followed by new ones.
        """
        width, done = self.fit.dim, self.step - start
        rows, steps = rows[done * width :], steps - done
        if self._replayed is not None:
            self._replayed += steps
            return np.zeros((steps, width))
        if steps == 0:
            return np.zeros((0, width))
        answers = self.counters.update(rows if width == 1 else rows.reshape(steps, width))
        return self._scaled(np.asarray(answers, dtype=np.float64).reshape(steps, width))

    def _scaled(self, answers: Array) -> Array:
        """Return answers in the unit of the workload, with the public value before any event."""
        scaled = answers * self._events.counted_unit
        scaled[..., 0] += self._events.first
        return scaled

    def read(self, coordinates: object) -> Array:
        """Return the noisy counters of these indices after the last step, in the order of the indices.

        Which are read may depend on what was read before. It must not depend on the events: a list of all words that
        occur says which occur.

        Args:
            coordinates: Indices from 0, one-dimensional.

        Raises:
            DataTypeError: No integers.
            InvalidParameterError: An index does not exist, or no step was published.
            ShapeError: Not one-dimensional.
            StreamClosedError: The stream was closed, and its counters are not published at every step.
            ForkError: The stream belongs to another process.
        """
        places = integers("indices", coordinates, least=0, most=self.fit.coordinates - 1).astype(np.uint64)
        if self.step == 0:
            raise InvalidParameterError("nothing was published yet")
        workload = self._events
        if isinstance(self.counters, _core.LazyStream):
            answers = self.counters.read(places)
        else:
            answers = np.atleast_1d(np.asarray(self.counters.value))[places.astype(np.int64)]
        return answers * workload.counted_unit + np.where(places == 0, workload.first, 0.0)

    @property
    def stderr(self) -> float:
        """Standard deviation of a counter after the last step, 0 before the first."""
        return 0.0 if self.step == 0 else float(self.fit.std([self.step])[0])
