"""What is measured of each attribute of marginal queries."""

from contextlib import suppress

import numpy as np

from sordino import _core
from sordino.accuracy.chain_bound import MOST_VALUES
from sordino.accuracy.factorizations import condensed, dense
from sordino.errors import UnsupportedMechanismError
from sordino.mechanisms.catalogue import Law
from sordino.mechanisms.linear.search import factorize
from sordino.workloads import Histogram, Matrix, Workload
from sordino.workloads.base import Array
from sordino.workloads.recognition import along_attributes

__all__ = ["by_attributes"]

# Values of an attribute up to which the least error is searched for; beyond, a few steps of it.
_SEARCHED = 512
_NOTHING = 1e-12


def by_attributes(workload: Workload, law: Law) -> _core.Strategy:
    """Return the strategy of queries along attributes: Gaussian noise on what sets have in common, Laplace on each.

    Raises:
        UnsupportedMechanismError: These are no such queries, an attribute has too many values for a search, or blocks
            or tables are too large.
    """
    asked = along_attributes(workload)
    if asked is None:
        raise UnsupportedMechanismError("'residual' is for products of queries along the same attributes")
    matrix = _rests if law == "gaussian" else _tree
    known: dict[Workload, Array | None] = {}
    for own in asked.queries:
        if type(own) is not Histogram and (own.core.input_len or 0) > MOST_VALUES:
            raise UnsupportedMechanismError(f"an attribute with queries of its own has at most {MOST_VALUES} values")
        if own not in known:
            known[own] = None if type(own) is Histogram else np.ascontiguousarray(matrix(own))
    return _core.Strategy.marginal_queries(asked.core, [known[own] for own in asked.queries], law)


def _rests(queries: Workload) -> Array:
    """Return the strategy of least error for what no constant has of these queries, shape (measured, values)."""
    values = queries.core.input_len or 0
    rows, _ = condensed(queries)
    rests = rows - rows.mean(axis=1, keepdims=True)
    if np.linalg.norm(rests) <= _NOTHING * np.linalg.norm(rows):
        return np.empty((0, values))
    return factorize(Matrix(rests), kind="optimal" if values <= _SEARCHED else "balanced").factors[0]


def _tree(queries: Workload) -> Array:
    """Return blocks of a few sizes for ranges, else the queries or the values themselves, shape (measured, values)."""
    values = queries.core.input_len or 0
    with suppress(UnsupportedMechanismError):
        blocks, cells = _core.tree_blocks(queries.core), np.arange(values)
        rows = [weight * (cells // size == k) for size, weight in blocks for k in range(-(-values // size))]
        return np.array(rows, dtype=np.float64)
    if queries.core.answers_len <= values:
        own = dense(queries)
        # Noise on the queries, or on the values: by the errors of both, if the queries are independent.
        alone = float(np.abs(own).sum(axis=0).max()) ** 2 * len(own)
        if np.linalg.matrix_rank(own) == len(own) and alone < float(np.sum(own**2)):
            return own
    return np.eye(values)
