"""Chebyshev coefficients of public functions: by cosine transforms on grids, damped or cut off, with error bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import numpy as np

from sordino.workloads.base import Array

__all__ = [
    "APPROXIMATIONS",
    "Approximation",
    "class_bound",
    "coefficients",
    "damping",
    "jackson_bound",
    "jackson_width",
    "largest_bound",
    "lebesgue",
    "nodes",
    "on_circle",
    "polynomials",
    "spectrum",
    "transform",
    "truncation_bound",
    "vallee_poussin_norm",
]

Approximation = Literal["truncate", "vallee-poussin", "jackson"]
APPROXIMATIONS: tuple[Approximation, ...] = ("truncate", "vallee-poussin", "jackson")


@lru_cache(maxsize=64)
def nodes(count: int) -> Array:
    """Return the Chebyshev points `cos(pi (i + 1/2)/count)`."""
    points = np.cos(np.pi * (np.arange(count) + 0.5) / count)
    points.flags.writeable = False
    return points


@lru_cache(maxsize=64)
def transform(count: int, degree: int) -> Array:
    """Return the matrix, shape (degree, count), from values at `nodes(count)` to Chebyshev coefficients.

    `c_k = (2 - [k = 0])/count sum_i f(x_i) cos(k pi (i + 1/2)/count)`: exact for polynomials of degree below `count`.
    """
    # Angles are reduced exactly before they are multiplied by pi; row by row, so that no other block is as large.
    cosines = np.cos(np.pi * np.arange(4 * count) / (2 * count)) * (2.0 / count)
    odd, matrix = 2 * np.arange(count) + 1, np.empty((degree, count))
    for k in range(degree):
        matrix[k] = cosines[(k * odd) % (4 * count)]
    matrix[0] /= 2.0
    matrix.flags.writeable = False
    return matrix


def spectrum(values: Array) -> Array:
    """Return all coefficients of functions given at `nodes(count)`, shape (..., count), by a Fourier transform.

    Values continued evenly have the period 2 count; the points lie half a step beside those of the transform.
    """
    count = values.shape[-1]
    waves = np.fft.rfft(np.concatenate([values, values[..., ::-1]], axis=-1), axis=-1)[..., :count]
    found: Array = (waves * np.exp(-0.5j * np.pi * np.arange(count) / count)).real / count
    found[..., 0] /= 2.0
    return found


def on_circle(found: Array, intervals: int) -> Array:
    """Return `sum_k c_k cos(k theta)` at `theta = pi i/intervals`, i = 0, ..., intervals, for at most that many c_k."""
    halved = np.zeros((*found.shape[:-1], intervals + 1))
    halved[..., : found.shape[-1]] = found / 2.0
    halved[..., 0] *= 2.0
    values: Array = np.fft.irfft(halved, 2 * intervals, axis=-1)[..., : intervals + 1] * (2 * intervals)
    return values


def largest_bound(found: Array) -> Array:
    """Return a bound of `max |sum_k c_k T_k|`, shape (...): the summed coefficients, or what a grid of angles shows.

    Between points that are `pi/M` apart `(pi/M)^2/8 sum_k k^2 |c_k|` more is possible.
    """
    sizes, intervals = np.abs(found), 4 * found.shape[-1]
    slack = (math.pi / intervals) ** 2 / 8.0 * (sizes @ np.arange(found.shape[-1], dtype=np.float64) ** 2)
    bound: Array = np.minimum(sizes.sum(axis=-1), np.abs(on_circle(found, intervals)).max(axis=-1) + slack)
    return bound


def coefficients(values: Array, degrees: Sequence[int], axis: int = 0) -> Array:
    """Return Chebyshev coefficients of functions given at tensor grids of Chebyshev points.

    Args:
        values: Values; the axes from `axis` on belong to the grid, one each coordinate.
        degrees: Number of coefficients of each of these axes.
        axis: First axis of the grid.
    """
    for offset, degree in enumerate(degrees):
        at = axis + offset
        matrix = transform(values.shape[at], degree)
        product: Array = np.tensordot(matrix, values, axes=(1, at)).astype(np.float64, copy=False)
        values = np.moveaxis(product, 0, at)
    return values


def polynomials(u: Array, degree: int) -> Array:
    """Return `T_0(u), ..., T_{degree-1}(u)`, shape (..., degree)."""
    made: Array = np.asarray(np.polynomial.chebyshev.chebvander(u, degree - 1), dtype=np.float64)
    return made


def damping(approximation: Approximation, degree: int) -> Array:
    """Return what coefficients 0, ..., degree - 1 are multiplied by.

    'truncate': 1, the interpolant cut off: as good as the best approximation up to a logarithm. 'vallee-poussin':
    1 up to half of the degree, then falling linearly to 0: as good as the best of half the degree, up to a constant.
    'jackson': the positive kernel of least width (Weisse et al., Rev. Mod. Phys. 78 (2006), eq. 71), of second order
    only: for proofs, not for use.
    """
    k = np.arange(degree)
    match approximation:
        case "truncate":
            return np.ones(degree)
        case "vallee-poussin":
            half = degree // 2
            return np.clip((degree - k) / max(degree - half, 1), 0.0, 1.0)
        case "jackson":
            turn = math.pi / (degree + 1)
            factors: Array = ((degree + 1 - k) * np.cos(k * turn) + np.sin(k * turn) / math.tan(turn)) / (degree + 1)
            return factors


def lebesgue(degree: int) -> float:
    """Return an upper bound of the norm of cutting off after `degree` coefficients: `4/pi^2 log(degree) + 3`.

    Source: Rivlin, Chebyshev Polynomials (1990), Section 3.4: the Lebesgue constant of the Fourier projection of degree
    n is below `4/pi^2 log(n) + 3` for n >= 1.
    """
    return 1.0 if degree <= 1 else 4.0 / math.pi**2 * math.log(degree) + 3.0


def jackson_bound(order: int, degree: int) -> float:
    """Return how far polynomials below `degree` are from functions with derivatives up to `order` in [-1, 1], at most.

    The least `(pi/2)^k / ((n + 1) n ... (n - k + 2))` with `n = degree - 1` over `1 <= k <= order`, `k <= n + 1`: high
    orders help from a few coefficients on.

    Source: Cheney, Introduction to Approximation Theory (1966), Chapter 4, Section 6 (Jackson's theorem V).
    """
    bound, best = 1.0, math.inf
    for left in range(degree, max(degree - order, 0), -1):
        bound *= math.pi / 2.0 / left
        best = min(best, bound)
    return best


@lru_cache(maxsize=4096)
def class_bound(order: int, degree: int) -> float:
    """Return how far polynomials below `degree` are from functions with `|f^(k)| <= 1` for all `k <= order`, at most.

    The least of `jackson_bound` over the orders up to `order`: for few polynomials a low order bounds better, or alone.
    """
    return min(jackson_bound(k, degree) for k in range(1, order + 1))


def vallee_poussin_norm() -> float:
    """Return an upper bound of the norm of 'vallee-poussin', `1/3 + 2 sqrt(3)/pi`."""
    return 1.0 / 3.0 + 2.0 * math.sqrt(3.0) / math.pi


def jackson_width(degree: int) -> float:
    """Return the mean width of the positive kernel 'jackson': `|f - P f|` by Lipschitz constant, at most."""
    factors = damping("jackson", degree)
    return math.sqrt(max(2.0 * (1.0 - (float(factors[1]) if degree > 1 else 0.0)), 0.0)) * math.pi / 2.0


def truncation_bound(order: int, degrees: Sequence[int], approximation: Approximation) -> float:
    """Return a bound of `|f - P f|` on the cube for derivatives up to order K of at most 1 along every axis.

    Axis by axis, `f - P f = sum_j P_1 ... P_{j-1} (f - P_j f)`: with norm L and best error E on each axis at most
    `sum_j L^(j-1) (1 + L) E_j`. 'jackson' has norm 1, and the error of Lipschitz functions of the angle.
    """
    total, norm = 0.0, 1.0
    for degree in degrees:
        match approximation:
            case "truncate":
                own, best = lebesgue(degree), class_bound(order, degree)
            case "vallee-poussin":
                # Reproduces polynomials up to the half.
                own, best = vallee_poussin_norm(), class_bound(order, max(degree - degree // 2, 1))
            case "jackson":
                # Norm 1: half of what a Lipschitz function is off by.
                own, best = 1.0, jackson_width(degree) / 2.0 if order >= 1 else math.inf
        total += norm * (1.0 + own) * best
        norm *= own
    return total
