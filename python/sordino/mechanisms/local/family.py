"""From a survey and a guarantee to how every client reports."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from sordino._support.checks import integer, open_unit, text
from sordino.errors import InvalidParameterError, PlanFileError, UnsupportedMechanismError
from sordino.mechanisms.catalogue import Law, named
from sordino.mechanisms.family import Column, Family, Progress, Shown, none_serves
from sordino.mechanisms.fits import AnyDoor, Fit, Request, fit_all
from sordino.mechanisms.local.part import SurveyPart
from sordino.mechanisms.local.response import Response
from sordino.mechanisms.local.running_sums import RunningSums
from sordino.mechanisms.local.subsets import Subsets
from sordino.mechanisms.local.waves import Waves
from sordino.mechanisms.stream.catalogue import STREAM_MECHANISMS, StreamMechanism
from sordino.mechanisms.stream.family import best_stream
from sordino.mechanisms.stream.fit import fit_stream
from sordino.privacy.calibration import cost as calibrated_cost
from sordino.privacy.calibration import gaussian_mu, pure_epsilon
from sordino.privacy.costs import Cost, PureCost
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

_RESPONSES: Mapping[str, type[Response]] = {Waves.name: Waves, Subsets.name: Subsets}


@dataclass(frozen=True, eq=False, repr=False)
class SurveyFit(Fit):
    """How every client reports its value.

    Attributes:
        cost: What one report costs its client.
        report: What a client sends of its distribution function, or of the derivative of its loss.
        level: What it sends of the loss at the lower bound, for losses that have one.
    """

    family: ClassVar[str] = "local"
    verb: ClassVar[Literal["release", "open", "encode"]] = "encode"
    scope: ClassVar[str] = ", by its report alone"
    things: ClassVar[str] = "clients"

    cost: Cost
    report: SurveyPart = field(repr=False)
    level: SurveyPart | None = field(default=None, repr=False)

    @property
    def survey(self) -> LocalSurvey:
        """What is asked, with its grid."""
        assert isinstance(self.request.workload, LocalSurvey)
        return self.request.workload

    @property
    def name(self) -> str:
        """Full name of the mechanism."""
        return self.report.name

    @property
    def parts(self) -> tuple[SurveyPart, ...]:
        """What a client sends, in this order."""
        return (self.report,) if self.level is None else (self.report, self.level)

    @property
    def doors(self) -> tuple[AnyDoor, ...]:
        """Lattice and noise of the report, and of the level."""
        return tuple(door for part in self.parts for door in part.doors)

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
        """Numbers in a message."""
        return sum(part.numbers for part in self.parts)

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
        return self.report.std() / math.sqrt(self._number(clients))

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
        return self.report.half_width(open_unit("level", level), self._number(clients))

    def largest_half_width(self, level: float) -> float:
        """Return the half width of the intervals, all grid points together."""
        return self.report.widest(open_unit("level", level), self._number(None))

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
            f"report         {self.report.said.format(w)}",
            f"message        {self.numbers} number{'s' * (self.numbers > 1)}, {self.message_bytes} bytes",
            f"error          standard error of a share at most {self.max_stderr:.4g} by noise, "
            f"{0.5 / math.sqrt(n):.2g} by sampling, grid 1/{w}",
        ]
        width = self.largest_half_width(_LEVEL)
        if width >= _GUESS:
            lines.append(
                f"not enough     shares are within ±{width:.2g} at 95 %, and one half for each of them is within ±0.5: "
                f"{self.report.enough(_LEVEL, _USEFUL, n):,} clients have ±{_USEFUL} with intervals={w}"
            )
        return lines

    def details(self) -> dict[str, Any]:
        """Return what a file says beyond the common."""
        return {"parameters": self.report.parameters}


class _Survey(Family):
    name: ClassVar[str] = "local"
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
        """Take the mechanism with the least largest error of an estimated share."""
        if request.mechanism in _RESPONSES:
            if request.noise is not None:
                raise UnsupportedMechanismError(f"{request.mechanism} lies in place of noise: leave out noise=")
            return _response(request, request.mechanism)
        if request.mechanism != "auto":
            mechanism = _named(request)
            return _running_sums(request, mechanism.law, mechanism)
        ways: list[Callable[[], SurveyFit]] = [partial(_running_sums, request, law) for law in _laws(request)]
        if request.noise is None:
            ways += [partial(_response, request, name) for name in _RESPONSES]
        fits, refused = [], {}
        for way in ways:
            try:
                fits.append(way())
            except (UnsupportedMechanismError, InvalidParameterError) as error:
                refused[str(error)] = str(error)
        if not fits:
            raise none_serves(refused, "survey")
        return min(fits, key=_largest_error)

    def shown(self, request: Request, progress: Progress | None = None) -> Shown:
        survey = request.workload
        assert isinstance(survey, LocalSurvey)
        serving = [m for m in STREAM_MECHANISMS if m.automatic and m.serves(RunningSum(survey.intervals), "hard")]
        best = self.choose(replace(request, mechanism="auto"))
        fits, refused = fit_all(serving, request, lambda mechanism: _running_sums(request, mechanism.law, mechanism))
        for name in _RESPONSES if request.noise is None else ():
            try:
                fits.append(_response(request, name))
            except UnsupportedMechanismError as error:
                refused[name] = str(error)
        if best.name not in {fit.name for fit in fits}:
            fits.append(best)  # what is solved for a few steps
        ordered = sorted(fits, key=_largest_error)
        return Shown(ordered, best.name, refused)

    def row(self, fit: SurveyFit, shown: Shown) -> dict[str, Any]:
        return {"max_stderr": fit.max_stderr, "rmse": fit.rmse}

    def refit(self, request: Request, record: Mapping[str, Any]) -> SurveyFit:
        fitted = text("fitted", record["fitted"])
        fit = self.choose(replace(request, mechanism=fitted) if request.mechanism == "auto" else request)
        fit = replace(fit, request=request)
        # More noise would be as private; but estimates count lies, and lattices, as they are fitted.
        if record["parameters"] != fit.details()["parameters"] or record["doors"] != fit.doors_record:
            raise PlanFileError("this machine or version finds other parameters for the mechanism: plan anew, here")
        return fit


SURVEY = _Survey()


def _largest_error(fit: SurveyFit) -> float:
    return fit.max_stderr


def _laws(request: Request) -> list[Law]:
    laws: list[Law] = ["laplace"] if isinstance(request.privacy, PureDP) else ["gaussian", "laplace"]
    return [law for law in laws if request.noise in {None, law}]


def _named(request: Request) -> StreamMechanism:
    """Return the mechanism of running sums that a user means.

    Raises:
        SordinoError: As `named`.
    """
    if not any(request.mechanism in {m.name, m.strategy} for m in STREAM_MECHANISMS):
        strategies = sorted({m.strategy for m in STREAM_MECHANISMS})
        raise InvalidParameterError(
            f"unknown mechanism; choose 'auto' or one of {', '.join([*_RESPONSES, *strategies])}"
        )
    return named(STREAM_MECHANISMS, request.mechanism, request.privacy, request.noise)


def _running_sums(request: Request, law: Law, mechanism: StreamMechanism | None = None) -> SurveyFit:
    """Return reports of running sums, by a mechanism or by the best with this law."""
    survey = request.workload
    assert isinstance(survey, LocalSurvey)
    main, rest = _split(request.privacy, law) if survey.loss.level else (request.privacy, None)
    asked = replace(
        request, workload=Continual(survey), privacy=main, max_value=survey.largest, mechanism="auto", noise=law
    )
    sums = best_stream(asked) if mechanism is None else fit_stream(asked, mechanism)
    report, cost = RunningSums(sums, survey.intervals, survey.largest), calibrated_cost(request.privacy, law)
    if rest is None:
        return SurveyFit(request, cost, report)
    # The loss at the lower bound is one number from 0 to 2^16 units: another value changes it by as much, not by twice.
    one = replace(
        sums.request,
        workload=Continual(RunningSum(1)),
        privacy=rest,
        unit=AddRemove(survey.largest, label="one report"),
        mechanism=f"identity-{law}",
    )
    return SurveyFit(request, cost, report, RunningSums(best_stream(one), 1, survey.largest))


def _response(request: Request, name: str) -> SurveyFit:
    """Return reports by randomised response, which is pure, whatever the guarantee."""
    survey, kind = request.workload, _RESPONSES[name]
    assert isinstance(survey, LocalSurvey)
    epsilon = pure_epsilon(request.privacy)
    cost = PureCost(epsilon)
    if not survey.loss.level:
        return SurveyFit(request, cost, kind.best(epsilon, survey.intervals, survey.largest))
    main, rest = (pure_epsilon(part) for part in _split(request.privacy, "laplace"))
    report = kind.best(main, survey.intervals, survey.largest)
    return SurveyFit(request, cost, report, Waves.best(rest, 1, survey.largest))


def _split(privacy: Privacy, law: Law) -> tuple[Privacy, Privacy]:
    """Return guarantees of two reports that together cost what one of this guarantee and law costs."""
    if law == "laplace":
        # Rounded down: together they are no more than the whole.
        epsilon = pure_epsilon(privacy)
        rest = math.nextafter(epsilon * _LEVEL_SHARE, 0.0)
        return PureDP(epsilon=math.nextafter(epsilon - rest, 0.0)), PureDP(epsilon=rest)
    mu = gaussian_mu(privacy) * (1.0 - 1e-12)
    return GaussianDP(mu=mu * math.sqrt(1.0 - _LEVEL_SHARE)), GaussianDP(mu=mu * math.sqrt(_LEVEL_SHARE))
