"""Averages of kernels over points: a density."""

import math
import random
from typing import Any

import numpy as np
from harness import quick
from numpy.typing import NDArray

TITLE = "Density"
QUESTION = "What is the mean of a Gaussian kernel (bandwidth 0.1) over 20,000 points of a square, at 400 places?"
ERROR = "rmse of a mean"
POINTS = 1_000 if quick() else 20_000
PLACES = [((i + 0.5) / 20, (j + 0.5) / 20) for i in range(20) for j in range(20)]


def data() -> NDArray[np.float64]:
    rng = np.random.default_rng(11)
    centres = rng.choice([0.25, 0.6, 0.8], size=(POINTS, 1))
    return np.clip(centres + 0.08 * rng.normal(size=(POINTS, 2)), 0.0, 1.0)


def smoothed(points: Any, weights: Any) -> Any:
    """Return weighted means of kernels at all places, given to everybody who uses numpy."""
    distances = ((np.asarray(PLACES)[:, None] - points) ** 2).sum(axis=2)
    return np.exp(-distances / 0.02) @ weights / np.sum(weights)


def middles(bins: int) -> Any:
    """Return the middles of the cells of a grid, given to everybody who uses numpy."""
    axis = (np.arange(bins) + 0.5) / bins
    return np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=2).reshape(-1, 2)


def truth(points: NDArray[np.float64]) -> Any:
    return smoothed(points, np.ones(len(points)))


def sordino() -> Any:
    import sordino as so

    kernels = so.smooth.GaussianKernels(0.1)
    workload = so.smooth.SmoothQueries(2, points=POINTS, bounds=(0, 1), query_class=kernels)
    plan = so.plan(workload, so.ApproxDP(epsilon=1.0, delta=1e-6))
    return lambda points: plan.release(points).query(kernels.at(PLACES)).values


def opendp(points: NDArray[np.float64]) -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    count = dp.t.make_count_by_categories(*space, categories=list(range(32 * 32)), null_category=False)
    release = dp.binary_search_chain(lambda scale: count >> dp.m.then_laplace(scale), d_in=1, d_out=1.0)
    cells = np.minimum((points * 32).astype(int), 31)
    return smoothed(middles(32), release((cells[:, 0] * 32 + cells[:, 1]).astype("int32")))


def diffprivlib(points: NDArray[np.float64]) -> Any:
    from diffprivlib import tools

    counts = tools.histogram2d(points[:, 0], points[:, 1], epsilon=1.0, bins=32, range=[(0, 1), (0, 1)])[0]
    return smoothed(middles(32), counts.ravel())


def plain_python(points: list[list[float]]) -> Any:
    bins, counts = 32, [0.0] * (32 * 32)
    for x, y in points:
        counts[min(int(x * bins), bins - 1) * bins + min(int(y * bins), bins - 1)] += 1.0
    noisy = [count + random.expovariate(1.0) - random.expovariate(1.0) for count in counts]
    total, axis = sum(noisy), [(i + 0.5) / bins for i in range(bins)]

    def mean(x: float, y: float) -> float:
        along_x, along_y = ([math.exp(-((a - centre) ** 2) / 0.02) for a in axis] for centre in (x, y))
        rows = (sum(k * noisy[i * bins + j] for j, k in enumerate(along_y)) for i in range(bins))
        return sum(k * row for k, row in zip(along_x, rows, strict=True)) / total

    return [mean(x, y) for x, y in PLACES]


def numpy(points: NDArray[np.float64]) -> Any:
    counts = np.histogram2d(points[:, 0], points[:, 1], bins=32, range=[(0, 1), (0, 1)])[0]
    return smoothed(middles(32), counts.ravel() + np.random.default_rng().laplace(scale=1.0, size=32 * 32))
