"""What the benchmarks share: interleaved races, runs with a fixed number of threads, rows of figures.

A race runs every contestant once a round, in rotating order, on the same inputs in one process, and reports
medians; figures are ratios of medians. Times are never asserted.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

__all__ = ["Row", "amount", "in_process", "main", "noted", "quick", "race", "rounds", "table", "versus"]

# A contestant that is faster than this is run several times a round.
_LEAST_SECONDS = 2e-3

Section = Callable[[], list["Row"]]


@dataclass(frozen=True)
class Row:
    """One figure.

    Attributes:
        what: What was measured.
        ours: Our figure, with its unit.
        other: Whose figure it is compared with, and that figure; empty if nobody's.
        ratio: Ours over the other's, or the figure that the goal is about.
        goal: The goal in words; empty if there is none.
        met: Whether it was met; None without a goal.
    """

    what: str
    ours: str
    other: str = ""
    ratio: float | None = None
    goal: str = ""
    met: bool | None = None

    def cells(self) -> tuple[str, ...]:
        """Return the row as text."""
        ratio = "" if self.ratio is None else f"{self.ratio:.3g}"
        met = {None: "", True: "yes", False: "**no**"}[self.met]
        return self.what, self.ours, self.other, ratio, self.goal, met


_HEADINGS = ("measurement", "sordino", "compared with", "ratio", "goal", "met")


def quick() -> bool:
    """Return whether a short run was asked for (`SORDINO_BENCH_QUICK=1`): smaller sizes, few rounds."""
    return os.environ.get("SORDINO_BENCH_QUICK", "") not in ("", "0")


def rounds(full: int) -> int:
    """Return the number of rounds: `full`, or 3 in a short run."""
    return min(full, 3) if quick() else full


def race(contestants: Mapping[str, Callable[[], object]], full_rounds: int = 15) -> dict[str, float]:
    """Return the median seconds of one call of each contestant, rounds interleaved.

    Args:
        contestants: Calls by name; each runs once before anything is timed.
        full_rounds: Rounds of a full run.
    """
    repeats: dict[str, int] = {}
    for name, call in contestants.items():
        call()
        start = time.perf_counter()
        call()
        repeats[name] = max(1, int(_LEAST_SECONDS / max(time.perf_counter() - start, 1e-9)))
    names = list(contestants)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds(full_rounds)):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            call, times = contestants[name], repeats[name]
            start = time.perf_counter()
            for _ in range(times):
                call()
            seconds[name].append((time.perf_counter() - start) / times)
    return {name: median(values) for name, values in seconds.items()}


_PREFIXES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def amount(seconds: float, per: str = "") -> str:
    """Return a time with a unit that suits it."""
    factor, unit = next((p for p in _PREFIXES if seconds >= p[0]), _PREFIXES[-1])
    return f"{seconds / factor:.3g} {unit}{per}"


def versus(what: str, ours: float, name: str, other: float, *, goal: float | None = None, per: str = "") -> Row:
    """Return the row of a comparison of times; the goal is the largest ratio, ours over the other's."""
    ratio = ours / other
    words = "" if goal is None else f"≤ {goal:g}" if goal >= 0.1 else f"≤ 1/{1 / goal:g}"
    met = None if goal is None else ratio <= goal
    return Row(what, amount(ours, per), f"{name}: {amount(other, per)}", ratio, words, met)


def noted(what: str, ours: str, figure: float | None = None, most: float | None = None, goal: str = "") -> Row:
    """Return the row of a figure of our own, at most `most` if there is a goal."""
    met = None if most is None or figure is None else figure <= most
    return Row(what, ours, "", None, goal, met)


def in_process(
    file: str, section: str, *, threads: int, environment: Mapping[str, str] | None = None
) -> list[Row]:
    """Run one section of a benchmark in a fresh process with this many threads.

    Args:
        file: The benchmark, its `__file__`.
        section: Name of the section.
        threads: For rayon; libraries of others get one.
        environment: Further variables.
    """
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    run = subprocess.run(
        [sys.executable, str(Path(file).resolve()), "--section", section],
        env={**os.environ, **single, "RAYON_NUM_THREADS": str(threads), **(environment or {})},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return [Row(**row) for row in json.loads(run.stdout.splitlines()[-1])]


def table(rows: list[Row]) -> str:
    """Return rows as a Markdown table."""
    lines = ["| " + " | ".join(_HEADINGS) + " |", "|" + "---|" * len(_HEADINGS)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row.cells()) + " |" for row in rows]
    return "\n".join(lines)


def main(sections: Mapping[str, Section], run: Section) -> None:
    """Print the table of `run`, or as JSON one section for `in_process`."""
    match sys.argv[1:]:
        case ["--section", name]:
            print(json.dumps([asdict(row) for row in sections[name]()]))
        case []:
            print(table(run()))
        case _:
            sys.exit(f"usage: python {sys.argv[0]}")
