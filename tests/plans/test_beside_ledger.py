"""Planning beside a ledger: each law of noise in the currency that it is charged in."""

import math

import pytest

import sordino as so
from sordino.privacy import GaussianCost, PureCost

TOTAL = so.ApproxDP(epsilon=1.0, delta=1e-6)


@pytest.mark.parametrize(("epsilon", "turn"), [(0.5, 0.123), (1.0, 0.112), (2.0, 0.101), (3.0, 0.093), (5.0, 0.083)])
def test_where_pure_noise_begins_to_win(epsilon: float, turn: float) -> None:
    """A histogram: V(f epsilon) < 1/(f m^2) from about this share on."""
    ledger = so.Ledger(so.ApproxDP(epsilon=epsilon, delta=1e-6))
    below = so.plan(so.Histogram(9), ledger=ledger, share=0.94 * turn)
    above = so.plan(so.Histogram(9), ledger=ledger, share=1.06 * turn)
    assert (below.mechanism, above.mechanism) == ("identity-gaussian", "identity-laplace")
    assert isinstance(below.cost, GaussianCost) and isinstance(above.cost, PureCost)
    assert ledger.history == ()


def test_shares_are_what_they_say_and_can_be_charged() -> None:
    ledger = so.Ledger(TOTAL)
    pure = so.plan(so.Histogram(9), ledger=ledger, share=0.25)
    assert pure.cost == PureCost(0.25) and "takes 25 % of the epsilon" in pure.explain()
    pure.release([1] * 9, ledger=ledger)
    mu = ledger.remaining()["gaussian_mu"]
    gaussian = so.plan(so.Histogram(9), ledger=ledger, share=0.01)
    assert math.isclose(gaussian.cost.mu_squared, 0.01 * mu**2, rel_tol=1e-9)
    assert "takes 1 % of the mu squared" in gaussian.explain() and "charge those first" in gaussian.explain()
    gaussian.release([1] * 9, ledger=ledger)
    again = so.plan(so.Histogram(9), ledger=ledger, share=1.0)
    # The split is fixed: nothing is left for pure noise but as a Gaussian cost.
    assert again.mechanism == "identity-gaussian" and "charge those first" not in again.explain()
    again.release([1] * 9, ledger=ledger)
    with pytest.raises(so.errors.BudgetExceededError, match="nothing left"):
        for _ in range(3):
            so.plan(so.Histogram(9), ledger=ledger, share=1.0).release([1] * 9, ledger=ledger)


@pytest.mark.parametrize(
    "total", [so.PureDP(epsilon=1.0), so.ZeroConcentratedDP(rho=0.5), so.GaussianDP(mu=1.0), TOTAL], ids=repr
)
@pytest.mark.parametrize("workload", [so.Histogram(5), so.RunningSum(30), so.Continual(so.RunningSum(30))], ids=repr)
def test_four_quarters_fit(total: so.PureDP, workload: so.Histogram) -> None:
    """Quarters of what was there at first: a fifth is refused."""
    ledger = so.Ledger(total)
    for k in range(4):
        plan = so.plan(workload, ledger=ledger, share=1.0 / (4 - k))
        ledger.charge(plan.cost, unit=plan.unit)
    left = ledger.remaining()
    assert max(left.get("pure_epsilon", 0.0), left.get("gaussian_mu", 0.0)) < 1e-7
    with pytest.raises(so.errors.BudgetExceededError):
        ledger.charge(plan.cost, unit=plan.unit)


def test_with_a_privacy_laws_that_do_not_fit_are_left_out() -> None:
    ledger = so.Ledger(TOTAL)
    series, privacy = so.RunningSum(365), so.ApproxDP(epsilon=0.5, delta=1e-7)
    free = so.plan(series, privacy, ledger=ledger)
    assert free.privacy == privacy and free.mechanism.endswith("gaussian")
    assert "with Laplace noise at an equal share" in free.explain()
    alone = so.plan(series, privacy)
    assert alone.beside == () and "ledger" not in alone.explain()
    ledger.charge(PureCost(0.9))
    with pytest.raises(so.errors.BudgetExceededError):
        so.plan(series, privacy, ledger=ledger)
    fixed = so.Ledger(TOTAL)
    fixed.charge(GaussianCost(mu=0.2))
    kept = so.plan(so.Histogram(3), so.ApproxDP(epsilon=0.3, delta=1e-7), ledger=fixed)
    assert kept.mechanism == "identity-gaussian"
    # Alone pure noise would have been taken.
    assert so.plan(so.Histogram(3), so.ApproxDP(epsilon=0.3, delta=1e-7)).mechanism == "identity-laplace"


def test_noise_confines_auto() -> None:
    for workload in (
        so.Histogram(5),
        so.RunningSum(40),
        so.Continual(so.RunningSum(40)),
        so.Continual(so.Histogram(5)),
    ):
        try:
            so.plan(workload, TOTAL)
        except so.SordinoError:
            continue
        for noise in ("laplace", "gaussian"):
            plan = so.plan(workload, TOTAL, noise=noise)
            assert isinstance(plan.cost, GaussianCost) == (noise == "gaussian"), (workload, plan.mechanism)
    assert so.plan(so.Histogram(5), TOTAL, noise="gaussian", mechanism="identity").mechanism == "identity-gaussian"
    assert so.plan(so.Histogram(5), TOTAL, noise="laplace", mechanism="identity").mechanism == "identity-laplace"
    for options in (
        {"mechanism": "identity-laplace", "noise": "gaussian"},
        {"mechanism": "haar-gaussian", "noise": "laplace"},
    ):
        with pytest.raises(so.errors.UnsupportedMechanismError):
            so.plan(so.RunningSum(8), TOTAL, **options)
    with pytest.raises(so.errors.UnsupportedMechanismError):
        so.plan(so.Histogram(5), so.PureDP(epsilon=1.0), noise="gaussian")
    saved = so.plan(so.Histogram(5), TOTAL, noise="gaussian").record()
    assert saved["request"]["noise"] == "gaussian"


def test_bad_requests() -> None:
    ledger = so.Ledger(TOTAL)
    for options in ({"share": 0.5}, {"ledger": ledger}, {"ledger": ledger, "share": 0.5, "privacy": TOTAL}):
        with pytest.raises((so.errors.InvalidParameterError, so.errors.DataTypeError)):
            so.plan(so.Histogram(5), **options)
    for share in (0.0, -1.0, 1.5, math.nan, "half"):
        with pytest.raises((so.errors.InvalidParameterError, so.errors.DataTypeError)):
            so.plan(so.Histogram(5), ledger=ledger, share=share)
    with pytest.raises(so.errors.DataTypeError):
        so.plan(so.Histogram(5), TOTAL, ledger="book")
    with pytest.raises(so.errors.InvalidParameterError):
        so.plan(so.Histogram(5), TOTAL, noise="uniform")
    other = so.Ledger(TOTAL, unit=so.AddRemove(label="one user"))
    with pytest.raises(so.errors.UnitError):
        so.plan(so.Histogram(5), ledger=other, share=0.5)
    schedule = so.Ledger(TOTAL, schedule=[PureCost(0.1)])
    with pytest.raises(so.errors.BudgetExceededError):
        so.plan(so.Histogram(5), ledger=schedule, share=0.5)
    assert ledger.history == ()
