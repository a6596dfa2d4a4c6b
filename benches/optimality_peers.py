"""Errors of other libraries' and papers' mechanisms for the workloads of `optimality.py`: computed, never drawn.

Everything is the root mean squared error for noise of one unit: a standard deviation of 1 where a record changes what is
measured by 1 in the l2 norm (Gaussian), a scale of 1 where in the l1 norm (Laplace).

- OpenDP's tree: every node of the b-ary tree of least error has the same noise, answers come from least squares over it.
- HDMM: `p-identity` strategies on one axis (OPT_0), by axis for products and for unions of them (OPT_kron), a product a part
  (OPT_+), weighted marginals (OPT_marg); McKenna, Miklau, Hay & Machanavajjhala, "Optimizing error of high-dimensional
  statistical queries under differential privacy", PVLDB 2018, and JPC 2023 for Gaussian noise.
- ResidualPlanner: residuals of marginals, each with its own noise, in closed form; Xiao, He, Zhang & Kifer, "An optimal and
  scalable matrix mechanism for noisy marginals under convex loss functions", NeurIPS 2023.
- Square roots of causal filters, lower triangular; Fichtenberger, Henzinger & Upadhyay, "Constant matters", ICML 2023.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Literal

import numpy as np
import scipy.fft
import scipy.optimize
from numpy.typing import NDArray

import sordino as so
from sordino import _core
from sordino.workloads import Filter, Union, Workload

__all__ = ["Law", "hdmm", "mean_error", "p_identity", "residual_planner", "root_taps", "square_root", "tree"]

Array = NDArray[np.float64]
Law = Literal["gaussian", "laplace"]

_BRANCHINGS = (2, 4, 8, 16)
_DENSE = 256
_STEPS = 300
_ATTRIBUTES = 10
_LARGEST = 1e3
# Variance of a Laplace variable of scale 1.
_LAPLACE = 2.0


# Trees.


def tree(workload: Workload, law: Law) -> float | None:
    """Return the least error of complete trees with the same noise on every node, of ranges, sums and windows.

    `G` is a sum of block matrices; averages over blocks commute, so its inverse is a sum of them too.
    """
    length = workload.core.input_len or 0
    squares = _squares(workload)
    if squares is None:
        return None
    best = math.inf
    for branching in _BRANCHINGS:
        levels = max(math.ceil(math.log(length, branching) - 1e-9), 0) + 1
        sizes = branching ** np.arange(levels)
        shares = np.diff(np.r_[0.0, 1.0 / np.cumsum(sizes.astype(float))]) / sizes
        total = sum(share * squares(np.arange(0, length, size)) for share, size in zip(shares, sizes, strict=True))
        noise = levels if law == "gaussian" else _LAPLACE * levels**2
        best = min(best, noise * total / _weight(workload))
    return math.sqrt(best)


def _weight(workload: Workload) -> float:
    weights = workload.answer_weights() if workload.is_listed else None
    return float(workload.core.answers_len if weights is None else weights.sum())


def _squares(workload: Workload) -> Callable[[NDArray[np.int64]], float] | None:
    """Return a function from the starts of blocks to the squared overlaps of all queries with all blocks, summed."""
    match workload:
        case so.AllRanges(length=length):
            return lambda starts: _squares_of_ranges(length, starts)
        case Union(parts=parts, weights=weights):
            found = [_squares(part) for part in parts]
            if any(each is None for each in found):
                return None
            return lambda starts: sum(w * each(starts) for w, each in zip(weights, found, strict=True) if each)
        case so.Histogram(shape=(length,)):
            return lambda _: float(length)
        case so.MovingAverage(window=window) if workload.boundary != "circular":
            last = np.arange(workload.first_step, workload.steps) + workload.center
            first = np.maximum(last - window + 1, 0)
            height = float(workload.kernel[0]) ** 2
            ends = np.minimum(last + 1, workload.steps)
            return lambda starts: height * _squares_of_intervals(first, ends, workload.steps, starts)
        case so.workloads.Intervals() if workload.weights is None:
            return lambda starts: _squares_of_intervals(workload.first, workload.last + 1, workload.length, starts)
        case so.RunningSum():
            ends = np.arange(workload.steps) + 1
            return lambda starts: _squares_of_intervals(np.zeros_like(ends), ends, workload.steps, starts)
        case so.Matrix(A=np.ndarray() as A) if set(np.unique(A)) <= {0.0, 1.0} and (np.diff(A) > 0).sum(1).max() <= 1:
            given = workload.answer_weights()
            own = np.ones(len(A)) if given is None else given
            return lambda starts: float(own @ np.square(np.add.reduceat(A, starts, axis=1)).sum(axis=1))
        case _:
            return None


def _squares_of_intervals(
    first: NDArray[np.int64], ends: NDArray[np.int64], length: int, starts: NDArray[np.int64]
) -> float:
    size = int(starts[1]) if len(starts) > 1 else length
    left, right = first // size, (ends - 1) // size
    inside = (np.minimum((left + 1) * size, ends) - first).astype(float)
    rest = np.where(right > left, ends - right * size, 0).astype(float)
    return float(np.sum(np.square(inside) + np.square(rest)) + float(size) ** 2 * np.maximum(right - left - 1, 0).sum())


def _squares_of_ranges(length: int, starts: NDArray[np.int64]) -> float:
    """Return the same for all ranges: the block sums of the Gram matrix."""
    places = np.arange(1, length + 1, dtype=float)
    right = length + 1 - places
    left_sums, right_sums = np.r_[0.0, np.cumsum(places)], np.r_[0.0, np.cumsum(right)]
    cross = np.r_[0.0, np.cumsum(left_sums[:-1] * right)]  # pairs a < b of all cells
    own = np.r_[0.0, np.cumsum(places * right)]
    ends = np.r_[starts[1:], length]
    inside = cross[ends] - cross[starts] - left_sums[starts] * (right_sums[ends] - right_sums[starts])
    return float(np.sum(own[ends] - own[starts] + 2.0 * inside))


# HDMM.


def hdmm(workload: Workload, law: Law) -> float | None:
    """Return the least error of what HDMM searches for this workload; None where an axis is too long for it."""
    terms = _terms(workload)
    if terms is None:
        return None
    sizes = [len(gram) for gram in terms[0][1]]
    if max(sizes) > _DENSE or any([len(gram) for gram in grams] != sizes for _, grams in terms):
        return None
    if len(sizes) == 1:
        terms = [(1.0, [np.sum([weight * grams[0] for weight, grams in terms], axis=0)])]
    total = min(
        _by_axis(terms, sizes, law),
        _by_part(terms, law) if len(terms) > 1 else math.inf,
        _by_marginals(terms, sizes, law) if 1 < len(sizes) <= _ATTRIBUTES else math.inf,
    )
    return math.sqrt(total / _weight(workload))


Terms = list[tuple[float, list[Array]]]


def _terms(workload: Workload) -> Terms | None:
    """Return the Gram matrix as a weighted sum of Kronecker products; None of one that is too large."""
    match workload:
        case Union(parts=parts, weights=weights):
            found = [_terms(part) for part in parts]
            if any(each is None for each in found):
                return None
            return [(w * own, grams) for w, each in zip(weights, found, strict=True) if each for own, grams in each]
        case so.Kronecker(factors=factors):
            found = [_terms(factor) for factor in factors]
            if any(each is None or len(each) > 1 for each in found):
                return None
            ones = [each[0] for each in found if each]
            return [(math.prod(w for w, _ in ones), [gram for _, grams in ones for gram in grams])]
        case so.Marginals(levels=levels, sets=sets, weights=weights):
            if len(sets) > 200 or len(levels) > _ATTRIBUTES:
                return None
            return [(w, [np.eye(n) if i in s else np.ones((n, n)) for i, n in enumerate(levels)])
                    for w, s in zip(weights, sets, strict=True)]  # fmt: skip
        case _:
            return None if (workload.core.input_len or _DENSE + 1) > _DENSE else [(1.0, [_gram(workload)])]


def _gram(workload: Workload) -> Array:
    if isinstance(workload, so.AllRanges):
        places = np.arange(1.0, workload.length + 1.0)
        return np.asarray(np.minimum.outer(places, places) * (workload.length + 1.0 - np.maximum.outer(places, places)))
    A = np.asarray(_core.dense(workload.core))
    weights = workload.answer_weights()
    return np.asarray(A.T @ (A if weights is None else weights[:, None] * A))


def p_identity(W: Array, law: Law) -> tuple[float, Array]:
    """Return the least total squared error of p-identity strategies, and the Gram matrix of what it measures.

    The strategy is `[I; Theta] D`, `D` such that every column has norm 1.
    """
    n, gaussian = len(W), law == "gaussian"
    own = 1.0 if gaussian else _LAPLACE
    if np.ptp(W) <= 1e-12 * W.max():  # totals alone
        return own * float(W[0, 0]), np.ones((n, n))
    rows, diagonal = max(n // 16, 1), np.diag(W).copy()
    unit = float(diagonal.sum())

    def norms(T: Array) -> Array:
        return np.asarray(np.sqrt(1.0 + np.square(T).sum(axis=0)) if gaussian else 1.0 + T.sum(axis=0))

    def value(flat: Array) -> tuple[float, Array]:
        T = flat.reshape(rows, n)
        s = norms(T)
        Z = np.linalg.solve(np.eye(rows) + T @ T.T, T)
        V = (Z * s) @ W * s
        shared = np.einsum("ij,ij->j", T, V)
        rise = 2.0 * (diagonal * s - shared / s)
        slope = rise * (T / s if gaussian else 1.0) - 2.0 * (V - V @ T.T @ Z)
        # Without the unit the first step ends where every sum is zero.
        return float(s**2 @ diagonal - shared.sum()) / unit, slope.ravel() / unit

    rng = np.random.default_rng(1)
    least, T = math.inf, np.zeros((rows, n))
    for scale in (1.0, 1.0 / rows):
        start = scale * rng.random(rows * n)
        found = scipy.optimize.minimize(
            value, start, jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * len(start), options={"maxiter": _STEPS}
        )
        if found.fun < least:
            least, T = float(found.fun), found.x.reshape(rows, n)
    s = norms(T)
    return own * least * unit, np.asarray((np.eye(n) + T.T @ T) / np.outer(s, s))


def _by_axis(terms: Terms, sizes: Sequence[int], law: Law) -> float:
    """Return the total error of one product of strategies (OPT_kron): axis after axis, the others' errors as weights."""
    axes = range(len(sizes))
    unit = 1.0 if law == "gaussian" else _LAPLACE
    if len(terms) == 1:
        return terms[0][0] * math.prod(p_identity(gram, law)[0] / unit for gram in terms[0][1]) * unit
    errors = np.array([[np.trace(gram) for gram in grams] for _, grams in terms])
    own = np.array([weight for weight, _ in terms])
    least = math.inf
    for _ in range(3):
        for i in axes:
            others = own * np.prod(np.delete(errors, i, axis=1), axis=1)
            _, G = p_identity(sum(c * grams[i] for c, (_, grams) in zip(others, terms, strict=True)), law)
            inverse = np.linalg.pinv(G, hermitian=True)
            errors[:, i] = [np.sum(inverse * grams[i]) for _, grams in terms]
        least = min(least, float(own @ np.prod(errors, axis=1)))
    return least * unit


def _by_part(terms: Terms, law: Law) -> float:
    """Return the total error of a product a part, each with the best share of the budget (OPT_+)."""
    each = np.array([_by_axis([term], [len(gram) for gram in term[1]], law) for term in terms])
    return float(np.sqrt(each).sum() ** 2 if law == "gaussian" else np.cbrt(each).sum() ** 3)


def _subsets(sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for k in range(len(sizes) + 1):
        yield from combinations(range(len(sizes)), k)


def _by_marginals(terms: Terms, sizes: Sequence[int], law: Law) -> float:
    """Return the total error of weighted marginals, all sets of attributes (OPT_marg)."""
    d = len(sizes)
    needed = np.zeros((2,) * d)
    for weight, grams in terms:
        means = [float(gram.sum()) / n for gram, n in zip(grams, sizes, strict=True)]
        rests = [float(np.trace(gram)) - mean for gram, mean in zip(grams, means, strict=True)]
        part = np.array(weight)
        for mean, rest in zip(means, rests, strict=True):
            part = np.multiply.outer(part, [mean, rest])
        needed += part
    cells = np.ones(())
    for n in sizes:
        cells = np.multiply.outer(cells, [float(n), 1.0])

    return _weighted(needed, cells, law)


def _summed(values: Array, reverse: bool = False) -> Array:
    """Return sums over all supersets of attributes, or over all subsets."""
    for axis in range(values.ndim):
        low, high = np.moveaxis(values, axis, 0)
        values = np.stack([low, low + high] if reverse else [low + high, high], axis=axis)
    return values


def _weighted(needed: Array, cells: Array, law: Law) -> float:
    """Return the least of `sum_T needed_T/lambda_T`, `lambda_T` the sum of `theta_S^2 cells_S` over supersets S of T.

    The `theta` add up to 1, or their squares do.
    """
    gaussian = law == "gaussian"

    def value(flat: Array) -> tuple[float, Array]:
        flat = np.clip(flat, -60.0, 60.0)
        theta = np.exp(flat - np.logaddexp.reduce(flat)).reshape(needed.shape)
        g = theta if gaussian else np.square(theta)
        spectrum = _summed(g * cells)
        total = float(np.sum(needed / spectrum))
        rise = -cells * _summed(needed / np.square(spectrum), reverse=True)
        slope = rise * theta * (1.0 if gaussian else 2.0 * theta)
        slope = (slope - theta * slope.sum()).ravel() / total
        return math.log(total), slope

    start = np.zeros(needed.size)
    found = scipy.optimize.minimize(value, start, jac=True, method="L-BFGS-B", options={"maxiter": 1000})
    return math.exp(float(found.fun)) * (1.0 if gaussian else _LAPLACE)


# ResidualPlanner.


def residual_planner(workload: Workload) -> float | None:
    """Return the error of ResidualPlanner's optimum for marginals; Gaussian noise.

    The residual of a set `A` with noise `s_A^2` costs `p_A/s_A^2`, `p_A = prod_A (n_i - 1)/n_i`; a table of `S` above it gets the
    variance `p_A s_A^2/prod_(S less A) n_i^2` a cell. So the least sum of variances is the square of a sum of roots.
    """
    parts = workload.parts if isinstance(workload, Union) else (workload,)
    scales = workload.weights if isinstance(workload, Union) else (1.0,)
    weights: dict[tuple[int, ...], float] = {}
    levels: tuple[int, ...] = ()
    for part, scale in zip(parts, scales, strict=True):
        if not isinstance(part, so.Marginals):
            return None
        levels = part.levels
        for chosen, weight in zip(part.sets, part.weights, strict=True):
            cells = math.prod(levels[i] for i in chosen)
            for k in range(len(chosen) + 1):
                for below in combinations(chosen, k):
                    rest = cells / math.prod(levels[i] for i in below)
                    weights[below] = weights.get(below, 0.0) + scale * weight * cells / rest**2
    total = sum(
        math.prod((levels[i] - 1) / levels[i] for i in chosen) * math.sqrt(weight) for chosen, weight in weights.items()
    )
    return float(total / math.sqrt(_weight(workload)))


# Filters.


def mean_error(strategy: Array, answers: Array) -> float:
    """Return the error of a Toeplitz strategy from its taps and those of what multiplies the noise."""
    lags = np.arange(len(answers), 0, -1)
    return math.sqrt(float(np.square(answers) @ lags) / len(answers) * float(np.square(strategy).sum()))


def square_root(workload: Workload) -> float | None:
    """Return the error of the Toeplitz square root of a causal filter; None where it has none that is of use."""
    if not isinstance(workload, Filter) or workload.boundary != "causal":
        return None
    root = root_taps(workload.kernel[: workload.steps], workload.steps)
    return None if root is None else mean_error(root, root)


def root_taps(taps: Array, length: int) -> Array | None:
    """Return the taps of the square root of a filter, by Newton's steps on power series of doubling length.

    None where its inverse grows.
    """
    if taps[0] <= 0.0:
        return None
    taps = np.pad(taps, (0, max(length - len(taps), 0)))
    inverse, known = np.array([1.0 / math.sqrt(taps[0])]), 1
    while known < length:
        known = min(2 * known, length)
        inverse = np.pad(inverse, (0, known - len(inverse)))
        cube = _product(inverse, _product(inverse, inverse, known), known)
        inverse = 1.5 * inverse - 0.5 * _product(taps[:known], cube, known)
        if np.abs(inverse).max() > _LARGEST * abs(inverse[0]):
            return None  # where the filter has zeros inside the circle, taps grow without bound
    return _product(taps[:length], inverse, length)


def _product(one: Array, other: Array, length: int) -> Array:
    size = scipy.fft.next_fast_len(len(one) + len(other), real=True)
    return np.asarray(scipy.fft.irfft(scipy.fft.rfft(one, size) * scipy.fft.rfft(other, size), size)[:length])
