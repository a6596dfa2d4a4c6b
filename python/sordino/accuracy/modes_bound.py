"""Nuclear norms of unions of products with long axes, by the modes of what is asked along each."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from sordino.workloads import Workload
from sordino.workloads.base import Array

__all__ = ["is_constant", "sum_of_roots"]

# Modes of single axes that are decomposed together.
_MOST_LEFT = 640
# The norm of what is taken for zero beside that of a Gram matrix; rounding, and what it may do to an inverse before a
# place of the quadrature is left out.
_ZERO, _ROUNDED, _MOST_LOST = 1e-12, 16.0 * 2.0**-52, 1e-3
# Places are so far apart in the logarithm of the root, and go so far beyond the least and the largest.
_STEP, _BELOW, _ABOVE, _SHIFTED = 0.65, 1e-5, 1e5, 10.0


def sum_of_roots(
    parts: Sequence[Sequence[Workload]], grams: Mapping[Workload, Array], weights: Sequence[float]
) -> float:
    """Return `tr W^(1/2)` of `W = Σ_p w_p ⊗_i G_pi`, or a little less; 0 where there are no modes, or too many.

    In the modes along an axis (what is constant, and eigenvectors of the rest of a Gram matrix) the rest of what is
    asked is diagonal. Then what has a mode along two axes is joined to single modes and to constants alone, and is
    eliminated: with d on its diagonal, C between the two and U what is left, `tr (W + t)^{-1}` is `Σ 1/(d + t) + tr
    M^{-1} (1 + C (d + t)^{-2} Cᵀ)`, `M = U + t - C (d + t)^{-1} Cᵀ`. `W^(1/2)` is `2/π ∫ W (W + s²)^{-1} ds`: by the
    trapezoidal rule in the logarithm of s at most `1 + 4 exp(-π²/h)` of that, and less where places are left out.

    Args:
        parts: The factors of each product, along the same axes.
        grams: Of every factor.
        weights: `w_p`.
    """
    sets = [[len(grams[own]) for own in part if not is_constant(grams[own])] for part in parts]
    if any(len(own) > 2 for own in sets) or max((sum(own) for own in sets if len(own) == 2), default=0) > _MOST_LEFT:
        return 0.0
    modes = cache(lambda asked: _modes({own: grams[own] for own in asked}))
    axes = [modes(tuple(own for own in grams if own in asked)) for asked in zip(*parts, strict=True)]
    found = [axis for axis in axes if axis is not None]
    if len(found) < len(axes):
        return 0.0
    parted = _Parted.of([[axis[own] for axis, own in zip(found, part, strict=True)] for part in parts], weights)
    if parted is None:
        return 0.0
    # Of every product as much as of all its factors.
    lost = 0.0
    for part, weight in zip(parts, weights, strict=True):
        norms = [float(np.linalg.norm(grams[own])) for own in part]
        each = sum(axis[own].lost / (norm or 1.0) for axis, own, norm in zip(found, part, norms, strict=True))
        lost += weight * math.prod(norms) * each
    return parted.root(lost)


def is_constant(gram: Array) -> bool:
    """Return whether a Gram matrix is one of totals, to rounding."""
    return bool(np.ptp(gram) <= _ZERO * gram.max())


@dataclass(frozen=True)
class _Arrow:
    """A Gram matrix in the modes of an axis: of what is constant, between that and the modes, and of each mode.

    `lost` is the norm of what is left out of it, and of rounding.
    """

    constant: float
    between: Array
    modes: Array
    lost: float

    @property
    def is_total(self) -> bool:
        return not (self.between.any() or self.modes.any())


def _modes(grams: Mapping[Workload, Array]) -> dict[Workload, _Arrow] | None:
    """Return them in the modes that all of them have; None if they have none in common."""
    n = len(next(iter(grams.values())))
    turned, _ = np.linalg.qr(np.hstack([np.ones((n, 1)), np.eye(n)[:, 1:]]))
    rotated = {own: turned.T @ gram @ turned for own, gram in grams.items()}
    rests = {own: gram[1:, 1:] for own, gram in rotated.items() if not _is_nothing(gram[1:], gram)}
    uneven = [
        rest
        for own, rest in rests.items()
        if not _is_nothing(rest - np.diag(np.full(n - 1, np.diagonal(rest).mean())), rotated[own])
    ]
    basis = np.linalg.eigh(uneven[0])[1] if uneven else np.eye(n - 1)
    arrows: dict[Workload, _Arrow] = {}
    for own, gram in rotated.items():
        between, modes, left_out = np.zeros(n - 1), np.zeros(n - 1), gram[1:]
        if own in rests:
            rest = basis.T @ rests[own] @ basis
            between, modes = basis.T @ gram[1:, 0], np.diagonal(rest).copy()
            left_out = rest - np.diag(modes)
            if not _is_nothing(left_out, gram):
                return None
        lost = float(2.0 * np.linalg.norm(left_out) + _ROUNDED * math.sqrt(n) * np.linalg.norm(gram))
        arrows[own] = _Arrow(float(gram[0, 0]), between, modes, lost)
    return arrows


def _is_nothing(values: Array, beside: Array) -> bool:
    return bool(np.linalg.norm(values) <= _ZERO * np.linalg.norm(beside))


@dataclass(frozen=True)
class _Top:
    """What has modes along all axes of a set that is in no larger one: its diagonal, and what joins it to less.

    `joined` has for every smaller set (by which of the axes are in it) numbers of the shape of the diagonal.
    """

    axes: tuple[int, ...]
    diagonal: Array
    joined: dict[tuple[int, ...], Array]


@dataclass(frozen=True)
class _Parted:
    """`W`: what is eliminated, and what is left, constants first, with the place of every axis' modes."""

    tops: list[_Top]
    rest: Array
    places: dict[tuple[int, ...], slice]

    @property
    def left(self) -> int:
        return len(self.rest)

    @classmethod
    def of(cls, parts: list[list[_Arrow]], weights: Sequence[float]) -> "_Parted | None":
        """Return it; None if a product has modes along three axes, or too much is left."""
        sets = {tuple(i for i, arrow in enumerate(part) if not arrow.is_total) for part in parts}
        tops = [own for own in sorted(sets) if not any(set(own) < set(other) for other in sets)]
        if any(len(own) > 2 for own in tops):
            return None

        def entries(kept: tuple[int, ...], across: tuple[int, ...]) -> Array:
            """Return the entries of modes along some axes, between a mode and what is constant along others."""
            total = np.zeros(())
            for part, weight in zip(parts, weights, strict=True):
                own = np.array(weight)
                for i, arrow in enumerate(part):
                    if i in kept:
                        own = np.multiply.outer(own, arrow.between if i in across else arrow.modes)
                    else:
                        own = own * arrow.constant
                total = total + own
            return total

        smaller = [[own for k in range(len(top)) for own in itertools.combinations(top, k)] for top in tops]
        left = sorted(set(itertools.chain.from_iterable(smaller)), key=lambda own: (len(own), own))
        places, last = {}, 0
        for own in left:
            size = math.prod(len(parts[0][i].modes) for i in own)
            places[own] = slice(last, last + size)
            last += size
        if last > _MOST_LEFT:
            return None
        rest = np.zeros((last, last))
        for a, b in itertools.product(left, repeat=2):
            both = tuple(sorted({*a, *b}))
            block = entries(both, tuple(i for i in both if not (i in a and i in b)))
            rest[places[a], places[b]] = _block(block, a, b)
        found = [
            _Top(top, entries(top, ()), {own: entries(top, tuple(i for i in top if i not in own)) for own in below})
            for top, below in zip(tops, smaller, strict=True)
        ]
        return cls(found, rest, places)

    def root(self, lost: float) -> float:
        """Return `tr W^(1/2)` less what its eigenvalues may have lost, or a little less."""
        eye = np.eye(self.left)
        rest = self.rest - lost * eye
        diagonals = [top.diagonal - lost for top in self.tops]
        ends = np.concatenate([own.ravel() for own in [*diagonals, np.diagonal(rest)]])
        ends = ends[ends > lost]
        if not ends.size:
            return 0.0
        # Shifts are above what may have been lost, so that all that is divided by is positive.
        first = max(_BELOW * math.sqrt(ends.min()), math.sqrt(_SHIFTED * lost))
        last = _ABOVE * math.sqrt(ends.sum())
        total = 0.0
        for s in np.exp(np.arange(math.log(first), math.log(last), _STEP)).tolist():
            t = s * s
            others = self._of_rest(rest + t * eye, [1.0 / (own + t) for own in diagonals], t)
            if others is not None:
                total += _STEP * s * (others + sum(float(np.sum(own / (own + t))) for own in diagonals))
        counted = sum(own.size for own in diagonals) + self.left
        rounded = _ROUNDED * counted * len(self.tops)
        return max(total * 2.0 / math.pi / (1.0 + 4.001 * math.exp(-(math.pi**2) / _STEP)) * (1.0 - rounded), 0.0)

    def _of_rest(self, rest: Array, inverses: list[Array], t: float) -> float | None:
        """Return what is left of `tr W (W + t)^{-1}`; None where its digits are lost."""
        once, twice = self._sums(inverses), self._sums([own * own for own in inverses])
        try:
            np.linalg.cholesky(rest - once)
            inverse = np.linalg.inv(rest - once)
        except np.linalg.LinAlgError:
            return None
        error = _ROUNDED * self.left * float((np.linalg.norm(rest) + np.linalg.norm(once)) * np.linalg.norm(inverse))
        if error > _MOST_LOST:
            return None
        lost = t * (float(np.trace(inverse)) + float(np.sum(twice * inverse)))
        return self.left - lost * (1.0 + error)

    def _sums(self, weights: list[Array]) -> Array:
        """Return `C diag C^T` of what is eliminated."""
        found = np.zeros_like(self.rest)
        for top, own in zip(self.tops, weights, strict=True):
            for a, b in itertools.product(top.joined, repeat=2):
                product = top.joined[a] * top.joined[b] * own
                others = tuple(k for k, axis in enumerate(top.axes) if axis not in a and axis not in b)
                found[self.places[a], self.places[b]] += _block(product.sum(axis=others), a, b)
        return found


def _block(values: Array, a: tuple[int, ...], b: tuple[int, ...]) -> Array:
    """Return the block between the modes of at most one axis each."""
    if a and a == b:
        return np.diag(values)
    return values.reshape(values.size if a else 1, -1) if not (a and b) else (values if a < b else values.T)
