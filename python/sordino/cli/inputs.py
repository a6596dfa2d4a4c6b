"""From a file to cells: a column of counts, of event times or of values."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sordino as so
from sordino.cli.tables import Column, read_columns
from sordino.errors import InputFileError, InvalidParameterError
from sordino.workloads.base import MAX_LENGTH

__all__ = ["Source", "TimeGrid", "count_events", "count_values", "read_counts"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)
_UNITS = {
    "s": timedelta(seconds=1),
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}


@dataclass(frozen=True)
class Source:
    """Private cells and their public names.

    Attributes:
        cells: What is private.
        labels: Names of the cells: numbers, ISO times or text.
        max_records: Records of one user that were let through, None if nothing was bounded.
    """

    cells: NDArray[Any]
    labels: NDArray[Any]
    max_records: int | None = None

    def __repr__(self) -> str:
        return f"Source(<{len(self.labels)} private cells>)"


def read_counts(path: Path, column: str, label_column: str | None) -> Source:
    """Read one cell from each row: rows are public, what is in the column is not.

    Raises:
        InputFileError: The file cannot be read, or an entry is no finite number.
    """
    names = [column] if label_column is None else [column, label_column]
    entries, *labels = read_columns(path, names)
    cells = np.array([_real(entry) for entry in entries], dtype=np.float64)
    if not np.isfinite(cells).all():
        raise InputFileError(f"the column {column!r} must hold a finite number in every row")
    if not len(cells):
        raise InputFileError("the input file has no rows below the names of its columns")
    named = np.array([str(label) for label in labels[0]]) if labels else np.arange(len(cells))
    return Source(cells, named)


@dataclass(frozen=True)
class TimeGrid:
    """Equal bins of time, all public.

    Attributes:
        start: Beginning of the first bin.
        width: Length of a bin.
        bins: Number of bins.
    """

    start: datetime
    width: timedelta
    bins: int

    @classmethod
    def parse(cls, start: str, end: str, every: str) -> "TimeGrid":
        """Read the texts of the options.

        Raises:
            InvalidParameterError: A text is no time, or the bins do not fill the range.
        """
        first, last = _option_time("--start", start), _option_time("--end", end)
        found = re.fullmatch(r"([1-9]\d{0,8})(s|min|h|d|w)", every)
        if found is None:
            raise InvalidParameterError("--every must be a number with s, min, h, d or w, such as 15min")
        width = int(found[1]) * _UNITS[found[2]]
        bins, rest = divmod(last - first, width)
        if bins < 1 or rest or bins > MAX_LENGTH:
            raise InvalidParameterError(
                f"from --start to --end there must be a whole number of bins, 1 to {MAX_LENGTH}, as long as --every"
            )
        return cls(first, width, bins)

    def codes(self, entries: Column) -> NDArray[np.int64]:
        """Return the bin of each entry, -1 for what is no time or outside."""
        start, width = (self.start - _EPOCH) // _TICK, self.width // _TICK
        ticks = (_ticks(entry) for entry in entries)
        bins = (-1 if tick is None else (tick - start) // width for tick in ticks)
        return np.array([place if 0 <= place < self.bins else -1 for place in bins], dtype=np.int64)

    def labels(self) -> NDArray[Any]:
        """Return the beginning of every bin, ISO times in UTC without an offset."""
        seconds = self.width // timedelta(seconds=1)
        first = np.datetime64(self.start.replace(tzinfo=None), "us")
        times = first + np.arange(self.bins) * np.timedelta64(seconds, "s")
        return np.datetime_as_string(times, unit="auto" if self.start.microsecond else "s")


def count_events(
    path: Path, column: str, grid: TimeGrid, user_column: str | None, max_records: int | None
) -> Source:
    """Count the events in each bin of time; what is no time or outside is a null record.

    Raises:
        InputFileError: The file cannot be read.
        InvalidParameterError: A user column comes without a bound on records, or the reverse.
    """
    return _tabulate(path, column, grid.codes, grid.bins, grid.labels(), user_column, max_records)


def count_values(
    path: Path,
    column: str,
    bins: int | tuple[float, ...],
    user_column: str | None,
    max_records: int | None,
) -> Source:
    """Count values in bins: codes 0, 1, ... or half-open intervals between edges.

    Raises:
        InputFileError: The file cannot be read.
        InvalidParameterError: Bins are out of range, or a user column comes without a bound on records.
    """

    def reals(entries: Column) -> NDArray[np.float64]:
        return np.array([_real(entry) for entry in entries], dtype=np.float64)

    labels = np.arange(bins) if isinstance(bins, int) else np.array([f"{edge:g}" for edge in bins[:-1]])
    return _tabulate(path, column, reals, bins, labels, user_column, max_records)


def _tabulate(
    path: Path,
    column: str,
    records_of: Callable[[Column], NDArray[Any]],
    bins: int | tuple[float, ...],
    labels: NDArray[Any],
    user_column: str | None,
    max_records: int | None,
) -> Source:
    if (user_column is None) != (max_records is None):
        raise InvalidParameterError("--user-column and --max-records go together")
    so.tabulate([], bins)  # a mistake in public bins is found before the file is read
    entries, *users = read_columns(path, [column] if user_column is None else [column, user_column])
    numbers: dict[str, int] = {}
    user = [numbers.setdefault(str(name), len(numbers)) for name in users[0]] if users else None
    counted = so.tabulate(records_of(entries), bins, user=user, max_records=max_records)
    return Source(counted.counts, labels, max_records)


def _real(entry: Any) -> float:
    """Return the number, NaN for what is none."""
    try:
        return float(entry)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _ticks(entry: Any) -> int | None:
    """Return microseconds since 1970 in UTC, None for what is no time."""
    match entry:
        case str():
            try:
                return (_in_utc(datetime.fromisoformat(entry.strip())) - _EPOCH) // _TICK
            except (ValueError, OverflowError):
                return None
        case np.datetime64():
            return None if np.isnat(entry) else int(entry.astype(np.int64))
        case _:
            return None


def _in_utc(moment: datetime) -> datetime:
    """A time without an offset is taken as UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _option_time(option: str, text: str) -> datetime:
    try:
        return _in_utc(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        raise InvalidParameterError(f"{option} must be an ISO time, such as 2026-01-01T00:00") from None
