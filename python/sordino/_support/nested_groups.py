"""The forest of a workload's groups, made once: bounds, strategies and what is served ask for it."""

from __future__ import annotations

from typing import Protocol

from sordino import _core
from sordino._support.remembered import remembered
from sordino.errors import UnsupportedMechanismError

__all__ = ["nested_groups"]


class _Asked(Protocol):
    @property
    def core(self) -> _core.Workload: ...


@remembered
def nested_groups(workload: _Asked) -> _core.NestedGroups | None:
    """Return the groups of queries that are multiples of their sums, None if two cross or a query is another."""
    try:
        return _core.NestedGroups(workload.core)
    except UnsupportedMechanismError:
        return None
