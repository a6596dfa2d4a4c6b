"""Private points: arrays, tables and batches of them, turned into what the core takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from numbers import Number
from typing import Any

import numpy as np

from sordino.errors import DataTypeError, ShapeError
from sordino.private_numbers import array_of, reals_or
from sordino.workloads.base import Array

__all__ = ["read_points"]


def read_points(data: object, dimension: int) -> Iterator[Array]:
    """Yield points piece by piece, shape (count, d); nothing here looks at their values.

    Args:
        data: An array of shape (n, d), a data frame or Arrow table of d columns, or an iterable of such batches, which
            then need not fit into memory together.
        dimension: d.

    Raises:
        DataTypeError: No numbers.
        ShapeError: Another number of coordinates.
    """
    if _is_table(data) or isinstance(data, list | tuple):
        yield _points(data, dimension)
    elif isinstance(data, Iterable) and not isinstance(data, str | bytes | dict):
        for batch in data:
            if not _is_table(batch) and not isinstance(batch, list | tuple):
                raise DataTypeError("batches of points must be arrays or tables")
            yield _points(batch, dimension)
    else:
        raise DataTypeError("points must be an array of shape (n, d), a table, or an iterable of those")


def _is_table(data: object) -> bool:
    return isinstance(data, np.ndarray) or hasattr(data, "to_numpy") or hasattr(data, "schema")


def _points(data: Any, dimension: int) -> Array:
    if hasattr(data, "schema") and hasattr(data, "columns") and not hasattr(data, "to_numpy"):
        # Arrow: a table or record batch of columns.
        array = np.column_stack([_real(column) for column in data.columns])
    else:
        array = _real(data)
    if array.ndim == 1 and dimension == 1:
        array = array[:, None]
    if array.size == 0 and array.ndim < 2:
        array = np.empty((0, dimension))
    if array.ndim != 2 or array.shape[1] != dimension:
        raise ShapeError(f"points must have {dimension} coordinates, shape (n, {dimension})")
    return np.ascontiguousarray(array, dtype=np.float64)


def _real(data: object) -> Array:
    """Return numbers, not-a-number where they are missing; text is never read as numbers.

    Raises:
        DataTypeError: No real numbers.
    """
    array = array_of("points", data)
    if array.dtype.kind not in "iubf" and array.size == 0:
        return np.empty(array.shape)
    for column in array.reshape(len(array), -1).T if array.dtype.kind == "O" and array.ndim else ():
        if any(isinstance(entry, str | bytes) for entry in column) and not any(isinstance(e, Number) for e in column):
            raise DataTypeError("points must be real numbers")
    return reals_or("points", array)
