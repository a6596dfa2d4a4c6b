"""Marginal tables of categorical records."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from sordino import _core
from sordino._support.checks import real, sequence
from sordino.errors import InvalidParameterError
from sordino.workloads.base import Spec, length_of
from sordino.workloads.of_records import MAX_ATTRIBUTES, OfRecords

__all__ = ["Marginals"]


class Marginals(OfRecords):
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
            length_of("levels", level) for level in sequence("levels", levels, "integers", most=MAX_ATTRIBUTES)
        )
        self._choose(k, sets, weights)
        self.total_share = real("total_share", total_share)
        if not 0.0 <= self.total_share <= 0.5:
            raise InvalidParameterError("total_share must be between 0 and 1/2")
        _ = self.core

    @property
    def table_shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shape of each answered table."""
        return tuple(tuple(self.levels[i] for i in s) for s in self.sets)

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
