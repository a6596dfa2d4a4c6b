"""Plans of smooth queries as files. A file is not trusted: loading fits again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sordino.errors import PlanFileError, SordinoError
from sordino.mechanisms.smooth.catalogue import SMOOTH_MECHANISMS, smooth_mechanism_named
from sordino.mechanisms.smooth.fit import SmoothRequest, fit_smooth
from sordino.plans.records import SCHEMA, check_noise, rebuilt
from sordino.privacy.guarantees import privacy_from_json
from sordino.privacy.units import unit_from_json
from sordino.workloads.base import Array
from sordino.workloads.smooth.base import MOST_FEATURES, smooth_from_json

if TYPE_CHECKING:
    from sordino.plans.smooth import SmoothPlan

__all__ = ["load_smooth_plan", "rebuild_smooth", "smooth_record"]

_KIND = "smooth-queries"


def smooth_record(plan: SmoothPlan) -> dict[str, Any]:
    """Return the plan as a record: schema, what was asked, what was fitted, what it means."""
    door = plan.fitted.door
    return {
        "schema": SCHEMA,
        "workload": {"kind": _KIND, "spec": plan.workload.to_json()},
        "privacy": plan.privacy.to_json(),
        "unit": plan.unit.to_json(),
        "requested": plan.requested,
        "mechanism": plan.mechanism,
        "sizes": list(plan.sizes),
        "mixings": _mixings(plan),
        "noise_ratio": plan.fitted.ratio,
        "door": {"grid": door.grid, "quarter_units": door.quarter_units},
        "sensitivity": plan.sensitivity,
        "cost": plan.cost.to_json(),
        "rmse": plan.rmse,
        "rmse_kind": plan.rmse_kind,
    }


def _mixings(plan: SmoothPlan) -> list[Array]:
    """Return the matrices that make a kernel's features: eigenvectors differ in their last bits between machines."""
    whitening = plan.fitted.features.whitening()
    return [axis.mixing for axis in plan.fitted.axes] if whitening is None else [whitening]


def load_smooth_plan(path: str | Path) -> SmoothPlan:
    """Read, rebuild and verify a plan.

    Raises:
        InputFileError: The file cannot be read.
        PlanFileError: The file is no plan of smooth queries, was altered, or understates noise or cost.
    """
    return rebuilt(path, rebuild_smooth)


def rebuild_smooth(record: dict[str, Any]) -> SmoothPlan:
    """Fit a recorded plan again.

    Raises:
        PlanFileError: It is no plan of smooth queries, or understates noise or cost.
    """
    from sordino.plans.smooth import SmoothPlan  # noqa: PLC0415 - plan uses this module

    if record["workload"]["kind"] != _KIND:
        raise PlanFileError("the file is a plan of another workload: read it with sordino.Plan.load")
    workload = smooth_from_json(record["workload"]["spec"])
    mechanism = next((m for m in SMOOTH_MECHANISMS if m.name == record["mechanism"]), None)
    if mechanism is None:
        raise PlanFileError("the plan's mechanism is unknown; it may need a newer sordino")
    requested, sizes = record["requested"], record["sizes"]
    privacy = privacy_from_json(record["privacy"])
    if requested != "auto" and smooth_mechanism_named(requested, privacy) is not mechanism:
        raise PlanFileError("the plan's mechanism is not the one that was asked for")
    if not all(type(size) is int and size > 0 for size in sizes) or len(sizes) not in {0, workload.dimension}:
        raise PlanFileError("the plan's sizes are out of range")
    mixings, several = record["mixings"], 1 if workload.declared is not None else workload.dimension
    if not all(
        isinstance(mixing, np.ndarray) and mixing.ndim == 2 and mixing.size <= MOST_FEATURES for mixing in mixings
    ):
        raise PlanFileError("the plan's features of a kernel are out of range")
    if len(mixings) != (several if mechanism.strategy == "kernel" else 0):
        raise PlanFileError("the plan's features of a kernel are not there, or too many")
    request = SmoothRequest(workload, privacy, unit_from_json(record["unit"]), named=requested != "auto")
    try:
        fitted = fit_smooth(request, mechanism, tuple(sizes) or None, mixings)
    except SordinoError as error:
        raise PlanFileError(f"the plan cannot be fitted: {error}") from None
    if list(fitted.sizes) != sizes:
        raise PlanFileError("the plan's sizes are not those that fitting gives")
    check_noise(record, fitted.door, fitted.cost)
    return SmoothPlan(request, requested, fitted)
