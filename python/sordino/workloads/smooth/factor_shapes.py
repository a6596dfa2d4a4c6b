"""What is known of functions of one coordinate between the points at which they are asked: hence bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sordino.workloads.base import Array

__all__ = ["FactorShape", "geometric_tail", "sample_count"]


# Chebyshev points of an axis, at least and at most.
_LEAST_NODES = 64
_MOST_NODES = 2**13


def sample_count(degree: int, nodes: int = 0) -> int:
    """Return from how many points coefficients of factors are taken: at least 2 degree, and `nodes` to resolve them."""
    return max(2 * degree, _LEAST_NODES, min(nodes, _MOST_NODES))


@dataclass(frozen=True)
class FactorShape:
    """Shape of the factors of products along one axis, in units of the cube.

    Attributes:
        turns: Where each may turn or have a kink, shape (products,): on either side it is monotone.
        curvature: Bound of `|d^2 g(cos theta)/d theta^2|` elsewhere, shape (products,): `|g''| + |g'|`.
        nodes: Chebyshev points that resolve them.
        tail: Bound of `sum_{k >= count} |c_k|` of any of them, c_k their Chebyshev coefficients.
    """

    turns: Array
    curvature: Array
    nodes: int
    tail: Callable[[int], float]

    @staticmethod
    def polynomials(turns: Array, curvature: Array, degree: int) -> FactorShape:
        """Return the shape of polynomials of at most a degree."""
        return FactorShape(turns, curvature, degree + 1, lambda count: 0.0 if count > degree else math.inf)

    @property
    def peaks(self) -> Array:
        """Where factors may be largest apart from the edges of the cube, shape (products, 1)."""
        return np.clip(self.turns, -1.0, 1.0)[:, None]


def geometric_tail(largest: float, distance: float, count: int) -> float:
    """Return a bound of `sum_{k >= count} |c_k|` of functions that are bounded near the real line.

    An ellipse with foci -1, 1 and half axis `distance` has `rho = distance + sqrt(1 + distance^2)`; functions that are
    at most `largest` in it have `|c_k| <= 2 largest rho^-k`.

    Source: Trefethen, Approximation Theory and Approximation Practice (2013), Theorem 8.1.
    """
    # A smaller ellipse is no less true, where numbers would overflow.
    log = min(math.asinh(distance), 700.0)
    return 2.0 * largest * math.exp(-(count - 1) * log) / math.expm1(log)
