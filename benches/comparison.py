"""Twelve jobs of users, by sordino, five other libraries, plain Python and numpy: error, time, memory, lines of code.

Every contestant has a process of its own with one thread. It imports its library, makes the data, and does the job once; then the
contestants of a job take turns. The error is measured against the truth, over all repetitions. First is the first call, in which
libraries plan, search or compile; later is the median of the others; both are processor time, which other load on the machine hardly
changes. Memory is the peak of the first call over what was resident
before it, without library and data (Linux). Lines are those of the function in `compare/`, imports included, without blank
lines and comments.

Run `python benches/comparison.py`; the table goes to `docs/comparison.md`. `SORDINO_BENCH_QUICK=1` makes a short run, which
writes nothing.
"""

import ast
import ctypes
import gc
import importlib
import inspect
import json
import math
import os
import subprocess
import sys
import textwrap
import time
import warnings
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

import numpy as np
from generated import machine, written
from harness import amount, quick

__all__ = ["Figure", "lines", "measured"]

_PAGE = Path(__file__).resolve().parent.parent / "docs" / "comparison.md"
JOBS = (
    "histogram",
    "mean",
    "running_total",
    "live_counter",
    "moving_average",
    "ranges",
    "marginals",
    "quantiles",
    "groups",
    "keys",
    "accounting",
    "density",
)


@dataclass(frozen=True)
class _Contestant:
    """A way to do jobs.

    Attributes:
        name: For readers.
        package: Whose version is told; empty if there is none.
        modules: What is imported before anything is measured.
    """

    name: str
    package: str = ""
    modules: tuple[str, ...] = ()


_CONTESTANTS = {
    "sordino": _Contestant("sordino", "sordino", ("sordino", "sordino.tables")),
    "opendp": _Contestant("OpenDP", "opendp", ("opendp.prelude",)),
    "jax_privacy": _Contestant(
        "jax-privacy",
        "jax-privacy",
        ("jax_privacy.noise_addition", "jax_privacy.matrix_factorization.dense", "jax_privacy.accounting.calibrate"),
    ),
    "private_pgm": _Contestant("Private-PGM", "mbi", ("mbi.estimation", "dp_accounting.pld.privacy_loss_mechanism")),
    "diffprivlib": _Contestant("diffprivlib", "diffprivlib", ("diffprivlib",)),
    "dp_accounting": _Contestant("dp-accounting", "dp-accounting", ("dp_accounting.pld",)),
    "plain_python": _Contestant("plain Python"),
    "numpy": _Contestant("numpy", "numpy"),
}
_ENVIRONMENT = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"), "1"),
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
}
_MOST_SECONDS = 0.2 if quick() else 3.0
_MOST_ROUNDS = 5 if quick() else 200
_LEAST_ROUNDS = 1 if quick() else 3


@dataclass(frozen=True)
class Figure:
    """What one contestant did with one job.

    Attributes:
        job: Name of its file.
        contestant: Its function.
        error: Root mean squared error.
        doubt: Standard error of that over the repetitions; 0 if nothing is random.
        first: Processor seconds of the first call.
        later: Median processor seconds of the others.
        megabytes: Peak of the first call.
        lines: Of code.
    """

    job: str
    contestant: str
    error: float
    doubt: float
    first: float
    later: float
    megabytes: float
    lines: int


def lines(function: Any) -> int:
    """Return how many lines of code the body of a function has, without blank lines, comments and docstring."""
    text = textwrap.dedent(inspect.getsource(function))
    (node,) = ast.parse(text).body
    assert isinstance(node, ast.FunctionDef)
    body = node.body[1:] if ast.get_docstring(node) else node.body
    own = text.splitlines()[body[0].lineno - 1 :]
    return sum(1 for line in own if line.strip() and not line.strip().startswith("#"))


def _job(name: str) -> ModuleType:
    return importlib.import_module(f"compare.{name}")


# One contestant, in a process of its own.


def _status(field: str) -> int:
    """Return a memory figure of this process in bytes (Linux)."""
    found = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in found if line.startswith(field + ":"))


def _listed(data: Any) -> Any:
    return data.tolist() if isinstance(data, np.ndarray) else data


def _mean_squared_error(answer: Any, truth: Any) -> float:
    return float(np.mean((np.asarray(answer, dtype=np.float64) - np.asarray(truth, dtype=np.float64)) ** 2))


def _serve(name: str, contestant: str) -> None:
    """Do the job once; then once more for every line that is asked. Answers are lines of seconds, error and memory."""
    warnings.simplefilter("ignore")
    for module in _CONTESTANTS[contestant].modules:
        importlib.import_module(module)
    job = _job(name)
    data = job.data()
    truth, call = job.truth(data), getattr(job, contestant)
    squared = getattr(job, "mean_squared_error", _mean_squared_error)
    if contestant == "plain_python":
        data = _listed(data)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts again
    before = _status("VmRSS")

    def once() -> None:
        nonlocal call
        start = time.process_time()
        if not inspect.signature(call).parameters:
            call = call()  # it plans, and returns what releases
        answer = call(data)
        seconds = time.process_time() - start
        most = (_status("VmHWM") - before) / 1e6
        print(json.dumps([seconds, squared(answer, truth), most]), flush=True)

    once()
    for _ in sys.stdin:
        once()


# A job.


def _read(worker: subprocess.Popen[str]) -> tuple[float, float, float]:
    assert worker.stdout is not None
    line = worker.stdout.readline()
    if not line:
        raise RuntimeError(f"a contestant failed: {worker.args}")
    seconds, squared, megabytes = json.loads(line)
    return seconds, squared, megabytes


def _asked(worker: subprocess.Popen[str]) -> tuple[float, float, float]:
    assert worker.stdin is not None
    print(file=worker.stdin, flush=True)
    return _read(worker)


def measured(name: str) -> list[Figure]:
    """Return the figures of all contestants of a job."""
    job = _job(name)
    names = [key for key in _CONTESTANTS if hasattr(job, key) and not isinstance(getattr(job, key), ModuleType)]
    found: dict[str, list[tuple[float, float, float]]] = {}
    with ExitStack() as stack:
        workers = {}
        for key in names:  # started one by one: nobody computes while another is measured
            command = [sys.executable, str(Path(__file__).resolve()), "--contestant", name, key]
            workers[key] = stack.enter_context(
                subprocess.Popen(
                    command,
                    env={**os.environ, **_ENVIRONMENT},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    bufsize=1,
                )
            )
            found[key] = [_read(workers[key])]
        for turn in range(_MOST_ROUNDS):
            for key in names[turn % len(names) :] + names[: turn % len(names)]:
                spent = sum(seconds for seconds, _, _ in found[key])
                if turn < _LEAST_ROUNDS or spent < _MOST_SECONDS:
                    found[key].append(_asked(workers[key]))
    return [_figure(name, key, found[key], lines(getattr(job, key))) for key in names]


def _figure(name: str, key: str, runs: list[tuple[float, float, float]], count: int) -> Figure:
    seconds, squares, megabytes = zip(*runs, strict=True)
    error = math.sqrt(np.mean(squares))
    scatter = float(np.std(squares, ddof=1) / math.sqrt(len(squares)))
    doubt = scatter / (2.0 * error) if scatter > 1e-9 * error**2 else 0.0
    return Figure(name, key, error, doubt, seconds[0], median(seconds[1:]), megabytes[0], count)


# The page.

_HEADINGS = ("job", "by", "error", "of sordino's", "later calls", "first call", "peak memory", "lines")


def _rows(figures: list[Figure]) -> list[str]:
    """Return the rows of a job; the least error is bold, with what is within two standard errors or a thousandth of it."""
    job = _job(figures[0].job)
    own = next(figure for figure in figures if figure.contestant == "sordino")
    best = min(figures, key=lambda figure: figure.error)
    rows = []
    for figure in figures:
        error = f"{figure.error:.3g}" + (f" ± {figure.doubt:.1g}" if figure.doubt > 0.0 else "")
        if figure.error - best.error <= max(2.0 * math.hypot(figure.doubt, best.doubt), 1e-3 * best.error):
            error = f"**{error}**"
        cells = (
            job.TITLE if figure is figures[0] else "",
            _CONTESTANTS[figure.contestant].name,
            error,
            f"{figure.error / own.error:.2f}",
            amount(figure.later),
            amount(figure.first),
            f"{figure.megabytes:.1f} MB",
            str(figure.lines),
        )
        rows.append("| " + " | ".join(cells) + " |")
    return rows


def _page(found: list[list[Figure]]) -> str:
    versions = ", ".join(
        f"{one.name} {version(one.package)}" for key, one in _CONTESTANTS.items() if one.package and key != "numpy"
    )
    head = ["| " + " | ".join(_HEADINGS) + " |", "|---|---|" + "---:|" * (len(_HEADINGS) - 2)]
    jobs = ["| job | question | error |", "|---|---|---|"]
    jobs += [f"| {job.TITLE} | {job.QUESTION} | {job.ERROR} |" for job in map(_job, JOBS)]
    table = head + [row for figures in found for row in _rows(figures)]
    return "\n".join([*jobs, "", f"{machine()}; {versions}", "", *table])


def _main() -> None:
    match sys.argv[1:]:
        case ["--contestant", name, contestant]:
            _serve(name, contestant)
        case ["--section", name]:
            print(json.dumps([asdict(figure) for figure in measured(name)]))
        case names if set(names) <= set(JOBS):
            found = []
            for name in names or JOBS:
                found.append(measured(name))
                print("\n".join(_rows(found[-1])), flush=True)
            if not names and not quick():
                _PAGE.write_text(written(_PAGE.read_text(), "comparison", _page(found)))
        case _:
            sys.exit(f"usage: python {sys.argv[0]} [{' | '.join(JOBS)}]...")


if __name__ == "__main__":
    _main()
