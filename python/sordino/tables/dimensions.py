"""Dimensions of a table: public rules that map an entry of a column to a cell, by itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sordino._support.checks import integer, numbers, sequence, text
from sordino._support.records import record_digest
from sordino.errors import DataTypeError, InvalidParameterError
from sordino.tables.columns import Column
from sordino.workloads.base import MAX_LENGTH

__all__ = ["Dimension", "Edges", "Hierarchy", "Integers", "Level", "Levels", "dimension_of"]

_NOWHERE = -1


class Level(NamedTuple):
    """A grouping of a dimension's cells.

    Attributes:
        groups: Group of each cell, -1 for none.
        labels: Name of each group.
    """

    groups: NDArray[np.int64]
    labels: tuple[str, ...]


class Dimension(ABC):
    """An axis of a table.

    Attributes:
        kind: Name in files; never re-meant.
    """

    kind: ClassVar[str]

    @property
    @abstractmethod
    def labels(self) -> tuple[str, ...]:
        """Name of each cell."""

    @property
    def size(self) -> int:
        """Number of cells."""
        return len(self.labels)

    @abstractmethod
    def codes(self, column: Column, what: str) -> NDArray[np.int64]:
        """Return the cell of each row, negative for none.

        Args:
            column: Private.
            what: What the column is called, for messages.

        Raises:
            DataTypeError: A column of another type.
        """

    def middles(self, name: str, cells: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the numbers in the middle of cells.

        Raises:
            DataTypeError: The cells are no numbers.
        """
        raise DataTypeError(f"the dimension {name!r} has no points: they are made of Integers and Edges")

    @abstractmethod
    def record(self) -> dict[str, Any]:
        """Return what the cells are made of, as JSON: two dimensions with one record are the same."""

    def levels(self) -> dict[str, Level]:
        """Return the groupings of the cells beyond the cells themselves, by name."""
        return {}

    @abstractmethod
    def sql(self, column: str, dialect: Any) -> str:
        """Return the cell of a row as an expression of SQL, null for none."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Dimension):
            return NotImplemented
        return self.record() == other.record()

    def __hash__(self) -> int:
        return hash(record_digest(self.record()))


class Levels(Dimension):
    """Declared values: text, integers or truth values; what is not among them is nowhere, or in `other`.

    Args:
        values: The values, all of one type; public, never taken from the data.
        other: Name of one cell more, for every entry that is not among them; None leaves them out.

    Raises:
        DataTypeError: No sequence, or values of several types.
        InvalidParameterError: A value twice.
    """

    kind = "levels"

    def __init__(self, values: Sequence[str | int | bool], *, other: str | None = None) -> None:
        found = sequence("values", values, "text or integers")
        kinds = {
            bool if isinstance(v, bool | np.bool_) else int if isinstance(v, int | np.integer) else type(v)
            for v in found
        }
        if kinds - {str, int, bool, np.str_} or len({str if issubclass(k, str) else k for k in kinds}) > 1:
            raise DataTypeError("values must be text, or integers, or truth values: all of one type")
        self.of_text = bool(kinds & {str, np.str_})
        self.values: tuple[str | int, ...] = tuple(text("a value", v) if self.of_text else int(v) for v in found)
        if len(set(self.values)) < len(found):
            raise InvalidParameterError("values must be given once each")
        if self.of_text and any("\ud800" <= character <= "\udfff" for v in self.values for character in str(v)):
            raise InvalidParameterError("values must be text that has bytes in UTF-8")
        if not self.of_text:
            for value in self.values:
                integer("a value", value, least=-(2**63), most=2**63 - 1)
        self._truth = bool in kinds
        self.other = None if other is None else text("other", other)
        if self.other is not None and not self.values:
            raise InvalidParameterError("other is the cell of what is not among the values: give some")
        if self.other in self.labels[: len(self.values)]:
            raise InvalidParameterError("other must not be the name of a value")

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The values as text, then `other`."""
        named = tuple(str(bool(v)).lower() if self._truth else str(v) for v in self.values)
        return named if self.other is None else (*named, self.other)

    @cached_property
    def _places(self) -> dict[object, int]:
        return {v.encode() if isinstance(v, str) else v: at for at, v in enumerate(self.values)}

    def codes(self, column: Column, what: str) -> NDArray[np.int64]:
        """Return the place of each entry among the values.

        Raises:
            DataTypeError: A column of another type.
        """
        found = column.matched(what, self._places, self.of_text)
        return found if self.other is None else np.where(found == -1, len(self.values), found)

    def record(self) -> dict[str, Any]:
        """Return the values."""
        of = "text" if self.of_text else "truth values" if self._truth else "integers"
        return {"kind": self.kind, "of": of, "values": list(self.values), "other": self.other}

    def sql(self, column: str, dialect: Any) -> str:
        """Return the place among the values."""
        literals = [dialect.text(v) if isinstance(v, str) else str(v) for v in self.values]
        rest = None if self.other is None else len(self.values)
        return str(dialect.place(dialect.value(column, self.of_text), literals, rest))

    def __repr__(self) -> str:
        return f"Levels(<{len(self.values)} values>{'' if self.other is None else f', other={self.other!r}'})"


class Integers(Dimension):
    """Integers from `low` to `high`, both included; others are nowhere.

    Raises:
        DataTypeError: No integers.
        InvalidParameterError: `high` is below `low`, or there are more than 2**26.
    """

    kind = "integers"

    def __init__(self, low: int, high: int) -> None:
        self.low = integer("low", low, least=1 - 2**62, most=2**62 - 1)
        self.high = integer("high", high, least=self.low, most=min(2**62 - 1, self.low + MAX_LENGTH - 1))

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The integers as text."""
        return tuple(map(str, range(self.low, self.high + 1)))

    @property
    def size(self) -> int:
        """Number of integers."""
        return self.high - self.low + 1

    def codes(self, column: Column, what: str) -> NDArray[np.int64]:
        """Return what each entry is above `low`.

        Raises:
            DataTypeError: A column of another type.
        """
        found, known = column.integers(what)
        # Without a sign what is below `low` is far above: one comparison, also where the difference goes around.
        above = np.subtract(found, self.low, dtype=np.int64)
        inside = above.view(np.uint64) < self.size
        return np.where(inside if column.valid is None and column.kind == "integer" else inside & known, above, -1)

    def middles(self, name: str, cells: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the integers."""
        return (self.low + cells).astype(np.float64)

    def record(self) -> dict[str, Any]:
        """Return both ends."""
        return {"kind": self.kind, "low": self.low, "high": self.high}

    def sql(self, column: str, dialect: Any) -> str:
        """Return what an entry is above `low`."""
        read = dialect.whole(column)
        return f"case when {read} >= {self.low} and {read} <= {self.high} then {read} - ({self.low}) end"

    def __repr__(self) -> str:
        return f"Integers({self.low}, {self.high})"


class Edges(Dimension):
    """Half-open bins `[edge_i, edge_(i+1))` of numbers; others are nowhere.

    Args:
        edges: Finite and strictly increasing, at least two; public, never taken from the data.

    Raises:
        DataTypeError: No numbers.
        InvalidParameterError: Fewer than two, not increasing, or not finite.
    """

    kind = "edges"

    def __init__(self, edges: ArrayLike) -> None:
        found = numbers("edges", edges) + 0.0  # of both zeros the one without a sign
        if len(found) < 2 or not np.isfinite(found).all() or (np.diff(found) <= 0).any():
            raise InvalidParameterError("edges must be finite and strictly increasing, at least two")
        found.flags.writeable = False
        self.edges: NDArray[np.float64] = found

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The bins as intervals."""
        named = [f"{edge:.12g}" for edge in self.edges]
        return tuple(f"[{low}, {high})" for low, high in pairwise(named))

    @property
    def size(self) -> int:
        """Number of bins."""
        return len(self.edges) - 1

    def codes(self, column: Column, what: str) -> NDArray[np.int64]:
        """Return the bin of each entry.

        Raises:
            DataTypeError: A column of another type.
        """
        found, known = column.reals(what)
        inside = known & (found >= self.edges[0]) & (found < self.edges[-1])
        return np.where(inside, np.searchsorted(self.edges, np.where(inside, found, 0.0), side="right") - 1, _NOWHERE)

    def middles(self, name: str, cells: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the middle of each bin."""
        # Halves first: a sum of large edges might have no number.
        return 0.5 * self.edges[cells] + 0.5 * self.edges[cells + 1]

    def record(self) -> dict[str, Any]:
        """Return the edges."""
        return {"kind": self.kind, "edges": self.edges.tolist()}

    def sql(self, column: str, dialect: Any) -> str:
        """Return the bin of an entry."""
        return str(dialect.binned(dialect.real(column), [dialect.real_literal(edge) for edge in self.edges.tolist()]))

    def __repr__(self) -> str:
        return f"Edges(<{self.size} bins from {self.edges[0]:g} to {self.edges[-1]:g}>)"


class Hierarchy(Dimension):
    """A dimension with levels above its cells, by public tables: cities, their counties, their states.

    Args:
        base: The cells.
        levels: For each level the group of every cell: in the order of the cells, or by the cell's value; None for no
            group.

    Raises:
        DataTypeError: An argument is of another type.
        InvalidParameterError: A level has no name or knows no group, or names cells that there are not.
    """

    kind = "hierarchy"

    def __init__(
        self, base: Levels | Integers, levels: Mapping[str, Mapping[Any, str | None] | Sequence[str | None]]
    ) -> None:
        if not isinstance(base, Levels | Integers):
            raise DataTypeError("base must be Levels or Integers")
        if not isinstance(levels, Mapping) or not levels:
            raise DataTypeError("levels must be a mapping from names to tables")
        self.base = base
        named = {label: at for at, label in enumerate(base.labels)}
        self._levels: dict[str, Level] = {}
        for name, table in levels.items():
            groups: list[str | None] = [None] * base.size
            if isinstance(table, Mapping):
                for value, group in table.items():
                    if str(value) not in named:
                        raise InvalidParameterError(f"level {name!r} names a cell that the base has not")
                    groups[named[str(value)]] = group
            else:
                groups = list(sequence("a level", table, "names of groups"))
                if len(groups) != base.size:
                    raise InvalidParameterError(f"level {name!r} must have one group for each cell")
            labels = tuple(dict.fromkeys(text("a group", group) for group in groups if group is not None))
            if not labels:
                raise InvalidParameterError(f"level {name!r} knows no group")
            places = {label: at for at, label in enumerate(labels)}
            codes = np.array([-1 if group is None else places[group] for group in groups], dtype=np.int64)
            self._levels[_level_name(name)] = Level(codes, labels)

    @property
    def labels(self) -> tuple[str, ...]:
        """Those of the base."""
        return self.base.labels

    def codes(self, column: Column, what: str) -> NDArray[np.int64]:
        """Return those of the base.

        Raises:
            DataTypeError: A column of another type.
        """
        return self.base.codes(column, what)

    def levels(self) -> dict[str, Level]:
        """Return the levels above the cells."""
        return dict(self._levels)

    def record(self) -> dict[str, Any]:
        """Return the base's; levels are no part of the cells."""
        return self.base.record()

    def sql(self, column: str, dialect: Any) -> str:
        """Return that of the base."""
        return self.base.sql(column, dialect)

    def __repr__(self) -> str:
        return f"Hierarchy({self.base!r}, levels={list(self._levels)})"


def _level_name(name: object) -> str:
    found = text("a level", name)
    if "." in found or found == "total":
        raise InvalidParameterError("the name of a level has no dot, and is not 'total'")
    return found


def dimension_of(record: Mapping[str, Any], kinds: Mapping[str, Any]) -> Dimension:
    """Return the dimension that a table of TOML describes: `{levels = [...]}`, `{integers = {low = 0, high = 9}}`.

    Raises:
        DataTypeError: Several kinds or none, or an argument that it has not.
        InvalidParameterError: An argument is out of range.
    """
    if not isinstance(record, Mapping) or len(record.keys() & kinds.keys()) != 1:
        raise DataTypeError(f"a dimension must be one of {', '.join(sorted(kinds))}")
    (kind,) = record.keys() & kinds.keys()
    own, rest = record[kind], {name: value for name, value in record.items() if name != kind}
    try:
        return kinds[kind](**own, **rest) if isinstance(own, Mapping) else kinds[kind](own, **rest)  # type: ignore[no-any-return]
    except TypeError as error:
        if isinstance(error, DataTypeError):
            raise
        raise DataTypeError(f"{kind} has other arguments") from None
