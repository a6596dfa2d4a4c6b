"""From records to a bounded table, by whatever engine holds them."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

from sordino._support.checks import one_of, text
from sordino.errors import DataTypeError, InputFileError, InvalidParameterError
from sordino.tables.csv_files import csv_frames
from sordino.tables.engines.duckdb import is_relation, pattern, table_of_parquet, table_of_relation
from sordino.tables.engines.spark import is_spark, table_of_spark
from sordino.tables.schema import Schema
from sordino.tables.tally import Table, Tally

__all__ = ["tabulate"]

Engine = Literal["auto", "core", "duckdb", "spark"]


def tabulate(
    data: object,
    schema: Schema,
    *,
    request_id: str,
    memory: str = "2GB",
    temporary: str | os.PathLike[str] | None = None,
    engine: Engine = "auto",
    progress: Callable[[int, int], object] | None = None,
) -> Table:
    """Return the bounded table of records: the same integers from every engine.

    What a user's rows beyond the bounds become is decided by a public rule that sees this user alone, and a public seed
    made of the schema and the request: the same request gives the same table. No message says what is in the rows.

    Args:
        data: Columns by name (a mapping; a frame of pandas or polars; a table, batch or reader of Arrow) or an iterable
            of such, or paths of CSV files, which the core counts; paths of Parquet files, a folder of them, or a
            relation of DuckDB, which DuckDB counts; a frame of Spark. Of CSV everything is text that each dimension
            reads for itself.
        schema: What is counted.
        request_id: Name of the request; give the release the same one.
        memory: What DuckDB may take before it writes to disk, for files.
        temporary: Where it writes: as private as the rows.
        engine: 'auto' goes by what the data are.
        progress: Called with the bytes of files that were read and those of all of them: of CSV files from time to
            time, of Parquet files at first. Sizes of files are public.

    Raises:
        DataTypeError: An argument is of the wrong type, a column is missing, or of a type that is not read.
        ShapeError: Columns of different lengths.
        InputFileError: Files cannot be read.
        InvalidParameterError: Users are of several kinds, or this engine does not count this data.
        MissingDependencyError: The engine is not installed.
    """
    if not isinstance(schema, Schema):
        raise DataTypeError("schema must be a sordino.Schema")
    request_id = text("request_id", request_id)
    one_of("engine", engine, get_args(Engine))
    if progress is not None and not callable(progress):
        raise DataTypeError("progress must be callable")
    paths = _paths(data)
    of_csv = bool(paths) and not any(_is_parquet(path) for path in paths)
    own = "core" if of_csv else "duckdb" if paths or is_relation(data) else "spark" if is_spark(data) else "core"
    if engine not in {"auto", own}:
        raise InvalidParameterError(f"engine={engine!r} does not count this data: it is for {own!r}")
    frame: Any = data
    if own == "duckdb" and not paths:
        return Table(schema, table_of_relation(frame, schema, request_id))
    if own == "duckdb":
        if not all(map(_is_parquet, paths)):
            raise InputFileError("give Parquet files, or CSV files: all of one format")
        if progress is not None:
            progress(0, sum(Path(file).stat().st_size for path in paths for file in _files(path)))
        found = table_of_parquet(paths, schema, request_id, memory=text("memory", memory), temporary=temporary)
        return Table(schema, found)
    if own == "spark":
        return Table(schema, table_of_spark(frame, schema, request_id))
    tally = Tally(schema, request_id=request_id)
    tally.update(csv_frames(paths, schema.columns, progress) if of_csv else data)
    return tally.table()


def _paths(data: Any) -> list[str]:
    """Return paths, none if the data are something else."""
    listed = list(data) if isinstance(data, list | tuple) else [data]
    named = all(isinstance(path, str | os.PathLike) for path in listed)
    return [str(os.fspath(path)) for path in listed] if listed and named else []


def _files(path: str) -> list[str]:
    return glob.glob(pattern(path), recursive=True)  # noqa: PTH207 - patterns begin anywhere


def _is_parquet(path: str) -> bool:
    return Path(path).is_dir() or path.lower().endswith((".parquet", ".pq"))
