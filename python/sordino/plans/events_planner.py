"""From a count of events to a plan: how it is read, and the declared bounds of its counters."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sordino import _core
from sordino.errors import InvalidParameterError, UnsupportedMechanismError
from sordino.plans.events import EventPlan
from sordino.workloads import RunningSum
from sordino.workloads.events.graph_functions import GraphFunction

if TYPE_CHECKING:
    from collections.abc import Callable

    from sordino.mechanisms.stream.fit import StreamRequest
    from sordino.plans.stream import StreamPlan
    from sordino.workloads.events.base import EventWorkload

__all__ = ["checked_plan", "plan_events"]

_DENSE = "functions of graphs are published at every step: reads='dense'"
_MOST_DENSE = 2**21
_MOST_PUBLISHED = 2**28
# A step of several events changes a counter by up to so many times what one event does, before it is clamped.
_EVENTS = 2**12


def plan_events(
    workload: EventWorkload,
    request: StreamRequest,
    reads: str,
    plan: Callable[[StreamRequest], StreamPlan],
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
    if not workload.streamed:
        raise UnsupportedMechanismError("a LocalSurvey is planned by sordino.plan_local")
    counters = workload.coordinates
    few = counters <= _MOST_DENSE and counters * request.judged <= _MOST_PUBLISHED
    dense = reads == "dense" or counters == 1 or (reads == "auto" and few) or isinstance(workload, GraphFunction)
    if isinstance(workload, GraphFunction) and reads == "lazy":
        raise UnsupportedMechanismError(_DENSE)
    if dense and counters > _MOST_DENSE:
        raise UnsupportedMechanismError("more than 2**21 counters are read lazily: reads='lazy'")
    asked = replace(request, events=workload, dim=counters if dense else 1)
    refusal: InvalidParameterError | None = None
    # Room for many events in a step, if the lattice has it.
    for events in (_EVENTS, 2**6, 1):
        most = 1 << max((workload.largest * events - 1).bit_length(), 24 if events > 1 else 0)
        try:
            return checked_plan(workload, plan(replace(asked, max_value=most)))
        except InvalidParameterError as error:
            refusal = error
    raise refusal or InvalidParameterError("no bound of an entry fits")


def checked_plan(workload: EventWorkload, counters: StreamPlan) -> EventPlan:
    """Return the plan with these counters, refusing what could not be opened: before anything is charged.

    Raises:
        InvalidParameterError: The counters are not those of the workload, or need more samples than one key has.
        UnsupportedMechanismError: They are not published at every step, as the workload needs.
    """
    request, number = counters.request, workload.coordinates
    if not isinstance(request.workload, RunningSum) or request.length != workload.length:
        raise InvalidParameterError("events are counted by running sums of as many steps")
    if request.dim not in {number, 1}:
        raise InvalidParameterError("there must be a counter for every pattern that is counted")
    dense = request.dim == number
    if not dense and isinstance(workload, GraphFunction):
        raise UnsupportedMechanismError(_DENSE)
    if not dense:
        # Under a key that is thrown away.
        _core.LazyStream(counters.fitted.plan, counters.fitted.door, number, bytes(32)).close()
    return EventPlan(workload, counters, "dense" if dense else "lazy")
