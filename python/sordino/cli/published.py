"""What releases write: names and numbers of the answers, as JSON, CSV or Parquet."""

import csv
import io
from pathlib import Path
from typing import Any

import click
import numpy as np

import sordino as so
from sordino.cli.answers import name_answers
from sordino.cli.inputs import Source
from sordino.cli.outputs import to_json, write_text
from sordino.cli.tables import require_arrow, write_parquet
from sordino.releases.frames import NUMBERS, column_names
from sordino.workloads.base import Array

__all__ = ["check_output", "write_columns", "write_release"]


def check_output(path: Path | None) -> None:
    """Find out before anything is spent whether the output can be written.

    Raises:
        MissingDependencyError: A Parquet file needs pyarrow.
    """
    if path is not None and path.suffix.lower() == ".parquet":
        require_arrow()


def write_release(
    release: so.Release, level: float, source: Source, path: Path | None, extra: dict[str, Any] | None = None
) -> None:
    """Write what is published, as JSON (to the standard output without a path), CSV or Parquet: the same columns.

    Names, values, standard errors, intervals. Answers that were projected or otherwise changed come with the unbiased
    ones, which standard errors and intervals are about; tables recovered from a sketch, or read off a tree, have values
    only.

    Args:
        release: What is published.
        level: Of the intervals.
        source: What the cells are called.
        path: Where to.
        extra: Further facts, for JSON.

    Raises:
        InputFileError: The file cannot be written.
        MissingDependencyError: A Parquet file needs pyarrow.
    """
    numbers = _numbers(release, level)
    names = name_answers(release.workload, source)
    named = column_names(names, NUMBERS)
    columns = {named[name]: labels for name, labels in names.items()}
    columns |= {name: column.tolist() for name, column in numbers.items()}
    if path is not None and path.suffix.lower() in {".csv", ".parquet"}:
        write_columns(columns, path)
        return
    record = _release_record(release) | {"answers": columns}
    levels = {} if list(numbers) == ["value"] else {"level": level}
    text = to_json(record | levels | (extra or {})) + "\n"
    if path is None:
        click.echo(text, nl=False)
    else:
        write_text(path, text)


def _numbers(release: so.Release, level: float) -> dict[str, Array]:
    if not release.fit.has_intervals:
        return {"value": release.values.reshape(-1)}
    interval = release.interval(level)
    found = (release.values, release.unbiased, release.stderr, interval.lower, interval.upper)
    numbers = {name: np.asarray(column).reshape(-1) for name, column in zip(NUMBERS, found, strict=True)}
    if not release.post_processing:
        del numbers["unbiased"]
    return numbers


def write_columns(columns: dict[str, list[Any]], path: Path) -> None:
    """Write columns as CSV or Parquet.

    Raises:
        InputFileError: The file cannot be written.
        MissingDependencyError: A Parquet file needs pyarrow.
    """
    if path.suffix.lower() == ".parquet":
        write_parquet(path, columns)
        return
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    write_text(path, text.getvalue())


def _release_record(release: so.Release) -> dict[str, Any]:
    fit, projection = release.fit, getattr(release, "projection", None)
    request = fit.request
    record = {
        "workload": repr(request.workload),
        "mechanism": fit.name,
        "guarantee": fit.guarantee(),
        "privacy": request.privacy.to_json(),
        "unit": request.unit.to_json(),
        "plan_digest": fit.digest,
        "private": release.private,
        "accounted": release.accounted,
        "rmse": fit.rmse,
        "rmse_kind": fit.rmse_kind,
        "max_stderr": fit.max_stderr,
    }
    if request.constraint is not None and projection is not None:
        record["projection"] = {
            "constraint": request.constraint.to_json(),
            "gap": projection.gap,
            "iterations": projection.iterations,
        }
    return record
