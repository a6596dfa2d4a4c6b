"""AIM of private-pgm (`mechanisms/aim.py`, commit 4d2b3c5; Apache 2.0) on `mbi` 2.0: its loop, for a given rho.

McKenna, Mullins, Sheldon & Miklau 2022, `arXiv:2201.12677`. The wheel of `mbi` has the estimator, not the mechanism: the loop is written
once more here as it is there, with mirror descent in 64 bits and a warm start.
"""

import itertools
from collections.abc import Sequence

import mbi
import numpy as np
from mbi import estimation, junction_tree
from numpy.typing import NDArray
from scipy.special import softmax

__all__ = ["aim"]

Array = NDArray[np.float64]
Set = tuple[int, ...]
Tables = dict[Set, Array]

_ROUNDS = 16
_MOST_BYTES = 80.0
_MEAN = np.sqrt(2.0 / np.pi)


def aim(levels: Sequence[int], tables: Tables, rho: float, rng: np.random.Generator, steps: int) -> Tables:
    """Return estimates of all pairs.

    Args:
        levels: Levels of the attributes.
        tables: True tables of one attribute and of pairs, flat.
        rho: Of zero-concentrated differential privacy.
        rng: For its noise.
        steps: Of mirror descent, after every round.
    """
    d, domain = len(levels), mbi.Domain(list(range(len(levels))), list(levels))
    pairs = list(itertools.combinations(range(d), 2))
    weights = {s: float(sum(len(set(s) & set(pair)) for pair in pairs)) for s in tables}
    sigma, epsilon = np.sqrt(_ROUNDS * d / (1.8 * rho)), np.sqrt(0.8 * rho / (_ROUNDS * d))

    def measured(s: Set, sigma: float) -> mbi.LinearMeasurement:
        return mbi.LinearMeasurement(tables[s] + rng.normal(0.0, sigma, tables[s].size), s, stddev=sigma)

    seen = [measured((i,), sigma) for i in range(d)]
    used = d * 0.5 / sigma**2
    estimator = estimation.MirrorDescent()
    model = estimator.estimate(domain, seen, iters=steps)
    last = False
    while not last:
        if rho - used < 2.0 * (0.5 / sigma**2 + epsilon**2 / 8.0):
            rest, last = rho - used, True
            sigma, epsilon = np.sqrt(1.0 / (1.8 * rest)), np.sqrt(0.8 * rest)
        used += epsilon**2 / 8.0 + 0.5 / sigma**2
        limit, cliques = _MOST_BYTES * used / rho, list(model.cliques)
        free = {below for clique in cliques for r in (1, 2) for below in itertools.combinations(sorted(clique), r)}
        small = [
            s for s in tables if s in free or junction_tree.hypothetical_model_size(domain, [*cliques, s]) <= limit
        ]
        known = {s: np.asarray(model.project(s).datavector()) for s in small}
        scores = np.array(
            [weights[s] * (np.abs(tables[s] - known[s]).sum() - _MEAN * sigma * tables[s].size) for s in small]
        )
        heaviest = max(weights[s] for s in small)
        chosen = small[rng.choice(len(small), p=softmax(0.5 * epsilon / heaviest * (scores - scores.max())))]
        seen.append(measured(chosen, sigma))
        start = model.potentials.expand(list({each.clique for each in seen}))
        model = estimator.estimate(domain, seen, iters=steps, warm_start=start)
        moved = np.abs(np.asarray(model.project(chosen).datavector()) - known[chosen]).sum()
        if moved <= _MEAN * sigma * tables[chosen].size:
            sigma, epsilon = sigma / 2.0, epsilon * 2.0
    return {pair: np.asarray(model.project(pair).datavector()) for pair in pairs}
