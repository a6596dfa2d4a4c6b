"""Error beside speed for running sums and averages: ours, jax-privacy's buffered factor, trees, and the bound below all.

Errors are standard deviations at noise multiplier 1 (for sensitivity 1 noise of standard deviation 1), so the tables
hold for every (epsilon, delta): multiply. Ours are those of the plan, rounding included. Peers are charged nothing for
rounding; their errors are those of their matrices.

Run `python benches/stream_errors.py`.
"""

import math
import time
from functools import partial
from typing import Literal

import numpy as np
from harness import Row, amount, in_process, main, power, quick, race
from numpy.typing import NDArray
from peers import ENVIRONMENT, JaxCounter, PlainTree, TreeCounter, TreeTable, jax_buffered

import sordino as so

__all__ = ["figures", "nuclear_bound", "tree_variances"]

_UNIT_NOISE = so.GaussianDP(mu=1.0)
_BUFFERS = 5
_CALLS = 200 if quick() else 2000
_LENGTHS = (2**6, 2**10) if quick() else tuple(2**bits for bits in range(10, 21, 2))
# For the mean error the peer's optimiser sums over all steps: it runs for short streams only.
_SHORT = 2**12

Objective = Literal["max", "mean"]
_OBJECTIVES: tuple[Objective, ...] = ("max", "mean")


def nuclear_bound(length: int) -> float:
    """Return the sum of the singular values of the prefix sums over their number: no factorization has less error."""
    angles = (2.0 * np.arange(1, length + 1) - 1.0) * math.pi / (4.0 * length + 2.0)
    return float(np.mean(0.5 / np.sin(angles)))


def tree_variances(length: int) -> NDArray[np.float64]:
    """Return the variances of the textbook tree: nodes of an answer times levels of an item."""
    return np.bitwise_count(np.arange(1, length + 1)) * float(length.bit_length())


def _reduced(variances: NDArray[np.float64], objective: Objective) -> float:
    return math.sqrt(float(variances.max() if objective == "max" else variances.mean()))


def _ours(length: int, objective: Objective, mechanism: str) -> so.StreamPlan:
    return so.plan(so.Continual(so.RunningSum(length)), _UNIT_NOISE, mechanism=mechanism, objective=objective)


def _seconds(plan: so.StreamPlan, x: NDArray[np.int64]) -> float:
    return race({"ours": lambda: plan.open().update(x)}, 5)["ours"] / len(x)


def _row(peer: str, error: float, *, length: int, objective: Objective, plan: so.StreamPlan, seconds: float) -> Row:
    ours = _reduced(plan.fit.std(np.arange(1, length + 1)) ** 2, objective)
    word = "largest" if objective == "max" else "root mean square"
    figure = f"{ours:.4f} at {amount(seconds, '/step')} ({plan.mechanism.removesuffix('-gaussian')})"
    return Row(f"{power(length)} steps, {word} error", figure, peer, ours / error)


def _peers() -> list[Row]:
    """Run everything: one pass over lengths; steps of peers cost the same for every length."""
    jax = race({"step": JaxCounter(_LENGTHS[-1], _BUFFERS).steps(_CALLS)}, 5)["step"] / _CALLS
    opendp = race({"step": TreeCounter(_LENGTHS[-1]).steps(_CALLS)}, 5)["step"] / _CALLS
    assert PlainTree(_LENGTHS[-1], 0.0).steps(_CALLS)() == _CALLS
    plain = race({"step": PlainTree(_LENGTHS[-1]).steps(_CALLS)}, 5)["step"] / _CALLS
    rows = []
    for length in _LENGTHS:
        table = TreeTable(length)
        start = time.perf_counter()
        table.release()
        whole = (time.perf_counter() - start) / length
        variances, levels = tree_variances(length), length.bit_length()
        for objective in _OBJECTIVES:
            plan, x = _ours(length, objective, "time-varying-blt"), np.ones(length, dtype=np.int64)
            row = partial(_row, length=length, objective=objective, plan=plan, seconds=_seconds(plan, x))
            bound, nuclear = plan.fit.bound.value, nuclear_bound(length)
            rows.append(
                row(f"no Gaussian mechanism has less than {bound:.4f} (dual; nuclear norm {nuclear:.4f})", bound)
            )
            chosen = _ours(length, objective, "two-diagonals")
            other = _reduced(chosen.fit.std(np.arange(1, length + 1)) ** 2, objective)
            name = f"two diagonals, which auto takes: {other:.4f} at {amount(_seconds(chosen, x), '/step')}"
            rows.append(row(name, other))
            if objective == "max" or length <= _SHORT:
                _, error = jax_buffered(length, _BUFFERS, objective)
                name = f"jax-privacy, {_BUFFERS} buffers, called every step"
                rows.append(row(f"{name}: {error:.4f} at {amount(jax, '/step')}", error))
            tree = _reduced(variances, objective)
            name = "binary tree of OpenDP measurements, called every step"
            rows.append(row(f"{name}: {tree:.4f} at {amount(opendp, '/step')}", tree))
            name = "plain Python: the same tree, random.gauss, unsafe"
            rows.append(row(f"{name}: {tree:.4f} at {amount(plain, '/step')}", tree))
            # Its map charges an item with the number of layers; the square root of it would do.
            charged = tree * table.layers / math.sqrt(levels)
            name = "OpenDP make_b_ary_tree, make_gaussian, no stream"
            rows.append(row(f"{name}: {charged:.4f} at {amount(whole, '/step')}", charged))
    return rows + [row for length in _LENGTHS for row in _averages(length)]


def _averages(length: int) -> list[Row]:
    """Return the mean error of running averages beside factors that were made for sums."""
    steps = np.arange(1, length + 1)

    def mean(variances: NDArray[np.float64]) -> float:
        return math.sqrt(float(np.mean(variances / steps**2)))

    plan = so.plan(so.Continual(so.RunningAverage(length)), _UNIT_NOISE)
    bound = plan.fit.bound
    assert bound is not None
    factor, _ = jax_buffered(length, _BUFFERS, "max")
    answers = np.cumsum(np.asarray(factor.inverse().toeplitz_coefs(length)))
    column = float(np.linalg.norm(np.asarray(factor.toeplitz_coefs(length))))
    others = {
        "no Gaussian mechanism has less than": bound.value,
        f"jax-privacy, {_BUFFERS} buffers, made for sums": column * mean(np.cumsum(answers**2)),
        "binary tree of OpenDP measurements": mean(tree_variances(length)),
        "noise on the items": mean(steps.astype(np.float64)),
    }
    what, figure = f"averages of {power(length)} steps, root mean square error", f"{plan.rmse:.6f} ({plan.mechanism})"
    return [Row(what, figure, f"{name} {error:.6f}", plan.rmse / error) for name, error in others.items()]


def figures() -> list[Row]:
    """Return all rows."""
    return in_process(__file__, "all", threads=1, environment=ENVIRONMENT)


if __name__ == "__main__":
    main({"all": _peers}, figures)
