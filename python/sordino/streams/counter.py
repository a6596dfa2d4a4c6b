"""Open streams: items in, private answers out, one budget for all of them."""

from __future__ import annotations

import json
import secrets
import weakref
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sordino import _core
from sordino._support.checks import flag, integer
from sordino._support.private_numbers import LARGEST
from sordino._support.protocols import TableLike
from sordino._support.records import guarded
from sordino.errors import (
    CheckpointError,
    DataTypeError,
    DuplicateRequestError,
    InvalidParameterError,
    PlanFileError,
    StepConflictError,
    StepPendingError,
)
from sordino.mechanisms.families import fit_of
from sordino.mechanisms.stream.fit import StreamFit
from sordino.releases.arrays import counts_of, read_items
from sordino.releases.interval import Interval, interval_around
from sordino.storage.keys import sized_key
from sordino.storage.steps import StepStore
from sordino.streams.base import PENDING, OpenStream, check_left
from sordino.streams.kept import Kept, Published
from sordino.streams.steps import KeptSteps, Known, ListedSteps, Steps

if TYPE_CHECKING:
    from collections.abc import Callable

    from sordino.workloads.base import Array

__all__ = ["Stream", "largest_entries", "restore", "shaped"]

_INTEGERS = np.dtype("<i8")
_REALS = np.dtype("<f8")
_NO_CHECKPOINT = "these bytes are no checkpoint of a stream; nothing was restored"


class Stream(OpenStream):
    """An open stream of numbers; `StreamPlan.open` makes it.

    What is promised: everything that it publishes satisfies the plan's guarantee together, also when items are chosen
    after seeing earlier answers. It belongs to one process and to its object: key and past noise are as secret as
    the items, so it refuses to be copied, pickled, or used after a fork.

    Attributes:
        fit: How it was planned.
        private: False only under `sordino.testing.deterministic_noise`.
        accounted: Whether a ledger was charged.
    """

    _no_copy = "a stream cannot be copied or pickled: use checkpoint(key), which is encrypted"

    def __init__(  # noqa: PLR0917 - the parts of a stream, put together where it is opened
        self, fit: StreamFit, core: _core.Stream, name: str, steps: Steps | None, private: bool, accounted: bool
    ) -> None:
        super().__init__(private, accounted)
        self.fit: StreamFit = fit
        self._core = core
        self._name = name
        self._steps = steps
        # Whether a batch is taken as a whole, also where a signal comes: by whoever makes the items of something else.
        self._whole = False
        # Answers of steps before the update that is not stored, in the same batch.
        self._head: Array = np.zeros(0)
        self._one: Callable[[Any], float] | None = core.update_one if steps is None and fit.dim == 1 else None
        # A stream that nobody holds any more gives its store back, once; last here: whoever made an unfinished stream
        # gives it back.
        self._release = None if steps is None else weakref.finalize(self, steps.release)
        self._releasing = False

    def update(self, items: object, *, step_id: str | int | None = None) -> Any:
        """Publish the next step, or a batch of steps.

        The answer is post-processing of noisy increments; the call is checked before anything happens. However a
        stream is cut into batches, the answers are the same.

        Args:
            items: With `dim=1` a number, or an array of m steps; else an array of shape (dim,), or (m, dim). Entries
                beyond the declared `max_value` are clamped, declared integers rounded.
            step_id: Name of the update: given again, it returns the stored answer and publishes nothing. Needs a store;
                in a `sordino.Store` it may be an integer that grows, such as the offset of a queue, and stays known.

        Returns:
            The answers: a float for a number, an array in the shape of `items` otherwise.

        Raises:
            DataTypeError: Not numbers.
            ShapeError: Another shape.
            InvalidParameterError: Entries that are not finite, a table of another step, or a `step_id` without a store.
            UnitError: A table of another schema, or of a larger unit than the plan's.
            HorizonError: More steps than are left.
            StreamClosedError: The stream was closed.
            ForkError: The stream belongs to another process.
            StepConflictError: This step was released before, with other items.
            StepStoreError: The store did not keep the step; call `resume`, or give it again under its `step_id`.
            StoreError: The same, of a `sordino.Store`.
            StreamTakenError: The stream was taken over by somebody else; it is closed.
            StepForgottenError: The step was published, and its answer was not kept.
            KeyboardInterrupt: Ctrl-C, or whatever a handler of a signal raises: a long batch then ends between two
                steps. `step` says how far it came; `pending` updates are finished by `resume`, the rest can be given
                again. An update with a `step_id` is taken as a whole.
        """
        one = self._one  # which a handler of a signal may take away
        if one is not None and step_id is None and type(items) in (int, float):
            # Nothing is caught here: a handler of a signal may raise whatever it likes after the step was published.
            return one(min(max(items, -LARGEST), LARGEST) if type(items) is int else items)
        request = self.fit.request
        key = self._key(step_id)
        if isinstance(items, TableLike):
            known = None if self._steps is None or key is None else self._steps.find(key)
            items = counts_of(items, request.unit, request.workload, self.step if known is None else known.first)
        rows, shape = read_items(items, self.fit.dim, request.integral)
        if self._steps is None:
            return shaped(self._core.update(rows, self._whole), shape)
        with self._guard():
            values = self._update_stored(self._steps, rows, key)
        return shaped(values, shape)

    def _key(self, step_id: object) -> str | None:
        if self._steps is not None:
            return self._steps.key(step_id)
        if step_id is not None:
            raise InvalidParameterError("a step_id needs a store: plan.open(..., store=...)")
        return None

    def _published_as(self, step_id: str | int | None) -> Known | None:
        """Return the steps that were published under a name, None if it is new; its own batch that waits ends first.

        Raises:
            InvalidParameterError: There is a name and no store.
            DataTypeError: It is none.
            StepPendingError: Another batch waits.
            StepStoreError, StoreError: The store failed again.
        """
        key = self._key(step_id)
        if key is None or self._steps is None:
            return None
        held = self._core.held()
        if held is not None:
            if held[1] != key:
                raise StepPendingError(PENDING)
            self.resume()
        return self._steps.find(key)

    def _update_stored(self, steps: Steps, rows: Any, key: str | None) -> Array:
        self._check_open()
        held = self._core.held()
        if held is not None:
            if key is None or held[1] != key:
                raise StepPendingError(PENDING)
            return self._keep(again=True)
        if isinstance(steps, ListedSteps):
            steps.catch_up(self._core.step)
        known = steps.find(key)
        if known is None:
            return self._publish(steps, rows, key)
        if known.steps * self.fit.dim != len(rows):
            raise DuplicateRequestError("this step_id was published before, with another number of steps")
        done = self._core.step - known.first
        # After a stale checkpoint the state must go through these steps again. In a store they are another owner's.
        if isinstance(steps, ListedSteps) and 0 <= done < known.steps:
            self._replay(steps, rows[done * self.fit.dim :], known.steps - done)
        return np.frombuffer(known.answers, _REALS).astype(np.float64)

    def _publish(self, store: Steps, rows: Any, key: str | None) -> Array:
        """Publish rows; those of steps that the store holds must give the same increments again."""
        dim, step = self.fit.dim, self._core.step
        steps, left = len(rows) // dim, self.fit.steps - step
        known = min(max(store.published - step, 0), steps)
        if known and key is not None:
            raise DuplicateRequestError(
                "these steps were released before, not under this step_id; nothing was released. Feed them again as "
                "they were"
            )
        if known:
            check_left(steps, left)
        head = self._replay(store, rows[: known * dim], known) if known else np.zeros(0)
        if known and known == steps:
            return head
        self._head = head
        self._core.prepare(rows[known * dim :], key, self._whole or key is not None)
        return self._keep()

    def _replay(self, store: Steps, rows: Any, steps: int) -> Array:
        values = self._core.replay(rows, store.units(self._core.step, steps))
        if values is None:
            raise StepConflictError(
                "these steps were released before, with other items; nothing was released. Feed the same items "
                "again, or open a new stream"
            )
        if isinstance(store, ListedSteps):
            store.forget(self._core.step)
        return values

    def _keep(self, again: bool = False) -> Array:
        """Store the update that the core holds; the second time it may be there, if the first was interrupted."""
        self._check_open()  # a handler of a signal may have closed it
        published = self._held_steps()
        if published is None or self._steps is None:
            raise InvalidParameterError("there is nothing to resume: every update was stored")
        self._steps.keep(published, again)
        self._core.commit()
        return np.concatenate([self._head, np.frombuffer(published.answers or b"", _REALS)])

    def _held_steps(self) -> Published | None:
        """Return the update that the core holds, None if it was stored."""
        held = self._core.held()
        if held is None:
            return None
        first, key, values, units = held
        steps, answers = len(values) // self.fit.dim, values.astype(_REALS).tobytes()
        return Published(first, steps, key, units.astype(_INTEGERS).tobytes(), answers)

    def resume(self) -> Array:
        """Store the last update after the store failed, and return its answers, row by row.

        Raises:
            StepStoreError: The store failed again.
            InvalidParameterError: Every update was stored.
            ForkError: The stream belongs to another process.
        """
        with self._guard():
            values = self._keep(again=True)
        return values

    @property
    def step(self) -> int:
        """Steps published so far."""
        return self._core.step

    @property
    def pending(self) -> bool:
        """Whether the store did not keep the last update, which waits for `resume`."""
        return self._steps is not None and self._core.held() is not None

    @property
    def closed(self) -> bool:
        """Whether the stream was closed."""
        return self._core.closed

    @property
    def value(self) -> Any:
        """The answer published last (array of shape (dim,) if `dim > 1`), None before the first step.

        Raises:
            StepStoreError: The store did not keep the last step; call `resume`.
            ForkError: The stream belongs to another process.
        """
        _, answers = self._last()
        return None if answers is None else float(answers[0]) if self.fit.dim == 1 else answers

    def _last(self) -> tuple[int, Array | None]:
        """Return the step and the answer published last.

        Raises:
            StepStoreError: The last answer is not stored yet: nobody may see it.
            ForkError: The stream belongs to another process.
        """
        with self._guard.reading():
            if self._core.held() is not None:
                raise StepPendingError(PENDING)
            step = self._core.step
            return step, self._core.answers() if step else None

    def top(self, count: int) -> tuple[NDArray[np.int64], Array]:
        """Return the coordinates with the largest answers, and these, the largest first: free, as often as wanted.

        An answer that is among the largest is there for its noise too: `interval(..., simultaneous=True)` holds for all
        coordinates together, so also for these.

        Args:
            count: How many, at most `dim`.

        Raises:
            DataTypeError: No integer.
            InvalidParameterError: Out of range, or nothing was published yet.
            StepStoreError: The store did not keep the last step; call `resume`.
            ForkError: The stream belongs to another process.
        """
        _, answers = self._last()
        if answers is None:
            raise InvalidParameterError("nothing was published yet")
        return largest_entries(answers, count)

    @property
    def stderr(self) -> float | None:
        """Standard deviation of each entry of `value`, None before the first step."""
        step = self.step
        return None if step == 0 else float(self.fit.std([step])[0])

    def interval(self, level: float, *, simultaneous: bool = False) -> Interval | None:
        """Return confidence intervals around `value`, None before the first step.

        Args:
            level: Strictly between 0 and 1.
            simultaneous: Whether the intervals of all coordinates shall hold together with this probability.

        Raises:
            InvalidParameterError: The level is out of range.
            StepStoreError: The store did not keep the last step; call `resume`.
            ForkError: The stream belongs to another process.
        """
        step, answers = self._last()
        if answers is None:
            return None
        width = self.fit.half_width([step], level, self.fit.dim if flag("simultaneous", simultaneous) else 1)[0]
        value = answers[0] if self.fit.dim == 1 else answers
        return interval_around(value, width, level, simultaneous, rounding=self.fit.rounding)

    def checkpoint(self, key: bytes) -> bytes:
        """Return the state, encrypted: to go on after a restart with `sordino.restore`.

        A checkpoint holds the stream's key and past noise; with them the items can be read from what was published.
        It needs a store, which refuses other items at released steps when an old checkpoint is restored.

        Args:
            key: 32 secret bytes.

        Raises:
            InvalidParameterError: The key does not have 32 bytes, there is no store, or noise is deterministic.
            StreamClosedError: The stream was closed.
            StepStoreError: The store did not keep the last step; call `resume`.
            ForkError: The stream belongs to another process.
            EntropyError: The operating system gives no randomness.
        """
        if not isinstance(self._steps, ListedSteps):
            raise InvalidParameterError(
                "a checkpoint needs a store, or an old one could put other items on the same noise: "
                "plan.open(..., store=sordino.streams.FileStepStore(path))"
            )
        if not self.private:
            raise InvalidParameterError("a stream under deterministic noise is not private: it has no checkpoints")
        header = {"stream": self._name, "accounted": self.accounted, "plan": self.fit.record()}
        with self._guard():
            if self._core.held() is not None:
                raise StepPendingError(PENDING)
            return self._core.checkpoint(
                sized_key(key), json.dumps(header, sort_keys=True, default=np.ndarray.tolist).encode()
            )

    def _stored(self) -> Kept | None:
        return self._steps.kept if isinstance(self._steps, KeptSteps) else None

    def close(self) -> None:
        """Wipe key and noise, and give the store back; the stream refuses everything from now on."""
        self._one = None
        # After a fork the lock may be held for ever, by a thread that is not there.
        with self._guard.again() if self._guard.owned else nullcontext():
            if not self._core.closed:
                if self._steps is not None and self._guard.owned:
                    self._steps.closing()
                self._core.close()
            # Also where an exception came before the end of it, the last time.
            if self._release is not None and self._steps is not None and (self._release.alive or self._releasing):
                self._releasing = True
                self._release.detach()
                self._steps.release()
                self._releasing = False


def largest_entries(answers: Array, count: object) -> tuple[NDArray[np.int64], Array]:
    """Return the places of the largest answers, and these, the largest first.

    Raises:
        DataTypeError: No integer.
        InvalidParameterError: Out of range.
    """
    number = integer("count", count, least=1)
    if number > len(answers):
        raise InvalidParameterError("count must be at most the number of coordinates")
    order = np.argsort(-answers, kind="stable")[:number]
    return order.astype(np.int64), answers[order]


def shaped(values: Array, shape: tuple[int, ...]) -> Any:
    """Return answers in the shape of the items: a float for a number."""
    return float(values[0]) if shape == () else values.reshape(shape)


def _require_store(store: object) -> None:
    if not isinstance(store, StepStore):
        raise DataTypeError("store must be a step store, such as sordino.streams.FileStepStore(path)")


def open_stream(fit: StreamFit, store: StepStore | None, key: bytes | None) -> Stream:
    """Take the store and open a stream under a fresh key, or a known one; nothing is charged here."""
    name = secrets.token_hex(16)
    if store is not None:
        _require_store(store)
        store.acquire(name, new=True)
    core: _core.Stream | None = None
    try:
        steps = None if store is None else ListedSteps(store)
        if steps is not None:
            steps.require_new()
        core = _core.Stream(fit.strategy, fit.door, fit.dim, key)
        return Stream(fit, core, name, steps, private=key is None, accounted=False)
    except BaseException:
        if core is not None:
            core.close()
        if store is not None:
            store.release()
        raise


def _stream_of(record: object) -> StreamFit:
    fit = fit_of(record)
    if not isinstance(fit, StreamFit) or fit.lazy:
        raise PlanFileError("this is no plan of counters")
    return fit


def restore(checkpoint: bytes, key: bytes, store: StepStore, *, replay: bool = False) -> Stream:
    """Go on with a stream from a checkpoint: nothing is charged again.

    The plan is in the checkpoint; its noise is fitted again, and one that stores less is refused.

    Args:
        checkpoint: What `Stream.checkpoint` returned.
        key: The key it was sealed under.
        store: The store that the stream was opened with, not in use elsewhere. A new one would not know which steps
            were released, and is refused.
        replay: Whether the checkpoint may be older than the store. Items of steps that the store holds must then come
            again as they were; they get the stored answers, and other items are refused.

    Raises:
        CheckpointError: The checkpoint is corrupt, of another stream, sealed under another key, or older than the
            store without `replay`.
        StepStoreError: The store is in use, or belongs to another stream.
        InvalidParameterError: The key does not have 32 bytes.
        DataTypeError: The checkpoint is no bytes, or the store no store.
    """
    if not isinstance(checkpoint, bytes | bytearray):
        raise DataTypeError("a checkpoint is bytes")
    _require_store(store)
    secret, checkpoint = sized_key(key), bytes(checkpoint)
    try:
        header = json.loads(_core.checkpoint_header(checkpoint))
        name, accounted, record = str(header["stream"]), bool(header["accounted"]), header["plan"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise CheckpointError(_NO_CHECKPOINT) from None
    try:
        fit = guarded(lambda: _stream_of(record))
    except PlanFileError as error:
        raise CheckpointError(f"the checkpoint's plan cannot be used; nothing was restored: {error}") from None
    core = _core.Stream.restore(fit.strategy, fit.door, fit.dim, secret, checkpoint)
    try:
        store.acquire(name, new=False)
    except BaseException:
        core.close()
        raise
    try:
        steps = ListedSteps(store)
        steps.require_current(core, fit.dim, replay)
        return Stream(fit, core, name, steps, private=True, accounted=accounted)
    except BaseException:
        core.close()
        store.release()
        raise
