"""Marginals from record codes and convolutions over groups against numpy.

The unsafe baselines add numpy's normals to the same answers. For marginals there are two: the loop that one would
write (`np.bincount` for every marginal), and the best we found (`np.bincount` once on the full domain, then sums
of the table).

Run `python benches/marginals.py`.
"""

import math
import os
from itertools import combinations

import numpy as np
import scipy.fft
from harness import Row, in_process, main, quick, race, versus
from numpy.typing import NDArray

import sordino as so

_ATTRIBUTES = 12 if quick() else 20
_RECORDS = 10**5 if quick() else 10**6
_GROUPS = ((3, 4, 5, 7, 8, 9), (16, 16, 9, 5)) if quick() else ((3, 4, 5, 7, 8, 9), (8, 9, 25, 7, 11, 13))
_PRIVACY = so.ApproxDP(epsilon=1.0, delta=1e-6)


def _records() -> NDArray[np.uint8]:
    rng = np.random.default_rng(1)
    return (rng.random((_RECORDS, _ATTRIBUTES)) < np.linspace(0.1, 0.7, _ATTRIBUTES)).astype(np.uint8)


def _marginals() -> list[Row]:
    threads = int(os.environ["RAYON_NUM_THREADS"])
    codes = _records()
    plan = so.plan(so.Marginals([2] * _ATTRIBUTES, k=3), _PRIVACY, mechanism="fourier")
    sets = list(combinations(range(_ATTRIBUTES), 3))
    rng = np.random.default_rng(2)
    noise = plan.rmse

    def one_by_one() -> NDArray[np.float64]:
        columns = np.ascontiguousarray(codes.T)
        counts = [np.bincount(4 * columns[i] + 2 * columns[j] + columns[k], minlength=8) for i, j, k in sets]
        return np.concatenate(counts) + rng.normal(0.0, noise, 8 * len(sets))

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
        return np.concatenate(counts) + rng.normal(0.0, noise, 8 * len(sets))

    times = race({"ours": lambda: plan.release(codes), "one by one": one_by_one, "table": from_the_full_table}, 5)
    what = (
        f"{len(sets):,} marginals of 3 of {_ATTRIBUTES} binary attributes, {_RECORDS:,} records, {threads} thread"
        f"{'s' if threads > 1 else ''}"
    )
    return [
        versus(what, times["ours"], "numpy bincount for each, unsafe", times["one by one"]),
        versus(what, times["ours"], "numpy bincount of the full table, then sums, unsafe", times["table"]),
    ]


def _normals(shape: tuple[int, ...], size: float, rng: np.random.Generator) -> NDArray[np.complex128]:
    """Return complex normals; the real part of their inverse transform is real white noise."""
    return rng.normal(0.0, size, (*shape, 2)).view(np.complex128)[..., 0]


def _group() -> list[Row]:
    rows = []
    for shape in _GROUPS:
        rng = np.random.default_rng(1)
        kernel = rng.random(shape) ** 8
        x = rng.integers(0, 1000, shape)
        plan = so.plan(so.GroupConvolution(kernel), _PRIVACY, mechanism="fourier")
        size = math.prod(shape)
        noise = plan.fitted.ratio * math.sqrt(size)
        transfer = np.fft.fftn(kernel)
        weight = np.sqrt(np.abs(transfer))
        half = scipy.fft.rfftn(kernel)
        half_weight = np.sqrt(np.abs(half))

        def release(plan: so.Plan = plan, x: NDArray[np.int64] = x) -> so.Release:
            return plan.release(x)

        def with_numpy(
            transfer: NDArray[np.complex128] = transfer,
            weight: NDArray[np.float64] = weight,
            x: NDArray[np.int64] = x,
            noise: float = noise,
            rng: np.random.Generator = rng,
        ) -> NDArray[np.float64]:
            spectrum = transfer * np.fft.fftn(x) + weight * _normals(x.shape, noise, rng)
            return np.fft.ifftn(spectrum).real

        def with_scipy(
            transfer: NDArray[np.complex128] = half,
            weight: NDArray[np.float64] = half_weight,
            x: NDArray[np.int64] = x,
            noise: float = noise,
            rng: np.random.Generator = rng,
        ) -> NDArray[np.float64]:
            spectrum = transfer * scipy.fft.rfftn(x, workers=1) + weight * _normals(transfer.shape, noise, rng)
            answers: NDArray[np.float64] = scipy.fft.irfftn(spectrum, x.shape, workers=1)
            return answers

        times = race({"ours": release, "numpy": with_numpy, "scipy": with_scipy}, 9)
        name = " x ".join(f"Z{n}" for n in shape)
        what = f"convolution over {name} ({size:,} cells), 1 thread"
        rows.append(versus(what, times["ours"], "numpy fftn, normals, ifftn, unsafe", times["numpy"]))
        rows.append(versus(what, times["ours"], "scipy rfftn, normals, irfftn, unsafe", times["scipy"]))
    return rows


def figures() -> list[Row]:
    """Return all rows."""
    return [
        *in_process(__file__, "marginals", threads=1),
        *in_process(__file__, "marginals", threads=2),
        *in_process(__file__, "group", threads=1),
    ]


if __name__ == "__main__":
    main({"marginals": _marginals, "group": _group}, figures)
