"""Kernels of one coordinate as finite sums of features: the reproducing-kernel space, cut off where it hardly shows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sordino._support.checks import integer
from sordino.workloads.base import Array
from sordino.workloads.smooth.chebyshev import nodes, polynomials, transform
from sordino.workloads.smooth.query_classes import KernelClass

__all__ = ["KernelAxis", "kernel_axis", "stored_axis"]

# Matrices of four times as many samples are made.
_MOST_DEGREE = 2**10
_DEGREES = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 22, 24, 28, 32, 40, 48, 64, 80, 96, 128, 160, 192, 256)


@dataclass(frozen=True, eq=False)
class KernelAxis:
    """Features `psi = Gamma T(u)` with `psi(u)' psi(v)` near the kernel.

    Attributes:
        mixing: Gamma, shape (features, degree): `sqrt(eigenvalue) * eigenvector` in Chebyshev coordinates.
        eigenvalues: Of the kernel's Chebyshev matrix, falling, shape (features,).
        error: Largest difference to the kernel found on a grid: no bound, but its grid is finer than the polynomials.
    """

    mixing: Array
    eigenvalues: Array
    error: float

    @property
    def degree(self) -> int:
        """Number of polynomials."""
        return int(self.mixing.shape[1])

    def features(self, u: Array) -> Array:
        """Return the features of coordinates, shape (len(u), features)."""
        made: Array = polynomials(u, self.degree) @ self.mixing.T
        return made


@lru_cache(maxsize=128)
def kernel_axis(kernels: KernelClass, scale: float, tolerance: float, degree: int | None = None) -> KernelAxis:
    """Return the features of one axis with the fewest polynomials that come within `tolerance`, or a given number.

    Args:
        kernels: Which kernel; of it only the profile matters.
        scale: Its length in half widths.
        tolerance: Largest difference wanted; the nearest that 256 polynomials give otherwise.
        degree: Number of polynomials, if it is given.

    Raises:
        InvalidParameterError: The degree is above 2**10.
    """
    if degree is not None:
        _check_degree(degree)
    for count in (degree,) if degree is not None else _DEGREES:
        made = _cut(kernels, scale, count, tolerance)
        if made.error <= tolerance:
            break
    return made


def _check_degree(degree: int) -> None:
    integer("the degree of a kernel's features", degree, least=1, most=_MOST_DEGREE)


def _cut(kernels: KernelClass, scale: float, degree: int, tolerance: float) -> KernelAxis:
    samples = max(4 * degree, 64)
    u = nodes(samples)
    matrix = transform(samples, degree)
    gram = matrix @ kernels.profile_of(np.abs(u[:, None] - u[None, :]) / scale) @ matrix.T
    values, vectors = np.linalg.eigh((gram + gram.T) / 2.0)
    # Half of the tolerance for eigenvalues left out: each is worth at most itself times the number of polynomials.
    kept = np.flatnonzero(values > max(0.5 * tolerance / degree, 1e-14 * values[-1]))[::-1]
    mixing = np.ascontiguousarray(np.sqrt(values[kept])[:, None] * vectors[:, kept].T)
    return KernelAxis(mixing, values[kept], _error(kernels, scale, mixing))


def stored_axis(kernels: KernelClass, scale: float, mixing: Array) -> KernelAxis:
    """Return features as they were found before, perhaps elsewhere: eigenvectors differ between machines.

    Sensitivities are certified for the mixing as it is, so a poor one costs accuracy alone.

    Raises:
        InvalidParameterError: The degree is above 2**10.
    """
    _check_degree(mixing.shape[1])
    return KernelAxis(mixing, (mixing**2).sum(axis=1), _error(kernels, scale, mixing))


def _error(kernels: KernelClass, scale: float, mixing: Array) -> float:
    degree = mixing.shape[1]
    grid = np.cos(np.pi * np.linspace(0.0, 1.0, 4 * degree + 65))
    features = polynomials(grid, degree) @ mixing.T
    exact = kernels.profile_of(np.abs(grid[:, None] - grid[None, :]) / scale)
    return float(np.abs(features @ features.T - exact).max())
