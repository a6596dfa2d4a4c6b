"""Staircase noise of a single whole number that a neighbour moves by several steps.

P(Y = k) is proportional to 1 for |k| < r and to q^j for r + (j - 1) D <= |k| < r + j D, q = exp(-e).

Source: Q. Geng and P. Viswanath, "The optimal noise-adding mechanism in differential privacy" (IEEE Trans. Inf. Theory
62, 2016), for integers.
"""

import math
from dataclasses import dataclass

from sordino.accuracy.sums import log_tail

__all__ = ["Staircase"]


@dataclass(frozen=True)
class Staircase:
    """A step times integers with this law.

    Attributes:
        step: In units of the number.
        rate: e, the privacy loss.
        width: D, the most steps that a neighbour moves the number by.
        first: r.
    """

    step: float
    rate: float
    width: int
    first: int

    @property
    def unmoved(self) -> float:
        """P(Y = 0)."""
        return 1.0 / (2.0 * self._beyond(0) - 1.0)

    def _beyond(self, k: int) -> float:
        """Return the sum of the weights from k on, k >= 0."""
        block, place = divmod(k, self.width)
        q = math.exp(-self.rate)
        inner = max(self.first - place, 0)
        own = inner + (self.width - place - inner) * q
        return math.exp(-self.rate * block) * (
            own + q * (self.first + (self.width - self.first) * q) / -math.expm1(-self.rate)
        )

    def half_width(self, level: float, answers: int = 1) -> float:
        """Return the half width of an interval for the number, ends included.

        The least w with P(|Y| > w) <= p = (1 - level)/m.

        Args:
            level: Strictly between 0 and 1.
            answers: m, how many intervals must hold together (union bound).

        Raises:
            InvalidParameterError: `level` or `answers` is out of range.
            DataTypeError: `level` is not a real number or `answers` not an integer.
        """
        allowed = math.exp(log_tail(level, answers)) / self.unmoved * (0.5 - 1e-12)
        low, high = -1, self.width
        while self._beyond(high + 1) > allowed:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._beyond(middle + 1) > allowed else (low, middle)
        return high * self.step
