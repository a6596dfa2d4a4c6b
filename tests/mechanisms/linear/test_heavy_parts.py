"""Parts of a union that count much more than others, under pure privacy."""

import math

import numpy as np
import pytest

import sordino as so
from known_noise import columns
from sordino.accuracy.factorizations import dense
from sordino.workloads import Intervals, Union


def weighed(length, weight):
    """Return running sums, and their last one so many times as important."""
    return Union([so.RunningSum(length), so.GroupBy([np.zeros(length, dtype=int)])], [1.0, weight])


@pytest.mark.parametrize("mechanism", ["weighted-tree", "p-identity"])
@pytest.mark.parametrize("weight", [1e-9, 1.0, 1e3, 1e9])
def test_heavy_parts_are_known_to_trees_and_searches(mechanism, weight):
    workload = weighed(64, weight)
    plan = so.plan(workload, so.PureDP(epsilon=0.05), mechanism=mechanism)
    B, A = columns(plan), dense(workload)
    assert np.abs(B).sum(axis=0).max() <= plan.fit.door.sensitivity[0] * (1 + 1e-12)
    # Noise on whole numbers is nearly the continuous one at this epsilon.
    variances = np.square(np.linalg.norm(A @ np.linalg.pinv(B), axis=1) * math.sqrt(2.0) * plan.fit.door.noise)
    assert plan.fit.stderr == pytest.approx(np.sqrt(variances), rel=2e-3)
    assert plan.rmse == pytest.approx(math.sqrt(np.average(variances, weights=workload.answer_weights())), rel=2e-3)


@pytest.mark.parametrize(
    ("length", "weight", "most"), [(512, 1e7, 0.98), (4096, 1e7, 0.96), (700, 1e3, 0.85), (2000, 1e3, 0.85)]
)
def test_heavy_parts_are_served_better_together_than_one_by_one(length, weight, most):
    plan = so.plan(weighed(length, weight), so.PureDP(epsilon=1.0))
    assert plan.mechanism in {"weighted-tree-laplace", "p-identity-laplace"}
    assert plan.rmse < most * so.plan(weighed(length, weight), so.PureDP(epsilon=1.0), mechanism="split").rmse


@pytest.mark.parametrize("length", [700, 1100])
def test_a_total_is_one_by_whatever_name(length):
    pure = so.PureDP(epsilon=1.0)
    grouped = so.plan(weighed(length, float(length)), pure)
    named = Union([so.RunningSum(length), Intervals([0], [length - 1], length)], [1.0, float(length)])
    assert so.plan(named, pure).rmse == pytest.approx(grouped.rmse, rel=1e-6)


def test_few_sums_of_different_cells_are_a_start_as_they_are():
    halves = Intervals([0, 550], [549, 1099], 1100)
    assert so.plan(Union([so.RunningSum(1100), halves], [1.0, 1100.0]), so.PureDP(epsilon=1.0)).rmse < 8.8


@pytest.mark.filterwarnings("error")
def test_windows_with_negative_taps_are_a_start_too():
    windows = so.Convolution(np.full(697, -2.0), 700, boundary="valid")
    assert so.plan(Union([so.RunningSum(700), windows], [1.0, 700.0]), so.PureDP(epsilon=1.0)).rmse < 9.3


def test_weights_of_parts_that_are_not_listed_count():
    """The error of many queries is that of few, of which all is listed, in the same proportions."""

    def build(length, weight):
        return Union([so.AllRanges(length), so.RunningSum(length)], [1.0, weight * length])

    few, many = (so.plan(build(length, 30.0), so.PureDP(epsilon=1.0)) for length in (8192, 16384))
    assert few.workload.is_listed and not many.workload.is_listed
    assert few.mechanism == many.mechanism == "weighted-tree-laplace"
    assert 1.0 < many.rmse / few.rmse < 1.1
    even = so.plan(build(16384, 1.0 / 16384), so.PureDP(epsilon=1.0))
    assert even.rmse > 1.02 * many.rmse  # running sums err less than ranges
