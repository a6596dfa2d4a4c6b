"""Exact noise, one thread, against generators that are not exact and not private, plain Python's too, and OpenDP.

Run `python benches/noise.py`.
"""

import math
import random
from functools import partial

import numpy as np
import opendp.prelude as dp
from harness import Row, in_process, main, quick, race, versus

import sordino as so

_SAMPLES = 10**5 if quick() else 10**6
_PEER_SAMPLES = 200 if quick() else 2000
_PLAIN_SAMPLES = 10**5


def _against_numpy() -> list[Row]:
    rng = np.random.default_rng(1)
    rows = []
    for law, ours, theirs in (
        ("Gaussian", so.noise.gaussian, rng.normal),
        ("Laplace", so.noise.laplace, rng.laplace),
    ):
        for bits in (0, 20, 40, 46):
            size = 2.0**bits
            times = race({"ours": partial(ours, _SAMPLES, size), "numpy": partial(theirs, 0.0, size, _SAMPLES)}, 31)
            rows.append(
                versus(
                    f"{law} noise of 2^{bits} units, {_SAMPLES:,} samples, 1 thread",
                    times["ours"] / _SAMPLES,
                    f"numpy Generator.{law.lower().replace('gaussian', 'normal')}, PCG64, not private",
                    times["numpy"] / _SAMPLES,
                    goal=1.0 if law == "Gaussian" and bits == 40 else None,
                    per="/sample",
                )
            )
    plain = race(
        {"ours": lambda: so.noise.gaussian(_SAMPLES, 2.0**40), "numpy": lambda: rng.standard_normal(_SAMPLES)}, 31
    )
    rows.append(
        versus(
            f"Gaussian noise of 2^40 units, {_SAMPLES:,} samples, 1 thread",
            plain["ours"] / _SAMPLES,
            "numpy Generator.standard_normal (unscaled floats)",
            plain["numpy"] / _SAMPLES,
            per="/sample",
        )
    )
    return rows


def _in_plain_python(size: float) -> list[float]:
    return [random.gauss(0.0, size) for _ in range(_PLAIN_SAMPLES)]


def _against_plain_python() -> list[Row]:
    size = 2.0**40
    root = math.sqrt(sum(noise * noise for noise in _in_plain_python(1.0)) / _PLAIN_SAMPLES)
    assert abs(root - 1.0) < 0.02  # eight standard errors
    times = race(
        {"ours": partial(so.noise.gaussian, _PLAIN_SAMPLES, size), "plain": partial(_in_plain_python, size)}, 15
    )
    ours, plain = (times[name] / _PLAIN_SAMPLES for name in ("ours", "plain"))
    what = f"Gaussian noise of 2^40 units, {_PLAIN_SAMPLES:,} samples, 1 thread"
    return [versus(what, ours, "plain Python: random.gauss, not private", plain, per="/sample")]


def _against_opendp() -> list[Row]:
    dp.enable_features("contrib")
    floats = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)
    integers = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    on_floats = dp.m.make_gaussian(*floats, scale=2.0**20)
    sized = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=_PEER_SAMPLES), dp.l2_distance(T=float)
    on_grid = dp.m.make_gaussian(*sized, scale=1.0, k=-40)
    on_integers = dp.m.make_gaussian(*integers, scale=2.0**40)
    zeros, nothing = [0.0] * _PEER_SAMPLES, [0] * _PEER_SAMPLES
    times = race(
        {
            "ours in bulk": lambda: so.noise.gaussian(_SAMPLES, 2.0**40),
            "ours": lambda: so.noise.gaussian(_PEER_SAMPLES, 2.0**40),
            "floats": lambda: on_floats(zeros),
            "grid": lambda: on_grid(zeros),
            "integers": lambda: on_integers(nothing),
        },
        15,
    )
    bulk, ours = times["ours in bulk"] / _SAMPLES, times["ours"] / _PEER_SAMPLES
    name = "OpenDP make_gaussian from Python,"
    return [
        versus(
            f"Gaussian noise of 2^40 units, {_SAMPLES:,} samples a call",
            bulk,
            f"{name} f64 vector of {_PEER_SAMPLES:,}",
            times["floats"] / _PEER_SAMPLES,
            goal=1e-3,
            per="/sample",
        ),
        *(
            versus(
                f"Gaussian noise of 2^40 units, {_PEER_SAMPLES:,} samples a call",
                ours,
                f"{name} {kind}",
                times[key] / _PEER_SAMPLES,
                per="/sample",
            )
            for kind, key in (
                ("f64 vector", "floats"),
                ("f64 vector on a grid of 2^-40", "grid"),
                ("integer vector", "integers"),
            )
        ),
    ]


def figures() -> list[Row]:
    """Return all rows."""
    return [row for section in _SECTIONS for row in in_process(__file__, section, threads=1)]


_SECTIONS = {"numpy": _against_numpy, "plain Python": _against_plain_python, "opendp": _against_opendp}


if __name__ == "__main__":
    main(_SECTIONS, figures)
