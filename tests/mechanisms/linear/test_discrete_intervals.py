"""Intervals around answers with discrete noise: the truth often lies on an end, where rounding must not lose it."""

import math

import numpy as np
import pytest

import sordino as so

N = 12
WORKLOADS = {
    "running sum": so.RunningSum(N),
    "moving average": so.MovingAverage(3, N),
    "kronecker": so.Kronecker((so.RunningSum(4), so.Histogram(3))),
    "union": so.RunningSum(N) | so.Histogram(N),
    "difference": so.workloads.Difference(N, 2),
    "thirds": so.Matrix(np.tri(N) / 3.0),
    "ranges": so.AllRanges(N),
}
RELEASES = 300


def shares(make, truth):
    """Shares of releases in which each answer's intervals hold, least over the answers."""
    held = np.zeros(truth.shape)
    for seed in range(RELEASES):
        with so.testing.deterministic_noise(seed.to_bytes(32, "big")):
            interval = make().interval(0.95)
        held += (interval.lower <= truth) & (truth <= interval.upper)
    return held.min() / RELEASES


# 300 releases and 100 answers: below .88 by chance in less than one of 10^4 runs, were the intervals exact.
LEAST = 0.88


@pytest.mark.parametrize("epsilon", [3.0, 6.0])
@pytest.mark.parametrize("name", WORKLOADS)
def test_intervals_hold_where_the_truth_lies_on_an_end(name, epsilon):
    workload = WORKLOADS[name]
    data = np.random.default_rng(3).integers(0, 10**6, workload.input_shape)
    matrix = np.array([workload.core.row(t) for t in range(workload.core.answers_len)])
    truth = np.array([math.fsum(row * data.ravel()) for row in matrix]).reshape(workload.answers_shape)
    plan = so.plan(workload, so.PureDP(epsilon=epsilon), mechanism="identity")
    assert shares(lambda: plan.release(data), truth) >= LEAST


@pytest.mark.parametrize("epsilon", [3.0, 6.0])
@pytest.mark.parametrize("inner", [so.RunningSum(N), so.MovingAverage(3, N)], ids=["sums", "averages"])
def test_streams(inner, epsilon):
    data = np.random.default_rng(4).integers(0, 1000, N)
    matrix = np.array([inner.core.row(t) for t in range(N)])
    truth = np.array([math.fsum(row * data) for row in matrix])
    plan = so.plan(so.Continual(inner), so.PureDP(epsilon=epsilon))
    assert shares(lambda: plan.release(data), truth) >= LEAST


def test_running_sums_of_whole_numbers_are_whole():
    data = np.random.default_rng(5).integers(0, 2**30, 10_000)
    plan = so.plan(so.RunningSum(10_000), so.PureDP(epsilon=8.0), mechanism="identity")
    with so.testing.deterministic_noise(bytes(32)):
        release = plan.release(data)
        cells = so.plan(so.Histogram(10_000), so.PureDP(epsilon=8.0)).release(data)
    assert (np.rint(release.values) == release.values).all()
    assert (np.cumsum(cells.values) == release.values).all()
    ends = release.interval(0.95)
    assert (np.rint(ends.lower) == ends.lower).all()


@pytest.mark.parametrize("mechanism", ["identity-laplace", "weighted-tree-laplace", "auto"])
def test_the_epsilon_for_a_width_is_the_least(mechanism):
    """What is asked is met by intervals, and by none of a much smaller epsilon; a larger epsilon has none wider."""
    workload = so.RunningSum(60)
    privacy = so.privacy_for(workload, within=0.5, mechanism=mechanism)
    assert privacy.epsilon < 20

    def widest(epsilon):
        plan = so.plan(workload, so.PureDP(epsilon=epsilon), mechanism=mechanism, objective="max")
        interval = plan.release(np.zeros(60, dtype=np.int64)).interval(0.95)
        return float((interval.upper - interval.lower).max()) / 2

    assert widest(privacy.epsilon) <= 0.5 * (1 + 1e-6) < widest(0.9 * privacy.epsilon)
