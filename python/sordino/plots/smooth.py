"""Pictures of released summaries: the density of one or two coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sordino._support.checks import integer
from sordino.errors import InvalidParameterError
from sordino.plots.style import ACCENT, INK, MUTED, PALE, canvas_of, check_picture, dress, heading, save_figure, short
from sordino.workloads.smooth.cube import grid_points

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sordino.releases.smooth.release import SmoothRelease

__all__ = ["plot_density"]

_LEVEL = 0.95
_CURVE = 241
_SIDE = 41
_STEPS = 9
_SQUARE = 6.4


def plot_density(
    release: SmoothRelease,
    path: str | Path | None = None,
    *,
    axes: Sequence[int] | None = None,
    bandwidth: object = None,
    names: Sequence[str] | None = None,
    ax: Any = None,
) -> Figure:
    """Draw the density of one coordinate with its band, or of two as a map; the others are summed out.

    Raises:
        MissingDependencyError: matplotlib is not installed.
        InvalidParameterError: There are no such coordinates or not one or two, or another number of names.
        UnsupportedMechanismError: Only declared queries were measured.
        InputFileError: The picture cannot be written.
    """
    cube = release.fit.workload.cube
    chosen = (
        tuple(range(min(cube.dimension, 2))) if axes is None else tuple(integer("an axis", j, least=0) for j in axes)
    )
    if not 1 <= len(chosen) <= 2:
        raise InvalidParameterError("a picture shows one coordinate or two: give axes")
    names = release.names if names is None else names
    if names is not None and len(names) != cube.dimension:
        raise InvalidParameterError(f"there must be {cube.dimension} names, one a coordinate")
    if max(chosen) >= cube.dimension:
        raise InvalidParameterError(f"axes must be from 0 to {cube.dimension - 1}")
    if path is not None:
        check_picture(path)
    labels = [f"coordinate {j}" if names is None else names[j] for j in chosen]
    draw = _curve if len(chosen) == 1 else _map
    return save_figure(draw(release, chosen, bandwidth, labels, ax), path)


def _subtitle(release: SmoothRelease) -> str:
    after = f", {', '.join(release.post_processing)}" if release.post_processing else ""
    points = "" if release.fit.count_is_public else "about "
    return f"{release.fit.name}{after} \N{MIDDLE DOT} {points}{short(release.points)} points"


def _curve(release: SmoothRelease, chosen: tuple[int, ...], bandwidth: object, labels: list[str], ax: Any) -> Figure:
    low, high = release.fit.workload.bounds[chosen[0]]
    x = np.linspace(low, high, _CURVE)
    answers = release.density(x[:, None], bandwidth=bandwidth, axes=chosen)
    outer = answers.interval(_LEVEL)
    below, above = replace(answers, truncation=np.zeros(_CURVE)).interval(_LEVEL)
    figure, plot = canvas_of(ax, 9.0, 4.8)
    plot.fill_between(x, *outer, color=ACCENT, alpha=0.08, linewidth=0)
    plot.fill_between(x, below, above, color=ACCENT, alpha=0.2, linewidth=0)
    plot.plot(x, answers.values, color=ACCENT, linewidth=1.8)
    plot.axhline(0.0, color=PALE, linewidth=0.8)
    plot.set_xlim(low, high)
    # What noise puts below zero is seen, but does not set the scale.
    top = float(np.max(above))
    plot.set_ylim(max(float(np.min(below)), -0.25 * top) * 1.05, top * 1.05)
    dress(plot, labels[0], f"share of points per unit of {labels[0]}")
    heading(
        plot,
        f"Density of {labels[0]}",
        f"{_subtitle(release)} \N{MIDDLE DOT} pointwise {_LEVEL:.0%} bands: noise; pale: truncation too",
    )
    return figure


def _map(release: SmoothRelease, chosen: tuple[int, ...], bandwidth: object, labels: list[str], ax: Any) -> Figure:
    from matplotlib.colors import LinearSegmentedColormap  # noqa: PLC0415 - optional extra

    bounds = [release.fit.workload.bounds[j] for j in chosen]
    sides = [np.linspace(low, high, _SIDE) for low, high in bounds]
    answers = release.density(grid_points(sides), bandwidth=bandwidth, axes=chosen)
    # Noise reaches below zero, a density does not.
    values = np.maximum(answers.values, 0.0).reshape(_SIDE, _SIDE).T
    largest = float(values.max()) or 1.0
    figure, plot = canvas_of(ax, _SQUARE + 1.2, _SQUARE)
    shades = LinearSegmentedColormap.from_list("sordino", ["white", ACCENT, INK])
    levels = np.linspace(0.0, largest, _STEPS + 1)
    drawn = plot.contourf(sides[0], sides[1], values, levels=levels, cmap=shades)
    plot.contour(sides[0], sides[1], values, levels=levels[1:-1], colors="white", linewidths=0.5, alpha=0.6)
    noise = float(np.sqrt(np.mean(answers.stderr**2)))
    dress(plot, *labels)
    plot.grid(False)
    bar = figure.colorbar(drawn, ax=plot, ticks=levels[::3], format=lambda value, _: short(value), shrink=0.8)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=9, colors=INK, length=3, color=PALE)
    bar.set_label("share of points per unit of area", fontsize=9, color=MUTED)
    heading(
        plot,
        f"Density of {labels[0]} and {labels[1]}",
        f"{_subtitle(release)} \N{MIDDLE DOT} standard error {short(noise)}",
    )
    return figure
