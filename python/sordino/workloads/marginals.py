"""Marginal tables of categorical records."""

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from sordino import _core
from sordino._support.checks import integer, real, sequence
from sordino.errors import InvalidParameterError
from sordino.workloads.base import Array, Spec, Workload, length_of, pieces_of, weights_of

__all__ = ["Marginals"]

_MAX_SETS = 2**18
# A table of so many attributes of two values has as many cells as there may be; attributes of one value are rare.
_MAX_ATTRIBUTES = 2**10


def _attributes(numbers: object, attributes: int) -> tuple[object, ...]:
    """Return the attribute numbers of a set, in whatever order."""
    return sequence("sets", numbers, "attribute numbers", most=attributes, ordered=False)


class Marginals(Workload):
    """Marginal tables of records with `levels[i]` values of attribute `i`.

    Answers are the tables one after the other, each in row-major order; `Release.tables` splits them. Input is
    the full table, or an (n, d) array of integer codes `0 <= code < levels[i]`; a record with any other code
    is a null record and counts nowhere. A two-dimensional array is always codes: give a table of two attributes flat.

    Args:
        levels: Number of values of each attribute, at least 2.
        k: All sets of `k` attributes; give this or `sets`.
        sets: Attribute sets, as sequences of attribute numbers.
        weights: Weight of each table's squared errors in the mean that is minimised; 1 if None.
        total_share: Least share of the precision that the total has where residuals are measured ('fourier'), up to
            1/2. The least error hardly measures it; `Release.consistent` rests on it, unless it is public: .02 makes
            it several times more exact for 1 % more error.

    Raises:
        DataTypeError: An argument is of the wrong type.
        InvalidParameterError: Sizes, attribute numbers or weights are out of range, or both or neither of `k`
            and `sets` are given.
    """

    kind: ClassVar[str] = "marginals"

    def __init__(
        self,
        levels: Sequence[int],
        *,
        k: int | None = None,
        sets: Iterable[Sequence[int]] | None = None,
        weights: Iterable[float] | None = None,
        total_share: float = 0.0,
    ) -> None:
        self.levels = tuple(
            length_of("levels", level) for level in sequence("levels", levels, "integers", most=_MAX_ATTRIBUTES)
        )
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
        self.total_share = real("total_share", total_share)
        if not 0.0 <= self.total_share <= 0.5:
            raise InvalidParameterError("total_share must be between 0 and 1/2")
        _ = self.core

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of the full table."""
        return self.levels

    @property
    def table_shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shape of each answered table."""
        return tuple(tuple(self.levels[i] for i in s) for s in self.sets)

    @property
    def answers_shape(self) -> tuple[int, ...]:
        """`(cells of all tables,)`."""
        return (self.core.answers_len,)

    def split(self, values: ArrayLike) -> dict[tuple[int, ...], Array]:
        """Return each attribute set's table.

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
        """Return the table's weight for each cell."""
        if set(self.weights) == {1.0}:
            return None
        return np.repeat(np.array(self.weights), [math.prod(shape) for shape in self.table_shapes])

    def _build(self) -> _core.Workload:
        sets = [list(s) for s in self.sets]
        return _core.Workload.marginals(list(self.levels), sets, list(self.weights), self.total_share)

    def spec(self) -> Spec:
        """Return the constructor's arguments."""
        spec: Spec = {
            "levels": list(self.levels),
            "sets": [list(s) for s in self.sets],
            "weights": list(self.weights),
        }
        return {**spec, "total_share": self.total_share} if self.total_share else spec
