"""Released summaries as files: public, and verified when they are read."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sordino.errors import PlanFileError
from sordino.plans.records import SCHEMA, rebuilt, write_record
from sordino.plans.smooth_file import rebuild_smooth
from sordino.workloads.base import Array

if TYPE_CHECKING:
    from sordino.plans.smooth import SmoothPlan
    from sordino.releases.smooth.release import SmoothRelease

__all__ = ["Published", "load_release", "save_release"]

_KIND = "smooth-release"


@dataclass(frozen=True, eq=False)
class Published:
    """What was published, read from a file: the same as `_core.Measured`, which only a release makes.

    Attributes:
        units: Noisy integers.
        grid: They are multiples of `2^grid`.
    """

    units: NDArray[np.int64] = field(repr=False)
    grid: int

    def values(self) -> Array:
        """Return the noisy numbers."""
        return np.ldexp(self.units.astype(np.float64), self.grid)


def save_release(release: SmoothRelease, path: Path) -> Path:
    """Write the plan and what was published.

    Raises:
        InputFileError: The file cannot be written.
    """
    record = {
        "schema": SCHEMA,
        "kind": _KIND,
        "plan": release.plan.record(),
        "features": _mark(release.plan),
        "grid": release.measured.grid,
        "units": np.asarray(release.measured.units, dtype=np.int64),
        "names": None if release.names is None else list(release.names),
        "private": release.private,
        "accounted": release.accounted,
    }
    return write_record(record, path, "summary")


def load_release(path: str | Path) -> SmoothRelease:
    """Read a summary, fit its plan again, and see that they belong together.

    Raises:
        InputFileError: The file cannot be read.
        PlanFileError: The file is no summary, was altered, or does not fit its plan.
    """
    return rebuilt(path, _rebuild, "summary")


def _rebuild(record: dict[str, Any]) -> SmoothRelease:
    from sordino.releases.smooth.release import SmoothRelease  # noqa: PLC0415 - release uses this module

    if record.get("kind") != _KIND:
        raise PlanFileError("the file is not a saved summary")
    plan = rebuild_smooth(record["plan"])
    if record["features"] != _mark(plan):
        raise PlanFileError("the features of the summary come out otherwise on this machine: ask where it was made")
    units, grid, door = record["units"], record["grid"], plan.fitted.door
    stored = record["plan"]["door"]
    if (grid, stored["quarter_units"]) != (door.grid, door.quarter_units):
        raise PlanFileError("the summary was made with other noise than its plan says")
    if not isinstance(units, np.ndarray) or units.dtype.kind != "i":
        raise PlanFileError("the summary holds no integers")
    if units.shape != (plan.fitted.strategy.measured_len,):
        raise PlanFileError("the summary has another number of sums than its plan")
    names = record["names"]
    if names is not None and not (len(names) == plan.workload.dimension and all(type(name) is str for name in names)):
        raise PlanFileError("the summary's names are not one a coordinate")
    return SmoothRelease(
        plan,
        Published(units.astype(np.int64), grid),
        private=record["private"] is True,
        accounted=record["accounted"] is True,
        names=None if names is None else tuple(names),
    )


def _mark(plan: SmoothPlan) -> str:
    """Return what the core tells features apart by: of everything that decides what a point adds."""
    return plan.fitted.features.mark.to_bytes(8, "little").hex()
