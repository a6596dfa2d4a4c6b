"""Ledgers and their requests in a store: what one transaction reads and writes."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sordino.errors import StoreCorruptError
from sordino.storage.chain import entry_hash, first_hash
from sordino.storage.transactions import Transaction, Written

__all__ = [
    "EntryRow",
    "LedgerRow",
    "RequestRow",
    "added",
    "added_with_request",
    "all_given_up",
    "answer_bytes",
    "answered",
    "behind",
    "entries",
    "expire",
    "find_ledger",
    "find_request",
    "given_up",
    "insert_request",
    "ledgers_in",
    "left_alone",
    "locked",
    "make_ledger",
    "requests_in",
    "started_again",
]

_LEDGER = "id, parent, terms, head, head_hash, sums"
_REQUEST = (
    "ledger, request, seq, asked, state, attempt, token, owner, lease_until, key_id, seed, input_tag, answer_hash, "
    "answered"
)
_GIVE_UP = "UPDATE request SET state = 'abandoned', seed = NULL, input_tag = NULL WHERE state = 'charged'"
# Bytes of an answer in a row.
_PART = 1 << 20
# Entries that are read at once, answers that expire at once.
_PAGE, _OLD = 1000, 16


class LedgerRow(NamedTuple):
    """A ledger: its terms, its head, and what is spent by the rule of the terms."""

    id: str
    parent: str | None
    terms: str
    head: int
    head_hash: bytes
    sums: str


class EntryRow(NamedTuple):
    """A line of a ledger."""

    sequence: int
    kind: str
    body: str
    hash: bytes


class RequestRow(NamedTuple):
    """A request, and who works on it."""

    ledger: str
    request: str
    sequence: int
    asked: bytes
    state: str
    attempt: int
    token: bytes
    owner: str
    lease_until: int
    key_id: str | None
    seed: bytes | None
    input_tag: bytes | None
    answer_hash: bytes | None
    answered: int | None


def find_ledger(transaction: Transaction, ledger: str, locking: str = "") -> LedgerRow | None:
    """Return a ledger, locked if wanted, or None."""
    rows = transaction.rows(f"SELECT {_LEDGER} FROM ledger WHERE id = ?{locking}", ledger)
    return LedgerRow(*rows[0]) if rows else None


def ledgers_in(transaction: Transaction) -> list[LedgerRow]:
    """Return all ledgers, by name."""
    return [LedgerRow(*row) for row in transaction.rows(f"SELECT {_LEDGER} FROM ledger ORDER BY id")]


def locked(transaction: Transaction, ledgers: Sequence[str], locking: str) -> dict[str, LedgerRow]:
    """Lock ledgers in the order of their names, so that nobody waits in a circle.

    Raises:
        StoreCorruptError: One is not there.
    """
    found = {name: find_ledger(transaction, name, locking) for name in sorted(set(ledgers))}
    rows = {name: row for name, row in found.items() if row is not None}
    if len(rows) < len(found):
        raise StoreCorruptError("a ledger that was there is not there any more")
    return rows


def make_ledger(transaction: Transaction, store: str, row: LedgerRow) -> None:
    """Make a ledger, if nobody did meanwhile."""
    transaction.later(
        f"INSERT INTO ledger ({_LEDGER}) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        *row._replace(head_hash=first_hash(store, row.id, row.terms)),
    )


def behind(row: LedgerRow, kind: str, body: str, sums: str, terms: str | None = None) -> LedgerRow:
    """Return a ledger as it is behind one more entry."""
    digest = entry_hash(row.head_hash, row.head, kind, body)
    return row._replace(head=row.head + 1, head_hash=digest, sums=sums, terms=terms or row.terms)


def added(transaction: Transaction, row: LedgerRow, after: LedgerRow, kind: str, body: str) -> None:
    """Add an entry to a ledger that is locked.

    Raises:
        StoreCorruptError: Somebody else changed it, lock or not.
    """
    transaction.later(
        "INSERT INTO entry (ledger, seq, kind, body, hash) VALUES (?, ?, ?, ?, ?)",
        row.id,
        row.head,
        kind,
        body,
        after.head_hash,
    )
    changed = transaction.count(
        "UPDATE ledger SET head = ?, head_hash = ?, sums = ?, terms = ? WHERE id = ? AND head = ?",
        after.head,
        after.head_hash,
        after.sums,
        after.terms,
        row.id,
        row.head,
    )
    if changed != 1:
        raise StoreCorruptError("the ledger changed while it was locked; nothing was charged")


def added_with_request(  # noqa: PLR0917 - an entry and its request
    transaction: Transaction, row: LedgerRow, after: LedgerRow, kind: str, body: str, request: RequestRow
) -> Written:
    """Add an entry and its request to a ledger that is as `row` says; nothing if it is not, or the request is there.

    Nothing is read, so all of it leaves at once. The first statement, whose rows are counted, locks the ledger.
    """
    changed = transaction.later(
        "UPDATE ledger SET head = ?, head_hash = ?, sums = ? WHERE id = ? AND head = ? AND head_hash = ? AND terms = ? "
        "AND sums = ? AND NOT EXISTS (SELECT 1 FROM request WHERE ledger = ? AND request = ?)",
        after.head,
        after.head_hash,
        after.sums,
        row.id,
        row.head,
        row.head_hash,
        row.terms,
        row.sums,
        row.id,
        request.request,
    )
    # Others may have added the very same entry, then with this request.
    transaction.later(
        "INSERT INTO entry (ledger, seq, kind, body, hash) SELECT ?, ?, ?, ?, ? FROM ledger "
        "WHERE id = ? AND head_hash = ? ON CONFLICT (ledger, seq) DO NOTHING",
        row.id,
        row.head,
        kind,
        body,
        after.head_hash,
        row.id,
        after.head_hash,
    )
    transaction.later(
        f"INSERT INTO request ({_REQUEST}) SELECT {', '.join('?' * len(request))} FROM ledger "
        "WHERE id = ? AND head_hash = ? ON CONFLICT (ledger, request) DO NOTHING",
        *request,
        row.id,
        after.head_hash,
    )
    return changed


def entries(transaction: Transaction, ledger: str, first: int = 0) -> Iterator[EntryRow]:
    """Yield the entries of a ledger, in order."""
    while True:
        page = transaction.rows(
            f"SELECT seq, kind, body, hash FROM entry WHERE ledger = ? AND seq >= ? ORDER BY seq LIMIT {_PAGE}",
            ledger,
            first,
        )
        yield from (EntryRow(*row) for row in page)
        if len(page) < _PAGE:
            return
        first = page[-1][0] + 1


def find_request(transaction: Transaction, ledger: str, request: str) -> RequestRow | None:
    """Return a request, or None."""
    rows = transaction.rows(f"SELECT {_REQUEST} FROM request WHERE ledger = ? AND request = ?", ledger, request)
    return RequestRow(*rows[0]) if rows else None


def requests_in(transaction: Transaction, ledger: str, *states: str) -> list[RequestRow]:
    """Return the requests of a ledger in these states, or all of them, in order."""
    chosen = f" AND state IN ({', '.join('?' * len(states))})" if states else ""
    rows = transaction.rows(f"SELECT {_REQUEST} FROM request WHERE ledger = ?{chosen} ORDER BY seq", ledger, *states)
    return [RequestRow(*row) for row in rows]


def insert_request(transaction: Transaction, row: RequestRow) -> None:
    """Add a request that was charged."""
    transaction.later(f"INSERT INTO request ({_REQUEST}) VALUES ({', '.join('?' * len(row))})", *row)


def started_again(transaction: Transaction, row: RequestRow, token: bytes, owner: str, lease_until: int) -> bool:
    """Take over an unfinished request; return whether nobody else did meanwhile."""
    changed = transaction.count(
        "UPDATE request SET attempt = attempt + 1, token = ?, owner = ?, lease_until = ? "
        "WHERE ledger = ? AND request = ? AND state = 'charged' AND attempt = ?",
        token,
        owner,
        lease_until,
        row.ledger,
        row.request,
        row.attempt,
    )
    return changed == 1


def given_up(transaction: Transaction, row: RequestRow) -> None:
    """Say that an unfinished request will not be answered."""
    transaction.later(
        f"{_GIVE_UP} AND ledger = ? AND request = ? AND attempt = ?", row.ledger, row.request, row.attempt
    )


def all_given_up(transaction: Transaction) -> None:
    """Say that no unfinished request of the store will be answered."""
    transaction.later(_GIVE_UP)


def left_alone(transaction: Transaction, row: RequestRow) -> None:
    """Say that nobody works on an unfinished request any more."""
    transaction.later(
        "UPDATE request SET lease_until = 0 WHERE ledger = ? AND request = ? AND state = 'charged' AND token = ?",
        row.ledger,
        row.request,
        row.token,
    )


def answered(transaction: Transaction, row: RequestRow, answer: bytes, time: int, expires: int) -> bool:
    """Keep the answer of a request; return whether it is still this attempt's to give."""
    changed = transaction.count(
        "UPDATE request "
        "SET state = 'answered', seed = NULL, input_tag = NULL, answer_hash = ?, answered = ?, expires = ? "
        "WHERE ledger = ? AND request = ? AND state = 'charged' AND attempt = ? AND token = ?",
        hashlib.sha256(answer).digest(),
        time,
        expires,
        row.ledger,
        row.request,
        row.attempt,
        row.token,
    )
    if changed != 1:
        return False
    packed = zlib.compress(answer, 1)
    for part, start in enumerate(range(0, len(packed), _PART)):
        transaction.later(
            "INSERT INTO answer (ledger, request, part, bytes) VALUES (?, ?, ?, ?)",
            row.ledger,
            row.request,
            part,
            packed[start : start + _PART],
        )
    return True


def answer_bytes(transaction: Transaction, row: RequestRow) -> bytes:
    """Return the answer of a request.

    Raises:
        StoreCorruptError: It is not what was kept.
    """
    parts = transaction.rows(
        "SELECT bytes FROM answer WHERE ledger = ? AND request = ? ORDER BY part", row.ledger, row.request
    )
    try:
        found = zlib.decompress(b"".join(part for (part,) in parts))
    except zlib.error:
        raise StoreCorruptError("the answer of a request is damaged", charged=True, request_id=row.request) from None
    if hashlib.sha256(found).digest() != row.answer_hash:
        raise StoreCorruptError("the answer of a request was altered", charged=True, request_id=row.request)
    return found


def expire(transaction: Transaction, ledger: str, time: int, most: int = _OLD) -> int:
    """Forget some answers whose time has come; return how many."""
    old = transaction.rows(
        f"SELECT request FROM request WHERE ledger = ? AND state = 'answered' AND expires <= ? LIMIT {most}",
        ledger,
        time,
    )
    for (request,) in old:
        transaction.later("DELETE FROM answer WHERE ledger = ? AND request = ?", ledger, request)
        transaction.later(
            "UPDATE request SET state = 'expired' WHERE ledger = ? AND request = ? AND state = 'answered'",
            ledger,
            request,
        )
    return len(old)
