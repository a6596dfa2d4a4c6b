"""Pictures of queries that are no series: an order in which they can be read, parts of unions, maps of ranges."""

from __future__ import annotations

from itertools import pairwise
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sordino.plots.style import ACCENT, FEW, INK, PALE, describe, dress, literal
from sordino.workloads import AllRanges, Filter, GroupConvolution, Histogram, Marginals, Union, Workload
from sordino.workloads.base import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_range_map", "drawing_order", "has_order", "mark_parts", "part_places", "part_slices", "parts_of"]

# Cells along a side of a map of ranges; of more, evenly spaced ones are shown.
_SIDE = 500
# Unions of more parts are drawn without the names of the parts.
_NAMED_PARTS = 6


def has_order(workload: Workload) -> bool:
    """Return whether answers stand in an order that means something: along a series, or a table."""
    return isinstance(workload, Filter | Histogram | GroupConvolution | Marginals)


def drawing_order(workload: Workload, values: Array) -> NDArray[np.intp]:
    """Return the order in which flat `values` are drawn: as they are if few or in an order, else the least first.

    Parts of a union follow each other.
    """
    orders = []
    for part, where in zip(parts_of(workload), part_slices(workload), strict=True):
        plain = has_order(part) or len(values) <= FEW
        own = np.arange(where.stop - where.start) if plain else np.argsort(values[where], kind="stable")
        orders.append(where.start + own)
    return np.concatenate(orders)


def parts_of(workload: Workload) -> tuple[Workload, ...]:
    """Return the parts of a union, or the workload alone."""
    return workload.parts if isinstance(workload, Union) else (workload,)


def part_slices(workload: Workload) -> list[slice]:
    """Return where the flat answers of each part are."""
    ends = np.cumsum([part.core.answers_len for part in parts_of(workload)]).tolist()
    return [slice(start, end) for start, end in pairwise([0, *ends])]


def part_places(workload: Union) -> Array:
    """Return where answers lie along the axis: every part has the same width, however many answers it has."""
    sizes = [part.core.answers_len for part in workload.parts]
    return np.concatenate([k + (np.arange(size) + 0.5) / size for k, size in enumerate(sizes)])


def mark_parts(axes: Axes, workload: Union) -> None:
    """Separate the parts of a union by lines, and write below how many answers of which kind they have."""
    count = len(workload.parts)
    for end in range(1, count):
        axes.axvline(end, color=PALE, linewidth=1.0)
    few = count <= _NAMED_PARTS
    names = [describe(part) if few else str(k + 1) for k, part in enumerate(workload.parts)]
    lines = [fill(name, width=max(96 // count, 12)) for name in names]
    if few:
        lines = [f"{line}\n({part.core.answers_len:,})" for line, part in zip(lines, workload.parts, strict=True)]
    axes.set_xticks(np.arange(count) + 0.5, lines)
    axes.tick_params(axis="x", length=0)


def draw_range_map(
    figure: Figure, axes: Axes, workload: AllRanges, values: Array, label: str, *, names: NDArray[Any] | None = None
) -> None:
    """Draw a value of every range as a colour: its first cell to the right, its last cell upwards.

    Args:
        figure: Gets the scale of colours.
        axes: Gets the map.
        workload: The ranges.
        values: One for each, flat.
        label: What a value is.
        names: Names of the cells, numbers if None.
    """
    from matplotlib.colors import LinearSegmentedColormap  # noqa: PLC0415 - optional extra

    n = workload.length
    cells = np.unique(np.linspace(0, n - 1, min(n, _SIDE)).round().astype(np.int64))
    first, last = np.meshgrid(cells, cells)
    place = first * n - first * (first - 1) // 2 + last - first
    shown = np.ma.masked_where(last < first, values[np.where(last < first, 0, place)])
    colors = LinearSegmentedColormap.from_list("sordino", ["#e8f1f4", ACCENT, INK])
    edges = np.append(cells - 0.5, n - 0.5)
    mesh = axes.pcolormesh(edges, edges, shown, cmap=colors, rasterized=True)
    scale = figure.colorbar(mesh, ax=axes, shrink=0.9, pad=0.02)
    scale.set_label(label, fontsize=10, color=INK)
    scale.ax.tick_params(labelsize=9, colors=INK, color=PALE)
    scale.outline.set_visible(False)
    axes.set_aspect("equal")
    dress(axes, "first cell of the range", "last cell of the range")
    axes.grid(visible=False)
    if names is not None and len(names) == n:
        ticks = np.unique(np.linspace(0, n - 1, min(n, 6)).round().astype(np.int64))
        labels = [literal(names[i]) for i in ticks]
        axes.set_xticks(ticks, labels)
        axes.set_yticks(ticks, labels)
