"""Sparse series and maps: the path-budget tree beside mechanisms that look otherwise, or not at all.

Pure privacy, one record added or removed, the same data and as many draws for everybody; errors are root mean squares of
running sums, of 4,000 ranges and of cells of six series, and of 3,000 boxes of three maps; means are geometric, over data and
epsilons. Series: an 8-ary tree by least squares, the nearest running sums that never fall, the tree from the top down without
negative counts (the yardstick), a partition into buckets with a tree over them. Maps: adaptive grids (Qardaji, Yang and Li 2013,
with the number of records known), cut at cells, so that they have no error at borders; the full tree, which does not look; what `auto`
takes. `sparse_peers.py` has all of them in numpy, and ours node by node in plain Python: the baseline of the time.

Run `python benches/sparse.py`.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import sparse_peers as peers
from harness import Row, in_process, main, quick, race, versus
from numpy.typing import NDArray
from sparse_data import CELLS, POINTS, SERIES, SIDE

import sordino as so

Array = NDArray[np.float64]
Release = Callable[[Array, float, np.random.Generator], Array]

_EPSILONS = (0.1,) if quick() else (0.01, 0.1, 1.0)
_RECORDS = (10**5,) if quick() else (10**5, 10**6)
_DRAWS = 2 if quick() else 10
_SEEDS = 1 if quick() else 3
_BOXES = so.Kronecker([so.AllRanges(SIDE), so.AllRanges(SIDE)])


def _ours(workload: so.workloads.Workload, mechanism: str) -> Release:
    def cells(counts: Array, epsilon: float, rng: np.random.Generator) -> Array:
        plan = so.plan(workload, so.PureDP(epsilon=epsilon), mechanism=mechanism)
        with so.testing.deterministic_noise(rng.bytes(32)):
            return np.asarray(plan.release(counts.astype(np.int64)).cells)

    return cells


_LINES: dict[str, Release] = {
    "path-budget tree": _ours(so.AllRanges(CELLS), "path-budget-tree"),
    "top-down tree": peers.top_down_tree,
    "tree": peers.plain_tree,
    "isotonic sums": peers.isotonic_sums,
    "partition": peers.partition,
}
_MAPS: dict[str, Release] = {
    "path-budget tree": _ours(_BOXES, "path-budget-tree"),
    "full tree": _ours(_BOXES, "full-tree"),
    "auto": _ours(_BOXES, "auto"),
    "adaptive grid": peers.adaptive_grid,
}


def _line_errors(off: Array, rng: np.random.Generator) -> Array:
    sums = np.r_[0.0, np.cumsum(off)]
    ends = np.sort(rng.integers(0, CELLS + 1, (4000, 2)), axis=1)
    ranges = sums[ends[:, 1]] - sums[ends[:, 0]]
    return np.array([np.mean(sums[1:] ** 2), np.mean(ranges**2), np.mean(off**2)])


def _map_errors(off: Array, rng: np.random.Generator) -> Array:
    sums = np.pad(off.cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    (top, bottom), (left, right) = np.sort(rng.integers(0, SIDE + 1, (3000, 2, 2)), axis=2).transpose(1, 2, 0)
    boxes = sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left]
    return np.array([np.mean(boxes**2)])


def _rooted(contestants: Mapping[str, Release], data: Any, errors: Any) -> dict[str, dict[Any, Array]]:
    """Return root mean squared errors by contestant and case."""
    found: dict[str, dict[Any, Array]] = {name: {} for name in contestants}
    for epsilon in _EPSILONS:
        for number, (case, make) in enumerate(data.items()):
            for name, release in contestants.items():
                squares = []
                for seed in range(_SEEDS):
                    counts = make(np.random.default_rng(seed)).astype(float)
                    # Draws of their own for each case: means over cases are means over noise.
                    rng = np.random.default_rng([seed, number, round(1000 * epsilon)])
                    squares += [errors(release(counts, epsilon, rng) - counts, rng) for _ in range(_DRAWS)]
                found[name][case, epsilon] = np.sqrt(np.mean(squares, axis=0))
    return found


def _rows(
    found: dict[str, dict[Any, Array]], yardstick: str, measures: tuple[str, ...], goals: dict[str, Any]
) -> list[Row]:
    cases = list(found[yardstick])
    rows = []
    for name, errors in found.items():
        if name == yardstick:
            continue
        ratios = np.array([errors[case] / found[yardstick][case] for case in cases])
        for k, measure in enumerate(measures):
            mean, worst = float(np.exp(np.log(ratios[:, k]).mean())), ratios[:, k].max()
            goal = goals.get(measure) if name == "path-budget tree" else None
            where = cases[int(ratios[:, k].argmax())]
            rows.append(
                Row(
                    f"{measure}, {name}",
                    f"{mean:.3f} of the {yardstick}'s error",
                    f"at most {worst:.2f}: {where[0]}, epsilon {where[1]:g}",
                    mean,
                    "" if goal is None else f"≤ {goal}",
                    None if goal is None else mean <= goal,
                )
            )
    for case in cases:
        said = "; ".join(f"{name} {' / '.join(f'{e:.3g}' for e in errors[case])}" for name, errors in found.items())
        rows.append(Row(f"{case[0]}, epsilon {case[1]:g}: {' / '.join(measures)}", said))
    return rows


def _series() -> list[Row]:
    found = _rooted(_LINES, SERIES, _line_errors)
    return _rows(found, "top-down tree", ("running sums", "ranges", "cells"), {"running sums": 0.8})


def _points() -> list[Row]:
    data = {f"{name}, {n:.0e} points": partial(_drawn, name, n) for name in POINTS for n in _RECORDS}
    return _rows(_rooted(_MAPS, data, _map_errors), "adaptive grid", ("boxes",), {"boxes": 0.75})


def _drawn(name: str, points: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return POINTS[name](rng, points)


def _times() -> list[Row]:
    rows = []
    rng = np.random.default_rng(1)
    for what, counts, workload, peer in (
        ("series of 4,096 cells", SERIES["lognormal"](rng), so.AllRanges(CELLS), peers.top_down_tree),
        ("map of 128 x 128 cells", POINTS["clusters"](rng, 10**5), _BOXES, peers.adaptive_grid),
    ):
        plan = so.plan(workload, so.PureDP(epsilon=0.1), mechanism="path-budget-tree")
        real = counts.astype(float)
        listed = np.atleast_2d(real).tolist()
        # With hardly any noise cells are what they were.
        assert np.abs(np.array(peers.path_budget_tree(listed, 1e4)) - listed).max() < 0.1
        seconds = race(
            {
                "ours": lambda plan=plan, counts=counts: plan.release(counts).cells,  # type: ignore[misc]
                "plain Python": lambda listed=listed: peers.path_budget_tree(listed, 0.1),  # type: ignore[misc]
                "numpy peer": lambda real=real, peer=peer: peer(real, 0.1, rng),  # type: ignore[misc]
            },
            7,
        )
        rows += [
            versus(f"{what}, a release and its table", seconds["ours"], other, seconds[other])
            for other in ("plain Python", "numpy peer")
        ]
    return rows


def figures() -> list[Row]:
    """Return all rows."""
    return [row for section in ("series", "points", "times") for row in in_process(__file__, section, threads=1)]


if __name__ == "__main__":
    main({"series": _series, "points": _points, "times": _times}, figures)
