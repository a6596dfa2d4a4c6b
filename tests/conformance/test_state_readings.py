"""What a reading of everything that keeps state found: each line of it stays mended."""

import math
import signal
import struct

import numpy as np
import pytest

import sordino as so
from sordino.cli.inputs import read_source
from sordino.cli.tables import real
from sordino.privacy.schedule import schedule_delta


def counted(path):
    said = {"user_column": "who", "max_records": 1, "values_column": "page", "bins": 2}
    return read_source(path, said).cells.tolist()


def test_users_that_differ_in_bytes_that_are_no_text_are_two(tmp_path):
    path = tmp_path / "u.csv"
    for text, cells in (("José,0\nJosè,1\n", [1, 1]), ("Josè,1\n", [0, 1])):
        path.write_bytes(("who,page\n" + text).encode("latin-1"))
        assert counted(path) == cells


def test_users_of_a_parquet_file_by_the_nanosecond(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    users = pa.array([1_000_000_000, 1_000_000_001], pa.timestamp("ns"))
    parquet.write_table(pa.table({"who": users, "page": [0, 1]}), tmp_path / "u.parquet")
    assert counted(tmp_path / "u.parquet") == [1, 1]


def test_one_entry_that_is_no_text_is_a_user_by_its_bytes(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    spoilt = pa.array([b"a", b"\xff", b"b"]).cast(pa.binary()).view(pa.string())
    parquet.write_table(pa.table({"who": spoilt, "page": [0, 1, 1]}), tmp_path / "u.parquet")
    assert counted(tmp_path / "u.parquet") == [1, 2]


def test_long_numbers_are_rounded_by_what_is_written():
    zeros = "0" * 100_000
    assert real(f"0.5{zeros}1") == 0.5
    assert real("0.4" + "9" * 100_000) < 0.5


@pytest.mark.parametrize("raised", [TypeError, OverflowError, ValueError])
def test_no_error_after_a_step_takes_it_again(raised):
    """A handler of a signal may raise anything once the core has published."""
    with so.plan(so.Continual(so.RunningSum(9)), so.GaussianDP(mu=1.0)).open() as stream:
        publish = stream._one

        def interrupted(item):
            publish(item)
            raise raised

        stream._one = interrupted
        with pytest.raises(raised):
            stream.update(1)
        assert stream.step == 1
        stream._one = publish
        stream.update(10**400)  # clamped, all the same


def test_handlers_are_not_null_items():
    def stop(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with pytest.raises(TimeoutError):
            for _ in range(30):
                so.sketches.Sketch(4, 4, sketch="sparse", nonzeros=1).update([0] * 30_000 + [None])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.slow
def test_long_schedules_are_rounded_up():
    """By 60 digits the delta of 905,199 costs of 0.001 is more than floats without slack say."""
    assert schedule_delta([so.privacy.PureCost(1e-3)] * 905_199, 3.0) >= 0.00085041330822567622
    one = schedule_delta([so.privacy.PureCost(1.0)], 0.5)
    assert one == pytest.approx(1 / (1 + math.exp(-1.0)) - math.exp(0.5) / (1 + math.exp(1.0)), rel=1e-8)


def test_a_schedule_is_read_once():
    total = so.ApproxDP(epsilon=1.0, delta=1e-6)
    ledger = so.Ledger(total, schedule=(cost for cost in [so.privacy.PureCost(0.5)]))
    ledger.charge(so.privacy.PureCost(0.5))


def test_a_sketch_without_sums_is_refused():
    def mixed(z):
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
        return z ^ (z >> 31)

    body = b"sordsket" + struct.pack("<QIIQQ", 1, 3, 4, 8, 4)
    word = 0x736B6574
    for (part,) in struct.iter_unpack("<Q", body):
        word = (mixed(word ^ part) + 1) % 2**64
    for tail in (b"", bytes(8)):
        with pytest.raises(so.SordinoError):
            so.sketches.Sketch.from_bytes(body + tail + struct.pack("<Q", word))


def test_labels_cannot_write_on_a_terminal():
    for label in ("a\nb", "one record.\x1b[8m", "a\u202eb"):
        with pytest.raises(so.errors.InvalidParameterError):
            so.AddRemove(1, label=label)
    assert (
        "Flüge, täglich"
        in so.plan(so.Histogram(3), so.PureDP(epsilon=1.0), unit=so.AddRemove(label="Flüge, täglich")).guarantee()
    )


def test_surveys_with_other_parts_are_refused(tmp_path):
    """Before anything is charged: a file whose parts do not belong together."""
    plan = so.plan(so.local.LocalSurvey(100, intervals=16), so.PureDP(epsilon=1.0))
    record = plan.record()
    for change in ({"doors": []}, {"domain": None}, {"parameters": "0" * 64}, {"fitted": "binary-tree-laplace"}):
        if plan.mechanism in change.values():
            continue
        altered = {**record, **change}
        try:
            again = so.SurveyPlan.from_record(altered)
        except so.errors.PlanFileError:
            continue
        ledger = so.Ledger(so.PureDP(epsilon=2.0))
        assert again.encode_client(0.5, ledger=ledger).shape == (again.fit.numbers,)
    assert np.isfinite(plan.max_stderr)


def test_groups_are_told_the_same_conditions():
    node = so.events.EdgeCount(8, 30, max_degree=3, level="node", unchecked=True)
    said = so.plan(node, so.PureDP(epsilon=1.0), unit=so.AddRemove(3)).guarantee(5)
    assert "vertices" in said
    assert "a promise that is not checked" in said
    assert "that is secret" in so.plan(so.RunningHistogram(4, 8), so.PureDP(epsilon=1.0)).guarantee(2)
    assert "single records" in so.plan(so.Histogram(4), so.PureDP(epsilon=1.0)).guarantee(2)


def test_live_tables_come_back_from_files_and_checkpoints(tmp_path):
    plan = so.plan(so.RunningHistogram(16, length=100), so.PureDP(epsilon=1.0), max_value=3)
    again = so.Plan.load(plan.save(tmp_path / "plan.json"))
    assert again.digest == plan.digest
    assert again.fit.counters.domain.max_value == 3
    own = so.sketches.OrthonormalBasis(64, lambda x: x, lambda x: x, 1.0)
    plan = so.plan(so.RunningHistogram(64, length=10), so.PureDP(epsilon=1.0), basis=own)
    store, seal = so.streams.InMemoryStepStore(), bytes(range(32))
    with plan.open(store=store) as stream:
        stream.update([1, 2])
        checkpoint = stream.counters.checkpoint(seal)
    with plan.attach(so.restore(checkpoint, seal, store)) as stream:
        assert stream.step == 1
    table = so.plan(so.Histogram(64), so.PureDP(epsilon=1.0), basis=own)
    assert so.Plan.load(table.save(tmp_path / "table.json")).digest == table.digest


@pytest.mark.parametrize(
    ("workload", "target"),
    [
        (so.local.LocalSurvey(100_000, (0.0, 1.0)), {"within": 0.05, "level": 0.9}),
        (so.local.LocalSurvey(100_000, (0.0, 1.0)), {"max_stderr": 0.02, "delta": 1e-6}),
        (so.Continual(so.RunningSum(1000)), {"within": 50.0, "level": 0.99, "delta": 1e-6}),
        (so.RunningSum(100), {"within": 30.0}),
        (so.Histogram(10), {"within": 5.0, "delta": 1e-6}),
    ],
)
def test_a_plan_with_the_privacy_that_was_asked_for_meets_the_target(workload, target):
    privacy = so.privacy_for(workload, **target)
    options = {} if isinstance(workload, so.local.LocalSurvey) else {"objective": "max"}
    plan = so.plan(workload, privacy, **options)
    if "within" in target:
        assert plan.fit.largest_half_width(target.get("level", 0.95)) <= target["within"] * (1 + 1e-9)
    else:
        assert plan.max_stderr <= target["max_stderr"]


def test_streams_that_end_have_no_other_horizon():
    for workload in (so.RunningHistogram(4, once=True), so.events.RareCount(9, 9)):
        for horizon in ("soft", "unbounded"):
            with pytest.raises(so.errors.InvalidParameterError):
                so.plan(so.Continual(workload, horizon=horizon), so.PureDP(epsilon=1.0))
    with pytest.raises(so.SordinoError):  # not when it is opened
        so.plan(so.events.RareCount(1000, 10), so.PureDP(epsilon=1e-7), mechanism="above")


def test_records_of_another_version_are_refused():
    record = so.plan(so.Histogram(3), so.PureDP(epsilon=1.0)).record()
    with pytest.raises(so.errors.PlanFileError):
        so.Plan.from_record({**record, "schema": 1})


def test_names_of_steps_are_text():
    with so.plan(so.Continual(so.RunningSum(9)), so.GaussianDP(mu=1.0)).open(store=so.streams.InMemoryStepStore()) as s:
        with pytest.raises(so.errors.InvalidParameterError):
            s.update(1, step_id="\ud800")
        s.update(1, step_id="höchste 🎻")
        assert s.step == 1


OPTIONS = ("memory", "degree", "max_value", "objective", "integral", "effort", "compression", "basis", "constraint")


@pytest.mark.parametrize("name", [*OPTIONS, "factorization"])
@pytest.mark.parametrize(
    "odd", [np.array([1, 2]), np.array([True]), [], math.nan, object()], ids=("array", "mask", "list", "nan", "object")
)
def test_options_that_mean_nothing_are_refused_whatever_they_compare_to(name, odd):
    kernels = so.smooth.GaussianKernels(0.5)
    queries = so.smooth.SmoothQueries(1, points=4, bounds=(0.0, 1.0), query_class=kernels)
    for workload in (queries, so.Continual(so.RunningSum(8)), so.RunningSum(8)):
        with pytest.raises(so.SordinoError):
            so.plan(workload, so.PureDP(epsilon=1.0), **{name: odd})


def test_scalars_of_numpy_are_the_defaults_they_equal():
    queries = so.smooth.SmoothQueries(1, points=4, bounds=(0.0, 1.0), query_class=so.smooth.GaussianKernels(0.5))
    kept = so.plan(queries, so.PureDP(epsilon=1.0), integral=np.True_, objective=np.str_("mean"))
    assert kept.explain() == so.plan(queries, so.PureDP(epsilon=1.0)).explain()
