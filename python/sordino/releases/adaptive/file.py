"""What mechanisms that look have published, as files: public, and verified when they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sordino import _core
from sordino.errors import PlanFileError, UnsupportedMechanismError
from sordino.mechanisms.adaptive.marginals import AdaptiveMarginalsFit
from sordino.mechanisms.adaptive.trees import TreeFit
from sordino.releases.labels import label_from_json, label_to_json
from sordino.releases.record_files import RecordFile, common_record, fit_and_units

__all__ = ["MARGINALS", "TREE"]

_TREE, _MARGINALS = "tree-release", "marginals-release"

_Fit = TypeVar("_Fit", TreeFit, AdaptiveMarginalsFit)


def _published(record: dict[str, Any], kind: str, of: type[_Fit], what: str) -> tuple[_Fit, _core.Measured]:
    fit, units = fit_and_units(record, kind, of, what)
    try:
        measured = fit.door.published(units)
    except UnsupportedMechanismError:
        raise PlanFileError(f"no {what} of this plan publishes such numbers") from None
    if record["grid"] != measured.grid:
        raise PlanFileError(f"the {what} was made with other noise than its plan says")
    return fit, measured


def _tree(record: dict[str, Any], kind: Callable[..., Any]) -> Any:
    fit, measured = _published(record, _TREE, TreeFit, "tree")
    index = record["index"]
    if index is not None:
        if not isinstance(index, list) or len(index) != fit.request.workload.core.input_len:
            raise PlanFileError("the tree's labels are not one a cell")
        index = [label_from_json(label) for label in index]
    return kind(fit, measured, index, private=record["private"] is True, accounted=record["accounted"] is True)


def _marginals(record: dict[str, Any], kind: Callable[..., Any]) -> Any:
    fit, measured = _published(record, _MARGINALS, AdaptiveMarginalsFit, "marginals")
    made = kind(fit, measured, private=record["private"] is True, accounted=record["accounted"] is True)
    return made.agreeing(total=record["total"], shrink=record["shrunk"])


def _record(release: Any) -> dict[str, Any]:
    labels = None if release.index is None else [label_to_json(label) for label in release.index]
    return common_record(release, _TREE) | {"index": labels}


TREE: RecordFile = RecordFile("tree", _record, _tree)
"""How trees are written."""

MARGINALS: RecordFile = RecordFile(
    "marginals",
    lambda release: common_record(release, _MARGINALS) | {"total": release.total, "shrunk": release.shrunk},
    _marginals,
)
"""How marginals are written."""
