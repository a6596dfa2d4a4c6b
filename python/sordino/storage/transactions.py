"""What a store asks of a database: short transactions that are kept whole or not at all."""

from __future__ import annotations

import random
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

from sordino._support.processes import this_process
from sordino.errors import StoreBusyError

__all__ = [
    "CommitUnknownError",
    "Engine",
    "LockedError",
    "Looked",
    "Transaction",
    "Written",
    "backing_off",
    "now",
    "owned_by",
]

_T = TypeVar("_T")
Row = tuple[Any, ...]

# Seconds between two tries of a lock.
_FIRST, _LONGEST = 0.001, 0.05


class CommitUnknownError(Exception):
    """Whether the transaction was kept is not known: the database went away while it was being committed."""


class LockedError(Exception):
    """Somebody else holds what the transaction needs; nothing has changed, and it may be tried again."""


class Written(Protocol):
    """A statement that has left, or will."""

    @property
    def rowcount(self) -> int:
        """How many rows it changed: known when the transaction is kept, or by `Transaction.changed`."""
        ...


class Looked(NamedTuple):
    """How many rows a statement had changed, as it was found afterwards."""

    rowcount: int


class Transaction(Protocol):
    """Statements that are kept together; parameters are written as question marks."""

    def rows(self, statement: str, *values: Any) -> list[Row]:
        """Run a statement and return its rows."""
        ...

    def count(self, statement: str, *values: Any) -> int:
        """Run a statement and return how many rows it changed."""
        ...

    def later(self, statement: str, *values: Any) -> Written:
        """Run a statement before the next, or before the transaction is kept; its error may come only there."""
        ...

    def changed(self, written: Written) -> int:
        """Return how many rows a statement changed, before anything else is run."""
        ...


class Engine(ABC):
    """A database. It belongs to no process: a child that was forked uses a connection of its own.

    Attributes:
        kind: 'sqlite' or 'postgresql'.
        locking: What is said behind a query whose rows are to be locked until the end of the transaction.
        tables: A query for how many tables of a store there are, and how many others that must not be there.
    """

    kind: str
    locking: str = ""
    tables: str

    @abstractmethod
    def write(self, script: Callable[[Transaction], _T], timeout: float) -> _T:
        """Run a script and keep what it did, before returning; whatever is raised, nothing was kept.

        Raises:
            StoreBusyError: Others kept it locked for longer than the timeout.
            StoreError: The database refuses.
            CommitUnknownError: It went away while it kept what was done.
        """

    @abstractmethod
    def read(self, script: Callable[[Transaction], _T], timeout: float) -> _T:
        """Run a script that changes nothing, on one state of the database.

        Raises:
            StoreBusyError: Others kept it locked for longer than the timeout.
            StoreError: The database refuses.
        """

    @abstractmethod
    def create(self, statements: tuple[str, ...], timeout: float) -> None:
        """Make the tables that are not there, all or none."""

    @abstractmethod
    def close(self) -> None:
        """Give the connections of this process back."""


def owned_by(engine: object, connections: list[Any]) -> None:
    """Close connections when nobody holds their engine any more, in the process that made them."""
    weakref.finalize(engine, _closed, connections, this_process())


def _closed(connections: list[Any], process: tuple[int, int]) -> None:
    if this_process() == process:
        for connection in connections:
            connection.close()
        connections.clear()


def backing_off(attempt: Callable[[], _T], timeout: float) -> _T:
    """Try until nobody else holds the lock; signals are answered in between.

    Raises:
        StoreBusyError: It took longer than the timeout.
    """
    end, wait = time.monotonic() + timeout, _FIRST
    while True:
        try:
            return attempt()
        except LockedError:
            left = end - time.monotonic()
            if left <= 0.0:
                raise StoreBusyError(
                    "the store is locked by others; nothing was done. Try again, or give it a longer timeout",
                    retry=True,
                ) from None
            # Not in step with the others who wait.
            time.sleep(min(left, wait * random.uniform(0.5, 1.0)))
            wait = min(2.0 * wait, _LONGEST)


def now() -> int:
    """Return the time in milliseconds, UTC."""
    return time.time_ns() // 1_000_000
