"""Releases: unbiased answers with the declared noise, further answers, intervals, labels."""

import math
import os
import warnings
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sordino as so
from records import tabulate

APPROX = so.ApproxDP(epsilon=1.0, delta=1e-6)
PURE = so.PureDP(epsilon=1.0)


def dense(workload):
    return np.stack([workload.core.row(t) for t in range(workload.core.answers_len)])


WORKLOADS = [
    so.Histogram(7),
    so.Histogram((2, 5)),
    so.MovingAverage(3, 20),
    so.MovingAverage(5, 20, boundary="same"),
    so.RunningSum(33),
    so.ExponentialSmoothing(0.8, 15),
    so.workloads.PolynomialDecay(1.5, 15),
    so.workloads.BandPass(0.1, 0.3, 24),
    so.workloads.Difference(12, order=2),
    so.Convolution([1.0, 2.0, 3.0], 9, "circular"),
    so.workloads.GroupConvolution(np.arange(12.0).reshape(3, 4)),
    so.workloads.GroupConvolution.from_predicate(lambda bits: bits[0] and not bits[1], 4),
    so.Marginals([2, 3, 2], k=2),
    so.Matrix([[1.0, 1.0, 0.0], [0.0, 0.25, 1.0]]),
]


@pytest.mark.slow
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.kind)
@pytest.mark.parametrize(
    "privacy",
    [APPROX, PURE, so.ZeroConcentratedDP(rho=0.5), so.GaussianDP(mu=1.0)],
    ids=lambda p: type(p).__name__,
)
def test_answers_are_unbiased_with_the_declared_error(workload, privacy, known_noise):
    """z-scores of all mechanisms that serve: each release within 6 standard errors of the truth."""
    rng = np.random.default_rng(1)
    x = rng.integers(0, 50, workload.input_shape)
    truth = (dense(workload) @ x.reshape(-1)).reshape(workload.answers_shape)
    served = [row["mechanism"] for row in so.compare(workload, privacy).rows]
    assert served
    for mechanism in [*served, "auto"]:
        plan = so.plan(workload, privacy, mechanism=mechanism)
        release = plan.release(x)
        assert release.values.shape == workload.answers_shape == release.stderr.shape
        z = (release.values - truth) / release.stderr
        # Laplace tails: P(|z| > 11) < 2e-7 for one answer.
        assert np.abs(z).max() < 11.0, mechanism
        assert math.isclose(plan.max_stderr, release.stderr.max())


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("workload", "mechanism"),
    [
        (so.RunningSum(16), "fourier"),
        (so.RunningSum(16), "tree"),
        (so.RunningSum(13), "haar"),
        (so.RunningSum(13), "square-root"),
        (so.Convolution([1.0, 2.0], 9, "causal"), "square-root"),
        (so.Convolution([1.0, 0.5, 0.25], 8), "fourier"),
        (so.Marginals([2, 3], k=1), "fourier"),
        (so.MovingAverage(3, 9), "identity-laplace"),
        (so.Convolution([1.0, 0.5, 0.25], 8), "fourier-grouped"),
        (so.RunningSum(8), "fourier-planar"),
    ],
)
def test_empirical_variance_is_the_declared_one(workload, mechanism):
    """4000 releases under known keys; each answer's mean square at 6.5 standard errors of it.

    A relative standard error of sqrt((kurtosis - 1)/4000), kurtosis at most 6 for one Laplace variate and 8.4 for
    planar noise; false-alarm rate below 1e-8 an answer had the keys been random.
    """
    plan = so.plan(workload, APPROX, mechanism=mechanism)
    x = np.zeros(workload.core.input_len, dtype=np.int64)
    rounds = 4000
    total = np.zeros(workload.answers_shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(rounds):
            with so.testing.deterministic_noise(i.to_bytes(32, "little")):
                total += plan.release(x).values ** 2
    ratio = total / rounds / plan.fit.answers_stderr**2
    assert np.abs(ratio - 1.0).max() < 6.5 * math.sqrt(8.0 / rounds)


def test_further_answers_are_free_and_consistent(known_noise):
    n = 24
    plan = so.plan(so.RunningSum(n), APPROX, mechanism="fourier")
    x = np.arange(n)
    release = plan.release(x)
    cells = release.answer(so.Histogram(n))
    again = release.answer(so.RunningSum(n))
    assert np.allclose(np.cumsum(cells.values), again.values)
    assert np.allclose(again.values, release.values)
    window = release.answer(so.MovingAverage(7, n))
    assert np.all(np.abs(window.values - dense(window.workload) @ x) < 6 * window.stderr)
    total = release.answer(so.Matrix(np.ones((1, n))))
    assert math.isclose(total.values[0], release.values[-1], rel_tol=1e-9)
    assert math.isclose(total.stderr[0], release.stderr[-1], rel_tol=1e-6)
    with pytest.raises(so.errors.ShapeError):
        release.answer(so.Histogram(n + 1))
    ring = so.plan(so.workloads.Difference(8, boundary="circular"), APPROX, mechanism="fourier").release(np.zeros(8))
    with pytest.raises(so.errors.UnsupportedMechanismError):
        ring.answer(so.Matrix(np.ones((1, 8))))


def test_a_histogram_answers_long_series_at_once(known_noise):
    n = 200_000
    release = so.plan(so.Histogram(n), PURE).release(np.ones(n))
    totals = release.answer(so.RunningSum(n))
    assert np.allclose(totals.values, np.cumsum(release.values), rtol=1e-6)
    assert math.isclose(totals.stderr[-1], release.stderr[0] * math.sqrt(n))
    small = so.plan(so.Histogram(12), APPROX).release(np.arange(12))
    tables = small.answer(so.Marginals([3, 4], k=1))
    assert np.allclose(tables.values[:3], small.values.reshape(3, 4).sum(axis=1))
    assert np.allclose(tables.stderr[:3], small.stderr[0] * 2.0)


def test_post_processing_keeps_the_unbiased_answers(known_noise):
    release = so.plan(so.Histogram(50), PURE).release(np.zeros(50))
    clipped = release.nonnegative().rounded()
    assert (clipped.values >= 0).all() and (clipped.unbiased == release.values).all()
    assert clipped.post_processing == ("nonnegative", "rounded")
    interval = clipped.interval(0.9)
    assert (interval.lower < release.values).all() and (interval.upper > release.values).all()
    rising = so.plan(so.RunningSum(50), APPROX).release(np.ones(50)).monotone()
    assert (np.diff(rising.values) >= 0).all() and rising.unbiased is not rising.values


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("workload", "mechanism", "exact"),
    [
        (so.Histogram(40), "identity-laplace", True),
        (so.MovingAverage(4, 40), "identity-laplace", False),
        (so.RunningSum(40), "tree-laplace", False),
        (so.RunningSum(40), "fourier-gaussian", True),
        (so.Convolution([1.0, 1.0], 40), "fourier-planar", False),
    ],
)
def test_intervals_cover(workload, mechanism, exact, known_noise):
    """Coverage of 90 % intervals over 100 releases of 40 answers, at 6 standard errors of 100 draws."""
    plan = so.plan(workload, APPROX, mechanism=mechanism)
    x = np.full(workload.input_shape, 9)
    truth = dense(workload) @ x
    hits, all_hit = [], 0
    for i in range(100):
        with so.testing.deterministic_noise(i.to_bytes(32, "big")):
            release = plan.release(x)
        interval = release.interval(0.9)
        hits.append(np.mean((interval.lower <= truth) & (truth <= interval.upper)))
        together = release.interval(0.9, simultaneous=True)
        assert (together.lower <= interval.lower).all()
        all_hit += bool(((together.lower <= truth) & (truth <= together.upper)).all())
    assert np.mean(hits) > 0.9 - 6 * 0.3 / math.sqrt(100)
    if exact:
        assert np.mean(hits) < 0.9 + 6 * 0.3 / math.sqrt(100)
    assert all_hit >= 90 - 6 * 3


def test_labels_come_back():
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    days = pd.date_range("2026-01-01", periods=30)
    counts = pd.Series(np.arange(30), index=days)
    plan = so.plan(so.MovingAverage(7, 30), PURE)
    release = plan.release(counts)
    assert release.to_pandas().index.equals(days)
    table = release.to_arrow()
    assert table.column_names == ["index", "value", "stderr"] and table.num_rows == 30
    chunked = pa.chunked_array([range(10), range(20)])
    for column in (pl.Series(range(30)), pa.array(range(30)), chunked, list(range(30))):
        assert plan.release(column).index is None
    nullable = pd.Series(range(30), dtype="Int64")
    assert plan.release(nullable).values.shape == (30,)


def test_marginal_tables_from_codes_and_from_the_table(known_noise):
    rng = np.random.default_rng(3)
    levels = (2, 3, 4)
    codes = np.stack([rng.integers(0, n, 500) for n in levels], axis=1)
    table = np.zeros(levels, dtype=int)
    np.add.at(table, tuple(codes.T), 1)
    plan = so.plan(so.Marginals(levels, k=2), APPROX, mechanism="fourier")
    a, b = plan.release(codes), plan.release(table)
    assert np.array_equal(a.values, b.values)
    assert a.tables[(0, 2)].shape == (2, 4)
    assert np.array_equal(plan.release(codes.astype(np.uint8)).values, a.values)
    # A malformed record is a null record, silently.
    broken = np.vstack([codes, [[0, 0, 9], [-1, 0, 0]]])
    assert np.array_equal(plan.release(broken).values, a.values)


@pytest.mark.parametrize("mechanism", ["optimal", "p-identity", "dense", "sparse"])
def test_codes_are_counted_where_a_table_is_needed(mechanism, known_noise):
    codes = np.array([[0, 2, 1], [1, 0, 0], [1, 0, 0], [0, 0, 2], [-1, 0, 0], [2**62, 0, 0]])
    table = np.zeros((2, 3, 2), dtype=int)
    table[0, 2, 1], table[1, 0, 0] = 1, 2
    constraint = so.optimal.PublicBound(10) if mechanism == "sparse" else None
    workload, privacy = so.Marginals((2, 3, 2), k=2), so.ApproxDP(epsilon=1.0, delta=1e-6)
    plan = so.plan(workload, privacy, mechanism=mechanism, constraint=constraint)
    expected = plan.release(table).values
    assert np.array_equal(plan.release(codes).values, expected)
    assert np.array_equal(plan.release(codes[:3].astype(np.uint8)).values, expected)


def test_private_magnitudes_are_clamped_not_refused():
    plan = so.plan(so.Histogram(3), PURE, max_value=100)
    values = plan.release([10**15, -(10**15), 5]).values
    assert abs(values[0] - 100) < 60 and abs(values[1] + 100) < 60
    assert abs(plan.release([10**400, 0, 0]).values[0] - 100) < 60
    huge = np.array([2**64 - 1, 0, 0], dtype=np.uint64)
    assert abs(plan.release(huge).values[0] - 100) < 60
    assert abs(plan.release(np.array([1e300, -1e300, 0.0])).values[0] - 100) < 60


def test_half_integers_of_neighbours_stay_one_apart(known_noise):
    plan = so.plan(so.Histogram(4), PURE)
    a, b = plan.release([0.5, 1.5, -0.5, 2.5]), plan.release([1.5, 2.5, 0.5, 3.5])
    assert np.array_equal(b.values - a.values, np.ones(4))


def test_what_codes_are_does_not_depend_on_their_number(known_noise):
    plan = so.plan(so.Marginals((5, 2), k=1), PURE)
    for count in (4, 5, 6):
        codes = np.tile([4, 1], (count, 1))
        flat = np.zeros(10, dtype=int)
        flat[9] = count
        assert np.array_equal(plan.release(codes).values, plan.release(flat).values)
    with pytest.raises(so.errors.ShapeError):
        so.plan(so.Marginals((2, 3), k=1), PURE).release(np.zeros((2, 3)))
    with pytest.raises(so.errors.InvalidParameterError):
        so.plan(so.Marginals((2, 3), k=1), PURE, integral=False).release([[0, 0]])


def test_real_cells(known_noise):
    plan = so.plan(so.RunningSum(50), APPROX, integral=False, max_value=1000)
    assert plan.fit.domain.fraction_bits >= 14 and plan.fit.inflation < 1e-3
    x = np.linspace(0, 1, 50)
    assert np.all(np.abs(plan.release(x).values - np.cumsum(x)) < 7 * plan.fit.answers_stderr)


def test_deterministic_noise_is_marked_and_refused_by_ledgers():
    plan = so.plan(so.Histogram(3), PURE)
    warns = nullcontext() if so.testing._warned else pytest.warns(UserWarning, match="not private")
    with warns, so.testing.deterministic_noise(b"k" * 32):
        a, b = plan.release([1, 2, 3]), plan.release([1, 2, 3])
        assert np.array_equal(a.values, b.values) and not a.private
        ledger = so.Ledger(so.PureDP(epsilon=10.0))
        with pytest.raises(so.errors.InvalidParameterError):
            plan.release([1, 2, 3], ledger=ledger)
        assert ledger.history == ()
    fresh = plan.release([1, 2, 3])
    assert fresh.private and not np.array_equal(fresh.values, a.values) and not fresh.accounted
    with pytest.raises(so.errors.InvalidParameterError), so.testing.deterministic_noise(b"short"):
        pass


def test_ledger_is_charged_once_per_request():
    plan = so.plan(so.Histogram(3), PURE)
    ledger = so.Ledger(so.PureDP(epsilon=2.0))
    first = plan.release([1, 2, 3], ledger=ledger, request_id="a")
    assert first.accounted
    assert plan.release([9, 9, 9], ledger=ledger, request_id="a") is first
    other = so.plan(so.Histogram(4), PURE)
    with pytest.raises(so.errors.DuplicateRequestError):
        other.release([1, 2, 3, 4], ledger=ledger, request_id="a")
    plan.release([1, 2, 3], ledger=ledger)
    assert len(ledger.history) == 2
    with pytest.raises(so.errors.BudgetExceededError):
        plan.release([1, 2, 3], ledger=ledger)
    assert len(ledger.history) == 2


def test_malformed_calls_spend_nothing():
    plan = so.plan(so.Histogram(3), PURE)
    ledger = so.Ledger(so.PureDP(epsilon=2.0))
    for bad, error in [
        ([1, 2], so.errors.ShapeError),
        ([[1, 2, 3]] * 2, so.errors.ShapeError),
        ([1.0, float("nan"), 2.0], so.errors.InvalidParameterError),
        ([1.0, float("inf"), 2.0], so.errors.InvalidParameterError),
        (["a", "b", "c"], so.errors.DataTypeError),
        (None, so.errors.DataTypeError),
        ([1j, 2, 3], so.errors.DataTypeError),
        (np.array(["2020-01-01"] * 3, dtype="datetime64[D]"), so.errors.DataTypeError),
        ([[1], [1, 2]], so.errors.DataTypeError),
        ([], so.errors.ShapeError),
    ]:
        with pytest.raises(error):
            plan.release(bad, ledger=ledger, request_id="x")
    assert ledger.history == () and ledger.find("x") is None
    with pytest.raises(so.errors.DataTypeError):
        plan.release([1, 2, 3], ledger="no ledger")
    with pytest.raises(so.errors.DataTypeError):
        plan.release([1, 2, 3], request_id=7)


def test_processes_never_share_noise():
    plan = so.plan(so.Histogram(200), PURE)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, plan.release(np.zeros(200)).values.tobytes())
        os._exit(0)
    mine = plan.release(np.zeros(200)).values
    theirs = np.frombuffer(os.read(read, 1600))
    os.waitpid(child, 0)
    # Two zeros in a row are likely; the same 200 integers are not.
    assert (mine != theirs).sum() > 50


PLANTED = 918_273_645


@given(st.integers(0, 6), st.sampled_from(["nan", "text", "shape", "object", "nested", "bool"]))
def test_no_private_value_in_messages_or_their_chain(position, kind):
    """Planted values are searched in the text and in the whole chain of every refusal."""
    plan = so.plan(so.Histogram(7), PURE)
    cells = [PLANTED] * 7
    if kind == "nan":
        cells[position] = float("nan")
    elif kind == "text":
        cells[position] = f"secret-{PLANTED}"
    elif kind == "shape":
        cells = cells[:position]
    elif kind == "object":
        cells[position] = {PLANTED}
    elif kind == "nested":
        cells[position] = [PLANTED, PLANTED]
    else:
        cells[position] = float("inf")
    with pytest.raises(so.SordinoError) as caught:
        plan.release(cells)
    error, seen = caught.value, []
    while error is not None:
        seen += [str(error), repr(error), *map(str, error.args)]
        assert error.__cause__ is None
        assert error.__suppress_context__ or error.__context__ is None
        error = error.__cause__
    assert not any(str(PLANTED) in text for text in seen)
    release = plan.release([PLANTED] * 7)
    assert str(PLANTED) not in repr(release.fit) + str(plan.explain())
    tabulated = tabulate([PLANTED, 1, 2], [0, 5, 10])
    assert str(PLANTED) not in repr(tabulated)


def spread(plan, table, truth, processed, trials=60):
    """Root mean squared errors of processed and unbiased answers, answer by answer; seeds are fixed."""
    errors = []
    for trial in range(trials):
        with so.testing.deterministic_noise(bytes([trial]) * 32):
            release = plan.release(table)
        errors.append((processed(release) - truth, release.unbiased - truth))
    return np.sqrt(np.mean(np.square(errors), axis=0))


@pytest.mark.statistical
@pytest.mark.parametrize(("privacy", "factor"), [(PURE, 0.354), (APPROX, 0.399)], ids=["laplace", "gaussian"])
def test_what_nonnegative_costs_a_sum(privacy, factor):
    """As its docstring says: cells come nearer, the sum of N empty ones has `factor sqrt(N)` times the error."""
    cells = 1000
    plan = so.plan(so.Histogram(cells), privacy)
    each, before = spread(plan, np.zeros(cells, int), np.zeros(cells), lambda release: release.nonnegative().values)
    assert each.mean() < before.mean()
    sums = []
    for trial in range(60):
        with so.testing.deterministic_noise(bytes([trial]) * 32):
            release = plan.release(np.zeros(cells, int))
        sums.append((release.nonnegative().values.sum(), release.unbiased.sum()))
    processed, unbiased = np.sqrt(np.mean(np.square(sums), axis=0))
    # The error of 60 sums is known to a tenth; four of these.
    assert processed / unbiased == pytest.approx(factor * math.sqrt(cells), rel=0.4)
    assert ".4 sqrt(N)" in (so.Release.nonnegative.__doc__ or "")


@pytest.mark.statistical
@pytest.mark.parametrize(("bound", "mean", "last"), [(5, 0.2, 0.0), (10, 0.5, 0.7), (25, 1.5, 2.8)])
def test_what_a_loose_public_bound_costs(bound, mean, last):
    """As the docstring of PublicBound says."""
    table = np.zeros(128, int)
    table[[5, 30, 60, 90, 120]] = 1
    plan = so.plan(so.RunningSum(128), APPROX, constraint=so.optimal.PublicBound(bound))
    projected, unbiased = spread(plan, table, np.cumsum(table), lambda release: release.values)
    ratio = math.sqrt(np.mean(projected**2) / np.mean(unbiased**2))
    assert ratio == pytest.approx(mean, rel=0.2)
    assert projected[-1] / unbiased[-1] == pytest.approx(last, rel=0.2, abs=1e-9)
