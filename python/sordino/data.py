"""Private input: arrays and columns, turned into what the door takes without a word about their values."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sordino.errors import DataTypeError, InvalidParameterError, ShapeError
from sordino.workloads import Marginals, SortedHistogram, Workload

__all__ = ["Cells", "read_cells", "read_items"]

_LARGEST = 2**53


class Cells(NamedTuple):
    """Input for the door.

    Attributes:
        values: One-dimensional int64 or float64 cells, two-dimensional int64 or uint8 record codes, or a pair of
            places and int64 values of the cells that are not zero.
        index: Row labels of the input (public), or None.
    """

    values: NDArray[Any] | tuple[NDArray[np.int64], NDArray[np.int64]]
    index: Any


def read_cells(data: object, workload: Workload, integral: bool, counted: bool = False) -> Cells:
    """Check form, shape, dtype and finiteness; nothing here looks at magnitudes.

    Args:
        data: numpy array, list, or a column with `to_numpy` (pandas, polars, Arrow); table of shape
            `workload.input_shape`, or flat. For `Marginals` a two-dimensional array is always (n, d) integer codes:
            which of the two it is must not depend on the number of records, so a table of two attributes comes flat.
            A scipy sparse array of shape (cells,), (cells, 1) or (1, cells) gives the cells that are not zero; the
            encode of searched strategies then takes time by their number.
        workload: What will be answered.
        integral: Whether cells are declared integers; fractions are then rounded.
        counted: Whether record codes are counted in their table, for strategies that take nothing else.

    Raises:
        DataTypeError: Not an array of real numbers.
        ShapeError: Wrong shape.
        InvalidParameterError: Not-a-number or infinite entries.
    """
    ordered = isinstance(workload, SortedHistogram)
    if hasattr(data, "tocoo") and not isinstance(workload, Marginals):
        nonzeros = _nonzeros(data, workload, integral)
        return Cells(_sorted(nonzeros, workload) if ordered else nonzeros, None)
    array = _array(data)
    index = getattr(data, "index", None)
    index = None if callable(index) else index
    if isinstance(workload, Marginals) and array.ndim == 2:
        codes = _codes(array, workload, integral)
        return Cells(_counted(codes, workload) if counted else codes, None)
    expected = workload.input_shape
    if array.shape != expected and array.shape != (int(np.prod(expected, dtype=np.float64)),):
        raise ShapeError(f"the input must have shape {expected}, its own shape differs")
    numbers = _numbers(array.reshape(-1), integral)
    # In order, cells have no labels.
    return Cells(np.sort(numbers), None) if ordered else Cells(numbers, index)


def _sorted(nonzeros: Any, workload: Workload) -> NDArray[Any]:
    """Return sparse cells as a sorted table."""
    if isinstance(nonzeros, tuple):
        table = np.zeros(workload.input_shape, dtype=np.int64)
        table[: len(nonzeros[1])] = nonzeros[1]
        return np.sort(table)
    return np.sort(nonzeros)


def _nonzeros(data: Any, workload: Workload, integral: bool) -> Any:
    """Return places and values of a sparse column or row of integers; reals are made dense."""
    cells = int(np.prod(workload.input_shape, dtype=np.int64))
    shape = getattr(data, "shape", None)
    if shape not in {(cells,), (cells, 1), (1, cells)}:
        raise ShapeError(f"the input must have shape {(cells,)}, {(cells, 1)} or {(1, cells)}, its own shape differs")
    try:
        entries = data.tocoo(copy=True).reshape(1, cells).tocoo()
        entries.sum_duplicates()
        places, values = np.asarray(entries.col, dtype=np.int64), _array(entries.data)
    except Exception:
        raise DataTypeError("the input must be an array of real numbers") from None
    if not integral:
        table = np.zeros(cells)
        table[places] = values
        return _numbers(table, integral)
    order = np.argsort(places)
    return np.ascontiguousarray(places[order]), np.ascontiguousarray(_numbers(values, integral)[order])


def _numbers(flat: NDArray[Any], integral: bool) -> NDArray[Any]:
    """Return integers as int64 and finite reals as float64, or rounded half up if integers were declared.

    Raises:
        InvalidParameterError: Not-a-number or infinite entries.
    """
    if flat.dtype.kind in "iub":
        if flat.dtype.kind == "u" and flat.dtype.itemsize == 8:
            flat = np.minimum(flat, np.uint64(_LARGEST))
        return _plain(flat.astype(np.int64, copy=False))
    if not np.isfinite(flat).all():
        raise InvalidParameterError("the input has entries that are not finite; fill or drop them first")
    reals = flat.astype(np.float64, copy=False)
    if integral:
        return _half_up(np.clip(reals, -_LARGEST, _LARGEST))
    return _plain(reals)


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array as one aligned block, as the core reads it."""
    return np.require(array, requirements=["C_CONTIGUOUS", "ALIGNED"])


def read_items(items: object, dim: int, integral: bool) -> tuple[NDArray[Any], tuple[int, ...]]:
    """Check the items of a stream; nothing here looks at magnitudes.

    Args:
        items: A number or an array of shape (m,) if `dim` is 1, else an array of shape (dim,) or (m, dim).
        dim: Coordinates of an item.
        integral: Whether entries are declared integers.

    Returns:
        The items row by row, and the shape of their answers.

    Raises:
        DataTypeError: Not real numbers.
        ShapeError: Wrong shape.
        InvalidParameterError: Not-a-number or infinite entries.
    """
    array = _array([items] if isinstance(items, int) else items)
    shape = () if isinstance(items, int) else array.shape
    fits = len(shape) <= 1 if dim == 1 else shape == (dim,) or (len(shape) == 2 and shape[1] == dim)
    if not fits and not (dim == 1 and len(shape) == 2 and shape[1] == 1):
        expected = "a number or shape (m,)" if dim == 1 else f"shape ({dim},) or (m, {dim})"
        raise ShapeError(f"items must be {expected}, their own shape differs")
    return _numbers(array.reshape(-1), integral), shape


def _array(data: object) -> NDArray[Any]:
    """Return a numeric array; no message of numpy, which may quote entries, gets out."""
    try:
        convert = getattr(data, "to_numpy", None)
        if callable(convert):
            try:
                array = np.asarray(convert())
            except (TypeError, ValueError, NotImplementedError, ArithmeticError):
                array = np.asarray(convert(zero_copy_only=False))
        else:
            array = np.asarray(data)
    except Exception:
        raise DataTypeError("the input must be an array of real numbers") from None
    if array.dtype.kind == "O" and array.ndim > 0:
        # Columns of nullable dtypes arrive as objects: numbers convert, anything else is refused.
        try:
            array = array.astype(np.float64)
        except OverflowError:
            array = _clipped(array)
        except (TypeError, ValueError):
            raise DataTypeError("the input must be an array of real numbers") from None
    if array.dtype.kind not in "iubf":
        raise DataTypeError("the input must be an array of real numbers")
    return array


def _clipped(array: NDArray[Any]) -> NDArray[np.float64]:
    """Return objects as numbers, integers beyond all floats at the limit: magnitudes are never refused."""
    try:
        flat = [min(max(v, -_LARGEST), _LARGEST) if isinstance(v, int) else float(v) for v in array.reshape(-1)]
    except (TypeError, ValueError, OverflowError):
        raise DataTypeError("the input must be an array of real numbers") from None
    return np.array(flat, dtype=np.float64).reshape(array.shape)


def _half_up(reals: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return floor(x + 1/2), exactly: unlike rounding half to even it moves neighbours by whole records at most."""
    floor = np.floor(reals)
    return floor.astype(np.int64) + (reals - floor >= 0.5)


def _codes(array: NDArray[Any], workload: Marginals, integral: bool) -> NDArray[Any]:
    if array.shape[1] != len(workload.levels):
        raise ShapeError(f"record codes must have {len(workload.levels)} columns; a table must come flat")
    if array.dtype.kind not in "iub":
        raise DataTypeError("record codes must be integers")
    if not integral:
        raise InvalidParameterError("records are counted in integers: plan with integral=True")
    if array.dtype == np.uint8:
        return np.ascontiguousarray(array)
    if array.dtype.kind == "u" and array.dtype.itemsize == 8:
        array = np.minimum(array, np.uint64(_LARGEST))
    return _plain(array.astype(np.int64, copy=False))


def _counted(codes: NDArray[Any], workload: Marginals) -> NDArray[np.int64]:
    """Return the flat table of records; those with a code that is no level count nowhere."""
    known = ((codes >= 0) & (codes < np.array(workload.levels))).all(axis=1)
    cells = np.ravel_multi_index(tuple(codes[known].T), workload.levels)
    return np.bincount(cells, minlength=int(np.prod(workload.levels))).astype(np.int64)
