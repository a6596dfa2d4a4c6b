"""Plans as files: a JSON record, large arrays beside it. A file is not trusted: loading fits again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sordino.accuracy.factorizations import Factorization
from sordino.errors import InvalidParameterError, PlanFileError, SordinoError, UnsupportedMechanismError
from sordino.mechanisms.linear.catalogue import MECHANISMS
from sordino.mechanisms.linear.compression import compression_from_json
from sordino.mechanisms.linear.fit import Request, fit
from sordino.plans.records import SCHEMA, check_noise, rebuilt, record_digest, write_record
from sordino.privacy.guarantees import privacy_from_json
from sordino.privacy.units import ReplaceOne, unit_from_json
from sordino.workloads import workload_from_spec
from sordino.workloads.bases import Basis, basis_of
from sordino.workloads.constraints import PublicTotal, constraint_from_json

if TYPE_CHECKING:
    from sordino.plans.plan import Plan

__all__ = ["load_plan", "plan_digest", "plan_record", "save_plan"]


def plan_record(plan: Plan) -> dict[str, Any]:
    """Return the plan as a record: schema, what was asked, what was fitted, what it means."""
    fitted, door = plan.fitted, plan.fitted.door
    bound = plan.gaussian_bound
    found = plan.factorization
    return {
        "schema": SCHEMA,
        "workload": {"kind": plan.workload.kind, "spec": plan.workload.spec()},
        "privacy": plan.privacy.to_json(),
        "unit": plan.unit.to_json(),
        "domain": {
            "max_value": plan.domain.max_value,
            "fraction_bits": plan.domain.fraction_bits,
            "integral": plan.integral,
        },
        "objective": plan.objective,
        "requested": plan.requested,
        "mechanism": plan.mechanism,
        "recipe": {
            "strategy": fitted.mechanism.strategy,
            "law": fitted.mechanism.law,
            "branching": fitted.branching,
            **({} if found is None else {"factorization": found.to_json()}),
            **_recovery_record(plan),
        },
        "noise_ratio": fitted.ratio,
        "door": {"grid": door.grid, "quarter_units": door.quarter_units},
        "sensitivity": plan.sensitivity,
        "cost": plan.cost.to_json(),
        "rmse": plan.rmse,
        "max_stderr": plan.max_stderr,
        "rmse_kind": plan.rmse_kind,
        "bound": None if bound is None else {"name": bound.name, "value": bound.value, "class": bound.mechanisms},
        "horizon": "hard",
        "post_processing": [] if plan.constraint is None else [plan.constraint.to_json()],
        "effort": plan.request.effort,
    }


def _recovery_record(plan: Plan) -> dict[str, Any]:
    """Return what a recovery looks for, where there is one.

    Raises:
        UnsupportedMechanismError: A basis is given by functions.
    """
    request, strategy = plan.request, plan.fitted.mechanism.strategy
    if strategy == "threshold":
        if request.basis.name == "custom":
            raise UnsupportedMechanismError("a basis given by functions cannot be saved: keep the plan in memory")
        return {"basis": request.basis.name}
    if strategy == "compressive" and request.compression is not None:
        return {"compression": request.compression.saved, "memory": request.memory}
    return {}


def plan_digest(plan: Plan) -> str:
    """Return the SHA-256 of the canonical record."""
    return record_digest(plan_record(plan))


def save_plan(plan: Plan, path: str | Path) -> Path:
    """Write the record with its digest, and the arrays above 4 kB beside it.

    Raises:
        InputFileError: The file cannot be written.
    """
    return write_record(plan_record(plan), path)


def load_plan(path: str | Path) -> Plan:
    """Read, rebuild and verify a plan.

    The strategy is built and fitted again. Refused: another digest, less noise than fitting gives, a mechanism,
    event or domain that is not the one that fitting gives.

    Raises:
        InputFileError: The file cannot be read.
        PlanFileError: The file is no plan or does not hold what it says.
    """
    return rebuilt(path, _rebuild)


def _basis(name: object) -> Basis:
    if not isinstance(name, str):
        raise PlanFileError("the plan's basis is no name")
    try:
        return basis_of(name)
    except InvalidParameterError:
        raise PlanFileError("the plan's basis is unknown; it may need a newer sordino") from None


def _memory(value: object) -> int | None:
    if value is not None and (type(value) is not int or value < 1):
        raise PlanFileError("the plan's memory is out of range")
    return value


def _rebuild(record: dict[str, Any]) -> Plan:
    from sordino.plans.plan import Plan  # noqa: PLC0415 - plan uses this module

    workload = workload_from_spec(record["workload"]["kind"], record["workload"]["spec"])
    privacy = privacy_from_json(record["privacy"])
    unit = unit_from_json(record["unit"])
    mechanism = next((m for m in MECHANISMS if m.name == record["mechanism"]), None)
    if mechanism is None:
        raise PlanFileError("the plan's mechanism is unknown; it may need a newer sordino")
    if record["objective"] not in ("mean", "max") or not isinstance(record["domain"]["integral"], bool):
        raise PlanFileError("the plan's objective or domain is out of range")
    steps = record["post_processing"]
    if record.get("effort", "optimize") not in ("closed_form", "optimize") or len(steps) > 1:
        raise PlanFileError("the plan's effort or post-processing is out of range")
    request = Request(
        workload,
        privacy,
        unit,
        record["objective"],
        int(record["domain"]["max_value"]),
        record["domain"]["integral"],
        constraint_from_json(steps[0]) if steps else None,
        record.get("effort", "optimize"),
        _basis(record["recipe"].get("basis", "haar")),
        compression_from_json(record["recipe"]["compression"]) if mechanism.strategy == "compressive" else None,
        _memory(record["recipe"].get("memory")),
    )
    if isinstance(request.constraint, PublicTotal) and not isinstance(unit, ReplaceOne):
        raise PlanFileError("the plan's total cannot be public for its unit")
    stored = record["recipe"].get("factorization")
    if (stored is not None) != mechanism.factored:
        raise PlanFileError("the plan's mechanism and what it measures do not belong together")
    found = None if stored is None else Factorization.from_json(stored, workload)
    try:
        fitted = fit(request, mechanism, int(record["recipe"]["branching"]), found)
    except SordinoError as error:
        raise PlanFileError(f"the plan cannot be fitted: {error}") from None
    if fitted.domain.fraction_bits != record["domain"]["fraction_bits"]:
        raise PlanFileError("the plan's domain is not the one that fitting gives")
    check_noise(record, fitted.door, fitted.cost)
    return Plan(request=request, requested=str(record["requested"]), fitted=fitted)
