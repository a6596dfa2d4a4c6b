"""A plan: mechanism, noise, expected error and certificate, before any data is touched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sordino import _core
from sordino.accuracy.bounds import Bound, gaussian_bound, spectral_bound, spectrum, unbiased_bound
from sordino.accuracy.factorizations import Factorization
from sordino.errors import InvalidParameterError, UnsupportedMechanismError
from sordino.mechanisms.linear.fit import Domain, Fitted, Objective, Request, fit, kind_of_error, least_gaussian_error
from sordino.mechanisms.linear.projections import zero_is_better
from sordino.mechanisms.linear.sparsity_choice import SparsityChoice
from sordino.privacy.costs import Cost
from sordino.privacy.guarantees import Privacy, PureDP
from sordino.privacy.ledger import Ledger, released
from sordino.privacy.units import Unit, group_of
from sordino.privacy.wording import promise_of
from sordino.releases.arrays import read_cells
from sordino.releases.release import Release
from sordino.releases.sketches import Sketch
from sordino.workloads import Filter, GroupConvolution, Workload
from sordino.workloads.base import Array
from sordino.workloads.constraints import Constraint

if TYPE_CHECKING:
    from sordino.plans.planner import Comparison

__all__ = ["Plan"]

_NOISES = {"l2": "Gaussian", "l1": "Laplace", "blocks": "norm of blocks", "body": "K-norm"}


@dataclass(frozen=True, eq=False)
class Plan:
    """How a workload will be answered: made by `sordino.plan`, costs nothing, can be saved and read.

    Attributes:
        request: What was asked for.
        requested: Mechanism as asked for: a name or 'auto'.
        fitted: Strategy, lattice and noise.
    """

    request: Request
    requested: str
    fitted: Fitted = field(repr=False)

    @property
    def workload(self) -> Workload:
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
    def objective(self) -> Objective:
        """What was minimised, 'mean' or 'max'."""
        return self.request.objective

    @property
    def integral(self) -> bool:
        """Whether cells are declared integers."""
        return self.request.integral

    @property
    def mechanism(self) -> str:
        """Full name of the mechanism, such as 'fourier-gaussian'."""
        return self.fitted.mechanism.name

    @property
    def domain(self) -> Domain:
        """Declared bounds of the input: cells are clamped to them."""
        return self.fitted.domain

    @property
    def cost(self) -> Cost:
        """What a release costs: at most the requested privacy."""
        return self.fitted.cost

    @property
    def noise_multiplier(self) -> float | None:
        """Gaussian only: standard deviation over l2 sensitivity as calibrated, None for Laplace noise."""
        return self.fitted.ratio if self.fitted.mechanism.law == "gaussian" else None

    @property
    def sensitivity(self) -> dict[str, float]:
        """Upper bounds of what neighbours differ by in the measured norm, by cause."""
        return dict(zip(("ideal", "encoding", "rounding"), self.fitted.door.sensitivity, strict=True))

    @property
    def stderr(self) -> Array:
        """Standard deviation of every answer, before any post-processing, in the shape of the answers.

        Raises:
            UnsupportedMechanismError: Only a sketch is measured: it has no unbiased answers.
        """
        if self.max_stderr is None:
            raise UnsupportedMechanismError("what a sketch does to a single answer is not known, only the mean error")
        return self.fitted.stderr.reshape(self.workload.answers_shape)

    @property
    def rmse(self) -> float:
        """Root mean squared error over the answers (weighted as the workload says)."""
        return self.fitted.rmse

    @property
    def rmse_kind(self) -> str:
        """How `rmse` is known.

        'exact': answers are unbiased and their variance is known in closed form. 'upper bound': it is at least the
        true one. 'noise only': answers are projected or recovered; it is the error of the unprojected ones, or of a
        recovery of data that are as sparse as is looked for.
        """
        return self.fitted.rmse_kind

    @property
    def max_stderr(self) -> float | None:
        """Largest standard deviation of an answer, before any post-processing; None, not known, for a sketch."""
        return self.fitted.max_stderr

    @property
    def inflation(self) -> float:
        """Relative growth of the noise by lattice, encoding and rounding up."""
        return self.fitted.inflation

    @cached_property
    def gaussian_bound(self) -> Bound | None:
        """Least error of any mechanism with Gaussian noise; None under `PureDP`, where there is none."""
        own = None if self.factorization is None else self.factorization.certificate
        if own is not None and own.objective == self.objective:
            return gaussian_bound(self.workload, self.privacy, self.unit, own)
        return least_gaussian_error(self.request)

    @property
    def factorization(self) -> Factorization | None:
        """What is measured, for mechanisms found by a search, with the certificate of its optimality."""
        return self.fitted.factorization

    @property
    def constraint(self) -> Constraint | None:
        """What is publicly known about the input, for projections."""
        return self.request.constraint

    @property
    def optimality(self) -> float | None:
        """Error over `gaussian_bound` for Gaussian mechanisms (1 is the optimum), None for others."""
        return self.fitted.over(self.gaussian_bound, self.objective)

    @property
    def ideal_optimality(self) -> float | None:
        """`optimality` with real arithmetic: no lattice, no rounding."""
        over = self.optimality
        if self.objective != "mean" or over is None:
            return None
        return over * self.fitted.ideal_rmse / self.fitted.rmse

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """Every lower bound that applies."""
        found = (
            self.gaussian_bound,
            unbiased_bound(self.workload, self.privacy, self.unit),
            spectral_bound(self.workload),
        )
        return tuple(bound for bound in found if bound is not None)

    def guarantee(self, records: int | None = None) -> str:
        """Return the guarantee in one plain sentence, for a group of `records` records if given.

        Raises:
            DataTypeError: `records` is no integer.
            InvalidParameterError: `records` is not from 1 to 2**63.
        """
        if records is None:
            return f"{self.unit.protected()} is protected by {self.promise}."
        count = group_of(records)
        promise = promise_of(self.cost, self.unit.units_in(count), self.privacy)
        return f"Any {count} single records together are protected by {promise} (unit: {self.unit.label})."

    @property
    def promise(self) -> str:
        """The guarantee for one unit, without the unit: '1-differential privacy'."""
        return promise_of(self.cost, 1, self.privacy)

    def release(self, data: object, *, ledger: Ledger | None = None, request_id: str | None = None) -> Release:
        """Measure private data once: the only call that touches it.

        The call is checked first, then the budget is charged, then noise is drawn. A repeated `request_id` is
        answered from the ledger's record if it was made from the same plan, and refused otherwise.

        Args:
            data: Table of shape `workload.input_shape` (array, list or column), or record codes for marginals; for a
                compressive plan also a `Sketch` that was made with the same compression.
            ledger: Where the cost is charged; None leaves the release unaccounted.
            request_id: Name of the request, charged at most once.

        Returns:
            The release.

        Raises:
            DataTypeError: The data is no array of numbers, or the ledger no ledger.
            ShapeError: The data has another shape.
            InvalidParameterError: The data has entries that are not finite, or noise is deterministic and a
                ledger is given.
            BudgetExceededError: The ledger's total would be exceeded.
            UnsupportedCostError: The ledger cannot count this event.
            DuplicateRequestError: The request was made before, from another plan.
            ForkError: The ledger belongs to another process.
            EntropyError: The operating system gives no randomness; the budget stays charged.
        """

        def prepare(key: bytes | None) -> Callable[[], Release]:
            values, index = self._read(data)
            if self._open_choice is not None:
                self._open_choice.try_basis(self.request, values)
            return lambda: self._measured(values, index, key, accounted=ledger is not None)

        def finish(measured: Release) -> Release:
            return measured.plan._processed(measured)

        return released(ledger, request_id, self.cost, self.unit.label, self._answered_by, prepare, finish)

    def _measured(self, values: Any, index: Any, key: bytes | None, *, accounted: bool) -> Release:
        """Return what was measured, before the mechanism does anything with it."""
        plan = self._with_choice(values, key)
        measured = plan.fitted.door.measure(plan.fitted.strategy, values, key)
        return Release(
            plan=plan,
            measured=measured,
            values=plan._decoded(measured),
            index=index,
            private=key is None,
            accounted=accounted,
            asked=self,
        )

    def sketch(self) -> Sketch:
        """Return an empty sketch for this plan, to be filled here or elsewhere and released once.

        Raises:
            UnsupportedMechanismError: The mechanism measures no sketch, or its sparsity is chosen from the table.
        """
        compression = self.request.compression
        if self.fitted.mechanism.strategy != "compressive" or compression is None:
            raise UnsupportedMechanismError("only a compressive plan measures a sketch")
        if self._open_choice is not None:
            raise UnsupportedMechanismError("a sparsity chosen from the data needs the table: give it as a number")
        return Sketch.of(compression.operator(self.workload.core.input_len or 0))

    def _read(self, data: object) -> tuple[Any, Any]:
        """Return what the door takes, checked, and labels of the input."""
        if isinstance(data, Sketch):
            return self._sums(data), None
        mechanism = self.fitted.mechanism
        counted = mechanism.factored or mechanism.strategy == "compressive"
        return read_cells(data, self.workload, self.integral, self.unit, counted=counted)

    def _decoded(self, measured: _core.Measured) -> Array:
        """Return the answers as they were measured; a sketch has none before its table is recovered."""
        if self.fitted.mechanism.strategy == "compressive":
            return np.full(self.workload.answers_shape, np.nan)
        return _core.decode(self.fitted.strategy, measured).reshape(self.workload.answers_shape)

    def _processed(self, release: Release) -> Release:
        """Do what the mechanism does with what was measured, if it was not done."""
        if release.post_processing:
            return release
        match self.fitted.mechanism.strategy:
            case "compressive":
                return release.reconstructed()
            case "threshold":
                return release.thresholded(self.request.basis)
            case "isotonic":
                return release.monotone()
            case _:
                return release if self.constraint is None else release.projected()

    def _sums(self, sketch: Sketch) -> _core.Sketch:
        """Return the sums of a sketch that this plan measures.

        Raises:
            InvalidParameterError: It was made with another kind, seed or size, or the plan has real cells.
        """
        if sketch.operator != self.sketch().operator:
            raise InvalidParameterError("the sketch was made with another kind, seed or size than the plan's")
        if not self.integral:
            raise InvalidParameterError("a sketch has sums of integers: plan with integral=True")
        return sketch.core

    @property
    def _open_choice(self) -> SparsityChoice | None:
        """The choice of a sparsity that a release makes first, if any."""
        compression = self.request.compression
        if self.fitted.mechanism.strategy != "compressive" or compression is None or compression.made:
            return None
        return SparsityChoice(compression)

    def _with_choice(self, values: Any, key: bytes | None) -> Plan:
        """Return the plan with its sparsity chosen from the data, if it is to be: the first half of a release."""
        choice = self._open_choice
        if choice is None or self.request.compression is None:
            return self
        sparsity = choice.select(self.request, self.fitted, values, key)
        request = replace(self.request, compression=self.request.compression.chosen(sparsity))
        return replace(self, request=request, fitted=fit(request, self.fitted.mechanism))

    def _answered_by(self, record: object) -> Release | None:
        """Return the record of a request if it is a release that answers this plan."""
        return record if isinstance(record, Release) and self._asks_the_same_as(record.asked) else None

    def _asks_the_same_as(self, other: Plan | None) -> bool:
        """Return whether a release of another plan answers this one."""
        if other is None or other is self:
            return other is self
        try:
            return other.digest == self.digest
        except UnsupportedMechanismError:
            # A basis given by functions has no digest: such a plan is itself alone.
            return False

    def record(self) -> dict[str, Any]:
        """Return the plan as a JSON-like record; arrays of the workload stay arrays."""
        from sordino.plans.file import plan_record  # noqa: PLC0415 - plan_file rebuilds plans

        return plan_record(self)

    @property
    def digest(self) -> str:
        """SHA-256 of the record: what two equal plans have in common."""
        from sordino.plans.file import plan_digest  # noqa: PLC0415

        return plan_digest(self)

    def save(self, path: str | Path) -> Path:
        """Write the plan as JSON, large arrays in an `.npz` beside it.

        Raises:
            InputFileError: The file cannot be written.
        """
        from sordino.plans.file import save_plan  # noqa: PLC0415

        return save_plan(self, path)

    @staticmethod
    def load(path: str | Path) -> Plan:
        """Read a plan and verify it: the noise is fitted again, and a plan that stores less is refused.

        Raises:
            InputFileError: The file cannot be read.
            PlanFileError: The file is no plan, was altered, or understates noise or cost.
        """
        from sordino.plans.file import load_plan  # noqa: PLC0415

        return load_plan(path)

    def compare(self) -> Comparison:
        """Return `sordino.compare` for the same request."""
        from sordino.plans.planner import compare  # noqa: PLC0415

        return compare(
            self.workload,
            self.privacy,
            unit=self.unit,
            objective=self.objective,
            max_value=self.request.max_value,
            integral=self.integral,
            constraint=self.constraint,
            effort=self.request.effort,
            basis=self.request.basis,
            compression=self.request.compression,
            memory=self.request.memory,
        )

    def explain(self) -> str:
        """Return what will happen and why, in a few lines of text."""
        fitted = self.fitted
        kind = _NOISES[fitted.strategy.geometry]
        option = f" (branching {fitted.branching})" if fitted.mechanism.strategy == "tree" else ""
        chosen = "chosen by auto" if self.requested == "auto" else "as asked"
        lines = [
            f"{self.workload!r}",
            f"mechanism      {self.mechanism}{option}, {chosen}",
            f"guarantee      {self.guarantee()}",
            f"noise          {kind}, {fitted.strategy.measured_len} numbers on the lattice 2^{fitted.door.grid}",
            f"               inflation by lattice and rounding {self.inflation:.2g}",
            f"input          cells clamped to [-{self.domain.max_value}, {self.domain.max_value}], "
            + ("integers" if self.integral else f"rounded to 2^-{self.domain.fraction_bits}"),
            f"error          rmse {self.rmse:.6g}{kind_of_error(self.rmse_kind)}, largest standard error "
            + ("not known" if self.max_stderr is None else f"{self.max_stderr:.6g}"),
        ]
        lines.extend(self._search_lines())
        lines.extend(self._recovery_lines())
        bound = self.gaussian_bound
        if bound is None and not isinstance(self.privacy, PureDP):
            lines.append("bound          none is known for queries of this kind and size")
        elif bound is None:
            lines.append("bound          under pure privacy no Gaussian mechanism exists")
        elif self.optimality is not None:
            lines.append(f"bound          {bound.value:.6g} ({bound.name}; {bound.mechanisms})")
            lines.append(f"optimality     {self.optimality:.6g} times the least error of any Gaussian mechanism")
        elif self.fitted.mechanism.projected or self.fitted.mechanism.recovered:
            lines.append(f"bound          {bound.value:.6g} ({bound.name}), which does not bind biased answers")
        elif self.rmse < bound.value:
            lines.append(
                f"bound          no Gaussian mechanism gets below {bound.value:.6g} ({bound.name}); "
                "Laplace noise does: the bound does not bind it, so there is no optimality ratio"
            )
        else:
            lines.append(f"bound          {bound.value:.6g} ({bound.name}), which does not bind Laplace noise")
        for other in self.bounds[1 if bound is not None else 0 :]:
            if other.up_to_constant and isinstance(self.workload, Filter | GroupConvolution):
                factor = spectrum(self.workload).factor
                lines.append(
                    f"specLB         F/specLB = {factor / other.value**2:.4g}, up to a constant "
                    "(the paper's bound on every mechanism)"
                )
            else:
                lines.append(f"bound          {other.value:.6g} ({other.name})")
        return "\n".join(lines)

    def _search_lines(self) -> list[str]:
        """Say what was searched for and how the answers are projected."""
        lines = []
        found, constraint = self.factorization, self.constraint
        if found is not None and found.gap is not None:
            # Entries are rounded before they are measured: what counts is the measured matrix.
            gap = max(found.gap, (self.optimality or 1.0) - 1.0)
            lines.append(
                f"search         within {gap:.2g} of the least error, certified, after {found.iterations} iterations"
            )
        if constraint is not None:
            lines.append(f"projection     answers are projected onto {constraint}; intervals are around the others")
            if zero_is_better(self.request, self.fitted):
                lines.append(
                    "               an answer of zero to every query would have less error than the noise: "
                    "unless the projection helps much, so few records say little at this privacy"
                )
        return lines

    def _recovery_lines(self) -> list[str]:
        """Say what is looked for in what was measured, and what that can do."""
        compression, strategy = self.request.compression, self.fitted.mechanism.strategy
        if strategy == "threshold":
            return [f"recovery       coefficients above the noise in the {self.request.basis.name} basis are kept"]
        if strategy == "isotonic":
            return ["recovery       the nearest rising table: never further from the truth than the noise"]
        if strategy != "compressive" or compression is None:
            return []
        cells = self.workload.core.input_len or 0
        measurements, sparsity = compression.sizes(cells)
        chosen = " (the largest candidate; chosen privately)" if self._open_choice is not None else ""
        return [
            f"sketch         {compression.sketch}, {measurements} numbers in place of {cells}, seed {compression.seed}",
            f"recovery       {compression.recovery}, {sparsity} coefficients{chosen} in the "
            f"{compression.transform.name} basis; the rmse is planned for data that has no more",
            "               above the noise: coefficients that it hides are lost, what is beyond comes on top",
            "               with room for all cells, a threshold on them has less error: mechanism='threshold'",
        ]

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw the expected error of every answer and, for convolutions, the spectrum.

        Returns:
            The matplotlib figure.

        Raises:
            MissingDependencyError: matplotlib is not installed.
        """
        from sordino.plots.tables import plot_plan  # noqa: PLC0415 - optional extra

        return plot_plan(self, path)

    def __repr__(self) -> str:
        return (
            f"Plan({self.workload!r}, {self.privacy!r}, mechanism={self.mechanism!r}, "
            f"rmse={self.rmse:.6g}{kind_of_error(self.rmse_kind)})"
        )
