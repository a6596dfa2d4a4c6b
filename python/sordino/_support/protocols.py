"""What lower layers know of higher ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["TableLike"]


class TableLike(ABC):
    """Counts with the unit that they satisfy: what a plan for a smaller unit refuses.

    Attributes:
        counts: Records in each cell.
        unit: What one protected thing can change in them.
        digest: SHA-256 of the schema that they are counts of.
        step: Of a stream, whose unit is bounded over all steps; None for a table alone.
    """

    counts: NDArray[np.int64]
    unit: Any
    digest: str | None
    step: int | None = None

    @property
    @abstractmethod
    def labels(self) -> tuple[str, ...] | None:
        """Names of the cells, where they lie along one dimension."""

    @abstractmethod
    def places(self, cells: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return where cells lie, shape (cells, d), if all dimensions are numbers.

        Raises:
            DataTypeError: One is none, or amounts are counted.
        """

    @abstractmethod
    def require(self, unit: Any, digest: str | None = None) -> None:
        """Refuse a plan for another schema, or for less than what one protected thing can change here.

        Raises:
            UnitError: It is.
        """
