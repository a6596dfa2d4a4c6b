"""Step stores: what a stream has published, so that no step is ever released twice with different items."""

import base64
import binascii
import json
import os
import stat
import threading
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from sordino._support.checks import path_of
from sordino._support.files import reason_of, sync_folder
from sordino._support.processes import this_process
from sordino._support.uncopied import Uncopied
from sordino.errors import ForkError, StepStoreError

__all__ = ["FileStepStore", "InMemoryStepStore", "StepEntry", "StepStore", "well_formed"]


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


_FORKED = "this step store belongs to another process: neither would see the steps of the other"
_IN_USE = "this step store is in use: one state must not be opened twice"
_FOREIGN = "this step store belongs to another stream: restore that one from its checkpoint, or take a new store"
_UNKNOWN = "this step store knows no stream: it is not the one that the checkpoint's stream was opened with"
_ALTERED = "the file is no step store, or was altered"
# What a disk writes whole.
_SECTOR = 512
_DECODER = json.JSONDecoder()


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


class InMemoryStepStore(Uncopied):
    """Entries in memory: for one process, and tests."""

    _no_copy = "a step store cannot be copied or pickled: two copies would not see each other's steps"

    def __init__(self) -> None:
        self._entries: list[StepEntry] = []
        self._stream: str | None = None
        self._taken = False
        self._lock = threading.RLock()
        self._process = this_process()

    def acquire(self, stream: str, *, new: bool) -> None:
        """Take the store for this stream."""
        if this_process() != self._process:
            raise ForkError(_FORKED)
        with self._lock:
            if self._taken:
                raise StepStoreError(_IN_USE)
            if self._stream != stream and (self._entries or not new):
                raise StepStoreError(_UNKNOWN if self._stream is None else _FOREIGN)
            self._stream, self._taken = stream, True

    def release(self) -> None:
        """Give the store back."""
        if this_process() == self._process:  # else the lock may be held for ever
            with self._lock:
                self._taken = False

    def append(self, entry: StepEntry) -> None:
        """Keep an entry."""
        if this_process() != self._process:
            raise ForkError(_FORKED)
        with self._lock:
            if _appended(self._entries[-1] if self._entries else None, entry):
                self._entries.append(entry)

    def entries(self) -> Sequence[StepEntry]:
        """Return all entries, in order."""
        return tuple(self._entries)


class FileStepStore(Uncopied):
    """Entries in a file: one JSON line each with a checksum, on the disk (fsync) before an answer is returned.

    The file is locked while a stream uses it. A last line that was cut off by a crash was never returned to anybody
    and is dropped. That an end was lost in another way, lines and all, cannot be seen.

    Args:
        path: The file, made if it does not exist.

    Raises:
        DataTypeError: The path is none.
        StepStoreError: The file is no step store or cannot be used.
    """

    _no_copy = "a step store cannot be copied or pickled: open the same path again instead"

    def __init__(self, path: str | Path) -> None:
        self._path = path_of(path)
        self._file: int | None = None
        self._stream: str | None = None
        # Entries with the place where the next line begins: one assignment keeps both.
        self._kept: list[tuple[StepEntry, int]] = []
        self._first = 0
        self._lock = threading.RLock()
        self._writing = self._leaving = False
        self._process = this_process()

    def acquire(self, stream: str, *, new: bool) -> None:
        """Take the file for this stream."""
        if this_process() != self._process:
            if self._file is not None:
                raise ForkError(_FORKED)
            # A store that nobody used before the fork; its lock may be held by a thread that is not there.
            self._lock, self._process = threading.RLock(), this_process()
        with self._lock:
            if self._file is not None:
                raise StepStoreError(_IN_USE)
            flags = os.O_RDWR | (os.O_CREAT if new else 0)
            for name in ("O_BINARY", "O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC"):
                flags |= getattr(os, name, 0)
            try:
                descriptor = os.open(self._path, flags, 0o600)
            except (OSError, ValueError) as error:
                raise StepStoreError(f"the step store cannot be opened: {reason_of(error)}") from None
            try:
                _lock_file(descriptor)
                self._load(descriptor)
                self._claim(descriptor, stream, new)
            except BaseException as error:
                os.close(descriptor)
                if isinstance(error, OSError) and not isinstance(error, StepStoreError):
                    raise StepStoreError(f"the step store cannot be used: {error.strerror}") from None
                raise
            self._file, self._process = descriptor, this_process()

    def _claim(self, descriptor: int, stream: str, new: bool) -> None:
        if self._stream == stream:
            # Without what a crash left, and with the last newline again.
            end = self._end()
            os.ftruncate(descriptor, end)
            _write(descriptor, b"\n", end - 1)
            return
        if self._kept or not new:
            raise StepStoreError(_UNKNOWN if self._stream is None else _FOREIGN)
        header = _line({"sordino_steps": 1, "stream": stream})
        os.ftruncate(descriptor, 0)
        try:
            _write(descriptor, header, 0)
        except BaseException:
            with suppress(OSError):
                os.ftruncate(descriptor, 0)
            raise
        sync_folder(self._path)
        self._stream, self._first = stream, len(header)

    def _end(self) -> int:
        return self._kept[-1][1] if self._kept else self._first

    def release(self) -> None:
        """Unlock the file."""
        if this_process() != self._process:  # the lock may be held for ever, and the file is the parent's
            file, self._file = self._file, None
            if file is not None:
                os.close(file)
            return
        with self._lock:
            # A handler of a signal may come here while its own thread writes: that ends first.
            self._leaving = self._writing
            if self._file is not None and not self._writing:
                file, self._file = self._file, None  # an exception below must not close another file of this number
                _unlock_file(file)  # closing is not enough while a fork holds the file
                os.close(file)

    def append(self, entry: StepEntry) -> None:
        """Write an entry and wait for the disk."""
        if this_process() != self._process:
            raise ForkError(_FORKED)
        with self._lock:
            if self._file is None:
                raise StepStoreError("the step store is not open")
            if not _appended(self._kept[-1][0] if self._kept else None, entry):
                return
            end = self._end()
            line = _line(
                {
                    "step": entry.step,
                    "steps": entry.steps,
                    "id": entry.step_id,
                    "units": base64.b64encode(entry.units).decode(),
                    "values": base64.b64encode(entry.values).decode(),
                }
            )
            self._writing = True
            try:
                _write(self._file, line, end)
            except BaseException as error:
                with suppress(OSError):
                    os.ftruncate(self._file, end)
                if isinstance(error, OSError):
                    raise StepStoreError(f"the step could not be stored: {error.strerror}") from None
                raise
            else:
                self._kept.append((entry, end + len(line)))
            finally:
                self._writing = False
                if self._leaving:
                    self.release()

    def entries(self) -> Sequence[StepEntry]:
        """Return all entries, in order."""
        return tuple(entry for entry, _ in tuple(self._kept))

    def _load(self, descriptor: int) -> None:
        self._stream, self._kept, self._first = None, [], 0
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise StepStoreError("a step store must be a regular file")
        parts = []
        os.lseek(descriptor, 0, os.SEEK_SET)
        while block := os.read(descriptor, 1 << 20):
            parts.append(block)
        for number, (record, end) in enumerate(_records(b"".join(parts))):
            try:
                if number == 0:
                    self._stream, self._first = str(record["stream"]), end
                    continue
                units = base64.b64decode(record["units"], validate=True)
                values = base64.b64decode(record["values"], validate=True)
                entry = StepEntry(record["step"], record["steps"], record["id"], units, values)
            except (KeyError, TypeError, ValueError, binascii.Error):
                raise StepStoreError(_ALTERED) from None
            if not well_formed(entry) or entry.step != _steps(self._kept[-1][0] if self._kept else None):
                raise StepStoreError(_ALTERED)
            self._kept.append((entry, end))


def well_formed(entry: StepEntry, width: int | None = None) -> bool:
    """Return whether an entry's parts go together: as many increments as answers, `width` for each step if given."""
    if type(entry.step) is not int or type(entry.steps) is not int or entry.steps < 1:
        return False
    row, rest = divmod(len(entry.units), 8 * entry.steps)
    named = entry.step_id is None or isinstance(entry.step_id, str)
    return named and rest == 0 and row > 0 and len(entry.units) == len(entry.values) and width in (None, row)


def _steps(last: StepEntry | None) -> int:
    """Return the number of steps that are stored."""
    return 0 if last is None else last.step + last.steps


def _appended(last: StepEntry | None, entry: StepEntry) -> bool:
    """Return whether an entry is to be added; the last one again is there already, after an interruption.

    Raises:
        StepStoreError: It would leave a gap, or overwrite.
    """
    if last == entry:
        return False
    if entry.step != _steps(last):
        raise StepStoreError("this step does not follow the last one that is stored; nothing was stored")
    return True


def _write(descriptor: int, line: bytes, place: int) -> None:
    """Write a whole line to the disk, in as many pieces as the system takes.

    Raises:
        OSError: It was not written whole.
    """
    os.lseek(descriptor, place, os.SEEK_SET)
    rest = memoryview(line)
    while rest:
        written = os.write(descriptor, rest)
        if written == 0:
            raise OSError(0, "the disk is full")
        rest = rest[written:]
    os.fsync(descriptor)


def _records(content: bytes) -> list[tuple[dict[str, Any], int]]:
    """Return the records of a file, each with the place where the next line begins.

    A line whose checksum holds was published, whatever became of the byte behind it. What follows the last one is
    dropped only if it is what a crash leaves: the beginning of a line, or whole sectors of zeros. So a file that holds
    nothing else is a new one.

    Raises:
        StepStoreError: Anything else.
    """
    records: list[tuple[dict[str, Any], int]] = []
    place = 0
    while place < len(content) and (found := _record(content, place)) is not None:
        record, end = found
        if end + 1 < len(content) and content[end : end + 1] != b"\n":
            raise StepStoreError(_ALTERED)
        place = end + 1
        records.append((record, place))
    if place < len(content) and not _torn(content, place):
        raise StepStoreError(_ALTERED)
    return records


def _torn(content: bytes, place: int) -> bool:
    """Return whether what a file ends with is a line that a crash cut off, or whose pages never reached the disk."""
    rest = content[place:]
    first = rest.find(b"\0")
    if first < 0:
        digits = all(digit in b"0123456789abcdef" for digit in rest[:8])
        return b"\n" not in rest and digits and (len(rest) < 9 or rest[8:10] in {b" ", b" {"})
    if set(rest) == {0}:
        return True
    sectors = range(place - place % _SECTOR, len(content), _SECTOR)
    parts = [content[max(start, place) : start + _SECTOR] for start in sectors]
    return (place + first) % _SECTOR == 0 and all(b"\0" not in part or set(part) == {0} for part in parts)


def _line(record: dict[str, object]) -> bytes:
    text = json.dumps(record, sort_keys=True, separators=(",", ":")).encode()
    return b"%08x " % zlib.crc32(text) + text + b"\n"


def _record(content: bytes, place: int) -> tuple[dict[str, Any], int] | None:
    """Return the record of the line that begins here and where it ends, None if it is not whole."""
    stop = content.find(b"\n", place)
    text = content[place + 9 : len(content) if stop < 0 else stop]
    try:
        record, end = _DECODER.raw_decode(text.decode("ascii", "replace"))  # a letter for every byte
        whole = content[place + 8 : place + 9] == b" " and int(content[place : place + 8], 16) == zlib.crc32(text[:end])
    except (ValueError, RecursionError, IndexError):
        return None
    return (record, place + 9 + end) if whole and isinstance(record, dict) else None


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
