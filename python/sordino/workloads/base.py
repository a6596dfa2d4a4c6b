"""What every workload has in common."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from sordino import _core
from sordino._support.checks import MAX_CELLS, integer, numbers, positive, sequence
from sordino.errors import DataTypeError, InvalidParameterError, PlanFileError, ShapeError, SordinoError
from sordino.workloads.layout import Axis, Layout

if TYPE_CHECKING:
    from sordino.workloads.union import Union

__all__ = [
    "Array",
    "Spec",
    "Workload",
    "check_weights",
    "laid_out",
    "length_of",
    "specs_of",
    "steps_of",
    "weights_of",
    "workload_from_spec",
    "workloads_from_specs",
    "workloads_of",
]

Array: TypeAlias = NDArray[np.float64]
Spec: TypeAlias = dict[str, Any]

MAX_LENGTH = MAX_CELLS
MAX_STEPS = 2**40
_LEAST_WEIGHT = 1e-150


def length_of(name: str, value: object) -> int:
    """Return a public size from 1 to 2**26.

    Raises:
        DataTypeError: No integer.
        InvalidParameterError: Out of range.
    """
    return integer(name, value, least=1, most=MAX_LENGTH)


def steps_of(name: str, value: object) -> int | None:
    """Return the steps of a series from 1 to 2**40, None if they are not known.

    Raises:
        DataTypeError: No integer.
        InvalidParameterError: Out of range.
    """
    return None if value is None else integer(name, value, least=1, most=MAX_STEPS)


def workloads_of(name: str, values: object) -> tuple["Workload", ...]:
    """Return a sequence of workloads as a tuple.

    Raises:
        DataTypeError: Something else.
        InvalidParameterError: There are none, or one sorts the cells or is a stream: it stands alone.
    """
    found = sequence(name, values, "workloads")
    if not all(isinstance(item, Workload) for item in found):
        raise DataTypeError(f"{name} must be a sequence of workloads")
    if not found:
        raise InvalidParameterError(f"{name} must name at least one workload")
    if not all(item.linear for item in found):
        raise InvalidParameterError(f"{name} must be linear queries: a sorted or running histogram stands alone")
    return found


def weights_of(values: object, count: int, what: str) -> tuple[float, ...]:
    """Return the positive weights of so many things, 1 each if none are given.

    Raises:
        DataTypeError: No sequence of numbers.
        InvalidParameterError: One is not positive, or there are more or fewer.
    """
    if values is None:
        return (1.0,) * count
    found = tuple(positive("weight", value) for value in sequence("weights", values, "numbers"))
    if len(found) != count:
        raise InvalidParameterError(f"{len(found)} weights for {count} {what}")
    return found


def check_weights(weights: Array | None) -> None:
    """Check that every weight is between 1e-150 and 1e150, so that means of weighted squares are finite.

    Raises:
        InvalidParameterError: One is not.
    """
    # Not-a-number is outside as well.
    if weights is not None and not ((weights >= _LEAST_WEIGHT) & (weights <= 1.0 / _LEAST_WEIGHT)).all():
        raise InvalidParameterError("weights of answers must be positive and finite, between 1e-150 and 1e150")


def pieces_of(values: object, workload: "Workload", sizes: Sequence[int]) -> list[Array]:
    """Return the answers of parts of these sizes, one after the other.

    Raises:
        DataTypeError: Not an array of numbers.
        ShapeError: The values have not the shape of the answers.
    """
    array = numbers("values", values, ndim=None)
    if array.shape != workload.answers_shape:
        raise ShapeError(f"values must have shape {workload.answers_shape}, got {array.shape}")
    return np.split(array, np.cumsum(sizes)[:-1])


class Workload(ABC):
    """Linear queries `y = A x`, described without data.

    Two workloads on the same cells are asked together by `a | b`: a `Union`, answered by one release. `3 * a` are the
    same queries and answers, but their squared errors count three times in the mean: answers are not scaled.

    Attributes:
        kind: Name in plan files; never re-meant.
        linear: Whether the answers are linear in the cells as they come, so that it can be a part of others.
        per_cell: Whether there is one answer for each cell, so that it can be called like the cell.
        continual: Whether it is answered after every step of a stream, by nature.
        of_events: Whether its items are events, which change counters by a public rule.
        layout: What a schema said of it; None of a workload that was made otherwise.
        factors: Of a product what is asked along each axis, one after the other; of others none.
    """

    # Of numpy: `numpy.float64(3) * a` is left to `a`.
    __array_ufunc__: ClassVar[None] = None

    kind: ClassVar[str]
    linear: ClassVar[bool] = True
    per_cell: ClassVar[bool] = False
    continual: ClassVar[bool] = False
    of_events: ClassVar[bool] = False
    layout: Layout | None = None
    factors: tuple["Workload", ...] = ()
    _kinds: ClassVar[dict[str, type["Workload"]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "kind" in cls.__dict__:
            Workload._kinds[cls.kind] = cls

    @property
    def merged(self) -> "Workload":
        """The same queries of the cells that they tell apart, itself where those are all; least errors are the same.

        Merged cells are some of all, so what bounds their changes bounds changes of all.
        """
        return self

    @property
    def is_listed(self) -> bool:
        """Whether its answers can be held one by one: at most 2**26. Of others a release computes what is asked for."""
        return self.core.is_listed

    @abstractmethod
    def spec(self) -> Spec:
        """Return the constructor's arguments: numbers, strings, lists and arrays."""

    @abstractmethod
    def _build(self) -> _core.Workload: ...

    def _on_cells(self, cells: NDArray[np.int64]) -> "Workload":
        """Return the same queries of these cells alone, rising and each once: the first of all that are alike."""
        raise NotImplementedError

    def _with_factors(self, factors: Sequence["Workload"]) -> "Workload":
        """Return the product of other factors, numbered alike."""
        raise NotImplementedError

    @property
    @abstractmethod
    def input_shape(self) -> tuple[int, ...]:
        """Shape of the table of counts that a release takes."""

    @property
    def answers_shape(self) -> tuple[int, ...]:
        """Shape of the answers; that of the input unless said otherwise."""
        return self.input_shape

    @property
    def answer_names(self) -> tuple[str, ...] | None:
        """What the answers are called, None where nobody says it."""
        return None

    @property
    def first_step(self) -> int:
        """Cells before the first that has an answer."""
        return 0

    @property
    def schema_digest(self) -> str | None:
        """Digest of the schema whose tables are taken, None if none is known."""
        return None if self.layout is None else self.layout.digest

    @cached_property
    def core(self) -> _core.Workload:
        """The workload in the Rust core."""
        return self._build()

    def answer_weights(self) -> Array | None:
        """Return the weight of each answer's squared error in the mean, flat; None stands for 1 everywhere."""
        return None

    @classmethod
    def _from_spec(cls, spec: Mapping[str, Any]) -> Self:
        return cls(**spec)

    def __or__(self, other: object) -> "Union":
        """Return the queries of both; the parts of unions are taken one by one, with their weights."""
        if not isinstance(other, Workload):
            return NotImplemented
        from sordino.workloads.union import joined  # noqa: PLC0415 - a union is a workload

        return joined(self, other)

    def __mul__(self, weight: float) -> "Union":
        """Return the same queries, each squared error `weight` times as important in the mean.

        Raises:
            DataTypeError: The weight is no number.
            InvalidParameterError: The weight is not positive and finite.
        """
        from sordino.workloads.union import weighted  # noqa: PLC0415

        return weighted(self, positive("weight", weight))

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Workload):
            return NotImplemented
        same = self.kind == other.kind and self.layout == other.layout
        return same and _frozen(self.spec()) == _frozen(other.spec())

    def __hash__(self) -> int:
        return hash((self.kind, _frozen(self.spec())))

    def __repr__(self) -> str:
        parts = (f"{name}={_short(value)}" for name, value in self._shown().items())
        return f"{type(self).__name__}({', '.join(parts)})"

    def _shown(self) -> Mapping[str, Any]:
        """Return what the representation names."""
        return self.spec()


_W = TypeVar("_W", bound=Workload)


def laid_out(workload: _W, layout: Layout | None) -> _W:
    """Return the same queries about a schema's table.

    Raises:
        InvalidParameterError: It names more or fewer answers.
    """
    names = None if layout is None else sum(_answers(block) for block in layout.blocks)
    if names is not None and workload.is_listed and names != int(np.prod(workload.answers_shape, dtype=np.int64)):
        raise InvalidParameterError("a schema's table has other answers than these queries")
    made = copy(workload)
    made.layout = layout
    return made


def _answers(block: tuple[Axis, ...]) -> int:
    return math.prod(sum(len(names.labels) for names in axis) for axis in block)


def _frozen(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.shape, value.tobytes()
    if isinstance(value, Mapping):
        return tuple((key, _frozen(item)) for key, item in sorted(value.items()))
    if isinstance(value, list | tuple):
        return tuple(_frozen(item) for item in value)
    return value


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size > 8:
        return f"<array of shape {value.shape}>"
    if isinstance(value, np.ndarray):
        return repr(value.tolist())
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def workload_from_spec(kind: object, spec: Mapping[str, Any]) -> Workload:
    """Rebuild a workload from its kind and spec.

    Raises:
        PlanFileError: The kind is unknown, or the spec is not one that the kind accepts.
    """
    cls = Workload._kinds.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise PlanFileError("the plan's workload is of an unknown kind; it may need a newer sordino")
    try:
        return cls._from_spec(spec)
    except PlanFileError:
        raise
    except (SordinoError, TypeError) as error:
        raise PlanFileError(f"the plan's workload cannot be rebuilt: {error}") from None


def specs_of(workloads: Iterable[Workload]) -> list[Spec]:
    """Return kind and spec of each workload, for the spec of one that is made of them."""
    return [{"kind": workload.kind, "spec": workload.spec()} for workload in workloads]


def workloads_from_specs(specs: object) -> list[Workload]:
    """Rebuild what `specs_of` describes.

    Raises:
        PlanFileError: It is no list of kinds and specs, or one of them cannot be rebuilt.
    """
    if not isinstance(specs, list) or not all(
        isinstance(item, Mapping) and set(item) == {"kind", "spec"} for item in specs
    ):
        raise PlanFileError("the parts of the plan's workload must be a list of kinds and specs")
    return [workload_from_spec(item["kind"], item["spec"]) for item in specs]
