"""People who are in several cells: the least error of any workload, beside what is measured for one cell at a time.

Root mean squared errors of Gaussian noise where one person raises at most k counts by one each, over the certified bound
below every strategy for such changes. Ours is charged what is proved for all changes, so the proof's loss is in it.
Compared are the best strategy for changes of one cell at the same proved charge, and at k times the charge of one record,
as matrix mechanisms are charged elsewhere; independent noise on the cells; and common noise beside it. Other libraries
have the first two of these strategies at most, so there is no peer. Times are of planning, with both searches anew; for
few cells beside plain Python, which searches over a list of all changes.

Run `python benches/several_cells.py`.
"""

import math
from functools import partial
from itertools import combinations

import geometry_baselines as baselines
import numpy as np
from harness import Row, amount, in_process, main, once, quick, turns, versus

import sordino as so
from sordino import _core
from sordino.mechanisms.linear import search

_PRIVACY = so.GaussianDP(mu=1.0)
_SIZES = (8, 32) if quick() else (8, 64, 128, 256)
# Share of the cells that one person raises, as a divisor; and a few.
_SHARES = (8, 2, 1)
_MOST_OFF = 1.03
_MOST_SECONDS = 10.0
_FEW, _GAP = 8 if quick() else 10, 1e-2


def _workloads(cells: int) -> dict[str, so.workloads.Workload]:
    return {
        "running sums": so.RunningSum(cells),
        "all ranges": so.AllRanges(cells),
        "differences": so.Matrix(np.eye(cells) - np.eye(cells, k=-1)),
        "windows of 7": so.SlidingWindow(min(7, cells), cells),
    }


def _rmse(workload: so.workloads.Workload, unit: so.AddRemove, **asked: object) -> float:
    try:
        return so.plan(workload, _PRIVACY, unit=unit, **asked).rmse  # type: ignore[arg-type]
    except so.errors.UnsupportedMechanismError:
        return math.inf


def _anew(workload: so.workloads.Workload, unit: so.AddRemove) -> so.Plan:
    """Return the plan of the best strategy, searched for again."""
    search._FOUND.clear()
    return so.plan(workload, _PRIVACY, unit=unit, mechanism="optimal")


def _row(name: str, workload: so.workloads.Workload, cells: int, most: int) -> Row:
    unit = so.AddRemove(most, per_cell=1, one_signed=True)
    seconds, plan = once(partial(_anew, workload, unit))
    assert plan.optimality is not None
    least = plan.rmse / plan.optimality
    single = so.optimal.factorize(workload)
    others = {
        "best for one cell, proved charge": _rmse(workload, unit, factorization=single),
        "k times the charge of one record": _rmse(workload, so.AddRemove(most), factorization=single),
        "independent noise": _rmse(workload, unit, mechanism="identity"),
        "common noise": _rmse(workload, unit, mechanism="identity-common"),
    }
    said = ", ".join(f"{what}: {rmse / least:.4g}" for what, rmse in others.items() if rmse < math.inf)
    ours = f"{plan.optimality:.4f} times the least, planned in {amount(seconds)}"
    what = f"{name}, {cells} cells, {most} of which one person raises"
    met = plan.optimality <= _MOST_OFF and seconds <= _MOST_SECONDS
    return Row(what, ours, said, plan.optimality, f"≤ {_MOST_OFF}, {_MOST_SECONDS:g} s", met)


def _errors() -> list[Row]:
    rows = []
    for cells in _SIZES:
        for name, workload in _workloads(cells).items():
            rows += [
                _row(name, workload, cells, most) for most in sorted({max(cells // share, 2) for share in _SHARES})
            ]
    return rows


def _against_plain_python() -> list[Row]:
    """Half of few cells is what one person raises: every set of at most so many is one change."""
    most = _FEW // 2
    sums, unit = so.RunningSum(_FEW), so.AddRemove(most, per_cell=1, one_signed=True)
    A, cells = _core.dense(sums.core), range(_FEW)
    changes = [A[:, changed].sum(axis=1) for k in range(1, most + 1) for changed in combinations(cells, k)]
    listed = np.stack(changes, axis=1).tolist()
    times, found = turns(
        {"ours": partial(_anew, sums, unit), "plain": partial(baselines.plain_mean_error, listed, _GAP)}, 3
    )
    lower, upper = found["plain"]
    assert lower * (1.0 - _GAP) <= found["ours"].rmse <= upper * (1.0 + _GAP)
    what = f"running sums, {_FEW} cells, {most} of which one person raises, planned"
    name = f"plain Python: {len(changes)} changes, gap {_GAP:g}"
    return [versus(what, times["ours"], name, times["plain"])]


def figures() -> list[Row]:
    """Return all rows."""
    return [row for section in _SECTIONS for row in in_process(__file__, section, threads=2)]


_SECTIONS = {"errors": _errors, "plain Python": _against_plain_python}

if __name__ == "__main__":
    main(_SECTIONS, figures)
