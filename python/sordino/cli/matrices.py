"""Queries from a file of numpy or scipy: public matrices, read without unpickling anything."""

import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import sordino as so
from sordino.errors import DataTypeError, InputFileError

__all__ = ["read_matrix"]

_COMPRESSED = frozenset({"data", "indices", "indptr", "shape"})
# What numpy raises for a file that is none of its own, is cut off or claims to be larger than memory.
_UNREADABLE = (
    ValueError,
    EOFError,
    KeyError,
    MemoryError,
    NotImplementedError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)


@dataclass(frozen=True)
class _Compressed:
    """A sparse matrix under the names that `scipy.sparse.save_npz` gives its arrays."""

    shape: tuple[int, ...]
    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: NDArray[Any]

    def tocsr(self) -> Self:
        """Return the matrix itself: it is in compressed rows."""
        return self


def read_matrix(path: Path) -> so.Matrix:
    """Read queries: a `.npy` file, or an `.npz` with one array, `A` and perhaps `weights`, or a sparse matrix.

    Sparse matrices are those of `scipy.sparse.save_npz` in compressed rows, perhaps with `weights`. Scipy is not used.

    Raises:
        InputFileError: The file cannot be read as one of these.
        DataTypeError: It holds no matrix of real numbers.
        InvalidParameterError: The matrix is empty, zero or not finite, or weights do not fit.
    """
    arrays = _arrays(path)
    if any(array.dtype.kind not in "iubf" for name, array in arrays.items() if name != "format"):
        raise DataTypeError("the file of queries must hold real numbers")
    weights = arrays.pop("weights", None)
    if "format" in arrays:
        if arrays["format"].tolist() not in (b"csr", "csr") or not arrays.keys() >= _COMPRESSED:
            raise InputFileError("a sparse matrix of queries must be saved by rows: save_npz(file, A.tocsr())")
        shape = tuple(arrays["shape"].reshape(-1).tolist())
        return so.Matrix(_Compressed(shape, *(arrays[name] for name in ("indptr", "indices", "data"))), weights)
    if "A" not in arrays and len(arrays) != 1:
        raise InputFileError("the file of queries must hold one array, or an array A, or a sparse matrix of save_npz")
    return so.Matrix(arrays["A"] if "A" in arrays else next(iter(arrays.values())), weights)


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return all arrays by name; that of an `.npy` file is `A`.

    Raises:
        InputFileError: The file cannot be read.
    """
    try:
        with path.open("rb") as file:
            found = np.load(file, allow_pickle=False)
            arrays = {"A": found} if isinstance(found, np.ndarray) else {name: found[name] for name in found.files}
    except OSError as error:
        raise InputFileError(f"the file of queries cannot be read: {error.strerror or 'damaged'}") from None
    except _UNREADABLE:
        raise InputFileError("the file of queries is no .npy or .npz file of numbers, or it is damaged") from None
    if not all(isinstance(array, np.ndarray) for array in arrays.values()):
        raise InputFileError("the file of queries holds something that is no array of numpy")
    return arrays
