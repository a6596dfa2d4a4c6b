"""Intervals of counts whose noise is of one law, each of a size of its own."""

from __future__ import annotations

import numpy as np

from sordino._support.checks import flag
from sordino.accuracy.half_widths import gaussian_half_width
from sordino.accuracy.lattice_half_widths import discrete_half_width
from sordino.mechanisms.catalogue import Law
from sordino.releases.interval import Interval, interval_around
from sordino.workloads.base import Array

__all__ = ["interval_of_counts"]


def interval_of_counts(values: Array, stderr: Array, law: Law, level: float, simultaneous: bool) -> Interval:
    """Return confidence intervals for whole counts with Gaussian or discrete Laplace noise.

    Args:
        values: Counts with noise.
        stderr: Standard deviations in the same shape; not-a-number where there is no count.
        law: Of the noise.
        level: Strictly between 0 and 1.
        simultaneous: Whether all intervals shall hold together with this probability.

    Raises:
        InvalidParameterError: The level is out of range.
    """
    known = np.isfinite(stderr)
    answers = int(known.sum()) if flag("simultaneous", simultaneous) else 1
    width = np.full(stderr.shape, np.nan)
    if law == "gaussian":
        width[known] = gaussian_half_width(stderr[known], level, answers)
    else:
        sizes, which = np.unique(stderr[known], return_inverse=True)
        rates = 2.0 * np.arcsinh(np.sqrt(0.5) / sizes)
        width[known] = np.array([discrete_half_width(float(rate), level, answers) for rate in rates])[which]
    return interval_around(values, width, level, simultaneous, rounding=np.zeros(width.shape))
