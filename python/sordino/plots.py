"""Pictures of plans, releases and comparisons. They show public facts and published answers, never the data.

matplotlib is imported when a picture is made; nothing here touches `pyplot` or another global state.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sordino.bounds import Bound, spectrum
from sordino.errors import DataTypeError, InputFileError, InvalidParameterError, MissingDependencyError
from sordino.workloads import (
    AllRanges,
    BandPass,
    Difference,
    ExponentialSmoothing,
    Filter,
    GroupConvolution,
    Histogram,
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

    from sordino.planning import Comparison
    from sordino.plans import Plan
    from sordino.release import Release

__all__ = [
    "ACCENT",
    "INK",
    "MUTED",
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

INK = "#22303c"
MUTED = "#7b8794"
PALE = "#c9d1d8"
ACCENT = "#1d6f8a"
SIGNAL = "#c4552d"

_DPI = 160
# Up to this many answers each one gets a mark of its own, and a histogram gets bars.
_FEW = 120
# Bars over more than this range are drawn on a logarithmic axis.
_LOGARITHMIC = 30.0


def new_figure(width: float = 9.0, height: float = 4.8) -> Figure:
    """Return an empty figure that belongs to no window and no global state.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - optional extra
    except ImportError:
        raise MissingDependencyError("pictures need matplotlib: pip install 'sordino[plot]'") from None
    figure = Figure(figsize=(width, height), dpi=_DPI, facecolor="white", layout="constrained")
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)  # type: ignore[union-attr,call-arg] # it has one
    return figure


def check_picture(path: object) -> Path:
    """Return the path if a picture can be made and saved under this name, before anything is spent on it.

    Raises:
        MissingDependencyError: matplotlib is not installed.
        DataTypeError: `path` is no path.
        InvalidParameterError: The format is unknown.
    """
    if not isinstance(path, str | Path):
        raise DataTypeError("the path of a picture must be a string or a Path")
    supported = new_figure().canvas.get_supported_filetypes()
    if Path(path).suffix.lower().lstrip(".") not in supported:
        raise InvalidParameterError(f"the name of a picture must end in one of {', '.join(sorted(supported))}")
    return Path(path)


def save_figure(figure: Figure, path: object) -> Figure:
    """Write the figure unless `path` is None; the suffix says the format, such as `.png` or `.svg`.

    Raises:
        DataTypeError: `path` is no path.
        InvalidParameterError: The format is unknown.
        InputFileError: The file cannot be written.
    """
    if path is None:
        return figure
    target = check_picture(path)
    try:
        figure.savefig(target, dpi=_DPI)
    except OSError as error:
        raise InputFileError(f"the picture cannot be written: {error.strerror}") from None
    return figure


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
        case AllRanges():
            return "Sums over all ranges"
        case Matrix():
            return "Linear queries"
        case Union(parts=(part,)):
            return describe(part)
        case Union(parts=parts):
            return f"{len(parts)} workloads together"
        case Kronecker(factors=factors):
            return f"Product of {len(factors)} workloads"
        case _:
            return type(workload).__name__


def heading(axes: Axes, title: str, subtitle: str = "") -> None:
    """Write title and subtitle above the axes, flush left."""
    axes.set_title(title, loc="left", fontsize=13, fontweight="bold", color=INK, pad=26 if subtitle else 10)
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


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000.0 else f"{value:.4g}"


def _on_line(axes: Axes, y: float, text: str, *, above: bool, color: str) -> None:
    """Write a direct label on the middle of a horizontal line: at the ends of a series errors bend."""
    axes.annotate(
        text,
        xy=(0.5, y),
        xycoords=("axes fraction", "data"),
        xytext=(0, 5 if above else -5),
        textcoords="offset points",
        ha="center",
        va="bottom" if above else "top",
        fontsize=9,
        color=color,
    )


@dataclass(frozen=True)
class Positions:
    """Where the answers lie along the horizontal axis.

    Attributes:
        at: Numbers or dates, one for each answer.
        label: What the axis shows.
        names: Names of the positions, if they are neither numbers nor dates.
        dates: Whether `at` are dates.
    """

    at: NDArray[Any]
    label: str
    names: tuple[str, ...] | None = None
    dates: bool = False


def positions(release: Release) -> Positions:
    """Return where the answers of a release lie: at their labels if the input had any, else by number."""
    count = release.values.size
    plain = Positions(np.arange(count), _axis_name(release.workload))
    if release.index is None or len(release.index) != count:
        return plain
    labels = np.asarray(release.index)
    if labels.dtype.kind in "iuf":
        return Positions(labels, "")
    try:
        return Positions(labels.astype("datetime64[us]"), "", dates=True)
    except (TypeError, ValueError):
        names = tuple(str(label) for label in labels)
        return Positions(plain.at, "", names=names if count <= _FEW else None)


def _axis_name(workload: Workload) -> str:
    match workload:
        case Filter():
            return "step"
        case Histogram() | GroupConvolution():
            return "cell"
        case Marginals():
            return "cell of the tables, one after the other"
        case _:
            return "answer"


def dates_axis(axes: Axes) -> None:
    """Write dates along the horizontal axis, no more of each than is needed."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter  # noqa: PLC0415 - optional extra

    locator = AutoDateLocator(maxticks=9)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


def _place(axes: Axes, where: Positions) -> None:
    """Draw the horizontal axis."""
    if where.dates:
        dates_axis(axes)
    elif where.names is not None:
        step = -(-len(where.names) // 24)
        axes.set_xticks(where.at[::step], where.names[::step])
        if max(len(name) for name in where.names[::step]) * len(where.names) / step > 100:
            axes.tick_params(axis="x", labelrotation=45)


def plot_plan(plan: Plan, path: str | Path | None = None) -> Figure:
    """Draw the expected standard error of every answer, the bound, and the spectrum of a convolution.

    Args:
        plan: What is drawn.
        path: Where to save the picture, None to only return it.

    Raises:
        MissingDependencyError: matplotlib is not installed.
        DataTypeError: `path` is no path.
        InvalidParameterError: The picture's format is unknown.
        InputFileError: The picture cannot be written.
    """
    has_spectrum = isinstance(plan.workload, Filter | GroupConvolution)
    figure = new_figure(11.5 if has_spectrum else 8.0, 4.8)
    panels = figure.subplots(1, 2, width_ratios=(3, 2)) if has_spectrum else [figure.subplots()]
    _draw_errors(panels[0], plan)
    if has_spectrum:
        _draw_spectrum(panels[1], plan.workload)
    return save_figure(figure, path)


def _draw_errors(axes: Axes, plan: Plan) -> None:
    errors = plan.stderr.reshape(-1)
    few = len(errors) <= _FEW
    axes.plot(errors, color=ACCENT, linewidth=0.0 if few else 1.8, marker="o" if few else "", markersize=4)
    bound = plan.gaussian_bound
    axes.set_ylim(0.0, 1.22 * max(plan.max_stderr, bound.value if bound is not None else 0.0))
    axes.margins(x=0.02)
    axes.axhline(plan.rmse, color=ACCENT, linewidth=1.0, alpha=0.5)
    above = bound is None or plan.rmse >= bound.value
    edge = plan.max_stderr if above else plan.rmse
    _on_line(axes, edge, f"rmse {_number(plan.rmse)}", above=above, color=ACCENT)
    if bound is not None:
        axes.axhline(bound.value, color=SIGNAL, linewidth=1.2, linestyle=(0, (5, 3)))
        _on_line(axes, bound.value, _no_better(bound), above=not above, color=SIGNAL)
    heading(axes, f"{describe(plan.workload)}: expected error", f"{plan.mechanism}; {_promise(plan)}")
    dress(axes, _axis_name(plan.workload), "standard error of an answer")


def _no_better(bound: Bound) -> str:
    return f"least Gaussian rmse {_number(bound.value)}"


def _promise(plan: Plan) -> str:
    """The guarantee without the words around it."""
    return f"{plan.promise} for {plan.unit.label}"


def _draw_spectrum(axes: Axes, workload: Workload) -> None:
    found = spectrum(workload)
    gains = found.magnitudes[found.magnitudes > 0.0]
    ranks = np.arange(1, len(gains) + 1)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.plot(ranks, gains, color=ACCENT, linewidth=1.8, marker="o" if len(gains) <= _FEW else "", markersize=3)
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
        note = f"dotted: at most {_number(found.constant)} / rank$^{{{found.exponent:.2f}}}$"
    heading(axes, "Spectrum of the filter", note)
    dress(axes, "frequency, strongest first", "gain")


def plot_release(release: Release, path: str | Path | None = None, *, level: float = 0.95) -> Figure:
    """Draw the published answers with their confidence intervals. The truth is not drawn: it is not known here.

    Args:
        release: What is drawn; `values` as the line, the intervals around `unbiased`.
        path: Where to save the picture, None to only return it.
        level: Level of each interval.

    Raises:
        MissingDependencyError: matplotlib is not installed.
        DataTypeError: `path` is no path.
        InvalidParameterError: The level is out of range, or the picture's format is unknown.
        InputFileError: The picture cannot be written.
    """
    interval = release.interval(level)
    lower, upper = interval.lower.reshape(-1), interval.upper.reshape(-1)
    figure = new_figure(9.5, 4.8)
    axes = figure.subplots()
    where = positions(release)
    values = release.values.reshape(-1)
    if len(values) > _FEW or isinstance(release.workload, Filter):
        axes.fill_between(where.at, lower, upper, color=ACCENT, alpha=0.22, linewidth=0)
        axes.plot(where.at, values, color=ACCENT, linewidth=1.5)
        axes.margins(x=0.01)
    else:
        center = release.unbiased.reshape(-1)
        if isinstance(release.workload, Histogram):
            axes.bar(where.at, values, width=_spacing(where), color=ACCENT, alpha=0.55, linewidth=0)
        else:
            axes.plot(where.at, values, color=ACCENT, linewidth=0, marker="o", markersize=4)
        axes.errorbar(where.at, center, yerr=(center - lower, upper - center), fmt="none", ecolor=INK, elinewidth=1.0)
    _place(axes, where)
    half = float(np.max(upper - lower)) / 2.0
    bottom, top = axes.get_ylim()
    hidden = ", too small to be seen" if 2.0 * half < 0.006 * (top - bottom) else ""
    warning = "" if release.private else "KNOWN NOISE, NOT PRIVATE; "
    heading(
        axes,
        f"{describe(release.workload)}, released",
        f"{warning}{_promise(release.plan)}; {100 * level:g} % interval ± {half:.3g}{hidden}",
    )
    dress(axes, where.label, "released answer")
    return save_figure(figure, path)


def _spacing(where: Positions) -> Any:
    """Width of a bar: most of the least distance."""
    if len(where.at) < 2:
        return 0.8
    return np.diff(np.sort(where.at)).min() * (1 if where.dates else 0.8)


def plot_comparison(comparison: Comparison, path: str | Path | None = None) -> Figure:
    """Draw the expected error of every mechanism as bars, the chosen one marked, the bound as a line.

    Args:
        comparison: What is drawn.
        path: Where to save the picture, None to only return it.

    Raises:
        MissingDependencyError: matplotlib is not installed.
        DataTypeError: `path` is no path.
        InvalidParameterError: The picture's format is unknown.
        InputFileError: The picture cannot be written.
    """
    names = [str(row["mechanism"]) for row in comparison.rows]
    errors = [float(row["rmse"]) for row in comparison.rows]
    colors = [ACCENT if name == comparison.chosen else PALE for name in names]
    figure = new_figure(8.5, 1.9 + 0.36 * len(names))
    axes = figure.subplots()
    bound = comparison.gaussian_bound
    least = min([*errors, *([bound.value] if bound is not None else [])])
    logarithmic = max(errors) > _LOGARITHMIC * least
    if logarithmic:
        axes.set_xscale("log")
    bars = axes.barh(names, errors, color=colors, height=0.66)
    axes.set_xlim(least / 2.0 if logarithmic else 0.0, max(errors) * (3.0 if logarithmic else 1.15))
    axes.set_ylim(len(names) + 0.1, -0.6)
    texts = axes.bar_label(bars, [_number(error) for error in errors], padding=5, fontsize=9, color=INK)
    for text in texts:
        text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1.0})
    if bound is not None:
        _draw_bound(axes, bound)
    heading(axes, "Expected error of every mechanism", f"before any data is touched; auto takes {comparison.chosen}")
    dress(axes, "root mean squared error of an answer" + (" (log scale)" if logarithmic else ""), "")
    axes.grid(visible=False)
    axes.tick_params(axis="y", length=0)
    for label in axes.get_yticklabels():
        if label.get_text() == comparison.chosen:
            label.set_fontweight("bold")
    return save_figure(figure, path)


def _draw_bound(axes: Axes, bound: Bound) -> None:
    """Draw the bound as a line, its label below the bars on the side that has room."""
    axes.axvline(bound.value, color=SIGNAL, linewidth=1.2, linestyle=(0, (5, 3)), zorder=1.5)
    axes_x = axes.transData.transform((bound.value, 0.0))[0]
    right = axes_x > axes.transAxes.transform((0.55, 0.0))[0]
    axes.annotate(
        _no_better(bound),
        xy=(bound.value, 0),
        xycoords=("data", "axes fraction"),
        xytext=(-6 if right else 6, 5),
        textcoords="offset points",
        ha="right" if right else "left",
        fontsize=9,
        color=SIGNAL,
    )
