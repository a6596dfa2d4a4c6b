"""Counts of known categories."""

import random
from typing import Any

import numpy as np
from harness import quick
from numpy.typing import NDArray

TITLE = "Histogram"
QUESTION = "How many of 1,000,000 records are in each of 1,000 categories?"
ERROR = "rmse of a count"
RECORDS = 10_000 if quick() else 1_000_000


def data() -> NDArray[np.int64]:
    return np.minimum(np.random.default_rng(1).geometric(0.005, RECORDS) - 1, 999)


def truth(codes: NDArray[np.int64]) -> Any:
    return np.bincount(codes, minlength=1000)


def sordino(codes: NDArray[np.int64]) -> Any:
    import sordino as so

    plan = so.plan(so.Histogram(1000), so.ApproxDP(epsilon=1.0, delta=1e-6))
    return plan.release(np.bincount(codes, minlength=1000)).values


def opendp(codes: NDArray[np.int64]) -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    count = dp.t.make_count_by_categories(*space, categories=list(range(1000)), null_category=False)
    release = dp.binary_search_chain(lambda scale: count >> dp.m.then_laplace(scale), d_in=1, d_out=1.0)
    return release(codes.astype("int32"))


def diffprivlib(codes: NDArray[np.int64]) -> Any:
    from diffprivlib import tools

    return tools.histogram(codes, epsilon=1.0, bins=1000, range=(0, 1000))[0]


def plain_python(codes: list[int]) -> Any:
    counts = [0] * 1000
    for code in codes:
        counts[code] += 1
    return [count + random.expovariate(1.0) - random.expovariate(1.0) for count in counts]


def numpy(codes: NDArray[np.int64]) -> Any:
    return np.bincount(codes, minlength=1000) + np.random.default_rng().laplace(scale=1.0, size=1000)
