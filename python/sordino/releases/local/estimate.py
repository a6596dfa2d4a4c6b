"""What reports say: distribution, quantiles, minimiser and risk."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sordino import _core
from sordino._support.checks import flag, open_unit, real
from sordino.errors import InvalidParameterError, UnsupportedMechanismError
from sordino.releases.interval import Interval, interval_around

if TYPE_CHECKING:
    from sordino.mechanisms.local.family import SurveyFit
    from sordino.workloads.base import Array

__all__ = ["LocalEstimate"]


@dataclass(frozen=True, eq=False)
class LocalEstimate:
    """What reports say; `LocalServer.estimate` makes it. All of it is post-processing.

    Attributes:
        fit: How clients reported.
        clients: Number of reports.
        shares: Estimated mean of `(1 + l'(theta_j; d))/2` at every point of the grid: for the absolute loss the share
            of clients at or below it. Unbiased; may leave [0, 1] and decrease.
    """

    fit: SurveyFit
    clients: int
    shares: Array = field(repr=False)
    _level: float | None = field(default=None, repr=False)

    @property
    def grid(self) -> Array:
        """The points theta_1, ..., theta_w."""
        return self.fit.survey.grid

    def _require_absolute(self) -> None:
        if self.fit.survey.loss.name != "absolute":
            raise UnsupportedMechanismError("only reports of the absolute loss tell the distribution")

    @cached_property
    def cdf(self) -> Array:
        """Estimated distribution function at the grid: the shares, made monotone and put into [0, 1].

        Raises:
            UnsupportedMechanismError: The loss is not the absolute one.
        """
        self._require_absolute()
        return np.clip(_core.isotonic(np.ascontiguousarray(self.shares)), 0.0, 1.0)

    @property
    def derivative(self) -> Array:
        """Estimated derivative of the risk at the grid: `2 shares - 1`."""
        return 2.0 * self.shares - 1.0

    def quantile(self, q: float) -> float:
        """Return the estimated q-quantile, between grid points by interpolation.

        Raises:
            InvalidParameterError: q is not strictly between 0 and 1.
            UnsupportedMechanismError: The loss is not the absolute one.
        """
        q, cdf, grid = open_unit("q", q), self.cdf, self.grid
        place = int(np.searchsorted(cdf, q, side="left"))
        if place == len(cdf):
            return float(grid[-1])
        low = self.fit.survey.bounds[0] if place == 0 else float(grid[place - 1])
        before, after = (0.0 if place == 0 else float(cdf[place - 1])), float(cdf[place])
        part = (q - before) / (after - before) if after > before else 1.0
        return low + (float(grid[place]) - low) * min(max(part, 0.0), 1.0)

    @property
    def median(self) -> float:
        """The estimated median.

        Raises:
            UnsupportedMechanismError: The loss is not the absolute one.
        """
        return self.quantile(0.5)

    @property
    def level(self) -> float | None:
        """Estimated risk at the lower bound: for the absolute loss the mean distance from it, E[d] - low.

        None for a loss without `value`: then risks are known up to this constant.
        """
        if self.fit.survey.loss.name != "absolute":
            return self._level
        low, high = self.fit.survey.bounds
        w = self.fit.survey.intervals
        # Values lie in the middle of their cells.
        return (float(np.mean(1.0 - self.shares)) + 0.5 / w) * (high - low)

    @cached_property
    def risk(self) -> Array:
        """Estimated mean loss at the lower bound and at every point of the grid, shape (w + 1,).

        `level + integral of the derivative`, by trapezoids; without a level it begins with 0.
        """
        low, high = self.fit.survey.bounds
        step = (high - low) / self.fit.survey.intervals
        first = -1.0 if self.fit.survey.loss.name == "absolute" else self.derivative[0]
        slopes = np.concatenate([[first], self.derivative])
        areas = np.concatenate([[0.0], np.cumsum((slopes[1:] + slopes[:-1]) / 2.0) * step])
        return np.asarray(areas + (self.level or 0.0))

    def risk_at(self, theta: float) -> float:
        """Return the estimated mean loss of a parameter, between grid points by interpolation.

        Raises:
            DataTypeError: No number.
            InvalidParameterError: It is beyond the bounds.
        """
        low, high = self.fit.survey.bounds
        value = real("theta", theta)
        if not low <= value <= high:
            raise InvalidParameterError("theta must be within the bounds")
        return float(np.interp(value, np.concatenate([[low], self.grid]), self.risk))

    @property
    def minimiser(self) -> float:
        """The parameter with the least estimated risk.

        Where the derivative, made monotone, changes its sign; so noise has no part in it but near there.
        """
        slopes = _core.isotonic(np.ascontiguousarray(self.derivative))
        place = int(np.searchsorted(slopes, 0.0, side="left"))
        grid = np.concatenate([[self.fit.survey.bounds[0]], self.grid])
        if place == 0 or place == len(slopes):
            return float(grid[place])
        before, after = float(slopes[place - 1]), float(slopes[place])
        return float(grid[place] + (grid[place + 1] - grid[place]) * -before / (after - before))

    @property
    def stderr(self) -> Array:
        """Standard deviation of `shares` by noise, shape (w,)."""
        return self.fit.std(self.clients)

    def interval(self, level: float, *, population: bool = False) -> Interval:
        """Return intervals for the shares, all grid points together.

        Args:
            level: Strictly between 0 and 1.
            population: Whether the clients are a sample, and the intervals shall hold for where it came from; half of
                the error probability then goes to sampling (Dvoretzky, Kiefer, Wolfowitz, Massart). Absolute loss only.

        Raises:
            InvalidParameterError: The level is out of range.
            UnsupportedMechanismError: `population` for another loss.
        """
        level = open_unit("level", level)
        if flag("population", population):
            self._require_absolute()
            half = (1.0 - level) / 2.0
            sampling = math.sqrt(math.log(2.0 / half) / (2.0 * self.clients))
            width = self.fit.half_width(1.0 - half, self.clients) + sampling
        else:
            width = self.fit.half_width(level, self.clients)
        return interval_around(self.shares, width, level, simultaneous=True)

    def __repr__(self) -> str:
        return f"LocalEstimate({self.fit.survey!r}, clients={self.clients})"
