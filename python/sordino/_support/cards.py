"""Cards: what an object says of itself in a notebook, as HTML without scripts or anything from outside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

__all__ = ["card", "facts_of", "numbers_of"]

_BOX = (
    "border:1px solid rgba(128,128,128,.35);border-radius:6px;padding:10px 14px;display:inline-block;max-width:56em;"
    "font-size:13px;line-height:1.45"
)
_CELL = "text-align:left;padding:1px 14px 1px 0;vertical-align:top;background:none;border:none"
_NUMBER = "text-align:right;padding:1px 0 1px 14px;background:none;border:none;font-variant-numeric:tabular-nums"


def numbers_of(numbers: Mapping[str, float]) -> str:
    """Return named numbers on one line."""
    return ", ".join(f"{name} {value:.6g}" for name, value in numbers.items())


def card(
    title: str,
    facts: Iterable[tuple[str, str]] = (),
    *,
    head: Sequence[str] = (),
    rows: Iterable[Sequence[str]] = (),
    marked: int | None = None,
    note: str = "",
) -> str:
    """Return a card: a title, facts by name, a table whose first column is text, and a note.

    Args:
        title: In bold.
        facts: Names and values.
        head: Names of the columns of the table.
        rows: Its rows, as text.
        marked: Which row is in bold.
        note: Below it.
    """
    parts = [f'<div style="{_BOX}"><div style="font-weight:600;margin-bottom:4px">{escape(title)}</div>']
    named = "".join(
        f'<tr><td style="{_CELL};opacity:.65">{escape(name)}</td><td style="{_CELL}">{escape(value)}</td></tr>'
        for name, value in facts
    )
    if named:
        parts.append(f'<table style="border-collapse:collapse;border:none;margin:0">{named}</table>')
    body = "".join(_row(row, "td", bold=place == marked) for place, row in enumerate(rows))
    if body:
        top = f"<thead>{_row(head, 'th', bold=False)}</thead>"
        parts.append(
            f'<table style="border-collapse:collapse;border:none;margin:6px 0 0">{top}<tbody>{body}</tbody></table>'
        )
    if note:
        parts.append(f'<div style="opacity:.65;margin-top:4px">{escape(note)}</div>')
    return "".join(parts) + "</div>"


def _row(row: Sequence[str], kind: str, *, bold: bool) -> str:
    weight = ";font-weight:600" if bold else ";font-weight:500;opacity:.65" if kind == "th" else ""
    entries = (
        f'<{kind} style="{_CELL if place == 0 else _NUMBER}{weight}">{escape(entry)}</{kind}>'
        for place, entry in enumerate(row)
    )
    return f"<tr>{''.join(entries)}</tr>"


def facts_of(text: str, width: int) -> tuple[str, list[tuple[str, str]]]:
    """Return the first line of a text, and its others as names and values: names are as wide as is said."""
    first, *lines = text.splitlines()
    return first, [(line[:width].strip(), line[width:].strip()) for line in lines]
