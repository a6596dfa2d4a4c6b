"""Laplace noise of one size on every measured number: half widths of what is added up of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sordino.accuracy.half_widths import equal_laplace_half_width, laplace_sum_half_width
from sordino.accuracy.lattice_half_widths import discrete_sum_half_width, equal_discrete_half_width, share_of_pole

__all__ = ["EqualNoise"]


@dataclass(frozen=True)
class EqualNoise:
    """Laplace noise of a scale, or discrete Laplace noise: a step times integers of a rate.

    Attributes:
        scale: Of Laplace noise with this variance.
        step: Of discrete noise; None of noise on a fine lattice.
        rate: Of discrete noise, else 0.
    """

    scale: float
    step: float | None = None
    rate: float = 0.0

    def times(self, factor: float) -> EqualNoise:
        """Return the noise of numbers that count for `factor` each."""
        return EqualNoise(self.scale * factor, None if self.step is None else self.step * factor, self.rate)

    def of_equal(self, variates: int, level: float, answers: int = 1) -> float:
        """Return the half width of an interval for the sum of so many numbers' noise.

        Raises:
            InvalidParameterError: `level` or `answers` is out of range.
        """
        if self.step is None:
            return equal_laplace_half_width(self.scale, variates, level, answers)
        return self.step * equal_discrete_half_width(self.rate, variates, level, answers)

    def of_weights(self, weights: ArrayLike, level: float, answers: int = 1) -> float:
        """Return the half width of an interval for a sum in which numbers have these magnitudes of weights.

        Raises:
            InvalidParameterError: `level` or `answers` is out of range.
        """
        found = np.asarray(weights, dtype=np.float64)
        if self.step is None:
            return self.scale * laplace_sum_half_width(found, level, answers)
        return self.step * discrete_sum_half_width(found, np.full(len(found), self.rate), level, answers)

    def chernoff(self, variates: int, log_odds: float) -> float:
        """Return x with `P(|sum of so many numbers' noise| > x) <= 2 exp(-log_odds)`, by the best of some points."""
        # The moment generating function is finite below 1 over the scale of Laplace noise of the same privacy.
        scale = self.scale if self.step is None else self.step / self.rate
        points = np.linspace(1e-4, 1.0 - 1e-4, 4096)
        small = math.sqrt(log_odds / max(variates, 1))
        if small < 0.5:
            points = np.concatenate([points, small * np.linspace(0.2, 1.5, 256)])
        return scale * float(((log_odds + variates * self._log_moment(points)) / points).min())

    def _log_moment(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return log E exp(s Y) of one number at these s, in units of what is finite."""
        share = points * points if self.step is None else share_of_pole(points * self.rate, self.rate)
        return np.asarray(-np.log1p(-share))
