"""Ledgers that share another, and higher totals: entries of the ledger that they come from."""

from __future__ import annotations

from collections.abc import Mapping

from sordino.errors import DataTypeError, InvalidParameterError, TermsError, UnsupportedCostError
from sordino.privacy.books import Charge, StoredBook, make_in
from sordino.privacy.costs import ApproxCost, Cost, GaussianCost, PureCost
from sordino.privacy.guarantees import ApproxDP, GaussianDP, Privacy, PureDP, ZeroConcentratedDP
from sordino.privacy.terms import Account, Terms
from sordino.storage import ledgers
from sordino.storage.chain import canonical
from sordino.storage.owners import new_token
from sordino.storage.transactions import Transaction, now

__all__ = ["cost_of_total", "raise_in", "split_in"]


def cost_of_total(total: Privacy, under: Privacy) -> Cost:
    """Return what a whole ledger with this total costs in another.

    Interactive mechanisms compose side by side like others under pure, approximate, Gaussian and concentrated privacy
    (Vadhan and Wang, arXiv:2207.08335 and arXiv:2309.05901).

    Raises:
        UnsupportedCostError: Totals of this kind are not counted there.
        DataTypeError: It is no total.
    """
    match total:
        case PureDP(epsilon=epsilon):
            return PureCost(epsilon)
        case ApproxDP(epsilon=epsilon, delta=delta):
            return ApproxCost(epsilon, delta)
        case GaussianDP(mu=mu) if not isinstance(under, ZeroConcentratedDP):
            return GaussianCost(mu=mu)
        case ZeroConcentratedDP(rho=rho) if isinstance(under, ZeroConcentratedDP):
            # There a Gaussian cost counts as rho alone.
            return GaussianCost(rho=rho)
        case GaussianDP() | ZeroConcentratedDP():
            raise UnsupportedCostError(f"{total} is not counted under {under}")
    raise DataTypeError("a total must be a privacy guarantee")


def split_in(book: StoredBook, totals: Mapping[str, Privacy]) -> dict[str, StoredBook]:
    """Charge totals to a ledger and make ledgers with them, all or none; those that are there stay as they are.

    Raises:
        BudgetExceededError: They exceed what is left.
        TermsError: One is there on other terms.
    """
    under = book.account().terms

    def script(transaction: Transaction) -> bool:
        for name, total in totals.items():
            terms = Terms(total, unit=book.account_in(transaction).unit or under.unit, role="share")
            known = ledgers.find_ledger(transaction, name)
            if known is not None:
                own = Terms.of(known.terms)
                if (own.total, own.role, known.parent) != (total, "share", book.name):
                    raise TermsError(f"there is another ledger {name!r}")
                continue
            charge = Charge(cost_of_total(total, under.total), f"share {name}", name, terms.unit, "share")
            book.charge_in(transaction, *book.new_request(charge, b"", "stream", new_token()))
            make_in(transaction, book.store, name, terms, book.name)
        return True

    def done(transaction: Transaction) -> bool | None:
        book.account_in(transaction)  # under its lock
        return True if all(ledgers.find_ledger(transaction, name) is not None for name in totals) else None

    book.store.certainly(script, done)
    return {name: StoredBook(book.store, name) for name in totals}


def raise_in(book: StoredBook, total: Privacy, reason: str) -> None:
    """Raise the total of a ledger, as an entry of it.

    Raises:
        InvalidParameterError: It is no higher one of the same kind, there is no reason, or the split is frozen.
    """
    if not reason:
        raise InvalidParameterError("a reason must be said: it is kept with the entry")

    def script(transaction: Transaction) -> bool:
        row = book.row_in(transaction)
        account = Account.of(row.terms, row.sums)
        if account.terms.role == "share":
            raise InvalidParameterError("this total was charged to another ledger: it cannot be raised here")
        terms = account.terms.raised(total)
        if terms.rule.stored(account.state) is not None:
            raise InvalidParameterError(
                "the first Gaussian cost has fixed the split of this total: it cannot be raised"
            )
        body = {"cost": None, "request": None, "label": reason, "second": now() // 1000}
        text = canonical({**body, "from": row.terms, "to": terms.text})
        after = ledgers.behind(row, "raise", text, account._replace(terms=terms).text, terms.text)
        ledgers.added(transaction, row, after, "raise", text)
        return True

    def done(transaction: Transaction) -> bool | None:
        return True if Terms.of(book.row_in(transaction).terms).total == total else None

    book.store.certainly(script, done)
