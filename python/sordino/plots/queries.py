"""Pictures of queries that are no series: an order in which they can be read, parts of unions, maps of ranges."""

from __future__ import annotations

import math
from itertools import pairwise
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sordino.plots.style import ACCENT, FEW, INK, PALE, SIGNAL, describe, dress, literal
from sordino.workloads import AllRanges, Filter, GroupBy, GroupConvolution, Histogram, Marginals, Union, Workload
from sordino.workloads.base import Array
from sordino.workloads.layout import Layout

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "block_names",
    "draw_map",
    "draw_range_map",
    "drawing_order",
    "has_order",
    "map_shape",
    "mark_parts",
    "part_places",
    "part_slices",
    "parts_of",
]

# Cells along a side of a map of ranges; of more, evenly spaced ones are shown.
_SIDE = 500
# Unions of more parts are drawn without the names of the parts.
_NAMED_PARTS = 6
# Cells of a table that are drawn one by one, under their names, at most.
_NAMED_CELLS = 40


def has_order(workload: Workload) -> bool:
    """Return whether answers stand in an order that means something: along a series, or a table."""
    return isinstance(workload, Filter | Histogram | GroupConvolution | Marginals | GroupBy)


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
    n = workload.length
    cells = np.unique(np.linspace(0, n - 1, min(n, _SIDE)).round().astype(np.int64))
    first, last = np.meshgrid(cells, cells)
    place = first * n - first * (first - 1) // 2 + last - first
    shown = np.ma.masked_where(last < first, values[np.where(last < first, 0, place)])
    edges = np.append(cells - 0.5, n - 0.5)
    _draw_colors(figure, axes, (edges, edges, shown), label, signed=False)
    axes.set_aspect("equal")
    dress(axes, "first cell of the range", "last cell of the range")
    axes.grid(visible=False)
    if names is not None and len(names) == n:
        ticks = np.unique(np.linspace(0, n - 1, min(n, 6)).round().astype(np.int64))
        labels = [literal(names[i]) for i in ticks]
        axes.set_xticks(ticks, labels)
        axes.set_yticks(ticks, labels)


def map_shape(workload: Workload) -> tuple[int, int] | None:
    """Return the shape of answers that are drawn as a map, None of others: two axes, both of some length.

    Few cells of a schema's table are drawn one by one, under their names.
    """
    shape = workload.answers_shape
    if workload.layout is not None and math.prod(shape) > _NAMED_CELLS:
        shape = tuple(len(labels) for _, labels in _axes_of(workload.layout))
    is_map = not isinstance(workload, Marginals) and len(shape) == 2 and min(shape) > 1
    return (shape[0], shape[1]) if is_map else None


def draw_map(figure: Figure, axes: Axes, workload: Workload, values: Array, label: str) -> None:
    """Draw answers on two axes: the first downwards, the second to the right; below zero in another colour."""
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 - optional extra

    most = float(np.abs(values).max())
    edges = [np.arange(n + 1) - 0.5 for n in values.shape]
    _draw_colors(figure, axes, (edges[1], edges[0], values), label, signed=float(values.min()) < -0.05 * most)
    axes.invert_yaxis()
    dress(axes, "", "")
    axes.grid(visible=False)
    names = _names_of_axes(workload)
    for axis, (level, labels) in zip((axes.yaxis, axes.xaxis), names, strict=True):
        axis.set_label_text(literal(level))
        if labels is None:
            axis.set_major_locator(MaxNLocator(integer=True))
        else:
            step = -(-len(labels) // 16)
            axis.set_ticks(range(0, len(labels), step), [literal(label) for label in labels[::step]])
    if names[1][1] is not None and max(map(len, names[1][1])) > 6:
        for named in axes.get_xticklabels():
            named.set(rotation=45, ha="right", rotation_mode="anchor")


def _draw_colors(figure: Figure, axes: Axes, mesh: tuple[Any, Any, Any], label: str, *, signed: bool) -> None:
    """Draw values as colours, with their scale; of signed ones zero is white."""
    from matplotlib.colors import LinearSegmentedColormap  # noqa: PLC0415 - optional extra

    tones = [SIGNAL, "#ffffff", ACCENT] if signed else ["#e8f1f4", ACCENT, INK]
    most = float(np.abs(mesh[2]).max()) if signed else None
    drawn = axes.pcolormesh(
        *mesh,
        cmap=LinearSegmentedColormap.from_list("sordino", tones),
        vmin=None if most is None else -most,
        vmax=most,
        rasterized=True,
    )
    scale = figure.colorbar(drawn, ax=axes, shrink=0.9, pad=0.02)
    scale.set_label(label, fontsize=10, color=INK)
    scale.ax.tick_params(labelsize=9, colors=INK, color=PALE)
    scale.outline.set_visible(False)


def _names_of_axes(workload: Workload) -> list[tuple[str, tuple[str, ...] | None]]:
    """Return what both axes are called, and their places, as far as a schema says it."""
    axes = [] if workload.layout is None else _axes_of(workload.layout)
    return [*axes] if len(axes) == 2 else [("first axis", None), ("second axis", None)]


def _axes_of(layout: Layout) -> list[tuple[str, tuple[str, ...]]]:
    """Return names and places of the axes of a schema's table that are longer than one; none of several tables."""
    if layout.channels is not None or len(layout.blocks) != 1:
        return []
    axes = layout.blocks[0]
    named = [(", ".join(n.level or "total" for n in axis), tuple(x for n in axis for x in n.labels)) for axis in axes]
    return [(name, labels) for name, labels in named if len(labels) > 1]


def block_names(workload: Workload, few: int) -> tuple[NDArray[np.float64], tuple[str, ...]] | None:
    """Return places and names along answers: of each where they are few and a schema names them, else of each block.

    Blocks are the tables of marginals and the levels of groups; None for other queries.
    """
    count, layout = workload.core.answers_len, workload.layout
    if layout is not None and layout.channels is None and count <= few:
        return np.arange(count, dtype=np.float64), tuple(", ".join(labels.values()) for labels, _ in layout.answers())
    if isinstance(workload, Marginals):
        sizes = [math.prod(shape) for shape in workload.table_shapes]
        called = _attribute_names(workload)
        names = tuple(" by ".join(called[i] for i in s) if s else "total" for s in workload.sets)
    elif isinstance(workload, GroupBy):
        sizes = list(workload.level_sizes)
        names = tuple(f"level {k}" for k in range(len(sizes)))
    else:
        return None
    ends = np.cumsum(sizes)
    return ends - 0.5 * np.array(sizes) - 0.5, names


def _attribute_names(workload: Marginals) -> dict[int, str]:
    named = {i: f"attribute {i}" for i in range(len(workload.levels))}
    if workload.layout is not None:
        for s, block in zip(workload.sets, workload.layout.blocks, strict=True):
            named |= {i: axis[0].level for i, axis in zip(s, block, strict=True) if axis[0].level is not None}
    return named
