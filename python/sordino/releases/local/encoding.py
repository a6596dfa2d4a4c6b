"""What clients report: their values with noise of their own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sordino import _core
from sordino._support.private_numbers import reals_or
from sordino.errors import ShapeError
from sordino.mechanisms.local.family import SurveyFit
from sordino.mechanisms.local.part import SurveyPart
from sordino.mechanisms.local.running_sums import RunningSums
from sordino.mechanisms.local.subsets import Subsets
from sordino.mechanisms.local.waves import Waves
from sordino.privacy.books import Charge
from sordino.privacy.requests import Answering, NoiseKey, Prepared
from sordino.releases.making import data_digest
from sordino.workloads.base import Array

__all__ = ["reports_of", "values_of"]

# Clients, and steps of all of them, that are encoded at once.
_CHUNK, _STEPS = 2**14, 2**24


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
        survey, at_once = fit.survey, min(_CHUNK, _STEPS // fit.survey.intervals)
        for part, first in enumerate(range(0, len(values), at_once)):
            chunk = slice(first, first + at_once)
            rows = survey.increments(values[chunk])
            end = fit.report.numbers
            out[chunk, :end] = _noisy(fit.report, rows, _derived(noise, 2 * part))
            if fit.level is not None:
                starts = survey.starts(values[chunk])[:, None]
                out[chunk, end:] = _noisy(fit.level, starts, _derived(noise, 2 * part + 1))
        return out

    unit = fit.request.unit
    return Answering(
        Charge(fit.cost, None, unit.label, unit),
        fit.request.asked,
        lambda _record: None,
        lambda: Prepared(encode, lambda: data_digest(values)),
        lambda reports: reports,
        lambda reports: reports.astype("<i8").tobytes(),
        lambda content: np.frombuffer(content, "<i8").astype(np.int64).reshape(-1, fit.numbers),
    )


def _noisy(part: SurveyPart, rows: NDArray[np.int64], key: bytes | None) -> NDArray[np.int64]:
    """Return what clients with these rows of shares send, shape (clients, part.numbers)."""
    if isinstance(part, Waves):
        return part.core.tell(rows, part.bits, part.flips, key).astype(np.int64)[:, None]
    if isinstance(part, Subsets):
        return _core.tell_subset(rows, part.size, part.bits, part.flips, key).astype(np.int64).reshape(-1, part.size)
    assert isinstance(part, RunningSums)
    # A stream whose coordinates are the clients.
    stream = _core.Stream(part.fit.strategy, part.fit.door, len(rows), key)
    try:
        stream.prepare(np.ascontiguousarray(rows.T).reshape(-1))
        held = stream.held()
    finally:
        stream.close()
    assert held is not None
    units: NDArray[np.int64] = held[3].reshape(rows.shape[::-1])
    return units.T


def _derived(noise: NoiseKey, part: int) -> bytes | None:
    """Return another key for every part, if there is one."""
    if noise.key is None or noise.private:
        return noise.of(f"part {part}")
    return bytes(a ^ b for a, b in zip(noise.key, part.to_bytes(32, "little"), strict=True))
