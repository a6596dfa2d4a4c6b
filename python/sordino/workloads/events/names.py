"""Vertices and letters by name: public sets, and what is not in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sordino._support.checks import integer, sequence
from sordino._support.private_numbers import NOWHERE, array_of, entries_of, is_missing_item, member_of, members_or
from sordino.errors import DataTypeError, InvalidParameterError, ShapeError

__all__ = ["Names", "characters", "indices", "is_single", "names_of", "vertex_names"]

Names = tuple[str, ...]


def names_of(name: str, value: object, *, least: int, most: int) -> tuple[int, Names | None]:
    """Return the size of a public set, and the names of its members unless it was given as a number.

    Raises:
        DataTypeError: Neither an integer nor strings in an order.
        InvalidParameterError: Too few or too many, or a name comes twice.
    """
    names: Names | None = None
    if isinstance(value, Iterable):
        names = tuple(value) if isinstance(value, str) else sequence(name, value, "strings")
        if not all(isinstance(member, str) for member in names):
            raise DataTypeError(f"{name} must be a number, or strings")
        if len(set(names)) < len(names):
            raise InvalidParameterError(f"{name} must be different from each other")
        count = len(names)
    else:
        count = integer(name, value, least=least, most=most)
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
            letter, a string is a sequence. Members of a list may be anything: what is in no set is a null item.
        count: Size of the set.
        names: Names of its members.

    Raises:
        DataTypeError: An array whose dtype is neither of integers nor, if there are names, of strings; or with a mask.
        ShapeError: More than one dimension.
    """
    if names is not None and isinstance(values, str):
        values = list(values) if characters(names) else [values]
    kind = "integers" if names is None else "integers, or the names that were declared"
    if names is not None and not is_missing_item(values) and not isinstance(values, list | tuple):
        array = np.atleast_1d(array_of(name, values, kind))
        if array.dtype.kind not in "iubfOUT":
            raise DataTypeError(f"{name} must be {kind}")
    else:
        array = np.atleast_1d(entries_of(name, values, kind, text=True))
    if array.ndim != 1:
        raise ShapeError(f"{name} must be one-dimensional")
    if array.dtype.kind in "OUT":
        return _looked_up(array.tolist(), count, names)
    found = members_or(name, array)
    return np.where((found >= 0) & (found < count), found, NOWHERE)


def is_single(values: object) -> bool:
    """Return whether these are one member, not a sequence of them."""
    if isinstance(values, list | tuple):
        return False
    return isinstance(values, str) or not hasattr(values, "__len__") or getattr(values, "ndim", 1) == 0


def _looked_up(values: Sequence[Any], count: int, names: Names | None) -> NDArray[np.int64]:
    places = {} if names is None else {member: i for i, member in enumerate(names)}

    def place(value: Any) -> int:
        if isinstance(value, str):
            return places.get(str.__str__(value), NOWHERE)  # text itself, whatever is made from it
        member = member_of(value)
        return member if 0 <= member < count else NOWHERE

    return np.fromiter(map(place, values), dtype=np.int64, count=len(values))
