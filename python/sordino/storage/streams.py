"""Streams and their steps in a store: what one transaction reads and writes."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from itertools import takewhile
from typing import NamedTuple

from sordino._support.records import parted
from sordino.errors import StoreCorruptError
from sordino.storage.chain import step_hash
from sordino.storage.transactions import Transaction, Written

__all__ = [
    "SealedRow",
    "StepRow",
    "StreamRow",
    "claimed",
    "find_step",
    "find_stream",
    "forget_secrets",
    "forget_steps",
    "insert_stream",
    "key_ids",
    "places_of",
    "seal_key",
    "seal_state",
    "sealed_rows",
    "set_lost",
    "set_owner",
    "steps_from",
    "streams_in",
    "taken_on",
]

_STREAM = (
    "id, ledger, request, asked, plan, state, generation, token, owner, lease_until, step, head_hash, last_id, tail, "
    "tail_hash, key_id, checkpoint_step, keep"
)
_STEP = "first, steps, step_id, units, answers, changes, generation, key_id, at, hash"
_PART = 1 << 20
_PAGE = 1000


class StreamRow(NamedTuple):
    """A stream: who publishes it, how far it came, and what that is chained to."""

    id: str
    ledger: str | None
    request: str | None
    asked: bytes
    plan: bytes
    state: str
    generation: int
    token: bytes
    owner: str
    lease_until: int
    step: int
    head_hash: bytes
    last_id: int | None
    tail: int
    tail_hash: bytes
    key_id: str
    checkpoint_step: int
    keep: int | None

    def plan_parts(self) -> tuple[bytes, bytes]:
        """Return the record of the plan, as JSON, and its arrays.

        Raises:
            StoreCorruptError: They are damaged.
        """
        try:
            return parted(zlib.decompress(self.plan))
        except (zlib.error, LookupError, TypeError, ValueError):
            raise StoreCorruptError("the plan of the stream is damaged") from None


class StepRow(NamedTuple):
    """Steps that were published together."""

    first: int
    steps: int
    step_id: str | None
    units: bytes | None
    answers: bytes | None
    changes: bytes | None
    generation: int
    key_id: str
    at: int
    hash: bytes

    def chained(self, before: bytes) -> bytes:
        """Return the hash of what was published behind others; events are sealed, each in its place."""
        return step_hash(before, self.first, self.steps, self.step_id, (self.units, self.answers))


class SealedRow(NamedTuple):
    """Something secret, sealed for its place."""

    step: int
    generation: int
    key_id: str
    sealed: bytes


def find_stream(transaction: Transaction, stream: str, locking: str = "") -> StreamRow | None:
    """Return a stream, locked if wanted, or None."""
    rows = transaction.rows(f"SELECT {_STREAM} FROM stream WHERE id = ?{locking}", stream)
    return StreamRow(*rows[0]) if rows else None


def streams_in(transaction: Transaction) -> list[StreamRow]:
    """Return all streams, by name."""
    return [StreamRow(*row) for row in transaction.rows(f"SELECT {_STREAM} FROM stream ORDER BY id")]


def insert_stream(transaction: Transaction, row: StreamRow) -> bool:
    """Add a stream; return whether there was none of its name."""
    marks = ", ".join("?" * len(row))
    return transaction.count(f"INSERT INTO stream ({_STREAM}) VALUES ({marks}) ON CONFLICT DO NOTHING", *row) == 1


def claimed(  # noqa: PLR0917 - a claim
    transaction: Transaction, row: StreamRow, token: bytes, owner: str, lease_until: int, key_id: str | None = None
) -> bool:
    """Take a stream over, to be sealed under a key from now on; return whether nobody else did since it was read."""
    changed = transaction.count(
        "UPDATE stream SET generation = generation + 1, token = ?, owner = ?, lease_until = ?, key_id = ? "
        "WHERE id = ? AND generation = ?",
        token,
        owner,
        lease_until,
        key_id or row.key_id,
        row.id,
        row.generation,
    )
    return changed == 1


def set_owner(transaction: Transaction, row: StreamRow, lease_until: int, state: str = "open") -> bool:
    """Say until when a stream is held, or that it is finished; return whether it is still held."""
    changed = transaction.count(
        "UPDATE stream SET lease_until = ?, state = ? WHERE id = ? AND generation = ? AND state = 'open'",
        lease_until,
        state,
        row.id,
        row.generation,
    )
    return changed == 1


def forget_secrets(transaction: Transaction, stream: str) -> None:
    """Forget all that is secret of a stream, sealed or not."""
    transaction.later("DELETE FROM sealed WHERE stream = ?", stream)
    transaction.later("UPDATE step SET changes = NULL WHERE stream = ?", stream)


def set_lost(transaction: Transaction, row: StreamRow) -> None:
    """Say that nobody can go on with a stream; what it published stays."""
    transaction.later("UPDATE stream SET state = 'lost' WHERE id = ?", row.id)
    forget_secrets(transaction, row.id)


def places_of(transaction: Transaction, names: list[str], locking: str) -> dict[str, tuple[int, int]]:
    """Lock streams, in the order of their names; return generation and step of those that are open."""
    found: dict[str, tuple[int, int]] = {}
    for first in range(0, len(names), _PAGE):
        page = names[first : first + _PAGE]
        marks = ", ".join("?" * len(page))
        rows = transaction.rows(
            f"SELECT id, generation, step FROM stream WHERE id IN ({marks}) AND state = 'open' ORDER BY id{locking}",
            *page,
        )
        found |= {name: (generation, step) for name, generation, step in rows}
    return found


def taken_on(transaction: Transaction, row: StreamRow, entry: StepRow) -> Written:
    """Take a stream on to where `row` says, by steps; nothing is written if it is not held at the step before them.

    Nothing is read, so all of it leaves at once. The first statement, whose rows are counted, locks the row.
    """
    changed = transaction.later(
        "UPDATE stream SET step = ?, head_hash = ?, last_id = ?, lease_until = ? "
        "WHERE id = ? AND generation = ? AND step = ? AND state = 'open'",
        row.step,
        row.head_hash,
        row.last_id,
        row.lease_until,
        row.id,
        row.generation,
        entry.first,
    )
    # They may be there already: an exception may have come between a commit and whoever waited for it.
    transaction.later(
        f"INSERT INTO step (stream, {_STEP}) SELECT {', '.join('?' * (len(entry) + 1))} FROM stream "
        "WHERE id = ? AND generation = ? AND step = ? AND head_hash = ? ON CONFLICT (stream, first) DO NOTHING",
        row.id,
        *entry,
        row.id,
        row.generation,
        row.step,
        row.head_hash,
    )
    return changed


def find_step(transaction: Transaction, stream: StreamRow, step_id: str) -> StepRow | None:
    """Return the steps of a name, or None.

    Raises:
        StoreCorruptError: They are not chained to the steps before.
    """
    rows = transaction.rows(f"SELECT {_STEP} FROM step WHERE stream = ? AND step_id = ?", stream.id, step_id)
    if not rows:
        return None
    found = StepRow(*rows[0])
    before = transaction.rows(
        "SELECT hash FROM step WHERE stream = ? AND first < ? ORDER BY first DESC LIMIT 1", stream.id, found.first
    )
    # Of a tail that was cut off since the row was read, the hash is in the row as it is now.
    if not before:
        before = transaction.rows("SELECT tail_hash FROM stream WHERE id = ?", stream.id)
    if found.chained(before[0][0]) != found.hash:
        raise StoreCorruptError("a step of the stream was altered", charged=True)
    return found


def steps_from(transaction: Transaction, stream: str, first: int) -> Iterator[StepRow]:
    """Yield the steps from one on, in order."""
    while True:
        page = transaction.rows(
            f"SELECT {_STEP} FROM step WHERE stream = ? AND first >= ? ORDER BY first LIMIT {_PAGE}", stream, first
        )
        yield from (StepRow(*row) for row in page)
        if len(page) < _PAGE:
            return
        first = page[-1][0] + 1


def seal_state(transaction: Transaction, row: StreamRow, step: int, sealed: bytes) -> None:
    """Keep the state after a step, in place of the one before."""
    transaction.later("DELETE FROM sealed WHERE stream = ? AND kind IN ('state', 'key')", row.id)
    add_sealed(transaction, row, "state", step, sealed)
    transaction.later("UPDATE stream SET checkpoint_step = ? WHERE id = ?", step, row.id)


def key_ids(transaction: Transaction, stream: str) -> set[str]:
    """Return the ids of the keys under which something of a stream is sealed, but for events of single steps."""
    rows = transaction.rows("SELECT DISTINCT key_id FROM sealed WHERE stream = ?", stream)
    return {key_id for (key_id,) in rows}


def seal_key(transaction: Transaction, row: StreamRow, sealed: bytes) -> None:
    """Keep the key of the noise to come, in place of one under which nothing was published."""
    transaction.later("DELETE FROM sealed WHERE stream = ? AND kind = 'key' AND step = ?", row.id, row.step)
    add_sealed(transaction, row, "key", row.step, sealed)


def add_sealed(transaction: Transaction, row: StreamRow, kind: str, step: int, sealed: bytes) -> None:
    """Keep something sealed."""
    for part, start in enumerate(range(0, max(len(sealed), 1), _PART)):
        transaction.later(
            "INSERT INTO sealed (stream, kind, step, part, generation, key_id, bytes) VALUES (?, ?, ?, ?, ?, ?, ?)",
            row.id,
            kind,
            step,
            part,
            row.generation,
            row.key_id,
            sealed[start : start + _PART],
        )


def sealed_rows(transaction: Transaction, stream: str, kind: str) -> list[SealedRow]:
    """Return what is kept of a kind, in order of steps."""
    rows = transaction.rows(
        "SELECT step, generation, key_id, bytes FROM sealed WHERE stream = ? AND kind = ? ORDER BY step, part",
        stream,
        kind,
    )
    found: dict[tuple[int, int, str], list[bytes]] = {}
    for step, generation, key_id, part in rows:
        found.setdefault((step, generation, key_id), []).append(part)
    return [SealedRow(*place, b"".join(parts)) for place, parts in found.items()]


def forget_steps(
    transaction: Transaction, row: StreamRow, until: int, locking: str = ""
) -> tuple[list[StepRow], int | None]:
    """Forget steps before the checkpoint that were published before a time, a page at most.

    Returns:
        They, and when the first one that is left was published, if it was looked at.

    Raises:
        StoreCorruptError: They are not chained to what was forgotten before.
    """
    # Times alone first: what is not due yet is large, and there may be much of it.
    times = transaction.rows(
        f"SELECT first + steps, at FROM step WHERE stream = ? AND first >= ? ORDER BY first LIMIT {_PAGE}",
        row.id,
        row.tail,
    )
    # The state that is there says what it does not need; what was read before may be another.
    there = transaction.rows(f"SELECT checkpoint_step FROM stream WHERE id = ?{locking}", row.id)
    reached = there[0][0] if there else row.tail
    due = list(takewhile(lambda found: found[0] <= reached and found[1] < until, times))
    left = times[len(due)][1] if len(due) < len(times) else None
    if not due:
        return [], left
    rows = transaction.rows(
        f"SELECT {_STEP} FROM step WHERE stream = ? AND first >= ? AND first < ? ORDER BY first",
        row.id,
        row.tail,
        due[-1][0],
    )
    tail, tail_hash = row.tail, row.tail_hash
    forgotten: list[StepRow] = []
    for old in (StepRow(*found) for found in rows):
        if old.first != tail:
            break
        if old.chained(tail_hash) != old.hash:
            raise StoreCorruptError("a step of the stream was altered")
        tail, tail_hash = tail + old.steps, old.hash
        forgotten.append(old)
    if forgotten:
        # First, and whoever lost the stream forgets nothing.
        held = transaction.count(
            "UPDATE stream SET tail = ?, tail_hash = ? WHERE id = ? AND generation = ? AND tail = ?",
            tail,
            tail_hash,
            row.id,
            row.generation,
            row.tail,
        )
        if not held:
            return [], left
        transaction.later("DELETE FROM step WHERE stream = ? AND first < ?", row.id, tail)
    return forgotten, left
