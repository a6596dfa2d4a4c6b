"""Series of 4,096 cells and points on 128 x 128 cells, drawn anew for a seed, as page 8 of the mathematics describes them."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["CELLS", "POINTS", "SERIES", "SIDE"]

Counts = NDArray[np.int64]
Generator = np.random.Generator

CELLS = 4096
SIDE = 128


def _heavy(rng: Generator) -> Counts:
    """140 heavy cells, 25,714 records."""
    counts = np.zeros(CELLS, dtype=np.int64)
    # The page is silent on where: 7 runs of 20 (apart from each other, its ranges do not come out); shares are exponential.
    firsts = 20 * rng.choice(CELLS // 20, 7, replace=False)
    counts[(firsts[:, None] + np.arange(20)).ravel()] = rng.multinomial(25_714, rng.dirichlet(np.ones(140)))
    return counts


def _spikes(rng: Generator) -> Counts:
    """25 spikes, 100,000 records."""
    counts = np.zeros(CELLS, dtype=np.int64)
    # The page is silent on how high: shares are exponential.
    counts[rng.choice(CELLS, 25, replace=False)] = rng.multinomial(100_000, rng.dirichlet(np.ones(25)))
    return counts


def _blocks(rng: Generator) -> Counts:
    """12 busy blocks."""
    counts = np.zeros(CELLS, dtype=np.int64)
    # The page is silent on width and height: 40 cells, about 100,000 records altogether, Poisson, anywhere.
    for first in rng.integers(0, CELLS - 40, 12):
        counts[first : first + 40] += rng.poisson(100_000 / 480, 40)
    return counts


def _plateaus(rng: Generator) -> Counts:
    """12 plateaus."""
    # The page is silent on ends and heights: uniform, exponential, about 100,000 records, Poisson.
    widths = np.diff(np.r_[0, np.sort(rng.choice(np.arange(1, CELLS), 11, replace=False)), CELLS])
    rates = np.repeat(rng.exponential(1.0, 12), widths)
    counts: Counts = rng.poisson(100_000 * rates / rates.sum())
    return counts


def _smooth(rng: Generator) -> Counts:
    """A smooth rate."""
    # The page is silent on the curve: three waves, never empty, 100,000 records, Poisson.
    rates = 1.0 + 0.8 * np.sin(2.0 * np.pi * 3.0 * (np.arange(CELLS) / CELLS + rng.random()))
    counts: Counts = rng.poisson(100_000 * rates / rates.sum())
    return counts


def _lognormal(rng: Generator) -> Counts:
    """Lognormal cells without order."""
    # The page is silent on the spread: 1.5, and 100,000 records, Poisson.
    rates = rng.lognormal(0.0, 1.5, CELLS)
    counts: Counts = rng.poisson(100_000 * rates / rates.sum())
    return counts


SERIES: dict[str, Callable[[Generator], Counts]] = {
    "140 heavy cells": _heavy,
    "25 spikes": _spikes,
    "12 busy blocks": _blocks,
    "12 plateaus": _plateaus,
    "smooth": _smooth,
    "lognormal": _lognormal,
}


def _grid(points: NDArray[np.float64]) -> Counts:
    """Points of the unit square as counts; those outside are dropped."""
    inside = points[((points >= 0.0) & (points < 1.0)).all(axis=1)]
    places = (SIDE * inside).astype(int)
    return np.bincount(places[:, 0] * SIDE + places[:, 1], minlength=SIDE * SIDE).reshape(SIDE, SIDE)


def _clusters(rng: Generator, n: int) -> Counts:
    """Gaussian clusters."""
    # The page is silent on number and width: 20, exponential shares, deviations .005 to .04, a tenth anywhere.
    centres, widths = rng.random((20, 2)), rng.uniform(0.005, 0.04, 20)
    which = rng.choice(20, n, p=rng.dirichlet(np.ones(20)))
    points = rng.normal(centres[which], widths[which, None])
    points[: n // 10] = rng.random((n // 10, 2))
    return _grid(points)


def _roads(rng: Generator, n: int) -> Counts:
    """Points along roads."""
    # The page is silent on number and width: 15 straight ones between uniform ends, deviation .005.
    ends = rng.random((15, 2, 2))
    which, along = rng.integers(0, 15, n), rng.random((n, 1))
    return _grid(rng.normal(ends[which, 0] + along * (ends[which, 1] - ends[which, 0]), 0.005))


def _gaussian(rng: Generator, n: int) -> Counts:
    """One Gaussian."""
    # The page is silent on place and width: the middle, deviation .08 (by the page's errors of the full tree).
    return _grid(rng.normal(0.5, 0.08, (n, 2)))


POINTS: dict[str, Callable[[Generator, int], Counts]] = {
    "clusters": _clusters,
    "roads": _roads,
    "one Gaussian": _gaussian,
}
