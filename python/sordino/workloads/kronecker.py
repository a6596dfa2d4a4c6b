"""Products of workloads: queries along the axes of a table."""

from collections.abc import Mapping, Sequence
from functools import cached_property, reduce
from itertools import chain
from typing import Any, ClassVar, Self

import numpy as np

from sordino import _core
from sordino._support.checks import flag as is_true
from sordino.errors import InvalidParameterError
from sordino.workloads.base import Array, Spec, Workload, check_weights, specs_of, workloads_from_specs, workloads_of

__all__ = ["Kronecker"]


class Kronecker(Workload):
    """The Kronecker product `A_1 (x) A_2 (x) ...`: each factor's queries along its own axes of a table.

    `Kronecker([RunningSum(24), Histogram(7)])` answers, of a 24 by 7 table, the total of the hours up to each hour on
    each day of the week. An answer is weighted by the product of the weights that its factors give it. More than 2**26
    answers are not listed, and have no weights: ask a release for those that are wanted, by `Release.sum` and `answer`.

    Args:
        factors: Workloads; the input has the axes of all their inputs, the answers those of all their answers.
        flat: Whether cells and answers are numbered in one row instead, as those of the matrix that a product is.

    Raises:
        DataTypeError: The factors are no sequence of workloads, or `flat` is no bool.
        InvalidParameterError: There are no factors, the table has more than 2**26 cells or there are more than 2**62
            answers, or products of entries or weights are out of range.
    """

    kind: ClassVar[str] = "kronecker"

    def __init__(self, factors: Sequence[Workload], flat: bool = False) -> None:
        self.factors = workloads_of("factors", factors)
        self.flat = is_true("flat", flat)
        _ = self.core
        check_weights(self._answer_weights)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The input shapes of the factors, one after the other; `(cells,)` if flat."""
        if self.flat:
            return (self.core.input_len or 0,)
        return tuple(chain.from_iterable(factor.input_shape for factor in self.factors))

    @property
    def answers_shape(self) -> tuple[int, ...]:
        """The shapes of the factors' answers, one after the other; `(answers,)` if flat."""
        if self.flat:
            return (self.core.answers_len,)
        return tuple(chain.from_iterable(factor.answers_shape for factor in self.factors))

    @cached_property
    def merged(self) -> "Kronecker":
        """The same product of the cells that are told apart along each axis."""
        merged = [factor.merged for factor in self.factors]
        alike = all(own is factor for own, factor in zip(merged, self.factors, strict=True))
        return self if alike else self._with_factors(merged)

    def answer_weights(self) -> Array | None:
        """Return the weight of each answer: the product of those in its factors."""
        return self._answer_weights

    @cached_property
    def _answer_weights(self) -> Array | None:
        own = [factor.answer_weights() for factor in self.factors]
        if all(weights is None for weights in own):
            return None
        if not self.is_listed:
            raise InvalidParameterError("factors: more than 2**26 answers have no weights")
        sizes = [factor.core.answers_len for factor in self.factors]
        each = [np.ones(size) if weights is None else weights for weights, size in zip(own, sizes, strict=True)]
        with np.errstate(over="ignore", under="ignore"):
            return reduce(np.multiply.outer, each).reshape(-1)

    def _build(self) -> _core.Workload:
        return _core.Workload.kronecker([factor.core for factor in self.factors])

    def _with_factors(self, factors: Sequence[Workload]) -> "Kronecker":
        return Kronecker(factors, self.flat)

    def spec(self) -> Spec:
        """Return the constructor's arguments, factors as their kinds and specs."""
        return {"factors": specs_of(self.factors)} | ({"flat": True} if self.flat else {})

    @classmethod
    def _from_spec(cls, spec: Mapping[str, Any]) -> Self:
        return cls(**{**spec, "factors": workloads_from_specs(spec.get("factors"))})

    def _shown(self) -> Mapping[str, Any]:
        return {"factors": list(self.factors)} | ({"flat": True} if self.flat else {})
