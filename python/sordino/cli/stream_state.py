"""A stream on the disk: encrypted state, published steps beside it, and the key in a file of its own."""

import os
import secrets
import time
from pathlib import Path
from typing import Any

import sordino as so
from sordino._support.files import atomic_write, read_file
from sordino.cli.accounts import NOBODY, Account
from sordino.cli.stream_options import StreamChoices
from sordino.errors import InputFileError, InvalidParameterError, StepStoreError

__all__ = ["StreamState", "open_stored"]

# The state is saved when the input has paused so long, and at least so often; never for more than a part of the time.
_PAUSE = 0.05
_EVERY = 1.0
_SHARE = 0.05


class StreamState:
    """Where the state of an open stream is saved.

    A saved state is never ahead of what was written to the output: after a crash an answer may come twice, always
    the same, and none is lost.

    Attributes:
        stream: The stream.
        released: Steps that were released before this run.
    """

    def __init__(
        self, stream: so.Stream, store: so.streams.FileStepStore, path: Path, key: bytes, saved: int | None
    ) -> None:
        self.stream = stream
        entries = store.entries()
        self.released = entries[-1].step + entries[-1].steps if entries else 0
        self._path = path
        self._key = key
        # Of what was read nothing is written again: it may be older than what another run is writing.
        self._saved = -1 if saved is None else saved
        self._time = time.monotonic()
        self._cost = 0.0

    def save(self) -> None:
        """Save the state if there is a new one: another file, on the disk, then renamed.

        Raises:
            InputFileError: It cannot be written; what was saved last stays.
        """
        if self._saved == self.stream.step:
            return
        started = time.monotonic()
        atomic_write(self._path, self.stream.checkpoint(self._key), "state", private=True)
        self._saved, self._time = self.stream.step, time.monotonic()
        self._cost = self._time - started

    def patience(self) -> float | None:
        """Return how many seconds without input to wait for before saving, None if there is nothing to save."""
        if self._saved == self.stream.step:
            return None
        return max(_PAUSE, self._time + self._cost / _SHARE - time.monotonic())

    @property
    def due(self) -> bool:
        """Whether saving cannot wait for a pause."""
        return time.monotonic() > self._time + max(_EVERY, self._cost / _SHARE)


def open_stored(choices: StreamChoices, path: Path, key_file: Path, account: Account = NOBODY) -> StreamState:
    """Open a stream whose state is kept, or go on with the one that is.

    Args:
        choices: The stream; may be left out when its state exists, and must not differ from it.
        path: The state; what was published is kept beside it, in a file with `.steps` at the end of the name.
        key_file: 32 bytes as hexadecimal digits; made for a new stream if it does not exist.
        account: Who pays for a new stream.

    Raises:
        InvalidParameterError: The choices describe another stream.
        InputFileError: A file cannot be read or written, or the key is missing.
        CheckpointError: The state is corrupt, or sealed under another key.
        StepStoreError: The stream is in use, or its steps are missing.
    """
    steps = path.with_name(f"{path.name}.steps")
    if len({place.resolve() for place in (path, key_file, steps)}) < 3:
        raise InvalidParameterError("--state and --key-file are two files, and neither is that of the steps")
    store = so.streams.FileStepStore(steps)
    asked = choices.build_plan() if choices.made() or not os.path.lexists(path) else None
    sealed = _read(path, "state")
    saved: int | None = None
    if sealed is None:
        plan, orphan = asked or choices.build_plan(), steps.exists()
        key = _read_key(key_file) or _make_key(key_file)
        try:
            stream = plan.open(account.ledger, request_id=account.request_id, store=store)
        except StepStoreError as error:
            if not orphan:
                raise
            raise StepStoreError(f"{error}. There are published steps, {steps.name!r}, but no state") from None
    else:
        known = _read_key(key_file)
        if known is None:
            raise InputFileError("the key file of this state is missing: without it the stream cannot go on")
        key = known
        if not steps.exists():
            raise StepStoreError(f"the published steps of this state, {steps.name!r}, are missing")
        stream = so.restore(sealed, key, store, replay=True)
        while (newer := _read(path, "state")) != sealed and newer is not None:
            # Another run ended between the reading and the lock, which is ours now: nobody else writes.
            stream.close()
            sealed = newer
            stream = so.restore(sealed, key, store, replay=True)
        saved = stream.step
        if asked and not _same(asked.fit, stream.fit, choices):
            stream.close()
            raise InvalidParameterError("the state is of a stream with other options; leave them out to go on with it")
    state = StreamState(stream, store, path, key, saved)
    try:
        state.save()
    except BaseException:
        stream.close()
        raise
    return state


def _same(asked: Any, kept: so.streams.StreamFit, choices: StreamChoices) -> bool:
    """Return whether the choices describe the stream that is kept; what they leave open stays as it was."""
    bound = choices.max_value in (None, kept.domain.max_value)
    one: dict[str, Any] = asked.request.record()
    return bound and one == kept.request.record()


def _read(path: Path, what: str) -> bytes | None:
    """Return what is in a file, None if there is none."""
    return read_file(path, f"{what} file") if os.path.lexists(path) else None


def _read_key(path: Path) -> bytes | None:
    text = _read(path, "key")
    if text is None:
        return None
    if os.name == "posix" and path.stat().st_mode & 0o077:
        raise InputFileError("the key file can be read by others: chmod 600 it")
    try:
        key = bytes.fromhex(text.decode("ascii").strip())
    except ValueError:
        key = b""
    if len(key) != 32:
        raise InputFileError("the key file must hold 64 hexadecimal digits")
    return key


def _make_key(path: Path) -> bytes:
    """Make a key, or take the one of somebody who was faster."""
    key = secrets.token_bytes(32)
    try:
        atomic_write(path, f"{key.hex()}\n".encode(), "key", private=True, new=True)
    except InputFileError:
        made = _read_key(path)
        if made is None:
            raise
        return made
    return key
