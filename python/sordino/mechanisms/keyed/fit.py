"""A sketch of keys fitted to a request: lattice, noise, error. Touches no data."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

from sordino import _core
from sordino.errors import UnsupportedMechanismError
from sordino.mechanisms.catalogue import Entry
from sordino.mechanisms.fits import Domain, DoorFit, Request, choose_domain
from sordino.privacy.calibration import cost as calibrated_cost
from sordino.privacy.calibration import noise_ratio
from sordino.privacy.costs import Cost
from sordino.workloads.key_counts import KeyCounts

__all__ = ["KEYED_MECHANISMS", "KeyFit", "fit_keys"]

KEYED_MECHANISMS: tuple[Entry, ...] = (
    Entry("key-sketch-laplace", "key-sketch", "laplace"),
    Entry("key-sketch-gaussian", "key-sketch", "gaussian"),
)
"""All of them, the simpler one first."""

# Bits of a sum beyond those of a cell: it holds very many keys.
_SUM_BITS = 21


@dataclass(frozen=True, eq=False, repr=False)
class KeyFit(DoorFit):
    """A sketch of keys with its noise.

    Attributes:
        mechanism: Which law of noise.
        strategy: The sums in the core.
        door: Lattice and noise of a sum.
        domain: Bound of a sum: it is clamped to it.
        ratio: Noise over sensitivity that was asked for.
        cost: What a release costs.
    """

    family: ClassVar[str] = "keyed"

    mechanism: Entry
    strategy: _core.Strategy = field(repr=False)
    door: _core.Door = field(repr=False)
    domain: Domain
    ratio: float
    cost: Cost

    @property
    def workload(self) -> KeyCounts:
        """Keys and sketch."""
        workload = self.request.workload
        assert isinstance(workload, KeyCounts)
        return workload

    @property
    def noise(self) -> float:
        """Standard deviation of the noise in every sum."""
        return float(self.door.noise) * math.sqrt(float(self.strategy.variances()[0]))

    @property
    def rmse(self) -> float:
        """Standard deviation of the noise in the count of one key, if it shares its sums with nothing else."""
        return self.noise / math.sqrt(self.workload.nonzeros)

    @property
    def rmse_kind(self) -> str:
        """'noise only': what other keys add to the same sums comes on top, as far as they are not recovered."""
        return "noise only"

    @property
    def max_stderr(self) -> None:
        """Not known."""

    @property
    def has_intervals(self) -> bool:
        """Whether counts are known without bias: those that are found were chosen for their size."""
        return False

    def details(self) -> dict[str, Any]:
        """Return what a file says beyond the common."""
        return {"noise_ratio": self.ratio}

    def lines(self) -> list[str]:
        """Say what will be measured and how good that is."""
        asked = self.workload
        law = "Gaussian" if self.mechanism.law == "gaussian" else "Laplace"
        return [
            f"sketch         {asked.measurements} sums of {asked.keys} keys, each key in {asked.nonzeros}",
            f"noise          {law}, {self.noise:.6g} in a sum",
            f"input          sums clamped to [-{self.domain.max_value}, {self.domain.max_value}], integers",
            f"error          {self.rmse:.6g} in the count of a key alone (noise only); with S keys of counts far above",
            f"               that, about the same times sqrt({asked.measurements}/({asked.measurements} - S))",
            "bound          none binds counts of keys that are chosen by their size",
        ]


def fit_keys(request: Request, mechanism: Entry) -> KeyFit:
    """Fit a sketch.

    Raises:
        UnsupportedMechanismError: The mechanism does not give the privacy, or counts are no integers.
        InvalidParameterError: Public sizes do not fit.
    """
    mechanism.require(request.privacy)
    workload = request.workload
    assert isinstance(workload, KeyCounts)
    if not request.integral:
        raise UnsupportedMechanismError("a sketch has sums of integers: plan with integral=True")
    strategy = _core.Strategy.keyed(workload.operator, mechanism.law)
    ratio, relation = noise_ratio(request.privacy, mechanism.law), request.unit.relation()

    def door(domain: Domain) -> _core.Door:
        return _core.fit(strategy, relation, domain.max_value, 0, ratio)

    domain, fitted = choose_domain(door, request, (0,), _SUM_BITS)
    return KeyFit(request, mechanism, strategy, fitted, domain, ratio, calibrated_cost(request.privacy, mechanism.law))
