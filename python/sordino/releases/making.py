"""From a fit and private data to a release: what is read before the charge, and measured after it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sordino._support.protocols import TableLike
from sordino.errors import DataTypeError, InvalidParameterError, UnsupportedMechanismError
from sordino.mechanisms.adaptive.marginals import AdaptiveMarginalsFit
from sordino.mechanisms.adaptive.trees import TreeFit
from sordino.mechanisms.fits import Fit
from sordino.mechanisms.keyed.fit import KeyFit
from sordino.mechanisms.linear.fit import LinearFit
from sordino.mechanisms.linear.fitting import with_chosen_sparsity
from sordino.mechanisms.smooth.fit import SmoothFit
from sordino.privacy.books import Charge
from sordino.privacy.requests import Answering, NoiseKey, Prepared
from sordino.releases.adaptive.file import MARGINALS, TREE
from sordino.releases.adaptive.marginals import MarginalsRelease
from sordino.releases.adaptive.tree import TreeRelease
from sordino.releases.arrays import read_cells
from sordino.releases.files import dump_release, read_release
from sordino.releases.keyed.file import SKETCH
from sordino.releases.keyed.release import KeyRelease
from sordino.releases.record_files import RecordFile
from sordino.releases.release import Release
from sordino.releases.sketches import Sketch
from sordino.releases.smooth.file import SUMMARY
from sordino.releases.smooth.point_sums import PointSums
from sordino.releases.smooth.release import SmoothRelease

__all__ = ["Making", "data_digest", "empty_sketch", "empty_sums", "making", "of_file"]


class Making(NamedTuple):
    """How a kind of fit is released.

    Attributes:
        prepare: Reads and checks data, accounted or not.
        finish: What is made of the measured, if it was not made yet.
        answered_by: Returns the record of an earlier request if it answers a fit.
        dump: Returns a release as bytes.
        load: Returns the release of bytes.
    """

    prepare: Callable[[Any, object, bool], Prepared[Any]]
    finish: Callable[[Any], Any]
    answered_by: Callable[[Any, object], Any]
    dump: Callable[[Any], bytes]
    load: Callable[[bytes], Any]

    def answering(self, fit: Fit, data: object, request_id: str | None, accounted: bool) -> Answering[Any]:
        """Return how a request for a release is charged and answered."""
        unit = fit.request.unit

        def asked() -> bytes:
            _ = fit.digest  # refuses a plan that no store keeps, before anything is charged
            return fit.request.asked()

        return Answering(
            Charge(fit.cost, request_id, unit.label, unit),
            asked,
            lambda record: self.answered_by(fit, record),
            lambda: self.prepare(fit, data, accounted),
            self.finish,
            self.dump,
            self.load,
        )


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
        case TreeFit():
            return _TREES
        case AdaptiveMarginalsFit():
            return _MARGINALS
        case KeyFit():
            return _KEYS
    raise UnsupportedMechanismError("this plan has no release")


# Tables.


def empty_sketch(fit: Fit) -> Sketch:
    """Return an empty sketch of what a compressive mechanism measures.

    Raises:
        UnsupportedMechanismError: The mechanism measures no sketch, or its sparsity is chosen from the table.
    """
    if isinstance(fit, KeyFit):
        return Sketch.of(fit.workload.operator)
    compression = fit.request.compression
    if not isinstance(fit, LinearFit) or fit.mechanism.strategy != "compressive" or compression is None:
        raise UnsupportedMechanismError("only a compressive plan measures a sketch")
    if fit.open_choice is not None:
        raise UnsupportedMechanismError("a sparsity chosen from the data needs the table: give it as a number")
    return Sketch.of(compression.operator(fit.request.workload.core.input_len or 0))


def empty_sums(fit: Fit) -> PointSums:
    """Return empty sums of points for a plan of smooth queries.

    Raises:
        UnsupportedMechanismError: The plan is of something else.
    """
    if not isinstance(fit, SmoothFit):
        raise UnsupportedMechanismError("only points are summed: plan SmoothQueries")
    return PointSums(fit)


def _prepare_table(fit: LinearFit, data: object, accounted: bool) -> Prepared[Release]:
    values, index = _read_table(fit, data)
    if fit.open_choice is not None:
        fit.open_choice.try_basis(fit.request, values)

    def measure(noise: NoiseKey) -> Release:
        chosen = with_chosen_sparsity(fit, values, noise.of("choice"))
        measured = chosen.door.measure(chosen.strategy, values, noise.key)
        return Release.of_measured(chosen, measured, index, noise.private, accounted, fit)

    return Prepared(measure, lambda: data_digest(values))


def _require_own(fit: Fit, sketch: Sketch) -> None:
    if sketch.operator != empty_sketch(fit).operator:
        raise InvalidParameterError("the sketch was made with another kind, seed or size than the plan's")


def _read_table(fit: LinearFit, data: object) -> tuple[Any, Any]:
    """Return what the door takes, checked, and labels of the input."""
    request = fit.request
    if not isinstance(data, Sketch):
        counted = fit.mechanism.factored or fit.mechanism.strategy == "compressive"
        return read_cells(data, request.workload, request.integral, request.unit, counted=counted)
    _require_own(fit, data)
    if not request.integral:
        raise InvalidParameterError("a sketch has sums of integers: plan with integral=True")
    return data.core, None


def _answered_table(fit: LinearFit, record: object) -> Release | None:
    return record if isinstance(record, Release) and fit.is_same(record.asked) else None


_TABLES = Making(
    _prepare_table, Release.finished, _answered_table, dump_release, lambda content: read_release(content, Release)
)


# Releases that are finished as they are measured, and written as records.


def of_file(prepare: Callable[[Any, object, bool], Prepared[Any]], kind: type[Any], file: RecordFile) -> Making:
    """Return how such fits are released."""

    def answered_by(fit: Fit, record: object) -> Any:
        return record if isinstance(record, kind) and fit.is_same(record.fit) else None

    return Making(prepare, lambda release: release, answered_by, file.dump, lambda content: file.read(content, kind))


# Points.


def _prepare_points(fit: SmoothFit, data: object, accounted: bool) -> Prepared[SmoothRelease]:
    if isinstance(data, TableLike):
        sums = PointSums.of_table(fit, data)
    else:
        sums = data if isinstance(data, PointSums) else PointSums(fit).update(data)
    if sums.features is not fit.features:
        # Sums of an equal plan that was made elsewhere are checked feature by feature.
        sums = PointSums(fit) + sums
    PointSums(fit, sums.core).check_count()

    def measure(noise: NoiseKey) -> SmoothRelease:
        measured = fit.door.measure(fit.strategy, sums.core, noise.key)
        return SmoothRelease(fit, measured, noise.private, accounted)

    return Prepared(measure, lambda: data_digest(sums.core))


_POINTS = of_file(_prepare_points, SmoothRelease, SUMMARY)


# Trees.


def _prepare_tree(fit: TreeFit, data: object, accounted: bool) -> Prepared[TreeRelease]:
    values, index = read_cells(data, fit.request.workload, integral=True, unit=fit.request.unit)

    def measure(noise: NoiseKey) -> TreeRelease:
        return TreeRelease(fit, fit.door.measure(values, noise.key), index, noise.private, accounted)

    return Prepared(measure, lambda: data_digest(values))


_TREES = of_file(_prepare_tree, TreeRelease, TREE)


# Marginals that are chosen.


def _prepare_marginals(fit: AdaptiveMarginalsFit, data: object, accounted: bool) -> Prepared[MarginalsRelease]:
    values, _ = read_cells(data, fit.workload, integral=True, unit=fit.request.unit)
    if isinstance(values, tuple):
        raise DataTypeError("the input must be records or a table")

    def measure(noise: NoiseKey) -> MarginalsRelease:
        return MarginalsRelease(fit, fit.door.measure(fit.strategy, values, noise.key), noise.private, accounted)

    return Prepared(measure, lambda: data_digest(values))


_MARGINALS = of_file(_prepare_marginals, MarginalsRelease, MARGINALS)


# Keys.


def _prepare_keys(fit: KeyFit, data: object, accounted: bool) -> Prepared[KeyRelease]:
    if data is None or isinstance(data, TableLike | str | bytes):
        raise DataTypeError("the input must be a sketch, or keys, one a record")
    if isinstance(data, Sketch):
        _require_own(fit, data)
        sketch = data
    else:
        sketch = empty_sketch(fit)
        sketch.update(data)

    def measure(noise: NoiseKey) -> KeyRelease:
        measured = fit.door.measure(fit.strategy, sketch.core, noise.key)
        return KeyRelease(fit, measured, noise.private, accounted)

    return Prepared(measure, lambda: data_digest(sketch.core))


_KEYS = of_file(_prepare_keys, KeyRelease, SKETCH)


def data_digest(data: Any) -> bytes:
    """Return a digest of what the door takes: arrays, several of them, or sums of the core."""
    found = hashlib.sha256()
    for part in data if isinstance(data, tuple) else (data,):
        content = part if isinstance(part, np.ndarray) else np.frombuffer(part.to_bytes(), dtype=np.uint8)
        found.update(f"{content.dtype.str} {content.shape} ".encode())
        found.update(np.ascontiguousarray(content).data)
    return found.digest()
