"""From a survey and a guarantee to a plan."""

from __future__ import annotations

import math
from dataclasses import replace

from sordino.errors import DataTypeError
from sordino.mechanisms.linear.fit import check_request
from sordino.mechanisms.stream.fit import StreamRequest
from sordino.plans.local import LocalPlan
from sordino.privacy.calibration import gaussian_mu
from sordino.privacy.guarantees import ApproxDP, GaussianDP, Privacy, PureDP
from sordino.privacy.units import AddRemove, ReplaceOne
from sordino.workloads import RunningSum
from sordino.workloads.local.survey import LocalSurvey

__all__ = ["plan_local"]

# Of the budget (its square, for Gaussian noise), for the loss at the lower bound: it needs one number.
_LEVEL_SHARE = 0.1
_UNIT = ReplaceOne(label="one report")


def plan_local(survey: LocalSurvey, privacy: Privacy, *, mechanism: str = "auto") -> LocalPlan:
    """Plan a survey in the local model: touches no data, costs nothing.

    Every report alone satisfies `privacy` for any two values of its client. `auto` takes the mechanism with the least
    largest error of an estimated share.

    Args:
        survey: What is asked.
        privacy: The guarantee of a report; under `PureDP` noise is Laplace.
        mechanism: 'auto', or the name of a mechanism of running sums with a hard horizon, such as 'binary-tree' (the
            tree that earlier work uses) or 'identity' (a noisy one-hot vector).

    Raises:
        DataTypeError: An argument is of the wrong type.
        InvalidParameterError: An argument is out of range, or the loss is not convex and 1-Lipschitz.
        UnsupportedMechanismError: The mechanism serves no running sum, or cannot give the guarantee.
    """
    from sordino.plans.stream_planner import plan_request  # noqa: PLC0415 - it plans event streams

    if not isinstance(survey, LocalSurvey):
        raise DataTypeError("survey must be a sordino.LocalSurvey")
    check_request(survey, privacy, None, "max", None, True)
    rate = privacy.epsilon if isinstance(privacy, PureDP | ApproxDP) else gaussian_mu(privacy)
    survey = survey.with_intervals(rate)
    survey.check_loss()
    main, rest = _split(privacy) if survey.loss.level else (privacy, None)
    request = StreamRequest(
        workload=RunningSum(survey.intervals),
        privacy=main,
        unit=_UNIT,
        horizon="hard",
        objective="max",
        max_value=survey.largest,
        events=survey,
    )
    sums = plan_request(request, mechanism)
    if rest is None:
        return LocalPlan(survey, privacy, sums)
    # The loss at the lower bound is one number from 0 to 2^16 units: another value changes it by as much, not by twice.
    level = replace(
        request, workload=RunningSum(1), privacy=rest, events=None, unit=AddRemove(survey.largest, label="one report")
    )
    return LocalPlan(survey, privacy, sums, plan_request(level, f"identity-{sums.fitted.mechanism.law}"))


def _split(privacy: Privacy) -> tuple[Privacy, Privacy]:
    """Return guarantees of two reports that together are this one."""
    if isinstance(privacy, PureDP):
        # Rounded down: together they are no more than the whole.
        rest = math.nextafter(privacy.epsilon * _LEVEL_SHARE, 0.0)
        return PureDP(epsilon=math.nextafter(privacy.epsilon - rest, 0.0)), PureDP(epsilon=rest)
    mu = gaussian_mu(privacy) * (1.0 - 1e-12)
    return GaussianDP(mu=mu * math.sqrt(1.0 - _LEVEL_SHARE)), GaussianDP(mu=mu * math.sqrt(_LEVEL_SHARE))
