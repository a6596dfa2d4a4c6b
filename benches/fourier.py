"""A whole release of a circular filter against the unsafe transform in floating point; growth; peak memory.

The unsafe baseline is what one would write without a thought for exactness: `scipy.fft.rfft`, numpy's normals on
the spectrum, `scipy.fft.irfft`, one thread. The plan is made before the clock starts, and so is the baseline's
spectrum.

Run `python benches/fourier.py`.
"""

import math
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import scipy.fft
from harness import Row, amount, in_process, main, noted, quick, race, versus
from numpy.typing import NDArray

import sordino as so

_HEADLINE = 2**16 if quick() else 2**20
_POWERS = range(10, 17 if quick() else 25, 2)
_OTHER = (10**4, 2**14 + 1, 16_411) if quick() else (10**6, 2**20 + 1, 1_048_583)  # the last ones are primes
_MEMORY = 2**18 if quick() else 2**22
_PRIVACY = so.ApproxDP(epsilon=1.0, delta=1e-6)


def _kernel(length: int) -> NDArray[np.float64]:
    return np.exp(-np.minimum(np.arange(length) / 64.0, 300.0))


def _plan(length: int, max_value: int | None = None) -> so.Plan:
    workload = so.Convolution(_kernel(length), boundary="circular")
    return so.plan(workload, _PRIVACY, mechanism="fourier", max_value=max_value)


def _data(length: int) -> NDArray[np.int64]:
    return np.random.default_rng(1).integers(0, 1000, length)


def _unsafe(length: int, noise: float, x: NDArray[np.int64]) -> Callable[[], NDArray[np.float64]]:
    """Return a call that releases with floating-point noise of the same size: not private."""
    transfer = scipy.fft.rfft(_kernel(length))
    weight = np.sqrt(np.abs(transfer)) * noise * math.sqrt(length / 2.0)
    rng = np.random.default_rng(2)

    def release() -> NDArray[np.float64]:
        spectrum = transfer * scipy.fft.rfft(x, workers=1)
        spectrum += weight * rng.normal(size=2 * len(spectrum)).view(np.complex128)
        answers: NDArray[np.float64] = scipy.fft.irfft(spectrum, length, workers=1)
        return answers

    return release


def _whole_call() -> list[Row]:
    threads = int(os.environ["RAYON_NUM_THREADS"])
    x = _data(_HEADLINE)
    default, declared = _plan(_HEADLINE), _plan(_HEADLINE, max_value=1000)
    unsafe = _unsafe(_HEADLINE, default.fitted.ratio, x)
    times = race(
        {"default": lambda: default.release(x), "declared": lambda: declared.release(x), "unsafe": unsafe}, 21
    )
    goal = 1.5 if threads == 1 else 1.0
    what = f"release of a circular filter, N = {_HEADLINE:,}, {threads} thread{'s' if threads > 1 else ''}"
    name = "unsafe rfft, normals, irfft (scipy, numpy; 1 thread)"
    return [
        versus(f"{what}, default max_value 2^24", times["default"], name, times["unsafe"], goal=goal),
        versus(f"{what}, max_value = 1000 declared", times["declared"], name, times["unsafe"], goal=goal),
    ]


def _stages() -> list[Row]:
    """Where the time of a release goes."""
    x = _data(_HEADLINE)
    plan = _plan(_HEADLINE)
    strategy, door = plan.fitted.strategy, plan.fitted.door
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
        x = _data(length)
        plan = _plan(length)
        times = race({"ours": partial(plan.release, x), "unsafe": _unsafe(length, plan.fitted.ratio, x)}, 7)
        unit = times["ours"] / (length * math.log2(length))
        row = versus(f"release, N = {length:,}, 1 thread", times["ours"], "unsafe", times["unsafe"])
        rows.append(Row(row.what, f"{row.ours}; {unit * 1e9:.3g} ns per N log2 N", row.other, row.ratio))
    return rows


def _memory() -> list[Row]:
    """Peak of resident memory during one release over what was resident before it."""
    x = _data(_MEMORY)
    rows = []
    for name, plan in (
        ("default max_value", _plan(_MEMORY)),
        ("max_value = 1000", _plan(_MEMORY, max_value=1000)),
    ):
        _plan(64).release(_data(64))  # code pages and threads
        Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts again
        before = _status("VmRSS")
        release = plan.release(x)
        arrays = (_status("VmHWM") - before) / (8 * _MEMORY)
        del release
        what = f"peak memory of a release over its input, N = {_MEMORY:,}, {name}"
        rows.append(noted(what, f"{arrays:.2f} arrays of N doubles", arrays, 8.0, "≤ 8 arrays"))
    return rows


def _status(field: str) -> int:
    """Return a memory figure of this process in bytes (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field + ":"))


def figures() -> list[Row]:
    """Return all rows."""
    # Every array is a mapping of its own, given back when freed: no memory left by the plan hides a peak.
    mappings = {"MALLOC_MMAP_THRESHOLD_": "65536"}
    return [
        *in_process(__file__, "whole", threads=1),
        *in_process(__file__, "whole", threads=2),
        *in_process(__file__, "stages", threads=1),
        *in_process(__file__, "growth", threads=1),
        *in_process(__file__, "memory", threads=1, environment=mappings),
        *(
            Row(f"{row.what}, 2 threads", row.ours, row.other, row.ratio, row.goal, row.met)
            for row in in_process(__file__, "memory", threads=2, environment=mappings)
        ),
    ]


if __name__ == "__main__":
    main({"whole": _whole_call, "stages": _stages, "growth": _growth, "memory": _memory}, figures)
