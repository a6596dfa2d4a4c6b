"""All families, by what they serve: a new one is registered here."""

from __future__ import annotations

from typing import Any

from sordino._support.records import SCHEMA
from sordino.errors import DataTypeError, PlanFileError
from sordino.mechanisms.adaptive.catalogue import ADAPTIVE_MECHANISMS
from sordino.mechanisms.adaptive.family import ADAPTIVE
from sordino.mechanisms.family import Family
from sordino.mechanisms.fits import Fit, Request
from sordino.mechanisms.keyed.family import KEYED
from sordino.mechanisms.linear.family import LINEAR
from sordino.mechanisms.local.family import SURVEY
from sordino.mechanisms.smooth.family import SMOOTH
from sordino.mechanisms.stream.family import STREAM
from sordino.mechanisms.stream.rare import RARE
from sordino.mechanisms.stream.table import TABLE
from sordino.workloads import RunningHistogram
from sordino.workloads.base import Workload
from sordino.workloads.continual import Continual
from sordino.workloads.key_counts import KeyCounts
from sordino.workloads.local.survey import LocalSurvey
from sordino.workloads.rare import RareCount
from sordino.workloads.smooth.base import SmoothQueries

__all__ = ["FAMILIES", "family_of", "fit_of"]

_ALL = (LINEAR, ADAPTIVE, KEYED, STREAM, TABLE, RARE, SMOOTH, SURVEY)
FAMILIES: dict[str, Family] = {family.name: family for family in _ALL}
# Asked for by name alone.
_LOOKING = {name for each in ADAPTIVE_MECHANISMS for name in (each.name, each.strategy)}


def family_of(workload: object, mechanism: object = "auto") -> tuple[Family, Workload]:
    """Return the family that serves a workload by such a mechanism, and the workload as it reads it.

    Raises:
        DataTypeError: No workload.
    """
    if not isinstance(workload, Workload):
        raise DataTypeError("workload must be a sordino workload, such as sordino.RunningSum(10)")
    match workload:
        case LocalSurvey():
            return SURVEY, workload
        case SmoothQueries():
            return SMOOTH, workload
        case KeyCounts():
            return KEYED, workload
        case _ if not workload.continual:
            looks = isinstance(mechanism, str) and mechanism in _LOOKING
            return (ADAPTIVE if looks else LINEAR), workload
    asked = Continual.of(workload)
    match asked.workload:
        case RunningHistogram():
            return TABLE, asked
        case RareCount():
            return RARE, asked
        case _:
            return STREAM, asked


def fit_of(record: Any) -> Fit:
    """Fit again what a record describes; one that understates noise or cost is refused.

    Raises:
        PlanFileError: It does, or is no record of a plan.
        SordinoError: Its request cannot be fitted.
    """
    if not isinstance(record, dict) or record.get("schema") != SCHEMA or record.get("family") not in FAMILIES:
        raise PlanFileError("this is no plan, or it needs a newer sordino")
    domain = record["domain"]
    request = Request.rebuilt(record["request"], None if domain is None else domain["max_value"])
    family, workload = family_of(request.workload, request.mechanism)
    if family.name != record["family"] or workload != request.workload:
        raise PlanFileError("the plan's workload is of another family")
    fit = family.refit(family.check(request), record)
    fit.verify(record)
    return fit
