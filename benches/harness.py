"""What the benchmarks share: interleaved races, runs with a fixed number of threads, rows of figures.

A race runs every contestant once a round, in rotating order, on the same inputs, and reports medians; figures are
ratios of medians. Times are never asserted. Contestants that move much memory race *apart*, each in a process of
its own that waits while another runs: in one process the pages that one frees are what another must map again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

__all__ = [
    "Contest",
    "Row",
    "amount",
    "audited",
    "in_process",
    "main",
    "medians",
    "noted",
    "once",
    "plural",
    "power",
    "quick",
    "race",
    "race_apart",
    "reported",
    "rounds",
    "table",
    "turns",
    "versus",
]

# A contestant that is faster than this is run several times a round.
_LEAST_SECONDS = 2e-3

Section = Callable[[], list["Row"]]
Contest = Callable[[str, str], Callable[[], object]]
"""From the contest's setting and a contestant's name to the call that is timed."""


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
    return medians({name: _timed(call) for name, call in contestants.items()}, full_rounds)


def once(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of one call, and its answer."""
    start = time.perf_counter()
    found = call()
    return time.perf_counter() - start, found


def turns(contestants: Mapping[str, Callable[[], Any]], full_rounds: int) -> tuple[dict[str, float], dict[str, Any]]:
    """Return medians and answers, taking turns; for calls of seconds, that need no run to warm up.

    Args:
        contestants: Calls by name.
        full_rounds: Rounds of a full run.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    answers = {}
    for _ in range(rounds(full_rounds)):
        for name, call in contestants.items():
            elapsed, answers[name] = once(call)
            seconds[name].append(elapsed)
    return {name: median(values) for name, values in seconds.items()}, answers


def _timed(call: Callable[[], object]) -> Callable[[], float]:
    """Return a call that reports the seconds of one `call`, averaged over enough of them to tell."""
    for _ in range(3):
        start = time.perf_counter()
        call()
        elapsed = time.perf_counter() - start
    repeats = max(1, int(_LEAST_SECONDS / max(elapsed, 1e-9)))

    def seconds() -> float:
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        return (time.perf_counter() - start) / repeats

    return seconds


def medians(contestants: Mapping[str, Callable[[], float]], full_rounds: int) -> dict[str, float]:
    """Return medians of the seconds that contestants report: they take turns, and the order rotates."""
    names = list(contestants)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds(full_rounds)):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            seconds[name].append(contestants[name]())
    return {name: median(values) for name, values in seconds.items()}


def race_apart(
    file: str,
    contest: str,
    setting: str,
    names: Sequence[str],
    *,
    threads: int,
    full_rounds: int = 15,
    environment: Mapping[str, str] | None = None,
) -> dict[str, float]:
    """Return what `race` does, each contestant in a process of its own; only one runs at a time.

    Args:
        file: The benchmark, its `__file__`.
        contest: Name of the contest, as given to `main`.
        setting: Passed on to it.
        names: The contestants.
        threads: For rayon; libraries of others get one.
        full_rounds: Rounds of a full run.
        environment: Further variables, for every contestant.
    """
    with ExitStack() as stack:
        contestants = {}
        for name in names:
            worker = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, str(Path(file).resolve()), "--contest", contest, setting, name],
                    env={**_environment(threads), **(environment or {})},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    bufsize=1,
                )
            )
            contestants[name] = partial(_ask, worker)
            contestants[name]()  # built and warm before the next one starts
        return medians(contestants, full_rounds)


def _ask(worker: subprocess.Popen[str]) -> float:
    if worker.stdin is None or worker.stdout is None:
        raise RuntimeError("a contestant without pipes")
    print(file=worker.stdin, flush=True)
    return float(worker.stdout.readline())


def _answer(call: Callable[[], object]) -> None:
    """Time the call once for every line that is asked."""
    seconds = _timed(call)
    for _ in sys.stdin:
        print(seconds(), flush=True)


def _environment(threads: int) -> dict[str, str]:
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {**os.environ, **single, "RAYON_NUM_THREADS": str(threads)}


def plural(threads: int) -> str:
    """Return how many threads in words."""
    return f"{threads} thread{'s' if threads > 1 else ''}"


def power(count: int) -> str:
    """Return a count, as a power of two if it is one of more than three digits."""
    return f"2^{count.bit_length() - 1}" if count >= 1000 and count & (count - 1) == 0 else f"{count:,}"


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


def in_process(file: str, section: str, *, threads: int, environment: Mapping[str, str] | None = None) -> list[Row]:
    """Run one section of a benchmark in a fresh process with this many threads.

    Args:
        file: The benchmark, its `__file__`.
        section: Name of the section.
        threads: For rayon; libraries of others get one.
        environment: Further variables.
    """
    run = subprocess.run(
        [sys.executable, str(Path(file).resolve()), "--section", section],
        env={**_environment(threads), **(environment or {})},
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


def reported(row: Row) -> Row:
    """Print a row to who waits at a terminal, and return it."""
    if sys.stderr.isatty():
        print("|".join(row.cells()), file=sys.stderr)
    return row


def audited(rows: Section) -> Section:
    """Return a section that fails, its rows printed, where a goal is missed."""

    def found() -> list[Row]:
        made = rows()
        if not all(row.met for row in made):
            print(table(made))
            sys.exit(1)
        return made

    return found


def main(sections: Mapping[str, Section], run: Section, contests: Mapping[str, Contest] | None = None) -> None:
    """Print the table of `run`; or serve `in_process` with a section, or `race_apart` with a contestant."""
    match sys.argv[1:]:
        case ["--section", section]:
            print(json.dumps([asdict(row) for row in sections[section]()]))
        case ["--contest", contest, setting, name]:
            _answer((contests or {})[contest](setting, name))
        case []:
            print(table(run()))
        case _:
            sys.exit(f"usage: python {sys.argv[0]}")
