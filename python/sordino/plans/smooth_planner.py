"""Choosing a mechanism for smooth queries from public facts alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from sordino.errors import DataTypeError, InvalidParameterError, UnsupportedMechanismError
from sordino.mechanisms.linear.fit import least_error
from sordino.mechanisms.smooth.catalogue import SMOOTH_MECHANISMS, smooth_mechanism_named
from sordino.mechanisms.smooth.fit import SmoothFitted, SmoothRequest, fit_smooth
from sordino.plans.smooth import SmoothPlan
from sordino.privacy.guarantees import Privacy, PureDP, privacy_of
from sordino.privacy.units import AddRemove, ReplaceOne, Unit, UserLevel
from sordino.workloads.smooth.base import SmoothQueries
from sordino.workloads.smooth.query_classes import KSmooth

__all__ = ["SmoothComparison", "compare_smooth", "plan_smooth", "privacy_for_smooth"]

_LEAST, _MOST = 1e-6, 1e6
_WITHIN = 1e-3


def plan_smooth(
    workload: SmoothQueries, privacy: Privacy, *, unit: Unit | None = None, mechanism: str = "auto"
) -> SmoothPlan:
    """Plan a summary, as `sordino.plan` does for `SmoothQueries`.

    Raises:
        DataTypeError: An argument is of the wrong type.
        InvalidParameterError: An argument is out of range.
        UnsupportedMechanismError: The mechanism named does not serve these queries or this privacy.
    """
    request = _checked(workload, privacy, unit)
    if not isinstance(mechanism, str):
        raise DataTypeError("mechanism must be a name")
    if mechanism != "auto":
        fitted = fit_smooth(replace(request, named=True), smooth_mechanism_named(mechanism, privacy))
        return SmoothPlan(replace(request, named=True), mechanism, fitted)
    fits, _ = _all_fits(request)
    return SmoothPlan(request, mechanism, _best(request, fits))


def _checked(workload: object, privacy: object, unit: object) -> SmoothRequest:
    if not isinstance(workload, SmoothQueries):
        raise DataTypeError("workload must be sordino.SmoothQueries")
    if unit is not None and not isinstance(unit, AddRemove | ReplaceOne | UserLevel):
        raise DataTypeError("unit must be AddRemove, ReplaceOne or UserLevel")
    return SmoothRequest(workload, privacy_of(privacy), AddRemove(1, label="one point") if unit is None else unit)


def _best(request: SmoothRequest, fits: list[SmoothFitted]) -> SmoothFitted:
    """Return what `auto` takes: for a class of all smooth functions only mechanisms with a bound over the class.

    Raises:
        UnsupportedMechanismError: None is left.
    """
    if isinstance(request.workload.query_class, KSmooth):
        fits = [fitted for fitted in fits if fitted.mechanism.strategy != "histogram"]
    if not fits:
        raise UnsupportedMechanismError("no mechanism bounds its error over this class: ask fewer coordinates")
    return least_error(fits, "mean")


def _all_fits(request: SmoothRequest) -> tuple[list[SmoothFitted], dict[str, str]]:
    """Fit the mechanisms that serve; say of the others that should why they do not.

    Raises:
        UnsupportedMechanismError: None serves.
    """
    fits, refused = [], {}
    for mechanism in SMOOTH_MECHANISMS:
        if not mechanism.allows(request.privacy) or not mechanism.serves(request.workload):
            continue
        try:
            fits.append(fit_smooth(request, mechanism))
        except (UnsupportedMechanismError, InvalidParameterError) as error:
            refused[mechanism.name] = str(error)
    if not fits and request.workload.declared is not None and isinstance(request.privacy, PureDP):
        refused["kernel-gaussian"] = "declared queries are answered with Gaussian noise, which cannot give PureDP"
    if not fits:
        reasons = "; ".join(sorted(set(refused.values())))
        raise UnsupportedMechanismError(f"no mechanism serves these queries: {reasons}")
    return fits, refused


@dataclass(frozen=True)
class SmoothComparison:
    """Mechanisms side by side, best first, before anything is spent.

    Attributes:
        rows: One for each mechanism that can answer: name, rmse, noise, truncation, features, sizes.
        chosen: What `auto` takes.
        refused: Mechanisms that do not serve, with the reason.
        request: What was asked for.
    """

    rows: tuple[dict[str, Any], ...]
    chosen: str
    refused: dict[str, str]
    request: SmoothRequest

    def __str__(self) -> str:
        lines = [f"{'mechanism':<22}{'rmse':>12}{'noise':>12}{'truncation':>12}{'features':>12}"]
        for row in self.rows:
            mark = " *" if row["mechanism"] == self.chosen else ""
            numbers = "".join(f"{row[name]:>12.4g}" for name in ("rmse", "noise", "truncation"))
            lines.append(f"{row['mechanism']:<22}{numbers}{row['features']:>12}{mark}")
        return "\n".join(lines)


def compare_smooth(workload: SmoothQueries, privacy: Privacy, *, unit: Unit | None = None) -> SmoothComparison:
    """Return the expected error of every mechanism, best first, as `sordino.compare` does for `SmoothQueries`.

    Raises:
        DataTypeError: An argument is of the wrong type.
        UnsupportedMechanismError: No mechanism serves.
    """
    request = _checked(workload, privacy, unit)
    fits, refused = _all_fits(request)
    rows = [
        {
            "mechanism": fitted.mechanism.name,
            "rmse": fitted.rmse,
            "noise": fitted.noise,
            "truncation": fitted.truncation,
            "features": fitted.features.features,
            "sizes": fitted.sizes,
        }
        for fitted in sorted(fits, key=lambda fitted: fitted.rmse)
    ]
    chosen = _best(request, fits).mechanism.name
    return SmoothComparison(tuple(rows), chosen, refused, request)


def privacy_for_smooth(
    workload: SmoothQueries,
    rmse: float,
    guarantee: Callable[[float], Privacy],
    *,
    unit: Unit | None = None,
    mechanism: str = "auto",
) -> Privacy:
    """Return a guarantee whose plan meets an expected error, within a thousandth of the least epsilon.

    Args:
        workload: The queries.
        rmse: Wanted error of an average.
        guarantee: Makes the guarantee of an epsilon.
        unit: What one protected thing can change.
        mechanism: As in `plan_smooth`.

    Raises:
        InvalidParameterError: No epsilon from 1e-6 to 1e6 is enough.
    """

    def meets(epsilon: float) -> bool:
        try:
            return plan_smooth(workload, guarantee(epsilon), unit=unit, mechanism=mechanism).rmse <= rmse
        except InvalidParameterError:
            # Too much or too little noise for the lattice.
            return epsilon > 1.0

    low, high = _LEAST, _MOST
    # Sizes change with epsilon, but a larger one never asks for more error.
    while high / low > 1.0 + _WITHIN:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if meets(middle) else (middle, high)
    chosen = guarantee(high)
    if high >= _MOST or plan_smooth(workload, chosen, unit=unit, mechanism=mechanism).rmse > rmse:
        raise InvalidParameterError("no epsilon from 1e-6 to 1e6 meets this target")
    return chosen
