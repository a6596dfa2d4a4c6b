"""Local plans as files: what clients and server share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sordino.errors import PlanFileError
from sordino.plans.local import LocalPlan
from sordino.plans.records import SCHEMA, rebuilt, write_record
from sordino.plans.stream import StreamPlan
from sordino.plans.survey_planner import plan_local
from sordino.privacy.guarantees import privacy_from_json
from sordino.workloads.local.survey import LocalSurvey

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["load_local", "save_local"]


def save_local(plan: LocalPlan, path: str | Path) -> Path:
    """Write a plan as JSON.

    Raises:
        InvalidParameterError: The loss is given by functions.
        InputFileError: The file cannot be written.
    """
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "local": True,
        "privacy": plan.privacy.to_json(),
        "sums": plan.sums.record(),
        "level": None if plan.level is None else plan.level.record(),
    }
    return write_record(record, path)


def load_local(path: str | Path) -> LocalPlan:
    """Read a plan, plan it again, and refuse one with other parts.

    Raises:
        InputFileError: The file cannot be read.
        PlanFileError: The file is no local plan, was altered, or understates noise or cost.
    """
    return rebuilt(path, _rebuilt)


def _rebuilt(record: Mapping[str, Any]) -> LocalPlan:
    if record.get("local") is not True:
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
