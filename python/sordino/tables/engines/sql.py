"""The bounding rule as SQL, from kinds of columns alone: nothing that is read decides what is asked.

Only comparisons, never casts that round; operands of divisions are not negative and products below 2**62, so that no
engine raises or rounds in its own way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from sordino.errors import DataTypeError
from sordino.tables.schema import Rule, Schema

__all__ = ["Dialect", "statement"]

_P = 2**31 - 1
_MOST = 2**61
# Of so few values one is found by asking for each.
_FEW = 32


class Dialect(ABC):
    """How an engine says it.

    Args:
        kinds: What the columns are: 'integer', 'unsigned', 'boolean', 'real', 'decimal', 'text', 'bytes', 'uuid',
            'instant', 'local', 'nanoseconds' (local), or 'date'.
    """

    quote: str
    shift: str

    def __init__(self, kinds: Mapping[str, str]) -> None:
        self._kinds = kinds
        self.joins: list[str] = []

    def kind(self, name: str) -> str:
        """Return what a column is.

        Raises:
            DataTypeError: It is not there.
        """
        if name not in self._kinds:
            raise DataTypeError(f"the data must have one column {name!r}")
        return self._kinds[name]

    def named(self, name: str) -> str:
        """Return the name of a column, quoted."""
        return f"{self.quote}{name.replace(self.quote, 2 * self.quote)}{self.quote}"

    def _only(self, name: str, kinds: set[str], cast: str) -> str:
        kind = self.kind(name)
        if kind not in kinds:
            raise DataTypeError(f"the column {name!r} cannot be read from a column of type {kind}: cast it to {cast}")
        return kind

    @abstractmethod
    def text(self, value: str) -> str:
        """Return text as a literal."""

    @abstractmethod
    def divided(self, number: str, by: int | str) -> str:
        """Return a quotient of integers that are not negative, rounded down."""

    @abstractmethod
    def ticks(self, name: str, kind: str) -> str:
        """Return microseconds since 1970 of a timestamp or a date."""

    @abstractmethod
    def key(self, name: str, kind: str) -> str:
        """Return a user, text as its bytes: no collation tells which are the same."""

    @abstractmethod
    def number_of(self, key: str) -> str:
        """Return the integer that stands for a user that is bytes."""

    def real_literal(self, value: float) -> str:
        """Return a float as a literal."""
        return f"cast('{value!r}' as double)"

    def real(self, name: str) -> str:
        """Return a column as floats."""
        self._only(name, {"integer", "unsigned", "boolean", "real", "decimal"}, "numbers")
        return f"try_cast({self.named(name)} as double)"

    def whole(self, name: str) -> str:
        """Return a column as integers, null where it is none."""
        column = self.named(name)
        match self._only(name, {"integer", "unsigned", "boolean", "real", "decimal"}, "integers"):
            case "decimal":
                return f"case when {column} = floor({column}) then try_cast({column} as bigint) end"
            case "real":
                # Of an infinity there is no floor in Spark, which raises.
                whole = f"case when {column} = floor({column}) then try_cast({column} as bigint) end"
                return f"case when {column} > -{2**62} and {column} < {2**62} then {whole} end"
        return f"try_cast({column} as bigint)"

    def value(self, name: str, of_text: bool) -> str:
        """Return a column as what declared values are compared with."""
        if of_text:
            return self.key(name, self._only(name, {"text"}, "text"))
        return self.whole(name)

    def place(self, read: str, literals: Sequence[str], rest: int | None) -> str:
        """Return the place of a value among literals, `rest` for another; null for none."""
        other = "" if rest is None else f" else {rest}"
        if len(literals) <= _FEW:
            cases = " ".join(f"when {literal} then {at}" for at, literal in enumerate(literals))
            return f"case when {read} is null then null else case {read} {cases}{other} end end"
        alias = f"levels{len(self.joins)}"
        rows = ", ".join(f"({literal}, {at})" for at, literal in enumerate(literals))
        # Names that no column of a table of records has.
        entry, place = (f"sordino_{alias}_{what}" for what in ("entry", "place"))
        self.joins.append(
            f"left join (select * from (values {rows}) as v({entry}, {place})) as {alias} on {read} = {entry}"
        )
        return place if rest is None else f"case when {read} is null then null else coalesce({place}, {rest}) end"

    def binned(self, number: str, edges: Sequence[str]) -> str:
        """Return the half-open bin that a number is in, by halves."""

        def within(first: int, last: int) -> str:
            if last - first == 1:
                return str(first)
            middle = (first + last) // 2
            return f"case when {number} < {edges[middle]} then {within(first, middle)} else {within(middle, last)} end"

        inside = f"{number} >= {edges[0]} and {number} < {edges[-1]}"
        return f"case when {inside} then {within(0, len(edges) - 1)} end"

    def instant(self, name: str, pieces: Sequence[tuple[int, int]]) -> str:
        """Return the instant of a timestamp; without a zone by the offsets that clocks have from which time on."""
        kind = self._only(name, {"instant", "local", "nanoseconds", "date"}, "timestamps")

        def of_local(ticks: str, first: int, last: int) -> str:
            if last - first == 1:
                return f"{ticks} - ({pieces[first][1]})"
            middle = (first + last) // 2
            lower, upper = of_local(ticks, first, middle), of_local(ticks, middle, last)
            return f"case when {ticks} < {pieces[middle][0]} then {lower} else {upper} end"

        ticks = self.ticks(name, kind)
        if kind == "instant":
            return ticks
        # Beyond all calendars an offset more would be beyond all integers.
        near = f"case when {ticks} > -{2**62} and {ticks} < {2**62} then {ticks} end"
        return f"({of_local(f'({near})', 0, len(pieces))})"

    def user(self, name: str) -> tuple[str, str, str]:
        """Return the key of a user, and both halves of the integer that stands for it."""
        kind = self._only(name, {"integer", "unsigned", "text", "bytes", "uuid"}, "integers or text")
        key = self.key(name, kind)
        if kind == "integer":
            key = f"cast({key} as bigint)"
        number = key if kind in {"integer", "unsigned"} else self.number_of(key)
        return key, f"cast({number} & {_P} as bigint)", f"cast({self.shift.format(number)} & {_P} as bigint)"


def statement(schema: Schema, source: str, request_id: str, dialect: Dialect) -> str:
    """Return a query whose rows are the cells that are not empty: place, and one or two sums.

    Args:
        schema: What is counted.
        source: Table or subquery with the columns.
        request_id: Name of the request.
        dialect: Of an engine, which knows the columns; not used before.
    """
    cell = _cell(schema, dialect)
    amount, height = "", 0 if schema.value is None else schema.value.height
    if schema.value is not None and schema.value_column is not None:
        real = dialect.real(schema.value_column)
        low, high, step = (dialect.real_literal(v) for v in (schema.value.low, schema.value.high, schema.value.step))
        cell = f"case when {real} is not null and not isnan({real}) then {cell} end"
        amount = f", cast(floor((least(greatest({real}, {low}), {high}) - {low}) / {step}) as bigint) as t"
    who = ""
    if schema.user is not None:
        key, lower, upper = dialect.user(schema.user)
        who = f"{key} as u, {lower} as u0, {upper} as u1, "
    rows = f"select {who}cast({cell} as bigint) as cell{amount} from {source} {' '.join(dialect.joins)}"
    if schema.user is None:
        sums = f"sum({height} - t), sum(t)" if height else "count(*)"
        table = f"select cell, {_saturated(sums)} from encoded where cell is not null group by cell"
        return f"with encoded as ({rows}) {table}"
    return _bounded(schema.rule(request_id), rows, dialect)


def _cell(schema: Schema, dialect: Dialect) -> str:
    found = "0"
    for name, dimension in schema.dimensions.items():
        found = f"({found} * {dimension.size} + ({dimension.sql(name, dialect)}))"
    return found


def _saturated(sums: str) -> str:
    return ", ".join(f"cast(least({part}, {_MOST}) as bigint)" for part in sums.split(", "))


def _bounded(rule: Rule, rows: str, dialect: Dialect) -> str:
    a0, a1, a2, a3, a4, a5 = rule.seed
    per_cell, most, height = rule.per_cell, rule.max_records, rule.height
    over = dialect.divided
    counted = f"least(count(*), {2**62})" if height else f"least(count(*), {per_cell})"
    amounts = f", cast(least(sum(t), {2**62}) as bigint) as s" if height else ""
    carried = ", n, s" if height else ""
    weight = (
        f"case when total <= {most} then c else "
        f"{over(f'(q * {most} + f % total)', 'total')} - {over(f'((q - c) * {most} + f % total)', 'total')} end"
    )
    tail = f"select cell, {_saturated('sum(w)')} from w group by cell"
    if height:
        # Of very many rows of a user in a cell 16 bits at a time are dropped, as of the sum of their amounts.
        shift = f"(case when n >= {2**47} then {2**32} when n >= {2**31} then {2**16} else 1 end)"
        tail = f"""
            , v as (select cell, w, f % total as phase, {over("n", shift)} as n, {over("s", shift)} as s from w),
            l as (select cell, w, phase, n, least(s, n * {height}) as s from v),
            b as (select cell, w, w * {over("s", "n")} + {over("(w * (s % n) + phase % n)", "n")} as high from l)
            select cell, {_saturated(f"sum(w * {height} - high), sum(high)")} from b group by cell"""
    return f"""
        with encoded as ({rows}),
        t as (select u, u0, u1, cell, cast({counted} as bigint) as n{amounts} from encoded
              where u is not null and cell is not null group by u, u0, u1, cell),
        h as (select u, cell, n, cast(least(n, {per_cell}) as bigint) as c{", s" if height else ""},
              ({a0} * u0 % {_P} + {a1} * u1 % {_P}) % {_P} as h from t),
        x as (select *, (h + {a2} * cell % {_P} + {a3}) % {_P} as x from h),
        y as (select *, (x * x % {_P} * ((x + {a4}) % {_P}) % {_P} + {a5} * cell) % {_P} as y from x),
        z as (select *, y * y % {_P} * ((y + {a3}) % {_P}) % {_P} as z from y),
        r as (select *, row_number() over (partition by u order by z asc, cell asc) as place from z),
        k as (select u, cell, c, (h + {a4}) % {_P} as f{carried}, z from r where place <= {rule.max_cells}),
        m as (select cell, c, f{carried}, cast(sum(c) over (partition by u) as bigint) as total,
              cast(sum(c) over (partition by u order by z asc, cell asc rows unbounded preceding) as bigint) as q from
              k),
        w as (select cell, {weight} as w, f, total{carried} from m)
        {tail}"""
