"""Adding up reports; nothing here is private any more."""

from __future__ import annotations

import secrets
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from sordino.errors import DataTypeError, InvalidParameterError
from sordino.local.estimate import LocalEstimate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sordino.local.plan import LocalPlan
    from sordino.workloads.base import Array

__all__ = ["LocalServer"]

# No honest report is further off, in standard deviations: less likely than e^-800, for Laplace noise e^-40.
_FURTHEST = 40.0


class LocalServer:
    """Adds up the reports of clients; `LocalPlan.server` makes it.

    A malformed report (not integers, another length, numbers that no client sends) and a second report of the same
    client are left out, silently: a client cannot find out whether it was counted.

    Attributes:
        plan: How clients report.
        accepted: Reports that were added.
    """

    def __init__(self, plan: LocalPlan) -> None:
        self.plan = plan
        self.accepted = 0
        self._sums: Array = np.zeros(plan.numbers)
        self._clients: set[Hashable] = set()
        # Servers whose reports are in these sums.
        self._parts = {secrets.token_bytes(16)}
        fitted = [plan.sums.fitted] * plan.survey.intervals + ([plan.level.fitted] if plan.level else [])
        widest = plan.sums.fitted.plan.variances(np.arange(1, plan.survey.intervals + 1, dtype=np.uint64)).max()
        # An increment is a difference of two sums.
        units = [f.door.quarter_units / 4.0 for f in fitted]
        spread = [2.0 * float(np.sqrt(widest)) * u for u in units]
        clients = [plan.survey.largest * 2.0**-f.door.grid for f in fitted]
        self._limit = np.array([_FURTHEST * s + c for s, c in zip(spread, clients, strict=True)])

    def add(self, message: object, client: Hashable = None) -> None:
        """Add one report.

        Args:
            message: What `LocalPlan.encode_client` returned, as an array or a list.
            client: Who sent it; the first report of a client counts. None if clients are told apart elsewhere.
        """
        found = self._well_formed(message)
        if found is None or found.ndim != 1:
            return
        if client is not None:
            try:
                if client in self._clients:
                    return
                self._clients.add(client)
            except TypeError:  # no name at all
                return
        self._sums += found
        self.accepted += 1

    def add_many(self, messages: object, clients: Iterable[Hashable] | None = None) -> None:
        """Add many reports, shape (reports, numbers): row by row as `add`.

        Args:
            messages: The reports.
            clients: Who sent them, or None.

        Raises:
            InvalidParameterError: Not as many clients as reports.
        """
        if clients is not None:
            rows, names = list(messages) if isinstance(messages, Iterable) else [], list(clients)
            if len(rows) != len(names):
                raise InvalidParameterError("there must be as many clients as reports")
            for message, client in zip(rows, names, strict=True):
                self.add(message, client)
            return
        found = self._well_formed(messages)
        if found is not None and found.ndim == 2:
            self._sums += found.sum(axis=0)
            self.accepted += len(found)
            return
        for message in messages if isinstance(messages, Iterable) else ():
            self.add(message)

    def _well_formed(self, messages: object) -> Array | None:
        """Return reports as numbers if all of them are well formed."""
        try:
            array: NDArray[np.int64] = np.asarray(messages)
        except Exception:
            return None
        if array.dtype.kind not in "iu" or array.ndim not in {1, 2} or array.shape[-1] != self.plan.numbers:
            return None
        numbers = array.astype(np.float64)
        return numbers if (np.abs(numbers) <= self._limit).all() else None

    def merge(self, other: LocalServer) -> None:
        """Add what another server of the same plan has added up.

        Raises:
            DataTypeError: It is no server.
            InvalidParameterError: It is of another plan, has a client in common, or is a part of this one already.
        """
        if not isinstance(other, LocalServer):
            raise DataTypeError("other must be a LocalServer")
        if other.plan is not self.plan and other.plan.sums.digest != self.plan.sums.digest:
            raise InvalidParameterError("the servers have different plans")
        if self._parts & other._parts:
            raise InvalidParameterError("these reports were added before: a server is merged once, and not with itself")
        if self._clients & other._clients:
            raise InvalidParameterError("a client reported to both servers")
        self._sums += other._sums
        self._clients |= other._clients
        self._parts |= other._parts
        self.accepted += other.accepted

    def estimate(self) -> LocalEstimate:
        """Return what the reports so far say.

        Raises:
            InvalidParameterError: There are none.
        """
        if self.accepted == 0:
            raise InvalidParameterError("there are no reports yet")
        plan, w = self.plan, self.plan.survey.intervals
        spacing = 2.0**plan.sums.fitted.door.grid * plan.survey.counted_unit
        shares = np.cumsum(self._sums[:w]) * spacing / self.accepted
        level = None
        if plan.level is not None:
            low, high = plan.survey.bounds
            units = self._sums[w] * 2.0**plan.level.fitted.door.grid * plan.survey.counted_unit
            level = float(units) / self.accepted * (high - low)
        return LocalEstimate(plan, self.accepted, shares, level)

    def __copy__(self) -> NoReturn:
        raise InvalidParameterError("a server cannot be copied: both would count the same reports")

    def __repr__(self) -> str:
        return f"LocalServer({self.plan.survey!r}, accepted={self.accepted})"
