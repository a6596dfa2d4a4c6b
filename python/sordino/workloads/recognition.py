"""Matrices that are another workload, row for row: it has closed forms that no matrix has."""

import numpy as np

from sordino.workloads.base import Array, Workload
from sordino.workloads.filters import Convolution, RunningSum
from sordino.workloads.histogram import Histogram
from sordino.workloads.kronecker import Kronecker
from sordino.workloads.matrix import Matrix
from sordino.workloads.ranges import AllRanges
from sordino.workloads.union import Union

__all__ = ["recognised"]


def recognised(workload: Workload) -> Workload:
    """Return the workload that a matrix is, entry for entry, or the workload itself; of products and unions each part.

    The identity is a `Histogram`, the lower triangle of ones a `RunningSum`, constant diagonals below the main one a
    causal and around the ring a circular `Convolution`, all intervals in order `AllRanges`.
    """
    match workload:
        case Matrix(A=np.ndarray() as A, weights=None):
            return _named(A) or workload
        case Kronecker(factors=factors) if any(isinstance(factor, Matrix) for factor in factors):
            return Kronecker([recognised(factor) for factor in factors])
        case Union(parts=parts, weights=weights) if any(isinstance(part, Matrix) for part in parts):
            return Union([recognised(part) for part in parts], weights)
        case _:
            return workload


def _named(A: Array) -> Workload | None:
    rows, cells = A.shape
    if rows != cells:
        return AllRanges(cells) if rows == cells * (cells + 1) // 2 and _are_ranges(A) else None
    first = A[:, 0]
    if cells == 1 or not first.any():
        return None
    if not _has_constant_diagonals(A):
        return None
    if not np.triu(A, 1).any():
        if (first == 1.0).all():
            return RunningSum(cells)
        return Histogram(cells) if first[0] == 1.0 and not first[1:].any() else Convolution(first, cells, "causal")
    circular = np.array_equal(A[0, 1:], first[:0:-1])
    return Convolution(first, cells, "circular") if circular else None


def _has_constant_diagonals(A: Array) -> bool:
    return bool(np.array_equal(A[1:, 1:], A[:-1, :-1]))


def _are_ranges(A: Array) -> bool:
    """Return whether the rows are all intervals, by their first cell, then by their last."""
    cells = A.shape[1]
    firsts, lasts = np.triu_indices(cells)
    places = np.arange(cells)
    return all(
        np.array_equal(row, (places >= first) & (places <= last))
        for row, first, last in zip(A, firsts, lasts, strict=True)
    )
