"""Least error of any mechanism for counts of which one record changes one cell by one."""

import math

import numpy as np

from sordino.accuracy.bounds import Bound
from sordino.accuracy.lattice_half_widths import standard_deviation
from sordino.privacy.guarantees import ApproxDP, Privacy, PureDP
from sordino.privacy.units import AddRemove, Unit
from sordino.workloads import Histogram, Workload

__all__ = ["count_bound"]

# Terms of the sum; below this epsilon there would be more.
_LEAST_EPSILON = 1e-5
_SAFE = 1.0 - 1e-11


def count_bound(workload: Workload, privacy: Privacy, unit: Unit) -> Bound | None:
    """Return the least root mean squared error of a cell of a histogram of whole counts; None where it is not known.

    For counts without an upper bound, `q = exp(-epsilon)`.

    *Pure.* The worst-case mean squared error of every cell is at least `2q/(1 - q)^2`, that of discrete Laplace noise.
    Fix the other cells, and average over shifts and reflection: symmetric additive noise Y with `S(t) = P(Y >= t)`,
    `S(t + 1) >= q S(t)`, and `S(1 - t) >= q (1 - S(t))` for 0 < t < 1. On the integers equality throughout is the
    discrete Laplace law; for real outputs `E Y^2 = 4 int t S(t) dt`, folded to (0, 1) and t paired with 1 - t, is least
    at S(t) = q/(1 + q) there, which is the same value.

    *Approximate.* For integer-valued noise `S_k = P(Y >= k)` has `S_1 >= q (1 - delta)/(1 + q)` and
    `S_{k+1} >= max(0, q (S_k - delta))`; equality throughout is attained by a truncated law, of variance
    `2 sum (2k - 1) S_k`.

    Args:
        workload: The queries: a `Histogram`.
        privacy: `PureDP` or `ApproxDP`.
        unit: `AddRemove(1)`.

    Source: Ghosh, Roughgarden and Sundararajan, "Universally utility-maximizing privacy mechanisms" (SIAM J. Comput.
    41, 2012) for one count; Awan and Vadhan (arXiv:2108.04303) for the truncated law.
    """
    if type(workload) is not Histogram or not isinstance(unit, AddRemove) or unit.records != 1:
        return None
    match privacy:
        case PureDP(epsilon=epsilon):
            value = standard_deviation(epsilon) * _SAFE
            return Bound("least error of a count", value, "any, for counts without an upper bound", binds_all=True)
        case ApproxDP(epsilon=epsilon, delta=delta) if epsilon >= _LEAST_EPSILON:
            value = math.sqrt(_least_variance(epsilon, delta)) * _SAFE
            return Bound(
                "least error of a count",
                value,
                "any of whole numbers, for counts without an upper bound",
                binds_all=True,
            )
    return None


def _least_variance(epsilon: float, delta: float) -> float:
    """Return 2 sum (2k - 1) S_k: with c = q delta/(1 - q), S_k + c falls by a factor q, until S_k would be below 0."""
    epsilon = min(epsilon, 500.0)
    q = math.exp(-epsilon)
    c = q * delta / -math.expm1(-epsilon)
    first = q * (1.0 - delta) / (1.0 + q)
    last = math.floor(math.log1p(first / c) / epsilon) + 1 if c > 0.0 else math.ceil(1000.0 / epsilon)
    k = np.arange(min(last, math.ceil(1000.0 / epsilon)))
    tails = np.maximum((first + c) * np.exp(-epsilon * k) - c, 0.0)
    return float(2.0 * ((2.0 * k + 1.0) @ tails))
