"""Sorted histograms: how many cells have how many records, not which."""

from typing import ClassVar

from sordino.workloads.histogram import Histogram

__all__ = ["SortedHistogram"]


class SortedHistogram(Histogram):
    """The counts in rising order, whatever their places: degree sequences, frequency tables, anonymous tallies.

    Cells are sorted before anything else. Sorting moves no two tables further apart, in any lp norm, and keeps sums:
    what neighbours differ by in order is a difference that some neighbours have unsorted, so every sensitivity holds
    as it is. Isotonic regression of the noisy counts then takes most of the noise off again: it is what `auto` does.

    Source: Hay, Rastogi, Miklau and Suciu 2010, Section 3.

    Args:
        cells: Number of cells.

    Raises:
        DataTypeError: It is no integer.
        InvalidParameterError: It is out of range.
    """

    kind: ClassVar[str] = "sorted_histogram"
    linear: ClassVar[bool] = False
    per_cell: ClassVar[bool] = False

    def __init__(self, cells: int) -> None:
        super().__init__(cells)

    def spec(self) -> dict[str, object]:
        """Return the constructor's arguments."""
        return {"cells": self.shape[0]}
