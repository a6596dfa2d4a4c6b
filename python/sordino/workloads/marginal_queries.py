"""Queries along the attributes of records: ranges of one by levels of another, for many sets of attributes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from sordino import _core
from sordino.errors import InvalidParameterError
from sordino.workloads.base import Spec, Workload, check_weights, specs_of, workloads_from_specs, workloads_of
from sordino.workloads.of_records import MAX_ATTRIBUTES, OfRecords

__all__ = ["MarginalQueries"]

# A set has two to the power of its size parts.
_MOST_IN_A_SET = 12


class MarginalQueries(OfRecords):
    """Products of queries along the attributes of sets: for each set the queries of its marginal table.

    `MarginalQueries([AllRanges(100), Histogram(5), RunningSum(12)], k=2)` asks for every range of ages by each of five
    regions, every range of ages up to each month, and each region up to each month. With `Histogram` alone these are
    `Marginals`. Answers are those of the sets one after the other, each in row-major order; `split` takes them apart.
    Input is the full table, or an (n, d) array of integer codes `0 <= code < levels[i]`; a record with any other code
    is a null record and counts nowhere. A two-dimensional array is always codes: give a table of two attributes flat.

    Args:
        queries: The queries of each attribute, of 2 to 65536 values, of which each counts as much as any other.
        k: All sets of `k` attributes; give this or `sets`.
        sets: Attribute sets, as sequences of attribute numbers; at most 12 in a set.
        weights: Weight of each set's squared errors in the mean that is minimised; 1 if None.

    Raises:
        DataTypeError: An argument is of the wrong type.
        InvalidParameterError: Sizes, attribute numbers or weights are out of range, both or neither of `k` and `sets`
            are given, there are more than 2**26 answers, or queries of an attribute have weights.
    """

    kind: ClassVar[str] = "marginal_queries"

    def __init__(
        self,
        queries: Sequence[Workload],
        *,
        k: int | None = None,
        sets: Iterable[Sequence[int]] | None = None,
        weights: Iterable[float] | None = None,
    ) -> None:
        self.queries = workloads_of("queries", queries)
        if len(self.queries) > MAX_ATTRIBUTES:
            raise InvalidParameterError(f"queries: at most {MAX_ATTRIBUTES} attributes")
        if any(own.core.input_len is None for own in self.queries):
            raise InvalidParameterError("queries of an attribute are of a list of its values")
        if any(own.is_listed and own.answer_weights() is not None for own in self.queries):
            raise InvalidParameterError("queries of an attribute have no weights: give them to sets")
        self.levels = tuple(own.core.input_len or 0 for own in self.queries)
        self._choose(k, sets, weights)
        if max(map(len, self.sets)) > _MOST_IN_A_SET:
            raise InvalidParameterError(f"sets: at most {_MOST_IN_A_SET} attributes in one")
        check_weights(np.array(self.weights))
        _ = self.core

    @property
    def table_shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shape of each set's answers: as many along an attribute as it has queries."""
        sizes = [own.core.answers_len for own in self.queries]
        return tuple(tuple(sizes[i] for i in chosen) for chosen in self.sets)

    def _build(self) -> _core.Workload:
        return _core.Workload.marginal_queries(
            [own.core for own in self.queries], [list(chosen) for chosen in self.sets], list(self.weights)
        )

    def spec(self) -> Spec:
        """Return the constructor's arguments, queries as their kinds and specs."""
        sets = [list(chosen) for chosen in self.sets]
        return {"queries": specs_of(self.queries), "sets": sets, "weights": list(self.weights)}

    @classmethod
    def _from_spec(cls, spec: Mapping[str, Any]) -> Self:
        return cls(**{**spec, "queries": workloads_from_specs(spec.get("queries"))})

    def _shown(self) -> Mapping[str, Any]:
        return {"queries": list(self.queries), "sets": [list(chosen) for chosen in self.sets]}
