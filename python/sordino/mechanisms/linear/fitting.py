"""From public facts to a fitted strategy: recipe, lattice, noise and error. Touches no data."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from sordino import _core
from sordino._support.nested_groups import nested_groups
from sordino.accuracy.factorizations import MOST_ENTRIES, Factorization
from sordino.errors import InvalidParameterError, UnsupportedMechanismError
from sordino.mechanisms.catalogue import Law
from sordino.mechanisms.fits import USUAL_CELLS, Domain, Request, choose_domain
from sordino.mechanisms.linear.along_axes import along_axes
from sordino.mechanisms.linear.attributes import by_attributes
from sordino.mechanisms.linear.catalogue import MECHANISMS, Mechanism, parts_of
from sordino.mechanisms.linear.common_noise import common_noise
from sordino.mechanisms.linear.fit import LinearFit
from sordino.mechanisms.linear.measurement import Part, door_of
from sordino.mechanisms.linear.projections import universal_bound
from sordino.mechanisms.linear.search import Progress, factorize
from sordino.mechanisms.linear.worst_level import worst_level
from sordino.privacy.calibration import cost as calibrated_cost
from sordino.privacy.calibration import laplace_composition_ratio, noise_ratio
from sordino.privacy.costs import ApproxCost, Cost
from sordino.privacy.guarantees import ApproxDP
from sordino.privacy.units import AddRemove
from sordino.workloads import Filter, GroupBy, Histogram, Kronecker, MarginalQueries, Union, Workload
from sordino.workloads.base import Array
from sordino.workloads.constraints import Constraint, PublicTotal

__all__ = ["fit_linear", "with_best_branching", "with_chosen_sparsity"]

# Bits of a real cell's fraction that are tried.
_FRACTION_BITS = (30, 25, 20, 17, 14)
_MAX_COMPOSED = 512
# Answers of which all variances are listed, to choose a mechanism by.
_LISTED = 2**22
# Counts of a cell that there is room for where nothing is declared.
_COUNTS = 2**24
# Rounding of estimates over their standard error, at most.
_LOST = 0.01
# Strategies that know the mean over parts of different weights.
_SPREAD_BY_PART = {"balanced", "p-identity", "split", "weighted-tree"}


def _choose_domain(strategy: _core.Strategy, request: Request, ratio: float) -> tuple[Domain, _core.Door]:
    bits = (0,) if request.integral else _FRACTION_BITS
    return choose_domain(lambda domain: door_of(strategy, request.unit, domain, ratio), request, bits)


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
        ratio = needed / door_of(strategy, request.unit, Domain(1, 0), 1.0).sensitivity[0]
        domain, door = _choose_domain(strategy, request, ratio)
        _, encoding, rounding = door.sensitivity
        own = rounding / measured + encoding / math.sqrt(measured)
        if own <= moved and door.scale >= needed:
            return ratio, domain, door
        moved = 1.01 * own
    raise UnsupportedMechanismError("fourier-composed does not fit the lattice here")


def fit_linear(
    request: Request,
    mechanism: Mechanism,
    branching: int = 2,
    factorization: Factorization | None = None,
    progress: Progress | None = None,
    *,
    whole: bool | None = None,
    parts: tuple[Part, ...] = (),
) -> LinearFit:
    """Build the mechanism's strategy for the workload and fit the door to it.

    Args:
        request: What is asked for.
        mechanism: Which mechanism.
        branching: Its option.
        factorization: What it measures, if it was searched for before.
        progress: Told about the search.
        whole: Whether of whole counts whole numbers are measured, whose noise is discrete; what is better if None.
        parts: Of 'split' how each part is measured.

    Raises:
        UnsupportedMechanismError: The mechanism does not serve the workload or the privacy.
        InvalidParameterError: Public sizes do not fit.
    """
    workload = request.workload
    _check_served(request, mechanism)
    if mechanism.strategy == "compressive":
        strategy = _sketched(request, mechanism)
    elif factorization is None and not mechanism.searched(workload):
        if mechanism.strategy == "threshold":
            request.basis.core(workload.core.input_len or 0)
        strategy = _closed_form(request, mechanism, branching, parts)
    elif factorization is not None:
        _check_factorization(request, mechanism, factorization)
        if whole is None and mechanism.strategy == "p-identity" and request.integral and not factorization.beside_cells:
            either = [fit_linear(request, mechanism, branching, factorization, whole=False)]
            # Large counts leave no room for whole numbers, and budgets may be that their noises are too uneven.
            with suppress(InvalidParameterError, UnsupportedMechanismError):
                either.append(fit_linear(request, mechanism, branching, factorization, whole=True))
            return min(either, key=lambda fitted: fitted.error(request.objective))
        strategy = factorization.build(workload, bool(whole))
    else:
        return _with_best_search(request, mechanism, progress)
    _check_law(strategy, mechanism)
    ratio, cost = _ratio_and_cost(request, mechanism)
    if mechanism.strategy == "fourier-composed":
        ratio, domain, door = _composed(strategy, request)
    else:
        ratio *= 1.0 if factorization is None else factorization.excess
        domain, door = _choose_domain(strategy, request, ratio)
    if request.constraint is not None:
        _check_constraint(request.constraint, mechanism, strategy, workload, domain)
    strategy = strategy.refined(door) or strategy
    shared = factorization is not None and bool(factorization.shares)
    variances, mean_square, largest = _variances(strategy, workload, mechanism, shared)
    squares = mean_square if variances is None else variances
    lost = _lost(factorization, strategy, workload, domain, squares) / door.noise
    if lost > _LOST:
        bounded = replace(request, max_value=_of_smaller_cells(request, domain, lost))
        return replace(fit_linear(bounded, mechanism, branching, factorization), request=request)
    fitted = LinearFit(
        request=request,
        mechanism=mechanism,
        branching=branching,
        strategy=strategy,
        door=door,
        domain=domain,
        ratio=ratio,
        rmse=door.noise * math.sqrt(mean_square),
        ideal_rmse=_ideal_rmse(strategy, door, domain, ratio, mean_square),
        cost=cost,
        max_stderr=None if largest is None or mechanism.strategy == "compressive" else door.noise * math.sqrt(largest),
        _variances=variances,
        factorization=factorization,
        parts=parts,
    )
    if mechanism.name == "universal-gaussian":
        return replace(fitted, rmse=universal_bound(fitted))
    return fitted


def with_best_branching(request: Request, mechanism: Mechanism, progress: Progress | None = None) -> LinearFit:
    """Return the fit of least error of a mechanism's options.

    Raises:
        UnsupportedMechanismError: The mechanism does not serve the workload or the privacy.
        InvalidParameterError: Public sizes do not fit.
    """
    fits = [fit_linear(request, mechanism, b, progress=progress) for b in mechanism.branchings(request.workload)]
    return min(fits, key=lambda fit: fit.error(request.objective))


def _closed_form(
    request: Request, mechanism: Mechanism, branching: int, parts: tuple[Part, ...] = ()
) -> _core.Strategy:
    workload = request.workload
    if mechanism.strategy == "split":
        return _split(request, mechanism.law, parts)
    if mechanism.strategy == "residual" or (
        mechanism.strategy == "weighted-tree" and isinstance(workload, MarginalQueries)
    ):
        return by_attributes(workload, mechanism.law)
    if mechanism.strategy == "identity-common":
        ratio, _ = _ratio_and_cost(request, mechanism)
        return common_noise(workload, request.unit, mechanism, ratio)
    if mechanism.strategy == "laminar":
        unit = None if request.unit.changes is None else request.unit.relation()
        # Reals are counted in fractions, whose number is not known yet.
        most = (request.max_value or _COUNTS) if request.integral else None
        groups = nested_groups(workload)
        if groups is None:
            raise UnsupportedMechanismError("groups must be nested or disjoint, and a query a multiple of one's sum")
        if request.objective == "max" and isinstance(workload, GroupBy) and workload.equal_levels:
            return worst_level(groups, workload.level_sizes, mechanism.law, request.unit, most)
        return groups.strategy(mechanism.law, workload.answer_weights(), unit, most)
    if mechanism.name == "balanced-gaussian" and request.unit.changes is not None and _is_nested(workload):
        return _core.Strategy.nested_product(workload.core, request.unit.relation())
    if mechanism.name == "fourier-gaussian" and isinstance(workload, Union | Filter):
        weights = workload.weights if isinstance(workload, Union) else (1.0,)
        return _core.Strategy.fourier_filters(workload.core, list(weights), request.unit.relation())
    if mechanism.strategy == "weighted-tree" and isinstance(workload, Union):
        return _core.Strategy.weighted_tree_union(workload.core, list(workload.weights))
    if mechanism.strategy == "balanced" and isinstance(workload, Union):
        return _core.Strategy.balanced_union(workload.core, list(workload.weights))
    return _core.Strategy(workload.core, mechanism.measures, mechanism.law, branching)


def _split(request: Request, law: Law, parts: tuple[Part, ...]) -> _core.Strategy:
    """Return the strategy that measures each part of a union by the mechanism that is named.

    Raises:
        UnsupportedMechanismError: They are not those of the parts.
    """
    workload = parts_of(request.workload, request.unit)
    known = {m.name: m for m in MECHANISMS if m.law == law}
    if workload is None or len(parts) != len(workload.parts):
        raise UnsupportedMechanismError("'split' measures the parts of a union")
    strategies, weights = [], []
    for chosen, part, weight in zip(parts, workload.parts, workload.weights, strict=True):
        mechanism, found = known.get(chosen.mechanism), chosen.factorization
        if mechanism is None or mechanism.projected or mechanism.recovered:
            raise UnsupportedMechanismError("a part of a union is measured by a mechanism of independent noise")
        if mechanism.searched(part) == (found is None):
            raise UnsupportedMechanismError("a part of a union and what it measures do not belong together")
        if chosen.branching not in mechanism.branchings(part):
            raise UnsupportedMechanismError("a part of a union has an option that its mechanism does not take")
        asked = replace(request, workload=part, constraint=None)
        _check_served(asked, mechanism)
        if found is None:
            strategies.append(_closed_form(asked, mechanism, chosen.branching))
        else:
            _check_factorization(asked, mechanism, found)
            strategies.append(found.build(part))
        inner = part.answer_weights()
        weights.append(weight * (1.0 if inner is None else float(inner.mean())))
    own = _core.Strategy.split(workload.core, strategies, weights, request.unit.relation(), request.objective)
    whole = request.workload.core
    return own if workload.core.input_len == whole.input_len else _core.Strategy.of_merged_cells(whole, own)


def _lost(
    factorization: Factorization | None,
    strategy: _core.Strategy,
    workload: Workload,
    domain: Domain,
    squares: Array | float,
) -> float:
    """Return what rounding makes of an estimate over its error at unit noise at most, for cells as large as may be.

    Of tables of sets of axes, and of matrices beside closed forms, whose entries have fewer bits the more of both there
    are: rows of few are not quite those that the queries are made of.
    """
    if factorization is None or not (factorization.shares or factorization.closed_forms):
        return 0.0
    few = factorization.closed_forms and any(0 < len(rows) < rows.shape[1] for rows in factorization.factors)
    if isinstance(squares, float) and not (few and workload.is_listed):
        return 0.0
    cells = np.random.default_rng(0).uniform(0.0, domain.max_value, workload.core.input_len or 0)
    measured = strategy.multiplied(cells)
    assert measured is not None
    lost = strategy.decode(measured) - workload.core.apply(cells)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.nan_to_num(np.abs(lost) / np.sqrt(squares), nan=math.inf).max(initial=0.0))


def _ideal_rmse(strategy: _core.Strategy, door: _core.Door, domain: Domain, ratio: float, mean_square: float) -> float:
    """Return the rmse with real arithmetic: no lattice, no rounding."""
    ideal = ratio * door.sensitivity[0] * door.noise / door.scale
    if strategy.ideal_mean_square is None:
        return ideal * math.sqrt(mean_square)
    single = door_of(strategy, AddRemove(1), domain, ratio).sensitivity[0]
    return ideal / single * math.sqrt(strategy.ideal_mean_square)


def _of_smaller_cells(request: Request, domain: Domain, lost: float) -> int:
    """Return a default bound of cells of which so much less is lost.

    Raises:
        UnsupportedMechanismError: One is declared, or it would be less than cells usually are.
    """
    # With some room: their noise may be a little less.
    smaller = 2 ** math.floor(math.log2(0.9 * domain.max_value * _LOST / lost)) if math.isfinite(lost) else 0
    if request.max_value is None and USUAL_CELLS <= smaller < domain.max_value:
        return int(smaller)
    raise UnsupportedMechanismError(
        "estimates would lose their digits: some queries count so much more than others, or cells may be too large"
    )


def _is_nested(workload: Workload) -> bool:
    """Return whether a product is one of groups and cells alone."""
    return isinstance(workload, Kronecker) and all(isinstance(f, GroupBy | Histogram) for f in workload.factors)


def _variances(
    strategy: _core.Strategy, workload: Workload, mechanism: Mechanism, must_list: bool
) -> tuple[Array | None, float, float | None]:
    """Return the variances of all answers at unit noise, their mean and the largest, if known.

    None in the place of the first where answers are not listed, or are millions and need not be.

    Raises:
        UnsupportedMechanismError: They are not listed, and their mean is not known otherwise.
    """
    if workload.is_listed:
        weights, many = workload.answer_weights(), workload.core.answers_len > _LISTED
        spread = strategy.spread() if many and weights is None and not must_list else None
        if spread is not None and spread[1] is not None:
            return None, *spread
        variances = strategy.variances()
        return variances, float(np.average(variances, weights=weights)), float(variances.max())
    weighted = isinstance(workload, Union) and not workload.is_even
    spread = None if weighted and mechanism.strategy not in _SPREAD_BY_PART else strategy.spread()
    if spread is None:
        raise UnsupportedMechanismError("this mechanism lists its answers: there are more than 2**26")
    return None, *spread


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
            "a compressive mechanism needs compression=sordino.sketches.Compression(...), or memory="
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
    if request.constraint is not None and mechanism.recovered:
        raise UnsupportedMechanismError(f"{mechanism.name} recovers the cells in its own way: it takes no constraint")
    if mechanism.strategy == "isotonic" and not mechanism.serves(request.workload):
        raise UnsupportedMechanismError("isotonic regression is for cells in order: plan a SortedHistogram")
    if (request.constraint is not None or mechanism.recovered) and not request.workload.is_listed:
        raise UnsupportedMechanismError(f"{mechanism.name} lists its answers: there are more than 2**26")
    mechanism.require(request.privacy)


def _check_law(strategy: _core.Strategy, mechanism: Mechanism) -> None:
    """Refuse a strategy whose noise is of another law: the geometry says what is drawn, the mechanism what is charged.

    Raises:
        UnsupportedMechanismError: It is.
    """
    # That of common noise on all numbers has both.
    if strategy.geometry != "common" and (strategy.geometry == "l2") != (mechanism.law == "gaussian"):
        raise UnsupportedMechanismError(f"{mechanism.name} does not serve these queries")


def _check_constraint(
    constraint: Constraint, mechanism: Mechanism, strategy: _core.Strategy, workload: Workload, domain: Domain
) -> None:
    if not mechanism.projected and not strategy.has_transpose:
        raise UnsupportedMechanismError(f"{mechanism.name} measures no table that a constraint could be about")
    if isinstance(constraint, PublicTotal):
        _check_total(constraint.total, workload, domain)


def _check_total(total: float, workload: Workload, domain: Domain) -> None:
    if total > math.prod(workload.input_shape) * domain.max_value:
        raise InvalidParameterError(
            f"cells are clamped to max_value={domain.max_value}: so many cells never have this public total"
        )


def _check_factorization(request: Request, mechanism: Mechanism, factorization: Factorization) -> None:
    """Refuse what the mechanism does not measure: another law of noise would not give the privacy that is stated.

    Raises:
        UnsupportedMechanismError: Kind, law or noise do not belong to the mechanism.
    """
    if not mechanism.factored:
        raise UnsupportedMechanismError(f"{mechanism.name} measures no factorization: leave it out")
    if factorization.beside_cells and not factorization.kind.startswith("p-identity"):
        raise UnsupportedMechanismError("weighted sums beside all cells are what 'p-identity' measures")
    own = (factorization.kind, mechanism.law, factorization.law, factorization.beside_cells)
    all_cells = (True,) * len(factorization.factors)
    tables = {("balanced", "gaussian", "gaussian", ()), ("p-identity-tables", "laplace", "laplace", all_cells)}
    if factorization.shares and own not in tables:
        raise UnsupportedMechanismError("tables of sets of axes have roots along them, or sums beside all cells")
    kind, blocks = factorization.kind, factorization.blocks
    rows = math.prod(len(factor) for factor in factorization.factors)
    if (
        kind not in mechanism.searches
        or factorization.law != mechanism.law
        or factorization.body != (kind == "k-norm")
        or (blocks is not None) != (kind.startswith("dense") or (kind == "ellipsoid" and mechanism.law == "laplace"))
        or (blocks is not None and (sum(blocks) != rows or min(blocks, default=0) < 1))
        or (factorization.excess != 1.0 and not kind.endswith("printed"))
        or (factorization.closed_forms and (kind, mechanism.law) != ("balanced", "gaussian"))
        or not 1.0 <= factorization.excess < math.inf
    ):
        raise UnsupportedMechanismError(f"{mechanism.name} does not measure this factorization")
    if mechanism.projected and mechanism.strategy != "sparse" and factorization.entries > MOST_ENTRIES:
        raise UnsupportedMechanismError("the measured matrix is too large to be written out: plan 'sparse'")


def _with_best_search(request: Request, mechanism: Mechanism, progress: Progress | None) -> LinearFit:
    """Return the fit of least error of what is found by the mechanism's searches.

    Raises:
        UnsupportedMechanismError: None finds what can be measured.
        InvalidParameterError: Public sizes do not fit.
    """
    products = along_axes(request.workload.merged)
    left_out = None  # of few cells both are tried
    if products is None or not products.together:
        left_out = "p-identity-tables"
    elif not products.few_cells:
        left_out = "p-identity"
    fits, refusals = [], []
    for kind in mechanism.searches:
        if kind == left_out:
            continue
        try:
            found = factorize(
                request.workload,
                kind=kind,
                law=mechanism.law,
                objective=request.objective,
                progress=progress,
                unit=request.unit,
            )
            fits.append(fit_linear(request, mechanism, factorization=found))
        except (UnsupportedMechanismError, InvalidParameterError) as refusal:
            refusals.append(refusal)
    if not fits:
        raise refusals[0]
    return min(fits, key=lambda fitted: fitted.error(request.objective))


def with_chosen_sparsity(fit: LinearFit, values: Any, key: bytes | None) -> LinearFit:
    """Return the fit with its sparsity chosen from the data, if it is to be: the first half of a release."""
    choice, compression = fit.open_choice, fit.request.compression
    if choice is None or compression is None:
        return fit
    sparsity = choice.select(fit, values, key)
    return fit_linear(replace(fit.request, compression=compression.chosen(sparsity)), fit.mechanism)
