"""Guarantees in words."""

import math

from sordino.calibration import epsilon_of_mu
from sordino.events import ApproxEvent, Event, GaussianEvent, PureEvent
from sordino.privacy import ApproxDP, GaussianDP, Privacy, PureDP, ZeroConcentratedDP

__all__ = ["promise_of"]


def promise_of(event: Event, times: int, privacy: Privacy) -> str:
    """Say what `times` units together are promised."""
    match event:
        case PureEvent(epsilon=epsilon):
            return f"{epsilon * times:.6g}-differential privacy"
        case GaussianEvent():
            mu = float(event.mu_squared) ** 0.5 * times
            match privacy:
                case ApproxDP(epsilon=epsilon, delta=delta):
                    worst = epsilon if times == 1 else epsilon_of_mu(mu, delta)
                    return f"({worst:.6g}, {delta:.3g})-differential privacy ({mu:.6g}-GDP)"
                case ZeroConcentratedDP():
                    return f"{mu * mu / 2.0:.6g}-zero-concentrated differential privacy"
                case GaussianDP() | PureDP():
                    return f"{mu:.6g}-Gaussian differential privacy"
        case ApproxEvent(epsilon=epsilon, delta=delta):
            if times == 1:
                return f"({epsilon:.6g}, {delta:.3g})-differential privacy"
            # Group privacy of (epsilon, delta): delta·(e^(k·epsilon) - 1)/(e^epsilon - 1).
            growth = sum(math.exp(i * epsilon) for i in range(times))
            return f"({epsilon * times:.6g}, {min(delta * growth, 1.0):.3g})-differential privacy"
