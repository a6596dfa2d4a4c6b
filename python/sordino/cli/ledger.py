"""The commands about ledgers in a store: made, shown, verified, exported, raised."""

from __future__ import annotations

import csv
import io
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

import sordino as so
from sordino._support.cards import numbers_of
from sordino.cli import outputs
from sordino.cli.accounts import store_options
from sordino.cli.guarantee import Guarantee, add_options
from sordino.errors import InvalidParameterError
from sordino.reporting import metrics, report

__all__ = ["ledger_group", "report_command"]

_FILE = click.Path(path_type=Path)
_ID = click.option("--ledger-id", default="default", show_default=True, help="Which ledger of the store.")
_EXAMPLES = """\b
Examples:
  sordino ledger create budget.db --epsilon 4 --delta 1e-6 --unit "one person"
  sordino release daily.csv --counts-column flights --epsilon 1 --ledger budget.db --request-id 2026-11-24
  sordino ledger show budget.db
  sordino ledger verify budget.db --head 12:5f0c...
"""


def _total_options(command: Any) -> Any:
    return add_options(
        command,
        [
            click.option("--epsilon", type=float, help="Pure privacy, or approximate privacy with --delta."),
            click.option("--delta", type=float, help="For approximate privacy."),
            click.option("--rho", type=float, help="Zero-concentrated privacy."),
            click.option("--mu", type=float, help="Gaussian privacy."),
        ],
    )


@click.group("ledger", epilog=_EXAMPLES, short_help="Make, show and verify ledgers.")
def ledger_group() -> None:
    """Ledgers in a file of SQLite or a database of PostgreSQL: one budget for all runs and processes."""


@ledger_group.command("create", short_help="Make a ledger.")
@click.argument("place", metavar="STORE")
@_ID
@_total_options
@click.option("--basic", is_flag=True, help="Add up epsilon and delta; no Gaussian costs.")
@click.option("--reserve-epsilon", type=float, default=0.0, help="Stays for pure costs after the first Gaussian one.")
@click.option("--reserve-delta", type=float, default=0.0, help="Stays for approximate costs after it.")
@click.option("--unit", help="What the total protects, in words; that of the first plan if left out.")
@click.option("--replace", is_flag=True, help="Neighbours change records instead of adding or removing them.")
def create_command(
    place: str,
    *,
    ledger_id: str,
    basic: bool,
    reserve_epsilon: float,
    reserve_delta: float,
    unit: str | None,
    replace: bool,
    **total: Any,
) -> None:
    """Make a ledger with a total in STORE, a file or the URL of a database; nothing is spent."""
    protected = None if unit is None else (so.ReplaceOne if replace else so.AddRemove)(1, label=unit)
    ledger = so.Ledger(
        Guarantee(**total).build_privacy(),
        composition="basic" if basic else "adaptive",
        reserve_epsilon=reserve_epsilon,
        reserve_delta=reserve_delta,
        unit=protected,
        store=place,
        id=ledger_id,
    )
    outputs.show_facts(_facts(ledger))


@ledger_group.command("show", short_help="Show what is spent and what is left.")
@store_options
@_ID
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def show_command(*, store: so.Store, ledger_id: str, as_json: bool) -> None:
    """Show what a ledger has spent, what is left, and which requests have no answer."""
    ledger = so.Ledger.open(store, ledger_id)
    if not as_json:
        outputs.show_facts(_facts(ledger))
        return
    record = {
        "id": ledger.id,
        "total": ledger.total.to_json(),
        "spent": ledger.spent,
        "remaining": ledger.remaining(),
        "entries": len(ledger.history),
        "head": ledger.head,
        "unanswered": [found.request_id for found in ledger.unanswered()],
    }
    click.echo(outputs.to_json(record))


def _facts(ledger: so.Ledger) -> list[tuple[str, str]]:
    unit, waiting = ledger.unit, ledger.unanswered()
    return [
        ("ledger", str(ledger.id)),
        ("total", str(ledger.total)),
        ("protects", "what the first plan will say" if unit is None else unit.protected()),
        *((f"spent ({kind})", numbers_of(numbers)) for kind, numbers in ledger.spent.items()),
        ("left, at most", numbers_of(ledger.remaining())),
        ("charged", str(sum(entry.cost is not None for entry in ledger.history))),
        ("unanswered", ", ".join(found.request_id for found in waiting) or "none"),
        ("head", ledger.head),
    ]


@ledger_group.command("verify", short_help="Compute hashes and sums anew.")
@store_options
@_ID
@click.option("--head", help="A head that was noted before: COUNT:HASH. The ledger must have passed it.")
def verify_command(*, store: so.Store, ledger_id: str, head: str | None) -> None:
    """Compute hashes and sums of all entries anew, and print the head."""
    click.echo(so.Ledger.open(store, ledger_id).verify(head))


@ledger_group.command("export", short_help="Write all entries.")
@store_options
@_ID
@click.option("--output", type=_FILE, help="A .csv or .json file.  [default: CSV to the standard output]")
def export_command(*, store: so.Store, ledger_id: str, output: Path | None) -> None:
    """Write all entries: public facts, for accountants."""
    outputs.check_output(output, (".csv", ".json"))
    rows = [
        {
            "sequence": entry.sequence,
            "time": None if entry.second is None else datetime.fromtimestamp(entry.second, UTC).isoformat(),
            "kind": entry.kind,
            "request": entry.request_id,
            "label": entry.label,
            "cost": "" if entry.cost is None else str(entry.cost),
            "unit": "" if entry.unit is None else entry.unit.label,
            "periods": " ".join(entry.periods),
        }
        for entry in so.Ledger.open(store, ledger_id).history
    ]
    if output is not None and output.suffix.lower() == ".json":
        outputs.write_text(output, outputs.to_json(rows) + "\n")
        return
    text = io.StringIO()
    writer = csv.DictWriter(text, ["sequence", "time", "kind", "request", "label", "cost", "unit", "periods"])
    writer.writeheader()
    writer.writerows(rows)
    if output is None:
        sys.stdout.write(text.getvalue())
    else:
        outputs.write_text(output, text.getvalue())


@ledger_group.command("raise", short_help="Raise a total.")
@store_options
@_ID
@_total_options
@click.option("--reason", required=True, help="Why; it is kept with the entry.")
def raise_command(*, store: so.Store, ledger_id: str, reason: str, **total: Any) -> None:
    """Raise the total of a ledger. What was promised to people before is not: raise it only for what they were told."""
    ledger = so.Ledger.open(store, ledger_id)
    ledger.raise_total(Guarantee(**total).build_privacy(), reason)
    outputs.show_facts(_facts(ledger))


@ledger_group.command("unanswered", short_help="List charges without an answer.")
@store_options
@_ID
@click.option("--give-up", metavar="NAME", help="Say that this request will not be answered; its charge stays.")
def unanswered_command(*, store: so.Store, ledger_id: str, give_up: str | None) -> None:
    """List requests that were charged and not answered: a repeat of such a request finishes it."""
    ledger = so.Ledger.open(store, ledger_id)
    if give_up is not None:
        if not give_up:
            raise InvalidParameterError("say which request")
        ledger.give_up(give_up)
    for found in ledger.unanswered():
        state = "being answered" if found.working else "left"
        click.echo(f"{found.request_id}\tentry {found.entry.sequence}\tattempt {found.attempt}\t{state}")


@ledger_group.command("metrics", short_help="Print metrics for Prometheus.")
@store_options
def metrics_command(*, store: so.Store) -> None:
    """Print what ledgers have spent, which requests wait, and how far streams are; nothing of private rows."""
    click.echo(metrics(store), nl=False)


@click.command("report", short_help="Write a page about what was released.")
@store_options
@_ID
@click.option("--output", type=_FILE, required=True, help="An .html file.")
@click.option("--pictures/--no-pictures", default=True, help="Draw the answers.  [default: pictures]")
def report_command(*, store: so.Store, ledger_id: str, output: Path, pictures: bool) -> None:
    """Write one HTML page about everything that was released under a ledger: label, answers, account."""
    outputs.check_output(output, (".html",))
    outputs.write_text(output, report(so.Ledger.open(store, ledger_id), pictures=pictures))
