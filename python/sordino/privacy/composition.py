"""The rules of the privacy filter: which sums of costs stay within a total, in exact rational arithmetic.

A rule turns each cost into exact numbers, adds them up, and compares the sums with limits. Sums and limits
are `fractions.Fraction`, so "fits exactly" means just that: two releases with epsilon 1.0 fill a total of
2.0. Floats are taken at their exact binary value: 0.1 is a little more than a tenth, and ten of them are a
little more than 1.0.

Each rule bounds *adaptively* chosen costs: the next cost may depend on earlier answers, so the sums are
those of one path of the interaction, and the theorem cited is one about privacy filters.
"""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar, Protocol

from sordino._support.rounding import decimal_up
from sordino.errors import InvalidParameterError
from sordino.privacy.calibration import gaussian_mu, mu_of_pure
from sordino.privacy.costs import ApproxCost, Cost, GaussianCost, PureCost
from sordino.privacy.guarantees import ApproxDP
from sordino.privacy.schedule import checked_costs, schedule_delta

__all__ = ["BasicRule", "ConcentratedRule", "GaussianRule", "PureRule", "Rule", "ScheduleRule", "adaptive_rules"]


class Rule(Protocol):
    """One set of quantities that add up, with their limits."""

    name: ClassVar[str]
    limits: dict[str, Fraction]

    def amounts(self, cost: Cost) -> dict[str, Fraction] | None:
        """Return what `cost` adds to every quantity, or None if the rule cannot count this kind of cost."""
        ...


class PureRule:
    """Sum of epsilon over pure costs; the release is (sum)-DP along every path.

    Source: Rogers, Roth, Ullman and Vadhan, "Privacy odometers and filters" (arXiv:1605.08294).
    """

    name: ClassVar[str] = "pure"

    def __init__(self, epsilon: float) -> None:
        self.limits = {"epsilon": Fraction(epsilon)}

    def amounts(self, cost: Cost) -> dict[str, Fraction] | None:
        """Return epsilon of a pure cost; None for any other."""
        return {"epsilon": Fraction(cost.epsilon)} if isinstance(cost, PureCost) else None


class ConcentratedRule:
    """Sum of rho: mu**2/2 for a Gaussian cost, epsilon**2/2 for a pure one.

    Source: Whitehouse, Ramdas, Rogers and Wu, "Fully-adaptive composition in differential privacy"
    (arXiv:2203.05481), zCDP filters; Bun and Steinke, Proposition 1.4 (arXiv:1605.02065).
    """

    name: ClassVar[str] = "zero_concentrated"

    def __init__(self, rho: float) -> None:
        self.limits = {"rho": Fraction(rho)}

    def amounts(self, cost: Cost) -> dict[str, Fraction] | None:
        """Return rho of a Gaussian or pure cost; None for any other."""
        match cost:
            case GaussianCost():
                return {"rho": cost.mu_squared / 2}
            case PureCost(epsilon=epsilon):
                return {"rho": Fraction(epsilon) ** 2 / 2}
            case ApproxCost():
                return None


class GaussianRule:
    """Sum of mu**2: of a Gaussian cost its own, of a pure cost that of the least GDP that it implies.

    Source: Smith and Thakurta, "Fully adaptive composition for Gaussian differential privacy"
    (arXiv:2210.17520); `sordino.privacy.calibration.mu_of_pure`.
    """

    name: ClassVar[str] = "gaussian"

    def __init__(self, mu: float) -> None:
        self.limits = {"mu_squared": Fraction(mu) ** 2}

    def amounts(self, cost: Cost) -> dict[str, Fraction] | None:
        """Return mu**2 of a Gaussian or pure cost; None for any other."""
        match cost:
            case GaussianCost():
                return {"mu_squared": cost.mu_squared}
            case PureCost(epsilon=epsilon):
                return {"mu_squared": Fraction(mu_of_pure(epsilon)) ** 2}
            case ApproxCost():
                return None


class BasicRule:
    """Sums of epsilon and of delta over pure and approximate costs.

    Source: Rogers, Roth, Ullman and Vadhan (arXiv:1605.08294): basic composition is a valid filter. By
    induction over the rounds: an (e, d)-DP round has P <= exp(e) Q + d, and what follows it obeys the bound
    for the rest.
    """

    name: ClassVar[str] = "basic"

    def __init__(self, total: ApproxDP) -> None:
        self.limits = {"epsilon": Fraction(total.epsilon), "delta": Fraction(total.delta)}

    def amounts(self, cost: Cost) -> dict[str, Fraction] | None:
        """Return epsilon and delta of a pure or approximate cost; None for a Gaussian one."""
        match cost:
            case PureCost(epsilon=epsilon):
                return {"epsilon": Fraction(epsilon)}
            case ApproxCost(epsilon=epsilon, delta=delta):
                return {"epsilon": Fraction(epsilon), "delta": Fraction(delta)}
            case GaussianCost():
                return None


class ScheduleRule:
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

    def amounts(self, cost: Cost) -> dict[str, Fraction] | None:
        """Return one of its kind for a scheduled cost; None for any other."""
        return {str(cost): Fraction(1)} if str(cost) in self.limits else None


def adaptive_rules(total: ApproxDP) -> tuple[Rule, ...]:
    """Return the two rules one of which must hold under an `ApproxDP` total; `Ledger` says why."""
    return PureRule(total.epsilon), GaussianRule(gaussian_mu(total))
