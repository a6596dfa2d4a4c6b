"""Private input: arrays and columns, turned into what the door takes without a word about their values."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sordino._support.private_numbers import (
    are_rows,
    array_of,
    entries_of,
    members_or,
    plain,
    reals_of,
    rounded,
    sum_exactly,
    summed,
)
from sordino._support.protocols import TableLike
from sordino.errors import DataTypeError, InvalidParameterError, ShapeError
from sordino.privacy.units import Unit
from sordino.workloads import OfRecords, SortedHistogram, Workload

__all__ = ["Cells", "counts_of", "read_cells", "read_items"]

_INPUT = "the input"


class Cells(NamedTuple):
    """Input for the door.

    Attributes:
        values: One-dimensional int64 or float64 cells, two-dimensional int64 or uint8 record codes, or a pair of
            places and int64 values of the cells that are not zero.
        index: Row labels of the input (public), or None.
    """

    values: NDArray[Any] | tuple[NDArray[np.int64], NDArray[np.int64]]
    index: Any


def read_cells(data: object, workload: Workload, integral: bool, unit: Unit, counted: bool = False) -> Cells:
    """Check form, shape, dtype and finiteness; nothing here looks at magnitudes.

    Args:
        data: numpy array, list, or a column with `to_numpy` (pandas, polars, Arrow); table of shape
            `workload.input_shape`, or flat. For `Marginals` a two-dimensional array is always (n, d) integer codes:
            which of the two it is must not depend on the number of records, so a table of two attributes comes flat.
            A scipy sparse array of shape (cells,), (cells, 1) or (1, cells) gives the cells that are not zero; the
            encode of searched strategies then takes time by their number.
        workload: What will be answered.
        integral: Whether cells are declared integers; fractions are then rounded.
        unit: What the plan protects: it must be no less than what `tabulate` bounded.
        counted: Whether record codes are counted in their table, for strategies that take nothing else.

    Raises:
        DataTypeError: Not an array of real numbers.
        ShapeError: Wrong shape.
        InvalidParameterError: Not-a-number or infinite entries.
        UnitError: A table of another schema or a larger unit than the plan's.
    """
    ordered, index = isinstance(workload, SortedHistogram), None
    if isinstance(data, TableLike):
        data.require(unit, workload.schema_digest)
        # A layout says more.
        index, data = data.labels if workload.layout is None else None, data.counts
    if hasattr(data, "tocoo") and not isinstance(workload, OfRecords):
        nonzeros = _nonzeros(data, workload, integral)
        return Cells(_sorted(nonzeros, workload) if ordered else nonzeros, None)
    records = isinstance(workload, OfRecords) and (not isinstance(data, list | tuple) or are_rows(data))
    if isinstance(workload, OfRecords) and records:
        array = entries_of(_INPUT, data, width=len(workload.levels))
    else:
        array = array_of(_INPUT, data)
    own = getattr(data, "index", None) if hasattr(data, "to_numpy") else None  # the labels of pandas
    index = index if own is None or callable(own) else own
    if isinstance(workload, OfRecords) and array.size == 0 and array.shape[:1] == (0,):
        array = np.zeros((0, len(workload.levels)), dtype=np.int64)  # no records: their number is private
    if isinstance(workload, OfRecords) and array.ndim == 2:
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
    if np.ma.isMaskedArray(getattr(data, "data", None)):
        raise DataTypeError("the input must have no mask: fill or drop what is masked first")
    try:
        entries = data.tocoo(copy=True).reshape(1, cells).tocoo()
        places, values = np.asarray(entries.col, dtype=np.int64), np.asarray(entries.data)
    except Exception:
        raise DataTypeError("the input must be an array of real numbers") from None
    places, values = _without_duplicates(places, values, integral)
    if not integral:
        table = np.zeros(cells)
        table[places] = values
        return table
    return places, values


def _without_duplicates(places: NDArray[np.int64], values: NDArray[Any], integral: bool) -> Any:
    """Return places in order, and one number for each: what stands several times at a place is added exactly."""
    order = np.argsort(places, kind="stable")
    places, values = places[order], values[order]
    first = np.flatnonzero(np.r_[True, places[1:] != places[:-1]]) if len(places) else np.zeros(0, dtype=np.int64)
    if len(first) == len(places):
        return np.ascontiguousarray(places), _numbers(values, integral)
    if integral and values.dtype.kind in "iub":
        # Which cell a sum belongs to is its rank among the places that occur.
        ranks = np.repeat(np.arange(len(first)), np.diff(np.r_[first, len(places)]))
        return np.ascontiguousarray(places[first]), summed(ranks, _numbers(values, integral), len(first))
    reals_of(_INPUT, values)
    ends = np.r_[first[1:], len(places)]
    sums = (_numbers(values[first], True) if integral else reals_of(_INPUT, values[first])).copy()
    several = np.flatnonzero(ends - first > 1)
    exact = [sum_exactly(values[first[i] : ends[i]]) for i in several]
    sums[several] = _numbers(np.fromiter(exact, dtype=object, count=len(exact)), integral)
    return np.ascontiguousarray(places[first]), sums


def _numbers(flat: NDArray[Any], integral: bool) -> NDArray[Any]:
    """Return integers as int64 and finite reals as float64, or rounded half up if integers were declared.

    Raises:
        InvalidParameterError: Not-a-number or infinite entries.
    """
    if integral or flat.dtype.kind in "iub":
        return plain(rounded(_INPUT, flat))
    return plain(reals_of(_INPUT, flat))


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
    array = array_of("items", items)
    shape = array.shape
    fits = len(shape) <= 1 if dim == 1 else shape == (dim,) or (len(shape) == 2 and shape[1] == dim)
    if not fits and not (dim == 1 and len(shape) == 2 and shape[1] == 1):
        expected = "a number or shape (m,)" if dim == 1 else f"shape ({dim},) or (m, {dim})"
        raise ShapeError(f"items must be {expected}, their own shape differs")
    return _numbers(array.reshape(-1), integral), shape


def counts_of(table: TableLike, unit: Unit, workload: Workload, step: int | None) -> NDArray[np.int64]:
    """Return the counts of a table for a stream.

    Args:
        table: What was given.
        unit: What the plan protects.
        workload: Whose schema the table must have.
        step: The stream's; None where these are all of its items.

    Raises:
        InvalidParameterError: It is of another step.
        UnitError: It is of another schema, or of a larger unit than the plan's.
    """
    if step is not None and table.step is None:
        raise InvalidParameterError(
            f"tabulate bounded what {table.unit.label} changes in this table alone, not in those of other steps: "
            "sordino.tables.Windows does, or give a stream its `counts` if nobody is in two of them"
        )
    table.require(unit, workload.schema_digest)
    if step is not None and table.step != step:
        raise InvalidParameterError(f"the table is that of step {table.step}, the stream is at step {step}")
    return table.counts


def _codes(array: NDArray[Any], workload: OfRecords, integral: bool) -> NDArray[Any]:
    if array.shape[1] != len(workload.levels):
        raise ShapeError(f"record codes must have {len(workload.levels)} columns; a table must come flat")
    if array.dtype == np.uint8 and integral:
        return np.array(array, order="C")  # the core reads a code more than once: nobody else may write there
    codes = members_or("record codes", array)
    if not integral:
        raise InvalidParameterError("records are counted in integers: plan with integral=True")
    return plain(codes)


def _counted(codes: NDArray[Any], workload: OfRecords) -> NDArray[np.int64]:
    """Return the flat table of records; those with a code that is no level count nowhere."""
    known = ((codes >= 0) & (codes < np.array(workload.levels))).all(axis=1)
    cells = np.ravel_multi_index(tuple(codes[known].T), workload.levels)
    return np.bincount(cells, minlength=int(np.prod(workload.levels))).astype(np.int64)
