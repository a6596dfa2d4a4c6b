"""Guarantees in words: every number is rounded up."""

import math
from fractions import Fraction

from sordino._support.rounding import decimal_up, float_up, sqrt_up
from sordino.errors import UnsupportedCostError
from sordino.privacy.calibration import epsilon_of_mu
from sordino.privacy.costs import ApproxCost, ApproximateGaussianCost, Cost, GaussianCost, PureCost
from sordino.privacy.guarantees import ApproxDP, GaussianDP, Privacy, PureDP, ZeroConcentratedDP

__all__ = ["promise_of"]


def promise_of(cost: Cost, times: int, privacy: Privacy) -> str:
    """Say what `times` units together are promised."""
    match cost:
        case PureCost(epsilon=epsilon):
            return f"{decimal_up(Fraction(epsilon) * times, 6)}-differential privacy"
        case GaussianCost():
            mu = sqrt_up(cost.mu_squared * times**2)
            match privacy:
                case ApproxDP(epsilon=epsilon, delta=delta):
                    worst = epsilon if times == 1 else epsilon_of_mu(mu, delta)
                    return f"{_pair(worst, delta)} ({decimal_up(mu, 6)}-GDP)"
                case ZeroConcentratedDP():
                    rho = cost.mu_squared * times**2 / 2
                    return f"{decimal_up(rho, 6)}-zero-concentrated differential privacy"
                case GaussianDP() | PureDP():
                    return f"{decimal_up(mu, 6)}-Gaussian differential privacy"
        case ApproximateGaussianCost(mu=mu, delta=delta):
            if times > 1:
                raise UnsupportedCostError("of several units together nothing is known for published keys")
            return f"{decimal_up(mu, 6)}-Gaussian differential privacy but for a probability of {decimal_up(delta, 3)}"
        case ApproxCost(epsilon=epsilon, delta=delta):
            if times == 1:
                return _pair(epsilon, delta)
            # Group privacy of (epsilon, delta): delta·(e^(k·epsilon) - 1)/(e^epsilon - 1), by logarithms.
            growth = _log_expm1(Fraction(epsilon) * times) - _log_expm1(Fraction(epsilon))
            worst = math.log(delta) + growth + 1e-9
            return _pair(Fraction(epsilon) * times, math.exp(worst) if worst < 0.0 else 1.0)


def _pair(epsilon: Fraction | float, delta: float) -> str:
    return f"({decimal_up(epsilon, 6)}, {decimal_up(delta, 3)})-differential privacy"


def _log_expm1(exponent: Fraction) -> float:
    """Return `log(e^x - 1)`; for a large x it is x."""
    x = float_up(exponent)
    return x if x > 700.0 else math.log(math.expm1(x))
