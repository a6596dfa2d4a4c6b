"""Files that only their owner may read: states and keys of streams, sketches, sums of points."""

import os
from pathlib import Path

from sordino.errors import InputFileError

__all__ = ["read_private", "write_private"]


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read: whole, or not at all.

    Raises:
        InputFileError: It cannot be written.
    """
    beside = path.with_name(f"{path.name}.new")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        if os.name == "posix":
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except OSError as error:
        raise InputFileError(f"a private file cannot be written: {error.strerror}") from None


def read_private(path: Path) -> bytes:
    """Read a file.

    Raises:
        InputFileError: It cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputFileError(f"a private file cannot be read: {error.strerror}") from None
