"""Streams of tables: what one user changes in all steps is within the unit, and crashes change nothing."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sordino as so

T = so.tables
PRIVACY = so.ApproxDP(epsilon=1.0, delta=1e-6)


def schema_of(bounds, values=None):
    cells = {"k": T.Integers(0, 2)}
    return so.Schema(cells, user="u", bounds=bounds, values=values, label="one customer")


def tables_of(schema, rows, steps, most, apart, text=False):
    """Return the tables of all steps, of rows (step, user, cell, amount)."""
    windows = T.Windows(schema, max_participations=most, min_separation=apart, request_id="r")
    found = []
    for step in range(steps):
        own = [row for row in rows if row[0] == step]
        for part in (own[: len(own) // 2], own[len(own) // 2 :]):
            names = [f"user {row[1]}" if text else row[1] for row in part]
            users = names if text else np.array(names, dtype=np.int64)
            columns = {"u": users, "k": np.array([row[2] for row in part], dtype=np.int64)}
            windows.update(columns | {"amount": np.array([row[3] for row in part], dtype=np.float64)})
        found.append(windows.advance())
    return windows, found


ROWS = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 3), st.integers(-1, 3), st.integers(0, 4)), max_size=60)


@settings(max_examples=150, deadline=None)
@given(
    ROWS,
    st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 4)),
    st.integers(1, 4),
    st.integers(1, 4),
    st.booleans(),
    st.booleans(),
)
def test_one_user_more_changes_so_many_steps_each_within_the_bounds(rows, bounds, most, apart, amounts, text):
    own = so.Bounds(*bounds)
    schema = schema_of(own, {"amount": T.Value(0.0, 4.0)} if amounts else None)
    windows, tables = tables_of(schema, rows, 8, most, apart, text)
    _, without = tables_of(schema, [row for row in rows if row[1] != 0], 8, most, apart, text)
    changes = [(a.to_numpy() - b.to_numpy()).reshape(3, -1) for a, b in zip(tables, without, strict=True)]
    touched = [step for step, change in enumerate(changes) if change.any()]
    assert len(touched) <= most and all(b - a >= apart for a, b in pairwise(touched))
    height = 4 if amounts else 1
    records, cap = min(own.records, bounds[0] * bounds[1]), min(bounds[1], own.records)
    for change in changes:
        assert change.min() >= 0 and change.sum() <= records * height
        assert change.sum(axis=1).max() <= cap * height and np.count_nonzero(change.sum(axis=1)) <= bounds[0]
    # And so what the plan says: so many coordinates, each by so much.
    live = windows.continual(so.RunningSum(8))
    assert windows.unit == so.UserLevel(most, apart, per_step=cap * height, label="one customer")
    assert live.dim == tables[0].counts.size and live.cells_per_record == min(-(-records // cap), live.dim)
    for change in changes:
        assert change.sum() <= live.cells_per_record * windows.unit.per_step
        assert np.square(change).sum() <= live.cells_per_record * windows.unit.per_step**2


def test_a_stream_takes_them_step_by_step_through_a_crash(tmp_path):
    schema = schema_of(so.Bounds(2, 3, 5))
    rng = np.random.default_rng(0)
    batches = [{"u": rng.integers(0, 50, 200), "k": rng.integers(0, 3, 200)} for _ in range(6)]
    windows = T.Windows(schema, max_participations=3, min_separation=2, request_id="clicks")
    plan = so.plan(windows.continual(so.RunningSum(6)), PRIVACY)
    assert plan.unit == windows.unit and "one customer" in plan.explain()
    path = tmp_path / "plan.json"
    plan.save(path)
    plan = so.StreamPlan.load(path)
    assert plan.workload == windows.continual(so.RunningSum(6))
    stream = plan.open(store=so.streams.FileStepStore(tmp_path / "steps"))
    saved, truth, answers = windows.to_bytes(), np.zeros(3, dtype=np.int64), []
    for step, batch in enumerate(batches):
        windows.update(batch)
        table = windows.advance()
        truth += table.counts
        answers.append(stream.update(table, step_id=f"batch {step}"))
        if step == 3:  # published, and the state of before is all that is left: the same rows again
            again = T.Windows.from_bytes(saved, schema)
            again.update({name: column[::-1] for name, column in batch.items()})
            same = again.advance()
            assert (same.counts == table.counts).all()
            assert (stream.update(same, step_id="batch 3") == answers[3]).all()
            windows = again
        saved = windows.to_bytes()
    assert np.abs(answers[-1] - truth).max() < 12 * plan.max_stderr
    bounded = so.tabulate({"u": batches[0]["u"], "k": batches[0]["k"]}, schema, request_id="clicks\x000")
    first = T.Windows(schema, max_participations=3, min_separation=2, request_id="clicks")
    first.update(batches[0])
    assert (first.advance().counts == bounded.counts).all()


def test_tables_of_other_steps_plans_and_states_are_refused(tmp_path):
    schema = schema_of(so.Bounds(2, 3, 5))

    def windows_of(most=3, apart=2):
        return T.Windows(schema, max_participations=most, min_separation=apart, request_id="r")

    windows = windows_of()
    plan = so.plan(windows.continual(so.RunningSum(6)), PRIVACY)
    stream = plan.open()
    tables = [windows.advance() for _ in range(3)]
    stream.update(tables[0])
    for table in (tables[0], tables[2]):
        with pytest.raises(so.errors.InvalidParameterError, match="the stream is at step 1"):
            stream.update(table)
    bounded = so.tabulate({"u": [1], "k": [1]}, schema, request_id="r")
    with pytest.raises(so.errors.InvalidParameterError, match="Windows does"):
        stream.update(bounded)
    for other in (windows_of(4, 2), windows_of(3, 1)):
        other.advance()
        with pytest.raises(so.errors.UnitError):
            stream.update(other.advance())
    smaller = so.plan(windows.continual(so.RunningSum(6)), PRIVACY, unit=so.UserLevel(2, 2, per_step=3)).open()
    with pytest.raises(so.errors.UnitError, match="by more than the plan says"):
        smaller.update(tables[0])
    larger = so.plan(windows.continual(so.RunningSum(6)), PRIVACY, unit=so.UserLevel(4, 1, per_step=3)).open()
    larger.update(tables[0])
    by_hand = so.plan(so.Continual(so.RunningSum(6), dim=3), PRIVACY, unit=so.UserLevel(3, 2, per_step=3)).open()
    with pytest.raises(so.errors.UnitError, match="continual"):  # it says one cell of a record
        by_hand.update(tables[0])
    with pytest.raises(so.errors.UnitError):
        so.plan(schema.counts(), PRIVACY).release(tables[0])
    windows.update({"u": np.array([1]), "k": np.array([1])})
    with pytest.raises(so.errors.InvalidParameterError, match="end the step"):
        windows.to_bytes()
    windows.advance()
    with pytest.raises(so.errors.InvalidParameterError, match="of one kind"):
        windows.update({"u": ["a"], "k": [1]})
    state = windows.to_bytes()
    for broken in (state[:-1], b"", state + b"x", state[:2] + b"g" + state[3:]):
        with pytest.raises(so.errors.InvalidParameterError):
            T.Windows.from_bytes(broken, schema)
    with pytest.raises(so.errors.InvalidParameterError):
        T.Windows.from_bytes(state, schema_of(so.Bounds(1)))
    with pytest.raises(so.errors.InvalidParameterError, match="users"):
        T.Windows(so.Schema({"k": T.Integers(0, 2)}, user=None), max_participations=1, request_id="r")
    assert "1" not in repr(windows).split("Schema")[0]


def test_a_running_histogram_takes_them_and_is_charged_for_all_records_of_a_step():
    schema = schema_of(so.Bounds(2, 3, 5))
    windows = T.Windows(schema, max_participations=3, min_separation=2, request_id="r")
    live = windows.continual(so.RunningHistogram(3, 6))
    plan = so.plan(live, PRIVACY)
    assert plan.unit == so.UserLevel(3, 2, per_step=5, label="one customer")
    with so.testing.deterministic_noise(bytes(32)):
        stream, other = plan.open(), plan.open()
        for k in range(6):
            windows.update({"u": np.arange(40 * k, 40 * k + 40), "k": np.arange(40) % 3})
            table = windows.advance()
            stream.update(table)
            other.update(np.arange(3), table.counts)
    assert (stream.sums == other.sums).all() and stream.step == 6
    smaller = so.plan(live, PRIVACY, unit=windows.unit).open()  # that of a table that knows a bound for each cell
    first = T.Windows(schema, max_participations=3, min_separation=2, request_id="r").advance()
    with pytest.raises(so.errors.UnitError):
        smaller.update(first)
    with pytest.raises(so.errors.InvalidParameterError, match="3 cells"):
        windows.continual(so.RunningHistogram(4, 6))
    with pytest.raises(so.errors.DataTypeError):
        windows.continual(so.RunningSum(6), dim=2)


def test_what_a_reader_found():
    """Other streams' windows, an interrupted end of a step, steps without rows, bounds that no histogram could have."""
    schema = schema_of(so.Bounds(2, 1))

    def windows_of(name, most=1):
        return T.Windows(schema, max_participations=most, min_separation=1, request_id=name)

    stream = so.plan(windows_of("here").continual(so.RunningSum(4)), PRIVACY).open()
    with pytest.raises(so.errors.UnitError):
        stream.update(windows_of("there").advance())
    windows = windows_of("here")
    windows.update({"u": [], "k": []})  # columns without a type say nothing of users
    windows.update({"u": np.array([1]), "k": np.array([1])})
    windows._core.advance()  # and a signal before anything else
    windows.update({"u": np.array([1]), "k": np.array([1])})
    assert not windows.advance().counts.any()
    wide = so.Schema({"k": T.Integers(0, 10_000)}, user="u", bounds=so.Bounds(4096))
    assert T.Windows(wide, max_participations=2**20, request_id="r").unit.max_participations == 2**20
    with pytest.raises(so.errors.DataTypeError):
        T.Windows.from_bytes(windows.to_bytes(), None)
