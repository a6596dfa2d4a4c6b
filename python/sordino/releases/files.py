"""Releases as files: a table of answers in Arrow or Parquet, with the plan and what was measured in its metadata."""

from __future__ import annotations

import base64
import hashlib
import io
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from sordino._support.checks import path_of
from sordino._support.extras import arrow_of
from sordino._support.files import read_file
from sordino._support.records import SCHEMA, joined, packed_record, parted, rebuilt_from
from sordino.errors import PlanFileError
from sordino.mechanisms.families import fit_of
from sordino.mechanisms.linear.fit import LinearFit
from sordino.mechanisms.linear.recoveries import RecoveryResult
from sordino.releases.answers import Answers
from sordino.releases.consistent.report import Consistency
from sordino.releases.frames import answer_weights, format_of, frame_columns, label_columns, write_table
from sordino.releases.labels import label_from_json, label_to_json
from sordino.releases.record_files import integers_of, measured_of
from sordino.workloads import Workload
from sordino.workloads.base import Array, laid_out, specs_of, workloads_from_specs
from sordino.workloads.layout import Layout

__all__ = ["dump_release", "load_release", "read_release", "save_release"]

_Release = TypeVar("_Release", bound=Answers)

_KIND = "release"
_WHAT = "release"
_SETS = ("invariants", "zeros", "bounds")
# Of intervals that are not written.
_LEVEL = 0.95
_TEXT, _ARRAYS = b"sordino", b"sordino.arrays"
# Metadata of a Parquet file is as long as it is.
_LONGEST = 2**31 - 1


def save_release(release: Answers, path: str | Path) -> Path:
    """Write a release.

    Raises:
        InvalidParameterError: The name of the file ends otherwise.
        InputFileError: It cannot be written.
        UnsupportedMechanismError: The answers are not listed, or a basis is given by functions.
        MissingDependencyError: pyarrow is not installed.
    """

    def described(table: Any) -> dict[bytes, bytes]:
        text, arrays = packed_record(_whole_record(release) | {"shown": _shown_digest(table)})
        return {_TEXT: text, _ARRAYS: base64.b64encode(arrays)}

    return write_table(path, _shown(release), described, _WHAT)


def dump_release(release: Answers) -> bytes:
    """Return a release as bytes: what a store keeps of it.

    Raises:
        UnsupportedMechanismError: A basis is given by functions.
    """
    return joined(*packed_record(_whole_record(release)))


def read_release(content: bytes, kind: type[_Release]) -> _Release:
    """Return the release that `dump_release` made bytes of.

    Raises:
        PlanFileError: It did not, or what is there does not fit its plan.
    """
    return rebuilt_from(*parted(content), lambda record: _rebuild(record, None, kind), _WHAT)


def _whole_record(release: Answers) -> dict[str, Any]:
    """Return all that `_rebuild` needs: the answers too, as they are before anything is shown of them."""
    columns = _columns(release) if release.workload.is_listed else {}
    index = release.index
    if index is not None:
        index = [label_to_json(label) for label in index]
    return {**_record(release), "index": index, "answered": columns}


def _shown(release: Answers) -> dict[str, Any]:
    """Return what other programs read: the columns of `to_frame`, with the unbiased answers, without intervals."""
    layout = release.workload.layout
    if not release.fit.has_intervals:
        return label_columns(release) | {"value": release.values.reshape(-1)}
    if layout is not None and layout.channels is not None:
        return frame_columns(release, _LEVEL)
    columns = frame_columns(release, _LEVEL)
    for name in ("lower", "upper"):
        del columns[name]
    if release.post_processing:
        stderr = columns.pop("stderr")
        columns |= {"unbiased": release.unbiased.reshape(-1) / answer_weights(release), "stderr": stderr}
    return columns


def _shown_digest(table: Any) -> str:
    """Return the SHA-256 of all that is shown, names and order included."""
    found = hashlib.sha256()
    for name in table.column_names:
        column = table.column(name)
        found.update(f"{len(name)} {name} {len(column)} ".encode())
        if str(column.type) == "double":
            found.update(np.ascontiguousarray(column.to_numpy(), dtype="<f8").tobytes())
        else:
            found.update(repr(column.to_pylist()).encode())
    return found.hexdigest()


def _columns(release: Answers) -> dict[str, Array]:
    """Return the numbers of all answers."""
    found = {"value": release.values}
    if release.fit.has_intervals:
        if release.post_processing:
            found["unbiased"] = release.unbiased
        found["stderr"] = release.stderr
    return {name: np.ascontiguousarray(column, dtype=np.float64).reshape(-1) for name, column in found.items()}


def _record(release: Answers) -> dict[str, Any]:
    fit, report = release.fit, release.consistency
    return {
        "schema": SCHEMA,
        "kind": _KIND,
        "plan": fit.record(),
        "asked": None if release.asked is None or release.asked is fit else release.asked.record(),
        "grid": release.measured.grid,
        "units": np.asarray(release.measured.units, dtype=np.int64),
        "private": release.private,
        "accounted": release.accounted,
        "post_processing": list(release.post_processing),
        "answers": None if release.other is None else _described(release.other),
        "consistency": None if report is None else _reported(report),
        "recovery": None if release.recovery is None else _recovered(release.recovery),
    }


def _described(workload: Workload) -> dict[str, Any]:
    layout = workload.layout
    return {**specs_of([workload])[0], "layout": None if layout is None else layout.to_json()}


def _recovered(found: RecoveryResult) -> dict[str, Any]:
    return {item.name: getattr(found, item.name) for item in fields(RecoveryResult)}


def _reported(report: Consistency) -> dict[str, Any]:
    return {**asdict(report), "shrunk": [[list(s), factor] for s, factor in report.shrunk.items()]}


def load_release(path: str | Path, kind: type[_Release]) -> _Release:
    """Read a release, fit its plan again, and see that they belong together.

    Raises:
        InvalidParameterError: The name of the file ends otherwise.
        InputFileError: It cannot be read.
        PlanFileError: It is no release, was altered, or does not fit its plan.
        MissingDependencyError: pyarrow is not installed.
    """
    path = path_of(path)
    suffix, pa = format_of(path, _WHAT), arrow_of("a saved release")
    source = io.BytesIO(read_file(path, _WHAT))
    try:
        if suffix == ".parquet":
            limits = {"thrift_string_size_limit": _LONGEST}
            table = arrow_of("a saved release", "parquet").read_table(source, **limits)
        else:
            with pa.ipc.open_file(source) as reader:
                table = reader.read_all()
        metadata = table.schema.metadata or {}
        text, arrays = metadata[_TEXT], base64.b64decode(metadata[_ARRAYS], validate=True)
    except (pa.ArrowException, OSError, KeyError, ValueError):
        raise PlanFileError("the file is not a saved release") from None

    return rebuilt_from(text, arrays, lambda record: _rebuild(record, table, kind), _WHAT)


def _rebuild(record: dict[str, Any], table: Any, kind: type[_Release]) -> _Release:
    if record.get("kind") != _KIND:
        raise PlanFileError("the file is not a saved release")
    if table is not None and record["shown"] != _shown_digest(table):
        raise PlanFileError("the table of the release was altered")
    fit = _linear(record["plan"])
    measured = measured_of(fit, record, _WHAT)
    done = _done_in(record)
    columns = {name: _reals(column) for name, column in record["answered"].items()}
    sketched = not fit.has_intervals
    listed = fit.request.workload.is_listed or record["answers"] is not None
    expected = {"value"} if sketched else {"value", "stderr"} | ({"unbiased"} if done else set())
    if set(columns) != (expected if listed else set()):
        raise PlanFileError("the release has other columns than its plan")
    index = _index_of(record, table) if fit.request.workload.layout is None else None
    asked = fit if record["asked"] is None else _linear(record["asked"])
    private, accounted = record["private"] is True, record["accounted"] is True
    plain = kind.of_measured(fit, measured, index, private, accounted, asked)
    if asked is not None and asked.request.workload != fit.request.workload:
        raise PlanFileError("the release was asked for by a plan for other queries")
    found = plain.finished() if done and record["answers"] is None else plain
    if record["answers"] is not None:
        described = dict(record["answers"])
        layout = described.pop("layout")
        other = laid_out(workloads_from_specs([described])[0], None if layout is None else Layout.from_json(layout))
        found = plain.answer(other)
    if not listed:
        return found
    values = columns["value"].reshape(found.values.shape)
    if not sketched:
        published = columns.get("unbiased", columns["value"])
        for column, own in ((published, found.unbiased), (columns["stderr"], found.stderr)):
            if not np.allclose(column, np.ravel(own), rtol=1e-9, atol=1e-9):
                raise PlanFileError("the release says other answers or errors than its plan")
    if not done:
        return found
    report = None if record["consistency"] is None else _report_of(record["consistency"])
    if not np.isfinite(values).all() or (report is not None and float(values.min(initial=0.0)) < 0.0):
        raise PlanFileError("the release has answers that nothing makes")
    return replace(
        found,
        _values=values,
        _unbiased=None if sketched else found.unbiased,
        post_processing=tuple(done),
        recovery=_recovery_of(record["recovery"]),
        projection=None if "consistent" in done else found.projection,
        consistency=report,
    )


def _linear(record: Any) -> LinearFit:
    fit = fit_of(record)
    if not isinstance(fit, LinearFit):
        raise PlanFileError("the release is of another plan than one of linear queries")
    return fit


def _done_in(record: dict[str, Any]) -> list[str]:
    done = record["post_processing"]
    if not isinstance(done, list) or not all(type(name) is str for name in done):
        raise PlanFileError("the release says in an unknown way what was done to it")
    return done


def _index_of(record: dict[str, Any], table: Any) -> Any:
    """Return the labels of the input; from a table, which shows them, with its types."""
    if record["index"] is None:
        return None
    if table is not None and "index" in table.column_names and table.num_rows == len(record["index"]):
        return table.column("index").to_pylist()
    return [label_from_json(label) for label in record["index"]]


def _reals(found: Any) -> Array:
    if not isinstance(found, np.ndarray) or found.dtype.kind != "f":
        raise PlanFileError("the release has no numbers in a column of answers")
    return found


def _report_of(record: dict[str, Any]) -> Consistency:
    shrunk = {tuple(map(int, s)): float(factor) for s, factor in record["shrunk"]}
    invariants, zeros, bounds = (tuple(tuple(map(int, s)) for s in record[name]) for name in _SETS)
    others = {name: value for name, value in record.items() if name not in {"shrunk", *_SETS}}
    kinds = {"converged": bool, "never_worse": bool, "iterations": int}
    sound = all(
        type(value) is kinds.get(name, float) or (name == "whole" and value is None) for name, value in others.items()
    )
    if not sound or others["total"] < 0.0:
        raise PlanFileError("the release says in an unknown way how it was made consistent")
    return Consistency(**others, shrunk=shrunk, invariants=invariants, zeros=zeros, bounds=bounds)


def _recovery_of(record: dict[str, Any] | None) -> RecoveryResult | None:
    return None if record is None else RecoveryResult(**{**record, "support": integers_of(record["support"], _WHAT)})
