"""Released summaries as files: public, and verified when they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sordino.errors import PlanFileError
from sordino.mechanisms.smooth.fit import SmoothFit
from sordino.releases.record_files import RecordFile, measured_of, record_of_measured

__all__ = ["SUMMARY"]


def _contents(release: Any) -> dict[str, Any]:
    names = None if release.names is None else list(release.names)
    return {**record_of_measured(release), "features": _mark(release.fit), "names": names}


def _rebuild(fit: SmoothFit, record: dict[str, Any], make: Callable[..., Any]) -> Any:
    if record["features"] != _mark(fit):
        raise PlanFileError("the features of the summary come out otherwise on this machine: ask where it was made")
    measured, names = measured_of(fit, record, "summary"), record["names"]
    if names is not None and not (len(names) == fit.workload.dimension and all(type(name) is str for name in names)):
        raise PlanFileError("the summary's names are not one a coordinate")
    return make(measured, names=None if names is None else tuple(names))


def _mark(fit: SmoothFit) -> str:
    """Return what the core tells features apart by: of everything that decides what a point adds."""
    return fit.features.mark.to_bytes(8, "little").hex()


SUMMARY = RecordFile("smooth-release", "summary", SmoothFit, _contents, _rebuild)
"""How summaries are written."""
