"""The terms of a ledger: its total and how costs add up to it, which never change but by an entry."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple, get_args

from sordino._support.checks import one_of, real
from sordino.errors import DataTypeError, DuplicateRequestError, InvalidParameterError, StoreCorruptError, UnitError
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
from sordino.privacy.costs import ApproxCost, ApproximateGaussianCost, Cost, GaussianCost, PureCost, cost_from_json
from sordino.privacy.guarantees import ApproxDP, GaussianDP, Privacy, PureDP, ZeroConcentratedDP, privacy_from_json
from sordino.privacy.mixed_rule import MixedRule
from sordino.privacy.units import ReplaceOne, Unit, unit_from_json
from sordino.storage.chain import canonical

__all__ = ["Account", "Composition", "PureAs", "Terms", "checked_cost", "checked_terms", "duplicate"]

Composition = Literal["adaptive", "basic", "schedule"]
PureAs = Literal["epsilon", "gaussian"]
# Of the rules; histories are not judged again by others.
_VERSION = 1


@dataclass(frozen=True)
class Terms:
    """What a ledger is made with.

    Attributes:
        total: The guarantee for everything together.
        composition: How costs of an `ApproxDP` total add up.
        schedule: Costs that were declared beforehand, if they were.
        pure_as: What a pure cost counts as under an adaptive `ApproxDP` total.
        reserves: Epsilon and delta that stay for pure and approximate costs.
        unit: What the total protects, if it was declared.
        role: '' for a ledger by itself, 'share' for one whose total was charged to its parent, 'period' for one whose
            charges are charged to its parent too.
        zone: Time zone of the days of a period.
        span: First and last second of a period, the last not included.
    """

    total: Privacy
    composition: Composition = "adaptive"
    schedule: tuple[Cost, ...] | None = None
    pure_as: PureAs = "epsilon"
    reserves: tuple[float, float] = (0.0, 0.0)
    unit: Unit | None = None
    role: str = ""
    zone: str | None = None
    span: tuple[int, int] | None = None

    @cached_property
    def rule(self) -> Rule[Any]:
        """The rule by which costs add up.

        Raises:
            InvalidParameterError: What concerns an `ApproxDP` total comes with another, a reserve is not below the
                total, or the schedule does not fit it.
            DataTypeError: The total is no guarantee.
        """
        return _rule_of(self)

    @cached_property
    def text(self) -> str:
        """The terms as canonical JSON."""
        return canonical(
            {
                "version": _VERSION,
                "total": self.total.to_json(),
                "composition": self.composition,
                "schedule": None if self.schedule is None else [cost.to_json() for cost in self.schedule],
                "pure_as": self.pure_as,
                "reserves": list(self.reserves),
                "unit": None if self.unit is None else self.unit.to_json(),
                "role": self.role,
                "zone": self.zone,
                "span": None if self.span is None else list(self.span),
            }
        )

    @staticmethod
    @lru_cache(maxsize=256)
    def of(text: str) -> Terms:
        """Return the terms that a store holds.

        Raises:
            StoreCorruptError: They are none, or of a newer sordino.
        """
        try:
            record = json.loads(text)
            if record["version"] != _VERSION:
                raise StoreCorruptError("the ledger counts by the rules of a newer sordino: use that")
            schedule, unit, span = record["schedule"], record["unit"], record["span"]
            return Terms(
                privacy_from_json(record["total"]),
                record["composition"],
                None if schedule is None else tuple(cost_from_json(cost) for cost in schedule),
                record["pure_as"],
                (float(record["reserves"][0]), float(record["reserves"][1])),
                None if unit is None else unit_from_json(unit),
                str(record["role"]),
                record["zone"],
                None if span is None else (int(span[0]), int(span[1])),
            )
        except (LookupError, TypeError, ValueError) as error:
            if isinstance(error, StoreCorruptError):
                raise
            raise StoreCorruptError("the terms of the ledger are damaged") from None

    def raised(self, total: Privacy) -> Terms:
        """Return the terms with a higher total.

        Raises:
            DataTypeError: It is no guarantee.
            InvalidParameterError: It is of another kind, or lower somewhere, or a schedule was declared.
        """
        if not isinstance(total, Privacy):
            raise DataTypeError("a total must be a privacy guarantee")
        old, new = vars(self.total), vars(total)
        if self.schedule is not None:
            raise InvalidParameterError("a schedule was checked against its total as a whole: it cannot be raised")
        if type(total) is not type(self.total) or any(new[name] < old[name] for name in old) or new == old:
            raise InvalidParameterError("a total is raised to a higher one of the same kind")
        return replace(self, total=total)


def checked_terms(  # noqa: PLR0917 - the arguments of a ledger
    total: Privacy,
    composition: Composition,
    schedule: Sequence[Cost] | None,
    pure_as: PureAs,
    reserves: tuple[object, object],
    unit: Unit | None,
) -> Terms:
    """Return terms whose parts go together.

    Raises:
        InvalidParameterError: They do not.
        DataTypeError: One is of the wrong type.
    """
    composition = one_of(
        "composition", composition, ("adaptive", "basic") if schedule is None else get_args(Composition)
    )
    pure_as = one_of("pure_as", pure_as, get_args(PureAs))
    kept = real("reserve_epsilon", reserves[0]), real("reserve_delta", reserves[1])
    if unit is not None and not isinstance(unit, Unit):
        raise DataTypeError("unit must be AddRemove, ReplaceOne or UserLevel")
    if schedule is None:
        terms = Terms(total, composition, None, pure_as, kept, unit)
    elif composition == "basic":
        raise InvalidParameterError("a schedule is a composition of its own")
    else:
        terms = Terms(total, "schedule", schedule, pure_as, kept, unit)  # type: ignore[arg-type]
    rule = terms.rule  # refuses what does not go together
    if schedule is not None:
        terms = replace(terms, schedule=tuple(schedule))
        vars(terms)["rule"] = rule  # checking a schedule takes time
    return terms


def _rule_of(terms: Terms) -> Rule[Any]:
    total, schedule = terms.total, terms.schedule
    described = f"a ledger with a {type(total).__name__} total"
    if not isinstance(total, ApproxDP):
        if terms.composition != "adaptive" or terms.pure_as != "epsilon" or any(terms.reserves):
            raise InvalidParameterError("composition, schedule, pure_as and reserves need an ApproxDP total")
        match total:
            case PureDP(epsilon=epsilon):
                return OneOf([PureSum(epsilon)], described)
            case ZeroConcentratedDP(rho=rho):
                return OneOf([ConcentratedSum(rho)], described)
            case GaussianDP(mu=mu):
                return OneOf([GaussianSum(mu)], described)
        raise DataTypeError(f"total must be a privacy guarantee, got {type(total).__name__}")
    adaptive = terms.composition == "adaptive"
    if any(terms.reserves) and not (adaptive and terms.pure_as == "epsilon"):
        raise InvalidParameterError("reserves are for adaptive composition with pure costs as epsilon")
    if terms.pure_as == "gaussian" and not adaptive:
        raise InvalidParameterError("pure_as is for adaptive composition")
    if schedule is not None:
        return OneOf([ScheduleSum(total, schedule)], "the schedule that was declared for this ledger")
    if terms.composition == "basic":
        return OneOf([BasicSum(total)], f"{described} and basic composition")
    if terms.pure_as == "gaussian":
        return OneOf(pure_or_gaussian(total), f"{described} and pure_as='gaussian'")
    return MixedRule(total, *terms.reserves)


class Account(NamedTuple):
    """What is spent of terms, at one moment.

    Attributes:
        terms: The terms.
        state: What is spent, by their rule.
        unit: What the total protects, None until the first charge that says so.
    """

    terms: Terms
    state: Any
    unit: Unit | None

    @classmethod
    def empty(cls, terms: Terms) -> Account:
        """Return the account in which nothing is spent."""
        return cls(terms, terms.rule.start(), terms.unit)

    def after(self, cost: Cost, unit: Unit | None, stored: object = None) -> Account:
        """Return the account after a charge.

        Raises:
            BudgetExceededError: The total would be exceeded.
            UnsupportedCostError: The total cannot count this kind of cost.
            UnitError: Another thing is protected.
            DataTypeError: The cost or the unit is none.
        """
        checked_cost(cost)
        if unit is not None and not isinstance(unit, Unit):
            raise DataTypeError("unit must be AddRemove, ReplaceOne or UserLevel")
        if unit is not None and self.unit is not None and _thing(unit) != _thing(self.unit):
            raise UnitError(
                f"this ledger protects {_said(self.unit)}, the charge {_said(unit)}: costs of different things do "
                "not add up. Nothing was spent. Give both units the same label if they are the same thing, or keep a "
                "ledger for each"
            )
        return Account(self.terms, self.terms.rule.after(self.state, cost, stored), self.unit or unit)

    @property
    def text(self) -> str:
        """What is spent, and the unit, as canonical JSON."""
        unit = None if self.unit is None else self.unit.to_json()
        return canonical({"rule": self.terms.rule.name, "state": self.terms.rule.dumped(self.state), "unit": unit})

    @classmethod
    def of(cls, terms: str, sums: str) -> Account:
        """Return the account that a store holds.

        Raises:
            StoreCorruptError: It is none.
        """
        own = Terms.of(terms)
        try:
            record = json.loads(sums)
            if record["rule"] != own.rule.name:
                raise StoreCorruptError("the ledger was charged by another rule than that of its terms")
            unit = record["unit"]
            return cls(own, own.rule.loaded(record["state"]), None if unit is None else unit_from_json(unit))
        except (LookupError, TypeError, ValueError, ArithmeticError) as error:
            if isinstance(error, StoreCorruptError):
                raise
            raise StoreCorruptError("the sums of the ledger are damaged") from None


def checked_cost(cost: object) -> Cost:
    """Return a cost.

    Raises:
        DataTypeError: It is none.
    """
    if not isinstance(cost, GaussianCost | PureCost | ApproxCost | ApproximateGaussianCost):
        raise DataTypeError(f"cost must be a privacy cost, got {type(cost).__name__}")
    return cost


def duplicate(request_id: str, sequence: int) -> DuplicateRequestError:
    """Return the error about a request that was charged."""
    return DuplicateRequestError(
        f"request id {request_id!r} was already charged as entry {sequence}; nothing was spent "
        "again. Answer the repeat from ledger.find(request_id), or use a new id for a new release",
        charged=True,
        request_id=request_id,
    )


def _thing(unit: Unit) -> tuple[str, bool]:
    return unit.label, isinstance(unit, ReplaceOne)


def _said(unit: Unit) -> str:
    return f"{'the cell' if isinstance(unit, ReplaceOne) else 'the presence'} of {unit.label!r}"
