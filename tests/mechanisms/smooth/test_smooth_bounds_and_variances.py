"""Bounds of smooth classes at few polynomials, and variances of products in closed form."""

import math

import numpy as np
import pytest

import sordino as so
from sordino.testing import deterministic_noise
from sordino.workloads.smooth.chebyshev import class_bound, jackson_bound

POINTS = np.random.default_rng(1).uniform(-1.0, 1.0, (300, 2))


def test_auto_finds_a_degree_below_a_high_order():
    workload = so.smooth.SmoothQueries(2, points=10**5, bounds=(-1.0, 1.0), query_class=so.smooth.KSmooth(20))
    plan = so.plan(workload, so.PureDP(epsilon=1.0), unit=so.ReplaceOne(), mechanism="chebyshev")
    assert 1 < plan.fit.sizes[0] < 20
    assert plan.rmse < 0.1


@pytest.mark.parametrize("order", [1, 3, 20])
def test_bound_is_the_least_over_all_orders_up_to_it(order):
    for degree in range(1, 30):
        bound = class_bound(order, degree)
        assert math.isfinite(bound)
        assert bound == min(jackson_bound(k, degree) for k in range(1, order + 1))


def test_bound_holds_for_a_cosine():
    x = np.linspace(-1.0, 1.0, 2001)
    for degree in range(1, 12):
        fitted = np.polynomial.chebyshev.chebinterpolate(lambda u: np.cos(u - 0.3), 60)[:degree]
        # A cut-off is no better than the best approximation, and all derivatives are at most 1.
        off = np.abs(np.polynomial.chebyshev.chebval(x, fitted) - np.cos(x - 0.3)).max()
        assert off <= 2.0 * class_bound(20, degree) + 1e-12


@pytest.mark.filterwarnings("ignore:deterministic noise")
@pytest.mark.parametrize("mechanism", ["chebyshev", "chebyshev-laplace", "kernel", "histogram-laplace"])
@pytest.mark.parametrize("unit", [so.ReplaceOne(), so.AddRemove()])
def test_variances_of_products_equal_their_contraction(mechanism, unit):
    workload = so.smooth.SmoothQueries(2, points=300, bounds=(-1.0, 1.0), query_class=so.smooth.GaussianKernels(0.7))
    privacy = so.PureDP(epsilon=1.0) if mechanism.endswith("laplace") else so.ApproxDP(epsilon=1.0, delta=1e-6)
    plan = so.plan(workload, privacy, unit=unit, mechanism=mechanism)
    centres = np.random.default_rng(2).uniform(-1.0, 1.0, (20, 2))
    queries = so.smooth.GaussianKernels(0.7).at(centres)
    with deterministic_noise(bytes(32)):
        short, long = plan.release(POINTS), plan.release(POINTS)
    assert short._level is not None
    long.__dict__["_level"] = None
    np.testing.assert_allclose(short.query(queries).stderr, long.query(queries).stderr, rtol=1e-9)
