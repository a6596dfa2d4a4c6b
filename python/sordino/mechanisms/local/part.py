"""What a client sends of one row of shares, and what a server makes of many."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from sordino.mechanisms.fits import AnyDoor
from sordino.workloads.base import Array

__all__ = ["SurveyPart"]


class SurveyPart(ABC):
    """How clients report a row of shares that sum to at most one.

    Attributes:
        steps: Running sums of the row that are estimated.
    """

    steps: int

    # What is said of it, for a row of so many steps.
    said: ClassVar[str]

    if TYPE_CHECKING:

        @property
        def name(self) -> str:
            """Full name of the mechanism."""

        @property
        def numbers(self) -> int:
            """Numbers that a client sends."""

    @property
    @abstractmethod
    def doors(self) -> tuple[AnyDoor, ...]:
        """Lattice and noise."""

    @property
    @abstractmethod
    def parameters(self) -> Any:
        """What a file says so that the same is fitted again."""

    @abstractmethod
    def std(self) -> Array:
        """Return the standard deviation, by noise alone, of an estimate from one client, shape (steps,)."""

    @abstractmethod
    def half_width(self, level: float, clients: int) -> Array:
        """Return half widths of intervals for the estimates from so many clients, all steps together."""

    def widest(self, level: float, clients: int) -> float:
        """Return the largest of these half widths."""
        return float(self.half_width(level, clients).max())

    def enough(self, level: float, width: float, clients: int) -> int:
        """Return how many clients have no wider intervals, to one digit and rounded up; so many have wider ones.

        Widths fall with the root of the number.
        """
        found = clients * (self.widest(level, clients) / width) ** 2
        digit = 10.0 ** math.floor(math.log10(found))
        return round(math.ceil(found / digit) * digit)

    @abstractmethod
    def are_honest(self, reports: Array) -> bool:
        """Return whether honest clients may have sent all of these numbers, shape (..., numbers)."""

    @abstractmethod
    def sums(self, reports: Array) -> Array:
        """Return what is added up of honest reports, shape (reports, numbers): whole numbers, shape (steps,)."""

    @abstractmethod
    def estimate(self, sums: Array, clients: int) -> Array:
        """Return the estimated mean of the running sums, shape (steps,), without bias."""
