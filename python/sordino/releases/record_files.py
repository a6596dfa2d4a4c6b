"""Releases that are written as records: in files of JSON with arrays beside it, and as bytes in a store."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from sordino import _core
from sordino._support.records import SCHEMA, joined, packed_record, parted, rebuilt, rebuilt_from, write_record
from sordino.errors import PlanFileError, ShapeError, UnsupportedMechanismError
from sordino.mechanisms.families import fit_of
from sordino.mechanisms.fits import DoorFit

__all__ = ["RecordFile", "integers_of", "measured_of", "record_of_measured"]

_T = TypeVar("_T")


class RecordFile(NamedTuple):
    """A kind of release that is written as a record.

    Attributes:
        kind: It is called in files.
        what: It is called in messages.
        of: Fits that have it.
        contents: Returns what the record says of one beside its plan, and whether it is private and accounted.
        rebuild: Makes one of a fit, a record and a class that needs nothing else.
    """

    kind: str
    what: str
    of: type[DoorFit]
    contents: Callable[[Any], dict[str, Any]]
    rebuild: Callable[[Any, dict[str, Any], Callable[..., Any]], Any]

    def record(self, release: Any) -> dict[str, Any]:
        """Return the record of a release."""
        return {
            "schema": SCHEMA,
            "kind": self.kind,
            "plan": release.fit.record(),
            **self.contents(release),
            "private": release.private,
            "accounted": release.accounted,
        }

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
        found: _T = rebuilt_from(*parted(content), partial(self._rebuilt, kind), self.what)
        return found

    def load(self, path: str | Path, kind: type[_T]) -> _T:
        """Read a release, fit its plan again, and see that they belong together.

        Raises:
            InputFileError: The file cannot be read.
            PlanFileError: The file is no such release, was altered, or does not fit its plan.
        """
        found: _T = rebuilt(path, partial(self._rebuilt, kind), self.what)
        return found

    def _rebuilt(self, kind: Callable[..., Any], record: dict[str, Any]) -> Any:
        if record.get("kind") != self.kind:
            raise PlanFileError(f"the file is not a saved {self.what}")
        fit = fit_of(record["plan"])
        if not isinstance(fit, self.of):
            raise PlanFileError(f"the {self.what} is of another kind of plan")
        # A plan may store more noise; what was published has that of this fit.
        if record["plan"]["doors"] != fit.doors_record:
            raise PlanFileError(f"the {self.what} was made with other noise than its plan says")
        make = partial(kind, fit, private=record["private"] is True, accounted=record["accounted"] is True)
        return self.rebuild(fit, record, make)


def record_of_measured(release: Any) -> dict[str, Any]:
    """Return what a record says of a release whose integers are all that was published."""
    measured = release.measured
    return {"grid": measured.grid, "units": np.asarray(measured.units, dtype=np.int64)}


def integers_of(numbers: object, what: str) -> NDArray[np.int64]:
    """Return integers in a row of a record.

    Raises:
        PlanFileError: They are none.
    """
    if not isinstance(numbers, np.ndarray) or numbers.dtype.kind != "i" or numbers.ndim != 1:
        raise PlanFileError(f"the {what} holds no integers in a row")
    return np.ascontiguousarray(numbers, dtype=np.int64)


def measured_of(fit: Any, record: dict[str, Any], what: str) -> _core.Measured:
    """Return the integers that a door published.

    Raises:
        PlanFileError: The record holds others.
    """
    units = integers_of(record["units"], what)
    try:
        measured: _core.Measured = fit.door.published(units)
    except ShapeError:
        raise PlanFileError(f"the {what} has another number of sums than its plan") from None
    except UnsupportedMechanismError:
        raise PlanFileError(f"no {what} of this plan publishes such numbers") from None
    if record["grid"] != measured.grid:
        raise PlanFileError(f"the {what} was made with other noise than its plan says")
    return measured
