"""What randomised responses have in common: they lie with a known probability, and their cost is pure."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from sordino.accuracy.half_widths import bernstein_half_width
from sordino.errors import UnsupportedMechanismError
from sordino.mechanisms.fits import AnyDoor
from sordino.mechanisms.local.part import SurveyPart
from sordino.privacy.calibration import flips_of_pure
from sordino.workloads.base import Array
from sordino.workloads.local.survey import MOST_CLIENTS

__all__ = ["Response"]


@dataclass(frozen=True)
class _Flips:
    """Randomised response as a door: in the place of an amount of noise, the probability of a lie in units of 2^-40."""

    quarter_units: int

    # Probabilities are in units of 2^-40.
    grid: ClassVar[int] = -40
    # What is told is true or not.
    sensitivity: ClassVar[tuple[float, float, float]] = (1.0, 0.0, 0.0)

    @property
    def noise(self) -> float:
        return self.quarter_units * 2.0**self.grid

    @property
    def scale(self) -> float:
        return self.noise


@dataclass(frozen=True, eq=False)
class Response(SurveyPart):
    """Reports that lie with a known probability.

    Attributes:
        epsilon: What a report costs.
        steps: Steps of the row.
        whole: Units of one client.
    """

    epsilon: float
    steps: int
    whole: int

    @classmethod
    @abstractmethod
    def candidates(cls, epsilon: float, steps: int, whole: int) -> Iterable[Self]:
        """Return the reports that are tried."""

    @classmethod
    def best(cls, epsilon: float, steps: int, whole: int) -> Self:
        """Return the reports with the least largest error.

        Raises:
            UnsupportedMechanismError: The lies of all of them would be as likely as without a value.
        """
        found = [made for made in cls.candidates(epsilon, steps, whole) if made.says_something]
        if not found:
            raise UnsupportedMechanismError("epsilon is too small for randomised response")
        return min(found, key=lambda made: made.std().max())

    @property
    @abstractmethod
    def odds(self) -> Fraction:
        """Odds of a lie where nothing is said of the value."""

    @property
    @abstractmethod
    def largest(self) -> float:
        """How far an estimate from one client is off at most."""

    @cached_property
    def _flips(self) -> _Flips:
        return _Flips(flips_of_pure(self.epsilon, self.odds))

    @property
    def flips(self) -> int:
        """Probability of a lie, in units of 2^-40."""
        return self._flips.quarter_units

    @property
    def says_something(self) -> bool:
        """Whether lies are less likely than where nothing is said of the value."""
        return self.flips * (1 + self.odds) < 2**40 * self.odds

    @property
    def lie(self) -> float:
        """Probability of a lie."""
        return self._flips.noise

    @property
    def doors(self) -> tuple[AnyDoor, ...]:
        """The probability of a lie."""
        return (self._flips,)

    @property
    def bits(self) -> int:
        """Bits of a share."""
        return self.whole.bit_length() - 1

    def enough(self, level: float, width: float, clients: int) -> int:
        """Return how many clients have no wider intervals, to one digit: of few, widths fall faster than the root."""
        digits = (digit * 10**power for power in range(16) for digit in range(1, 10))
        return next((n for n in digits if self.widest(level, n) <= width), MOST_CLIENTS)

    def half_width(self, level: float, clients: int) -> Array:
        """Return half widths of intervals, all steps together.

        An estimate is a mean of independent numbers of which variance and range are known.
        """
        widths = bernstein_half_width(self.std() / np.sqrt(clients), self.largest / clients, level, self.steps)
        return np.minimum(widths, self.largest)
