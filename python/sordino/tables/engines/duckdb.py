"""DuckDB, for files and whatever does not fit into memory."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sordino.errors import InputFileError, MissingDependencyError
from sordino.tables.engines.sql import Dialect, statement
from sordino.tables.schema import Schema

__all__ = ["DuckDialect", "is_relation", "pattern", "table_of_parquet", "table_of_relation"]

_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
_KINDS = {
    "UBIGINT": "unsigned", "BOOLEAN": "boolean", "FLOAT": "real", "DOUBLE": "real", "VARCHAR": "text", "BLOB": "bytes",
    "UUID": "uuid", "DATE": "date", "TIMESTAMP": "local", "TIMESTAMP_S": "local", "TIMESTAMP_MS": "local",
    "TIMESTAMP_NS": "nanoseconds", "TIMESTAMP WITH TIME ZONE": "instant",
} | dict.fromkeys(_INTEGERS, "integer")  # fmt: skip


class DuckDialect(Dialect):
    """How DuckDB says it."""

    quote = '"'
    # Of numbers without a sign: shifts of others are refused where they are negative.
    shift = "(({0} // 2147483648) + case when {0} < 0 and {0} % 2147483648 <> 0 then -1 else 0 end)"

    def text(self, value: str) -> str:
        """Return the bytes of text as a literal."""
        return f"unhex('{value.encode().hex()}')"

    def divided(self, number: str, by: int | str) -> str:
        """Return a quotient, rounded down."""
        return f"({number} // {by})"

    def ticks(self, name: str, kind: str) -> str:
        """Return microseconds since 1970, rounded down."""
        column = self.named(name)
        if kind == "nanoseconds":
            ticks = f"epoch_ns({column})"
            return f"(({ticks} - (({ticks} % 1000 + 1000) % 1000)) // 1000)"
        return f"epoch_us({column})" if kind == "instant" else f"epoch_us(try_cast({column} as timestamp))"

    def key(self, name: str, kind: str) -> str:
        """Return a user, text and UUIDs as their bytes."""
        column = self.named(name)
        if kind == "uuid":
            return f"unhex(replace(cast({column} as varchar), '-', ''))"
        return f"encode(cast({column} as varchar))" if kind == "text" else column

    def number_of(self, key: str) -> str:
        """Return the first 15 hexadecimal digits of the MD5."""
        return f"cast('0x' || substr(md5({key}), 1, 15) as bigint)"


def is_relation(data: object) -> bool:
    """Return whether data is a relation of DuckDB."""
    return type(data).__name__ == "DuckDBPyRelation"


def _duckdb() -> Any:
    try:
        return importlib.import_module("duckdb")
    except ImportError:
        raise MissingDependencyError("files are tabulated by DuckDB: pip install 'sordino[duckdb]'") from None


def _kinds(columns: Sequence[str], types: Sequence[Any]) -> dict[str, str]:
    found = {}
    for name, kind in zip(columns, types, strict=True):
        said = str(kind).upper()
        kinds = {"DECIMAL": "decimal", "ENUM": "text"}
        found[name] = _KINDS.get(said) or kinds.get(said.split("(")[0]) or said
    return {name: kind for name, kind in found.items() if list(columns).count(name) == 1}


def table_of_relation(relation: Any, schema: Schema, request_id: str) -> NDArray[np.int64]:
    """Return the table of a relation's rows, flat.

    Raises:
        InputFileError: They cannot be read: a cast that fails in the relation itself.
    """
    try:
        dialect = DuckDialect(_kinds(relation.columns, relation.types))
        query = statement(schema, "sordino_source", request_id, dialect)
        return _filled(schema, relation.query("sordino_source", query))
    except _duckdb().Error:  # whose message may quote a row
        raise InputFileError("DuckDB cannot read the rows") from None


def table_of_parquet(
    paths: Sequence[str],
    schema: Schema,
    request_id: str,
    *,
    memory: str,
    temporary: str | os.PathLike[str] | None,
) -> NDArray[np.int64]:
    """Return the table of the rows of Parquet files, flat. Names of folders, `key=value`, are columns of text.

    Raises:
        InputFileError: They cannot be read, or a column has several types: the first file would decide for all.
        MissingDependencyError: DuckDB is not installed.
    """
    duckdb = _duckdb()
    with duckdb.connect(config=_config(memory, temporary)) as connection:
        try:
            names = ", ".join("'" + pattern(path).replace("'", "''") + "'" for path in paths)
            kinds = "name, type, type_length, converted_type, scale, precision, logical_type"
            columns = ", ".join("'" + name.replace("'", "''") + "'" for name in schema.columns)
            several = connection.sql(
                f"select name from (select distinct {kinds} from parquet_schema([{names}]) where name in ({columns})) "
                "group by name having count(*) > 1"
            ).fetchall()
            if several:
                raise InputFileError(f"the column {several[0][0]!r} has several types in these files: cast it to one")
            options = "hive_partitioning=true, hive_types_autocast=false"
            relation = connection.sql(f"select * from read_parquet([{names}], {options})")
            return table_of_relation(relation, schema, request_id)
        except duckdb.Error:
            raise InputFileError("the input files cannot be read") from None


def _config(memory: str, temporary: Any) -> dict[str, str]:
    return {"memory_limit": memory} | ({} if temporary is None else {"temp_directory": os.fspath(temporary)})


def pattern(path: str) -> str:
    """Return which files a path stands for: of a folder all that are below it."""
    return str(Path(path) / "**" / "*.parquet") if Path(path).is_dir() else path


def _filled(schema: Schema, rows: Any) -> NDArray[np.int64]:
    """Return the table, from the cells that are not empty."""
    table = np.zeros(schema.table_shape, dtype=np.int64).reshape(schema.cells, -1)
    found = rows.fetchnumpy()
    columns = [np.asarray(column, dtype=np.int64) for column in found.values()]
    for channel, column in enumerate(columns[1:]):
        table[columns[0], channel] = column
    return table.reshape(-1)
