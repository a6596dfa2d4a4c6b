"""Nested levels of equal groups by their largest standard error.

The largest error over levels is the largest mean error over weights of levels, so weights go up where a level is worse
than the mean of all, `y_l <- y_l e_l / sum_k y_k e_k` (e_l the largest variance of level l): the strategy of least mean
error for the weights where none is worse than another is the best for the worst. Of groups that differ within a level
each has another error, and noise on the answers is as good.
"""

from collections.abc import Sequence

import numpy as np

from sordino import _core
from sordino.mechanisms.catalogue import Law
from sordino.privacy.units import Unit

__all__ = ["worst_level"]

_ROUNDS = 12
# Of the largest standard error: rounds that gain less are the last ones.
_GAIN = 1e-3


def worst_level(
    groups: _core.NestedGroups, level_sizes: Sequence[int], law: Law, unit: Unit, most: int | None
) -> _core.Strategy:
    """Return the counts of nested groups whose largest standard error is the least that is found.

    Args:
        groups: Nested groups, equal on each level.
        level_sizes: How many there are on each.
        law: Of the noise.
        unit: What is protected.
        most: Bound of counts that the lattice leaves room for, None for reals.
    """
    sizes = np.array(level_sizes)
    edges = np.cumsum(sizes) - sizes
    relation = None if unit.changes is None else unit.relation()
    weights, best, least = 1.0 / sizes, None, np.inf
    for _ in range(_ROUNDS):
        each = np.repeat(weights, sizes)
        strategy = groups.strategy(law, each / each.mean(), relation, most)
        scale = _core.fit(strategy, unit.relation(), 1, 0, 1.0).noise
        worst = np.maximum.reduceat(strategy.variances(), edges)
        error = scale * float(np.sqrt(worst.max()))
        if error >= least:
            break
        before, best, least = least, strategy, error
        if error >= (1.0 - _GAIN) * before:
            break
        weights *= worst / np.average(worst, weights=weights * sizes)
    assert best is not None
    return best
