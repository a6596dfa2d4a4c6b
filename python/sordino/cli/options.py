"""Options that describe a plan, and the plan that they describe."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

import sordino as so
from sordino.cli.guarantee import Guarantee, Kind, add_options, build_shape, guarantee_options, number_list
from sordino.errors import InvalidParameterError

__all__ = ["Choices", "plan_options"]

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _histogram(length: int) -> so.Workload:
    return so.Histogram(length)


_KINDS: dict[str, Kind] = {
    "moving-average": Kind(so.MovingAverage, ("window",), ("boundary",)),
    "running-sum": Kind(so.RunningSum),
    "exponential-smoothing": Kind(so.ExponentialSmoothing, ("decay",), ("boundary",)),
    "polynomial-decay": Kind(so.PolynomialDecay, ("exponent",), ("boundary",)),
    "difference": Kind(so.Difference, (), ("order", "boundary")),
    "band-pass": Kind(so.BandPass, ("low", "high")),
    "convolution": Kind(so.Convolution, ("kernel",), ("boundary",)),
    "histogram": Kind(_histogram),
}
_SHAPING = ("window", "decay", "exponent", "order", "low", "high", "kernel", "boundary")


def _options() -> list[Callable[[_Command], _Command]]:
    return [
        click.option(
            "--workload",
            type=click.Choice(sorted(_KINDS)),
            help="The queries; in `release` the cells themselves if left out.",
        ),
        click.option("--window", type=int, help="Steps of a moving average."),
        click.option("--decay", type=float, help="Of exponential smoothing, between 0 and 1."),
        click.option("--exponent", type=float, help="Of polynomial decay."),
        click.option("--order", type=int, help="How often differences are taken.  [default: 1]"),
        click.option("--low", type=float, help="Lowest frequency of a band-pass filter, in cycles per step."),
        click.option("--high", type=float, help="Highest frequency of a band-pass filter, at most 0.5."),
        click.option("--kernel", callback=number_list, metavar="A,B,...", help="Taps of a convolution."),
        click.option("--length", type=int, help="Steps of the series, or cells of the histogram. Public."),
        click.option(
            "--boundary",
            type=click.Choice(["causal", "same", "circular"]),
            help="What a filter does at the ends of the series.",
        ),
        *guarantee_options(),
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
    window: int | None = None
    decay: float | None = None
    exponent: float | None = None
    order: int | None = None
    low: float | None = None
    high: float | None = None
    kernel: tuple[float, ...] | None = None
    length: int | None = None
    boundary: str | None = None

    def build_workload(self, length: int | None, default: str | None = None) -> so.Workload:
        """Return the workload on `length` cells.

        Raises:
            InvalidParameterError: An option is missing, does not belong to the workload, or is out of range.
        """
        name = self.workload or default
        size = self.length if length is None else length
        if name is None:
            raise InvalidParameterError("--workload is missing: say which queries are wanted")
        if size is None:
            raise InvalidParameterError("--length is missing: say how many steps or cells there are")
        given = {option: getattr(self, option) for option in _SHAPING}
        return build_shape(_KINDS, name, given, length=size)

    def build_plan(
        self, length: int | None = None, *, default: str | None = None, max_records: int | None = None
    ) -> so.Plan:
        """Return the plan for `length` cells.

        Raises:
            SordinoError: The choices do not describe a plan.
        """
        return so.plan(
            self.build_workload(length, default),
            self.build_privacy(),
            unit=self.build_unit(max_records),
            mechanism=self.mechanism,
            objective=self.objective,
            max_value=self.max_value,
            integral=not self.real,
        )

    def build_comparison(self) -> so.Comparison:
        """Return the comparison of mechanisms.

        Raises:
            SordinoError: The choices do not describe a plan.
        """
        if self.mechanism != "auto":
            raise InvalidParameterError("a comparison shows every mechanism: leave out --mechanism")
        return so.compare(
            self.build_workload(None),
            self.build_privacy(),
            unit=self.build_unit(),
            objective=self.objective,
            max_value=self.max_value,
            integral=not self.real,
        )
