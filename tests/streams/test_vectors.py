"""Streams of vectors of a norm: clipped sums, what neighbours differ by, the noise that is on them."""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

import sordino as so

APPROX = so.ApproxDP(epsilon=1.0, delta=1e-6)
EPOCHS = so.UserLevel(max_participations=5, min_separation=20)


def clipped(rows, norm):
    """What is meant, in floating point."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows * np.minimum(1.0, norm / np.maximum(lengths, 1e-300))).sum(axis=0)


def square(vector):
    return sum((Fraction(float(x)) ** 2 for x in vector), Fraction(0))


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 40),
    st.integers(1, 9),
    st.sampled_from([0.001, 0.3, 1.0, 77.0]),
    st.sampled_from([np.float16, np.float32, np.float64, np.int32]),
    st.sampled_from([1e-3, 1.0, 50.0]),
)
def test_sums_are_clipped_ones_and_neighbours_as_far_apart_as_said(seed, records, dim, norm, dtype, size):
    rng = np.random.default_rng(seed)
    rows = (rng.normal(size=(records, dim)) * size).astype(dtype)
    found = so.training.clipped_sum(rows, norm)
    np.testing.assert_allclose(found, clipped(rows.astype(float), norm), atol=4e-9 * norm * records)
    # Exact: of sums with a record and without it, in whole numbers.
    for left_out in (0, records // 2):
        other = so.training.clipped_sum(np.delete(rows, left_out, axis=0), norm)
        difference = [Fraction(float(a)) - Fraction(float(b)) for a, b in zip(found, other, strict=True)]
        assert sum((x * x for x in difference), Fraction(0)) <= Fraction(norm) ** 2
    order = rng.permutation(records)
    np.testing.assert_array_equal(so.training.clipped_sum(rows[order], norm), found)
    np.testing.assert_array_equal(so.training.clipped_sum(rows.tolist(), norm), so.training.clipped_sum(rows, norm))


def test_records_that_are_no_vectors():
    rows = np.array([[math.nan, 1.0], [0.25, -0.5], [math.inf, 0.0], [1e308, -1e308], [5e-324, 0.0]])
    found = so.training.clipped_sum(rows, 1.0)
    np.testing.assert_allclose(found, [0.25 + 2**-0.5, -0.5 - 2**-0.5], atol=1e-8)
    np.testing.assert_array_equal(so.training.clipped_sum(np.zeros((0, 3)), 1.0), np.zeros(3))
    np.testing.assert_array_equal(so.training.clipped_sum(np.asfortranarray(rows), 1.0), found)
    for bad, error in (
        (np.zeros(3), so.errors.ShapeError),
        (np.zeros((2, 0)), so.errors.ShapeError),
        ([["a", "b"]], so.errors.DataTypeError),
        (np.zeros((2, 2), dtype=complex), so.errors.DataTypeError),
    ):
        with pytest.raises(error):
            so.training.clipped_sum(bad, 1.0)
    listed = so.training.clipped_sum([[1.0, 0.0], [3.0, 10**400], [None, 1.0]], 1.0)
    np.testing.assert_allclose(listed, [1.0, 1.0], atol=1e-8)
    for norm in (0.0, -1.0, math.nan, math.inf, 1e300, 2.0**-25, 2.0**21):
        with pytest.raises(so.errors.InvalidParameterError):
            so.training.clipped_sum(rows, norm)


@pytest.mark.parametrize("norm", [2.0**-20, 0.3, 1.0, 1000.0])
@pytest.mark.parametrize(
    "privacy", [APPROX, so.PureDP(epsilon=1.0), so.ZeroConcentratedDP(rho=0.1)], ids=["a", "p", "z"]
)
def test_a_vector_is_charged_for_its_norm(norm, privacy):
    """As a number of that size; in l1 for all its coordinates; a replaced one twice."""
    dim, laplace = 50, isinstance(privacy, so.PureDP)
    gaussian = ("blt", "two-diagonals", "time-varying-blt", "identity", "honaker-tree")
    for mechanism in ("identity", "binary-tree") if laplace else gaussian:
        for unit, twice in ((so.AddRemove(2), 1.0), (so.ReplaceOne(1), 2.0), (EPOCHS, 1.0)):

            def planned(unit=unit, mechanism=mechanism, **options):
                return so.plan(so.Continual(so.RunningSum(100), **options), privacy, unit=unit, mechanism=mechanism).fit

            single = so.AddRemove(1) if isinstance(unit, so.ReplaceOne) else unit
            vector, number = planned(dim=dim, record_norm=norm), planned(unit=single)
            ideal, encoding, rounding = vector.door.sensitivity
            expected = number.door.sensitivity[0] * norm * twice * (math.sqrt(dim) if laplace else 1.0)
            assert ideal == pytest.approx(expected, rel=1e-12)
            assert ideal >= expected * (1.0 - 1e-15)
            # Rounding an item moves it by a step in every coordinate at most.
            steps = 2.0**-vector.domain.fraction_bits * (dim if laplace else math.sqrt(dim))
            assert encoding >= number.door.sensitivity[0] * twice * steps
            assert encoding + rounding <= 2e-4 * ideal
            # Discrete noise of a number has a lattice of its own.
            expected = ideal / number.door.sensitivity[0] * number.rmse
            assert vector.rmse == pytest.approx(expected, rel=5e-2 if laplace else 1e-3)


def test_bounds_are_those_of_vectors():
    gaussian = so.GaussianDP(mu=1.0)
    vectors = so.plan(so.Continual(so.RunningSum(64), dim=9, record_norm=3.0), gaussian)
    numbers = so.plan(so.Continual(so.RunningSum(64)), gaussian)
    assert vectors.fit.bound.value == pytest.approx(3.0 * numbers.fit.bound.value)
    assert 1.0 <= vectors.optimality <= 1.001 * numbers.optimality
    workload = so.Continual(so.RunningSum(64), dim=9, record_norm=3.0)
    assert 1.0 <= so.plan(workload, gaussian, mechanism="optimal").optimality < 1.001


def test_what_does_not_go_together_is_refused():
    for options in (
        {"cells_per_record": 2, "dim": 3},
        {"one_signed": False},
        {"record_norm": 0.0},
        {"record_norm": -1.0},
        {"record_norm": math.nan},
        {"record_norm": 1e9},
    ):
        with pytest.raises(so.errors.InvalidParameterError):
            so.Continual(so.RunningSum(9), **({"record_norm": 1.0} | options))
    with pytest.raises(so.errors.InvalidParameterError):
        so.Continual(so.RunningHistogram(8, 4), record_norm=1.0)
    plain = so.plan(so.Continual(so.RunningSum(9), dim=2), APPROX).open()
    smoothed = so.plan(so.Continual(so.ExponentialSmoothing(0.9, 9), dim=2, record_norm=1.0), APPROX).open()
    for stream in (plain, smoothed):
        with pytest.raises(so.errors.InvalidParameterError):
            so.training.noisy_sum(stream, np.zeros((2, 2)))
        assert stream.step == 0
    stream = so.plan(so.Continual(so.RunningSum(1), dim=2, record_norm=1.0), APPROX).open()
    for bad in (np.zeros((2, 3)), np.zeros(2)):
        with pytest.raises(so.errors.ShapeError):
            so.training.noisy_sum(stream, bad)
    with pytest.raises(so.errors.DataTypeError):
        so.training.noisy_sum(None, np.zeros((2, 2)))
    so.training.noisy_sum(stream, np.zeros((2, 2)))
    with pytest.raises(so.errors.HorizonError):
        so.training.noisy_sum(stream, np.zeros((2, 2)))


def test_more_coordinates_than_counters_have():
    plan = so.plan(so.Continual(so.RunningSum(10), dim=2**22, record_norm=1.0), APPROX, unit=EPOCHS)
    assert sum(plan.fit.door.sensitivity[1:]) < 1e-3 * plan.fit.door.sensitivity[0]
    assert "4194304 coordinates" in plan.explain()


def test_saved_plans_are_the_same(tmp_path):
    plan = so.plan(so.Continual(so.RunningSum(100), dim=3, record_norm=0.7), APPROX, unit=EPOCHS)
    assert "record_norm=0.7" in repr(plan.workload)
    plan.save(tmp_path / "plan.json")
    assert so.StreamPlan.load(tmp_path / "plan.json").fit.is_same(plan.fit)


@pytest.mark.statistical
@pytest.mark.parametrize("norm", [0.25, 8.0])
def test_the_noise_of_a_step_and_of_sums(norm, known_noise):
    """4,000 coordinates: variances of sums at 6 standard errors, parts as differences of sums; below 1e-8 a step."""
    dim, steps = 4000, 30
    plan = so.plan(so.Continual(so.RunningSum(steps), dim=dim, record_norm=norm), APPROX, unit=EPOCHS)
    rng = np.random.default_rng(1)
    truth, parts = np.zeros(dim), np.zeros(dim)
    with plan.open() as sums:
        for step in range(1, steps + 1):
            rows = rng.normal(size=(3, dim)) * norm
            truth += clipped(rows, norm)
            parts += so.training.noisy_sum(sums, rows)
            np.testing.assert_allclose(parts, sums.value, atol=1e-9 * norm * dim)
            standardised = (sums.value - truth) / plan.fit.std([step])[0]
            assert abs((standardised**2).mean() - 1.0) < 6.0 * math.sqrt(2.0 / dim)
            assert abs(standardised.mean()) < 6.0 / math.sqrt(dim)
    assert scipy.stats.kstest(standardised, "norm").pvalue > 1e-6


def test_users_that_come_often_have_strategies_of_their_own():
    """Least errors known for these: of buffered Toeplitz strategies for k participations b steps apart."""
    for steps, times, apart, least in ((1000, 5, 200, 7.654), (2000, 10, 200, 12.890), (1000, 20, 50, 20.389)):
        unit = so.UserLevel(max_participations=times, min_separation=apart)
        plan = so.plan(so.Continual(so.RunningSum(steps), dim=2, record_norm=1.0), so.GaussianDP(mu=1.0), unit=unit)
        assert plan.mechanism == "blt-gaussian"
        assert plan.fit.rmse == pytest.approx(least, rel=2e-3)
