"""Discrete Laplace noise on the rows' own lattices: privacy by enumeration, variances by their definition, references."""

import itertools
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sordino as so

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "conformance"))
import cases

PURE = so.PureDP(epsilon=1.0)
PLAIN = [case for case in cases.table_mechanisms() if case[3] == "plain" and case[2].endswith("laplace")]


def variance(rate):
    return 0.5 / np.sinh(0.5 * np.minimum(rate, 500.0)) ** 2


@pytest.mark.parametrize(
    ("epsilon", "expected"),
    [(0.05, 799.8333541646), (0.1, 199.8334166336), (0.5, 7.8353961781), (1.0, 1.8413471884), (3.0, 0.1102820110),
     (5.0, 0.0136593458), (8.0, 6.713756231e-4)],
)  # fmt: skip
def test_a_count(epsilon, expected):
    plan = so.plan(so.Histogram(4), so.PureDP(epsilon=epsilon))
    assert math.isclose(plan.rmse**2, expected, rel_tol=1e-8)
    assert "discrete Laplace" in plan.explain() and "whole counts" in plan.explain()


@pytest.mark.parametrize(("epsilon", "rmse"), [(1.0, 18.357), (3.0, 4.492), (8.0, 0.3505)])
def test_running_sums_of_cells(epsilon, rmse):
    plan = so.plan(so.RunningSum(365), so.PureDP(epsilon=epsilon), mechanism="identity")
    assert math.isclose(plan.rmse, rmse, rel_tol=2e-4)
    chosen = so.plan(so.RunningSum(365), so.PureDP(epsilon=epsilon))
    assert chosen.rmse <= plan.rmse * (1 + 1e-12)
    assert (chosen.mechanism == "identity-laplace") == (epsilon == 8.0)


@pytest.mark.parametrize(
    "case", PLAIN, ids=[f"{mechanism}-{table}-{type(p).__name__}" for table, p, mechanism, _ in PLAIN]
)
def test_variances_are_those_of_the_weights_and_no_weights_are_better(case):
    """Of every answer: the variance from its weights, steps and rates; and least squares by their definition."""
    plan = cases.table_plan(*case)
    fit = plan.fit
    if fit.rows is None or fit.mechanism.recovered or isinstance(plan.workload, so.workloads.OfRecords):
        pytest.skip("no discrete noise, or none that is answered as it is")
    steps, rates = fit.rows
    noise = steps**2 * variance(rates)
    matrix = np.array([plan.workload.core.row(t) for t in range(plan.workload.core.answers_len)])
    stderr = fit.answers_stderr.ravel()
    for t, row in enumerate(matrix):
        weights = fit.strategy.answer_weights(t, row)
        assert math.isclose(math.sqrt((weights**2 * noise).sum()), stderr[t], rel_tol=1e-9)
        if fit.mechanism.strategy in {"tree", "weighted-tree", "laminar", "p-identity"}:
            own = fit.strategy.weights(row)
            assert np.allclose(own, weights, rtol=1e-9, atol=1e-12)
    known = {"tree", "weighted-tree", "laminar", "p-identity"}
    if fit.mechanism.strategy in known and not isinstance(plan.workload, so.workloads.SortedHistogram):
        # The measured matrix, column by column: what one record changes under a known key.
        cells = matrix.shape[1]
        with so.testing.deterministic_noise(bytes(32)):
            zero = np.zeros(plan.workload.input_shape, dtype=int)
            base = plan.release(zero).measured.values()
            columns = []
            for j in range(cells):
                one = zero.copy().reshape(-1)
                one[j] = 1
                columns.append(plan.release(one.reshape(zero.shape)).measured.values() - base)
        B = np.array(columns).T
        covariance = np.linalg.pinv(B.T @ np.diag(1.0 / noise) @ B)
        best = np.sqrt(np.einsum("ij,jk,ik->i", matrix, covariance, matrix))
        assert np.allclose(stderr, best, rtol=1e-7)


def test_rates_differ_where_weights_do():
    plan = so.plan(so.RunningSum(64), so.PureDP(epsilon=6.0), mechanism="weighted-tree")
    steps, rates = plan.fit.rows
    assert len(np.unique(steps)) > 1 and np.allclose(rates / steps, (rates / steps)[0], rtol=1e-12)
    # Each level by the law of its own, which the least squares know.
    rng = np.random.default_rng(3)
    x = rng.integers(0, 50, 64)
    key = iter(range(10**6))
    errors = []
    for _ in range(3000):
        with so.testing.deterministic_noise(next(key).to_bytes(32, "little")):
            errors.append(plan.release(x).values - np.cumsum(x))
    ratio = np.mean(np.array(errors) ** 2, axis=0) / plan.fit.answers_stderr**2
    # The mean over 64 answers of 3000 draws: relative standard deviation below .03; false alarm below 1e-6 at 5.
    assert abs(ratio.mean() - 1.0) < 0.15


@settings(deadline=None, max_examples=25)
@given(
    epsilon=st.floats(0.3, 4.0),
    records=st.integers(1, 3),
    mechanism=st.sampled_from(["identity-laplace", "tree-laplace", "weighted-tree-laplace", "haar-laplace"]),
)
def test_probabilities_of_neighbours_by_enumeration(epsilon, records, mechanism):
    """Of every outcome near both: the ratio of the products of exact probabilities is at most exp(epsilon)."""
    plan = so.plan(
        so.RunningSum(3), so.PureDP(epsilon=epsilon), unit=so.AddRemove(records), mechanism=mechanism, max_value=100
    )
    steps, rates = plan.fit.rows
    key = bytes(32)
    with so.testing.deterministic_noise(key):
        base = plan.release([0, 0, 0]).measured.values()
        for change in itertools.product(range(-records, records + 1), repeat=3):
            if sum(map(abs, change)) > records:
                continue
            moved = (plan.release(list(change)).measured.values() - base) / steps
            assert np.array_equal(moved, np.rint(moved))
            # log P(k) - log P(k - moved) is largest where all coordinates are on the far side.
            assert float(rates @ np.abs(moved)) <= epsilon * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", [1.0, 4.0, 9.0])
def test_released_cells_have_the_law(epsilon):
    """Chi-square of 2·10^5 released counts at 5.5 standard deviations."""
    plan = so.plan(so.Histogram(200_000), so.PureDP(epsilon=epsilon), max_value=1000)
    with so.testing.deterministic_noise(bytes([7] * 32)):
        noise = plan.release(np.full(200_000, 11)).values - 11
    assert np.array_equal(noise, np.rint(noise))
    count = len(noise)
    k = np.arange(-60, 61)
    expected = count * math.tanh(epsilon / 2) * np.exp(-epsilon * np.abs(k))
    seen = np.array([(noise == each).sum() for each in k])
    kept = expected >= 10
    statistic, freedom = float((((seen - expected) ** 2) / expected)[kept].sum()), int(kept.sum()) - 1
    if freedom == 0:
        return
    spread = math.sqrt(2.0 / (9.0 * freedom))
    assert abs(((statistic / freedom) ** (1 / 3) - (1 - spread**2)) / spread) < 5.5


def test_real_cells_have_the_lattice_of_their_grid():
    plan = so.plan(so.Histogram(50), so.PureDP(epsilon=1.0), integral=False, max_value=100)
    steps, _ = plan.fit.rows
    assert np.array_equal(steps, np.full(50, 2.0**-plan.fit.domain.fraction_bits))
    assert math.isclose(plan.rmse, math.sqrt(2.0), rel_tol=2e-4)  # steps so small that nothing is gained
    units = plan.release(np.full(50, 0.123)).measured
    assert units.grid == -plan.fit.domain.fraction_bits


def test_a_matrix_takes_the_greatest_common_divisor_of_every_row():
    plan = so.plan(so.Matrix([[6, 0, 9], [4, 4, 4], [1, 0, 1]]), so.PureDP(epsilon=20.0), mechanism="output")
    steps, rates = plan.fit.rows
    assert list(steps) == [3.0, 4.0, 1.0]
    scale = plan.fit.door.scale
    assert np.allclose(rates, steps / scale, rtol=1e-12)
    assert np.allclose(plan.fit.answers_stderr**2, steps**2 * variance(rates), rtol=1e-9)
    more = plan.release([1, 2, 3]).answer(so.Matrix([[7, 0, 10]]))
    # The first and the third row together.
    assert math.isclose(float(more.stderr[0]) ** 2, float((steps**2 * variance(rates))[[0, 2]].sum()), rel_tol=1e-9)


@pytest.mark.parametrize("mechanism", ["identity-laplace", "tree-laplace", "weighted-tree-laplace", "output-laplace"])
@pytest.mark.parametrize("epsilon", [0.7, 3.0])
def test_intervals_cover(mechanism, epsilon):
    """2000 releases, every answer: no interval misses more often than it may, at 5.5 standard deviations."""
    plan = so.plan(so.RunningSum(12), so.PureDP(epsilon=epsilon), mechanism=mechanism)
    x = np.arange(12)
    truth, misses, repeats = np.cumsum(x), np.zeros(12), 2000
    interval = plan.release(x).interval(0.9)
    half = (interval.upper - interval.lower) / 2
    for seed in range(repeats):
        with so.testing.deterministic_noise(seed.to_bytes(32, "big")):
            misses += np.abs(plan.release(x).values - truth) > half + 1e-9
    assert (misses <= repeats * 0.1 + 5.5 * math.sqrt(repeats * 0.09)).all()


def total(cells):
    return so.GroupBy([[0] * cells])


UNEVEN = [
    so.RunningSum(20),
    so.AllRanges(12),
    so.GroupBy([[0] * 12, [0] * 6 + [1] * 6, list(range(12))], weights=[3, 1, 1]),
    so.GroupBy([[0] * 12, list(range(12))], weights=[100, 1]),
    so.workloads.Intervals([0, 2, 3], [11, 5, 3], 12),
    so.RunningSum(12) | 1e5 * total(12),
    so.Kronecker([so.RunningSum(6), so.AllRanges(3)]),
    so.Kronecker([so.GroupBy([[0, 0, 0, 1], [0, 1, 2, 3]]), so.RunningSum(4)]),
    so.SlidingWindow(7, 20) | so.Histogram(20),
    so.Matrix([[1, 1, 1, 1], [1, 0, 0, 0.5], [0, 1, 1, 0]]),
    so.SlidingWindow(1100, 1100, boundary="valid"),
]


@pytest.mark.parametrize("epsilon", [14.0, 30.0, 60.0, 200.0, 1e6])
@pytest.mark.parametrize("workload", UNEVEN, ids=str)
def test_answers_are_as_near_as_stated_at_any_budget(workload, epsilon):
    """Noise on rows with large steps is smaller by powers of ten: no estimate is of what rounding leaves."""
    privacy = so.PureDP(epsilon=epsilon)
    x = (np.arange(workload.core.input_len) % 7 + 5).reshape(workload.input_shape)
    truth = np.asarray(workload.core.apply(x.reshape(-1).astype(float)))
    for row in so.compare(workload, privacy).rows:
        plan = so.plan(workload, privacy, mechanism=row["mechanism"])
        with so.testing.deterministic_noise(bytes(range(32))):
            off = np.abs(plan.release(x).unbiased.reshape(-1) - truth)
        # The tail beyond 25 deviations of Laplace noise is e^-35; of discrete noise no more.
        assert (off <= 25.0 * plan.fit.stderr.reshape(-1) + 1e-10 * np.abs(truth).max()).all(), row["mechanism"]
