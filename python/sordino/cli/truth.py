"""The true answers, for pictures that are not private. Only `--insecure-show-truth` gets here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import sordino as so
from sordino.errors import UnsupportedMechanismError
from sordino.plots.queries import drawing_order
from sordino.plots.tables import SIGNAL, positions
from sordino.workloads import Filter
from sordino.workloads.base import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_truth", "true_answers"]


def true_answers(plan: so.Plan, cells: NDArray[Any]) -> Array:
    """Return what the plan's workload answers without noise, after clamping.

    Raises:
        UnsupportedMechanismError: The workload is neither a filter, a histogram nor a matrix.
    """
    bound = plan.fit.domain.max_value
    series = np.clip(np.asarray(cells, dtype=np.float64).reshape(-1), -bound, bound)
    match plan.workload:
        case Filter() as workload:
            return _filtered(workload, series)
        case so.SortedHistogram():
            return np.sort(series)
        case so.Histogram():
            return series
        case so.Matrix() | so.workloads.Intervals() | so.Kronecker(flat=True) as workload:
            return workload.core.apply(series)
        case _:
            raise UnsupportedMechanismError("the truth is drawn for filters, histograms and matrices only")


def _filtered(workload: Filter, series: Array) -> Array:
    n, taps = workload.steps, workload.kernel
    ring = n if workload.boundary == "circular" else n + len(taps)
    answers = np.fft.irfft(np.fft.rfft(series, ring) * np.fft.rfft(taps, ring), ring)
    first = workload.center + workload.first_step
    return np.asarray(answers[first : workload.center + n])


def draw_truth(figure: Figure, release: so.Release, truth: Array) -> None:
    """Draw the true answers over a picture of their release, and say on the picture that it is not private."""
    axes = figure.axes[0]
    where, order = positions(release).at, drawing_order(release.workload, release.values.reshape(-1))
    few = len(truth) < 200
    axes.plot(
        where, truth[order], color=SIGNAL, linewidth=0.0 if few else 0.9, marker="." if few else "", label="truth"
    )
    axes.annotate(
        "NOT PRIVATE: orange is the truth",
        xy=(0.98, 0.5),
        xycoords="axes fraction",
        ha="right",
        va="center",
        bbox={"facecolor": "white", "edgecolor": SIGNAL, "pad": 4.0},
        fontsize=9,
        fontweight="bold",
        color=SIGNAL,
    )
