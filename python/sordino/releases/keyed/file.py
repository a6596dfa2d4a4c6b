"""Released sketches of keys as files: public, and verified when they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sordino.errors import PlanFileError
from sordino.mechanisms.keyed.fit import KeyFit
from sordino.releases.record_files import RecordFile, common_record, fit_and_units

__all__ = ["SKETCH"]

_KIND = "key-release"


def _rebuild(record: dict[str, Any], kind: Callable[..., Any]) -> Any:
    fit, units = fit_and_units(record, _KIND, KeyFit, "sketch")
    if units.shape != (fit.strategy.measured_len,):
        raise PlanFileError("the sketch has another number of sums than its plan")
    published = fit.door.published(units)
    if record["grid"] != published.grid:
        raise PlanFileError("the sketch was made with other noise than its plan says")
    return kind(fit, published, private=record["private"] is True, accounted=record["accounted"] is True)


SKETCH: RecordFile = RecordFile("sketch", lambda release: common_record(release, _KIND), _rebuild)
"""How released sketches are written."""
