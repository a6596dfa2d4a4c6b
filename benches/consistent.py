"""Tables without negative counts that agree: error, time and memory beside Private-PGM and the same search by hand.

Every table of two attributes is measured with equal white Gaussian noise (`output-gaussian`), and all contestants get the
same measurements, with the total that they say: least squares, which makes tables agree; a clip at zero of what was
measured; `consistent()`; with `shrink="independence"`; and mirror descent of Private-PGM (`mbi`) in 64 bits from nothing, as
its users run it, compiled before it is timed. Errors are root mean squares over all cells of all pairs and all draws.

Mirror descent begins at independent attributes, so few steps shrink too, and its error depends on where it stops. Rows say what 500
steps give, what 50 give, and what as many as come within a thousandth of half the squared noise of where a long run ends: the gap
at which ours stops, without a certificate. The certificate that can be computed of it, by the best single cell along the
gradient, is said too. Fifty was chosen after a look at errors, of which users know nothing: no rule that stops there is known.

Data: a made table, whose attributes are Zipf with two pairs that half of the records tie; `fair` (Fair 1978: included in
statsmodels with permission of the author), the first six columns; `anes96` (American National Election Studies 1996, public domain), six
columns; levels are those that occur, as in the codebooks. And a hundred attributes of ten levels, of which odd ones copy the
one before in half of the records. No file of these is here: statsmodels has them.

Run `python benches/consistent.py`.
"""

import ctypes
import gc
import json
import math
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import consistent_baselines as baselines
import consistent_peers as peers
import numpy as np
import statsmodels.api
from harness import Row, amount, in_process, main, noted, once, plural, quick, race, turns, versus
from numpy.typing import NDArray

import sordino as so
from sordino.testing import deterministic_noise

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Tables = Mapping[tuple[int, ...], Array]

_DRAWS = 2 if quick() else 10
_STEPS, _FEW = 500, 50
_LONG = 500 if quick() else 4000
_NEAR = 1e-3
_PATIENCE = 15 if quick() else 120
_MANY = 20 if quick() else 100
_MOST_BYTES = 12 << 30
_ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "JAX_ENABLE_X64": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "PYTHONWARNINGS": "ignore:deterministic noise:UserWarning,ignore:JAX :UserWarning",
}
_PLAIN, _SHRUNK = "consistent()", 'consistent(shrink="independence")'


@dataclass(frozen=True)
class Records:
    """Records, and the privacy of their release.

    Attributes:
        name: What they are.
        levels: Of the attributes.
        codes: One row a record.
        privacy: Of the release.
    """

    name: str
    levels: tuple[int, ...]
    codes: Integers
    privacy: Any

    @property
    def workload(self) -> so.Marginals:
        """All tables of two attributes."""
        return so.Marginals(list(self.levels), k=2)


def _generated() -> Records:
    rng, levels, n = np.random.default_rng(0), (20, 30, 25, 10), 5000
    shares = [np.arange(1, level + 1) ** -1.2 for level in levels]
    codes = np.stack([rng.choice(len(share), n, p=share / share.sum()) for share in shares], axis=1)
    for one, other, rise, run in ((1, 0, 3, 2), (3, 2, 10, 25)):
        tied = rng.random(n) < 0.5
        codes[tied, one] = rise * codes[tied, other] // run
    privacy = so.ApproxDP(epsilon=0.5, delta=1e-6)
    return Records(f"made table {' x '.join(map(str, levels))}, {n:,} records, ε = 0.5", levels, codes, privacy)


def _statistics(name: str, columns: list[str], epsilon: float) -> Records:
    frame = getattr(statsmodels.api.datasets, name).load_pandas().data
    found = [np.unique(frame[column], return_inverse=True) for column in columns]
    levels, codes = tuple(len(values) for values, _ in found), np.stack([code for _, code in found], axis=1)
    said = f"{name}, {' x '.join(map(str, levels))}, {len(codes):,} records, ε = {epsilon:g}"
    return Records(said, levels, codes, so.ApproxDP(epsilon=epsilon, delta=1e-6))


_RECORDS: dict[str, Callable[[], Records]] = {
    "generated": _generated,
    "fair": partial(_statistics, "fair", ["rate_marriage", "age", "yrs_married", "children", "religious", "educ"], 0.5),
    "anes96": partial(_statistics, "anes96", ["selfLR", "ClinLR", "PID", "educ", "income", "vote"], 1.0),
}


@cache
def _many() -> Records:
    rng, n = np.random.default_rng(0), 2000 if quick() else 20_000
    codes = np.minimum(rng.geometric(0.35, (n, _MANY)) - 1, 9)
    copied = rng.random((n, _MANY)) < 0.5
    codes[:, 1::2] = np.where(copied[:, 1::2], codes[:, ::2], codes[:, 1::2])
    pairs = math.comb(_MANY, 2)
    name = f"{_MANY} attributes of 10 levels, {n:,} records, all {pairs:,} pairs"
    return Records(name, (10,) * _MANY, codes, so.GaussianDP(mu=0.25))


def _released(records: Records, draw: int, mechanism: str = "output-gaussian") -> so.Release:
    with deterministic_noise(draw.to_bytes(32, "little")):
        return so.plan(records.workload, records.privacy, mechanism=mechanism).release(records.codes)


def _stderr(release: so.Release) -> float:
    """Return the standard error of every cell; the noise is white."""
    least, most = float(release.stderr.min()), float(release.stderr.max())
    assert most <= least * (1.0 + 1e-12)
    return least


def _clipped(release: so.Release) -> Tables:
    return {s: np.maximum(table, 0.0) for s, table in release.tables.items()}


def _truth(records: Records) -> dict[tuple[int, ...], Array]:
    found = {}
    for s in records.workload.sets:
        shape = tuple(records.levels[i] for i in s)
        cells = np.ravel_multi_index(tuple(records.codes[:, i] for i in s), shape)
        found[s] = np.bincount(cells, minlength=math.prod(shape)).reshape(shape).astype(np.float64)
    return found


def _square(tables: Tables, truth: Tables) -> float:
    """Return the mean squared error over all cells."""
    return sum(float(np.sum((tables[s] - truth[s]) ** 2)) for s in truth) / sum(table.size for table in truth.values())


def _distance(tables: Tables, measured: Tables) -> float:
    return 0.5 * sum(float(np.sum((tables[s] - measured[s]) ** 2)) for s in measured)


@dataclass(frozen=True)
class Descent:
    """A long run of mirror descent.

    Attributes:
        steps: Within a thousandth of half the squared noise of where it ends.
        certified: What is proved of the end, as a share of half the squared noise.
    """

    steps: int
    certified: float


def _descent(records: Records, release: so.Release) -> Descent:
    """Look where a long run of mirror descent ends."""
    measured, stderr = release.tables, _stderr(release)
    noise = baselines.half_noise(records.levels, list(measured), stderr)
    looks = peers.gaps(records.levels, measured, stderr, _LONG)
    distances = [_distance(tables, measured) for _, _, tables in looks]
    least = max(distance - gap for distance, (_, gap, _) in zip(distances, looks, strict=True))
    ended = min(distances)
    steps = next(at for distance, (at, _, _) in zip(distances, looks, strict=True) if distance - ended <= _NEAR * noise)
    return Descent(steps, (ended - least) / noise)


def _contestants(records: Records, long: int) -> dict[str, Callable[[so.Release], Tables]]:
    levels = records.levels

    def descended(steps: int) -> Callable[[so.Release], Tables]:
        return lambda release: peers.estimated(levels, release.tables, _stderr(release), steps)

    return {
        "least squares": lambda release: baselines.least_squares(levels, release.tables),
        "clip at zero": _clipped,
        _PLAIN: lambda release: release.consistent().tables,
        _SHRUNK: lambda release: release.consistent(shrink="independence").tables,
        "50": descended(_FEW),
        "500": descended(_STEPS),
        "long": descended(long),
    }


def _errors(name: str) -> list[Row]:
    """Errors of all contestants on the same draws."""
    records = _RECORDS[name]()
    truth, descent = _truth(records), _descent(records, _released(records, 0))
    contestants = _contestants(records, descent.steps)
    squares: dict[str, list[float]] = {who: [] for who in contestants}
    for draw in range(_DRAWS):
        release = _released(records, draw)
        for who, call in contestants.items():
            squares[who].append(_square(call(release), truth))
    errors = {who: math.sqrt(float(np.mean(found))) for who, found in squares.items()}
    named = {
        "50": f"Private-PGM stopped at {_FEW} steps",
        "500": f"Private-PGM, {_STEPS} steps",
        "long": f"Private-PGM, {descent.steps:,} steps (within 0.001 of its end; certified: {descent.certified:.2g})",
    }
    rows = []
    for ours, other, goal in (
        (_SHRUNK, "500", "≤ 1"),
        (_SHRUNK, "long", "≤ 1"),
        (_SHRUNK, "50", ""),
        (_PLAIN, "500", ""),
        (_PLAIN, "long", ""),
        (_PLAIN, "least squares", ""),
        (_PLAIN, "clip at zero", ""),
    ):
        less = sum(a < b for a, b in zip(squares[ours], squares[other], strict=True))
        ratio = errors[ours] / errors[other]
        said = f"{named.get(other, other)}: {errors[other]:.2f}; less on {less} of {_DRAWS} draws"
        met = ratio <= 1.0 if goal else None
        rows.append(Row(f"error, {records.name}: {ours}", f"{errors[ours]:.2f}", said, ratio, goal, met))
    return rows


def _times(name: str) -> list[Row]:
    """Whole calls, everything compiled; mirror descent in 64 bits."""
    records = _RECORDS[name]()
    release = _released(records, 0)
    steps = _descent(records, release).steps
    stderr, levels = _stderr(release), records.levels
    listed = {s: table.ravel().tolist() for s, table in release.tables.items()}
    plain, made = baselines.plain_nearest(levels, listed, stderr), release.consistent().tables
    assert max(np.abs(made[s].ravel() - table).max() for s, table in plain.items()) < 1e-6
    times = race(
        {
            _PLAIN: release.consistent,
            _SHRUNK: partial(release.consistent, shrink="independence"),
            "numpy": lambda: baselines.nearest(levels, release.tables, stderr),
            "python": lambda: baselines.plain_nearest(levels, listed, stderr),
            "500": lambda: peers.estimated(levels, release.tables, stderr, _STEPS),
            "long": lambda: peers.estimated(levels, release.tables, stderr, steps),
        },
        5,
    )
    rows = []
    for ours in (_PLAIN, _SHRUNK):
        what = f"time, {records.name}: {ours}, 1 thread"
        rows.append(versus(what, times[ours], f"Private-PGM, {_STEPS} steps, 64 bits", times["500"], goal=1 / 30))
    what = f"time, {records.name}: {_PLAIN}, 1 thread"
    rows.append(versus(what, times[_PLAIN], f"Private-PGM, {steps:,} steps, 64 bits", times["long"]))
    rows.append(versus(what, times[_PLAIN], "the same search in numpy", times["numpy"]))
    rows.append(versus(what, times[_PLAIN], "plain Python: the same search", times["python"]))
    return rows


def _single(name: str) -> list[Row]:
    """Mirror descent in 32 bits, which is what jax does unasked."""
    records = _RECORDS[name]()
    release = _released(records, 0)
    stderr, levels = _stderr(release), records.levels
    times = race(
        {
            _PLAIN: release.consistent,
            "500": lambda: peers.estimated(levels, release.tables, stderr, _STEPS),
        },
        5,
    )
    what = f"time, {records.name}: {_PLAIN}, 1 thread"
    return [versus(what, times[_PLAIN], f"Private-PGM, {_STEPS} steps, 32 bits", times["500"], goal=1 / 30)]


# Memory.


def _status(field: str) -> int:
    """Return a memory figure of this process in bytes (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field + ":"))


def _peak(call: Callable[[], Any]) -> float:
    """Return the megabytes that a call takes at most; what was freed before is given back to the system first."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts again
    before = _status("VmRSS")
    call()
    return (_status("VmHWM") - before) / 1e6


def _memory(name: str, who: str) -> float:
    """Return the megabytes of the first call in this process; but for what is imported late, which a tiny one does."""
    records = _RECORDS[name]()
    tiny = _released(Records("", (2, 2, 2), np.zeros((1, 3), dtype=np.int64), records.privacy), 0)
    tiny.consistent(), peers.estimated((2, 2, 2), tiny.tables, 1.0, _FEW)
    release = _released(records, 0)
    return _peak(lambda: _contestants(records, _STEPS)[who](release))


def _of_memory(name: str, who: str) -> list[Row]:
    """Return the figure in a row of its own, for the process that asked."""
    return [Row(_RECORDS[name]().name, "", ratio=_memory(name, who))]


def _memories(name: str) -> list[Row]:
    found = {}
    for who in (_PLAIN, "500"):
        (row,) = in_process(__file__, f"memory {name} {who}", threads=1, environment=_ENVIRONMENT)
        found[who], said = row.ratio or 0.0, row.what
    other = f"Private-PGM, compiled and run: {found['500']:.3g} MB"
    return [Row(f"peak memory, {said}: {_PLAIN}", f"{found[_PLAIN]:.2g} MB", other, found[_PLAIN] / found["500"])]


# A hundred attributes.


def _hundred(threads: int) -> list[Row]:
    """Time and memory of all pairs of many attributes."""
    records, rows = _many(), []
    for mechanism in ("output-gaussian", "auto"):
        release = _released(records, 0, mechanism)
        kind = "white noise" if mechanism == "output-gaussian" else f"least-error plan, {release.fit.name}"
        for said, call in (
            (_PLAIN, release.consistent),
            (_SHRUNK, partial(release.consistent, shrink="independence")),
        ):
            most = _peak(call)
            times, made = turns({"ours": call}, 5)
            seconds, report = times["ours"], made["ours"].consistency
            ours = f"{amount(seconds)}, {most:.3g} MB, {report.iterations} steps"
            met = seconds <= 1.0 and most <= 50.0
            what = f"{records.name}, {kind}: {said}, {plural(threads)}"
            rows.append(Row(what, ours, "", None, "≤ 1 s, 50 MB", met))
    return rows


def _hundred_in_numpy() -> list[Row]:
    records = _many()
    release = _released(records, 0)
    theirs, found = once(lambda: baselines.nearest(records.levels, release.tables, _stderr(release)))
    seconds, made = once(release.consistent)
    assert max(np.abs(found.tables[s] - table).max() for s, table in made.tables.items()) < 1e-6
    truth = _truth(records)
    errors = {
        "least squares": baselines.least_squares(records.levels, release.tables),
        "clip at zero": _clipped(release),
        _PLAIN: made.tables,
        _SHRUNK: release.consistent(shrink="independence").tables,
    }
    squares = {who: math.sqrt(_square(tables, truth)) for who, tables in errors.items()}
    said = ", ".join(f"{who}: {squares[who]:.1f}" for who in ("least squares", "clip at zero"))
    rows = [versus(f"time, {records.name}: {_PLAIN}, 1 thread", seconds, "the same search in numpy", theirs)]
    for who in (_PLAIN, _SHRUNK):
        ratio = squares[who] / squares["least squares"]
        rows.append(Row(f"error, {records.name}, white noise: {who}", f"{squares[who]:.1f}", said, ratio))
    return rows


def _hundred_by_peer(how: str) -> list[Row]:
    """A process of its own, which may not end."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    release = _released(_many(), 0)
    call = peers.estimated if how == "exact" else peers.approximated
    print("begins", flush=True)
    seconds, tables = once(lambda: call(_many().levels, release.tables, _stderr(release), _FEW))
    error = math.sqrt(_square(tables, _truth(_many())))
    return [noted("", f"{amount(seconds)} for {_FEW} steps with compiling, error {error:.1f}")]


def _tried(how: str) -> Row:
    """Return what became of Private-PGM within its time."""
    command = [sys.executable, str(Path(__file__).resolve()), "--section", f"hundred {how}"]
    environment = {**os.environ, **_ENVIRONMENT, "RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    kind = "Private-PGM" if how == "exact" else "Private-PGM by convex belief propagation"
    what = f"{_many().name}: {_FEW} steps of {kind}"
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as worker:
        if worker.stdout is None:
            raise RuntimeError("a contestant without pipes")
        worker.stdout.readline()
        try:
            out, errors = worker.communicate(timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            worker.kill()
            return Row(what, "", f"not ready after {_PATIENCE} s, compiling included")
    if worker.returncode:
        last = (errors.strip().splitlines() or [f"exit code {worker.returncode}"])[-1]
        return Row(what, "", f"infeasible: {last[:120]}")
    return Row(what, "", json.loads(out.splitlines()[-1])[0]["ours"])


# Records.


def _made_records() -> list[Row]:
    """Time of records with the tables of twenty attributes."""
    rng, n, attributes = np.random.default_rng(0), 2000 if quick() else 100_000, 20
    codes = rng.integers(0, 5, (n, attributes))
    copied = rng.random((n, attributes // 2)) < 0.5
    codes[:, 1::2] = np.where(copied, codes[:, ::2], codes[:, 1::2])
    plan = so.plan(so.Marginals((5,) * attributes, k=2), so.GaussianDP(mu=1.0))
    with deterministic_noise(bytes(32)):
        tables = plan.release(codes).consistent(whole=True)
    times, made = turns({"ours": partial(tables.records, seed=1)}, 3)
    seconds, records = times["ours"], made["ours"]
    far = max(records.distance.values())
    what = f"records of {attributes} attributes of 5 levels with the tables of {n:,}, 1 thread"
    ours = f"{amount(seconds)}, pairs off by at most {100 * far:.2g} % of all records"
    return [Row(what, ours, "", None, "< 10 s", seconds < 10.0)]


def _sections() -> Iterator[list[Row]]:
    for name in _RECORDS:
        yield in_process(__file__, f"errors {name}", threads=1, environment=_ENVIRONMENT)
    for name in _RECORDS:
        yield in_process(__file__, f"times {name}", threads=1, environment=_ENVIRONMENT)
        single = {**_ENVIRONMENT, "JAX_ENABLE_X64": "0"}
        yield in_process(__file__, f"single {name}", threads=1, environment=single)
    for name in _RECORDS:
        yield _memories(name)
    for threads in (1, 2):
        yield in_process(__file__, f"hundred {threads}", threads=threads, environment=_ENVIRONMENT)
    yield in_process(__file__, "hundred numpy", threads=1, environment=_ENVIRONMENT)
    yield in_process(__file__, "records", threads=1, environment=_ENVIRONMENT)
    yield [_tried("exact"), _tried("approximate")]


def figures() -> list[Row]:
    """Return all rows."""
    return [row for rows in _sections() for row in rows]


_SECTIONS: dict[str, Callable[[], list[Row]]] = {
    "hundred 1": partial(_hundred, 1),
    "hundred 2": partial(_hundred, 2),
    "hundred numpy": _hundred_in_numpy,
    "records": _made_records,
    "hundred exact": partial(_hundred_by_peer, "exact"),
    "hundred approximate": partial(_hundred_by_peer, "approximate"),
}
for _name in _RECORDS:
    _SECTIONS[f"errors {_name}"] = partial(_errors, _name)
    _SECTIONS[f"times {_name}"] = partial(_times, _name)
    _SECTIONS[f"single {_name}"] = partial(_single, _name)
    for _who in (_PLAIN, "500"):
        _SECTIONS[f"memory {_name} {_who}"] = partial(_of_memory, _name, _who)


if __name__ == "__main__":
    main(_SECTIONS, figures)
