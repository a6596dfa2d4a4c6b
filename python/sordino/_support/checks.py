"""Checks of public parameters: each is said once, here. Whatever is handed over, errors of sordino alone leave.

Messages name the limit. What a foreign object raises when it is read is never passed on.
"""

import math
import operator
import os
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from numbers import Real
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sordino._support.private_numbers import array_of
from sordino.errors import DataTypeError, InvalidParameterError, PlanFileError, ShapeError

__all__ = [
    "MAX_CELLS",
    "build_record",
    "flag",
    "integer",
    "integers",
    "name_of",
    "numbers",
    "one_of",
    "open_unit",
    "path_of",
    "positive",
    "public_array",
    "read_record",
    "real",
    "sequence",
    "text",
]

# Cells of a table, members of a public list.
MAX_CELLS = 2**26

_T = TypeVar("_T")
_S = TypeVar("_S", bound=str)

_SMALLEST_NORMAL = 2.0**-1022


def real(name: str, value: object) -> float:
    """Return a finite real number (int, float, Fraction, numpy scalar) as a float.

    Raises:
        DataTypeError: `value` is a bool or not a real number.
        InvalidParameterError: `value` is NaN, infinite or too large for a float.
    """
    # numpy.bool_ is no Real; the Python bool is, through int.
    if isinstance(value, bool) or not isinstance(value, Real):
        raise DataTypeError(f"{name} must be a real number, got {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:
        raise InvalidParameterError(f"{name} is too large for a floating-point number") from None
    if not math.isfinite(number):
        raise InvalidParameterError(f"{name} must be finite, got {number}")
    return number


def positive(name: str, value: object, *, least: float = _SMALLEST_NORMAL, most: float = math.inf) -> float:
    """Return `value` as a float in [least, most]; the default range is the positive normal floats.

    Raises:
        DataTypeError: `value` is a bool or not a real number.
        InvalidParameterError: `value` is not finite, not positive or outside the range.
    """
    number = real(name, value)
    if number <= 0.0:
        raise InvalidParameterError(f"{name} must be positive, got {number}")
    if number < least:
        raise InvalidParameterError(f"{name} = {number} is below {least}, the least value that is supported")
    if number > most:
        raise InvalidParameterError(f"{name} = {number} is above {most}, the largest value that is supported")
    return number


def open_unit(name: str, value: object) -> float:
    """Return `value` as a normal float strictly between 0 and 1.

    Raises:
        DataTypeError: `value` is a bool or not a real number.
        InvalidParameterError: `value` is not in (0, 1) or is subnormal.
    """
    number = real(name, value)
    if not 0.0 < number < 1.0:
        raise InvalidParameterError(f"{name} must lie strictly between 0 and 1, got {number}")
    if number < _SMALLEST_NORMAL:
        raise InvalidParameterError(f"{name} = {number} is subnormal, below {_SMALLEST_NORMAL}")
    return number


def integer(name: str, value: Any, *, least: int, most: int | None = None) -> int:
    """Return `value` as an int from `least` to `most`; numpy integers are accepted, bools and floats are not.

    Raises:
        DataTypeError: `value` is not an integer.
        InvalidParameterError: `value` is out of range.
    """
    wrong = DataTypeError(f"{name} must be an integer, got {type(value).__name__}")
    if isinstance(value, bool):
        raise wrong
    try:
        number = int(operator.index(value))
    except Exception:  # an array of several numbers, a type, a foreign object
        raise wrong from None
    if number < least:
        raise InvalidParameterError(f"{name} must be at least {_shown(least)}, got {_shown(number)}")
    if most is not None and number > most:
        raise InvalidParameterError(f"{name} must be at most {_shown(most)}, got {_shown(number)}")
    return number


def _shown(number: int) -> str:
    """Return an integer in few characters: thousands of digits cannot be printed."""
    if number >= 2**10 and number & (number - 1) == 0:
        return f"2**{number.bit_length() - 1}"
    return str(number) if number.bit_length() <= 64 else f"an integer of {number.bit_length()} bits"


def one_of(name: str, value: object, choices: Iterable[_S]) -> _S:
    """Return the choice that `value` names.

    Raises:
        InvalidParameterError: `value` is none of them.
    """
    known = tuple(choices)
    if isinstance(value, str):  # an array answers `==` by an array, NA by NA
        for choice in known:
            if choice == value:
                return choice
    *others, last = map(repr, known)
    raise InvalidParameterError(f"{name} must be {', '.join(others)} or {last}")


def flag(name: str, value: object) -> bool:
    """Return a bool as it is.

    Raises:
        DataTypeError: `value` is neither True nor False.
    """
    if isinstance(value, np.bool_):
        return bool(value)
    if not isinstance(value, bool):
        raise DataTypeError(f"{name} must be True or False, got {type(value).__name__}")
    return value


def text(name: str, value: object) -> str:
    """Return a string as it is.

    Raises:
        DataTypeError: `value` is no string.
    """
    if not isinstance(value, str):
        raise DataTypeError(f"{name} must be a string, got {type(value).__name__}")
    return value


def name_of(name: str, value: object, most: int = 200) -> str:
    """Return a name that can be kept and printed anywhere: not empty, on one line.

    Raises:
        DataTypeError: `value` is no string.
        InvalidParameterError: It is empty or too long, or has a letter that is not printed.
    """
    found = text(name, value)
    if not 0 < len(found) <= most or not found.isprintable():
        raise InvalidParameterError(f"{name} must be printable text of at most {most} letters, and not empty")
    return found


def sequence(name: str, value: Any, of: str, *, most: int = MAX_CELLS, ordered: bool = True) -> tuple[Any, ...]:
    """Return the members of a public list, at most `most` of them.

    Args:
        name: Of the argument.
        value: Anything that can be iterated over but text and mappings, and sets where the order matters: that of a
            set of strings differs from run to run.
        of: What the members must be, for messages.
        most: Limit; an iterator that does not end is not followed further.
        ordered: Whether the order matters.

    Raises:
        DataTypeError: No such list.
        InvalidParameterError: Too many members.
    """
    wrong = DataTypeError(f"{name} must be a sequence of {of}, got {type(value).__name__}")
    if isinstance(value, str | bytes | Mapping) or (ordered and isinstance(value, set | frozenset)):
        raise wrong
    try:
        found = tuple(islice(iter(value), most + 1))
    except (TypeError, NotImplementedError):
        # Arrays without dimensions, and views of tables, say that they are iterable.
        raise wrong from None
    if len(found) > most:
        raise InvalidParameterError(f"{name} must have at most {_shown(most)} members")
    return found


def path_of(value: object, name: str = "a path") -> Path:
    """Return the path of a file.

    Raises:
        DataTypeError: `value` is neither a string nor a path.
    """
    try:
        found = os.fspath(value)  # type: ignore[call-overload]
    except Exception:
        found = None
    if not isinstance(found, str):
        raise DataTypeError(f"{name} must be a string or a path, got {type(value).__name__}")
    return Path(found)


def public_array(name: str, values: object) -> NDArray[np.float64]:
    """Return public numbers as a new contiguous float array.

    Raises:
        DataTypeError: No array of real numbers, or one with a mask.
        InvalidParameterError: A number is too large for a float.
    """
    array = array_of(name, values)
    wrong = DataTypeError(f"{name} must be an array of real numbers")
    # Text of digits would be converted.
    if array.dtype.kind not in "iubfO" or any(isinstance(entry, str | bytes) for entry in _entries(array)):
        raise wrong
    try:
        with np.errstate(over="raise"):
            return np.array(array, dtype=np.float64, order="C")
    except (OverflowError, FloatingPointError):
        raise InvalidParameterError(f"{name} has a number that is too large") from None
    except Exception:
        raise wrong from None


def _entries(array: NDArray[Any]) -> Iterable[Any]:
    return array.flat if array.dtype.kind == "O" else ()


def numbers(name: str, values: object, ndim: int | None = 1) -> NDArray[np.float64]:
    """Return public numbers as a read-only contiguous float array.

    Raises:
        DataTypeError: Not an array of real numbers of this many dimensions.
        InvalidParameterError: A number is too large for a float.
    """
    array = public_array(name, values)
    if ndim is not None and array.ndim != ndim:
        raise DataTypeError(f"{name} must have {ndim} dimension(s), got {array.ndim}")
    array.flags.writeable = False
    return array


def integers(name: str, values: object, *, least: int, most: int) -> NDArray[np.int64]:
    """Return public integers from `least` to `most`, one-dimensional.

    Raises:
        DataTypeError: Not an array of integers.
        ShapeError: Not one-dimensional.
        InvalidParameterError: One is out of range.
    """
    array = array_of(name, values, "integers")
    if array.ndim != 1:
        raise ShapeError(f"{name} must be a one-dimensional array of integers")
    if not array.size:
        return np.zeros(0, dtype=np.int64)
    if array.dtype.kind == "O":  # beyond 64 bits, or none
        return np.array([integer(name, value, least=least, most=most) for value in array], dtype=np.int64)
    if array.dtype.kind not in "iu":
        raise DataTypeError(f"{name} must be an array of integers")
    integer(name, array.min(), least=least, most=most)
    integer(name, array.max(), least=least, most=most)
    return array.astype(np.int64)


def read_record(what: str, data: object, kinds: Mapping[str, frozenset[str]]) -> tuple[str, dict[str, object]]:
    """Split a JSON object into its "kind" and the fields of that kind.

    Args:
        what: Name of the record for messages, such as "privacy".
        data: What a JSON parser returned.
        kinds: For every known kind, the names of its fields.

    Returns:
        The kind, and the other fields by name.

    Raises:
        PlanFileError: `data` is no object, its kind is unknown, or its fields are not those of the kind.
    """
    if not isinstance(data, Mapping):
        raise PlanFileError(f"a stored {what} must be a JSON object, got {type(data).__name__}")
    kind = data.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        known = ", ".join(sorted(kinds))
        raise PlanFileError(f"the kind of a stored {what} must be one of {known}; it may need a newer sordino")
    fields = {str(name): value for name, value in data.items() if name != "kind"}
    if fields.keys() != kinds[kind]:
        expected, got = ", ".join(sorted(kinds[kind])), ", ".join(sorted(fields))
        raise PlanFileError(f"a stored {what} of kind {kind} must have the fields {expected}; got {got}")
    return kind, fields


def build_record(what: str, build: Callable[..., _T], fields: Mapping[str, object]) -> _T:
    """Call `build` with stored fields; a field that it refuses is the file's fault, not the caller's.

    Raises:
        PlanFileError: `build` refused a field.
    """
    try:
        return build(**fields)
    except (InvalidParameterError, DataTypeError) as error:
        raise PlanFileError(f"a stored {what} is out of range: {error}") from None
