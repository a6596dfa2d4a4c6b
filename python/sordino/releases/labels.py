"""Labels of the input as JSON: with their types, where a file can say them."""

from __future__ import annotations

import math
from datetime import date, datetime
from typing import Any

import numpy as np

from sordino.errors import PlanFileError

__all__ = ["label_from_json", "label_to_json"]


def label_to_json(label: Any) -> Any:
    """Return a label as JSON: text, numbers, dates, moments, and tuples of them; anything else becomes text."""
    if type(label) is int and abs(label) >= 2**64:
        return {"int": hex(label)}  # decimal text of any length is refused by Python
    if label is None or type(label) in {str, bool, int} or (type(label) is float and math.isfinite(label)):
        return label
    if type(label) is float:
        return {"float": repr(label)}
    if isinstance(label, tuple):
        return {"tuple": [label_to_json(each) for each in label]}
    if isinstance(label, np.datetime64) and not np.isnat(label):
        return {"datetime64": [str(label), np.datetime_data(label)[0]]}
    if isinstance(label, np.generic) and not isinstance(label, np.datetime64 | np.timedelta64):
        own = label.item()
        return str(label) if isinstance(own, np.generic) else label_to_json(own)  # there is no number of Python so long
    for kind, name in ((datetime, "datetime"), (date, "date")):
        if isinstance(label, kind):
            text = label.isoformat()
            return {name: text} if _is_read(kind, text, label) else str(label)
    return str(label)


def label_from_json(label: Any) -> Any:
    """Return the label that `label_to_json` wrote.

    Raises:
        PlanFileError: It did not.
    """
    if not isinstance(label, dict):
        return label
    try:
        ((kind, value),) = label.items()
        match kind:
            case "tuple":
                return tuple(label_from_json(each) for each in value)
            case "int":
                return int(value, 16)
            case "float":
                return float(value)
            case "datetime64":
                return np.datetime64(*value)
            case "datetime":
                return datetime.fromisoformat(value)
            case "date":
                return date.fromisoformat(value)
    except (TypeError, ValueError):
        pass
    raise PlanFileError("a label is of an unknown kind")


def _is_read(kind: type[date], text: str, label: date) -> bool:
    """Return whether a moment is read as it is: those of pandas may be finer than a microsecond, or none."""
    try:
        # By what they show: moments of two zones that a clock shows twice are never equal.
        return kind.fromisoformat(text).isoformat() == text and not getattr(label, "nanosecond", 0)
    except ValueError:
        return False
