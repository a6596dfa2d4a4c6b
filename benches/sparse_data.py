"""Made series and maps on which mechanisms that look are judged: mostly empty, mostly flat, and neither.

Six series of 4,096 cells and three sets of points on 128 x 128 cells, each drawn anew for a seed.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["CELLS", "POINTS", "SERIES", "SIDE"]

Counts = NDArray[np.int64]
Generator = np.random.Generator

CELLS = 4096
SIDE = 128


def _heavy(rng: Generator) -> Counts:
    """140 heavy cells of about 184 records."""
    counts = np.zeros(CELLS, dtype=np.int64)
    counts[rng.choice(CELLS, 140, replace=False)] = rng.geometric(140 / 25_714, 140)
    return counts


def _spikes(rng: Generator) -> Counts:
    """100,000 records in 25 cells."""
    counts = np.zeros(CELLS, dtype=np.int64)
    counts[rng.choice(CELLS, 25, replace=False)] = rng.multinomial(100_000, rng.dirichlet(np.ones(25)))
    return counts


def _blocks(rng: Generator) -> Counts:
    """12 busy blocks of 40 cells."""
    counts = np.zeros(CELLS, dtype=np.int64)
    for first in rng.choice(CELLS - 40, 12, replace=False):
        counts[first : first + 40] += rng.poisson(200.0, 40)
    return counts


def _plateaus(rng: Generator) -> Counts:
    """12 plateaus with ends anywhere, about 25 records a cell."""
    ends = np.r_[0, np.sort(rng.choice(np.arange(1, CELLS), 11, replace=False)), CELLS]
    counts: Counts = rng.poisson(np.repeat(rng.exponential(25.0, 12), np.diff(ends)))
    return counts


def _smooth(rng: Generator) -> Counts:
    """Three waves around 25 records a cell."""
    counts: Counts = rng.poisson(25.0 * (1.0 + 0.8 * np.sin(2.0 * np.pi * 3.0 * np.arange(CELLS) / CELLS)))
    return counts


def _lognormal(rng: Generator) -> Counts:
    """100,000 records, lognormal without order."""
    rates = rng.lognormal(0.0, 1.5, CELLS)
    counts: Counts = rng.poisson(100_000 * rates / rates.sum())
    return counts


SERIES: dict[str, Callable[[Generator], Counts]] = {
    "heavy cells": _heavy,
    "spikes": _spikes,
    "blocks": _blocks,
    "plateaus": _plateaus,
    "smooth": _smooth,
    "lognormal": _lognormal,
}


def _grid(points: NDArray[np.float64]) -> Counts:
    """Points of the unit square, those outside dropped, as counts."""
    inside = points[((points >= 0.0) & (points < 1.0)).all(axis=1)]
    counts = np.zeros((SIDE, SIDE), dtype=np.int64)
    np.add.at(counts, tuple((SIDE * inside).astype(int).T), 1)
    return counts


def _clusters(rng: Generator, points: int) -> Counts:
    """20 clusters of unlike weight and width, and a tenth anywhere."""
    centres, widths = rng.random((20, 2)), rng.uniform(0.005, 0.04, 20)
    which = rng.choice(20, points, p=rng.dirichlet(np.ones(20)))
    found = rng.normal(centres[which], widths[which, None])
    found[: points // 10] = rng.random((points // 10, 2))
    return _grid(found)


def _roads(rng: Generator, points: int) -> Counts:
    """Along 15 straight roads, a hundredth of the side wide."""
    ends = rng.random((15, 2, 2))
    which, along = rng.integers(0, 15, points), rng.random((points, 1))
    found = ends[which, 0] + along * (ends[which, 1] - ends[which, 0])
    return _grid(found + rng.normal(0.0, 0.005, (points, 2)))


def _gaussian(rng: Generator, points: int) -> Counts:
    """One Gaussian."""
    return _grid(rng.normal([0.45, 0.55], [0.1, 0.15], (points, 2)))


POINTS: dict[str, Callable[[Generator, int], Counts]] = {
    "clusters": _clusters,
    "roads": _roads,
    "one Gaussian": _gaussian,
}
