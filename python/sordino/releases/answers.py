"""Half widths of intervals for the answers of a release."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sordino._support.checks import flag, open_unit
from sordino.accuracy.half_widths import (
    laplace_half_width,
    laplace_sum_half_width,
)
from sordino.workloads import Filter, GroupConvolution, Histogram, RunningSum, Workload
from sordino.workloads.base import Array

if TYPE_CHECKING:
    from sordino.releases.release import Release

__all__ = ["answer_half_widths"]

# Up to this many answers the exact weights of each are looked at; above, the variance alone.
_EXACT_ANSWERS = 10_000
# Under a searched strategy no two answers have the same weights: two milliseconds each.
_SEARCHED_ANSWERS = 1_000


def answer_half_widths(release: Release, level: float, simultaneous: bool) -> Array:
    """Return the half width of each answer's interval, shape (answers,).

    Args:
        release: What was published.
        level: Strictly between 0 and 1.
        simultaneous: Whether all intervals shall hold together.

    Raises:
        DataTypeError: The level is no number, or `simultaneous` neither True nor False.
        InvalidParameterError: The level is out of range.
    """
    open_unit("level", level)
    stderr = np.ascontiguousarray(release.stderr).reshape(-1)
    answers = len(stderr) if flag("simultaneous", simultaneous) else 1
    fitted = release.fit
    if fitted.mechanism.law == "gaussian" or fitted.strategy.geometry == "body":
        return fitted.half_widths(stderr, level, answers)
    workload = release.workload
    scale = fitted.door.noise
    if fitted.mechanism.measures == "identity":
        if isinstance(workload, Histogram):
            return laplace_half_width(np.full(len(stderr), scale), level, answers)
        if isinstance(workload, GroupConvolution | Filter) and _is_ring(workload):
            # Every answer has the same taps in another order.
            taps = np.abs(workload.kernel).reshape(-1) * scale
            return np.full(len(stderr), laplace_sum_half_width(taps, level, answers))
        if isinstance(workload, RunningSum):
            return _nested(scale, len(stderr), level, answers)
    if fitted.mechanism.strategy == "output" and release.other is None:
        return laplace_half_width(stderr / math.sqrt(2.0), level, answers)
    most = _EXACT_ANSWERS if fitted.factorization is None else _SEARCHED_ANSWERS
    if fitted.strategy.geometry == "l1" and (len(stderr) <= most or _few_laws(release)):
        return _by_weights(release, workload, stderr, level, answers)
    return fitted.half_widths(stderr, level, answers)


def _nested(scale: float, steps: int, level: float, answers: int) -> Array:
    """Half widths for sums of 1, 2, ... equal variates: those of the next number on a grid of 1 %."""
    grid = [1]
    while grid[-1] < steps:
        grid.append(min(max(grid[-1] + 1, int(grid[-1] * 1.01)), steps))
    widths = np.array([laplace_sum_half_width(np.full(count, scale), level, answers) for count in grid])
    taken: Array = np.maximum.accumulate(widths)[np.searchsorted(grid, np.arange(1, steps + 1))]
    return taken


def _is_ring(workload: GroupConvolution | Filter) -> bool:
    return isinstance(workload, GroupConvolution) or workload.boundary == "circular"


def _few_laws(release: Release) -> bool:
    """Whether an identity strategy under a filter with ends gives few different sets of weights."""
    workload = release.workload
    return (
        release.fit.mechanism.measures == "identity"
        and isinstance(workload, Filter)
        and len(workload.kernel) <= _EXACT_ANSWERS // 2
    )


def _by_weights(release: Release, workload: Workload, stderr: Array, level: float, answers: int) -> Array:
    """Exact weights of each answer; equal ones are evaluated once."""
    fitted = release.fit
    known: dict[bytes, float] = {}
    out = np.empty_like(stderr)
    cut: dict[tuple[int, int], float] = {}
    identity = fitted.mechanism.measures == "identity"
    for t, error in enumerate(stderr):
        if error == 0.0:
            out[t] = 0.0
            continue
        # Under the identity strategy a filter's row is the taps, cut at the ends: the same cut is the same row.
        ends = _taps_of(workload, t) if identity and isinstance(workload, Filter) else (-1, t)
        if ends in cut:
            out[t] = cut[ends]
            continue
        row = workload.core.row(t)
        own = release.other is None
        weights = fitted.strategy.answer_weights(t, row) if own else fitted.strategy.weights(row)
        weights = np.sort(np.abs(weights))
        if not len(weights) or weights[-1] == 0.0:
            out[t] = 0.0
            continue
        weights = weights[weights > 1e-12 * weights[-1]]
        key = np.round(weights / weights[-1], 9).tobytes() + float(weights[-1]).hex().encode()
        if key not in known:
            known[key] = laplace_sum_half_width(weights * fitted.door.noise, level, answers)
        out[t] = cut[ends] = known[key]
    return out


def _taps_of(workload: Filter, t: int) -> tuple[int, int]:
    """Return the first and the last tap that answer t reads cells with."""
    taps, n = len(workload.kernel), workload.answers_shape[0]
    if _is_ring(workload):
        return 0, taps
    centre = (taps - 1) // 2 if workload.boundary == "same" else 0
    return max(0, centre + t - n + 1), min(taps, centre + t + 1)
