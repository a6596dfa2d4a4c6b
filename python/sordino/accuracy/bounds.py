"""Lower bounds on error: what no mechanism of a class can beat.

`‖A‖_*` is the nuclear norm of the workload, m queries by n cells.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sordino import _core
from sordino.accuracy.chain_bound import chain_mean
from sordino.accuracy.factorizations import Certificate, condensed, few_rows, on_distinct_cells
from sordino.errors import UnsupportedMechanismError
from sordino.privacy.calibration import gaussian_mu
from sordino.privacy.guarantees import Privacy, PureDP, ZeroConcentratedDP
from sordino.privacy.units import AddRemove, Unit
from sordino.workloads import (
    AllRanges,
    ExponentialSmoothing,
    Filter,
    GroupBy,
    GroupConvolution,
    Histogram,
    Intervals,
    Kronecker,
    MarginalQueries,
    Marginals,
    Matrix,
    RunningAverage,
    RunningSum,
    Union,
    Workload,
)
from sordino.workloads.base import Array
from sordino.workloads.recognition import along_attributes

__all__ = [
    "LONGEST_PREFIXES",
    "REFERENCE_STEPS",
    "Bound",
    "Spectrum",
    "gaussian_bound",
    "singular_mean",
    "spectral_bound",
    "spectrum",
    "stream_bound",
    "unbiased_bound",
]

LONGEST_PREFIXES = 2**20
"""Longest running sums and averages whose least error is searched for."""

REFERENCE_STEPS = 2**20
"""Steps over which the error of a stream of unknown length is judged."""

_DENSE = 512
# The same where few rows stand for all queries.
_CONDENSED = 1024
# Answers times squared cells, or cells times squared answers, up to which queries are decomposed; and entries.
_MOST_WORK = 2**33
_MOST_ENTRIES = 2**25
_LONGEST_BOUND = 2**22
# Floating-point error of the bounds, taken off so that they stay below the truth.
_SAFE = 1.0 - 1e-11
_NO_BOUND = (0.0, "no bound")


@dataclass(frozen=True)
class Bound:
    """A proved lower bound on the root mean squared error.

    Attributes:
        name: Which theorem.
        value: The bound, in the unit of the answers.
        mechanisms: The class of mechanisms that it binds.
        up_to_constant: Whether it holds only up to an unnamed constant; then it is never used as a ratio.
        binds_all: Whether it binds mechanisms with any noise, not Gaussian ones alone.
    """

    name: str
    value: float
    mechanisms: str
    up_to_constant: bool = False
    binds_all: bool = False

    def __float__(self) -> float:
        return self.value


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
        case RunningSum():
            n = workload.steps
            k = np.arange(1, n + 1)
            return float(np.mean(0.5 / np.sin((2 * k - 1) * math.pi / (4 * n + 2)))) * _SAFE, "SVD bound"
        case Filter(boundary="circular") | GroupConvolution():
            return float(np.mean(_magnitudes(workload))) * _SAFE, "SVD bound"
        case Filter(boundary="valid"):
            return _valid_mean(workload)
        case Filter():
            return _filter_mean(workload)
        case Marginals():
            return _marginals_mean(workload) * _SAFE, "SVD bound"
        case Matrix(A=np.ndarray() as A, weights=weights):
            roots = np.ones(len(A)) if weights is None else np.sqrt(weights / weights.mean())
            return float(np.linalg.norm(A * roots[:, None], "nuc")) / math.sqrt(A.size) * _SAFE, "SVD bound"
        case Kronecker(factors=factors):
            found = [singular_mean(factor) for factor in factors]
            mean = math.prod(value for value, _ in found)
            dual = any(name.endswith("(dual)") for _, name in found)
            return (mean * _SAFE, "SVD bound (dual)" if dual else "SVD bound") if mean > 0.0 else _NO_BOUND
        case Union(parts=(part,)):
            return singular_mean(part)
        case GroupBy() if (mean := _equal_groups_mean(workload)) > 0.0:
            return mean * _SAFE, "SVD bound"
        case Matrix() | AllRanges() | Intervals() | Union() | GroupBy() | MarginalQueries():
            return _condensed_mean(workload)
        case _:
            return _NO_BOUND


def diagonal_mean(workload: Workload) -> float:
    """Return `sqrt(sum_j s_j²/m)`, s the diagonal of `(AᵀA)^{1/2}`, 0 where it is not computed.

    `max_Z sum_j <z_j, a_j>²` over matrices Z of spectral norm 1 is the least total squared error at noise multiplier 1
    for a change of one cell, and the polar factor of A is such a Z. Never below `singular_mean`, and equal where s is
    constant. Least errors of Kronecker products multiply, and so do these bounds; of parts of unions they add up.
    """
    match workload:
        case RunningAverage():
            return 0.0
        case AllRanges() | RunningSum():
            return _line_diagonal(Union([workload]))
        case Union() if not _is_small(workload):
            lines = max(_line_diagonal(workload), _filters_diagonal(workload))
            return max(lines, _parts_mean(workload), _nested_diagonal(workload))
        case Kronecker(factors=factors):
            return math.prod(max(diagonal_mean(factor), singular_mean(factor)[0]) for factor in factors) * _SAFE
        case Filter(boundary="causal" | "same" | "valid") if workload.steps > _CONDENSED:
            return max(_filters_diagonal(Union([workload])), _condensed_diagonal(workload))
        case Intervals() if not _is_small(workload):
            return max(_nested_diagonal(workload), _condensed_diagonal(workload), _intervals_diagonal(workload))
        case GroupBy() | Matrix() if not _is_small(workload):
            return max(_nested_diagonal(workload), _condensed_diagonal(workload))
        case _:
            return _condensed_diagonal(workload)


def _condensed_diagonal(workload: Workload) -> float:
    """Return the value from few rows that have the singular values of all, 0 where the queries are not written out."""
    if not (_is_small(workload) or _is_short(workload) or few_rows(workload) is not None):
        return 0.0
    R, scale = condensed(workload)
    _, values, rows = np.linalg.svd(R, full_matrices=False)
    return float(np.linalg.norm(values @ rows**2)) * scale * _SAFE


def _is_small(workload: Workload) -> bool:
    """Return whether the queries are written out, and condensed, for a bound."""
    cells = workload.core.input_len
    return (
        isinstance(workload, Matrix | Intervals | Union | GroupBy | MarginalQueries)
        and cells is not None
        and cells <= _CONDENSED
        and workload.core.answers_len * cells**2 <= _MOST_WORK
    )


def _intervals_diagonal(workload: Intervals) -> float:
    """Return the value of some of many cells, evenly chosen: a mechanism that protects all cells protects these.

    `W = AᵀA` counts the intervals that hold two cells: those that begin by the first and end with the second or later.
    """
    cells = np.unique(np.linspace(0, workload.length - 1, _CONDENSED).astype(np.int64))
    count = len(cells)
    first = np.searchsorted(cells, workload.first)
    last = np.searchsorted(cells, workload.last, side="right") - 1
    weights = np.ones(len(first)) if workload.weights is None else workload.weights
    some = first <= last
    ends = np.bincount(first[some] * count + last[some], weights[some], count * count).reshape(count, count)
    upper = np.triu(np.cumsum(np.cumsum(ends, axis=0)[:, ::-1], axis=1)[:, ::-1])
    values, vectors = np.linalg.eigh(upper + np.triu(upper, 1).T)
    # Of eigenvalues as small as rounding nothing is claimed.
    roots = np.sqrt(np.maximum(values - 1e-12 * values[-1], 0.0))
    return float(np.linalg.norm(vectors**2 @ roots)) / math.sqrt(float(weights.sum())) * (1.0 - 1e-9)


def _nested_diagonal(workload: Workload) -> float:
    """Return the value of sums over nested groups, for isometries of nodes in the place of the polar factor; else 0."""
    weights = workload.answer_weights()
    asked = workload.core.answers_len if weights is None else float(weights.sum())
    try:
        return math.sqrt(_core.nested_bound(workload.core, weights) / asked) * _SAFE
    except UnsupportedMechanismError:
        return 0.0


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
    return math.sqrt(squares / asked) * _SAFE


def _is_short(workload: Workload) -> bool:
    """Return whether there are few answers, which are written out whatever the number of cells."""
    if isinstance(workload, Filter):
        # Of few steps the singular values alone are a bound as good.
        long = workload.boundary == "valid" or workload.steps > _DENSE
        if workload.boundary == "circular" or not long:
            return False
    elif not isinstance(workload, Matrix | Intervals | Union | GroupBy | MarginalQueries):
        return False
    answers, cells = workload.core.answers_len, workload.core.input_len or math.inf
    return answers <= _CONDENSED and answers**2 * cells <= _MOST_WORK and answers * cells <= _MOST_ENTRIES


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
    m, n = workload.core.answers_len, math.prod(workload.input_shape)
    large = n > _CONDENSED or (m * n * n > _MOST_WORK and not isinstance(workload, AllRanges))
    if large and not _is_short(workload):
        asked = along_attributes(workload)
        mean = 0.0 if asked is None else chain_mean(asked)
        return (mean * _SAFE, "chain bound") if mean > 0.0 else _NO_BOUND
    R, scale = condensed(workload)
    return float(np.linalg.norm(R, "nuc")) * scale / math.sqrt(n) * _SAFE, "SVD bound"


def _filter_mean(workload: Filter) -> tuple[float, str]:
    n, (taps, lags) = workload.steps, _lags_inside(workload)
    if n <= _DENSE:
        return _nuclear_norm(taps, lags, n) / n * _SAFE, "SVD bound"
    trace = _dual_trace(taps, lags, n)
    # Pinching: diagonal blocks have no larger nuclear norm together than the whole.
    count = -(-n // _DENSE)
    blocks = count * _nuclear_norm(taps, lags, n // count)
    return max(trace, blocks) / n * (1.0 - 1e-9), "SVD bound (dual)"


def _filters_diagonal(union: Union) -> float:
    """Return the value of long filters of one series for parts Z of circulants in the place of the polar factor.

    On a ring of N, of 2N where the filters have ends, those of part p have the spectrum `sqrt(w_p) λ_p/|λ|`, `|λ|²` the
    sum of all `w_p |λ_p|²`: together their norm is 1. `<z_j, a_j>` is a sum over the lags that join cell j to an
    answer: those from `first - j` to `n - 1 - j`, all on a ring. 0 of other unions, and of filters of both kinds.
    """
    if not all(isinstance(part, Filter | Histogram) for part in union.parts):
        return 0.0
    filters = [part for part in union.parts if isinstance(part, Filter)]
    rings = {part.boundary == "circular" for part in filters}
    if len(rings) != 1:
        return 0.0
    (circular,) = rings
    n = filters[0].steps
    length = n if circular else 2 * n
    kernels = np.zeros((len(union.parts), length))
    for kernel, part in zip(kernels, union.parts, strict=True):
        taps, lags = _lags_inside(part) if isinstance(part, Filter) else (np.ones(1), np.zeros(1, dtype=np.int64))
        kernel[lags % length] = taps
    roots = np.sqrt(np.array(union.weights))[:, None]
    products = roots * kernels * _duals(roots * kernels)
    asked = sum(weight * part.core.answers_len for part, weight in zip(union.parts, union.weights, strict=True))
    if circular:
        return math.sqrt(n / asked) * float(np.sum(products)) * (1.0 - 1e-9)
    inside, cells = np.zeros(n), np.arange(n)
    for part, product in zip(union.parts, np.fft.fftshift(products, axes=1), strict=True):
        sums = np.concatenate([[0.0], np.cumsum(product)])
        first = part.first_step if isinstance(part, Filter) else 0
        inside += sums[2 * n - cells] - sums[n + first - cells]
    return math.sqrt(float(np.sum(inside**2)) / asked) * (1.0 - 1e-9)


def _valid_mean(workload: Filter) -> tuple[float, str]:
    """Return the value of a filter without its warm-up.

    A part of a matrix has no larger nuclear norm than the whole. Its last m columns are a causal filter of m steps; and
    it is itself a part of that of n steps, whose other rows have at most the root of their number times their
    Frobenius norm. No nuclear norm is below the Frobenius norm.
    """
    n, taps = workload.steps, workload.kernel
    m, missing = n - len(taps) + 1, len(taps) - 1
    if n <= _DENSE:
        return float(np.linalg.norm(_core.dense(workload.core), "nuc")) / math.sqrt(m * n) * _SAFE, "SVD bound"
    lags = np.arange(len(taps))
    square = _dual_trace(taps, lags, m) if missing < m else 0.0
    left_out = math.sqrt(missing * float(np.sum(taps**2 * (missing - lags))))
    whole = _dual_trace(taps, lags, n) - left_out
    best = max(square, whole, math.sqrt(m * float(np.sum(taps**2))))
    return best / math.sqrt(m * n) * (1.0 - 1e-9), "SVD bound (dual)"


def _lags_inside(workload: Filter) -> tuple[Array, NDArray[np.int64]]:
    """Return the taps that join a cell to an answer, and their lags."""
    lags = np.arange(len(workload.kernel)) - workload.center
    inside = np.abs(lags) < workload.steps
    return workload.kernel[inside], lags[inside]


def _dual_trace(taps: Array, lags: NDArray[np.int64], n: int) -> float:
    """Return `tr(AᵀZ)`, Z the n by n part of the circulant of the filter's phases on a ring of 2n."""
    dual = _dual(taps, lags, n)
    return float(np.sum((n - np.abs(lags)) * taps * dual[lags % (2 * n)]))


def _dual(taps: Array, lags: NDArray[np.int64], n: int) -> Array:
    """Return that circulant by its lags; no part of it has a spectral norm above 1."""
    ring = np.zeros(2 * n)
    ring[lags % (2 * n)] = taps
    dual: Array = _duals(ring[None])[0]
    return dual


def _duals(kernels: Array) -> Array:
    """Return circulants in phase with those of the kernels, one a row, that have a spectral norm of 1 together."""
    values = np.fft.rfft(kernels)
    size = np.hypot.reduce(np.abs(values), axis=0)
    phases = np.divide(values, size, out=np.zeros_like(values), where=size > 1e-12 * size.max())
    duals: Array = np.fft.irfft(phases, kernels.shape[1])
    return duals


def _nuclear_norm(taps: Array, lags: NDArray[np.int64], n: int) -> float:
    """Nuclear norm of the leading n by n block of the filter."""
    A = np.zeros((n, n))
    for tap, lag in zip(taps, lags, strict=True):
        if abs(lag) < n:
            A += np.diagflat(np.full(n - abs(int(lag)), tap), -int(lag))
    return float(np.linalg.norm(A, "nuc"))


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


def gaussian_bound(
    workload: Workload, privacy: Privacy, unit: Unit, certificate: Certificate | None = None
) -> Bound | None:
    """Return the least error of any Gaussian-noise factorization mechanism; None under `PureDP`, or if none is known.

    `rmse >= sigma · ‖A‖_*/sqrt(m n) · r`, sigma the noise multiplier, r the l2 norm of a change that the unit
    allows (one side of a move for `ReplaceOne`, since clamping may leave only that). The maximum over answers is
    at least the mean, so it binds `max_stderr` too. A certificate of the mean or of the worst query bounds better, but
    weighs cells: it holds for changes of one cell, while `‖A‖_*` averages over all and holds for changes of several.
    One that weighs changes of several cells holds for units that allow them.
    """
    if isinstance(privacy, PureDP):
        return None
    workload = on_distinct_cells(workload)
    value, name = singular_mean(workload)
    value *= unit.least_norm(math.prod(workload.input_shape))
    if certificate is None and (diagonal := diagonal_mean(workload) * unit.least_norm(1)) > value:
        value, name = diagonal, "diagonal bound"
    several = None if certificate is None or certificate.changes is None else unit.changes
    size = unit.least_norm(1)
    if several is not None:
        size = min(size, several.size(math.prod(workload.input_shape)))
    if certificate is not None and (certified := certificate.lower * size) > value:
        value = certified
        name = "dual of the mean error" if certificate.objective == "mean" else "dual of the worst query"
        name = name if several is None else "dual over changes of several cells"
    if isinstance(unit, AddRemove) and unit.raises_several and (signed := one_signed_mean(workload, unit)) > value:
        value, name = signed, "dual of one sign"
    if value <= 0.0:
        return None
    return Bound(name, value / gaussian_mu(privacy), "Gaussian noise, any factorization")


def one_signed_mean(workload: Workload, unit: AddRemove) -> float:
    """Return a lower bound on the rmse at noise multiplier 1 for units that raise several cells, 0 if none is known.

    For any law on changes v with `M = E v vᵀ`, Cauchy and Schwarz give a total squared error of at least
    `‖A M^{1/2}‖_*²`. Here v raises a random set of m of the d cells by the cap: M has the eigenvalues `m²/d` on the
    ones and `m (d - m)/(d (d - 1))` elsewhere. For a histogram that is `(m + sqrt(m (d - 1)(d - m)))/d` a cell, and
    with two sizes m at random it is attained by common noise (`sordino.mechanisms.linear.common_noise`).
    """
    d = math.prod(workload.input_shape)
    cap = unit.most_per_cell
    most = min(unit.records // cap, d)
    if type(workload) is Histogram:
        # Rising up to (d + sqrt d)/2, then falling.
        top = min(most, round(0.5 * (d + math.sqrt(d))))
        lower = np.arange(max(1, top - 2), min(most, top + 2) + 1, dtype=np.float64)
        upper, share = np.minimum(lower + 1, most), np.linspace(0.0, 1.0, 65)[:, None]
        of_ones = (1.0 - share) * lower**2 + share * upper**2
        apart = (1.0 - share) * lower * (d - lower) + share * upper * (d - upper)
        return cap * float(((np.sqrt(of_ones) + np.sqrt((d - 1) * apart)) / d).max()) * _SAFE
    if d < 2 or not (_is_small(workload) or (isinstance(workload, Filter | AllRanges) and d <= _DENSE)):
        return 0.0
    R, scale = condensed(workload)
    mean = R.mean(axis=1, keepdims=True)
    best = 0.0
    for m in {most, min(most, round(0.5 * (d + math.sqrt(d)))), max(1, most // 2)}:
        apart = math.sqrt(m * (d - m) / (d * (d - 1)))
        best = max(best, float(np.linalg.norm(apart * (R - mean) + m / math.sqrt(d) * mean, "nuc")))
    return cap * best * scale * _SAFE


def stream_bound(
    workload: Workload, privacy: Privacy, unit: Unit, cells: tuple[int, int], *, one_signed: bool, objective: str
) -> Bound | None:
    """Return the least error of any Gaussian-noise factorization mechanism for a stream, None if none is known.

    The rmse, or for running sums and averages what is minimised.

    `sigma ‖A‖_*/n`; without a length n = 2**20, the steps over which the rmse is taken. There a stable filter comes
    near the limit `sigma (1/2 pi) int |H(e^(i theta))| d theta` (Avram and Parter). `sigma` counts `sqrt(touched)`
    coordinates of one record where their signs are free. Of one sign they cost less than that if the noise of
    coordinates is correlated: the bound is that of `one_signed_mean` for each step, and for one step alone. `cells` are
    the coordinates, and those that one record touches.
    """
    if isinstance(privacy, PureDP):
        return None
    if not isinstance(workload, Filter | RunningAverage) or (workload.length or 0) > _LONGEST_BOUND:
        return None
    length = workload.length
    steps, (mean, name) = length or REFERENCE_STEPS, _NO_BOUND
    if isinstance(workload, Filter):
        mean, name = _endless_mean(workload) if length is None else singular_mean(workload)
        mean *= unit.least_norm(1 if one_signed else steps)
    if isinstance(workload, RunningSum | RunningAverage) and length is not None and length <= LONGEST_PREFIXES:
        one = _prefix_bound(length, isinstance(workload, RunningAverage), objective)
        theorem = "dual of the mean error" if objective == "mean" else "dual of the worst query"
    else:
        one, theorem = 0.0 if length is None else diagonal_mean(workload), "diagonal bound"
    if one * unit.least_norm(1) > mean:
        mean, name = one * unit.least_norm(1), theorem
    if mean == 0.0:
        return None
    dim, touched = cells
    several = AddRemove(touched, per_cell=1, one_signed=True)
    value = mean / gaussian_mu(privacy)
    value *= one_signed_mean(Histogram(dim), several) if one_signed and touched > 1 else math.sqrt(touched)
    return Bound(name, value * _SAFE, "Gaussian noise, any factorization")


@lru_cache(maxsize=64)
def _prefix_bound(steps: int, averages: bool, objective: str) -> float:
    """Return the bound of a search over the weights of the cells.

    The largest error of averages is at least that of the first, which is one item.
    """
    return 1.0 if averages and objective == "max" else _core.prefix_bound(steps, averages, objective)


def _endless_mean(workload: Filter) -> tuple[float, str]:
    """Return a lower bound on `‖A‖_*/n` over the reference steps; 0 for running sums, whose error grows for ever."""
    match workload:
        case RunningSum():
            return 0.0, "no bound"
        case ExponentialSmoothing():
            taps = workload.decay ** np.arange(REFERENCE_STEPS, dtype=np.float64)
            taps *= 1.0 - workload.decay if workload.normalized else 1.0
        case _:
            taps = workload.kernel[:REFERENCE_STEPS]
    trace = _dual_trace(taps, np.arange(len(taps)), REFERENCE_STEPS)
    return trace / REFERENCE_STEPS * (1.0 - 1e-9), "SVD bound (dual)"


def unbiased_bound(workload: Workload, privacy: Privacy, unit: Unit) -> Bound | None:
    """Return the least rmse of any unbiased mechanism, for pure and zero-concentrated privacy, None if none is known.

    zCDP: `mse >= (‖A‖_*/sqrt(m n))²/(e^(2 rho) - 1)`; pure: `.../(4 sinh²(epsilon/2))`. Both from the
    Hammersley-Chapman-Robbins inequality: the chi-square divergence of neighbours is at most
    `e^(2 rho) - 1`, respectively `4 sinh²(epsilon/2)`, whatever the noise.
    """
    mean, _ = singular_mean(workload)
    mean *= unit.least_norm(math.prod(workload.input_shape))
    if mean <= 0.0:
        return None
    match privacy:
        case ZeroConcentratedDP(rho=rho):
            return Bound("unbiased, zCDP", mean / math.sqrt(math.expm1(2.0 * min(rho, 300.0))), "unbiased")
        case PureDP(epsilon=epsilon):
            return Bound("unbiased, pure", mean / (2.0 * math.sinh(min(epsilon, 600.0) / 2.0)), "unbiased")
        case _:
            return None


@dataclass(frozen=True)
class Spectrum:
    """Spectrum of a convolution and what it says about its error.

    Attributes:
        magnitudes: `|lambda_k|`, falling, one per frequency of the ring or character of the group.
        factor: `F = (mean |lambda_k|)²`: least Gaussian mean squared error over the squared noise multiplier.
        exponent: p > 1 with the least compressible bound, None if no p > 1 helps.
        constant: c with `|lambda_k| <= c (k+1)**-p`.
        compressible_bound: `(c zeta(p)/N)²`, at least `factor`; None without an exponent.
    """

    magnitudes: Array
    factor: float
    exponent: float | None
    constant: float | None
    compressible_bound: float | None


def spectrum(workload: Workload) -> Spectrum:
    """Return the spectrum of a filter (on a ring of 2N if it has ends) or group convolution.

    If the sorted `|lambda_k| <= c (k+1)**-p` with p > 1, then `F <= (c zeta(p)/N)²`.

    Raises:
        UnsupportedMechanismError: The workload is no convolution.
    """
    values = _magnitudes(workload)
    count = len(values)
    ranks = np.arange(1, count + 1, dtype=np.float64)
    best: tuple[float, float, float] | None = None
    for p in np.linspace(1.02, 4.0, 150):
        c = float(np.max(values * ranks**p))
        bound = (c * _zeta(float(p)) / count) ** 2
        if best is None or bound < best[2]:
            best = (float(p), c, bound)
    factor = float(np.mean(values)) ** 2
    if best is None or best[2] > 100.0 * factor:
        return Spectrum(values, factor, None, None, None)
    return Spectrum(values, factor, *best)


def _magnitudes(workload: Workload) -> Array:
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


def _zeta(p: float) -> float:
    """Riemann zeta, rounded up: 200 terms and the integral bound of the rest."""
    return math.fsum(math.pow(k, -p) for k in range(1, 200)) + math.pow(199.5, 1.0 - p) / (p - 1.0)


def spectral_bound(workload: Workload) -> Bound | None:
    """Return the square root of the paper's specLB(h), which holds only up to an unnamed constant.

    `specLB = max_K K² |lambda_(K-1)|²/(N² log2² N)` (Fawaz, Muthukrishnan & Nikolov 2013, Theorem 2).
    """
    if not isinstance(workload, Filter | GroupConvolution) or workload.first_step:
        return None
    values = _magnitudes(workload)
    n = len(values)
    if n < 2:
        return None
    ranks = np.arange(1, n + 1, dtype=np.float64)
    value = float(np.max(ranks * values)) / (n * math.log2(n))
    return Bound("specLB", value, "all, for small enough epsilon and delta", up_to_constant=True)
