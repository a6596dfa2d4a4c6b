"""A stream before it is opened: mechanism, noise, expected error at every step, cost."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sordino._support.checks import flag, integer, integers
from sordino.accuracy.bounds import Bound, stream_bound
from sordino.accuracy.half_widths import equal_laplace_half_width, gaussian_half_width, laplace_sum_half_width
from sordino.errors import (
    HorizonError,
    PlanFileError,
    ShapeError,
)
from sordino.mechanisms.linear.fit import Domain
from sordino.mechanisms.stream.catalogue import STREAM_MECHANISMS
from sordino.mechanisms.stream.fit import StreamFitted, StreamRequest, fit_stream
from sordino.plans.records import SCHEMA, guarded, rebuilt, record_digest, write_record
from sordino.privacy.costs import Cost, cost_from_json
from sordino.privacy.guarantees import Privacy, privacy_from_json
from sordino.privacy.ledger import Ledger, opened
from sordino.privacy.units import Unit, group_of, unit_from_json
from sordino.privacy.wording import promise_of
from sordino.releases.arrays import read_items
from sordino.releases.release import Interval
from sordino.streams.counter import Stream, open_stream
from sordino.workloads import Filter, Workload, workload_from_spec
from sordino.workloads.base import MAX_STEPS, Array

if TYPE_CHECKING:
    from sordino.plans.stream_planner import StreamComparison
    from sordino.storage.steps import StepStore
    from sordino.workloads.events.base import EventWorkload

__all__ = ["StreamPlan", "StreamRelease"]


@dataclass(frozen=True, eq=False)
class StreamRelease:
    """Published answers of a whole stream.

    Attributes:
        plan: How they were made.
        values: Shape (n,), or (n, dim).
        private: False only under `sordino.testing.deterministic_noise`.
        accounted: Whether a ledger was charged.
    """

    plan: StreamPlan
    values: Array = field(repr=False)
    private: bool = True
    accounted: bool = False

    @cached_property
    def stderr(self) -> Array:
        """Standard deviation of each answer, in the shape of `values`."""
        deviations = self.plan.std(np.arange(1, len(self.values) + 1, dtype=np.uint64))
        return deviations if self.plan.dim == 1 else np.repeat(deviations[:, None], self.plan.dim, axis=1)

    def interval(self, level: float, *, simultaneous: bool = False) -> Interval:
        """Return confidence intervals around `values`.

        Args:
            level: Strictly between 0 and 1.
            simultaneous: Whether all of them shall hold together with this probability.

        Raises:
            InvalidParameterError: The level is out of range.
        """
        steps = np.arange(1, len(self.values) + 1, dtype=np.uint64)
        width = self.plan.half_width(steps, level, self.values.size if flag("simultaneous", simultaneous) else 1)
        if self.plan.dim > 1:
            width = width[:, None]
        return Interval(self.values - width, self.values + width, level, simultaneous)


@dataclass(frozen=True, eq=False)
class StreamPlan:
    """How a stream will be answered: made by `sordino.plan_stream`, costs nothing.

    Attributes:
        request: What was asked for.
        requested: Mechanism as asked for: a name or 'auto'.
        fitted: Mechanism, lattice and noise.
    """

    request: StreamRequest
    requested: str
    fitted: StreamFitted = field(repr=False)

    @property
    def workload(self) -> Workload:
        """What is answered at every step."""
        return self.request.workload

    @property
    def privacy(self) -> Privacy:
        """What the whole stream guarantees."""
        return self.request.privacy

    @property
    def unit(self) -> Unit:
        """For whom: what one protected thing can change."""
        return self.request.unit

    @property
    def dim(self) -> int:
        """Coordinates of an item."""
        return self.request.dim

    @property
    def integral(self) -> bool:
        """Whether entries are declared integers."""
        return self.request.integral

    @property
    def mechanism(self) -> str:
        """Full name of the mechanism, such as 'blt-gaussian'."""
        return self.fitted.mechanism.name

    @property
    def domain(self) -> Domain:
        """Declared bounds of an entry: it is clamped to them."""
        return self.fitted.domain

    @property
    def cost(self) -> Cost:
        """What the whole stream costs: charged once, when it is opened."""
        return self.fitted.cost

    @property
    def horizon(self) -> str:
        """'hard': ends after `steps`; 'soft': made for the length, private for ever; 'unbounded'."""
        return self.request.horizon

    @property
    def steps(self) -> int:
        """Steps that may be published."""
        return self.fitted.plan.steps

    @property
    def noise_multiplier(self) -> float | None:
        """Gaussian only: standard deviation over l2 sensitivity as calibrated, None for Laplace noise."""
        return self.fitted.ratio if self.fitted.mechanism.law == "gaussian" else None

    @property
    def sensitivity(self) -> dict[str, float]:
        """Upper bounds of what neighbours differ by in the measured norm, by cause."""
        return dict(zip(("ideal", "encoding", "rounding"), self.fitted.door.sensitivity, strict=True))

    @property
    def inflation(self) -> float:
        """Relative growth of the noise by lattice and rounding."""
        return self.fitted.inflation

    def std(self, steps: Sequence[int] | Array | np.ndarray[Any, Any]) -> Array:
        """Return the standard deviation of the answer at each of these steps, from 1.

        Raises:
            DataTypeError: No integers.
            ShapeError: Not one-dimensional.
            InvalidParameterError: A step is below 1 or beyond the horizon.
        """
        return self.fitted.stderr(self._steps(steps).astype(np.uint64))

    def _steps(self, steps: object) -> np.ndarray[Any, np.dtype[np.int64]]:
        return integers("steps", steps, least=1, most=MAX_STEPS)

    def half_width(self, steps: Sequence[int] | np.ndarray[Any, Any], level: float, answers: int = 1) -> Array:
        """Return half widths of intervals at these steps, of which `answers` must hold together.

        Exact for Gaussian noise; rigorous upper bounds for sums of Laplace variates.

        Raises:
            InvalidParameterError: The level or a step is out of range.
        """
        deviations = self.std(steps)
        if self.fitted.mechanism.law == "gaussian":
            return np.asarray(gaussian_half_width(deviations, level, answers))
        scale = self.fitted.door.noise
        known: dict[tuple[tuple[float, ...], int], float] = {}

        def width(step: int, deviation: float) -> float:
            weights, nodes = self._laplace_weights(step, deviation / scale)
            if (weights, nodes) not in known:
                known[weights, nodes] = (
                    scale * laplace_sum_half_width(np.array(weights), level, answers)
                    if nodes == 1
                    else equal_laplace_half_width(scale * weights[0], nodes, level, answers)
                )
            return known[weights, nodes]

        return np.array([width(int(t), float(d)) for t, d in zip(self._steps(steps), deviations, strict=True)])

    def _laplace_weights(self, step: int, deviation: float) -> tuple[tuple[float, ...], int]:
        """Return the weights of the Laplace variates in an answer, or one weight and how many have it.

        Taps for noise on items; as many equal nodes of a tree as the deviation says.
        """
        divisor = float(step) if self.workload.kind == "running_average" else 1.0
        if self.fitted.mechanism.strategy == "identity" and isinstance(self.workload, Filter):
            taps = _first_taps(self.workload, step)
            if len(taps):
                return tuple(np.abs(taps).tolist()), 1
        nodes = max(round((deviation * divisor) ** 2 / 2.0), 1)
        return (1.0 / divisor,), nodes

    @property
    def rmse(self) -> float:
        """Root mean squared error over the steps of the length, or the first 2**20 if there is none.

        Beyond 2**16 steps the mean is taken over a fixed sample of them.
        """
        return self.fitted.rmse

    @property
    def max_stderr(self) -> float:
        """Largest standard deviation over the same steps."""
        return self.fitted.max_stderr

    @property
    def memory(self) -> int:
        """Bytes of noise state, all coordinates, at the last step of the length."""
        return self.fitted.plan.state_bytes * self.dim

    @property
    def operations(self) -> float:
        """Multiplications and additions of the noise a step and coordinate, amortised, besides drawing it."""
        return self.fitted.plan.operations

    @cached_property
    def gaussian_bound(self) -> Bound | None:
        """Least error of any mechanism with Gaussian noise for this length, None if no bound is known.

        For `optimal` the certified dual bound on what it minimises; else a bound on the rmse.
        """
        if self.request.events is not None:
            return None
        bound = stream_bound(self.workload, self.privacy, self.unit, self.request.touched)
        certified = self.fitted.plan.certificate
        if certified is None or bound is None:
            return bound
        size = self.unit.least_norm(self.request.judged) * math.sqrt(self.request.touched)
        what = "rmse" if self.request.objective == "mean" else "largest standard error"
        return replace(
            bound, name=f"dual bound on the {what}", value=certified * self.fitted.ratio * size * (1.0 - 1e-11)
        )

    @property
    def optimality(self) -> float | None:
        """Error over `gaussian_bound` for Gaussian mechanisms, None for others."""
        bound = self.gaussian_bound
        if bound is None or self.fitted.mechanism.law != "gaussian" or bound.value <= 0.0:
            return None
        return self.fitted.error(self.request.objective) / bound.value

    @property
    def promise(self) -> str:
        """The guarantee for one unit, without the unit."""
        return promise_of(self.cost, 1, self.privacy)

    def guarantee(self, records: int | None = None) -> str:
        """Return the guarantee of the whole stream in one plain sentence, for a group of records if given.

        Raises:
            DataTypeError: `records` is no integer.
            InvalidParameterError: `records` is not from 1 to 2**63.
        """
        if records is None:
            return f"{self.unit.protected()} is protected by {self.promise}, over all steps together."
        count = group_of(records)
        promise = promise_of(self.cost, self.unit.units_in(count), self.privacy)
        return f"Any {count} single records together are protected by {promise} (unit: {self.unit.label})."

    def open(
        self, ledger: Ledger | None = None, *, request_id: str | None = None, store: StepStore | None = None
    ) -> Stream:
        """Open a stream: the budget of all its steps is charged now.

        Args:
            ledger: Where the cost is charged; None leaves the stream unaccounted.
            request_id: Name of the request, charged at most once.
            store: Where published steps are kept before they are returned; needed for `step_id` and checkpoints.

        Raises:
            DataTypeError: The ledger is no ledger.
            InvalidParameterError: Noise is deterministic and a ledger is given.
            BudgetExceededError: The ledger's total would be exceeded.
            UnsupportedCostError: The ledger cannot count this event.
            DuplicateRequestError: The request was charged before.
            StepStoreError: The store is in use, or belongs to another stream.
            EntropyError: The operating system gives no randomness; the budget stays charged.
        """
        return opened(ledger, request_id, self.cost, self.unit.label, lambda key: open_stream(self, store, key))

    def release(self, items: object, *, ledger: Ledger | None = None, request_id: str | None = None) -> StreamRelease:
        """Publish a whole stream at once, by the same recursion.

        Args:
            items: Shape (n,), or (n, dim), at most `steps` steps.
            ledger: As in `open`.
            request_id: As in `open`.

        Raises:
            ShapeError: Another shape.
            HorizonError: More steps than the horizon has.
            SordinoError: As `open` and `Stream.update`.
        """
        rows, shape = read_items(items, self.dim, self.integral, self.unit)
        if len(shape) != (1 if self.dim == 1 else 2) or shape[0] == 0:
            raise ShapeError("a whole stream has one row a step, and at least one step")
        if shape[0] > self.steps:
            raise HorizonError(f"the stream has {self.steps} steps, fewer than the input; nothing was released")
        with self.open(ledger, request_id=request_id) as stream:
            values = stream.update(rows.reshape(shape))
        return StreamRelease(self, values, private=stream.private, accounted=stream.accounted)

    def record(self) -> dict[str, Any]:
        """Return the plan as a JSON-like record."""
        spec = {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in self.workload.spec().items()
        }
        door, request = self.fitted.door, self.request
        events = request.events
        counted = {} if events is None else {"events": {"kind": events.kind, "spec": events.spec()}}
        return {
            "schema": SCHEMA,
            "stream": True,
            **counted,
            "workload": {"kind": self.workload.kind, "spec": spec},
            "privacy": self.privacy.to_json(),
            "unit": self.unit.to_json(),
            "horizon": request.horizon,
            "objective": request.objective,
            "dim": request.dim,
            "touched": request.touched,
            "signed": request.signed,
            "domain": {
                "max_value": self.domain.max_value,
                "fraction_bits": self.domain.fraction_bits,
                "integral": request.integral,
            },
            "requested": self.requested,
            "mechanism": self.mechanism,
            "option": self.fitted.option,
            "parameters": hashlib.sha256(self.fitted.plan.parameters()).hexdigest(),
            "noise_ratio": self.fitted.ratio,
            "door": {"grid": door.grid, "quarter_units": door.quarter_units},
            "cost": self.cost.to_json(),
        }

    @property
    def digest(self) -> str:
        """SHA-256 of the record: what two equal plans have in common."""
        return record_digest(self.record())

    def save(self, path: str | Path) -> Path:
        """Write the plan as JSON.

        Raises:
            InputFileError: The file cannot be written.
        """
        return write_record(self.record(), path)

    @staticmethod
    def load(path: str | Path) -> StreamPlan:
        """Read a plan and verify it: the noise is fitted again, and a plan that stores less is refused.

        Raises:
            InputFileError: The file cannot be read.
            PlanFileError: The file is no plan of a stream, was altered, or understates noise or cost.
        """
        return rebuilt(path, _rebuild)

    @staticmethod
    def from_record(record: object) -> StreamPlan:
        """Rebuild a plan from its record and verify it.

        Raises:
            PlanFileError: The record is malformed, or understates noise or cost.
        """
        return guarded(lambda: _rebuild(record))

    def compare(self) -> StreamComparison:
        """Return `sordino.compare_stream` for the same request."""
        from sordino.plans.stream_planner import compare_request  # noqa: PLC0415 - it makes plans

        return compare_request(self.request)

    def explain(self) -> str:
        """Return what will happen and why, in a few lines of text."""
        fitted, request = self.fitted, self.request
        kind = "Gaussian" if fitted.mechanism.law == "gaussian" else "Laplace"
        chosen = "chosen by auto" if self.requested == "auto" else "as asked"
        judged = f"over {'the first ' if self.request.length is None else ''}{request.judged} steps"
        lines = [
            f"{self.workload!r}, {self.dim} coordinate{'s' if self.dim > 1 else ''}",
            f"mechanism      {self.mechanism}, {chosen}",
            f"guarantee      {self.guarantee()}",
            f"horizon        {self._horizon_words()}",
            f"noise          {kind} on the lattice 2^{fitted.door.grid}, inflation by rounding {self.inflation:.2g}",
            f"input          entries clamped to [-{self.domain.max_value}, {self.domain.max_value}], "
            + ("integers" if self.integral else f"rounded to 2^-{self.domain.fraction_bits}"),
            f"error          rmse {self.rmse:.6g}, largest standard error {self.max_stderr:.6g}, {judged}",
            f"cost           {self.memory} bytes of state, {self.operations:.0f} operations a step and coordinate",
        ]
        bound = self.gaussian_bound
        if self.optimality is not None and bound is not None:
            lines.append(f"bound          {bound.value:.6g} ({bound.name}; {bound.mechanisms})")
            lines.append(f"optimality     at most {self.optimality:.6g} times the least of any Gaussian mechanism")
        return "\n".join(lines)

    def _horizon_words(self) -> str:
        length = self.request.length
        if self.horizon == "hard":
            return f"hard: {self.steps} steps, the next is refused"
        if self.horizon == "unbounded" or length is None:
            return "unbounded: private for ever (2^40 steps)"
        factors = [f for f in (2, 4, 16) if f * length <= self.steps]
        later = self.std([f * length for f in factors])
        grown = ", ".join(f"{d:.6g} at {f}n" for f, d in zip(factors, later, strict=True))
        return f"soft: best for n = {length} steps, private for ever; standard error {grown}"

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw the standard error against the step.

        Returns:
            The matplotlib figure.

        Raises:
            MissingDependencyError: matplotlib is not installed.
        """
        from sordino.plots.streams import plot_stream_plan  # noqa: PLC0415 - optional extra

        return plot_stream_plan(self, path)

    def __repr__(self) -> str:
        return (
            f"StreamPlan({self.workload!r}, {self.privacy!r}, mechanism={self.mechanism!r}, "
            f"horizon={self.horizon!r}, rmse={self.rmse:.6g}, max_stderr={self.max_stderr:.6g})"
        )


def _first_taps(workload: Filter, step: int) -> Array:
    """Return the taps that reach back to the first step, as many as matter for an interval.

    Runs of a long decay are merged into one variate with their variance: that widens the interval, since
    `-log(1 - w² s²)` is convex in `w²`.
    """
    most = 2**14
    match workload.kind:
        case "running_sum":
            return np.ones(0)
        case "exponential_smoothing":
            decay, factor = workload.decay, 1.0 - workload.decay if workload.normalized else 1.0  # type: ignore[attr-defined]
            count = min(step, max(1, math.ceil(-60.0 / math.log(decay))))
            run = -(-count // most)
            squares = math.expm1(2.0 * run * math.log(decay)) / math.expm1(2.0 * math.log(decay))
            taps: Array = factor * math.sqrt(squares) * decay ** np.arange(0.0, count, run)
            return taps
        case _:
            return workload.kernel[:step]


def _events(record: Any) -> EventWorkload | None:
    if record is None:
        return None
    from sordino.workloads.events.base import EventWorkload  # noqa: PLC0415 - it plans streams

    workload = workload_from_spec(record["kind"], record["spec"])
    if not isinstance(workload, EventWorkload):
        raise PlanFileError("the plan's counters count no events")
    return workload


def _rebuild(record: Any) -> StreamPlan:
    if not isinstance(record, dict) or record.get("schema") != SCHEMA or record.get("stream") is not True:
        raise PlanFileError("this is no plan of a stream, or it needs a newer sordino")
    mechanism = next((m for m in STREAM_MECHANISMS if m.name == record["mechanism"]), None)
    if mechanism is None:
        raise PlanFileError("the plan's mechanism is unknown; it may need a newer sordino")
    domain = record["domain"]
    request = StreamRequest(
        workload=workload_from_spec(record["workload"]["kind"], record["workload"]["spec"]),
        privacy=privacy_from_json(record["privacy"]),
        unit=unit_from_json(record["unit"]),
        horizon=record["horizon"],
        objective=record["objective"],
        max_value=integer("max_value", domain["max_value"], least=1),
        integral=domain["integral"],
        dim=integer("dim", record["dim"], least=1),
        touched=integer("touched", record["touched"], least=1),
        signed=record["signed"],
        events=_events(record.get("events")),
    )
    flags = isinstance(request.integral, bool) and isinstance(request.signed, bool)
    if request.horizon not in ("hard", "soft", "unbounded") or request.objective not in ("mean", "max") or not flags:
        raise PlanFileError("the plan's horizon, objective or domain is out of range")
    option = record["option"]
    fitted = fit_stream(request, mechanism, option)
    stored = int(record["door"]["quarter_units"]) * 2.0 ** int(record["door"]["grid"])
    same = fitted.domain.fraction_bits == domain["fraction_bits"] and fitted.door.grid == record["door"]["grid"]
    if not same or stored < fitted.door.quarter_units * 2.0**fitted.door.grid:
        raise PlanFileError("the plan's lattice or noise is not what its privacy needs")
    if cost_from_json(record["cost"]) != fitted.cost:
        raise PlanFileError("the plan's event is not what a stream costs")
    if record["parameters"] != hashlib.sha256(fitted.plan.parameters()).hexdigest():
        raise PlanFileError("this machine or version finds other parameters for the mechanism: plan anew, here")
    return StreamPlan(request=request, requested=str(record["requested"]), fitted=fitted)
