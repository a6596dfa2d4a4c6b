"""A strategy for tables with its noise, beside what is possible, in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from sordino import _core
from sordino.accuracy.bounds import (
    Bound,
    gaussian_bound,
    norm_bound,
    over_spectral_bound,
    spectral_bound,
    unbiased_bound,
)
from sordino.accuracy.count_bounds import count_bound
from sordino.errors import UnsupportedMechanismError
from sordino.mechanisms.adaptive.trees import advice
from sordino.mechanisms.fits import Request, kind_of_error
from sordino.mechanisms.linear.catalogue import WRITTEN, of_filters, of_ranges
from sordino.mechanisms.linear.effort import affords, improves
from sordino.mechanisms.linear.half_widths import largest_half_width
from sordino.mechanisms.linear.measurement import LinearMeasurement, door_of
from sordino.mechanisms.linear.projections import zero_is_better
from sordino.mechanisms.linear.search import factorize
from sordino.mechanisms.linear.sparsity_choice import SparsityChoice
from sordino.privacy.guarantees import PureDP
from sordino.workloads import Filter, GroupConvolution, Marginals
from sordino.workloads.constraints import PublicTotal

__all__ = ["LinearFit", "least_gaussian_error"]

# Cells are counts without an upper bound where they may be this much larger than the error.
_LARGE = 64.0
# Cells of which a projection may take minutes.
_MINUTES = 2**17
# Cells up to which ranges have a balanced root.
_LONGEST_ROOT = 2**23
# Cells up to which the balanced root is found, and an error over the bound that is worth the time.
_ROOTS = 4096
_FAR = 1.05
_NOISES = {
    "l2": "Gaussian",
    "l1": "Laplace",
    "blocks": "norm of blocks",
    "boxes": "norm of the largest of a block",
    "body": "K-norm",
}


@dataclass(frozen=True, eq=False, repr=False)
class LinearFit(LinearMeasurement):
    """A strategy for tables with its noise, beside what is possible: fields are those of `LinearMeasurement`."""

    family: ClassVar[str] = "linear"
    tie: ClassVar[float] = 1.005

    def largest_half_width(self, level: float) -> float:
        """Return the half width of the widest interval; of more than 8 answers of those looked at, with large errors.

        Raises:
            UnsupportedMechanismError: Only a sketch is measured.
        """
        if self.max_stderr is None:
            return super().largest_half_width(level)
        if not self.one_law and self.request.workload.is_listed:
            return largest_half_width(self, level)
        return float(self.half_widths(np.array([self.max_stderr]), level)[0])

    @cached_property
    def bound(self) -> Bound | None:
        """Least error of any mechanism with noise of this law, as far as it is known; else of Gaussian noise.

        None under `PureDP`, where there is no Gaussian noise, unless whole counts are published.
        """
        if self.mechanism.law == "laplace" and (count := self._count_bound) is not None:
            return count
        own, request = None if self.factorization is None else self.factorization.certificate, self.request
        if own is not None and own.objective == request.objective:
            return gaussian_bound(request.workload, request.privacy, request.unit, own)
        return least_gaussian_error(request)

    @property
    def _count_bound(self) -> Bound | None:
        """The least error of a count, where cells are not so small that publishing a constant would be better."""
        request = self.request
        found = count_bound(request.workload, request.privacy, request.unit) if request.integral else None
        return found if found is not None and self.domain.max_value >= _LARGE * found.value else None

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """Every lower bound that applies."""
        request = self.request
        gaussian = self.bound if self.mechanism.law == "gaussian" else least_gaussian_error(request)
        found = (
            self.bound,
            gaussian if gaussian != self.bound else None,
            norm_bound(request.workload, request.privacy, request.unit) if self._has_norm else None,
            unbiased_bound(request.workload, request.privacy, request.unit),
            spectral_bound(request.workload),
        )
        return tuple(bound for bound in found if bound is not None)

    @property
    def _has_norm(self) -> bool:
        """Whether there is pure noise of a norm on several numbers."""
        shared = self.strategy.geometry == "common" or self.staircase is not None
        composed = self.mechanism.strategy == "fourier-composed"
        return self.mechanism.law == "laplace" and not (shared or composed or self.is_biased)

    def over(self, bound: Bound | None) -> float | None:
        """Return the error over a bound; None where it does not bind or is zero, and for biased answers."""
        if self.is_biased:
            return None
        if bound is not None and bound.binds_all:
            return self.error(self.request.objective) / bound.value
        return super().over(bound)

    @property
    def ideal_optimality(self) -> float | None:
        """`optimality` with real arithmetic: no lattice, no rounding."""
        over = self.optimality
        if self.request.objective != "mean" or over is None:
            return None
        return over * self.ideal_rmse / self.rmse

    @property
    def open_choice(self) -> SparsityChoice | None:
        """The choice of a sparsity that a release makes first, if any."""
        compression = self.request.compression
        if self.mechanism.strategy != "compressive" or compression is None or compression.made:
            return None
        return SparsityChoice(compression)

    def record(self) -> dict[str, Any]:
        """Return the fit as a JSON-like record; a basis in which nothing is looked for is not in it.

        Raises:
            UnsupportedMechanismError: A basis that matters is given by functions.
        """
        record = super().record()
        if self.mechanism.strategy != "threshold":
            record["request"]["basis"] = "haar"
        return record

    def details(self) -> dict[str, Any]:
        """Return what a file says beyond the common.

        Raises:
            UnsupportedMechanismError: A basis is given by functions.
        """
        if self.mechanism.strategy == "threshold" and self.request.basis.name == "custom":
            raise UnsupportedMechanismError("a basis given by functions cannot be saved: keep the plan in memory")
        found, bound = self.factorization, self.bound
        return {
            "noise_ratio": self.ratio,
            "branching": self.branching,
            **({"parts": [part.to_json() for part in self.parts]} if self.parts else {}),
            "factorization": None if found is None else found.to_json(),
            "sensitivity": self.sensitivity,
            "bound": None if bound is None else {"name": bound.name, "value": bound.value, "class": bound.mechanisms},
        }

    def lines(self) -> list[str]:
        """Say what will be measured and how good that is."""
        lines = [
            self._noise_line(),
            f"               inflation by lattice and rounding {self.inflation:.2g}",
            f"input          cells clamped to [-{self.domain.max_value}, {self.domain.max_value}], "
            + ("integers" if self.request.integral else f"rounded to 2^-{self.domain.fraction_bits}"),
            f"error          rmse {self.rmse:.6g}{kind_of_error(self.rmse_kind)}, largest standard error "
            + ("not known" if self.max_stderr is None else f"{self.max_stderr:.6g}"),
        ]
        if (other := self.passed_over) is not None:
            lines.append(
                f"passed over    {other.name}, rmse {other.rmse:.6g}, for cells of at most {other.domain.max_value}: "
                "declare max_value= if yours are"
            )
        if self.mechanism.strategy == "tree":
            lines.insert(0, f"branching      {self.branching}")
        for number, part in enumerate(self.parts, 1):
            lines.insert(number - 1, f"part {number:<10}{part.mechanism}")
        lines += [*self._total_lines(), *advice(self.request)]
        return [*lines, *self._limit_lines(), *self._search_lines(), *self._recovery_lines(), *self._bound_lines()]

    def _total_lines(self) -> list[str]:
        """Say of marginals how the total is known that `consistent` rests on."""
        workload = self.request.workload
        if not isinstance(workload, Marginals) or isinstance(self.request.constraint, PublicTotal):
            return []
        residuals = self.mechanism.strategy == "fourier"
        if workload.total_share:
            used = (
                "the total has its share" if residuals else "total_share means nothing here: no residuals are measured"
            )
            return [f"consistent     {used}"]
        if not residuals:
            return []
        return ["consistent     the total is hardly measured: total_share=.02 costs 1 % of error if tables shall agree"]

    def _limit_lines(self) -> list[str]:
        """Say where another mechanism may have less error, and is not planned."""
        workload = self.request.workload.merged
        cells = workload.core.input_len or 0
        pure = self.mechanism.law == "laplace" and self.factorization is None
        if (
            pure
            and of_filters(workload)
            and not of_ranges(workload)
            and not affords(self.request, "laplace", "p-identity")
        ):
            return [
                "limit          sums beside the cells are searched for by name alone here: "
                "mechanism='p-identity' may have less error"
            ]
        if isinstance(self.request.privacy, PureDP):
            return []
        other = self.mechanism.law == "laplace" or self.mechanism.strategy == "identity"
        if other and of_ranges(workload) and cells > _LONGEST_ROOT:
            return [
                f"limit          the balanced root of more than {_LONGEST_ROOT:,} cells would take too much memory: "
                "merge cells, fewer have less error"
            ]
        searched = self.factorization is not None or self.mechanism.strategy == "balanced"
        if WRITTEN < cells <= _ROOTS and not searched and (self.optimality or 1.0) > _FAR:
            return [
                f"limit          the balanced root of more than {WRITTEN:,} cells is taken by name alone: "
                "mechanism='balanced' is planned in minutes, and may have less error"
            ]
        return []

    def _noise_line(self) -> str:
        """Say which noise is put on how many numbers, and on which lattice."""
        measured = self.strategy.measured_len
        steps, rates, _ = self.door.discrete
        if self.strategy.geometry == "common":
            own, common = np.sqrt([self.strategy.unit_variances()[0], self.strategy.common_noise]) * self.door.noise
            law = "discrete Laplace" if len(steps) else "Gaussian"
            total = math.hypot(common * measured, own * math.sqrt(measured))
            alone = door_of(_core.Strategy(self.request.workload.core, "identity", self.mechanism.law),
                          self.request.unit, self.domain, self.ratio)  # fmt: skip
            white = math.sqrt(2.0 if len(steps) else 1.0)
            return (
                f"noise          {law}, {own:.6g} on each of {measured} numbers and {common:.6g} on all together\n"
                f"               the total of all has {total:.6g}, with noise on each alone "
                f"{white * alone.noise * math.sqrt(measured):.6g}"
            )
        if not len(steps):
            noise = _NOISES[self.strategy.geometry]
            return f"noise          {noise}, {measured} numbers on the lattice 2^{self.door.grid}"
        what = "whole counts" if self.request.integral else f"the grid 2^-{self.domain.fraction_bits}"
        if self.staircase is not None:
            return (
                f"noise          staircase of {self.staircase.width} steps, one number on {what}, exact with "
                f"probability {self.staircase.unmoved:.3g}"
            )
        low, high = (math.tanh(0.5 * float(rate)) for rate in (rates.min(), rates.max()))
        chance = f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
        return f"noise          discrete Laplace, {measured} numbers on {what}, exact with probability {chance}"

    def _search_lines(self) -> list[str]:
        """Say what was searched for and how the answers are projected."""
        lines = []
        found, constraint = self.factorization, self.request.constraint
        if found is not None and found.gap is not None:
            # Entries are rounded before they are measured: what counts is the measured matrix.
            gap = max(found.gap, (self.optimality or 1.0) - 1.0)
            lines.append(
                f"search         within {gap:.2g} of the least error, certified, after {found.iterations} iterations"
            )
            if (
                self.request.unit.changes is not None
                and found.certificate is not None
                and not found.certificate.several
            ):
                lines.append(
                    "               for changes of one cell: what several change together is charged, not searched for"
                )
        if constraint is not None:
            lines.append(f"projection     answers are projected onto {constraint}; intervals are around the others")
            if (self.request.workload.core.input_len or 0) > _MINUTES:
                lines.append(
                    "               that may take minutes with so many cells; it can be interrupted and repeated"
                )
            if zero_is_better(self):
                lines.append(
                    "               an answer of zero to every query would have less error than the noise: "
                    "unless the projection helps much, so few records say little at this privacy"
                )
        return lines

    def _recovery_lines(self) -> list[str]:
        """Say what is looked for in what was measured, and what that can do."""
        compression, strategy = self.request.compression, self.mechanism.strategy
        if strategy == "threshold":
            return [f"recovery       coefficients above the noise in the {self.request.basis.name} basis are kept"]
        if strategy == "isotonic":
            return ["recovery       the nearest rising table: never further from the truth than the noise"]
        if strategy != "compressive" or compression is None:
            return []
        cells = self.request.workload.core.input_len or 0
        measurements, sparsity = compression.sizes(cells)
        chosen = " (the largest candidate; chosen privately)" if self.open_choice is not None else ""
        return [
            f"sketch         {compression.sketch}, {measurements} numbers in place of {cells}, seed {compression.seed}",
            f"recovery       {compression.recovery}, {sparsity} coefficients{chosen} in the "
            f"{compression.transform.name} basis; the rmse is planned for data that has no more",
            "               above the noise: coefficients that it hides are lost, what is beyond comes on top",
            "               with room for all cells, a threshold on them has less error: mechanism='threshold'",
        ]

    def _bound_lines(self) -> list[str]:
        """Say how near the error is to what is possible."""
        bound, optimality, lines = self.bound, self.optimality, []
        if bound is None and not isinstance(self.request.privacy, PureDP):
            lines.append("bound          none is known for queries of this kind and size")
        elif bound is None:
            lines.append("bound          under pure privacy no Gaussian mechanism exists")
        elif optimality is not None:
            lines.append(f"bound          {bound.value:.6g} ({bound.name}; {bound.mechanisms})")
            whose = "any Gaussian mechanism"
            if bound.binds_all:
                pure = isinstance(self.request.privacy, PureDP)
                whose = "any mechanism" if pure else "any mechanism that publishes whole numbers"
            lines.append(f"optimality     at most {optimality:.6g} times the least error of {whose}")
        elif self.is_biased:
            lines.append(f"bound          {bound.value:.6g} ({bound.name}), which does not bind biased answers")
        elif self.rmse < bound.value:
            lines.append(
                f"bound          no Gaussian mechanism gets below {bound.value:.6g} ({bound.name}); "
                "Laplace noise does: the bound does not bind it, so there is no optimality ratio"
            )
        else:
            lines.append(f"bound          {bound.value:.6g} ({bound.name}), which does not bind Laplace noise")
        for other in self.bounds[1 if bound is not None else 0 :]:
            if other.up_to_constant and isinstance(self.request.workload, Filter | GroupConvolution):
                lines.append(
                    f"specLB         F/specLB = {over_spectral_bound(self.request.workload):.4g}, up to a constant "
                    "(the paper's bound on every mechanism)"
                )
            elif other.mechanisms == "noise of a norm":
                lines.append(f"bound          {other.value:.6g} ({other.name})")
                lines.append(f"               at most {self.rmse / other.value:.3g} times the least rmse of such noise")
            else:
                lines.append(f"bound          {other.value:.6g} ({other.name})")
        return lines


def least_gaussian_error(request: Request) -> Bound | None:
    """Return the best known bound on the error of every Gaussian mechanism; searched for where that is quick."""
    certificate = None
    if improves(request) and not isinstance(request.privacy, PureDP):
        certificate = factorize(request.workload, objective=request.objective, unit=request.unit).certificate
    return gaussian_bound(request.workload, request.privacy, request.unit, certificate)
