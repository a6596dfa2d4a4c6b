"""Normal tails and the privacy curve of the Gaussian mechanism, with bounds on their own error.

Notation: phi and Phi are the density and distribution function of a standard normal, and

    I_n(x) = (1/n!) integral_0^inf s**n exp(-x s - s**2/2) ds,    I_0(x) = Phi(-x)/phi(x)   (the Mills ratio).

Integration by parts gives (n+1) I_(n+1) + x I_n = I_(n-1) with I_(-1) = 1, so the ratios r_n = I_n/I_(n-1)
obey the continued fraction r_n = 1/(x + (n+1) r_(n+1)). All its terms are positive for x > 0: evaluating it
backwards is stable, and successive truncations enclose the value.

The bounds below assume that `math.exp`, `math.log`, `math.erf` and `math.erfc` are accurate to 4 units in the
last place, which the C libraries in use (glibc, musl, Apple, Microsoft) keep with room to spare.
"""

import math
from statistics import NormalDist
from typing import NamedTuple

from sordino._support.checks import open_unit, positive, real
from sordino.errors import InvalidParameterError

__all__ = [
    "BoundedLog",
    "log_gaussian_delta",
    "log_normal_cdf",
    "mills_ratio",
    "normal_quantile",
]

_UNIT = 2.0**-53
_SMALLEST_NORMAL = 2.0**-1022
_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
_ROOT_HALF = math.sqrt(0.5)
_STANDARD_NORMAL = NormalDist()

# Relative error, in units of 2**-53, that the two functions below stay within; test_special.py measures both
# against mpmath and finds them at least twice smaller.
_MILLS_UNITS = 32.0
_FIRST_INTEGRAL_UNITS = 256.0
# Below this ratio of mu to max(1, x), I_0(x) - I_0(x + mu) is integrated, not subtracted.
_NARROW = 0.03
# Gauss-Legendre nodes and weights on [0, 1], four points.
_LEGENDRE = (
    (0.06943184420297371, 0.17392742256872693),
    (0.33000947820757187, 0.32607257743127307),
    (0.66999052179242813, 0.32607257743127307),
    (0.93056815579702629, 0.17392742256872693),
)


class BoundedLog(NamedTuple):
    """A logarithm and a bound on its absolute error.

    Attributes:
        value: The computed logarithm, in nats.
        error: The true logarithm lies in [value - error, value + error].
    """

    value: float
    error: float

    @property
    def upper(self) -> float:
        """An upper bound on the true logarithm, in nats."""
        return math.nextafter(self.value + self.error, math.inf)


def _ratios(x: float) -> tuple[float, float]:
    """Return r_0(x) and r_1(x) for x >= 2 by the continued fraction.

    The truncated tail is replaced by the positive root of r (x + (n+1) r) = 1, its leading behaviour for
    large n; 8 + 40/x + 160/x**2 terms bring the truncation error near 2**-53 for every x >= 2.
    """
    terms = 8 + int(40.0 / x + 160.0 / (x * x))
    r = 2.0 / (x + math.sqrt(x * x + 4.0 * (terms + 1)))
    for n in range(terms, 1, -1):
        r = 1.0 / (x + n * r)
    return 1.0 / (x + r), r


def _mills(x: float) -> float:
    """Return I_0(x) for x > -37 (beyond, it overflows)."""
    if x < 2.0:
        return math.sqrt(0.5 * math.pi) * math.exp(0.5 * x * x) * math.erfc(x * _ROOT_HALF)
    return _ratios(x)[0]


def _first_integral(x: float) -> float:
    """Return I_1(x) = 1 - x I_0(x), minus the derivative of the Mills ratio, for x > -1."""
    if x < 2.0:
        return 1.0 - x * _mills(x)
    mills, ratio = _ratios(x)
    return mills * ratio


def mills_ratio(x: float) -> float:
    """Return the Mills ratio Phi(-x)/phi(x) of a standard normal.

    Args:
        x: Any finite real number.

    Returns:
        The ratio, with a relative error below 4e-15 for x >= 0 and below (4 + x**2) 1e-15 for x < 0;
        infinity where it is above the largest float (x below about -37.6).

    Raises:
        InvalidParameterError: `x` is not finite.
        DataTypeError: `x` is not a real number.

    Source: R. D. Gordon, Annals of Mathematical Statistics 12 (1941); the continued fraction is due to
    Laplace.
    """
    x = real("x", x)
    if x < -37.6:
        return math.inf
    return _mills(x)


def log_normal_cdf(x: float) -> float:
    """Return log Phi(x), accurate in both tails.

    Args:
        x: Any finite real number.

    Returns:
        The natural logarithm; its relative error is below (100 + x**2) 1e-16.

    Raises:
        InvalidParameterError: `x` is not finite.
        DataTypeError: `x` is not a real number.
    """
    x = real("x", x)
    if x >= 0.0:
        return math.log1p(-0.5 * math.erfc(x * _ROOT_HALF))
    if x > -2.0:
        return math.log(0.5 * math.erfc(-x * _ROOT_HALF))
    return math.log(_mills(-x)) - 0.5 * x * x - _HALF_LOG_TWO_PI


def normal_quantile(probability: float) -> float:
    """Return the x with Phi(x) = probability.

    Args:
        probability: Strictly between 0 and 1. For an upper tail pass the tail and negate the result: 1 - tail
            would round to one.

    Returns:
        The quantile, with a relative error near 1e-15 (absolute near probability 1/2).

    Raises:
        InvalidParameterError: `probability` is not in (0, 1).
        DataTypeError: `probability` is not a real number.

    Source: M. J. Wichura, algorithm AS 241, Applied Statistics 37 (1988), as in Python's `statistics`.
    """
    return _STANDARD_NORMAL.inv_cdf(open_unit("probability", probability))


def log_gaussian_delta(epsilon: float, mu: float) -> BoundedLog:
    """Return the logarithm of the privacy curve of mu-GDP, the exact delta of a Gaussian mechanism.

        delta(epsilon; mu) = Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu)
                           = phi(a) (R(-a) - R(mu - a)),    a = mu/2 - epsilon/mu,  R the Mills ratio.

    The second form has no large terms: exp(epsilon) phi(mu - a) = phi(a). Where mu is small against the scale
    on which R falls, R(-a) - R(mu - a) is the integral of I_1 over [-a, mu - a], by Gauss-Legendre with four
    points.

    Args:
        epsilon: At least 0, in nats.
        mu: Positive, the GDP parameter (sensitivity over standard deviation).

    Returns:
        The logarithm and a bound on its error; `.upper` is the side that never understates the privacy loss.
        The error is below 1e-11 while delta > 1e-300, and grows with a**2 beyond.

    Raises:
        InvalidParameterError: `epsilon` is negative or `mu` is not positive, or either is not finite.
        DataTypeError: `epsilon` or `mu` is not a real number.

    Source: Balle and Wang, Theorem 8 (arXiv:1805.06530v2); Dong, Roth and Su, Corollary 2.13
    (arXiv:1905.02383).
    """
    epsilon = real("epsilon", epsilon)
    mu = positive("mu", mu)
    if epsilon < 0.0:
        raise InvalidParameterError(f"epsilon must not be negative, got {epsilon}")
    quotient = epsilon / mu
    if quotient > 1e150:
        raise InvalidParameterError(f"epsilon/mu = {quotient} is beyond the supported range of 1e150")
    x = quotient - 0.5 * mu
    argument_error = _UNIT * (quotient + abs(x))
    # |d log delta/dx| <= |x| + |d log(R(x) - R(x + mu))/dx|, and the latter is at most the largest mean of s
    # under the density s exp(-t s - s**2/2), t in [x, x + mu], which is below 2 + max(0, -x).
    from_argument = (2.0 * abs(x) + 2.0) * argument_error
    if mu < _NARROW * max(1.0, x):
        mean = sum(weight * _first_integral(x + node * mu) for node, weight in _LEGENDRE)
        value_error = (_FIRST_INTEGRAL_UNITS + 16.0) * _UNIT
        value = mu * mean
        # The product of two tiny numbers underflows, the sum of their logarithms does not.
        log_value = math.log(value) if value >= _SMALLEST_NORMAL else math.log(mu) + math.log(mean)
        log_scale = -0.5 * x * x - _HALF_LOG_TWO_PI
    else:
        y = quotient + 0.5 * mu
        far = _mills(y)
        # |R'(y)| = I_1(y) <= 1 and I_1(y) <= 2 R(y) for y >= 0.
        far_error = far * (_MILLS_UNITS * _UNIT + 2.0 * _UNIT * (quotient + y))
        if x >= 0.0:
            near = _mills(x)
            near_error = _MILLS_UNITS * _UNIT * near
            log_scale = -0.5 * x * x - _HALF_LOG_TWO_PI
        else:
            # Here |d delta/dx| = phi(a) mu R(y) <= 2 phi(a), because R(y) <= 1/y <= 2/mu.
            density = math.exp(-0.5 * x * x - _HALF_LOG_TWO_PI)
            near = 0.5 * math.erfc(x * _ROOT_HALF)
            near_error = _MILLS_UNITS * _UNIT * near
            # The relative error of the density is that of its exponent.
            far, far_error = density * far, density * (far_error + far * _UNIT * (8.0 + 2.0 * x * x))
            log_scale = 0.0
            from_argument = 2.0 * density * argument_error / (near - far)
        value = near - far
        value_error = (near_error + far_error) / value + 4.0 * _UNIT
        log_value = math.log(value)
    result = log_value + log_scale
    summing = _UNIT * (8.0 * abs(log_value) + 4.0 * abs(log_scale) + 4.0 * abs(result) + 8.0)
    return BoundedLog(result, 1.01 * (from_argument + value_error + summing))
