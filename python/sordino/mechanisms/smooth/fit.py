"""A fitted summary of points: what is summed, lattice, noise and error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from sordino._support.checks import open_unit
from sordino.errors import UnsupportedMechanismError
from sordino.mechanisms.smooth.guess import guess_error
from sordino.mechanisms.smooth.measurement import SmoothMeasurement
from sordino.mechanisms.smooth.uniform import uniform_error
from sordino.workloads.smooth.base import memory
from sordino.workloads.smooth.queries import KernelQueries

__all__ = ["SmoothFit"]

_SUMMED = {
    "kernel": "features of the kernel",
    "chebyshev": "Chebyshev polynomials",
    "weighted": "Chebyshev polynomials, weighted",
    "moments": "Chebyshev polynomials of total degree 2",
    "histogram": "cells",
}
# Sums up to which an explanation says whether their bound over the whole class is one: it takes a moment for each.
_JUDGED = 2**20


@dataclass(frozen=True, eq=False, repr=False)
class SmoothFit(SmoothMeasurement):
    """A mechanism for smooth queries with its features and noise: fields are those of `SmoothMeasurement`."""

    family: ClassVar[str] = "smooth"
    things: ClassVar[str] = "points"

    @property
    def rmse(self) -> float:
        """Expected error of an average of the class: noise and truncation together."""
        return math.hypot(self.noise, self.truncation)

    @property
    def rmse_kind(self) -> str:
        """'estimate': over the class as it was declared, for its number of points."""
        return "estimate"

    @property
    def max_stderr(self) -> None:
        """Not known: of a whole class only the mean is."""
        return

    @property
    def subject(self) -> str:
        """What is protected, as the subject of a sentence."""
        label = self.request.unit.label
        return f"Where {label} lies" if self.count_is_public else f"Whether {label} is there, and where,"

    def units_in(self, records: int) -> int:
        """Return how many units cover any group of so many points."""
        return -(-records // self.request.unit.records)

    def uniform_error(self, beta: float) -> float:
        """Return what no query of the whole class is off by more than, with probability at least `1 - beta`.

        Truncation and noise together, over all queries at once: for `KSmooth` classes the paper's Theorem 3.1 with its
        constants. Of the answer, or of 0 where that is surer: never above what no query of the class exceeds, B, or 1
        for kernels. At that value it gives no information: answering 0 is as good.

        Queries of a class of kernels as `at` makes them; those of a `CoefficientPrior` whose coefficients do not exceed
        its sizes. How far the kernel mechanism's features are from the kernel is what was found on a grid.

        Args:
            beta: Probability that some query is off by more, over the noise alone.

        Raises:
            InvalidParameterError: `beta` is not strictly between 0 and 1.
            UnsupportedMechanismError: There is no bound for this mechanism or set of indices.
        """
        return uniform_error(self, open_unit("beta", beta))

    @property
    def class_bound(self) -> float | None:
        """What no query of the whole class is off by more than, 19 times of 20; None if no bound is known."""
        try:
            return self.uniform_error(0.05)
        except UnsupportedMechanismError:
            return None

    def details(self) -> dict[str, Any]:
        """Return what a file says beyond the common.

        Eigenvectors differ in their last bits between machines: the matrices that make a kernel's features are in it.
        """
        whitening = self.features.whitening()
        return {
            "noise_ratio": self.ratio,
            "sizes": list(self.sizes),
            "mixings": [axis.mixing for axis in self.axes] if whitening is None else [whitening],
            "sensitivity": self.sensitivity,
        }

    def lines(self) -> list[str]:
        """Say what will be measured and how good that is."""
        workload = self.workload
        what = "declared queries, whitened" if workload.declared is not None else _SUMMED[self.mechanism.strategy]
        shape = " x ".join(map(str, self.sizes)) if self.indices is None else f"below {max(self.sizes)}"
        expected = f"private; about {workload.points} are expected"
        count = f"{workload.points}, public" if self.count_is_public else expected
        sums = self.features.features
        lines = [
            f"sums           {sums} {what}" + (f" ({shape})" if self.sizes else "") + f", {memory(sums)}",
            f"points         {count}; moved to the bounds where they are outside: "
            + ", ".join(f"[{low:g}, {high:g}]" for low, high in workload.bounds[:6])
            + (", ..." if workload.dimension > 6 else ""),
            f"noise          {'Gaussian' if self.mechanism.law == 'gaussian' else 'Laplace'}; "
            f"inflation by lattice and rounding {self.inflation:.2g}",
            f"error          {self.rmse:.4g} in an average of the class: noise {self.noise:.4g}, "
            f"truncation {self.truncation:.4g}",
        ]
        if self.mechanism.strategy == "kernel":
            lines.append("               the same noise for every kernel query, whatever the number of coordinates")
        lines += self._guess_lines()
        if self._uninformative():
            lines.append("               no information for all queries of the class at once: answering 0 is as good")
        return lines

    @cached_property
    def guess(self) -> float | None:
        """What answering as if points were spread evenly is off by, in the root mean square over the queries, at most.

        On average over every distribution of points that are uniform one by one; None if it is not known.
        """
        return guess_error(self.workload)

    def _guess_lines(self) -> list[str]:
        guess = self.guess
        if guess is None or self.rmse < guess:
            return []
        best = math.sqrt(guess**2 - self.truncation**2) if self.truncation < guess else 0.0
        enough = f"about {self.workload.points * self.noise / best:,.2g} points" if best else "more points do not help"
        return [
            f"guess          answering as if points were spread evenly is off by {guess:.4g}: on average this",
            f"               summary is no better; wider kernels or fewer coordinates help; {enough}",
        ]

    def _uninformative(self) -> bool:
        """Return whether the bound over the whole class is no better than that of the answer 0, 19 times of 20."""
        kind = self.workload.query_class
        if isinstance(kind, KernelQueries) or self.features.features > _JUDGED:
            return False
        bound = self.class_bound
        return (self.rmse if bound is None else bound) >= kind.ceiling
