"""How far smooth queries are from what a summary answers in their place: bounds that hold and are nearly attained."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sordino as so
from sordino.mechanisms.smooth.residuals import products_apart
from sordino.testing import deterministic_noise
from sordino.workloads.smooth.chebyshev import largest_bound, nodes, on_circle, polynomials, spectrum, transform
from sordino.workloads.smooth.cube import Cube
from sordino.workloads.smooth.query_classes import _PROFILES

PURE, NOISELESS = so.PureDP(epsilon=1.0), so.GaussianDP(mu=1e6)
CLASS = so.smooth.GaussianKernels(0.5)
STRATEGIES = ["chebyshev", "weighted", "histogram", "kernel", "moments"]
APPROXIMATIONS = ["truncate", "vallee-poussin", "jackson"]
KERNELS = [
    so.smooth.GaussianKernels(0.5),
    so.smooth.GaussianKernels(0.1),
    so.smooth.GaussianKernels(0.002),
    so.smooth.LaplaceKernels(0.3),
    so.smooth.LaplaceKernels(0.002),
    so.smooth.MaternKernels(0.2, 1.5),
    so.smooth.MaternKernels(0.2, 2.5),
]
BOXES = [
    so.smooth.Boxes([[0.299]], [[0.301]], 1e-4),
    so.smooth.Boxes([[-np.inf]], [[0.3]], 0.05),
    so.smooth.Boxes([[-0.5]], [[0.3]], 0.3),
]
MOMENTS = [so.smooth.MomentQueries([[3]]), so.smooth.MomentQueries([[9], [0], [64]], [0.3])]
QUERIES = [
    *(kernels.at([[0.3], [-1.0], [1.4], [-0.5]]) for kernels in KERNELS),
    *BOXES,
    *MOMENTS,
    so.smooth.MarginalKernels(so.smooth.GaussianKernels(0.002), [[0.3]], [0]),
]
PLACES = np.concatenate([[-1.0, 1.0, 0.3, -0.5, 0.0, 0.25, -0.25], np.random.default_rng(0).uniform(-1, 1, 40)])

pytestmark = pytest.mark.usefixtures("known_noise")


def made(mechanism, degree=8, d=1, query_class=CLASS, n=1000, privacy=NOISELESS, **options):
    workload = so.smooth.SmoothQueries(d, points=n, bounds=(-1, 1), query_class=query_class, degree=degree, **options)
    return so.plan(workload, privacy, unit=so.ReplaceOne(), mechanism=mechanism)


def truth(query, x):
    """Values of products at points, shape (points, queries)."""
    cube = Cube(((-1.0, 1.0),) * x.shape[1])
    return math.prod(query.axis_values(cube, j, u) for j, u in enumerate(x.T)).T


def differences(plan, query, places):
    """What answers are off by, all points at one place, shape (places, queries); and the truncation, the noise."""
    off = []
    for place in places:
        answer = plan.release(np.tile(place, (1000, 1))).query(query)
        off.append(np.abs(answer.values - truth(query, place[None, :])[0]))
    # Features are integers times 2^-30 or so.
    return np.array(off), answer.truncation, 8 * answer.stderr + 1e-6


@pytest.mark.parametrize("query", QUERIES, ids=lambda q: type(q).__name__)
@pytest.mark.parametrize("mechanism", STRATEGIES)
def test_the_truncation_is_a_bound(query, mechanism):
    """Wherever the points are: at edges, at peaks, between the points at which queries were asked."""
    off, truncation, noise = differences(made(mechanism), query, PLACES[:, None])
    assert (off <= truncation + noise).all()


@pytest.mark.slow
@pytest.mark.parametrize("query", [*QUERIES[:7], *BOXES], ids=lambda q: type(q).__name__)
@pytest.mark.parametrize("mechanism", ["chebyshev", "histogram"])
def test_the_truncation_is_nearly_attained(query, mechanism):
    """Somewhere on a fine grid, within a twentieth."""
    # Both sides of the edges of cells.
    u = np.concatenate([np.linspace(-1, 1, 201), np.arange(-0.75, 1.0, 0.25) - 1e-6, [0.3, -0.5]])
    off, truncation, noise = differences(made(mechanism), query, u[:, None])
    assert (truncation <= 1.05 * off.max(axis=0) + 0.05 * truncation + 10 * noise).all()


@pytest.mark.parametrize("index_set", ["tensor", "total"])
@pytest.mark.parametrize("approximation", APPROXIMATIONS)
def test_the_truncation_is_a_bound_in_two_coordinates(index_set, approximation):
    plan = made("chebyshev", 6, 2, index_set=index_set, approximation=approximation)
    places = np.concatenate(
        [np.random.default_rng(1).uniform(-1, 1, (30, 2)), [[-1, -1], [0.3, -1], [0.3, 0.4], [1, 1]]]
    )
    for query in (
        so.smooth.GaussianKernels((0.5, 0.003)).at([[0.3, 0.4], [1.2, -1.0]]),
        so.smooth.LaplaceKernels(0.4).at([[0.3, 0.4]]),
        so.smooth.Boxes([[0.2, -np.inf]], [[0.4, 0.4]], (0.01, 0.1)),
        so.smooth.MomentQueries([[2, 1], [7, 3]], [0.1, 0.0]),
    ):
        off, truncation, noise = differences(plan, query, places)
        assert (off <= truncation + noise).all()


@pytest.mark.slow
@pytest.mark.parametrize("approximation", APPROXIMATIONS)
def test_kernels_of_a_class_stay_below_the_bound_of_the_class(approximation):
    """Also of more polynomials than coefficients were judged from, and in two coordinates."""
    for kernels in (
        so.smooth.LaplaceKernels(0.3),
        so.smooth.MaternKernels(0.3, 1.5),
        so.smooth.MaternKernels(0.4),
        so.smooth.GaussianKernels(0.2),
    ):
        for degree in (3, 9, 40, 300, 600):
            plan = made("chebyshev", degree, query_class=kernels, approximation=approximation)
            queries = kernels.at(np.linspace(-1, 1, 41)[:, None])
            answers = plan.release(np.zeros((1000, 1))).query(queries)
            off = np.abs(answers.values - truth(queries, np.zeros((1, 1)))[0])
            bound = kernels.truncation_bound(plan.fit.sizes, plan.workload.cube, approximation)
            assert (off <= bound + 8 * answers.stderr + 1e-6).all()
            assert (off <= plan.fit.uniform_error(1e-6) + 1e-6).all()
        one = kernels.truncation_bound((30,), Cube(((-1.0, 1.0),)), approximation)
        two = kernels.truncation_bound((30, 30), Cube(((-1.0, 1.0),) * 2), approximation)
        assert two == pytest.approx((1 + one) ** 2 - 1)


@pytest.mark.slow
@pytest.mark.parametrize("kernels", KERNELS)
def test_no_centre_has_a_larger_coefficient(kernels):
    cube = Cube(((-1.0, 1.0),))
    centres = np.random.default_rng(2).uniform(-1, 1, (500, 1))
    for degree in (5, 64, 200):
        points = nodes(max(2 * degree, 64, math.ceil(10 / float(kernels.scales(cube)[0]))))
        found = np.abs(spectrum(kernels.at(centres).axis_values(cube, 0, points)))[:, :degree].max(axis=0)
        bound = kernels.largest(np.arange(degree, dtype=np.uint32)[:, None], cube)
        assert (found <= bound + 1e-15).all()


@pytest.mark.parametrize("mechanism", STRATEGIES)
@pytest.mark.parametrize("width", [1e-300, 1e-160, 1e-12, 1e6, 1e307])
def test_boxes_of_any_width_have_a_bound(mechanism, width):
    release = made(mechanism).release(np.zeros((1000, 1)))
    with np.errstate(over="ignore"):
        answer = release.query(so.smooth.Boxes([[-0.5], [-np.inf], [-np.inf]], [[0.1], [0.5], [np.inf]], width))
    exact = np.array([1.0, 1.0, 1.0]) if width < 1 else np.array([0.0, 0.5, 1.0])
    assert (np.abs(answer.values - exact) <= answer.truncation + 8 * answer.stderr + 1e-6).all()
    assert (answer.truncation <= 3).all() and answer.truncation[2] < 1e-9


# What bounds are made of.


@pytest.mark.parametrize("query", QUERIES, ids=lambda q: type(q).__name__)
def test_factors_have_the_shape_that_is_stated(query):
    """Monotone on both sides of the turn, with no more curvature; no more coefficients beyond than the tail."""
    cube = Cube(((-1.0, 1.0),))
    shape = query.shape(cube, 0)
    theta = np.linspace(0, math.pi, 2**17 + 1)
    values = query.axis_values(cube, 0, np.cos(theta))
    step, turn = theta[1], np.clip(shape.turns, -1, 1)[:, None]
    for side in (np.cos(theta) > turn, np.cos(theta) < turn):
        # Three neighbours on one side.
        inside = side[:, 2:] & side[:, :-2]
        second = np.where(inside, values[:, 2:] - 2 * values[:, 1:-1] + values[:, :-2], 0.0) / step**2
        assert (np.abs(second) <= 1.01 * shape.curvature[:, None] + 1e-4).all()
        rise = np.where(inside[:, 1:], np.diff(values)[:, 1:-1], 0.0)
        assert ((rise >= -1e-15).all(axis=1) | (rise <= 1e-15).all(axis=1)).all()
    found = np.abs(spectrum(query.axis_values(cube, 0, nodes(2**15))))
    for count in (10, 40, 65, 100, 500, 4000):
        assert (found[:, count:].sum(axis=1) <= shape.tail(count) + 1e-10 * max(np.abs(values).max(), 1.0)).all()


@pytest.mark.parametrize("name", sorted(_PROFILES))
def test_derivatives_of_kernels(name):
    """By differences: their largest values and their total variations."""
    profile = _PROFILES[name]
    a = np.linspace(0, 30, 300_001)
    first = np.gradient(profile.value(a), a, edge_order=2)
    second = np.gradient(first, a, edge_order=2)
    assert np.abs(first).max() == pytest.approx(profile.slope, rel=1e-3)
    assert np.abs(second[2:]).max() == pytest.approx(profile.bend, rel=2e-3)
    coarse = np.linspace(0, 30, 6001)
    values = profile.value(coarse)
    for order, variation in profile.variations:
        derivative = values
        for _ in range(order):
            derivative = np.gradient(derivative, coarse, edge_order=2)
        # Odd derivatives: both sides, and the jump at 0.
        inner = derivative[2 * order :]
        assert 2 * (np.abs(np.diff(inner)).sum() + abs(inner[0])) <= 1.02 * variation
        assert 2 * (np.abs(np.diff(inner)).sum() + abs(inner[0])) >= 0.7 * variation


@pytest.mark.parametrize("count", [1, 2, 7, 64, 500])
def test_coefficients_by_two_transforms(count):
    values = np.random.default_rng(count).normal(size=(3, count))
    found = spectrum(values)
    assert found == pytest.approx(values @ transform(count, count).T, abs=1e-13)
    for intervals in (count, 2 * count + 1):
        u = np.cos(np.pi * np.arange(intervals + 1) / intervals)
        assert on_circle(found, intervals) == pytest.approx(found @ polynomials(u, count).T, abs=1e-9)


@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_bounds_of_chebyshev_sums(count, seed):
    found = np.random.default_rng(seed).normal(size=(4, count)) * 0.7 ** np.arange(count)
    seen = np.abs(on_circle(found, 4096)).max(axis=1)
    bound = largest_bound(found)
    assert (seen <= bound * (1 + 1e-12)).all() and (bound <= 1.2 * seen).all()


@given(st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_products_are_no_further_apart(d, seed):
    rng = np.random.default_rng(seed)
    g = rng.normal(size=(d, 5, 6)) * rng.uniform(0, 2, (d, 5, 1))
    h = g + rng.normal(size=g.shape) * rng.choice([0.0, 0.01, 3.0], (d, 5, 1))
    sizes = [[*np.abs(each).max(axis=2)] for each in (h - g, g, h)]
    apart = np.zeros(5)
    for places in np.ndindex(*(6,) * d):
        chosen = [np.prod([each[j, :, place] for j, place in enumerate(places)], axis=0) for each in (g, h)]
        apart = np.maximum(apart, np.abs(chosen[0] - chosen[1]))
    bound = products_apart(*sizes)
    assert (apart <= bound * (1 + 1e-12) + 1e-12).all()
    if d == 1:
        assert (bound <= sizes[0][0] * (1 + 1e-12)).all()


# Functions: no bound, but what is seen is said.


@pytest.mark.parametrize("samples", [None, 8, 9, 64])
@pytest.mark.parametrize("mechanism", ["chebyshev", "kernel", "weighted"])
def test_functions_are_compared_between_their_samples(samples, mechanism):
    """|x| at as few points as polynomials has nothing left out, and is wrong all the same."""
    release = made(mechanism).release(np.zeros((1000, 1)))
    for power in (1.0, 0.5):
        answer = release.query(lambda x, power=power: np.abs(x[:, 0]) ** power, samples=samples)
        assert abs(float(answer)) > 0.01
        assert answer.truncation > 0.4 * abs(float(answer))


@pytest.mark.parametrize("mechanism", STRATEGIES)
def test_users_functions_are_asked_once(mechanism):
    release = made(mechanism, 6, 2).release(np.zeros((1000, 2)))
    asked = []

    def f(z):
        asked.append(z)
        return np.cos(z.sum(axis=1)) if z.ndim == 2 else np.cos(z)

    release.query(f)
    assert len(asked) == 1
    # Edges and corners among the points, none outside.
    assert np.abs(asked[0]).max() == pytest.approx(1, abs=1e-15)
    assert (np.abs(asked[0]).min(axis=1) > 1 - 1e-12).sum() >= 4
    release.query(so.smooth.Separable([f, f]))
    assert len(asked) == 3 and all(np.abs(u).max() == pytest.approx(1, abs=1e-15) for u in asked[1:])


@pytest.mark.parametrize("mechanism", ["chebyshev", "histogram", "kernel"])
def test_separable_functions_and_kernels_have_like_truncations(mechanism):
    release = made(mechanism, 6, 2).release(np.zeros((1000, 2)))
    kernel = release.query(so.smooth.MaternKernels(0.4).at([[0.2, -0.4]]))
    profile = so.smooth.MaternKernels(0.4).profile_of
    factors = [lambda x: profile(np.abs(x - 0.2) / 0.4), lambda x: profile(np.abs(x + 0.4) / 0.4)]
    own = release.query(so.smooth.Separable(factors))
    free = release.query(lambda z: factors[0](z[:, 0]) * factors[1](z[:, 1]))
    assert own.values == pytest.approx(kernel.values, abs=0.01) and float(free) == pytest.approx(
        own.values[0], abs=0.01
    )
    assert own.truncation == pytest.approx(kernel.truncation, rel=0.9)
    assert 0.3 * kernel.truncation[0] <= free.truncation <= 3 * kernel.truncation[0]


@pytest.mark.slow
def test_functions_that_cannot_be_asked_beyond_the_degree_are_compared_at_scattered_points():
    plan = made("chebyshev", (140, 140, 140), 3, privacy=so.GaussianDP(mu=1e3))
    answer = plan.release(np.zeros((1000, 3))).query(lambda z: np.exp(-np.abs(z).sum(axis=1) / 0.3))
    assert answer.truncation > 0.01


def test_histograms_know_their_edges():
    """A line is off by half a cell, at the edges of cells alone; a kernel most at its peak."""
    release = made("histogram", 4).release(np.full((1000, 1), 1.0))
    for query in (so.smooth.MomentQueries([[1]]), lambda x: x[:, 0], so.smooth.Separable([lambda x: x])):
        answer = release.query(query)
        assert np.max(answer.truncation) == pytest.approx(0.25)
        assert np.min(answer.interval(0.9)[1]) >= 1.0
    peak = release.query(so.smooth.LaplaceKernels(0.1).at([[-0.25]]))
    assert peak.truncation[0] == pytest.approx(
        1 - truth(so.smooth.LaplaceKernels(0.1).at([[-0.25]]), _gauss(-0.5, 0.0)).mean(), abs=0.1
    )


def _gauss(low, high):
    return (low + (high - low) * (np.arange(2000) + 0.5) / 2000)[:, None]


# Coverage.


@pytest.mark.parametrize("mechanism", ["weighted", "histogram", "kernel"])
def test_intervals_cover_whatever_is_asked(mechanism):
    """Narrow kernels and boxes around points at one place, 60 seeds: level .99 is never missed by what was cut off."""
    plan = made(mechanism, 6, n=2000, privacy=so.GaussianDP(mu=1.0))
    sums = {place: plan.sums(np.full((2000, 1), place)) for place in (-1.0, 0.3, 0.61)}
    for place, own in sums.items():
        queries = [kernels.at([[place], [place + 0.01]]) for kernels in KERNELS]
        queries.append(so.smooth.Boxes([[place - 0.01]], [[place + 0.01]], 0.001))
        missed = 0
        for number in range(20):
            with deterministic_noise((number + 1).to_bytes(32, "little")):
                release = plan.release(own)
            for query in queries:
                low, high = release.query(query).interval(0.99)
                exact = truth(query, np.full((1, 1), place))[0]
                missed += int(((exact < low) | (high < exact)).sum())
        assert missed <= 0.03 * 20 * 15


def test_intervals_of_a_projection_are_about_what_was_measured():
    """A coarse grid is off by more than the noise; the answers before it are not."""
    x = np.clip(np.random.default_rng(0).normal(0.3, 0.1, (10**5, 1)), -1, 1)
    kernels = so.smooth.GaussianKernels(0.2)
    plan = made("kernel", "auto", query_class=kernels, n=10**5, privacy=so.GaussianDP(mu=1.0))
    queries = kernels.at(np.linspace(-0.9, 0.9, 19)[:, None])
    exact = truth(queries, x).mean(axis=0)
    covered = []
    for number in range(20):
        with deterministic_noise((number + 1).to_bytes(32, "little")):
            release = plan.release(x)
        answers, plain = release.projected(9).query(queries), release.query(queries)
        low, high = answers.interval(0.9)
        assert (np.array(plain.interval(0.9)) == (low, high)).all() and (answers.unprojected == plain.values).all()
        assert not np.array_equal(answers.values, plain.values)
        covered.append(((low <= exact) & (exact <= high)).mean())
    assert np.mean(covered) > 0.8


# Bounds over a class that say nothing.


@pytest.mark.parametrize("bound", [0.1, 1.0])
def test_a_bound_above_the_class_is_that_of_zero(bound):
    plan = made("chebyshev-laplace", "auto", 2, so.smooth.KSmooth(1, bound), privacy=PURE)
    assert plan.fit.uniform_error(0.05) == bound and "no information" in plan.explain()
    good = made("chebyshev-laplace", "auto", 1, so.smooth.KSmooth(4, bound), n=10**6, privacy=PURE)
    assert good.fit.uniform_error(0.05) < 0.1 * bound and "no information" not in good.explain()


def test_kernels_are_at_most_one():
    for mechanism, privacy in (("chebyshev-laplace", PURE), ("kernel", so.GaussianDP(mu=1e-3))):
        plan = made(mechanism, 20, n=100, privacy=privacy)
        assert plan.fit.uniform_error(0.05) == 1 and "no information" in plan.explain()


def test_coefficients_beyond_the_samples_count_twice():
    """As T_30 is taken for T_2 at 16 points."""
    sizes = np.zeros(40)
    sizes[[0, 5, 30]] = 1.0, 0.5, 0.25
    prior = so.smooth.CoefficientPrior(sizes)
    assert prior.truncation_bound((8,), Cube(((-1.0, 1.0),)), "truncate") == pytest.approx(0.5)
    assert prior.truncation_bound((3,), Cube(((-1.0, 1.0),)), "truncate") == pytest.approx(0.75 + 0.25)
