"""`sordino local`: a survey of which every client adds its own noise."""

import io
import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

import click
import numpy as np

import sordino as so
from sordino._support.files import atomic_write
from sordino.cli import outputs
from sordino.cli.accounts import Account, ledger_options
from sordino.cli.guarantee import Guarantee
from sordino.cli.tables import read_chunks, real
from sordino.errors import InputFileError, InvalidParameterError

__all__ = ["local_group"]

_FILE = click.Path(path_type=Path)

_PLAN_EXAMPLES = """\b
Example:
  sordino local plan --clients 100000 --bounds 0..60 --intervals 64 --epsilon 1 --delta 1e-6 --output survey.json
"""
_ENCODE_EXAMPLES = """\b
Examples:
  sordino local encode survey.json --value 24.5 >> reports.jsonl
  sordino local encode survey.json --input minutes.csv --column minutes --output reports.npz
"""
_AGGREGATE_EXAMPLES = """\b
Example:
  sordino local aggregate survey.json reports.jsonl more.npz --quantile 0.25 --quantile 0.75 --output answer.json
"""


@click.group("local", short_help="Surveys without trust: plan, report, add up.")
def local_group() -> None:
    """The local model: every client adds noise to what it sends, and trusts nobody.

    The plan is shared with all clients; `encode` runs on the client, `aggregate` on the server.
    """


@local_group.command("plan", epilog=_PLAN_EXAMPLES, short_help="Choose grid and noise, for clients and server.")
@click.option("--clients", type=int, required=True, help="How many are asked. Public.")
@click.option("--bounds", required=True, metavar="LOW..HIGH", help="Of the values. Public; values beyond are moved.")
@click.option("--intervals", type=int, help="Steps of the grid.  [default: by privacy and clients]")
@click.option("--huber", type=float, help="Ask for the minimiser of Huber's loss of this width, not the distribution.")
@click.option("--epsilon", type=float, help="Pure privacy, or approximate privacy with --delta.")
@click.option("--delta", type=float, help="For approximate privacy.")
@click.option("--rho", type=float, help="Zero-concentrated privacy.")
@click.option("--mu", type=float, help="Gaussian privacy.")
@click.option(
    "--mechanism", default="auto", show_default=True, help="waves, subset-selection, or a mechanism of running sums."
)
@click.option("--output", type=_FILE, help="The plan, a .json file.")
def plan_command(
    *,
    clients: int,
    bounds: str,
    intervals: int | None,
    huber: float | None,
    mechanism: str,
    output: Path | None,
    **privacy: float | None,
) -> None:
    """Plan a survey: touches no data. Without --output it only explains."""
    outputs.check_output(output, (".json",))
    first, dots, last = bounds.partition("..")
    low, high = real(first), real(last)
    if not dots or not np.isfinite([low, high]).all():
        raise InvalidParameterError(f"--bounds {bounds}: expected two numbers, such as 0..60")
    loss = None if huber is None else so.local.LocalLoss.huber(huber)
    survey = so.local.LocalSurvey(clients, (low, high), loss=loss, intervals=intervals)
    plan = so.plan(survey, Guarantee(**privacy).build_privacy(), mechanism=mechanism)  # type: ignore[arg-type] # by click
    if output is not None:
        plan.save(output)
    click.echo(plan.explain())


@local_group.command("encode", epilog=_ENCODE_EXAMPLES, short_help="Make the report of a client.")
@click.argument("plan_file", metavar="PLAN", type=_FILE)
@click.option("--value", help="The client's number. Other users of the machine may see options.")
@click.option("--input", type=_FILE, help="Instead: a CSV or Parquet file with a client a row; - for CSV from stdin.")
@click.option("--column", help="Column of the numbers.")
@click.option("--output", type=_FILE, help="A .jsonl or .npz file.  [default: JSON lines on the standard output]")
@ledger_options(request=False)
def encode_command(
    plan_file: Path,
    *,
    value: str | None,
    input: Path | None,
    column: str | None,
    output: Path | None,
    account: Account,
) -> None:
    """Make reports under PLAN: what may be sent to anybody. Reporting twice costs twice.

    What is no number makes a report of noise alone, so that nobody sees that it is missing.
    """
    outputs.check_output(output, (".jsonl", ".npz"), *([] if input is None else [input]))
    if (value is None) == (input is None) or (input is None) != (column is None):
        raise InvalidParameterError("say whose report: --value, or --input and --column")
    plan = so.SurveyPlan.load(plan_file)
    chunks = [[[value]]] if input is None else read_chunks(input, [str(column)])
    # One call: clients are different people, and their reports together cost what one costs.
    values = [real(entry) for (entries,) in chunks for entry in entries]
    reports = plan.encode_clients(values, ledger=account.ledger)
    if output is not None and output.suffix.lower() == ".npz":
        buffer = io.BytesIO()
        np.savez_compressed(buffer, reports=reports)
        atomic_write(output, buffer.getvalue(), "output")
        return
    lines = "".join(json.dumps(row) + "\n" for row in reports.tolist())
    if output is None:
        click.echo(lines, nl=False)
    else:
        outputs.write_text(output, lines)


@local_group.command(
    "aggregate", epilog=_AGGREGATE_EXAMPLES, short_help="Add up reports: median, quantiles, minimiser."
)
@click.argument("plan_file", metavar="PLAN", type=_FILE)
@click.argument("reports", nargs=-1, required=True, type=_FILE)
@click.option("--quantile", type=float, multiple=True, help="A further quantile, between 0 and 1.")
@click.option("--level", type=float, default=0.95, show_default=True, help="Of the intervals.")
@click.option("--population", is_flag=True, help="Intervals for what the clients are a sample of.")
@click.option("--output", type=_FILE, help="All estimates, a .json file.")
def aggregate_command(
    plan_file: Path,
    reports: tuple[Path, ...],
    *,
    quantile: tuple[float, ...],
    level: float,
    population: bool,
    output: Path | None,
) -> None:
    """Add up REPORTS, files that `encode` made under PLAN. Malformed reports are left out, silently."""
    outputs.check_output(output, (".json",))
    plan = so.SurveyPlan.load(plan_file)
    server = plan.server()
    for path in reports:
        _collect(server, path)
    estimate = server.estimate()
    band = estimate.interval(level, population=population)
    record: dict[str, Any] = {"clients": estimate.clients, "minimiser": estimate.minimiser}
    if server.fit.survey.loss.name == "absolute":
        record |= {"median": estimate.median, "quantiles": {str(q): estimate.quantile(q) for q in quantile}}
    elif quantile:
        raise InvalidParameterError("only reports of the absolute loss tell quantiles")
    for name in ("clients", "median", "minimiser"):
        if name in record:
            click.echo(f"{name:<14}{record[name]:.6g}")
    for name, found in record.get("quantiles", {}).items():
        click.echo(f"{'quantile ' + name:<14}{found:.6g}")
    if output is not None:
        grid = {"grid": estimate.grid, "shares": estimate.shares, "stderr": estimate.stderr}
        record |= grid | {"lower": band.lower, "upper": band.upper, "level": level, "risk": estimate.risk}
        outputs.write_text(output, outputs.to_json(record) + "\n")


def _collect(server: so.local.LocalServer, path: Path) -> None:
    """Add the reports of a file.

    Raises:
        InputFileError: It cannot be read.
    """
    try:
        if path.suffix.lower() == ".npz":
            with np.load(path, allow_pickle=False) as file:
                server.add_many(file["reports"])
            return
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                try:
                    server.add(json.loads(line))
                except (ValueError, RecursionError):
                    continue
    except OSError as error:
        raise InputFileError(f"the reports cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, LookupError, RuntimeError, MemoryError, EOFError, zipfile.BadZipFile, zlib.error):
        raise InputFileError("the file has no reports") from None
