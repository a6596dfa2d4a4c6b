"""What commands about plans and about streams have in common: guarantee, unit, mechanism."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeVar

import click

import sordino as so
from sordino.errors import InvalidParameterError
from sordino.privacy.units import Unit
from sordino.workloads import Workload

__all__ = ["Guarantee", "Kind", "add_options", "build_shape", "flag", "guarantee_options", "number_list"]

_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class Kind:
    """A workload that can be described by options: its class, and which options it needs and takes."""

    build: Callable[..., Workload]
    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()


def build_shape(kinds: Mapping[str, Kind], name: str, given: Mapping[str, Any], length: int | None) -> Workload:
    """Return the workload of this name, shaped by the options that are given (not None).

    Raises:
        InvalidParameterError: An option is missing, does not belong to the workload, or is out of range.
    """
    kind = kinds[name]
    shaping = {option: value for option, value in given.items() if value is not None}
    for option in kind.needs:
        if option not in shaping:
            raise InvalidParameterError(f"{name} needs {flag(option)}")
    for option in shaping:
        if option not in kind.needs + kind.takes:
            raise InvalidParameterError(f"{flag(option)} does not belong to {name}")
    return kind.build(length=length, **shaping)


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


def guarantee_options() -> list[Callable[[_Command], _Command]]:
    """Return the options that all plans share: guarantee, unit, mechanism, objective."""
    return [
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
    ]


def add_options(command: _Command, options: Iterable[Callable[[_Command], _Command]]) -> _Command:
    """Add options to a command, in this order."""
    for option in reversed(list(options)):
        command = option(command)
    return command


@dataclass(frozen=True)
class Guarantee:
    """The options that all plans share, as given; None or the default where not."""

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
        if made := self.made():
            raise InvalidParameterError(f"a saved plan is complete: leave out {', '.join(made)}")

    def made(self) -> list[str]:
        """Return the options whose values are not the default."""
        return [flag(item.name) for item in fields(self) if getattr(self, item.name) != item.default]

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

    def build_unit(self, bounded: so.AddRemove | None = None) -> Unit:
        """Return the unit; `bounded` is what tabulation lets through of one user.

        Raises:
            InvalidParameterError: The number of records is said twice or out of range.
        """
        if bounded is not None and self.records is not None:
            raise InvalidParameterError("--max-records says how many records one user has: leave out --records")
        unit = bounded or so.AddRemove(1 if self.records is None else self.records)
        unit = unit if self.unit is None else replace(unit, label=self.unit)
        return so.ReplaceOne(unit.records, label=unit.label) if self.replace else unit


def flag(name: str) -> str:
    """Return the option as it is typed."""
    return f"--{name.replace('_', '-')}"
