"""Several workloads asked together."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sordino import _core
from sordino.errors import InvalidParameterError, UnsupportedMechanismError
from sordino.workloads.base import (
    Array,
    Spec,
    Workload,
    check_weights,
    pieces_of,
    specs_of,
    weights_of,
    workloads_from_specs,
    workloads_of,
)

__all__ = ["Union", "joined", "weighted"]


class Union(Workload):
    """The answers of several workloads on the same cells, one after the other: one release for all of them.

    `a | b` and `3 * a` make unions too. A weight says how much the squared errors of a part count in the mean that is
    minimised and reported; answers are never scaled by it. It multiplies the weights that the part has itself.

    The input has the shape that the parts have; flat parts of as many cells go with any shape. Records of marginals
    are given as a table of counts.

    Args:
        parts: Workloads on the same cells.
        weights: Positive weight of each part; 1 if None.

    Raises:
        DataTypeError: The parts are no sequence of workloads, or a weight is no number.
        InvalidParameterError: There are no parts, they have different cells or more than 2**62 answers, or weights
            are out of range or not as many as parts.
    """

    kind: ClassVar[str] = "union"

    def __init__(self, parts: Sequence[Workload], weights: Iterable[float] | None = None) -> None:
        self.parts = workloads_of("parts", parts)
        self.weights = weights_of(weights, len(self.parts), "parts")
        _ = self.core
        shapes = {part.input_shape for part in self.parts}
        tables = {shape for shape in shapes if len(shape) > 1}
        if len(tables) > 1:
            raise InvalidParameterError(f"parts must be queries on the same table, got shapes {sorted(tables)}")
        self._input_shape = next(iter(tables or shapes))
        if self.is_listed:
            check_weights(self._answer_weights)
        elif any(map(_has_weights, self.parts)):
            raise InvalidParameterError("parts of unions of more than 2**26 answers have no weights inside")
        first, *others = (part.layout for part in self.parts)
        self.layout = None if first is None else first.joined(others)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of the parts' input."""
        return self._input_shape

    @property
    def answers_shape(self) -> tuple[int, ...]:
        """`(answers of all parts,)`."""
        return (self.core.answers_len,)

    @property
    def part_shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shape of each part's answers."""
        return tuple(part.answers_shape for part in self.parts)

    def split(self, values: ArrayLike) -> list[Array]:
        """Return the answers of each part, in its own shape.

        Args:
            values: Shape `answers_shape`, such as `Release.values` or `Release.stderr`.

        Raises:
            DataTypeError: Not an array of numbers.
            ShapeError: The values have another shape.
        """
        pieces = pieces_of(values, self, [part.core.answers_len for part in self.parts])
        return [piece.reshape(shape) for piece, shape in zip(pieces, self.part_shapes, strict=True)]

    @cached_property
    def merged(self) -> "Union":
        """The same queries of the cells that they tell apart together, of products along the same axes along each."""
        shapes = {tuple(factor.core.input_len for factor in part.factors) for part in self.parts}
        if shapes == {()}:
            distinct = self.core.distinct_cells()
            return self if distinct is None else self._on_cells(distinct[0])
        if len(shapes) > 1:
            return self
        along = [Union(asked) for asked in zip(*(part.factors for part in self.parts), strict=True)]
        if all(asked.merged is asked for asked in along):
            return self
        factors = zip(*(asked.merged.parts for asked in along), strict=True)
        parts = [part._with_factors(own) for part, own in zip(self.parts, factors, strict=True)]
        return Union(parts, self.weights)

    def answer_weights(self) -> Array | None:
        """Return the weight of each answer: that of its part times that in its part.

        Raises:
            UnsupportedMechanismError: There are more than 2**26.
        """
        if not self.is_listed and not self.is_even:
            raise UnsupportedMechanismError("weights of more than 2**26 answers are not listed")
        return self._answer_weights

    @property
    def is_even(self) -> bool:
        """Whether all parts have the same weight."""
        return len(set(self.weights)) == 1

    @cached_property
    def _answer_weights(self) -> Array | None:
        own = [part.answer_weights() for part in self.parts]
        alike = set(self.weights) == {1.0} or not self.is_listed
        if alike and all(weights is None for weights in own):
            return None
        with np.errstate(over="ignore", under="ignore"):
            pieces = [
                np.full(part.core.answers_len, weight) if weights is None else weight * weights
                for part, weight, weights in zip(self.parts, self.weights, own, strict=True)
            ]
        return np.concatenate(pieces)

    def _build(self) -> _core.Workload:
        return _core.Workload.union([part.core for part in self.parts])

    def _on_cells(self, cells: NDArray[np.int64]) -> "Union":
        return Union([part._on_cells(cells) for part in self.parts], self.weights)

    def spec(self) -> Spec:
        """Return the constructor's arguments, parts as their kinds and specs."""
        return {"parts": specs_of(self.parts), "weights": list(self.weights)}

    @classmethod
    def _from_spec(cls, spec: Mapping[str, Any]) -> Self:
        return cls(**{**spec, "parts": workloads_from_specs(spec.get("parts"))})

    def _shown(self) -> Mapping[str, Any]:
        shown: dict[str, Any] = {"parts": list(self.parts)}
        return shown if set(self.weights) == {1.0} else {**shown, "weights": list(self.weights)}


def _has_weights(workload: Workload) -> bool:
    if isinstance(workload, Union) and not workload.is_listed:
        return not workload.is_even
    return workload.answer_weights() is not None


def joined(*workloads: Workload) -> Union:
    """Return the union; the parts of unions among the workloads are taken one by one, with their weights."""
    unions = [workload if isinstance(workload, Union) else Union([workload]) for workload in workloads]
    return Union(
        [part for union in unions for part in union.parts],
        [weight for union in unions for weight in union.weights],
    )


def weighted(workload: Workload, weight: float) -> Union:
    """Return the same queries with `weight` times the weight."""
    parts, weights = (workload.parts, workload.weights) if isinstance(workload, Union) else ((workload,), (1.0,))
    return Union(parts, [weight * own for own in weights])
