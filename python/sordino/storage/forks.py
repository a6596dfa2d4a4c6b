"""A fork copies the state of SQLite, with the locks that it believes to hold: so it holds none while one is made."""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import suppress
from typing import Any, Protocol

from sordino._support.processes import this_process

__all__ = ["quiet_at_forks"]

# Seconds that a fork waits for a transaction of another thread. Behind it the child may find the store locked.
_WAIT = 30.0


class _Engine(Protocol):
    _lock: Any
    _process: tuple[int, int]
    _torn: bool

    def rest(self) -> None: ...


_engines: weakref.WeakSet[_Engine] = weakref.WeakSet()
# One thread forks at a time, and holds these.
_forking = threading.RLock()
_held: list[Any] = []
_inside: list[_Engine] = []


def quiet_at_forks(engine: _Engine) -> None:
    """Let transactions end before the process forks, and close the connections of this engine: it takes new ones.

    To be called before it has any, under no lock: it waits for a fork that is under way.
    """
    with _forking:
        _engines.add(engine)


def _before() -> None:
    _forking.acquire()
    for engine in list(_engines):
        if engine._process != this_process():
            continue  # of a parent, whose threads are not here: it has no connections of this process
        lock = engine._lock
        if lock._is_owned():
            _inside.append(engine)  # the fork is in the middle of a transaction of its own thread
            continue
        _held.append(lock)  # first: an interruption may come behind the next line
        if lock.acquire(timeout=_WAIT):
            with suppress(Exception):
                engine.rest()


def _after_in_child() -> None:
    for engine in _inside:
        engine._torn = True
    _after()


def _after() -> None:
    _inside.clear()
    while _held:
        lock = _held.pop()
        if lock._is_owned():
            lock.release()
    # Else this was imported while the process forked already.
    if _forking._is_owned():  # type: ignore[attr-defined]
        _forking.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after_in_child)
