"""The ledger: a privacy filter that refuses what would exceed a total, before any noise is drawn."""

import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, get_args

from sordino._support.checks import one_of, text
from sordino._support.rounding import float_down, float_up, sqrt_down
from sordino._support.turns import Turn
from sordino._support.uncopied import Uncopied
from sordino.errors import (
    BudgetExceededError,
    DataTypeError,
    DuplicateRequestError,
    InvalidParameterError,
    UnsupportedCostError,
)
from sordino.privacy.calibration import pure_of_mu
from sordino.privacy.composition import (
    BasicRule,
    ConcentratedRule,
    GaussianRule,
    PureRule,
    Rule,
    ScheduleRule,
    adaptive_rules,
)
from sordino.privacy.costs import ApproxCost, Cost, GaussianCost, PureCost
from sordino.privacy.guarantees import ApproxDP, GaussianDP, Privacy, PureDP, ZeroConcentratedDP
from sordino.storage.ledgers import InMemoryStorage, LedgerEntry, LedgerStorage
from sordino.testing import current_key

__all__ = ["Charged", "Composition", "Ledger", "key_beside", "opened", "released"]

Composition = Literal["adaptive", "basic", "schedule"]

_Sums = dict[str, Fraction]
# An overdraft below this fraction of the limit is most likely a decimal that has no exact binary form.
_ROUNDING = Fraction(1, 10**12)
_LEAST = sys.float_info.min


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
    - `ZeroConcentratedDP`: sum of rho, mu**2/2 of Gaussian and epsilon**2/2 of pure costs.
    - `GaussianDP`: sum of mu**2; a pure cost counts as the least GDP that it implies.
    - `ApproxDP`, adaptive: (P) pure costs only and sum of epsilon <= epsilon, or (G) sum of mu**2 <= m**2, m the
      largest GDP that implies the total.
    - `ApproxDP`, basic: sums of epsilon and of delta; no Gaussian costs.
    - `ApproxDP`, schedule: each of the costs declared beforehand once, in any order; together they were checked to
      satisfy the total by the exact composition of their privacy losses, which fits more than the sums above.

    *Why "P or G" is a valid filter.* Fix neighbouring data sets and a way of asking; P and Q are the
    distributions of the transcript on them, and S is a set of transcripts. Put into S1 those which satisfy P
    at their end, the rest into S2. On S1 the privacy loss is at most the sum of epsilon, pointwise, hence
    P(S1) <= exp(epsilon) Q(S1), with no delta. A transcript in S2 satisfies G at its end, and since sums only
    grow, so does each of its prefixes. Now change the interaction so that it stops before the first cost
    that violates G. That one is filtered by G alone, so it is m-GDP, hence (epsilon, delta)-DP; and
    transcripts in S2 are never stopped, so they have the same probabilities in it:
    P(S2) <= exp(epsilon) Q(S2) + delta. Adding the two gives the claim. A third alternative with a delta of
    its own would add a second delta; that is why approximate costs need a ledger of their own kind,
    `composition="basic"`.

    A ledger belongs to one process and to its object: it refuses to work after a fork (both processes would
    spend the same budget) and to be copied or pickled. It may be used from many threads.

    Args:
        total: The guarantee for everything together.
        composition: "adaptive" (the list above), or "basic" to add up pairs (epsilon, delta) under an
            `ApproxDP` total; must be said at construction because the promises do not mix.
        schedule: Events to be charged, all of them declared now, under an `ApproxDP` total; `composition` is then
            "schedule".
        storage: Where entries are kept; in memory if None. Entries that it already holds are counted.

    Raises:
        InvalidParameterError: `composition` is unknown, "basic" or a schedule comes with another total than
            `ApproxDP`, or the schedule does not fit the total.
        DataTypeError: `total` is no privacy guarantee, the schedule no sequence of costs, or the storage none.
        BudgetExceededError: The storage holds more than the total.
        UnsupportedCostError: The storage holds an cost that this total cannot count.
        DuplicateRequestError: The storage holds a request id twice.
    """

    _no_copy = "a ledger cannot be copied or pickled: two copies would spend the same budget"

    def __init__(
        self,
        total: Privacy,
        *,
        composition: Composition = "adaptive",
        schedule: Sequence[Cost] | None = None,
        storage: LedgerStorage | None = None,
    ) -> None:
        composition = one_of(
            "composition", composition, ("adaptive", "basic") if schedule is None else get_args(Composition)
        )
        if schedule is not None:
            if composition == "basic" or not isinstance(total, ApproxDP):
                raise InvalidParameterError("a schedule needs an ApproxDP total and no other composition")
            composition = "schedule"
            self._rules: tuple[Rule, ...] = (ScheduleRule(total, schedule),)
        else:
            self._rules = _rules_of(total, composition)
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
        """What has been spent, for every rule that can count all costs so far.

        For example ``{"pure": {"epsilon": 1.0, "epsilon_limit": 2.0}, "gaussian": {"mu_squared": ...}}``.
        Spent numbers are rounded up and limits down; the ledger itself decides on the exact ones.

        Raises:
            ForkError: This process does not own the ledger.
        """
        with self._guard():
            self._settle()
            return self._spent()

    def _spent(self) -> dict[str, dict[str, float]]:
        summary: dict[str, dict[str, float]] = {}
        for rule, sums in zip(self._rules, self._sums, strict=True):
            if sums is not None:
                summary[rule.name] = {}
                for quantity, limit in rule.limits.items():
                    summary[rule.name][quantity] = float_up(sums[quantity])
                    summary[rule.name][f"{quantity}_limit"] = float_down(limit)
        return summary

    def remaining(self) -> dict[str, float]:
        """Return the largest single costs that would be accepted now.

        Returns:
            "pure_epsilon": of a `PureCost`; "gaussian_mu" (and "rho" under zCDP): of a `GaussianCost`;
            "delta": what approximate costs may still add under basic composition; under a schedule, how many
            of each declared cost are left. Kinds that the ledger refuses are left out. The alternatives
            exclude each other. All are rounded down; 0.0 means that nothing is left.

        Raises:
            ForkError: This process does not own the ledger.
        """
        with self._guard():
            self._settle()
            left = [
                None if sums is None else {name: max(Fraction(0), rule.limits[name] - sums[name]) for name in sums}
                for rule, sums in zip(self._rules, self._sums, strict=True)
            ]
        largest: dict[str, float] = {}
        for rule, amounts in zip(self._rules, left, strict=True):
            for kind, value in ({} if amounts is None else _largest_events(rule, amounts)).items():
                largest[kind] = max(value, largest.get(kind, 0.0))
        return largest

    def check(self, cost: Cost, request_id: str | None = None) -> None:
        """Dry run: return if `cost` would be accepted, raise as `charge` would otherwise. Nothing changes.

        Args:
            cost: What would be spent.
            request_id: The name under which it would be charged.

        Raises:
            BudgetExceededError: The total would be exceeded.
            UnsupportedCostError: The total cannot count this kind of cost.
            DuplicateRequestError: `request_id` has been charged.
            DataTypeError: `cost` is no cost or `request_id` no string.
            ForkError: This process does not own the ledger.
        """
        with self._guard():
            self._settle()
            self._sums_after(cost, request_id)

    def charge(self, cost: Cost, request_id: str | None = None, label: str = "") -> LedgerEntry:
        """Check `cost` and, if it is accepted, record it, as one step; a refusal changes nothing.

        Args:
            cost: What is spent.
            request_id: A name that can be charged once only, so that a repeated request cannot pay twice.
            label: Free text for people.

        Returns:
            The new entry.

        Raises:
            BudgetExceededError: The total would be exceeded.
            UnsupportedCostError: The total cannot count this kind of cost.
            DuplicateRequestError: `request_id` has been charged; `find` returns what is known about it.
            DataTypeError: `cost` is no cost, or `request_id` or `label` no string.
            ForkError: This process does not own the ledger.
        """
        if not isinstance(label, str):
            raise DataTypeError(f"label must be a string, got {type(label).__name__}")
        with self._guard():
            self._settle()
            sums = self._sums_after(cost, request_id)
            entry = LedgerEntry(sequence=len(self._history), cost=cost, request_id=request_id, label=label)
            # Whatever comes in between, the storage has the truth: it is read again before anything else.
            self._pending = True
            self._storage.append(entry)
            self._record(entry, sums)
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

    def __repr__(self) -> str:
        composition = "" if self._composition == "adaptive" else f", composition={self._composition!r}"
        return f"<Ledger {self._total}{composition}: {len(self._history)} charged>"

    def _settle(self) -> None:
        """See that nothing is in the storage that is not counted here; inside a turn."""
        if self._pending:
            self._read_storage()

    def _read_storage(self) -> None:
        self._pending = True
        self._sums: tuple[_Sums | None, ...] = tuple(dict.fromkeys(rule.limits, Fraction(0)) for rule in self._rules)
        self._history: list[LedgerEntry] = []
        self._requests: dict[str, LedgerEntry] = {}
        for entry in self._storage.entries():
            self._record(entry, self._sums_after(entry.cost, entry.request_id))
        self._pending = False

    def _record(self, entry: LedgerEntry, sums: tuple[_Sums | None, ...]) -> None:
        self._sums = sums
        self._history.append(entry)
        if entry.request_id is not None:
            self._requests[entry.request_id] = entry

    def _sums_after(self, cost: Cost, request_id: str | None) -> tuple[_Sums | None, ...]:
        """Return the sums of every rule after `cost`, or raise if it is not accepted."""
        if not isinstance(cost, GaussianCost | PureCost | ApproxCost):
            raise DataTypeError(f"cost must be a privacy cost, got {type(cost).__name__}")
        if request_id is not None and not isinstance(request_id, str):
            raise DataTypeError(f"request_id must be a string or None, got {type(request_id).__name__}")
        if request_id is not None and request_id in self._requests:
            sequence = self._requests[request_id].sequence
            raise DuplicateRequestError(
                f"request id {request_id!r} was already charged as entry {sequence}; nothing was spent "
                "again. Answer the repeat from ledger.find(request_id), or use a new id for a new release"
            )
        costs = [rule.amounts(cost) for rule in self._rules]
        if all(cost is None for cost in costs):
            raise UnsupportedCostError(_unsupported(cost, self._total, self._composition))
        after = tuple(
            None
            if sums is None or cost is None
            else {name: amount + cost.get(name, Fraction(0)) for name, amount in sums.items()}
            for sums, cost in zip(self._sums, costs, strict=True)
        )
        if not any(
            sums is not None and all(sums[name] <= limit for name, limit in rule.limits.items())
            for rule, sums in zip(self._rules, after, strict=True)
        ):
            raise BudgetExceededError(self._refusal(cost, after))
        return after

    def _refusal(self, cost: Cost, after: tuple[_Sums | None, ...]) -> str:
        parts = []
        rounding = False
        for rule, sums in zip(self._rules, after, strict=True):
            if sums is not None:
                for name, limit in rule.limits.items():
                    over = sums[name] - limit
                    parts.append(f"{rule.name} {name} would be {float_up(sums[name]):.17g} of {float(limit):.17g}")
                    rounding = rounding or 0 < over <= limit * _ROUNDING
        message = f"the ledger refuses {cost}: {'; '.join(parts)}. Nothing was spent"
        if rounding:
            message += (
                ". The excess is below one part in 1e12: decimals such as 0.1 are not exact in binary; "
                "ask for ledger.remaining() or a slightly smaller budget"
            )
        return message


def _rules_of(total: Privacy, composition: Composition) -> tuple[Rule, ...]:
    if composition == "basic" and not isinstance(total, ApproxDP):
        raise InvalidParameterError("composition='basic' adds up pairs (epsilon, delta) and needs an ApproxDP total")
    match total:
        case PureDP(epsilon=epsilon):
            return (PureRule(epsilon),)
        case ZeroConcentratedDP(rho=rho):
            return (ConcentratedRule(rho),)
        case GaussianDP(mu=mu):
            return (GaussianRule(mu),)
        case ApproxDP():
            return (BasicRule(total),) if composition == "basic" else adaptive_rules(total)
    raise DataTypeError(f"total must be a privacy guarantee, got {type(total).__name__}")


def _unsupported(cost: Cost, total: Privacy, composition: Composition) -> str:
    if isinstance(cost, ApproxCost) and isinstance(total, ApproxDP):
        return "an approximate cost adds up by basic composition only: use Ledger(total, composition='basic')"
    if composition == "schedule":
        return "the cost is not in the schedule that was declared for this ledger"
    kind, name = type(cost).__name__, type(total).__name__
    return f"a ledger with a {name} total ({composition} composition) cannot count a {kind}"


def _largest_events(rule: Rule, left: _Sums) -> dict[str, float]:
    """Return the largest cost of every kind that `left` pays for under `rule`, rounded down."""
    match rule:
        case ConcentratedRule():
            root = _payable(sqrt_down(2 * left["rho"]))
            return {"pure_epsilon": root, "gaussian_mu": root, "rho": _payable(float_down(left["rho"]))}
        case GaussianRule():
            mu = _payable(sqrt_down(left["mu_squared"]))
            # epsilon is about 0.8 mu there.
            return {"gaussian_mu": mu, "pure_epsilon": pure_of_mu(mu) if mu > 2.0 * _LEAST else 0.0}
        case ScheduleRule():
            return {cost: float(count) for cost, count in left.items()}
        case BasicRule():
            return {"pure_epsilon": _payable(float_down(left["epsilon"])), "delta": float_down(left["delta"])}
    return {"pure_epsilon": _payable(float_down(left["epsilon"]))}


def _payable(amount: float) -> float:
    """Return an amount, 0 where it is less than any cost."""
    return amount if amount >= _LEAST else 0.0


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
    ledger: Ledger | None, request_id: str | None, cost: Cost, label: str, prepare: Callable[[bytes | None], _Stream]
) -> _Stream:
    """Open a stream and charge for it: everything that can fail comes before the charge, every item after it.

    Args:
        ledger: Where it is charged; None leaves the stream unaccounted.
        request_id: Name of the request.
        cost: What the stream costs.
        label: What is protected.
        prepare: Opens it, under a known key in tests and tutorials.

    Raises:
        SordinoError: As `Ledger.charge` and `prepare`; nothing was charged, nothing stays open.
    """
    key = key_beside(ledger)
    if ledger is None:
        return prepare(key)
    ledger.check(cost, request_id)
    stream = prepare(key)
    try:
        ledger.charge(cost, request_id=request_id, label=label)
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
    label: str,
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
        label: What is protected.
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
            ledger.check(cost, request_id)
        measure = prepare(key)
        if ledger is not None:
            ledger.charge(cost, request_id=request_id, label=label)
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
