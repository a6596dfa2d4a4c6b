"""Attack the ledger's rule for pure and Gaussian costs under one (epsilon, delta): choose by what came out.

Adversaries ask a ledger what it takes. They begin with bits (randomised response) and with a share of the Gaussian mu
that is left, see the privacy loss, and then take, of all that the ledger still accepts, what is worst at that loss: the
Gaussian rest, a bit, the reserve, two of them in either order. What the whole needs is
`delta = E (1 - exp(epsilon - L))_+`. Losses of the beginning are drawn, far out and weighted; the end is averaged
exactly, given them. The worst of the adversaries is chosen on draws of its own; the lower confidence bound on its delta
(1 - 1e-4, normal) must not exceed the total's. The rule gives next to nothing away, so the ratio is near 1.

It must bite: planted are rules with 1.2 times the mu, with 0.2 epsilon more for pure costs after the split, and the two
that look right and are not: any pair of epsilon and mu that fits, whichever is chosen on the way, and a filter that is
content while *some* Rényi order is within its budget. The exit code is 1 if anything fails.

Run `python benches/audit_ledger.py`.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
from harness import Row, audited, in_process, main, quick, reported
from numpy.typing import NDArray
from scipy.stats import norm

import sordino as so
from sordino.errors import BudgetExceededError
from sordino.privacy import ApproxCost, GaussianCost, PureCost
from sordino.privacy.books import MemoryBook
from sordino.privacy.calibration import delta_of_mu, mu_of_pure
from sordino.privacy.costs import Cost
from sordino.privacy.mixed_rule import MixedRule, MixedState
from sordino.privacy.terms import checked_terms

Array = NDArray[np.float64]
Make = Callable[[], so.Ledger]
Event = tuple[tuple[float, float], ...]
"""Chances and losses of the outcomes."""

_CONFIDENCE = 1e-4
_DRAWS = 50_000 if quick() else 500_000
_TRAINING = _DRAWS // 10
_TOTALS = ((1.0, 1e-6), (3.0, 0.05)) if quick() else ((0.5, 1e-3), (1.0, 1e-6), (3.0, 1e-6), (3.0, 0.05), (10.0, 1e-6))
_RESERVES = (0.0, 0.25)
# Gaussian answers are drawn with this standard deviation and weighted.
_WIDE = 3.0
# Bits before, the share of epsilon that they take, and the share of the rest of mu that comes before the choice.
_ADVERSARIES = tuple(product(((0, 0.0), (1, 0.3), (1, 0.6), (3, 0.6)), (0.05, 0.2, 0.5, 0.8)))
_ENDINGS = ((), ("gaussian_mu",), ("pure_epsilon",), ("pure_epsilon", "gaussian_mu"), ("gaussian_mu", "pure_epsilon"))
# Two orders with their budgets for (3, 1e-4), and events that fit one of them each after the first.
_ORDERS = ((5.0, 1.32292), (50.0, 2.91207))
_FIRST, _RARE = 0.2, 0.01
_SECOND = ((2.820203, 0.497503), (3.224973, 4.913744e-4))


class _TooMuchMu(MixedRule):
    """The split leaves 1.2 times the mu."""

    def _split(self, state: MixedState):  # type: ignore[no-untyped-def]
        frozen = super()._split(state)
        return frozen._replace(mu=1.2 * frozen.mu)


class _TooMuchEpsilon(MixedRule):
    """After the split 0.2 epsilon more are left to pure costs."""

    def _split(self, state: MixedState):  # type: ignore[no-untyped-def]
        frozen = super()._split(state)
        return frozen._replace(epsilon=frozen.epsilon + self._epsilon / 5)


class _ChosenLater(MixedRule):
    """Whatever fits by itself, the split never fixed."""

    def after(self, state: MixedState, cost: Cost, stored: object = None) -> MixedState:
        match cost:
            case GaussianCost():
                spent = state._replace(mu_squared=state.mu_squared + cost.mu_squared)
            case PureCost(epsilon=epsilon):
                spent = state._replace(epsilon=state.epsilon + Fraction(epsilon))
            case _:
                return super().after(state, cost, stored)
        if not self._fits(float(spent.epsilon), math.sqrt(spent.mu_squared), 1e-9):
            raise BudgetExceededError("more than fits")
        return spent

    def left(self, state: MixedState, share: Fraction = Fraction(1)) -> dict[str, float]:
        epsilon, mu = float(state.epsilon), math.sqrt(state.mu_squared)
        whole = float(self._epsilon)
        pure = _largest(lambda more: self._fits(epsilon + more, mu), whole - epsilon)
        gaussian = _largest(lambda more: self._fits(epsilon, math.hypot(mu, more)), 100.0)
        return {"pure_epsilon": pure, "gaussian_mu": gaussian, "delta": 0.0}

    def _fits(self, epsilon: float, mu: float, slack: float = 0.0) -> bool:
        gap = float(self._epsilon) - epsilon
        if mu == 0.0 or gap < 0.0:
            return gap >= -slack
        return delta_of_mu(mu, gap) <= float(self._delta) * (1.0 + slack)


def _largest(fits: Callable[[float], bool], high: float) -> float:
    low = 0.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low * (1.0 - 1e-9)


def _ledger(total: so.ApproxDP, reserve: float, rule: type[MixedRule] | None = None) -> so.Ledger:
    """Return a ledger, with a planted rule if there is one."""
    if rule is None:
        return so.Ledger(total, composition="adaptive", reserve_epsilon=reserve * total.epsilon)
    terms = checked_terms(total, "adaptive", None, "epsilon", (reserve * total.epsilon, 0.0), None)
    vars(terms)["rule"] = rule(total, reserve * total.epsilon)
    return so.Ledger._made(MemoryBook(terms), None)


def _ask(ledger: so.Ledger, kind: str, share: float = 1.0) -> float:
    """Charge a share of the largest cost of this kind that is accepted, and return its size."""
    size = share * ledger.remaining().get(kind, 0.0)
    if size > 0.0:
        ledger.charge(GaussianCost(mu=size) if kind == "gaussian_mu" else PureCost(size))
    return size


def _bit(epsilon: float) -> Event:
    p = 1.0 / (1.0 + math.exp(-epsilon))
    return (p, epsilon), (1.0 - p, -epsilon)


def _stop(gap: Array) -> Array:
    """Return what is above epsilon when nothing more is asked, so much below it."""
    found: Array = -np.expm1(np.minimum(gap, 0.0))
    return found


def _gaussian(gap: Array, mu: float) -> Array:
    """Return the mean of `_stop` after a Gaussian answer."""
    found: Array = norm.cdf(mu / 2.0 - gap / mu) - np.exp(gap) * norm.cdf(-mu / 2.0 - gap / mu)
    return found


def _end(gap: Array, events: Sequence[Event], mu: float) -> Array:
    if not events:
        return _gaussian(gap, mu) if mu > 0.0 else _stop(gap)
    first, *rest = events
    found: Array = np.sum([chance * _end(gap - loss, rest, mu) for chance, loss in first], axis=0)
    return found


def _worst_end(make: Make, before: Sequence[Cost], gap: Array) -> Array:
    """Return the mean of the worst ending that the ledger takes, at every loss."""
    found: Array = _stop(gap)
    for kinds in _ENDINGS:
        ledger = make()
        for cost in before:
            ledger.charge(cost)
        sizes = {kind: _ask(ledger, kind) for kind in kinds}
        bits = [_bit(size)] if (size := sizes.get("pure_epsilon", 0.0)) > 0.0 else []
        found = np.maximum(found, _end(gap, bits, sizes.get("gaussian_mu", 0.0)))
    return found


def _drawn(event: Event, rng: np.random.Generator, count: int) -> tuple[Array, Array]:
    """Return losses and weights, every outcome drawn as often."""
    chances, losses = np.array(event).T
    outcomes = rng.integers(len(event), size=count)
    return losses[outcomes], chances[outcomes] * len(event)


def _play(make: Make, adversary: tuple[tuple[int, float], float], rng: np.random.Generator, count: int) -> Array:
    """Return weighted samples whose mean is the adversary's delta."""
    (bits, part), share = adversary
    ledger = make()
    epsilon = ledger.total.epsilon  # type: ignore[union-attr]
    loss, weight = np.zeros(count), np.ones(count)
    for _ in range(bits):
        size = part * epsilon / bits
        ledger.charge(PureCost(size))
        more, times = _drawn(_bit(size), rng, count)
        loss, weight = loss + more, weight * times
    if (mu := _ask(ledger, "gaussian_mu", share)) > 0.0:
        z = rng.normal(0.0, _WIDE, count)
        loss, weight = loss + mu * z + 0.5 * mu**2, weight * _WIDE * np.exp(0.5 * z * z * (_WIDE**-2 - 1.0))
    found: Array = weight * _worst_end(make, [entry.cost for entry in ledger.history], epsilon - loss)
    return found


def _bound(samples: Array) -> float:
    return float(samples.mean() + norm.ppf(_CONFIDENCE) * samples.std() / math.sqrt(len(samples)))


def _worst(make: Make) -> Array:
    """Return samples of the adversary that is worst on draws of its own."""
    rng = np.random.default_rng()
    best = max(_ADVERSARIES, key=lambda adversary: _bound(_play(make, adversary, rng, _TRAINING)))
    return _play(make, best, rng, _DRAWS)


def _row(what: str, delta: float, samples: Array, planted: dict[str, Array]) -> Row:
    found = _bound(samples) / delta
    faults = {name: _bound(each) / delta for name, each in planted.items()}
    said = "; ".join(f"{name}: ≥ {value:.3f} δ" for name, value in faults.items())
    goal = "at most δ; planted rules are caught" if faults else "at most δ"
    ratio = float(samples.mean()) / delta
    return Row(what, f"≥ {found:.4f} δ", said, ratio, goal, found <= 1.0 and all(v > 1.0 for v in faults.values()))


def _split(epsilon: float, delta: float, reserve: float) -> Row:
    total = so.ApproxDP(epsilon=epsilon, delta=delta)
    rules: dict[str, type[MixedRule]] = {"1.2 times the mu": _TooMuchMu, "0.2 ε more": _TooMuchEpsilon}
    if reserve == 0.0:
        rules["split chosen later"] = _ChosenLater
    planted = {name: _worst(partial(_ledger, total, reserve, rule)) for name, rule in rules.items()}
    kept = f", reserve {reserve:g} ε" if reserve else ""
    what = f"Ledger(({epsilon:g}, {delta:g})){kept}, δ that the whole needs"
    return _row(what, delta, _worst(partial(_ledger, total, reserve)), planted)


# A Rényi order picked on the way.


def _chance(loss: float, hit: float) -> Event:
    """Return two outcomes, one of which has this loss."""
    return (hit, loss), (1.0 - hit, math.log((1.0 - hit) / (1.0 - hit * math.exp(-loss))))


def _renyi(event: Event, order: float) -> float:
    """Return the Rényi divergence, the larger of both directions."""
    there = math.log(sum(chance * math.exp((order - 1.0) * loss) for chance, loss in event))
    back = math.log(sum(chance * math.exp(-order * loss) for chance, loss in event))
    return max(there, back) / (order - 1.0)


def _some_order_takes(events: Sequence[Event]) -> bool:
    return any(sum(_renyi(event, order) for event in events) <= most * (1.0 + 1e-5) for order, most in _ORDERS)


def _ledger_takes(ledger: so.Ledger, event: Event) -> bool:
    """Return whether a ledger takes an event as a pure, a Gaussian or an approximate cost."""
    worst = max(abs(loss) for _, loss in event)
    left = max(ledger.remaining()["pure_epsilon"], 1e-9)
    failure = sum(chance * max(0.0, -math.expm1(left - loss)) for chance, loss in event)
    for cost in (PureCost(worst), GaussianCost(mu=mu_of_pure(worst)), ApproxCost(left, max(failure, 1e-300))):
        try:
            ledger.check(cost)
        except BudgetExceededError:
            continue
        return True
    return False


def _orders() -> Row:
    total = so.ApproxDP(epsilon=3.0, delta=1e-4)
    first = _chance(_FIRST, _RARE)
    seconds = [_chance(*second) for second in _SECOND]
    rng = np.random.default_rng()
    losses, weights = _drawn(first, rng, _DRAWS)

    def samples(takes: Callable[[Event], bool]) -> Array:
        found = np.empty(_DRAWS)
        for (_, loss), second in zip(first, seconds, strict=True):
            on = losses == loss
            gap = total.epsilon - losses[on]
            found[on] = _worst_end(lambda: _ledger(total, 0.0), [PureCost(_FIRST)], gap)
            if takes(second):
                found[on] = np.maximum(found[on], _end(gap, [second], 0.0))
        return weights * found

    ledger = _ledger(total, 0.0)
    ledger.charge(PureCost(_FIRST))
    # What fits an order, whichever it is, the ledger must not take.
    planted = {"some Rényi order": samples(lambda event: _some_order_takes([first, event]))}
    what = "Ledger((3, 0.0001)), an event for order 5 or one for order 50 by what came out"
    return _row(what, total.delta, samples(lambda event: _ledger_takes(ledger, event)), planted)


def attacks() -> list[Row]:
    """Return all rows."""
    splits = [partial(_split, *total, reserve) for total in _TOTALS for reserve in _RESERVES]
    return [reported(attack()) for attack in (*splits, _orders)]


if __name__ == "__main__":
    main({"all": attacks}, audited(partial(in_process, __file__, "all", threads=1)))
