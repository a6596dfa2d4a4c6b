"""Trees that grow where records are, fitted to a request."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

from sordino import _core
from sordino.errors import InvalidParameterError, UnsupportedMechanismError
from sordino.mechanisms.adaptive.catalogue import ADAPTIVE_MECHANISMS, AdaptiveMechanism, Axis, axes_of
from sordino.mechanisms.adaptive.fit import AdaptiveFit
from sordino.mechanisms.catalogue import named
from sordino.mechanisms.fits import Domain, Request, choose_domain
from sordino.privacy.calibration import cost as calibrated_cost
from sordino.privacy.calibration import noise_ratio
from sordino.workloads import Workload
from sordino.workloads.constraints import PublicBound, PublicTotal

__all__ = ["TreeFit", "advice", "fit_tree", "table_shape"]

# Records a cell, in units of the noise of a node that gets the whole budget, below which it pays to look.
_SPARSE = 10.0


_GROWS = {
    "adaptive": "where records are: what was published decides what is divided",
    "full": "down to every cell, with budgets that grow from level to level",
}


@dataclass(frozen=True, eq=False, repr=False)
class TreeFit(AdaptiveFit):
    """A tree with its noise: that of a node which gets the whole budget."""

    door: _core.PathDoor = field(repr=False)

    @property
    def axes(self) -> tuple[Axis, ...]:
        """What is asked along each axis."""
        return axes_of(self.request.workload) or ()

    @cached_property
    def rmse(self) -> float:
        """Root mean squared error by noise if there are so many records that the tree grows down to every cell."""
        axes = self.axes
        return math.sqrt(self.door.dense_square(axes if len(axes) > 1 else ("cells", axes[0])))  # type: ignore[arg-type]

    def lines(self) -> list[str]:
        """Say what will be measured and how good that is."""
        law = "Gaussian" if self.mechanism.law == "gaussian" else "discrete Laplace"
        shape = " x ".join(map(str, self.request.workload.input_shape))
        lines = [
            f"tree           over {shape} cells; it grows {_GROWS[self.mechanism.growth]}",
            f"noise          {law} on whole counts of nodes, {self.door.noise:.6g} for all of a path's budget",
            f"input          cells clamped to [0, {self.domain.max_value}], integers",
        ]
        if self.mechanism.growth == "full":
            return [
                *lines,
                f"error          rmse {self.rmse:.6g} (noise only), before counts are made not negative, which",
                "               leaves less and biases them; the release has intervals of the nodes",
                "bound          none binds biased answers",
            ]
        return [
            *lines,
            f"error          rmse {self.rmse:.6g} (noise only) where records are dense; with few records less noise,",
            "               and a bias by what is spread evenly: of that nothing is known beforehand;",
            "               the release has intervals of the nodes that were not divided",
            "bound          none binds answers that look at the data",
        ]


def table_shape(workload: Workload) -> tuple[int, int]:
    """Return rows and columns; a line is one row."""
    shape = workload.input_shape
    return (1, shape[0]) if len(shape) == 1 else (shape[0], shape[1])


def fit_tree(request: Request, mechanism: AdaptiveMechanism) -> TreeFit:
    """Fit a tree.

    Raises:
        UnsupportedMechanismError: The mechanism does not serve the workload or the privacy.
        InvalidParameterError: Public sizes do not fit.
    """
    workload = request.workload
    mechanism.require(request.privacy)
    if not mechanism.serves(workload):
        asked = "two axes" if mechanism.growth == "full" else "one or two axes"
        raise UnsupportedMechanismError(
            f"{mechanism.strategy} answers cells, running sums or ranges along {asked}: plan for those, and ask other "
            "queries of the release"
        )
    if not request.integral:
        raise UnsupportedMechanismError(f"{mechanism.strategy} counts whole records: plan with integral=True")
    ratio = noise_ratio(request.privacy, mechanism.law)
    shape, relation = table_shape(workload), request.unit.relation()

    def door(domain: Domain) -> _core.PathDoor:
        return _core.PathDoor.fit(shape, mechanism.growth, mechanism.law, relation, domain.max_value, ratio)

    domain, fitted = choose_domain(door, request, (0,))
    return TreeFit(request, mechanism, fitted, domain, ratio, calibrated_cost(request.privacy, mechanism.law))


def advice(request: Request) -> list[str]:
    """Return a line that advises to look, where a declared number of records is small beside cells and noise."""
    known, axes = request.constraint, axes_of(request.workload)
    if axes is None or not isinstance(known, PublicTotal | PublicBound) or not request.integral:
        return []
    mechanism = named(ADAPTIVE_MECHANISMS, "path-budget-tree", request.privacy)
    try:
        fit = fit_tree(replace(request, constraint=None), mechanism)
    except (InvalidParameterError, UnsupportedMechanismError):
        return []
    rate = (math.sqrt(2.0) if fit.mechanism.law == "gaussian" else 1.0) / fit.door.noise
    if known.size * rate >= _SPARSE * math.prod(request.workload.input_shape):
        return []
    return ["sparse data    so few records for so many cells: mechanism='path-budget-tree' may have half the error"]
