"""Errors of smooth queries: the paper's mechanism as printed and as published, ours, grids, and noise on answers.

Table: kernel queries with random centres over the breast cancer data with fixed public bounds, and over made points.
What is called as printed is `(1 + kappa_t / t)`-times less private than it says, and has the degree that is best for
each row, which only a benchmark can know. Thirty dimensions: mixtures of kernels, declared beforehand, beside the
mechanism that the paper's authors published, with the epsilon that it really spends. Exponents: error and time against
the number of points, beside Table 1 of the paper. Neighbours replace one point; epsilon is 1 unless a row says so, and
delta is 1e-6 wherever noise is Gaussian and 0 where it is Laplace. Errors are mean (worst) absolute ones over the
queries, averaged over draws of known noise. Pictures go to `pictures/`.

Run `python benches/smooth_errors.py`.
"""

import hashlib
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import smooth_baselines as sb
from harness import Row, amount, in_process, main, once, quick
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator
from numpy.typing import NDArray

import sordino as so
from sordino.plots.tables import ACCENT, INK, MUTED, PALE, SIGNAL, dress, heading, new_figure
from sordino.testing import deterministic_noise

_PICTURES = Path(__file__).resolve().parent / "pictures"
_DOTS_PER_INCH = 100
_DELTA = 1e-6
_DRAWS = 2 if quick() else 20
_COUNT = 50 if quick() else 1000
_MANY = 2000 if quick() else 10**5

Array = NDArray[np.float64]


def _privacy(mechanism: str, epsilon: float = 1.0) -> so.PureDP | so.ApproxDP:
    if mechanism.endswith("laplace"):
        return so.PureDP(epsilon=epsilon)
    return so.ApproxDP(epsilon=epsilon, delta=_DELTA)


def _key(*what: object) -> bytes:
    return hashlib.sha256(repr(what).encode()).digest()


def _rng(*what: object) -> np.random.Generator:
    return np.random.default_rng(list(_key(*what)))


def _save(figure: Figure, name: str) -> None:
    if quick():
        return
    _PICTURES.mkdir(exist_ok=True)
    figure.savefig(_PICTURES / name, dpi=_DOTS_PER_INCH)


# A few dimensions.


@dataclass(frozen=True)
class _Case:
    """Points and kernels."""

    data: str
    d: int
    bandwidth: float

    @property
    def name(self) -> str:
        return f"{self.data}, n = {len(self.points):,}, d = {self.d}, bandwidth {self.bandwidth:g}"

    @property
    def points(self) -> Array:
        return _made(self.data, self.d)

    @property
    def queries(self) -> sb.GaussianKernels:
        return sb.gaussian_kernel_queries(_COUNT, self.d, self.bandwidth, _rng("centres", self.d))


@cache
def _made(data: str, d: int) -> Array:
    return sb.wdbc(d) if data == "breast cancer" else sb.synthetic(_MANY, d, _rng("points", d))


@cache
def _truth(case: _Case) -> Array:
    return sb.exact_answers(case.points, case.queries)


def _cases() -> list[_Case]:
    if quick():
        return [_Case("breast cancer", 2, 0.5), _Case("breast cancer", 3, 0.5), _Case("mixture", 2, 0.5)]
    real = [_Case("breast cancer", d, s) for d in (2, 3, 4) for s in (0.5, 1.0, 0.25)]
    return [*real, *(_Case("mixture", d, s) for d, s in ((2, 0.5), (2, 1.0), (3, 0.5)))]


@dataclass(frozen=True)
class _Error:
    """Averages over the draws; `planned` is the expected root mean square."""

    mean: float
    worst: float
    rms: float
    planned: float | None = None

    def __str__(self) -> str:
        return f"{self.mean:.2g} ({self.worst:.2g})"


def _error(answers: list[Array], truth: Array, planned: float | None = None) -> _Error:
    off = np.abs(np.array(answers) - truth)
    return _Error(
        float(off.mean()), float(off.max(axis=1).mean()), math.sqrt(float((off**2).mean(axis=1).mean())), planned
    )


_OURS = (
    "kernel-gaussian",
    "weighted-gaussian",
    "chebyshev-gaussian",
    "weighted-laplace",
    "chebyshev-laplace",
    "histogram-laplace",
)
_PROJECTED = ("kernel-gaussian", "weighted-gaussian")


def _ours(case: _Case, mechanism: str) -> dict[str, _Error]:
    """Return the errors of a mechanism whose sizes the plan chose; and projected, where that is tried."""
    workload = so.smooth.SmoothQueries(
        case.d, points=len(case.points), bounds=(-1.0, 1.0), query_class=so.smooth.GaussianKernels(case.bandwidth)
    )
    plan = so.plan(workload, _privacy(mechanism), unit=so.ReplaceOne(), mechanism=mechanism)
    sums, asked = plan.sums(case.points), so.smooth.GaussianKernels(case.bandwidth).at(case.queries.centres)
    found: dict[str, list[Array]] = {mechanism: []}
    for draw in range(_DRAWS):
        with deterministic_noise(_key(case.data, case.d, case.bandwidth, mechanism, draw)):
            release = plan.release(sums)
        found[mechanism].append(release.query(asked).values)
        if mechanism in _PROJECTED and (case.d >= 3 or case.data == "breast cancer"):
            found.setdefault(f"{mechanism}, projected", []).append(release.projected().query(asked).values)
    truth = _truth(case)
    return {name: _error(answers, truth, plan.rmse if name == mechanism else None) for name, answers in found.items()}


def _printed(case: _Case, degree: int, *, damped: bool) -> _Error:
    factors = sb.coefficient_factors(case.queries, degree, damped=damped)
    answers = [
        sb.answers_at_once(sb.literal_summary(case.points, 1.0, degree, _rng(case.name, degree, draw)), factors)
        for draw in range(_DRAWS)
    ]
    return _error(answers, _truth(case))


def _others(case: _Case) -> dict[str, _Error]:
    """Return the errors of the paper's mechanism, of noise on the answers, and of no data at all."""
    paper = sb.paper_degree(len(case.points), case.d, 2 * case.d)
    tried = {t: _printed(case, t, damped=False) for t in range(2, {2: 15, 3: 13, 4: 9}[case.d])}
    best = min(tried, key=lambda t: tried[t].mean)
    sigma = sb.gaussian_sigma(1.0, _DELTA)
    noisy = [
        sb.noisy_answers(case.points, case.queries, sigma, _rng(case.name, "answers", draw)) for draw in range(_DRAWS)
    ]
    return {
        f"as printed, its t = {paper} for K = 2d, damped": _printed(case, paper, damped=True),
        f"as printed, best t = {best}, cut off": tried[best],
        f"noise on the {_COUNT:,} answers": _error(noisy, _truth(case)),
        "uniform guess": _error([sb.uniform_guess(case.queries)], _truth(case)),
    }


@cache
def _errors(case: _Case) -> tuple[dict[str, _Error], dict[str, _Error]]:
    ours: dict[str, _Error] = {}
    for mechanism in _OURS:
        ours |= _ours(case, mechanism)
    return ours, _others(case)


def _listed(errors: dict[str, _Error]) -> str:
    return ", ".join(f"{name} {error}" for name, error in errors.items())


def _table() -> list[Row]:
    """Return a row for each case; and what was planned beside what was measured."""
    rows = []
    for case in _cases():
        ours, others = _errors(case)
        best = min(ours, key=lambda name: ours[name].mean)
        printed = next(error for name, error in others.items() if "best t" in name)
        rows.append(
            Row(
                case.name,
                f"{_listed(ours)}; least: {best}",
                _listed(others),
                ours["kernel-gaussian"].mean / printed.mean,
            )
        )
    rows += _planned()
    _draw_errors()
    return rows


def _planned() -> list[Row]:
    """Return measured over planned root mean squares, over all cases: an estimate over the class, not a bound."""
    rows = []
    for mechanism in _OURS:
        ratios = {}
        for case in _cases():
            error = _errors(case)[0][mechanism]
            assert error.planned is not None
            ratios[case] = error.rms / error.planned
        most = max(ratios, key=ratios.__getitem__)
        values = np.array(list(ratios.values()))
        what = f"measured over planned error, {mechanism}, {len(ratios)} cases"
        ours = f"{values.min():.2f} to {values.max():.2f}, median {np.median(values):.2f}; most: {most.name}"
        rows.append(Row(what, ours))
    return rows


_STYLES = {
    "kernel-gaussian": ("kernel, Gaussian", ACCENT),
    "kernel-gaussian, projected": ("the same, projected", ACCENT),
    "weighted-gaussian": ("weighted, Gaussian", ACCENT),
    "weighted-gaussian, projected": ("the same, projected", ACCENT),
    "chebyshev-gaussian": ("Chebyshev, Gaussian", ACCENT),
    "weighted-laplace": ("weighted, Laplace", INK),
    "chebyshev-laplace": ("Chebyshev, Laplace", INK),
    "histogram-laplace": ("histogram, Laplace", INK),
    "best t": ("as printed, best t", SIGNAL),
    "damped": ("as printed, its own t", SIGNAL),
    "noise on": ("noise on 1,000 answers", MUTED),
    "uniform": ("uniform guess", MUTED),
}


def _draw_errors() -> None:
    shown = [case for case in _cases() if case.bandwidth == 0.5 and (case.data, case.d) != ("mixture", 2)][:4]
    figure = new_figure(14.0, 5.4)
    for number, (axes, case) in enumerate(
        zip(np.ravel(figure.subplots(1, len(shown), sharey=True)), shown, strict=True)
    ):
        ours, others = _errors(case)
        for place, (key, (_, color)) in enumerate(_STYLES.items()):
            error = ours.get(key) or next((e for name, e in others.items() if key in name), None)
            if error is None:
                continue
            hollow = "projected" in key
            axes.plot([error.mean, error.worst], [place, place], color=color, linewidth=2.4, alpha=0.45)
            axes.plot(error.mean, place, "o", markersize=6.5, color=color, markerfacecolor="white" if hollow else color)
            axes.plot(error.worst, place, "|", markersize=9, markeredgewidth=1.8, color=color)
        axes.set_xscale("log")
        if number == 0:
            axes.set_yticks(range(len(_STYLES)), [label for label, _ in _STYLES.values()])
            axes.invert_yaxis()
        heading(
            axes, f"{case.data}, d = {case.d}", f"n = {len(case.points):,}, bandwidth {case.bandwidth:g}, epsilon 1"
        )
        dress(axes, "error: mean (dot) to worst (bar)", "")
        axes.grid(axis="x", color=PALE, linewidth=0.6, alpha=0.6)
    _save(figure, "smooth_errors.png")


# Thirty dimensions.

_THIRTY_BOUNDS = (
    # Means: radius, texture, perimeter, area, smoothness, compactness, concavity, concave points, symmetry, fractal.
    *((5.0, 30.0), (5.0, 40.0), (30.0, 200.0), (0.0, 3000.0), (0.04, 0.18)),
    *((0.0, 0.4), (0.0, 0.5), (0.0, 0.25), (0.05, 0.35), (0.03, 0.12)),
    # Their standard errors.
    *((0.0, 3.0), (0.0, 5.0), (0.0, 25.0), (0.0, 600.0), (0.0, 0.04)),
    *((0.0, 0.15), (0.0, 0.4), (0.0, 0.06), (0.0, 0.1), (0.0, 0.03)),
    # Means of the three largest.
    *((5.0, 40.0), (5.0, 60.0), (30.0, 300.0), (0.0, 5000.0), (0.04, 0.25)),
    *((0.0, 1.2), (0.0, 1.5), (0.0, 0.35), (0.1, 0.75), (0.03, 0.25)),
)
"""Of all attributes of the breast cancer data, in its units: round numbers that leave room, fixed here once for all."""

_MIXTURES = 50 if quick() else 500
_EACH = 10
_MONOMIALS = 64
_SPENT = 1.8438
"""What the published mechanism of 64 monomials in 30 dimensions spends for an epsilon of 1, at least."""
_CANDIDATES = 100 if quick() else 2000


@cache
def _thirty() -> Array:
    from sklearn.datasets import load_breast_cancer  # noqa: PLC0415 - seconds to import

    low, high = np.array(_THIRTY_BOUNDS).T
    return np.asarray(np.clip((2.0 * load_breast_cancer().data - low - high) / (high - low), -1.0, 1.0))


def _thirty_dimensions() -> list[Row]:
    """Mixtures of 10 kernels, beside the published low-degree mechanism."""
    rows = []
    points, d = _thirty(), 30
    rng = _rng("mixtures")
    centres, weights = rng.uniform(-1.0, 1.0, (_MIXTURES, _EACH, d)), rng.random((_MIXTURES, _EACH))
    weights /= weights.sum(axis=1, keepdims=True)
    candidates = _rng("candidates").uniform(-1.0, 1.0, (_CANDIDATES, d))
    draws = max(_DRAWS // 4, 1)
    measures = {
        epsilon: [
            sb.published_measure(
                *sb.published_summary(points, _MONOMIALS, epsilon, _rng("published", draw)), candidates
            )
            for draw in range(draws)
        ]
        for epsilon in (0.5, 1.0)
    }
    for s in (4.0,) if quick() else (2.0, 4.0, 6.0, 8.0, 10.0):
        kernels = sb.GaussianKernels(centres.reshape(-1, d), s)

        def mixed(answers: Array) -> Array:
            return np.asarray((answers.reshape(weights.shape) * weights).sum(axis=1))

        truth = mixed(sb.exact_answers(points, kernels))
        guess = _error([mixed(sb.uniform_guess(kernels))], truth)
        queries = so.smooth.GaussianKernels(s).at(centres, weights)
        workload = so.smooth.SmoothQueries(d, points=len(points), bounds=(-1.0, 1.0), query_class=queries)
        for epsilon, found in measures.items():
            plan = so.plan(workload, _privacy("gaussian", epsilon), unit=so.ReplaceOne())
            sums, answers = plan.sums(points), []
            for draw in range(_DRAWS):
                with deterministic_noise(_key("thirty", s, epsilon, draw)):
                    answers.append(plan.release(sums).declared().values)
            ours = _error(answers, truth, plan.rmse)
            theirs = _error([mixed(sb.published_answers(w, candidates, kernels)) for w in found], truth)
            asked = f"{_MIXTURES} mixtures of {_EACH} kernels, bandwidth {s:g}"
            what = f"30 attributes, n = {len(points)}, {asked}, epsilon {epsilon:g}"
            private = f"{plan.mechanism} {ours}; rms {ours.rms:.2g}, planned {plan.rmse:.2g}"
            other = (
                f"published, {_MONOMIALS} monomials, really epsilon {_SPENT * epsilon:.2f}: {theirs}; "
                f"uniform guess {guess}; answers {truth.min():.2g} to {truth.max():.2g}"
            )
            rows.append(Row(what, private, other, ours.mean / theirs.mean))
    return rows


# Exponents: Table 1 of the paper.

_KNOTS = 8 if quick() else 40
_LENGTHS = (10**3, 10**4) if quick() else (10**3, 3162, 10**4, 31_623, 10**5, 316_228, 10**6)


def _kinked(x: Array, order: int) -> Array:
    """Return functions of one coordinate with `order` derivatives bounded by 1 and a kink at each of some places.

    Order 1: `exp(-|u|)`; above: `u^(K-1) |u| / K!` over its largest derivative.
    """
    u = x[:, None] - np.linspace(-0.7, 0.7, _KNOTS)
    if order == 1:
        return np.asarray(np.exp(-np.abs(u)))
    size = max(2.0**k / math.factorial(k) for k in range(order + 1))
    return np.asarray(u ** (order - 1) * np.abs(u) / math.factorial(order) / size)


def _smooth(x: Array) -> Array:
    """Return functions all of whose derivatives are bounded by 1."""
    return np.asarray(np.cos(x[:, None] - np.linspace(-1.5, 1.5, _KNOTS)))


_ORDERS: dict[int, tuple[str, Callable[[Array], Array]]] = {
    1: ("kinks, K = 1", partial(_kinked, order=1)),
    4: ("kinks in the third derivative, K = 4 = 2d", partial(_kinked, order=4)),
    20: ("cosines, K = 20", _smooth),
}
_WAYS = {
    "t of the paper, damped": ("paper", "jackson", "chebyshev-laplace"),
    "t of the paper, cut off": ("paper", "truncate", "chebyshev-laplace"),
    "t = auto": ("auto", "truncate", "chebyshev-laplace"),
    "weighted, t = auto": ("auto", "truncate", "weighted-laplace"),
}


def _products(x: Array, axis: Callable[[Array], Array]) -> Array:
    """Return test functions of two coordinates: the same place on both, and the mirrored one."""
    first, second = axis(x[:, 0]), axis(x[:, 1])
    return np.hstack([first * second, first * second[:, ::-1]])


@dataclass(frozen=True)
class _Measured:
    degree: int
    worst: float
    summing: float
    answering: float


@cache
def _grown(K: int, way: str) -> list[_Measured]:
    """Return what was measured for each number of points."""
    degree, approximation, mechanism = _WAYS[way]
    axis, found = _ORDERS[K][1], []
    for n in _LENGTHS:
        points = _mixture(n)
        workload = so.smooth.SmoothQueries(
            2,
            points=n,
            bounds=(-1.0, 1.0),
            query_class=so.smooth.KSmooth(K),
            degree=degree,
            approximation=approximation,
        )
        plan = so.plan(workload, so.PureDP(epsilon=1.0), unit=so.ReplaceOne(), mechanism=mechanism)
        summing, sums = min((once(partial(plan.sums, points)) for _ in range(3)), key=lambda pair: pair[0])
        truth, worst, answering = _averages(n, K), [], []
        for draw in range(max(_DRAWS // 2, 1)):
            with deterministic_noise(_key(n, K, way, draw)):
                release = plan.release(sums)
            values = release.query(partial(_products, axis=axis)).values
            worst.append(float(np.abs(values - truth).max()))
            # Time is that of one query alone.
            one = partial(_one, axis=axis)
            answering.append(min(once(partial(release.query, one))[0] for _ in range(3)))
        found.append(_Measured(plan.fit.sizes[0], float(np.mean(worst)), summing, min(answering)))
    return found


def _one(x: Array, axis: Callable[[Array], Array]) -> Array:
    return np.asarray(_products(x, axis)[:, 0])


@cache
def _mixture(n: int) -> Array:
    """Return points of one law, whatever their number."""
    rng = _rng("law")
    centres, widths = rng.uniform(-0.6, 0.6, (4, 2)), rng.uniform(0.1, 0.3, (4, 1))
    which = rng.integers(0, 4, n)
    return np.clip(centres[which] + widths[which] * rng.normal(size=(n, 2)), -1.0, 1.0)


@cache
def _averages(n: int, K: int) -> Array:
    points, axis = _mixture(n), _ORDERS[K][1]
    return np.asarray(sum(_products(part, axis).sum(axis=0) for part in np.array_split(points, -(-n // 10**5))) / n)


def _slope(values: list[float]) -> float:
    return float(np.polyfit(np.log(_LENGTHS), np.log(values), 1)[0])


def _exponents() -> list[Row]:
    """Fitted powers of n of the worst error over the test functions and of the times, beside Theorem 3.1 at d = 2."""
    rows = []
    d = 2
    for K, (name, _) in _ORDERS.items():
        error, summing, answering = -K / (2 * d + K), (3 * d + K) / (2 * d + K), (d + 2 + 2 * d / K) / (2 * d + K)
        for way in _WAYS:
            found = _grown(K, way)
            fits = [_slope([getattr(m, field) for m in found]) for field in ("worst", "summing", "answering")]
            last = found[-1]
            sizes = f"t = {', '.join(str(m.degree) for m in found)}"
            what = f"powers of n, {name}, d = 2, {way}, {sizes}"
            ours = (
                f"error {fits[0]:.2f}, summary {fits[1]:.2f}, query {fits[2]:.2f}; at n = {_LENGTHS[-1]:,} worst error "
                f"{last.worst:.2g}, {amount(last.summing)}, {amount(last.answering)}"
            )
            other = f"Theorem 3.1: error {error:.2f}, summary {summing:.2f}, query {answering:.2f}"
            rows.append(Row(what, ours, other))
    _draw_exponents()
    return rows


_WAY_STYLES: dict[str, dict[str, Any]] = {
    "t of the paper, damped": {"color": SIGNAL, "linestyle": "--"},
    "t of the paper, cut off": {"color": SIGNAL},
    "t = auto": {"color": INK},
    "weighted, t = auto": {"color": ACCENT},
}


def _draw_exponents() -> None:
    figure = new_figure(13.0, 4.8)
    handles: dict[str, Any] = {}
    for axes, (K, (name, _)) in zip(
        np.ravel(figure.subplots(1, len(_ORDERS), sharey=True)), _ORDERS.items(), strict=True
    ):
        for way, style in _WAY_STYLES.items():
            errors = [m.worst for m in _grown(K, way)]
            (handles[way],) = axes.plot(_LENGTHS, errors, marker="o", markersize=4, linewidth=1.7, **style)
        power = -K / (4 + K)
        start = _grown(K, "t of the paper, cut off")[0].worst
        line = [start * (n / _LENGTHS[0]) ** power for n in _LENGTHS]
        (handles["power of the paper's theorem"],) = axes.plot(
            _LENGTHS, line, color=MUTED, linestyle=":", linewidth=1.4
        )
        axes.set_xscale("log")
        axes.set_yscale("log")
        heading(axes, f"K = {K}", f"{name.split(',')[0]}; the theorem's power is {power:.2f}")
        dress(axes, "points", "worst error of the test functions" if K == 1 else "")
    figure.legend(list(handles.values()), list(handles), frameon=False, fontsize=9, loc="outside lower center", ncols=5)
    _save(figure, "smooth_exponents.png")


# Densities.


def _densities() -> list[Row]:
    """Return how far private densities of two attributes are from the kernel density of the points; and draw them."""
    bandwidth = 0.2
    points, d = sb.wdbc(2), 2
    n = len(points)
    side = 12 if quick() else 90
    ticks = (np.arange(side) + 0.5) * 2.0 / side - 1.0
    grid = np.stack(np.meshgrid(ticks, ticks, indexing="ij"), axis=-1).reshape(-1, 2)
    workload = so.smooth.SmoothQueries(
        d, points=n, bounds=(-1.0, 1.0), query_class=so.smooth.GaussianKernels(bandwidth)
    )
    kernels = sb.GaussianKernels(grid, bandwidth)
    # Kernels are normalised over the bounds, as in `density`.
    truth = sb.exact_answers(points, kernels) / (4.0 * sb.uniform_guess(kernels))
    plan = so.plan(workload, _privacy("gaussian"), unit=so.ReplaceOne(), mechanism="kernel")
    cells = so.plan(workload, _privacy("laplace"), unit=so.ReplaceOne(), mechanism="histogram-laplace")
    drawn: dict[str, Array] = {"kernel density: not private; dots: the points": truth}
    found: dict[str, list[Array]] = {}
    for draw in range(_DRAWS):
        with deterministic_noise(_key("density", draw)):
            release, counted = plan.release(points), cells.release(points)
        places = tuple(
            np.minimum(((grid[:, j] + 1.0) / 2.0 * cells.fit.sizes[j]).astype(int), cells.fit.sizes[j] - 1)
            for j in (0, 1)
        )
        area = 4.0 / math.prod(cells.fit.sizes)
        for name, values in {
            "kernel mechanism: epsilon 1, delta 1e-6": release.density(grid).values,
            "kernel, projected: the nearest measure": release.projected().density(grid).values,
            f"Laplace grid: epsilon 1, {cells.fit.sizes[0]} x {cells.fit.sizes[1]} cells as they are": counted.sums.reshape(
                cells.fit.sizes
            )[places]
            / n
            / area,
            "Laplace grid, smoothed: by the kernel": counted.density(grid).values,
        }.items():
            found.setdefault(name, []).append(values)
            drawn.setdefault(name, values)
    scale = float(truth.max())
    rows = []
    for name, values in found.items():
        error = _error([v / scale for v in values], truth / scale)
        below = float(np.mean([(v < -1e-9 * scale).mean() for v in values]))
        what = f"density of two attributes of breast cancer, n = {n}, bandwidth {bandwidth:g}, {name}"
        rows.append(Row(what, f"{error} of the largest density; negative on {below:.0%} of the bounds"))
    _draw_densities(drawn, ticks, points)
    return rows


def _draw_densities(drawn: dict[str, Array], ticks: Array, points: Array) -> None:
    figure = new_figure(17.0, 4.3)
    scale = float(drawn[next(iter(drawn))].max())
    colors = LinearSegmentedColormap.from_list("density", ["white", ACCENT, INK])
    colors.set_under("#efc4b4")
    (_, *horizontal), (_, *vertical) = (sb.WDBC_BOUNDS[column] for column in (0, 1))
    (x_name, *_), (y_name, *_) = (sb.WDBC_BOUNDS[column] for column in (0, 1))
    edges = [[low + (u + 1.0) / 2.0 * (high - low) for u in ticks] for low, high in (horizontal, vertical)]
    panels = np.ravel(figure.subplots(1, len(drawn), sharey=True))
    for number, (axes, name) in enumerate(zip(panels, drawn, strict=True)):
        values = drawn[name].reshape(len(ticks), len(ticks)).T / scale
        norm = Normalize(-0.005, 1.0)
        image = axes.pcolormesh(*edges, values, cmap=colors, norm=norm, shading="nearest", rasterized=True)
        if number == 0:
            data = [
                low + (points[:, j] + 1.0) / 2.0 * (high - low) for j, (low, high) in enumerate((horizontal, vertical))
            ]
            axes.plot(*data, ".", color=SIGNAL, markersize=1.6, alpha=0.7)
        title, _, note = name.partition(": ")
        heading(axes, title[0].upper() + title[1:], note)
        dress(axes, x_name, y_name if number == 0 else "")
        axes.grid(visible=False)
        axes.xaxis.set_major_locator(FixedLocator([5, 10, 15, 20, 25, 30]))
        axes.xaxis.set_minor_locator(NullLocator())
    bar = figure.colorbar(image, ax=list(panels), pad=0.01, extend="min")
    bar.outline.set_visible(False)
    bar.set_label("density over the largest; pale red: negative", fontsize=9, color=INK)
    bar.ax.tick_params(labelsize=9, colors=INK)
    _save(figure, "smooth_density.png")


def _quietly(section: Callable[[], list[Row]]) -> Callable[[], list[Row]]:
    def run() -> list[Row]:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "deterministic noise")
            return section()

    return run


_SECTIONS = {
    "table": _quietly(_table),
    "thirty": _quietly(_thirty_dimensions),
    "exponents": _quietly(_exponents),
    "densities": _quietly(_densities),
}


def figures() -> list[Row]:
    """Return all rows."""
    return [row for section in _SECTIONS for row in in_process(__file__, section, threads=1)]


if __name__ == "__main__":
    main(_SECTIONS, figures)
