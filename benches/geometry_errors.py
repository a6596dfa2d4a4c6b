"""Errors of the mechanisms of "The geometry of differential privacy" (Nikolov, Talwar & Zhang 2013) and of ours.

Dense: total squared error of Gaussian noise of unit multiplier, beside the least that any Gaussian strategy can have.
Pure: the same at epsilon = 1. Worst query: standard deviation at unit multiplier, beside `gamma_2`; and the mechanism
of Theorem 24 (several runs, medians). Sparse: mean squared error of releases of known tables at (1, 1e-6), with known
noise. All are errors of plans as they are released, rounding included. Pictures go to `pictures/`.

Run `python benches/geometry_errors.py`.
"""

import hashlib
import math
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from harness import Row, in_process, main, quick
from matplotlib.figure import Figure
from numpy.typing import NDArray

import sordino as so
from sordino import _core
from sordino.accuracy.nuclear_norms import singular_mean
from sordino.plots.tables import ACCENT, INK, MUTED, PALE, SIGNAL, dress, heading, new_figure
from sordino.privacy.calibration import gaussian_mu
from sordino.testing import deterministic_noise

_PICTURES = Path(__file__).resolve().parent / "pictures"
_DOTS_PER_INCH = 100
_UNIT_NOISE = so.GaussianDP(mu=1.0)
_PURE = so.PureDP(epsilon=1.0)
_PRIVACY = so.ApproxDP(epsilon=1.0, delta=1e-6)
_TRIALS = 2 if quick() else 100
_DRAWS = 20 if quick() else 500
_SIMULATED = 200 if quick() else 4000

Array = NDArray[np.float64]


def _signs(rows: int, columns: int) -> so.Matrix:
    return so.Matrix(np.random.default_rng(0).choice([-1.0, 1.0], size=(rows, columns)))


@cache
def _workloads() -> dict[str, so.workloads.Workload]:
    if quick():
        return {"prefix sums, 16": so.RunningSum(16), "2-way marginals of 2^4": so.Marginals([2] * 4, k=2)}
    return {
        "prefix sums, 64": so.RunningSum(64),
        "prefix sums, 256": so.RunningSum(256),
        "all ranges of 64": so.AllRanges(64),
        "±1, 64 x 256": _signs(64, 256),
        "2-way marginals of 2^8": so.Marginals([2] * 8, k=2),
        "3-way marginals of 2^8": so.Marginals([2] * 8, k=3),
    }


def _total(plan: so.Plan) -> float:
    return plan.rmse**2 * plan.workload.core.answers_len


def _key(*what: object) -> bytes:
    return hashlib.sha256(repr(what).encode()).digest()


def _save(figure: Figure, name: str) -> None:
    if quick():
        return
    _PICTURES.mkdir(exist_ok=True)
    figure.savefig(_PICTURES / name, dpi=_DOTS_PER_INCH)


# Dense: Gaussian noise.

_DENSE = {
    "dense-printed": "Algorithm 2 as printed",
    "dense-rescaled": "Algorithm 2 scaled to its sensitivity",
    "dense": "its decomposition, optimal coefficients",
    "ellipsoid": "minimum ellipsoid alone",
    "optimal": "optimal strategy",
}
_DOTS = {"dense-printed": SIGNAL, "dense-rescaled": MUTED, "dense": ACCENT, "ellipsoid": PALE, "optimal": INK}


def _dense() -> list[Row]:
    rows = []
    ratios: dict[str, dict[str, float]] = {}
    for name, workload in _workloads().items():
        found = so.optimal.factorize(workload, gap=1e-6)
        assert found.certificate is not None
        m = workload.core.answers_len
        dual, spectral = m * found.certificate.lower**2, m * singular_mean(workload)[0] ** 2
        bound = f"no Gaussian strategy has less than {dual:.6g} (dual), {spectral:.6g} (singular values)"
        ratios[name] = {}
        for mechanism, label in _DENSE.items():
            given = found if mechanism == "optimal" else None
            total = _total(so.plan(workload, _UNIT_NOISE, mechanism=mechanism, factorization=given))
            ratios[name][mechanism] = total / dual
            rows.append(Row(f"{name}, {label}", f"{total:.6g}", bound, total / dual))
    _draw_dense(ratios)
    return rows


def _draw_dense(ratios: dict[str, dict[str, float]]) -> None:
    figure = new_figure(9.5, 4.6)
    axes = figure.subplots()
    names = list(ratios)
    at = np.arange(len(names))[::-1]
    for k, (mechanism, label) in enumerate(_DENSE.items()):
        values = [ratios[name][mechanism] for name in names]
        axes.scatter(
            values,
            at + 0.13 * (2 - k),
            s=48,
            color=_DOTS[mechanism],
            edgecolor="white",
            linewidth=0.6,
            label=label,
            zorder=3,
        )
    axes.set_xscale("log")
    axes.set_yticks(at, names)
    ticks = [1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_xlim(0.93, 25.0)
    axes.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    heading(axes, "Total squared error over the least possible", "Gaussian noise; 1 is a certified lower bound")
    dress(axes, "times the bound (logarithmic)", "")
    axes.grid(axis="x", color=PALE, linewidth=0.6, alpha=0.6)
    _save(figure, "geometry-mechanisms.png")


# Pure.

_SIMPLE = ("identity", "output", "tree", "haar", "fourier", "fourier-planar", "fourier-grouped")
_PURE_LABELS = {
    "p-identity": "p-identity strategy",
    "ellipsoid": "ellipsoid norm of least error",
    "dense": "block norms on the decomposition, optimal scales",
    "dense-rescaled": "Algorithm 4 with balls, scaled to its sensitivity",
    "dense-printed": "Algorithm 4 with balls, as printed",
    "k-norm": "K-norm",
}


def _pure() -> list[Row]:
    rows = []
    small = {} if quick() else {"±1, 16 x 256": _signs(16, 256)}
    for name, workload in {**small, **_workloads()}.items():
        compared = so.compare(workload, _PURE)
        totals = {
            row["mechanism"].removesuffix("-laplace"): row["rmse"] ** 2 * workload.core.answers_len
            for row in compared.rows
        }
        cells = f"noise on the cells: {totals['identity']:.6g}"
        simple = min((key for key in _SIMPLE if key in totals and key != "identity"), key=lambda key: totals[key])
        rows.append(Row(f"{name}, {simple}", f"{totals[simple]:.6g}", cells, totals[simple] / totals["identity"]))
        for mechanism, label in _PURE_LABELS.items():
            if mechanism not in totals:
                continue
            total, doubt = totals[mechanism], ""
            if mechanism == "k-norm":
                total, error = _k_norm_error(workload)
                doubt = f" ± {error:.2g}, {_DRAWS} releases"
            rows.append(Row(f"{name}, {label}", f"{total:.6g}{doubt}", cells, total / totals["identity"]))
    return rows


def _k_norm_error(workload: so.workloads.Workload) -> tuple[float, float]:
    """Return the mean total squared error of releases and its standard error: the plan knows an upper bound only."""
    plan = so.plan(workload, _PURE, mechanism="k-norm")
    zeros = np.zeros(workload.input_shape, dtype=np.int64)
    errors = []
    for draw in range(_DRAWS):
        with deterministic_noise(_key("k-norm", draw)):
            errors.append(float(np.sum(plan.release(zeros).values ** 2)))
    return float(np.mean(errors)), float(np.std(errors) / math.sqrt(_DRAWS))


# The worst query.


def _worst() -> list[Row]:
    rows = []
    for name, workload in _workloads().items():
        if name.startswith("3-way"):
            continue
        found = so.optimal.factorize(workload, objective="max", gap=1e-6)
        assert found.certificate is not None
        lower = found.certificate.lower
        bound = f"gamma_2 >= {lower:.6g}"
        for mechanism in ("dense-printed", "dense"):
            plan = so.plan(workload, _UNIT_NOISE, mechanism=mechanism)
            label = f"{name}, worst query, {_DENSE[mechanism]}"
            rows.append(Row(label, f"{plan.max_stderr:.6g}", bound, plan.max_stderr / lower))
        plan = so.plan(workload, _UNIT_NOISE, mechanism="optimal", objective="max", factorization=found)
        label = f"{name}, worst query, optimal for it"
        rows.append(Row(label, f"{plan.max_stderr:.6g}", bound, plan.max_stderr / lower))
    rows.append(_medians())
    return rows


def _noise(plan: so.Plan, rng: np.random.Generator, draws: int, factor: float = 1.0) -> Array:
    """Return noise of the answers of a plan, in floating point, shape (draws, answers)."""
    strategy = plan.fit.strategy
    B = plan.fit.factorization
    assert B is not None
    L = _core.dense(plan.workload.core) @ np.linalg.pinv(B.matrix)
    deviations = factor * plan.fit.door.noise * np.sqrt(strategy.unit_variances())
    return np.asarray((rng.normal(size=(draws, len(deviations))) * deviations) @ L.T)


def _medians() -> Row:
    """Theorem 24: run a mixture of mechanisms L times at (epsilon/L, delta/L), answer the medians.

    The mixture is that of Theorem 23: multiplicative weights on the queries against Algorithm 2 for the weighted
    queries. L is not named in the paper beyond O(log d): the least odd number that is at least ln d.
    """
    d = 16 if quick() else 64
    A = np.tril(np.ones((d, d)))
    count = math.ceil(math.log(d)) | 1
    weights = np.full(d, 1.0 / d)
    mixture = []
    for _ in range(4 if quick() else 40):
        plan = so.plan(so.Matrix(A, weights=weights), _UNIT_NOISE, mechanism="dense-printed")
        mixture.append(plan)
        variances = np.ravel(plan.fit.answers_stderr) ** 2
        weights = weights * np.exp(0.5 * variances / variances.max())
        weights /= weights.sum()
    rng = np.random.default_rng(1)
    smaller = so.ApproxDP(epsilon=_PRIVACY.epsilon / count, delta=_PRIVACY.delta / count)
    printed, composed = 1.0 / gaussian_mu(smaller), math.sqrt(count) / gaussian_mu(_PRIVACY)
    each = -(-_SIMULATED * count // len(mixture))
    pool = np.concatenate([_noise(plan, rng, each) for plan in mixture])
    runs = rng.permutation(pool)[: _SIMULATED * count].reshape(_SIMULATED, count, d)
    largest = float(np.abs(np.median(runs, axis=1)).max(axis=1).mean())
    ours = so.plan(so.RunningSum(d), _PRIVACY, mechanism="optimal", objective="max")
    least = float(np.abs(_noise(ours, rng, _SIMULATED)).max(axis=1).mean())
    other = (
        f"Theorem 24, medians of {count} runs: {largest * printed:.4g}; with exact composition {largest * composed:.4g}"
    )
    what = f"prefix sums, {d}, (1, 1e-6), expected largest error, optimal for the worst query"
    return Row(what, f"{least:.4g}", other, least / (largest * printed))


# Sparse.

_TOTALS = (10, 100) if quick() else (10, 100, 1000, 10_000)


def _sparse_workloads() -> dict[str, so.workloads.Workload]:
    if quick():
        return {"prefix sums, 16": so.RunningSum(16)}
    return {
        "2-way marginals of 2^8": so.Marginals([2] * 8, k=2),
        "prefix sums, 256": so.RunningSum(256),
        "±1, 64 x 4,096": _signs(64, 4096),
    }


def _tables(cells: int, total: int) -> list[NDArray[np.int64]]:
    """Return tables of so many records, by Zipf's law with exponent 1.1 on cells in random order."""
    rng = np.random.default_rng(1)
    shares = 1.0 / np.arange(1, cells + 1) ** 1.1
    return [rng.multinomial(total, rng.permutation(shares / shares.sum())) for _ in range(_TRIALS)]


def _errors(plan: so.Plan, tables: list[NDArray[np.int64]]) -> tuple[float, float]:
    """Return the mean squared error per query over the tables, and its standard error; exact without projection."""
    if plan.request.constraint is None:
        return plan.rmse**2, 0.0
    errors = []
    for trial, table in enumerate(tables):
        truth = plan.workload.core.apply(table.astype(np.float64))
        with deterministic_noise(_key(plan.mechanism, len(truth), int(table.sum()), trial)):
            answers = plan.release(table.reshape(plan.workload.input_shape)).values
        errors.append(float(np.mean((np.ravel(answers) - truth) ** 2)))
    return float(np.mean(errors)), float(np.std(errors) / math.sqrt(len(errors)))


def _sparse_row(workload: so.workloads.Workload, total: int) -> dict[str, tuple[float, float]]:
    cells = workload.core.input_len
    assert cells is not None
    tables = _tables(cells, total)
    bound = so.optimal.PublicBound(float(total))
    printed = so.plan(workload, _PRIVACY, mechanism="dense-printed")
    assert printed.fit.factorization is not None
    assert printed.fit.factorization.blocks is not None
    if max(printed.fit.factorization.blocks) >= total * _PRIVACY.epsilon:
        # Otherwise the algorithm projects nothing.
        printed = so.plan(workload, _PRIVACY, mechanism="sparse-printed", constraint=bound)
    plans = {
        "printed": printed,
        "optimal": so.plan(workload, _PRIVACY, mechanism="optimal"),
        "sparse": so.plan(workload, _PRIVACY, mechanism="sparse", constraint=bound),
    }
    found = {name: _errors(plan, tables) for name, plan in plans.items()}
    zero = np.mean([np.mean(workload.core.apply(table.astype(np.float64)) ** 2) for table in tables])
    found["zero"] = float(zero), 0.0
    return found


def _about(name: str, found: dict[str, tuple[float, float]]) -> str:
    mean, doubt = found[name]
    return f"{mean:.4g} ± {doubt:.2g}" if doubt > 0.0 else f"{mean:.4g}"


def _sparse() -> list[Row]:
    rows, drawn = [], {}
    for name, workload in _sparse_workloads().items():
        drawn[name] = [_sparse_row(workload, total) for total in _TOTALS]
        for total, found in zip(_TOTALS, drawn[name], strict=True):
            ours = f"{_about('sparse', found)}; without projection {_about('optimal', found)}"
            other = f"Algorithm 3 as printed: {_about('printed', found)}; answering zero {found['zero'][0]:.3g}"
            what = f"{name}, {total:,} records, optimal strategy and projection"
            rows.append(Row(what, ours, other, found["sparse"][0] / found["printed"][0]))
    _draw_sparse(drawn)
    return rows


def _draw_sparse(drawn: dict[str, list[dict[str, tuple[float, float]]]]) -> None:
    figure = new_figure(13.0, 4.6)
    lines: dict[str, tuple[str, dict[str, Any]]] = {
        "printed": ("Algorithm 3 as printed", {"color": SIGNAL}),
        "optimal": ("optimal strategy, no projection", {"color": MUTED, "linestyle": "--"}),
        "sparse": ("optimal strategy, projected", {"color": ACCENT}),
        "zero": ("answering zero", {"color": INK, "linestyle": ":"}),
    }
    for axes, (name, found) in zip(np.ravel(figure.subplots(1, len(drawn))), drawn.items(), strict=True):
        for key, (label, style) in lines.items():
            axes.plot(
                _TOTALS, [row[key][0] for row in found], marker="o", markersize=4, linewidth=1.7, label=label, **style
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        noise = [row[key][0] for row in found for key in ("printed", "optimal", "sparse")]
        axes.set_ylim(0.6 * min(*noise, *(row["zero"][0] for row in found)), 4.0 * max(noise))
        heading(axes, name, f"mean of {_TRIALS} tables, epsilon 1, delta 1e-6")
        dress(axes, "records (and the public bound)", "mean squared error per query")
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, fontsize=9, loc="outside lower center", ncols=4)
    _save(figure, "geometry-projections.png")


def _all() -> list[Row]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "deterministic noise")
        return [*_dense(), *_pure(), *_worst(), *_sparse()]


def figures() -> list[Row]:
    """Return all rows."""
    return in_process(__file__, "all", threads=1)


if __name__ == "__main__":
    main({"all": _all}, figures)
