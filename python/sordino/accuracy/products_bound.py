"""Nuclear norms of unions of products along the same axes, by what reflections and constants keep apart."""

import itertools
import math
from functools import cache

import numpy as np

from sordino.accuracy.factorizations import MOST_ELIMINATED, condensed, eliminated_rows, kronecker
from sordino.accuracy.modes_bound import is_constant, sum_of_roots
from sordino.workloads import Histogram, Kronecker, Union, Workload
from sordino.workloads.base import Array

__all__ = ["products_mean"]

# Cells along an axis, dimensions that are decomposed together, in no time or where nothing else will do, and sets of
# subspaces.
_MOST_ALONG = 1024
_FEW_TOGETHER, _MOST_TOGETHER = 1024, 3072
_MOST_SETS = 512
# The Frobenius norm of what is taken for zero beside the spectral one of a Gram matrix; what all of it along an axis of
# a product, and rounding, may do to an eigenvalue beside the largest.
_ZERO = 2e-14
_LOST = 5e-14
_ERROR = 4e-12


def products_mean(union: Union) -> float:
    """Return `‖A‖_*/sqrt(m n)`, or a little less; 0 of what is no union of products, or takes too long.

    Along an axis there are three subspaces, what is constant, what is even about the middle less that, and what is odd,
    or two where a query is not as good backwards. `AᵀA = Σ_p w_p ⊗_i G_pi` joins products of these which one of the
    terms joins along every axis: totals join what is constant alone. The singular values are those of what is joined;
    where that is too much, see `sordino.accuracy.modes_bound`.
    """
    parts = [part.factors if isinstance(part, Kronecker) else () for part in union.parts]
    sizes = [factor.core.input_len or 0 for factor in max(parts, key=len)]
    if len(sizes) < 2 or max(sizes) > _MOST_ALONG:
        return 0.0
    cells = tuple(map(Histogram, sizes))
    parts = [cells if type(part) is Histogram else own for part, own in zip(union.parts, parts, strict=True)]
    if any([factor.core.input_len for factor in own] != sizes for own in parts):
        return 0.0
    if any(
        eliminated_rows(own) * n * n > MOST_ELIMINATED for part in parts for own, n in zip(part, sizes, strict=True)
    ):
        return 0.0
    answers = sum(
        weight
        * math.prod(
            factor.core.answers_len if (own := factor.answer_weights()) is None else own.sum() for factor in part
        )
        for part, weight in zip(parts, union.weights, strict=True)
    )
    return _sum_of_singular_values(parts, union.weights) / math.sqrt(math.prod(sizes) * float(answers))


def _sum_of_singular_values(parts: list[tuple[Workload, ...]], weights: tuple[float, ...]) -> float:
    grams = {own: _gram(own) for own in dict.fromkeys(own for part in parts for own in part)}
    # A subspace has half of the cells at least, but for that of constants.
    wide = {own: 1 if is_constant(gram) else max(len(gram) // 2, 1) for own, gram in grams.items()}
    together = max(math.prod(wide[own] for own in part) for part in parts)
    asked = [frozenset(own) for own in zip(*parts, strict=True)]

    @cache
    def axis(own: frozenset[Workload]) -> _Axis:
        return _Axis({factor: grams[factor] for factor in own})

    if together <= _FEW_TOGETHER and (found := _roots(list(map(axis, asked)), parts, weights, _FEW_TOGETHER)) > 0.0:
        return found
    if (found := sum_of_roots(parts, grams, weights)) > 0.0 or together > _MOST_TOGETHER:
        return found
    return _roots(list(map(axis, asked)), parts, weights, _MOST_TOGETHER)


class _Axis:
    """What is asked along an axis, as blocks of Gram matrices between subspaces; None between those not joined."""

    def __init__(self, grams: dict[Workload, Array]) -> None:
        bases = _subspaces(list(grams.values()))
        self.sizes = [basis.shape[1] for basis in bases]
        self.blocks: dict[Workload, list[list[Array | None]]] = {}
        for own, gram in grams.items():
            least = _ZERO * float(np.linalg.eigvalsh(gram)[-1])
            between = [[a.T @ gram @ b for b in bases] for a in bases]
            self.blocks[own] = [[None if np.linalg.norm(block) <= least else block for block in row] for row in between]


def _gram(workload: Workload) -> Array:
    if type(workload) is Histogram:
        return np.eye(workload.core.input_len or 0)
    rows = condensed(workload)[0]
    return rows.T @ rows


def _subspaces(grams: list[Array]) -> list[Array]:
    """Return orthonormal bases of what is constant, and of what is even and odd, or of the rest."""
    n = len(grams[0])
    unit = np.eye(n)
    parts = [unit]
    if all(np.abs(gram - gram[::-1, ::-1]).max() <= _ZERO * np.abs(gram).max() for gram in grams):
        half = unit[:, : n // 2]
        parts = [np.hstack([half + half[::-1], unit[:, n // 2 : n - n // 2]]), (half - half[::-1]) / math.sqrt(2.0)]
    # The first column, a constant, and the others are an orthonormal basis of the even ones, or of all.
    turned, _ = np.linalg.qr(np.hstack([np.ones((n, 1)), parts[0][:, 1:]]))
    bases = [turned[:, :1], turned[:, 1:], *parts[1:]]
    return [basis for basis in bases if basis.shape[1]]


def _roots(axes: list[_Axis], parts: list[tuple[Workload, ...]], weights: tuple[float, ...], most: int) -> float:
    """Return the sum of the singular values, or a little less; 0 where more than so many are joined."""
    if math.prod(len(axis.sizes) for axis in axes) > _MOST_SETS:
        return 0.0
    places = list(itertools.product(*(range(len(axis.sizes)) for axis in axes)))
    size = [math.prod(axis.sizes[k] for axis, k in zip(axes, place, strict=True)) for place in places]

    def between(part: tuple[Workload, ...], a: int, b: int) -> list[Array] | None:
        blocks = [axis.blocks[own][i][j] for axis, own, i, j in zip(axes, part, places[a], places[b], strict=True)]
        found = [block for block in blocks if block is not None]
        return found if len(found) == len(blocks) else None

    joined = {
        a: [b for b in range(len(places)) if any(between(part, a, b) for part in parts)] for a in range(len(places))
    }
    groups = _groups(joined)
    if any(sum(size[a] for a in group) > most for group in groups):
        return 0.0
    found = [np.zeros(1)]
    for group in groups:
        rows = [[np.zeros((size[a], size[b])) for b in group] for a in group]
        for (row, a), (slot, b) in itertools.product(enumerate(group), repeat=2):
            for part, weight in zip(parts, weights, strict=True):
                if (blocks := between(part, a, b)) is not None:
                    rows[row][slot] += weight * kronecker(blocks)
        found.append(np.linalg.eigvalsh(np.block(rows)))
    squares = np.concatenate(found)
    lost = max(_ERROR, _LOST * len(parts) * len(axes))
    return float(np.sqrt(np.maximum(squares - lost * squares.max(), 0.0)).sum())


def _groups(joined: dict[int, list[int]]) -> list[list[int]]:
    """Return what is joined, over others or directly."""
    left = {a for a, others in joined.items() if others}
    groups = []
    while left:
        group: set[int] = set()
        fresh = {left.pop()}
        while fresh:
            group |= fresh
            fresh = {b for a in fresh for b in joined[a]} - group
        left -= group
        groups.append(sorted(group))
    return groups
