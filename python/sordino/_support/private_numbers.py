"""Private numbers as callers hand them over: one reader for every family.

The form of a call is checked: types, shapes, masks. Values never are: magnitudes beyond all bounds are clamped, a
missing or malformed member of a list is a null item where the family has such items. No message quotes an entry.

What an entry is read as depends on the entry alone. The dtype of a container does not decide it: one record more, of
another type, would change how all others are read. So `True` is 1 and 2.0 is 2 wherever they stand.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Set
from datetime import date, datetime, time, timedelta
from decimal import ROUND_FLOOR, Decimal
from fractions import Fraction
from numbers import Number, Rational
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from sordino._support.columns import check_columns, converted, objects_of
from sordino._support.protocols import TableLike
from sordino.errors import DataTypeError, InvalidParameterError, ShapeError

__all__ = [
    "LARGEST",
    "LIMIT",
    "NOWHERE",
    "amounts_or",
    "are_rows",
    "array_of",
    "attempt",
    "entries_of",
    "half_up",
    "is_integers",
    "is_missing",
    "is_missing_item",
    "member_of",
    "members_or",
    "of_a_handler",
    "plain",
    "real_of",
    "reals_of",
    "reals_or",
    "rounded",
    "sum_exactly",
    "summed",
    "whole_of",
]

# Beyond every declared bound, and exact as a float.
LARGEST = 2**53
# A cell that no table has: a null item.
NOWHERE = -1
# What finite numbers that no float holds become.
LIMIT = sys.float_info.max
_HALF = 2**31 - 1
# That numpy's arrays have, and a few less.
_MOST_AXES = 32
# Decimals of fewer before the point are rounded as they are.
_MANY_DIGITS = 60
# What converts itself by no code of a caller: these types themselves, since one made from them may do anything.
_PLAIN = frozenset(
    (int, float, bool, complex, str, bytes, Decimal, Fraction, type(None), date, datetime, time, timedelta, UUID)
)
_NAMES = frozenset((int, str, bytes, bool))
# What numpy reads in a list as it reads each alone: nothing here is text, or says itself what it is.
_NUMBERS = frozenset(
    (int, float, bool, *(np.dtype(code).type for code in f"?{np.typecodes['AllInteger']}{np.typecodes['Float']}"))
)
_INTEGERS = frozenset((int, bool, *(np.dtype(code).type for code in f"?{np.typecodes['AllInteger']}")))
# What `float` takes and is no real number.
_NO_REALS = (complex, np.complexfloating, np.datetime64, np.timedelta64)


def is_missing(name: Any) -> bool:
    """Return whether a name is none: not-a-number, of whatever type, differs from itself, or says nothing of it."""
    if name is None:
        return True
    if type(name) in _NAMES:
        return False
    try:
        if getattr(name, "is_valid", None) is False:  # scalars of Arrow
            return True
        if isinstance(name, tuple | frozenset):
            return any(map(is_missing, name))
        if hasattr(name, "to_numpy") and hasattr(name, "__len__"):
            return False
        return bool(name != name)  # noqa: PLR0124
    except Exception as error:  # whatever an object says of itself
        if of_a_handler(error, name):
            raise
        return True


def is_missing_item(data: Any) -> bool:
    """Return whether data is one item, and that is missing; a container is none, whatever it holds."""
    if data is None or isinstance(data, np.generic):
        return is_missing(data)
    return not any(hasattr(data, name) for name in ("__len__", "__array__", "schema", "tocoo")) and is_missing(data)


def array_of(what: str, data: object, kind: str = "real numbers") -> NDArray[Any]:
    """Return data as an array, of objects where it is of no plain dtype; no message of numpy, which may quote entries.

    Raises:
        DataTypeError: No array, or one with a mask: what is behind it would count.
    """
    masked = DataTypeError(f"{what} must have no mask: fill or drop what is masked first")
    plain = isinstance(data, list | tuple) and _are_numbers(data)
    if data is np.ma.masked or (not plain and _holds_mask(data)):
        raise masked
    if isinstance(data, list | tuple) and not plain:
        listed = _nested(data)
        if listed is not None:
            return listed
    if _is_strange(data):
        raise DataTypeError(f"{what} must be {kind}: give a list or an array of them")
    try:
        with np.errstate(all="ignore"):
            found = converted(data)
            array = np.asarray(found)
    except Exception as error:
        if of_a_handler(error, data):
            raise
        if isinstance(data, list | tuple) and not any(map(_is_sequence, data)):
            return objects_of(data)  # an integer beyond all dtypes is among them
        raise DataTypeError(f"{what} must be {kind}") from None
    if isinstance(found, np.ma.MaskedArray):
        raise masked
    if array.dtype.kind == "O" and array.ndim == 0 and not hasattr(array.item(), "__float__"):
        raise DataTypeError(f"{what} must be {kind}")
    return array


def entries_of(
    what: str, data: object, kind: str = "real numbers", *, width: int | None = None, text: bool = False
) -> NDArray[Any]:
    """Return private entries as an array of plain numbers, or of objects to be read one by one.

    Args:
        what: Of the argument, for messages.
        data: An array, a column or a table, a list, or a list of rows.
        kind: What it must hold, for messages.
        width: Entries of a row of a list; a row that is none of this length is one of missing entries.
        text: Whether entries may be text.

    Raises:
        DataTypeError: No array, one whose dtype holds no numbers, or one with a mask; a list of text alone. Never for
            an entry of a list.
        ShapeError: A list in which nothing is a row of so many entries.
        InvalidParameterError: What `tabulate` returned, where no unit is known.
    """
    if isinstance(data, TableLike):
        raise InvalidParameterError(
            f"{what}: what tabulate returned belongs to a plan's release, which sees to its unit; give its `counts`"
        )
    if isinstance(data, list | tuple):
        plain = _are_numbers(data) or (width is not None and all(map(_is_of_numbers, data)))
        if not plain and _holds_mask(data):
            raise DataTypeError(f"{what} must have no mask: fill or drop what is masked first")
        if width is not None and not any(_is_row(row, width) for row in data) and not all(map(is_missing, data)):
            raise ShapeError(f"{what} must be rows of {width} entries each")
        try:
            if plain:
                with np.errstate(all="ignore"):
                    array = np.asarray(data)
                if array.dtype.kind in "iubf" and (array.size or array.ndim > 1):
                    return array
        except Exception as error:
            if of_a_handler(error, data):
                raise
        if width is None and data and all(map(_is_sequence, data)):
            return np.full((len(data), 1), None, dtype=object)  # of another shape, whoever reads it
        array = objects_of(data) if width is None else _rows(data, width)
        if not text and array.size and all(isinstance(entry, str | bytes) for entry in array.flat):
            raise DataTypeError(f"{what} must be {kind}")
        return array
    if is_missing_item(data):
        return np.array(math.nan)
    check_columns(what, data, kind)
    array = array_of(what, data, kind)
    if array.dtype.kind not in "iubfO":
        raise DataTypeError(f"{what} must be {kind}")
    return array


def _are_numbers(entries: list[Any] | tuple[Any, ...]) -> bool:
    """Return whether numpy reads each entry as it reads it alone, in memory that is known beforehand."""
    return _NUMBERS.issuperset(map(type, entries))


def is_integers(entries: object) -> bool:
    """Return whether a list holds plain integers alone: no memory is taken for what else may be in it."""
    return isinstance(entries, list | tuple) and _INTEGERS.issuperset(map(type, entries))


def _is_of_numbers(row: Any) -> bool:
    if type(row) is np.ndarray:
        return bool(row.dtype.kind in "iubf")
    return type(row) in (list, tuple) and _are_numbers(row)


def _nested(data: list[Any] | tuple[Any, ...]) -> NDArray[Any] | None:
    """Return the entries of lists in lists as objects; None where they are numbers or arrays: numpy lays them out."""
    entries, shape = list(data), [len(data)]
    while entries and len(shape) < _MOST_AXES and all(type(entry) in (list, tuple) for entry in entries):
        lengths = set(map(len, entries))
        if len(lengths) > 1:
            return None
        shape.append(*lengths)
        entries = [entry for row in entries for entry in row]
    if _are_numbers(entries) or any(_is_sequence(entry) for entry in entries):
        return None
    return objects_of(entries).reshape(shape)


def _is_strange(data: Any) -> bool:
    """Return whether data has entries that only numpy's guesses would find: it takes one type for all of them."""
    if isinstance(data, list | tuple | str | bytes | range) or not hasattr(data, "__len__"):
        return False
    if any(hasattr(data, name) for name in ("to_numpy", "__array__", "__array_interface__", "__array_struct__")):
        return False
    try:
        memoryview(data)
    except TypeError:
        return True
    return False


def _rows(rows: list[Any] | tuple[Any, ...], width: int) -> NDArray[Any]:
    array = np.full((len(rows), width), None, dtype=object)
    for row, found in zip(array, rows, strict=True):
        if not _is_sequence(found):
            row[0] = found if width == 1 else None
            continue
        # A row of another length is not listed: it may be long.
        entries = _listed(found) if _length(found) in (width, -1) else []
        if len(entries) == width:
            row[:] = objects_of(entries)
    return array


def _is_row(found: Any, width: int) -> bool:
    """Return whether an entry of a list is a row of so many entries, none of which has entries of its own."""
    if not _is_sequence(found):
        return width == 1 and not is_missing(found)
    shape = getattr(found, "shape", None)
    if isinstance(found, np.ndarray):
        return shape == (width,)
    return _length(found) == width and not any(map(_is_sequence, _listed(found)))


def _length(row: Any) -> int:
    try:
        return len(row)
    except Exception:  # whatever an object says of itself
        return -1


def _listed(row: Any) -> list[Any]:
    """Return the entries of a row, none where it fails."""
    try:
        return list(row.to_pylist() if hasattr(row, "to_pylist") else row)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # whatever an object says of itself; polars panics
        if isinstance(error, Exception) and of_a_handler(error, row):
            raise
        return []


def _is_sequence(entry: object) -> bool:
    """Return whether an entry has entries of its own, as numpy would find out."""
    if type(entry) in _PLAIN:
        return False
    try:
        if isinstance(entry, str | bytes | type | Mapping | Set) or getattr(entry, "ndim", 1) == 0:
            return False
        return hasattr(entry, "__len__") or hasattr(entry, "__array__")
    except Exception:  # whatever an object says of itself
        return False


def are_rows(entries: list[Any] | tuple[Any, ...]) -> bool:
    """Return whether a list is one of records: rows of entries, or missing ones; and not of numbers, or of tables.

    Raises:
        DataTypeError: It has rows and numbers: one entry would decide what all others are.
    """
    rows = [entry for entry in entries if _is_sequence(entry)]
    if not rows:
        return all(map(is_missing, entries))
    if any(isinstance(entry, Number | Decimal) and not is_missing(entry) for entry in entries):
        raise DataTypeError("the input has rows and numbers: give records, or the cells of a table")
    return len(rows) < len(entries) or not all(_is_sequence(entry) for row in rows for entry in _first(row))


def _first(row: Any) -> list[Any]:
    return _listed(row)[:1] or [None]


def _holds_mask(data: object) -> bool:
    parts, seen = [data], {0}
    while parts:
        part = parts.pop()
        if isinstance(part, np.ma.MaskedArray) and part is not data:
            return True
        if isinstance(part, list | tuple) and id(part) not in seen:  # which may hold itself
            seen.add(id(part))
            parts.extend(entry for entry in part if type(entry) not in _NUMBERS)
    return False


def plain(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array as one aligned block, as the core reads it."""
    return np.require(array, requirements=["C_CONTIGUOUS", "ALIGNED"])


def half_up(value: Any) -> int:
    """Return floor(x + 1/2) of any real number, exactly, clamped: neighbours that differ by 1 still do.

    Raises:
        TypeError: Not a number.
        ValueError: Not-a-number or infinite.
    """
    if isinstance(value, Decimal) and value.is_finite() and value.adjusted() < _MANY_DIGITS:
        # A fraction of a long text takes the square of its digits.
        floor = int(value.to_integral_value(ROUND_FLOOR))
        half = Decimal(f"{floor}.5" if floor >= 0 else f"-{-floor - 1}.5")
        return min(max(floor + (value >= half), -LARGEST), LARGEST)
    return min(max(math.floor(_exact(value) + Fraction(1, 2)), -LARGEST), LARGEST)


def _exact(value: Any) -> Fraction:
    """Return a number as it is; magnitudes far beyond `LARGEST` are cut, those far below 1 vanish.

    Raises:
        TypeError: Not a number, or text.
        ValueError: Not-a-number or infinite.
    """
    if value is None or isinstance(value, np.ma.MaskedArray):
        raise ValueError
    if isinstance(value, _NO_REALS):  # a span of time calls itself an integer
        raise TypeError
    if isinstance(value, int | np.integer | np.bool_):
        return Fraction(int(value))
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ValueError
        if value and not -_MANY_DIGITS <= value.adjusted() <= _MANY_DIGITS:
            return Fraction(0) if value.adjusted() < 0 else Fraction(10**60 if value > 0 else -(10**60))
        return Fraction(value)
    if isinstance(value, np.floating):
        if not np.isfinite(value):
            raise ValueError
        numerator, denominator = value.as_integer_ratio()
        return Fraction(int(numerator), int(denominator))
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, str | bytes):
        raise TypeError
    approximate = float(value)
    if not math.isfinite(approximate):
        raise ValueError
    return Fraction(approximate)


def sum_exactly(values: NDArray[Any]) -> Fraction:
    """Return the sum of finite numbers, not rounded."""
    return sum(map(_exact, values), Fraction(0))


def real_of(value: Any) -> float:
    """Return a number as a float, clamped where it is beyond all of them.

    Raises:
        TypeError: Not a number, or text.
        ValueError: Missing.
    """
    if value is None or isinstance(value, np.ma.MaskedArray):
        raise ValueError
    if isinstance(value, (*_NO_REALS, str, bytes)):
        raise TypeError
    try:
        with np.errstate(all="ignore"):
            found = float(value)
    except OverflowError:
        return LIMIT if value > 0 else -LIMIT
    cut = math.isinf(found) and (
        (isinstance(value, np.longdouble) and np.isfinite(value)) or (isinstance(value, Decimal) and value.is_finite())
    )
    return math.copysign(LIMIT, found) if cut else found


def of_a_handler(error: Exception, read: object) -> bool:
    """Return whether an exception is a signal handler's: nothing plain raises it as it is read."""
    return not isinstance(error, TypeError | ValueError | ArithmeticError | RecursionError) and _is_plain(read)


def attempt(read: Callable[[Any], Any], value: Any, beside: Iterable[object] = ()) -> tuple[Any, Exception | None]:
    """Read an entry: what it is, or the exception that it raises itself, each time.

    An exception of a signal's handler is raised. Where code of the caller runs as the entry is read, the two cannot be
    told apart: the entry is read once more, so that none is lost.

    Args:
        read: The reader.
        value: The entry.
        beside: What else is looked at.
    """
    try:
        return read(value), None
    except Exception as error:  # whatever an object's own conversion raises may quote it
        first = error
    if of_a_handler(first, value) and all(of_a_handler(first, other) for other in beside):
        raise first
    try:
        return read(value), None
    except Exception as error:
        return None, error


def _is_plain(read: object, depth: int = 3) -> bool:
    """Return whether nothing of a caller's runs when this is read: plain numbers and text, and what holds only such."""
    kind: Any = type(read)
    if kind in _PLAIN or (issubclass(kind, np.generic) and kind.__module__ == "numpy"):
        return True
    if kind is np.ndarray and isinstance(read, np.ndarray):
        return bool(read.dtype.kind != "O")
    entries: Any = read
    return depth > 0 and kind in (list, tuple, frozenset) and all(_is_plain(entry, depth - 1) for entry in entries)


def _each(
    what: str, array: NDArray[Any], convert: Callable[[Any], Any], dtype: type, null: float | None
) -> NDArray[Any]:
    wrong = DataTypeError(f"{what} must be an array of real numbers")

    def one(value: Any) -> Any:
        found, error = attempt(convert, value)
        if error is None:
            return found
        if null is not None:
            return null
        if isinstance(error, ValueError | ArithmeticError) and not isinstance(value, str | bytes):
            return None
        raise wrong

    found = [one(value) for value in array.flat]
    if None in found:
        raise _not_finite(what)
    return np.array(found, dtype=dtype).reshape(array.shape)


def _not_finite(what: str) -> InvalidParameterError:
    return InvalidParameterError(f"{what} has entries that are not finite; fill or drop them first")


def _check_kind(what: str, array: NDArray[Any]) -> None:
    if array.dtype.kind not in "iubfO":
        raise DataTypeError(f"{what} must be an array of real numbers")


def rounded(what: str, array: NDArray[Any]) -> NDArray[np.int64]:
    """Return numbers as int64: integers clamped, all others rounded half up from what they are, not from a float.

    Raises:
        DataTypeError: Not numbers.
        InvalidParameterError: Not-a-number or infinite entries.
    """
    _check_kind(what, array)
    if array.dtype.kind == "O":
        return _each(what, array, half_up, np.int64, None)
    if array.dtype.kind in "iub":
        return _clamped(array)
    if not np.isfinite(array).all():
        raise _not_finite(what)
    # In the array's own precision: floor and the difference are exact there.
    wide = np.clip(array.astype(np.promote_types(array.dtype, np.float64), copy=False), -LARGEST, LARGEST)
    floor = np.floor(wide)
    units: NDArray[np.int64] = floor.astype(np.int64) + (wide - floor >= 0.5)
    return units


def _clamped(array: NDArray[Any]) -> NDArray[np.int64]:
    if array.dtype.kind == "u" and array.dtype.itemsize == 8:
        array = np.minimum(array, np.uint64(LARGEST))
    return array.astype(np.int64, copy=False)


def reals_of(what: str, array: NDArray[Any]) -> NDArray[np.float64]:
    """Return finite numbers as float64, clamped where they are beyond all of them.

    Raises:
        DataTypeError: Not numbers.
        InvalidParameterError: Not-a-number or infinite entries.
    """
    _check_kind(what, array)
    reals = _each(what, array, real_of, np.float64, None) if array.dtype.kind == "O" else _float64(array)
    if not np.isfinite(reals).all():
        raise _not_finite(what)
    return reals


def _float64(array: NDArray[Any]) -> NDArray[np.float64]:
    """Return plain numbers as float64; a finite number of a wider dtype stays finite."""
    with np.errstate(all="ignore"):
        found: NDArray[np.float64] = array.astype(np.float64, copy=False)
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        beyond = np.isfinite(array) & np.isinf(found)
        found = np.where(beyond, np.copysign(LIMIT, found), found)
    return found


def reals_or(what: str, data: object, *, width: int | None = None) -> NDArray[np.float64]:
    """Return numbers as float64, not-a-number for every missing or malformed entry: a null item.

    Raises:
        DataTypeError: An array of a dtype that holds no real numbers, or one with a mask.
    """
    array = entries_of(what, data, width=width)
    return _float64(array) if array.dtype.kind != "O" else _each(what, array, real_of, np.float64, math.nan)


def amounts_or(what: str, data: object) -> NDArray[np.int64]:
    """Return numbers rounded half up and clamped; 0 for every missing or malformed entry: a null item.

    Raises:
        DataTypeError: An array of a dtype that holds no real numbers, or one with a mask.
    """
    array = entries_of(what, data, "numbers")
    if array.dtype.kind == "O":
        return _each(what, array, _amount, np.int64, 0)
    if array.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            wide = array.astype(np.promote_types(array.dtype, np.float64), copy=False)
            array = np.where(np.isnan(wide), 0.0, np.clip(wide, -LARGEST, LARGEST))
    units = rounded(what, array)
    return np.clip(units, -LARGEST, LARGEST) if array.dtype.itemsize == 8 else units


def members_or(what: str, data: object, *, width: int | None = None) -> NDArray[np.int64]:
    """Return indices of members of a public set; `NOWHERE` for an entry that is none: missing, a fraction, text.

    Raises:
        DataTypeError: An array of a dtype that holds no numbers, or one with a mask.
    """
    array = entries_of(what, data, "integers", width=width)
    if array.dtype.kind == "O":
        return _each(what, array, member_of, np.int64, NOWHERE)
    if array.dtype.kind == "f":
        # A column of integers of which one is missing comes as floats.
        with np.errstate(invalid="ignore"):
            wide = array.astype(np.promote_types(array.dtype, np.float64), copy=False)
            whole = (np.abs(wide) < LARGEST) & (wide == np.floor(wide))
        return np.where(whole, np.where(whole, wide, 0.0).astype(np.int64), NOWHERE)
    found = _clamped(array)
    return found if array.dtype.itemsize < 8 else np.where((found > -LARGEST) & (found < LARGEST), found, NOWHERE)


def _amount(value: Any) -> int:
    try:
        return half_up(value)
    except ValueError:
        # Infinite ones are clamped as large ones are.
        return LARGEST if value > 0 else -LARGEST if value < 0 else 0


def member_of(value: Any) -> int:
    """Return the index that a private entry is, `NOWHERE` for what is none: missing, a fraction, text."""
    found, _ = attempt(whole_of, value)
    return NOWHERE if found is None or not -LARGEST < found < LARGEST else int(found)


def whole_of(value: Any) -> int | None:
    """Return the integer that an entry is, None for a fraction.

    Raises:
        TypeError: Not a number, or text.
        ValueError: Missing or infinite.
    """
    if isinstance(value, Decimal):  # of which a fraction takes the square of the digits
        return half_up(value) if value == value.to_integral_value() else None
    return half_up(value) if _exact(value).denominator == 1 else None


def summed(places: NDArray[np.int64], amounts: NDArray[np.int64] | None, cells: int) -> NDArray[np.int64]:
    """Return a table of sums, without wrapping around; places that do not exist count nowhere.

    A sum that wrapped around would be far from that of a neighbour: it is made in halves, and stops beyond all that a
    door takes.
    """
    valid = (places >= 0) & (places < cells)
    if not valid.all():
        places, amounts = places[valid], None if amounts is None else amounts[valid]
    table = np.zeros(cells, dtype=np.int64)
    if amounts is None:
        np.add.at(table, places, 1)
        return table
    high = np.zeros(cells, dtype=np.int64)
    np.add.at(high, places, amounts >> 31)
    np.add.at(table, places, amounts & _HALF)
    high = np.clip(high + (table >> 31), -(2**31), _HALF)
    return (high << 31) + (table & _HALF)
