"""What the commands have in common: options that describe a plan, and the plan that they describe."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeVar

import click

import sordino as so
from sordino.errors import InvalidParameterError
from sordino.units import Unit

__all__ = ["Choices", "number_list", "plan_options"]

_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class _Kind:
    """A workload that can be described by options: its class, and which options it needs and takes."""

    build: Callable[..., so.Workload]
    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()


def _histogram(length: int) -> so.Workload:
    return so.Histogram(length)


_KINDS = {
    "moving-average": _Kind(so.MovingAverage, ("window",), ("boundary",)),
    "running-sum": _Kind(so.RunningSum),
    "exponential-smoothing": _Kind(so.ExponentialSmoothing, ("decay",), ("boundary",)),
    "polynomial-decay": _Kind(so.PolynomialDecay, ("exponent",), ("boundary",)),
    "difference": _Kind(so.Difference, (), ("order", "boundary")),
    "band-pass": _Kind(so.BandPass, ("low", "high")),
    "convolution": _Kind(so.Convolution, ("kernel",), ("boundary",)),
    "histogram": _Kind(_histogram),
}
_SHAPING = ("window", "decay", "exponent", "order", "low", "high", "kernel", "boundary")


def number_list(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[float, ...] | None:
    """Read an option that takes numbers with commas between them.

    Raises:
        click.BadParameter: Something else stands there.
    """
    if value is None:
        return None
    try:
        return tuple(float(part) for part in value.split(","))
    except ValueError:
        raise click.BadParameter("expected numbers with commas between them, such as 1,2,1", ctx, param) from None


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
        click.option("--epsilon", type=float, help="Pure privacy, or approximate privacy with --delta."),
        click.option("--delta", type=float, help="For approximate privacy: far below one over the units."),
        click.option("--rho", type=float, help="Zero-concentrated privacy."),
        click.option("--mu", type=float, help="Gaussian privacy."),
        click.option("--unit", help="What is protected, in words: 'one flight'.  [default: one record]"),
        click.option("--records", type=int, help="Records of one protected thing.  [default: 1]"),
        click.option("--replace", is_flag=True, help="Neighbours change records instead of adding or removing them."),
        click.option("--mechanism", default="auto", show_default=True, help="A mechanism by name."),
        click.option(
            "--objective",
            type=click.Choice(["mean", "max"]),
            default="mean",
            show_default=True,
            help="Least mean error, or least largest error.",
        ),
        click.option("--max-value", type=int, help="Public bound of a cell: larger cells are cut down to it."),
        click.option("--real", is_flag=True, help="Cells are real numbers; integers otherwise."),
    ]


def plan_options(command: _Command) -> _Command:
    """Add the options that describe a plan; the command receives them as the fields of `Choices`."""
    for option in reversed(_options()):
        command = option(command)
    return command


@dataclass(frozen=True)
class Choices:
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
    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    mu: float | None = None
    unit: str | None = None
    records: int | None = None
    replace: bool = False
    mechanism: str = "auto"
    objective: Literal["mean", "max"] = "mean"
    max_value: int | None = None
    real: bool = False

    def require_none(self) -> None:
        """Refuse every choice: a saved plan has made them all.

        Raises:
            InvalidParameterError: A choice was made.
        """
        made = [_flag(item.name) for item in fields(self) if getattr(self, item.name) != item.default]
        if made:
            raise InvalidParameterError(f"a saved plan is complete: leave out {', '.join(made)}")

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
        kind = _KINDS[name]
        given = {option: getattr(self, option) for option in _SHAPING if getattr(self, option) is not None}
        for option in kind.needs:
            if option not in given:
                raise InvalidParameterError(f"{name} needs {_flag(option)}")
        for option in given:
            if option not in kind.needs + kind.takes:
                raise InvalidParameterError(f"{_flag(option)} does not belong to {name}")
        return kind.build(length=size, **given)

    def build_privacy(self) -> so.PureDP | so.ApproxDP | so.ZeroConcentratedDP | so.GaussianDP:
        """Return the guarantee.

        Raises:
            InvalidParameterError: None or more than one is described, or a number is out of range.
        """
        match self.epsilon, self.delta, self.rho, self.mu:
            case float() as epsilon, None, None, None:
                return so.PureDP(epsilon=epsilon)
            case float() as epsilon, float() as delta, None, None:
                return so.ApproxDP(epsilon=epsilon, delta=delta)
            case None, None, float() as rho, None:
                return so.ZeroConcentratedDP(rho=rho)
            case None, None, None, float() as mu:
                return so.GaussianDP(mu=mu)
            case _:
                raise InvalidParameterError("say the privacy once: --epsilon, --epsilon with --delta, --rho or --mu")

    def build_unit(self, max_records: int | None = None) -> Unit:
        """Return the unit; `max_records` is what tabulation lets through of one user.

        Raises:
            InvalidParameterError: The number of records is said twice or out of range.
        """
        if max_records is not None and self.records is not None:
            raise InvalidParameterError("--max-records says how many records one user has: leave out --records")
        records = next((count for count in (max_records, self.records) if count is not None), 1)
        label = self.unit or ("one record" if max_records is None else "one user")
        return so.ReplaceOne(records, label=label) if self.replace else so.AddRemove(records, label=label)

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


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
