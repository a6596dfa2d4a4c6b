"""Released marginal tables that were measured where an estimate was furthest off."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sordino import _core
from sordino._support.cards import card
from sordino._support.checks import flag, real
from sordino._support.extras import drawn
from sordino.errors import InvalidParameterError
from sordino.releases.adaptive.file import MARGINALS
from sordino.releases.adaptive.intervals import interval_of_counts
from sordino.releases.consistent.report import Consistency
from sordino.releases.frames import label_columns, made_frame
from sordino.releases.interval import Interval
from sordino.releases.records import Records, records_of
from sordino.workloads import Marginals
from sordino.workloads.base import Array

if TYPE_CHECKING:
    from pathlib import Path

    from sordino.mechanisms.adaptive.marginals import AdaptiveMarginalsFit
    from sordino.mechanisms.catalogue import Law

__all__ = ["MarginalsRelease", "MeasuredTable"]

# The gap that is left, as a share of the noise; of sums of cells in a table.
_GAP = 1.01e-3
_MOST_RECORDS = 2.0**53


@dataclass(frozen=True, eq=False)
class MeasuredTable:
    """A table as it was measured.

    Attributes:
        attributes: Which.
        values: Its cells with noise: unbiased, given what was chosen before.
        stderr: Standard deviation of the noise in each cell.
    """

    attributes: tuple[int, ...]
    values: Array
    stderr: float
    _law: Law = field(repr=False)

    def interval(self, level: float, *, simultaneous: bool = False) -> Interval:
        """Return confidence intervals for the true cells: exact, given what was chosen before.

        Args:
            level: Strictly between 0 and 1.
            simultaneous: Whether all intervals of this table shall hold together with this probability.

        Raises:
            InvalidParameterError: The level is out of range.
        """
        stderr = np.full(self.values.shape, self.stderr)
        return interval_of_counts(self.values, stderr, self._law, level, simultaneous)


@dataclass(frozen=True, eq=False)
class MarginalsRelease:
    """Published marginals: what is made of them costs no privacy.

    Attributes:
        fit: How they were made.
        measured: What was published: numbers of tables, shares, noisy counts.
        private: False only under `sordino.testing.deterministic_noise`.
        accounted: Whether a ledger was charged.
        total: Number of records that all tables have, if it is public; None for the one that was measured.
        shrunk: Whether measured tables are moved towards what the others say, as far as their noise asks for.
    """

    fit: AdaptiveMarginalsFit
    measured: _core.Measured = field(repr=False)
    private: bool = True
    accounted: bool = False
    total: float | None = None
    shrunk: bool = True
    index: None = field(default=None, repr=False)

    @property
    def workload(self) -> Marginals:
        """The tables that `values` are."""
        return self.fit.workload

    @property
    def labels(self) -> None:
        """None: cells are called by their attributes' values."""

    @property
    def rmse_kind(self) -> str:
        """'noise only': what is expected of tables that nobody measured comes on top."""
        return self.fit.rmse_kind

    @cached_property
    def _agreed(self) -> tuple[dict[tuple[int, ...], Array], Consistency]:
        levels = self.workload.levels
        flat, gap, mixed, iterations = self.fit.door.agreed(self.measured, self.total, self.shrunk)
        shapes = [tuple(levels[i] for i in s) for s in self.fit.sets]
        ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]
        pieces = zip(self.fit.sets, np.split(flat, ends), shapes, strict=True)
        tables = {s: piece.reshape(shape) for s, piece, shape in pieces}
        total = float(next(iter(tables.values())).sum())
        report = Consistency(total, gap=gap, converged=gap <= _GAP, mixed=mixed, iterations=iterations)
        return {(): np.array(total), **tables}, report

    @property
    def consistency(self) -> Consistency:
        """How the tables were made to agree."""
        return self._agreed[1]

    @cached_property
    def tables(self) -> dict[tuple[int, ...], Array]:
        """Each wanted set's table: none has a negative cell, and they agree on every common margin."""
        return {s: self._agreed[0][s] for s in self.workload.sets}

    @cached_property
    def values(self) -> Array:
        """The tables one after the other, each in row-major order."""
        return np.concatenate([table.reshape(-1) for table in self.tables.values()])

    @cached_property
    def looks(self) -> tuple[MeasuredTable, ...]:
        """What was measured, in order: tables of one attribute, those that were chosen, those that were levelled."""
        levels, law = self.workload.levels, self.fit.mechanism.law
        return tuple(
            MeasuredTable(s, values.reshape([levels[i] for i in s]), math.sqrt(variance), law)
            for number, values, variance in self.fit.door.looks(self.measured)
            for s in (self.fit.sets[number],)
        )

    def agreeing(self, *, total: float | None = None, shrink: bool = True) -> MarginalsRelease:
        """Return a release whose tables have a public total, or are not shrunk: free.

        Args:
            total: Number of records, if it is public; what was measured if None.
            shrink: Whether measured tables are moved towards what the others say, as far as their noise asks for (James
                and Stein): less error, and a bias towards the model.

        Raises:
            DataTypeError: An option is of the wrong type.
            InvalidParameterError: The total is negative or above 2**53.
        """
        if total is not None:
            total = real("total", total)
            if not 0.0 <= total <= _MOST_RECORDS:
                raise InvalidParameterError("total must not be negative, and at most 2**53")
        return replace(self, total=total, shrunk=flag("shrink", shrink))

    def records(self, count: int | None = None, *, seed: int | None = None) -> Records:
        """Return records whose tables are these, or near to them: as `Release.records`.

        Args:
            count: Number of records; the total of the tables if None.
            seed: Of the chance that remains; a fresh one if None.

        Raises:
            UnsupportedMechanismError: The tables are not of pairs.
            DataTypeError: Count or seed are no integers.
            InvalidParameterError: They are out of range.
        """
        return records_of(self, count, seed)

    def to_frame(self, *, library: str | None = None) -> Any:
        """Return the answers as a frame, one row for each, with a column for each attribute.

        Args:
            library: 'pandas', 'polars' or 'pyarrow'; the first of them that is installed if None.

        Raises:
            MissingDependencyError: The library is not installed.
        """
        return made_frame(label_columns(self) | {"value": self.values}, library)

    def save(self, path: str | Path) -> Path:
        """Write plan and tables as JSON, large arrays in an `.npz` beside it.

        Raises:
            InputFileError: The file cannot be written.
        """
        return MARGINALS.save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> MarginalsRelease:
        """Read tables: what else is made of them is free, as before. The plan is fitted again.

        Raises:
            InputFileError: The file cannot be read.
            PlanFileError: It is no such release, was altered, or does not fit its plan.
        """
        return MARGINALS.load(path, cls)

    def plot(self, path: str | Path | None = None, *, ax: Any = None) -> Any:
        """Draw the tables, one after the other, without intervals.

        Args:
            path: Where to save the picture, None to only return it.
            ax: matplotlib's axes to draw into, in place of a figure of its own.

        Returns:
            The matplotlib figure.

        Raises:
            MissingDependencyError: matplotlib is not installed.
        """
        return drawn("release", self, path, ax=ax)

    def _repr_html_(self) -> str:
        facts = [
            *self.fit.facts(self.private),
            ("tables", f"{len({look.attributes for look in self.looks})} of {len(self.fit.sets)} measured"),
        ]
        return card(repr(self.workload), facts)
