"""The registry: every plan of every family, what spends its budget, what it opens, what is written to files.

One line a family and mechanism, over the public API alone. `test_registry.py` holds that none is missing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import sordino as so

PURE = so.PureDP(epsilon=1.0)
APPROX = so.ApproxDP(epsilon=1.0, delta=1e-6)
LOUD = so.GaussianDP(mu=1e6)
"""So little noise that rounding shows the truth."""
LOUD_PURE = so.PureDP(epsilon=1e6)
KEY = bytes(range(32))


def plenty(event: Any, store: so.Store | None = None) -> so.Ledger:
    """Return a ledger with room for the event once, and not twice; in a store, if one is given."""
    return so.Ledger(*room(event)[:1], **room(event)[1], store=store)


def room(event: Any) -> tuple[so.PureDP | so.ApproxDP | so.GaussianDP, dict[str, Any]]:
    """Return the total of such a ledger, and how it composes."""
    if isinstance(event, so.privacy.ApproxCost):
        return so.ApproxDP(epsilon=1.5 * event.epsilon, delta=1.5 * event.delta), {"composition": "basic"}
    if isinstance(event, so.privacy.PureCost):
        return so.PureDP(epsilon=1.5 * event.epsilon), {}
    return so.GaussianDP(mu=1.2 * event.mu), {}


# Tables: a workload, data of it, and what else the plan is asked for.

COUNTS = np.array([5, 0, 3, 9, 1, 7, 2, 4])
RECORDS = np.array([[0, 1, 1], [1, 0, 1], [1, 2, 0], [0, 0, 0], [1, 1, 1]])
TABLES: dict[str, tuple[so.workloads.Workload, Any]] = {
    "histogram": (so.Histogram(8), COUNTS),
    "grid": (so.Histogram((2, 4)), COUNTS.reshape(2, 4)),
    "sums": (so.RunningSum(8), COUNTS),
    "window": (so.MovingAverage(3, 8), COUNTS),
    "ring": (so.MovingAverage(3, 8, boundary="circular"), COUNTS),
    "whole windows": (so.MovingAverage(3, 8, boundary="valid"), COUNTS),
    "same": (so.Convolution([0.2, 0.5, 0.3, 0.0], 8, "same"), COUNTS),
    "smoothing": (so.ExponentialSmoothing(0.8, 8), COUNTS),
    "decay": (so.workloads.PolynomialDecay(1.5, 8), COUNTS),
    "band": (so.workloads.BandPass(0.1, 0.3, 8), COUNTS),
    "difference": (so.workloads.Difference(8, order=2), COUNTS),
    "group": (so.workloads.GroupConvolution(np.arange(8.0).reshape(2, 4)), COUNTS.reshape(2, 4)),
    "bits": (so.workloads.GroupConvolution(np.arange(8.0).reshape(2, 2, 2)), COUNTS.reshape(2, 2, 2)),
    "marginals": (so.Marginals([2, 3, 2], k=2), RECORDS),
    "marginal queries": (
        so.workloads.MarginalQueries([so.Histogram(2), so.AllRanges(3), so.RunningSum(2)], k=2),
        RECORDS,
    ),
    "ranges": (so.AllRanges(8), COUNTS),
    "intervals": (so.workloads.Intervals([0, 2, 2], [7, 3, 6], 8, weights=[1.0, 2.0, 1.0]), COUNTS),
    "groups": (so.GroupBy([[0] * 8, [0, 0, 0, 1, 1, 2, 2, -1], list(range(8))], weights=[2.0, 1.0, 1.0]), COUNTS),
    "crossing groups": (so.GroupBy([[0, 0, 0, 0, 1, 1, 1, 1], [0, 1] * 4]), COUNTS),
    "matrix": (so.Matrix([[1, 1, 0, 0, 0, 0, 0, 0], [0, 0.5, 1, 0, 0, 2, 0, 1], [1] * 8]), COUNTS),
    "union": (so.Histogram(8) | so.RunningSum(8), COUNTS),
    "filters": (
        2.0 * so.MovingAverage(3, 8) | so.MovingAverage(5, 8, boundary="valid") | so.Histogram(8),
        COUNTS,
    ),
    # More cells than are searched for at once: every block alike.
    "long filter": (so.workloads.ExponentialSmoothing(0.95, 768, boundary="circular"), np.arange(768) * 7 % 10),
    "product": (so.Kronecker([so.RunningSum(4), so.Histogram(2)]), COUNTS.reshape(4, 2)),
    "flat product": (so.Kronecker([so.RunningSum(4), so.AllRanges(2)], flat=True), COUNTS),
    "filtered product": (so.Kronecker([so.MovingAverage(2, 4), so.Histogram(2)]), COUNTS.reshape(4, 2)),
    # Cells that no interval tells apart, along one axis.
    "merged product": (
        so.Kronecker([so.workloads.Intervals([0, 2, 2], [7, 3, 5], 8), so.RunningSum(2)]),
        (np.arange(16) * 7 % 10).reshape(8, 2),
    ),
    # Cells that no part tells apart, of a line and along an axis.
    "merged union": (
        so.workloads.Intervals([0, 2], [7, 3], 8) | 2.0 * so.GroupBy([[0, 0, 1, 1, 1, 1, -1, -1]]),
        COUNTS,
    ),
    "merged parts": (
        so.Kronecker([so.workloads.Intervals([0, 2], [7, 3], 8), so.Histogram(2)])
        | 2.0 * so.Kronecker([so.GroupBy([[0] * 8]), so.RunningSum(2)]),
        (np.arange(16) * 7 % 10).reshape(8, 2),
    ),
    # An axis that is too long to be searched along, beside a matrix.
    "mixed product": (
        so.Kronecker([so.Matrix([[1.0, 0.5], [0.0, 1.0]]), so.RunningSum(1025)]),
        (np.arange(2050) * 7 % 10).reshape(2, 1025),
    ),
    # More cells than are searched for at once: along each axis.
    "long product": (
        so.Kronecker([so.RunningSum(48), so.AllRanges(2), so.GroupBy([[0] * 3])]),
        (np.arange(288) * 7 % 10).reshape(48, 2, 3),
    ),
    "long parts": (
        2.0 * so.Kronecker([so.RunningSum(48), so.GroupBy([[0] * 6])])
        | so.Kronecker([so.GroupBy([[0] * 48]), so.AllRanges(6)])
        | so.Histogram((48, 6)),
        (np.arange(288) * 7 % 10).reshape(48, 6),
    ),
    "parts": (
        2.0 * so.Kronecker([so.RunningSum(4), so.GroupBy([[0, 0]])])
        | so.Kronecker([so.GroupBy([[0] * 4]), so.AllRanges(2)]),
        COUNTS.reshape(4, 2),
    ),
    "sorted": (so.SortedHistogram(8), np.sort(COUNTS)),
}
SKETCH = so.sketches.Compression(measurements=6, sparsity=2)
# Mechanisms that look, which are asked for by name alone.
LOOKING: tuple[tuple[str, str, so.PureDP | so.ApproxDP], ...] = (
    ("ranges", "path-budget-tree-laplace", PURE),
    ("sums", "path-budget-tree-gaussian", APPROX),
    ("grid", "path-budget-tree-laplace", PURE),
    ("product", "full-tree-laplace", APPROX),
    ("marginals", "adaptive-marginals-laplace", PURE),
    ("marginals", "adaptive-marginals-gaussian", APPROX),
)
ASKED: dict[str, dict[str, Any]] = {
    "plain": {},
    "bound": {"constraint": so.optimal.PublicBound(40.0)},
    "signed bound": {"constraint": so.optimal.SignedBound(40.0)},
    "total": {"constraint": so.optimal.PublicTotal(31), "unit": so.ReplaceOne(1)},
    "sketch": {"compression": SKETCH},
    "several": {"unit": so.AddRemove(6, per_cell=1, one_signed=True)},
}


@functools.cache
def table_plan(table: str, privacy: so.PureDP | so.ApproxDP, mechanism: str, asked: str) -> so.Plan:
    return so.plan(TABLES[table][0], privacy, mechanism=mechanism, **ASKED[asked])


@functools.cache
def table_mechanisms() -> tuple[tuple[str, so.PureDP | so.ApproxDP, str, str], ...]:
    """Return every mechanism of every table, and those that need something on the table that is first in line."""
    found = []
    for table, (workload, _) in TABLES.items():
        for privacy in (PURE, APPROX):
            rows = {row["mechanism"] for row in so.compare(workload, privacy).rows}
            if isinstance(privacy, so.ApproxDP) and isinstance(workload, so.RunningSum):
                rows.add("fourier-composed")  # by name alone
            found += [(table, privacy, name, "plain") for name in sorted(rows)]
            needs = {"histogram": ("several",)} | dict.fromkeys(
                ("sums", "matrix"), ("bound", "signed bound", "total", "sketch")
            )
            for asked in needs.get(table, ()):
                more = {row["mechanism"] for row in so.compare(workload, privacy, **ASKED[asked]).rows}
                found += [(table, privacy, name, asked) for name in sorted(more - rows)]
    return tuple(found)


# Streams of filters: every mechanism that serves one.

FILTERS: dict[str, so.workloads.Workload] = {
    "sums": so.RunningSum(24),
    "averages": so.RunningAverage(24),
    "windows": so.SlidingWindow(5, 24),
    "moving averages": so.MovingAverage(5, 24),
    "smoothing": so.ExponentialSmoothing(0.8, 24),
    "decay": so.workloads.PolynomialDecay(1.5, 24),
    "kernel": so.Convolution([0.5, 0.3, 0.2], 24, "causal"),
}


@functools.cache
def filter_streams() -> tuple[tuple[str, so.PureDP | so.ApproxDP, str], ...]:
    """Return every mechanism of every filter."""
    found = []
    for name, workload in FILTERS.items():
        for privacy in (PURE, APPROX):
            try:
                rows = so.compare(so.Continual(workload), privacy).rows
            except so.errors.UnsupportedMechanismError:
                continue
            found += [(name, privacy, row["mechanism"]) for row in rows]
    return tuple(found)


@functools.cache
def filter_plan(name: str, privacy: so.PureDP | so.ApproxDP, mechanism: str) -> Any:
    return so.plan(so.Continual(FILTERS[name]), privacy, mechanism=mechanism)


# What is released once.


@dataclass(frozen=True)
class Spender:
    """A plan, and the one call that spends its budget.

    Attributes:
        name: Of the family and what is special.
        make: Returns the plan.
        spend: Calls with (plan, data, ledger, request_id); what it returns is public, or an open stream.
        data: Handed over.
        hostile: Other data, which are refused.
        named: Whether it takes a request id.
        answered: Whether a repeated request is answered from the ledger; else it is refused.
    """

    name: str
    make: Callable[[], Any]
    spend: Callable[[Any, Any, so.Ledger | None, str | None], Any]
    data: Any = None
    hostile: tuple[Any, ...] = ()
    named: bool = True
    answered: bool = True

    @functools.cached_property
    def plan(self) -> Any:
        return self.make()


def _released(plan: Any, data: Any, ledger: so.Ledger | None, request_id: str | None) -> Any:
    return plan.release(data, ledger=ledger, request_id=request_id)


def _opened(plan: Any, _data: Any, ledger: so.Ledger | None, request_id: str | None) -> Any:
    return plan.open(ledger, request_id=request_id)


POINTS = np.array([[-0.5], [0.0], [0.25], [0.9]])
SMOOTH = so.smooth.SmoothQueries(1, points=4, bounds=(-1.0, 1.0), query_class=so.smooth.GaussianKernels(0.5))
SURVEY = so.local.LocalSurvey(100, (0.0, 1.0), intervals=4)
# Reports of every kind.
LOCAL_MECHANISMS = ("waves", "subset-selection", "identity-laplace", "blt")
KEYS = so.sketches.KeyCounts(2**40, 32, nonzeros=4)
SOME_KEYS = 2**39 + np.arange(30) % 7
BAD_TABLES = (None, "text", [1, 2], np.full(8, np.nan), np.full(8, 1j), object(), [[1] * 8, [2]])

RELEASES = [
    Spender("table", lambda: so.plan(so.RunningSum(8), PURE), _released, COUNTS, BAD_TABLES),
    Spender("table, Gaussian", lambda: so.plan(so.Histogram(8), APPROX), _released, COUNTS, BAD_TABLES),
    Spender("searched", lambda: so.plan(TABLES["matrix"][0], APPROX), _released, COUNTS, BAD_TABLES),
    Spender(
        "projected",
        lambda: so.plan(so.RunningSum(8), APPROX, constraint=so.optimal.PublicBound(40.0)),
        _released,
        COUNTS,
        BAD_TABLES,
    ),
    Spender("composed", lambda: so.plan(so.RunningSum(8), APPROX, mechanism="fourier-composed"), _released, COUNTS),
    Spender("marginals", lambda: so.plan(so.Marginals([2, 3, 2], k=2), APPROX), _released, RECORDS, (None, "text")),
    Spender(
        "compressive",
        lambda: so.plan(so.Histogram(8), PURE, mechanism="compressive", compression=SKETCH),
        _released,
        COUNTS,
        BAD_TABLES,
    ),
    Spender(
        "chosen sparsity",
        lambda: so.plan(
            so.Histogram(16),
            PURE,
            mechanism="compressive",
            compression=so.sketches.Compression(measurements=12, sparsity=so.sketches.ChosenSparsity()),
        ),
        _released,
        np.arange(16),
        (None, [1]),
    ),
    Spender("threshold", lambda: so.plan(so.Histogram(8), PURE, mechanism="threshold"), _released, COUNTS, BAD_TABLES),
    Spender(
        "isotonic",
        lambda: so.plan(so.SortedHistogram(8), PURE, mechanism="isotonic"),
        _released,
        np.sort(COUNTS),
        BAD_TABLES,
    ),
    *(
        Spender(
            f"{mechanism} of a {table}",
            lambda table=table, mechanism=mechanism, privacy=privacy: so.plan(
                TABLES[table][0], privacy, mechanism=mechanism
            ),
            _released,
            TABLES[table][1],
            (None, "text") if table.startswith("marginal") else BAD_TABLES,
        )
        for table, mechanism, privacy in LOOKING
    ),
    Spender("smooth", lambda: so.plan(SMOOTH, APPROX, unit=so.ReplaceOne(1)), _released, POINTS, (None, [[1, 2]])),
    Spender("smooth, pure", lambda: so.plan(SMOOTH, PURE), _released, POINTS, (None, [[1, 2]])),
    Spender("keys", lambda: so.plan(KEYS, PURE), _released, SOME_KEYS, (None, "text")),
    Spender("keys, Gaussian", lambda: so.plan(KEYS, APPROX, noise="gaussian"), _released, SOME_KEYS, (None, "text")),
    *(
        Spender(
            f"local, {mechanism}",
            lambda mechanism=mechanism: so.plan(SURVEY, APPROX, mechanism=mechanism),
            lambda plan, data, ledger, _: plan.encode_clients(data, ledger=ledger),
            np.array([0.2, 0.7]),
            ("text", [[0.1]]),
            named=False,
        )
        for mechanism in LOCAL_MECHANISMS
    ),
    Spender(
        "local, one client",
        lambda: so.plan(SURVEY, APPROX),
        lambda plan, data, ledger, _: plan.encode_client(data, ledger=ledger),
        0.3,
        ("text", [0.1]),
        named=False,
    ),
    Spender(
        "whole stream",
        lambda: so.plan(so.Continual(so.RunningSum(8)), APPROX),
        _released,
        COUNTS,
        (None, "text", np.arange(9), np.zeros((2, 2, 2))),
    ),
]


# What is opened, and fed.


@dataclass(frozen=True)
class Open:
    """A stream of a plan.

    Attributes:
        name: Of the family and what is special.
        workload: What is planned.
        update: Feeds the same private step, or steps, every time.
        total: Returns a number that grows by `grows` with each update, but for noise.
        grows: By how much.
        options: Of `plan`.
        pure: Whether it is planned for `PureDP`.
        stored: Whether it can have a step store.
        steps: Of an update.
    """

    name: str
    workload: Any
    update: Callable[[Any], Any]
    total: Callable[[Any], float]
    grows: float
    options: dict[str, Any] = field(default_factory=dict)
    pure: bool = False
    stored: bool = True
    steps: int = 2

    def make(self, privacy: Any = None) -> Any:
        asked = privacy if privacy is not None else (PURE if self.pure else APPROX)
        return so.plan(self.workload, asked, **self.options)

    @functools.cached_property
    def plan(self) -> Any:
        return self.make()

    @functools.cached_property
    def loud(self) -> Any:
        return self.make(LOUD_PURE if self.pure else LOUD)


def _value(stream: Any) -> float:
    return float(np.sum(stream.value))


def _weight(stream: Any) -> float:
    return float(np.sum(stream.weights([0], [1])))


def _words(stream: Any) -> float:
    return float(stream.count(["a"])[0])


def _table(stream: Any) -> float:
    return float(stream.noisy().sum())


STREAMS = [
    Open("running sum", so.Continual(so.RunningSum(64)), lambda s: s.update([3, 4]), _value, 7),
    Open("one number", so.Continual(so.RunningSum(64)), lambda s: s.update(3), _value, 3, steps=1),
    Open("pure", so.Continual(so.RunningSum(64)), lambda s: s.update([3, 4]), _value, 7, pure=True),
    Open("several", so.Continual(so.RunningSum(64), dim=2), lambda s: s.update([[1, 2], [3, 4]]), _value, 10),
    Open(
        "real",
        so.Continual(so.RunningSum(64)),
        lambda s: s.update([0.5, 1.5]),
        _value,
        2,
        {"integral": False, "max_value": 9},
    ),
    Open("unbounded", so.Continual(so.RunningSum()), lambda s: s.update([3, 4]), _value, 7),
    Open(
        "vectors",
        so.Continual(so.RunningSum(64), dim=2, record_norm=5.0),
        lambda s: s.update([[1.0, 2.0], [3.0, 4.0]]),
        _value,
        10,
        {"unit": so.UserLevel(max_participations=4, min_separation=10)},
    ),
    Open(
        "rare",
        so.events.RareCount(64, 64),
        lambda s: s.update([3, 3]),
        _value,
        6,
        {"mechanism": "above"},
        pure=True,
        stored=False,
    ),
    Open(
        "rare, plain",
        so.events.RareCount(64, 64),
        lambda s: s.update([3, 3]),
        _value,
        6,
        {"mechanism": "binary-tree"},
        stored=False,
    ),
    Open("histogram", so.RunningHistogram(4, 64), lambda s: s.update([2]), _table, 1, steps=1),
    Open(
        "items",
        so.RunningHistogram(64, 64, once=True),
        lambda s: s.update(2),
        _table,
        2,
        {"mechanism": "per-item"},
        steps=1,
    ),
    Open(
        "sketched histogram",
        so.RunningHistogram(16, 64),
        lambda s: s.update([2]),
        lambda s: float(np.sum(s.sums)),
        0,
        {"compression": SKETCH},
        steps=1,
    ),
    Open(
        "pan-private",
        so.Continual(so.RunningHistogram(4, 64), pan_private=True),
        lambda s: s.update([2]),
        _table,
        1,
        {},
        stored=False,
        steps=1,
    ),
    Open("edges", so.events.EdgeCount(200, 64), lambda s: s.update(*edges(s)), _value, 2),
    Open(
        "triangles",
        so.events.TriangleCount(200, 64, max_degree=6),
        lambda s: s.update(*triangle(s)),
        _value,
        1,
        steps=3,
    ),
    Open("stars", so.events.StarCount(2, 200, 64, max_degree=6), lambda s: s.update(*star(s)), _value, 1),
    Open(
        "degrees",
        so.events.DegreeHistogram(200, 64, max_degree=6),
        lambda s: s.update(*edges(s)),
        lambda s: -s.value[0],
        4,
    ),
    Open(
        "forest", so.events.SpanningForestCost(200, 64, max_weight=5), lambda s: s.update(*edges(s), [2, 2]), _value, 4
    ),
    Open(
        "graph",
        so.Continual(so.events.WeightedGraph(4, 64, max_weight=1.0), reads="dense"),
        lambda s: s.update([0, 0], [1, 1]),
        _weight,
        2,
        {},
    ),
    Open(
        "lazy graph",
        so.Continual(so.events.WeightedGraph(4, 64, max_weight=1.0), reads="lazy"),
        lambda s: s.update([0, 0], [1, 1]),
        _weight,
        2,
        {},
        stored=False,
    ),
    Open(
        "words",
        so.Continual(so.events.SubstringCounts("ab", 2, 64), reads="dense"),
        lambda s: s.update("ab"),
        _words,
        1,
        {},
    ),
    Open(
        "lazy words",
        so.Continual(so.events.SubstringCounts("ab", 2, 64), reads="lazy"),
        lambda s: s.update("ab"),
        _words,
        1,
        {},
        stored=False,
    ),
    Open(
        "episodes",
        so.Continual(so.events.EpisodeCounts("ab", 2, 64), reads="dense"),
        lambda s: s.update("ab"),
        _words,
        1,
        {},
    ),
]


def edges(stream: Any) -> tuple[list[int], list[int]]:
    """Return two edges that the stream has not seen, of vertices of their own."""
    first = 2 * stream.step
    return [first, first + 2], [first + 1, first + 3]


def star(stream: Any) -> tuple[list[int], list[int]]:
    """Return two edges that meet, of vertices that the stream has not seen."""
    first = 2 * stream.step
    return [first, first], [first + 1, first + 2]


def triangle(stream: Any) -> tuple[list[int], list[int]]:
    """Return the three edges of a triangle that the stream has not seen."""
    first = stream.step
    return [first, first + 1, first], [first + 1, first + 2, first + 2]


SPENDERS = RELEASES + [Spender(f"open {case.name}", case.make, _opened, answered=False) for case in STREAMS]


@functools.cache
def smooth_plan() -> so.ReleasePlan:
    return so.plan(SMOOTH, APPROX)


def _sketch() -> so.sketches.Sketch:
    sketch = so.sketches.Sketch(16, 4)
    sketch.update([1, 2, 3], [5, 6, 7])
    return sketch


# What is written to files: how it is made, and read again.


def file_of(name, folder):
    """Return where a kind of file is written: releases say their format by their name."""
    return folder / ("file.arrow" if name == "release" else "file")


FILES: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "plan": (lambda: so.plan(so.RunningSum(8), APPROX), so.Plan.load),
    "plan with arrays": (lambda: so.plan(so.Matrix(np.tri(40)), APPROX, mechanism="optimal"), so.Plan.load),
    "compressive plan": (lambda: RELEASES[6].plan, so.Plan.load),
    "stream plan": (lambda: so.plan(so.Continual(so.RunningSum(9)), APPROX), so.StreamPlan.load),
    "event plan": (lambda: so.plan(so.events.EdgeCount(4, 9), APPROX), so.StreamPlan.load),
    "smooth plan": (smooth_plan, so.ReleasePlan.load),
    "smooth release": (lambda: smooth_plan().release(POINTS), so.smooth.SmoothRelease.load),
    "release": (lambda: so.plan(so.Histogram(8), APPROX).release(np.ones(8, dtype=int)), so.Release.load),
    "tree plan": (lambda: so.plan(so.AllRanges(8), PURE, mechanism="path-budget-tree"), so.ReleasePlan.load),
    "tree release": (
        lambda: so.plan(so.AllRanges(8), PURE, mechanism="path-budget-tree").release(COUNTS),
        so.adaptive.TreeRelease.load,
    ),
    "marginals release": (
        lambda: so.plan(so.Marginals([2, 3, 2], k=2), APPROX, mechanism="adaptive-marginals").release(RECORDS),
        so.adaptive.MarginalsRelease.load,
    ),
    "key plan": (lambda: so.plan(KEYS, APPROX), so.ReleasePlan.load),
    "key release": (lambda: so.plan(KEYS, APPROX).release(SOME_KEYS), so.sketches.KeyRelease.load),
    **{
        f"local plan, {mechanism}": (
            lambda mechanism=mechanism: so.plan(SURVEY, APPROX, mechanism=mechanism),
            so.SurveyPlan.load,
        )
        for mechanism in LOCAL_MECHANISMS
    },
    "sketch": (_sketch, so.sketches.Sketch.load),
    "sums of points": (
        lambda: smooth_plan().sums().update(POINTS),
        lambda path: so.smooth.PointSums.load(smooth_plan().fit, path),
    ),
}
