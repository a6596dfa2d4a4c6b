"""An open count of rare events."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from sordino._support.private_numbers import amounts_or
from sordino.errors import (
    DataTypeError,
    DuplicateRequestError,
    InvalidParameterError,
    StepPendingError,
    StreamTakenError,
)
from sordino.streams.base import PENDING, OverCounters, check_left
from sordino.streams.kept import Kept, Published, step_key
from sordino.streams.steps import header_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from sordino import _core
    from sordino.mechanisms.stream.rare import RareFit
    from sordino.streams.counter import Stream
    from sordino.workloads.base import Array

__all__ = ["RareStream"]


class RareStream(OverCounters):
    """An open count of rare events; `StreamPlan.open` makes it. It belongs to one process.

    Attributes:
        fit: How it was planned.
    """

    def __init__(
        self, fit: RareFit, above: _core.AboveThreshold | None, counters: Stream, kept: Kept | None = None
    ) -> None:
        super().__init__(counters)
        self.fit: RareFit = fit
        self._above = above
        # Steps and the answer after them; and of an update that was interrupted: its first step, the steps of the
        # running sum before it, and what was published of its segments.
        self._state = (0, 0.0)
        self._begun: tuple[int, int, list[float]] = (-1, 0, [])
        # In a store: its row, and steps that it does not keep yet.
        self._kept = kept
        self._unkept: Published | None = None
        self._name: str | None = None
        self._answers: Array = np.zeros(0)
        if kept is not None:
            self._release = weakref.finalize(self, kept.release)

    @property
    def step(self) -> int:
        """Steps so far."""
        if self._kept is not None:
            return self._kept.row.step
        return self._steps

    @property
    def _steps(self) -> int:
        """Steps that were taken in, kept or not."""
        return self.counters.step if self._above is None else self._state[0]

    @property
    def value(self) -> float:
        """The answer published last, 0 before the first step.

        Raises:
            StepPendingError: The last update is not stored yet: call `resume`.
        """
        if self._kept is not None and self.pending:
            raise StepPendingError(PENDING)
        return float(self.counters.value or 0.0)

    def update(self, items: object, *, step_id: str | int | None = None) -> Any:
        """Take in the counts of the next step or steps, and publish the count so far after each.

        Args:
            items: An integer, or an array of them, one a step; clamped, missing ones are 0.
            step_id: Name of this batch: given again, its answers are returned and nothing is published. Needs a
                `sordino.Store`; an integer must grow.

        Returns:
            The answers: a float for a number, an array otherwise.

        Raises:
            DataTypeError: Not integers.
            HorizonError: More steps than are left.
            StreamClosedError: The stream was closed.
            ForkError: The stream belongs to another process.
            StepPendingError: An earlier update is not stored yet.
            StoreError: The store did not keep the steps; call `resume`, or give them again under their name.
            StreamTakenError: The stream was taken over by somebody else; it is closed.
        """
        array = amounts_or("items", items)
        if array.ndim > 1:
            raise DataTypeError("items must be an integer or a one-dimensional array of integers")
        rows = np.atleast_1d(array)
        self._check_open()
        with self._guard():
            answers = self._answers_as(step_id)
            if answers is None:
                check_left(len(rows), self.fit.steps - self.step)
                if len(rows) == 0:
                    return np.zeros(0)
                answers = self._taken(rows, step_id)
        if len(answers) != len(rows):
            raise DuplicateRequestError("this step_id was published before, with another number of steps")
        return float(answers[0]) if array.ndim == 0 else answers

    def _answers_as(self, step_id: str | int | None) -> Array | None:
        """Return what was published under a name, None if it is new; its own batch that waits ends first."""
        if self._kept is None:
            if step_id is not None:
                raise InvalidParameterError("a step_id needs a sordino.Store: plan.open(..., store=...)")
            return None
        key = step_key(step_id)
        if self.pending:
            if key is None or self._name != key:
                raise StepPendingError(PENDING)
            return self._ended()
        row = self._kept.find(key)
        return None if row is None else np.frombuffer(row.answers or b"", "<f8").astype(np.float64)

    def _taken(self, rows: NDArray[np.int64], step_id: str | int | None) -> Array:
        """Take rows in and publish what comes of them; in a store, once it is kept."""
        if self._kept is None:
            return np.asarray(self.counters.update(rows)) if self._above is None else self._segments(rows)
        self._name = step_key(step_id)
        if self._above is None:
            self.counters._core.prepare(rows, None, True)
        else:
            self._segments(rows)
        return self._ended()

    def _ended(self) -> Array:
        """Publish what was taken in to its end, and return the answers."""
        first, before = self._state
        if self._above is not None and (held := self._above.held(first)) is not None:
            if self._begun[0] != first:
                self._begun = (first, self.counters.step, [])
            self._publish(first, before, *held)
        if self._kept is None:
            return self._answers
        if self._unkept is None:
            waiting = self.counters._core.held() if self._above is None else None
            answers = self._answers if waiting is None else waiting[2]
            content = answers.astype("<f8").tobytes()
            self._unkept = Published(self._kept.row.step, len(answers), self._name, None, content)
        return self._keep(self._unkept)

    def _keep(self, steps: Published) -> Array:
        """Keep steps with the whole state, which is small."""
        assert self._kept is not None
        if self._kept.row.step == steps.first:
            self._kept.behind = 1.0
            try:
                self._kept.append(steps, self._sealed)
            except StreamTakenError:
                self._unkept = None
                self.close()
                raise
        if self._above is None:
            self.counters._core.commit()
        self._unkept = None
        return np.frombuffer(steps.answers or b"", "<f8").astype(np.float64)

    def _sealed(self, step: int, head: bytes) -> bytes:
        """Return noise, counts and the running segment, sealed for their row."""
        assert self._kept is not None
        place, key = self._kept.place("state", step), self._kept.store.keys.sealing(self._kept.row.key_id)
        above = b"" if self._above is None else self._above.sealed(key, f"{place}/above".encode())
        core: _core.Stream = self.counters._core
        return core.checkpoint(key, header_for(place, head, [*self._state, above.hex()]), True)

    def _go_on(self, also: Sequence[Any], place: str, key: bytes) -> None:
        """Take the state where `_sealed` left it; the counters have theirs.

        Raises:
            CheckpointError: It was altered, or belongs to another row.
        """
        step, value, above = int(also[0]), float(also[1]), bytes.fromhex(also[2])
        self._state = (step, value)
        if self._above is not None:
            self._above.go_on(key, f"{place}/above".encode(), above, step)

    def _segments(self, rows: NDArray[np.int64]) -> Array:
        """Publish the count after each segment that ends; after an interruption, what is missing of the same items."""
        assert self._above is not None
        first, before = self._state
        if self._begun[0] != first:
            self._begun = (first, self.counters.step, [])
        return self._publish(first, before, len(rows), *self._above.push(first, rows))

    def _publish(
        self, first: int, before: float, steps: int, ends: NDArray[np.uint64], counts: NDArray[np.int64]
    ) -> Array:
        """Publish what is missing of the segments of these steps."""
        _, mark, published = self._begun
        # Segments beyond the last that the running sum has steps for change nothing.
        room = self.counters.fit.steps - mark
        counts = counts[:room]
        while True:
            if self.counters.step - mark > len(published):
                published.append(float(self.counters.value))
            if len(published) == len(counts):
                break
            self.counters.update(int(counts[len(published)]))
        answers = np.full(steps, before)
        for place, value in zip(ends[:room].tolist(), published, strict=True):
            answers[place:] = value
        self._answers = answers
        self._state = (first + steps, float(answers[-1]))
        return answers

    @property
    def pending(self) -> bool:
        """Whether items were taken in that are not published to their end: by `resume`, or the same items again."""
        if self._above is not None and self._above.step != self._state[0]:
            return True
        if self._kept is None:
            return bool(self.counters.pending)
        waits: bool = self._unkept is not None or self.counters._core.held() is not None
        return bool(waits or self._steps != self._kept.row.step)

    def resume(self) -> None:
        """Publish what an interruption left: `value` is then the answer after the last item.

        Raises:
            StepStoreError: The store failed again.
            InvalidParameterError: Everything was published.
            ForkError: The stream belongs to another process.
        """
        with self._guard():
            if not self.pending:
                raise InvalidParameterError("there is nothing to resume: every update was published")
            if self.counters.pending:
                self.counters.resume()
            self._ended()

    def close(self) -> None:
        """Wipe keys and counts; the stream refuses everything from now on."""
        self.counters.close()
        if self._above is not None:
            self._above.close()
        if self._kept is not None and self._release.alive:
            self._release()

    def _stored(self) -> Kept | None:
        return self._kept
