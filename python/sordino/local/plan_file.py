"""Local plans as files: what clients and server share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sordino.errors import InputFileError, PlanFileError, SordinoError
from sordino.local.plan import LocalPlan
from sordino.local.planning import plan_local
from sordino.local.survey import LocalSurvey
from sordino.plan_records import record_digest
from sordino.privacy import privacy_from_json
from sordino.stream_plans import StreamPlan

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["load_local", "save_local"]

_SCHEMA = 1


def save_local(plan: LocalPlan, path: str | Path) -> Path:
    """Write a plan as JSON.

    Raises:
        InvalidParameterError: The loss is given by functions.
        InputFileError: The file cannot be written.
    """
    path = Path(path)
    record: dict[str, Any] = {
        "schema": _SCHEMA,
        "local": True,
        "privacy": plan.privacy.to_json(),
        "sums": plan.sums.record(),
        "level": None if plan.level is None else plan.level.record(),
    }
    try:
        path.write_text(json.dumps(record | {"digest": record_digest(record)}, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputFileError(f"the plan cannot be written: {error.strerror}") from None
    return path


def load_local(path: str | Path) -> LocalPlan:
    """Read a plan, plan it again, and refuse one with other parts.

    Raises:
        InputFileError: The file cannot be read.
        PlanFileError: The file is no local plan, was altered, or understates noise or cost.
    """
    try:
        record = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputFileError(f"the plan cannot be read: {error.strerror}") from None
    except ValueError:
        raise PlanFileError("the file is not a saved plan") from None
    if not isinstance(record, dict) or record.pop("digest", None) != record_digest(record):
        raise PlanFileError("the file is no saved plan, or was altered: its digest does not match")
    try:
        return _rebuilt(record)
    except (KeyError, TypeError, AttributeError, SordinoError) as error:
        if isinstance(error, PlanFileError):
            raise
        raise PlanFileError("the plan lacks a field, or a field is of the wrong type") from None


def _rebuilt(record: Mapping[str, Any]) -> LocalPlan:
    if record.get("schema") != _SCHEMA or record.get("local") is not True:
        raise PlanFileError("this is no local plan, or it needs a newer sordino")
    privacy = privacy_from_json(record["privacy"])
    sums = StreamPlan.from_record(record["sums"])
    survey = sums.request.events
    if not isinstance(survey, LocalSurvey):
        raise PlanFileError("the plan's counters are of no local survey")
    plan = plan_local(survey, privacy, mechanism=sums.mechanism)
    level = None if plan.level is None else plan.level.record()
    # Planned again under its own guarantee: parts that cost more are not what the plan says.
    if plan.sums.privacy != sums.privacy or record["level"] != level:
        raise PlanFileError("the parts of the plan are not what its privacy needs")
    return LocalPlan(survey, privacy, sums, plan.level)
