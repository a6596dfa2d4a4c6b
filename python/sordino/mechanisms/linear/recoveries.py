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

    from sordino.mechanisms.catalogue import Law
    from sordino.mechanisms.linear.compression import Compression, RecoveryName
    from sordino.workloads.base import Array
    from sordino.workloads.bases import Basis

__all__ = [
    "ITERATIONS",
    "Explaining",
    "RecoveryResult",
    "hard_threshold",
    "noise_bound",
    "recover",
    "recover_sketch",
    "unexplained",
    "universal",
]

Progress: TypeAlias = Callable[[int, float], bool | None]

ITERATIONS = {"cosamp": 60, "hard-thresholding": 300, "basis-pursuit": 1000}
"""Iterations after which the best so far is returned."""

# Relative to what was measured: what rounding may leave of it.
_ROUNDING = 1e-11
_NORMAL_999 = 3.090232306167813
# Of the square of a number of noise with variance 1: variance, skewness, excess of the kurtosis.
_SQUARES: dict[Law, tuple[float, float, float]] = {
    "gaussian": (2.0, math.sqrt(8.0), 12.0),
    "laplace": (5.0, 592.0 / 20.0**1.5, 35088.0 / 20.0**2 - 3.0),
}


class Explaining:
    """What says whether noise explains what it leaves: `residual`, `noise_bound` and `ended` decide."""

    residual: float
    noise_bound: float
    ended: bool

    @property
    def explained(self) -> bool:
        """Whether noise alone may have left the residual.

        If there is nothing but what was found, `residual <= ||w|| <= noise_bound` with probability 0.999, whichever
        were chosen: least squares leave the less, the more columns they have. If not, there is more: of data with more
        coefficients than are looked for little is recovered, and keys may be elsewhere. What is far below `noise_bound`
        may be missing still.
        """
        return self.residual <= self.noise_bound

    @property
    def converged(self) -> bool:
        """Whether the search ended by itself, with what explains the measurements."""
        return self.ended and self.explained


@dataclass(frozen=True, eq=False)
class RecoveryResult(Explaining):
    """A sparse table that explains what was measured.

    Attributes:
        values: The table, shape (cells,).
        support: Numbers of the coefficients that are not zero, rising.
        coefficients: Their values.
        residual: l2 norm of what is left unexplained; for thresholds, of what was dropped.
        noise_level: What noise alone would leave, about: `noise sqrt(k - T)` of k numbers with T coefficients fitted.
        noise_bound: What noise alone leaves with probability 0.999 at most, whichever coefficients were chosen.
        iterations: Of the algorithm; 0 for thresholds.
        ended: Whether the algorithm ended by itself.
        algorithm: Which.
    """

    values: Array = field(repr=False)
    support: NDArray[np.int64] = field(repr=False)
    coefficients: Array = field(repr=False)
    residual: float
    noise_level: float
    noise_bound: float
    iterations: int
    ended: bool
    algorithm: str


def recover_sketch(  # noqa: PLR0917 - the problem, in its order
    compression: Compression,
    cells: int,
    sketch: Array,
    noise: float,
    law: Law,
    progress: Progress | None = None,
) -> RecoveryResult:
    """Recover a table from noisy integer sums.

    Args:
        compression: How the sums were made and what to look for.
        cells: Cells of the table.
        sketch: The sums, shape (k,), of signs +-1.
        noise: Standard deviation of each.
        law: Of the noise.
        progress: Called with (iteration, residual); returning False ends the search with the best so far.

    Raises:
        InvalidParameterError: Sizes do not fit.
    """
    operator = compression.operator(cells)
    scale = math.sqrt(operator.column_entries)
    sparsity = compression.sizes(cells)[1]
    return recover(
        operator, compression.transform, sketch / scale, noise / scale, law, compression.recovery, sparsity, progress
    )


def recover(  # noqa: PLR0917 - the problem, in its order
    operator: _core.SketchOperator,
    basis: Basis,
    y: Array,
    noise: float,
    law: Law,
    algorithm: RecoveryName,
    sparsity: int | None,
    progress: Progress | None = None,
) -> RecoveryResult:
    """Recover a table from `y = Phi x + w`, `Phi` with unit columns.

    Of tables with fewer coefficients than are looked for the rest of the support is the largest of the noise. So what
    is not above `noise sqrt(2 ln n k/(k - S))` is dropped at the end, the universal threshold for a coefficient that
    was fitted beside S - 1 others to k numbers: a coefficient of the table below it is lost with them. What stays is
    fitted again, alone. Basis pursuit has a threshold of its own.

    Source: Donoho and Johnstone 1994, Section 2.2 (universal threshold).

    Args:
        operator: `Phi`.
        basis: In which the table is sparse.
        y: Shape (k,).
        noise: Standard deviation of each entry of w.
        law: Of w.
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
    threshold = None
    if sparsity is not None and algorithm != "basis-pursuit":
        beside = noise * math.sqrt(len(y) / max(len(y) - sparsity, 1))
        threshold = (universal(beside, core.len), _has_mean(basis))
    found = _core.recover(
        operator, core, np.ascontiguousarray(y), algorithm, sparsity, noise, ITERATIONS[algorithm], threshold, progress
    )
    if found.interrupted:
        raise KeyboardInterrupt
    coefficients = np.zeros(core.len)
    coefficients[found.support] = found.coefficients
    return RecoveryResult(
        values=core.synthesize(coefficients)[:cells],
        support=found.support,
        coefficients=found.coefficients,
        residual=found.residual,
        noise_level=noise * math.sqrt(max(len(y) - len(found.support), 0)),
        noise_bound=unexplained(y, noise, law),
        iterations=found.iterations,
        ended=found.converged,
        algorithm=algorithm,
    )


def unexplained(y: Array, noise: float, law: Law, independent: int | None = None) -> float:
    """Return what noise leaves of measured numbers at most, with probability 0.999, or the rounding of doubles."""
    numbers = len(y) if independent is None else max(min(independent, len(y)), 1)
    bound = noise_bound(numbers, noise, law) * math.sqrt(len(y) / numbers)
    return max(bound, _ROUNDING * float(np.linalg.norm(y)))


def noise_bound(count: int, noise: float, law: Law) -> float:
    """Return what the l2 norm of so many numbers of noise stays below with probability 0.999, about.

    The sum of squares has mean `count`, variance `v count`, and the quantile of Cornish and Fisher to third order:
    within 0.0003 of its level for Gaussian noise, and 0.001 for Laplace noise.

    Args:
        count: Numbers.
        noise: Standard deviation of each.
        law: Of each.
    """
    variance, skewness, kurtosis = _SQUARES[law]
    skewness, kurtosis = skewness / math.sqrt(count), kurtosis / count
    z = _NORMAL_999
    quantile = z + (z * z - 1.0) * skewness / 6.0 + (z**3 - 3.0 * z) * kurtosis / 24.0
    quantile -= (2.0 * z**3 - 5.0 * z) * skewness * skewness / 36.0
    return noise * math.sqrt(count + math.sqrt(variance * count) * quantile)


def universal(noise: float, count: int) -> float:
    """Return what the largest of so many numbers of noise hardly exceeds."""
    return noise * math.sqrt(2.0 * math.log(max(count, 2)))


def _has_mean(basis: Basis) -> bool:
    """Whether the first coefficient is the mean, which stays in any case."""
    return basis.name in {"haar", "cosine"}


def hard_threshold(
    values: Array, basis: Basis, noise: float, law: Law, independent: int | None = None
) -> RecoveryResult:
    """Keep the coefficients above `noise sqrt(2 ln n)`, and the first (the mean, in the bases built in).

    Source: Donoho and Johnstone 1994, Section 2.2 (universal threshold).

    Args:
        values: Noisy cells, shape (cells,).
        basis: In which the table is sparse.
        noise: Standard deviation of each.
        law: Of the noise of each.
        independent: As many independent numbers at least have the variance of the squared norm of their noise; None for
            all of them.

    Raises:
        InvalidParameterError: The basis is for another number of cells.
    """
    cells = len(values)
    coefficients = basis.analyze(values)
    if not math.isfinite(noise):
        raise InvalidParameterError("noise must be finite")
    kept = np.abs(coefficients) > universal(noise, len(coefficients))
    kept[0] |= _has_mean(basis)
    dropped = float(np.linalg.norm(coefficients[~kept]))
    sparse = np.where(kept, coefficients, 0.0)
    support = np.flatnonzero(kept)
    return RecoveryResult(
        values=basis.core(cells).synthesize(sparse)[:cells],
        support=support,
        coefficients=coefficients[support],
        residual=dropped,
        noise_level=noise * math.sqrt(len(coefficients) - len(support)),
        noise_bound=unexplained(coefficients, noise, law, independent),
        iterations=0,
        ended=True,
        algorithm="hard-threshold",
    )
