"""Orthonormal bases in which data may be sparse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sordino import _core
from sordino._support.checks import numbers, positive
from sordino._support.private_numbers import array_of
from sordino.errors import DataTypeError, InvalidParameterError, ShapeError
from sordino.workloads.base import Array, length_of

__all__ = ["Basis", "Cosine", "Haar", "OrthonormalBasis", "Standard", "basis_of"]


class Basis:
    """An orthonormal basis `Psi` of tables: `x = Psi c`, `c = Psi^T x`.

    Tables are flat; those of several axes are taken row by row.
    """

    name: ClassVar[str]

    def core(self, cells: int) -> _core.Basis:
        """Return the basis in the core, for tables of so many cells."""
        return _core.Basis.named(self.name, self.size(cells))

    def size(self, cells: int) -> int:
        """Return the number of coefficients of so many cells: more where the basis needs a power of two.

        Raises:
            DataTypeError: No integer.
            InvalidParameterError: Not from 1 to 2**26 cells.
        """
        return length_of("cells", cells)

    def analyze(self, x: object) -> Array:
        """Return the coefficients `Psi^T x` of public numbers, shape (cells,); padded by zeros where needed.

        Raises:
            DataTypeError: No array of real numbers.
            InvalidParameterError: There are none, or a number is too large for a float.
        """
        values = numbers("x", x, ndim=None).reshape(-1)
        padded = np.zeros(self.size(len(values)))
        padded[: len(values)] = values
        return self.core(len(values)).analyze(padded)

    def synthesize(self, coefficients: object) -> Array:
        """Return `Psi c`, shape (coefficients,).

        Raises:
            DataTypeError: No array of real numbers.
            InvalidParameterError: Not as many as the basis has, or a number is too large for a float.
        """
        values = numbers("coefficients", coefficients, ndim=None).reshape(-1)
        return self.core(len(values)).synthesize(values)

    def column_l1(self, cells: int) -> float:
        """Return an upper bound of `max_j ||Psi^T e_j||_1`: what one record changes in all coefficients together."""
        return self.core(cells).column_l1


@dataclass(frozen=True)
class Standard(Basis):
    """The cells themselves: data with few cells that are not zero."""

    name: ClassVar[str] = "standard"


@dataclass(frozen=True)
class Haar(Basis):
    """Haar wavelets: data of few plateaus. Tables are padded to a power of two."""

    name: ClassVar[str] = "haar"

    def size(self, cells: int) -> int:
        """Return the next power of two."""
        return 1 << (length_of("cells", cells) - 1).bit_length()


@dataclass(frozen=True)
class Cosine(Basis):
    """Cosines of rising frequency (DCT-II): data of few smooth waves."""

    name: ClassVar[str] = "cosine"


@dataclass(frozen=True)
class OrthonormalBasis(Basis):
    """Any orthonormal basis, given by two functions.

    A recovery calls them a hundred times or so, on published numbers. Where the sparsity is chosen privately,
    `to_coefficients` is called once with the private table, and privacy depends on `bound` and `relative_error`.

    Attributes:
        cells: Cells of the tables.
        to_coefficients: `x -> Psi^T x`, arrays of shape (cells,).
        from_coefficients: `c -> Psi c`, its inverse and adjoint.
        bound: Upper bound of `max_j ||Psi^T e_j||_1`; `sqrt(cells)` always is one.
        relative_error: Bound of the rounding error of `to_coefficients`, relative to the l2 norm of the table.

    Raises:
        DataTypeError: The functions are no functions, or return no real numbers.
        ShapeError: They return another number of them.
        InvalidParameterError: A number is out of range, or the functions are not inverse to each other or not
            orthonormal on a fixed test vector, or the bound is too small for one of the columns that are tried.
    """

    name: ClassVar[str] = "custom"
    cells: int
    to_coefficients: Callable[[Array], Array]
    from_coefficients: Callable[[Array], Array]
    bound: float
    relative_error: float = 1e-9

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", length_of("cells", self.cells))
        object.__setattr__(self, "bound", positive("bound", self.bound))
        object.__setattr__(self, "relative_error", positive("relative_error", self.relative_error, most=1e-3))
        if not (callable(self.to_coefficients) and callable(self.from_coefficients)):
            raise DataTypeError("a basis is given by two functions")
        x = np.cos(np.arange(self.cells) * 0.7) + np.arange(self.cells) % 3
        coefficients = self.core(self.cells).analyze(x)
        back = self.core(self.cells).synthesize(coefficients)
        norm = float(np.linalg.norm(x))
        allowed = 4.0 * max(self.relative_error, 1e-15)
        if np.abs(back - x).max() > allowed * norm or abs(float(np.linalg.norm(coefficients)) / norm - 1.0) > allowed:
            raise InvalidParameterError("these functions are not an orthonormal transform and its inverse")
        # Of few columns: what is wrong for one is often wrong for all.
        for cell in {0, self.cells // 3, self.cells // 2, self.cells - 1}:
            column = self.core(self.cells).analyze(np.eye(1, self.cells, cell)[0])
            if np.abs(column).sum() > self.bound * (1.0 + self.relative_error):
                raise InvalidParameterError("bound is too small: a column of this basis has a larger l1 norm")

    def core(self, cells: int) -> _core.Basis:
        """Return the basis in the core.

        Raises:
            InvalidParameterError: The basis is for another number of cells.
        """
        if length_of("cells", cells) != self.cells:
            raise InvalidParameterError(f"this basis is for tables of {self.cells} cells, not {cells}")
        analyze, synthesize = self._plain(self.to_coefficients), self._plain(self.from_coefficients)
        return _core.Basis.custom(self.cells, analyze, synthesize, self.bound, self.relative_error)

    def _plain(self, function: Callable[[Array], Array]) -> Callable[[Array], Array]:
        """Return the function with its result checked and laid out as the core reads it."""

        def call(x: Array) -> Array:
            result = array_of("what a function of this basis returns", function(x))
            if result.dtype.kind not in "iuf":
                raise DataTypeError("a function of this basis returned no array of real numbers")
            if result.shape != (self.cells,):
                raise ShapeError(f"a function of this basis must return shape ({self.cells},)")
            return np.require(result, dtype=np.float64, requirements=["C_CONTIGUOUS", "ALIGNED"])

        return call


_NAMED: dict[str, Basis] = {"standard": Standard(), "haar": Haar(), "cosine": Cosine()}


def basis_of(value: object) -> Basis:
    """Return a basis given as such or by its name.

    Raises:
        DataTypeError: Neither.
        InvalidParameterError: No such name.
    """
    if isinstance(value, str):
        if value not in _NAMED:
            raise InvalidParameterError(f"basis must be one of {', '.join(_NAMED)}, or an OrthonormalBasis")
        return _NAMED[value]
    if not isinstance(value, Basis):
        raise DataTypeError("basis must be a name, or a basis such as sordino.sketches.Haar()")
    return value
