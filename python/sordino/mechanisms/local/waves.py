"""A client's row as one sign of a wave.

Source: `sordino_core::waves` has the estimate and its variance. Warner 1965 for the response; Edmonds, Nikolov and
Ullman 2020 (arXiv:1911.08339) for factorizations as the best non-interactive local mechanisms of linear queries.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from sordino import _core
from sordino.mechanisms.local.response import Response
from sordino.workloads.base import Array

__all__ = ["Waves"]


@dataclass(frozen=True, eq=False)
class Waves(Response):
    """Reports of one sign: one number, whatever the steps."""

    name: ClassVar[str] = "waves"
    numbers: ClassVar[int] = 1
    said: ClassVar[str] = "one sign of a wave over {} steps a client"

    # A sign is turned round, or not.
    odds: ClassVar[Fraction] = Fraction(1)

    @classmethod
    def candidates(cls, epsilon: float, steps: int, whole: int) -> tuple[Waves]:
        """Return them: frequencies are as probable as they shall be."""
        return (Waves(epsilon, steps, whole),)

    @cached_property
    def core(self) -> _core.Waves:
        """Frequencies and their probabilities."""
        return _core.Waves(self.steps)

    @property
    def parameters(self) -> Any:
        """How probable frequencies are: who adds up must know it."""
        return {"frequencies": "totient"}

    @property
    def _contrast(self) -> float:
        """Mean of what was told of a plus."""
        return 1.0 - 2.0 * self.lie

    @property
    def largest(self) -> float:
        """How far an estimate from one client is off at most."""
        return self.core.largest / self._contrast + 0.5

    def std(self) -> Array:
        """Return the standard deviation of an estimate from one client: of shares of 0 or 1, of others at most."""
        seen = 0.25 if self.whole == 1 else 0.0
        return np.full(self.steps, math.sqrt(self.core.variance / self._contrast**2 - seen))

    def are_honest(self, reports: Array) -> bool:
        """Return whether honest clients may have sent all of these numbers."""
        return bool(((reports >= 0) & (reports < self.core.codes)).all())

    def sums(self, reports: Array) -> Array:
        """Return the sums of the waves that were told."""
        return self.core.sums(reports[:, 0].astype(np.uint64)).astype(np.float64)

    def estimate(self, sums: Array, clients: int) -> Array:
        """Return the estimated running sums of the mean client."""
        return self.core.distribution(sums / (clients * self._contrast))
