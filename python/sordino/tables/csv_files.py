"""Records of CSV files: a line is a record, and each is read by itself, whatever stands in the others."""

from __future__ import annotations

import glob
import gzip
import io
import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, islice
from pathlib import Path
from typing import BinaryIO, TextIO

from sordino._support.columns import objects_of
from sordino._support.files import csv_reader
from sordino.errors import InputFileError
from sordino.tables.columns import Column

__all__ = ["csv_frames"]

# What stands for a carriage return within a line, where the reader sees an end: no byte is decoded to it.
_RETURN = "\udc0d"
# Bytes from one report of progress to the next.
_MARK = 2**22
# Lines that are read at once.
_LINES = 2**18


def csv_frames(
    paths: Sequence[str], names: list[str], progress: Callable[[int, int], object] | None = None
) -> Iterator[dict[str, Column]]:
    """Return the named columns as text, piece by piece.

    Fields are separated by commas and may be quoted by `"`; no field goes over a line's end, so that an open quote is
    the fault of its own line alone. Empty fields and those that a short line has not are missing. Files ending in
    `.gz` are unpacked.

    Args:
        paths: Files, or patterns of them, in UTF-8; each begins with a line of column names.
        names: Columns.
        progress: Called with the bytes that were read, and those of all files.

    Raises:
        InputFileError: A file cannot be read, or has not one column of each name.
    """
    unreadable = InputFileError("the input file cannot be read")
    files: list[str] = []
    for path in paths:
        found = [path] if Path(path).exists() else sorted(glob.glob(path))  # noqa: PTH207 - patterns begin anywhere
        if not found:
            raise InputFileError("the input file cannot be read: there is no such file")
        files += found
    try:
        sizes = [Path(each).stat().st_size for each in files]
    except OSError:
        raise unreadable from None
    marks = _Marks(progress, sum(sizes))
    for each, before in zip(files, accumulate(sizes, initial=0), strict=False):
        frames = _frames_of(each, names)
        while True:
            try:
                found_next = next(frames, None)
            except (OSError, EOFError, zlib.error):
                raise unreadable from None
            if found_next is None:
                break
            frame, read = found_next
            yield frame
            marks.told(before + read)
    marks.told(sum(sizes), end=True)


class _Marks:
    """Tells progress at fixed numbers of bytes, and at the end: how often says how large the files are, and no more."""

    def __init__(self, progress: Callable[[int, int], object] | None, size: int) -> None:
        self._progress, self._size, self._next = progress, size, _MARK

    def told(self, read: int, end: bool = False) -> None:
        while self._progress is not None and self._next <= min(read, self._size - 1):
            self._progress(self._next, self._size)
            self._next += _MARK
        if end and self._progress is not None:
            self._progress(self._size, self._size)


def _frames_of(path: str, names: list[str]) -> Iterator[tuple[dict[str, Column], int]]:
    """Yield frames, and how many bytes of the file were read; none of what is no file of the disk."""
    with Path(path).open("rb") as stored, _text(stored, path) as file:
        for frame in _frames(file, names):
            yield frame, stored.tell() if stored.seekable() else 0


def _text(stored: BinaryIO, path: str) -> TextIO:
    # Bytes that are no UTF-8 stay what they are; nothing but its end ends a line.
    unpacked = gzip.GzipFile(fileobj=stored) if path.lower().endswith(".gz") else stored
    return io.TextIOWrapper(unpacked, encoding="utf-8-sig", errors="surrogateescape", newline="\n")


def _frames(file: TextIO, names: list[str]) -> Iterator[dict[str, Column]]:
    header = _fields(next(file, ""))
    if any(header.count(name) != 1 for name in names):
        raise InputFileError(f"an input file must have one column {next(n for n in names if header.count(n) != 1)!r}")
    places = [header.index(name) for name in names]
    while lines := list(islice(file, _LINES)):
        rows = [_fields(line) for line in lines]
        yield {
            name: Column("parsed", objects_of([_field(row, place) for row in rows]), None, "text of a file")
            for name, place in zip(names, places, strict=True)
        }


def _fields(line: str) -> list[str]:
    body = line.removesuffix("\n").removesuffix("\r")
    if '"' not in body:
        return body.split(",")
    fields = next(csv_reader([body.replace("\r", _RETURN)]), [])
    return [field.replace(_RETURN, "\r") for field in fields]


def _field(row: list[str], place: int) -> str | None:
    return (row[place] or None) if place < len(row) else None
