"""What every count of events has in common: items that are not numbers, but change counters by a public rule.

An event (an edge, a letter) changes some of d counters. What neighbouring streams of events differ by is a list of
changes at several steps, and for a strategy C of running sums without negative products of columns

    ||(C x I) (d - d')||_2^2 <= ||C||^2 sum_c [(sum of rises in c)^2 + (sum of falls in c)^2],

||C|| the largest column norm. Without that property the l1 norm times ||C|| is what holds for any C. Every workload
says which property its bound needs.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal, NoReturn, TypeAlias

from sordino import _core
from sordino.errors import UnsupportedMechanismError
from sordino.privacy.participation import Pattern
from sordino.privacy.units import ReplaceOne, Unit, UserLevel
from sordino.workloads.base import Workload

__all__ = ["Change", "Encoder", "EventWorkload", "Property", "change", "counted", "times"]

Change: TypeAlias = tuple[Pattern, ...]
"""What one unit changes: patterns in coordinates of their own."""

Encoder: TypeAlias = "_core.GraphEvents | _core.SpanningForest | _core.Words | None"

Property = Literal["general", "no negative products of columns", "products that fall with the distance"]


class EventWorkload(Workload):
    """Counters that events change.

    Attributes:
        length: Number of steps, None if it is not known.
        streamed: Whether it opens a stream.
    """

    linear: ClassVar[bool] = False
    continual: ClassVar[bool] = True
    of_events: ClassVar[bool] = True
    streamed: ClassVar[bool] = True
    length: int | None

    @property
    @abstractmethod
    def coordinates(self) -> int:
        """Number of counters."""

    @property
    @abstractmethod
    def largest(self) -> int:
        """Most that one event changes a counter by, in counted units."""

    @property
    def things(self) -> str:
        """What a unit counts, several of them."""
        return "events"

    @property
    def counted_unit(self) -> float:
        """What 1 in a counter stands for."""
        return 1.0

    @property
    def first(self) -> float:
        """Public value of the first counter before any event."""
        return 0.0

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Counters."""
        return (self.coordinates,)

    @abstractmethod
    def changes(self, unit: Unit, counters: _core.StreamPlan) -> tuple[Change, ...]:
        """Return what the unit changes, in one or several ways to bound it: the least sensitivity counts.

        Raises:
            UnsupportedMechanismError: The unit is none of this workload.
        """

    @abstractmethod
    def assumes(self, counters: _core.StreamPlan) -> Property:
        """Say which property of the strategy the sensitivity uses."""

    @abstractmethod
    def protected(self, unit: Unit) -> str:
        """Say what is protected, as the subject of a sentence."""

    @property
    def condition(self) -> str:
        """Return what the guarantee rests on that nobody checks, as the end of a sentence."""
        return ""

    @abstractmethod
    def encoder(self) -> Encoder:
        """Return what turns events into changes of the counters, None if every event is one change."""

    def _build(self) -> NoReturn:
        raise UnsupportedMechanismError(f"{type(self).__name__} counts events of a stream: it has no release")


def times(unit: Unit) -> int:
    """Return how many single events, edges, letters or vertices the unit may concern."""
    return unit.max_participations * unit.per_step if isinstance(unit, UserLevel) else unit.records


def counted(unit: Unit, one: str, many: str) -> str:
    """Say how many things the unit concerns, as the beginning of a sentence."""
    number = times(unit)
    what = one if number == 1 else f"{number} {many}"
    if isinstance(unit, ReplaceOne):
        return f"Which {what} the stream has, not whether it has so many,"
    return f"Whether the stream has {what}"


def change(*, rises: int, falls: int, l1: int, touched: int, weight: int, no_negative_products: bool) -> Change:
    """Return the pattern of a change.

    Args:
        rises: Sum over the counters of the square of all that a counter rises by, at any steps; 0 for none.
        falls: The same of what it falls by.
        l1: Sum of all changes.
        touched: Counters that differ.
        weight: How many such changes there are; they add up (triangle inequality).
        no_negative_products: Of columns of the strategy; otherwise all of `l1` is charged.
    """
    return (Pattern(1, weight, 1, rises + falls if no_negative_products else l1 * l1, l1, touched),)
