"""Marginals from record codes and convolutions over groups against numpy.

The unsafe baselines add numpy's normals to the same answers. For marginals there are two: the loop that one would
write (`np.bincount` for every marginal), and the best we found (`np.bincount` once on the full domain, then sums
of the table). The same loop in plain Python has fewer records.

Run `python benches/marginals.py`.
"""

import math
import random
from collections.abc import Callable
from functools import partial
from itertools import combinations

import numpy as np
import scipy.fft
from harness import Row, main, plural, quick, race_apart, versus
from numpy.typing import NDArray

import sordino as so

_ATTRIBUTES = 12 if quick() else 20
_RECORDS = 10**5 if quick() else 10**6
_PLAIN_RECORDS = 10**4
_GROUPS = ("3 4 5 7 8 9", "16 16 9 5") if quick() else ("3 4 5 7 8 9", "8 9 25 7 11 13")
_PRIVACY = so.ApproxDP(epsilon=1.0, delta=1e-6)

_OURS = "ours"
_EACH = "numpy bincount for each, unsafe"
_TABLE = "numpy bincount of the full table, then sums, unsafe"
_PLAIN = "plain Python: a count of each table, random.gauss, unsafe"
_FULL = "numpy fftn, normals, ifftn, unsafe"
_HALF = "scipy rfftn, normals, irfftn, unsafe"


def _in_plain_python(columns: list[list[int]], deviation: float = 100.0) -> list[float]:
    """Return all marginals of 3 binary attributes."""
    answers = []
    for first, second, third in combinations(columns, 3):
        table = [0] * 8
        for a, b, c in zip(first, second, third, strict=True):
            table[4 * a + 2 * b + c] += 1
        answers += [count + random.gauss(0.0, deviation) for count in table]
    return answers


def _marginals(setting: str, name: str) -> Callable[[], object]:
    """Return a contestant; the setting is the number of records."""
    rng = np.random.default_rng(1)
    shares = np.linspace(0.1, 0.7, _ATTRIBUTES)
    codes = (rng.random((int(setting), _ATTRIBUTES)) < shares).astype(np.uint8)
    sets = list(combinations(range(_ATTRIBUTES), 3))

    def one_by_one(deviation: float = 100.0) -> NDArray[np.float64]:
        columns = np.ascontiguousarray(codes.T)
        counts = [np.bincount(4 * columns[i] + 2 * columns[j] + columns[k], minlength=8) for i, j, k in sets]
        return np.concatenate(counts) + rng.normal(0.0, deviation, 8 * len(sets))

    def from_the_full_table() -> NDArray[np.float64]:
        cells = np.zeros(len(codes), dtype=np.int64)
        for column in codes.T:
            cells = 2 * cells + column
        table = np.bincount(cells, minlength=2**_ATTRIBUTES).reshape((2,) * _ATTRIBUTES)
        counts = []
        for i in range(_ATTRIBUTES):  # sum what all sets that start with i leave out, once
            first = table.sum(axis=tuple(range(i)))
            for j in range(i + 1, _ATTRIBUTES):
                second = first.sum(axis=tuple(range(1, j - i)))
                for k in range(j + 1, _ATTRIBUTES):
                    others = tuple(axis for axis in range(2, second.ndim) if axis != 2 + k - j - 1)
                    counts.append(second.sum(axis=others).reshape(-1))
        return np.concatenate(counts) + rng.normal(0.0, 100.0, 8 * len(sets))

    if name == _EACH:
        return one_by_one
    if name == _PLAIN:
        listed = codes.T.tolist()
        assert _in_plain_python(listed, 0.0) == one_by_one(0.0).tolist()
        return partial(_in_plain_python, listed)
    if name == _TABLE:
        return from_the_full_table
    plan = so.plan(so.Marginals([2] * _ATTRIBUTES, k=3), _PRIVACY, mechanism="fourier")
    return lambda: plan.release(codes)


def _normals(shape: tuple[int, ...], size: float, rng: np.random.Generator) -> NDArray[np.complex128]:
    """Return complex normals; the real part of their inverse transform is real white noise."""
    return rng.normal(0.0, size, (*shape, 2)).view(np.complex128)[..., 0]


def _group(setting: str, name: str) -> Callable[[], object]:
    """Return a contestant; the setting is the shape."""
    shape = tuple(int(n) for n in setting.split())
    rng = np.random.default_rng(1)
    kernel = rng.random(shape) ** 8
    x = rng.integers(0, 1000, shape)
    noise = 4.22 * math.sqrt(math.prod(shape))
    if name == _OURS:
        plan = so.plan(so.workloads.GroupConvolution(kernel), _PRIVACY, mechanism="fourier")
        return lambda: plan.release(x)
    transfer = np.fft.fftn(kernel) if name == _FULL else scipy.fft.rfftn(kernel)
    weight = np.sqrt(np.abs(transfer))

    def with_numpy() -> NDArray[np.float64]:
        spectrum = transfer * np.fft.fftn(x) + weight * _normals(shape, noise, rng)
        return np.fft.ifftn(spectrum).real

    def with_scipy() -> NDArray[np.float64]:
        spectrum = transfer * scipy.fft.rfftn(x, workers=1) + weight * _normals(transfer.shape, noise, rng)
        answers: NDArray[np.float64] = scipy.fft.irfftn(spectrum, shape, workers=1)
        return answers

    return with_numpy if name == _FULL else with_scipy


def _of_marginals(records: int, others: tuple[str, ...], threads: int) -> list[Row]:
    times = race_apart(__file__, "marginals", str(records), (_OURS, *others), threads=threads, full_rounds=7)
    sets = f"{math.comb(_ATTRIBUTES, 3):,} marginals of 3 of {_ATTRIBUTES} binary attributes"
    what = f"{sets}, {records:,} records, {plural(threads)}"
    return [versus(what, times[_OURS], name, times[name]) for name in others]


def _against_plain_python() -> list[Row]:
    return _of_marginals(_PLAIN_RECORDS, (_PLAIN,), 1)


def figures() -> list[Row]:
    """Return all rows."""
    rows = [row for threads in (1, 2) for row in _of_marginals(_RECORDS, (_EACH, _TABLE), threads)]
    rows += _against_plain_python()
    for shape in _GROUPS:
        others = (_FULL, _HALF)
        times = race_apart(__file__, "group", shape, (_OURS, *others), threads=1, full_rounds=15)
        orders = [int(n) for n in shape.split()]
        group = " x ".join(f"Z{n}" for n in orders)
        what = f"convolution over {group} ({math.prod(orders):,} cells), 1 thread"
        rows += [versus(what, times[_OURS], name, times[name]) for name in others]
    return rows


if __name__ == "__main__":
    main({"plain Python": _against_plain_python}, figures, {"marginals": _marginals, "group": _group})
