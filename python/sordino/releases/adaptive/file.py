"""What mechanisms that look have published, as files: public, and verified when they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sordino.errors import PlanFileError
from sordino.mechanisms.adaptive.marginals import AdaptiveMarginalsFit
from sordino.mechanisms.adaptive.trees import TreeFit
from sordino.releases.labels import label_from_json, label_to_json
from sordino.releases.record_files import RecordFile, measured_of, record_of_measured

__all__ = ["MARGINALS", "TREE"]


def _tree_contents(release: Any) -> dict[str, Any]:
    labels = None if release.index is None else [label_to_json(label) for label in release.index]
    return {**record_of_measured(release), "index": labels}


def _tree(fit: TreeFit, record: dict[str, Any], make: Callable[..., Any]) -> Any:
    measured, index = measured_of(fit, record, "tree"), record["index"]
    if index is not None:
        if not isinstance(index, list) or len(index) != fit.request.workload.core.input_len:
            raise PlanFileError("the tree's labels are not one a cell")
        index = [label_from_json(label) for label in index]
    return make(measured, index)


def _marginals_contents(release: Any) -> dict[str, Any]:
    return {**record_of_measured(release), "total": release.total, "shrunk": release.shrunk}


def _marginals(fit: AdaptiveMarginalsFit, record: dict[str, Any], make: Callable[..., Any]) -> Any:
    return make(measured_of(fit, record, "marginals")).agreeing(total=record["total"], shrink=record["shrunk"])


TREE = RecordFile("tree-release", "tree", TreeFit, _tree_contents, _tree)
"""How trees are written."""

MARGINALS = RecordFile("marginals-release", "marginals", AdaptiveMarginalsFit, _marginals_contents, _marginals)
"""How marginals are written."""
