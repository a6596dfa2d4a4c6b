"""What clients report: their values with noise of their own."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from sordino import _core
from sordino._support.private_numbers import reals_or
from sordino.errors import ShapeError
from sordino.mechanisms.local.family import SurveyFit
from sordino.mechanisms.stream.fit import StreamFit
from sordino.privacy.books import Charge
from sordino.privacy.requests import Answering, NoiseKey, Prepared
from sordino.workloads.base import Array

__all__ = ["reports_of", "values_of"]

# Clients that are encoded at once: their noise is a stream of so many coordinates.
_CHUNK = 2**14


def values_of(values: object, ndim: int) -> Array:
    """Return the values of clients, not-a-number for null items.

    Raises:
        DataTypeError: Not numbers.
        ShapeError: Another number of dimensions.
    """
    array = reals_or("values", values)
    if array.ndim != ndim:
        raise ShapeError("values must be one-dimensional" if ndim else "a client has one value")
    return array


def reports_of(fit: SurveyFit, values: Array) -> Answering[NDArray[np.int64]]:
    """Return how the reports of these clients, shape (clients, numbers), are charged and made."""
    out = np.empty((len(values), fit.numbers), dtype=np.int64)

    def encode(noise: NoiseKey) -> NDArray[np.int64]:
        survey, w = fit.survey, fit.survey.intervals
        for part, first in enumerate(range(0, len(values), _CHUNK)):
            chunk = slice(first, first + _CHUNK)
            rows = survey.increments(values[chunk])
            out[chunk, :w] = _noisy(fit.sums, rows.T, _derived(noise, 2 * part)).T
            if fit.level is not None:
                starts = survey.starts(values[chunk])
                out[chunk, w] = _noisy(fit.level, starts[None, :], _derived(noise, 2 * part + 1))[0]
        return out

    unit = fit.request.unit
    return Answering(
        Charge(fit.cost, None, unit.label, unit),
        fit.request.asked,
        lambda _record: None,
        lambda: Prepared(encode, lambda: hashlib.sha256(np.ascontiguousarray(values).tobytes()).digest()),
        lambda reports: reports,
        lambda reports: reports.astype("<i8").tobytes(),
        lambda content: np.frombuffer(content, "<i8").astype(np.int64).reshape(-1, fit.numbers),
    )


def _noisy(fit: StreamFit, rows: NDArray[np.int64], key: bytes | None) -> NDArray[np.int64]:
    """Return the lattice increments that streams of these items publish, a column each."""
    stream = _core.Stream(fit.strategy, fit.door, rows.shape[1], key)
    try:
        stream.prepare(np.ascontiguousarray(rows).reshape(-1))
        held = stream.held()
    finally:
        stream.close()
    assert held is not None
    units: NDArray[np.int64] = held[3].reshape(rows.shape)
    return units


def _derived(noise: NoiseKey, part: int) -> bytes | None:
    """Return another key for every part, if there is one."""
    if noise.key is None or noise.private:
        return noise.of(f"part {part}")
    return bytes(a ^ b for a, b in zip(noise.key, part.to_bytes(32, "little"), strict=True))
