"""Live answers: a workload that is answered after every step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, NoReturn, Self, get_args

from sordino._support.checks import flag, integer, one_of, positive
from sordino.errors import DataTypeError, InvalidParameterError, UnsupportedMechanismError
from sordino.workloads.base import Spec, Workload, workload_from_spec
from sordino.workloads.filters import RunningSum

__all__ = ["LEAST_NORM", "MOST_NORM", "Continual", "Horizon", "Reads"]

Horizon = Literal["hard", "soft", "unbounded"]
Reads = Literal["auto", "dense", "lazy"]

_MOST_DIM = 2**28
LEAST_NORM, MOST_NORM = 2.0**-24, 2.0**20


class Continual(Workload):
    """A workload whose answer is published after every step of a stream, under one budget for all of them.

    Neighbouring streams differ by one unit. `AddRemove(k)`: k records, each of which changes one item in at most
    `cells_per_record` coordinates by at most 1 (sensitivity `k sqrt(cells_per_record)` times the column norm).
    `ReplaceOne(k)`: k records leave one item and enter the same or another (`k sqrt(2 cells_per_record)`, or
    `2 k sqrt(cells_per_record)` unless `one_signed`). `UserLevel`: at most `max_participations` items, at least
    `min_separation` steps apart. With a `record_norm` a record changes an item by a vector of that Euclidean norm at
    most (`k record_norm` times the column norm, replaced `2 k record_norm`), whatever its direction, at every step.

    Args:
        workload: `RunningSum`, `RunningAverage`, or a causal filter such as `ExponentialSmoothing`, `MovingAverage`,
            `SlidingWindow`, `Convolution(..., boundary="causal")`; or what is continual by nature and can be planned as
            it is: a `RunningHistogram`, counts of events (`sordino.events`), a `RareCount`.
        horizon: 'hard': the stream ends after `length` steps; the default if the workload has a length. 'soft': made
            for `length` steps, private for ever, with a larger error beyond. 'unbounded': good at every step, private
            for ever; the default without a length.
        dim: Coordinates of an item: a live histogram of `dim` cells.
        cells_per_record: Coordinates that one record changes, at most.
        one_signed: Whether a record only raises entries; False if those of a record may be negative.
        record_norm: Euclidean norm of what a record adds to an item, at most, if records are vectors of real numbers in
            any direction, such as clipped gradients (`sordino.training`); in place of `cells_per_record`.
        common_noise: Whether coordinates may have noise in common, where a record raises several of them: less for
            each, more for their total.
        reads: Counts of events only. 'dense': every counter is published at every step. 'lazy': what would be published
            is computed when it is read. 'auto': dense up to 2**21 counters and 2**28 counters times steps.
        pan_private: `RunningHistogram` only: the state may be looked at once, by an intruder who then has what was
            published too; the same budget covers it, with twice the variance of a binary tree. Otherwise the state is
            as secret as the data.

    Raises:
        DataTypeError: An argument is of the wrong type.
        InvalidParameterError: An argument is out of range, or belongs to another kind of workload.
    """

    kind: ClassVar[str] = "continual"
    linear: ClassVar[bool] = False
    continual: ClassVar[bool] = True

    def __init__(
        self,
        workload: Workload,
        *,
        horizon: Horizon | None = None,
        dim: int = 1,
        cells_per_record: int = 1,
        one_signed: bool = True,
        record_norm: float | None = None,
        common_noise: bool = True,
        reads: Reads = "auto",
        pan_private: bool = False,
    ) -> None:
        if not isinstance(workload, Workload) or isinstance(workload, Continual):
            raise DataTypeError("Continual takes a workload, such as sordino.RunningSum(10)")
        self.workload = workload
        self.one_signed = flag("one_signed", one_signed)
        self.common_noise = flag("common_noise", common_noise)
        self.dim = integer("dim", dim, least=1, most=_MOST_DIM)
        self.cells_per_record = integer("cells_per_record", cells_per_record, least=1, most=self.dim)
        self.reads: Reads = one_of("reads", reads, get_args(Reads))
        self.pan_private = flag("pan_private", pan_private)
        self.record_norm = None if record_norm is None else positive("record_norm", record_norm)
        if self.record_norm is not None:
            if (self.cells_per_record, self.one_signed) != (1, True):
                raise InvalidParameterError("record_norm is in place of cells_per_record and one_signed")
            if not LEAST_NORM <= self.record_norm <= MOST_NORM:
                raise InvalidParameterError("record_norm must be from 2**-24 to 2**20: measure in another unit")
        if horizon is None:
            horizon = "unbounded" if self.length is None else "hard"
        self.horizon: Horizon = one_of("horizon", horizon, get_args(Horizon))
        if horizon != "unbounded" and self.length is None:
            raise InvalidParameterError(f"a {horizon} horizon needs a length, such as RunningSum(length=2**20)")
        if workload.continual and (self.dim, self.cells_per_record, self.one_signed, self.record_norm) != (
            1,
            1,
            True,
            None,
        ):
            raise InvalidParameterError(f"a {type(workload).__name__} says itself what an item changes")
        if self.reads != "auto" and not workload.of_events:
            raise InvalidParameterError("reads belongs to counts of events")
        if self.pan_private and workload.kind != "running_histogram":
            raise InvalidParameterError("pan_private belongs to a RunningHistogram")

    @staticmethod
    def of(workload: Workload) -> Continual:
        """Return a workload that is continual by nature with nothing else said, and others as they are."""
        return workload if isinstance(workload, Continual) else Continual(workload)

    @property
    def length(self) -> int | None:
        """Declared steps of the series."""
        length: int | None = getattr(self.workload, "length", None)
        return length

    @property
    def filter(self) -> Workload:
        """What every counter answers: the workload itself, or running sums."""
        return RunningSum(self.length) if self.workload.continual else self.workload

    def replaced(self, **changes: Any) -> Continual:
        """Return the same with other arguments."""
        return Continual(**{"workload": self.workload, **self._options(), **changes})

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Coordinates of an item."""
        return (self.dim,)

    @property
    def is_listed(self) -> bool:
        """Never: its answers come step by step."""
        return False

    def _build(self) -> NoReturn:
        raise UnsupportedMechanismError("a Continual workload is answered by an open stream, not by a release")

    def _options(self) -> dict[str, Any]:
        names = (
            "horizon",
            "dim",
            "cells_per_record",
            "one_signed",
            "record_norm",
            "common_noise",
            "reads",
            "pan_private",
        )
        return {name: getattr(self, name) for name in names}

    def spec(self) -> Spec:
        """Return the constructor's arguments, the workload as its kind and spec."""
        return {"workload": {"kind": self.workload.kind, "spec": self.workload.spec()}, **self._options()}

    @classmethod
    def _from_spec(cls, spec: Mapping[str, Any]) -> Self:
        inner = spec["workload"]
        return cls(**{**spec, "workload": workload_from_spec(inner["kind"], inner["spec"])})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Continual):
            return NotImplemented
        own = (self.workload, self.layout, self._options())
        return own == (other.workload, other.layout, other._options())

    def __hash__(self) -> int:
        return hash((self.kind, self.workload, *self._options().items()))

    def _shown(self) -> Mapping[str, Any]:
        plain = {"dim": 1, "cells_per_record": 1, "reads": "auto", "pan_private": False}
        plain |= {"one_signed": True, "record_norm": None, "common_noise": True}
        said = {name: value for name, value in self._options().items() if plain.get(name) != value}
        if said["horizon"] == ("unbounded" if self.length is None else "hard"):
            del said["horizon"]
        return {"workload": self.workload, **said}
