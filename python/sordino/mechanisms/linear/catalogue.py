"""The mechanisms by name: what they need, and in which order ties are broken.

A full name is `strategy-noise`, such as `identity-laplace`; the strategy alone means Gaussian noise where the
privacy allows it and Laplace noise under `PureDP`.

=====================  ======================================================================================
`identity`             noise on every cell of the input
`identity-common`      the same and one noise on all cells besides, for units that raise several (`one_signed`)
`output`               noise on every answer
`fourier`              optimal weights in the Fourier basis of the line, ring or group, and for marginals; of several
                       filters of one series (Gaussian noise)
`fourier-uniform`      marginals with the same noise on every character
`boxes`                marginals of few levels: noise in the norm of the largest residual, pure
`table-cover`          marginals from a few larger tables, each with its share, pure
`tree`                 tree of counts with least squares, best branching
`haar`                 Haar wavelet with optimal level weights
`square-root`          square root of a causal filter, lower triangular (Gaussian noise)
`balanced`             balanced root: nearly the least error, from one decomposition; ranges and sums of any length,
                       intervals
`weighted-tree`        blocks of a few sizes with weights of least error, for ranges, intervals, running sums, products,
                       pure
`laminar`              counts of nested groups, each with its weight
`residual`             what sets of attributes have in common, once, and what each adds (marginal queries)
`split`                the parts of a union, or levels of groups, each by its own strategy with a share of the privacy
`fourier-composed`     Laplace noise on Fourier coefficients, calibrated by composition (`ApproxDP`)
`fourier-planar`       planar Laplace noise on each frequency, pure
`fourier-grouped`      spherical Laplace noise on blocks of frequencies, pure
`optimal`              least mean or worst-query error of all Gaussian mechanisms, with certificate
`ellipsoid`            minimum enclosing ellipsoid; with Laplace noise the ellipsoid norm of least error, pure
`dense`                base decomposition with optimal coefficients; with Laplace noise a norm a block, pure
`dense-rescaled`       the same with the paper's coefficients, scaled to the true sensitivity
`dense-printed`        the same with the paper's noise
`universal`            noise of one radius on the answers, then projection (needs a constraint)
`sparse`               the optimal strategy, then projection in the norm of the noise (needs a constraint)
`sparse-printed`       the dense mechanism, its large blocks projected as in the paper (needs a constraint)
`p-identity`           Laplace noise on the cells and a few weighted sums, optimised, pure
`k-norm`               exact K-norm noise up to rank 16, pure
`threshold`            noise on every cell, then what is not noise in a basis (Haar) is kept
`isotonic`             noise on every cell of a sorted histogram, then the nearest rising table
`compressive`          noise on a sketch, then sparse recovery (needs a compression or a limit of memory)
=====================  ======================================================================================
"""

from dataclasses import dataclass
from types import UnionType

from sordino.mechanisms.catalogue import Entry
from sordino.privacy.guarantees import ApproxDP, Privacy
from sordino.privacy.units import Unit
from sordino.workloads import (
    AllRanges,
    Filter,
    GroupBy,
    GroupConvolution,
    Histogram,
    Intervals,
    Kronecker,
    MarginalQueries,
    Marginals,
    Matrix,
    RunningSum,
    SortedHistogram,
    Union,
    Workload,
)
from sordino.workloads.recognition import along_attributes

__all__ = [
    "LONG_AXIS",
    "MECHANISMS",
    "MOST_ROOTS",
    "WRITTEN",
    "Mechanism",
    "has_root_along",
    "is_laminar",
    "is_measured_as_it_is",
    "is_total",
    "of_filters",
    "of_ranges",
    "parts_of",
]

WRITTEN = 1024
"""Cells up to which queries are written out for one decomposition."""

LONG_AXIS = 512
"""Cells of an axis beyond which a search along it takes a second."""

MOST_ROOTS = 2
"""Axes of a product with closed forms, beside cells and totals, at most: each takes bits of the others."""

# Entries of the queries that go beside ranges, running sums and windows.
_MOST_ROWS = 2**22


_MADE_FOR: dict[str, type[Workload] | UnionType] = {
    "tree": RunningSum,
    "haar": RunningSum,
    "fourier": Filter | GroupConvolution | Marginals,
    "fourier-uniform": Marginals,
    "boxes": Marginals,
    "table-cover": Marginals,
    "fourier-composed": Filter,
    "fourier-planar": Filter,
    "fourier-grouped": Filter,
    "isotonic": SortedHistogram,
}


@dataclass(frozen=True)
class Mechanism(Entry):
    """A strategy for tables with a law of noise.

    Attributes:
        factored: Whether its strategy is found by `sordino.factorize`, but for closed forms: `searched`.
        projected: Whether it projects onto the constraint of the plan.
        recovered: Whether the cells are estimated from what was measured, and answers from the cells.
    """

    factored: bool = False
    projected: bool = False
    recovered: bool = False

    def searched(self, workload: Workload) -> bool:
        """Return whether this workload's strategy is a matrix that is searched for: no closed form serves it."""
        return self.factored and not (self.strategy == "balanced" and _has_root(workload))

    @property
    def measures(self) -> str:
        """Name of the strategy in the core."""
        return "identity" if self.strategy in {"threshold", "isotonic"} else self.strategy

    def allows(self, privacy: Privacy) -> bool:
        """Return whether this noise can give this privacy."""
        if self.strategy == "fourier-composed":
            return isinstance(privacy, ApproxDP)
        return super().allows(privacy)

    @property
    def searches(self) -> tuple[str, ...]:
        """Return the kinds of factorization that it measures."""
        pure = self.law == "laplace"
        match self.strategy:
            case "sparse":
                return ("p-identity", "p-identity-tables", "ellipsoid") if pure else ("optimal",)
            case "p-identity":
                return ("p-identity", "p-identity-tables")
            case "sparse-printed":
                return ("dense-printed",)
            case "universal":
                return ("ellipsoid",) if pure else ("universal",)
            case strategy:
                return (strategy,)

    def branchings(self, workload: Workload) -> tuple[int, ...]:
        """Return the options to try."""
        if self.strategy != "tree":
            return (2,)
        size = max(workload.core.answers_len, 2)
        options = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 32) if size <= 2**17 else (8, 16)
        return tuple(b for b in options if b <= size) or (2,)

    def serves(self, workload: Workload) -> bool:
        """Return whether the strategy is made for this workload (the core has the last word)."""
        if (made_for := _MADE_FOR.get(self.strategy)) is not None:
            return isinstance(workload, made_for) or (self.name == "fourier-gaussian" and _have_one_ring(workload))
        match self.strategy:
            case "weighted-tree":
                merged = workload.merged
                return of_ranges(merged) or _has_trees(merged) or isinstance(workload, MarginalQueries)
            case "residual":
                return along_attributes(workload) is not None
            case "laminar":
                return is_laminar(workload)
            case "square-root":
                return isinstance(workload, Filter) and workload.boundary in {"causal", "valid"}
            case "split":
                return _parts_apart(workload) is not None
            case "compressive":
                return not isinstance(workload, SortedHistogram)
            case "output":
                return not isinstance(workload, Histogram | GroupConvolution)
            case _:
                return True


def _has_root(workload: Workload, within: bool = False) -> bool:
    """Return whether a product has closed forms along its axes, two beside cells; or ranges and running sums have."""
    if isinstance(workload, Kronecker):
        others = [factor for factor in workload.factors if type(factor) is not Histogram]
        roots = [factor for factor in others if not is_total(factor)]
        return bool(others) and len(roots) <= MOST_ROOTS and all(map(has_root_along, others))
    if within and isinstance(workload, GroupBy):
        return workload.nested
    if within and isinstance(workload, Filter | GroupConvolution):
        return not workload.first_step
    if isinstance(workload, Union) and not within:
        return _has_line(workload)
    if isinstance(workload, Intervals):
        return workload.merged.length > WRITTEN
    return isinstance(workload, AllRanges | RunningSum)


def has_root_along(factor: Workload) -> bool:
    """Return whether a factor has a closed form along its axes; intervals where those cannot be searched for."""
    if isinstance(factor, Intervals):
        return factor.merged.length > WRITTEN and factor.core.answers_len > LONG_AXIS
    if isinstance(factor, Union):
        return factor.is_even and _has_line(factor)
    return is_measured_as_it_is(factor) or _has_root(factor, within=True)


def _parts_apart(workload: Workload) -> Union | None:
    """Return the same answers as a union whose parts are measured each for itself, of levels of groups nested ones."""
    union = workload if isinstance(workload, Union) else None
    parts, weights = ((workload,), (1.0,)) if union is None else (union.parts, union.weights)
    runs = [part.nested_runs if isinstance(part, GroupBy) else (part,) for part in parts]
    apart = [(run, weight) for own, weight in zip(runs, weights, strict=True) for run in own]
    if len(apart) == 1:
        return None
    return union if len(apart) == len(parts) else Union(*zip(*apart, strict=True))


def parts_of(workload: Workload, unit: Unit) -> Union | None:
    """Return the same of the cells that all parts together tell apart, unless a unit changes several cells at once."""
    return _parts_apart(workload.merged if unit.changes is None else workload)


def is_measured_as_it_is(workload: Workload) -> bool:
    """Return whether cells, or the sum of all, or of some, are all that is asked for."""
    return type(workload) is Histogram or is_total(workload)


def is_total(workload: Workload) -> bool:
    """Return whether the sum of all, or of some, cells is all that is asked for."""
    return isinstance(workload, GroupBy) and workload.core.answers_len == 1


def _has_line(union: Union) -> bool:
    """Return whether ranges or running sums are asked with cells, or of many cells with a few other queries."""
    union = union.merged
    cells = union.core.input_len or 0
    lines = {type(part) for part in union.parts if isinstance(part, AllRanges | RunningSum | Intervals)}
    others = [part for part in union.parts if not isinstance(part, AllRanges | RunningSum | Intervals | Histogram)]
    if len(lines) == 1 and Intervals not in lines and not others:
        return True  # they have modes in common
    others = [part for part in others if not _has_windows(part)]
    rows = sum(part.core.answers_len for part in others)
    plain = all(isinstance(part, Intervals) or part.answer_weights() is None for part in union.parts)
    return bool(lines) and plain and cells > WRITTEN and rows * cells <= _MOST_ROWS


def _has_trees(workload: Workload) -> bool:
    """Return whether a product has blocks or nested groups along its axes, and not cells alone."""
    if not isinstance(workload, Kronecker):
        return False
    others = [factor for factor in workload.factors if type(factor) is not Histogram]
    return bool(others) and all(of_ranges(factor) or is_laminar(factor) for factor in others)


def is_laminar(workload: Workload) -> bool:
    """Return whether all queries may be sums over nested groups; of matrices the core finds out."""
    if isinstance(workload, Union):
        parts = [part for part in workload.parts if type(part) is not Histogram]
        return bool(parts) and all(map(is_laminar, parts))
    return isinstance(workload, Matrix | Intervals) or (isinstance(workload, GroupBy) and workload.nested)


def of_ranges(workload: Workload) -> bool:
    """Return whether all queries are ranges of cells in order, not cells and totals alone."""
    if isinstance(workload, Union):
        return any(map(of_ranges, workload.parts)) and all(
            of_ranges(part) or is_measured_as_it_is(part) for part in workload.parts
        )
    return isinstance(workload, AllRanges | RunningSum | Intervals) or _has_windows(workload)


def _has_windows(workload: Workload) -> bool:
    return isinstance(workload, Filter) and workload.has_windows


def of_filters(workload: Workload) -> bool:
    """Return whether filters of one series are asked for, cells among them."""
    parts = workload.parts if isinstance(workload, Union) else (workload,)
    return any(isinstance(part, Filter) for part in parts) and all(
        isinstance(part, Filter | Histogram) for part in parts
    )


def _have_one_ring(workload: Workload) -> bool:
    """Return whether several filters of one series are asked for, all with ends or all on a ring, cells among them."""
    if not isinstance(workload, Union) or not of_filters(workload):
        return False
    return len({part.boundary == "circular" for part in workload.parts if isinstance(part, Filter)}) == 1


def _pair(
    strategy: str, automatic: bool = True, factored: bool = False, projected: bool = False
) -> tuple[Mechanism, Mechanism]:
    return (
        Mechanism(f"{strategy}-laplace", strategy, "laplace", automatic, factored, projected),
        Mechanism(f"{strategy}-gaussian", strategy, "gaussian", automatic, factored, projected),
    )


def _recovered(strategy: str, automatic: bool = False) -> tuple[Mechanism, Mechanism]:
    return (
        Mechanism(f"{strategy}-laplace", strategy, "laplace", automatic, recovered=True),
        Mechanism(f"{strategy}-gaussian", strategy, "gaussian", automatic, recovered=True),
    )


MECHANISMS: tuple[Mechanism, ...] = (
    # Before the noise it comes from: it has never more error.
    *_recovered("isotonic", automatic=True),
    *_pair("identity"),
    *_pair("identity-common"),
    *_pair("output"),
    *_pair("fourier"),
    *_pair("tree"),
    *_pair("haar"),
    Mechanism("square-root-gaussian", "square-root", "gaussian"),
    *_pair("fourier-uniform", automatic=False),
    Mechanism("boxes-laplace", "boxes", "laplace"),
    Mechanism("table-cover-laplace", "table-cover", "laplace"),
    Mechanism("fourier-planar", "fourier-planar", "laplace"),
    Mechanism("fourier-grouped", "fourier-grouped", "laplace"),
    Mechanism("fourier-composed", "fourier-composed", "laplace", automatic=False),
    Mechanism("p-identity-laplace", "p-identity", "laplace", factored=True),
    Mechanism("ellipsoid-laplace", "ellipsoid", "laplace", factored=True),
    Mechanism("ellipsoid-gaussian", "ellipsoid", "gaussian", automatic=False, factored=True),
    Mechanism("dense-laplace", "dense", "laplace", factored=True),
    Mechanism("dense-gaussian", "dense", "gaussian", automatic=False, factored=True),
    Mechanism("k-norm-laplace", "k-norm", "laplace", factored=True),
    Mechanism("optimal-gaussian", "optimal", "gaussian", factored=True),
    # Behind what is searched for where that is quick: nearly as good, at every size.
    Mechanism("weighted-tree-laplace", "weighted-tree", "laplace"),
    *_pair("laminar"),
    Mechanism("balanced-gaussian", "balanced", "gaussian", factored=True),
    *_pair("split"),
    Mechanism("residual-gaussian", "residual", "gaussian"),
    *_pair("dense-rescaled", automatic=False, factored=True),
    *_pair("dense-printed", automatic=False, factored=True),
    *_pair("sparse", automatic=False, factored=True, projected=True),
    Mechanism("sparse-printed-gaussian", "sparse-printed", "gaussian", False, factored=True, projected=True),
    *_pair("universal", automatic=False, factored=True, projected=True),
    *_recovered("threshold"),
    *_recovered("compressive"),
)
"""All mechanisms, the simpler ones first: that is how ties are broken."""
