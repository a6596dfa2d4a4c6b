"""Counting rare events under pure differential privacy: segments that end when a noisy count says so.

The stream is cut into segments by the sparse vector technique (`above` in the core): a segment ends when its noisy
count comes above a noisy threshold tau. At its end the segment's count goes into a private running sum, with one step
for each segment in place of one for each item. Between the ends the answer does not change. Each half costs epsilon/2:
where the segments end, and the running sum.

The answer lags behind by up to tau and the noise of the technique, of order ln(T)/epsilon for T steps; the running sum
has few steps. It pays where T is huge and events are rare. Under approximate privacy `auto` takes one Gaussian running
sum: its planned largest error is less for all but huge T, and its mean error too.

Source: Dwork, Naor, Reingold and Rothblum 2015 (private partitions); Fichtenberger, Henzinger and Upadhyay 2023,
Section 5.4, who use it with approximate privacy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from sordino import _core
from sordino.errors import InvalidParameterError, UnsupportedMechanismError
from sordino.mechanisms.family import Column, Family, Progress, Shown
from sordino.mechanisms.fits import AnyDoor, Fit, Request
from sordino.mechanisms.stream.family import best_stream
from sordino.mechanisms.stream.fit import StreamFit, continual
from sordino.privacy.costs import ApproxCost, Cost, PureCost
from sordino.privacy.guarantees import ApproxDP, Privacy, PureDP
from sordino.privacy.units import AddRemove
from sordino.workloads import RunningSum
from sordino.workloads.rare import RareCount

__all__ = ["RARE", "RareFit"]

# With probability at least 1 - this no segment ends too early or too late, in the planned error.
_FAILURE = 0.05


@dataclass(frozen=True, eq=False, repr=False)
class RareFit(Fit):
    """How rare events will be counted.

    Attributes:
        counters: The running sum, over segments or over steps.
        threshold: tau, in counts; None if every step is one of the running sum.
        epsilon: What the ends of segments cost, for one count; None as before.
        alternatives: Planned largest error of either way, by name.
    """

    family: ClassVar[str] = "rare"
    verb: ClassVar[Literal["release", "open", "encode"]] = "open"
    scope: ClassVar[str] = ", over all steps together"

    counters: StreamFit = field(repr=False)
    alternatives: dict[str, float]
    threshold: int | None = None
    epsilon: float | None = None

    @property
    def name(self) -> str:
        """Full name, such as 'above: binary-tree-laplace'."""
        return f"above: {self.counters.name}" if self.threshold is not None else self.counters.name

    @property
    def cost(self) -> Cost:
        """What the whole stream costs."""
        privacy = self.request.privacy
        if self.threshold is None:
            return self.counters.cost
        if isinstance(privacy, PureDP):
            return PureCost(epsilon=privacy.epsilon)
        assert isinstance(privacy, ApproxDP)
        return ApproxCost(epsilon=privacy.epsilon, delta=privacy.delta)

    @property
    def doors(self) -> tuple[AnyDoor, ...]:
        """Lattice and noise of the running sum."""
        return self.counters.doors

    @property
    def steps(self) -> int:
        """Steps that may be published."""
        steps = continual(self.request).length
        assert steps is not None
        return steps

    @property
    def max_error(self) -> float:
        """Planned largest error over all steps, with probability 0.95, for a count up to `workload.max_count`."""
        return self.alternatives["above" if self.threshold is not None else "plain"]

    @property
    def rmse(self) -> float:
        """Of a running sum its own; of segments the planned largest error."""
        return self.counters.rmse if self.threshold is None else self.max_error

    @property
    def rmse_kind(self) -> str:
        """'exact', or 'estimate' for segments."""
        return "exact" if self.threshold is None else "estimate"

    @property
    def max_stderr(self) -> float | None:
        """Largest standard deviation; None, not known, for segments."""
        return self.counters.max_stderr if self.threshold is None else None

    def error(self, objective: str) -> float:
        """Return the planned largest error, whatever is asked for."""
        return self.max_error

    def lines(self) -> list[str]:
        """Say how segments end, and what is expected."""
        lines = []
        if self.threshold is not None:
            lines.append(f"segments       end near a count of {self.threshold}, at most {self.counters.steps} of them")
        ways = ", ".join(f"{name} {error:.4g}" for name, error in self.alternatives.items())
        return [*lines, f"largest error  with probability 0.95, planned: {ways}"]


class _Rare(Family):
    name: ClassVar[str] = "rare"
    options: ClassVar[frozenset[str]] = frozenset(("objective", "memory", "effort", "degree", "noise"))
    columns: ClassVar[tuple[Column, ...]] = (Column("max_error", 14, ".6g", "largest error"),)
    scales: ClassVar[bool] = False

    def check(self, request: Request) -> Request:
        if continual(request).horizon != "hard":
            raise InvalidParameterError("a RareCount ends after its length: horizon='hard'")
        return request

    def choose(self, request: Request, progress: Progress | None = None) -> RareFit:
        """Plan segments where that is better and privacy is pure, else one running sum; 'above' names segments."""
        privacy, segments = request.privacy, request.mechanism == "above"
        plain = _plain(replace(request, mechanism="auto") if segments else request)
        if not (segments or (request.mechanism == "auto" and isinstance(privacy, PureDP))):
            return plain
        try:
            found = _segments(request, plain.alternatives)
        except InvalidParameterError:
            if segments:
                raise
            return plain  # too little privacy for segments
        if request.mechanism == "auto" and found.alternatives["plain"] <= found.alternatives["above"]:
            return replace(plain, alternatives=found.alternatives)
        return found

    def shown(self, request: Request, progress: Progress | None = None) -> Shown:
        fits, refused = [_plain(replace(request, mechanism="auto"))], {}
        try:
            fits.append(_segments(request, fits[0].alternatives))
        except UnsupportedMechanismError as error:
            refused["above"] = str(error)
        fits.sort(key=lambda fit: fit.max_error)
        return Shown(fits, self.choose(replace(request, mechanism="auto")).name, refused)

    def row(self, fit: RareFit, shown: Shown) -> dict[str, Any]:
        return {"max_error": fit.max_error, "rmse": fit.rmse, "rmse_kind": fit.rmse_kind}

    def refit(self, request: Request, record: Mapping[str, Any]) -> RareFit:
        return self.choose(request)


RARE = _Rare()


def _workload(request: Request) -> RareCount:
    workload = continual(request).workload
    assert isinstance(workload, RareCount)
    return workload


def _sums(request: Request, steps: int, **changes: Any) -> StreamFit:
    """Plan a running sum of so many steps."""
    asked = continual(request).replaced(workload=RunningSum(steps))
    return best_stream(replace(request, workload=asked, **changes))


def _plain(request: Request) -> RareFit:
    counters = _sums(request, _workload(request).length)
    error = _largest_half_width(counters, 1.0 - _FAILURE, min(counters.steps, 2**31))
    return RareFit(request, counters, {"plain": error})


def _segments(request: Request, ways: Mapping[str, float]) -> RareFit:
    """Plan segments.

    Raises:
        UnsupportedMechanismError: The unit is no `AddRemove`, or the privacy cannot be split.
    """
    workload, unit = _workload(request), request.unit
    if not isinstance(unit, AddRemove):
        raise UnsupportedMechanismError("segments are private for AddRemove: counts that come or go")
    match request.privacy:
        case PureDP(epsilon=epsilon):
            half: Privacy = PureDP(epsilon=epsilon / 2.0)
        case ApproxDP(epsilon=epsilon, delta=delta):
            half = ApproxDP(epsilon=epsilon / 2.0, delta=delta)
        case _:
            raise UnsupportedMechanismError("segments need PureDP, or ApproxDP and mechanism='above'")
    # k counts of one unit are k steps of one count each.
    share = epsilon / 2.0 / unit.records
    scale, risk = 2.0 / share, _FAILURE / 3.0
    # At no step does a segment end whose count is 0; at no count does one that is `late` above the threshold go on.
    threshold = max(math.ceil(_exceeded(scale, workload.length / risk)), 1)
    late = _exceeded(scale, min(workload.max_count, workload.length) / risk)
    # Refused now, not when it is opened; under a key that is thrown away.
    _core.AboveThreshold(threshold, 1, share, bytes(32)).close()
    # Room for segments that end at a quarter of the threshold.
    segments = min(workload.length, 4 * workload.max_count // threshold + 16)
    # A segment is one item, in which all counts of a unit may come together: `per_cell` is of steps.
    together = AddRemove(unit.records, label=unit.label)
    sums = _sums(request, segments, privacy=half, unit=together, mechanism="auto")
    largest = threshold + late + _largest_half_width(sums, 1.0 - risk, segments)
    return RareFit(request, sums, {**ways, "above": largest}, threshold, share)


def _largest_half_width(sums: StreamFit, level: float, answers: int) -> float:
    """Return the largest half width at a step of running sums: a tree has more nodes before its last step."""
    return float(sums.half_width(sums.worst_steps(), level, answers).max())


def _exceeded(scale: float, odds: float) -> float:
    """Return x with `P(X - Y >= x) <= 1/odds` for Laplace variables of this scale.

    The probability is `exp(-y) (1/2 + y/4)`, y = x/scale.
    """
    log_odds = math.log(max(odds, 2.0))
    y = log_odds
    for _ in range(60):  # rises to the solution
        y = log_odds + math.log(0.5 + y / 4.0)
    return scale * max(y, 0.0) * (1.0 + 1e-9)
