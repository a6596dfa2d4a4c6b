"""What a release spent, as frozen records that an accountant can read without knowing the code.

Compatibility law: a kind of cost is never removed and never changes its meaning, and neither does a field. A
new mechanism that these kinds cannot describe gets a new kind; a new field must be optional. A record written
by any version of sordino therefore means the same in every later one.

- `GaussianCost`: the release is mu-GDP: Gaussian noise on values whose L2 sensitivity is mu standard deviations.
- `PureCost`: the release is epsilon-DP: Laplace or norm noise in any number of dimensions.
- `ApproximateGaussianCost`: outside of a probability of delta the release is mu-GDP.
- `ApproxCost`: the release is (epsilon, delta)-DP, nothing more is promised: it adds by basic composition only.
"""

import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn, TypeAlias

from sordino._support.checks import build_record, open_unit, positive, read_record
from sordino._support.rounding import reciprocal_down, sqrt_up
from sordino.errors import InvalidParameterError, MissingDependencyError, UnsupportedCostError

__all__ = ["ApproxCost", "ApproximateGaussianCost", "Cost", "GaussianCost", "PureCost", "cost_from_json"]


def _dp_accounting() -> Any:
    """Import Google's `dp_accounting`, which ships no type information."""
    try:
        return importlib.import_module("dp_accounting")
    except ImportError:
        raise MissingDependencyError(
            "this conversion needs the package dp-accounting: pip install 'sordino[accounting]'"
        ) from None


@dataclass(frozen=True, kw_only=True)
class GaussianCost:
    """A mu-GDP release, such as Gaussian noise calibrated to an L2 sensitivity. Exactly one field is given.

    Attributes:
        mu: The GDP parameter: L2 sensitivity over the standard deviation of the noise.
        rho: mu**2/2, given in place of mu when zCDP was asked for, so that sums of rho are exact.

    Raises:
        InvalidParameterError: Both fields or none are given, or the given one is not positive and finite.
        DataTypeError: The given field is not a real number.

    Source: Dong, Roth and Su, Theorem 2.7 (arXiv:1905.02383); Bun and Steinke, Proposition 1.6
    (arXiv:1605.02065).
    """

    mu: float | None = None
    rho: float | None = None

    def __post_init__(self) -> None:
        if (self.mu is None) == (self.rho is None):
            raise InvalidParameterError("a Gaussian cost takes exactly one of mu and rho")
        if self.mu is not None:
            object.__setattr__(self, "mu", positive("mu", self.mu))
        else:
            object.__setattr__(self, "rho", positive("rho", self.rho))

    @property
    def mu_squared(self) -> Fraction:
        """The exact mu**2 = 2 rho: what adds up under composition."""
        if self.mu is not None:
            return Fraction(self.mu) ** 2
        return 2 * Fraction(positive("rho", self.rho))

    @property
    def noise_multiplier(self) -> float:
        """Standard deviation over L2 sensitivity, 1/mu, rounded down: no reader sees too much noise."""
        if self.mu is not None:
            return reciprocal_down(self.mu)
        return reciprocal_down(sqrt_up(self.mu_squared))

    def to_dp_event(self) -> Any:
        """Return the event for Google's `dp_accounting`: a Gaussian with this noise multiplier.

        Raises:
            MissingDependencyError: The package dp-accounting is not installed.
        """
        return _dp_accounting().GaussianDpEvent(noise_multiplier=self.noise_multiplier)

    def to_json(self) -> dict[str, object]:
        """Return the cost as a JSON object; floats survive exactly."""
        if self.mu is not None:
            return {"kind": "gaussian", "mu": self.mu}
        return {"kind": "gaussian_rho", "rho": self.rho}


@dataclass(frozen=True)
class PureCost:
    """An epsilon-DP release of any kind and dimension.

    Attributes:
        epsilon: Bound on the privacy loss, in nats.

    Raises:
        InvalidParameterError: `epsilon` is not positive and finite.
        DataTypeError: `epsilon` is not a real number.
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))

    def to_dp_event(self) -> Any:
        """Return the event for Google's `dp_accounting`: randomized response on one bit.

        Every epsilon-DP pair of output distributions is a post-processing of randomized response that tells
        the truth with probability exp(epsilon)/(1 + exp(epsilon)), so this stands for any epsilon-DP release.
        The package counts randomized response under its neighbouring relation REPLACE_ONE only; give that
        relation to the accountant, whatever the unit of protection is here. The probability is rounded to the
        side of more privacy loss; above an epsilon of about 744 nothing is left of the noise and the package
        says infinity.

        Raises:
            MissingDependencyError: The package dp-accounting is not installed.

        Source: Kairouz, Oh and Viswanath, "The composition theorem for differential privacy"
        (arXiv:1311.0776).
        """
        flipped = math.exp(-self.epsilon)
        noise = 2.0 * flipped / (1.0 + flipped) * (1.0 - 2.0**-49)
        return _dp_accounting().RandomizedResponseDpEvent(noise_parameter=noise, num_buckets=2)

    def to_json(self) -> dict[str, object]:
        """Return the cost as a JSON object; floats survive exactly."""
        return {"kind": "pure", "epsilon": self.epsilon}


@dataclass(frozen=True)
class ApproxCost:
    """An (epsilon, delta)-DP release whose privacy curve is not otherwise described.

    Attributes:
        epsilon: Bound on the privacy loss, in nats.
        delta: Strictly between 0 and 1.

    Raises:
        InvalidParameterError: A field is out of range.
        DataTypeError: A field is not a real number.
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        object.__setattr__(self, "delta", open_unit("delta", self.delta))

    def to_dp_event(self) -> NoReturn:
        """Refuse: `dp_accounting` has no event for a release known by one pair (epsilon, delta) only.

        Raises:
            UnsupportedCostError: Always.
        """
        raise UnsupportedCostError("dp_accounting has no event for a release known by (epsilon, delta) only")

    def to_json(self) -> dict[str, object]:
        """Return the cost as a JSON object; floats survive exactly."""
        return {"kind": "approximate", "epsilon": self.epsilon, "delta": self.delta}


@dataclass(frozen=True)
class ApproximateGaussianCost:
    """A release that is delta-approximately mu-GDP: published keys with Gaussian noise and a threshold.

    Both of its distributions are `(1 - delta)` times one of a mu-GDP pair, plus `delta` times anything. Together with
    others, of which the squares of mu add up to `m**2` and the deltas to `d`, it satisfies
    `delta(epsilon) = d + (1 - d) delta_m(epsilon)`.

    Attributes:
        mu: The GDP parameter.
        delta: Strictly between 0 and 1.

    Raises:
        InvalidParameterError: A field is out of range.
        DataTypeError: A field is not a real number.
    """

    mu: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", positive("mu", self.mu))
        object.__setattr__(self, "delta", open_unit("delta", self.delta))

    @property
    def mu_squared(self) -> Fraction:
        """The exact mu**2."""
        return Fraction(self.mu) ** 2

    def to_dp_event(self) -> NoReturn:
        """Refuse: `dp_accounting` has no event for a release that is Gaussian but for a probability of delta.

        Raises:
            UnsupportedCostError: Always.
        """
        raise UnsupportedCostError("dp_accounting has no event for a release that is approximately Gaussian")

    def to_json(self) -> dict[str, object]:
        """Return the cost as a JSON object; floats survive exactly."""
        return {"kind": "approximate_gaussian", "mu": self.mu, "delta": self.delta}


Cost: TypeAlias = GaussianCost | PureCost | ApproxCost | ApproximateGaussianCost

_FIELDS = {
    "gaussian": frozenset({"mu"}),
    "gaussian_rho": frozenset({"rho"}),
    "pure": frozenset({"epsilon"}),
    "approximate": frozenset({"epsilon", "delta"}),
    "approximate_gaussian": frozenset({"mu", "delta"}),
}
_TYPES: dict[str, Callable[..., Cost]] = {
    "gaussian": GaussianCost,
    "gaussian_rho": GaussianCost,
    "pure": PureCost,
    "approximate": ApproxCost,
    "approximate_gaussian": ApproximateGaussianCost,
}


def cost_from_json(data: object) -> Cost:
    """Read back what `to_json` of an cost returned.

    Args:
        data: A JSON object with "kind" and exactly the fields of that kind.

    Returns:
        An equal cost.

    Raises:
        PlanFileError: The object is malformed or a field is out of range.
    """
    kind, fields = read_record("cost", data, _FIELDS)
    return build_record("cost", _TYPES[kind], fields)
