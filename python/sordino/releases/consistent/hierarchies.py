"""Counts of hierarchies and of ranges, from the top down: children are not negative and add up to their parent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sordino import _core
from sordino.errors import InvalidParameterError, UnsupportedMechanismError
from sordino.releases.answers import Answers
from sordino.releases.consistent.report import Consistency, Wishes
from sordino.releases.consistent.whole import whole_total
from sordino.workloads import AllRanges, GroupBy
from sordino.workloads.base import Array

__all__ = ["consistent_groups", "consistent_ranges"]

# Children of a node of the tree over cells.
_CHILDREN = 8


@dataclass(frozen=True)
class _Tree:
    """Nodes of a hierarchy, level by level.

    Attributes:
        starts: Where the children of each node begin, those of the top first; as `_core.top_down` takes it.
        nodes: Which group each node is; of what is left of a group beside its children, the number of groups or more.
        rest: For each cell, of which such node it is, counted from 0; -1 for none.
    """

    starts: NDArray[np.int64]
    nodes: NDArray[np.int64]
    rest: NDArray[np.int64]


def _tree_of(workload: GroupBy) -> _Tree:
    """Return the tree of nested groups: of groups with the same cells the one that is asked first is the parent."""
    sizes = np.array(workload.level_sizes)
    first = np.cumsum(sizes) - sizes
    groups = int(sizes.sum())
    labels = np.where(workload.labels >= 0, workload.labels + first[:, None], groups)
    counts = np.bincount(labels.reshape(-1), minlength=groups + 1)[:groups]
    rank = np.empty(groups + 1, dtype=np.int64)
    rank[np.lexsort((np.arange(groups), -counts))] = np.arange(groups)
    rank[groups] = groups  # none: last
    chain = np.take_along_axis(labels, np.argsort(rank[labels], axis=0, kind="stable"), axis=0)
    above = np.vstack([np.full((1, chain.shape[1]), groups), chain[:-1]])
    parent, depth = np.full(groups, -2), np.zeros(groups, dtype=np.int64)  # -2: a group without cells
    for level, (own, over) in enumerate(zip(chain, above, strict=True)):
        there = own < groups
        parent[own[there]] = np.where(over[there] < groups, over[there], -1)
        depth[own[there]] = level
    # The last group of each cell: where it has children too, what is left beside them is a node as well.
    last = chain[np.maximum((chain < groups).sum(axis=0) - 1, 0), np.arange(chain.shape[1])]
    has_children = np.zeros(groups + 1, dtype=np.bool_)
    has_children[parent[parent >= 0]] = True
    left = has_children[last]
    owners, own_rest = np.unique(last[left], return_inverse=True)
    rest = np.full(chain.shape[1], -1, dtype=np.int64)
    rest[left] = own_rest
    return _numbered(np.append(parent, owners), np.append(depth, depth[owners] + 1), rest)


def _numbered(parent: NDArray[np.int64], depth: NDArray[np.int64], rest: NDArray[np.int64]) -> _Tree:
    """Number nodes level by level, children after children."""
    nodes, place = [], np.full(len(parent), -1, dtype=np.int64)
    at, parents = 0, []
    for level in range(int(depth.max(initial=0)) + 1):
        own = np.flatnonzero((depth == level) & (parent > -2))
        above = np.where(parent[own] >= 0, place[parent[own]], -1)
        own = own[np.argsort(above, kind="stable")]
        place[own] = at + np.arange(len(own))
        at += len(own)
        nodes.append(own)
        parents.append(np.sort(above))
    children = np.bincount(np.concatenate(parents) + 1, minlength=at + 1)
    starts = np.r_[0, np.cumsum(children)].astype(np.int64)
    return _Tree(starts, np.concatenate(nodes), rest)


def consistent_groups(release: Answers, workload: GroupBy, wishes: Wishes) -> tuple[Array, Consistency]:
    """Return sums over nested groups: none negative, those within a group no more than it."""
    if not workload.nested:
        raise UnsupportedMechanismError("groups that cross have no top: consistent() serves nested ones")
    total_of_all = wishes.total
    if not (workload.labels >= 0).any(axis=0).all():
        # Those of whom are in no group is not known.
        if wishes.asked_total:
            raise InvalidParameterError("some cells are in no group: the total of all records says nothing of groups")
        total_of_all = None
    tree = _tree_of(workload)
    weights = np.repeat(np.array(workload.weights), workload.level_sizes)
    values, errors = release.unbiased / weights, np.asarray(release.stderr) / weights
    if (tree.rest >= 0).any():
        more = release.answer(GroupBy(tree.rest))
        values, errors = np.append(values, more.unbiased), np.append(errors, more.stderr)
    own, variances = values[tree.nodes], errors[tree.nodes] ** 2
    roots = int(tree.starts[1])
    total = max(float(own[:roots].sum()), 0.0) if total_of_all is None else total_of_all
    found = _core.top_down(tree.starts, own, variances, total)
    report = Consistency(total)
    if wishes.whole:
        found, report = _whole(tree.starts, found, wishes, total)
    answers = np.zeros(len(values))
    answers[tree.nodes] = found
    return answers[: len(weights)] * weights, report


def _whole(starts: NDArray[np.int64], values: Array, wishes: Wishes, total: float) -> tuple[Array, Consistency]:
    if wishes.whole == "unbiased":
        raise UnsupportedMechanismError("whole numbers by chance are for running sums, histograms and one table")
    count = whole_total(total)
    whole = _core.whole_top_down(starts, values, count).astype(np.float64)
    return whole, Consistency(float(count), whole=float(np.abs(whole - values).max(initial=0.0)))


def _tree_over(cells: int) -> tuple[list[int], NDArray[np.int64]]:
    """Return the nodes of each level, from the top to the cells, and where children begin."""
    levels = [cells]
    while levels[0] > _CHILDREN:
        levels.insert(0, -(-levels[0] // _CHILDREN))
    starts, at = [np.zeros(1, dtype=np.int64)], 0
    for nodes, below in zip([1, *levels[:-1]], levels, strict=True):
        starts.append(at + np.minimum(_CHILDREN * (1 + np.arange(nodes)), below))
        at += below
    starts.append(np.full(levels[-1], at))
    return levels, np.concatenate(starts)


def consistent_ranges(release: Answers, workload: AllRanges, wishes: Wishes) -> tuple[Array, Consistency]:
    """Return sums over ranges of cells that are not negative: estimated cells, made so in a tree of blocks of eight."""
    levels, starts = _tree_over(workload.length)
    sums = [np.ascontiguousarray(release.cells).reshape(-1)]
    for nodes in reversed(levels[:-1]):
        sums.insert(0, np.add.reduceat(sums[0], _CHILDREN * np.arange(nodes)))
    values = np.concatenate(sums)
    total = max(float(sums[0].sum()), 0.0) if wishes.total is None else wishes.total
    found = _core.top_down(starts, values, np.ones(len(values)), total)
    report = Consistency(total)
    if wishes.whole:
        found, report = _whole(starts, found, wishes, total)
    identity = _core.Strategy(workload.core, "identity", release.fit.mechanism.law)
    return identity.decode(np.ascontiguousarray(found[-workload.length :])), report
