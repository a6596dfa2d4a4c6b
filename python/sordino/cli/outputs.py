"""What the commands print and write: facts and tables for people, JSON and CSV for programs."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import sordino as so
from sordino._support.files import atomic_write
from sordino.errors import InputFileError, InvalidParameterError
from sordino.mechanisms.fits import kind_of_error
from sordino.plots.tables import describe

__all__ = [
    "check_output",
    "check_outputs",
    "comparison_record",
    "plan_facts",
    "plan_record",
    "show_comparison",
    "show_facts",
    "to_json",
    "write_text",
]


def to_json(record: Any) -> str:
    """Return a record as JSON text; arrays become lists."""
    return json.dumps(record, indent=2, allow_nan=False, default=lambda array: array.tolist())


def write_text(path: Path, text: str) -> None:
    """Write a text file.

    Raises:
        InputFileError: The file cannot be written.
    """
    atomic_write(path, text.encode("utf-8", "replace"), "output")


def check_output(path: Path | None, suffixes: tuple[str, ...], *inputs: Path) -> None:
    """Find out before anything is spent that an output has no name or place to go, or would replace what is read.

    Raises:
        InvalidParameterError: Another suffix, or an input.
        InputFileError: The folder does not exist.
    """
    if path is None:
        return
    if suffixes and path.suffix.lower() not in suffixes:
        raise InvalidParameterError(f"the name of the output must end in {' or '.join(suffixes)}")
    if not path.parent.is_dir():
        raise InputFileError("the folder of an output file does not exist")
    if path.exists() and any(source.exists() and path.samefile(source) for source in inputs):
        raise InvalidParameterError("an output would replace the input")


def check_outputs(inputs: Sequence[Path], output: Path | None, suffixes: tuple[str, ...], *others: Path | None) -> None:
    """Find out before anything is spent that outputs have no name or place to go, or one place.

    Raises:
        InvalidParameterError: Another suffix, two of them are one file, or one of them is the input.
        InputFileError: A folder does not exist.
    """
    check_output(output, suffixes, *inputs)
    for other in others:
        check_output(other, (), *inputs)
    places = [path.resolve() for path in (output, *others) if path is not None]
    if len(set(places)) < len(places):
        raise InvalidParameterError("two outputs are one file: the second would replace the first")


def plan_facts(plan: so.ReleasePlan) -> list[tuple[str, str]]:
    """Return the facts about a plan, name and value."""
    bound, ratio = plan.fit.bound, plan.optimality
    facts = [
        ("queries", f"{describe(plan.workload)}, {plan.workload!r}"),
        ("privacy", plan.guarantee()),
        ("mechanism", f"{plan.mechanism} ({'chosen by auto' if plan.request.mechanism == 'auto' else 'as asked'})"),
        ("rmse", f"{plan.rmse:.6g}{kind_of_error(plan.fit.rmse_kind)}"),
        ("largest standard error", _known(plan.max_stderr)),
    ]
    if bound is not None and bound.value > 0.0:
        facts.append(("least of any Gaussian mechanism", f"{bound.value:.6g} ({bound.name})"))
    if ratio is not None:
        facts.append(("error over that", f"{ratio:.6g}"))
    found = getattr(plan.fit, "factorization", None)
    if found is not None and found.gap is not None:
        facts.append(("search", f"within {found.gap:.2g} of the least error, after {found.iterations} iterations"))
    if plan.request.constraint is not None:
        facts.append(("answers are projected onto", str(plan.request.constraint)))
    facts.append(("cells are cut down to", f"{plan.fit.domain.max_value:,}"))
    return facts


def show_facts(facts: list[tuple[str, str]]) -> None:
    """Print facts: a table on a terminal, plain lines when piped."""
    if sys.stdout.isatty():
        table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
        table.add_column(style="bold cyan", no_wrap=True)
        table.add_column()
        for name, value in facts:
            table.add_row(name, escape(value))
        Console().print(table)
        return
    width = max(len(name) for name, _ in facts)
    for name, value in facts:
        click.echo(f"{name:<{width}}  {value}")


def _known(error: float | None) -> str:
    return "-" if error is None else f"{error:.6g}"


def show_comparison(comparison: so.Comparison) -> None:
    """Print a comparison: a table on a terminal, plain text when piped."""
    if not sys.stdout.isatty():
        click.echo(str(comparison))
        return
    bound = comparison.bound
    caption = None if bound is None else f"least of any Gaussian mechanism: {bound.value:.6g} ({bound.name})"
    table = Table("mechanism", caption=caption, header_style="bold")
    for name in ("rmse", "max stderr", "over bound", "kind"):
        table.add_column(name, justify="right")
    for row in comparison.rows:
        chosen = row["mechanism"] == comparison.chosen
        over = "-" if row["optimality"] is None else f"{row['optimality']:.4f}"
        table.add_row(
            f"{row['mechanism']}{' *' if chosen else ''}",
            f"{row['rmse']:.6g}",
            _known(row["max_stderr"]),
            over,
            row["rmse_kind"],
            style="bold cyan" if chosen else "",
        )
    Console().print(table)


def plan_record(plan: so.ReleasePlan) -> dict[str, Any]:
    """Return the plan's record with what follows from it."""
    return plan.record() | {
        "guarantee": plan.guarantee(),
        "optimality": plan.optimality,
        "digest": plan.digest,
    }


def comparison_record(comparison: so.Comparison) -> dict[str, Any]:
    """Return a comparison as a JSON-like record."""
    bound = comparison.bound
    return {
        "chosen": comparison.chosen,
        "gaussian_bound": None if bound is None else {"name": bound.name, "value": bound.value},
        "mechanisms": list(comparison.rows),
        "refused": comparison.refused,
    }
