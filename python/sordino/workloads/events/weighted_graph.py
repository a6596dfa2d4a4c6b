"""A private weighted graph: one counter for every pair of vertices, and cuts read from them.

An event adds a weight in [0, W], or [-W, W] if not one-signed, to an edge; edges may come again. In units of W, present
or not (or with another weight) is a change of 1, an edge replaced by another one sqrt(2) for a strategy without
negative products of columns (2 if not one-signed), times its column norm. No degree bound is needed.

Source: Fichtenberger, Henzinger and Upadhyay 2023, Section 5.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from sordino._support.checks import flag
from sordino.privacy.participation import patterns
from sordino.privacy.units import ReplaceOne
from sordino.workloads.base import steps_of
from sordino.workloads.events.base import Change, EventWorkload, Property, counted
from sordino.workloads.events.edges import weight_grid
from sordino.workloads.events.names import names_of, vertex_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from sordino import _core
    from sordino.privacy.units import Unit
    from sordino.workloads.base import Spec

__all__ = ["WeightedGraph"]

_MOST_VERTICES = 2**20


class WeightedGraph(EventWorkload):
    """The weights of all pairs of vertices so far: a graph whose cuts are close to the true ones.

    Args:
        vertices: Number of vertices, which are then 0, 1, ...; or their names. At most 2**20.
        length: Number of steps, None if it is not known; 1 for a graph that is published once.
        max_weight: W, the largest weight of an event; events of another weight are null items.
        one_signed: Whether weights are not negative; if False, an insertion is taken back by its negative.
        weight_bits: Weights are rounded to W 2^-weight_bits.

    Raises:
        DataTypeError: An argument is of the wrong type.
        InvalidParameterError: A number is out of range.
    """

    kind: ClassVar[str] = "synthetic_graph"

    def __init__(
        self,
        vertices: int | Sequence[str],
        length: int | None = None,
        *,
        max_weight: float = 1.0,
        one_signed: bool = True,
        weight_bits: int = 16,
    ) -> None:
        self.vertices, self.names = names_of("vertices", vertices, least=2, most=_MOST_VERTICES)
        self.length = steps_of("length", length)
        self.max_weight, self.weight_bits = weight_grid(max_weight, weight_bits)
        self.one_signed = flag("one_signed", one_signed)

    @property
    def coordinates(self) -> int:
        """Pairs of vertices."""
        return self.vertices * (self.vertices - 1) // 2

    @property
    def largest(self) -> int:
        """Most that one event changes a counter by, in counted units."""
        return 1 << self.weight_bits

    @property
    def counted_unit(self) -> float:
        """W 2^-weight_bits."""
        return self.max_weight * 2.0**-self.weight_bits

    def pairs(self, u: NDArray[np.int64], v: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the index of each pair of different vertices: (0, 1), (0, 2), ..., (1, 2), ..."""
        low, high = np.minimum(u, v), np.maximum(u, v)
        places: NDArray[np.int64] = low * (2 * self.vertices - low - 1) // 2 + high - low - 1
        return places

    def changes(self, unit: Unit, counters: _core.StreamPlan) -> tuple[Change, ...]:
        """Return what the unit changes: events of one counter each."""
        found = patterns(unit, self.coordinates, 1, self.one_signed, counters.no_negative_products)
        scale = self.largest
        return tuple(
            (p._replace(item_squared=p.item_squared * scale * scale, item_l1=p.item_l1 * scale),) for p in found
        )

    def assumes(self, counters: _core.StreamPlan) -> Property:
        """Say which property of the strategy the sensitivity uses."""
        return "no negative products of columns" if counters.no_negative_products else "general"

    def protected(self, unit: Unit) -> str:
        """Say what is protected, as the subject of a sentence."""
        if isinstance(unit, ReplaceOne):
            return "Which edge one event is of" if unit.records == 1 else f"Which edges {unit.records} events are of"
        return counted(unit, "an event, an edge of any weight", "events, edges of any weight")

    def encoder(self) -> None:
        """Return None: every event is one change."""
        return

    def spec(self) -> Spec:
        """Return the constructor's arguments."""
        return {
            "vertices": vertex_names(self.vertices, self.names),
            "length": self.length,
            "max_weight": self.max_weight,
            "one_signed": self.one_signed,
            "weight_bits": self.weight_bits,
        }
