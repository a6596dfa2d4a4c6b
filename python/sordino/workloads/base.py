"""What every workload has in common."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sordino import _core
from sordino._checks import integer
from sordino.errors import DataTypeError, InvalidParameterError, PlanFileError, SordinoError

__all__ = ["Array", "Spec", "Workload", "length_of", "numbers", "steps_of", "workload_from_spec"]

Array: TypeAlias = NDArray[np.float64]
Spec: TypeAlias = dict[str, Any]

MAX_LENGTH = 2**26
MAX_STEPS = 2**40


def length_of(name: str, value: object) -> int:
    """Return a public size from 1 to 2**26.

    Raises:
        DataTypeError: No integer.
        InvalidParameterError: Out of range.
    """
    number = integer(name, value, least=1)
    if number > MAX_LENGTH:
        raise InvalidParameterError(f"{name} must be at most 2**26, got {number}")
    return number


def steps_of(name: str, value: object) -> int | None:
    """Return the steps of a series from 1 to 2**40, None if they are not known.

    Raises:
        DataTypeError: No integer.
        InvalidParameterError: Out of range.
    """
    if value is None:
        return None
    number = integer(name, value, least=1)
    if number > MAX_STEPS:
        raise InvalidParameterError(f"{name} must be at most 2**40, got {number}")
    return number


def numbers(name: str, values: object, ndim: int | None = 1) -> Array:
    """Return public numbers as a read-only contiguous float array.

    Raises:
        DataTypeError: Not an array of real numbers of this many dimensions.
    """
    try:
        array = np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise DataTypeError(f"{name} must be an array of real numbers") from None
    if ndim is not None and array.ndim != ndim:
        raise DataTypeError(f"{name} must have {ndim} dimension(s), got {array.ndim}")
    array.flags.writeable = False
    return array


class Workload(ABC):
    """Linear queries `y = A x`, described without data.

    Attributes:
        kind: Name in plan files; never re-meant.
    """

    kind: ClassVar[str]
    _kinds: ClassVar[dict[str, type["Workload"]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "kind" in cls.__dict__:
            Workload._kinds[cls.kind] = cls

    @abstractmethod
    def spec(self) -> Spec:
        """Return the constructor's arguments: numbers, strings, lists and arrays."""

    @abstractmethod
    def _build(self) -> _core.Workload: ...

    @property
    @abstractmethod
    def input_shape(self) -> tuple[int, ...]:
        """Shape of the table of counts that a release takes."""

    @property
    def answers_shape(self) -> tuple[int, ...]:
        """Shape of the answers; that of the input unless said otherwise."""
        return self.input_shape

    @cached_property
    def core(self) -> _core.Workload:
        """The workload in the Rust core."""
        return self._build()

    def answer_weights(self) -> Array | None:
        """Return the weight of each answer's squared error in the mean, None for equal weights."""
        return None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Workload):
            return NotImplemented
        return self.kind == other.kind and _frozen(self.spec()) == _frozen(other.spec())

    def __hash__(self) -> int:
        return hash((self.kind, _frozen(self.spec())))

    def __repr__(self) -> str:
        parts = (f"{name}={_short(value)}" for name, value in self.spec().items())
        return f"{type(self).__name__}({', '.join(parts)})"


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
        return cls(**spec)
    except (SordinoError, TypeError) as error:
        raise PlanFileError(f"the plan's workload cannot be rebuilt: {error}") from None
