"""Strategies found by optimisation: what is measured, as matrices, with a certificate of the least error.

`A = L B`: `B` is measured, `L = A B⁺` decodes. At noise multiplier 1 the mean squared error over m answers is
`‖L‖_F² max_j ‖b_j‖²/m` and the largest variance `max_i ‖l_i‖² max_j ‖b_j‖²`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, reduce
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sordino import _core
from sordino.errors import InvalidParameterError, PlanFileError, UnsupportedMechanismError
from sordino.privacy.units import Unit
from sordino.workloads import AllRanges, Intervals, Kronecker, Matrix, Union, Workload
from sordino.workloads.base import Array

__all__ = [
    "MOST_ELIMINATED",
    "MOST_ENTRIES",
    "SEVERAL_CELLS",
    "Certificate",
    "Factorization",
    "certify",
    "condensed",
    "dense",
    "eliminated_rows",
    "few_rows",
    "kronecker",
    "kronecker_factors",
    "on_cells_of",
]

MOST_ENTRIES = 2**26
"""Entries of a measured matrix that is written out."""

MOST_ELIMINATED = 2**35
"""Rows times squared cells up to which rows are eliminated unasked."""

SEVERAL_CELLS = 256
"""Cells that are searched for as units change them, several at once."""

_MOST_FACTORS = 3
_MULTIPLIED_OUT = 2**22
# Cells beyond which fewer rows are looked for, how many, and entries of the matrix.
_MANY_CELLS = 512
# Answers of a product over its cells, from which on it is condensed by factor.
_TALL = 8
_FEW_ROWS = (64, 512)
_MOST_WRITTEN = 2**25
# Directions that are no more than rounding, and what a row may lose with them, both relatively.
_ROUNDING = 1e-14
_LOST = 1e-11
_SAFE = 1.0 - 1e-11
# Two machines compute the same singular values to this, relatively.
_AGREE = 1e-9


@dataclass(frozen=True, eq=False)
class Certificate:
    """Proof that no strategy with Gaussian noise has less error, as weights that anyone can check.

    Mean: `(1/√Σω) ‖diag(√ω) A diag(√v)‖_*` for weights `v` of the cells, ω the weights of the answers. Worst
    query: `‖diag(√u) A diag(√v)‖_*` with weights `u` of the queries too. Weights sum to 1; any such weights prove
    a bound (weak duality), and those given prove nearly the best. For Kronecker products the bounds multiply.

    For units that change several cells at once: `(1/√Σω) ‖diag(√ω) A V diag(√v)‖_*`, the columns of V the `changes`, v
    their weights.

    Attributes:
        objective: 'mean' or 'max'.
        cell_weights: `v`, one array a factor.
        query_weights: `u`, one array a factor; empty for the mean.
        lower: The bound at noise multiplier 1, rounded down.
        changes: What `v` weighs in place of single cells, shape (changes, cells), entries -1, 0 and 1; None of cells.
    """

    objective: str
    cell_weights: tuple[Array, ...]
    query_weights: tuple[Array, ...]
    lower: float
    changes: NDArray[np.integer[Any]] | None = None

    @property
    def several(self) -> bool:
        """Whether it is about changes of several cells at once."""
        return self.changes is not None

    def holds_for(self, unit: Unit) -> bool:
        """Return whether the unit allows the changes that the bound is proved with."""
        if self.changes is None:
            return True
        allowed = unit.changes
        if allowed is None or (not allowed.signed and self.changes.min(initial=0) < 0):
            return False
        return bool(np.count_nonzero(self.changes, axis=1).max(initial=0) <= allowed.most)

    def to_json(self) -> dict[str, Any]:
        """Return the weights as a record, and the bound that follows from them."""
        return {
            "objective": self.objective,
            "cell_weights": list(self.cell_weights),
            "query_weights": list(self.query_weights),
            "lower": self.lower,
            "changes": self.changes,
        }


@dataclass(frozen=True, eq=False)
class Factorization:
    """What is measured for a workload, and how good it is.

    Attributes:
        kind: How it was found: the name of the strategy.
        law: 'gaussian', or 'laplace' for noise with a norm.
        objective: What was minimised, 'mean' or 'max'.
        factors: Measured matrices, shape (measured, cells) each: their Kronecker product is measured, mostly one. Along
            the axis of one without rows what is measured has a closed form.
        blocks: Lengths of consecutive rows that belong together; Laplace noise then has density exp(-‖.‖₂) on each.
        body: Whether the noise has the norm of the symmetric hull of the columns.
        excess: Noise over what the sensitivity needs; 1 unless a mechanism is kept as printed.
        certificate: Proof of a lower bound, None if the search gives none.
        gap: `error/lower - 1` for the error of this strategy, None without a certificate.
        iterations: Evaluations of the program.
        beside_cells: Whether each factor is Θ alone, weighted sums beside all cells, a column of sum t divided by
            1 + t: what is measured of ranges and running sums of so many cells that it is not written out, and along
            the axes of products. Of a filter with more cells than columns it is measured of every block of as many.
            Empty if none is.
        shares: Of each set of axes, the first the highest bit, the share of a table in which the factors are measured
            along its axes, and totals along the others. Empty if one product is measured.
    """

    kind: str
    law: str
    objective: str
    factors: tuple[Array, ...] = field(repr=False)
    blocks: tuple[int, ...] | None = None
    body: bool = False
    excess: float = 1.0
    certificate: Certificate | None = field(default=None, repr=False)
    gap: float | None = None
    iterations: int = 0
    beside_cells: tuple[bool, ...] = ()
    shares: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        # Shared by all who asked for the same search.
        for array in self.factors:
            array.flags.writeable = False
        if self.certificate is not None:
            for array in (*self.certificate.cell_weights, *self.certificate.query_weights):
                array.flags.writeable = False
            if self.certificate.changes is not None:
                self.certificate.changes.flags.writeable = False

    @property
    def entries(self) -> int:
        """Number of entries of the measured matrix."""
        sizes = [factor.shape for factor in self.factors]
        if self.beside_cells:
            sizes = [(k + beside * n, n) for (k, n), beside in zip(sizes, self.beside_cells, strict=True)]
        elif self.closed_forms:
            sizes = [(k or n, n) for k, n in sizes]
        cells = math.prod(n for _, n in sizes)
        entries: int = sum(
            cells * math.prod(k for (k, _), own in zip(sizes, t, strict=True) if own) for t in self._tables
        )
        return entries

    @property
    def closed_forms(self) -> bool:
        """Whether what is measured along some axis has a closed form: it is no matrix here."""
        return not self.beside_cells and any(len(factor) == 0 for factor in self.factors)

    @property
    def matrix(self) -> Array:
        """The measured matrix, the Kronecker product of the factors; of a filter's blocks that of one.

        Raises:
            UnsupportedMechanismError: It has more than 2**26 entries, or a closed form along an axis.
        """
        if self.closed_forms or self.entries > MOST_ENTRIES:
            raise UnsupportedMechanismError("the measured matrix is too large to be written out; use its factors")
        factors = self._written_out()
        if not self.shares:
            return kronecker(factors)
        totals = [np.ones((1, factor.shape[1])) for factor in factors]
        both = list(zip(totals, factors, strict=True))
        tables = (kronecker([pair[own] for pair, own in zip(both, table, strict=True)]) for table in self._tables)
        shares = (share for share in self.shares if share > 0.0)
        return np.vstack([share * table for share, table in zip(shares, tables, strict=True)])

    @property
    def _tables(self) -> list[tuple[bool, ...]]:
        """The sets of axes of which a table is measured: of one product all."""
        if not self.shares:
            return [(True,) * len(self.factors)]
        sets = product((False, True), repeat=len(self.factors))
        return [table for table, share in zip(sets, self.shares, strict=True) if share > 0.0]

    def _written_out(self) -> list[Array]:
        """Return the factors, those beside the cells with the cells."""
        if not self.beside_cells:
            return list(self.factors)
        return [
            np.vstack([np.eye(factor.shape[1]), factor]) / (1.0 + factor.sum(axis=0)) if beside else factor
            for factor, beside in zip(self.factors, self.beside_cells, strict=True)
        ]

    @cached_property
    def inverse(self) -> Array:
        """`B⁺`, shape (cells, measured)."""
        inverse: Array = np.linalg.pinv(self.matrix).astype(np.float64, copy=False)
        return inverse

    def build(self, workload: Workload, whole: bool = False) -> _core.Strategy:
        """Return the strategy in the core.

        Args:
            workload: What is answered.
            whole: Whether whole numbers are measured of whole counts, under Laplace noise on one matrix.

        Raises:
            InvalidParameterError: The workload is outside the measured row space, or shapes differ.
        """
        if self.shares:
            weights = list(workload.weights) if isinstance(workload, Union) else [1.0]
            return _core.Strategy.joint(workload.core, weights, self.law, list(self.factors), list(self.shares))
        if self.beside_cells:
            if len(self.factors) == 1:
                (alone,) = self.factors
                cells = workload.merged.core.input_len or 0
                if alone.shape[1] > cells:
                    raise InvalidParameterError("weighted sums of cells that queries do not tell apart")
                if alone.shape[1] < cells:
                    return _core.Strategy.p_identity_of_blocks(workload.core, alone)
                return _core.Strategy.p_identity(workload.core, alone)
            sums = [factor if beside else None for factor, beside in zip(self.factors, self.beside_cells, strict=True)]
            return _core.Strategy.p_identity_product(workload.core, sums)
        blocks = list(self.blocks) if self.blocks is not None and self.law == "laplace" else None
        # Every factor of a product costs bits of the others: many small ones are multiplied out.
        small = len(self.factors) > _MOST_FACTORS and self.entries <= _MULTIPLIED_OUT and not self.closed_forms
        factors = [self.matrix] if small else list(self.factors)
        return _core.Strategy.factored(workload.core, factors, self.law, blocks, self.body, whole)

    def to_json(self) -> dict[str, Any]:
        """Return the factorization as a record; arrays stay arrays."""
        return {
            "kind": self.kind,
            "law": self.law,
            "objective": self.objective,
            "factors": list(self.factors),
            "blocks": None if self.blocks is None else list(self.blocks),
            "body": self.body,
            "excess": self.excess,
            "certificate": None if self.certificate is None else self.certificate.to_json(),
            "gap": self.gap,
            "iterations": self.iterations,
            **({} if not self.beside_cells else {"beside_cells": _one_or_all(self.beside_cells)}),
            **({} if not self.shares else {"shares": list(self.shares)}),
        }

    @classmethod
    def from_json(cls, record: dict[str, Any], workload: Workload, unit: Unit) -> Factorization:
        """Rebuild from a record that is not trusted: the bound is computed anew from the weights.

        Raises:
            PlanFileError: A field is missing or out of range.
        """
        factors = tuple(np.ascontiguousarray(factor, dtype=np.float64) for factor in record["factors"])
        if not factors or any(factor.ndim != 2 or not np.isfinite(factor).all() for factor in factors):
            raise PlanFileError("the plan's strategy is not a finite matrix")
        stored = record["certificate"]
        certificate = None
        if stored is not None:
            cells, queries = stored["cell_weights"], stored["query_weights"]
            if stored["objective"] not in ("mean", "max"):
                raise PlanFileError("the plan's certificate is of no known objective")
            certificate = certify(workload, stored["objective"], tuple(cells), tuple(queries), stored.get("changes"))
            if not certificate.holds_for(unit):
                raise PlanFileError("the plan's certificate is of another unit")
            lower = float(stored["lower"])
            if not 0.0 <= lower <= certificate.lower * (1.0 + _AGREE):
                raise PlanFileError("the plan's weights do not prove the bound that it states")
            certificate = replace(certificate, lower=lower)
        blocks, gap = record["blocks"], record["gap"]
        excess, iterations = float(record["excess"]), int(record["iterations"])
        if not 1.0 <= excess < math.inf:
            raise PlanFileError("the plan's strategy asks for less noise than its privacy needs")
        if blocks is not None and not all(isinstance(length, int) and 0 < length < 2**31 for length in blocks):
            raise PlanFileError("the plan's blocks are no positive lengths")
        if iterations < 0 or (gap is not None and not 0.0 <= float(gap) < math.inf):
            raise PlanFileError("the plan's search is out of range")
        beside = record.get("beside_cells", [])
        beside = [beside] if isinstance(beside, bool) else beside
        if (
            record["objective"] not in ("mean", "max")
            or not isinstance(record["body"], bool)
            or not isinstance(beside, list)
            or not all(type(own) is bool for own in beside)
            or len(beside) not in {0, len(factors)}
        ):
            raise PlanFileError("the plan's objective or noise is out of range")
        shares = record.get("shares", [])
        if (
            not isinstance(shares, list)
            or not all(isinstance(share, float | int) and 0.0 <= share <= 1.0 for share in shares)
            or (
                shares
                and (
                    len(shares) != 2 ** len(factors)
                    or beside != ([True] * len(factors) if record["law"] == "laplace" else [])
                )
            )
        ):
            raise PlanFileError("the plan's shares are not those of tables")
        return cls(
            kind=str(record["kind"]),
            law=str(record["law"]),
            objective=str(record["objective"]),
            factors=factors,
            blocks=None if blocks is None else tuple(blocks),
            body=record["body"],
            excess=excess,
            certificate=certificate,
            gap=None if gap is None else float(gap),
            iterations=iterations,
            beside_cells=tuple(beside) if any(beside) else (),
            shares=tuple(map(float, shares)),
        )


def kronecker(factors: list[Array]) -> Array:
    """Return the Kronecker product of matrices."""
    return reduce(lambda left, right: np.asarray(np.kron(left, right), dtype=np.float64), factors)


def _one_or_all(beside: tuple[bool, ...]) -> bool | list[bool]:
    """Return what a file says: of one factor that alone."""
    return beside[0] if len(beside) == 1 else list(beside)


def certify(
    workload: Workload,
    objective: str,
    cell_weights: tuple[Array, ...],
    query_weights: tuple[Array, ...],
    changes: NDArray[np.integer[Any]] | None = None,
) -> Certificate:
    """Evaluate the bound that these weights prove: one singular value decomposition a factor.

    Raises:
        PlanFileError: The weights do not fit the workload.
    """
    cells = (math.prod(map(len, cell_weights)),) if changes is None else changes.shape[1:]
    if cells != (workload.core.input_len,):
        workload = workload.merged
    factors = kronecker_factors(workload) if len(cell_weights) > 1 else (workload,)
    if len(factors) != len(cell_weights) or (objective == "max" and len(factors) != len(query_weights)):
        raise PlanFileError("the certificate has another number of factors than the workload")
    if changes is not None:
        _check_changes(workload, changes)
    lower = 1.0
    for k, part in enumerate(factors):
        v = _weights(cell_weights[k], part.core.input_len if changes is None else len(changes))
        if objective == "max":
            queries, scale = dense(part), 1.0
            queries = queries * np.sqrt(_weights(query_weights[k], len(queries)))[:, None]
        else:
            queries, scale = condensed(part)
        queries = queries if changes is None else queries @ changes.T
        lower *= float(np.linalg.norm(queries * np.sqrt(v), "nuc")) * scale * _SAFE
    return Certificate(objective, cell_weights, query_weights, lower, changes)


def _check_changes(workload: Workload, changes: NDArray[np.integer[Any]]) -> None:
    fits = changes.ndim == 2 and changes.shape[1] == workload.core.input_len and changes.dtype.kind == "i"
    if not fits or changes.min(initial=0) < -1 or changes.max(initial=0) > 1:
        raise PlanFileError("the certificate's changes do not fit the workload")


def _weights(weights: Array, length: int | None) -> Array:
    weights = np.asarray(weights, dtype=np.float64)
    # They sum to 1; not-a-number is outside as well.
    if weights.shape != (length,) or not ((weights >= 0.0) & (weights <= 2.0)).all() or weights.sum() <= 1e-3:
        raise PlanFileError("the certificate's weights do not fit the workload")
    normalised: Array = weights / (weights.sum() * (1.0 + 1e-12))
    return normalised


def kronecker_factors(workload: Workload) -> tuple[Workload, ...]:
    """Return the factors of a Kronecker product, or the workload alone."""
    return workload.factors if isinstance(workload, Kronecker) else (workload,)


def on_cells_of(workload: Workload, several: bool) -> Workload:
    """Return the workload that is searched for and bounded: of the cells that it tells apart.

    Of few cells of which a unit changes several that of all: what a record does to merged ones depends on their sizes.
    """
    few = several and (workload.core.input_len or math.inf) <= SEVERAL_CELLS
    return workload if few else workload.merged


@lru_cache(maxsize=2)
def condensed(workload: Workload) -> tuple[Array, float]:
    """Return R with `RᵀR = Aᵀ diag(ω) A`, and the factor `1/√Σω` of its root mean square."""
    weights = workload.answer_weights()
    total = float(workload.core.answers_len) if weights is None else float(weights.sum())
    rows = few_rows(workload)
    if rows is None and is_tall(workload):
        rows = _core.condensed(Matrix(_by_products(workload)).core, None)
    elif rows is None:
        rows = _core.condensed(workload.core, weights)
    rows.flags.writeable = False  # shared by all who asked
    return rows, 1.0 / math.sqrt(total)


def eliminated_rows(workload: Workload) -> int:
    """Return how many rows are eliminated before few stand for all in the mean: of intervals as many as cells."""
    match workload:
        case AllRanges():
            return workload.length
        case Intervals():
            return min(workload.core.answers_len, workload.length)
        case Union(parts=parts) if is_tall(workload):
            return sum(min(eliminated_rows(part), workload.core.input_len or 0) for part in parts)
        case Union(parts=parts):
            return sum(map(eliminated_rows, parts))
        case _:
            return workload.core.answers_len


def is_tall(workload: Workload) -> bool:
    """Return whether a union has products of many more answers than cells: those are condensed by factor."""
    cells = workload.core.input_len or 0
    return isinstance(workload, Union) and any(
        isinstance(part, Kronecker) and part.core.answers_len > _TALL * cells and part.answer_weights() is None
        for part in workload.parts
    )


def _by_products(workload: Workload) -> Array:
    """Return rows that stand for all answers of a workload, of products the products of those of their factors."""
    if isinstance(workload, Union):
        parts = zip(workload.weights, map(_by_products, workload.parts), strict=True)
        return np.vstack([math.sqrt(weight) * rows for weight, rows in parts])
    if isinstance(workload, Kronecker) and workload.answer_weights() is None:
        return kronecker([condensed(factor)[0] for factor in workload.factors])
    return condensed(workload)[0]


@lru_cache(maxsize=2)
def few_rows(workload: Workload) -> Array | None:
    """Return R of at most 512 rows with `RᵀR = Aᵀ diag(ω) A`, of a matrix of more cells whose rank is that small.

    `R = QᵀA`, Q a basis of the columns of A from a sample of their combinations (Halko, Martinsson & Tropp 2011,
    Algorithm 4.1); None where a row is not `QR` up to rounding. What bounds the errors of R bounds those of A.
    """
    cells, answers = workload.core.input_len or 0, workload.core.answers_len
    written = isinstance(workload, Matrix) and isinstance(workload.A, np.ndarray)
    if not written or cells <= _MANY_CELLS or cells * answers > _MOST_WRITTEN:
        return None
    A = dense(workload)
    weights = workload.answer_weights()
    A = A if weights is None else A * np.sqrt(weights)[:, None]
    norms = np.linalg.norm(A, axis=1)
    for most in _FEW_ROWS:
        if min(cells, answers) <= most:
            return None
        sample = A @ np.random.default_rng(0).standard_normal((cells, most + 8))
        basis, triangle = np.linalg.qr(sample)
        turned, values, _ = np.linalg.svd(triangle)
        rank = int(np.sum(values > _ROUNDING * values[0]))
        if rank <= most:
            break
    else:
        return None
    Q = basis @ turned[:, :rank]
    R: Array = np.ascontiguousarray(Q.T @ A)
    lost = np.linalg.norm(A - Q @ R, axis=1)
    return R if (lost <= _LOST * norms)[norms > 0.0].all() else None


def dense(workload: Workload) -> Array:
    """Return the matrix of the queries.

    Raises:
        UnsupportedMechanismError: It has more than 2**26 entries.
    """
    return _core.dense(workload.core)
