"""Released summaries as files: public, and verified when they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sordino.errors import PlanFileError
from sordino.mechanisms.smooth.fit import SmoothFit
from sordino.releases.record_files import RecordFile, common_record, fit_and_units

__all__ = ["SUMMARY"]

_KIND = "smooth-release"


def _record(release: Any) -> dict[str, Any]:
    return {
        **common_record(release, _KIND),
        "features": _mark(release.fit),
        "names": None if release.names is None else list(release.names),
    }


def _rebuild(record: dict[str, Any], kind: Callable[..., Any]) -> Any:
    fit, units = fit_and_units(record, _KIND, SmoothFit, "summary")
    if record["features"] != _mark(fit):
        raise PlanFileError("the features of the summary come out otherwise on this machine: ask where it was made")
    if record["grid"] != fit.door.grid:
        raise PlanFileError("the summary was made with other noise than its plan says")
    if units.shape != (fit.strategy.measured_len,):
        raise PlanFileError("the summary has another number of sums than its plan")
    names = record["names"]
    if names is not None and not (len(names) == fit.workload.dimension and all(type(name) is str for name in names)):
        raise PlanFileError("the summary's names are not one a coordinate")
    return kind(
        fit,
        fit.door.published(units),
        private=record["private"] is True,
        accounted=record["accounted"] is True,
        names=None if names is None else tuple(names),
    )


def _mark(fit: SmoothFit) -> str:
    """Return what the core tells features apart by: of everything that decides what a point adds."""
    return fit.features.mark.to_bytes(8, "little").hex()


SUMMARY: RecordFile = RecordFile("summary", _record, _rebuild)
"""How summaries are written."""
