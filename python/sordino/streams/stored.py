"""Streams in a store of services: opened with their charge in one transaction, or gone on with."""

from __future__ import annotations

import secrets
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sordino import _core
from sordino._support.checks import flag, name_of
from sordino._support.durations import seconds_of
from sordino._support.records import joined, packed_record, rebuilt_from
from sordino.errors import (
    CheckpointError,
    InvalidParameterError,
    StoreCorruptError,
    UnsupportedMechanismError,
    WrongKeyError,
)
from sordino.mechanisms.families import fit_of
from sordino.mechanisms.fits import Fit
from sordino.mechanisms.stream.fit import StreamFit
from sordino.mechanisms.stream.rare import RareFit
from sordino.mechanisms.stream.table import TableFit
from sordino.privacy.books import Charge, StoredBook
from sordino.privacy.ledger import Ledger
from sordino.storage import streams
from sordino.storage.chain import first_hash
from sordino.storage.owners import new_token, owner_name
from sordino.storage.store import Store, check_key
from sordino.storage.streams import StepRow, StreamRow
from sordino.storage.transactions import Transaction, now
from sordino.streams.counter import Stream
from sordino.streams.events import EventStream
from sordino.streams.kept import LEASE, Kept, claim
from sordino.streams.opening import event_stream
from sordino.streams.rare import RareStream
from sordino.streams.steps import KeptSteps, decoded, header_for, header_of
from sordino.streams.table import HistogramStream

if TYPE_CHECKING:
    from sordino.streams.base import OpenStream

__all__ = ["StoredOpening", "go_on", "open_stored"]

# Seconds for an operation of a process, and for a step of one coordinate, about.
_OPERATION, _STEP = 1e-9, 3e-8


class StoredOpening(NamedTuple):
    """Where a stream is opened.

    Attributes:
        store: The store.
        stream_id: Its name there.
        take_over: Whether it is taken from an owner who may be alive.
        keep_steps: How long answers of its steps are kept; None for ever.
    """

    store: Store
    stream_id: str
    take_over: bool = False
    keep_steps: object = "30 days"

    def checked(self) -> StoredOpening:
        """Return the same, with the time in milliseconds.

        Raises:
            DataTypeError: An argument is of the wrong type.
            InvalidParameterError: There is no name, or the time is none.
        """
        name_of("stream_id", self.stream_id)
        flag("take_over", self.take_over)
        keep = None if self.keep_steps is None else int(1000 * seconds_of("keep_steps", self.keep_steps))
        return self._replace(keep_steps=keep)


class _Exists(Exception):  # noqa: N818 - no error: somebody was quicker
    """The stream was opened meanwhile."""


def open_stored(fit: Fit, where: StoredOpening, ledger: Ledger | None, request_id: str | None) -> OpenStream:
    """Open a stream, or go on with it if it is there: charged once, with its row and its first state.

    Raises:
        DuplicateRequestError: The stream, or the request, is there for something else.
        InvalidParameterError: The ledger is in another store, or the stream is finished, or pan-private.
        KeyMissingError: The store has no key.
        WrongKeyError: It has another one.
        StreamInUseError: Somebody else holds it.
        BudgetExceededError: The ledger's total would be exceeded.
        UnsupportedCostError: The ledger cannot count this cost.
        UnitError: The ledger protects another thing.
        StoreError: The store cannot be used.
    """
    where, asked = where.checked(), fit.request.asked()
    if request_id is not None:
        name_of("request_id", request_id)
    if isinstance(fit, TableFit) and fit.pan_private:
        raise UnsupportedMechanismError(
            "a pan-private stream is safe against one look at its state, a stored one is not"
        )
    book = _book(where.store, ledger)
    check_key(where.store)
    while True:
        kept = claim(where.store, where.stream_id, asked, where.take_over)
        if kept is not None:
            return _gone_on(kept, fit)
        try:
            return _opened(fit, where, book, request_id, asked)
        except _Exists:
            continue


def _book(store: Store, ledger: Ledger | None) -> StoredBook | None:
    if ledger is None:
        return None
    book = ledger._book
    if not isinstance(book, StoredBook) or book.store.id != store.id:
        raise InvalidParameterError("the ledger of a stored stream is in the same store: both are written at once")
    return StoredBook(store, book.name, book.also)


def _opened(
    fit: Fit, where: StoredOpening, book: StoredBook | None, request_id: str | None, asked: bytes
) -> OpenStream:
    store, token = where.store, new_token()
    own = f"stream {where.stream_id} {secrets.token_hex(4)}" if request_id is None else request_id
    request = None if book is None else own
    head = first_hash(store.id, f"stream {where.stream_id}", asked.hex())
    plan = zlib.compress(joined(*packed_record(fit.record())), 6)
    row = StreamRow(
        id=where.stream_id,
        ledger=None if book is None else book.name,
        request=request,
        asked=asked,
        plan=plan,
        state="open",
        generation=1,
        token=token,
        owner=owner_name(),
        lease_until=now() + LEASE,
        step=0,
        head_hash=head,
        last_id=None,
        tail=0,
        tail_hash=head,
        key_id=store.keys.key_id,
        checkpoint_step=0,
        keep=where.keep_steps,  # type: ignore[arg-type] # milliseconds by now
    )
    kept = Kept(store, row)
    stream, seal = _made(fit, kept)

    def opening(sealed: bytes) -> None:
        def script(transaction: Transaction) -> bool:
            if book is not None:
                book.account_in(transaction)  # under its lock: who was quicker has committed
                if streams.find_stream(transaction, row.id) is not None:
                    raise _Exists
                unit = fit.request.unit
                charge = Charge(fit.cost, request, unit.label, unit)
                book.charge_in(transaction, *book.new_request(charge, asked, "stream", token))
            if not streams.insert_stream(transaction, row):
                raise _Exists
            streams.seal_state(transaction, row, 0, sealed)
            return True

        def done(transaction: Transaction) -> bool | None:
            if book is not None:
                book.account_in(transaction)  # under the lock of its ledger
            found = streams.find_stream(transaction, row.id, store.engine.locking)
            return True if found is not None and found.token == token else None

        store.certainly(script, done)

    try:
        store.working.begin(token)
        sealed = seal(0, head)
        opening(sealed)
    except BaseException:
        _wiped(stream)
        store.working.end(token)
        raise
    kept.weight = len(sealed)
    stream.accounted = book is not None
    opened: OpenStream = stream
    return opened


def _wiped(stream: Any) -> None:
    """Wipe a stream that never came to be, or was not gone on with: nothing of it is stored."""
    counters = getattr(stream, "counters", stream)
    for part in (stream, counters):
        finalizer = getattr(part, "_release", None)
        if finalizer is not None:
            finalizer.detach()
    getattr(counters, "_core", counters).close()


_Seal = Callable[[int, bytes], bytes]


def _made(fit: Fit, kept: Kept) -> tuple[Any, _Seal]:
    """Return a stream under a fresh key, and what seals its state."""
    match fit:
        case StreamFit(lazy=True):
            lazy = _core.LazyStream(fit.strategy, fit.door, fit.coordinates)
            return event_stream(fit, lazy, True, kept), lambda step, head: _sealed_lazy(lazy, fit, kept, step, head)
        case RareFit(counters=counters):
            plain = Stream(
                counters, _core.Stream(counters.strategy, counters.door, counters.dim), "", None, True, False
            )
            rare = RareStream(fit, _above(fit), plain, kept)
            return rare, rare._sealed
        case StreamFit() | TableFit():
            counters = _counters_of(fit)
            return _over(fit, kept, _core.Stream(counters.strategy, counters.door, counters.dim))
    raise UnsupportedMechanismError("this plan opens no stream")


def _above(fit: RareFit) -> _core.AboveThreshold | None:
    if fit.threshold is None:
        return None
    assert fit.epsilon is not None
    return _core.AboveThreshold(fit.threshold, 1, fit.epsilon)


def _counters_of(fit: StreamFit | TableFit | RareFit) -> StreamFit:
    return fit if isinstance(fit, StreamFit) else fit.counters


def _over(fit: StreamFit | TableFit, kept: Kept, core: _core.Stream) -> tuple[Any, _Seal]:
    """Return a stream over counters that are kept step by step."""
    counters = _counters_of(fit)
    seconds = counters.dim * (_STEP + _OPERATION * counters.strategy.operations)
    steps = KeptSteps(kept, core, seconds, lambda: None)
    stream = Stream(counters, core, kept.row.id, steps, private=True, accounted=kept.row.ledger is not None)

    def seal(step: int, head: bytes) -> bytes:
        return steps.sealed(step, head, held=False)

    if isinstance(fit, TableFit):
        return HistogramStream(fit, stream), seal
    return (stream if fit.events is None else event_stream(fit, stream)), seal


def _bound(place: str, kept: Kept, header: bytes) -> bytes:
    """Return what a kept key is bound to: with another plan its noise would be the same draws in another size."""
    return place.encode() + kept.plan_digest.encode() + header


def _sealed_lazy(lazy: _core.LazyStream, fit: StreamFit, kept: Kept, step: int, head: bytes) -> bytes:
    """Return the keys of counters that are read by coordinate, sealed; their sums are made of the events."""
    place = kept.place("state", step)
    header = header_for(place, head)
    sealed = lazy.sealed(kept.store.keys.sealing(kept.row.key_id), _bound(place, kept, header))
    return len(header).to_bytes(8, "big") + header + sealed


# Going on.


def go_on(store: Store, stream_id: str, *, take_over: bool = False) -> Any:
    """Go on with a stream in a store, by the plan that it was opened with: nothing is charged.

    Args:
        store: The store.
        stream_id: Its name.
        take_over: Whether it is taken from an owner who may be alive: that one publishes nothing any more.

    Raises:
        InvalidParameterError: There is no such stream, or it is finished.
        KeyMissingError: The store has no key.
        WrongKeyError: It has another one.
        StreamInUseError: Somebody else holds it.
        StoreError: The store cannot be used; StoreCorruptError if what it holds does not belong together.
    """
    where = StoredOpening(store, stream_id, take_over).checked()
    kept = claim(store, where.stream_id, None, take_over)
    if kept is None:
        raise InvalidParameterError(f"the store has no stream {stream_id!r}: open it with a plan")
    return _gone_on(kept, None)


def _gone_on(kept: Kept, own: Fit | None) -> OpenStream:
    """Return a claimed stream at the step where it was, with a fresh key for the noise to come."""
    try:
        fit = _stored_fit(kept, own)
        match fit:
            case StreamFit(lazy=True):
                stream = _lazy_on(fit, kept)
            case RareFit():
                stream = _rare_on(fit, kept)
            case _:
                stream = _counters_on(fit, kept)
    except (StoreCorruptError, WrongKeyError):
        # Whoever took it over meanwhile may have changed what was read here in parts: then it is as it should be.
        lost = not kept.is_held()
        kept.release()
        if lost:
            raise kept.taken() from None
        raise
    except BaseException:
        kept.release()
        raise
    stream.accounted = kept.row.ledger is not None
    return stream


def _stored_fit(kept: Kept, own: Fit | None) -> Fit:
    """Return the fit that the stream was opened with; whoever brings the same does not fit it again."""
    digest = kept.plan_digest  # refuses one that is damaged
    if own is not None and digest == own.digest:
        return own
    return rebuilt_from(*kept.row.plan_parts(), fit_of, "stream")


class _State(NamedTuple):
    """Counters at the last state, the steps behind it, what was kept beside them, and by whom, where and how."""

    core: _core.Stream
    behind: list[StepRow]
    also: Any
    generation: int
    place: str
    key: bytes


def _opened_state(kept: Kept, fit: StreamFit | TableFit | RareFit) -> _State:
    step, generation, key_id, sealed = kept.state()
    counters = _counters_of(fit)
    key = kept.store.keys.sealing(key_id)
    try:
        core = _core.Stream.restore(counters.strategy, counters.door, counters.dim, key, sealed)
    except CheckpointError:
        raise WrongKeyError("the state of the stream was sealed under another key, or altered") from None
    try:
        place = kept.place("state", step, generation)
        head, also = header_of(_core.checkpoint_header(sealed), place)
        return _State(core, kept.steps(step, head), also, generation, place, key)
    except BaseException:
        core.close()
        raise


def _counters_on(fit: Fit, kept: Kept) -> OpenStream:
    if not isinstance(fit, StreamFit | TableFit):
        raise StoreCorruptError("the plan of the stream opens none")
    core, behind, also, generation, _, _ = _opened_state(kept, fit)
    try:
        stream, _ = _over(fit, kept, core)
        steps = getattr(stream, "counters", stream)._steps
        steps.go_through(behind, generation)
        if isinstance(stream, HistogramStream):
            answers = [np.frombuffer(row.answers or b"", "<f8").tolist() for row in behind]
            stream._sums_so_far(decoded(also) if also is not None else [], answers)
        if isinstance(stream, EventStream) and stream.remembers:
            everything = behind if kept.row.tail == kept.row.checkpoint_step else kept.all_steps()
            stream._take_again(content for _, content in kept.changes(everything))
        steps.take_fresh_key()
    except BaseException:
        core.close()
        raise
    return stream  # type: ignore[no-any-return]


def _lazy_on(fit: StreamFit, kept: Kept) -> OpenStream:
    step, generation, key_id, content = kept.state()
    length = int.from_bytes(content[:8], "big")
    header, sealed = content[8 : 8 + length], content[8 + length :]
    place = kept.place("state", step, generation)
    head, _ = header_of(header, place)
    key = kept.store.keys.sealing(key_id)
    bound = _bound(place, kept, header)
    try:
        lazy = _core.LazyStream.unsealed(fit.strategy, fit.door, fit.coordinates, key, bound, sealed)
    except CheckpointError:
        raise WrongKeyError("the state of the stream was sealed under another key or plan, or altered") from None
    stream = event_stream(fit, lazy, True, kept)
    try:
        stream._take_again(content for _, content in kept.changes(kept.all_steps(step, head)))
        lazy.rekey()
        # Before anything is published with the fresh key.
        kept.keep_state(_sealed_lazy(lazy, fit, kept, kept.row.step, kept.row.head_hash))
    except BaseException:
        _wiped(stream)
        raise
    return stream


def _rare_on(fit: RareFit, kept: Kept) -> OpenStream:
    core, behind, also, _, place, key = _opened_state(kept, fit)
    if behind:
        raise StoreCorruptError("a state of the stream is missing")
    core.rekey()
    above = _above(fit)  # under a fresh key
    plain = Stream(fit.counters, core, "", None, private=True, accounted=False)
    stream = RareStream(fit, above, plain, kept)
    stream._go_on(also, place, key)
    kept.keep_state(stream._sealed(kept.row.step, kept.row.head_hash))
    return stream
