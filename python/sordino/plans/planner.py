"""Choosing a mechanism from public facts alone: `plan`, `compare`, `privacy_for`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args, overload

from sordino._support.checks import integer, one_of, open_unit, positive, text
from sordino.accuracy.bounds import Bound
from sordino.accuracy.factorizations import Factorization
from sordino.errors import DataTypeError, InvalidParameterError, UnsupportedMechanismError
from sordino.mechanisms.linear.catalogue import MECHANISMS, Mechanism, mechanism_named
from sordino.mechanisms.linear.compression import Compression, compression_within
from sordino.mechanisms.linear.effort import affords, improves
from sordino.mechanisms.linear.fit import (
    Effort,
    Fitted,
    Objective,
    Request,
    check_request,
    fit,
    least_error,
    least_gaussian_error,
)
from sordino.mechanisms.linear.search import Progress
from sordino.plans.plan import Plan
from sordino.plans.smooth import SmoothPlan
from sordino.plans.smooth_planner import SmoothComparison, compare_smooth, plan_smooth, privacy_for_smooth
from sordino.privacy.calibration import epsilon_of_mu, noise_ratio
from sordino.privacy.guarantees import ApproxDP, Privacy, PureDP
from sordino.privacy.units import AddRemove, ReplaceOne, Unit
from sordino.workloads import Histogram, RunningHistogram, Workload
from sordino.workloads.bases import Basis, basis_of
from sordino.workloads.constraints import Constraint, PublicTotal, check_constraint
from sordino.workloads.smooth.base import SmoothQueries

__all__ = ["Comparison", "compare", "plan", "privacy_for"]

# Less Gaussian noise than this, relative to the sensitivity, is not asked for.
_LEAST_RATIO = 1e-5


@overload
def plan(workload: SmoothQueries, privacy: Privacy, *, unit: Unit | None = ..., mechanism: str = ...) -> SmoothPlan: ...
@overload
def plan(
    workload: Workload,
    privacy: Privacy,
    *,
    unit: Unit | None = ...,
    mechanism: str = ...,
    objective: Objective = ...,
    max_value: int | None = ...,
    integral: bool = ...,
    constraint: Constraint | None = ...,
    effort: Effort = ...,
    factorization: Factorization | None = ...,
    basis: Basis | str = ...,
    compression: Compression | None = ...,
    memory: int | None = ...,
    progress: Progress | None = ...,
) -> Plan: ...
def plan(
    workload: Workload | SmoothQueries,
    privacy: Privacy,
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
    progress: Progress | None = None,
) -> Plan | SmoothPlan:
    """Plan a release: touches no data, costs nothing.

    `auto` takes the least error among the mechanisms that serve the workload and the privacy (`fourier-composed`
    and `fourier-uniform` are reached by name only); of those within 1 % the simplest. The choice depends on the
    arguments alone, and regards this one release, not what a ledger will make of several. It never takes a sketch for
    its error, which thresholds on all cells beat; it does where `memory` leaves no room for the cells.

    Args:
        workload: The queries; for `SmoothQueries` over points `unit` and `mechanism` alone apply.
        privacy: The guarantee of one release.
        unit: What one protected thing can change; `AddRemove(1)` if None.
        mechanism: 'auto', or a name from `sordino.mechanisms.linear.catalogue`.
        objective: 'mean' minimises `rmse`, 'max' minimises `max_stderr`.
        max_value: Public bound on the magnitude of a cell; cells beyond are clamped. The largest power of two
            up to 2**24 that costs nothing if None.
        integral: Whether cells are integers; otherwise they are rounded to a fine public grid.
        constraint: What is publicly known about the input; `auto` then means 'sparse', which projects onto it.
        effort: 'optimize' also searches for strategies, up to 512 cells (pure ones up to 256), whenever no closed
            form is known to be optimal; 'closed_form' searches only when such a mechanism is named.
        factorization: What 'optimal' or another searched mechanism measures, from `sordino.factorize`.
        basis: In which 'threshold' looks for what is not noise: 'haar', 'cosine', 'standard', an `OrthonormalBasis`.
        compression: What 'compressive' measures and how it is read.
        memory: Most bytes that may be kept or sent before the release, at 8 bytes a number. Where the cells need more,
            'auto' takes 'compressive', with the sizes that fit if no `compression` is given.
        progress: Called with (iteration, gap) during searches; returning False ends one, with a larger gap.

    Returns:
        The plan; a `SmoothPlan` for `SmoothQueries`.

    Raises:
        DataTypeError: An argument is of the wrong type.
        InvalidParameterError: An argument is out of range.
        UnsupportedMechanismError: The mechanism named does not serve this workload or privacy.
    """
    if isinstance(workload, SmoothQueries):
        _check_plain(objective, max_value, integral, constraint, effort, factorization, basis, compression, memory)
        return plan_smooth(workload, privacy, unit=unit, mechanism=mechanism)
    request = _checked(
        workload, privacy, unit, objective, max_value, integral, constraint, effort, basis, compression, memory
    )
    if not isinstance(mechanism, str):
        raise DataTypeError("mechanism must be a name")
    if progress is not None and not callable(progress):
        raise DataTypeError("progress must be callable")
    named = mechanism
    if mechanism == "auto" and factorization is None and (constraint is None) and _is_too_large(request):
        named = "compressive"
    if mechanism == "auto" and constraint is not None and factorization is not None:
        named = "sparse"
    elif mechanism == "auto" and isinstance(factorization, Factorization):
        named = f"{factorization.kind}-{factorization.law}"
    if factorization is not None:
        if not isinstance(factorization, Factorization):
            raise DataTypeError("factorization must come from sordino.factorize")
        fitted = fit(request, mechanism_named(named, privacy), factorization=factorization)
    elif named == "auto":
        fitted = least_error(_candidates(request, progress), objective)
    elif mechanism == "auto" and named == "compressive":
        fitted = least_error(_sketches(request), objective)
    else:
        fitted = _best_branching(request, mechanism_named(named, privacy), progress)
    return Plan(request=request, requested=mechanism, fitted=fitted)


def _check_plain(*given: object) -> None:
    """Refuse options of tables for queries of points.

    Raises:
        InvalidParameterError: One was given.
    """
    if given != ("mean", None, True, None, "optimize", None, "haar", None, None):
        raise InvalidParameterError("SmoothQueries take unit and mechanism; all else is said in the workload")


def _checked(  # noqa: PLR0917 - the arguments of the public functions, in their order
    workload: Workload,
    privacy: Privacy,
    unit: Unit | None,
    objective: Objective,
    max_value: int | None,
    integral: bool,
    constraint: Constraint | None = None,
    effort: Effort = "optimize",
    basis: Basis | str = "haar",
    compression: Compression | None = None,
    memory: int | None = None,
) -> Request:
    max_value = check_request(workload, privacy, unit, objective, max_value, integral)
    one_of("effort", effort, get_args(Effort))
    unit = AddRemove(1) if unit is None else unit
    if isinstance(check_constraint(constraint), PublicTotal) and not isinstance(unit, ReplaceOne):
        raise InvalidParameterError("a public total cannot change with the protected thing: plan with ReplaceOne")
    if isinstance(workload, RunningHistogram):
        raise UnsupportedMechanismError("a RunningHistogram is a stream: plan it with sordino.plan_stream")
    if compression is not None and not isinstance(compression, Compression):
        raise DataTypeError("compression must be a sordino.Compression")
    if memory is not None:
        memory = integer("memory", memory, least=1)
        cells = workload.core.input_len
        if compression is None and cells is not None and 8 * cells > memory:
            compression = compression_within(memory // 8)
        elif compression is not None and cells is not None and 8 * compression.sizes(cells)[0] > memory:
            raise InvalidParameterError("this compression has more numbers than the memory")
    return Request(
        workload,
        privacy,
        unit,
        objective,
        max_value,
        integral,
        constraint,
        effort,
        basis_of(basis),
        compression,
        memory,
    )


def _sketches(request: Request) -> list[Fitted]:
    """Return the compressive mechanisms that the privacy allows, fitted.

    Raises:
        UnsupportedMechanismError: There are none.
    """
    fitted, refused = _fit_all(request, [m for m in MECHANISMS if m.strategy == "compressive"])
    if not fitted:
        reasons = sorted(set(refused.values())) or ["no sketch serves this workload"]
        raise UnsupportedMechanismError("the cells need more than the memory, and a sketch: " + "; ".join(reasons))
    return fitted


def _is_too_large(request: Request) -> bool:
    """Return whether the cells need more memory than there is."""
    cells = request.workload.core.input_len
    return request.memory is not None and cells is not None and 8 * cells > request.memory


def _best_branching(request: Request, mechanism: Mechanism, progress: Progress | None = None) -> Fitted:
    options = [fit(request, mechanism, b, progress=progress) for b in mechanism.branchings(request.workload)]
    return min(options, key=lambda fitted: fitted.error(request.objective))


def _is_automatic(mechanism: Mechanism, request: Request) -> bool:
    """Whether `auto` may take the mechanism: one that projects with a constraint, none that cannot improve."""
    if request.constraint is not None:
        return mechanism.strategy == "sparse"
    return mechanism.automatic and (mechanism.strategy != "optimal" or improves(request))


def _candidates(request: Request, progress: Progress | None = None) -> list[Fitted]:
    """Return every mechanism that `auto` may take, fitted, the simpler ones first."""
    fitted, refused = _fit_all(request, [m for m in MECHANISMS if _is_automatic(m, request)], progress)
    if not fitted and request.constraint is not None:
        # Too many cells for a search unasked; but a constraint asks for one.
        return [_best_branching(request, mechanism_named("sparse", request.privacy), progress)]
    if not fitted:
        raise UnsupportedMechanismError(
            "no mechanism serves this workload and privacy: " + "; ".join(sorted(set(refused.values())))
        )
    return fitted


def _fit_all(
    request: Request, mechanisms: Iterable[Mechanism], progress: Progress | None = None
) -> tuple[list[Fitted], dict[str, str]]:
    """Fit the mechanisms that serve; say of the others that should why they do not."""
    fitted: list[Fitted] = []
    refused: dict[str, str] = {}
    for mechanism in mechanisms:
        if not (mechanism.allows(request.privacy) and mechanism.serves(request.workload)):
            continue
        if mechanism.projected and request.constraint is None:
            continue
        if mechanism.strategy == "compressive" and request.compression is None:
            continue
        asked = request if mechanism.projected else replace(request, constraint=None)
        if mechanism.factored and not affords(request, mechanism.law):
            refused[mechanism.name] = "searched for only when named: too many cells, or effort='closed_form'"
            continue
        try:
            fitted.append(_best_branching(asked, mechanism, progress))
        except (UnsupportedMechanismError, InvalidParameterError) as error:
            refused[mechanism.name] = str(error)
    return fitted, refused


@dataclass(frozen=True)
class Comparison:
    """Mechanisms side by side, best first, before anything is spent.

    Attributes:
        rows: One for each mechanism that can answer: name, rmse, max_stderr, rmse_kind, optimality or None, inflation.
        gaussian_bound: Least error of any Gaussian mechanism, None under `PureDP`.
        chosen: What `auto` takes.
        refused: Mechanisms that do not serve, with the reason.
        request: What was asked for.
    """

    rows: tuple[dict[str, Any], ...]
    gaussian_bound: Bound | None
    chosen: str
    refused: dict[str, str]
    request: Request

    def __str__(self) -> str:
        lines = [f"{'mechanism':<26}{'rmse':>14}{'max stderr':>14}{'over bound':>12}{'kind':>13}"]
        for row in self.rows:
            over = row["optimality"]
            ratio = "-" if over is None else f"{over:.4f}"
            mark = " *" if row["mechanism"] == self.chosen else ""
            largest = "-" if row["max_stderr"] is None else f"{row['max_stderr']:.6g}"
            errors = f"{row['rmse']:>14.6g}{largest:>14}{ratio:>12}{row['rmse_kind']:>13}"
            lines.append(f"{row['mechanism']:<26}{errors}{mark}")
        bound = self.gaussian_bound
        if bound is not None:
            lines.append(f"least of any Gaussian mechanism: {bound.value:.6g} ({bound.name})")
        return "\n".join(lines)

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw the errors as bars.

        Returns:
            The matplotlib figure.

        Raises:
            MissingDependencyError: matplotlib is not installed.
        """
        from sordino.plots.tables import plot_comparison  # noqa: PLC0415 - optional extra

        return plot_comparison(self, path)


@overload
def compare(workload: SmoothQueries, privacy: Privacy, *, unit: Unit | None = ...) -> SmoothComparison: ...
@overload
def compare(
    workload: Workload,
    privacy: Privacy,
    *,
    unit: Unit | None = ...,
    objective: Objective = ...,
    max_value: int | None = ...,
    integral: bool = ...,
    constraint: Constraint | None = ...,
    effort: Effort = ...,
    basis: Basis | str = ...,
    compression: Compression | None = ...,
    memory: int | None = ...,
    progress: Progress | None = ...,
) -> Comparison: ...
def compare(
    workload: Workload | SmoothQueries,
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
) -> Comparison | SmoothComparison:
    """Return the expected error of every mechanism that can answer, best first.

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
    """
    if isinstance(workload, SmoothQueries):
        _check_plain(objective, max_value, integral, constraint, effort, None, basis, compression, memory)
        return compare_smooth(workload, privacy, unit=unit)
    request = _checked(
        workload, privacy, unit, objective, max_value, integral, constraint, effort, basis, compression, memory
    )
    if progress is not None and not callable(progress):
        raise DataTypeError("progress must be callable")
    # Thresholds serve every table, but are judged by its cells.
    left_out = {"fourier-composed"} | (set() if isinstance(workload, Histogram) else {"threshold"})
    options, refused = _fit_all(request, [m for m in MECHANISMS if m.strategy not in left_out], progress)
    if not options:
        raise UnsupportedMechanismError("no mechanism serves this workload and privacy")
    automatic = [fitted for fitted in options if _is_automatic(fitted.mechanism, request)]
    automatic = automatic or [fitted for fitted in options if fitted.mechanism.automatic]
    bound = least_gaussian_error(request)
    rows: tuple[dict[str, Any], ...] = tuple(
        {
            "mechanism": fitted.mechanism.name,
            "rmse": fitted.rmse,
            "max_stderr": fitted.max_stderr,
            "rmse_kind": fitted.rmse_kind,
            "optimality": fitted.over(bound, objective),
            "inflation": fitted.inflation,
        }
        for fitted in sorted(options, key=lambda fitted: (_guesses(fitted), fitted.error(objective)))
    )
    sketches = [fitted for fitted in options if fitted.mechanism.strategy == "compressive"]
    # With too little memory for the cells only a sketch is left.
    chosen = least_error(sketches if sketches and _is_too_large(request) else automatic, objective)
    return Comparison(rows, bound, chosen.mechanism.name, refused, request)


def _guesses(fitted: Fitted) -> bool:
    """Return whether the error depends on how sparse the data is."""
    return fitted.mechanism.strategy in {"threshold", "compressive"}


def privacy_for(
    workload: Workload | SmoothQueries,
    *,
    rmse: float | None = None,
    max_stderr: float | None = None,
    delta: float | None = None,
    unit: Unit | None = None,
    mechanism: str = "auto",
    max_value: int | None = None,
    integral: bool = True,
) -> Privacy:
    """Return the least epsilon with which the error target is met: the question people ask first.

    Args:
        workload: The queries; for `SmoothQueries` within a thousandth of the least epsilon, from 1e-6 to 1e6.
        rmse: Wanted root mean squared error; give this or `max_stderr`.
        max_stderr: Wanted largest standard error.
        delta: For `ApproxDP`; None asks for `PureDP`.
        unit: What one protected thing can change; `AddRemove(1)` if None.
        mechanism: As in `plan`.
        max_value: As in `plan`.
        integral: As in `plan`.

    Returns:
        `ApproxDP` or `PureDP`; a plan with it meets the target.

    Raises:
        DataTypeError: An argument is of the wrong type.
        InvalidParameterError: Both or neither target is given, or an argument is out of range, or no epsilon up
            to 1e6 is enough.
    """
    text("mechanism", mechanism)
    if (rmse is None) == (max_stderr is None):
        raise InvalidParameterError("give either rmse or max_stderr")
    objective: Objective = "mean" if rmse is not None else "max"
    target = positive("rmse", rmse) if rmse is not None else positive("max_stderr", max_stderr)

    def guarantee(epsilon: float) -> Privacy:
        return PureDP(epsilon=epsilon) if delta is None else ApproxDP(epsilon=epsilon, delta=delta)

    if delta is not None:
        open_unit("delta", delta)
    if isinstance(workload, SmoothQueries):
        if rmse is None or max_value is not None or not integral:
            raise InvalidParameterError("SmoothQueries take an rmse, a delta, unit and mechanism")
        return privacy_for_smooth(workload, target, guarantee, unit=unit, mechanism=mechanism)
    reference = guarantee(1.0)
    request = _checked(workload, reference, unit, objective, max_value, integral)
    # The error of a strategy is proportional to its noise ratio, so one plan at epsilon = 1 tells the
    # ratio needed, and the ratio the epsilon.
    if mechanism == "auto":
        options = _candidates(request)
    else:
        options = [_best_branching(request, mechanism_named(mechanism, reference))]
    best = math.inf
    for fitted in options:
        ratio = noise_ratio(reference, fitted.mechanism.law) * target / fitted.error(objective)
        if fitted.mechanism.law == "laplace":
            best = min(best, 1.0 / ratio)
        elif delta is not None and ratio > _LEAST_RATIO:
            best = min(best, epsilon_of_mu(1.0 / ratio, delta))
    if not 1e-12 <= best <= 1e6:
        raise InvalidParameterError("no epsilon from 1e-12 to 1e6 meets this target")
    # Lattice inflation may differ a little at another epsilon: step up until the plan meets the target.
    for step in range(40):
        privacy = guarantee(best * (1.0 + 1e-9 * 2.0**step if step else 1.0))
        tried = replace(request, privacy=privacy)
        chosen = _candidates(tried) if mechanism == "auto" else [_best_branching(tried, options[0].mechanism)]
        if least_error(chosen, objective).error(objective) <= target:
            return privacy
    raise InvalidParameterError("no epsilon meets this target")
