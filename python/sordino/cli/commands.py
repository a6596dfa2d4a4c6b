"""The commands about plans and releases, and how a refusal becomes one line and an exit code."""

import errno
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import click

import sordino as so
from sordino._support.files import reason_of
from sordino.cli import outputs
from sordino.cli.accounts import Account, ledger_options
from sordino.cli.events import events_group
from sordino.cli.guarantee import number_list
from sordino.cli.inputs import SOURCE_OPTIONS, Source, read_source
from sordino.cli.ledger import ledger_group, report_command
from sordino.cli.local import local_group
from sordino.cli.options import Choices, plan_options
from sordino.cli.progress import working
from sordino.cli.published import check_output, write_release
from sordino.cli.schemas import table_group
from sordino.cli.sketch import sketch_group
from sordino.cli.smooth import smooth_group
from sordino.cli.store import store_group
from sordino.cli.stream import stream_command
from sordino.cli.truth import draw_truth, true_answers
from sordino.errors import InvalidParameterError, SordinoError
from sordino.plots.style import literal
from sordino.plots.tables import check_picture, plot_release, save_figure
from sordino.privacy.units import covers

__all__ = ["application"]

_EXIT_CODES: tuple[tuple[int, tuple[type[SordinoError], ...]], ...] = (
    (
        3,
        (
            so.errors.CheckpointError,
            so.errors.InputFileError,
            so.errors.PlanFileError,
            so.errors.ShapeError,
            so.errors.KeyMissingError,
            so.errors.StepStoreError,
            so.errors.StoreError,
            so.errors.WrongKeyError,
        ),
    ),
    (
        4,
        (
            so.errors.BudgetExceededError,
            so.errors.RequestError,
            so.errors.ForkError,
            so.errors.HorizonError,
            so.errors.StepConflictError,
            so.errors.UnsupportedCostError,
            so.errors.UnsupportedMechanismError,
        ),
    ),
    (5, (so.errors.EntropyError,)),
)
_FILE = click.Path(path_type=Path)
_INTERRUPTED = 130
_progress = click.option(
    "--progress/--no-progress", default=True, help="Show on a terminal how far searches are.  [default: progress]"
)

_PLAN_EXAMPLES = """\b
Examples:
  sordino plan --workload moving-average --window 7 --length 365 --epsilon 1 --delta 1e-6
  sordino plan --workload histogram --length 50 --epsilon 0.5 --unit "one visit" --save plan.json
  sordino plan --matrix queries.npz --rho 0.1 --objective max --save plan.json
"""
_COMPARE_EXAMPLES = """\b
Examples:
  sordino compare --workload running-sum --length 8760 --epsilon 1 --delta 1e-6
  sordino compare --marginals 2 --column "sex:f|m" --column age:0..99 --epsilon 1 --delta 1e-6
  sordino compare --workload band-pass --low 0 --high 0.01 --length 8760 --rho 0.1 --plot bars.png
"""
_EXPLAIN_EXAMPLES = """\b
Examples:
  sordino explain plan.json
  sordino explain --workload running-sum --length 365 --mu 0.2 --unit "one flight"
"""
_RELEASE_EXAMPLES = """\b
Examples:
  sordino release daily.csv --counts-column flights --label-column day \\
      --workload moving-average --window 7 --epsilon 1 --delta 1e-6 --unit "one flight" --plot out.png
  sordino release log.csv --events-column time --start 2026-01-01 --end 2026-02-01 --every 1h \\
      --user-column who --max-records 5 --workload running-sum --rho 0.1 --output hourly.csv
  sordino release visits.parquet --values-column visits --bins 51 --epsilon 0.5
  sordino release survey.csv --values-column age --bins 100 --workload all-ranges --epsilon 1 --delta 1e-6
  sordino release survey.csv --marginals 2 --column "sex:f|m" --column "region:north|south" --rho 0.1
  sordino release daily.csv --counts-column flights --plan plan.json
"""


class _Refusal(click.ClickException):
    """One line on standard error, and an exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(" ".join(message.split()))
        self.exit_code = code  # type: ignore[misc] # click declares it for the class and reads it from the instance


def _refusal(error: SordinoError) -> _Refusal:
    code = next((code for code, kinds in _EXIT_CODES if isinstance(error, kinds)), 2)
    return _Refusal(str(error), code)


class _Application(click.Group):
    """A group whose commands end in one line when they refuse."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        try:
            return super().make_context(*args, **extra)
        except click.UsageError as error:
            raise _Refusal(error.format_message(), 2) from None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            raise _Refusal(error.format_message(), 2) from None
        except SordinoError as error:
            raise _refusal(error) from None
        except KeyboardInterrupt:
            raise _Refusal("interrupted", _INTERRUPTED) from None
        except OSError as error:
            if error.errno == errno.EPIPE:  # whoever read has enough
                raise
            raise _Refusal(f"the output cannot be written: {reason_of(error)}", 3) from None


@click.group(cls=_Application, invoke_without_command=True, context_settings={"max_content_width": 100})
@click.version_option(so.__version__, prog_name="sordino")
@click.pass_context
def application(ctx: click.Context) -> None:
    """Differentially private linear queries: exact noise, least error, certificates.

    Exit codes: 0 done, 2 bad option or missing package, 3 a file cannot be read or written, 4 refused for
    privacy's sake, 5 no randomness from the operating system, 130 interrupted.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


application.add_command(events_group)
application.add_command(ledger_group)
application.add_command(report_command)
application.add_command(local_group)
application.add_command(sketch_group)
application.add_command(smooth_group)
application.add_command(store_group)
application.add_command(stream_command)
application.add_command(table_group)


@application.command("plan", epilog=_PLAN_EXAMPLES, short_help="Choose a mechanism and say the expected error.")
@plan_options
@click.option("--save", type=_FILE, help="Write the plan, to be used by `release --plan` and `explain`.")
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON.")
@click.option("--plot", type=_FILE, help="Draw the expected error of every answer.")
@_progress
def plan_command(save: Path | None, as_json: bool, plot: Path | None, progress: bool, **options: Any) -> None:
    """Choose mechanism and noise, and say the expected error. Touches no data, costs nothing."""
    with working("planning", progress) as report:
        plan = Choices(**options).build_plan(progress=report)
    if save is not None:
        plan.save(save)
    if plot is not None:
        plan.plot(plot)
    if as_json:
        click.echo(outputs.to_json(outputs.plan_record(plan)))
    else:
        outputs.show_facts(outputs.plan_facts(plan))


@application.command("compare", epilog=_COMPARE_EXAMPLES, short_help="Show the expected error of every mechanism.")
@plan_options
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
@click.option("--plot", type=_FILE, help="Draw the errors as bars.")
@_progress
def compare_command(as_json: bool, plot: Path | None, progress: bool, **options: Any) -> None:
    """Show the expected error of every mechanism, best first; `*` marks the one that auto takes."""
    with working("planning with every mechanism", progress) as report:
        comparison = Choices(**options).build_comparison(report)
    if plot is not None:
        comparison.plot(plot)
    if as_json:
        click.echo(outputs.to_json(outputs.comparison_record(comparison)))
    else:
        outputs.show_comparison(comparison)


@application.command("explain", epilog=_EXPLAIN_EXAMPLES, short_help="Explain a plan.")
@click.argument("file", type=_FILE, required=False)
@plan_options
@_progress
def explain_command(file: Path | None, progress: bool, **options: Any) -> None:
    """Explain a plan, saved in FILE or described by options: what happens, why, and how near to the limit."""
    click.echo(_planned(file, Choices(**options), progress).explain())


def _planned(file: Path | None, choices: Choices, progress: bool, source: Source | None = None) -> so.ReleasePlan:
    """Return the saved plan, or the one described by options, for the cells of the source if there are any."""
    bounded = None if source is None else source.unit
    if file is not None:
        # Columns say what a row of the source is, and what is enforced in a cell is none of the plan's choices.
        made = choices if source is None else replace(choices, column=())
        (made if bounded is None else replace(made, per_cell=None)).require_none()
        with working("reading and verifying the plan", progress):
            plan = so.ReleasePlan.load(file)
        if isinstance(plan.workload, so.smooth.SmoothQueries):
            raise InvalidParameterError("the saved plan is about points: `sordino smooth release` takes it")
        _require_unit(plan, bounded)
        return plan
    with working("planning", progress) as report:
        length = None if source is None else source.length
        default = "histogram" if source is not None and choices.matrix is None and choices.marginals is None else None
        return choices.build_plan(length, default=default, bounded=bounded, progress=report)


def _require_unit(plan: so.ReleasePlan, bounded: so.AddRemove | None) -> None:
    """Refuse a saved plan whose unit does not cover what tabulation lets through."""
    if bounded is not None and not (isinstance(plan.unit, so.AddRemove) and covers(plan.unit, bounded)):
        raise InvalidParameterError(
            "the saved plan is not for such users: it protects fewer records of one, or in a cell, than are let through"
        )


@application.command("release", epilog=_RELEASE_EXAMPLES, short_help="Release answers about private data.")
@click.argument("input", type=_FILE)
@click.option("--counts-column", help="Column of counts: one row for each cell, in order.")
@click.option("--label-column", help="With counts: names of the cells. They are published.")
@click.option("--events-column", help="Column of ISO times: one row for each event.")
@click.option("--start", help="With events: beginning of the first bin.")
@click.option("--end", help="With events: end of the last bin.")
@click.option("--every", help="With events: width of a bin, such as 15min, 1h or 1d.")
@click.option("--values-column", help="Column of values: one row for each record.")
@click.option("--bins", type=int, help="With values: how many codes 0, 1, ... there are.")
@click.option("--edges", callback=number_list, metavar="A,B,...", help="With values: edges of half-open bins.")
@click.option("--user-column", help="With events, values or --column: whose record it is.")
@click.option("--max-records", type=int, help="With users: records of each that count; the first ones.")
@plan_options
@click.option("--plan", "plan_file", type=_FILE, help="A saved plan, instead of the options for one.")
@click.option("--output", type=_FILE, help="Write to this .json, .csv or .parquet file.  [default: JSON to stdout]")
@click.option("--plot", type=_FILE, help="Draw the published answers with their intervals.")
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Level of the intervals.",
)
@_progress
@click.option("--save-plan", type=_FILE, help="Write the plan that was used.")
@ledger_options()
@click.option("--insecure-show-truth", is_flag=True, help="Draw the truth as well. The picture is NOT private.")
def release_command(
    input: Path,
    *,
    plan_file: Path | None,
    output: Path | None,
    plot: Path | None,
    level: float,
    save_plan: Path | None,
    progress: bool,
    insecure_show_truth: bool,
    account: Account,
    **options: Any,
) -> None:
    """Release answers about the data in INPUT, a CSV or Parquet file: the one command that touches data.

    Say what a row is: a cell (--counts-column), an event (--events-column), a record with a value
    (--values-column) or one with several columns (--column). With counts, the number of rows and the labels
    count as public: rows are the cells of the domain, not records. Events, values and levels that are malformed
    or were not declared count nowhere, silently. Times without an offset are taken as UTC.

    What several releases cost together adds up: a ledger (`sordino ledger create`, --ledger) watches over it.
    """
    if insecure_show_truth and plot is None:
        raise InvalidParameterError("--insecure-show-truth needs --plot: there is no picture otherwise")
    picture = None if plot is None else check_picture(plot)
    outputs.check_outputs([input], output, (".json", ".csv", ".parquet"), save_plan, picture)
    source = read_source(input, {name: options[name] for name in SOURCE_OPTIONS})
    check_output(output)
    choices = Choices(**{item.name: options[item.name] for item in fields(Choices)})
    plan = _planned(plan_file, choices, progress, source)
    if not plan.workload.is_listed:
        raise InvalidParameterError("more than 2**26 answers are not written: release in Python, and ask for some")
    cells = source.cells_for(plan.workload)
    shows_table = isinstance(plan.fit, so.adaptive.TreeFit) and not isinstance(plan.workload, so.Histogram)
    if insecure_show_truth and shows_table:
        raise InvalidParameterError("the picture of a tree shows its table: the truth is drawn beside a histogram's")
    truth = true_answers(plan, cells) if insecure_show_truth else None
    release = replace(plan.release(cells, ledger=account.ledger, request_id=account.request_id), index=source.labels)
    write_release(release, level, source, output)
    if save_plan is not None:
        plan.save(save_plan)
    if plot is not None:
        figure = plot_release(release, level=level) if isinstance(release, so.Release) else release.plot()
        if plan.workload.per_cell:
            figure.axes[0].set_xlabel(literal(source.axis))
        if truth is not None:
            click.echo("WARNING: the picture shows the private data itself. It is NOT private.", err=True)
            draw_truth(figure, release, truth)
        save_figure(figure, plot, private=truth is not None)
