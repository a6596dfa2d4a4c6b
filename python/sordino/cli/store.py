"""The commands about a whole store: after lost commits, for a new key, against growth."""

from __future__ import annotations

import click

import sordino as so
from sordino.cli import outputs
from sordino.cli.accounts import opened_store, store_options
from sordino.errors import InvalidParameterError
from sordino.privacy.lost import adopt
from sordino.storage.tables import SCHEMA_VERSION
from sordino.storage.upkeep import compact

__all__ = ["store_group"]

_EXAMPLES = """\b
Examples:
  sordino store adopt budget.db --lost rest --reason "backup of last night"
  sordino store adopt budget.db --lost-epsilon 0.5 --reason "five minutes are missing"
  sordino store compact budget.db
"""


@click.group("store", epilog=_EXAMPLES, short_help="Look after a store of ledgers and streams.")
def store_group() -> None:
    """Look after a store: what it forgot, what it keeps too long."""


@store_group.command("adopt", short_help="Go on after commits were lost.")
@click.argument("place", metavar="STORE")
@click.option("--lost", type=click.Choice(["rest"]), help="Charge all that is left: always enough.")
@click.option("--lost-epsilon", type=float, help="Charge this much instead, in every ledger: pure epsilon.")
@click.option("--lost-mu", type=float, help="Charge this much instead: mu of Gaussian costs.")
@click.option("--reason", required=True, help="Why; it is kept with the entries.")
def adopt_command(
    place: str, *, lost: str | None, lost_epsilon: float | None, lost_mu: float | None, reason: str
) -> None:
    """Go on with a restored backup or a promoted replica: charge what may have left and was forgotten.

    Requests without an answer are given up, streams go on with fresh keys.
    """
    match lost, lost_epsilon, lost_mu:
        case "rest", None, None:
            cost: so.privacy.PureCost | so.privacy.GaussianCost | None = None
        case None, float() as epsilon, None:
            cost = so.privacy.PureCost(epsilon)
        case None, None, float() as mu:
            cost = so.privacy.GaussianCost(mu=mu)
        case _:
            raise InvalidParameterError("say once what may be lost: --lost rest, --lost-epsilon or --lost-mu")
    added = adopt(opened_store(place, None, adopting=True), cost, reason)
    outputs.show_facts([(name, f"{count} entries") for name, count in added.items()] or [("ledgers", "none")])


@store_group.command("compact", short_help="Forget old answers.")
@store_options
def compact_command(*, store: so.Store) -> None:
    """Forget answers that need not be kept any more."""
    outputs.show_facts([(name, str(count)) for name, count in compact(store).items()])


@store_group.command("migrate", short_help="Bring a store to this version.")
@click.argument("place", metavar="STORE")
def migrate_command(place: str) -> None:
    """Bring a store to the form of this version. This is the first: there is nothing to do."""
    opened_store(place, None)
    click.echo(f"the store has form {SCHEMA_VERSION}, the newest")
