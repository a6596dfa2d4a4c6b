"""What clients are asked for: one number each, by way of a convex loss on a public grid.

The grid has w steps, `theta_j = low + j (high - low)/w`. A client with the value d sends, with noise, the increments of
`(1 + l'(theta_j; d))/2`, j = 1..w: numbers that are not negative and sum to at most 1. For `|theta - d|` that is a
single 1, in the cell of d. So two clients differ by at most the largest of `||C (e_a - e_b)||` and `||C e_a||`, C the
strategy of a running sum of w steps: the difference is a convex combination of such, and the norm is convex. One
running sum at the whole budget suffices: what lies to the right of theta_j is the rest.

Source: Fichtenberger, Henzinger and Upadhyay 2023, Section 5.6, after Smith, Thakurta and Upadhyay 2017. The paper uses
two counters at half the budget each, and leaves out a constant: see "Errata: Constant matters".
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from sordino._support.checks import integer, real
from sordino.errors import DataTypeError, InvalidParameterError
from sordino.privacy.participation import Pattern
from sordino.workloads.events.base import Change, EventWorkload, Property
from sordino.workloads.local.loss import LocalLoss

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from sordino import _core
    from sordino.privacy.units import Unit
    from sordino.workloads.base import Array, Spec

__all__ = ["LocalSurvey"]

_MOST_INTERVALS = 2**13
# Exact as a float.
MOST_CLIENTS = 2**53
_UNITS = 16  # bits of a fraction of a client


class LocalSurvey(EventWorkload):
    """One number of every client, for its distribution, or for the minimiser of a convex loss.

    Args:
        clients: Public number of clients that are asked: it sets the grid.
        bounds: Values and the parameter are between these; values beyond are clamped by the client.
        loss: `LocalLoss.absolute()` if None.
        intervals: w, steps of the grid; None for `ceil(epsilon sqrt(clients))`, by which the grid costs no more than
            the noise.

    Raises:
        DataTypeError: An argument is of the wrong type.
        InvalidParameterError: A number is out of range.
    """

    kind: ClassVar[str] = "local_survey"
    streamed: ClassVar[bool] = False

    def __init__(
        self,
        clients: int,
        bounds: tuple[float, float] = (0.0, 1.0),
        *,
        loss: LocalLoss | None = None,
        intervals: int | None = None,
    ) -> None:
        self.clients = integer("clients", clients, least=1, most=MOST_CLIENTS)
        try:
            low, high = bounds
        except (TypeError, ValueError):
            raise DataTypeError("bounds must be two numbers") from None
        low, high = real("bounds", low), real("bounds", high)
        if not low < high or not math.isfinite(high - low):
            raise InvalidParameterError("bounds must be two finite numbers, the first the smaller one")
        self.bounds = low, high
        self.loss = LocalLoss.absolute() if loss is None else loss
        if not isinstance(self.loss, LocalLoss):
            raise DataTypeError("loss must be a sordino.local.LocalLoss")
        self.length = None if intervals is None else integer("intervals", intervals, least=1, most=_MOST_INTERVALS)

    def with_intervals(self, rate: float) -> LocalSurvey:
        """Return the survey with the grid for so much privacy, unless it has one."""
        if self.length is not None:
            return self
        intervals = min(max(math.ceil(rate * math.sqrt(self.clients)), 2), _MOST_INTERVALS)
        return LocalSurvey(self.clients, self.bounds, loss=self.loss, intervals=intervals)

    @property
    def intervals(self) -> int:
        """w, steps of the grid.

        Raises:
            InvalidParameterError: It was not given, and the survey was not planned.
        """
        if self.length is None:
            raise InvalidParameterError("the grid is chosen by sordino.plan")
        return self.length

    @property
    def grid(self) -> Array:
        """The points theta_1, ..., theta_w."""
        low, high = self.bounds
        return low + (high - low) * np.arange(1, self.intervals + 1) / self.intervals

    @property
    def coordinates(self) -> int:
        """One running sum."""
        return 1

    @property
    def largest(self) -> int:
        """Units of one client."""
        return 1 if self.loss.name == "absolute" else 1 << _UNITS

    @property
    def counted_unit(self) -> float:
        """Clients a unit."""
        return 1.0 / self.largest

    def changes(self, unit: Unit, counters: _core.StreamPlan) -> tuple[Change, ...]:
        """Return what another value of a client changes: an exchange."""
        one = self.largest
        return ((Pattern(0, 1, 1, one * one, one, 1),),)

    def assumes(self, counters: _core.StreamPlan) -> Property:
        """Say which property of the strategy the sensitivity uses."""
        return "no negative products of columns" if counters.no_negative_products else "general"

    def protected(self, unit: Unit) -> str:
        """Say what is protected, as the subject of a sentence."""
        return "The value of every client"

    def check_loss(self) -> None:
        """Refuse a derivative that is none of a convex 1-Lipschitz loss, at some public values.

        Raises:
            InvalidParameterError: It is out of range, decreases, or has another shape than its argument.
        """
        for value in np.linspace(*self.bounds, 17).tolist():
            slopes = self._slopes(value)
            fits = slopes.shape == (self.intervals,) and (np.abs(slopes) <= 1.0 + 1e-9).all()  # not-a-number is not
            if not fits or (np.diff(slopes) < -1e-9).any():
                raise InvalidParameterError("the derivative of the loss must be from -1 to 1, and must not decrease")

    def _slopes(self, value: float) -> Array:
        try:
            return np.asarray(self.loss.derivative(self.grid, value), dtype=np.float64)
        except Exception as error:
            # The value may be a client's: what the loss says of it is not passed on.
            raise InvalidParameterError(f"the derivative of the loss raised {type(error).__name__}") from None

    def _slopes_or_none(self, value: float) -> Array | None:
        """Return slopes that fit, whatever the loss says of a private value; None if it fails."""
        try:
            slopes = self._slopes(value)
        except Exception:
            return None
        if slopes.shape != (self.intervals,):
            return None
        clipped: Array = np.clip(np.nan_to_num(slopes), -1.0, 1.0)
        return clipped

    def increments(self, values: Array) -> NDArray[np.int64]:
        """Return what clients with these values send but for noise, in units; shape (clients, intervals).

        Values beyond the bounds are clamped; not-a-number is a null item, all zeros, and so is a value for which the
        loss fails. Nothing is refused here: that would depend on the value.
        """
        low, high = self.bounds
        rows = np.zeros((len(values), self.intervals), dtype=np.int64)
        known = np.flatnonzero(~np.isnan(values))
        clamped = np.clip(values[known], low, high)
        if self.loss.name == "absolute":
            # The first point of the grid at or above the value.
            cells = np.searchsorted(self.grid, clamped, side="left")
            rows[known, np.minimum(cells, self.intervals - 1)] = 1
            return rows
        for place, value in zip(known.tolist(), clamped.tolist(), strict=True):
            slopes = self._slopes_or_none(value)
            if slopes is None:
                continue
            # Rounded sums that do not decrease: increments that are not negative and sum to at most the units of one
            # client, whatever the slopes.
            sums = np.maximum.accumulate(np.floor((1.0 + slopes) / 2.0 * self.largest + 0.5))
            rows[place] = np.diff(sums, prepend=0.0)
        return rows

    def starts(self, values: Array) -> NDArray[np.int64]:
        """Return the loss of each value at the lower bound, in units of the length of the bounds; shape (clients,)."""
        low, high = self.bounds
        assert self.loss.value is not None
        clamped = np.clip(np.nan_to_num(values, nan=low), low, high)
        losses = np.array([self._loss_or_zero(value) for value in clamped.tolist()])
        losses[np.isnan(values)] = 0.0
        shares = np.clip(np.nan_to_num(losses / (high - low)), 0.0, 1.0)
        return np.floor(shares * (1 << _UNITS) + 0.5).astype(np.int64)

    def _loss_or_zero(self, value: float) -> float:
        assert self.loss.value is not None
        try:
            return float(self.loss.value(self.bounds[0], value))
        except Exception:
            return 0.0

    def encoder(self) -> None:
        """Return None: clients encode."""
        return

    def spec(self) -> Spec:
        """Return the constructor's arguments."""
        return {
            "clients": self.clients,
            "bounds": list(self.bounds),
            "loss": self.loss.to_json(),
            "intervals": self.length,
        }

    def _shown(self) -> Mapping[str, Any]:
        return {"clients": self.clients, "bounds": self.bounds, "loss": self.loss.name, "intervals": self.length}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LocalSurvey) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[Any, ...]:
        return self.clients, self.bounds, self.loss, self.length

    @classmethod
    def _from_spec(cls, spec: Mapping[str, Any]) -> Self:
        low, high = spec["bounds"]
        loss = LocalLoss.from_json(spec["loss"])
        return cls(spec["clients"], (low, high), loss=loss, intervals=spec["intervals"])
