"""`sordino table`: files of records, a schema written by hand, and one bounded release."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click

import sordino as so
from sordino.cli import outputs
from sordino.cli.accounts import Account, ledger_options
from sordino.cli.guarantee import Guarantee, add_options, flag, guarantee_options
from sordino.cli.progress import reading, working
from sordino.cli.published import write_columns
from sordino.cli.tables import require_arrow
from sordino.errors import InvalidParameterError
from sordino.releases.frames import frame_columns
from sordino.workloads import Workload

__all__ = ["table_group"]

_FILE = click.Path(path_type=Path)
# What a schema says.
_OF_SCHEMAS = ("unit", "records", "replace")

_PLAN_EXAMPLES = """\b
Examples:
  sordino table plan --schema schema.toml --level hour.day --level category --epsilon 1 --delta 1e-6
  sordino table plan --schema schema.toml --marginals 2 --rho 0.1 --save plan.json
"""
_RELEASE_EXAMPLES = """\b
Examples:
  sordino table release events/*.parquet --schema schema.toml --level hour.day --level category \\
      --request-id events/2026-01 --epsilon 1 --delta 1e-6 --output daily.csv
  sordino table release events.csv --schema schema.toml --plan plan.json --request-id events/2026-01 --memory 1GB
"""


@click.group("table", short_help="Release tables of records by a schema.")
def table_group() -> None:
    """Tables of records, by a schema: which cells there are, whose records they are, how much of one user counts."""


@dataclass(frozen=True)
class _Choices(Guarantee):
    """The options of a plan, as given; None or the default where not."""

    level: tuple[str, ...] = ()
    marginals: int | None = None

    def workload(self, schema: so.Schema) -> Workload:
        """Return the queries: groups, marginals, or all cells.

        Raises:
            InvalidParameterError: Two of them, or levels that the schema has not.
        """
        if self.level and self.marginals is not None:
            raise InvalidParameterError("say the queries once: --level or --marginals")
        if self.marginals is not None:
            return schema.marginals(self.marginals)
        return schema.group_by(*self.level) if self.level else schema.counts()

    def build_plan(self, schema: so.Schema, progress: Any) -> so.ReleasePlan:
        """Return the plan.

        Raises:
            SordinoError: The choices do not describe a plan.
        """
        for name in _OF_SCHEMAS:
            if getattr(self, name):
                raise InvalidParameterError(f"{flag(name)} does not go with --schema, which says what is protected")
        return so.plan(
            self.workload(schema),
            self.build_privacy(),
            mechanism=self.mechanism,
            objective=self.objective,
            progress=progress,
        )


def _options(command: Any) -> Any:
    options = [
        click.option("--schema", "schema_file", type=_FILE, required=True, help="The schema, in TOML."),
        click.option("--level", multiple=True, help="Groups to sum over: a column, or one of its levels, hour.day."),
        click.option("--marginals", type=int, metavar="K", help="All tables of K columns instead."),
        *guarantee_options(),
    ]
    return add_options(command, options)


def _choices(options: dict[str, Any]) -> _Choices:
    return _Choices(**{item.name: options[item.name] for item in fields(_Choices) if item.name in options})


@table_group.command("plan", epilog=_PLAN_EXAMPLES, short_help="Say the expected error. Touches no data.")
@_options
@click.option("--save", type=_FILE, help="Write the plan, to be used by `table release --plan`.")
def plan_command(schema_file: Path, save: Path | None, **options: Any) -> None:
    """Choose mechanism and noise for a schema's table, and say the expected error. Touches no data, costs nothing."""
    schema = so.Schema.from_toml(schema_file)
    with working("planning") as report:
        plan = _choices(options).build_plan(schema, report)
    if save is not None:
        plan.save(save)
    outputs.show_facts([*outputs.plan_facts(plan), ("schema", schema.digest)])


@table_group.command("release", epilog=_RELEASE_EXAMPLES, short_help="Release a table of records.")
@click.argument("inputs", type=_FILE, nargs=-1, required=True)
@_options
@click.option("--plan", "plan_file", type=_FILE, help="A saved plan of this schema.")
@click.option("--request-id", required=True, help="Name of the request: the same name keeps the same records.")
@click.option("--memory", default="2GB", show_default=True, help="What may be taken before parts go to disk.")
@click.option("--temporary", type=_FILE, help="Folder for these parts: as private as the records.")
@click.option("--interval", "level_of", type=float, default=0.95, show_default=True, help="Of the intervals.")
@click.option("--output", type=_FILE, help="Where to: .csv, .json or .parquet.  [default: JSON on standard output]")
@ledger_options(named=False)
def release_command(  # noqa: PLR0917 - options of click
    inputs: tuple[Path, ...],
    schema_file: Path,
    plan_file: Path | None,
    request_id: str,
    memory: str,
    temporary: Path | None,
    level_of: float,
    output: Path | None,
    *,
    account: Account,
    **options: Any,
) -> None:
    """Release a table of the records in Parquet or CSV files.

    Of every user only so much counts as the schema says. What is malformed or was not declared counts nowhere,
    silently. One answer a row, with a column for each level. A ledger (`sordino ledger create`, --ledger) keeps
    account between runs.
    """
    outputs.check_outputs([*inputs, schema_file], output, (".json", ".csv", ".parquet"))
    if output is not None and output.suffix.lower() == ".parquet":
        require_arrow()
    schema, choices = so.Schema.from_toml(schema_file), _choices(options)
    if plan_file is None:
        with working("planning") as report:
            plan = choices.build_plan(schema, report)
    else:
        choices.require_none()
        loaded = so.Plan.load(plan_file)
        if not isinstance(loaded, so.ReleasePlan) or loaded.workload.layout is None:
            raise InvalidParameterError("the plan is not one of a schema")
        plan = loaded
    with reading() as report_bytes:
        table = so.tabulate(
            list(inputs), schema, request_id=request_id, memory=memory, temporary=temporary, progress=report_bytes
        )
    release = plan.release(table, ledger=account.ledger, request_id=request_id)
    columns = {name: list(values) for name, values in frame_columns(release, level_of).items()}
    if output is not None and output.suffix.lower() != ".json":
        write_columns(columns, output)
        return
    facts = {
        "guarantee": plan.guarantee(),
        "mechanism": plan.mechanism,
        "plan_digest": plan.digest,
        "schema_digest": schema.digest,
        "private": release.private,
        "accounted": release.accounted,
        "level": level_of,
    }
    # A mean that is not known has no number in JSON.
    answers = {name: [None if value != value else value for value in column] for name, column in columns.items()}  # noqa: PLR0124
    text = outputs.to_json(facts | {"answers": answers}) + "\n"
    if output is None:
        click.echo(text, nl=False)
    else:
        outputs.write_text(output, text)
