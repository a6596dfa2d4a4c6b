"""Files: written whole or not at all, and read up to a limit."""

from __future__ import annotations

import csv
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from sordino._support.checks import path_of
from sordino.errors import InputFileError

__all__ = ["atomic_write", "csv_reader", "read_file", "reason_of", "sync_folder"]

# What is read of a pipe or a device, which may never end.
_MOST_UNSIZED = 2**26


def csv_reader(lines: Iterable[str]) -> Iterator[list[str]]:
    """Return the fields of lines of a CSV file, however long: a limit would leave some out, or refuse a file."""
    csv.field_size_limit(2**31 - 1)
    return csv.reader(lines)


def atomic_write(path: str | Path, content: bytes, what: str, *, private: bool = False, new: bool = False) -> Path:
    """Write a file whole, or leave the old one as it was: on a full disk, after a signal, after a crash.

    Args:
        path: The file. What is no regular file, such as a pipe, is written in place.
        content: All of it.
        what: What it holds, for messages.
        private: Whether its owner alone may read it, whatever was there; a link in its place is replaced, not followed,
            and what is no regular file, such as a pipe or a device, is refused.
        new: Whether a file that is there already is refused.

    Returns:
        The path.

    Raises:
        DataTypeError: The path is none.
        InputFileError: The file cannot be written.
    """
    path = path_of(path)
    try:
        _write(path, content, private, new)
    except (OSError, ValueError) as error:
        raise InputFileError(f"the {what} cannot be written: {reason_of(error)}") from None
    return path


def _write(path: Path, content: bytes, private: bool, new: bool) -> None:
    try:
        found: int | None = path.stat().st_mode
    except FileNotFoundError:
        found = None
    if found is None or stat.S_ISREG(found):
        mode = 0o600 if private else None if found is None else stat.S_IMODE(found)
        _replace(path if private else Path(os.path.realpath(path)), content, mode, new)
    elif private:
        raise OSError(0, "it is private, and there is no regular file")
    else:
        path.write_bytes(content)


def _replace(target: Path, content: bytes, mode: int | None, new: bool) -> None:
    """Write beside the target under a name that nobody can know, and put it in its place.

    Raises:
        OSError: It cannot be written, or is there and should be new; nothing is left behind.
    """
    beside = target.with_name(f".{secrets.token_hex(8)}.new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    for name in ("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY"):
        flags |= getattr(os, name, 0)
    descriptor = os.open(beside, flags, 0o666 if mode is None else 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if new and _linked(beside, target):
            beside.unlink()
        else:
            if new:
                os.close(os.open(target, flags, 0o600))  # fails where there is one
            beside.replace(target)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise
    sync_folder(target)


def _linked(beside: Path, target: Path) -> bool:
    """Give a file its second name, whole at once; return whether its file system can.

    Raises:
        FileExistsError: Something has that name.
    """
    try:
        os.link(beside, target, follow_symlinks=False)
    except FileExistsError:
        raise
    except (OSError, NotImplementedError, AttributeError):  # pragma: no cover - FAT, some network file systems
        return False
    return True


def sync_folder(path: Path) -> None:
    """Make the name of a new file as durable as its content, where folders can be synchronised."""
    with suppress(OSError):
        descriptor = os.open(path.parent, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def read_file(path: str | Path, what: str) -> bytes:
    """Read a file; of what has no size, such as a pipe, at most 2**26 bytes.

    Raises:
        DataTypeError: The path is none.
        InputFileError: The file cannot be read, or does not end.
    """
    path = path_of(path)
    try:
        with path.open("rb") as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return file.read()
            content = file.read(_MOST_UNSIZED + 1)
    except (OSError, ValueError) as error:
        raise InputFileError(f"the {what} cannot be read: {reason_of(error)}") from None
    if len(content) > _MOST_UNSIZED:
        raise InputFileError(f"the {what} cannot be read: more than 2**26 bytes from what is no regular file")
    return content


def reason_of(error: OSError | ValueError) -> str:
    """Return why the system refused a file, without its name."""
    return getattr(error, "strerror", None) or "its name is none"
