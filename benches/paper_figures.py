"""Figures 1 to 4 and Table 2 of "Constant matters" (Fichtenberger, Henzinger, Upadhyay), made with correct mechanisms.

Pictures go to `benches/pictures`, the numbers to the table. "Correct" means: the noise vector is drawn once for the
whole stream, its standard deviation is the same at every step, the exact norm `S_T` takes the place of the paper's
bound, and the Gaussian noise is calibrated exactly. The errors here are those of released streams.

Run `python benches/paper_figures.py`.
"""

import math
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from harness import Row, main, power, quick
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from stream_errors import nuclear_bound

import sordino as so
from sordino.plots.tables import ACCENT, INK, MUTED, PALE, SIGNAL, dress, heading, new_figure
from sordino.privacy.calibration import gaussian_mu

_PICTURES = Path(__file__).resolve().parent / "pictures"
_DOTS_PER_INCH = 100
_LENGTH = 2**10 if quick() else 2**16
_DRAWS = 5 if quick() else 150
_COUNTS_DRAWS = 5 if quick() else 400

# The paper's mechanism, the baseline of the paper, and ours.
_MECHANISMS = {"square-root": "square root", "binary-tree": "binary tree", "two-diagonals": "two diagonals"}
_COLORS = {"square-root": ACCENT, "binary-tree": SIGNAL, "two-diagonals": INK}
_PRINTED = ("binary-tree", "square-root")
_PAPER_TABLE = {
    "square-root": (14.50, 7.37, 3.46, 1.86, 0.96, 0.47, 0.22),
    "binary-tree": (4.72, 2.40, 1.12, 0.61, 0.31, 0.15, 0.072),
}
_PAPER_TOP = {"square-root": 1.47, "binary-tree": 0.52}

Array = NDArray[np.float64]


# Norms and bounds.


def norms(length: int) -> Array:
    """Return `S_t` for t up to the length: products of the norms of the square root's two factors."""
    steps = np.arange(1, length)
    coefficients = np.cumprod(np.concatenate([[1.0], 1.0 - 0.5 / steps]))
    return np.cumsum(coefficients**2)


def _norm(length: int) -> float:
    """Return `S_T`, beyond 2^20 by the expansion of Landau's constants, which is exact to 1e-7 there."""
    if length <= 2**20:
        return float(norms(length)[-1])
    return (math.log(length) + np.euler_gamma + math.log(16.0)) / math.pi


def _cosecants(count: int) -> float:
    """Return the mean of `1/sin((2j - 1) pi/(2 count))`, beyond 2^20 by its expansion."""
    if count <= 2**21:
        angles = (2.0 * np.arange(1, count + 1) - 1.0) * math.pi / (2.0 * count)
        return float(np.mean(1.0 / np.sin(angles)))
    return 2.0 / math.pi * (math.log(count) + np.euler_gamma + math.log(8.0 / math.pi))


def _claimed(length: int) -> float:
    """Return the paper's bound of `S_T` (Theorem 1)."""
    return 1.0 + math.log((4.0 * length - 3.0) / 5.0) / math.pi


def _mathias(length: int) -> float:
    """Return Mathias's lower bound."""
    return (0.5 + 0.5 / length) * _cosecants(length)


def _nuclear(length: int) -> float:
    if length <= 2**20:
        return nuclear_bound(length)
    odd = 2 * length + 1
    return (odd * _cosecants(odd) - 1.0) / (4.0 * length)


def _paper_noise(privacy: so.ApproxDP) -> float:
    """Return the noise multiplier of the paper's definition."""
    return 2.0 / privacy.epsilon * math.sqrt(4.0 / 9.0 + math.log(math.sqrt(2.0 / math.pi) / privacy.delta))


def _textbook_noise(privacy: so.ApproxDP) -> float:
    """Return the multiplier of Dwork and Roth's proof, which the authors' code uses."""
    return _paper_noise(privacy) / math.sqrt(2.0)


# Streams.


@cache
def _plan(mechanism: str, length: int, epsilon: float, dim: int = 1) -> so.StreamPlan:
    privacy = so.ApproxDP(epsilon=epsilon, delta=1e-10)
    return so.plan(so.Continual(so.RunningSum(length), dim=dim), privacy, mechanism=mechanism)


@cache
def _deviations(mechanism: str, length: int, epsilon: float) -> Array:
    return _plan(mechanism, length, epsilon).fit.std(np.arange(1, length + 1))


@cache
def _errors(mechanism: str, epsilon: float) -> Array:
    """Return errors of released streams, a row a draw: they do not depend on the data."""
    plan, nothing = _plan(mechanism, _LENGTH, epsilon), np.zeros(_LENGTH, dtype=np.int64)
    return np.array([plan.release(nothing).values for _ in range(_DRAWS)])


def _mean_and_doubt(values: Array) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))


def _about(values: Array, digits: int = 3) -> str:
    mean, doubt = _mean_and_doubt(values)
    return f"{mean:.{digits}g} ± {doubt:.2g}"


# Pictures.


def _save(figure: Figure, name: str) -> None:
    if quick():
        return
    _PICTURES.mkdir(exist_ok=True)
    figure.savefig(_PICTURES / name, dpi=_DOTS_PER_INCH)


def _draw_counter(axes: Axes, steps: NDArray[np.int64], values: Array, name: str) -> None:
    """Draw a released counter; the tree, which jumps, is thin and pale."""
    width, alpha = (0.6, 0.6) if name == "binary-tree" else (1.0, 1.0)
    axes.plot(steps, values, color=_COLORS[name], linewidth=width, alpha=alpha, label=_MECHANISMS[name])


def _first() -> list[Row]:
    """Error against the step."""
    epsilon = 0.8
    privacy = so.ApproxDP(epsilon=epsilon, delta=1e-10)
    figure = new_figure(9.5, 4.8)
    axes = figure.subplots()
    steps = np.arange(1, _LENGTH + 1)
    largest = {}
    for name, label in _MECHANISMS.items():
        deviations = _deviations(name, _LENGTH, epsilon)
        largest[name] = np.abs(_errors(name, epsilon)).max(axis=1)
        if name == "binary-tree":
            # A line would fill the plane: the range within each of 512 stretches, and the envelope.
            low, high = (f(deviations.reshape(512, -1), axis=1) for f in (np.min, np.max))
            at = steps.reshape(512, -1).mean(axis=1)
            axes.fill_between(at, low, high, color=_COLORS[name], alpha=0.28, linewidth=0)
            axes.plot(at, high, color=_COLORS[name], linewidth=1.0, label=f"{label} (range of neighbouring steps)")
        else:
            style = "--" if name == "two-diagonals" else "-"
            axes.plot(steps, deviations, color=_COLORS[name], linestyle=style, linewidth=1.7, label=label)
    axes.set_ylim(0, 1.12 * _deviations("binary-tree", _LENGTH, epsilon).max())
    axes.set_xlim(0, _LENGTH)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.legend(frameon=False, fontsize=9, loc="upper left", ncols=3)
    heading(axes, "Figure 1: standard error at every step", f"T = {_LENGTH:,} steps, epsilon 0.8, delta 1e-10")
    dress(axes, "step", "standard error")
    _save(figure, "figure-1.png")
    tree, root = largest["binary-tree"], largest["square-root"]
    exact = 1.0 / gaussian_mu(privacy)
    rows = [
        Row(
            f"figure 1, largest error over {power(_LENGTH)} steps, {_MECHANISMS[name]}",
            _about(values),
            f"with the paper's constant: {values.mean() * _paper_noise(privacy) / exact:.4g}; "
            f"with Dwork and Roth's: {values.mean() * _textbook_noise(privacy) / exact:.4g}",
        )
        for name, values in largest.items()
    ]
    bound = _paper_noise(privacy) * _claimed(_LENGTH) * math.sqrt(math.log(6 * _LENGTH))
    share = float(np.mean(root * _paper_noise(privacy) / exact <= bound))
    rows.append(
        Row(
            "figure 1, share of streams within the paper's bound, noise as the paper defines it",
            f"{share:.2f}",
            "claimed: at least 2/3",
            share * 1.5,
        )
    )
    rows.append(Row("figure 1, tree over square root, largest error", f"{tree.mean() / root.mean():.3g}"))
    last = [_deviations(name, _LENGTH, epsilon)[-2] for name in _PRINTED]
    what = f"figure 1, tree over square root, standard error at step {power(_LENGTH)} - 1"
    rows.append(Row(what, f"{last[0] / last[1]:.3g}", "print: roughly 4"))
    return rows


def _second() -> list[Row]:
    """Norms against their bounds."""
    exponents = np.arange(0, 45)
    lengths = [2 ** int(e) for e in exponents]
    lines: dict[str, tuple[Callable[[int], float], str, str]] = {
        "square root, exact": (_norm, ACCENT, "-"),
        "as claimed in Theorem 1": (_claimed, SIGNAL, "--"),
        "no factorization is below (nuclear norm)": (_nuclear, INK, "-"),
    }
    figure = new_figure(9.5, 4.8)
    axes = figure.subplots()
    for label, (bound, color, style) in lines.items():
        gaps = [bound(n) - _mathias(n) for n in lengths]
        axes.plot(exponents[1:], gaps[1:], color=color, linestyle=style, linewidth=1.7, label=label)
    axes.axhline(0.5, color=MUTED, linewidth=0.9, linestyle=":")
    axes.annotate(
        "0.5, as the paper says", (44, 0.5), (0, 4), textcoords="offset points", ha="right", fontsize=9, color=MUTED
    )
    axes.set_xlim(1, 44)
    axes.set_ylim(0.0, 0.75)
    axes.set_xticks(range(4, 45, 4), [f"$2^{{{e}}}$" for e in range(4, 45, 4)])
    axes.legend(frameon=False, fontsize=9, loc="lower right")
    heading(axes, "Figure 2: distance to Mathias's lower bound", "of the product of the norms of both factors")
    dress(axes, "steps of the stream", "distance")
    _save(figure, "figure-2.png")
    tested = 2 ** np.arange(0, 21)
    above = [int(n) for n in tested if _norm(int(n)) > _claimed(int(n))]
    rows = [
        Row(
            "figure 2, lengths 2^0 to 2^20 at which the exact norm exceeds the bound of Theorem 1",
            f"{len(above)} of {len(tested)}",
            "claimed: none",
        )
    ]
    for bits in (5, 8, 16, 44):
        n = 2**bits
        rows.append(
            Row(
                f"figure 2, square root minus Mathias's lower bound, 2^{bits} steps",
                f"{_norm(n) - _mathias(n):.4f}",
                f"claimed: {_claimed(n) - _mathias(n):.4f}, below 0.5",
            )
        )
    rows.append(
        Row(
            f"figure 2, square root over the nuclear-norm bound, {power(2**20)} steps",
            f"{_norm(2**20):.4f}",
            f"{_nuclear(2**20):.4f}",
            _norm(2**20) / _nuclear(2**20),
        )
    )
    return rows


def _third() -> list[Row]:
    """Released counters of streams of several densities."""
    epsilon = 0.5
    figure = new_figure(13.0, 6.2)
    panels = figure.subplots(2, 4, sharex=True)
    steps = np.arange(1, _LENGTH + 1)
    rng = np.random.default_rng(16)
    shown = np.unique(np.linspace(0, _LENGTH - 1, 1024).astype(int))
    densities = [2.0**-e for e in range(4, 11)] + [0.0]
    for axes, density in zip(panels.flat, densities, strict=True):
        stream = (rng.random(_LENGTH) < density).astype(np.int64)
        for name in _PRINTED:
            values = _plan(name, _LENGTH, epsilon).release(stream).values
            _draw_counter(axes, steps[shown], values[shown], name)
        axes.plot(steps[shown], np.cumsum(stream)[shown], color=INK, linewidth=1.3, label="truth")
        title = "no ones" if density == 0.0 else f"one in {round(1 / density):,}"
        axes.set_title(title, loc="left", fontsize=10, color=INK)
        dress(axes, "", "")
        axes.set_xticks(
            [0, _LENGTH // 2, _LENGTH], ["0", *(f"$2^{{{n.bit_length() - 1}}}$" for n in (_LENGTH // 2, _LENGTH))]
        )
        axes.yaxis.set_major_formatter("{x:,.0f}")
    for axes in panels[1]:
        axes.set_xlabel("step", fontsize=10, color=INK)
    for axes in panels[:, 0]:
        axes.set_ylabel("count", fontsize=10, color=INK)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=10)
    figure.suptitle(
        f"Figure 3: counters of T = {_LENGTH:,} steps, epsilon 0.5, delta 1e-10",
        x=0.01,
        ha="left",
        fontsize=13,
        fontweight="bold",
        color=INK,
    )
    _save(figure, "figure-3.png")
    return []


def _table() -> list[Row]:
    """Signal over noise: the sum of all counts over the sum of all absolute errors."""
    epsilon = 0.5
    privacy = so.ApproxDP(epsilon=epsilon, delta=1e-10)
    fewer = 1.0 / gaussian_mu(privacy) / _paper_noise(privacy)
    rng = np.random.default_rng(2)
    scales = {name: np.abs(_errors(name, epsilon)).sum(axis=1) for name in _MECHANISMS}
    rows = []
    for place, bits in enumerate(range(4, 11)):
        counts = np.cumsum(rng.random((_DRAWS, _LENGTH)) < 2.0**-bits, axis=1).sum(axis=1)
        ratios = {name: counts / scale for name, scale in scales.items()}
        ours = ", ".join(f"{_MECHANISMS[name]} {_about(values)}" for name, values in ratios.items())
        root, tree = (float(ratios[name].mean()) for name in _PAPER_TABLE)
        printed = [values[place] for values in _PAPER_TABLE.values()]
        rows.append(
            Row(
                f"table 2, signal over noise, p = 2^-{bits}",
                ours,
                f"print: {printed[0]:g}, {printed[1]:g}; "
                f"with the paper's constant: {root * fewer:.3g}, {tree * fewer:.3g}",
                root / printed[0],
            )
        )
    means = {name: float(scale.mean()) / _LENGTH for name, scale in scales.items()}
    implied = [2.0**-4 * _LENGTH / 2.0 / values[0] for values in _PAPER_TABLE.values()]
    rows.append(
        Row(
            "table 2, mean absolute error: square root, tree; tree over square root",
            f"{means['square-root']:.3g}, {means['binary-tree']:.3g}; "
            f"{means['binary-tree'] / means['square-root']:.3g}",
            f"implied by print: {implied[0]:.3g}, {implied[1]:.3g}; {implied[1] / implied[0]:.3g}",
        )
    )
    return rows


_ITEMS = 20
_ROUNDS = 2048


def _fourth() -> list[Row]:
    """The most frequent item of a Zipf stream, from noisy counts."""
    epsilon = 0.1
    weights = 1.0 / np.arange(1, _ITEMS + 1)
    weights /= weights.sum()
    rng = np.random.default_rng(20)
    drawn = rng.choice(_ITEMS, _ROUNDS, p=weights)
    stream = np.zeros((_ROUNDS, _ITEMS), dtype=np.int64)
    stream[np.arange(_ROUNDS), drawn] = 1
    counts = np.cumsum(stream, axis=0)
    steps = np.arange(1, _ROUNDS + 1)
    figure = new_figure(14.0, 4.8)
    left, middle, right = figure.subplots(1, 3, width_ratios=(3, 4, 4))
    left.bar(np.arange(1, _ITEMS + 1), weights, color=ACCENT, width=0.72)
    left.set_xticks([1, 5, 10, 15, 20])
    heading(left, "Figure 4: the stream's items", f"Zipf's law on {_ITEMS} items, {_ROUNDS:,} rounds")
    dress(left, "item", "probability")
    rows = []
    for name in ("binary-tree", "square-root", "two-diagonals"):
        plan = _plan(name, _ROUNDS, epsilon, _ITEMS)
        ratios, found, errors = [], [], []
        for draw in range(_COUNTS_DRAWS):
            noisy = plan.release(stream).values
            top = noisy.max(axis=1)
            if draw == 0:
                for axes, values in ((middle, noisy[:, 0]), (right, top)):
                    if name in _PRINTED:
                        _draw_counter(axes, steps, values, name)
            error = np.abs(noisy[:, 0] - counts[:, 0])
            ratios.append(counts[:, 0].sum() / error.sum())
            errors.append(np.abs(top - counts.max(axis=1)).mean())
            found.append(np.mean(noisy.argmax(axis=1) == 0))
        label = _MECHANISMS[name]
        paper = _PAPER_TOP.get(name)
        mean = float(np.mean(ratios))
        rows += [
            Row(
                f"figure 4, signal over noise of the commonest item's count, {label}",
                _about(np.array(ratios)),
                "" if paper is None else f"print: {paper:g}",
                None if paper is None else mean / paper,
            ),
            Row(
                f"figure 4, mean error of the largest noisy count, {label}",
                f"{_about(np.array(errors))}; it names the commonest item in {np.mean(found):.0%} of the steps",
            ),
        ]
    for axes, values in ((middle, counts[:, 0]), (right, counts.max(axis=1))):
        axes.plot(steps, values, color=INK, linewidth=1.5, label="truth")
        axes.axhline(0.0, color=PALE, linewidth=0.8)
        axes.set_xlim(0, _ROUNDS)
        axes.set_xticks(range(0, _ROUNDS + 1, _ROUNDS // 4))
        dress(axes, "step", "count")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.yaxis.set_major_formatter("{x:,.0f}")
    heading(middle, "Count of the commonest item", "one release of each mechanism, epsilon 0.1, delta 1e-10")
    heading(right, "Largest of the noisy counts", "the same releases: the largest of 20 errs upwards")
    handles, labels = middle.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=10)
    _save(figure, "figure-4.png")
    return rows


def figures() -> list[Row]:
    """Return all rows; write the pictures unless the run is short."""
    return [*_first(), *_second(), *_third(), *_table(), *_fourth()]


if __name__ == "__main__":
    main({}, figures)
