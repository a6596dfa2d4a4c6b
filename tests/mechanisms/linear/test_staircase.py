"""Staircase noise of a single number: references, its law by its definition, intervals, and what has none of it."""

import math

import numpy as np
import pytest
from scipy import stats

import sordino as so
from sordino.accuracy.staircase import Staircase


def weights(noise, most):
    k = np.abs(np.arange(-most, most + 1))
    return np.where(k < noise.first, 1.0, np.exp(-noise.rate * (1 + (k - noise.first) // noise.width)))


@pytest.mark.parametrize(
    ("width", "epsilon", "rmse"),
    [(5, 1.0, 6.9306), (5, 3.0, 1.9418), (5, 5.0, 0.8501), (10, 1.0, 13.850), (10, 3.0, 3.8980), (10, 5.0, 1.7002)],
)
def test_the_table(width, epsilon, rmse):
    """A count of people with several records, and a sum of values of up to so much."""
    count = so.plan(so.Histogram(1), so.PureDP(epsilon=epsilon), unit=so.AddRemove(width))
    total = so.plan(so.Matrix([np.arange(width + 1.0)]), so.PureDP(epsilon=epsilon), mechanism="output")
    for plan in (count, total):
        assert math.isclose(plan.rmse, rmse, rel_tol=4e-5)
        assert f"staircase of {width} steps, one number on whole counts" in plan.explain()
        assert plan.cost == so.privacy.PureCost(epsilon)
    noise = count.fit.staircase
    assert noise == total.fit.staircase
    most = 60 * width
    k, law = np.arange(-most, most + 1), weights(noise, most)
    assert math.isclose(math.sqrt(k**2 @ law / law.sum()), count.rmse, rel_tol=1e-9)
    assert math.isclose(law.max() / law.sum(), noise.unmoved, rel_tol=1e-12)
    for shift in range(1, width + 1):
        loss = np.abs(np.log(law[shift:] / law[:-shift]))
        assert loss.max() <= epsilon * (1 + 1e-12)


def test_steps_are_those_of_the_row():
    """All that a person can change is 3 or 6, a step of 3: two steps."""
    plan = so.plan(so.Matrix([[3.0, 6.0, 0.0]]), so.PureDP(epsilon=2.0), mechanism="output")
    assert plan.fit.staircase.step == 3.0 and plan.fit.staircase.width == 2
    assert all(value % 3 == 0 for value in (plan.release([5, 1, 7]).values[0] - 21.0 for _ in range(50)))


def test_none_where_several_numbers_are_measured_or_one_step_is_all():
    assert so.plan(so.Histogram(1), so.PureDP(epsilon=1.0)).fit.staircase is None
    assert so.plan(so.Histogram(2), so.PureDP(epsilon=1.0), unit=so.AddRemove(5)).fit.staircase is None
    gaussian = so.plan(so.Histogram(1), so.GaussianDP(mu=1.0), unit=so.AddRemove(5), mechanism="identity-gaussian")
    assert gaussian.fit.staircase is None


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 4.0])
def test_values_have_the_law_and_intervals_hold(epsilon):
    """Kolmogorov's distance of 20,000 values: false alarms below 1e-6. Intervals: those of the law, at both sides."""
    plan = so.plan(so.Histogram(1), so.PureDP(epsilon=epsilon), unit=so.AddRemove(7))
    noise, count = plan.fit.staircase, 20_000
    values = np.empty(count)
    for seed in range(count):
        with so.testing.deterministic_noise(seed.to_bytes(32, "big")):
            values[seed] = plan.release([100]).values[0] - 100
    most = 40_000
    chances = np.cumsum(weights(noise, most)) / weights(noise, most).sum()
    k = np.arange(-most, most + 1)
    distance = np.abs(np.searchsorted(np.sort(values), k, side="right") / count - chances).max()
    assert distance < math.sqrt(math.log(2e6) / (2 * count))
    for level in (0.5, 0.95, 0.9999):
        width = int(noise.half_width(level))
        law = weights(noise, most)
        beyond = [law[np.abs(k) > w].sum() / law.sum() for w in (width, width - 1)]
        assert beyond[0] <= (1 - level) * (1 + 1e-9) and (width == 0 or beyond[1] > (1 - level) * (1 - 1e-9))
    interval = plan.release([100]).interval(0.95)
    assert interval.upper[0] - interval.lower[0] == 2 * noise.half_width(0.95)
    assert stats.norm.sf(abs(values.mean()) / (plan.rmse / math.sqrt(count))) > 1e-7


@pytest.mark.parametrize(("width", "epsilon", "rmse"), [(10**6, 30.0, 36.04), (10**9, 35.0, 6806.0)])
def test_many_steps(width, epsilon, rmse):
    plan = so.plan(so.Histogram(1), so.PureDP(epsilon=epsilon), unit=so.AddRemove(width))
    assert math.isclose(plan.rmse, rmse, rel_tol=2e-3)
    assert plan.release([5]).values.shape == (1,)


def test_next_to_no_noise():
    """Releases end, and nothing is divided by zero, however large epsilon is."""
    for unit, more in ((so.AddRemove(5), {}), (so.AddRemove(1), {"integral": False, "max_value": 100})):
        for epsilon in (40.0, 800.0):
            plan = so.plan(so.Histogram(1), so.PureDP(epsilon=epsilon), unit=unit, **more)
            assert 0.0 < plan.rmse < 1e-3
            with so.testing.deterministic_noise(bytes(32)):  # one interval in twenty misses otherwise
                assert plan.release([10]).interval(1.0 - 1e-9).lower <= 10
    privacy = so.privacy_for(so.Histogram(1), within=4.0, unit=so.AddRemove(10**6))
    assert so.plan(so.Histogram(1), privacy, unit=so.AddRemove(10**6)).fit.largest_half_width(0.95) <= 4.0


def test_large_answers_are_rounded_whole_numbers():
    plan = so.plan(so.Histogram(2), so.PureDP(epsilon=2.0))
    weight, held = 0.7853981e17, 0
    for seed in range(400):
        with so.testing.deterministic_noise(seed.to_bytes(32, "big")):
            interval = plan.release([1000, 3]).answer(so.Matrix([[weight, 0.0]])).interval(0.95)
        held += int(interval.lower[0] <= weight * 1000 <= interval.upper[0])
    assert held >= 0.9 * 400


def test_the_epsilon_for_an_error():
    unit = so.AddRemove(5)
    for asked in ({"rmse": 1.9418}, {"within": 4.0}):
        privacy = so.privacy_for(so.Histogram(1), unit=unit, **asked)
        assert 2.5 < privacy.epsilon < 3.5
        plan = so.plan(so.Histogram(1), privacy, unit=unit)
        assert plan.rmse <= asked.get("rmse", math.inf)
    assert Staircase(1.0, 3.0, 5, 2).half_width(0.95) <= 8


def test_plans_are_kept(tmp_path):
    plan = so.plan(so.Histogram(1), so.PureDP(epsilon=3.0), unit=so.AddRemove(5))
    loaded = so.ReleasePlan.load(plan.save(tmp_path / "plan.json"))
    assert loaded.fit.staircase == plan.fit.staircase and loaded.rmse == plan.rmse


def test_sums_of_reals_have_it_on_their_grid():
    """A real total that one record moves by up to 8: many small steps."""
    plan = so.plan(so.Histogram(1), so.PureDP(epsilon=3.0), unit=so.AddRemove(8), integral=False, max_value=1000)
    assert plan.fit.staircase is not None and plan.fit.staircase.width > 8
    plain = math.sqrt(2.0) * 8 / 3.0
    assert plan.rmse < 0.85 * plain
