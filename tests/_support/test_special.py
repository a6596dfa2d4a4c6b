"""Scalar functions against mpmath, and the error bounds that the calibration relies on."""

import math
import random
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sordino as so
from sordino._support.normal_tails import (
    _FIRST_INTEGRAL_UNITS,
    _MILLS_UNITS,
    _first_integral,
    _mills,
    log_gaussian_delta,
    log_normal_cdf,
    mills_ratio,
    normal_quantile,
)
from sordino._support.rounding import decimal_up
from sordino.errors import InvalidParameterError

UNIT = 2.0**-53
# Fixed so that a failure can be repeated; any seed should pass.
SEED = 20260101


def exact_mills(x: float) -> mpmath.mpf:
    x = mpmath.mpf(x)
    return mpmath.sqrt(mpmath.pi / 2) * mpmath.exp(x * x / 2) * mpmath.erfc(x / mpmath.sqrt(2))


def exact_delta(epsilon: float, mu: float) -> mpmath.mpf:
    epsilon, mu = mpmath.mpf(epsilon), mpmath.mpf(mu)
    high, low = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
    return mpmath.ncdf(high) - mpmath.exp(epsilon) * mpmath.ncdf(low)


def test_exact_delta_on_known_values() -> None:
    with mpmath.workdps(40):
        # delta(0; mu) = 2 Phi(mu/2) - 1 = erf(mu/sqrt(8)).
        assert abs(exact_delta(0.0, 1.0) - mpmath.erf(mpmath.sqrt(mpmath.mpf(1) / 8))) < mpmath.mpf(10) ** -35


def test_mills_ratio_and_its_derivative_keep_their_bounds() -> None:
    generator = random.Random(SEED)
    points = [2.0, 1.9999999, -1.0 + 1e-9, 0.0]
    points += [generator.uniform(-1.0, 2.0) for _ in range(200)]
    points += [generator.uniform(2.0, 2.5) for _ in range(100)] + [
        10 ** generator.uniform(0.3, 1.5) for _ in range(200)
    ]
    with mpmath.workdps(60):
        for x in points:
            exact = exact_mills(x)
            assert abs(_mills(x) / exact - 1) <= 0.5 * _MILLS_UNITS * UNIT
            slope = 1 - mpmath.mpf(x) * exact
            assert abs(_first_integral(x) / slope - 1) <= 0.5 * _FIRST_INTEGRAL_UNITS * UNIT


@pytest.mark.parametrize("x", [-37.5, -20.0, -3.0, -1e-8, 0.0, 1.0, 2.0, 40.0, 1e6])
def test_mills_ratio(x: float) -> None:
    with mpmath.workdps(60 + int(min(abs(x), 50.0) ** 2)):
        exact = 1 / mpmath.mpf(x) - 1 / mpmath.mpf(x) ** 3 if x > 1e3 else exact_mills(x)
        assert abs(mills_ratio(x) / exact - 1) < (4 + x * x if x < 0.0 else 4) * 1e-15


def test_mills_ratio_overflows_to_infinity() -> None:
    assert mills_ratio(-40.0) == math.inf


@pytest.mark.parametrize("x", [-1e3, -38.0, -5.0, -2.0, -1.9, -0.1, 0.0, 0.5, 6.0, 37.0])
def test_log_normal_cdf(x: float) -> None:
    with mpmath.workdps(400):
        exact = mpmath.log(mpmath.erfc(-mpmath.mpf(x) / mpmath.sqrt(2)) / 2)
        assert abs(log_normal_cdf(x) / exact - 1) < (100 + x * x) * 1e-16


@pytest.mark.parametrize("probability", [1e-300, 1e-20, 1e-6, 0.3, 0.5, 0.975])
def test_normal_quantile_inverts(probability: float) -> None:
    assert math.exp(log_normal_cdf(normal_quantile(probability))) == pytest.approx(probability, rel=3e-12)


def delta_cases() -> list[tuple[float, float]]:
    """(epsilon, mu) over the whole range, most of them where delta is between 1e-300 and 1."""
    generator = random.Random(SEED)
    cases = [(1e-9, 1e-9), (1e-9, 1e4), (1e4, 1e4), (1e4, 140.0), (0.0, 1e-9), (0.0, 3.0), (3.7e-8, 1e-9)]
    for _ in range(150):
        mu = 10 ** generator.uniform(-9.0, 2.0)
        a = generator.uniform(-37.0, 6.0)
        if mu * (0.5 * mu - a) > 1e-12:
            cases.append((mu * (0.5 * mu - a), mu))
        cases.append((mu * mu * generator.uniform(0.0, 3.0), mu))
    return cases


@pytest.mark.parametrize(("epsilon", "mu"), delta_cases())
def test_gaussian_delta_is_inside_its_error_bound(epsilon: float, mu: float) -> None:
    # Both terms of the curve have full relative accuracy; their difference loses a relative mu**2 at worst.
    with mpmath.workdps(70):
        exact = mpmath.log(exact_delta(epsilon, mu))
        bound = log_gaussian_delta(epsilon, mu)
        assert abs(bound.value - exact) <= bound.error
        assert bound.upper >= exact
        if exact > -700:
            assert bound.error < 1e-11


def test_gaussian_delta_at_1e_minus_300() -> None:
    with mpmath.workdps(400):
        bound = log_gaussian_delta(36.0, 1.0)
        exact = exact_delta(36.0, 1.0)
        assert 1e-300 < exact < 1e-270
        assert abs(mpmath.exp(mpmath.mpf(bound.value)) / exact - 1) < 1e-12


def test_gaussian_delta_beyond_floating_point() -> None:
    bound = log_gaussian_delta(1e4, 1e-3)
    assert bound.value == pytest.approx(-0.5e14, rel=1e-6)
    assert math.isfinite(bound.upper)


@pytest.mark.parametrize(("epsilon", "mu"), [(-1.0, 1.0), (1.0, 0.0), (1.0, -1.0), (math.nan, 1.0), (1.0, math.inf)])
def test_gaussian_delta_refuses(epsilon: float, mu: float) -> None:
    with pytest.raises(InvalidParameterError):
        log_gaussian_delta(epsilon, mu)


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.1, 6, "0.1"),
        (1.0000004, 6, "1.00001"),
        (1.0049e-6, 3, "1.01e-06"),
        (1e-6, 3, "1e-06"),
        (9.9999999, 6, "10"),
        (999999.9, 6, "1e+06"),
        (1.0, 6, "1"),
        (1 / 3, 6, "0.333334"),
    ],
)
def test_printed_numbers_are_rounded_up(value, digits, text):
    assert decimal_up(value, digits) == text


@given(st.floats(1e-300, 1e300), st.integers(2, 9))
def test_no_printed_number_is_below(value, digits):
    found = Fraction(decimal_up(value, digits))
    assert found * (1 + Fraction(1, 2**50)) >= Fraction(value)
    assert found <= Fraction(value) * (1 + Fraction(101, 100) * Fraction(1, 10 ** (digits - 1)))


def test_no_guarantee_says_less_than_it_costs():
    plan = so.plan(so.Histogram(4), so.PureDP(epsilon=1.0000004))
    assert "1.00001-differential" in plan.guarantee()
    assert "3.00001-differential" in plan.guarantee(3)
    rho = so.plan(so.Histogram(4), so.ZeroConcentratedDP(rho=0.1234561))
    assert "0.123457-zero" in rho.guarantee()
    # Group privacy of many: no overflow, and delta is at most 1.
    compression = so.sketches.Compression(sparsity=so.sketches.ChosenSparsity())
    chosen = so.plan(
        so.Histogram(64),
        so.ApproxDP(epsilon=1.0, delta=1e-6),
        compression=compression,
        mechanism="compressive-gaussian",
    )
    assert "(1000, 1)" in chosen.guarantee(1000)
    assert "(5, 8.58e-05)" in chosen.guarantee(5)
