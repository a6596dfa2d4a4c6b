"""Mechanisms for series and maps in numpy, level by level: trees, a partition, adaptive grids, the path-budget tree.

Pure privacy, one record added or removed, noise of numpy: no private data. A series is a grid of one row; a node is a box, its first and
last row, first and last column (ends excluded); a node of s cells along a side and a fan-out of f has min(f, s) parts along it,
whose sizes differ by at most one. Fan-outs of both sides are the same until one is used up.
"""

import math
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "PAGE_POINTS",
    "PAGE_SERIES",
    "SHIPPED_POINTS",
    "SHIPPED_SERIES",
    "Rule",
    "adaptive_grid",
    "full_tree",
    "isotonic_sums",
    "partition",
    "path_budget_tree",
    "plain_tree",
    "top_down_tree",
]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Generator = np.random.Generator


@dataclass
class _Level:
    """Nodes of one depth.

    Attributes:
        boxes: Their cells.
        parents: Their places in the level above.
        values: Estimates.
        precisions: One over the estimates' variances, zero where there is none.
    """

    boxes: Integers
    parents: Integers
    values: Array = field(init=False)
    precisions: Array = field(init=False)

    def __post_init__(self) -> None:
        self.values, self.precisions = np.zeros(len(self.boxes)), np.zeros(len(self.boxes))

    def sides(self) -> Integers:
        """Return rows and columns of the nodes."""
        return self.boxes[:, 1::2] - self.boxes[:, ::2]

    def join(self, values: Array, precisions: Array, which: Any = slice(None)) -> None:
        """Average other estimates of some nodes into their own, by precision."""
        both = self.precisions[which] + precisions
        mean = self.values[which] * self.precisions[which] + values * precisions
        self.values[which] = np.divide(mean, both, out=np.zeros_like(both), where=both > 0.0)
        self.precisions[which] = both


class _Table:
    """A table whose boxes are counted with noise."""

    def __init__(self, counts: Array, rng: Generator) -> None:
        self.shape = counts.shape
        grid = np.atleast_2d(counts)
        self.sums = np.pad(grid.cumsum(0).cumsum(1), ((1, 0), (1, 0)))
        self.rng = rng
        self.root = _Level(np.array([[0, grid.shape[0], 0, grid.shape[1]]]), np.zeros(1, dtype=np.int64))

    def measure(self, level: _Level, epsilons: Array, which: Any = slice(None)) -> Array:
        """Count some nodes of a level with Laplace noise, and return what was found."""
        top, bottom, left, right = level.boxes[which].T
        exact = self.sums[bottom, right] - self.sums[top, right] - self.sums[bottom, left] + self.sums[top, left]
        found: Array = np.asarray(exact + self.rng.laplace(0.0, 1.0, len(exact)) / epsilons, dtype=float)
        level.join(found, epsilons**2 / 2.0, which)
        return found

    def cells(self, levels: list[_Level]) -> Array:
        """Spread the values of nodes without parts evenly over their cells."""
        boxes, each = [], []
        steps = np.zeros(self.sums.shape, dtype=np.int64)
        for level, below in zip(levels, [*levels[1:], None], strict=True):
            leaves = np.ones(len(level.boxes), dtype=bool)
            if below is not None:
                leaves[below.parents] = False
            boxes.append(level.boxes[leaves])
            each.append(level.values[leaves])
        top, bottom, left, right = np.concatenate(boxes).T
        numbers = np.arange(len(top))
        # Cells are told their leaf's number by differences of whole numbers, which add up without error.
        for rows, columns, sign in ((top, left, 1), (bottom, left, -1), (top, right, -1), (bottom, right, 1)):
            np.add.at(steps, (rows, columns), sign * numbers)
        values = np.concatenate(each) / ((bottom - top) * (right - left))
        return np.asarray(values[steps.cumsum(0).cumsum(1)[:-1, :-1]].reshape(self.shape))


def _divide(level: _Level, which: Integers, fans: Integers) -> _Level:
    """Return the parts of some nodes, `fans` along rows and columns, row by row."""
    parts = fans.prod(axis=1)
    node = np.repeat(np.arange(len(which)), parts)
    place = np.arange(len(node)) - np.repeat(np.cumsum(parts) - parts, parts)
    box, fan = level.boxes[which][node], fans[node]
    sides = box[:, 1::2] - box[:, ::2]
    step = np.stack([place // fan[:, 1], place % fan[:, 1]], axis=1)
    first = box[:, ::2] + step * sides // fan
    last = box[:, ::2] + (step + 1) * sides // fan
    return _Level(np.stack([first, last], axis=2).reshape(-1, 4), which[node])


def _upward(levels: list[_Level]) -> None:
    """Average what was measured of each node with the sum of its parts, from the leaves up."""
    for below, above in pairwise(reversed(levels)):
        n = len(above.boxes)
        sums = np.bincount(below.parents, below.values, n)
        spread = np.bincount(below.parents, 1.0 / below.precisions, n)
        above.join(sums, np.divide(1.0, spread, out=np.zeros(n), where=spread > 0.0))


def _share_out(above: _Level, below: _Level) -> None:
    """Move parts, in units of their variances, so that they add up to their node."""
    spread = 1.0 / below.precisions
    lacking = above.values - np.bincount(below.parents, below.values, len(above.boxes))
    total = np.bincount(below.parents, spread, len(above.boxes))
    below.values += lacking[below.parents] * spread / total[below.parents]


def _project(above: _Level, below: _Level) -> None:
    """Put the nearest values in place of parts that are not negative and add up to their node, in units of variances."""
    spread = 1.0 / below.precisions
    spread /= np.maximum.reduceat(spread, np.flatnonzero(np.diff(below.parents, prepend=-1)))[_ranks(below.parents)]
    order = np.lexsort((-below.values / spread, below.parents))
    groups, weights, values = _ranks(below.parents), spread[order], below.values[order]
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    totals = np.maximum(above.values[below.parents[starts]], 0.0)

    def sums(terms: Array) -> Array:
        found = np.cumsum(terms)
        return np.asarray(found - (found[starts] - terms[starts])[groups])

    excess = (sums(values) - totals[groups]) / sums(weights)
    kept = np.bincount(groups, values / weights > excess)
    last = starts + np.maximum(kept.astype(int), 1) - 1
    found = np.maximum(values - excess[last][groups] * weights, 0.0)
    below.values[order] = np.where(totals[groups] > 0.0, found, 0.0)


def _ranks(sorted_: Integers) -> Integers:
    """Number runs of equal numbers."""
    return np.cumsum(np.diff(sorted_, prepend=sorted_[:1]) != 0)


def _fit(levels: list[_Level], *, project: bool) -> None:
    """Fit all that was measured by least squares; then, if asked, from the top down without negative counts."""
    _upward(levels)
    if project:
        levels[0].values = np.maximum(levels[0].values, 0.0)
    for above, below in pairwise(levels):
        (_project if project else _share_out)(above, below)


def _public_tree(counts: Array, epsilons: list[float], fans: list[int], rng: Generator, *, project: bool) -> Array:
    """Return cells of a tree that does not look: the parts of each level have a fan-out and an epsilon; the root has none."""
    table = _Table(counts, rng)
    levels = [table.root]
    for epsilon, fan in zip(epsilons, fans, strict=True):
        above = levels[-1]
        levels.append(_divide(above, np.arange(len(above.boxes)), np.minimum(above.sides(), fan)))
        table.measure(levels[-1], np.full(len(levels[-1].boxes), epsilon))
    _fit(levels, project=project)
    return table.cells(levels)


def _depth(side: int, fan: int) -> int:
    """Return the levels of a tree down to single cells."""
    return next(depth for depth in range(1, 64) if fan**depth >= side)


def plain_tree(counts: Array, epsilon: float, rng: Generator) -> Array:
    """Return cells of an 8-ary tree with equal budgets, by least squares."""
    depth = _depth(len(counts), 8)
    return _public_tree(counts, [epsilon / depth] * depth, [8] * depth, rng, project=False)


def top_down_tree(counts: Array, epsilon: float, rng: Generator) -> Array:
    """Return cells of the same tree from the top down without negative counts."""
    depth = _depth(len(counts), 8)
    return _public_tree(counts, [epsilon / depth] * depth, [8] * depth, rng, project=True)


def full_tree(counts: Array, epsilon: float, rng: Generator) -> Array:
    """Return cells of 2 x 2, then 4 x 4 parts a level (a side that is a power of 4: 4 x 4 always), budgets times 4^(1/3) a level."""
    bits = (max(counts.shape) - 1).bit_length()
    fans = [2] * (bits % 2) + [4] * (bits // 2)
    budgets = 4.0 ** (np.arange(len(fans)) / 3.0)
    return _public_tree(counts, list(epsilon * budgets / budgets.sum()), fans, rng, project=True)


def _isotonic(values: Array) -> Array:
    """Return the nearest values that never fall, by pooling adjacent violators."""
    means: list[float] = []
    sizes: list[int] = []
    for value in values.tolist():
        mean, size = value, 1
        while means and means[-1] >= mean:
            mean = (means[-1] * sizes[-1] + mean * size) / (sizes[-1] + size)
            size += sizes.pop()
            means.pop()
        means.append(mean)
        sizes.append(size)
    return np.repeat(means, sizes)


def isotonic_sums(counts: Array, epsilon: float, rng: Generator) -> Array:
    """Return cells whose running sums are the nearest to the plain tree's that never fall nor start below zero."""
    sums = np.cumsum(plain_tree(counts, epsilon, rng))
    return np.diff(np.maximum(_isotonic(sums), 0.0), prepend=0.0)


def _buckets(counts: Array, first: float, rest: float, rng: Generator) -> Integers:
    """Return the ends of the partition of least noisy cost: deviation from the median (1-Lipschitz) and 1/rest a bucket."""
    n = len(counts)
    found = []
    for length in (2**k for k in range(n.bit_length()) if 2**k <= n):
        starts = np.arange(0, n - length + 1, max(length // 4, 1))
        windows = np.lib.stride_tricks.sliding_window_view(counts, length)[starts]
        deviations = np.abs(windows - np.median(windows, axis=1)[:, None]).sum(axis=1)
        costs = deviations + rng.laplace(0.0, 2.0 / first, len(starts)) + 1.0 / rest
        found.append(np.stack([starts, starts + length, costs], axis=1))
    starts, ends, costs = np.concatenate(found).T
    best, came = [0.0] + [math.inf] * n, [0] * (n + 1)
    order = np.argsort(starts, kind="stable")
    for start, end, cost in zip(
        starts[order].astype(int).tolist(), ends[order].astype(int).tolist(), costs[order].tolist(), strict=True
    ):
        if best[start] + cost < best[end]:
            best[end], came[end] = best[start] + cost, start
    edges = [n]
    while edges[-1]:
        edges.append(came[edges[-1]])
    return np.array(edges[::-1])


def partition(counts: Array, epsilon: float, rng: Generator, share: float = 0.25) -> Array:
    """Return cells of buckets that were chosen with a share of epsilon, counted by the top-down tree with the rest."""
    rest = (1.0 - share) * epsilon
    edges = _buckets(counts, share * epsilon, rest, rng)
    sizes = np.diff(edges)
    found = top_down_tree(np.add.reduceat(counts, edges[:-1]), rest, rng)
    return np.repeat(found / sizes, sizes)


def adaptive_grid(counts: Array, epsilon: float, rng: Generator) -> Array:
    """Return cells of adaptive grids (Qardaji, Yang and Li, ICDE 2013: alpha 1/2, constants 10 and 5, n known), cut at cells."""
    table, half = _Table(counts, rng), epsilon / 2.0
    coarse = max(10, math.ceil(math.sqrt(counts.sum() * epsilon / 10.0) / 4.0))
    grid = _divide(table.root, np.zeros(1, dtype=np.int64), np.minimum(table.root.sides(), coarse))
    seen = table.measure(grid, np.full(len(grid.boxes), half))
    fine = np.ceil(np.sqrt(np.maximum(seen, 0.0) * half / 5.0)).astype(np.int64)[:, None]
    below = _divide(grid, np.arange(len(grid.boxes)), np.minimum(grid.sides(), np.maximum(fine, 1)))
    table.measure(below, np.full(len(below.boxes), half))
    levels = [table.root, grid, below]
    _upward(levels[1:])
    _share_out(grid, below)
    return table.cells(levels)


@dataclass(frozen=True)
class Rule:
    """How the path-budget tree grows.

    Attributes:
        c: Records of a part, in units of noise, from which it is worth dividing.
        root: Share of epsilon of the root.
        share: Of what is left, for parts that may be divided again; None: the first of shares that grow by `growth` a
            level, for as many levels as parts can be told apart.
        growth: See `share`.
        most: Largest fan-out of a line, also of one in a map; a power of two.
        wide: Parts along each side of a box from which it is divided 4 x 4, not 2 x 2.
        least: Parts along a side below which a node is measured again.
        last: Parts a fan-out, along a side, below which parts are leaves.
        finish: Longest node of a line that is divided into its cells at once, if it has parts for them; 0: none.
    """

    c: float = 3.0
    root: float = 0.05
    share: float | None = 0.25
    growth: float = 4.0 ** (1.0 / 3.0)
    most: int = 8
    wide: float = 3.0
    least: float = 1.5
    last: float = 1.5
    finish: int = 0


PAGE_SERIES = Rule()
PAGE_POINTS = Rule(share=0.15)
SHIPPED_SERIES = replace(PAGE_SERIES, root=0.02, share=0.4)
SHIPPED_POINTS = replace(PAGE_POINTS, root=0.02, share=None)


def _fans(rule: Rule, sides: Integers, worth: Array) -> tuple[Integers, Array, Array]:
    """Return fan-outs of nodes along both sides, the one of the rule, and parts along each side that is not used up."""
    longest, both = sides.max(axis=1), (sides > 1).all(axis=1)
    parts = np.where(both, np.sqrt(worth), worth)
    line = 2.0 ** np.clip(np.floor(np.log2(np.maximum(1.5 * parts, 2.0))), 1.0, math.log2(rule.most))
    line = np.where((longest <= rule.finish) & (1.5 * parts >= longest), longest, line)
    plane = np.where((parts >= rule.wide) & (longest >= 4), 4.0, 2.0)
    fan = np.where(both, plane, line).astype(np.int64)
    fans: Integers = np.minimum(sides, fan[:, None])
    return fans, fan, parts


def _shares(rule: Rule, fan: Integers, parts: Array, sides: Integers) -> Array:
    """Return which part of what is left the parts of nodes get if they may be divided again."""
    if rule.share is not None:
        return np.full(len(fan), rule.share)
    reach = np.maximum(np.minimum(parts, sides.max(axis=1)), 1.0 + 1e-9)
    levels = np.ceil(np.log(reach) / np.log(fan) - 1e-9)
    return np.asarray(
        1.0 / np.where(rule.growth == 1.0, levels, (rule.growth**levels - 1.0) / (rule.growth - 1.0 or 1.0))
    )


def path_budget_tree(counts: Array, epsilon: float, rng: Generator, rule: Rule | None = None) -> Array:
    """Return cells of the tree that is divided where records are; the page's rule unless another is given."""
    rule = rule or (PAGE_POINTS if counts.ndim == 2 else PAGE_SERIES)
    table = _Table(counts, rng)
    levels = [table.root]
    spent = np.array([rule.root * epsilon])
    left = epsilon - spent
    while len(levels[-1].boxes):
        level = levels[-1]
        seen, sides = table.measure(level, spent), level.sides()
        fans, fan, parts = _fans(rule, sides, np.maximum(seen, 0.0) * left / rule.c)
        more = left > 0.0
        again = more & ((sides.max(axis=1) == 1) | (parts < rule.least))
        table.measure(level, left[again], again)
        which = np.flatnonzero(more & ~again)
        fans, fan, parts, sides, left = fans[which], fan[which], parts[which], sides[which], left[which]
        last = (parts < rule.last * fan) | (fans == sides).all(axis=1)
        share = np.where(last, 1.0, _shares(rule, fan, parts, sides))
        levels.append(_divide(level, which, fans))
        pieces = fans.prod(axis=1)
        spent, left = np.repeat(left * share, pieces), np.repeat(np.where(last, 0.0, left * (1.0 - share)), pieces)
    _fit(levels[:-1], project=True)
    return table.cells(levels[:-1])
