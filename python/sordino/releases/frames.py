"""Answers as a frame: one column for each level of what was asked, then values, errors and intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from sordino._support.checks import one_of
from sordino.errors import MissingDependencyError, UnsupportedMechanismError
from sordino.workloads import Histogram, Kronecker, Marginals, Matrix
from sordino.workloads.base import Array
from sordino.workloads.layout import Channels, Layout

if TYPE_CHECKING:
    from sordino.releases.release import Release

__all__ = ["frame_columns", "frame_of", "made_frame"]

_LIBRARIES = ("pandas", "polars", "pyarrow")
# A mean is not said where the count is below so many of its errors.
_LEAST_COUNT = 4.0


def frame_of(release: Release, level: float, library: str | None) -> Any:
    """Return the answers as a frame of a library, the first that is installed if None.

    Raises:
        MissingDependencyError: It is not installed.
    """
    return made_frame(frame_columns(release, level), library)


def frame_columns(release: Release, level: float) -> dict[str, Any]:
    """Return the answers column by column."""
    layout = release.workload.layout
    if layout is None:
        labels, workload = release.labels, release.workload
        if isinstance(workload, Marginals):
            return _codes(workload) | _answers(release, level, None)
        named: dict[str, Any] = {"index": list(range(release.values.size)) if labels is None else list(labels)}
        return named | _answers(release, level, None)
    if layout.channels is not None:
        return _of_amounts(release, layout, layout.channels)
    answers = list(layout.answers())
    weights = np.array([weight for _, weight in answers])
    return _beside(layout, answers, _answers(release, level, weights))


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


def _answers(release: Release, level: float, weights: Array | None) -> dict[str, Array]:
    over = 1.0 if weights is None else 1.0 / weights
    interval = release.interval(level)
    found = {"value": release.values, "stderr": release.stderr, "lower": interval.lower, "upper": interval.upper}
    return {name: np.asarray(values).reshape(-1) * over for name, values in found.items()}


def _of_amounts(release: Release, layout: Layout, channels: Channels) -> dict[str, Any]:
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
    """Return labels, then numbers; a level that is called like a number says that it is one."""
    named = {level: f"{level} (level)" if level in numbers else level for level in layout.levels}
    return {named[level]: [labels.get(level) for labels, _ in answers] for level in layout.levels} | numbers


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
        return found.table(columns) if name == "pyarrow" else found.DataFrame(columns)
    raise MissingDependencyError(f"a frame needs {library or 'pandas, polars or pyarrow'}: pip install it")
