"""What the benchmarks of smooth queries compare with: encoders that agree, noise of the size and law that is said.

Laws are tested by Kolmogorov and Smirnov at fixed seeds; each test would fail a right baseline with probability 1e-6.
"""

import importlib.util
import itertools
import math
import sys
from functools import reduce
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from numpy.polynomial import chebyshev

import smooth_oracles as oracles
import sordino as so
from sordino.privacy.calibration import gaussian_mu

# Last, so that no bench hides a module of the tests.
sys.path.append(str(Path(__file__).resolve().parents[2] / "benches"))

import smooth_baselines as sb

FALSE_ALARM = 1e-6
QUIET = 1e-12
"""Noise over sensitivity, for what is exact but for its noise."""


def points(n, d, seed=1):
    return sb.synthetic(n, d, np.random.default_rng(seed))


def queries(count, d, s, seed=2):
    return sb.gaussian_kernel_queries(count, d, s, np.random.default_rng(seed))


def follows(values, law, scale):
    """Whether values are of `laplace(0, scale)` or `norm(0, scale)`: by shape, and more sharply by size."""
    values = np.ravel(values) / scale
    shape = scipy.stats.kstest(values, law).pvalue
    n = len(values)
    if law == "laplace":
        below = scipy.stats.gamma.cdf(np.abs(values).sum(), n)
    else:
        below = scipy.stats.chi2.cdf((values**2).sum(), n)
    return shape > FALSE_ALARM / 2 and FALSE_ALARM / 4 < below < 1 - FALSE_ALARM / 4


@pytest.mark.statistical
@pytest.mark.parametrize("law", ["laplace", "norm"])
def test_a_scale_that_is_off_by_a_fifth_is_found(law):
    values = getattr(scipy.stats, law).rvs(scale=3.0, size=2000, random_state=1)
    assert follows(values, law, 3.0)
    assert not follows(values, law, 3.6)
    assert not follows(values, law, 2.5)


# Data and queries.


@pytest.mark.skipif(importlib.util.find_spec("sklearn") is None, reason="the data come with scikit-learn")
@pytest.mark.parametrize("d", [1, 2, 4])
def test_breast_cancer_data_fit_in_bounds_that_are_not_theirs(d):
    x = sb.wdbc(d)
    assert x.shape == (569, d)
    # Nothing is clipped, and the extremes are not at the bounds.
    assert np.abs(x).max() < 0.97
    _, low, high = sb.WDBC_BOUNDS[0]
    assert x[0, 0] == pytest.approx((2 * 17.99 - low - high) / (high - low))
    with pytest.raises(ValueError, match="1 to 4"):
        sb.wdbc(5)


def test_synthetic_data_are_on_the_cube_and_not_uniform():
    x = points(20_000, 3)
    assert x.shape == (20_000, 3)
    assert np.abs(x).max() <= 1
    assert scipy.stats.kstest(x[:, 0], "uniform", (-1, 2)).pvalue < FALSE_ALARM


def test_exact_answers_are_means_in_any_chunks(monkeypatch):
    x, q = points(301, 3), queries(40, 3, 0.4)
    expected = [np.mean([math.exp(-((p - y) ** 2).sum() / 0.32) for p in x]) for y in q.centres]
    np.testing.assert_allclose(sb.exact_answers(x, q), expected, rtol=1e-12)
    monkeypatch.setattr(sb, "_PAIRS", 1000)
    np.testing.assert_allclose(sb.exact_answers(x, q), expected, rtol=1e-12)


# Encoders and answers.


@pytest.mark.parametrize(("d", "t"), [(1, 1), (1, 7), (2, 5), (3, 4), (4, 3), (5, 2)])
def test_encoders_agree_with_the_definition(d, t):
    x = points(403, d)
    expected = oracles.exact_sums(x, oracles.tensor_set(d, t)).reshape((t,) * d)
    np.testing.assert_allclose(sb.numpy_encode(x, t), expected, atol=1e-10)
    np.testing.assert_allclose(sb.numpy_encode(x, t, optimize=True), expected, atol=1e-10)
    for chunk in (64, 100, 1024):
        np.testing.assert_allclose(sb.blocked_encode(x, t, chunk), expected, atol=1e-10)


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_answers_agree_however_they_are_computed(d):
    rng = np.random.default_rng(d)
    summary = rng.normal(size=(4,) * d)
    factors = [rng.normal(size=(300, 4)) for _ in range(d)]
    one = oracles.tensor_answer(reduce(np.multiply.outer, [f[7] for f in factors]), summary)
    loop = sb.answers_in_a_loop(summary, factors)
    assert loop[7] == pytest.approx(one, rel=1e-12)
    np.testing.assert_allclose(sb.answers_at_once(summary, factors, block=128), loop, atol=1e-12)


def test_coefficients_are_those_of_the_kernels():
    q, t = queries(5, 2, 0.5), 12
    damped, plain = sb.coefficient_factors(q, t, damped=True), sb.coefficient_factors(q, t)
    for k, j in itertools.product(range(5), range(2)):
        y = q.centres[k, j]
        expected = oracles.coefficients_by_dct(lambda x, y=y: np.exp(-((x[:, 0] - y) ** 2) / 0.5), t, points=2 * t)
        np.testing.assert_allclose(plain[j][k], expected, atol=1e-14)
        np.testing.assert_allclose(damped[j][k], expected * oracles.jackson(t), atol=1e-14)


def test_answers_of_the_exact_summary_are_exact_but_for_truncation():
    x, q = points(500, 2), queries(50, 2, 0.5)
    exact = sb.exact_answers(x, q)
    summary = sb.blocked_encode(x, 16) / 500
    truncated = np.abs(sb.answers_at_once(summary, sb.coefficient_factors(q, 16)) - exact).max()
    damped = np.abs(sb.answers_at_once(summary, sb.coefficient_factors(q, 16, damped=True)) - exact).max()
    assert truncated < 5e-7
    assert damped > 1e4 * truncated


# The paper's.


@pytest.mark.parametrize(
    ("d", "smoothness", "degree"), [(2, 1, 4), (2, 4, 2), (2, 20, 2), (3, 1, 2), (4, 1, 2), (4, 99, 2)]
)
def test_the_paper_measures_next_to_nothing_of_569_points(d, smoothness, degree):
    assert sb.paper_degree(569, d, smoothness) == degree
    assert sb.paper_degree(10**6, 1, 1) == 100


@pytest.mark.statistical
def test_the_literal_mechanism_adds_the_noise_that_it_says():
    x, epsilon, t = points(50, 2), 0.7, 40
    exact = oracles.exact_sums(x, oracles.tensor_set(2, t)).reshape(t, t) / 50
    noise = sb.literal_summary(x, epsilon, t, np.random.default_rng(3)) - exact
    assert follows(noise, "laplace", t**2 / (50 * epsilon))
    # The constant too.
    assert noise[0, 0] != 0


def test_published_monomials_are_the_first_by_degree_from_the_last_axis():
    for d, size in [(1, 4), (3, 30), (30, 64), (30, 79)]:
        assert np.array_equal(sb.breadth_first_monomials(d, size), oracles.graded_set(d, size)[:, ::-1])


@pytest.mark.statistical
def test_the_published_code_adds_the_noise_that_it_says():
    x = np.random.default_rng(1).uniform(-1, 1, (200, 30))
    drawn = [sb.published_summary(x, 400, 2.0, np.random.default_rng(k)) for k in range(10)]
    exact = oracles.exact_sums(x, drawn[0][0]) / 200
    assert follows([noisy - exact for _, noisy in drawn], "laplace", 400 / (200 * 2.0))


def test_the_published_fit_is_a_measure_with_the_moments():
    rng = np.random.default_rng(1)
    candidates, q = rng.uniform(-1, 1, (200, 4)), queries(20, 4, 1.0)
    x = candidates[:50]
    exponents, means = sb.published_summary(x, 15, 1e12, rng)
    measure = sb.published_measure(exponents, means, candidates)
    assert measure.sum() == pytest.approx(1)
    assert (measure >= 0).all()
    np.testing.assert_allclose(measure @ oracles.monomials(candidates, exponents), means, atol=1e-8)
    expected = [
        sum(p * math.exp(-((z - y) ** 2).sum() / 2) for p, z in zip(measure, candidates, strict=True))
        for y in q.centres
    ]
    np.testing.assert_allclose(sb.published_answers(measure, candidates, q), expected, rtol=1e-10)


# The kernel mechanism.


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (8.0, 1e-3)])
def test_the_gaussian_noise_is_that_of_the_package(epsilon, delta):
    assert sb.gaussian_sigma(epsilon, delta) == pytest.approx(
        1 / gaussian_mu(so.ApproxDP(epsilon=epsilon, delta=delta)), rel=1e-6
    )


@pytest.mark.parametrize(("s", "degree"), [(0.25, 24), (0.5, 16), (1.0, 16), (0.25, 8)])
def test_the_form_of_a_kernel_is_its_matrix(s, degree):
    form = sb.kernel_form(s, degree)
    G = oracles.kernel_matrix(oracles.gaussian_kernel(s), degree)
    np.testing.assert_allclose(form.Gamma.T @ form.Gamma, G, atol=1e-11)
    V = chebyshev.chebvander(np.linspace(-1, 1, 301), degree - 1)
    K = V @ G @ V.T
    assert form.largest == pytest.approx(np.diag(K).max(), rel=1e-3)
    assert form.smallest == pytest.approx(K.min(), abs=1e-4)


@pytest.mark.parametrize(("s", "degree", "d"), [(0.5, 16, 1), (2.0, 16, 2), (1.0, 16, 3), (0.25, 8, 2)])
def test_no_replaced_point_moves_the_embedding_further(s, degree, d):
    form = sb.kernel_form(s, degree)
    x = np.array(list(itertools.product(np.linspace(-1, 1, {1: 101, 2: 13, 3: 5}[d]), repeat=d)))
    features = np.ones((1, len(x)))
    for j in range(d):
        rows = form.features(np.ascontiguousarray(x[:, j]))
        features = (features[:, None] * rows[None]).reshape(-1, len(x))
    norms = (features**2).sum(axis=0)
    worst = np.sqrt((norms[:, None] + norms - 2 * features.T @ features).max())
    sensitivity = sb.kernel_sensitivity(form, d)
    assert worst <= sensitivity * (1 + 1e-6)
    if degree == 16:
        # Attained by opposite corners.
        assert sensitivity == pytest.approx(math.sqrt(2 * (1 - math.exp(-2 * d / s**2))), rel=1e-6)
        assert worst == pytest.approx(sensitivity, rel=1e-3)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_kernel_mechanism_is_exact_but_for_its_noise(d):
    x, q = points(700, d), queries(50, d, 0.5)
    form = sb.kernel_form(0.5, 16)
    summary = sb.kernel_summary(x, form, QUIET, np.random.default_rng(1))
    assert summary.shape == (len(form.Gamma),) * d
    np.testing.assert_allclose(
        sb.answers_at_once(summary, sb.kernel_factors(q, form)), sb.exact_answers(x, q), atol=1e-6
    )


@pytest.mark.statistical
@pytest.mark.parametrize("process", [False, True])
def test_the_noise_of_any_query_is_its_norm(process):
    n, d, s, sigma = 100, 2, 0.7, 3.0
    x, q, rng = points(n, d), queries(6, d, s), np.random.default_rng(5)
    weights = np.array([1.0, -2.0, 0.5, 1.0, 0.0, -1.0])
    form, exact = sb.kernel_form(s, 16), sb.exact_answers(x, q)
    factors = sb.kernel_factors(q, form)

    def draw():
        if process:
            return sb.gaussian_process_answers(x, q, sigma, rng)
        return sb.answers_at_once(sb.kernel_summary(x, form, sigma, rng), factors)

    noise = np.array([draw() - exact for _ in range(3000)])
    scale = sigma * sb.kernel_sensitivity(form, d) / n
    # One kernel has norm 1; a combination the root of a' K a.
    assert follows(noise[:, 0], "norm", scale)
    norm = math.sqrt(weights @ q(q.centres) @ weights)
    assert follows(noise @ weights, "norm", scale * norm)


# Histograms, noisy answers, guesses.


def test_the_histogram_counts_and_includes_its_ends():
    x = np.array([[-1.0, 1.0], [1.0, -1.0], [0.0, 0.49], [0.01, 0.4]])
    shares = sb.laplace_histogram(x, 4, 1e12, np.random.default_rng(1))
    expected = np.zeros((4, 4))
    expected[0, 3] = expected[3, 0] = 0.25
    expected[2, 2] = 0.5
    np.testing.assert_allclose(shares, expected, atol=1e-9)


@pytest.mark.statistical
def test_the_histogram_adds_the_noise_that_it_says_and_none_else():
    x, cells, epsilon = points(400, 2), 30, 0.5
    exact = np.histogramdd(x, bins=cells, range=[(-1, 1)] * 2)[0] / 400
    noise = np.array([sb.laplace_histogram(x, cells, epsilon, np.random.default_rng(k)) - exact for k in range(10)])
    assert follows(noise, "laplace", 2 / (400 * epsilon))
    # Unbiased for what is constant on cells: the mean of the answers is normal, by then.
    query = np.random.default_rng(9).normal(size=(cells, cells))
    answers = (noise * query).sum(axis=(1, 2))
    std = math.sqrt(2) * 2 / (400 * epsilon) * np.linalg.norm(query)
    assert abs(answers.mean()) < scipy.stats.norm.isf(FALSE_ALARM / 2) * std / math.sqrt(10)


def test_factors_of_cells_are_averages_or_centres():
    q, cells = queries(3, 2, 0.3), 5
    averages, centres = sb.histogram_factors(q, cells), sb.histogram_factors(q, cells, centred=True)
    fine = np.linspace(-1, 1, 2 * 5 * 2000 + 1)[1::2].reshape(cells, 2000)
    for j, k in itertools.product(range(2), range(3)):
        values = np.exp(-((fine - q.centres[k, j]) ** 2) / 0.18)
        np.testing.assert_allclose(averages[j][k], values.mean(axis=1), atol=1e-7)
        np.testing.assert_allclose(centres[j][k], (values[:, 999] + values[:, 1000]) / 2, atol=1e-6)


@pytest.mark.statistical
def test_noise_on_answers_grows_with_the_root_of_their_number():
    x, q = points(100, 2), queries(900, 2, 0.5)
    noise = sb.noisy_answers(x, q, 2.0, np.random.default_rng(1)) - sb.exact_answers(x, q)
    assert follows(noise, "norm", 2.0 * 30 / 100)


def test_the_guess_is_the_answer_of_uniform_points():
    q = queries(20, 2, 0.4)
    axis = np.linspace(-1, 1, 801)[1::2]
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    np.testing.assert_allclose(sb.uniform_guess(q), sb.exact_answers(grid, q), atol=1e-5)
