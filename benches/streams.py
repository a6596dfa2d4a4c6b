"""Continual release: counters in batches and step by step, the exact square root, and the optimisers.

Peers: jax-privacy's buffered linear Toeplitz privatizer, fused into one `lax.scan` of the whole run (no server that
answers after every item can do that) and called once a step, both compiled and warm; a binary tree of OpenDP's
scalar measurements (OpenDP has no counter of its own). Baselines, neither exact nor private: the recursion in plain
Python with normals of `random.gauss`, and numpy's normals through scipy's `lfilter`.

Run `python benches/streams.py`.
"""

import math
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.fft
import scipy.signal
from harness import Row, amount, in_process, main, noted, once, power, quick, race, race_apart, versus
from peers import ENVIRONMENT, JaxCounter, TreeCounter, jax_buffered, jax_dense

import sordino as so

_PRIVACY = so.ApproxDP(epsilon=1.0, delta=1e-6)
# Noise of standard deviation 1 a unit of sensitivity: errors are the constants of the factorizations.
_UNIT_NOISE = so.GaussianDP(mu=1.0)
_STEPS = 2**14 if quick() else 2**20
_WIDE_STEPS = 2**8 if quick() else 2**12
_WIDE = 1000
_CALLS = 200 if quick() else 2000
_BUFFERS = 4
_PATIENCE = 60.0
_UNSAFE = "rfft, numpy normals, irfft (scipy, 1 thread), unsafe"


def _counter(length: int, dim: int = 1) -> so.StreamPlan:
    return so.plan(so.Continual(so.RunningSum(length), dim=dim), _PRIVACY, mechanism="blt", degree=_BUFFERS)


def _recursion(peer: JaxCounter, steps: int) -> Callable[[], object]:
    """Return the counter in plain Python: one loop over the steps; not private."""
    decays, gains = peer.decays.tolist(), peer.gains.tolist()

    def run() -> list[float]:
        buffers, total, answers = [0.0] * len(decays), 0.0, []
        for _ in range(steps):
            noise = random.gauss(0.0, 10.0) - sum(map(float.__mul__, gains, buffers))
            buffers = [d * b + noise for d, b in zip(decays, buffers, strict=True)]
            total += 1.0 + noise
            answers.append(total)
        return answers

    return run


def _filtered(peer: JaxCounter, steps: int) -> Callable[[], object]:
    """Return the counter by numpy and scipy on the whole stream; not private."""
    poles = np.poly(peer.decays)
    zeros = poles.copy()
    for i, gain in enumerate(peer.gains):
        zeros[1:] += gain * np.poly(np.delete(peer.decays, i))
    rng, x = np.random.default_rng(1), np.ones(steps)
    return lambda: np.cumsum(x + scipy.signal.lfilter(poles, zeros, rng.normal(0.0, 10.0, steps)))


def _batches() -> list[Row]:
    """One coordinate, the whole stream in one call."""
    plan, x = _counter(_STEPS), np.ones(_STEPS, dtype=np.int64)
    peer, tree = JaxCounter(_STEPS, _BUFFERS), TreeCounter(_STEPS)
    few = min(20_000, _STEPS)
    contestants: dict[str, tuple[Callable[[], object], int]] = {
        "ours": (lambda: plan.open().update(x), _STEPS),
        "scan": (peer.whole(_STEPS), _STEPS),
        "step": (peer.steps(_CALLS), _CALLS),
        "opendp": (tree.steps(_CALLS), _CALLS),
        "python": (_recursion(peer, few), few),
        "lfilter": (_filtered(peer, _STEPS), _STEPS),
    }
    times = race({name: call for name, (call, _) in contestants.items()}, 5)
    per = {name: times[name] / steps for name, (_, steps) in contestants.items()}
    what = f"counter, {_BUFFERS} buffers, {power(_STEPS)} steps in one batch"
    rate = 1e-6 / per["ours"]
    return [
        noted(what, f"{rate:.3g} M steps/s, {amount(per['ours'], '/step')}", per["ours"], 1 / 20e6, "≥ 20 M steps/s"),
        *(
            versus(what, per["ours"], name, per[key], goal=goal, per="/step")
            for key, name, goal in (
                ("scan", "jax-privacy, one fused lax.scan (f64)", 1 / 50),
                ("step", "jax-privacy, compiled, called every step (f64)", 1 / 300),
                ("opendp", "binary tree of OpenDP make_gaussian calls", None),
                ("python", "plain Python: the recursion, random.gauss, unsafe", None),
                ("lfilter", "numpy normals, scipy lfilter, cumsum, unsafe", None),
            )
        ),
    ]


def _single_updates() -> list[Row]:
    """One coordinate, one call of Python a step."""
    plan, peer, tree = _counter(2**30), JaxCounter(_STEPS, _BUFFERS), TreeCounter(_STEPS)
    stream, calls = plan.open(), 20 * _CALLS

    def ours() -> None:
        update = stream.update
        for _ in range(calls):
            update(1)

    times = race({"ours": ours, "step": peer.steps(_CALLS), "opendp": tree.steps(_CALLS)}, 7)
    each, what = times["ours"] / calls, "stream.update(1) from Python"
    return [
        noted(what, amount(each, "/call"), each, 1e-6, "≤ 1 µs a call"),
        versus(what, each, "jax-privacy, compiled, called every step (f64)", times["step"] / _CALLS, per="/call"),
        versus(what, each, "binary tree of OpenDP make_gaussian calls", times["opendp"] / _CALLS, per="/call"),
    ]


def _wide(single: bool) -> list[Row]:
    """A thousand coordinates: the noise is nearly all of the work."""
    plan = _counter(_STEPS, _WIDE)
    x = np.ones((_WIDE_STEPS, _WIDE), dtype=np.int64)
    row, stream = x[0], plan.open()
    peer = JaxCounter(_STEPS, _BUFFERS, _WIDE, single=single)
    calls = min(_CALLS, 500)

    def ours() -> None:
        for _ in range(calls):
            stream.update(row)

    # The stream is long enough for the rounds of a race, and no longer than its horizon.
    times = race(
        {
            "batch": lambda: plan.open().update(x),
            "calls": ours,
            "scan": peer.whole(_WIDE_STEPS),
            "step": peer.steps(calls),
        },
        7,
    )
    batch, each = times["batch"] / _WIDE_STEPS, times["calls"] / calls
    scan, step = times["scan"] / _WIDE_STEPS, times["step"] / calls
    kind = "f32" if single else "f64"
    what = f"live histogram of {_WIDE:,} cells, {_BUFFERS} buffers, 1 thread"
    goal = None if single else 0.2
    every, fused = f"jax-privacy, compiled, called every step ({kind})", f"jax-privacy, one fused lax.scan ({kind})"
    return [
        versus(f"{what}, a batch of {_WIDE_STEPS:,} steps", batch, every, step, goal=goal, per="/step"),
        versus(f"{what}, one call a step", each, every, step, goal=goal, per="/step"),
        versus(f"{what}, a batch of {_WIDE_STEPS:,} steps", batch, fused, scan, per="/step"),
    ]


def _whole_root(setting: str, name: str) -> Callable[[], object]:
    """Return a contestant; the setting is the length."""
    length = int(setting)
    x = np.random.default_rng(1).integers(0, 2, length)
    if name == "plan":
        one_shot = so.plan(so.RunningSum(length), _PRIVACY, mechanism="square-root")
        return lambda: one_shot.release(x)
    if name == "stream":
        plan = so.plan(so.Continual(so.RunningSum(length)), _PRIVACY, mechanism="square-root")
        return lambda: plan.release(x)
    padded, rng = 2 * length, np.random.default_rng(2)
    kernel = np.cumprod(np.concatenate([[1.0], 1.0 - 0.5 / np.arange(1, length)]))
    transfer = 10.0 * scipy.fft.rfft(kernel, padded)

    def unsafe() -> np.ndarray[Any, Any]:
        spectrum = scipy.fft.rfft(rng.normal(size=length), padded, workers=1)
        spectrum *= transfer
        noise: np.ndarray[Any, Any] = scipy.fft.irfft(spectrum, padded, workers=1, overwrite_x=True)[:length]
        return noise + np.cumsum(x)

    return unsafe


def _square_root() -> list[Row]:
    times = race_apart(__file__, "square root", str(_STEPS), ("plan", "stream", "unsafe"), threads=1, full_rounds=7)
    what = f"exact square root, {power(_STEPS)} steps, 1 thread"
    return [
        versus(f"{what}, so.plan(...).release, one shot", times["plan"], _UNSAFE, times["unsafe"], goal=4.0),
        versus(f"{what}, so.plan(so.Continual(...)).release, on line", times["stream"], _UNSAFE, times["unsafe"]),
    ]


def _square_root_growth() -> list[Row]:
    """Amortised time of a step on line against the length."""
    rows = []
    for bits in range(10, 15 if quick() else 21, 2):
        length = 2**bits
        plan = so.plan(so.Continual(so.RunningSum(length)), _PRIVACY, mechanism="square-root")
        x = np.ones(length, dtype=np.int64)
        each = race({"ours": lambda plan=plan, x=x: plan.open().update(x)}, 5)["ours"] / length
        what = f"exact square root on line, {power(length)} steps, amortised"
        rows.append(noted(what, f"{amount(each, '/step')}; {each * 1e9 / bits**2:.3g} ns per log2² n"))
    return rows


def _plan_error(plan: so.StreamPlan, objective: str) -> float:
    """Return the error of a plan over all steps."""
    deviations = plan.fit.std(np.arange(1, plan.fit.steps + 1))
    return float(deviations.max() if objective == "max" else math.sqrt(np.mean(deviations**2)))


def _optimisers() -> list[Row]:
    """Parameters of buffered factors.

    The peer compiles anew on every call, as its users wait for it, and runs once. For the mean error it sums over all
    steps: of long streams only some degrees are tried, and it is stopped after a minute.
    """
    rows = []
    for length in (2**10,) if quick() else (2**10, 2**16, 2**20):
        for objective in ("max", "mean"):
            slow = objective == "mean" and length > 2**10
            for buffers in (1, 2) if quick() else (2, 4, 6) if slow else range(1, 7):
                make = partial(
                    so.plan,
                    so.Continual(so.RunningSum(length)),
                    _UNIT_NOISE,
                    mechanism="blt",
                    degree=buffers,
                    objective=objective,
                )
                ours, error = race({"ours": make}, 7)["ours"], _plan_error(make(), objective)
                theirs, (_, peer_error) = once(partial(jax_buffered, length, buffers, objective, _PATIENCE))
                stopped = " (stopped)" if theirs > _PATIENCE else ""
                ratio = ours / theirs
                rows.append(
                    Row(
                        f"buffered factor, {power(length)} steps, {objective} error, degree {buffers}",
                        f"{amount(ours)}, error {error:.5f}",
                        f"jax-privacy: {amount(theirs)}{stopped}, error {peer_error:.5f}",
                        ratio,
                        "≤ 1/20, error no larger",
                        # Ours includes what the lattice adds: a unit of the fifth digit.
                        ratio <= 1 / 20 and error <= peer_error * (1 + 1e-5),
                    )
                )
    return rows


_DENSE_GOALS = {(256, "mean"): 1.0, (1024, "mean"): 10.0}
_DENSE_WORDS = {(256, "mean"): "about 1 s", (1024, "mean"): "about 10 s"}


def _dense() -> list[Row]:
    """The certified optimum, and the dense optimiser of the peer."""
    rows = []
    for length in (32,) if quick() else (256, 512, 1024):
        for objective in ("mean", "max"):
            make = partial(
                so.plan, so.Continual(so.RunningSum(length)), _UNIT_NOISE, mechanism="optimal", objective=objective
            )
            seconds = race({"ours": make}, 3)["ours"] if length < 1024 else once(make)[0]
            key = (length, objective)
            what = f"certified optimum, {length} steps, {objective} error, gap 1e-5"
            ours = f"{amount(seconds)}, error {_plan_error(make(), objective):.5f}"
            rows.append(noted(what, ours, seconds, _DENSE_GOALS.get(key), _DENSE_WORDS.get(key, "")))
            if length != 256 and not quick():
                continue
            steps = 20 if quick() else 500
            theirs, peer_error = jax_dense(length, objective, steps)
            other = f"jax-privacy dense.optimize, {steps} steps: {amount(theirs)}, error {peer_error:.5f}"
            rows.append(Row(what, ours, other, seconds / theirs))
    return rows


def figures() -> list[Row]:
    """Return all rows."""
    return [row for section in _SECTIONS for row in in_process(__file__, section, threads=1, environment=ENVIRONMENT)]


_SECTIONS = {
    "batches": _batches,
    "single updates": _single_updates,
    "wide": partial(_wide, single=False),
    "wide, single precision": partial(_wide, single=True),
    "square root": _square_root,
    "square root growth": _square_root_growth,
    "optimisers": _optimisers,
    "dense": _dense,
}

if __name__ == "__main__":
    main(_SECTIONS, figures, {"square root": _whole_root})
