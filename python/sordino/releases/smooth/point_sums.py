"""Sums over points that grow and merge: built at many places, released once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sordino import _core
from sordino._support.files import atomic_write, read_file
from sordino._support.protocols import TableLike
from sordino.errors import DataTypeError, InvalidParameterError, ShapeError, UnitError
from sordino.mechanisms.smooth.fit import SmoothFit
from sordino.workloads.smooth.points import read_points

if TYPE_CHECKING:
    from sordino.workloads.base import Array

__all__ = ["PointSums"]

# Cells whose middles are held at once.
_CELLS = 2**18


class PointSums:
    """What a plan of smooth queries measures, before noise: exact integer sums over points, from `ReleasePlan.sums`.

    `a + b` are the sums of the points of both, bit for bit, whatever the order, the batches or the number of threads.
    **As private as the points**, until `ReleasePlan.release` adds noise: what `to_bytes` and `save` write is not
    encrypted and not noisy. The representation shows public sizes alone.
    """

    __slots__ = ("core", "features", "fit")

    def __init__(self, fit: SmoothFit, core: _core.PointSums | None = None) -> None:
        self.fit = fit
        self.features = fit.features
        self.core = _core.PointSums(self.features) if core is None else core

    def update(self, points: object) -> PointSums:
        """Add points; nothing of a batch is added if it is refused.

        An exception that a handler of a signal raises may come right after a batch was added: `core.count` says so.

        A point outside of the bounds is moved to the nearest inside. A point with a coordinate that is not a number is
        a null item: with `AddRemove` it counts nowhere, with `ReplaceOne`, where the number of points is public, it is
        put into the middle of the bounds.

        Args:
            points: An array of shape (n, d) in data units, a table of d columns, or an iterable of batches of them.

        Returns:
            The same sums.

        Raises:
            DataTypeError: No numbers.
            ShapeError: Another number of coordinates.
            InvalidParameterError: A table of `tabulate`: two of them would not add up. Its release takes it.
        """
        for batch in read_points(points, self.fit.workload.dimension):
            self.core.add(self._complete(batch) if self.fit.count_is_public else batch)
        return self

    @staticmethod
    def of_table(fit: SmoothFit, table: TableLike) -> PointSums:
        """Return the sums of the middle of every cell, as often as the cell counts: for one release alone.

        Raises:
            DataTypeError: A dimension is no number, or amounts are counted.
            ShapeError: Another number of dimensions than of coordinates.
            UnitError: One protected thing changes more than the plan says, or the number of records would be public.
        """
        table.require(fit.request.unit, None)
        if fit.count_is_public:
            raise UnitError("the number of a table's records is private: plan with AddRemove")
        if table.places(np.zeros(0, dtype=np.int64)).shape[1] != fit.workload.dimension:
            raise ShapeError("the table must have one dimension a coordinate")
        core = _core.PointSums(fit.features)
        # A bit of all counts at a time, the largest first.
        for bit in reversed(range(int(table.counts.max(initial=0)).bit_length())):
            core.merge(core)
            cells = np.flatnonzero(table.counts >> bit & 1)
            for first in range(0, len(cells), _CELLS):
                core.add(table.places(cells[first : first + _CELLS]))
        return PointSums(fit, core)

    def _complete(self, batch: Array) -> Array:
        """Put points of which a coordinate is missing into the middle: their number is public, and must be right."""
        missing = np.isnan(batch).any(axis=1, keepdims=True)
        return np.where(missing, self.fit.workload.cube.middle, batch) if np.any(missing) else batch

    def __copy__(self) -> PointSums:
        return PointSums(self.fit, self.core.copy())

    def __deepcopy__(self, _memo: object) -> PointSums:
        return self.__copy__()

    def __add__(self, other: object) -> PointSums:
        """Return the sums of the points of both.

        Raises:
            InvalidParameterError: They have other features or bounds.
        """
        if not isinstance(other, PointSums):
            return NotImplemented
        total = self.__copy__()
        total.core.merge(other.core)
        return total

    def __iadd__(self, other: object) -> PointSums:
        """Add other sums, which stay as they are.

        Raises:
            InvalidParameterError: They have other features or bounds.
        """
        if not isinstance(other, PointSums):
            return NotImplemented
        self.core.merge(other.core)
        return self

    def to_bytes(self) -> bytes:
        """Return the sums as bytes: as private as the points."""
        return self.core.to_bytes()

    @classmethod
    def from_bytes(cls, fit: Any, data: bytes) -> PointSums:
        """Read what `to_bytes` returned, for the same plan, or its `fit`.

        Raises:
            DataTypeError: No bytes, or no fit of smooth queries.
            InvalidParameterError: No sums of this plan, or damaged.
        """
        if not isinstance(data, bytes | bytearray | memoryview):
            raise DataTypeError("sums are read from bytes")
        fit = getattr(fit, "fit", fit)
        if not isinstance(fit, SmoothFit):
            raise DataTypeError("the sums are of smooth queries: give their plan")
        return cls(fit, _core.PointSums.from_bytes(fit.features, bytes(data)))

    def save(self, path: str | Path) -> Path:
        """Write the sums to a file that its owner alone can read: as private as the points.

        Raises:
            InputFileError: The file cannot be written.
        """
        return atomic_write(path, self.to_bytes(), "sums of points", private=True)

    @classmethod
    def load(cls, fit: Any, path: str | Path) -> PointSums:
        """Read sums from a file, for the same plan, or its `fit`.

        Raises:
            InputFileError: The file cannot be read.
            InvalidParameterError: No sums of this plan, or damaged.
        """
        return cls.from_bytes(fit, read_file(path, "sums of points"))

    def check_count(self) -> None:
        """Refuse another number of points than a plan says, where it is public.

        Raises:
            InvalidParameterError: There are more or fewer.
        """
        if self.fit.count_is_public and self.core.count != self.fit.workload.points:
            raise InvalidParameterError(
                f"with ReplaceOne the number of points is public: the plan says {self.fit.workload.points}, "
                "there are more or fewer"
            )

    def __repr__(self) -> str:
        return f"<PointSums of {self.features.features} features>"
