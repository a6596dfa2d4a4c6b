"""Pictures of streams before they are opened: the standard error against the step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sordino.mechanisms.stream.fit import continual
from sordino.plots.style import canvas_of
from sordino.plots.tables import (
    ACCENT,
    MUTED,
    SIGNAL,
    describe,
    dress,
    heading,
    save_figure,
)
from sordino.workloads.base import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from sordino.mechanisms.stream.fit import StreamFit
    from sordino.plans.comparison import Comparison
    from sordino.plans.plan import StreamPlan

__all__ = ["EndLabel", "ErrorCurve", "error_curve", "label_ends", "plot_stream_comparison", "plot_stream_plan"]

# An octave of steps is drawn in so many parts, each by a sample of its steps.
_PARTS = 8
_SAMPLE = 32
# Their error goes up and down with the bits of the step: they are drawn in whole octaves.
_UNEVEN = ("binary-tree", "honaker-tree", "subtraction-tree")
_UNBOUNDED = 2**40
# A soft horizon is shown up to so many times its length.
_BEYOND = 16
# The picture of a comparison ends at so many times the error of the chosen mechanism.
_RANGE = 8.0
_WIDE = 12.0
_TREE = "#5b7f4a"
_PLAIN = "#8f6a9e"
_DASHED = (0, (5, 3))


@dataclass(frozen=True)
class ErrorCurve:
    """Standard errors around a number of steps.

    Attributes:
        steps: Where.
        middle: Root mean square over the steps around it.
        low: Least of them.
        high: Largest of them.
    """

    steps: Array
    middle: Array
    low: Array
    high: Array


def _samples(last: int, parts: int) -> list[NDArray[np.uint64]]:
    """Return samples of the steps from 1 to `last`: of so many parts of every octave, counted from the last."""
    # A fixed irrational turn keeps the samples off the periods of trees.
    turns = np.mod(np.arange(_SAMPLE) * 0.6180339887498949, 1.0)
    count = parts * last.bit_length()
    edges = [int(last * 2.0 ** (-k / parts)) for k in range(count, -1, -1)]
    ranges = [(a + 1, b) for a, b in pairwise(edges)]
    return [
        np.array(sorted({first + int(turn * (end - first + 1)) for turn in turns}), dtype=np.uint64)
        for first, end in ranges
        if first <= end
    ]


def error_curve(fitted: StreamFit, last: int) -> ErrorCurve:
    """Return the standard errors of the steps from 1 to `last`; of trees those of whole octaves."""
    groups = _samples(last, 1 if fitted.mechanism.strategy in _UNEVEN else _PARTS)
    groups.append(np.array([last], dtype=np.uint64))
    deviations = np.split(fitted.std(np.concatenate(groups)), np.cumsum([len(group) for group in groups])[:-1])
    if fitted.mechanism.strategy in _UNEVEN:
        deviations[-1] = deviations[-2]
    return ErrorCurve(
        np.array([math.sqrt(float(group[0]) * float(group[-1])) for group in groups]),
        np.array([math.sqrt(float(np.mean(part**2))) for part in deviations]),
        np.array([float(part.min()) for part in deviations]),
        np.array([float(part.max()) for part in deviations]),
    )


def _shown_steps(horizon: str, length: int | None, steps: int) -> int:
    if length is None:
        return min(_UNBOUNDED, steps)
    return min(_BEYOND * length, steps) if horizon == "soft" else length


def plot_stream_plan(plan: StreamPlan, path: str | Path | None = None, *, ax: Any = None) -> Figure:
    """Draw the standard error against the step, with the least rmse of Gaussian mechanisms if it is known.

    Args:
        plan: What is drawn.
        path: Where to save the picture, None to only return it.
        ax: Axes to draw into, None for a figure of its own.

    Raises:
        MissingDependencyError: matplotlib is not installed.
        DataTypeError: `path` is no path.
        InvalidParameterError: The picture's format is unknown.
        InputFileError: The picture cannot be written.
    """
    figure, axes = canvas_of(ax, 8.5, 4.8)
    asked = continual(plan.request)
    length = asked.length
    curve = error_curve(plan.fit, _shown_steps(asked.horizon, length, plan.fit.steps))
    axes.set_xscale("log")
    axes.fill_between(curve.steps, curve.low, curve.high, color=ACCENT, alpha=0.18, linewidth=0)
    axes.plot(curve.steps, curve.middle, color=ACCENT, linewidth=2.0, marker="o" if curve.steps[-1] == 1.0 else "")
    bound = plan.fit.bound
    top = max(float(curve.high.max()), bound.value if bound is not None else 0.0)
    axes.set_ylim(0.0, 1.15 * top)
    axes.margins(x=0.02)
    if bound is not None:
        axes.axhline(bound.value, color=SIGNAL, linewidth=1.2, linestyle=_DASHED)
        axes.annotate(
            f"least Gaussian rmse {bound.value:.4g}, here {plan.rmse:.4g}",
            xy=(0, bound.value),
            xycoords=("axes fraction", "data"),
            xytext=(6, 4),
            textcoords="offset points",
            va="bottom",
            fontsize=9,
            color=SIGNAL,
        )
    if asked.horizon == "soft" and length is not None:
        axes.axvline(length, color=MUTED, linewidth=1.0, linestyle=(0, (1, 2)))
        axes.annotate(
            f"made for {length:,} steps",
            xy=(length, 0),
            xycoords=("data", "axes fraction"),
            xytext=(-5, 6),
            textcoords="offset points",
            ha="right",
            fontsize=9,
            color=MUTED,
        )
    heading(
        axes,
        f"{describe(asked.workload)}: expected error",
        f"{plan.mechanism}; {plan.fit.promise} for {plan.unit.label}",
    )
    shaded = "; shaded: range within each octave" if plan.fit.mechanism.strategy in _UNEVEN else ""
    dress(axes, f"step (log scale{shaded})", "standard error of an answer")
    return save_figure(figure, path)


def _color(fitted: StreamFit) -> str:
    strategy = fitted.mechanism.strategy
    if "tree" in strategy:
        return _TREE
    return _PLAIN if strategy in ("identity", "output") else MUTED


def plot_stream_comparison(comparison: Comparison, path: str | Path | None = None, *, ax: Any = None) -> Figure:
    """Draw the standard error of every mechanism against the step, the chosen one emphasised.

    Mechanisms that are far off everywhere are named, not drawn.

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
    figure, axes = canvas_of(ax, 10.5, 5.6)
    last = max(comparison.steps)
    curves = {fitted.mechanism.name: error_curve(fitted, last) for fitted in comparison.fits}
    top = _RANGE * float(curves[comparison.chosen].middle.max())
    drawn = [fitted for fitted in comparison.fits if float(curves[fitted.mechanism.name].middle.min()) < top]
    labels = []
    for fitted in drawn:
        name, chosen = fitted.mechanism.name, fitted.mechanism.name == comparison.chosen
        color, curve = ACCENT if chosen else _color(fitted), curves[name]
        width, style = 2.4 if chosen else 1.2, (0, (4, 2)) if fitted.mechanism.law == "laplace" else "-"
        axes.plot(curve.steps, curve.middle, color=color, linewidth=width, linestyle=style, zorder=3 if chosen else 2)
        labels.append(EndLabel(name, float(curve.middle[-1]), color, chosen))
    if (bound := comparison.bound) is not None:
        axes.axhline(bound.value, color=SIGNAL, linewidth=1.2, linestyle=_DASHED, zorder=2.5)
        labels.append(EndLabel(f"least Gaussian rmse {bound.value:.4g}", bound.value, SIGNAL, False))
    logarithmic = _scale(axes, [curves[fitted.mechanism.name] for fitted in drawn], top)
    note = f"before any data is touched; auto takes {comparison.chosen}"
    heading(axes, f"{describe(continual(comparison.request).workload)}: expected error of every mechanism", note)
    absent = ", ".join(name for name in curves if name not in {fitted.mechanism.name for fitted in drawn})
    uneven = any(fitted.mechanism.strategy in _UNEVEN for fitted in drawn)
    below = [
        "step (log scale)",
        "trees: root mean square of each octave" * uneven,
        f"far above: {absent}" * bool(absent),
    ]
    dress(axes, "; ".join(filter(None, below)), f"standard error of an answer{' (log scale)' * logarithmic}")
    label_ends(axes, labels)
    return save_figure(figure, path)


def _scale(axes: Axes, curves: list[ErrorCurve], top: float) -> bool:
    """Choose the scales, and return whether the errors are on a logarithmic one."""
    axes.set_xscale("log")
    axes.margins(x=0.01)
    low = min(float(curve.middle.min()) for curve in curves)
    high = min(max(float(curve.middle.max()) for curve in curves), top)
    logarithmic = high > _WIDE * low
    if logarithmic:
        axes.set_yscale("log")
    axes.set_ylim(low / 1.25 if logarithmic else 0.0, 1.1 * high)
    return logarithmic


@dataclass(frozen=True)
class EndLabel:
    """What stands at the end of a curve.

    Attributes:
        text: The text.
        value: Where the curve ends.
        color: Color of the curve.
        bold: Whether the text is emphasised.
    """

    text: str
    value: float
    color: str
    bold: bool


def label_ends(axes: Axes, labels: list[EndLabel]) -> None:
    """Write labels right of the axes, each as near to the end of its curve as the others let it."""
    ordered = sorted(labels, key=lambda label: label.value)
    heights = axes.transData.transform([(1.0, value) for value in (*axes.get_ylim(), *(x.value for x in ordered))])[
        :, 1
    ]
    ends = np.minimum((heights[2:] - heights[0]) / (heights[1] - heights[0]), 1.0).tolist()
    for label, end, place in zip(ordered, ends, _spread(ends, 0.047, 1.0), strict=True):
        above = label.value > axes.get_ylim()[1]
        axes.annotate(
            f"{label.text} \N{UPWARDS ARROW}" if above else label.text,
            xy=(1.0, end),
            xycoords="axes fraction",
            xytext=(1.06, place),
            textcoords="axes fraction",
            va="center",
            fontsize=9,
            fontweight="bold" if label.bold else "normal",
            color=label.color,
            arrowprops={
                "arrowstyle": "-",
                "color": label.color,
                "linewidth": 0.7,
                "relpos": (0.0, 0.5),
                "shrinkA": 1.0,
                "shrinkB": 0.0,
            }
            if not above
            else None,
            annotation_clip=False,
        )


def _spread(places: list[float], gap: float, most: float) -> list[float]:
    """Move rising numbers apart by `gap` at least, each group around its middle, none above `most`."""
    groups: list[list[float]] = []
    for place in places:
        groups.append([place])
        while len(groups) > 1 and _bottom(groups[-1], gap, most) < _bottom(groups[-2], gap, most) + gap * len(
            groups[-2]
        ):
            last = groups.pop()
            groups[-1] += last
    return [_bottom(group, gap, most) + gap * k for group in groups for k in range(len(group))]


def _bottom(group: list[float], gap: float, most: float) -> float:
    """Return where a group begins that is centred on its mean, or ends at `most`."""
    height = gap * (len(group) - 1)
    return min(sum(group) / len(group) - height / 2.0, most - height)
