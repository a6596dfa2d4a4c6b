"""An open stream of events: what every kind of it has in common."""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sordino import _core
from sordino._support.checks import flag, integers
from sordino._support.turns import Turn
from sordino._support.uncopied import Uncopied
from sordino.errors import (
    HorizonError,
    InvalidParameterError,
    StepConflictError,
    StepStoreError,
    StreamClosedError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

    from sordino.plans.events import EventPlan
    from sordino.streams.counter import Stream
    from sordino.workloads.base import Array

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


class _Part(NamedTuple):
    """Steps that are published together: which of the batch's events are theirs, and where each step ends."""

    end: int
    events: slice
    ends: NDArray[np.uint64]
    publish: Callable[[slice, NDArray[np.uint64]], object]


class EventStream(Uncopied):
    """An open stream of events; `EventPlan.open` makes it.

    Everything that it publishes satisfies the plan's guarantee together, also when events are chosen after seeing
    earlier answers. The events so far are kept: its state is as secret as they are. It belongs to one process.

    Attributes:
        plan: How it was planned.
        counters: The private running sums: a `sordino.Stream`, or what is read by coordinate.
        private: False only under `sordino.testing.deterministic_noise`.
        accounted: Whether a ledger was charged.
    """

    def __init__(self, plan: EventPlan, counters: Stream | _core.LazyStream) -> None:
        self.plan = plan
        self.counters = counters
        if not isinstance(counters, _core.LazyStream):
            counters._whole = True
        self.private: bool = getattr(counters, "private", True)
        self.accounted: bool = getattr(counters, "accounted", False)
        self._guard = Turn("this stream belongs to another process")
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

    @property
    def closed(self) -> bool:
        """Whether the stream was closed."""
        return self.counters.closed

    def _check(self, steps: int) -> None:
        """Refuse steps before an event is taken in.

        Raises:
            StreamClosedError: The stream was closed.
            HorizonError: More steps than are left.
            StepStoreError: A part of the last batch waits.
        """
        if self.closed:
            raise StreamClosedError("this stream is closed; nothing was released")
        if self._torn:
            raise StreamClosedError("events were taken in that were refused; attach the counters again with a replay")
        if self.pending:
            raise StepStoreError("the last batch is not published to its end: call resume first")
        if self._replayed is not None and steps > self.counters.step - self._replayed:
            raise InvalidParameterError("the replay has more steps than the checkpoint; nothing was released")
        left = self.plan.steps - self.step
        if steps > left:
            raise HorizonError(
                f"steps left of the horizon that this stream's budget covers: {left}; nothing was released"
            )

    @contextmanager
    def _taking_in(self, steps: int) -> Iterator[None]:
        """Check so many steps, and take them in before any other thread does.

        Raises:
            SordinoError: As `_check`.
        """
        with self._guard():
            self._check(steps)
            yield

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
                self.counters.resume()  # type: ignore[union-attr]
            self._go_on()

    def _publish_all(
        self, ends: NDArray[np.uint64], publish: Callable[[slice, NDArray[np.uint64]], object], *, at_once: bool = False
    ) -> Any:
        """Publish a batch, part by part unless `at_once`; return what `publish` says of the last part.

        `publish` may be called again for steps that were not published: whatever comes in between, `resume` goes on.
        """
        parts = [(slice(0, int(ends[-1]) if len(ends) else 0), ends)] if at_once else list(self._parts(ends))
        last = self.step
        waiting: deque[_Part] = deque()
        for events, part in parts:
            last += len(part)
            waiting.append(_Part(last, events, part, publish))
        self._waiting = waiting
        return self._go_on()

    def _go_on(self) -> Any:
        found = None
        while self._waiting:
            part = self._waiting[0]
            if self.step < part.end:
                try:
                    found = part.publish(part.events, part.ends)
                except (StepConflictError, StreamClosedError):
                    self._torn = True
                    self._waiting.clear()
                    if not isinstance(self.counters, _core.LazyStream):
                        self.counters._whole = False  # they may be attached again
                    raise
            self._waiting.popleft()
        return found

    def replay(self, events: Callable[[Self], object]) -> None:
        """Take in the events of the steps that the counters have published; `EventPlan.attach` calls this.

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
        steps = max(_LAID_OUT // self.plan.coordinates, 1)
        for first in range(0, len(ends), steps):
            part, start = ends[first : first + steps], ends[first - 1] if first else np.uint64(0)
            yield slice(int(start), int(part[-1])), part - start

    def _publish(self, rows: NDArray[np.int64], steps: int) -> Array:
        """Publish rows of changes; return answers of shape (steps, counters)."""
        from sordino.streams.counter import Stream  # noqa: PLC0415 - plans open streams

        assert isinstance(self.counters, Stream)
        width = self.plan.counters.dim
        if self._replayed is not None:
            self._replayed += steps
            return np.zeros((steps, width))
        if steps == 0:
            return np.zeros((0, width))
        answers = self.counters.update(rows if width == 1 else rows.reshape(steps, width))
        return self._scaled(np.asarray(answers, dtype=np.float64).reshape(steps, width))

    def _scaled(self, answers: Array) -> Array:
        """Return answers in the unit of the workload, with the public value before any event."""
        scaled = answers * self.plan.workload.counted_unit
        scaled[..., 0] += self.plan.workload.first
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
        places = integers("indices", coordinates, least=0, most=self.plan.coordinates - 1).astype(np.uint64)
        if self.step == 0:
            raise InvalidParameterError("nothing was published yet")
        workload = self.plan.workload
        if isinstance(self.counters, _core.LazyStream):
            answers = self.counters.read(places)
        else:
            answers = np.atleast_1d(np.asarray(self.counters.value))[places.astype(np.int64)]
        return answers * workload.counted_unit + np.where(places == 0, workload.first, 0.0)

    @property
    def stderr(self) -> float:
        """Standard deviation of a counter after the last step, 0 before the first."""
        return 0.0 if self.step == 0 else float(self.plan.std([self.step])[0])

    def close(self) -> None:
        """Wipe key and noise; the stream refuses everything from now on."""
        self.counters.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"step {self.step}"
        return f"<{type(self).__name__} {self.plan.mechanism}: {state}>"
