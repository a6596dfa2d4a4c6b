"""What a family of mechanisms says of itself; the planner needs nothing else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from sordino.accuracy.bounds import Bound
from sordino.errors import UnsupportedMechanismError
from sordino.mechanisms.fits import Fit, Request
from sordino.mechanisms.linear.search import Progress
from sordino.privacy.units import AddRemove, Unit
from sordino.workloads.base import Workload

__all__ = ["Column", "Family", "Progress", "Shown", "none_serves"]


class Column(NamedTuple):
    """A column of a printed comparison.

    Attributes:
        name: Of the entry in a row.
        width: Of what is printed, in characters.
        form: How a number is printed; '-' stands for None.
        head: What stands above, the name if empty.
    """

    name: str
    width: int
    form: str
    head: str = ""


@dataclass(frozen=True)
class Shown:
    """Mechanisms side by side.

    Attributes:
        fits: Best first.
        chosen: What `auto` takes.
        refused: Mechanisms that do not serve, with the reason.
        bound: Least error of any Gaussian mechanism, None if none is known.
        steps: Where the standard errors of a stream are shown.
    """

    fits: Sequence[Fit]
    chosen: str
    refused: dict[str, str] = field(default_factory=dict)
    bound: Bound | None = None
    steps: tuple[int, ...] = ()


class Family(ABC):
    """Which mechanisms serve a kind of workload, which is best, and what is shown of them.

    Attributes:
        name: In files.
        options: Arguments of `plan` that mean something here; the others are refused.
        unit: What is protected if nothing is said.
        columns: Of a comparison, after the name of the mechanism.
        scales: Whether the error of every strategy is proportional to its noise, so that a target for the error
            says the privacy at once.
    """

    name: ClassVar[str]
    options: ClassVar[frozenset[str]]
    unit: ClassVar[Unit] = AddRemove(1)
    columns: ClassVar[tuple[Column, ...]]
    scales: ClassVar[bool] = True

    def takes(self, workload: Workload) -> frozenset[str]:
        """Return the arguments of `plan` that mean something for a workload."""
        return self.options

    def check(self, request: Request) -> Request:
        """Return the request with its defaults; refuse one that contradicts itself.

        Raises:
            InvalidParameterError: It does.
            UnsupportedMechanismError: Nothing serves it.
        """
        return request

    @abstractmethod
    def choose(self, request: Request, progress: Progress | None = None) -> Fit:
        """Return the mechanism that was named, or the one with the least error.

        Raises:
            InvalidParameterError: No such name, or public sizes do not fit.
            UnsupportedMechanismError: It serves not, or nothing does.
        """

    def candidates(self, request: Request) -> Sequence[Fit]:
        """Return what `auto` chooses among, for the target of an error."""
        return [self.choose(request)]

    @abstractmethod
    def shown(self, request: Request, progress: Progress | None = None) -> Shown:
        """Return every mechanism that can answer.

        Raises:
            UnsupportedMechanismError: There is none.
        """

    @abstractmethod
    def row(self, fit: Any, shown: Shown) -> dict[str, Any]:
        """Return what a comparison says of a mechanism, besides its name."""

    @abstractmethod
    def refit(self, request: Request, record: Mapping[str, Any]) -> Fit:
        """Return the mechanism that a file names, fitted again to its request.

        Raises:
            SordinoError: The file is not what fitting gives.
        """


def none_serves(refused: Mapping[str, str], what: str = "workload") -> UnsupportedMechanismError:
    """Return the error that says why nothing serves."""
    why = "; ".join(sorted(set(refused.values())))
    return UnsupportedMechanismError(f"no mechanism serves this {what} and privacy" + (f": {why}" if why else ""))
