"""Confidence intervals."""

from dataclasses import dataclass

from sordino.workloads.base import Array

__all__ = ["Interval"]


@dataclass(frozen=True)
class Interval:
    """Confidence intervals for the true answers.

    Attributes:
        lower: Lower ends, in the shape of the answers.
        upper: Upper ends.
        level: Probability that each, or all together, hold.
        simultaneous: Whether they hold all together.
    """

    lower: Array
    upper: Array
    level: float
    simultaneous: bool
