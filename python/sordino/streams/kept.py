"""A stream's row in a store: held by one owner, whose steps and states are kept in one transaction.

Whoever holds the row has its generation; who was overtaken finds another one there, publishes nothing and wipes. A step
leaves when the transaction that holds it is kept. Each claim takes a fresh key for the noise to come.
"""

from __future__ import annotations

import json
import weakref
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sordino._support.checks import name_of
from sordino._support.processes import this_process
from sordino.errors import (
    DataTypeError,
    DuplicateRequestError,
    InvalidParameterError,
    SordinoError,
    StepForgottenError,
    StoreCorruptError,
    StreamInUseError,
    StreamTakenError,
)
from sordino.storage import streams
from sordino.storage.owners import new_token, owner_name
from sordino.storage.store import Store, check_key
from sordino.storage.streams import SealedRow, StepRow, StreamRow
from sordino.storage.transactions import Looked, Transaction, Written, now

__all__ = ["LEASE", "Kept", "Published", "claim", "step_key"]

LEASE = 60_000
"""Milliseconds after which others may take a stream whose owner is silent."""
# Bytes of steps behind a state at least: going through so many takes no time, and a state takes three statements.
_LEAST = 1 << 14


class Published(NamedTuple):
    """Steps to be kept.

    Attributes:
        first: Steps before them.
        steps: How many.
        step_id: Their name, as `step_key` writes it, or None.
        units: Published increments, little-endian 64-bit integers, or None.
        answers: Published answers, little-endian doubles, or None.
        changes: The events that they are made of, not yet sealed, or None.
    """

    first: int
    steps: int
    step_id: str | None
    units: bytes | None
    answers: bytes | None
    changes: bytes | None = None


def step_key(step_id: object) -> str | None:
    """Return the name of steps as it is kept: numbers and texts apart.

    Raises:
        DataTypeError: Neither text nor an integer.
        InvalidParameterError: A number that is negative or above 2**63, or text that is empty, long or not printable.
    """
    if step_id is None:
        return None
    if isinstance(step_id, str):
        return f"={name_of('step_id', step_id)}"
    if isinstance(step_id, bool) or not isinstance(step_id, int | np.integer):
        raise DataTypeError("step_id must be a string, or an integer that grows")
    if not 0 <= int(step_id) < 2**63:
        raise InvalidParameterError("a step_id that is a number must be from 0 to 2**63 - 1")
    return f"#{int(step_id)}"


def _padded(events: bytes, level: int) -> bytes:
    """Return events packed; how many they are is private, so lengths are powers of two."""
    packed = zlib.compress(events, level)
    whole = max(1 << (len(packed) + 8 - 1).bit_length(), 64)
    return len(packed).to_bytes(8, "big") + packed.ljust(whole - 8, b"\0")


def _size(entry: StepRow) -> int:
    return sum(len(part) for part in (entry.units, entry.answers) if part is not None)


class Kept:
    """The row of an open stream, held by this object.

    Args:
        store: The store.
        row: The row, as it was claimed.

    Attributes:
        row: The row after the last step that was kept.
    """

    def __init__(self, store: Store, row: StreamRow) -> None:
        self.store = store
        self.row = row
        # Bytes and seconds of work since the last state was kept, and what a state weighs.
        self.behind = 0.0
        self.weight = 0
        self._bytes = 0
        # When the oldest step may be forgotten, milliseconds.
        self._due = 0
        # Ids of keys under which something that it is gone on with was found.
        self._key_ids: set[str] = set()
        self._process = this_process()
        self.left = False
        # Whoever drops it works on the stream no more, wherever an exception came.
        weakref.finalize(self, store.working.end, row.token)

    # Names.

    @cached_property
    def plan_digest(self) -> str:
        """Digest of the plan that the stream was opened with, as it was: one computed anew may differ in a last bit.

        Raises:
            StoreCorruptError: It is damaged.
        """
        try:
            return str(json.loads(self.row.plan_parts()[0])["digest"])
        except (LookupError, TypeError, ValueError):
            raise StoreCorruptError("the plan of the stream is damaged") from None

    def place(self, what: str, step: int, generation: int | None = None) -> str:
        """Return what something sealed is bound to."""
        own = self.row.generation if generation is None else generation
        return f"{self.store.id}/{self.row.id}/{own}/{step}/{what}"

    def find(self, step_id: str | None) -> StepRow | None:
        """Return the steps of a name, None if it is new.

        Raises:
            StepForgottenError: It is the number of steps whose answers were not kept.
            StoreError: The store cannot be used.
        """
        if step_id is None:
            return None
        known = self._number(step_id)
        if known is not None and (self.row.last_id is None or known > self.row.last_id):
            return None
        found = self.store.read(lambda transaction: streams.find_step(transaction, self.row, step_id))
        if found is None and known is not None:
            raise StepForgottenError(
                f"step {known} was published before, and its answer was not kept; it is not published again",
                charged=True,
            )
        return found

    @staticmethod
    def _number(step_id: str | None) -> int | None:
        return int(step_id[1:]) if step_id is not None and step_id.startswith("#") else None

    # Publishing.

    def after(self, steps: Published) -> tuple[StreamRow, StepRow]:
        """Return the row behind these steps, and their own."""
        changes = None
        if steps.changes is not None:
            place = self.place("changes", steps.first)
            changes = self.store.keys.seal(place, _padded(steps.changes, 1), self.row.key_id)
        entry = StepRow(
            steps.first,
            steps.steps,
            steps.step_id,
            steps.units,
            steps.answers,
            changes,
            self.row.generation,
            self.row.key_id,
            now(),
            b"",
        )
        entry = entry._replace(hash=entry.chained(self.row.head_hash))
        number = self._number(steps.step_id)
        row = self.row._replace(
            step=steps.first + steps.steps,
            head_hash=entry.hash,
            last_id=self.row.last_id if number is None else number,
            lease_until=now() + LEASE,
        )
        return row, entry

    def append(self, steps: Published, state: Callable[[int, bytes], bytes] | None = None) -> None:
        """Keep steps, with a state if one is due.

        Args:
            steps: What is to be kept; the same again after an error.
            state: Returns the sealed state behind them, for a step and the hash of all steps; None if none is wanted.

        Raises:
            StreamTakenError: Somebody else holds the stream now.
            StoreError: They were not kept; OutcomeUnknownError if that is not known.
        """
        row, entry = self.after(steps)
        sealed = None if state is None or not self.due(entry) else state(row.step, row.head_hash)

        def script(transaction: Transaction) -> Written:
            written = streams.taken_on(transaction, row, entry)
            if sealed is not None and transaction.changed(written):
                streams.seal_state(transaction, row, row.step, sealed)
            return written

        def done(transaction: Transaction) -> Written | None:
            there = self.is_there(transaction, row)
            return None if there is None else Looked(int(there))

        written = self.store.certainly(script, done)
        # The same steps may have been kept before, without this object having heard of it; then with another state.
        if not written.rowcount and not self.store.write(lambda transaction: self.is_there(transaction, row)):
            raise self.taken()
        surely = written.rowcount and not isinstance(written, Looked)
        self.went_on(row, entry, sealed if surely else None)

    def is_there(self, transaction: Transaction, row: StreamRow) -> bool | None:
        """Return whether steps are kept, under the lock of the row: another connection may still be committing them."""
        found = streams.find_stream(transaction, row.id, self.store.engine.locking)
        if found is None or found.generation != row.generation:
            return False
        return True if found.step == row.step and found.head_hash == row.head_hash else None

    def is_held(self) -> bool:
        """Return whether this object still holds the stream."""
        found = self.store.read(lambda transaction: streams.find_stream(transaction, self.row.id))
        return found is not None and found.generation == self.row.generation

    def taken(self) -> StreamTakenError:
        """Return the error of a stream that was taken over."""
        return StreamTakenError("this stream is published by somebody else now; nothing was released", charged=True)

    def due(self, entry: StepRow) -> bool:
        """Return whether a state is to be kept with these steps: they are much, or take long to go through."""
        return self._bytes + _size(entry) >= max(self.weight, _LEAST) or self.behind >= 1.0

    def passed(self, rows: list[StepRow]) -> None:
        """Remember steps that were gone through behind the last state."""
        self._bytes += sum(_size(row) for row in rows)

    def is_due_again(self) -> bool:
        """Return whether a new owner leaves a state: a small one, one due, or one instead of what is under old keys."""
        if self._key_ids - {self.row.key_id}:
            return True
        return self._bytes >= self.weight or self.weight <= _LEAST or self.behind >= 1.0

    def went_on(self, row: StreamRow, entry: StepRow, sealed: bytes | None) -> None:
        """Remember that steps were kept, with a state if that is certain."""
        self._bytes += _size(entry)
        if sealed is not None:
            self.weight, self._bytes, self.behind = len(sealed), 0, 0.0
            row = row._replace(checkpoint_step=row.step)
        self.row = row
        if sealed is not None and row.keep is not None and row.tail < row.checkpoint_step:
            with suppress(SordinoError):  # the steps are kept: what is old is forgotten another time
                self.compact()

    def keep_state(self, sealed: bytes) -> None:
        """Keep the state after the last step.

        Raises:
            StreamTakenError: Somebody else holds the stream now.
            StoreError: It was not kept.
        """
        row = self.row
        self._keep(lambda transaction: streams.seal_state(transaction, row, row.step, sealed))
        self.weight, self._bytes, self.behind = len(sealed), 0, 0.0
        self.row = row._replace(checkpoint_step=row.step)

    def keep_key(self, sealed: bytes) -> None:
        """Keep the key of the noise to come.

        Raises:
            StreamTakenError: Somebody else holds the stream now.
            StoreError: It was not kept.
        """
        row = self.row
        self._keep(lambda transaction: streams.seal_key(transaction, row, sealed))

    def _keep(self, what: Callable[[Transaction], None]) -> None:
        row = self.row

        def script(transaction: Transaction) -> bool:
            held = streams.set_owner(transaction, row, now() + LEASE)
            if held:
                what(transaction)
            return held

        if not self.store.certainly(script, lambda _: None):
            raise self.taken()

    # Reading.

    def steps(self, first: int, head: bytes) -> list[StepRow]:
        """Return the steps from one on.

        Args:
            first: The first.
            head: Hash of all steps before it.

        Raises:
            StoreCorruptError: They are not chained to these, to each other, or to the row.
        """
        rows = self.store.read(lambda transaction: list(streams.steps_from(transaction, self.row.id, first)))
        for step in rows:
            if step.first != first or step.chained(head) != step.hash:
                raise StoreCorruptError("a step of the stream was altered, exchanged or left out")
            first, head = first + step.steps, step.hash
        if (first, head) != (self.row.step, self.row.head_hash):
            raise StoreCorruptError("steps at the end of the stream are missing, or were altered")
        return rows

    def all_steps(self, step: int | None = None, head: bytes = b"") -> list[StepRow]:
        """Return all steps that were not forgotten.

        Args:
            step: Steps before a state that belongs to them, if there is one.
            head: Their hash, as the state says it.

        Raises:
            StoreCorruptError: They are not chained to each other, to the row, or to the state.
        """
        rows = self.steps(self.row.tail, self.row.tail_hash)
        heads = {self.row.tail: self.row.tail_hash} | {row.first + row.steps: row.hash for row in rows}
        if step is not None and heads.get(step) != head:
            raise StoreCorruptError("the state of the stream is that of other steps")
        return rows

    def state(self) -> SealedRow:
        """Return the last state.

        Raises:
            StoreCorruptError: There is none.
        """
        found = self.store.read(lambda transaction: streams.sealed_rows(transaction, self.row.id, "state"))
        if len(found) != 1:
            raise StoreCorruptError("the state of the stream is missing")
        self.weight = len(found[0].sealed)
        self._key_ids.add(found[0].key_id)
        return found[0]

    def keys(self) -> dict[int, SealedRow]:
        """Return the keys that were taken behind the last state, by their first steps."""
        found = self.store.read(lambda transaction: streams.sealed_rows(transaction, self.row.id, "key"))
        self._key_ids |= {kept.key_id for kept in found}
        return {kept.step: kept for kept in found}

    def changes(self, rows: list[StepRow]) -> Iterator[tuple[int, bytes]]:
        """Yield how many steps events are of, and the events: of all that was published, in order.

        Raises:
            WrongKeyError: They were sealed under another key or for another place, or altered.
        """
        for kept in self.store.read(lambda transaction: streams.sealed_rows(transaction, self.row.id, "events")):
            content = self._unsealed("events", kept)
            place = 0
            while place < len(content):
                steps, length = (int.from_bytes(content[place + 8 * i : place + 8 * i + 8], "big") for i in (0, 1))
                yield steps, content[place + 16 : place + 16 + length]
                place += 16 + length
        for row in rows:
            if row.changes is not None:
                yield row.steps, self._changed(row)

    def _changed(self, row: StepRow) -> bytes:
        return self._unsealed("changes", SealedRow(row.first, row.generation, row.key_id, row.changes or b""))

    def _unsealed(self, what: str, kept: SealedRow) -> bytes:
        place = self.place(what, kept.step, kept.generation)
        opened = self.store.keys.unseal(place, kept.sealed, kept.key_id)
        return zlib.decompress(opened[8 : 8 + int.from_bytes(opened[:8], "big")])

    # Leaving.

    def compact(self) -> None:
        """Forget old steps below the state, a part at a time: their events, if they are needed, go into one row.

        Raises:
            StoreError: The store cannot be used.
        """
        row = self.row
        if row.keep is None or now() < self._due:
            return
        until = now() - row.keep

        def script(transaction: Transaction) -> tuple[list[StepRow], int | None]:
            forgotten, left = streams.forget_steps(transaction, row, until, self.store.engine.locking)
            if any(old.changes is not None for old in forgotten):
                parts = (
                    old.steps.to_bytes(8, "big") + len(content).to_bytes(8, "big") + content
                    for old in forgotten
                    if old.changes is not None
                    for content in (self._changed(old),)
                )
                end = forgotten[-1].first + forgotten[-1].steps
                content = _padded(b"".join(parts), 6)
                sealed = self.store.keys.seal(self.place("events", end), content, row.key_id)
                streams.add_sealed(transaction, row, "events", end, sealed)
            return forgotten, left

        forgotten, left = self.store.write(script)
        self._due = 0 if left is None else left + row.keep
        if forgotten:
            last = forgotten[-1]
            self.row = self.row._replace(tail=last.first + last.steps, tail_hash=last.hash)

    def release(self) -> None:
        """Give the stream back, if the store can be used: else others take it when the lease ends, or this process."""
        if this_process() == self._process and not self.left:
            with suppress(SordinoError):
                self.leave()
        if this_process() == self._process:
            self.store.working.end(self.row.token)

    def leave(self, *, finish: bool = False) -> None:
        """Give the stream back, or finish it for good.

        Raises:
            StreamTakenError: Somebody else holds the stream now.
            StoreError: The store cannot be used.
        """
        row = self.row

        def script(transaction: Transaction) -> bool:
            held = streams.set_owner(transaction, row, 0, "finished" if finish else "open")
            if not held and finish:
                # Perhaps it is finished already: an exception may have come behind the commit.
                there = streams.find_stream(transaction, row.id)
                return there is not None and (there.generation, there.state) == (row.generation, "finished")
            if held and finish:
                streams.forget_secrets(transaction, row.id)
            return held

        if not self.store.certainly(script, lambda _: None):
            raise self.taken()
        self.left = True


def claim(store: Store, stream: str, asked: bytes | None, take_over: bool) -> Kept | None:
    """Take a stream over, if there is one of this name.

    Args:
        store: The store.
        stream: Its name.
        asked: Digest of what it must have been asked for, None for anything.
        take_over: Whether it is taken from an owner who may be alive.

    Raises:
        DuplicateRequestError: It was opened for something else.
        StreamInUseError: Somebody else holds it.
        InvalidParameterError: It is finished.
        KeyMissingError: The store has no key.
        WrongKeyError: It has another one than the stream was sealed under.
        StoreError: The store cannot be used.
    """
    token = new_token()
    owner = owner_name()
    while True:
        row, sealed_under = store.read(
            lambda transaction: (streams.find_stream(transaction, stream), streams.key_ids(transaction, stream))
        )
        if row is None:
            return None
        if asked is not None and row.asked != asked:
            raise DuplicateRequestError(
                f"the stream {stream!r} was opened for something else: give the new one another stream_id",
                charged=True,
                request_id=row.request,
            )
        if row.state != "open":
            raise InvalidParameterError(
                f"the stream {stream!r} is {row.state}: what it published is there, and nothing more will be"
            )
        # Before anything is taken from anybody.
        for key_id in {row.key_id, *sealed_under}:
            check_key(store, key_id)
        check_key(store)
        left = row.lease_until - now()
        if left > 0 and store.working.may_have(row.token, row.owner) and not take_over:
            raise StreamInUseError(
                f"the stream {stream!r} is open elsewhere; take_over=True takes it from there",
                charged=True,
                retry=left / 1000.0,
            )
        until, found = now() + LEASE, row

        def script(transaction: Transaction, found: StreamRow = found, until: int = until) -> bool:
            return streams.claimed(transaction, found, token, owner, until, store.keys.key_id)

        def done(transaction: Transaction, found: StreamRow = found) -> bool | None:
            there = streams.find_stream(transaction, found.id, store.engine.locking)
            return True if there is not None and there.token == token else None

        store.working.begin(token)
        try:
            if store.certainly(script, done):
                break
            store.working.end(token)
        except BaseException:
            store.working.end(token)
            raise
    # Steps may have been published between the reading and the claim; behind it, by nobody else.
    kept = None
    try:
        there = store.read(lambda transaction: streams.find_stream(transaction, stream))
        if there is not None and there.token == token:
            kept = Kept(store, there)
    finally:
        if kept is None:
            store.working.end(token)
    if kept is None:
        raise StreamTakenError("this stream was taken over by somebody else meanwhile", charged=True)
    return kept
