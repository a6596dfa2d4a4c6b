"""What a stream has published, kept apart from its state: no step is ever released twice with different items."""

import base64
import binascii
import json
import os
import threading
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, NoReturn, Protocol, runtime_checkable

from sordino.errors import ForkError, StepStoreError

__all__ = ["FileStepStore", "InMemoryStepStore", "StepEntry", "StepStore"]


class StepEntry(NamedTuple):
    """One update that was published.

    Attributes:
        step: Steps published before it.
        steps: Steps that it published.
        step_id: Name of the update, or None.
        units: Published increments on the lattice, little-endian 64-bit integers, row by row.
        values: Published answers, little-endian doubles, row by row.
    """

    step: int
    steps: int
    step_id: str | None
    units: bytes
    values: bytes


_IN_USE = "this step store is in use: one state must not be opened twice"
_FOREIGN = "this step store belongs to another stream: restore that one from its checkpoint, or take a new store"
_UNKNOWN = "this step store knows no stream: it is not the one that the checkpoint's stream was opened with"
_ALTERED = "the file is no step store, or was altered"


@runtime_checkable
class StepStore(Protocol):
    """Where a stream writes what it publishes, before it returns it.

    Everything in a store has been published: it is no secret, but it must not be lost. A store belongs to one open
    stream at a time.
    """

    def acquire(self, stream: str, *, new: bool) -> None:
        """Take the store for this stream.

        Args:
            stream: Name of the stream.
            new: Whether the stream is being opened: then a store without entries becomes its own. A stream that is
                restored must find the store that it was opened with: a store that does not know the stream would let
                other items onto the noise of released steps.

        Raises:
            StepStoreError: It is in use, belongs to another stream, or does not know a stream that is not new.
        """

    def release(self) -> None:
        """Give the store back."""

    def append(self, entry: StepEntry) -> None:
        """Keep an entry durably; after an error nothing is kept.

        Raises:
            StepStoreError: It cannot be kept.
        """

    def entries(self) -> Sequence[StepEntry]:
        """Return all entries, in order."""


class InMemoryStepStore:
    """Entries in memory: for one process, and tests."""

    def __init__(self) -> None:
        self._entries: list[StepEntry] = []
        self._stream: str | None = None
        self._taken = False
        self._lock = threading.Lock()
        self._process = os.getpid()

    def acquire(self, stream: str, *, new: bool) -> None:
        """Take the store for this stream."""
        if os.getpid() != self._process:
            raise ForkError(
                "a step store in memory belongs to the process that made it: a fork would not see its steps"
            )
        with self._lock:
            if self._taken:
                raise StepStoreError(_IN_USE)
            if self._stream != stream and (self._entries or not new):
                raise StepStoreError(_UNKNOWN if self._stream is None else _FOREIGN)
            self._stream, self._taken = stream, True

    def release(self) -> None:
        """Give the store back."""
        with self._lock:
            self._taken = False

    def append(self, entry: StepEntry) -> None:
        """Keep an entry."""
        with self._lock:
            self._entries.append(entry)

    def entries(self) -> Sequence[StepEntry]:
        """Return all entries, in order."""
        with self._lock:
            return tuple(self._entries)

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        raise ForkError("a step store cannot be copied or pickled: two copies would not see each other's steps")


class FileStepStore:
    """Entries in a file: one JSON line each with a checksum, on the disk (fsync) before an answer is returned.

    The file is locked while a stream uses it. A last line that was cut off by a crash was never returned to anybody
    and is dropped.

    Args:
        path: The file, made if it does not exist.

    Raises:
        StepStoreError: The file is no step store or cannot be used.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._file: int | None = None
        self._stream: str | None = None
        self._entries: list[StepEntry] = []
        self._end = 0
        self._lock = threading.Lock()
        self._process = os.getpid()

    def acquire(self, stream: str, *, new: bool) -> None:
        """Take the file for this stream."""
        with self._lock:
            if self._file is not None:
                raise StepStoreError(_IN_USE)
            flags = os.O_RDWR | getattr(os, "O_BINARY", 0) | (os.O_CREAT if new else 0)
            try:
                descriptor = os.open(self._path, flags, 0o600)
            except OSError as error:
                raise StepStoreError(f"the step store cannot be opened: {error.strerror}") from None
            try:
                _lock_file(descriptor)
                self._load(descriptor)
                self._claim(descriptor, stream, new)
            except BaseException as error:
                os.close(descriptor)
                if isinstance(error, OSError) and not isinstance(error, StepStoreError):
                    raise StepStoreError(f"the step store cannot be used: {error.strerror}") from None
                raise
            self._file, self._process = descriptor, os.getpid()

    def _claim(self, descriptor: int, stream: str, new: bool) -> None:
        if self._stream == stream:
            return
        if self._entries or not new:
            raise StepStoreError(_UNKNOWN if self._stream is None else _FOREIGN)
        header = _line({"sordino_steps": 1, "stream": stream})
        os.ftruncate(descriptor, 0)
        _write(descriptor, header, 0)
        _sync_directory(self._path)
        self._stream, self._end = stream, len(header)

    def release(self) -> None:
        """Unlock the file."""
        with self._lock:
            if self._file is not None:
                if os.getpid() == self._process:
                    _unlock_file(self._file)  # closing is not enough while a fork holds the file
                os.close(self._file)
                self._file = None

    def append(self, entry: StepEntry) -> None:
        """Write an entry and wait for the disk."""
        with self._lock:
            if self._file is None:
                raise StepStoreError("the step store is not open")
            line = _line(
                {
                    "step": entry.step,
                    "steps": entry.steps,
                    "id": entry.step_id,
                    "units": base64.b64encode(entry.units).decode(),
                    "values": base64.b64encode(entry.values).decode(),
                }
            )
            try:
                _write(self._file, line, self._end)
            except OSError as error:
                with suppress(OSError):
                    os.ftruncate(self._file, self._end)
                raise StepStoreError(f"the step could not be stored: {error.strerror}") from None
            self._end += len(line)
            self._entries.append(entry)

    def entries(self) -> Sequence[StepEntry]:
        """Return all entries, in order."""
        with self._lock:
            return tuple(self._entries)

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        raise ForkError("a step store cannot be copied or pickled: open the same path again instead")

    def _load(self, descriptor: int) -> None:
        content = b""
        os.lseek(descriptor, 0, os.SEEK_SET)
        while block := os.read(descriptor, 1 << 20):
            content += block
        self._entries, self._stream, self._end = [], None, 0
        *lines, rest = content.split(b"\n")
        if rest and not lines:
            raise StepStoreError(_ALTERED)
        for number, line in enumerate(lines):
            record = _record(line)
            if record is None:
                if number == len(lines) - 1 and not rest and number > 0 and b"\0" in line:
                    break  # pages of it never reached the disk in a crash: never returned
                raise StepStoreError(_ALTERED)
            self._end += len(line) + 1
            try:
                if number == 0:
                    self._stream = str(record["stream"])
                    continue
                units = base64.b64decode(record["units"], validate=True)
                values = base64.b64decode(record["values"], validate=True)
                entry = StepEntry(int(record["step"]), int(record["steps"]), record["id"], units, values)
            except (KeyError, TypeError, ValueError, binascii.Error):
                raise StepStoreError(_ALTERED) from None
            if entry.step != (self._entries[-1].step + self._entries[-1].steps if self._entries else 0):
                raise StepStoreError(_ALTERED)
            self._entries.append(entry)
        os.ftruncate(descriptor, self._end)


def _write(descriptor: int, line: bytes, place: int) -> None:
    """Write a whole line to the disk.

    Raises:
        OSError: It was not written whole.
    """
    os.lseek(descriptor, place, os.SEEK_SET)
    if os.write(descriptor, line) != len(line):
        raise OSError(0, "the disk is full")
    os.fsync(descriptor)


def _line(record: dict[str, object]) -> bytes:
    text = json.dumps(record, sort_keys=True, separators=(",", ":")).encode()
    return b"%08x " % zlib.crc32(text) + text + b"\n"


def _record(line: bytes) -> dict[str, str] | None:
    """Return the record of a line, None if it is not whole."""
    try:
        checksum, text = line[:8], line[9:]
        if int(checksum, 16) != zlib.crc32(text):
            return None
        record = json.loads(text)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def _sync_directory(path: Path) -> None:
    """Make the name of a new file as durable as its content, where directories can be synchronised."""
    with suppress(OSError):
        descriptor = os.open(path.parent, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _unlock_file(descriptor: int) -> None:
    with suppress(ImportError, OSError):
        import fcntl  # noqa: PLC0415 - not on every platform

        fcntl.flock(descriptor, fcntl.LOCK_UN)


def _lock_file(descriptor: int) -> None:
    """Lock the file for this process, without waiting."""
    try:
        import fcntl  # noqa: PLC0415 - not on every platform
    except ImportError:  # pragma: no cover - Windows
        import msvcrt  # noqa: PLC0415

        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            raise StepStoreError(_IN_USE) from None
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise StepStoreError(_IN_USE) from None
