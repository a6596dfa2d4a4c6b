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
    """

    counts: NDArray[np.int64]
    unit: Any

    @abstractmethod
    def require(self, unit: Any) -> None:
        """Refuse a plan that protects less than what one protected thing can change here.

        Raises:
            InvalidParameterError: Several of the plan's units are needed.
        """
