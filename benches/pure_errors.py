"""Errors under pure privacy, epsilon 1, of marginals and of intervals, beside those that are computed for others.

Marginals: HDMM's weighted marginals (`optimality_peers.py`, plain numpy and scipy), whose search takes all 2^d tables of
d attributes, and noise on the tables that are asked for. Intervals: OpenDP's tree with least squares, and noise on the
cells. A ratio is our error over the other's; planning takes turns with HDMM's search, medians of three; of intervals it
is timed once, with the search.

Run `python benches/pure_errors.py`.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from harness import Row, amount, main, once, quick, turns, versus
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
_OURS, _HDMM = "sordino", "HDMM in numpy"


def _intervals(count: int, length: int) -> so.workloads.Intervals:
    ends = np.sort(np.random.default_rng(1).integers(0, length, (count, 2)), axis=1)
    return so.workloads.Intervals(ends[:, 0], ends[:, 1], length)


def _against(what: str, plan: so.Plan, name: str, other: float, most: float = 1.0) -> Row:
    ratio = plan.rmse / other
    ours = f"{plan.rmse:.4g} ({plan.mechanism})"
    return Row(f"error, {what}", ours, f"{name}: {other:.4g}", ratio, f"≤ {most:g}", bool(ratio <= most))


def _of_marginals() -> list[Row]:
    rows = []
    for what, make in list(_MARGINALS.items())[: _SHORT if quick() else None]:
        workload = make()
        contestants = {_OURS: partial(so.plan, workload, _PURE), _HDMM: partial(hdmm, workload, "laplace")}
        seconds, found = turns(contestants, 3)
        plan, searched = found[_OURS], found[_HDMM]
        if searched is not None:
            rows.append(_against(what, plan, "HDMM's marginals", searched, 1.001))
        rows.append(_against(what, plan, "noise on the tables", so.plan(workload, _PURE, mechanism="output").rmse))
        planning = f"planning, {what}"
        alone = Row(planning, amount(seconds[_OURS]))
        rows.append(alone if searched is None else versus(planning, seconds[_OURS], _HDMM, seconds[_HDMM]))
    return rows


def _of_intervals() -> list[Row]:
    rows = []
    for count, length in _INTERVALS[: _SHORT if quick() else None]:
        workload = _intervals(count, length)
        # Once: a search that was made before is not made again.
        seconds, plan = once(partial(so.plan, workload, _PURE))
        what = f"{count:,} random intervals of {length:,} cells"
        trees = tree(workload, "laplace")
        assert trees is not None
        rows.append(_against(what, plan, "OpenDP's tree", trees))
        rows.append(_against(what, plan, "noise on the cells", so.plan(workload, _PURE, mechanism="identity").rmse))
        rows.append(Row(f"planning, {what}", amount(seconds)))
    return rows


def figures() -> list[Row]:
    """Return all rows."""
    return _of_marginals() + _of_intervals()


if __name__ == "__main__":
    main({"marginals": _of_marginals, "intervals": _of_intervals}, figures)
