"""What the geometry of the queries says about every mechanism: lower bounds, and hereditary discrepancy."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sordino import _core
from sordino._support.checks import integer, positive
from sordino.accuracy.bounds import Bound
from sordino.accuracy.factorizations import dense
from sordino.errors import DataTypeError, UnsupportedMechanismError
from sordino.privacy.calibration import epsilon_of_mu
from sordino.privacy.guarantees import ApproxDP, GaussianDP, Privacy, PureDP, ZeroConcentratedDP, privacy_of
from sordino.workloads import Workload
from sordino.workloads.base import Array

__all__ = ["Discrepancy", "discrepancy", "lower_bounds"]

_MOST_CELLS = 2048
# For guarantees that are no (epsilon, delta): any would do.
_DELTA = 1e-9


@dataclass(frozen=True)
class Discrepancy:
    """An interval around the hereditary discrepancy `max_S min_signs ‖A_S signs‖_∞` of queries.

    Up to factors `O(log min(m, n))` and `O(sqrt(log m))` it is `gamma_2`, the least error of Gaussian noise for the
    worst query (Matousek, Nikolov and Talwar): what privacy costs, without epsilon. Constants are in the numbers.

    Attributes:
        lower: The largest of the lower bounds.
        upper: The least of the upper bounds.
        gamma_2: Certified lower and upper end of the worst-query error at noise multiplier 1.
        determinant: `½ max |det|^(1/k)` over submatrices found by pivoting, and k.
        spectral: `max √k σ_min/√m` over k cells, and k.
        weighted: The same with the weights of the queries that prove `gamma_2`, and k.
        entry: Largest absolute entry.
        walk: Upper bound `√(2 ln 2m) gamma_2` of the Gram-Schmidt walk, a little better.
        banaszczyk: Upper bound `5 t_m gamma_2`, `t_m` the quantile of `(1 + 2**(-1/m))/2` of the normal law.
        signs: -1 or 1 for each cell: the best colouring found for all cells.
        found: Its discrepancy `max_i |Σ_j a_ij signs_j|`.
    """

    lower: float
    upper: float
    gamma_2: tuple[float, float]
    determinant: tuple[float, int]
    spectral: tuple[float, int]
    weighted: tuple[float, int]
    entry: float
    walk: float
    banaszczyk: float
    signs: NDArray[np.int8] = field(repr=False)
    found: float


def _queries(workload: object) -> Array:
    if not isinstance(workload, Workload):
        raise DataTypeError("workload must be a sordino workload, such as sordino.Matrix(A)")
    cells = workload.core.input_len
    if cells is None or cells > _MOST_CELLS:
        raise UnsupportedMechanismError(f"these bounds are computed for at most {_MOST_CELLS} cells")
    return dense(workload)


def discrepancy(workload: Workload, *, gap: float = 1e-4, walks: int = 16, seed: int = 0) -> Discrepancy:
    """Bound the hereditary discrepancy of queries and look for a colouring: public, costs nothing.

    Args:
        workload: The queries, at most 2048 cells.
        gap: Certified gap at which the search for `gamma_2` ends.
        walks: Random walks tried for the colouring.
        seed: Of the walks: public, the same colouring everywhere.

    Raises:
        DataTypeError: No workload, or a number of the wrong type.
        InvalidParameterError: A number is out of range.
        UnsupportedMechanismError: The workload is too large.

    Source: Nikolov, Talwar and Zhang 2013, Section 6.2; Bansal, Dadush, Garg and Lovett 2018.
    """
    queries = _queries(workload)
    gap, walks = positive("gap", gap), integer("walks", walks, least=1, most=2**16)
    found = _core.discrepancy(queries, gap, walks, integer("seed", seed, least=0) % 2**64)
    return Discrepancy(
        lower=found.lower,
        upper=found.upper,
        gamma_2=found.gamma_2,
        determinant=found.determinant,
        spectral=found.spectral,
        weighted=found.weighted,
        entry=found.entry,
        walk=found.walk,
        banaszczyk=found.banaszczyk,
        signs=found.signs,
        found=found.found,
    )


def lower_bounds(workload: Workload, privacy: Privacy, *, records: int | None = None) -> tuple[Bound, ...]:
    """Return lower bounds on the rmse of *every* mechanism, Gaussian or not, projected or not.

    - 'specLB': proved with its constant. For k cells and t records in each,
      `rmse >= √(k/m) σ_min(A_S) · t √((1 - δ_t) e^(tε))/(1 + e^(tε))`, δ_t the delta of t records together; the best
      k t <= `records`.
    - 'volLB' (pure privacy): proved for real-valued data; and its value without the constant, from below.
    - 'detLB': holds up to an unnamed constant and log² m, for small epsilon and delta.

    None of them is an optimality: constants and logarithms lie between them and any mechanism.

    Args:
        workload: The queries, at most 2048 cells; weights of answers count.
        privacy: The guarantee, for units that hold adding or removing one record (`ReplaceOne` does not).
        records: Largest number of records of the databases; None for any.

    Raises:
        DataTypeError: An argument is of the wrong type.
        InvalidParameterError: `records` is below 1.
        UnsupportedMechanismError: The workload is too large.

    Source: Nikolov, Talwar and Zhang 2013, Section 3.3; Hardt and Talwar 2010.
    """
    queries = _queries(workload)
    if records is not None:
        records = integer("records", records, least=1, most=2**53)
    weights = workload.answer_weights()
    if weights is not None:
        queries = queries * np.sqrt(weights / weights.mean())[:, None]
    cell_weights = _core.minimum_ellipsoid(queries, 1e-2, 3000, None).cell_weights
    epsilon, delta = _implied(privacy)
    size = min(queries.shape)
    found = _core.lower_bounds(queries, size, cell_weights)
    best, copies = 0.0, 0
    known = {size: found.spectral}
    for factor, t in sorted(((_told_apart(t, epsilon, delta), t) for t in _copies(epsilon, records)), reverse=True):
        if found.spectral[0] * factor <= best:
            break
        most = size if records is None else min(size, records // t)
        # The best of at most k cells is the best of any number between its own and k.
        spectral = next((s for k, s in known.items() if len(s[1]) <= most <= k), None)
        if spectral is None:
            spectral = known[most] = _core.lower_bounds(queries, most, cell_weights).spectral
        if spectral[0] * factor > best:
            best, copies = spectral[0] * factor, t
    every = "every mechanism" if records is None else f"every mechanism, databases of {records} records"
    restricted = size if records is None else max(1, min(size, int(epsilon * records)))
    determinant = _core.lower_bounds(queries, restricted, cell_weights).determinant[0]
    bounds = [
        Bound(f"specLB ({copies} records a cell)", best, every),
        Bound("detLB", determinant / epsilon, f"{every}, small epsilon and delta", up_to_constant=True),
    ]
    if isinstance(privacy, PureDP):
        bounds.append(Bound("volLB (packing)", found.volume_error / epsilon, "every pure mechanism for real data"))
        bounds.append(Bound("volLB", found.volume[0] / epsilon, "every pure mechanism", up_to_constant=True))
    return tuple(bounds)


def _implied(privacy: Privacy) -> tuple[float, float]:
    """Return an (epsilon, delta) that the guarantee implies."""
    match privacy_of(privacy):
        case PureDP(epsilon=epsilon):
            return epsilon, 0.0
        case ApproxDP(epsilon=epsilon, delta=delta):
            return epsilon, delta
        case GaussianDP(mu=mu):
            return max(epsilon_of_mu(mu, _DELTA), 1e-9), _DELTA
        case ZeroConcentratedDP(rho=rho):
            return rho + 2.0 * math.sqrt(-rho * math.log(_DELTA)), _DELTA


def _copies(epsilon: float, records: int | None) -> list[int]:
    """Return the numbers of records in a cell that are tried: all few, then steps of 2 %; t epsilon = 2.4 is best."""
    most = min(math.ceil(6.0 / epsilon), 2**60 if records is None else records)
    tried = [1]
    while tried[-1] < most:
        tried.append(min(max(tried[-1] + 1, int(1.02 * tried[-1])), most))
    return tried


def _told_apart(t: int, epsilon: float, delta: float) -> float:
    """Return `t √((1 - δ_t) e^(tε))/(1 + e^(tε))`, δ_t = δ (e^(tε) - 1)/(e^ε - 1)."""
    if t * epsilon > 500.0:
        return 0.0
    grown = delta * math.expm1(t * epsilon) / math.expm1(epsilon)
    if grown >= 1.0:
        return 0.0
    return t * math.sqrt(1.0 - grown) / (2.0 * math.cosh(0.5 * t * epsilon)) * (1.0 - 1e-12)
