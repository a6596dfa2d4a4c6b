"""Quantiles of sums of independent symmetric variates, by their moment generating function M.

For any c > 0 where M is finite

    P(S > q) = (1/2 pi i) integral_(c - i inf)^(c + i inf) M(s) exp(-s q) ds/s,

and the trapezoid rule with step h is, by Poisson's summation formula, the sum over j of P(S > q + 2 pi j/h)
exp(2 pi j c/h): the wanted term j = 0 and others that are not negative. Dropped terms are bounded by the law, rounding
errors by the sum of absolute values, so the result errs on the wide side only.

Source: J. Abate and W. Whitt, Queueing Systems 10 (1992), for the rule and its aliasing.
"""

import math
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from sordino._support.checks import integer, open_unit

__all__ = ["SumLaw", "chernoff", "log_tail", "product_of_inverses", "quantile_of_sum"]

_Vector = NDArray[np.float64]

_UNIT = 2.0**-53
# Excess in probability that aliasing and truncation may each cause, relative to p (1 - p).
_EXCESS = 1e-3
_MOST_TERMS = 1 << 17
_BLOCK = 1 << 18
# Up to this power of a factor, multiplications take less time than a logarithm and lose as little.
_SELDOM = 32.0


class SumLaw(ABC):
    """The law of a symmetric sum whose M is finite for |s| < 1.

    Attributes:
        groups: How many kinds of variates there are.
        errors: Rounding errors of log M(s), in units of the last place, besides those of the kinds.
        phase_errors: The same, over its imaginary part.
    """

    def __init__(self, groups: float, errors: float, phase_errors: float = 4.0) -> None:
        self.groups, self.errors, self.phase_errors = groups, errors, phase_errors

    @abstractmethod
    def log_moment(self, c: float) -> float:
        """Return K(c) = log M(c), 0 <= c < 1."""

    @abstractmethod
    def slope(self, c: float) -> float:
        """Return c K'(c) - K(c)."""

    @abstractmethod
    def ratio(self, c: float, u: _Vector) -> NDArray[np.complex128]:
        """Return M(c + iu)/M(c)."""

    @abstractmethod
    def rest(self, c: float, u: float) -> float:
        """Return a bound on (1/pi) times the integral of |M(c + iv)/(M(c) (c + iv))| over v > u."""


def product_of_inverses(z: NDArray[np.complex128], counts: _Vector) -> NDArray[np.complex128]:
    """Return prod_i (1 + z_i)^(-n_i) over the last axis, for z in the right half plane."""
    seldom = (counts <= _SELDOM) & (np.rint(counts) == counts)
    found = np.ones(len(z), dtype=np.complex128)
    for count in np.unique(counts[seldom]):
        inverse = np.prod(1.0 / (1.0 + z[:, counts == count]), axis=1)
        for bit in range(int(count).bit_length()):
            if int(count) >> bit & 1:
                found *= inverse
            inverse = inverse * inverse
    if not seldom.all():
        # numpy's log1p of complex numbers loses what is small.
        often = z[:, ~seldom]
        logs = np.log1p(2.0 * often.real + often.real**2 + often.imag**2)
        angles = np.arctan2(often.imag, 1.0 + often.real)
        found *= np.exp(-((0.5 * logs + 1j * angles) @ counts[~seldom]))
    return found


def log_tail(level: float, answers: int) -> float:
    """Return log((1 - level)/answers).

    Raises:
        InvalidParameterError: `level` or `answers` is out of range.
        DataTypeError: `level` is not a real number or `answers` not an integer.
    """
    level, answers = open_unit("level", level), integer("answers", answers, least=1)
    return math.log1p(-level) - math.log(answers)


def chernoff(law: SumLaw, log_p: float) -> tuple[float, float]:
    """Return (c, q): q, the least over c of the solutions of 2 M(c) exp(-c q) = p."""
    # The bound is unimodal in c: (K(c) + a)/c has the sign of slope c K'(c) - K(c) - a, which increases.
    need = math.log(2.0) - log_p
    low, high = 0.0, 1.0
    for _ in range(50):
        c = 0.5 * (low + high)
        low, high = (c, high) if law.slope(c) < need else (low, c)
    c = low if low > 0.0 else high
    return c, (law.log_moment(c) + need) / c


def quantile_of_sum(law: SumLaw, log_p: float) -> float:
    """Return a q, at most 1 % above the least, with P(|S| > q) <= p."""
    c, high = chernoff(law, log_p)
    # D = 2 pi/h. Poisson terms j < 0 are below exp(-c D); those with j > 0 below M(x) exp(-x q - (x - c) D),
    # any x > c.
    log_half = log_p - math.log(2.0)
    excess = _EXCESS * -math.expm1(log_p)

    def period(x: float) -> float:
        upper = law.log_moment(x) - x * 0.7 * high - log_half
        return max(-log_half / c, upper / (x - c)) - math.log(excess) / min(c, x - c)

    h = 2.0 * math.pi / min(period(x) for x in (0.5 * (1.0 + c), 2.0 * c, 4.0 * c) if c < x < 1.0)
    log_peak = law.log_moment(c)
    line, tail, last = _line(law, c, h, math.log(excess) + log_half - log_peak + c * high)
    phases = h * np.arange(len(line), dtype=np.float64)
    magnitude = float(np.abs(line).sum())

    def log_bound(q: float) -> float:
        """An upper bound on log P(S > q)."""
        total = float((line * np.exp(-1j * q * phases)).real.sum())
        rounding = _UNIT * (64.0 * law.groups + law.errors + law.phase_errors * q * last + 64.0) * magnitude
        return math.log((total + rounding) * h / math.pi + tail) + log_peak - c * q

    # Bracket, then bisect to 1e-4; only `high` must be right.
    low = 0.0
    while high - low > 2e-4 * high:
        q = 0.5 * (low + high)
        low, high = (low, q) if log_bound(q) <= log_half else (q, high)
    return high * (1.0 + 1e-12)


def _line(law: SumLaw, c: float, h: float, log_goal: float) -> tuple[NDArray[np.complex128], float, float]:
    """Return M(c + i k h)/((c + i k h) M(c)) for k = 0 (halved), 1, ..., a bound on the rest, and the last u.

    The bound is below exp(log_goal) unless that takes too many terms.
    """
    goal = math.exp(min(log_goal, 0.0))
    terms = 8
    while law.rest(c, terms * h) > goal and terms < _MOST_TERMS:
        terms *= 2
    pieces = []
    step = max(1, _BLOCK // int(law.groups))
    for start in range(0, terms + 1, step):
        u = h * np.arange(start, min(start + step, terms + 1), dtype=np.float64)
        pieces.append(law.ratio(c, u) / (c + 1j * u))
    line = np.concatenate(pieces)
    line[0] *= 0.5
    return line, law.rest(c, terms * h), terms * h
