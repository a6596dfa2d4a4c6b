"""Clipped gradients: vectors of records, added up exactly, and the noise of a stream on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sordino import _core
from sordino._support.checks import positive
from sordino._support.private_numbers import array_of, reals_or
from sordino.errors import DataTypeError, InvalidParameterError, ShapeError
from sordino.mechanisms.stream.fit import continual
from sordino.streams.counter import Stream
from sordino.workloads.continual import LEAST_NORM, MOST_NORM
from sordino.workloads.filters import RunningSum

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sordino.workloads.base import Array

__all__ = ["clipped_sum", "noisy_sum"]

_WHAT = "gradients"


def clipped_sum(gradients: object, clip_norm: float) -> Array:
    """Return the sum of vectors, each clipped to a Euclidean norm: `sum_i v_i min(1, clip_norm/||v_i||)`.

    Two sums that differ by one record differ by a vector of norm at most `clip_norm`, exactly: every clipped vector is
    rounded to whole numbers of a fixed step, below `clip_norm/2^29`, with room for that rounding in its norm, and these
    are added; beyond 2**53 of them a sum is clamped. No order of summation, and no thread, changes the sum.

    Args:
        gradients: Shape (records, dim), a row for each record: float32, float64, or what numpy can make of it. A row
            with an entry that is not finite counts as zeros.
        clip_norm: The norm, from 2**-24 to 2**20.

    Returns:
        Shape (dim,), float64. Its values are private: only a stream's answers may be seen.

    Raises:
        DataTypeError: Not numbers.
        ShapeError: Not a row for each record.
        InvalidParameterError: The norm is out of range.
    """
    norm = positive("clip_norm", clip_norm)
    if not LEAST_NORM <= norm <= MOST_NORM:
        raise InvalidParameterError("clip_norm must be from 2**-24 to 2**20: measure in another unit")
    array = array_of(_WHAT, gradients)
    if array.dtype.name == "bfloat16":  # of jax, which numpy does not count among numbers
        array = array.astype(np.float32)
    if array.ndim != 2 or array.shape[1] == 0:
        raise ShapeError(f"{_WHAT} must have shape (records, dim)")
    if array.dtype.kind == "O" and not all(isinstance(value, str | bytes) for value in array.flat):
        # Whether a number is too large, or missing, must not show.
        array = reals_or(_WHAT, array.reshape(-1)).reshape(array.shape)
    if array.dtype.kind not in "iubf":
        raise DataTypeError(f"{_WHAT} must be real numbers")
    single = array.dtype in (np.float32, np.float16)
    with np.errstate(all="ignore"):
        rows: NDArray[Any] = np.ascontiguousarray(array, dtype=np.float32 if single else np.float64)
    return _core.clipped_sum(rows, norm)


def noisy_sum(sums: Stream, gradients: object) -> Array:
    """Publish the next step of a stream of running sums, and return its own part: the noisy sum of clipped vectors.

    It is the difference of two answers of the stream, so post-processing of what the stream publishes: what an
    optimizer with momentum takes in place of a gradient. Divide by the public number of records that a step expects.

    Args:
        sums: An open stream of `Continual(RunningSum(steps), dim=dim, record_norm=...)`; vectors are clipped to that
            norm.
        gradients: As for `clipped_sum`.

    Returns:
        Shape (dim,), float64.

    Raises:
        DataTypeError: No such stream, or not numbers.
        ShapeError: Not a row of `dim` entries for each record.
        HorizonError: No steps are left.
        StreamClosedError: The stream was closed.
        ForkError: The stream belongs to another process.
        StepStoreError, StoreError: The store did not keep the step; call `resume`, which returns the running sum.
    """
    if not isinstance(sums, Stream):
        raise DataTypeError("sums must be an open stream of running sums")
    asked = continual(sums.fit.request)
    if asked.record_norm is None or not isinstance(asked.workload, RunningSum):
        raise InvalidParameterError("sums must be a stream of Continual(RunningSum(...), record_norm=...)")
    total = clipped_sum(gradients, asked.record_norm)
    if len(total) != asked.dim:
        raise ShapeError(f"{_WHAT} must have shape (records, {asked.dim})")
    before = sums.value
    after = sums.update(total if asked.dim > 1 else float(total[0]))
    return np.atleast_1d(np.asarray(after - (0.0 if before is None else before)))
