"""The ledger: a privacy filter that refuses what would exceed a total, before any noise is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, Self, get_args

from sordino._support.cards import card, numbers_of
from sordino._support.checks import integer, name_of, one_of, positive, text
from sordino._support.durations import seconds_of
from sordino._support.uncopied import Uncopied
from sordino.errors import DataTypeError, InvalidParameterError, TermsError
from sordino.privacy.books import Book, Charge, MemoryBook, StoredBook
from sordino.privacy.costs import Cost
from sordino.privacy.guarantees import Privacy
from sordino.privacy.periods import Periods
from sordino.privacy.requests import Recovery, Requests, Unanswered
from sordino.privacy.shares import raise_in, split_in
from sordino.privacy.terms import Account, Composition, PureAs, Terms, checked_cost, checked_terms
from sordino.privacy.units import Unit
from sordino.storage import ledgers
from sordino.storage.entries import LedgerEntry
from sordino.storage.store import Store, store_of

__all__ = ["Charged", "Ledger"]

# Charges that a card shows.
_SHOWN = 10
# Letters of a name of a request: those that are made for streams and shares are longer than what may be given.
_LONGEST = 300


class Charged(NamedTuple):
    """What a ledger knows of a request.

    Attributes:
        entry: The charge.
        record: What `Ledger.attach` stored for it, or None.
    """

    entry: LedgerEntry
    record: object


class Ledger(Uncopied):
    """A privacy filter: costs are charged one by one, and one that would exceed the total is refused.

    What is promised: everything released under one ledger satisfies `total` together, even when every
    request, its budget and its mechanism are chosen after seeing earlier answers. The rules are those of
    `sordino.privacy.composition`:

    - `PureDP`: sum of epsilon; Gaussian costs are refused.
    - `ZeroConcentratedDP`: sum of rho, mu**2/2 of Gaussian and epsilon*tanh(epsilon/2) of pure costs.
    - `GaussianDP`: sum of mu**2; a pure cost counts as the least GDP that it implies.
    - `ApproxDP`: pure and approximate costs add to epsilon and delta, and Gaussian costs live in what is left of both
      when the first of them is charged (`sordino.privacy.mixed_rule`, with the proof). So pure releases come first, or
      have a reserve: `reserve_epsilon`, `reserve_delta`.
    - `ApproxDP` with `pure_as="gaussian"`: pure costs alone and their sum of epsilon, or all costs as Gaussian ones
      and their sum of mu**2. More for many small pure costs beside Gaussian ones; no approximate costs.
    - `ApproxDP`, basic: sums of epsilon and of delta; no Gaussian costs.
    - `ApproxDP`, schedule: each of the costs declared beforehand once, in any order; together they were checked to
      satisfy the total by the exact composition of their privacy losses, which fits more than the sums above.

    A ledger has one unit: what the total protects. It is given, or fixed by the first charge of a plan, and plans whose
    unit has another label, or another kind of neighbours, are refused. How much one protected thing changes may differ
    from plan to plan.

    Without a store it lives in memory: it belongs to one process and to its object, refuses to work after a fork (both
    processes would spend the same budget), and is forgotten when the process ends. In a store it is one ledger for all
    processes that open it; every charge is on the disk before noise is drawn, and the answer of every release before it
    is returned: a repeated request has that answer, in any process. It may be used from many threads.

    Args:
        total: The guarantee for everything together.
        composition: "adaptive" (the list above), or "basic" to add up pairs (epsilon, delta) under an
            `ApproxDP` total; must be said at construction because the promises do not mix.
        schedule: Costs to be charged, all of them declared now, under an `ApproxDP` total; `composition` is then
            "schedule".
        pure_as: What a pure cost counts as under an adaptive `ApproxDP` total, see above; must be said at construction.
        reserve_epsilon: Epsilon that stays for pure and approximate costs after the first Gaussian one.
        reserve_delta: Delta that stays for approximate costs after it.
        unit: What the total protects; that of the first plan if None.
        store: Where it is kept: a `sordino.Store`, a path or a URL; in memory if None. It is made there on these
            terms, or must have been.
        id: Its name in the store.
        recovery: What becomes of a charge whose process died before the answer was kept. With "same" a repeat draws the
            same noise, for the same data alone: the default where the store has a key. With "redraw" it draws anew, at
            most `attempts` times in all: the default elsewhere. With "never" it is refused.
        attempts: How often noise is drawn for one charge at most; if processes die because of what they drew, so many
            times the cost is what a request has cost at most.
        lease: How long a request may take before others may answer it.
        keep_answers: How long answers are kept for repeated requests.

    Raises:
        InvalidParameterError: `composition` is unknown, what concerns an `ApproxDP` total comes with another, a
            reserve is not below the total, the schedule does not fit it, or recovery asks for a key that is not there.
        DataTypeError: `total` is no privacy guarantee, the schedule no sequence of costs, the unit or the store none.
        TermsError: The store has this ledger on other terms.
        StoreError: The store cannot be used.
    """

    _no_copy = "a ledger cannot be copied or pickled: two copies would spend the same budget"

    def __init__(
        self,
        total: Privacy,
        *,
        composition: Composition = "adaptive",
        schedule: Sequence[Cost] | None = None,
        pure_as: PureAs = "epsilon",
        reserve_epsilon: float = 0.0,
        reserve_delta: float = 0.0,
        unit: Unit | None = None,
        store: Store | str | Path | None = None,
        id: str = "default",
        recovery: Recovery | None = None,
        attempts: int = 3,
        lease: object = "15 min",
        keep_answers: object = "7 days",
    ) -> None:
        terms = checked_terms(total, composition, schedule, pure_as, (reserve_epsilon, reserve_delta), unit)
        if store is None:
            if recovery is not None:
                raise InvalidParameterError("recovery is of ledgers in a store")
            self._keep_in(MemoryBook(terms), None)
            return
        book = StoredBook(store_of(store), name_of("id", id))
        requests = _requests(book, recovery, attempts, lease, keep_answers)
        book.make(terms)
        self._keep_in(book, requests)

    @classmethod
    def open(
        cls,
        store: Store | str | Path,
        id: str = "default",
        *,
        recovery: Recovery | None = None,
        attempts: int = 3,
        lease: object = "15 min",
        keep_answers: object = "7 days",
    ) -> Self:
        """Open a ledger that a store has, on its own terms.

        Args:
            store: Where it is kept.
            id: Its name.
            recovery: As at construction.
            attempts: As at construction.
            lease: As at construction.
            keep_answers: As at construction.

        Raises:
            TermsError: The store has no such ledger, or it is of a period: these are charged with their parent.
            StoreError: The store cannot be used.
            InvalidParameterError: Recovery asks for a key that is not there.
        """
        book = StoredBook(store_of(store), name_of("id", id))
        requests = _requests(book, recovery, attempts, lease, keep_answers)
        row = book.store.read(lambda transaction: ledgers.find_ledger(transaction, book.name))
        if row is None:
            raise TermsError(f"the store has no ledger {book.name!r}: make one, with its total")
        if Terms.of(row.terms).role == "period":
            raise TermsError("the ledger of a period is charged together with its parent: Ledger.every")
        return cls._made(book, requests)

    @classmethod
    def _made(cls, book: Book, requests: Requests | None) -> Self:
        made = cls.__new__(cls)
        made._keep_in(book, requests)
        return made

    def _keep_in(self, book: Book, requests: Requests | None) -> None:
        self._book = book
        self._requests = requests

    def _stored(self, what: str) -> StoredBook:
        if not isinstance(self._book, StoredBook):
            raise InvalidParameterError(f"{what} is of ledgers in a store: Ledger(total, store=...)")
        return self._book

    @property
    def _account(self) -> Account:
        return self._book.account()

    @property
    def store(self) -> Store | None:
        """Where it is kept, None in memory."""
        return self._book.store if isinstance(self._book, StoredBook) else None

    @property
    def id(self) -> str | None:
        """Its name in the store, None in memory."""
        return self._book.name if isinstance(self._book, StoredBook) else None

    @property
    def total(self) -> Privacy:
        """The guarantee for everything together."""
        return self._account.terms.total

    @property
    def composition(self) -> Composition:
        """How costs of an `ApproxDP` total add up."""
        return self._account.terms.composition

    @property
    def unit(self) -> Unit | None:
        """What the total protects: as given, or that of the first plan that was charged; None before.

        Raises:
            ForkError: This process does not own the ledger.
            StoreError: The store cannot be used.
        """
        return self._account.unit

    @property
    def history(self) -> tuple[LedgerEntry, ...]:
        """Every charge so far, in order.

        Raises:
            ForkError: This process does not own the ledger.
            StoreError: The store cannot be used.
        """
        return self._book.entries()

    @property
    def head(self) -> str:
        """How many entries there are, and the hash of all of them: 'COUNT:HASH', for logs; `verify` takes it.

        Raises:
            InvalidParameterError: The ledger is in memory.
            StoreError: The store cannot be used.
        """
        row = self._stored("a head").row()
        return f"{row.head}:{row.head_hash.hex()}"

    @property
    def spent(self) -> dict[str, dict[str, float]]:
        """What has been spent, for every sum that can count all costs so far.

        For example ``{"pure": {"epsilon": 1.0, "epsilon_limit": 2.0}}``. Under an `ApproxDP` total the limits are those
        that hold now: the first Gaussian cost fixes them.
        Spent numbers are rounded up and limits down; the ledger itself decides on the exact ones.

        Raises:
            ForkError: This process does not own the ledger.
            StoreError: The store cannot be used.
        """
        account = self._account
        return account.terms.rule.spent(account.state)

    def remaining(self, share: float = 1.0, after: Cost | None = None) -> dict[str, float]:
        """Return the largest single costs that would be accepted now, or those that take a share of what is left.

        Args:
            share: Of what is left in the quantity that a cost is charged in, above 0 and at most 1: epsilon of pure
                costs, mu² of Gaussian ones.
            after: A cost that would be charged before; nothing is.

        Returns:
            "pure_epsilon": of a `PureCost`; "gaussian_mu" (and "rho" under zCDP): of a `GaussianCost`;
            "delta": what approximate costs may still add, where they are counted; under a schedule, how many
            of each declared cost are left. Kinds that the ledger refuses are left out. The alternatives
            exclude each other. All are rounded down; 0.0 means that nothing is left.

        Raises:
            ForkError: This process does not own the ledger.
            StoreError: The store cannot be used.
            DataTypeError: The share is no number, or what would be charged no cost.
            InvalidParameterError: The share is not above 0 and at most 1.
            BudgetExceededError: What would be charged before is refused.
            UnsupportedCostError: The total cannot count it.
        """
        part = Fraction(positive("share", share, most=1.0))
        cost = None if after is None else checked_cost(after)
        first, *others = (_left(account, part, cost) for account in self._book.accounts())
        # What periods are charged too must have room in each of them.
        return {
            kind: min([most, *(left[kind] for left in others)])
            for kind, most in first.items()
            if all(kind in left for left in others)
        }

    def fixes_the_split(self, cost: Cost) -> bool:
        """Return whether charging `cost` would fix what is left for pure and for Gaussian costs.

        Raises:
            DataTypeError: `cost` is no cost.
            ForkError: This process does not own the ledger.
            StoreError: The store cannot be used.
        """
        checked = checked_cost(cost)
        return any(account.terms.rule.fixes(account.state, checked) for account in self._book.accounts())

    def check(self, cost: Cost, request_id: str | None = None, unit: Unit | None = None) -> None:
        """Dry run: return if `cost` would be accepted, raise as `charge` would otherwise. Nothing changes.

        Args:
            cost: What would be spent.
            request_id: The name under which it would be charged.
            unit: What it protects, if that is known.

        Raises:
            BudgetExceededError: The total would be exceeded.
            UnsupportedCostError: The total cannot count this kind of cost.
            UnitError: The ledger has another unit.
            DuplicateRequestError: `request_id` has been charged.
            DataTypeError: `cost` is no cost or `request_id` no string.
            ForkError: This process does not own the ledger.
            StoreError: The store cannot be used.
        """
        self._book.dry_run(_charge(cost, request_id, "", unit))

    def charge(
        self, cost: Cost, request_id: str | None = None, label: str = "", unit: Unit | None = None
    ) -> LedgerEntry:
        """Check `cost` and, if it is accepted, record it, as one step; a refusal changes nothing.

        Args:
            cost: What is spent.
            request_id: A name that can be charged once only, so that a repeated request cannot pay twice.
            label: Free text for people.
            unit: What it protects; None if the caller alone knows.

        Returns:
            The new entry.

        Raises:
            BudgetExceededError: The total would be exceeded.
            UnsupportedCostError: The total cannot count this kind of cost.
            UnitError: The ledger has another unit.
            InvalidParameterError: `request_id` is empty, longer than 200 letters, or not printable.
            DuplicateRequestError: `request_id` has been charged; `find` returns what is known about it.
            DataTypeError: `cost` is no cost, or `request_id` or `label` no string.
            ForkError: This process does not own the ledger.
            StoreError: The store cannot be used; OutcomeUnknownError if it does not say whether it was charged.
        """
        return self._book.add(_charge(cost, request_id, label, unit))

    def find(self, request_id: str) -> Charged | None:
        """Return the charge made under `request_id` and the record attached to it, or None if there is none.

        In a store the record is the answer as bytes, where it is kept.

        Raises:
            DataTypeError: `request_id` is no string.
            ForkError: This process does not own the ledger.
            StoreError: The store cannot be used.
        """
        entry = self._book.entry(name_of("request_id", request_id, _LONGEST))
        return None if entry is None else Charged(entry, self._book.record(request_id))

    def attach(self, request_id: str, record: object) -> None:
        """Keep `record`, such as the finished release, so that a repeated request can be answered from it.

        Records stay in memory; a ledger in a store keeps the answers of releases by itself, and takes no others.

        Raises:
            InvalidParameterError: `request_id` has not been charged, or the ledger is in a store.
            DuplicateRequestError: A record is attached already; it is kept.
            ForkError: This process does not own the ledger.
        """
        self._book.attach(name_of("request_id", request_id, _LONGEST), record)

    def unanswered(self) -> tuple[Unanswered, ...]:
        """Return the requests that were charged and have no answer: being answered now, or left by a process that died.

        A repeat of such a request finishes it, as `recovery` says.

        Raises:
            ForkError: This process does not own the ledger.
            StoreError: The store cannot be used.
        """
        if self._requests is not None:
            return tuple(self._requests.unanswered())
        named = [entry for entry in self.history if entry.request_id is not None]
        return tuple(
            Unanswered(str(entry.request_id), entry, 1, False)
            for entry in named
            if self._book.record(str(entry.request_id)) is None
        )

    def give_up(self, request_id: str) -> None:
        """Say that an unfinished request will not be answered. Its charge stays.

        Raises:
            InvalidParameterError: The ledger is in memory.
            RequestInProgressError: Somebody is answering it.
            RequestLostError: It is no unfinished request.
            StoreError: The store cannot be used.
        """
        self._stored("giving up")
        assert self._requests is not None
        self._requests.give_up(name_of("request_id", request_id, _LONGEST))

    def verify(self, head: str | None = None) -> str:
        """Compute hashes and sums of all entries anew, and return the head: 'COUNT:HASH'.

        Args:
            head: One that was noted before: the ledger must have passed it.

        Raises:
            InvalidParameterError: The ledger is in memory, or the head is none.
            StoreCorruptError: Entries were altered, left out or cut, or sums are not theirs.
            StoreError: The store cannot be used.
        """
        row = self._stored("verifying").verified(None if head is None else _head(head))
        return f"{row.head}:{row.head_hash.hex()}"

    def raise_total(self, total: Privacy, reason: str) -> None:
        """Raise the total: an entry of the ledger, with the reason.

        It is then opened with the new total. What was promised to people before is not: raise it only for what they
        were told.

        Raises:
            InvalidParameterError: The ledger is in memory, the total is no higher one of the same kind, there is no
                reason, the split is frozen, or a schedule was declared.
            StoreError: The store cannot be used.
        """
        raise_in(self._stored("raising a total"), total, text("reason", reason))

    def split(self, totals: Mapping[str, Privacy]) -> dict[str, Ledger]:
        """Return ledgers that share this one: each has a total of its own, which is charged here at once.

        They may be used side by side, by anybody, in any order. Pure totals anywhere; Gaussian ones where Gaussian
        costs are counted, concentrated ones under a concentrated total, approximate ones where approximate costs are.

        Args:
            totals: A total for the id of each.

        Raises:
            DataTypeError: They are no mapping of guarantees.
            InvalidParameterError: The ledger is in memory.
            BudgetExceededError: They exceed what is left; none is made.
            UnsupportedCostError: A total is of a kind that cannot be counted here.
            TermsError: One is there already, on other terms.
            StoreError: The store cannot be used.
        """
        book = self._stored("splitting")
        if not isinstance(totals, Mapping):
            raise DataTypeError("totals must be a mapping from ids to guarantees")
        assert self._requests is not None
        return {
            name: type(self)._made(part, self._requests.over(part))
            for name, part in split_in(book, {name_of("id", name): total for name, total in totals.items()}).items()
        }

    def every(self, span: object, total: Privacy, *, zone: str = "UTC") -> Periods:
        """Return ledgers of periods: what was done in one of them is protected by `total` too.

        A release names the periods whose event times it reads (`periods.on(...)`), and is charged in each of them and
        once here, in one transaction. For one person who acts in k periods, k totals compose, bounded by this ledger's.

        Args:
            span: '1 day', '1 week', '1 hour', or seconds; days and weeks begin at midnight of the zone.
            total: For what was done in one period.
            zone: Name of a time zone.

        Raises:
            InvalidParameterError: The ledger is in memory, or the span or the zone is none.
            StoreError: The store cannot be used.
        """
        book = self._stored("periods")
        assert self._requests is not None
        return Periods(book, self._requests, span, total, zone, type(self)._made)

    def to_dp_events(self) -> tuple[Any, ...]:
        """Return every charge as an event of Google's `dp_accounting`, in order.

        Raises:
            MissingDependencyError: The package dp-accounting is not installed.
            UnsupportedCostError: The ledger holds an approximate cost.
            ForkError: This process does not own the ledger.
            StoreError: The store cannot be used.
        """
        return tuple(entry.cost.to_dp_event() for entry in self.history if entry.cost is not None)

    def _repr_html_(self) -> str:
        history, spent = self.history, self.spent
        facts = [("unit", "any" if self.unit is None else repr(self.unit)), ("charged", str(len(history)))]
        facts += [(kind, numbers_of(numbers)) for kind, numbers in spent.items()]
        last = [[entry.request_id or "-", entry.label or "-", repr(entry.cost)] for entry in history[-_SHOWN:]]
        note = f"the last {_SHOWN} of {len(history)} charges" if len(history) > _SHOWN else ""
        return card(f"Ledger, {self.total!r}", facts, head=["request", "label", "cost"], rows=last, note=note)

    def __repr__(self) -> str:
        if isinstance(self._book, StoredBook):
            return f"<Ledger {self._book.name!r} in {self._book.store!r}>"
        terms = self._account.terms
        composition = "" if terms.composition == "adaptive" else f", composition={terms.composition!r}"
        return f"<Ledger {terms.total}{composition}: {len(self.history)} charged>"


def _left(account: Account, share: Fraction, after: Cost | None) -> dict[str, float]:
    rule = account.terms.rule
    return rule.left(account.state if after is None else rule.after(account.state, after), share)


def _charge(cost: Cost, request_id: object, label: object, unit: Unit | None) -> Charge:
    if not isinstance(label, str):
        raise DataTypeError(f"label must be a string, got {type(label).__name__}")
    return Charge(checked_cost(cost), None if request_id is None else name_of("request_id", request_id), label, unit)


def _requests(book: StoredBook, recovery: object, attempts: object, lease: object, keep: object) -> Requests:
    known = book.store.keys.known
    chosen: Recovery = "same" if known else "redraw"
    if recovery is not None:
        chosen = one_of("recovery", recovery, get_args(Recovery))
    if chosen == "same" and not known:
        raise InvalidParameterError("recovery='same' seals a seed beside each charge: the store needs a key")
    return Requests(
        book,
        chosen,
        integer("attempts", attempts, least=1, most=100),
        seconds_of("lease", lease),
        seconds_of("keep_answers", keep),
    )


def _head(head: object) -> tuple[int, str]:
    count, _, digest = text("head", head).partition(":")
    if not count.isdecimal() or len(digest) != 64:
        raise InvalidParameterError("a head is a number of entries and a hash: 'COUNT:HASH'")
    return int(count), digest
