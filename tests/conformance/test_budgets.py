"""Every way to spend a budget: charged once, before any noise, and not at all for what is refused."""

import warnings

import cases
import numpy as np
import pytest
from interrupts import interrupted

import sordino as so
from sordino.storage.ledgers import InMemoryStorage

SPENDERS = pytest.mark.parametrize("spender", cases.SPENDERS, ids=lambda spender: spender.name)


@pytest.fixture(autouse=True)
def _silent():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def close(thing):
    if hasattr(thing, "close"):
        thing.close()


@SPENDERS
def test_it_is_charged_once(spender):
    ledger = cases.plenty(spender.plan.cost)
    result = spender.spend(spender.plan, spender.data, ledger, "a" if spender.named else None)
    assert [entry.cost for entry in ledger.history] == [spender.plan.cost]
    assert getattr(result, "accounted", True) is True
    assert getattr(result, "private", True) is True
    if spender.named and spender.answered:
        again = spender.spend(spender.plan, spender.data, ledger, "a")
        assert again is result
    elif spender.named:
        with pytest.raises(so.errors.DuplicateRequestError):
            spender.spend(spender.plan, spender.data, ledger, "a")
    assert len(ledger.history) == 1
    close(result)
    # There is no room for a second one.
    with pytest.raises(so.errors.BudgetExceededError):
        spender.spend(spender.plan, spender.data, ledger, "b" if spender.named else None)
    assert len(ledger.history) == 1


class Failing(InMemoryStorage):
    """A storage that keeps nothing."""

    def append(self, entry):
        raise OSError("full")


@SPENDERS
def test_nothing_is_drawn_before_the_charge_is_kept(spender):
    """A storage that fails: nothing comes back, and the data were not measured."""
    ledger = filled(spender.plan.cost, Failing())
    with pytest.raises(OSError, match="full"):
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


@pytest.mark.parametrize("spender", [s for s in cases.RELEASES if s.hostile], ids=lambda spender: spender.name)
def test_refused_data_cost_nothing(spender):
    for data in spender.hostile:
        ledger = cases.plenty(spender.plan.cost)
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


@SPENDERS
def test_an_interrupted_request_is_charged_at_most_once(spender):
    """A signal at any place: the ledger counts what its storage holds; the request can be repeated, or is refused."""
    lost = 0
    for at in range(1, 3000):
        storage = InMemoryStorage()
        ledger = filled(spender.plan.cost, storage)
        name = "a" if spender.named else None

        def call(ledger=ledger, name=name):
            return spender.spend(spender.plan, spender.data, ledger, name)

        if not interrupted(call, at):
            break
        charged = len(ledger.history)
        assert charged == len(storage.entries()) <= 1
        if not spender.named:
            continue
        try:
            close(call())
        except so.errors.DuplicateRequestError:
            lost += 1
            assert charged == 1
        assert len(ledger.history) == len(storage.entries()) == 1
        # Another ledger reads the storage.
        assert len(filled(spender.plan.cost, copy_of(storage)).history) == 1
    assert 5 < at < 2999
    # Between the charge and the first noise there is no way back.
    assert lost < at or not spender.answered


def filled(event, storage):
    total, options = cases.room(event)
    return so.Ledger(total, storage=storage, **options)


def copy_of(storage):
    other = InMemoryStorage()
    for entry in storage.entries():
        other.append(entry)
    return other


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
