"""Edges as arrays: endpoints, weights, in form only; what they are is looked at in the core."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sordino._support.checks import integer, positive
from sordino._support.private_numbers import reals_or
from sordino.errors import InvalidParameterError, ShapeError
from sordino.workloads.events.names import Names, indices

__all__ = ["endpoints", "weight_grid", "weight_units"]

_MOST_BITS = 30

_NONE = np.int64(-(2**62))


def endpoints(source: object, target: object, count: int, names: Names | None) -> tuple[NDArray[np.int64], ...]:
    """Return both ends of the edges as indices, -1 for unknown vertices; a string is one vertex.

    Raises:
        DataTypeError: Neither integers nor declared names.
        ShapeError: More than one dimension, or not as many of one end as of the other.
    """
    ends = (("source", source), ("target", target))
    u, v = (indices(name, [end] if isinstance(end, str) else end, count, names) for name, end in ends)
    if len(u) != len(v):
        raise ShapeError("source and target must be as many")
    return u, v


def weight_grid(max_weight: object, weight_bits: object) -> tuple[float, int]:
    """Return a checked largest weight, and the bits of a fraction of it.

    Raises:
        DataTypeError: Not numbers.
        InvalidParameterError: Out of range.
    """
    bits = integer("weight_bits", weight_bits, least=0)
    if bits > _MOST_BITS:
        raise InvalidParameterError("weight_bits must be at most 30")
    return positive("max_weight", max_weight), bits


def weight_units(weights: object, edges: int, largest: float, units: int, one_signed: bool) -> NDArray[np.int64]:
    """Return weights in `units` a `largest`, rounded to the nearest; out of range or not finite: a null item.

    Args:
        weights: A number for all edges, one for each, or None for `largest`.
        edges: Number of edges.
        largest: Largest weight.
        units: Units of the largest weight.
        one_signed: Whether weights are not negative.

    Raises:
        DataTypeError: Not numbers.
        ShapeError: Not as many as edges.
    """
    if weights is None:
        return np.full(edges, units, dtype=np.int64)
    array = reals_or("weights", weights)
    if array.ndim == 0:
        array = np.full(edges, float(array))
    if array.shape != (edges,):
        raise ShapeError("weights must be as many as edges")
    least = 0.0 if one_signed else -largest
    valid = (array >= least) & (array <= largest)  # not-a-number is outside
    with np.errstate(all="ignore"):  # whatever the caller asks numpy to raise
        rounded = np.floor(np.where(valid, array, 0.0) / largest * units + 0.5).astype(np.int64)
    return np.where(valid, np.clip(rounded, 0 if one_signed else -units, units), _NONE)
