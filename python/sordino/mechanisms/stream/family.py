"""Streams of numbers, and of events: which mechanism is taken, and which are shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from sordino import _core
from sordino.errors import InvalidParameterError, PlanFileError, UnsupportedMechanismError
from sordino.mechanisms.catalogue import named, recorded
from sordino.mechanisms.family import Column, Family, Progress, Shown, none_serves
from sordino.mechanisms.fits import Request, fit_all, least_error
from sordino.mechanisms.stream.catalogue import STREAM_MECHANISMS, StreamMechanism
from sordino.mechanisms.stream.fit import StreamFit, continual, error_bound, events_of, fit_stream, judged
from sordino.workloads import RunningAverage
from sordino.workloads.base import Workload
from sordino.workloads.continual import Continual
from sordino.workloads.events.graph_functions import GraphFunction

__all__ = ["STREAM", "best_stream"]

# Longest stream for which `auto` solves for the optimum densely; `two-diagonals` is within 0.5 % of it beyond.
_AUTO_OPTIMAL = 32
# Solving for the optimum of many steps takes seconds: it is shown for short streams.
_SHOWN_OPTIMAL = 256
_SHOWN = (1, 2**4, 2**8, 2**10, 2**16, 2**20, 2**30)
_FOREVER = 2**40

_DENSE = "functions of graphs are published at every step: reads='dense'"
_MOST_DENSE = 2**21
_MOST_PUBLISHED = 2**28
# A step of several events changes a counter by up to so many times what one event does, before it is clamped.
_EVENTS = 2**12


class _Stream(Family):
    name: ClassVar[str] = "stream"
    options: ClassVar[frozenset[str]] = frozenset(
        ("objective", "max_value", "integral", "memory", "effort", "degree", "noise")
    )
    columns: ClassVar[tuple[Column, ...]] = (
        Column("rmse", 10, ".4g"),
        Column("max_stderr", 10, ".4g", "max"),
        Column("std", 10, ".4g"),
        Column("memory", 10, "", "bytes"),
        Column("operations", 7, ".0f", "ops"),
        Column("horizon", 11, ""),
    )

    def takes(self, workload: Workload) -> frozenset[str]:
        # Counts of events say themselves what an item changes.
        events = isinstance(workload, Continual) and workload.workload.of_events
        return self.options - {"max_value", "integral"} if events else self.options

    def check(self, request: Request) -> Request:
        events = events_of(request)
        if events is not None and not events.streamed:
            raise UnsupportedMechanismError("a LocalSurvey is planned as it is: sordino.plan(survey, privacy)")
        # Vectors of a norm are real numbers.
        return request if continual(request).record_norm is None else replace(request, integral=False)

    def choose(self, request: Request, progress: Progress | None = None) -> StreamFit:
        return best_stream(request) if events_of(request) is None else _best_events(request)

    def candidates(self, request: Request) -> list[StreamFit]:
        if events_of(request) is not None:
            request = _best_events(request).request
        return _candidates(request)

    def shown(self, request: Request, progress: Progress | None = None) -> Shown:
        if events_of(request) is not None:
            request = replace(_best_events(replace(request, mechanism="auto")).request, mechanism=request.mechanism)
        length = continual(request).length
        short = [m for m in STREAM_MECHANISMS if m.strategy != "optimal" or (length or _FOREVER) <= _SHOWN_OPTIMAL]
        fits, refused = _fits(request, short)
        if not fits:
            raise none_serves(refused, "stream")
        automatic = {m.name for m in _automatic(request)}
        chosen = least_error([fit for fit in fits if fit.name in automatic], request.objective)
        last = _FOREVER if length is None else judged(request)
        return Shown(
            sorted(fits, key=lambda fit: fit.error(request.objective)),
            chosen.name,
            refused,
            error_bound(request),
            tuple(sorted({*(t for t in _SHOWN if t < last), last})),
        )

    def row(self, fit: StreamFit, shown: Shown) -> dict[str, Any]:
        return {
            "rmse": fit.rmse,
            "max_stderr": fit.max_stderr,
            "std": tuple(fit.std(shown.steps).tolist()),
            "memory": fit.strategy.state_bytes,
            "operations": fit.operations,
            "horizon": continual(fit.request).horizon,
            "optimality": fit.over(shown.bound),
        }

    def refit(self, request: Request, record: Mapping[str, Any]) -> StreamFit:
        mechanism = recorded(STREAM_MECHANISMS, record["fitted"])
        fit = fit_stream(request, mechanism)
        if [record["doors"][0]["grid"]] != [door.grid for door in fit.doors]:
            raise PlanFileError("the plan's lattice is not what its privacy needs")
        if record["parameters"] != fit.details()["parameters"]:
            raise PlanFileError("this machine or version finds other parameters for the mechanism: plan anew, here")
        return fit if fit.events is None else _openable(fit)


STREAM = _Stream()


def _automatic(request: Request) -> list[StreamMechanism]:
    length = continual(request).length
    searched = set()
    if request.effort == "optimize" and length is not None:
        if length <= _AUTO_OPTIMAL:
            searched.add("optimal")
        # For sums `two-diagonals` is within 0.4 % of it; their factor is not that of averages.
        if isinstance(continual(request).filter, RunningAverage) and request.objective == "mean":
            searched.add("time-varying-blt")
    return [m for m in STREAM_MECHANISMS if m.automatic or m.strategy in searched]


def _fits(request: Request, mechanisms: list[StreamMechanism]) -> tuple[list[StreamFit], dict[str, str]]:
    asked = continual(request)
    serving = [m for m in mechanisms if m.serves(asked.filter, asked.horizon)]
    return fit_all(serving, request, lambda mechanism: fit_stream(request, mechanism))


def _candidates(request: Request) -> list[StreamFit]:
    """Return every mechanism that `auto` may take, fitted, the simpler ones first."""
    if request.degree is not None:
        raise InvalidParameterError("a degree belongs to a mechanism: name it")
    fits, refused = _fits(request, _automatic(request))
    within = [fit for fit in fits if request.memory is None or fit.strategy.state_bytes <= request.memory]
    if not within:
        raise none_serves(refused or {"memory": "none keeps within the memory"}, "stream")
    return within


def best_stream(request: Request) -> StreamFit:
    """Return the mechanism that was asked for, or the best that serves."""
    if request.mechanism != "auto":
        return fit_stream(request, named(STREAM_MECHANISMS, request.mechanism, request.privacy, request.noise))
    return least_error(_candidates(request), request.objective)


def _best_events(request: Request) -> StreamFit:
    """Plan the counters of a workload of events: how they are read, and the declared bounds of their entries.

    Raises:
        InvalidParameterError: An argument is out of range.
        UnsupportedMechanismError: No mechanism serves, or there are too many counters for what was asked.
    """
    asked, workload = continual(request), events_of(request)
    assert workload is not None
    counters = workload.coordinates
    few = counters <= _MOST_DENSE and counters * judged(request) <= _MOST_PUBLISHED
    function = isinstance(workload, GraphFunction)
    dense = asked.reads == "dense" or counters == 1 or (asked.reads == "auto" and few) or function
    if function and asked.reads == "lazy":
        raise UnsupportedMechanismError(_DENSE)
    if dense and counters > _MOST_DENSE:
        raise UnsupportedMechanismError("more than 2**21 counters are read lazily: reads='lazy'")
    request = replace(request, workload=asked.replaced(reads="dense" if dense else "lazy"))
    refusal: InvalidParameterError | None = None
    # Room for many events in a step, if the lattice has it.
    for events in (_EVENTS, 2**6, 1):
        most = 1 << max((workload.largest * events - 1).bit_length(), 24 if events > 1 else 0)
        try:
            return _openable(best_stream(replace(request, max_value=most)))
        except InvalidParameterError as error:
            refusal = error
    raise refusal or InvalidParameterError("no bound of an entry fits")


def _openable(fit: StreamFit) -> StreamFit:
    """Return the counters of events, refusing what could not be opened: before anything is charged.

    Raises:
        InvalidParameterError: They need more samples than one key has.
        UnsupportedMechanismError: They are not published at every step, as the workload needs.
    """
    if fit.events is not None and not fit.events.streamed:
        raise UnsupportedMechanismError("a LocalSurvey opens no stream")
    if fit.lazy and isinstance(fit.events, GraphFunction):
        raise UnsupportedMechanismError(_DENSE)
    if fit.lazy:
        # Under a key that is thrown away.
        _core.LazyStream(fit.strategy, fit.door, fit.coordinates, bytes(32)).close()
    return fit
