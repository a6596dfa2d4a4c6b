"""Other mechanisms for series and maps in numpy: trees, isotonic sums, a partition, grids; ours in plain Python.

All under pure privacy, one record added or removed; noise of numpy, or of `random`.
"""

import math
import random
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

__all__ = ["adaptive_grid", "isotonic_sums", "partition", "path_budget_tree", "plain_tree", "top_down_tree"]

Array = NDArray[np.float64]
Generator = np.random.Generator


def onto_simplex(values: Array, spread: Array, total: float) -> Array:
    """Return the nearest values that are not negative and add up, in units of their variances."""
    if total <= 0.0:
        return np.zeros(len(values))
    weights = spread / spread.max()
    order = np.argsort(-values / weights)
    excess = (np.cumsum(values[order]) - total) / np.cumsum(weights[order])
    last = np.flatnonzero(values[order] / weights[order] > excess)[-1]
    found: Array = np.maximum(values - excess[last] * weights, 0.0)
    return found


def _levels(counts: Array, fan: int) -> list[Array]:
    found = [counts]
    while len(found[0]) > fan:
        found.insert(0, found[0].reshape(-1, fan).sum(axis=1))
    return found


def _measured_tree(counts: Array, epsilon: float, rng: Generator) -> tuple[list[Array], list[float]]:
    """Return least-squares estimates of an 8-ary tree with equal shares, level by level, and their variances."""
    levels = _levels(counts, 8)
    noise = len(levels) / epsilon
    noisy = [level + rng.laplace(0.0, noise, len(level)) for level in levels]
    variances = [2.0 * noise**2] * len(levels)
    for up in range(len(levels) - 2, -1, -1):
        below, spread = noisy[up + 1].reshape(-1, 8).sum(axis=1), 8.0 * variances[up + 1]
        own = variances[up]
        noisy[up] = (noisy[up] / own + below / spread) / (1.0 / own + 1.0 / spread)
        variances[up] = 1.0 / (1.0 / own + 1.0 / spread)
    return noisy, variances


def plain_tree(counts: Array, epsilon: float, rng: Generator) -> Array:
    """Return cells of an 8-ary tree by least squares."""
    levels, _ = _measured_tree(counts, epsilon, rng)
    cells = levels[0]
    for level in levels[1:]:
        parts = level.reshape(-1, 8)
        cells = (parts + (cells - parts.sum(axis=1))[:, None] / 8.0).reshape(-1)
    return cells


def top_down_tree(counts: Array, epsilon: float, rng: Generator) -> Array:
    """Return cells that are not negative, from the same tree, from the top down."""
    levels, _ = _measured_tree(counts, epsilon, rng)
    total = np.array([max(levels[0].sum(), 0.0)])
    cells = onto_simplex(levels[0], np.ones(len(levels[0])), float(total[0]))
    for level in levels[1:]:
        parts = level.reshape(-1, 8)
        cells = np.concatenate([onto_simplex(row, np.ones(8), sum_) for row, sum_ in zip(parts, cells, strict=True)])
    return cells


def _isotonic(values: Array) -> Array:
    pools: list[list[float]] = []
    for value in values:
        pools.append([value, 1.0])
        while len(pools) > 1 and pools[-2][0] >= pools[-1][0]:
            mean, count = pools.pop()
            before = pools[-1]
            pools[-1] = [(before[0] * before[1] + mean * count) / (before[1] + count), before[1] + count]
    return np.concatenate([np.full(int(count), mean) for mean, count in pools])


def isotonic_sums(counts: Array, epsilon: float, rng: Generator) -> Array:
    """Return cells whose running sums are the nearest to a tree's that never fall."""
    sums = np.maximum(_isotonic(np.cumsum(plain_tree(counts, epsilon, rng))), 0.0)
    return np.diff(sums, prepend=0.0)


def partition(counts: Array, epsilon: float, rng: Generator, share: float = 0.25) -> Array:
    """Return cells from buckets whose deviation from the median is small, chosen with a share, and a tree over them."""
    n, first = len(counts), share * epsilon
    rest = epsilon - first
    costs: list[tuple[int, int, float]] = []
    length = 1
    while length <= n:
        step = max(length // 4, 1)
        starts = np.arange(0, n - length + 1, step)
        windows = np.lib.stride_tricks.sliding_window_view(counts, length)[starts]
        deviation = np.abs(windows - np.median(windows, axis=1)[:, None]).sum(axis=1)
        noisy = deviation + rng.laplace(0.0, 2.0 / first, len(starts)) + 1.0 / rest
        costs += [(int(a), int(a) + length, float(cost)) for a, cost in zip(starts, noisy, strict=True)]
        length *= 2
    best, chosen = np.full(n + 1, np.inf), np.zeros(n + 1, dtype=int)
    best[0] = 0.0
    for start, end, cost in sorted(costs):
        if best[start] + cost < best[end]:
            best[end], chosen[end] = best[start] + cost, start
    ends = [n]
    while ends[-1]:
        ends.append(int(chosen[ends[-1]]))
    edges = np.array(ends[::-1])
    sums = np.add.reduceat(counts, edges[:-1])
    padded = np.zeros(8 ** max(math.ceil(math.log(len(sums), 8)), 1))
    padded[: len(sums)] = sums
    found = top_down_tree(padded, rest, rng)[: len(sums)]
    return np.repeat(found / np.diff(edges), np.diff(edges))


def _sums(grid: Array, rows: Sequence[int], columns: Sequence[int]) -> Array:
    return np.add.reduceat(np.add.reduceat(grid, rows, axis=0), columns, axis=1)


def _cuts(side: int, parts: int) -> list[int]:
    return [k * side // parts for k in range(parts)]


def adaptive_grid(counts: Array, epsilon: float, rng: Generator) -> Array:
    """Return cells of two adaptive grids (Qardaji, Yang and Li 2013: half of epsilon each, 10 and 5, n known)."""
    side, n = len(counts), float(counts.sum())
    coarse = int(np.clip(math.ceil(math.sqrt(n * epsilon / 10.0) / 4.0), 10, side))
    cuts = _cuts(side, coarse)
    top = _sums(counts, cuts, cuts) + rng.laplace(0.0, 2.0 / epsilon, (coarse, coarse))
    cells, edges = np.zeros(counts.shape), [*cuts, side]
    for i in range(coarse):
        for j in range(coarse):
            block = counts[edges[i] : edges[i + 1], edges[j] : edges[j + 1]]
            parts = max(math.ceil(math.sqrt(max(top[i, j], 0.0) * epsilon / 2.0 / 5.0)), 1)
            rows, columns = (_cuts(size, min(parts, size)) for size in block.shape)
            fine = _sums(block, rows, columns)
            noisy = fine + rng.laplace(0.0, 2.0 / epsilon, fine.shape)
            # Two estimates of the total, joined by their variances.
            below, weight = noisy.sum(), 1.0 / fine.size
            total = (top[i, j] + below * weight) / (1.0 + weight)
            noisy += (total - below) / fine.size
            sizes = [np.diff([*cut, size]) for cut, size in zip((rows, columns), block.shape, strict=True)]
            each = noisy / np.outer(*sizes)
            cells[edges[i] : edges[i + 1], edges[j] : edges[j + 1]] = np.repeat(
                np.repeat(each, sizes[0], axis=0), sizes[1], axis=1
            )
    return cells


class _Node:
    def __init__(self, box: tuple[tuple[int, int], tuple[int, int]], share: float, left: float) -> None:
        self.box, self.share, self.left = box, share, left
        self.readings: list[tuple[float, float]] = []
        self.parts: list[_Node] = []
        self.value = self.variance = self.count = 0.0


def _divided(sides: Sequence[int], worth: float) -> tuple[list[int], float] | None:
    """Return parts on each axis, and what they get of what is left; None if parts could not be told from noise."""
    plane, side = min(sides) > 1 and len(sides) > 1, max(sides)
    parts = math.sqrt(worth) if plane else worth
    if side == 1 or parts < 1.5:
        return None
    if plane:
        most = 4 if parts >= 3.0 and side >= 4 else 2
        levels = next(n for n in range(1, 99) if most**n >= min(parts, side))
        part = 1.0 / sum(4.0 ** (n / 3.0) for n in range(levels))
    else:
        most = side if side <= 16 and 1.5 * parts >= side else max(f for f in (2, 4, 8) if f <= max(1.5 * parts, 2.0))
        part = 0.4
    fans = [min(each, most) for each in sides]
    return fans, 1.0 if parts < 1.5 * most or fans == list(sides) else part


def _plain_onto_simplex(values: Sequence[float], spread: Sequence[float], total: float) -> list[float]:
    """Return what `onto_simplex` does."""
    if total <= 0.0:
        return [0.0] * len(values)
    above = weights = excess = 0.0
    for value, weight in sorted(zip(values, spread, strict=True), key=lambda pair: -pair[0] / pair[1]):
        above, weights = above + value, weights + weight
        if value / weight > (above - total) / weights:
            excess = (above - total) / weights
    return [max(value - excess * weight, 0.0) for value, weight in zip(values, spread, strict=True)]


def path_budget_tree(counts: list[list[float]], epsilon: float) -> list[list[float]]:
    """Return cells of the path-budget tree, node by node in plain Python; a series is one row."""
    root = _Node(((0, len(counts)), (0, len(counts[0]))), 0.02, 0.98)
    order = [root]
    for node in order:
        exact = sum(sum(row[slice(*node.box[1])]) for row in counts[slice(*node.box[0])])

        def measure(share: float, node: _Node = node, exact: float = exact) -> float:
            scale = 1.0 / (share * epsilon)
            found = exact + random.expovariate(1.0 / scale) - random.expovariate(1.0 / scale)
            node.readings.append((found, 2.0 * scale**2))
            return found

        worth = max(measure(node.share), 0.0) * node.left * epsilon / 3.0
        if node.left <= 0.0:
            continue
        sides = [end - first for first, end in node.box]
        divided = _divided(sides, worth)
        if divided is None:
            measure(node.left)
            continue
        fans, part = divided
        share = node.left * part
        cuts = [
            [first + k * (end - first) // fan for k in range(fan + 1)]
            for (first, end), fan in zip(node.box, fans, strict=True)
        ]
        ends = [list(pairwise(cut)) for cut in cuts]
        node.parts = [_Node((a, b), share, node.left - share) for a in ends[0] for b in ends[1]]
        order += node.parts
    for node in reversed(order):
        known = list(node.readings)
        if node.parts:
            known.append((sum(part.value for part in node.parts), sum(part.variance for part in node.parts)))
        precision = sum(1.0 / variance for _, variance in known)
        node.value = sum(value / variance for value, variance in known) / precision
        node.variance = 1.0 / precision
    root.count = max(root.value, 0.0)
    cells = [[0.0] * len(row) for row in counts]
    for node in order:
        if node.parts:
            values, spread = [part.value for part in node.parts], [part.variance for part in node.parts]
            for below, count in zip(node.parts, _plain_onto_simplex(values, spread, node.count), strict=True):
                below.count = count
        else:
            (top, bottom), (left, right) = node.box
            for row in cells[top:bottom]:
                row[left:right] = [node.count / (bottom - top) / (right - left)] * (right - left)
    return cells
