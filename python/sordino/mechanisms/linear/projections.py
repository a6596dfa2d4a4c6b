"""Projection of what was measured onto what the constraint allows: post-processing, costs no privacy.

With noise of covariance Σ on `y = B x + w` the estimate is `B x̂`, `x̂ = argmin (y - B x)ᵀ Σ⁻¹ (y - B x)` over the
constraint (Nikolov, Talwar & Zhang 2013, Lemma 1, in the norm of the noise in place of that of the answers).

Mechanisms that were made for it write their matrix out, for up to 4096 cells, and go by pairwise Frank-Wolfe steps,
whose cost is that of the cells with weight. All others go by accelerated gradients, at any size: two products with what
is measured a step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sordino import _core
from sordino.accuracy.factorizations import condensed, dense
from sordino.mechanisms.linear.measurement import LinearMeasurement, answers_of_table
from sordino.privacy.calibration import gaussian_mu
from sordino.privacy.guarantees import ApproxDP
from sordino.workloads.base import Array

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sordino.workloads.constraints import Constraint

__all__ = ["Projection", "project", "universal_bound", "zero_is_better"]

# Duality gap over the expected squared norm of the noise: within 1 % of the exact projection.
_TOLERANCE = 1e-3
_ITERATIONS = 20_000
_MOST_ENTRIES = 2**24
# The same of accelerated gradients, for so many cells and for more.
_SMALL = 4096
_TOLERANCES = (1e-3, 1e-2)
_STEPS = 2000
# Doubles tell no smaller gap.
_LEAST = 1e-12


@dataclass(frozen=True, eq=False)
class Projection:
    """How the answers were projected.

    Attributes:
        cells: Cells of the projected input that are not zero: an input that the projected answers belong to.
        weights: Their values, in the unit of the input.
        gap: Duality gap of half the squared distance, over the expected squared norm of the noise; above 1 the
            search did not get near, and the answers are those that were measured.
        iterations: Steps of the search.
    """

    cells: NDArray[np.int64]
    weights: Array
    gap: float
    iterations: int


def project(fitted: LinearMeasurement, constraint: Constraint, measured: Array) -> tuple[Array, Projection]:
    """Return the answers of the projected estimate, shape (answers,), and how it was found."""
    if not fitted.mechanism.projected:
        return _nearest(fitted, constraint, measured)
    assert fitted.factorization is not None
    # What is measured beside cells has units of its own, and is not written out.
    not_written = (fitted.request.workload.core.input_len or 0) > _SMALL or fitted.factorization.beside_cells
    if fitted.mechanism.strategy == "sparse" and not_written:
        return _nearest(fitted, constraint, measured)
    matrix, places = _of_cells(fitted)
    noise = fitted.door.noise * np.sqrt(fitted.strategy.unit_variances())
    kept, metric = _metric(fitted, matrix, noise)
    if not len(kept):
        # As the algorithm says where every block is smaller than epsilon·n.
        return fitted.strategy.decode(measured), Projection(np.empty(0, np.int64), np.empty(0), 0.0, 0)
    expected = float(np.sum((metric * noise[kept]) ** 2))
    found = _core.project(
        np.ascontiguousarray(metric @ matrix[kept]),
        metric @ measured[kept],
        constraint.kind,
        _size(fitted, constraint, fitted.request.workload.core.input_len or matrix.shape[1]),
        _TOLERANCE * expected,
        _ITERATIONS,
    )
    cells, weights, gap, iterations = found
    if gap > expected:
        # Nowhere near the nearest point: what was measured is better.
        return fitted.strategy.decode(measured), Projection(cells[:0], weights[:0], gap / expected, iterations)
    estimate = measured.copy()
    estimate[kept] = matrix[np.ix_(kept, cells)] @ weights
    answers = fitted.strategy.decode(estimate)
    return answers, Projection(places[cells], weights, gap / expected, iterations)


def _of_cells(fitted: LinearMeasurement) -> tuple[Array, NDArray[np.int64]]:
    """Return the measured matrix, and the cell of each column.

    A merged cell stands for all that no query tells apart, and one for those that are in none.
    """
    assert fitted.factorization is not None
    matrix, workload = fitted.factorization.matrix, fitted.request.workload
    if matrix.shape[1] == workload.core.input_len or (distinct := workload.core.distinct_cells()) is None:
        return matrix, np.arange(matrix.shape[1])
    places, left_out = distinct
    if left_out is not None:
        matrix, places = np.pad(matrix, ((0, 0), (0, 1))), np.append(places, left_out)
    return matrix, places


def _nearest(fitted: LinearMeasurement, constraint: Constraint, measured: Array) -> tuple[Array, Projection]:
    """Return the answers of the table nearest to what was measured, in the norm of its noise."""
    cells = fitted.request.workload.core.input_len or 0
    noise, size = fitted.door.noise, _size(fitted, constraint, cells)
    expected = len(measured) * noise**2
    # What is left of the noise: few records leave less than all coordinates have. Columns are no longer than what the
    # unit changes.
    column = fitted.door.sensitivity[0]
    left = min(expected, 4.0 * size * noise * column * math.sqrt(2.0 * math.log(2.0 * cells)))
    tolerance = max(_TOLERANCES[cells > _SMALL] * left, _LEAST * expected)
    table, gap, iterations = _core.nearest_cells(fitted.strategy, measured, constraint.kind, size, tolerance, _STEPS)
    support = np.flatnonzero(table)
    report = Projection(support, table[support], gap / expected, iterations)
    if gap > expected:
        return fitted.strategy.decode(measured), replace(report, cells=support[:0], weights=table[:0])
    return answers_of_table(fitted, table), report


def _size(fitted: LinearMeasurement, constraint: Constraint, cells: int) -> float:
    """Return the size of the constraint; a bound beyond all that clamped cells can be only slows the search down."""
    largest = cells * float(fitted.domain.max_value)
    return constraint.size if constraint.kind == "total" else min(constraint.size, largest)


def _metric(fitted: LinearMeasurement, matrix: Array, noise: Array) -> tuple[NDArray[np.intp], Array]:
    """Return the measured rows that are projected, and the linear map whose Euclidean norm is minimised."""
    every = np.arange(len(matrix))
    match fitted.mechanism.name:
        case "universal-laplace":
            return every, _answers_map(fitted)
        case "sparse-printed-gaussian":
            # Blocks of at least epsilon·n rows; within a block rows are orthogonal and equally long in the answers.
            assert fitted.request.constraint is not None
            assert fitted.factorization is not None
            privacy = fitted.request.privacy
            epsilon = privacy.epsilon if isinstance(privacy, ApproxDP) else gaussian_mu(privacy)
            blocks = np.array(fitted.factorization.blocks)
            kept = np.flatnonzero(np.repeat(blocks >= epsilon * fitted.request.constraint.size, blocks))
            lengths = np.linalg.norm(_answers_map(fitted), axis=0)
            return kept, np.diag(lengths[kept])
        case _:
            return every, np.diag(1.0 / noise)


def _answers_map(fitted: LinearMeasurement) -> Array:
    """Return T with `‖T z‖` the (weighted) norm of the answers `A B⁺ z`."""
    assert fitted.factorization is not None
    mapped: Array = condensed(fitted.request.workload.merged)[0] @ fitted.factorization.inverse
    return mapped


def universal_bound(fitted: LinearMeasurement) -> float:
    """Return an upper bound on the rmse of Gaussian noise of one radius, projected onto the constraint.

    For data within the constraint `‖ŷ - y‖² <= 2 n max_j |⟨a_j, w⟩| + g` (Lemma 1, by the duality gap g), and
    `E max_j |⟨a_j, w⟩| <= r σ √(2 ln 2N)`, r the largest `‖a_j‖`, σ the standard deviation; never worse than the
    noise alone, since projections do not expand.
    """
    assert fitted.factorization is not None
    assert fitted.request.constraint is not None
    matrix, _ = _of_cells(fitted)
    rank, cells = matrix.shape
    noise = fitted.door.noise
    slack = _TOLERANCE * rank * noise**2
    radius = float(np.sqrt((matrix**2).sum(axis=0).max()))
    projected = 2.0 * fitted.request.constraint.size * radius * noise * math.sqrt(2.0 * math.log(2.0 * cells)) + slack
    alone = (math.sqrt(rank) * noise + math.sqrt(2.0 * slack)) ** 2
    return math.sqrt(min(projected, alone)) * condensed(fitted.request.workload.merged)[1]


def zero_is_better(fitted: LinearMeasurement) -> bool:
    """Whether answering zero to all queries has a smaller error than the noise, for every input within the constraint.

    `|y_i| <= n max_j |a_ij|`; the rms of that against the rms of the noise.
    """
    workload, constraint = fitted.request.workload, fitted.request.constraint
    cells = workload.core.input_len
    if constraint is None or cells is None or cells * workload.core.answers_len > _MOST_ENTRIES:
        return False
    largest = np.abs(dense(workload)).max(axis=1) * constraint.size
    weights = workload.answer_weights()
    noise = np.average(fitted.stderr**2, weights=weights)
    return bool(np.average(largest**2, weights=weights) < noise)
