"""A few small cases for pytest-benchmark: `pytest benches --benchmark-only`. Nothing is asserted about time."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import sordino as so
from sordino import _core
from sordino.privacy.calibration import gaussian_mu

_PRIVACY = so.ApproxDP(epsilon=1.0, delta=1e-6)
_LENGTH = 2**14


def _noise() -> Callable[[], object]:
    return lambda: so.noise.gaussian(10**5, 2.0**40)


def _numpy_noise() -> Callable[[], object]:
    rng = np.random.default_rng(1)
    return lambda: rng.normal(0.0, 2.0**40, 10**5)


def _release(workload: so.workloads.Workload, data: object) -> Callable[[], object]:
    plan = so.plan(workload, _PRIVACY, mechanism="fourier")
    return lambda: plan.release(data)


def _series() -> Callable[[], object]:
    taps = np.exp(-np.minimum(np.arange(_LENGTH) / 64.0, 300.0))
    return _release(so.Convolution(taps), np.arange(_LENGTH) % 1000)


def _marginals() -> Callable[[], object]:
    codes = np.random.default_rng(1).integers(0, 2, (10**4, 12), dtype=np.uint8)
    return _release(so.Marginals([2] * 12, k=3), codes)


def _group() -> Callable[[], object]:
    kernel = np.random.default_rng(1).random((3, 4, 5, 7))
    return _release(so.workloads.GroupConvolution(kernel), np.ones(kernel.shape, dtype=np.int64))


def _plan() -> Callable[[], object]:
    return lambda: so.plan(so.RunningSum(256), _PRIVACY)


def _search(objective: str) -> Callable[[], object]:
    # The core itself: a search of the package is made once.
    return lambda: _core.optimize_strategy(np.tri(64), objective, 1e-6, 3000, None, None)


def _ellipsoid() -> Callable[[], object]:
    signs = np.random.default_rng(1).choice([-1.0, 1.0], size=(16, 256))
    return lambda: _core.minimum_ellipsoid(signs, 1e-6, 3000, None)


def _projection() -> Callable[[], object]:
    rng = np.random.default_rng(1)
    columns, target = rng.choice([-1.0, 1.0], size=(32, 256)), 100.0 * rng.normal(size=32)
    return lambda: _core.project(columns, target, "bound", 100.0, 1e-3, 20_000)


def _named(mechanism: str, privacy: so.ApproxDP | so.PureDP) -> Callable[[], object]:
    plan = so.plan(so.RunningSum(8), privacy, mechanism=mechanism)
    return lambda: plan.release(np.ones(8, dtype=np.int64))


def _stream_plan() -> Callable[[], object]:
    return lambda: so.plan(so.Continual(so.RunningSum(_LENGTH)), _PRIVACY, mechanism="blt")


def _batch(mechanism: str, dim: int = 1) -> Callable[[], object]:
    plan = so.plan(so.Continual(so.RunningSum(_LENGTH // dim), dim=dim), _PRIVACY, mechanism=mechanism)
    items = np.ones((plan.steps, dim) if dim > 1 else plan.steps, dtype=np.int64)
    return lambda: plan.open().update(items)


def _update() -> Callable[[], object]:
    stream = so.plan(so.Continual(so.RunningSum(2**30)), _PRIVACY, mechanism="blt").open()
    return lambda: stream.update(1)


def _calibration() -> Callable[[], object]:
    return lambda: gaussian_mu(_PRIVACY)


def _sketch(kind: Any) -> Callable[[], object]:
    table, sketch = np.arange(_LENGTH) % 10, so.sketches.Sketch(_LENGTH, 256, sketch=kind)
    return lambda: sketch.add(table)


def _records() -> Callable[[], object]:
    cells, sketch = np.random.default_rng(1).integers(0, _LENGTH, 10**5), so.sketches.Sketch(_LENGTH, 256)
    return lambda: sketch.update(cells)


def _recovery(algorithm: str) -> Callable[[], object]:
    operator, basis = so.sketches.Sketch(_LENGTH, 256).operator, _core.Basis.named("haar", _LENGTH)
    y = operator.apply(np.repeat(np.arange(8.0), _LENGTH // 8))
    return lambda: _core.recover(operator, basis, y, algorithm, 8, 0.1, 300, None, None)


def _isotonic() -> Callable[[], object]:
    values = np.arange(_LENGTH) + 100.0 * np.random.default_rng(1).normal(size=_LENGTH)
    return lambda: _core.isotonic(values)


def _smooth_plan(mechanism: str) -> so.ReleasePlan:
    workload = so.smooth.SmoothQueries(
        2, points=10**4, bounds=(-1.0, 1.0), query_class=so.smooth.GaussianKernels(0.5), degree=8
    )
    return so.plan(workload, _PRIVACY, unit=so.ReplaceOne(), mechanism=mechanism)


def _points() -> Any:
    return np.random.default_rng(1).uniform(-1.0, 1.0, (10**4, 2))


def _point_sums(mechanism: str) -> Callable[[], object]:
    plan, points = _smooth_plan(mechanism), _points()
    return lambda: plan.sums(points)


def _kernel_queries(mechanism: str) -> Callable[[], object]:
    release = _smooth_plan(mechanism).release(_points())
    queries = so.smooth.GaussianKernels(0.5).at(np.random.default_rng(2).uniform(-1.0, 1.0, (100, 2)))
    return lambda: release.query(queries)


def _measure() -> Callable[[], object]:
    release = _smooth_plan("kernel").release(_points())
    return lambda: release.projected(9)


def _edges() -> Any:
    return np.random.default_rng(1).integers(0, 1000, (2, 10**4))


def _graph_events(function: str, k: int = 0) -> Callable[[], object]:
    (u, v), ends = _edges(), np.arange(1, 10**4 + 1, dtype=np.uint64)
    return lambda: _core.GraphEvents(function, 1000, 30, k).rows(0, u, v, ends)


def _forest() -> Callable[[], object]:
    (u, v), ends = _edges(), np.arange(1, 10**4 + 1, dtype=np.uint64)
    weights = np.random.default_rng(2).integers(1, 2**16, 10**4)
    return lambda: _core.SpanningForest(1000, 2**16).rows(0, u, v, weights, ends)


def _graph_stream() -> Callable[[], object]:
    plan, (u, v) = so.plan(so.events.TriangleCount(1000, 10**4, max_degree=30), _PRIVACY, mechanism="blt"), _edges()
    return lambda: plan.open().update(u, v)


def _words(kind: str, longest: int) -> Callable[[], object]:
    text, ends = np.random.default_rng(1).integers(0, 4, 10**4), np.array([10**4], dtype=np.uint64)
    return lambda: _core.Words(kind, 4, longest).rows(0, text, ends)


def _lazy_cut() -> Callable[[], object]:
    stream = so.plan(
        so.Continual(so.events.WeightedGraph(10**4, 100), reads="lazy"), _PRIVACY, mechanism="binary-tree"
    ).open()
    stream.update(*_edges()[:, :99])
    return lambda: stream.cut([0])


def _reports() -> Callable[[], object]:
    plan = so.plan(so.local.LocalSurvey(10**4), _PRIVACY)
    values = np.random.default_rng(1).random(1000)
    return lambda: plan.encode_clients(values)


_CASES = {
    "gaussian noise, 10^5": _noise,
    "numpy normals, 10^5": _numpy_noise,
    "release of a filter, 2^14": _series,
    "release of marginals, 12 attributes": _marginals,
    "release over a group, 420 cells": _group,
    "plan of a running sum, 256": _plan,
    "plan of a counter, 2^14 steps": _stream_plan,
    "counter, 2^14 steps in a batch": partial(_batch, "blt"),
    "counter of least error, 2^14 steps in a batch": partial(_batch, "two-diagonals"),
    "square root on line, 2^14 steps in a batch": partial(_batch, "square-root"),
    "live histogram of 64 cells, 2^8 steps in a batch": partial(_batch, "blt", 64),
    "counter, one step": _update,
    "least mean error, prefix sums, 64": partial(_search, "mean"),
    "least worst-query error, prefix sums, 64": partial(_search, "max"),
    "minimum ellipsoid, 16 x 256": _ellipsoid,
    "projection, 32 x 256": _projection,
    "release of the optimal strategy, 8 cells": partial(_named, "optimal", _PRIVACY),
    "release with K-norm noise, 8 cells": partial(_named, "k-norm", so.PureDP(epsilon=1.0)),
    "gaussian_mu": _calibration,
    "dense sketch, 2^14 cells to 256 numbers": partial(_sketch, "bernoulli"),
    "Hadamard sketch, 2^14 cells to 256 numbers": partial(_sketch, "hadamard"),
    "sparse sketch, 10^5 records to 256 numbers": _records,
    "CoSaMP, 2^14 cells from 256 numbers": partial(_recovery, "cosamp"),
    "basis pursuit, 2^14 cells from 256 numbers": partial(_recovery, "basis-pursuit"),
    "isotonic regression, 2^14": _isotonic,
    "plan of smooth queries, d = 2": lambda: partial(_smooth_plan, "kernel"),
    "Chebyshev sums of 10^4 points, 8 x 8": partial(_point_sums, "chebyshev"),
    "kernel sums of 10^4 points": partial(_point_sums, "kernel"),
    "100 kernel queries of Chebyshev sums": partial(_kernel_queries, "chebyshev"),
    "100 kernel queries of kernel sums": partial(_kernel_queries, "kernel"),
    "projection of kernel sums onto measures, 9 x 9": _measure,
    "triangles of 10^4 edges, exact part": partial(_graph_events, "triangle_count"),
    "3-stars of 10^4 edges, exact part": partial(_graph_events, "star_count", 3),
    "spanning forest of 10^4 edges, exact part": _forest,
    "triangles of 10^4 edges, whole stream": _graph_stream,
    "substrings of up to 5 of 4 letters, 10^4 letters": partial(_words, "substring_counts", 5),
    "episodes of up to 3 of 4 letters, 10^4 letters": partial(_words, "episode_counts", 3),
    "cut of a vertex of 10^4, read by coordinate": _lazy_cut,
    "local reports of 10^3 clients": _reports,
}


@pytest.mark.parametrize("case", list(_CASES))
def test_speed(case: str, benchmark: Any) -> None:
    """Time one call."""
    benchmark(_CASES[case]())
