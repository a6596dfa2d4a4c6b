"""A release: what was published, and what else follows from it for free."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from sordino import _core
from sordino._support.cards import card
from sordino._support.extras import arrow_of, drawn
from sordino.errors import DataTypeError, InvalidParameterError, MissingDependencyError, UnsupportedMechanismError
from sordino.mechanisms.linear.compression import Compression
from sordino.mechanisms.linear.measurement import answers_of_table
from sordino.mechanisms.linear.projections import project
from sordino.mechanisms.linear.recoveries import Progress as RecoveryProgress
from sordino.mechanisms.linear.recoveries import RecoveryResult, hard_threshold, recover_sketch
from sordino.releases.answers import Answers
from sordino.releases.consistent.report import Known, Norm, Shrink, Whole
from sordino.releases.consistent.values import consistent_values, wishes_of
from sordino.releases.files import load_release, save_release
from sordino.releases.frames import arrow_column, frame_columns, frame_of
from sordino.releases.quantiles import Moments, Quantile, moments_of, quantile_of
from sordino.releases.records import Records, records_of
from sordino.workloads import AllRanges, GroupBy, Intervals, Kronecker, Marginals, Matrix, RunningSum, Union, Workload
from sordino.workloads.base import Array
from sordino.workloads.bases import Basis, basis_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import ArrayLike


__all__ = ["Release"]

_T = TypeVar("_T")
# Answers that a card shows.
_ROWS = 8


@dataclass(frozen=True, eq=False)
class Release(Answers):
    """Published answers: post-processing of them costs no privacy. Fields are those of `Answers`."""

    def finished(self) -> Release:
        """Return what the mechanism makes of what was measured, if it was not made yet."""
        if self.post_processing:
            return self
        match self.fit.mechanism.strategy:
            case "compressive":
                return self.reconstructed()
            case "threshold":
                return self.thresholded(self.fit.request.basis)
            case "isotonic":
                return self.monotone()
            case _:
                return self if self.fit.request.constraint is None else self.projected()

    def save(self, path: str | Path) -> Path:
        """Write the release: a table of the answers that other programs read, with all that `load` needs.

        Columns are those of `to_frame` without intervals: levels of a schema, attributes, ends of ranges or `index`,
        then value, unbiased (where values were post-processed) and stderr. The plan with its digest, what was measured
        and what was done to it are in the metadata: all of it public. A table that was altered is not read.

        Args:
            path: Ending in `.arrow` (Arrow IPC) or `.parquet`.

        Raises:
            InvalidParameterError: Another ending.
            InputFileError: The file cannot be written.
            UnsupportedMechanismError: A basis is given by functions, or there are more answers than are listed.
            MissingDependencyError: pyarrow is not installed.
        """
        return save_release(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Release:
        """Read a release: further answers are free, as before. The plan is fitted again.

        A file is as trusted as whoever wrote it: what is checked is that its parts belong together.

        Raises:
            InvalidParameterError: Another ending than `.arrow` or `.parquet`.
            InputFileError: The file cannot be read.
            PlanFileError: It is no release, was altered, or does not fit its plan.
            MissingDependencyError: pyarrow is not installed.
        """
        return load_release(path, cls)

    def quantile(
        self, share: float, *, level: float = 0.95, edges: ArrayLike | None = None, total: float | None = None
    ) -> Quantile:
        """Return where a share of all records is reached, from the running sums of cells in one row: free.

        The median is `quantile(0.5)`. The interval covers the true cell with probability `level`, whatever the data, as
        exactly as `interval` does for one answer: from the cells whose running sum less its share of the total may be
        below 0, to those where it may be above.

        Args:
            share: Strictly between 0 and 1.
            level: Of the interval, strictly between 0 and 1.
            edges: Of the cells, shape (cells + 1,), rising: for a value within the cell, in proportion.
            total: Number of records, if it is public: intervals are narrower.

        Raises:
            DataTypeError: An argument is no number.
            ShapeError: Edges have another shape.
            InvalidParameterError: An argument is out of range.
            UnsupportedMechanismError: Running sums of the cells do not follow from what was measured.
        """
        return quantile_of(self, share, level, edges, total)

    def moments(
        self, *, edges: ArrayLike | None = None, values: ArrayLike | None = None, level: float = 0.95
    ) -> Moments:
        """Return mean and variance of what cells in one row stand for, with intervals that cover: free.

        Args:
            edges: Of bins, shape (cells + 1,), rising: a record counts as the middle of its bin, and `binning` says how
                far that can be from the truth.
            values: What each cell stands for, shape (cells,), in place of edges.
            level: Of each interval, strictly between 0 and 1.

        Raises:
            DataTypeError: An argument is no number.
            ShapeError: Edges or values have another shape.
            InvalidParameterError: An argument is out of range, or neither or both of edges and values are given.
            UnsupportedMechanismError: These sums do not follow from what was measured.

        Source: Fieller 1954 for the interval of a ratio.
        """
        return moments_of(self, level, edges, values)

    def query(self, f: Callable[[Array], _T]) -> _T:
        """Return any function of the estimated table: free, as often as wanted.

        Args:
            f: Takes the table, in the shape of the input.

        Raises:
            DataTypeError: `f` is no function.
            UnsupportedMechanismError: Neither a sketch nor the cells were measured.
        """
        if not callable(f):
            raise DataTypeError("a query is a function of the table")
        return f(self.cells)

    def thresholded(self, basis: Basis | str = "haar") -> Release:
        """Return a release of what is not noise in a basis; `unbiased` and intervals stay.

        Args:
            basis: 'haar', 'cosine', 'standard' or an `OrthonormalBasis`.

        Raises:
            UnsupportedMechanismError: The cells were not measured, or these are other answers than the plan's.
        """
        fitted = self.fit
        if fitted.mechanism.measures != "identity" or self.other is not None:
            raise UnsupportedMechanismError("only noisy cells can be thresholded")
        law = self.fit.mechanism.law
        return self._recovered(hard_threshold(self.measured.values(), basis_of(basis), self._noise, law), "thresholded")

    def reconstructed(
        self, compression: Compression | None = None, *, progress: RecoveryProgress | None = None
    ) -> Release:
        """Return a release with the table recovered anew from the sketch: free, as often as wanted.

        Args:
            compression: With another sparsity, basis or recovery; the plan's own if None.
            progress: Called with (iteration, residual); returning False ends the search with the best so far.

        Raises:
            UnsupportedMechanismError: No sketch was measured.
            DataTypeError: The compression is none.
            InvalidParameterError: The compression is of another sketch, or its sizes do not fit.
        """
        planned, fitted = self.fit.request.compression, self.fit
        if fitted.mechanism.strategy != "compressive" or planned is None:
            raise UnsupportedMechanismError("only a sketch can be recovered from")
        own = planned if compression is None else compression
        if not isinstance(own, Compression):
            raise DataTypeError("compression must be a sordino.sketches.Compression")
        cells = int(np.prod(self.fit.request.workload.input_shape, dtype=np.int64))
        if own.operator(cells) != planned.operator(cells):
            raise InvalidParameterError("recover with the sketch that was measured: same kind, seed and size")
        found = recover_sketch(own, cells, self.measured.values(), self._noise, fitted.mechanism.law, progress)
        return self._recovered(found, "recovered")

    @property
    def _noise(self) -> float:
        """Standard deviation of each measured number, where all have the same."""
        fitted = self.fit
        return float(fitted.door.noise * np.sqrt(fitted.strategy.unit_variances()[0]))

    def _recovered(self, found: RecoveryResult, name: str) -> Release:
        """Answer from an estimated table."""
        values = answers_of_table(self.fit, found.values).reshape(self.fit.request.workload.answers_shape)
        return replace(self._processed(values, name), recovery=found)

    def projected(self) -> Release:
        """Return a release with answers projected onto the plan's constraint; `unbiased` and intervals stay.

        Plans with a constraint do this by themselves. Projected answers are biased: intervals stay around `unbiased`.

        Raises:
            UnsupportedMechanismError: The plan has no constraint, or these are other answers than the plan's.
        """
        constraint = self.fit.request.constraint
        if constraint is None or self.other is not None:
            raise UnsupportedMechanismError("only the answers of a plan with a constraint can be projected")
        values, report = project(self.fit, constraint, self.measured.values())
        done = self._processed(values.reshape(self.unbiased.shape), "projected")
        return replace(done, projection=report)

    def consistent(
        self,
        *,
        total: float | None = None,
        shrink: Shrink | None = None,
        norm: Norm = "answers",
        whole: Whole = False,
        invariants: Known | None = None,
        zeros: Known | None = None,
        bounds: Known | None = None,
        seed: int | None = None,
    ) -> Release:
        """Return a release whose answers some counts could have, none negative; `unbiased` and intervals stay.

        Cells must be counts that are not negative. Marginals: tables that agree on every common margin, the nearest in
        the (weighted) mean square over all answers, up to a gap that is told. With a public total the root mean square
        error over all answers is not larger than before, on any draw, up to that gap: for a projection onto a convex
        set that holds the truth. This is said of all answers together, not of one answer, a margin or the total: empty
        cells are biased upwards, large ones downwards. `RunningSum`: never falling, from 0 to the total, which is the
        last; the same theorem. `Histogram`: cells that add up to the total. `GroupBy` of nested levels, `AllRanges`:
        from the top down, children that add up to their parent; ranges are those of cells that are not negative.

        Args:
            total: Number of records, if it is public. Otherwise it is kept as it was measured: left free, what is not
                negative would push it up.
            shrink: 'independence' moves tables towards those of independent attributes, as far as their noise asks for
                (James and Stein): of Gaussian noise with less expected error whatever the data. A bias towards no
                association; `consistency.shrunk` says by how much.
            norm: What distances are: 'answers', or 'noise', where each part counts by its precision.
            whole: Whether answers are whole numbers that agree as well: tables of pairs with common margins, each the
                nearest in the sum of moves. 'unbiased': by chance, each cell and margin one of the two nearest, for
                running sums, histograms and one table.
            invariants: Marginals: margins that are public by themselves, from elsewhere, by sets of attributes;
                tables are made to have them. Counts of these records that nobody published are no invariants.
            zeros: Marginals: cells that no record can be in, masks by sets of attributes.
            bounds: Marginals: least and largest values of cells, pairs of arrays or numbers by sets of attributes.
            seed: Of whole numbers by chance; a fresh one if None.

        Raises:
            DataTypeError: An option is of the wrong type.
            ShapeError: Invariants, zeros or bounds have not the shape of their table.
            InvalidParameterError: The total is negative or above 2**53, an option means nothing for these queries, or
                no tables were found that are as invariants, zeros and bounds say.
            UnsupportedMechanismError: Other queries, noise without the structure of marginals, or whole numbers of
                tables of three attributes that overlap.

        Source: Mullins and others 2024 for the problem in the norm of the noise; Cox 1987 for whole numbers by chance;
        [consistent tables](consistent.md).
        """
        wishes = wishes_of(
            self,
            total=total,
            shrink=shrink,
            norm=norm,
            whole=whole,
            seed=seed,
            invariants=invariants,
            zeros=zeros,
            bounds=bounds,
        )
        values, report = consistent_values(self, wishes)
        return replace(self._processed(values, "consistent"), consistency=report, projection=None)

    def records(self, count: int | None = None, *, seed: int | None = None) -> Records:
        """Return records whose tables are these, or near to them: of consistent tables of pairs of attributes.

        One-way tables are exactly those in whole numbers. Attributes are joined in a tree of the pairs that say most of
        each other, whose tables are exact at first; then records exchange values while tables come nearer. Free, and a
        function of what was published.

        Args:
            count: Number of records; the total of the tables if None.
            seed: Of the chance that remains; a fresh one if None.

        Raises:
            UnsupportedMechanismError: The answers are no tables of pairs, or were not made `consistent`.
            DataTypeError: Count or seed are no integers.
            InvalidParameterError: They are out of range.

        Source: Chow and Liu 1968 for the tree.
        """
        return records_of(self, count, seed)

    def nonnegative(self) -> Release:
        """Return a release with negative answers raised to zero; `unbiased` and intervals stay.

        For single cells: each comes nearer to a truth that is not negative; sums of them do not. Every empty cell keeps
        a bias of .40 standard errors (Laplace noise: .35), so a sum over N empty cells has .4 sqrt(N) times the error
        of the same sum of `unbiased` (Laplace: .35 sqrt(N)), 4 times for a hundred cells. Sum `unbiased`, ask for the
        sum by `answer`, or keep sums by `consistent`.

        Raises:
            UnsupportedMechanismError: The answers have cells in common: marginals, running sums, groups, ranges, and
                products, unions and matrices of such queries. A clip would break their sums; `consistent` makes the
                first four agree.
        """
        if not _apart(self.workload):
            raise UnsupportedMechanismError(
                f"{type(self.workload).__name__} answers have sums in common that a clip breaks: use consistent(), or "
                "clip what you make of the values yourself"
            )
        return self._processed(np.maximum(self.values, 0.0), "nonnegative")

    def monotone(self) -> Release:
        """Return a release with answers made non-decreasing along the last axis (least squares).

        No further from the truth, in l2, than before if the truth is non-decreasing; else biased without a bound. What
        answers are sums of, such as the cells of running sums, is not looked at: `consistent` bounds them too.
        """
        flat = np.ascontiguousarray(self.values).reshape(-1, self.values.shape[-1])
        fitted = np.stack([_core.isotonic(row) for row in flat]).reshape(self.values.shape)
        return self._processed(fitted, "monotone")

    def rounded(self) -> Release:
        """Return a release with answers rounded to integers; `unbiased` and intervals stay.

        Moves each answer by up to a half: where the standard error is not far above that, noticeably. Sums of rounded
        answers are not the rounded sums; `consistent(whole=True)` keeps them.
        """
        return self._processed(np.rint(self.values), "rounded")

    @cached_property
    def tables(self) -> dict[tuple[int, ...], Array]:
        """Marginals: each attribute set's table.

        Raises:
            UnsupportedMechanismError: The workload is not `Marginals`.
        """
        if not isinstance(self.workload, Marginals):
            raise UnsupportedMechanismError("only marginals come as tables")
        return self.workload.split(self.values)

    def to_frame(self, *, level: float = 0.95, library: str | None = None) -> Any:
        """Return answers, standard errors and intervals as a frame, one row for each answer.

        Of queries that a schema made there is a column for each level that was asked, empty where an answer belongs to
        another level, and answers are divided by the weights of their levels. Where amounts are summed, columns are
        count, sum and mean of each group with their standard errors; a mean whose count is below 4 of its errors is
        not-a-number.

        Args:
            level: Of the intervals, strictly between 0 and 1.
            library: 'pandas', 'polars' or 'pyarrow'; the first of them that is installed if None.

        Raises:
            InvalidParameterError: The level is out of range.
            MissingDependencyError: The library is not installed.
            UnsupportedMechanismError: Only a sketch was measured, or amounts were asked for in another way.
        """
        return frame_of(self, level, library)

    def to_arrow(self) -> Any:
        """Return answers and standard errors as an Arrow table, with the labels if there are any.

        Of a sketch no standard errors are known: that column is left out.

        Raises:
            MissingDependencyError: pyarrow is not installed.
        """
        pa = arrow_of("to_arrow")
        columns: dict[str, Any] = {}
        if self.labels is not None:
            columns["index"] = arrow_column(pa, list(self.labels))
        columns["value"] = pa.array(self.values.reshape(-1))
        if self.fit.has_intervals:
            columns["stderr"] = pa.array(np.ascontiguousarray(self.stderr).reshape(-1))
        return pa.table(columns)

    def to_pandas(self) -> Any:
        """Return the answers as a pandas Series under their `labels`.

        Raises:
            MissingDependencyError: pandas is not installed.
        """
        try:
            import pandas as pd  # noqa: PLC0415 - optional
        except ImportError:
            raise MissingDependencyError("to_pandas needs pandas: pip install pandas") from None
        return pd.Series(self.values.reshape(-1), index=self.labels, name="value")

    def _repr_html_(self) -> str:
        facts = self.fit.facts(self.private)
        facts += [("values", ", ".join(self.post_processing))] if self.post_processing else []
        if self._values is None or not self.fit.has_intervals:
            return card(repr(self.workload), facts)
        columns = frame_columns(self, 0.95)
        rows = [[_shown(column[k]) for column in columns.values()] for k in range(min(self.values.size, _ROWS))]
        more = f"the first {_ROWS} of {self.values.size:,} answers; " if self.values.size > _ROWS else ""
        return card(repr(self.workload), facts, head=list(columns), rows=rows, note=f"{more}intervals of 95 %")

    def plot(self, path: str | Path | None = None, *, level: float = 0.95, ax: Any = None) -> Any:
        """Draw the answers with their intervals; of two axes as a map.

        Args:
            path: Where to save the picture, None to only return it.
            level: Of the intervals.
            ax: matplotlib's axes to draw into, in place of a figure of its own.

        Returns:
            The matplotlib figure.

        Raises:
            MissingDependencyError: matplotlib is not installed.
        """
        return drawn("release", self, path, level=level, ax=ax)


def _apart(workload: Workload) -> bool:
    """Return whether answers are single cells, or averages that nobody adds up: a clip breaks no sum of them."""
    match workload:
        case Kronecker(factors=factors):
            return all(_apart(factor) for factor in factors)
        case Marginals() | RunningSum() | GroupBy() | AllRanges() | Intervals() | Union() | Matrix():
            return False
    return True


def _shown(entry: Any) -> str:
    return f"{entry:.6g}" if isinstance(entry, float) else "" if entry is None else str(entry)
