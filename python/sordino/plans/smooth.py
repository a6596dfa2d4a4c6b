"""A plan of smooth queries: what will be summed, with what noise, before any point is touched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sordino._support.checks import open_unit
from sordino.errors import UnsupportedMechanismError
from sordino.mechanisms.smooth.fit import SmoothFitted, SmoothRequest, count_is_public
from sordino.mechanisms.smooth.uniform import uniform_error
from sordino.privacy.costs import Cost
from sordino.privacy.guarantees import Privacy
from sordino.privacy.ledger import Ledger, released
from sordino.privacy.units import Unit, group_of
from sordino.privacy.wording import promise_of
from sordino.releases.smooth.point_sums import PointSums
from sordino.releases.smooth.release import SmoothRelease
from sordino.workloads.base import Array
from sordino.workloads.smooth.base import SmoothQueries, memory
from sordino.workloads.smooth.queries import KernelQueries

if TYPE_CHECKING:
    from sordino.plans.smooth_planner import SmoothComparison

__all__ = ["SmoothPlan"]

_SUMMED = {
    "kernel": "features of the kernel",
    "chebyshev": "Chebyshev polynomials",
    "weighted": "Chebyshev polynomials, weighted",
    "moments": "Chebyshev polynomials of total degree 2",
    "histogram": "cells",
}

# Sums up to which an explanation says whether their bound over the whole class is one: it takes a moment for each.
_JUDGED = 2**20


@dataclass(frozen=True, eq=False)
class SmoothPlan:
    """How smooth queries will be answered: made by `sordino.plan`, costs nothing, can be saved and read.

    Attributes:
        request: What was asked for.
        requested: Mechanism as asked for: a name or 'auto'.
        fitted: Features, lattice and noise.
    """

    request: SmoothRequest
    requested: str
    fitted: SmoothFitted = field(repr=False)

    @property
    def workload(self) -> SmoothQueries:
        """The queries."""
        return self.request.workload

    @property
    def privacy(self) -> Privacy:
        """What a release guarantees."""
        return self.request.privacy

    @property
    def unit(self) -> Unit:
        """For whom: what one protected thing can change."""
        return self.request.unit

    @property
    def mechanism(self) -> str:
        """Full name of the mechanism, such as 'kernel-gaussian'."""
        return self.fitted.mechanism.name

    @property
    def count_is_public(self) -> bool:
        """Whether the number of points is public: with `ReplaceOne`."""
        return count_is_public(self.unit)

    @property
    def features(self) -> int:
        """Number of sums."""
        return self.fitted.features.features

    @property
    def sizes(self) -> tuple[int, ...]:
        """Polynomials, features or cells on every axis; empty for declared queries."""
        return self.fitted.sizes

    @property
    def cost(self) -> Cost:
        """What a release costs: at most the requested privacy."""
        return self.fitted.cost

    @property
    def sensitivity(self) -> dict[str, float]:
        """Upper bounds of what neighbours differ by in the measured norm, in the measured unit, by cause."""
        return dict(zip(("ideal", "encoding", "rounding"), self.fitted.door.sensitivity, strict=True))

    @property
    def stderr(self) -> Array:
        """Standard deviations of the estimated sums, shape (features,), then of the number of points if measured."""
        return self.fitted.stderr

    @property
    def noise(self) -> float:
        """Root mean square of the noise in averages of the class, for `workload.points` points."""
        return self.fitted.noise

    @property
    def truncation(self) -> float:
        """Root mean square of what queries of the class lose by being cut off: a public estimate.

        For `KSmooth` a bound over the whole class; for a histogram for points of a smooth density.
        """
        return self.fitted.truncation

    @property
    def rmse(self) -> float:
        """Expected error of an average of the class: `noise` and `truncation` together."""
        return self.fitted.rmse

    @property
    def rmse_kind(self) -> str:
        """'estimate': over the class as it was declared, for its number of points."""
        return "estimate"

    @property
    def inflation(self) -> float:
        """Relative growth of the noise by lattice and rounding."""
        return self.fitted.inflation

    def uniform_error(self, beta: float) -> float:
        """Return what no query of the whole class is off by more than, with probability at least `1 - beta`.

        Truncation and noise together, over all queries at once: for `KSmooth` classes the paper's Theorem 3.1 with its
        constants. Of the answer, or of 0 where that is surer: never above what no query of the class exceeds, B, or 1
        for kernels. At that value it gives no information: answering 0 is as good.

        Queries of a class of kernels as `at` makes them; those of a `CoefficientPrior` whose coefficients do not exceed
        its sizes. How far the kernel mechanism's features are from the kernel is what was found on a grid.

        Args:
            beta: Probability that some query is off by more, over the noise alone.

        Raises:
            InvalidParameterError: `beta` is not strictly between 0 and 1.
            UnsupportedMechanismError: There is no bound for this mechanism or set of indices.
        """
        return uniform_error(self.request, self.fitted, open_unit("beta", beta))

    def guarantee(self, records: int | None = None) -> str:
        """Return the guarantee in one plain sentence, for a group of `records` points if given.

        Raises:
            DataTypeError: `records` is no integer.
            InvalidParameterError: `records` is not from 1 to 2**63.
        """
        if records is None:
            label = self.unit.label
            subject = f"Where {label} lies" if self.count_is_public else f"Whether {label} is there, and where,"
            return f"{subject} is protected by {self.promise}."
        count = group_of(records)
        promise = promise_of(self.cost, -(-count // self.unit.records), self.privacy)
        return f"Any {count} points together are protected by {promise} (unit: {self.unit.label})."

    @property
    def promise(self) -> str:
        """The guarantee for one unit, without the unit: '1-differential privacy'."""
        return promise_of(self.cost, 1, self.privacy)

    def sums(self, points: object = None) -> PointSums:
        """Return sums of points for this plan, to be filled here or elsewhere, merged, and released once.

        Args:
            points: First points, as `PointSums.update` takes them.
        """
        made = PointSums(self)
        return made if points is None else made.update(points)

    def release(self, data: object, *, ledger: Ledger | None = None, request_id: str | None = None) -> SmoothRelease:
        """Sum private points and publish the noisy sums: the only call that touches them.

        The points are summed and checked first, then the budget is charged, then noise is drawn. A repeated
        `request_id` is answered from the ledger's record if it was made from the same plan, and refused otherwise.

        Args:
            data: Points, shape (n, d) in data units, a table of d columns, an iterable of batches of them; or
                `PointSums` of this plan. Points outside the bounds are moved to the nearest inside.
            ledger: Where the cost is charged; None leaves the release unaccounted.
            request_id: Name of the request, charged at most once.

        Raises:
            DataTypeError: The data is no array of numbers, or the ledger no ledger.
            ShapeError: Another number of coordinates.
            InvalidParameterError: Points that are not finite, another number of them than is public, or noise is
                deterministic and a ledger is given.
            BudgetExceededError: The ledger's total would be exceeded.
            UnsupportedCostError: The ledger cannot count this event.
            DuplicateRequestError: The request was made before, from another plan.
            ForkError: The ledger belongs to another process.
            EntropyError: The operating system gives no randomness; the budget stays charged.
        """

        def prepare(key: bytes | None) -> Callable[[], SmoothRelease]:
            sums = data if isinstance(data, PointSums) else self.sums().update(data)
            if sums.features is not self.fitted.features:
                # Sums of an equal plan that was made elsewhere are checked feature by feature.
                sums = self.sums() + sums
            PointSums(self, sums.core).check_count()
            return lambda: SmoothRelease(
                self,
                self.fitted.door.measure(self.fitted.strategy, sums.core, key),
                private=key is None,
                accounted=ledger is not None,
            )

        return released(ledger, request_id, self.cost, self.unit.label, self._answered_by, prepare)

    def _answered_by(self, record: object) -> SmoothRelease | None:
        """Return the record of a request if it is a release that answers this plan."""
        same = isinstance(record, SmoothRelease) and (record.plan is self or record.plan.digest == self.digest)
        return record if same and isinstance(record, SmoothRelease) else None

    def record(self) -> dict[str, Any]:
        """Return the plan as a JSON-like record; arrays stay arrays."""
        from sordino.plans.smooth_file import smooth_record  # noqa: PLC0415 - plan_file rebuilds plans

        return smooth_record(self)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the record: what two equal plans have in common."""
        from sordino.plans.records import record_digest  # noqa: PLC0415

        return record_digest(self.record())

    def save(self, path: str | Path) -> Path:
        """Write the plan as JSON, large arrays in an `.npz` beside it.

        Raises:
            InputFileError: The file cannot be written.
        """
        from sordino.plans.records import write_record  # noqa: PLC0415

        return write_record(self.record(), path)

    @staticmethod
    def load(path: str | Path) -> SmoothPlan:
        """Read a plan and verify it: the noise is fitted again, and a plan that stores less is refused.

        Raises:
            InputFileError: The file cannot be read.
            PlanFileError: The file is no plan of smooth queries, was altered, or understates noise or cost.
        """
        from sordino.plans.smooth_file import load_smooth_plan  # noqa: PLC0415

        return load_smooth_plan(path)

    def compare(self) -> SmoothComparison:
        """Return `sordino.compare` for the same request."""
        from sordino.plans.smooth_planner import compare_smooth  # noqa: PLC0415

        return compare_smooth(self.workload, self.privacy, unit=self.unit)

    def explain(self) -> str:
        """Return what will happen and why, in a few lines of text."""
        fitted, workload = self.fitted, self.workload
        chosen = "chosen by auto" if self.requested == "auto" else "as asked"
        what = "declared queries, whitened" if workload.declared is not None else _SUMMED[fitted.mechanism.strategy]
        shape = " x ".join(map(str, fitted.sizes)) if fitted.indices is None else f"below {max(fitted.sizes)}"
        expected = f"private; about {workload.points} are expected"
        count = f"{workload.points}, public" if self.count_is_public else expected
        lines = [
            f"{workload!r}",
            f"mechanism      {self.mechanism}, {chosen}",
            f"guarantee      {self.guarantee()}",
            f"sums           {self.features} {what}"
            + (f" ({shape})" if fitted.sizes else "")
            + f", {memory(self.features)}",
            f"points         {count}; moved to the bounds where they are outside: "
            + ", ".join(f"[{low:g}, {high:g}]" for low, high in workload.bounds[:6])
            + (", ..." if workload.dimension > 6 else ""),
            f"noise          {'Gaussian' if fitted.mechanism.law == 'gaussian' else 'Laplace'}; "
            f"inflation by lattice and rounding {self.inflation:.2g}",
            f"error          {self.rmse:.4g} in an average of the class: noise {self.noise:.4g}, "
            f"truncation {self.truncation:.4g}",
        ]
        if fitted.mechanism.strategy == "kernel":
            lines.append("               the same noise for every kernel query, whatever the number of coordinates")
        if self._uninformative():
            lines.append("               no information for all queries of the class at once: answering 0 is as good")
        return "\n".join(lines)

    def _uninformative(self) -> bool:
        """Return whether the bound over the whole class is no better than that of the answer 0, 19 times of 20."""
        kind = self.workload.query_class
        if isinstance(kind, KernelQueries) or self.features > _JUDGED:
            return False
        try:
            return self.uniform_error(0.05) >= kind.ceiling
        except UnsupportedMechanismError:
            return False

    def __repr__(self) -> str:
        return f"SmoothPlan({self.workload!r}, {self.privacy!r}, mechanism={self.mechanism!r}, rmse={self.rmse:.4g})"
