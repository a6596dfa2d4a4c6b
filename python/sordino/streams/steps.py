"""What a stream's counters keep of their steps, and where: a step store, or a row in a store of services."""

from __future__ import annotations

import base64
import bisect
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sordino.errors import (
    CheckpointError,
    DataTypeError,
    InvalidParameterError,
    SordinoError,
    StepConflictError,
    StepStoreError,
    StoreCorruptError,
    StreamTakenError,
    WrongKeyError,
)
from sordino.storage.steps import StepEntry, StepStore, well_formed
from sordino.storage.streams import StepRow
from sordino.streams.kept import Kept, Published, step_key

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sordino import _core

__all__ = ["KeptSteps", "Known", "ListedSteps", "Steps"]

_INTEGERS = np.dtype("<i8")
_REALS = np.dtype("<f8")


class Known(NamedTuple):
    """Steps that were published under a name.

    Attributes:
        first: Steps before them.
        steps: How many.
        answers: Their answers, little-endian doubles.
    """

    first: int
    steps: int
    answers: bytes


class Steps(ABC):
    """Where a stream keeps what it publishes, before it returns it."""

    @property
    @abstractmethod
    def published(self) -> int:
        """Steps that are kept."""

    @abstractmethod
    def key(self, step_id: object) -> str | None:
        """Return the name of steps as it is kept.

        Raises:
            DataTypeError: It is none.
            InvalidParameterError: It is none that can be kept.
        """

    @abstractmethod
    def find(self, key: str | None) -> Known | None:
        """Return the steps of a name, or None."""

    @abstractmethod
    def units(self, first: int, steps: int) -> NDArray[np.int64]:
        """Return the published increments of steps."""

    @abstractmethod
    def keep(self, published: Published, again: bool) -> None:
        """Keep steps; after an error nothing is kept, or it is not known."""

    @abstractmethod
    def closing(self) -> None:
        """Keep what the next owner shall find, before the state is wiped."""

    @abstractmethod
    def release(self) -> None:
        """Give back what is held."""


class ListedSteps(Steps):
    """Steps in a step store: a file, or memory."""

    def __init__(self, store: StepStore) -> None:
        self.store = store
        # What the store holds, as far as it was read: the store alone says what was published.
        self._ids: dict[str, StepEntry] = {}
        self._published = 0
        # What a stale checkpoint must publish again.
        self._released: Sequence[StepEntry] = store.entries()
        for entry in self._released:
            self._remember(entry)

    @property
    def published(self) -> int:
        """Steps that are kept."""
        return self._published

    def key(self, step_id: object) -> str | None:
        """Return the name."""
        if step_id is not None and not isinstance(step_id, str):
            raise DataTypeError("step_id must be a string")
        if step_id is not None and any("\ud800" <= letter <= "\udfff" for letter in step_id):
            raise InvalidParameterError("step_id must be text: it has a surrogate that stands alone")
        return step_id

    def find(self, key: str | None) -> Known | None:
        """Return the steps of a name, or None."""
        entry = None if key is None else self._ids.get(key)
        return None if entry is None else Known(entry.step, entry.steps, entry.values)

    def catch_up(self, step: int) -> None:
        """Read what the store holds beyond what was read: after an exception between the two."""
        if self._published < step:
            self._remember(self.store.entries()[-1])  # one at most was not read

    def units(self, first: int, steps: int) -> NDArray[np.int64]:
        """Return the published increments of steps."""
        last, parts = first + steps, []
        start = bisect.bisect_right(self._released, first, key=_first) - 1
        for entry in self._released[max(start, 0) :]:
            begin, end = max(first - entry.step, 0), min(last - entry.step, entry.steps)
            if entry.step >= last:
                break
            if begin < end:
                width = len(entry.units) // entry.steps
                parts.append(np.frombuffer(entry.units[begin * width : end * width], _INTEGERS))
        return np.concatenate(parts).astype(np.int64)

    def forget(self, step: int) -> None:
        """Forget what no checkpoint of this stream will publish again."""
        if step >= self._published:
            self._released = ()

    def keep(self, published: Published, again: bool) -> None:
        """Keep steps; the second time they may be there, if the first was interrupted."""
        assert published.units is not None and published.answers is not None
        entry = StepEntry(published.first, published.steps, published.step_id, published.units, published.answers)
        if not (again and tuple(self.store.entries()[-1:]) == (entry,)):
            self.store.append(entry)
        self._remember(entry)

    def _remember(self, entry: StepEntry) -> None:
        self._published = entry.step + entry.steps
        if entry.step_id is not None:
            self._ids[entry.step_id] = entry

    def require_new(self) -> None:
        """Refuse a store that holds steps.

        Raises:
            StepStoreError: It does.
        """
        if self._published:
            raise StepStoreError("this store holds the steps of a stream: use sordino.restore, or a new store")

    def require_current(self, core: _core.Stream, dim: int, replay: bool) -> None:
        """Refuse a store that does not go with a checkpoint.

        Raises:
            StepStoreError: It holds steps of another form.
            CheckpointError: It lacks steps, or has others; or it has more, and `replay` is not allowed.
        """
        entries, step, released = self._released, core.step, self._published
        if not all(well_formed(entry, dim) for entry in entries):
            raise StepStoreError("the store holds steps of another form than this stream's")
        if released < step:
            raise CheckpointError("the store lacks steps that the checkpoint has published: it is not this stream's")
        if released > step and not replay:
            raise CheckpointError(
                f"the checkpoint is stale: {released - step} more steps were released since. Restore a newer one, or "
                "pass replay=True and feed the same items again"
            )
        if step:
            entry = entries[bisect.bisect_left(entries, step, key=_first) - 1]
            answers = core.answers()
            end = (step - entry.step) * len(answers)
            stored = np.frombuffer(entry.values, _REALS)[end - len(answers) : end]
            if stored.tobytes() != answers.astype(_REALS).tobytes():
                raise CheckpointError("the store holds other answers than the checkpoint has published")

    def closing(self) -> None:
        """Keep nothing: checkpoints are the caller's."""

    def release(self) -> None:
        """Give the store back."""
        self.store.release()


def _first(entry: StepEntry) -> int:
    return entry.step


class KeptSteps(Steps):
    """Steps of a stream's row, with the state of the counters.

    Args:
        kept: The row.
        core: The counters.
        seconds: What going through a step takes, about.
        also: Returns what is kept of the stream beside its counters, as JSON.
    """

    def __init__(self, kept: Kept, core: _core.Stream, seconds: float, also: Callable[[], Any]) -> None:
        self.kept = kept
        self._core = core
        self._seconds = seconds
        self.also = also
        self.changes: bytes | None = None

    @property
    def published(self) -> int:
        """Steps that are kept."""
        return self.kept.row.step

    def key(self, step_id: object) -> str | None:
        """Return the name."""
        return step_key(step_id)

    def find(self, key: str | None) -> Known | None:
        """Return the steps of a name, or None."""
        row = self.kept.find(key)
        return None if row is None else Known(row.first, row.steps, row.answers or b"")

    def units(self, first: int, steps: int) -> NDArray[np.int64]:
        """Refuse: nothing is published again here."""
        raise StepConflictError("steps of a stream in a store are not published again")

    def sealed(self, step: int, head: bytes, *, held: bool = True) -> bytes:
        """Return the state of the counters, sealed for its row."""
        key = self.kept.store.keys.sealing(self.kept.row.key_id)
        return self._core.checkpoint(key, header_for(self.kept.place("state", step), head, self.also()), held)

    def keep(self, published: Published, again: bool) -> None:
        """Keep steps, in one transaction with the state if that is due."""
        if again and published.first < self.kept.row.step:
            return  # the store had kept them before the interruption
        if not again:
            self.worked(published.steps)
        try:
            self.kept.append(published._replace(changes=self.changes), self.sealed)
        except StreamTakenError:
            self._core.close()
            raise

    def worked(self, steps: int) -> None:
        """Count what going through these steps again would take: a fifth of a second is worth a state."""
        self.kept.behind += steps * self._seconds / 0.2

    def leave_state(self) -> None:
        """Keep the state after the last step."""
        row = self.kept.row
        self.kept.keep_state(self.sealed(row.step, row.head_hash, held=False))

    def go_through(self, behind: list[StepRow], generation: int) -> None:
        """Go through the steps behind the state.

        Args:
            behind: The steps.
            generation: Who kept the state.

        Raises:
            StoreCorruptError: The key of a step is missing.
            WrongKeyError: It was sealed under another key, or altered.
        """
        kept, keys = self.kept, self.kept.keys() if behind else {}
        for row in behind:
            if row.generation != generation:
                generation = row.generation
                sealed = keys.get(row.first)
                if sealed is None or sealed.generation != generation:
                    raise StoreCorruptError("a key of the stream is missing")
                try:
                    key = kept.store.keys.sealing(sealed.key_id)
                    self._core.take_key(key, self._key_place(row.first, generation), sealed.sealed)
                except CheckpointError:
                    raise WrongKeyError("a key of the stream was sealed under another key, or altered") from None
            self._core.skip(np.frombuffer(row.units or b"", _INTEGERS).astype(np.int64))
            self.worked(row.steps)
        kept.passed(behind)

    def _key_place(self, step: int, generation: int) -> bytes:
        """Return what a key is bound to: under another plan it would give the same draws in another size."""
        return (self.kept.place("key", step, generation) + self.kept.plan_digest).encode()

    def take_fresh_key(self) -> None:
        """Take a key for the noise to come, and keep it, before anything is published with it.

        Raises:
            StreamTakenError: Somebody else holds the stream now.
            StoreError: It was not kept.
        """
        kept = self.kept
        self._core.rekey()
        if kept.is_due_again():
            self.leave_state()
        else:
            place = self._key_place(kept.row.step, kept.row.generation)
            kept.keep_key(self._core.sealed_key(kept.store.keys.sealing(kept.row.key_id), place))

    def closing(self) -> None:
        """Keep the state, if it can be: else whoever goes on takes the noise to where it was."""
        with suppress(SordinoError):
            if not self.kept.left and self._core.held() is None and self.kept.row.checkpoint_step < self.kept.row.step:
                self.leave_state()

    def release(self) -> None:
        """Give the row back."""
        self.kept.release()


def header_for(place: str, head: bytes, also: Any = None) -> bytes:
    """Return what a state is bound to: its row, the hash of all steps before it, and what is kept beside it."""
    return json.dumps({"place": place, "head": head.hex(), "also": also}, sort_keys=True).encode()


def header_of(header: bytes, place: str) -> tuple[bytes, Any]:
    """Return the hash of all steps before a state, and what was kept beside it.

    Raises:
        StoreCorruptError: It is the state of another row.
    """
    try:
        record = json.loads(header)
        if record["place"] != place:
            raise StoreCorruptError("the state of the stream is that of another row")
        return bytes.fromhex(record["head"]), record["also"]
    except (LookupError, TypeError, ValueError):
        raise StoreCorruptError("the state of the stream is damaged") from None


def encoded(values: Sequence[float]) -> str:
    """Return published numbers as text."""
    return base64.b64encode(np.asarray(values, dtype=_REALS).tobytes()).decode()


def decoded(text: object) -> list[float]:
    """Return published numbers from text."""
    found: list[float] = np.frombuffer(base64.b64decode(str(text)), _REALS).astype(np.float64).tolist()
    return found
