"""A store in PostgreSQL, by psycopg 3."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import cache
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector
from typing import Any, TypeVar

from sordino._support.processes import this_process
from sordino.errors import DataTypeError, MissingDependencyError, SordinoError, StoreError
from sordino.storage.transactions import (
    CommitUnknownError,
    Engine,
    LockedError,
    Row,
    Transaction,
    Written,
    backing_off,
    owned_by,
)

__all__ = ["PostgresEngine", "system_of"]

_T = TypeVar("_T")

# Connections that are kept for the next call.
_IDLE = 8
# Connections of a parent: closing one would end the parent's session.
_inherited: list[object] = []
# SQLSTATEs after which nothing was kept and the same may succeed: locks, deadlocks, serialization.
_AGAIN = {"40001", "40P01", "55P03"}
_TYPES = (("BLOB", "BYTEA"), ("INTEGER", "BIGINT"), (") STRICT", ")"))
# What is large is noise, sealed or deflated: PostgreSQL would spend its time on compressing what does not compress.
_LARGE = {"answer": ("bytes",), "sealed": ("bytes",), "step": ("units", "answers", "changes")}
_GUARD = """
CREATE OR REPLACE FUNCTION sordino_kept() RETURNS trigger LANGUAGE plpgsql
AS $$ BEGIN RAISE EXCEPTION 'entries are only added'; END $$
"""


def _psycopg() -> Any:
    try:
        import psycopg  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingDependencyError(
            "PostgreSQL needs the package psycopg: pip install 'sordino[postgresql]'"
        ) from None
    return psycopg


class PostgresEngine(Engine):
    """Connections that are taken and given back; works behind a pool in transaction mode.

    Args:
        source: A URL, or a function that returns a new connection of psycopg.
        replicas: How many synchronous standbys a commit must reach; None accepts that a failover may lose commits, and
            warns where a standby is asynchronous.

    Raises:
        MissingDependencyError: psycopg is not installed.
        StoreError: The server cannot be reached, is a standby, does not write to its disk, or has fewer synchronous
            standbys.
    """

    kind = "postgresql"
    locking = " FOR UPDATE"
    tables = "SELECT count(*), 0 FROM pg_tables WHERE tablename = 'meta' AND schemaname = ANY (current_schemas(false))"

    def __init__(self, source: str | Callable[[], Any], replicas: int | None = None) -> None:
        if not isinstance(source, str) and not callable(source):
            raise DataTypeError("a store of PostgreSQL is a URL, or a function that returns a connection")
        self._source = source
        self._psycopg = _psycopg()
        self._process = this_process()
        self._idle: list[Any] = []
        self._lock = threading.Lock()
        owned_by(self, self._idle)
        self.read(lambda transaction: _require_safe(transaction, replicas), 10.0)

    def _connected(self) -> Any:
        if this_process() != self._process:
            _inherited.append((self._idle, self._lock))
            self._idle, self._lock, self._process = [], threading.Lock(), this_process()
            owned_by(self, self._idle)
        with self._lock:
            if self._idle:
                return self._idle.pop()
        try:
            if callable(self._source):
                connection = self._source()
                if not isinstance(connection, self._psycopg.Connection):
                    raise DataTypeError("the function of a store must return a connection of psycopg")
                connection.autocommit = True
            else:
                connection = self._psycopg.connect(self._source, autocommit=True, prepare_threshold=None)
        except self._psycopg.Error:
            raise StoreError("the store cannot be reached: PostgreSQL does not answer", retry=True) from None
        connection.prepare_threshold = None
        return connection

    def _given_back(self, connection: Any) -> None:
        with self._lock:
            if not connection.closed and len(self._idle) < _IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def write(self, script: Callable[[Transaction], _T], timeout: float) -> _T:
        """Run a script and keep what it did."""
        return backing_off(lambda: self._run("READ COMMITTED READ WRITE", script, timeout), timeout)

    def read(self, script: Callable[[Transaction], _T], timeout: float) -> _T:
        """Run a script that changes nothing."""
        return backing_off(lambda: self._run("REPEATABLE READ READ ONLY", script, timeout), timeout)

    def create(self, statements: tuple[str, ...], timeout: float) -> None:
        """Make the tables that are not there."""

        def script(transaction: Transaction) -> None:
            # Two that create the same table at once: the second waits for the first.
            transaction.rows("SELECT pg_advisory_xact_lock(7374)")
            transaction.rows(_GUARD)
            for statement in statements:
                for name, own in _TYPES:
                    statement = statement.replace(name, own)  # noqa: PLW2901 - one statement, in this dialect
                transaction.rows(_triggers(statement))
            for table, columns in _LARGE.items():
                changes = ", ".join(f"ALTER COLUMN {column} SET STORAGE EXTERNAL" for column in columns)
                transaction.rows(f"ALTER TABLE {table} {changes}")

        self.write(script, timeout)

    def _run(self, kind: str, script: Callable[[Transaction], _T], timeout: float) -> _T:
        connection = self._connected()
        try:
            result = _Statements(connection, self._psycopg).run(kind, script, timeout)
        except BaseException as error:
            if isinstance(error, SordinoError | LockedError):
                with suppress(self._psycopg.Error):
                    connection.execute("ROLLBACK")
            # An interruption may have come between a statement and its answer, which would be taken for another's.
            if not isinstance(error, SordinoError | LockedError) or connection.info.transaction_status:
                connection.close()
            self._given_back(connection)
            raise
        self._given_back(connection)
        return result

    def close(self) -> None:
        """Close the connections of this process that nobody uses."""
        if this_process() == self._process:
            with self._lock:
                idle = list(self._idle)
                self._idle.clear()
            for connection in idle:
                connection.close()


class _Statements:
    """A transaction of PostgreSQL: statements leave together with the next one whose answer is looked at.

    Each journey to the server takes as long as several statements there.
    """

    def __init__(self, connection: Any, psycopg: Any) -> None:
        self._connection = connection
        self._psycopg = psycopg
        # None where statements leave one by one.
        self._pipeline: Any = None

    def run(self, kind: str, script: Callable[[Transaction], _T], timeout: float) -> _T:
        """Run a script in a transaction, with limits on waiting, and with a commit that reaches the disk.

        Raises:
            CommitUnknownError: The connection was lost while it was kept.
            LockedError: Nothing was kept, and it may be tried again.
            StoreError: Nothing was kept.
        """
        cursor: Any = None
        try:
            with self._connection.pipeline() if self._psycopg.Pipeline.is_supported() else nullcontext() as pipeline:
                self._pipeline = pipeline
                self.later(f"BEGIN ISOLATION LEVEL {kind}")
                self.later(_settings(timeout))
                result = script(self)
                cursor = self._connection.cursor()
                cursor.execute("COMMIT")
                self._flush()
        except self._psycopg.Error as error:
            # Of the commit, or of what left together with it: what the server calls an error, it has rolled back.
            if cursor is not None and error.diag.severity_nonlocalized != "ERROR":
                raise CommitUnknownError from None
            raise self._error(error) from None
        if cursor.statusmessage != "COMMIT":
            raise StoreError("the store kept nothing: a statement before had failed", retry=True)
        return result

    @staticmethod
    def _error(error: Any) -> Exception:
        """Return what an error before the commit means."""
        if error.sqlstate in _AGAIN:
            return LockedError()
        if error.sqlstate is None or error.sqlstate[:2] in {"08", "57"}:
            return StoreError("the store went away before anything was kept", retry=True)
        return StoreError(f"the store refuses a statement ({error.sqlstate})")

    def _sent(self, statement: str, values: Row) -> Any:
        try:
            return self._connection.execute(_translated(statement) if values else statement, values or None)
        except self._psycopg.Error as error:
            raise self._error(error) from None

    def _flush(self) -> None:
        """Send all that is to leave: psycopg (3.3) may wait for answers to what it has sent in part, for ever."""
        sent = self._connection.pgconn
        while sent.flush():
            with DefaultSelector() as selector:
                selector.register(sent.socket, EVENT_READ | EVENT_WRITE)
                if any(events & EVENT_READ for _, events in selector.select()):
                    sent.consume_input()

    def _answered(self) -> None:
        """Wait for the answers of all that have left."""
        try:
            if self._pipeline is not None:
                self._flush()
                self._pipeline.sync()  # raises the error of the first that failed
        except self._psycopg.Error as error:
            raise self._error(error) from None

    def rows(self, statement: str, *values: Any) -> list[Row]:
        """Run a statement and return its rows."""
        cursor = self._sent(statement, values)
        self._answered()
        return [] if cursor.description is None else cursor.fetchall()

    def count(self, statement: str, *values: Any) -> int:
        """Run a statement and return how many rows it changed."""
        return self.changed(self.later(statement, *values))

    def later(self, statement: str, *values: Any) -> Written:
        """Run a statement before the next, or before the transaction is kept."""
        written: Written = self._sent(statement, values)
        return written

    def changed(self, written: Written) -> int:
        """Return how many rows a statement changed, when its answer is there."""
        self._answered()
        return written.rowcount


@cache
def _translated(statement: str) -> str:
    return statement.replace("?", "%s")


@cache
def _settings(timeout: float) -> str:
    limit = max(int(timeout * 1000.0), 1)
    # Local to the transaction: nothing is left behind for others behind a pool.
    return (
        "SELECT set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit') IN "
        "('off', 'local', 'remote_write') THEN 'on' ELSE current_setting('synchronous_commit') END, true), "
        f"set_config('lock_timeout', '{limit}', true), set_config('statement_timeout', '{2 * limit}', true), "
        f"set_config('idle_in_transaction_session_timeout', '{4 * limit}', true)"
    )


def _triggers(statement: str) -> str:
    """Return a trigger of SQLite as one of PostgreSQL; any other statement as it is."""
    head, begin, _ = statement.partition(" BEGIN ")
    if not begin:
        return statement
    return head.replace("IF NOT EXISTS ", "").replace("CREATE ", "CREATE OR REPLACE ") + (
        " FOR EACH ROW EXECUTE FUNCTION sordino_kept()"
    )


def _require_safe(transaction: Transaction, replicas: int | None) -> None:
    """Refuse a server that may lose what it has committed.

    Raises:
        StoreError: It is a standby, does not write to its disk, or has fewer synchronous standbys than demanded.
    """
    ((standby, fsync, names),) = transaction.rows(
        "SELECT pg_is_in_recovery(), current_setting('fsync'), current_setting('synchronous_standby_names')"
    )
    if standby:
        raise StoreError("this server is a standby: connect to the primary")
    if fsync != "on":
        raise StoreError("this server runs with fsync=off: what it has committed may be lost")
    found = transaction.rows("SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming'")
    synchronous = sum(1 for (state,) in found if state in {"sync", "quorum"})
    if replicas is not None and (not names or synchronous < replicas):
        raise StoreError(f"of {replicas} synchronous standbys {synchronous} are there")
    if replicas is None and len(found) > synchronous:
        warnings.warn(
            "this store has asynchronous standbys: a failover may lose commits, and with them spend more than the "
            "total; replicas= demands synchronous ones",
            stacklevel=6,
        )


def system_of(transaction: Transaction) -> dict[str, str]:
    """Return which database cluster this is, and on which timeline: what a restored backup or a promotion changes."""
    ((allowed,),) = transaction.rows(
        "SELECT has_function_privilege('pg_control_system()', 'execute') AND "
        "has_function_privilege('pg_control_checkpoint()', 'execute')"
    )
    if not allowed:
        return {}
    ((system, timeline),) = transaction.rows(
        "SELECT s.system_identifier::text, c.timeline_id::text FROM pg_control_system() s, pg_control_checkpoint() c"
    )
    return {"system": system, "timeline": timeline}
