"""Requests of ledgers in a store: charged, then answered once, by whoever lives long enough.

`charged -> answered -> expired`, or `charged -> abandoned`. A number leaves when the transaction that holds it is kept;
an attempt that was overtaken finds its token gone and wipes what it drew.

**What finishing a charge costs.** With `recovery="same"` the noise key is a keyed hash of a random seed, of what was
asked and of the input, so a repeat draws the same lattice integers, and other input is refused. With "redraw" nothing
of an earlier attempt has left: if processes do not die because of their noise, it costs one charge; however they
depend on it, what left is post-processing of at most `attempts` draws.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from sordino.errors import (
    AnswerExpiredError,
    DuplicateRequestError,
    InputChangedError,
    RequestInProgressError,
    RequestLostError,
    SordinoError,
    StoreError,
)
from sordino.privacy.books import Charge, StoredBook, entry_of
from sordino.storage import ledgers
from sordino.storage.entries import LedgerEntry
from sordino.storage.ledgers import RequestRow
from sordino.storage.owners import new_token, owner_name
from sordino.storage.store import check_key
from sordino.storage.transactions import Transaction, now

__all__ = ["Answering", "NoiseKey", "Prepared", "Recovery", "Requests", "Unanswered"]

_R = TypeVar("_R")

Recovery = Literal["same", "redraw", "never"]
# Of the sampler: a key draws the same numbers as long as this stays.
_SAMPLER = b"sordino noise 1"


class NoiseKey(NamedTuple):
    """From what noise is drawn.

    Attributes:
        key: 32 bytes, None for fresh ones of the operating system.
        private: Whether nobody knows it.
    """

    key: bytes | None = None
    private: bool = True

    def of(self, purpose: str) -> bytes | None:
        """Return the key of a second draw: another one, but under the known key of tests."""
        if self.key is None or not self.private:
            return self.key
        return hmac.new(self.key, purpose.encode(), hashlib.sha256).digest()


class Prepared(NamedTuple, Generic[_R]):
    """Data that were read and checked.

    Attributes:
        measure: Measures them.
        digest: Returns a digest of them, as private as they are.
    """

    measure: Callable[[NoiseKey], _R]
    digest: Callable[[], bytes]


class Answering(NamedTuple, Generic[_R]):
    """How a request is charged and answered.

    Attributes:
        charge: What it costs.
        asked: Returns a digest of what is asked for, all of it public.
        same: Returns the record of an earlier request if it answers this one.
        prepare: Reads and checks the data.
        finish: What is made of the measured, if it was not made yet.
        dump: Returns an answer as bytes.
        load: Returns the answer of bytes.
    """

    charge: Charge
    asked: Callable[[], bytes]
    same: Callable[[object], _R | None]
    prepare: Callable[[], Prepared[_R]]
    finish: Callable[[_R], _R]
    dump: Callable[[_R], bytes]
    load: Callable[[bytes], _R]


@dataclass(frozen=True)
class Unanswered:
    """A request that was charged and not answered.

    Attributes:
        request_id: Its name.
        entry: The charge.
        attempt: How often it was begun.
        working: Whether somebody may be answering it now.
    """

    request_id: str
    entry: LedgerEntry
    attempt: int
    working: bool


class Requests:
    """The requests of one ledger in a store.

    Args:
        book: The ledger.
        recovery: What is done with a charge whose process died.
        attempts: How often noise is drawn for one charge at most.
        lease: Seconds before others may answer an unfinished request.
        keep: Seconds for which answers are kept.
    """

    def __init__(self, book: StoredBook, recovery: Recovery, attempts: int, lease: float, keep: float) -> None:
        self.book = book
        self.recovery = recovery
        self.attempts = attempts
        self.lease = lease
        self.keep = keep
        # Answers of which it is not known whether they were kept.
        self._waiting: dict[str, tuple[RequestRow, bytes]] = {}

    def over(self, book: StoredBook) -> Requests:
        """Return requests of another ledger, treated in the same way."""
        return Requests(book, self.recovery, self.attempts, self.lease, self.keep)

    def answer(self, how: Answering[_R]) -> _R:
        """Answer a request: from the store, or by measuring once and charging for it.

        Raises:
            SordinoError: As `Ledger.charge`, and `how.prepare`; nothing was charged.
            DuplicateRequestError: The request was charged for something else.
            RequestInProgressError: Somebody else is answering it.
            RequestLostError: It was charged, and given up.
            AnswerExpiredError: Its answer was not kept for so long.
            InputChangedError: It was charged for other input.
            StoreError: The store cannot be used, or does not say what it kept.
        """
        asked, name = how.asked(), how.charge.request_id
        if self.book.also:
            # The same for other periods is something else: they were not charged for this answer.
            asked = hashlib.sha256("\0".join([asked.hex(), *self.book.also]).encode()).digest()
        prepared: Prepared[_R] | None = None
        while True:
            row = None if name is None else self.book.request(name)
            if row is not None:
                found = self._found(row, asked)
                if found is not None:
                    return how.load(found)
            if prepared is None:
                if row is None:
                    try:
                        self.book.dry_run(how.charge)
                    except DuplicateRequestError:
                        continue  # charged by somebody else meanwhile
                prepared = how.prepare()
            token, working = new_token(), self.book.store.working
            try:
                working.begin(token)
                if row is None:
                    row = self._charged(how.charge, asked, prepared, token)
                else:
                    row = self._resumed(row, prepared, token)
                release = None if row is None else self._measured(row, how, prepared)
            finally:
                working.end(token)
            if release is not None:
                return release
            name = name if row is None else row.request

    def _found(self, row: RequestRow, asked: bytes) -> bytes | None:
        """Return the answer that is there, None if the request may be begun again."""
        if row.asked != asked:
            raise DuplicateRequestError(
                f"request id {row.request!r} was charged before, for something else; nothing was spent again",
                charged=True,
                request_id=row.request,
            )
        match row.state:
            case "answered":
                return self._answer(row)
            case "expired":
                raise AnswerExpiredError(
                    f"the answer of {row.request!r} was not kept for so long (keep_answers)",
                    charged=True,
                    request_id=row.request,
                )
            case "charged":
                return self._unfinished(row)
        raise self._lost(row)

    def _answer(self, row: RequestRow) -> bytes:
        self._waiting.pop(row.request, None)
        return self.book.store.read(lambda transaction: ledgers.answer_bytes(transaction, row))

    def _unfinished(self, row: RequestRow) -> bytes | None:
        waiting = self._waiting.get(row.request)
        if waiting is not None and waiting[0].token == row.token:
            # It was computed here, and the store went away before it said whether it kept it.
            if self._kept(*waiting):
                return waiting[1]
            return None
        left = row.lease_until - now()
        if left > 0 and self.book.store.working.may_have(row.token, row.owner):
            raise RequestInProgressError(
                f"request id {row.request!r} is being answered by somebody else",
                charged=True,
                retry=max(left / 1000.0, 0.1),
                request_id=row.request,
            )
        return None

    def _lost(self, row: RequestRow) -> RequestLostError:
        return RequestLostError(
            f"request id {row.request!r} was charged and will not be answered: use a new id for a new release",
            charged=True,
            request_id=row.request,
        )

    def _tag(self, name: str, prepared: Prepared[Any], key_id: str | None = None) -> bytes:
        message = f"{self.book.name}\0{name}\0".encode() + prepared.digest()
        return self.book.store.keys.tag("input", message, key_id)

    def _seal_place(self, name: str) -> str:
        return f"{self.book.store.id}/{self.book.name}/{name}/seed"

    def _charged(self, charge: Charge, asked: bytes, prepared: Prepared[Any], token: bytes) -> RequestRow | None:
        """Charge; None if somebody else did meanwhile: what is there now counts."""
        charge, request = self.book.new_request(charge, asked, "charged", token, self.lease)
        if self.recovery == "same":
            check_key(self.book.store)
            keys, name = self.book.store.keys, request.request
            seed = keys.seal(self._seal_place(name), secrets.token_bytes(32))
            request = request._replace(key_id=keys.key_id, seed=seed, input_tag=self._tag(name, prepared))
        try:
            return self.book.charged(charge, request)[1]
        except DuplicateRequestError:
            return None

    def _resumed(self, row: RequestRow, prepared: Prepared[Any], token: bytes) -> RequestRow | None:
        """Begin an unfinished request again; None if somebody else did, or answered it meanwhile."""
        if self.book.request(row.request) != row:
            return None
        if row.seed is not None and not hmac.compare_digest(
            self._tag(row.request, prepared, row.key_id), row.input_tag or b""
        ):
            raise InputChangedError(
                f"request id {row.request!r} was charged for other data, and not answered: repeat it with the same",
                charged=True,
                request_id=row.request,
            )
        if self.recovery == "never" or (row.seed is None and row.attempt >= self.attempts):
            self.book.store.write(lambda transaction: ledgers.given_up(transaction, row))
            raise self._lost(row)
        until = now() + int(1000 * self.lease)

        def script(transaction: Transaction) -> bool:
            return ledgers.started_again(transaction, row, token, owner_name(), until)

        def done(transaction: Transaction) -> bool | None:
            found = ledgers.find_request(transaction, row.ledger, row.request)
            return True if found is not None and found.token == token else None

        begun = self.book.store.certainly(script, done)
        return row._replace(attempt=row.attempt + 1, token=token) if begun else None

    def _noise_key(self, row: RequestRow, prepared: Prepared[Any]) -> NoiseKey:
        if row.seed is None:
            return NoiseKey()
        seed = self.book.store.keys.unseal(self._seal_place(row.request), row.seed, row.key_id)
        return NoiseKey(hmac.new(seed, _SAMPLER + row.asked + prepared.digest(), hashlib.sha256).digest())

    def _measured(self, row: RequestRow, how: Answering[_R], prepared: Prepared[_R]) -> _R | None:
        """Draw, keep, and only then return; None if another attempt was quicker, or is under way."""
        try:
            release = how.finish(prepared.measure(self._noise_key(row, prepared)))
            answer = how.dump(release)
        except BaseException:
            self._left(row)
            raise
        self._waiting[row.request] = (row, answer)
        return release if self._kept(row, answer) else None

    def _kept(self, row: RequestRow, answer: bytes) -> bool:
        """Keep an answer; return whether it is this attempt's to give."""
        time = now()
        expires = time + int(1000 * self.keep)

        def script(transaction: Transaction) -> bool:
            kept = ledgers.answered(transaction, row, answer, time, expires)
            ledgers.expire(transaction, row.ledger, time)
            return kept

        def done(transaction: Transaction) -> bool | None:
            found = ledgers.find_request(transaction, row.ledger, row.request)
            return True if found is not None and (found.state, found.token) == ("answered", row.token) else None

        try:
            kept = self.book.store.certainly(script, done)
        except StoreError as error:
            # It waits here: a repeat keeps it, and returns it then.
            error.charged, error.request_id, error.retry = True, row.request, True
            raise
        self._waiting.pop(row.request, None)
        return kept

    def _left(self, row: RequestRow) -> None:
        """Say that nobody works on a request any more, if that can be said: else its lease ends by itself."""
        with suppress(SordinoError):
            self.book.store.write(lambda transaction: ledgers.left_alone(transaction, row))

    def unanswered(self) -> list[Unanswered]:
        """Return the requests that were charged and not answered, in order."""

        def script(transaction: Transaction) -> list[tuple[RequestRow, LedgerEntry]]:
            rows = ledgers.requests_in(transaction, self.book.name, "charged")
            found = [next(ledgers.entries(transaction, self.book.name, row.sequence)) for row in rows]
            return list(zip(rows, map(entry_of, found), strict=True))

        time = now()
        return [
            Unanswered(
                row.request,
                entry,
                row.attempt,
                row.lease_until > time and self.book.store.working.may_have(row.token, row.owner),
            )
            for row, entry in self.book.store.read(script)
        ]

    def give_up(self, request_id: str) -> None:
        """Say that a request will not be answered: its charge stays.

        Raises:
            RequestInProgressError: Somebody is answering it.
            RequestLostError: It is no unfinished request of this ledger.
        """
        row = self.book.request(request_id)
        if row is None or row.state != "charged":
            raise RequestLostError(f"{request_id!r} is no unfinished request of this ledger", request_id=request_id)
        self._unfinished(row)
        self.book.store.write(lambda transaction: ledgers.given_up(transaction, row))
