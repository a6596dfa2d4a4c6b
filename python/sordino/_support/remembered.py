"""What is found once for each object."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

__all__ = ["remembered"]

_Thing = TypeVar("_Thing")
_Found = TypeVar("_Found")


def remembered(find: Callable[[_Thing], _Found]) -> Callable[[_Thing], _Found]:
    """Return a function of things that never change, which keeps what it found on the thing itself.

    Like `functools.cached_property`, but defined where it is needed: a workload knows nothing of bounds.
    """
    name = f"_{find.__module__}.{find.__qualname__}"

    @wraps(find)
    def known(thing: _Thing) -> _Found:
        kept: dict[str, Any] = vars(thing)
        if name not in kept:
            kept[name] = find(thing)
        found: _Found = kept[name]
        return found

    return known
