"""Half widths of intervals for linear answers."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sordino._support.checks import open_unit
from sordino.accuracy.half_widths import laplace_half_width, laplace_sum_half_width
from sordino.accuracy.lattice_half_widths import (
    discrete_half_width,
    discrete_sum_half_width,
    standard_deviation,
)
from sordino.mechanisms.linear.measurement import LinearMeasurement
from sordino.workloads import Filter, GroupConvolution, Histogram, RunningSum, Workload
from sordino.workloads.base import Array

__all__ = ["answer_half_widths", "largest_half_width"]

# Up to this many answers the exact weights of each are looked at; above, the variance alone.
_EXACT_ANSWERS = 10_000
# Under a searched strategy no two answers have the same weights: two milliseconds each.
_SEARCHED_ANSWERS = 1_000
# Of the answers with an error of at least this share of the largest, so many are looked at for the widest interval.
_NEAR = 0.75
_LOOKED_AT = 8
# Weights below this share of the largest are rounding errors of a decoding.
_LEAST = 1e-12


def answer_half_widths(
    fitted: LinearMeasurement, workload: Workload, stderr: Array, level: float, answers: int
) -> Array:
    """Return the half width of each answer's interval, shape (answers,).

    Args:
        fitted: How it was measured.
        workload: What is answered; by the fit's own decoding if it is what the fit was planned for.
        stderr: Standard deviation of each answer, flat.
        level: Probability of each interval, or of all.
        answers: How many intervals must hold together.

    Raises:
        DataTypeError: The level is no number.
        InvalidParameterError: The level is out of range.
    """
    open_unit("level", level)
    if fitted.one_law:
        return fitted.half_widths(stderr, level, answers)
    if fitted.measures_cells and isinstance(workload, Histogram):
        return np.full(len(stderr), fitted.cell_half_width(level, answers))
    if fitted.mechanism.measures == "identity":
        if isinstance(workload, GroupConvolution | Filter) and _is_ring(workload):
            # Every answer has the same taps in another order.
            taps = np.zeros(fitted.strategy.measured_len)
            taps[: workload.kernel.size] = np.abs(workload.kernel).reshape(-1)
            return np.full(len(stderr), _of_weights(fitted, taps, level, answers))
        if isinstance(workload, RunningSum):
            return _nested(fitted, len(stderr), level, answers)
    if fitted.mechanism.strategy == "output" and _own(fitted, workload):
        return _of_output(fitted, stderr, level, answers)
    if _weighs(fitted, workload, len(stderr)):
        return _by_weights(fitted, workload, np.arange(len(stderr)), stderr, level, answers)
    return fitted.half_widths(stderr, level, answers)


def largest_half_width(fitted: LinearMeasurement, level: float) -> float:
    """Return the half width of the widest interval; of more than 8 answers of those looked at, with large errors.

    Raises:
        UnsupportedMechanismError: There are more than 2**26 answers.
    """
    workload, stderr = fitted.request.workload, fitted.stderr
    if fitted.mechanism.strategy == "output" or not _weighs(fitted, workload, len(stderr)):
        return float(answer_half_widths(fitted, workload, stderr, level, 1).max())
    # Equal errors may be of other laws.
    near = np.flatnonzero(stderr >= _NEAR * stderr.max())
    near = near[np.argsort(stderr[near], kind="stable")]
    near = near[np.unique(np.linspace(0, len(near) - 1, _LOOKED_AT).round().astype(np.int64))]
    return float(_by_weights(fitted, workload, near, stderr[near], level, 1).max())


def _own(fitted: LinearMeasurement, workload: Workload) -> bool:
    return workload == fitted.request.workload


def _weighs(fitted: LinearMeasurement, workload: Workload, answers: int) -> bool:
    """Whether half widths are by the weights of each answer, not by variances alone.

    Of few answers, or few laws, whose weights can be listed: not of queries of a domain beyond all memory.
    """
    if fitted.strategy.geometry not in {"l1", "common"} or workload.core.input_len is None:
        return False
    most = _EXACT_ANSWERS if fitted.factorization is None else _SEARCHED_ANSWERS
    return answers <= most or _few_laws(fitted, workload)


def _of_weights(fitted: LinearMeasurement, weights: Array, level: float, answers: int) -> float:
    """Half width of an answer that weighs the measured numbers by these magnitudes."""
    kept = np.flatnonzero(weights > _LEAST * weights.max(initial=0.0))
    if not len(kept):
        return 0.0
    if fitted.rows is None:
        return laplace_sum_half_width(weights[kept] * fitted.door.noise, level, answers)
    steps, rates = fitted.rows
    return discrete_sum_half_width(weights[kept] * steps[kept], rates[kept], level, answers)


def _of_output(fitted: LinearMeasurement, stderr: Array, level: float, answers: int) -> Array:
    """Half widths for answers that are measured themselves: each has the noise of one number."""
    _, rates, lengths = fitted.door.discrete
    if not len(rates):
        return laplace_half_width(stderr / math.sqrt(2.0), level, answers)
    # In standard deviations of a number.
    widths = [discrete_half_width(rate, level, answers) / standard_deviation(rate) for rate in rates.tolist()]
    return stderr * (widths[0] if (rates == rates[0]).all() else np.repeat(widths, lengths))


def _nested(fitted: LinearMeasurement, steps: int, level: float, answers: int) -> Array:
    """Half widths for sums of 1, 2, ... equal variates: those of the next number on a grid of 1 %."""
    grid = [1]
    while grid[-1] < steps:
        grid.append(min(max(grid[-1] + 1, int(grid[-1] * 1.01)), steps))
    if fitted.rows is None:
        noise = [fitted.door.noise]
        widths = np.array([laplace_sum_half_width(noise, level, answers, [count]) for count in grid])
    else:
        # Every cell is measured alike.
        step, rate = (of_rows[:1] for of_rows in fitted.rows)
        widths = np.array([discrete_sum_half_width(step, rate, level, answers, [count]) for count in grid])
    taken: Array = np.maximum.accumulate(widths)[np.searchsorted(grid, np.arange(1, steps + 1))]
    return taken


def _is_ring(workload: GroupConvolution | Filter) -> bool:
    return isinstance(workload, GroupConvolution) or workload.boundary == "circular"


def _few_laws(fitted: LinearMeasurement, workload: Workload) -> bool:
    """Whether an identity strategy under a filter with ends gives few different sets of weights."""
    return (
        fitted.mechanism.measures == "identity"
        and isinstance(workload, Filter)
        and len(workload.kernel) <= _EXACT_ANSWERS // 2
    )


def _by_weights(  # noqa: PLR0917 - which answers, and for how many intervals
    fitted: LinearMeasurement, workload: Workload, which: NDArray[np.int64], stderr: Array, level: float, answers: int
) -> Array:
    """Exact weights of each answer; equal ones are evaluated once."""
    known: dict[bytes, float] = {}
    out = np.empty_like(stderr)
    cut: dict[tuple[int, int], float] = {}
    identity = fitted.mechanism.measures == "identity"
    kinds = _kinds(fitted)
    own = _own(fitted, workload)
    for place, (t, error) in enumerate(zip(which.tolist(), stderr.tolist(), strict=True)):
        if error == 0.0:
            out[place] = 0.0
            continue
        # Under the identity strategy a filter's row is the taps, cut at the ends: the same cut is the same row.
        ends = _taps_of(workload, t) if identity and isinstance(workload, Filter) else (-1, t)
        if ends in cut:
            out[place] = cut[ends]
            continue
        row = workload.core.row(t)
        weights = fitted.strategy.answer_weights(t, row) if own else fitted.strategy.weights(row)
        if fitted.strategy.geometry == "common":
            weights = np.append(weights, weights.sum())
        weights = np.abs(weights)
        most = float(weights.max(initial=0.0))
        # The same weights of rows with the same noise are the same law, in any order.
        alike = np.round(weights / most, 9) if most > 0.0 else weights
        alike = np.sort(alike) if kinds is None else alike[np.lexsort((alike, kinds))]
        key = alike.tobytes() + most.hex().encode()
        if key not in known:
            known[key] = _of_weights(fitted, weights, level, answers)
        out[place] = cut[ends] = known[key]
    return out


def _kinds(fitted: LinearMeasurement) -> NDArray[np.int64] | None:
    """Return which rows have noise of the same step and rate; None if all have."""
    if fitted.rows is None or len(fitted.door.discrete[1]) <= 1:
        return None
    return np.unique(np.stack(fitted.rows), axis=1, return_inverse=True)[1].reshape(-1)


def _taps_of(workload: Filter, t: int) -> tuple[int, int]:
    """Return the first and the last tap that answer t reads cells with."""
    taps, n = len(workload.kernel), workload.answers_shape[0]
    if _is_ring(workload) or workload.boundary == "valid":
        return 0, taps
    centre = (taps - 1) // 2 if workload.boundary == "same" else 0
    return max(0, centre + t - n + 1), min(taps, centre + t + 1)
