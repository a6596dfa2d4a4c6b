"""Composition of a schedule: events that are all declared beforehand add up by their privacy losses."""

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from sordino.calibration import delta_of_mu
from sordino.errors import DataTypeError, InvalidParameterError
from sordino.events import Event, GaussianEvent, PureEvent

__all__ = ["schedule_delta"]

# Distinct total losses of the pure events; more are not worth the time.
_LOSSES = 1_000_000
# Relative error granted to sums of up to a million positive terms.
_SLACK = 1.0 + 1e-9


def schedule_delta(events: Sequence[Event], epsilon: float) -> float:
    """Return the delta that all events together need at `epsilon`: an upper bound, tight up to rounding.

    Gaussian events compose to one mu-GDP event, `mu² = sum mu_i²`. Every epsilon_i-DP event is dominated by one bit of
    randomised response, whose loss is `+epsilon_i` with probability `p_i = 1/(1 + e^(-epsilon_i))` and `-epsilon_i`
    otherwise. With L the sum of those losses,

        delta(epsilon) = E[ delta_mu(epsilon - L) ],   delta_0(x) = max(0, 1 - e^x),

    and for negative x, `delta_mu(x) = 1 - e^x (1 - delta_mu(-x))`, as the Gaussian pair is symmetric.

    Args:
        events: Gaussian and pure events.
        epsilon: Positive, in nats.

    Returns:
        delta in [0, 1].

    Raises:
        DataTypeError: An event of another kind.
        InvalidParameterError: Too many different pure events to enumerate.

    Source: Kairouz, Oh and Viswanath (arXiv:1311.0776) for randomised response; Dong, Roth and Su
    (arXiv:1905.02383) for the Gaussian pair. Fixed parameters compose for adaptively chosen mechanisms too.
    """
    mu_squared = Fraction(0)
    pure: Counter[float] = Counter()
    for event in events:
        match event:
            case GaussianEvent():
                mu_squared += event.mu_squared
            case PureEvent(epsilon=loss):
                pure[loss] += 1
            case _:
                raise DataTypeError("a schedule holds Gaussian and pure events")
    mu = math.sqrt(float(mu_squared)) * (1.0 + 2.0**-50)
    losses = {0.0: 1.0}
    for loss, count in sorted(pure.items()):
        if len(losses) * (count + 1) > _LOSSES:
            raise InvalidParameterError("too many different pure events in one schedule")
        up = 1.0 / (1.0 + math.exp(-loss))
        signs = {
            (2 * j - count) * loss: math.comb(count, j) * up**j * (1.0 - up) ** (count - j) for j in range(count + 1)
        }
        combined: dict[float, float] = {}
        for a, weight in losses.items():
            for b, chance in signs.items():
                combined[a + b] = combined.get(a + b, 0.0) + weight * chance
        losses = combined
    total = math.fsum(chance * _delta(mu, epsilon - loss) for loss, chance in losses.items())
    return min(1.0, total * _SLACK)


def _delta(mu: float, epsilon: float) -> float:
    if mu == 0.0:
        # Rounding of the loss itself must not turn an exact 0 into something, nor the reverse.
        return max(0.0, -math.expm1(epsilon)) if epsilon < -1e-12 else 0.0
    if epsilon >= 0.0:
        return delta_of_mu(mu, epsilon)
    return 1.0 - math.exp(epsilon) * (1.0 - delta_of_mu(mu, -epsilon))
