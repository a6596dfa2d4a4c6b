"""Tables of all pairs of attributes."""

import itertools
import math
import random
from typing import Any

import numpy as np
from harness import quick
from numpy.typing import NDArray

TITLE = "Two-way marginals"
QUESTION = "What are the tables of all 28 pairs of 8 attributes of 50,000 people (1,156 cells)?"
ERROR = "rmse of a cell"
PEOPLE = 2_000 if quick() else 50_000
LEVELS = (2, 3, 4, 4, 6, 7, 9, 12)
PAIRS = list(itertools.combinations(range(len(LEVELS)), 2))


def data() -> NDArray[np.int64]:
    rng = np.random.default_rng(7)
    common = rng.random(PEOPLE)
    columns = [(common + 0.5 * rng.random(PEOPLE)) / 1.5 * level for level in LEVELS]
    return np.stack(columns, axis=1).astype(np.int64)


def truth(people: NDArray[np.int64]) -> Any:
    return np.concatenate([count(people, i, j) for i, j in PAIRS])


def count(people: NDArray[np.int64], i: int, j: int) -> NDArray[np.int64]:
    """Return the exact table of a pair; given to everybody who uses numpy."""
    return np.bincount(people[:, i] * LEVELS[j] + people[:, j], minlength=LEVELS[i] * LEVELS[j])


def sordino() -> Any:
    import sordino as so

    plan = so.plan(so.Marginals(LEVELS, k=2), so.ApproxDP(epsilon=1.0, delta=1e-6))
    return lambda people: plan.release(people).consistent().values


def opendp() -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    cells = [
        dp.t.make_count_by_categories(
            *space, categories=list(range(LEVELS[i] * LEVELS[j])), null_category=False, MO=dp.L2Distance[int]
        )
        for i, j in PAIRS
    ]

    def all_tables(scale: float) -> dp.Measurement:
        measured = dp.c.make_composition([cell >> dp.m.then_gaussian(scale) for cell in cells])
        return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(measured), 1e-6)

    scale = dp.binary_search_param(all_tables, d_in=1, d_out=(1.0, 1e-6), T=float)
    tables = [cell >> dp.m.then_gaussian(scale) for cell in cells]

    def release(people: NDArray[np.int64]) -> Any:
        codes = [(people[:, i] * LEVELS[j] + people[:, j]).astype("int32") for i, j in PAIRS]
        return np.concatenate([table(code) for table, code in zip(tables, codes, strict=True)])

    return release


def private_pgm(people: NDArray[np.int64]) -> Any:
    import mbi
    from dp_accounting.pld import common, privacy_loss_mechanism
    from mbi import estimation

    privacy = common.DifferentialPrivacyParameters(1.0, 1e-6)
    gaussian = privacy_loss_mechanism.GaussianPrivacyLoss.from_privacy_guarantee(privacy, math.sqrt(len(PAIRS)))
    rng, stddev = np.random.default_rng(), gaussian.standard_deviation
    noisy = [(pair, count(people, *pair)) for pair in PAIRS]
    measured = [mbi.LinearMeasurement(t + rng.normal(scale=stddev, size=len(t)), p, stddev=stddev) for p, t in noisy]
    domain = mbi.Domain(list(range(len(LEVELS))), LEVELS)
    model = estimation.MirrorDescent().estimate(domain, measured, iters=1000)
    return np.concatenate([np.asarray(model.project(pair).datavector()) for pair in PAIRS])


def diffprivlib(people: NDArray[np.int64]) -> Any:
    from diffprivlib import tools

    def table(i: int, j: int) -> NDArray[np.float64]:
        levels = LEVELS[i], LEVELS[j]
        bounds = [(0, level) for level in levels]
        return tools.histogram2d(people[:, i], people[:, j], epsilon=1.0 / len(PAIRS), bins=levels, range=bounds)[0]

    return np.concatenate([table(i, j).ravel() for i, j in PAIRS])


def plain_python(people: list[list[int]]) -> Any:
    sigma = math.sqrt(2.0 * math.log(1.25 / 1e-6)) * math.sqrt(len(PAIRS))
    answers = []
    for i, j in PAIRS:
        table = [0] * (LEVELS[i] * LEVELS[j])
        for person in people:
            table[person[i] * LEVELS[j] + person[j]] += 1
        answers += [cell + random.gauss(0.0, sigma) for cell in table]
    return answers


def numpy(people: NDArray[np.int64]) -> Any:
    sigma = np.sqrt(2.0 * np.log(1.25 / 1e-6)) * np.sqrt(len(PAIRS))
    exact = np.concatenate([count(people, i, j) for i, j in PAIRS])
    return exact + np.random.default_rng().normal(scale=sigma, size=len(exact))
