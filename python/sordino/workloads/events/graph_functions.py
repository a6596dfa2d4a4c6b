"""Counts of a graph that grows: edges, triangles, stars, degrees, the cost of a minimum spanning forest.

The graph is simple and undirected on public vertices; an edge that comes again is a null item, and so is a loop, an
edge of an unknown vertex, and an edge beyond the degree bound.

**Edge level.** The unit is an edge with all its events: neighbours differ in whether the edge is there. Under the
degree bound D the stream keeps an edge iff it is among the first D distinct edges at both ends, whether those were kept
or not. So one more edge in the input is kept or not, and drives out at most one edge at either end: at most one more
and two fewer edges are kept (or the other way round).

**Node level.** The unit is a vertex with all its edges, of which there are at most D: a promise of the caller.

=====================  ====================================  ==========================================================
workload               one kept edge: rises, falls           one vertex of degree D
=====================  ====================================  ==========================================================
`EdgeCount`            1, 0                                  D, 0
`TriangleCount`        D - 1, 0                              C(D, 2), 0
`StarCount`            2 C(D - 1, k - 1), 0                  C(D, k) + D C(D - 1, k - 1), 0
`DegreeHistogram`      norm 2 sqrt(6 D - 4), l1 8 D - 4      norm D sqrt(6 D - 4) + sqrt(2 D + 1)
`SpanningForestCost`   W, W                                  D times that
=====================  ====================================  ==========================================================

The first three never fall when an edge is added, so all differences have one sign, and their sum is what one more edge
adds to the last graph. The degree histogram: a counter of one end changes by +1, -2, +1 at three steps in turn, of
squared norm at most 6 where products of columns fall with the distance, 8 where they are only not negative; two ends
may meet in a counter. The forest: the difference is w until the ends are connected, then min(0, w - b) for a bottleneck
b that only falls: both its rises and its falls sum to at most W.

Source: Fichtenberger, Henzinger and Upadhyay 2023, Section 5.3, which leaves the sensitivities to earlier work; these
are proved in the documentation ("Errata: Constant matters").
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

from sordino import _core
from sordino._support.checks import flag, integer, one_of
from sordino.errors import InvalidParameterError
from sordino.privacy.participation import Pattern
from sordino.privacy.units import ReplaceOne
from sordino.workloads.base import steps_of
from sordino.workloads.events.base import Change, EventWorkload, Property, change, counted, times
from sordino.workloads.events.edges import weight_grid
from sordino.workloads.events.names import names_of, vertex_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sordino.privacy.units import Unit
    from sordino.workloads.base import Spec

__all__ = [
    "DegreeHistogram",
    "EdgeCount",
    "GraphFunction",
    "Level",
    "SpanningForestCost",
    "StarCount",
    "TriangleCount",
]

Level = Literal["edge", "node"]

_MOST_VERTICES = 2**26
_MOST_SUBGRAPHS = 2**40


class GraphFunction(EventWorkload):
    """A function of a growing graph; the subclasses say which.

    Args:
        vertices: Number of vertices, which are then 0, 1, ...; or their names.
        length: Number of steps, None if it is not known.
        max_degree: D. On the edge level it is enforced by leaving out edges; without it D = vertices - 1.
        level: 'edge': the unit is an edge. 'node': the unit is a vertex, and `max_degree` must be promised.
        unchecked: Whether the caller promises that no vertex has more than D distinct edges: then nothing is charged
            for enforcing it. If the promise is broken, edges beyond it are left out, and privacy is less than the plan
            says.

    Raises:
        DataTypeError: An argument is of the wrong type.
        InvalidParameterError: A number is out of range, or the node level comes without a promised degree.
    """

    def __init__(
        self,
        vertices: int | Sequence[str],
        length: int | None = None,
        *,
        max_degree: int | None = None,
        level: Level = "edge",
        unchecked: bool = False,
    ) -> None:
        self.vertices, self.names = names_of("vertices", vertices, least=2, most=_MOST_VERTICES)
        self.length = steps_of("length", length)
        most = self.vertices - 1
        self.max_degree = None if max_degree is None else integer("max_degree", max_degree, least=1, most=most)
        self.level: Level = one_of("level", level, get_args(Level))
        self.unchecked = flag("unchecked", unchecked)
        if self.unchecked and self.max_degree is None:
            raise InvalidParameterError("unchecked says that max_degree holds: give max_degree")
        if self.level == "node" and not self.unchecked:
            raise InvalidParameterError(
                "node level takes a promised degree bound only: max_degree=..., unchecked=True. One vertex more can "
                "change all edges that a rule keeps"
            )

    @property
    def degree(self) -> int:
        """D: the bound on degrees that sensitivities use."""
        return self.vertices - 1 if self.max_degree is None else self.max_degree

    @property
    def enforced(self) -> bool:
        """Whether the degree bound is enforced by leaving out edges."""
        return self.max_degree is not None and not self.unchecked

    @property
    def coordinates(self) -> int:
        """Number of counters."""
        return 1

    def _most(self, name: str, subgraphs: int) -> int:
        """Return a bound on what one unit changes, refusing what no lattice has room for."""
        if subgraphs > _MOST_SUBGRAPHS:
            raise InvalidParameterError(f"{name} can change by more than 2**40: declare a smaller max_degree")
        return subgraphs

    def _edge(self) -> int:
        """Return what one kept edge adds in all."""
        return 1

    def _vertex(self) -> int:
        """Return what one vertex adds in all."""
        return self.degree

    @property
    def largest(self) -> int:
        """Most that one event changes a counter by."""
        return self._edge()

    def changes(self, unit: Unit, counters: _core.StreamPlan) -> tuple[Change, ...]:
        """Return what the unit changes: one sign for one edge, both where edges are driven out or replaced."""
        one = self._vertex() if self.level == "node" else self._edge()
        rises, falls = one, 2 * one if self.enforced else 0
        if isinstance(unit, ReplaceOne):
            rises, falls = rises + falls, rises + falls
        return (
            change(
                rises=rises**2,
                falls=falls**2,
                l1=rises + falls,
                touched=1,
                weight=times(unit),
                no_negative_products=counters.no_negative_products,
            ),
        )

    def assumes(self, counters: _core.StreamPlan) -> Property:
        """Say which property of the strategy the sensitivity uses."""
        return "no negative products of columns" if counters.no_negative_products else "general"

    def protected(self, unit: Unit) -> str:
        """Say what is protected, as the subject of a sentence."""
        if self.level == "node":
            return counted(unit, "a vertex with all its edges", "vertices with all their edges")
        return counted(unit, "an edge, with all its events", "edges, with all their events")

    @property
    def condition(self) -> str:
        """Return what the guarantee rests on that nobody checks, as the end of a sentence."""
        if not self.unchecked:
            return ""
        return f", as long as no vertex has more than {self.degree} distinct edges, a promise that is not checked"

    @property
    def things(self) -> str:
        """What a unit counts, several of them."""
        return "vertices with all their edges" if self.level == "node" else "edges with all their events"

    def encoder(self) -> _core.GraphEvents | _core.SpanningForest:
        """Return what turns edges into changes of the counters."""
        return _core.GraphEvents(self.kind, self.vertices, self.max_degree, getattr(self, "k", 0))

    def spec(self) -> Spec:
        """Return the constructor's arguments."""
        return {
            "vertices": vertex_names(self.vertices, self.names),
            "length": self.length,
            "max_degree": self.max_degree,
            "level": self.level,
            "unchecked": self.unchecked,
        }


class EdgeCount(GraphFunction):
    """Number of distinct edges so far.

    Args:
        vertices: Number of vertices, or their names.
        length: Number of steps, None if it is not known.
        max_degree: Bound on degrees; not needed on the edge level.
        level: 'edge' or 'node'.
        unchecked: Whether `max_degree` is promised, and not checked.
    """

    kind: ClassVar[str] = "edge_count"


class TriangleCount(GraphFunction):
    """Number of triangles so far.

    Args:
        vertices: Number of vertices, or their names.
        length: Number of steps, None if it is not known.
        max_degree: Bound on degrees: an edge is in at most D - 1 triangles.
        level: 'edge' or 'node'.
        unchecked: Whether `max_degree` is promised, and not checked.
    """

    kind: ClassVar[str] = "triangle_count"

    def _edge(self) -> int:
        return max(self.degree - 1, 1)

    def _vertex(self) -> int:
        return self._most("triangles", max(math.comb(self.degree, 2), 1))


class StarCount(GraphFunction):
    """Number of k-stars so far: a vertex with k of its neighbours, summed over the vertices.

    Args:
        k: Edges of a star, at least 2.
        vertices: Number of vertices, or their names.
        length: Number of steps, None if it is not known.
        max_degree: Bound on degrees: an edge is in at most 2 C(D - 1, k - 1) stars.
        level: 'edge' or 'node'.
        unchecked: Whether `max_degree` is promised, and not checked.
    """

    kind: ClassVar[str] = "star_count"

    def __init__(
        self,
        k: int,
        vertices: int | Sequence[str],
        length: int | None = None,
        *,
        max_degree: int | None = None,
        level: Level = "edge",
        unchecked: bool = False,
    ) -> None:
        self.k = integer("k", k, least=2)
        if self.k > 64:
            raise InvalidParameterError("k must be at most 64")
        super().__init__(vertices, length, max_degree=max_degree, level=level, unchecked=unchecked)
        _ = self._edge(), self._vertex() if self.level == "node" else 0

    def _edge(self) -> int:
        return self._most("k-stars", max(2 * math.comb(self.degree - 1, self.k - 1), 1))

    def _vertex(self) -> int:
        d, k = self.degree, self.k
        return self._most("k-stars", max(math.comb(d, k) + d * math.comb(d - 1, k - 1), 1))

    def spec(self) -> Spec:
        """Return the constructor's arguments."""
        return {"k": self.k, **super().spec()}


class DegreeHistogram(GraphFunction):
    """How many vertices have 0, 1, ..., D edges.

    Args:
        vertices: Number of vertices, or their names.
        length: Number of steps, None if it is not known.
        max_degree: D, the last degree; needed.
        level: 'edge' or 'node'.
        unchecked: Whether `max_degree` is promised, and not checked.
    """

    kind: ClassVar[str] = "degree_histogram"

    def __init__(
        self,
        vertices: int | Sequence[str],
        length: int | None = None,
        *,
        max_degree: int | None = None,
        level: Level = "edge",
        unchecked: bool = False,
    ) -> None:
        super().__init__(vertices, length, max_degree=max_degree, level=level, unchecked=unchecked)
        if self.max_degree is None:
            raise InvalidParameterError("a degree histogram needs max_degree")

    @property
    def coordinates(self) -> int:
        """Degrees 0 to D."""
        return self.degree + 1

    @property
    def largest(self) -> int:
        """Most that one event changes a counter by."""
        return 2

    @property
    def first(self) -> float:
        """All vertices begin with degree 0."""
        return float(self.vertices)

    def changes(self, unit: Unit, counters: _core.StreamPlan) -> tuple[Change, ...]:
        """Return what the unit changes: at either end of an edge a shift of the degrees from then on."""
        d, weight = self.degree, times(unit) * (2 if isinstance(unit, ReplaceOne) else 1)
        # One end: D - 1 counters go +1, -2, +1 and two change once.
        end = (
            6 * d - 4 if counters.falling_products else 8 * d - 6 if counters.no_negative_products else (4 * d - 2) ** 2
        )
        if self.level == "edge":
            weight *= 3 if self.enforced else 1
            return ((Pattern(1, weight, 1, 4 * end, 8 * d - 4, d + 1),),)
        own, l1 = 2 * d + 1, d * (4 * d - 2) + 2 * d
        if not counters.no_negative_products:
            own = (2 * d) ** 2
        square = d * d * end + own + 2 * (math.isqrt(d * d * end * own) + 1)
        return ((Pattern(1, weight, 1, square, l1, d + 1),),)

    def assumes(self, counters: _core.StreamPlan) -> Property:
        """Say which property of the strategy the sensitivity uses."""
        return "products that fall with the distance" if counters.falling_products else super().assumes(counters)


class SpanningForestCost(GraphFunction):
    """Cost of a minimum spanning forest of all weighted edges so far.

    Edges may come again with another weight: the graph is a multigraph, and no degree bound is needed on the edge
    level.

    Args:
        vertices: Number of vertices, or their names.
        length: Number of steps, None if it is not known.
        max_weight: W: weights are in [0, W]; an edge of another weight is a null item.
        weight_bits: Weights are rounded to W 2^-weight_bits; 0 for integers up to an integer W that is a power of two.
        max_degree: Bound on the number of events of a vertex, edges counted as often as they come, for the node level;
            promised, and not checked.
        level: 'edge' (the unit is one event) or 'node'.
        unchecked: Whether `max_degree` is promised, and not checked.
    """

    kind: ClassVar[str] = "spanning_forest_cost"

    def __init__(
        self,
        vertices: int | Sequence[str],
        length: int | None = None,
        *,
        max_weight: float = 1.0,
        weight_bits: int = 16,
        max_degree: int | None = None,
        level: Level = "edge",
        unchecked: bool = False,
    ) -> None:
        self.max_weight, self.weight_bits = weight_grid(max_weight, weight_bits)
        super().__init__(vertices, length, max_degree=max_degree, level=level, unchecked=unchecked)
        if self.max_degree is not None and self.level == "edge":
            raise InvalidParameterError("the forest needs no degree bound on the edge level")

    @property
    def largest(self) -> int:
        """Most that one event changes the counter by, in counted units."""
        return 1 << self.weight_bits

    @property
    def counted_unit(self) -> float:
        """W 2^-weight_bits."""
        return self.max_weight * 2.0**-self.weight_bits

    def changes(self, unit: Unit, counters: _core.StreamPlan) -> tuple[Change, ...]:
        """Return what the unit changes: rises and falls of W each."""
        weight = times(unit) * (self.degree if self.level == "node" else 1) * (2 if isinstance(unit, ReplaceOne) else 1)
        one = self.largest
        return (
            change(
                rises=one**2,
                falls=one**2,
                l1=2 * one,
                touched=1,
                weight=weight,
                no_negative_products=counters.no_negative_products,
            ),
        )

    def protected(self, unit: Unit) -> str:
        """Say what is protected, as the subject of a sentence."""
        if self.level == "edge":
            return counted(unit, "an event: an edge of any weight", "events: edges of any weights")
        return counted(unit, "a vertex with all its edges", "vertices with all their edges")

    @property
    def condition(self) -> str:
        """Return what the guarantee rests on that nobody checks, as the end of a sentence."""
        if self.level == "edge":
            return ""
        return f", as long as no vertex is in more than {self.degree} events, a promise that is not checked"

    def encoder(self) -> _core.SpanningForest:
        """Return what turns weighted edges into changes of the cost."""
        return _core.SpanningForest(self.vertices, self.largest)

    def spec(self) -> Spec:
        """Return the constructor's arguments."""
        return {"max_weight": self.max_weight, "weight_bits": self.weight_bits, **super().spec()}
