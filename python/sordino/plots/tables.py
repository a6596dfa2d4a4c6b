"""Pictures of plans, releases and comparisons. They show public facts and published answers, never the data.

matplotlib is imported when a picture is made; nothing here touches `pyplot` or another global state.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sordino.accuracy.bounds import Bound, spectrum
from sordino.plots.queries import (
    block_names,
    draw_map,
    draw_range_map,
    drawing_order,
    has_order,
    map_shape,
    mark_parts,
    part_places,
    part_slices,
    parts_of,
)
from sordino.plots.style import (
    ACCENT,
    FEW,
    INK,
    LOGARITHMIC,
    MUTED,
    PALE,
    SIGNAL,
    canvas_of,
    check_picture,
    dates_axis,
    describe,
    dress,
    heading,
    literal,
    new_figure,
    on_line,
    save_figure,
    short,
)
from sordino.releases.frames import answer_weights
from sordino.workloads import AllRanges, Filter, GroupConvolution, Histogram, Marginals, Union, Workload
from sordino.workloads.base import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from sordino.mechanisms.fits import Fit, Objective
    from sordino.plans.comparison import Comparison
    from sordino.plans.plan import Plan
    from sordino.releases.release import Release

__all__ = [
    "ACCENT",
    "INK",
    "MUTED",
    "PALE",
    "SIGNAL",
    "check_picture",
    "dates_axis",
    "describe",
    "dress",
    "heading",
    "new_figure",
    "plot_comparison",
    "plot_plan",
    "plot_release",
    "positions",
    "save_figure",
]

_KINDS = {"exact": "rmse", "upper bound": "rmse at most", "noise only": "rmse of the noise alone"}
_DASHED = (0, (5, 3))


@dataclass(frozen=True)
class Positions:
    """Where the answers lie along the horizontal axis.

    Attributes:
        at: Numbers or dates, one for each answer.
        label: What the axis shows.
        names: Names of the positions, if they are neither numbers nor dates.
        dates: Whether `at` are dates.
        ticks: Where the names stand, if not at every position.
    """

    at: NDArray[Any]
    label: str
    names: tuple[str, ...] | None = None
    dates: bool = False
    ticks: NDArray[Any] | None = None


def positions(release: Release) -> Positions:
    """Return where the answers of a release lie: at the labels of their cells if there are any, else by number."""
    count, workload = release.values.size, release.workload
    plain = Positions(_places(workload), _axis_name(workload, "answer"))
    if release.labels is None:
        blocks = block_names(workload, FEW)
        return plain if blocks is None else Positions(plain.at, "", names=blocks[1], ticks=blocks[0])
    labels = np.asarray(release.labels)
    if labels.dtype.kind in "iuf":
        return Positions(labels, "")
    try:
        return Positions(labels.astype("datetime64[us]"), "", dates=True)
    except (TypeError, ValueError):
        names = tuple(str(label) for label in labels)
        return Positions(plain.at, "", names=names if count <= FEW else None)


def _places(workload: Workload) -> NDArray[Any]:
    if isinstance(workload, Union):
        return part_places(workload)
    return np.arange(workload.core.answers_len) + workload.first_step


def _axis_name(workload: Workload, drawn: str) -> str:
    match workload:
        case Filter():
            return "step"
        case Histogram() | GroupConvolution():
            return "cell"
        case Marginals():
            return "cell of the tables, one after the other"
        case _:
            return f"query, the least {drawn} first" if _is_sorted(workload) else "query"


def _is_sorted(workload: Workload) -> bool:
    return workload.core.answers_len > FEW and not all(map(has_order, parts_of(workload)))


def _place(axes: Axes, where: Positions) -> None:
    """Draw the horizontal axis."""
    if where.dates:
        dates_axis(axes)
    elif where.names is not None:
        step = -(-len(where.names) // 24)
        ticks = where.at if where.ticks is None else where.ticks
        axes.set_xticks(ticks[::step], list(map(literal, where.names[::step])))
        if max(len(name) for name in where.names[::step]) * len(where.names) / step > 100:
            axes.tick_params(axis="x", labelrotation=45)


def plot_plan(plan: Plan, path: str | Path | None = None, *, ax: Any = None) -> Figure:
    """Draw the expected standard error of every answer, the bound, and the spectrum of a convolution.

    Args:
        plan: What is drawn.
        path: Where to save the picture, None to only return it.
        ax: Axes to draw the errors into, None for a figure of its own.

    Raises:
        MissingDependencyError: matplotlib is not installed.
        DataTypeError: `path` is no path.
        InvalidParameterError: The picture's format is unknown.
        InputFileError: The picture cannot be written.
    """
    workload = plan.workload
    ranges = workload if isinstance(workload, AllRanges) and plan.max_stderr is not None else None
    two = ax is None and (ranges is not None or isinstance(workload, Filter | GroupConvolution))
    if not two:
        figure, axes = canvas_of(ax, 8.0, 4.8)
        _draw_errors(axes, plan)
        return save_figure(figure, path)
    figure = new_figure(11.5, 4.8)
    panels = figure.subplots(1, 2, width_ratios=(3, 2))
    _draw_errors(panels[0], plan)
    if ranges is not None:
        draw_range_map(figure, panels[1], ranges, plan.fit.stderr, "standard error")
        heading(panels[1], "Error of every range", "from its first to its last cell")
    else:
        _draw_spectrum(panels[1], workload)
    return save_figure(figure, path)


def _draw_errors(axes: Axes, plan: Plan) -> None:
    workload, errors = plan.workload, plan.fit.stderr
    largest = plan.rmse if plan.max_stderr is None else plan.max_stderr
    few = len(errors) <= FEW
    drawn = errors[drawing_order(workload, errors)]
    for part in part_slices(workload):
        x, y = _places(workload)[part], drawn[part]
        if plan.max_stderr is None:  # the mean alone is known
            axes.plot(x, np.full(len(x), plan.rmse), color=ACCENT, linewidth=0.0)
            continue
        axes.plot(x, y, color=ACCENT, linewidth=0.0 if few else 1.8, marker="o" if few else "", markersize=4)
    axes.margins(x=0.02)
    mean, bound = plan.request.objective == "mean", _known(plan.fit.bound)
    error, name = (plan.rmse, _KINDS[plan.fit.rmse_kind]) if mean else (largest, "largest standard error")
    least = 0.0 if bound is None else bound.value
    axes.set_ylim(0.0, 1.22 * max(largest, error, least))
    axes.axhline(error, color=ACCENT, linewidth=1.0, alpha=0.5)
    # Labels go where no answer is: sorted ones begin below their mean and end above it, series bend around it.
    if _is_sorted(workload):
        x_above, x_below = 0.03, 0.97 if mean else 0.03
    else:
        x_above = x_below = 0.5 if has_order(workload) else 1.0
    above = error >= least
    edge = max(largest, error) if above and has_order(workload) else error
    on_line(axes, edge, f"{name} {short(error)}", x=x_above if above else x_below, above=above, color=ACCENT)
    if bound is not None:
        axes.axhline(least, color=SIGNAL, linewidth=1.2, linestyle=_DASHED)
        label = _no_better(bound, plan.request.objective)
        on_line(axes, least, label, x=x_below if above else x_above, above=not above, color=SIGNAL)
    if isinstance(workload, Union):
        mark_parts(axes, workload)
    heading(axes, f"{describe(workload)}: expected error", f"{plan.mechanism}; {_promise(plan.fit)}")
    measure = "error, in the mean" if plan.max_stderr is None else "standard error of an answer"
    dress(axes, _axis_name(workload, "error"), measure)


def _known(bound: Bound | None) -> Bound | None:
    """Return the bound unless it says nothing."""
    return bound if bound is not None and bound.value > 0.0 else None


def _no_better(bound: Bound, objective: Objective) -> str:
    return f"least Gaussian {'rmse' if objective == 'mean' else 'largest error'} {short(bound.value)}"


def _promise(fit: Fit) -> str:
    """The guarantee without the words around it."""
    return f"{fit.promise} for {fit.request.unit.label}"


def _draw_spectrum(axes: Axes, workload: Workload) -> None:
    found = spectrum(workload)
    gains = found.magnitudes[found.magnitudes > 0.0]
    ranks = np.arange(1, len(gains) + 1)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.plot(ranks, gains, color=ACCENT, linewidth=1.8, marker="o" if len(gains) <= FEW else "", markersize=3)
    if gains[-1] > gains[0] / 10.0:
        axes.set_ylim(gains[0] / 20.0, gains[0] * 3.0)
    silent = len(found.magnitudes) - len(gains)
    note = (
        f"{silent:,} of {len(found.magnitudes):,} frequencies are removed"
        if silent
        else "falls fast, needs little noise"
    )
    if found.exponent is not None and found.constant is not None and not silent > len(gains):
        envelope = found.constant * ranks**-found.exponent
        axes.plot(ranks, envelope, color=MUTED, linewidth=1.2, linestyle=(0, (1, 2)))
        note = f"dotted: at most {short(found.constant)} / rank$^{{{found.exponent:.2f}}}$"
    heading(axes, "Spectrum of the filter", note)
    dress(axes, "frequency, strongest first", "gain")


def plot_release(release: Release, path: str | Path | None = None, *, level: float = 0.95, ax: Any = None) -> Figure:
    """Draw the published answers with their confidence intervals. The truth is not drawn: it is not known here.

    Args:
        release: What is drawn; `values` as the line, the intervals around `unbiased`.
        path: Where to save the picture, None to only return it.
        level: Level of each interval.
        ax: Axes to draw into, None for a figure of its own.

    Raises:
        MissingDependencyError: matplotlib is not installed.
        DataTypeError: `path` is no path.
        InvalidParameterError: The level is out of range, or the picture's format is unknown.
        InputFileError: The picture cannot be written.
    """
    half = _half_widths(release, level)
    shown = f"{100 * level:g} % interval ± {float(half.max()):.3g}" if half.any() else "no intervals"
    shown += "" if getattr(release, "projection", None) is None else " around the answers before projection"
    if isinstance(release.workload, AllRanges):
        figure, axes = canvas_of(ax, 8.0, 6.0)
        values = release.values.reshape(-1)
        draw_range_map(figure, axes, release.workload, values, "released answer", names=release.index)
    elif (shape := map_shape(release.workload)) is not None:
        figure, axes = canvas_of(ax, 8.0, 6.0)
        values = release.values.reshape(-1) / answer_weights(release)
        draw_map(figure, axes, release.workload, values.reshape(shape), "released answer")
    else:
        figure, axes = canvas_of(ax, 9.5, 4.8)
        where = _draw_answers(axes, release, half)
        _place(axes, where)
        bottom, top = axes.get_ylim()
        shown += ", too small to be seen" if 0.0 < 2.0 * float(half.max()) < 0.006 * (top - bottom) else ""
        dress(axes, where.label, "released answer")
    warning = "" if release.private else "KNOWN NOISE, NOT PRIVATE; "
    heading(axes, f"{describe(release.workload)}, released", f"{warning}{_promise(release.fit)}; {shown}")
    return save_figure(figure, path)


def _half_widths(release: Release, level: float) -> Array:
    """Return half the length of each interval; zeros for a sketch, which has none."""
    if not release.fit.has_intervals:
        return np.zeros(release.values.size)
    interval = release.interval(level)
    return (interval.upper - interval.lower).reshape(-1) / 2.0


def _draw_answers(axes: Axes, release: Release, half: Array) -> Positions:
    """Draw answers with their intervals, whose half widths are given, and say where they lie."""
    where, workload = positions(release), release.workload
    # As frames and files say them: without the weights of their levels.
    weights = answer_weights(release)
    values, half = release.values.reshape(-1) / weights, half / weights
    center = release.unbiased.reshape(-1) / weights if half.any() else values
    if len(values) <= FEW and not isinstance(workload, Filter):
        if isinstance(workload, Histogram):
            axes.bar(where.at, values, width=_spacing(where), color=ACCENT, alpha=0.55, linewidth=0)
        else:
            axes.plot(where.at, values, color=ACCENT, linewidth=0, marker="o", markersize=4)
        if half.any():
            axes.errorbar(where.at, center, yerr=half, fmt="none", ecolor=INK, elinewidth=1.0)
    else:
        order = drawing_order(workload, values)
        lower, upper = (center - half)[order], (center + half)[order]
        for part in part_slices(workload):
            axes.fill_between(where.at[part], lower[part], upper[part], color=ACCENT, alpha=0.22, linewidth=0)
            axes.plot(where.at[part], values[order][part], color=ACCENT, linewidth=1.5)
        axes.margins(x=0.01)
    if isinstance(workload, Union):
        mark_parts(axes, workload)
    return where


def _spacing(where: Positions) -> Any:
    """Width of a bar: most of the least distance."""
    if len(where.at) < 2:
        return 0.8
    return np.diff(np.sort(where.at)).min() * (1 if where.dates else 0.8)


def plot_comparison(comparison: Comparison, path: str | Path | None = None, *, ax: Any = None) -> Figure:
    """Draw the expected error of every mechanism as bars, the chosen one marked, the bound as a line.

    Args:
        comparison: What is drawn.
        path: Where to save the picture, None to only return it.
        ax: Axes to draw into, None for a figure of its own.

    Raises:
        MissingDependencyError: matplotlib is not installed.
        DataTypeError: `path` is no path.
        InvalidParameterError: The picture's format is unknown.
        InputFileError: The picture cannot be written.
    """
    names = [str(row["mechanism"]) for row in comparison.rows]
    objective = comparison.request.objective
    measured = "rmse" if objective == "mean" else "max_stderr"
    # What a sketch does to a single answer is not known.
    errors = [float(row["rmse"] if row[measured] is None else row[measured]) for row in comparison.rows]
    colors = [ACCENT if name == comparison.chosen else PALE for name in names]
    figure, axes = canvas_of(ax, 8.5, 1.9 + 0.36 * len(names))
    bound = _known(comparison.bound)
    least = min([*errors, *([bound.value] if bound is not None else [])])
    logarithmic = max(errors) > LOGARITHMIC * least
    if logarithmic:
        axes.set_xscale("log")
    bars = axes.barh(names, errors, color=colors, height=0.66)
    axes.set_xlim(least / 2.0 if logarithmic else 0.0, max(errors) * (3.0 if logarithmic else 1.15))
    axes.set_ylim(len(names) + 0.1, -0.6)
    numbers = [_of_kind(error, str(row["rmse_kind"])) for error, row in zip(errors, comparison.rows, strict=True)]
    texts = axes.bar_label(bars, numbers, padding=5, fontsize=9, color=INK)
    for text in texts:
        text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1.0})
    if bound is not None:
        _draw_bound(axes, bound, objective)
    measure = "root mean squared error of an answer" if objective == "mean" else "largest standard error of an answer"
    heading(axes, "Expected error of every mechanism", f"before any data is touched; auto takes {comparison.chosen}")
    dress(axes, measure + (" (log scale)" if logarithmic else ""), "")
    axes.grid(visible=False)
    axes.tick_params(axis="y", length=0)
    for label in axes.get_yticklabels():
        if label.get_text() == comparison.chosen:
            label.set_fontweight("bold")
    return save_figure(figure, path)


def _of_kind(error: float, kind: str) -> str:
    """Return the number on a bar, with what it is if not the error itself."""
    match kind:
        case "upper bound":
            return f"at most {short(error)}"
        case "noise only":
            return f"{short(error)} of noise alone"
        case _:
            return short(error)


def _draw_bound(axes: Axes, bound: Bound, objective: Objective) -> None:
    """Draw the bound as a line, its label below the bars on the side that has room."""
    axes.axvline(bound.value, color=SIGNAL, linewidth=1.2, linestyle=_DASHED, zorder=1.5)
    axes_x = axes.transData.transform((bound.value, 0.0))[0]
    right = axes_x > axes.transAxes.transform((0.55, 0.0))[0]
    axes.annotate(
        _no_better(bound, objective),
        xy=(bound.value, 0),
        xycoords=("data", "axes fraction"),
        xytext=(-6 if right else 6, 5),
        textcoords="offset points",
        ha="right" if right else "left",
        fontsize=9,
        color=SIGNAL,
    )
