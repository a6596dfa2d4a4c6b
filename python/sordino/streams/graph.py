"""An open stream of a private graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sordino import _core
from sordino.errors import InvalidParameterError, UnsupportedMechanismError
from sordino.releases.cuts import Cut, Widths
from sordino.releases.private_graph import PrivateGraph
from sordino.streams.events import EventStream, _Part, step_ends
from sordino.workloads.events.edges import endpoints, weight_units
from sordino.workloads.events.names import indices
from sordino.workloads.events.weighted_graph import WeightedGraph

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sordino.mechanisms.stream.fit import StreamFit
    from sordino.streams.kept import Kept
    from sordino.workloads.base import Array

__all__ = ["GraphStream"]

# Counters that are read at once.
_CHUNK = 2**20
# A released graph is a matrix.
_MOST_MATRIX = 2**13


class GraphStream(EventStream):
    """An open stream of a private graph; `StreamPlan.open` makes it."""

    remembers = False  # every pair has a counter

    def __init__(self, fit: StreamFit, counters: Any, private: bool | None = None, kept: Kept | None = None) -> None:
        super().__init__(fit, counters, private, kept)
        assert isinstance(fit.events, WeightedGraph)
        self._workload = fit.events

    def update(
        self,
        source: object,
        target: object,
        weights: object = None,
        *,
        together: bool = False,
        step_id: str | int | None = None,
    ) -> None:
        """Take in events, and publish the graph after them.

        A loop, an unknown vertex and a weight out of range are null items: a step passes, nothing is said.

        Args:
            source: One end of every edge: an integer or a name, or an array of them.
            target: The other end.
            weights: One for each event or for all; the largest if None.
            together: Whether all these events (there may be none) are one step; otherwise each is a step.
            step_id: Name of this batch: given again, nothing is published. Needs a store;
                in a `sordino.Store` it may be an integer that grows.

        Raises:
            DataTypeError: Not vertices or weights by their type.
            ShapeError: Not as many of the one as of the other.
            HorizonError: More steps than are left.
            StreamClosedError: The stream was closed.
            ForkError: The stream belongs to another process.
            StepStoreError: The store did not keep a step: call `resume`, which publishes the rest of the batch too.
        """
        workload = self._workload
        u, v = endpoints(source, target, workload.vertices, workload.names)
        w = weight_units(weights, len(u), workload.max_weight, workload.largest, workload.one_signed)
        ends = step_ends(len(u), together)
        with self._guard():
            if self._published_as(step_id) is not None:
                return
            self._check(len(ends))
            valid = (u >= 0) & (v >= 0) & (u != v) & (np.abs(w) <= workload.largest)
            places = np.where(valid, workload.pairs(u, np.where(u == v, u + 1, v)), 0).astype(np.int64)
            self._publish_all((places, np.where(valid, w, 0).astype(np.int64)), ends, step_id)

    def _feed(self, part: _Part) -> None:
        places, amounts = part.events
        if isinstance(self.counters, _core.LazyStream):
            self.counters.advance(places.astype(np.uint64), amounts, part.ends)
            return
        of_step = np.searchsorted(part.ends, np.arange(len(places), dtype=np.uint64), side="right")
        changes = np.zeros((len(part.ends), self.fit.coordinates), dtype=np.int64)
        np.add.at(changes, (of_step, places), amounts)
        self._publish(changes.reshape(-1), part)

    def _side(self, name: str, vertices: object) -> NDArray[np.int64]:
        """Return a set of vertices by index.

        Raises:
            InvalidParameterError: It is empty, names a vertex twice, or one that does not exist.
        """
        found = indices(name, vertices, self._workload.vertices, self._workload.names)
        if len(found) == 0 or int(found.min()) < 0 or len(np.unique(found)) < len(found):
            raise InvalidParameterError(f"{name} must be different vertices of the graph, at least one")
        return found

    def cut(self, side: object, other: object = None) -> Cut:
        """Return the noisy weight between two sets of vertices after the last step.

        |S| |P| counters are read; nothing depends on the number of vertices squared.

        Args:
            side: S, a sequence of vertices.
            other: P, vertices not in S; all others if None.

        Raises:
            InvalidParameterError: A set is empty or they meet, or no step was published.
            StreamClosedError: The stream was closed.
            ForkError: The stream belongs to another process.
        """
        one, n = self._side("side", side), self._workload.vertices
        everybody = np.arange(n, dtype=np.int64)
        two = np.setdiff1d(everybody, one) if other is None else self._side("other", other)
        if len(two) == 0 or len(np.intersect1d(one, two)):
            raise InvalidParameterError("the two sides of a cut must be disjoint and not empty")
        value, columns = 0.0, max(_CHUNK // len(two), 1)
        for first in range(0, len(one), columns):
            part = np.repeat(one[first : first + columns], len(two))
            places = self._workload.pairs(part, np.tile(two, len(part) // len(two)))
            value += float(self.read(places).sum())
        return Cut(value, len(one), len(two), self._widths())

    def weights(self, source: object, target: object) -> Array:
        """Return the noisy weights of pairs of different vertices after the last step, in the order given.

        Raises:
            InvalidParameterError: A vertex does not exist, a pair is a loop, or no step was published.
            DataTypeError: Not vertices by their type.
            ShapeError: Not as many of the one as of the other.
        """
        u, v = endpoints(source, target, self._workload.vertices, self._workload.names)
        if len(u) and (min(int(u.min()), int(v.min())) < 0 or (u == v).any()):
            raise InvalidParameterError("pairs must be of different vertices of the graph")
        return self.read(self._workload.pairs(u, v))

    def _widths(self) -> Widths:
        if self.step == 0:
            raise InvalidParameterError("nothing was published yet")
        return Widths.of(self.fit, self.step)

    def graph(self) -> PrivateGraph:
        """Return the whole graph after the last step.

        Raises:
            UnsupportedMechanismError: More than 2**13 vertices: ask for cuts, or weights of pairs.
            InvalidParameterError: No step was published.
            StreamClosedError: The stream was closed.
        """
        n = self._workload.vertices
        if n > _MOST_MATRIX:
            raise UnsupportedMechanismError("a whole graph has at most 2**13 vertices here: use cut() and weights()")
        pairs = np.concatenate(
            [
                self.read(np.arange(i, min(i + _CHUNK, self.fit.coordinates)))
                for i in range(0, self.fit.coordinates, _CHUNK)
            ]
        )
        return PrivateGraph(n, self._workload.names, pairs, self._widths(), self.step)
