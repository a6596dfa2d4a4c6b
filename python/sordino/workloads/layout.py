"""What a schema says of a workload: whose records its table bounds, and what its answers are called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

from sordino.errors import PlanFileError
from sordino.privacy.units import AddRemove, UserLevel, unit_from_json

__all__ = ["Axis", "Channels", "Layout", "Names"]


class Names(NamedTuple):
    """Answers along an axis that belong to one level.

    Attributes:
        level: Name of the level, None for a total that nobody asked for.
        labels: Name of each group.
        weight: What these answers are multiplied by.
    """

    level: str | None
    labels: tuple[str, ...]
    weight: float = 1.0


Axis = tuple[Names, ...]


class Channels(NamedTuple):
    """How amounts stand in a table, as two numbers a cell: what is missing to the largest, and the amount.

    Attributes:
        name: Name of the column.
        low: Least amount.
        step: What one unit of the table stands for.
        height: Units from the least amount to the largest.
    """

    name: str
    low: float
    step: float
    height: int


@dataclass(frozen=True)
class Layout:
    """The table that a workload is about.

    Attributes:
        digest: SHA-256 of the schema.
        unit: What one protected thing can change in the table.
        blocks: Answers, one block after the other; each is a product of axes, an axis some levels one after the other.
        channels: How amounts stand in the table; None where records are counted.
    """

    digest: str
    unit: AddRemove | UserLevel
    blocks: tuple[tuple[Axis, ...], ...]
    channels: Channels | None = None

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of all levels, in the order in which they come first."""
        named = (names.level for block in self.blocks for axis in block for names in axis)
        return tuple(dict.fromkeys(level for level in named if level is not None))

    def answers(self) -> Iterator[tuple[dict[str, str], float]]:
        """Return the labels of every answer by level, and what it is multiplied by."""
        for block in self.blocks:
            axes = [[(n.level, label, n.weight) for n in axis for label in n.labels] for axis in block]
            for groups in product(*axes):
                weight = 1.0
                for _, _, factor in groups:
                    weight *= factor
                yield {level: label for level, label, _ in groups if level is not None}, weight

    def joined(self, others: Sequence[Layout | None]) -> Layout | None:
        """Return the layout of queries on one table asked one after the other; None if the tables differ."""
        blocks = self.blocks
        for other in others:
            if other is None or (other.digest, other.channels) != (self.digest, self.channels):
                return None
            blocks += other.blocks
        return Layout(self.digest, self.unit, blocks, self.channels)

    def to_json(self) -> dict[str, Any]:
        """Return the layout as a JSON object."""
        return {
            "digest": self.digest,
            "unit": self.unit.to_json(),
            "blocks": [
                [[[names.level, list(names.labels), names.weight] for names in axis] for axis in block]
                for block in self.blocks
            ],
            "channels": None if self.channels is None else list(self.channels),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Layout:
        """Return the layout that `to_json` wrote.

        Raises:
            PlanFileError: It wrote another.
        """
        unit = unit_from_json(data["unit"])
        blocks = tuple(
            tuple(tuple(Names(level, tuple(labels), float(weight)) for level, labels, weight in axis) for axis in block)
            for block in data["blocks"]
        )
        texts = [
            text for block in blocks for axis in block for names in axis for text in (names.level or "", *names.labels)
        ]
        if not isinstance(unit, AddRemove | UserLevel) or not all(
            isinstance(text, str) for text in [data["digest"], *texts]
        ):
            raise PlanFileError("the plan's table is not described as sordino does")
        channels = data["channels"]
        return Layout(data["digest"], unit, blocks, None if channels is None else Channels(*channels))
