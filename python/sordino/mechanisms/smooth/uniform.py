"""What no query of a whole class is off by more than: truncation and noise, over all queries at once.

Of the answer, or of 0 where that is surer: what no query exceeds is a bound that needs no data.
"""

from __future__ import annotations

import math

import numpy as np

from sordino.accuracy.half_widths import gaussian_half_width
from sordino.errors import UnsupportedMechanismError
from sordino.mechanisms.smooth.measurement import SmoothMeasurement
from sordino.workloads.base import Array
from sordino.workloads.smooth.queries import KernelQueries

__all__ = ["uniform_error"]

# Grid points a polynomial on every axis, from which a bound on the grid becomes one on the cube.
_FINENESS = 4


def uniform_error(fitted: SmoothMeasurement, beta: float) -> float:
    """Return a bound for all queries of the class together that fails with probability at most `beta`.

    Chebyshev sums: `|f - Pf|` by Jackson's theorem or bounds of summed coefficients, and the noise `|sum c_m z_m|/n` by
    the smaller of `|c|_2 |z|_2` and `sum sup|c_m| |z_m|`. Kernels: their averages are trigonometric polynomials of the
    centre, so that a bound at the points of a grid, all at once, holds everywhere up to a factor; how far features are
    from the kernel is what was found on a grid.

    Raises:
        UnsupportedMechanismError: There is no bound for this mechanism or set of indices.
    """
    workload = fitted.workload
    match fitted.mechanism.strategy:
        case "kernel" if workload.declared is None:
            return min(_kernel(fitted, beta), 1.0)
        case "chebyshev" | "weighted" | "moments":
            return _chebyshev(fitted, beta)
        case _:
            raise UnsupportedMechanismError(f"{fitted.mechanism.strategy} has no bound over a whole class of queries")


def _kernel(fitted: SmoothMeasurement, beta: float) -> float:
    points, overshoot = 1, 1.0
    for axis in fitted.axes:
        intervals = _FINENESS * max(axis.degree - 1, 1)
        points *= intervals + 1
        overshoot /= math.cos(math.pi * (axis.degree - 1) / (2 * intervals))
    known = fitted.known_total
    # Without what is known of the total, at the least.
    share = math.prod(1.0 + axis.error for axis in fitted.axes) - (0.0 if known is None else 1.0 - known.share)
    deviation = float(fitted.stderr[0]) * math.sqrt(share)
    public = fitted.count_is_public
    answers = points + (0 if public else 1)
    width = gaussian_half_width(deviation, 1.0 - beta, answers) * overshoot
    if not public:
        # An average is at most 1, so that an error of the number of points counts at most once.
        width += gaussian_half_width(float(fitted.stderr[-1]), 1.0 - beta, answers)
    return width / fitted.workload.points + fitted.truncation


def _chebyshev(fitted: SmoothMeasurement, beta: float) -> float:
    workload = fitted.workload
    indices = fitted.features.indices()
    assert indices is not None
    kind = workload.query_class
    if fitted.indices is not None:
        raise UnsupportedMechanismError("there is a bound over a whole class for tensor sets alone")
    assert not isinstance(kind, KernelQueries)
    truncation = kind.truncation_bound(fitted.sizes, workload.cube, workload.approximation)
    public = fitted.count_is_public
    # Two bounds, of the queries and of the number of points, share what may fail.
    first, beta = (1, beta) if public else (0, beta / 2.0)
    largest = kind.largest(indices, workload.cube)[first:]
    deviations = fitted.stderr[first:]
    # By Parseval's equation sum c_m^2 2^-(axes of m) <= B^2 for functions below B.
    norm = 2.0 ** (workload.dimension / 2.0) * kind.ceiling
    noise = min(
        _weighted(largest * deviations, fitted.mechanism.law, beta),
        norm * _euclidean(deviations, fitted.mechanism.law, beta),
    )
    if not public:
        noise += kind.ceiling * _weighted(fitted.stderr[:1], fitted.mechanism.law, beta)
    return float(min(noise / workload.points + truncation, kind.ceiling))


def _weighted(scales: Array, law: str, beta: float) -> float:
    """Return a bound of `sum s_m |z_m|` for independent z of variance 1 that fails with probability at most `beta`.

    Gaussian: its mean, and `|s|_2 sqrt(2 log 1/beta)` by concentration of Lipschitz functions. Laplace: `|z|` is
    exponential with mean 1/sqrt 2, and sums of such are sub-gamma: `sqrt(2 v log 1/beta) + c log 1/beta`.
    """
    log = math.log(1.0 / beta)
    if law == "gaussian":
        return float(scales.sum()) * math.sqrt(2.0 / math.pi) + float(np.linalg.norm(scales)) * math.sqrt(2.0 * log)
    means = scales / math.sqrt(2.0)
    return (
        float(means.sum()) + float(np.linalg.norm(means)) * math.sqrt(2.0 * log) + float(means.max(initial=0.0)) * log
    )


def _euclidean(deviations: Array, law: str, beta: float) -> float:
    """Return a bound of `|z|_2` for independent z with these standard deviations.

    Gaussian: concentration. Laplace of scale b: `E z^2 = 2 b^2`, `var z^2 = 20 b^4`, and Cantelli's inequality.
    """
    squares = deviations**2
    if law == "gaussian":
        largest = float(deviations.max(initial=0.0))
        return math.sqrt(float(squares.sum())) + largest * math.sqrt(2.0 * math.log(1.0 / beta))
    spread = math.sqrt(5.0 * float((squares**2).sum()) * (1.0 - beta) / beta)
    return math.sqrt(float(squares.sum()) + spread)
