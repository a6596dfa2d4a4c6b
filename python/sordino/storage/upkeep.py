"""What is done to a whole store by hand: after lost commits, for a new key, against growth."""

from __future__ import annotations

import json

from sordino._support.checks import name_of
from sordino.errors import StoreCorruptError
from sordino.storage import ledgers, streams
from sordino.storage.postgresql import system_of
from sordino.storage.store import Store, check_key
from sordino.storage.streams import StreamRow
from sordino.storage.transactions import Transaction, now

__all__ = ["accept_database", "compact", "set_key_id"]

_AT_ONCE = 1000


def compact(store: Store) -> dict[str, int]:
    """Forget answers of requests whose time has come; return how many of what.

    Answers of steps are forgotten by whoever holds their stream.

    Raises:
        StoreError: The store cannot be used.
    """
    forgotten = 0
    for row in store.read(ledgers.ledgers_in):
        while True:
            found = store.write(
                lambda transaction, ledger=row.id: ledgers.expire(transaction, ledger, now(), _AT_ONCE)  # type: ignore[misc]
            )
            forgotten += found
            if found < _AT_ONCE:
                break
    return {"answers": forgotten}


def set_key_id(store: Store, key_id: str) -> None:
    """Seal under another key from now on: states of streams when they are opened next, seeds of requests at once.

    The function of the store must give the keys of all ids that something is still sealed under.

    Raises:
        InvalidParameterError: It is no id.
        KeyMissingError: The store has no key of this id.
        WrongKeyError: It has another one of this id.
        StoreError: The store cannot be used.
    """
    name_of("key_id", key_id, 100)
    check_key(store, key_id)
    store.write(lambda transaction: transaction.count("UPDATE meta SET value = ? WHERE name = 'key'", key_id))
    store.keys.key_id = key_id


def accept_database(store: Store) -> None:
    """Take the database as it is for the store's own, after commits were lost: all that was open is closed.

    Unfinished requests are given up, and streams are taken from whoever holds them: who goes on takes a fresh key.
    Where noise was drawn ahead of its step that does not help: such streams are lost.

    Raises:
        StoreError: The store cannot be used.
    """

    def script(transaction: Transaction) -> None:
        if store.engine.kind == "postgresql":
            for name, value in system_of(transaction).items():
                transaction.later("UPDATE meta SET value = ? WHERE name = ?", value, name)
        ledgers.all_given_up(transaction)
        for row in streams.streams_in(transaction):
            streams.claimed(transaction, row, b"", "nobody", 0)
            if row.state == "open" and _draws_ahead(row):
                streams.set_lost(transaction, row)

    store.write(script)


def _draws_ahead(row: StreamRow) -> bool:
    """Return whether noise of coming steps is in the state: a subtraction tree draws that of a node before it ends."""
    try:
        return "subtraction-tree" in json.loads(row.plan_parts()[0])["fitted"]
    except (StoreCorruptError, LookupError, TypeError, ValueError):
        return True  # nobody can go on with it anyhow
