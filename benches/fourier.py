"""A whole release of a circular filter against the unsafe transform in floating point; growth; peak memory.

The unsafe baseline is what one would write without a thought for exactness: `scipy.fft.rfft`, numpy's normals on
the spectrum, `scipy.fft.irfft`, one thread. The plan is made before the clock starts, and so is the baseline's
spectrum. The same in plain Python halves the length until one number is left.

Run `python benches/fourier.py`.
"""

import cmath
import gc
import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import scipy.fft
from harness import Row, amount, in_process, main, noted, plural, quick, race, race_apart, versus
from numpy.typing import NDArray

import sordino as so

_HEADLINE = 2**16 if quick() else 2**20
_PLAIN_LENGTH = 2**12 if quick() else 2**16
_POWERS = range(10, 17 if quick() else 25, 2)
_OTHER = (10**4, 2**14 + 1, 16_411) if quick() else (10**6, 2**20 + 1, 1_048_583)  # the last ones are primes
# So long that no working array is kept from the planning for the release.
_MEMORY = 2**24
_PRIVACY = so.ApproxDP(epsilon=1.0, delta=1e-6)
_DECLARED = 1000
_DEFAULT, _SMALL, _UNSAFE = "default max_value", f"max_value = {_DECLARED}", "unsafe"
# Fresh pages cost the unsafe baseline a third of its time; sordino keeps working arrays. The second setting lets
# the C library keep freed memory, for everybody.
_ALLOCATORS = {
    "usual malloc": {},
    "malloc keeps memory": {"MALLOC_MMAP_THRESHOLD_": str(2**32), "MALLOC_TRIM_THRESHOLD_": str(2**34)},
}
_PLAIN = "plain Python: transform by halves, random.gauss, unsafe"
_UNSAFE_NAME = "unsafe rfft, normals, irfft (scipy, numpy; 1 thread)"


def _kernel(length: int) -> NDArray[np.float64]:
    return np.exp(-np.minimum(np.arange(length) / 64.0, 300.0))


def _plan(length: int, max_value: int | None = None) -> so.Plan:
    workload = so.Convolution(_kernel(length), boundary="circular")
    return so.plan(workload, _PRIVACY, mechanism="fourier", max_value=max_value)


def _data(length: int) -> NDArray[np.int64]:
    return np.random.default_rng(1).integers(0, _DECLARED, length)


def _unsafe(length: int, x: NDArray[np.int64]) -> Callable[[], NDArray[np.float64]]:
    """Return a call that releases with floating-point noise: not private."""
    transfer = scipy.fft.rfft(_kernel(length))
    weight = np.sqrt(np.abs(transfer)) * 4.22 * math.sqrt(length / 2.0)
    rng = np.random.default_rng(2)

    def release() -> NDArray[np.float64]:
        spectrum = scipy.fft.rfft(x, workers=1)
        spectrum *= transfer
        noise = rng.normal(size=2 * len(spectrum)).view(np.complex128)
        noise *= weight
        spectrum += noise
        answers: NDArray[np.float64] = scipy.fft.irfft(spectrum, length, workers=1, overwrite_x=True)
        return answers

    return release


def _transform(values: Sequence[complex], roots: list[complex]) -> list[complex]:
    """Return the transform of a power of two of numbers; `roots` are the roots of unity of that order."""
    if len(values) == 1:
        return list(values)
    even, odd = _transform(values[::2], roots[::2]), _transform(values[1::2], roots[::2])
    turned = [root * z for root, z in zip(roots, odd, strict=False)]
    return [a + b for a, b in zip(even, turned, strict=True)] + [a - b for a, b in zip(even, turned, strict=True)]


def _in_plain_python(length: int, x: list[int], deviation: float = 4.22) -> Callable[[], list[float]]:
    """Return a call that releases without numpy: not private."""
    roots = [cmath.rect(1.0, -2.0 * math.pi * k / length) for k in range(length)]
    transfer = _transform(_kernel(length).astype(complex).tolist(), roots)
    weight = [math.sqrt(abs(factor)) * deviation * math.sqrt(length) for factor in transfer]

    def release() -> list[float]:
        spectrum = [
            factor * z + complex(random.gauss(0.0, size), random.gauss(0.0, size))
            for factor, z, size in zip(transfer, _transform(x, roots), weight, strict=True)
        ]
        # The inverse by conjugates; the real part of the noise is real noise.
        return [z.real / length for z in _transform([z.conjugate() for z in spectrum], roots)]

    return release


def _release(setting: str, name: str) -> Callable[[], object]:
    """Return a contestant; the setting is the length."""
    length = int(setting)
    x = _data(length)
    if name == _UNSAFE:
        return _unsafe(length, x)
    if name == _PLAIN:
        exact = scipy.fft.irfft(scipy.fft.rfft(x) * scipy.fft.rfft(_kernel(length)), length)
        np.testing.assert_allclose(_in_plain_python(length, x.tolist(), 0.0)(), exact, rtol=1e-9)
        return _in_plain_python(length, x.tolist())
    plan = _plan(length, max_value=None if name == _DEFAULT else _DECLARED)
    return lambda: plan.release(x)


def _whole_call(threads: int, memory: str) -> list[Row]:
    names = (_DEFAULT, _SMALL, _UNSAFE)
    times = race_apart(
        __file__,
        "release",
        str(_HEADLINE),
        names,
        threads=threads,
        full_rounds=31,
        environment=_ALLOCATORS[memory],
    )
    goal = 1.5 if threads == 1 else 1.0
    what = f"release of a circular filter, N = {_HEADLINE:,}, {plural(threads)}"
    return [
        versus(f"{what}, {name}; {memory}", times[name], _UNSAFE_NAME, times[_UNSAFE], goal=goal)
        for name in (_DEFAULT, _SMALL)
    ]


def _against_plain_python() -> list[Row]:
    times = race_apart(__file__, "release", str(_PLAIN_LENGTH), (_DEFAULT, _PLAIN), threads=1, full_rounds=5)
    what = f"release of a circular filter, N = {_PLAIN_LENGTH:,}, 1 thread"
    return [versus(what, times[_DEFAULT], _PLAIN, times[_PLAIN])]


def _stages() -> list[Row]:
    """Where the time of a release goes."""
    x = _data(_HEADLINE)
    plan = _plan(_HEADLINE)
    strategy, door = plan.fit.strategy, plan.fit.door
    measured = door.measure(strategy, x)
    times = race(
        {
            "measure (encode, round, noise)": lambda: door.measure(strategy, x),
            "its noise alone": lambda: so.noise.gaussian(_HEADLINE, 2.0**20),
            "decode": lambda: so._core.decode(strategy, measured),
        },
        11,
    )
    return [noted(f"of it, 1 thread: {stage}", amount(seconds)) for stage, seconds in times.items()]


def _growth() -> list[Row]:
    rows = []
    for length in (*(2**n for n in _POWERS), *_OTHER):
        times = race_apart(__file__, "release", str(length), (_DEFAULT, _UNSAFE), threads=1, full_rounds=9)
        unit = times[_DEFAULT] / (length * math.log2(length))
        row = versus(f"release, N = {length:,}, 1 thread", times[_DEFAULT], "unsafe", times[_UNSAFE])
        rows.append(Row(row.what, f"{row.ours}; {unit * 1e9:.3g} ns per N log2 N", row.other, row.ratio))
    return rows


def _peak(max_value: int | None) -> list[Row]:
    """Peak of resident memory during one release over what was resident before it."""
    x = _data(_MEMORY)
    plan = _plan(_MEMORY, max_value)
    _plan(64).release(_data(64))  # code pages and threads
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts again
    before = _status("VmRSS")
    release = plan.release(x)
    arrays = (_status("VmHWM") - before) / (8 * _MEMORY)
    del release
    what = f"peak memory of a release over its input, N = {_MEMORY:,}"
    return [noted(what, f"{arrays:.2f} arrays of N doubles", arrays, 8.0, "≤ 8 arrays")]


def _kept() -> list[Row]:
    """Memory that stays with the process after plan and release are gone."""
    _plan(64).release(_data(64))
    x = _data(_HEADLINE)
    gc.collect()
    before = _status("VmRSS")
    _plan(_HEADLINE).release(x)
    gc.collect()
    arrays = (_status("VmRSS") - before) / (8 * _HEADLINE)
    return [noted(f"kept after plan and release are gone, N = {_HEADLINE:,}", f"{arrays:.2f} arrays of N doubles")]


def _status(field: str) -> int:
    """Return a memory figure of this process in bytes (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field + ":"))


def _memory() -> list[Row]:
    # Every array is a mapping of its own, given back when freed: no memory left by the plan hides a peak.
    mappings = {"MALLOC_MMAP_THRESHOLD_": "65536"}
    rows = []
    for name in (_DEFAULT, _SMALL):
        for threads in (1, 2):
            for row in in_process(__file__, name, threads=threads, environment=mappings):
                what = f"{row.what}, {name}, {plural(threads)}"
                rows.append(Row(what, row.ours, row.other, row.ratio, row.goal, row.met))
    return rows + in_process(__file__, "kept", threads=1, environment=mappings)


def figures() -> list[Row]:
    """Return all rows."""
    return [
        *(row for memory in _ALLOCATORS for threads in (1, 2) for row in _whole_call(threads, memory)),
        *_against_plain_python(),
        *in_process(__file__, "stages", threads=1),
        *_growth(),
        *([] if quick() else _memory()),
    ]


if __name__ == "__main__":
    main(
        {
            "plain Python": _against_plain_python,
            "stages": _stages,
            _DEFAULT: lambda: _peak(None),
            _SMALL: lambda: _peak(_DECLARED),
            "kept": _kept,
        },
        figures,
        {"release": _release},
    )
