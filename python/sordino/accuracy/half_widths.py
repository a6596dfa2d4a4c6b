"""Half widths of confidence intervals for Gaussian noise, Laplace noise and sums of Laplace noises.

An interval covers the true answer with probability at least `level`, over the noise alone; with m `answers`
it is widened so that m intervals cover all their answers at once with that probability. Post-processing
of public numbers: intervals cost no privacy.
"""

import math
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sordino._support.checks import integer, open_unit
from sordino._support.normal_tails import normal_quantile
from sordino.accuracy.sums import SumLaw, log_tail, product_of_inverses, quantile_of_sum
from sordino.errors import DataTypeError, InvalidParameterError, ShapeError

__all__ = [
    "bernstein_half_width",
    "equal_laplace_half_width",
    "factor_of_boxes",
    "factor_of_variance",
    "gaussian_half_width",
    "k_norm_half_width",
    "laplace_half_width",
    "laplace_sum_half_width",
]

_Vector = NDArray[np.float64]

# Weights are grouped, rounded up, on a geometric grid of this ratio once there are more than _EXACT_GROUPS
# values.
_GRID_RATIO = 1.003
_EXACT_GROUPS = 512
# Equal variates beyond this number are merged.
_MOST_EQUAL = 1 << 14


@overload
def gaussian_half_width(stderr: float, level: float, answers: int = 1) -> float: ...
@overload
def gaussian_half_width(stderr: _Vector, level: float, answers: int = 1) -> _Vector: ...
def gaussian_half_width(stderr: float | _Vector, level: float, answers: int = 1) -> float | _Vector:
    """Return the half width of an interval for an answer with Gaussian noise.

    z stderr with P(|N(0, 1)| > z) = 1 - level**(1/m). For m > 1 the intervals hold simultaneously whatever
    the correlation of the m answers: P(|Z_1| <= z_1, ..., |Z_m| <= z_m) >= prod_i P(|Z_i| <= z_i) for jointly
    normal Z.

    Args:
        stderr: Standard deviation of the answers, in their unit; a float or an array.
        level: Strictly between 0 and 1.
        answers: m, how many intervals must hold together.

    Returns:
        The half width, with the shape of `stderr`.

    Raises:
        InvalidParameterError: `level` or `answers` is out of range.
        DataTypeError: `level` is not a real number or `answers` not an integer.

    Source: Z. Sidak, Journal of the American Statistical Association 62 (1967), Theorem 1.
    """
    level, answers = open_unit("level", level), integer("answers", answers, least=1)
    return stderr * -normal_quantile(-0.5 * math.expm1(math.log(level) / answers))


def bernstein_half_width(stderr: _Vector, largest: float, level: float, answers: int) -> _Vector:
    """Return half widths of intervals for means of independent numbers of known variance and range.

    Bernstein's inequality for both sides, P(|error| > t) <= 2 exp(-t**2/(2 (stderr**2 + largest t/3))), and the union
    bound over the answers.

    Args:
        stderr: Standard deviations of the means.
        largest: How far one number moves the mean from its expectation at most.
        level: Strictly between 0 and 1.
        answers: How many intervals must hold together.

    Returns:
        The half widths, with the shape of `stderr`.

    Raises:
        InvalidParameterError: `level` is out of range.
    """
    log = math.log(2.0 * answers / (1.0 - open_unit("level", level)))
    linear = largest * log / 3.0
    return (linear + np.sqrt(linear**2 + 2.0 * log * np.square(stderr))) * (1.0 + 1e-12)


@overload
def laplace_half_width(noise_scale: float, level: float, answers: int = 1) -> float: ...
@overload
def laplace_half_width(noise_scale: _Vector, level: float, answers: int = 1) -> _Vector: ...
def laplace_half_width(noise_scale: float | _Vector, level: float, answers: int = 1) -> float | _Vector:
    """Return the half width of an interval for an answer with the noise of one Laplace variable.

    b log(1/p) with p = (1 - level)/m, since P(|L| > q) = exp(-q/b); for m > 1 by the union bound.

    Args:
        noise_scale: b of the density exp(-|z|/b)/(2b), in the unit of the answers; a float or an array.
        level: Strictly between 0 and 1.
        answers: m, how many intervals must hold together.

    Returns:
        The half width, with the shape of `noise_scale`.

    Raises:
        InvalidParameterError: `level` or `answers` is out of range.
        DataTypeError: `level` is not a real number or `answers` not an integer.
    """
    return noise_scale * -log_tail(level, answers)


def equal_laplace_half_width(noise_scale: float, variates: int, level: float, answers: int = 1) -> float:
    """Return the half width of an interval for an answer with the sum of so many Laplace variables of one scale.

    Very many are merged into fewer with the same variance: `-log(1 - w^2 s^2)` is convex in the squared weight, so the
    tails become heavier. Below a level of about .9 the interval may shrink by that, by less than 1e-4 of its width for
    the 2^14 that are kept.

    Args:
        noise_scale: b of each.
        variates: How many.
        level: Strictly between 0 and 1.
        answers: m, how many intervals must hold together.

    Raises:
        InvalidParameterError: `level` or `answers` is out of range.
    """
    count = min(variates, _MOST_EQUAL)
    return noise_scale * laplace_sum_half_width(np.full(count, math.sqrt(variates / count)), level, answers)


def k_norm_half_width(reach: _Vector, rank: int, level: float, answers: int = 1) -> _Vector:
    """Return the half width of an interval for a linear function of K-norm noise in `rank` dimensions.

    The noise is R V with R of law Gamma(r + 1) and V uniform in K. A linear function of V is symmetric, unimodal
    (Brunn-Minkowski) and at most h in size, so its size is stochastically at most that of h U, U uniform on (0, 1),
    and

        P(R U > q) = exp(-q) sum_(i<r) (1 - i/r) q**i/i!.

    Args:
        reach: h of every answer times the scale of the noise, in the unit of the answers.
        rank: r.
        level: Strictly between 0 and 1.
        answers: m, how many intervals must hold together (union bound).

    Returns:
        The half width, with the shape of `reach`; exact for r = 1.

    Raises:
        InvalidParameterError: `level` or `answers` is out of range.
        DataTypeError: `level` is not a real number or `answers` not an integer.
    """
    log_p = log_tail(level, answers)
    i = np.arange(rank, dtype=np.float64)
    log_terms = np.log1p(-i / rank) - np.array([math.lgamma(k + 1.0) for k in range(rank)])

    def log_bound(q: float) -> float:
        terms = log_terms + i * math.log(q)
        largest = float(terms.max())
        return largest + math.log(float(np.exp(terms - largest).sum())) - q

    low, high = 1e-9, 4.0 * (rank - log_p)
    while high - low > 1e-9 * high:
        q = 0.5 * (low + high)
        low, high = (low, q) if log_bound(q) <= log_p else (q, high)
    return reach * high


def laplace_sum_half_width(
    weights: ArrayLike, level: float, answers: int = 1, counts: ArrayLike | None = None
) -> float:
    """Return the half width of an interval for noise S = sum_i w_i L_i, the L_i independent standard Laplace.

    The least q, up to 1 % and never below it, with P(|S| > q) <= p = (1 - level)/m, by `sordino.accuracy.sums` with
    M(s) = prod 1/(1 - w_i**2 s**2). Dropped terms are bounded through
    |M(c + iu)| <= prod 1/(1 - w_i**2 c**2 + w_i**2 u**2), so the result errs on the wide side only. More than 512
    distinct weights are rounded up on a grid of 0.3 %, which widens the interval by at most that: |S| grows
    stochastically with every weight.

    Args:
        weights: Shape (n,), absolute coefficient times the parameter b of its noise, in the unit of the
            answer.
        level: Strictly between 0 and 1.
        answers: m, how many intervals must hold together (union bound).
        counts: How often each occurs; once if None.

    Returns:
        q, in the unit of the weights; 0.0 if all weights are zero. Exact for a single non-zero weight.

    Raises:
        ShapeError: `weights` is not one-dimensional or is empty.
        DataTypeError: `weights` does not hold real numbers.
        InvalidParameterError: A weight is negative or not finite, or `level` or `answers` is out of range.
    """
    log_p = log_tail(level, answers)
    values, times = _grouped(weights, counts)
    if not len(values):
        return 0.0
    largest = float(values[-1])
    if len(values) == 1 and times[0] == 1.0:
        return largest * -log_p
    # In units of the largest weight; W is the squares.
    return largest * quantile_of_sum(_LaplaceSum((values / largest) ** 2, times), log_p)


def _grouped(weights: ArrayLike, occurrences: ArrayLike | None = None) -> tuple[_Vector, _Vector]:
    """Return distinct positive weights, rising and rounded up if many, and how often each occurs."""
    raw: NDArray[Any] = np.asarray(weights)
    if raw.dtype.kind not in "iuf":
        raise DataTypeError(f"weights must hold real numbers, got an array of {raw.dtype}")
    if raw.ndim != 1 or not raw.size:
        raise ShapeError(f"weights must have shape (n,) with n > 0, got {raw.shape}")
    values = raw.astype(np.float64)
    largest = float(values.max())
    if not math.isfinite(largest) or not float(values.min()) >= 0.0:
        raise InvalidParameterError("weights must be finite and not negative")
    times = np.ones(len(values)) if occurrences is None else np.asarray(occurrences, dtype=np.float64)
    values, times = values[values > 0.0], times[values > 0.0]
    if len(values) > _EXACT_GROUPS:
        # Below the floor even all weights together add less than 1e-6 to a variance of 2 max(w)**2.
        floor = 1e-3 / math.sqrt(float(times.sum()))
        steps = np.floor(np.log(np.maximum(values / largest, floor)) / -math.log(_GRID_RATIO) * (1.0 - 1e-12))
        counts = np.bincount(steps.astype(np.int64), weights=times).astype(np.float64)[::-1]
        grid = largest * _GRID_RATIO ** -np.arange(len(counts), dtype=np.float64)[::-1]
        return grid[counts > 0.0], counts[counts > 0.0]
    distinct, place = np.unique(values, return_inverse=True)
    return distinct, np.bincount(place.reshape(-1), weights=times, minlength=len(distinct)).astype(np.float64)


class _LaplaceSum(SumLaw):
    """A sum of Laplace variates, in units of the largest weight."""

    def __init__(self, squares: _Vector, counts: _Vector) -> None:
        super().__init__(float(len(squares)), 16.0 * float(counts.sum()))
        self._squares, self._counts = squares, counts

    def log_moment(self, c: float) -> float:
        return -float(self._counts @ np.log1p(-self._squares * (c * c)))

    def slope(self, c: float) -> float:
        weighted = self._squares * (c * c)
        return float(self._counts @ (2.0 * weighted / (1.0 - weighted) + np.log1p(-weighted)))

    def ratio(self, c: float, u: _Vector) -> NDArray[np.complex128]:
        # (1 - w**2 s**2)/(1 - w**2 c**2), s**2 - c**2 = 2 i c u - u**2; its real part is at least 1.
        closeness = 1.0 - self._squares * (c * c)
        shift: NDArray[np.complex128] = u * u - 2j * c * u
        return product_of_inverses(np.outer(shift, self._squares / closeness), self._counts)

    def rest(self, c: float, u: float) -> float:
        # Largest weight w = 1: M falls at least like (1 - c**2 + u**2)/(1 - c**2 + v**2) from u to v.
        closeness = 1.0 - self._squares * (c * c)
        log_m = -float(self._counts @ np.log1p(self._squares * (u * u) / closeness))
        return math.exp(log_m) * (1.0 - c * c + u * u) / (2.0 * math.pi * u * u)


def factor_of_variance(level: float, answers: int = 1) -> float:
    """Half width over standard deviation that holds for any combination of symmetric log-concave noise.

    Such as that of (spherical) Laplace variates, or of boxes: a combination of coordinates of a log-concave vector is
    log-concave (Prekopa), and `log(E |X|^p/Gamma(p + 1))` is concave in p (Barlow, Marshall and Proschan 1963), 0 at
    p = 0: so `E |X|^p <= Gamma(p + 1) (V/2)^(p/2)` for p >= 2, V the variance: the moments of one Laplace variate.
    Therefore the moment generating function is at most 1/(1 - s²V/2). Chernoff's bound 2 e^(-sq)/(1 - s²V/2) is
    minimised over s.
    """
    log_p = log_tail(level, answers)
    best = math.inf
    # In units of sqrt(V/2): q = (ln 2 - ln(1 - s²) - log_tail)/s for s in (0, 1).
    for s in np.linspace(0.01, 0.9999, 4000):
        best = min(best, (math.log(2.0) - math.log1p(-s * s) - log_p) / s)
    return best / math.sqrt(2.0)


def factor_of_boxes(coordinates: int, level: float, answers: int = 1) -> float:
    """Half width over standard deviation that holds for any combination of box noise, of so many coordinates at least.

    An answer is `X = sum_b rho_b S_b`, `rho_b` Gamma(m_b + 1), `S_b` a sum of weighted uniform variates on [-1, 1],
    whose even moments are at most those of normal ones, `1/(2j + 1) <= (2j - 1)!!/3^j`. So, by Minkowski's inequality,
    `E X^p <= (p - 1)!! V^(p/2) Gamma(m + 1 + p)/(Gamma(m + 1) ((m + 1) (m + 2))^(p/2))`, V the variance, p even, m the
    least of all `m_b`. X is symmetric and unimodal: `P(|X| >= x) <= (p/(p + 1))^p E X^p/x^p` and, where that is above
    `1/(p + 1)`, `1 - x/((p + 1) E X^p)^(1/p)` (Gauss; Winkler 1866). The least over p is taken.
    """
    m, log_p = coordinates, log_tail(level, answers)
    best = math.log(factor_of_variance(level, answers))
    for p in range(2, 402, 2):
        log_moment = math.lgamma(p + 1) - 0.5 * p * math.log(2.0) - math.lgamma(0.5 * p + 1)
        log_moment += math.lgamma(m + 1 + p) - math.lgamma(m + 1) - 0.5 * p * math.log((m + 1.0) * (m + 2.0))
        if log_p <= -math.log(p + 1.0):
            width = math.log(p / (p + 1.0)) + (log_moment - log_p) / p
        else:
            width = math.log(-math.expm1(log_p)) + (math.log(p + 1.0) + log_moment) / p
        best = min(best, width)
    return math.exp(best) * (1.0 + 1e-9)
