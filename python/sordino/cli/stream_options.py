"""Options that describe a stream, and the plan that they describe."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

import sordino as so
from sordino.cli.guarantee import Guarantee, Kind, add_options, build_shape, guarantee_options, number_list
from sordino.errors import InvalidParameterError
from sordino.privacy.units import Unit
from sordino.workloads.continual import Horizon

__all__ = ["StreamChoices", "stream_options"]

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _convolution(length: int | None, kernel: tuple[float, ...]) -> so.workloads.Workload:
    if length is None:
        raise InvalidParameterError("convolution needs --length")
    return so.Convolution(kernel, length, boundary="causal")


_KINDS: dict[str, Kind] = {
    "running-sum": Kind(so.RunningSum),
    "running-average": Kind(so.RunningAverage),
    "sliding-window": Kind(so.SlidingWindow, ("window",)),
    "moving-average": Kind(so.MovingAverage, ("window",)),
    "exponential-smoothing": Kind(so.ExponentialSmoothing, ("decay",)),
    "convolution": Kind(_convolution, ("kernel",)),
}
_SHAPING = ("window", "decay", "kernel")


def _options() -> list[Callable[[_Command], _Command]]:
    return [
        click.option("--workload", type=click.Choice(list(_KINDS)), help="What is published at every step."),
        click.option("--window", type=int, help="Steps of a sliding window (sums) or a moving average."),
        click.option("--decay", type=float, help="Of exponential smoothing, between 0 and 1."),
        click.option("--kernel", callback=number_list, metavar="A,B,...", help="Taps of a convolution."),
        click.option("--length", type=int, help="Steps of the stream; unbounded if left out."),
        click.option(
            "--horizon",
            type=click.Choice(["hard", "soft", "unbounded"]),
            help="At the length: end, go on with a larger error, or do not count on it.  [default: hard with a length]",
        ),
        *guarantee_options(),
        click.option("--max-participations", type=int, help="Protect users: lines that one of them changes, at most."),
        click.option("--min-separation", type=int, help="With users: least distance of two such lines.  [default: 1]"),
        click.option("--max-value", type=int, help="Public bound of a number: larger ones are cut down to it."),
        click.option("--real", is_flag=True, help="Numbers are real; integers otherwise."),
        click.option("--dim", type=int, help="Numbers in a line.  [default: 1, or as many as there are --column]"),
        click.option(
            "--cells-per-record", type=int, help="Numbers of a line that one record changes, at most.  [default: 1]"
        ),
        click.option("--signed", is_flag=True, help="A record may make numbers smaller, too."),
        click.option(
            "--record-norm",
            type=float,
            help="Records are vectors of real numbers of this Euclidean norm at most, in any direction.",
        ),
    ]


def stream_options(command: _Command) -> _Command:
    """Add the options that describe a stream; the command receives them as the fields of `StreamChoices`."""
    return add_options(command, _options())


@dataclass(frozen=True)
class StreamChoices(Guarantee):
    """The options that describe a stream, as given; None or the default where not."""

    workload: str | None = None
    window: int | None = None
    decay: float | None = None
    kernel: tuple[float, ...] | None = None
    length: int | None = None
    horizon: Horizon | None = None
    max_participations: int | None = None
    min_separation: int | None = None
    dim: int | None = None
    cells_per_record: int | None = None
    signed: bool = False
    record_norm: float | None = None

    def build_workload(self) -> so.workloads.Workload:
        """Return what is published.

        Raises:
            InvalidParameterError: An option is missing, does not belong to the workload, or is out of range.
        """
        if self.workload is None:
            raise InvalidParameterError("--workload is missing: say what is published")
        return build_shape(_KINDS, self.workload, {name: getattr(self, name) for name in _SHAPING}, self.length)

    def build_unit(self, bounded: so.AddRemove | None = None) -> Unit:
        """Return the unit: users if their participations are bounded, else records.

        Raises:
            InvalidParameterError: A number is out of range, or options exclude each other.
        """
        if self.max_participations is None:
            if self.min_separation is not None:
                raise InvalidParameterError("--min-separation needs --max-participations")
            return super().build_unit(bounded)
        if self.replace:
            raise InvalidParameterError("--replace does not go with --max-participations")
        return so.UserLevel(
            self.max_participations,
            self.min_separation or 1,
            per_step=1 if self.records is None else self.records,
            label=self.unit or "one user",
        )

    def _request(self) -> dict[str, Any]:
        return {
            "unit": self.build_unit(),
            "objective": self.objective,
            "max_value": self.max_value,
            "integral": not self.real,
        }

    def _live(self) -> so.Continual:
        return so.Continual(
            self.build_workload(),
            horizon=self.horizon,
            dim=1 if self.dim is None else self.dim,
            cells_per_record=1 if self.cells_per_record is None else self.cells_per_record,
            one_signed=not self.signed,
            record_norm=self.record_norm,
        )

    def build_plan(self) -> so.StreamPlan:
        """Return the plan.

        Raises:
            SordinoError: The choices do not describe a stream.
        """
        plan: so.StreamPlan = so.plan(self._live(), self.build_privacy(), mechanism=self.mechanism, **self._request())
        return plan

    def build_comparison(self) -> so.Comparison:
        """Return the comparison of mechanisms.

        Raises:
            SordinoError: The choices do not describe a stream.
        """
        return so.compare(self._live(), self.build_privacy(), **self._request())
