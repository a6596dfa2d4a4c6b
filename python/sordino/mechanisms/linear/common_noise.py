"""How large the common noise is, for units that raise several cells together: from public facts to one ratio."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sordino import _core
from sordino.accuracy.lattice_half_widths import variance
from sordino.errors import UnsupportedMechanismError
from sordino.privacy.units import AddRemove, Unit
from sordino.workloads.base import Array

if TYPE_CHECKING:
    from sordino.mechanisms.linear.catalogue import Mechanism
    from sordino.workloads.base import Workload

__all__ = ["common_noise", "common_ratio", "gaussian_ratio"]

# Changes of so many cells are told apart; of more than these, so many spread evenly.
_MOST_KINKS = 4096
# At c d = 1 the common noise would be infinite.
_NEARLY = 1.0 - 1e-6
# More is gained than rounding errors.
_BETTER = 1.0 - 1e-9
# Below this common noise nothing is gained, and its lattice would be too fine.
_LEAST_RATIO = 1e-3


def common_noise(workload: Workload, unit: Unit, mechanism: Mechanism, ratio: float) -> _core.Strategy:
    """Return the strategy of noise on every cell and common noise.

    Args:
        workload: The queries.
        unit: What one protected thing can change.
        mechanism: Its law.
        ratio: Noise over sensitivity.

    Raises:
        UnsupportedMechanismError: The unit does not raise several cells together, or nothing is gained.
    """
    if not isinstance(unit, AddRemove) or not unit.raises_several:
        raise UnsupportedMechanismError(
            "common noise is for AddRemove units with one_signed=True and several records, fewer of a cell"
        )
    if mechanism.law == "laplace" and unit.per_cell != 1:
        raise UnsupportedMechanismError("common discrete noise is for units of one record a cell")
    size = common_ratio(workload, unit, mechanism.law == "laplace", ratio)
    if size is None:
        raise UnsupportedMechanismError("common noise gains nothing here: noise on every cell alone has less error")
    return _core.Strategy.common(workload.core, mechanism.law, size)


def common_ratio(workload: Workload, unit: AddRemove, pure: bool, ratio: float) -> float | None:
    """Return the best size of the common noise: sigma_0/sigma_1, or the rate over that of a cell if pure.

    An answer with weights w has variance `sigma_1^2 |w|^2 + sigma_0^2 (sum w)^2`; with F and T the means of both
    squares, Gaussian noise for mu = 1 has `max_m (m - c m^2) (F + T c/(1 - c d))`, `c = sigma_0^2/(sigma_1^2 + d
    sigma_0^2)`. It is smooth between the kinks `c = 1/(2m + 1)`, where another m is the largest. Pure noise of rates
    `epsilon/j` and `(2j + 1 - d) epsilon/j`, d/2 <= j < k, is as private for every j.

    Returns:
        None if no common noise is better.
    """
    d, k = workload.core.input_len or 0, min(unit.records // (unit.per_cell or 1), workload.core.input_len or 0)
    if d < 2 or k < 2:
        return None
    strategy = _core.Strategy(workload.core, "identity", "gaussian")
    mean_square, totals = _moments(workload, strategy)
    if pure:
        return _pure_ratio((d, k), mean_square, totals, ratio)

    return gaussian_ratio(d, k, mean_square, totals)


def gaussian_ratio(d: int, k: int, mean_square: float = 1.0, totals: float = 1.0) -> float | None:
    """Return the best common noise over that of a cell for changes of at most k of d cells, None if none is better.

    Args:
        d: Cells.
        k: Of which at most so many rise together.
        mean_square: F.
        totals: T; both 1 are a histogram.
    """

    def error(c: Array) -> Array:
        top = np.clip(np.floor(0.5 / np.maximum(c, 1e-300)), 1, k)
        largest = np.maximum(top - c * top**2, np.minimum(top + 1, k) - c * np.minimum(top + 1, k) ** 2)
        return np.asarray(largest * (mean_square + totals * c / (1.0 - c * d)))

    cells = np.arange(1, k + 1) if k <= _MOST_KINKS else np.unique(np.geomspace(1, k, _MOST_KINKS).astype(np.int64))
    kinks = np.unique(np.concatenate([[0.0], 1.0 / (2.0 * cells + 1.0), [1.0 / d]]))
    kinks = kinks[kinks <= 1.0 / d]
    # Golden sections of every smooth piece, all at once.
    low, high = kinks[:-1].copy(), np.minimum(kinks[1:], _NEARLY / d)
    shrink = 0.5 * (math.sqrt(5.0) - 1.0)
    for _ in range(80):
        left, right = high - shrink * (high - low), low + shrink * (high - low)
        falls = error(left) > error(right)
        low, high = np.where(falls, left, low), np.where(falls, high, right)
    candidates = np.concatenate([0.5 * (low + high), kinks[1:-1]])
    candidates = candidates[candidates < _NEARLY / d]
    errors = error(candidates)
    best = int(np.argmin(errors))
    c = float(candidates[best])
    size = math.sqrt(c / (1.0 - c * d))
    return size if errors[best] < _BETTER * error(np.zeros(1))[0] and size > _LEAST_RATIO else None


def _moments(workload: Workload, strategy: _core.Strategy) -> tuple[float, float]:
    """Return the (weighted) means of `|w|^2` and of `(sum w)^2` over the queries."""
    weights = workload.answer_weights()
    sums = strategy.decode(np.ones(strategy.measured_len))
    squares = strategy.variances()
    return float(np.average(squares, weights=weights)), float(np.average(sums**2, weights=weights))


def _pure_ratio(sizes: tuple[int, int], mean_square: float, totals: float, ratio: float) -> float | None:
    d, k = sizes
    j = np.arange(max(-(-d // 2), 1), k, dtype=np.float64)
    alone = mean_square * float(variance(1.0 / (ratio * k)))
    if not len(j):
        return None
    rates = 1.0 / (ratio * j)
    errors = mean_square * variance(rates) + totals * variance((2.0 * j + 1.0 - d) * rates)
    best = int(np.argmin(errors))
    return float(2.0 * j[best] + 1.0 - d) if errors[best] < _BETTER * alone else None
