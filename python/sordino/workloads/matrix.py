"""Any matrix of queries, dense or sparse."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sordino import _core
from sordino._support.checks import name_of, numbers, sequence
from sordino.errors import DataTypeError, InvalidParameterError
from sordino.workloads.base import MAX_LENGTH, Array, Spec, Workload, check_weights

__all__ = ["CompressedRows", "Matrix"]


@dataclass(frozen=True, eq=False)
class CompressedRows:
    """A sparse matrix in compressed rows, under the names of scipy; read-only.

    Attributes:
        shape: Rows and columns.
        indptr: Row t has the entries from `indptr[t]` up to `indptr[t + 1]`.
        indices: Column of each entry, rising within a row.
        data: The entries, none of them zero.
    """

    shape: tuple[int, int]
    indptr: NDArray[np.int64]
    indices: NDArray[np.int64]
    data: Array

    def tocsr(self) -> Self:
        """Return the matrix itself."""
        return self

    def columns(self, cells: NDArray[np.int64]) -> "CompressedRows":
        """Return the columns of these cells, rising and each once."""
        places = np.minimum(np.searchsorted(cells, self.indices), len(cells) - 1)
        kept = cells[places] == self.indices
        counts = np.concatenate([[0], np.cumsum(kept)])
        return CompressedRows((self.shape[0], len(cells)), counts[self.indptr], places[kept], self.data[kept])

    def __repr__(self) -> str:
        return f"<sparse matrix of shape {self.shape}, {len(self.data)} entries>"


class Matrix(Workload):
    """Queries given as the rows of a matrix: `y = A x`.

    Args:
        A: Shape (queries, cells), finite, not all zero: an array, or a sparse matrix of scipy (anything with `tocsr`),
            which stays sparse.
        weights: Positive weight of each query's squared error in the mean, shape (queries,); 1 if None. Answers are
            not scaled.
        names: What the queries are called in frames, files and pictures, public; None for numbers. A matrix with names
            is planned as it is written: no form of it with less error or work is looked for.

    Raises:
        DataTypeError: Not a two-dimensional array of numbers.
        InvalidParameterError: Empty, zero, not finite or too large, or weights are out of range or not as many as
            queries; or so are names, or one comes twice.
    """

    kind: ClassVar[str] = "matrix"

    def __init__(self, A: object, weights: object = None, names: Sequence[str] | None = None) -> None:
        self.A: Array | CompressedRows = _compressed(A) if hasattr(A, "tocsr") else numbers("A", A, ndim=2)
        _check_shape(self.A.shape)
        self.weights = None if weights is None else numbers("weights", weights)
        if self.weights is not None and len(self.weights) != self.A.shape[0]:
            raise InvalidParameterError(f"{len(self.weights)} weights for {self.A.shape[0]} queries")
        check_weights(self.weights)
        self.names = (
            None if names is None else tuple(name_of("a name", name) for name in sequence("names", names, "texts"))
        )
        if self.names is not None and (len(self.names) != self.A.shape[0] or len(set(self.names)) < len(self.names)):
            raise InvalidParameterError("names must be one for each query, and differ")
        _ = self.core

    @property
    def input_shape(self) -> tuple[int, ...]:
        """`(cells,)`."""
        return (self.A.shape[1],)

    @property
    def answers_shape(self) -> tuple[int, ...]:
        """`(queries,)`."""
        return (self.A.shape[0],)

    @property
    def answer_names(self) -> tuple[str, ...] | None:
        """The names."""
        return self.names

    def answer_weights(self) -> Array | None:
        """Return the weight of each query, None if none were given."""
        return self.weights

    def _build(self) -> _core.Workload:
        A = self.A
        if isinstance(A, CompressedRows):
            return _core.Workload.sparse(*A.shape, A.indptr, A.indices, A.data)
        return _core.Workload.matrix(A.shape[0], A.shape[1], A.reshape(-1))

    def _on_cells(self, cells: NDArray[np.int64]) -> "Matrix":
        A = self.A.columns(cells) if isinstance(self.A, CompressedRows) else self.A[:, cells]
        return Matrix(A, self.weights, self.names)

    def spec(self) -> Spec:
        """Return the constructor's arguments, a sparse matrix as its arrays."""
        A: Any = self.A
        if isinstance(A, CompressedRows):
            A = {"shape": list(A.shape), "indptr": A.indptr, "indices": A.indices, "data": A.data}
        named = {} if self.names is None else {"names": list(self.names)}
        return {"A": A} | ({} if self.weights is None else {"weights": self.weights}) | named

    @classmethod
    def _from_spec(cls, spec: Mapping[str, Any]) -> Self:
        A = spec.get("A")
        return cls(**({**spec, "A": _rebuilt(A)} if isinstance(A, Mapping) else spec))

    def _shown(self) -> Mapping[str, Any]:
        return {**self.spec(), "A": self.A}


def _check_shape(shape: tuple[int, ...]) -> None:
    if 0 in shape:
        raise InvalidParameterError("A must have at least one row and one column")
    if max(shape) > MAX_LENGTH:
        raise InvalidParameterError("A must have at most 2**26 rows and columns")


def _rebuilt(stored: Mapping[str, Any]) -> CompressedRows:
    """Return a sparse matrix from its spec; files keep all numbers as floats."""
    fields = dict(stored)
    for name in ("indptr", "indices"):
        if isinstance(fields.get(name), np.ndarray):
            with np.errstate(invalid="ignore"):
                fields[name] = fields[name].astype(np.int64)
    return CompressedRows(**fields)


def _compressed(A: Any) -> CompressedRows:
    """Return a sparse matrix with sorted columns, each once in a row, and without zeros.

    Raises:
        DataTypeError: Not a two-dimensional sparse matrix of real numbers.
        InvalidParameterError: Its arrays contradict each other, or it is empty or too large.
    """
    try:
        found = A.tocsr()
        shape = tuple(int(size) for size in found.shape)
        indptr, indices, data = (np.asarray(getattr(found, name)) for name in ("indptr", "indices", "data"))
    except Exception:
        raise DataTypeError("A must be an array, or a sparse matrix with `tocsr`") from None
    if len(shape) != 2:
        raise DataTypeError(f"A must have 2 dimension(s), got {len(shape)}")
    kinds = indptr.dtype.kind + indices.dtype.kind + data.dtype.kind
    if not all(kind in "iu" for kind in kinds[:2]) or kinds[2] not in "iubf":
        raise DataTypeError("A must be a sparse matrix of real numbers")
    _check_shape(shape)
    rows, columns = shape
    sound = (
        indptr.shape == (rows + 1,)
        and indices.shape == data.shape == (indptr[-1],)
        and indptr[0] == 0
        and (indptr[:-1] <= indptr[1:]).all()
        and ((indices >= 0) & (indices < columns)).all()
    )
    if not sound:
        raise InvalidParameterError("A must be a sparse matrix whose arrays agree with each other")
    starts = np.repeat(np.arange(rows, dtype=np.int64), np.diff(indptr)) * columns
    cells, which = np.unique(starts + indices.astype(np.int64), return_inverse=True)
    sums = np.bincount(which, weights=data.astype(np.float64)).astype(np.float64)
    cells, sums = cells[sums != 0.0], sums[sums != 0.0]
    canonical = CompressedRows(
        (rows, columns),
        np.searchsorted(cells, np.arange(rows + 1, dtype=np.int64) * columns).astype(np.int64),
        cells % columns,
        sums,
    )
    for array in (canonical.indptr, canonical.indices, canonical.data):
        array.flags.writeable = False
    return canonical
