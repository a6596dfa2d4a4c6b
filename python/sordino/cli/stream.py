"""`sordino stream`: a line in, an answer out."""

import csv
import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import click
import numpy as np

import sordino as so
from sordino.cli import outputs
from sordino.cli.accounts import Account, ledger_options
from sordino.cli.progress import working
from sordino.cli.stream_lines import Interruption, LineParser, LineReader
from sordino.cli.stream_options import StreamChoices, stream_options
from sordino.cli.stream_state import StreamState, open_stored
from sordino.errors import HorizonError, InputFileError, InvalidParameterError
from sordino.plots.tables import check_picture
from sordino.workloads.base import Array

__all__ = ["stream_command"]

_FILE = click.Path(path_type=Path)
# How long a signal waits for more of a line that has begun.
_LINE_SECONDS = 1.0

_EXAMPLES = """\b
Examples:
  sordino stream --workload running-sum --length 8760 --epsilon 1 --delta 1e-6 --plan
  tail -n +1 -f hourly.csv | sordino stream --workload running-sum --epsilon 1 --delta 1e-6 \\
      --column departures --unit "one flight" --state live.state --key-file live.key --from-start
  sordino stream hourly.csv --column departures --workload sliding-window --window 168 --rho 0.1 --stderr
"""


@dataclass(frozen=True)
class _Writer:
    """Writes answers to the standard output, each step once it is published.

    Attributes:
        fit: What is published.
        names: One for each number of an answer.
        every: Only steps that are a multiple of this one are written.
        form: CSV, or JSON lines.
        stderr: Whether the standard error is written as well.
    """

    fit: so.streams.StreamFit
    names: tuple[str, ...]
    every: int
    form: Literal["csv", "jsonl"]
    stderr: bool

    def header(self) -> None:
        """Write the names of the columns."""
        if self.form == "csv":
            text = io.StringIO()
            csv.writer(text, lineterminator="\n").writerow(["step", *self.names, *(["stderr"] if self.stderr else [])])
            self._write(text.getvalue())

    def answers(self, first: int, values: Array) -> None:
        """Write the answers of the steps from `first`.

        Raises:
            BrokenPipeError: Nobody reads.
        """
        steps = np.arange(first, first + len(values), dtype=np.uint64)
        chosen = steps % np.uint64(self.every) == 0
        steps, rows = steps[chosen], values[chosen].tolist()
        errors = self.fit.std(steps).tolist() if self.stderr else [None] * len(rows)
        lines = map(self._line, steps.tolist(), rows, errors)
        self._write("".join(lines))

    def _line(self, step: int, row: list[float], error: float | None) -> str:
        if self.form == "csv":
            return ",".join(map(repr, [step, *row, *([] if error is None else [error])])) + "\n"
        record: dict[str, Any] = {"step": step, "value": row[0] if len(row) == 1 else row}
        return json.dumps(record if error is None else record | {"stderr": error}) + "\n"

    @staticmethod
    def _write(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


@click.command("stream", epilog=_EXAMPLES, short_help="Publish a stream while it arrives.")
@click.argument("file", type=_FILE, required=False)
@stream_options
@click.option("--column", "columns", multiple=True, help="Column with the numbers; the first line then has the names.")
@click.option(
    "--every", type=click.IntRange(1), default=1, show_default=True, metavar="K", help="Write every K-th step only."
)
@click.option("--format", "form", type=click.Choice(["csv", "jsonl"]), default="csv", show_default=True)
@click.option("--stderr", is_flag=True, help="Write the standard error of each answer as well.")
@click.option("--state", type=_FILE, help="Keep the stream in this file, encrypted, and go on with it next time.")
@click.option("--key-file", type=_FILE, help="The key of the state; made if it does not exist. Keep it secret.")
@click.option("--from-start", is_flag=True, help="The input begins with the first line of the stream, as a FILE does.")
@click.option("--plan", "plan_only", is_flag=True, help="Explain the plan, compare the mechanisms, and read nothing.")
@click.option("--plot", type=_FILE, help="With --plan: draw the error of every mechanism against the step.")
@ledger_options()
def stream_command(
    file: Path | None,
    *,
    columns: tuple[str, ...],
    every: int,
    form: Literal["csv", "jsonl"],
    stderr: bool,
    state: Path | None,
    key_file: Path | None,
    from_start: bool,
    plan_only: bool,
    plot: Path | None,
    account: Account,
    **options: Any,
) -> None:
    """Publish an answer for each line of FILE, or of the standard input, as it comes.

    A line is a step: one number, or several with commas between them (--dim), or named columns (--column). A line
    that is anything else counts as zero, silently. Numbers of lines are public, what is in them is not.

    Without --state every run is a new stream that costs its budget again. With it, a stream goes on where it ended,
    at no further cost; SIGINT and SIGTERM save it. A FILE is taken to begin with the first line of the stream, and
    lines whose answers were written are passed over; the standard input goes on, unless --from-start is given.
    """
    if (state is None) != (key_file is None):
        raise InvalidParameterError("--state and --key-file go together")
    if columns and options["dim"] not in (None, len(columns)):
        raise InvalidParameterError("--dim must be the number of columns, or be left out")
    if len(columns) > 1:
        options["dim"] = len(columns)
    choices = StreamChoices(**options)
    if plan_only:
        _explain(choices, plot)
        return
    if plot is not None:
        raise InvalidParameterError("--plot goes with --plan")
    with ExitStack() as stack:
        source = stack.enter_context(_opened(file))
        interruption = stack.enter_context(Interruption())
        stream, saved = _open_stream(choices, state, key_file, account)
        stack.enter_context(stream)
        dim = stream.fit.dim
        if columns and len(columns) != dim:
            raise InvalidParameterError("the state is of a stream with another number of columns")
        names = ("value",) if dim == 1 else columns or tuple(f"value_{i}" for i in range(1, dim + 1))
        writer = _Writer(stream.fit, names, every, form, stderr)
        again = from_start or file is not None
        if saved is not None and saved.released > stream.step and not again:
            click.echo(
                f"sordino: a run was cut off. Lines {stream.step + 1} to {saved.released} must come again",
                err=True,
            )
        if stream.step == 0:
            writer.header()
        reader = LineReader(source, interruption, dim)
        _Run(stream, saved, writer, LineParser(dim, columns), stream.step if again else 0).serve(reader, interruption)


def _explain(choices: StreamChoices, plot: Path | None) -> None:
    if plot is not None:
        outputs.check_output(check_picture(plot), ())
    with working("planning with every mechanism"):
        plan, comparison = choices.build_plan(), choices.build_comparison()
    click.echo(f"{plan.explain()}\n\n{comparison}")
    if plot is not None:
        comparison.plot(plot)


@contextmanager
def _opened(file: Path | None) -> Iterator[int]:
    """Give the descriptor of the input.

    Raises:
        InputFileError: The file cannot be opened.
    """
    if file is None or str(file) == "-":
        yield 0
        return
    try:
        descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise InputFileError(f"the input file cannot be read: {error.strerror}") from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open_stream(
    choices: StreamChoices, state: Path | None, key_file: Path | None, account: Account
) -> tuple[so.Stream, StreamState | None]:
    with working("planning"):
        if state is None or key_file is None:
            return choices.build_plan().open(account.ledger, request_id=account.request_id), None
        saved = open_stored(choices, state, key_file, account)
        return saved.stream, saved


@dataclass
class _Run:
    """From lines to answers.

    Attributes:
        stream: The open stream.
        saved: Where its state is kept.
        writer: Where answers go.
        parser: Numbers in lines.
        skip: Lines still to be passed over.
    """

    stream: so.Stream
    saved: StreamState | None
    writer: _Writer
    parser: LineParser
    skip: int

    def serve(self, reader: LineReader, interruption: Interruption) -> None:
        """Publish lines until the input ends or a signal comes.

        Raises:
            HorizonError: There are more lines than steps; those before were published.
            InputFileError: The input is shorter than what was published before.
            SordinoError: As `Stream.update`.
        """
        while not interruption.stopped:
            ready = reader.wait(None if self.saved is None else self.saved.patience())
            if self.saved is not None and (not ready or self.saved.due):
                self.saved.save()
            if not ready:
                continue
            lines = reader.read()
            if lines is None:
                if self.skip:
                    raise InputFileError("the input is shorter than what was published: it must begin at the start")
                break
            self._publish(self.parser.items(lines))
        if self.saved is not None:
            # A line that was begun was taken from the input: the next run would read its end as a line.
            while reader.begun and reader.follows(_LINE_SECONDS):
                lines = reader.read(whole=True)
                if lines is None:
                    break
                self._publish(self.parser.items(lines))
            self.saved.save()

    def _publish(self, items: Array) -> None:
        passed = min(self.skip, len(items))
        self.skip -= passed
        left = self.stream.fit.steps - self.stream.step
        fitting = items[passed : passed + left]
        if len(fitting):
            first = self.stream.step + 1
            values = self.stream.update(fitting if self.stream.fit.dim > 1 else fitting[:, 0])
            self.writer.answers(first, np.asarray(values).reshape(len(fitting), -1))
        if passed + left < len(items):
            if self.saved is not None:
                self.saved.save()
            raise HorizonError(f"the stream has ended: its budget covers {self.stream.fit.steps} steps")
