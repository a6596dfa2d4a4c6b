"""Half widths of confidence intervals for discrete Laplace noise, and for sums of it.

Y has P(Y = k) = tanh(e/2) exp(-e|k|) on the integers, with rate e. At the integers its tails are heavier than those of
the Laplace law of scale 1/e, P(|Y| >= k) = 2 q^k/(1 + q) with q = exp(-e), so that law's quantile is none of Y's.
Intervals around an answer y are [y - w, y + w], ends included.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sordino._support.checks import integer, open_unit
from sordino._support.normal_tails import log_normal_cdf
from sordino.accuracy.sums import SumLaw, chernoff, log_tail, product_of_inverses, quantile_of_sum

__all__ = [
    "discrete_half_width",
    "discrete_sum_half_width",
    "equal_discrete_half_width",
    "independent_discrete_half_width",
    "share_of_pole",
    "standard_deviation",
    "variance",
]

_Vector = NDArray[np.float64]

# Points of the transform by which equal variates are added up exactly.
_MOST_POINTS = 1 << 20
# Its error in a probability, with that of a few additions.
_ERROR = 1e-13
# Smoothing: its standard deviation over the width, and how many of them the width grows by.
_SMOOTH = 0.003
_BEYOND = 3.0
# More kinds of variates are rounded to a grid; what that leaves gets this share of the probability.
_MOST_KINDS = 64
_GRID = 0.02
_SHARE = 1e-3


def variance(rates: ArrayLike) -> _Vector:
    """Return the variance of Y, 1/(2 sinh^2(e/2)), for these rates e; beyond 500 that of 500."""
    half = np.minimum(0.5 * np.asarray(rates, dtype=np.float64), 250.0)
    return np.asarray(0.5 / np.sinh(half) ** 2)


def standard_deviation(rate: float) -> float:
    """Return the standard deviation of Y, 1/(sqrt(2) sinh(e/2)); beyond e = 500 that of 500."""
    return math.sqrt(variance(rate))


def share_of_pole(s: _Vector, rates: _Vector | float) -> _Vector:
    """Return sinh^2(s/2)/sinh^2(e/2), 0 <= s < e: E exp(s Y) is 1 over what that leaves of 1."""
    return np.asarray(np.exp(s - rates) * (np.expm1(-s) / np.expm1(-rates)) ** 2)


def discrete_half_width(rate: float, level: float, answers: int = 1) -> int:
    """Return the half width of an interval for an answer with the noise of one Y.

    The least w with P(|Y| > w) = 2 q^(w + 1)/(1 + q) <= p = (1 - level)/m.

    Args:
        rate: e, positive.
        level: Strictly between 0 and 1.
        answers: m, how many intervals must hold together (union bound).

    Raises:
        InvalidParameterError: `level` or `answers` is out of range.
        DataTypeError: `level` is not a real number or `answers` not an integer.
    """
    return _least_width(rate, log_tail(level, answers))


def independent_discrete_half_width(rate: float, level: float, answers: int) -> int:
    """Return the half width of intervals for answers with independent noise Y that all hold together.

    As `discrete_half_width` with p = 1 - level^(1/m).

    Raises:
        InvalidParameterError: `level` or `answers` is out of range.
        DataTypeError: `level` is not a real number or `answers` not an integer.
    """
    level, answers = open_unit("level", level), integer("answers", answers, least=1)
    return _least_width(rate, math.log(-math.expm1(math.log(level) / answers)))


def _least_width(rate: float, log_p: float) -> int:
    # 2 q^(w + 1)/(1 + q) <= p; rounding errors go to the wide side.
    needed = (math.log(2.0) - math.log1p(math.exp(-rate)) - log_p) / rate
    return max(math.ceil(needed * (1.0 + 2.0**-48)) - 1, 0)


def equal_discrete_half_width(rate: float, variates: int, level: float, answers: int = 1) -> int:
    """Return the half width of an interval for an answer with the sum of so many independent Y of one rate.

    The law of the sum, weighed by exp(t k) with Chernoff's t, is on N points the inverse Fourier transform of
    M(t + i u)/M(t), M(s) = 1/(1 - sinh^2(s/2)/sinh^2(e/2))^n: so that a tail is as exact as the whole. Rounding errors
    are added; what lies beyond the points is wrapped around, which widens, with few variates of small rates by a
    thousandth at most.

    Args:
        rate: e, positive.
        variates: n.
        level: Strictly between 0 and 1.
        answers: m, how many intervals must hold together (union bound).

    Raises:
        InvalidParameterError: `level` or `answers` is out of range.
        DataTypeError: `level` is not a real number or `answers` not an integer.
    """
    if variates == 1:
        return discrete_half_width(rate, level, answers)
    log_p = log_tail(level, answers)
    law = _DiscreteSum(np.array([1.0]), np.array([rate]), np.array([float(variates)]), 0.0)
    least = 1 << math.ceil(math.log2(chernoff(law, log_p + math.log(_ERROR))[1] / rate + 4.0))
    if least > _MOST_POINTS:
        return math.floor(_smoothed(np.array([1.0]), np.array([rate]), np.array([float(variates)]), log_p))
    c, _ = chernoff(law, log_p)
    # What the tilted law has beyond the points is wrapped around, which widens: by Chernoff's bound next to nothing,
    # or as little as so many points allow.
    further = 0.5 * (1.0 - c)
    beyond = (law.log_moment(c + further) - law.log_moment(c) - math.log(_ERROR)) / (further * rate)
    points = min(max(least, 1 << math.ceil(math.log2(beyond + 4.0))), _MOST_POINTS)
    tilt = c * rate
    tilted = np.fft.irfft(law.ratio(c, 2.0 * np.pi / rate * np.arange(points // 2 + 1) / points).conj(), points)
    # P(|S| >= k) over 2 M(c) exp(-t k), k from the last to 0.
    falling = math.exp(-tilt)
    tails = np.maximum(tilted, 0.0)
    tails[1:] = tails[:0:-1]
    rest = _ERROR * (1.0 + 1.0 / -math.expm1(-tilt))
    goal = log_p - math.log(2.0) - law.log_moment(c)
    # Beyond what Chernoff's bound needs all tails are small enough: there nothing is asked, only added up.
    k = min(points, math.ceil(chernoff(law, log_p - math.log(2.0))[1] / rate) + 4)
    beyond_k = tails[1 : points - k + 1]
    tail = float(beyond_k @ np.exp(-tilt * np.arange(len(beyond_k) - 1, -1, -1)))
    for chance in tails[points - k + 1 :].tolist():
        tail = chance + falling * tail
        if math.log(tail + rest) - tilt * (k - 1) > goal:
            break
        k -= 1
    return k - 1


def discrete_sum_half_width(
    weights: ArrayLike, rates: ArrayLike, level: float, answers: int = 1, counts: ArrayLike | None = None
) -> float:
    """Return the half width of an interval for noise S = sum_i a_i Y_i, the Y_i independent with rates e_i.

    Equal variates are added up by `equal_discrete_half_width`. Of others, with N normal of a standard deviation of .3 %
    of the width, P(S > q) <= P(S + N > q - 3 sd)/P(N > -3 sd): the sum has a density, and its quantile is found by
    `sordino.accuracy.sums` with M(s) = exp(sd^2 s^2/2) prod 1/(1 - sinh^2(a_i s/2)/sinh^2(e_i/2)). Errs on the wide
    side, by about 1 %. Of more than 64 kinds of variates the weights are rounded to a grid of 2 %, and Chernoff's bound
    of what that leaves, at a thousandth of p, is added: another 1 %.

    Args:
        weights: Shape (n,), absolute coefficients times the steps of the rows, in the unit of the answer.
        rates: Shape (n,), e_i.
        level: Strictly between 0 and 1.
        answers: m, how many intervals must hold together (union bound).
        counts: How often each occurs; once if None.

    Returns:
        The half width, 0.0 if all weights are zero.

    Raises:
        InvalidParameterError: `level` or `answers` is out of range.
        DataTypeError: `level` is not a real number or `answers` not an integer.
    """
    log_p = log_tail(level, answers)
    a, e = np.asarray(weights, dtype=np.float64), np.asarray(rates, dtype=np.float64)
    times = np.ones(len(a)) if counts is None else np.asarray(counts, dtype=np.float64)
    kept = a > 0.0
    a, e, times = a[kept], e[kept], times[kept]
    if not len(a):
        return 0.0
    kinds, place = np.unique(np.stack([a, e]), axis=1, return_inverse=True)
    times = np.bincount(place.reshape(-1), weights=times).astype(np.float64)
    a, e = kinds
    if len(a) == 1:
        return float(a[0]) * equal_discrete_half_width(float(e[0]), int(times[0]), level, answers)
    if len(a) <= _MOST_KINDS:
        width = _smoothed(a, e, times, log_p)
        # Where S is a multiple of its least weight, so is the width.
        least = float(a[0])
        multiples = bool((np.rint(a / least) * least == a).all())
        return least * math.floor(width / least * (1.0 + 2.0**-48)) if multiples else width
    variances = times * a**2 * variance(e)
    order = np.argsort(a)
    little = np.cumsum(variances[order]) <= 1e-4 * variances.sum()
    rounded = np.exp(np.rint(np.log(a) / _GRID) * _GRID)
    rounded[order[little]] = 0.0
    rest = _chernoff_width(np.abs(a - rounded), e, times, log_p + math.log(_SHARE))
    grid, place = np.unique(np.stack([rounded, e])[:, rounded > 0.0], axis=1, return_inverse=True)
    merged = np.bincount(place.reshape(-1), weights=times[rounded > 0.0]).astype(np.float64)
    return _smoothed(grid[0], grid[1], merged, log_p + math.log1p(-_SHARE)) + rest


def _chernoff_width(a: _Vector, e: _Vector, times: _Vector, log_p: float) -> float:
    kept = a > 0.0
    if not kept.any():
        return 0.0
    unit = float((a[kept] / e[kept]).max())
    return unit * chernoff(_DiscreteSum(a[kept] / e[kept] / unit, e[kept], times[kept], 0.0), log_p)[1]


def _smoothed(a: _Vector, e: _Vector, times: _Vector, log_p: float) -> float:
    # M is finite up to the least e/a; in units of that.
    unit = float((a / e).max())
    scaled = a / e / unit
    sd = _SMOOTH * chernoff(_DiscreteSum(scaled, e, times, 0.0), log_p)[1]
    smooth = _DiscreteSum(scaled, e, times, sd)
    return unit * (quantile_of_sum(smooth, log_p + log_normal_cdf(_BEYOND)) + _BEYOND * sd)


class _DiscreteSum(SumLaw):
    """A sum of v_i/e_i-fold discrete Laplace variates and a normal one, in units of the largest v."""

    def __init__(self, v: _Vector, rates: _Vector, counts: _Vector, sd: float) -> None:
        # Each logarithm is right to a few places of its own: where |M(s)| counts their sum is at most the phase and 50.
        super().__init__(float(len(v)), 2.0**16, 64.0)
        self._a, self._e, self._sd, self._counts = v * rates, rates, sd, counts

    def _share(self, c: float) -> _Vector:
        return share_of_pole(self._a * c, self._e)

    def log_moment(self, c: float) -> float:
        return -float(self._counts @ np.log1p(-self._share(c))) + 0.5 * (self._sd * c) ** 2

    def slope(self, c: float) -> float:
        share, x = self._share(c), self._a * c
        growth = x / np.tanh(0.5 * x) if c > 0.0 else 2.0 * np.ones_like(x)
        return float(self._counts @ (growth * share / (1.0 - share) + np.log1p(-share))) + 0.5 * (self._sd * c) ** 2

    def ratio(self, c: float, u: _Vector) -> NDArray[np.complex128]:
        # (cosh e - cosh(a s))/(cosh e - cosh(a c)), over exp(e).
        x, angle = self._a * c, np.outer(u, self._a)
        up, down = np.exp(x - self._e), np.exp(-x - self._e)
        low = 0.5 * np.expm1(-self._e) ** 2  # (cosh e - 1)/exp(e)
        gap = low - 0.5 * up * np.expm1(-x) ** 2  # (cosh e - cosh(a c))/exp(e)
        turned = (up + down) * np.sin(0.5 * angle) ** 2 - 0.5j * (up - down) * np.sin(angle)
        smoothed: NDArray[np.complex128] = np.exp(0.5 * self._sd**2 * (2j * c * u - u * u))
        return smoothed * product_of_inverses(turned / gap, self._counts)

    def rest(self, c: float, u: float) -> float:
        sd = self._sd
        return math.exp(-0.5 * (sd * u) ** 2) / (math.pi * (sd * u) ** 2) if sd > 0.0 else math.inf
