"""Counts of candidate keys from a noisy sketch: post-processing."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sordino import _core
from sordino.mechanisms.catalogue import Law
from sordino.mechanisms.linear.recoveries import ITERATIONS, unexplained, universal
from sordino.workloads.base import Array

__all__ = ["Found", "counts_of_keys"]

# Where Huber's loss begins to be linear, in units of the noise; and from where on a number is left out at the end.
_HUBER, _SPOILT = 3.0, 5.0
# Below which, in standard deviations, a count is never told from noise.
_FEW = 3.0
# Rounds in which keys come back, and in which numbers are left out.
_ROUNDS, _FITS = 6, 4
# Of least squares: what is left of the gradient, and the most steps.
_TOLERANCE, _STEPS = 1e-10, 500
# Of a normal distribution: the standard deviation over the median of magnitudes.
_MEDIAN = 1.4826


class Found(NamedTuple):
    """What was found.

    Attributes:
        support: Places of the candidates that were found, rising.
        counts: Their counts.
        residual: What is left of every number, in units of a key alone.
        spoilt: Numbers that were left out, because something else is in them.
        ended: Whether the search ended by itself.
    """

    support: NDArray[np.int64]
    counts: Array
    residual: Array
    spoilt: int
    ended: bool


class _Columns:
    """The columns of the candidates, with norm 1."""

    def __init__(self, operator: _core.SketchOperator, keys: NDArray[np.uint64]) -> None:
        self.numbers, self.nonzeros = operator.description[2], operator.column_entries
        entries = _core.key_columns(operator, keys).reshape(len(keys), self.nonzeros)
        self.rows = (entries >> 1).astype(np.intp)
        self.signs = np.where(entries & 1, 1.0, -1.0)
        self.size = math.sqrt(self.nonzeros)

    def applied(self, support: NDArray[np.int64], counts: Array) -> Array:
        """Return what these keys add to the numbers."""
        shares = self.signs[support] * (counts / self.size)[:, None]
        added: Array = np.bincount(self.rows[support].reshape(-1), shares.reshape(-1), self.numbers).astype(np.float64)
        return added

    def said(self, support: NDArray[np.int64] | slice, left: Array) -> Array:
        """Return what each number of a key says of it, shape (keys, s)."""
        said: Array = self.signs[support] * left[self.rows[support]] * self.size
        return said

    def fitted(self, support: NDArray[np.int64], y: Array, use: NDArray[np.bool_]) -> Array:
        """Return least squares of these keys by the numbers that are used: conjugate gradients on sparse columns."""
        counts = np.zeros(len(support))
        rows, signs = self.rows[support], self.signs[support] / self.size
        left = (signs * np.where(use, y, 0.0)[rows]).sum(axis=1)
        direction, square = left, float(left @ left)
        end = _TOLERANCE**2 * square
        for _ in range(_STEPS):
            if square <= end:
                break
            through = np.where(use, self.applied(support, direction), 0.0)
            bent = (signs * through[rows]).sum(axis=1)
            step = square / float(direction @ bent)
            counts, left = counts + step * direction, left - step * bent
            before, square = square, float(left @ left)
            direction = left + (square / before) * direction
        return counts


def counts_of_keys(  # noqa: PLR0917 - the problem, in its order
    operator: _core.SketchOperator, keys: NDArray[np.uint64], y: Array, noise: float, law: Law, sparsity: int
) -> Found:
    """Recover the counts of candidates from `y = Phi x + w`, `Phi` with unit columns, x of all keys.

    Hard thresholding on the columns of the candidates, and least squares on what is above the universal threshold of so
    many. If noise does not explain what is left, some other key is in the sums: numbers that a heavy one has spoilt are
    told from the others by Huber's loss (basis pursuit beside the identity), keys whose own numbers were all taken for
    spoilt come back if most of their numbers say so, and least squares leave spoilt numbers out.

    Args:
        operator: The sketch.
        keys: Candidates, different ones.
        y: Shape (k,).
        noise: Standard deviation of each entry of w.
        law: Of w.
        sparsity: Most keys that are looked for.

    Raises:
        KeyboardInterrupt: Ctrl-C.
    """
    numbers, wanted = len(y), min(sparsity, len(keys))
    above = _above(noise * math.sqrt(numbers / max(numbers - wanted, 1)), len(keys))
    steps = ITERATIONS["hard-thresholding"]
    plain = _core.recover_keys(operator, keys, y, "hard-thresholding", wanted, noise, steps, above)
    _check(plain)
    columns = _Columns(operator, keys)
    left = y - columns.applied(plain.support, plain.coefficients)
    if float(np.linalg.norm(left)) <= unexplained(y, noise, law):
        return Found(plain.support, plain.coefficients, left, 0, plain.converged)
    return _robust(operator, keys, columns, y, noise, wanted)


def _check(found: _core.Recovered) -> None:
    if found.interrupted:
        raise KeyboardInterrupt


def _robust(  # noqa: PLR0917 - the problem, in its order
    operator: _core.SketchOperator, keys: NDArray[np.uint64], columns: _Columns, y: Array, noise: float, wanted: int
) -> Found:
    numbers, count = len(y), len(keys)
    level = math.sqrt(2.0 * math.log(max(count + numbers, 2)))
    found = _core.recover_keys(
        operator, keys, y, "basis-pursuit", None, noise, ITERATIONS["basis-pursuit"], None, level / _HUBER
    )
    _check(found)
    here = found.support < count
    support, counts = _largest(found.support[here], found.coefficients[here], wanted)
    use = np.ones(numbers, dtype=bool)

    def unexplained_now() -> tuple[Array, float]:
        left = y - columns.applied(support, counts)
        return left, max(noise, _MEDIAN * float(np.median(np.abs(left))))

    for _ in range(_ROUNDS):
        before = support
        left, spread = unexplained_now()
        support, counts = _with_missed(columns, support, counts, y, left, spread, wanted)
        for _ in range(_FITS):
            left, spread = unexplained_now()
            use = np.abs(left) <= _SPOILT * spread
            counts = columns.fitted(support, y, use)
        above = _above(spread * math.sqrt(numbers / max(numbers - wanted, 1)), count)
        stays = np.abs(counts) > above
        support, _ = _largest(support[stays], counts[stays], wanted)
        counts = columns.fitted(support, y, use)
        if np.array_equal(support, before):
            break
    return Found(support, counts, unexplained_now()[0], int(numbers - use.sum()), found.converged)


def _with_missed(  # noqa: PLR0917 - the problem, in its order
    columns: _Columns, support: NDArray[np.int64], counts: Array, y: Array, left: Array, noise: float, wanted: int
) -> tuple[NDArray[np.int64], Array]:
    """Return keys with those that most of their own numbers speak for; of each what the median of its numbers says."""
    said = columns.said(slice(None), left)
    middle = np.median(said, axis=1)
    middle[support] = 0.0
    missed = np.flatnonzero(np.abs(middle) > 0.7 * universal(noise, len(said)) * columns.size)
    if len(missed):
        agree = np.sort(said[missed] * np.sign(middle[missed])[:, None], axis=1)[:, columns.nonzeros // 4]
        missed = missed[agree > 0.5 * np.abs(middle[missed])]
        missed, _ = _largest(missed, middle[missed], wanted)
    together = np.union1d(support, missed).astype(np.int64)
    started = np.zeros(len(together))
    started[np.searchsorted(together, support)] = counts
    started[np.searchsorted(together, missed)] = middle[missed]
    for _ in range(3):
        rest = columns.said(together, y - columns.applied(together, started))
        started = np.median(rest + started[:, None], axis=1) if len(together) else started
    return together, started


def _above(noise: float, count: int) -> float:
    """Return what counts of noise alone hardly exceed: of few candidates, three standard deviations."""
    return max(universal(noise, count), _FEW * noise)


def _largest(support: NDArray[np.int64], counts: Array, most: int) -> tuple[NDArray[np.int64], Array]:
    if len(support) <= most:
        return support, counts
    kept = np.sort(np.argsort(-np.abs(counts), kind="stable")[:most])
    return support[kept], counts[kept]
