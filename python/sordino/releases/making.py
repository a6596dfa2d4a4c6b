"""From a fit and private data to a release: what is read before the charge, and measured after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sordino._support.protocols import TableLike
from sordino.errors import InvalidParameterError, UnsupportedMechanismError
from sordino.mechanisms.fits import Fit
from sordino.mechanisms.linear.fit import LinearFit
from sordino.mechanisms.smooth.fit import SmoothFit
from sordino.releases.arrays import read_cells
from sordino.releases.release import Release
from sordino.releases.sketches import Sketch
from sordino.releases.smooth.point_sums import PointSums
from sordino.releases.smooth.release import SmoothRelease

__all__ = ["Making", "empty_sketch", "making"]

Measure = Callable[[], Any]


class Making(NamedTuple):
    """How a kind of fit is released.

    Attributes:
        prepare: Reads and checks data, under a known key or None, accounted or not; what it returns measures them.
        finish: What is made of the measured, if it was not made yet.
        answered_by: Returns the record of an earlier request if it answers a fit.
    """

    prepare: Callable[[Any, object, bytes | None, bool], Measure]
    finish: Callable[[Any], Any]
    answered_by: Callable[[Any, object], Any]


def making(fit: Fit) -> Making:
    """Return how a fit is released.

    Raises:
        UnsupportedMechanismError: It is not.
    """
    match fit:
        case LinearFit():
            return _TABLES
        case SmoothFit():
            return _POINTS
    raise UnsupportedMechanismError("this plan has no release")


# Tables.


def empty_sketch(fit: Fit) -> Sketch:
    """Return an empty sketch of what a compressive mechanism measures.

    Raises:
        UnsupportedMechanismError: The mechanism measures no sketch, or its sparsity is chosen from the table.
    """
    compression = fit.request.compression
    if not isinstance(fit, LinearFit) or fit.mechanism.strategy != "compressive" or compression is None:
        raise UnsupportedMechanismError("only a compressive plan measures a sketch")
    if fit.open_choice is not None:
        raise UnsupportedMechanismError("a sparsity chosen from the data needs the table: give it as a number")
    return Sketch.of(compression.operator(fit.request.workload.core.input_len or 0))


def _prepare_table(fit: LinearFit, data: object, key: bytes | None, accounted: bool) -> Measure:
    values, index = _read_table(fit, data)
    if fit.open_choice is not None:
        fit.open_choice.try_basis(fit.request, values)

    def measure() -> Release:
        chosen = fit.chosen(values, key)
        measured = chosen.door.measure(chosen.strategy, values, key)
        return Release.of_measured(chosen, measured, index, key is None, accounted, fit)

    return measure


def _read_table(fit: LinearFit, data: object) -> tuple[Any, Any]:
    """Return what the door takes, checked, and labels of the input."""
    request = fit.request
    if not isinstance(data, Sketch):
        counted = fit.mechanism.factored or fit.mechanism.strategy == "compressive"
        return read_cells(data, request.workload, request.integral, request.unit, counted=counted)
    if data.operator != empty_sketch(fit).operator:
        raise InvalidParameterError("the sketch was made with another kind, seed or size than the plan's")
    if not request.integral:
        raise InvalidParameterError("a sketch has sums of integers: plan with integral=True")
    return data.core, None


def _answered_table(fit: LinearFit, record: object) -> Release | None:
    return record if isinstance(record, Release) and fit.is_same(record.asked) else None


_TABLES = Making(_prepare_table, Release.finished, _answered_table)


# Points.


def _prepare_points(fit: SmoothFit, data: object, key: bytes | None, accounted: bool) -> Measure:
    if isinstance(data, TableLike):
        sums = PointSums.of_table(fit, data)
    else:
        sums = data if isinstance(data, PointSums) else PointSums(fit).update(data)
    if sums.features is not fit.features:
        # Sums of an equal plan that was made elsewhere are checked feature by feature.
        sums = PointSums(fit) + sums
    PointSums(fit, sums.core).check_count()
    return lambda: SmoothRelease(fit, fit.door.measure(fit.strategy, sums.core, key), key is None, accounted)


def _answered_points(fit: SmoothFit, record: object) -> SmoothRelease | None:
    return record if isinstance(record, SmoothRelease) and fit.is_same(record.fit) else None


_POINTS = Making(_prepare_points, lambda release: release, _answered_points)
