"""Running totals of a year, published at once."""

import random
from typing import Any

import numpy as np
from harness import quick
from numpy.typing import NDArray

TITLE = "Running total, at once"
QUESTION = "How many events up to every hour of a year (8,760 answers, published together)?"
ERROR = "rmse of a total"
HOURS = 256 if quick() else 8760


def data() -> NDArray[np.int64]:
    return np.random.default_rng(3).poisson(40, HOURS)


def truth(hours: NDArray[np.int64]) -> Any:
    return np.cumsum(hours)


def sordino() -> Any:
    import sordino as so

    plan = so.plan(so.RunningSum(HOURS), so.ApproxDP(epsilon=1.0, delta=1e-6))
    return lambda hours: plan.release(hours).values


def opendp() -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    branches = dp.t.choose_branching_factor(HOURS)
    tree = dp.t.make_b_ary_tree(*space, leaf_count=HOURS, branching_factor=branches)
    leaves = dp.t.make_consistent_b_ary_tree(branches)
    release = dp.binary_search_chain(lambda scale: tree >> dp.m.then_laplace(scale) >> leaves, d_in=1, d_out=1.0)
    return lambda hours: np.cumsum(release(hours.astype("int32"))[:HOURS])


def jax_privacy() -> Any:
    import jax
    from dp_accounting.pld import common, privacy_loss_mechanism
    from jax_privacy.matrix_factorization import buffered_toeplitz

    jax.config.update("jax_enable_x64", True)
    strategy = buffered_toeplitz.optimize(n=HOURS, min_buffers=5, max_buffers=5)
    sensitivity = float(buffered_toeplitz.sensitivity_squared(strategy, HOURS)) ** 0.5
    privacy = common.DifferentialPrivacyParameters(1.0, 1e-6)
    gaussian = privacy_loss_mechanism.GaussianPrivacyLoss.from_privacy_guarantee(privacy, sensitivity)
    noising = jax.jit(lambda noise: strategy.inverse_as_streaming_matrix() @ noise)

    def release(hours: NDArray[np.int64]) -> Any:
        noise = jax.random.normal(jax.random.key(random.getrandbits(31)), (HOURS,)) * gaussian.standard_deviation
        return np.cumsum(hours + np.asarray(noising(noise)))

    return release


def diffprivlib(hours: NDArray[np.int64]) -> Any:
    from diffprivlib import mechanisms

    noise = mechanisms.Geometric(epsilon=1.0, sensitivity=1)
    return np.cumsum([noise.randomise(int(count)) for count in hours])


def plain_python(hours: list[int]) -> Any:
    levels = len(hours).bit_length()

    def noise() -> float:
        return levels * (random.expovariate(1.0) - random.expovariate(1.0))

    sums, noisy, totals = [0] * levels, [0.0] * levels, []
    for step, count in enumerate(hours, start=1):
        level = (step & -step).bit_length() - 1
        node = count + sum(sums[:level])
        sums[:level], noisy[:level] = [0] * level, [0.0] * level
        sums[level], noisy[level] = node, node + noise()
        totals.append(sum(noisy))
    return totals


def numpy(hours: NDArray[np.int64]) -> Any:
    n = len(hours)
    root = np.cumprod(np.r_[1.0, 1.0 - 0.5 / np.arange(1, n)])
    sigma = np.sqrt(2.0 * np.log(1.25 / 1e-6)) * np.linalg.norm(root)
    noise = np.random.default_rng().normal(scale=sigma, size=n)
    length = 2 * n
    return np.cumsum(hours) + np.fft.irfft(np.fft.rfft(root, length) * np.fft.rfft(noise, length), length)[:n]
