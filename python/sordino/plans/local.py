"""How clients report, and what a server makes of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from sordino import _core
from sordino._support.checks import integer
from sordino._support.private_numbers import reals_or
from sordino.accuracy.half_widths import equal_laplace_half_width, gaussian_half_width
from sordino.errors import ShapeError
from sordino.plans.stream import StreamPlan
from sordino.privacy.calibration import cost as calibrated_cost
from sordino.privacy.ledger import released
from sordino.privacy.wording import promise_of
from sordino.workloads.local.survey import MOST_CLIENTS

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from sordino.privacy.costs import Cost
    from sordino.privacy.guarantees import Privacy
    from sordino.privacy.ledger import Ledger
    from sordino.releases.local.server import LocalServer
    from sordino.workloads.base import Array
    from sordino.workloads.local.survey import LocalSurvey

__all__ = ["LocalPlan"]

# Clients that are encoded at once: their noise is a stream of so many coordinates.
_CHUNK = 2**14


@dataclass(frozen=True, eq=False)
class LocalPlan:
    """How every client reports its value: made by `sordino.plan_local`, costs nothing.

    Attributes:
        survey: What is asked, with its grid.
        privacy: What every report guarantees to its client, against everybody, the server included.
        sums: The plan of one client's running sum.
        level: The plan of the loss at the lower bound, for losses that have one.
    """

    survey: LocalSurvey
    privacy: Privacy
    sums: StreamPlan = field(repr=False)
    level: StreamPlan | None = field(default=None, repr=False)

    @property
    def mechanism(self) -> str:
        """Full name of the mechanism."""
        return self.sums.mechanism

    @property
    def cost(self) -> Cost:
        """What one report costs its client."""
        return calibrated_cost(self.privacy, self.sums.fitted.mechanism.law)

    @property
    def numbers(self) -> int:
        """Numbers in a message: the steps of the grid, and one for the level."""
        return self.survey.intervals + (self.level is not None)

    @property
    def message_bytes(self) -> int:
        """Bytes of a message."""
        return 8 * self.numbers

    @property
    def promise(self) -> str:
        """The guarantee for one unit, without the unit: '1-differential privacy'."""
        return promise_of(self.cost, 1, self.privacy)

    def guarantee(self) -> str:
        """Return the guarantee in one plain sentence."""
        return f"{self.survey.protected(self.sums.unit)} is protected by {self.promise}, by its report alone."

    def encode_client(self, value: float, *, ledger: Ledger | None = None) -> NDArray[np.int64]:
        """Return the report of one client: what it may send to anybody.

        Runs on the client. A second report of the same value costs as much again.

        Args:
            value: The client's number; beyond the bounds it is clamped, and not-a-number is a null item: noise alone.
            ledger: The client's own budget, charged; None leaves the report unaccounted.

        Returns:
            Integers, shape (numbers,).

        Raises:
            BudgetExceededError: The ledger's total would be exceeded.
            EntropyError: The operating system gives no randomness.
        """
        number = reals_or("value", value)
        if number.ndim:
            raise ShapeError("a client has one value")
        message: NDArray[np.int64] = self.encode_clients(number.reshape(1), ledger=ledger)[0]
        return message

    def encode_clients(self, values: object, *, ledger: Ledger | None = None) -> NDArray[np.int64]:
        """Return the reports of many clients: for a collector that they trust, and for trying out.

        Args:
            values: Shape (clients,).
            ledger: Charged once: the clients are different people.

        Returns:
            Integers, shape (clients, numbers).

        Raises:
            DataTypeError: Not numbers.
            ShapeError: Not one-dimensional.
            BudgetExceededError: The ledger's total would be exceeded.
            EntropyError: The operating system gives no randomness.
        """
        array = reals_or("values", values)
        if array.ndim != 1:
            raise ShapeError("values must be one-dimensional")
        out = np.empty((len(array), self.numbers), dtype=np.int64)

        def prepare(key: bytes | None) -> Callable[[], NDArray[np.int64]]:
            return lambda: self._encoded(array, key, out)

        return released(ledger, None, self.cost, "one report", lambda _record: None, prepare)

    def _encoded(self, array: Array, key: bytes | None, out: NDArray[np.int64]) -> NDArray[np.int64]:
        w = self.survey.intervals
        for part, first in enumerate(range(0, len(array), _CHUNK)):
            chunk = slice(first, first + _CHUNK)
            rows = self.survey.increments(array[chunk])
            out[chunk, :w] = _noisy(self.sums, rows.T, _derived(key, 2 * part)).T
            if self.level is not None:
                starts = self.survey.starts(array[chunk])
                out[chunk, w] = _noisy(self.level, starts[None, :], _derived(key, 2 * part + 1))[0]
        return out

    def server(self) -> LocalServer:
        """Return a server that adds up reports."""
        from sordino.releases.local.server import LocalServer  # noqa: PLC0415 - it reads plans

        return LocalServer(self)

    def std(self, clients: int | None = None) -> Array:
        """Return the standard deviation, by noise alone, of the estimated share of clients at or below each grid point.

        Args:
            clients: Number of reports; the declared number if None.

        Raises:
            DataTypeError: The number is no integer.
            InvalidParameterError: The number is below 1.
        """
        steps = np.arange(1, self.survey.intervals + 1, dtype=np.uint64)
        return self.sums.std(steps) * self.survey.counted_unit / math.sqrt(self._number(clients))

    def _number(self, clients: int | None) -> int:
        return self.survey.clients if clients is None else integer("clients", clients, least=1, most=MOST_CLIENTS)

    def half_width(self, level: float, clients: int | None = None) -> Array:
        """Return half widths of intervals for the shares of the asked clients, all grid points together.

        Args:
            level: Strictly between 0 and 1.
            clients: Number of reports; the declared number if None.

        Raises:
            InvalidParameterError: The level is out of range.
        """
        answers, deviations = self.survey.intervals, self.std(clients)
        if self.sums.fitted.mechanism.law == "gaussian":
            return gaussian_half_width(deviations, level, answers)
        number = self._number(clients)
        scale = self.sums.fitted.door.noise * self.survey.counted_unit / number
        known: dict[int, float] = {}

        def width(deviation: float) -> float:
            variates = max(math.ceil(deviation**2 / (2.0 * scale**2) - 1e-6), 1)
            if variates not in known:
                known[variates] = equal_laplace_half_width(scale, variates, level, answers)
            return known[variates]

        return np.array([width(float(d)) for d in deviations])

    @property
    def max_stderr(self) -> float:
        """Largest standard deviation of an estimated share, by noise alone."""
        return float(self.std().max())

    def save(self, path: str | Path) -> Path:
        """Write the plan as JSON, for clients and server to share.

        Raises:
            InvalidParameterError: The loss is given by functions, which no file holds.
            InputFileError: The file cannot be written.
        """
        from sordino.plans.local_file import save_local  # noqa: PLC0415 - it reads plans

        return save_local(self, path)

    @staticmethod
    def load(path: str | Path) -> LocalPlan:
        """Read a plan and verify it: clients need not trust who sent it, only what it says it guarantees.

        Raises:
            InputFileError: The file cannot be read.
            PlanFileError: The file is no local plan, was altered, or understates noise or cost.
        """
        from sordino.plans.local_file import load_local  # noqa: PLC0415 - it makes plans

        return load_local(path)

    def explain(self) -> str:
        """Return what will happen and why, in a few lines of text."""
        n, w = self.survey.clients, self.survey.intervals
        return "\n".join(
            [
                repr(self.survey),
                f"mechanism      {self.mechanism}, one running sum of {w} steps a client",
                f"guarantee      {self.guarantee()}",
                f"message        {self.numbers} numbers, {self.message_bytes} bytes",
                f"error          standard error of a share at most {self.max_stderr:.4g} by noise, "
                f"{0.5 / math.sqrt(n):.2g} by sampling, grid 1/{w}",
            ]
        )

    def __repr__(self) -> str:
        return f"LocalPlan({self.survey!r}, {self.privacy!r}, mechanism={self.mechanism!r})"


def _noisy(plan: StreamPlan, rows: NDArray[np.int64], key: bytes | None) -> NDArray[np.int64]:
    """Return the lattice increments that streams of these items publish, a column each."""
    fitted = plan.fitted
    stream = _core.Stream(fitted.plan, fitted.door, rows.shape[1], key)
    try:
        stream.prepare(np.ascontiguousarray(rows).reshape(-1))
        held = stream.held()
    finally:
        stream.close()
    assert held is not None
    units: NDArray[np.int64] = held[3].reshape(rows.shape)
    return units


def _derived(key: bytes | None, part: int) -> bytes | None:
    """Return another known key for every part, for tests."""
    return None if key is None else bytes(a ^ b for a, b in zip(key, part.to_bytes(32, "little"), strict=True))
