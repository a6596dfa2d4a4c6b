"""Errors of plans over their bounds, from 64 to sixteen million cells, beside trees with least squares and noise on the cells.

Everything at epsilon 1; delta 1e-6 where noise is Gaussian. "Bound" is what no Gaussian mechanism of its class gets below
(`plan.fit.bound`), None is known under pure privacy. The peer is OpenDP's: every node of the b-ary tree of least error has
the same noise, answers come from least squares over the tree, for ranges and running sums; its errors are computed, not drawn. Time is that
of the first plan in a process. The picture is `pictures/optimality.png`.

Run `python benches/optimality.py`.
"""

import gc
import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from harness import Row, in_process, main, quick
from numpy.typing import NDArray

import sordino as so
from sordino.plots.tables import ACCENT, INK, MUTED, PALE, SIGNAL, dress, heading, new_figure
from sordino.privacy.calibration import gaussian_mu

_PICTURES = Path(__file__).resolve().parent / "pictures"
_PRIVACY = so.ApproxDP(epsilon=1.0, delta=1e-6)
_GAUSSIAN = so.GaussianDP(mu=gaussian_mu(_PRIVACY))
_PURE = so.PureDP(epsilon=1.0)
_MULTIPLIER = 1.0 / gaussian_mu(_PRIVACY)
_BRANCHINGS = (2, 4, 8, 16)
_RANGES = (64, 256, 512, 513, 1024, 4096) if not quick() else (16, 40)
_SIDES = (16, 64, 256, 1024, 4096) if not quick() else (4, 8)
_LEVELS = (256, 4096, 65536, 2**20) if not quick() else (16, 256)
_SERIES = (64, 256, 512, 513, 1024, 4096, 2**14, 2**16, 2**18, 2**20) if not quick() else (16, 40)

Workloads = dict[str, tuple[tuple[int, ...], Callable[[int], so.workloads.Workload]]]

_WORKLOADS: Workloads = {
    "all ranges": (_SERIES, so.AllRanges),
    "all boxes of a square, by its side": (_SIDES, lambda n: so.Kronecker([so.AllRanges(n)] * 2)),
    "groups of sixteen of sixteen, by cells": (_LEVELS, lambda n: so.GroupBy(_groups(n))),
    "uneven groups, by cells": (
        tuple(n for n in _RANGES if n <= 1024),
        lambda n: so.GroupBy([np.arange(n), _uneven(n), np.zeros(n, dtype=int)]),
    ),
    "running sums": (_SERIES, so.RunningSum),
    "running sums x 24 cells": (
        tuple(n for n in _SERIES if n <= 2**16),
        lambda n: so.Kronecker([so.RunningSum(n), so.Histogram(24)]),
    ),
    "running sums x all ranges of 16": (
        tuple(n for n in _SERIES if n <= 2**14),
        lambda n: so.Kronecker([so.RunningSum(n), so.AllRanges(16)]),
    ),
    "all ranges and cells": (
        tuple(n for n in _RANGES if n <= 1024),
        lambda n: so.AllRanges(n) | so.Histogram(n),
    ),
}


def _groups(cells: int) -> list[NDArray[np.int64]]:
    """Return levels of groups of sixteen, from single cells to all of them."""
    levels, block = [np.arange(cells)], 1
    while block < cells:
        block = min(16 * block, cells)
        levels.append(np.arange(cells) // block)
    return levels


def _uneven(cells: int) -> NDArray[np.int64]:
    """Return groups whose sizes rise."""
    groups = np.sqrt(np.arange(cells) / cells) * math.sqrt(cells)
    return np.unique(groups.astype(np.int64), return_inverse=True)[1]


def _tree_mean_square(workload: so.workloads.Workload, branching: int) -> float:
    """Return the mean variance of the answers by least squares over a complete tree with unit noise on every node.

    `G` is a sum of block matrices; averages over blocks commute, so its inverse is a sum of them too.
    """
    length = workload.core.input_len or 0
    sizes = branching ** np.arange(_levels(length, branching))
    shares = np.diff(np.r_[0.0, 1.0 / np.cumsum(sizes.astype(float))]) / sizes
    squares = _squares_of_ranges if isinstance(workload, so.AllRanges) else _squares_of_prefixes
    total = sum(share * squares(length, np.arange(0, length, size)) for share, size in zip(shares, sizes, strict=True))
    return float(total) / workload.core.answers_len


def _levels(length: int, branching: int) -> int:
    return max(math.ceil(math.log(length, branching) - 1e-9), 0) + 1


def _squares_of_ranges(length: int, edges: NDArray[np.int64]) -> float:
    """Return the squared overlaps of all ranges with all blocks, summed: the block sums of the Gram matrix."""
    places = np.arange(1, length + 1, dtype=float)
    right = length + 1 - places
    left_sums, right_sums = np.r_[0.0, np.cumsum(places)], np.r_[0.0, np.cumsum(right)]
    cross = np.r_[0.0, np.cumsum(left_sums[:-1] * right)]  # pairs a < b of all cells
    own = np.r_[0.0, np.cumsum(places * right)]
    ends = np.r_[edges[1:], length]
    inside = cross[ends] - cross[edges] - left_sums[edges] * (right_sums[ends] - right_sums[edges])
    return float(np.sum(own[ends] - own[edges] + 2.0 * inside))


def _squares_of_prefixes(length: int, edges: NDArray[np.int64]) -> float:
    """Return the same for running sums: W_ab = n + 1 - max(a, b)."""
    right = length + 1 - np.arange(1, length + 1, dtype=float)
    places = np.arange(length)
    starts = edges[np.searchsorted(edges, places, side="right") - 1]
    return float(np.sum(right * (1 + 2 * (places - starts))))


def _peer(workload: so.workloads.Workload, law: str) -> tuple[float, int] | None:
    """Return the least error of trees with the same noise on every node, and its branching."""
    if not isinstance(workload, so.AllRanges | so.RunningSum):
        return None
    length = workload.core.input_len or 0
    best = (math.inf, 0)
    for branching in _BRANCHINGS:
        levels, mean = _levels(length, branching), _tree_mean_square(workload, branching)
        noise = math.sqrt(2.0) * levels if law == "pure" else _MULTIPLIER * math.sqrt(levels)
        best = min(best, (noise * math.sqrt(mean), branching))
    return best


def _identity(workload: so.workloads.Workload, law: str) -> float:
    squares = so.plan(workload, _PURE if law == "pure" else _GAUSSIAN, mechanism="identity").rmse
    return float(squares)


def _planned(workload: so.workloads.Workload, privacy: so.GaussianDP | so.PureDP) -> tuple[so.Plan, float]:
    gc.collect()
    start = time.perf_counter()
    plan = so.plan(workload, privacy)
    return plan, time.perf_counter() - start


def _gaussian() -> list[Row]:
    rows, drawn = [], {}
    for name, (sizes, build) in _WORKLOADS.items():
        over = []
        for size in sizes:
            workload = build(size)
            plan, seconds = _planned(workload, _GAUSSIAN)
            ratio = plan.optimality
            assert ratio is not None
            peer = _peer(workload, "gaussian")
            others = _identity(workload, "gaussian"), math.nan if peer is None else peer[0]
            over.append((size, ratio, *(error / plan.fit.bound.value for error in others)))
            bound = f"{plan.fit.bound.name} {plan.fit.bound.value:.6g}"
            beside = "" if peer is None else f"; tree of branching {peer[1]} {peer[0]:.4g}"
            what = f"{name}, {size}: {plan.mechanism}, planned in {seconds:.2g} s"
            rows.append(Row(what, f"{plan.rmse:.6g}", bound + beside, ratio, "at most 1.01", ratio <= 1.01))
        drawn[name] = over
        jumps = float(np.abs(np.diff([ratio for _, ratio, *_ in over])).max())
        rows.append(
            Row(
                f"{name}: largest change of the ratio from size to size",
                f"{jumps:.2g}",
                "",
                jumps,
                "below 0.01",
                jumps < 0.01,
            )
        )
    _draw(drawn)
    return rows


def _pure() -> list[Row]:
    rows = []
    for name in ("all ranges", "running sums"):
        sizes, build = _WORKLOADS[name]
        for size in sizes:
            workload = build(size)
            plan, seconds = _planned(workload, _PURE)
            error, branching = _peer(workload, "pure") or (math.nan, 0)
            cells = _identity(workload, "pure")
            beside = f"tree of branching {branching} {error:.4g}; noise on the cells {cells:.4g}"
            what = f"{name}, {size}, pure: {plan.mechanism}, planned in {seconds:.2g} s"
            ratio = plan.rmse / min(error, cells)
            rows.append(Row(what, f"{plan.rmse:.6g}", beside, ratio, "never above 1", ratio <= 1.0 + 1e-9))
    return rows


def _draw(drawn: dict[str, list[tuple[int, float, float, float]]]) -> None:
    if quick():
        return
    figure = new_figure(12.0, 4.4)
    whole, close = figure.subplots(1, 2)
    for number, (name, points) in enumerate(drawn.items()):
        colour, line = (ACCENT, INK, SIGNAL, MUTED, PALE)[number % 5], "-" if number < 5 else "--"
        sizes, over, cells, trees = map(list, zip(*points, strict=True))
        close.plot(sizes, over, line, marker="o", markersize=4, color=colour, label=name)
        if name in {"all ranges", "running sums"}:
            whole.plot(sizes, over, marker="o", markersize=4, color=colour, label=f"{name}: as planned")
            whole.plot(sizes, trees, color=colour, linestyle="--", label="tree with least squares")
            whole.plot(sizes, cells, color=colour, linestyle=":", label="noise on the cells")
    for axes in (whole, close):
        axes.set_xscale("log", base=2)
        axes.legend(frameon=False, fontsize=8, loc="upper left")
        dress(axes, "cells of the series (logarithmic)", "times the bound")
    whole.set_yscale("log")
    whole.set_ylim(0.95, 400.0)
    ticks = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]
    whole.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    whole.set_yticks([], minor=True)
    close.set_ylim(0.9995, 1.0125)
    heading(whole, "Error over the least of any Gaussian mechanism", "ranges and running sums, epsilon 1, delta 1e-6")
    heading(close, "The same from near", "as planned by auto")
    _PICTURES.mkdir(exist_ok=True)
    figure.savefig(_PICTURES / "optimality.png", dpi=100)


def _all() -> list[Row]:
    return [*_gaussian(), *_pure()]


def figures() -> list[Row]:
    """Return all rows."""
    return in_process(__file__, "all", threads=2)


if __name__ == "__main__":
    main({"all": _all}, figures)
