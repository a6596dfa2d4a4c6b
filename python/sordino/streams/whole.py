"""Published answers of a whole stream."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sordino._support.checks import flag
from sordino.mechanisms.stream.fit import StreamFit
from sordino.releases.interval import Interval, interval_around
from sordino.workloads.base import Array

__all__ = ["StreamRelease"]


@dataclass(frozen=True, eq=False)
class StreamRelease:
    """Published answers of a whole stream.

    Attributes:
        fit: How they were made.
        values: Shape (n,), or (n, dim).
        private: False only under `sordino.testing.deterministic_noise`.
        accounted: Whether a ledger was charged.
    """

    fit: StreamFit
    values: Array = field(repr=False)
    private: bool = True
    accounted: bool = False

    @property
    def _steps(self) -> NDArray[np.int64]:
        return np.arange(1, len(self.values) + 1)

    @cached_property
    def stderr(self) -> Array:
        """Standard deviation of each answer, in the shape of `values`."""
        deviations = self.fit.std(self._steps)
        return deviations if self.fit.dim == 1 else np.repeat(deviations[:, None], self.fit.dim, axis=1)

    def interval(self, level: float, *, simultaneous: bool = False) -> Interval:
        """Return confidence intervals around `values`.

        Args:
            level: Strictly between 0 and 1.
            simultaneous: Whether all of them shall hold together with this probability.

        Raises:
            InvalidParameterError: The level is out of range.
        """
        answers = self.values.size if flag("simultaneous", simultaneous) else 1
        width = self.fit.half_width(self._steps, level, answers)
        if self.fit.dim > 1:
            width = width[:, None]
        return interval_around(self.values, width, level, simultaneous, rounding=self.fit.rounding)
