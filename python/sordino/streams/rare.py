"""An open count of rare events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sordino._support.private_numbers import amounts_or
from sordino.errors import DataTypeError, InvalidParameterError
from sordino.streams.base import OverCounters, check_left

if TYPE_CHECKING:
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

    def __init__(self, fit: RareFit, above: _core.AboveThreshold | None, counters: Stream) -> None:
        super().__init__(counters)
        self.fit: RareFit = fit
        self._above = above
        # Steps and the answer after them; and of an update that was interrupted: its first step, the steps of the
        # running sum before it, and what was published of its segments.
        self._state = (0, 0.0)
        self._begun: tuple[int, int, list[float]] = (-1, 0, [])

    @property
    def step(self) -> int:
        """Steps so far."""
        return self.counters.step if self._above is None else self._state[0]

    @property
    def value(self) -> float:
        """The answer published last, 0 before the first step."""
        return float(self.counters.value or 0.0)

    def update(self, items: object) -> Any:
        """Take in the counts of the next step or steps, and publish the count so far after each.

        Args:
            items: An integer, or an array of them, one a step; clamped, missing ones are 0.

        Returns:
            The answers: a float for a number, an array otherwise.

        Raises:
            DataTypeError: Not integers.
            HorizonError: More steps than are left.
            StreamClosedError: The stream was closed.
            ForkError: The stream belongs to another process.
        """
        array = amounts_or("items", items)
        if array.ndim > 1:
            raise DataTypeError("items must be an integer or a one-dimensional array of integers")
        rows = np.atleast_1d(array)
        self._check_open()
        with self._guard():
            check_left(len(rows), self.fit.steps - self.step)
            if len(rows) == 0:
                return np.zeros(0)
            answers: Array = np.asarray(self.counters.update(rows)) if self._above is None else self._segments(rows)
        return float(answers[0]) if array.ndim == 0 else answers

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
        self._state = (first + steps, float(answers[-1]))
        return answers

    @property
    def pending(self) -> bool:
        """Whether items were taken in that are not published to their end: by `resume`, or the same items again."""
        return self.counters.pending or (self._above is not None and self._above.step != self._state[0])

    def resume(self) -> None:
        """Publish what an interruption left: `value` is then the answer after the last item.

        Raises:
            StepStoreError: The store failed again.
            InvalidParameterError: Everything was published.
            ForkError: The stream belongs to another process.
        """
        with self._guard():
            if self.counters.pending:
                self.counters.resume()
            elif not self.pending:
                raise InvalidParameterError("there is nothing to resume: every update was published")
            first, before = self._state
            if self._above is not None and (held := self._above.held(first)) is not None:
                if self._begun[0] != first:
                    self._begun = (first, self.counters.step, [])
                self._publish(first, before, *held)

    def close(self) -> None:
        """Wipe keys and counts; the stream refuses everything from now on."""
        self.counters.close()
        if self._above is not None:
            self._above.close()
