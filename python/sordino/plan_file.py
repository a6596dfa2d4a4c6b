"""Plans as files: a JSON record, large arrays beside it. A file is not trusted: loading fits again."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sordino.bases import Basis, basis_of
from sordino.compression import compression_from_json
from sordino.constraints import PublicTotal, constraint_from_json
from sordino.errors import InputFileError, InvalidParameterError, PlanFileError, SordinoError, UnsupportedMechanismError
from sordino.events import event_from_json
from sordino.factorizations import Factorization
from sordino.fitting import Request, fit
from sordino.mechanisms import MECHANISMS
from sordino.privacy import privacy_from_json
from sordino.units import ReplaceOne, unit_from_json
from sordino.workloads import workload_from_spec
from sordino.workloads.base import Array

if TYPE_CHECKING:
    from sordino.plans import Plan

__all__ = ["load_plan", "plan_digest", "plan_record", "save_plan"]

SCHEMA = 1
_INLINE = 4096  # bytes: larger arrays go to the .npz


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
        "event": plan.event.to_json(),
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


def _split(value: Any, arrays: dict[str, Array]) -> Any:
    """Replace arrays by lists, or by the SHA-256 of their bytes if large."""
    if isinstance(value, np.ndarray):
        if value.nbytes <= _INLINE:
            return {"array": value.reshape(-1).tolist(), "shape": list(value.shape)}
        key = hashlib.sha256(np.ascontiguousarray(value, dtype="<f8").tobytes()).hexdigest()
        arrays[key] = value
        return {"sha256": key, "shape": list(value.shape)}
    if isinstance(value, dict):
        return {name: _split(item, arrays) for name, item in value.items()}
    if isinstance(value, list):
        return [_split(item, arrays) for item in value]
    return value


def _join(value: Any, arrays: dict[str, Array]) -> Any:
    if isinstance(value, dict) and set(value) == {"array", "shape"}:
        return np.array(value["array"], dtype=np.float64).reshape(value["shape"])
    if isinstance(value, dict) and set(value) == {"sha256", "shape"}:
        array = arrays.get(value["sha256"])
        if array is None:
            raise PlanFileError("an array of the plan is missing from the file beside it")
        if hashlib.sha256(np.ascontiguousarray(array, dtype="<f8").tobytes()).hexdigest() != value["sha256"]:
            raise PlanFileError("an array of the plan was altered")
        return array.reshape(value["shape"])
    if isinstance(value, dict):
        return {name: _join(item, arrays) for name, item in value.items()}
    if isinstance(value, list):
        return [_join(item, arrays) for item in value]
    return value


def _canonical(record: dict[str, Any]) -> str:
    return json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False)


def plan_digest(plan: Plan) -> str:
    """Return the SHA-256 of the canonical record."""
    return hashlib.sha256(_canonical(_split(plan_record(plan), {})).encode()).hexdigest()


def _beside(path: Path) -> Path:
    return path.with_name(path.name + ".npz")


def save_plan(plan: Plan, path: Path) -> Path:
    """Write the record with its digest, and the arrays above 4 kB beside it.

    Raises:
        InputFileError: The file cannot be written.
    """
    arrays: dict[str, Array] = {}
    record = _split(plan_record(plan), arrays)
    record["digest"] = hashlib.sha256(_canonical(record).encode()).hexdigest()
    try:
        path.write_text(json.dumps(record, indent=2, allow_nan=False) + "\n", encoding="utf-8")
        if arrays:
            buffer = io.BytesIO()
            np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type] # numpy's stub has a flag among **kwds
            _beside(path).write_bytes(buffer.getvalue())
    except OSError as error:
        raise InputFileError(f"the plan cannot be written: {error.strerror}") from None
    return path


def _unpacked(packed: bytes) -> dict[str, Array]:
    """Return the arrays of an `.npz`.

    Raises:
        PlanFileError: It is none.
    """
    try:
        with np.load(io.BytesIO(packed), allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    # What a broken archive raises is documented nowhere: nine kinds of error were seen.
    except Exception:
        raise PlanFileError("the file beside the plan is not one that was saved with it") from None


def load_plan(path: Path) -> Plan:
    """Read, rebuild and verify a plan.

    The strategy is built and fitted again. Refused: another digest, less noise than fitting gives, a mechanism,
    event or domain that is not the one that fitting gives.

    Raises:
        InputFileError: The file cannot be read.
        PlanFileError: The file is no plan or does not hold what it says.
    """
    try:
        text = path.read_bytes()
        packed = _beside(path).read_bytes() if _beside(path).exists() else None
    except OSError as error:
        raise InputFileError(f"the plan cannot be read: {error.strerror}") from None
    try:
        record = json.loads(text.decode())
    except (ValueError, RecursionError):
        raise PlanFileError("the file is not a saved plan") from None
    arrays = {} if packed is None else _unpacked(packed)
    try:
        return _rebuild(record, arrays)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, ArithmeticError, RecursionError) as error:
        if isinstance(error, SordinoError):
            raise
        raise PlanFileError("the plan lacks a field, or a field is of the wrong type") from None


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


def _rebuild(record: dict[str, Any], arrays: dict[str, Array]) -> Plan:
    from sordino.plans import Plan  # noqa: PLC0415 - plan uses this module

    if not isinstance(record, dict) or record.get("schema") != SCHEMA:
        raise PlanFileError("the plan is of another schema; it may need a newer sordino")
    digest = record.pop("digest", None)
    if digest != hashlib.sha256(_canonical(record).encode()).hexdigest():
        raise PlanFileError("the plan was altered: its digest does not match")
    workload = workload_from_spec(record["workload"]["kind"], _join(record["workload"]["spec"], arrays))
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
    stored = _join(record["recipe"].get("factorization"), arrays)
    if (stored is not None) != mechanism.factored:
        raise PlanFileError("the plan's mechanism and what it measures do not belong together")
    found = None if stored is None else Factorization.from_json(stored, workload)
    try:
        fitted = fit(request, mechanism, int(record["recipe"]["branching"]), found)
    except SordinoError as error:
        raise PlanFileError(f"the plan cannot be fitted: {error}") from None
    if fitted.domain.fraction_bits != record["domain"]["fraction_bits"]:
        raise PlanFileError("the plan's domain is not the one that fitting gives")
    noise = int(record["door"]["quarter_units"]) * 2.0 ** int(record["door"]["grid"])
    if noise < fitted.door.quarter_units * 2.0**fitted.door.grid:
        raise PlanFileError("the plan stores less noise than its privacy needs")
    if event_from_json(record["event"]) != fitted.event:
        raise PlanFileError("the plan's event is not what a release costs")
    return Plan(request=request, requested=str(record["requested"]), fitted=fitted)
