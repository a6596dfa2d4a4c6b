"""From a privacy guarantee to the amount of noise, always rounded to the side of more noise.

Every function that returns a parameter of a mechanism returns one that has been checked against the target
with the error of the check counted in; the distance to the exact optimum is near 1e-12 relative.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Literal, TypeAlias, get_args

from sordino._support.checks import one_of, open_unit, positive
from sordino._support.normal_tails import log_gaussian_delta, log_normal_cdf, mills_ratio
from sordino._support.rounding import reciprocal_up, sqrt_down
from sordino.errors import UnsupportedMechanismError
from sordino.privacy.costs import Cost, GaussianCost, PureCost
from sordino.privacy.guarantees import ApproxDP, GaussianDP, Privacy, PureDP, ZeroConcentratedDP, privacy_of
from sordino.privacy.laplace_composition import laplace_composition_ratio

__all__ = [
    "Noise",
    "cost",
    "delta_of_mu",
    "epsilon_of_mu",
    "flips_of_pure",
    "gaussian_mu",
    "laplace_composition_ratio",
    "mu_of_pure",
    "noise_ratio",
    "pure_epsilon",
    "pure_of_mu",
    "pure_of_rho",
    "rho_of_pure",
]

Noise: TypeAlias = Literal["gaussian", "laplace", "block"]
"""Gaussian; independent Laplace; or noise with density proportional to exp(-norm) within blocks."""

_ROOT_EIGHTH = math.sqrt(0.125)
# Relative error granted to the closed forms of mu_of_pure and pure_of_mu; test_calibration.py checks it.
_CLOSED_FORM_SLACK = 1e-13
# tanh(x) and x agree to the last place of a float below this.
_SMALL = 1e-8
# More makes no difference to probabilities in units of 2^-40.
_LARGE = 100.0


def _log_target(delta: float) -> float:
    """Return a lower bound on log(delta)."""
    log_delta = math.log(delta)
    return log_delta - 2.0**-50 * abs(log_delta)


def _largest_feasible(gap: Callable[[float], tuple[float, float, float]], feasible: float, infeasible: float) -> float:
    """Solve gap(x) = 0 by Newton's method in log x inside a bracket and step back to the feasible side.

    Args:
        gap: Returns the gap, a bound on its error, and its derivative in log x; x is feasible when gap +
            error is at most 0. The gap is monotone in x.
        feasible: A positive end of the bracket where gap <= 0.
        infeasible: The other positive end, above or below.

    Returns:
        A feasible x; `feasible` itself when nothing better is certified.
    """
    safe, far = feasible, infeasible
    x = safe
    for _ in range(200):
        value, error, slope = gap(x)
        if value <= 0.0:
            safe = x
        else:
            far = x
        step = -value / slope if slope != 0.0 else math.inf
        if abs(step) <= 1e-13 or abs(far - safe) <= 1e-15 * safe:
            break
        candidate = x * math.exp(step) if abs(step) < 50.0 else 0.0
        x = candidate if min(safe, far) < candidate < max(safe, far) else math.sqrt(safe) * math.sqrt(far)
    # The error of the gap, in units of log x, is how far one must step back at least.
    back = max(2e-16, 2.0 * error / abs(slope)) if slope != 0.0 else 2e-16
    sign = 1.0 if feasible > infeasible else -1.0
    for _ in range(60):
        if back > 700.0:  # the slope is lost in rounding
            break
        candidate = x * math.exp(sign * back)
        if (candidate - feasible) * sign >= 0.0:
            break
        value, error, _ = gap(candidate)
        if value + error <= 0.0:
            return candidate
        back *= 2.0
    return feasible


def gaussian_mu(privacy: Privacy) -> float:
    """Return the largest mu such that every mu-GDP release satisfies `privacy`.

    `ApproxDP`: the largest mu with delta(epsilon; mu) <= delta, where
    delta(epsilon; mu) = Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu);
    `ZeroConcentratedDP`: sqrt(2 rho); `GaussianDP`: mu.

    Args:
        privacy: The guarantee.

    Returns:
        mu: L2 sensitivity over standard deviation; rounded down.

    Raises:
        UnsupportedMechanismError: The guarantee is `PureDP`, which no Gaussian noise gives.
        DataTypeError: `privacy` is no guarantee.

    Source: Balle and Wang, Theorem 8 and Algorithm 1 (arXiv:1805.06530v2); Bun and Steinke, Proposition 1.6
    (arXiv:1605.02065).
    """
    match privacy_of(privacy):
        case PureDP():
            raise UnsupportedMechanismError(
                "Gaussian noise cannot give pure differential privacy; use Laplace noise, or ask for ApproxDP"
            )
        case ZeroConcentratedDP(rho=rho):
            return sqrt_down(2 * Fraction(rho))
        case GaussianDP(mu=mu):
            return mu
        case ApproxDP(epsilon=epsilon, delta=delta):
            return _approximate_mu(epsilon, delta)


def _approximate_mu(epsilon: float, delta: float) -> float:
    log_target = _log_target(delta)

    def gap(mu: float) -> tuple[float, float, float]:
        log_delta = log_gaussian_delta(epsilon, mu)
        # d delta/d mu = phi(a), a = mu/2 - epsilon/mu.
        a = 0.5 * mu - epsilon / mu
        slope = mu * math.exp(-0.5 * a * a - 0.5 * math.log(2.0 * math.pi) - log_delta.value)
        return log_delta.value - log_target, log_delta.error, slope

    # delta(epsilon; mu) <= Phi(a) <= exp(-a**2/2) for a <= 0 gives a feasible point, up to rounding.
    root = math.sqrt(-log_target)
    feasible = math.sqrt(2.0) * epsilon / (math.sqrt(epsilon - log_target) + root) * (1.0 - 1e-9)
    infeasible = 2.0 * feasible
    while gap(infeasible)[0] <= 0.0:
        feasible, infeasible = infeasible, 2.0 * infeasible
    return _largest_feasible(gap, feasible, infeasible)


def mu_of_pure(epsilon: float) -> float:
    """Return the least mu such that every epsilon-DP release is mu-GDP, rounded up.

    mu = 2 Phi^(-1)(exp(epsilon)/(1 + exp(epsilon))): the trade-off function of epsilon-DP is piecewise linear
    with one vertex on the diagonal, and the convex curve of mu-GDP through that vertex lies below it.

    Args:
        epsilon: Positive, in nats.

    Returns:
        mu, an upper bound.

    Raises:
        InvalidParameterError: `epsilon` is not positive and finite.
        DataTypeError: `epsilon` is not a real number.

    Source: Dong, Roth and Su, Section 2 (arXiv:1905.02383): the trade-off functions and their convexity.
    """
    epsilon = positive("epsilon", epsilon)

    def gap(mu: float) -> tuple[float, float, float]:
        reached, slope = _pure_curve(mu)
        # Feasible means that pure_of_mu(mu) >= epsilon.
        return epsilon - reached, _CLOSED_FORM_SLACK * epsilon, -slope

    # pure_of_mu(mu) >= sqrt(2/pi) mu, and >= mu**2/8, for all mu.
    feasible = 1.001 * min(math.sqrt(0.5 * math.pi) * min(epsilon, 1e300), math.sqrt(8.0) * math.sqrt(epsilon))
    return _largest_feasible(gap, feasible, 0.5 * feasible)


def _pure_curve(mu: float) -> tuple[float, float]:
    """Return epsilon(mu) = log(Phi(mu/2)/Phi(-mu/2)) and its derivative in log mu."""
    half = 0.5 * mu
    if half < 0.5:
        epsilon = 2.0 * math.atanh(math.erf(mu * _ROOT_EIGHTH))
    else:
        epsilon = log_normal_cdf(half) - log_normal_cdf(-half)
    # phi(h)/Phi(h) + phi(h)/Phi(-h) at h = mu/2.
    ratio = mills_ratio(half)
    density = math.exp(-0.5 * half * half) / math.sqrt(2.0 * math.pi)
    return epsilon, half * (density / (1.0 - 0.5 * math.erfc(half * math.sqrt(0.5))) + 1.0 / ratio)


def pure_of_mu(mu: float) -> float:
    """Return the largest epsilon such that every epsilon-DP release is mu-GDP, rounded down.

    epsilon = log(Phi(mu/2)/Phi(-mu/2)), the inverse of `mu_of_pure`; the result satisfies
    mu_of_pure(result) <= mu, so that a ledger which counts with `mu_of_pure` accepts it.

    Args:
        mu: Positive.

    Returns:
        epsilon in nats, a lower bound.

    Raises:
        InvalidParameterError: `mu` is not positive and finite.
        DataTypeError: `mu` is not a real number.
    """
    mu = positive("mu", mu)
    exact = _pure_curve(mu)[0]
    slack = 4.0 * _CLOSED_FORM_SLACK
    while mu_of_pure(exact * (1.0 - slack)) > mu:
        slack *= 2.0
    return exact * (1.0 - slack)


def rho_of_pure(epsilon: float) -> Fraction:
    """Return the least rho such that every epsilon-DP release is rho-zCDP, rounded up: epsilon*tanh(epsilon/2).

    The worst pair is randomised response, with (a - 1) D_a = log cosh((a - 1/2) epsilon) - log cosh(epsilon/2) for the
    Rényi divergence of order a. In w = (a - 1/2)**2 the function log cosh(epsilon sqrt(w)) is concave, its tangent at
    w = 1/4 has slope epsilon*tanh(epsilon/2), and w - 1/4 = a (a - 1). It is attained as a falls to 1.

    Args:
        epsilon: Positive, in nats.

    Returns:
        rho, an upper bound, at most epsilon**2/2.

    Raises:
        InvalidParameterError: `epsilon` is not positive and finite.
        DataTypeError: `epsilon` is not a real number.
    """
    epsilon = positive("epsilon", epsilon)
    simple = Fraction(epsilon) ** 2 / 2
    return simple if epsilon < _SMALL else min(simple, Fraction(epsilon * math.tanh(0.5 * epsilon) * (1.0 + 2.0**-48)))


def pure_of_rho(rho: float | Fraction) -> float:
    """Return the largest epsilon such that every epsilon-DP release is rho-zCDP, rounded down; 0 for none.

    It satisfies `rho_of_pure(result) <= rho`, so that a ledger accepts it.

    Args:
        rho: Positive; an exact fraction may be 0.

    Raises:
        InvalidParameterError: `rho` is not positive and finite.
        DataTypeError: `rho` is not a real number.
    """
    rho = rho if isinstance(rho, Fraction) else Fraction(positive("rho", rho))
    low = sqrt_down(2 * rho)
    if low < _SMALL:
        return low
    high = 2.0 * low
    while rho_of_pure(high) <= rho:
        low, high = high, 2.0 * high
    while math.nextafter(low, high) < high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if rho_of_pure(middle) <= rho else (low, middle)
    return low


def flips_of_pure(epsilon: float, odds: Fraction = Fraction(1)) -> int:
    """Return with which probability a randomised response lies, in units of 2**-40, rounded up.

    `odds/(exp(epsilon) + odds)`: then a message that is true is at most `exp(epsilon)` times as likely as where it is a
    lie.

    Args:
        epsilon: Positive, in nats.
        odds: Messages that are lies over those that are true, all of them as likely as each other: 1 for two answers.

    Returns:
        At least 1.

    Raises:
        InvalidParameterError: `epsilon` is not positive and finite.
        DataTypeError: `epsilon` is not a real number.
    """
    epsilon = positive("epsilon", epsilon)
    # The exponential is off by a few units in the last place at most.
    least = Fraction(math.exp(min(epsilon, _LARGE))) * (1 - Fraction(1, 2**48))
    return math.ceil(2**40 * odds / (least + odds))


def pure_epsilon(privacy: Privacy) -> float:
    """Return the largest epsilon such that every epsilon-DP release satisfies `privacy`.

    `PureDP` and `ApproxDP`: epsilon (delta is not used); `ZeroConcentratedDP`: `pure_of_rho`; `GaussianDP`:
    `pure_of_mu`.

    Args:
        privacy: The guarantee.

    Returns:
        epsilon in nats; rounded down.

    Raises:
        DataTypeError: `privacy` is no guarantee.

    Source: `rho_of_pure`, `mu_of_pure`.
    """
    match privacy_of(privacy):
        case PureDP(epsilon=epsilon) | ApproxDP(epsilon=epsilon):
            return epsilon
        case ZeroConcentratedDP(rho=rho):
            return pure_of_rho(rho)
        case GaussianDP(mu=mu):
            return pure_of_mu(mu)


def noise_ratio(privacy: Privacy, noise: Noise) -> float:
    """Return how much noise `privacy` needs for a sensitivity of one.

    Args:
        privacy: The guarantee.
        noise: "gaussian": the ratio is the standard deviation over the L2 sensitivity, 1/mu. "laplace": it is
            the parameter b of the density exp(-|z|/b)/(2b) over the L1 sensitivity, 1/epsilon, and the
            standard deviation is sqrt(2) b: Laplace noise for epsilon = 1 on one count has variance 2.
            "block": as "laplace" with the sum of block norms in place of the L1 norm.

    Returns:
        The ratio; rounded up.

    Raises:
        DataTypeError: `privacy` is no guarantee.
        InvalidParameterError: `noise` is none of these.
        UnsupportedMechanismError: This noise cannot give this guarantee.
    """
    if _is_gaussian(noise):
        return reciprocal_up(gaussian_mu(privacy))
    return reciprocal_up(pure_epsilon(privacy))


def cost(privacy: Privacy, noise: Noise) -> Cost:
    """Return what a release spends whose noise was calibrated by `noise_ratio` to exactly `privacy`.

    Args:
        privacy: The guarantee.
        noise: "gaussian", "laplace" or "block".

    Returns:
        A Gaussian cost (by rho for zCDP, by mu otherwise) or a pure cost.

    Raises:
        DataTypeError: `privacy` is no guarantee.
        InvalidParameterError: `noise` is none of these.
        UnsupportedMechanismError: This noise cannot give this guarantee.
    """
    if not _is_gaussian(noise):
        return PureCost(pure_epsilon(privacy))
    if isinstance(privacy, ZeroConcentratedDP):
        return GaussianCost(rho=privacy.rho)
    return GaussianCost(mu=gaussian_mu(privacy))


def _is_gaussian(noise: object) -> bool:
    return bool(one_of("noise", noise, get_args(Noise)) == "gaussian")


def delta_of_mu(mu: float, epsilon: float) -> float:
    """Return an upper bound on the delta for which mu-GDP gives (epsilon, delta)-DP.

    Args:
        mu: Positive.
        epsilon: At least 0, in nats.

    Returns:
        delta in (0, 1], rounded up; the excess is below 1e-11 relative while delta > 1e-300.

    Raises:
        InvalidParameterError: A parameter is out of range.
        DataTypeError: A parameter is not a real number.

    Source: Dong, Roth and Su, Corollary 2.13 (arXiv:1905.02383).
    """
    bound = log_gaussian_delta(epsilon, mu).upper
    if bound >= 0.0:
        return 1.0
    # Below the normal range exp() may round to zero; the least normal float is still an upper bound there.
    return min(1.0, max(math.exp(bound) * (1.0 + 2.0**-49), 2.0**-1022))


def epsilon_of_mu(mu: float, delta: float) -> float:
    """Return the least epsilon >= 0 for which mu-GDP gives (epsilon, delta)-DP.

    Args:
        mu: Positive.
        delta: Strictly between 0 and 1.

    Returns:
        epsilon in nats, rounded up; 0.0 if (0, delta)-DP holds already.

    Raises:
        InvalidParameterError: A parameter is out of range.
        DataTypeError: A parameter is not a real number.

    Source: Dong, Roth and Su, Corollary 2.13 (arXiv:1905.02383).
    """
    mu, delta = positive("mu", mu), open_unit("delta", delta)
    log_target = _log_target(delta)
    if log_gaussian_delta(0.0, mu).upper <= log_target:
        return 0.0

    def gap(epsilon: float) -> tuple[float, float, float]:
        log_delta = log_gaussian_delta(epsilon, mu)
        # d delta/d epsilon = -exp(epsilon) Phi(-mu/2 - epsilon/mu) = -phi(a) R(mu/2 + epsilon/mu).
        a = 0.5 * mu - epsilon / mu
        density = math.exp(-0.5 * a * a - 0.5 * math.log(2.0 * math.pi) - log_delta.value)
        slope = -epsilon * density * mills_ratio(0.5 * mu + epsilon / mu)
        return log_delta.value - log_target, log_delta.error, slope

    # delta <= exp(-a**2/2) with a = mu/2 - epsilon/mu = -sqrt(2 log(1/delta)).
    feasible = (0.5 * mu * mu + mu * math.sqrt(-2.0 * log_target)) * (1.0 + 1e-9)
    infeasible = 0.5 * feasible
    while infeasible > 1e-300 and gap(infeasible)[0] <= 0.0:
        feasible, infeasible = infeasible, 0.5 * infeasible
    return _largest_feasible(gap, feasible, infeasible)
