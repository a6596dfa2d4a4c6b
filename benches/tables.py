"""From records to bounded tables: the core, DuckDB, and the same rule in numpy and in plain Python, on the same rows.

Rows are those of the design: users with Pareto-like activity (the busiest has one per cent of all), 720 hours times 20
categories, 16 cells of a user, 4 records in each, 32 in all. All contestants must give one table; that is asserted. Times are
of one call: reading Parquet is in that of DuckDB, and no file in the others'. Memory is the most that a process of its own held,
over what the rows take.

Run `python benches/tables.py`.
"""

import hashlib
import os
import resource
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from harness import Row, amount, in_process, main, noted, once, plural, quick, turns, versus
from numpy.typing import NDArray

import sordino as so

Integers = NDArray[np.int64]

_ROWS = 10**6 if quick() else 5 * 10**7
_USERS = _ROWS // 50
_TEXT_ROWS = 2 * 10**5 if quick() else 10**7
_PLAIN_ROWS = 10**5 if quick() else 10**6
_P = 2**31 - 1
_HOURS, _CATEGORIES = 720, 20
_BOUNDS = so.Bounds(max_cells=16, per_cell=4, max_records=32)
_SCHEMA = so.Schema(
    {"hour": so.tables.Integers(0, _HOURS - 1), "category": so.tables.Integers(0, _CATEGORIES - 1)},
    user="user",
    bounds=_BOUNDS,
)


def _rows(count: int, users: int) -> dict[str, Integers]:
    rng = np.random.default_rng(0)
    activity = rng.pareto(1.2, users) + 0.1
    activity[0] = 0.01 * activity.sum()
    who = np.searchsorted(np.cumsum(activity / activity.sum()), rng.random(count)).clip(0, users - 1)
    hour, category = rng.integers(0, _HOURS, count), np.minimum(rng.geometric(0.2, count) - 1, _CATEGORIES - 1)
    return {"user": who * 7_919_000_003 % 2**62, "hour": hour, "category": category}


def _numpy(rows: dict[str, Integers], rule: Any) -> Integers:
    """The rule by sorting: numpy alone."""
    a0, a1, a2, a3, a4, a5 = rule.seed
    cells = rows["hour"] * _CATEGORIES + rows["category"]
    order = np.lexsort((cells, rows["user"]))
    user, cell = rows["user"][order], cells[order]
    first = np.flatnonzero(np.r_[True, (user[1:] != user[:-1]) | (cell[1:] != cell[:-1])])
    counts = np.minimum(np.diff(np.r_[first, len(user)]), rule.per_cell)
    user, cell = user[first], cell[first]
    h = (a0 * (user & _P) % _P + a1 * (user >> 31 & _P) % _P) % _P
    x = (h + a2 * cell % _P + a3) % _P
    y = (x * x % _P * ((x + a4) % _P) % _P + a5 * cell) % _P
    z = y * y % _P * ((y + a3) % _P) % _P
    order = np.lexsort((cell, z, user))
    user, cell, counts, h = user[order], cell[order], counts[order], h[order]
    starts = np.flatnonzero(np.r_[True, user[1:] != user[:-1]])
    sizes = np.diff(np.r_[starts, len(user)])
    kept = np.arange(len(user)) - np.repeat(starts, sizes) < rule.max_cells
    user, cell, counts, h = user[kept], cell[kept], counts[kept], h[kept]
    starts = np.flatnonzero(np.r_[True, user[1:] != user[:-1]])
    sizes = np.diff(np.r_[starts, len(user)])
    sums = np.cumsum(counts)
    before = np.repeat(np.r_[0, sums][starts], sizes)
    q, total = sums - before, np.repeat(np.add.reduceat(counts, starts), sizes)
    phase = (h + a4) % _P % total
    share = (q * rule.max_records + phase) // total - ((q - counts) * rule.max_records + phase) // total
    return np.bincount(cell, np.where(total > rule.max_records, share, counts), rule.cells).astype(np.int64)


def _plain(rows: list[tuple[int, int]], rule: Any) -> list[int]:
    """The rule as it is written: dictionaries of plain Python."""
    a0, a1, a2, a3, a4, a5 = rule.seed
    held: dict[int, dict[int, int]] = {}
    for user, cell in rows:
        own = held.setdefault(user, {})
        own[cell] = own.get(cell, 0) + 1
    table = [0] * rule.cells
    for user, own in held.items():
        h = (a0 * (user & _P) % _P + a1 * (user >> 31 & _P) % _P) % _P
        places = []
        for k in own:
            x = (h + a2 * k % _P + a3) % _P
            y = (x * x % _P * ((x + a4) % _P) % _P + a5 * k) % _P
            places.append((y * y % _P * ((y + a3) % _P) % _P, k))
        places.sort()
        kept = [(k, min(own[k], rule.per_cell)) for _, k in places[: rule.max_cells]]
        total = sum(w for _, w in kept)
        phase, q = (h + a4) % _P % total, 0
        for k, w in kept:
            share = (q + w) * rule.max_records + phase
            table[k] += w if total <= rule.max_records else share // total - (q * rule.max_records + phase) // total
            q += w
    return table


def _digest(table: Any) -> str:
    return hashlib.sha256(np.asarray(table, dtype="<i8").tobytes()).hexdigest()[:12]


def _core(rows: Any) -> Integers:
    return so.tabulate(rows, _SCHEMA, request_id="bench").counts


def _integers(threads: int) -> list[Row]:
    rows = _rows(_ROWS, _USERS)
    rule = _SCHEMA.rule("bench")
    contestants: dict[str, Callable[[], Any]] = {"core": partial(_core, rows)}
    if threads == 1:
        contestants["numpy"] = partial(_numpy, rows, rule)
    times, tables = turns(contestants, 3)
    assert len({_digest(table) for table in tables.values()}) == 1
    what = f"{_ROWS:,} rows of {_USERS:,} integer users to {rule.cells:,} cells, {plural(threads)}"
    goal = (3.0 if threads == 1 else 2.0) * _ROWS / 5e7
    found = [noted(what, amount(times["core"]), times["core"], goal, f"≤ {amount(goal)}")]
    if "numpy" in times:
        found.append(versus(what, times["core"], "the rule in numpy", times["numpy"]))
        few = {name: column[:_PLAIN_ROWS] for name, column in rows.items()}
        pairs = list(zip(few["user"].tolist(), (few["hour"] * _CATEGORIES + few["category"]).tolist(), strict=True))
        times, tables = turns({"core": partial(_core, few), "plain": partial(_plain, pairs, rule)}, 3)
        assert _digest(tables["core"]) == _digest(tables["plain"])
        found.append(versus(f"the first {_PLAIN_ROWS:,} of them", times["core"], "plain Python", times["plain"]))
    return found


def _held() -> float:
    """Return the most bytes that this process has held; what `resource` says begins with those of its parent."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    peak = next((line.split()[1] for line in lines if line.startswith("VmHWM")), None)
    return 1024.0 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss if peak is None else float(peak))


def _memory() -> list[Row]:
    """A process of its own, that reads its rows: making them would hold more."""
    folder = Path(os.environ["SORDINO_BENCH_FILE"]).parent
    rows = {name: np.load(folder / f"{name}.npy") for name in ("user", "hour", "category")}
    before = _held()
    _core(rows)
    each = (_held() - before) / _ROWS
    return [noted("memory over the rows, most, core", f"{each:.3g} B/row", each, 16.0, "≤ 16 B/row")]


def _text() -> list[Row]:
    rng = np.random.default_rng(1)
    users = _TEXT_ROWS // 5
    names = pa.array(np.char.add("customer-", rng.integers(0, 10**12, users).astype(str)))
    rows = pa.table(
        {
            "user": names.take(pa.array(rng.integers(0, users, _TEXT_ROWS))),
            "hour": rng.integers(0, _HOURS, _TEXT_ROWS),
            "category": rng.integers(0, _CATEGORIES, _TEXT_ROWS),
        }
    )
    seconds, _ = once(partial(_core, rows))
    what, goal = f"{_TEXT_ROWS:,} rows of {users:,} string users in Arrow, 1 thread", 3.0 * _TEXT_ROWS / 1e7
    return [noted(what, amount(seconds), seconds, goal, f"≤ {amount(goal)}")]


@cache
def _file() -> Path:
    path = Path(tempfile.mkdtemp()) / "rows.parquet"
    rows = _rows(_ROWS, _USERS)
    pq.write_table(pa.table(rows), path)
    for name, column in rows.items():
        np.save(path.with_name(f"{name}.npy"), column)
    return path


def _duckdb() -> list[Row]:
    """A process of its own: what it held is DuckDB's."""
    path = Path(os.environ["SORDINO_BENCH_FILE"])
    so.tabulate(pa.table(_rows(1000, 20)), _SCHEMA, request_id="bench")  # what is imported late
    before = _held()
    folder = path.parent / "spill"
    memory = "200MB" if quick() else "1GB"
    read = partial(so.tabulate, path, _SCHEMA, request_id="bench", memory=memory, temporary=folder)
    seconds, table = once(read)
    assert _digest(table.counts) == os.environ["SORDINO_BENCH_DIGEST"]
    goal = 35.0 * _ROWS / 5e7
    what = f"the same rows from Parquet by DuckDB at {memory}"
    return [
        noted(what, amount(seconds), seconds, goal, f"≤ {amount(goal)}"),
        noted("memory of that process, most, over the interpreter's", f"{(_held() - before) / 1e9:.3g} GB"),
    ]


def _merging() -> list[Row]:
    rows = _rows(_ROWS // 5, _USERS)
    half = len(rows["user"]) // 2
    parts = []
    for some in (slice(0, half), slice(half, None)):
        tally = so.tables.Tally(_SCHEMA, request_id="bench")
        tally.update({name: column[some] for name, column in rows.items()})
        parts.append(tally)
    state = parts[1].to_bytes()
    # A name and its length, then 20 bytes an entry, in what is written.
    entries = (len(state) - 60 - 16 * len(np.unique(rows["user"][half:]))) // 20
    parts[0].table()
    seconds, _ = once(lambda: parts[0].merge(parts[1]))
    assert _digest(parts[0].table().counts) == _digest(_core(rows))
    rate = entries / seconds
    what = f"merge of a tally of {entries:,} entries"
    return [noted(what, f"{rate / 1e6:.3g} M entries/s, 1 thread", 1 / rate, 1 / 20e6, "≥ 20 M entries/s")]


def _nested() -> list[Row]:
    cells = 10**5 if quick() else 10**6
    levels = [np.arange(cells) // size for size in (cells, 10_000, 100, 1)]
    plan = so.plan(so.GroupBy(levels), so.GaussianDP(mu=1.0), mechanism="laminar-gaussian")
    counts = np.random.default_rng(0).integers(0, 50, cells)
    seconds, _ = once(lambda: plan.fit.door.measure(plan.fit.strategy, counts, None))
    times, _ = turns({"ours": lambda: plan.fit.door.measure(plan.fit.strategy, counts, None)}, 5)
    strategy, whole = plan.fit.ideal_optimality, plan.optimality
    return [
        noted(
            f"nested groups, {cells:,} cells on 4 levels: over the least error, in real arithmetic",
            f"1 + {strategy - 1:.1e}",
            strategy,
            1 + 1e-9,
            "≤ 1 + 1e-9",
        ),
        noted("the same with noise on the lattice", f"1 + {whole - 1:.1e}"),
        noted(
            f"encode, round and add noise, {cells:,} cells on 4 levels, 1 thread", amount(min(seconds, times["ours"]))
        ),
    ]


def _keys() -> list[Row]:
    rng = np.random.default_rng(0)
    users = 5_000 if quick() else 50_000
    sizes = rng.geometric(1 / 13, users)
    who = np.repeat(np.arange(users), sizes)
    words = np.minimum(rng.zipf(1.35, len(who)), 10**6)
    privacy = so.ApproxDP(epsilon=1.0, delta=1e-6)
    found = {}
    for name, rounds in (("one round", (1.0,)), ("three rounds, 1:4:16", (1.0, 4.0, 16.0))):
        schema = so.Schema({"word": so.tables.Keys(rounds=rounds)}, user="user", bounds=so.Bounds(30))
        data = {"user": who, "word": words}
        seconds, levels = once(partial(so.tables.select_keys, data, schema, privacy, request_id="bench"))
        found[name] = len(levels.values)
    ratio = found["three rounds, 1:4:16"] / found["one round"]
    said = f"one round: {found['one round']} keys"
    what = f"unknown keys of {users:,} users, {len(who):,} rows, epsilon 1, delta 1e-6"
    ours = f"three rounds: {found['three rounds, 1:4:16']} keys, {amount(seconds)}"
    return [Row(what, ours, said, ratio, "> 1", ratio > 1.0)]


def _sections() -> Iterator[list[Row]]:
    yield in_process(__file__, "integers", threads=1)
    yield in_process(__file__, "integers 2", threads=2)
    yield in_process(__file__, "text", threads=1)
    with_file = {"SORDINO_BENCH_FILE": str(_file()), "SORDINO_BENCH_DIGEST": _digest(_core(_rows(_ROWS, _USERS)))}
    yield in_process(__file__, "memory", threads=1, environment=with_file)
    yield in_process(__file__, "duckdb", threads=1, environment=with_file)
    shutil.rmtree(_file().parent)
    for name in ("merging", "nested", "keys"):
        yield in_process(__file__, name, threads=1)


def figures() -> list[Row]:
    """Return all rows."""
    return [row for rows in _sections() for row in rows]


if __name__ == "__main__":
    main(
        {
            "integers": partial(_integers, 1),
            "integers 2": partial(_integers, 2),
            "memory": _memory,
            "text": _text,
            "duckdb": _duckdb,
            "merging": _merging,
            "nested": _nested,
            "keys": _keys,
        },
        figures,
    )
