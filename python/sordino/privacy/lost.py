"""After commits were lost: what may have left and was forgotten is charged, and only then it goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

from sordino.errors import BudgetExceededError, DataTypeError, UnsupportedCostError
from sordino.privacy.books import Charge, StoredBook
from sordino.privacy.costs import ApproxCost, Cost, GaussianCost, PureCost
from sordino.storage import ledgers
from sordino.storage.store import Store
from sordino.storage.upkeep import accept_database

__all__ = ["adopt"]


def adopt(store: Store, lost: Cost | None, reason: str) -> dict[str, int]:
    """Go on with a store of which the latest commits may be missing: a restored backup, a promoted replica.

    What left after the last commit that is there is not known. Its cost is charged in every ledger as an entry; that of
    'all that was left' is always enough. Unfinished requests are given up; streams go on with fresh keys,
    but those with a subtraction tree, whose noise is drawn ahead: they are lost.

    Args:
        store: The store, opened with `adopting=True` where it refuses to be.
        lost: What may have been spent at most, in each ledger; None for all that was left.
        reason: Why, kept with the entries.

    Returns:
        How many entries were added to each ledger.

    Raises:
        DataTypeError: It is no cost.
        StoreError: The store cannot be used.
    """
    if lost is not None and not isinstance(lost, PureCost | GaussianCost | ApproxCost):
        raise DataTypeError("lost must be a privacy cost, or None for all that was left")
    added = {}
    for row in store.read(ledgers.ledgers_in):
        book = StoredBook(store, row.id)
        added[row.id] = sum(_charged(book, cost, reason) for cost in ([lost] if lost is not None else _rest(book)))
    accept_database(store)
    return added


def _charged(book: StoredBook, cost: Cost, reason: str) -> int:
    try:
        book.add(Charge(cost, None, reason, None, "lost"))
    except (BudgetExceededError, UnsupportedCostError):
        # More than is left, or of a kind that is not counted: then all of it may be gone.
        return sum(_charged(book, rest, reason) for rest in _rest(book) if rest != cost)
    return 1


def _rest(book: StoredBook) -> list[Cost]:
    """Return costs that leave nothing."""
    account, found = book.account(), []
    rule = account.terms.rule
    kinds: tuple[tuple[str, Callable[[float], Cost]], ...] = (
        ("gaussian_mu", lambda left: GaussianCost(mu=left)),
        ("pure_epsilon", PureCost),
    )
    costs: Iterator[Cost] = iter(account.terms.schedule or ())
    if account.terms.schedule is None:
        # Each of what the ones before leave.
        costs = (make(left) for name, make in kinds if (left := rule.left(account.state).get(name, 0.0)) > 0.0)
    for cost in costs:
        with suppress(BudgetExceededError, UnsupportedCostError):
            account = account.after(cost, None)
            found.append(cost)
    return found
