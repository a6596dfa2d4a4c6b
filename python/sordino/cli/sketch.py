"""`sordino sketch`: build at many places, merge, release once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import click
import numpy as np
from numpy.typing import NDArray

import sordino as so
from sordino._support.files import atomic_write
from sordino.cli import outputs
from sordino.cli.accounts import Account, ledger_options
from sordino.cli.guarantee import Guarantee, add_options, flag, guarantee_options
from sordino.cli.inputs import Source
from sordino.cli.progress import working
from sordino.cli.published import check_output, write_release
from sordino.cli.tables import Column, read_chunks, real
from sordino.errors import InputFileError, InvalidParameterError
from sordino.mechanisms.linear.compression import KINDS, RECOVERIES

__all__ = ["sketch_group"]

_Command = TypeVar("_Command", bound=Callable[..., Any])

_FILE = click.Path(path_type=Path)
_MECHANISMS = ("compressive", "compressive-laplace", "compressive-gaussian")

_BUILD_EXAMPLES = """\b
Examples:
  sordino sketch build visits.csv --cells-column page --cells 1000000 --measurements 4000 --output a.sketch
  zcat log.csv.gz | sordino sketch build - --cells-column page --amounts-column hits --cells 1000000 \\
      --measurements 4000 --seed 7 --output b.sketch
  sordino sketch build daily.csv --counts-column flights --measurements 100 --output c.sketch
"""
_MERGE_EXAMPLES = """\b
Example:
  sordino sketch merge monday.sketch tuesday.sketch --output both.sketch
"""
_RELEASE_EXAMPLES = """\b
Examples:
  sordino sketch release a.sketch b.sketch --epsilon 1 --sparsity 150 --unit "one visit" --output table.csv
  sordino sketch release both.sketch --epsilon 0.5 --delta 1e-6 --basis cosine --plan
"""


@click.group("sketch", short_help="Build, merge and release sketches.")
def sketch_group() -> None:
    """Sketches: k sums in place of n cells, built at many places, merged, and released once.

    A sketch file is as private as the data until it is released: neither noisy nor encrypted.
    """


@sketch_group.command("build", epilog=_BUILD_EXAMPLES, short_help="Make a sketch of a file.")
@click.argument("input", type=_FILE)
@click.option("--cells-column", help="Column of cell numbers 0, 1, ...: one row for each record.")
@click.option("--amounts-column", help="With cell numbers: how many records, negative to take them away.")
@click.option("--counts-column", help="Column of counts: one row for each cell, in order.")
@click.option("--cells", type=int, help="How many cells there are. Public.")
@click.option("--measurements", type=int, required=True, help="k, numbers that are kept.")
@click.option("--sketch", "kind", type=click.Choice(KINDS), default="sparse", show_default=True)
@click.option("--nonzeros", type=int, default=4, show_default=True, help="Signs a column of a sparse sketch.")
@click.option("--seed", type=int, default=0, show_default=True, help="Public. Only sketches with one seed are merged.")
@click.option("--output", type=_FILE, required=True, help="The sketch file: as private as the data.")
def build_command(
    input: Path,
    *,
    cells_column: str | None,
    amounts_column: str | None,
    counts_column: str | None,
    cells: int | None,
    measurements: int,
    kind: str,
    nonzeros: int,
    seed: int,
    output: Path,
) -> None:
    """Make a sketch of INPUT, a CSV or Parquet file, or CSV from the standard input (-).

    A row is a record (--cells-column), read piece by piece, or a cell (--counts-column). Rows with a cell that does
    not exist count nowhere, silently; amounts and counts are rounded to integers and clamped, or 0 if there is none.
    """
    if (cells_column is None) == (counts_column is None):
        raise InvalidParameterError("say once what a row is: --cells-column or --counts-column")
    if amounts_column is not None and cells_column is None:
        raise InvalidParameterError("--amounts-column goes with --cells-column")
    outputs.check_output(output, (), input)

    def empty(size: int) -> so.sketches.Sketch:
        return so.sketches.Sketch(size, measurements, sketch=kind, nonzeros=nonzeros, seed=seed)  # type: ignore[arg-type] # by click

    if cells_column is not None:
        if cells is None:
            raise InvalidParameterError("--cells-column needs --cells")
        sketch = empty(cells)
        _add_records(sketch, input, [cells_column] if amounts_column is None else [cells_column, amounts_column])
    else:
        assert counts_column is not None
        if cells is not None:
            empty(cells)  # a mistake is found before the file is read
        table = _read_table(input, counts_column)
        if cells not in (None, len(table)):
            raise InputFileError("the input has another number of cells than --cells says")
        sketch = empty(len(table))
        sketch.add(table)
    _save(sketch, output)


def _add_records(sketch: so.sketches.Sketch, path: Path, names: list[str]) -> None:
    for places, *amounts in read_chunks(path, names):
        sketch.update(_numbers(places), _numbers(amounts[0]) if amounts else None)


def _read_table(path: Path, name: str) -> NDArray[np.float64]:
    """Read one count from each row: rows are public, what is in the column is not.

    Raises:
        InputFileError: The file cannot be read, or has no rows.
    """
    counts = np.concatenate([np.empty(0), *(_numbers(column) for (column,) in read_chunks(path, [name]))])
    if not len(counts):
        raise InputFileError("the input file has no rows below the names of its columns")
    return counts


def _numbers(entries: Column) -> NDArray[np.float64]:
    return np.array([real(entry) for entry in entries], dtype=np.float64)


def _save(sketch: so.sketches.Sketch, path: Path) -> None:
    atomic_write(path, sketch.to_bytes(), "sketch", private=True)
    click.echo(f"{sketch!r}\nThis file is as private as the data: neither noisy nor encrypted.", err=True)


@sketch_group.command("merge", epilog=_MERGE_EXAMPLES, short_help="Add sketches.")
@click.argument("files", type=_FILE, nargs=-1, required=True)
@click.option("--output", type=_FILE, required=True, help="The sketch file: as private as the data.")
def merge_command(files: tuple[Path, ...], output: Path) -> None:
    """Add the sketches in FILES: that of all their data together. Kind, seed and sizes must be the same."""
    outputs.check_output(output, ())
    _save(_merged(files), output)


def _merged(files: Sequence[Path]) -> so.sketches.Sketch:
    """Return the sum of the sketches in files.

    Raises:
        InputFileError: A file cannot be read, or holds no sketch.
        InvalidParameterError: A file is given twice, or the sketches differ in kind, seed or size.
    """
    places = [file.stat() for file in files if file.exists()]
    if len({(place.st_dev, place.st_ino) for place in places}) < len(places):
        raise InvalidParameterError("a file is given twice: its records would count twice")
    total: so.sketches.Sketch | None = None
    for file in files:
        try:
            sketch = so.sketches.Sketch.load(file)
        except InvalidParameterError:
            raise InputFileError("the input file is no sketch, or damaged, or of another version") from None
        if total is None:
            total = sketch
        else:
            total += sketch
    assert total is not None
    return total


@dataclass(frozen=True)
class _Recovery(Guarantee):
    """The options of a release, as given."""

    sparsity: int | None = None
    basis: str = "haar"
    recovery: str = "cosamp"

    def build_plan(self, sketch: so.sketches.Sketch) -> so.ReleasePlan:
        """Return the plan for sketches like this one.

        Raises:
            SordinoError: The choices do not describe a plan.
        """
        if self.mechanism not in ("auto", *_MECHANISMS):
            raise InvalidParameterError(f"--mechanism must be one of {', '.join(_MECHANISMS)}")
        kind, cells, measurements, seed, nonzeros = sketch.operator.description
        compression = so.sketches.Compression(
            measurements=measurements,
            sparsity=self.sparsity,
            basis=self.basis,
            sketch=kind,  # type: ignore[arg-type] # one of the kinds
            nonzeros=nonzeros or 4,
            seed=seed,
            recovery=self.recovery,  # type: ignore[arg-type] # by click
        )
        return so.plan(
            so.Histogram(cells),
            self.build_privacy(),
            unit=self.build_unit(),
            mechanism="compressive" if self.mechanism == "auto" else self.mechanism,
            objective=self.objective,
            max_value=self.max_value,
            compression=compression,
        )


def _release_options(command: _Command) -> _Command:
    return add_options(
        command,
        [
            *guarantee_options(),
            click.option(
                "--max-value", type=int, help="Public bound of a cell; sums beyond cells times it are cut down."
            ),
            click.option("--sparsity", type=int, help="S, coefficients to recover.  [default: what k allows]"),
            click.option(
                "--basis", type=click.Choice(["haar", "cosine", "standard"]), default="haar", show_default=True
            ),
            click.option("--recovery", type=click.Choice(RECOVERIES), default="cosamp", show_default=True),
        ],
    )


@sketch_group.command("release", epilog=_RELEASE_EXAMPLES, short_help="Release the table of sketches.")
@click.argument("files", type=_FILE, nargs=-1, required=True)
@_release_options
@click.option("--plan", "plan_only", is_flag=True, help="Explain the plan and release nothing.")
@click.option("--plan-file", type=_FILE, help="A saved plan, instead of the options for one.")
@click.option("--save-plan", type=_FILE, help="Write the plan that was used.")
@click.option("--output", type=_FILE, help="Write to this .json, .csv or .parquet file.  [default: JSON to stdout]")
@click.option(
    "--progress/--no-progress", default=True, help="Show on a terminal that the recovery goes on.  [default: progress]"
)
@ledger_options()
def release_command(
    files: tuple[Path, ...],
    *,
    plan_only: bool,
    plan_file: Path | None,
    save_plan: Path | None,
    output: Path | None,
    progress: bool,
    account: Account,
    **options: Any,
) -> None:
    """Add noise to the sum of the sketches in FILES, once, and write the table that is recovered from it.

    Every release costs its budget: merge first, release once. What several releases cost together adds up: a ledger
    (`sordino ledger create`, --ledger) watches over it. The recovered table has no intervals: its
    error is at most about that of the noise if it has no more coefficients in the basis than are looked for.
    """
    outputs.check_outputs(files, output, (".json", ".csv", ".parquet"), save_plan)
    choices = _Recovery(**{item.name: options[item.name] for item in fields(_Recovery) if item.name in options})
    sketch = _merged(files)
    plan = _planned(choices, plan_file, sketch)
    if plan_only:
        click.echo(plan.explain())
        return
    source = Source(np.empty(0), np.arange(sketch.cells), "cell", None)
    check_output(output)
    with working("recovering", progress):
        release = plan.release(sketch, ledger=account.ledger, request_id=account.request_id)
    found = release.recovery
    assert found is not None
    facts = {
        name: getattr(found, name)
        for name in ("algorithm", "residual", "noise_level", "noise_bound", "explained", "iterations", "converged")
    } | {"coefficients": len(found.support)}
    write_release(release, 0.95, source, output, {"explanation": plan.explain().splitlines(), "recovery": facts})
    if output is not None:
        click.echo(plan.explain())
    if not found.explained:
        click.echo(
            "sordino: the recovered table leaves more unexplained than the noise does: "
            "the data is not so sparse in this basis",
            err=True,
        )
    if save_plan is not None:
        plan.save(save_plan)


def _planned(choices: _Recovery, plan_file: Path | None, sketch: so.sketches.Sketch) -> so.ReleasePlan:
    """Return the saved plan, or the one described by options.

    Raises:
        InvalidParameterError: The saved plan measures another sketch, or options are given beside it.
    """
    if plan_file is None:
        return choices.build_plan(sketch)
    choices.require_none()
    plan = so.ReleasePlan.load(plan_file)
    if not isinstance(plan.workload, so.Histogram):
        raise InvalidParameterError("the saved plan answers other queries than the cells themselves")
    if plan.sketch().operator != sketch.operator:
        raise InvalidParameterError(f"{flag('plan_file')}: the sketches were made with another kind, seed or size")
    return plan
