"""Columns of a type: it decides how their entries are read, never what they are.

Of a column without a type (a list, objects) each entry is read by itself. What is missing or malformed is no row.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from sordino._support.columns import objects_of
from sordino._support.private_numbers import attempt, real_of, whole_of
from sordino.errors import DataTypeError

__all__ = ["Column", "Text", "arrow", "in_units", "ticks_as_microseconds"]

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_EPOCH = datetime(1970, 1, 1)
_UNIX = datetime(1970, 1, 1, tzinfo=UTC)


class Text(NamedTuple):
    """Text of all rows in UTF-8, or other bytes.

    Attributes:
        offsets: Where that of each row begins, int64, one more than rows.
        data: All bytes.
    """

    offsets: NDArray[np.int64]
    data: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @staticmethod
    def of(entries: Iterable[bytes]) -> Text:
        """Return entries one after the other."""
        listed = list(entries)
        offsets = np.zeros(len(listed) + 1, dtype=np.int64)
        np.cumsum(np.fromiter(map(len, listed), dtype=np.int64, count=len(listed)), out=offsets[1:])
        return Text(offsets, np.frombuffer(b"".join(listed), dtype=np.uint8))

    @staticmethod
    def read(read: Callable[[Any], bytes], entries: Iterable[Any]) -> tuple[Text, NDArray[np.bool_]]:
        """Return what entries are read as, each by itself, and where there is something."""
        found = [attempt(read, entry) for entry in entries]
        known = np.array([error is None for _, error in found], dtype=np.bool_)
        return Text.of(b"" if error is not None else text for text, error in found), known

    def entries(self) -> list[bytes]:
        """Return the entries one by one."""
        data, ends = self.data.tobytes(), self.offsets.tolist()
        return [data[start:end] for start, end in pairwise(ends)]

    def take(self, places: NDArray[np.int64]) -> Text:
        """Return these entries."""
        entries = self.entries()
        return Text.of(entries[place] for place in places.tolist())


class Column(NamedTuple):
    """A column of one type.

    Attributes:
        kind: 'integer', 'unsigned', 'real', 'boolean', 'text', 'bytes', 'instant' (microseconds since 1970 in UTC),
            'local' (the same without a zone), 'dictionary' (places in another column), 'decimal', 'object' (entries of
            any type), 'parsed' (text of a file in which nothing has a type), or 'other'.
        values: Entries as numpy has them, `Text`, or a pair of places and a column.
        valid: Where there is an entry; None for all.
        name: How its own library calls the type, for messages.
    """

    kind: str
    values: Any
    valid: NDArray[np.bool_] | None
    name: str

    def __len__(self) -> int:
        return len(self.values[0]) if self.kind == "dictionary" else len(self.values)

    def wrong(self, what: str, cast: str) -> DataTypeError:
        """Return the error that names the type, and what to cast it to."""
        return DataTypeError(f"{what} cannot be read from a column of type {self.name}: cast it to {cast}")

    def part(self, first: int, last: int) -> Column:
        """Return some of the rows."""
        valid = None if self.valid is None else self.valid[first:last]
        if self.kind == "dictionary":
            return Column(self.kind, (self.values[0][first:last], self.values[1]), valid, self.name)
        if isinstance(self.values, Text):
            offsets = self.values.offsets[first : last + 1]
            begin, end = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
            return Column(self.kind, Text(offsets - begin, self.values.data[begin:end]), valid, self.name)
        return Column(self.kind, self.values[first:last], valid, self.name)

    def known(self) -> NDArray[np.bool_]:
        """Return where there is an entry."""
        # Of all rows one truth value is held.
        return np.broadcast_to(np.True_, (len(self),)) if self.valid is None else self.valid

    def integers(self, what: str) -> Any:
        """Return integers, and where there are some: a number with a fraction is none.

        Raises:
            DataTypeError: A column of another type.
        """
        known = self.known()
        match self.kind:
            case "integer" | "boolean":
                return self.values.astype(np.int64, copy=False), known
            case "unsigned":
                return self.values.view(np.int64), known & (self.values < 2**63)
            case "real":
                with np.errstate(invalid="ignore"):
                    reals = self.values.astype(np.float64, copy=False)
                    whole = known & (np.abs(reals) < 2.0**62) & (reals == np.floor(reals))
                return np.where(whole, reals, 0.0).astype(np.int64), whole
            case "object" | "decimal":
                return _each(self.values, _whole, np.int64)
            case "parsed":
                return _each(self.values, _written_integer, np.int64)
            case "dictionary":
                return self._by_place(lambda column: column.integers(what))
        raise self.wrong(what, "integers")

    def reals(self, what: str) -> Any:
        """Return finite numbers, and where there are some.

        Raises:
            DataTypeError: A column of another type.
        """
        match self.kind:
            case "integer" | "boolean" | "unsigned" | "real":
                with np.errstate(over="ignore"):
                    reals = self.values.astype(np.float64, copy=False)
                return reals, self.known() & ~np.isnan(reals)
            case "object" | "decimal" | "parsed":
                read = _written_real if self.kind == "parsed" else real_of
                reals, known = _each(self.values, read, np.float64)
                return reals, known & ~np.isnan(reals)
            case "dictionary":
                return self._by_place(lambda column: column.reals(what))
        raise self.wrong(what, "numbers")

    def instants(self, what: str, of_local: Callable[[NDArray[np.int64]], NDArray[np.int64]]) -> Any:
        """Return microseconds since 1970 in UTC, rounded down, and where there are some.

        Args:
            what: What is read, for messages.
            of_local: Makes instants of what clocks show.

        Raises:
            DataTypeError: A column of another type.
        """
        match self.kind:
            case "instant":
                return self.values, self.known()
            case "local":
                return of_local(self.values), self.known()
            case "object" | "parsed":
                if self.kind == "parsed":
                    moments = [attempt(datetime.fromisoformat, entry) for entry in self.values]
                    return Column("object", objects_of([m for m, _ in moments]), None, "").instants(what, of_local)
                zoned, are_zoned = _each(self.values, _zoned, np.int64)
                local, are_local = _each(self.values, _local, np.int64)
                return np.where(are_zoned, zoned, of_local(local)), are_zoned | are_local
            case "dictionary":
                return self._by_place(lambda column: column.instants(what, of_local))
        raise self.wrong(what, "timestamps")

    def matched(self, what: str, places: Mapping[object, int], of_text: bool) -> NDArray[np.int64]:
        """Return the place of each entry: -1 for one that is not among them, -2 where there is none.

        Args:
            what: What is read, for messages.
            places: Places of bytes, or of integers.
            of_text: Which of both.

        Raises:
            DataTypeError: A column of another type.
        """
        if self.kind == "dictionary":
            codes, values = self.values
            of_values = np.append(values.matched(what, places, of_text), -2)
            return np.where(self.known(), of_values[codes], -2)
        if self.kind in {"object", "parsed"} or (self.kind == "decimal" and not of_text):
            read = _text if of_text else _written_integer if self.kind == "parsed" else _whole
            found = [attempt(read, entry) for entry in self.values]
            return np.array([-2 if e is not None else places.get(v, -1) for v, e in found], dtype=np.int64).reshape(-1)
        if of_text:
            if self.kind not in {"text", "bytes"}:
                raise self.wrong(what, "text")
            at = _arrow_places(self.values, places)
            if at is None:
                at = np.array([places.get(entry, -1) for entry in self.values.entries()], dtype=np.int64).reshape(-1)
            return np.where(self.known(), at, -2)
        integers, known = self.integers(what)
        keys = np.array(sorted(places), dtype=np.int64)  # type: ignore[type-var]
        near = np.clip(np.searchsorted(keys, integers), 0, len(keys) - 1)
        values = np.array([places[key] for key in keys.tolist()], dtype=np.int64)
        return np.where(known, np.where(keys[near] == integers, values[near], -1), -2)

    def users(self, what: str) -> tuple[str, Any, NDArray[np.bool_]]:
        """Return the names of users: their kind, integers or `Text`, and where there are some.

        A column without a type is read as text, entry by entry: integers as they are written, nothing of anything else.

        Raises:
            DataTypeError: A column of another type.
        """
        match self.kind:
            case "integer":
                return "integers", np.ascontiguousarray(self.values, dtype=np.int64), self.known()
            case "unsigned":
                return "unsigned integers", np.ascontiguousarray(self.values).view(np.int64), self.known()
            case "text" | "bytes":
                return "text", Text(np.ascontiguousarray(self.values.offsets), self.values.data), self.known()
            case "object" | "parsed":
                return "text", *Text.read(_name, self.values)
            case "dictionary":
                codes, values = self.values
                kind, names, known = values.users(what)
                places = np.clip(codes, 0, max(len(values) - 1, 0))
                if not len(values):
                    nobody = Text.of(b"" for _ in codes) if kind == "text" else codes * 0
                    return kind, nobody, np.zeros(len(codes), dtype=np.bool_)
                taken = names.take(places) if isinstance(names, Text) else names[places]
                return kind, taken, self.known() & known[places]
        raise self.wrong(what, "integers or text")

    def _by_place(self, read: Callable[[Column], Any]) -> Any:
        codes, values = self.values
        if not len(values):
            return np.zeros(len(codes), dtype=np.int64), np.zeros(len(codes), dtype=np.bool_)
        entries, known = read(values)
        return entries[codes], self.known() & known[codes]


def _each(entries: NDArray[Any], read: Callable[[Any], Any], dtype: type) -> Any:
    found = [attempt(read, entry) for entry in entries]
    known = np.array([error is None for _, error in found], dtype=np.bool_)
    return np.array([0 if error is not None else value for value, error in found], dtype=dtype).reshape(-1), known


def _is_integer(entry: Any) -> bool:
    # A span of time is an integer to numpy.
    return isinstance(entry, int | np.integer) and not isinstance(entry, np.timedelta64)


def _whole(entry: Any) -> int:
    """Return the 64-bit integer that an entry is, exactly; a fraction is none."""
    number = int(entry) if _is_integer(entry) or isinstance(entry, np.bool_) else None
    if number is None:
        found = whole_of(entry)
        # What is read there is cut beyond 2**53: an integer is compared with what it was.
        most = 2**63 if isinstance(entry, Decimal) else 2**62
        number = None if found is None else found if abs(found) < 2**53 else int(entry) if abs(entry) < most else None
    if number is None or not -(2**63) <= number < 2**63:
        raise ValueError
    return number


_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")


def _written_integer(entry: Any) -> int:
    if entry is None or _INTEGER.fullmatch(entry.strip()) is None:
        raise ValueError
    return int(entry)


def _written_real(entry: Any) -> float:
    if entry is None or "_" in entry:
        raise ValueError
    return float(entry)


def _text(entry: Any) -> bytes:
    if hasattr(entry, "as_py"):  # a scalar of Arrow
        entry = entry.as_py()
    if isinstance(entry, bytes):
        return entry
    if not isinstance(entry, str):
        raise TypeError
    return entry.encode("utf-8", "surrogateescape")


def _name(entry: Any) -> bytes:
    if hasattr(entry, "as_py"):
        entry = entry.as_py()
    if isinstance(entry, UUID):
        return entry.bytes
    if _is_integer(entry) and not isinstance(entry, bool):
        return str(int(entry)).encode()
    return _text(entry)


def _zoned(entry: Any) -> int:
    if not isinstance(entry, datetime) or entry.tzinfo is None:
        raise TypeError
    return _ticks(entry - _UNIX)


def _local(entry: Any) -> int:
    if isinstance(entry, np.datetime64):
        if np.isnat(entry):
            raise ValueError
        ticks, unit = in_units(np.array([entry]))
        return int(ticks_as_microseconds(ticks, unit)[0])
    if isinstance(entry, datetime):
        if entry.tzinfo is not None:
            raise TypeError
        return _ticks(entry - _EPOCH)
    if isinstance(entry, date):
        return (entry - _EPOCH.date()).days * 86_400 * 10**6
    raise TypeError


def _ticks(span: Any) -> int:
    # Of a pandas timestamp the nanoseconds are dropped: rounded down.
    return int((span.days * 86_400 + span.seconds) * 10**6 + span.microseconds)


def in_units(array: NDArray[Any]) -> tuple[NDArray[np.int64], str]:
    """Return numpy's dates as ticks of a unit that is a second or less."""
    unit, count = np.datetime_data(array.dtype)
    if count != 1 or unit not in _PER_SECOND:
        array, unit = array.astype("datetime64[s]"), "s"
    return array.astype(np.int64), unit


def ticks_as_microseconds(ticks: NDArray[np.int64], unit: str) -> NDArray[np.int64]:
    """Return microseconds, rounded down; beyond them the ends of int64."""
    per_second = _PER_SECOND[unit]
    if per_second >= 10**6:
        return ticks // (per_second // 10**6)
    factor = 10**6 // per_second
    most = (2**63 - 1) // factor
    return np.clip(ticks, -most, most) * factor


def arrow() -> Any:
    """Return pyarrow, None where it is not installed."""
    try:
        return importlib.import_module("pyarrow")
    except ImportError:
        return None


def _arrow_places(text: Text, places: Mapping[object, int]) -> NDArray[np.int64] | None:
    pa = arrow()
    if pa is None or not places:
        return None
    compute = importlib.import_module("pyarrow.compute")
    array = pa.Array.from_buffers(
        pa.large_binary(),
        len(text),
        [None, pa.py_buffer(np.ascontiguousarray(text.offsets)), pa.py_buffer(np.ascontiguousarray(text.data))],
    )
    found = compute.index_in(array, value_set=pa.array(list(places), type=pa.large_binary()))
    at = np.array(list(places.values()), dtype=np.int64)
    index = found.fill_null(-1).to_numpy(zero_copy_only=False)
    return np.where(index < 0, -1, at[index])
