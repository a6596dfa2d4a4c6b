"""The look of all pictures: colours, figures, headings, axes, and what a workload is called in a title.

matplotlib is imported when a picture is made; nothing here touches `pyplot` or another global state.
"""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from sordino._support.checks import path_of
from sordino._support.files import atomic_write
from sordino.errors import DataTypeError, InvalidParameterError, MissingDependencyError
from sordino.workloads import (
    AllRanges,
    BandPass,
    Difference,
    ExponentialSmoothing,
    Filter,
    GroupBy,
    GroupConvolution,
    Histogram,
    Intervals,
    Kronecker,
    Marginals,
    Matrix,
    MovingAverage,
    PolynomialDecay,
    RunningAverage,
    RunningSum,
    SlidingWindow,
    Union,
    Workload,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "ACCENT",
    "DPI",
    "FEW",
    "INK",
    "LOGARITHMIC",
    "MUTED",
    "PALE",
    "SIGNAL",
    "canvas_of",
    "check_picture",
    "dates_axis",
    "describe",
    "dress",
    "heading",
    "literal",
    "new_figure",
    "on_line",
    "save_figure",
    "short",
]

INK = "#22303c"
MUTED = "#7b8794"
PALE = "#c9d1d8"
ACCENT = "#1d6f8a"
SIGNAL = "#c4552d"

DPI = 160
_DPI_SHOWN = 96
# Up to this many answers each one gets a mark of its own, and a histogram gets bars.
FEW = 120
# Bars over more than this range are drawn on a logarithmic axis.
LOGARITHMIC = 30.0


def new_figure(width: float = 9.0, height: float = 4.8) -> Figure:
    """Return an empty figure that belongs to no window and no global state.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - optional extra
    except ImportError:
        raise MissingDependencyError("pictures need matplotlib: pip install 'sordino[plot]'") from None
    figure = _shown(Figure)(figsize=(width, height), dpi=DPI, facecolor="white", layout="constrained")
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)  # type: ignore[union-attr,call-arg] # it has one
    return figure


@cache
def _shown(kind: type[Figure]) -> type[Figure]:
    """Return figures that notebooks display by themselves: no backend shows what belongs to no window."""

    class Shown(kind):  # type: ignore[misc,valid-type] # made where matplotlib is
        def _repr_png_(self) -> bytes:
            buffer = io.BytesIO()
            self.savefig(buffer, dpi=_DPI_SHOWN, format="png")
            return buffer.getvalue()

    return Shown


def canvas_of(ax: Any, width: float, height: float) -> tuple[Figure, Axes]:
    """Return the caller's axes with their figure, or those of a new one.

    Raises:
        DataTypeError: They are no axes of matplotlib.
        MissingDependencyError: matplotlib is not installed.
    """
    if ax is None:
        figure = new_figure(width, height)
        return figure, figure.subplots()
    if not (hasattr(ax, "get_figure") and hasattr(ax, "set_xlim")):
        raise DataTypeError("ax must be axes of matplotlib")
    return ax.get_figure(root=True), ax


def check_picture(path: object) -> Path:
    """Return the path if a picture can be made and saved under this name, before anything is spent on it.

    Raises:
        MissingDependencyError: matplotlib is not installed.
        DataTypeError: `path` is no path.
        InvalidParameterError: The format is unknown.
    """
    path = path_of(path, "the path of a picture")
    supported = new_figure().canvas.get_supported_filetypes()
    if path.suffix.lower().lstrip(".") not in supported:
        raise InvalidParameterError(f"the name of a picture must end in one of {', '.join(sorted(supported))}")
    return path


def save_figure(figure: Figure, path: object, *, private: bool = False) -> Figure:
    """Write the figure unless `path` is None; the suffix says the format, such as `.png` or `.svg`.

    Where it shows private data, only its owner may read it.

    Raises:
        DataTypeError: `path` is no path.
        InvalidParameterError: The format is unknown.
        InputFileError: The file cannot be written.
    """
    if path is None:
        return figure
    target = check_picture(path)
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=DPI, format=target.suffix.lower().lstrip("."))
    atomic_write(target, buffer.getvalue(), "picture", private=private)
    return figure


def literal(text: object) -> str:
    """Return text of a user as it is written: what is between two dollar signs is no formula."""
    return str(text).replace("$", r"\$")


def describe(workload: Workload) -> str:  # noqa: PLR0912 - one case for each workload
    """Return what a workload is, in words for a title."""
    match workload:
        case SlidingWindow(window=window):
            return f"Total of the last {window} steps"
        case MovingAverage(window=window):
            return f"{window}-step moving average"
        case RunningSum():
            return "Running total"
        case RunningAverage():
            return "Running average"
        case ExponentialSmoothing(decay=decay):
            return f"Exponential smoothing (decay {decay:g})"
        case PolynomialDecay(exponent=exponent):
            return f"Polynomially decaying sum (exponent {exponent:g})"
        case Difference(order=order):
            return "Differences" if order == 1 else f"Differences of order {order}"
        case BandPass(low=low, high=high):
            return f"Band-pass filter ({low:g} to {high:g} cycles per step)"
        case Filter():
            return f"Filter with {len(workload.kernel)} taps"
        case GroupConvolution():
            return "Convolution over a group"
        case Histogram():
            return "Histogram"
        case Marginals(sets=sets):
            return f"{len(sets)} marginal table{'s' if len(sets) != 1 else ''}"
        case Matrix():
            return "Linear queries"
        case Intervals(first=first):
            return f"Sums over {len(first)} interval{'s' if len(first) != 1 else ''}"
        case AllRanges():
            return "Sums over all ranges"
        case GroupBy(labels=labels):
            return f"Sums over groups on {len(labels)} level{'s' if len(labels) != 1 else ''}"
        case Union(parts=(part,)):
            return describe(part)
        case Union(parts=parts):
            return f"{len(parts)} workloads together"
        case Kronecker(factors=factors):
            return f"Product of {len(factors)} workloads"
        case _:
            return type(workload).__name__


# Points that a letter of a subtitle is wide, about.
_LETTER = 4.5


def heading(axes: Axes, title: str, subtitle: str = "") -> None:
    """Write title and subtitle above the axes, flush left; the subtitle in as many lines as they are wide for."""
    inches = axes.get_position().width * axes.get_figure(root=True).get_figwidth()  # type: ignore[union-attr]
    subtitle = fill(subtitle, width=max(int(inches * 72.0 / _LETTER), 24))
    pad = 10 if not subtitle else 15 + 11 * (subtitle.count("\n") + 1)
    axes.set_title(title, loc="left", fontsize=13, fontweight="bold", color=INK, pad=pad)
    if subtitle:
        note = axes.annotate(
            subtitle,
            xy=(0, 1),
            xycoords="axes fraction",
            xytext=(0, 9),
            textcoords="offset points",
            fontsize=9,
            color=MUTED,
            va="bottom",
        )
        note.set_in_layout(False)


def dress(axes: Axes, x_label: str, y_label: str) -> None:
    """Label the axes and take away what does not help: the box, heavy ticks, a grid across."""
    from matplotlib.ticker import ScalarFormatter  # noqa: PLC0415 - optional extra

    axes.set_xlabel(x_label, fontsize=10, color=INK, labelpad=6)
    axes.set_ylabel(y_label, fontsize=10, color=INK, labelpad=6)
    axes.tick_params(labelsize=9, colors=INK, length=3, color=PALE)
    axes.grid(axis="y", color=PALE, linewidth=0.6, alpha=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(PALE)
    if max(abs(limit) for limit in axes.get_ylim()) >= 10_000 and axes.get_yscale() == "linear":
        axes.yaxis.set_major_formatter("{x:,.0f}")
    if max(map(abs, axes.get_xlim())) >= 10_000 and isinstance(axes.xaxis.get_major_formatter(), ScalarFormatter):
        axes.xaxis.set_major_formatter("{x:,.0f}")


def short(value: float) -> str:
    """Return a number as it stands in a picture."""
    return f"{value:,.0f}" if value >= 1000.0 else f"{value:.4g}"


def on_line(axes: Axes, y: float, text: str, *, above: bool, color: str, x: float = 0.5) -> None:
    """Write a direct label on a horizontal line, at a part of its width: the middle, since series bend at the ends.

    At 1 it stands beyond the right end.
    """
    axes.annotate(
        text if x < 1.0 else fill(text, 16),
        xy=(x, y),
        xycoords=("axes fraction", "data"),
        xytext=(6 if x == 1.0 else 0, 5 if above else -5),
        textcoords="offset points",
        ha="center" if x == 0.5 else "right" if 0.5 < x < 1.0 else "left",
        va="bottom" if above else "top",
        fontsize=9,
        color=color,
    )


def dates_axis(axes: Axes) -> None:
    """Write dates along the horizontal axis, no more of each than is needed."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter  # noqa: PLC0415 - optional extra

    locator = AutoDateLocator(maxticks=9)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
