"""A client's row as a running sum with the noise of a stream."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from sordino.accuracy.half_widths import gaussian_half_width
from sordino.mechanisms.fits import AnyDoor
from sordino.mechanisms.local.part import SurveyPart
from sordino.mechanisms.stream.fit import StreamFit
from sordino.workloads.base import Array

__all__ = ["RunningSums"]

# No honest report is further off, in standard deviations: less likely than e^-800, for Laplace noise e^-40.
_FURTHEST = 40.0


@dataclass(frozen=True, eq=False)
class RunningSums(SurveyPart):
    """Reports of noisy increments: a number a step.

    Attributes:
        fit: The running sum of one client.
        steps: Its length.
        whole: Units of one client.
    """

    said: ClassVar[str] = "one running sum of {} steps a client"

    fit: StreamFit
    steps: int
    whole: int

    @property
    def name(self) -> str:
        """Full name of the mechanism."""
        return self.fit.name

    @property
    def numbers(self) -> int:
        """Numbers that a client sends."""
        return self.steps

    @property
    def doors(self) -> tuple[AnyDoor, ...]:
        """Lattice and noise."""
        return self.fit.doors

    @property
    def parameters(self) -> Any:
        """What a file says so that the same is fitted again."""
        return self.fit.details()["parameters"]

    def std(self) -> Array:
        """Return the standard deviation of an estimate from one client, by noise alone."""
        return self.fit.std(np.arange(1, self.steps + 1))

    def half_width(self, level: float, clients: int) -> Array:
        """Return half widths of intervals, all steps together."""
        return self._widths(self.std(), level, clients)

    def widest(self, level: float, clients: int) -> float:
        """Return the largest half width: that of the largest error."""
        return float(self._widths(self.std().max(keepdims=True), level, clients)[0])

    def _widths(self, deviations: Array, level: float, clients: int) -> Array:
        """Return the half widths of estimates with these errors of one client."""
        deviations = deviations / math.sqrt(clients)
        if self.fit.mechanism.law == "gaussian":
            return gaussian_half_width(deviations, level, self.steps)
        noise = self.fit.laplace.times(1.0 / self.whole / clients)
        known: dict[int, float] = {}

        def width(deviation: float) -> float:
            variates = max(math.ceil(deviation**2 / (2.0 * noise.scale**2) - 1e-6), 1)
            if variates not in known:
                known[variates] = noise.of_equal(variates, level, self.steps)
            return known[variates]

        return np.array([width(float(d)) for d in deviations])

    @cached_property
    def _limit(self) -> float:
        door = self.fit.door
        widest = self.fit.strategy.variances(np.arange(1, self.steps + 1, dtype=np.uint64)).max()
        # An increment is a difference of two sums.
        return _FURTHEST * 2.0 * math.sqrt(float(widest)) * door.quarter_units / 4.0 + self.whole * 2.0**-door.grid

    def are_honest(self, reports: Array) -> bool:
        """Return whether honest clients may have sent all of these numbers."""
        return bool((np.abs(reports) <= self._limit).all())

    def sums(self, reports: Array) -> Array:
        """Return the sums of reports."""
        sums: Array = reports.sum(axis=0)
        return sums

    def estimate(self, sums: Array, clients: int) -> Array:
        """Return the estimated running sums of the mean client."""
        return np.cumsum(sums) * (2.0**self.fit.door.grid / self.whole) / clients
