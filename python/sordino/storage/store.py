"""One store for ledgers, requests with their answers, and streams."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self, TypeVar

from sordino._support.checks import integer, path_of, positive
from sordino._support.uncopied import Uncopied
from sordino.errors import (
    DataTypeError,
    OutcomeUnknownError,
    RollbackError,
    StoreError,
    StoreVersionError,
    WrongKeyError,
)
from sordino.storage.keys import Keys, KeySource
from sordino.storage.owners import WORKING
from sordino.storage.postgresql import PostgresEngine, system_of
from sordino.storage.sqlite import SqliteEngine
from sordino.storage.tables import SCHEMA_VERSION, STATEMENTS
from sordino.storage.transactions import CommitUnknownError, Engine, Transaction

__all__ = ["Store", "check_key", "store_of"]

_T = TypeVar("_T")
_NAME = "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING"
_URLS = ("postgresql://", "postgres://")


class Store(Uncopied):
    """A database of ledgers and streams, which many processes share.

    What is promised: a number is published when the transaction that holds it is kept, and nothing leaves before. So
    whatever processes die, wait or repeat themselves, ledgers do not spend more than their totals, a request has one
    answer, and a stream goes on behind its last published step. This holds while what was committed stays committed; a
    restored backup or a promoted asynchronous replica forgets what had left.

    It may be used by many threads, and by children after a fork, which take a connection of their own. Ledgers and
    releases need no key; streams do, and requests that shall be finished with the same noise after a crash.

    Args:
        where: A file of SQLite, made if it is not there; ':memory:', gone with the process; a URL of PostgreSQL, or a
            function that returns a connection of psycopg.
        key: 32 bytes, a `KeyFile`, or a function from the id of a key to its bytes. None is made for you.
        timeout: Seconds to wait for others.
        replicas: Of PostgreSQL: synchronous standbys that a commit must reach.
        adopting: Whether a database that went back in time is opened all the same: for `sordino store adopt` alone.

    Raises:
        DataTypeError: An argument is of the wrong type.
        StoreError: The database cannot be used, or may lose what it has committed.
        StoreVersionError: It was written by another version of sordino, or holds something else.
        RollbackError: It is another database than the store was made in, or went back in time.
        KeyMissingError: The key lies beside the store.
        MissingDependencyError: psycopg is not installed.
    """

    _no_copy = "a store cannot be copied or pickled: open it again where it is needed"

    def __init__(
        self,
        where: str | Path | Callable[[], Any],
        *,
        key: KeySource | None = None,
        timeout: float = 30.0,
        replicas: int | None = None,
        adopting: bool = False,
    ) -> None:
        self.timeout = positive("timeout", timeout, most=86400.0)
        if replicas is not None:
            integer("replicas", replicas, least=0, most=99)
        Keys(key, "")  # a wrong key is refused before a file is made
        beside: Path | None = None
        if callable(where) or (isinstance(where, str) and where.startswith(_URLS)):
            self.engine: Engine = PostgresEngine(where, replicas)
        else:
            path = ":memory:" if isinstance(where, str) and where == ":memory:" else path_of(where)
            self.engine = SqliteEngine(path)
            beside = None if path == ":memory:" else Path(path).absolute()
        try:
            meta = self._opened(adopting)
            self.id = meta["store"]
            self.keys = Keys(key, self.id, meta.get("key", "1"), beside)
            # Ids of keys that are known to be those of the store.
            self._checked: set[str] = set()
        except BaseException:
            self.engine.close()
            raise
        self.working = WORKING

    def _opened(self, adopting: bool) -> dict[str, str]:
        """Return what the store says of itself; make it if it is empty."""
        ((ours, others),) = self.read(lambda transaction: transaction.rows(self.engine.tables))
        if not ours:
            if others:
                raise StoreVersionError("the file holds something else than a store")
            self.engine.create(STATEMENTS, self.timeout)
        meta = self.write(lambda transaction: _named(transaction, self.engine.kind))
        if meta.get("schema") != SCHEMA_VERSION:
            raise StoreVersionError(
                "the store was written by another version of sordino: `sordino store migrate`, or use that version"
            )
        if self.engine.kind == "postgresql" and not adopting:
            found = self.read(system_of)
            if any(meta.get(name, value) != value for name, value in found.items()):
                raise RollbackError(
                    "this is another database than the store was made in, or one that was promoted or restored: what "
                    "was committed before may be lost. `sordino store adopt` goes on, and says what that costs"
                )
        return meta

    def write(self, script: Callable[[Transaction], _T]) -> _T:
        """Run a script and keep what it did, before returning; whatever else is raised, nothing was kept.

        Raises:
            StoreBusyError: Others kept the store locked for longer than its timeout.
            StoreError: The database refuses.
            OutcomeUnknownError: It went away while it kept what was done.
        """
        try:
            return self.engine.write(script, self.timeout)
        except CommitUnknownError:
            raise _unknown() from None

    def certainly(self, script: Callable[[Transaction], _T], done: Callable[[Transaction], _T | None]) -> _T:
        """Run a script and keep what it did; where that is not known, look, and do it again if it was not.

        Args:
            script: What is to be done.
            done: Looks whether it was, under the locks that the script takes: another connection may still be
                committing it. Returns what the script returned, None if it was not done.

        Raises:
            StoreBusyError: Others kept the store locked for longer than its timeout.
            StoreError: The database refuses.
            OutcomeUnknownError: It stayed away.
        """
        try:
            return self.engine.write(script, self.timeout)
        except CommitUnknownError:
            pass

        def again(transaction: Transaction) -> _T:
            found = done(transaction)
            return script(transaction) if found is None else found

        try:
            return self.write(again)
        except StoreError:
            # Whether the first was kept stays unknown, whatever becomes of the second.
            raise _unknown() from None

    def read(self, script: Callable[[Transaction], _T]) -> _T:
        """Run a script that changes nothing.

        Raises:
            StoreBusyError: Others kept the store locked for longer than its timeout.
            StoreError: The database refuses.
        """
        try:
            return self.engine.read(script, self.timeout)
        except CommitUnknownError:
            raise StoreError("the store went away while it was read", retry=True) from None

    def close(self) -> None:
        """Give the connections of this process back; the next call takes new ones."""
        self.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Store {self.id[:8]} in {self.engine.kind}>"


def _unknown() -> OutcomeUnknownError:
    return OutcomeUnknownError("the store went away before it said whether it kept this", charged=None, retry=True)


def store_of(store: object) -> Store:
    """Return a store, opened if it is named.

    Raises:
        DataTypeError: It is none.
    """
    if isinstance(store, Store):
        return store
    if isinstance(store, str | Path):
        return Store(store)
    raise DataTypeError("store must be a sordino.Store, the path of one, or a URL of PostgreSQL")


def check_key(store: Store, key_id: str | None = None) -> None:
    """Refuse another key than the one under whose id something was sealed here first.

    Args:
        store: The store.
        key_id: Its id; None for the one in force.

    Raises:
        KeyMissingError: There is no key.
        WrongKeyError: It is another one; nothing was sealed, taken or charged.
        StoreError: The store cannot be used.
    """
    name = store.keys.key_id if key_id is None else key_id
    if name in store._checked:
        return
    own = store.keys.tag("check", b"", name).hex()

    def known(transaction: Transaction) -> str | None:
        rows = transaction.rows("SELECT value FROM meta WHERE name = ?", f"check {name}")
        return rows[0][0] if rows else None

    def script(transaction: Transaction) -> str | None:
        transaction.later(_NAME, f"check {name}", own)
        return known(transaction)

    found = store.read(known)
    if found is None:
        found = store.certainly(script, known)
    if found != own:
        raise WrongKeyError("the store has another key of this id; nothing was sealed, taken or charged")
    store._checked.add(name)


def _named(transaction: Transaction, kind: str) -> dict[str, str]:
    """Give a new store its name; of two that make it at once, the first."""
    known: dict[str, str] = dict(transaction.rows("SELECT name, value FROM meta"))
    if "store" not in known:
        own = {"schema": SCHEMA_VERSION, "store": secrets.token_hex(16), "key": "1"}
        if kind == "postgresql":
            own |= system_of(transaction)
        for name, value in own.items():
            transaction.later(_NAME, name, value)
    return dict(transaction.rows("SELECT name, value FROM meta"))
