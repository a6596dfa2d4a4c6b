"""Planning beside a ledger: a share of what is left, for each law of noise in the currency that it is charged in."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias, get_args

from sordino.errors import (
    BudgetExceededError,
    DataTypeError,
    InvalidParameterError,
    UnsupportedCostError,
    UnsupportedMechanismError,
)
from sordino.mechanisms.catalogue import Law
from sordino.mechanisms.fits import Fit
from sordino.privacy.costs import ApproxCost, Cost, PureCost
from sordino.privacy.guarantees import GaussianDP, Privacy, PureDP, ZeroConcentratedDP
from sordino.privacy.ledger import Ledger

__all__ = ["Chosen", "beside"]

Choose: TypeAlias = Callable[[Privacy, Law], Fit]

# Guarantees begin here.
_LEAST = 1e-12
# What is left is rounded down.
_SAME = 1e-9
# A law of noise is preferred if it is at most this much worse than the other.
_TIE = 1.01


class Chosen(NamedTuple):
    """A fit, and what its charge does to the ledger, in lines of text."""

    fit: Fit
    lines: tuple[str, ...]


def beside(ledger: Ledger, privacy: Privacy | None, share: float | None, noise: Law | None, choose: Choose) -> Chosen:
    """Return the fit of the law of noise that has the least error for its share of what a ledger has left.

    Args:
        ledger: What is left; nothing is charged.
        privacy: What is asked for; its laws are compared at the share that Gaussian noise takes.
        share: In place of a privacy: of what is left, above 0 and at most 1.
        noise: The only law that is considered.
        choose: Plans for a privacy with one law.

    Raises:
        BudgetExceededError: Nothing is left, or too little.
        InvalidParameterError: Privacy and share are given, or neither.
        UnsupportedCostError: The ledger counts no cost of such a plan.
        UnsupportedMechanismError: No mechanism serves.
    """
    if not isinstance(ledger, Ledger):
        raise DataTypeError("ledger must be a sordino.Ledger")
    if (privacy is None) == (share is None):
        raise InvalidParameterError("give privacy or share=: a share of what the ledger has left")
    laws = get_args(Law) if noise is None else (noise,)
    fits: dict[Law, Fit] = {}
    refusals: list[Exception] = []
    for law in laws:
        asked = _offer(ledger, law, share) if privacy is None else privacy
        if asked is None:
            continue
        try:
            fit = choose(asked, law)
            ledger.check(fit.cost, unit=fit.request.unit)
        except (BudgetExceededError, UnsupportedCostError, UnsupportedMechanismError) as error:
            refusals.append(error)
        else:
            fits[law] = fit
    if not fits:
        if refusals:
            raise refusals[0] from None
        raise BudgetExceededError("the ledger has nothing left for this share")
    equal = fits if privacy is None else _at_equal_share(ledger, fits, choose)
    objective = next(iter(fits.values())).request.objective
    best = min(fit.error(objective) for fit in equal.values())
    # Laplace noise first: it leaves no delta.
    law = next(law for law in ("laplace", "gaussian") if law in equal and equal[law].error(objective) <= _TIE * best)
    return Chosen(fits[law], _lines(ledger, fits[law], law, equal))


def _offer(ledger: Ledger, law: Law, share: float | None) -> Privacy | None:
    """Return the guarantee that takes this share with noise of this law, None where nothing is left for it."""
    left = ledger.remaining(1.0 if share is None else share)
    if law == "laplace":
        epsilon = left.get("pure_epsilon", 0.0)
        return PureDP(epsilon=epsilon) if epsilon >= _LEAST else None
    if left.get("rho", 0.0) >= _LEAST:
        return ZeroConcentratedDP(rho=left["rho"])
    mu = left.get("gaussian_mu", 0.0)
    return GaussianDP(mu=mu) if mu >= _LEAST else None


def _taken(before: dict[str, float], after: dict[str, float], cost: Cost) -> tuple[str, float]:
    """Return the quantity that a cost is charged in, and the share of what is left of it that it takes."""
    if "rho" in before:
        return "rho", 1.0 - after["rho"] / before["rho"]
    if isinstance(cost, PureCost | ApproxCost):
        share = cost.epsilon / before["pure_epsilon"]
        # Where it adds to epsilon exactly so much less is left.
        if abs(before["pure_epsilon"] - cost.epsilon - after["pure_epsilon"]) <= _SAME * before["pure_epsilon"]:
            return "epsilon", share
    return "mu squared", 1.0 - (after["gaussian_mu"] / before["gaussian_mu"]) ** 2


def _at_equal_share(ledger: Ledger, fits: dict[Law, Fit], choose: Choose) -> dict[Law, Fit]:
    """Return the laws at the share that the Gaussian one takes."""
    if len(fits) < len(get_args(Law)):
        return fits
    equal = dict(fits)
    cost = fits["gaussian"].cost
    _, share = _taken(ledger.remaining(), ledger.remaining(after=cost), cost)
    offer = _offer(ledger, "laplace", min(max(share, _LEAST), 1.0))
    if offer is None:
        del equal["laplace"]
    else:
        equal["laplace"] = choose(offer, "laplace")
    return equal


def _lines(ledger: Ledger, fit: Fit, law: Law, equal: dict[Law, Fit]) -> tuple[str, ...]:
    before, after = ledger.remaining(), ledger.remaining(after=fit.cost)
    quantity, share = _taken(before, after, fit.cost)
    left = [
        f"{name} {after[kind]:.4g} of {before[kind]:.4g}"
        for kind, name in (("pure_epsilon", "pure epsilon"), ("gaussian_mu", "Gaussian mu"))
        if kind in after
    ]
    lines = [f"ledger         takes {100.0 * share:.3g} % of the {quantity} that is left; leaves {' or '.join(left)}"]
    lines += [
        f"               with {name.capitalize()} noise at an equal share: {other.name}, rmse {other.rmse:.6g}"
        for name, other in equal.items()
        if name != law
    ]
    if ledger.fixes_the_split(fit.cost):
        lines.append("               charging it fixes what is left for pure and approximate costs: charge those first")
    return tuple(lines)
