"""Pure, Gaussian and approximate costs under one total: what fits, what must be refused, and that nothing exceeds delta."""

import json
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.stats import norm

import sordino as so
from sordino.errors import BudgetExceededError, InvalidParameterError, TermsError, UnitError
from sordino.privacy import ApproxCost, GaussianCost, PureCost
from sordino.privacy.calibration import delta_of_mu, gaussian_mu, mu_of_pure, rho_of_pure
from sordino.privacy.mixed_rule import MixedRule
from sordino.storage.store import Store

TOTAL = so.ApproxDP(epsilon=1.0, delta=1e-6)


@pytest.mark.parametrize(
    ("pure", "mu"), [(0.0, 0.2367), (0.05, 0.2257), (0.1, 0.2146), (0.3, 0.1699), (0.5, 0.1241), (0.9, 0.0275)]
)
def test_what_is_left_after_a_pure_cost(pure: float, mu: float) -> None:
    ledger = so.Ledger(TOTAL)
    if pure:
        ledger.charge(PureCost(pure))
    left = ledger.remaining()["gaussian_mu"]
    assert round(left, 4) == mu
    ledger.charge(GaussianCost(mu=left))
    assert ledger.remaining() == {"pure_epsilon": 0.0, "gaussian_mu": 0.0, "delta": 0.0}
    for cost in (GaussianCost(mu=1e-6), PureCost(1e-6), ApproxCost(1e-9, 1e-12)):
        with pytest.raises(BudgetExceededError, match="Nothing was spent"):
            ledger.charge(cost)


def test_reserves_stay_for_pure_and_approximate_costs() -> None:
    ledger = so.Ledger(TOTAL, reserve_epsilon=0.25, reserve_delta=2.5e-7)
    ledger.charge(PureCost(0.125))
    expected = gaussian_mu(so.ApproxDP(epsilon=0.625, delta=7.5e-7))
    assert math.isclose(ledger.remaining()["gaussian_mu"], expected, rel_tol=1e-9)
    ledger.charge(GaussianCost(mu=0.05))
    assert ledger.remaining()["pure_epsilon"] == 0.25
    ledger.charge(ApproxCost(0.125, 2e-7))
    ledger.charge(PureCost(0.125))
    assert ledger.spent["mixed"]["epsilon"] == ledger.spent["mixed"]["epsilon_limit"] == 0.375
    # Beyond the reserve a pure cost counts as a Gaussian one.
    ledger.charge(PureCost(0.01))
    assert math.isclose(ledger.spent["mixed"]["mu_squared"], 0.05**2 + mu_of_pure(0.01) ** 2, rel_tol=1e-12)
    with pytest.raises(BudgetExceededError, match="reserve"):
        ledger.charge(ApproxCost(0.125, 1e-9))


def test_reserves_are_checked() -> None:
    for reserves in ({"reserve_epsilon": 1.0}, {"reserve_delta": 1e-6}, {"reserve_epsilon": -0.1}):
        with pytest.raises(InvalidParameterError, match="reserve"):
            so.Ledger(TOTAL, **reserves)
    for options in ({"reserve_epsilon": 0.1}, {"pure_as": "gaussian"}, {"composition": "basic"}, {"schedule": []}):
        with pytest.raises(InvalidParameterError, match="ApproxDP"):
            so.Ledger(so.PureDP(epsilon=1.0), **options)
    with pytest.raises(InvalidParameterError, match="reserves"):
        so.Ledger(TOTAL, pure_as="gaussian", reserve_epsilon=0.1)


def test_a_refusal_freezes_nothing() -> None:
    ledger = so.Ledger(TOTAL)
    with pytest.raises(BudgetExceededError):
        ledger.charge(GaussianCost(mu=0.3))
    ledger.charge(PureCost(0.75))
    ledger.charge(GaussianCost(mu=ledger.remaining()["gaussian_mu"]))
    empty = so.Ledger(TOTAL)
    empty.charge(PureCost(1.0))
    assert empty.remaining() == {"pure_epsilon": 0.0, "gaussian_mu": 0.0, "delta": 1e-6}
    with pytest.raises(BudgetExceededError):
        empty.charge(GaussianCost(mu=1e-9))


def test_the_split_is_stored() -> None:
    store = Store(":memory:")
    first = so.Ledger(TOTAL, store=store)
    first.charge(PureCost(0.25))
    first.charge(GaussianCost(mu=0.02))
    before, after = (entry.split for entry in first.history)
    assert before is None and after is not None and after[:2] == (0.25, 0)
    assert math.isclose(after[2], first.spent["mixed"]["mu_squared_limit"] ** 0.5, rel_tol=1e-12)
    assert {entry.rule for entry in first.history} == {"mixed"}
    again = so.Ledger(TOTAL, store=store)
    assert again.remaining() == first.remaining()
    assert again.verify() == first.head
    # A split that is chosen later would be one that is chosen by what came out.
    for other in (
        {"reserve_epsilon": 0.6},
        {"reserve_delta": 5e-7},
        {"reserve_epsilon": 0.1, "reserve_delta": 1e-7},
        {"pure_as": "gaussian"},
        {"composition": "basic"},
    ):
        with pytest.raises(TermsError):
            so.Ledger(TOTAL, store=store, **other)  # type: ignore[arg-type]


def test_stored_splits_only_lower_limits() -> None:
    rule, cost = MixedRule(TOTAL), GaussianCost(mu=0.05)

    def left(split: object) -> float:
        return rule.left(rule.after(rule.start(), cost, split))["gaussian_mu"]

    assert math.isclose(left((0, 0, 0.06)), math.sqrt(0.06**2 - 0.05**2), rel_tol=1e-9)
    assert left((1, 1, 5.0)) == left(None)
    for bad in (-5.0, "x", (1, 2), (0, 0, -1.0), (-1, 0, 1.0), (0, math.inf, 1.0), (0, 0, "mu")):
        with pytest.raises(InvalidParameterError, match="split"):
            left(bad)
    with pytest.raises(BudgetExceededError, match=r"Gaussian mu of 0\.001"):
        left((0, 0, 1e-3))


def test_states_come_back_exactly() -> None:
    rule = MixedRule(TOTAL, 0.1, 1e-7)
    state = rule.start()
    for cost in (PureCost(0.1), ApproxCost(0.01, 1e-9), GaussianCost(mu=0.03), PureCost(0.05), GaussianCost(mu=0.01)):
        state = rule.after(state, cost)
        assert rule.loaded(json.loads(json.dumps(rule.dumped(state)))) == state


def test_refusals_say_what_is_left_of_what() -> None:
    ledger = so.Ledger(TOTAL)
    ledger.charge(GaussianCost(mu=0.01))
    with pytest.raises(BudgetExceededError) as gaussian:
        ledger.charge(GaussianCost(mu=0.9))
    assert "for pure" not in str(gaussian.value) and "mu of 0.2364" in str(gaussian.value)
    with pytest.raises(BudgetExceededError, match="for pure and approximate costs so much was left"):
        ledger.charge(PureCost(0.9))
    with pytest.raises(BudgetExceededError):
        so.Ledger(so.GaussianDP(mu=1.0)).check(PureCost(1.7e308))
    with pytest.raises(InvalidParameterError, match="pure_as"):
        so.Ledger(TOTAL, composition="basic", pure_as="gaussian")


def test_one_unit() -> None:
    """Fixed by the first plan; other amounts of the same thing add up, other things do not."""
    ledger = so.Ledger(TOTAL)
    few = so.plan(so.Histogram(3), so.PureDP(epsilon=0.1), unit=so.AddRemove(3, label="one flight"))
    few.release([1, 2, 3], ledger=ledger)
    assert ledger.unit == few.unit
    so.plan(so.Histogram(3), so.PureDP(epsilon=0.1), unit=so.AddRemove(label="one flight")).release(
        [1, 2, 3], ledger=ledger
    )
    spent = ledger.spent
    for unit in (so.AddRemove(3), so.ReplaceOne(label="one flight"), so.UserLevel(2)):
        other = so.plan(so.Histogram(3), so.PureDP(epsilon=0.1), unit=unit)
        with pytest.raises(UnitError, match="'one flight'"):
            other.release([1, 2, 3], ledger=ledger, request_id="other")
        with pytest.raises(UnitError):
            ledger.check(other.cost, unit=unit)
    stream = so.plan(so.Continual(so.RunningSum(4)), so.PureDP(epsilon=0.1))
    with pytest.raises(UnitError):
        stream.open(ledger)
    assert ledger.spent == spent and ledger.find("other") is None
    ledger.charge(PureCost(0.1))  # the caller alone knows of what
    with pytest.raises(UnitError):
        so.plan(so.Histogram(3), so.PureDP(epsilon=0.1)).release(
            [1, 2, 3], ledger=so.Ledger(TOTAL, unit=so.AddRemove(label="one user"))
        )
    with pytest.raises(so.errors.DataTypeError):
        so.Ledger(TOTAL, unit="one user")  # type: ignore[arg-type]


def test_rho_of_pure() -> None:
    for epsilon, rho in ((1.0, 0.4621171572600097), (3.0, 2.7154447609346)):
        assert 0.0 <= float(rho_of_pure(epsilon)) - rho < 1e-12
    # Never above the simple bound, never below the exact value.
    for epsilon in np.geomspace(1e-12, 50.0, 300):
        assert rho_of_pure(epsilon) <= Fraction(epsilon) ** 2 / 2
        assert float(rho_of_pure(epsilon)) >= epsilon * math.tanh(epsilon / 2) * (1.0 - 1e-15)
    # Rényi divergences of randomised response, by their definition.
    for epsilon in (0.5, 1.0, 3.0):
        p = 1.0 / (1.0 + math.exp(-epsilon))
        for order in (1.0001, 1.5, 2.0, 8.0, 64.0):
            moments = p**order * (1 - p) ** (1 - order) + (1 - p) ** order * p ** (1 - order)
            assert math.log(moments) / (order - 1.0) <= order * float(rho_of_pure(epsilon)) * (1 + 1e-9)


# What must be refused.


def _delta_of_choosing_later(share: float) -> float:
    """Delta of a Gaussian of a share of m(1), then of its outcome either one bit or the rest of m(1)."""
    m = gaussian_mu(TOTAL)
    first = share * m
    rest = math.sqrt(1.0 - share**2) * m
    pure = 0.9596
    p = 1.0 / (1.0 + math.exp(-pure))
    x = np.linspace(-12.0, 12.0, 200_001)
    loss = first * x + first**2 / 2  # under the first hypothesis

    def after_bit(gap: np.ndarray) -> np.ndarray:
        up, down = (np.maximum(0.0, -np.expm1(gap - sign * pure)) for sign in (1.0, -1.0))
        return p * up + (1.0 - p) * down

    def after_gaussian(gap: np.ndarray) -> np.ndarray:
        return norm.cdf(rest / 2 - gap / rest) - np.exp(gap) * norm.cdf(-rest / 2 - gap / rest)

    gap = TOTAL.epsilon - loss
    best = np.maximum(after_bit(gap), after_gaussian(gap))
    return float(np.trapezoid(best * norm.pdf(x), x))


def test_choosing_the_split_by_an_outcome_is_refused() -> None:
    """Both ways fit by themselves, and the choice between them would take 1.72 times delta."""
    assert _delta_of_choosing_later(0.05) > 1.7 * TOTAL.delta
    m = gaussian_mu(TOTAL)
    start = GaussianCost(mu=0.05 * m)
    bit, rest = PureCost(0.9596), GaussianCost(mu=m * math.sqrt(1.0 - 0.05**2) * (1.0 - 1e-12))
    for before, after in (([start], rest), ([bit], GaussianCost(mu=0.0105))):
        ledger = so.Ledger(TOTAL)
        for cost in before:
            ledger.charge(cost)
        ledger.charge(after)
    ledger = so.Ledger(TOTAL)
    ledger.charge(start)
    with pytest.raises(BudgetExceededError):
        ledger.charge(bit)
    ledger.charge(rest)


def test_a_renyi_order_picked_later_is_refused() -> None:
    """Orders 5 and 50 are within their budgets on their paths, and the whole takes 1.968 times delta."""
    total = so.ApproxDP(epsilon=3.0, delta=1e-4)
    first, chance = 0.2, 0.01
    elsewhere = math.log((1.0 - chance) / (1.0 - chance * math.exp(-first)))
    delta = 0.0
    for share, before, loss, hit in (
        (chance, first, 2.820203, 0.497503),
        (1.0 - chance, elsewhere, 3.224973, 4.913744e-4),
    ):
        rest = math.log((1.0 - hit) / (1.0 - hit * math.exp(-loss)))
        for probability, then in ((hit, loss), (1.0 - hit, rest)):
            delta += share * probability * max(0.0, -math.expm1(total.epsilon - before - then))
    assert math.isclose(delta / total.delta, 1.968, abs_tol=2e-3)
    for loss, hit in ((2.820203, 0.497503), (3.224973, 4.913744e-4)):
        # As what they are, in each of the three ways to say it.
        left = total.epsilon - first
        failure = hit * -math.expm1(left - loss)
        ways = [PureCost(loss), GaussianCost(mu=mu_of_pure(loss)), ApproxCost(left, failure)]
        ledger = so.Ledger(total)
        ledger.charge(PureCost(first))
        refused = 0
        for cost in ways:
            try:
                ledger.check(cost)
            except BudgetExceededError:
                refused += 1
        assert refused == 3, (loss, failure)


@pytest.mark.parametrize("total", [TOTAL, so.ApproxDP(epsilon=0.5, delta=1e-3), so.ApproxDP(epsilon=3.0, delta=1e-2)])
@pytest.mark.parametrize("reserve", [0.0, 0.25])
def test_no_adversary_exceeds_delta(total: so.ApproxDP, reserve: float) -> None:
    """Dynamic programming over who asks: up to eight bits, a freeze at any point, then half of the Gaussian part, and by
    its outcome the other half, a bit counted as a Gaussian one, the reserve, or nothing more.
    """
    step = total.epsilon / 8
    x = np.linspace(-14.0, 14.0, 20_001)
    weight = norm.pdf(x) * (x[1] - x[0])

    def bit(value, loss: float, size: float) -> float:
        p = 1.0 / (1.0 + math.exp(-size))
        return p * value(loss + size) + (1.0 - p) * value(loss - size)

    def gaussian(gap: np.ndarray, mu: float) -> np.ndarray:
        return norm.cdf(mu / 2 - gap / mu) - np.exp(gap) * norm.cdf(-mu / 2 - gap / mu)

    @cache
    def frozen(pure: int, loss_steps: int) -> float:
        ledger = so.Ledger(total, reserve_epsilon=reserve * total.epsilon)
        if pure:
            ledger.charge(PureCost(pure * step))
        m = ledger.remaining()["gaussian_mu"]
        if m == 0.0:
            return 0.0
        half = m * math.sqrt(0.5)
        ledger.charge(GaussianCost(mu=half))
        left = ledger.remaining()
        rest, extra = left["gaussian_mu"], left["pure_epsilon"]
        ledger.check(GaussianCost(mu=rest))
        ledger.check(PureCost(extra))
        loss = loss_steps * step + half * x + half**2 / 2
        gap = total.epsilon - loss

        def stop(shift: float) -> np.ndarray:
            return np.maximum(0.0, -np.expm1(np.minimum(gap - shift, 1.0)))

        options = [stop(0.0), gaussian(gap, rest), bit(stop, 0.0, extra)]
        if reserve:
            # Both the reserve and the rest of the Gaussian part, in either order.
            p = 1.0 / (1.0 + math.exp(-extra))
            options.append(p * gaussian(gap - extra, rest) + (1.0 - p) * gaussian(gap + extra, rest))
        return float(np.sum(weight * np.maximum.reduce(options)))

    @cache
    def worst(pure: int, loss_steps: int) -> float:
        found = max(frozen(pure, loss_steps), -math.expm1(total.epsilon - loss_steps * step), 0.0)
        if pure < 8:
            found = max(found, bit(lambda loss: worst(pure + 1, round(loss / step)), loss_steps * step, step))
        return found

    reached = worst(0, 0)
    assert reached <= total.delta * (1.0 + 1e-9)
    assert reached >= total.delta * (0.999 if reserve == 0.0 else 0.5)  # and the rule gives next to nothing away


def test_gaussian_alone_and_pure_alone_keep_their_strength() -> None:
    ledger = so.Ledger(TOTAL)
    for _ in range(4):
        ledger.charge(GaussianCost(mu=gaussian_mu(TOTAL) / 2))
    assert ledger.remaining()["gaussian_mu"] == 0.0
    assert delta_of_mu(gaussian_mu(TOTAL), 1.0) <= 1e-6 * (1 + 1e-9)
