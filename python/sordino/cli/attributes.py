"""Columns of categorical records: their levels are declared, never read from the data."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sordino.cli.tables import Column, real
from sordino.errors import InvalidParameterError
from sordino.workloads.base import MAX_LENGTH, length_of

__all__ = ["Attribute", "cells_of", "parse_attributes"]

_LEVELS = (
    "must be followed by its levels: names with | between them (sex:f|m), integers (age:0..99) "
    "or edges of half-open bins (income:0,1000,5000)"
)


@dataclass(frozen=True)
class Attribute:
    """A column with its public levels.

    Attributes:
        name: Name of the column.
        levels: What each level is called.
        first: The first level, if levels are consecutive integers.
        edges: Edges of half-open bins, if levels are bins.
    """

    name: str
    levels: Sequence[str | int]
    first: int | None = None
    edges: tuple[float, ...] | None = None

    def codes(self, entries: Column) -> NDArray[np.int64]:
        """Return the number of each entry's level, -1 for what is no level."""
        if self.first is None and self.edges is None:
            places = {str(level): code for code, level in enumerate(self.levels)}
            found = (-1 if entry is None else places.get(str(entry).strip(), -1) for entry in entries)
            return np.fromiter(found, dtype=np.int64, count=len(entries))
        values = np.array([real(entry) for entry in entries], dtype=np.float64)
        if self.edges is not None:
            bins = np.searchsorted(self.edges, values, side="right") - 1
            return np.where(bins < len(self.levels), bins, -1)  # not-a-number sorts behind all edges
        codes = values - (self.first or 0)
        sound = (codes >= 0) & (codes < len(self.levels)) & (codes == np.floor(codes))
        return np.where(sound, codes, -1.0).astype(np.int64)


def parse_attributes(texts: Sequence[str]) -> tuple[Attribute, ...]:
    """Read options such as `sex:f|m`, `age:0..99` and `income:0,1000,5000`.

    Raises:
        InvalidParameterError: A text is none of these, levels are not at least two different ones, or a column is
            named twice.
    """
    found = tuple(_parse(text) for text in texts)
    if len({attribute.name for attribute in found}) < len(found):
        raise InvalidParameterError("--column names the same column twice")
    return found


def _parse(text: str) -> Attribute:
    name, _, said = text.partition(":")
    if not name:
        raise InvalidParameterError("--column needs the name of a column before its levels: sex:f|m")
    span = re.fullmatch(r"\s*(-?\d{1,15})\.\.(-?\d{1,15})\s*", said)
    if span is not None:
        first, last = int(span[1]), int(span[2])
        if not 1 <= last - first < MAX_LENGTH:
            raise InvalidParameterError(
                f"--column {name}: the first level before the last, at most {MAX_LENGTH} levels"
            )
        return Attribute(name, range(first, last + 1), first=first)
    if "|" in said:
        levels = [level.strip() for level in said.split("|")]
        if len(set(levels)) < len(levels) or "" in levels:
            raise InvalidParameterError(f"--column {name}: names of levels must be different, and none empty")
        return Attribute(name, levels)
    edges = tuple(real(edge) for edge in said.split(","))
    if len(edges) == 1 or np.isnan(edges).any():
        raise InvalidParameterError(f"--column {name} {_LEVELS}")
    if len(edges) < 3 or not np.isfinite(edges).all() or (np.diff(edges) <= 0).any():
        raise InvalidParameterError(f"--column {name}: edges must be finite and rise, at least three")
    return Attribute(name, [f"[{_text(a)}, {_text(b)})" for a, b in pairwise(edges)], edges=edges)


def _text(edge: float) -> str:
    return str(int(edge)) if edge == int(edge) else repr(edge)


def cells_of(attributes: Sequence[Attribute]) -> int:
    """Return how many cells the table of all attributes has.

    Raises:
        InvalidParameterError: More than 2**26.
    """
    cells = 1
    for attribute in attributes:
        cells *= len(attribute.levels)
    return length_of("cells of the table of all columns", cells)
