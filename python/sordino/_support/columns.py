"""Columns and tables of pandas, polars and Arrow as arrays: each column by itself, and no entry decides for others."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sordino.errors import DataTypeError

__all__ = ["check_columns", "converted", "listed_column", "objects_of"]


def objects_of(entries: list[Any] | tuple[Any, ...]) -> NDArray[Any]:
    """Return an array of these objects, as they are."""
    return np.fromiter(entries, dtype=object, count=len(entries))


# Types of columns that hold no numbers, as pandas, polars and Arrow name them.
_NO_NUMBERS = (
    "category", "categorical", "dictionary", "enum", "period", "interval", "date", "time", "duration", "str", "utf8",
    "large_", "binary", "list", "array", "struct", "fixed_size", "month",
)  # fmt: skip


def check_columns(what: str, data: Any, kind: str) -> None:
    """Refuse columns by their type: what a column becomes in numpy depends on whether an entry is missing.

    Raises:
        DataTypeError: A column of dates, times, categories or text.
    """
    types = getattr(getattr(data, "schema", None), "types", None)
    if types is None:
        types = getattr(data, "dtypes", None)
    if types is None:
        types = [getattr(data, "dtype", getattr(data, "type", None))]
    for dtype in types if isinstance(types, Iterable) else [types]:
        found = getattr(getattr(dtype, "categories", None), "dtype", dtype)  # of categories that are numbers
        if not isinstance(found, np.dtype) and str(found).lower().startswith(_NO_NUMBERS):
            raise DataTypeError(f"{what} must be {kind}: a column of another type is among them")


def converted(data: Any) -> NDArray[Any]:
    """Return data as numpy has them, with a mask if that is so.

    Raises:
        TypeError: A column of a table holds no numbers, or does not say its entries.
    """
    convert = getattr(data, "to_numpy", None)
    if not callable(convert):
        return np.asanyarray(data)
    columns = _columns_of(data)
    if columns is not None:
        # A table takes one type for all its columns, and casts what is missing.
        arrays = [converted(column) for column in columns]
        if any(array.dtype.kind not in "iubfO" for array in arrays):
            raise TypeError  # whatever stands beside it
        if any(array.dtype.kind == "O" for array in arrays):
            return np.stack([objects_of(array.tolist()) for array in arrays], axis=1)
        return np.ma.stack(arrays, axis=1) if any(map(np.ma.isMaskedArray, arrays)) else np.stack(arrays, axis=1)
    for options in ({}, {"zero_copy_only": False}):
        with suppress(Exception):  # which may quote entries
            return np.asanyarray(convert(**options))
    return objects_of(listed_column(data))  # such as text that is no UTF-8


def _columns_of(data: Any) -> list[Any] | None:
    """Return the columns of a frame of pandas or polars; None of anything else, and where one dtype of numpy is all."""
    types = getattr(data, "dtypes", None)
    if types is None or getattr(data, "ndim", 2) != 2:
        return None
    kinds = list(types)
    if not kinds or (isinstance(kinds[0], np.dtype) and kinds[0].kind != "O" and len(set(kinds)) == 1):
        return None
    if hasattr(data, "get_columns"):
        return list(data.get_columns())
    return [data.iloc[:, at] for at in range(len(kinds))] if hasattr(data, "iloc") else None


def listed_column(column: Any) -> list[Any]:
    """Return the entries of a column of Arrow, or of pandas or polars, as Python has them.

    Text that is no UTF-8 stays text, byte for byte; what is no value of its type is missing.

    Raises:
        TypeError: The column does not say its entries.
    """
    for name in ("to_pylist", "to_list", "tolist"):
        if callable(convert := getattr(column, name, None)):
            try:
                return list(convert())
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException:  # beyond Python's dates, no UTF-8; polars panics
                break
    behind = getattr(getattr(column, "array", None), "__arrow_array__", None)
    found = column if behind is None else behind()
    if not hasattr(found, "to_pylist"):
        raise TypeError
    return list(map(_scalar, found))


def _scalar(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except (ValueError, ArithmeticError):
        text = getattr(scalar, "as_buffer", None)
        return None if text is None else text().to_pybytes().decode("utf-8", "surrogateescape")
