"""What is public of marginal tables: margins, cells that stay empty, and bounds of cells."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from sordino._support.checks import numbers
from sordino.errors import DataTypeError, InvalidParameterError, ShapeError, UnsupportedMechanismError
from sordino.releases.consistent.parts import Sizes, centred, margin_of, within
from sordino.releases.consistent.report import Set, Wishes
from sordino.workloads import Marginals
from sordino.workloads.base import Array

__all__ = ["kept_residuals", "limits_of"]

_MOST = 2.0**53


def _named(name: str, s: object, sets: Iterable[Set]) -> Set:
    """Return a set of attributes that a wish names: in order, within some wanted table."""
    numbers_alone = isinstance(s, tuple) and all(type(i) is int for i in s)
    if not isinstance(s, tuple) or not numbers_alone or not any(set(s) <= set(wanted) for wanted in sets):
        raise InvalidParameterError(f"{name}: each set must be a tuple of attributes within a wanted table")
    if list(s) != sorted(set(s)):
        raise InvalidParameterError(f"{name}: attributes of a set rise")
    return s


def kept_residuals(sizes: Sizes, below: list[Set], wishes: Wishes, total: float) -> tuple[dict[Set, Array], float]:
    """Return the residuals of public margins, and the total that they have."""
    kept: dict[Set, Array] = {}
    known = wishes.total
    for name, counts in wishes.invariants.items():
        s = _named("invariants", name, [*below, ()])
        table = numbers("invariants", counts, ndim=None)
        if table.shape != sizes.shape(s):
            raise ShapeError(f"invariants of {s} must have shape {sizes.shape(s)}")
        if (table < 0.0).any() or not np.isfinite(table).all():
            raise InvalidParameterError("invariants must be counts that are not negative")
        own = float(table.sum())
        if own > _MOST:
            raise InvalidParameterError("invariants must be counts of at most 2**53 records")
        if wishes.whole and (table != np.rint(table)).any():
            raise InvalidParameterError("whole numbers have whole invariants")
        if known is not None and abs(own - known) > 1e-9 * (1.0 + known):
            raise InvalidParameterError("invariants and total must have the same sum")
        known = own if known is None else known
        for t in within(s):
            residual = centred(margin_of(s, table, t))
            if t in kept and not np.allclose(kept[t], residual, rtol=0.0, atol=1e-9 * (1.0 + own)):
                raise InvalidParameterError("invariants must agree on what they have in common")
            kept[t] = residual
    return kept, total if known is None else known


_Limits = tuple[Array, Array]


def limits_of(sizes: Sizes, workload: Marginals, wishes: Wishes) -> tuple[dict[Set, NDArray[np.bool_]], _Limits | None]:
    """Return the cells of each table that stay empty, and least and largest values of all cells."""
    nobody = any((np.asarray(table) == 0.0).any() for table in wishes.invariants.values())
    if not wishes.zeros and not wishes.bounds and not nobody:
        return {}, None
    if wishes.bounds and wishes.whole:
        raise UnsupportedMechanismError("whole numbers keep no bounds")
    empty = _empty(sizes, workload, wishes)
    low = {s: np.zeros(sizes.shape(s)) for s in workload.sets}
    high = {s: np.full(sizes.shape(s), np.inf) for s in workload.sets}
    for name, ends in wishes.bounds.items():
        s = _named("bounds", name, workload.sets)
        if s not in low:
            raise InvalidParameterError("bounds: each set must be a wanted table")
        low[s], high[s] = _ends(ends, sizes.shape(s))
    for s, mask in empty.items():
        if (low[s][mask] > 0.0).any():
            raise InvalidParameterError("bounds and zeros exclude each other")
        high[s][mask] = 0.0
    flat = [np.concatenate([np.zeros(0), *(own[s].reshape(-1) for s in workload.sets)]) for own in (low, high)]
    return empty, (flat[0], flat[1])


def _empty(sizes: Sizes, workload: Marginals, wishes: Wishes) -> dict[Set, NDArray[np.bool_]]:
    """Return the cells of each table that no record can be in."""
    empty = {s: np.zeros(sizes.shape(s), dtype=np.bool_) for s in workload.sets}
    for name, mask in wishes.zeros.items():
        t, array = _named("zeros", name, workload.sets), _mask(mask)
        if array.shape != sizes.shape(t):
            raise ShapeError(f"zeros of {t} must have shape {sizes.shape(t)}")
        _emptied(empty, sizes, t, array)
    for name, counts in wishes.invariants.items():
        _emptied(empty, sizes, name, np.asarray(counts, dtype=np.float64) == 0.0)
    # Where nobody is in a group, nobody is in it in any other table.
    before = -1
    while before != (now := sum(int(mask.sum()) for mask in empty.values())):
        before = now
        for s in workload.sets:
            for t in within(s):
                group = np.asarray(empty[s].all(axis=tuple(axis for axis, i in enumerate(s) if i not in t)))
                if t != s and group.any():
                    _emptied(empty, sizes, t, group)
    return empty


def _emptied(empty: dict[Set, NDArray[np.bool_]], sizes: Sizes, t: Set, mask: NDArray[np.bool_]) -> None:
    for s, own in empty.items():
        if set(t) <= set(s):
            empty[s] = own | mask.reshape([sizes.levels[i] if i in t else 1 for i in s])


def _mask(values: object) -> NDArray[np.bool_]:
    try:
        array = np.asarray(values)
    except Exception:  # whatever an object of the caller raises
        raise DataTypeError("zeros must be arrays of truth values") from None
    if array.dtype != np.bool_:
        raise DataTypeError("zeros must be arrays of truth values")
    return array


def _ends(ends: object, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Return least and largest values of the cells of a table."""
    if not isinstance(ends, tuple) or len(ends) != 2:
        raise DataTypeError("bounds must be pairs of least and largest values")
    try:
        low, high = (np.broadcast_to(numbers("bounds", end, ndim=None), shape).astype(np.float64) for end in ends)
    except ValueError:
        raise ShapeError(f"bounds must have shape {shape}, or be numbers") from None
    if not (low <= high).all() or not np.isfinite(low).all() or (high < 0.0).any():
        raise InvalidParameterError("bounds must be least and largest values that are not negative")
    return np.maximum(low, 0.0), high
