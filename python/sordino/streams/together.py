"""Steps of many streams in one transaction: one wait for the disk for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sordino._support.checks import sequence
from sordino.errors import (
    DataTypeError,
    DuplicateRequestError,
    InvalidParameterError,
    StepPendingError,
)
from sordino.releases.arrays import read_items
from sordino.storage import streams
from sordino.streams.base import PENDING, check_left
from sordino.streams.counter import Stream, shaped
from sordino.streams.steps import KeptSteps

if TYPE_CHECKING:
    from sordino.storage.streams import StepRow, StreamRow
    from sordino.storage.transactions import Transaction
    from sordino.workloads.base import Array

__all__ = ["publish_together"]


@dataclass
class _Update:
    """An update of one stream: what it is, and what became of it."""

    stream: Stream
    steps: KeptSteps
    rows: Any
    shape: tuple[int, ...]
    key: str | None
    answers: Array | None = None
    row: StreamRow | None = None
    entry: StepRow | None = None
    sealed: bytes | None = None
    taken: bool = False


def publish_together(updates: Sequence[tuple[Stream, object, str | int | None]]) -> list[Any]:
    """Publish the next steps of many streams of one store, in one transaction.

    All calls are checked before any stream goes on. After an error of the store all of them wait, and the same call, or
    `resume` of each, stores them.

    Args:
        updates: A stream, its items and the name of the step or None, as `Stream.update` takes them; each stream once.

    Returns:
        The answers in order; in the place of a stream that was taken over elsewhere the `StreamTakenError`.

    Raises:
        DataTypeError: Not such updates, or items that are no numbers.
        InvalidParameterError: A stream is in no `sordino.Store`, in another one than the others, or there twice.
        ShapeError, HorizonError, StreamClosedError, StepPendingError, DuplicateRequestError, StepForgottenError: As
            `Stream.update`; nothing was published.
        StoreError: The store did not keep the steps.
    """
    found = [_checked(update) for update in sequence("updates", updates, "updates of streams")]
    if not found:
        return []
    store = found[0].steps.kept.store
    if any(update.steps.kept.store is not store for update in found):
        raise InvalidParameterError("streams that are published together are of one store")
    if len({id(update.stream) for update in found}) < len(found):
        raise InvalidParameterError("each stream is published once")
    # In the order of their names: nobody waits in a circle.
    ordered = sorted(found, key=lambda update: update.steps.kept.row.id)
    with ExitStack() as stack:
        for update in ordered:
            stack.enter_context(update.stream._guard())
        new = [update for update in ordered if _is_new(update)]
        for update in new:
            _prepare(update)

        def script(transaction: Transaction) -> bool:
            names = [update.steps.kept.row.id for update in new]
            places = streams.places_of(transaction, names, store.engine.locking)
            for update in new:
                assert update.row is not None and update.entry is not None
                kept, row = update.steps.kept, update.row
                if places.get(row.id) == (row.generation, update.entry.first):
                    update.taken = False
                    streams.taken_on(transaction, row, update.entry)
                    if update.sealed is not None:
                        streams.seal_state(transaction, row, row.step, update.sealed)
                else:
                    # Kept before, if at all, with another state: nothing comes back to where it was.
                    update.taken, update.sealed = kept.is_there(transaction, row) is not True, None
            return True

        def done(transaction: Transaction) -> bool | None:
            # All were kept, or none: the first that nobody took says which.
            for update in new:
                assert update.row is not None and update.entry is not None
                there = update.steps.kept.is_there(transaction, update.row)
                if there is not False:
                    return False if there else None
            return None

        if new and not store.certainly(script, done):
            for update in new:
                update.sealed = None  # written, perhaps
        for update in new:
            _settle(update)
    return [_answer(update) for update in found]


def _checked(update: object) -> _Update:
    if not isinstance(update, tuple) or len(update) != 3 or not isinstance(update[0], Stream):
        raise DataTypeError("an update is a stream of numbers, its items, and the name of the step or None")
    stream, items, step_id = update
    if not isinstance(stream._steps, KeptSteps):
        raise InvalidParameterError("only streams in a sordino.Store are published together")
    rows, shape = read_items(items, stream.fit.dim, stream.fit.request.integral)
    return _Update(stream, stream._steps, rows, shape, stream._steps.key(step_id))


def _is_new(update: _Update) -> bool:
    """Return whether an update is to be published: refuse it before any other is, if it cannot be."""
    stream, dim = update.stream, update.stream.fit.dim
    stream._check_open()
    held = stream._core.held()
    if held is not None:
        # The same call again, after the store had failed.
        if held[1] != update.key or len(held[2]) != len(update.rows):
            raise StepPendingError(PENDING)
        return True
    known = update.steps.find(update.key)
    if known is None:
        check_left(len(update.rows) // dim, stream.fit.steps - stream.step)
        return True
    if known.steps * dim != len(update.rows):
        raise DuplicateRequestError("this step_id was published before, with another number of steps")
    update.answers = np.frombuffer(known.answers, "<f8").astype(np.float64)
    return False


def _prepare(update: _Update) -> None:
    core, kept = update.stream._core, update.steps.kept
    if core.held() is None:
        update.stream._head = np.zeros(0)
        core.prepare(update.rows, update.key, True)
        update.steps.worked(len(update.rows) // update.stream.fit.dim)
    published = update.stream._held_steps()
    assert published is not None
    update.row, update.entry = kept.after(published)
    if kept.due(update.entry):
        update.sealed = update.steps.sealed(update.row.step, update.row.head_hash)
    update.answers = np.frombuffer(published.answers or b"", "<f8").astype(np.float64)


def _settle(update: _Update) -> None:
    assert update.row is not None and update.entry is not None
    if update.taken:
        update.stream._core.close()
        return
    update.steps.kept.went_on(update.row, update.entry, update.sealed)
    update.stream._core.commit()


def _answer(update: _Update) -> Any:
    if update.taken:
        return update.steps.kept.taken()
    assert update.answers is not None
    return shaped(update.answers, update.shape)
