"""Ledgers and streams in a store, beside the engine's own commit of the same bytes.

The baseline promises nothing and computes nothing: sqlite3 or psycopg writes, in bare transactions with the settings
of the store, what the library has just written. Its rows are the library's own: each statement that a store is given
is noted, and written again into a twin, a copy of the store that has come the same way, so that both grow alike. "In
one row" is a bare transaction that writes as many bytes into a table of one column. They take turns, on the same disk,
in one process. The store has a key, and all its defaults. A charge stands beside plain Python too, which adds it up
and appends a line of JSON to a file that it syncs: durable, but for one process, and nothing can be looked up.

SQLite keeps its file below `TMPDIR`, or in /var/tmp. PostgreSQL is the server of `SORDINO_POSTGRES`, a URL with the
right to create databases; without it a server is started on the same disk and deleted in the end, where its programs
and psycopg are installed. Where they are not, its rows are left out, and that is said on stderr.

Run `python benches/services.py`.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import secrets
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from statistics import quantiles
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np
from harness import Row, amount, in_process, main, medians, noted, quick, versus

import sordino as so
from sordino.storage.chain import entry_hash

_VARIABLE = "SORDINO_POSTGRES"
_KEY = bytes(range(32))
_UNIT = so.GaussianDP(mu=1.0)
# A power of two: a million of them is one number as well.
_SMALL = 2.0**-24
_BUFFERS = 4
_HORIZON = 2**24
_CELLS = 100

# Operations of a turn; a state is kept with about every thirtieth step of one counter.
_CHARGES = 5 if quick() else 20
_STEPS = 5 if quick() else 60
_TURNS = 25
_SIZES = (10**2, 10**3) if quick() else (10**3, 10**4, 10**5, 10**6)
_COUNTERS = 10 if quick() else 500
_GATHERED = (1, 10) if quick() else (1, 10, 100, 1000)
_LONG = 10**3 if quick() else 10**6
_SHORT = 10**2 if quick() else 10**3
_PROCESSES = 2 if quick() else 8
_EACH = 5 if quick() else 60

Write = tuple[str, tuple[Any, ...]]
Transaction = list[Write]
_TABLES = ("ledger", "entry", "request", "answer", "stream", "sealed", "step")


# Engines.


class _Bare(ABC):
    """A connection of the engine's own driver.

    Attributes:
        begin: What begins a transaction that writes.
        types: Its words for a key that counts and for bytes.
    """

    begin: str
    types: Mapping[str, str]

    @abstractmethod
    def execute(self, statement: str, values: tuple[Any, ...] = ()) -> Any:
        """Run a statement whose parameters are question marks."""

    @abstractmethod
    def close(self) -> None:
        """Close it."""

    def commit(self, writes: Iterable[Write]) -> None:
        """Write in one transaction."""
        execute = self.execute
        execute(self.begin)
        for statement, values in writes:
            execute(statement, values)
        execute("COMMIT")

    def make_plain(self) -> None:
        """Make the table for commits of one row, and another whose single row is locked by each."""
        for statement in (
            "CREATE TABLE plain (id {serial}, bytes {blob} NOT NULL)",
            "CREATE TABLE plain_head (id INTEGER PRIMARY KEY, head INTEGER NOT NULL)",
            "INSERT INTO plain_head VALUES (1, 0)",
        ):
            self.execute(statement.format(**self.types))


class _BareSqlite(_Bare):
    begin = "BEGIN IMMEDIATE"
    types = {"serial": "INTEGER PRIMARY KEY", "blob": "BLOB"}  # noqa: RUF012 - of the dialect

    def __init__(self, where: str, settings: Mapping[str, Any]) -> None:
        self._connection = sqlite3.connect(where, timeout=60.0, isolation_level=None)
        for name, value in settings.items():
            self._connection.execute(f"PRAGMA {name}={value}")

    def execute(self, statement: str, values: tuple[Any, ...] = ()) -> Any:
        """Run a statement."""
        return self._connection.execute(statement, values)

    def close(self) -> None:
        """Close it."""
        self._connection.close()


class _BarePostgres(_Bare):
    begin = "BEGIN"
    types = {"serial": "BIGSERIAL PRIMARY KEY", "blob": "BYTEA"}  # noqa: RUF012 - of the dialect

    def __init__(self, where: str) -> None:
        import psycopg  # noqa: PLC0415 - an extra

        # As the store has it: whatever stands behind a pool is not prepared.
        self._connection = psycopg.connect(where, autocommit=True, prepare_threshold=None)
        self.copy = self._connection.cursor().copy

    def execute(self, statement: str, values: tuple[Any, ...] = ()) -> Any:
        """Run a statement."""
        return self._connection.execute(_marked(statement), values or None)

    def close(self) -> None:
        """Close it."""
        self._connection.close()


@cache
def _marked(statement: str) -> str:
    return statement.replace("?", "%s")


class _Engine(ABC):
    """Where databases are made.

    Attributes:
        name: For people.
        driver: What the store and the baseline talk to it with.
    """

    name: str
    driver: str

    @abstractmethod
    def fresh(self) -> str:
        """Return where a new database is."""

    @abstractmethod
    def copied(self, where: str) -> str:
        """Return where a copy of a database is, that nobody is connected to."""

    @abstractmethod
    def opener(self, where: str, like: so.Store) -> Callable[[], _Bare]:
        """Return what opens a connection of the driver with the settings of a store, here or in another process."""

    def bare(self, where: str, like: so.Store) -> _Bare:
        """Return a connection."""
        return self.opener(where, like)()

    @abstractmethod
    def filled(self, where: str, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Insert many rows by one statement of the store."""

    @abstractmethod
    def settled(self, where: str) -> None:
        """Let the engine do now what it would do later."""

    def store(self, where: str) -> so.Store:
        """Return a store."""
        return so.Store(where, key=_KEY)


class _Sqlite(_Engine):
    name, driver = "SQLite", "sqlite3"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def fresh(self) -> str:
        """Return a path."""
        return str(self._folder / f"{secrets.token_hex(6)}.db")

    def copied(self, where: str) -> str:
        """Return a path."""
        return shutil.copyfile(where, self.fresh())

    def opener(self, where: str, like: so.Store) -> Callable[[], _Bare]:
        """Return what opens it, with what the store says of its own."""
        names = ("synchronous", "fullfsync", "secure_delete", "foreign_keys", "mmap_size", "journal_mode")
        said = {name: like.read(lambda t, name=name: t.rows(f"PRAGMA {name}"))[0][0] for name in names}
        return partial(_BareSqlite, where, said)

    def filled(self, where: str, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Insert rows."""
        with closing(sqlite3.connect(where, isolation_level=None)) as connection:
            connection.execute("BEGIN")
            connection.executemany(statement, rows)
            connection.execute("COMMIT")

    def settled(self, where: str) -> None:
        """Do nothing: nothing is left for later."""


class _Postgres(_Engine):
    name, driver = "PostgreSQL", "psycopg"

    def __init__(self, url: str) -> None:
        self._url = url
        self._made: list[str] = []

    def _new(self, like: str) -> str:
        name = f"sordino_bench_{secrets.token_hex(6)}"
        with closing(_BarePostgres(self._url)) as server:
            server.execute(f"CREATE DATABASE {name} {like}")
        self._made.append(name)
        return urlsplit(self._url)._replace(path=f"/{name}").geturl()

    def fresh(self) -> str:
        """Return a URL."""
        return self._new("")

    def copied(self, where: str) -> str:
        """Return a URL."""
        return self._new(f"TEMPLATE {urlsplit(where).path[1:]}")

    def opener(self, where: str, like: so.Store) -> Callable[[], _Bare]:
        """Return what opens it: the store has settings of its transactions alone, and they do not lower the server's."""
        del like
        return partial(_BarePostgres, where)

    def filled(self, where: str, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Copy rows in."""
        found = re.match(r"INSERT INTO (\w+) \(([^)]*)\)", statement)
        assert found is not None
        with (
            closing(_BarePostgres(where)) as connection,
            connection.copy(f"COPY {found[1]} ({found[2]}) FROM STDIN") as copy,
        ):
            for row in rows:
                copy.write_row(row)

    def settled(self, where: str) -> None:
        """Count the rows, and write what waits to be written."""
        with closing(_BarePostgres(where)) as connection:
            connection.execute("VACUUM ANALYZE")
            with suppress(Exception):  # an administrator alone may
                connection.execute("CHECKPOINT")

    def close(self) -> None:
        """Drop what was made."""
        with closing(_BarePostgres(self._url)) as server:
            for name in self._made:
                server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def _folder() -> str | None:
    """Return where files are made: a folder that is on a disk, if nobody names one."""
    return None if "TMPDIR" in os.environ or not Path("/var/tmp").is_dir() else "/var/tmp"


def _program(name: str) -> str | None:
    """Return a program of PostgreSQL: on the path, or the newest where Debian keeps them."""
    kept = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: float(path.parts[4]))
    return shutil.which(name) or (str(kept[-1]) if kept else None)


@contextmanager
def _server() -> Iterator[str | None]:
    """Yield the URL of a server of PostgreSQL, None where there is none; one that is started here is deleted again."""
    given, initdb, control = os.environ.get(_VARIABLE), _program("initdb"), _program("pg_ctl")
    try:
        import psycopg  # noqa: F401, PLC0415 - an extra
    except ImportError:
        given = initdb = None
    if given is not None or initdb is None or control is None:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="sordino-pg-", dir=_folder()) as folder:
        # The programs refuse to run as root.
        other: dict[str, Any] = {"cwd": folder, "stdout": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres", "postgres")
            other |= {"user": "postgres", "group": "postgres", "extra_groups": []}
        data = f"{folder}/data"
        subprocess.run(
            [initdb, "-D", data, "-U", "sordino", "-A", "trust", "-E", "UTF8", "--no-locale"], check=True, **other
        )
        options = f"-k {folder} -p 5432 -c listen_addresses="
        subprocess.run([control, "-D", data, "-w", "-l", f"{folder}/log", "-o", options, "start"], check=True, **other)
        try:
            yield f"postgresql://sordino@/postgres?host={folder}&port=5432"
        finally:
            subprocess.run([control, "-D", data, "-w", "-m", "fast", "stop"], check=True, **other)


@contextmanager
def _engines() -> Iterator[list[_Engine]]:
    with tempfile.TemporaryDirectory(prefix="sordino-bench-", dir=_folder()) as folder, _server() as url:
        found: list[_Engine] = [_Sqlite(Path(folder))]
        if url is None:
            print(f"no PostgreSQL: name one in {_VARIABLE}, or install its server and psycopg", file=sys.stderr)
        else:
            found.append(_Postgres(url))
        try:
            yield found
        finally:
            if url is not None:
                found[-1].close()  # type: ignore[attr-defined]


# What a store writes, and the same by the driver alone.


class _Noting:
    """A transaction that notes what it writes."""

    def __init__(self, transaction: Any, writes: Transaction) -> None:
        self._transaction = transaction
        self._writes = writes

    def rows(self, statement: str, *values: Any) -> Any:
        """Run a statement and return its rows."""
        return self._noted(self._transaction.rows, statement, values)

    def count(self, statement: str, *values: Any) -> int:
        """Run a statement and return how many rows it changed."""
        return self._noted(self._transaction.count, statement, values)

    def later(self, statement: str, *values: Any) -> Any:
        """Run a statement before the next one whose answer is looked at."""
        return self._noted(self._transaction.later, statement, values)

    def changed(self, written: Any) -> int:
        """Return how many rows a statement changed."""
        return self._transaction.changed(written)

    def _noted(self, run: Callable[..., Any], statement: str, values: tuple[Any, ...]) -> Any:
        if statement.startswith(("INSERT", "UPDATE", "DELETE")):
            self._writes.append(_without_conditions(statement, values))
        return run(statement, *values)


def _without_conditions(statement: str, values: tuple[Any, ...]) -> Write:
    """Return what writes the same rows: that these are still to be written is known here."""
    head, selecting, rest = statement.partition(") SELECT ")
    if selecting:
        marks, _, _ = rest.partition(" FROM ")
        return f"{head}) VALUES ({marks})", values[: marks.count("?")]
    plain, _, rest = statement.partition(" AND NOT EXISTS ")
    return plain, values[: len(values) - rest.count("?")]


def _noted(store: so.Store) -> list[Transaction]:
    """Return a list to which each transaction of a store is added from now on, as its statements that write."""
    noted: list[Transaction] = []
    write = store.engine.write

    def noting(script: Callable[[Any], Any], *rest: Any) -> Any:
        writes: Transaction = []

        def again(transaction: Any) -> Any:
            writes.clear()
            return script(_Noting(transaction, writes))

        result = write(again, *rest)
        if writes:
            noted.append(writes)
        return result

    store.engine.write = noting  # type: ignore[method-assign]
    return noted


def _together(writes: Transaction) -> bytes:
    """Return about as many bytes as the statements write."""
    return b"".join(_as_bytes(value) for _, values in writes for value in values)


def _as_bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else value.encode() if isinstance(value, str) else bytes(8)


_PLAIN = "INSERT INTO plain (bytes) VALUES (?)"


class _Twins:
    """A store, a copy of it that takes the same rows from the driver alone, and a table of one row a commit.

    Args:
        engine: Where they are.
        store: The store, as it is prepared.
        where: Where it is.
        followers: Names of the methods that do what was done here.
    """

    def __init__(
        self, engine: _Engine, store: so.Store, where: str, followers: Sequence[str] = ("rows", "plain")
    ) -> None:
        self.store = store
        self.followers = followers
        store.close()
        self._rows = engine.bare(engine.copied(where), store)
        self._plain = engine.bare(engine.fresh(), store)
        self._plain.make_plain()
        self._noted = _noted(store)
        self._waiting: dict[str, deque[list[Transaction]]] = {name: deque() for name in followers}

    def ours(self, work: Callable[[], object]) -> float:
        """Return the seconds of work; the others do the same afterwards."""
        start = time.perf_counter()
        work()
        elapsed = time.perf_counter() - start
        made = self._noted.copy()
        self._noted.clear()
        for waiting in self._waiting.values():
            waiting.append(made)
        return elapsed

    def rows(self) -> float:
        """Return the seconds that the driver takes for the rows of the next work, in as many transactions."""
        made = self._waiting["rows"].popleft()
        start = time.perf_counter()
        for writes in made:
            self._rows.commit(writes)
        return time.perf_counter() - start

    def rows_at_once(self) -> float:
        """Return the seconds that the driver takes for the rows of the next work, in one transaction."""
        made = [write for writes in self._waiting["rows_at_once"].popleft() for write in writes]
        start = time.perf_counter()
        self._rows.commit(made)
        return time.perf_counter() - start

    def plain(self) -> float:
        """Return the seconds of as many transactions that write as many bytes, in one row each."""
        made = [_together(writes) for writes in self._waiting["plain"].popleft()]
        start = time.perf_counter()
        for content in made:
            self._plain.commit([(_PLAIN, (content,))])
        return time.perf_counter() - start

    def agree(self) -> bool:
        """Return whether the twin holds the rows of the store, once it has done all that was done there."""
        for name in self.followers[:1]:
            while self._waiting[name]:
                getattr(self, name)()
        queries = [f"SELECT * FROM {table} ORDER BY 1, 2, 3" for table in _TABLES]
        own = self.store.read(lambda transaction: [transaction.rows(query) for query in queries])
        return own == [self._rows.execute(query).fetchall() for query in queries]

    def close(self) -> None:
        """Close all connections; a short run looks whether the baseline did what it says."""
        if quick() and not self.agree():
            raise RuntimeError("the twin is not the same as the store")
        for connection in (self._rows, self._plain, self.store):
            connection.close()


def _alternating(contestants: Mapping[str, Callable[[], float]], full_rounds: int) -> dict[str, float]:
    """Return medians of the seconds that contestants report: they take turns, the order rotates, the first is no turn.

    The first contestant is one turn ahead: others do what it has done.
    """
    names = list(contestants)
    for name in (names[0], *names):
        contestants[name]()
    return medians(contestants, full_rounds)


def _raced(
    twins: _Twins, work: Callable[[], object], full_rounds: int = _TURNS, **others: Callable[[], float]
) -> dict[str, float]:
    """Return the median seconds of work, of the same by the driver alone, and of others."""
    followers = {name: getattr(twins, name) for name in twins.followers}
    return _alternating({"ours": lambda: twins.ours(work), **followers, **others}, full_rounds)


def _times(count: int, call: Callable[[], object]) -> Callable[[], None]:
    def repeated() -> None:
        for _ in range(count):
            call()

    return repeated


def _beside(what: str, times: Mapping[str, float], count: int, driver: str, per: str) -> list[Row]:
    """Return rows: beside the same rows, and as many bytes in one row."""
    each = {name: seconds / count for name, seconds in times.items()}
    goal = 1.3
    return [
        versus(what, each["ours"], f"{driver}, the same rows", each["rows"], goal=goal, per=per),
        versus(what, each["ours"], f"{driver}, the same bytes in one row", each["plain"], per=per),
    ]


# Charges.


def _ledger(store: so.Store) -> so.Ledger:
    return so.Ledger(so.PureDP(epsilon=1e6), store=store)


class _Journal:
    """A ledger in plain Python."""

    def __init__(self, total: float) -> None:
        self._total, self._spent = total, 0.0
        self._file = tempfile.TemporaryFile("w+", dir=_folder())  # noqa: SIM115 - closed below

    def charge(self, epsilon: float) -> None:
        """Charge what is left enough for."""
        if self._spent + epsilon > self._total:
            raise ValueError("the budget does not suffice")
        self._spent += epsilon
        line = {"request": secrets.token_hex(16), "epsilon": epsilon, "spent": self._spent}
        print(json.dumps(line), file=self._file, flush=True)
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close it; every charge has a line."""
        self._file.seek(0)
        assert sum(json.loads(line)["epsilon"] for line in self._file) == self._spent
        self._file.close()


def _charges() -> list[Row]:
    """A charge by itself."""
    rows = []
    with _engines() as engines:
        for engine in engines:
            where = engine.fresh()
            store = engine.store(where)
            ledger, cost = _ledger(store), so.privacy.PureCost(_SMALL)
            charge = partial(ledger.charge, cost)
            _times(20, charge)()
            with closing(_Twins(engine, store, where)) as twins, closing(_Journal(1e6)) as journal:
                plain = _seconds(_times(_CHARGES, partial(journal.charge, _SMALL)), 1)
                times = _raced(twins, _times(_CHARGES, charge), journal=plain)
            what = f"{engine.name}, durable charge"
            rows += _beside(what, times, _CHARGES, engine.driver, "/charge")
            name = "plain Python: a line of JSON, fsync"
            rows.append(versus(what, times["ours"] / _CHARGES, name, times["journal"] / _CHARGES, per="/charge"))
    return rows


def _releases() -> list[Row]:
    """A histogram: charged, drawn, answered."""
    rows = []
    plan = so.plan(so.Histogram(_CELLS), so.PureDP(epsilon=1.0))
    x = np.arange(_CELLS)
    with _engines() as engines:
        for engine in engines:
            for recovery in ("same", "redraw"):
                where = engine.fresh()
                store = engine.store(where)
                ledger = so.Ledger(so.PureDP(epsilon=1e6), store=store, recovery=recovery)
                release = partial(plan.release, x, ledger=ledger)
                _times(20, release)()
                with closing(_Twins(engine, store, where, ("rows",))) as twins:
                    times = _raced(twins, _times(_CHARGES, release))
                what = f"{engine.name}, histogram of {_CELLS} cells, charge and answer, recovery={recovery!r}"
                driver = f"{engine.driver}, the same rows in two transactions"
                each = {name: seconds / _CHARGES for name, seconds in times.items()}
                rows.append(versus(what, each["ours"], driver, each["rows"], per="/release"))
    return rows


# Steps.


def _counter(dim: int = 1, horizon: int = _HORIZON, mechanism: str = "blt") -> so.StreamPlan:
    degree = {"degree": _BUFFERS} if mechanism == "blt" else {}
    return so.plan(so.Continual(so.RunningSum(horizon), dim=dim), _UNIT, mechanism=mechanism, **degree)


def _gaussian(store: so.Store) -> so.Ledger:
    return so.Ledger(so.GaussianDP(mu=1e3), store=store)


def _steps() -> list[Row]:
    """One live counter, a call a step; the states that are kept now and then are in it."""
    rows = []
    with _engines() as engines:
        for engine in engines:
            for dim in (1, 10) if quick() else (1, 1000):
                where, plan, item = engine.fresh(), _counter(dim), 1 if dim == 1 else np.ones(dim, dtype=np.int64)
                store = engine.store(where)
                with plan.open(_gaussian(store), store=store, stream_id="live") as stream:
                    update = partial(stream.update, item)
                    _times(20, update)()
                    with closing(_Twins(engine, store, where)) as twins:
                        times = _raced(twins, _times(_STEPS, update))
                what = f"{engine.name}, stored step of {'one counter' if dim == 1 else f'{dim:,} counters'}"
                rows += _beside(what, times, _STEPS, engine.driver, "/step")
    return rows


def _batches() -> list[Row]:
    """Batches beside the same unstored.

    The goal holds where it can: where a twentieth of the unstored time is at least the driver's own commit.
    """
    rows = []
    with _engines() as engines:
        for engine in engines:
            for mechanism in ("blt", "square-root"):
                for size in _SIZES:
                    if (mechanism, size) != ("square-root", 10**3):
                        rows += _batch(engine, mechanism, size)
    return rows


def _batch(engine: _Engine, mechanism: str, size: int) -> list[Row]:
    where = engine.fresh()
    store = engine.store(where)
    ledger, plan, batch = _gaussian(store), _counter(1, size, mechanism), np.ones(size, dtype=np.int64)
    twins = _Twins(engine, store, where, ("rows",))

    def stored() -> float:
        # What opening writes is no part of it, here and in the twin.
        with plan.open(ledger, store=store, stream_id=secrets.token_hex(8)) as stream:
            twins.ours(lambda: None)
            elapsed = twins.ours(lambda: stream.update(batch))
        twins.ours(lambda: None)
        return elapsed

    def unstored() -> float:
        with plan.open() as stream:
            start = time.perf_counter()
            stream.update(batch)
            return time.perf_counter() - start

    def bare() -> float:
        twins.rows()
        elapsed = twins.rows()
        twins.rows()
        return elapsed

    with closing(twins):
        turns = 15 if size <= 10**5 else 9 if mechanism == "blt" else 5
        times = _alternating({"stored": stored, "unstored": unstored, "bare": bare}, turns)
    what = f"{engine.name}, {mechanism}, batch of {size:,} steps, stored"
    other = (
        f"unstored: {amount(times['unstored'])}; {engine.driver}, the same rows by themselves: {amount(times['bare'])}"
    )
    ratio = times["stored"] / times["unstored"]
    possible = 0.05 * times["unstored"] >= times["bare"]
    added = (times["stored"] - times["unstored"]) / times["bare"]
    return [
        Row(
            what,
            f"{amount(times['stored'])}; adds {added:.2f} times the commit",
            other,
            ratio,
            "≤ 1.05" if possible else "",
            ratio <= 1.05 if possible else None,
        )
    ]


def many(streams: Sequence[Any], batches: Sequence[Any], step_ids: Sequence[Any] | None = None) -> None:
    """Publish a batch of each of many streams: in one transaction, where the library can, else one by one.

    Args:
        streams: Open streams of one store.
        batches: Items of each.
        step_ids: Names of the updates.
    """
    names = [None] * len(streams) if step_ids is None else step_ids
    together = getattr(so.streams, "publish_together", None)
    if together is not None:
        together(list(zip(streams, batches, names, strict=True)))
        return
    for stream, items, name in zip(streams, batches, names, strict=True):
        stream.update(items, step_id=name)


def _many_counters() -> list[Row]:
    """Many counters in one process: each publishes every step, and what has gathered is stored together.

    The goal is that what gathers in 100 ms at 1,000 steps a second is stored in 100 ms.
    """
    rows = []
    plan = _counter()
    with _engines() as engines:
        for engine in engines:
            where = engine.fresh()
            store = engine.store(where)
            ledger = _gaussian(store)
            streams = [plan.open(ledger, store=store, stream_id=f"counter {i}") for i in range(_COUNTERS)]
            with closing(_Twins(engine, store, where, ("rows_at_once",))) as twins:
                for gathered in _GATHERED:
                    batches = [np.ones(gathered, dtype=np.int64)] * _COUNTERS
                    work = partial(many, streams, batches)
                    times = _raced(twins, work, 7)
                    rows.append(_gathered(engine, gathered, times))
            for stream in streams:
                stream.close()
            store.close()
    return rows


def _gathered(engine: _Engine, gathered: int, times: Mapping[str, float]) -> Row:
    rate = gathered / times["ours"]
    goal = gathered == 100
    return Row(
        f"{engine.name}, {_COUNTERS} live counters, {gathered:,} step{'s' if gathered > 1 else ''} of each at once",
        f"{amount(times['ours'])}: {rate:,.3g} steps/s, {rate * _COUNTERS:,.3g} published numbers/s",
        f"{engine.driver}, the same rows in one transaction: {amount(times['rows_at_once'])}",
        times["ours"] / times["rows_at_once"],
        "≥ 1,000 steps/s, in 100 ms" if goal else "",
        times["ours"] <= 0.1 if goal else None,
    )


# What grows.


def _long_history(engine: _Engine, count: int) -> tuple[so.Store, so.Ledger]:
    """Return a ledger with many charges, each as if `charge` had written it, but not one by one.

    One charge is made; its statements and its entry are the pattern. Names and tokens of the others are as random, each
    entry is chained to the one before, and the sum is that of one charge of as much: the cost is a power of two, so it
    is the same fraction. `verify` accepts the whole.
    """
    where = engine.fresh()
    store = engine.store(where)
    ledger, noted = _ledger(store), _noted(store)
    ledger.charge(so.privacy.PureCost(_SMALL), "first")
    entry, request = (_pattern(noted, table) for table in ("entry", "request"))
    book = ledger._book
    row, account = book.row(), book.account()
    names = [secrets.token_hex(16) for _ in range(count - 1)]
    head = row.head_hash
    body = entry.values[entry.columns.index("body")]

    def entries() -> Iterator[tuple[Any, ...]]:
        nonlocal head
        for place, name in enumerate(names, row.head):
            text = body.replace('"first"', f'"{name}"')
            head = entry_hash(head, place, "charge", text)
            yield entry.with_values(seq=place, body=text, hash=head)

    def requests() -> Iterator[tuple[Any, ...]]:
        for place, name in enumerate(names, row.head):
            yield request.with_values(request=name, seq=place, token=secrets.token_bytes(16))

    store.close()
    engine.filled(where, entry.statement, entries())
    engine.filled(where, request.statement, requests())
    sums = account.after(so.privacy.PureCost(_SMALL * (count - 1)), None).text
    with closing(engine.bare(where, store)) as connection:
        set_to = "UPDATE ledger SET head = ?, head_hash = ?, sums = ? WHERE id = ?"
        connection.commit([(set_to, (count, head, sums, row.id))])
    engine.settled(where)
    if count <= 10**3:
        ledger.verify()
    return store, ledger


class _Insert(NamedTuple):
    """A statement that inserts one row, with its values."""

    statement: str
    columns: list[str]
    values: tuple[Any, ...]

    def with_values(self, **others: Any) -> tuple[Any, ...]:
        """Return the row with other values."""
        return tuple(others.get(name, value) for name, value in zip(self.columns, self.values, strict=True))


def _pattern(noted: Sequence[Transaction], table: str) -> _Insert:
    """Return how one row of a table was inserted."""
    start = f"INSERT INTO {table} "
    statement, values = next(write for writes in noted for write in writes if write[0].startswith(start))
    columns = statement[statement.index("(") + 1 : statement.index(")")].split(", ")
    return _Insert(statement, columns, values)


def _long_stream(engine: _Engine, plan: so.StreamPlan, count: int) -> so.Store:
    """Return a store with one counter, "live", that has published many steps, each as if by a call of its own.

    They are published at once; the one row is then cut into rows of one step, each chained to the one before, and the
    state is kept anew with the hash of the last.
    """
    where = engine.fresh()
    store = engine.store(where)
    noted = _noted(store)
    with plan.open(_gaussian(store), store=store, stream_id="live") as stream:
        kept, head = stream._steps.kept, stream._steps.kept.row.head_hash
        stream.update(np.ones(count, dtype=np.int64))
        insertion, (entry,) = _pattern(noted, "step").statement, kept.all_steps()

        def steps() -> Iterator[tuple[Any, ...]]:
            nonlocal head
            for place in range(count):
                units, answers = (part[8 * place : 8 * place + 8] for part in (entry.units, entry.answers))
                one = entry._replace(first=place, steps=1, units=units, answers=answers)
                one = one._replace(hash=one.chained(head))
                head = one.hash
                yield (kept.row.id, *one)

        with closing(engine.bare(where, store)) as connection:
            connection.commit([("DELETE FROM step WHERE stream = ?", (kept.row.id,))])
            store.close()
            engine.filled(where, insertion, steps())
            connection.commit([("UPDATE stream SET head_hash = ? WHERE id = ?", (head, kept.row.id))])
        kept.row = kept.row._replace(head_hash=head)
        stream._steps.leave_state()
        if count <= 10**4:
            assert len(kept.all_steps()) == count
    engine.settled(where)
    return store


def _opening() -> list[Row]:
    """Opening a long stream by the plan that is there: nothing is planned again."""
    rows = []
    with _engines() as engines:
        for engine in engines:
            for mechanism in ("blt", "square-root"):
                plan = _counter(1, 2 * _LONG, mechanism)
                store = _long_stream(engine, plan, _LONG)
                rows += [
                    _opened(engine, plan, store, mechanism, crashed=crashed)
                    for crashed in ((False, True) if mechanism == "blt" else (False,))
                ]
                store.close()
    return rows


def _opened(engine: _Engine, plan: so.StreamPlan, store: so.Store, mechanism: str, *, crashed: bool) -> Row:
    """Return the row of opening: after it was left, or after its owner died some steps behind the last state."""
    ledger = _gaussian(store)
    held: list[Any] = []

    def opened() -> float:
        start = time.perf_counter()
        stream = plan.open(ledger, store=store, stream_id="live", take_over=crashed)
        elapsed = time.perf_counter() - start
        if crashed:
            while stream.step - stream._steps.kept.row.checkpoint_step < 20:
                stream.update(1)
            held.append(stream)  # nobody closes it: its state is not kept
        else:
            stream.close()
        return elapsed

    seconds = _alternating({"ours": opened}, 15)["ours"]
    for stream in held:
        with suppress(so.errors.SordinoError):
            stream.close()
    left = "whose owner died 20 steps after the last state" if crashed else "that was left"
    what = f"{engine.name}, opening a counter of {_LONG:,} steps {left}, {mechanism}, the plan at hand"
    return noted(what, amount(seconds), seconds, 0.05, "< 50 ms")


def _growth() -> list[Row]:
    """A charge, and a step, behind many and behind few."""
    rows = []
    cost, plan = so.privacy.PureCost(_SMALL), _counter()
    with _engines() as engines:
        for engine in engines:
            ledgers = {count: _long_history(engine, count) for count in (_LONG, _SHORT)}
            charging = {
                str(count): _seconds(_times(_CHARGES, partial(ledger.charge, cost)), _CHARGES)
                for count, (_, ledger) in ledgers.items()
            }
            rows.append(_grown(f"{engine.name}, durable charge", "charges", "/charge", charging))
            for store, _ in ledgers.values():
                store.close()
            stores = {count: _long_stream(engine, plan, count) for count in (_LONG, _SHORT)}
            streams = {count: so.go_on(store, "live") for count, store in stores.items()}
            stepping = {
                str(count): _seconds(_times(_STEPS, partial(stream.update, 1)), _STEPS)
                for count, stream in streams.items()
            }
            rows.append(_grown(f"{engine.name}, stored step of one counter", "steps", "/step", stepping, 9))
            for stream, store in zip(streams.values(), stores.values(), strict=True):
                stream.close()
                store.close()
    return rows


def _seconds(call: Callable[[], object], count: int) -> Callable[[], float]:
    def elapsed() -> float:
        start = time.perf_counter()
        call()
        return (time.perf_counter() - start) / count

    return elapsed


def _grown(
    what: str, things: str, per: str, contestants: Mapping[str, Callable[[], float]], turns: int = _TURNS
) -> Row:
    times = _alternating(contestants, turns)
    return versus(
        f"{what} behind {_LONG:,} {things}",
        times[str(_LONG)],
        f"behind {_SHORT:,}",
        times[str(_SHORT)],
        goal=1.1,
        per=per,
    )


# Many processes.


def _charging(where: str, pipe: Any, barrier: Any) -> None:
    """Charge, in a process of its own, as often as is asked."""
    store = so.Store(where, key=_KEY)
    ledger, cost = so.Ledger.open(store), so.privacy.PureCost(_SMALL)
    _serving(lambda: ledger.charge(cost), pipe, barrier)
    store.close()


def _committing(connection: Callable[[], _Bare], content: bytes, pipe: Any, barrier: Any) -> None:
    """Commit one row and the change of a row that all others change too."""
    bare = connection()
    writes: Transaction = [("UPDATE plain_head SET head = head + 1 WHERE id = 1", ()), (_PLAIN, (content,))]
    _serving(lambda: bare.commit(writes), pipe, barrier)
    bare.close()


def _serving(call: Callable[[], object], pipe: Any, barrier: Any) -> None:
    call()
    pipe.send(None)
    while (count := pipe.recv()) is not None:
        barrier.wait(60.0)
        started, waits = time.monotonic(), []
        for _ in range(count):
            start = time.monotonic()
            call()
            waits.append(time.monotonic() - start)
        pipe.send((started, time.monotonic(), waits))


class _Crowd:
    """Processes that all do the same at once."""

    def __init__(self, target: Callable[..., None], *arguments: Any) -> None:
        context = multiprocessing.get_context("spawn")
        barrier = context.Barrier(_PROCESSES)
        self._pipes = []
        self._processes = []
        for _ in range(_PROCESSES):
            own, other = context.Pipe()
            process = context.Process(target=target, args=(*arguments, other, barrier))
            process.start()
            other.close()  # whoever dies is noticed
            self._pipes.append(own)
            self._processes.append(process)
        for pipe in self._pipes:
            pipe.recv()
        self.waits: list[float] = []

    def run(self) -> float:
        """Return the seconds until the last is ready, and remember how long each call took."""
        for pipe in self._pipes:
            pipe.send(_EACH)
        found = [pipe.recv() for pipe in self._pipes]
        self.waits += [wait for _, _, waits in found for wait in waits]
        return max(end for _, end, _ in found) - min(start for start, _, _ in found)

    def close(self) -> None:
        """End them."""
        for pipe in self._pipes:
            pipe.send(None)
        for process in self._processes:
            process.join()


def _processes() -> list[Row]:
    """Processes that charge one ledger, beside as many that commit the same bytes and change one common row."""
    rows = []
    with _engines() as engines:
        for engine in engines:
            where, plain = engine.fresh(), engine.fresh()
            store = engine.store(where)
            ledger, noted = _ledger(store), _noted(store)
            ledger.charge(so.privacy.PureCost(_SMALL))
            content = _together(noted[-1])
            with closing(engine.bare(plain, store)) as connection:
                connection.make_plain()
            bare = engine.opener(plain, store)
            store.close()
            with (
                closing(_Crowd(_charging, where)) as ours,
                closing(_Crowd(_committing, bare, content)) as theirs,
            ):
                times = _alternating({"ours": ours.run, "bare": theirs.run}, 7)
            ledger.verify()
            store.close()
            calls = _PROCESSES * _EACH
            what = f"{engine.name}, {_PROCESSES} processes that charge one ledger"
            driver = f"as many of {engine.driver} that commit the same bytes and change one common row"
            rows.append(versus(f"{what}, all", times["ours"] / calls, driver, times["bare"] / calls, per="/charge"))
            for name, part in (("the median wait", 50), ("95 % of waits", 95)):
                own, other = (quantiles(crowd.waits, n=100)[part - 1] for crowd in (ours, theirs))
                rows.append(versus(f"{what}, {name}", own, "of these", other))
    return rows


def figures() -> list[Row]:
    """Return all rows."""
    with _server() as url:
        environment = {} if url is None else {_VARIABLE: url}
        return [
            row for section in _SECTIONS for row in in_process(__file__, section, threads=1, environment=environment)
        ]


_SECTIONS = {
    "charges": _charges,
    "releases": _releases,
    "steps": _steps,
    "batches": _batches,
    "many counters": _many_counters,
    "opening": _opening,
    "growth": _growth,
    "processes": _processes,
}

if __name__ == "__main__":
    main(_SECTIONS, figures)
