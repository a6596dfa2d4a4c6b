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
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from sordino import _core
from sordino._support.checks import integer
from sordino._support.private_numbers import amounts_or
from sordino._support.turns import Turn
from sordino._support.uncopied import Uncopied
from sordino.errors import (
    DataTypeError,
    HorizonError,
    InvalidParameterError,
    StreamClosedError,
    UnsupportedMechanismError,
)
from sordino.privacy.costs import ApproxCost, PureCost
from sordino.privacy.guarantees import ApproxDP, PureDP
from sordino.privacy.ledger import opened
from sordino.privacy.units import AddRemove
from sordino.privacy.wording import promise_of
from sordino.workloads import RunningSum
from sordino.workloads.base import Workload

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from sordino.plans.stream import StreamPlan
    from sordino.privacy.costs import Cost
    from sordino.privacy.guarantees import Privacy
    from sordino.privacy.ledger import Ledger
    from sordino.privacy.units import Unit
    from sordino.streams.counter import Stream
    from sordino.workloads.base import Array, Spec

__all__ = ["SparseCount", "SparsePlan", "SparseStream", "plan_sparse"]

# With probability at least 1 - this no segment ends too early or too late, in the planned error.
_FAILURE = 0.05


class SparseCount(Workload):
    """The running count of a stream in which few items are not zero.

    Args:
        length: T, number of steps.
        most: Public bound on the total count, by which the number of segments is bounded. If the count comes beyond it,
            privacy holds and the answers stay where they are.

    Raises:
        DataTypeError: A number is no integer.
        InvalidParameterError: A number is out of range.
    """

    kind: ClassVar[str] = "sparse_count"
    linear: ClassVar[bool] = False

    def __init__(self, length: int, most: int) -> None:
        self.length = integer("length", length, least=1)
        self.most = integer("most", most, least=1)
        if self.length > 2**40 or self.most > 2**40:
            raise InvalidParameterError("length and most must be at most 2**40")

    @property
    def input_shape(self) -> tuple[int, ...]:
        """One counter."""
        return (1,)

    def _build(self) -> NoReturn:
        raise UnsupportedMechanismError("a SparseCount is counted on a stream: use sordino.plan_stream")

    def spec(self) -> Spec:
        """Return the constructor's arguments."""
        return {"length": self.length, "most": self.most}


@dataclass(frozen=True, eq=False)
class SparsePlan:
    """How rare events will be counted: made by `sordino.plan_stream`, costs nothing.

    Attributes:
        workload: Steps, and the bound on the count.
        privacy: What everything that is published guarantees.
        unit: What one protected thing can change.
        threshold: tau, in counts; None if every step is one of the running sum.
        epsilon: What the ends of segments cost, for one count; None as before.
        counters: The plan of the running sum, over segments or over steps.
        alternatives: Planned largest error of either way, by name.
    """

    workload: SparseCount
    privacy: Privacy
    unit: Unit
    threshold: int | None
    epsilon: float | None
    counters: StreamPlan = field(repr=False)
    alternatives: dict[str, float]

    @property
    def mechanism(self) -> str:
        """Full name, such as 'above: binary-tree-laplace'."""
        return f"above: {self.counters.mechanism}" if self.threshold is not None else self.counters.mechanism

    @property
    def cost(self) -> Cost:
        """What the whole stream costs."""
        if self.threshold is None:
            return self.counters.cost
        if isinstance(self.privacy, PureDP):
            return PureCost(epsilon=self.privacy.epsilon)
        assert isinstance(self.privacy, ApproxDP)
        return ApproxCost(epsilon=self.privacy.epsilon, delta=self.privacy.delta)

    @property
    def steps(self) -> int:
        """Steps that may be published."""
        return self.workload.length

    @property
    def max_error(self) -> float:
        """Planned largest error over all steps, with probability 0.95, for a count up to `workload.most`."""
        return self.alternatives["above" if self.threshold is not None else "plain"]

    @property
    def promise(self) -> str:
        """The guarantee for one unit, without the unit: '1-differential privacy'."""
        return promise_of(self.cost, 1, self.privacy)

    def guarantee(self) -> str:
        """Return the guarantee in one plain sentence."""
        return f"{self.unit.protected()} is protected by {self.promise}, over all steps together."

    def open(self, ledger: Ledger | None = None, *, request_id: str | None = None) -> SparseStream:
        """Open the stream: the budget of all its steps is charged now.

        Args:
            ledger: Where the cost is charged; None leaves the stream unaccounted.
            request_id: Name of the request, charged at most once.

        Raises:
            DataTypeError: The ledger is no ledger.
            InvalidParameterError: Noise is deterministic and a ledger is given.
            BudgetExceededError: The ledger's total would be exceeded.
            UnsupportedCostError: The ledger cannot count this event.
            DuplicateRequestError: The request was charged before.
            EntropyError: The operating system gives no randomness; the budget stays charged.
        """

        def stream(key: bytes | None) -> SparseStream:
            above = None
            if self.threshold is not None:
                assert self.epsilon is not None
                other = None if key is None else bytes(b ^ 0xA5 for b in key)
                above = _core.AboveThreshold(self.threshold, 1, self.epsilon, other)
            return SparseStream(self, above, self.counters.open())

        return opened(ledger, request_id, self.cost, self.unit.label, stream)

    def explain(self) -> str:
        """Return what will happen and why, in a few lines of text."""
        ways = ", ".join(f"{name} {error:.4g}" for name, error in self.alternatives.items())
        lines = [repr(self.workload), f"mechanism      {self.mechanism}", f"guarantee      {self.guarantee()}"]
        if self.threshold is not None:
            lines.append(f"segments       end near a count of {self.threshold}, at most {self.counters.steps} of them")
        lines.append(f"largest error  with probability 0.95, planned: {ways}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"SparsePlan({self.workload!r}, {self.privacy!r}, mechanism={self.mechanism!r})"


class SparseStream(Uncopied):
    """An open count of rare events; `SparsePlan.open` makes it. It belongs to one process.

    Attributes:
        plan: How it was planned.
    """

    def __init__(self, plan: SparsePlan, above: _core.AboveThreshold | None, counters: Stream) -> None:
        self.plan = plan
        self._above = above
        self._counters = counters
        counters._whole = True
        self._guard = Turn("this stream belongs to another process")
        # Steps and the answer after them; and of an update that was interrupted: its first step, the steps of the
        # running sum before it, and what was published of its segments.
        self._state = (0, 0.0)
        self._begun: tuple[int, int, list[float]] = (-1, 0, [])
        self.private = counters.private
        self.accounted = counters.accounted

    @property
    def step(self) -> int:
        """Steps so far."""
        return self._counters.step if self._above is None else self._state[0]

    @property
    def closed(self) -> bool:
        """Whether the stream was closed."""
        return self._counters.closed

    @property
    def value(self) -> float:
        """The answer published last, 0 before the first step."""
        return float(self._counters.value or 0.0)

    def update(self, items: object) -> Any:
        """Take in the counts of the next step or steps, and publish the count so far after each.

        Args:
            items: An integer, or an array of them, one a step; clamped, missing ones are 0.

        Returns:
            The answers: a float for a number, an array otherwise.

        Raises:
            DataTypeError: Not integers.
            HorizonError: More steps than are left.
            StreamClosedError: The stream was closed.
            ForkError: The stream belongs to another process.
        """
        array = amounts_or("items", items)
        if array.ndim > 1:
            raise DataTypeError("items must be an integer or a one-dimensional array of integers")
        rows = np.atleast_1d(array)
        if self._counters.closed:
            raise StreamClosedError("this stream is closed; nothing was released")
        with self._guard():
            left = self.plan.steps - self.step
            if len(rows) > left:
                raise HorizonError(
                    f"steps left of the horizon that this stream's budget covers: {left}; nothing was released"
                )
            if len(rows) == 0:
                return np.zeros(0)
            answers: Array = np.asarray(self._counters.update(rows)) if self._above is None else self._segments(rows)
        return float(answers[0]) if array.ndim == 0 else answers

    def _segments(self, rows: NDArray[np.int64]) -> Array:
        """Publish the count after each segment that ends; after an interruption, what is missing of the same items."""
        assert self._above is not None
        first, before = self._state
        if self._begun[0] != first:
            self._begun = (first, self._counters.step, [])
        _, mark, published = self._begun
        ends, counts = self._above.push(first, rows)
        # Segments beyond the last that the running sum has steps for change nothing.
        room = self._counters.plan.steps - mark
        counts = counts[:room]
        while True:
            if self._counters.step - mark > len(published):
                published.append(float(self._counters.value))
            if len(published) == len(counts):
                break
            self._counters.update(int(counts[len(published)]))
        answers = np.full(len(rows), before)
        for place, value in zip(ends[:room].tolist(), published, strict=True):
            answers[place:] = value
        self._state = (first + len(rows), float(answers[-1]))
        return answers

    def close(self) -> None:
        """Wipe keys and counts; the stream refuses everything from now on."""
        self._counters.close()
        if self._above is not None:
            self._above.close()

    def __enter__(self) -> SparseStream:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<SparseStream {self.plan.mechanism}: step {self.step}>"


def _largest_half_width(sums: StreamPlan, level: float, answers: int) -> float:
    """Return the largest half width at a step of running sums: a tree has more nodes before its last step."""
    return float(sums.half_width(sums.fitted.worst_steps(), level, answers).max())


def _exceeded(scale: float, odds: float) -> float:
    """Return x with `P(X - Y >= x) <= 1/odds` for Laplace variables of this scale.

    The probability is `exp(-y) (1/2 + y/4)`, y = x/scale.
    """
    log_odds = math.log(max(odds, 2.0))
    y = log_odds
    for _ in range(60):  # rises to the solution
        y = log_odds + math.log(0.5 + y / 4.0)
    return scale * max(y, 0.0) * (1.0 + 1e-9)


def plan_sparse(
    workload: SparseCount,
    plan_counters: Callable[..., StreamPlan],
    privacy: Privacy,
    unit: Unit | None,
    mechanism: str,
) -> SparsePlan:
    """Plan a count of rare events: segments where that is better and privacy is pure, else one running sum.

    Args:
        workload: Steps, and the bound on the count.
        plan_counters: Plans a running sum by the arguments `workload` and `mechanism`, and `privacy`.
        privacy: The guarantee of the whole stream.
        unit: What one protected thing can change: `AddRemove`, in any number of counts.
        mechanism: 'auto'; 'above', for segments in any case; or the name of a mechanism of running sums.

    Raises:
        DataTypeError: An argument is of the wrong type.
        InvalidParameterError: An argument is out of range.
        UnsupportedMechanismError: The unit is no `AddRemove`, or segments under a privacy that cannot be split.
    """
    unit = AddRemove(1) if unit is None else unit
    if not isinstance(mechanism, str):
        raise DataTypeError("mechanism must be a name")
    asked = "auto" if mechanism == "above" else mechanism
    plain = plan_counters(RunningSum(workload.length), privacy=privacy, unit=unit, mechanism=asked)
    error = _largest_half_width(plain, 1.0 - _FAILURE, min(plain.steps, 2**31))
    ways = {"plain": error}
    if not (mechanism == "above" or (mechanism == "auto" and isinstance(privacy, PureDP))):
        return SparsePlan(workload, privacy, unit, None, None, plain, ways)
    if not isinstance(unit, AddRemove):
        raise UnsupportedMechanismError("segments are private for AddRemove: counts that come or go")
    match privacy:
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
    late = _exceeded(scale, min(workload.most, workload.length) / risk)
    # Room for segments that end at a quarter of the threshold.
    segments = min(workload.length, 4 * workload.most // threshold + 16)
    # A segment is one item, in which all counts of a unit may come together: `per_cell` is of steps.
    sums = plan_counters(
        RunningSum(segments), privacy=half, unit=AddRemove(unit.records, label=unit.label), mechanism="auto"
    )
    ways["above"] = threshold + late + _largest_half_width(sums, 1.0 - risk, segments)
    if mechanism == "auto" and ways["plain"] <= ways["above"]:
        return SparsePlan(workload, privacy, unit, None, None, plain, ways)
    return SparsePlan(workload, privacy, unit, threshold, share, sums, ways)
