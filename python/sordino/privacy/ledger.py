"""The ledger: a privacy filter that refuses what would exceed a total, before any noise is drawn."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, get_args

from sordino._support.cards import card
from sordino._support.checks import one_of, positive, real, text
from sordino._support.turns import Turn
from sordino._support.uncopied import Uncopied
from sordino.errors import (
    DataTypeError,
    DuplicateRequestError,
    InvalidParameterError,
    UnitError,
)
from sordino.privacy.composition import (
    BasicSum,
    ConcentratedSum,
    GaussianSum,
    OneOf,
    PureSum,
    Rule,
    ScheduleSum,
    pure_or_gaussian,
)
from sordino.privacy.costs import ApproxCost, ApproximateGaussianCost, Cost, GaussianCost, PureCost
from sordino.privacy.guarantees import ApproxDP, GaussianDP, Privacy, PureDP, ZeroConcentratedDP
from sordino.privacy.mixed_rule import MixedRule
from sordino.privacy.units import ReplaceOne, Unit
from sordino.storage.ledgers import InMemoryStorage, LedgerEntry, LedgerStorage
from sordino.testing import current_key

__all__ = ["Charged", "Composition", "Ledger", "key_beside", "opened", "released"]

Composition = Literal["adaptive", "basic", "schedule"]
PureAs = Literal["epsilon", "gaussian"]

# Charges that a card shows.
_SHOWN = 10


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

    A ledger belongs to one process and to its object: it refuses to work after a fork (both processes would
    spend the same budget) and to be copied or pickled. It may be used from many threads.

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
        storage: Where entries are kept; in memory if None. Entries that it already holds are counted.

    Raises:
        InvalidParameterError: `composition` is unknown, what concerns an `ApproxDP` total comes with another, a
            reserve is not below the total, the schedule does not fit it, or the storage was charged by another rule.
        DataTypeError: `total` is no privacy guarantee, the schedule no sequence of costs, the unit or the storage none.
        BudgetExceededError: The storage holds more than the total.
        UnsupportedCostError: The storage holds a cost that this total cannot count.
        UnitError: The storage holds charges of different units.
        DuplicateRequestError: The storage holds a request id twice.
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
        storage: LedgerStorage | None = None,
    ) -> None:
        composition = one_of(
            "composition", composition, ("adaptive", "basic") if schedule is None else get_args(Composition)
        )
        pure_as = one_of("pure_as", pure_as, get_args(PureAs))
        reserves = real("reserve_epsilon", reserve_epsilon), real("reserve_delta", reserve_delta)
        if unit is not None and not isinstance(unit, Unit):
            raise DataTypeError("unit must be AddRemove, ReplaceOne or UserLevel")
        if schedule is not None and composition == "basic":
            raise InvalidParameterError("a schedule is a composition of its own")
        self._unit = unit
        self._rule = _rule_of(total, composition, schedule, pure_as, reserves)
        composition = composition if schedule is None else "schedule"
        self._total = total
        self._composition = composition
        methods = [getattr(storage, name, None) for name in ("append", "entries")]
        if storage is not None and (isinstance(storage, type) or not all(map(callable, methods))):
            raise DataTypeError("storage must be a storage of ledger entries, with append and entries")
        self._storage: LedgerStorage = InMemoryStorage() if storage is None else storage
        self._records: dict[str, object] = {}
        self._guard = Turn(
            "this ledger belongs to the process that made it; after a fork both would spend the same budget. Release "
            "in that process, or give each process a ledger with a share of the total"
        )
        self._read_storage()

    @property
    def total(self) -> Privacy:
        """The guarantee for everything together."""
        return self._total

    @property
    def composition(self) -> Composition:
        """How costs of an `ApproxDP` total add up."""
        return self._composition

    @property
    def unit(self) -> Unit | None:
        """What the total protects: as given, or that of the first plan that was charged; None before.

        Raises:
            ForkError: This process does not own the ledger.
        """
        with self._guard():
            self._settle()
            return self._fixed

    @property
    def history(self) -> tuple[LedgerEntry, ...]:
        """Every charge so far, in order.

        Raises:
            ForkError: This process does not own the ledger.
        """
        with self._guard():
            self._settle()
            return tuple(self._history)

    @property
    def spent(self) -> dict[str, dict[str, float]]:
        """What has been spent, for every sum that can count all costs so far.

        For example ``{"pure": {"epsilon": 1.0, "epsilon_limit": 2.0}}``. Under an `ApproxDP` total the limits are those
        that hold now: the first Gaussian cost fixes them.
        Spent numbers are rounded up and limits down; the ledger itself decides on the exact ones.

        Raises:
            ForkError: This process does not own the ledger.
        """
        with self._guard():
            self._settle()
            return self._rule.spent(self._state)

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
            DataTypeError: The share is no number, or what would be charged no cost.
            InvalidParameterError: The share is not above 0 and at most 1.
            BudgetExceededError: What would be charged before is refused.
            UnsupportedCostError: The total cannot count it.
        """
        part = Fraction(positive("share", share, most=1.0))
        with self._guard():
            self._settle()
            state = self._state if after is None else self._rule.after(self._state, _cost(after))
            return self._rule.left(state, part)

    def fixes_the_split(self, cost: Cost) -> bool:
        """Return whether charging `cost` would fix what is left for pure and for Gaussian costs.

        Raises:
            DataTypeError: `cost` is no cost.
            ForkError: This process does not own the ledger.
        """
        with self._guard():
            self._settle()
            return self._rule.fixes(self._state, _cost(cost))

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
        """
        with self._guard():
            self._settle()
            self._after(cost, request_id, unit)

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
            DuplicateRequestError: `request_id` has been charged; `find` returns what is known about it.
            DataTypeError: `cost` is no cost, or `request_id` or `label` no string.
            ForkError: This process does not own the ledger.
        """
        if not isinstance(label, str):
            raise DataTypeError(f"label must be a string, got {type(label).__name__}")
        with self._guard():
            self._settle()
            after = self._after(cost, request_id, unit)
            entry = LedgerEntry(
                sequence=len(self._history),
                cost=cost,
                request_id=request_id,
                label=label,
                unit=unit,
                rule=self._rule.name,
                split=self._rule.stored(after),
            )
            # Whatever comes in between, the storage has the truth: it is read again before anything else.
            self._pending = True
            self._storage.append(entry)
            self._record(entry, after)
            self._pending = False
            return entry

    def find(self, request_id: str) -> Charged | None:
        """Return the charge made under `request_id` and the record attached to it, or None if there is none.

        Raises:
            ForkError: This process does not own the ledger.
        """
        with self._guard():
            self._settle()
            entry = self._requests.get(text("request_id", request_id))
            return None if entry is None else Charged(entry, self._records.get(request_id))

    def attach(self, request_id: str, record: object) -> None:
        """Keep `record`, such as the finished release, so that a repeated request can be answered from it.

        Records stay in memory and are not given to the storage.

        Raises:
            InvalidParameterError: `request_id` has not been charged.
            DuplicateRequestError: A record is attached already; it is kept.
            ForkError: This process does not own the ledger.
        """
        with self._guard():
            self._settle()
            if text("request_id", request_id) not in self._requests:
                raise InvalidParameterError(f"request id {request_id!r} has not been charged: charge it first")
            if request_id in self._records:
                raise DuplicateRequestError(f"request id {request_id!r} has a record already; it was kept")
            self._records[request_id] = record

    def _finished(self, request_id: str, record: object) -> None:
        """Keep a record in place of the unfinished one."""
        with self._guard():
            self._settle()
            self._records[request_id] = record

    def to_dp_events(self) -> tuple[Any, ...]:
        """Return every charge as an event of Google's `dp_accounting`, in order.

        Raises:
            MissingDependencyError: The package dp-accounting is not installed.
            UnsupportedCostError: The ledger holds an approximate cost.
            ForkError: This process does not own the ledger.
        """
        return tuple(entry.cost.to_dp_event() for entry in self.history)

    def _repr_html_(self) -> str:
        history, spent = self.history, self.spent
        facts = [("unit", "any" if self.unit is None else repr(self.unit)), ("charged", str(len(history)))]
        for kind, numbers in spent.items():
            facts.append((kind, ", ".join(f"{name} {value:.6g}" for name, value in numbers.items())))
        last = [[entry.request_id or "-", entry.label or "-", repr(entry.cost)] for entry in history[-_SHOWN:]]
        note = f"the last {_SHOWN} of {len(history)} charges" if len(history) > _SHOWN else ""
        return card(f"Ledger, {self.total!r}", facts, head=["request", "label", "cost"], rows=last, note=note)

    def __repr__(self) -> str:
        composition = "" if self._composition == "adaptive" else f", composition={self._composition!r}"
        return f"<Ledger {self._total}{composition}: {len(self._history)} charged>"

    def _settle(self) -> None:
        """See that nothing is in the storage that is not counted here; inside a turn."""
        if self._pending:
            self._read_storage()

    def _read_storage(self) -> None:
        self._pending = True
        self._state: Any = self._rule.start()
        self._fixed = self._unit
        self._history: list[LedgerEntry] = []
        self._requests: dict[str, LedgerEntry] = {}
        for entry in self._storage.entries():
            if entry.rule not in {None, self._rule.name}:
                raise InvalidParameterError(
                    f"the storage was charged by another rule, {entry.rule!r}: charges by different rules do not add up"
                )
            self._record(entry, self._after(entry.cost, entry.request_id, entry.unit, entry.split))
        self._pending = False

    def _record(self, entry: LedgerEntry, state: Any) -> None:
        self._state = state
        self._fixed = self._fixed or entry.unit
        self._history.append(entry)
        if entry.request_id is not None:
            self._requests[entry.request_id] = entry

    def _after(self, cost: Cost, request_id: str | None, unit: Unit | None, stored: object = None) -> Any:
        """Return the state after `cost`, or raise if it is not accepted."""
        _cost(cost)
        if request_id is not None and not isinstance(request_id, str):
            raise DataTypeError(f"request_id must be a string or None, got {type(request_id).__name__}")
        if unit is not None and not isinstance(unit, Unit):
            raise DataTypeError("unit must be AddRemove, ReplaceOne or UserLevel")
        if request_id is not None and request_id in self._requests:
            sequence = self._requests[request_id].sequence
            raise DuplicateRequestError(
                f"request id {request_id!r} was already charged as entry {sequence}; nothing was spent "
                "again. Answer the repeat from ledger.find(request_id), or use a new id for a new release"
            )
        if unit is not None and self._fixed is not None and _thing(unit) != _thing(self._fixed):
            raise UnitError(
                f"this ledger protects {_said(self._fixed)}, the charge {_said(unit)}: costs of different things do "
                "not add up. Nothing was spent. Give both units the same label if they are the same thing, or keep a "
                "ledger for each"
            )
        return self._rule.after(self._state, cost, stored)


def _cost(cost: object) -> Cost:
    if not isinstance(cost, GaussianCost | PureCost | ApproxCost | ApproximateGaussianCost):
        raise DataTypeError(f"cost must be a privacy cost, got {type(cost).__name__}")
    return cost


def _thing(unit: Unit) -> tuple[str, bool]:
    return unit.label, isinstance(unit, ReplaceOne)


def _said(unit: Unit) -> str:
    return f"{'the cell' if isinstance(unit, ReplaceOne) else 'the presence'} of {unit.label!r}"


def _rule_of(
    total: Privacy,
    composition: Composition,
    schedule: Sequence[Cost] | None,
    pure_as: PureAs,
    reserves: tuple[float, float],
) -> Rule[Any]:
    described = f"a ledger with a {type(total).__name__} total"
    if not isinstance(total, ApproxDP):
        if composition != "adaptive" or schedule is not None or pure_as != "epsilon" or any(reserves):
            raise InvalidParameterError("composition, schedule, pure_as and reserves need an ApproxDP total")
        match total:
            case PureDP(epsilon=epsilon):
                return OneOf([PureSum(epsilon)], described)
            case ZeroConcentratedDP(rho=rho):
                return OneOf([ConcentratedSum(rho)], described)
            case GaussianDP(mu=mu):
                return OneOf([GaussianSum(mu)], described)
        raise DataTypeError(f"total must be a privacy guarantee, got {type(total).__name__}")
    adaptive = composition == "adaptive" and schedule is None
    if any(reserves) and not (adaptive and pure_as == "epsilon"):
        raise InvalidParameterError("reserves are for adaptive composition with pure costs as epsilon")
    if pure_as == "gaussian" and not adaptive:
        raise InvalidParameterError("pure_as is for adaptive composition")
    if schedule is not None:
        return OneOf([ScheduleSum(total, schedule)], "the schedule that was declared for this ledger")
    if composition == "basic":
        return OneOf([BasicSum(total)], f"{described} and basic composition")
    if pure_as == "gaussian":
        return OneOf(pure_or_gaussian(total), f"{described} and pure_as='gaussian'")
    return MixedRule(total, *reserves)


def key_beside(ledger: object) -> bytes | None:
    """Return the known key of tests and tutorials, None otherwise, for a release that this ledger is charged for.

    Raises:
        DataTypeError: It is neither a ledger nor None.
        InvalidParameterError: Noise is deterministic and there is a ledger.
    """
    key = current_key()
    if ledger is not None and not isinstance(ledger, Ledger):
        raise DataTypeError("ledger must be a sordino.Ledger")
    if ledger is not None and key is not None:
        raise InvalidParameterError("a ledger refuses deterministic noise: such releases are not private")
    return key


class _Opened(Protocol):
    accounted: bool

    def close(self) -> None: ...


_Stream = TypeVar("_Stream", bound=_Opened)


def opened(
    ledger: Ledger | None, request_id: str | None, cost: Cost, unit: Unit, prepare: Callable[[bytes | None], _Stream]
) -> _Stream:
    """Open a stream and charge for it: everything that can fail comes before the charge, every item after it.

    Args:
        ledger: Where it is charged; None leaves the stream unaccounted.
        request_id: Name of the request.
        cost: What the stream costs.
        unit: What is protected.
        prepare: Opens it, under a known key in tests and tutorials.

    Raises:
        SordinoError: As `Ledger.charge` and `prepare`; nothing was charged, nothing stays open.
    """
    key = key_beside(ledger)
    if ledger is None:
        return prepare(key)
    ledger.check(cost, request_id, unit)
    stream = prepare(key)
    try:
        ledger.charge(cost, request_id, unit.label, unit)
    except BaseException:
        stream.close()
        raise
    stream.accounted = True
    return stream


_Released = TypeVar("_Released")


def released(  # noqa: PLR0917 - a request, then its two halves
    ledger: Ledger | None,
    request_id: str | None,
    cost: Cost,
    unit: Unit,
    same: Callable[[object], _Released | None],
    prepare: Callable[[bytes | None], Callable[[], _Released]],
    finish: Callable[[_Released], _Released] = lambda measured: measured,
) -> _Released:
    """Measure once and charge for it: everything that can fail comes before the charge, every noise after it.

    What was measured is attached to a named request at once: whatever interrupts what comes then, the request can be
    repeated and is answered from it.

    Args:
        ledger: Where it is charged; None leaves the release unaccounted.
        request_id: Name of the request, charged at most once.
        cost: What it costs.
        unit: What is protected.
        same: Returns the record of an earlier request if it answers this one.
        prepare: Reads and checks the data, under a known key in tests and tutorials; what it returns measures them.
        finish: What is made of the measured, if it was not made yet.

    Raises:
        SordinoError: As `Ledger.charge` and `prepare`; nothing was charged.
        DuplicateRequestError: The request was charged for something else, or was interrupted before it was measured.
    """
    key = key_beside(ledger)
    before = _released_before(ledger, request_id, same)
    if before is None:
        if ledger is not None:
            ledger.check(cost, request_id, unit)
        measure = prepare(key)
        if ledger is not None:
            ledger.charge(cost, request_id, unit.label, unit)
        before = measure()
        if ledger is not None and request_id is not None:
            ledger.attach(request_id, before)
    release = finish(before)
    if ledger is not None and request_id is not None:
        ledger._finished(request_id, release)
    return release


def _released_before(
    ledger: Ledger | None, request_id: object, same: Callable[[object], _Released | None]
) -> _Released | None:
    """Return what was released for a request before, None if nothing was.

    Raises:
        DataTypeError: The name is no string.
        DuplicateRequestError: The request was charged for something else, or failed.
    """
    if request_id is not None and not isinstance(request_id, str):
        raise DataTypeError("request_id must be a string")
    if ledger is None or request_id is None or (charged := ledger.find(request_id)) is None:
        return None
    found = same(charged.record)
    if found is not None:
        return found
    raise DuplicateRequestError("this request_id was charged before, for another plan or a failed release")
