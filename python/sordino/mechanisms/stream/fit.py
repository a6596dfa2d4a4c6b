"""From public facts to a fitted stream: recipe, sensitivity, lattice, error. Touches no data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sordino import _core
from sordino._support.checks import integer
from sordino.accuracy.bounds import REFERENCE_STEPS
from sordino.errors import UnsupportedMechanismError
from sordino.mechanisms.linear.fit import Domain, Objective, choose_domain
from sordino.mechanisms.stream.catalogue import Horizon, StreamMechanism
from sordino.privacy.calibration import cost as calibrated_cost
from sordino.privacy.calibration import noise_ratio
from sordino.privacy.costs import Cost
from sordino.privacy.guarantees import Privacy
from sordino.privacy.participation import Pattern, patterns
from sordino.privacy.units import Unit
from sordino.workloads import (
    ExponentialSmoothing,
    Filter,
    MovingAverage,
    RunningAverage,
    RunningSum,
    SlidingWindow,
    Workload,
)
from sordino.workloads.base import Array

if TYPE_CHECKING:
    from sordino.workloads.events.base import EventWorkload

__all__ = ["StreamFitted", "StreamRequest", "fit_stream"]

_FRACTION_BITS = (24, 20, 16, 12)
# Errors over more steps than this are averaged over a stratified sample of steps.
_ALL_STEPS = 2**16
_MOST_TAPS = 2**16
# Degree or branching: the state grows with it.
_MOST_OPTION = 2**16


@dataclass(frozen=True)
class StreamRequest:
    """What a stream is asked for, all of it public.

    Attributes:
        workload: A running sum or average, a causal filter.
        privacy: The guarantee of the whole stream.
        unit: What one protected thing can change.
        horizon: What happens at and beyond the length.
        objective: Error that is minimised.
        max_value: Declared bound of an entry of an item, None for the default.
        integral: Whether entries are declared integers.
        dim: Coordinates of an item.
        touched: Coordinates that one record changes, at most.
        signed: Whether a record's entries may be negative.
        events: What the counters count, if events change them: it says what a unit changes.
    """

    workload: Workload
    privacy: Privacy
    unit: Unit
    horizon: Horizon
    objective: Objective = "mean"
    max_value: int | None = None
    integral: bool = True
    dim: int = 1
    touched: int = 1
    signed: bool = False
    events: EventWorkload | None = None

    @property
    def length(self) -> int | None:
        """Declared steps of the series."""
        length: int | None = getattr(self.workload, "length", None)
        return length

    @property
    def judged(self) -> int:
        """Steps over which the error is judged."""
        return REFERENCE_STEPS if self.length is None else self.length


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


@dataclass(frozen=True)
class StreamFitted:
    """A stream's mechanism with its lattice and noise.

    Attributes:
        mechanism: Which mechanism.
        option: Degree or branching, if one was asked for.
        plan: The strategy in the core.
        door: Lattice and noise.
        domain: Declared bounds of an entry.
        patterns: What the unit changes, in coordinates of their own.
        ratio: Noise over sensitivity that was asked for.
        cost: What the whole stream costs.
        judged: Steps over which errors are averaged.
    """

    mechanism: StreamMechanism
    option: int | None
    plan: _core.StreamPlan
    door: _core.StreamDoor
    domain: Domain
    patterns: tuple[Pattern, ...]
    ratio: float
    cost: Cost
    judged: int

    @property
    def inflation(self) -> float:
        """Relative growth of the noise by lattice and rounding."""
        return max(self.door.noise / (self.ratio * self.door.sensitivity[0]) - 1.0, 0.0)

    def stderr(self, steps: NDArray[np.uint64]) -> Array:
        """Return the standard deviation of an answer at these steps, from 1."""
        deviations: Array = self.door.noise * np.sqrt(self.plan.variances(steps))
        return deviations

    def worst_steps(self) -> NDArray[np.uint64]:
        """Return judged steps among which the largest standard deviation is found."""
        return np.append(self.plan.worst_steps(self.judged), np.uint64(self.judged))

    @cached_property
    def _errors(self) -> tuple[float, float]:
        """Root mean square and maximum over the judged steps.

        All steps up to 2**16; else all up to 2**12, one of each of 2**15 equal stretches beyond, and those
        where the maximum may be.
        """
        if self.judged <= _ALL_STEPS:
            steps = np.arange(1, self.judged + 1, dtype=np.uint64)
            weights = np.ones(len(steps))
        else:
            first, parts = 2**12, 2**15
            ends = first + (np.arange(parts + 1, dtype=object) * (self.judged - first)) // parts
            # A fixed irrational turn keeps the sample off the periods of trees.
            turns = np.mod(np.arange(parts) * 0.6180339887498949, 1.0)
            inside = [int(a) + 1 + int(u * (int(b) - int(a))) for a, b, u in zip(ends, ends[1:], turns, strict=False)]
            worst = self.worst_steps().tolist()
            steps = np.array([*range(1, first + 1), *inside, *worst], dtype=np.uint64)
            shares = [np.ones(first), np.diff(ends).astype(np.float64), np.zeros(len(worst))]
            weights = np.concatenate(shares)
        deviations = self.stderr(steps)
        return math.sqrt(float(np.average(deviations**2, weights=weights))), float(deviations.max())

    @property
    def rmse(self) -> float:
        """Root of the mean variance over the judged steps."""
        return self._errors[0]

    @property
    def max_stderr(self) -> float:
        """Largest standard deviation over the judged steps."""
        return self._errors[1]

    def error(self, objective: Objective) -> float:
        """Return what is minimised."""
        return self.rmse if objective == "mean" else self.max_stderr


def fit_stream(request: StreamRequest, mechanism: StreamMechanism, option: int | None = None) -> StreamFitted:
    """Build the mechanism for the stream and fit lattice and noise.

    Raises:
        DataTypeError: The option is no integer.
        UnsupportedMechanismError: The mechanism does not serve the workload, the privacy or the horizon.
        InvalidParameterError: Public sizes do not fit, or the option is above 2**16.
    """
    if not mechanism.allows(request.privacy):
        raise UnsupportedMechanismError(f"{mechanism.name} cannot give {type(request.privacy).__name__}")
    if option is not None:
        option = integer("option", option, least=0, most=_MOST_OPTION)
    kind, parameters = _filter(request.workload)
    plan = _core.StreamPlan(
        kind,
        parameters,
        mechanism.strategy,
        mechanism.law,
        request.horizon,
        request.length or 0,
        request.objective,
        option,
    )
    if request.events is None:
        single = patterns(request.unit, request.dim, request.touched, request.signed, plan.one_sign)
        found: tuple[tuple[Pattern, ...], ...] = tuple((pattern,) for pattern in single)
    else:
        found = request.events.changes(request.unit, plan)
    changed = min(found, key=plan.sensitivity)
    ratio = noise_ratio(request.privacy, mechanism.law)
    domain, door = choose_domain(
        lambda domain: plan.fit(changed, domain.max_value, domain.fraction_bits, ratio),
        request.max_value,
        (0,) if request.integral else _FRACTION_BITS,
    )
    return StreamFitted(
        mechanism=mechanism,
        option=option,
        plan=plan,
        door=door,
        domain=domain,
        patterns=changed,
        ratio=ratio,
        cost=calibrated_cost(request.privacy, mechanism.law),
        judged=request.judged,
    )
