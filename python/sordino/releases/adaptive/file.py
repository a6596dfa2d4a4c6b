"""Released trees as files: public, and verified when they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sordino.errors import PlanFileError, UnsupportedMechanismError
from sordino.mechanisms.adaptive.fit import TreeFit
from sordino.releases.record_files import RecordFile, common_record, fit_and_units

if TYPE_CHECKING:
    from sordino.releases.adaptive.tree import TreeRelease

__all__ = ["TREE"]

_KIND = "tree-release"


def _rebuild(record: dict[str, Any], kind: type[TreeRelease]) -> TreeRelease:
    fit, units = fit_and_units(record, _KIND, TreeFit, "tree")
    try:
        measured = fit.door.published(units)
    except UnsupportedMechanismError:
        raise PlanFileError("no tree of this plan grows by these counts") from None
    if record["grid"] != measured.grid:
        raise PlanFileError("the tree was made with other noise than its plan says")
    return kind(fit, measured, private=record["private"] is True, accounted=record["accounted"] is True)


TREE: RecordFile[TreeRelease] = RecordFile("tree", lambda release: common_record(release, _KIND), _rebuild)
"""How trees are written."""
