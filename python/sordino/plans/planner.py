"""Choosing a mechanism from public facts alone: `plan`, `compare`, `privacy_for`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias, overload

import numpy as np

from sordino._support.checks import open_unit, positive
from sordino.accuracy.factorizations import Factorization
from sordino.errors import DataTypeError, InvalidParameterError, UnsupportedMechanismError
from sordino.mechanisms.catalogue import Law
from sordino.mechanisms.families import family_of
from sordino.mechanisms.family import Family, Progress
from sordino.mechanisms.fits import Effort, Fit, Objective, Request, checked, least_error
from sordino.mechanisms.linear.compression import Compression
from sordino.plans.beside_ledger import beside
from sordino.plans.comparison import Comparison, compare_request
from sordino.plans.plan import Plan, ReleasePlan, StreamPlan, SurveyPlan, plan_of
from sordino.privacy.calibration import epsilon_of_mu, noise_ratio
from sordino.privacy.costs import GaussianCost
from sordino.privacy.guarantees import ApproxDP, Privacy, PureDP
from sordino.privacy.ledger import Ledger
from sordino.privacy.units import Unit
from sordino.workloads import RunningHistogram
from sordino.workloads.base import Workload
from sordino.workloads.bases import Basis
from sordino.workloads.constraints import Constraint
from sordino.workloads.continual import Continual
from sordino.workloads.events.base import EventWorkload
from sordino.workloads.local.survey import LocalSurvey
from sordino.workloads.rare import RareCount

__all__ = ["compare", "plan", "privacy_for"]

Live: TypeAlias = Continual | RunningHistogram | EventWorkload | RareCount

# Less Gaussian noise than this, relative to the sensitivity, is not asked for.
_LEAST_RATIO = 1e-5
# Where the error is no multiple of the noise: epsilons that are tried, and how near the least one is.
_LEAST, _MOST = 1e-6, 1e6
_WITHIN = 1e-3
# The same of discrete noise, whose error is a formula.
_EXACTLY = 1.0 + 1e-13
# Most that the lattice takes, and more than it differs by from one epsilon to the next.
_INFLATION = 1e-3

_DEFAULTS = {each.name: each.default for each in fields(Request)} | {"basis": "haar"}


def _is_default(value: object, default: object) -> bool:
    # Arrays and frames compare entry by entry, others as they like: only scalars and what is of the type are compared.
    return value is default or (isinstance(value, (type(default), np.generic)) and bool(value == default))


def _asked(workload: object, privacy: object, unit: object, options: dict[str, Any]) -> tuple[Family, Request]:
    """Return a request and the family that serves it; options of other families are refused."""
    family, asked = family_of(workload, options.get("mechanism"))
    taken = {"mechanism", *family.takes(asked)}
    for name, value in options.items():
        if name not in taken and not _is_default(value, _DEFAULTS[name]):
            raise InvalidParameterError(f"{name} means nothing for {type(workload).__name__}")
    layout = asked.layout if isinstance(asked, Workload) else None
    own = family.unit if layout is None else layout.unit
    return family, checked(asked, privacy, own if unit is None else unit, **options)


def _request(workload: object, privacy: object, unit: object, options: dict[str, Any]) -> tuple[Family, Request]:
    """Return a request that its family has checked."""
    family, request = _asked(workload, privacy, unit, options)
    return family, family.check(request)


def _progress(progress: object) -> Progress | None:
    if progress is not None and not callable(progress):
        raise DataTypeError("progress must be callable")
    return progress


@overload
def plan(workload: LocalSurvey, privacy: Privacy | None = ..., *, mechanism: str = ...) -> SurveyPlan: ...  # type: ignore[overload-overlap]
@overload
def plan(  # type: ignore[overload-overlap]
    workload: Live,
    privacy: Privacy | None = ...,
    *,
    unit: Unit | None = ...,
    mechanism: str = ...,
    objective: Objective = ...,
    max_value: int | None = ...,
    integral: bool = ...,
    effort: Effort = ...,
    basis: Basis | str = ...,
    compression: Compression | None = ...,
    memory: int | None = ...,
    degree: int | None = ...,
    noise: Law | None = ...,
    ledger: Ledger | None = ...,
    share: float | None = ...,
) -> StreamPlan: ...
@overload
def plan(
    workload: Workload,
    privacy: Privacy | None = ...,
    *,
    unit: Unit | None = ...,
    mechanism: str = ...,
    objective: Objective = ...,
    max_value: int | None = ...,
    integral: bool = ...,
    noise: Law | None = ...,
    ledger: Ledger | None = ...,
    share: float | None = ...,
    constraint: Constraint | None = ...,
    effort: Effort = ...,
    factorization: Factorization | None = ...,
    basis: Basis | str = ...,
    compression: Compression | None = ...,
    memory: int | None = ...,
    progress: Progress | None = ...,
) -> ReleasePlan: ...
def plan(
    workload: Workload,
    privacy: Privacy | None = None,
    *,
    unit: Unit | None = None,
    mechanism: str = "auto",
    objective: Objective = "mean",
    max_value: int | None = None,
    integral: bool = True,
    constraint: Constraint | None = None,
    effort: Effort = "optimize",
    factorization: Factorization | None = None,
    basis: Basis | str = "haar",
    compression: Compression | None = None,
    memory: int | None = None,
    degree: int | None = None,
    noise: Law | None = None,
    ledger: Ledger | None = None,
    share: float | None = None,
    progress: Progress | None = None,
) -> Plan:
    """Plan a release, a stream or a survey: touches no data, costs nothing.

    `auto` takes the least error among the mechanisms that serve the workload and the privacy (`fourier-composed`
    and `fourier-uniform` are reached by name only); of those within 1 % the simplest. The choice depends on the
    arguments alone, and regards this one release: beside a `ledger`, what each law of noise takes of what is left. It
    never takes a sketch for its error, which thresholds on all cells beat; it does where `memory` leaves no room for
    the cells.

    What a workload does not use is refused: surveys and `SmoothQueries` say all of it themselves.

    Args:
        workload: The queries; `Continual(...)` for live answers.
        privacy: The guarantee of one release, of a whole stream, or of one report; beside a ledger `share` may stand in
            its place.
        unit: What one protected thing can change; if None that of the workload's schema, `AddRemove(1)` without one.
        mechanism: 'auto', or a name from the catalogues in `sordino.mechanisms`.
        objective: 'mean' minimises `rmse`, 'max' minimises `max_stderr`; of a class of smooth queries what none of them
            is off by more than, 19 times of 20 (`fit.uniform_error(0.05)`).
        max_value: Public bound on the magnitude of a cell, or of an entry of an item; those beyond are clamped. The
            largest power of two up to 2**24 that costs nothing if None; of amounts times what one unit may add.
        integral: Whether cells are integers; otherwise they are rounded to a fine public grid.
        constraint: What is publicly known about the input: answers are projected onto it. `auto` then means 'sparse',
            and for more cells than are searched the best of the others.
        effort: 'optimize' also searches for strategies, up to 512 cells (pure ones up to 256, of ranges and sums up to
            4096, other filters 2**20; up to 1,024 for what one decomposition gives), whenever no closed form is known
            to be optimal; 'closed_form' searches only when such a mechanism is named.
        factorization: What 'optimal' or another searched mechanism measures, from `sordino.optimal.factorize`.
        basis: In which 'threshold', and estimates of a live table, look for what is not noise: 'haar', 'cosine',
            'standard', an `OrthonormalBasis`.
        compression: What 'compressive' measures and how it is read; of a live table the sketch that is kept.
        memory: Most bytes that may be kept or sent before the release, at 8 bytes a number. Where the cells need more,
            'auto' takes 'compressive', with the sizes that fit if no `compression` is given. Of a stream the most bytes
            of noise state a coordinate.
        degree: Of a stream's `blt`, or arity of its `subtraction-tree`.
        noise: 'laplace' or 'gaussian': what `auto` is confined to.
        ledger: Whose budget the plan is for, of which only public facts are read; nothing is charged. Laws of noise
            that it refuses are left out, the others compared at an equal share of what is left: a pure cost and a
            Gaussian one for the same (epsilon, delta) do not take the same. `explain()` says what the charge takes
            and leaves.
        share: Above 0 and at most 1: each law of noise gets so much of what the ledger has left, and the least error
            wins.
        progress: Called with (iteration, gap) during searches; returning False ends one, with a larger gap.

    Returns:
        A `ReleasePlan`; a `StreamPlan` for live answers and counts of events, a `SurveyPlan` for a `LocalSurvey`.

    Raises:
        DataTypeError: An argument is of the wrong type.
        InvalidParameterError: An argument is out of range, or means nothing for this workload.
        UnsupportedMechanismError: No mechanism, or not the one named, serves this workload and privacy.
        BudgetExceededError: The ledger has too little left.
        UnitError: The ledger protects another thing.
    """
    options = {
        "mechanism": mechanism,
        "objective": objective,
        "max_value": max_value,
        "integral": integral,
        "constraint": constraint,
        "effort": effort,
        "factorization": factorization,
        "basis": basis,
        "compression": compression,
        "memory": memory,
        "degree": degree,
        "noise": noise,
    }
    if ledger is None and share is not None:
        raise InvalidParameterError("share= is of what a ledger has left: give ledger=")

    def choose(privacy: object, law: Law | None = None) -> Fit:
        asked = options if law is None else options | {"noise": law}
        family, request = _request(workload, privacy, unit, asked)
        fit = family.choose(request, _progress(progress))
        if request.noise is not None and isinstance(fit.cost, GaussianCost) != (request.noise == "gaussian"):
            raise UnsupportedMechanismError(f"{fit.name} has no {request.noise} noise")
        return fit

    if ledger is None:
        return plan_of(choose(privacy))
    chosen = beside(ledger, privacy, share, noise, choose)
    return plan_of(chosen.fit, chosen.lines)


def compare(
    workload: Workload,
    privacy: Privacy,
    *,
    unit: Unit | None = None,
    objective: Objective = "mean",
    max_value: int | None = None,
    integral: bool = True,
    constraint: Constraint | None = None,
    effort: Effort = "optimize",
    basis: Basis | str = "haar",
    compression: Compression | None = None,
    memory: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Return the expected error of every mechanism that can answer, best first; of streams memory and time too.

    `fourier-composed` is left out: its calibration takes seconds, and Gaussian noise beats it always. Recoveries come
    last, thresholds beside histograms only: what they make of data that is not sparse cannot be said beforehand. Of
    those, noise on all cells with a threshold has had less error than a sketch on all data that was tried: a sketch
    is for want of memory.

    Args:
        workload: The queries.
        privacy: The guarantee.
        unit: What one protected thing can change; `AddRemove(1)` if None.
        objective: What `auto` would minimise, and the order of the rows.
        max_value: As in `plan`.
        integral: As in `plan`.
        constraint: As in `plan`; the mechanisms that project onto it are shown with the error of their noise alone.
        effort: As in `plan`.
        basis: As in `plan`; 'threshold' is shown with the error of the noise on all cells.
        compression: As in `plan`; 'compressive' is shown with the error of its noise alone, for data of that sparsity.
        memory: As in `plan`; mechanisms that do not fit are shown all the same.
        progress: As in `plan`; called for one search after the other.

    Raises:
        DataTypeError: An argument is of the wrong type.
        InvalidParameterError: An argument is out of range.
        UnsupportedMechanismError: No mechanism serves.
    """
    options = {
        "objective": objective,
        "max_value": max_value,
        "integral": integral,
        "constraint": constraint,
        "effort": effort,
        "basis": basis,
        "compression": compression,
        "memory": memory,
    }
    return compare_request(_request(workload, privacy, unit, options)[1], _progress(progress))


def privacy_for(
    workload: Workload,
    *,
    rmse: float | None = None,
    max_stderr: float | None = None,
    within: float | None = None,
    level: float = 0.95,
    delta: float | None = None,
    unit: Unit | None = None,
    mechanism: str = "auto",
    max_value: int | None = None,
    integral: bool = True,
) -> Privacy:
    """Return the least epsilon with which the error target is met: the question people ask first.

    Of more than 8 answers under Laplace noise `within` is met by 8 with large errors: where it was measured, others had
    intervals wider by up to a quarter of a percent at levels from .95, and by up to 7 % at .5.
    Half widths under staircase noise are steps that rise here and there as epsilon grows: a smaller epsilon may do.
    Where the error is no multiple of the noise (`SmoothQueries`, surveys, live tables), within a thousandth of it, from
    1e-6 to 1e6.

    Args:
        workload: The queries.
        rmse: Wanted root mean squared error; give this, `max_stderr` or `within`.
        max_stderr: Wanted largest standard error.
        within: Wanted half width of every answer's interval at `level`.
        level: Strictly between 0 and 1.
        delta: For `ApproxDP`; None asks for `PureDP`.
        unit: What one protected thing can change; `AddRemove(1)` if None.
        mechanism: As in `plan`.
        max_value: As in `plan`.
        integral: As in `plan`.

    Returns:
        `ApproxDP` or `PureDP`; a plan with it, and with `objective="max"` for another target than an rmse, meets it.
        `auto` goes by standard errors: of two mechanisms alike in them one may have shorter intervals, and with its
        name `within` need less.

    Raises:
        DataTypeError: An argument is of the wrong type.
        InvalidParameterError: Not one target is given, or an argument is out of range, or no epsilon up to 1e6 is
            enough.
        UnsupportedMechanismError: No mechanism serves, or what is asked is not known of it.
    """
    wanted = {"rmse": rmse, "max_stderr": max_stderr, "within": within}
    given = [name for name, value in wanted.items() if value is not None]
    if len(given) != 1:
        raise InvalidParameterError("give one of rmse, max_stderr and within")
    value = positive(given[0], wanted[given[0]])
    level = open_unit("level", level)
    if delta is not None:
        open_unit("delta", delta)

    def guarantee(epsilon: float) -> Privacy:
        return PureDP(epsilon=epsilon) if delta is None else ApproxDP(epsilon=epsilon, delta=delta)

    def error(fit: Fit) -> float:
        found = fit.rmse if rmse is not None else fit.max_stderr
        if within is not None:
            found = fit.largest_half_width(level)
        if found is None:
            raise UnsupportedMechanismError(f"of {fit.name} only the rmse is known")
        return found

    options = {
        "mechanism": mechanism,
        "objective": "mean" if rmse is not None else "max",
        "max_value": max_value,
        "integral": integral,
    }
    if "objective" not in family_of(workload, mechanism)[0].options:
        del options["objective"]
    family, request = _asked(workload, guarantee(1.0), unit, options)
    # Half widths are known to a few thousandths, and slow.
    target = _Target(value, guarantee, error, _EXACTLY if within is None else 1.0 + 1e-6)
    if family.scales:
        return _by_proportion(family, family.check(request), target)
    return _by_bisection(family, request, target)


@dataclass(frozen=True)
class _Target:
    """What is to be met: a value of an error, of guarantees by epsilon, and how near to the least epsilon."""

    value: float
    guarantee: Callable[[float], Privacy]
    error: Callable[[Any], float]
    nearness: float


def _by_proportion(family: Family, request: Request, target: _Target) -> Privacy:
    """Solve for epsilon where the error of a strategy is proportional to its noise ratio, or nearly so.

    One plan at epsilon = 1 tells the ratio needed, and the ratio the epsilon. Discrete noise falls faster.
    """
    named = request.mechanism != "auto"
    enough = []
    for fit in [family.choose(request)] if named else family.candidates(request):
        law = fit.mechanism.law  # type: ignore[attr-defined]
        ratio = noise_ratio(request.privacy, law) * target.value / target.error(fit)
        if law == "laplace":
            found = 1.0 / ratio
            enough.append(found if fit.proportional else _of_one(family, request, fit, found, target))
        elif isinstance(request.privacy, ApproxDP) and ratio > _LEAST_RATIO:
            enough.append(epsilon_of_mu(1.0 / ratio, request.privacy.delta))
    enough = sorted(epsilon for epsilon in enough if 1e-12 <= epsilon <= 1e6)
    # What is enough for one mechanism may not be for the one that is taken there: then try what is for the next.
    for least in enough:
        # Lattice inflation may differ a little at another epsilon: step up until the plan meets the target.
        for step in range(40):
            tried = replace(request, privacy=target.guarantee(least * (1.0 + 1e-9 * 2.0**step if step else 1.0)))
            chosen = family.choose(tried) if named else least_error(family.candidates(tried), request.objective)
            found = target.error(chosen)
            if found <= target.value:
                return tried.privacy
            if found > target.value * (1.0 + _INFLATION) and least < enough[-1]:
                break
    raise InvalidParameterError("no epsilon from 1e-12 to 1e6 meets this target")


def _of_one(family: Family, request: Request, fit: Fit, near: float, target: _Target) -> float:
    """Return the least epsilon, as near as wanted, with which this mechanism meets the target; `near` is near it."""

    def meets(epsilon: float) -> bool:
        asked = replace(request, mechanism=fit.name, privacy=target.guarantee(epsilon))
        try:
            return target.error(family.choose(family.check(asked))) <= target.value
        except UnsupportedMechanismError:  # nothing to gain there from what it does
            return False

    low = high = min(max(near, 1e-12), _MOST)
    while low > 1e-12 and meets(low):
        low, high = max(0.5 * low, 1e-12), low
    while high < _MOST and not meets(high):
        low, high = high, min(2.0 * high, _MOST)
    while high > low * target.nearness:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high


def _by_bisection(family: Family, request: Request, target: _Target) -> Privacy:
    """Search for epsilon: sizes change with it, but a larger one never asks for more error."""

    def meets(epsilon: float) -> bool:
        try:
            found = family.choose(family.check(replace(request, privacy=target.guarantee(epsilon))))
            return target.error(found) <= target.value
        except InvalidParameterError:
            # Too much or too little noise for the lattice.
            return epsilon > 1.0

    low, high = _LEAST, _MOST
    while high / low > 1.0 + _WITHIN:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if meets(middle) else (middle, high)
    chosen = target.guarantee(high)
    found = family.choose(family.check(replace(request, privacy=chosen)))
    if high >= _MOST or target.error(found) > target.value:
        raise InvalidParameterError("no epsilon from 1e-6 to 1e6 meets this target")
    return chosen
