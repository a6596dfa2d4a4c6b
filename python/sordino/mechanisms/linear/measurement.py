"""A strategy for tables with its noise: how large the errors of its answers are."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from sordino import _core
from sordino.accuracy.factorizations import Factorization
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
from sordino.errors import PlanFileError, UnsupportedMechanismError
from sordino.mechanisms.fits import Domain, DoorFit
from sordino.mechanisms.linear.catalogue import Mechanism
from sordino.privacy.costs import Cost
from sordino.privacy.units import Unit
from sordino.workloads.base import Array, Workload

__all__ = ["LinearMeasurement", "Part", "answers_of_table", "door_of"]


class Part(NamedTuple):
    """How a part of a union is measured: by which mechanism, its option, and what was searched for, if anything was."""

    mechanism: str
    branching: int
    factorization: Factorization | None = None

    def to_json(self) -> list[Any]:
        """Return the part as a record; arrays stay arrays."""
        found = self.factorization
        return [self.mechanism, self.branching, *([] if found is None else [found.to_json()])]

    @classmethod
    def from_json(cls, record: Any, workload: Workload, unit: Unit) -> Part:
        """Rebuild from a record that is not trusted.

        Raises:
            PlanFileError: A field is missing or out of range.
        """
        match record:
            case [str() as name, int() as branching, *found] if type(branching) is int and len(found) < 2:
                factorizations = [Factorization.from_json(each, workload, unit) for each in found]
                return cls(name, branching, *factorizations)
            case _:
                raise PlanFileError("the plan's parts are not named")


@dataclass(frozen=True, eq=False, repr=False)
class LinearMeasurement(DoorFit):
    """A strategy for tables with its lattice and noise, and how large the errors of answers are.

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
        parts: Of a union whose parts are measured one by one, how each is.
        passed_over: A fit with less error that `auto` left, since it clamps cells that no declared `max_value` bounds.
    """

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
    _variances: Array | None = field(repr=False)
    factorization: Factorization | None = field(default=None, repr=False)
    passed_over: LinearMeasurement | None = field(default=None, repr=False)
    parts: tuple[Part, ...] = ()

    @cached_property
    def stderr(self) -> Array:
        """Standard deviation of every answer, flat.

        Raises:
            UnsupportedMechanismError: There are more than 2**26 answers.
        """
        if not self.request.workload.is_listed:
            raise UnsupportedMechanismError("more than 2**26 answers are not listed")
        # Of millions only the spread was needed to choose the mechanism.
        variances = self.strategy.variances() if self._variances is None else self._variances
        found: Array = self.door.noise * np.sqrt(variances)
        return found

    @property
    def is_biased(self) -> bool:
        """Whether answers are projected onto a constraint, or recovered."""
        return self.request.constraint is not None or self.mechanism.recovered

    @property
    def rmse_kind(self) -> str:
        """How `rmse` is known.

        'exact': answers are unbiased and their variance is known in closed form. 'upper bound': it is at least the
        true one. 'noise only': answers are projected or recovered; it is the error of the unprojected ones, or of a
        recovery of data that are as sparse as is looked for.
        """
        if self.mechanism.strategy == "isotonic" or self.mechanism.name == "universal-gaussian":
            return "upper bound"
        if self.is_biased:
            return "noise only"
        return "upper bound" if self.mechanism.strategy == "k-norm" else "exact"

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


def _gain(rates: Array) -> float:
    """Return how much larger Laplace noise of the same privacy is than the discrete noise of these rates, at most."""
    rate = float(rates.max(initial=0.0))
    return math.sqrt(2.0) / (rate * standard_deviation(rate)) if rate > 0.0 else 1.0


def door_of(strategy: _core.Strategy, unit: Unit, domain: Domain, ratio: float) -> _core.Door:
    """Return lattice and noise of a strategy for a unit and a domain."""
    return _core.fit(strategy, unit.relation(), domain.max_value, domain.fraction_bits, ratio)


def answers_of_table(fitted: LinearMeasurement, table: Array) -> Array:
    """Return the answers for an estimated table, flat."""
    identity = _core.Strategy(fitted.request.workload.core, "identity", fitted.mechanism.law)
    return identity.decode(np.ascontiguousarray(table))
