"""Spark: the bounding rule as SQL, or the core on every executor. Noise is drawn once, on the driver, by a release."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sordino.errors import InputFileError, InvalidParameterError
from sordino.tables.engines.sql import Dialect, statement
from sordino.tables.schema import Schema
from sordino.tables.tally import Tally

__all__ = ["SparkDialect", "is_spark", "partial_tables", "table_of_spark"]

_KINDS = {
    "tinyint": "integer", "smallint": "integer", "int": "integer", "bigint": "integer", "boolean": "boolean",
    "float": "real", "double": "real", "string": "text", "binary": "bytes", "date": "date", "timestamp": "instant",
    "timestamp_ntz": "local",
}  # fmt: skip
# What makes rows of one user depend on rows of others.
_REFUSED = re.compile(r"^[\s:+\-]*(GlobalLimit|LocalLimit|Sample|Window|Tail|Offset|Deduplicate\w*)\b", re.MULTILINE)


class SparkDialect(Dialect):
    """How Spark says it."""

    quote = "`"
    shift = "shiftright({0}, 31)"

    def text(self, value: str) -> str:
        """Return the bytes of text as a literal: no escapes, which a setting changes."""
        return f"X'{value.encode().hex()}'"

    def divided(self, number: str, by: int | str) -> str:
        """Return a quotient, rounded down."""
        return f"({number} div {by})"

    def ticks(self, name: str, kind: str) -> str:
        """Return microseconds since 1970."""
        column = self.named(name)
        if kind == "date":
            return f"(unix_date({column}) * 86400000000)"
        if kind == "instant":
            return f"unix_micros({column})"
        return f"timestampdiff(MICROSECOND, timestamp_ntz'1970-01-01 00:00:00', {column})"

    def key(self, name: str, kind: str) -> str:
        """Return a user, text as its bytes."""
        column = self.named(name)
        return f"cast({column} as binary)" if kind == "text" else column

    def number_of(self, key: str) -> str:
        """Return the first 15 hexadecimal digits of the MD5."""
        return f"cast(conv(substr(md5({key}), 1, 15), 16, 10) as bigint)"


def is_spark(data: object) -> bool:
    """Return whether data is a frame of Spark."""
    return type(data).__module__.startswith("pyspark.") and type(data).__name__ == "DataFrame"


def _checked(frame: Any) -> None:
    """Refuse frames in which a user's rows depend on those of others, as far as their plan says so.

    Raises:
        InvalidParameterError: They do.
    """
    if frame.isStreaming:
        raise InvalidParameterError("a streaming frame has no table: count its batches by a stream")
    if getattr(frame, "_jdf", None) is None:
        raise InvalidParameterError("a frame of Spark Connect does not show its plan: use a session of its own")
    found = sorted(set(_REFUSED.findall(frame._jdf.queryExecution().analyzed().toString())))
    if found:
        raise InvalidParameterError(
            f"the frame's plan has {', '.join(found)}: which rows of a user are there would depend on others"
        )


def table_of_spark(frame: Any, schema: Schema, request_id: str) -> NDArray[np.int64]:
    """Return the table of a frame's rows, flat, by SQL.

    Raises:
        InputFileError: Spark cannot read them.
        InvalidParameterError: A user's rows would depend on those of others.
    """
    _checked(frame)
    kinds = {}
    for name, kind in frame.dtypes:
        kinds[name] = "decimal" if kind.startswith("decimal") else _KINDS.get(kind, kind)
    view = f"sordino_{uuid.uuid4().hex}"
    frame.createOrReplaceTempView(view)
    query = statement(schema, view, request_id, SparkDialect(kinds))
    try:
        rows = frame.sparkSession.sql(query).collect()
    except Exception:  # whose message may quote a row
        raise InputFileError(
            "Spark cannot read the rows: its own log says why, and is as private as they are"
        ) from None
    finally:
        frame.sparkSession.catalog.dropTempView(view)
    table = np.zeros(schema.table_shape, dtype=np.int64).reshape(schema.cells, -1)
    for cell, *sums in rows:
        table[cell] = sums
    return table.reshape(-1)


def partial_tables(schema: Schema, request_id: str) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return a function for `DataFrame.mapInArrow` that makes a table of each part of the rows.

    Every user's rows must be in one part: `frame.repartition(schema.user).mapInArrow(partial_tables(...), "cell long,
    channel long, count long")`, whose sums by cell and channel are the table.
    """

    def partial(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa  # noqa: PLC0415 - on an executor

        tally = Tally(schema, request_id=request_id)
        for batch in batches:
            tally.update(batch)
        table = tally.table().counts.reshape(schema.cells, -1)
        cells, channels = np.nonzero(table)
        yield pa.record_batch({"cell": cells, "channel": channels, "count": table[cells, channels]})

    return partial
