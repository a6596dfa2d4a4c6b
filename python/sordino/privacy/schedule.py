"""Composition of a schedule: costs that are all declared beforehand add up by their privacy losses."""

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from sordino._support.checks import sequence
from sordino._support.rounding import float_down, sqrt_up
from sordino.errors import DataTypeError, InvalidParameterError
from sordino.privacy.calibration import delta_of_mu
from sordino.privacy.costs import Cost, GaussianCost, PureCost

__all__ = ["checked_costs", "schedule_delta"]

# Distinct total losses of the pure costs; more are not worth the time.
_LOSSES = 1_000_000
# Relative error granted to sums of up to a million positive terms.
_SLACK = 1.0 + 1e-9
# Of a logarithm that is the sum of terms of this size: products, gamma functions and sums are right to a few ulps.
_LOG_ERROR = 2.0**-49
# Below all normal floats.
_TINY = 2.0**-1022
# exp of what is below is 0.
_LEAST_GAP = -800
# In units of mu: both tails of the Gaussian are then below `_TINY`.
_FAR = 1e6


def schedule_delta(costs: Sequence[Cost], epsilon: float) -> float:
    """Return the delta that all costs together need at `epsilon`: an upper bound, tight up to rounding.

    Gaussian costs compose to one mu-GDP cost, `mu² = sum mu_i²`. Every epsilon_i-DP cost is dominated by one bit of
    randomised response, whose loss is `+epsilon_i` with probability `p_i = 1/(1 + e^(-epsilon_i))` and `-epsilon_i`
    otherwise. With L the sum of those losses,

        delta(epsilon) = E[ delta_mu(epsilon - L) ],   delta_0(x) = max(0, 1 - e^x),

    and for negative x, `delta_mu(x) = 1 - e^x (1 - delta_mu(-x))`, as the Gaussian pair is symmetric.

    Args:
        costs: Gaussian and pure costs.
        epsilon: Positive, in nats.

    Returns:
        delta in [0, 1].

    Raises:
        DataTypeError: An cost of another kind.
        InvalidParameterError: Too many different pure costs to enumerate.

    Source: Kairouz, Oh and Viswanath (arXiv:1311.0776) for randomised response; Dong, Roth and Su
    (arXiv:1905.02383) for the Gaussian pair. Fixed parameters compose for adaptively chosen mechanisms too.
    """
    mu_squared = Fraction(0)
    pure: Counter[float] = Counter()
    for cost in checked_costs(costs):
        match cost:
            case GaussianCost():
                mu_squared += cost.mu_squared
            case PureCost(epsilon=loss):
                pure[loss] += 1
    mu = sqrt_up(mu_squared)
    # All losses are multiples of one power of two: sums of them are exact integers.
    one = max(Fraction(number).denominator for number in (epsilon, *pure))
    losses, log_error = {0: 1.0}, 0.0
    for loss, count in sorted(pure.items()):
        if len(losses) * (count + 1) > _LOSSES:
            raise InvalidParameterError("too many different pure costs in one schedule")
        unit = int(Fraction(loss) * one)
        log_up = -math.log1p(math.exp(-loss))
        log_error += _LOG_ERROR * (math.lgamma(count + 1.0) + count * (loss - 2.0 * log_up))
        signs = [((2 * j - count) * unit, _chance(count, j, log_up, log_up - loss)) for j in range(count + 1)]
        combined: dict[int, float] = {}
        for a, weight in losses.items():
            for b, chance in signs:
                combined[a + b] = combined.get(a + b, 0.0) + weight * chance
        losses = combined
    budget = int(Fraction(epsilon) * one)
    total = math.fsum(chance * _delta(mu, Fraction(budget - loss, one)) for loss, chance in losses.items())
    # Chances below the smallest float were lost.
    lost = len(losses) * _TINY if total > 0.0 and len(losses) > 2 else 0.0
    return min(1.0, total * _SLACK * math.exp(log_error) + lost)


def checked_costs(costs: object) -> tuple[Cost, ...]:
    """Return declared costs as a tuple.

    Raises:
        DataTypeError: No sequence of Gaussian and pure costs.
    """
    found: tuple[Cost, ...] = sequence("a schedule", costs, "costs")
    if not all(isinstance(cost, GaussianCost | PureCost) for cost in found):
        raise DataTypeError("a schedule holds Gaussian and pure costs")
    return found


def _chance(count: int, j: int, log_up: float, log_down: float) -> float:
    """Return the probability of j rises in `count`, from the logarithms of those of a rise and of a fall."""
    log_ways = math.lgamma(count + 1.0) - math.lgamma(j + 1.0) - math.lgamma(count - j + 1.0)
    return math.exp(log_ways + j * log_up + (count - j) * log_down)


def _delta(mu: float, gap: Fraction) -> float:
    """Return `delta_mu(gap)`, the gap rounded down: delta falls in it. Its sign is that of the exact gap."""
    e = _LEAST_GAP if gap < _LEAST_GAP else float_down(gap)
    beyond = -math.expm1(e) if gap < 0 else 0.0
    if mu == 0.0:
        return beyond
    if abs(e) > _FAR * mu:  # more than the Gaussian pair reaches
        return beyond + _TINY
    return delta_of_mu(mu, e) if gap >= 0 else beyond + math.exp(e) * delta_of_mu(mu, -e)
