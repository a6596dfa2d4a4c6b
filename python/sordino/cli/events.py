"""`sordino events`: counts of edges, letters and events in a file."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

import sordino as so
from sordino._support.private_numbers import is_missing
from sordino.cli import outputs
from sordino.cli.accounts import Account, ledger_options
from sordino.cli.guarantee import Guarantee, add_options, flag, guarantee_options
from sordino.cli.published import write_columns
from sordino.cli.tables import Column, read_columns, real
from sordino.errors import InputFileError, InvalidParameterError
from sordino.workloads.events.base import EventWorkload

__all__ = ["events_group"]

_FILE = click.Path(path_type=Path)
_FUNCTIONS = ("edges", "triangles", "stars", "degrees", "forest")
_WORDS = ("substrings", "episodes")
# What only some counts take.
_OF_GRAPHS = ("vertices", "source", "target", "weight", "max_degree", "unchecked", "node", "k", "max_weight", "side")
_OF_WORDS = ("alphabet", "longest", "column", "word", "threshold")
_WEIGHT_BITS = 8

_EXAMPLES = """\b
Examples:
  sordino events count calls.csv --of triangles --source from --target to --vertices 10000 --max-degree 100 \\
      --epsilon 1 --delta 1e-6
  sordino events count routes.csv --of cuts --source origin --target dest --vertices EWR,JFK,LGA,ATL,BOS \\
      --side EWR --side JFK,LGA --every-step 100000 --rho 0.1 --output cuts.csv
  sordino events count book.txt --of substrings --alphabet "abcdefghijklmnopqrstuvwxyz " --longest 4 --epsilon 1
  sordino events count log.csv --of episodes --column kind --alphabet login,error,logout --longest 2 --epsilon 1
"""


@dataclass(frozen=True)
class _Choices(Guarantee):
    """The options, as given; None or the default where not."""

    vertices: str | None = None
    source: str | None = None
    target: str | None = None
    weight: str | None = None
    max_degree: int | None = None
    unchecked: bool = False
    node: bool = False
    k: int | None = None
    max_weight: float | None = None
    side: tuple[str, ...] = ()
    alphabet: str | None = None
    longest: int | None = None
    column: str | None = None
    word: tuple[str, ...] = ()
    threshold: float | None = None

    def refuse(self, names: tuple[str, ...], kind: str) -> None:
        """Refuse options that do not belong to what is counted.

        Raises:
            InvalidParameterError: One was given.
        """
        for made in self.made():
            if made in map(flag, names):
                raise InvalidParameterError(f"{made} does not belong to {kind}")

    def need(self, name: str) -> Any:
        """Return an option that must be given.

        Raises:
            InvalidParameterError: It was not.
        """
        if (value := getattr(self, name)) is None:
            raise InvalidParameterError(f"{flag(name)} is needed")
        return value

    @property
    def most_weight(self) -> float:
        """The largest weight that counts."""
        return 1.0 if self.max_weight is None else self.max_weight

    def graph(self, kind: str, length: int) -> EventWorkload:
        """Return the workload about a graph."""
        self.refuse(_OF_WORDS, kind)
        text: str = self.need("vertices")
        vertices: Any = int(text) if text.isdecimal() else text.split(",")
        if kind not in {"cuts", "forest"}:
            self.refuse(("weight", "max_weight"), kind)
        if kind == "cuts":
            self.refuse(("max_degree", "unchecked", "node", "k"), kind)
            bits = 0 if self.weight is None else _WEIGHT_BITS
            return so.events.WeightedGraph(vertices, length, max_weight=self.most_weight, weight_bits=bits)
        self.refuse(("side",), kind)
        level: Any = "node" if self.node else "edge"
        options: dict[str, Any] = {"max_degree": self.max_degree, "unchecked": self.unchecked, "level": level}
        if kind == "stars":
            return so.events.StarCount(2 if self.k is None else self.k, vertices, length, **options)
        self.refuse(("k",), kind)
        if kind == "forest":
            return so.events.SpanningForestCost(
                vertices, length, max_weight=self.most_weight, weight_bits=_WEIGHT_BITS, **options
            )
        return {
            "edges": so.events.EdgeCount,
            "triangles": so.events.TriangleCount,
            "degrees": so.events.DegreeHistogram,
        }[kind](vertices, length, **options)

    def words(self, kind: str) -> EventWorkload:
        """Return the workload about a text, which is one step."""
        self.refuse(_OF_GRAPHS, kind)
        alphabet: Any = self.need("alphabet")
        alphabet = alphabet if self.column is None else alphabet.split(",")
        build = so.events.SubstringCounts if kind == "substrings" else so.events.EpisodeCounts
        return build(alphabet, self.need("longest"), 1, batches=True)

    def letters(self, path: Path) -> list[str | None]:
        """Return the private letters: characters of a text, or entries of a column.

        Raises:
            InputFileError: The file cannot be read.
        """
        if self.column is not None:
            return _names(read_columns(path, [self.column])[0])
        try:
            # Every character is a letter, the ends of lines too; a byte that is none is one of no alphabet.
            return list(path.read_bytes().decode("utf-8", "surrogateescape"))
        except OSError as error:
            raise InputFileError(f"the input file cannot be read: {error.strerror}") from None

    def edges(self, path: Path, workload: EventWorkload) -> tuple[Any, Any, Any]:
        """Return both ends and the weights of the private edges, a row each.

        Raises:
            InputFileError: The file cannot be read.
        """
        names = [self.need("source"), self.need("target"), *([] if self.weight is None else [self.weight])]
        one, other, *weights = read_columns(path, names)
        u, v = (_vertices(column, workload.names is not None) for column in (one, other))  # type: ignore[attr-defined]
        return u, v, np.array([real(entry) for entry in weights[0]]) if weights else None


def _names(column: Column) -> list[str | None]:
    """Return names, None where there is none."""
    return [None if is_missing(entry) else str(entry) for entry in column]


def _vertices(column: Column, named: bool) -> Any:
    """Return vertices by name, or by number, -1 for what is none."""
    if named:
        return _names(column)
    numbers = np.array([real(entry) for entry in column], dtype=np.float64)
    valid = (numbers >= 0) & (numbers < 2**31) & (numbers == np.floor(numbers))
    return np.where(valid, numbers, -1.0).astype(np.int64)


def _options(command: Any) -> Any:
    return add_options(
        command,
        [
            click.option(
                "--of", "kind", type=click.Choice([*_FUNCTIONS, "cuts", *_WORDS]), required=True, help="What."
            ),
            click.option("--vertices", help="How many (0, 1, ...), or their names with commas. Public."),
            click.option("--source", help="Column of one end of the edges."),
            click.option("--target", help="Column of the other end."),
            click.option("--weight", help="Column of weights: of cuts and forests."),
            click.option("--max-weight", type=float, help="Largest weight; others count nowhere.  [default: 1]"),
            click.option("--max-degree", type=int, help="Edges beyond it at a vertex are left out."),
            click.option(
                "--unchecked",
                is_flag=True,
                help="You promise that no vertex has more: nothing is charged for leaving out.",
            ),
            click.option("--node", is_flag=True, help="Protect a vertex with all its edges; --unchecked."),
            click.option("--k", type=int, help="Edges of a star.  [default: 2]"),
            click.option("--side", multiple=True, metavar="A,B,...", help="Of cuts: vertices against all others."),
            click.option("--alphabet", help="Letters of a text; with --column names, with commas. Public."),
            click.option("--longest", type=int, help="Letters of the longest word."),
            click.option("--column", help="Of a CSV or Parquet file of events; otherwise INPUT is a text."),
            click.option(
                "--word", multiple=True, help="Count this word (with --column: A,B,...), not the frequent ones."
            ),
            click.option("--threshold", type=float, help="Least noisy count of a frequent word."),
            click.option(
                "--every-step", type=int, metavar="STEPS", help="Publish after every row, of at most so many."
            ),
            *guarantee_options(),
        ],
    )


@click.group("events", short_help="Count edges, triangles, cuts, frequent words.")
def events_group() -> None:
    """Graphs and texts: counts of patterns of events."""


@events_group.command("count", epilog=_EXAMPLES, short_help="Count patterns in a file of events.")
@click.argument("input", type=_FILE)
@_options
@click.option("--level", type=float, default=0.95, show_default=True, help="Of the intervals, each.")
@click.option("--plan", "plan_only", is_flag=True, help="Explain the plan, count nothing.")
@click.option("--output", type=_FILE, help="A .json, .csv or .parquet file.  [default: JSON on the standard output]")
@ledger_options()
def count_command(
    input: Path,
    *,
    kind: str,
    every_step: int | None,
    level: float,
    plan_only: bool,
    output: Path | None,
    account: Account,
    **options: Any,
) -> None:
    """Count patterns in INPUT: edges (CSV or Parquet, a row each), letters of a text, or events of a column.

    Once, after the last row; or with --every-step after each, which needs more noise. Malformed rows count nowhere,
    silently. By default the unit is one event: an edge, a letter or nothing. How many rows or letters INPUT has is
    public with --every-step and for texts: neighbouring files differ in what a row says, or whether it is malformed.
    """
    outputs.check_output(output, (".json", ".csv", ".parquet"), input)
    choices = _Choices(**{item.name: options[item.name] for item in fields(_Choices) if item.name in options})
    of_words = kind in _WORDS
    if of_words and every_step is not None:
        raise InvalidParameterError("words are counted once: leave out --every-step")
    workload = choices.words(kind) if of_words else choices.graph(kind, every_step or 1)
    plan = so.plan(
        workload,
        choices.build_privacy(),
        unit=choices.build_unit(),
        mechanism=choices.mechanism,
        objective=choices.objective,
    )
    if plan_only:
        click.echo(plan.explain())
        return
    sides = [_side(text, workload) for text in choices.side]
    if kind == "cuts" and not sides:
        raise InvalidParameterError("--side is needed, once for each cut")
    with plan.open(account.ledger, request_id=account.request_id) as stream:
        if of_words:
            columns = _count_words(stream, choices, input, level)
        else:
            columns = _count_edges(stream, choices, input, sides, every=every_step is not None, level=level)
    if output is not None and output.suffix.lower() != ".json":
        write_columns(columns, output)
        return
    record = {"guarantee": plan.guarantee(), "mechanism": plan.mechanism, "level": level, "answers": columns}
    text = outputs.to_json(record) + "\n"
    if output is None:
        click.echo(text, nl=False)
    else:
        outputs.write_text(output, text)


def _side(text: str, workload: Any) -> list[Any]:
    parts = text.split(",")
    return parts if workload.names is not None else [int(part) if part.isdecimal() else -1 for part in parts]


def _columns(steps: NDArray[np.int64], names: list[str], values: NDArray[np.float64], std: Any, width: Any) -> Any:
    """Return answers, shape (steps, names), as columns."""
    std, width = np.broadcast_to(std, values.shape), np.broadcast_to(width, values.shape)
    return {
        "step": np.repeat(steps, len(names)).tolist(),
        "count": names * len(steps),
        "value": values.reshape(-1).tolist(),
        "stderr": std.reshape(-1).tolist(),
        "lower": (values - width).reshape(-1).tolist(),
        "upper": (values + width).reshape(-1).tolist(),
    }


def _count_words(stream: Any, choices: _Choices, path: Path, level: float) -> dict[str, list[Any]]:
    words: list[Any] = [word if choices.column is None else word.split(",") for word in choices.word]
    for word in words:
        stream.fit.events.index(word)  # a mistake is found before the file is read
    stream.update(choices.letters(path), together=True)
    if words:
        counts, width = stream.count(words), stream.half_width(level, 1)
    else:
        found = stream.heavy_hitters(choices.threshold, level=level)
        words, counts = [heavy.word for heavy in found], np.array([heavy.count for heavy in found])
        width = stream.half_width(level)
    names = [word if isinstance(word, str) else ",".join(word) for word in words]
    return _columns(np.array([1]), names, counts.reshape(1, -1), stream.stderr, width)  # type: ignore[no-any-return]


def _count_edges(
    stream: Any, choices: _Choices, path: Path, sides: list[list[Any]], *, every: bool, level: float
) -> dict[str, list[Any]]:
    fit = stream.fit
    u, v, w = choices.edges(path, fit.events)
    if not isinstance(stream, so.events.GraphStream):
        answers = stream.update(u, v, *(() if w is None else (w,)), together=not every)
        values = np.asarray(answers, dtype=np.float64).reshape(-1, fit.coordinates)
        steps = np.arange(1, len(values) + 1)
        names = [fit.events.kind] if fit.coordinates == 1 else [f"degree {d}" for d in range(fit.coordinates)]
        std, width = fit.std(steps)[:, None], fit.half_width(steps, level)[:, None]
        return _columns(steps, names, values, std, width)  # type: ignore[no-any-return]
    names = ["+".join(map(str, side)) for side in sides]
    cuts = []
    for row in range(len(u)) if every else [None]:
        chosen = slice(None) if row is None else slice(row, row + 1)
        stream.update(u[chosen], v[chosen], None if w is None else w[chosen], together=True)
        cuts.append([stream.cut(side) for side in sides])
    values = np.array([[cut.value for cut in row] for row in cuts]).reshape(len(cuts), len(sides))
    std = np.array([[cut.stderr for cut in row] for row in cuts]).reshape(values.shape)
    upper = [[float(np.asarray(cut.interval(level).upper)) for cut in row] for row in cuts]
    width = np.array(upper).reshape(values.shape) - values
    return _columns(np.arange(1, len(cuts) + 1), names, values, std, width)  # type: ignore[no-any-return]
