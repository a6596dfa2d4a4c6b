"""Moving averages of a week over the hours of a year."""

import random
from typing import Any

import numpy as np
from harness import quick
from numpy.typing import NDArray

TITLE = "Moving average"
QUESTION = "What is the mean of the last 168 hours, at every hour of a year (zeros before it)?"
ERROR = "rmse of an average"
HOURS = 1024 if quick() else 8760


def data() -> NDArray[np.int64]:
    return np.random.default_rng(5).poisson(40, HOURS)


def truth(hours: NDArray[np.int64]) -> Any:
    return np.convolve(hours, np.ones(168))[: len(hours)] / 168


def sordino() -> Any:
    import sordino as so

    plan = so.plan(so.MovingAverage(window=168, length=HOURS), so.ApproxDP(epsilon=1.0, delta=1e-6))
    return lambda hours: plan.release(hours).values


def opendp(hours: NDArray[np.int64]) -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    release = dp.binary_search_chain(lambda scale: dp.m.make_laplace(*space, scale=scale), d_in=1, d_out=1.0)
    return np.convolve(release(hours.astype("int32")), np.ones(168))[: len(hours)] / 168


def diffprivlib(hours: NDArray[np.int64]) -> Any:
    from diffprivlib import mechanisms

    noise = mechanisms.Geometric(epsilon=1.0, sensitivity=1)
    return np.convolve([noise.randomise(int(count)) for count in hours], np.ones(168))[: len(hours)] / 168


def plain_python(hours: list[int]) -> Any:
    noisy = [count + random.expovariate(1.0) - random.expovariate(1.0) for count in hours]
    window, averages = 0.0, []
    for step, count in enumerate(noisy):
        window += count - (noisy[step - 168] if step >= 168 else 0.0)
        averages.append(window / 168)
    return averages


def numpy(hours: NDArray[np.int64]) -> Any:
    noisy = hours + np.random.default_rng().laplace(scale=1.0, size=len(hours))
    return np.convolve(noisy, np.ones(168))[: len(hours)] / 168
