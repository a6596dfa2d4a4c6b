"""The unit of privacy: what one protected thing can change in the input.

sordino does not bound contributions by itself: a unit is a promise of the caller about the data.
`sordino.tabulate` enforces it for tables of records.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from sordino._support.checks import build_record, flag, integer, read_record
from sordino.errors import DataTypeError, InvalidParameterError

__all__ = ["AddRemove", "Changes", "ReplaceOne", "Unit", "UserLevel", "covers", "group_of", "unit_from_json"]

_MOST = 2**31
_MOST_GROUP = 2**63


class Relation(NamedTuple):
    """A unit as the core reads it."""

    kind: str
    records: int
    per_cell: int | None
    one_signed: bool = False


class Changes(NamedTuple):
    """Changes of several cells at once.

    Attributes:
        most: How many cells a unit changes at most, if each by as much as one cell may change.
        signed: Whether some may rise while others fall.
        total: What it changes in all: any changes of cells that add up to this are averages of what it can do.
    """

    most: int
    signed: bool
    total: int

    def size(self, cells: int) -> float:
        """Return by how much all of so many cells may change together, or of as many as a unit reaches."""
        return self.total / min(self.most, cells)


def _count(name: str, value: object) -> int:
    return integer(name, value, least=1, most=_MOST)


def group_of(records: object) -> int:
    """Return the size of a group of records that is asked about.

    Raises:
        DataTypeError: No integer.
        InvalidParameterError: Not from 1 to 2**63.
    """
    return integer("records", records, least=1, most=_MOST_GROUP)


def _label(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise DataTypeError("label must be a non-empty string, such as 'one flight'")
    if not value.isprintable():
        raise InvalidParameterError("label must be printable, on one line: it stands in the guarantee")
    return value


@dataclass(frozen=True)
class AddRemove:
    """Neighbours differ by the presence of `records` records, each changing one cell by at most 1.

    `‖x − x'‖₁ <= records`; with `per_cell`, also `‖x − x'‖_∞ <= per_cell`, which makes Gaussian noise on
    the input smaller. With `one_signed` all of them only add: whether the protected thing is there or not, no cell of
    the data without it is larger. Then noise that all cells have in common hides part of the change.

    Attributes:
        records: Records of one protected thing.
        per_cell: Largest change of a single cell, if smaller.
        one_signed: Whether its records only raise counts: true of people who are counted, not of updates with signs.
        label: What is protected, in words.

    Raises:
        DataTypeError: A count is no integer, `one_signed` neither True nor False, or the label no string.
        InvalidParameterError: A count is below 1.
    """

    records: int = 1
    per_cell: int | None = None
    one_signed: bool = field(default=False, kw_only=True)
    label: str = "one record"

    def __post_init__(self) -> None:
        object.__setattr__(self, "records", _count("records", self.records))
        if self.per_cell is not None:
            object.__setattr__(self, "per_cell", _count("per_cell", self.per_cell))
        flag("one_signed", self.one_signed)
        _label(self.label)

    def __repr__(self) -> str:
        signed = ", one_signed=True" if self.one_signed else ""
        return f"AddRemove(records={self.records}, per_cell={self.per_cell}{signed}, label={self.label!r})"

    @property
    def most_per_cell(self) -> int:
        """Records of one protected thing that one cell may take."""
        return min(self.per_cell or self.records, self.records)

    @property
    def raises_several(self) -> bool:
        """Whether several cells may rise together, and none falls: what common noise hides."""
        return self.one_signed and self.most_per_cell < self.records

    @property
    def changes(self) -> Changes | None:
        """The changes of several cells at once; None if one cell may take all records."""
        most = -(-self.records // self.most_per_cell)
        return Changes(most, not self.one_signed, self.records) if most > 1 else None

    def relation(self) -> Relation:
        """Return the relation for the core."""
        return Relation("add_remove", self.records, self.per_cell, self.one_signed)

    def protected(self) -> str:
        """Say what is protected, as the subject of a sentence."""
        return f"Whether {self.label} is in the data"

    def extent(self) -> str:
        """Say how much that changes at most."""
        cap = "" if self.per_cell is None else f", at most {self.per_cell} in a cell"
        return f"{_records(self.records)}{cap}{', none lowers a count' if self.one_signed else ''}"

    def units_in(self, records: int) -> int:
        """Return how many units cover any group of so many records: they may all be in one cell.

        `ceil(records/per_cell)` units suffice: dealt out in turn, cell after cell, each unit gets at most
        `per_cell` records of a cell, and at most `per_cell <= records` in all.

        Raises:
            DataTypeError: No integer.
            InvalidParameterError: Not from 1 to 2**63.
        """
        records = group_of(records)
        return -(-records // self.most_per_cell)

    def least_norm(self, cells: int) -> float:
        """Return the l2 norm of a change of so many cells that this unit allows, whatever the strategy.

        Raises:
            DataTypeError: No integer.
            InvalidParameterError: Below 1.
        """
        cells = integer("cells", cells, least=1)
        cap = self.most_per_cell
        # Of one sign the changes of several cells are not all that the norm of mixed signs stands for.
        return cap * (1.0 if self.one_signed else math.sqrt(min(self.records // cap, cells)))

    def to_json(self) -> dict[str, object]:
        """Return the unit as a JSON object."""
        fields = {"records": self.records, "per_cell": self.per_cell, "one_signed": self.one_signed}
        return {"kind": "add_remove", **fields, "label": self.label}


@dataclass(frozen=True)
class ReplaceOne:
    """Neighbours differ by moving `records` records from one cell to another; the total is public.

    Clamping to the declared `max_value` may hide one side of a move, so sensitivities cover both the
    difference of two cells and a single one.

    Attributes:
        records: Records of one protected thing.
        label: What is protected, in words.

    Raises:
        DataTypeError: A count is no integer, or the label no string.
        InvalidParameterError: A count is below 1.
    """

    records: int = 1
    label: str = "one record"

    def __post_init__(self) -> None:
        object.__setattr__(self, "records", _count("records", self.records))
        _label(self.label)

    @property
    def most_per_cell(self) -> int:
        """Records of one protected thing that one cell may take."""
        return self.records

    @property
    def changes(self) -> None:
        """None: all records may move between the same two cells."""
        return None

    def relation(self) -> Relation:
        """Return the relation for the core."""
        return Relation("replace_one", self.records, None)

    def protected(self) -> str:
        """Say what is protected, as the subject of a sentence."""
        return f"The cell of {self.label}"

    def extent(self) -> str:
        """Say how much that changes at most."""
        return f"{_records(self.records)} moved"

    def units_in(self, records: int) -> int:
        """Return how many units cover any group of so many records.

        Raises:
            DataTypeError: No integer.
            InvalidParameterError: Not from 1 to 2**63.
        """
        records = group_of(records)
        return -(-records // self.records)

    def least_norm(self, cells: int) -> float:
        """Return the l2 norm of a change that this unit allows: one side of a move, as clamping may leave."""
        return float(self.records)

    def to_json(self) -> dict[str, object]:
        """Return the unit as a JSON object."""
        return {"kind": "replace_one", "records": self.records, "label": self.label}


@dataclass(frozen=True)
class UserLevel:
    """Neighbours differ in all that one user adds to a series.

    A user takes part in at most `max_participations` steps, at least `min_separation` steps apart, and changes
    each by at most `per_step`. A plan for a whole series uses the bound
    `‖x − x'‖₁ <= max_participations·per_step`, `‖x − x'‖_∞ <= per_step`, which holds for any separation:
    `min_separation` makes the sensitivity of streams smaller (`Continual`).

    Attributes:
        max_participations: Steps that one user can change.
        min_separation: Least distance of two of them.
        per_step: Largest change of one step.
        label: What is protected, in words.

    Raises:
        DataTypeError: A count is no integer, or the label no string.
        InvalidParameterError: A count is below 1.
    """

    max_participations: int
    min_separation: int = 1
    per_step: int = 1
    label: str = "one user"

    def __post_init__(self) -> None:
        for name in ("max_participations", "min_separation", "per_step"):
            object.__setattr__(self, name, _count(name, getattr(self, name)))
        _count("max_participations * per_step", self.max_participations * self.per_step)
        _label(self.label)

    def bound(self) -> AddRemove:
        """Return a unit that allows all that this one does, whatever the separation."""
        return AddRemove(self.max_participations * self.per_step, per_cell=self.per_step)

    @property
    def records(self) -> int:
        """Radius of the l1 ball that contains every difference."""
        return self.max_participations * self.per_step

    @property
    def most_per_cell(self) -> int:
        """Records of one user that one step may take."""
        return self.per_step

    @property
    def changes(self) -> Changes | None:
        """The changes of several steps, in any of them: where they lie apart, more than a user can make."""
        several = self.bound().changes
        if several is None or self.min_separation == 1:
            return several
        # What is an average of changes of one step.
        return several._replace(total=self.per_step)

    def relation(self) -> Relation:
        """Return the relation for the core."""
        return self.bound().relation()

    def protected(self) -> str:
        """Say what is protected, as the subject of a sentence."""
        return f"Everything that {self.label} adds"

    def extent(self) -> str:
        """Say how much that changes at most."""
        steps = f"{self.max_participations} step{'s' if self.max_participations > 1 else ''}"
        apart = f", at least {self.min_separation} apart" if self.min_separation > 1 else ""
        return f"at most {steps}{apart}, at most {self.per_step} in each"

    def units_in(self, records: int) -> int:
        """Return how many units cover any group of so many records.

        Raises:
            DataTypeError: No integer.
            InvalidParameterError: Not from 1 to 2**63.
        """
        return self.bound().units_in(records)

    def least_norm(self, cells: int) -> float:
        """Return the l2 norm of a change that this unit allows: one step, since others may be too close."""
        return float(self.per_step)

    def to_json(self) -> dict[str, object]:
        """Return the unit as a JSON object."""
        return {
            "kind": "user_level",
            "max_participations": self.max_participations,
            "min_separation": self.min_separation,
            "per_step": self.per_step,
            "label": self.label,
        }


def _records(count: int) -> str:
    return f"at most {count:,} records" if count > 1 else "one record"


Unit: TypeAlias = AddRemove | ReplaceOne | UserLevel


def covers(plan: Unit, table: AddRemove | UserLevel) -> bool:
    """Return whether every change of a table that one unit allows is one that another allows.

    Of `AddRemove` no more records, no more in a cell, and one sign where that is asked for. A series of a user stands
    for one of its steps where these lie apart; a move covers its two sides, each in one cell. What a user does in all
    steps of a stream is covered by no fewer steps, no farther apart, and no less in each.
    """
    if isinstance(table, UserLevel):
        return (
            isinstance(plan, UserLevel)
            and table.max_participations <= plan.max_participations
            and table.min_separation >= plan.min_separation
            and table.per_step <= plan.per_step
        )
    if isinstance(plan, ReplaceOne):
        return table.records <= plan.records
    if isinstance(plan, UserLevel):
        plan = AddRemove(plan.per_step) if plan.min_separation > 1 else plan.bound()

    signs = table.one_signed or not plan.one_signed
    return table.records <= plan.records and table.most_per_cell <= plan.most_per_cell and signs


_KINDS: dict[str, tuple[Callable[..., Unit], frozenset[str]]] = {
    "add_remove": (AddRemove, frozenset({"records", "per_cell", "one_signed", "label"})),
    "replace_one": (ReplaceOne, frozenset({"records", "label"})),
    "user_level": (UserLevel, frozenset({"max_participations", "min_separation", "per_step", "label"})),
}


def unit_from_json(data: object) -> Unit:
    """Return the unit that `to_json` wrote.

    Raises:
        PlanFileError: `data` describes no unit.
    """
    kind, fields = read_record("unit", data, {name: fields for name, (_, fields) in _KINDS.items()})
    return build_record("unit", _KINDS[kind][0], fields)
