"""Sets of attributes, their tables, and the parts of tables that sum to zero along every axis."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import chain, combinations

from sordino.releases.consistent.report import Set
from sordino.workloads.base import Array

__all__ = ["Sizes", "below_of", "centred", "margin_of", "within"]


def centred(table: Array) -> Array:
    """Return a table whose sums along every axis are zero."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def margin_of(s: Set, table: Array, t: Set) -> Array:
    """Return what a table of `s` says of the attributes `t`."""
    found: Array = table.sum(axis=tuple(axis for axis, i in enumerate(s) if i not in t))
    return found


def within(s: Set) -> Iterator[Set]:
    """Return all subsets of a set but the empty one."""
    return chain.from_iterable(combinations(s, k) for k in range(1, len(s) + 1))


def below_of(sets: Iterable[Set]) -> list[Set]:
    """Return all subsets of sets but the empty one, the smaller first."""
    return sorted({t for s in sets for t in within(s)}, key=lambda t: (len(t), t))


class Sizes:
    """Numbers of cells of sets of attributes."""

    def __init__(self, levels: tuple[int, ...]) -> None:
        self.levels = levels

    def shape(self, s: Set) -> tuple[int, ...]:
        """Return the shape of a set's table."""
        return tuple(self.levels[i] for i in s)

    def cells(self, s: Iterable[int]) -> int:
        """Return how many cells it has."""
        return math.prod(self.levels[i] for i in s)

    def free(self, s: Set) -> int:
        """Return the dimension of its residuals."""
        return math.prod(self.levels[i] - 1 for i in s)

    def outside(self, s: Set, t: Set) -> int:
        """Return how many cells of `s` one cell of `t` is."""
        return self.cells(i for i in s if i not in t)
