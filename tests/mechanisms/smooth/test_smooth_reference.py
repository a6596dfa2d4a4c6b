"""Reference values of smooth queries: sensitivities, damping errors and kernel matrices, to the printed digits.

They were computed independently; here they pin the oracles of `smooth_oracles.py`, by which everything else is tested.
"""

import itertools
import math

import numpy as np
import pytest
from numpy.polynomial import chebyshev

import smooth_oracles as oracles


def printed(text):
    """Equal to printed digits: within half a unit of the last."""
    mantissa = text.split("e")[0]
    last = 10.0 ** -(len(mantissa.split(".")[1]) if "." in mantissa else 0)
    exponent = 10.0 ** int(text.split("e")[1]) if "e" in text else 1.0
    return pytest.approx(float(text), rel=0, abs=0.5001 * last * exponent)


# Monomials and sums.


def test_monomials_are_products_of_chebyshev_polynomials():
    rng = np.random.default_rng(1)
    points = rng.uniform(-1, 1, (20, 3))
    index_set = oracles.tensor_set(3, 4)
    V = [chebyshev.chebvander(points[:, j], 3) for j in range(3)]
    expected = np.einsum("ni,nj,nk->nijk", *V).reshape(20, -1)
    np.testing.assert_allclose(oracles.monomials(points, index_set), expected, atol=1e-13)
    np.testing.assert_allclose(oracles.exact_sums(points, index_set), expected.sum(axis=0), atol=1e-12)
    some = index_set[[5, 60, 0]]
    np.testing.assert_allclose(oracles.monomials(points, some), expected[:, [5, 60, 0]], atol=1e-13)


def test_index_sets_are_what_they_say():
    assert len(oracles.tensor_set(3, 5)) == 125
    assert len(oracles.total_set(3, 5)) == math.comb(4 + 3, 3)
    assert oracles.total_set(4, 6).sum(axis=1).max() == 5
    # 1, then every axis, then degree two from the first axis on.
    assert oracles.graded_set(3, 8).tolist() == [
        [0, 0, 0],
        [1, 0, 0],
        [0, 1, 0],
        [0, 0, 1],
        [2, 0, 0],
        [1, 1, 0],
        [1, 0, 1],
        [0, 2, 0],
    ]


# Sensitivities.

RATIOS = {
    2: "1.0000",
    3: "1.0417",
    4: "1.0789",
    5: "1.1039",
    6: "1.1215",
    8: "1.1442",
    10: "1.1583",
    12: "1.1678",
    16: "1.1799",
    20: "1.1873",
    50: "1.2051",
}


@pytest.mark.parametrize("t", list(RATIOS))
def test_one_flipped_coordinate_costs_more_than_the_number_of_monomials(t):
    assert 1 + oracles.kappa(t)[0] / t == printed(RATIOS[t])


def test_the_excess_has_a_limit():
    assert oracles.kappa(3)[0] / 3 == pytest.approx(1 / 24, abs=1e-12)
    # -min sin(x)/x, which kappa_t / t approaches from below like 1/t.
    x = 4.493409457909064
    assert 1 - math.sin(x) / x == printed("1.21723")
    excesses = [oracles.kappa(t)[0] / t for t in (250, 500, 1000)]
    # Of first order in 1/t: extrapolated once.
    assert 1 + 2 * excesses[2] - excesses[1] == pytest.approx(1.21723, abs=1e-5)
    assert excesses == sorted(excesses)


@pytest.mark.parametrize(("t", "d"), [(2, 1), (3, 1), (6, 1), (20, 1), (3, 2), (6, 2), (12, 2), (3, 3), (4, 3)])
def test_the_sensitivity_of_the_full_tensor_is_exact(t, d):
    formula = t ** (d - 1) * (t + oracles.kappa(t)[0])
    index_set = oracles.tensor_set(d, t)
    starts = 40 if len(index_set) <= 64 else 24
    assert oracles.searched_sensitivity(index_set, 1, starts=starts) == pytest.approx(formula, rel=1e-7)
    assert oracles.l1_formula(index_set, starts=starts)[0] == pytest.approx(formula, rel=1e-9)


@pytest.mark.parametrize("kind", ["total", "explicit"])
@pytest.mark.parametrize("weighted", [False, True])
def test_no_pair_does_better_than_a_corner(kind, weighted):
    explicit = np.array([[0, 0], [3, 1], [1, 0], [2, 5], [4, 4]])
    index_set = oracles.total_set(2, 6) if kind == "total" else explicit
    weights = np.random.default_rng(4).uniform(0, 2, len(index_set)) if weighted else None
    value, u = oracles.l1_formula(index_set, weights)
    assert oracles.searched_sensitivity(index_set, 1, weights=weights) == pytest.approx(value, rel=1e-7)
    v = oracles.monomials(np.stack([np.ones(2), u]), index_set)
    w = np.ones(len(index_set)) if weights is None else weights
    assert w @ np.abs(v[0] - v[1]) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("d", "size", "ratio"), [(30, 64, "1.8438"), (30, 79, "1.8481"), (100, 128, "1.953"), (5, 6, "1.6667")]
)
def test_low_degrees_cost_nearly_twice_their_number(d, size, ratio):
    index_set = oracles.graded_set(d, size)
    value, _ = oracles.l1_formula(index_set, starts=8)
    assert value / size == printed(ratio)
    if size == d + 1:
        assert value == pytest.approx(2 * d, rel=1e-12)


@pytest.mark.parametrize(
    ("t", "d", "ratio"),
    [
        (2, 1, "2.000"),
        (4, 1, "2.000"),
        (8, 1, "2.000"),
        (4, 2, "2.000"),
        (3, 1, "1.715"),
        (3, 2, "1.778"),
        (5, 1, "1.793"),
        (5, 2, "1.92"),
        (15, 2, "1.991"),
    ],
)
def test_squared_euclidean_sensitivity_is_twice_the_number_for_even_degrees_and_less_for_odd(t, d, ratio):
    found = oracles.searched_sensitivity(oracles.tensor_set(d, t), 2, starts=24) ** 2
    assert found / t**d == printed(ratio)
    if d == 1:
        # Attained at the corner, by Cauchy and Schwarz.
        x = np.linspace(0, np.pi, 20_001)
        largest = ((1 - np.cos(np.outer(np.arange(t), x))) ** 2).sum(axis=0).max()
        assert found == pytest.approx(largest, rel=1e-6)


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("index_set", [oracles.tensor_set(2, 3), oracles.total_set(3, 3)], ids=["tensor", "total"])
def test_adding_a_point_costs_the_number_of_monomials(index_set, norm):
    found = oracles.searched_sensitivity(index_set, norm, relation="add", starts=20)
    assert found == pytest.approx(len(index_set) ** (1 / norm), rel=1e-9)


@pytest.mark.parametrize("t", [3, 6])
def test_weighted_bounds_are_bounds(t):
    rng = np.random.default_rng(t)
    index_set = oracles.tensor_set(2, t)
    w = rng.uniform(0, 1, t * t) / (1 + index_set.sum(axis=1))
    exact, _ = oracles.l1_formula(index_set, w)
    assert exact <= oracles.certified_l1(t, 2, w.reshape(t, t)) <= exact * 1.02**2
    squared = oracles.searched_sensitivity(index_set, 2, weights=w) ** 2
    assert squared <= 2 * oracles.l1_formula(index_set, w**2)[0] * (1 + 1e-9)


# Coefficients and damping.


def test_coefficients_agree():
    def smooth(x):
        return np.exp(-((x[:, 0] - 0.3) ** 2) / 0.5)

    np.testing.assert_allclose(
        oracles.coefficients_by_dct(smooth, 12, points=64), oracles.coefficients_by_quadrature(smooth, 12), atol=1e-12
    )
    kink = oracles.coefficients_by_dct(lambda x: np.abs(x[:, 0] - 0.3), 6, points=20_000)
    by_quadrature = oracles.coefficients_by_quadrature(lambda x: np.abs(x[:, 0] - 0.3), 6, breaks=[0.3])
    np.testing.assert_allclose(kink, by_quadrature, atol=1e-8)


def test_coefficients_of_monomials_are_units():
    index_set = oracles.tensor_set(2, 4)
    for m in index_set:
        c = oracles.coefficients_by_dct(lambda x, m=m: oracles.monomials(x, m[None])[:, 0], 4, d=2)
        np.testing.assert_allclose(c, (index_set == m).all(axis=1).reshape(4, 4), atol=1e-14)


def test_answers_are_sums_of_the_function():
    rng = np.random.default_rng(2)
    points = rng.uniform(-1, 1, (7, 2))

    def f(x):
        return np.exp(-((x - [0.3, -0.5]) ** 2).sum(axis=1) / 2)

    summary = oracles.exact_sums(points, oracles.tensor_set(2, 14)).reshape(14, 14)
    answer = oracles.tensor_answer(oracles.coefficients_by_dct(f, 14, d=2), summary)
    assert answer == pytest.approx(f(points).sum(), abs=1e-9)


def bump(s):
    return lambda x: np.exp(-((x[:, 0] - 0.3) ** 2) / (2 * s * s))


def absolute(power):
    return lambda x: np.abs(x[:, 0] - 0.3) ** power


ERRORS = [
    (bump(0.5), 8, "6.7e-4", "1.3e-2", "0.154"),
    (bump(0.5), 12, "8.8e-6", "1.2e-3", "0.085"),
    (bump(0.5), 16, "5.3e-8", "9.9e-5", "0.054"),
    (bump(0.25), 12, "6.4e-3", "3.7e-2", "0.25"),
    (bump(0.25), 16, "3.2e-4", "8.5e-3", "0.17"),
    (bump(1.0), 6, "4.2e-4", "4.1e-3", "0.071"),
    (absolute(1), 16, "0.038", "0.053", "0.135"),
    (absolute(3), 16, "2.7e-4", "8.5e-4", "0.079"),
]


@pytest.mark.parametrize(("f", "t", "by_truncation", "by_vallee_poussin", "by_jackson"), ERRORS)
def test_damping_costs_accuracy(f, t, by_truncation, by_vallee_poussin, by_jackson):
    c = oracles.coefficients_by_dct(f, t, points=4096)
    x = np.cos(np.linspace(0, np.pi, 20_001))
    expected = zip(
        ("truncated", "vallee_poussin", "jackson"), (by_truncation, by_vallee_poussin, by_jackson), strict=True
    )
    for name, text in expected:
        error = np.abs(chebyshev.chebval(x, c * getattr(oracles, name)(t)) - f(x[:, None])).max()
        assert error == printed(text), name


def test_damping_hardly_changes_the_noise_of_an_answer():
    c = oracles.coefficients_by_dct(bump(0.5), 16)[1:]
    assert np.linalg.norm(c) == printed("0.46")
    assert 0.9 < np.linalg.norm(c * oracles.jackson(16)[1:]) / np.linalg.norm(c) < 1


@pytest.mark.parametrize("t", [2, 3, 8, 17])
def test_damping_factors_fall_from_one_and_jackson_is_a_positive_kernel(t):
    for factors in (oracles.truncated(t), oracles.vallee_poussin(t), oracles.jackson(t)):
        assert factors[0] == pytest.approx(1.0)
        assert (np.diff(factors) <= 1e-15).all()
        assert (factors > 0).all()
    x = np.linspace(0, np.pi, 2001)
    assert (1 + 2 * np.cos(np.outer(x, np.arange(1, t))) @ oracles.jackson(t)[1:]).min() > -1e-12


# Kernels in Chebyshev form.


@pytest.mark.parametrize(
    ("s", "t", "rank", "error"), [(0.5, 16, 15, "1.6e-7"), (0.25, 24, 24, "1e-6"), (1.0, 16, 10, None)]
)
def test_kernels_are_matrices_of_small_rank(s, t, rank, error):
    k = oracles.gaussian_kernel(s)
    G = oracles.kernel_matrix(k, t)
    eigenvalues = np.linalg.eigvalsh(G)
    assert eigenvalues.min() > -1e-15
    assert (eigenvalues > 1e-12).sum() == rank
    x = np.cos(np.linspace(0, np.pi, 401))
    V = chebyshev.chebvander(x, t - 1)
    distance = np.abs(V @ G @ V.T - k(x[:, None], x[None])).max()
    assert distance < 1e-11 if error is None else distance == printed(error)


def test_a_kernel_of_too_small_degree_exceeds_one():
    G = oracles.kernel_matrix(oracles.gaussian_kernel(0.25), 8)
    V = chebyshev.chebvander(np.cos(np.linspace(0, np.pi, 2001)), 7)
    assert np.einsum("ni,ij,nj->n", V, G, V).max() == printed("1.053")


# Projections.


@pytest.mark.parametrize("seed", range(5))
def test_the_nearest_measure_satisfies_its_optimality_conditions(seed):
    rng = np.random.default_rng(seed)
    cells = np.array(list(itertools.product(np.cos(np.pi * (np.arange(4) + 0.5) / 4), repeat=2)))
    A = oracles.monomials(cells, oracles.tensor_set(2, 3)).T
    y, w = A @ rng.dirichlet(np.ones(16)) + 0.3 * rng.normal(size=9), rng.uniform(0.5, 2, 9)
    p = oracles.nearest_measure(A, y, w)
    assert p.sum() == pytest.approx(1, abs=1e-9)
    assert (p >= 0).all()
    # Gradients are equal where p > 0 and not smaller elsewhere.
    gradient = A.T @ (w * (A @ p - y))
    level = p @ gradient
    assert gradient.min() > level - 1e-6
    assert np.abs(gradient[p > 1e-9] - level).max() < 1e-6


def test_a_measure_is_its_own_projection():
    A = np.vstack([np.ones(5), np.linspace(-1, 1, 5), np.linspace(-1, 1, 5) ** 2])
    p = np.array([0.0, 0.5, 0.0, 0.0, 0.5])
    np.testing.assert_allclose(A @ oracles.nearest_measure(A, A @ p), A @ p, atol=1e-8)
