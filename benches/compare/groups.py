"""Towns, counties, states and the nation."""

import random
from typing import Any

import numpy as np
from harness import quick
from numpy.typing import NDArray

TITLE = "Nation, states, counties, towns"
QUESTION = "How many people in 3,000 towns, 250 counties, 50 states and the nation?"
ERROR = "rmse, every level counting the same"
STATES = 5 if quick() else 50
COUNTIES, TOWNS = 5 * STATES, 60 * STATES


def data() -> NDArray[np.int64]:
    return np.random.default_rng(9).negative_binomial(1, 0.002, TOWNS)


def levels(towns: Any) -> list[Any]:
    """Return the sums of all levels, given to everybody."""
    towns = np.asarray(towns, dtype=float)
    return [towns, *(towns.reshape(groups, -1).sum(axis=1) for groups in (COUNTIES, STATES, 1))]


def mean_squared_error(answer: Any, truth: Any) -> float:
    """Return the mean over the levels of their mean squared errors."""
    return float(np.mean([np.mean((np.asarray(a) - t) ** 2) for a, t in zip(answer, truth, strict=True)]))


def truth(towns: NDArray[np.int64]) -> Any:
    return levels(towns)


def sordino() -> Any:
    import sordino as so

    town = np.arange(TOWNS)
    groups = [town, town // 12, town // 60, np.zeros_like(town)]
    workload = so.GroupBy(groups, weights=[1.0, 12**0.5, 60**0.5, TOWNS**0.5])
    plan = so.plan(workload, so.ApproxDP(epsilon=1.0, delta=1e-6))

    def release(towns: NDArray[np.int64]) -> Any:
        parts = workload.split(plan.release(towns).values)
        return [part / weight for part, weight in zip(parts, workload.weights, strict=True)]

    return release


def opendp() -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    noisy = dp.binary_search_chain(lambda scale: dp.m.make_laplace(*space, scale=scale), d_in=1, d_out=1.0 / 4.0)
    return lambda towns: [noisy(level.astype("int32")) for level in levels(towns)]


def private_pgm(towns: NDArray[np.int64]) -> Any:
    import mbi
    from mbi import estimation

    sets, rng = [(0, 1, 2), (0, 1), (0,), ()], np.random.default_rng()
    measured = [
        mbi.LinearMeasurement(level + rng.laplace(scale=4.0, size=len(level)), s, stddev=4.0 * 2.0**0.5)
        for level, s in zip(levels(towns), sets, strict=True)
    ]
    model = estimation.LBFGS().estimate(mbi.Domain([0, 1, 2], [len(towns) // 60, 5, 12]), measured, iters=1000)
    return [np.asarray(model.project(s).datavector()) for s in sets]


def diffprivlib(towns: NDArray[np.int64]) -> Any:
    from diffprivlib import mechanisms

    noise = mechanisms.Geometric(epsilon=0.25, sensitivity=1)
    return [[noise.randomise(int(count)) for count in level] for level in levels(towns)]


def plain_python(towns: list[int]) -> Any:
    def noisy(count: float) -> float:
        return count + 4.0 * (random.expovariate(1.0) - random.expovariate(1.0))

    sizes = 1, 12, 60, len(towns)
    return [[noisy(sum(towns[i : i + size])) for i in range(0, len(towns), size)] for size in sizes]


def numpy(towns: NDArray[np.int64]) -> Any:
    rng = np.random.default_rng()
    return [level + rng.laplace(scale=4.0, size=len(level)) for level in levels(towns)]
