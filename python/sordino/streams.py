"""Open streams: items in, private answers out, one budget for all of them."""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from sordino import _core
from sordino.data import read_items
from sordino.errors import (
    CheckpointError,
    DataTypeError,
    DuplicateRequestError,
    ForkError,
    InvalidParameterError,
    StepConflictError,
    StepStoreError,
)
from sordino.release import Interval
from sordino.step_store import StepEntry, StepStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from sordino.stream_plans import StreamPlan
    from sordino.workloads.base import Array

__all__ = ["Stream", "restore"]

_INTEGERS = np.dtype("<i8")
_REALS = np.dtype("<f8")


class Stream:
    """An open stream; `StreamPlan.open` makes it.

    What is promised: everything that it publishes satisfies the plan's guarantee together, also when items are chosen
    after seeing earlier answers. It belongs to one process and to its object: key and past noise are as secret as
    the items, so it refuses to be copied, pickled, or used after a fork.

    Attributes:
        plan: How it was planned.
        private: False only under `sordino.testing.deterministic_noise`.
        accounted: Whether a ledger was charged.
    """

    def __init__(  # noqa: PLR0917 - the parts of a stream, put together by `open_stream` and `restore`
        self, plan: StreamPlan, core: _core.Stream, name: str, store: StepStore | None, private: bool, accounted: bool
    ) -> None:
        self.plan = plan
        self.private = private
        self.accounted = accounted
        self._core = core
        self._name = name
        self._store = store
        self._pending: StepEntry | None = None
        self._ids: dict[str, StepEntry] = {}
        self._published = 0
        self._one: Callable[[Any], float] | None = core.update_one if store is None and plan.dim == 1 else None
        for entry in store.entries() if store is not None else ():
            self._remember(entry)

    def update(self, items: object, *, step_id: str | None = None) -> Any:
        """Publish the next step, or a batch of steps.

        The answer is post-processing of noisy increments; the call is checked before anything happens. However a
        stream is cut into batches, the answers are the same.

        Args:
            items: With `dim=1` a number, or an array of m steps; else an array of shape (dim,), or (m, dim). Entries
                beyond the declared `max_value` are clamped, declared integers rounded.
            step_id: Name of the update: given again, it returns the stored answer and publishes nothing. Needs a store.

        Returns:
            The answers: a float for a number, an array in the shape of `items` otherwise.

        Raises:
            DataTypeError: Not numbers.
            ShapeError: Another shape.
            InvalidParameterError: Entries that are not finite, or a `step_id` without a store.
            HorizonError: More steps than are left.
            StreamClosedError: The stream was closed.
            ForkError: The stream belongs to another process.
            StepConflictError: This step was released before, with other items.
            StepStoreError: The store did not keep the step; call `resume`.
        """
        if self._one is not None and step_id is None and type(items) in (int, float):
            try:
                return self._one(items)
            except (TypeError, OverflowError):
                pass  # an integer beyond all floats: clamped below
        rows, shape = read_items(items, self.plan.dim, self.plan.integral)
        if self._store is None:
            if step_id is not None:
                raise InvalidParameterError("a step_id needs a store: plan.open(..., store=...)")
            return _shaped(self._core.update(rows), shape)
        if step_id is not None and not isinstance(step_id, str):
            raise DataTypeError("step_id must be a string")
        if self._pending is not None:
            raise StepStoreError("the last update is not stored yet: call resume() for its answer")
        if step_id is not None and (known := self._ids.get(step_id)) is not None:
            if known.steps * self.plan.dim != len(rows):
                raise DuplicateRequestError("this step_id was published before, with another number of steps")
            return _shaped(np.frombuffer(known.values, _REALS).astype(np.float64), shape)
        return _shaped(self._publish(rows, step_id), shape)

    def _publish(self, rows: Any, step_id: str | None) -> Array:
        """Publish rows; those of steps that the store holds must give the same increments again."""
        dim, step = self.plan.dim, self._core.step
        known = min(max(self._published - step, 0), len(rows) // dim)
        parts = []
        if known:
            values = self._core.replay(rows[: known * dim], self._stored(step, known))
            if values is None:
                raise StepConflictError(
                    "these steps were released before, with other items; nothing was released. Feed the same items "
                    "again, or open a new stream"
                )
            parts.append(values)
            rows = rows[known * dim :]
        if len(rows) or not known:
            values, units = self._core.update_stored(rows)
            entry = StepEntry(
                step + known,
                len(rows) // dim,
                step_id,
                units.astype(_INTEGERS).tobytes(),
                values.astype(_REALS).tobytes(),
            )
            self._pending = entry
            parts.append(self._keep())
        return np.concatenate(parts)

    def _keep(self) -> Array:
        entry = self._pending
        if entry is None or self._store is None:
            raise InvalidParameterError("there is nothing to resume: every update was stored")
        self._store.append(entry)
        self._pending = None
        self._remember(entry)
        return np.frombuffer(entry.values, _REALS).astype(np.float64)

    def resume(self) -> Array:
        """Store the last update after the store failed, and return its answers, row by row.

        Raises:
            StepStoreError: The store failed again.
            InvalidParameterError: Every update was stored.
        """
        return self._keep()

    def _remember(self, entry: StepEntry) -> None:
        self._published = entry.step + entry.steps
        if entry.step_id is not None:
            self._ids[entry.step_id] = entry

    def _stored(self, step: int, count: int) -> Any:
        """Return the published increments of `count` steps from `step`."""
        dim, parts = self.plan.dim, []
        for entry in self._store.entries() if self._store is not None else ():
            first, last = max(step, entry.step), min(step + count, entry.step + entry.steps)
            if first < last:
                units = np.frombuffer(entry.units, _INTEGERS)
                parts.append(units[(first - entry.step) * dim : (last - entry.step) * dim])
        return np.ascontiguousarray(np.concatenate(parts), dtype=np.int64)

    @property
    def step(self) -> int:
        """Steps published so far."""
        return self._core.step

    @property
    def closed(self) -> bool:
        """Whether the stream was closed."""
        return self._core.closed

    @property
    def value(self) -> Any:
        """The answer published last (array of shape (dim,) if `dim > 1`), None before the first step."""
        if self.step == 0:
            return None
        answers = self._core.answers()
        return float(answers[0]) if self.plan.dim == 1 else answers

    @property
    def stderr(self) -> float | None:
        """Standard deviation of each entry of `value`, None before the first step."""
        return None if self.step == 0 else float(self.plan.std([self.step])[0])

    def interval(self, level: float, *, simultaneous: bool = False) -> Interval | None:
        """Return confidence intervals around `value`, None before the first step.

        Args:
            level: Strictly between 0 and 1.
            simultaneous: Whether the intervals of all coordinates shall hold together with this probability.

        Raises:
            InvalidParameterError: The level is out of range.
        """
        if self.step == 0:
            return None
        width = self.plan.half_width([self.step], level, self.plan.dim if simultaneous else 1)[0]
        value = self._core.answers()
        if self.plan.dim == 1:
            value = value[0]
        return Interval(value - width, value + width, level, simultaneous)

    def checkpoint(self, key: bytes) -> bytes:
        """Return the state, encrypted: to go on after a restart with `sordino.restore`.

        A checkpoint holds the stream's key and past noise; with them the items can be read from what was published.
        It needs a store, which refuses other items at released steps when an old checkpoint is restored.

        Args:
            key: 32 secret bytes.

        Raises:
            InvalidParameterError: The key does not have 32 bytes, there is no store, or noise is deterministic.
            StreamClosedError: The stream was closed.
            ForkError: The stream belongs to another process.
            EntropyError: The operating system gives no randomness.
        """
        if self._store is None:
            raise InvalidParameterError(
                "a checkpoint needs a store, or an old one could put other items on the same noise: "
                "plan.open(..., store=sordino.FileStepStore(path))"
            )
        if not self.private:
            raise InvalidParameterError("a stream under deterministic noise is not private: it has no checkpoints")
        header = {"stream": self._name, "accounted": self.accounted, "plan": self.plan.record()}
        return self._core.checkpoint(_secret(key), json.dumps(header, sort_keys=True).encode())

    def close(self) -> None:
        """Wipe key and noise, and give the store back; the stream refuses everything from now on."""
        self._one = None
        if not self._core.closed:
            self._core.close()
            if self._store is not None:
                self._store.release()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"step {self.step}"
        return f"<Stream {self.plan.mechanism}: {state}>"

    def __copy__(self) -> NoReturn:
        raise ForkError("a stream cannot be copied: two copies would put different items on the same noise")

    def __deepcopy__(self, _memo: object) -> NoReturn:
        self.__copy__()

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        raise ForkError("a stream cannot be pickled: use checkpoint(key), which is encrypted")


def _shaped(values: Array, shape: tuple[int, ...]) -> Any:
    return float(values[0]) if shape == () else values.reshape(shape)


def _secret(key: object) -> bytes:
    if not isinstance(key, bytes) or len(key) != 32:
        raise InvalidParameterError("a key must have 32 bytes, such as secrets.token_bytes(32)")
    return key


def _require_new(store: StepStore | None) -> None:
    if store is not None and store.entries():
        raise InvalidParameterError("this store holds the steps of a stream: use sordino.restore, or a new store")


def _require_current(store: StepStore, step: int, replay: bool) -> None:
    """Refuse a store that does not go with a checkpoint at this step."""
    entries = store.entries()
    released = entries[-1].step + entries[-1].steps if entries else 0
    if released < step:
        raise CheckpointError("the store lacks steps that the checkpoint has published: it is not this stream's")
    if released > step and not replay:
        raise CheckpointError(
            f"the checkpoint is stale: {released - step} more steps were released since. Restore a newer one, or "
            "pass replay=True and feed the same items again"
        )


def open_stream(
    plan: StreamPlan, store: StepStore | None, key: bytes | None, accounted: bool, charge: Callable[[], None]
) -> Stream:
    """Take the store, charge, and open a stream under a fresh key, or a known one."""
    name = secrets.token_hex(16)
    if store is not None:
        store.acquire(name)
    try:
        _require_new(store)
        charge()
        core = _core.Stream(plan.fitted.plan, plan.fitted.door, plan.dim, key)
        return Stream(plan, core, name, store, private=key is None, accounted=accounted)
    except BaseException:
        if store is not None:
            store.release()
        raise


def restore(checkpoint: bytes, key: bytes, store: StepStore, *, replay: bool = False) -> Stream:
    """Go on with a stream from a checkpoint: nothing is charged again.

    The plan is in the checkpoint; its noise is fitted again, and one that stores less is refused.

    Args:
        checkpoint: What `Stream.checkpoint` returned.
        key: The key it was sealed under.
        store: The stream's store, not in use elsewhere.
        replay: Whether the checkpoint may be older than the store. Items of steps that the store holds must then come
            again as they were; they get the stored answers, and other items are refused.

    Raises:
        CheckpointError: The checkpoint is corrupt, of another stream, sealed under another key, or older than the
            store without `replay`.
        StepStoreError: The store is in use, or belongs to another stream.
        InvalidParameterError: The key does not have 32 bytes.
        DataTypeError: The checkpoint is no bytes.
    """
    from sordino.stream_plans import StreamPlan  # noqa: PLC0415 - plans open streams

    if not isinstance(checkpoint, bytes | bytearray):
        raise DataTypeError("a checkpoint is bytes")
    secret, checkpoint = _secret(key), bytes(checkpoint)
    try:
        header = json.loads(_core.checkpoint_header(checkpoint))
        name, accounted, record = str(header["stream"]), bool(header["accounted"]), header["plan"]
    except (ValueError, KeyError, TypeError):
        raise CheckpointError("these bytes are no checkpoint of a stream; nothing was restored") from None
    plan = StreamPlan.from_record(record)
    core = _core.Stream.restore(plan.fitted.plan, plan.fitted.door, plan.dim, secret, checkpoint)
    store.acquire(name)
    try:
        _require_current(store, core.step, replay)
        return Stream(plan, core, name, store, private=True, accounted=accounted)
    except BaseException:
        core.close()
        store.release()
        raise
