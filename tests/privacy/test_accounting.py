"""The ledger: exact fits, refusals that change nothing, threads, forks, storage, the invariant."""

import copy
import math
import os
import pickle
import threading
import warnings
from fractions import Fraction

import dp_accounting
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sordino._support.rounding import float_down
from sordino.errors import (
    BudgetExceededError,
    DataTypeError,
    DuplicateRequestError,
    ForkError,
    InvalidParameterError,
    TermsError,
    UnsupportedCostError,
)
from sordino.privacy.calibration import Noise, gaussian_mu, mu_of_pure
from sordino.privacy.calibration import cost as cost_of
from sordino.privacy.costs import ApproxCost, Cost, GaussianCost, PureCost
from sordino.privacy.guarantees import ApproxDP, GaussianDP, Privacy, PureDP, ZeroConcentratedDP
from sordino.privacy.ledger import Ledger
from sordino.privacy.terms import Terms
from sordino.storage.entries import LedgerEntry
from sordino.storage.store import Store

TOTALS: list[Privacy] = [
    PureDP(epsilon=0.7),
    ApproxDP(epsilon=0.7, delta=1e-6),
    ZeroConcentratedDP(rho=0.1),
    GaussianDP(mu=0.3),
]


PLANS: list[tuple[Privacy, Noise]] = [(total, "laplace") for total in TOTALS]
PLANS += [(total, "block") for total in TOTALS] + [(total, "gaussian") for total in TOTALS[1:]]


@pytest.mark.parametrize(("total", "noise"), PLANS)
def test_a_plan_for_exactly_the_total_fits_once(total: Privacy, noise: Noise) -> None:
    event = cost_of(total, noise)
    ledger = Ledger(total)
    ledger.check(event)
    ledger.charge(event)
    with pytest.raises(BudgetExceededError):
        ledger.charge(event)
    assert len(ledger.history) == 1


@pytest.mark.parametrize("total", [PureDP(epsilon=2.0), ApproxDP(epsilon=2.0, delta=1e-6)])
def test_two_halves_fit_exactly_and_a_third_is_refused(total: Privacy) -> None:
    ledger = Ledger(total)
    half = cost_of(ApproxDP(epsilon=1.0, delta=1e-6), "laplace")
    ledger.charge(half)
    ledger.charge(half)
    with pytest.raises(BudgetExceededError, match=r"epsilon would be 3 of 2"):
        ledger.charge(half)
    assert ledger.remaining()["pure_epsilon"] == 0.0


def test_four_quarters_of_rho_fit_exactly() -> None:
    ledger = Ledger(ZeroConcentratedDP(rho=0.3))
    for _ in range(4):
        ledger.charge(GaussianCost(rho=0.075))
    assert ledger.remaining()["rho"] == 0.0


def test_decimal_rounding_is_named() -> None:
    ledger = Ledger(PureDP(epsilon=1.0))
    for _ in range(9):
        ledger.charge(PureCost(0.1))
    with pytest.raises(BudgetExceededError, match="binary"):
        ledger.charge(PureCost(0.1))
    ledger.charge(PureCost(ledger.remaining()["pure_epsilon"]))
    assert 10 * Fraction(0.1) > 1


def test_pure_costs_as_gaussian_ones() -> None:
    """`pure_as="gaussian"`: pure costs alone, or all of them by the least GDP that they imply."""
    total = ApproxDP(epsilon=1.0, delta=1e-6)
    limit = gaussian_mu(total)
    ledger = Ledger(total, pure_as="gaussian")
    ledger.charge(PureCost(0.1))
    ledger.charge(GaussianCost(mu=math.sqrt(limit**2 - mu_of_pure(0.1) ** 2) * (1.0 - 1e-12)))
    assert list(ledger.spent) == ["gaussian"]
    assert ledger.spent["gaussian"]["mu_squared"] <= ledger.spent["gaussian"]["mu_squared_limit"]
    with pytest.raises(BudgetExceededError):
        ledger.charge(PureCost(1e-3))
    alone = Ledger(ApproxDP(epsilon=2.0, delta=1e-6), pure_as="gaussian")
    alone.charge(PureCost(1.0))
    with pytest.raises(BudgetExceededError):
        alone.charge(GaussianCost(mu=1e-6))
    assert alone.remaining() == {"pure_epsilon": 1.0, "gaussian_mu": 0.0}
    many = Ledger(total, pure_as="gaussian")
    for _ in range(300):
        many.charge(PureCost(0.01))
    assert many.spent["pure"]["epsilon"] > 2.9
    assert many.spent["gaussian"]["mu_squared"] <= limit**2
    with pytest.raises(UnsupportedCostError):
        many.charge(ApproxCost(1e-3, 1e-9))


def test_basic_composition() -> None:
    ledger = Ledger(ApproxDP(epsilon=1.0, delta=1e-6), composition="basic")
    ledger.charge(ApproxCost(0.5, 5e-7))
    ledger.charge(PureCost(0.25))
    with pytest.raises(BudgetExceededError, match="delta"):
        ledger.charge(ApproxCost(0.1, 6e-7))
    assert ledger.remaining() == {"pure_epsilon": 0.25, "delta": pytest.approx(5e-7)}
    with pytest.raises(UnsupportedCostError):
        ledger.charge(GaussianCost(mu=1e-3))
    with pytest.raises(InvalidParameterError, match="ApproxDP"):
        Ledger(PureDP(epsilon=1.0), composition="basic")
    with pytest.raises(InvalidParameterError, match="composition"):
        Ledger(PureDP(epsilon=1.0), composition="advanced")  # type: ignore[arg-type]


@pytest.mark.parametrize("total", [total for total in TOTALS if not isinstance(total, ApproxDP)])
def test_approximate_events_need_an_approximate_total(total: Privacy) -> None:
    with pytest.raises(UnsupportedCostError):
        Ledger(total).charge(ApproxCost(1e-3, 1e-9))


def test_pure_total_refuses_gaussian_events() -> None:
    with pytest.raises(UnsupportedCostError, match="GaussianCost"):
        Ledger(PureDP(epsilon=1.0)).check(GaussianCost(mu=1e-9))


def test_wrong_types_are_refused() -> None:
    ledger = Ledger(PureDP(epsilon=1.0))
    with pytest.raises(DataTypeError):
        ledger.charge(0.5)  # type: ignore[arg-type]
    with pytest.raises(DataTypeError):
        ledger.charge(PureCost(0.5), request_id=7)  # type: ignore[arg-type]
    with pytest.raises(DataTypeError):
        ledger.charge(PureCost(0.5), label=None)  # type: ignore[arg-type]
    with pytest.raises(DataTypeError):
        Ledger(1.0)  # type: ignore[arg-type]
    assert ledger.history == ()


def test_request_ids_are_charged_once_and_answered_from_the_record() -> None:
    ledger = Ledger(PureDP(epsilon=1.0))
    entry = ledger.charge(PureCost(0.25), request_id="daily", label="flights")
    assert entry == LedgerEntry(sequence=0, cost=PureCost(0.25), request_id="daily", label="flights", rule="pure")
    for act in (ledger.charge, ledger.check):
        with pytest.raises(DuplicateRequestError, match="already charged"):
            act(PureCost(0.25), "daily")
    assert ledger.find("other") is None
    known = ledger.find("daily")
    assert known is not None
    assert known.record is None
    record = object()
    ledger.attach("daily", record)
    again = ledger.find("daily")
    assert again is not None
    assert again.entry is entry
    assert again.record is record
    with pytest.raises(DuplicateRequestError):
        ledger.attach("daily", object())
    with pytest.raises(InvalidParameterError):
        ledger.attach("other", record)
    assert ledger.remaining() == {"pure_epsilon": 0.75}


def test_a_refusal_changes_nothing() -> None:
    ledger = Ledger(PureDP(epsilon=1.0))
    ledger.charge(PureCost(0.25))
    before = (ledger.spent, ledger.history, ledger.remaining())
    with pytest.raises(BudgetExceededError):
        ledger.charge(PureCost(0.8), request_id="big")
    assert (ledger.spent, ledger.history, ledger.remaining()) == before
    assert ledger.find("big") is None
    ledger.charge(PureCost(0.75), request_id="big")


def test_entries_in_a_store_are_counted_by_all() -> None:
    store = Store(":memory:")
    first = Ledger(PureDP(epsilon=1.0), store=store)
    first.charge(PureCost(0.75), request_id="a")
    second = Ledger(PureDP(epsilon=1.0), store=store)
    assert second.history == first.history
    with pytest.raises(BudgetExceededError):
        second.charge(PureCost(0.5))
    with pytest.raises(DuplicateRequestError):
        second.charge(PureCost(0.1), request_id="a")
    with pytest.raises(TermsError):
        Ledger(PureDP(epsilon=0.5), store=store)


def test_threads_never_overspend() -> None:
    ledger = Ledger(PureDP(epsilon=1.0))
    barrier = threading.Barrier(8)
    accepted: list[int] = []

    def spend() -> None:
        barrier.wait()
        for _ in range(50):
            try:
                accepted.append(ledger.charge(PureCost(1.0 / 64.0)).sequence)
            except BudgetExceededError:
                return

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(accepted) == list(range(64))
    assert ledger.spent["pure"]["epsilon"] == 1.0


def test_one_of_many_threads_gets_a_request_id() -> None:
    ledger = Ledger(PureDP(epsilon=1.0))
    barrier = threading.Barrier(8)
    refused: list[str] = []

    def spend() -> None:
        barrier.wait()
        try:
            ledger.charge(PureCost(0.01), request_id="same")
        except DuplicateRequestError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 7
    assert len(ledger.history) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_is_refused() -> None:
    ledger = Ledger(PureDP(epsilon=1.0))
    with warnings.catch_warnings():
        # Newer Pythons warn about forking a process that has had threads.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        refused = 0
        for act in (
            lambda: ledger.charge(PureCost(0.5)),
            lambda: ledger.check(PureCost(0.5)),
            lambda: ledger.spent,
            lambda: ledger.history,
            lambda: ledger.find("a"),
            lambda: ledger.attach("a", 1),
            ledger.remaining,
            ledger.to_dp_events,
        ):
            try:
                act()
            except ForkError:
                refused += 1
        os._exit(refused)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 8
    ledger.charge(PureCost(0.5))


def test_copies_are_refused() -> None:
    ledger = Ledger(PureDP(epsilon=1.0))
    for act in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(ForkError):
            act(ledger)


def test_repr_and_conversion() -> None:
    ledger = Ledger(ApproxDP(epsilon=1.0, delta=1e-6))
    ledger.charge(GaussianCost(mu=0.125), label="not shown")
    assert repr(ledger) == "<Ledger ApproxDP(epsilon=1.0, delta=1e-06): 1 charged>"
    assert ledger.to_dp_events() == (dp_accounting.GaussianDpEvent(8.0),)


pure_events = st.floats(1e-9, 2.0).map(PureCost)
gaussian_events = st.floats(1e-9, 2.0).map(lambda mu: GaussianCost(mu=mu))
concentrated_events = st.floats(1e-9, 2.0).map(lambda rho: GaussianCost(rho=rho))
events = st.lists(pure_events | gaussian_events | concentrated_events, max_size=30)


def allowed(total: Privacy, accepted: list[Cost]) -> bool:
    """Whether accepted events satisfy the total, by formulas written anew."""
    epsilons = [Fraction(event.epsilon) for event in accepted if isinstance(event, PureCost)]
    squares = [event.mu_squared for event in accepted if isinstance(event, GaussianCost)]
    implied = sum((Fraction(mu_of_pure(float(epsilon))) ** 2 for epsilon in epsilons), sum(squares, Fraction(0)))
    match total:
        case PureDP(epsilon=epsilon):
            return not squares and sum(epsilons) <= Fraction(epsilon)
        case ZeroConcentratedDP(rho=rho):
            pure = sum(epsilon * Fraction(math.tanh(epsilon / 2)) for epsilon in epsilons)
            return (sum(squares) / 2 + pure) * (1 - Fraction(1, 10**13)) <= Fraction(rho)
        case GaussianDP(mu=mu):
            return implied <= Fraction(mu) ** 2
        case ApproxDP():
            return allowed_together(total, accepted)


def allowed_together(total: ApproxDP, costs: list[Cost]) -> bool:
    """Whether costs in this order fit: pure ones first, then a split that stays."""
    pure, squares, limit = Fraction(0), Fraction(0), None
    for cost in costs:
        if isinstance(cost, PureCost) and limit is None:
            pure += Fraction(cost.epsilon)
            continue
        if limit is None:
            left = Fraction(total.epsilon) - pure
            limit = 0.0 if left < 1e-12 else gaussian_mu(ApproxDP(epsilon=float_down(left), delta=total.delta))
        assert isinstance(cost, PureCost | GaussianCost)
        squares += Fraction(mu_of_pure(cost.epsilon)) ** 2 if isinstance(cost, PureCost) else cost.mu_squared
    return pure <= Fraction(total.epsilon) and squares <= Fraction(limit or 0.0) ** 2


@pytest.mark.parametrize("total", TOTALS, ids=lambda total: type(total).__name__)
@given(requests=events)
def test_spent_never_exceeds_the_total(total: Privacy, requests: list[Cost]) -> None:
    ledger = Ledger(total)
    accepted: list[Cost] = []
    for event in requests:
        before = ledger.remaining()
        try:
            ledger.charge(event)
        except (BudgetExceededError, UnsupportedCostError):
            # Sums of rho are rounded up: what exceeds by that may be refused.
            assert isinstance(total, ZeroConcentratedDP) or not allowed(total, [*accepted, event])
            continue
        accepted.append(event)
        if isinstance(event, PureCost):
            assert event.epsilon <= before["pure_epsilon"] * (1.0 + 1e-11)
    assert allowed(total, accepted)
    assert [entry.cost for entry in ledger.history] == accepted
    for quantities in ledger.spent.values():
        assert all(value >= 0.0 for value in quantities.values())
    # What is said to remain can be spent.
    left = ledger.remaining()
    for name, kind in (("pure_epsilon", PureCost), ("gaussian_mu", lambda mu: GaussianCost(mu=mu))):
        if left.get(name, 0.0) > 1e-200:
            ledger.check(kind(left[name]))


@pytest.mark.parametrize("total", [GaussianDP(mu=1e-12), PureDP(epsilon=1e-12), ZeroConcentratedDP(rho=1e-12)])
def test_what_is_left_is_a_cost_or_nothing(total) -> None:
    """Less than every cost is nothing: no amount that no cost can have, and no error."""
    for part in (1e-300, 2.5e-308):
        rule = Terms(total).rule
        name, limit = next(iter(rule.sums[0].limits.items()))
        state = ({name: limit - Fraction(part) ** (2 if name == "mu_squared" else 1)},)
        left = rule.left(state)
        if left.get("gaussian_mu", 0.0) > 0.0:
            rule.after(state, GaussianCost(mu=left["gaussian_mu"]))
        if left["pure_epsilon"] > 0.0:
            rule.after(state, PureCost(left["pure_epsilon"]))
