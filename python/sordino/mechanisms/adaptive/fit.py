"""What fits of mechanisms that look have in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from sordino.mechanisms.adaptive.catalogue import AdaptiveMechanism
from sordino.mechanisms.fits import AnyDoor, Domain, DoorFit
from sordino.privacy.costs import Cost

__all__ = ["AdaptiveFit"]


@dataclass(frozen=True, eq=False, repr=False)
class AdaptiveFit(DoorFit):
    """A mechanism that looks, with its noise.

    Attributes:
        mechanism: Which, and the law of its noise.
        door: Lattice and noise of what gets the whole budget.
        domain: Declared bounds of the input.
        ratio: Noise over sensitivity that was asked for.
        cost: What a release costs.
    """

    family: ClassVar[str] = "adaptive"

    mechanism: AdaptiveMechanism
    door: AnyDoor = field(repr=False)
    domain: Domain
    ratio: float
    cost: Cost

    @property
    def rmse_kind(self) -> str:
        """'noise only': what is not negative is biased, and what is measured depends on the data."""
        return "noise only"

    @property
    def max_stderr(self) -> None:
        """Not known: answers are biased where nothing was measured."""

    @property
    def has_intervals(self) -> bool:
        """Whether answers are known without bias: only what was measured is."""
        return False
