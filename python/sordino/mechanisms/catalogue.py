"""What a catalogue of mechanisms is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from sordino.errors import InvalidParameterError, PlanFileError, UnsupportedMechanismError
from sordino.privacy.guarantees import Privacy, PureDP

__all__ = ["Entry", "Law", "named", "recorded"]

Law = Literal["gaussian", "laplace"]


@dataclass(frozen=True)
class Entry:
    """A strategy with a law of noise.

    Attributes:
        name: Full name: `strategy-noise`.
        strategy: Name of the strategy in the core.
        law: Law of the noise.
        automatic: Whether `auto` considers it; otherwise it is reached by name only.
    """

    name: str
    strategy: str
    law: Law
    automatic: bool = True

    def allows(self, privacy: Privacy) -> bool:
        """Return whether this noise can give this privacy."""
        return self.law == "laplace" or not isinstance(privacy, PureDP)

    def require(self, privacy: Privacy) -> None:
        """Refuse a privacy that this noise cannot give.

        Raises:
            UnsupportedMechanismError: It cannot.
        """
        if not self.allows(privacy):
            raise UnsupportedMechanismError(f"{self.name} cannot give {type(privacy).__name__}")


_Any = TypeVar("_Any", bound=Entry)


def named(mechanisms: Sequence[_Any], name: str, privacy: Privacy, noise: Law | None = None) -> _Any:
    """Return the mechanism that a user means: by full name, or by strategy with the noise that is wanted or allowed.

    Raises:
        InvalidParameterError: No such name.
        UnsupportedMechanismError: No such mechanism for this privacy.
    """
    by_name = {m.name: m for m in mechanisms}
    law = noise or ("laplace" if isinstance(privacy, PureDP) else "gaussian")
    found = by_name.get(name) or by_name.get(f"{name}-{law}")
    found = found or (by_name.get(f"{name}-laplace") if noise is None else None)
    if found is None:
        families = sorted({m.strategy for m in mechanisms})
        if name in families:
            if noise is not None:
                raise UnsupportedMechanismError(f"{name} has no {noise} noise")
            raise UnsupportedMechanismError(f"{name} has Gaussian noise, which cannot give PureDP")
        raise InvalidParameterError(f"unknown mechanism; choose 'auto' or one of {', '.join(families)}")
    return found


def recorded(mechanisms: Sequence[_Any], name: object) -> _Any:
    """Return the mechanism that a plan's file names.

    Raises:
        PlanFileError: No such name.
    """
    found = next((mechanism for mechanism in mechanisms if mechanism.name == name), None)
    if found is None:
        raise PlanFileError("the plan's mechanism is unknown; it may need a newer sordino")
    return found
