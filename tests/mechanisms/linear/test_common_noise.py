"""Noise in common for units that raise several cells: reference values, privacy by enumeration, optimality, refusals."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sordino as so

ONE = so.GaussianDP(mu=1.0)
APPROX = so.ApproxDP(epsilon=1.0, delta=1e-6)
PURE = so.PureDP(epsilon=1.0)


def several(k, per_cell=1):
    return so.AddRemove(k, per_cell=per_cell, one_signed=True)


def planned(d, k, privacy, law, workload=None):
    return so.plan(workload or so.Histogram(d), privacy, unit=several(k), mechanism=f"identity-common-{law}")


@pytest.mark.parametrize(
    ("d", "k", "std", "own", "common"),
    [(3, 3, 1.341641, 1.09545, 0.77460), (5, 5, 1.603567, 1.30931, 0.92582), (10, 10, 2.075498, 1.79743, 1.03775),
     (16, 16, 2.5, 2.23607, 1.11803), (24, 10, 2.781043, 2.61941, 0.93428), (24, 24, 2.947822, 2.69098, 1.20344),
     (100, 20, 4.179950, 4.09927, 0.81728), (100, 50, 5.474937, 5.24524, 1.56919), (100, 100, 5.5, 5.24404, 1.65831),
     (2, 2, 1.154701, 0.81650, 0.81650)],
)  # fmt: skip
def test_gaussian_reference_values(d, k, std, own, common):
    plan = planned(d, k, ONE, "gaussian")
    assert math.isclose(plan.rmse, std, rel_tol=1e-6)
    assert math.isclose(plan.fit.door.noise, own, rel_tol=1e-5)
    assert math.isclose(plan.fit.door.noise * math.sqrt(plan.fit.strategy.common_noise), common, rel_tol=1e-5)
    assert 1.0 - 1e-9 <= plan.optimality <= 1.0005


@pytest.mark.parametrize(
    ("k", "pure", "gaussian"),
    [(2, 1.91903, 4.8782), (3, 3.11075, 5.6680), (5, 4.70863, 6.7746), (9, 7.88469, 8.4494), (10, 8.92575, 8.7683),
     (24, 19.37067, 12.4536), (100, 74.99324, 23.2357)],
)  # fmt: skip
def test_released_errors(k, pure, gaussian):
    assert math.isclose(planned(k, k, PURE, "laplace").rmse, pure, abs_tol=6e-6)
    assert math.isclose(planned(k, k, APPROX, "gaussian").rmse, gaussian, rel_tol=1e-5)
    chosen = so.plan(so.Histogram(k), APPROX, unit=several(k))
    assert chosen.rmse <= min(pure, gaussian) * 1.01 and chosen.mechanism.startswith("identity-common")
    alone = so.plan(so.Histogram(k), APPROX, unit=so.AddRemove(k, per_cell=1))
    assert chosen.rmse < alone.rmse and "on all together" in chosen.explain()


def test_the_best_common_noise_against_a_grid():
    for d in range(2, 31):
        for k in range(2, d + 1):
            m = np.arange(1, k + 1)
            c = np.linspace(0.0, 1.0 / d, 4001)[:-1, None]
            grid = ((m - c * m**2).max(axis=1) * (1.0 + c / (1.0 - c * d)).ravel()).min()
            try:
                found = planned(d, k, ONE, "gaussian").rmse ** 2
            except so.errors.UnsupportedMechanismError:
                found = float(k)
            assert found <= grid * (1.0 + 1e-6), (d, k)
            assert found >= grid * (1.0 - 1e-3), (d, k)


@settings(deadline=None, max_examples=40)
@given(d=st.integers(2, 6), k=st.integers(2, 6), cap=st.integers(1, 3))
def test_gaussian_distances_by_the_covariance(d, k, cap):
    """Every change of the polytope at integer points, under the covariance that is released."""
    unit = several(k, cap)
    if not unit.raises_several:
        return
    try:
        plan = so.plan(so.Histogram(d), ONE, unit=unit, mechanism="identity-common-gaussian")
    except so.errors.UnsupportedMechanismError:
        return
    own, common = plan.fit.door.noise**2, plan.fit.door.noise**2 * plan.fit.strategy.common_noise
    inverse = np.linalg.inv(own * np.eye(d) + common * np.ones((d, d)))
    for v in itertools.product(range(cap + 1), repeat=d):
        if sum(v) <= k:
            assert np.array(v) @ inverse @ np.array(v) <= 1.0 + 1e-9


@pytest.mark.parametrize(("d", "k", "epsilon"), [(2, 2, 1.0), (2, 2, 2.5), (3, 3, 1.0), (3, 3, 2.0), (4, 4, 1.5)])
def test_pure_loss_by_enumeration(d, k, epsilon):
    """Exact probabilities of all outputs in a window, the common noise added up: within 1 % of epsilon, never above."""
    plan = planned(d, k, so.PureDP(epsilon=epsilon), "laplace")
    rates = plan.fit.rows[1]
    own, common = float(rates[0]), float(rates[-1])
    assert len(rates) == d + 1 and (rates[:-1] == own).all()
    window = 9 if d < 4 else 6
    y = np.array(list(itertools.product(range(-window, window + 1), repeat=d)))
    shared = np.arange(-200, 201)

    def log_probability(points):
        exponents = np.array([-common * np.abs(shared) - own * np.abs(points[:, i : i + 1] - shared) for i in range(d)])
        total = exponents.sum(axis=0) + (d - 1) * common * np.abs(shared)
        top = total.max(axis=1, keepdims=True)
        return (top + np.log(np.exp(total - top).sum(axis=1, keepdims=True))).ravel()

    before, largest = log_probability(y), 0.0
    for m in range(1, k + 1):
        v = np.array([1] * m + [0] * (d - m))
        largest = max(largest, float(np.abs(log_probability(y - v) - before).max()))
    assert 0.98 * epsilon <= largest <= epsilon * (1.0 + 1e-9)


@pytest.mark.statistical
@pytest.mark.parametrize(("privacy", "law"), [(APPROX, "gaussian"), (PURE, "laplace")])
def test_released_covariance(privacy, law):
    """4000 keys: variances of cells and of the total, and the covariance, at 6 standard errors."""
    d, repeats = 6, 4000
    plan = planned(d, d, privacy, law)
    noise = []
    for seed in range(repeats):
        with so.testing.deterministic_noise(seed.to_bytes(32, "big")):
            release = plan.release(np.arange(d))
        noise.append(release.values - np.arange(d))
    noise = np.array(noise)
    own, common = (
        np.array([plan.fit.strategy.unit_variances()[0], plan.fit.strategy.common_noise]) * plan.fit.door.noise**2
    )
    assert math.isclose(own + common, plan.rmse**2, rel_tol=1e-9)
    spread = 6.0 * math.sqrt(6.0 / repeats)
    assert np.allclose(noise.var(axis=0), own + common, rtol=spread)
    assert math.isclose(noise.sum(axis=1).var(), d * own + d * d * common, rel_tol=spread)
    total = release.answer(so.Matrix(np.ones((1, d))))
    assert math.isclose(float(total.stderr[0]) ** 2, d * own + d * d * common, rel_tol=1e-9)
    box = release.sum([(0, 2)])
    assert math.isclose(float(box.stderr[0]) ** 2, 3 * own + 9 * common, rel_tol=1e-9)
    if law == "laplace":
        assert np.array_equal(noise, np.rint(noise))
    interval = release.interval(0.9)
    half = (interval.upper - interval.lower) / 2
    missed = (np.abs(noise) > half + 1e-9).mean(axis=0)
    assert (missed <= 0.1 + 6 * math.sqrt(0.09 / repeats)).all()
    wide = release.interval(0.9, simultaneous=True)
    together = (np.abs(noise) > (wide.upper - wide.lower) / 2 + 1e-9).any(axis=1).mean()
    assert together <= 0.1 + 6 * math.sqrt(0.09 / repeats)


def test_totals_decide_by_the_workload():
    """Sums of all cells get worse by common noise: then none is taken; differences gain."""
    total = so.Matrix(np.ones((1, 8)))
    with pytest.raises(so.errors.UnsupportedMechanismError, match="gains nothing"):
        planned(8, 8, ONE, "gaussian", total)
    assert not so.plan(total, APPROX, unit=several(8)).mechanism.startswith("identity-common")
    contrasts = so.Matrix(np.eye(8)[:-1] - np.eye(8)[1:])
    own = so.plan(contrasts, ONE, unit=several(8), mechanism="identity-gaussian")
    assert planned(8, 8, ONE, "gaussian", contrasts).rmse < 0.75 * own.rmse


def test_who_is_refused():
    for unit in (
        so.AddRemove(5, per_cell=1),
        so.AddRemove(5, one_signed=True),
        so.AddRemove(1, one_signed=True),
        so.ReplaceOne(2),
        so.UserLevel(5),
    ):
        with pytest.raises(so.errors.UnsupportedMechanismError, match="one_signed"):
            so.plan(so.Histogram(5), ONE, unit=unit, mechanism="identity-common")
        compared = so.compare(so.Histogram(5), APPROX, unit=unit)
        assert not any(row["mechanism"].startswith("identity-common") for row in compared.rows)
    with pytest.raises(so.errors.UnsupportedMechanismError, match="one record a cell"):
        so.plan(so.Histogram(5), PURE, unit=several(6, 2), mechanism="identity-common")
    with pytest.raises(so.errors.UnsupportedMechanismError, match="whole counts"):
        so.plan(so.Histogram(5), ONE, unit=several(5), mechanism="identity-common", integral=False)
    with pytest.raises(so.errors.DataTypeError, match="one_signed"):
        so.AddRemove(3, one_signed=1)
    assert repr(several(3)) == "AddRemove(records=3, per_cell=1, one_signed=True, label='one record')"
    assert "none lowers a count" in so.plan(so.Histogram(5), ONE, unit=several(3)).explain()


def test_mixed_signs_would_break_it():
    """What the unit promises is needed: under mixed signs the same noise gives more than mu."""
    plan = planned(10, 10, ONE, "gaussian")
    own, common = plan.fit.door.noise**2, plan.fit.door.noise**2 * plan.fit.strategy.common_noise
    inverse = np.linalg.inv(own * np.eye(10) + common * np.ones((10, 10)))
    v = np.array([1, -1] * 5)
    assert v @ inverse @ v > 2.0


def test_bounds_of_one_sign_bind():
    """No mechanism is below the bound, whatever the workload; and it is above that of one cell."""
    for workload in (so.Histogram(8), so.RunningSum(8), so.AllRanges(8), so.Matrix(np.tril(np.ones((8, 8))) * 0.5)):
        for k in (2, 4, 8):
            compared = so.compare(workload, ONE, unit=several(k))
            for row in compared.rows:
                if row["mechanism"].endswith("gaussian"):
                    assert row["rmse"] >= compared.bound.value * (1.0 - 1e-9), row
    # Reference: optimum of a histogram of 8 cells with all vertices.
    for k, optimum in ((2, 1.3956), (4, 1.8229), (8, 1.9069)):
        assert so.compare(so.Histogram(8), ONE, unit=several(k)).bound.value == pytest.approx(optimum, rel=1e-4)


def test_what_does_not_fit_the_lattice_is_refused_before_it_is_charged():
    """A lattice coarser than a cell would move every cell by itself; common noise beyond the sampler fails in planning."""
    with pytest.raises(so.errors.InvalidParameterError, match="lattice"):
        so.plan(so.Histogram(2000), so.GaussianDP(mu=1e-12), unit=several(5000, 5), mechanism="identity-common")
    contrasts = so.Matrix(np.eye(8)[:-1] - np.eye(8)[1:])
    for privacy, unit in (
        (so.ApproxDP(epsilon=0.001, delta=1e-8), several(800_000, 100_000)),
        (so.ApproxDP(epsilon=1e-5, delta=1e-8), several(8)),
        (so.GaussianDP(mu=1e-7), several(8)),
    ):
        ledger = so.Ledger(privacy)
        plan = so.plan(contrasts, privacy, unit=unit)
        plan.release(np.arange(8), ledger=ledger, request_id="a")
        assert len(ledger.history) == 1


@pytest.mark.parametrize("epsilon", [1.0, 10.0, 20.0, 40.0, 80.0])
def test_widths_fall_with_the_noise(epsilon):
    plan = so.plan(so.Histogram(5), so.PureDP(epsilon=epsilon), unit=several(5))
    release = plan.release(np.arange(5))
    own, box = release.interval(0.95), release.sum([(0, 0), (0, 4)]).interval(0.95)
    half = (own.upper - own.lower)[0] / 2
    assert half == (box.upper - box.lower)[0] / 2 == plan.fit.largest_half_width(0.95)
    assert half <= 4.0 * plan.rmse + 0.5
    bound = plan.fit.half_widths(np.array([plan.rmse]), 0.95)[0]
    assert half <= bound <= 12.0 * plan.rmse + 2.0


def test_targets_are_met_where_common_noise_gains_nothing():
    assert so.privacy_for(so.Histogram(2), rmse=1e-3, unit=several(2)).epsilon < 29.1
    for within in (1, 3, 10):
        found = so.privacy_for(so.Histogram(5), within=within, unit=several(5))
        alone = so.privacy_for(so.Histogram(5), within=within, unit=so.AddRemove(5, per_cell=1))
        assert found.epsilon < alone.epsilon
        assert so.plan(so.Histogram(5), found, unit=several(5), objective="max").fit.largest_half_width(0.95) <= within


def test_large_tables_are_planned_and_bounded():
    plan = so.plan(so.Histogram(2**20), ONE, unit=several(2**20))
    assert plan.optimality == pytest.approx(1.0, abs=1e-5)
