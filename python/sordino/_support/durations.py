"""Spans of time, as people write them."""

from __future__ import annotations

import re
from datetime import timedelta

from sordino._support.checks import real
from sordino.errors import DataTypeError, InvalidParameterError

__all__ = ["seconds_of"]

_UNITS = {
    "ms": 0.001,
    "s": 1,
    "second": 1,
    "min": 60,
    "minute": 60,
    "h": 3600,
    "hour": 3600,
    "day": 86400,
    "week": 604800,
}
_LONGEST = 86400.0 * 36525


def seconds_of(name: str, value: object) -> float:
    """Return a span in seconds: of a number of seconds, a `timedelta`, or text such as '15 min' or '7 days'.

    Raises:
        DataTypeError: It is none of these.
        InvalidParameterError: It is not positive, longer than a century, or not understood.
    """
    match value:
        case timedelta():
            seconds = value.total_seconds()
        case bool():
            raise DataTypeError(f"{name} must be a span of time, got bool")
        case int() | float():
            seconds = real(name, value)
        case str():
            found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)?\s*([a-z]+?)s?\s*", value.lower())
            unit = None if found is None else _UNITS.get(found[2], _UNITS.get(f"{found[2]}s"))
            if found is None or unit is None:
                raise InvalidParameterError(f"{name} must be a span such as '15 min' or '7 days'")
            seconds = min(float(found[1] or 1.0), 2.0 * _LONGEST) * unit
        case _:
            raise DataTypeError(f"{name} must be a span of time, got {type(value).__name__}")
    if not 0.0 < seconds <= _LONGEST:
        raise InvalidParameterError(f"{name} must be above 0 and at most a century")
    return seconds
