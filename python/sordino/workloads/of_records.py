"""Queries of categorical records, by sets of their attributes."""

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from sordino._support.checks import integer, sequence
from sordino.errors import InvalidParameterError
from sordino.workloads.base import Array, Workload, pieces_of, weights_of

__all__ = ["MAX_ATTRIBUTES", "OfRecords"]

_MAX_SETS = 2**18
# A table of so many attributes of two values has as many cells as there may be; attributes of one value are rare.
MAX_ATTRIBUTES = 2**10


class OfRecords(Workload):
    """What workloads of records have in common: one block of answers for each set of attributes.

    Attributes:
        levels: Number of values of each attribute.
        sets: Attribute sets, each rising.
        weights: Weight of each set's squared errors in the mean.
    """

    levels: tuple[int, ...]
    sets: tuple[tuple[int, ...], ...]
    weights: tuple[float, ...]

    def _choose(self, k: int | None, sets: Iterable[Sequence[int]] | None, weights: Iterable[float] | None) -> None:
        """Keep the sets of so many attributes, or those that are given, with their weights.

        Raises:
            DataTypeError: An argument is of the wrong type.
            InvalidParameterError: Numbers are out of range, or both or neither of `k` and `sets` are given.
        """
        d = len(self.levels)
        if (k is None) == (sets is None):
            raise InvalidParameterError("give either k or sets")
        if k is not None:
            k = integer("k", k, least=0, most=d)
            if math.comb(d, k) > _MAX_SETS:
                raise InvalidParameterError(f"at most {_MAX_SETS} attribute sets: {k} of {d} attributes are more")
            chosen = tuple(combinations(range(d), k))
        else:
            listed = sequence("sets", sets, "sequences of attribute numbers", most=_MAX_SETS)
            chosen = tuple(
                tuple(sorted({integer("attribute", i, least=0, most=d - 1) for i in _attributes(s, d)})) for s in listed
            )
        if len(set(chosen)) < len(chosen):
            raise InvalidParameterError("the same attribute set is given twice: add up its weights")
        self.sets = chosen
        self.weights = weights_of(weights, len(chosen), "attribute sets")

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of the full table."""
        return self.levels

    @property
    @abstractmethod
    def table_shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shape of each set's answers."""

    @property
    def answers_shape(self) -> tuple[int, ...]:
        """`(answers of all sets,)`."""
        return (self.core.answers_len,)

    def split(self, values: ArrayLike) -> dict[tuple[int, ...], Array]:
        """Return each attribute set's answers.

        Args:
            values: Shape `answers_shape`, such as `Release.values` or `Release.stderr`.

        Raises:
            DataTypeError: Not an array of numbers.
            ShapeError: The values have another shape.
        """
        pieces = pieces_of(values, self, [math.prod(shape) for shape in self.table_shapes])
        tables = zip(self.sets, pieces, self.table_shapes, strict=True)
        return {chosen: piece.reshape(shape) for chosen, piece, shape in tables}

    def answer_weights(self) -> Array | None:
        """Return the set's weight for each answer."""
        if set(self.weights) == {1.0}:
            return None
        return np.repeat(np.array(self.weights), [math.prod(shape) for shape in self.table_shapes])


def _attributes(numbers: object, attributes: int) -> tuple[object, ...]:
    """Return the attribute numbers of a set, in whatever order."""
    return sequence("sets", numbers, "attribute numbers", most=attributes, ordered=False)
