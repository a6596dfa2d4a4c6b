"""Tallies, and the tables that are made of them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sordino import _core
from sordino._support.checks import text
from sordino._support.protocols import TableLike
from sordino.errors import DataTypeError, InvalidParameterError, UnitError
from sordino.privacy.units import AddRemove, ReplaceOne, Unit, UserLevel, covers
from sordino.tables.columns import Column
from sordino.tables.readers import frames_of
from sordino.tables.schema import Schema, Value

__all__ = ["Table", "Tally", "encode", "same_kind", "with_head", "without_head"]

# No sum of a table is larger.
_MOST = 2**61
# Rows that are encoded at once: what is made of them stays in a cache.
_ROWS = 2**17
# What users are, None where none came yet.
KINDS = (None, "rows", "integers", "unsigned integers", "text")


class Table(TableLike):
    """Counts of a schema's cells, bounded: integers that no release has touched yet, as private as the rows.

    Attributes:
        counts: Shape `schema.table_shape`, int64, flat and read-only.
        unit: What one protected thing can change in them.
        schema: What they are counts of.
        digest: The schema's.
    """

    def __init__(self, schema: Schema, counts: NDArray[np.int64]) -> None:
        self.schema = schema
        self.unit: AddRemove | UserLevel = schema.unit
        self.digest: str | None = schema.digest
        self.counts = np.array(counts, dtype=np.int64)  # ours: whoever made it may write there
        self.counts.flags.writeable = False

    def to_numpy(self) -> NDArray[np.int64]:
        """Return the counts, shape `schema.table_shape`, read-only."""
        return self.counts.reshape(self.schema.table_shape)

    @property
    def labels(self) -> tuple[str, ...] | None:
        """Names of the cells, where they lie along one dimension: days of a series, groups of ages."""
        if len(self.schema.dimensions) != 1 or self.schema.value is not None:
            return None
        (dimension,) = self.schema.dimensions.values()
        return dimension.labels

    def places(self, cells: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the middles of cells, shape (cells, d): what smooth queries take as points.

        Raises:
            DataTypeError: A dimension is no `Integers` or `Edges`, or the table has amounts.
        """
        if self.schema.value is not None:
            raise DataTypeError("a table of amounts has no points: take a schema without values")
        codes = np.unravel_index(cells, self.schema.shape)
        axes = zip(self.schema.dimensions.items(), codes, strict=True)
        return np.stack([axis.middles(name, own) for (name, axis), own in axes], axis=1)

    def require(self, unit: Unit, digest: str | None = None) -> None:
        """Refuse a plan for another table, or for less than what one protected thing can change here.

        Args:
            unit: What the plan protects.
            digest: Of the schema that its workload was made from, None if from none.

        Raises:
            DataTypeError: No unit, or no digest.
            UnitError: The plan is for another schema, or its unit is smaller.
        """
        if not isinstance(unit, AddRemove | ReplaceOne | UserLevel):
            raise DataTypeError("unit must be AddRemove, ReplaceOne or UserLevel")
        if digest is not None and text("digest", digest) != self.digest:
            raise UnitError("the plan was made from another schema than this table")
        if not covers(unit, self.unit):
            raise UnitError(
                f"{self.unit.label} can change this table by more than the plan says: plan with unit={self.unit!r}"
            )

    def __repr__(self) -> str:
        return f"Table(<private counts of shape {self.schema.table_shape}>, unit={self.unit!r})"


class Tally:
    """What is kept of all users' rows while they come in: private state, on one machine or many.

    Tallies of any parts of the data, in any order, merge to that of all of it: of each user at most `bounds.max_cells`
    cells are kept, those that come first in a public order. Tables of parts do not add up: a user in two of them is
    bounded twice.

    Args:
        schema: What is counted.
        request_id: Name of the request; every part must have the same.

    Raises:
        DataTypeError: No schema, or no name.
    """

    def __init__(self, schema: Schema, *, request_id: str) -> None:
        if not isinstance(schema, Schema):
            raise DataTypeError("schema must be a sordino.Schema")
        self.schema = schema
        self.request_id = text("request_id", request_id)
        self._kind: str | None = None
        rule = schema.rule(request_id)
        # Rows of nobody add up as they are.
        self._rows = None if schema.user is not None else np.zeros(schema.table_shape, dtype=np.int64).reshape(-1)
        self._core = _core.Tally(list(rule.seed), *rule[1:])

    def update(self, data: object) -> None:
        """Take in rows.

        Args:
            data: Columns by name (a mapping; a frame of pandas or polars; a table, batch or reader of Arrow), or an
                iterable of such.

        Raises:
            DataTypeError: A column is missing, or of a type that its dimension is not read from.
            ShapeError: Columns of different lengths.
            InvalidParameterError: Users are of another kind than before. Of a frame that is refused nothing is taken
                in; of an iterable the frames before it are.
        """
        for frame in frames_of(data, self.schema.columns):
            self.take(*encode(self.schema, frame))

    def take(self, kind: str, names: Any, cells: NDArray[np.int32], values: NDArray[np.uint32]) -> None:
        """Take in rows as `encode` returns them.

        Raises:
            InvalidParameterError: Users are of another kind than before.
        """
        if not len(cells):
            return  # columns without entries may have no type
        self._kind = same_kind(self._kind, kind)  # first: a signal after the rows would leave them without
        if self._rows is not None:
            self._rows = _added(self._rows, cells, values, self.schema)
        else:
            self._core.update(names, cells, values)

    def merge(self, other: Tally) -> None:
        """Take in what another tally holds, which stays as it is.

        Raises:
            DataTypeError: No tally.
            InvalidParameterError: Of another schema or request, or with users of another kind.
        """
        if not isinstance(other, Tally):
            raise DataTypeError("other must be a sordino.tables.Tally")
        if (other.schema, other.request_id) != (self.schema, self.request_id):
            raise InvalidParameterError("only tallies of one schema and one request are merged")
        kind = same_kind(self._kind, other._kind)
        self._core.merge(other._core)
        if self._rows is not None and other._rows is not None:
            self._rows = np.minimum(self._rows + other._rows, _MOST)
        self._kind = kind

    def table(self) -> Table:
        """Return the table of all rows so far."""
        return Table(self.schema, self._core.table() if self._rows is None else self._rows)

    def to_bytes(self) -> bytes:
        """Return the state: as private as the rows."""
        state = self._core.to_bytes() if self._rows is None else self._rows.astype("<i8").tobytes()
        return with_head(self.schema.digest, self.request_id, self._kind, state)

    @classmethod
    def from_bytes(cls, data: bytes, schema: Schema) -> Tally:
        """Return the tally that `to_bytes` wrote.

        Raises:
            DataTypeError: No bytes, or no schema.
            InvalidParameterError: Of another schema, or not written by `to_bytes`.
        """
        wrong = InvalidParameterError("these bytes are no tally of this schema")
        digest, request_id, kind, state = without_head(data, schema, wrong)
        if digest != schema.digest:
            raise wrong
        made = cls(schema, request_id=request_id)
        made._kind = kind
        if made._rows is None:
            try:
                core = _core.Tally.from_bytes(state)
            except InvalidParameterError:
                raise wrong from None
            if not core.same_rule(made._core):
                raise wrong
            made._core = core
        else:
            if len(state) != made._rows.nbytes:
                raise wrong
            made._rows = np.clip(np.frombuffer(state, dtype="<i8").astype(np.int64), 0, _MOST)
        return made

    def __reduce__(self) -> Any:
        raise TypeError("a tally is private: move it by to_bytes, knowingly")

    def __repr__(self) -> str:
        return f"Tally(<private>, {self.schema!r})"


def with_head(digest: str, request_id: str, kind: str | None, state: bytes) -> bytes:
    """Return the bytes of a state that `without_head` takes apart."""
    return json.dumps([digest, request_id, kind]).encode() + b"\n" + state


def without_head(data: object, schema: object, wrong: InvalidParameterError) -> tuple[object, str, str | None, bytes]:
    """Return digest, request, kind of users and the rest of what `with_head` wrote.

    Raises:
        DataTypeError: No bytes, or no schema.
        InvalidParameterError: Something else was written: `wrong`.
    """
    if not isinstance(data, bytes):
        raise DataTypeError("the state must be bytes")
    if not isinstance(schema, Schema):
        raise DataTypeError("schema must be a sordino.Schema")
    first, _, state = data.partition(b"\n")
    try:
        digest, request_id, kind = json.loads(first.decode())
    except (ValueError, TypeError, RecursionError):
        raise wrong from None
    if not isinstance(request_id, str) or kind not in KINDS:
        raise wrong
    return digest, request_id, kind, state


def same_kind(one: str | None, other: str | None) -> str | None:
    """Return what kind users are, None where none came yet.

    Raises:
        InvalidParameterError: Of two kinds: nobody could say who is who.
    """
    if one and other and one != other:
        raise InvalidParameterError("users are of one kind: integers, integers without a sign, or text")
    return one or other


def _added(
    table: NDArray[np.int64], cells: NDArray[np.int32], values: NDArray[np.uint32], schema: Schema
) -> NDArray[np.int64]:
    """Return a table with rows of nobody: all of them, or a signal leaves it as it was."""
    known = cells >= 0
    places = cells[known].astype(np.int64)
    if schema.value is None:
        more = np.bincount(places, minlength=len(table)).astype(np.int64)
    else:
        more, high = np.zeros_like(table), values[known].astype(np.int64)
        np.add.at(more, 2 * places, schema.value.height - high)
        np.add.at(more, 2 * places + 1, high)
    found: NDArray[np.int64] = np.minimum(table + more, _MOST)
    return found


def encode(schema: Schema, frame: dict[str, Column]) -> tuple[str, Any, NDArray[np.int32], NDArray[np.uint32]]:
    """Return kind and names of users, the cell of each row (-1 for none) and its amount in steps.

    Each row by itself: nothing here depends on another.

    Raises:
        DataTypeError: A column is of a type that its dimension is not read from.
    """
    rows = len(next(iter(frame.values())))
    known: NDArray[np.bool_]
    if schema.user is None:
        kind, names, known = "rows", None, np.broadcast_to(np.bool_(True), (rows,))
    else:
        kind, names, known = frame[schema.user].users(f"the users in {schema.user!r}")
    cells = np.empty(rows, dtype=np.int32)
    values = np.zeros(rows if schema.value is not None else 0, dtype=np.uint32)
    for first in range(0, max(rows, 1), _ROWS):  # types are looked at where there are no rows too
        some = slice(first, min(first + _ROWS, rows))
        part = {name: column.part(some.start, some.stop) for name, column in frame.items()}
        cells[some] = np.where(known[some], _cells(schema, part), -1)
        if schema.value is not None and schema.value_column is not None:
            values[some], there = _steps(schema.value, part[schema.value_column], schema.value_column)
            cells[some][~there] = -1
    return kind, names, cells, values


def _cells(schema: Schema, part: dict[str, Column]) -> NDArray[np.int64]:
    each = [axis.codes(part[name], f"the column {name!r}") for name, axis in schema.dimensions.items()]
    cells, nowhere = each[0], each[0]
    for codes, size in zip(each[1:], schema.shape[1:], strict=True):
        # The sign of the last is that of any of them.
        cells, nowhere = cells * size + codes, nowhere | codes
    return cells if nowhere is cells else np.where(nowhere >= 0, cells, -1)


def _steps(value: Value, column: Column, name: str) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
    reals, there = column.reals(f"the column {name!r}")
    clamped = np.clip(np.where(there, reals, value.low), value.low, value.high)
    return np.floor((clamped - value.low) / value.step).astype(np.uint32), there
