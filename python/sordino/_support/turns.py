"""One caller at a time: threads wait for each other, children and handlers of signals are refused."""

from __future__ import annotations

import threading
from typing import Any

from sordino._support.processes import this_process
from sordino.errors import BusyError, ForkError

__all__ = ["Turn"]


class Turn:
    """The lock of an object that belongs to one process; `with turn():` is a turn.

    Args:
        forked: What a child of the process is told.
    """

    def __init__(self, forked: str) -> None:
        self._forked = forked
        self._process = this_process()
        # `with` of this lock has no place where a signal could come between its being taken and the block.
        self._lock: Any = threading.RLock()

    def __call__(self) -> Any:
        """Return the lock.

        Raises:
            ForkError: This process does not own the object: its lock may be held for ever here.
            BusyError: This thread is inside a turn already: a handler of a signal, which came into the middle of it.
        """
        lock = self.reading()
        if lock._is_owned():
            raise BusyError("a call of this object is under way in this thread; nothing was done")
        return lock

    def reading(self) -> Any:
        """Return the lock also inside a turn of this thread, for what changes nothing.

        Raises:
            ForkError: This process does not own the object.
        """
        if not self.owned:
            raise ForkError(self._forked)
        return self._lock

    def again(self) -> Any:
        """Return the lock also inside a turn of this thread: for what may be done in the middle of it."""
        return self._lock

    @property
    def owned(self) -> bool:
        """Whether this process owns the object."""
        return this_process() == self._process
