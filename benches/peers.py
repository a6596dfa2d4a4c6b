"""Counters of other libraries, as their users would build them, for the benchmarks of continual release.

And a tree in plain Python.
"""

import math
import random
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import opendp.prelude as dp
from jax_privacy import noise_addition
from jax_privacy.matrix_factorization import buffered_toeplitz, dense, optimization, toeplitz
from numpy.typing import NDArray

__all__ = [
    "ENVIRONMENT",
    "JaxCounter",
    "JaxTraining",
    "PlainTree",
    "TreeCounter",
    "TreeTable",
    "jax_banded",
    "jax_buffered",
    "jax_clipped_sum",
    "jax_dense",
]

ENVIRONMENT = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false", "JAX_PLATFORMS": "cpu"}
"""Variables that keep jax to one thread."""

_STDDEV = 10.0


def jax_buffered(length: int, buffers: int, objective: str, deadline: float = math.inf) -> tuple[Any, float]:
    """Return jax-privacy's buffered factor for one participation, and its error at noise multiplier 1.

    The search is ended by the first step after `deadline` seconds.
    """
    jax.config.update("jax_enable_x64", True)
    losses = buffered_toeplitz.LossFn
    loss = (
        losses.build_closed_form_single_participation(n=length)
        if objective == "max"
        else losses.build_min_sep(n=length, error="mean", min_sep=1, max_participations=1)
    )
    end = time.perf_counter() + deadline
    factor, found = buffered_toeplitz.optimize_loss(
        loss, num_buffers=buffers, callback=lambda _: time.perf_counter() > end
    )
    return factor, float(found) ** 0.5


def jax_banded(taps: NDArray[np.float64], bands: int, steps: int) -> float:
    """Return the mean error at noise multiplier 1 of jax-privacy's banded Toeplitz factor for a causal filter.

    Its own search is for running sums; this is the same search with its own error of any filter.
    """
    jax.config.update("jax_enable_x64", True)
    length, workload = len(taps), jnp.asarray(taps)

    def loss(strategy: jax.Array) -> jax.Array:
        errors = toeplitz.per_query_error(strategy_coef=strategy, n=length, workload_coef=workload, skip_checks=True)
        return jnp.mean(errors) * toeplitz.sensitivity_squared(strategy, length)

    start = toeplitz.optimal_max_error_strategy_coefs(bands)
    return float(loss(optimization.optimize(loss, start, max_optimizer_steps=steps))) ** 0.5


def jax_dense(length: int, objective: str, steps: int) -> tuple[float, float]:
    """Return seconds and error at noise multiplier 1 of jax-privacy's dense optimiser after so many steps."""
    jax.config.update("jax_enable_x64", True)
    start = time.perf_counter()
    reduction = jnp.mean if objective == "mean" else jnp.max
    strategy = dense.optimize(length, reduction_fn=reduction, max_optimizer_steps=steps).block_until_ready()
    seconds = time.perf_counter() - start
    errors = dense.per_query_error(strategy_matrix=strategy)
    sensitivity = float(jnp.max(jnp.linalg.norm(strategy, axis=0)))
    return seconds, sensitivity * float(jnp.sqrt(reduction(errors)))


@cache
def _factor(length: int, buffers: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    found, _ = jax_buffered(length, buffers, "max")
    return np.asarray(found.buf_decay), np.asarray(found.output_scale)


class JaxCounter:
    """A counter by jax-privacy's privatizer: noisy increments, added up.

    Attributes:
        decays: Decays of the buffers of the strategy.
        gains: Their weights.
    """

    def __init__(self, length: int, buffers: int, dim: int = 0, *, single: bool = False) -> None:
        """Take its best buffered factor for the length; `dim = 0` is a scalar, `single` 32-bit floats."""
        self.decays, self.gains = _factor(length, buffers)
        jax.config.update("jax_enable_x64", not single)
        kind = jnp.float32 if single else jnp.float64
        strategy = buffered_toeplitz.BufferedToeplitz.build(buf_decay=self.decays, output_scale=self.gains, dtype=kind)
        privatizer = noise_addition.matrix_factorization_privatizer(
            strategy.inverse_as_streaming_matrix(), stddev=_STDDEV, prng_key=1
        )
        self._zero = jnp.zeros((dim,) if dim else (), kind)
        self._fresh = privatizer.init(self._zero)

        def step(total: Any, state: Any, item: Any) -> tuple[Any, Any]:
            noisy, state = privatizer.update(item, state)
            return total + noisy, state

        def body(carry: Any, item: Any) -> tuple[Any, Any]:
            total, state = step(*carry, item)
            return (total, state), total

        self._step = jax.jit(step)
        self._scan = jax.jit(lambda items, state: jax.lax.scan(body, (self._zero, state), items)[1])

    def whole(self, steps: int) -> Callable[[], object]:
        """Return a call that answers so many steps in one compiled loop."""
        items = jnp.ones((steps, *self._zero.shape), self._zero.dtype)
        return lambda: self._scan(items, self._fresh).block_until_ready()

    def steps(self, calls: int) -> Callable[[], object]:
        """Return a call that answers so many steps one by one, each answer fetched as a server must."""
        items = np.ones((calls, *self._zero.shape), self._zero.dtype)

        def run() -> None:
            total, state = self._zero, self._fresh
            for item in items:
                total, state = self._step(total, state, item)
                np.asarray(total)

        return run


def _clipped(rows: Any) -> Any:
    factor = jnp.minimum(1.0, 1.0 / jnp.linalg.norm(rows, axis=1))
    return factor @ rows


def jax_clipped_sum(gradients: NDArray[np.float32]) -> Callable[[], object]:
    """Return a call that adds up rows clipped to norm 1, compiled, on the host at the end."""
    rows, clipped = jnp.asarray(gradients), jax.jit(_clipped)
    return lambda: np.asarray(clipped(rows))


class JaxTraining:
    """Training with jax-privacy: its buffered factor for units that take part several times, and its privatizer.

    Attributes:
        decays: Decays of the buffers of the strategy.
        gains: Their weights.
    """

    def __init__(  # noqa: PLR0917 - the problem, in its order
        self, steps: int, times: int, apart: int, objective: str, buffers: int, dim: int = 1
    ) -> None:
        """Search for the factor, with so many buffers at most, and compile a step for `dim` numbers in 32 bits."""
        jax.config.update("jax_enable_x64", True)
        found = buffered_toeplitz.optimize(
            n=steps, min_sep=apart, max_participations=times, error=objective, min_buffers=1, max_buffers=buffers
        )
        self.decays, self.gains = np.asarray(found.buf_decay), np.asarray(found.output_scale)
        jax.config.update("jax_enable_x64", False)
        strategy = buffered_toeplitz.BufferedToeplitz.build(
            buf_decay=self.decays, output_scale=self.gains, dtype=jnp.float32
        )
        privatizer = noise_addition.matrix_factorization_privatizer(
            strategy.inverse_as_streaming_matrix(), stddev=_STDDEV, prng_key=1
        )
        self._total = jnp.ones(dim, jnp.float32)
        self._fresh = self._state = privatizer.init(self._total)
        self._update = jax.jit(privatizer.update)

    def kernel(self, steps: int) -> NDArray[np.float64]:
        """Return the first column of the strategy."""
        powers = self.decays[:, None] ** np.arange(steps - 1)
        return np.concatenate([[1.0], self.gains @ powers])

    def step(self) -> object:
        """Add the noise of the next step, and fetch the sum as an optimizer on the host does."""
        noisy, self._state = self._update(self._total, self._state)
        return np.asarray(noisy)

    def train(self, gradients: Callable[[Any, int], Any], steps: int, batch: int) -> NDArray[np.float64]:
        """Return parameters after so many steps of descent, gradients clipped to norm 1."""
        clipped, state, theta = jax.jit(_clipped), self._fresh, np.zeros(len(self._total))
        for step in range(steps):
            noisy, state = self._update(clipped(jnp.asarray(gradients(theta, step))), state)
            theta -= np.asarray(noisy) / batch
        return theta


class TreeCounter:
    """The binary tree, one OpenDP measurement a node; `sqrt(levels)` is the sensitivity of an item."""

    def __init__(self, length: int) -> None:
        """Make it for so many steps."""
        dp.enable_features("contrib")
        self._levels = length.bit_length()
        space = dp.atom_domain(T=int), dp.absolute_distance(T=float)
        self._measure = dp.m.make_gaussian(*space, scale=_STDDEV * self._levels**0.5)

    def steps(self, calls: int) -> Callable[[], float]:
        """Return a call that answers so many steps one by one."""

        def run() -> float:
            sums, noisy, answer = [0] * self._levels, [0] * self._levels, 0
            for t in range(1, calls + 1):
                level = (t & -t).bit_length() - 1
                node = 1 + sum(sums[:level])
                sums[:level] = noisy[:level] = [0] * level
                sums[level], noisy[level] = node, self._measure(node)
                answer = sum(noisy)
            return answer

        return run


class PlainTree(TreeCounter):
    """The same tree in plain Python: the noise is `random.gauss`, not private."""

    def __init__(self, length: int, deviation: float = _STDDEV) -> None:
        """Make it for so many steps."""
        self._levels = length.bit_length()
        scale = deviation * self._levels**0.5
        self._measure = lambda node: node + random.gauss(0.0, scale)


class TreeTable:
    """OpenDP's `make_b_ary_tree` and `make_gaussian` on a whole table: all nodes at once, no stream.

    Attributes:
        layers: By how much the library's map says that an item moves the tree.
    """

    def __init__(self, length: int) -> None:
        """Make it for so many leaves, two branches a node."""
        dp.enable_features("contrib")
        self._items = [1] * length
        space = dp.vector_domain(dp.atom_domain(T=int), size=length), dp.l2_distance(T=int)
        tree = dp.t.make_b_ary_tree(*space, leaf_count=length, branching_factor=2)
        self.layers = float(tree.map(1))
        self._measurement = tree >> dp.m.then_gaussian(scale=_STDDEV * self.layers)

    def release(self) -> object:
        """Measure every node."""
        return self._measurement(self._items)
