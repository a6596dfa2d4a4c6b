"""Make the pictures of the documentation in docs/assets: `python docs/make_pictures.py`.

The data is public (see examples/data/README.md); that is why the truth may be drawn beside a release here.
Noise is fresh on every run, so the pictures differ a little each time.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

import sordino as so
from sordino.plots.tables import ACCENT, INK, MUTED, PALE, SIGNAL, dress, heading, new_figure

ROOT = Path(__file__).resolve().parent.parent
ASSETS = Path(__file__).resolve().parent / "assets"
DATA = ROOT / "examples" / "data" / "nyc_departures_2013_hourly.csv"

FLIGHT = so.AddRemove(1, label="one flight")
DOTS_PER_INCH = 110
LARGEST = 200_000  # bytes


def save(figure: Figure, name: str) -> None:
    path = ASSETS / name
    figure.savefig(path, dpi=DOTS_PER_INCH)
    size = path.stat().st_size
    if size >= LARGEST:
        raise SystemExit(f"{name} has {size} bytes, more than {LARGEST}")
    print(f"{name}: {size} bytes")


def daily_departures() -> pd.Series:
    hours = pd.read_csv(DATA, parse_dates=["hour"]).set_index("hour")["departures"]
    return hours.resample("D").sum()


def draw_release(days: pd.Series) -> None:
    """The seven-day average of New York's departures with its intervals, and the truth behind it."""
    workload = so.MovingAverage(window=7, length=len(days))
    plan = so.plan(workload, so.ApproxDP(epsilon=0.1, delta=1e-6), unit=FLIGHT)
    figure = plan.release(days).plot()
    axes = figure.axes[0]
    truth = days.rolling(7).sum() / 7.0
    axes.plot(truth.index, truth, color=INK, linewidth=0.9, label="truth (this data is public)")
    axes.plot([], [], color=ACCENT, linewidth=1.5, label="released, with 95 % intervals")
    axes.set_ylim(0.9 * truth[6:].min(), 1.06 * truth.max())
    axes.legend(loc="lower center", frameon=False, fontsize=9, ncols=2)
    axes.set_ylabel("departures a day, mean of seven days", fontsize=10, color=INK)
    save(figure, "release.png")


def draw_comparison() -> None:
    """Expected errors of a running total, as `compare` gives them."""
    comparison = so.compare(so.RunningSum(8760), so.ApproxDP(epsilon=1.0, delta=1e-6))
    save(comparison.plot(), "comparison.png")


def draw_plan() -> None:
    """Error of every answer and the spectrum behind it."""
    workload = so.MovingAverage(window=168, length=8760)
    plan = so.plan(workload, so.ApproxDP(epsilon=1.0, delta=1e-6), unit=FLIGHT)
    save(plan.plot(), "plan.png")


def draw_running_totals() -> None:
    """How the error of a running total grows with time, by mechanism."""
    workload, privacy = so.RunningSum(1024), so.ApproxDP(epsilon=1.0, delta=1e-6)
    figure = new_figure(9.5, 4.8)
    axes = figure.subplots()
    colors = {
        "identity-laplace": MUTED,
        "tree-laplace": SIGNAL,
        "haar-gaussian": PALE,
        "fourier-gaussian": ACCENT,
    }
    for name, color in colors.items():
        stderr = so.plan(workload, privacy, mechanism=name).stderr
        axes.plot(np.arange(1, len(stderr) + 1), stderr, color=color, linewidth=1.4, label=name)
    axes.set_ylim(0, 30)
    axes.margins(x=0.01)
    axes.legend(frameon=False, fontsize=9, ncols=2, loc="lower right")
    heading(axes, "Running total: expected error at every step", "1024 steps, epsilon 1, delta 1e-6")
    dress(axes, "step", "standard error")
    save(figure, "running_totals.png")


def draw_projection() -> None:
    """Error of projected answers by the number of records: made-up data, 20 releases at each point."""
    cells, privacy = 128, so.ApproxDP(epsilon=1.0, delta=1e-6)
    workload, rng = so.RunningSum(cells), np.random.default_rng(0)
    records = np.unique(np.logspace(0.0, 4.0, 17).astype(int))
    alone = so.plan(workload, privacy, mechanism="optimal").rmse
    shapes = {
        "5 cells": (SIGNAL, lambda: np.bincount(rng.choice(cells, 5, replace=False), minlength=cells) / 5.0),
        "all cells alike": (ACCENT, lambda: np.full(cells, 1.0 / cells)),
    }
    figure = new_figure(9.5, 4.8)
    axes = figure.subplots()
    axes.axhline(alone, color=MUTED, linewidth=1.4, label="noise alone")
    for name, (color, shape) in shapes.items():
        errors = []
        for n in records:
            plan = so.plan(workload, privacy, mechanism="sparse-gaussian", constraint=so.optimal.PublicBound(int(n)))
            drawn = [rng.multinomial(n, shape()) for _ in range(20)]
            squares = [np.mean((plan.release(x).values - np.cumsum(x)) ** 2) for x in drawn]
            errors.append(np.sqrt(np.mean(squares)))
        axes.plot(records, errors, color=color, linewidth=1.4, label=f"projected, records in {name}")
    axes.set_xscale("log")
    axes.set_ylim(0, 12)
    axes.legend(frameon=False, fontsize=9, loc="lower right")
    heading(axes, "Few records: projected answers", "running totals of 128 cells, epsilon 1, delta 1e-6, bound exact")
    dress(axes, "records in all", "root mean squared error")
    save(figure, "projection.png")


def draw_density() -> None:
    """Private averages of kernels over few points, by two mechanisms, beside the truth."""
    rng = np.random.default_rng(5)
    n, bounds = 600, [(18.0, 100.0), (30.0, 200.0)]
    age = np.where(rng.random(n) < 0.6, rng.normal(45, 8, n), rng.normal(74, 6, n))
    weight = np.where(age < 60, rng.normal(75, 10, n), rng.normal(115, 14, n))
    points = np.clip(np.column_stack([age, weight]), *np.transpose(bounds))  # made up
    kernels = so.smooth.GaussianKernels((8, 14))
    workload = so.smooth.SmoothQueries(2, points=n, bounds=bounds, query_class=kernels)
    privacy, unit = so.ApproxDP(epsilon=1.0, delta=1e-6), so.ReplaceOne(1, label="one patient")
    sides = [np.linspace(low, high, 61) for low, high in bounds]
    grid = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, 2)
    apart = (grid[:, None, :] - points) / kernels.bandwidth
    near = np.exp(-0.5 * (apart**2).sum(axis=2)).mean(axis=1)
    panels = [("True averages of kernels", near)]
    for name, title in (("kernel", "Kernel mechanism"), ("chebyshev-laplace", "Laplace noise on Chebyshev sums")):
        release = so.plan(workload, privacy, unit=unit, mechanism=name).release(points)
        panels.append((title, release.query(kernels.at(grid)).values))
    levels = np.linspace(-0.05, 1.05, 23) * near.max()
    figure = new_figure(12.0, 4.6)
    for axes, (title, values) in zip(figure.subplots(1, 3, sharey=True), panels, strict=True):
        shades = LinearSegmentedColormap.from_list("sordino", ["white", ACCENT, INK])
        axes.contourf(*sides, values.reshape(61, 61).T, levels=levels, cmap=shades, extend="both")
        off = np.sqrt(np.mean((values - near) ** 2))
        dress(axes, "age", "weight" if axes.get_subplotspec().is_first_col() else "")
        axes.grid(False)
        heading(axes, title, f"{n} points" if off == 0.0 else f"epsilon 1, delta 1e-6, rmse {off:.3f}")
    save(figure, "density.png")


def draw_tree() -> None:
    """A map of made-up places by a tree that grows where they are."""
    places = np.random.default_rng(7).normal([60, 70], [9, 16], size=(100_000, 2)).round().astype(int)
    grid = np.zeros((128, 128), dtype=int)
    np.add.at(grid, tuple(places[((places >= 0) & (places < 128)).all(axis=1)].T), 1)
    boxes = so.Kronecker([so.AllRanges(128), so.AllRanges(128)])
    plan = so.plan(boxes, so.PureDP(epsilon=0.1), mechanism="path-budget-tree")
    save(plan.release(grid).plot(), "tree-map.png")


def main() -> None:
    ASSETS.mkdir(exist_ok=True)
    draw_release(daily_departures())
    draw_comparison()
    draw_plan()
    draw_running_totals()
    draw_projection()
    draw_density()
    draw_tree()


if __name__ == "__main__":
    main()
