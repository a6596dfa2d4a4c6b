"""Half widths: exact cases, one-sidedness and tightness against closed forms, and coverage by simulation."""

import math
import time

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sordino as so
from sordino.accuracy.half_widths import (
    factor_of_boxes,
    gaussian_half_width,
    laplace_half_width,
    laplace_sum_half_width,
)
from sordino.accuracy.lattice_half_widths import discrete_sum_half_width, equal_discrete_half_width
from sordino.errors import DataTypeError, InvalidParameterError, ShapeError

LEVELS = [0.5, 0.9, 0.95, 0.999, 1.0 - 1e-9]
# Fixed so that a failure can be repeated; any seed passes with the stated probability.
SEED = 20260102


@pytest.mark.parametrize("level", [0.01, *LEVELS])
@pytest.mark.parametrize("answers", [1, 2, 1000])
def test_gaussian_coverage_is_exact(level: float, answers: int) -> None:
    width = gaussian_half_width(2.0, level, answers)
    with mpmath.workdps(50):
        each = mpmath.erf(mpmath.mpf(width) / 2 / mpmath.sqrt(2))
        assert abs((1 - each**answers) / (1 - mpmath.mpf(level)) - 1) < 1e-12


def test_gaussian_width_of_an_array() -> None:
    widths = gaussian_half_width(np.array([1.0, 2.0]), 0.95)
    assert widths == pytest.approx([1.959963984540054, 3.919927969080108])


@pytest.mark.parametrize("level", LEVELS)
def test_laplace_coverage_is_exact(level: float) -> None:
    assert math.exp(-laplace_half_width(1.0, level)) == pytest.approx(1.0 - level, rel=1e-13)
    assert math.exp(-laplace_half_width(3.0, level, 50) / 3.0) == pytest.approx((1.0 - level) / 50, rel=1e-13)
    assert laplace_sum_half_width([0.0, 3.0, 0.0], level, 50) == laplace_half_width(3.0, level, 50)


def tail_of_two(first: float, second: float, q: float) -> mpmath.mpf:
    """P(|first L_1 + second L_2| > q) by partial fractions, for different weights."""
    first, second, q = mpmath.mpf(first), mpmath.mpf(second), mpmath.mpf(q)
    gap = first**2 - second**2
    return (first**2 * mpmath.exp(-q / first) - second**2 * mpmath.exp(-q / second)) / gap


@pytest.mark.parametrize("level", [0.05, *LEVELS])
@pytest.mark.parametrize("second", [0.99, 0.5, 0.1, 1e-3, 1e-6])
def test_two_weights_against_partial_fractions(level: float, second: float) -> None:
    q = laplace_sum_half_width([second, 1.0], level)
    with mpmath.workdps(50):
        tail = 1 - mpmath.mpf(level)
        assert tail_of_two(1.0, second, q) <= tail < tail_of_two(1.0, second, 0.99 * q)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("count", [2, 3, 7, 50])
def test_equal_weights_against_the_closed_form(level: float, count: int) -> None:
    # A sum of n equal Laplace variables is a difference of two Gamma(n) variables: P(|S| > q) is twice
    # exp(-q) sum_j C(n-1+j, j) 2**-(n+j) sum_(i <= n-1-j) q**i/i!.
    def tail(q: float) -> mpmath.mpf:
        partial = [mpmath.mpf(0)]
        for i in range(count):
            partial.append(partial[-1] + mpmath.mpf(q) ** i / mpmath.factorial(i))
        return (
            2
            * mpmath.exp(-mpmath.mpf(q))
            * sum(
                mpmath.binomial(count - 1 + j, j) * mpmath.mpf(2) ** -(count + j) * partial[count - j]
                for j in range(count)
            )
        )

    q = laplace_sum_half_width(np.ones(count), level)
    with mpmath.workdps(60):
        assert abs(tail(0.0) - 1) < mpmath.mpf(10) ** -40
        assert tail(q) <= 1 - mpmath.mpf(level) < tail(0.99 * q)


@pytest.mark.statistical
def test_coverage_by_simulation() -> None:
    generator = np.random.default_rng(SEED)
    weights = np.concatenate([np.ones(20), [4.0, 2.5, 0.1]])
    noise = np.abs(generator.laplace(size=(400_000, len(weights))) @ weights)
    for level in (0.5, 0.9, 0.99):
        missed = int((noise > laplace_sum_half_width(weights, level)).sum())
        expected = 400_000 * (1.0 - level)
        # Six standard deviations above (false alarm 1e-9); below, 1 % of width is at most 8 % of the tail.
        spread = 6.0 * math.sqrt(expected)
        assert 0.92 * expected - spread < missed < expected + spread


@pytest.mark.statistical
def test_simultaneous_gaussian_coverage_by_simulation() -> None:
    generator = np.random.default_rng(SEED)
    shared = generator.normal(size=(100_000, 1))
    answers = 0.6 * shared + 0.8 * generator.normal(size=(100_000, 10))
    covered = int((np.abs(answers).max(axis=1) <= gaussian_half_width(1.0, 0.9, 10)).sum())
    # Sidak: at least 0.9; six standard deviations, false alarm 1e-9.
    assert covered > 90_000 - 6.0 * math.sqrt(9_000.0)


@pytest.mark.parametrize("count", [600, 100_000])
def test_many_distinct_weights_approach_the_normal_law(count: int) -> None:
    weights = np.random.default_rng(SEED).uniform(0.1, 1.0, count)
    stderr = math.sqrt(2.0 * float(weights @ weights))
    q = laplace_sum_half_width(weights, 0.95)
    assert q == pytest.approx(gaussian_half_width(stderr, 0.95), rel=0.006)


def test_grouping_many_weights_changes_less_than_it_says() -> None:
    weights = np.geomspace(1e-3, 1.0, 512)
    exact = laplace_sum_half_width(weights, 0.99)
    grouped = laplace_sum_half_width(np.append(weights, np.full(2, 1e-12) * [1.0, 2.0]), 0.99)
    assert exact * (1.0 - 1e-3) <= grouped <= exact * 1.004


def test_a_million_weights_are_fast() -> None:
    weights = 1.0 / np.arange(1.0, 1e6 + 1.0)
    start = time.perf_counter()
    q = laplace_sum_half_width(weights, 0.95)
    assert time.perf_counter() - start < 0.5
    assert q >= laplace_sum_half_width(weights[:500], 0.95) * 0.999


@given(
    weights=st.lists(st.floats(1e-6, 1e6), min_size=2, max_size=8),
    level=st.floats(0.05, 1.0 - 1e-12),
    answers=st.integers(1, 10**6),
)
def test_sum_width_lies_between_the_largest_weight_and_the_sum(
    weights: list[float], level: float, answers: int
) -> None:
    q = laplace_sum_half_width(weights, level, answers)
    p = (1.0 - level) / answers
    assert q >= max(weights) * -math.log(p) * (1.0 - 1e-9)
    assert laplace_sum_half_width([4.0 * weight for weight in weights], level, answers) == pytest.approx(4.0 * q)
    # |S| <= sum of w_i |L_i|, and by the union bound each |L_i| is below log(n/p).
    assert q <= 1.01 * sum(weights) * math.log(len(weights) / p)


def test_all_zero_weights_have_no_noise() -> None:
    assert laplace_sum_half_width(np.zeros(3), 0.95) == 0.0


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, 1.1, math.nan])
def test_levels_outside_the_unit_interval_are_refused(level: float) -> None:
    for act in (gaussian_half_width, laplace_half_width):
        with pytest.raises(InvalidParameterError, match="level"):
            act(1.0, level)
    with pytest.raises(InvalidParameterError, match="level"):
        laplace_sum_half_width([1.0], level)


def test_bad_weights_and_counts_are_refused() -> None:
    with pytest.raises(InvalidParameterError, match="answers"):
        gaussian_half_width(1.0, 0.95, 0)
    with pytest.raises(DataTypeError, match="answers"):
        laplace_half_width(1.0, 0.95, 1.5)  # type: ignore[call-overload]
    with pytest.raises(ShapeError):
        laplace_sum_half_width([[1.0]], 0.95)
    with pytest.raises(ShapeError):
        laplace_sum_half_width([], 0.95)
    with pytest.raises(DataTypeError):
        laplace_sum_half_width(["a"], 0.95)
    with pytest.raises(InvalidParameterError):
        laplace_sum_half_width([1.0, -1.0], 0.95)
    with pytest.raises(InvalidParameterError):
        laplace_sum_half_width([1.0, math.nan], 0.95)


@pytest.mark.parametrize("level", [0.5, 0.95, 1 - 1e-6])
def test_answers_of_equal_variance_need_not_have_equal_laws(level):
    """The last answer of a long series has the variance of the inner ones, but its weights are others."""
    workload = so.Convolution([1, 1, 1, 1, 0, 2, 0, 0, 0], length=10_001, boundary="same")
    release = so.plan(workload, so.PureDP(epsilon=1.0), mechanism="identity-laplace").release(np.zeros(10_001))
    interval = release.interval(level)
    widths = (interval.upper - interval.lower) / 2.0
    _, rates = release.fit.rows
    for t in (0, 3, 4, 5_000, 9_996, 9_999, 10_000):
        row = np.abs(release.workload.core.row(t))
        row = row[row > 0]
        equal = len(set(row)) == 1
        expected = (
            row[0] * equal_discrete_half_width(rates[0], len(row), level)
            if equal
            else discrete_sum_half_width(row, rates[: len(row)], level)
        )
        assert widths[t] == pytest.approx(expected, rel=1e-9)


def test_a_bound_of_nothing_is_not_printed():
    plan = so.plan(so.Matrix(np.zeros((2, 3)) + np.eye(2, 3)), so.ApproxDP(epsilon=1.0, delta=1e-6))
    assert "no bound" not in plan.explain()
    large = so.plan(so.Marginals([2] * 12, k=3), so.ApproxDP(epsilon=1.0, delta=1e-6))
    assert "bound          0 " not in large.explain()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("coordinates", [1, 2, 11, 300])
def test_boxes_cover_one_of_their_coordinates(level: float, coordinates: int) -> None:
    """`P(|rho U| > x) = E max(0, 1 - x/rho)`, rho Gamma(m + 1): in closed form `Q(m + 1, x) - x/m Q(m, x)`."""
    variance = (coordinates + 1) * (coordinates + 2) / 3.0
    with mpmath.workdps(40):
        x = mpmath.mpf(factor_of_boxes(coordinates, level) * math.sqrt(variance))
        both = [mpmath.gammainc(m, x, regularized=True) for m in (coordinates + 1, coordinates)]
        missed = both[0] - x / coordinates * both[1]
        assert missed <= (1 - mpmath.mpf(level)) * (1 + 1e-9)
    assert factor_of_boxes(coordinates, level, 50) >= factor_of_boxes(coordinates, 1.0 - (1.0 - level) / 50) * (
        1 - 1e-6
    )


@pytest.mark.statistical
@pytest.mark.parametrize("weights", [[1.0] * 12, [1.0, 0.1] * 6, [5.0] + [1.0] * 11], ids=["even", "uneven", "one"])
def test_boxes_cover_combinations_and_are_not_far_too_wide(weights: list[float]) -> None:
    """Two boxes, of 4 and 8 coordinates, 200,000 draws: coverage by more than 5 standard errors; 95 % within 2.7."""
    rng, own = np.random.default_rng(SEED), np.array(weights)
    noise = np.concatenate(
        [rng.gamma(m + 1, size=(200_000, 1)) * rng.uniform(-1, 1, (200_000, m)) for m in (4, 8)], axis=1
    )
    sizes = np.repeat([4, 8], [4, 8])
    deviation = math.sqrt(float((own**2 * (sizes + 1) * (sizes + 2) / 3.0).sum()))
    found = np.abs(noise @ own) / deviation
    for level in (0.5, 0.9, 0.95, 0.999):
        missed = (found > factor_of_boxes(4, level)).mean()
        assert missed < 1.0 - level + 5.0 * math.sqrt(level * (1.0 - level) / len(found))
    assert factor_of_boxes(4, 0.95) < 1.4 * np.quantile(found, 0.95)


def test_marginals_with_boxes_have_shorter_intervals() -> None:
    workload, privacy = so.Marginals([2] * 8, k=1), so.PureDP(epsilon=1.0)
    boxes, laplace = (so.plan(workload, privacy, mechanism=name).fit for name in ("boxes-laplace", "fourier-laplace"))
    for level in (0.9, 0.95, 0.9999):
        assert boxes.largest_half_width(level) < 0.7 * laplace.largest_half_width(level)
    # No radius that noise of so many coordinates has is beyond the lattice, however small epsilon is.
    door = so.plan(so.Marginals([2] * 400, k=2), so.PureDP(epsilon=1e-9), mechanism="boxes-laplace").fit.door
    assert door.quarter_units / 4.0 * (2 * 80_200 + 128) < 2.0**60
