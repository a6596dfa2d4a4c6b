"""How much independent Laplace noise on many coordinates gives (epsilon, delta)-DP, by exact composition.

One record moves coordinate i by a_i, and every coordinate gets Laplace noise with density exp(-|z|/t)/(2t).
With e_i = a_i/t the privacy loss of coordinate i has the moment generating function

    M_i(s) = ((s+1) exp(s e_i) + s exp(-(s+1) e_i)) / (2s+1),

the loss L of the release is the independent sum, and for any c > 0

    delta(epsilon) = E max(0, 1 - exp(epsilon - L)) = (1/2 pi i) integral_(c - i inf)^(c + i inf) F(s) ds,
    F(s) = exp(-s epsilon) prod_i M_i(s) / (s (s+1)).

Three steps turn the integral into a number that is never below delta.

*Smoothing.* F is multiplied by exp(m s (s+1)/2), the moment generating function of the loss of a sqrt(m)-GDP
Gaussian release. Composing with one more release can only raise delta, and now F falls like exp(-m |Im
s|**2/2). With m = 2 eta/(c (c+1)) the rise is about a fraction eta of delta.

*Discretisation.* By Poisson's summation formula the trapezoid rule with step h gives

    (h/2 pi) sum_k F(c + i k h) = sum_j delta(epsilon + 2 pi j/h) exp(2 pi j c/h),

whose term j = 0 is wanted and whose other terms are not negative: the rule never understates.

*Truncation and rounding.* |M_i(c + i u)| <= M_i(c), so the terms beyond u = U sum to at most
F(c) c (c+1) exp(-m U**2/2)/(pi U), which is added, and so is a bound on the rounding errors.

The saddle point c minimises log F over the reals; any other c would be valid, only slower.

Sources: the loss distribution of the Laplace mechanism, Sommer, Meiser and Mohammadi (PoPETs 2019);
composition through characteristic functions, Zhu, Dong and Wang (arXiv:2106.08567); trapezoid rule and
Poisson summation, Abate and Whitt, Queueing Systems 10 (1992).
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sordino._support.checks import positive
from sordino._support.private_numbers import array_of
from sordino.errors import DataTypeError, InvalidParameterError, ShapeError
from sordino.privacy.guarantees import ApproxDP

__all__ = ["laplace_composition_delta", "laplace_composition_ratio"]

_Vector = NDArray[np.float64]

_SMOOTHING = 1e-3
# exp(-_ALIASING) bounds the unwanted Poisson terms relative to delta, exp(-_DECAY) the truncated ones.
_ALIASING = 7.0
_DECAY = 10.0
# The returned ratio has been found to be enough; a ratio smaller by this factor has been found not to be.
_TOLERANCE = 2e-4
_BLOCK = 1 << 16
# Of a sum: seconds. Very large epsilon or very small delta would take more, and gain nothing over adding up epsilons.
_MOST_TERMS = 1 << 16
_UNIT = 2.0**-53
# Covers the rounding of shifts to their unit and back.
_UNIT_SLACK = 1.0 + 2.0**-48


def _shift_matrix(columns: ArrayLike) -> tuple[_Vector, float]:
    """Check `columns` and return its distinct sorted rows, shape (p, d), and the largest shift as unit."""
    raw = array_of("columns", columns)
    if raw.dtype.kind not in "iuf":
        raise DataTypeError(f"columns must hold real numbers, got an array of {raw.dtype}")
    if raw.ndim != 2 or raw.size == 0:
        raise ShapeError(f"columns must have shape (positions, coordinates), got {raw.shape}")
    shifts = raw.astype(np.float64)
    if not np.isfinite(shifts).all() or (shifts < 0.0).any():
        raise InvalidParameterError("columns must hold finite non-negative numbers: absolute shifts")
    unit = float(shifts.max())
    if unit == 0.0:
        raise InvalidParameterError("columns must hold a positive shift: nothing depends on the data")
    shifts = -np.sort(shifts / -unit, axis=1)
    shifts = shifts[:, : int(np.count_nonzero(shifts, axis=1).max())]
    # Rows that agree up to rounding are merged: nine digits are kept, rounded up.
    _, exponents = np.frexp(shifts[:, :1])
    grid = np.ldexp(1.0, np.maximum(exponents, -900) - 31)
    return np.unique(np.ceil(shifts / grid) * grid, axis=0), unit


def _log_integrand(losses: _Vector, c: _Vector, epsilon: float) -> tuple[_Vector, _Vector]:
    """Return log F(c) and its derivative at real c > 0, for every row of `losses`; shapes (p,).

    The exponentials exp(c e_i) are taken out of M_i, so nothing overflows.
    """
    c1 = c[:, None]
    backward = np.exp(-(2.0 * c1 + 1.0) * losses)
    inner = (c1 + 1.0) + c1 * backward
    log_m = np.log(inner / (2.0 * c1 + 1.0))
    slope_m = (1.0 + backward - 2.0 * c1 * losses * backward) / inner - 2.0 / (2.0 * c1 + 1.0)
    excess = losses.sum(axis=1) - epsilon
    value: _Vector = log_m.sum(axis=1) + c * excess - np.log(c) - np.log1p(c)
    slope: _Vector = slope_m.sum(axis=1) + excess - 1.0 / c - 1.0 / (c + 1.0)
    return value, slope


def _saddle_points(losses: _Vector, epsilon: float) -> _Vector:
    """Return for every row a c > 0 near the minimum of F on the positive axis, by bisection on log c."""
    low = np.full(len(losses), -20.0)
    high = np.full(len(losses), 40.0)
    for _ in range(10):
        middle = 0.5 * (low + high)
        falling = _log_integrand(losses, np.exp(middle), epsilon)[1] < 0.0
        low, high = np.where(falling, middle, low), np.where(falling, high, middle)
    saddle: _Vector = np.exp(0.5 * (low + high))
    return saddle


def _line_sum(losses: _Vector, epsilon: float, c: _Vector, h: _Vector, terms: int) -> tuple[_Vector, _Vector]:
    """Return the sums over k = 0, ..., terms of Re G(c + i k h)/G(c) and of its absolute value.

    The term k = 0 counts half; G is F with the smoothing factor; shapes (p,).
    """
    c1 = c[:, None]
    backward = np.exp(-(2.0 * c1 + 1.0) * losses)
    # M_i(c + iu)/M_i(c) = (2c+1)/(2s+1) ((s+1) exp(i u e_i) + s backward exp(-i u e_i)) forward.
    forward = 1.0 / ((c1 + 1.0) + c1 * backward)
    backward *= forward
    turn = np.exp(1j * h[:, None] * losses)
    power = np.ones_like(turn)
    total = np.full(len(c), 0.5)
    magnitude = total.copy()
    smoothing = _smoothing(c)
    for k in range(1, terms + 1):
        u = k * h
        # Fresh phases every 64 steps keep the rounding error of the recurrence small.
        power = power * turn if k % 64 else np.exp(1j * u[:, None] * losses)
        s = c + 1j * u
        share = (2.0 * c + 1.0) / (2.0 * s + 1.0)
        product = (
            ((s + 1.0) * share)[:, None] * (forward * power) + (s * share)[:, None] * (backward * power.conj())
        ).prod(axis=1)
        kernel = c * (c + 1.0) / (s * (s + 1.0))
        smooth = np.exp(0.5 * smoothing * u * (1j * (2.0 * c + 1.0) - u) - 1j * epsilon * u)
        term = product * kernel * smooth
        total += term.real
        magnitude += np.abs(term)
    return total, magnitude


def _smoothing(c: _Vector) -> _Vector:
    """Return m = mu**2 of the Gaussian release that is composed to make the integrand fall; shape (p,)."""
    smoothing: _Vector = 2.0 * _SMOOTHING / (c * (c + 1.0))
    return smoothing


def _block_bounds(losses: _Vector, epsilon: float, log_delta: float) -> _Vector:
    """`_log_delta_bounds` for a block of rows each of whose losses sum to more than epsilon."""
    c = _saddle_points(losses, epsilon)
    smoothing = _smoothing(c)
    log_peak = _log_integrand(losses, c, epsilon)[0]
    log_twice = _log_integrand(losses, 2.0 * c, epsilon)[0]
    # With D = 2 pi/h: the terms j < 0 are below exp(-c D), and those with j > 0 below
    # M(2c) exp(-2c (epsilon + D)) exp(c D), by Markov's inequality at 2c.
    reach = np.maximum(0.0, log_twice + np.log(2.0 * c) + np.log1p(2.0 * c)) - log_delta + _ALIASING
    h = 2.0 * math.pi * c / reach
    decay = np.maximum(log_peak + np.log1p(c) - log_delta, 0.0) + _DECAY
    # With fewer terms than wanted the bound holds as well: the tail covers what is dropped.
    terms = max(1, math.ceil(min(float((np.sqrt(2.0 * decay / smoothing) / h).max()), _MOST_TERMS)))
    total, magnitude = _line_sum(losses, epsilon, c, h, terms)
    last = terms * h
    tail = c * (c + 1.0) * np.exp(-0.5 * smoothing * last * last) / last
    # Per term: some 8 roundings for each coordinate, 64 multiplications of the recurrence, and the phases.
    reached = losses.sum(axis=1) + epsilon
    rounding = _UNIT * (128.0 * losses.shape[1] + 4.0 * reached * last + 64.0) * magnitude * h
    log_error = _UNIT * (16.0 * losses.shape[1] + 64.0) * (1.0 + np.abs(log_peak) + c * reached)
    bounds: _Vector = (
        np.log((total * h + rounding + tail) / math.pi) + log_peak + 0.5 * smoothing * c * (c + 1.0) + log_error
    )
    return bounds


def _log_delta_bounds(losses: _Vector, epsilon: float, log_delta: float) -> _Vector:
    """Return an upper bound on log delta(epsilon) for every row of losses e_i; shape (p,).

    Args:
        losses: Shape (p, d), non-negative.
        epsilon: Positive, in nats.
        log_delta: The magnitude that matters; only the tightness of the bound depends on it.
    """
    bounds = np.full(len(losses), -math.inf)
    # The privacy loss is at most the sum of the e_i; the factor covers the rounding of that sum.
    above = losses.sum(axis=1) * (1.0 + 2.0 * losses.shape[1] * _UNIT) > epsilon
    rows = np.flatnonzero(above)
    step = max(1, _BLOCK // losses.shape[1])
    for start in range(0, len(rows), step):
        block = rows[start : start + step]
        bounds[block] = _block_bounds(losses[block], epsilon, log_delta)
    return bounds


def _row_ratio(shifts: _Vector, privacy: ApproxDP, infeasible: float) -> float:
    """Return a feasible ratio t for one row of shifts, within `_TOLERANCE` of an infeasible one.

    Args:
        shifts: The row, shape (1, d).
        privacy: The target.
        infeasible: A ratio that is known not to be enough, or 0.
    """
    log_delta = math.log(privacy.delta)
    # Enough: the losses sum to epsilon. Not enough: the largest shift alone, delta = 1 - exp((epsilon -
    # e)/2).
    high: float = float(shifts.sum()) / privacy.epsilon * (1.0 + 16.0 * shifts.shape[1] * _UNIT)
    low = max(infeasible, float(shifts.max()) / (privacy.epsilon - 2.0 * math.log1p(-privacy.delta)))

    def gap(ratio: float) -> float:
        return float(_log_delta_bounds(shifts / ratio, privacy.epsilon, log_delta)[0]) - log_delta

    guess = min(max(float(np.linalg.norm(shifts)) / _normal_mu(privacy), 1.01 * low), 0.99 * high)
    gap_low = gap_high = math.nan
    while high > low * (1.0 + _TOLERANCE):
        if not low < guess < high:
            guess = math.sqrt(low * high)
        value = gap(guess)
        if value <= 0.0:
            high, gap_high = guess, value
        else:
            low, gap_low = guess, value
        # The secant through both ends, aimed a little to the far side of the last point so that the bracket
        # closes.
        guess = math.sqrt(low * high)
        if math.isfinite(gap_low) and math.isfinite(gap_high):
            root = low * math.exp(math.log(high / low) * gap_low / (gap_low - gap_high))
            guess = root * (1.0 - 0.4 * _TOLERANCE if value <= 0.0 else 1.0 + 0.4 * _TOLERANCE)
    return high


def _normal_mu(privacy: ApproxDP) -> float:
    """Return mu of a Gaussian release near this privacy, from delta <= exp(-(epsilon/mu - mu/2)**2/2)."""
    root = math.sqrt(-math.log(privacy.delta))
    return math.sqrt(2.0) * privacy.epsilon / (math.sqrt(privacy.epsilon + root * root) + root)


def laplace_composition_delta(columns: ArrayLike, ratio: float, epsilon: float) -> float:
    """Return an upper bound on delta(epsilon) of independent Laplace noise of one size on every coordinate.

    Args:
        columns: As in `laplace_composition_ratio`, shape (positions, coordinates).
        ratio: The parameter t of the noise density exp(-|z|/t)/(2t); positive.
        epsilon: Positive, in nats.

    Returns:
        The largest bound over the rows, in [0, 1].

    Raises:
        ShapeError, DataTypeError, InvalidParameterError: As in `laplace_composition_ratio`, or `ratio` or
            `epsilon` is not positive.
    """
    shifts, unit = _shift_matrix(columns)
    losses = shifts * (unit / positive("ratio", ratio) * _UNIT_SLACK)
    epsilon = positive("epsilon", epsilon)
    first = float(_log_delta_bounds(losses, epsilon, math.log(1e-6)).max())
    if first == -math.inf:
        return 0.0
    # A second pass places the step and the length of the sum for the delta that was found.
    second = float(_log_delta_bounds(losses, epsilon, min(first, 0.0)).max())
    return min(1.0, math.exp(min(first, second)) * (1.0 + 1e-15))


def laplace_composition_ratio(columns: ArrayLike, privacy: ApproxDP) -> float:
    """Return the least Laplace noise, equal on all coordinates, that gives `privacy` by exact composition.

    With ratio t, moving one record at position r gives the composition of Laplace mechanisms with
    epsilon_i = columns[r, i]/t, and delta(epsilon) of that composition is at most delta for every r.

    The Gaussian counterpart adds up squares and nearly always needs less noise; Laplace wins when a record
    moves one or two coordinates only.

    Args:
        columns: Shape (positions, coordinates), absolute shifts: entry (r, i) is how far one record at
            position r moves measured coordinate i. A neighbouring data set must differ by exactly one of
            these rows: for "replace one" give the rows of differences.
        privacy: The target.

    Returns:
        t, the parameter of the density exp(-|z|/t)/(2t) (the standard deviation is sqrt(2) t), in the unit of
        `columns`. Verified for every row, and within 0.1 % of the least possible unless epsilon is very large or delta
        very small: then it may be what adding up the epsilons gives.

    Raises:
        ShapeError: `columns` is not a non-empty matrix.
        DataTypeError: `columns` does not hold real numbers, or `privacy` is not an `ApproxDP`.
        InvalidParameterError: `columns` holds negative or non-finite numbers or only zeros.

    Source: the module docstring; Balle and Wang, Theorem 5 (arXiv:1805.06530v2) for delta as an expectation.
    """
    if not isinstance(privacy, ApproxDP):
        raise DataTypeError(f"privacy must be an ApproxDP, got {type(privacy).__name__}")
    rows, unit = _shift_matrix(columns)
    log_delta = math.log(privacy.delta)
    log_delta -= 2.0**-50 * abs(log_delta)
    ratio = 0.0
    worst = int(np.argmax((rows * rows).sum(axis=1)))
    while len(rows):
        ratio = _row_ratio(rows[worst : worst + 1], privacy, ratio)
        # True delta falls with the ratio, so a row that passes here passes at every later, larger ratio.
        bounds = _log_delta_bounds(rows / ratio, privacy.epsilon, log_delta)
        failing = bounds > log_delta
        rows, bounds = rows[failing], bounds[failing]
        worst = int(np.argmax(bounds)) if len(rows) else 0
    return ratio * unit * _UNIT_SLACK
