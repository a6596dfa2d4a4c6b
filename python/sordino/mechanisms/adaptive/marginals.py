"""Marginal tables that are measured where an estimate is furthest off, fitted to a request."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from sordino import _core
from sordino.errors import UnsupportedMechanismError
from sordino.mechanisms.adaptive.catalogue import AdaptiveMechanism
from sordino.mechanisms.adaptive.fit import AdaptiveFit
from sordino.mechanisms.fits import Domain, Request, choose_domain
from sordino.privacy.calibration import cost as calibrated_cost
from sordino.privacy.calibration import noise_ratio
from sordino.workloads import Marginals

__all__ = ["AdaptiveMarginalsFit", "fit_marginals"]

# Cells of all candidates: they are looked at after every round.
_MOST_CELLS = 2**22
_MANY_CELLS = 2**18
# Attributes up to which nothing was gained, where it was tried.
_FEW = 8
# Subsets of a set are candidates.
_MOST_AXES = 6


@dataclass(frozen=True, eq=False, repr=False)
class AdaptiveMarginalsFit(AdaptiveFit):
    """Candidates with their noise: that of a table which gets the whole budget.

    Attributes:
        strategy: What counts all candidates.
        sets: The candidates: sets of attributes, in order.
    """

    door: _core.TableDoor = field(repr=False)
    strategy: _core.Strategy = field(repr=False)
    sets: tuple[tuple[int, ...], ...] = field(repr=False)

    @property
    def workload(self) -> Marginals:
        """The tables that are wanted."""
        return marginals(self.request)

    @property
    def rmse(self) -> float:
        """Root mean squared error by noise if all wanted tables were measured alike, and nothing was chosen."""
        tables = sum(1 for s in self.workload.sets if s)
        if self.mechanism.law == "gaussian":
            return self.door.noise * math.sqrt(tables)
        return self.door.noise * tables * math.sqrt(2.0)

    def lines(self) -> list[str]:
        """Say what will be measured and how good that is."""
        law = "Gaussian" if self.mechanism.law == "gaussian" else "discrete Laplace"
        wanted, attributes = len(self.workload.sets), sum(len(s) == 1 for s in self.sets)
        lines = [
            f"candidates     {len(self.sets)} tables of {attributes} attributes, for {wanted} that are wanted",
            "               first all of one attribute; then, round by round, the one whose estimate is furthest off",
            f"noise          {law} on whole counts, {self.door.noise:.6g} on a table that gets all of the budget",
            f"error          rmse {self.rmse:.6g} (noise only) if all wanted tables were measured alike; fewer have",
            "               less noise, and the others a bias by what is expected of them: of that nothing is known",
            "bound          none binds answers that look at the data",
        ]
        if (cells := _cells(self.workload, self.sets)) > _MANY_CELLS:
            lines.append(f"time           every round looks at {cells:,} cells: a release takes minutes")
        if attributes <= _FEW:
            lines.append(
                "few attributes 'fourier', made consistent(shrink='independence'), had no more error where it was tried"
            )
        return lines


def marginals(request: Request) -> Marginals:
    """Return the workload of a request for marginals.

    Raises:
        UnsupportedMechanismError: It is another.
    """
    workload = request.workload
    if not isinstance(workload, Marginals):
        raise UnsupportedMechanismError("adaptive-marginals answers Marginals")
    return workload


def _subsets(s: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    for size in range(1, len(s) + 1):
        yield from combinations(s, size)


def _cells(workload: Marginals, sets: Iterable[tuple[int, ...]]) -> int:
    return sum(math.prod(workload.levels[i] for i in s) for s in sets)


def _candidates(workload: Marginals) -> tuple[tuple[int, ...], ...]:
    """Return all wanted tables and what they contain, but the total, in order.

    Raises:
        UnsupportedMechanismError: There are none, or too many.
    """
    if any(len(s) > _MOST_AXES for s in workload.sets):
        raise UnsupportedMechanismError(f"adaptive-marginals takes tables of at most {_MOST_AXES} attributes")
    found = sorted({below for s in workload.sets for below in _subsets(s)})
    if not found or _cells(workload, found) > _MOST_CELLS:
        raise UnsupportedMechanismError(
            "adaptive-marginals looks at all tables after every round: they have at most 2**22 cells, and one at least"
        )
    return tuple(found)


def fit_marginals(request: Request, mechanism: AdaptiveMechanism) -> AdaptiveMarginalsFit:
    """Fit adaptive marginals.

    Raises:
        UnsupportedMechanismError: The mechanism does not serve the workload or the privacy.
        InvalidParameterError: Public sizes do not fit.
    """
    mechanism.require(request.privacy)
    workload = marginals(request)
    if not request.integral:
        raise UnsupportedMechanismError("adaptive-marginals counts whole records: plan with integral=True")
    sets = _candidates(workload)
    counted = Marginals(workload.levels, sets=sets)
    strategy = _core.Strategy(counted.core, "output", mechanism.law)
    wanted = dict(zip(workload.sets, workload.weights, strict=True))
    weights = np.array([wanted.get(s, 0.0) for s in sets])
    ratio, relation = noise_ratio(request.privacy, mechanism.law), request.unit.relation()
    arguments = (list(workload.levels), [list(s) for s in sets], (weights / weights.max()).tolist(), relation)

    def door(domain: Domain) -> _core.TableDoor:
        return _core.TableDoor.fit(strategy, *arguments, domain.max_value, ratio)

    domain, fitted = choose_domain(door, request, (0,))
    cost = calibrated_cost(request.privacy, mechanism.law)
    return AdaptiveMarginalsFit(request, mechanism, fitted, domain, ratio, cost, strategy, sets)
