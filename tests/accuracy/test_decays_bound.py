"""The bound for exponential decays, which counts both ends of the series."""

import numpy as np
import pytest

import sordino as so
from sordino import _core
from sordino.accuracy.diagonal_bound import diagonal_mean

ONE = so.GaussianDP(mu=1.0)


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize(("decay", "length"), [(0.5, 40), (0.97, 120), (1 - 4 / 300, 300)])
def test_bounds_are_between_the_singular_values_and_the_least_error(decay, length, normalized):
    workload = so.ExponentialSmoothing(decay, length, normalized=normalized)
    taps = decay ** np.arange(length)
    A = np.array([[taps[t - j] if j <= t else 0.0 for j in range(length)] for t in range(length)])
    A *= 1.0 - decay if normalized else 1.0
    least = so.plan(workload, ONE, mechanism="optimal").rmse
    nuclear = np.linalg.norm(A, "nuc") / length
    first = 1.0 - decay if normalized else 1.0
    bound = first * _core.decay_bound(length, decay)
    assert nuclear * (1 - 1e-6) <= bound <= least
    assert bound >= least / 1.001


@pytest.mark.parametrize("length", [1024, 1025, 4096, 2**17])
def test_decays_over_the_whole_series_are_near_it_at_any_length(length):
    plan = so.plan(so.ExponentialSmoothing(1 - 4 / length, length), ONE, effort="closed_form")
    assert 1.0 <= plan.optimality < 1.00597


def test_where_ends_do_not_count_none_is_swept():
    workload = so.ExponentialSmoothing(0.9, 2**17)
    swept = (1 - 0.9) * _core.decay_bound(2**17, 0.9)
    assert swept != diagonal_mean(workload) == pytest.approx(swept, rel=2e-5)
