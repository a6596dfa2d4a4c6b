"""Releases that are written as records: in files of JSON with arrays beside it, and as bytes in a store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from sordino._support.records import SCHEMA, joined, packed_record, parted, rebuilt, rebuilt_from, write_record
from sordino.errors import PlanFileError
from sordino.mechanisms.families import fit_of
from sordino.mechanisms.fits import DoorFit

__all__ = ["RecordFile", "common_record", "fit_and_units"]

_T = TypeVar("_T")


class RecordFile(NamedTuple):
    """A kind of release that is written as a record.

    Attributes:
        what: It is called in messages.
        record: Returns the record of one.
        rebuild: Makes one of a record and its class.
    """

    what: str
    record: Callable[[Any], dict[str, Any]]
    rebuild: Callable[[dict[str, Any], Callable[..., Any]], Any]

    def save(self, release: Any, path: str | Path) -> Path:
        """Write the plan and what was published.

        Raises:
            InputFileError: The file cannot be written.
        """
        return write_record(self.record(release), path, self.what)

    def dump(self, release: Any) -> bytes:
        """Return a release as bytes: what a store keeps of it."""
        return joined(*packed_record(self.record(release)))

    def read(self, content: bytes, kind: type[_T]) -> _T:
        """Return the release that `dump` made bytes of.

        Raises:
            PlanFileError: It did not, or what is there does not fit its plan.
        """
        found: _T = rebuilt_from(*parted(content), lambda record: self.rebuild(record, kind), self.what)
        return found

    def load(self, path: str | Path, kind: type[_T]) -> _T:
        """Read a release, fit its plan again, and see that they belong together.

        Raises:
            InputFileError: The file cannot be read.
            PlanFileError: The file is no such release, was altered, or does not fit its plan.
        """
        found: _T = rebuilt(path, lambda record: self.rebuild(record, kind), self.what)
        return found


def common_record(release: Any, kind: str) -> dict[str, Any]:
    """Return what all such records have: the plan, and what was published."""
    return {
        "schema": SCHEMA,
        "kind": kind,
        "plan": release.fit.record(),
        "grid": release.measured.grid,
        "units": np.asarray(release.measured.units, dtype=np.int64),
        "private": release.private,
        "accounted": release.accounted,
    }


_Fit = TypeVar("_Fit", bound=DoorFit)


def fit_and_units(record: dict[str, Any], kind: str, of: type[_Fit], what: str) -> tuple[_Fit, NDArray[np.int64]]:
    """Return the plan's fit, made again, and the integers that were published.

    Raises:
        PlanFileError: The record is of another kind, plan or noise, or holds no integers.
    """
    if record.get("kind") != kind:
        raise PlanFileError(f"the file is not a saved {what}")
    fit = fit_of(record["plan"])
    if not isinstance(fit, of):
        raise PlanFileError(f"the {what} is of another kind of plan")
    units, stored, door = record["units"], record["plan"]["doors"][0], fit.door
    if (stored["grid"], stored["quarter_units"]) != (door.grid, door.quarter_units):
        raise PlanFileError(f"the {what} was made with other noise than its plan says")
    if not isinstance(units, np.ndarray) or units.dtype.kind != "i" or units.ndim != 1:
        raise PlanFileError(f"the {what} holds no integers in a row")
    return fit, np.ascontiguousarray(units, dtype=np.int64)
