"""From public facts to a fitted strategy: recipe, lattice, noise and error. Touches no data."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from sordino import _core
from sordino.accuracy.bounds import Bound, gaussian_bound, spectral_bound, spectrum, unbiased_bound
from sordino.accuracy.count_bounds import count_bound
from sordino.accuracy.factorizations import MOST_ENTRIES, Factorization
from sordino.accuracy.half_widths import (
    factor_of_boxes,
    factor_of_variance,
    gaussian_half_width,
    k_norm_half_width,
    laplace_half_width,
)
from sordino.accuracy.lattice_half_widths import (
    discrete_half_width,
    discrete_sum_half_width,
    equal_discrete_half_width,
    independent_discrete_half_width,
    standard_deviation,
)
from sordino.accuracy.staircase import Staircase
from sordino.errors import InvalidParameterError, UnsupportedMechanismError
from sordino.mechanisms.adaptive.trees import advice
from sordino.mechanisms.catalogue import Law
from sordino.mechanisms.fits import Domain, DoorFit, Request, choose_domain, kind_of_error
from sordino.mechanisms.linear.catalogue import MECHANISMS, Mechanism
from sordino.mechanisms.linear.common_noise import common_noise
from sordino.mechanisms.linear.effort import improves
from sordino.mechanisms.linear.half_widths import largest_half_width
from sordino.mechanisms.linear.projections import universal_bound, zero_is_better
from sordino.mechanisms.linear.search import Progress, factorize
from sordino.mechanisms.linear.sparsity_choice import SparsityChoice
from sordino.privacy.calibration import cost as calibrated_cost
from sordino.privacy.calibration import laplace_composition_ratio, noise_ratio
from sordino.privacy.costs import ApproxCost, Cost
from sordino.privacy.guarantees import ApproxDP, PureDP
from sordino.privacy.units import AddRemove, Unit
from sordino.workloads import Filter, GroupBy, GroupConvolution, Histogram, Kronecker, Marginals, Union, Workload
from sordino.workloads.base import Array
from sordino.workloads.constraints import PublicTotal

__all__ = ["LinearFit", "best_option", "fit_linear", "least_gaussian_error"]

# Bits of a real cell's fraction that are tried.
_FRACTION_BITS = (30, 25, 20, 17, 14)
_MAX_COMPOSED = 512
# Cells are counts without an upper bound where they may be this much larger than the error.
_LARGE = 64.0
# Counts of a cell that there is room for where nothing is declared.
_COUNTS = 2**24
_NOISES = {
    "l2": "Gaussian",
    "l1": "Laplace",
    "blocks": "norm of blocks",
    "boxes": "norm of the largest of a block",
    "body": "K-norm",
}


@dataclass(frozen=True, eq=False, repr=False)
class LinearFit(DoorFit):
    """A strategy for tables with its lattice and noise, and what they mean for the answers.

    Attributes:
        mechanism: Which mechanism.
        branching: Arity of a tree.
        strategy: The strategy in the core.
        door: Lattice and noise.
        domain: Declared bounds of the input.
        ratio: Noise over sensitivity that was asked for.
        rmse: Root of the (weighted) mean of their squares.
        ideal_rmse: The same without lattice, encoding and rounding of the strategy.
        cost: What a release costs.
        max_stderr: Largest standard deviation of an answer; None for a sketch, and for ranges of more than
            11584 cells, of which the mean alone is known.
        factorization: What is measured, for mechanisms that search for it, with the certificate of its optimality.
        parts: Of a union whose parts are measured one by one, their mechanisms and options.
        passed_over: A fit with less error that `auto` left, since it clamps cells that no declared `max_value` bounds.
    """

    family: ClassVar[str] = "linear"

    mechanism: Mechanism
    branching: int
    strategy: _core.Strategy = field(repr=False)
    door: _core.Door = field(repr=False)
    domain: Domain
    ratio: float
    rmse: float
    ideal_rmse: float
    cost: Cost
    max_stderr: float | None = field(repr=False)
    _stderr: Array | None = field(repr=False)
    factorization: Factorization | None = field(default=None, repr=False)
    passed_over: LinearFit | None = field(default=None, repr=False)
    parts: tuple[tuple[str, int], ...] = ()

    @property
    def stderr(self) -> Array:
        """Standard deviation of every answer, flat.

        Raises:
            UnsupportedMechanismError: There are more than 2**26 answers.
        """
        if self._stderr is None:
            raise UnsupportedMechanismError("more than 2**26 answers are not listed")
        return self._stderr

    @property
    def rmse_kind(self) -> str:
        """How `rmse` is known.

        'exact': answers are unbiased and their variance is known in closed form. 'upper bound': it is at least the
        true one. 'noise only': answers are projected or recovered; it is the error of the unprojected ones, or of a
        recovery of data that are as sparse as is looked for.
        """
        if self.mechanism.strategy in {"k-norm", "isotonic"} or self.mechanism.name == "universal-gaussian":
            return "upper bound"
        return "noise only" if self.mechanism.projected or self.mechanism.recovered else "exact"

    @property
    def answers_stderr(self) -> Array:
        """Standard deviation of every answer, before any post-processing, in the shape of the answers.

        Raises:
            UnsupportedMechanismError: Only a sketch is measured: it has no unbiased answers; or there are more than
                2**26.
        """
        if self.mechanism.strategy == "compressive":
            raise UnsupportedMechanismError("what a sketch does to a single answer is not known, only the mean error")
        return self.stderr.reshape(self.request.workload.answers_shape)

    @property
    def has_intervals(self) -> bool:
        """Whether answers are known without bias: a sketch has none."""
        return self.mechanism.strategy != "compressive"

    @property
    def proportional(self) -> bool:
        """Whether the error is proportional to the noise ratio: that of discrete noise falls faster."""
        return not len(self.door.discrete[0])

    @cached_property
    def staircase(self) -> Staircase | None:
        """Staircase noise of a single number that a unit moves by several steps; else None."""
        found = self.door.staircase
        return None if found is None else Staircase(*found)

    @property
    def one_law(self) -> bool:
        """Whether the errors of all answers have one law, up to their size."""
        return self.mechanism.law == "gaussian" or self.strategy.geometry == "body" or self.staircase is not None

    @cached_property
    def rows(self) -> tuple[Array, Array] | None:
        """Steps and rates of discrete noise, one a measured row; None for noise on a fine lattice."""
        steps, rates, lengths = self.door.discrete
        return (np.repeat(steps, lengths), np.repeat(rates, lengths)) if len(steps) else None

    def largest_half_width(self, level: float) -> float:
        """Return the half width of the widest interval; of more than 8 answers of those looked at, with large errors.

        Raises:
            UnsupportedMechanismError: Only a sketch is measured.
        """
        if self.max_stderr is None:
            return super().largest_half_width(level)
        if not self.one_law and self._stderr is not None:
            return largest_half_width(self, level)
        return float(self.half_widths(np.array([self.max_stderr]), level)[0])

    def cell_half_width(self, level: float, answers: int = 1) -> float:
        """Return the half width of an interval for one cell under Laplace noise on cells, or of all of them.

        Args:
            level: Probability of each interval, or of all.
            answers: How many shall hold together.
        """
        step, rate, _ = self.door.discrete
        if not len(step):
            return laplace_half_width(self.door.noise, level, answers)
        if self.strategy.geometry == "common":
            return self.sum_half_width(1, level, answers)
        return float(step[0]) * independent_discrete_half_width(float(rate[0]), level, answers)

    @property
    def measures_cells(self) -> bool:
        """Whether every cell is measured, and nothing else."""
        return self.mechanism.measures in {"identity", "identity-common"}

    def sum_half_width(self, cells: int, level: float, answers: int = 1) -> float:
        """Return the half width of an interval for the sum of so many cells under discrete noise on cells.

        Args:
            cells: How many.
            level: Probability of each interval, or of all.
            answers: How many shall hold together.
        """
        steps, rates, _ = self.door.discrete
        if self.strategy.geometry != "common":
            return float(steps[0]) * equal_discrete_half_width(float(rates[0]), cells, level, answers)
        weights = steps * np.array([1.0, cells])
        return discrete_sum_half_width(weights, rates, level, answers, np.array([cells, 1]))

    def half_widths(self, stderr: Array, level: float, answers: int = 1) -> Array:
        """Return half widths of answers by their standard deviations: exact for Gaussian noise, else bounds.

        Discrete Laplace noise has at most the moment generating function of Laplace noise of the same privacy, whose
        variance is larger by a known factor.

        Args:
            stderr: The standard deviations, shape (k,).
            level: Probability of each interval, or of all.
            answers: How many shall hold together.
        """
        if self.mechanism.law == "gaussian":
            return gaussian_half_width(stderr, level, answers)
        if self.strategy.geometry == "body":
            rank = self.strategy.measured_len
            return k_norm_half_width(stderr / math.sqrt((rank + 1) * (rank + 2) / 3.0), rank, level, answers)
        if self.staircase is not None:
            return stderr * (self.staircase.half_width(level, answers) / (math.sqrt(2.0) * self.door.noise))
        if self.strategy.geometry == "boxes":
            least = float(self.strategy.unit_variances().min())  # (m + 1) (m + 2)/3
            return stderr * factor_of_boxes(round(math.sqrt(3.0 * least + 0.25) - 1.5), level, answers)
        rates = self.door.discrete[1]
        if self.strategy.geometry != "common":
            return stderr * (_gain(rates) * factor_of_variance(level, answers))
        # The sum of what each may be: the common part is known but for the sum of the weights, which the error bounds.
        own = _gain(rates[:1]) * factor_of_variance(level, 2 * answers)
        shared = discrete_half_width(float(rates[-1]), level, 2 * answers) / standard_deviation(float(rates[-1]))
        return stderr * (own + shared)

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
            unbiased_bound(request.workload, request.privacy, request.unit),
            spectral_bound(request.workload),
        )
        return tuple(bound for bound in found if bound is not None)

    def over(self, bound: Bound | None) -> float | None:
        """Return the error over a bound; None where it does not bind or is zero, and for biased answers."""
        if self.mechanism.projected or self.mechanism.recovered:
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

    def chosen(self, values: Any, key: bytes | None) -> LinearFit:
        """Return the fit with its sparsity chosen from the data, if it is to be: the first half of a release."""
        choice, compression = self.open_choice, self.request.compression
        if choice is None or compression is None:
            return self
        sparsity = choice.select(self, values, key)
        return fit_linear(replace(self.request, compression=compression.chosen(sparsity)), self.mechanism)

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
            **({"parts": [list(part) for part in self.parts]} if self.parts else {}),
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
        for number, (name, _) in enumerate(self.parts, 1):
            lines.insert(number - 1, f"part {number:<10}{name}")
        lines += [*self._total_lines(), *advice(self.request)]
        return [*lines, *self._search_lines(), *self._recovery_lines(), *self._bound_lines()]

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

    def _noise_line(self) -> str:
        """Say which noise is put on how many numbers, and on which lattice."""
        measured = self.strategy.measured_len
        steps, rates, _ = self.door.discrete
        if self.strategy.geometry == "common":
            own, common = np.sqrt([self.strategy.unit_variances()[0], self.strategy.common_noise]) * self.door.noise
            law = "discrete Laplace" if len(steps) else "Gaussian"
            total = math.hypot(common * measured, own * math.sqrt(measured))
            alone = _door(_core.Strategy(self.request.workload.core, "identity", self.mechanism.law),
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
        elif self.mechanism.projected or self.mechanism.recovered:
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
                factor = spectrum(self.request.workload).factor
                lines.append(
                    f"specLB         F/specLB = {factor / other.value**2:.4g}, up to a constant "
                    "(the paper's bound on every mechanism)"
                )
            else:
                lines.append(f"bound          {other.value:.6g} ({other.name})")
        return lines


def _gain(rates: Array) -> float:
    """Return how much larger Laplace noise of the same privacy is than the discrete noise of these rates, at most."""
    rate = float(rates.max(initial=0.0))
    return math.sqrt(2.0) / (rate * standard_deviation(rate)) if rate > 0.0 else 1.0


def _door(strategy: _core.Strategy, unit: Unit, domain: Domain, ratio: float) -> _core.Door:
    return _core.fit(strategy, unit.relation(), domain.max_value, domain.fraction_bits, ratio)


def _choose_domain(strategy: _core.Strategy, request: Request, ratio: float) -> tuple[Domain, _core.Door]:
    bits = (0,) if request.integral else _FRACTION_BITS
    return choose_domain(lambda domain: _door(strategy, request.unit, domain, ratio), request, bits)


def _composed(strategy: _core.Strategy, request: Request) -> tuple[float, Domain, _core.Door]:
    """Fit independent Laplace noise so that its composition over all coordinates gives (epsilon, delta).

    Lattice and encode move a coordinate of neighbours apart by up to `r = g + 2e` (g the grid, e the error bound
    of the encode). Noise in proportion to an l1 norm would not cover that in a composition, so `r` is added to
    every coordinate before calibrating, and the fit is repeated until its noise covers its own `r`.

    Raises:
        UnsupportedMechanismError: The privacy, unit, data or size is not served.
        InvalidParameterError: Public sizes do not fit.
    """
    privacy, cells = request.privacy, request.workload.core.input_len
    if not isinstance(privacy, ApproxDP) or request.unit != AddRemove(1, label=request.unit.label):
        raise UnsupportedMechanismError("fourier-composed is calibrated for ApproxDP and AddRemove(1) only")
    if cells is None or cells > _MAX_COMPOSED or not request.integral:
        raise UnsupportedMechanismError(f"fourier-composed is calibrated for at most {_MAX_COMPOSED} integer cells")
    columns = np.stack([column for j in range(cells) if (column := strategy.column(j)) is not None])
    measured = strategy.measured_len
    moved = 0.0
    for _ in range(4):
        needed = laplace_composition_ratio(columns + moved, privacy) * (1.0 + 2.0**-40)
        ratio = needed / _door(strategy, request.unit, Domain(1, 0), 1.0).sensitivity[0]
        domain, door = _choose_domain(strategy, request, ratio)
        _, encoding, rounding = door.sensitivity
        own = rounding / measured + encoding / math.sqrt(measured)
        if own <= moved and door.scale >= needed:
            return ratio, domain, door
        moved = 1.01 * own
    raise UnsupportedMechanismError("fourier-composed does not fit the lattice here")


def fit_linear(
    request: Request,
    mechanism: Mechanism,
    branching: int = 2,
    factorization: Factorization | None = None,
    progress: Progress | None = None,
    *,
    whole: bool | None = None,
    parts: tuple[tuple[str, int], ...] = (),
) -> LinearFit:
    """Build the mechanism's strategy for the workload and fit the door to it.

    Args:
        request: What is asked for.
        mechanism: Which mechanism.
        branching: Its option.
        factorization: What it measures, if it was searched for before.
        progress: Told about the search.
        whole: Whether of whole counts whole numbers are measured, whose noise is discrete; what is better if None.
        parts: Of 'split' the mechanisms of the parts and their options.

    Raises:
        UnsupportedMechanismError: The mechanism does not serve the workload or the privacy.
        InvalidParameterError: Public sizes do not fit.
    """
    workload = request.workload
    _check_served(request, mechanism)
    if mechanism.strategy == "compressive":
        strategy = _sketched(request, mechanism)
    elif factorization is None and not mechanism.searched(workload):
        if mechanism.strategy == "threshold":
            request.basis.core(workload.core.input_len or 0)
        strategy = _closed_form(request, mechanism, branching, parts)
    elif factorization is not None:
        _check_factorization(mechanism, factorization)
        if whole is None and mechanism.strategy == "p-identity" and request.integral:
            either = [fit_linear(request, mechanism, branching, factorization, whole=False)]
            with suppress(InvalidParameterError):  # large counts leave no room for whole numbers
                either.append(fit_linear(request, mechanism, branching, factorization, whole=True))
            return min(either, key=lambda fitted: fitted.error(request.objective))
        strategy = factorization.build(workload, bool(whole))
    else:
        found = [_search(request, kind, mechanism.law, progress) for kind in mechanism.searches]
        fits = (fit_linear(request, mechanism, branching, each) for each in found)
        return min(fits, key=lambda fitted: fitted.error(request.objective))
    ratio, cost = _ratio_and_cost(request, mechanism)
    if mechanism.strategy == "fourier-composed":
        ratio, domain, door = _composed(strategy, request)
    else:
        ratio *= 1.0 if factorization is None else factorization.excess
        domain, door = _choose_domain(strategy, request, ratio)
    if isinstance(request.constraint, PublicTotal):
        _check_total(request.constraint.total, workload, domain)
    strategy = strategy.refined(door) or strategy
    variances, mean_square, largest = _variances(strategy, workload, mechanism)
    ideal_square = strategy.ideal_mean_square
    ideal = ratio * door.sensitivity[0] * door.noise / door.scale
    if ideal_square is None:
        ideal_rmse = ideal * math.sqrt(mean_square)
    else:
        single = _door(strategy, AddRemove(1), domain, ratio).sensitivity[0]
        ideal_rmse = ideal / single * math.sqrt(ideal_square)
    fitted = LinearFit(
        request=request,
        mechanism=mechanism,
        branching=branching,
        strategy=strategy,
        door=door,
        domain=domain,
        ratio=ratio,
        rmse=door.noise * math.sqrt(mean_square),
        ideal_rmse=ideal_rmse,
        cost=cost,
        max_stderr=None if largest is None or mechanism.strategy == "compressive" else door.noise * math.sqrt(largest),
        _stderr=None if variances is None else door.noise * np.sqrt(variances),
        factorization=factorization,
        parts=parts,
    )
    if mechanism.name == "universal-gaussian":
        return replace(fitted, rmse=universal_bound(fitted))
    return fitted


def best_option(request: Request, mechanism: Mechanism, progress: Progress | None = None) -> LinearFit:
    """Return the fit of least error of a mechanism's options.

    Raises:
        UnsupportedMechanismError: The mechanism does not serve the workload or the privacy.
        InvalidParameterError: Public sizes do not fit.
    """
    fits = [fit_linear(request, mechanism, b, progress=progress) for b in mechanism.branchings(request.workload)]
    return min(fits, key=lambda fit: fit.error(request.objective))


def _closed_form(
    request: Request, mechanism: Mechanism, branching: int, parts: tuple[tuple[str, int], ...] = ()
) -> _core.Strategy:
    workload = request.workload
    if mechanism.strategy == "split":
        return _split(request, mechanism.law, parts)
    if mechanism.strategy == "identity-common":
        ratio, _ = _ratio_and_cost(request, mechanism)
        return common_noise(workload, request.unit, mechanism, ratio)
    if mechanism.strategy == "laminar":
        unit = None if request.unit.changes is None else request.unit.relation()
        # Reals are counted in fractions, whose number is not known yet.
        most = (request.max_value or _COUNTS) if request.integral else None
        return _core.Strategy.laminar(workload.core, mechanism.law, workload.answer_weights(), unit, most)
    if mechanism.name == "balanced-gaussian" and request.unit.changes is not None and _is_nested(workload):
        return _core.Strategy.nested_product(workload.core, request.unit.relation())
    if mechanism.strategy == "balanced" and isinstance(workload, Union):
        return _core.Strategy.balanced_union(workload.core, list(workload.weights))
    return _core.Strategy(workload.core, mechanism.measures, mechanism.law, branching)


def _split(request: Request, law: Law, parts: tuple[tuple[str, int], ...]) -> _core.Strategy:
    """Return the strategy that measures each part of a union by the mechanism that is named.

    Raises:
        UnsupportedMechanismError: They are not those of the parts.
    """
    workload, known = request.workload, {m.name: m for m in MECHANISMS if m.law == law}
    if not isinstance(workload, Union) or len(parts) != len(workload.parts):
        raise UnsupportedMechanismError("'split' measures the parts of a union")
    strategies, weights = [], []
    for (name, branching), part, weight in zip(parts, workload.parts, workload.weights, strict=True):
        mechanism = known.get(name)
        if mechanism is None or mechanism.projected or mechanism.recovered or mechanism.searched(part):
            raise UnsupportedMechanismError("a part of a union is measured by a closed form")
        if branching not in mechanism.branchings(part):
            raise UnsupportedMechanismError("a part of a union has an option that its mechanism does not take")
        own = replace(request, workload=part, constraint=None)
        _check_served(own, mechanism)
        strategies.append(_closed_form(own, mechanism, branching))
        inner = part.answer_weights()
        weights.append(weight * (1.0 if inner is None else float(inner.mean())))
    return _core.Strategy.split(workload.core, strategies, weights, request.unit.relation(), request.objective)


def _is_nested(workload: Workload) -> bool:
    """Return whether a product is one of groups and cells alone."""
    return isinstance(workload, Kronecker) and all(isinstance(f, GroupBy | Histogram) for f in workload.factors)


def _variances(
    strategy: _core.Strategy, workload: Workload, mechanism: Mechanism
) -> tuple[Array | None, float, float | None]:
    """Return the variances of all answers at unit noise, if they are listed, their mean and the largest, if known.

    Raises:
        UnsupportedMechanismError: They are not listed, and their mean is not known otherwise.
    """
    if workload.is_listed:
        variances = strategy.variances()
        return variances, float(np.average(variances, weights=workload.answer_weights())), float(variances.max())
    weighted = isinstance(workload, Union) and not workload.is_even
    spread = None if weighted and mechanism.strategy not in {"balanced", "split"} else strategy.spread()
    if spread is None:
        raise UnsupportedMechanismError("this mechanism lists its answers: there are more than 2**26")
    return None, *spread


def _ratio_and_cost(request: Request, mechanism: Mechanism) -> tuple[float, Cost]:
    """Return noise over sensitivity as the privacy asks for, and what a release costs."""
    privacy = request.privacy
    if mechanism.strategy == "compressive" and request.compression is not None:
        _, ratio, cost = request.compression.shares(privacy, mechanism.law)
        return ratio, cost
    if mechanism.strategy == "fourier-composed" and isinstance(privacy, ApproxDP):
        return noise_ratio(privacy, mechanism.law), ApproxCost(privacy.epsilon, privacy.delta)
    return noise_ratio(privacy, mechanism.law), calibrated_cost(privacy, mechanism.law)


def _sketched(request: Request, mechanism: Mechanism) -> _core.Strategy:
    """Return the strategy that measures a sketch.

    Raises:
        UnsupportedMechanismError: There is no compression, or the workload has no table or sorts it.
    """
    if request.compression is None:
        raise UnsupportedMechanismError(
            "a compressive mechanism needs compression=sordino.sketches.Compression(...), or memory="
        )
    cells = request.workload.core.input_len
    if cells is None or not mechanism.serves(request.workload):
        raise UnsupportedMechanismError("a sketch is of a table of cells at their places")
    # A basis of other cells would be found out when the budget is spent.
    request.compression.transform.core(cells)
    operator = request.compression.operator(cells)
    sparsity = request.compression.sizes(cells)[1]
    return _core.Strategy.sketched(request.workload.core, operator, mechanism.law, sparsity)


def _check_served(request: Request, mechanism: Mechanism) -> None:
    if mechanism.projected and request.constraint is None:
        raise UnsupportedMechanismError(f"{mechanism.name} projects: it needs a constraint, such as PublicBound(1000)")
    if request.constraint is not None and not mechanism.projected:
        raise UnsupportedMechanismError(f"{mechanism.name} does not use a constraint; 'sparse' does")
    if mechanism.strategy == "isotonic" and not mechanism.serves(request.workload):
        raise UnsupportedMechanismError("isotonic regression is for cells in order: plan a SortedHistogram")
    if (mechanism.projected or mechanism.recovered) and not request.workload.is_listed:
        raise UnsupportedMechanismError(f"{mechanism.name} lists its answers: there are more than 2**26")
    mechanism.require(request.privacy)


def _check_total(total: float, workload: Workload, domain: Domain) -> None:
    if total > math.prod(workload.input_shape) * domain.max_value:
        raise InvalidParameterError(
            f"cells are clamped to max_value={domain.max_value}: so many cells never have this public total"
        )


def _check_factorization(mechanism: Mechanism, factorization: Factorization) -> None:
    """Refuse what the mechanism does not measure: another law of noise would not give the privacy that is stated.

    Raises:
        UnsupportedMechanismError: Kind, law or noise do not belong to the mechanism.
    """
    if not mechanism.factored:
        raise UnsupportedMechanismError(f"{mechanism.name} measures no factorization: leave it out")
    kind, blocks = factorization.kind, factorization.blocks
    rows = math.prod(len(factor) for factor in factorization.factors)
    if (
        kind not in mechanism.searches
        or factorization.law != mechanism.law
        or factorization.body != (kind == "k-norm")
        or (blocks is not None) != (kind.startswith("dense") or (kind == "ellipsoid" and mechanism.law == "laplace"))
        or (blocks is not None and (sum(blocks) != rows or min(blocks, default=0) < 1))
        or (factorization.excess != 1.0 and not kind.endswith("printed"))
        or not 1.0 <= factorization.excess < math.inf
    ):
        raise UnsupportedMechanismError(f"{mechanism.name} does not measure this factorization")
    if mechanism.projected and factorization.entries > MOST_ENTRIES:
        raise UnsupportedMechanismError("the measured matrix is too large to project onto; use its factors unprojected")


def least_gaussian_error(request: Request) -> Bound | None:
    """Return the best known bound on the error of every Gaussian mechanism; searched for where that is quick."""
    certificate = None
    if improves(request) and not isinstance(request.privacy, PureDP):
        certificate = factorize(request.workload, objective=request.objective, unit=request.unit).certificate
    return gaussian_bound(request.workload, request.privacy, request.unit, certificate)


def _search(request: Request, kind: str, law: Law, progress: Progress | None) -> Factorization:
    return factorize(
        request.workload, kind=kind, law=law, objective=request.objective, progress=progress, unit=request.unit
    )
