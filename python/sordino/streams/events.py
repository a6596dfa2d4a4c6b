"""An open stream of events: what every kind of it has in common."""

from __future__ import annotations

import weakref
from abc import abstractmethod
from collections import deque
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sordino import _core
from sordino._support.checks import flag, integers
from sordino.errors import (
    InvalidParameterError,
    StepConflictError,
    StepPendingError,
    StoreCorruptError,
    StreamClosedError,
    StreamTakenError,
)
from sordino.streams.base import OverCounters, check_left
from sordino.streams.kept import Kept, Published, step_key
from sordino.streams.steps import KeptSteps, Known

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Self

    from sordino.mechanisms.stream.fit import StreamFit
    from sordino.streams.counter import Stream
    from sordino.workloads.base import Array
    from sordino.workloads.events.base import EventWorkload

__all__ = ["EventStream", "Events", "step_ends"]

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


# What events are: columns of integers, as many entries in each as there are events.
Events: TypeAlias = "tuple[NDArray[np.int64], ...]"


class _Part(NamedTuple):
    """Steps that are published together: their events, where each step ends, and what they are called."""

    start: int
    events: Events
    ends: NDArray[np.uint64]
    step_id: str | int | None

    @property
    def end(self) -> int:
        """Its last step."""
        return self.start + len(self.ends)


def packed_events(events: Events, ends: NDArray[np.uint64]) -> bytes:
    """Return events as bytes."""
    numbers = np.array([len(events), len(ends), len(events[0])], dtype="<u8")
    return b"".join(part.astype("<i8").tobytes() for part in (numbers, ends, *events))


def unpacked_events(content: bytes) -> tuple[Events, NDArray[np.uint64]]:
    """Return the events of bytes."""
    numbers = np.frombuffer(content, "<i8").astype(np.int64)
    columns, steps, events = (int(number) for number in numbers[:3])
    ends, rest = numbers[3 : 3 + steps].astype(np.uint64), numbers[3 + steps :]
    return tuple(rest[i * events : (i + 1) * events] for i in range(columns)), ends


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

    # Whether what comes depends on the events before, beside the counters.
    remembers: ClassVar[bool] = True

    def __init__(
        self,
        fit: StreamFit,
        counters: Stream | _core.LazyStream,
        private: bool | None = None,
        kept: Kept | None = None,
    ) -> None:
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
        # Of counters that are read by coordinate, in a store: its row, and steps that it does not keep yet.
        self._kept = kept
        self._unkept: Published | None = None
        if kept is not None:
            self._release = weakref.finalize(self, kept.release)

    @property
    def step(self) -> int:
        """Steps so far."""
        if self._kept is not None:
            return self._kept.row.step
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
            raise StepPendingError("the last batch is not published to its end: call resume first")
        if self._replayed is not None and steps > self.counters.step - self._replayed:
            raise InvalidParameterError("the replay has more steps than the checkpoint; nothing was released")
        check_left(steps, self.fit.steps - self.step)

    @property
    def pending(self) -> bool:
        """Whether a part of the last batch waits for `resume`: an exception came before it was stored."""
        waiting = bool(self._waiting) and self._waiting[-1].end > self.step
        return waiting or self._unkept is not None or getattr(self.counters, "pending", False)

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

    @abstractmethod
    def _feed(self, part: _Part) -> Any:
        """Take in the events of a part, and publish the counters after its steps.

        It may be called again for a part of which not all steps were published.
        """

    def _published_as(self, step_id: str | int | None) -> Known | None:
        """Return the steps that were published under a name, None if it is new; its own batch that waits ends first.

        Raises:
            InvalidParameterError: There is a name and no store.
            StepPendingError: Another batch waits.
        """
        if step_id is None:
            return None
        if self._kept is not None:
            key = step_key(step_id)
            if self._waiting and step_key(self._waiting[0].step_id) == key:
                self._go_on()
            row = self._kept.find(key)
            return None if row is None else Known(row.first, row.steps, row.answers or b"")
        if isinstance(self.counters, _core.LazyStream):
            raise InvalidParameterError("a step_id needs a store: plan.open(..., store=...)")
        known: Known | None = self.counters._published_as(step_id)
        self._go_on()
        return known

    def _publish_all(
        self, events: Events, ends: NDArray[np.uint64], step_id: str | int | None = None, *, at_once: bool = False
    ) -> Any:
        """Publish a batch, part by part unless `at_once` or named; return what `_feed` says of the last part.

        Whatever comes in between, `resume` goes on.
        """
        last = self.step
        waiting: deque[_Part] = deque()
        if at_once or step_id is not None or isinstance(self.counters, _core.LazyStream):
            waiting.append(_Part(last, events, ends, step_id))
        else:
            for those, part in self._parts(ends):
                waiting.append(_Part(last, tuple(column[those] for column in events), part, None))
                last += len(part)
        self._waiting = waiting
        return self._go_on()

    def _go_on(self) -> Any:
        found = None
        if self._unkept is not None:
            self._keep(self._unkept)
        while self._waiting:
            part = self._waiting[0]
            if self.step < part.end:
                try:
                    found = self._fed(part)
                except (StepConflictError, StreamClosedError, StreamTakenError):
                    self._torn = True
                    self._waiting.clear()
                    self._claim(False)  # they may be attached again
                    raise
            self._waiting.popleft()
        return found

    def _fed(self, part: _Part) -> Any:
        """Feed a part, with its events for the store if that needs them."""
        if self._kept is not None:
            self._kept_part(part)
            return None
        steps = getattr(self.counters, "_steps", None)
        if isinstance(steps, KeptSteps) and self.remembers and self._replayed is None:
            steps.changes = packed_events(part.events, part.ends)
        return self._feed(part)

    def _kept_part(self, part: _Part) -> None:
        """Take a part into counters that are read by coordinate, and keep its events before anybody reads them."""
        changes = packed_events(part.events, part.ends)
        steps = Published(part.start, len(part.ends), step_key(part.step_id), None, None, changes)
        self._unkept = steps  # before it is in the counters: what is not kept is not read
        if self.counters.step == part.start:
            self._feed(part)
        self._keep(steps)

    def _keep(self, steps: Published) -> None:
        assert self._kept is not None
        if self._kept.row.step == steps.first:
            try:
                self._kept.append(steps)
            except StreamTakenError:
                self._unkept = None
                self.close()
                raise
        self._unkept = None

    def _take_again(self, changes: Iterable[bytes]) -> None:
        """Take in the events that a store kept, of a stream that goes on: nothing is published by that.

        Raises:
            StoreCorruptError: They are not those of the steps that were published.
        """
        if self._kept is not None:
            start = 0
            for content in changes:
                events, ends = unpacked_events(content)
                self._feed(_Part(start, events, ends, None))
                start += len(ends)
        else:
            self._replayed = 0
            for content in changes:
                events, ends = unpacked_events(content)
                self._publish_all(events, ends, at_once=True)
            start, self._replayed = self._replayed, None
        if start != self.step:
            raise StoreCorruptError("events of the stream are missing")

    def _stored(self) -> Kept | None:
        return super()._stored() if self._kept is None else self._kept

    def close(self) -> None:
        """Wipe key, noise and what is remembered of events; the stream refuses everything from now on."""
        super().close()
        if self._kept is not None and self._release.alive:
            self._release()

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

    def _publish(self, rows: NDArray[np.int64], part: _Part) -> Array:
        """Publish rows of changes, but for those that were; return answers of shape (steps, counters).

        Args:
            rows: What the events of the part change.
            part: An interruption may have come behind some of its steps, where steps that a store holds are followed by
                new ones.
        """
        steps, step_id = len(part.ends), part.step_id
        width, done = self.fit.dim, self.step - part.start
        rows, steps = rows[done * width :], steps - done
        if self._replayed is not None:
            self._replayed += steps
            return np.zeros((steps, width))
        if steps == 0:
            return np.zeros((0, width))
        named = {} if step_id is None else {"step_id": step_id}
        answers = self.counters.update(rows if width == 1 else rows.reshape(steps, width), **named)
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
        if self._unkept is not None:
            raise StepPendingError("the last batch is not stored yet: call resume first")
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
