"""Choosing a mechanism for a stream from public facts alone: `plan_stream`, `compare_stream`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args, overload

import numpy as np

from sordino._support.checks import flag, integer, one_of
from sordino.accuracy.bounds import Bound, stream_bound
from sordino.errors import DataTypeError, InvalidParameterError, UnsupportedMechanismError
from sordino.mechanisms.linear.compression import Compression
from sordino.mechanisms.linear.fit import Objective, check_request, least_error
from sordino.mechanisms.stream.catalogue import STREAM_MECHANISMS, Horizon, StreamMechanism, stream_mechanism_named
from sordino.mechanisms.stream.fit import StreamFitted, StreamRequest, fit_stream
from sordino.plans.events import EventPlan
from sordino.plans.events_planner import plan_events
from sordino.plans.histogram import (
    HistogramStreamComparison,
    HistogramStreamPlan,
    compare_histogram_stream,
    plan_histogram_stream,
)
from sordino.plans.sparse import SparseCount, SparsePlan, plan_sparse
from sordino.plans.stream import StreamPlan
from sordino.privacy.guarantees import Privacy
from sordino.privacy.units import AddRemove, Unit
from sordino.workloads import RunningHistogram, RunningSum, Workload
from sordino.workloads.bases import Basis
from sordino.workloads.events.base import EventWorkload

__all__ = ["StreamComparison", "compare_request", "compare_stream", "plan_request", "plan_stream"]

Effort = Literal["closed_form", "optimize"]

_MOST_DIM = 2**21
# Longest stream for which `auto` solves for the optimum; `two-diagonals` is within 0.5 % of it up to 1024 steps.
_AUTO_OPTIMAL = 32
_SHOWN = (1, 2**4, 2**8, 2**10, 2**16, 2**20, 2**30)


@overload
def plan_stream(  # type: ignore[overload-overlap] # a RunningHistogram is a workload with another plan
    workload: RunningHistogram,
    privacy: Privacy,
    *,
    unit: Unit | None = ...,
    horizon: Horizon | None = ...,
    mechanism: str = ...,
    objective: Objective = ...,
    max_value: int | None = ...,
    memory: int | None = ...,
    effort: Effort = ...,
    option: int | None = ...,
    compression: Compression | None = ...,
    basis: Basis | str = ...,
    pan_private: bool = ...,
) -> HistogramStreamPlan: ...
@overload
def plan_stream(  # type: ignore[overload-overlap] # as above
    workload: EventWorkload,
    privacy: Privacy,
    *,
    unit: Unit | None = ...,
    horizon: Horizon | None = ...,
    mechanism: str = ...,
    objective: Objective = ...,
    memory: int | None = ...,
    effort: Effort = ...,
    option: int | None = ...,
    reads: Literal["auto", "dense", "lazy"] = ...,
) -> EventPlan: ...
@overload
def plan_stream(  # type: ignore[overload-overlap] # as above
    workload: SparseCount,
    privacy: Privacy,
    *,
    unit: Unit | None = ...,
    mechanism: str = ...,
) -> SparsePlan: ...
@overload
def plan_stream(
    workload: Workload,
    privacy: Privacy,
    *,
    unit: Unit | None = ...,
    horizon: Horizon | None = ...,
    mechanism: str = ...,
    objective: Objective = ...,
    dim: int = ...,
    touched: int = ...,
    signed: bool = ...,
    max_value: int | None = ...,
    integral: bool = ...,
    memory: int | None = ...,
    effort: Effort = ...,
    option: int | None = ...,
) -> StreamPlan: ...
def plan_stream(
    workload: Workload,
    privacy: Privacy,
    *,
    unit: Unit | None = None,
    horizon: Horizon | None = None,
    mechanism: str = "auto",
    objective: Objective = "mean",
    dim: int = 1,
    touched: int = 1,
    signed: bool = False,
    max_value: int | None = None,
    integral: bool = True,
    memory: int | None = None,
    effort: Effort = "optimize",
    option: int | None = None,
    compression: Compression | None = None,
    basis: Basis | str = "haar",
    pan_private: bool = False,
    reads: Literal["auto", "dense", "lazy"] = "auto",
) -> StreamPlan | HistogramStreamPlan | EventPlan | SparsePlan:
    """Plan a stream: touches no data, costs nothing.

    `auto` takes the least error among the mechanisms that serve the stream; of those within 1 % the simplest. The
    choice depends on the arguments alone.

    Neighbouring streams differ by one unit. `AddRemove(k)`: k records, each of which changes one item in at most
    `touched` coordinates by at most 1 (sensitivity `k sqrt(touched)` times the column norm). `ReplaceOne(k)`: k
    records leave one item and enter the same or another (`k sqrt(2 touched)`, or `2 k sqrt(touched)` if `signed`).
    `UserLevel`: at most `max_participations` items, at least `min_separation` steps apart.

    Args:
        workload: `RunningSum`, `RunningAverage`, or a causal filter such as `ExponentialSmoothing`, `MovingAverage`,
            `SlidingWindow`, `Convolution(..., boundary="causal")`; or a `RunningHistogram`; or counts of events:
            `SyntheticGraph`, `EdgeCount`, `TriangleCount`, `StarCount`, `DegreeHistogram`, `SpanningForestCost`,
            `SubstringCounts`, `EpisodeCounts`, whose units are edges, vertices or letters; or a `SparseCount`.
        privacy: The guarantee of the whole stream.
        unit: What one protected thing can change; `AddRemove(1)` if None.
        horizon: 'hard': the stream ends after `length` steps; the default if the workload has a length. 'soft': made
            for `length` steps, private for ever, with a larger error beyond. 'unbounded': good at every step, private
            for ever; the default without a length.
        mechanism: 'auto', or a name from `sordino.mechanisms.stream.catalogue`.
        objective: 'mean' minimises `rmse`, 'max' minimises `max_stderr`.
        dim: Coordinates of an item: a live histogram of `dim` cells.
        touched: Coordinates that one record changes, at most.
        signed: Whether the entries of a record may be negative.
        max_value: Public bound on the magnitude of an entry; entries beyond are clamped. The largest power of two up
            to 2**24 that costs nothing if None.
        integral: Whether entries are integers; otherwise they are rounded to a fine public grid.
        memory: Most bytes of noise state a coordinate, for `auto`.
        effort: 'closed_form' keeps `auto` from solving for the optimum of a short stream.
        option: Degree of `blt`, or branching of `subtraction-tree`.
        compression: `RunningHistogram` only: keep a sketch, and recover the table when asked. Without it every cell is
            counted, unless the `memory` (of the whole state, here) is too small for that.
        basis: `RunningHistogram` only: in which estimates from noisy cells look for what is not noise.
        pan_private: `RunningHistogram` only: the state may be looked at once, by an intruder who then has what was
            published too; the same budget covers it, with twice the variance of a binary tree. Otherwise the state is
            as secret as the data.
        reads: Counts of events only. 'dense': every counter is published at every step. 'lazy': what would be published
            is computed when it is read. 'auto': dense up to 2**21 counters and 2**28 counters times steps.

    Returns:
        The plan: a `HistogramStreamPlan` for a `RunningHistogram`, an `EventPlan` for counts of events, a `SparsePlan`
        for a `SparseCount`.

    Raises:
        DataTypeError: An argument is of the wrong type.
        InvalidParameterError: An argument is out of range.
        UnsupportedMechanismError: No mechanism, or not the one named, serves this stream.
    """
    dim, touched = _coordinates(dim, touched, signed)
    flag("integral", integral)
    flag("pan_private", pan_private)
    reads = one_of("reads", reads, ("auto", "dense", "lazy"))
    if memory is not None:
        memory = integer("memory", memory, least=int(isinstance(workload, RunningHistogram)))
    if isinstance(workload, RunningHistogram):
        options = {
            "privacy": privacy,
            "unit": unit,
            "horizon": horizon,
            "objective": objective,
            "dim": dim,
            "touched": touched,
            "signed": signed,
            "max_value": max_value,
            "integral": integral,
            "effort": effort,
            "option": option,
        }
        return plan_histogram_stream(
            workload,
            plan_stream,
            mechanism=mechanism,
            compression=compression,
            basis=basis,
            memory=memory,
            pan_private=pan_private,
            options=options,
        )
    if compression is not None or pan_private:
        raise InvalidParameterError("compression and pan_private belong to a RunningHistogram")
    plain = (dim, touched, signed, integral) == (1, 1, False, True) and max_value is None
    if isinstance(workload, EventWorkload | SparseCount) and not plain:
        raise InvalidParameterError("counts of events say themselves what an item changes")
    if isinstance(workload, SparseCount):
        plan_counters = partial(
            plan_stream, horizon=horizon, objective=objective, memory=memory, effort=effort, option=option
        )
        return plan_sparse(workload, plan_counters, privacy, unit, mechanism)  # type: ignore[arg-type]
    if reads != "auto" and not isinstance(workload, EventWorkload):
        raise InvalidParameterError("reads belongs to counts of events")
    request = _checked(
        RunningSum(workload.length) if isinstance(workload, EventWorkload) else workload,
        privacy,
        unit=unit,
        horizon=horizon,
        objective=objective,
        dim=dim,
        touched=touched,
        signed=signed,
        max_value=max_value,
        integral=integral,
    )
    if isinstance(workload, EventWorkload):
        return plan_events(
            workload, request, reads, lambda asked: plan_request(asked, mechanism, memory, effort, option)
        )
    return plan_request(request, mechanism, memory, effort, option)


def _coordinates(dim: object, touched: object, signed: object) -> tuple[int, int]:
    """Return the coordinates of an item, and how many of them it changes, if all three are in range."""
    flag("signed", signed)
    checked = integer("dim", dim, least=1, most=_MOST_DIM)
    return checked, integer("touched", touched, least=1, most=checked)


def plan_request(
    request: StreamRequest,
    mechanism: str,
    memory: int | None = None,
    effort: Effort = "optimize",
    option: int | None = None,
) -> StreamPlan:
    """Return the mechanism that was asked for, or the best that serves."""
    privacy, objective = request.privacy, request.objective
    if not isinstance(mechanism, str):
        raise DataTypeError("mechanism must be a name")
    one_of("effort", effort, get_args(Effort))
    if mechanism != "auto":
        named = stream_mechanism_named(mechanism, privacy)
        return StreamPlan(request=request, requested=mechanism, fitted=fit_stream(request, named, option))
    if option is not None:
        raise InvalidParameterError("an option belongs to a mechanism: name it")
    fitted, refused = _fit_all(request, _automatic(request, effort))
    within = [f for f in fitted if memory is None or f.plan.state_bytes <= memory]
    if not within:
        why = "; ".join(sorted(set(refused.values()))) or "none keeps within the memory"
        raise UnsupportedMechanismError(f"no mechanism serves this stream and privacy: {why}")
    return StreamPlan(request=request, requested="auto", fitted=least_error(within, objective))


def _checked(
    workload: Workload,
    privacy: Privacy,
    *,
    unit: Unit | None,
    horizon: Horizon | None,
    objective: Objective,
    dim: int,
    touched: int,
    signed: bool,
    max_value: int | None,
    integral: bool,
) -> StreamRequest:
    max_value = check_request(workload, privacy, unit, objective, max_value, integral)
    length = getattr(workload, "length", None)
    if horizon is None:
        horizon = "unbounded" if length is None else "hard"
    one_of("horizon", horizon, get_args(Horizon))
    if horizon != "unbounded" and length is None:
        raise InvalidParameterError(f"a {horizon} horizon needs a length, such as RunningSum(length=2**20)")
    return StreamRequest(
        workload=workload,
        privacy=privacy,
        unit=AddRemove(1) if unit is None else unit,
        horizon=horizon,
        objective=objective,
        max_value=max_value,
        integral=integral,
        dim=dim,
        touched=touched,
        signed=signed,
    )


def _automatic(request: StreamRequest, effort: Effort) -> list[StreamMechanism]:
    short = effort == "optimize" and request.length is not None and request.length <= _AUTO_OPTIMAL
    return [m for m in STREAM_MECHANISMS if m.automatic or (m.strategy == "optimal" and short)]


def _fit_all(
    request: StreamRequest, mechanisms: Iterable[StreamMechanism]
) -> tuple[list[StreamFitted], dict[str, str]]:
    """Fit the mechanisms that serve; say of the others that should why they do not."""
    fitted: list[StreamFitted] = []
    refused: dict[str, str] = {}
    for mechanism in mechanisms:
        if not (mechanism.allows(request.privacy) and mechanism.serves(request.workload, request.horizon)):
            continue
        try:
            fitted.append(fit_stream(request, mechanism))
        except (UnsupportedMechanismError, InvalidParameterError) as error:
            refused[mechanism.name] = str(error)
    return fitted, refused


@dataclass(frozen=True)
class StreamComparison:
    """Mechanisms of a stream side by side, best first, before anything is spent.

    Attributes:
        rows: One for each mechanism: name, rmse, max_stderr, std (at `steps`), memory and operations a coordinate,
            optimality or None.
        steps: Where `std` is given.
        gaussian_bound: Least rmse of any Gaussian mechanism, None if none is known.
        chosen: What `auto` takes.
        refused: Mechanisms that do not serve, with the reason.
        request: What was asked for.
        fitted: The mechanisms of `rows`, fitted.
    """

    rows: tuple[dict[str, Any], ...]
    steps: tuple[int, ...]
    gaussian_bound: Bound | None
    chosen: str
    refused: dict[str, str]
    request: StreamRequest
    fitted: tuple[StreamFitted, ...] = field(repr=False)

    def __str__(self) -> str:
        columns = "".join(f"{_power(t):>10}" for t in self.steps)
        lines = [f"{'mechanism':<32}{'rmse':>10}{'max':>10}{columns}{'bytes':>10}{'ops':>7}  horizon"]
        for row in self.rows:
            mark = " *" if row["mechanism"] == self.chosen else ""
            deviations = "".join(f"{d:>10.4g}" for d in row["std"])
            lines.append(
                f"{row['mechanism'] + mark:<32}{row['rmse']:>10.4g}{row['max_stderr']:>10.4g}{deviations}"
                f"{row['memory']:>10}{row['operations']:>7.0f}  {row['horizon']}"
            )
        if self.gaussian_bound is not None:
            lines.append(f"least rmse of any Gaussian mechanism: {self.gaussian_bound.value:.6g}")
        return "\n".join(lines)

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw the standard error of every mechanism against the step.

        Returns:
            The matplotlib figure.

        Raises:
            MissingDependencyError: matplotlib is not installed.
        """
        from sordino.plots.streams import plot_stream_comparison  # noqa: PLC0415 - optional extra

        return plot_stream_comparison(self, path)


def _power(step: int) -> str:
    exponent = step.bit_length() - 1
    return f"t=2^{exponent}" if step > 16 and step == 1 << exponent else f"t={step}"


@overload
def compare_stream(  # type: ignore[overload-overlap] # as for plan_stream
    workload: RunningHistogram,
    privacy: Privacy,
    *,
    unit: Unit | None = ...,
    horizon: Horizon | None = ...,
    max_value: int | None = ...,
    memory: int | None = ...,
    compression: Compression | None = ...,
) -> HistogramStreamComparison: ...
@overload
def compare_stream(
    workload: EventWorkload,
    privacy: Privacy,
    *,
    unit: Unit | None = ...,
    horizon: Horizon | None = ...,
    objective: Objective = ...,
) -> StreamComparison: ...
@overload
def compare_stream(
    workload: Workload,
    privacy: Privacy,
    *,
    unit: Unit | None = ...,
    horizon: Horizon | None = ...,
    objective: Objective = ...,
    dim: int = ...,
    touched: int = ...,
    signed: bool = ...,
    max_value: int | None = ...,
    integral: bool = ...,
) -> StreamComparison: ...
def compare_stream(
    workload: Workload,
    privacy: Privacy,
    *,
    unit: Unit | None = None,
    horizon: Horizon | None = None,
    objective: Objective = "mean",
    dim: int = 1,
    touched: int = 1,
    signed: bool = False,
    max_value: int | None = None,
    integral: bool = True,
    memory: int | None = None,
    compression: Compression | None = None,
) -> StreamComparison | HistogramStreamComparison:
    """Return the expected errors, memory and time of every mechanism that serves a stream, best first.

    Args:
        workload: As in `plan_stream`, like the other arguments.
        privacy: The guarantee of the whole stream.
        unit: What one protected thing can change.
        horizon: What happens at the length.
        objective: What `auto` would minimise, and the order of the rows.
        dim: Coordinates of an item.
        touched: Coordinates that one record changes.
        signed: Whether entries of a record may be negative.
        max_value: Public bound on an entry.
        integral: Whether entries are integers.
        memory: `RunningHistogram` only: what `auto` has room for.
        compression: `RunningHistogram` only: the sketch that is shown beside the counters.

    Raises:
        DataTypeError: An argument is of the wrong type.
        InvalidParameterError: An argument is out of range.
        UnsupportedMechanismError: No mechanism serves this stream.
    """
    if isinstance(workload, EventWorkload):
        return plan_stream(workload, privacy, unit=unit, horizon=horizon, objective=objective).compare()
    if isinstance(workload, RunningHistogram):

        def planned(
            mechanism: str = "auto", compression: Compression | None = None, memory: int | None = None
        ) -> HistogramStreamPlan:
            return plan_stream(
                workload,
                privacy,
                unit=unit,
                horizon=horizon,
                mechanism=mechanism,
                max_value=max_value,
                memory=memory,
                compression=compression,
            )

        return compare_histogram_stream(workload, planned, compression, memory)
    dim, touched = _coordinates(dim, touched, signed)
    return compare_request(
        _checked(
            workload,
            privacy,
            unit=unit,
            horizon=horizon,
            objective=objective,
            dim=dim,
            touched=touched,
            signed=signed,
            max_value=max_value,
            integral=integral,
        )
    )


def compare_request(request: StreamRequest) -> StreamComparison:
    """Return the comparison for a checked request."""
    # Solving for the optimum of many steps takes seconds: it is shown for short streams.
    shown = [m for m in STREAM_MECHANISMS if m.strategy != "optimal" or (request.length or 2**40) <= 256]
    scale = 1.0 if request.events is None else request.events.counted_unit
    options, refused = _fit_all(request, shown)
    if not options:
        raise UnsupportedMechanismError("no mechanism serves this stream and privacy")
    names = {m.name for m in _automatic(request, "optimize")}
    chosen = least_error([f for f in options if f.mechanism.name in names], request.objective).mechanism.name
    last = request.judged if request.length is not None else 2**40
    steps = tuple(sorted({*(t for t in _SHOWN if t < last), last}))
    bound = None
    if request.events is None:
        bound = stream_bound(request.workload, request.privacy, request.unit, request.touched)
    ordered = tuple(sorted(options, key=lambda fitted: fitted.error(request.objective)))
    rows: tuple[dict[str, Any], ...] = tuple(
        {
            "mechanism": fitted.mechanism.name,
            "rmse": fitted.rmse * scale,
            "max_stderr": fitted.max_stderr * scale,
            "std": tuple((fitted.stderr(np.array(steps, dtype=np.uint64)) * scale).tolist()),
            "memory": fitted.plan.state_bytes,
            "operations": fitted.plan.operations,
            "horizon": request.horizon,
            "optimality": (
                fitted.error(request.objective) / bound.value
                if bound is not None and bound.value > 0.0 and fitted.mechanism.law == "gaussian"
                else None
            ),
        }
        for fitted in ordered
    )
    return StreamComparison(rows, steps, bound, chosen, refused, request, ordered)
