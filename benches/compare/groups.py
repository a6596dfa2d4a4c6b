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
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=int)

    def four_levels(scale: float) -> dp.Measurement:
        measured = dp.c.make_composition([dp.m.make_gaussian(*space, scale=scale)] * 4)
        return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(measured), 1e-6)

    scale = dp.binary_search_param(four_levels, d_in=1, d_out=(1.0, 1e-6), T=float)
    noisy = dp.m.make_gaussian(*space, scale=scale)
    return lambda towns: [noisy(level.astype("int32")) for level in levels(towns)]


def private_pgm(towns: NDArray[np.int64]) -> Any:
    import mbi
    from dp_accounting.pld import common, privacy_loss_mechanism
    from mbi import estimation

    privacy = common.DifferentialPrivacyParameters(1.0, 1e-6)
    stddev = privacy_loss_mechanism.GaussianPrivacyLoss.from_privacy_guarantee(privacy, 2.0).standard_deviation
    sets, rng = [(0, 1, 2), (0, 1), (0,), ()], np.random.default_rng()
    measured = [
        mbi.LinearMeasurement(level + rng.normal(scale=stddev, size=len(level)), s, stddev=stddev)
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
