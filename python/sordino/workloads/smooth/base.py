"""The workload: averages of smooth functions over points in a few coordinates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from dataclasses import fields as dataclass_fields
from functools import cached_property
from typing import ClassVar, Literal, NoReturn, TypeAlias

import numpy as np

from sordino._support.checks import build_record, integer, one_of, sequence
from sordino._support.private_numbers import array_of
from sordino.errors import DataTypeError, InvalidParameterError, PlanFileError, UnsupportedMechanismError
from sordino.workloads.base import Spec, Workload
from sordino.workloads.smooth.chebyshev import APPROXIMATIONS, Approximation
from sordino.workloads.smooth.cube import Cube, bounds_of
from sordino.workloads.smooth.queries import KernelQueries
from sordino.workloads.smooth.query_classes import (
    CoefficientPrior,
    GaussianKernels,
    Indices,
    KernelClass,
    KSmooth,
    LaplaceKernels,
    MaternKernels,
    QueryClass,
    class_from_json,
)

__all__ = ["MOST_FEATURES", "SmoothQueries", "total_degree"]

Degree: TypeAlias = int | tuple[int, ...] | Literal["auto", "paper"]
IndexSet: TypeAlias = Literal["tensor", "total"] | Indices

MOST_FEATURES = 2**26
MOST_DEGREE = 2**13
_MOST_POINTS = 2**40
_MOST_DIMENSION = 1000


@dataclass(frozen=True, eq=False)
class SmoothQueries(Workload):
    """Averages `1/n sum_i f(x_i)` of smooth functions over n points in d coordinates: one summary answers them all.

    Points outside the declared bounds are moved to the nearest point inside. Neighbours: `ReplaceOne` replaces a point,
    and the number of points is public; `AddRemove` adds or removes one, and their number is private, measured with
    noise of its own.

    Attributes:
        dimension: d, coordinates of a point.
        points: n. With `ReplaceOne` the number of points, exactly; with `AddRemove` a public guess, for which the
            expected error is stated and sizes are chosen: nothing that is protected depends on it.
        bounds: (low, high) of every coordinate in data units, one pair for all, never from the data.
        query_class: What will mostly be asked: a class of `sordino.smooth`, or declared kernel queries
            (`GaussianKernels(...).at(centres)`), which serve any number of coordinates.
        degree: t, polynomials on every axis, or one number an axis; 'auto' balances noise and truncation for the class;
            'paper' is `n^(1/(2d + K))`, for `KSmooth` classes.
        index_set: 'tensor': all products; 'total': those of degree below t in all; or an array of multi-indices,
            shape (count, d).
        approximation: How queries are cut off: 'truncate', 'vallee-poussin', 'jackson'.
        most_points: With `AddRemove`, points up to which the sums are released as they are; 2**26 if None. Sums of
            more are clamped: nothing is refused by their number, which is private.

    Raises:
        DataTypeError: An argument is of the wrong type.
        InvalidParameterError: An argument is out of range, bounds are missing, or sizes are too large.
    """

    kind: ClassVar[str] = "smooth_queries"
    linear: ClassVar[bool] = False

    dimension: int
    points: int
    bounds: tuple[tuple[float, float], ...]
    query_class: QueryClass | KernelQueries
    degree: Degree = "auto"
    index_set: IndexSet = "tensor"
    approximation: Approximation = "truncate"
    most_points: int = field(default=2**26)

    def __init__(
        self,
        dimension: int,
        *,
        points: int,
        bounds: object = None,
        query_class: QueryClass | KernelQueries,
        degree: int | Sequence[int] | str = "auto",
        index_set: object = "tensor",
        approximation: str = "truncate",
        most_points: int | None = None,
    ) -> None:
        d = integer("dimension", dimension, least=1, most=_MOST_DIMENSION)
        count = integer("points", points, least=1, most=_MOST_POINTS)
        most = (
            max(2**26, count)
            if most_points is None
            else integer("most_points", most_points, least=count, most=_MOST_POINTS)
        )
        approximation = one_of("approximation", approximation, APPROXIMATIONS)
        known = (GaussianKernels, LaplaceKernels, MaternKernels, KSmooth, CoefficientPrior, KernelQueries)
        if not isinstance(query_class, known):
            raise DataTypeError("query_class must be a class of queries, such as sordino.smooth.GaussianKernels(0.5)")
        for name, value in (
            ("dimension", d),
            ("points", count),
            ("bounds", bounds_of(bounds, d)),
            ("query_class", query_class),
            ("degree", _degree(degree, d)),
            ("index_set", _index_set(index_set, d)),
            ("approximation", approximation),
            ("most_points", most),
        ):
            object.__setattr__(self, name, value)
        if isinstance(query_class, KernelQueries):
            query_class.check(self.cube)
        elif isinstance(query_class, KernelClass):
            query_class.scales(self.cube)
        elif isinstance(query_class, CoefficientPrior):
            query_class.largest(np.zeros((1, d), dtype=np.uint32), self.cube)
        if not isinstance(self.index_set, str) and self.degree != "auto":
            raise InvalidParameterError("explicit indices say the degrees: leave degree='auto'")

    @cached_property
    def cube(self) -> Cube:
        """The bounds."""
        return Cube(self.bounds)

    @property
    def declared(self) -> KernelQueries | None:
        """The queries, where they were declared one by one."""
        return self.query_class if isinstance(self.query_class, KernelQueries) else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SmoothQueries) and self.spec() == other.spec()

    def __hash__(self) -> int:
        return hash((self.dimension, self.points, self.bounds))

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Coordinates of a point."""
        return (self.dimension,)

    def _build(self) -> NoReturn:
        raise UnsupportedMechanismError("SmoothQueries are of points, not of cells")

    def spec(self) -> Spec:
        """Return the constructor's arguments."""
        return {
            "dimension": self.dimension,
            "points": self.points,
            "bounds": [list(pair) for pair in self.bounds],
            "query_class": self.query_class.to_json(),
            "degree": list(self.degree) if isinstance(self.degree, tuple) else self.degree,
            "index_set": self.index_set if isinstance(self.index_set, str) else self.index_set.tolist(),
            "approximation": self.approximation,
            "most_points": self.most_points,
        }

    @classmethod
    def _from_spec(cls, spec: object) -> SmoothQueries:
        return _smooth_from_spec(spec)

    def __repr__(self) -> str:
        return f"SmoothQueries(dimension={self.dimension}, points={self.points}, query_class={self.query_class!r})"


def _degree(degree: object, dimension: int) -> Degree:
    if isinstance(degree, str):
        named: Literal["auto", "paper"] = one_of("degree", degree, ("auto", "paper"))
        return named
    if not isinstance(degree, Sequence | np.ndarray):
        return integer("degree", degree, least=1, most=MOST_DEGREE)
    each = sequence("degree", degree, "numbers, one an axis")
    if len(each) != dimension:
        raise InvalidParameterError(f"degree must be a number, or {dimension} of them, one an axis")
    return tuple(integer("degree", t, least=1, most=MOST_DEGREE) for t in each)


def _index_set(index_set: object, dimension: int) -> IndexSet:
    if isinstance(index_set, str):
        named: Literal["tensor", "total"] = one_of("index_set", index_set, ("tensor", "total"))
        return named
    array = array_of("index_set", index_set, "an array of multi-indices")
    if array.dtype.kind not in "iu" or array.ndim != 2 or array.shape[1] != dimension or not len(array):
        raise DataTypeError(f"index_set must be an array of integers of shape (count, {dimension})")
    if (array < 0).any() or (array >= MOST_DEGREE).any() or array.size > MOST_FEATURES:
        raise InvalidParameterError(f"multi-indices must be from 0 to {MOST_DEGREE - 1}, at most 2**26 numbers in all")
    if len(np.unique(array, axis=0)) != len(array):
        raise InvalidParameterError("index_set must not repeat an index")
    indices = np.ascontiguousarray(array.astype(np.uint32))
    indices.flags.writeable = False
    return indices


def total_degree(dimension: int, degree: int) -> Indices:
    """Return all multi-indices of total degree below `degree`, shape (count, d).

    Raises:
        InvalidParameterError: They are too many.
    """
    count = math.comb(degree - 1 + dimension, dimension)
    if count * dimension > MOST_FEATURES:
        raise InvalidParameterError(
            f"{count} products of degree below {degree} in {dimension} coordinates are too many "
            f"({memory(count)}); lower the degree"
        )
    # One axis after the other: every index so far, followed by what is left of its degree.
    indices = np.zeros((1, 0), dtype=np.uint32)
    left = np.array([degree - 1])
    for _ in range(dimension):
        repeats = left + 1
        ends = np.cumsum(repeats)
        last = np.arange(ends[-1]) - np.repeat(ends - repeats, repeats)
        indices = np.column_stack((np.repeat(indices, repeats, axis=0), last.astype(np.uint32)))
        left = np.repeat(left, repeats) - last
    return np.ascontiguousarray(indices)


def memory(features: int) -> str:
    """Say what so many sums need, in words."""
    size = 8.0 * min(features, 10**300)
    for unit in ("bytes", "KB", "MB", "GB", "TB"):
        if size < 1000.0 or unit == "TB":
            return f"{size:.3g} {unit} of memory"
        size /= 1000.0
    raise AssertionError


def _smooth_from_spec(data: object) -> SmoothQueries:
    """Return the workload that `spec` describes.

    Raises:
        PlanFileError: `data` describes no workload of smooth queries.
    """
    if not isinstance(data, dict) or not isinstance(data.get("query_class"), dict):
        raise PlanFileError("the plan's workload is no workload of smooth queries")
    fields = dict(data)
    if fields.keys() != {each.name for each in dataclass_fields(SmoothQueries)}:
        raise PlanFileError("the plan's workload has other fields")
    found = fields["query_class"]
    fields["query_class"] = (
        KernelQueries.from_json(found) if found.get("kind") == "kernel-queries" else class_from_json(found)
    )
    if isinstance(fields.get("index_set"), list):
        fields["index_set"] = np.array(fields["index_set"], dtype=np.int64)
    try:
        return build_record("workload", SmoothQueries, fields)
    except TypeError:
        raise PlanFileError("the plan's workload has other fields") from None
