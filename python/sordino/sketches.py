"""Sketches for services: build at many places, merge, release once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sordino import _core
from sordino.compression import Compression, SketchKind
from sordino.errors import DataTypeError, InvalidParameterError, ShapeError
from sordino.private_files import read_private, write_private
from sordino.workloads.base import length_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Sketch", "integers"]


class Sketch:
    """`Phi x`: k integer sums of a table that arrives record by record, at any number of places, in any order.

    Linear: `a + b` is the sketch of the data of both, bit for bit, and a record taken away (`counts=-1`) leaves
    nothing behind in the sums (`to_bytes` also says how many records came and went). **A sketch is as private as the
    data it was made from**, until `Plan.release` adds noise: what `to_bytes` and `save` write is not encrypted and not
    noisy. Its representation shows sizes alone.

    Args:
        cells: Cells of the table.
        measurements: k, sums that are kept.
        sketch: 'sparse', 'bernoulli' or 'hadamard'.
        nonzeros: Signs a column of the sparse sketch.
        seed: Public; only sketches with one seed can be added.

    Raises:
        DataTypeError: An argument is of the wrong type.
        InvalidParameterError: An argument is out of range, such as more measurements than cells.
    """

    __slots__ = ("core",)

    def __init__(
        self, cells: int, measurements: int, *, sketch: SketchKind = "sparse", nonzeros: int = 4, seed: int = 0
    ) -> None:
        compression = Compression(measurements=measurements, sketch=sketch, nonzeros=nonzeros, seed=seed)
        self.core = _core.Sketch(compression.operator(length_of("cells", cells)))

    @classmethod
    def of(cls, operator: _core.SketchOperator) -> Sketch:
        """Return an empty sketch of an operator of the core."""
        return cls._wrap(_core.Sketch(operator))

    @classmethod
    def _wrap(cls, core: _core.Sketch) -> Sketch:
        made = cls.__new__(cls)
        made.core = core
        return made

    @property
    def operator(self) -> _core.SketchOperator:
        """The matrix in the core."""
        return self.core.operator

    @property
    def cells(self) -> int:
        """Cells of the table."""
        return self.operator.description[1]

    @property
    def measurements(self) -> int:
        """Sums that are kept."""
        return self.operator.description[2]

    def update(self, cells: object, counts: object = None) -> None:
        """Add records: `counts[i]` to cell `cells[i]`, or 1 to each.

        Args:
            cells: An integer, or an array of them, from 0 to the number of cells less one.
            counts: Integers of the same number, negative to take records away; 1 if None.

        Raises:
            DataTypeError: Not integers.
            ShapeError: Another number of counts.
            InvalidParameterError: A cell that does not exist, or counts beyond 2**62 in all; nothing was added.
        """
        if type(cells) is int and (counts is None or type(counts) is int):
            self.core.update_one(_within(cells), 1 if counts is None else _within(counts))
            return
        places = integers("cells", cells)
        self.core.update(places, None if counts is None else integers("counts", counts))

    def add(self, table: object) -> None:
        """Add a whole table of counts, in a time that does not depend on them.

        Args:
            table: Integers of shape (cells,).

        Raises:
            DataTypeError: Not integers.
            ShapeError: Another number of cells.
            InvalidParameterError: Counts beyond 2**62 in all; nothing was added.
        """
        self.core.add_table(integers("table", table))

    def __add__(self, other: object) -> Sketch:
        """Return the sketch of the data of both.

        Raises:
            InvalidParameterError: They differ in kind, seed or size, or counts are beyond 2**62 in all.
        """
        if not isinstance(other, Sketch):
            return NotImplemented
        total = Sketch._wrap(self.core.copy())
        total.core.merge(other.core)
        return total

    def __iadd__(self, other: object) -> Sketch:
        """Add another sketch, which stays as it is.

        Raises:
            InvalidParameterError: They differ in kind, seed or size, or counts are beyond 2**62 in all.
        """
        if not isinstance(other, Sketch):
            return NotImplemented
        self.core.merge(other.core)
        return self

    def to_bytes(self) -> bytes:
        """Return the sketch as bytes: as private as the data."""
        return self.core.to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Sketch:
        """Read what `to_bytes` returned.

        Raises:
            DataTypeError: No bytes.
            InvalidParameterError: The bytes are no sketch, damaged, or of another version.
        """
        if not isinstance(data, bytes | bytearray | memoryview):
            raise DataTypeError("a sketch is read from bytes")
        return cls._wrap(_core.Sketch.from_bytes(bytes(data)))

    def save(self, path: str | Path) -> Path:
        """Write the sketch to a file that its owner alone can read: as private as the data.

        Raises:
            InputFileError: The file cannot be written.
        """
        write_private(Path(path), self.to_bytes())
        return Path(path)

    @classmethod
    def load(cls, path: str | Path) -> Sketch:
        """Read a sketch from a file.

        Raises:
            InputFileError: The file cannot be read.
            InvalidParameterError: It is no sketch, damaged, or of another version.
        """
        return cls.from_bytes(read_private(Path(path)))

    def __repr__(self) -> str:
        kind, cells, measurements, seed, _ = self.operator.description
        return f"<Sketch {kind}: {measurements} sums of {cells} cells, seed {seed}>"

    def __reduce__(self) -> Any:
        return Sketch.from_bytes, (self.to_bytes(),)


def _within(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise InvalidParameterError("cells and counts must fit 64 bits; nothing was added")
    return value


def integers(name: str, values: object) -> NDArray[np.int64]:
    """Return integers as one int64 block.

    Raises:
        DataTypeError: Not integers.
        ShapeError: Not one-dimensional.
        InvalidParameterError: One does not fit 64 bits.
    """
    try:
        array = np.asarray(getattr(values, "to_numpy", lambda: values)())
    except Exception:
        raise DataTypeError(f"{name} must be integers") from None
    if array.dtype.kind not in "iub":
        if array.size == 0:
            array = array.astype(np.int64)
        else:
            raise DataTypeError(f"{name} must be integers")
    array = np.atleast_1d(array)
    if array.ndim != 1:
        raise ShapeError(f"{name} must be one-dimensional")
    if array.dtype.kind == "u" and array.dtype.itemsize == 8 and (array >= 2**63).any():
        raise InvalidParameterError(f"{name} must fit 64 bits; nothing was added")
    return np.require(array.astype(np.int64, copy=False), requirements=["C_CONTIGUOUS", "ALIGNED"])
