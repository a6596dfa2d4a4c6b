"""Attack every mechanism of streams: tell a stream of zeros from one whose first item is 1.

As `audit.py`, on whole streams: the coordinates of one stream are as many independent replicas. For Gaussian noise
all that is published is weighed by the linear discriminant of the two (the most powerful test), its covariance
estimated on streams of their own; for Laplace noise by the likelihood ratio of the published sums in which a
measured node stands alone. The lower confidence bound on epsilon must stay below the claim, (3, 0.05) or (3, 0), and
with 1.25 times less noise must exceed it wherever the test can reach it. The exit code is 1 if anything fails.

Run `python benches/audit_streams.py`.
"""

from functools import partial

import numpy as np
from audit import lower_bound
from harness import Row, audited, in_process, main, quick, reported
from numpy.typing import NDArray

import sordino as so
from sordino import _core
from sordino.mechanisms.stream.catalogue import STREAM_MECHANISMS

Array = NDArray[np.float64]

_EPSILON, _DELTA = 3.0, 0.05
_STEPS = 12
_DRAWS = 60_000 if quick() else 200_000
_TRAINING = _DRAWS // 4
_UNDER = 1.25
# Two levels of 5 children: (5**2 - 1)/2 = 12 steps.
_BRANCHING = 5


def _workloads() -> list[so.workloads.Workload]:
    return [
        so.RunningSum(_STEPS),
        so.RunningSum(),
        so.ExponentialSmoothing(0.8, _STEPS, normalized=False),
        so.SlidingWindow(4, _STEPS),
        so.Convolution([1.0, 2.0, 0.5], length=_STEPS, boundary="causal"),
    ]


def _published(plan: so.StreamPlan, door: _core.StreamDoor, first: int) -> Array:
    """Return increments of `_TRAINING + _DRAWS` streams, shape (streams, steps)."""
    count = _TRAINING + _DRAWS
    items = np.zeros((_STEPS, count), dtype=np.int64)
    items[0] = first
    stream = _core.Stream(plan.fit.strategy, door, count)
    stream.prepare(items.reshape(-1))
    held = stream.held()
    assert held is not None
    units = held[3]
    increments: Array = np.ldexp(units.reshape(_STEPS, count).astype(np.float64), door.grid).T
    return increments


def _alone(plan: so.StreamPlan) -> tuple[int, ...]:
    """Return the steps at which a measured sum that holds the first item is published alone."""
    match plan.fit.mechanism.strategy:
        case "identity":
            return (1,)
        case "output":
            return tuple(range(1, _STEPS + 1))
        case "binary-tree":
            return tuple(2**h for h in range(_STEPS.bit_length()))
        case "subtraction-tree":
            return (1, _BRANCHING)
        case _:
            return ()


def _losses(plan: so.StreamPlan, door: _core.StreamDoor) -> tuple[Array, Array, bool]:
    """Return the test's statistic on zeros and on ones, and whether it can reach the claim."""
    zeros, ones = (_published(plan, door, first) for first in (0, 1))
    if plan.fit.mechanism.law == "gaussian":
        fresh = _published(plan, door, 0)
        shift = np.zeros(_STEPS)
        shift[0] = 1.0
        weights = np.linalg.solve(np.cov(fresh.T), shift)
        return zeros @ weights, ones @ weights, _covered(plan)
    steps = _alone(plan)
    if not steps:
        return zeros[:, 0], ones[:, 0], False
    at = np.array(steps) - 1
    sums = [np.cumsum(part, axis=1)[:, at] for part in (zeros, ones)]
    scale = door.noise
    found = [((np.abs(s) - np.abs(s - 1.0)) / scale).sum(axis=1) for s in sums]
    return found[0], found[1], len(steps) == round(plan.fit.sensitivity["ideal"]) and len(steps) <= 3


def _covered(plan: so.StreamPlan) -> bool:
    """Return whether `_STEPS` published steps show all of the sensitivity to the first item."""
    partly = {"comb", "smooth-tree", "honaker-tree"}  # endless columns, nodes that close later, nodes averaged away
    return plan.workload.horizon == "hard" and plan.fit.mechanism.strategy not in partly


def _bound(plan: so.StreamPlan, door: _core.StreamDoor, delta: float) -> tuple[float, bool]:
    zeros, ones, reachable = _losses(plan, door)
    cut = _TRAINING
    return lower_bound(zeros[:cut], ones[:cut], zeros[cut:], ones[cut:], delta), reachable


def _row(plan: so.StreamPlan) -> Row:
    fitted = plan.fit
    delta = _DELTA if isinstance(plan.privacy, so.ApproxDP) else 0.0
    found, reachable = _bound(plan, fitted.door, delta)
    domain = fitted.domain
    under = fitted.strategy.fit(fitted.patterns, domain.max_value, domain.fraction_bits, fitted.ratio / _UNDER)
    planted, _ = _bound(plan, under, delta)
    return Row(
        f"{plan.mechanism}, {type(plan.workload.workload).__name__}, {plan.workload.horizon}, claim ({_EPSILON:g}, {delta:g})",
        f"ε ≥ {found:.3f}",
        f"1.25 times less noise: ε ≥ {planted:.3f}",
        found / _EPSILON,
        "below the claim; less noise is caught" if reachable else "below the claim",
        found < _EPSILON and (planted > _EPSILON or not reachable),
    )


def figures() -> list[Row]:
    """Return all rows."""
    rows: list[Row] = []
    for workload in _workloads():
        for mechanism in STREAM_MECHANISMS:
            privacy: so.PureDP | so.ApproxDP = so.ApproxDP(epsilon=_EPSILON, delta=_DELTA)
            if mechanism.law == "laplace":
                privacy = so.PureDP(epsilon=_EPSILON)
            horizon = "hard" if workload.length is not None else "unbounded"
            if not mechanism.serves(workload, horizon):
                continue
            if horizon == "unbounded" and mechanism.strategy != "blt":
                continue  # what a dozen steps show of the others is a small part of their sensitivity
            option = _BRANCHING if mechanism.strategy == "subtraction-tree" else None
            plan = so.plan(so.Continual(workload), privacy, mechanism=mechanism.name, degree=option)
            rows.append(reported(_row(plan)))
    return rows


if __name__ == "__main__":
    main({"all": figures}, audited(partial(in_process, __file__, "all", threads=1)))
