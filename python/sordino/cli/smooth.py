"""`sordino smooth`: one private summary of points, and any number of questions to it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import click
import numpy as np

import sordino as so
from sordino.cli import outputs
from sordino.cli.accounts import Account, ledger_options
from sordino.cli.guarantee import Guarantee, add_options, flag, guarantee_options
from sordino.cli.published import write_columns
from sordino.cli.tables import read_chunks, read_columns, real, require_arrow
from sordino.errors import InputFileError, InvalidParameterError
from sordino.plots.tables import check_picture
from sordino.workloads.base import Array

__all__ = ["smooth_group"]

_Command = TypeVar("_Command", bound=Callable[..., Any])
_Kernels: TypeAlias = so.smooth.GaussianKernels | so.smooth.LaplaceKernels | so.smooth.MaternKernels

_FILE = click.Path(path_type=Path)
_KERNELS: dict[str, Callable[[Any], _Kernels]] = {
    "gaussian": so.smooth.GaussianKernels,
    "laplace": so.smooth.LaplaceKernels,
    "matern32": lambda scale: so.smooth.MaternKernels(scale, 1.5),
    "matern52": lambda scale: so.smooth.MaternKernels(scale, 2.5),
}
_ANSWERS = ("value", "stderr", "truncation", "lower", "upper")
_SUFFIXES = (".json", ".csv", ".parquet")

_RELEASE_EXAMPLES = """\b
Examples:
  sordino smooth release visits.csv --column age:18..100 --column weight:30..200 --bandwidth 8 --bandwidth 12 \\
      --points 5000 --epsilon 1 --delta 1e-6 --unit "one patient" --output summary.json
  sordino smooth release visits.parquet --column age:18..100 --smooth-order 3 --points 569 --replace --epsilon 1 --plan
"""
_QUERY_EXAMPLES = """\b
Examples:
  sordino smooth query summary.json --at 45,80 --at 60,95
  sordino smooth query summary.json --at-file places.csv --density --output density.csv
  sordino smooth query summary.json --moment 1,0 --moment 0,1
  sordino smooth query summary.json --box 40..60,.. --smoothing 2 --smoothing 5
"""


@click.group("smooth", short_help="Release a summary of points, and ask it.")
def smooth_group() -> None:
    """Smooth queries: averages of smooth functions over points in a few coordinates.

    One release makes a summary; the summary is public and answers as many questions as anybody has.
    """


@dataclass(frozen=True)
class _Choices(Guarantee):
    """The options of a release, as given; None or the default where not."""

    kernel: str | None = None
    bandwidth: tuple[float, ...] = ()
    smooth_order: int | None = None
    smooth_bound: float | None = None
    centres_file: Path | None = None
    points: int | None = None
    degree: str | None = None
    index_set: str | None = None

    def query_class(self, names: list[str]) -> Any:
        """Return the class of queries that the options describe.

        Raises:
            InvalidParameterError: None is, or two are.
            InputFileError: The centres cannot be read.
        """
        if self.smooth_order is not None:
            if self.kernel is not None or self.bandwidth or self.centres_file is not None:
                raise InvalidParameterError("--smooth-order is a class of its own: leave out kernels")
            return so.smooth.KSmooth(self.smooth_order, 1.0 if self.smooth_bound is None else self.smooth_bound)
        if self.smooth_bound is not None:
            raise InvalidParameterError("--smooth-bound goes with --smooth-order")
        if not self.bandwidth:
            raise InvalidParameterError("say what will be asked: --bandwidth of kernels, or --smooth-order")
        kernels = _kernels(self.kernel, self.bandwidth)
        return kernels if self.centres_file is None else kernels.at(_read_places(self.centres_file, names))

    def build_plan(self, columns: dict[str, tuple[float, float]]) -> so.ReleasePlan:
        """Return the plan.

        Raises:
            SordinoError: The choices do not describe a plan.
        """
        if self.points is None:
            raise InvalidParameterError("--points is needed: with --replace exactly how many, else a public guess")
        if self.objective != "mean":
            raise InvalidParameterError("summaries minimise the mean error: leave out --objective")
        degree = self.degree or "auto"
        workload = so.smooth.SmoothQueries(
            len(columns),
            points=self.points,
            bounds=list(columns.values()),
            query_class=self.query_class(list(columns)),
            degree=int(degree) if degree.isdecimal() else degree,
            index_set=self.index_set or "tensor",
        )
        return so.plan(workload, self.build_privacy(), unit=self.build_unit(), mechanism=self.mechanism)


def _kernels(name: str | None, bandwidth: tuple[float, ...]) -> _Kernels:
    return _KERNELS[name or "gaussian"](bandwidth[0] if len(bandwidth) == 1 else bandwidth)


def _kernel_options() -> list[Callable[[_Command], _Command]]:
    return [
        click.option("--kernel", type=click.Choice(sorted(_KERNELS)), help="Kind of kernels.  [default: gaussian]"),
        click.option(
            "--bandwidth", type=float, multiple=True, help="Of kernels, in data units; or one for each column."
        ),
    ]


def _kernel_choice(command: _Command) -> _Command:
    return add_options(command, _kernel_options())


def _release_options(command: _Command) -> _Command:
    return add_options(
        command,
        [
            *_kernel_options(),
            click.option(
                "--smooth-order", type=int, help="Instead of kernels: all functions with so many derivatives."
            ),
            click.option("--smooth-bound", type=float, help="Their bound, bounds of the columns being -1 and 1."),
            click.option("--centres-file", type=_FILE, help="Kernels at these places alone: for many columns. Public."),
            click.option("--points", type=int, help="How many points: with --replace exactly, else a public guess."),
            click.option("--degree", metavar="T", help="Polynomials on every axis, auto or paper.  [default: auto]"),
            click.option("--index-set", type=click.Choice(["tensor", "total"]), help="Which products of them."),
            *guarantee_options(),
        ],
    )


@smooth_group.command("release", epilog=_RELEASE_EXAMPLES, short_help="Release a summary of the points of a file.")
@click.argument("input", type=_FILE)
@click.option("--column", multiple=True, metavar="NAME:LOW..HIGH", help="A coordinate and its public bounds.")
@_release_options
@click.option("--plan", "plan_only", is_flag=True, help="Explain the plan, compare the mechanisms, release nothing.")
@click.option("--plan-file", type=_FILE, help="A saved plan, instead of the options for one.")
@click.option("--save-plan", type=_FILE, help="Write the plan that was used.")
@click.option("--output", type=_FILE, help="The summary, a .json file; a large one has an .npz file beside it.")
@click.option("--plot", type=_FILE, help="Draw the density of the first two coordinates, or of the only one.")
@ledger_options()
def release_command(
    input: Path,
    *,
    column: tuple[str, ...],
    plan_only: bool,
    plan_file: Path | None,
    save_plan: Path | None,
    output: Path | None,
    plot: Path | None,
    account: Account,
    **options: Any,
) -> None:
    """Release a summary of the points in INPUT, a CSV or Parquet file, or CSV from the standard input (-).

    A row is a point. Values outside the bounds are moved to the nearest bound. A row without a number in every
    column is no point and counts nowhere, silently; with --replace, where the number of points is public, it counts in
    the middle of the bounds. The file is read piece by piece.

    Every release costs its budget; asking the summary (`sordino smooth query`) costs nothing. What several
    releases cost together adds up: a ledger (`sordino ledger create`, --ledger) watches over it.
    """
    if output is None and not plan_only:
        raise InvalidParameterError("say where the summary goes (--output), or --plan")
    outputs.check_outputs([input], output, (".json",), save_plan, None if plot is None else check_picture(plot))
    columns = _parse_columns(column)
    choices = _Choices(**{item.name: options[item.name] for item in fields(_Choices) if item.name in options})
    plan = _planned(choices, plan_file, columns)
    if plot is not None and plan.fit.workload.declared is not None:
        raise InvalidParameterError("declared queries show no density: leave out --plot")
    if plan_only:
        click.echo(f"{plan.explain()}\n\n{plan.compare()}")
        return
    assert output is not None
    points = _read_points(input, list(columns))
    release = plan.release(points, ledger=account.ledger, request_id=account.request_id)
    release = replace(release, names=tuple(columns))
    release.save(output)
    click.echo(plan.explain())
    if save_plan is not None:
        plan.save(save_plan)
    if plot is not None:
        release.plot(plot)


def _planned(choices: _Choices, plan_file: Path | None, columns: dict[str, tuple[float, float]]) -> so.ReleasePlan:
    """Return the saved plan, or the one described by options.

    Raises:
        InvalidParameterError: The saved plan is about other columns, or options are given beside it.
    """
    if plan_file is None:
        return choices.build_plan(columns)
    choices.require_none()
    plan = so.ReleasePlan.load(plan_file)
    if not isinstance(plan.workload, so.smooth.SmoothQueries):
        raise InvalidParameterError("the saved plan is not about points: `sordino release` takes it")
    if plan.workload.bounds != tuple(columns.values()):
        raise InvalidParameterError("the saved plan has other bounds than --column says")
    return plan


def _parse_columns(texts: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return names and bounds of the coordinates.

    Raises:
        InvalidParameterError: There are none, one has no bounds, or a name repeats.
    """
    columns: dict[str, tuple[float, float]] = {}
    for text in texts:
        name, colon, bounds = text.rpartition(":")
        low, dots, high = bounds.partition("..")
        pair = (real(low), real(high))
        if not (colon and dots and name and np.isfinite(pair).all()):
            raise InvalidParameterError(
                f"--column {text}: expected a name and public bounds, such as age:18..100; "
                "they are never taken from the data"
            )
        if name in _ANSWERS:
            raise InvalidParameterError(f"answers have a column {name!r} of their own: rename that of the input")
        if name in columns:
            raise InvalidParameterError(f"--column {name} is given twice")
        columns[name] = pair
    if not columns:
        raise InvalidParameterError("say what a point is: --column NAME:LOW..HIGH, once for each coordinate")
    return columns


def _read_points(path: Path, names: list[str]) -> Iterator[Array]:
    """Yield points piece by piece.

    Raises:
        InputFileError: The file cannot be read.
    """
    for piece in read_chunks(path, names):
        yield np.array([[real(entry) for entry in column] for column in piece], dtype=np.float64).T


def _read_places(path: Path, names: Sequence[str] | None) -> Array:
    """Return public places, shape (count, d).

    Raises:
        InputFileError: The file cannot be read, or an entry is no finite number.
    """
    if names is None:
        raise InvalidParameterError("the summary has no names of coordinates: give places by --at")
    columns = read_columns(path, list(names))
    places = np.array([[real(entry) for entry in column] for column in columns], dtype=np.float64).T
    if not len(places) or not np.isfinite(places).all():
        raise InputFileError("a file of places must have a finite number in every row and column")
    return places


def _numbers(option: str, text: str, count: int) -> list[float]:
    """Return numbers with commas between them, one a coordinate.

    Raises:
        InvalidParameterError: Something else stands there.
    """
    found = [real(part) for part in text.split(",")]
    if len(found) != count or not np.isfinite(found).all():
        raise InvalidParameterError(f"{option} {text}: expected {count} numbers with commas between them")
    return found


def _box(text: str, count: int) -> tuple[list[float], list[float]]:
    """Return the ends of a box: `40..60` for each coordinate, either end may be left out.

    Raises:
        InvalidParameterError: Something else stands there.
    """
    sides = [part.partition("..") for part in text.split(",")]
    low = [-np.inf if not first.strip() else real(first) for first, _, _ in sides]
    high = [np.inf if not last.strip() else real(last) for _, _, last in sides]
    if len(sides) != count or not all(dots for _, dots, _ in sides) or np.isnan([*low, *high]).any():
        raise InvalidParameterError(
            f"--box {text}: expected {count} ranges with commas between them, such as 40..60,.."
        )
    return low, high


@dataclass(frozen=True)
class _Question:
    """What is asked: one kind, any number of queries."""

    at: tuple[str, ...] = ()
    at_file: Path | None = None
    moment: tuple[str, ...] = ()
    box: tuple[str, ...] = ()
    declared: bool = False

    def kind(self) -> str:
        """Return which kind is asked.

        Raises:
            InvalidParameterError: None, or several are.
        """
        asked = [item.name for item in fields(self) if getattr(self, item.name)]
        if len(asked) != 1:
            raise InvalidParameterError("ask one thing: --at, --at-file, --moment, --box or --declared")
        return asked[0]

    def places(self, release: so.smooth.SmoothRelease) -> Array:
        """Return the places that are asked about, shape (queries, d)."""
        if self.at_file is not None:
            return _read_places(self.at_file, release.names)
        return np.array([_numbers("--at", text, release.fit.workload.dimension) for text in self.at])


@smooth_group.command("query", epilog=_QUERY_EXAMPLES, short_help="Ask a summary: free, as often as wanted.")
@click.argument("summary", type=_FILE)
@click.option(
    "--at", multiple=True, metavar="X,Y,...", help="A place: the average of the kernel there over the points."
)
@click.option("--at-file", type=_FILE, help="A file of places, with the columns of the release.")
@click.option("--moment", multiple=True, metavar="P,Q,...", help="Powers of the coordinates: 1,0 is the first mean.")
@click.option("--box", multiple=True, metavar="A..B,...", help="The share of points in a box with soft sides.")
@click.option("--declared", is_flag=True, help="The queries that were declared (--centres-file).")
@click.option("--smoothing", type=float, multiple=True, help="Width of the sides of boxes; or one for each column.")
@click.option("--density", is_flag=True, help="With places: the density there in place of the average.")
@_kernel_choice
@click.option("--projected", is_flag=True, help="Answer from the nearest probability measure: for few points.")
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Level of the intervals.",
)
@click.option("--output", type=_FILE, help="Write to this .json, .csv or .parquet file.  [default: JSON to stdout]")
def query_command(
    summary: Path,
    *,
    smoothing: tuple[float, ...],
    density: bool,
    kernel: str | None,
    bandwidth: tuple[float, ...],
    projected: bool,
    level: float,
    output: Path | None,
    **options: Any,
) -> None:
    """Ask SUMMARY, a file that `sordino smooth release` wrote. It is public: answers cost nothing.

    Kernels are those of the release unless --bandwidth is given. Intervals hold the noise at their level and on top of
    it the truncation: how far a query is at most from what the summary answers in its place. With --projected they are
    about the answer before the projection.
    """
    outputs.check_output(output, _SUFFIXES)
    if output is not None and output.suffix.lower() == ".parquet":
        require_arrow()
    question = _Question(**options)
    kind = question.kind()
    for name, given, goes in (
        ("smoothing", smoothing, {"box"}),
        ("density", density, {"at", "at_file"}),
        ("kernel", kernel, {"at", "at_file"}),
        ("bandwidth", bandwidth, {"at", "at_file"}),
        ("projected", projected, {"at", "at_file", "moment", "box"}),
    ):
        if given and kind not in goes:
            raise InvalidParameterError(f"{flag(name)} does not go with {flag(kind)}")
    release = so.smooth.SmoothRelease.load(summary)
    asked = release.projected() if projected else release
    names = release.names or tuple(f"x{j}" for j in range(release.fit.workload.dimension))
    columns: dict[str, list[Any]]
    match kind:
        case "declared":
            answers = release.declared()
            columns = {"query": list(range(answers.values.size))}
        case "moment":
            powers = [_numbers("--moment", text, len(names)) for text in question.moment]
            answers = asked.query(so.smooth.MomentQueries(powers))
            columns = _named(names, np.array(powers))
        case "box":
            if not smoothing:
                raise InvalidParameterError("--box needs --smoothing: the sharper the sides, the larger the error")
            boxes = [_box(text, len(names)) for text in question.box]
            soft = smoothing[0] if len(smoothing) == 1 else smoothing
            answers = asked.query(so.smooth.Boxes([low for low, _ in boxes], [high for _, high in boxes], soft))
            columns = {"box": list(question.box)}
        case _:
            places = question.places(release)
            answers = _at(asked, places, kernel, bandwidth, density)
            columns = _named(names, places)
    lower, upper = answers.interval(level)
    numbers = (answers.values, answers.stderr, answers.truncation, lower, upper)
    columns |= {name: np.atleast_1d(column).tolist() for name, column in zip(_ANSWERS, numbers, strict=True)}
    if output is not None and output.suffix.lower() != ".json":
        write_columns(columns, output)
        return
    record = {
        "asked": "density" if density else kind.replace("_file", ""),
        "mechanism": release.fit.name,
        "guarantee": release.fit.guarantee(),
        "private": release.private,
        "post_processing": list(asked.post_processing),
        "points": release.points,
        "level": level,
        "answers": columns,
    }
    text = outputs.to_json(record) + "\n"
    if output is None:
        click.echo(text, nl=False)
    else:
        outputs.write_text(output, text)


def _named(names: Sequence[str], table: Array) -> dict[str, list[Any]]:
    return {name: table[:, j].tolist() for j, name in enumerate(names)}


def _at(
    release: so.smooth.SmoothRelease, places: Array, kernel: str | None, bandwidth: tuple[float, ...], density: bool
) -> so.smooth.SmoothAnswers:
    """Answer about places: averages of kernels, or the density."""
    if kernel is not None and not bandwidth:
        raise InvalidParameterError("--kernel needs --bandwidth")
    if density:
        if kernel not in {None, "gaussian"}:
            raise InvalidParameterError("--density takes Gaussian kernels, or those of the release")
        return release.density(
            places, bandwidth=(bandwidth if len(bandwidth) > 1 else bandwidth[0]) if bandwidth else None
        )
    workload = release.fit.workload
    own = workload.query_class if workload.declared is None else workload.declared.kernels
    found = _kernels(kernel, bandwidth) if bandwidth else own
    if not isinstance(found, so.smooth.GaussianKernels | so.smooth.LaplaceKernels | so.smooth.MaternKernels):
        raise InvalidParameterError("the release was made for no kernels: give --bandwidth")
    return release.query(found.at(places))
