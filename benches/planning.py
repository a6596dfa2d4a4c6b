"""How long `auto` takes to plan a million cells, a stream of 2^24 steps, or what is searched for: a second is the goal.

Each plan is the first of a process, at (1, 1e-6) and with two threads, of a workload that is made before. The baselines are
numpy's, of the part of the work that whole arrays do: what no mechanism beats (ranges, sums), the norms of a stream's columns
without its errors (two diagonals), whether levels are nested without weights for them (hierarchies).
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np
from harness import Row, amount, in_process, main, medians, noted, once, plural, quick, reported, versus
from numpy.typing import NDArray
from optimality_workloads import CATALOGUE
from scipy.signal import lfilter

import sordino as so

_PRIVACY = so.ApproxDP(epsilon=1.0, delta=1e-6)
_THREADS = 2
_MOST_SECONDS = 1.0


def _cells() -> int:
    return 2**14 if quick() else 2**20


def _steps() -> int:
    return 2**16 if quick() else 2**24


def _labels() -> NDArray[np.int64]:
    """Districts, regions and countries of a million places, none of the same size."""
    places = _cells()
    districts = np.sort(np.random.default_rng(0).integers(0, places // 50, places))
    return np.stack([np.arange(places), districts, districts // 137, districts // 2740])


def _ours(job: str) -> Callable[[], object]:
    n, labels = _cells(), _labels()
    districts = next(series for series in CATALOGUE if series.name == "random districts")
    asked: dict[str, Callable[[], so.workloads.Workload]] = {
        "all ranges": lambda: so.AllRanges(n),
        "running sums": lambda: so.RunningSum(n),
        "windows of 168": lambda: so.SlidingWindow(168, n),
        "exponential smoothing, decay .99": lambda: so.ExponentialSmoothing(0.99, n),
        "a decay over the whole series": lambda: so.ExponentialSmoothing(1.0 - 4.0 / n, n),
        "one over the root of the age": lambda: so.workloads.PolynomialDecay(0.5, n),
        "a hierarchy of uneven groups": lambda: so.GroupBy(labels),
        "nine levels of random districts": lambda: districts.build(n),
        "boxes of two axes": lambda: so.Kronecker([so.AllRanges(2 ** ((n.bit_length() - 1) // 2))] * 2),
        "a live running sum": lambda: so.Continual(so.RunningSum(_steps())),
        "512 running sums": lambda: so.RunningSum(512),
        "4,096 running sums": lambda: so.RunningSum(4096),
        "all ranges of 4,096 cells": lambda: so.AllRanges(4096),
    }
    workload = asked[job]()
    return lambda: so.plan(workload, _PRIVACY)


def _diagonal_of_ranges() -> float:
    """`Σ s_j²`, s the diagonal of the root of all ranges' Gram matrix."""
    n = _cells()
    values = 0.5 / np.sin(np.arange(1, n + 1) * np.pi / (2 * (n + 1)))
    spectrum = np.zeros(n + 2)
    spectrum[1:-1] = values
    s = (values.sum() - np.fft.irfft(spectrum, 2 * (n + 1))[2 : 2 * n + 2 : 2] * (n + 1)) / np.sqrt(n + 1)
    return float(s @ s)


def _diagonal_of_sums() -> float:
    n = _cells()
    values = 0.5 / np.sin((2 * np.arange(1, n + 1) - 1) * np.pi / (2 * (2 * n + 1)))
    spectrum = np.zeros(2 * n + 2)
    spectrum[1:-1:2] = values
    s = 2.0 / (2 * n + 1) * (values.sum() + np.fft.irfft(spectrum, 4 * n + 2)[1 : 2 * n : 2] * (2 * n + 1))
    return float(s @ s)


def _norms() -> float:
    """Column norms of a buffered strategy of eight poles: a recursion for each pair of them."""
    poles, weights = 1.0 - 0.5 / 6.0 ** np.arange(8), 0.4 / 2.5 ** np.arange(8)
    rows = np.linspace(1.0, 2.0, _steps())
    squares = np.zeros(len(rows))
    for i in range(8):
        for k in range(i + 1):
            both = weights[i] * weights[k] * (1.0 if i == k else 2.0)
            squares += both * lfilter([0.0, 1.0], [1.0, -poles[i] * poles[k]], rows)
    return float(squares.max())


def _nested() -> bool:
    """Whether every group of a level is in one of the next."""
    labels = _labels()
    pairs = [np.unique(fine * (coarse.max() + 1) + coarse) for fine, coarse in pairwise(labels)]
    return all(len(pair) == fine.max() + 1 for pair, fine in zip(pairs, labels, strict=False))


_BASELINES: dict[str, tuple[str, Callable[[], object]]] = {
    "all ranges": ("numpy, the bound alone", _diagonal_of_ranges),
    "running sums": ("numpy, the bound alone", _diagonal_of_sums),
    "a live running sum": ("numpy and scipy, column norms alone", _norms),
    "a hierarchy of uneven groups": ("numpy, whether it is nested", _nested),
}
# Of few cells strategies are searched for, step by step.
_SEARCHED = ("512 running sums", "4,096 running sums", "all ranges of 4,096 cells")
_OTHERS = (
    "windows of 168",
    "exponential smoothing, decay .99",
    "a decay over the whole series",
    "one over the root of the age",
    "nine levels of random districts",
    "boxes of two axes",
    *_SEARCHED,
)


def _first(job: str, name: str) -> list[Row]:
    """Return the seconds of one call, the first of its process."""
    call = _ours(job) if name == "sordino" else _BASELINES[job][1]
    return [Row(job, repr(once(call)[0]))]


def figures() -> list[Row]:
    """Return all rows."""
    rows = []
    for job in (*_BASELINES, *_OTHERS):
        names = ["sordino", "numpy"] if job in _BASELINES else ["sordino"]
        calls = {
            name: lambda job=job, name=name: float(in_process(__file__, f"{job}|{name}", threads=_THREADS)[0].ours)
            for name in names
        }
        found = medians(calls, 5)
        size = f", {_steps():,} steps" if "live" in job else f", {_cells():,} cells"
        what = f"plan {job}{'' if job in _SEARCHED else size}, {plural(_THREADS)}"
        rows.append(reported(noted(what, amount(found["sordino"]), found["sordino"], _MOST_SECONDS, "≤ 1 s")))
        if job in _BASELINES:
            rows.append(reported(versus(what, found["sordino"], _BASELINES[job][0], found["numpy"])))
    return rows


if __name__ == "__main__":
    contestants = [(job, name) for job in (*_BASELINES, *_OTHERS) for name in ("sordino", "numpy")]
    main({f"{job}|{name}": partial(_first, job, name) for job, name in contestants}, figures)
