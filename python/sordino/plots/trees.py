"""Pictures of trees that have grown: the table, and where it is fine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sordino.plots.queries import draw_map
from sordino.plots.style import ACCENT, PALE, canvas_of, describe, dress, heading, save_figure
from sordino.workloads import Histogram

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from sordino.releases.adaptive.tree import TreeRelease

__all__ = ["plot_tree"]

# Leaves whose borders are drawn: more would hide the table.
_MOST_BORDERS = 4096


def plot_tree(release: TreeRelease, path: str | Path | None = None, *, ax: Any = None) -> Figure:
    """Draw the table of a tree: a line as steps, two axes as a map, with the borders of its leaves.

    Args:
        release: What is drawn.
        path: Where to save the picture, None to only return it.
        ax: Axes to draw into, None for a figure of its own.

    Raises:
        MissingDependencyError: matplotlib is not installed.
        DataTypeError: `path` is no path.
        InvalidParameterError: The picture's format is unknown.
        InputFileError: The picture cannot be written.
    """
    cells, nodes = release.cells, release.nodes
    if cells.ndim == 1:
        figure, axes = canvas_of(ax, 9.5, 4.8)
        edges = np.arange(len(cells) + 1) - 0.5
        axes.stairs(cells, edges, color=ACCENT, fill=True, alpha=0.3, linewidth=0)
        axes.stairs(cells, edges, color=ACCENT, linewidth=1.2)
        axes.margins(x=0.01)
        dress(axes, "cell", "records in the cell, released")
    else:
        figure, axes = canvas_of(ax, 8.0, 6.4)
        draw_map(figure, axes, Histogram(cells.shape), cells, "records in the cell, released")
        _borders(axes, nodes.boxes[_leaves(nodes.boxes, cells.shape)])
    warning = "" if release.private else "KNOWN NOISE, NOT PRIVATE; "
    told = f"{len(nodes.depths):,} nodes measured over {cells.size:,} cells; {release.fit.promise}"
    heading(axes, f"{describe(release.fit.request.workload)}: where records are", warning + told)
    return save_figure(figure, path)


def _leaves(boxes: Any, shape: tuple[int, ...]) -> Any:
    """Return which nodes have no parts: the last ones, level by level, that contain their first cell."""
    owner = np.zeros(shape, dtype=np.int64)
    for number, ((top, bottom), (left, right)) in enumerate(boxes):
        owner[top : bottom + 1, left : right + 1] = number
    return np.unique(owner)


def _borders(axes: Axes, boxes: Any) -> None:
    from matplotlib.collections import PolyCollection  # noqa: PLC0415 - optional extra

    if len(boxes) > _MOST_BORDERS:
        return
    (top, bottom), (left, right) = boxes[:, 0].T - [[0.5], [-0.5]], boxes[:, 1].T - [[0.5], [-0.5]]
    corners = np.stack([np.stack([left, right, right, left], 1), np.stack([top, top, bottom, bottom], 1)], 2)
    axes.add_collection(PolyCollection(list(corners), facecolors="none", edgecolors=PALE, linewidths=0.4))
