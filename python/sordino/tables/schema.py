"""From rows to cells, declared: dimensions, whose rows they are, and how much of one user counts."""

from __future__ import annotations

import hashlib
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sordino._support.checks import integer, path_of, real, text
from sordino._support.files import read_file
from sordino._support.records import record_digest
from sordino.errors import DataTypeError, InputFileError, InvalidParameterError, SordinoError
from sordino.privacy.units import AddRemove
from sordino.tables.dimensions import Dimension, Edges, Hierarchy, Integers, Level, Levels, dimension_of
from sordino.tables.times import Times
from sordino.workloads import GroupBy, Histogram, Kronecker, Marginals, Workload
from sordino.workloads.base import MAX_LENGTH, laid_out
from sordino.workloads.layout import Axis, Channels, Layout, Names

__all__ = ["Bounds", "Rule", "Schema", "Value"]

_PRIME = 2**31 - 1
_MOST = 2**31 - 1
_DIMENSIONS = {"levels": Levels, "integers": Integers, "edges": Edges, "times": Times}


@dataclass(frozen=True)
class Bounds:
    """How much of one user counts: what is above is left out by a public rule that sees this user alone.

    Choose them from public knowledge or an older release, never from the data: small bounds need little noise, and
    leave out much of those who are active. What they leave out is not in any standard error.

    Attributes:
        max_cells: Cells that a user's rows count in.
        per_cell: Rows of a user that count in one cell.
        max_records: Rows of a user that count in all; `max_cells * per_cell` if None.

    Raises:
        DataTypeError: No integers.
        InvalidParameterError: Not positive, or from 2**31.
    """

    max_cells: int
    per_cell: int = 1
    max_records: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_cells", "per_cell", "max_records"):
            value = getattr(self, name)
            if value is not None or name != "max_records":
                object.__setattr__(self, name, integer(name, value, least=1, most=_MOST))
        integer("max_cells * per_cell", self.max_cells * self.per_cell, least=1, most=_MOST)

    @property
    def records(self) -> int:
        """Rows of a user that count in all, as far as they can."""
        most = self.max_cells * self.per_cell
        return most if self.max_records is None else min(most, self.max_records)


@dataclass(frozen=True)
class Value:
    """Amounts of a column, for sums and means: clamped, and rounded down to steps.

    Attributes:
        low: Least amount; smaller ones become it.
        high: Largest amount.
        step: A power of two: an amount becomes `low` and a whole number of steps.

    Raises:
        DataTypeError: No numbers.
        InvalidParameterError: Not `low < high`, no power of two, or 2**31 steps.
    """

    low: float
    high: float
    step: float = 1.0

    def __post_init__(self) -> None:
        for name in ("low", "high", "step"):
            object.__setattr__(self, name, real(name, getattr(self, name)))
        if not self.low < self.high or self.step <= 0 or math.frexp(self.step)[0] != 0.5:
            raise InvalidParameterError("low must be below high, and step a power of two, such as 0.25")
        if not math.isfinite(self.high - self.low) or not (self.high - self.low) / self.step < _MOST:
            raise InvalidParameterError("from low to high there must be fewer than 2**31 steps")

    @property
    def height(self) -> int:
        """Steps from `low` to `high`, rounded up."""
        return math.ceil((self.high - self.low) / self.step)


def unit_of(bounds: Bounds, height: int, label: str) -> AddRemove:
    """Return what one user can change in a table where a row weighs `height`.

    With `K' = min(K, L·c)` and `c' = min(c, K')` every change is an average of changes of at most `⌈K'/c'⌉ <= L` cells
    by at most `c'`: the bound on cells is in the others.
    """
    per_cell = min(bounds.per_cell, bounds.records)
    cap = per_cell * height if per_cell < bounds.records else None
    return AddRemove(bounds.records * height, per_cell=cap, one_signed=True, label=label)


class Rule(NamedTuple):
    """What engines need to bound contributions: all of it public.

    Attributes:
        seed: Constants of the order in which cells are kept.
        cells: Cells of the table.
        max_cells: Cells of a user.
        per_cell: Rows of a user in a cell.
        max_records: Rows of a user.
        height: Largest amount in steps, 0 where rows are counted.
    """

    seed: tuple[int, ...]
    cells: int
    max_cells: int
    per_cell: int
    max_records: int
    height: int


class Schema:
    """What a table of records is: its cells, whose records they are, and how many of one user's count.

    `D ~ D'` if one data set is the other and all rows of one user who has none there. The table is a sum of one vector
    a user, each made by a public rule from that user's rows alone, so it changes by what `unit` says. Whatever depends
    on other users' rows (bins or levels from the data, ranks over all, samples, duplicates removed across users) breaks
    that, and belongs nowhere before this.

    Args:
        dimensions: Axes of the table by column.
        user: Column that names whose row it is; None says that every row is a thing of its own. Users are integers, or
            text and other bytes; rows without one are nobody's, and do not count.
        bounds: How much of one user counts; needed with `user`, and meaningless without.
        values: One column of amounts, for sums and means; None counts rows.
        label: What is protected, in words; 'one user' or 'one record' if None.

    Raises:
        DataTypeError: An argument is of the wrong type.
        InvalidParameterError: Sizes are out of range, or arguments do not go together.
    """

    def __init__(
        self,
        dimensions: Mapping[str, Dimension],
        *,
        user: str | None,
        bounds: Bounds | None = None,
        values: Mapping[str, Value] | None = None,
        label: str | None = None,
    ) -> None:
        if not isinstance(dimensions, Mapping) or not dimensions:
            raise DataTypeError("dimensions must be a mapping from columns to dimensions")
        self.dimensions = {text("a column", name): _dimension(name, axis) for name, axis in dimensions.items()}
        if any("." in name for name in self.dimensions):
            raise InvalidParameterError(
                "columns of dimensions must have no dot in their names: levels are named by one"
            )
        self.user = None if user is None else text("user", user)
        if bounds is not None and not isinstance(bounds, Bounds):
            raise DataTypeError("bounds must be a sordino.Bounds")
        if (bounds is None) != (self.user is None):
            raise InvalidParameterError("user and bounds go together: without users every row is a thing of its own")
        self.bounds = bounds
        self.value_column, self.value = _value(values)
        unknown = [name for name, axis in self.dimensions.items() if axis.kind == "keys"]
        if len(unknown) > 1:
            raise InvalidParameterError("keys of one dimension are found at a time")
        if not unknown and not 1 <= self.cells * (2 if self.value else 1) <= MAX_LENGTH:
            raise InvalidParameterError("at least one cell, and at most 2**26")
        self.label = ("one record" if user is None else "one user") if label is None else text("label", label)
        most = Bounds(1) if bounds is None else bounds
        if most.records * self._height > _MOST:
            raise InvalidParameterError(
                "max_records times the steps of an amount must be below 2**31: take a larger step"
            )
        self.unit = unit_of(most, self._height, self.label)

    @property
    def _height(self) -> int:
        return 1 if self.value is None else self.value.height

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells along each dimension."""
        return tuple(dimension.size for dimension in self.dimensions.values())

    @property
    def cells(self) -> int:
        """Cells of the table."""
        return math.prod(self.shape)

    @property
    def table_shape(self) -> tuple[int, ...]:
        """Shape of the table: with amounts each cell has two numbers."""
        return self.shape if self.value is None else (*self.shape, 2)

    @property
    def columns(self) -> list[str]:
        """Columns that are read."""
        named = [*self.dimensions, self.value_column, self.user]
        return [name for name in dict.fromkeys(named) if name is not None]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what the cells and the bounds are."""
        return record_digest(
            {
                "dimensions": [[name, axis.record()] for name, axis in self.dimensions.items()],
                "user": self.user,
                "bounds": None if self.bounds is None else list(_bounds_of(self.bounds)),
                "value": None if self.value is None else [self.value_column, *_value_of(self.value)],
                "label": self.label,
            }
        )

    def with_bounds(self, bounds: Bounds) -> Schema:
        """Return the same schema with other bounds.

        Raises:
            DataTypeError: No bounds.
            InvalidParameterError: It has no users.
        """
        values = None if self.value is None or self.value_column is None else {self.value_column: self.value}
        return Schema(self.dimensions, user=self.user, bounds=bounds, values=values, label=self.label)

    def seed(self, request_id: str) -> tuple[int, ...]:
        """Return six public constants, for a request.

        The seed is `a_i = 1 + word_i mod (2**31 - 2)` of the SHA-256 of schema and request: public, and the same when
        the request comes again. It must not be chosen by looking at tables.
        """
        words = hashlib.sha256(
            f"{self.digest}\0{text('request_id', request_id)}".encode("utf-8", "surrogatepass")
        ).digest()
        return tuple(1 + int.from_bytes(words[4 * i : 4 * i + 4], "little") % (_PRIME - 1) for i in range(6))

    def rule(self, request_id: str) -> Rule:
        """Return what a user's rows become, for a request."""
        bounds = Bounds(1) if self.bounds is None else self.bounds
        height = 0 if self.value is None else self.value.height
        return Rule(self.seed(request_id), self.cells, *_bounds_of(bounds), height)

    # What is asked.

    def _layout(self, blocks: tuple[tuple[Axis, ...], ...]) -> Layout:
        found = None
        if self.value is not None and self.value_column is not None:
            found = Channels(self.value_column, self.value.low, self.value.step, self.value.height)
            # The last axis: what is missing to the largest amounts, and the amounts.
            blocks = tuple((*block, (Names(None, ("low", "high")),)) for block in blocks)
        return Layout(self.digest, self.unit, blocks, found)

    def counts(self) -> Histogram:
        """Return the queries for every cell; with amounts for both of its numbers."""
        axes = tuple((Names(name, axis.labels),) for name, axis in self.dimensions.items())
        return laid_out(Histogram(math.prod(self.table_shape)), self._layout((axes,)))

    def group_by(self, *levels: str, weights: Mapping[str, float] | None = None) -> Workload:
        """Return sums over groups of cells.

        A level is a column ('hour'), one of its groupings ('hour.day'; `Times` has day, week, month, year, weekday and
        hour_of_day, a `Hierarchy` its own), or its total ('hour.total'). Levels of one dimension are answered one after
        the other, those of several dimensions together: each group of one with each of the others. Dimensions that are
        not named are summed over.

        Args:
            levels: Which.
            weights: What the answers of a level are multiplied by, for more accuracy there; 1 if not given.

        Returns:
            A `GroupBy` for a table of one dimension, else a `Kronecker` of one for each dimension.

        Raises:
            DataTypeError: No names.
            InvalidParameterError: A level that there is not, or that is named twice.
        """
        levels = tuple(text("a level", name) for name in levels)
        if weights is not None and not isinstance(weights, Mapping):
            raise DataTypeError("weights must be a mapping from levels to numbers")
        weights = {} if weights is None else dict(weights)
        if not levels or len(set(levels)) < len(levels) or weights.keys() - set(levels):
            raise InvalidParameterError("name each level once, and weights of these alone")
        chosen: dict[str, list[tuple[str, Level, float]]] = {name: [] for name in self.dimensions}
        for name in levels:
            column, found = self._level(name)
            chosen[column].append((name, found, weights.get(name, 1.0)))
        factors, axes = [], []
        for column, named in chosen.items():
            if not named:
                named.append(("", self._level(f"{column}.total")[1], 1.0))
            factors.append(GroupBy([level.groups for _, level, _ in named], [weight for _, _, weight in named]))
            # Groups behind the last that has a cell are not answered.
            sizes = factors[-1].level_sizes
            axes.append(
                tuple(
                    Names(name or None, level.labels[:size], weight)
                    for (name, level, weight), size in zip(named, sizes, strict=True)
                )
            )
        layout = self._layout((tuple(axes),))
        if self.value is not None:
            return laid_out(Kronecker([*factors, Histogram(2)]), layout)
        return laid_out(factors[0] if len(factors) == 1 else Kronecker(factors), layout)

    def _level(self, name: object) -> tuple[str, Level]:
        column, _, own = text("a level", name).partition(".")
        dimension = self.dimensions.get(column)
        if dimension is None:
            raise InvalidParameterError(f"level {name!r}: the schema has no dimension {column!r}")
        if not own:
            return column, Level(np.arange(dimension.size), dimension.labels)
        if own == "total":
            return column, Level(np.zeros(dimension.size, dtype=np.int64), ("total",))
        known = dimension.levels()
        if own not in known:
            raise InvalidParameterError(f"level {name!r}: {column!r} has {', '.join(['total', *known])}")
        return column, known[own]

    def marginals(self, k: int) -> Marginals:
        """Return all tables of `k` dimensions.

        Raises:
            InvalidParameterError: More than there are, or amounts are summed.
        """
        if self.value is not None:
            raise InvalidParameterError("marginals count records: take a schema without values")
        found = Marginals(self.shape, k=k)
        axes = [(Names(name, axis.labels),) for name, axis in self.dimensions.items()]
        return laid_out(found, self._layout(tuple(tuple(axes[i] for i in s) for s in found.sets)))

    @classmethod
    def from_toml(cls, path: str | Path) -> Schema:
        """Return the schema that a file describes.

        Raises:
            DataTypeError: The path is none, or an entry is of another type.
            InputFileError: The file cannot be read, is no TOML, or has other entries.
            InvalidParameterError: An entry is out of range.
        """
        read = read_file(path_of(path), "schema")
        try:
            record = tomllib.loads(read.decode())
        except ValueError:
            raise InputFileError("the schema is no TOML") from None
        if record.keys() - {"dimensions", "user", "bounds", "values", "label"} or "dimensions" not in record:
            raise InputFileError("a schema has dimensions, user, bounds, values and label")
        try:
            axes = {}
            for name, entry in record["dimensions"].items():
                above = {} if not isinstance(entry, Mapping) else entry.get("hierarchy")
                own = entry if not above else {key: value for key, value in entry.items() if key != "hierarchy"}
                axes[name] = _named(name, own) if not above else Hierarchy(_named(name, own), above)  # type: ignore[arg-type]
            bounds = None if "bounds" not in record else Bounds(**record["bounds"])
            values = {name: Value(**value) for name, value in record.get("values", {}).items()}
        except SordinoError:
            raise
        except (TypeError, AttributeError):
            raise InputFileError("the schema has an entry of another form: see the documentation of tables") from None
        return cls(axes, user=record.get("user"), bounds=bounds, values=values or None, label=record.get("label"))

    def __eq__(self, other: object) -> bool:
        return self.digest == other.digest if isinstance(other, Schema) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"Schema({self.dimensions!r}, user={self.user!r}, bounds={self.bounds!r}, unit={self.unit!r})"


def _named(name: str, entry: Any) -> Dimension:
    try:
        return dimension_of(entry, _DIMENSIONS)
    except SordinoError as error:
        raise type(error)(f"dimension {name!r}: {error}") from None


def _dimension(name: object, axis: object) -> Dimension:
    if not isinstance(axis, Dimension):
        raise DataTypeError(f"dimension {name!r} must be Levels, Integers, Edges, Times or a Hierarchy")
    return axis


def _value(values: object) -> tuple[str | None, Value | None]:
    if values is None:
        return None, None
    if not isinstance(values, Mapping) or not all(isinstance(value, Value) for value in values.values()):
        raise DataTypeError("values must be a mapping from columns to sordino.tables.Value")
    if len(values) != 1:
        raise InvalidParameterError("values: one column; a table is made for each, and each release is charged")
    ((name, value),) = values.items()
    return text("a column", name), value


def _bounds_of(bounds: Bounds) -> tuple[int, int, int]:
    # Without a bound on all: what cells and rows in each allow.
    return bounds.max_cells, bounds.per_cell, bounds.records


def _value_of(value: Value) -> tuple[float, float, float]:
    return value.low, value.high, value.step
