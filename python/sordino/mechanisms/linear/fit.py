"""From public facts to a fitted strategy: recipe, lattice, noise and error. Touches no data."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, TypeVar, get_args

import numpy as np

from sordino import _core
from sordino._support.checks import flag, integer, one_of
from sordino.accuracy.bounds import Bound, gaussian_bound
from sordino.accuracy.factorizations import MOST_ENTRIES, Factorization
from sordino.errors import DataTypeError, InvalidParameterError, UnsupportedMechanismError
from sordino.mechanisms.linear.catalogue import Law, Mechanism
from sordino.mechanisms.linear.compression import Compression
from sordino.mechanisms.linear.effort import improves
from sordino.mechanisms.linear.projections import universal_bound
from sordino.mechanisms.linear.search import Progress, factorize
from sordino.privacy.calibration import cost as calibrated_cost
from sordino.privacy.calibration import laplace_composition_ratio, noise_ratio
from sordino.privacy.costs import ApproxCost, Cost
from sordino.privacy.guarantees import ApproxDP, Privacy, PureDP, privacy_of
from sordino.privacy.units import AddRemove, ReplaceOne, Unit, UserLevel
from sordino.workloads import Workload
from sordino.workloads.base import Array
from sordino.workloads.bases import Basis, Haar
from sordino.workloads.constraints import Constraint, PublicTotal

__all__ = [
    "Domain",
    "Effort",
    "Fitted",
    "Objective",
    "Request",
    "check_request",
    "choose_domain",
    "fit",
    "kind_of_error",
    "least_error",
    "least_gaussian_error",
]

Objective = Literal["mean", "max"]
Effort = Literal["closed_form", "optimize"]

# Inflation that the default domain may cost, and the bits of a real cell's fraction that are tried.
_INFLATION = 1e-4
_FRACTION_BITS = (30, 25, 20, 17, 14)
_MAX_COMPOSED = 512
# A simpler mechanism is preferred if it is at most this much worse.
_TIE = 1.01


@dataclass(frozen=True)
class Request:
    """What a plan is asked for, all of it public.

    Attributes:
        workload: The queries.
        privacy: The guarantee of one release.
        unit: What one protected thing can change.
        objective: Error that is minimised.
        max_value: Declared bound of a cell, None for the default.
        integral: Whether cells are declared integers.
        constraint: What is publicly known about the input, for projections.
        effort: Whether searches are made without being named.
        basis: In which thresholds look for what is not noise.
        compression: What a compressive mechanism measures.
        memory: Most bytes that may be kept or sent in place of the table.
    """

    workload: Workload
    privacy: Privacy
    unit: Unit
    objective: Objective = "mean"
    max_value: int | None = None
    integral: bool = True
    constraint: Constraint | None = None
    effort: Effort = "optimize"
    basis: Basis = field(default_factory=Haar)
    compression: Compression | None = None
    memory: int | None = None


@dataclass(frozen=True)
class Domain:
    """What is declared about the input: never read from data.

    Attributes:
        max_value: Cells are clamped to `[-max_value, max_value]`.
        fraction_bits: Cells are rounded to multiples of `2**-fraction_bits`; 0 for integers.
    """

    max_value: int
    fraction_bits: int


@dataclass(frozen=True)
class Fitted:
    """A strategy with its lattice and noise, and what they mean for the answers.

    Attributes:
        mechanism: Which mechanism.
        branching: Its option.
        strategy: The strategy in the core.
        door: Lattice and noise.
        domain: Declared bounds of the input.
        ratio: Noise over sensitivity that was asked for.
        stderr: Standard deviation of every answer.
        rmse: Root of the (weighted) mean of their squares.
        ideal_rmse: The same without lattice, encoding and rounding of the strategy.
        cost: What a release costs.
        factorization: What is measured, for mechanisms that search for it.
    """

    mechanism: Mechanism
    branching: int
    strategy: _core.Strategy
    door: _core.Door
    domain: Domain
    ratio: float
    stderr: Array
    rmse: float
    ideal_rmse: float
    cost: Cost
    factorization: Factorization | None = None

    @property
    def max_stderr(self) -> float | None:
        """Largest standard deviation of an answer; None for a sketch, of which the mean alone is known."""
        return None if self.mechanism.strategy == "compressive" else float(self.stderr.max())

    @property
    def rmse_kind(self) -> str:
        """'exact'; 'upper bound'; or 'noise only' where answers are projected and their own error is unknown."""
        if self.mechanism.strategy == "k-norm" or self.mechanism.name == "universal-gaussian":
            return "upper bound"
        if self.mechanism.strategy == "isotonic":
            return "upper bound"
        return "noise only" if self.mechanism.projected or self.mechanism.recovered else "exact"

    @property
    def inflation(self) -> float:
        """Relative growth of the noise by lattice, encoding and rounding up."""
        ideal = self.ratio * self.door.sensitivity[0]
        return max(self.door.noise / ideal - 1.0, 0.0)

    def error(self, objective: Objective) -> float:
        """Return what is minimised."""
        largest = None if objective == "mean" else self.max_stderr
        return self.rmse if largest is None else largest

    def over(self, bound: Bound | None, objective: Objective) -> float | None:
        """Return the error over the bound; None where the bound does not bind or is zero."""
        if bound is None or bound.value <= 0.0 or self.mechanism.law != "gaussian":
            return None
        if self.mechanism.projected or self.mechanism.recovered:
            return None
        return self.error(objective) / bound.value


def _door(strategy: _core.Strategy, unit: Unit, domain: Domain, ratio: float) -> _core.Door:
    kind, records, per_cell = unit.relation()
    return _core.fit(strategy, kind, records, per_cell, domain.max_value, domain.fraction_bits, ratio)


def check_request(  # noqa: PLR0917 - the arguments of the public functions, in their order
    workload: object, privacy: object, unit: object, objective: object, max_value: object, integral: object
) -> int | None:
    """Refuse what describes neither a release nor a stream; return the checked `max_value`.

    Raises:
        DataTypeError: An argument is of the wrong type.
        InvalidParameterError: An argument is out of range.
    """
    if not isinstance(workload, Workload):
        raise DataTypeError("workload must be a sordino workload, such as sordino.RunningSum(10)")
    privacy_of(privacy)
    if unit is not None and not isinstance(unit, AddRemove | ReplaceOne | UserLevel):
        raise DataTypeError("unit must be AddRemove, ReplaceOne or UserLevel")
    one_of("objective", objective, get_args(Objective))
    flag("integral", integral)
    return None if max_value is None else integer("max_value", max_value, least=1, most=2**53)


class _Judged(Protocol):
    def error(self, objective: Objective) -> float: ...


_Option = TypeVar("_Option", bound=_Judged)


def least_error(options: Sequence[_Option], objective: Objective) -> _Option:
    """Return the first option, the simpler ones first, whose error is within 1 % of the least."""
    least = min(option.error(objective) for option in options)
    return next(option for option in options if option.error(objective) <= _TIE * least)


class _Fits(Protocol):
    @property
    def sensitivity(self) -> tuple[float, float, float]: ...


_AnyDoor = TypeVar("_AnyDoor", bound=_Fits)


def choose_domain(
    fit_door: Callable[[Domain], _AnyDoor], max_value: int | None, bits: tuple[int, ...]
) -> tuple[Domain, _AnyDoor]:
    """Return the declared domain, or the largest default one that costs at most 1e-4 of noise, and its door.

    Defaults: `max_value` the largest power of two up to 2**24, and the first of the fractions' `bits`, that fit.

    Raises:
        InvalidParameterError: Nothing fits.
    """
    values = (max_value,) if max_value is not None else tuple(2**b for b in range(24, -1, -1))
    refusal: InvalidParameterError | None = None
    fallback: tuple[Domain, _AnyDoor] | None = None
    for domain in (Domain(value, b) for value in values for b in bits):
        try:
            door = fit_door(domain)
        except InvalidParameterError as error:
            refusal = error
            continue
        ideal, encoding, rounding = door.sensitivity
        if encoding + rounding <= _INFLATION * ideal:
            return domain, door
        if fallback is None or sum(door.sensitivity) < sum(fallback[1].sensitivity):
            fallback = domain, door
    if fallback is not None:
        return fallback
    raise refusal or InvalidParameterError("no domain fits")


def _choose_domain(strategy: _core.Strategy, request: Request, ratio: float) -> tuple[Domain, _core.Door]:
    bits = (0,) if request.integral else _FRACTION_BITS
    return choose_domain(lambda domain: _door(strategy, request.unit, domain, ratio), request.max_value, bits)


def _composed(strategy: _core.Strategy, request: Request) -> tuple[float, Domain, _core.Door]:
    """Fit independent Laplace noise so that its composition over all coordinates gives (epsilon, delta).

    Lattice and encode move a coordinate of neighbours apart by up to `r = g + 2e` (g the grid, e the error bound
    of the encode). Noise in proportion to an l1 norm would not cover that in a composition, so `r` is added to
    every coordinate before calibrating, and the fit is repeated until its noise covers its own `r`.

    Raises:
        UnsupportedMechanismError: The privacy, unit, data or size is not served.
        InvalidParameterError: Public sizes do not fit.
    """
    privacy, cells = request.privacy, request.workload.core.input_len
    if not isinstance(privacy, ApproxDP) or request.unit != AddRemove(1, label=request.unit.label):
        raise UnsupportedMechanismError("fourier-composed is calibrated for ApproxDP and AddRemove(1) only")
    if cells is None or cells > _MAX_COMPOSED or not request.integral:
        raise UnsupportedMechanismError(f"fourier-composed is calibrated for at most {_MAX_COMPOSED} integer cells")
    columns = np.stack([column for j in range(cells) if (column := strategy.column(j)) is not None])
    measured = strategy.measured_len
    moved = 0.0
    for _ in range(4):
        needed = laplace_composition_ratio(columns + moved, privacy) * (1.0 + 2.0**-40)
        ratio = needed / _door(strategy, request.unit, Domain(1, 0), 1.0).sensitivity[0]
        domain, door = _choose_domain(strategy, request, ratio)
        _, encoding, rounding = door.sensitivity
        own = rounding / measured + encoding / math.sqrt(measured)
        if own <= moved and door.noise >= needed:
            return ratio, domain, door
        moved = 1.01 * own
    raise UnsupportedMechanismError("fourier-composed does not fit the lattice here")


def kind_of_error(kind: str) -> str:
    """Return what is printed behind an rmse of this kind: nothing if it is exact."""
    return "" if kind == "exact" else f" ({kind})"


def fit(
    request: Request,
    mechanism: Mechanism,
    branching: int = 2,
    factorization: Factorization | None = None,
    progress: Progress | None = None,
) -> Fitted:
    """Build the mechanism's strategy for the workload and fit the door to it.

    Args:
        request: What is asked for.
        mechanism: Which mechanism.
        branching: Its option.
        factorization: What it measures, if it was searched for before.
        progress: Told about the search.

    Raises:
        UnsupportedMechanismError: The mechanism does not serve the workload or the privacy.
        InvalidParameterError: Public sizes do not fit.
    """
    workload = request.workload
    _check_served(request, mechanism)
    if mechanism.strategy == "compressive":
        strategy = _sketched(request, mechanism)
    elif not mechanism.factored:
        if mechanism.strategy == "threshold":
            request.basis.core(workload.core.input_len or 0)
        strategy = _core.Strategy(workload.core, mechanism.measures, mechanism.law, branching)
    elif factorization is not None:
        _check_factorization(mechanism, factorization)
        strategy = factorization.build(workload)
    else:
        found = [_search(request, kind, mechanism.law, progress) for kind in mechanism.searches]
        fits = (fit(request, mechanism, branching, each) for each in found)
        return min(fits, key=lambda fitted: fitted.error(request.objective))
    ratio, cost = _ratio_and_cost(request, mechanism)
    if mechanism.strategy == "fourier-composed":
        ratio, domain, door = _composed(strategy, request)
    else:
        ratio *= 1.0 if factorization is None else factorization.excess
        domain, door = _choose_domain(strategy, request, ratio)
    if isinstance(request.constraint, PublicTotal):
        _check_total(request.constraint.total, workload, domain)
    variances = strategy.variances()
    mean_square = float(np.average(variances, weights=workload.answer_weights()))
    ideal_square = strategy.ideal_mean_square
    ideal = ratio * door.sensitivity[0]
    if ideal_square is None:
        ideal_rmse = ideal * math.sqrt(mean_square)
    else:
        single = _door(strategy, AddRemove(1), domain, ratio).sensitivity[0]
        ideal_rmse = ideal / single * math.sqrt(ideal_square)
    fitted = Fitted(
        mechanism=mechanism,
        branching=branching,
        strategy=strategy,
        door=door,
        domain=domain,
        ratio=ratio,
        stderr=door.noise * np.sqrt(variances),
        rmse=door.noise * math.sqrt(mean_square),
        ideal_rmse=ideal_rmse,
        cost=cost,
        factorization=factorization,
    )
    if mechanism.name == "universal-gaussian":
        return replace(fitted, rmse=universal_bound(request, fitted))
    return fitted


def _ratio_and_cost(request: Request, mechanism: Mechanism) -> tuple[float, Cost]:
    """Return noise over sensitivity as the privacy asks for, and what a release costs."""
    privacy = request.privacy
    if mechanism.strategy == "compressive" and request.compression is not None:
        _, ratio, cost = request.compression.shares(privacy, mechanism.law)
        return ratio, cost
    if mechanism.strategy == "fourier-composed" and isinstance(privacy, ApproxDP):
        return noise_ratio(privacy, mechanism.law), ApproxCost(privacy.epsilon, privacy.delta)
    return noise_ratio(privacy, mechanism.law), calibrated_cost(privacy, mechanism.law)


def _sketched(request: Request, mechanism: Mechanism) -> _core.Strategy:
    """Return the strategy that measures a sketch.

    Raises:
        UnsupportedMechanismError: There is no compression, or the workload has no table or sorts it.
    """
    if request.compression is None:
        raise UnsupportedMechanismError(
            "a compressive mechanism needs compression=sordino.Compression(...), or memory="
        )
    cells = request.workload.core.input_len
    if cells is None or not mechanism.serves(request.workload):
        raise UnsupportedMechanismError("a sketch is of a table of cells at their places")
    # A basis of other cells would be found out when the budget is spent.
    request.compression.transform.core(cells)
    operator = request.compression.operator(cells)
    sparsity = request.compression.sizes(cells)[1]
    return _core.Strategy.sketched(request.workload.core, operator, mechanism.law, sparsity)


def _check_served(request: Request, mechanism: Mechanism) -> None:
    if mechanism.projected and request.constraint is None:
        raise UnsupportedMechanismError(f"{mechanism.name} projects: it needs a constraint, such as PublicBound(1000)")
    if request.constraint is not None and not mechanism.projected:
        raise UnsupportedMechanismError(f"{mechanism.name} does not use a constraint; 'sparse' does")
    if mechanism.strategy == "isotonic" and not mechanism.serves(request.workload):
        raise UnsupportedMechanismError("isotonic regression is for cells in order: plan a SortedHistogram")
    if not mechanism.allows(request.privacy):
        raise UnsupportedMechanismError(f"{mechanism.name} cannot give {type(request.privacy).__name__}")


def _check_total(total: float, workload: Workload, domain: Domain) -> None:
    if total > math.prod(workload.input_shape) * domain.max_value:
        raise InvalidParameterError(
            f"cells are clamped to max_value={domain.max_value}: so many cells never have this public total"
        )


def _check_factorization(mechanism: Mechanism, factorization: Factorization) -> None:
    """Refuse what the mechanism does not measure: another law of noise would not give the privacy that is stated.

    Raises:
        UnsupportedMechanismError: Kind, law or noise do not belong to the mechanism.
    """
    kind, blocks = factorization.kind, factorization.blocks
    rows = math.prod(len(factor) for factor in factorization.factors)
    if (
        kind not in mechanism.searches
        or factorization.law != mechanism.law
        or factorization.body != (kind == "k-norm")
        or (blocks is not None) != (kind.startswith("dense") or (kind == "ellipsoid" and mechanism.law == "laplace"))
        or (blocks is not None and (sum(blocks) != rows or min(blocks, default=0) < 1))
        or (factorization.excess != 1.0 and not kind.endswith("printed"))
        or not 1.0 <= factorization.excess < math.inf
    ):
        raise UnsupportedMechanismError(f"{mechanism.name} does not measure this factorization")
    if mechanism.projected and factorization.entries > MOST_ENTRIES:
        raise UnsupportedMechanismError("the measured matrix is too large to project onto; use its factors unprojected")


def least_gaussian_error(request: Request) -> Bound | None:
    """Return the best known bound on the error of every Gaussian mechanism; searched for where that is quick."""
    certificate = None
    if improves(request) and not isinstance(request.privacy, PureDP):
        certificate = factorize(request.workload, objective=request.objective).certificate
    return gaussian_bound(request.workload, request.privacy, request.unit, certificate)


def _search(request: Request, kind: str, law: Law, progress: Progress | None) -> Factorization:
    return factorize(request.workload, kind=kind, law=law, objective=request.objective, progress=progress)
