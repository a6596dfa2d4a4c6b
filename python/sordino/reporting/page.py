"""One page about what a ledger has released: a label that readers can understand, answers, pictures, the account."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Any

from sordino._support.cards import card, numbers_of
from sordino._support.records import parted
from sordino.errors import SordinoError
from sordino.privacy.costs import Cost
from sordino.privacy.ledger import Ledger
from sordino.releases.adaptive.file import MARGINALS, TREE
from sordino.releases.adaptive.marginals import MarginalsRelease
from sordino.releases.adaptive.tree import TreeRelease
from sordino.releases.files import read_release
from sordino.releases.keyed.file import SKETCH
from sordino.releases.keyed.release import KeyRelease
from sordino.releases.record_files import RecordFile
from sordino.releases.release import Release
from sordino.releases.smooth.file import SUMMARY
from sordino.releases.smooth.release import SmoothRelease
from sordino.storage import ledgers, streams
from sordino.streams.whole import WHOLE_STREAM, StreamRelease

if TYPE_CHECKING:
    from sordino.storage.entries import LedgerEntry
    from sordino.storage.ledgers import RequestRow
    from sordino.storage.store import Store
    from sordino.storage.streams import StreamRow
    from sordino.storage.transactions import Transaction

__all__ = ["report"]

_FILES: dict[str, tuple[RecordFile, type[Any]]] = {
    file.kind: (file, of)
    for file, of in (
        (SUMMARY, SmoothRelease),
        (TREE, TreeRelease),
        (MARGINALS, MarginalsRelease),
        (SKETCH, KeyRelease),
        (WHOLE_STREAM, StreamRelease),
    )
}

_STYLE = """
:root { color-scheme: light dark; font-family: system-ui, sans-serif; line-height: 1.5 }
body { max-width: 62em; margin: 2em auto; padding: 0 1em }
h1 { font-size: 1.5em } h2 { font-size: 1.15em; margin: 2em 0 .5em }
section { margin: 1em 0 } img { max-width: 100%; background: white; border-radius: 6px; margin-top: 8px }
.note { opacity: .7 }
"""


def report(ledger: Ledger, *, pictures: bool = True) -> str:
    """Return one HTML page about everything that was charged to a ledger in a store: all of it is public.

    At the top a label: what is protected, how well, what is spent, what is not protected. Below it every answer that is
    kept, with its error and a picture where matplotlib is installed, live streams, and all entries.

    Args:
        ledger: The ledger.
        pictures: Whether answers are drawn.

    Raises:
        InvalidParameterError: The ledger is in memory.
        StoreError: The store cannot be used.
    """
    book = ledger._stored("a report")
    store = book.store

    def script(transaction: Transaction) -> tuple[list[RequestRow], list[StreamRow]]:
        rows = ledgers.requests_in(transaction, book.name, "answered", "charged", "expired", "abandoned")
        return rows, [row for row in streams.streams_in(transaction) if row.ledger == book.name]

    requests, live = store.read(script)
    parts = [
        _label(ledger),
        "<h2>Answers</h2>",
        *(_answer(store, row, pictures) for row in requests),
        *(["<p class='note'>none yet</p>"] if not requests else []),
        *(["<h2>Live</h2>", *map(_stream, live)] if live else []),
        "<h2>Account</h2>",
        ledger._repr_html_(),
        _entries(ledger.history),
    ]
    title = f"What was released under {book.name}"
    return (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{escape(title)}</title>"
        f"<meta name='viewport' content='width=device-width'><style>{_STYLE}</style></head>"
        f"<body><h1>{escape(title)}</h1>{''.join(parts)}</body></html>\n"
    )


def _label(ledger: Ledger) -> str:
    unit, spent = ledger.unit, ledger.spent
    facts = [
        ("protected", "nothing was released yet" if unit is None else f"{unit.protected()}; {unit.extent()}"),
        ("how well", f"at most {ledger.total}, for everything together"),
        *((f"spent ({kind})", numbers_of(numbers)) for kind, numbers in spent.items()),
        ("model", "central: whoever runs this sees the data; readers see answers with noise"),
        ("noise", "exact, from a cryptographic generator, on a lattice"),
        ("not protected", "whatever is larger than the unit above; who may see the data; times and sizes of requests"),
        ("account", f"{ledger.head[:24]}…, every entry chained to the one before"),
        ("made", datetime.now(UTC).isoformat(timespec="seconds")),
    ]
    return f"<section id='label'>{card('Privacy label', facts)}</section>"


def _answer(store: Store, row: RequestRow, pictures: bool) -> str:
    name = escape(row.request)
    if row.state != "answered":
        said = {"charged": "charged, not answered yet", "expired": "answered; not kept any more"}
        return f"<section><h3>{name}</h3><p class='note'>{said.get(row.state, 'charged, and given up')}</p></section>"
    found = _loaded(store.read(lambda transaction: ledgers.answer_bytes(transaction, row)))
    if found is None:
        return f"<section><h3>{name}</h3><p class='note'>answered</p></section>"
    picture = _picture(found) if pictures else ""
    shown = found._repr_html_() if hasattr(found, "_repr_html_") else escape(repr(found))
    return f"<section><h3>{name}</h3>{shown}{picture}<p>{escape(found.fit.guarantee())}</p></section>"


def _loaded(content: bytes) -> Any:
    """Return the release of an answer, None if it is something else."""
    try:
        kind = json.loads(parted(content)[0]).get("kind")
    except (ValueError, AttributeError):
        return None
    if kind == "release":
        return read_release(content, Release)
    if kind not in _FILES:
        return None
    file, of = _FILES[kind]
    return file.read(content, of)


def _picture(release: Any) -> str:
    if not hasattr(release, "plot"):
        return ""
    try:
        figure = release.plot()
    except SordinoError:  # no matplotlib, or nothing to be drawn
        return ""
    image = io.BytesIO()
    figure.savefig(image, format="png", dpi=110)
    coded = base64.b64encode(image.getvalue()).decode()
    return f"<div><img alt='the answers with their intervals' src='data:image/png;base64,{coded}'></div>"


def _stream(row: StreamRow) -> str:
    facts = [("steps", str(row.step)), ("state", row.state)]
    return f"<section>{card(row.id, facts)}</section>"


def _entries(history: tuple[LedgerEntry, ...]) -> str:
    rows = [list(_columns(entry)) for entry in reversed(history[-1000:])]
    return card("Entries", head=["request", "time", "kind", "cost"], rows=rows)


def _columns(entry: LedgerEntry) -> Iterator[str]:
    cost: Cost | None = entry.cost
    yield entry.request_id or "-"
    yield "-" if entry.second is None else datetime.fromtimestamp(entry.second, UTC).isoformat()
    yield entry.kind
    yield "-" if cost is None else str(cost)
