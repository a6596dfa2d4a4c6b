"""An open stream of a function of a growing graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from sordino import _core
from sordino._support.checks import flag
from sordino.errors import InvalidParameterError, UnsupportedMechanismError
from sordino.releases.interval import Interval, interval_around
from sordino.streams.events import EventStream, _Part, step_ends
from sordino.workloads.events.edges import endpoints, weight_units
from sordino.workloads.events.graph_functions import GraphFunction
from sordino.workloads.events.names import is_single

if TYPE_CHECKING:
    from sordino.mechanisms.stream.fit import StreamFit
    from sordino.streams.counter import Stream
    from sordino.streams.kept import Kept
    from sordino.workloads.base import Array

__all__ = ["GraphFunctionStream"]


class GraphFunctionStream(EventStream):
    """An open stream of a function of a growing graph; `StreamPlan.open` makes it."""

    counters: Stream

    def __init__(self, fit: StreamFit, counters: Stream, private: bool | None = None, kept: Kept | None = None) -> None:
        super().__init__(fit, counters, private, kept)
        assert isinstance(fit.events, GraphFunction)
        self._workload = fit.events
        self._encoder = fit.events.encoder()

    def close(self) -> None:
        """Wipe key, noise and what is remembered of events; the stream refuses everything from now on."""
        super().close()
        self._encoder.close()

    def update(
        self,
        source: object,
        target: object,
        weights: object = None,
        *,
        together: bool = False,
        step_id: str | int | None = None,
    ) -> Any:
        """Take in edges and publish the function after them.

        A loop, an unknown vertex, a weight out of range, an edge that comes again and an edge beyond the degree bound
        are null items: a step passes, nothing is said.

        Args:
            source: One end of every edge: an integer or a name, or an array of them.
            target: The other end.
            weights: Of a `SpanningForestCost` only: one for each edge or for all; the largest if None.
            together: Whether all these edges (there may be none) are one step; otherwise each is a step.
            step_id: Name of this batch: given again, its answer is returned and nothing published. Needs a store;
                in a `sordino.Store` it may be an integer that grows.

        Returns:
            The answers: a float for one step of one counter; shape (steps,), or (counters,) for one step, or
            (steps, counters).

        Raises:
            DataTypeError: Not vertices or weights by their type.
            ShapeError: Not as many of the one as of the other.
            InvalidParameterError: Weights where there are none.
            HorizonError: More steps than are left.
            StreamClosedError: The stream was closed.
            ForkError: The stream belongs to another process.
            StepStoreError: The store did not keep the step: call `counters.resume`; `step` says how far the batch came.
        """
        workload = self._workload
        u, v = endpoints(source, target, workload.vertices, workload.names)
        ends = step_ends(len(u), together)
        if isinstance(self._encoder, _core.SpanningForest):
            largest: float = workload.max_weight  # type: ignore[attr-defined]
            w = weight_units(weights, len(u), largest, workload.largest, one_signed=True)
        elif weights is not None:
            raise InvalidParameterError("only a SpanningForestCost has weights")

        columns = (u, v) if weights is None and not isinstance(self._encoder, _core.SpanningForest) else (u, v, w)
        with self._guard():
            known = self._published_as(step_id)
            if known is not None:
                stored = np.frombuffer(known.answers, "<f8").astype(np.float64)
                answers = self._scaled(stored.reshape(known.steps, self.fit.dim))
            else:
                self._check(len(ends))
                answers = self._publish_all(tuple(c.astype(np.int64) for c in columns), ends, step_id, at_once=True)
            if answers is None:
                answers = np.zeros((0, self.fit.dim))
            single = together or is_single(source)
            if self.fit.dim == 1:
                return float(answers[0, 0]) if single and len(answers) == 1 else answers[:, 0]
            return answers[0] if single and len(answers) == 1 else answers

    def _feed(self, part: _Part) -> Array:
        encoder: Any = self._encoder
        return self._publish(encoder.rows(part.start, *part.events, part.ends), part)

    def delete(self, *_edge: object) -> NoReturn:
        """Refuse to take an edge away.

        One edge that is inserted and deleted again and again would change the counts at as many steps, so no number of
        steps has a bounded sensitivity: these functions are of graphs that grow.
        `WeightedGraph(one_signed=False)` takes deletions.

        Raises:
            UnsupportedMechanismError: Always.
        """
        raise UnsupportedMechanismError(
            "deletions are refused: with them one edge can change these counts at every step, and no noise covers "
            "that. WeightedGraph(one_signed=False) takes them"
        )

    @property
    def value(self) -> Any:
        """The answer published last: a float, or an array of the counters; None before the first step."""
        if self.step == 0:
            return None
        answers: Array = self._scaled(np.atleast_1d(np.asarray(self.counters.value, dtype=np.float64)).copy())
        return float(answers[0]) if self.fit.dim == 1 else answers

    def interval(self, level: float, *, simultaneous: bool = False) -> Interval | None:
        """Return confidence intervals around `value`, None before the first step.

        Args:
            level: Strictly between 0 and 1.
            simultaneous: Whether the intervals of all counters shall hold together with this probability.

        Raises:
            InvalidParameterError: The level is out of range.
        """
        value = self.value
        if value is None:
            return None
        width = float(
            self.fit.half_width([self.step], level, self.fit.coordinates if flag("simultaneous", simultaneous) else 1)[
                0
            ]
        )
        return interval_around(value, width, level, simultaneous, rounding=self.fit.rounding)
