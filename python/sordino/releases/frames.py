"""Answers as a frame: one column for each level of what was asked, then values, errors and intervals."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Collection, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from sordino._support.checks import one_of, path_of
from sordino._support.extras import arrow_of
from sordino._support.files import atomic_write
from sordino.errors import InvalidParameterError, MissingDependencyError, UnsupportedMechanismError
from sordino.releases.answers import Answers
from sordino.workloads import AllRanges, Histogram, Intervals, Kronecker, Marginals, Matrix, Workload
from sordino.workloads.base import Array
from sordino.workloads.layout import Channels, Layout

__all__ = [
    "NUMBERS",
    "answer_weights",
    "arrow_column",
    "column_names",
    "format_of",
    "frame_columns",
    "frame_of",
    "label_columns",
    "made_frame",
    "write_table",
]

_LIBRARIES = ("pandas", "polars", "pyarrow")
# A mean is not said where the count is below so many of its errors.
_LEAST_COUNT = 4.0


NUMBERS = ("value", "unbiased", "stderr", "lower", "upper")
"""What columns of numbers are called, there or not: files add to what frames have."""


class Labelled(Protocol):
    """Whatever has answers that are called something."""

    @property
    def workload(self) -> Workload:
        """What the answers answer."""

    @property
    def index(self) -> Any:
        """Labels of the cells, None where there are none."""

    @property
    def values(self) -> Array:
        """The answers."""

    @property
    def labels(self) -> Any:
        """Labels of the answers, None where there are none."""


def frame_of(release: Answers, level: float, library: str | None) -> Any:
    """Return the answers as a frame of a library, the first that is installed if None.

    Raises:
        MissingDependencyError: It is not installed.
    """
    return made_frame(frame_columns(release, level), library)


def frame_columns(release: Answers, level: float) -> dict[str, Any]:
    """Return the answers column by column."""
    layout = release.workload.layout
    if layout is not None and layout.channels is not None:
        return _of_amounts(release, layout, layout.channels)
    numbers = _answers(release, level)
    if layout is not None:
        return _beside(layout, list(layout.answers()), numbers)
    return label_columns(release) | numbers


def label_columns(release: Labelled) -> dict[str, Any]:
    """Return what answers are called: levels of a schema, attributes, ends of ranges, labels, or their places."""
    layout, workload = release.workload.layout, release.workload
    if layout is not None:
        return _beside(layout, list(layout.answers()), {})
    if isinstance(workload, Marginals):
        return _codes(workload)
    if isinstance(workload, AllRanges | Intervals):
        first, last = workload.ranges.T.tolist()
        cells = release.index if release.index is not None and len(release.index) == workload.length else None
        return {
            "first": first if cells is None else [cells[i] for i in first],
            "last": last if cells is None else [cells[i] for i in last],
        }
    if workload.answer_names is not None:
        return {"query": list(workload.answer_names)}
    places = range(workload.first_step, workload.first_step + release.values.size)
    return {"index": list(places) if release.labels is None else list(release.labels)}


def answer_weights(release: Answers) -> Array:
    """Return what each answer was multiplied by: weights of levels; ones elsewhere."""
    layout = release.workload.layout
    if layout is None:
        return np.ones(release.values.size)
    return np.array([weight for _, weight in layout.answers()])


def arrow_column(pa: Any, values: Any) -> Any:
    """Return values as a column of Arrow; labels of a type that it has not, as text."""
    if isinstance(values, np.ndarray):
        return pa.array(values)
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return pa.array([None if label is None else str(label) for label in values])


def _codes(workload: Marginals) -> dict[str, Any]:
    """Return the value of each attribute for every cell of the tables, None where a table has not that attribute."""
    attributes = sorted({i for s in workload.sets for i in s})
    columns: dict[str, list[int | None]] = {f"attribute {i}": [] for i in attributes}
    for s, shape in zip(workload.sets, workload.table_shapes, strict=True):
        codes = dict(zip(s, np.indices(shape).reshape(len(s), -1).tolist(), strict=True))
        size = math.prod(shape)
        for i, column in zip(attributes, columns.values(), strict=True):
            column.extend(codes.get(i, [None] * size))
    return columns


def _answers(release: Answers, level: float) -> dict[str, Array]:
    over = 1.0 / answer_weights(release)
    interval = release.interval(level)
    found = {"value": release.values, "stderr": release.stderr, "lower": interval.lower, "upper": interval.upper}
    return {name: np.asarray(values).reshape(-1) * over for name, values in found.items()}


def _of_amounts(release: Answers, layout: Layout, channels: Channels) -> dict[str, Any]:
    """Return counts, sums and means, from what is missing to the largest amounts and the amounts.

    With both numbers `a` and `b` of a group: count `(a + b)/H`, sum `low·count + step·b`, mean their ratio, whose
    error is that of `sum - mean·count` over the count. The covariance of `a` and `b` is what the error of `a + b` says
    of it.
    """
    workload = release.workload
    factors = workload.factors[:-1] if isinstance(workload, Kronecker) else [Histogram(workload.core.answers_len // 2)]
    if not isinstance(workload, Kronecker | Histogram):
        raise UnsupportedMechanismError("of amounts only counts() and group_by() make a frame")
    both = release.answer(Kronecker([*factors, Matrix(np.ones((1, 2)))]))
    answers = list(layout.answers())[::2]
    weights = np.array([weight for _, weight in answers])
    low, high = release.unbiased.reshape(-1, 2).T / weights
    of_low, of_high = (np.asarray(release.stderr).reshape(-1, 2).T / weights) ** 2
    of_both = (np.asarray(both.stderr).reshape(-1) / weights) ** 2
    covariance = 0.5 * (of_both - of_low - of_high)

    def error(of_a: Any, of_b: Any) -> Array:
        """Return the standard error of `of_a·a + of_b·b`."""
        squares = of_a**2 * of_low + of_b**2 * of_high + 2.0 * of_a * of_b * covariance
        found: Array = np.sqrt(np.maximum(squares, 0.0))
        return found

    least, height = channels.low, channels.height
    count = (low + high) / height
    total = least * count + channels.step * high
    count_error = error(1.0 / height, 1.0 / height)
    enough = count > _LEAST_COUNT * count_error
    mean = np.where(enough, total / np.where(enough, count, 1.0), np.nan)
    of_mean = np.where(enough, mean, 0.0)
    mean_error = error((least - of_mean) / height, (least - of_mean) / height + channels.step)
    numbers = {
        "count": count,
        "count_stderr": count_error,
        f"{channels.name}_sum": total,
        f"{channels.name}_sum_stderr": error(least / height, least / height + channels.step),
        f"{channels.name}_mean": mean,
        f"{channels.name}_mean_stderr": np.where(enough, mean_error / np.where(enough, count, 1.0), np.nan),
    }
    return _beside(layout, answers, numbers)


def _beside(layout: Layout, answers: Sequence[tuple[dict[str, str], float]], numbers: dict[str, Any]) -> dict[str, Any]:
    """Return labels, then numbers."""
    named = column_names(layout.levels, {*NUMBERS, *numbers})
    return {named[level]: [labels.get(level) for labels, _ in answers] for level in layout.levels} | numbers


def column_names(levels: Collection[str], numbers: Collection[str]) -> dict[str, str]:
    """Return what the columns of levels are called: one that is called like a number says that it is a level.

    All differ from each other and from the numbers, whatever levels are called.
    """
    taken = {*levels, *numbers}
    named: dict[str, str] = {}
    for level in levels:
        name = level
        if level in numbers:
            while name in taken:
                name += " (level)"
            taken.add(name)
        named[level] = name
    return named


def made_frame(columns: dict[str, Any], library: str | None) -> Any:
    """Return columns as a frame of a library, the first that is installed if None.

    Raises:
        InvalidParameterError: Another library.
        MissingDependencyError: It is not installed.
    """
    for name in _LIBRARIES if library is None else [one_of("library", library, _LIBRARIES)]:
        try:
            found = import_module(name)
        except ImportError:
            continue
        if name == "pyarrow":
            return found.table({name: arrow_column(found, column) for name, column in columns.items()})
        try:
            return found.DataFrame(columns)
        except (TypeError, ValueError, OverflowError):
            # Labels of a type that this library has not, or of several.
            texts = {key: [str(v) for v in c] if isinstance(c, list) else c for key, c in columns.items()}
            return found.DataFrame(texts)
    raise MissingDependencyError(f"a frame needs {library or 'pandas, polars or pyarrow'}: pip install it")


def format_of(path: Path, what: str) -> str:
    """Return how a file is written, by the end of its name.

    Raises:
        InvalidParameterError: It ends otherwise than in `.arrow` or `.parquet`.
    """
    suffix = path.suffix.lower()
    if suffix not in {".arrow", ".parquet"}:
        raise InvalidParameterError(f"a {what} is saved as .arrow or .parquet")
    return suffix


def write_table(
    path: str | Path,
    columns: dict[str, Any],
    metadata: dict[bytes, bytes] | Callable[[Any], dict[bytes, bytes]],
    what: str,
) -> Path:
    """Write columns as Arrow IPC or Parquet.

    Args:
        path: Ending in `.arrow` or `.parquet`.
        columns: What is written.
        metadata: What is written beside it, or what makes it of the table.
        what: What it is, for messages.

    Raises:
        InvalidParameterError: Another ending.
        InputFileError: The file cannot be written.
        MissingDependencyError: pyarrow is not installed.
    """
    path = path_of(path)
    suffix, pa = format_of(path, what), arrow_of(f"a saved {what}")
    table = pa.table({name: arrow_column(pa, column) for name, column in columns.items()})
    table = table.replace_schema_metadata(metadata(table) if callable(metadata) else metadata)
    sink = io.BytesIO()
    if suffix == ".parquet":
        arrow_of(f"a saved {what}", "parquet").write_table(table, sink)
    else:
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    return atomic_write(path, sink.getvalue(), what)
