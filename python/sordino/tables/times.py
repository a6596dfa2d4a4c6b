"""Cells of time by a zone's calendar: instants, made once and kept; days, weeks and months are labels of them."""

from __future__ import annotations

import hashlib
import importlib
import zoneinfo
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sordino._support.checks import one_of, text
from sordino.errors import DataTypeError, InvalidParameterError
from sordino.tables.columns import Column
from sordino.tables.dimensions import Dimension, Level
from sordino.workloads.base import MAX_LENGTH

__all__ = ["Times"]

TimeUnit = Literal["quarter_hour", "hour", "day", "week", "month"]

_SECOND = 10**6
_QUARTER, _HOUR, _DAY = 900 * _SECOND, 3600 * _SECOND, 86_400 * _SECOND
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# No zone changes its clocks twice in so short a time and back.
_LOOK = 6 * 3600
# Clocks are looked at every few hours.
_MOST_YEARS = 500
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Times(Dimension):
    """Hours, days, weeks or months of a zone's calendar, from `start` to before `stop`.

    Hours and quarter hours are of absolute time: the day on which clocks go back has 25. Days, weeks (ISO) and months
    are of the calendar, and as long as they are. Timestamps without a zone are read in `zone`: an hour that comes twice
    is its first, one that is skipped the time as much later. The instants are computed once and are the dimension:
    another edition of the zone's rules does not move them.

    Args:
        start: Beginning of the first cell, ISO text or a datetime; without an offset it is in `zone`.
        stop: End of the last.
        unit: Length of a cell.
        zone: Name in the tz database, such as 'Europe/Berlin' or 'UTC'.

    Raises:
        DataTypeError: An argument is of another type.
        InvalidParameterError: Not a whole number of cells, no such zone, or its clocks change by parts of a cell: take
            quarter hours.
    """

    kind = "times"

    def __init__(
        self,
        start: str | datetime,
        stop: str | datetime,
        *,
        unit: TimeUnit,
        zone: str,
    ) -> None:
        self.unit: TimeUnit = one_of("unit", unit, get_args(TimeUnit))
        self.zone = text("zone", zone)
        try:
            info = zoneinfo.ZoneInfo(self.zone)
        except (OSError, ValueError, KeyError):
            raise InvalidParameterError("zone must be a name of the tz database, such as 'Europe/Berlin'") from None
        self.tzdata = _edition()
        first, last = _instant("start", start, info), _instant("stop", stop, info)
        if not first < last:
            raise InvalidParameterError("stop must come after start")
        if last - first > _MOST_YEARS * 366 * _DAY:
            raise InvalidParameterError(f"start to stop must be at most {_MOST_YEARS} years")
        self._clock = _Clock(info, first, last)
        self.instants: NDArray[np.int64] = self._cells(first, last)
        self.instants.flags.writeable = False

    def _cells(self, first: int, last: int) -> NDArray[np.int64]:
        if self.unit in {"hour", "quarter_hour"}:
            width = _HOUR if self.unit == "hour" else _QUARTER
            if (last - first) % width or any(change % width for change in self._clock.changes):
                raise InvalidParameterError(
                    "start to stop must be whole cells, and clocks change by whole cells: take unit='quarter_hour'"
                )
            if (first + self._clock.offset(first)) % width:
                raise InvalidParameterError("start must be the beginning of a cell on the zone's clocks")
            if (last - first) // width > MAX_LENGTH:
                raise InvalidParameterError("at most 2**26 cells")
            return np.arange(first, last + 1, width, dtype=np.int64)
        begin, end = self._clock.day(first), self._clock.day(last)
        starts = [begin]
        while starts[-1] < end and len(starts) <= MAX_LENGTH:
            starts.append(_next(starts[-1], self.unit))
        whole = begin == _next(begin, self.unit, backwards=True) and starts[-1] == end
        edges = np.array([self._clock.midnight(day) for day in starts], dtype=np.int64)
        if not whole or edges[0] != first or edges[-1] != last:
            raise InvalidParameterError(
                f"start and stop must each be the beginning of a {self.unit} on the zone's clocks"
            )
        return edges

    @property
    def size(self) -> int:
        """Number of cells."""
        return len(self.instants) - 1

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Beginnings of the cells on the zone's clocks: with their offset, or dates."""
        if self.unit in {"hour", "quarter_hour"}:
            return tuple(self._clock.label(instant) for instant in self.instants[:-1].tolist())
        # Of a day that the calendar skips the neighbours' instants are one: its own date is not theirs.
        day, found = self._clock.day(int(self.instants[0])), []
        for _ in range(self.size):
            found.append(_named(day, self.unit))
            day = _next(day, self.unit)
        return tuple(found)

    def levels(self) -> dict[str, Level]:
        """Return days, weeks, months, years, weekdays and hours of the day, as far as they are longer than a cell."""
        return dict(self._levels)

    @cached_property
    def _levels(self) -> dict[str, Level]:
        finer = ("quarter_hour", "hour", "day", "week", "month")
        names: dict[str, Callable[[date], str]] = {
            "day": lambda day: _named(day, "day"),
            "week": lambda day: _named(day, "week"),
            "month": lambda day: _named(day, "month"),
            "year": lambda day: f"{day.year:04d}",
        }
        if self.unit == "week":
            return {}  # a week is in two months, and in two years
        local = self.instants[:-1] + self._clock.offsets(self.instants[:-1])
        days = np.floor_divide(local, _DAY)
        found = {}
        for name, label in names.items():
            if name in finer and finer.index(name) <= finer.index(self.unit):
                continue
            if name == "week" and self.unit == "month":
                continue
            found[name] = _level(days, label, name)
        if self.unit != "month":
            weekday = (days + 3) % 7
            found["weekday"] = Level(weekday, _WEEKDAYS)
        if self.unit in {"hour", "quarter_hour"}:
            found["hour_of_day"] = Level(local % _DAY // _HOUR, tuple(f"{hour:02d}" for hour in range(24)))
        return found

    def codes(self, column: Column, what: str) -> NDArray[np.int64]:
        """Return the cell of each timestamp.

        Raises:
            DataTypeError: A column of another type, such as text.
        """
        found, known = column.instants(what, self._clock.instants)
        cells = np.searchsorted(self.instants, found, side="right") - 1
        return np.where(known & (cells >= 0) & (cells < self.size), cells, -1)

    def record(self) -> dict[str, Any]:
        """Return what the instants are, by their digest."""
        digest = hashlib.sha256(np.ascontiguousarray(self.instants, dtype="<i8").tobytes()).hexdigest()
        # What a timestamp without a zone means depends on the rules too.
        rules = hashlib.sha256(self._clock.rules()).hexdigest()
        return {"kind": self.kind, "unit": self.unit, "zone": self.zone, "instants": digest, "rules": rules}

    def sql(self, column: str, dialect: Any) -> str:
        """Return the cell of a timestamp."""
        ticks = dialect.instant(column, self._clock.pieces())
        width = {"hour": _HOUR, "quarter_hour": _QUARTER}.get(self.unit)
        if width is None:
            return str(dialect.binned(ticks, [str(edge) for edge in self.instants.tolist()]))
        first, last = int(self.instants[0]), int(self.instants[-1])
        cell = dialect.divided(f"({ticks} - ({first}))", width)
        return f"case when {ticks} >= {first} and {ticks} < {last} then {cell} end"

    def __repr__(self) -> str:
        return f"Times({self.labels[0]!r}, <{self.size} cells>, unit={self.unit!r}, zone={self.zone!r})"


def _level(days: NDArray[np.int64], label: Callable[[date], str], name: str) -> Level:
    first, last = int(days.min()), int(days.max())
    # All days of the calendar, those too that a zone skips: they have a name, and no cell.
    named = [label(date(1970, 1, 1) + timedelta(days=day)) for day in range(first, last + 1)]
    labels = list(dict.fromkeys(named))
    places = {label: at for at, label in enumerate(labels)}
    groups = np.array([places[label] for label in named], dtype=np.int64)[days - first]
    empty = set(range(len(labels))) - set(groups.tolist())
    shown = [f"{label} (no such {name} here)" if at in empty else label for at, label in enumerate(labels)]
    return Level(groups, tuple(shown))


def _named(day: date, unit: str) -> str:
    if unit == "week":
        year, week, _ = day.isocalendar()
        return f"{year:04d}-W{week:02d}"
    return day.isoformat()[: 7 if unit == "month" else 10]


def _next(day: date, unit: str, backwards: bool = False) -> date:
    """Return the beginning of the next unit; backwards that of the one in which the day is."""
    match unit:
        case "month" if backwards:
            return day.replace(day=1)
        case "month":
            return (day.replace(day=1) + timedelta(days=32)).replace(day=1)
        case "week" if backwards:
            return day - timedelta(days=day.weekday())
        case "week":
            return day + timedelta(days=7)
    return day if backwards else day + timedelta(days=1)


def _edition() -> str:
    """Return the edition of the zones' rules, as far as it is known."""
    for folder in zoneinfo.TZPATH:
        rules = Path(folder) / "tzdata.zi"
        try:
            with rules.open(encoding="utf-8") as file:
                return file.readline().removeprefix("# version ").strip()
        except (OSError, ValueError):
            continue
    try:
        return str(importlib.import_module("tzdata").IANA_VERSION)
    except ImportError:
        return "unknown"


def _ticks(moment: datetime) -> int:
    span = moment - _EPOCH
    return (span.days * 86_400 + span.seconds) * _SECOND + span.microseconds


def _instant(name: str, value: object, zone: zoneinfo.ZoneInfo) -> int:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise InvalidParameterError(f"{name} must be an ISO time, such as '2026-01-01'") from None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime):
        raise DataTypeError(f"{name} must be ISO text or a datetime")
    try:
        moment = value if value.tzinfo is not None else value.replace(tzinfo=zone)
        found = _ticks(moment.astimezone(UTC))
    except OverflowError:
        raise InvalidParameterError(f"{name} is beyond the calendar") from None
    if not datetime(1, 1, 3, tzinfo=UTC) <= moment <= datetime(9999, 12, 29, tzinfo=UTC):
        raise InvalidParameterError(f"{name} is beyond the calendar")
    return found


class _Clock:
    """What a zone's clocks show between two instants and some days around.

    Attributes:
        changes: By how much clocks change, in microseconds.
    """

    def __init__(self, zone: zoneinfo.ZoneInfo, first: int, last: int) -> None:
        self._zone = zone
        begin, end = first // _SECOND - 3 * 86_400, last // _SECOND + 3 * 86_400
        begin, end = max(begin, _ticks(datetime(1, 1, 2, tzinfo=UTC)) // _SECOND), min(end, 253_402_214_400)
        starts, offsets = [begin], [self._seconds(begin)]
        for moment in range(begin, end, _LOOK):
            upper = min(moment + _LOOK, end)
            while self._seconds(upper) != offsets[-1]:
                low, high = max(moment, starts[-1]), upper
                while high - low > 1:
                    middle = (low + high) // 2
                    low, high = (middle, high) if self._seconds(middle) == offsets[-1] else (low, middle)
                starts.append(high)
                offsets.append(self._seconds(high))
        self._starts = np.array(starts, dtype=np.int64) * _SECOND
        self._offsets = np.array(offsets, dtype=np.int64) * _SECOND
        self.changes = tuple(np.diff(self._offsets).tolist())
        # What clocks show when an offset ends.
        self._ends = self._starts[1:] + self._offsets[:-1]

    def _seconds(self, moment: int) -> int:
        offset = (_EPOCH + timedelta(seconds=moment)).astimezone(self._zone).utcoffset()
        return 0 if offset is None else int(offset.total_seconds())

    def rules(self) -> bytes:
        """Return all offsets, and from when they hold."""
        return np.stack([self._starts, self._offsets]).astype("<i8").tobytes()

    def offsets(self, instants: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what clocks are ahead of UTC."""
        at = np.clip(np.searchsorted(self._starts, instants, side="right") - 1, 0, None)
        found: NDArray[np.int64] = self._offsets[at]
        return found

    def offset(self, instant: int) -> int:
        """Return what clocks are ahead of UTC."""
        return int(self.offsets(np.array([instant]))[0])

    def pieces(self) -> list[tuple[int, int]]:
        """Return from which time on the clocks which offset is taken away; the first holds before all."""
        found = [(0, int(self._offsets[0]))]
        for start, before, after in zip(self._starts[1:], self._offsets, self._offsets[1:], strict=False):
            # Shown twice: the first time. Skipped: as if clocks had not changed yet.
            found.append((int(start + max(before, after)), int(after)))
        return found

    def instants(self, local: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return when clocks show this: of two instants the first; of none as if they had not changed yet."""
        pieces = self.pieces()
        at = np.searchsorted(np.array([start for start, _ in pieces[1:]], dtype=np.int64), local, side="right")
        found: NDArray[np.int64] = local - np.array([offset for _, offset in pieces], dtype=np.int64)[at]
        return found

    def day(self, instant: int) -> date:
        """Return the date that clocks show."""
        return date(1970, 1, 1) + timedelta(days=(instant + self.offset(instant)) // _DAY)

    def midnight(self, day: date) -> int:
        """Return the first instant of a date; of one that is skipped that of the next."""
        ticks = (day - date(1970, 1, 1)).days * _DAY
        found = int(self.instants(np.array([ticks], dtype=np.int64))[0])
        # Skipped times are later than they are called: the date begins when clocks change.
        late = [
            int(s)
            for s, b, a in zip(self._starts[1:], self._offsets, self._offsets[1:], strict=False)
            if s + b <= ticks < s + a
        ]
        return late[0] if late else found

    def label(self, instant: int) -> str:
        """Return what clocks show, with their offset."""
        moment = _EPOCH + timedelta(microseconds=instant)
        return moment.astimezone(self._zone).isoformat(timespec="minutes")
