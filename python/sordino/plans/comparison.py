"""Mechanisms side by side, before anything is spent."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sordino._support.cards import card
from sordino._support.extras import drawn
from sordino.accuracy.bounds import Bound
from sordino.errors import UnsupportedMechanismError
from sordino.mechanisms.families import family_of
from sordino.mechanisms.family import Column, Progress
from sordino.mechanisms.fits import Request

__all__ = ["Comparison", "compare_request"]


@dataclass(frozen=True)
class Comparison:
    """Mechanisms side by side, best first, before anything is spent.

    What a threshold or a recovery makes of the data cannot be said beforehand: those that guess come last, with the
    error of their noise alone.

    Attributes:
        rows: One for each mechanism that can answer: its name, its errors, what it needs.
        columns: Which entries of a row are printed.
        chosen: What `auto` takes.
        refused: Mechanisms that do not serve, with the reason.
        bound: Least error of any Gaussian mechanism, None if none is known.
        request: What was asked for.
        steps: Where `std` of a stream is given.
        fits: The mechanisms of `rows`, fitted.
    """

    rows: tuple[dict[str, Any], ...]
    columns: tuple[Column, ...]
    chosen: str
    refused: dict[str, str]
    bound: Bound | None
    request: Request
    steps: tuple[int, ...] = ()
    fits: tuple[Any, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        width = max(len(row["mechanism"]) for row in self.rows) + 4
        heads = "".join(head for column in self.columns for head in self._heads(column))
        lines = [f"{'mechanism':<{width}}{heads}"]
        for row in self.rows:
            mark = " *" if row["mechanism"] == self.chosen else ""
            entries = "".join(_printed(column, row[column.name]) for column in self.columns)
            lines.append(f"{row['mechanism'] + mark:<{width}}{entries}".rstrip())
        if self.bound is not None:
            lines.append(f"least of any Gaussian mechanism: {self.bound.value:.6g} ({self.bound.name})")
        return "\n".join(lines)

    def _heads(self, column: Column) -> list[str]:
        names = [_power(step) for step in self.steps] if column.name == "std" else [column.head or column.name]
        return [f"{name:>{column.width}}" for name in names]

    def _repr_html_(self) -> str:
        heads = [head.strip() for column in self.columns for head in self._heads(column)]
        rows = [
            [
                row["mechanism"],
                *(text.strip() for column in self.columns for text in _entries(column, row[column.name])),
            ]
            for row in self.rows
        ]
        marked = next((k for k, row in enumerate(self.rows) if row["mechanism"] == self.chosen), None)
        least = "" if self.bound is None else f"; least of any Gaussian: {self.bound.value:.6g} ({self.bound.name})"
        title = f"{self.request.workload!r}, {self.request.privacy!r}"
        note = f"auto takes {self.chosen}{least}"
        return card(title, head=["mechanism", *heads], rows=rows, marked=marked, note=note)

    def plot(self, path: str | Path | None = None, *, ax: Any = None) -> Any:
        """Draw the errors: as bars, of a stream against the step.

        Args:
            path: Where to save the picture, None to only return it.
            ax: matplotlib's axes to draw into, in place of a figure of its own.

        Returns:
            The matplotlib figure.

        Raises:
            MissingDependencyError: matplotlib is not installed.
            UnsupportedMechanismError: There is no picture of such a comparison.
        """
        family, _ = family_of(self.request.workload, self.request.mechanism)
        figure = drawn(f"comparison of {family.name}", self, path, ax=ax)
        if figure is None:
            raise UnsupportedMechanismError("there is no picture of such a comparison")
        return figure


def _printed(column: Column, value: Any) -> str:
    return "".join(_entries(column, value))


def _entries(column: Column, value: Any) -> list[str]:
    values = value if isinstance(value, tuple) else (value,)
    return [f"{'-' if v is None else format(v, column.form):>{column.width}}" for v in values]


def _power(step: int) -> str:
    exponent = step.bit_length() - 1
    return f"t=2^{exponent}" if step > 16 and step == 1 << exponent else f"t={step}"


def compare_request(request: Request, progress: Progress | None = None) -> Comparison:
    """Return the comparison for a checked request."""
    family, _ = family_of(request.workload, request.mechanism)
    shown = family.shown(request, progress)
    rows = tuple({"mechanism": fit.name, **family.row(fit, shown)} for fit in shown.fits)
    return Comparison(
        rows, family.columns, shown.chosen, shown.refused, shown.bound, request, shown.steps, tuple(shown.fits)
    )
