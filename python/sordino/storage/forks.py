"""A fork copies the state of SQLite, with the locks that it believes to hold: so it holds none while one is made."""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import suppress
from typing import Any, Protocol

__all__ = ["quiet_at_forks"]

# Seconds that a fork waits for a transaction of another thread. Behind it the child may find the store locked.
_WAIT = 30.0


class _Engine(Protocol):
    _lock: Any

    def close(self) -> None: ...


_engines: weakref.WeakSet[_Engine] = weakref.WeakSet()
# One thread forks at a time, and holds these.
_forking = threading.RLock()
_held: list[Any] = []


def quiet_at_forks(engine: _Engine) -> None:
    """Let transactions end before the process forks, and close the connections of this engine: it takes new ones."""
    _engines.add(engine)


def _before() -> None:
    _forking.acquire()
    for engine in list(_engines):
        lock = engine._lock
        if lock._is_owned():
            continue  # the fork is in the middle of a transaction of its own thread
        _held.append(lock)  # first: an interruption may come behind the next line
        if lock.acquire(timeout=_WAIT):
            with suppress(Exception):
                engine.close()


def _after() -> None:
    while _held:
        lock = _held.pop()
        if lock._is_owned():
            lock.release()
    _forking.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
