"""Processes of a store under a scheduler: it says who goes on before every transaction, and what becomes of it.

Each process runs in a thread that waits before every transaction, reading ones too if that is wanted. A run is a list of
choices (process, outcome); behind its end all go on in turn and well.
"""

import hashlib
import itertools
import queue
import re
import threading
from collections import deque
from typing import NamedTuple

import pytest

import sordino as so
from sordino.errors import StoreError
from sordino.storage.store import Store
from sordino.storage.transactions import CommitUnknownError, Engine

OUTCOMES = ("ok", "dies before", "dies after", "done, unknown", "lost, unknown", "away")
# Behind this one everybody's lease is over, though nobody died.
LATE = "late"
KEY = bytes(range(32))
_HOUR = 3_600_000


class Died(BaseException):
    """The process is no more."""


class Rolled(Exception):
    """Ends a transaction that is not kept."""


class Run(NamedTuple):
    """What became of some processes.

    Attributes:
        store: Their store.
        processes: They.
        enabled: Before each choice, which processes could have gone on, and before what kind of transaction they waited.
        whole: Whether it went to the end of all.
    """

    store: Store
    processes: list
    enabled: list
    whole: bool


class Scheduled(Engine):
    """An engine that asks before each transaction of a thread what shall become of it.

    Attributes:
        reads: Whether it asks before transactions that change nothing too.
        time: Milliseconds that leases are judged by.
    """

    def __init__(self, engine, reads):
        self._engine, self.reads, self.time = engine, reads, 10**12
        self.kind, self.locking, self.tables = engine.kind, engine.locking, engine.tables
        self.processes = {}

    def write(self, script, timeout):
        process = self.processes.get(threading.current_thread())
        if process is None:
            return self._engine.write(script, timeout)
        if process.is_dead:
            raise StoreError("nobody is there")  # what is still done while the thread unwinds was never done
        outcome = process.ask("write")
        if outcome == "dies before":
            raise process.died()
        if outcome == "away":
            process.seen("away")
            raise StoreError("away", retry=True)
        if outcome == "lost, unknown":

            def rolled(transaction):
                script(transaction)
                raise Rolled

            with pytest.raises(Rolled):
                self._engine.write(rolled, timeout)
            process.seen("unknown")
            raise CommitUnknownError
        watched = process.watching(script)
        result = self._engine.write(watched, timeout)
        if outcome == "dies after":
            raise process.died()
        if outcome == "done, unknown":
            process.seen("unknown")
            raise CommitUnknownError
        return result

    def read(self, script, timeout):
        process = self.processes.get(threading.current_thread())
        if process is None:
            return self._engine.read(script, timeout)
        if process.is_dead:
            raise StoreError("nobody is there")
        if self.reads and process.ask("read") == "dies before":
            raise process.died()
        return self._engine.read(process.watching(script), timeout)

    def create(self, statements, timeout):
        self._engine.create(statements, timeout)

    def close(self):
        pass


class Watched:
    """A transaction whose answers are noted: what a process does next depends on nothing else."""

    def __init__(self, transaction, log):
        self._transaction, self._log = transaction, log

    def rows(self, statement, *values):
        found = self._transaction.rows(statement, *values)
        self._log.append(tuple(found))
        return found

    def count(self, statement, *values):
        found = self._transaction.count(statement, *values)
        self._log.append(found)
        return found

    def later(self, statement, *values):
        written = self._transaction.later(statement, *values)
        self._log.append(written.rowcount)
        return written

    def changed(self, written):
        return self._transaction.changed(written)


class Process:
    """A process of the model, in a thread.

    Attributes:
        left: What it has let out, as the checks want it.
        log: All that it has learnt from the store.
    """

    def __init__(self, name, work):
        self.name, self.left, self.error, self.log = name, [], None, []
        self.is_dead = self.has_ended = False
        self._asks, self._answers = queue.SimpleQueue(), queue.SimpleQueue()
        self.thread = threading.Thread(target=self._run, args=(work,), daemon=True)

    def _run(self, work):
        try:
            work(self)
        except (Died, so.SordinoError):
            pass
        except BaseException as error:
            self.error = error
        self.has_ended = True
        self._asks.put(None)

    def ask(self, kind):
        self._asks.put(kind)
        return self._answers.get(timeout=20)

    def seen(self, what):
        self.log.append(what)

    def watching(self, script):
        def watched(transaction):
            self.log.append("began")
            return script(Watched(transaction, self.log))

        return watched

    def died(self):
        self.is_dead = True
        return Died()

    def waits(self):
        """Return before what kind of transaction the process waits; None if it has ended."""
        return self._asks.get(timeout=20)

    def go(self, outcome):
        self._answers.put(outcome)


def run(works, choices, monkeypatch, *, total=4.0, reads=False, key=KEY, states=None):
    """Run processes by a list of (process, outcome); behind its end all go on in turn and well.

    Args:
        works: What the processes do: functions of a process and the store.
        choices: Who goes on, and with what outcome.
        monkeypatch: Of pytest.
        total: Epsilon of the ledger.
        reads: Whether processes wait before reading too.
        key: Of the store.
        states: A function that is called before each choice behind those that are given, with a digest of all that
            matters; the run ends if it returns True.
    """
    store = Store(":memory:", key=key)
    engine = Scheduled(store.engine, reads)
    store.engine = engine
    processes = [Process(f"p{i}", lambda process, work=work: work(process, store)) for i, work in enumerate(works)]
    by_thread = {process.thread: process for process in processes}
    engine.processes = by_thread

    def owner():
        process = by_thread.get(threading.current_thread())
        return "main" if process is None else process.name

    def dead(name):
        return name not in {process.name for process in processes if not process.is_dead and not process.has_ended}

    for module in ("privacy.requests", "privacy.books", "streams.kept", "streams.stored", "storage.owners"):
        monkeypatch.setattr(f"sordino.{module}.owner_name", owner)
    for module in ("privacy.requests", "privacy.books", "streams.kept", "streams.stored", "storage.upkeep"):
        monkeypatch.setattr(f"sordino.{module}.now", lambda: engine.time)
    monkeypatch.setattr("sordino.storage.owners.is_dead", dead)
    so.Ledger(so.PureDP(epsilon=total), store=store)
    waiting, whole = {}, True
    for process in processes:
        process.thread.start()
        kind = process.waits()
        if kind is not None:
            waiting[processes.index(process)] = kind
    enabled = []
    for step in itertools.count():
        if not waiting:
            break
        if states is not None and step >= len(choices) and states(digest(store, processes, engine, waiting)):
            for process in processes:
                process.died()
            for number in waiting:
                processes[number].go("dies before")
            whole = False
            break
        enabled.append(sorted(waiting.items()))
        chosen, outcome = choices[step] if step < len(choices) else (min(waiting), "ok")
        if outcome == LATE:
            engine.time += _HOUR
            continue
        processes[chosen].go(outcome)
        kind = processes[chosen].waits()
        if kind is None:
            del waiting[chosen]
        else:
            waiting[chosen] = kind
        assert step < 200
    for process in processes:
        process.thread.join(20)
        if process.error is not None:
            raise process.error
    engine.processes = {}
    return Run(store, processes, enabled, whole)


_TABLES = ("ledger", "entry", "request", "answer", "stream", "sealed", "step")
# Columns of what is secret, or long and the same in all runs: `answer.bytes`, `sealed.bytes`, `stream.plan`.
_SEALED = {"answer": (3,), "sealed": (6,), "stream": (4,)}
_RANDOM = r"[0-9a-f]{8,}"


def digest(store, processes, engine, waiting):
    """Return a digest of the database, of what each process has learnt, and of who waits for what.

    Random numbers are told apart, not compared: two runs that differ in tokens and noise alone are the same.
    """
    names = {}

    def plain(value):
        if isinstance(value, list) and all(isinstance(each, float) for each in value):
            value = repr(value).encode()  # an answer is named whole: two of its values may be equal by chance
        if isinstance(value, tuple | list):
            return tuple(map(plain, value))
        if isinstance(value, str) and re.search(_RANDOM, value):
            return re.sub(_RANDOM, lambda found: plain(found[0].encode()), value)
        if isinstance(value, bytes | float):
            return f"~{names.setdefault(value, len(names))}"
        return value if isinstance(value, int | str | type(None)) else repr(value)

    def content(transaction):
        found = []
        for table in _TABLES:
            for row in transaction.rows(f"SELECT * FROM {table} ORDER BY 1, 2, 3, 4"):
                out = _SEALED.get(table, ())
                found.append((table, *(None if place in out else value for place, value in enumerate(row))))
        return sorted(found, key=blind)

    def blind(row):
        return re.sub(_RANDOM, "~", repr(["~" if isinstance(value, bytes | float) else value for value in row]))

    rows = engine._engine.read(content, 10.0)
    known = [(process.is_dead, process.has_ended, plain(process.log), plain(process.left)) for process in processes]
    text = repr((known, plain(rows), sorted(waiting.items()), engine.time))
    return hashlib.sha256(text.encode()).digest()


def explored(works, check, monkeypatch, *, faults, most, **options):
    """Try all lists of choices with at most so many faults, up to so many runs, shortest first.

    Returns:
        How many runs, and whether these were all.
    """
    todo, runs = deque([[]]), 0
    while todo and runs < most:
        choices = todo.popleft()
        store, processes, enabled, _ = run(works, choices, monkeypatch, **options)
        check(store, processes)
        runs += 1
        spent = sum(outcome != "ok" for _, outcome in choices)
        # Children differ from this run, which goes on well and in turn, at one place behind what is chosen.
        done = list(choices)
        for step in range(len(choices), len(enabled)):
            for process, _ in enabled[step]:
                for outcome in OUTCOMES:
                    if (process, outcome) == (enabled[step][0][0], "ok") or (outcome != "ok" and spent == faults):
                        continue
                    todo.append([*done, (process, outcome)])
            done.append((enabled[step][0][0], "ok"))
    return runs, not todo


class Exhausted(NamedTuple):
    """How much was tried.

    Attributes:
        states: States of the database and of all processes.
        ends: Runs that went to the end, and were checked.
        runs: Runs in all.
    """

    states: int
    ends: int
    runs: int


def exhausted(works, check, monkeypatch, *, faults, late=0, **options):
    """Visit every state that processes can come to, in every order, with so many faults at most at any places.

    A fault is any outcome but 'ok', or, `late` times at most, that all leases end though nobody died. A state that was
    visited with as few faults is not visited again: whatever comes behind it was tried there.
    """
    visited, ends, runs = {}, 0, 0
    # Choices so far, with the faults and the ends of leases among them.
    todo = [([], 0, 0)]
    while todo:
        choices, spent, passed = todo.pop()

        def known(state, spent=spent, passed=passed):
            seen = visited.setdefault(state, [])
            if any(faulty <= spent and times <= passed for faulty, times in seen):
                return True
            seen.append((spent, passed))
            return False

        store, processes, enabled, whole = run(works, choices, monkeypatch, states=known, **options)
        runs += 1
        if whole:
            check(store, processes)
            ends += 1
        done = list(choices)
        for step in range(len(choices), len(enabled)):
            first = enabled[step][0][0]
            for process, kind in enabled[step]:
                for outcome in OUTCOMES if kind == "write" else OUTCOMES[:2]:
                    if (process, outcome) == (first, "ok") or (outcome != "ok" and spent == faults):
                        continue
                    todo.append(([*done, (process, outcome)], spent + (outcome != "ok"), passed))
            if passed < late:
                todo.append(([*done, (first, LATE)], spent, passed + 1))
            done.append((first, "ok"))
    return Exhausted(len(visited), ends, runs)
