"""Budgets by period: a ledger for each day, week or hour, and one for all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sordino._support.durations import seconds_of
from sordino.errors import DataTypeError, InvalidParameterError, TermsError
from sordino.privacy.books import Book, StoredBook, make_in
from sordino.privacy.guarantees import Privacy
from sordino.privacy.requests import Requests
from sordino.privacy.terms import Account, Terms
from sordino.storage import ledgers
from sordino.storage.transactions import Transaction

__all__ = ["Periods"]

_DAY = 86400
# Mondays at midnight.
_MONDAY = date(1970, 1, 5)
_MOST = 4096


class Periods:
    """Ledgers of periods; `Ledger.every` returns them.

    What is promised: what was done in one period is protected by `total`, for whatever reads that period; for one
    person who acts in k periods k totals compose, and never more than the parent's total. Which times a release reads
    is the caller's promise, or checked by a schema with times.

    Args:
        book: The parent.
        requests: Its requests.
        span: As `Ledger.every` takes it.
        total: For one period.
        zone: Time zone.
        made: Makes a ledger of a book.
    """

    def __init__(  # noqa: PLR0917 - what Ledger.every hands over
        self,
        book: StoredBook,
        requests: Requests,
        span: object,
        total: Privacy,
        zone: str,
        made: Callable[[Book, Requests], Any],
    ) -> None:
        seconds = seconds_of("span", span)
        self._seconds = int(seconds)
        if self._seconds != seconds or not (self._seconds % _DAY == 0 or _DAY % self._seconds == 0):
            raise InvalidParameterError("a period is whole days, or a part of a day that fits into it")
        self._zone = _zone(zone)
        self._terms = Terms(total, role="period", zone=zone, unit=book.account().unit)
        Account.empty(self._terms)  # refuses what is no total
        self._book, self._requests, self._made = book, requests, made

    @property
    def total(self) -> Privacy:
        """The guarantee for what was done in one period."""
        return self._terms.total

    def on(self, *times: object) -> Any:
        """Return the ledger that is charged in the periods of these times, and once in the parent.

        Args:
            times: Dates, text such as '2026-11-22', or moments with a time zone; or pairs of a first and a last one.

        Returns:
            A `Ledger`: its requests are those of the parent.

        Raises:
            DataTypeError: A time is none.
            InvalidParameterError: None is given, or too many periods.
            TermsError: A period has another total already.
            StoreError: The store cannot be used.
        """
        starts: dict[str, tuple[int, int]] = {}
        for each in times:
            first, last = each if isinstance(each, tuple) and len(each) == 2 else (each, each)
            moment, end = self._start(first), self._start(last)
            self._next(end)
            if moment > end:
                raise InvalidParameterError("a pair of times is the first period that is read and the last")
            while moment <= end:
                after = self._next(moment)
                name = f"{self._book.name}/{moment.isoformat()}/{self._seconds}"
                starts[name] = int(moment.timestamp()), int(after.timestamp())
                moment = after
                if len(starts) > _MOST:
                    raise InvalidParameterError(f"at most {_MOST} periods are charged at once")
        if not starts:
            raise InvalidParameterError("say which periods are read")
        self._make(starts)
        book = StoredBook(self._book.store, self._book.name, tuple(sorted({*self._book.also, *starts})))
        return self._made(book, self._requests.over(book))

    def spent(self, moment: object) -> dict[str, dict[str, float]]:
        """Return what was spent of the period of a time.

        Raises:
            DataTypeError: The time is none.
            StoreError: The store cannot be used.
        """
        start = self._start(moment)
        name = f"{self._book.name}/{start.isoformat()}/{self._seconds}"
        row = self._book.store.read(lambda transaction: ledgers.find_ledger(transaction, name))
        account = Account.empty(self._terms) if row is None else Account.of(row.terms, row.sums)
        return account.terms.rule.spent(account.state)

    def _make(self, starts: dict[str, tuple[int, int]]) -> None:
        """Make the ledgers that are not there: their bounds are fixed now, whatever becomes of the time zone."""

        def script(transaction: Transaction) -> bool:
            for name, span in starts.items():
                terms = replace(self._terms, span=span)
                known = ledgers.find_ledger(transaction, name)
                if known is None:
                    make_in(transaction, self._book.store, name, terms, self._book.name)
                    continue
                own = Terms.of(known.terms)
                if (own.role, known.parent) != ("period", self._book.name):
                    raise TermsError(f"there is another ledger {name!r}")
                if own.total != self.total:
                    raise TermsError(f"the period {name!r} has another total already")
            return True

        known = self._book.store.read(
            lambda transaction: [ledgers.find_ledger(transaction, name) is not None for name in starts]
        )
        if all(known):
            self._book.store.read(script)
        else:
            self._book.store.certainly(script, lambda _: None)

    def _start(self, moment: object) -> datetime:
        """Return the first moment of the period that a time is in."""
        local = self._local(moment)
        day = datetime.combine(local.date(), time(), self._zone)
        if self._seconds >= _DAY:
            behind = (local.date() - _MONDAY).days % (self._seconds // _DAY)
            return _moved(day, -behind * _DAY)
        # Parts of a day by the clock: where it is set back, two parts are one.
        passed = local.hour * 3600 + local.minute * 60 + local.second
        return day + timedelta(seconds=passed - passed % self._seconds)

    def _next(self, start: datetime) -> datetime:
        return _moved(start, self._seconds)

    def _local(self, moment: object) -> datetime:
        if isinstance(moment, str):
            try:
                moment = date.fromisoformat(moment) if len(moment) <= 10 else datetime.fromisoformat(moment)
            except ValueError:
                raise InvalidParameterError(
                    "a time is a date such as '2026-11-22', or a moment in ISO format"
                ) from None
        if isinstance(moment, datetime):
            try:
                local = moment.replace(tzinfo=self._zone) if moment.tzinfo is None else moment
                shown = local.astimezone(UTC).astimezone(self._zone)
            except (OverflowError, TypeError, ValueError):  # the ends of time, or none (NaT)
                raise InvalidParameterError("a time must be one of the years 1 to 9999") from None
            if moment.tzinfo is not None:
                return shown
            if self._seconds < _DAY and shown.replace(tzinfo=None) != moment:
                raise InvalidParameterError("a time must be one that the clocks of the zone show")
            return local
        if isinstance(moment, date):
            return datetime.combine(moment, time(), self._zone)
        raise DataTypeError(f"a time must be a date, a datetime or text, got {type(moment).__name__}")

    def __repr__(self) -> str:
        return f"<Periods of {self._seconds} s with {self.total} each, of {self._book.name!r}>"


def _moved(moment: datetime, seconds: int) -> datetime:
    """Return what the clock of its zone shows so much later: whole days later it is the same time of the day."""
    try:
        return moment + timedelta(seconds=seconds)
    except OverflowError:
        raise InvalidParameterError("a time must be one whose period lies in the years 1 to 9999") from None


def _zone(name: object) -> tzinfo:
    if not isinstance(name, str):
        raise DataTypeError("zone must be the name of a time zone")
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidParameterError("zone must be the name of a time zone, such as 'Europe/Berlin'") from None
