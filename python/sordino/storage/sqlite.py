"""A store in a file of SQLite, or in memory."""

from __future__ import annotations

import os
import secrets
import sqlite3
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from sordino._support.files import reason_of, sync_folder
from sordino._support.processes import this_process
from sordino.errors import BusyError, ForkError, StoreError, StoreVersionError
from sordino.storage.forks import quiet_at_forks
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

__all__ = ["SqliteEngine"]

_T = TypeVar("_T")

# The least version whose tables have types.
_STRICT = (3, 37)
# Write-ahead logs are safe between processes from here on (before, two that checkpoint may damage the file).
_SAFE_LOGS = (3, 51, 3)
_MEMORY = ":memory:"
# File systems on which locks of a file do not hold, or hold on one machine alone.
_SHARED = {"9p", "afs", "ceph", "cifs", "fuse.sshfs", "glusterfs", "lustre", "nfs", "nfs4", "smb3", "smbfs", "vboxsf"}
# Connections of a parent: closing one would drop the locks that the parent holds on the file.
_inherited: list[object] = []


class SqliteEngine(Engine):
    """One connection a process, whose threads take turns.

    Args:
        path: The file, made for its owner alone if it is not there; or ':memory:', which is gone with the process.

    Raises:
        StoreError: The file cannot be opened, or lies where locks do not hold.
        StoreVersionError: SQLite is too old, or the file was kept in a way that it is not safe to go on with.
    """

    kind = "sqlite"
    tables = (
        "SELECT coalesce(sum(name = 'meta'), 0), coalesce(sum(name <> 'meta'), 0) "
        "FROM sqlite_master WHERE type = 'table'"
    )

    def __init__(self, path: str | Path) -> None:
        if sqlite3.sqlite_version_info < _STRICT:
            raise StoreVersionError(f"SQLite {sqlite3.sqlite_version} is too old: a store needs 3.37")
        self._memory = str(path) == _MEMORY
        self.path = path if self._memory else Path(path).absolute()
        self._process = this_process()
        self._lock = threading.RLock()
        # One, or none.
        self._connections: list[sqlite3.Connection] = []
        owned_by(self, self._connections)
        # Whether this is a child that was forked in the middle of a transaction: SQLite believes to be in it here.
        self._torn = False
        quiet_at_forks(self)
        with self._lock:
            self._connections.append(self._opened())

    def _opened(self) -> sqlite3.Connection:
        try:
            if not self._memory:
                _made(Path(self.path))
            connection = sqlite3.connect(self.path, timeout=0.0, isolation_level=None, check_same_thread=False)
        except StoreError:
            raise
        except (OSError, ValueError) as error:
            raise StoreError(f"the store cannot be opened: {reason_of(error)}") from None
        except sqlite3.Error:
            raise StoreError("the store cannot be opened: it is no file of SQLite, or may not be read") from None
        try:
            backing_off(lambda: _prepared(connection, self._memory), 10.0)
        except BaseException:
            connection.close()
            raise
        return connection

    def _turn(self) -> Any:
        if this_process() != self._process:
            if self._memory:
                raise ForkError("a store in memory belongs to the process that made it")
            if self._torn:
                raise ForkError("the process was forked in the middle of a transaction of this store")
            _inherited.append((self._connections, self._lock))
            self._connections, self._lock, self._process = [], threading.RLock(), this_process()
            owned_by(self, self._connections)
        if self._lock._is_owned():  # type: ignore[attr-defined]
            raise BusyError("a call of this store is under way in this thread; nothing was done")
        return self._lock

    def write(self, script: Callable[[Transaction], _T], timeout: float) -> _T:
        """Run a script and keep what it did."""
        return backing_off(lambda: self._run("BEGIN IMMEDIATE", script, timeout), timeout)

    def read(self, script: Callable[[Transaction], _T], timeout: float) -> _T:
        """Run a script that changes nothing."""
        return backing_off(lambda: self._run("BEGIN", script, timeout), timeout)

    def create(self, statements: tuple[str, ...], timeout: float) -> None:
        """Make the tables that are not there."""

        def script(transaction: Transaction) -> None:
            for statement in statements:
                transaction.rows(statement)

        self.write(script, timeout)

    def _run(self, begin: str, script: Callable[[Transaction], _T], timeout: float) -> _T:
        with self._turn():
            if not self._connections:
                self._connections.append(self._opened())
            (connection,) = self._connections
            transaction = _Statements(connection)
            try:
                transaction.rows(begin)
                result = script(transaction)
                # Readers may hold a commit up: it is tried again as long as they may take.
                backing_off(lambda: transaction.rows("COMMIT"), timeout)
            except BaseException as error:
                if connection.in_transaction:
                    with suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
                if connection.in_transaction or isinstance(error, CommitUnknownError):
                    self._connections.clear()
                    connection.close()
                raise
        return result

    def rest(self) -> None:
        """Close the connection, if the next call can have another one."""
        if not self._memory:
            self.close()

    def close(self) -> None:
        """Close the connection of this process."""
        if this_process() == self._process:
            with self._lock:
                for connection in self._connections:
                    connection.close()
                self._connections.clear()


class _Statements:
    """A transaction of SQLite."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def _execute(self, statement: str, values: Row) -> sqlite3.Cursor:
        try:
            return self._connection.execute(statement, values)
        except sqlite3.OperationalError as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
                raise LockedError from None
            if statement == "COMMIT":
                raise CommitUnknownError from None
            raise StoreError(f"the store refuses: {_said(code)}", retry=code == sqlite3.SQLITE_FULL) from None
        except sqlite3.IntegrityError:
            raise StoreError("the store refuses: what is to be kept does not fit what is there") from None
        except sqlite3.DatabaseError:
            if statement == "COMMIT":
                raise CommitUnknownError from None
            raise StoreError("the store refuses: the file is damaged, or is none of this kind") from None

    def rows(self, statement: str, *values: Any) -> list[Row]:
        """Run a statement and return its rows."""
        return self._execute(statement, values).fetchall()

    def count(self, statement: str, *values: Any) -> int:
        """Run a statement and return how many rows it changed."""
        return self._execute(statement, values).rowcount

    def later(self, statement: str, *values: Any) -> Written:
        """Run a statement."""
        return self._execute(statement, values)

    @staticmethod
    def changed(written: Written) -> int:
        """Return how many rows a statement changed."""
        return written.rowcount


def _said(code: int) -> str:
    reasons = {
        sqlite3.SQLITE_FULL: "the disk is full",
        sqlite3.SQLITE_IOERR: "the disk does not read or write",
        sqlite3.SQLITE_READONLY: "it may not be written",
        sqlite3.SQLITE_CANTOPEN: "the file, or one beside it, cannot be opened",
    }
    return reasons.get(code, "a statement failed")


def _made(path: Path) -> None:
    """Make the file for its owner alone; refuse what is none, and where locks of files do not hold."""
    # A file that is there is not opened: closing any descriptor of it would drop all locks that this process has on it,
    # those of a transaction of another thread too (POSIX).
    try:
        found = path.stat()
    except FileNotFoundError:
        _created(path)
        found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise OSError(0, "it is no regular file")
    if found.st_size == 0:
        sync_folder(path)
    kind = _file_system(path)
    if kind in _SHARED:
        raise StoreError(
            f"the store lies on a network or shared folder ({kind}), where locks do not hold; keep it on a disk of "
            "this machine, or use PostgreSQL"
        )


def _created(path: Path) -> None:
    """Make a file under a name of its own and close it, then give it its name, unless somebody else has made one."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
    own = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    os.close(os.open(own, flags, 0o600))
    try:
        os.link(own, path)
    except FileExistsError:
        pass
    except OSError:
        with suppress(FileExistsError):  # no links here: this descriptor stays open as long as the process
            os.open(path, flags, 0o600)
    finally:
        own.unlink()


def _file_system(path: Path) -> str | None:
    """Return the type of the file system that a path lies on, None where the system does not show it."""
    try:
        mounts = Path("/proc/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    place, longest, found = path.resolve(), 0, None
    for mount in mounts:
        fields = mount.split(" ")
        if len(fields) < 3:
            continue
        folder = Path(fields[1].replace("\\040", " "))
        if len(folder.parts) >= longest and (place == folder or folder in place.parents):
            longest, found = len(folder.parts), fields[2]
    return found


def _prepared(connection: sqlite3.Connection, memory: bool) -> None:
    """Say how the file is kept: on the disk before a commit returns."""
    statements = _Statements(connection)
    for setting in ("foreign_keys=ON", "trusted_schema=OFF", "mmap_size=0", "fullfsync=ON", "secure_delete=ON"):
        statements.rows(f"PRAGMA {setting}")
    if memory:
        return
    ((mode,),) = statements.rows("PRAGMA journal_mode")
    if sqlite3.sqlite_version_info >= _SAFE_LOGS:
        wanted, synchronous = "wal", "FULL"
    elif mode == "wal":
        raise StoreVersionError(
            "the store was kept by a newer SQLite with a write-ahead log, in which SQLite "
            f"{sqlite3.sqlite_version} may damage it: use SQLite 3.51.3 or newer"
        )
    else:
        wanted, synchronous = "truncate", "EXTRA"
    statements.rows(f"PRAGMA synchronous={synchronous}")
    if mode != wanted:
        statements.rows(f"PRAGMA journal_mode={wanted}")
