"""From a file to cells: a column of counts, of event times or of values, or columns of categorical records."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sordino as so
from sordino.cli.attributes import Attribute, cells_of, parse_attributes
from sordino.cli.tables import Column, read_columns, real
from sordino.errors import InputFileError, InvalidParameterError
from sordino.workloads.base import MAX_LENGTH

__all__ = ["SOURCE_OPTIONS", "Source", "read_source"]

_BELONGS = {
    "counts_column": {"label_column", "per_cell"},
    "events_column": {"start", "end", "every", "user_column", "max_records", "per_cell"},
    "values_column": {"bins", "edges", "user_column", "max_records", "per_cell"},
    "column": {"user_column", "max_records"},
}
SOURCE_OPTIONS = tuple(sorted(_BELONGS.keys() | set().union(*_BELONGS.values())))
"""Options that say what a row of the input is."""

# Units of numpy's dates in ticks: so many for so many.
_TICKS = {"s": (10**6, 1), "ms": (1000, 1), "us": (1, 1), "ns": (1, 1000)}
# Records of a user in one cell, times cells of a user.
_MOST = 2**31 - 1
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
        cells: What is private: counts, or with attributes the codes of every record.
        labels: Names of the cells: numbers, ISO times or text; not known with several attributes.
        axis: What the labels are, for a picture.
        unit: What was let through of one user, None if nothing was bounded.
        attributes: The columns of categorical records.
    """

    cells: NDArray[Any]
    labels: NDArray[Any] | None
    axis: str
    unit: so.AddRemove | None
    attributes: tuple[Attribute, ...] = ()

    @property
    def length(self) -> int | None:
        """Number of cells; None for attributes, whose table is not always needed."""
        return None if self.attributes else len(self.cells)

    def cells_for(self, workload: so.workloads.Workload) -> NDArray[Any]:
        """Return what a release takes: records for marginals of attributes, otherwise counts.

        Raises:
            InputFileError: The attributes have other levels than the workload's.
            InvalidParameterError: Their table is too large.
        """
        if not self.attributes:
            return self.cells
        levels = tuple(len(attribute.levels) for attribute in self.attributes)
        if isinstance(workload, so.workloads.OfRecords):
            if workload.levels != levels:
                raise InputFileError("the columns have other levels than the plan's queries")
            return self.cells
        size, known = cells_of(self.attributes), (self.cells >= 0).all(axis=1)
        flat = np.ravel_multi_index(tuple(self.cells[known].T), levels)
        return np.bincount(flat, minlength=size)

    def __repr__(self) -> str:
        return "Source(<private cells>)"


@dataclass(frozen=True)
class _Users:
    """Whose record a row is, and how many of each count; both None if contributions are not bounded here."""

    column: str | None
    max_records: int | None
    per_cell: int | None


def read_source(path: Path, options: Mapping[str, Any]) -> Source:
    """Read the cells that the options describe.

    Args:
        path: The input file.
        options: Values of `SOURCE_OPTIONS`, None where not given.

    Raises:
        InvalidParameterError: The options do not say once what a row is, or are out of range.
        InputFileError: The file cannot be read as what it was declared to be.
        MissingDependencyError: A Parquet file needs pyarrow.
    """
    given = {name: value for name, value in options.items() if value not in (None, ())}
    columns = given.keys() & _BELONGS.keys()
    if len(columns) != 1:
        raise InvalidParameterError(
            "say once what a row is: --counts-column, --events-column, --values-column or --column"
        )
    (what,) = columns
    for name in sorted(given.keys() - _BELONGS[what] - columns):
        raise InvalidParameterError(f"--{name.replace('_', '-')} does not go with --{what.replace('_', '-')}")
    users = _Users(given.get("user_column"), given.get("max_records"), given.get("per_cell"))
    if users.column is None:
        users = replace(users, per_cell=None)  # a promise, not enforced
    if (users.column is None) != (users.max_records is None):
        raise InvalidParameterError("--user-column and --max-records go together")
    if what == "counts_column":
        return _read_counts(path, given[what], given.get("label_column"))
    if what == "events_column":
        if not {"start", "end", "every"} <= given.keys():
            raise InvalidParameterError("--events-column needs --start, --end and --every")
        grid = TimeGrid.parse(given["start"], given["end"], given["every"])
        return _tabulate(path, given[what], grid, users)
    if what == "column":
        return _read_records(path, parse_attributes(given[what]), users)
    if ("bins" in given) == ("edges" in given):
        raise InvalidParameterError("--values-column needs either --bins or --edges")
    return _tabulate(path, given[what], _ValueGrid(given["bins"] if "bins" in given else given["edges"]), users)


def _read_counts(path: Path, column: str, label_column: str | None) -> Source:
    """Read one cell from each row: rows are public, what is in the column is not.

    Raises:
        InputFileError: The file cannot be read, or an entry is no finite number.
    """
    names = [column] if label_column is None else [column, label_column]
    entries, *labels = read_columns(path, names)
    if not len(entries):
        raise InputFileError("the input file has no rows below the names of its columns")
    cells = np.array([real(entry) for entry in entries], dtype=np.float64)
    if not np.isfinite(cells).all():
        raise InputFileError(f"the column {column!r} must hold a finite number in every row")
    named = np.array([_label(label) for label in labels[0]], dtype=object) if labels else np.arange(len(cells))
    return Source(cells, named, label_column or "row", None)


def _label(entry: Any) -> str:
    """Return a label as text that every output can hold: what is no UTF-8 is marked."""
    return str(entry).encode("utf-8", "replace").decode("utf-8")


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
                f"--start to --end must be a whole number of bins as long as --every, 1 to {MAX_LENGTH}"
            )
        return cls(first, width, bins)

    @property
    def cells(self) -> so.tables.Integers:
        """The bins by number."""
        return so.tables.Integers(0, self.bins - 1)

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


@dataclass(frozen=True)
class _ValueGrid:
    """Bins of values: how many codes 0, 1, ... there are, or the edges of half-open intervals."""

    bins: int | tuple[float, ...]

    @property
    def cells(self) -> so.tables.Integers | so.tables.Edges:
        """What the bins are."""
        if isinstance(self.bins, int):
            return so.tables.Integers(0, self.bins - 1)
        return so.tables.Edges(self.bins)

    def codes(self, entries: Column) -> NDArray[np.float64]:
        """Return the values, NaN for what is no number."""
        return np.array([real(entry) for entry in entries], dtype=np.float64)

    def labels(self) -> NDArray[Any]:
        """Return the codes, or the lower edges."""
        return np.arange(self.bins) if isinstance(self.bins, int) else np.array(self.bins[:-1])


def _tabulate(path: Path, column: str, grid: "TimeGrid | _ValueGrid", users: _Users) -> Source:
    """Count records in bins; what falls in no bin is a null record, silently."""
    bounds, name = _bounds(users, grid.cells.size), None if users.column is None else "user"
    # A mistake in what is public is found before the file is read.
    schema = so.Schema({"cell": grid.cells}, user=name, bounds=bounds)
    entries, *names = read_columns(path, [column] if users.column is None else [column, users.column])
    columns = {"cell": grid.codes(entries)} | ({"user": _names(names[0])} if names else {})
    table = so.tabulate(columns, schema, request_id="sordino release")
    return Source(table.counts, grid.labels(), column, None if name is None else schema.unit)


def _bounds(users: _Users, cells: int) -> so.Bounds | None:
    if users.max_records is None:
        return None
    each = so.Bounds(users.max_records if users.per_cell is None else users.per_cell).max_cells
    return so.Bounds(min(users.max_records, cells, _MOST // each), each, users.max_records)


def _read_records(path: Path, attributes: tuple[Attribute, ...], users: _Users) -> Source:
    """Read the codes of all records; with an undeclared level, or beyond their user's allowance, they are null."""
    unit = None if users.max_records is None else so.AddRemove(users.max_records, one_signed=True, label="one user")
    names = [attribute.name for attribute in attributes]
    columns = read_columns(path, names if users.column is None else [*names, users.column])
    codes = np.stack([attribute.codes(column) for attribute, column in zip(attributes, columns, strict=False)], axis=1)
    if users.column is not None and users.max_records is not None:
        codes[~_within_allowance(_names(columns[-1]), users.max_records)] = -1
    return Source(codes, None, ", ".join(names), unit, attributes)


def _within_allowance(users: Column, limit: int) -> NDArray[np.bool_]:
    """Return which records are among the first of their user: in the order of the file, which is the user's own."""
    seen: dict[str, int] = {}
    within = np.zeros(len(users), dtype=np.bool_)
    for row, user in enumerate(users):
        if user is not None:
            seen[user] = seen.get(user, 0) + 1
            within[row] = seen[user] <= limit
    return within


# How programs write that there is nobody, in small letters.
_NOBODY = frozenset(("", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "+nan", "nat", "null", "none", "\\n"))


def _names(users: Column) -> Column:
    """Return users as text, None where a field says that there is none: many people may be so, and are not one."""
    return [_name(user) for user in users]


def _name(user: Any) -> str | None:
    if isinstance(user, np.datetime64):
        return None if np.isnat(user) else f"{user.astype(np.int64)}"
    if isinstance(user, float) and user.is_integer():
        user = int(user)  # of a column of integers that lacks one
    if user is None or user != user or (isinstance(user, str) and user.strip().lower() in _NOBODY):  # noqa: PLR0124
        return None
    return str(user)


def _ticks(entry: Any) -> int | None:
    """Return microseconds since 1970 in UTC, None for what is no time."""
    match entry:
        case str():
            try:
                return (_in_utc(datetime.fromisoformat(entry.strip())) - _EPOCH) // _TICK
            except (ValueError, OverflowError):
                return None
        case np.datetime64():
            ticks, units = _TICKS[np.datetime_data(entry.dtype)[0]]
            return None if np.isnat(entry) else int(entry.astype(np.int64)) * ticks // units
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
