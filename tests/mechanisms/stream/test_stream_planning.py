"""Planning streams: choices by rule, reference sizes, files, comparisons."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sordino as so
from live import plan_live
from sordino.mechanisms.stream.catalogue import STREAM_MECHANISMS

# Noise multiplier 1: standard errors are those of the factorization.
ONE = so.GaussianDP(mu=1.0)
PURE = so.PureDP(epsilon=1.0)
PRIVACIES = [ONE, so.ApproxDP(epsilon=1.0, delta=1e-6), so.ZeroConcentratedDP(rho=0.3), PURE]
UNITS = [so.AddRemove(1), so.AddRemove(6, per_cell=2), so.ReplaceOne(2), so.UserLevel(3, 4, 2)]
WORKLOADS = [
    so.RunningSum(20),
    so.RunningSum(),
    so.RunningAverage(20),
    so.RunningAverage(),
    so.ExponentialSmoothing(0.9, 20),
    so.ExponentialSmoothing(0.9, normalized=False),
    so.MovingAverage(4, 20),
    so.SlidingWindow(4),
    so.SlidingWindow(1, 20),
    so.Convolution([1.0, -0.5, 2.0], 20, "causal"),
    so.workloads.PolynomialDecay(1.5, 20),
    so.workloads.Difference(20),
]


def printed(value, text):
    """Whether the value is the printed one, up to rounding of the print and of the lattice."""
    digits = len(text.partition(".")[2])
    return abs(value - float(text)) <= 0.5 * 10.0**-digits + 3e-6 * value


@pytest.mark.parametrize(
    ("mechanism", "option", "length", "largest", "mean"),
    [
        ("square-root", None, 2**10, "3.2726", "3.1098"),
        ("square-root", None, 2**12, "3.7139", "3.5513"),
        ("square-root", None, 2**16, "4.5964", "4.4344"),
        ("binary-tree", None, 2**4, "4.472", "3.211"),
        ("binary-tree", None, 2**8, "8.485", "6.003"),
        ("binary-tree", None, 2**10, "10.488", "7.417"),
        ("binary-tree", None, 2**12, "12.490", "8.832"),
        ("binary-tree", None, 2**16, "16.492", "11.662"),
        ("honaker-tree", None, 2**4, "3.723", "2.663"),
        ("honaker-tree", None, 2**8, "6.574", "4.650"),
        ("honaker-tree", None, 2**10, "7.989", "5.650"),
        ("honaker-tree", None, 2**12, "9.404", "6.650"),
        ("honaker-tree", None, 2**16, "12.233", "8.650"),
        ("smooth-tree", None, 2**10, "6.325", "6.325"),
        ("smooth-tree", None, 2**12, "7.348", "7.348"),
        ("smooth-tree", None, 2**16, "9.381", "9.381"),
        ("smooth-tree", None, 2**20, "11.402", "11.402"),
        ("blt", 1, 2**10, "3.8649", "3.4568"),
        ("blt", 2, 2**10, "3.3298", "3.0840"),
        ("blt", 3, 2**10, "3.2776", "3.0587"),
        ("blt", 4, 2**10, "3.2729", "3.0574"),
        ("blt", 5, 2**10, "3.2726", "3.0574"),
        ("blt", 6, 2**10, "3.2726", "3.0573"),
        ("blt", 1, 2**12, "4.8339", "4.3199"),
        ("blt", 2, 2**12, "3.8513", "3.5801"),
        ("blt", 3, 2**12, "3.7324", "3.5060"),
        ("blt", 4, 2**12, "3.7160", "3.4989"),
        ("blt", 5, 2**12, "3.7141", "3.4983"),
        ("blt", 6, 2**12, "3.7139", "3.4983"),
        ("optimal", None, 64, "2.1114", "2.0999"),
        ("optimal", None, 128, "2.3208", "2.3110"),
        ("identity", None, 2**10, "32", "22.6"),
        ("identity", None, 2**12, "64", "45.3"),
        ("output", None, 2**10, "32", "32"),
        ("output", None, 2**12, "64", "64"),
    ],
)
def test_reference_sizes(mechanism, option, length, largest, mean):
    plans = {
        objective: so.plan(
            so.Continual(so.RunningSum(length)), ONE, mechanism=mechanism, degree=option, objective=objective
        )
        for objective in ("max", "mean")
    }
    assert plans["max"].fit.noise_multiplier == 1.0
    assert plans["max"].fit.inflation < 3e-6
    assert printed(plans["max"].max_stderr, largest)
    # Degree 5 finds a little less than what was printed.
    assert printed(plans["mean"].rmse, mean) or (option == 5 and 0 < float(mean) - plans["mean"].rmse < 1e-4)


@pytest.mark.parametrize(("length", "largest", "mean"), [(2**10, 3.0807, 2.9914), (2**12, 3.5180, 3.4276)])
def test_normalized_columns(length, largest, mean):
    """Through buffers: within a ten-thousandth of the exact square root."""
    plan = so.plan(so.Continual(so.RunningSum(length)), ONE, mechanism="normalized-square-root")
    assert plan.max_stderr == pytest.approx(largest, rel=1e-4)
    assert plan.rmse == pytest.approx(mean, rel=1e-4)


@pytest.mark.parametrize(
    ("length", "of_max", "of_mean"),
    [(2**10, ("2.9723", "2.9630"), ("3.1963", "2.9583")), (2**12, ("3.4069", "3.3973"), ("3.6408", "3.3931"))],
)
def test_two_diagonals_come_near_the_optimum(length, of_max, of_mean):
    """No worse than the printed fit where it is judged; the other error belongs to other parameters."""
    largest = so.plan(so.Continual(so.RunningSum(length)), ONE, mechanism="two-diagonals", objective="max")
    mean = so.plan(so.Continual(so.RunningSum(length)), ONE, mechanism="two-diagonals", objective="mean")
    assert largest.max_stderr <= float(of_max[0]) + 2e-4
    assert mean.rmse <= float(of_mean[0 + 1]) + 2e-4
    assert abs(largest.rmse - float(of_max[1])) < 0.01
    assert abs(mean.max_stderr - float(of_mean[0])) < 0.12
    # Of the largest error, above that of the mean: 2.9555 and 3.3898.
    assert printed(largest.fit.bound.value, {2**10: "2.9615", 2**12: "3.3942"}[length])
    assert printed(mean.fit.bound.value, {2**10: "2.9555", 2**12: "3.3898"}[length])


def errors_of_averages(C):
    """Root mean squared error of running averages, from a square strategy whose columns have at most norm 1."""
    n = len(C)
    B = np.tril(np.ones((n, n))) / np.arange(1, n + 1)[:, None] @ np.linalg.inv(C)
    return math.sqrt(float(np.sum(B**2)) / n) * float(np.linalg.norm(C, axis=0).max())


@pytest.mark.parametrize("length", [1, 2, 5, 30, 200])
def test_averages_have_the_least_error(length):
    """The bound is below random strategies and the dense optimum's fixed point; the plan is within 1e-4 of it."""
    plan = so.plan(so.Continual(so.RunningAverage(length)), ONE, mechanism="time-varying-blt")
    assert 1.0 <= plan.optimality < 1.0001
    bound = plan.fit.bound.value
    assert plan.fit.bound.name == "dual of the mean error"
    rng = np.random.default_rng(length)
    A = np.tril(np.ones((length, length))) / np.arange(1, length + 1)[:, None]
    v = np.full(length, 1.0 / length)
    for _ in range(200):
        values, rows = np.linalg.svd(A * np.sqrt(v / length))[1:]
        gains = ((np.sqrt(values)[:, None] * rows / np.sqrt(v)) ** 2).sum(axis=0)
        assert values.sum() <= bound * (1.0 + 1e-5)
        v = v * gains / values.sum()
    assert values.sum() == pytest.approx(bound, rel=2e-3)
    for scale in (0.01, 0.1, 1.0):
        C = np.eye(length) + np.tril(rng.uniform(0.0, scale, (length, length)), -1)
        assert errors_of_averages(C) >= bound


def test_averages_take_it_and_sums_do_not():
    """It is within 1 % of two diagonals for sums; for averages it is a quarter better, and more for long ones."""
    for length in (40, 365, 5000):
        chosen = so.plan(so.Continual(so.RunningAverage(length)), ONE)
        assert chosen.mechanism == "time-varying-blt-gaussian"
        others = so.plan(so.Continual(so.RunningAverage(length)), ONE, effort="closed_form")
        assert chosen.rmse < 0.87 * others.rmse
        assert so.plan(so.Continual(so.RunningSum(length)), ONE).mechanism == "two-diagonals-gaussian"
    largest = so.plan(so.Continual(so.RunningAverage(40)), ONE, objective="max")
    assert largest.mechanism == "identity-gaussian" and largest.optimality == pytest.approx(1.0, abs=1e-5)
    named = so.plan(so.Continual(so.RunningAverage(365)), ONE, objective="max", mechanism="time-varying-blt")
    assert named.optimality < 1.06


@pytest.mark.parametrize(
    ("workload", "horizon"), [(so.RunningAverage(2**20 + 1), "hard"), (so.RunningAverage(9), "soft")]
)
def test_averages_that_are_not_searched_for_say_so(workload, horizon):
    said = "hard horizon of at most 2^20 steps"
    asked = so.Continual(workload, horizon=horizon)
    assert said in so.plan(asked, ONE).explain()
    assert said in so.plan(so.Continual(so.RunningAverage(9)), ONE, effort="closed_form").explain()
    # Where it has no less error, or there is none of it, nothing is said.
    assert said not in so.plan(so.Continual(so.RunningAverage(9)), ONE).explain()
    assert said not in so.plan(asked, PURE).explain()
    assert said not in so.plan(asked, ONE, objective="max").explain()
    assert said not in so.plan(so.Continual(so.RunningSum(9)), ONE).explain()


@pytest.mark.parametrize("length", [2**24 + 1, 2**30, 2**40])
@pytest.mark.parametrize("horizon", ["hard", "soft"])
def test_streams_of_any_length_are_near_a_bound(length, horizon):
    """Within a thirtieth; and who has a hard horizon hears of what shorter ones have."""
    plan = so.plan(so.Continual(so.RunningSum(length), horizon=horizon), ONE)
    assert plan.mechanism == "blt-gaussian"
    assert 1.0 < plan.optimality < 1.03
    assert ("limit          two-diagonals" in plan.explain()) == (horizon == "hard")
    assert "limit  " not in so.plan(so.Continual(so.RunningSum(4096), horizon="hard"), ONE, mechanism="blt").explain()


@pytest.mark.parametrize("decay", [0.5, 0.99])
def test_long_decays_have_the_bound_of_shorter_ones(decay):
    """The blocks on the diagonal are alike: what 2^22 steps have on average, longer series have nearly too."""
    known = so.plan(so.Continual(so.workloads.ExponentialSmoothing(decay, 2**22)), ONE)
    for length in (2**22 + 1, 5 * 2**20 - 1, 2**23 + 2**19):
        plan = so.plan(so.Continual(so.workloads.ExponentialSmoothing(decay, length)), ONE)
        blocks = length // 2**20 * 2**20 / length
        assert plan.fit.bound.value == pytest.approx(blocks * known.fit.bound.value, rel=1e-4)
        assert plan.fit.bound.value <= known.fit.bound.value * (1 + 1e-9)
        assert "bound   " in plan.explain()


def test_long_averages_say_that_no_bound_is_known():
    plan = so.plan(so.Continual(so.RunningAverage(2**23)), ONE)
    assert plan.optimality is None and "bound          none is known" in plan.explain()
    assert "none is known" not in so.plan(so.Continual(so.RunningAverage(2**10)), ONE).explain()


@pytest.mark.parametrize("workload", [so.RunningSum, so.RunningAverage])
@pytest.mark.parametrize(
    "mechanism", ["time-varying-blt", "two-diagonals", "blt", "identity", "honaker-tree", "optimal"]
)
@pytest.mark.parametrize("objective", ["mean", "max"])
def test_no_interval_is_wider_than_the_widest(workload, mechanism, objective):
    """Sums peak before their end where the largest error was minimised; averages at the start."""
    plan = so.plan(so.Continual(workload(100)), ONE, mechanism=mechanism, objective=objective)
    widths = plan.fit.half_width(np.arange(1, 101), 0.95)
    assert plan.fit.largest_half_width(0.95) == widths.max()
    found = so.privacy_for(so.Continual(workload(100)), within=5.0, delta=1e-6, mechanism=mechanism)
    fit = so.plan(so.Continual(workload(100)), found, mechanism=mechanism, objective="max").fit
    assert fit.half_width(np.arange(1, 101), 0.95).max() <= 5.0 * (1.0 + 1e-9)


@pytest.mark.parametrize("degree", [1, 3, 12])
def test_states_may_be_named(degree):
    plan = so.plan(so.Continual(so.RunningSum(100)), ONE, mechanism="time-varying-blt", degree=degree)
    assert plan.fit.memory == 16 * degree
    assert 1.0 <= plan.optimality < {1: 1.4, 3: 1.01, 12: 1.00001}[degree]
    with pytest.raises(so.errors.InvalidParameterError, match="degree"):
        so.plan(so.Continual(so.RunningSum(100)), ONE, mechanism="time-varying-blt", degree=13)


@pytest.mark.parametrize(("length", "rmse"), [(2**10, "13.2"), (2**16, "25.9"), (2**20, "34.4")])
def test_trees_with_subtraction(length, rmse):
    """The printed formula is the mean over a full tree; a stream that ends before is no worse."""
    plan = so.plan(so.Continual(so.RunningSum(length)), PURE, mechanism="subtraction-tree")
    assert plan.rmse <= float(rmse) + 0.06
    assert plan.rmse >= 0.95 * float(rmse)
    assert so.plan(so.Continual(so.RunningSum(length)), PURE).mechanism == "subtraction-tree-laplace"


def test_square_root_variances_are_exact():
    n = 300
    f = np.cumprod([1.0, *((2.0 * k - 1.0) / (2.0 * k) for k in range(1, n))])
    S = np.cumsum(f * f)
    plan = so.plan(so.Continual(so.RunningSum(n)), ONE, mechanism="square-root")
    assert np.allclose(plan.fit.std(np.arange(1, n + 1)), np.sqrt(S * S[-1]), rtol=3e-6)


def test_the_unbounded_counter():
    plan = so.plan(so.Continual(so.RunningSum()), ONE)
    assert plan.mechanism == "blt-gaussian"
    assert plan.fit.memory == 8 * 16
    # A little better in its worst step than the printed 1.39 (3.23, 4.34, 6.01, 7.15 at 2^6, 2^10, 2^16, 2^20).
    for degree, ratio in ((4, 1.6235), (6, 1.3902), (8, 1.3481), (12, 1.3352)):
        plan = so.plan(so.Continual(so.RunningSum()), ONE, mechanism="blt", degree=degree)
        steps = [2**power for power in range(4, 41)]
        oracle = 1.0662758532 + np.log(np.array(steps, dtype=np.float64)) / math.pi
        assert (plan.fit.std(steps) / oracle).max() < ratio + 2e-3


@pytest.mark.parametrize(
    ("decay", "optimum", "ratios"),
    [
        (0.9, "1.4518", ["1.0043", "1.0000"]),
        (0.99, "2.1369", ["1.049", "1.0025", "1.0001"]),
        (0.999, "2.8620", ["1.167", "1.0167", "1.0018", "1.0002"]),
        (0.9999, "3.5938", ["1.369", "1.053", "1.0089", "1.0015"]),
    ],
)
def test_decaying_sums(decay, optimum, ratios):
    workload = so.ExponentialSmoothing(decay, normalized=False)
    for degree, ratio in enumerate(ratios, start=1):
        plan = so.plan(so.Continual(workload), ONE, mechanism="blt", degree=degree, objective="max")
        assert abs(plan.fit.std([2**30])[0] / float(optimum) - float(ratio)) < 5e-4


@pytest.mark.slow
@pytest.mark.parametrize(("window", "optimum"), [(16, 2.113), (64, 2.675), (256, 3.237)])
def test_sliding_windows(window, optimum):
    plan = so.plan(so.Continual(so.SlidingWindow(window)), ONE, objective="max")
    assert optimum - 6e-4 < plan.max_stderr < 1.02 * optimum
    mean = so.plan(so.Continual(so.MovingAverage(window)), ONE, objective="max")
    assert mean.max_stderr == pytest.approx(plan.max_stderr / window, rel=1e-6)


def cases():
    for workload in WORKLOADS:
        for horizon in ("hard", "soft", "unbounded"):
            if horizon == "unbounded" or workload.length is not None:
                yield workload, horizon


@pytest.mark.parametrize(
    "unit",
    [UNITS[0], *(pytest.param(unit, marks=pytest.mark.slow) for unit in UNITS[1:])],
    ids=lambda u: type(u).__name__,
)
@pytest.mark.parametrize(
    "privacy",
    [PRIVACIES[0], *(pytest.param(privacy, marks=pytest.mark.slow) for privacy in PRIVACIES[1:])],
    ids=lambda p: type(p).__name__,
)
@pytest.mark.parametrize(("workload", "horizon"), list(cases()))
def test_every_stream_has_a_plan(workload, horizon, privacy, unit, tmp_path):
    for objective in ("max", "mean") if unit is UNITS[0] and horizon == "hard" else ("mean",):
        plan = so.plan(so.Continual(workload, horizon=horizon), privacy, unit=unit, objective=objective)
        assert plan.workload.horizon == horizon
        assert plan.fit.steps == (workload.length if horizon == "hard" else 2**40)
        assert 0.0 < plan.rmse <= plan.max_stderr * (1.0 + 1e-12)
        assert plan.optimality is None or plan.optimality >= 1.0 - 1e-9
        assert (plan.fit.noise_multiplier is None) == plan.mechanism.endswith("laplace")
        assert privacy is not PURE or plan.mechanism.endswith("laplace")
        assert plan.fit.door.scale >= plan.fit.ratio * sum(plan.fit.sensitivity.values()) * (1.0 - 1e-12)
        assert plan.fit.inflation <= 1e-3
    loaded = so.StreamPlan.load(plan.save(tmp_path / "plan.json"))
    assert loaded.digest == plan.digest
    assert (loaded.rmse, loaded.max_stderr, loaded.cost) == (plan.rmse, plan.max_stderr, plan.cost)
    assert repr(loaded) == repr(plan)
    assert loaded.explain() == plan.explain()


ORDER = [m.name for m in STREAM_MECHANISMS]


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["mean", "max"])
@pytest.mark.parametrize("privacy", PRIVACIES, ids=lambda p: type(p).__name__)
@pytest.mark.parametrize(
    ("workload", "horizon"),
    [*((w, h) for w, h in cases() if h == "hard"), (so.RunningSum(), "unbounded"), (so.RunningSum(20), "soft")],
)
def test_auto_takes_the_simplest_within_one_percent(workload, horizon, privacy, objective):
    comparison = so.compare(so.Continual(workload, horizon=horizon), privacy, objective=objective)
    error = "rmse" if objective == "mean" else "max_stderr"
    automatic = {m.name for m in STREAM_MECHANISMS if m.automatic}
    if workload.length is not None and workload.length <= 32:
        automatic.add("optimal-gaussian")
    if isinstance(workload, so.RunningAverage) and objective == "mean" and horizon == "hard":
        automatic.add("time-varying-blt-gaussian")
    rows = [row for row in comparison.rows if row["mechanism"] in automatic]
    limit = 1.01 * min(row[error] for row in rows)
    expected = min((row["mechanism"] for row in rows if row[error] <= limit), key=ORDER.index)
    plan = so.plan(so.Continual(workload, horizon=horizon), privacy, objective=objective)
    assert plan.mechanism == expected == comparison.chosen
    assert plan.request.mechanism == "auto"
    assert [row[error] for row in comparison.rows] == sorted(row[error] for row in comparison.rows)


def test_horizon_defaults():
    assert so.plan(so.Continual(so.RunningSum(8)), ONE).workload.horizon == "hard"
    assert so.plan(so.Continual(so.RunningSum()), ONE).workload.horizon == "unbounded"
    for horizon in ("hard", "soft"):
        with pytest.raises(so.errors.InvalidParameterError, match="needs a length"):
            so.plan(so.Continual(so.RunningSum(), horizon=horizon), ONE)
    with pytest.raises(so.errors.InvalidParameterError, match="horizon must be"):
        so.plan(so.Continual(so.RunningSum(8), horizon="endless"), ONE)


def test_a_soft_horizon_is_best_at_its_length_and_goes_on():
    hard, soft = (so.plan(so.Continual(so.RunningSum(1024), horizon=h), ONE, mechanism="blt") for h in ("hard", "soft"))
    endless = so.plan(so.Continual(so.RunningSum(1024), horizon="unbounded"), ONE, mechanism="blt")
    assert hard.rmse < soft.rmse < endless.rmse
    assert soft.rmse < 1.05 * hard.rmse
    later = soft.fit.std([1024, 2048, 4096, 2**14])
    assert np.all(np.diff(later) > 0.0)
    assert "at 16n" in soft.explain()
    with pytest.raises(so.errors.InvalidParameterError, match="horizon"):
        hard.fit.std([1025])


@pytest.mark.slow
def test_memory_limits_the_choice():
    workload = so.SlidingWindow(64)
    free = so.plan(so.Continual(workload), ONE)
    assert free.fit.strategy.state_bytes > 0
    small = so.plan(so.Continual(workload), ONE, memory=free.fit.strategy.state_bytes - 1)
    assert small.mechanism != free.mechanism
    assert small.rmse > free.rmse
    assert so.plan(so.Continual(workload), ONE, memory=0).fit.memory == 0
    assert so.plan(so.Continual(workload), ONE, memory=free.fit.strategy.state_bytes).mechanism == free.mechanism
    for memory in (-1, 0.5):
        with pytest.raises((so.errors.InvalidParameterError, so.errors.DataTypeError)):
            so.plan(so.Continual(workload), ONE, memory=memory)


def test_effort_decides_about_the_optimum():
    quick = so.plan(so.Continual(so.RunningSum(24)), ONE, effort="closed_form")
    thorough = so.plan(so.Continual(so.RunningSum(24)), ONE)
    assert quick.mechanism != "optimal-gaussian"
    assert thorough.rmse <= 1.01 * quick.rmse
    with pytest.raises(so.errors.InvalidParameterError, match="effort"):
        so.plan(so.Continual(so.RunningSum(24)), ONE, effort="much")


def test_names():
    for name in ("blt", "blt-gaussian"):
        assert so.plan(so.Continual(so.RunningSum(9)), ONE, mechanism=name).mechanism == "blt-gaussian"
    assert so.plan(so.Continual(so.RunningSum(9)), PURE, mechanism="identity").mechanism == "identity-laplace"
    assert so.plan(so.Continual(so.RunningSum(9)), ONE, mechanism="identity-laplace").mechanism == "identity-laplace"
    with pytest.raises(so.errors.InvalidParameterError, match="unknown mechanism"):
        so.plan(so.Continual(so.RunningSum(9)), ONE, mechanism="blot")
    with pytest.raises(so.errors.InvalidParameterError, match="name it"):
        so.plan(so.Continual(so.RunningSum(9)), ONE, degree=3)
    with pytest.raises(so.errors.DataTypeError):
        so.plan(so.Continual(so.RunningSum(9)), ONE, mechanism=None)
    with pytest.raises(so.errors.UnsupportedMechanismError):
        so.plan(so.Continual(so.RunningSum(9)), PURE, mechanism="blt-gaussian")


@pytest.mark.parametrize(
    ("workload", "mechanism", "horizon"),
    [
        (so.RunningSum(9), "two-diagonals", "soft"),
        (so.RunningSum(9), "time-varying-blt", "soft"),
        (so.RunningSum(2**20 + 1), "time-varying-blt", "hard"),
        (so.SlidingWindow(3, 9), "time-varying-blt", "hard"),
        (so.RunningSum(9), "optimal", "unbounded"),
        (so.RunningSum(2000), "optimal", "hard"),
        (so.RunningSum(9), "square-root", "soft"),
        (so.RunningSum(9), "comb", "hard"),
        (so.RunningSum(9), "outer", "hard"),
        (so.SlidingWindow(3), "blt", "unbounded"),
        (so.SlidingWindow(1), "comb", "unbounded"),
        (so.Convolution([1.0, 2.0], 9, "circular"), "outer", "hard"),
        (so.MovingAverage(3, 9, boundary="same"), "comb", "hard"),
        (so.ExponentialSmoothing(0.5, 9, boundary="circular"), "blt", "hard"),
        (so.Histogram(4), "identity", "unbounded"),
        (so.Marginals([2, 2], k=1), "identity", "unbounded"),
    ],
)
def test_what_no_mechanism_serves(workload, mechanism, horizon):
    with pytest.raises((so.errors.UnsupportedMechanismError, so.errors.InvalidParameterError)):
        so.plan(so.Continual(workload, horizon=horizon), ONE, mechanism=mechanism)


@pytest.mark.parametrize("workload", [so.Histogram(4), so.Convolution([1.0, 2.0], 9, "circular")])
def test_auto_says_why_nothing_serves(workload):
    with pytest.raises(so.errors.UnsupportedMechanismError, match=r"causal"):
        so.plan(so.Continual(workload), ONE)


@pytest.mark.parametrize(
    "arguments",
    [
        {"workload": "sum"},
        {"privacy": 1.0},
        {"unit": "user"},
        {"objective": "median"},
        {"max_value": 0},
        {"max_value": 2**54},
        {"max_value": 1.5},
        {"degree": -1, "mechanism": "blt"},
        {"degree": 99, "mechanism": "blt"},
        {"degree": 4, "mechanism": "subtraction-tree", "privacy": PURE},
    ],
)
def test_arguments_are_checked(arguments):
    arguments = {"workload": so.RunningSum(9), "privacy": ONE} | arguments
    with pytest.raises((so.errors.InvalidParameterError, so.errors.DataTypeError)):
        plan_live(**arguments)


def test_the_default_bound_of_an_entry_costs_nothing():
    plan = so.plan(so.Continual(so.RunningSum(64)), ONE)
    assert plan.fit.domain.max_value == 2**24
    assert plan.fit.inflation < 1e-4
    real = so.plan(so.Continual(so.RunningSum(64)), ONE, integral=False)
    assert real.fit.domain.fraction_bits >= 12
    assert real.fit.inflation < 2e-4
    assert so.plan(so.Continual(so.RunningSum(64)), ONE, max_value=10).fit.domain.max_value == 10


# Files


def altered(path, **change):
    record = json.loads(path.read_text())
    record.update(change)
    path.write_text(json.dumps(record))


def resigned(plan, change):
    """A record with a digest that fits, as somebody would write who knows the format."""
    record = json.loads(json.dumps(plan.record()))
    for names, value in change.items():
        place = record
        *above, last = names.split(".")
        for name in above:
            place = place[int(name) if name.isdigit() else name]
        if value is KeyError:
            del place[last]
        else:
            place[last] = value
    return record


@pytest.fixture
def plan():
    return so.plan(so.Continual(so.RunningSum(50)), ONE, mechanism="blt", max_value=100)


def test_altered_files_are_refused(plan, tmp_path):
    path = plan.save(tmp_path / "plan.json")
    for change in ({"fitted": "x"}, {"noise_ratio": 0.1}, {"digest": "0" * 64}, {"extra": 1}):
        plan.save(path)
        altered(path, **change)
        with pytest.raises(so.errors.PlanFileError, match="altered"):
            so.StreamPlan.load(path)
    for text in ("", "[]", "{}", "no json", '"x"', "null"):
        path.write_text(text)
        with pytest.raises(so.errors.PlanFileError):
            so.StreamPlan.load(path)
    with pytest.raises(so.errors.InputFileError):
        so.StreamPlan.load(tmp_path / "none.json")
    with pytest.raises(so.errors.InputFileError):
        plan.save(tmp_path / "no" / "such")


@pytest.mark.parametrize(
    "change",
    [
        {"doors.0.quarter_units": 1000},
        {"doors.0.grid": 0},
        {"doors.0.quarter_units": "x"},
        {"cost": {"kind": "gaussian", "mu_squared": "1/100"}},
        {"request.privacy": {"kind": "gaussian", "mu": 0.5}},
        {"request.unit.records": 7},
        {"request.workload.spec.cells_per_record": 5},
        {"request.workload.spec.cells_per_record": 0},
        {"request.workload.spec.dim": 0},
        {"request.workload.spec.one_signed": "no"},
        {"request.workload.spec.horizon": "soft"},
        {"request.workload.spec.horizon": "never"},
        {"request.objective": "least"},
        {"fitted": "binary-tree-gaussian"},
        {"fitted": "none"},
        {"request.degree": 2},
        {"request.degree": "2"},
        {"request.workload.spec.workload.spec.length": 60},
        {"request.workload.spec.workload.kind": "histogram"},
        {"request.workload": 3},
        {"request.integral": 1},
        {"domain.fraction_bits": 4},
        {"domain.max_value": 2**40},
        {"family": "linear"},
        {"request.unit": KeyError},
        {"doors.0.grid": KeyError},
        {"request.mechanism": KeyError},
        {"parameters": "0" * 64},
    ],
    ids=str,
)
def test_records_that_understate_are_refused(plan, change):
    assert so.StreamPlan.from_record(resigned(plan, {})).digest == plan.digest
    with pytest.raises(so.errors.PlanFileError):
        so.StreamPlan.from_record(resigned(plan, change))


def test_plans_of_series_and_of_streams_are_not_mixed_up(plan, tmp_path):
    series = so.plan(so.RunningSum(50), ONE)
    path = series.save(tmp_path / "series.json")
    with pytest.raises(so.errors.PlanFileError):
        so.StreamPlan.load(path)
    with pytest.raises(so.errors.PlanFileError):
        so.ReleasePlan.load(plan.save(tmp_path / "stream.json"))


# Words and tables


def test_explain(plan):
    text = plan.explain()
    for part in ("RunningSum(length=50)", "blt-gaussian, as asked", "hard: 50 steps", "[-100, 100]", "optimality"):
        assert part in text
    assert "chosen by auto" in so.plan(so.Continual(so.RunningSum(50)), ONE).explain()
    assert "for ever" in so.plan(so.Continual(so.RunningSum()), ONE).explain()
    assert "over all steps together" in plan.guarantee()
    assert "2-Gaussian" in plan.guarantee(2)
    with pytest.raises(so.errors.InvalidParameterError):
        plan.guarantee(0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workload", "horizon"), [*((w, h) for w, h in cases() if h == "hard"), (so.RunningSum(), "unbounded")]
)
def test_comparison_columns(workload, horizon):
    comparison = so.compare(so.Continual(workload, horizon=horizon), ONE)
    lines = str(comparison).splitlines()
    assert lines[0].split()[:3] == ["mechanism", "rmse", "max"]
    assert sum(" *" in line for line in lines) == 1
    assert comparison.steps[-1] == (workload.length or 2**40)
    for row in comparison.rows:
        assert len(row["std"]) == len(comparison.steps)
        assert all(np.isfinite([row["rmse"], row["max_stderr"], *row["std"], row["memory"], row["operations"]]))
        assert row["optimality"] is None or row["optimality"] >= 1.0 - 1e-9
        plan = so.plan(so.Continual(workload, horizon=horizon), ONE, mechanism=row["mechanism"])
        assert plan.rmse == row["rmse"]
        assert plan.fit.std(comparison.steps).tolist() == list(row["std"])
    assert so.plan(so.Continual(workload, horizon=horizon), ONE).compare().rows == comparison.rows


def test_bounds_of_endless_filters_hold_over_the_steps_that_are_judged():
    """A memory of a million steps is not filled within the first 2^20: the limit for ever is above what is reached."""
    for workload, least in ((so.ExponentialSmoothing(0.999999), 0.9), (so.ExponentialSmoothing(0.99), 0.999)):
        plan = so.plan(so.Continual(workload), ONE)
        assert least < 1.0 / plan.optimality <= 1.0


@pytest.mark.statistical
def test_laplace_intervals_of_long_memories_are_wide_enough():
    """Almost Gaussian: 1.96 standard errors, not less, however many taps there are."""
    for decay in (0.999, 0.9999, 0.999999):
        plan = so.plan(so.Continual(so.ExponentialSmoothing(decay)), PURE, mechanism="identity")
        for step in (10, 2**14, 2**24):
            ratio = plan.fit.half_width([step], 0.95)[0] / plan.fit.std([step])[0]
            assert 1.955 < ratio < 2.15


@given(st.lists(st.integers(1, 50), min_size=1, max_size=5))
def test_std_of_any_steps(steps):
    plan = so.plan(so.Continual(so.RunningSum(50)), ONE, mechanism="binary-tree")
    ones = np.array([bin(t).count("1") for t in steps])
    assert np.allclose(plan.fit.std(steps), np.sqrt(ones * 6.0), rtol=1e-5)


def test_std_checks_its_steps(plan):
    for steps in ([0], [51], [-1], [2**64]):
        with pytest.raises((so.errors.InvalidParameterError, so.errors.DataTypeError)):
            plan.fit.std(steps)
    for steps in ([1.0], ["1"]):
        with pytest.raises(so.errors.DataTypeError):
            plan.fit.std(steps)
    for steps in (3, [[1]], "1"):
        with pytest.raises(so.errors.ShapeError):
            plan.fit.std(steps)
