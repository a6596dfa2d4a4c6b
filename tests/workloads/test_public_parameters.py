"""Bad public parameters raise errors of sordino alone, and public sizes are checked before memory is taken.

Every public constructor, function and method has a valid call in `calls`; one argument at a time is replaced by what no
caller should hand over. Nothing but a `SordinoError` may leave, and what was made must have a representation.
"""

import functools
import inspect
import subprocess
import sys
import types
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import sordino as so
from sordino._support import normal_tails
from sordino.privacy import calibration
from spaces import SPACES

P, A, G = so.PureDP(epsilon=1.0), so.ApproxDP(epsilon=1.0, delta=1e-6), so.GaussianDP(mu=1.0)


class Strange:
    """A number that refuses to say which."""

    def __index__(self):
        raise KeyError

    def __float__(self):
        raise KeyError

    def __array__(self, *_args, **_options):
        raise KeyError


def ragged():
    return [[1], [1, 2]]


HOSTILE = {
    "None": None,
    "nan": float("nan"),
    "inf": float("inf"),
    "-1": -1,
    "0": 0,
    "2**31": 2**31,
    "2**63": 2**63,
    "2**64": 2**64,
    "10**400": 10**400,
    "-10**5000": -(10**5000),
    "10**5000": 10**5000,
    "1e308": 1e308,
    "5e-324": 5e-324,
    "text": "x",
    "empty text": "",
    "surrogate": "\ud800",
    "numpy text": np.str_("a"),
    "bytes": b"x",
    "True": True,
    "Decimal": Decimal(1),
    "Decimal NaN": Decimal("NaN"),
    "Fraction": Fraction(1, 3),
    "complex": 1j,
    "object": object(),
    "strange": Strange(),
    "[]": [],
    "[None]": [None],
    "['a']": ["a"],
    "[10**400]": [10**400],
    "[nan]": [float("nan")],
    "ragged": ragged(),
    "{}": {},
    "{1}": {1},
    "range": range(3),
    "integers": np.array([5, 6]),
    "one float": np.array([5.0]),
    "without dimensions": np.array(5),
    "matrix": np.ones((2, 2)),
    "objects": np.array([None, 1], dtype=object),
    "masked": np.ma.masked_array([1, 2], mask=[0, 1]),
    "dates": np.array(["2026-01-01"], dtype="M8[D]"),
    "int8": np.int8(3),
    "longdouble": np.array([np.finfo(np.longdouble).max]),
    "NaT": np.datetime64("NaT"),
    "NA": pd.NA,
    "a type": int,
    "a function": lambda *_: None,
}
# Functions of the caller raise what they raise.
FUNCTIONS = {"a type", "a function"}
FUNCTION_SLOTS = {
    ("OrthonormalBasis", 1),
    ("OrthonormalBasis", 2),
    ("GroupConvolution.from_predicate", 0),
    ("Release.query", 0),
    ("TreeRelease.query", 0),
    ("tabulate", "progress"),
    ("EventStream.replay", 0),
    ("HistogramStream.estimate", "progress"),
    ("Release.reconstructed", "progress"),
    ("SmoothRelease.projected", "progress"),
    ("factorize", "progress"),
}


def public(name):
    """Return what is public under this name, wherever."""
    return next(getattr(space, name) for space in SPACES if hasattr(space, name))


@functools.cache
def calls():
    """Return valid calls by their public name: the function, and its arguments."""
    table: dict[str, list] = {}

    def add(name, function, *args, **options):
        table.setdefault(name, []).append((function, args, options))

    def new(name, *args, **options):
        add(name, public(name), *args, **options)

    # Units, guarantees, events, ledgers.
    new("AddRemove", 1, 1, "x")
    new("ReplaceOne", 1, "x")
    new("UserLevel", 1, 1, 1, "x")
    for unit in (so.AddRemove(), so.ReplaceOne(), so.UserLevel(1)):
        add(f"{type(unit).__name__}.least_norm", unit.least_norm, 4)
        add(f"{type(unit).__name__}.units_in", unit.units_in, 4)
    new("PureDP", epsilon=1.0)
    new("ApproxDP", epsilon=1.0, delta=1e-6)
    new("ZeroConcentratedDP", rho=1.0)
    new("GaussianDP", mu=1.0)
    new("PureCost", epsilon=1.0)
    new("GaussianCost", mu=1.0)
    new("GaussianCost", rho=1.0)
    new("ApproxCost", epsilon=1.0, delta=0.1)
    new("ApproximateGaussianCost", 1.0, 0.1)
    new("Ledger", A, composition="adaptive", store=None)
    new("Ledger", A, pure_as="epsilon", reserve_epsilon=0.1, reserve_delta=1e-9, unit=so.AddRemove(1))
    new("Ledger", A, composition="schedule", schedule=[so.privacy.PureCost(0.1)])
    add("Ledger.charge", lambda *a: so.Ledger(A).charge(*a), so.privacy.PureCost(0.1), "a", "b")
    add("Ledger.check", lambda *a: so.Ledger(A).check(*a), so.privacy.PureCost(0.1), "a")
    add("Ledger.remaining", lambda *a: so.Ledger(A).remaining(*a), 0.5, so.privacy.PureCost(0.1))
    add("Ledger.fixes_the_split", so.Ledger(A).fixes_the_split, so.privacy.PureCost(0.1))
    add("Ledger.find", so.Ledger(A).find, "a")

    def stored():
        return so.Ledger(A, store=so.Store(":memory:", key=bytes(32)), id="x")

    new("Ledger", A, store=":memory:", id="x", recovery="redraw", attempts=3, lease="1 min", keep_answers="1 day")
    new("KeyFile", "key")
    new("Store", ":memory:", key=bytes(32), timeout=1.0, replicas=0, adopting=False)
    add("Ledger.open", lambda *a, **o: so.Ledger.open(stored().store, *a, **o), "x", recovery="redraw", attempts=1)
    add("Ledger.verify", lambda *a: stored().verify(*a))
    add("Ledger.raise_total", lambda *a: stored().raise_total(*a), so.ApproxDP(epsilon=9.0, delta=0.01), "more")
    add("Ledger.split", lambda *a: stored().split(*a), {"a": so.PureDP(epsilon=0.1)})
    add("Ledger.every", lambda *a, **o: stored().every(*a, **o), "1 day", so.PureDP(epsilon=0.1), zone="UTC")
    add("Periods.on", lambda *a: stored().every("1 day", so.PureDP(epsilon=0.1)).on(*a), "2026-11-24")
    add("Periods.spent", lambda *a: stored().every("1 day", so.PureDP(epsilon=0.1)).spent(*a), "2026-11-24")
    counting = so.plan(so.Continual(so.RunningSum(8)), so.PureDP(epsilon=0.1))

    def streamed(**options):
        store = so.Store(":memory:", key=bytes(32))
        return counting.open(**({"store": store, "stream_id": "s"} | options))

    add("StreamPlan.open", streamed, stream_id="s", take_over=False, keep_steps="1 day")
    add("Stream.update", lambda *a, **o: streamed().update(*a, **o), 3, step_id="a")
    add("publish_together", lambda items, name: so.streams.publish_together([(streamed(), items, name)]), 3, 1)
    add("publish_together", so.streams.publish_together, [])

    def going_on(name="s", **options):
        stream = streamed()
        stream.close()
        return so.go_on(stream._steps.kept.store, name, **options)

    add("go_on", going_on, "s", take_over=True)
    add("metrics", so.metrics, ":memory:")
    add("report", lambda ledger=None, **o: so.report(stored() if ledger is None else ledger, **o), pictures=False)
    charged = so.Ledger(A)
    charged.charge(so.privacy.PureCost(0.1), "a")
    add("Ledger.attach", lambda name: charged.attach(name, "record"), "a")
    for name, args in (
        ("epsilon_of_mu", (1.0, 0.1)),
        ("delta_of_mu", (1.0, 1.0)),
        ("gaussian_mu", (A,)),
        ("mu_of_pure", (1.0,)),
        ("pure_of_mu", (1.0,)),
        ("pure_of_rho", (1.0,)),
        ("rho_of_pure", (1.0,)),
        ("pure_epsilon", (A,)),
        ("flips_of_pure", (1.0,)),
        ("noise_ratio", (A, "laplace")),
        ("cost", (A, "laplace")),
        ("laplace_composition_ratio", ([[1.0, 2.0]], A)),
    ):
        add(f"calibration.{name}", getattr(calibration, name), *args)
    for name in ("log_gaussian_delta", "log_normal_cdf", "mills_ratio", "normal_quantile"):
        add(f"normal_tails.{name}", getattr(normal_tails, name), *((1.0, 1.0) if "delta" in name else (0.5,)))
    for name in ("gaussian", "laplace"):
        add(f"noise.{name}", getattr(so.noise, name), 3, 1.0)

    # Workloads.
    new("Histogram", 4)
    new("SortedHistogram", 4)
    new("RunningSum", 4)
    new("RunningAverage", 4)
    new("MovingAverage", 2, 4, "causal")
    new("SlidingWindow", 2, 4, "causal")
    new("ExponentialSmoothing", 0.5, 4, True, "causal")
    new("PolynomialDecay", 1.0, 4, "causal")
    new("BandPass", 0.0, 0.5, 4)
    new("Difference", 4, 1, "causal")
    new("Convolution", [1.0, 2.0], 4, "causal")
    new("GroupConvolution", [1.0, 2.0])
    add("GroupConvolution.from_predicate", so.workloads.GroupConvolution.from_predicate, any, 2)
    new("Matrix", [[1.0, 2.0]], [1.0])
    new("AllRanges", 4)
    add("GroupBy.split", so.GroupBy([0, 1]).split, [1.0, 2.0])
    new("GroupBy", [[0, 0, 1, 1], [0, 1, 2, -1]], weights=[1.0, 2.0])
    new("Marginals", [2, 3], k=1, weights=[1.0, 1.0])
    new("Marginals", [2, 3], sets=[[0]], weights=[1.0])
    parts = [so.RunningSum(2), so.Histogram(2)]
    new("Kronecker", parts)
    new("Union", parts, [1.0, 2.0])
    add("Union.split", so.workloads.Union(parts).split, [1.0, 2.0, 3.0, 4.0])
    new("RunningHistogram", 4, 4, once=False)
    new("RareCount", 9, 9)
    graph = {"max_degree": 2, "level": "edge", "unchecked": False}
    for name in ("EdgeCount", "TriangleCount", "DegreeHistogram"):
        new(name, 4, 4, **graph)
    new("StarCount", 2, 4, 4, **graph)
    new("SpanningForestCost", 4, 4, max_weight=1.0, weight_bits=3, **{**graph, "max_degree": None})
    new("WeightedGraph", 4, 4, max_weight=1.0, one_signed=True, weight_bits=2)
    for name in ("SubstringCounts", "EpisodeCounts"):
        new(name, "ab", 2, 4, batches=False)
        words = public(name)("ab", 2)
        add(f"{name}.index", words.index, "ab")
        add(f"{name}.word", words.word, 1)
    new("LocalSurvey", 10, (0.0, 1.0), loss=None, intervals=3)
    add("LocalLoss.huber", so.local.LocalLoss.huber, 0.5)
    new("LocalLoss", "x", lambda theta, d: np.sign(theta - d), None, None)

    # Bases, sketches, constraints.
    new("OrthonormalBasis", 4, np.copy, np.copy, 1.0, 1e-9)
    for basis in (
        so.sketches.Standard(),
        so.sketches.Haar(),
        so.sketches.Cosine(),
        so.sketches.OrthonormalBasis(2, np.copy, np.copy, 1.0),
    ):
        kind = type(basis).__name__
        add(f"{kind}.analyze", basis.analyze, [1.0, 2.0])
        add(f"{kind}.synthesize", basis.synthesize, [1.0, 2.0])
        add(f"{kind}.column_l1", basis.column_l1, 2)
        add(f"{kind}.size", basis.size, 2)
    new("ChosenSparsity", 0.1, (1, 2))
    new(
        "Compression",
        measurements=8,
        sparsity=2,
        basis="haar",
        sketch="sparse",
        nonzeros=2,
        seed=0,
        recovery="cosamp",
    )
    new("Sketch", 64, 8, sketch="sparse", nonzeros=2, seed=0)
    add("Sketch.update", so.sketches.Sketch(64, 8).update, [1], [2])
    add("Sketch.add", so.sketches.Sketch(8, 4).add, np.ones(8))
    add("Sketch.save", so.sketches.Sketch(8, 4).save, "sketch")
    add("Sketch.load", so.sketches.Sketch.load, "none")
    add("Sketch.from_bytes", so.sketches.Sketch.from_bytes, so.sketches.Sketch(8, 4).to_bytes())
    for name in ("PublicBound", "PublicTotal", "SignedBound"):
        new(name, 5.0)

    # Releases of tables.
    common = {"unit": None, "objective": "mean", "max_value": 10, "integral": True}
    new("plan", so.Histogram(4), A, mechanism="auto", constraint=None, effort="optimize", **common)
    new("plan", so.Histogram(64), A, compression=so.sketches.Compression(sparsity=4), basis="haar", memory=None)
    new("compare", so.Histogram(4), A, **common)
    new("privacy_for", so.Histogram(4), rmse=5.0, delta=1e-6)
    new("privacy_for", so.Histogram(4), max_stderr=5.0, unit=None, mechanism="identity-laplace")
    new("factorize", so.RunningSum(3), kind="optimal", law="gaussian", objective="mean", gap=1e-2, iterations=10)
    new("discrepancy", so.RunningSum(3), gap=1e-2, walks=2, seed=0)
    new("lower_bounds", so.RunningSum(3), A, records=5)
    new("spectrum", so.RunningSum(3))

    # Tables of records.
    new("Levels", ["a", "b"], other="c")
    new("Integers", 0, 3)
    new("Edges", [0.0, 1.0])
    new("Times", "2026-01-01", "2026-01-08", unit="day", zone="UTC")
    new("Hierarchy", so.tables.Integers(0, 1), {"x": ["a", "b"]})
    new("Value", 0.0, 1.0, step=0.5)
    new("Bounds", 1, 2, 2)
    axes = {"cell": so.tables.Integers(0, 3)}
    schema = so.Schema(axes, user="user", bounds=so.Bounds(1))
    new("Schema", axes, user="user", bounds=so.Bounds(1), values={"v": so.tables.Value(0.0, 1.0)}, label="x")
    new("Schema", axes, user=None)
    records = {"cell": [0, 1], "user": [1, 2]}
    add("Schema.rule", schema.rule, "r")
    add("Schema.seed", schema.seed, "r")
    add("Schema.with_bounds", schema.with_bounds, so.Bounds(1))
    new("compare_bounds", schema, [so.Bounds(1)], A, "cell", rows_per_user={1: 0.5})
    new("private_activity", records, schema, P, [0.5], ledger=None, request_id=None)
    new("sql", schema, "t", {"cell": "integer", "user": "text"}, request_id="r", dialect="duckdb")
    new("Keys", rounds=(1.0,), longest=9)
    words = so.Schema({"w": so.tables.Keys()}, user="u", bounds=so.Bounds(1))
    new("select_keys", {"w": ["a"], "u": [1]}, words, A, ledger=None, request_id="r")
    add("Schema.group_by", schema.group_by, "cell", weights={"cell": 1.0})
    add("Schema.marginals", schema.marginals, 1)
    add("Schema.from_toml", so.Schema.from_toml, "none")
    new("tabulate", records, schema, request_id="r", memory="2GB", temporary=None, engine="auto", progress=None)
    add("Table.require", so.tabulate(records, schema, request_id="r").require, schema.unit, schema.digest)
    new("Tally", schema, request_id="r")
    tally = so.tables.Tally(schema, request_id="r")
    add("Tally.update", so.tables.Tally(schema, request_id="r").update, records)
    add("Tally.merge", so.tables.Tally(schema, request_id="r").merge, tally)
    add("Tally.from_bytes", so.tables.Tally.from_bytes, tally.to_bytes(), schema)
    windows = so.tables.Windows(schema, max_participations=2, min_separation=1, request_id="r")
    new("Windows", schema, max_participations=2, min_separation=1, request_id="r")
    add("Windows.update", windows.update, records)
    fresh = so.tables.Windows(schema, max_participations=2, request_id="r")
    add("Windows.continual", fresh.continual, so.RunningSum(4), horizon="hard", common_noise=True)
    add("Windows.from_bytes", so.tables.Windows.from_bytes, fresh.to_bytes(), schema)
    add("Release.to_frame", so.plan(so.Histogram(4), A).release([1, 2, 3, 4]).to_frame, level=0.9, library="pandas")

    counts = so.plan(so.Histogram(4), A)
    release = counts.release([1, 2, 3, 4])
    add("Plan.guarantee", counts.guarantee, 3)
    add("Plan.save", counts.save, "plan")
    add("Plan.load", so.Plan.load, "none")
    add("ReleasePlan.release", counts.release, [1, 2, 3, 4], ledger=None, request_id=None)
    add("Release.interval", release.interval, 0.9, simultaneous=False)
    add("Release.thresholded", release.thresholded, "haar")
    pairs = so.plan(so.Marginals([2, 2], k=1), A).release([[0, 1]])
    zeros, known = {(0,): np.array([True, False])}, {(1,): [1.0, 2.0]}
    add("Release.consistent", pairs.consistent, total=3.0, shrink=None, norm="answers", whole=False, seed=3)
    add("Release.consistent", pairs.consistent, invariants=known, zeros=zeros, bounds={(0,): (0.0, 9.0)})
    queries = so.workloads.MarginalQueries
    add("MarginalQueries", queries, [so.Histogram(2)] * 2, k=1)
    add("Intervals", so.workloads.Intervals, [0, 1], [1, 2], 3, weights=[1.0, 2.0])
    add("MarginalQueries", queries, [so.AllRanges(2)] * 2, sets=[[0], [0, 1]], weights=[1.0, 2.0])
    add("MarginalQueries.split", queries([so.Histogram(2)] * 2, k=1).split, [1.0, 2.0, 3.0, 4.0])
    add("Marginals.split", so.Marginals([2, 2], k=1).split, [1.0, 2.0, 3.0, 4.0])
    both = so.plan(so.Marginals([2, 2], k=2), A).release([[0, 1]]).consistent()
    add("Release.records", both.records, 3, seed=1)
    add("Records.to_frame", both.records(3).to_frame, library="pandas")
    add("Release.quantile", release.quantile, 0.5, level=0.9, edges=[0, 1, 2, 3, 4], total=10.0)
    add("Release.moments", release.moments, edges=None, values=[1, 2, 3, 4], level=0.9)
    add("Release.save", release.save, "release.arrow")
    add("Release.load", so.Release.load, "none.arrow")
    add("Release.answer", release.answer, so.RunningSum(4))
    add("Release.query", release.query, np.sum)
    add("Release.sum", release.sum, [[0, 2]])
    tree = so.plan(so.AllRanges(4), P, mechanism="path-budget-tree").release([1, 2, 3, 4])
    add("TreeNodes.interval", tree.nodes.interval, 0.9, simultaneous=False)
    add("TreeRelease.answer", tree.answer, so.RunningSum(4))
    add("TreeRelease.sum", tree.sum, [[0, 2]])
    add("TreeRelease.query", tree.query, np.sum)
    add("TreeRelease.to_frame", tree.to_frame, library=None)
    add("TreeRelease.save", tree.save, "tree")
    add("TreeRelease.load", so.adaptive.TreeRelease.load, "none")
    looked = so.plan(so.Marginals([2, 2], k=2), A, mechanism="adaptive-marginals").release([[0, 1]])
    add("MarginalsRelease.agreeing", looked.agreeing, total=3.0, shrink=True)
    add("MarginalsRelease.records", looked.records, 3, seed=1)
    add("MarginalsRelease.to_frame", looked.to_frame, library=None)
    add("MarginalsRelease.save", looked.save, "marginals")
    add("MarginalsRelease.load", so.adaptive.MarginalsRelease.load, "none")
    add("MeasuredTable.interval", looked.looks[0].interval, 0.9, simultaneous=False)
    add("BoxSums.interval", release.sum([[0, 2]]).interval, 0.9, simultaneous=False)
    sketched = so.plan(
        so.Histogram(64), A, compression=so.sketches.Compression(sparsity=4), mechanism="compressive-gaussian"
    )
    again = so.sketches.Compression(sparsity=4)
    add("Release.reconstructed", sketched.release(np.ones(64)).reconstructed, again, progress=None)

    # Streams.
    live = {"horizon": "hard", "dim": 1, "cells_per_record": 1, "one_signed": True}
    new("Continual", so.RunningSum(4), reads="auto", pan_private=False, **live)
    new("plan", so.Continual(so.RunningSum(4)), A, mechanism="auto", memory=None, effort="optimize", **common)
    new("plan", so.Continual(so.RunningSum(4)), A, mechanism="blt", degree=2)
    new("plan", so.Continual(so.RunningSum(4)), A, mechanism="subtraction-tree", degree=3)
    new("plan", so.RunningHistogram(8, 4), A, compression=None, basis="haar", memory=None)
    new("plan", so.Continual(so.events.WeightedGraph(4, 4), reads="lazy"), A, memory=None)
    new("plan", so.events.RareCount(9, 9), P, unit=None, mechanism="auto", degree=None, memory=None)
    new("compare", so.RunningHistogram(8, 4), A, memory=None, compression=None)
    new("privacy_for", so.Continual(so.RunningSum(4)), within=5.0, level=0.9)
    planned = so.plan(so.Continual(so.RunningSum(4), dim=3), A)
    add("StreamFit.std", planned.fit.std, [1])
    add("StreamFit.half_width", planned.fit.half_width, [1], 0.9, 2)
    add("StreamPlan.guarantee", planned.guarantee, 3)
    add("StreamPlan.save", planned.save, "plan")
    add("StreamPlan.load", so.StreamPlan.load, "none")
    add("StreamPlan.open", planned.open, None, request_id=None, store=None)
    add("StreamPlan.release", planned.release, [[1, 2, 3]], ledger=None, request_id=None)
    add("StreamRelease.interval", planned.release([[1, 2, 3]]).interval, 0.9, simultaneous=False)
    stream = planned.open()
    stream.update([1, 2, 3])
    add("Stream.top", stream.top, 2)
    add("Stream.interval", stream.interval, 0.9, simultaneous=False)
    add("Stream.update", lambda *a, **k: planned.open().update(*a, **k), [1, 2, 3], step_id=None)
    add("Stream.checkpoint", planned.open(store=so.streams.InMemoryStepStore()).checkpoint, bytes(32))
    new("restore", b"", bytes(32), so.streams.InMemoryStepStore(), replay=False)
    new("FileStepStore", "steps")
    new("KeyCounts", 2**40, 8, nonzeros=2, seed=3)
    keyed = so.plan(so.sketches.KeyCounts(2**40, 8, nonzeros=2), A).release([5, 6])
    add("KeyRelease.counts", keyed.counts, [5, 6], sparsity=2)
    add("CandidateCounts.top", keyed.counts([5, 6]).top, 1)
    add("KeyRelease.save", keyed.save, "keys")
    add("KeyRelease.load", so.sketches.KeyRelease.load, "none")
    vectors = so.plan(so.Continual(so.RunningSum(4), dim=2, record_norm=1.0), A).open()
    add("training.clipped_sum", so.training.clipped_sum, [[1.0, 2.0]], 1.0)
    add("training.noisy_sum", so.training.noisy_sum, vectors, [[1.0, 2.0]])
    cells = so.plan(so.RunningHistogram(8, 4), A)
    changing = cells.open()
    changing.update([1], [2])
    add("TableFit.noise_at", cells.fit.noise_at, 1)
    add("TableFit.noise_of_cells", cells.fit.noise_of_cells, 1)
    add("TableFit.rmse_at", cells.fit.rmse_at, 1)
    add("HistogramStream.top", changing.top, 2)
    add("HistogramStream.estimate", changing.estimate, "haar", progress=None)
    add("HistogramStream.update", lambda *a: cells.open().update(*a), [1], [2])
    sparse = so.plan(so.events.RareCount(9, 9), P)
    add("RareStream.update", lambda items: sparse.open().update(items), [1])

    # Counts of events.
    lazy = so.plan(so.Continual(so.events.WeightedGraph(4, 9), reads="lazy"), A)
    edges = lazy.open()
    edges.update([0], [1])
    add("StreamFit.half_width", lazy.fit.half_width, [1], 0.9, 1)
    add("StreamFit.std", lazy.fit.std, [1])
    add("StreamPlan.save", lazy.save, "plan")
    add("StreamPlan.load", so.StreamPlan.load, "none")
    add("StreamPlan.open", lazy.open, None, request_id=None, store=None)
    add("EventStream.read", edges.read, [0])
    add("GraphStream.cut", edges.cut, [0], [1])
    add("GraphStream.weights", edges.weights, [0], [1])
    add("GraphStream.update", lambda *a, **k: lazy.open().update(*a, **k), [0], [1], [1.0], together=False)
    add("Cut.interval", edges.cut([0]).interval, 0.9, 1)
    add("Cut.interval_afterwards", edges.cut([0]).interval_afterwards, 0.9, every_step=False)
    noisy = edges.graph()
    add("ExtremeCut.interval", noisy.minimum_cut().interval, 0.9)
    add("PrivateGraph.cut", noisy.cut, [0])
    add("PrivateGraph.edges", noisy.edges, 0.1)
    add("PrivateGraph.to_scipy", noisy.to_scipy, 0.1)
    add("PrivateGraph.minimum_degree", noisy.minimum_degree, 0.9)
    degrees = so.plan(so.events.DegreeHistogram(4, 9, max_degree=2), A)
    shown = degrees.open()
    shown.update([0], [1])
    add("GraphFunctionStream.interval", shown.interval, 0.9, simultaneous=False)
    add("GraphFunctionStream.update", lambda *a, **k: degrees.open().update(*a, **k), [0], [1], together=False)
    counted = so.plan(so.events.SubstringCounts("ab", 2, 9), A)
    text = counted.open()
    text.update("ab")
    add("WordStream.count", text.count, ["ab"])
    add("WordStream.half_width", text.half_width, 0.9, 1)
    add("WordStream.heavy_hitters", text.heavy_hitters, 1.0, level=0.9)
    add("WordStream.update", lambda *a, **k: counted.open().update(*a, **k), "a", together=False)

    # Surveys.
    new("plan", so.local.LocalSurvey(10, (0.0, 1.0)), P, mechanism="auto")
    survey = so.plan(so.local.LocalSurvey(10, (0.0, 1.0), intervals=3), P)
    add("SurveyFit.std", survey.fit.std, 10)
    add("SurveyFit.half_width", survey.fit.half_width, 0.9, 10)
    add("SurveyPlan.save", survey.save, "plan")
    add("SurveyPlan.load", so.SurveyPlan.load, "none")
    add("SurveyPlan.encode_client", survey.encode_client, 0.5, ledger=None)
    add("SurveyPlan.encode_clients", survey.encode_clients, [0.5], ledger=None)
    server = survey.server()
    server.add_many(survey.encode_clients(np.full(9, 0.5)))
    add("LocalServer.add", server.add, [1, 2, 3], "a")
    add("LocalServer.add_many", server.add_many, [[1, 2, 3]], ["b"])
    add("LocalServer.merge", lambda other: survey.server().merge(other), server)
    estimate = server.estimate()
    add("LocalEstimate.interval", estimate.interval, 0.9, population=False)
    add("LocalEstimate.quantile", estimate.quantile, 0.5)

    # Smooth queries.
    kernels = so.smooth.GaussianKernels(0.5)
    new(
        "SmoothQueries",
        1,
        points=4,
        bounds=(0.0, 1.0),
        query_class=kernels,
        degree=3,
        index_set="tensor",
        approximation="truncate",
        most_points=10,
    )
    new("GaussianKernels", 0.5)
    new("LaplaceKernels", 0.5)
    new("MaternKernels", 0.5, 1.5)
    new("KSmooth", 2, 1.0)
    new("CoefficientPrior", [1.0, 2.0])
    for each in (kernels, so.smooth.LaplaceKernels(0.5), so.smooth.MaternKernels(0.5)):
        add(f"{type(each).__name__}.at", each.at, [[0.5]], None)
    new("KernelQueries", kernels, [[0.5]], None)
    new("MarginalKernels", kernels, [[0.5]], [0])
    new("MomentQueries", [[1]])
    new("Separable", [np.cos])
    new("Boxes", [[0.1]], [[0.5]], 0.1)
    workload = so.smooth.SmoothQueries(1, points=4, bounds=(0.0, 1.0), query_class=kernels)
    smooth = so.plan(workload, A)
    points = [[0.1], [0.2], [0.3], [0.4]]
    summary = smooth.release(points)
    add("ReleasePlan.guarantee", smooth.guarantee, 3)
    add("ReleasePlan.save", smooth.save, "plan")
    add("ReleasePlan.load", so.ReleasePlan.load, "none")
    add("ReleasePlan.release", smooth.release, points, ledger=None, request_id=None)
    add("ReleasePlan.sums", smooth.sums, points)
    classed = so.smooth.SmoothQueries(1, points=4, bounds=(0.0, 1.0), query_class=so.smooth.KSmooth(2))
    add("SmoothFit.uniform_error", so.plan(classed, A, mechanism="chebyshev-gaussian").fit.uniform_error, 0.1)
    add("PointSums.update", smooth.sums().update, points)
    add("PointSums.save", smooth.sums(points).save, "sums")
    add("PointSums.load", so.smooth.PointSums.load, smooth, "none")
    add("PointSums.from_bytes", so.smooth.PointSums.from_bytes, smooth, smooth.sums(points).to_bytes())
    answers = summary.query(kernels.at([[0.5]]))
    add("SmoothAnswers.interval", answers.interval, 0.9, simultaneous=False)
    add("SmoothAnswers.clipped", answers.clipped, 0.0, 1.0)
    add("SmoothRelease.query", summary.query, kernels.at([[0.5]]), samples=None)
    add("SmoothRelease.density", summary.density, [[0.5]], bandwidth=None, axes=None)
    add("SmoothRelease.save", summary.save, "summary")
    add("SmoothRelease.load", so.smooth.SmoothRelease.load, "none")
    return table


# What the library makes, and calls itself; what holds what it was given.
MADE = {
    *("Bound", "Certificate", "Comparison", "Cut", "Discrepancy", "EventStream", "ExtremeCut"),
    *("Factorization", "GraphFunctionStream", "GraphStream", "GridMeasure", "HeavyWord", "HistogramStream"),
    *("InMemoryStepStore", "Interval", "LinearFit", "LocalEstimate", "OpenStream", "RareFit", "SmoothFit", "StreamFit"),
    *(
        "LocalServer",
        "OfRecords",
        "Periods",
        "Plan",
        "PointSums",
        "PrivateGraph",
        "Projection",
        "RecoveryResult",
        "Release",
        "ReleasePlan",
    ),
    *("SmoothAnswers", "SmoothRelease", "RareStream", "Spectrum", "SurveyFit", "SurveyPlan", "TableFit"),
    *("CandidateCounts", "KeyFit", "KeyRelease"),
    *("TreeFit", "TreeNodes", "TreeRelease", "AdaptiveMarginalsFit", "MarginalsRelease", "MeasuredTable"),
    *("StepEntry", "StepStore", "Stream", "StreamPlan", "StreamRelease", "Tabulated", "Workload", "Filter"),
    *("WordStream", "normal_tails.BoundedLog", "Haar", "Cosine", "Standard", "calibration.Noise"),
    # Contexts and functions of the caller; pictures need matplotlib; of GraphStream alone.
    *("testing.deterministic_noise", "GridMeasure.query", "GridMeasure.sample", "LocalEstimate.risk_at"),
    *("SmoothRelease.projected", "SmoothRelease.sample", "GraphFunctionStream.delete", "Factorization.build"),
    *("StepEntry.count", "StepEntry.index", "normal_tails.BoundedLog.count", "normal_tails.BoundedLog.index"),
    *("Sketch.of", "ChosenSparsity.options", "LocalSurvey.with_intervals", "workload_from_spec"),
    "Table",
    "BoundsComparison",
}
INNER = {
    *("acquire", "append", "assumes", "attach", "axes", "axis_moments", "axis_values", "changes", "check", "chosen"),
    *("codes", "middles", "of_table", "places", "sql", "take", "unit_of"),
    *("core", "error", "from_json", "from_record", "increments", "is_same", "largest", "moments", "of", "operator"),
    "of_measured",
    *("options", "over", "pairs", "plot", "profile_of", "protected", "replaced", "replay", "scales", "shares", "sizes"),
    *(
        "certainly",
        "give_up",
        "read",
        "write",
        "holds_for",
        "standard",
        "starts",
        "truncation",
        "truncation_bound",
        "shape",
        "verify",
    ),
}
INHERITED = {
    ("GraphStream", "read"),
    ("WordStream", "read"),
    ("GraphFunctionStream", "read"),
    ("SurveyPlan", "guarantee"),
    ("OfRecords", "split"),
}
# What a plan or a release asks of its fit: tested by way of these.
OF_FITS = {"facts", "guarantee", "largest_half_width", "units_in"}


def public_names():
    """Yield every public class, function and method that takes parameters."""
    named = {"calibration": calibration, "normal_tails": normal_tails, "noise": so.noise, "testing": so.testing}
    for space, holder in (*(("", space) for space in SPACES), *named.items()):
        for name in holder.__all__:
            found, label = getattr(holder, name), f"{space}.{name}".lstrip(".")
            if isinstance(found, types.ModuleType | str) or (
                inspect.isclass(found) and issubclass(found, so.SordinoError)
            ):
                continue
            yield label
            if inspect.isclass(found):
                for method, function in inspect.getmembers(found, callable):
                    if not method.startswith("_") and set(inspect.signature(function).parameters) - {"self", "cls"}:
                        yield f"{label}.{method}"


def test_no_public_name_is_forgotten():
    missing = []
    for label in public_names():
        holder, _, method = label.rpartition(".")
        of_fit = holder.endswith("Fit") and method in OF_FITS
        inner = holder and method in INNER
        if not (label in calls() or label in MADE or inner or (holder, method) in INHERITED or of_fit):
            missing.append(label)
    assert not missing


def slots():
    for name, found in calls().items():
        for function, args, options in found:
            for slot in (*range(len(args)), *options):
                for label in HOSTILE:
                    if not (label in FUNCTIONS and (name, slot) in FUNCTION_SLOTS):
                        yield name, function, args, options, slot, label


def leaves(function, args, options, slot, label):
    """Return what leaves a call with one argument replaced, None for a result or an error of sordino."""
    value = HOSTILE[label]
    if isinstance(slot, int):
        args = (*args[:slot], value, *args[slot + 1 :])
    else:
        options = {**options, slot: value}
    try:
        repr(function(*args, **options))
    except so.SordinoError:
        return None
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return error
    return None


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("folder")
def test_valid_calls_are_valid():
    files = (so.errors.InputFileError, so.errors.CheckpointError)  # nothing to load; no checkpoint
    for found in calls().values():
        for function, args, options in found:
            try:
                function(*args, **options)
            except files:
                continue


def findings(chosen):
    return [
        f"{name}({slot}={label}): {type(error).__name__}: {str(error)[:80]}"
        for name, function, args, options, slot, label in chosen
        if (error := leaves(function, args, options, slot, label)) is not None
    ]


@pytest.mark.usefixtures("folder")
def test_bad_arguments_raise_errors_of_sordino_alone():
    assert not findings(slots())


# Named calls, and the error of each.

PAIR = np.array([5, 6])
INVALID, TYPE, UNSUPPORTED = (
    so.errors.InvalidParameterError,
    so.errors.DataTypeError,
    so.errors.UnsupportedMechanismError,
)
WANTED = {
    "schedule beyond floats": (lambda: so.Ledger(A, schedule=[so.privacy.GaussianCost(mu=1e200)]), INVALID),
    "schedule no sequence": (lambda: so.Ledger(A, schedule=5), TYPE),
    "store": (lambda: so.Ledger(A, store=5), TYPE),
    "event 1e308": (lambda: so.Ledger(G).charge(so.privacy.PureCost(1e308)), so.errors.BudgetExceededError),
    "event mu 1e200": (lambda: so.Ledger(G).charge(so.privacy.GaussianCost(mu=1e200)), so.errors.BudgetExceededError),
    "privacy": (lambda: calibration.noise_ratio("a", "laplace"), TYPE),
    "noise": (lambda: calibration.noise_ratio(A, PAIR), INVALID),
    "group": (lambda: so.plan(so.Histogram(4), P).guarantee(10**400), INVALID),
    "group of a stream": (lambda: so.plan(so.Continual(so.RunningSum(4)), P).guarantee(10**400), INVALID),
    "array as a size": (lambda: so.RunningSum(PAIR), TYPE),
    "array as a unit": (lambda: so.AddRemove(PAIR), TYPE),
    "type as a size": (lambda: so.RunningSum(int), TYPE),
    "array as a choice": (lambda: so.MovingAverage(2, 4, boundary=PAIR), INVALID),
    "NA as a choice": (lambda: so.plan(so.Histogram(4), A, objective=pd.NA), INVALID),
    "array as dim": (lambda: so.plan(so.Continual(so.RunningSum(4), dim=PAIR), A), TYPE),
    "array as effort": (lambda: so.plan(so.Continual(so.RunningSum(4)), A, effort=PAIR), INVALID),
    "number as a flag": (lambda: so.RunningHistogram(4, once=1), TYPE),
    "array as a flag": (lambda: so.ExponentialSmoothing(0.5, 4, PAIR), TYPE),
    "matrix 10**400": (lambda: so.Matrix([[10**400]]), INVALID),
    "kernel 10**400": (lambda: so.Convolution([10**400]), INVALID),
    "centres 10**400": (lambda: so.smooth.GaussianKernels(0.5).at([[10**400]]), INVALID),
    "text in a matrix": (lambda: so.Matrix([["1"]]), TYPE),
    "complex matrix": (lambda: so.Matrix(np.array([[1 + 1j]])), TYPE),
    "dates as a matrix": (lambda: so.Matrix(np.array([["2026-01-01"]], dtype="M8[D]")), TYPE),
    "mask": (lambda: so.Matrix(np.ma.masked_array([[1.0, 2.0]], mask=[[0, 1]])), TYPE),
    "levels without dimensions": (lambda: so.Marginals(np.array(5), k=1), TYPE),
    "sets no sets": (lambda: so.Marginals([2, 2], sets=[1]), TYPE),
    "weights no sequence": (lambda: so.Marginals([2, 2], k=1, weights=1.0), TYPE),
    "weights without an order": (lambda: so.Marginals([2, 2], k=1, weights={1.0, 2.0}), TYPE),
    "names without an order": (lambda: so.events.EdgeCount({"a", "b"}, 4), TYPE),
    "clients 10**400": (lambda: so.local.LocalSurvey(10**400), INVALID),
    "std 10**400": (lambda: so.plan(so.local.LocalSurvey(10), P).fit.std(10**400), INVALID),
    "loss that is text": (
        lambda: so.plan(so.local.LocalSurvey(10, loss=so.local.LocalLoss("x", lambda t, d: "abc")), P),
        INVALID,
    ),
    "basis of text": (lambda: so.sketches.Haar().analyze("abc"), TYPE),
    "basis size": (lambda: so.sketches.Cosine().column_l1(-1), INVALID),
    "nonzeros": (lambda: so.sketches.Sketch(64, 8, nonzeros=2**64), INVALID),
    "option": (lambda: so.plan(so.Continual(so.RunningSum(10)), A, mechanism="blt", degree=2**63), INVALID),
    "K-smooth in 1000 coordinates": (
        lambda: so.plan(
            so.smooth.SmoothQueries(1000, points=10, bounds=(0.0, 1.0), query_class=so.smooth.KSmooth(2)), A
        ),
        UNSUPPORTED,
    ),
    "bandwidth without dimensions": (lambda: so.smooth.GaussianKernels(np.array(0.5)), TYPE),
    "smoothness": (lambda: so.smooth.MaternKernels(1.0, smoothness=PAIR), TYPE),
    "degree without dimensions": (
        lambda: so.smooth.SmoothQueries(
            1, points=1, bounds=(0.0, 1.0), query_class=so.smooth.KSmooth(1), degree=np.array(3)
        ),
        TYPE,
    ),
    "ragged steps": (lambda: so.plan(so.Continual(so.RunningSum(4)), A).fit.std(ragged()), TYPE),
    "path": (lambda: so.Plan.load(None), TYPE),
    "path of bytes": (lambda: so.streams.FileStepStore(b"steps"), TYPE),
    "years of hours": (lambda: so.tables.Times("1000-01-01", "9999-01-01", unit="hour", zone="UTC"), INVALID),
    "a zone that is a path": (
        lambda: so.tables.Times("2026-01-01", "2026-01-02", unit="day", zone="/etc/passwd"),
        INVALID,
    ),
    "levels of levels": (lambda: so.tables.Hierarchy(so.tables.Integers(0, 1), {"x": {7: "a"}}), INVALID),
    "surrogates": (lambda: so.plan(so.Histogram(4), A).save("\ud800"), so.errors.InputFileError),
}


@pytest.mark.parametrize(("call", "error"), WANTED.values(), ids=WANTED)
def test_bad_parameters_are_refused_as_what_they_are(call, error):
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    assert len(str(caught.value)) < 400


def test_extreme_parameters_with_an_answer_have_it():
    assert so.Ledger(so.ApproxDP(epsilon=100.0, delta=1e-6), schedule=[so.privacy.PureCost(1e-3)] * 1030).history == ()
    assert 0.0 <= calibration.epsilon_of_mu(9.783276951385863, 0.999999) < 1e3
    assert 0.0 < calibration.delta_of_mu(1e-146, 1.0) <= 2.0**-1022
    assert calibration.delta_of_mu(1e-140, 1e-140) == pytest.approx(
        1e-140 * calibration.delta_of_mu(1e-3, 1e-3) / 1e-3, rel=2e-3
    )
    # So many equal variates are as good as normal.
    width = so.plan(so.Continual(so.RunningSum(2**40)), P, mechanism="identity-laplace").fit.half_width([2**40], 0.95)
    assert width[0] == pytest.approx(1.96 * np.sqrt(0.5) / np.sinh(0.5) * 2**20, rel=2e-2)


def test_messages_say_the_limit():
    for number, shown in ((2**40, "2**40"), (2**26 + 1, "67108865"), (10**5000, "an integer of 16610 bits")):
        with pytest.raises(INVALID) as caught:
            so.Histogram(number)
        assert str(caught.value) == f"shape must be at most 2**26, got {shown}"


# In processes of their own, with 3 GB.

LARGE = {
    "marginals": "so.Marginals([2] * 40, k=10)",
    "nothing ends": "so.Marginals(itertools.repeat(2), k=1)",
    "sparse count": "so.plan(so.Continual(so.events.RareCount(99, 9), horizon='unbounded'), P)",
    "identity": "so.plan(so.Continual(so.RunningSum(2**40)), P, mechanism='identity').fit.half_width([2**40], 0.95)",
    "subtraction": "so.plan(so.Continual(so.RunningSum(2**40)), P, mechanism='subtraction-tree', degree=2**31 - 1).rmse",
    "subtraction in many coordinates": "so.plan(so.Continual(so.RunningSum(2**40), dim=2**21), P, mechanism='subtraction-tree', "
    "degree=2**31 - 1).rmse",
    "kernel": "so.plan(so.smooth.SmoothQueries(1, points=9, bounds=(0., 1.), query_class=so.smooth.GaussianKernels(.5),"
    " degree=8192), A, mechanism='kernel')",
    "chebyshev": "so.plan(so.smooth.SmoothQueries(1, points=9, bounds=(0., 1.), query_class=so.smooth.KSmooth(2), degree=8192), A,"
    " mechanism='chebyshev').release([[.3]] * 9).query(lambda x: x[:, 0])",
    "largest chebyshev": "so.plan(so.smooth.SmoothQueries(1, points=9, bounds=(0., 1.), query_class=so.smooth.KSmooth(2),"
    " degree=4096), A, mechanism='chebyshev').release([[.3]] * 9).query(lambda x: x[:, 0])",
    "basis": "so.sketches.Cosine().column_l1(2**31)",
    "basis 2**63": "so.sketches.Cosine().column_l1(2**63)",
    "composition": "calibration.laplace_composition_ratio([[1., 2.]], so.ApproxDP(epsilon=1e6, delta=1e-300))",
    "walks": "so.optimal.discrepancy(so.RunningSum(3), walks=2**31)",
}
PROGRAM = """
import itertools, resource
resource.setrlimit(resource.RLIMIT_AS, (3 * 2**30, 3 * 2**30))
import sordino as so
from sordino.privacy import calibration
P, A = so.PureDP(epsilon=1.0), so.ApproxDP(epsilon=1.0, delta=1e-6)
try:
    {}
except so.SordinoError:
    pass
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="memory is not limited there")
@pytest.mark.parametrize("call", LARGE.values(), ids=LARGE)
def test_public_sizes_are_checked_before_memory_is_taken(call):
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(call)], capture_output=True, text=True, check=False, timeout=120
    )
    assert run.returncode == 0, run.stderr[-300:]
