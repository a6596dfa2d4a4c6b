"""A public number of points: what it says about the sums of features."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from sordino.mechanisms.smooth.kernel_axes import KernelAxis
from sordino.workloads.base import Array
from sordino.workloads.smooth.chebyshev import polynomials

__all__ = ["KnownTotal", "total_of_cells", "total_of_kernel"]

# Points of the grid, a polynomial, at which the constant is looked at.
_FINENESS = 64
# Of the ridge: what is tried, in quarter decades.
_RIDGES = 10.0 ** np.arange(-12.0, 0.01, 0.25)


@dataclass(frozen=True, eq=False)
class KnownTotal:
    """A sum of features that is nearly 1 for every point: `|<h, psi(u)> - 1| <= error` for all u.

    So `<h, S>` is within `error n` of n, the number of points, whatever they are. With S' measured with noise of one
    variance in every feature, a query with coefficients g is answered by `<g, S'> - a (<h, S'> - n)`,
    `a = <g, h>/|h|^2`: variance `|g|^2 - <g, h>^2/|h|^2` in place of `|g|^2` (Pythagoras), and an error of
    `|a| error n` at most. Post-processing of what was measured.

    Attributes:
        axes: Factors of h, one an axis.
        error: How far the sum may be from 1.
    """

    axes: tuple[Array, ...]
    error: float

    @cached_property
    def square(self) -> float:
        """`|h|^2`."""
        return math.prod(float(axis @ axis) for axis in self.axes)

    @cached_property
    def flat(self) -> Array:
        """The coefficients h, one a feature."""
        product: Array = reduce(np.multiply.outer, self.axes)
        return product.reshape(-1)

    @property
    def share(self) -> float:
        """Largest share of its variance that the answer to a single kernel keeps."""
        return 1.0 - (1.0 - self.error) ** 2 / self.square

    @property
    def lost(self) -> float:
        """Largest error of the same in an average."""
        return (1.0 + self.error) * self.error / self.square

    def corrected(self, sums: Array, points: float) -> Array:
        """Return the measured sums without what is known to be noise."""
        corrected: Array = sums - self.flat * ((float(self.flat @ sums) - points) / self.square)
        return corrected

    def along(self, full: Array) -> Array:
        """Return `<g, h>` of coefficients, shape (queries, features)."""
        found: Array = full @ self.flat
        return found

    def along_axes(self, axes: Sequence[Array]) -> Array:
        """Return `<g, h>` of products of coefficients, shapes (queries, features of the axis)."""
        found: Array = math.prod((axis @ own for axis, own in zip(axes, self.axes, strict=True)), start=np.ones(1))
        return found


def total_of_cells(cells: Sequence[int]) -> KnownTotal:
    """Return that every point is in one cell."""
    return KnownTotal(tuple(np.ones(count) for count in cells), 0.0)


def total_of_kernel(axes: Sequence[KernelAxis], noise: float) -> KnownTotal:
    """Return the combination of features that is worth most where an average has so much noise.

    On each axis `h = argmin |Gamma' h - e_0|^2 + ridge^2 |h|^2`. What it is off by is a polynomial: at 64 points for
    each of its degrees it is as large as anywhere, up to a factor (Ehlich and Zeller).
    """
    best: tuple[float, KnownTotal] | None = None
    for ridge in _RIDGES:
        made = [_constant(axis, float(ridge)) for axis in axes]
        error = math.prod(1.0 + own for _, own in made) - 1.0
        found = KnownTotal(tuple(h for h, _ in made), error)
        if error >= 1.0:
            continue
        value = found.share + (found.lost / noise) ** 2
        if best is None or value < best[0]:
            best = value, found
    return KnownTotal(tuple(np.zeros(len(axis.mixing)) for axis in axes), 0.0) if best is None else best[1]


def _constant(axis: KernelAxis, ridge: float) -> tuple[Array, float]:
    mixing, degree = axis.mixing, axis.degree
    h = np.asarray(np.linalg.solve(mixing @ mixing.T + ridge**2 * np.eye(len(mixing)), mixing[:, 0]), dtype=np.float64)
    rest = mixing.T @ h
    rest[0] -= 1.0
    intervals = _FINENESS * degree
    values = polynomials(np.cos(np.pi * np.arange(intervals + 1) / intervals), degree) @ rest
    largest = float(np.abs(values).max()) / math.cos(math.pi * (degree - 1) / (2 * intervals))
    return h, largest * (1.0 + 1e-9) + 1e-13
