"""Checks of public scalar parameters, shared by the records of the privacy layer."""

import math
from collections.abc import Callable, Mapping
from numbers import Real
from typing import TypeVar

from sordino.errors import DataTypeError, InvalidParameterError, PlanFileError

__all__ = ["build_record", "integer", "open_unit", "positive", "read_record", "real"]

_T = TypeVar("_T")

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


def integer(name: str, value: object, *, least: int) -> int:
    """Return `value` as an int of at least `least`; numpy integers are accepted, bools and floats are not.

    Raises:
        DataTypeError: `value` is not an integer.
        InvalidParameterError: `value` is below `least`.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise DataTypeError(f"{name} must be an integer, got {type(value).__name__}")
    try:
        number = int(value.__index__())
    except TypeError:  # an array of several numbers, or a type
        raise DataTypeError(f"{name} must be an integer, got {type(value).__name__}") from None
    if number < least:
        raise InvalidParameterError(f"{name} must be at least {least}, got {number}")
    return number


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
