"""The four privacy guarantees that can be asked for; every number is required, none has a default.

Notation: M is the release, X and X' any two data sets that differ in one unit, S any set of outputs.

=====================  ==============================================================================
`PureDP`               P[M(X) in S] <= exp(epsilon) P[M(X') in S]
`ApproxDP`             P[M(X) in S] <= exp(epsilon) P[M(X') in S] + delta
`ZeroConcentratedDP`   D_alpha(M(X) || M(X')) <= rho alpha for every alpha > 1
`GaussianDP`           telling X from X' is at least as hard as telling N(0, 1) from N(mu, 1)
=====================  ==============================================================================

Sources: Dwork, McSherry, Nissim and Smith (TCC 2006); Dwork, Kenthapadi, McSherry, Mironov and Naor
(Eurocrypt 2006); Bun and Steinke, Definition 1.1 (arXiv:1605.02065); Dong, Roth and Su, Section 2
(arXiv:1905.02383).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from sordino._support.checks import build_record, open_unit, positive, read_record
from sordino.errors import DataTypeError

__all__ = ["ApproxDP", "GaussianDP", "Privacy", "PureDP", "ZeroConcentratedDP", "privacy_from_json", "privacy_of"]

_LEAST = 1e-12
_MOST = 1e6


def _parameter(name: str, value: object) -> float:
    return positive(name, value, least=_LEAST, most=_MOST)


@dataclass(frozen=True, kw_only=True)
class PureDP:
    """Pure differential privacy.

    Attributes:
        epsilon: Bound on the privacy loss, in nats; 1e-12 to 1e6.

    Raises:
        DataTypeError: `epsilon` is not a real number.
        InvalidParameterError: `epsilon` is out of range.
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _parameter("epsilon", self.epsilon))

    def to_json(self) -> dict[str, object]:
        """Return the guarantee as a JSON object; floats survive exactly."""
        return {"kind": "pure", "epsilon": self.epsilon}


@dataclass(frozen=True, kw_only=True)
class ApproxDP:
    """Approximate differential privacy.

    Attributes:
        epsilon: Bound on the privacy loss, in nats; 1e-12 to 1e6.
        delta: Probability scale on which the bound may fail; strictly between 0 and 1. It should be far below
            one over the number of protected units.

    Raises:
        DataTypeError: A parameter is not a real number.
        InvalidParameterError: A parameter is out of range.
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _parameter("epsilon", self.epsilon))
        object.__setattr__(self, "delta", open_unit("delta", self.delta))

    def to_json(self) -> dict[str, object]:
        """Return the guarantee as a JSON object; floats survive exactly."""
        return {"kind": "approximate", "epsilon": self.epsilon, "delta": self.delta}


@dataclass(frozen=True, kw_only=True)
class ZeroConcentratedDP:
    """Zero-concentrated differential privacy (zCDP).

    Attributes:
        rho: Bound on the Renyi divergence of order alpha divided by alpha, in nats; 1e-12 to 1e6.

    Raises:
        DataTypeError: `rho` is not a real number.
        InvalidParameterError: `rho` is out of range.
    """

    rho: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", _parameter("rho", self.rho))

    def to_json(self) -> dict[str, object]:
        """Return the guarantee as a JSON object; floats survive exactly."""
        return {"kind": "zero_concentrated", "rho": self.rho}


@dataclass(frozen=True, kw_only=True)
class GaussianDP:
    """Gaussian differential privacy (GDP).

    Attributes:
        mu: Distance of the two unit normals that are at least as easy to tell apart; 1e-12 to 1e6.

    Raises:
        DataTypeError: `mu` is not a real number.
        InvalidParameterError: `mu` is out of range.
    """

    mu: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", _parameter("mu", self.mu))

    def to_json(self) -> dict[str, object]:
        """Return the guarantee as a JSON object; floats survive exactly."""
        return {"kind": "gaussian", "mu": self.mu}


Privacy: TypeAlias = PureDP | ApproxDP | ZeroConcentratedDP | GaussianDP

_FIELDS = {
    "pure": frozenset({"epsilon"}),
    "approximate": frozenset({"epsilon", "delta"}),
    "zero_concentrated": frozenset({"rho"}),
    "gaussian": frozenset({"mu"}),
}
_TYPES: dict[str, Callable[..., Privacy]] = {
    "pure": PureDP,
    "approximate": ApproxDP,
    "zero_concentrated": ZeroConcentratedDP,
    "gaussian": GaussianDP,
}


def privacy_of(value: object) -> Privacy:
    """Return a guarantee as it is.

    Raises:
        DataTypeError: `value` is none.
    """
    if not isinstance(value, PureDP | ApproxDP | ZeroConcentratedDP | GaussianDP):
        raise DataTypeError("privacy must be PureDP, ApproxDP, ZeroConcentratedDP or GaussianDP")
    return value


def privacy_from_json(data: object) -> Privacy:
    """Read back what `to_json` of a guarantee returned.

    Args:
        data: A JSON object with "kind" and exactly the parameters of that kind.

    Returns:
        An equal guarantee.

    Raises:
        PlanFileError: The object is malformed or a parameter is out of range.
    """
    kind, fields = read_record("privacy", data, _FIELDS)
    return build_record("privacy", _TYPES[kind], fields)
