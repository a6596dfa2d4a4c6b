"""Smooth queries: time to sum points, to answer, to plan and to merge, against numpy and BLAS.

Baselines are in `smooth_baselines.py`: products of `chebvander` by one `einsum` as people write it, and the same sums
tuned, in chunks that stay in the cache, by one product of BLAS each; and of few points in plain Python. Ours sum
integers, so that the order of the points does not matter; theirs are sums of doubles. Shares of the peak are
multiply-adds of the `t^d` products of all points over the time, against those of a plain `dgemm` of 1,024 x 1,024
matrices in the same run, one thread. Libraries of others have one thread.

Run `python benches/smooth.py`.
"""

import gc
import math
import operator
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import smooth_baselines as sb
from harness import Row, amount, in_process, main, noted, once, plural, quick, race, turns, versus
from numpy.typing import NDArray

import sordino as so

Array = NDArray[np.float64]

_PRIVACY = so.ApproxDP(epsilon=1.0, delta=1e-6)
_POINTS = 10**4 if quick() else 10**6
_FEW = 1000
_QUERIES = 50 if quick() else 1000
_BANDWIDTH = 0.5
_DEGREE = 16


def _points(n: int = _POINTS, d: int = 3) -> Array:
    return np.random.default_rng(1).uniform(-1.0, 1.0, (n, d))


def _plan(mechanism: str, n: int, d: int, degree: int | str = _DEGREE) -> so.ReleasePlan:
    workload = so.smooth.SmoothQueries(
        d, points=n, bounds=(-1.0, 1.0), query_class=so.smooth.GaussianKernels(_BANDWIDTH), degree=degree
    )
    return so.plan(workload, _PRIVACY, unit=so.ReplaceOne(), mechanism=mechanism)


def _peak_rate() -> float:
    """Return multiply-adds a second of a product of matrices, the best of a few."""
    side = 256 if quick() else 1024
    a = np.random.default_rng(2).normal(size=(side, side))
    return max(side**3 / once(lambda: a @ a)[0] for _ in range(10))


def _share(products: float, seconds: float, peak: float) -> str:
    return f"{products / seconds / 1e9:.3g} G multiply-adds/s, {products / seconds / peak:.0%} of dgemm"


# Sums over points.


def _encode() -> list[Row]:
    """Three coordinates, 16 polynomials each."""
    n, d = _POINTS, 3
    points, plan = _points(), _plan("chebyshev", _POINTS, 3)
    tuned = "numpy: chunks, half products, dgemm"
    times, _ = turns({"ours": partial(plan.sums, points), tuned: partial(sb.blocked_encode, points, _DEGREE)}, 5)
    # Linear in the points, and slow.
    few = points[: n // 16]
    slow = {
        "numpy: chebvander and einsum (16 times a sixteenth)": partial(sb.numpy_encode, few, _DEGREE),
        "numpy: chebvander and einsum by pairs, optimize=True (16 times a sixteenth)": partial(
            sb.numpy_encode, few, _DEGREE, optimize=True
        ),
    }
    plain, _ = turns(slow, 3)
    what = f"sums of {n:,} points, d = {d}, t = {_DEGREE}"
    peak = _peak_rate()
    products = float(n) * _DEGREE**d
    rows = [versus(what, times["ours"], name, 16.0 * seconds, goal=0.2) for name, seconds in plain.items()]
    rows.append(versus(what, times["ours"], tuned, times[tuned]))
    rows.append(noted(f"{what}, rate", _share(products, times["ours"], peak)))
    rows.append(noted(f"{what}, rate of numpy in chunks", _share(products, times[tuned], peak)))
    rows.append(noted("dgemm of 1,024 x 1,024 matrices, 1 thread of BLAS", f"{peak / 1e9:.3g} G multiply-adds/s"))

    few, listed, plan = points[:_FEW], points[:_FEW].tolist(), _plan("chebyshev", _FEW, d)
    np.testing.assert_allclose(
        sb.plain_encode(listed, _DEGREE), sb.numpy_encode(few, _DEGREE).ravel(), rtol=0.0, atol=1e-9
    )
    times, _ = turns({"ours": partial(plan.sums, few), "plain": partial(sb.plain_encode, listed, _DEGREE)}, 3)
    what = f"sums of {_FEW:,} points, d = {d}, t = {_DEGREE}"
    rows.append(versus(what, times["ours"], "plain Python, point by point", times["plain"]))

    # What the recommended mechanism sums.
    kernel = _plan("kernel", n, d, "auto")
    form = sb.kernel_form(_BANDWIDTH, 16)
    theirs = partial(sb.kernel_summary, points, form, 1.0, np.random.default_rng(3))
    times, _ = turns({"ours": partial(kernel.release, points), tuned: theirs}, 3)
    sizes, rank = " x ".join(map(str, kernel.fit.sizes)), len(form.Gamma)
    what = f"kernel mechanism, noise and all, {n:,} points, d = {d}, {sizes} features"
    rows.append(versus(what, times["ours"], f"{tuned}, {rank}^{d} features, normals", times[tuned]))
    return rows


# Answers.


def _loop(summary: Array, queries: sb.GaussianKernels) -> Array:
    """Return answers as most would write it: one query at a time, from its coefficients on."""
    answers = np.empty(len(queries.centres))
    for q, centre in enumerate(queries.centres):
        one = sb.GaussianKernels(centre[None], queries.bandwidth)
        answers[q] = sb.answers_in_a_loop(summary, sb.coefficient_factors(one, summary.shape[0]))[0]
    return answers


def _prepared_loop(summary: Array, queries: sb.GaussianKernels) -> Array:
    return sb.answers_in_a_loop(summary, sb.coefficient_factors(queries, summary.shape[0]))


def _at_once(summary: Array, queries: sb.GaussianKernels) -> Array:
    return sb.answers_at_once(summary, sb.coefficient_factors(queries, summary.shape[0]))


def _kernel_at_once(mean: Array, queries: sb.GaussianKernels, form: sb.KernelForm) -> Array:
    return sb.answers_at_once(mean, sb.kernel_factors(queries, form))


def _queries() -> list[Row]:
    """Kernel queries after the release. Ours come with their noise and truncation, the others' without."""
    rows = []
    for d in (3,) if quick() else (2, 3, 4):
        n = 10**4
        points = _points(n, d)
        released = {name: _plan(name, n, d, degree) for name, degree in (("chebyshev", _DEGREE), ("kernel", "auto"))}
        centres = np.random.default_rng(4).uniform(-1.0, 1.0, (_QUERIES, d))
        ours, theirs = so.smooth.GaussianKernels(_BANDWIDTH).at(centres), sb.GaussianKernels(centres, _BANDWIDTH)
        summary = sb.blocked_encode(points, _DEGREE) / n
        contestants: dict[str, Callable[[], object]] = {}
        for name, plan in released.items():
            contestants[name] = partial(plan.release(points).query, ours)
        others: dict[str, Callable[[], object]] = {
            "numpy: one query at a time": partial(_loop, summary, theirs),
            "numpy: coefficients at once, then one at a time": partial(_prepared_loop, summary, theirs),
            "numpy: all at once, BLAS": partial(_at_once, summary, theirs),
        }
        if d == 3:
            form = sb.kernel_form(_BANDWIDTH, 16)
            mean = sb.kernel_summary(points, form, 0.0, np.random.default_rng(3))
            others["numpy: kernel features at once, BLAS"] = partial(_kernel_at_once, mean, theirs, form)
        times = race(contestants | others, 11)
        for name, plan in released.items():
            sizes = " x ".join(map(str, plan.fit.sizes))
            what = f"{_QUERIES:,} kernel queries of a {name} summary, d = {d}, {sizes} features"
            for other in others:
                if ("kernel" in other) <= (name == "kernel"):
                    goal = 0.1 if "a time" in other and d == 3 else None
                    rows.append(versus(what, times[name], other, times[other], goal=goal))
    rows += _function()
    return rows


def _function() -> list[Row]:
    """Return rows of a query that is no product: values on a grid and their transform."""
    rows = []
    for d in (2, 3):
        plan = _plan("chebyshev", 10**4, d)
        release = plan.release(_points(10**4, d))

        def query(x: Array) -> Array:
            return np.asarray(np.sqrt(1.0 + (x**2).sum(axis=1)))

        seconds = race({"ours": partial(release.query, query)}, 7)["ours"]
        what = f"a function of {d} coordinates asked at {2 * _DEGREE}^{d} points, t = {_DEGREE}"
        rows.append(noted(what, amount(seconds)))
    return rows


# Growth.


def _rate(n: int, d: int, degree: int, peak: float) -> Row:
    plan, points = _plan("chebyshev", n, d, degree), _points(n, d)
    seconds = min(once(partial(plan.sums, points))[0] for _ in range(2))
    products = float(n) * degree**d
    each = seconds / products
    ours = (
        f"{amount(seconds)}; {amount(seconds / n)}/point; {each * 1e12:.3g} ps/product; {1 / each / peak:.0%} of dgemm"
    )
    return noted(f"sums, n = {n:,}, d = {d}, t = {degree}, {degree**d:,} products", ours)


def _growth() -> list[Row]:
    """In the number of points, in the dimension, and in the number of polynomials: the better of two runs."""
    peak = _peak_rate()
    rows = [_rate(10**e, 3, _DEGREE, peak) for e in (range(3, 5) if quick() else range(4, 8))]
    rows += [_rate(10**3 if quick() else 10**5, d, 8, peak) for d in (range(1, 4) if quick() else range(1, 7))]
    rows += [_rate(10**3 if quick() else 10**5, 3, t, peak) for t in ((4, 8) if quick() else (2, 4, 8, 16, 32, 64))]
    rows += [_rate(10**3 if quick() else 10**5, 2, t, peak) for t in ((4, 8) if quick() else (4, 16, 64, 256))]
    return rows


def _status(field: str) -> int:
    """Return a memory figure of this process in bytes (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field + ":"))


def _peak_memory(call: Callable[[], Any]) -> tuple[float, int, Any]:
    """Return seconds, the peak of resident memory over what was resident before, and the answer."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts again
    before = _status("VmRSS")
    seconds, answer = once(call)
    return seconds, _status("VmHWM") - before, answer


def _estimates(plan: so.ReleasePlan, sums: so.smooth.PointSums) -> Array:
    return plan.release(sums).sums


def _memory() -> list[Row]:
    """Sums of many points and of many products: memory, and the time of the whole at the largest size."""
    rows = []
    _plan("chebyshev", 1000, 3).sums(_points(1000))  # code pages and threads
    n, points, plan = _POINTS, _points(), _plan("chebyshev", _POINTS, 3)
    _, most, _ = _peak_memory(partial(plan.sums, points))
    what = f"peak memory of sums over their input, n = {n:,}, d = 3, t = {_DEGREE}"
    rows.append(noted(what, f"{most / 2**20:.2f} MiB, {most / points.nbytes:.3f} of the points"))
    del points
    for d, t in ((6, 3),) if quick() else ((6, 16), (6, 20), (2, 8192)):
        n, count = 1000, t**d
        size = f"n = {n:,}, d = {d}, t = {t}, 2^{math.log2(count):.3g} products"
        seconds, most, plan = _peak_memory(partial(_plan, "chebyshev", n, d, t))
        arrays = f"{most / 2**20:.0f} MiB, {most / (8 * count):.3g} arrays of t^d doubles"
        rows.append(noted(f"plan, {size}", f"{amount(seconds)}; peak {arrays}"))
        points = _points(n, d)
        seconds, most, sums = _peak_memory(partial(plan.sums, points))
        arrays = f"{most / 2**20:.0f} MiB, {most / (8 * count):.3g} arrays of t^d doubles"
        rows.append(noted(f"sums, {size}", f"{amount(seconds)}; peak {arrays}"))
        seconds, most, _ = _peak_memory(partial(_estimates, plan, sums))
        arrays = f"{most / 2**20:.0f} MiB, {most / (8 * count):.3g} arrays of t^d doubles"
        rows.append(noted(f"noise and estimates, {size}", f"{amount(seconds)}; peak {arrays}"))
        del plan, sums
    return rows


# Planning, merging, projecting.


def _planning() -> list[Row]:
    """Plans of one mechanism, of all of them, and of declared queries; what is known of a class is not found again."""
    rows = []
    n = 10**5
    for d in (2, 3, 4):
        workload = so.smooth.SmoothQueries(
            d, points=n, bounds=(-1.0, 1.0), query_class=so.smooth.GaussianKernels(_BANDWIDTH)
        )
        for name in ("kernel", "weighted", "chebyshev", "histogram-laplace"):
            make = partial(so.plan, workload, _PRIVACY, unit=so.ReplaceOne(), mechanism=name)
            plan = make()
            sizes = " x ".join(map(str, plan.fit.sizes))
            seconds = race({"ours": make}, 5)["ours"]
            rows.append(noted(f"plan of {name}, d = {d}, n = {n:,}: {sizes} features", amount(seconds)))
        seconds = race({"ours": partial(so.plan, workload, _PRIVACY, unit=so.ReplaceOne())}, 3)["ours"]
        rows.append(noted(f"plan of the best mechanism, d = {d}, n = {n:,}", amount(seconds)))
    for K in (1, 4):
        smooth = so.smooth.SmoothQueries(2, points=n, bounds=(-1.0, 1.0), query_class=so.smooth.KSmooth(K))
        seconds, plan = once(partial(so.plan, smooth, so.PureDP(epsilon=1.0), unit=so.ReplaceOne()))
        sizes = " x ".join(map(str, plan.fit.sizes))
        rows.append(noted(f"plan for KSmooth({K}), d = 2: {plan.mechanism}, {sizes} features", amount(seconds)))
    rng = np.random.default_rng(5)
    for count in (20,) if quick() else (100, 500, 1000):
        queries = so.smooth.GaussianKernels(4.0).at(
            rng.uniform(-1.0, 1.0, (count, 10, 30)), rng.random((count, 10)) / 5.0
        )
        declared = so.smooth.SmoothQueries(30, points=569, bounds=(-1.0, 1.0), query_class=queries)
        seconds, _ = once(partial(so.plan, declared, _PRIVACY, unit=so.ReplaceOne()))
        rows.append(noted(f"plan of {count} declared mixtures of 10 kernels, d = 30", amount(seconds)))
    return rows


def _merging() -> list[Row]:
    """Sums of two halves put together; as bytes; and a release projected onto measures."""
    rows = []
    for d, t in ((3, _DEGREE),) if quick() else ((3, _DEGREE), (5, _DEGREE)):
        plan = _plan("chebyshev", 2000, d, t)
        one, other = (plan.sums(_points(1000, d)) for _ in range(2))
        a, b = (np.ones(t**d) for _ in range(2))
        times = race({"ours": partial(operator.add, one, other), "numpy": partial(np.add, a, b)}, 11)
        what = f"sums merged, {t**d:,} products"
        rows.append(versus(what, times["ours"], "numpy: sum of two arrays of doubles", times["numpy"]))
        data = one.to_bytes()
        times = race({"out": one.to_bytes, "in": partial(so.smooth.PointSums.from_bytes, plan, data)}, 7)
        what = f"sums to bytes, {t**d:,} products, {len(data) / t**d:.3g} bytes each"
        rows.append(noted(what, f"{amount(times['out'])}; and back {amount(times['in'])}"))
    for d in (2, 3, 4):
        plan = _plan("kernel", 569, d, "auto")
        release = plan.release(_points(569, d))
        seconds = race({"ours": release.projected}, 3)["ours"]
        found = release.projected().grid_measure
        assert found is not None
        cells = " x ".join(map(str, found.sizes))
        what = f"projection of a kernel summary onto measures on {cells} points, {found.iterations} iterations"
        rows.append(noted(what, amount(seconds)))
    return rows


_SECTIONS: dict[str, Callable[[], list[Row]]] = {
    "encode": _encode,
    "queries": _queries,
    "growth": _growth,
    "memory": _memory,
    "planning": _planning,
    "merging": _merging,
}
_TWICE = {"encode"}


def figures() -> list[Row]:
    """Return all rows: every section with one thread, sums over points with two as well."""
    rows = []
    for section in _SECTIONS:
        for threads in (1, 2) if section in _TWICE else (1,):
            for row in in_process(__file__, section, threads=threads):
                what = f"{row.what}, {plural(threads)}"
                rows.append(Row(what, row.ours, row.other, row.ratio, row.goal, row.met))
    return rows


if __name__ == "__main__":
    main(_SECTIONS, figures)
