"""Intervals beyond what is written out row by row: alone, along the axes of products, beside others."""

import numpy as np
import pytest

import sordino as so
from known_noise import released
from sordino.accuracy.factorizations import condensed
from sordino.workloads import Intervals, Union

ONE = so.GaussianDP(mu=1.0)


def some(count, cells, weighed=False, seed=1):
    rng = np.random.default_rng(seed)
    first, last = np.sort(rng.integers(0, cells, (2, count)), axis=0)
    return Intervals(first, last, cells, rng.uniform(0.1, 10.0, count) if weighed else None)


@pytest.mark.parametrize("weighed", [False, True])
def test_few_rows_stand_for_them(weighed):
    workload = some(3000, 50, weighed)
    rows, scale = condensed(workload)
    A = np.zeros((3000, 50))
    for row, first, last in zip(A, workload.first, workload.last, strict=True):
        row[first : last + 1] = 1.0
    weights = np.ones(3000) if workload.weights is None else workload.weights
    assert rows.shape == (50, 50) and scale == pytest.approx(weights.sum() ** -0.5)
    assert rows.T @ rows == pytest.approx((A.T * weights) @ A, rel=1e-12)


@pytest.mark.parametrize("weighed", [False, True])
def test_more_of_them_have_no_more_error_over_the_least(weighed):
    """Beyond 8,192 rows of 1,024 cells there was noise on every cell: five times the error."""
    for count in (5000, 20_000):
        plan = so.plan(some(count, 1000, weighed), ONE)
        assert 1.0 <= plan.optimality < 1.01


def test_so_have_products_and_unions_with_them():
    intervals = some(20_000, 600)
    product = so.plan(so.Kronecker([intervals, so.Histogram(5)]), ONE)
    assert 1.0 <= product.optimality < 1.01
    assert 1.0 <= so.plan(Union([intervals, so.Histogram(600)]), ONE).optimality < 1.01


@pytest.mark.parametrize("others", [so.Histogram(3), so.RunningSum(3)], ids=repr)
@pytest.mark.parametrize("cells", [1025, 1500])
def test_along_an_axis_of_many_cells_they_have_their_root(others, cells):
    intervals = some(12_000, cells)
    plan = so.plan(so.Kronecker([intervals, others]), ONE)
    apart = so.plan(intervals, ONE).rmse * so.plan(others, ONE, noise="gaussian").rmse
    assert plan.mechanism == "balanced-gaussian"
    assert plan.rmse == pytest.approx(apart, rel=0.01)
    loud = so.plan(plan.workload, so.GaussianDP(mu=1e5), mechanism="balanced-gaussian")
    x = np.arange(3 * cells).reshape(cells, 3) % 7
    answers = x if isinstance(others, so.Histogram) else x.cumsum(axis=1)
    before = np.vstack([np.zeros(3, dtype=int), answers.cumsum(axis=0)])
    truth = before[intervals.last + 1] - before[intervals.first]
    assert np.reshape(released(loud, x).values, truth.shape) == pytest.approx(truth, abs=0.1)


def test_beside_short_axes_and_with_weights_they_have_it_too():
    """A fresh reader's cases: noise on every cell was taken, 4 to 13 times the bound."""
    product = so.plan(so.Kronecker([some(5000, 1500), some(60, 40)]), ONE)
    assert product.mechanism == "balanced-gaussian" and product.optimality < 1.5
    union = Union([some(3000, 1100, weighed=True), so.Histogram(1100)])
    assert so.plan(union, ONE).optimality < 1.1


def test_few_along_an_axis_are_searched_for_as_they_are():
    plan = so.plan(so.Kronecker([some(100, 2000), so.Histogram(3)]), ONE)
    assert 1.0 <= plan.optimality < 1.01
