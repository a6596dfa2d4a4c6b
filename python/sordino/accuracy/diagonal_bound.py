"""The diagonal bound: what no Gaussian strategy beats for a change of one cell, from any matrix of spectral norm 1."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sordino import _core
from sordino._support.nested_groups import nested_groups
from sordino._support.remembered import remembered
from sordino.accuracy.factorizations import condensed, few_rows
from sordino.accuracy.nuclear_norms import (
    GRAM_ERROR,
    MOST_CELLS,
    SAFE,
    filter_sums,
    is_short,
    is_small,
    is_wide,
    singular_mean,
)
from sordino.errors import UnsupportedMechanismError
from sordino.workloads import (
    AllRanges,
    ExponentialSmoothing,
    Filter,
    GroupBy,
    Intervals,
    Kronecker,
    Matrix,
    RunningAverage,
    RunningSum,
    Union,
    Workload,
)
from sordino.workloads.base import Array

__all__ = ["diagonal_mean"]

# Steps up to which decays are swept, and times that they decay in on which ends count for parts in 10^5 only.
_MOST_STEPS = 1 << 20
_MOST_TIMES = 1000
# Cells times squared cells of a block, whose Gram matrix is decomposed, and cells: of more, blocks are too many.
_MOST_OF_BLOCKS = 2**31
_MOST_IN_BLOCKS = 2**20


@remembered
def diagonal_mean(workload: Workload) -> float:
    """Return `sqrt(sum_j s_j²/m)`, s the diagonal of `(AᵀA)^{1/2}`, 0 where it is not computed.

    `max_Z sum_j <z_j, a_j>²` over matrices Z of spectral norm 1 is the least total squared error at noise multiplier 1
    for a change of one cell, and the polar factor of A is such a Z. Never below `singular_mean`, and equal where s is
    constant. Least errors of Kronecker products multiply, and so do these bounds; of parts of unions they add up.
    """
    match workload:
        case RunningAverage() | GroupBy(equal_levels=True, nested=True):
            return 0.0  # of equal groups s is constant: the nuclear norm has its value
        case AllRanges() | RunningSum():
            return _line_diagonal(Union([workload]))
        case Union() if not is_small(workload):
            lines = max(_line_diagonal(workload), _filters_diagonal(workload))
            return max(lines, _parts_mean(workload), _nested_diagonal(workload))
        case Kronecker(factors=factors):
            return math.prod(max(diagonal_mean(factor), singular_mean(factor)[0]) for factor in factors) * SAFE
        case Filter(boundary="causal" | "same" | "valid") if workload.steps > MOST_CELLS:
            return max(_filters_diagonal(workload), _condensed_diagonal(workload), _decay_value(workload))
        case ExponentialSmoothing():
            return max(_condensed_diagonal(workload), _decay_value(workload))
        case Intervals() if not is_small(workload):
            return max(_nested_diagonal(workload), _condensed_diagonal(workload), _intervals_diagonal(workload))
        case GroupBy(nested=False) if not is_small(workload):
            return max(_parts_mean(Union(workload.nested_runs)), _condensed_diagonal(workload))
        case GroupBy() | Matrix() if not is_small(workload):
            return max(_nested_diagonal(workload), _condensed_diagonal(workload))
        case _:
            return _condensed_diagonal(workload)


def _condensed_diagonal(workload: Workload) -> float:
    """Return the value from few rows that have the singular values of all, 0 where the queries are not written out."""
    if not (is_small(workload) or is_short(workload) or few_rows(workload) is not None):
        return 0.0
    R, scale = condensed(workload)
    if is_wide(R):
        # `RRᵀ` is below what is taken for it, so that `(..)^(-1/2) R` has norm 1 at most.
        squares, turns = np.linalg.eigh(R @ R.T)
        s = (squares + GRAM_ERROR * squares[-1]) ** -0.5 @ (turns.T @ R) ** 2
    else:
        _, values, rows = np.linalg.svd(R, full_matrices=False)
        s = values @ rows**2
    return float(np.linalg.norm(s)) * scale * SAFE


def _intervals_diagonal(workload: Intervals) -> float:
    """Return the value of some of many cells, evenly chosen, or of blocks of cells, each with intervals of its own.

    A mechanism that protects all cells protects some. Polar factors of blocks with neither rows nor cells in common are
    one matrix of spectral norm 1, and their values add up: an interval is in the block of its middle, cut there.
    """
    weights = np.ones(len(workload.first)) if workload.weights is None else workload.weights
    n, first, last = workload.length, workload.first, workload.last
    cells = np.unique(np.linspace(0, n - 1, MOST_CELLS).astype(np.int64))
    squares = _squares_of_intervals(
        np.searchsorted(cells, first), np.searchsorted(cells, last, side="right") - 1, weights, len(cells)
    )
    size = min(math.isqrt(_MOST_OF_BLOCKS // n), MOST_CELLS)
    if n <= _MOST_IN_BLOCKS and float(np.average(last - first, weights=weights)) < size < n:
        block = (first + last) // 2 // size
        order = np.argsort(block, kind="stable")
        blocks = 0.0
        for own in np.split(order, np.flatnonzero(np.diff(block[order])) + 1):
            start = int(block[own[0]]) * size
            count = min(size, n - start)
            ends = np.maximum(first[own] - start, 0), np.minimum(last[own] - start, count - 1)
            blocks += _squares_of_intervals(*ends, weights[own], count)
        squares = max(squares, blocks)
    return math.sqrt(squares / float(weights.sum())) * (1.0 - 1e-9)


def _squares_of_intervals(
    first: NDArray[np.integer[Any]], last: NDArray[np.integer[Any]], weights: Array, count: int
) -> float:
    """Return `sum_j s_j²` of intervals of so many cells, those that end before they begin left out.

    `W = AᵀA` counts the intervals that hold two cells: those that begin by the first and end with the second or later.
    """
    some = first <= last
    ends = np.bincount(first[some] * count + last[some], weights[some], count * count).reshape(count, count)
    upper = np.triu(np.cumsum(np.cumsum(ends, axis=0)[:, ::-1], axis=1)[:, ::-1])
    values, vectors = np.linalg.eigh(upper + np.triu(upper, 1).T)
    # Of eigenvalues as small as rounding nothing is claimed.
    s = vectors**2 @ np.sqrt(np.maximum(values - 1e-12 * values[-1], 0.0))
    return float(s @ s)


def _nested_diagonal(workload: Workload) -> float:
    """Return the value of sums over nested groups, for isometries of nodes in the place of the polar factor; else 0."""
    groups = nested_groups(workload)
    if groups is None:
        return 0.0
    weights = workload.answer_weights()
    squares = groups.bound(weights)
    asked = workload.core.answers_len if weights is None else float(weights.sum())
    return math.sqrt(squares / asked) * SAFE


def _line_diagonal(union: Union) -> float:
    """Return the value of ranges or running sums with others, in closed form; 0 of others."""
    lines = any(isinstance(part, AllRanges | RunningSum) for part in union.parts)
    if not lines or any(part.answer_weights() is not None for part in union.parts):
        return 0.0
    try:
        s = _core.root_diagonal(union.core, list(union.weights))
    except UnsupportedMechanismError:
        return 0.0
    asked = sum(weight * part.core.answers_len for part, weight in zip(union.parts, union.weights, strict=True))
    # The transform is of a million terms at most where it counts; its error is far below this.
    return math.sqrt(float(np.sum(s * s)) / asked) * (1.0 - 1e-9)


def _parts_mean(union: Union) -> float:
    """Return the root of the mean of the parts' squared values.

    One mechanism answers all parts, and its error on each is at least the least of that part: least errors of unions
    are never below the sum of those of their parts.
    """
    squares, asked = 0.0, 0.0
    for part, weight in zip(union.parts, union.weights, strict=True):
        inner = part.answer_weights()
        own = weight * (part.core.answers_len if inner is None else float(inner.sum()))
        squares += own * max(diagonal_mean(part), singular_mean(part)[0]) ** 2
        asked += own
    return math.sqrt(squares / asked) * SAFE if math.isfinite(squares) else 0.0


def _decay_value(workload: Filter) -> float:
    """Return the value of exponential decays, by sweeps; 0 of other filters, and where others are as near."""
    if not isinstance(workload, ExponentialSmoothing) or workload.boundary != "causal":
        return 0.0
    if workload.steps > min(_MOST_STEPS, _MOST_TIMES / (1.0 - workload.decay)):
        return 0.0
    first = 1.0 - workload.decay if workload.normalized else 1.0
    return first * _core.decay_bound(workload.steps, workload.decay) * SAFE  # taps that are left out are below 1e-150


def _filters_diagonal(workload: Workload) -> float:
    """Return the value of long filters of one series, in phase with them; 0 of others."""
    weights = workload.weights if isinstance(workload, Union) else (1.0,)
    parts = workload.parts if isinstance(workload, Union) else (workload,)
    asked = sum(weight * part.core.answers_len for part, weight in zip(parts, weights, strict=True))
    return math.sqrt(filter_sums(workload).squares / asked) * (1.0 - 1e-9)
