"""Metrics of a store in the text format of Prometheus: budgets, requests, streams; nothing of private rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from sordino.privacy.terms import Account
from sordino.storage import ledgers, streams
from sordino.storage.ledgers import LedgerRow
from sordino.storage.store import store_of
from sordino.storage.streams import StreamRow
from sordino.storage.transactions import Transaction, now

if TYPE_CHECKING:
    from pathlib import Path

    from sordino.storage.store import Store

__all__ = ["metrics"]

_HELP = {
    "sordino_budget_spent": "What a ledger has spent, rounded up.",
    "sordino_budget_limit": "What it may spend, rounded down.",
    "sordino_entries": "Entries of a ledger.",
    "sordino_requests": "Requests of a ledger by state.",
    "sordino_overdue_seconds": "How long the lease of the oldest unfinished request has been over, 0 if none is.",
    "sordino_stream_steps": "Steps that a stream has published.",
    "sordino_stream_generation": "How often a stream was taken over.",
    "sordino_stream_open": "Whether somebody holds a stream.",
}


class _Requests(NamedTuple):
    """Requests of a ledger in one state, and when the first lease of them ends."""

    ledger: str
    state: str
    number: int
    until: int


def metrics(store: Store | str | Path) -> str:
    """Return what a store has spent, answered and published, in the text format of Prometheus.

    All of it is public: sums of a ledger depend on what was asked, not on data.

    Args:
        store: The store, its path or URL.

    Raises:
        StoreError: The store cannot be used.
    """
    found = store_of(store)

    def script(transaction: Transaction) -> tuple[list[LedgerRow], list[_Requests], list[StreamRow]]:
        states = transaction.rows(
            "SELECT ledger, state, count(*), min(lease_until) FROM request "
            "GROUP BY ledger, state ORDER BY ledger, state"
        )
        found = [_Requests(*row) for row in states]
        return ledgers.ledgers_in(transaction), found, streams.streams_in(transaction)

    budgets, requests, live = found.read(script)
    lines = [*_of_ledgers(budgets), *_of_requests(requests), *_of_streams(live)]
    text, last = [], ""
    for name, labels, value in lines:
        if name != last:
            text += [f"# HELP {name} {_HELP[name]}", f"# TYPE {name} gauge"]
            last = name
        said = ",".join(f'{key}="{_escaped(label)}"' for key, label in labels.items())
        text.append(f"{name}{{{said}}} {value:.17g}")
    return "\n".join(text) + "\n"


_Line = tuple[str, dict[str, str], float]


def _of_ledgers(rows: list[LedgerRow]) -> Iterable[_Line]:
    spent: list[_Line] = []
    limits: list[_Line] = []
    for row in rows:
        account = Account.of(row.terms, row.sums)
        for kind, numbers in account.terms.rule.spent(account.state).items():
            for name, value in numbers.items():
                of_limit = name.endswith("_limit")
                labels = {"ledger": row.id, "rule": kind, "quantity": name.removesuffix("_limit")}
                (limits if of_limit else spent).append(
                    (f"sordino_budget_{'limit' if of_limit else 'spent'}", labels, value)
                )
    yield from spent
    yield from limits
    for row in rows:
        yield "sordino_entries", {"ledger": row.id}, row.head


def _of_requests(requests: list[_Requests]) -> Iterable[_Line]:
    for each in requests:
        yield "sordino_requests", {"ledger": each.ledger, "state": each.state}, each.number
    overdue = {each.ledger: 0.0 for each in requests}
    for each in requests:
        if each.state == "charged":
            overdue[each.ledger] = max(0.0, (now() - each.until) / 1000.0)
    for ledger, seconds in overdue.items():
        yield "sordino_overdue_seconds", {"ledger": ledger}, seconds


def _of_streams(rows: list[StreamRow]) -> Iterable[_Line]:
    for name, value in (
        ("sordino_stream_steps", lambda row: row.step),
        ("sordino_stream_generation", lambda row: row.generation),
        ("sordino_stream_open", lambda row: float(row.state == "open" and row.lease_until > now())),
    ):
        for row in rows:
            yield name, {"stream": row.id}, value(row)


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
