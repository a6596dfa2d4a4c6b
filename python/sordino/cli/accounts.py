"""Options of every command that spends: the ledger that is charged, and the name of the request."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

import sordino as so
from sordino.cli.guarantee import add_options
from sordino.errors import InvalidParameterError

__all__ = ["NOBODY", "Account", "ledger_options", "opened_store", "store_options"]

_Command = TypeVar("_Command", bound=Callable[..., Any])
_KEY = click.option(
    "--store-key", type=click.Path(path_type=Path), help="File with the 32 bytes of the store's key, mode 600."
)


class Account(NamedTuple):
    """Who pays, and for what.

    Attributes:
        ledger: The ledger, None if nobody keeps account.
        request_id: Name of the request, or None.
    """

    ledger: so.Ledger | None = None
    request_id: str | None = None


NOBODY = Account()
"""Nobody keeps account."""


def opened_store(place: str, key: Path | None, *, adopting: bool = False) -> so.Store:
    """Return a store that is there, also one that went back in time if it is to be adopted.

    Raises:
        InvalidParameterError: There is no such file.
        StoreError: It cannot be used.
    """
    if "://" not in place and not Path(place).is_file():
        raise InvalidParameterError("there is no such store: make one with `sordino ledger create`")
    return so.Store(place, key=None if key is None else so.KeyFile(key), adopting=adopting)


def _account(ledger: str | None, ledger_id: str, request_id: str | None, store_key: Path | None) -> Account:
    if ledger is None:
        if request_id is not None or store_key is not None:
            raise InvalidParameterError("--request-id and --store-key go with --ledger")
        return NOBODY
    return Account(so.Ledger.open(opened_store(ledger, store_key), ledger_id), request_id)


def ledger_options(*, named: bool = True, request: bool = True) -> Callable[[_Command], _Command]:
    """Add the options of a ledger; the command receives an `Account` as `account`.

    Args:
        named: Whether the request is named by an option of the ledger; else the command has one of its own.
        request: Whether requests have names at all.
    """
    options = [
        click.option("--ledger", metavar="STORE", help="Charge the ledger in this file or database."),
        click.option("--ledger-id", default="default", show_default=True, help="Which ledger of the store."),
        *(
            [click.option("--request-id", metavar="NAME", help="Charged once; a repeat has the same answer.")]
            if named and request
            else []
        ),
        _KEY,
    ]

    def decorated(command: _Command) -> _Command:
        @functools.wraps(command)
        def call(
            *args: Any,
            ledger: str | None,
            ledger_id: str,
            store_key: Path | None,
            request_id: str | None = None,
            **rest: Any,
        ) -> Any:
            if named:
                return command(*args, account=_account(ledger, ledger_id, request_id, store_key), **rest)
            own = _account(ledger, ledger_id, None, store_key)
            return command(*args, account=own._replace(request_id=request_id), request_id=request_id, **rest)

        return add_options(call, options)  # type: ignore[return-value] # a wrapper of the same command

    return decorated


def store_options(command: _Command) -> _Command:
    """Add the argument and the key of a store; the command receives it as `store`."""

    @functools.wraps(command)
    def call(*args: Any, place: str, store_key: Path | None, **rest: Any) -> Any:
        return command(*args, store=opened_store(place, store_key), **rest)

    return add_options(call, [click.argument("place", metavar="STORE"), _KEY])  # type: ignore[return-value]
