"""From a survey and a guarantee to how every client reports."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np

from sordino._support.checks import integer
from sordino.accuracy.half_widths import gaussian_half_width
from sordino.errors import InvalidParameterError, PlanFileError
from sordino.mechanisms.catalogue import named
from sordino.mechanisms.family import Column, Family, Progress, Shown, none_serves
from sordino.mechanisms.fits import AnyDoor, Fit, Request, fit_all
from sordino.mechanisms.stream.catalogue import STREAM_MECHANISMS
from sordino.mechanisms.stream.family import best_stream
from sordino.mechanisms.stream.fit import StreamFit, fit_stream
from sordino.privacy.calibration import cost as calibrated_cost
from sordino.privacy.calibration import gaussian_mu
from sordino.privacy.costs import Cost
from sordino.privacy.guarantees import ApproxDP, GaussianDP, Privacy, PureDP
from sordino.privacy.units import AddRemove, ReplaceOne, Unit
from sordino.workloads import RunningSum
from sordino.workloads.base import Array
from sordino.workloads.continual import Continual
from sordino.workloads.local.survey import MOST_CLIENTS, LocalSurvey

__all__ = ["SURVEY", "SurveyFit"]

# Of the budget (its square, for Gaussian noise), for the loss at the lower bound: it needs one number.
_LEVEL_SHARE = 0.1
# One half is no further from any share; and what most people would call an answer.
_GUESS, _USEFUL, _LEVEL = 0.5, 0.1, 0.95


@dataclass(frozen=True, eq=False, repr=False)
class SurveyFit(Fit):
    """How every client reports its value.

    Attributes:
        sums: One client's running sum.
        level: The loss at the lower bound, for losses that have one.
    """

    family: ClassVar[str] = "survey"
    verb: ClassVar[Literal["release", "open", "encode"]] = "encode"
    scope: ClassVar[str] = ", by its report alone"
    things: ClassVar[str] = "clients"

    sums: StreamFit = field(repr=False)
    level: StreamFit | None = field(default=None, repr=False)

    @property
    def survey(self) -> LocalSurvey:
        """What is asked, with its grid."""
        assert isinstance(self.request.workload, LocalSurvey)
        return self.request.workload

    @property
    def name(self) -> str:
        """Full name of the mechanism."""
        return self.sums.name

    @property
    def cost(self) -> Cost:
        """What one report costs its client."""
        return calibrated_cost(self.request.privacy, self.sums.mechanism.law)

    @property
    def doors(self) -> tuple[AnyDoor, ...]:
        """Lattice and noise of the running sum, and of the level."""
        return self.sums.doors + (() if self.level is None else self.level.doors)

    @property
    def subject(self) -> str:
        """What is protected, as the subject of a sentence."""
        return self.survey.protected(self.request.unit)

    @property
    def extent(self) -> str:
        """How much the unit changes at most, in words."""
        return f"{self.subject[0].lower()}{self.subject[1:]}"

    @property
    def numbers(self) -> int:
        """Numbers in a message: the steps of the grid, and one for the level."""
        return self.survey.intervals + (self.level is not None)

    @property
    def message_bytes(self) -> int:
        """Bytes of a message."""
        return 8 * self.numbers

    def std(self, clients: int | None = None) -> Array:
        """Return the standard deviation, by noise alone, of the estimated share of clients at or below each grid point.

        Args:
            clients: Number of reports; the declared number if None.

        Raises:
            DataTypeError: The number is no integer.
            InvalidParameterError: The number is below 1.
        """
        return self.sums.std(np.arange(1, self.survey.intervals + 1)) / math.sqrt(self._number(clients))

    def _number(self, clients: int | None) -> int:
        return self.survey.clients if clients is None else integer("clients", clients, least=1, most=MOST_CLIENTS)

    def half_width(self, level: float, clients: int | None = None) -> Array:
        """Return half widths of intervals for the shares of the asked clients, all grid points together.

        Args:
            level: Strictly between 0 and 1.
            clients: Number of reports; the declared number if None.

        Raises:
            InvalidParameterError: The level is out of range.
        """
        answers, deviations = self.survey.intervals, self.std(clients)
        if self.sums.mechanism.law == "gaussian":
            return gaussian_half_width(deviations, level, answers)
        number = self._number(clients)
        noise = self.sums.laplace.times(self.survey.counted_unit / number)
        known: dict[int, float] = {}

        def width(deviation: float) -> float:
            variates = max(math.ceil(deviation**2 / (2.0 * noise.scale**2) - 1e-6), 1)
            if variates not in known:
                known[variates] = noise.of_equal(variates, level, answers)
            return known[variates]

        return np.array([width(float(d)) for d in deviations])

    def largest_half_width(self, level: float) -> float:
        """Return the half width of the intervals, all grid points together."""
        return float(self.half_width(level).max())

    @property
    def rmse(self) -> float:
        """Root mean squared standard deviation of the estimated shares, by noise alone."""
        return math.sqrt(float(np.mean(self.std() ** 2)))

    @property
    def rmse_kind(self) -> str:
        """'noise only': sampling and the grid come on top."""
        return "noise only"

    @property
    def max_stderr(self) -> float:
        """Largest standard deviation of an estimated share, by noise alone."""
        return float(self.std().max())

    def lines(self) -> list[str]:
        """Say what is sent and how good that is."""
        n, w = self.survey.clients, self.survey.intervals
        lines = [
            f"counters       one running sum of {w} steps a client",
            f"message        {self.numbers} numbers, {self.message_bytes} bytes",
            f"error          standard error of a share at most {self.max_stderr:.4g} by noise, "
            f"{0.5 / math.sqrt(n):.2g} by sampling, grid 1/{w}",
        ]
        width = self.largest_half_width(_LEVEL)
        if width >= _GUESS:
            enough = n * (width / _USEFUL) ** 2
            digit = 10.0 ** math.floor(math.log10(enough))
            lines.append(
                f"not enough     shares are within ±{width:.2g} at 95 %, and one half for each of them is within ±0.5: "
                f"{math.ceil(enough / digit) * digit:,.0f} clients have ±{_USEFUL} with intervals={w}"
            )
        return lines

    def details(self) -> dict[str, Any]:
        """Return what a file says beyond the common."""
        return {"parameters": self.sums.details()["parameters"]}


class _Survey(Family):
    name: ClassVar[str] = "survey"
    options: ClassVar[frozenset[str]] = frozenset(("noise",))
    unit: ClassVar[Unit] = ReplaceOne(label="one report")
    columns: ClassVar[tuple[Column, ...]] = (Column("max_stderr", 14, ".4g", "max stderr"), Column("rmse", 14, ".4g"))
    scales: ClassVar[bool] = False

    def check(self, request: Request) -> Request:
        """Choose the grid for so much privacy, and refuse a loss that is not convex and 1-Lipschitz."""
        survey, privacy = request.workload, request.privacy
        assert isinstance(survey, LocalSurvey)
        if request.unit != self.unit:
            raise InvalidParameterError("a survey protects the value of each client in its report: leave out the unit")
        rate = privacy.epsilon if isinstance(privacy, PureDP | ApproxDP) else gaussian_mu(privacy)
        survey = survey.with_intervals(rate)
        survey.check_loss()
        return replace(request, workload=survey, objective="max")

    def choose(self, request: Request, progress: Progress | None = None) -> SurveyFit:
        """Take the mechanism of a running sum with the least largest error of an estimated share."""
        return _with_level(request, best_stream(_sums(request)))

    def shown(self, request: Request, progress: Progress | None = None) -> Shown:
        asked = _sums(replace(request, mechanism="auto"))
        filters = RunningSum(asked.workload.length)  # type: ignore[attr-defined]
        serving = [m for m in STREAM_MECHANISMS if m.automatic and m.serves(filters, "hard")]
        fits, refused = fit_all(serving, asked, lambda mechanism: fit_stream(asked, mechanism))
        if not fits:
            raise none_serves(refused, "survey")
        chosen = self.choose(replace(request, mechanism="auto")).name
        ordered = sorted((_with_level(request, fit) for fit in fits), key=lambda fit: fit.max_stderr)
        return Shown(ordered, chosen, refused)

    def row(self, fit: SurveyFit, shown: Shown) -> dict[str, Any]:
        return {"max_stderr": fit.max_stderr, "rmse": fit.rmse}

    def refit(self, request: Request, record: Mapping[str, Any]) -> SurveyFit:
        mechanism = named(STREAM_MECHANISMS, record["fitted"], request.privacy)
        fit = _with_level(request, fit_stream(_sums(request), mechanism))
        if record["parameters"] != fit.details()["parameters"]:
            raise PlanFileError("this machine or version finds other parameters for the mechanism: plan anew, here")
        return fit


SURVEY = _Survey()


def _sums(request: Request) -> Request:
    """Return the request of one client's running sum."""
    survey = request.workload
    assert isinstance(survey, LocalSurvey)
    main = _split(request.privacy)[0] if survey.loss.level else request.privacy
    return replace(request, workload=Continual(survey), privacy=main, max_value=survey.largest)


def _with_level(request: Request, sums: StreamFit) -> SurveyFit:
    survey = request.workload
    assert isinstance(survey, LocalSurvey)
    if not survey.loss.level:
        return SurveyFit(request, sums)
    # The loss at the lower bound is one number from 0 to 2^16 units: another value changes it by as much, not by twice.
    level = replace(
        sums.request,
        workload=Continual(RunningSum(1)),
        privacy=_split(request.privacy)[1],
        unit=AddRemove(survey.largest, label="one report"),
        mechanism=f"identity-{sums.mechanism.law}",
    )
    return SurveyFit(request, sums, best_stream(level))


def _split(privacy: Privacy) -> tuple[Privacy, Privacy]:
    """Return guarantees of two reports that together are this one."""
    if isinstance(privacy, PureDP):
        # Rounded down: together they are no more than the whole.
        rest = math.nextafter(privacy.epsilon * _LEVEL_SHARE, 0.0)
        return PureDP(epsilon=math.nextafter(privacy.epsilon - rest, 0.0)), PureDP(epsilon=rest)
    mu = gaussian_mu(privacy) * (1.0 - 1e-12)
    return GaussianDP(mu=mu * math.sqrt(1.0 - _LEVEL_SHARE)), GaussianDP(mu=mu * math.sqrt(_LEVEL_SHARE))
