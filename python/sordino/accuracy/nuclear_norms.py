"""Nuclear norms of workloads, `‖A‖_*` for m queries of n cells, from below: no strategy beats them."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sordino import _core
from sordino._support.remembered import remembered
from sordino.accuracy.chain_bound import chain_mean
from sordino.accuracy.factorizations import MOST_ELIMINATED, condensed, eliminated_rows
from sordino.accuracy.products_bound import products_mean
from sordino.errors import UnsupportedMechanismError
from sordino.workloads import (
    AllRanges,
    Filter,
    GroupBy,
    GroupConvolution,
    Histogram,
    Intervals,
    Kronecker,
    MarginalQueries,
    Marginals,
    Matrix,
    RunningSum,
    Union,
    Workload,
)
from sordino.workloads.base import Array
from sordino.workloads.recognition import along_attributes

__all__ = [
    "GRAM_ERROR",
    "MOST_CELLS",
    "MOST_STEPS",
    "SAFE",
    "FilterSums",
    "dual_trace",
    "filter_sums",
    "is_short",
    "is_small",
    "is_wide",
    "lags_inside",
    "magnitudes",
    "singular_mean",
    "spectral_roots",
]

MOST_STEPS = 512
"""Steps of filters up to which singular values are those of the matrix."""

MOST_CELLS = 1024
"""Cells, or answers, up to which few rows that stand for all queries are decomposed."""

SAFE = 1.0 - 1e-11
"""Floating-point error of the bounds, taken off so that they stay below the truth."""

GRAM_ERROR = 1e-12
"""Floating-point error of the eigenvalues of products of at most 1024 rows, of the largest."""

# Cells times squared answers up to which few queries are decomposed; and entries.
_MOST_WORK = 2**33
_MOST_ENTRIES = 2**25
_NO_BOUND = (0.0, "no bound")
# Singular values of running sums that are added up one by one, and the first of them where they are more.
_MOST_LISTED = 2**22
_FIRST = 2**10


@remembered
def singular_mean(workload: Workload) -> tuple[float, str]:
    """Return a lower bound on `‖A‖_*/sqrt(m n)` and its name; exact unless the name says 'dual'.

    For every factorization A = B C, `‖B‖_F ‖C‖_(1→2) >= ‖B‖_F ‖C‖_F/sqrt(n) >= ‖A‖_*/sqrt(n)` (Li & Miklau
    2013). Attained by circulant and group convolutions and by marginals. For long filters with ends the
    nuclear norm is bounded below by its dual: `‖A‖_* >= tr(AᵀZ)` for any Z of spectral norm 1, here the
    Toeplitz matrix cut from the phases of the filter on a ring of 2N. Singular values of a Kronecker product are the
    products of those of its factors, so nuclear norms multiply. With answer weights `w`, A is `diag(sqrt w) A` and m
    the sum of the weights.
    """
    match workload:
        case Histogram():
            return 1.0, "SVD bound"
        case AllRanges() | RunningSum():
            return _line_mean(workload) * SAFE, "SVD bound"
        case Filter(boundary="circular") | GroupConvolution():
            return float(np.mean(magnitudes(workload))) * SAFE, "SVD bound"
        case Filter(boundary="valid"):
            return _valid_mean(workload)
        case Filter():
            return _filter_mean(workload)
        case Marginals():
            return _marginals_mean(workload) * SAFE, "SVD bound"
        case Matrix(A=np.ndarray() as A, weights=weights):
            weighted = A if weights is None else A * np.sqrt(weights / weights.mean())[:, None]
            return _nuclear_norm_of_rows(weighted) / math.sqrt(A.size) * SAFE, "SVD bound"
        case Kronecker(factors=factors):
            found = [singular_mean(factor) for factor in factors]
            mean = math.prod(value for value, _ in found)
            dual = any(name.endswith("(dual)") for _, name in found)
            return (mean * SAFE, "SVD bound (dual)" if dual else "SVD bound") if mean > 0.0 else _NO_BOUND
        case Union(parts=(part,)):
            return singular_mean(part)
        case GroupBy() if (mean := _equal_groups_mean(workload)) > 0.0:
            return mean * SAFE, "SVD bound"
        case Matrix() | Intervals() | Union() | GroupBy() | MarginalQueries():
            return _condensed_mean(workload)
        case _:
            return _NO_BOUND


def _intervals_mean(workload: Intervals) -> tuple[float, str]:
    """Return the value of many intervals, from below by the root of all ranges."""
    asked = len(workload.first) if workload.weights is None else float(workload.weights.sum())
    least = _core.joined_prefixes(workload.core) / math.sqrt(asked * workload.length)
    # Sums of kernels of a million terms, and of their products with weights of both signs.
    return (least * (1.0 - 1e-9), "SVD bound (dual)") if least > 0.0 else _NO_BOUND


def _line_mean(workload: AllRanges | RunningSum) -> float:
    """Return the value of ranges or running sums: their singular values are half cosecants."""
    if isinstance(workload, AllRanges):
        n, factor = workload.length, math.sqrt(2.0)
        angles = np.arange(1, n + 1) * (math.pi / (2 * n + 2))
    else:
        n, factor = workload.length or workload.steps, 1.0
        first = n if n <= _MOST_LISTED else _FIRST
        angles = (2 * np.arange(1, first + 1) - 1) * math.pi / (4 * n + 2)
        if first < n:
            return (float(np.sum(0.5 / np.sin(angles))) + _least_rest(n, first)) / n
    return float(np.mean(0.5 / np.sin(angles))) * factor


def _least_rest(n: int, first: int) -> float:
    """Return at most the sum of the half cosecants of running sums without the first, to parts in 10^13.

    They are taken in the middles of intervals of length h: `∫ f − h²/24 [f']` is what Euler and Maclaurin leave
    of their sum times h, and what comes next is positive, since the fourth derivative of a cosecant is.
    """
    h = math.pi / (2 * n + 1)
    start, end = first * h, n * h
    integral = 0.5 * (math.log(math.tan(end / 2.0)) - math.log(math.tan(start / 2.0)))
    slopes = [-math.cos(x) / (2.0 * math.sin(x) ** 2) for x in (start, end)]
    return (integral - h * h / 24.0 * (slopes[1] - slopes[0])) / h


def _equal_groups_mean(workload: GroupBy) -> float:
    """Return the value of nested levels of equal groups that hold all cells, 0 of others.

    With groups of s_l cells on level l, `AᵀA = sum_l w_l² s_l P_l`, P_l the averages over groups. What is constant on
    the groups of a level and of mean zero on those of the next coarser one has the sum from there to the finest level.
    """
    cells = workload.labels.shape[1]
    if not (workload.equal_levels and workload.nested):
        return 0.0
    levels: dict[int, float] = {}
    for size, weight in zip(workload.level_sizes, workload.weights, strict=True):
        levels[size] = levels.get(size, 0.0) + weight**2 * cells / size
    nuclear, coarser = 0.0, 0
    for size in sorted(levels):
        value = sum(own for other, own in levels.items() if other >= size)
        nuclear += (size - coarser) * math.sqrt(value)
        coarser = size
    return nuclear / math.sqrt(cells * workload.core.answers_len)


def _condensed_mean(workload: Workload) -> tuple[float, str]:
    """Return the value from few rows that have the singular values of all weighted ones; of many, by attributes."""
    m, n = eliminated_rows(workload), math.prod(workload.input_shape)
    large = n > MOST_CELLS or m * n * n > MOST_ELIMINATED
    if large and not is_short(workload):
        if isinstance(workload, Union) and (mean := products_mean(workload)) > 0.0:
            return mean * SAFE, "SVD bound"
        if isinstance(workload, Intervals):
            return _intervals_mean(workload)
        asked = along_attributes(workload)
        mean = 0.0 if asked is None else chain_mean(asked)
        return (mean * SAFE, "chain bound") if mean > 0.0 else _NO_BOUND
    R, scale = condensed(workload)
    return _nuclear_norm_of_rows(R) * scale / math.sqrt(n) * SAFE, "SVD bound"


def _filter_mean(workload: Filter) -> tuple[float, str]:
    n, (taps, lags) = workload.steps, lags_inside(workload)
    if n <= MOST_STEPS:
        return _nuclear_norm(taps, lags, n) / n * SAFE, "SVD bound"
    trace = filter_sums(workload).products
    # Pinching: diagonal blocks have no larger nuclear norm together than the whole.
    count = -(-n // MOST_STEPS)
    blocks = count * _nuclear_norm(taps, lags, n // count)
    return max(trace, blocks) / n * (1.0 - 1e-9), "SVD bound (dual)"


@dataclass(frozen=True)
class FilterSums:
    """Sums over the cells of long filters of one series, and over their frequencies.

    Attributes:
        products: `Σ_j s_j`, `s_j = <z_j, a_j>` the products of the columns of the filters and of their phases.
        squares: `Σ_j s_j²`.
        roots: `(Σ_k |λ_k|^(2/3))^(3/2)/L` over the ring of L, from below: coefficients near rounding are known to a
            thousandth.
    """

    products: float = 0.0
    squares: float = 0.0
    roots: float = 0.0


@remembered
def filter_sums(workload: Workload) -> FilterSums:
    """Return them for circulants in phase with the filters; zeros of what is no filter or union of filters."""
    weights = list(workload.weights) if isinstance(workload, Union) else [1.0]
    try:
        products, squares, roots = _core.in_phase(workload.core, weights)
    except UnsupportedMechanismError:
        return FilterSums()
    return FilterSums(products, squares, 0.999 * roots)


def spectral_roots(workload: Filter) -> float:
    """Return `(Σ_k |λ_k|^(2/3))^(3/2)/L` over the ring of L, or a little less."""
    if not isinstance(workload, RunningSum):
        return filter_sums(workload).roots
    # `1/|sin(πk/2n)|` of odd k, n of 0, else none.
    n = workload.steps
    odd = np.sin(np.arange(1, n, 2) * (math.pi / (2 * n)))
    last = 1.0 if n % 2 else 0.0
    total = math.pow(n, 2.0 / 3.0) + 2.0 * float(np.sum(np.cbrt(odd) ** -2)) + last
    return 0.999 * math.pow(total, 1.5) / (2 * n)


def _valid_mean(workload: Filter) -> tuple[float, str]:
    """Return the value of a filter without its warm-up.

    A part of a matrix has no larger nuclear norm than the whole. Its last m columns are a causal filter of m steps; and
    it is itself a part of that of n steps, whose other rows have at most the root of their number times their
    Frobenius norm. No nuclear norm is below the Frobenius norm.
    """
    n, taps = workload.steps, workload.kernel
    m, missing = n - len(taps) + 1, len(taps) - 1
    if n <= MOST_STEPS:
        return float(np.linalg.norm(_core.dense(workload.core), "nuc")) / math.sqrt(m * n) * SAFE, "SVD bound"
    lags = np.arange(len(taps))
    square = dual_trace(taps, lags, m) if missing < m else 0.0
    left_out = math.sqrt(missing * float(np.sum(taps**2 * (missing - lags))))
    whole = dual_trace(taps, lags, n) - left_out
    best = max(square, whole, math.sqrt(m * float(np.sum(taps**2))))
    return best / math.sqrt(m * n) * (1.0 - 1e-9), "SVD bound (dual)"


def dual_trace(taps: Array, lags: NDArray[np.int64], n: int) -> float:
    """Return `tr(AᵀZ)`, Z the n by n part of the circulant of the filter's phases on a ring of 2n."""
    dual = _dual(taps, lags, n)
    return float(np.sum((n - np.abs(lags)) * taps * dual[lags % (2 * n)]))


def _dual(taps: Array, lags: NDArray[np.int64], n: int) -> Array:
    """Return that circulant by its lags; no part of it has a spectral norm above 1."""
    ring = np.zeros(2 * n)
    ring[lags % (2 * n)] = taps
    values = np.fft.rfft(ring)
    size = np.abs(values)
    dual: Array = np.fft.irfft(
        np.divide(values, size, out=np.zeros_like(values), where=size > 1e-12 * size.max()), 2 * n
    )
    return dual


def lags_inside(workload: Filter) -> tuple[Array, NDArray[np.int64]]:
    """Return the taps that join a cell to an answer, and their lags."""
    lags = np.arange(len(workload.kernel)) - workload.center
    inside = np.abs(lags) < workload.steps
    return workload.kernel[inside], lags[inside]


def _nuclear_norm(taps: Array, lags: NDArray[np.int64], n: int) -> float:
    """Nuclear norm of the leading n by n block of the filter."""
    inside = np.abs(lags) < n
    by_lag = np.zeros(2 * n - 1)
    by_lag[lags[inside] + n - 1] = taps[inside]
    steps = np.arange(n)
    return float(np.linalg.norm(by_lag[np.subtract.outer(steps, steps) + n - 1], "nuc"))


def _marginals_mean(workload: Marginals) -> float:
    levels = np.array(workload.levels, dtype=np.float64)
    squares: dict[tuple[int, ...], float] = {}
    domain = float(np.prod(levels))
    cells = 0.0
    for chosen, weight in zip(workload.sets, workload.weights, strict=True):
        size = float(np.prod(levels[list(chosen)])) if chosen else 1.0
        cells += weight * size
        for mask in range(1 << len(chosen)):
            part = tuple(a for i, a in enumerate(chosen) if mask >> i & 1)
            squares[part] = squares.get(part, 0.0) + weight * domain / size
    total = sum(
        float(np.prod(levels[list(part)] - 1.0)) * math.sqrt(square) if part else math.sqrt(square)
        for part, square in squares.items()
    )
    return total / math.sqrt(domain * cells)


def _nuclear_norm_of_rows(rows: Array) -> float:
    if not is_wide(rows):
        return float(np.linalg.norm(rows, "nuc"))
    values = np.linalg.eigvalsh(rows @ rows.T)
    return float(np.sum(np.sqrt(np.maximum(values - GRAM_ERROR * values[-1], 0.0))))


def is_wide(rows: Array) -> bool:
    """Return whether there are so many more columns that products of the rows are far faster than singular values."""
    count, columns = rows.shape
    return bool(columns > MOST_CELLS and columns >= 2 * count)


def is_short(workload: Workload) -> bool:
    """Return whether there are few answers, which are written out whatever the number of cells."""
    if isinstance(workload, Filter):
        # Of few steps the singular values alone are a bound as good.
        long = workload.boundary == "valid" or workload.steps > MOST_STEPS
        if workload.boundary == "circular" or not long:
            return False
    elif not isinstance(workload, Matrix | Intervals | Union | GroupBy | MarginalQueries):
        return False
    answers, cells = workload.core.answers_len, workload.core.input_len or math.inf
    return answers <= MOST_CELLS and answers**2 * cells <= _MOST_WORK and answers * cells <= _MOST_ENTRIES


def is_small(workload: Workload) -> bool:
    """Return whether the queries are written out, and condensed, for a bound."""
    cells = workload.core.input_len
    return (
        isinstance(workload, Matrix | Intervals | Union | GroupBy | MarginalQueries)
        and cells is not None
        and cells <= MOST_CELLS
        and eliminated_rows(workload) * cells**2 <= MOST_ELIMINATED
    )


def magnitudes(workload: Workload) -> Array:
    """Return `|lambda_k|`, falling, rounding noise taken for zero."""
    match workload:
        case GroupConvolution():
            values = np.abs(np.fft.fftn(workload.kernel)).reshape(-1)
        case Filter(boundary="circular"):
            values = np.abs(np.fft.fft(workload.kernel, workload.steps))
        case Filter():
            ring = np.zeros(2 * workload.steps)
            lags = np.arange(len(workload.kernel)) - workload.center
            keep = np.abs(lags) < workload.steps
            ring[lags[keep] % len(ring)] = workload.kernel[keep]
            values = np.abs(np.fft.fft(ring))
        case _:
            raise UnsupportedMechanismError("only convolutions have a spectrum")
    values = np.sort(values)[::-1]
    values[values < 1e-13 * values[0]] = 0.0
    return values
