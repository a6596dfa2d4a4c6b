"""Discrete noise on counts, and noise that cells have in common: speed beside our other samplers, errors beside peers.

Samplers: a histogram of a million zeros is measured under discrete Laplace noise and, through the same door and
strategy, under Laplace noise on a fine lattice; one thread. Errors: what `plan` states, what 10^5 to 10^6 cells show,
with its standard error, and what no mechanism gets below (counts without an upper bound); OpenDP's `make_laplace` on
integers and Google's `LaplaceMechanism` on integers (python-dp; where it is not installed, its law: Laplace noise rounded to
integers) on the same cells. OpenDP's law is the same as ours, so the ratio of measured errors only shows their scatter.
Times of a release stand beside theirs, and beside plain Python's.

Run `python benches/discrete.py`.
"""

import math
import random
from collections.abc import Callable
from functools import partial

import numpy as np
import opendp.prelude as dp
from harness import Row, in_process, main, quick, race, versus
from numpy.typing import NDArray

import sordino as so
from sordino import _core

try:  # python-dp, no wheel of which there is for every Python
    from pydp.algorithms.numerical_mechanisms import LaplaceMechanism
except ImportError:
    LaplaceMechanism = None

Counts = NDArray[np.int64]

_CELLS = 10**5 if quick() else 10**6
_RATES = (0.05, 0.5, 1.0, 3.0, 8.0)
_EPSILONS = (0.1, 1.0, 8.0) if quick() else (0.01, 0.05, 0.1, 0.5, 1.0, 3.0, 5.0, 8.0, 10.0)
_PEER_CELLS = 10**4 if quick() else 2 * 10**5
_CALL = 200 if quick() else 2000
_SHARED = 1000
# A lattice so fine that noise on it is no longer drawn as discrete.
_FINE_BITS = 40


def _samplers() -> list[Row]:
    zeros: Counts = np.zeros(_CELLS, dtype=np.int64)
    rows = []
    for rate in _RATES:
        plan = so.plan(so.Histogram(_CELLS), so.PureDP(epsilon=rate), mechanism="identity-laplace", max_value=1)
        strategy = plan.fit.strategy
        fine = _core.fit(strategy, plan.unit.relation(), 1, _FINE_BITS, plan.fit.ratio * 2.0**20)
        assert len(plan.fit.door.discrete[0]) and not len(fine.discrete[0])
        times = race(
            {
                "discrete": partial(plan.fit.door.measure, strategy, zeros),
                "fine": partial(fine.measure, strategy, zeros),
            },
            31,
        )
        rows.append(
            versus(
                f"discrete Laplace noise on {_CELLS:,} counts, e = {rate:g}, 1 thread",
                times["discrete"] / _CELLS,
                "Laplace noise on a fine lattice, the same counts",
                times["fine"] / _CELLS,
                goal=1.3 if rate < 1.0 else 2.2,
                per="/cell",
            )
        )
    return rows


def _common() -> list[Row]:
    counts: Counts = np.arange(_SHARED) % 100
    unit = so.AddRemove(_SHARED, per_cell=1, one_signed=True)
    rows = []
    for law, privacy in (
        ("gaussian", so.ApproxDP(epsilon=1.0, delta=1e-6)),
        ("laplace", so.PureDP(epsilon=1.0)),
    ):
        shared, alone = (
            so.plan(so.Histogram(_SHARED), privacy, unit=unit, mechanism=f"{kind}-{law}")
            for kind in ("identity-common", "identity")
        )
        times = race({"shared": partial(shared.release, counts), "alone": partial(alone.release, counts)}, 101)
        name = "Gaussian" if law == "gaussian" else "discrete Laplace"
        rows.append(
            versus(
                f"release of {_SHARED:,} cells with common {name} noise, rmse {shared.rmse:.4g}, 1 thread",
                times["shared"],
                f"independent {name} noise, rmse {alone.rmse:.4g}",
                times["alone"],
                goal=1.05 if law == "gaussian" else None,
            )
        )
    return rows


def _opendp(epsilon: float) -> Callable[[Counts], Counts]:
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    measurement = dp.m.make_laplace(*space, scale=1.0 / epsilon)
    assert measurement.map(1) <= epsilon * (1.0 + 1e-12)
    return lambda counts: np.array(measurement(counts.tolist()))


def _google(epsilon: float) -> Callable[[Counts], Counts]:
    add_noise = LaplaceMechanism(epsilon, 1.0).add_noise
    return lambda counts: np.array(_one_by_one(add_noise, counts.tolist()))


def _rounded(epsilon: float) -> float:
    """Return the standard deviation of Laplace noise rounded to integers: `P(k) = sinh(e/2) exp(-e|k|)` but at 0."""
    q = math.exp(-epsilon)
    return math.sqrt(2.0 * math.sinh(0.5 * epsilon) * q * (1.0 + q) / (1.0 - q) ** 3)


def _measured(released: NDArray[np.generic], counts: Counts) -> tuple[float, str]:
    """Return the root mean squared error, and the same with its standard error as text."""
    squares = (released.astype(np.float64) - counts) ** 2
    rmse = math.sqrt(squares.mean())
    spread = squares.std() / math.sqrt(len(squares)) / (2.0 * max(rmse, 1e-300))
    return rmse, f"{rmse:.4g} ± {spread:.1g}"


def _errors() -> list[Row]:
    rows = []
    rng = np.random.default_rng(1)
    many = rng.integers(0, 1000, _CELLS)
    few = many[:_PEER_CELLS]
    for epsilon in _EPSILONS:
        plan = so.plan(so.Histogram(_CELLS), so.PureDP(epsilon=epsilon))
        bound = plan.fit.bound
        assert bound is not None
        measured, said = _measured(plan.release(many).values, many)
        ours = f"stated {plan.rmse:.5g}, measured {said}"
        what = f"histogram, ε = {epsilon:g}, rmse"
        ratio = plan.rmse / bound.value
        rows.append(Row(what, ours, f"no mechanism has less than {bound.value:.5g}", ratio, "≤ 1.001", ratio <= 1.001))
        theirs, said = _measured(_opendp(epsilon)(few), few)
        rows.append(Row(what, ours, f"OpenDP make_laplace on integers: {said}", _ratio(measured, theirs)))
        if LaplaceMechanism is None:
            law = _rounded(epsilon)
            rows.append(
                Row(what, ours, f"Google's law (not installed): {law:.5g}", plan.rmse / law, "< 1", plan.rmse < law)
            )
        else:
            theirs, said = _measured(_google(epsilon)(few), few)
            other = f"Google LaplaceMechanism on integers (python-dp): {said} (its law {_rounded(epsilon):.5g})"
            ratio = plan.rmse / _rounded(epsilon)
            rows.append(Row(what, ours, other, ratio, "< 1", ratio < 1.0))
    return rows


def _ratio(ours: float, theirs: float) -> float | None:
    return ours / theirs if theirs > 0.0 else None


def _one_by_one(add_noise: Callable[[int], int], counts: list[int]) -> list[int]:
    return [add_noise(count) for count in counts]


def _in_plain_python(epsilon: float, counts: list[int]) -> list[int]:
    """Return counts with discrete Laplace noise: the difference of two geometric draws, in floating point."""

    def geometric() -> int:
        return int(random.expovariate(epsilon))

    return [count + geometric() - geometric() for count in counts]


def _times() -> list[Row]:
    rows = []
    many: Counts = np.arange(_CELLS) % 1000
    few = many[:_CALL]
    listed = few.tolist()
    for epsilon in (0.1, 1.0, 5.0):
        bulk, plan = (so.plan(so.Histogram(n), so.PureDP(epsilon=epsilon)) for n in (_CELLS, _CALL))
        dp.enable_features("contrib")
        space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
        contestants: dict[str, Callable[[], object]] = {
            "bulk": partial(bulk.release, many),
            "ours": partial(plan.release, few),
            "OpenDP make_laplace from Python, integer vector": partial(
                dp.m.make_laplace(*space, scale=1.0 / epsilon), listed
            ),
            "plain Python: geometric draws, unsafe": partial(_in_plain_python, epsilon, listed),
        }
        assert abs(_measured(np.array(_in_plain_python(epsilon, many.tolist())), many)[0] / plan.rmse - 1.0) < 0.1
        if LaplaceMechanism is not None:
            name = "Google LaplaceMechanism.add_noise (python-dp), integers one by one"
            contestants[name] = partial(_one_by_one, LaplaceMechanism(epsilon, 1.0).add_noise, listed)
        times = race(contestants, 15)
        for name in list(contestants)[2:]:
            for key, cells in (("ours", _CALL), ("bulk", _CELLS)):
                what = f"release of {cells:,} counts, ε = {epsilon:g}, 1 thread"
                rows.append(versus(what, times[key] / cells, f"{name}, {_CALL:,}", times[name] / _CALL, per="/cell"))
    return rows


_SECTIONS = {"samplers": _samplers, "common": _common, "errors": _errors, "times": _times}


def figures() -> list[Row]:
    """Return all rows."""
    return [row for section in _SECTIONS for row in in_process(__file__, section, threads=1)]


if __name__ == "__main__":
    main(_SECTIONS, figures)
