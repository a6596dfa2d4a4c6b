"""Options that describe a plan, and the plan that they describe."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import click

import sordino as so
from sordino.cli.attributes import Attribute, cells_of, parse_attributes
from sordino.cli.guarantee import Guarantee, Kind, add_options, build_shape, flag, guarantee_options, number_list
from sordino.cli.matrices import read_matrix
from sordino.errors import InputFileError, InvalidParameterError
from sordino.mechanisms.linear.search import Progress
from sordino.privacy.units import Unit
from sordino.workloads.constraints import Constraint

__all__ = ["Choices", "plan_options"]

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _histogram(length: int) -> so.workloads.Workload:
    return so.Histogram(length)


_KINDS: dict[str, Kind] = {
    "moving-average": Kind(so.MovingAverage, ("window",), ("boundary",)),
    "running-sum": Kind(so.RunningSum),
    "exponential-smoothing": Kind(so.ExponentialSmoothing, ("decay",), ("boundary",)),
    "polynomial-decay": Kind(so.workloads.PolynomialDecay, ("exponent",), ("boundary",)),
    "difference": Kind(so.workloads.Difference, (), ("order", "boundary")),
    "band-pass": Kind(so.workloads.BandPass, ("low", "high")),
    "convolution": Kind(so.Convolution, ("kernel",), ("boundary",)),
    "histogram": Kind(_histogram),
    "all-ranges": Kind(so.AllRanges),
}
_CONSTRAINTS: dict[str, Callable[[float], Constraint]] = {
    "public_total": so.optimal.PublicTotal,
    "public_bound": so.optimal.PublicBound,
    "signed_bound": so.optimal.SignedBound,
}
_SHAPING = ("window", "decay", "exponent", "order", "low", "high", "kernel", "boundary")


def _options() -> list[Callable[[_Command], _Command]]:
    return [
        click.option(
            "--workload",
            type=click.Choice(sorted(_KINDS)),
            help="The queries; in `release` the cells themselves if left out.",
        ),
        click.option(
            "--matrix",
            type=click.Path(path_type=Path),
            help="Queries from a file instead: .npy, or .npz with A and weights or a sparse matrix.",
        ),
        click.option("--marginals", type=int, metavar="K", help="All tables of K columns instead; needs --column."),
        click.option(
            "--column",
            multiple=True,
            metavar="NAME:LEVELS",
            help="A column of records and its public levels: sex:f|m, age:0..99 or income:0,1000,5000 (edges).",
        ),
        click.option("--window", type=int, help="Steps of a moving average."),
        click.option("--decay", type=float, help="Of exponential smoothing, between 0 and 1."),
        click.option("--exponent", type=float, help="Of polynomial decay."),
        click.option("--order", type=int, help="How often differences are taken.  [default: 1]"),
        click.option("--low", type=float, help="Lowest frequency of a band-pass filter, in cycles per step."),
        click.option("--high", type=float, help="Highest frequency of a band-pass filter, at most 0.5."),
        click.option("--kernel", callback=number_list, metavar="A,B,...", help="Taps of a convolution."),
        click.option("--length", type=int, help="Steps of the series, or number of cells. Public."),
        click.option(
            "--boundary",
            type=click.Choice(["causal", "same", "valid", "circular"]),
            help="What a filter does at the ends of the series.",
        ),
        *guarantee_options(),
        click.option(
            "--per-cell", type=int, help="Most records of one protected thing in a cell; with users enforced."
        ),
        click.option(
            "--one-signed", is_flag=True, help="Its records only raise counts: cells share some of the noise."
        ),
        click.option("--noise", type=click.Choice(["gaussian", "laplace"]), help="Law of the noise that auto takes."),
        click.option(
            "--public-total", type=float, help="Public total of all cells, which are not negative; needs --replace."
        ),
        click.option(
            "--public-bound", type=float, help="Public bound on the sum of all cells, which are not negative."
        ),
        click.option("--signed-bound", type=float, help="Public bound on the sum of the absolute values of the cells."),
        click.option(
            "--effort",
            type=click.Choice(["closed-form", "optimize"]),
            default="optimize",
            show_default=True,
            help="Whether auto also searches for strategies.",
        ),
        click.option("--max-value", type=int, help="Public bound of a cell: larger cells are cut down to it."),
        click.option("--real", is_flag=True, help="Cells are real numbers; integers otherwise."),
    ]


def plan_options(command: _Command) -> _Command:
    """Add the options that describe a plan; the command receives them as the fields of `Choices`."""
    return add_options(command, _options())


@dataclass(frozen=True)
class Choices(Guarantee):
    """The options that describe a plan, as given; None or the default where not."""

    workload: str | None = None
    matrix: Path | None = None
    marginals: int | None = None
    column: tuple[str, ...] = ()
    window: int | None = None
    decay: float | None = None
    exponent: float | None = None
    order: int | None = None
    low: float | None = None
    high: float | None = None
    kernel: tuple[float, ...] | None = None
    length: int | None = None
    boundary: str | None = None
    per_cell: int | None = None
    one_signed: bool = False
    noise: Literal["gaussian", "laplace"] | None = None
    public_total: float | None = None
    public_bound: float | None = None
    signed_bound: float | None = None
    effort: Literal["closed-form", "optimize"] = "optimize"

    def build_workload(self, length: int | None, default: str | None = None) -> so.workloads.Workload:
        """Return the workload on `length` cells, on those of the columns, or on as many as are declared.

        Raises:
            InvalidParameterError: An option is missing, does not belong to the workload, or is out of range.
            InputFileError: The matrix cannot be read or is about another number of cells.
        """
        said = [flag(name) for name in ("workload", "matrix", "marginals") if getattr(self, name) is not None]
        if len(said) > 1:
            raise InvalidParameterError(f"say the queries once: {' or '.join(said)}")
        name = self.workload or default
        if not said and name is None:
            raise InvalidParameterError("--workload is missing: say which queries are wanted, or give --matrix")
        given = {option: getattr(self, option) for option in _SHAPING}
        attributes = parse_attributes(self.column)
        if self.matrix is not None or self.marginals is not None:
            for option in (option for option, value in given.items() if value is not None):
                raise InvalidParameterError(f"{flag(option)} does not belong to {said[0]}")
        if self.marginals is not None:
            return self._build_marginals(attributes)
        size = self._count_cells(length, attributes)
        if self.matrix is not None:
            matrix = read_matrix(self.matrix)
            if size not in (None, matrix.A.shape[1]):
                raise InputFileError("the matrix of queries has another number of columns than there are cells")
            return matrix
        if size is None:
            raise InvalidParameterError("--length is missing: say how many steps or cells there are")
        assert name is not None
        return build_shape(_KINDS, name, given, length=size)

    def _build_marginals(self, attributes: tuple[Attribute, ...]) -> so.workloads.Workload:
        if not attributes:
            raise InvalidParameterError("--marginals needs --column, once for each column of the records")
        if self.length is not None:
            raise InvalidParameterError("--length does not belong to --marginals")
        return so.Marginals([len(attribute.levels) for attribute in attributes], k=self.marginals)

    def _count_cells(self, length: int | None, attributes: tuple[Attribute, ...]) -> int | None:
        """Return the number of cells of the source, of the columns or as declared, None if nothing says it."""
        cells = cells_of(attributes) if attributes else length
        if cells is not None and self.length not in (None, cells):
            raise InputFileError("the input has another number of cells than --length says")
        return self.length if cells is None else cells

    def build_unit(self, bounded: so.AddRemove | None = None) -> Unit:
        """Return the unit; `bounded` is what tabulation lets through of one user.

        Raises:
            InvalidParameterError: What is said of the records does not go together, or is out of range.
        """
        unit = super().build_unit(bounded)
        if not isinstance(unit, so.AddRemove):
            if self.per_cell is not None or self.one_signed:
                raise InvalidParameterError("--per-cell and --one-signed do not belong to --replace")
            return unit
        if bounded is None:
            return replace(unit, per_cell=self.per_cell, one_signed=self.one_signed)
        return replace(unit, one_signed=unit.one_signed or self.one_signed)

    def build_constraint(self) -> Constraint | None:
        """Return what is publicly known about the input.

        Raises:
            InvalidParameterError: More than one constraint is given, or it is out of range.
        """
        given = {name: getattr(self, name) for name in _CONSTRAINTS if getattr(self, name) is not None}
        if len(given) > 1:
            raise InvalidParameterError(f"give one of {', '.join(map(flag, _CONSTRAINTS))}")
        if "public_total" in given and not self.replace:
            raise InvalidParameterError("--public-total needs --replace: adding a record would change the total")
        return next((_CONSTRAINTS[name](value) for name, value in given.items()), None)

    def build_plan(
        self,
        length: int | None = None,
        *,
        default: str | None = None,
        bounded: so.AddRemove | None = None,
        progress: Progress | None = None,
    ) -> so.ReleasePlan:
        """Return the plan for `length` cells; `progress` is told about searches.

        Raises:
            SordinoError: The choices do not describe a plan.
        """
        return so.plan(
            self.build_workload(length, default),
            self.build_privacy(),
            unit=self.build_unit(bounded),
            mechanism=self.mechanism,
            objective=self.objective,
            noise=self.noise,
            max_value=self.max_value,
            integral=not self.real,
            constraint=self.build_constraint(),
            effort="optimize" if self.effort == "optimize" else "closed_form",
            progress=progress,
        )

    def build_comparison(self, progress: Progress | None = None) -> so.Comparison:
        """Return the comparison of mechanisms; `progress` is told about searches.

        Raises:
            SordinoError: The choices do not describe a plan.
        """
        if self.mechanism != "auto":
            raise InvalidParameterError("a comparison shows every mechanism: leave out --mechanism")
        if self.noise is not None:
            raise InvalidParameterError("a comparison shows every law of noise: leave out --noise")
        return so.compare(
            self.build_workload(None),
            self.build_privacy(),
            unit=self.build_unit(),
            objective=self.objective,
            max_value=self.max_value,
            integral=not self.real,
            constraint=self.build_constraint(),
            effort="optimize" if self.effort == "optimize" else "closed_form",
            progress=progress,
        )
