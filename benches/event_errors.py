"""Errors on streams of events: graph functions, words, rare events, local surveys, cuts; beside trees and the paper.

Planned errors are those of the plan; measured ones come from draws of known noise on made or real streams. What the
paper prints is "Constant matters" (Fichtenberger, Henzinger, Upadhyay 2023), Section 5. Epsilon is 1 and delta 1e-6
unless a row says so. Pictures go to `pictures/`.

Run `python benches/event_errors.py`.
"""

import csv
import hashlib
import math
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg
from applications_baselines import Episodes, Forest, Stars, Substrings, Triangles
from event_streams import letters, random_edges
from harness import Row, in_process, main, power, quick
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

import sordino as so
from sordino.plots.tables import ACCENT, INK, MUTED, PALE, SIGNAL, dress, heading, new_figure
from sordino.privacy.calibration import gaussian_mu
from sordino.releases.cuts import Widths
from sordino.testing import deterministic_noise
from sordino.workloads.events.base import EventWorkload

_HERE = Path(__file__).resolve().parent
_DATA = _HERE.parent / "examples" / "data"
_PICTURES = _HERE / "pictures"
_DOTS_PER_INCH = 100
_PRIVACY = so.ApproxDP(epsilon=1.0, delta=1e-6)
_PURE = so.PureDP(epsilon=1.0)
_LEVEL = 0.95

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


def _key(*what: object) -> bytes:
    return hashlib.sha256(repr(what).encode()).digest()


def _opened(plan: so.StreamPlan) -> Any:
    """Return an open stream, of the kind of its workload."""
    return plan.open()


def _save(figure: Figure, name: str) -> None:
    if quick():
        return
    _PICTURES.mkdir(exist_ok=True)
    figure.savefig(_PICTURES / name, dpi=_DOTS_PER_INCH)


# Graph functions and words.


def _workloads() -> dict[str, tuple[EventWorkload, so.AddRemove | so.ReplaceOne]]:
    n, steps = 10**4, 2**10 if quick() else 10**5
    edge, letter = so.AddRemove(1), so.ReplaceOne(1)
    return {
        "edges": (so.events.EdgeCount(n, steps), edge),
        "triangles, degrees ≤ 30": (so.events.TriangleCount(n, steps, max_degree=30), edge),
        "2-stars, degrees ≤ 30": (so.events.StarCount(2, n, steps, max_degree=30), edge),
        "degree histogram, degrees ≤ 30": (so.events.DegreeHistogram(n, steps, max_degree=30), edge),
        "spanning forest, weights ≤ 1": (so.events.SpanningForestCost(n, steps), edge),
        "substrings of up to 5 of 27 letters": (so.events.SubstringCounts(27, 5, steps), letter),
        "episodes of up to 3 of 5 letters": (so.events.EpisodeCounts(5, 3, steps), letter),
    }


def _planned() -> list[Row]:
    """Largest standard error of the chosen mechanism, and of the textbook's tree with the same sensitivity."""
    rows = []
    for name, (workload, unit) in _workloads().items():
        ours = so.plan(so.Continual(workload), _PRIVACY, unit=unit, objective="max")
        tree = so.plan(so.Continual(workload), _PRIVACY, unit=unit, objective="max", mechanism="binary-tree")
        rows.append(
            Row(
                f"{name}, {workload.length:,} steps, largest standard error",
                f"{ours.max_stderr:.4g} ({ours.mechanism}); sensitivity {ours.fit.relative_sensitivity:.4g}, {ours.fit.assumes}",
                f"binary tree, Gaussian: {tree.max_stderr:.4g}",
                ours.max_stderr / tree.max_stderr,
            )
        )
    return rows


def _sensitivities() -> list[Row]:
    """Sensitivities over the column norm, beside what the paper prints: too small by the ratio."""
    rows, steps = [], 2**12 if quick() else 2**16

    def row(what: str, plan: so.StreamPlan, other: float, source: str) -> None:
        ours = plan.fit.relative_sensitivity
        rows.append(Row(f"sensitivity, {what}", f"{ours:.4g}", f"{source}: {other:.4g}", ours / other))

    for longest in (1, 2, 3, 5, 10, 20):
        workload = so.events.SubstringCounts(2, longest, steps)
        plan = so.plan(so.Continual(workload, reads="lazy"), _PRIVACY, unit=so.ReplaceOne(), mechanism="square-root")
        row(f"substrings of up to {longest} letters, one replaced", plan, float(longest), "Corollary 4, l (false)")
    for u, longest in ((2, 2), (2, 4), (5, 3), (27, 3)):
        plan = so.plan(
            so.Continual(so.events.EpisodeCounts(u, longest, steps), reads="lazy"),
            _PRIVACY,
            unit=so.ReplaceOne(),
            mechanism="blt",
        )
        printed = math.sqrt(u ** (longest - 1) * longest)
        row(
            f"episodes of up to {longest} of {u} letters, one replaced",
            plan,
            printed,
            "Corollary 5, false: (u^(l-1) l)^1/2",
        )
    for name, made in {
        "triangles": so.events.TriangleCount,
        "edges": so.events.EdgeCount,
    }.items():
        enforced = so.plan(so.Continual(made(1000, steps, max_degree=30)), _PRIVACY, mechanism="blt")
        promised = so.plan(so.Continual(made(1000, steps, max_degree=30, unchecked=True)), _PRIVACY, mechanism="blt")
        row(
            f"{name}, degrees ≤ 30 enforced",
            enforced,
            3.0 * promised.fit.relative_sensitivity,
            "three kept edges, one by one",
        )
    return rows


def _answers(name: str, u: Integers, v: Integers, w: Integers) -> Array:
    """Return the function after every edge, by the baselines."""
    edges = list(zip(u.tolist(), v.tolist(), w.tolist(), strict=True))
    if name == "spanning forest":
        forest = Forest()
        return np.cumsum([forest.insert(*edge) for edge in edges], dtype=float)
    counter = Triangles() if name == "triangles" else Stars(2)
    return np.cumsum([counter.insert(a, b) for a, b, _ in edges], dtype=float)


def _measured() -> list[Row]:
    """Measured over planned standard error, and how often simultaneous intervals hold."""
    n, steps, draws = 200, 300, 40 if quick() else 400
    (u, v), w = random_edges(n, steps), np.random.default_rng(2).integers(0, 256, steps)
    made: dict[str, EventWorkload] = {
        "triangles": so.events.TriangleCount(n, steps, max_degree=20),
        "2-stars": so.events.StarCount(2, n, steps, max_degree=20),
        "spanning forest": so.events.SpanningForestCost(n, steps, max_weight=256.0, weight_bits=8),
    }
    rows = []
    for name, workload in made.items():
        plan, truth = so.plan(so.Continual(workload), _PRIVACY), _answers(name, u, v, w)
        found = np.empty((draws, steps))
        for draw in range(draws):
            with deterministic_noise(_key("functions", name, draw)), _opened(plan) as stream:
                found[draw] = stream.update(u, v, w) if name == "spanning forest" else stream.update(u, v)
        off, places = found - truth, np.arange(1, steps + 1)
        ratio = math.sqrt(float(np.mean((off / plan.fit.std(places)) ** 2)))
        held = float(np.mean((np.abs(off) <= plan.fit.half_width(places, _LEVEL, steps)).all(axis=1)))
        what = f"{name}, {n} vertices, {steps} edges, {draws} draws ({plan.mechanism})"
        rows.append(
            Row(
                f"{what}: measured standard error over planned",
                f"{ratio:.3f}; intervals of all steps together hold in {held:.1%}",
                goal=f"± 5 %; {_LEVEL:.0%}",
                # Draws are few in a short run.
                met=abs(ratio - 1.0) < 0.05 * (3.0 if quick() else 1.0)
                and held >= _LEVEL - 4.0 * math.sqrt(_LEVEL * (1.0 - _LEVEL) / draws),
            )
        )
    return rows


# Rare events.


def _rare(plan: so.StreamPlan, ones: Integers, key: bytes) -> tuple[float, float]:
    """Return the largest and the mean absolute error over all steps."""
    worst, total, seen, chunk = 0.0, 0.0, 0, 2**20
    with deterministic_noise(key), plan.open() as stream:
        for first in range(0, plan.fit.steps, chunk):
            items = np.zeros(min(chunk, plan.fit.steps - first), dtype=np.int64)
            items[ones[(ones >= first) & (ones < first + len(items))] - first] = 1
            off = np.abs(np.asarray(stream.update(items)) - np.cumsum(items) - seen)
            worst, total = max(worst, float(off.max())), total + float(off.sum())
            seen += int(items.sum())
    return worst, total / plan.fit.steps


def _plain(length: int) -> str:
    """Return the running sum of pure privacy that a plain count would take."""
    return so.plan(so.Continual(so.RunningSum(length)), _PURE).mechanism


def _segments(length: int, most: int, privacy: so.PureDP | so.ApproxDP, draws: int) -> tuple[Row, float, float]:
    """Return the row, and the largest errors of segments and of one running sum, on average."""
    pure = isinstance(privacy, so.PureDP)
    above = so.plan(so.events.RareCount(length, most), privacy, mechanism="above")
    plain = so.plan(so.events.RareCount(length, most), privacy, mechanism=_plain(length) if pure else "auto")
    ones = np.sort(np.random.default_rng(most).choice(length, most, replace=False))
    found = {
        kind: np.mean([_rare(plan, ones, _key(length, most, pure, kind, draw)) for draw in range(draws)], axis=0)
        for kind, plan in (("above", above), ("plain", plain))
    }
    said = {
        kind: f"{largest:.4g}, {mean:.3g} ({above.fit.alternatives[kind]:.4g})"
        for kind, (largest, mean) in found.items()
    }
    kind = "pure" if pure else "approximate"
    row = Row(
        f"{most:,} ones in {power(length)} steps, {kind}, largest and mean error (largest planned), draws: {draws}",
        f"segments {said['above']}",
        f"one running sum ({plain.mechanism}): {said['plain']}",
        float(found["above"][0] / found["plain"][0]),
    )
    return row, float(found["above"][0]), float(found["plain"][0])


def _sparse() -> list[Row]:
    """Segments beside one running sum."""
    rows, drawn = [], {}
    lengths, counts = ((2**12,), (10, 100)) if quick() else ((2**16, 2**20, 2**26), (10, 100, 1000, 10_000))
    for length in lengths:
        draws = 3 if quick() else {2**16: 20, 2**20: 5}.get(length, 1)
        found = [_segments(length, most, _PURE, draws) for most in counts]
        rows += [row for row, *_ in found]
        drawn[length] = counts, [above for _, above, _ in found], [plain for *_, plain in found]
    rows += [_segments(length, most, _PRIVACY, 3)[0] for length in lengths[:2] for most in (10, 100, 1000)]
    if not quick():
        _draw_sparse(drawn)
    return rows


def _draw_sparse(found: dict[int, tuple[tuple[int, ...], list[float], list[float]]]) -> None:
    figure = new_figure(13.0, 4.6)
    left, right = figure.subplots(1, 2)
    length, most = 2**20, 1000
    ones = np.sort(np.random.default_rng(most).choice(length, most, replace=False))
    items = np.zeros(length, dtype=np.int64)
    items[ones] = 1
    steps, thin = np.arange(1, length + 1), slice(None, None, 256)
    for mechanism, color, label in ((_plain(length), MUTED, "one running sum"), ("above", SIGNAL, "segments")):
        plan = so.plan(so.events.RareCount(length, most), _PURE, mechanism=mechanism)
        with deterministic_noise(_key("picture", mechanism)), plan.open() as stream:
            left.plot(steps[thin], np.asarray(stream.update(items))[thin], color=color, linewidth=1.2, label=label)
    left.plot(steps[thin], np.cumsum(items)[thin], color=INK, linewidth=1.6, label="true count")
    heading(left, "1,000 events in 2^20 steps", "pure privacy, epsilon 1, one draw")
    dress(left, "step", "count so far")
    left.legend(frameon=False, fontsize=9)
    for place, (name, mark, color) in enumerate((("one running sum", "s--", INK), ("segments", "o-", SIGNAL))):
        for (length, (counts, *errors)), shade in zip(found.items(), (0.4, 0.7, 1.0), strict=True):
            label = f"{name}, {power(length)} steps"
            right.plot(counts, errors[1 - place], mark, color=color, alpha=shade, label=label)
    right.set_xscale("log")
    right.set_ylim(0.0, 460.0)
    heading(
        right, "Largest error over all steps", "measured, epsilon 1, pure privacy; with 10 events segments answer 0"
    )
    dress(right, "events in the whole stream", "largest error")
    right.legend(frameon=False, fontsize=8.5, ncols=2, loc="upper left")
    _save(figure, "events-sparse.png")


# The local model.


def _local() -> list[Row]:
    """The largest standard deviation of `x = 2 y/n - 1` times the root of the number of clients."""
    clients, w = 10**6, 1000
    survey = so.local.LocalSurvey(clients, intervals=w)
    rows, root = [], math.sqrt(clients)
    squares = np.cumsum(np.concatenate([[1.0], np.cumprod(1.0 - 0.5 / np.arange(1, w)) ** 2]))[-1]
    half = so.ApproxDP(epsilon=0.5, delta=5e-7)
    printed = 2.0 / half.epsilon * math.sqrt(4.0 / 9.0 + math.log(math.sqrt(2.0 / math.pi) / half.delta))
    root_factor = scipy.linalg.toeplitz(np.cumprod(np.concatenate([[1.0], 1.0 - 0.5 / np.arange(1, w)])), np.zeros(w))
    gram = np.tril(root_factor).T @ np.tril(root_factor)
    norms = np.diag(gram)
    exchange = math.sqrt(float((norms[:, None] + norms - 2.0 * gram).max()))
    paper = {
        "the paper, two counters, its constant": math.sqrt(2.0) * printed * squares,
        "the paper, two counters, exact Gaussian, its sensitivity": math.sqrt(2.0) / gaussian_mu(half) * squares,
        "two counters, exact Gaussian, norm of an exchange": math.sqrt(2.0 * squares) / gaussian_mu(half) * exchange,
    }
    best = so.plan(survey, _PRIVACY)
    name = f"local median, {clients:,} clients, grid 1/{w}, largest deviation times root n"
    ours = 2.0 * best.max_stderr * root
    rows += [
        Row(f"{name}, auto ({best.mechanism})", f"{ours:.4g}", f"{label}: {value:.4g}", ours / value)
        for label, value in paper.items()
    ]
    mechanisms = (
        "identity",
        "binary-tree",
        "output",
        "subset-selection",
        "blt",
        "square-root",
        "two-diagonals",
        "optimal",
    )
    for mechanism in mechanisms[: 4 if quick() else None]:
        other = 2.0 * so.plan(survey, _PRIVACY, mechanism=mechanism).max_stderr * root
        rows.append(Row(f"{name}, auto ({best.mechanism})", f"{ours:.4g}", f"{mechanism}: {other:.4g}", ours / other))
    pure = so.plan(survey, _PURE)
    ours = 2.0 * pure.max_stderr * root
    for mechanism in ("identity", "binary-tree", "output"):
        other = 2.0 * so.plan(survey, _PURE, mechanism=mechanism).max_stderr * root
        rows.append(
            Row(f"{name}, pure, auto ({pure.mechanism})", f"{ours:.4g}", f"{mechanism}: {other:.4g}", ours / other)
        )
    return [*rows, *_surveys()]


def _surveys() -> list[Row]:
    """Whole surveys: largest errors of distribution and risk, with the level and without."""
    clients, draws = 20_000 if quick() else 200_000, 2 if quick() else 5
    values = np.random.default_rng(8).beta(2.0, 5.0, clients)
    rows = []
    for privacy, mechanism in (
        *((_PRIVACY, name) for name in ("auto", "blt", "binary-tree", "identity")),
        *((_PURE, name) for name in ("auto", "subtraction-tree")),
    ):
        plan = so.plan(so.local.LocalSurvey(clients), privacy, mechanism=mechanism)
        grid = plan.fit.survey.grid
        truth = np.searchsorted(np.sort(values), grid, side="right") / clients
        points = np.concatenate([[0.0], grid])
        risk = np.array([np.abs(values - theta).mean() for theta in points])
        sup, risks, without, median = [], [], [], []
        for draw in range(draws):
            server = plan.server()
            for first in range(0, clients, 20_000):
                with deterministic_noise(_key("survey", mechanism, draw, first)):
                    server.add_many(plan.encode_clients(values[first : first + 20_000]))
            found = server.estimate()
            assert found.level is not None
            sup.append(np.abs(found.cdf - truth).max())
            risks.append(np.abs(found.risk - risk).max())
            without.append(np.abs(found.risk - found.level - risk).max())
            median.append(abs(found.median - float(np.median(values))))
        kind = "pure" if privacy is _PURE else "approximate"
        rows.append(
            Row(
                f"local survey of {clients:,} clients, {kind}, {mechanism} ({plan.mechanism}), mean of {draws} draws",
                f"distribution {np.mean(sup):.3g}, median {np.mean(median):.3g}, risk {np.mean(risks):.3g}",
                f"risk without E[d], as printed: {np.mean(without):.3g}",
                float(np.mean(risks) / np.mean(without)),
            )
        )
    return rows


# Cuts.


def _signs(n: int) -> NDArray[np.int8]:
    """Return the sides of all cuts, the last vertex always on the other one; shape (2^(n - 1) - 1, n)."""
    codes = np.arange(1, 2 ** (n - 1))
    return ((codes[:, None] >> np.arange(n)) & 1).astype(np.int8)


def _noise(n: int, privacy: so.PureDP | so.ApproxDP | so.GaussianDP, *key: object) -> tuple[Array, Any]:
    """Return the released weights of an empty graph as a symmetric matrix, and the plan."""
    plan = so.plan(so.Continual(so.events.WeightedGraph(n, 1), reads="dense"), privacy)
    with deterministic_noise(_key("cuts", n, *key)), _opened(plan) as stream:
        stream.update([], [], together=True)
        pairs = stream.read(np.arange(plan.fit.coordinates))
    matrix = np.zeros((n, n))
    matrix[np.triu_indices(n, 1)] = pairs
    return matrix + matrix.T, plan


def _cuts() -> list[Row]:
    """Errors over the bounds for cuts chosen afterwards, in draws; and the paper's corollary."""
    rows = []
    gaussian = so.GaussianDP(mu=0.25)
    for n in (8, 10) if quick() else (12, 14, 16):
        draws, sides = 20 if quick() else 100, _signs(n)
        sizes = sides.sum(axis=1)
        for privacy in (gaussian, _PURE):
            ratios = []
            for draw in range(draws):
                noise, plan = _noise(n, privacy, draw, repr(privacy))
                inside = sides.astype(float)
                errors = inside @ noise.sum(axis=1) - ((inside @ noise) * inside).sum(axis=1)
                widths = Widths.of(plan.fit, 1)
                bounds = np.array([widths.afterwards(k, n - k, _LEVEL) if 0 < k < n else np.inf for k in range(n + 1)])
                ratios.append(float((np.abs(errors) / bounds[sizes]).max()))
            held = float(np.mean(np.array(ratios) <= 1.0))
            rows.append(
                Row(
                    f"all {len(sides):,} cuts of {n} vertices, {draws} draws ({plan.mechanism})",
                    f"largest |error| over its bound: {max(ratios):.3f}, median of draws {np.median(ratios):.3f}; "
                    f"all bounds hold in {held:.0%}",
                    goal=f"{_LEVEL:.0%}",
                    met=held >= _LEVEL,
                )
            )
    for n in (100,) if quick() else (300, 1000):
        rows += _adversarial(n)
    return rows


def _adversarial(n: int) -> list[Row]:
    """Return errors over bounds of random pairs of sets, and of one vertex beside those with noise of one sign."""
    draws, worst, chosen, printed, example = 3 if quick() else 20, 0.0, [], [], (0.0, 0.0)
    rng = np.random.default_rng(n)
    for draw in range(draws):
        noise, plan = _noise(n, so.GaussianDP(mu=0.25), draw)
        widths, deviation = Widths.of(plan.fit, 1), float(plan.fit.std([1])[0])
        for _ in range(200):
            order, side = rng.permutation(n), int(rng.integers(1, n // 2))
            other = int(rng.integers(1, n - side + 1))
            error = noise[np.ix_(order[:side], order[side : side + other])].sum()
            worst = max(worst, abs(float(error)) / widths.afterwards(side, other, _LEVEL))
        sums = np.where(noise > 0.0, noise, 0.0).sum(axis=1)
        vertex = int(np.argmax(sums))
        size, error = int((noise[vertex] > 0.0).sum()), float(sums[vertex])
        # Corollary 1 at T = 1, with psi(1) = 1 and C the standard deviation of a pair.
        corollary = 3.0 * deviation * math.sqrt((1 + size) * math.log(1 + size) * math.log(6.0))
        chosen.append(error / widths.afterwards(1, size, _LEVEL))
        printed.append(error / corollary)
        example = error / deviation, corollary / deviation
    what = f"one vertex and those whose noise towards it is positive, {n:,} vertices, {draws} draws"
    return [
        Row(
            f"200 random pairs of sets of {n:,} vertices, {draws} draws",
            f"largest |error| over its bound: {worst:.3f}",
            goal="≤ 1",
            met=worst <= 1.0,
        ),
        Row(
            f"{what}, our bound",
            f"largest error over its bound: {max(chosen):.3f}",
            goal="≤ 1",
            met=max(chosen) <= 1.0,
        ),
        Row(
            f"{what}, Corollary 1 as printed",
            f"error over its bound: {min(printed):.3f} to {max(printed):.3f}; violated in "
            f"{np.mean(np.array(printed) > 1.0):.0%} of the draws, where it allows 33%",
            f"last draw, in standard deviations of a pair: error {example[0]:.0f}, corollary {example[1]:.0f}",
            max(printed),
        ),
    ]


# Flights between airports.


@cache
def _routes() -> tuple[tuple[str, ...], list[tuple[list[str], list[str], list[int]]]]:
    """Return the airports, and the routes of each day: origins, destinations, flights."""
    days: list[tuple[list[str], list[str], list[int]]] = [([], [], []) for _ in range(365)]
    with (_DATA / "nyc_routes_2013_daily.csv").open(newline="") as lines:
        for row in csv.DictReader(lines):
            origins, destinations, flights = days[int(row["day"]) - 1]
            origins.append(row["origin"])
            destinations.append(row["dest"])
            flights.append(int(row["flights"]))
    airports = sorted({name for u, v, _ in days for name in (*u, *v)})
    return tuple(airports), days


_ORIGINS = ("EWR", "JFK", "LGA")
_FLORIDA = ("FLL", "JAX", "MCO", "MIA", "PBI", "RSW", "SRQ", "TPA")
_MOST_FLIGHTS = 40


def _flights() -> list[Row]:
    """A year of flights, a step a day: one event is a route on a day with up to 40 flights."""
    airports, days = _routes()
    steps = 30 if quick() else len(days)
    workload = so.events.WeightedGraph(airports, steps, max_weight=float(_MOST_FLIGHTS))
    plan = so.plan(so.Continual(workload, reads="dense"), _PRIVACY, objective="max")
    cuts: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
        "Newark and all other airports": (("EWR",), tuple(a for a in airports if a != "EWR")),
        "New York's airports and Florida": (_ORIGINS, tuple(a for a in _FLORIDA if a in airports)),
    }
    truth, found = {name: np.zeros(steps) for name in cuts}, {name: np.zeros(steps) for name in cuts}
    bands: dict[str, tuple[Array, Array]] = {name: (np.zeros(steps), np.zeros(steps)) for name in cuts}
    totals = dict.fromkeys(cuts, 0.0)
    with deterministic_noise(_key("flights")), _opened(plan) as stream:
        for step, (u, v, flights) in enumerate(days[:steps]):
            stream.update(u, v, flights, together=True)
            for name, (side, other) in cuts.items():
                totals[name] += sum(
                    count
                    for a, b, count in zip(u, v, flights, strict=True)
                    if (a in side and b in other) or (b in side and a in other)
                )
                cut = stream.cut(side, other)
                truth[name][step], found[name][step] = totals[name], cut.value
                bands[name][0][step] = cut.value - float(cut.interval(_LEVEL).lower)
                bands[name][1][step] = cut.value - float(cut.interval_afterwards(_LEVEL, every_step=True).lower)
        graph = stream.graph()
        largest = graph.maximum_cut()
    if not quick():
        _draw_flights(truth, found, bands)
    rows = []
    for name in cuts:
        off = np.abs(found[name] - truth[name])
        single, every = bands[name]
        rows.append(
            Row(
                f"flights, {len(airports)} airports, {steps} days, cut of {name} ({plan.mechanism})",
                f"after the last day {found[name][-1]:,.0f} of {truth[name][-1]:,.0f}; largest error {off.max():,.0f}",
                f"95 %, this cut at one step ± {single[-1]:,.0f}, all cuts and steps ± {every[-1]:,.0f}",
                float((off / every).max()),
                "≤ 1",
                bool((off <= every).all()),
            )
        )
    away = set(airports) - set(largest.side)
    together = any(set(_ORIGINS) <= side for side in (set(largest.side), away))
    interval = largest.interval(_LEVEL)
    rows.append(
        Row(
            f"flights, {len(airports)} airports, {steps} days, the largest cut that is found in the released graph",
            f"{largest.cut.value:,.0f} flights, 95 % {interval.lower:,.0f} to {interval.upper:,.0f}; "
            f"New York's three airports on one side: {'yes' if together else 'no'}",
            f"true largest cut: all {sum(sum(f) for *_, f in days[:steps]):,} flights",
        )
    )
    return rows


def _draw_flights(truth: dict[str, Array], found: dict[str, Array], bands: dict[str, tuple[Array, Array]]) -> None:
    figure = new_figure(13.0, 7.4)
    panels = figure.subplots(2, 2, sharex=True)
    for (above, below), name in zip(panels.T, truth, strict=True):
        days = np.arange(1, len(truth[name]) + 1)
        single, every = bands[name]
        above.fill_between(days, found[name] - every, found[name] + every, color=PALE, linewidth=0)
        above.plot(days, found[name], color=ACCENT, linewidth=1.6, label="private")
        above.plot(days, truth[name], color=INK, linewidth=1.2, linestyle=(0, (4, 3)), label="true")
        heading(above, name, "flights so far; epsilon 1, delta 1e-6 for a route's flights of a day")
        dress(above, "", "flights")
        above.legend(frameon=False, fontsize=9, loc="upper left")
        below.fill_between(days, -every, every, color=PALE, linewidth=0, label="95 %, all cuts and all steps")
        below.fill_between(
            days, -single, single, color=MUTED, alpha=0.45, linewidth=0, label="95 %, this cut, one step"
        )
        below.plot(days, found[name] - truth[name], color=SIGNAL, linewidth=1.4, label="private minus true")
        below.axhline(0.0, color=INK, linewidth=0.8)
        dress(below, "day of 2013", "error in flights")
        below.set_ylim(-1.75 * float(every.max()), 1.1 * float(every.max()))
        below.legend(frameon=False, fontsize=9, loc="lower left", ncols=2)
    _save(figure, "events-flights.png")


# Words of a book.

_BLOCK = 64


def _text() -> Integers:
    return letters()[: 4096 if quick() else None]


def _exact(counter: Substrings | Episodes, text: Integers) -> dict[tuple[int, ...], int]:
    for letter in text.tolist():
        counter.follow(letter)
    return counter.counts


def _words_plan(steps: int, epsilon: float) -> so.StreamPlan:
    workload = so.events.SubstringCounts("abcdefghijklmnopqrstuvwxyz ", 4, steps, batches=True)
    return so.plan(so.Continual(workload, reads="lazy"), so.ApproxDP(epsilon=epsilon, delta=1e-6), unit=so.ReplaceOne())


def _book(epsilon: float, draw: int) -> so.events.WordStream:
    """Return a stream that has read the book, 64 letters a step."""
    text = _text()
    plan = _words_plan(-(-len(text) // _BLOCK), epsilon)
    with deterministic_noise(_key("book", epsilon, draw)):
        stream = _opened(plan)
    for first in range(0, len(text), _BLOCK):
        stream.update(text[first : first + _BLOCK], together=True)
    found: so.events.WordStream = stream
    return found


def _substrings() -> list[Row]:
    """Frequent words of up to four letters, at several epsilons."""
    alphabet = "abcdefghijklmnopqrstuvwxyz "
    exact = {"".join(alphabet[i] for i in word): c for word, c in _exact(Substrings(27, 4), _text()).items()}
    threshold = 200 if quick() else 1000
    frequent = {word for word, count in exact.items() if count >= threshold}
    epsilons = (1.0, 4.0) if quick() else (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
    draws = 1 if quick() else 5
    rows, recalls, precisions = [], [], []
    shown: list[tuple[str, float]] = []
    width = 0.0
    for epsilon in epsilons:
        recall, precision = [], []
        for draw in range(draws):
            stream = _book(epsilon, draw)
            hitters = stream.heavy_hitters(float(threshold))
            words = {hitter.word for hitter in hitters}
            recall.append(len(words & frequent) / len(frequent))
            precision.append(len(words & frequent) / max(len(words), 1))
            if epsilon == 1.0 and draw == 0:
                shown = [(hitter.word, hitter.count) for hitter in hitters if len(hitter.word) >= 2]
                width = stream.half_width(_LEVEL)
                off = np.array([abs(hitter.count - exact.get(hitter.word, 0)) for hitter in hitters])
                rows.append(
                    Row(
                        f"Alice, words of up to 4 letters, {stream.step:,} steps of {_BLOCK} letters, epsilon 1 "
                        f"({stream.fit.name})",
                        f"standard error {stream.stderr:.4g}; {len(hitters)} words above {threshold}, "
                        f"largest error {off.max():.4g}",
                        f"95 % for all words together: ± {width:.4g}",
                        float(off.max() / width),
                        "≤ 1",
                        bool(off.max() <= width),
                    )
                )
        recalls.append(float(np.mean(recall)))
        precisions.append(float(np.mean(precision)))
        rows.append(
            Row(
                f"Alice, words that occur {threshold} times or more, epsilon {epsilon:g}, {draws} draws",
                f"recall {recalls[-1]:.3f}, precision {precisions[-1]:.3f}",
                f"there are {len(frequent)}; standard error {stream.stderr:.4g}",
            )
        )
    if not quick():
        _draw_words(shown, exact, width, (epsilons, recalls, precisions), threshold)
    return rows


def _bars(axes: Axes, shown: list[tuple[str, float, float]], width: float) -> None:
    """Draw noisy and true counts, the most frequent on top."""
    places = np.arange(len(shown))[::-1]
    axes.barh(places, [noisy for _, noisy, _ in shown], color=PALE, height=0.72, label="private count")
    axes.errorbar(
        [noisy for _, noisy, _ in shown],
        places,
        xerr=width,
        fmt="none",
        ecolor=ACCENT,
        elinewidth=1.4,
        capsize=2.5,
        label="95 %, all together",
    )
    axes.plot([true for *_, true in shown], places, "o", color=SIGNAL, markersize=4, label="true count")
    axes.set_yticks(places, [word for word, *_ in shown])
    axes.set_ylim(-0.7, len(shown) - 0.3)


def _draw_words(
    shown: list[tuple[str, float]],
    exact: dict[str, int],
    width: float,
    curves: tuple[tuple[float, ...], list[float], list[float]],
    threshold: int,
) -> None:
    figure = new_figure(13.0, 6.2)
    left, right = figure.subplots(1, 2)
    top = [(word.replace(" ", "␣"), count, float(exact.get(word, 0))) for word, count in shown[:24]]
    _bars(left, top, width)
    heading(left, "Alice: frequent words of 2 to 4 letters", "␣ is a gap; epsilon 1, delta 1e-6, one letter replaced")
    dress(left, "count after the last step", "")
    left.set_yticks(np.arange(len(top))[::-1], [word for word, *_ in top], family="DejaVu Sans Mono", fontsize=9)
    left.legend(frameon=False, fontsize=9, loc="lower right")
    epsilons, recalls, precisions = curves
    right.plot(epsilons, recalls, "o-", color=ACCENT, label="recall: found of the frequent")
    right.plot(epsilons, precisions, "s--", color=SIGNAL, label="precision: frequent of the found")
    right.set_xscale("log")
    right.set_xticks(epsilons, [f"{e:g}" for e in epsilons])
    right.minorticks_off()
    right.set_ylim(0.0, 1.05)
    heading(right, f"Words that occur {threshold:,} times or more", "mean of 5 draws")
    dress(right, "epsilon", "share")
    right.set_xticks(epsilons, [f"{e:g}" for e in epsilons])
    right.legend(frameon=False, fontsize=9, loc="lower right")
    _save(figure, "events-words.png")


# Patterns of events in a book.

_EVENTS = ("short word", "long word", "pause", "end of sentence", "quotation mark")


@cache
def _log() -> Integers:
    """Return the book as events: words of 1 to 3 letters, longer ones, `,;:`, `.!?`, and marks of speech."""
    found: list[int] = []
    word = 0
    text = (_DATA / "alice.txt").read_text()
    for sign, after in zip(text, f"{text[1:]} ", strict=True):
        if sign.isalpha() or (sign == "'" and word and after.isalpha()):
            word += sign.isalpha()
            continue
        if word:
            found.append(0 if word <= 3 else 1)
            word = 0
        place = next((i for i, signs in enumerate((",;:", ".!?", "\"`'")) if sign in signs), None)
        if place is not None:
            found.append(place + 2)
    return np.array(found[: 2000 if quick() else None], dtype=np.int64)


def _episodes() -> list[Row]:
    """Episodes of up to three events, an event a step."""
    log = _log()
    workload = so.events.EpisodeCounts(5, 3, len(log))
    plan = so.plan(so.Continual(workload, reads="lazy"), _PRIVACY, unit=so.ReplaceOne())
    exact = _exact(Episodes(5, 3), log)
    with deterministic_noise(_key("episodes")):
        stream = _opened(plan)
    marks = np.unique(np.linspace(0, len(log), 61).astype(int))[1:]
    followed = ((0, 1, 1), (2, 0, 2))
    counter, noisy, true = Episodes(5, 3), [], []
    start = 0
    for end in marks.tolist():
        stream.update(log[start:end])
        for event in log[start:end].tolist():
            counter.follow(event)
        noisy.append(stream.count(followed))
        true.append([counter.counts[word] for word in followed])
        start = end
    values, width = stream.read(np.arange(plan.fit.coordinates)), stream.half_width(_LEVEL)
    words: list[Any] = [workload.word(i) for i in range(plan.fit.coordinates)]
    truth = np.array([exact.get(word, 0) for word in words])
    off = np.abs(values - truth)
    if not quick():
        _draw_episodes(
            workload, values, truth, width, (marks, np.array(noisy), np.array(true), plan.fit.std(marks), followed)
        )
    counts = ", ".join(f"{name} {int((log == i).sum()):,}" for i, name in enumerate(_EVENTS))
    return [
        Row(
            f"Alice as {len(log):,} events ({counts}), {plan.fit.coordinates} episodes of up to 3 ({plan.mechanism})",
            f"standard error {stream.stderr:.4g}, largest error {off.max():.4g}; largest count {truth.max():,}",
            f"95 % for all together: ± {width:.4g}",
            float(off.max() / width),
            "≤ 1",
            bool(off.max() <= width),
        )
    ]


def _draw_episodes(
    workload: so.events.EpisodeCounts,
    values: Array,
    truth: Integers,
    width: float,
    curves: tuple[Integers, Array, Array, Array, tuple[tuple[int, ...], ...]],
) -> None:
    figure = new_figure(14.5, 6.4)
    left, right = figure.subplots(1, 2)

    def named(word: tuple[int, ...]) -> str:
        return ", ".join(_EVENTS[i] for i in word)

    words: list[tuple[int, ...]] = [workload.word(i) for i in range(len(values))]  # type: ignore[misc]
    order = [i for i in np.argsort(-values).tolist() if len(words[i]) == 3][:20]
    _bars(left, [(named(words[i]), float(values[i]), float(truth[i])) for i in order], width)
    heading(left, "Alice as a log of events: frequent episodes of three", "epsilon 1, delta 1e-6, one event replaced")
    dress(left, "minimal occurrences after the last event", "")
    left.set_yticks(np.arange(len(order))[::-1], [named(words[i]) for i in order], fontsize=8.5)
    left.legend(frameon=False, fontsize=9, loc="lower right")
    marks, noisy, true, deviation, followed = curves
    for column, (word, color) in enumerate(zip(followed, (ACCENT, SIGNAL), strict=True)):
        right.fill_between(
            marks,
            noisy[:, column] - 1.96 * deviation,
            noisy[:, column] + 1.96 * deviation,
            color=color,
            alpha=0.15,
            lw=0,
        )
        right.plot(marks, noisy[:, column], color=color, linewidth=1.6, label=f"private: {named(word)}")
        right.plot(marks, true[:, column], color=INK, linewidth=1.1, linestyle=(0, (4, 3)))
    right.plot([], [], color=INK, linewidth=1.1, linestyle=(0, (4, 3)), label="true")
    heading(right, "Two episodes as the book goes on", "band: 95 % for one count at one step")
    dress(right, "event", "minimal occurrences so far")
    right.legend(frameon=False, fontsize=9, loc="upper left")
    _save(figure, "events-episodes.png")


def _quietly(section: Callable[[], list[Row]]) -> Callable[[], list[Row]]:
    def run() -> list[Row]:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "deterministic noise")
            return section()

    return run


_SECTIONS = {
    "planned": _planned,
    "sensitivities": _sensitivities,
    "measured": _quietly(_measured),
    "sparse": _quietly(_sparse),
    "local": _quietly(_local),
    "cuts": _quietly(_cuts),
    "flights": _quietly(_flights),
    "substrings": _quietly(_substrings),
    "episodes": _quietly(_episodes),
}


def figures() -> list[Row]:
    """Return all rows; write the pictures unless the run is short."""
    return [row for section in _SECTIONS for row in in_process(__file__, section, threads=1)]


if __name__ == "__main__":
    main(_SECTIONS, figures)
