"""Schedules: events declared beforehand, composed by their privacy losses."""

import math

import pytest

import sordino as so
from sordino.privacy.calibration import delta_of_mu, gaussian_mu
from sordino.privacy.schedule import schedule_delta


def test_known_compositions():
    """One event of each kind, and two bits of randomised response by hand."""
    mu = 0.7
    assert math.isclose(schedule_delta([so.privacy.GaussianCost(mu=mu)], 1.0), delta_of_mu(mu, 1.0), rel_tol=1e-6)
    four = [so.privacy.GaussianCost(mu=mu / 2)] * 4
    assert math.isclose(schedule_delta(four, 1.0), delta_of_mu(mu, 1.0), rel_tol=1e-6)
    assert schedule_delta([so.privacy.PureCost(1.0)], 1.0) == 0.0
    assert schedule_delta([so.privacy.PureCost(0.5)] * 2, 1.0) == 0.0
    p = 1 / (1 + math.exp(-1.0))
    assert math.isclose(
        schedule_delta([so.privacy.PureCost(1.0)] * 2, 0.5), p * p - math.exp(0.5) * (1 - p) ** 2, rel_tol=1e-6
    )


@pytest.mark.slow
def test_against_privacy_loss_distributions():
    """dp-accounting composes the same randomised responses and Gaussians numerically."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    for count, loss, mu, epsilon in [(10, 0.3, 0.4, 2.0), (3, 1.0, 0.0, 1.5), (40, 0.1, 0.2, 1.0)]:
        events = [so.privacy.PureCost(loss)] * count + ([so.privacy.GaussianCost(mu=mu)] if mu else [])
        noise = 2.0 / (1.0 + math.exp(loss))
        theirs = pld.from_randomized_response(noise, 2, value_discretization_interval=1e-5).self_compose(count)
        if mu:
            theirs = theirs.compose(pld.from_gaussian_mechanism(1.0 / mu, value_discretization_interval=1e-5))
        assert math.isclose(schedule_delta(events, epsilon), theirs.get_delta_for_epsilon(epsilon), rel_tol=2e-3)


def test_a_ledger_with_a_schedule():
    total = so.ApproxDP(epsilon=2.0, delta=1e-6)
    plan = so.plan(so.Histogram(4), so.PureDP(epsilon=0.03))
    gaussian = so.plan(so.RunningSum(4), so.GaussianDP(mu=0.1), mechanism="fourier")
    count = 140
    schedule = [plan.cost] * count + [gaussian.cost]
    # More than the sums of the adaptive ledger allow.
    assert count * 0.03 > total.epsilon
    assert schedule_delta(schedule, total.epsilon) <= total.delta
    adaptive = so.Ledger(total)
    with pytest.raises(so.errors.BudgetExceededError):
        for event in schedule:
            adaptive.charge(event)
    ledger = so.Ledger(total, schedule=schedule)
    gaussian.release([1, 2, 3, 4], ledger=ledger)
    for i in range(count):
        plan.release([1, 2, 3, 4], ledger=ledger, request_id=str(i))
    with pytest.raises(so.errors.BudgetExceededError):
        plan.release([1, 2, 3, 4], ledger=ledger)
    with pytest.raises(so.errors.UnsupportedCostError):
        ledger.charge(so.privacy.PureCost(0.1))
    assert len(ledger.history) == count + 1 and set(ledger.remaining().values()) == {0.0}


def test_schedules_that_do_not_fit_are_refused():
    total = so.ApproxDP(epsilon=1.0, delta=1e-6)
    mu = gaussian_mu(total)
    so.Ledger(total, schedule=[so.privacy.GaussianCost(mu=mu * (1 - 1e-6))])
    for schedule in ([so.privacy.GaussianCost(mu=mu * 1.001)], [so.privacy.PureCost(1.0), so.privacy.PureCost(0.1)]):
        with pytest.raises(so.errors.InvalidParameterError, match="schedule needs"):
            so.Ledger(total, schedule=schedule)
    with pytest.raises(so.errors.InvalidParameterError):
        so.Ledger(so.PureDP(epsilon=1.0), schedule=[so.privacy.PureCost(1.0)])
    with pytest.raises(so.errors.DataTypeError):
        so.Ledger(total, schedule=[so.privacy.ApproxCost(0.1, 1e-9)])
    with pytest.raises(so.errors.InvalidParameterError):
        so.Ledger(total, schedule=[so.privacy.PureCost(0.001 * math.sqrt(i)) for i in range(1, 30)])
