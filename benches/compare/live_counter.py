"""A counter that is published after every step."""

import random
from typing import Any

import numpy as np
from harness import quick
from numpy.typing import NDArray

TITLE = "Live counter"
QUESTION = "How many events so far, published after every hour of a year, each answer before the next hour is known?"
ERROR = "rmse of a count"
HOURS = 256 if quick() else 8760


def data() -> NDArray[np.int64]:
    return np.random.default_rng(4).poisson(40, HOURS)


def truth(hours: NDArray[np.int64]) -> Any:
    return np.cumsum(hours)


def sordino() -> Any:
    import sordino as so

    plan = so.plan(so.Continual(so.RunningSum(HOURS)), so.ApproxDP(epsilon=1.0, delta=1e-6))

    def release(hours: NDArray[np.int64]) -> Any:
        with plan.open() as stream:
            return [stream.update(int(count)) for count in hours]

    return release


def opendp() -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    levels = HOURS.bit_length()
    space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    node = dp.binary_search_chain(lambda scale: dp.m.make_laplace(*space, scale=scale), d_in=1, d_out=1.0 / levels)

    def release(hours: NDArray[np.int64]) -> Any:
        sums, noisy, totals = [0] * levels, [0] * levels, []
        for step, count in enumerate(hours, start=1):
            level = (step & -step).bit_length() - 1
            exact = int(count) + sum(sums[:level])
            sums[:level], noisy[:level] = [0] * level, [0] * level
            sums[level], noisy[level] = exact, node(exact)
            totals.append(sum(noisy))
        return totals

    return release


def jax_privacy() -> Any:
    import jax
    from dp_accounting.pld import common, privacy_loss_mechanism
    from jax_privacy import noise_addition
    from jax_privacy.matrix_factorization import buffered_toeplitz

    jax.config.update("jax_enable_x64", True)
    strategy = buffered_toeplitz.optimize(n=HOURS, min_buffers=5, max_buffers=5)
    sensitivity = float(buffered_toeplitz.sensitivity_squared(strategy, HOURS)) ** 0.5
    privacy = common.DifferentialPrivacyParameters(1.0, 1e-6)
    gaussian = privacy_loss_mechanism.GaussianPrivacyLoss.from_privacy_guarantee(privacy, sensitivity)
    noising, zero = strategy.inverse_as_streaming_matrix(), np.float64(0.0)
    update = jax.jit(noise_addition.matrix_factorization_privatizer(noising, stddev=gaussian.standard_deviation).update)

    def release(hours: NDArray[np.int64]) -> Any:
        fresh = noise_addition.matrix_factorization_privatizer(noising, stddev=gaussian.standard_deviation)
        state, totals = fresh.init(zero), [0.0]
        for count in hours:
            noisy, state = update(np.float64(count), state)
            totals.append(totals[-1] + float(noisy))
        return totals[1:]

    return release


def plain_python(hours: list[int]) -> Any:
    levels = len(hours).bit_length()

    def noise() -> float:
        return levels * (random.expovariate(1.0) - random.expovariate(1.0))

    sums, noisy, totals = [0] * levels, [0.0] * levels, []
    for step, count in enumerate(hours, start=1):
        level = (step & -step).bit_length() - 1
        exact = count + sum(sums[:level])
        sums[:level], noisy[:level] = [0] * level, [0.0] * level
        sums[level], noisy[level] = exact, exact + noise()
        totals.append(sum(noisy))
    return totals


def numpy(hours: NDArray[np.int64]) -> Any:
    n = len(hours)
    root = np.cumprod(np.r_[1.0, 1.0 - 0.5 / np.arange(1, n)])
    sigma = np.sqrt(2.0 * np.log(1.25 / 1e-6)) * np.linalg.norm(root)
    noise, total, totals = np.random.default_rng().normal(scale=sigma, size=n), 0, []
    for step, count in enumerate(hours, start=1):
        total += int(count)
        totals.append(total + root[:step] @ noise[step - 1 :: -1])
    return totals
