"""The chain bound: what no Gaussian mechanism beats for queries along the attributes of many sets."""

import math

import numpy as np

from sordino.accuracy.factorizations import condensed
from sordino.errors import UnsupportedMechanismError
from sordino.workloads import Histogram, MarginalQueries, Workload

__all__ = ["MOST_VALUES", "chain_mean"]

# Values of an attribute up to which its queries are written out, for a decomposition or a strategy.
MOST_VALUES = 1024
# A constant that rounding alone leaves of queries that sum to zero.
_ROUNDING = 1e-24


def chain_mean(workload: MarginalQueries) -> float:
    """Return a lower bound on `‖A‖_*/sqrt(m n)`: that of what the blocks of a chain prove together.

    0 where an attribute has queries of its own on more than 1024 values, or too many of them.

    Blocks are the attribute sets S below those asked for: tables that have mean zero along the attributes of S and are
    constant along the others. The queries of block S, less their projections on those of the blocks below it in the
    same rows, are `(⊗_{i in S} R_i) ⊗ (⊗_{i not in S} u_i)`, `u_i` the queries' answers to a constant and `R_i` what is
    orthogonal to it. Their polar factors have orthogonal ranges, so that all together have norm 1, and the nuclear norm
    is at least the sum of those of the blocks.
    """
    own: dict[Workload, tuple[float, float]] = {}
    for queries in workload.queries:
        if type(queries) is not Histogram and (queries.core.input_len or 0) > MOST_VALUES:
            return 0.0
        if queries in own:
            continue
        try:
            own[queries] = _with_constants(queries)
        except UnsupportedMechanismError:
            return 0.0
    sizes = [float(queries.core.answers_len) for queries in workload.queries]
    rests, constants = zip(*(own[queries] for queries in workload.queries), strict=True)
    squares: dict[tuple[int, ...], float] = {}
    answers = 0.0
    for chosen, weight in zip(workload.sets, workload.weights, strict=True):
        answers += weight * math.prod(sizes[i] for i in chosen)
        for mask in range(1 << len(chosen)):
            part = tuple(a for i, a in enumerate(chosen) if mask >> i & 1)
            outside = math.prod(constants[a] for i, a in enumerate(chosen) if not mask >> i & 1)
            squares[part] = squares.get(part, 0.0) + weight * outside
    total = sum(math.sqrt(square) * math.prod(rests[i] for i in part) for part, square in squares.items())
    return float(total) / math.sqrt(answers)


def _with_constants(queries: Workload) -> tuple[float, float]:
    """Return `‖R‖_*/sqrt(n)`, R the queries less their projection on answers to a constant, and `‖A 1‖²/n²`."""
    n = float(queries.core.input_len or 0)
    if type(queries) is Histogram:
        return (n - 1.0) / math.sqrt(n), 1.0 / n
    rows, _ = condensed(queries)
    constant = rows.sum(axis=1)
    square = float(constant @ constant)
    has_constants = square > _ROUNDING * n * float(np.sum(rows * rows))
    left = rows - np.outer(constant, constant @ rows) / square if has_constants else rows
    return float(np.linalg.norm(left, "nuc")) / math.sqrt(n), square / (n * n)
