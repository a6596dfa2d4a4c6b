"""From a count of events to a plan: how it is read, and the declared bounds of its counters."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sordino import _core
from sordino.errors import InvalidParameterError, UnsupportedMechanismError
from sordino.event_streams.graph_functions import GraphFunction
from sordino.event_streams.plan import EventPlan

if TYPE_CHECKING:
    from collections.abc import Callable

    from sordino.event_streams.workload import EventWorkload
    from sordino.stream_fitting import StreamRequest
    from sordino.stream_plans import StreamPlan

__all__ = ["plan_events"]

_MOST_DENSE = 2**21
_MOST_PUBLISHED = 2**32
# A step of several events changes a counter by up to so many times what one event does, before it is clamped.
_EVENTS = 2**12


def plan_events(
    workload: EventWorkload, request: StreamRequest, reads: object, plan: Callable[[StreamRequest], StreamPlan]
) -> EventPlan:
    """Plan the counters of a workload of events.

    Args:
        workload: What is counted.
        request: What one counter is asked for.
        reads: 'auto', 'dense' or 'lazy'.
        plan: Plans running sums.

    Raises:
        InvalidParameterError: An argument is out of range.
        UnsupportedMechanismError: No mechanism serves, or there are too many counters for what was asked.
    """
    if reads not in ("auto", "dense", "lazy"):
        raise InvalidParameterError("reads must be 'auto', 'dense' or 'lazy'")
    if not workload.streamed:
        raise UnsupportedMechanismError("a LocalSurvey is planned by sordino.plan_local")
    counters = workload.coordinates
    few = counters <= _MOST_DENSE and counters * request.judged <= _MOST_PUBLISHED
    dense = reads == "dense" or counters == 1 or (reads == "auto" and few) or isinstance(workload, GraphFunction)
    if isinstance(workload, GraphFunction) and reads == "lazy":
        raise UnsupportedMechanismError("functions of graphs are published at every step: reads='dense'")
    if dense and counters > _MOST_DENSE:
        raise UnsupportedMechanismError("more than 2**21 counters are read lazily: reads='lazy'")
    asked = replace(request, events=workload, dim=counters if dense else 1)
    refusal: InvalidParameterError | None = None
    # Room for many events in a step, if the lattice has it.
    for events in (_EVENTS, 2**6, 1):
        most = 1 << max((workload.largest * events - 1).bit_length(), 24 if events > 1 else 0)
        try:
            planned = plan(replace(asked, max_value=most))
            if not dense:
                # Under a key that is thrown away: refuses, before anything is charged, what one key has no samples for.
                _core.LazyStream(planned.fitted.plan, planned.fitted.door, counters, bytes(32)).close()
            return EventPlan(workload, planned, "dense" if dense else "lazy")
        except InvalidParameterError as error:
            refusal = error
    raise refusal or InvalidParameterError("no bound of an entry fits")
