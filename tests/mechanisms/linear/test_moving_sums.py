"""Windows as sums of neighbouring steps, and several filters of one series measured together."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sordino as so
from known_noise import released
from sordino import _core
from sordino.accuracy.diagonal_bound import _filters_diagonal
from sordino.accuracy.factorizations import dense
from sordino.workloads import Intervals, Union

ONE = so.GaussianDP(mu=1.0)
PURE = so.PureDP(epsilon=1.0)


def intervals(workload):
    """Return the cells of every answer as an interval, and the tap."""
    rows = dense(workload)
    first = np.argmax(rows != 0, axis=1)
    last = rows.shape[1] - 1 - np.argmax(rows[:, ::-1] != 0, axis=1)
    return Intervals(first, last, rows.shape[1]), float(workload.kernel[0])


WINDOWS = [
    so.SlidingWindow(7, 40),
    so.MovingAverage(12, 40, boundary="same"),
    so.MovingAverage(13, 41, boundary="same"),
    so.SlidingWindow(20, 45, boundary="valid"),
    so.Convolution(np.full(50, -0.5), 40, "causal"),
    so.Convolution(np.full(9, 3.0), 18, "same"),
]


@pytest.mark.parametrize("mechanism", ["weighted-tree", "p-identity"])
@pytest.mark.parametrize("workload", WINDOWS, ids=str)
def test_windows_have_the_errors_of_intervals(workload, mechanism):
    same, tap = intervals(workload)
    plan = so.plan(workload, PURE, mechanism=mechanism, integral=False)
    known = so.plan(same, PURE, mechanism=mechanism, integral=False)
    # Weights of a tree are the same; a search ends within its tolerance.
    within = 1e-9 if mechanism == "weighted-tree" else 2e-3
    assert plan.rmse == pytest.approx(abs(tap) * known.rmse, rel=within)
    x = np.arange(workload.steps) * 37 % 101
    loud = so.plan(workload, so.PureDP(epsilon=1e6), mechanism=mechanism)
    assert released(loud, x).values == pytest.approx(dense(workload) @ x, abs=1e-2)


@pytest.mark.parametrize("length", [500, 2000, 5000])
def test_wide_windows_are_no_noise_on_every_cell_under_pure_privacy(length):
    """By noise on every cell the error rises with the root of the window."""
    workload = so.SlidingWindow(length // 4, length)
    plan, cells = so.plan(workload, PURE), so.plan(workload, PURE, mechanism="identity")
    assert plan.mechanism in {"weighted-tree-laplace", "p-identity-laplace"}
    assert plan.rmse < 0.75 * cells.rmse
    assert plan.rmse < 1.05 * so.plan(so.AllRanges(length), PURE).rmse


@pytest.mark.parametrize("queries", [so.RunningSum, so.AllRanges], ids=["sums", "ranges"])
def test_a_total_goes_with_sums_of_neighbours(queries):
    """As much as all else together: no step where searches end, nor from the total counted as a range."""

    def build(length):
        weight = float(queries(length).core.answers_len)
        return queries(length) | weight * so.GroupBy([np.zeros(length, dtype=int)])

    errors = [so.plan(build(length), PURE).rmse for length in (256, 257, 1024, 1025, 4096, 4097)]
    assert errors[1] < 1.01 * errors[0] and errors[3] < 1.01 * errors[2] and errors[5] < 1.16 * errors[4]
    plan = so.plan(build(300), PURE)
    assert plan.mechanism == "p-identity-laplace"
    x = np.arange(300) * 37 % 101
    loud = so.plan(build(300), so.PureDP(epsilon=1e6), mechanism="weighted-tree")
    assert released(loud, x).values == pytest.approx(dense(build(300)) @ x, abs=1e-2)


def test_narrow_windows_stay_with_the_cells():
    assert so.plan(so.SlidingWindow(3, 5000), PURE).mechanism == "identity-laplace"


def test_windows_along_the_axes_of_a_product():
    workload = so.Kronecker([so.SlidingWindow(96, 256), so.Histogram(5)])
    plan, cells = so.plan(workload, PURE), so.plan(workload, PURE, mechanism="identity")
    assert plan.mechanism == "p-identity-laplace" and plan.rmse < 0.75 * cells.rmse


@pytest.mark.parametrize(
    "workload",
    [
        so.Convolution([1.0, 2.0, 1.0], 40, "causal"),
        so.MovingAverage(7, 40, boundary="circular"),
        so.ExponentialSmoothing(0.5, 40),
        so.MovingAverage(7, 40) | so.Convolution([1.0, -1.0], 40, "causal"),
    ],
    ids=str,
)
def test_other_filters_have_no_trees(workload):
    with pytest.raises(so.errors.UnsupportedMechanismError):
        so.plan(workload, PURE, mechanism="weighted-tree")


def board(length, boundary="causal"):
    """Return the steps, the last 7 and the last 28, as a dashboard shows them."""
    each = so.SlidingWindow(7, length, boundary=boundary) | so.SlidingWindow(28, length, boundary=boundary)
    return each | so.Histogram(length)


@pytest.mark.parametrize(("length", "most"), [(365, 1.002), (1025, 1.004), (8760, 1.0005), (2**16, 1.0001)])
def test_several_windows_and_the_steps_are_near_their_bound(length, most):
    """Measured apart, with the best shares, they have 1.65 times the least error."""
    plan = so.plan(board(length), ONE)
    assert plan.mechanism == "fourier-gaussian"
    assert 1.0 <= plan.optimality < most
    assert plan.rmse < 0.7 * so.plan(board(length), ONE, mechanism="split-gaussian").rmse


@pytest.mark.parametrize("length", [64, 1025, 5040])
def test_filters_of_a_ring_attain_their_bound(length):
    workload = 3.0 * so.MovingAverage(5, length, boundary="circular") | board(length, "circular")
    plan = so.plan(workload, ONE)
    assert plan.mechanism == "fourier-gaussian"
    assert 1.0 <= plan.optimality < 1.0 + 1e-6
    # The root of the mean of |λ|, whatever the weights are.
    weights = [3.0, 1.0, 1.0, 1.0]
    kernels = [np.full(5, 0.2), np.ones(7), np.ones(28), np.ones(1)]
    power = sum(w * np.abs(np.fft.fft(h, length)) ** 2 for w, h in zip(weights, kernels, strict=True))
    assert plan.rmse == pytest.approx(np.mean(np.sqrt(power)) / math.sqrt(sum(weights)), rel=1e-6)


def filters(draw, length, circular):
    """Return a filter of a series, or its cells."""
    taps = draw(st.lists(st.sampled_from([-1.0, 0.5, 1.0, 2.0]), min_size=1, max_size=min(length, 6)))
    boundary = "circular" if circular else draw(st.sampled_from(["causal", "same", "valid"]))
    return draw(st.sampled_from([so.Histogram(length), so.Convolution(taps, length, boundary)]))


@st.composite
def unions(draw):
    length, circular = draw(st.integers(2, 30)), draw(st.booleans())
    boundary = "circular" if circular else "causal"
    parts = [filters(draw, length, circular) for _ in range(draw(st.integers(1, 3)))]
    parts.append(so.MovingAverage(2, length, boundary=boundary))
    return Union(parts, [draw(st.sampled_from([0.25, 1.0, 4.0])) for _ in parts])


@settings(max_examples=60, deadline=None)
@given(unions())
def test_filters_together_answer_and_state_their_errors(workload):
    """Against dense matrices: answers, the variance of each, and the bound, which no strategy is below."""
    strategy = _core.Strategy.fourier_filters(workload.core, list(workload.weights), so.AddRemove().relation())
    A, n = dense(workload), workload.core.input_len
    variances = strategy.variances()
    weights = np.array([strategy.weights(row) for row in A])
    assert variances == pytest.approx(np.sum(weights**2, axis=1), rel=1e-6)
    plan = so.plan(workload, so.GaussianDP(mu=1e6), mechanism="fourier-gaussian")
    x = np.arange(n) * 37 % 101
    assert released(plan, x).values == pytest.approx(A @ x, abs=1e-2)
    best = so.plan(workload, ONE, mechanism="optimal-gaussian")
    assert plan.rmse * 1e6 >= best.rmse * (1.0 - 1e-3)
    assert _filters_diagonal(workload) <= best.rmse * (1.0 + 1e-9)


@pytest.mark.parametrize(
    ("workload", "epsilon"),
    [
        *((so.SlidingWindow(n, n, boundary="valid"), eps) for n in (2, 16, 64, 1000) for eps in (14, 22, 26, 30, 1e6)),
        (so.Convolution(np.ones(15), 8, "same"), 30),
        (so.Convolution(np.full(16, 1e40), 16, "valid"), 1e6),
        (so.RunningSum(64), 200),
        (so.AllRanges(64), 200),
        (so.RunningSum(300) | 1e6 * so.GroupBy([np.zeros(300, dtype=int)]), 60),
    ],
    ids=str,
)
def test_trees_decode_whatever_the_budget(workload, epsilon):
    """One level may be of noise that is 10^30 times smaller than that of another."""
    plan = so.plan(workload, so.PureDP(epsilon=epsilon), mechanism="weighted-tree")
    x = np.arange(workload.core.input_len) % 7 + 5
    truth = dense(workload) @ x
    off = np.abs(released(plan, x).unbiased - truth)
    assert (off <= 12.0 * plan.fit.stderr.reshape(-1) + 1e-12 * np.abs(truth)).all()


@pytest.mark.parametrize("scale", [1e-20, 1e-30])
@pytest.mark.parametrize("length", [5, 8, 64])
def test_filters_too_different_for_one_strategy_are_refused(length, scale):
    """A frequency that one lacks is measured by what rounding leaves, which is too little for what another asks."""
    window = so.MovingAverage(length, length, boundary="circular")
    for workload in (
        window | so.Convolution([scale], length, "circular"),
        Union([window, so.Histogram(length)], [1.0, scale**2]),
    ):
        with pytest.raises(so.errors.UnsupportedMechanismError):
            so.plan(workload, ONE, mechanism="fourier-gaussian")
        assert math.isfinite(so.plan(workload, ONE).rmse)


@pytest.mark.parametrize("queries", [so.RunningSum, so.AllRanges], ids=["sums", "ranges"])
def test_windows_beside_lines_are_intervals(queries):
    length = 1500
    plan = so.plan(queries(length) | so.SlidingWindow(30, length), ONE)
    same, _ = intervals(so.SlidingWindow(30, length))
    assert plan.mechanism == "balanced-gaussian"
    assert plan.rmse == pytest.approx(so.plan(queries(length) | same, ONE).rmse, rel=1e-6)


@pytest.mark.parametrize("length", [8192, 16_000])
def test_windows_go_with_lines_of_any_length(length):
    """Of more than 8,192 cells each part had a strategy of its own, or all the Fourier basis: 1.05 times the bound."""
    plan = so.plan(so.RunningSum(length) | so.MovingAverage(7, length), ONE)
    assert plan.mechanism == "balanced-gaussian"
    assert plan.fit.optimality < 1.008
