"""What is summed of points, with its lattice and noise."""

from __future__ import annotations

from dataclasses import dataclass, field

from sordino import _core
from sordino.mechanisms.fits import DoorFit, Request
from sordino.mechanisms.smooth.catalogue import SmoothMechanism
from sordino.mechanisms.smooth.kernel_axes import KernelAxis
from sordino.mechanisms.smooth.known_total import KnownTotal
from sordino.privacy.costs import Cost
from sordino.privacy.units import ReplaceOne, Unit
from sordino.workloads.base import Array
from sordino.workloads.smooth.base import SmoothQueries
from sordino.workloads.smooth.query_classes import Indices

__all__ = ["SmoothMeasurement", "count_is_public", "queries"]


def count_is_public(unit: Unit) -> bool:
    """Return whether neighbours have equally many points."""
    return isinstance(unit, ReplaceOne)


def queries(request: Request) -> SmoothQueries:
    """Return the workload of a request of smooth queries."""
    assert isinstance(request.workload, SmoothQueries)
    return request.workload


@dataclass(frozen=True, eq=False, repr=False)
class SmoothMeasurement(DoorFit):
    """A mechanism for smooth queries with its features, lattice and noise.

    Attributes:
        mechanism: Which.
        sizes: Polynomials, cells or features on every axis; empty for declared queries.
        indices: Multi-indices in the order of the features; None for tensor sets.
        axes: The kernel's features on every axis, for `kernel`.
        features: What a point adds, in the core.
        strategy: What is measured of it.
        door: Lattice and noise.
        ratio: Noise over sensitivity as calibrated.
        cost: What a release costs.
        noise: Root mean square of the noise in averages of the class, for `workload.points` points.
        truncation: Root mean square of what queries of the class lose by being cut off: a public estimate. For
            `KSmooth` a bound over the whole class; for a histogram for points of a smooth density.
        stderr: Standard deviations of the estimated sums, shape (features,), and of the number of points if measured.
        known_total: What a public number of points says of sums that were measured without it, if it says anything.
    """

    mechanism: SmoothMechanism
    sizes: tuple[int, ...]
    indices: Indices | None
    axes: tuple[KernelAxis, ...]
    features: _core.PointFeatures = field(repr=False)
    strategy: _core.Strategy = field(repr=False)
    door: _core.Door = field(repr=False)
    ratio: float
    cost: Cost
    noise: float
    truncation: float
    stderr: Array = field(repr=False)
    known_total: KnownTotal | None = field(default=None, repr=False)

    @property
    def workload(self) -> SmoothQueries:
        """The queries."""
        return queries(self.request)

    @property
    def count_is_public(self) -> bool:
        """Whether the number of points is public: with `ReplaceOne`."""
        return count_is_public(self.request.unit)
