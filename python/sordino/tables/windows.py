"""Streams of tables: in each step what users add is bounded, and in how many steps they add anything."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sordino import _core
from sordino._support.checks import integer, text
from sordino.errors import DataTypeError, InvalidParameterError, UnitError
from sordino.privacy.units import Unit, UserLevel, covers
from sordino.tables.readers import frames_of
from sordino.tables.schema import Schema
from sordino.tables.tally import Table, Tally, encode, same_kind, with_head, without_head
from sordino.workloads import RunningHistogram, Workload
from sordino.workloads.base import laid_out
from sordino.workloads.continual import Continual
from sordino.workloads.layout import Layout

__all__ = ["StepTable", "Windows"]

_MOST = 2**31


class StepTable(Table):
    """The bounded table of one step of a stream: what a stream takes whose workload `Windows.continual` made.

    Attributes:
        counts: Shape `schema.table_shape`, int64, flat and read-only.
        unit: What one user can change in all tables together.
        schema: What they are counts of.
        digest: Of schema and participations.
        step: Which step it is of.
    """

    def __init__(self, windows: Windows, counts: NDArray[np.int64]) -> None:
        super().__init__(windows.schema, counts)
        self.unit, self.digest, self.step = windows.unit, windows.digest, windows.step
        self._windows = windows

    def require(self, unit: Unit, digest: str | None = None) -> None:
        """Refuse a plan for other tables, or for less than what one user can change in all of them.

        Raises:
            UnitError: The workload was not made by `Windows.continual`, or the unit is smaller.
        """
        if digest not in self._windows.digests:
            raise UnitError("a step of windows goes into a stream whose workload their continual(...) made")
        own = self._windows.unit_of(digest)
        if not covers(unit, own):
            raise UnitError(f"{own.label} can change these tables by more than the plan says: {own!r}")


class Windows:
    """What is kept of users while a stream of tables goes on: private state, part of what a restart needs.

    In each step a user's rows are bounded as in a table. A step counts for a user if fewer than `max_participations`
    steps counted before, the last of them at least `min_separation` steps ago; in others the user's rows are left out.
    This sees the user's own rows and the public clock alone, so that all tables together change by what `unit` says.
    The step of a row is the one in which it arrives, also if it is late.

    The same rows in a step again give the same table: after a crash, feed the step whose table was not published again
    to the state that was saved before it, with the same `step_id`.

    Args:
        schema: What a step's table is; with users.
        max_participations: Steps that count for a user.
        min_separation: How many steps lie from one of them to the next at least.
        request_id: Name of the stream; it decides, with the schema, which of a user's cells are kept.

    Raises:
        DataTypeError: An argument is of the wrong type.
        InvalidParameterError: Out of range, or a schema without users, or whose keys are not known.
    """

    def __init__(self, schema: Schema, *, max_participations: int, min_separation: int = 1, request_id: str) -> None:
        if not isinstance(schema, Schema):
            raise DataTypeError("schema must be a sordino.Schema")
        if schema.user is None:
            raise InvalidParameterError("windows bound what users do: the schema must have users")
        self.schema = schema
        self.request_id = text("request_id", request_id)
        most = integer("max_participations", max_participations, least=1, most=_MOST)
        apart = integer("min_separation", min_separation, least=1, most=_MOST)
        # A user changes each step's table by averages of changes of so many cells, each by `per_step` at most.
        records, cap = schema.unit.records, schema.unit.per_cell or schema.unit.records
        self._cells = min(-(-records // cap), math.prod(schema.table_shape))
        self.unit = UserLevel(most, apart, per_step=cap, label=schema.label)
        # For a running histogram another one: it knows no bound on what one of its cells changes.
        name = f"{schema.digest}\0{most}\0{apart}\0{self.request_id}".encode("utf-8", "surrogatepass")
        self.digests = tuple(hashlib.sha256(kind + name).hexdigest() for kind in (b"windows\0", b"running histogram\0"))
        self.digest = self.digests[0]
        self._core = _core.Participants(most, apart)
        self._kind: str | None = None
        # Of a step: that of another one, which a signal left behind, counts no more.
        self._tallies: tuple[int, Tally | None] = (0, None)

    @property
    def _tally(self) -> Tally:
        """What was taken in of the open step."""
        step, tally = self._tallies
        if step != self.step or tally is None:
            tally = Tally(self.schema, request_id=f"{self.request_id}\0{self.step}")
            self._tallies = (self.step, tally)
        return tally

    def unit_of(self, digest: str | None) -> UserLevel:
        """Return what one user can change, for a workload of this digest."""
        if digest == self.digest:
            return self.unit
        return replace(self.unit, per_step=self.schema.unit.records)

    @property
    def step(self) -> int:
        """Steps that have ended."""
        return self._core.step

    def continual(self, workload: Workload, **options: Any) -> Continual:
        """Return the live workload that takes these tables: one coordinate for each number of a table.

        A plan made from it protects `unit`.

        Args:
            workload: `RunningSum(length)`, a `SlidingWindow`, or another that a `Continual` takes; or a
                `RunningHistogram` of as many cells as a table has numbers.
            options: `horizon` and `common_noise` of `Continual`.

        Raises:
            DataTypeError: No workload, or another option.
            InvalidParameterError: It is not made for tables.
        """
        if options.keys() - {"horizon", "common_noise"}:
            raise DataTypeError("continual takes horizon and common_noise: the tables say everything else")
        cells, digest = math.prod(self.schema.table_shape), self.digest
        if isinstance(workload, RunningHistogram):
            if workload.cells != cells or workload.once:
                raise InvalidParameterError(f"the running histogram must have {cells} cells, and change any of them")
            live, digest = Continual(workload, **options), self.digests[1]
        else:
            live = Continual(workload, dim=cells, cells_per_record=self._cells, **options)
        axes = self.schema.counts().layout
        assert axes is not None
        return laid_out(live, Layout(digest, self.unit_of(digest), axes.blocks, axes.channels))

    def update(self, data: object) -> None:
        """Take in rows of the step that is open, as `Tally.update` does; of a step that fails begin again from there.

        Raises:
            SordinoError: As `Tally.update`.
        """
        for frame in frames_of(data, self.schema.columns):
            kind, names, cells, values = encode(self.schema, frame)
            if not len(cells):
                continue
            self._kind = same_kind(self._kind, kind)
            self._tally.take(kind, names, self._core.admitted(names, cells), values)

    def advance(self) -> StepTable:
        """End the step, and return its table: for `stream.update(table, step_id=...)`.

        After a signal that comes as it ends, begin anew from the state of before.
        """
        table = StepTable(self, self._tally.table().counts)
        self._core.advance()
        return table

    def to_bytes(self) -> bytes:
        """Return the state of the last end of a step: as private as the rows.

        Write it after the stream published the step. A stream that has lost it may not go on: its users would be let in
        anew, and tables of another step than the stream's are refused.

        Raises:
            InvalidParameterError: Rows of the open step were taken in.
        """
        if self._tallies[0] == self.step and self._tallies[1] is not None:
            raise InvalidParameterError("rows of the open step are not part of the state: end the step first")
        return with_head(self.digest, self.request_id, self._kind, self._core.to_bytes())

    @classmethod
    def from_bytes(cls, data: bytes, schema: Schema) -> Windows:
        """Return what `to_bytes` wrote.

        Raises:
            DataTypeError: No bytes, or no schema.
            InvalidParameterError: Of another schema, or not written by `to_bytes`.
        """
        wrong = InvalidParameterError("these bytes are no windows of this schema")
        digest, request_id, kind, state = without_head(data, schema, wrong)
        try:
            core = _core.Participants.from_bytes(state)
            most, apart = core.bounds
            made = cls(schema, max_participations=most, min_separation=apart, request_id=request_id)
        except InvalidParameterError:
            raise wrong from None
        if made.digest != digest:
            raise wrong
        made._core, made._kind = core, kind
        return made

    def __reduce__(self) -> Any:
        raise TypeError("windows are private: move them by to_bytes, knowingly")

    def __repr__(self) -> str:
        return f"Windows(<private>, {self.schema!r}, unit={self.unit!r})"
