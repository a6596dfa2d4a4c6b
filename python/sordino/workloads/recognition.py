"""Matrices that are another workload, row for row: it has closed forms that no matrix has."""

import math
from operator import is_

import numpy as np

from sordino import _core
from sordino.errors import InvalidParameterError
from sordino.workloads.base import Array, Workload
from sordino.workloads.filters import Convolution, RunningSum
from sordino.workloads.group_by import GroupBy
from sordino.workloads.histogram import Histogram
from sordino.workloads.intervals import Intervals
from sordino.workloads.kronecker import Kronecker
from sordino.workloads.marginal_queries import MarginalQueries
from sordino.workloads.marginals import Marginals
from sordino.workloads.matrix import CompressedRows, Matrix
from sordino.workloads.ranges import AllRanges
from sordino.workloads.union import Union, joined, weighted

__all__ = ["along_attributes", "recognised"]

# Of a sparse matrix: more are not held dense.
_MOST_ENTRIES = 2**24
# Cells up to which the strategy of least error is searched for as they are.
_SEARCHED = 512
# Axes of a table that looks like records.
_TABLE_AXES = 2
_MOST_LEVELS = 2**16


def recognised(workload: Workload) -> Workload:
    """Return the workload that a matrix is, entry for entry, or the workload itself; of products and unions each part.

    The identity is a `Histogram`, the lower triangle of ones a `RunningSum`, constant diagonals below the main one a
    causal and around the ring a circular `Convolution`, all intervals in order `AllRanges`, rows of ones in a row
    `Intervals`, and a row of ones along an axis of a product the group of all cells. A matrix of many cells that is a
    product of two, as `numpy.kron` writes it, is a flat `Kronecker`. Products within products are one product, unions
    within unions one union, and joined or weighted marginals of the same attributes are marginals. Sparse matrices are
    looked at where they can be held dense. Equal weights of all queries are none. A matrix whose queries have names
    keeps them, and stays as it is.
    """
    return _in_parts(_unweighted(workload))


def _unweighted(workload: Workload) -> Workload:
    match workload:
        case Matrix(A=A, weights=np.ndarray() as weights, names=None) if (weights == weights[0]).all():
            return Matrix(A)
        case Intervals(weights=np.ndarray() as weights) if (weights == weights[0]).all():
            return Intervals(workload.first, workload.last, workload.length)
        case Kronecker(factors=factors):
            return _kept(workload, [_unweighted(factor) for factor in factors])
        case _:
            return workload


def _in_parts(workload: Workload, along_axis: bool = False) -> Workload:
    match workload:
        case Matrix(weights=None, names=None) if along_axis:
            return _named(workload) or workload
        case Matrix(weights=None, names=None):
            found = _named(workload) or _as_intervals(workload)
            if found is None or isinstance(found, Convolution | Intervals):
                found = _as_product(workload) or found
            return found or workload
        case Matrix(names=None) if not along_axis:
            return _as_intervals(workload) or workload
        case Kronecker(factors=factors):
            parts = (_total(_in_parts(factor, along_axis=True)) for factor in factors)
            return _kept(workload, [own for part in parts for own in _factors(part)])
        case Union(parts=parts):
            if workload.layout is None and any(isinstance(part, Union) for part in parts):
                return _in_parts(joined(*map(weighted, parts, workload.weights)))
            return _one_set_of_tables(workload) or _kept(workload, [_in_parts(part, along_axis) for part in parts])
        case _:
            return workload


def _one_set_of_tables(union: Union) -> Marginals | None:
    """Return the marginals that all parts together are, table for table.

    Of two attributes there are none: a table of counts of theirs looks like records.
    """
    tables = [part for part in union.parts if isinstance(part, Marginals)]
    if len(tables) < len(union.parts) or union.layout is not None:
        return None
    first = tables[0]
    alike = all(part.levels == first.levels and part.total_share == first.total_share for part in tables)
    sets = [chosen for part in tables for chosen in part.sets]
    if not alike or len(first.levels) == _TABLE_AXES or len(set(sets)) < len(sets):
        return None
    weights = [weight * own for part, weight in zip(tables, union.weights, strict=True) for own in part.weights]
    return Marginals(first.levels, sets=sets, weights=weights, total_share=first.total_share)


def along_attributes(workload: Workload) -> MarginalQueries | None:
    """Return the queries along attributes that products of one table are, answer for answer; None of others.

    Along every axis each product asks the same queries, or for the total.
    """
    if isinstance(workload, MarginalQueries):
        return workload
    if not isinstance(workload, Union):
        return None
    whole = [part for part in workload.parts if isinstance(part, MarginalQueries)]
    if whole:
        return _joined(whole, workload)
    if len(workload.parts) == 1:
        return None
    products = [_axes(part) for part in workload.parts]
    if any(len(axes) != len(products[0]) or any(len(own.input_shape) != 1 for own in axes) for axes in products):
        return None
    queries: list[Workload | None] = [None] * len(products[0])
    sets = []
    for axes in products:
        asked = [i for i, own in enumerate(axes) if not _is_total(own)]
        sets.append(asked)
        for i in asked:
            if queries[i] not in {None, axes[i]}:
                return None
            queries[i] = axes[i]
    levels = [own.input_shape[0] for own in products[0]]
    filled = [Histogram(n) if own is None else own for own, n in zip(queries, levels, strict=True)]
    plain = all(own.is_listed and own.answer_weights() is None for own in filled)
    if not plain or min(levels) == 1 or max(levels) > _MOST_LEVELS or len({*map(tuple, sets)}) < len(sets):
        return None
    try:
        return MarginalQueries(filled, sets=sets, weights=workload.weights)
    except InvalidParameterError:  # more answers than are listed
        return None


def _joined(parts: list[MarginalQueries], union: Union) -> MarginalQueries | None:
    """Return the marginal queries that all parts together are, if they ask the same of every attribute."""
    sets = [chosen for part in parts for chosen in part.sets]
    alike = len(parts) == len(union.parts) and all(part.queries == parts[0].queries for part in parts)
    if not alike or len(set(sets)) < len(sets):
        return None
    weights = [weight * own for part, weight in zip(parts, union.weights, strict=True) for own in part.weights]
    return MarginalQueries(parts[0].queries, sets=sets, weights=weights)


def _axes(part: Workload) -> tuple[Workload, ...]:
    return tuple(map(Histogram, part.input_shape)) if isinstance(part, Histogram) else _factors(part)


def _is_total(factor: Workload) -> bool:
    """Return whether the sum of all cells is asked for, and nothing else."""
    return (
        isinstance(factor, GroupBy)
        and factor.labels.shape[0] == 1
        and bool((factor.labels == 0).all())
        and (set(factor.weights) == {1.0})
    )


def _kept(workload: Kronecker | Union, parts: list[Workload]) -> Workload:
    """Return the workload of these parts: itself if they are its own, the part if it is a product of one."""
    own = workload.factors if isinstance(workload, Kronecker) else workload.parts
    if len(parts) == len(own) and all(map(is_, parts, own)):
        return workload
    if isinstance(workload, Union):
        return Union(parts, workload.weights)
    return parts[0] if len(parts) == 1 else Kronecker(parts, flat=workload.flat)


def _factors(workload: Workload) -> tuple[Workload, ...]:
    return workload.factors if isinstance(workload, Kronecker) and not workload.flat else (workload,)


def _total(factor: Workload) -> Workload:
    """Return one row of ones as the group that it is: along an axis it has a closed form."""
    if not isinstance(factor, Matrix) or factor.weights is not None or factor.names is not None:
        return factor
    rows, cells = factor.A.shape
    if rows != 1 or cells > _MOST_ENTRIES:
        return factor
    row: Array = factor.A if isinstance(factor.A, np.ndarray) else _core.dense(factor.core)
    return GroupBy(np.zeros(cells, dtype=np.int64)) if bool((row == 1.0).all()) else factor


def _named(matrix: Matrix) -> Workload | None:
    rows, cells = matrix.A.shape
    if not isinstance(matrix.A, np.ndarray) and rows * cells > _MOST_ENTRIES:
        return None
    A = matrix.A if isinstance(matrix.A, np.ndarray) else _core.dense(matrix.core)
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


def _as_intervals(matrix: Matrix) -> Intervals | None:
    """Return the intervals that all rows are the sums of, None if one is another query."""
    A = matrix.A
    if isinstance(A, CompressedRows):
        if not (np.diff(A.indptr) > 0).all() or not (A.data == 1.0).all():
            return None
        first, last = A.indices[A.indptr[:-1]], A.indices[A.indptr[1:] - 1]
        alike = bool((last - first + 1 == np.diff(A.indptr)).all())
    else:
        ones = A == 1.0
        first, last = ones.argmax(axis=1), A.shape[1] - 1 - ones[:, ::-1].argmax(axis=1)
        alike = bool(
            (ones | (A == 0.0)).all() and ones.any(axis=1).all() and (ones.sum(axis=1) == last - first + 1).all()
        )
    return Intervals(first, last, A.shape[1], matrix.weights) if alike else None


def _as_product(matrix: Matrix) -> Kronecker | None:
    """Return the product that a matrix is, entry for entry; None of few cells, which are searched for as they are.

    One entry of either factor is taken as 1, so that of entries that are no whole numbers not all products are found.
    """
    rows, cells = matrix.A.shape
    if cells <= _SEARCHED or (not isinstance(matrix.A, np.ndarray) and rows * cells > _MOST_ENTRIES):
        return None
    A = matrix.A if isinstance(matrix.A, np.ndarray) else _core.dense(matrix.core)
    factors = []
    while (found := _split(A)) is not None:
        first, A = found
        factors.append(first)
    if not factors:
        return None
    parts: list[Workload] = []
    for factor in (*factors, A):
        part = _total(_in_parts(Matrix(factor), along_axis=True))
        if parts and type(parts[-1]) is type(part) is Histogram:
            part = Histogram(parts.pop().core.answers_len * part.core.answers_len)
        parts.append(part)
    return Kronecker(parts, flat=True)


def _split(A: Array) -> tuple[Array, Array] | None:
    """Return two matrices of which A is the product, the first as small as it can be; None if there are none."""
    rows, cells = A.shape
    row, cell = divmod(int((A != 0.0).argmax()), cells)
    for above in _divisors(rows):
        for left in _divisors(cells):
            below, right = rows // above, cells // left
            if (above, left) == (1, 1) or (below, right) == (1, 1):
                continue
            first = A[row % below :: below, cell % right :: right]
            block = A[row - row % below :, cell - cell % right :][:below, :right]
            line, column = first[row // below], first[:, cell // right]
            # One row and one column of most others tell.
            if not np.array_equal(A[row], np.kron(line, block[row % below] / A[row, cell])):
                continue
            if not np.array_equal(A[:, cell], np.kron(column, block[:, cell % right] / A[row, cell])):
                continue
            block = block / A[row, cell]
            if all(np.array_equal(A[k * below : (k + 1) * below], np.kron(own, block)) for k, own in enumerate(first)):
                return first, block
    return None


def _divisors(number: int) -> list[int]:
    small = [k for k in range(1, math.isqrt(number) + 1) if number % k == 0]
    return sorted({*small, *(number // k for k in small)})


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
