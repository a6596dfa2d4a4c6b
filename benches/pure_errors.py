"""Errors under pure privacy, epsilon 1, of marginals and of intervals, beside those that are computed for others.

Marginals: HDMM's weighted marginals (`optimality_peers.py`, plain numpy and scipy), whose search takes all 2^d tables of
d attributes, and noise on the tables that are asked for. Intervals: OpenDP's tree with least squares, and noise on the
cells. A ratio is our error over the other's; planning is raced against HDMM's search, medians of three.

Run `python benches/pure_errors.py`.
"""

import time
from collections.abc import Callable
from functools import partial
from statistics import median

import numpy as np
from harness import Row, amount, main, quick, versus
from optimality_peers import hdmm, tree

import sordino as so

_PURE = so.PureDP(epsilon=1.0)
_MARGINALS: dict[str, Callable[[], so.Marginals]] = {
    "pairs of 10 attributes of 4 levels": lambda: so.Marginals([4] * 10, k=2),
    "pairs of 8 attributes of 2 to 16 levels": lambda: so.Marginals([2, 16, 4, 8] * 2, k=2),
    "pairs of 10 attributes of 2 levels": lambda: so.Marginals([2] * 10, k=2),
    "triples of 10 attributes of 2 levels": lambda: so.Marginals([2] * 10, k=3),
    "pairs of 5 attributes of 16 levels": lambda: so.Marginals([16] * 5, k=2),
    "6 attributes of 10 levels": lambda: so.Marginals([10] * 6, k=1),
    "pairs of 5 attributes of 4 levels": lambda: so.Marginals([4] * 5, k=2),
    "pairs of 20 attributes of 4 levels": lambda: so.Marginals([4] * 20, k=2),
    "pairs of 50 attributes of 3 levels": lambda: so.Marginals([3] * 50, k=2),
}
_INTERVALS = ((300, 1024), (2000, 1024), (2000, 2**14), (300, 2**20), (50_000, 2**20))
_SHORT = 2


def _intervals(count: int, length: int) -> so.workloads.Intervals:
    ends = np.sort(np.random.default_rng(1).integers(0, length, (count, 2)), axis=1)
    return so.workloads.Intervals(ends[:, 0], ends[:, 1], length)


def _against(what: str, plan: so.Plan, name: str, other: float | None, goal: float | None = None) -> list[Row]:
    if other is None:
        return []
    ratio, words = plan.rmse / other, "" if goal is None else f"≤ {goal:g}"
    met = None if goal is None else bool(ratio <= goal)
    return [Row(what, f"{plan.rmse:.4g} ({plan.mechanism})", f"{name}: {other:.4g}", ratio, words, met)]


def _seconds(call: Callable[[], object], rounds: int = 3) -> float:
    def once() -> float:
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    return median(once() for _ in range(rounds))


def _of_marginals() -> list[Row]:
    rows = []
    for name, make in list(_MARGINALS.items())[: _SHORT if quick() else None]:
        workload = make()
        plan, searched = so.plan(workload, _PURE), hdmm(workload, "laplace")
        rows += _against(f"error, {name}", plan, "HDMM's marginals", searched, 1.001)
        own = so.plan(workload, _PURE, mechanism="output").rmse
        rows += _against(f"error, {name}", plan, "noise on the tables", own, 1.0)
        if searched is not None:
            ours = _seconds(lambda workload=workload: so.plan(workload, _PURE))  # type: ignore[misc]
            rows.append(
                versus(f"planning, {name}", ours, "HDMM in numpy", _seconds(partial(hdmm, workload, "laplace")))
            )
        else:
            rows.append(Row(f"planning, {name}", amount(_seconds(lambda workload=workload: so.plan(workload, _PURE)))))  # type: ignore[misc]
    return rows


def _of_intervals() -> list[Row]:
    rows = []
    for count, length in _INTERVALS[: _SHORT if quick() else None]:
        workload = _intervals(count, length)
        plan = so.plan(workload, _PURE)
        name = f"{count:,} random intervals of {length:,} cells"
        rows += _against(f"error, {name}", plan, "OpenDP's tree", tree(workload, "laplace"), 1.0)
        cells = so.plan(workload, _PURE, mechanism="identity").rmse
        rows += _against(f"error, {name}", plan, "noise on the cells", cells, 1.0)
        rows.append(Row(f"planning, {name}", amount(_seconds(lambda workload=workload: so.plan(workload, _PURE)))))  # type: ignore[misc]
    return rows


def figures() -> list[Row]:
    """Return all rows."""
    return _of_marginals() + _of_intervals()


if __name__ == "__main__":
    main({"marginals": _of_marginals, "intervals": _of_intervals}, figures)
