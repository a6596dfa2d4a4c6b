"""Bounded tables: the rule's fixture, one user more or less, who is a user, and what a plan asks of a table."""

import copy
import hashlib
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sordino as so
from sordino import _core
from sordino.tables.schema import unit_of

T = so.tables
SEED = [1103515245, 741103597, 1597334677, 377401575, 69069, 1220703125]


def schema(cells=4, *, bounds=None, **options):
    return so.Schema({"cell": T.Integers(0, cells - 1)}, user="user", bounds=bounds or so.Bounds(2), **options)


def test_the_fixture_of_the_rule():
    i = np.arange(20_000)
    users, cells = i * i % 251 + (i % 3) * 2**33, (17 * i + i * i % 13) % 48
    unbounded = np.bincount(cells, minlength=48)
    assert unbounded[:6].tolist() == [418, 417, 416, 416, 418, 416] and len(np.unique(users)) == 378
    for parts in (1, 7):
        tally = _core.Tally(SEED, 48, 16, 4, 32, 0)
        for part in np.array_split(np.arange(20_000), parts):
            tally.update(users[part], cells[part].astype(np.int32), np.zeros(0, dtype=np.uint32))
        table = tally.table()
        assert table.sum() == 11_597 and table[:6].tolist() == [251, 225, 229, 243, 232, 257]
        assert hashlib.sha256(table.astype("<i8").tobytes()).hexdigest().startswith("d2ec52eedca55b67")


@pytest.mark.parametrize(
    ("bounds", "unit", "l1", "l2"),
    [
        (so.Bounds(16, 4, 32), (32, 4), 32, 128),
        (so.Bounds(16, 1, 32), (16, 1), 16, 16),
        (so.Bounds(3, 4, 10), (10, 4), 10, 36),
        (so.Bounds(7, 9, 100), (63, 9), 63, 567),
    ],
)
def test_the_bound_on_cells_is_in_the_unit(bounds, unit, l1, l2):
    made = schema(bounds=bounds).unit
    assert (made.records, made.per_cell) == unit and made.one_signed
    whole, rest = divmod(made.records, made.per_cell)
    assert (made.records, whole * made.per_cell**2 + rest**2) == (l1, l2)


def test_units_that_lose_nothing():
    """Vertices of the unit's changes have no more non-zeros than the bound on cells: all of them, by enumeration."""
    for most, cells, each in itertools.product(range(1, 7), range(1, 4), range(1, 4)):
        unit = unit_of(so.Bounds(cells, each, most), 1, "x")
        cap = unit.per_cell or unit.records
        region = [
            z for z in itertools.product(range(each + 1), repeat=4) if sum(z) <= most and np.count_nonzero(z) <= cells
        ]
        whole, rest = divmod(unit.records, cap)
        assert max(map(sum, region)) == unit.records and max(map(max, region)) == cap
        assert max(sum(x * x for x in z) for z in region) == whole * cap**2 + rest**2


ROWS = st.lists(st.tuples(st.integers(0, 4), st.integers(-1, 4), st.floats(-3, 20)), max_size=40)


@given(
    ROWS, st.integers(1, 3), st.integers(1, 3), st.integers(1, 6), st.integers(0, 4), st.booleans(), st.text(max_size=5)
)
def test_one_user_more_or_less(rows, max_cells, per_cell, most, gone, amounts, request_id):
    bounds = so.Bounds(max_cells, per_cell, most)
    values = {"amount": T.Value(0.0, 10.0, step=0.5)} if amounts else None
    made, request_id = schema(bounds=bounds, values=values), request_id or "r"

    def table(kept):
        users, cells, values = (np.array([row[i] for row in kept], dtype=float) for i in range(3))
        data = {"user": users.astype(int), "cell": cells.astype(int), "amount": values}
        return so.tabulate(data, made, request_id=request_id).to_numpy()

    change = table(rows) - table([row for row in rows if row[0] != gone])
    height = 20 if amounts else 1
    cells = change.reshape(4, -1).sum(axis=1)
    assert change.min() >= 0 and (cells <= min(per_cell, most) * height).all() and (cells % height == 0).all()
    assert cells.sum() <= min(most, max_cells * per_cell) * height == made.unit.records
    assert np.count_nonzero(cells) <= max_cells


def test_parts_merge_in_any_order():
    rng = np.random.default_rng(0)
    data = {"user": rng.integers(0, 90, 4000), "cell": rng.integers(-1, 5, 4000)}
    made = schema(bounds=so.Bounds(3, 2, 5))
    whole = so.tabulate(data, made, request_id="r")
    for trial in range(20):
        parts = rng.integers(0, 1 + trial % 7, 4000)
        tallies = []
        for part in rng.permutation(1 + trial % 7):
            tally = T.Tally(made, request_id="r")
            tally.update({name: column[parts == part] for name, column in data.items()})
            tallies.append(T.Tally.from_bytes(tally.to_bytes(), made) if trial % 2 else tally)
        for tally in tallies[1:]:
            tallies[0].merge(tally)
        assert (tallies[0].table().counts == whole.counts).all()
    with pytest.raises(so.errors.InvalidParameterError, match="one request"):
        tallies[0].merge(T.Tally(made, request_id="other"))
    with pytest.raises(so.errors.InvalidParameterError, match="one schema"):
        tallies[0].merge(T.Tally(schema(), request_id="r"))
    with pytest.raises(so.errors.InvalidParameterError, match="no tally"):
        T.Tally.from_bytes(tally.to_bytes()[:-3], made)
    with pytest.raises(so.errors.InvalidParameterError, match="no tally"):
        T.Tally.from_bytes(tally.to_bytes(), schema())


def test_the_seed_is_the_requests():
    rng = np.random.default_rng(0)
    data = {"user": rng.integers(0, 50, 1000), "cell": rng.integers(0, 4, 1000)}
    one, again, other = (so.tabulate(data, schema(), request_id=name).counts for name in ("a", "a", "b"))
    assert (one == again).all() and (one != other).any()


def test_who_is_kept_is_fair():
    """8 cells of which 4 are kept: each in half of all cases, to within 4.5 of its errors."""
    users = np.repeat(np.arange(40_000), 8)
    made = so.Schema({"cell": T.Integers(0, 7)}, user="user", bounds=so.Bounds(4))
    counts = so.tabulate({"user": users, "cell": np.tile(np.arange(8), 40_000)}, made, request_id="r").counts
    assert counts.sum() == 160_000
    assert np.abs(counts - 20_000).max() < 4.5 * np.sqrt(40_000) / 2


def test_records_of_nobody_are_things_of_their_own():
    made = so.Schema({"cell": T.Integers(0, 2)}, user=None, label="one visit")
    table = so.tabulate({"cell": [0, 1, 1, 5, None]}, made, request_id="r")
    assert table.counts.tolist() == [1, 2, 0] and made.unit == so.AddRemove(1, one_signed=True, label="one visit")
    amounts = so.Schema({"cell": T.Integers(0, 1)}, user=None, values={"v": T.Value(-1.0, 1.0, step=0.5)})
    table = so.tabulate({"cell": [0, 0, 1, 1], "v": [-9.0, 0.25, 1.0, float("nan")]}, amounts, request_id="r")
    assert table.to_numpy().tolist() == [[6, 2], [0, 4]] and amounts.unit.records == 4
    tally = T.Tally(made, request_id="r")
    tally.update([{"cell": [0, 1]}, {"cell": np.array([2])}])
    other = T.Tally.from_bytes(tally.to_bytes(), made)
    other.merge(tally)
    assert other.table().counts.tolist() == [2, 2, 2]


def test_users_of_two_kinds_are_refused():
    tally = T.Tally(schema(), request_id="r")
    tally.update({"user": np.array([1, 2]), "cell": np.array([0, 1])})
    for users in (np.array([1, 2], dtype=np.uint64), np.array(["1", "2"]), [1, 2]):
        with pytest.raises(so.errors.InvalidParameterError, match="one kind"):
            tally.update({"user": users, "cell": np.array([0, 1])})
    assert tally.table().counts.tolist() == [1, 1, 0, 0]
    for users in (np.array([1.0, 2.0]), np.array([True, False]), np.array(["2026-01-01"] * 2, dtype="M8[s]")):
        with pytest.raises(so.errors.DataTypeError, match="cast it to integers or text"):
            so.tabulate({"user": users, "cell": [0, 1]}, schema(), request_id="r")


def test_missing_users_are_nobody():
    nan, rows = float("nan"), 10_000
    for users in (
        [np.timedelta64(1, "s")] * rows,
        [True] * rows,
        [nan] * rows,
        [None] * rows,
        np.full(rows, None),
        [np.datetime64("NaT")] * rows,
    ):
        assert so.tabulate({"user": users, "cell": [0] * rows}, schema(), request_id="r").counts.sum() == 0
    users = ["", "a", "a\0", "A", "\u00e1", "a\u0301"]  # told apart by their bytes
    table = so.tabulate({"user": users, "cell": [0] * 6}, schema(bounds=so.Bounds(1)), request_id="r")
    assert table.counts[0] == 6


def test_a_table_is_ours():
    cells = np.array([0, 1, 2])
    table = so.tabulate({"cell": cells}, so.Schema({"cell": T.Integers(0, 2)}, user=None), request_id="r")
    cells[:] = 0
    for view in (table.counts, table.to_numpy()):
        assert view.tolist() == [1, 1, 1]
        with pytest.raises(ValueError):
            view[0] = 7
    tally = T.Tally(schema(), request_id="r")
    assert "private" in repr(tally) and "private" in repr(table)
    for move in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="private"):
            move(tally)


def test_a_plan_knows_its_schema():
    made = schema(bounds=so.Bounds(3, 2, 4), label="one guest")
    privacy = so.ApproxDP(epsilon=1.0, delta=1e-6)
    table = so.tabulate({"user": [1, 1, 2], "cell": [0, 1, 2]}, made, request_id="r")
    for workload in (
        made.counts(),
        made.group_by("cell", "cell.total"),
        made.marginals(1),
        made.counts() | made.group_by("cell"),
    ):
        plan = so.plan(workload, privacy)
        assert plan.unit == made.unit
        assert plan.release(table).values.size == np.prod(workload.answers_shape)
    other = so.Schema({"cell": T.Integers(0, 3)}, user="user", bounds=so.Bounds(3, 2, 4), label="one host")
    with pytest.raises(so.errors.UnitError, match="another schema"):
        so.plan(other.counts(), privacy).release(table)
    small = (
        so.AddRemove(3),
        so.AddRemove(4, per_cell=1),
        so.UserLevel(4),
        so.ReplaceOne(3),
        so.UserLevel(2, 2, per_step=2),
    )
    for unit in small:
        with pytest.raises(so.errors.UnitError, match="AddRemove"):
            so.plan(so.Histogram(4), privacy, unit=unit).release(table)
    for unit in (
        made.unit,
        so.AddRemove(4),
        so.AddRemove(9, per_cell=2),
        so.UserLevel(2, per_step=2),
        so.ReplaceOne(4),
    ):
        assert so.plan(so.Histogram(4), privacy, unit=unit).release(table).values.shape == (4,)
    ledger = so.Ledger(privacy)
    with pytest.raises(so.errors.UnitError):
        so.plan(other.counts(), privacy).release(table, ledger=ledger)
    assert so.plan(made.counts(), privacy).release(table, ledger=ledger).accounted


def test_a_plan_of_a_schema_is_a_file(tmp_path):
    made = so.Schema(
        {"day": T.Times("2026-01-01", "2026-01-08", unit="day", zone="UTC"), "kind": T.Levels(["a", "b"])},
        user="who",
        bounds=so.Bounds(2),
    )
    for workload in (made.group_by("day", "kind", weights={"kind": 2.0}), made.counts() | made.counts()):
        plan = so.plan(workload, so.GaussianDP(mu=1.0))
        plan.save(tmp_path / "plan.json")
        loaded = so.Plan.load(tmp_path / "plan.json")
        assert loaded.digest == plan.digest and loaded.fit.request.workload == workload
        assert loaded.fit.request.workload.layout == workload.layout
        table = so.tabulate({"day": [], "kind": [], "who": []}, made, request_id="r")
        frame = loaded.release(table).to_frame()
        assert list(frame.columns) == ["day", "kind", "value", "stderr", "lower", "upper"]
    assert made.counts() != so.Histogram(14)


def test_refusals():
    wrong, kinds = so.errors.InvalidParameterError, so.errors.DataTypeError
    cell = {"cell": T.Integers(0, 3)}
    for error, call in [
        (wrong, lambda: so.Schema(cell, user="u")),
        (wrong, lambda: so.Schema(cell, user=None, bounds=so.Bounds(1))),
        (kinds, lambda: so.Schema({}, user=None)),
        (kinds, lambda: so.Schema({"cell": 4}, user=None)),
        (wrong, lambda: so.Schema({"a.b": T.Integers(0, 3)}, user=None)),
        (wrong, lambda: so.Schema({"a": T.Integers(0, 2**14), "b": T.Integers(0, 2**14)}, user=None)),
        (kinds, lambda: so.Schema(cell, user="u", bounds=3)),
        (wrong, lambda: so.Schema(cell, user=None, values={"a": T.Value(0, 1), "b": T.Value(0, 1)})),
        (wrong, lambda: so.Schema(cell, user="u", bounds=so.Bounds(2**20), values={"a": T.Value(0, 2**20)})),
        (wrong, lambda: T.Value(0, 1, step=0.3)),
        (wrong, lambda: T.Value(1, 1)),
        (wrong, lambda: T.Value(0, 2**40)),
        (wrong, lambda: so.Bounds(0)),
        (wrong, lambda: so.Bounds(2**16, 2**16)),
        (wrong, lambda: T.Integers(3, 2)),
        (wrong, lambda: T.Edges([1.0])),
        (wrong, lambda: T.Edges([0.0, float("inf")])),
        (wrong, lambda: so.Schema({"a": T.Levels([])}, user=None)),
        (wrong, lambda: T.Levels(["a", "a"])),
        (kinds, lambda: T.Levels(["a", 1])),
        (kinds, lambda: T.Levels([1, True])),
        (wrong, lambda: T.Levels(["a"], other="a")),
        (wrong, lambda: schema().group_by("cell", "cell")),
        (wrong, lambda: schema().group_by("cell.week")),
        (wrong, lambda: schema().group_by("other")),
        (wrong, lambda: schema().group_by()),
        (wrong, lambda: schema().group_by("cell", weights={"cell.total": 2.0})),
        (kinds, lambda: so.tabulate({"cell": [0]}, schema(), request_id="r")),
        (so.errors.ShapeError, lambda: so.tabulate({"cell": [0], "user": [1, 2]}, schema(), request_id="r")),
        (kinds, lambda: so.tabulate(7, schema(), request_id="r")),
        (kinds, lambda: so.tabulate({"cell": [0], "user": [1]}, 4, request_id="r")),
        (kinds, lambda: so.tabulate({"cell": [0], "user": [1]}, schema(), request_id=7)),
        (wrong, lambda: so.tabulate({"cell": [0], "user": [1]}, schema(), request_id="r", engine="spark")),
    ]:
        with pytest.raises(error):
            call()


def test_entries_beyond_integers_are_not_those_at_their_ends():
    from decimal import Decimal

    made = so.Schema({"x": T.Levels([1, 2, 2**62 + 5, 2**62], other="o")}, user=None)
    entries = [10**30, 2**62 + 5, 2**62, 2**62 + 7, 1, Decimal("1e30"), Decimal(2), 1.0, 1e300, float("inf"), 0.5]
    assert so.tabulate({"x": entries}, made, request_id="r").counts.tolist() == [2, 1, 1, 1, 1]
    assert so.tabulate({"x": np.array([1, 2, 3], ">u8")}, made, request_id="r").counts.tolist() == [1, 1, 0, 0, 1]
    users = so.Schema({"x": T.Integers(0, 30)}, user="u", bounds=so.Bounds(3))
    for kinds in (("u8", ">u8"), ("i8", ">i8")):
        tables = [
            so.tabulate(
                {"u": np.repeat(np.arange(9), 31).astype(kind), "x": list(range(31)) * 9}, users, request_id="r"
            )
            for kind in kinds
        ]
        assert (tables[0].counts == tables[1].counts).all()


def test_text_without_bytes_is_no_row():
    made = so.Schema({"x": T.Levels(["a"], other="o")}, user=None)
    odd = "\ud800"
    for column in (["a", odd], np.array(["a", odd]), np.array(["a", odd], dtype=object)):
        assert so.tabulate({"x": column}, made, request_id="r").counts.tolist() == [1, 0]
        assert so.tabulate({"user": column, "cell": [0, 0]}, schema(), request_id="r").counts[0] == 1
    with pytest.raises(so.errors.InvalidParameterError):
        T.Levels([odd])
    tally = T.Tally(schema(), request_id="a\nb" + odd)
    assert T.Tally.from_bytes(tally.to_bytes(), schema()).request_id == tally.request_id


def test_levels_of_two_types_are_two_schemas():
    one, other, third = (so.Schema({"x": T.Levels(v)}, user=None) for v in ([True, False], ["true", "false"], [1, 0]))
    assert len({one.digest, other.digest, third.digest}) == 3


def test_numbers_that_may_be_missing_keep_their_type():
    """Without pyarrow too: one missing entry makes no floats of all others."""
    import subprocess
    import sys

    program = """
import sys
sys.modules["pyarrow"] = None
import numpy as np, pandas as pd, polars as pl, sordino as so
T, big = so.tables, 2**53
made = so.Schema({"x": T.Levels([big, big + 1, big + 2])}, user=None)
users = so.Schema({"x": T.Integers(0, 1)}, user="u", bounds=so.Bounds(1))
for values, expected in (([big + 1, big + 2], [0, 1, 1]), ([big + 1, big + 2, None], [0, 1, 1])):
    for column in (pd.Series(values, dtype="Int64"), pd.Series(values, dtype="UInt64"), pl.Series(values, dtype=pl.Int64)):
        assert so.tabulate({"x": column}, made, request_id="r").counts.tolist() == expected, column
        table = so.tabulate({"u": column, "x": [0] * len(values)}, users, request_id="r")
        assert table.counts.tolist() == [2, 0]
text = so.Schema({"x": T.Levels([1, 2])}, user=None)
for values in (["a", "b"], ["a", None]):
    for column in (pd.Series(values, dtype="str"), pl.Series(values, dtype=pl.String)):
        try:
            so.tabulate({"x": column}, text, request_id="r")
        except so.errors.DataTypeError:
            continue
        raise AssertionError(column)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]


def test_categories_are_read_by_their_type():
    import pandas as pd

    made = so.Schema({"x": T.Integers(0, 9)}, user=None)
    mixed = pd.CategoricalDtype(pd.Index([1, 2, "x"], dtype=object))
    for column in (
        pd.Series([1, 2, None], dtype=mixed),
        pd.Series([1, 2, "x"], dtype=mixed),
        pd.Categorical([1, 2, "x"], dtype=mixed),
    ):
        assert so.tabulate({"x": column}, made, request_id="r").counts[1:3].tolist() == [1, 1]
    dates = so.Schema({"x": T.Times("2026-01-01", "2026-01-03", unit="day", zone="UTC")}, user=None)
    listed = [
        np.datetime64("2026-01-01"),
        np.datetime64(2**62, "s"),
        np.datetime64("2026-01-02T05", "h"),
        np.datetime64("NaT"),
    ]
    assert so.tabulate({"x": listed}, dates, request_id="r").counts.tolist() == [1, 1]
    pa = pytest.importorskip("pyarrow")
    twice = pa.table([[1], [2]], names=["x", "x"])
    with pytest.raises(so.errors.DataTypeError, match="one column"):
        so.tabulate(twice, made, request_id="r")


def test_levels_that_are_called_like_numbers():
    made = so.Schema({"value": T.Integers(0, 2), "count": T.Integers(0, 1)}, user=None)
    table = so.tabulate({"value": [0, 1], "count": [0, 1]}, made, request_id="r")
    frame = so.plan(made.counts(), so.GaussianDP(mu=1e6)).release(table).to_frame()
    assert frame["value (level)"].tolist() == ["0", "0", "1", "1", "2", "2"] and frame["value"].round().sum() == 2


def test_smooth_queries_take_tables_of_numbers_as_points():
    rng = np.random.default_rng(0)
    dimensions = {"x": T.Edges(np.linspace(-1.0, 1.0, 9)), "k": T.Integers(0, 4)}
    schema = so.Schema(dimensions, user="u", bounds=so.Bounds(3, 2))
    data = {"x": rng.uniform(-1, 1, 5000), "k": rng.integers(0, 5, 5000), "u": rng.integers(0, 900, 5000)}
    table = so.tabulate(data, schema, request_id="r")
    queries = so.smooth.SmoothQueries(
        2, points=5000, bounds=[(-1.0, 1.0), (0.0, 4.0)], query_class=so.smooth.GaussianKernels(0.5)
    )
    plan = so.plan(queries, so.ApproxDP(epsilon=1.0, delta=1e-6), unit=table.unit)
    cells = np.argwhere(table.to_numpy())
    points = np.column_stack([np.linspace(-1.0, 1.0, 9)[cells[:, 0]] + 0.125, cells[:, 1].astype(float)])
    repeated = np.repeat(points, table.to_numpy()[tuple(cells.T)], axis=0)
    with so.testing.deterministic_noise(bytes(32)):
        of_table, of_points = plan.release(table), plan.release(repeated)
    assert (of_table.sums == of_points.sums).all()
    for take in (plan.sums, plan.sums().update):
        with pytest.raises(so.errors.InvalidParameterError, match="release"):  # two of them would not add up
            take(table)
    public = so.plan(queries, so.ApproxDP(epsilon=1.0, delta=1e-6), unit=so.ReplaceOne(table.unit.records))
    with pytest.raises(so.errors.UnitError, match="private"):
        public.release(table)
    with pytest.raises(so.errors.UnitError):
        so.plan(queries, so.ApproxDP(epsilon=1.0, delta=1e-6)).release(table)
    of_rows = so.plan(queries, so.ApproxDP(epsilon=1.0, delta=1e-6))
    for rows in (0, 3):  # whether anybody is in them or not
        some = {"x": np.zeros(rows), "c": ["a"] * rows}
        flat = so.tabulate(some, so.Schema({"x": dimensions["x"]}, user=None), request_id="r")
        with pytest.raises(so.errors.ShapeError):
            of_rows.release(flat)
        text = so.tabulate(some, so.Schema({"c": T.Levels(["a"])}, user=None), request_id="r")
        with pytest.raises(so.errors.DataTypeError, match="no points"):
            of_rows.release(text)
