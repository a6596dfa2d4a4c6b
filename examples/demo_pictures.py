"""The demo's own pictures: releases with the truth beside them, which only public data permits."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

import sordino as so
from sordino.plots.streams import EndLabel, error_curve, label_ends
from sordino.plots.tables import ACCENT, INK, MUTED, SIGNAL, dates_axis, dress, heading, new_figure, save_figure

PUBLIC = "the truth is drawn because this data is public"


Release = so.Release | so.streams.StreamRelease


def promise(release: Release) -> str:
    """Return guarantee and mechanism in a line."""
    fit = release.fit
    return f"{fit.promise} for {fit.request.unit.label}, {fit.name}"


def _lines(axes: Axes, x: np.ndarray, released: np.ndarray, truth: np.ndarray) -> None:
    """Draw the truth as a thin line inside the broad one that was released."""
    axes.plot(x, released, color=ACCENT, alpha=0.4, linewidth=5.0, solid_joinstyle="round", label="released")
    axes.plot(x, truth, color=SIGNAL, linewidth=1.1, label="truth")


def _legend(axes: Axes, place: str) -> None:
    axes.legend(loc=place, frameon=False, fontsize=9, labelcolor=INK)


def _errors(axes: Axes, x: np.ndarray, release: Release, truth: np.ndarray, color: str) -> float:
    """Draw released minus true with its 95 % band, and return half the band's largest width."""
    interval = release.interval(0.95)
    half = ((interval.upper - interval.lower) / 2.0)[-len(truth) :]
    error = release.values[-len(truth) :] - truth
    axes.fill_between(x, -half, half, color=color, alpha=0.18, linewidth=0, label="95 % interval, known beforehand")
    axes.axhline(0.0, color=MUTED, linewidth=0.8)
    axes.plot(x, error, color=color, linewidth=1.0, label="released minus truth")
    return float(half.max())


def draw_series(
    path: Path,
    release: Release,
    truth: np.ndarray,
    hours: np.ndarray,
    *,
    title: str,
    y_label: str,
    skip: int = 0,
    pace: np.ndarray | float = 0.0,
) -> None:
    """Draw a year's series above, and its error enlarged below.

    Args:
        path: Where to save the picture.
        release: One answer for each hour.
        truth: Its true value.
        hours: The hours.
        title: Title.
        y_label: What an answer is.
        skip: Steps at the start that have no full window and are not drawn.
        pace: Public numbers that are taken off both, so that something can be seen.
    """
    figure = new_figure(10.0, 6.2)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
    x = hours[skip:]
    _lines(above, x, (release.values - pace)[skip:], (truth - pace)[skip:])
    heading(above, title, f"{promise(release)}; {PUBLIC}")
    dress(above, "", y_label)
    _legend(above, "lower right")
    _errors(below, x, release, truth[skip:], ACCENT)
    below.legend(
        loc="lower right",
        bbox_to_anchor=(1, 0.98),
        ncols=2,
        frameon=False,
        fontsize=9,
        labelcolor=INK,
        borderaxespad=0.0,
    )
    dress(below, "", "error, enlarged")
    dates_axis(below)
    below.margins(x=0.01)
    save_figure(figure, path)


def _visits_axis(axes: Axes, cells: int) -> None:
    axes.set_xticks([*range(0, cells - 1, 10), cells - 1], [*map(str, range(0, cells - 1, 10)), f"{cells - 1}+"])


def draw_distribution(path: Path, release: so.Release, truth: np.ndarray, title: str) -> None:
    """Draw a histogram over orders of magnitude: bars as released, intervals, true counts as marks."""
    figure = new_figure(10.0, 5.2)
    axes = figure.subplots()
    cells, interval = np.arange(len(truth)), release.interval(0.95)
    axes.set_yscale("symlog", linthresh=20, linscale=0.6)
    axes.bar(cells, release.values, width=0.82, color=ACCENT, alpha=0.5, linewidth=0, label="released")
    size = release.values - interval.lower, interval.upper - release.values
    axes.errorbar(cells, release.values, yerr=size, fmt="none", ecolor=INK, elinewidth=1.0, label="95 % interval")
    axes.plot(cells, truth, color=SIGNAL, linewidth=0, marker="_", markersize=8, markeredgewidth=2, label="truth")
    axes.axhline(0.0, color=MUTED, linewidth=0.8)
    heading(axes, title, f"{promise(release)}; {PUBLIC}")
    dress(axes, "visits", "person-years (linear below 20, then logarithmic)")
    axes.set_yticks([-20, 0, 20, 100, 1000])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.0f}"))
    axes.minorticks_off()
    _visits_axis(axes, len(truth))
    _legend(axes, "upper right")
    axes.margins(x=0.01)
    save_figure(figure, path)


def draw_two_ways(path: Path, own: so.Release, free: so.Release, truth: np.ndarray, title: str) -> None:
    """Draw answers left; right the errors of a plan of their own and of the free ones from the histogram."""
    figure = new_figure(11.5, 5.0)
    left, right = figure.subplots(1, 2, width_ratios=(1, 1))
    x = np.arange(len(truth))
    _lines(left, x, own.values, truth)
    left.plot(x, free.values, color=INK, linewidth=0, marker=".", markersize=3, label="free, from the histogram")
    heading(left, title, f"{promise(own)}; truth is public")
    dress(left, "visits", "person-years")
    _legend(left, "center right")
    wide = _errors(right, x, free, truth, MUTED)
    narrow = _errors(right, x, own, truth, ACCENT)
    right.set_ylim(-1.3 * wide, 1.3 * wide)
    heading(right, "Error: what a plan of its own gains", f"95 % interval up to ± {narrow:.1f} instead of ± {wide:.1f}")
    dress(right, "visits", "released minus truth")
    for axes in (left, right):
        _visits_axis(axes, len(truth))
        axes.margins(x=0.01)
    save_figure(figure, path)


def draw_votes(path: Path, release: so.Release, table: int, truth: np.ndarray) -> None:
    """Draw a table of seven parties by two votes: bars as released and projected, true counts as marks.

    Args:
        path: Where to save the picture.
        release: Tables of two questions.
        table: Number of the table among them.
        truth: The true table.
    """
    figure = new_figure(10.0, 5.0)
    axes = figure.subplots()
    sizes = [int(np.prod(shape)) for shape in release.workload.table_shapes]
    own = slice(sum(sizes[:table]), sum(sizes[: table + 1]))
    interval = release.interval(0.95)
    values, center = (array[own].reshape(truth.shape) for array in (release.values, release.unbiased))
    half = ((interval.upper - interval.lower) / 2.0)[own].reshape(truth.shape)
    for vote, (name, color) in enumerate((("Clinton", ACCENT), ("Dole", MUTED))):
        x = np.arange(len(truth)) + 0.4 * (vote - 0.5)
        axes.bar(x, values[:, vote], width=0.36, color=color, alpha=0.6, linewidth=0, label=f"{name}, released")
        bars = {"yerr": half[:, vote], "fmt": "none", "ecolor": INK, "elinewidth": 1.0}
        axes.errorbar(x, center[:, vote], **bars, label="95 % interval, before projection" if vote else None)
        mark = {"color": SIGNAL, "linewidth": 0, "marker": "_", "markersize": 16, "markeredgewidth": 2}
        axes.plot(x, truth[:, vote], **mark, label="truth" if vote else None)
    axes.axhline(0.0, color=MUTED, linewidth=0.8)
    heading(axes, "Expected vote in 1996 by party, one of six tables", f"{promise(release)}; {PUBLIC}")
    dress(axes, "", "people")
    parties = ["strong\nDemocrat", "weak\nDemocrat", "leaning\nDemocrat", "independent"]
    parties += ["leaning\nRepublican", "weak\nRepublican", "strong\nRepublican"]
    axes.set_xticks(np.arange(len(truth)), parties)
    _legend(axes, "upper center")
    save_figure(figure, path)


def square_root_tuned(steps: int) -> np.ndarray:
    """Return `sum of f_k², k < t` for all t up to `steps`, f_k the series of (1 - x)^(-1/2).

    It is the standard error at step t over the noise multiplier, of the square-root mechanism for exactly t steps.
    """
    k = np.arange(1, steps)
    return np.cumsum(np.concatenate([[1.0], np.cumprod(1.0 - 0.5 / k)]) ** 2)


def draw_unbounded(path: Path, comparison: so.Comparison, last: int, guarantee: str) -> None:
    """Draw counters without a horizon left; right, how much more they err than one that knew it would end there.

    Args:
        path: Where to save the picture.
        comparison: Of a running total without a length.
        last: The last step drawn.
        guarantee: What the whole stream guarantees.
    """
    figure = new_figure(13.0, 5.0)
    left, right = figure.subplots(1, 2, width_ratios=(1, 1))
    gaussian = {fitted.mechanism.strategy: fitted for fitted in comparison.fits if fitted.mechanism.law == "gaussian"}
    colors = {"blt": ACCENT, "honaker-tree": "#5b7f4a", "binary-tree": MUTED, "smooth-tree": "#8f6a9e"}
    knowing = gaussian["blt"].ratio * square_root_tuned(last)
    left.set_xscale("log")
    right.set_xscale("log")
    left_labels, right_labels = [], []
    for strategy, color in colors.items():
        curve, width = error_curve(gaussian[strategy], last), 2.4 if strategy == "blt" else 1.2
        ratios = curve.middle / knowing[np.rint(curve.steps).astype(int) - 1]
        left.plot(curve.steps, curve.middle, color=color, linewidth=width)
        right.plot(curve.steps, ratios, color=color, linewidth=width)
        left_labels.append(EndLabel(strategy, float(curve.middle[-1]), color, strategy == "blt"))
        right_labels.append(EndLabel(strategy, float(ratios[-1]), color, strategy == "blt"))
    steps = np.unique(np.geomspace(1, last, 200).astype(int))
    left.plot(steps, knowing[steps - 1], color=SIGNAL, linewidth=1.4, linestyle=(0, (5, 3)))
    left_labels.append(EndLabel("horizon known", float(knowing[-1]), SIGNAL, False))
    right.axhline(1.0, color=SIGNAL, linewidth=1.4, linestyle=(0, (5, 3)))
    left.margins(x=0.02)
    right.margins(x=0.02)
    left.set_ylim(0.0, None)
    right.set_ylim(0.0, 6.0)
    heading(left, "A counter that never ends: error at every step", f"the whole stream: {guarantee}; trees by octaves")
    heading(right, "Over a counter that knew its last step", "square root made for exactly t steps = 1")
    dress(left, "step t (log scale)", "standard error of the count")
    dress(right, "step t (log scale)", "ratio of standard errors")
    label_ends(left, left_labels)
    label_ends(right, right_labels)
    save_figure(figure, path)
