"""Confidence intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sordino.workloads.base import Array

__all__ = ["Interval", "interval_around"]

# Rounding errors of a few sums of products, relative to the numbers and to the width.
_OF_VALUES, _OF_WIDTH = 2.0**-40, 2.0**-30
# Beyond this every number is a whole one, rounded or not.
_EXACT = 2.0**52


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


def interval_around(
    values: ArrayLike,
    widths: ArrayLike,
    level: float,
    simultaneous: bool,
    *,
    rounding: ArrayLike | None = None,
) -> Interval:
    """Return intervals around answers.

    Discrete noise lies on the ends with a probability of its own. Unless all answers and widths are whole numbers,
    they may be rounded, and the ends go outward.

    Args:
        values: The answers.
        widths: Half widths of the intervals.
        level: Probability of each, or of all.
        simultaneous: Whether they hold all together.
        rounding: What rounding errors of the answers may add, for discrete noise; None for noise with a density.
    """
    values, widths = np.asarray(values, dtype=np.float64), np.asarray(widths, dtype=np.float64)
    if rounding is not None:
        whole = all(((np.rint(part) == part) & (np.abs(part) < _EXACT)).all() for part in (values, widths))
        more = np.asarray(rounding, dtype=np.float64) + _OF_VALUES * np.abs(values) + _OF_WIDTH * widths
        widths = widths if whole else widths + more
    return Interval(np.subtract(values, widths), np.add(values, widths), level, simultaneous)
