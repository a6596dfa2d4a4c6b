"""Sketches, bases and sparse recovery: time, against numpy, scipy and scikit-learn.

Baselines are in `compressive_baselines.py`: signs made in blocks and multiplied by BLAS, butterflies in numpy, stored
columns in scipy and in plain Python, CoSaMP over operators. Their sketches have the law and the size of ours and seeds
of their own. Where a matrix is explicit it is made before the clock starts. Recoveries look for the same signal under
the same noise, and the rows say how far from it they end. Libraries of others have one thread.

Run `python benches/compressive.py`.
"""

import gc
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import compressive_baselines as cb
import numpy as np
from harness import Row, amount, in_process, main, noted, once, plural, power, quick, race, turns, versus
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from signals import haar_sparse

import sordino as so
from sordino import _core
from sordino.mechanisms.linear.recoveries import ITERATIONS
from sordino.privacy.calibration import gaussian_mu

Array = NDArray[np.float64]

_CELLS = 2**13 if quick() else 2**20
_MEASUREMENTS = 256 if quick() else 4096
_INCREMENTS = 10**5 if quick() else 10**7
_SIZE = f"{power(_CELLS)} cells to {power(_MEASUREMENTS)} numbers"
_KINDS = ("sparse", "bernoulli", "hadamard")


def _table(cells: int = _CELLS) -> NDArray[np.int64]:
    return np.random.default_rng(1).integers(0, 10, cells)


def _normals(count: int) -> Array:
    return np.random.default_rng(2).normal(size=count)


def _sketch(kind: str, cells: int = _CELLS, measurements: int = _MEASUREMENTS, nonzeros: int = 4) -> so.sketches.Sketch:
    return so.sketches.Sketch(cells, measurements, sketch=kind, nonzeros=nonzeros)  # type: ignore[arg-type]


# Sketches of a table.


def _products_of_signs(x: NDArray[np.int64], measurements: int) -> Array:
    """Return a dense sketch as most would write it: blocks of signs by `choice` times BLAS, in double precision."""
    rng, y, width = np.random.default_rng(3), np.zeros(measurements), 256
    signs = np.array([-1.0, 1.0])
    for start in range(0, len(x), width):
        part = x[start : start + width]
        y += rng.choice(signs, (measurements, len(part))) @ part
    return y


def _dense() -> list[Row]:
    """A dense sketch of a whole table, exact in integers on our side."""
    x, sketch = _table(), _sketch("bernoulli")
    baseline = cb.BernoulliSketch(_MEASUREMENTS, _CELLS)
    bits = "numpy: bits unpacked in blocks, sgemv"
    times, _ = turns({"ours": partial(sketch.add, x), bits: partial(baseline.forward, x)}, 3)
    # Linear in the cells, and slow.
    plain = 16 * once(partial(_products_of_signs, x[: _CELLS // 16], _MEASUREMENTS))[0]
    what = f"dense signs, {_SIZE}"
    return [
        versus(what, times["ours"], bits, times[bits], goal=1 / 15),
        versus(
            what,
            times["ours"],
            "numpy: signs by Generator.choice in blocks, dgemv (16 times a sixteenth)",
            plain,
            goal=1 / 15,
        ),
    ]


def _hadamard() -> list[Row]:
    x, sketch = _table(), _sketch("hadamard")
    contestants: dict[str, Callable[[], object]] = {"ours": partial(sketch.add, x)}
    for name, transform in (
        ("numpy: butterflies", cb.hadamard_butterflies),
        ("numpy: products with H_32 by BLAS", cb.hadamard_products),
    ):
        contestants[name] = partial(cb.HadamardSketch(_MEASUREMENTS, _CELLS, transform=transform).forward, x)
    times = race(contestants, 9)
    what = f"Hadamard rows, {_SIZE}"
    return [versus(what, times["ours"], name, times[name], goal=0.5) for name in contestants if name != "ours"]


def _sparse() -> list[Row]:
    """Whole tables by few signs a column. Their columns are stored, ours are made."""
    rows, x = [], _table()
    for nonzeros in (4, 8):
        theirs = cb.SparseSketch(_MEASUREMENTS, _CELLS, nonzeros)
        columns, real = theirs.matrix(), x.astype(np.float64)
        contestants: dict[str, Callable[[], object]] = {
            "ours": partial(_sketch("sparse", nonzeros=nonzeros).add, x),
            "scipy: stored columns (CSC)": lambda columns=columns, real=real: columns @ real,
            "numpy: bincount of stored places": partial(theirs.forward, x),
            "numpy: add.at": partial(theirs.forward_add_at, x),
        }
        if nonzeros == 4:
            plain, listed = theirs.plain_forward(), x.tolist()
            assert plain(listed) == theirs.forward(x).tolist()
            contestants["plain Python: stored places"] = partial(plain, listed)
        times = race(contestants, 7)
        what = f"{nonzeros} signs a column, whole table, {_SIZE}"
        rows += [versus(what, times["ours"], name, times[name]) for name in contestants if name != "ours"]
    return rows


def _added_at(sketch: cb.SparseSketch, cells: NDArray[np.int64], *, counted: bool) -> Array:
    """Return the sketch of records by their stored columns, so many at a time that they fit the memory."""
    y, width = np.zeros(sketch.rows), 2**16
    for start in range(0, len(cells), width):
        part = cells[start : start + width]
        places, signs = sketch._places[:, part].ravel(), sketch._signs[:, part].ravel()
        if counted:
            y += np.bincount(places, signs, sketch.rows)
        else:
            np.add.at(y, places, signs)
    return y


def _tabulated(columns: Any, cells: NDArray[np.int64]) -> Array:
    return np.asarray(columns @ np.bincount(cells, minlength=_CELLS).astype(np.float64))


def _updates() -> list[Row]:
    """Records in random order, in one batch; the slow baselines get a tenth of them."""
    rows = []
    cells = np.random.default_rng(4).integers(0, _CELLS, _INCREMENTS)
    few = cells[: _INCREMENTS // 10]
    for nonzeros in (4, 8):
        theirs = cb.SparseSketch(_MEASUREMENTS, _CELLS, nonzeros)
        contestants: dict[str, tuple[Callable[[], object], int]] = {
            "ours": (partial(_sketch("sparse", nonzeros=nonzeros).update, cells), len(cells)),
            "numpy: add.at of stored columns": (partial(_added_at, theirs, few, counted=False), len(few)),
            "numpy: bincount of stored columns": (partial(_added_at, theirs, few, counted=True), len(few)),
            "scipy: a table by bincount, then CSC": (partial(_tabulated, theirs.matrix(), cells), len(cells)),
        }
        times, _ = turns({name: call for name, (call, _) in contestants.items()}, 5)
        each = {name: seconds / contestants[name][1] for name, seconds in times.items()}
        what = f"{_INCREMENTS:,} records to a sketch of {nonzeros} signs a column"
        rate = 1e-6 / each["ours"]
        goal = "≥ 20 M/s" if nonzeros == 4 else ""
        rows.append(noted(what, f"{rate:.3g} million/s", 20.0 / rate, 1.0 if goal else None, goal))
        rows += [versus(what, each["ours"], name, each[name], per="/record") for name in contestants if name != "ours"]
    return rows


def _peak() -> list[Row]:
    """Peak of resident memory while a table is added, over what was resident before."""
    rows = []
    arrays = 8 * (_CELLS + _MEASUREMENTS)
    for kind in _KINDS:
        _sketch(kind, 2**12, 64).add(_table(2**12))  # code pages and threads
        x = _table()
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts again
        before = _status("VmRSS")
        sketch = _sketch(kind)
        sketch.add(x)
        most = _status("VmHWM") - before
        del sketch
        ours = f"{most / 2**20:.2f} MiB, {most / arrays:.2f} arrays of n + k doubles"
        rows.append(noted(f"peak memory of a {kind} sketch over its input, {_SIZE}", ours, most / arrays, 2.0, "≤ 2"))
    return rows


def _status(field: str) -> int:
    """Return a memory figure of this process in bytes (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field + ":"))


# Transposes and transforms.


def _adjoints() -> list[Row]:
    y = _normals(_MEASUREMENTS)
    sparse = cb.SparseSketch(_MEASUREMENTS, _CELLS)
    columns = sparse.matrix().T
    theirs: dict[str, dict[str, Callable[[], object]]] = {
        "sparse": {
            "scipy: stored columns (CSC)": lambda: columns @ y,
            "numpy: stored places": partial(sparse.adjoint, y),
        },
        "hadamard": {"numpy: products with H_32 by BLAS": partial(cb.HadamardSketch(_MEASUREMENTS, _CELLS).adjoint, y)},
        "bernoulli": {
            "numpy: bits unpacked in blocks, dgemv": partial(cb.BernoulliSketch(_MEASUREMENTS, _CELLS).adjoint, y)
        },
    }
    rows = []
    for kind, others in theirs.items():
        operator = _sketch(kind).operator
        times, _ = turns({"ours": partial(operator.adjoint, y), **others}, 1 if kind == "bernoulli" else 9)
        rows += [versus(f"transpose, {kind}, {_SIZE}", times["ours"], name, times[name]) for name in others]
    return rows


def _bases() -> list[Row]:
    rows, x = [], _normals(_CELLS)
    for name, library, analyze, synthesize in (
        ("haar", "numpy: sums and differences", cb.haar, cb.inverse_haar),
        ("cosine", "scipy.fft.dct, idct", cb.cosine, cb.inverse_cosine),
    ):
        basis = _core.Basis.named(name, _CELLS)
        for what, ours, theirs in (
            ("analysis", basis.analyze, analyze),
            ("synthesis", basis.synthesize, synthesize),
        ):
            times = race({"ours": partial(ours, x), "theirs": partial(theirs, x)}, 15)
            rows.append(versus(f"{name}, {what}, {power(_CELLS)} cells", times["ours"], library, times["theirs"]))
    return rows


# Recovery.

_LONG = 2**10 if quick() else 2**16
_KEPT = 256 if quick() else 4096
_SPARSITY = 8 if quick() else 64
_RECOVERIES = {"cosamp": "CoSaMP", "hard-thresholding": "hard thresholding", "basis-pursuit": "basis pursuit"}


def _noise(kind: str) -> tuple[Array, float]:
    """Return noise on a sketch with unit columns, and its deviation.

    Laplace at epsilon 1 on sparse columns, else Gaussian at (1, 1e-6).
    """
    rng = np.random.default_rng(5)
    if kind == "sparse":
        return rng.laplace(0.0, 2.0, _KEPT), 2.0 * math.sqrt(2.0)
    deviation = 1.0 / gaussian_mu(so.ApproxDP(epsilon=1.0, delta=1e-6))
    return deviation * rng.normal(size=_KEPT), deviation


def _pursued(A: LinearOperator, y: Array, penalty: float) -> Array:
    return cb.debiased(A, y, cb.fista(A, y, penalty))


def _recovery(kind: str) -> list[Row]:
    """All algorithms on one sketch of each side, in the Haar basis."""
    x = haar_sparse(_LONG, _SPARSITY).astype(np.float64)
    truth, (w, deviation) = cb.haar(x), _noise(kind)
    operator, basis = _sketch(kind, _LONG, _KEPT).operator, _core.Basis.named("haar", _LONG)
    y = operator.apply(x) + w
    ours: dict[str, Callable[[], Any]] = {
        name: partial(_core.recover, operator, basis, y, name, _SPARSITY, deviation, ITERATIONS[name], None, None)
        for name in _RECOVERIES
    }

    made: dict[str, Callable[[], cb.Sketch]] = {
        "sparse": lambda: cb.SparseSketch(_KEPT, _LONG),
        "hadamard": lambda: cb.HadamardSketch(_KEPT, _LONG),
        "bernoulli": lambda: cb.BernoulliSketch(_KEPT, _LONG),
    }
    sketch = made[kind]()
    matrix = cb.explicit(sketch, cb.haar) if kind == "bernoulli" else None
    A = aslinearoperator(matrix) if matrix is not None else cb.operator(sketch, cb.haar, cb.inverse_haar)
    z = A.matvec(truth) + w
    penalty = deviation * math.sqrt(2.0 * math.log(_LONG))
    how = "operators" if matrix is None else "matrix explicit, BLAS"
    theirs: dict[str, Callable[[], Any]] = {f"numpy CoSaMP, {how}": partial(cb.cosamp, A, z, _SPARSITY)}
    if matrix is None:
        theirs["numpy normalised hard thresholding, operators"] = partial(cb.niht, A, z, _SPARSITY)
        theirs["numpy FISTA and least squares, operators"] = partial(_pursued, A, z, penalty)
    times, found = turns({**ours, **theirs}, 1 if kind == "bernoulli" else 3)
    if matrix is not None:
        # Once: seconds to minutes.
        for name, call in (
            ("scikit-learn OMP, matrix explicit", partial(cb.omp, matrix, z, _SPARSITY)),
            ("scikit-learn Lasso, matrix explicit", partial(cb.lasso, matrix, z, penalty, steps=100)),
        ):
            times[name], found[name] = once(call)

    def error(name: str) -> str:
        answer = found[name]
        c = answer if isinstance(answer, np.ndarray) else np.zeros(_LONG)
        if not isinstance(answer, np.ndarray):
            c[answer.support] = answer.coefficients
        return f"error {np.linalg.norm(c - truth):.3g}"

    rows = []
    size = f"{power(_LONG)} cells, {power(_KEPT)} numbers, {_SPARSITY} coefficients"
    for number, (algorithm, label) in enumerate(_RECOVERIES.items()):
        like = list(theirs)[number] if matrix is None else ""
        others = [name for name in times if name == like or name.startswith(("numpy CoSaMP", "scikit-learn"))]
        for other in others:
            goal = 0.2 if "CoSaMP" in other or other != like else None
            what = f"{label}, {kind}, {size}, {error(algorithm)}"
            rows.append(versus(what, times[algorithm], f"{other}, {error(other)}", times[other], goal=goal))
    return rows


# Growth.


def _growth() -> list[Row]:
    """Sketches with k = 4,096 of tables, and a recovery from a sparse one: once each, after a first call."""
    rows = []
    for bits in range(8, 13, 2) if quick() else range(12, 23, 2):
        n = 2**bits
        k = min(_MEASUREMENTS, n)
        for kind in _KINDS:
            seconds = race({"ours": partial(_sketch(kind, n, k).add, _table(n))}, 3)["ours"]
            what = f"{kind} sketch, {power(n)} cells to {power(k)} numbers"
            rows.append(noted(what, f"{amount(seconds)}; {seconds * 1e9 / n:.3g} ns/cell"))
        sparsity = min(_SPARSITY, n // 64)
        operator, basis = _sketch("sparse", n, min(k, n // 2)).operator, _core.Basis.named("haar", n)
        y = operator.apply(haar_sparse(n, sparsity).astype(np.float64)) + _normals(operator.description[2])
        run = partial(_core.recover, operator, basis, y, "cosamp", sparsity, 1.0, ITERATIONS["cosamp"], None, None)
        seconds, found = once(run)
        what = f"CoSaMP, sparse sketch, {power(n)} cells, {sparsity} coefficients, {found.iterations} iterations"
        each = seconds * 1e9 / n / found.iterations
        rows.append(noted(what, f"{amount(seconds)}; {each:.3g} ns/cell an iteration"))
    return rows


def _isotonic() -> list[Row]:
    """Noise on a sorted histogram; and values that fall, where all of them are one pool."""
    from sklearn.isotonic import isotonic_regression as sklearn_isotonic  # noqa: PLC0415 - seconds to import

    rows = []
    for what, v in (
        ("sorted counts with noise", np.sort(_table()) + 3.0 * _normals(_CELLS)),
        ("falling values", np.arange(_CELLS, 0, -1, dtype=np.float64)),
    ):
        contestants: dict[str, Callable[[], object]] = {
            "ours": partial(_core.isotonic, v),
            "scikit-learn": partial(sklearn_isotonic, v),
            "scipy": partial(isotonic_regression, v),
        }
        times = race(contestants, 9)
        title = f"isotonic regression, {what}, {power(_CELLS)}"
        rows += [versus(title, times["ours"], name, times[name]) for name in ("scikit-learn", "scipy")]
    return rows


_SECTIONS: dict[str, Callable[[], list[Row]]] = {
    "dense": _dense,
    "hadamard": _hadamard,
    "sparse": _sparse,
    "updates": _updates,
    "peak": _peak,
    "adjoints": _adjoints,
    "bases": _bases,
    **{f"recovery from {kind}": partial(_recovery, kind) for kind in _KINDS},
    "growth": _growth,
    "isotonic": _isotonic,
}
_TWICE = {"dense", "hadamard", "sparse", "peak", "recovery from sparse"}


def figures() -> list[Row]:
    """Return all rows: every section with one thread, some with two as well."""
    rows = []
    for section in _SECTIONS:
        for threads in (1, 2) if section in _TWICE else (1,):
            for row in in_process(__file__, section, threads=threads):
                what = f"{row.what}, {plural(threads)}"
                rows.append(Row(what, row.ours, row.other, row.ratio, row.goal, row.met))
    return rows


if __name__ == "__main__":
    main(_SECTIONS, figures)
