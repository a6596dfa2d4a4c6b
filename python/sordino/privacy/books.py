"""Where a ledger writes down what it charges: in memory, for one process; or in a store, for many."""

from __future__ import annotations

import json
import secrets
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

from sordino._support.turns import Turn
from sordino.errors import (
    DuplicateRequestError,
    InvalidParameterError,
    SordinoError,
    StoreCorruptError,
    StoreError,
    TermsError,
)
from sordino.privacy.costs import Cost, cost_from_json
from sordino.privacy.terms import Account, Terms, duplicate
from sordino.privacy.units import Unit, unit_from_json
from sordino.storage import ledgers
from sordino.storage.chain import canonical, entry_hash, first_hash
from sordino.storage.entries import LedgerEntry
from sordino.storage.ledgers import EntryRow, LedgerRow, RequestRow
from sordino.storage.owners import new_token, owner_name
from sordino.storage.store import Store
from sordino.storage.transactions import Looked, Transaction, Written, now

__all__ = ["Book", "Charge", "MemoryBook", "StoredBook", "entry_of", "make_in"]


class Charge(NamedTuple):
    """What is to be charged.

    Attributes:
        cost: What it costs.
        request_id: Name of the request, or None.
        label: Free text for people.
        unit: What it protects, if that is known.
        kind: 'charge', 'share' or 'lost'.
    """

    cost: Cost
    request_id: str | None = None
    label: str = ""
    unit: Unit | None = None
    kind: str = "charge"


class Book(ABC):
    """The lines of a ledger and what they come to.

    Attributes:
        kept: Whether it outlives the process, with the answers to requests.
    """

    kept: ClassVar[bool]

    @abstractmethod
    def account(self) -> Account:
        """Return what is spent."""

    @abstractmethod
    def accounts(self) -> list[Account]:
        """Return what is spent here, and in all ledgers that are charged with this one."""

    @abstractmethod
    def entries(self) -> tuple[LedgerEntry, ...]:
        """Return all lines, in order."""

    @abstractmethod
    def entry(self, request_id: str) -> LedgerEntry | None:
        """Return the line of a request, or None."""

    @abstractmethod
    def dry_run(self, charge: Charge) -> None:
        """Raise as `add` would."""

    @abstractmethod
    def add(self, charge: Charge) -> LedgerEntry:
        """Judge and write down, as one step; a refusal changes nothing."""

    @abstractmethod
    def record(self, request_id: str) -> object:
        """Return what was attached to a request, or None."""

    @abstractmethod
    def attach(self, request_id: str, record: object, *, instead: bool = False) -> None:
        """Attach something to a request, in place of what is there if that is wanted."""


class MemoryBook(Book):
    """Lines in a list: gone when the process ends; the budget is then forgotten, not renewed."""

    kept = False

    def __init__(self, terms: Terms) -> None:
        self._empty = Account.empty(terms)
        # Each line with what is spent after it: whatever comes in between, a line counts once it is here.
        self._lines: list[tuple[LedgerEntry, Account]] = []
        self._requests: dict[str, LedgerEntry] = {}
        self._read = 0
        self._records: dict[str, object] = {}
        self._turn = Turn(
            "this ledger belongs to the process that made it; after a fork both would spend the same budget. Release "
            "in that process, give each process a ledger with a share of the total, or keep the ledger in a store"
        )

    def _last(self) -> Account:
        while self._read < len(self._lines):
            entry = self._lines[self._read][0]
            if entry.request_id is not None:
                self._requests[entry.request_id] = entry
            self._read += 1
        return self._lines[-1][1] if self._lines else self._empty

    def account(self) -> Account:
        """Return what is spent."""
        with self._turn():
            last = self._last()
        return last

    def accounts(self) -> list[Account]:
        """Return what is spent: with a ledger in memory no other is charged."""
        return [self.account()]

    def entries(self) -> tuple[LedgerEntry, ...]:
        """Return all lines, in order."""
        with self._turn():
            lines = tuple(self._lines)
        return tuple(entry for entry, _ in lines)

    def entry(self, request_id: str) -> LedgerEntry | None:
        """Return the line of a request, or None."""
        with self._turn():
            self._last()
            found = self._requests.get(request_id)
        return found

    def _judged(self, charge: Charge) -> Account:
        last = self._last()
        if charge.request_id is not None and charge.request_id in self._requests:
            raise duplicate(charge.request_id, self._requests[charge.request_id].sequence)
        return last.after(charge.cost, charge.unit)

    def dry_run(self, charge: Charge) -> None:
        """Raise as `add` would."""
        with self._turn():
            self._judged(charge)

    def add(self, charge: Charge) -> LedgerEntry:
        """Judge and write down."""
        with self._turn():
            after = self._judged(charge)
            entry = _line(len(self._lines), charge, after)
            self._lines.append((entry, after))
        return entry

    def record(self, request_id: str) -> object:
        """Return what was attached to a request, or None."""
        with self._turn():
            found = self._records.get(request_id)
        return found

    def attach(self, request_id: str, record: object, *, instead: bool = False) -> None:
        """Attach something to a request."""
        with self._turn():
            self._last()
            if request_id not in self._requests:
                raise InvalidParameterError(f"request id {request_id!r} has not been charged: charge it first")
            if request_id in self._records and not instead:
                raise DuplicateRequestError(
                    f"request id {request_id!r} has a record already; it was kept", charged=True
                )
            self._records[request_id] = record


class StoredBook(Book):
    """Lines in a store. Requests have an owner, who answers them, and a lease, after which others may.

    Args:
        store: Where.
        name: The ledger whose requests these are.
        also: Ledgers that are charged with it, in the same transaction.
    """

    kept = True

    def __init__(self, store: Store, name: str, also: tuple[str, ...] = ()) -> None:
        self.store = store
        self.name = name
        self.also = also
        # The hash of the last entry that was added here, and the ledger behind it as long as nobody else adds any.
        # What is remembered is compared with what is there before it is used.
        self._head: bytes | None = None
        self._known: tuple[LedgerRow, Account] | None = None

    # What is there.

    def row(self) -> LedgerRow:
        """Return the row of the ledger.

        Raises:
            StoreCorruptError: It is not there any more.
        """
        return self.store.read(lambda transaction: self.row_in(transaction, locked=False))

    def row_in(self, transaction: Transaction, *, locked: bool = True) -> LedgerRow:
        """Return the row of the ledger, under its lock if that is wanted.

        Raises:
            StoreCorruptError: It is not there any more.
        """
        return ledgers.locked(transaction, (self.name,), self.store.engine.locking if locked else "")[self.name]

    def account(self) -> Account:
        """Return what is spent."""
        row = self.row()
        return Account.of(row.terms, row.sums)

    def accounts(self) -> list[Account]:
        """Return what is spent here, and in all ledgers that are charged with this one, at one moment."""
        rows = self.store.read(lambda transaction: ledgers.locked(transaction, (self.name, *self.also), ""))
        home = rows.pop(self.name)
        return [Account.of(row.terms, row.sums) for row in (home, *rows.values())]

    def account_in(self, transaction: Transaction) -> Account:
        """Return what is spent, under the lock of the ledger."""
        row = self.row_in(transaction)
        return Account.of(row.terms, row.sums)

    def entries(self) -> tuple[LedgerEntry, ...]:
        """Return all lines, in order."""
        rows = self.store.read(lambda transaction: list(ledgers.entries(transaction, self.name)))
        return tuple(entry_of(row) for row in rows)

    def entry(self, request_id: str) -> LedgerEntry | None:
        """Return the line of a request, or None."""

        def script(transaction: Transaction) -> EntryRow | None:
            found = ledgers.find_request(transaction, self.name, request_id)
            return None if found is None else next(ledgers.entries(transaction, self.name, found.sequence))

        row = self.store.read(script)
        return None if row is None else entry_of(row)

    def request(self, request_id: str) -> RequestRow | None:
        """Return a request, or None."""
        return self.store.read(lambda transaction: ledgers.find_request(transaction, self.name, request_id))

    # Charging.

    def make(self, terms: Terms, parent: str | None = None) -> None:
        """Make the ledger if it is not there.

        Raises:
            TermsError: It is there, on other terms.
        """
        row = self.store.read(lambda transaction: ledgers.find_ledger(transaction, self.name))
        if row is None:

            def script(transaction: Transaction) -> LedgerRow | None:
                make_in(transaction, self.store, self.name, terms, parent)
                return ledgers.find_ledger(transaction, self.name)

            row = self.store.certainly(script, lambda transaction: ledgers.find_ledger(transaction, self.name))
        if row is None or row.terms != terms.text or row.parent != parent:
            raise TermsError(
                f"the ledger {self.name!r} was made on other terms: open it with its own (sordino ledger show), give "
                "the new one another id, or raise its total"
            )

    def _locked(self, transaction: Transaction) -> dict[str, LedgerRow]:
        return ledgers.locked(transaction, (self.name, *self.also), self.store.engine.locking)

    def dry_run(self, charge: Charge) -> None:
        """Raise as `add` would."""

        def script(transaction: Transaction) -> None:
            found = charge.request_id and ledgers.find_request(transaction, self.name, charge.request_id)
            if found:
                raise duplicate(found.request, found.sequence)
            for row in ledgers.locked(transaction, (self.name, *self.also), "").values():
                Account.of(row.terms, row.sums).after(charge.cost, charge.unit)

        self.store.read(script)

    def new_request(
        self, charge: Charge, asked: bytes, state: str, token: bytes, lease: float = 0.0
    ) -> tuple[Charge, RequestRow]:
        """Return a charge with a name, and its request.

        Args:
            charge: What is charged; it gets a random name if it has none.
            asked: Digest of what was asked for.
            state: 'charged' if an answer will be kept, 'stream' if not.
            token: What this attempt is recognised by.
            lease: Seconds before others may try.
        """
        name = secrets.token_hex(16) if charge.request_id is None else charge.request_id
        until = now() + int(1000 * lease)
        row = RequestRow(self.name, name, -1, asked, state, 1, token, owner_name(), until, None, None, None, None, None)
        return charge._replace(request_id=name), row

    def add(self, charge: Charge) -> LedgerEntry:
        """Judge and write down; nobody will keep an answer."""
        return self.charged(*self.new_request(charge, b"", "stream", new_token()))[0]

    def charged(self, charge: Charge, request: RequestRow) -> tuple[LedgerEntry, RequestRow]:
        """Judge and write down, with the request.

        Raises:
            DuplicateRequestError: The request was charged meanwhile.
        """

        def done(transaction: Transaction) -> tuple[LedgerEntry, RequestRow] | None:
            found = self._mine(transaction, request)
            if found is None:
                return None
            return entry_of(next(ledgers.entries(transaction, self.name, found.sequence))), found

        try:
            alone = self._charged_alone(charge, request)
            if alone is not None:
                return alone
            return self.store.certainly(lambda transaction: self.charge_in(transaction, charge, request), done)
        except StoreError as error:
            error.request_id = error.request_id or request.request
            raise

    def _mine(self, transaction: Transaction, request: RequestRow) -> RequestRow | None:
        """Return a request that this attempt has charged, under the lock of the ledger, or None."""
        self._locked(transaction)
        found = ledgers.find_request(transaction, self.name, request.request)
        return None if found is None or found.token != request.token else found

    def _charged_alone(self, charge: Charge, request: RequestRow) -> tuple[LedgerEntry, RequestRow] | None:
        """Judge and write down by what is known of the ledger, which is not read; None if it is not as it was."""
        known = self._known
        if known is None or self.also:
            return None
        row, account = known
        try:
            after = account.after(charge.cost, charge.unit)
        except SordinoError:
            return None  # by what is there now it may be accepted
        entry = _line(row.head, charge, after, now() // 1000, self.also)
        text = _text_of(entry, request.asked)
        request = request._replace(sequence=row.head)
        next_row = ledgers.behind(row, charge.kind, text, after.text)

        def script(transaction: Transaction) -> Written:
            return ledgers.added_with_request(transaction, row, next_row, charge.kind, text, request)

        def done(transaction: Transaction) -> Written | None:
            return None if self._mine(transaction, request) is None else Looked(1)

        if not self.store.certainly(script, done).rowcount:
            self._known = None
            return None
        self._head, self._known = next_row.head_hash, (next_row, after)
        return entry, request

    def charge_in(
        self, transaction: Transaction, charge: Charge, request: RequestRow
    ) -> tuple[LedgerEntry, RequestRow]:
        """Do the same as a part of a transaction."""
        rows = self._locked(transaction)
        found = ledgers.find_request(transaction, self.name, request.request)
        if found is not None:
            raise duplicate(found.request, found.sequence)
        second = now() // 1000
        home: LedgerEntry | None = None
        for name, row in rows.items():
            after = Account.of(row.terms, row.sums).after(charge.cost, charge.unit)
            entry = _line(row.head, charge, after, second, self.also)
            text = _text_of(entry, request.asked)
            next_row = ledgers.behind(row, charge.kind, text, after.text)
            ledgers.added(transaction, row, next_row, charge.kind, text)
            if name == self.name:
                home = entry
                undisturbed = self._head in {None, row.head_hash}
                self._head, self._known = next_row.head_hash, (next_row, after) if undisturbed else None
        assert home is not None
        request = request._replace(sequence=home.sequence)
        ledgers.insert_request(transaction, request)
        return home, request

    # Records of requests that the caller answers.

    def record(self, request_id: str) -> object:
        """Return the bytes that were attached to a request, or None."""

        def script(transaction: Transaction) -> bytes | None:
            found = ledgers.find_request(transaction, self.name, request_id)
            return ledgers.answer_bytes(transaction, found) if found is not None and found.state == "answered" else None

        return self.store.read(script)

    def attach(self, request_id: str, record: object, *, instead: bool = False) -> None:
        """Refuse: what a store keeps is what was released."""
        del request_id, record, instead
        raise InvalidParameterError("a ledger in a store keeps the answers of releases: nothing else is attached to it")

    # Looking back.

    def verified(self, head: tuple[int, str] | None) -> LedgerRow:
        """Compute chain and sums anew, and return the ledger.

        Args:
            head: A number of lines and the hash behind them, as they were noted before.

        Raises:
            StoreCorruptError: They are not what the store says, or were cut.
        """

        def script(transaction: Transaction) -> LedgerRow:
            row = self.row_in(transaction, locked=False)
            # Those of the ledger of a period are its parent's.
            own = Terms.of(row.terms).role != "period"
            requests = {each.request: each for each in ledgers.requests_in(transaction, self.name)}
            lines = list(ledgers.entries(transaction, self.name))
            account = Account.empty(_first_terms(row, lines))
            digest = first_hash(self.store.id, self.name, account.terms.text)
            passed = head is None or (head[0] == 0 and head[1] == digest.hex())
            for place, line in enumerate(lines):
                digest = entry_hash(digest, place, line.kind, line.body)
                if line.sequence != place or line.hash != digest:
                    raise StoreCorruptError(f"entry {place} of the ledger was altered, or one before it left out")
                account = _replayed(account, line)
                if own and not _is_requested(line, requests):
                    raise StoreCorruptError(f"the request of entry {place} was altered, or left out")
                passed = passed or (head is not None and head == (place + 1, digest.hex()))
            if (row.head, row.head_hash) != (len(lines), digest) or row.terms != account.terms.text:
                raise StoreCorruptError("entries at the end of the ledger are missing, or were altered")
            if row.sums != account.text:
                raise StoreCorruptError("the sums of the ledger are not those of its entries")
            if own and requests:
                raise StoreCorruptError("the ledger has a request that was not charged")
            if not passed:
                raise StoreCorruptError(
                    "the ledger does not have the head that was noted: it was cut, or is another one"
                )
            return row

        return self.store.read(script)


def make_in(transaction: Transaction, store: Store, name: str, terms: Terms, parent: str | None = None) -> None:
    """Make a ledger in which nothing is spent, if nobody did meanwhile."""
    row = LedgerRow(name, parent, terms.text, 0, b"", Account.empty(terms).text)
    ledgers.make_ledger(transaction, store.id, row)


def _is_requested(line: EntryRow, requests: dict[str, RequestRow]) -> bool:
    """Return whether a line has its request, and take that away; totals are raised without one."""
    body = json.loads(line.body)
    if body["request"] is None:
        return True
    found = requests.pop(body["request"], None)
    return found is not None and (found.sequence, found.asked.hex()) == (line.sequence, body["asked"])


def _first_terms(row: LedgerRow, lines: list[EntryRow]) -> Terms:
    """Return the terms before the total was raised."""
    raised = next((line for line in lines if line.kind == "raise"), None)
    return Terms.of(row.terms if raised is None else str(json.loads(raised.body)["from"]))


def _replayed(account: Account, line: EntryRow) -> Account:
    """Return what is spent after a line that was kept.

    Raises:
        StoreCorruptError: By the rules it would not have been kept.
    """
    try:
        if line.kind == "raise":
            return account._replace(terms=Terms.of(str(json.loads(line.body)["to"])))
        entry = entry_of(line)
        return account.after(entry.cost, entry.unit, entry.split)
    except StoreCorruptError:
        raise
    except (ValueError, TypeError, RuntimeError, LookupError):
        raise StoreCorruptError(f"entry {line.sequence} of the ledger is none that its rules accept") from None


def _line(
    sequence: int, charge: Charge, after: Account, second: int | None = None, periods: tuple[str, ...] = ()
) -> LedgerEntry:
    """Return the line of a charge, behind which a ledger is as `after` says."""
    rule = after.terms.rule
    return LedgerEntry(
        sequence=sequence,
        cost=charge.cost,
        request_id=charge.request_id,
        label=charge.label,
        unit=charge.unit,
        rule=rule.name,
        split=rule.stored(after.state),
        second=second,
        kind=charge.kind,
        periods=periods,
    )


def _text_of(entry: LedgerEntry, asked: bytes) -> str:
    """Return a line as the text that `entry_of` reads, with the digest of what was asked for."""
    split = entry.split
    return canonical(
        {
            "cost": entry.cost.to_json(),
            "request": entry.request_id,
            "label": entry.label,
            "unit": None if entry.unit is None else entry.unit.to_json(),
            "asked": asked.hex(),
            "periods": list(entry.periods),
            "second": entry.second,
            "rule": entry.rule,
            "split": None if split is None else [str(split[0]), str(split[1]), float(split[2]).hex()],
        }
    )


def entry_of(row: EntryRow) -> LedgerEntry:
    """Return a line as an entry.

    Raises:
        StoreCorruptError: It is none.
    """
    try:
        record: dict[str, Any] = json.loads(row.body)
        split, unit = record.get("split"), record.get("unit")
        return LedgerEntry(
            sequence=row.sequence,
            cost=None if record["cost"] is None else cost_from_json(record["cost"]),
            request_id=record["request"],
            label=str(record["label"]),
            unit=None if unit is None else unit_from_json(unit),
            rule=record.get("rule"),
            split=None if split is None else (Fraction(split[0]), Fraction(split[1]), float.fromhex(split[2])),
            second=record["second"],
            kind=row.kind,
            periods=tuple(record.get("periods", ())),
        )
    except (LookupError, TypeError, ValueError):
        raise StoreCorruptError(f"entry {row.sequence} of the ledger is damaged") from None
