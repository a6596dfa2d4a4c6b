"""Every way to spend a budget: charged once, before any noise, and not at all for what is refused."""

import warnings

import cases
import numpy as np
import pytest
from interrupts import interrupted

import sordino as so

LEDGERS = pytest.mark.parametrize("stored", [False, True], ids=["memory", "store"])
SPENDERS = pytest.mark.parametrize("spender", cases.SPENDERS, ids=lambda spender: spender.name)


@pytest.fixture(autouse=True)
def _silent():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def close(thing):
    if hasattr(thing, "close"):
        thing.close()


def ledger_for(spender, stored):
    return cases.plenty(spender.plan.cost, so.Store(":memory:", key=cases.KEY) if stored else None)


@LEDGERS
@SPENDERS
def test_it_is_charged_once(spender, stored):
    ledger = ledger_for(spender, stored)
    result = spender.spend(spender.plan, spender.data, ledger, "a" if spender.named else None)
    assert [entry.cost for entry in ledger.history] == [spender.plan.cost]
    assert getattr(result, "accounted", True) is True
    assert getattr(result, "private", True) is True
    if spender.named and spender.answered:
        again = spender.spend(spender.plan, spender.data, ledger, "a")
        assert same(again, result) if stored else again is result
    elif spender.named:
        with pytest.raises(so.errors.DuplicateRequestError):
            spender.spend(spender.plan, spender.data, ledger, "a")
    assert len(ledger.history) == 1
    close(result)
    # There is no room for a second one.
    with pytest.raises(so.errors.BudgetExceededError):
        spender.spend(spender.plan, spender.data, ledger, "b" if spender.named else None)
    assert len(ledger.history) == 1


def same(one, other):
    """Return whether two answers have the same numbers."""
    if hasattr(one, "measured"):
        units = np.array_equal(np.asarray(one.measured.units), np.asarray(other.measured.units))
        listed = getattr(one, "_values", None) is not None
        return units and (not listed or np.array_equal(one.values, other.values, equal_nan=True))
    if hasattr(one, "values"):
        return np.array_equal(one.values, other.values) and np.array_equal(one.stderr, other.stderr)
    return one == other


@SPENDERS
def test_nothing_is_drawn_before_the_charge_is_kept(spender, monkeypatch):
    """A store that keeps nothing: nothing comes back, and the data were not measured."""
    ledger = ledger_for(spender, True)

    def full(*_):
        raise so.errors.StoreError("full")

    with monkeypatch.context() as patched:
        patched.setattr(ledger.store.engine, "write", full)
        with pytest.raises(so.errors.StoreError, match="full"):
            spender.spend(spender.plan, spender.data, ledger, None)
    assert ledger.history == ()


@SPENDERS
def test_a_spent_budget_refuses(spender):
    ledger = so.Ledger(so.PureDP(epsilon=1e-9))
    if not isinstance(spender.plan.cost, so.privacy.PureCost):
        ledger = so.Ledger(so.GaussianDP(mu=1e-9))
    with pytest.raises((so.errors.BudgetExceededError, so.errors.UnsupportedCostError)):
        spender.spend(spender.plan, spender.data, ledger, None)
    assert ledger.history == ()


@LEDGERS
@pytest.mark.parametrize("spender", [s for s in cases.RELEASES if s.hostile], ids=lambda spender: spender.name)
def test_refused_data_cost_nothing(spender, stored):
    for data in spender.hostile:
        ledger = ledger_for(spender, stored)
        with pytest.raises(so.SordinoError):
            spender.spend(spender.plan, data, ledger, None)
        assert ledger.history == ()


@SPENDERS
def test_known_noise_is_never_accounted(spender):
    with so.testing.deterministic_noise(cases.KEY):
        with pytest.raises(so.errors.InvalidParameterError):
            spender.spend(spender.plan, spender.data, cases.plenty(spender.plan.cost), None)
        result = spender.spend(spender.plan, spender.data, None, None)
        assert getattr(result, "private", False) is False
        close(result)


@SPENDERS
def test_what_is_no_ledger_is_refused(spender):
    for ledger in (5, "ledger", cases.PURE):
        with pytest.raises(so.errors.DataTypeError):
            spender.spend(spender.plan, spender.data, ledger, None)


def spent_at_every_place(spender, stored, places):
    """A signal at any place: nothing is charged, or once; the request can be repeated, or is refused."""
    lost = last = 0
    for at in places:
        ledger = ledger_for(spender, stored)
        name = "a" if spender.named else None

        def call(ledger=ledger, name=name):
            return spender.spend(spender.plan, spender.data, ledger, name)

        if not interrupted(call, at):
            break
        last = at
        charged = len(ledger.history)
        assert charged <= 1
        if not spender.named:
            continue
        try:
            close(call())
        except so.errors.DuplicateRequestError:
            lost += 1
            assert charged == 1
        assert len(ledger.history) == 1
        if stored:
            assert ledger.verify() == ledger.head and not ledger.unanswered()
    assert last > 5
    return lost, last


@SPENDERS
def test_an_interrupted_request_is_charged_at_most_once(spender):
    lost, last = spent_at_every_place(spender, False, range(1, 3000))
    assert last < 2999
    # Between the charge and the first noise there is no way back.
    assert lost < last or not spender.answered


@pytest.mark.slow
@SPENDERS
def test_in_a_store_every_interrupted_request_can_be_finished(spender):
    lost, last = spent_at_every_place(spender, True, range(1, 20000, 3))
    assert last < 19990
    assert lost == 0 or not spender.answered


@SPENDERS
def test_every_plan_says_the_same_things(spender):
    """Shared attributes have one meaning: guarantee, event, unit, privacy, what is printed."""
    plan = spender.plan
    assert isinstance(plan.cost, so.privacy.PureCost | so.privacy.GaussianCost | so.privacy.ApproxCost)
    assert plan.privacy in (cases.PURE, cases.APPROX)
    assert plan.fit.promise in plan.guarantee()
    assert plan.guarantee().endswith(".")
    assert plan.mechanism in plan.explain()
    assert plan.fit.promise in plan.explain()
    assert type(plan).__name__ in repr(plan)
    assert np.isfinite(plan.rmse)
