"""Published answers of a whole stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sordino._support.cards import card
from sordino._support.checks import flag
from sordino._support.protocols import TableLike
from sordino.errors import HorizonError, PlanFileError, ShapeError, UnsupportedMechanismError
from sordino.mechanisms.fits import Fit
from sordino.mechanisms.stream.fit import StreamFit
from sordino.privacy.requests import Answering, NoiseKey, Prepared
from sordino.releases.arrays import counts_of, read_items
from sordino.releases.interval import Interval, interval_around
from sordino.releases.making import data_digest, of_file
from sordino.releases.record_files import RecordFile
from sordino.streams.counter import open_stream
from sordino.workloads.base import Array

__all__ = ["WHOLE_STREAM", "StreamRelease", "whole_stream"]

# Answers that a card shows.
_ROWS = 8


@dataclass(frozen=True, eq=False)
class StreamRelease:
    """Published answers of a whole stream.

    Attributes:
        fit: How they were made.
        values: Shape (n,), or (n, dim).
        private: False only under `sordino.testing.deterministic_noise`.
        accounted: Whether a ledger was charged.
    """

    fit: StreamFit
    values: Array = field(repr=False)
    private: bool = True
    accounted: bool = False

    def _repr_html_(self) -> str:
        first = (numbers.reshape(len(numbers), -1)[:_ROWS, 0] for numbers in (self.values, self.stderr))
        rows = [[str(step), f"{v:.6g}", f"{e:.4g}"] for step, (v, e) in enumerate(zip(*first, strict=True), 1)]
        note = f"the first of {self.values.size:,} answers" if self.values.size > len(rows) else ""
        facts = self.fit.facts(self.private)
        return card(repr(self.fit.request.workload), facts, head=["step", "value", "stderr"], rows=rows, note=note)

    @property
    def _steps(self) -> NDArray[np.int64]:
        return np.arange(1, len(self.values) + 1)

    @cached_property
    def stderr(self) -> Array:
        """Standard deviation of each answer, in the shape of `values`."""
        deviations = self.fit.std(self._steps)
        return deviations if self.fit.dim == 1 else np.repeat(deviations[:, None], self.fit.dim, axis=1)

    def interval(self, level: float, *, simultaneous: bool = False) -> Interval:
        """Return confidence intervals around `values`.

        Args:
            level: Strictly between 0 and 1.
            simultaneous: Whether all of them shall hold together with this probability.

        Raises:
            InvalidParameterError: The level is out of range.
        """
        answers = self.values.size if flag("simultaneous", simultaneous) else 1
        width = self.fit.half_width(self._steps, level, answers)
        if self.fit.dim > 1:
            width = width[:, None]
        return interval_around(self.values, width, level, simultaneous, rounding=self.fit.rounding)


def whole_stream(fit: Fit, items: object, request_id: str | None, accounted: bool) -> Answering[StreamRelease]:
    """Return how a whole stream of numbers is charged and published, by the same recursion as step by step.

    Raises:
        UnsupportedMechanismError: The stream is none of numbers.
    """
    if not isinstance(fit, StreamFit) or fit.events is not None:
        raise UnsupportedMechanismError("only a stream of numbers is released as a whole: open this one")
    return _WHOLE.answering(fit, items, request_id, accounted)


def _prepare(fit: StreamFit, items: object, accounted: bool) -> Prepared[StreamRelease]:
    rows = _read(fit, items)

    def measure(noise: NoiseKey) -> StreamRelease:
        with open_stream(fit, None, noise.key) as stream:
            return StreamRelease(fit, stream.update(rows), noise.private, accounted)

    return Prepared(measure, lambda: data_digest(rows))


def _read(fit: StreamFit, items: object) -> NDArray[Any]:
    """Return the items of all steps, shape (n,) or (n, dim).

    Raises:
        ShapeError: Another shape.
        HorizonError: More steps than the horizon has.
        SordinoError: As `Stream.update`.
    """
    if isinstance(items, TableLike):
        items = counts_of(items, fit.request.unit, fit.request.workload, None)
    rows, shape = read_items(items, fit.dim, fit.request.integral)
    if len(shape) != (1 if fit.dim == 1 else 2) or shape[0] == 0:
        raise ShapeError("a whole stream has one row a step, and at least one step")
    if shape[0] > fit.steps:
        raise HorizonError(f"the stream has {fit.steps} steps, fewer than the input; nothing was released")
    return rows.reshape(shape)


def _rebuild(fit: StreamFit, record: dict[str, Any], make: Callable[..., Any]) -> Any:
    values = record["values"]
    if fit.events is not None or not isinstance(values, np.ndarray):
        raise PlanFileError("this is not a published stream of numbers")
    shaped = values.ndim == 1 if fit.dim == 1 else values.ndim == 2 and values.shape[1] == fit.dim
    if not shaped or not 0 < len(values) <= fit.steps or values.dtype != np.float64 or not np.isfinite(values).all():
        raise PlanFileError("the stream has other answers than its plan")
    return make(values)


WHOLE_STREAM = RecordFile(
    "stream-release",
    "stream",
    StreamFit,
    lambda release: {"values": np.asarray(release.values, dtype=np.float64)},
    _rebuild,
)
"""How whole streams are written."""

_WHOLE = of_file(_prepare, StreamRelease, WHOLE_STREAM)
