"""Columns of CSV and Parquet files. No message says how many rows there are or what is in them."""

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np

from sordino.errors import InputFileError, MissingDependencyError

__all__ = ["Column", "place_of", "read_columns", "real"]

Column = list[Any]
"""Entries as read: strings, numbers, numpy dates, None."""

_PARQUET = (".parquet", ".pq")


def read_columns(path: Path, names: list[str]) -> list[Column]:
    """Read the named columns of a file; its suffix says whether it is Parquet, anything else is CSV.

    Raises:
        InputFileError: The file cannot be read, or lacks a column.
        MissingDependencyError: A Parquet file needs pyarrow.
    """
    return _parquet(path, names) if path.suffix.lower() in _PARQUET else _csv(path, names)


def place_of(name: str, header: list[str]) -> int:
    """Return where a column is.

    Raises:
        InputFileError: There is no such column, or more than one.
    """
    if header.count(name) != 1:
        raise InputFileError(f"the input file must have one column {name!r}")
    return header.index(name)


def _csv(path: Path, names: list[str]) -> list[Column]:
    try:
        with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
            rows = list(csv.reader(file))
    except OSError as error:
        raise InputFileError(f"the input file cannot be read: {error.strerror}") from None
    except csv.Error:
        raise InputFileError("the input file is not a CSV file") from None
    while rows and not rows[-1]:
        rows.pop()
    if not rows:
        raise InputFileError("the input file is empty: it must begin with a line of column names")
    places = [place_of(name, rows[0]) for name in names]
    return [[row[place] if place < len(row) else None for row in rows[1:]] for place in places]


def _parquet(path: Path, names: list[str]) -> list[Column]:
    try:
        import pyarrow as pa  # noqa: PLC0415 - optional extra
        import pyarrow.parquet as pq  # noqa: PLC0415 - optional extra
    except ImportError:
        raise MissingDependencyError("Parquet files need pyarrow: pip install 'sordino[arrow]'") from None
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
        return list(column.to_pylist())
    zone = getattr(column.type, "tz", None)
    ticks = column.cast(pa.timestamp("us", tz=zone), safe=False).cast(pa.int64())
    null = np.datetime64("NaT").astype(np.int64)
    return list(ticks.fill_null(int(null)).to_numpy().view("datetime64[us]"))


def real(entry: Any) -> float:
    """Return the number that an entry is, NaN for what is none."""
    try:
        return float(entry)
    except (TypeError, ValueError, OverflowError):
        return math.nan
