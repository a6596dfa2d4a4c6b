"""From public facts to a fitted stream: recipe, sensitivity, lattice, error. Touches no data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sordino import _core
from sordino._support.checks import integers
from sordino.accuracy.bounds import REFERENCE_STEPS, Bound, stream_bound
from sordino.accuracy.equal_noise import EqualNoise
from sordino.accuracy.half_widths import gaussian_half_width
from sordino.errors import InvalidParameterError, UnsupportedMechanismError
from sordino.mechanisms.fits import Domain, DoorFit, Request, choose_domain
from sordino.mechanisms.linear.common_noise import gaussian_ratio
from sordino.mechanisms.stream.catalogue import MOST_TABLES, StreamMechanism
from sordino.privacy.calibration import cost as calibrated_cost
from sordino.privacy.calibration import noise_ratio
from sordino.privacy.costs import Cost
from sordino.privacy.participation import Pattern, patterns, vectors
from sordino.privacy.units import ReplaceOne, UserLevel
from sordino.workloads import (
    ExponentialSmoothing,
    Filter,
    MovingAverage,
    RunningAverage,
    RunningSum,
    SlidingWindow,
    Workload,
)
from sordino.workloads.base import MAX_STEPS, Array
from sordino.workloads.continual import Continual
from sordino.workloads.events.base import EventWorkload

__all__ = ["Steps", "StreamFit", "continual", "error_bound", "events_of", "fit_stream", "judged"]

Steps: TypeAlias = "Sequence[int] | NDArray[Any]"

_FRACTION_BITS = (24, 20, 16, 12)
_FINE_BITS = (32, 28)
# Errors over more steps than this are averaged over a stratified sample of steps.
_ALL_STEPS = 2**16
_MOST_TAPS = 2**16
# Noise in common is taken where it leaves so much of that of a coordinate, or less.
_WORTHWHILE = 0.99


def continual(request: Request) -> Continual:
    """Return the workload of a stream's request."""
    assert isinstance(request.workload, Continual)
    return request.workload


def events_of(request: Request) -> EventWorkload | None:
    """Return what the counters count, if events change them."""
    inner = continual(request).workload
    return inner if isinstance(inner, EventWorkload) else None


def judged(request: Request) -> int:
    """Return the steps over which the error is judged."""
    return continual(request).length or REFERENCE_STEPS


def _filter(workload: Workload) -> tuple[str, list[float]]:
    """Return the filter as the core reads it.

    Raises:
        UnsupportedMechanismError: The workload is no causal filter.
    """
    match workload:
        case RunningSum():
            return "running_sum", []
        case RunningAverage():
            return "running_average", []
        case Filter() if workload.boundary != "causal":
            raise UnsupportedMechanismError("a stream cannot look ahead or around: boundary='causal'")
        case ExponentialSmoothing():
            return "decay", [workload.decay, 1.0 - workload.decay if workload.normalized else 1.0]
        case SlidingWindow():
            return "window", [float(workload.window), 1.0]
        case MovingAverage():
            return "window", [float(workload.window), 1.0 / workload.window]
        case Filter():
            if len(workload.kernel) > _MOST_TAPS:
                raise UnsupportedMechanismError("a stream takes filters of at most 2**16 taps")
            return "taps", np.trim_zeros(workload.kernel, "b").tolist()
        case _:
            raise UnsupportedMechanismError("streams answer running sums, running averages and causal filters")


@dataclass(frozen=True, eq=False, repr=False)
class StreamFit(DoorFit):
    """A stream's mechanism with its lattice and noise; errors are in the unit of the workload.

    Attributes:
        mechanism: Which mechanism.
        strategy: The strategy in the core.
        door: Lattice and noise.
        domain: Declared bounds of an entry: it is clamped to them.
        patterns: What the unit changes, in coordinates of their own.
        ratio: Noise over sensitivity that was asked for.
        cost: What the whole stream costs: charged once, when it is opened.
    """

    family: ClassVar[str] = "stream"
    verb: ClassVar[Literal["release", "open", "encode"]] = "open"

    mechanism: StreamMechanism
    strategy: _core.StreamPlan = field(repr=False)
    door: _core.StreamDoor = field(repr=False)
    domain: Domain
    patterns: tuple[Pattern, ...]
    ratio: float
    cost: Cost

    @cached_property
    def dim(self) -> int:
        """Coordinates of an item, of those that are published at every step."""
        return continual(self.request).dim if self.events is None else 1 if self.lazy else self.events.coordinates

    @cached_property
    def events(self) -> EventWorkload | None:
        """What the counters count, if events change them."""
        return events_of(self.request)

    @cached_property
    def lazy(self) -> bool:
        """Whether counters are read one by one, and what would be published is computed then."""
        return continual(self.request).reads == "lazy"

    @cached_property
    def coordinates(self) -> int:
        """Number of counters, read or not."""
        return self.dim if self.events is None else self.events.coordinates

    @cached_property
    def counted_unit(self) -> float:
        """What 1 in a counter stands for."""
        return 1.0 if self.events is None else self.events.counted_unit

    @property
    def scope(self) -> str:  # type: ignore[override]
        """What a sentence about the guarantee ends with."""
        together = self.events is not None
        return ", by everything that the stream publishes together" if together else ", over all steps together"

    @property
    def subject(self) -> str:
        """What is protected, as the subject of a sentence."""
        unit, events = self.request.unit, self.events
        return unit.protected() if events is None else f"{events.protected(unit)}{events.condition},"

    @property
    def extent(self) -> str:
        """How much the unit changes at most, in words."""
        return super().extent if self.events is None else f"{self.subject[0].lower()}{self.subject[1:]}".rstrip(",")

    @property
    def things(self) -> str:  # type: ignore[override]
        """What groups consist of."""
        return "single records" if self.events is None else self.events.things

    @property
    def condition(self) -> str:
        """The promise that nobody checks, of graphs with a declared bound of degrees."""
        return "" if self.events is None else self.events.condition

    @property
    def steps(self) -> int:
        """Steps that may be published."""
        return self.strategy.steps

    @property
    def judged(self) -> int:
        """Steps over which errors are averaged."""
        return judged(self.request)

    @property
    def memory(self) -> int:
        """Bytes of noise state, all coordinates, at the last step of the length."""
        return self.strategy.state_bytes * self.dim

    @property
    def operations(self) -> float:
        """Multiplications and additions of the noise a step and coordinate, amortised, besides drawing it."""
        return self.strategy.operations

    @property
    def relative_sensitivity(self) -> float:
        """Bound of what neighbours differ by in the measured norm, over the norm of one column of the strategy."""
        single = self.strategy.sensitivity([Pattern(1, 1, 1, 1, 1, 1)])
        return self.door.sensitivity[0] / single * self.counted_unit

    @property
    def assumes(self) -> str:
        """The property of the strategy that the sensitivity of events uses."""
        if self.events is None or self.mechanism.law == "laplace":
            return "general"  # the l1 norm of all changes
        return self.events.assumes(self.strategy)

    @property
    def laplace(self) -> EqualNoise:
        """Laplace noise of a measured number."""
        return EqualNoise(self.door.noise, *(self.door.discrete or ()))

    @property
    def proportional(self) -> bool:
        """Whether the error is proportional to the noise ratio: that of discrete noise falls faster."""
        return self.door.discrete is None

    @property
    def rounding(self) -> float | None:
        """What an interval grows by for rounding errors of answers besides those of their own size, None for none."""
        return None if self.proportional else 0.0

    def std(self, steps: Steps) -> Array:
        """Return the standard deviation of an answer, or counter, at each of these steps, from 1.

        Raises:
            DataTypeError: No integers.
            ShapeError: Not one-dimensional.
            InvalidParameterError: A step is below 1 or beyond the horizon.
        """
        return self._std(_steps(steps).astype(np.uint64)) * self.counted_unit

    def _std(self, steps: NDArray[np.uint64]) -> Array:
        deviations: Array = self.door.noise * np.sqrt(self.strategy.variances(steps))
        return deviations

    def half_width(self, steps: Steps, level: float, answers: int = 1) -> Array:
        """Return half widths of intervals at these steps, of which `answers` must hold together.

        Exact for Gaussian noise; rigorous upper bounds for sums of Laplace variates.

        Raises:
            InvalidParameterError: The level or a step is out of range.
        """
        found = _steps(steps)
        deviations = self._std(found.astype(np.uint64))
        if self.mechanism.law == "gaussian":
            return np.asarray(gaussian_half_width(deviations, level, answers)) * self.counted_unit
        noise = self.laplace
        known: dict[tuple[tuple[float, ...], int], float] = {}

        def width(step: int, deviation: float) -> float:
            weights, nodes = self._laplace_weights(step, deviation / noise.scale)
            if (weights, nodes) not in known:
                known[weights, nodes] = (
                    noise.of_weights(weights, level, answers)
                    if nodes == 1
                    else noise.times(weights[0]).of_equal(nodes, level, answers)
                )
            return known[weights, nodes]

        widths = [width(int(t), float(d)) for t, d in zip(found, deviations, strict=True)]
        return np.array(widths) * self.counted_unit

    def largest_half_width(self, level: float) -> float:
        """Return the half width of the widest interval."""
        return float(self.half_width(self.worst_steps(), level).max())

    def _laplace_weights(self, step: int, deviation: float) -> tuple[tuple[float, ...], int]:
        """Return the weights of the Laplace variates in an answer, or one weight and how many have it.

        Taps for noise on items; as many equal nodes of a tree as the deviation says.
        """
        workload = continual(self.request).filter
        divisor = float(step) if workload.kind == "running_average" else 1.0
        if self.mechanism.strategy == "identity" and isinstance(workload, Filter):
            taps = _first_taps(workload, step)
            if len(taps):
                return tuple(np.abs(taps).tolist()), 1
        nodes = max(round((deviation * divisor) ** 2 / 2.0), 1)
        return (1.0 / divisor,), nodes

    def worst_steps(self) -> NDArray[np.uint64]:
        """Return judged steps among which the largest standard deviation is found."""
        return np.append(self.strategy.worst_steps(self.judged), np.uint64(self._errors[2]))

    @cached_property
    def _errors(self) -> tuple[float, float, int]:
        """Root mean square and maximum over the judged steps and those where it may be, and the step of that."""
        steps, weights = _looked_at(self.judged)
        if self.judged > _ALL_STEPS:
            worst = np.append(self.strategy.worst_steps(self.judged), np.uint64(self.judged))
            steps, weights = np.concatenate([steps, worst]), np.concatenate([weights, np.zeros(len(worst))])
        deviations = self._std(steps)
        largest = int(deviations.argmax())
        mean = math.sqrt(float(np.average(deviations**2, weights=weights)))
        return mean, float(deviations[largest]), int(steps[largest])

    @property
    def rmse(self) -> float:
        """Root mean squared error over the steps of the length, or the first 2**20 if there is none.

        Beyond 2**16 steps the mean is taken over a fixed sample of them.
        """
        return self._errors[0] * self.counted_unit

    @property
    def max_stderr(self) -> float:
        """Largest standard deviation over the same steps."""
        return self._errors[1] * self.counted_unit

    @cached_property
    def bound(self) -> Bound | None:
        """Least error of any mechanism with Gaussian noise for this length, None if no bound is known."""
        return error_bound(self.request)

    def details(self) -> dict[str, Any]:
        """Return what a file says beyond the common: floats of a mechanism must be the same everywhere."""
        return {"noise_ratio": self.ratio, "parameters": self.strategy.parameters().hex()}

    def lines(self) -> list[str]:
        """Say what will be measured and how good that is."""
        asked = continual(self.request)
        if self.events is not None:
            return self._event_lines()
        length = f"over {'the first ' if asked.length is None else ''}{self.judged} steps"
        lines = [
            f"horizon        {self._horizon_words()}",
            f"noise          {self._noise_words()}",
            f"input          {self.dim} coordinate{'s' if self.dim > 1 else ''}, {self._record_words()}entries clamped "
            f"to [-{self.domain.max_value}, {self.domain.max_value}], "
            + ("integers" if self.request.integral else f"rounded to 2^-{self.domain.fraction_bits}"),
            f"error          rmse {self.rmse:.6g}, largest standard error {self.max_stderr:.6g}, {length}",
            f"state          {self.memory} bytes, {self.operations:.0f} operations a step and coordinate",
        ]
        if self.optimality is not None and self.bound is not None:
            lines.append(f"bound          {self.bound.value:.6g} ({self.bound.name}; {self.bound.mechanisms})")
            lines.append(f"optimality     at most {self.optimality:.6g} times the least of any Gaussian mechanism")
        elif self.mechanism.law == "gaussian" and isinstance(asked.filter, RunningAverage):
            lines.append("bound          none is known of averages of more than 2^22 steps")
        sums = isinstance(asked.filter, RunningSum | RunningAverage)
        if self.mechanism.strategy == "blt" and sums and asked.horizon == "hard" and self.steps > MOST_TABLES:
            lines.append("limit          two-diagonals, nearer to the least error, is made for at most 2^24 steps")
        unsearched = self.mechanism.law == "gaussian" and self.mechanism.strategy != "time-varying-blt"
        if isinstance(asked.filter, RunningAverage) and unsearched and self.request.objective == "mean":
            lines.append(
                "search         averages of least error: time-varying-blt, a hard horizon of at most 2^20 steps"
            )
        return lines

    def _record_words(self) -> str:
        norm = continual(self.request).record_norm
        return "" if norm is None else f"records of norm {norm:g} in any direction, "

    def _noise_words(self) -> str:
        if self.door.discrete is not None:
            return (
                f"discrete Laplace, a step without noise has probability {math.tanh(0.5 * self.door.discrete[1]):.3g}"
            )
        kind = "Gaussian" if self.mechanism.law == "gaussian" else "Laplace"
        said = f"{kind} on the lattice 2^{self.door.grid}, inflation by rounding {self.inflation:.2g}"
        if (ratio := self.door.common) is None:
            return said
        dim, touched = self.dim, continual(self.request).cells_per_record
        total = math.sqrt(dim + (ratio * dim) ** 2) / math.sqrt(1.0 + ratio**2)
        alone = math.sqrt(dim * touched) * self.door.scale / self.relative_scale
        return (
            f"{said}\n               {ratio:.4g} times that of a coordinate is on all of them together\n"
            f"               a total has {total * self.door.noise / alone:.4g} times the error of independent noise "
            "(common_noise=False)"
        )

    @property
    def relative_scale(self) -> float:
        """Noise of a coordinate's own over that of a record of one coordinate alone."""
        dim, touched, ratio = self.dim, continual(self.request).cells_per_record, self.door.common or 0.0
        c = ratio**2 / (1.0 + dim * ratio**2)
        m = np.arange(1, touched + 1)
        return math.sqrt(float((m - c * m * m).max()))

    def _event_lines(self) -> list[str]:
        many = "counters" if self.coordinates > 1 else "counter"
        lines = [
            f"counters       {self.coordinates} {many}",
            f"horizon        {self._horizon_words()}",
            f"sensitivity    {self.relative_sensitivity:.6g} times that of one count ({self.assumes})",
            f"error          rmse {self.rmse:.6g}, largest standard error {self.max_stderr:.6g}, of a counter",
        ]
        if self.lazy:
            operations = self.strategy.read_operations(self.judged)
            return [*lines, f"reads          lazy: {operations:.0f} operations for a counter after the last step"]
        return [*lines, f"reads          dense: every counter at every step, {self.memory} bytes of state"]

    def _horizon_words(self) -> str:
        asked = continual(self.request)
        if asked.horizon == "hard":
            return f"hard: {self.steps} steps, the next is refused"
        if asked.horizon == "unbounded" or asked.length is None:
            return "unbounded: private for ever (2^40 steps)"
        factors = [f for f in (2, 4, 16) if f * asked.length <= self.steps]
        later = self.std([f * asked.length for f in factors])
        grown = ", ".join(f"{d:.6g} at {f}n" for f, d in zip(factors, later, strict=True))
        return f"soft: best for n = {asked.length} steps, private for ever; standard error {grown}"


def _steps(steps: object) -> NDArray[np.int64]:
    return integers("steps", steps, least=1, most=MAX_STEPS)


def error_bound(request: Request) -> Bound | None:
    """Return the bound on the error of a stream, None for counts of events."""
    if continual(request).workload.continual:
        return None
    asked = continual(request)
    one_signed = asked.one_signed and asked.record_norm is None
    bound = stream_bound(
        asked.workload,
        request.privacy,
        request.unit,
        (asked.dim, asked.cells_per_record),
        one_signed=one_signed,
        objective=request.objective,
    )
    if bound is None or asked.record_norm is None:
        return bound
    return replace(bound, value=bound.value * asked.record_norm)


def _first_taps(workload: Filter, step: int) -> Array:
    """Return the taps that reach back to the first step, as many as matter for an interval.

    Runs of a long decay are merged into one variate with their variance: that widens the interval, since
    `-log(1 - w² s²)` is convex in `w²`.
    """
    most = 2**14
    match workload:
        case RunningSum():
            return np.ones(0)
        case ExponentialSmoothing():
            decay, factor = workload.decay, 1.0 - workload.decay if workload.normalized else 1.0
            count = min(step, max(1, math.ceil(-60.0 / math.log(decay))))
            run = -(-count // most)
            squares = math.expm1(2.0 * run * math.log(decay)) / math.expm1(2.0 * math.log(decay))
            taps: Array = factor * math.sqrt(squares) * decay ** np.arange(0.0, count, run)
            return taps
        case _:
            return workload.kernel[:step]


def _common(request: Request, mechanism: StreamMechanism, changed: tuple[Pattern, ...]) -> float | None:
    """Return the noise that all coordinates have in common, over that of each, where that may help."""
    asked = continual(request)
    several = asked.one_signed and asked.cells_per_record > 1 and asked.common_noise
    if mechanism.law != "gaussian" or not several or asked.horizon != "hard" or len(changed) > 1:
        return None
    if events_of(request) is not None or isinstance(request.unit, ReplaceOne):
        return None
    return gaussian_ratio(asked.dim, asked.cells_per_record)


def _participations(request: Request) -> tuple[int, int]:
    """Return how often a unit takes part, and how far apart: what the least error is sought for."""
    unit = request.unit
    if isinstance(unit, UserLevel) and events_of(request) is None:
        return unit.max_participations, unit.min_separation
    return 1, 1


def _bits_of_norm(asked: Continual) -> int:
    return 0 if asked.record_norm is None else math.floor(math.log2(asked.record_norm))


@lru_cache(maxsize=2)
def _looked_at(judged: int) -> tuple[NDArray[np.uint64], Array]:
    """Return steps that errors are computed for, and how many each stands for.

    All up to 2**16; else all up to 2**12, and one of each of 2**15 equal stretches beyond.
    """
    if judged <= _ALL_STEPS:
        return np.arange(1, judged + 1, dtype=np.uint64), np.ones(judged)
    first, parts = 2**12, 2**15
    ends = first + (np.arange(parts + 1, dtype=object) * (judged - first)) // parts
    # A fixed irrational turn keeps the sample off the periods of trees.
    turns = np.mod(np.arange(parts) * 0.6180339887498949, 1.0)
    inside = [int(a) + 1 + int(u * (int(b) - int(a))) for a, b, u in zip(ends, ends[1:], turns, strict=False)]
    steps = np.array([*range(1, first + 1), *inside], dtype=np.uint64)
    return steps, np.concatenate([np.ones(first), np.diff(ends).astype(np.float64)])


def _fraction_bits(asked: Continual) -> tuple[int, ...]:
    if asked.record_norm is None:
        return _FRACTION_BITS
    # Finer ones where rounding many coordinates would count.
    return tuple(max(bits - _bits_of_norm(asked), 1) for bits in (*_FINE_BITS, *_FRACTION_BITS))


def fit_stream(request: Request, mechanism: StreamMechanism) -> StreamFit:
    """Build the mechanism for the stream and fit lattice and noise.

    Raises:
        UnsupportedMechanismError: The mechanism does not serve the workload, the privacy or the horizon.
        InvalidParameterError: Public sizes do not fit.
    """
    mechanism.require(request.privacy)
    asked, events = continual(request), events_of(request)
    kind, parameters = _filter(asked.filter)
    strategy = _core.StreamPlan(
        kind,
        parameters,
        mechanism.strategy,
        mechanism.law,
        asked.horizon,
        asked.length or 0,
        request.objective,
        request.degree,
        _participations(request),
    )
    if events is None:
        if asked.record_norm is None:
            single = patterns(
                request.unit, asked.dim, asked.cells_per_record, asked.one_signed, strategy.no_negative_products
            )
        else:
            single = vectors(request.unit, asked.dim, asked.record_norm)
        found: tuple[tuple[Pattern, ...], ...] = tuple((pattern,) for pattern in single)
    else:
        found = events.changes(request.unit, strategy)
    changed = min(found, key=strategy.sensitivity)
    ratio = noise_ratio(request.privacy, mechanism.law)

    def fitted(common: tuple[float, int] | None) -> tuple[Domain, _core.StreamDoor]:
        return choose_domain(
            lambda domain: strategy.fit(changed, domain.max_value, domain.fraction_bits, ratio, common),
            request,
            (0,) if request.integral else _fraction_bits(asked),
            _bits_of_norm(asked),
        )

    domain, door = fitted(None)
    if (size := _common(request, mechanism, changed)) is not None:
        try:
            shared = fitted((size, asked.dim))
        except InvalidParameterError:  # so many steps leave no room for its lattice
            shared = domain, door
        if shared[1].noise < _WORTHWHILE * door.noise and shared[0].max_value >= domain.max_value:
            domain, door = shared
    return StreamFit(
        request=request,
        mechanism=mechanism,
        strategy=strategy,
        door=door,
        domain=domain,
        patterns=changed,
        ratio=ratio,
        cost=calibrated_cost(request.privacy, mechanism.law),
    )
