"""Mean of a bounded column; the number of records is private."""

import random
from typing import Any

import numpy as np
from harness import quick
from numpy.typing import NDArray

TITLE = "Mean"
QUESTION = "What is the mean of 100,000 amounts between 0 and 100, if nobody may know how many there are?"
ERROR = "rmse of the mean"
RECORDS = 5_000 if quick() else 100_000


def data() -> NDArray[np.float64]:
    return np.minimum(np.random.default_rng(2).gamma(2.0, 8.0, RECORDS), 100.0).round(2)


def truth(amounts: NDArray[np.float64]) -> Any:
    return amounts.mean()


def sordino(amounts: NDArray[np.float64]) -> Any:
    import sordino as so

    value = so.tables.Value(0.0, 100.0, step=2**-10)
    schema = so.Schema({"all": so.tables.Integers(0, 0)}, user=None, values={"amount": value})
    table = so.tabulate({"all": np.zeros(len(amounts), int), "amount": amounts}, schema, request_id="amounts")
    release = so.plan(schema.counts(), so.ApproxDP(epsilon=1.0, delta=1e-6), max_value=2**34).release(table)
    return release.to_frame(library="pandas")["amount_mean"]


def opendp(amounts: NDArray[np.float64]) -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    total = space >> dp.t.then_clamp((0.0, 100.0)) >> dp.t.then_sum()
    count = space >> dp.t.then_count()
    noisy_sum = dp.binary_search_chain(lambda scale: total >> dp.m.then_laplace(scale), d_in=1, d_out=0.5)
    noisy_count = dp.binary_search_chain(lambda scale: count >> dp.m.then_laplace(scale), d_in=1, d_out=0.5)
    return noisy_sum(amounts) / noisy_count(amounts)


def diffprivlib(amounts: NDArray[np.float64]) -> Any:
    from diffprivlib import tools

    return tools.sum(amounts, epsilon=0.5, bounds=(0, 100)) / tools.count_nonzero(amounts >= 0, epsilon=0.5)


def plain_python(amounts: list[float]) -> Any:
    def noise(scale: float) -> float:
        return scale * (random.expovariate(1.0) - random.expovariate(1.0))

    total = sum(min(max(amount, 0.0), 100.0) - 50.0 for amount in amounts)
    return 50.0 + (total + noise(50.0 / 0.5)) / (len(amounts) + noise(1.0 / 0.5))


def numpy(amounts: NDArray[np.float64]) -> Any:
    rng = np.random.default_rng()
    total = (np.clip(amounts, 0.0, 100.0) - 50.0).sum() + rng.laplace(scale=50.0 / 0.5)
    return 50.0 + total / (len(amounts) + rng.laplace(scale=1.0 / 0.5))
