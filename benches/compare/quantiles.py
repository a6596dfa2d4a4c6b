"""Quartiles of a bounded column."""

import itertools
import math
import random
from typing import Any

import numpy as np
from harness import quick
from numpy.typing import NDArray

TITLE = "Quartiles"
QUESTION = "What are the three quartiles of 5,000 incomes between 0 and 200,000?"
ERROR = "rmse of a quartile"
PEOPLE = 1_000 if quick() else 5_000


def data() -> NDArray[np.float64]:
    return np.minimum(np.random.default_rng(8).lognormal(10.4, 0.6, PEOPLE), 199_999.0).round(2)


def truth(incomes: NDArray[np.float64]) -> Any:
    return np.quantile(incomes, [0.25, 0.5, 0.75])


def sordino() -> Any:
    import sordino as so

    edges = np.linspace(0.0, 200_000.0, 1001)
    plan = so.plan(so.RunningSum(1000), so.ApproxDP(epsilon=1.0, delta=1e-6))

    def release(incomes: NDArray[np.float64]) -> Any:
        totals = plan.release(np.histogram(incomes, edges)[0]).consistent().values
        return np.interp(np.array([0.25, 0.5, 0.75]) * totals[-1], totals, edges[1:])

    return release


def opendp() -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    candidates = [float(candidate) for candidate in range(0, 200_001, 200)]

    def quantile(alpha: float) -> dp.Measurement:
        return dp.binary_search_chain(
            lambda scale: dp.m.make_private_quantile(*space, dp.max_divergence(), candidates, alpha, scale),
            d_in=1,
            d_out=1.0 / 3.0,
        )

    quartiles = [quantile(alpha) for alpha in (0.25, 0.5, 0.75)]
    return lambda incomes: [quartile(incomes) for quartile in quartiles]


def diffprivlib(incomes: NDArray[np.float64]) -> Any:
    from diffprivlib import tools

    return tools.quantile(incomes, [0.25, 0.5, 0.75], epsilon=1.0, bounds=(0, 200_000))


def plain_python(incomes: list[float]) -> Any:
    ordered = [0.0, *sorted(incomes), 200_000.0]

    def quantile(q: float) -> float:
        weights = [
            (high - low) * math.exp(-abs(rank - q * len(incomes)) / 6.0)
            for rank, (low, high) in enumerate(itertools.pairwise(ordered))
        ]
        (place,) = random.choices(range(len(weights)), weights)
        return random.uniform(ordered[place], ordered[place + 1])

    return [quantile(q) for q in (0.25, 0.5, 0.75)]


def numpy(incomes: NDArray[np.float64]) -> Any:
    rng, n = np.random.default_rng(), len(incomes)
    ordered = np.r_[0.0, np.sort(incomes), 200_000.0]
    answers = []
    for q in (0.25, 0.5, 0.75):
        with np.errstate(divide="ignore"):
            scores = np.log(np.diff(ordered)) - np.abs(np.arange(n + 1) - q * n) / 6.0
        place = np.argmax(scores + rng.gumbel(size=n + 1))
        answers.append(rng.uniform(ordered[place], ordered[place + 1]))
    return answers
