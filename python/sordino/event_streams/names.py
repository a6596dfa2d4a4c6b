"""Vertices and letters by name: public sets, and what is not in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sordino._checks import integer
from sordino.errors import DataTypeError, InvalidParameterError, ShapeError

__all__ = ["Names", "characters", "indices", "names_of", "vertex_names"]

Names = tuple[str, ...]

_UNKNOWN = -1


def names_of(name: str, value: object, *, least: int, most: int) -> tuple[int, Names | None]:
    """Return the size of a public set, and the names of its members unless it was given as a number.

    Raises:
        DataTypeError: Neither an integer nor strings.
        InvalidParameterError: Too few or too many, or a name comes twice.
    """
    names: Names | None = None
    if isinstance(value, Iterable):
        names = tuple(value)
        if not all(isinstance(member, str) for member in names):
            raise DataTypeError(f"{name} must be a number, or strings")
        if len(set(names)) < len(names):
            raise InvalidParameterError(f"{name} must be different from each other")
        count = len(names)
    else:
        count = integer(name, value, least=least)
    if not least <= count <= most:
        raise InvalidParameterError(f"{name} must be from {least} to {most}")
    return count, names


def characters(names: Names) -> bool:
    """Return whether every name is one character, so that a string is a sequence of members."""
    return all(len(name) == 1 for name in names)


def vertex_names(count: int, names: Names | None) -> int | str | list[str]:
    """Return what `names_of` takes; names of one character each as one string."""
    if names is None:
        return count
    return "".join(names) if characters(names) else list(names)


def indices(name: str, values: object, count: int, names: Names | None) -> NDArray[np.int64]:
    """Return members as indices; what is not in the set is -1, silently: a null item.

    Args:
        name: Of the argument, for messages.
        values: One member or a sequence of them: integers, or strings if the set has names. Where all names have one
            letter, a string is a sequence.
        count: Size of the set.
        names: Names of its members.

    Raises:
        DataTypeError: Neither integers nor, if there are names, strings: not one of a list.
        ShapeError: More than one dimension.
    """
    if names is not None and isinstance(values, str):
        values = list(values) if characters(names) else [values]
    try:
        array = np.atleast_1d(np.asarray(values))
    except Exception:
        raise DataTypeError(f"{name} must be integers, or the names that were declared") from None
    if array.ndim != 1:
        raise ShapeError(f"{name} must be one-dimensional")
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    listed = list(values) if isinstance(values, list | tuple) else array.tolist() if array.dtype.kind == "O" else []
    if array.dtype.kind not in "iu" and any(_of_a_type(value, names) for value in listed):
        # Item by item: what is no member, whatever it is, is a null item.
        return _looked_up(listed, count, names)
    if array.dtype.kind in "iu":
        if array.dtype.kind == "u":
            array = np.minimum(array, np.uint64(2**62))
        found = array.astype(np.int64)
        return np.where((found >= 0) & (found < count), found, _UNKNOWN)
    if names is None or array.dtype.kind not in "UT":
        raise DataTypeError(f"{name} must be integers" + ("" if names is None else ", or the names that were declared"))
    return _looked_up(array.tolist(), count, names)


def _of_a_type(value: Any, names: Names | None) -> bool:
    """Return whether a member may be of the type of a value."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole or value is None or (names is not None and isinstance(value, str))


def _looked_up(values: Sequence[Any], count: int, names: Names | None) -> NDArray[np.int64]:
    places = {} if names is None else {member: i for i, member in enumerate(names)}

    def place(value: Any) -> int:
        if isinstance(value, str):
            return places.get(value, _UNKNOWN)
        return int(value) if value is not None and _of_a_type(value, None) and 0 <= value < count else _UNKNOWN

    return np.fromiter(map(place, values), dtype=np.int64, count=len(values))
