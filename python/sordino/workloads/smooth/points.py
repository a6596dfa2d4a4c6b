"""Private points: arrays, tables and batches of them, turned into what the core takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from sordino._support.private_numbers import reals_or
from sordino.errors import DataTypeError, ShapeError
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
    batches = isinstance(data, list | tuple) and _are_batches(data)
    if not batches and (_is_table(data) or isinstance(data, list | tuple)):
        yield _points(data, dimension)
    elif _holds_batches(data):
        for batch in data:  # type: ignore[attr-defined] # as it was found to be
            if not _is_table(batch) and not isinstance(batch, list | tuple):
                raise DataTypeError("batches of points must be arrays or tables")
            yield _points(batch, dimension)
    else:
        raise DataTypeError("points must be an array of shape (n, d), a table, or an iterable of those")


def _holds_batches(data: object) -> bool:
    """Return whether something is iterated over for batches: no text, no view of a table, no matrix of few entries."""
    other = isinstance(data, str | bytes | dict | memoryview) or hasattr(data, "collect") or hasattr(data, "tocoo")
    return isinstance(data, Iterable) and not other


def _are_batches(parts: list[Any] | tuple[Any, ...]) -> bool:
    """Return whether the parts are tables, or empty.

    Raises:
        DataTypeError: Tables and something else: one part would decide what all others are.
    """
    tables = list(map(_is_two_dimensional, parts))
    if not any(tables):
        return False
    if not all(
        table or (isinstance(part, np.ndarray) and part.size == 0) or (isinstance(part, list | tuple) and not part)
        for part, table in zip(parts, tables, strict=True)
    ):
        raise DataTypeError("points are batches and something else: give batches of shape (m, d), or points, alone")
    return True


def _is_two_dimensional(part: Any) -> bool:
    try:
        return len(getattr(part, "shape", ())) == 2
    except Exception:  # whatever an object says of itself
        return False


def _is_table(data: object) -> bool:
    if isinstance(data, np.ndarray) or hasattr(data, "to_numpy"):
        return True
    return hasattr(data, "schema") and hasattr(data, "columns") and not hasattr(data, "collect")


def _points(data: Any, dimension: int) -> Array:
    if hasattr(data, "schema") and hasattr(data, "columns") and not hasattr(data, "to_numpy"):
        # Arrow: a table or record batch of columns.
        columns = [reals_or("points", column) for column in data.columns]
        array = np.column_stack(columns) if columns else np.empty((0, 0))
    else:
        array = reals_or("points", data, width=dimension)
    if array.ndim == 1 and dimension == 1:
        array = array[:, None]
    if array.size == 0 and array.ndim < 2:
        array = np.empty((0, dimension))
    if array.ndim != 2 or array.shape[1] != dimension:
        raise ShapeError(f"points must have {dimension} coordinates, shape (n, {dimension})")
    return np.ascontiguousarray(array, dtype=np.float64)
