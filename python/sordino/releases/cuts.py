"""Weights of cuts with valid intervals: of cuts chosen beforehand, and of cuts chosen after looking at the graph."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sordino._support.checks import flag, integer, open_unit
from sordino.accuracy.equal_noise import EqualNoise
from sordino.accuracy.half_widths import gaussian_half_width
from sordino.releases.interval import Interval, interval_around

if TYPE_CHECKING:
    from sordino.mechanisms.stream.fit import StreamFit

__all__ = ["Cut", "Widths"]


def _log_binomial(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


@dataclass(frozen=True)
class Widths:
    """Half widths of intervals for sums of the noise of so many pairs.

    Attributes:
        vertices: n.
        steps: T, the steps over which an interval may be asked to hold.
        stderr: Standard deviation of one pair's weight.
        laplace: The Laplace variates in it, and their number; None for Gaussian noise.
    """

    vertices: int
    steps: int
    stderr: float
    laplace: tuple[EqualNoise, int] | None

    @staticmethod
    def of(fit: StreamFit, step: int) -> Widths:
        """Return the widths of a stream of pairs at a step."""
        stderr, laplace = float(fit.std([step])[0]), None
        if fit.mechanism.law == "laplace":
            noise = fit.laplace.times(fit.counted_unit)
            laplace = noise, max(math.ceil(stderr**2 / (2.0 * noise.scale**2) - 1e-6), 1)
        return Widths(fit.events.vertices, min(fit.steps, 2**40), stderr, laplace)  # type: ignore[union-attr]

    def beforehand(self, pairs: int, level: float, answers: int = 1) -> float:
        """Return the half width for sums over `pairs` pairs, of which `answers` chosen beforehand hold together."""
        if self.laplace is None:
            return gaussian_half_width(self.stderr * math.sqrt(pairs), level, answers)
        noise, variates = self.laplace
        return noise.of_equal(variates * pairs, level, answers)

    def afterwards(self, side: int, other: int, level: float, *, every_step: bool = False) -> float:
        """Return the half width that holds for all cuts of all sizes together, for one of these sizes.

        By the union bound over the cuts of the same sizes, over the sizes, and over the steps if wanted: with
        probability `level` every |error| is at most

            s sqrt(2 |S| |P| (ln(C(n, |S|) C(n - |S|, |P|)) + ln(2 n^2 T/(1 - level)))),

        without C(n - |S|, |P|) and one n if the two sides are all vertices. (No bound of the order |S| sqrt(|S| + |P|)
        holds for all pairs of sets: P may be the vertices whose noise towards S is positive.)
        """
        n, whole = self.vertices, side + other == self.vertices
        log_count = _log_binomial(n, side) + math.log(n)
        if not whole:
            log_count += _log_binomial(n - side, other) + math.log(n)
        if every_step:
            log_count += math.log(self.steps)
        log_odds = log_count + math.log(2.0) - math.log1p(-open_unit("level", level))
        if self.laplace is None:
            return self.stderr * math.sqrt(side * other) * math.sqrt(2.0 * log_odds)
        noise, variates = self.laplace
        return noise.chernoff(variates * side * other, log_odds)


@dataclass(frozen=True)
class Cut:
    """The noisy weight between two sets of vertices.

    Attributes:
        value: The sum of the noisy weights.
        side: Number of vertices on one side.
        other: Number of vertices on the other.
    """

    value: float
    side: int
    other: int
    _widths: Widths = field(repr=False)

    @property
    def stderr(self) -> float:
        """Standard deviation: that of a pair times sqrt(|S| |P|)."""
        return self._widths.stderr * math.sqrt(self.side * self.other)

    def interval(self, level: float, answers: int = 1) -> Interval:
        """Return a confidence interval for a cut that was chosen before looking at the graph.

        Args:
            level: Strictly between 0 and 1.
            answers: How many such intervals shall hold together.

        Raises:
            InvalidParameterError: The level or the number is out of range.
        """
        width = self._widths.beforehand(self.side * self.other, level, integer("answers", answers, least=1))
        return interval_around(self.value, width, level, answers > 1, rounding=0.0)

    def interval_afterwards(self, level: float, *, every_step: bool = False) -> Interval:
        """Return an interval that holds for this cut and all others together, however they were chosen.

        Args:
            level: Strictly between 0 and 1.
            every_step: Whether it shall hold at all steps of the stream together.

        Raises:
            DataTypeError: `every_step` is neither True nor False.
            InvalidParameterError: The level is out of range.
        """
        width = self._widths.afterwards(self.side, self.other, level, every_step=flag("every_step", every_step))
        return interval_around(self.value, width, level, simultaneous=True, rounding=0.0)
