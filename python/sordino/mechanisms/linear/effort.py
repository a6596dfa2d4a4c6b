"""Which searches are made without being named: from public sizes alone."""

from typing import TYPE_CHECKING

import numpy as np

from sordino._support.nested_groups import nested_groups
from sordino.accuracy.factorizations import (
    MOST_ELIMINATED,
    eliminated_rows,
    few_rows,
    kronecker_factors,
)
from sordino.mechanisms.linear.along_axes import AlongAxes, along_axes
from sordino.mechanisms.linear.catalogue import (
    LONG_AXIS,
    MOST_ROOTS,
    WRITTEN,
    has_root_along,
    is_laminar,
    is_measured_as_it_is,
    of_filters,
    of_ranges,
)
from sordino.workloads import (
    Filter,
    GroupBy,
    GroupConvolution,
    Histogram,
    Kronecker,
    Marginals,
    Union,
    Workload,
)

if TYPE_CHECKING:
    from sordino.mechanisms.fits import Objective, Request

__all__ = ["affords", "improves", "searched_along"]

# Cells up to which the optimal strategy, and those of pure privacy, are searched for.
_CELLS = {"gaussian": 512, "laplace": 256}
# The same where the search starts from the blocks of a tree, and writes nothing out but sums.
_TREE_CELLS = 4096
_WIDE_CELLS = 2**20
# Cells of a block of a filter, multiplications for sums of products of a tap, and for all blocks.
_BLOCK = 128
_SUMS = 8
_MOST_OF_BLOCKS = _WIDE_CELLS * (_BLOCK**2 + _BLOCK * (1 + _SUMS))
_MAX_ENTRIES = 2**25
# Cells of a product times those along its axes, some ten of which share a sum.
_MOST_ALONG_AXES = 2**34
# Cells times squared rows where those are few.
_MAX_WORK = 2**33


def affords(request: "Request", law: str, strategy: str = "optimal") -> bool:
    """Whether a search is quick enough to be made unasked; the balanced root is, where the optimum is not."""
    if request.effort != "optimize":
        return False
    # Of nested groups closed forms are as good.
    asked = request.workload
    nested = isinstance(asked, Union) and is_laminar(asked) and nested_groups(asked) is not None
    workload = asked if nested else asked.merged
    products, cells = along_axes(workload), workload.core.input_len or 0
    if strategy == "balanced" and products is not None and products.together and cells > WRITTEN:
        return _quick_along_axes(products, cells, law)
    if strategy == "balanced" and (affords(request, law) or _attained(workload, request.objective)):
        return False
    most = _CELLS[law]
    if strategy == "p-identity" and products is not None and not products.few_cells:
        return _quick_along_axes(products, cells, law)
    if strategy == "p-identity" and of_ranges(workload):
        if WRITTEN < cells <= _TREE_CELLS:
            return True
        most = WRITTEN
    elif strategy == "p-identity" and of_filters(workload):
        return _affords_blocks(workload)
    by_factor = law == "gaussian" and isinstance(workload, Kronecker)
    parts = kronecker_factors(workload) if by_factor else (workload,)
    if strategy == "balanced":
        closed = [part for part in parts if not searched_along(part)]
        roots = [part for part in closed if not is_measured_as_it_is(part)]
        return not closed or (len(parts) > 1 and len(roots) <= MOST_ROOTS and all(map(has_root_along, closed)))
    # What is made for the mean alone may have the least largest error too.
    objective = "mean" if strategy == "p-identity" else request.objective
    return all(_quick(part, objective, most) for part in parts)


def searched_along(factor: Workload) -> bool:
    """Return whether a balanced root is searched for along an axis in seconds."""
    return _quick(factor, "mean", WRITTEN) or _is_wide(factor)


def _affords_blocks(workload: Workload) -> bool:
    """Whether blocks of cells are searched for, and their errors known, in seconds: few taps take less."""
    parts = workload.parts if isinstance(workload, Union) else (workload,)
    cells, work = workload.core.input_len or 0, 0
    for part in parts:
        if isinstance(part, Filter):
            places = np.flatnonzero(part.kernel)
            ring = part.boundary == "circular"
            taps = cells if ring else int(places[-1]) + 1 if len(places) else 0
            # A form for every place at which a block meets a tap.
            forms = cells if ring else min(_BLOCK * len(places), taps)
            work += _BLOCK**2 * forms + _BLOCK * (cells + _SUMS * taps)
    return work <= _MOST_OF_BLOCKS


def _quick_along_axes(products: AlongAxes, cells: int, law: str) -> bool:
    """Whether what is measured along every axis is found, and measured, in seconds."""
    along = 0
    for k, size in enumerate(products.sizes):
        if products.measured_as_they_are(k):
            continue
        pure = _TREE_CELLS if products.of_ranges(k) else LONG_AXIS
        if size > (pure if law == "laplace" else WRITTEN):
            return False
        along += size
    return along * cells <= _MOST_ALONG_AXES


def _quick(workload: Workload, objective: "Objective", most: int) -> bool:
    cells = workload.core.input_len
    if cells is None or cells > most:
        return False
    rows = eliminated_rows(workload) if objective == "mean" else workload.core.answers_len
    return rows * cells <= _MAX_ENTRIES and (objective != "mean" or rows * cells * cells <= MOST_ELIMINATED)


def _is_wide(workload: Workload) -> bool:
    """Whether few queries are asked of many cells, or stand for all: a step takes time by their number squared."""
    cells, answers = workload.core.input_len, workload.core.answers_len
    if cells is None or cells > _WIDE_CELLS:
        return False
    if answers >= cells or answers > _CELLS["gaussian"]:
        few = few_rows(workload)
        return few is not None and len(few) ** 2 * cells <= _MAX_WORK
    return answers * cells <= _MAX_ENTRIES and answers * answers * cells <= _MAX_WORK


def improves(request: "Request") -> bool:
    """Whether a search may find a better Gaussian mechanism, or a better bound, than the closed forms."""
    if request.unit.changes is not None and request.objective == "mean":
        # Symmetric under all permutations of cells: independent noise, or common noise beside it.
        return affords(request, "gaussian") and not isinstance(request.workload, Histogram)
    return affords(request, "gaussian") and not _attained(request.workload, request.objective)


def _attained(workload: Workload, objective: "Objective") -> bool:
    """Whether a closed form attains the nuclear-norm bound: symmetric under a group acting on cells and answers."""
    match workload:
        case Histogram() | GroupConvolution() | Filter(boundary="circular"):
            return True
        case Marginals():
            return objective == "mean"
        case GroupBy():
            return objective == "mean" and workload.equal_levels and workload.nested
        case _:
            return False
