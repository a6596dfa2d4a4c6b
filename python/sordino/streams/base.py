"""What every open stream has in common: one process, one owner, no copies, an end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Protocol, Self

from sordino._support.turns import Turn
from sordino._support.uncopied import Uncopied
from sordino.errors import HorizonError, InvalidParameterError, StepPendingError, StreamClosedError

if TYPE_CHECKING:
    from sordino.mechanisms.fits import Fit
    from sordino.streams.kept import Kept

__all__ = ["PENDING", "OpenStream", "OverCounters", "check_left"]

PENDING = "the last update is not stored yet: call resume(), or give it again under its step_id"
"""What whoever goes on is told."""


def check_left(steps: int, left: int) -> None:
    """Refuse more steps than are left.

    Raises:
        HorizonError: They are.
    """
    if steps > left:
        raise HorizonError(f"steps left of the horizon that this stream's budget covers: {left}; nothing was released")


class OpenStream(Uncopied, ABC):
    """An open stream; `StreamPlan.open` makes it.

    Everything that it publishes satisfies the plan's guarantee together, also when items are chosen after seeing
    earlier answers. Its state is as secret as the data. It belongs to one process and to its object.

    Attributes:
        fit: How it was planned.
        private: False only under `sordino.testing.deterministic_noise`.
        accounted: Whether a ledger was charged.
    """

    fit: Fit

    def __init__(self, private: bool, accounted: bool = False) -> None:
        self.private = private
        self.accounted = accounted
        self._guard = Turn(
            "this stream belongs to another process: two processes would put different items on the same noise"
        )

    @property
    @abstractmethod
    def step(self) -> int:
        """Steps published so far."""

    @property
    @abstractmethod
    def closed(self) -> bool:
        """Whether the stream was closed."""

    @property
    @abstractmethod
    def pending(self) -> bool:
        """Whether something was taken in that is not published to its end, and waits for `resume`."""

    def _stored(self) -> Kept | None:
        """Return the row of a stream in a `sordino.Store`, None if it is in none."""
        return None

    def finish(self) -> None:
        """End a stream in a `sordino.Store` for good: what it published stays, all that is secret is forgotten.

        Raises:
            InvalidParameterError: It is in no such store.
            StepPendingError: The last update is not stored yet.
            StreamTakenError: It was taken over by somebody else.
            StreamClosedError: It is closed.
            ForkError: The stream belongs to another process.
            StoreError: The store cannot be used.
        """
        with self._guard():
            self._check_open()
            if (row := self._stored()) is None:
                raise InvalidParameterError("only a stream in a sordino.Store is finished: close this one")
            if self.pending:
                raise StepPendingError(PENDING)
            row.leave(finish=True)
            self.close()

    @abstractmethod
    def close(self) -> None:
        """Wipe key and noise; the stream refuses everything from now on."""

    def _check_open(self) -> None:
        if self.closed:
            raise StreamClosedError("this stream is closed; nothing was released")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"step {self.step}"
        return f"<{type(self).__name__} {self.fit.name}: {state}>"


class _Counters(Protocol):
    """Private running sums: an open `Stream`, or what the core keeps by itself."""

    @property
    def step(self) -> int: ...
    @property
    def closed(self) -> bool: ...
    def close(self) -> None: ...


class OverCounters(OpenStream):
    """A stream that makes items of counters from something else.

    Attributes:
        counters: The private running sums: a `sordino.Stream`, or what the core keeps.
    """

    counters: Any

    def __init__(self, counters: _Counters, private: bool | None = None) -> None:
        super().__init__(getattr(counters, "private", True) if private is None else private)
        self.accounted = getattr(counters, "accounted", False)
        self.counters = counters
        self._claim(True)

    def _claim(self, whole: bool) -> None:
        """Say whether these counters are fed from here alone: whole batches, also where a signal comes."""
        if hasattr(self.counters, "_whole"):
            self.counters._whole = whole

    @property
    def step(self) -> int:
        """Steps published so far."""
        step: int = self.counters.step
        return step

    @property
    def closed(self) -> bool:
        """Whether the stream was closed."""
        closed: bool = self.counters.closed
        return closed

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
            if not hasattr(self.counters, "resume"):
                raise InvalidParameterError("there is nothing to resume: these counters have no store")
            self.counters.resume()
            self._catch_up()

    def _stored(self) -> Kept | None:
        return self.counters._stored() if isinstance(self.counters, OpenStream) else None

    def _catch_up(self) -> None:
        """Read what was published and not read, after an exception between the two."""

    def close(self) -> None:
        """Wipe key and noise; the stream refuses everything from now on."""
        self.counters.close()
