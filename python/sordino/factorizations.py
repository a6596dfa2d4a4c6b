"""Strategies found by optimisation: what is measured, as matrices, with a certificate of the least error.

`A = L B`: `B` is measured, `L = A B⁺` decodes. At noise multiplier 1 the mean squared error over m answers is
`‖L‖_F² max_j ‖b_j‖²/m` and the largest variance `max_i ‖l_i‖² max_j ‖b_j‖²`.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from sordino import _core
from sordino._checks import integer, positive
from sordino.errors import DataTypeError, InvalidParameterError, PlanFileError, UnsupportedMechanismError
from sordino.workloads import Kronecker, Workload
from sordino.workloads.base import Array

__all__ = ["Certificate", "Factorization", "Progress", "factorize", "optimum"]

Kind = Literal[
    "optimal", "ellipsoid", "dense", "dense-rescaled", "dense-printed", "universal", "p-identity", "k-norm"
]
Law = Literal["gaussian", "laplace"]
Progress = Callable[[int, float], object]
"""Called with the number of the iteration and the certified gap; returning False ends the search."""

GAP = 1e-4
_ITERATIONS = 3000
_MAX_ENTRIES = 2**26
_SAFE = 1.0 - 1e-11
_KEPT = 16


@dataclass(frozen=True, eq=False)
class Certificate:
    """Proof that no strategy with Gaussian noise has less error, as weights that anyone can check.

    Mean: `(1/√Σω) ‖diag(√ω) A diag(√v)‖_*` for weights `v` of the cells, ω the weights of the answers. Worst
    query: `‖diag(√u) A diag(√v)‖_*` with weights `u` of the queries too. Weights sum to 1; any such weights prove
    a bound (weak duality), and those given prove nearly the best. For Kronecker products the bounds multiply.

    Attributes:
        objective: 'mean' or 'max'.
        cell_weights: `v`, one array a factor.
        query_weights: `u`, one array a factor; empty for the mean.
        lower: The bound at noise multiplier 1, rounded down.
    """

    objective: str
    cell_weights: tuple[Array, ...]
    query_weights: tuple[Array, ...]
    lower: float

    def to_json(self) -> dict[str, Any]:
        """Return the weights as a record; the bound follows from them."""
        return {
            "objective": self.objective,
            "cell_weights": list(self.cell_weights),
            "query_weights": list(self.query_weights),
        }


@dataclass(frozen=True, eq=False)
class Factorization:
    """What is measured for a workload, and how good it is.

    Attributes:
        kind: How it was found: the name of the strategy.
        law: 'gaussian', or 'laplace' for noise with a norm.
        objective: What was minimised, 'mean' or 'max'.
        factors: Measured matrices, shape (measured, cells) each: their Kronecker product is measured, mostly one.
        blocks: Lengths of consecutive rows whose noise has density exp(-‖.‖₂); None for independent noise.
        body: Whether the noise has the norm of the symmetric hull of the columns.
        excess: Noise over what the sensitivity needs; 1 unless a mechanism is kept as printed.
        certificate: Proof of a lower bound, None if the search gives none.
        gap: `error/lower - 1` for the error of this strategy, None without a certificate.
        iterations: Evaluations of the program.
    """

    kind: str
    law: str
    objective: str
    factors: tuple[Array, ...] = field(repr=False)
    blocks: tuple[int, ...] | None = None
    body: bool = False
    excess: float = 1.0
    certificate: Certificate | None = field(default=None, repr=False)
    gap: float | None = None
    iterations: int = 0

    @property
    def matrix(self) -> Array:
        """The measured matrix, the Kronecker product of the factors.

        Raises:
            UnsupportedMechanismError: It has more than 2**26 entries.
        """
        if math.prod(factor.size for factor in self.factors) > _MAX_ENTRIES:
            raise UnsupportedMechanismError("the measured matrix is too large to be written out; use its factors")
        product = self.factors[0]
        for factor in self.factors[1:]:
            product = np.kron(product, factor)
        return product

    def build(self, workload: Workload) -> _core.Strategy:
        """Return the strategy in the core.

        Raises:
            InvalidParameterError: The workload is outside the measured row space, or shapes differ.
        """
        blocks = None if self.blocks is None else list(self.blocks)
        return _core.Strategy.factored(workload.core, list(self.factors), self.law, blocks, self.body)

    def to_json(self) -> dict[str, Any]:
        """Return the factorization as a record; arrays stay arrays."""
        return {
            "kind": self.kind,
            "law": self.law,
            "objective": self.objective,
            "factors": list(self.factors),
            "blocks": None if self.blocks is None else list(self.blocks),
            "body": self.body,
            "excess": self.excess,
            "certificate": None if self.certificate is None else self.certificate.to_json(),
            "gap": self.gap,
            "iterations": self.iterations,
        }

    @classmethod
    def from_json(cls, record: dict[str, Any], workload: Workload) -> Factorization:
        """Rebuild from a record that is not trusted: the bound is computed anew from the weights.

        Raises:
            PlanFileError: A field is missing or out of range.
        """
        factors = tuple(np.ascontiguousarray(factor, dtype=np.float64) for factor in record["factors"])
        if not factors or any(factor.ndim != 2 or not np.isfinite(factor).all() for factor in factors):
            raise PlanFileError("the plan's strategy is not a finite matrix")
        stored = record["certificate"]
        certificate = None
        if stored is not None:
            cells, queries = stored["cell_weights"], stored["query_weights"]
            certificate = certify(workload, stored["objective"], tuple(cells), tuple(queries))
        blocks = record["blocks"]
        excess = float(record["excess"])
        if not excess >= 1.0:
            raise PlanFileError("the plan's strategy asks for less noise than its privacy needs")
        return cls(
            kind=str(record["kind"]),
            law=str(record["law"]),
            objective=str(record["objective"]),
            factors=factors,
            blocks=None if blocks is None else tuple(int(length) for length in blocks),
            body=bool(record["body"]),
            excess=excess,
            certificate=certificate,
            gap=None if record["gap"] is None else float(record["gap"]),
            iterations=int(record["iterations"]),
        )


def certify(
    workload: Workload, objective: str, cell_weights: tuple[Array, ...], query_weights: tuple[Array, ...]
) -> Certificate:
    """Evaluate the bound that these weights prove: one singular value decomposition a factor.

    Raises:
        PlanFileError: The weights do not fit the workload.
    """
    factors = _factors(workload) if len(cell_weights) > 1 else (workload,)
    if len(factors) != len(cell_weights) or (objective == "max" and len(factors) != len(query_weights)):
        raise PlanFileError("the certificate has another number of factors than the workload")
    lower = 1.0
    for k, part in enumerate(factors):
        v = _weights(cell_weights[k], part.core.input_len)
        if objective == "max":
            queries, scale = _dense(part), 1.0
            queries = queries * np.sqrt(_weights(query_weights[k], len(queries)))[:, None]
        else:
            queries, scale = _condensed(part)
        lower *= float(np.linalg.norm(queries * np.sqrt(v), "nuc")) * scale * _SAFE
    return Certificate(objective, cell_weights, query_weights, lower)


def _weights(weights: Array, length: int | None) -> Array:
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (length,) or not np.isfinite(weights).all() or (weights < 0.0).any() or weights.sum() <= 0.0:
        raise PlanFileError("the certificate's weights do not fit the workload")
    return weights / (weights.sum() * (1.0 + 1e-12))


def _factors(workload: Workload) -> tuple[Workload, ...]:
    return workload.factors if isinstance(workload, Kronecker) else (workload,)


def _condensed(workload: Workload) -> tuple[Array, float]:
    """Return R with `RᵀR = Aᵀ diag(ω) A`, and the factor `1/√Σω` of its root mean square."""
    weights = workload.answer_weights()
    total = float(workload.core.answers_len) if weights is None else float(weights.sum())
    return _core.condensed(workload.core, weights), 1.0 / math.sqrt(total)


def _dense(workload: Workload) -> Array:
    return _core.dense(workload.core)


def optimum(
    workload: Workload,
    objective: str = "mean",
    *,
    gap: float = GAP,
    iterations: int = _ITERATIONS,
    progress: Progress | None = None,
) -> Factorization:
    """Return the strategy of least mean or worst-query error with Gaussian noise, from the cache if it was asked before."""
    return _cached(workload, "optimal", "gaussian", objective, gap, iterations, progress)


def factorize(
    workload: Workload,
    *,
    kind: str = "optimal",
    law: Law = "gaussian",
    objective: str = "mean",
    gap: float = GAP,
    iterations: int = _ITERATIONS,
    progress: Progress | None = None,
) -> Factorization:
    """Search for what to measure: public, costs no privacy.

    A search that `progress` ends, or that runs out of iterations, returns the best so far with its own certified
    gap: a valid strategy with a little more error. One that Ctrl-C ends raises `KeyboardInterrupt`. Either way the same call
    goes on where it stopped, within one process.

    Args:
        workload: The queries. Kronecker products are solved by factor.
        kind: 'optimal', or another strategy of `sordino.mechanisms` that is found by a search: 'ellipsoid',
            'dense', 'dense-rescaled', 'dense-printed', 'universal', 'p-identity', 'k-norm'.
        law: 'gaussian', or 'laplace' for noise with a norm ('p-identity' and 'k-norm' have no other).
        objective: 'mean' minimises the (weighted) mean squared error, 'max' the largest variance; only 'optimal'
            tells them apart.
        gap: Certified `error/least error - 1` at which the search ends, from 1e-9 to 1.
        iterations: Evaluations after which it ends.
        progress: Called with (iteration, gap) after every evaluation; returning False ends the search.

    Returns:
        The factorization, for `sordino.plan(..., factorization=...)`.

    Raises:
        DataTypeError: An argument is of the wrong type.
        InvalidParameterError: An argument is out of range.
        UnsupportedMechanismError: The workload is too large, or too ill-conditioned for double precision.
    """
    if not isinstance(workload, Workload):
        raise DataTypeError("workload must be a sordino workload, such as sordino.Matrix(A)")
    if kind not in _SEARCHES or law not in ("gaussian", "laplace"):
        raise InvalidParameterError(f"kind must be one of {', '.join(_SEARCHES)}, and law 'gaussian' or 'laplace'")
    if objective not in ("mean", "max"):
        raise InvalidParameterError("objective must be 'mean' or 'max'")
    if progress is not None and not callable(progress):
        raise DataTypeError("progress must be callable")
    gap, iterations = positive("gap", gap), integer("iterations", iterations, least=1)
    return _cached(workload, kind, law, objective, gap, iterations, progress)


_Key = tuple[Workload, str, str, str]
_CACHE: OrderedDict[_Key, tuple[float, int, Factorization]] = OrderedDict()


def _cached(  # noqa: PLR0917 - the arguments of a search, in their order
    workload: Workload,
    kind: str,
    law: str,
    objective: str,
    gap: float,
    iterations: int,
    progress: Progress | None,
) -> Factorization:
    """Search, unless the same was found before; go on from where an earlier search ended."""
    key = (workload, kind, law, objective)
    known = _CACHE.get(key)
    if known is not None:
        _CACHE.move_to_end(key)
        known_gap, known_iterations, found = known
        finished = found.gap is None or found.gap <= gap
        if finished or (known_gap <= gap and known_iterations >= iterations and progress is None):
            return found
    search = _Search(workload, law, objective, gap, iterations, progress, None if known is None else known[2])
    found = _SEARCHES[kind](search)
    ended = search.ended_early
    _CACHE[key] = (math.inf if ended else gap, 0 if ended else iterations, found)
    while len(_CACHE) > _KEPT:
        _CACHE.popitem(last=False)
    if search.interrupted:
        raise KeyboardInterrupt
    return found


@dataclass
class _Search:
    """One search: its settings, and how it ended."""

    workload: Workload
    law: str
    objective: str
    gap: float
    iterations: int
    progress: Progress | None
    before: Factorization | None
    interrupted: bool = False
    ended_early: bool = False

    def report(self, iteration: int, gap: float) -> object:
        answer = None if self.progress is None else self.progress(iteration, gap)
        if answer is not None and not answer:
            self.ended_early = True
        return answer

    @cached_property
    def size(self) -> int:
        cells = self.workload.core.input_len
        if cells is None:
            raise UnsupportedMechanismError("the full domain is too large for a search; use 'fourier'")
        return cells


def _optimal(search: _Search) -> Factorization:
    """Least mean or worst-query error, factor by factor."""
    parts = _factors(search.workload)
    before = None if search.before is None else search.before.certificate
    results = []
    for k, part in enumerate(parts):
        if (part.core.input_len or _MAX_ENTRIES) ** 2 > _MAX_ENTRIES:
            raise UnsupportedMechanismError("more than 8192 cells: too many for the optimal strategy")
        if search.objective == "max":
            queries, scale = _dense(part), 1.0
        else:
            queries, scale = _condensed(part)
            scale *= math.sqrt(len(queries))
        start = None
        if before is not None and len(before.cell_weights) == len(parts):
            rows = before.query_weights[k : k + 1] if search.objective == "max" else ()
            start = np.concatenate([*rows, before.cell_weights[k]])
        result = _core.optimize_strategy(
            queries, search.objective, None, search.gap / len(parts), search.iterations, start, search.report
        )
        search.interrupted |= result.interrupted
        search.ended_early |= result.interrupted
        results.append((result, scale))
    lower = math.prod(result.lower * scale for result, scale in results) * _SAFE
    upper = math.prod(result.upper * scale for result, scale in results)
    certificate = Certificate(
        search.objective,
        tuple(result.cell_weights for result, _ in results),
        tuple(result.query_weights for result, _ in results) if search.objective == "max" else (),
        lower,
    )
    return Factorization(
        "optimal",
        search.law,
        search.objective,
        tuple(result.strategy for result, _ in results),
        certificate=certificate,
        gap=upper / lower - 1.0,
        iterations=sum(result.iterations for result, _ in results),
    )


_SEARCHES: dict[str, Callable[[_Search], Factorization]] = {"optimal": _optimal}
_ = replace
