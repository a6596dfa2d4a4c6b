"""Databases that fail: at a statement, before or after it, or while a transaction is committed."""

from contextlib import suppress

from sordino.errors import StoreError
from sordino.storage.transactions import CommitUnknownError, Engine

ACTIONS = ("cut before", "cut after", "done, reported lost", "lost, reported lost", "full")


class Cut(Exception):
    """Ends a transaction that shall not be kept."""


class Faulty(Engine):
    """An engine whose `at`-th event goes wrong: events are statements, then the commit.

    Attributes:
        seen: Events so far.
    """

    def __init__(self, engine, at, action):
        self._engine, self.at, self.action, self.seen, self.happened = engine, at, action, 0, False
        self.kind, self.locking, self.tables = engine.kind, engine.locking, engine.tables

    def _event(self):
        self.seen += 1
        self.happened = self.happened or self.seen == self.at
        return self.seen == self.at

    def write(self, script, timeout):
        def watched(transaction):
            return script(_Watched(transaction, self))

        def committed():
            return self._engine.write(watched, timeout)

        if self.action not in {"done, reported lost", "lost, reported lost"}:
            return committed()
        if not self._event():
            return committed()
        if self.action == "done, reported lost":
            committed()
        else:

            def rolled_back(transaction):
                script(transaction)
                raise Cut

            with suppress(Cut):
                self._engine.write(rolled_back, timeout)
        raise CommitUnknownError

    def read(self, script, timeout):
        return self._engine.read(lambda transaction: script(_Watched(transaction, self)), timeout)

    def create(self, statements, timeout):
        self._engine.create(statements, timeout)

    def close(self):
        self._engine.close()


class _Watched:
    def __init__(self, transaction, faults):
        self._transaction, self._faults = transaction, faults

    def _run(self, run, statement, values):
        statements = self._faults.action in {"cut before", "cut after", "full"}
        here = statements and self._faults._event()
        if here and self._faults.action != "cut after":
            raise StoreError("cut", retry=True)
        result = run(statement, *values)
        if here:
            raise StoreError("cut", retry=True)
        return result

    def rows(self, statement, *values):
        return self._run(self._transaction.rows, statement, values)

    def count(self, statement, *values):
        return self._run(self._transaction.count, statement, values)

    def later(self, statement, *values):
        return self._run(self._transaction.later, statement, values)

    def changed(self, written):
        return self._transaction.changed(written)
