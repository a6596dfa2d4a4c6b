"""Histograms after every step: joint sensitivity by brute force, what was printed, the ways, pan-privacy."""

import itertools
import math
import os
import secrets
import subprocess
import sys
import warnings

import numpy as np
import pytest

import sordino as so
from live import plan_live
from sordino.privacy.calibration import noise_ratio

PURE = so.PureDP(epsilon=1.0)
APPROX = so.ApproxDP(epsilon=1.0, delta=1e-6)
MU = so.GaussianDP(mu=1.0)
CELLS, STEPS = 12, 8
SKETCH = so.sketches.Compression(measurements=6, sparsity=1, nonzeros=2, seed=3)
DENSE = so.sketches.Compression(measurements=6, sparsity=1, sketch="bernoulli", seed=3)
ROOM = so.sketches.Compression(measurements=16, sparsity=3)
KEY = bytes(range(32))
SECRET = 98765432123


def key(i):
    return i.to_bytes(32, "little")


def plan_of(privacy=PURE, cells=CELLS, steps=STEPS, once=False, **options):
    return plan_live(so.RunningHistogram(cells, steps, once=once), privacy, **options)


def matrix(compression, cells):
    operator = compression.operator(cells)
    return np.stack([operator.column(j) for j in range(cells)], axis=1)


# What the paper printed


def tree_rows(steps):
    """Nodes of the binary tree that prefix sums are made of: which steps each adds up."""
    rows = []
    for level in range(steps.bit_length()):
        for start in range(0, steps, 2 << level):
            if start + (1 << level) <= steps:
                row = np.zeros(steps)
                row[start : start + (1 << level)] = 1.0
                rows.append(row)
    return np.array(rows)


def losses(measured, changes, scale):
    """Largest log density ratio of Laplace noise of this scale, over all outputs: attained beyond both means."""
    return max(np.abs(measured @ change).sum() / scale for change in changes)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_counters_that_each_spend_epsilon_spend_k_epsilon(epsilon):
    """The algorithm as printed, enumerated: every item, every counter, every node.

    Entries +-1/sqrt k; a counter changes by 1/sqrt k a node, and has noise for that alone: levels/(sqrt k epsilon).
    """
    k, steps = 6, 8
    signs = matrix(so.sketches.Compression(measurements=k, sparsity=1, sketch="bernoulli"), CELLS) / math.sqrt(k)
    nodes = tree_rows(steps)
    levels = int(nodes.sum(axis=0).max())
    scale = levels / (math.sqrt(k) * epsilon)
    measured = np.kron(signs, nodes)
    records = [np.kron(np.eye(CELLS)[j], np.eye(steps)[t]) for j in range(CELLS) for t in range(steps)]
    one = [np.kron(signs[:1], nodes) @ record for record in records]
    assert max(np.abs(change).sum() / scale for change in one) == pytest.approx(epsilon)
    literal = losses(measured, records, scale)
    assert literal == pytest.approx(k * epsilon)
    # The densities themselves, at an output beyond both means.
    change = measured @ records[0]
    output = np.where(change > 0.0, 50.0, -50.0)
    log_ratio = (np.abs(output) - np.abs(output - change)).sum() / scale
    assert log_ratio == pytest.approx(k * epsilon)
    # Ours, of integer signs: the same nodes with the noise that is planned.
    for compression in (SKETCH, so.sketches.Compression(measurements=k, sparsity=1, sketch="bernoulli")):
        plan = plan_of(so.PureDP(epsilon=epsilon), steps=steps, compression=compression, mechanism="binary-tree")
        own = plan.fit.counters.door.scale
        ours = losses(np.kron(matrix(compression, CELLS), nodes), records, own)
        assert epsilon * (1.0 - 1e-4) <= ours <= epsilon
        # In units of the normalised sketch: sqrt k times the noise that was printed.
        if compression.sketch == "bernoulli":
            assert own / math.sqrt(k) / scale == pytest.approx(k, rel=1e-4)


def neighbours(unit, cells, steps):
    """Extreme changes of the whole stream, shape (cells, steps)."""
    places = list(itertools.product(range(cells), range(steps)))
    unit_change = np.zeros((cells, steps))

    def at(*entries):
        change = unit_change.copy()
        for (cell, step), amount in entries:
            change[cell, step] += amount
        return change

    match unit:
        case so.AddRemove(records=records):
            yield from (at((place, records)) for place in places)
            if records == 2:
                yield from (at((a, 1), (b, s)) for a, b in itertools.combinations(places, 2) for s in (1, -1))
        case so.ReplaceOne(records=records):
            yield from (at((a, records), (b, -records)) for a, b in itertools.permutations(places, 2))
        case so.UserLevel(min_separation=separation):
            for (i, s), (j, t) in itertools.product(places, places):
                if t - s >= separation:
                    # Turnstile: up or down, each by itself.
                    yield at(((i, s), 1), ((j, t), 1))
                    yield at(((i, s), 1), ((j, t), -1))


def square_root(steps):
    """The square root of the prefix sums, lower triangular: coefficients of (1 - z)^(-1/2)."""
    c = np.cumprod([1.0] + [1.0 - 0.5 / i for i in range(1, steps)])
    return np.array([[c[i - j] if i >= j else 0.0 for j in range(steps)] for i in range(steps)])


@pytest.mark.parametrize("compression", [SKETCH, DENSE, None], ids=["sparse", "dense", "cells"])
@pytest.mark.parametrize(
    "unit", [so.AddRemove(1), so.AddRemove(2), so.ReplaceOne(1), so.UserLevel(2, 3), so.UserLevel(2, 1)], ids=str
)
@pytest.mark.parametrize(
    ("privacy", "mechanism"),
    [
        (PURE, "binary-tree"),
        (PURE, "identity"),
        (MU, "binary-tree"),
        (MU, "square-root"),
        (MU, "identity"),
        (APPROX, "square-root"),
    ],
    ids=lambda v: v if isinstance(v, str) else type(v).__name__,
)
def test_all_counters_together_cost_no_more_than_the_budget(privacy, mechanism, unit, compression):
    """Every neighbouring stream of a small case, through the matrix that the mechanism measures."""
    cells, steps = 5, 8
    plan = plan_of(
        privacy,
        cells,
        steps,
        unit=unit,
        compression=compression
        and so.sketches.Compression(measurements=4, sparsity=1, nonzeros=2, sketch=compression.sketch, seed=1),
        mechanism=mechanism,
    )
    Phi = np.eye(cells) if compression is None else matrix(plan.fit.compression, cells)
    B = {"binary-tree": tree_rows, "square-root": square_root, "identity": np.eye}[mechanism](steps)
    law = plan.fit.counters.name.rsplit("-", 1)[1]
    order = 1 if law == "laplace" else 2
    # Step 1 is one node: its noise is that of a measured number.
    noise = plan.fit.counters.door.scale if law == "laplace" else plan.fit.counters.std([1])[0]
    largest = max(np.linalg.norm((Phi @ change @ B.T).reshape(-1), order) for change in neighbours(unit, cells, steps))
    allowed = noise / noise_ratio(privacy, law)
    assert largest <= allowed * (1.0 + 1e-12)
    if unit == so.AddRemove(1):
        assert largest >= allowed * (1.0 - 1e-4)


@pytest.mark.parametrize(
    ("privacy", "options"),
    [
        (PURE, {"mechanism": "binary-tree"}),
        (MU, {"mechanism": "square-root"}),
        (MU, {"mechanism": "blt"}),
        (PURE, {"pan_private": True}),
        (MU, {"pan_private": True}),
    ],
    ids=str,
)
@pytest.mark.parametrize("compression", [SKETCH, DENSE, None], ids=["sparse", "dense", "cells"])
def test_one_record_moves_the_sums_by_its_column(privacy, options, compression, known_noise):
    """Two streams under one key: the noise cancels, and what is left is the sketch of the difference, exactly."""
    plan = plan_of(privacy, compression=compression, **options)
    Phi = np.eye(CELLS) if compression is None else matrix(compression, CELLS)
    rng = np.random.default_rng(2)
    updates = [(rng.integers(0, CELLS, 4), rng.integers(-5, 6, 4)) for _ in range(STEPS)]
    for at, cell in ((0, 3), (4, 0), (STEPS - 1, CELLS - 1)):
        first, second = plan.open(), plan.open()
        for t, (cells, counts) in enumerate(updates):
            first.update(cells, counts)
            more = ([*cells, cell], [*counts, 1]) if t == at else (cells, counts)
            second.update(*more)
            moved = second.sums - first.sums
            np.testing.assert_allclose(moved, Phi[:, cell] * (t >= at), atol=1e-3)


@pytest.mark.statistical
@pytest.mark.parametrize("privacy", [PURE, MU], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("compression", [SKETCH, None], ids=["sketch", "cells"])
@pytest.mark.parametrize("pan_private", [True, False])
def test_sums_are_the_truth_and_the_stated_noise(privacy, compression, pan_private, known_noise):
    """Variance over 300 fixed keys at every step at 6 standard errors: below 1e-6 in all had keys been random."""
    rounds = 300
    plan = plan_of(privacy, compression=compression, pan_private=pan_private, mechanism="binary-tree")
    Phi = np.eye(CELLS) if compression is None else matrix(compression, CELLS)
    rng = np.random.default_rng(4)
    cells, counts = rng.integers(0, CELLS, (STEPS, 3)), rng.integers(-9, 10, (STEPS, 3))
    table, truth = np.zeros(CELLS), []
    for t in range(STEPS):
        np.add.at(table, cells[t], counts[t])
        truth.append(Phi @ table)
    errors = np.zeros((rounds, STEPS, plan.fit.numbers))
    for i in range(rounds):
        with so.testing.deterministic_noise(key(i)):
            stream = plan.open()
        for t in range(STEPS):
            stream.update(cells[t], counts[t])
            errors[i, t] = stream.sums - truth[t]
    for t in range(STEPS):
        # Kurtosis of a sum of Laplace variates is at most 6.
        spread = math.sqrt(5.0 / (rounds * plan.fit.numbers))
        assert np.mean(errors[:, t] ** 2) / plan.fit.noise_at(t + 1) ** 2 == pytest.approx(1.0, abs=6.0 * spread)
        assert abs(errors[:, t].mean()) < 6.0 * plan.fit.noise_at(t + 1) / math.sqrt(rounds * plan.fit.numbers)
    node = math.sqrt(2.0) if privacy is PURE else 1.0
    one = plan.fit.counters.std([1])[0] / node
    nodes = [bin(t).count("1") for t in range(1, STEPS + 1)]
    expected = one * node * np.sqrt(nodes) * (math.sqrt(2.0) if pan_private else 1.0)
    np.testing.assert_allclose([plan.fit.noise_at(t) for t in range(1, STEPS + 1)], expected)


# Pan-privacy


def test_a_pan_private_stream_refuses_what_it_cannot_do():
    with pytest.raises(so.errors.UnsupportedMechanismError, match="binary tree"):
        plan_of(MU, pan_private=True, mechanism="square-root")
    for mechanism in ("per-item", "differenced"):
        with pytest.raises(so.errors.UnsupportedMechanismError):
            plan_of(PURE, STEPS, once=True, pan_private=True, mechanism=mechanism)
    for options in ({"steps": None}, {"horizon": "soft"}, {"horizon": "unbounded"}):
        with pytest.raises(so.errors.UnsupportedMechanismError):
            plan_of(MU, pan_private=True, **options)
    with pytest.raises(so.errors.DataTypeError):
        plan_of(MU, pan_private="yes")
    plan, ledger = plan_of(PURE, pan_private=True, compression=SKETCH), so.Ledger(PURE)
    with pytest.raises(so.errors.InvalidParameterError, match="no checkpoints"):
        plan.open(ledger, store=so.streams.InMemoryStepStore())
    with pytest.raises(so.errors.DataTypeError):
        plan.open("ledger")
    ordinary = plan_of(PURE, compression=SKETCH, mechanism="binary-tree")
    with ordinary.open() as stream, pytest.raises(so.errors.InvalidParameterError, match="another plan"):
        plan.attach(stream.counters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with so.testing.deterministic_noise(KEY), pytest.raises(so.errors.InvalidParameterError, match="deterministic"):
            plan.open(ledger)
    assert not ledger.history


FORK = """
import os, sys
import sordino as so
sketch = so.sketches.Compression(measurements=6, sparsity=1, nonzeros=2)
for pan_private in (True, False):
    stream = so.plan(
        so.Continual(so.RunningHistogram(12, 8), pan_private=pan_private), so.PureDP(epsilon=1.0), compression=sketch
    ).open()
    stream.update(1)
    child = os.fork()
    if child == 0:
        try:
            stream.update(1)
        except so.errors.ForkError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    stream.update(1)
    assert stream.step == 2
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_stream_stays_in_its_process():
    run = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


# The ways


def test_turnstile_updates_come_and_go(known_noise):
    """With hardly any noise: the estimate follows a table that changes up and down."""
    loud = so.GaussianDP(mu=1e6)
    for options in ({}, {"compression": ROOM}, {"pan_private": True}, {"compression": ROOM, "pan_private": True}):
        plan = plan_of(loud, 64, 6, **options)
        stream, table = plan.open(), np.zeros(64)
        with pytest.raises(so.errors.InvalidParameterError, match="nothing was published"):
            stream.estimate()
        assert np.array_equal(stream.sums, np.zeros(plan.fit.numbers))
        for cells, counts in (
            (np.arange(32), None),
            (5, None),
            ([5, 5], [-1, 0]),
            ([], None),
            (np.arange(64), [300] * 64),
            (np.arange(32), [-1] * 32),
        ):
            stream.update(cells, counts)
            np.add.at(table, np.atleast_1d(np.array(cells, dtype=int)), 1 if counts is None else counts)
            found = stream.estimate()
            if stream.step != 2 or plan.fit.representation == "per-cell":
                np.testing.assert_allclose(found.values, table, atol=0.05)
            np.testing.assert_allclose(stream.estimate().values, found.values)
        assert stream.estimate("cosine").values.shape == (64,)
        assert stream.step == 6


@pytest.mark.parametrize("mechanism", ["per-item", "differenced", "auto"])
@pytest.mark.parametrize("privacy", [PURE, MU, so.GaussianDP(mu=1e6)], ids=["laplace", "gaussian", "loud"])
def test_tables_that_arrive_cell_by_cell(mechanism, privacy, known_noise):
    cells, steps = 16, 11
    truth = np.arange(100, 100 + 10 * steps, 10)
    plan = plan_of(privacy, cells, steps, once=True, mechanism=mechanism)
    stream = plan.open()
    for t in range(steps):
        stream.update(truth[t])
        noisy = stream.noisy()
        assert noisy.shape == (cells,)
        assert np.array_equal(noisy[t + 1 :], np.zeros(cells - t - 1))
        tolerance = 14.0 * plan.fit.rmse_at(t + 1) * math.sqrt(cells / (t + 1))
        np.testing.assert_allclose(noisy[: t + 1], truth[: t + 1], atol=tolerance)
        assert stream.estimate().values.shape == (cells,)
    for bad in ([1, 2], []):
        with pytest.raises(so.errors.ShapeError):
            plan.open().update(bad)
    with pytest.raises(so.errors.ShapeError):
        plan.open().update(1, 1)
    with pytest.raises(so.errors.HorizonError):
        stream.update(1)


@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", ["per-item", "differenced"])
def test_the_error_of_a_table_that_arrives_is_the_stated_one(mechanism, known_noise):
    """Mean square over 300 fixed keys within 12 % of `rmse`: five standard errors of correlated Laplace sums."""
    cells, steps = 16, 13
    plan = plan_of(PURE, cells, steps, once=True, mechanism=mechanism)
    squares = []
    for i in range(300):
        with so.testing.deterministic_noise(key(i)):
            stream = plan.open()
        for t in range(steps):
            stream.update(t)
        noisy = stream.noisy()
        squares.append(np.mean((noisy - np.concatenate([np.arange(steps), np.zeros(cells - steps)])) ** 2))
    assert math.sqrt(np.mean(squares)) == pytest.approx(plan.fit.rmse_at(steps), rel=0.12)


def test_per_item_noise_covers_every_item_once():
    """Parallel composition: one cell a step, so one variate of 1/epsilon each."""
    plan = plan_of(PURE, 16, None, once=True)
    assert plan.fit.representation == "per-item"
    assert plan.workload.length == 16
    assert plan.fit.counters.std([1])[0] == pytest.approx(math.sqrt(0.5) / math.sinh(0.5))
    moved = plan_of(PURE, 16, None, once=True, unit=so.ReplaceOne(1))
    assert moved.fit.counters.std([1])[0] == pytest.approx(math.sqrt(0.5) / math.sinh(0.25))
    with pytest.raises(so.errors.InvalidParameterError):
        so.RunningHistogram(4, 5, once=True)
    for mechanism in ("per-item", "differenced"):
        with pytest.raises(so.errors.UnsupportedMechanismError, match="once=True"):
            plan_of(PURE, mechanism=mechanism)


def test_a_sketch_recovers_with_its_own_matrix_only():
    stream = plan_of(MU, 64, 4, compression=ROOM).open()
    stream.update(3, 50)
    for bad in (
        so.sketches.Compression(measurements=16, sparsity=3, seed=1),
        so.sketches.Compression(measurements=16, sparsity=3, nonzeros=3),
        so.sketches.Compression(measurements=17, sparsity=3),
        so.sketches.Compression(measurements=16, sparsity=3, sketch="hadamard"),
    ):
        with pytest.raises(so.errors.InvalidParameterError, match="same kind, seed and size"):
            stream.estimate(compression=bad)
    for bad in (3, "haar", {}):
        with pytest.raises(so.errors.DataTypeError):
            stream.estimate(compression=bad)
    with pytest.raises((so.errors.DataTypeError, so.errors.InvalidParameterError)):
        stream.estimate(basis=3)
    with pytest.raises(so.errors.UnsupportedMechanismError, match="no noisy cells"):
        stream.noisy()
    found = stream.estimate(
        compression=so.sketches.Compression(measurements=16, sparsity=1, recovery="hard-thresholding")
    )
    assert found.support.size <= 1
    assert found.algorithm == "hard-thresholding"


# Checkpoints


@pytest.mark.parametrize("privacy", [PURE, MU], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("compression", [ROOM, None], ids=["sketch", "cells"])
@pytest.mark.parametrize("kind", ["memory", "file"])
def test_a_stream_goes_on_from_a_checkpoint(privacy, compression, kind, tmp_path):
    plan = plan_of(privacy, 64, 6, compression=compression)
    store = so.streams.InMemoryStepStore() if kind == "memory" else so.streams.FileStepStore(tmp_path / "steps")
    seal, ledger = secrets.token_bytes(32), so.Ledger(privacy)
    stream = plan.open(ledger, store=store)
    stream.update([1, 2], [40, -3])
    checkpoint = stream.counters.checkpoint(seal)
    expected = stream.sums
    stream.close()
    again = plan.attach(so.restore(checkpoint, seal, store))
    assert again.step == 1
    np.testing.assert_array_equal(again.sums, expected)
    again.update(5, 7)
    assert again.step == 2
    assert again.estimate().values.shape == (64,)
    assert len(ledger.history) == 1
    other = plan_of(privacy, 64, 7, compression=compression)
    with pytest.raises(so.errors.InvalidParameterError, match="another plan"):
        other.attach(again.counters)
    with pytest.raises(so.errors.DataTypeError):
        plan.attach("counters")
    again.close()


@pytest.mark.parametrize("mechanism", ["per-item", "differenced"])
def test_differences_are_not_taken_from_a_checkpoint(mechanism):
    """What was published before is not in it: the cells would end up at other places."""
    plan = plan_of(PURE, once=True, mechanism=mechanism)
    stream = plan.open(store=so.streams.InMemoryStepStore())
    stream.update(5)
    with pytest.raises(so.errors.UnsupportedMechanismError, match="not in a checkpoint"):
        plan.attach(stream.counters)


# Sizes and choices


def test_the_state_of_a_sketch_does_not_grow_with_the_cells():
    sizes = set()
    for cells in (2**8, 2**16, 2**26):
        compression = so.sketches.Compression(measurements=64, sparsity=4)
        plan = plan_of(MU, cells, 2**10, compression=compression)
        stream = plan.open()
        stream.update([cells - 1, 0], [5, -2])
        assert stream.sums.shape == (64,)
        sizes.add(plan.fit.memory)
    assert len(sizes) == 1
    assert plan_of(MU, 128, 2**10).fit.memory > plan_of(MU, 64, 2**10).fit.memory
    with pytest.raises((so.errors.UnsupportedMechanismError, so.errors.InvalidParameterError)):
        plan_of(MU, 2**21, 8)


@pytest.mark.parametrize("privacy", [PURE, APPROX, MU], ids=str)
def test_auto_takes_a_sketch_for_want_of_memory_alone(privacy):
    cells = 256
    # Even where the noise needs no state, every cell has a sum.
    assert plan_of(privacy, cells).fit.memory >= 8 * cells
    whole = plan_of(privacy, cells).fit.memory
    assert plan_of(privacy, cells, memory=whole).fit.representation == "per-cell"
    small = plan_of(privacy, cells, memory=whole - 1)
    assert small.fit.representation == "compressive"
    assert small.fit.memory <= whole - 1
    assert (
        so.compare(so.RunningHistogram(cells, STEPS), privacy, memory=whole - 1)
        .rows[-1]["mechanism"]
        .startswith("compr")
    )
    with pytest.raises(so.errors.InvalidParameterError, match="room for two"):
        plan_of(privacy, cells, memory=7)
    with pytest.raises(so.errors.UnsupportedMechanismError, match="more than memory allows"):
        plan_of(privacy, cells, memory=100, compression=so.sketches.Compression(measurements=32, sparsity=2))
    compression = so.sketches.Compression(measurements=32, sparsity=2)
    comparison = so.compare(so.RunningHistogram(cells, STEPS), privacy, compression=compression)
    assert comparison.chosen.startswith("per-cell")
    assert [row["rmse_kind"] for row in comparison.rows] == ["exact", "noise only"]
    assert {row["numbers"] for row in comparison.rows} == {cells, 32}
    assert all(row["mechanism"] in str(comparison) for row in comparison.rows)


def test_ways_side_by_side():
    comparison = so.compare(so.RunningHistogram(64, once=True), PURE, compression=ROOM)
    assert comparison.chosen.startswith("per-item")
    ways = [row["mechanism"].split(":")[0] for row in comparison.rows]
    assert sorted(ways) == ["compressive", "differenced", "per-cell", "per-item"]
    assert ways[0] == "per-item"
    assert ways[-1] == "compressive"
    for row in comparison.rows:
        assert row["rmse"] > 0.0
        assert row["memory"] >= 8 * row["numbers"]
    plain = so.compare(so.RunningHistogram(64, 8), PURE)
    assert [row["mechanism"] for row in plain.rows] == [plain.chosen]


@pytest.mark.parametrize(
    "options",
    [{}, {"compression": ROOM}, {"pan_private": True}, {"once": True}, {"once": True, "mechanism": "differenced"}],
    ids=str,
)
def test_everything_that_shows_a_stream(options):
    for privacy in (PURE, APPROX, MU):
        plan = plan_of(privacy, 64, 8, **options)
        assert plan.mechanism in plan.explain()
        assert plan.mechanism in repr(plan)
        assert ("one look" in plan.guarantee()) == plan.fit.pan_private
        stream = plan.open()
        stream.update(SECRET) if plan.fit.workload.once else stream.update(0, SECRET)
        for shown in (repr(stream), repr(stream.counters), repr(stream.estimate())):
            assert str(SECRET) not in shown
        assert "step 1" in repr(stream)


# Bad input


@pytest.mark.parametrize(
    ("cells", "counts"),
    [
        ([0, 1], [SECRET]),
        ([0], [SECRET, 1]),
        ([[0, 1]], [SECRET, 1]),
        ("3", SECRET),
        (3j, SECRET),
        (np.array(["3"]), [SECRET]),
    ],
    ids=range(6),
)
@pytest.mark.parametrize(
    "options", [{}, {"compression": ROOM}, {"pan_private": True}, {"pan_private": True, "compression": ROOM}], ids=str
)
def test_bad_updates_publish_nothing_and_say_nothing(options, cells, counts, known_noise):
    plan = plan_of(PURE, 64, 8, **options)
    stream, other = plan.open(), plan.open()
    for each in (stream, other):
        each.update(1, 5)
    with pytest.raises(so.SordinoError) as caught:
        stream.update(cells, counts)
    assert str(SECRET) not in str(caught.value)
    assert caught.value.__cause__ is None
    assert stream.step == 1
    # Nothing lost, nothing added: the next step is what it would have been.
    for each in (stream, other):
        each.update(2, 6)
    assert np.array_equal(stream.sums, other.sums)


@pytest.mark.parametrize(
    "options", [{}, {"compression": ROOM}, {"pan_private": True}, {"pan_private": True, "compression": ROOM}], ids=str
)
def test_counts_near_the_limits_never_wrap(options, known_noise):
    """A sum that wrapped around 64 bits would be two bounds away from that of a neighbour: one record, no privacy."""
    plan = plan_of(PURE, 64, 8, **options)
    Phi = np.eye(64) if plan.fit.representation == "per-cell" else matrix(ROOM, 64)
    limit = plan.fit.counters.domain.max_value
    for total in (limit - 1, limit, 2**40, 2**62 - 2, 2**63 - 1, 2**64 - 2):
        if plan.fit.representation == "compressive" and total >= 2**62 - 2:
            continue
        first, second = plan.open(), plan.open()
        half = total // 2
        first.update([0, 0], [half, total - half])
        second.update([0, 0, 0], [half, total - half, 1])
        assert (np.abs(second.sums - first.sums) <= np.abs(Phi[:, 0]) + 1e-6).all()
        down, more = plan.open(), plan.open()
        down.update([0, 0], [-half, half - total])
        more.update([0, 0, 0], [-half, half - total, -1])
        assert (np.abs(down.sums - more.sums) <= np.abs(Phi[:, 0]) + 1e-6).all()


def test_steps_add_up_exactly_however_large_their_counts_are(known_noise):
    plan = plan_of(PURE, 4, 8, max_value=2**40)
    for counts in ([2**53, -(2**53), 7], [2**52, 2**52, -(2**53) + 5], [-1, -1, 3], [2**31, -(2**31), 2**31 - 1]):
        first, second = plan.open(), plan.open()
        first.update([1, 1, 1], counts)
        second.update(1, sum(counts))
        assert np.array_equal(first.sums, second.sums)


@pytest.mark.parametrize("pan_private", [True, False])
@pytest.mark.parametrize("compression", [None, ROOM])
@pytest.mark.parametrize(
    ("cells", "counts", "same"),
    [
        ([0], [2**62], ([0], [2**53])),
        ([0], [-(2**64)], ([0], [-(2**53)])),
        ([0, 0, 0], [2**62, 2**62, -(2**62)], ([0], [2**53])),
        ([64, -1, None, 0.5, 10**30], [SECRET] * 5, ([], [])),
        ([0, 1], [None, 3.0], ([1], [3])),
    ],
)
def test_no_step_is_refused_by_its_items(cells, counts, same, compression, pan_private, known_noise):
    options = {} if compression is None else {"compression": compression}
    plan = plan_of(PURE, 64, 8, pan_private=pan_private, **options)
    stream, other = plan.open(), plan.open()
    stream.update(cells, counts)
    other.update(*same)
    assert np.array_equal(stream.sums, other.sums)
    assert stream.step == 1


def test_bad_plans_are_refused():
    for bad in (3, "sketch"):
        with pytest.raises(so.errors.DataTypeError):
            plan_of(compression=bad)
    for bad in ({"dim": 2}, {"cells_per_record": 2}, {"one_signed": False}, {"integral": False}):
        with pytest.raises(so.errors.InvalidParameterError):
            plan_of(**bad)
    for bad in (
        so.sketches.Compression(measurements=13),
        so.sketches.Compression(measurements=6, sparsity=4),
        so.sketches.Compression(sparsity=5),
    ):
        with pytest.raises(so.errors.InvalidParameterError):
            plan_of(compression=bad)
    with pytest.raises((so.errors.InvalidParameterError, so.errors.DataTypeError)):
        plan_of(basis="fourier")
    for workload in (so.RunningSum(8),):
        with pytest.raises(so.SordinoError):
            so.plan(so.Continual(workload), PURE, compression=SKETCH)
        with pytest.raises(so.SordinoError):
            so.plan(so.Continual(workload, pan_private=True), PURE)
