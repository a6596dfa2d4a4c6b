"""A released graph: weights of all pairs, and what is read from them for free."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sordino import _core
from sordino._support.checks import integers, real
from sordino.errors import InvalidParameterError, MissingDependencyError
from sordino.releases.cuts import Cut
from sordino.releases.interval import Interval, interval_around

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sordino.releases.cuts import Widths
    from sordino.workloads.base import Array
    from sordino.workloads.events.names import Names

__all__ = ["ExtremeCut", "PrivateGraph"]


@dataclass(frozen=True)
class ExtremeCut:
    """The cut of a released graph with the least or the largest weight, or ratio, that was found.

    Attributes:
        side: Vertices on one side, by name if they have names.
        cut: Its noisy weight.
        ratio: Weight over `|S| |V - S|`.
        exact: Whether no cut of the released graph is better, but for rounding: by more than 2e-12 of the sum of all
            weights. That is proved by a search of all others within a fixed amount of work: up to 25 vertices always,
            mostly up to 40, up to some hundreds for least cuts of graphs that are not mere noise.
    """

    side: tuple[Any, ...]
    cut: Cut
    ratio: float
    exact: bool

    def interval(self, level: float) -> Interval:
        """Return an interval for the true weight of this cut, chosen by its noisy weight: of all cuts together.

        So its upper end is one for the true minimum cut, and its lower end one for the true maximum cut.

        Raises:
            InvalidParameterError: The level is out of range.
        """
        return self.cut.interval_afterwards(level)


@dataclass(frozen=True, eq=False)
class PrivateGraph:
    """The noisy weights of all pairs of vertices at one step: everything here is post-processing of them.

    Weights may be negative. They are left so: setting them to zero would make all cuts too heavy.

    Attributes:
        vertices: n.
        names: Names of the vertices, or None.
        pairs: Weights of (0, 1), (0, 2), ..., (1, 2), ...; shape (n (n - 1)/2,).
        step: After which step.
    """

    vertices: int
    names: Names | None
    pairs: Array = field(repr=False)
    _widths: Widths = field(repr=False)
    step: int

    @property
    def stderr(self) -> float:
        """Standard deviation of each weight."""
        return self._widths.stderr

    def matrix(self) -> Array:
        """Return the symmetric matrix of weights with zeros on the diagonal, shape (n, n)."""
        table = np.zeros((self.vertices, self.vertices))
        table[np.triu_indices(self.vertices, 1)] = self.pairs
        return table + table.T

    def edges(self, least: float | None = None) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
        """Return the weighted list of edges: both ends by index, and weights.

        Args:
            least: Leave out weights of less magnitude; all pairs if None.

        Raises:
            DataTypeError: `least` is no number.
        """
        u, v = np.triu_indices(self.vertices, 1)
        kept = np.full(len(u), True) if least is None else np.abs(self.pairs) >= real("least", least)
        return u[kept].astype(np.int64), v[kept].astype(np.int64), self.pairs[kept]

    def to_scipy(self, least: float | None = None) -> Any:
        """Return the symmetric weights as a `scipy.sparse.csr_array`.

        Args:
            least: As in `edges`.

        Raises:
            MissingDependencyError: scipy is not installed.
        """
        try:
            from scipy.sparse import coo_array  # noqa: PLC0415 - optional
        except ImportError:
            raise MissingDependencyError("to_scipy needs scipy: pip install scipy") from None
        u, v, w = self.edges(least)
        ends = np.concatenate([u, v]), np.concatenate([v, u])
        return coo_array((np.concatenate([w, w]), ends), shape=(self.vertices, self.vertices)).tocsr()

    def cut(self, side: object) -> Cut:
        """Return the noisy weight between a set of vertices, by index, and all others.

        Raises:
            DataTypeError: No integers.
            ShapeError: Not one-dimensional.
            InvalidParameterError: The set is empty or all vertices, or names one twice or one that does not exist.
        """
        chosen = integers("side", side, least=0, most=self.vertices - 1)
        if not 0 < chosen.size < self.vertices:
            raise InvalidParameterError("side must be some but not all vertices, by index")
        inside = np.zeros(self.vertices, dtype=bool)
        inside[chosen] = True
        if int(inside.sum()) != chosen.size:
            raise InvalidParameterError("side names a vertex twice")
        return self._cut(inside)

    def _cut(self, inside: NDArray[np.bool_]) -> Cut:
        u, v = np.triu_indices(self.vertices, 1)
        size = int(inside.sum())
        return Cut(float(self.pairs[inside[u] != inside[v]].sum()), size, self.vertices - size, self._widths)

    def _found(self, goal: Literal["minimum", "maximum", "sparsest"]) -> ExtremeCut:
        inside, _, exact = _core.search_cut(self.matrix(), goal)
        cut = self._cut(inside)
        members = np.flatnonzero(inside).tolist()
        side = tuple(members if self.names is None else (self.names[i] for i in members))
        return ExtremeCut(side, cut, cut.value / (cut.side * cut.other), exact)

    def minimum_cut(self) -> ExtremeCut:
        """Return the lightest cut that is found in the noisy graph."""
        return self._found("minimum")

    def maximum_cut(self) -> ExtremeCut:
        """Return the heaviest cut that is found in the noisy graph."""
        return self._found("maximum")

    def sparsest_cut(self) -> ExtremeCut:
        """Return the cut of least weight over `|S| |V - S|` that is found in the noisy graph."""
        return self._found("sparsest")

    def degrees(self) -> Array:
        """Return the noisy weighted degree of every vertex, shape (n,)."""
        return np.asarray(self.matrix().sum(axis=1))

    def minimum_degree(self, level: float = 0.95) -> tuple[float, Interval]:
        """Return the least noisy degree, and an interval for the least true degree.

        With probability `level` all n degrees are within the half width, and so is the least of them.

        Raises:
            InvalidParameterError: The level is out of range.
        """
        least = float(self.degrees().min())
        width = self._widths.beforehand(self.vertices - 1, level, self.vertices)
        return least, interval_around(least, width, level, simultaneous=False, rounding=0.0)

    def __repr__(self) -> str:
        return f"PrivateGraph(vertices={self.vertices}, step={self.step}, stderr={self.stderr:.6g})"
