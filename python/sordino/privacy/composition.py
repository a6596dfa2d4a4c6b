"""The rules of the privacy filter: which costs stay within a total together, in exact rational arithmetic.

A rule is a state machine: it takes a state and a cost to the next state, or refuses. States hold `fractions.Fraction`,
so "fits exactly" means just that: two releases with epsilon 1.0 fill a total of 2.0. Floats are taken at their exact
binary value: 0.1 is a little more than a tenth, and ten of them are a little more than 1.0.

Each rule bounds *adaptively* chosen costs: the next cost may depend on earlier answers, so a state is that of one
path of the interaction, and the theorem cited is one about privacy filters. `sordino.privacy.mixed_rule` has the rule
for pure, Gaussian and approximate costs under one `ApproxDP` total.
"""

import sys
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar, Protocol, TypeVar

from sordino._support.rounding import decimal_up, float_down, float_up, sqrt_down
from sordino.errors import BudgetExceededError, InvalidParameterError, UnsupportedCostError
from sordino.privacy.calibration import gaussian_mu, mu_of_pure, pure_of_mu, pure_of_rho, rho_of_pure
from sordino.privacy.costs import ApproxCost, ApproximateGaussianCost, Cost, GaussianCost, PureCost
from sordino.privacy.guarantees import ApproxDP
from sordino.privacy.schedule import checked_costs, schedule_delta

__all__ = [
    "BasicSum",
    "ConcentratedSum",
    "GaussianSum",
    "OneOf",
    "PureSum",
    "Rule",
    "ScheduleSum",
    "Sum",
    "excess",
    "payable",
    "pure_or_gaussian",
]

_Sums = dict[str, Fraction]
_State = TypeVar("_State")
# An overdraft below this fraction of the limit is most likely a decimal that has no exact binary form.
_ROUNDING = Fraction(1, 10**12)
_LEAST = sys.float_info.min
_ALL = Fraction(1)


class Rule(Protocol[_State]):
    """What a ledger asks of the rule by which it counts."""

    def start(self) -> _State:
        """Return the state in which nothing is spent."""
        ...

    @property
    def name(self) -> str:
        """What is stored with a charge: charges by other rules are refused."""
        ...

    def after(self, state: _State, cost: Cost, stored: object = None) -> _State:
        """Return the state after `cost`; what the ledger stored with it may only lower a limit.

        Raises:
            UnsupportedCostError: The rule cannot count this kind of cost.
            BudgetExceededError: The total would be exceeded.
        """
        ...

    def spent(self, state: _State) -> dict[str, dict[str, float]]:
        """Return what is spent, rounded up, and the limits, rounded down."""
        ...

    def left(self, state: _State, share: Fraction = _ALL) -> dict[str, float]:
        """Return the largest single costs that would be accepted, or that take a share, rounded down."""
        ...

    def fixes(self, state: _State, cost: Cost) -> bool:
        """Return whether this cost would fix what is left for others."""
        ...

    def stored(self, state: _State) -> tuple[Fraction, Fraction, float] | None:
        """Return what is stored with a charge, so that nobody counts with more later."""
        ...

    def dumped(self, state: _State) -> Any:
        """Return the state as a JSON-like record, fractions as text: exact."""
        ...

    def loaded(self, record: Any) -> _State:
        """Return the state of a record.

        Raises:
            LookupError, TypeError, ValueError: It is none.
        """
        ...


def payable(amount: float) -> float:
    """Return an amount, 0 where it is less than any cost."""
    return amount if amount >= _LEAST else 0.0


def excess(name: str, spent: Fraction, limit: Fraction) -> str:
    """Say what a quantity would come to, and why where decimals alone are to blame."""
    said = f"{name} would be {float_up(spent):.17g} of {float(limit):.17g}"
    if 0 < spent - limit <= limit * _ROUNDING:
        said += (
            " (the excess is below one part in 1e12: decimals such as 0.1 are not exact in binary; "
            "ask for ledger.remaining() or a slightly smaller budget)"
        )
    return said


class Sum(Protocol):
    """One set of quantities that add up, with their limits."""

    name: ClassVar[str]
    limits: dict[str, Fraction]

    def amounts(self, cost: Cost) -> _Sums | None:
        """Return what `cost` adds to every quantity, or None if they cannot count this kind of cost."""
        ...

    def largest(self, left: _Sums) -> dict[str, float]:
        """Return the largest cost of every kind that `left` pays for, rounded down."""
        ...


class PureSum:
    """Sum of epsilon over pure costs; the release is (sum)-DP along every path.

    Source: Rogers, Roth, Ullman and Vadhan, "Privacy odometers and filters" (arXiv:1605.08294).
    """

    name: ClassVar[str] = "pure"

    def __init__(self, epsilon: float) -> None:
        self.limits = {"epsilon": Fraction(epsilon)}

    def amounts(self, cost: Cost) -> _Sums | None:
        """Return epsilon of a pure cost; None for any other."""
        return {"epsilon": Fraction(cost.epsilon)} if isinstance(cost, PureCost) else None

    def largest(self, left: _Sums) -> dict[str, float]:
        """Return the largest epsilon."""
        return {"pure_epsilon": payable(float_down(left["epsilon"]))}


class ConcentratedSum:
    """Sum of rho: mu**2/2 for a Gaussian cost, epsilon*tanh(epsilon/2) for a pure one.

    Source: Whitehouse, Ramdas, Rogers and Wu, "Fully-adaptive composition in differential privacy"
    (arXiv:2203.05481), zCDP filters; `sordino.privacy.calibration.rho_of_pure`.
    """

    name: ClassVar[str] = "zero_concentrated"

    def __init__(self, rho: float) -> None:
        self.limits = {"rho": Fraction(rho)}

    def amounts(self, cost: Cost) -> _Sums | None:
        """Return rho of a Gaussian or pure cost; None for any other."""
        match cost:
            case GaussianCost():
                return {"rho": cost.mu_squared / 2}
            case PureCost(epsilon=epsilon):
                return {"rho": rho_of_pure(epsilon)}
            case ApproxCost() | ApproximateGaussianCost():
                return None

    def largest(self, left: _Sums) -> dict[str, float]:
        """Return the largest epsilon, mu and rho."""
        rho = payable(float_down(left["rho"]))
        return {
            "pure_epsilon": payable(pure_of_rho(left["rho"])),
            "gaussian_mu": payable(sqrt_down(2 * left["rho"])),
            "rho": rho,
        }


class GaussianSum:
    """Sum of mu**2: of a Gaussian cost its own, of a pure cost that of the least GDP that it implies.

    Source: Smith and Thakurta, "Fully adaptive composition for Gaussian differential privacy"
    (arXiv:2210.17520); `sordino.privacy.calibration.mu_of_pure`.
    """

    name: ClassVar[str] = "gaussian"

    def __init__(self, mu: float) -> None:
        self.limits = {"mu_squared": Fraction(mu) ** 2}

    def amounts(self, cost: Cost) -> _Sums | None:
        """Return mu**2 of a Gaussian or pure cost; None for any other."""
        match cost:
            case GaussianCost():
                return {"mu_squared": cost.mu_squared}
            case PureCost(epsilon=epsilon):
                return {"mu_squared": Fraction(mu_of_pure(epsilon)) ** 2}
            case ApproxCost() | ApproximateGaussianCost():
                return None

    def largest(self, left: _Sums) -> dict[str, float]:
        """Return the largest mu and epsilon."""
        mu = payable(sqrt_down(left["mu_squared"]))
        # epsilon is about 0.8 mu there.
        return {"gaussian_mu": mu, "pure_epsilon": pure_of_mu(mu) if mu > 2.0 * _LEAST else 0.0}


class BasicSum:
    """Sums of epsilon and of delta over pure and approximate costs.

    Source: Rogers, Roth, Ullman and Vadhan (arXiv:1605.08294): basic composition is a valid filter. By
    induction over the rounds: an (e, d)-DP round has P <= exp(e) Q + d, and what follows it obeys the bound
    for the rest.
    """

    name: ClassVar[str] = "basic"

    def __init__(self, total: ApproxDP) -> None:
        self.limits = {"epsilon": Fraction(total.epsilon), "delta": Fraction(total.delta)}

    def amounts(self, cost: Cost) -> _Sums | None:
        """Return epsilon and delta of a pure or approximate cost; None for a Gaussian one."""
        match cost:
            case PureCost(epsilon=epsilon):
                return {"epsilon": Fraction(epsilon)}
            case ApproxCost(epsilon=epsilon, delta=delta):
                return {"epsilon": Fraction(epsilon), "delta": Fraction(delta)}
            case GaussianCost() | ApproximateGaussianCost():
                return None

    def largest(self, left: _Sums) -> dict[str, float]:
        """Return the largest epsilon, and delta beside it."""
        return {"pure_epsilon": payable(float_down(left["epsilon"])), "delta": float_down(left["delta"])}


class ScheduleSum:
    """Every cost of a declared schedule once.

    The schedule as a whole was checked when it was declared (`sordino.privacy.schedule`); each charge must be one of
    its costs that is not used up.
    """

    name: ClassVar[str] = "schedule"

    def __init__(self, total: ApproxDP, schedule: Sequence[Cost]) -> None:
        declared = checked_costs(schedule)
        needed = schedule_delta(declared, total.epsilon)
        if needed > total.delta:
            raise InvalidParameterError(
                f"the schedule needs delta = {decimal_up(needed, 3)} at epsilon = {total.epsilon}, "
                f"the total has {total.delta}"
            )
        counts = Counter(str(cost) for cost in declared)
        self.limits = {cost: Fraction(count) for cost, count in counts.items()}

    def amounts(self, cost: Cost) -> _Sums | None:
        """Return one of its kind for a scheduled cost; None for any other."""
        return {str(cost): Fraction(1)} if str(cost) in self.limits else None

    def largest(self, left: _Sums) -> dict[str, float]:
        """Return how many of each cost are left."""
        return {cost: float(count) for cost, count in left.items()}


class OneOf:
    """Sums of which one must stay within its limits at every moment; each alone is a valid filter.

    *Why pure or Gaussian is a valid filter.* Fix neighbouring data sets and a way of asking; P and Q are the
    distributions of the transcript on them, and S is a set of transcripts. Put into S1 those whose sum of epsilon is
    within its limit at their end, the rest into S2. On S1 the privacy loss is at most that sum, pointwise, hence
    P(S1) <= exp(epsilon) Q(S1), with no delta. A transcript in S2 satisfies the Gaussian sum at its end, and since sums
    only grow, so does each of its prefixes. Now change the interaction so that it stops before the first cost that
    violates it. That one is filtered by the Gaussian sum alone, so it is m-GDP, hence (epsilon, delta)-DP; and
    transcripts in S2 are never stopped, so they have the same probabilities in it: P(S2) <= exp(epsilon) Q(S2) + delta.
    Adding the two gives the claim. A third alternative with a delta of its own would add a second delta.
    """

    def __init__(self, sums: Sequence[Sum], described: str) -> None:
        self.sums = tuple(sums)
        self.name = " or ".join(sum_.name for sum_ in self.sums)
        self._described = described

    def start(self) -> tuple[_Sums | None, ...]:
        """Return zeros."""
        return tuple(dict.fromkeys(sum_.limits, Fraction(0)) for sum_ in self.sums)

    def after(self, state: tuple[_Sums | None, ...], cost: Cost, stored: object = None) -> tuple[_Sums | None, ...]:
        """Return the sums with `cost`; None for those that cannot count it."""
        added = [sum_.amounts(cost) for sum_ in self.sums]
        if all(amounts is None for amounts in added):
            raise UnsupportedCostError(f"{self._described} cannot count {cost}")
        after = tuple(
            None
            if spent is None or amounts is None
            else {name: amount + amounts.get(name, Fraction(0)) for name, amount in spent.items()}
            for spent, amounts in zip(state, added, strict=True)
        )
        over = [
            f"{sum_.name} {excess(name, spent[name], limit)}"
            for sum_, spent in zip(self.sums, after, strict=True)
            if spent is not None
            for name, limit in sum_.limits.items()
        ]
        within = (
            spent is not None and all(spent[name] <= limit for name, limit in sum_.limits.items())
            for sum_, spent in zip(self.sums, after, strict=True)
        )
        if not any(within):
            raise BudgetExceededError(f"the ledger refuses {cost}: {'; '.join(over)}. Nothing was spent")
        return after

    def spent(self, state: tuple[_Sums | None, ...]) -> dict[str, dict[str, float]]:
        """Return what is spent by every sum that can count all costs so far."""
        return {
            sum_.name: {
                said: number
                for name, limit in sum_.limits.items()
                for said, number in ((name, float_up(spent[name])), (f"{name}_limit", float_down(limit)))
            }
            for sum_, spent in zip(self.sums, state, strict=True)
            if spent is not None
        }

    def left(self, state: tuple[_Sums | None, ...], share: Fraction = _ALL) -> dict[str, float]:
        """Return the largest of what the sums would accept."""
        largest: dict[str, float] = {}
        for sum_, spent in zip(self.sums, state, strict=True):
            if spent is not None:
                left = {name: share * max(Fraction(0), limit - spent[name]) for name, limit in sum_.limits.items()}
                for kind, value in sum_.largest(left).items():
                    largest[kind] = max(value, largest.get(kind, 0.0))
        return largest

    def fixes(self, state: Any, cost: Cost) -> bool:
        """Return False: limits stay."""
        return False

    def stored(self, state: Any) -> None:
        """Return None: the limits are those of the total."""

    def dumped(self, state: tuple[_Sums | None, ...]) -> Any:
        """Return the sums as text."""
        return [None if sums is None else {name: str(amount) for name, amount in sums.items()} for sums in state]

    def loaded(self, record: Any) -> tuple[_Sums | None, ...]:
        """Return the sums of a record."""
        return tuple(
            None if sums is None else {name: Fraction(sums[name]) for name in sum_.limits}
            for sums, sum_ in zip(record, self.sums, strict=True)
        )


def pure_or_gaussian(total: ApproxDP) -> tuple[Sum, ...]:
    """Return the two sums one of which must hold under an `ApproxDP` total, where pure costs count as Gaussian ones."""
    return PureSum(total.epsilon), GaussianSum(gaussian_mu(total))
