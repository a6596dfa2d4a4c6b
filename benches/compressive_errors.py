"""Errors of compressive mechanisms beside what needs no sketch: `‖x - x*‖_2` on made and real histograms.

Static: a sketch with the best of several sizes, sparsities and algorithms (an oracle that only a benchmark has) against
noise on all cells, the same with a threshold in the same basis, and isotonic regression where counts are sorted. The
choice of a sparsity: the paper's mechanism and ours. Memory: k numbers of a sketch against n noisy cells and against k
equal-width buckets. Streams: the paper's as printed, which spends k times its epsilon, and the ones that keep their
promise. Phase transition: how sparse a signal must be. Errors are root mean squares over a few draws of known noise;
pictures go to `pictures/`. Delta is 1e-6 wherever noise is Gaussian.

Run `python benches/compressive_errors.py`.
"""

import hashlib
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import compressive_baselines as cb
import numpy as np
import signals
from harness import Row, in_process, main, power, quick
from matplotlib.figure import Figure
from numpy.typing import NDArray

import sordino as so
from sordino import _core
from sordino.mechanisms.linear.recoveries import ITERATIONS, recover
from sordino.mechanisms.linear.sparsity_choice import SparsityChoice
from sordino.plots.tables import ACCENT, INK, MUTED, PALE, SIGNAL, dress, heading, new_figure
from sordino.testing import deterministic_noise
from sordino.workloads.bases import basis_of

_PICTURES = Path(__file__).resolve().parent / "pictures"
_DOTS_PER_INCH = 100
_DELTA = 1e-6
_CELLS = 256 if quick() else 4096
_DRAWS = 1 if quick() else 2
_EPSILONS = (0.1, 1.0) if quick() else (0.01, 0.1, 1.0)

Array = NDArray[np.float64]
Table = NDArray[np.int64]


def _privacy(law: str, epsilon: float) -> so.PureDP | so.ApproxDP:
    return so.PureDP(epsilon=epsilon) if law == "laplace" else so.ApproxDP(epsilon=epsilon, delta=_DELTA)


def _key(*what: object) -> bytes:
    return hashlib.sha256(repr(what).encode()).digest()


def _distance(x: Array | Table, estimate: object) -> float:
    return float(np.linalg.norm(np.ravel(np.asarray(estimate)) - x))


def _rms(values: list[float]) -> float:
    return math.sqrt(float(np.mean(np.square(values))))


def _save(figure: Figure, name: str) -> None:
    if quick():
        return
    _PICTURES.mkdir(exist_ok=True)
    figure.savefig(_PICTURES / name, dpi=_DOTS_PER_INCH)


# One release.


@dataclass(frozen=True)
class _Data:
    """A histogram and the basis in which it is looked at."""

    name: str
    x: Table
    basis: str = "haar"

    @property
    def ordered(self) -> bool:
        return bool((np.diff(self.x) <= 0).all())


@cache
def _datasets() -> tuple[_Data, ...]:
    n = _CELLS
    made = (
        _Data("network trace, sorted", signals.network_trace(n)),
        _Data("6 plateaus", signals.plateaus(n, 6, height=500)),
        _Data("power law, unsorted", signals.power_law(n)),
    )
    if quick():
        return made[:2]
    return (
        *made,
        _Data("32 cosines", signals.dct_sparse(n, 32), "cosine"),
        _Data("flights by aircraft, sorted (real)", signals.aircraft()),
        _Data("flights by hour (real)", signals.departures_by_hour(), "cosine"),
        _Data("visits, sorted (real)", signals.visits()),
    )


def _cells(data: _Data, law: str, epsilon: float, draw: int) -> tuple[float, float]:
    """Return the errors of noise on all cells, and of what a threshold keeps of it."""
    plan = so.plan(so.Histogram(len(data.x)), _privacy(law, epsilon), mechanism=f"identity-{law}")
    with deterministic_noise(_key(data.name, law, epsilon, draw)):
        release = plan.release(data.x)
    return _distance(data.x, release.values), _distance(data.x, release.thresholded(data.basis).values)


def _isotonic(data: _Data, law: str, epsilon: float, draw: int) -> float:
    plan = so.plan(so.SortedHistogram(len(data.x)), _privacy(law, epsilon), mechanism=f"isotonic-{law}")
    with deterministic_noise(_key(data.name, "isotonic", law, epsilon, draw)):
        return _distance(np.sort(data.x), plan.release(data.x).values)


_SKETCHES = {
    "sparse signs, Laplace": ("sparse", "laplace"),
    "dense signs, Laplace": ("dense", "laplace"),
    "sparse signs, Gaussian": ("sparse", "gaussian"),
}
_LEVELS = (8, 32, 128)


def _readings(compression: so.sketches.Compression) -> list[so.sketches.Compression]:
    """Return the ways to read one sketch among which the oracle takes the best."""
    measurements = compression.measurements
    assert measurements is not None
    allowed = [s for s in _LEVELS if 2 * s <= measurements]
    greedy = [replace(compression, sparsity=s, recovery="cosamp") for s in allowed]
    return [*greedy, replace(compression, sparsity=allowed[-1], recovery="basis-pursuit")]


def _compressed(data: _Data, kind: str, law: str, epsilon: float) -> float:
    """Return the error of the best size and reading: least mean over the draws."""
    n = len(data.x)
    found: dict[tuple[Any, ...], list[float]] = {}
    # Rows of a Hadamard matrix have the sensitivities of independent signs and a fast transform.
    sketch = kind if kind == "sparse" else "bernoulli" if n <= 2**12 else "hadamard"
    for k in (n // 16, n // 4):
        asked = so.sketches.Compression(measurements=k, sparsity=8, basis=data.basis, sketch=sketch)  # type: ignore[arg-type]
        plan = so.plan(so.Histogram(n), _privacy(law, epsilon), mechanism=f"compressive-{law}", compression=asked)
        for draw in range(_DRAWS):
            with deterministic_noise(_key(data.name, kind, law, epsilon, draw)):
                release = plan.release(data.x)
            for reading in _readings(asked):
                error = _distance(data.x, release.reconstructed(reading).values)
                found.setdefault((k, reading.sparsity, reading.recovery), []).append(error)
    return min(_rms(errors) for errors in found.values())


def _all_errors(data: _Data, epsilon: float) -> dict[str, float]:
    """Return the error of every mechanism, by name; sketches have theirs from `_SKETCHES`."""
    errors = {}
    for law in ("laplace", "gaussian"):
        pairs = [_cells(data, law, epsilon, draw) for draw in range(_DRAWS)]
        errors[law.capitalize()] = _rms([plain for plain, _ in pairs])
        errors[f"{law.capitalize()}, threshold"] = _rms([kept for _, kept in pairs])
    if data.ordered:
        errors["isotonic, Laplace"] = _rms([_isotonic(data, "laplace", epsilon, draw) for draw in range(_DRAWS)])
    for name, (kind, law) in _SKETCHES.items():
        errors[name] = _compressed(data, kind, law, epsilon)
    return errors


@cache
def _static_errors(name: str, epsilon: float) -> dict[str, float]:
    return _all_errors(next(data for data in _datasets() if data.name == name), epsilon)


def _listed(errors: dict[str, float], names: list[str]) -> str:
    return ", ".join(f"{name} {errors[name]:.3g}" for name in names)


def _compared(what: str, errors: dict[str, float]) -> Row:
    """Return the row of a table: sketches, the others, the best sketch over the best of the others."""
    own = [name for name in errors if name in _SKETCHES]
    others = [name for name in errors if name not in _SKETCHES]
    best, least = (min(names, key=errors.__getitem__) for names in (own, others))
    winner = min(best, least, key=errors.__getitem__)
    return Row(what, _listed(errors, own), f"{_listed(errors, others)}; least: {winner}", errors[best] / errors[least])


def _static() -> list[Row]:
    rows = []
    for data in _datasets():
        for epsilon in _EPSILONS:
            norm = f"norm {np.linalg.norm(data.x):.4g}"
            what = f"{data.name}, {power(len(data.x))} cells, {data.basis}, {norm}, epsilon {epsilon:g}"
            rows.append(_compared(what, _static_errors(data.name, epsilon)))
    _draw_static()
    return rows


_LINES: dict[str, dict[str, Any]] = {
    "Laplace": {"color": MUTED, "linestyle": ":"},
    "Gaussian": {"color": PALE, "linestyle": ":"},
    "Laplace, threshold": {"color": INK},
    "Gaussian, threshold": {"color": MUTED},
    "isotonic, Laplace": {"color": INK, "linestyle": "--"},
    "sparse signs, Laplace": {"color": ACCENT},
    "dense signs, Laplace": {"color": SIGNAL},
    "sparse signs, Gaussian": {"color": ACCENT, "linestyle": "--"},
}


def _draw_static() -> None:
    figure = new_figure(13.0, 4.8)
    shown = [_datasets()[0], _datasets()[1], _datasets()[-3 if len(_datasets()) > 4 else -1]]
    handles: dict[str, Any] = {}
    for axes, data in zip(np.ravel(figure.subplots(1, len(shown))), shown, strict=True):
        found = [_static_errors(data.name, epsilon) for epsilon in _EPSILONS]
        for name, style in _LINES.items():
            if name in found[0]:
                (handles[name],) = axes.plot(
                    _EPSILONS, [errors[name] for errors in found], marker="o", markersize=4, linewidth=1.7, **style
                )
        norm = float(np.linalg.norm(data.x))
        axes.axhline(norm, color=PALE, linewidth=1.0)
        axes.annotate("answering zero", (_EPSILONS[-1], norm), fontsize=8, color=MUTED, ha="right", va="bottom")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks(_EPSILONS, [f"{epsilon:g}" for epsilon in _EPSILONS])
        axes.set_xticks([], minor=True)
        heading(axes, data.name, f"{power(len(data.x))} cells, basis {data.basis}")
        dress(axes, "epsilon", "l2 error of the table")
    figure.legend(list(handles.values()), list(handles), frameon=False, fontsize=9, loc="outside lower center", ncols=4)
    _save(figure, "compressive-epsilon.png")


# The choice of a sparsity.

_CHOICES = 50 if quick() else 1000
# The paper's sketch, whose transform is quick, and four signs a column.
_SIGNS = {"dense signs": "hadamard", "4 signs": "sparse"}


@dataclass(frozen=True)
class _Choices:
    """Errors with every S, and how often each is chosen."""

    sparsities: NDArray[np.int64]
    errors: Array
    ours: Array
    paper: Array

    @property
    def best(self) -> int:
        return int(self.sparsities[np.argmin(self.errors)])

    def error(self, shares: Array) -> float:
        """Return the error of a release whose S is chosen with these shares."""
        return math.sqrt(float(shares @ self.errors**2))

    def frequencies(self, shares: Array) -> str:
        order = np.argsort(-shares)[:3]
        return ", ".join(f"{self.sparsities[i]} ({shares[i]:.2f})" for i in order if shares[i] >= 0.05)


def _searched() -> tuple[_Data, ...]:
    """Return the paper's data of Figure 3 where they are, else others of their size."""
    if quick():
        return _datasets()[:2]
    stand_ins = {
        "social_network": signals.power_law(11_342, total=100_000, ordered=True),
        "nettrace": signals.network_trace(2**16),
        "search_logs": signals.power_law(2**15),
    }
    found = {name: signals.hay(name) for name in stand_ins}
    return tuple(
        _Data(f"{name.replace('_', ' ')} (stand-in)", stand_ins[name])
        if x is None
        else _Data(name.replace("_", " "), x)
        for name, x in found.items()
    )


def _choice() -> list[Row]:
    """Which sparsity is chosen with a tenth of epsilon 1, and what it costs in error of the release."""
    rows, drawn = [], []
    for data in _searched():
        found = {name: _choices(data, kind) for name, kind in _SIGNS.items()}
        drawn.append((data, found))
        for name, choices in found.items():
            ours, paper = (choices.error(shares) for shares in (choices.ours, choices.paper))
            rows.append(
                Row(
                    f"choice of S, {data.name}, {len(data.x):,} cells, {name}; error least at {choices.best}",
                    f"{choices.frequencies(choices.ours)}: error {ours:.3g}, at best {choices.errors.min():.3g}",
                    f"the paper's: {choices.frequencies(choices.paper)}: error {paper:.3g}",
                    ours / paper,
                )
            )
    _draw_choice(drawn)
    return rows


def _choices(data: _Data, kind: str) -> _Choices:
    n, basis = len(data.x), basis_of(data.basis)
    sparsities = 2 ** np.arange(min((n // 8).bit_length(), 13))
    chooser = so.sketches.ChosenSparsity(share=0.1, candidates=tuple(sparsities.tolist()))
    asked = so.sketches.Compression(sparsity=chooser, basis=data.basis, sketch=kind)  # type: ignore[arg-type]
    plan = so.plan(so.Histogram(n), so.PureDP(epsilon=1.0), mechanism="compressive-laplace", compression=asked)
    scores = SparsityChoice(asked).scores(plan.fit)
    drawn = [scores.select(basis.core(n), data.x, _key(data.name, kind, i)) for i in range(_CHOICES)]
    ours = np.bincount(drawn, minlength=len(sparsities)) / _CHOICES

    coefficients = basis.analyze(np.pad(data.x, (0, (1 << (n - 1).bit_length()) - n)).astype(np.float64))
    printed = cb.sparsity_scores(coefficients, sparsities, 1.0)
    sensitivity = cb.transform_sensitivity(len(coefficients), data.basis)
    paper = cb.sparsity_probabilities(printed, sparsities, 0.1, sensitivity, uniform=False)
    return _Choices(sparsities, np.array([_fixed(data, kind, int(S)) for S in sparsities]), ours, paper)


def _draw_choice(drawn: list[tuple[_Data, dict[str, _Choices]]]) -> None:
    """Draw errors against S above, and how often each S is chosen below."""
    figure = new_figure(13.0, 6.0)
    panels = figure.subplots(2, len(drawn), sharex="col", squeeze=False)
    for (upper, lower), (data, found) in zip(panels.T, drawn, strict=True):
        bars = [("weights as printed", found["dense signs"].paper, SIGNAL)]
        for (name, choices), color in zip(found.items(), (INK, ACCENT), strict=True):
            at = np.arange(len(choices.sparsities))
            upper.plot(at, choices.errors, color=color, marker="o", markersize=4, linewidth=1.7, label=f"error, {name}")
            bars.append((f"ours, {name}", choices.ours, color))
        upper.set_yscale("log")
        heading(upper, data.name, f"{len(data.x):,} cells, {data.basis}")
        dress(upper, "", "l2 error of a release" if upper is panels[0, 0] else "")
        for place, (name, shares, color) in enumerate(bars):
            lower.bar(at + 0.27 * (place - 1), shares, width=0.27, color=color, label=name)
        lower.set_xticks(at, [str(S) if i % 2 == 0 else "" for i, S in enumerate(choices.sparsities)])
        lower.set_ylim(0.0, 1.0)
        dress(lower, "S", "share of choices" if lower is panels[1, 0] else "")
    handles = {
        label: handle for axes in panels[:, 0] for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(list(handles.values()), list(handles), frameon=False, fontsize=9, loc="outside lower center", ncols=5)
    _save(figure, "compressive-choice.png")


def _fixed(data: _Data, kind: str, sparsity: int) -> float:
    """Return the error of a release that spends nine tenths of epsilon 1 with this sparsity and sketch, CoSaMP."""
    asked = so.sketches.Compression(sparsity=sparsity, basis=data.basis, sketch=kind)  # type: ignore[arg-type]
    plan = so.plan(
        so.Histogram(len(data.x)), so.PureDP(epsilon=0.9), mechanism="compressive-laplace", compression=asked
    )
    errors = []
    for draw in range(_DRAWS):
        with deterministic_noise(_key(data.name, kind, sparsity, draw)):
            errors.append(_distance(data.x, plan.release(data.x).values))
    return _rms(errors)


# Memory.


def _buckets(x: Table, count: int, epsilon: float, draw: int) -> float:
    """Return the error of so many buckets of equal width with Laplace noise, each spread evenly over its cells."""
    width = len(x) // count
    with deterministic_noise(_key("buckets", epsilon, draw)):
        noisy = so.plan(so.Histogram(count), so.PureDP(epsilon=epsilon)).release(x.reshape(count, width).sum(axis=1))
    return _distance(x, np.repeat(noisy.values / width, width))


def _memory() -> list[Row]:
    """A sketch in place of n cells, where a sketch has its place; and where it fails."""
    n, k = (2**12, 512) if quick() else (2**20, 4096)
    rows = []
    for count, sparsity in ((2, 30),) if quick() else ((10, 150), (40, 300), (40, 875)):
        data = _Data(f"{count} plateaus", signals.plateaus(n, count))
        own = int((np.abs(cb.haar(data.x)) > 1e-9).sum())
        # With all its coefficients the second is beyond what so few numbers determine.
        for epsilon in (0.1, 1.0) if sparsity < own else (1.0,):
            plain, kept = _cells(data, "laplace", epsilon, 0)
            few = _buckets(data.x, k, epsilon, 0)
            sketched = {}
            for name, law, nonzeros in (("4 signs, Laplace", "laplace", 4), ("8 signs, Gaussian", "gaussian", 8)):
                asked = so.sketches.Compression(measurements=k, sparsity=sparsity, nonzeros=nonzeros)
                plan = so.plan(
                    so.Histogram(n), _privacy(law, epsilon), mechanism=f"compressive-{law}", compression=asked
                )
                with deterministic_noise(_key("memory", count, epsilon, law)):
                    sketched[name] = _distance(data.x, plan.release(data.x).values)
            norm = f"norm {np.linalg.norm(data.x):.4g}"
            what = (
                f"{data.name} of {power(n)} cells, {own} coefficients, {norm}, "
                f"{power(k)} numbers, S = {sparsity}, epsilon {epsilon:g}"
            )
            full = f"with all {power(n)} cells: Laplace {plain:.4g}, threshold {kept:.4g}"
            others = f"{power(k)} buckets, Laplace {few:.4g}; {full}"
            best = min(sketched.values())
            winner = "least of what fits the memory: " + ("the sketch" if best < few else "buckets")
            rows.append(
                Row(
                    what,
                    ", ".join(f"sketch of {name} {error:.4g}" for name, error in sketched.items()),
                    f"{others}; {winner}",
                    best / few,
                )
            )
    return rows


# Streams.

_STEPS = 256 if quick() else 4096
_NUMBERS = 64 if quick() else 512
_SPARSITIES = (8, 32) if quick() else (8, 32, 128)
_STREAM_LINES: dict[str, dict[str, Any]] = {
    "as printed: really k epsilon": {"color": SIGNAL, "linestyle": ":"},
    "sketch of dense signs, Laplace": {"color": SIGNAL},
    "sketch of 4 signs, Laplace": {"color": ACCENT},
    "sketch, Gaussian square root": {"color": ACCENT, "linestyle": "--"},
    "sketch, Gaussian auto": {"color": ACCENT, "linestyle": ":"},
    "differences of a tree, Laplace": {"color": PALE},
    "per item, Laplace": {"color": MUTED},
    "per item, threshold": {"color": INK},
}
_PRINTED = "as printed: really k epsilon"


def _times() -> list[int]:
    return list(range(_STEPS // 16, _STEPS + 1, _STEPS // 16))


def _followed(plan: so.StreamPlan, x: Table, read: Callable[[so.streams.HistogramStream], float]) -> list[float]:
    """Return what is read at every time of a stream."""
    errors, wanted = [], set(_times())
    with deterministic_noise(_key("stream", plan.mechanism, repr(plan.privacy), int(x.sum()))), plan.open() as stream:
        for t, count in enumerate(x.tolist(), start=1):
            stream.update(count)
            if t in wanted:
                errors.append(read(stream))
    return errors


def _prefix(x: Table, step: int) -> Table:
    return np.where(np.arange(len(x)) < step, x, 0)


def _read_sketch(x: Table) -> Callable[[so.streams.HistogramStream], float]:
    """Return the reader of a sketch that takes the best sparsity: an oracle."""

    def read(stream: so.streams.HistogramStream) -> float:
        own, truth = stream.fit.compression, _prefix(x, stream.step)
        assert own is not None
        estimates = [stream.estimate(compression=replace(own, sparsity=s)).values for s in _SPARSITIES]
        return min(_distance(truth, np.where(np.arange(len(x)) < stream.step, e, 0.0)) for e in estimates)

    return read


def _read_cells(x: Table, *, threshold: bool) -> Callable[[so.streams.HistogramStream], float]:
    def read(stream: so.streams.HistogramStream) -> float:
        values = stream.estimate().values if threshold else stream.noisy()
        return _distance(_prefix(x, stream.step), np.where(np.arange(len(x)) < stream.step, values, 0.0))

    return read


def _as_printed(x: Table, epsilon: float) -> list[float]:
    """Return the errors of the paper's mechanism, whose counters spend epsilon each."""
    operator = _core.SketchOperator("bernoulli", len(x), _NUMBERS, 0, 4)
    signs = np.array([operator.column(j) for j in range(len(x))], dtype=np.float64).T
    released = cb.literal_continual(signs, x, epsilon, np.random.default_rng(7))
    scale = len(x).bit_length() / (math.sqrt(_NUMBERS) * epsilon)
    errors = []
    for t in _times():
        noise = scale * math.sqrt(2.0 * t.bit_count())
        found = [
            recover(operator, so.sketches.Haar(), released[t - 1], noise, "laplace", "cosamp", sparsity).values
            for sparsity in _SPARSITIES
        ]
        errors.append(min(_distance(_prefix(x, t), np.where(np.arange(len(x)) < t, e, 0.0)) for e in found))
    return errors


@cache
def _streamed(name: str, epsilon: float) -> dict[str, list[float]]:
    x = _streams()[name]
    workload = so.RunningHistogram(len(x), once=True)
    laplace, gaussian = (_privacy(law, epsilon) for law in ("laplace", "gaussian"))
    sparse = so.sketches.Compression(measurements=_NUMBERS, sparsity=_SPARSITIES[-1])
    dense = replace(sparse, sketch="bernoulli")
    plans = {
        "sketch of dense signs, Laplace": so.plan(so.Continual(workload), laplace, compression=dense),
        "sketch of 4 signs, Laplace": so.plan(so.Continual(workload), laplace, compression=sparse),
        "sketch, Gaussian square root": so.plan(
            so.Continual(workload), gaussian, compression=sparse, mechanism="square-root"
        ),
        "sketch, Gaussian auto": so.plan(so.Continual(workload), gaussian, compression=sparse),
    }
    errors = {_PRINTED: _as_printed(x, epsilon)}
    errors |= {name: _followed(plan, x, _read_sketch(x)) for name, plan in plans.items()}
    differenced = so.plan(so.Continual(workload), laplace, mechanism="differenced")
    items = so.plan(so.Continual(workload), laplace, mechanism="per-item")
    errors["differences of a tree, Laplace"] = _followed(differenced, x, _read_cells(x, threshold=False))
    errors["per item, Laplace"] = _followed(items, x, _read_cells(x, threshold=False))
    errors["per item, threshold"] = _followed(items, x, _read_cells(x, threshold=True))
    return errors


@cache
def _streams() -> dict[str, Table]:
    made = {"network trace, sorted": signals.network_trace(_STEPS)}
    if quick():
        return made
    return {
        **made,
        "6 plateaus": signals.plateaus(_STEPS, 6, height=500),
        "power law, unsorted": signals.power_law(_STEPS),
    }


def _stream_errors() -> list[Row]:
    rows = []
    for name, x in _streams().items():
        for epsilon in (1.0,) if quick() else (0.1, 1.0):
            errors = _streamed(name, epsilon)
            for t in (_STEPS // 4, _STEPS):
                at = _times().index(t)
                own = {key: values[at] for key, values in errors.items() if key.startswith("sketch")}
                others = {key: values[at] for key, values in errors.items() if not key.startswith("sketch")}
                private = {key: error for key, error in others.items() if key != _PRINTED}
                best, least = (min(found, key=found.__getitem__) for found in (own, private))
                winner = min({best: own[best], least: private[least]}.items(), key=lambda item: item[1])[0]
                norm = f"norm {np.linalg.norm(_prefix(x, t)):.4g}"
                rows.append(
                    Row(
                        f"stream, {name}, step {t:,} of {_STEPS:,}, {norm}, {_NUMBERS} numbers, epsilon {epsilon:g}",
                        _listed(own, list(own)),
                        f"{_listed(others, list(others))}; least of the private ones: {winner}",
                        own[best] / private[least],
                    )
                )
    _draw_streams()
    return rows


def _draw_streams() -> None:
    names = list(_streams())[:2]
    figure = new_figure(13.0, 5.0)
    for axes, name in zip(np.ravel(figure.subplots(1, len(names))), names, strict=True):
        errors = _streamed(name, 1.0)
        for key, style in _STREAM_LINES.items():
            # Before the first record an estimate may be zero, and right.
            drawn = [error if error >= 1.0 else math.nan for error in errors[key]]
            axes.plot(_times(), drawn, linewidth=1.7, marker="o", markersize=3, label=key, **style)
        axes.set_yscale("log")
        heading(axes, name, f"{_NUMBERS} numbers in place of {_STEPS:,} cells, epsilon 1")
        dress(axes, "step", "l2 error of the table so far")
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, fontsize=9, loc="outside lower center", ncols=4)
    _save(figure, "compressive-streams.png")


# Phase transition.

_PHASE_CELLS = (64,) if quick() else (1024, 4096)
_GRID = 3 if quick() else 12
_TRIALS = 2 if quick() else 10
_FOUND = 1e-3
_ALGORITHMS = {"cosamp": "CoSaMP", "hard-thresholding": "hard thresholding", "basis-pursuit": "basis pursuit"}


def _recovered(n: int, k: int, sparsity: int, algorithm: str, trial: int) -> bool:
    """Return whether a noiseless sketch of Gaussian coefficients at random places gives them back."""
    rng = np.random.default_rng((n, k, sparsity, trial))
    operator, basis = _core.SketchOperator("hadamard", n, k, trial, 0), _core.Basis.named("haar", n)
    c = np.zeros(n)
    c[rng.choice(n, sparsity, replace=False)] = rng.normal(size=sparsity)
    y = operator.apply(basis.synthesize(c))
    # The iterations of a plan, but those of basis pursuit, which end at the sparsest answers later.
    found = _core.recover(operator, basis, y, algorithm, sparsity, 0.0, min(ITERATIONS[algorithm], 300), None, None)
    c[found.support] -= found.coefficients
    return float(np.linalg.norm(c)) <= _FOUND * float(np.linalg.norm(y))


def _shares() -> tuple[Array, Array]:
    return np.linspace(0.0, 0.9, _GRID + 1)[1:], np.linspace(0.0, 0.72, _GRID + 1)[1:]


@cache
def _rates(n: int, algorithm: str) -> Array:
    """Return success rates: a row for each S/k, a column for each k/n."""
    undersampling, density = _shares()
    trials = _TRIALS if n <= _PHASE_CELLS[0] else max(_TRIALS // 3, 1)
    rates = np.zeros((len(density), len(undersampling)))
    for column, share in enumerate(undersampling):
        for row, part in enumerate(density):
            k = max(round(share * n), 2)
            sparsity = max(round(part * k), 1)
            if 2 * sparsity > k and algorithm == "cosamp":
                # Two bases of its support must be told apart: no more than half of the numbers.
                continue
            rates[row, column] = np.mean([_recovered(n, k, sparsity, algorithm, t) for t in range(trials)])
            if rates[row, column] == 0.0:
                break  # denser signals fail too
    return rates


def _phase() -> list[Row]:
    rows = []
    _, density = _shares()
    for n in _PHASE_CELLS:
        for algorithm, label in _ALGORITHMS.items():
            rates = _rates(n, algorithm)
            middle = rates.shape[1] // 2
            half = density[rates[:, middle] >= 0.5]
            most = half.max() if len(half) else 0.0
            share = _shares()[0][middle]
            what = f"phase transition, {label}, {power(n)} cells, Hadamard rows, no noise, k/n = {share:.2f}"
            rows.append(Row(what, f"half of the signals are found up to S/k = {most:.2f}"))
    _draw_phase()
    return rows


def _draw_phase() -> None:
    undersampling, density = _shares()
    figure = new_figure(13.0, 4.6)
    panels = np.ravel(figure.subplots(1, len(_ALGORITHMS), sharey=True))
    for axes, (algorithm, label) in zip(panels, _ALGORITHMS.items(), strict=True):
        image = axes.pcolormesh(
            undersampling,
            density,
            _rates(_PHASE_CELLS[0], algorithm),
            cmap="Blues",
            vmin=0.0,
            vmax=1.0,
            shading="nearest",
        )
        if len(_PHASE_CELLS) > 1:
            axes.contour(undersampling, density, _rates(_PHASE_CELLS[1], algorithm), [0.5], colors=[SIGNAL])
        heading(
            axes,
            label,
            f"share of signals found, {power(_PHASE_CELLS[0])} cells; line: half, {power(_PHASE_CELLS[-1])}",
        )
        dress(axes, "k / n", "S / k")
    figure.colorbar(image, ax=list(panels), pad=0.01).outline.set_visible(False)  # type: ignore[operator]
    _save(figure, "compressive-phase.png")


def _quietly(section: Callable[[], list[Row]]) -> Callable[[], list[Row]]:
    def run() -> list[Row]:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "deterministic noise")
            return section()

    return run


_SECTIONS = {
    "static": _quietly(_static),
    "choice": _quietly(_choice),
    "memory": _quietly(_memory),
    "streams": _quietly(_stream_errors),
    "phase": _quietly(_phase),
}


def figures() -> list[Row]:
    """Return all rows."""
    return [row for section in _SECTIONS for row in in_process(__file__, section, threads=2)]


if __name__ == "__main__":
    main(_SECTIONS, figures)
