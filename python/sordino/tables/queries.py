"""The bounding rule as a query, for who runs it in an engine of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from sordino._support.checks import one_of, text
from sordino.errors import DataTypeError, InvalidParameterError
from sordino.tables.engines.duckdb import DuckDialect
from sordino.tables.engines.spark import SparkDialect
from sordino.tables.engines.sql import statement
from sordino.tables.schema import Schema

__all__ = ["sql"]

_Engine = Literal["duckdb", "spark"]
_KINDS = (
    "integer", "unsigned", "boolean", "real", "decimal", "text", "bytes", "uuid", "instant", "local", "nanoseconds",
    "date",
)  # fmt: skip


def sql(schema: Schema, source: str, kinds: Mapping[str, str], *, request_id: str, dialect: _Engine = "duckdb") -> str:
    """Return the query that `tabulate` runs: its rows are cells that are not empty, by place, and their counts.

    What comes out is as private as the rows: it is the table, not a release.

    Args:
        schema: What is counted.
        source: A table, a view or a subquery in parentheses, as it shall stand in the query.
        kinds: What each column is: 'integer', 'unsigned', 'boolean', 'real', 'decimal', 'text', 'bytes', 'uuid',
            'instant' (a timestamp with a zone), 'local', 'nanoseconds' (local), or 'date'.
        request_id: Name of the request.
        dialect: 'duckdb' or 'spark'.

    Raises:
        DataTypeError: An argument is of the wrong type, or a column is not there or of a kind that is not read.
        InvalidParameterError: The dialect or a kind is unknown.
    """
    if not isinstance(schema, Schema):
        raise DataTypeError("schema must be a sordino.Schema")
    if not isinstance(kinds, Mapping):
        raise DataTypeError("kinds must be a mapping from columns to kinds")
    found = {text("a column", name): one_of("a kind", kind, _KINDS) for name, kind in kinds.items()}
    made = {"duckdb": DuckDialect, "spark": SparkDialect}[one_of("dialect", dialect, get_args(_Engine))](found)
    if any(axis.kind == "keys" for axis in schema.dimensions.values()):
        raise InvalidParameterError("keys are not known yet: make a schema with the levels that select_keys returns")
    return statement(schema, text("source", source), text("request_id", request_id), made)
