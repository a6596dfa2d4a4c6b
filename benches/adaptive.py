"""The path-budget tree beside mechanisms that look otherwise, or not at all, and beside its own rule in numpy.

Pure privacy, one record added or removed, the same data and as many draws for everybody. Errors are root mean squares: of running sums, of
4,000 random ranges and of cells of six series, and of 3,000 random boxes of three maps of 10^5 and 10^6 points, over all draws and
data seeds; means of ratios are geometric, over data and epsilons, against the tree from the top down (series) and
adaptive grids (maps). `adaptive_peers.py` has all contestants in numpy, the tree by the rule of page 8 of the mathematics, and the
rule as it is in the core: the core's ratio to that one should be 1 but for chance. Rows of cases print errors as measured.

Run `python benches/adaptive.py`; `--draws`, `--seeds` and `--epsilons` for other runs, `--only series|points|times` for one
section, `--without-core` where the mechanism is not built.
"""

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import adaptive_peers as peers
import numpy as np
from adaptive_data import CELLS, POINTS, SERIES, SIDE
from harness import Row, amount, in_process, quick, race, reported, table
from numpy.typing import NDArray

import sordino as so
from sordino.testing import deterministic_noise

Array = NDArray[np.float64]
Release = Callable[[Array, float, np.random.Generator], Array]
Errors = dict[str, dict[tuple[str, float], Array]]

_LINE = so.AllRanges(CELLS)
_MAP = so.Kronecker([so.AllRanges(SIDE), so.AllRanges(SIDE)])
_OURS = "path-budget tree"
_MODEL = "the core's rule in numpy"


@dataclass(frozen=True)
class Run:
    """How much is run.

    Attributes:
        draws: Releases of each table.
        seeds: Tables of each kind.
        epsilons: Privacy.
        core: Whether the core's mechanisms take part.
    """

    draws: int = 2 if quick() else 20
    seeds: int = 1 if quick() else 4
    epsilons: tuple[float, ...] = (0.1,) if quick() else (0.01, 0.1, 1.0)
    core: bool = True

    @property
    def records(self) -> tuple[int, ...]:
        """Points of a map."""
        return (10**5,) if quick() else (10**5, 10**6)


def _core(workload: so.workloads.Workload, mechanism: str) -> Release:
    """Return a contestant of the core, its noise from the generator, so that runs repeat."""

    def cells(counts: Array, epsilon: float, rng: np.random.Generator) -> Array:
        plan = so.plan(workload, so.PureDP(epsilon=epsilon), mechanism=mechanism)
        with deterministic_noise(rng.bytes(32)):
            return np.asarray(plan.release(counts.astype(np.int64)).cells)

    return cells


def _lines(run: Run) -> dict[str, Release]:
    """Return the contestants on series, the yardstick first."""
    core = {_OURS: _core(_LINE, "path-budget-tree")} if run.core else {}
    return {
        "top-down tree": peers.top_down_tree,
        **core,
        "the page's rule in numpy": partial(peers.path_budget_tree, rule=peers.PAGE_SERIES),
        _MODEL: partial(peers.path_budget_tree, rule=peers.SHIPPED_SERIES),
        "plain tree": peers.plain_tree,
        "isotonic sums": peers.isotonic_sums,
        "partition": peers.partition,
    }


def _maps(run: Run) -> dict[str, Release]:
    """Return the contestants on maps, the yardstick first."""
    core = {_OURS: _core(_MAP, "path-budget-tree"), "full tree": _core(_MAP, "full-tree")} if run.core else {}
    return {
        "adaptive grids": peers.adaptive_grid,
        **core,
        "the page's rule in numpy": partial(peers.path_budget_tree, rule=peers.PAGE_POINTS),
        _MODEL: partial(peers.path_budget_tree, rule=peers.SHIPPED_POINTS),
        "full tree in numpy": peers.full_tree,
    }


def _squares_of_line(off: Array, rng: np.random.Generator) -> Array:
    """Return mean squares of errors of running sums, ranges and cells."""
    sums = np.r_[0.0, np.cumsum(off)]
    first, last = np.sort(rng.integers(0, CELLS + 1, (2, 4000)), axis=0)
    return np.array([np.mean(sums[1:] ** 2), np.mean((sums[last] - sums[first]) ** 2), np.mean(off**2)])


def _squares_of_map(off: Array, rng: np.random.Generator) -> Array:
    """Return mean squares of errors of boxes."""
    sums = np.pad(off.cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    (top, bottom), (left, right) = np.sort(rng.integers(0, SIDE + 1, (2, 2, 3000)), axis=1)
    boxes = sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left]
    return np.array([np.mean(boxes**2)])


def _errors(
    run: Run,
    contestants: Mapping[str, Release],
    data: Mapping[str, Callable[[np.random.Generator], NDArray[np.int64]]],
    squares: Callable[[Array, np.random.Generator], Array],
) -> Errors:
    """Return root mean squared errors by contestant and case; all have the same tables, and the same queries of a draw."""
    sums: dict[str, dict[tuple[str, float], Any]] = {name: {} for name in contestants}
    for seed in range(run.seeds):
        for number, (name, draw) in enumerate(data.items()):
            counts = draw(np.random.default_rng(seed)).astype(float)
            for step, epsilon in enumerate(run.epsilons):
                # Cases have noise of their own: their ratios are averaged.
                key = [seed, number, step]
                for contestant, release in contestants.items():
                    rng = np.random.default_rng([*key, 0])
                    found = sums[contestant].setdefault((name, epsilon), [])
                    for turn in range(run.draws):
                        off = release(counts, epsilon, rng) - counts
                        found.append(squares(off, np.random.default_rng([*key, 1, turn])))
    return {
        who: {case: np.sqrt(np.mean(found, axis=0)) for case, found in cases.items()} for who, cases in sums.items()
    }


def _ratios(found: Errors, measures: tuple[str, ...], goal: float, worst_goal: float | None) -> Iterator[Row]:
    """Say the geometric means of ratios against the first contestant; the goals are ours on the first measure."""
    yardstick, *others = found
    for name in others:
        ratios = {case: errors / found[yardstick][case] for case, errors in found[name].items()}
        for k, measure in enumerate(measures):
            mean = float(np.exp(np.mean([np.log(ratio[k]) for ratio in ratios.values()])))
            case, worst = max(((case, float(ratio[k])) for case, ratio in ratios.items()), key=lambda pair: pair[1])
            asked = name == _OURS and k == 0
            goals = f"≤ {goal:g}" + ("" if worst_goal is None else f", no case above {worst_goal:g}") if asked else ""
            met = mean <= goal and worst <= (worst_goal or np.inf) if asked else None
            what = f"{measure}, {name}"
            where = f"{yardstick}; at most {worst:.2f} ({case[0]}, epsilon {case[1]:g})"
            yield reported(Row(what, f"{mean:.3f} of its error", where, mean, goals, met))


def _same_law(found: Errors, measures: tuple[str, ...]) -> Iterator[Row]:
    """Say how the core's errors are to those of its rule in numpy."""
    if _OURS in found:
        for k, measure in enumerate(measures):
            logs = [np.log(errors[k] / found[_MODEL][case][k]) for case, errors in found[_OURS].items()]
            mean, spread = float(np.exp(np.mean(logs))), float(np.std(logs, ddof=min(1, len(logs) - 1)))
            each = f"cases differ by {100.0 * spread:.0f} %"
            yield reported(Row(f"{measure}, {_OURS}", f"{mean:.3f} of its error", f"{_MODEL}; {each}", mean))


def _cases(found: Errors, measures: tuple[str, ...]) -> Iterator[Row]:
    """Say the errors of each case."""
    for case in next(iter(found.values())):
        said = (f"{name} {' / '.join(f'{error:.3g}' for error in errors[case])}" for name, errors in found.items())
        yield reported(Row(f"{case[0]}, epsilon {case[1]:g}: {' / '.join(measures)}", "; ".join(said)))


def _section(found: Errors, measures: tuple[str, ...], goal: float, worst_goal: float | None = None) -> list[Row]:
    """Return the rows of series or maps."""
    return [*_ratios(found, measures, goal, worst_goal), *_same_law(found, measures), *_cases(found, measures)]


def _series(run: Run) -> list[Row]:
    found = _errors(run, _lines(run), SERIES, _squares_of_line)
    return _section(found, ("running sums", "ranges", "cells"), 0.8)


def _points(run: Run) -> list[Row]:
    data = {f"{name}, {n:.0e} points": partial(_map, name, n) for name in POINTS for n in run.records}
    return _section(_errors(run, _maps(run), data, _squares_of_map), ("boxes",), 0.75, 1.25)


def _map(name: str, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return POINTS[name](rng, n)


def _times(run: Run) -> list[Row]:
    """Say the time of a plan, a release and its table."""
    rows, rng = [], np.random.default_rng(1)
    for what, counts, contestants in (
        ("series, 4,096 cells", SERIES["140 heavy cells"](rng), _lines(run)),
        ("map, 128 x 128 cells", POINTS["clusters"](rng, 10**5), _maps(run)),
    ):
        table_ = counts.astype(float)
        calls = {name: partial(release, table_, 0.1, rng) for name, release in contestants.items()}
        seconds = race(calls, 7)
        mine = seconds.get(_OURS)
        for name, taken in seconds.items():
            ratio = None if mine is None or name == _OURS else mine / taken
            beside = "" if ratio is None else f"{_OURS}: {amount(mine or 0.0)}"
            rows.append(reported(Row(f"{what}, epsilon 0.1, a release: {name}", amount(taken), beside, ratio)))
    return rows


_SECTIONS: dict[str, Callable[[Run], list[Row]]] = {"series": _series, "points": _points, "times": _times}


def figures() -> list[Row]:
    """Return all rows, each section in a process of its own."""
    return [row for section in _SECTIONS for row in in_process(__file__, section, threads=1)]


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--draws", type=int, default=Run.draws, help="releases of each table")
    parser.add_argument("--seeds", type=int, default=Run.seeds, help="tables of each kind")
    parser.add_argument("--epsilons", type=float, nargs="+", default=Run.epsilons)
    parser.add_argument("--only", choices=_SECTIONS, help="one section")
    parser.add_argument("--without-core", action="store_true", help="numpy alone")
    parser.add_argument("--section", choices=_SECTIONS, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    warnings.filterwarnings("ignore", "deterministic noise")
    asked = _asked()
    if asked.section:
        print(json.dumps([vars(row) for row in _SECTIONS[asked.section](Run())]))
        sys.exit()
    run = Run(asked.draws, asked.seeds, tuple(asked.epsilons), not asked.without_core)
    print(table([row for name, section in _SECTIONS.items() if asked.only in (None, name) for row in section(run)]))
