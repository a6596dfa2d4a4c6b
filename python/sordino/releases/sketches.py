"""Sketches for services: build at many places, merge, release once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sordino import _core
from sordino._support.files import atomic_write, read_file
from sordino._support.private_numbers import LARGEST, NOWHERE, amounts_or, members_or, plain
from sordino.errors import DataTypeError, ShapeError
from sordino.mechanisms.linear.compression import Compression, SketchKind
from sordino.workloads.base import length_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Sketch", "changes"]


class Sketch:
    """`Phi x`: k integer sums of a table that arrives record by record, at any number of places, in any order.

    Linear: `a + b` is the sketch of the data of both, bit for bit, and a record taken away (`counts=-1`) leaves
    nothing behind. **A sketch is as private as the
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

        A batch is added as a whole. An exception that a handler of a signal raises may come right after it was: who
        goes on after one compares `to_bytes` with a copy from before, or starts anew, since records that are added
        twice are two records.

        Args:
            cells: An integer, or an array of them, from 0 to the number of cells less one. Any other is a null item.
            counts: As many integers, negative to take records away; 1 if None. Clamped to 2**53, missing ones are 0.

        Raises:
            DataTypeError: Arrays of no numbers, or with a mask.
            ShapeError: Another number of counts.
        """
        if type(cells) is int and (counts is None or type(counts) is int):
            count = 1 if counts is None else min(max(counts, -LARGEST), LARGEST)
            self.core.update_one(cells if 0 <= cells < LARGEST else NOWHERE, count)
            return
        self.core.update(*changes(cells, counts))

    def add(self, table: object) -> None:
        """Add a whole table of counts, in a time that does not depend on them.

        Args:
            table: Integers of shape (cells,), clamped to 2**53.

        Raises:
            DataTypeError: Arrays of no numbers, or with a mask.
            ShapeError: Another number of cells.
            InvalidParameterError: What `tabulate` returned: a sketch does not know whom a plan protects.
        """
        counted = amounts_or("table", table)
        if counted.ndim != 1:
            raise ShapeError("a table must be one-dimensional")
        self.core.add_table(plain(counted))

    def __add__(self, other: object) -> Sketch:
        """Return the sketch of the data of both.

        Raises:
            InvalidParameterError: They differ in kind, seed or size.
        """
        if not isinstance(other, Sketch):
            return NotImplemented
        total = Sketch._wrap(self.core.copy())
        total.core.merge(other.core)
        return total

    def __iadd__(self, other: object) -> Sketch:
        """Add another sketch, which stays as it is.

        Raises:
            InvalidParameterError: They differ in kind, seed or size.
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
        return atomic_write(path, self.to_bytes(), "sketch", private=True)

    @classmethod
    def load(cls, path: str | Path) -> Sketch:
        """Read a sketch from a file.

        Raises:
            InputFileError: The file cannot be read.
            InvalidParameterError: It is no sketch, damaged, or of another version.
        """
        return cls.from_bytes(read_file(path, "sketch"))

    def __repr__(self) -> str:
        kind, cells, measurements, seed, _ = self.operator.description
        return f"<Sketch {kind}: {measurements} sums of {cells} cells, seed {seed}>"

    def __reduce__(self) -> Any:
        return Sketch.from_bytes, (self.to_bytes(),)


def changes(cells: object, counts: object) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """Return cells, and what they change by: one-dimensional blocks of the same length.

    Raises:
        DataTypeError: Arrays of no numbers, or with a mask.
        ShapeError: Not one-dimensional, or another number of counts.
    """
    places, amounts = members_or("cells", cells), None if counts is None else amounts_or("counts", counts)
    if places.ndim > 1 or (amounts is not None and amounts.ndim > 1):
        raise ShapeError("cells and counts must be one-dimensional")
    if amounts is not None and amounts.size != places.size:
        raise ShapeError("counts must be as many as cells")
    return plain(places.reshape(-1)), None if amounts is None else plain(amounts.reshape(-1))
