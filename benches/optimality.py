"""Errors of what `auto` takes for some seventy kinds of workloads, up to a million cells, under three laws of privacy.

A row is one kind of workload at all its sizes. The laws differ in what noise there is, and in what is known of it:

- Gaussian: `GaussianDP`, with the mu of (1, 1e-6). All Gaussian guarantees have the same strategies and the same ratios. The
  bound (`plan.fit.bound`) is what no Gaussian mechanism gets below; the ratio is the worst error over it.
- pure: epsilon 1, discrete Laplace noise where whole counts are measured. No bound is known but for single counts; the
  ratio is the worst error over that of the best peer at the same size.
- either: `ApproxDP`, (1, 1e-6), where both kinds of noise may be had. The ratio is the worst error over that of the
  better of the two plans above.

A step is by how much the ratio to the bound changes from size to size; or the error over that of noise on the cells,
from a size to one that is at most 1 % larger, where a search gives way to a closed form. Peers are in
`optimality_peers.py` and `peers.py`: what is shown is their errors over ours, computed and not drawn, at the sizes at
which they can be had. Noise on the cells and on the answers is what any library has. Planning is by one thread, two
processes at a time; memory is what it takes at most. The planning of all pairs stands beside ResidualPlanner's closed
form in plain Python. A size that is refused, or without a bound, is a goal missed. The picture is
`pictures/optimality.png`.

Run `python benches/optimality.py`, or a family alone: `python benches/optimality.py --section unions`; `--section picture`
draws the picture without the rest.
"""

import ctypes
import gc
import math
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from harness import Row, amount, in_process, main, quick, race, reported, versus
from numpy.typing import NDArray
from optimality_peers import Law, hdmm, mean_error, residual_planner, square_root, tree
from optimality_workloads import CATALOGUE, Series
from peers import ENVIRONMENT, jax_banded, jax_buffered

import sordino as so
from sordino.plots.tables import ACCENT, INK, MUTED, SIGNAL, dress, heading, new_figure
from sordino.privacy.calibration import gaussian_mu
from sordino.workloads.filters import Filter

_PICTURES = Path(__file__).resolve().parent / "pictures"
_EITHER = so.ApproxDP(epsilon=1.0, delta=1e-6)
_LAWS: dict[str, so.GaussianDP | so.PureDP | so.ApproxDP] = {
    "Gaussian": so.GaussianDP(mu=gaussian_mu(_EITHER)),
    "pure": so.PureDP(epsilon=1.0),
    "either": _EITHER,
}
_MULTIPLIER = 1.0 / gaussian_mu(_EITHER)
# Sizes that differ by so little are neighbours.
_NEIGHBOURS = 1.01
_STEP = 0.01
# Mechanisms within 1 % of the least error are ties.
_TIE = 1.01
# Both kinds of noise are planned up to here: beyond it each of them takes its time alone.
_BOTH = 2**16
# Peers that search take seconds: they are run up to this size, and at these.
_SEARCHED = 2**14
_STREAMED = (1024, 2**20)
_BUFFERS, _BANDS, _BAND_STEPS = 5, 64, 60
_PLAIN_ATTRIBUTES = 20 if quick() else 100
# The picture: what is named, where sizes without a bound are marked, and ticks; names are so far apart, on either side.
_FAR, _LOST, _TICKS = 1.03, 9.0, (1.0, 1.01, 1.05, 1.2, 2.0, 5.0)
_APART, _MIDDLE = 0.3, 2**13
_CELLS = "noise on the cells"
_FAMILIES = tuple(dict.fromkeys(series.family for series in CATALOGUE))


@dataclass(frozen=True)
class Point:
    """One plan.

    Attributes:
        size: As the series counts.
        cells: Of the table, 0 if it could not be made.
        seconds: Of planning.
        megabytes: Most that planning took.
        mechanism: What `auto` chose; empty if it refused.
        error: Root mean squared.
        bound: Least of any Gaussian mechanism, 0 if none is known.
        bound_name: Which.
        refusal: Why there is no plan.
    """

    size: int
    cells: int
    seconds: float = 0.0
    megabytes: float = 0.0
    mechanism: str = ""
    error: float = math.nan
    bound: float = 0.0
    bound_name: str = ""
    refusal: str = ""

    @property
    def ratio(self) -> float:
        """Error over the bound, not a number without one."""
        return self.error / self.bound if self.bound > 0.0 else math.nan


Curve = list[Point]
Errors = dict[int, dict[str, float]]
Curves = dict[str, dict[str, Curve]]


def _status(field: str) -> float:
    """Return a memory figure of this process in megabytes (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field + ":")) / 1e3


def _planned(workload: so.workloads.Workload, law: str) -> tuple[so.Plan, float, float]:
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts again
    before, start = _status("VmRSS"), time.perf_counter()
    plan = so.plan(workload, _LAWS[law])
    return plan, time.perf_counter() - start, max(_status("VmHWM") - before, 0.0)


def _point(workload: so.workloads.Workload, size: int, law: str) -> Point:
    cells = math.prod(workload.input_shape)
    try:
        plan, seconds, megabytes = _planned(workload, law)
    except so.SordinoError as error:
        return Point(size, cells, refusal=type(error).__name__)
    bound = plan.fit.bound
    known = bound is not None and not bound.up_to_constant
    return Point(
        size,
        cells,
        seconds,
        megabytes,
        plan.mechanism,
        plan.rmse,
        bound.value if known else 0.0,
        bound.name if known else "",
    )


# Peers.


def _named(workload: so.workloads.Workload, law: str, mechanism: str) -> float | None:
    try:
        return so.plan(workload, _LAWS[law], mechanism=mechanism).rmse
    except so.SordinoError:
        return None


def _buffered(workload: so.workloads.Workload) -> float | None:
    """Return the mean error of jax-privacy's buffered factor, which is made for the largest one."""
    if type(workload) is not so.RunningSum:
        return None
    factor, _ = jax_buffered(workload.steps, _BUFFERS, "max")
    answers = np.cumsum(np.asarray(factor.inverse().toeplitz_coefs(workload.steps)))
    return mean_error(np.asarray(factor.toeplitz_coefs(workload.steps)), answers)


def _banded(workload: so.workloads.Workload) -> float | None:
    """Return the mean error of jax-privacy's banded factor of a filter; running sums, without an end, have the other."""
    if not isinstance(workload, Filter) or workload.boundary != "causal" or type(workload) is so.RunningSum:
        return None
    taps = workload.kernel[: workload.steps]
    return jax_banded(np.pad(taps, (0, workload.steps - len(taps))), _BANDS, _BAND_STEPS)


def _peers(workload: so.workloads.Workload, size: int, law: str) -> dict[str, float]:
    """Return the errors of the peers that there are."""
    noise: Law = "gaussian" if law == "Gaussian" else "laplace"
    scale = _MULTIPLIER if law == "Gaussian" else 1.0
    found = {
        _CELLS: _named(workload, law, "identity"),
        "noise on the answers": _named(workload, law, "output") if workload.core.answers_len <= 2**12 else None,
    }
    computed: dict[str, Callable[[], float | None]] = {"OpenDP's tree": lambda: tree(workload, noise)}
    if size <= _SEARCHED:
        computed["HDMM"] = lambda: hdmm(workload, noise)
    if law == "Gaussian":
        computed["ResidualPlanner"] = lambda: residual_planner(workload)
        computed["Toeplitz square root"] = lambda: square_root(workload)
        if size == _STREAMED[0]:
            computed[f"jax-privacy, {_BANDS} bands"] = lambda: _banded(workload)
        if size in _STREAMED:
            computed[f"jax-privacy, {_BUFFERS} buffers"] = lambda: _buffered(workload)
    for name, error in computed.items():
        value = error()
        found[name] = None if value is None else scale * value
    return {name: value for name, value in found.items() if value is not None}


def _beside(curve: Curve, others: Errors) -> tuple[str, float]:
    """Return the peers' errors in units of ours, best first, and the worst of ours over the best of theirs."""
    times: dict[str, list[float]] = {}
    worst = math.nan
    for point in curve:
        each = {name: error / point.error for name, error in others.get(point.size, {}).items() if point.mechanism}
        for name, value in each.items():
            times.setdefault(name, []).append(value)
        worst = float(np.nanmax([worst, 1.0 / min(each.values())])) if each else worst
    ordered = sorted(times.items(), key=lambda item: min(item[1]))
    return ", ".join(f"{name} {_span(min(values), max(values))}" for name, values in ordered), float(worst)


def _span(low: float, high: float) -> str:
    short = [f"{value:.3g}" if value < 1000.0 else f"{value:.0f}" for value in (low, high)]
    return short[0] if short[0] == short[1] else f"{short[0]} to {short[1]}"


# Rows.


def _size(size: int) -> str:
    return f"2^{size.bit_length() - 1}" if size > 4096 and size & (size - 1) == 0 else f"{size:,}"


def _step(curve: Curve, others: Errors) -> tuple[float, int]:
    """Return the largest step and the size that it leads to."""
    found = (0.0, 0)
    for one, other in pairwise(curve):
        changes = [abs(other.ratio - one.ratio)]
        if other.size <= _NEIGHBOURS * one.size:
            before, after = (point.error / others.get(point.size, {}).get(_CELLS, math.nan) for point in (one, other))
            changes.append(abs(after / before - 1.0))
        known = [change for change in changes if not math.isnan(change)]
        found = max(found, (max(known, default=0.0), other.size))
    return found


def _chosen(curve: Curve) -> str:
    """Say what was chosen up to which size."""
    parts: list[tuple[str, int]] = []
    for point in curve:
        name = point.mechanism or f"refused ({point.refusal})"
        if parts and parts[-1][0] == name:
            parts[-1] = (name, point.size)
        else:
            parts.append((name, point.size))
    return ", ".join(f"{name} to {_size(size)}" for name, size in parts) if len(parts) > 1 else parts[0][0]


def _longest(curve: Curve) -> str:
    slow, large = max(curve, key=lambda point: point.seconds), max(curve, key=lambda point: point.megabytes)
    return f"planned in {amount(slow.seconds)} ({_size(slow.size)}), {large.megabytes:.0f} MB ({_size(large.size)})"


def _what(series: Series, law: str, curve: Curve) -> str:
    ends = dict.fromkeys(_size(point.size) for point in (curve[0], curve[-1]))
    return f"{series.name}, {' to '.join(ends)} {series.counts}, {law}"


def _sizes(points: list[Point]) -> str:
    return ", ".join(_size(point.size) for point in points)


def _gaussian_row(series: Series, curve: Curve, others: Errors) -> Row:
    beside, _ = _beside(curve, others)
    known = [point for point in curve if not math.isnan(point.ratio)]
    missing = [point for point in curve if math.isnan(point.ratio)]
    worst = max(known, key=lambda point: point.ratio, default=None)
    step, at = _step(curve, others)
    ratio = None if worst is None else worst.ratio
    bounds = ", ".join(dict.fromkeys(point.bound_name for point in known)) or "no bound"
    parts = [
        "" if worst is None else f"{worst.ratio:.5f} at {_size(worst.size)}",
        f"step {step:.2g} at {_size(at)}" if step >= _STEP else f"steps {step:.1g}",
        f"no ratio at {_sizes(missing)}" if missing else "",
        _chosen(curve),
        _longest(curve),
    ]
    met = ratio is not None and ratio <= series.goal and step < _STEP and not missing
    other = f"{bounds}; {beside}" if beside else bounds
    return Row(
        _what(series, "Gaussian", curve),
        "; ".join(filter(None, parts)),
        other,
        ratio,
        f"≤ {series.goal:.5g}, steps < 0.01",
        met,
    )


def _pure_row(series: Series, curve: Curve, others: Errors) -> Row:
    beside, worst = _beside(curve, others)
    planned = [point for point in curve if point.mechanism]
    refused = [point for point in curve if not point.mechanism]
    step, at = _step([replace(point, bound=0.0) for point in curve], others)
    parts = [
        f"rmse {_span(planned[0].error, planned[-1].error)}" if planned else "",
        f"step {step:.2g} at {_size(at)}" if step >= _STEP else f"steps {step:.1g}",
        _chosen(curve),
        _longest(curve),
    ]
    met = not refused and step < _STEP and not worst > _TIE
    ratio = None if math.isnan(worst) else worst
    return Row(_what(series, "pure", curve), "; ".join(filter(None, parts)), beside, ratio, "≤ 1.01, steps < 0.01", met)


def _either_row(series: Series, curves: dict[str, Curve]) -> Row:
    curve, over = curves["either"], []
    for own, *single in zip(curve, curves["Gaussian"], curves["pure"], strict=False):
        if own.mechanism:
            least = min(point.error for point in single if point.mechanism)
            over.append((own.error / least, own.size))
    worst, at = max(over, default=(math.nan, 0))
    refused = len(over) < len(curve)
    ratios = [point.ratio for point in curve if not math.isnan(point.ratio)]
    beside = f"of the Gaussian bound {_span(min(ratios), max(ratios))}" if ratios else "no bound"
    where = f" at {_size(at)}" if worst > 1.0 + 1e-9 else ""
    shown = f"{worst:.4g}{where}; {_chosen(curve)}"
    met = worst <= _TIE and not refused
    return Row(_what(series, "either", curve), shown, f"the better law alone; {beside}", worst, "≤ 1.01", met)


def _measured(name: str, only: str | None = None) -> tuple[dict[str, Curve], dict[str, Errors]]:
    """Return the plans of one series under each law, and the errors of peers; or the plans under one law alone."""
    series = next(series for series in CATALOGUE if series.name == name)
    curves: dict[str, Curve] = {law: [] for law in _LAWS}
    others: dict[str, Errors] = {"Gaussian": {}, "pure": {}}
    for size in series.run:
        laws = [law for law in _LAWS if size <= _BOTH or law in others] if only is None else [only]
        try:
            workload = series.build(size)
        except so.SordinoError as error:
            for law in laws:
                cells = size if series.counts == "cells" else 0
                curves[law].append(Point(size, cells, refusal=type(error).__name__))
            continue
        for law in laws:
            curves[law].append(_point(workload, size, law))
            if only is None and law in others:
                others[law][size] = _peers(workload, size, law)
    return curves, others


def _rows(series: Series, curves: dict[str, Curve], others: dict[str, Errors]) -> list[Row]:
    rows = [
        _gaussian_row(series, curves["Gaussian"], others["Gaussian"]),
        _pure_row(series, curves["pure"], others["pure"]),
        _either_row(series, curves),
    ]
    return [reported(row) for row in rows]


def _family(family: str) -> list[Row]:
    return [row for series in CATALOGUE if series.family == family for row in _rows(series, *_measured(series.name))]


def _all() -> list[Row]:
    rows: list[Row] = []
    curves: Curves = {}
    # What is measured is errors, and times only roughly: two processes share the work.
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        for series, (own, others) in zip(CATALOGUE, pool.map(_measured, (s.name for s in CATALOGUE)), strict=True):
            curves[series.name] = own
            rows += _rows(series, own, others)
    _draw(curves)
    return [*rows, *_longest_of_all(curves), *_against_plain_python()]


def _picture() -> list[Row]:
    """Draw the picture without what stands beside it."""
    names = [series.name for series in CATALOGUE]
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        found = pool.map(partial(_measured, only="Gaussian"), names)
        _draw({name: curves for name, (curves, _) in zip(names, found, strict=True)})
    return []


def _against_plain_python() -> list[Row]:
    """Planning, all mechanisms compared, beside the closed form of the one that is best."""
    pairs, privacy = so.Marginals([10] * _PLAIN_ATTRIBUTES, k=2), so.GaussianDP(mu=1.0)
    error, plan = residual_planner(pairs), so.plan(pairs, privacy)
    assert error is not None and abs(plan.rmse / error - 1.0) < 1e-6
    times = race({"ours": partial(so.plan, pairs, privacy), "plain": partial(residual_planner, pairs)}, 7)
    what = f"planning: 2-way of many, {_PLAIN_ATTRIBUTES} attributes, Gaussian"
    return [versus(what, times["ours"], "plain Python: ResidualPlanner's closed form", times["plain"])]


def _longest_of_all(curves: Curves) -> list[Row]:
    """Return what took the longest, and the most memory, of all plans."""
    points = [(point, name, law) for name, own in curves.items() for law, curve in own.items() for point in curve]
    slow = sorted(points, key=lambda item: -item[0].seconds)[:5]
    large = sorted(points, key=lambda item: -item[0].megabytes)[:3]
    rows = [
        Row(
            f"longest planning: {name}, {_size(point.size)}, {law}",
            amount(point.seconds),
            "",
            None,
            "≤ 1 s",
            point.seconds <= 1.0,
        )
        for point, name, law in slow
    ]
    return [
        *rows,
        *(
            Row(f"most memory: {name}, {_size(point.size)}, {law}", f"{point.megabytes:.0f} MB")
            for point, name, law in large
        ),
    ]


def _spread(ratio: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return heights in which a thousandth above 1 and a factor can both be seen."""
    return np.asarray(np.log1p(100.0 * np.maximum(ratio - 1.0, -5e-3)))


def _gathered(height: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(1.0 + np.expm1(height) / 100.0)


def _name(axes: Any, tops: list[tuple[float, int, str]]) -> None:
    """Write the names of curves at their highest points, the highest first; of those that would lie upon each other one."""
    taken: list[float] = []
    for ratio, cells, name in sorted(tops, reverse=True):
        height = float(_spread(np.array(ratio)))
        if all(abs(height - other) > _APART for other in taken):
            taken.append(height)
            side, shift = ("left", 5) if cells < _MIDDLE else ("right", -5)
            axes.annotate(name, (cells, ratio), (shift, 2), textcoords="offset points", ha=side, fontsize=8, color=INK)


def _draw(curves: Curves) -> None:
    """Draw the ratio of the Gaussian law against the cells, a panel a family; what is far from the bound has its name."""
    if quick():
        return
    figure = new_figure(12.0, 9.6)
    grid = figure.subplots(3, 3, sharex=True, sharey=True)
    for axes, family in zip(grid.ravel(), _FAMILIES, strict=True):
        tops = []
        for series in (each for each in CATALOGUE if each.family == family and each.counts == "cells"):
            points = [point for point in curves[series.name]["Gaussian"] if point.cells]
            known = [point for point in points if not math.isnan(point.ratio)]
            top = max(known, key=lambda point: point.ratio, default=None)
            far = top is not None and top.ratio > _FAR
            colour = ACCENT if far else MUTED
            axes.plot([p.cells for p in points], [p.ratio for p in points], "o-", color=colour, markersize=2.5, lw=1)
            lost = [point.cells for point in points if math.isnan(point.ratio)]
            axes.plot(lost, [_LOST] * len(lost), "x", color=SIGNAL, markersize=4)
            if top is not None and far:
                tops.append((top.ratio, top.cells, series.name))
        _name(axes, tops)
        axes.set_xscale("log", base=2)
        axes.set_xlim(2.0**5.5, 2.0**20.5)
        axes.set_xticks([2.0**k for k in range(6, 21, 2)])
        axes.set_yscale("function", functions=(_spread, _gathered))
        axes.set_ylim(1.0 - 2e-3, 1.4 * _LOST)
        axes.set_yticks([*_TICKS, _LOST], [*(f"{tick:g}" for tick in _TICKS), "no bound"])
        axes.set_yticks([], minor=True)
        dress(axes, "cells" if axes in grid[-1] else "", "times the bound" if axes in grid[:, 0] else "")
        heading(axes, family, "")
    _PICTURES.mkdir(exist_ok=True)
    figure.savefig(_PICTURES / "optimality.png", dpi=100)


def figures() -> list[Row]:
    """Return all rows."""
    return in_process(__file__, "all", threads=1, environment=ENVIRONMENT)


if __name__ == "__main__":
    sections = {family: partial(_family, family) for family in _FAMILIES}
    main({"all": _all, "picture": _picture, "plain Python": _against_plain_python, **sections}, figures)
