"""From noisy measurements to a sparse table: post-processing, costs no privacy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from sordino import _core
from sordino.errors import DataTypeError, InvalidParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sordino.mechanisms.linear.compression import Compression, RecoveryName
    from sordino.workloads.base import Array
    from sordino.workloads.bases import Basis

__all__ = ["RecoveryResult", "hard_threshold", "recover", "recover_sketch"]

Progress: TypeAlias = Callable[[int, float], bool | None]

ITERATIONS = {"cosamp": 60, "hard-thresholding": 300, "basis-pursuit": 1000}
"""Iterations after which the best so far is returned."""


@dataclass(frozen=True, eq=False)
class RecoveryResult:
    """A sparse table that explains what was measured.

    Attributes:
        values: The table, shape (cells,).
        support: Numbers of the coefficients that are not zero, rising.
        coefficients: Their values.
        residual: l2 norm of what is left unexplained; for thresholds, of what was dropped.
        noise_level: What noise alone would leave, in the same unit.
        iterations: Of the algorithm; 0 for thresholds.
        converged: Whether it ended by itself. No promise that the table is right: of data with more coefficients than
            are looked for little can be recovered, and a residual far above the noise level says so.
        algorithm: Which.
    """

    values: Array = field(repr=False)
    support: NDArray[np.int64] = field(repr=False)
    coefficients: Array = field(repr=False)
    residual: float
    noise_level: float
    iterations: int
    converged: bool
    algorithm: str


def recover_sketch(
    compression: Compression,
    cells: int,
    sketch: Array,
    noise: float,
    progress: Progress | None = None,
) -> RecoveryResult:
    """Recover a table from noisy integer sums.

    Args:
        compression: How the sums were made and what to look for.
        cells: Cells of the table.
        sketch: The sums, shape (k,), of signs +-1.
        noise: Standard deviation of each.
        progress: Called with (iteration, residual); returning False ends the search with the best so far.

    Raises:
        InvalidParameterError: Sizes do not fit.
    """
    operator = compression.operator(cells)
    scale = math.sqrt(operator.column_entries)
    sparsity = compression.sizes(cells)[1]
    return recover(
        operator, compression.transform, sketch / scale, noise / scale, compression.recovery, sparsity, progress
    )


def recover(  # noqa: PLR0917 - the problem, in its order
    operator: _core.SketchOperator,
    basis: Basis,
    y: Array,
    noise: float,
    algorithm: RecoveryName,
    sparsity: int | None,
    progress: Progress | None = None,
) -> RecoveryResult:
    """Recover a table from `y = Phi x + w`, `Phi` with unit columns.

    Of tables with fewer coefficients than are looked for the rest of the support is the largest of the noise. So what
    is not above `noise sqrt(2 ln n k/(k - S))` is dropped at the end, the universal threshold for a coefficient that
    was fitted beside S - 1 others to k numbers: a coefficient of the table below it is lost with them. Basis pursuit
    has a threshold of its own.

    Source: Donoho and Johnstone 1994, Section 2.2 (universal threshold).

    Args:
        operator: `Phi`.
        basis: In which the table is sparse.
        y: Shape (k,).
        noise: Standard deviation of each entry of w.
        algorithm: Which.
        sparsity: Most coefficients; None only for basis pursuit.
        progress: As in `recover_sketch`.

    Raises:
        InvalidParameterError: Sizes do not fit.
        KeyboardInterrupt: Ctrl-C.
    """
    cells = operator.description[1]
    core = basis.core(cells)
    if progress is not None and not callable(progress):
        raise DataTypeError("progress must be a function, or None")
    found = _core.recover(
        operator, core, np.ascontiguousarray(y), algorithm, sparsity, noise, ITERATIONS[algorithm], progress
    )
    if found.interrupted:
        raise KeyboardInterrupt
    dropped = False
    support, kept, residual = found.support, found.coefficients, found.residual
    if sparsity is not None and algorithm != "basis-pursuit":
        above = _above_noise(support, kept, basis, noise * math.sqrt(len(y) / max(len(y) - sparsity, 1)), core.len)
        dropped = not above.all()
        support, kept = support[above], kept[above]
    coefficients = np.zeros(core.len)
    coefficients[support] = kept
    values = core.synthesize(coefficients)[:cells]
    if dropped:
        residual = float(np.linalg.norm(y - operator.apply(values)))
    return RecoveryResult(
        values=values,
        support=support,
        coefficients=kept,
        residual=residual,
        noise_level=noise * math.sqrt(len(y)),
        iterations=found.iterations,
        converged=found.converged,
        algorithm=algorithm,
    )


def _above_noise(
    numbers: NDArray[np.int64], coefficients: Array, basis: Basis, noise: float, count: int
) -> NDArray[np.bool_]:
    """Which coefficients, of `count`, noise alone does not reach; the first, where it is the mean, in any case."""
    above: NDArray[np.bool_] = np.abs(coefficients) > noise * math.sqrt(2.0 * math.log(max(count, 2)))
    if basis.name in {"haar", "cosine"}:
        above |= numbers == 0
    return above


def hard_threshold(values: Array, basis: Basis, noise: float) -> RecoveryResult:
    """Keep the coefficients above `noise sqrt(2 ln n)`, and the first (the mean, in the bases built in).

    Source: Donoho and Johnstone 1994, Section 2.2 (universal threshold).

    Args:
        values: Noisy cells, shape (cells,).
        basis: In which the table is sparse.
        noise: Standard deviation of each.

    Raises:
        InvalidParameterError: The basis is for another number of cells.
    """
    cells = len(values)
    coefficients = basis.analyze(values)
    if not math.isfinite(noise):
        raise InvalidParameterError("noise must be finite")
    kept = _above_noise(np.arange(len(coefficients)), coefficients, basis, noise, len(coefficients))
    dropped = float(np.linalg.norm(coefficients[~kept]))
    sparse = np.where(kept, coefficients, 0.0)
    support = np.flatnonzero(kept)
    return RecoveryResult(
        values=basis.core(cells).synthesize(sparse)[:cells],
        support=support,
        coefficients=coefficients[support],
        residual=dropped,
        noise_level=noise * math.sqrt(len(coefficients) - len(support)),
        iterations=0,
        converged=True,
        algorithm="hard-threshold",
    )
