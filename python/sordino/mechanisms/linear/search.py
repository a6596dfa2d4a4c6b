"""Searching for what to measure, with a memory of what was found."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np

from sordino import _core
from sordino._support.checks import integer, positive
from sordino.accuracy.factorizations import (
    MOST_ENTRIES,
    SEVERAL_CELLS,
    Certificate,
    Factorization,
    certify,
    condensed,
    dense,
    few_rows,
    kronecker_factors,
    on_cells_of,
)
from sordino.errors import DataTypeError, InvalidParameterError, UnsupportedMechanismError
from sordino.mechanisms.catalogue import Law
from sordino.mechanisms.linear.along_axes import along_axes
from sordino.mechanisms.linear.catalogue import (
    LONG_AXIS,
    WRITTEN,
    has_root_along,
    is_measured_as_it_is,
    is_total,
    of_filters,
    of_ranges,
)
from sordino.mechanisms.linear.effort import searched_along
from sordino.mechanisms.linear.joint import joint_tables
from sordino.privacy.units import AddRemove, ReplaceOne, Unit, UserLevel
from sordino.workloads import Histogram, Intervals, Kronecker, Matrix, Union, Workload
from sordino.workloads.base import Array
from sordino.workloads.recognition import recognised

__all__ = ["Progress", "factorize"]

Progress: TypeAlias = Callable[[int, float], object]
"""Called with the number of the iteration and the certified gap; returning False ends the search."""

_GAP = 1e-4
_LEAST_GAP = 1e-9
_DECOMPOSITION_GAP = 1e-8
# The gap of searches for changes of several cells, and weights that count in the proof.
_SEVERAL_GAP = 0.012
_LEAST_WEIGHT = 1e-6
_ITERATIONS = 3000
_LARGEST_RANK = 4096
_LINE_CELLS = 4096
# Entries of queries whose columns are compared.
_MOST_COMPARED = 2**22
_K_NORM_RANK = 16
_SAFE = 1.0 - 1e-11
_KEPT = 16
# The balanced root is taken up to this error over its bound; else steps are made, at most so many multiplications.
_BALANCED = 1.005
_OPERATIONS = 5 * 10**9
# Steps of one of many searches along an axis, and cells up to which other starts are tried in it.
_AGAIN = 100
_FEW_CELLS = 256
# Variance of a weighted sum of the cells over that of its measurement, at most, so that the cells keep their digits:
# of a table, along an axis of one, and of all axes together where there are tables of several sets of them.
_MOST_UNEVEN = 9e5
_MOST_UNEVEN_ALONG_AXES = 9e3
_MOST_UNEVEN_TOGETHER = 5e3
# The same of sums that a search starts from: heavier ones slow it down.
_LIGHT = 450.0
_LIGHTER = 20.0
# Sums of different cells, and queries, that a search starts from as they are.
_FEW_SUMS = 64
# What is found from queries is taken if it has this much less error: the first has fewer sums.
_GAIN = 0.99
# Cells of the blocks of a filter that are tried, and cells of filters that are searched for as a whole too.
_BLOCKS = (64, 128, 256)
_FEW_FILTERED = 512
# Of more cells for each rank the core looks at some at a time: `optimize/working_set.rs`.
_CELLS_A_RANK = 128


def factorize(
    workload: Workload,
    *,
    kind: str = "optimal",
    law: Law = "gaussian",
    objective: str = "mean",
    gap: float | None = None,
    iterations: int = _ITERATIONS,
    progress: Progress | None = None,
    unit: Unit | None = None,
) -> Factorization:
    """Search for what to measure: public, costs no privacy.

    A search that `progress` ends, or that runs out of iterations, returns the best so far with its own certified
    gap: a valid strategy with a little more error. One that Ctrl-C ends raises `KeyboardInterrupt`. After `progress`
    or Ctrl-C the same call goes on where it stopped ('optimal') or starts again, within one process.

    Args:
        workload: The queries. Kronecker products are solved by factor.
        kind: 'optimal', or another strategy that is found by a search: 'balanced', 'ellipsoid', 'dense',
            'dense-rescaled', 'dense-printed', 'universal', 'p-identity', 'p-identity-tables' (of unions of products
            along the same axes), 'k-norm'; see `sordino.mechanisms.linear.catalogue`.
        law: 'gaussian', or 'laplace' for noise with a norm ('p-identity' and 'k-norm' have no other).
        objective: 'mean' minimises the (weighted) mean squared error, 'max' the largest variance; only 'optimal'
            tells them apart.
        gap: Certified `error/least error - 1` at which the search ends, from 1e-9 to 1; 1e-4 if None. For a unit that
            changes several cells what proves the sensitivity comes on top, and None rises to .012 at 256 cells.
        iterations: Evaluations after which it ends.
        progress: Called with (iteration, gap) after every evaluation; returning False ends the search.
        unit: What one protected thing can change. If that is several cells at once, and there are at most 256,
            'optimal' takes the strategy of least mean error for these changes; any other is made for those of one cell.

    Returns:
        The factorization, for `sordino.plan(..., factorization=...)`.

    Raises:
        DataTypeError: An argument is of the wrong type.
        InvalidParameterError: An argument is out of range.
        UnsupportedMechanismError: The workload is too large, or too ill-conditioned for double precision.
    """
    if not isinstance(workload, Workload):
        raise DataTypeError("workload must be a sordino workload, such as sordino.Matrix(A)")
    if not isinstance(kind, str) or not isinstance(law, str) or (kind, law) not in _SEARCHES:
        known = ", ".join(sorted(f"{kind!r} with {law!r}" for kind, law in _SEARCHES))
        raise InvalidParameterError(f"no such search; there are {known}")
    if not isinstance(objective, str) or objective not in ("mean", "max"):
        raise InvalidParameterError("objective must be 'mean' or 'max'")
    if progress is not None and not callable(progress):
        raise DataTypeError("progress must be callable")
    if unit is not None and not isinstance(unit, AddRemove | ReplaceOne | UserLevel):
        raise DataTypeError("unit must be AddRemove, ReplaceOne or UserLevel")
    found = recognised(workload)
    if isinstance(workload, Matrix) and isinstance(found, Intervals | Kronecker):
        found = workload  # what is found measures its own cells
    counted = (kind, objective, law) == ("optimal", "mean", "gaussian")
    several = unit.changes if unit is not None and counted else None
    workload = on_cells_of(found, several is not None)
    few = (workload.core.input_len or math.inf) <= SEVERAL_CELLS
    changes = None if several is None or not few else (several.most, several.signed)
    if gap is None:
        cells = workload.core.input_len or 0
        gap = _GAP if changes is None else max(_GAP, _SEVERAL_GAP * (cells / SEVERAL_CELLS) ** 2)
    gap, iterations = positive("gap", gap), min(integer("iterations", iterations, least=1), 2**31)
    return _cached(_Search(workload, kind, law, objective, gap, iterations, progress, changes))


@dataclass
class _Search:
    """One search: what for, how long, and how it ended."""

    workload: Workload
    kind: str
    law: str
    objective: str
    gap: float
    iterations: int
    progress: Progress | None
    changes: tuple[int, bool] | None = None
    before: Factorization | None = None
    interrupted: bool = False
    ended: bool = False

    def report(self, iteration: int, gap: float) -> bool:
        answer = None if self.progress is None else self.progress(iteration, gap)
        self.ended |= answer is not None and not answer
        return not self.ended

    def note(self, found: _core.Searched) -> _core.Searched:
        self.interrupted |= found.interrupted
        self.ended |= found.interrupted
        return found


_Key: TypeAlias = tuple[Workload, str, str, str, float, int, tuple[int, bool] | None]
_FOUND: OrderedDict[_Key, tuple[bool, Factorization]] = OrderedDict()


def _cached(search: _Search) -> Factorization:
    """Search, unless the same was found before; go on from where the same search was stopped.

    Searches of another gap are not taken, however good: a plan is a function of its arguments.
    """
    key = (search.workload, search.kind, search.law, search.objective, search.gap, search.iterations, search.changes)
    known = _FOUND.get(key)
    if known is not None:
        whole, found = known
        if whole or (found.gap is not None and found.gap <= search.gap):
            return found
        search.before = found
    found = _SEARCHES[search.kind, search.law](search)
    _FOUND.pop(key, None)  # to the end, whatever other threads do
    _FOUND[key] = (not search.ended, found)
    while len(_FOUND) > _KEPT:
        _FOUND.popitem(last=False)
    if search.interrupted:
        raise KeyboardInterrupt
    return found


def _check_size(workload: Workload, by_mean: bool = True) -> None:
    cells, answers = workload.core.input_len, workload.core.answers_len
    if cells is None:
        raise UnsupportedMechanismError("the full domain is too large for a search; 'fourier' serves marginals")
    few = few_rows(workload) if by_mean and min(cells, answers) > _LARGEST_RANK else None
    rank = min(cells, answers) if few is None else len(few)
    if rank > _LARGEST_RANK or cells * rank > MOST_ENTRIES:
        raise UnsupportedMechanismError(
            f"searches are made for min(queries, cells) up to {_LARGEST_RANK}, and 2**26 entries of a strategy"
        )


_Solve: TypeAlias = Callable[[Array, float, Array | None], _core.Searched]
"""From queries, gap and weights to start from, to a strategy."""


def _optimal(search: _Search) -> Factorization:
    """Least mean or worst-query error."""
    if search.changes is not None:
        return _several(search, *search.changes)

    def solve(queries: Array, gap: float, start: Array | None) -> _core.Searched:
        return _core.optimize_strategy(queries, search.objective, gap, search.iterations, start, search.report)

    return _by_factor(search, solve)


def _several(search: _Search, most: int, signed: bool) -> Factorization:
    """Least mean error for changes of several cells."""
    _check_size(search.workload)
    queries, scale = condensed(search.workload)
    scale *= math.sqrt(len(queries))  # the core's mean is over the condensed rows
    found = search.note(_core.several_strategy(queries, most, signed, search.gap, search.iterations, search.report))
    assert found.changes is not None
    counted = found.cell_weights > _LEAST_WEIGHT * found.cell_weights.max()
    certificate = certify(search.workload, "mean", (found.cell_weights[counted],), (), found.changes[counted])
    return Factorization(
        kind=search.kind,
        law=search.law,
        objective=search.objective,
        factors=(found.strategy,),
        certificate=certificate,
        gap=max(found.upper * scale / certificate.lower - 1.0, 0.0),
        iterations=found.iterations,
    )


def _balanced(search: _Search) -> Factorization:
    """The balanced root; where it is not good enough, a few steps of the search for the optimum, from its weights.

    Of unions of large products roots along each axis, of tables of sets of axes; of a large product a closed form along
    the axes that are too long to be searched along.
    """
    search.objective = "mean"
    products = along_axes(search.workload)
    if products is not None and products.together and (search.workload.core.input_len or 0) > WRITTEN:
        rows, shares = joint_tables(products, "gaussian", partial(_root_along, search), lambda: search.ended)
        return Factorization(search.kind, search.law, search.objective, rows, shares=shares)

    parts = kronecker_factors(search.workload)
    closed = [len(parts) > 1 and has_root_along(part) and not searched_along(part) for part in parts]
    if any(closed):  # a matrix of cells would take bits of the others
        closed = [own or is_measured_as_it_is(part) for part, own in zip(parts, closed, strict=True)]
    if any(closed) and not all(closed):
        rows = tuple(
            np.empty((0, part.core.input_len or 0)) if own else search.note(_root(search, condensed(part)[0])).strategy
            for part, own in zip(parts, closed, strict=True)
        )
        return Factorization(search.kind, search.law, search.objective, rows)
    return _by_factor(search, lambda queries, _gap, _start: _root(search, queries))


def _root(search: _Search, queries: Array) -> _core.Searched:
    found = _balanced_root(search, queries)
    if found is not None and found.lower is not None and found.upper <= _BALANCED * found.lower:
        return found
    rank, cells = queries.shape
    looked_at = min(cells, _CELLS_A_RANK * rank)
    steps = max(min(_OPERATIONS // (rank * rank * looked_at), search.iterations), 1)
    start = None if found is None else found.cell_weights
    better = _core.optimize_strategy(queries, "mean", _BALANCED - 1.0, steps, start, search.report)
    return better if found is None or better.upper < found.upper else found


def _balanced_root(search: _Search, queries: Array) -> _core.Searched | None:
    try:
        return _core.balanced_root(queries, search.report)
    except UnsupportedMechanismError:
        return None


def _root_along(search: _Search, asked: Workload, rows: Array | None, _before: Array | None) -> Array:
    """Return what is measured along an axis, shape (measured, cells); rows may stand for what is asked."""
    if type(asked) is Histogram and rows is None:
        return np.eye(asked.core.input_len or 0)
    if rows is None:
        rows = _one(asked)
    elif rows.shape[1] <= LONG_AXIS:  # beyond, roots are of Gram matrices, of however many rows
        rows = condensed(Matrix(rows))[0]
    # Next to nothing is gained by steps, or known by a proof: there is one search after the other.
    with suppress(UnsupportedMechanismError):
        found = _core.balanced_rows(rows)
        search.report(1, math.inf)
        return found
    return search.note(_root(search, condensed(Matrix(rows))[0])).strategy


def _by_factor(search: _Search, solve: _Solve) -> Factorization:
    """Solve factor by factor: least errors of products multiply."""
    parts = kronecker_factors(search.workload)
    before = None if search.before is None else search.before.certificate
    # Gaps multiply; the least that is served is 1e-9.
    gap = search.gap if len(parts) == 1 else max(math.expm1(math.log1p(search.gap) / len(parts)), _LEAST_GAP)
    results: list[_core.Searched] = []
    iterations, lower, upper = 0, 1.0, 1.0
    for k, part in enumerate(parts):
        _check_size(part, search.objective == "mean")
        if search.objective == "max":
            queries, scale = dense(part), 1.0
        else:
            queries, scale = condensed(part)
            scale *= math.sqrt(len(queries))  # the core's mean is over the condensed rows
        start = None
        if before is not None:
            start = np.concatenate([*before.query_weights[k : k + 1], before.cell_weights[k]])
        if start is None and part in parts[:k]:
            found = results[parts.index(part)]
        else:
            found = search.note(solve(queries, gap, start))
            iterations += found.iterations
        results.append(found)
        assert found.lower is not None
        lower *= found.lower * scale * _SAFE
        upper *= found.upper * scale
    certificate = Certificate(
        search.objective,
        tuple(found.cell_weights for found in results),
        tuple(found.query_weights for found in results) if search.objective == "max" else (),
        lower,
    )
    return Factorization(
        kind=search.kind,
        law=search.law,
        objective=search.objective,
        factors=tuple(found.strategy for found in results),
        certificate=certificate,
        gap=upper / lower - 1.0,
        iterations=iterations,
    )


def _optimal_ellipsoid(search: _Search) -> Factorization:
    """The ellipsoid norm of least error: (rank + 1) times the Gaussian program, so its solution."""
    _one(search.workload)
    best = _optimal(search)
    return Factorization(
        kind=search.kind,
        law=search.law,
        objective=search.objective,
        factors=(best.matrix,),
        blocks=(len(best.matrix),),
        iterations=best.iterations,
    )


def _one(workload: Workload) -> Array:
    """Return the condensed queries of a workload that is searched for as a whole."""
    _check_size(workload)
    return condensed(workload)[0]


def _ellipsoid(search: _Search) -> Factorization:
    """Minimum enclosing ellipsoid of the columns, mapped to the unit ball."""
    found = search.note(_core.minimum_ellipsoid(_one(search.workload), search.gap, search.iterations, search.report))
    return _found(search, found)


def _k_norm(search: _Search) -> Factorization:
    """Noise with the norm of the hull of the columns, rounded by its ellipsoid so that rejection is cheap."""
    queries = _one(search.workload)
    if np.linalg.matrix_rank(queries) > _K_NORM_RANK:
        raise UnsupportedMechanismError(f"exact K-norm noise is drawn up to rank {_K_NORM_RANK}")
    found = search.note(_core.minimum_ellipsoid(queries, search.gap, search.iterations, search.report))
    return _found(search, found, body=True)


def _dense(search: _Search) -> Factorization:
    """Base decomposition with one coefficient a block (Algorithm 2), or one norm a block."""
    coefficients = search.kind.removeprefix("dense").removeprefix("-") or "optimal"
    # Which directions a block gets is decided by the ellipsoid: a loose one mixes them.
    gap, report = min(search.gap, _DECOMPOSITION_GAP), search.report
    found = search.note(
        _core.dense_strategy(_one(search.workload), coefficients, search.law, gap, search.iterations, report)
    )
    assert found.blocks is not None
    if coefficients != "printed":
        return _found(search, found)
    # The paper's noise is for a sensitivity of one: more than that of its strategy.
    edges = np.cumsum(found.blocks)[:-1]
    norms = np.array([np.linalg.norm(block, axis=0) for block in np.split(found.strategy, edges)])
    size = norms.sum(axis=0).max() if search.law == "laplace" else np.sqrt((norms**2).sum(axis=0).max())
    return _found(search, found, excess=max(1.0 / float(size), 1.0))


def _p_identity(search: _Search) -> Factorization:
    """The cells and a few weighted sums of them, independent Laplace noise; of large products along each axis.

    ℓ1 norms of columns multiply, and so do the errors of a product. Of long filters every block is measured alike.
    """
    products = along_axes(search.workload)
    if of_filters(search.workload) and not of_ranges(search.workload):
        return _of_filters(search)
    if products is None or products.few_cells:
        found = _beside_cells(search, search.workload)
        if not len(found.factors[0]):
            raise UnsupportedMechanismError("weighted sums beside the cells do not lower the error")
        return found
    if products.together:
        raise UnsupportedMechanismError("sums along the axes of so many cells are searched for by 'p-identity-tables'")
    (factors,) = products.parts
    totals = {factor: is_total(factor) for factor in factors}  # measured alone
    along = {
        own: _row_of(own) if total else _sums_along(search, _MOST_UNEVEN_ALONG_AXES, own)
        for own, total in totals.items()
    }
    measured, beside = tuple(map(along.__getitem__, factors)), tuple(not totals[factor] for factor in factors)
    if not any(own and len(rows) for rows, own in zip(measured, beside, strict=True)):
        raise UnsupportedMechanismError("weighted sums beside the cells do not lower the error along any axis")
    return Factorization(search.kind, search.law, search.objective, measured, beside_cells=beside)


def _p_identity_tables(search: _Search) -> Factorization:
    """Tables of sets of axes, along each the cells and a few weighted sums of them, independent Laplace noise."""
    products = along_axes(search.workload)
    if products is None or not products.together:
        raise UnsupportedMechanismError("tables of sets of axes are for unions of products along the same axes")
    most_uneven = (1.0 + _MOST_UNEVEN_TOGETHER) ** (1 / len(products.sizes)) - 1.0
    along = partial(_sums_again, search, most_uneven)
    sums, shares = joint_tables(products, "laplace", along, lambda: search.ended)
    beside = (True,) * len(sums)
    return Factorization(search.kind, search.law, search.objective, sums, beside_cells=beside, shares=shares)


def _row_of(few: Workload) -> Array:
    rows = np.abs(dense(few))
    scaled: Array = rows / rows.max()
    return scaled


def _sums_along(
    search: _Search, most_uneven: float, asked: Workload, rows: Array | None = None, start: Array | None = None
) -> Array:
    """Return weighted sums beside the cells of an axis, shape (sums, cells); rows may stand for what is asked."""
    cells = asked.core.input_len or 0
    if type(asked) is Histogram:
        return np.zeros((0, cells), dtype=np.float64)
    found = _beside_cells(search, asked, rows, start, most_uneven)
    (sums,) = found.factors
    return sums if found.beside_cells else _sums(sums)


def _sums_again(
    search: _Search, most_uneven: float, asked: Workload, rows: Array | None, before: Array | None
) -> Array:
    """Return the same in one of many searches: of many cells from what was found before or a tree, nothing else."""
    if before is None and (asked.core.input_len or 0) > _FEW_CELLS:
        before = _blocks(asked)
    return _sums_along(search, most_uneven, asked, rows, before)


def _beside_cells(
    search: _Search,
    workload: Workload,
    rows: Array | None = None,
    start: Array | None = None,
    most_uneven: float = _MOST_UNEVEN,
) -> Factorization:
    cells = workload.core.input_len or 0
    alone = start is not None
    steps = min(search.iterations, _AGAIN) if alone else search.iterations
    starts = [] if start is None else [start]
    if not alone and cells <= _LINE_CELLS:
        starts = _starts(search, workload, most_uneven)
    if rows is None and of_ranges(workload):
        try:
            return _of_line(search, workload, starts, alone, (most_uneven, steps))
        except UnsupportedMechanismError:
            if cells > WRITTEN:
                raise
    if cells * cells > MOST_ENTRIES:
        raise UnsupportedMechanismError(
            f"weighted sums beside the cells are searched for up to {math.isqrt(MOST_ENTRIES):,} cells"
        )
    rows = _one(workload) if rows is None else rows
    found = search.note(_core.p_identity(rows, starts, alone, (most_uneven, steps), search.report))
    own = [] if alone else _queries(workload, most_uneven)
    if own and not search.ended:
        again = search.note(_core.p_identity(rows, own, True, (most_uneven, steps), search.report))
        found = again if again.upper < _GAIN * found.upper else found
    return _found(search, found)


def _of_line(
    search: _Search, workload: Workload, starts: list[Array], alone: bool, limits: tuple[float, int]
) -> Factorization:
    """The same of ranges, whose queries are not written out, and of many cells nothing but the sums."""
    cells = workload.core.input_len or 0
    parts = workload.parts if isinstance(workload, Union) else ()
    if (not starts and cells > WRITTEN) or any(part.answer_weights() is not None for part in parts):
        raise UnsupportedMechanismError(f"weighted sums of cells are searched for ranges of up to {_LINE_CELLS} cells")
    weights = _part_weights(workload)
    found = search.note(_core.p_identity_of_line(workload.core, weights, starts, alone, limits, search.report))
    sums = found.strategy.reshape(-1, cells)
    if cells > WRITTEN:
        return replace(_found(search, found), factors=(sums,), beside_cells=(True,))
    return replace(_found(search, found), factors=(_strategy(sums),))


def _of_filters(search: _Search) -> Factorization:
    """Weighted sums beside all cells, or the same of block after block: of many cells nothing else is searched for."""
    cells, found = search.workload.core.input_len or 0, []
    # Sizes that sums of two, four and more cells fill, and one that fills the series.
    sizes = {*_BLOCKS, -(-cells // max(round(cells / _BLOCKS[-1]), 1))}
    sums, rows_of = np.zeros((0, 1)), _rows_of_filters(search.workload, [size for size in sizes if size < cells])
    for size in sorted(rows_of):
        own = _from_blocks(search, rows_of[size], sums)
        sums = _sums(own.strategy)
        if len(sums):
            alike = replace(_found(search, own), factors=(sums,), beside_cells=(True,))
            found.append((own.upper * math.sqrt(size), alike))
    if cells <= _FEW_FILTERED:
        rows, scale = condensed(search.workload)
        whole = _from_blocks(search, rows, sums)
        found.append((whole.upper * scale * math.sqrt(len(rows)), _found(search, whole)))
    if not found:
        raise UnsupportedMechanismError("weighted sums beside the cells do not lower the error")
    return min(found, key=lambda own: own[0])[1]


def _from_blocks(search: _Search, rows: Array, sums: Array) -> _core.Searched:
    """Search anew, and for a while from the sums of smaller blocks, if there are any."""

    def found(starts: list[Array]) -> _core.Searched:
        limits = _MOST_UNEVEN, search.iterations
        return search.note(_core.p_identity(rows, starts, bool(starts), limits, search.report))

    anew = found([])
    again = found([_repeated(sums, rows.shape[1])]) if len(sums) else anew
    return min(anew, again, key=lambda own: own.upper)


def _rows_of_filters(workload: Workload, sizes: Sequence[int]) -> dict[int, Array]:
    """Return queries of a block of each size, shape (size, size), whose errors sum to those of all blocks."""
    weights = _part_weights(workload) or [1.0]
    parts = workload.parts if isinstance(workload, Union) else (workload,)
    counted = sum(weight * part.core.answers_len for weight, part in zip(weights, parts, strict=True))
    grams: dict[int, Array] = {}
    for size in sorted(sizes, reverse=True):
        larger = next((own for own in grams if own % size == 0), None)
        if larger is None:
            grams[size] = _core.block_gram(workload.core, weights, size).reshape(size, size)
        else:  # two or four in a row are one of the larger
            grams[size] = np.einsum("aiaj->ij", grams[larger].reshape(larger // size, size, larger // size, size))
    rows = {}
    for size, gram in grams.items():
        values, vectors = np.linalg.eigh(gram / counted)
        rows[size] = np.ascontiguousarray((np.sqrt(np.clip(values, 0.0, None)) * vectors).T)
    return rows


def _repeated(sums: Array, cells: int) -> Array:
    """Return the sums of one block after another, of so many cells together."""
    return np.ascontiguousarray(np.kron(np.eye(-(-cells // sums.shape[1])), sums)[:, :cells])


def _sums(strategy: Array) -> Array:
    """Return the weighted sums without the cells before them, in units of what is left of these."""
    cells = strategy.shape[1]
    return np.ascontiguousarray(strategy[cells:] / np.diag(strategy[:cells]))


def _strategy(sums: Array) -> Array:
    """Return what is measured, the cells first: columns of norm 1."""
    norms = 1.0 + sums.sum(axis=0)
    return np.concatenate([np.diag(1.0 / norms), sums / norms])


def _part_weights(workload: Workload) -> list[float] | None:
    return list(workload.weights) if isinstance(workload, Union) else None


def _starts(search: _Search, workload: Workload, most_uneven: float) -> list[Array]:
    """Return weighted sums to start from, shape (sums, cells) each.

    The blocks of a tree and those of all parts; of other queries sums of the cells that none tells apart.
    """
    if not of_ranges(workload):
        starts = [_of_distinct_cells(search, workload, most_uneven)]
    elif isinstance(workload, Union) and not workload.is_even:
        starts = [_blocks(workload), _blocks_of_parts(workload)]
    else:
        starts = [_blocks(workload)]
    return [start for start in starts if start is not None]


def _of_distinct_cells(search: _Search, workload: Workload, most_uneven: float) -> Array | None:
    """Return what is found for the sums of cells that no query tells apart: with them next to no cells are measured."""
    if (workload.core.input_len or 0) * workload.core.answers_len > _MOST_COMPARED:
        return None
    columns, places, counts = np.unique(dense(workload), axis=1, return_inverse=True, return_counts=True)
    together = np.flatnonzero((counts > 1) & columns.any(axis=0))
    if not len(together):
        return None
    rows = _core.condensed(Matrix(columns).core, workload.answer_weights())
    found = search.note(_core.p_identity(rows, [], False, (most_uneven, search.iterations), search.report))
    sums = np.vstack([np.eye(len(counts))[together], _sums(found.strategy)])[:, places.reshape(-1)]
    shared = np.isin(places.reshape(-1), together)
    largest = np.square(sums[:, shared]).sum(axis=1).max(initial=1.0)
    return np.ascontiguousarray(np.where(shared, math.sqrt(min(_LIGHT, most_uneven) / largest), 1.0) * sums)


def _queries(workload: Workload, most_uneven: float) -> list[Array]:
    """Return the queries, where they are few, as sums to start from: with next to no cells beside them, or some."""
    if workload.core.answers_len > _FEW_SUMS or (workload.core.input_len or 0) > WRITTEN:
        return []
    weights, rows = workload.answer_weights(), np.abs(dense(workload))
    largest = rows.max(axis=1)
    with np.errstate(under="ignore"):
        counted = np.square(largest / largest.max()) * (1.0 if weights is None else weights / weights.max())
    asked = counted > 0.0
    sums, places = np.unique(rows[asked] / largest[asked, None], axis=0, return_inverse=True)
    counted = np.bincount(places.reshape(-1), weights=counted[asked])
    several = (sums > 0.0).sum(axis=1) > 1
    if not several.any():
        return []
    # Of queries each for itself the best weights are cubic roots of what their squared errors count.
    best = np.cbrt(counted[several, None]) * sums[several]
    return [
        np.ascontiguousarray(math.sqrt(min(size, most_uneven) / np.square(own).sum(axis=1).max()) * own)
        for size, own in ((_LIGHT, sums[several]), (_LIGHTER, best))
    ]


def _blocks(workload: Workload) -> Array | None:
    """Return the weighted blocks of a tree over the cells, one a row, None if none serves or no blocks pay."""
    try:
        (_, single), *blocks = _core.tree_blocks(workload.core, _part_weights(workload))
    except UnsupportedMechanismError:
        return None
    return _rows_of_blocks(workload, {size: weight / single for size, weight in blocks})


def _blocks_of_parts(workload: Union) -> Array | None:
    """Return what the parts are measured by, trees, cells and few sums of different cells, each with its best share."""
    blocks, sums = {1: 0.0}, []
    for part, counted in zip(workload.parts, workload.weights, strict=True):
        if type(part) is not Histogram and part.core.answers_len <= _FEW_SUMS:
            own = _row_of(part)
            if own.sum(axis=0).max() <= 1.0:
                sums.append(np.cbrt(2.0 * counted * len(own)) * own)
                continue
        tree = [(1, 1)] if type(part) is Histogram else _core.tree_blocks(part.core)
        known = _core.Strategy(part.core, "weighted-tree", "laplace").spread()
        if known is None:
            return None
        column = sum(weight for _, weight in tree)
        share = np.cbrt(counted * part.core.answers_len * known[0] * column**2)
        for size, weight in tree:
            blocks[size] = blocks.get(size, 0.0) + share * weight / column
    single = blocks.pop(1)
    trees = _rows_of_blocks(workload, blocks)
    rows = sums if trees is None else [*sums, trees]
    return np.concatenate(rows) / single if rows and single else None


def _rows_of_blocks(workload: Workload, blocks: dict[int, float]) -> Array | None:
    """Return the blocks of cells of these sizes, one a row with the weight of its size."""
    cells = np.arange(workload.core.input_len or 0)
    rows = [weight * (cells // size == k) for size, weight in blocks.items() for k in range(-(-len(cells) // size))]
    return np.array(rows, dtype=np.float64) if rows else None


def _universal(search: _Search) -> Factorization:
    """The answers themselves, in orthonormal coordinates of their column space."""
    _, values, rows = np.linalg.svd(_one(search.workload), full_matrices=False)
    rank = int(np.sum(values > 1e-12 * values[0]))
    matrix = np.ascontiguousarray(values[:rank, None] * rows[:rank])
    return Factorization(kind=search.kind, law=search.law, objective=search.objective, factors=(matrix,))


def _found(search: _Search, found: _core.Searched, *, body: bool = False, excess: float = 1.0) -> Factorization:
    return Factorization(
        kind=search.kind,
        law=search.law,
        objective=search.objective,
        factors=(found.strategy,),
        blocks=None if found.blocks is None else tuple(found.blocks),
        body=body,
        excess=excess,
        iterations=found.iterations,
    )


_SEARCHES: dict[tuple[str, str], Callable[[_Search], Factorization]] = {
    ("optimal", "gaussian"): _optimal,
    ("balanced", "gaussian"): _balanced,
    ("ellipsoid", "gaussian"): _ellipsoid,
    ("ellipsoid", "laplace"): _optimal_ellipsoid,
    ("dense", "gaussian"): _dense,
    ("dense", "laplace"): _dense,
    ("dense-rescaled", "gaussian"): _dense,
    ("dense-rescaled", "laplace"): _dense,
    ("dense-printed", "gaussian"): _dense,
    ("dense-printed", "laplace"): _dense,
    ("universal", "gaussian"): _universal,
    ("p-identity", "laplace"): _p_identity,
    ("p-identity-tables", "laplace"): _p_identity_tables,
    ("k-norm", "laplace"): _k_norm,
}
