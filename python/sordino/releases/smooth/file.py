"""Released summaries as files: public, and verified when they are read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from sordino._support.records import SCHEMA, joined, packed_record, parted, rebuilt, rebuilt_from, write_record
from sordino.errors import PlanFileError
from sordino.mechanisms.families import fit_of
from sordino.mechanisms.smooth.fit import SmoothFit

if TYPE_CHECKING:
    from sordino.releases.smooth.release import SmoothRelease

__all__ = ["dump_release", "load_release", "read_release", "save_release"]

_Release = TypeVar("_Release")

_KIND = "smooth-release"


def save_release(release: SmoothRelease, path: Path) -> Path:
    """Write the plan and what was published.

    Raises:
        InputFileError: The file cannot be written.
    """
    return write_record(_record(release), path, "summary")


def dump_release(release: SmoothRelease) -> bytes:
    """Return a summary as bytes: what a store keeps of it."""
    return joined(*packed_record(_record(release)))


def read_release(content: bytes, build: Callable[..., _Release]) -> _Release:
    """Return the summary that `dump_release` made bytes of.

    Raises:
        PlanFileError: It did not, or what is there does not fit its plan.
    """
    return rebuilt_from(*parted(content), lambda record: _rebuild(record, build), "summary")


def _record(release: SmoothRelease) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "kind": _KIND,
        "plan": release.fit.record(),
        "features": _mark(release.fit),
        "grid": release.measured.grid,
        "units": np.asarray(release.measured.units, dtype=np.int64),
        "names": None if release.names is None else list(release.names),
        "private": release.private,
        "accounted": release.accounted,
    }


def load_release(path: str | Path, build: Callable[..., _Release]) -> _Release:
    """Read a summary, fit its plan again, and see that they belong together.

    Raises:
        InputFileError: The file cannot be read.
        PlanFileError: The file is no summary, was altered, or does not fit its plan.
    """
    return rebuilt(path, lambda record: _rebuild(record, build), "summary")


def _rebuild(record: dict[str, Any], build: Callable[..., _Release]) -> _Release:
    if record.get("kind") != _KIND:
        raise PlanFileError("the file is not a saved summary")
    fit = fit_of(record["plan"])
    if not isinstance(fit, SmoothFit):
        raise PlanFileError("the summary is of another plan than one of smooth queries")
    if record["features"] != _mark(fit):
        raise PlanFileError("the features of the summary come out otherwise on this machine: ask where it was made")
    units, grid, door = record["units"], record["grid"], fit.door
    stored = record["plan"]["doors"][0]
    if (grid, stored["quarter_units"]) != (door.grid, door.quarter_units):
        raise PlanFileError("the summary was made with other noise than its plan says")
    if not isinstance(units, np.ndarray) or units.dtype.kind != "i":
        raise PlanFileError("the summary holds no integers")
    if units.shape != (fit.strategy.measured_len,):
        raise PlanFileError("the summary has another number of sums than its plan")
    names = record["names"]
    if names is not None and not (len(names) == fit.workload.dimension and all(type(name) is str for name in names)):
        raise PlanFileError("the summary's names are not one a coordinate")
    return build(
        fit,
        door.published(units.astype(np.int64)),
        private=record["private"] is True,
        accounted=record["accounted"] is True,
        names=None if names is None else tuple(names),
    )


def _mark(fit: SmoothFit) -> str:
    """Return what the core tells features apart by: of everything that decides what a point adds."""
    return fit.features.mark.to_bytes(8, "little").hex()
