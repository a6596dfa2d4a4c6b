"""Adding up reports; nothing here is private any more."""

from __future__ import annotations

import secrets
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sordino._support.checks import sequence
from sordino._support.private_numbers import attempt, is_integers, is_missing, of_a_handler
from sordino._support.turns import Turn
from sordino._support.uncopied import Uncopied
from sordino.errors import DataTypeError, InvalidParameterError
from sordino.releases.local.estimate import LocalEstimate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sordino.mechanisms.local.family import SurveyFit
    from sordino.mechanisms.local.part import SurveyPart
    from sordino.workloads.base import Array

__all__ = ["LocalServer"]

_MERGED_BEFORE = "these reports were added before: a server is merged once, and not with itself"


class _Reports(NamedTuple):
    """What was added up, part by part: replaced as a whole, so that an exception leaves it before or after a report."""

    sums: Array
    accepted: int
    clients: set[Hashable]
    # Servers whose reports are in these sums.
    parts: frozenset[bytes]
    # Of the report that was added last: it goes into `clients` before the next.
    last: Hashable = None


class LocalServer(Uncopied):
    """Adds up the reports of clients; `SurveyPlan.server` makes it.

    A malformed report (not integers, another length, numbers that no client sends) and a second report of the same
    client are left out, silently: a client cannot find out whether it was counted.

    Attributes:
        fit: How clients report.
    """

    _no_copy = "a server cannot be copied or pickled: both would count the same reports"

    def __init__(self, fit: SurveyFit) -> None:
        self.fit = fit
        steps = sum(part.steps for part in fit.parts)
        self._reports = _Reports(np.zeros(steps), 0, set(), frozenset({secrets.token_bytes(16)}))
        self._guard = Turn("this server belongs to another process: both would count the same reports")

    @property
    def accepted(self) -> int:
        """Reports that were added."""
        return self._reports.accepted

    def add(self, message: object, client: Hashable = None) -> None:
        """Add one report.

        Args:
            message: What `SurveyPlan.encode_client` returned, as an array or a list.
            client: Who sent it; the first report of a client counts. None if clients are told apart elsewhere.
        """
        found = self._well_formed(message)
        if found is None or found.ndim != 1:
            return
        with self._guard():
            clients = self._named()  # also where nobody is named: the last one may be written over
            if client is None or self._is_new(client, clients):
                self._add(found[None, :], client)

    @staticmethod
    def _is_new(client: Hashable, clients: set[Hashable]) -> bool:
        """Return whether a client has not reported; what is no name, or cannot be compared, is no client."""

        def new(name: Hashable) -> bool:
            return not is_missing(name) and hash(name) is not None and name not in clients

        return attempt(new, client, clients)[0] is True

    def _named(self) -> set[Hashable]:
        """Return the clients of all reports."""
        if self._reports.last is not None:
            self._reports.clients.add(self._reports.last)
        return self._reports.clients

    def _add(self, found: Array, client: Hashable = None) -> None:
        reports, sums = self._reports, [part.sums(numbers) for part, numbers in self._parts_of(found)]
        self._reports = reports._replace(
            sums=reports.sums + np.concatenate(sums), accepted=reports.accepted + len(found), last=client
        )

    def _parts_of(self, numbers: Array) -> Iterator[tuple[SurveyPart, Array]]:
        """Yield the parts of messages, with their numbers."""
        first = 0
        for part in self.fit.parts:
            yield part, numbers[..., first : first + part.numbers]
            first += part.numbers

    def add_many(self, messages: object, clients: Iterable[Hashable] | None = None) -> None:
        """Add many reports, shape (reports, numbers): row by row as `add`.

        Args:
            messages: The reports.
            clients: Who sent them; a report without a name is left out. None if clients are told apart elsewhere.

        Raises:
            DataTypeError: The clients are no sequence.
            InvalidParameterError: Not as many clients as reports.
        """
        if clients is not None:
            named = list(clients) if isinstance(clients, str) else clients
            rows, names = _rows(messages), sequence("clients", named, "names, one a report")
            if len(rows) != len(names):
                raise InvalidParameterError("there must be as many clients as reports")
            for message, client in zip(rows, names, strict=True):
                if client is not None:  # a list of names has none for it
                    self.add(message, client)
            return
        found = self._well_formed(messages)
        if found is not None and found.ndim == 2:
            with self._guard():
                self._named()
                self._add(found)
            return
        for message in _rows(messages):
            self.add(message)

    def _well_formed(self, messages: object) -> Array | None:
        """Return reports as numbers if all of them are well formed."""
        if isinstance(messages, np.ma.MaskedArray):
            if np.ma.is_masked(messages):
                return None  # what is under a mask was not sent
            messages = messages.data
        if isinstance(messages, np.ndarray) and messages.dtype.kind == "O":
            messages = messages.tolist()  # of a table in which something else stands
        plain = is_integers(messages) or (isinstance(messages, list | tuple) and all(map(is_integers, messages)))
        if isinstance(messages, list | tuple) and not plain:
            return None
        try:
            array: NDArray[np.int64] = np.asarray(messages)
        except Exception as error:
            if of_a_handler(error, messages):
                raise
            return None
        if array.dtype.kind not in "iuf" or array.ndim not in {1, 2} or array.shape[-1] != self.fit.numbers:
            return None
        with np.errstate(over="ignore"):  # numbers beyond floats are no client's
            numbers = array.astype(np.float64)
        whole = numbers == np.floor(numbers)  # integers, also beside a missing one
        honest = [part.are_honest(theirs) for part, theirs in self._parts_of(numbers)]
        return numbers if whole.all() and all(honest) else None

    def merge(self, other: LocalServer) -> None:
        """Add what another server of the same plan has added up.

        Raises:
            DataTypeError: It is no server.
            InvalidParameterError: It is of another plan, has a client in common, or is a part of this one already.
        """
        if not isinstance(other, LocalServer):
            raise DataTypeError("other must be a LocalServer")
        if not other.fit.is_same(self.fit):
            raise InvalidParameterError("the servers have different plans")
        if other is self:
            raise InvalidParameterError(_MERGED_BEFORE)
        with other._guard():
            theirs, names = other._reports, set(other._named())
        with self._guard():
            ours, known = self._reports, self._named()
            if ours.parts & theirs.parts:
                raise InvalidParameterError(_MERGED_BEFORE)
            if known & names:
                raise InvalidParameterError("a client reported to both servers")
            self._reports = _Reports(
                ours.sums + theirs.sums, ours.accepted + theirs.accepted, known | names, ours.parts | theirs.parts
            )

    def estimate(self) -> LocalEstimate:
        """Return what the reports so far say.

        Raises:
            InvalidParameterError: There are none.
        """
        sums, accepted = self._reports[:2]
        if accepted == 0:
            raise InvalidParameterError("there are no reports yet")
        fit, w = self.fit, self.fit.survey.intervals
        shares = fit.report.estimate(sums[:w], accepted)
        level = None
        if fit.level is not None:
            low, high = fit.survey.bounds
            level = float(fit.level.estimate(sums[w:], accepted)[0]) * (high - low)
        return LocalEstimate(fit, accepted, shares, level)

    def __repr__(self) -> str:
        return f"LocalServer({self.fit.survey!r}, accepted={self.accepted})"


def _rows(messages: object) -> list[object]:
    """Return reports one by one; what is no list of them has none, as a stranger's report may be anything.

    Tables and other arrays are told by their type: their rows are the reports.
    """
    try:
        if not isinstance(messages, list | tuple | Mapping | Iterator | np.ma.MaskedArray):
            rows = np.asarray(messages)
            if rows.ndim == 2:
                return list(rows)
        return list(messages)  # type: ignore[call-overload, no-any-return]
    except Exception as error:  # whatever an object says of itself
        if of_a_handler(error, messages):
            raise
        return []
