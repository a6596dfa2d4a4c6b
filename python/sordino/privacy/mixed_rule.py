"""Pure, Gaussian and approximate costs under one (epsilon, delta) total.

Pure costs add to epsilon, Gaussian ones live in the rest.

**Rule.** The state is E (epsilon spent), D (delta spent), `s = sum mu²` and, from the first Gaussian cost on, the
limits `E_lim`, `D_lim` and `m_lim`. Reserves `r_E, r_D >= 0` are declared beforehand.

- *Before the first Gaussian cost* a pure cost e is accepted iff `E + e <= epsilon`, an approximate one (e, d) iff also
  `D + d <= delta`.
- *The first Gaussian cost* needs `mu <= m_lim`, the largest m with `delta_m(epsilon - E - r_E) <= delta - D - r_D`
  (`gaussian_mu`). If it is accepted the split freezes: `E_lim = E + r_E`, `D_lim = D + r_D`. A refusal freezes nothing.
- *An approximately Gaussian cost* (mu, d), published keys, is d charged to D, then mu as any Gaussian cost: the first
  one freezes the split with its d counted, later ones need `D + d <= D_lim` and `s + mu² <= m_lim²`.
- *After it* a Gaussian cost is accepted iff `s + mu² <= m_lim²`; a pure one within `E_lim`, else as a Gaussian cost of
  `mu_of_pure(e)`; an approximate one within `E_lim` and `D_lim` only.

**Theorem.** Whatever is asked in whatever order, the next cost chosen by the answers, the whole is (epsilon, delta)-DP.

*Proof.* Stop transcripts at what would be refused. (i) An (e, d) pair of distributions splits into a part of pointwise
ratio at most exp(e) and, under each hypothesis, a rest of mass at most d (Kairouz, Oh and Viswanath, arXiv:1311.0776);
along every path the d sum to at most D_lim, so the rests weigh that much. The failing parts of
approximately Gaussian costs join them, their Gaussian parts are steps of (iii). (ii) Elsewhere the privacy loss is
L_p + L_g, L_g that of what is charged to s. Pointwise L_p <= E_lim. A path that never freezes has a loss of at most
epsilon and contributes nothing. (iii) At the freeze L_g = 0, and m_lim, E_lim, D_lim depend on the past alone. With
`a = epsilon - E_lim` and `F(l, t) = E (1 - exp(a - l - N))_+`, N normal with mean t/2 and variance t: F rises in t,
and a mu-GDP step of loss x has `E F(l + x, t) <= F(l, t + mu²)`, since for each N this is a hockey-stick divergence
of the step, at most that of N(mu, 1). So `F(L_g, m_lim² - s)` is a supermartingale that starts at
`delta_{m_lim}(a) <= delta - D_lim`, for every past, and at the end
`(1 - exp(epsilon - L))_+ <= (1 - exp(a - L_g))_+ <= F`. Add (i) and (iii); exchange the hypotheses. ∎

The freeze costs nothing because before it the loss is bounded pointwise: nothing random has been won. Choosing the
split later, by what came out, is not private: tests hold two such ways against the rule, which refuses them.
"""

import math
from fractions import Fraction
from typing import Any, NamedTuple

from sordino._support.rounding import float_down, float_up, sqrt_down
from sordino.errors import BudgetExceededError, InvalidParameterError
from sordino.privacy.calibration import gaussian_mu, mu_of_pure, pure_of_mu
from sordino.privacy.composition import excess, payable
from sordino.privacy.costs import ApproxCost, ApproximateGaussianCost, Cost, GaussianCost, PureCost
from sordino.privacy.guarantees import ApproxDP

__all__ = ["MixedRule", "MixedState"]

# Less epsilon than this is left to no Gaussian cost.
_LEAST_GAP = Fraction(1e-12)
_LEAST_MU = 1e-300
_ALL = Fraction(1)


class _Frozen(NamedTuple):
    """The split of the total, from the first Gaussian cost on."""

    epsilon: Fraction
    delta: Fraction
    mu: float

    def lesser(self, stored: object) -> "_Frozen":
        """Return the lesser of every limit, of this split and of one that was stored.

        Raises:
            InvalidParameterError: What was stored is no split.
        """
        try:
            limits = _Frozen(*stored)  # type: ignore[misc]
            least = _Frozen(
                min(self.epsilon, Fraction(limits.epsilon)),
                min(self.delta, Fraction(limits.delta)),
                min(self.mu, float(limits.mu)),
            )
        except (TypeError, ValueError, OverflowError):
            least = _Frozen(self.epsilon, self.delta, math.nan)
        if not (least.epsilon >= 0 and least.delta >= 0 and least.mu >= 0.0):
            raise InvalidParameterError("the storage of a ledger holds a split that is none")
        return least


class MixedState(NamedTuple):
    """What is spent, and the split once it is frozen."""

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    mu_squared: Fraction = Fraction(0)
    frozen: _Frozen | None = None


class MixedRule:
    """The rule of this module for one total.

    Args:
        total: The guarantee for everything together.
        reserve_epsilon: Epsilon that stays for pure and approximate costs after the first Gaussian one.
        reserve_delta: Delta that stays for approximate costs after it.

    Raises:
        InvalidParameterError: A reserve is negative, or not below the total.
    """

    name = "mixed"

    def __init__(self, total: ApproxDP, reserve_epsilon: float = 0.0, reserve_delta: float = 0.0) -> None:
        self._epsilon, self._delta = Fraction(total.epsilon), Fraction(total.delta)
        self._reserve_epsilon, self._reserve_delta = Fraction(reserve_epsilon), Fraction(reserve_delta)
        if not (0 <= self._reserve_epsilon < self._epsilon and 0 <= self._reserve_delta < self._delta):
            raise InvalidParameterError("reserve_epsilon and reserve_delta must be at least 0 and below the total's")

    def start(self) -> MixedState:
        """Return the state in which nothing is spent."""
        return MixedState()

    def after(self, state: MixedState, cost: Cost, stored: object = None) -> MixedState:
        """Return the state after `cost`.

        Args:
            state: What was spent before.
            cost: What would be spent.
            stored: The split that was stored when this cost froze it; the lesser limits count.

        Raises:
            BudgetExceededError: The total would be exceeded.
            InvalidParameterError: What was stored is no split.
        """
        match cost:
            case GaussianCost():
                return self._with_gaussian(state, cost, cost.mu_squared, stored)
            case ApproximateGaussianCost(delta=delta):
                failing = self._within(state, state._replace(delta=state.delta + Fraction(delta)), cost)
                return self._with_gaussian(failing, cost, cost.mu_squared, stored)
            case PureCost(epsilon=epsilon):
                whole = state._replace(epsilon=state.epsilon + Fraction(epsilon))
                if state.frozen is None or whole.epsilon <= state.frozen.epsilon:
                    return self._within(state, whole, cost)
                return self._with_gaussian(state, cost, Fraction(mu_of_pure(epsilon)) ** 2, None)
            case ApproxCost(epsilon=epsilon, delta=delta):
                spent = state._replace(epsilon=state.epsilon + Fraction(epsilon), delta=state.delta + Fraction(delta))
                return self._within(state, spent, cost)

    def _limits(self, state: MixedState) -> tuple[Fraction, Fraction]:
        """Return the limits of epsilon and delta."""
        return (self._epsilon, self._delta) if state.frozen is None else state.frozen[:2]

    def _within(self, state: MixedState, spent: MixedState, cost: Cost) -> MixedState:
        epsilon, delta = self._limits(state)
        over = [
            excess(name, amount, limit)
            for name, amount, limit in (("epsilon", spent.epsilon, epsilon), ("delta", spent.delta, delta))
            if amount > limit
        ]
        if over:
            raise BudgetExceededError(self._refusal(state, cost, "; ".join(over), state.frozen))
        return spent

    def _with_gaussian(self, state: MixedState, cost: Cost, mu_squared: Fraction, stored: object) -> MixedState:
        frozen = state.frozen or self._split(state)
        if stored is not None and state.frozen is None:
            frozen = frozen.lesser(stored)
        spent = state._replace(mu_squared=state.mu_squared + mu_squared, frozen=frozen)
        limit = Fraction(frozen.mu) ** 2
        if spent.mu_squared > limit:
            over = excess("the sum of mu²", spent.mu_squared, limit)
            raise BudgetExceededError(self._refusal(state, cost, over, frozen))
        return spent

    def _split(self, state: MixedState) -> _Frozen:
        """Return the split that a Gaussian cost would freeze now."""
        epsilon, delta = state.epsilon + self._reserve_epsilon, state.delta + self._reserve_delta
        gap, failure = self._epsilon - epsilon, payable(float_down(self._delta - delta))
        if gap < _LEAST_GAP or failure <= 0.0:
            return _Frozen(epsilon, delta, 0.0)
        return _Frozen(epsilon, delta, gaussian_mu(ApproxDP(epsilon=float_down(gap), delta=failure)))

    def _refusal(self, state: MixedState, cost: Cost, over: str, frozen: _Frozen | None) -> str:
        left = self.left(state._replace(frozen=frozen))
        why = (
            "; for pure and approximate costs so much was left when the first Gaussian one was charged "
            "(reserve_epsilon, reserve_delta)"
            if state.frozen is not None and not isinstance(cost, GaussianCost)
            else ""
        )
        return (
            f"the ledger refuses {cost}: {over}{why}. Left are a pure epsilon of {left['pure_epsilon']:.6g} or a "
            f"Gaussian mu of {left['gaussian_mu']:.6g}. Nothing was spent"
        )

    def spent(self, state: MixedState) -> dict[str, dict[str, float]]:
        """Return what is spent, rounded up, and the limits that hold now, rounded down."""
        epsilon, delta = self._limits(state)
        limit = Fraction((state.frozen or self._split(state)).mu) ** 2
        amounts = (
            ("epsilon", state.epsilon, epsilon),
            ("delta", state.delta, delta),
            ("mu_squared", state.mu_squared, limit),
        )
        said = {name: float_up(amount) for name, amount, _ in amounts}
        return {self.name: said | {f"{name}_limit": float_down(most) for name, _, most in amounts}}

    def left(self, state: MixedState, share: Fraction = _ALL) -> dict[str, float]:
        """Return the largest single costs that would be accepted, or that take a share; the kinds exclude each other.

        Gaussian costs share mu², pure ones epsilon, and after the split the larger of both.
        """
        epsilon, delta = self._limits(state)
        frozen = state.frozen or self._split(state)
        mu = payable(sqrt_down(share * max(Fraction(0), Fraction(frozen.mu) ** 2 - state.mu_squared)))
        pure = payable(float_down(share * (epsilon - state.epsilon)))
        if state.frozen is not None and mu > _LEAST_MU:
            pure = max(pure, pure_of_mu(mu))
        return {"pure_epsilon": pure, "gaussian_mu": mu, "delta": float_down(share * (delta - state.delta))}

    def fixes(self, state: MixedState, cost: Cost) -> bool:
        """Return whether this would be the first Gaussian cost."""
        return state.frozen is None and isinstance(cost, GaussianCost | ApproximateGaussianCost)

    def stored(self, state: MixedState) -> tuple[Fraction, Fraction, float] | None:
        """Return the frozen split."""
        return state.frozen

    def dumped(self, state: MixedState) -> Any:
        """Return the state as text."""
        sums = [str(amount) for amount in state[:3]]
        frozen = state.frozen
        return [*sums, None if frozen is None else [str(frozen.epsilon), str(frozen.delta), frozen.mu.hex()]]

    def loaded(self, record: Any) -> MixedState:
        """Return the state of a record."""
        epsilon, delta, mu_squared, frozen = record
        split = None
        if frozen is not None:
            split = _Frozen(Fraction(frozen[0]), Fraction(frozen[1]), float.fromhex(frozen[2]))
        return MixedState(Fraction(epsilon), Fraction(delta), Fraction(mu_squared), split)
