"""A client's row as a set of places, that likely has its own: for large epsilon, and few steps.

Source: Wang, Huang, Wang, Nie, Xiong, Zhao and others 2016 (arXiv:1607.08025); Ye and Barg 2018 (arXiv:1702.00610). One
place is generalised randomised response.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np

from sordino.mechanisms.local.response import Response
from sordino.workloads.base import Array

__all__ = ["Subsets"]

# Sizes that are tried, at most.
_TRIED = 48


@dataclass(frozen=True, eq=False)
class Subsets(Response):
    """Reports of `size` places of the steps, or of none behind them.

    Attributes:
        size: Places that a client tells.
    """

    name: ClassVar[str] = "subset-selection"
    said: ClassVar[str] = "places of which one is likely its own, of {} and none, a client"

    size: int

    @classmethod
    def candidates(cls, epsilon: float, steps: int, whole: int) -> Iterator[Subsets]:
        """Yield sizes up to beyond the best for single places, which is near."""
        likely = (steps + 1) / (1.0 + math.exp(min(epsilon, 100.0)))
        last = min(steps, 2 * math.ceil(likely) + 2)
        for size in np.unique(np.linspace(1, last, min(last, _TRIED)).astype(int)).tolist():
            yield Subsets(epsilon, steps, whole, size)

    @property
    def parameters(self) -> Any:
        """How many places are told."""
        return {"size": self.size}

    @property
    def odds(self) -> Fraction:
        """Sets without a place over sets with it."""
        return Fraction(self.steps + 1 - self.size, self.size)

    @property
    def numbers(self) -> int:
        """Numbers that a client sends."""
        return self.size

    @property
    def _told(self) -> float:
        """Probability that another place is told."""
        return (self.size - 1.0 + self.lie) / self.steps

    @property
    def _contrast(self) -> float:
        return 1.0 - self.lie - self._told

    @property
    def largest(self) -> float:
        """How far an estimate from one client is off at most."""
        return self.size / self._contrast

    def std(self) -> Array:
        """Return the largest standard deviation of an estimate from one client, by what its value may be."""
        steps = np.arange(1.0, self.steps + 1.0)
        others = (_of_others(self.steps, self.size - 1, steps), _of_others(self.steps, self.size, steps))
        rest = (_of_others(self.steps, self.size - 1, steps - 1), _of_others(self.steps, self.size, steps - 1))
        largest = np.maximum(self._variance(*rest, 1.0), self._variance(*others, 0.0))
        drawn = 0.0 if self.whole == 1 else 0.25
        deviations: Array = np.sqrt(largest / self._contrast**2 + drawn)
        return deviations

    def _variance(self, true: _Moments, lie: _Moments, own: float) -> Array:
        """Return the variance of how many of the first places are told, of which the client's is `own`."""
        q = self.lie
        variance: Array = (
            (1.0 - q) * true.variance + q * lie.variance + q * (1.0 - q) * (true.mean + own - lie.mean) ** 2
        )
        return variance

    def are_honest(self, reports: Array) -> bool:
        """Return whether honest clients may have sent all of these numbers: places in order."""
        return bool(((reports >= 0) & (reports <= self.steps)).all() and (np.diff(reports, axis=-1) > 0).all())

    def sums(self, reports: Array) -> Array:
        """Return how often every place was told."""
        return np.bincount(reports.astype(np.int64).ravel(), minlength=self.steps + 1)[:-1].astype(np.float64)

    def estimate(self, sums: Array, clients: int) -> Array:
        """Return the estimated running sums of the mean client."""
        return np.cumsum(sums / clients - self._told) / self._contrast


class _Moments(NamedTuple):
    """Mean and variance of a number."""

    mean: Array
    variance: Array


def _of_others(places: int, drawn: int, marked: Array) -> _Moments:
    """Return the moments of the marked places among so many that are drawn without repetition: hypergeometric."""
    share = drawn / places
    rest = (places - marked) / max(places - 1, 1)
    return _Moments(marked * share, np.maximum(marked * share * (1.0 - share) * rest, 0.0))
