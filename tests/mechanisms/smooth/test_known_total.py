"""A public number of points takes its part of the noise away; and what the even guess is off by."""

import math

import numpy as np
import pytest

import sordino as so
from sordino.mechanisms.smooth.kernel_axes import kernel_axis
from sordino.mechanisms.smooth.known_total import total_of_cells, total_of_kernel

APPROX = so.ApproxDP(epsilon=1.0, delta=1e-6)
PURE = so.PureDP(epsilon=1.0)
MOVED = so.ReplaceOne(1)


def planned(dimension, scale, points=500, unit=MOVED, privacy=APPROX, mechanism="kernel"):
    workload = so.smooth.SmoothQueries(
        dimension, points=points, bounds=[(-1.0, 1.0)] * dimension, query_class=so.smooth.GaussianKernels(scale)
    )
    return so.plan(workload, privacy, unit=unit, mechanism=mechanism)


@pytest.mark.parametrize("scale", [0.1, 0.5, 2.0])
@pytest.mark.parametrize("kernels", [so.smooth.GaussianKernels(1.0), so.smooth.LaplaceKernels(1.0)], ids=["g", "l"])
def test_the_constant_is_nearly_one_everywhere(kernels, scale):
    axes = [kernel_axis(kernels, s, 1e-4) for s in (scale, 0.7)]
    for noise in (1e-3, 1e-2, 1.0):
        known = total_of_kernel(axes, noise)
        u = np.concatenate([np.random.default_rng(0).uniform(-1, 1, (20_000, 2)), [[-1, -1], [1, 1], [1, -1]]])
        value = math.prod(axis.features(u[:, j]) @ known.axes[j] for j, axis in enumerate(axes))
        assert np.abs(value - 1.0).max() <= known.error
        assert known.square == pytest.approx(known.flat @ known.flat)
        assert 0.0 <= known.share < 1.0
        full = np.random.default_rng(1).normal(size=(5, len(known.flat)))
        np.testing.assert_allclose(known.along(full), full @ known.flat)
    cells = total_of_cells((3, 4))
    assert (cells.error, cells.square, cells.share) == (0.0, 12.0, 1.0 - 1.0 / 12.0)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("privacy", "mechanism", "dimension", "scale"),
    [
        (APPROX, "kernel", 1, 0.5),
        (APPROX, "kernel", 2, 1.0),
        (APPROX, "histogram", 1, 1.0),
        (PURE, "histogram", 2, 1.0),
    ],
)
def test_answers_have_less_noise_and_say_how_much(privacy, mechanism, dimension, scale):
    """Standardised errors of 60 releases, 30 queries each: the mean square within 25 %; they are correlated."""
    plan = planned(dimension, scale, privacy=privacy, mechanism=mechanism)
    kernels = so.smooth.GaussianKernels(scale)
    rng = np.random.default_rng(2)
    points = rng.uniform(-0.9, 0.9, (500, dimension))
    centres = rng.uniform(-1.0, 1.0, (30, dimension))
    queries = kernels.at(centres)

    def released(seed):
        with so.testing.deterministic_noise(bytes([seed]) * 32):
            return plan.release(points)

    answers = [released(seed).query(queries) for seed in range(60)]
    values = np.array([each.values for each in answers])
    standardised = (values - values.mean(axis=0)) / answers[0].stderr
    assert abs((standardised**2).mean() * 60 / 59 - 1.0) < 0.25
    raw = plan.fit.stderr[0] / 500
    known = plan.fit.known_total
    if mechanism == "kernel":
        assert plan.fit.noise == pytest.approx(raw * math.sqrt(known.share))
        np.testing.assert_allclose(answers[0].stderr, raw * math.sqrt(known.share), rtol=0.05)
        truth = np.exp(-((points[:, None] - centres[None]) ** 2).sum(axis=2) / (2 * scale**2)).mean(axis=0)
        off = np.abs(values.mean(axis=0) - truth)
        assert (off <= answers[0].truncation + 6.0 * answers[0].stderr / math.sqrt(60)).all()
    # Sums of several centres go another way to the same answers.
    pairs = kernels.at(centres.reshape(15, 2, dimension), rng.normal(size=(15, 2)))
    one, two = released(0).query(pairs), values[0].reshape(15, 2)
    np.testing.assert_allclose(one.values, (pairs.weights * two).sum(axis=1), atol=1e-9)
    assert (one.stderr <= np.abs(pairs.weights).sum(axis=1) * answers[0].stderr.max() * (1.0 + 1e-9)).all()


@pytest.mark.parametrize(("privacy", "mechanism"), [(APPROX, "kernel"), (APPROX, "histogram"), (PURE, "histogram")])
def test_what_is_constant_is_known(privacy, mechanism, known_noise):
    plan = planned(2, 0.5, privacy=privacy, mechanism=mechanism)
    release = plan.release(np.random.default_rng(0).uniform(-1, 1, (500, 2)))
    found = release.query(lambda x: np.ones(len(x)))
    assert abs(found.values - 1.0) <= found.truncation + 5.0 * found.stderr + 1e-12
    assert found.stderr <= 0.1 * plan.fit.stderr[0] / 500 * math.sqrt(math.prod(plan.fit.sizes))
    if mechanism == "histogram":
        assert found.values == pytest.approx(1.0)
        assert found.stderr == pytest.approx(0.0, abs=1e-9)
    assert planned(2, 0.5, unit=so.AddRemove(1), privacy=privacy, mechanism=mechanism).fit.known_total is None


def test_least_noise_known_for_moved_points():
    """Standard deviation over that without the number of points, of the mechanism named, found by an independent search."""
    for dimension, scale, expected in ((1, 0.25, 0.880), (1, 1.0, 0.717), (2, 0.5, 0.936), (3, 1.0, 0.940)):
        fit = planned(dimension, scale, points=1000).fit
        assert fit.rmse / (fit.stderr[0] / 1000) == pytest.approx(expected, abs=0.006)


def test_the_even_guess_by_definition():
    """Of a class by points and centres drawn evenly; of declared queries by their own variances."""
    rng = np.random.default_rng(3)
    kernels = so.smooth.GaussianKernels(0.5)
    x, y = rng.uniform(-1, 1, (4000, 2)), rng.uniform(-1, 1, (400, 2))
    values = np.exp(-((x[:, None] - y[None]) ** 2).sum(axis=2) / (2 * 0.5**2))
    expected = math.sqrt(values.var(axis=0).mean())
    assert planned(2, 0.5).fit.guess == pytest.approx(expected, rel=0.05)
    centres, weights = y[:40].reshape(20, 2, 2), rng.normal(size=(20, 2))
    workload = so.smooth.SmoothQueries(
        2, points=500, bounds=[(-1.0, 1.0)] * 2, query_class=kernels.at(centres, weights)
    )
    own = (values[:, :40].reshape(4000, 20, 2) * weights).sum(axis=2)
    assert so.plan(workload, APPROX).fit.guess == pytest.approx(math.sqrt(own.var(axis=0).mean()), rel=0.05)


def test_many_coordinates_say_when_guessing_is_as_good():
    rng = np.random.default_rng(4)

    def declared(points):
        queries = so.smooth.GaussianKernels(1.0).at(rng.uniform(-1, 1, (50, 30)))
        bounds = [(-1.0, 1.0)] * 30
        return so.plan(so.smooth.SmoothQueries(30, points=points, bounds=bounds, query_class=queries), APPROX)

    few, many = declared(569), declared(10**6)
    assert few.rmse > few.fit.guess > many.rmse
    assert "spread evenly" in few.explain()
    assert "spread evenly" not in many.explain()
    smooth = so.smooth.SmoothQueries(
        30, points=569, bounds=[(-1.0, 1.0)] * 30, query_class=so.smooth.KSmooth(6, 1.0), index_set="total", degree=3
    )
    for mechanism in ("chebyshev", "moments"):
        assert "answering 0 is as good" in so.plan(smooth, APPROX, mechanism=mechanism).explain()
