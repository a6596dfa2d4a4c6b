"""Columns as they come from numpy, pandas, polars, Arrow and lists, frame by frame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sordino._support.columns import converted, listed_column, objects_of
from sordino._support.private_numbers import attempt
from sordino.errors import DataTypeError, ShapeError
from sordino.tables.columns import Column, Text, arrow, in_units, ticks_as_microseconds

__all__ = ["frames_of", "read_column"]


def read_column(data: Any, what: str) -> Column:
    """Return a column of whatever library.

    Raises:
        DataTypeError: No column, one with a mask, or one of a type that nothing is made of.
        ShapeError: More than one dimension.
    """
    if isinstance(data, Column):
        return data
    if isinstance(data, list | tuple):
        return Column("object", objects_of(data), None, "list")
    if isinstance(data, np.ndarray):
        return _of_numpy(data, what)
    if getattr(data, "ndim", 1) != 1 or hasattr(data, "columns"):
        raise ShapeError(f"{what} must be one column")
    dtype = getattr(data, "dtype", None)
    categories = data.cat if str(dtype) == "category" and hasattr(data, "cat") else data  # of pandas
    if hasattr(categories, "codes") and hasattr(categories, "categories"):
        codes = np.asarray(categories.codes, dtype=np.int64)
        values = read_column(categories.categories, what)
        return Column("dictionary", (np.maximum(codes, 0), values), codes >= 0, f"category of {values.name}")
    pa = arrow()
    if pa is not None and not isinstance(dtype, np.dtype) and any(hasattr(data, name) for name in _ARROW):
        found = _to_arrow(pa, data)
        if found is not None:
            return _of_arrow(pa, found, what)
    return _of_others(data, dtype, what)


_ARROW = ("__arrow_c_stream__", "__arrow_c_array__", "__arrow_array__")


def _of_others(data: Any, dtype: Any, what: str) -> Column:
    """Return a column of a library that says its entries to numpy, or one by one."""
    said = "" if dtype is None else str(dtype).lower()
    if said in _NUMPY_OF and not isinstance(dtype, np.dtype):
        return _of_nullable(data, said, what)
    if dtype is None or isinstance(dtype, np.dtype):
        says = hasattr(data, "to_numpy") or hasattr(data, "__array__")
        found, error = attempt(converted, data) if says else (None, None)
        if isinstance(found, np.ndarray) and error is None:
            return _of_numpy(found, what)
    if said.startswith(("str", "utf8", "object", "categorical", "enum")):
        found, error = attempt(listed_column, data)
        if error is None:
            return Column("object", objects_of(found), None, said) if said == "object" else _of_text(found, said)
    named = f" of type {dtype}" if said else ""
    raise DataTypeError(f"{what} cannot be read from a column{named}: cast it to integers, numbers or text")


def _of_nullable(data: Any, said: str, what: str) -> Column:
    """Numbers of pandas or polars, some of which may be missing: of the type that the column says, missing or not."""
    missing = np.asarray((data.is_null() if hasattr(data, "is_null") else data.isna()).to_numpy(), dtype=np.bool_)
    filled = data.fill_null(0) if hasattr(data, "fill_null") else data.fillna(0)
    numpy_of = {"boolean": "bool"}.get(said, said)
    found = _of_numpy(np.asarray(filled.to_numpy(), dtype=numpy_of), what)
    return Column(found.kind, found.values, ~missing, str(data.dtype))


# Columns of polars without missing entries are numpy's.
_NUMPY_OF = frozenset(
    ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "boolean")
)


def _of_numpy(array: NDArray[Any], what: str) -> Column:
    if np.ma.isMaskedArray(array):
        raise DataTypeError(f"{what} must have no mask: fill or drop what is masked first")
    if array.ndim != 1:
        raise ShapeError(f"{what} must have one dimension")
    name = str(array.dtype)
    match array.dtype.kind:
        case "i":
            return Column("integer", array, None, name)
        case "u" if array.dtype.itemsize == 8:
            return Column("unsigned", np.ascontiguousarray(array, dtype=np.uint64), None, name)
        case "u":
            return Column("integer", array.astype(np.int64), None, name)
        case "b":
            return Column("boolean", array, None, name)
        case "f":
            return Column("real", array.astype(np.float64, copy=False), None, name)
        case "M":
            return Column("local", ticks_as_microseconds(*in_units(array)), ~np.isnat(array), name)
        case "U":
            return _of_text(array.tolist(), name)
        case "S":
            return Column("bytes", Text.of(bytes(entry) for entry in array), None, name)
        case "O":
            return Column("object", array, None, name)
    return Column("other", array, None, name)


def _of_text(entries: list[Any], name: str) -> Column:
    """Text entry by entry; what is none, or has no bytes, is missing."""
    return Column("text", *Text.read(_bytes, entries), name)


def _bytes(entry: Any) -> bytes:
    if not isinstance(entry, str):
        raise TypeError
    return entry.encode("utf-8", "surrogateescape")


def _to_arrow(pa: Any, data: Any) -> Any:
    """Return one array of Arrow; None if the library cannot make one."""
    try:
        found = data if isinstance(data, pa.Array | pa.ChunkedArray) else None
        if found is None and hasattr(data, "__arrow_array__"):
            found = pa.array(data)
        if found is None and hasattr(data, "__arrow_c_stream__"):
            found = pa.chunked_array(data)
        if found is None:
            found = pa.array(data)
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # which may quote entries; polars panics
        return None


def _of_arrow(pa: Any, array: Any, what: str) -> Column:
    kinds, kind, name = pa.types, array.type, str(array.type)
    if isinstance(array, pa.ChunkedArray):  # combined to none
        array = array.chunk(0) if array.num_chunks else pa.array([], type=kind)
    if isinstance(kind, pa.BaseExtensionType):
        if getattr(kind, "extension_name", "") != "arrow.uuid":
            return Column("other", np.zeros(len(array)), None, name)
        array, kind = array.storage, kind.storage_type
    if kinds.is_dictionary(kind):
        codes = array.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
        values = _of_arrow(pa, array.dictionary, what)
        return Column("dictionary", (np.maximum(codes, 0), values), codes >= 0, name)
    valid = None if array.null_count == 0 else array.is_valid().to_numpy(zero_copy_only=False)
    if kinds.is_null(kind):
        return Column("object", np.full(len(array), None), None, name)
    if kinds.is_boolean(kind):
        return Column("boolean", array.fill_null(False).to_numpy(zero_copy_only=False), valid, name)
    if kinds.is_integer(kind) or kinds.is_floating(kind):
        flat = array.fill_null(0) if valid is not None else array
        found = _of_numpy(flat.to_numpy(zero_copy_only=False), what)
        return Column(found.kind, found.values, valid, name)
    if kinds.is_decimal(kind):
        return _of_decimals(pa, array, valid, name)
    if kinds.is_timestamp(kind) or kinds.is_date(kind):
        zoned = kinds.is_timestamp(kind) and kind.tz is not None
        unit = kind.unit if kinds.is_timestamp(kind) else "ms" if kinds.is_date64(kind) else "day"
        if unit == "day":
            days = array.cast(pa.int32()).cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
            ticks = days * (86_400 * 10**6)
        else:
            ticks = ticks_as_microseconds(array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False), unit)
        return Column("instant" if zoned else "local", ticks, valid, name)
    return _of_bytes(pa, array, valid, name)


def _of_bytes(pa: Any, array: Any, valid: Any, name: str) -> Column:
    """Text and other bytes, where they are."""
    kinds, kind = pa.types, array.type
    views = {getattr(pa, f"{each}_view", lambda: None)() for each in ("string", "binary")}
    texts = kinds.is_string(kind) or kinds.is_large_string(kind) or kind == getattr(pa, "string_view", lambda: None)()
    if (
        texts
        or kinds.is_binary(kind)
        or kinds.is_large_binary(kind)
        or kinds.is_fixed_size_binary(kind)
        or kind in views
    ):
        if kind in views:
            array = array.cast(pa.large_string() if texts else pa.large_binary())
        wide = array.cast(pa.large_binary())
        _, offsets, data = wide.buffers()
        begin = wide.offset
        starts = (
            np.frombuffer(offsets, dtype=np.int64)[begin : begin + len(wide) + 1]
            if len(wide)
            else np.zeros(1, np.int64)
        )
        flat = np.zeros(0, dtype=np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8)
        return Column("text" if texts else "bytes", Text(starts, flat), valid, name)
    return Column("other", np.zeros(len(array)), valid, name)


def _of_decimals(pa: Any, array: Any, valid: Any, name: str) -> Column:
    """Decimals: exactly what they are, as integers where all of their type are 64-bit integers."""
    if array.type.scale == 0 and array.type.precision <= 18:
        integers = array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        return Column("integer", integers, valid, name)
    return Column("decimal", objects_of(array.to_pylist()), None, name)


def frames_of(data: Any, names: list[str]) -> Iterator[dict[str, Column]]:
    """Return the named columns, frame by frame.

    Args:
        data: A mapping of columns, a frame of pandas or polars, a table, batch or reader of Arrow, what has
            `__arrow_c_stream__`, or an iterable of such.
        names: Columns.

    Raises:
        DataTypeError: Nothing of these, or a column is not there.
        ShapeError: Columns of different lengths.
    """
    if isinstance(data, Mapping) or hasattr(data, "get_column") or hasattr(data, "iloc"):
        yield _even({name: _named(data, name) for name in names})
        return
    if hasattr(data, "column") and hasattr(data, "schema") and not hasattr(data, "read_next_batch"):
        for name in names:
            if list(data.schema.names).count(name) != 1:
                raise _missing(name)
        yield _even({name: read_column(data.column(name), name) for name in names})
        return
    pa = arrow()
    if hasattr(data, "__arrow_c_stream__") and not hasattr(data, "read_next_batch"):
        if pa is None:
            raise DataTypeError("reading a stream of Arrow needs pyarrow: pip install 'sordino[arrow]'")
        data = pa.RecordBatchReader.from_stream(data)
    if isinstance(data, str | bytes | np.ndarray) or not isinstance(data, Iterable):
        raise DataTypeError("data must be a table: columns by name, a frame, or batches of such")
    for frame in data:
        yield from frames_of(frame, names)


def _missing(name: str) -> DataTypeError:
    return DataTypeError(f"the data must have one column {name!r}")


def _named(data: Any, name: str) -> Column:
    try:
        column = data[name]
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # each library has its own
        raise _missing(name) from None
    return read_column(column, name)


def _even(columns: dict[str, Column]) -> dict[str, Column]:
    if len({len(column) for column in columns.values()}) > 1:
        raise ShapeError("columns must have one entry for each row")
    return columns
