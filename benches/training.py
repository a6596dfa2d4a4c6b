"""Noise for training: errors of sums of gradients, time of a step, clipping, a whole loop.

Errors are those of sums of gradients over all steps at noise multiplier 1, sensitivity included, computed for all
contestants alike from the numbers of their strategies. Units take part k times, b steps apart at least. Peer:
jax-privacy's buffered linear Toeplitz matrix for such units, searched for as its users do, with up to so many buffers
as ours has; its privatizer, compiled and warm, in float32, called once a step. Baselines, neither exact nor private:
the recursion in numpy with numpy's normals and in plain Python, and clipping in numpy.

Run `python benches/training.py`.
"""

import math
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from harness import Row, amount, in_process, main, once, quick, race, versus
from numpy.typing import NDArray
from peers import ENVIRONMENT, JaxTraining, jax_clipped_sum

import sordino as so

Array = NDArray[np.float64]

_UNITS = ((200, 5, 40),) if quick() else ((1000, 5, 200), (2000, 10, 200), (2052, 6, 342), (1000, 20, 50))
_DIMS = (1000,) if quick() else (10_000, 1_000_000)
_RECORDS = 8 if quick() else 64
_EPOCHS, _BATCHES, _BATCH, _INPUTS = (2, 20, 16, 100) if quick() else (5, 40, 64, 10_000)


def _plan(steps: int, times: int, apart: int, dim: int = 1, objective: Any = "mean") -> so.StreamPlan:
    unit = so.UserLevel(max_participations=times, min_separation=apart)
    workload = so.Continual(so.RunningSum(steps), dim=dim, record_norm=1.0)
    return so.plan(workload, so.GaussianDP(mu=1.0), unit=unit, objective=objective)


def strategy_error(kernel: Array, times: int, apart: int, objective: str) -> float:
    """Return the error of running sums of a Toeplitz strategy at noise multiplier 1, by its definition."""
    steps = len(kernel)
    column = np.zeros(steps)
    for start in range(0, min(times * apart, steps), apart):
        column[start:] += kernel[: steps - start]
    inverse = np.zeros(steps)
    inverse[0] = 1.0 / kernel[0]
    for t in range(1, steps):
        inverse[t] = -kernel[1 : t + 1] @ inverse[t - 1 :: -1][:t] / kernel[0]
    squares = np.cumsum(np.cumsum(inverse) ** 2)
    return float(np.linalg.norm(column) * math.sqrt(squares.mean() if objective == "mean" else squares[-1]))


def _errors() -> list[Row]:
    rows = []
    for steps, times, apart in _UNITS:
        for objective in ("mean", "max"):
            seconds, plan = once(partial(_plan, steps, times, apart, objective=objective))
            ours = plan.fit.rmse if objective == "mean" else plan.fit.max_stderr
            buffers = plan.fit.memory // 16
            theirs, peer = once(partial(JaxTraining, steps, times, apart, objective, buffers))
            error = strategy_error(peer.kernel(steps), times, apart, objective)
            what = f"{steps:,} steps, {times} times, {apart} apart, {objective} error"
            found = f"{ours:.4f}, {buffers} buffers, planned in {amount(seconds)}"
            name = f"jax-privacy: {error:.4f}, {len(peer.decays)} buffers, {amount(theirs)}"
            rows.append(Row(what, found, name, ours / error, "≤ 1.001", ours <= 1.001 * error))
            once_only = so.plan(plan.workload, so.GaussianDP(mu=1.0), objective=objective, mechanism="blt").fit.strategy
            deviations = np.sqrt(once_only.variances(np.arange(1, steps + 1, dtype=np.uint64)))
            single = once_only.sensitivity([(times, 1, apart, 1, 1, 1, None)])
            single *= math.sqrt(np.mean(deviations**2)) if objective == "mean" else deviations.max()
            rows.append(Row(what, f"{ours:.4f}", f"ours, fitted to one participation: {single:.4f}", ours / single))
    return rows


def _in_numpy(peer: JaxTraining, dim: int) -> Callable[[], object]:
    """Return a step of the recursion with numpy's normals; not private."""
    rng, buffers = np.random.default_rng(1), np.zeros((len(peer.decays), dim))
    total = np.ones(dim)

    def step() -> Array:
        noise: Array = rng.normal(0.0, 10.0, dim) - peer.gains @ buffers
        buffers[:] = peer.decays[:, None] * buffers + noise
        return total + noise

    return step


def _in_plain_python(peer: JaxTraining, dim: int, draw: Callable[[], float]) -> Callable[[], list[float]]:
    """Return the same step, parameter by parameter; not private."""
    decays, gains = peer.decays.tolist(), peer.gains.tolist()
    buffers = [[0.0] * len(decays) for _ in range(dim)]

    def step() -> list[float]:
        noisy = []
        for i, own in enumerate(buffers):
            noise = draw() - sum(map(float.__mul__, gains, own))
            buffers[i] = [decay * old + noise for decay, old in zip(decays, own, strict=True)]
            noisy.append(1.0 + noise)
        return noisy

    return step


def _steps() -> list[Row]:
    """The noise of a step, the sum of clipped gradients given."""
    rows = []
    for dim in _DIMS:
        plan = _plan(2000, 10, 200, dim)
        peer = JaxTraining(2000, 10, 200, "mean", plan.fit.memory // 16 // dim, dim)
        stream, total = plan.open(), np.ones(dim)
        contestants = {"ours": lambda s=stream, x=total: s.update(x), "jax": peer.step, "numpy": _in_numpy(peer, dim)}
        if dim == _DIMS[0]:
            # What it makes of a unit impulse is the inverse of the strategy.
            impulse = _in_plain_python(peer, 1, iter([1.0] + [0.0] * 9).__next__)
            response = np.convolve([impulse()[0] - 1.0 for _ in range(10)], peer.kernel(10))[:10]
            np.testing.assert_allclose(response, np.eye(10)[0], atol=1e-9)
            contestants["plain"] = _in_plain_python(peer, dim, partial(random.gauss, 0.0, 10.0))
        times = race(contestants, 15)
        what = f"noise of a step, {dim:,} parameters, 1 thread"
        rows += [
            versus(what, times["ours"], "jax-privacy's privatizer, compiled (f32), unsafe", times["jax"], per="/step"),
            versus(what, times["ours"], "the recursion in numpy (f64), unsafe", times["numpy"], per="/step"),
        ]
        if "plain" in times:
            name = "plain Python: the recursion, random.gauss, unsafe"
            rows.append(versus(what, times["ours"], name, times["plain"], per="/step"))
    return rows


def _clipping(threads: int) -> list[Row]:
    rows = []
    for dim in _DIMS:
        gradients = np.random.default_rng(0).normal(size=(_RECORDS, dim)).astype(np.float32)

        def in_numpy(rows: NDArray[np.float32] = gradients) -> object:
            factor = np.minimum(1.0, 1.0 / np.linalg.norm(rows, axis=1))
            return factor @ rows

        contestants = {
            "ours": lambda rows=gradients: so.training.clipped_sum(rows, 1.0),
            "numpy": in_numpy,
            "jax": jax_clipped_sum(gradients),
        }
        times = race(contestants, 15)
        what = f"clipped sum of {_RECORDS} gradients, {dim:,} parameters, {threads} thread{'s' if threads > 1 else ''}"
        rows += [
            versus(what, times["ours"], "numpy (f32), not exact", times["numpy"]),
            versus(what, times["ours"], "jax (f32), compiled, not exact", times["jax"]),
        ]
    return rows


def _loop() -> list[Row]:
    """Logistic regression from the first step to the last: gradients in numpy, clipped and summed, noise, descent."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=_INPUTS) * 3.0 / math.sqrt(_INPUTS)
    inputs = rng.normal(size=(_BATCHES * _BATCH, _INPUTS)).astype(np.float32)
    labels = rng.random(len(inputs)) < 1.0 / (1.0 + np.exp(-inputs @ truth))
    steps = _EPOCHS * _BATCHES
    plan = _plan(steps, _EPOCHS, _BATCHES, _INPUTS)
    peer = JaxTraining(steps, _EPOCHS, _BATCHES, "mean", 2, _INPUTS)

    def gradients(theta: Array, step: int) -> NDArray[np.float32]:
        rows = slice(step % _BATCHES * _BATCH, (step % _BATCHES + 1) * _BATCH)
        x = inputs[rows]
        wrong = 1.0 / (1.0 + np.exp(-np.clip(x @ theta.astype(np.float32), -50.0, 50.0))) - labels[rows]
        found: NDArray[np.float32] = wrong.astype(np.float32)[:, None] * x
        return found

    def ours() -> Array:
        theta = np.zeros(_INPUTS)
        with plan.open() as stream:
            for step in range(steps):
                theta -= so.training.noisy_sum(stream, gradients(theta, step)) / _BATCH
        return theta

    def theirs() -> Array:
        return peer.train(gradients, steps, _BATCH)

    times = race({"ours": ours, "jax": theirs}, 3)
    what = f"{steps} steps of logistic regression, {_INPUTS:,} parameters, batches of {_BATCH}"
    name = "the same with jax-privacy's privatizer, clipping compiled (f32), unsafe"
    return [versus(what, times["ours"] / steps, name, times["jax"] / steps, per="/step")]


def figures() -> list[Row]:
    """Return all rows."""
    threads = {name: 2 if name.endswith("2 threads") else 1 for name in _SECTIONS}
    return [
        row for name in _SECTIONS for row in in_process(__file__, name, threads=threads[name], environment=ENVIRONMENT)
    ]


_SECTIONS = {
    "errors": _errors,
    "steps": _steps,
    "clipping": partial(_clipping, 1),
    "clipping, 2 threads": partial(_clipping, 2),
    "loop": _loop,
}

if __name__ == "__main__":
    main(_SECTIONS, figures)
