"""The workloads of `optimality.py`: series of one kind at growing sizes, and what is asked of the plans for them.

Sizes are cells wherever a table has any number of them, so that one axis serves all; those of a power of two and one more
are where a search could give way to a closed form.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.sparse
from harness import quick
from numpy.typing import NDArray

import sordino as so
from sordino.workloads import (
    BandPass,
    Difference,
    GroupConvolution,
    Intervals,
    MarginalQueries,
    PolynomialDecay,
    Union,
    Workload,
)
from sordino.workloads.filters import Boundary

__all__ = ["CATALOGUE", "Series"]

_LINE = (64, 256, 257, 512, 513, 1024, 1025, 4096, 2**16, 2**20)
_FILTERS = (*_LINE[:-1], 2**18)
_SHORT = (64, 256, 257, 512, 513, 1024, 1025)
_SQUARES = (64, 256, 1024, 4096, 2**14, 2**16, 2**20)
_CUBES = (64, 512, 4096, 2**15, 2**18)
_ATTRIBUTES = (20, 50, 100)
# A closed form attains the bound; what is left is what the lattice costs.
_ATTAINED = 1.0005
_RANGES, _SUMS, _PRODUCT, _CUBE = 1.001, 1.006, 1.006**2, 1.006**3
_HIERARCHY, _MATRIX, _WIDE, _UNION = 1.002, 1.01, 1.1, 1.16


@dataclass(frozen=True)
class Series:
    """One kind of workload at several sizes.

    Attributes:
        family: Families share a panel of the picture.
        name: What is asked.
        build: From the size to the workload.
        sizes: In rising order; cells, unless `counts` says what.
        goal: Most that the error may be over the bound of Gaussian mechanisms.
        counts: What a size counts.
    """

    family: str
    name: str
    build: Callable[[int], Workload]
    sizes: tuple[int, ...]
    goal: float
    counts: str = "cells"

    @property
    def run(self) -> tuple[int, ...]:
        """The sizes of this run: all of them; in a short one the first, and the second if it is small."""
        if not quick():
            return self.sizes
        return self.sizes[: 2 if self.counts == "cells" and self.sizes[1] <= 256 else 1]


def _rng() -> np.random.Generator:
    """Return the same numbers for every size, so that neighbours are alike."""
    return np.random.default_rng(1)


def _root(size: int, axes: int = 2) -> int:
    return round(math.pow(size, 1.0 / axes))


def _total(cells: int) -> Workload:
    return so.GroupBy(np.zeros(cells, dtype=int))


def _weighed_total(build: Callable[[int], Workload], cells: int) -> Workload:
    """Return queries and the total, which counts as much as all of them."""
    return build(cells) | cells * _total(cells)


def _heavy_cells(cells: int) -> Workload:
    return so.AllRanges(cells) | cells * cells / 16.0 * so.Histogram(cells)


def _by(*factors: Workload) -> Workload:
    return so.Kronecker(factors)


# Filters.


def _average(boundary: Boundary, length: int) -> Workload:
    """Return means over a root of the steps."""
    return so.MovingAverage(math.isqrt(length), length, boundary=boundary)


def _smoothed(decay: float, boundary: Boundary, length: int) -> Workload:
    return so.ExponentialSmoothing(decay, length, boundary=boundary)


def _window(length: int, window: int) -> Workload:
    return so.SlidingWindow(window, length, boundary="valid")


def _bell(length: int) -> Workload:
    return so.Convolution(np.exp(-0.02 * np.square(np.arange(-20.0, 21.0))), length, boundary="same")


def _autoregression(length: int) -> Workload:
    """Return `y_t = 1.6 y_(t-1) - 0.8 y_(t-2) + x_t`."""
    response = np.zeros(length)
    response[0], response[1] = 1.0, 1.6
    for t in range(2, length):
        response[t] = 1.6 * response[t - 1] - 0.8 * response[t - 2]
        if abs(response[t]) + abs(response[t - 1]) < 1e-9:
            break
    return so.Convolution(response, length, boundary="causal")


def _two_sided(length: int) -> Workload:
    reach = np.abs(np.arange(-100, 101)[max(100 - length // 2, 0) : 101 + min(100, length // 2)])
    return so.Convolution(0.9**reach, length, boundary="same")


def _random_ring(length: int) -> Workload:
    return so.Convolution(_rng().normal(size=16), length)


# Groups.


def _equal(base: int, cells: int) -> list[NDArray[np.int64]]:
    """Return levels of groups of `base`, from single cells to all of them."""
    levels, block = [np.arange(cells)], 1
    while block < cells:
        block = min(base * block, cells)
        levels.append(np.arange(cells) // block)
    return levels


def _uneven(cells: int) -> NDArray[np.int64]:
    """Return groups whose sizes rise."""
    groups = np.sqrt(np.arange(cells) / cells) * math.sqrt(cells)
    return np.unique(groups.astype(np.int64), return_inverse=True)[1]


def _ragged(cells: int) -> list[NDArray[np.int64]]:
    return [np.arange(cells), _uneven(cells), np.zeros(cells, dtype=np.int64)]


def _crossing(cells: int) -> list[NDArray[np.int64]]:
    side = _root(cells)
    return [np.arange(cells) // side, np.arange(cells) % side, np.zeros(cells, dtype=np.int64)]


def _shuffled(cells: int) -> list[NDArray[np.int64]]:
    """Return two groupings that have nothing to do with each other, beside the cells."""
    rng, groups = _rng(), max(cells // 16, 1)
    return [np.arange(cells), *(np.unique(rng.integers(0, groups, cells), return_inverse=True)[1] for _ in range(2))]


def _districts(cells: int) -> list[NDArray[np.int64]]:
    """Return random cuts of the line, each level one of the level below."""
    rng, levels, starts = _rng(), [np.arange(cells)], np.arange(cells)
    while len(starts) > 4:
        kept = np.sort(rng.choice(len(starts) - 1, len(starts) // 5, replace=False) + 1)
        starts = np.r_[0, starts[kept]]
        levels.append(np.searchsorted(starts, np.arange(cells), side="right") - 1)
    return levels


# Marginals.


def _binary(k: int, cells: int) -> Workload:
    return so.Marginals([2] * (cells.bit_length() - 1), k=k)


def _all_up_to_two(cells: int) -> Workload:
    d = cells.bit_length() // 2
    return so.Marginals([4] * d, k=1) | so.Marginals([4] * d, k=2)


def _mixed(cells: int) -> Workload:
    levels, left = [], cells
    for level in (2, 16, 4, 8, 2, 16, 4, 8, 2, 16):
        if left < 2:
            break
        levels.append(min(level, left))
        left //= level
    return so.Marginals(levels, k=2)


def _ranges_by_levels(d: int) -> Workload:
    """All pairs of attributes of ten values, of every other one its ranges."""
    return MarginalQueries([so.AllRanges(10) if i % 2 else so.Histogram(10) for i in range(d)], k=2)


def _weighted_marginals(cells: int) -> Workload:
    d = cells.bit_length() - 1
    sets = [(i, (i + 1) % d) for i in range(d)]
    return so.Marginals([2] * d, sets=sets, weights=1.0 + np.arange(d))


# Unions.


def _margins(build: Callable[[int], Workload], cells: int) -> list[Workload]:
    """Return the same queries along either axis of a square, of all the other axis."""
    side = _root(cells)
    return [so.Kronecker([build(side), _total(side)]), so.Kronecker([_total(side), build(side)])]


def _both_and_margins(build: Callable[[int], Workload], cells: int) -> Workload:
    side = _root(cells)
    return so.Kronecker([build(side), build(side)]) | Union(_margins(build, cells))


def _ranges_of_groups(cells: int) -> Workload:
    side = _root(cells)
    table = so.Kronecker([so.AllRanges(side), so.Histogram(side)])
    return table | Union(_margins(so.AllRanges, cells))


def _pairs_of_three(build: Callable[[int], Workload], cells: int) -> Workload:
    side = _root(cells, 3)
    q, t = build(side), _total(side)
    return Union([so.Kronecker([q, q, t]), so.Kronecker([q, t, q]), so.Kronecker([t, q, q])])


def _windows(length: int) -> Workload:
    return so.SlidingWindow(7, length) | so.SlidingWindow(28, length) | so.Histogram(length)


def _random_intervals(cells: int) -> Workload:
    first, last = np.sort(_rng().integers(0, cells, (2, 20 * cells)), axis=0)
    return Intervals(first, last, cells)


def _whole_hours(cells: int) -> Workload:
    """Return random intervals of cells that come in sixteens."""
    hours = _random_intervals(cells // 16)
    return Intervals(16 * hours.first, 16 * hours.last + 15, cells)


def _hours_beside_totals(cells: int) -> Workload:
    n = cells // 4
    return _by(_whole_hours(n), so.Histogram(4)) | _by(so.GroupBy([[0] * n]), so.AllRanges(4))


def _short_intervals(cells: int) -> Workload:
    rng = _rng()
    first = rng.integers(0, cells, 4 * cells)
    return Intervals(first, np.minimum(first + rng.integers(0, 20, 4 * cells), cells - 1), cells)


# Matrices.


def _normals(cells: int, rows: int | None = None) -> Workload:
    return so.Matrix(_rng().normal(size=(rows or 2 * cells, cells)))


def _zero_one(cells: int) -> Workload:
    A = (_rng().random((3 * cells, cells)) < 0.1).astype(float)
    return so.Matrix(A[A.any(axis=1)])


def _sparse(cells: int) -> Workload:
    rng, ones = _rng(), cells * 64 // 50
    places = rng.choice(64 * cells, ones, replace=False)
    return so.Matrix(scipy.sparse.csr_array((np.ones(ones), divmod(places, cells)), shape=(64, cells)))


def _intervals(cells: int) -> Workload:
    ends = np.sort((_rng().random((4 * cells, 2)) * (cells + 1)).astype(int), axis=1)
    places = np.arange(cells)
    A = ((places >= ends[:, :1]) & (places < ends[:, 1:])).astype(float)
    return so.Matrix(A[A.any(axis=1)])


def _low_rank(cells: int) -> Workload:
    rng = _rng()
    return so.Matrix(rng.normal(size=(2 * cells, 20)) @ rng.normal(size=(20, cells)))


def _weighted_rows(cells: int) -> Workload:
    rng = _rng()
    return so.Matrix(rng.normal(size=(2 * cells, cells)), weights=np.exp(2.0 * rng.normal(size=2 * cells)))


def _scaled_columns(cells: int) -> Workload:
    rng = _rng()
    return so.Matrix(rng.normal(size=(2 * cells, cells)) * np.exp(rng.normal(size=cells)))


def _few_prefixes(cells: int) -> Workload:
    """Return the sums up to 64 places."""
    ends = np.sort(_rng().random(64)) * cells
    return so.Matrix((np.arange(cells) <= ends[:, None]).astype(float))


def _late_sums(cells: int) -> Workload:
    return so.Matrix(np.tri(cells), weights=1.0 + np.arange(cells) / cells * 9.0)


# Groups that act.


def _threshold(cells: int) -> Workload:
    d = cells.bit_length() - 1
    ones = np.bitwise_count(np.arange(cells)).reshape((2,) * d)
    return GroupConvolution((ones <= d // 4).astype(float))


def _torus(cells: int) -> Workload:
    side = _root(cells)
    near = np.minimum(np.arange(side), side - np.arange(side)) <= side // 8
    return GroupConvolution(np.outer(near, near).astype(float))


def _random_group(cells: int) -> Workload:
    return GroupConvolution(_rng().normal(size=(4, cells // 16, 4)))


Entry = tuple[str, Callable[[int], Workload], float]


def _family(family: str, sizes: tuple[int, ...], *entries: Entry, counts: str = "cells") -> list[Series]:
    return [Series(family, name, build, sizes, goal, counts) for name, build, goal in entries]


CATALOGUE: tuple[Series, ...] = (
    *_family(
        "ranges and sums",
        _LINE,
        ("all ranges", so.AllRanges, _RANGES),
        ("all ranges and cells", lambda n: so.AllRanges(n) | so.Histogram(n), _RANGES),
        ("all ranges and heavy cells", _heavy_cells, _RANGES),
        ("all ranges and running sums", lambda n: so.AllRanges(n) | n * so.RunningSum(n), _SUMS),
        ("running sums", so.RunningSum, _SUMS),
        ("running sums and cells", lambda n: so.RunningSum(n) | so.Histogram(n), _SUMS),
        ("running sums and the total", partial(_weighed_total, so.RunningSum), _SUMS),
        ("cells", so.Histogram, _ATTAINED),
    ),
    *_family("ranges and sums", (*_SHORT, 4096, 2**14), ("20n random intervals", _random_intervals, _MATRIX)),
    *_family("ranges and sums", _FILTERS, ("4n intervals of at most 20", _short_intervals, _MATRIX)),
    *_family(
        "causal filters",
        _LINE,
        ("window of a root", partial(_average, "causal"), _SUMS),
        ("decay over the whole", lambda n: _smoothed(1.0 - 4.0 / n, "causal", n), _SUMS),
        ("1/root j", partial(PolynomialDecay, 0.5), _SUMS),
    ),
    *_family(
        "causal filters",
        _FILTERS,
        ("window of 7", lambda n: so.SlidingWindow(7, n), _SUMS),
        ("window of a quarter", lambda n: so.SlidingWindow(n // 4, n), _SUMS),
        ("decay 0.9", partial(_smoothed, 0.9, "causal"), _SUMS),
        ("decay 0.99", partial(_smoothed, 0.99, "causal"), _SUMS),
        ("1/j", partial(PolynomialDecay, 1.0), _SUMS),
        ("differences", Difference, _SUMS),
        ("autoregression of order 2", _autoregression, _SUMS),
    ),
    *_family(
        "other filters",
        _FILTERS,
        ("centred window of a root", partial(_average, "same"), _SUMS),
        ("bell of width 5", _bell, _MATRIX),
        ("two-sided decay 0.9", _two_sided, _SUMS),
        ("window of 28, no warm-up", partial(_window, window=28), _SUMS),
        ("window of a half, no warm-up", lambda n: _window(n, n // 2), _SUMS),
        ("16 windows of nearly all", lambda n: _window(n, n - 15), _MATRIX),
        ("differences, no warm-up", lambda n: Difference(n, boundary="valid"), _SUMS),
        ("windows of 7, 28 and the steps", _windows, _MATRIX),
    ),
    *_family(
        "rings and groups",
        _LINE,
        ("ring, window of a root", partial(_average, "circular"), _ATTAINED),
        ("ring, decay 0.9", partial(_smoothed, 0.9, "circular"), _ATTAINED),
        ("ring, band-pass", partial(BandPass, 0.1, 0.2), _ATTAINED),
        ("ring, 16 random taps", _random_ring, _ATTAINED),
    ),
    *_family(
        "rings and groups",
        _SQUARES,
        ("few ones of all bits", _threshold, _ATTAINED),
        ("windows of a torus", _torus, _ATTAINED),
        ("random taps of a group", _random_group, _ATTAINED),
    ),
    *_family(
        "products",
        _SQUARES,
        ("boxes of a square", lambda n: _by(*[so.AllRanges(_root(n))] * 2), _PRODUCT),
        ("running sums of both axes", lambda n: _by(*[so.RunningSum(_root(n))] * 2), _PRODUCT),
        ("running sums x 16 cells", lambda n: _by(so.RunningSum(n // 16), so.Histogram(16)), _PRODUCT),
        ("random intervals x 8 cells", lambda n: _by(_random_intervals(n // 8), so.Histogram(8)), _MATRIX),
        ("random intervals of 64 x cells", lambda n: _by(_random_intervals(64), so.Histogram(n // 64)), _MATRIX),
        ("whole hours x 2 cells", lambda n: _by(_whole_hours(n // 2), so.Histogram(2)), _MATRIX),
        ("running sums x ranges of 16", lambda n: _by(so.RunningSum(n // 16), so.AllRanges(16)), _PRODUCT),
        ("windows of 7 x running sums of 8", lambda n: _by(so.SlidingWindow(7, n // 8), so.RunningSum(8)), _PRODUCT),
        ("hierarchy x sums of 16", lambda n: _by(so.GroupBy(_equal(4, n // 16)), so.RunningSum(16)), _PRODUCT),
        ("ring x 8 cells", lambda n: _by(_average("circular", n // 8), so.Histogram(8)), _ATTAINED),
    ),
    *_family("products", _CUBES, ("boxes of a cube", lambda n: _by(*[so.AllRanges(_root(n, 3))] * 3), _CUBE)),
    *_family(
        "hierarchies",
        _LINE,
        ("rising groups", lambda n: so.GroupBy(_ragged(n)), _HIERARCHY),
        ("random districts", lambda n: so.GroupBy(_districts(n)), _HIERARCHY),
        ("rising groups, weighed", lambda n: so.GroupBy(_ragged(n), weights=[1.0, 3.0, 10.0]), _HIERARCHY),
        ("cells and the total", partial(_weighed_total, so.Histogram), _HIERARCHY),
        ("random groups, twice", lambda n: so.GroupBy(_shuffled(n)), _UNION),
    ),
    *_family(
        "hierarchies",
        _SQUARES,
        ("groups of 16 of 16", lambda n: so.GroupBy(_equal(16, n)), _HIERARCHY),
        ("groups of 16, some not full", lambda n: so.GroupBy(_equal(16, n - n // 5)), _HIERARCHY),
        ("pairs of pairs", lambda n: so.GroupBy(_equal(2, n)), _HIERARCHY),
        ("crossing groups", lambda n: so.GroupBy(_crossing(n)), _UNION),
    ),
    *_family(
        "marginals",
        _SQUARES,
        ("1-way of bits", partial(_binary, 1), _ATTAINED),
        ("2-way of bits", partial(_binary, 2), _ATTAINED),
        ("3-way of bits", partial(_binary, 3), _ATTAINED),
        ("2-way of 2 to 16 levels", _mixed, _ATTAINED),
        ("neighbours, weighed", _weighted_marginals, _ATTAINED),
        ("1-way and 2-way of 4 levels", _all_up_to_two, _ATTAINED),
    ),
    *_family(
        "marginals",
        _ATTRIBUTES,
        ("1-way of many", lambda d: so.Marginals([10] * d, k=1), _ATTAINED),
        ("2-way of many", lambda d: so.Marginals([10] * d, k=2), _ATTAINED),
        ("3-way of many", lambda d: so.Marginals([2] * d, k=3), _ATTAINED),
        ("ranges by levels of pairs", _ranges_by_levels, _UNION),
        counts="attributes",
    ),
    *_family(
        "unions",
        _SQUARES,
        ("ranges of either axis", lambda n: Union(_margins(so.AllRanges, n)), _UNION),
        ("boxes and ranges of either axis", partial(_both_and_margins, so.AllRanges), _UNION),
        ("prefixes of both axes and of either", partial(_both_and_margins, so.RunningSum), _UNION),
        ("ranges by group and of either axis", _ranges_of_groups, _UNION),
        ("whole hours x 4 cells, totals x ranges", _hours_beside_totals, _UNION),
    ),
    *_family(
        "unions",
        _CUBES,
        ("boxes of two of three axes", partial(_pairs_of_three, so.AllRanges), _UNION),
        ("prefixes of two of three axes", partial(_pairs_of_three, so.RunningSum), _UNION),
    ),
    *_family(
        "matrices",
        _SHORT,
        ("normals, 2n rows", _normals, _MATRIX),
        ("0 and 1, 3n rows", _zero_one, _MATRIX),
        ("4n random intervals", _intervals, _MATRIX),
        ("rank 20, 2n rows", _low_rank, _MATRIX),
        ("weighed rows", _weighted_rows, _MATRIX),
        ("scaled columns", _scaled_columns, _MATRIX),
        ("late sums weigh more", _late_sums, _MATRIX),
    ),
    *_family("matrices", (*_SHORT, 4096), ("ones below the diagonal", lambda n: so.Matrix(np.tri(n)), _SUMS)),
    *_family(
        "matrices",
        _FILTERS,
        ("64 rows of normals", partial(_normals, rows=64), _WIDE),
        ("64 sparse rows", _sparse, _WIDE),
        ("64 prefixes", _few_prefixes, _WIDE),
    ),
)
