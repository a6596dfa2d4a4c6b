"""All ranges of an ordered histogram."""

import random
from typing import Any

import numpy as np
from harness import quick
from numpy.typing import NDArray

TITLE = "All ranges"
QUESTION = "How many records between any two of 256 ordered cells (32,896 answers)?"
ERROR = "rmse of a range"
CELLS = 32 if quick() else 256


def data() -> NDArray[np.int64]:
    return np.random.default_rng(6).poisson(20, CELLS)


def between(totals: Any) -> Any:
    """Return all ranges from the running totals of the cells; given to everybody."""
    totals = np.asarray(totals, dtype=float)
    return np.concatenate([totals[first:] - (totals[first - 1] if first else 0.0) for first in range(len(totals))])


def truth(cells: NDArray[np.int64]) -> Any:
    return between(np.cumsum(cells))


def sordino() -> Any:
    import sordino as so

    plan = so.plan(so.AllRanges(CELLS), so.ApproxDP(epsilon=1.0, delta=1e-6))
    return lambda cells: plan.release(cells).values


def opendp() -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    branches = dp.t.choose_branching_factor(CELLS)
    tree = dp.t.make_b_ary_tree(*space, leaf_count=CELLS, branching_factor=branches)
    leaves = dp.t.make_consistent_b_ary_tree(branches)
    release = dp.binary_search_chain(lambda scale: tree >> dp.m.then_laplace(scale) >> leaves, d_in=1, d_out=1.0)
    return lambda cells: between(np.cumsum(release(cells.astype("int32"))[:CELLS]))


def jax_privacy() -> Any:
    import jax
    import jax.numpy as jnp
    from dp_accounting.pld import common, privacy_loss_mechanism
    from jax_privacy.matrix_factorization import dense

    jax.config.update("jax_enable_x64", True)
    last = np.arange(1, CELLS + 1)
    gram = np.minimum.outer(last, last) * (CELLS + 1.0 - np.maximum.outer(last, last))
    strategy = dense.optimize(CELLS, A=jnp.asarray(np.linalg.cholesky(gram).T))
    sensitivity = float(jnp.linalg.norm(strategy, axis=0).max())
    privacy = common.DifferentialPrivacyParameters(1.0, 1e-6)
    gaussian = privacy_loss_mechanism.GaussianPrivacyLoss.from_privacy_guarantee(privacy, sensitivity)

    def release(cells: NDArray[np.int64]) -> Any:
        noise = jax.random.normal(jax.random.key(random.getrandbits(31)), (CELLS,)) * gaussian.standard_deviation
        return between(np.cumsum(cells + np.asarray(jnp.linalg.solve(strategy, noise))))

    return release


def diffprivlib(cells: NDArray[np.int64]) -> Any:
    from diffprivlib import mechanisms

    noise = mechanisms.Geometric(epsilon=1.0, sensitivity=1)
    return between(np.cumsum([noise.randomise(int(count)) for count in cells]))


def plain_python(cells: list[int]) -> Any:
    totals = [0.0]
    for count in cells:
        totals.append(totals[-1] + count + random.expovariate(1.0) - random.expovariate(1.0))
    return [last - first for place, first in enumerate(totals) for last in totals[place + 1 :]]


def numpy(cells: NDArray[np.int64]) -> Any:
    return between(np.cumsum(cells + np.random.default_rng().laplace(scale=1.0, size=len(cells))))
