"""Searches for what to measure, projections and norms: time, against the same methods in numpy and scipy, and peers.

Searches: the same hardened iteration in numpy over LAPACK (`geometry_baselines.py`), one thread on both sides, the
plain iteration in plain Python, and jax-privacy's dense optimiser; the least ellipsoid against Khachiyan's ascent with
away steps too. Projections: `scipy.optimize.nnls` and `lsq_linear` on an equivalent problem, every duality gap
computed by the same function. K-norm noise and p-identity strategies: the same method over `linprog` and L-BFGS-B.
Releases: products of matrices and normals in floating point, not private.

Run `python benches/geometry.py`.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import geometry_baselines as baselines
import numpy as np
from geometry_baselines import duality_gap
from harness import Row, amount, in_process, main, noted, once, power, quick, race, turns, versus
from numpy.typing import NDArray
from peers import ENVIRONMENT, jax_dense

import sordino as so
from sordino import _core

_GAP = 1e-6
_ITERATIONS = 3000
_MOST_UNEVEN = 1e6
_UNIT_NOISE = so.GaussianDP(mu=1.0)
_NUMPY = "the same iteration in numpy over LAPACK, 1 thread"
_PATIENCE = 2.0 if quick() else 30.0
_PEER_STEPS = 20 if quick() else 500

Array = NDArray[np.float64]


def _prefix(length: int) -> Array:
    return np.tril(np.ones((length, length)))


def _signs(rows: int, columns: int) -> Array:
    return np.random.default_rng(0).choice([-1.0, 1.0], size=(rows, columns))


def _optimum(queries: Array, objective: str = "mean", gap: float = _GAP) -> _core.Searched:
    return _core.optimize_strategy(queries, objective, gap, _ITERATIONS, None, None)


def _ellipsoid(queries: Array) -> _core.Searched:
    return _core.minimum_ellipsoid(queries, _GAP, _ITERATIONS, None)


# Searches.


def _against_numpy(
    what: str, ours: Callable[[], _core.Searched], numpy: Callable[[], Any], full_rounds: int, goal: float
) -> tuple[float, Row]:
    """Return our time and the row of a comparison with the same iteration."""
    times, found = turns({"ours": ours, "numpy": numpy}, full_rounds)
    name = f"{_NUMPY}, {found['numpy'].iterations} evaluations"
    row = versus(f"{what}, {found['ours'].iterations} evaluations", times["ours"], name, times["numpy"], goal=goal)
    return times["ours"], row


def _optima() -> list[Row]:
    """Least mean error, to a certified gap of 1e-6."""
    rows = []
    n, long = (32, 64) if quick() else (256, 1024)
    d = 8 if quick() else 64
    for name, queries, full_rounds, most, words in (
        (f"prefix sums, {n}", _prefix(n), 7, 1.0, "< 1 s"),
        (f"±1, {d} x {4 * d}", _signs(d, 4 * d), 15, 1.0, "< 1 s"),
        (f"prefix sums, {long:,}", _prefix(long), 2, 10.0, "about 10 s"),
    ):
        what = f"strategy of least mean error, {name}, gap 1e-6"
        seconds, row = _against_numpy(
            what, partial(_optimum, queries), partial(baselines.mean_error, queries, _GAP), full_rounds, 1.3
        )
        rows += [noted(what, amount(seconds), seconds, most, words), row]
    return [*rows, _in_plain_python()]


def _in_plain_python() -> Row:
    """Least mean error of few cells."""
    n, gap = 16 if quick() else 64, 1e-3
    queries = _prefix(n)
    times, found = turns(
        {
            "ours": partial(_optimum, queries, gap=gap),
            "plain": partial(baselines.plain_mean_error, queries.tolist(), gap),
        },
        3,
    )
    lower, upper = found["plain"]
    assert found["ours"].upper is not None and lower * (1.0 - gap) <= found["ours"].upper <= upper * (1.0 + gap)
    what = f"strategy of least mean error, prefix sums, {n}, gap {gap:g}"
    return versus(what, times["ours"], "plain Python: multiplicative updates, Jacobi's method", times["plain"])


def _peer() -> list[Row]:
    """The dense optimiser of jax-privacy, and how long we need to be as good."""
    n = 32 if quick() else 256
    queries = _prefix(n)
    theirs, error = jax_dense(n, "mean", _PEER_STEPS)
    least = _optimum(queries, gap=1e-8).lower
    assert least is not None
    gap = min(max(error / least - 1.0, 1e-8), 1.0)
    ours = race({"ours": partial(_optimum, queries, gap=gap)}, 7)["ours"]
    reached = _optimum(queries, gap=gap).upper
    other = f"jax-privacy dense.optimize, {_PEER_STEPS} steps: {amount(theirs)}, error {error:.6f}"
    what = f"prefix sums, {n}, mean error, until as good (optimum {least:.6f})"
    return [Row(what, f"{amount(ours)}, error {reached:.6f}", other, ours / theirs)]


def _worst() -> list[Row]:
    """Least error of the worst query."""
    n = 32 if quick() else 256
    queries = _prefix(n)
    what = f"strategy of least worst-query error, prefix sums, {n}, gap 1e-6"
    seconds, row = _against_numpy(
        what, partial(_optimum, queries, "max"), partial(baselines.worst_error, queries, _GAP), 7, 1.3
    )
    return [noted(what, amount(seconds), seconds, 1.0, "< 1 s"), row]


def _ellipsoids() -> list[Row]:
    """Least ellipsoid around random signs: the flat case, where greedy methods crawl."""
    d, n = (8, 64) if quick() else (64, 4096)
    queries = _signs(d, n)
    what = f"minimum enclosing ellipsoid, ±1, {d} x {power(n)}, gap 1e-6"
    seconds, row = _against_numpy(
        what, partial(_ellipsoid, queries), partial(baselines.least_volume, queries, _GAP), 7, 0.5
    )
    theirs, (gap, steps) = once(partial(baselines.wolfe_atwood, queries, _GAP, _PATIENCE))
    stopped = f", stopped at gap {gap:.1e}" if gap > _GAP else ""
    name = f"Khachiyan's ascent with away steps, rank-one updates in numpy, {steps:,} steps{stopped}"
    return [row, versus(what, seconds, name, theirs, goal=0.1)]


# Projections.


def _projections() -> list[Row]:
    """Onto `{x >= 0, sum <= n}`: counts by Zipf's law, noise of a release at (1, 1e-6)."""
    rows = []
    for d, cells, full_rounds in ((16, 64, 3),) if quick() else ((128, 512, 9), (512, 4096, 3)):
        rng, total = np.random.default_rng(1), 1000
        columns = _signs(d, cells) / math.sqrt(d)
        shares = 1.0 / np.arange(1, cells + 1) ** 1.1
        deviation = so.plan(so.Histogram(4), so.ApproxDP(epsilon=1.0, delta=1e-6), mechanism="identity-gaussian").rmse
        data = rng.multinomial(total, rng.permutation(shares / shares.sum()))
        target = columns @ data + deviation * rng.normal(size=d)
        unit = d * deviation**2
        ours = {
            f"gap {tolerance:.0e}": partial(
                _core.project, columns, target, "bound", float(total), tolerance * unit, 20_000
            )
            for tolerance in (1e-3, 1e-9)
        }
        times, found = turns({**ours, "nnls": partial(baselines.nearest_by_nnls, columns, target, total)}, full_rounds)

        def gap(x: Array, columns: Array = columns, target: Array = target, unit: float = unit) -> str:
            return f"{max(duality_gap(columns, target, 1000, x), 0.0) / unit:.0e}"

        slow, x = once(partial(baselines.nearest_by_lsq, columns, target, total, 10, lsmr_tol="auto", method="trf"))
        peers = {
            f"scipy nnls, gap {gap(found['nnls'])}": times["nnls"],
            f"scipy lsq_linear (trf, lsmr), gap {gap(x)}": slow,
        }
        goal = 0.2 if d == 512 else None
        for key in ours:
            weights = np.zeros(cells)
            weights[found[key][0]] = found[key][1]
            what = f"projection, {d} measurements, {power(cells)} cells, gap {gap(weights)} of the squared noise"
            rows += [versus(what, times[key], name, seconds, goal=goal) for name, seconds in peers.items()]
    return rows


# Pure privacy.


def _large_projections() -> list[Row]:
    """The release of a circular average of many cells and few records, projected; numpy makes as many steps, no noise."""
    cells, window, records = (2**12, 2**8, 100) if quick() else (2**18, 2**13, 1000)
    workload = so.MovingAverage(window, cells, boundary="circular")
    plan = so.plan(workload, _UNIT_NOISE, constraint=so.optimal.PublicBound(records))
    rng = np.random.default_rng(1)
    x = np.bincount(rng.permutation(cells)[np.minimum(rng.zipf(1.1, records), cells) - 1], minlength=cells)
    with so.testing.deterministic_noise(bytes(32)):
        release = plan.release(x)
    truth = _averages(x.astype(np.float64), window)
    errors = [float(np.sqrt(np.mean((values - truth) ** 2))) for values in (release.values, release.unbiased)]
    steps = release.projection.iterations
    root = np.sqrt(np.abs(np.fft.rfft(np.where(np.arange(cells) < window, 1.0 / window, 0.0))))
    y = np.fft.irfft(np.fft.rfft(x) * root, cells) + rng.normal(size=cells) * float(np.sqrt(np.mean(root**2)))
    times = race(
        {
            "ours": partial(plan.release, x),
            "numpy": partial(baselines.nearest_table, root, y, float(records), steps),
        },
        3,
    )
    what = f"release and projection, circular average, {power(cells)} cells, {records:,} records, {steps} steps"
    error = f"error {errors[0]:.3g}, {errors[0] / errors[1]:.2g} of the unprojected"
    return [
        versus(
            f"{what}: {error}",
            times["ours"],
            "FISTA by numpy's transforms, as many steps, no release",
            times["numpy"],
            goal=1.5,
        )
    ]


def _averages(x: Array, window: int) -> Array:
    sums = np.cumsum(np.concatenate([x[-window:], x]))
    return (sums[window:] - sums[:-window]) / window


def _repeat(count: int, call: Callable[[], object]) -> None:
    for _ in range(count):
        call()


def _k_norm() -> list[Row]:
    """One draw of K-norm noise: a release of a table of zeros."""
    rows = []
    for d, n in ((4, 16),) if quick() else ((8, 64), (12, 128), (16, 256)):
        queries = _signs(d, n)
        plan = so.plan(so.Matrix(queries), so.PureDP(epsilon=1.0), mechanism="k-norm")
        numpy, cells = baselines.KNormSampler(queries), np.zeros(n, dtype=np.int64)
        # Rejection: the time of one draw is random, so many are averaged.
        ours, theirs = (200, 20) if quick() or d < 16 else (50, 20)
        times, _ = turns(
            {
                "ours": partial(_repeat, ours, partial(plan.release, cells)),
                "numpy": partial(_repeat, theirs, numpy.draw),
            },
            5,
        )
        name = "the same rejection, numpy and scipy linprog, unsafe"
        each = times["ours"] / ours
        rows.append(versus(f"K-norm noise, ±1, {d} x {n}", each, name, times["numpy"] / theirs, per="/sample"))
    return rows


def _p_identity() -> list[Row]:
    """Ours chooses the number of sums itself; L-BFGS-B is told it."""
    rows = []
    for n in (16,) if quick() else (64, 128, 256):
        queries = _prefix(n)
        found = _core.p_identity(queries, [], False, (_MOST_UNEVEN, _ITERATIONS), None)
        sums = found.strategy.size // n - n
        calls: dict[str, Callable[[], Any]] = {
            "ours": partial(_core.p_identity, queries, [], False, (_MOST_UNEVEN, _ITERATIONS), None)
        }
        calls |= {f"{starts}": partial(baselines.p_identity, queries, sums, starts) for starts in (1, 3)}
        times, answers = turns(calls, 7)
        error = f"{amount(times['ours'])}, total squared error {n * found.upper**2:.6g}"
        for starts in ("1", "3"):
            name = f"scipy L-BFGS-B, p = {sums} given, {starts} start{'s' if starts != '1' else ''}"
            other = f"{name}: {amount(times[starts])}, {answers[starts]:.6g}"
            rows.append(Row(f"p-identity strategy, prefix sums, {n}", error, other, times["ours"] / times[starts]))
    return rows


# Releases.


def _releases() -> list[Row]:
    """Encode, noise, decode with a strategy that was found before."""
    rows = []
    workloads: dict[str, so.workloads.Workload] = (
        {"prefix sums, 32": so.RunningSum(32)}
        if quick()
        else {
            "prefix sums, 256": so.RunningSum(256),
            "prefix sums, 1,024": so.RunningSum(1024),
            "±1, 64 x 4,096": so.Matrix(_signs(64, 4096)),
            "all 32,896 ranges of 256": so.AllRanges(256),
        }
    )
    for name, workload in workloads.items():
        plan = so.plan(workload, so.ApproxDP(epsilon=1.0, delta=1e-6), mechanism="optimal")
        cells = workload.core.input_len
        assert plan.fit.factorization is not None
        assert cells is not None
        B = plan.fit.factorization.matrix
        L = _core.dense(workload.core) @ np.linalg.pinv(B)
        data, rng = np.random.default_rng(1).integers(0, 100, cells), np.random.default_rng(2)
        deviation, x = plan.fit.door.noise, data.astype(np.float64)

        def unsafe(B: Array = B, L: Array = L, x: Array = x, deviation: float = deviation, rng: Any = rng) -> Array:
            return np.asarray(L @ (B @ x + rng.normal(0.0, deviation, len(B))))

        door, strategy = plan.fit.door, plan.fit.strategy
        measured = door.measure(strategy, data, None)
        times = race(
            {
                "ours": partial(plan.release, data),
                "numpy": unsafe,
                "measure": partial(door.measure, strategy, data, None),
                "decode": partial(_core.decode, strategy, measured),
            },
            15,
        )
        what = f"release of the optimal strategy, {name}"
        rows.append(versus(what, times["ours"], "numpy: L(Bx + normals), unsafe", times["numpy"]))
        parts = f"measure {amount(times['measure'])}, decode {amount(times['decode'])}"
        rows.append(noted(f"of it, {name}", parts))
    return rows


# Growth.


def _grown(what: str, search: Callable[[], _core.Searched], work: float) -> Row:
    seconds, found = once(search)
    each = seconds / found.iterations
    return noted(f"{what}, {found.iterations} evaluations", f"{amount(seconds)}; {each * 1e9 / work:.3g} ns/unit each")


def _growth() -> list[Row]:
    """Searches alone, once each. A unit is n³ for prefix sums, 64² N for signs: an evaluation takes a few."""
    rows = []
    gap = "gap 1e-6"
    for bits in range(4, 7) if quick() else range(6, 12):
        n = 2**bits
        queries = _prefix(n)
        rows.append(_grown(f"mean error, prefix sums, {n:,}, {gap}", partial(_optimum, queries), n**3))
        if bits <= 10:
            worst = partial(_optimum, queries, "max")
            rows.append(_grown(f"worst query, prefix sums, {n:,}, {gap}", worst, n**3))
    d = 8 if quick() else 64
    for bits in range(4, 7) if quick() else range(8, 17, 2):
        queries = _signs(d, 2**bits)
        size = f"±1, {d} x 2^{bits}, {gap}"
        rows.append(_grown(f"mean error, {size}", partial(_optimum, queries), d * d * 2**bits))
        rows.append(_grown(f"minimum ellipsoid, {size}", partial(_ellipsoid, queries), d * d * 2**bits))
    return rows


def figures() -> list[Row]:
    """Return all rows."""
    return [row for section in _SECTIONS for row in in_process(__file__, section, threads=1, environment=ENVIRONMENT)]


_SECTIONS = {
    "optima": _optima,
    "peer": _peer,
    "worst": _worst,
    "ellipsoids": _ellipsoids,
    "projections": _projections,
    "large projections": _large_projections,
    "k-norm": _k_norm,
    "p-identity": _p_identity,
    "releases": _releases,
    "growth": _growth,
}

if __name__ == "__main__":
    main(_SECTIONS, figures)
