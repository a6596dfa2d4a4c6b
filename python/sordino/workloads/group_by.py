"""Sums over groups of cells: levels of a hierarchy, or any other groupings."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sordino import _core
from sordino._support.checks import integers
from sordino._support.nested_groups import nested_groups
from sordino._support.private_numbers import array_of
from sordino.errors import InvalidParameterError, ShapeError
from sordino.workloads.base import MAX_LENGTH, Array, Spec, Workload, pieces_of, weights_of
from sordino.workloads.histogram import Histogram

__all__ = ["GroupBy"]

# Labels of all cells on all levels.
_MOST_LABELS = 2**28


class GroupBy(Workload):
    """Sums over groups of cells, one level of groups after the other: cities, counties, states and the nation.

    `y = w_l * (sum of the cells with label g on level l)`, for the groups `g = 0, 1, ...` of each level. Levels that
    are nested, such as those of a hierarchy, are answered best: see `nested`.

    A weight multiplies an answer and its error: with 10 for the nation and 1 for cities, an error of 1 in the nation
    counts like one of 10 in a city. To weigh errors without changing answers, join levels by `|` and weigh the parts.

    Args:
        labels: Group of each cell on each level, -1 for none: integers, shape (levels, cells), or (cells,) for one
            level. Groups count from 0; those that no cell is in are answered 0. Public.
        weights: What the answers of each level are multiplied by, positive; 1 if None.

    Raises:
        DataTypeError: Labels are not integers, or a weight is no number.
        ShapeError: Labels have another shape.
        InvalidParameterError: There are no cells or levels, more than 2**26 groups, or no cell is in any of them; or
            weights are out of range or not as many as levels.
    """

    kind: ClassVar[str] = "group_by"

    def __init__(self, labels: object, weights: Iterable[float] | None = None) -> None:
        array = array_of("labels", labels, "integers")
        if array.ndim == 1:
            array = array[None, :]
        if array.ndim != 2 or 0 in array.shape:
            raise ShapeError("labels must have shape (levels, cells), at least one of each")
        if array.size > _MOST_LABELS:
            raise InvalidParameterError("labels: at most 2**28 of all cells on all levels")
        flat = integers("labels", array.reshape(-1), least=-1, most=MAX_LENGTH - 1)
        self.labels: NDArray[np.int32] = flat.astype(np.int32).reshape(array.shape)
        self.labels.flags.writeable = False
        self.weights = weights_of(weights, len(self.labels), "levels")
        if not (self.labels >= 0).any():
            raise InvalidParameterError("labels: no cell is in any group")
        _ = self.core

    @cached_property
    def level_sizes(self) -> tuple[int, ...]:
        """Number of groups of each level."""
        return tuple(int(level.max()) + 1 for level in self.labels)

    @cached_property
    def equal_levels(self) -> bool:
        """Whether all groups of a level have as many cells, and every cell is in one."""
        cells = self.labels.shape[1]
        return all(
            label.min() >= 0 and cells % size == 0 and bool((np.bincount(label) == cells // size).all())
            for label, size in zip(self.labels, self.level_sizes, strict=True)
        )

    @property
    def input_shape(self) -> tuple[int, ...]:
        """`(cells,)`."""
        return (self.labels.shape[1],)

    @property
    def answers_shape(self) -> tuple[int, ...]:
        """`(groups of all levels,)`."""
        return (sum(self.level_sizes),)

    @property
    def groups(self) -> NDArray[np.int64]:
        """Level and group of each answer, shape (answers, 2)."""
        sizes = np.array(self.level_sizes)
        levels = np.repeat(np.arange(len(sizes)), sizes)
        return np.stack([levels, np.arange(len(levels)) - np.repeat(np.cumsum(sizes) - sizes, sizes)], axis=1)

    def split(self, values: ArrayLike) -> list[Array]:
        """Return the answers of each level.

        Args:
            values: Shape `answers_shape`, such as `Release.values` or `Release.stderr`.

        Raises:
            DataTypeError: Not an array of numbers.
            ShapeError: The values have another shape.
        """
        return pieces_of(values, self, self.level_sizes)

    @cached_property
    def nested(self) -> bool:
        """Whether of any two groups one holds the other, or they have no cell in common."""
        return nested_groups(self) is not None

    @cached_property
    def nested_runs(self) -> tuple["GroupBy", ...]:
        """The levels in order, as many together as are nested: itself alone if all are."""
        if self.nested:
            return (self,)
        runs: list[GroupBy] = []
        first = 0
        for level, size in enumerate(self.level_sizes):
            if size == 0:  # nobody asks for anything
                continue
            longer = GroupBy(self.labels[first : level + 1], self.weights[first : level + 1])
            if runs and longer.nested:
                runs[-1] = longer
            else:
                first = level
                runs.append(GroupBy(self.labels[level], self.weights[level : level + 1]))
        return tuple(runs)

    def _build(self) -> _core.Workload:
        cells = self.labels.shape[1]
        starts, indices, entries, rows = [np.zeros(1, dtype=np.int64)], [], [], 0
        for level, size, weight in zip(self.labels, self.level_sizes, self.weights, strict=True):
            order = np.argsort(level, kind="stable")
            order = order[np.searchsorted(level[order], 0) :]
            counts = np.bincount(level[order], minlength=size)
            starts.append(rows + np.cumsum(counts))
            rows += len(order)
            indices.append(order)
            entries.append(np.full(len(order), weight))
        ends = np.concatenate(starts)
        return _core.Workload.sparse(len(ends) - 1, cells, ends, np.concatenate(indices), np.concatenate(entries))

    def _on_cells(self, cells: NDArray[np.int64]) -> Workload:
        labels = self.labels[:, cells]
        if self.weights == (1.0,) and np.array_equal(labels[0], np.arange(len(cells))):
            return Histogram(len(cells))
        return GroupBy(labels, self.weights)

    def spec(self) -> Spec:
        """Return the constructor's arguments."""
        return {"labels": self.labels, "weights": list(self.weights)}

    @classmethod
    def _from_spec(cls, spec: Mapping[str, Any]) -> Self:
        labels = spec.get("labels")
        if isinstance(labels, np.ndarray) and labels.dtype.kind == "f":  # files keep all numbers as floats
            with np.errstate(invalid="ignore"):
                whole = labels.astype(np.int64)
            labels = whole if (whole == labels).all() else labels
        return cls(**{**spec, "labels": labels})

    def _shown(self) -> Mapping[str, Any]:
        shown: dict[str, Any] = {"labels": self.labels}
        return shown if set(self.weights) == {1.0} else {**shown, "weights": list(self.weights)}
