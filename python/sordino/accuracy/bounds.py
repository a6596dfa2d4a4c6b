"""Lower bounds on error: what no mechanism of a class can beat."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sordino import _core
from sordino._support.remembered import remembered
from sordino.accuracy.diagonal_bound import diagonal_mean
from sordino.accuracy.factorizations import Certificate, condensed, on_cells_of
from sordino.accuracy.nuclear_norms import MOST_STEPS, SAFE, dual_trace, is_small, magnitudes, singular_mean
from sordino.privacy.calibration import gaussian_mu, pure_epsilon
from sordino.privacy.guarantees import GaussianDP, Privacy, PureDP, ZeroConcentratedDP
from sordino.privacy.units import AddRemove, Unit
from sordino.workloads import (
    AllRanges,
    ExponentialSmoothing,
    Filter,
    GroupConvolution,
    Histogram,
    RunningAverage,
    RunningSum,
    Workload,
)
from sordino.workloads.base import Array

__all__ = [
    "LONGEST_PREFIXES",
    "REFERENCE_STEPS",
    "Bound",
    "Spectrum",
    "gaussian_bound",
    "least_pure_deviation",
    "norm_bound",
    "over_spectral_bound",
    "spectral_bound",
    "spectrum",
    "stream_bound",
    "unbiased_bound",
]

LONGEST_PREFIXES = 2**20
"""Longest running sums and averages whose least error is searched for."""

REFERENCE_STEPS = 2**20
"""Steps over which the error of a stream of unknown length is judged."""

_LONGEST_BOUND = 2**22
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
    own, workload = on_cells_of(workload, unit.changes is not None), workload.merged
    each = [workload] if own is workload else [workload, own]
    value, name = max(_singular_mean(asked, unit) for asked in each)
    if certificate is None and (diagonal := diagonal_mean(workload) * unit.least_norm(1)) > value:
        value, name = diagonal, "diagonal bound"
    moves = None if certificate is None else certificate.changes
    several, size = unit.changes, unit.least_norm(1)
    if moves is not None and several is not None:
        size = min(size, several.size(moves.shape[1]))
    if certificate is not None and (certified := certificate.lower * size) > value:
        value = certified
        name = "dual of the mean error" if certificate.objective == "mean" else "dual of the worst query"
        name = name if moves is None or several is None else "dual over changes of several cells"
    if isinstance(unit, AddRemove) and unit.raises_several:
        value, name = max((value, name), *((one_signed_mean(asked, unit), "dual of one sign") for asked in each))
    if value <= 0.0:
        return None
    return Bound(name, value / gaussian_mu(privacy), "Gaussian noise, any factorization")


def _singular_mean(workload: Workload, unit: Unit) -> tuple[float, str]:
    value, name = singular_mean(workload)
    return value * unit.least_norm(math.prod(workload.input_shape)), name


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
        return cap * float(((np.sqrt(of_ones) + np.sqrt((d - 1) * apart)) / d).max()) * SAFE
    if d < 2 or not (is_small(workload) or (isinstance(workload, Filter | AllRanges) and d <= MOST_STEPS)):
        return 0.0
    R, scale = condensed(workload)
    mean = R.mean(axis=1, keepdims=True)
    best = 0.0
    for m in {most, min(most, round(0.5 * (d + math.sqrt(d)))), max(1, most // 2)}:
        apart = math.sqrt(m * (d - m) / (d * (d - 1)))
        best = max(best, float(np.linalg.norm(apart * (R - mean) + m / math.sqrt(d) * mean, "nuc")))
    return cap * best * scale * SAFE


def stream_bound(
    workload: Workload, privacy: Privacy, unit: Unit, cells: tuple[int, int], *, one_signed: bool, objective: str
) -> Bound | None:
    """Return the least error of any Gaussian-noise factorization mechanism for a stream, None if none is known.

    The rmse, or for running sums and averages what is minimised.

    `sigma ‖A‖_*/n`; without a length n = 2**20, the steps over which the rmse is taken. There a stable filter comes
    near the limit `sigma (1/2 pi) int |H(e^(i theta))| d theta` (Avram and Parter). Of more than 2**22 steps running
    sums have singular values that are known, other filters those of 2**20 steps for each as many, since the blocks on a
    diagonal have no larger nuclear norm than all (pinching), and averages no bound. `sigma` counts `sqrt(touched)`
    coordinates of one record where their signs are free. Of one sign they cost less than that if the noise of
    coordinates is correlated: the bound is that of `one_signed_mean` for each step, and for one step alone. `cells` are
    the coordinates, and those that one record touches.
    """
    if isinstance(privacy, PureDP):
        return None
    if not isinstance(workload, Filter | RunningAverage):
        return None
    length = workload.length
    many = (length or 0) > _LONGEST_BOUND
    if many and isinstance(workload, RunningAverage):
        return None
    steps, (mean, name) = length or REFERENCE_STEPS, _NO_BOUND
    if isinstance(workload, Filter):
        blocks = length is None or (many and not isinstance(workload, RunningSum))
        mean, name = _endless_mean(workload) if blocks else singular_mean(workload)
        mean *= steps // REFERENCE_STEPS * REFERENCE_STEPS / steps if blocks else 1.0
        mean *= unit.least_norm(1 if one_signed else steps)
    if isinstance(workload, RunningSum | RunningAverage) and length is not None and length <= LONGEST_PREFIXES:
        one = _prefix_bound(length, isinstance(workload, RunningAverage), objective)
        theorem = "dual of the mean error" if objective == "mean" else "dual of the worst query"
    else:
        one, theorem = 0.0 if length is None or many else diagonal_mean(workload), "diagonal bound"
    if one * unit.least_norm(1) > mean:
        mean, name = one * unit.least_norm(1), theorem
    if mean == 0.0:
        return None
    dim, touched = cells
    several = AddRemove(touched, per_cell=1, one_signed=True)
    value = mean / gaussian_mu(privacy)
    value *= one_signed_mean(Histogram(dim), several) if one_signed and touched > 1 else math.sqrt(touched)
    return Bound(name, value * SAFE, "Gaussian noise, any factorization")


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
    trace = dual_trace(taps, np.arange(len(taps)), REFERENCE_STEPS)
    return trace / REFERENCE_STEPS * (1.0 - 1e-9), "SVD bound (dual)"


def least_pure_deviation(epsilon: float) -> float:
    """Return the least standard deviation of noise on one number for a sensitivity of 1.

    `1/(sqrt(2) sinh(epsilon/2))`, that of discrete Laplace noise on whole numbers; Laplace noise on reals has
    `sqrt(2)/epsilon`, which is more. A row that moves in steps of s of a sensitivity of 1 has `s/(sqrt(2) sinh(s
    epsilon/2))`, and s is at most 1.
    """
    return 1.0 / (math.sqrt(2.0) * math.sinh(min(epsilon, 1400.0) / 2.0))


def norm_bound(workload: Workload, privacy: Privacy, unit: Unit) -> Bound | None:
    """Return the least rmse of pure noise of a norm, independent Laplace noise among it; None if none is known.

    Noise with density proportional to `exp(-epsilon ‖z‖_K)`, K a symmetric convex body of d dimensions that holds all
    changes, has `(d + 1)(d + 2)/epsilon²` times the covariance of K. If K reaches h in some direction, it has at least
    the variance `2 h²/((d + 1)(d + 2))` there, that of a double cone, since roots of order d - 1 of its sections are
    concave (Brunn and Minkowski). So K lies within the ellipsoid of `(d + 1)(d + 2)/2` times its covariance, by which
    Gaussian noise could be chosen. Hence such noise has at least `sqrt(2)/epsilon` times the least error of Gaussian
    noise at noise multiplier 1 (`least_pure_deviation` with whole numbers), and what bounds that bounds it.
    """
    bound = gaussian_bound(workload, GaussianDP(mu=1.0), unit)
    if bound is None:
        return None
    least = bound.value * least_pure_deviation(pure_epsilon(privacy))
    return Bound(f"{bound.name}, pure noise of a norm", least, "noise of a norm")


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
    values = magnitudes(workload)
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


def _zeta(p: float) -> float:
    """Riemann zeta, rounded up: 200 terms and the integral bound of the rest."""
    return math.fsum(math.pow(k, -p) for k in range(1, 200)) + math.pow(199.5, 1.0 - p) / (p - 1.0)


def spectral_bound(workload: Workload) -> Bound | None:
    """Return the square root of the paper's specLB(h), which holds only up to an unnamed constant.

    `specLB = max_K K² |lambda_(K-1)|²/(N² log2² N)` (Fawaz, Muthukrishnan & Nikolov 2013, Theorem 2).
    """
    if not isinstance(workload, Filter | GroupConvolution) or workload.first_step:
        return None
    value, _ = _of_spectrum(workload)
    return Bound("specLB", value, "all, for small enough epsilon and delta", up_to_constant=True) if value else None


def over_spectral_bound(workload: Filter | GroupConvolution) -> float:
    """Return `F/specLB`, F the factor of its spectrum."""
    value, factor = _of_spectrum(workload)
    return factor / value**2


@remembered
def _of_spectrum(workload: Filter | GroupConvolution) -> tuple[float, float]:
    """Return the root of specLB, 0 of a ring of one, and the factor F."""
    values = magnitudes(workload)
    n = len(values)
    ranks = np.arange(1, n + 1, dtype=np.float64)
    return (0.0 if n < 2 else float(np.max(ranks * values)) / (n * math.log2(n))), float(np.mean(values)) ** 2
