"""Columns of CSV and Parquet files. No message says how many rows there are or what is in them."""

import csv
import io
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from sordino._support.columns import listed_column
from sordino._support.extras import arrow_of
from sordino._support.files import atomic_write, csv_reader
from sordino._support.private_numbers import LARGEST, LIMIT, half_up
from sordino.errors import InputFileError

__all__ = ["Column", "place_of", "read_chunks", "read_columns", "real", "require_arrow", "write_parquet"]

Column = list[Any]
"""Entries as read: strings, numbers, numpy dates, None."""

_PARQUET = (".parquet", ".pq")
_CHUNK = 2**16


def read_columns(path: Path, names: list[str]) -> list[Column]:
    """Read the named columns of a file; its suffix says whether it is Parquet, anything else is CSV.

    Raises:
        InputFileError: The file cannot be read, or lacks a column.
        MissingDependencyError: A Parquet file needs pyarrow.
    """
    return _parquet(path, names) if path.suffix.lower() in _PARQUET else _csv(path, names)


def read_chunks(path: Path, names: list[str]) -> Iterator[list[Column]]:
    """Read the named columns piece by piece, so that a long file needs little memory; `-` is the standard input, CSV.

    Raises:
        InputFileError: The file cannot be read, or lacks a column.
        MissingDependencyError: A Parquet file needs pyarrow.
    """
    return _parquet_chunks(path, names) if path.suffix.lower() in _PARQUET else _csv_chunks(path, names)


def require_arrow() -> tuple[Any, Any]:
    """Return pyarrow and its Parquet module.

    Raises:
        MissingDependencyError: It is not installed.
    """
    return arrow_of("a Parquet file"), arrow_of("a Parquet file", "parquet")


def write_parquet(path: Path, columns: dict[str, Column]) -> None:
    """Write columns to a Parquet file.

    Raises:
        InputFileError: The file cannot be written.
        MissingDependencyError: pyarrow is not installed.
    """
    pa, pq = require_arrow()
    buffer = io.BytesIO()
    try:
        pq.write_table(pa.table(columns), buffer)
    except pa.ArrowException:
        raise InputFileError("the output cannot be written as Parquet") from None
    atomic_write(path, buffer.getvalue(), "output")


def place_of(name: str, header: list[str]) -> int:
    """Return where a column is.

    Raises:
        InputFileError: There is no such column, or more than one.
    """
    if header.count(name) != 1:
        raise InputFileError(f"the input file must have one column {name!r}")
    return header.index(name)


def _places(header: list[str], names: list[str]) -> list[int]:
    if not header:
        raise InputFileError("the input file is empty: it must begin with a line of column names")
    return [place_of(name, header) for name in names]


def _csv(path: Path, names: list[str]) -> list[Column]:
    try:
        with path.open(newline="\n", encoding="utf-8-sig", errors="surrogateescape") as file:
            header, *rows = _rows(file)
    except OSError as error:
        raise InputFileError(f"the input file cannot be read: {error.strerror}") from None
    except csv.Error:
        raise InputFileError("the input file is not a CSV file") from None
    places = _places(header, names)
    return [[row[place] if place < len(row) else None for row in rows] for place in places]


def _rows(file: TextIO) -> Iterator[list[str]]:
    """Yield the names of the columns, none if there is nothing, and the rows.

    Nothing but its end ends a line: a field that holds a carriage return is one field. In a file of one column a blank
    line is a row whose field is empty; of several no row looks so.
    """
    met = False

    def lines() -> Iterator[str]:
        nonlocal met
        for line in file:
            end = 2 if line.endswith("\r\n") else 1 if line.endswith("\n") else 0
            body = line[: len(line) - end]
            if "\r" in body:
                met = True
                yield body.replace("\r", _RETURN) + line[len(body) :]
            else:
                yield line

    found = csv_reader(lines())
    header = next(found, [])
    yield header
    alone = len(header) == 1
    for row in found:
        if row or alone:
            yield [field.replace(_RETURN, "\r") for field in row] if met else row


# What stands for a carriage return within a line: no byte is decoded to it.
_RETURN = "\udc0d"


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    if str(path) != "-":
        with path.open(newline="\n", encoding="utf-8-sig", errors="surrogateescape") as file:
            yield file
        return
    wrapped = io.TextIOWrapper(sys.stdin.buffer, newline="\n", encoding="utf-8-sig", errors="surrogateescape")
    try:
        yield wrapped
    finally:
        wrapped.detach()


def _csv_chunks(path: Path, names: list[str]) -> Iterator[list[Column]]:
    try:
        with _opened(path) as file:
            rows = _rows(file)
            places = _places(next(rows), names)
            while chunk := list(islice(rows, _CHUNK)):
                yield [[row[place] if place < len(row) else None for row in chunk] for place in places]
    except InputFileError:
        raise
    except OSError as error:
        raise InputFileError(f"the input file cannot be read: {error.strerror}") from None
    except csv.Error:
        raise InputFileError("the input file is not a CSV file") from None


def _parquet_chunks(path: Path, names: list[str]) -> Iterator[list[Column]]:
    pa, pq = require_arrow()
    try:
        with pq.ParquetFile(path) as file:
            for name in names:
                place_of(name, list(file.schema_arrow.names))
            for batch in file.iter_batches(batch_size=_CHUNK, columns=sorted(set(names))):
                yield [_entries(pa, batch.column(name)) for name in names]
    except InputFileError:
        raise
    except (OSError, pa.ArrowException):
        raise InputFileError("the input file cannot be read as Parquet") from None


def _parquet(path: Path, names: list[str]) -> list[Column]:
    pa, pq = require_arrow()
    try:
        with pq.ParquetFile(path) as file:
            for name in names:
                place_of(name, list(file.schema_arrow.names))
            table = file.read(columns=sorted(set(names)))
        return [_entries(pa, table.column(name)) for name in names]
    except InputFileError:
        raise
    except (OSError, pa.ArrowException):
        raise InputFileError("the input file cannot be read as Parquet") from None


def _entries(pa: Any, column: Any) -> Column:
    """Return a column's entries; times as numpy dates in UTC, since a Python date may not hold them."""
    if not pa.types.is_temporal(column.type):
        # Text that was not marked as such is text, byte for byte as that of a CSV file.
        return [
            entry.decode("utf-8", "surrogateescape") if isinstance(entry, bytes) else entry
            for entry in listed_column(column)
        ]
    zone = getattr(column.type, "tz", None)
    # Units of timestamps stay: users that differ by less than a microsecond are two, and no tick is out of range.
    unit = getattr(column.type, "unit", "us")
    unit = unit if pa.types.is_timestamp(column.type) or unit == "ns" else "us"
    ticks = column.cast(pa.timestamp(unit, tz=zone), safe=False).cast(pa.int64())
    null = np.datetime64("NaT").astype(np.int64)
    return list(ticks.fill_null(int(null)).to_numpy().view(f"datetime64[{unit}]"))


# Floats beyond have at most one bit of a fraction: a half is not told from what is near it.
_COARSE = 2.0**51


def real(entry: Any) -> float:
    """Return the number that an entry is, NaN for what is none; magnitudes beyond all floats are clamped.

    What is rounded to an integer later is rounded from what was written: a number just below a half stays below it.
    """
    if isinstance(entry, np.datetime64):
        return math.nan
    try:
        entry = entry.strip() if isinstance(entry, str) else entry
        number = float(entry)
        large = _COARSE <= abs(number) < math.inf
        if math.isnan(number) or not (large or math.isinf(number) or number % 1.0 == 0.5):
            return number
        if math.isinf(number):
            finite = any(map(str.isdigit, entry)) if isinstance(entry, str) else entry not in (math.inf, -math.inf)
            return math.copysign(LIMIT, number) if finite else number
        exact = Decimal(entry) if isinstance(entry, str) else entry
        if large:
            return number if abs(number) > LARGEST else float(half_up(exact))
        # Decimals are compared exactly, and in no more time than the text is long.
        below = exact < Decimal(number) if isinstance(exact, Decimal) else Fraction(exact) < Fraction(number)
        return math.nextafter(number, -math.inf) if below else number
    except OverflowError:
        return math.copysign(LIMIT, 1 if entry > 0 else -1)
    except (TypeError, ValueError, ArithmeticError):
        return math.nan
