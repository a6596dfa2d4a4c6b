"""Releases that are saved and read: the same answers, further ones, other programs' columns, files that were altered."""

import itertools

import numpy as np
import pytest

import sordino as so

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
PURE = so.PureDP(epsilon=1.0)
APPROX = so.ApproxDP(epsilon=1.0, delta=1e-6)
CODES = np.random.default_rng(0).integers(0, 3, (300, 3))


X = np.random.default_rng(1).poisson(2.0, 48)
TALLEST = np.r_[[90, 80, 70], np.zeros(509, dtype=int)]
SKETCH = so.sketches.Compression(measurements=64, sparsity=4)


def released(workload, privacy, data, **options):
    return so.plan(workload, privacy, **options).release(data)


CASES = {
    "histogram": lambda: released(so.Histogram(48), PURE, X),
    "filter": lambda: released(so.MovingAverage(window=5, length=48), APPROX, X),
    "optimal": lambda: released(so.AllRanges(48), PURE, X).consistent(whole=True),
    "rounded": lambda: released(so.Histogram(48), PURE, X).nonnegative().rounded(),
    "further": lambda: released(so.RunningSum(48), APPROX, X).answer(so.Histogram(48)).nonnegative(),
    "marginals": lambda: released(so.Marginals([3, 3, 3], k=2), APPROX, CODES).consistent(shrink="independence"),
    "projected": lambda: released(
        so.Histogram(48), APPROX, X, unit=so.ReplaceOne(), constraint=so.optimal.PublicTotal(int(X.sum()))
    ),
    "threshold": lambda: released(so.Histogram(64), APPROX, np.r_[X, X[:16]], mechanism="threshold"),
    "isotonic": lambda: released(so.SortedHistogram(48), PURE, X),
    "sketch": lambda: released(so.Histogram(512), APPROX, TALLEST, mechanism="compressive", compression=SKETCH),
    "reals": lambda: released(so.Histogram(8), APPROX, np.linspace(0, 1, 8), integral=False, max_value=10),
    "two axes": lambda: released(so.Kronecker([so.RunningSum(6), so.Histogram(8)]), APPROX, X.reshape(6, 8)),
}


@pytest.mark.parametrize("suffix", [".arrow", ".parquet"])
@pytest.mark.parametrize("name", CASES)
def test_what_is_read_is_what_was_saved(name, suffix, tmp_path):
    release = CASES[name]()
    path = release.save(tmp_path / f"release{suffix}")
    read = so.Release.load(path)
    assert read.fit.digest == release.fit.digest and read.workload == release.workload
    assert (read.values == release.values).all() and read.values.shape == release.values.shape
    assert read.post_processing == release.post_processing and read.consistency == release.consistency
    assert (read.private, read.accounted) == (release.private, release.accounted)
    assert (read.measured.units == release.measured.units).all() and read.measured.grid == release.measured.grid
    table = pq.read_table(path) if suffix == ".parquet" else pa.ipc.open_file(path).read_all()
    assert (table.column("value").to_numpy() == release.values.reshape(-1)).all()
    if name == "sketch":
        assert table.column_names == ["index", "value"] and read.recovery is not None
        return
    assert (read.unbiased == release.unbiased).all() and (read.stderr == release.stderr).all()
    one, other = release.interval(0.9), read.interval(0.9)
    assert (one.lower == other.lower).all() and (one.upper == other.upper).all()
    assert ("unbiased" in table.column_names) == bool(release.post_processing)
    if release.fit.mechanism.measures == "identity" and name not in {"isotonic", "two axes", "marginals"}:
        again = so.Histogram(release.fit.request.workload.input_shape[0])
        assert (read.answer(again).values == release.answer(again).values).all()


def test_labels_and_levels_are_columns(tmp_path):
    pd = pytest.importorskip("pandas")
    days = pd.Series([1, 2, 3], index=pd.date_range("2026-01-01", periods=3))
    release = so.plan(so.Histogram(3), PURE).release(days)
    read = so.Release.load(release.save(tmp_path / "days.arrow"))
    assert list(read.labels) == list(release.labels)
    schema = so.Schema({"place": so.tables.Levels(["north", "south"]), "value": so.tables.Integers(0, 2)}, user=None)
    table = so.tabulate({"place": ["north"] * 9, "value": [0, 1, 2] * 3}, schema, request_id="r")
    release = so.plan(schema.marginals(1), PURE).release(table)
    read = so.Release.load(release.save(tmp_path / "levels.parquet"))
    columns = pq.read_table(tmp_path / "levels.parquet").to_pydict()
    assert columns["place"][:2] == ["north", "south"] and columns["value (level)"][2:] == ["0", "1", "2"]
    assert read.workload.layout == release.workload.layout
    assert read.to_frame(library="pandas").equals(release.to_frame(library="pandas"))
    # What another release answered keeps the layout of what was asked.
    coarse = release.answer(schema.marginals(0)) if schema.marginals(0).sets else release
    assert so.Release.load(coarse.save(tmp_path / "coarse.arrow")).workload.layout == coarse.workload.layout


def test_what_was_recovered_comes_back(tmp_path):
    for plain in (
        released(so.Histogram(16), PURE, np.arange(16)).thresholded(),
        CASES["threshold"](),
        CASES["sketch"](),
    ):
        read = so.Release.load(plain.save(tmp_path / "a.arrow"))
        assert (read.cells == plain.cells).all() and read.recovery.algorithm == plain.recovery.algorithm
    total = int(X.sum())
    constraint = {"unit": so.ReplaceOne(), "constraint": so.optimal.PublicTotal(total)}
    consistent = released(so.Histogram(48), APPROX, X, **constraint).consistent()
    assert so.Release.load(consistent.save(tmp_path / "a.arrow")).projection is None is consistent.projection


def test_labels_that_files_have_not_are_text(tmp_path):
    pd = pytest.importorskip("pandas")
    for index in ([1, "a"], [2**70, 1], [1j, 2j], pd.period_range("2026-01", periods=2, freq="M")):
        release = so.plan(so.Histogram(2), PURE).release(pd.Series([1, 2], index=index))
        read = so.Release.load(release.save(tmp_path / "a.parquet"))
        assert list(map(str, read.labels)) == list(map(str, release.labels))


def test_a_door_takes_in_what_it_published():
    door = so.plan(so.Histogram(4), PURE).fit.door
    assert door.published(np.arange(4)).values().tolist() == [0.0, 1.0, 2.0, 3.0]
    with pytest.raises(so.errors.ShapeError):
        door.published(np.arange(5))


@pytest.mark.parametrize("suffix", [".arrow", ".parquet"])
def test_files_that_were_altered_are_refused(suffix, tmp_path):
    release = so.plan(so.Histogram(8), PURE).release(np.arange(8)).nonnegative()
    path = release.save(tmp_path / f"a{suffix}")
    table = pq.read_table(path) if suffix == ".parquet" else pa.ipc.open_file(path).read_all()

    def written(changed):
        if suffix == ".parquet":
            pq.write_table(changed, path)
        else:
            with pa.ipc.new_file(path, changed.schema) as writer:
                writer.write_table(changed)

    def changed_column(name):
        values = table.column(name).to_numpy().copy()
        values[3] += 1.0
        return table.set_column(table.column_names.index(name), name, pa.array(values))

    text = table.schema.metadata[b"sordino"]
    broken = [
        *(changed_column(name) for name in ("value", "unbiased", "stderr")),
        table.slice(0, 7),
        table.drop_columns(["stderr"]),
        table.set_column(0, "value", pa.array(["x"] * 8)),
        table.replace_schema_metadata({}),
        table.replace_schema_metadata({b"sordino": b"{}", b"sordino.arrays": b""}),
        *(
            table.replace_schema_metadata({b"sordino": text.replace(old, new), b"sordino.arrays": b""})
            for old, new in (
                (b"nonnegative", b"rounded"),
                (b'"private": true', b'"private": false'),
                (b"release", b"plan"),
            )
        ),
    ]
    for one in broken:
        written(one)
        with pytest.raises(so.errors.PlanFileError):
            so.Release.load(path)
    content = path.read_bytes()
    for length in (0, 3, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises((so.errors.PlanFileError, so.errors.InputFileError)):
            so.Release.load(path)


def test_names_of_files(tmp_path):
    release = so.plan(so.Histogram(8), PURE).release(np.arange(8))
    for name in ("a.csv", "a", "a.arrow.gz"):
        for call in (release.save, so.Release.load):
            with pytest.raises(so.errors.InvalidParameterError):
                call(tmp_path / name)
    with pytest.raises(so.errors.InputFileError):
        so.Release.load(tmp_path / "none.arrow")
    with pytest.raises(so.errors.InputFileError):
        release.save(tmp_path / "no folder" / "a.arrow")
    assert list(tmp_path.iterdir()) == []


def test_a_hundred_attributes_are_saved(tmp_path):
    """Of a table that nobody could hold."""
    for mechanism, unit in itertools.product(
        ("output-gaussian", "fourier-gaussian"), (so.AddRemove(3), so.ReplaceOne())
    ):
        plan = so.plan(so.Marginals([10] * 100, k=1), so.GaussianDP(mu=1.0), unit=unit, mechanism=mechanism)
        assert so.Plan.load(plan.save(tmp_path / "plan.json")).rmse == plan.rmse
        release = plan.release(np.zeros((5, 100), dtype=int))
        assert (so.Release.load(release.save(tmp_path / "a.arrow")).values == release.values).all()


def test_files_and_frames_say_the_same(tmp_path):
    """The same columns and numbers in files and frames: weights of levels are taken out of both."""
    schema = so.Schema({"a": so.tables.Levels(["x", "y"])}, user=None)
    table = so.tabulate({"a": ["x"] * 70 + ["y"] * 30}, schema, request_id="r")
    weighted = so.plan(schema.group_by("a", "a.total", weights={"a.total": 10}), PURE).release(table)
    marginals = so.plan(so.Marginals([2, 3], k=1), PURE).release(np.arange(6))
    ranges = so.plan(so.AllRanges(4), PURE).release(np.arange(4))
    for release in (weighted, marginals, ranges):
        frame = release.to_frame(library="pandas").drop(columns=["lower", "upper"])
        read = pq.read_table(release.save(tmp_path / "a.parquet")).to_pandas()
        assert list(read.columns) == list(frame.columns)
        np.testing.assert_array_equal(read["value"], frame["value"])
        assert so.Release.load(tmp_path / "a.parquet").values.tolist() == release.values.tolist()
    assert abs(pq.read_table(weighted.save(tmp_path / "b.parquet")).to_pydict()["value"][-1] - 100) < 20
    assert ranges.to_frame(library="pandas")["last"].tolist() == [0, 1, 2, 3, 1, 2, 3, 2, 3, 3]


def test_amounts_are_shown_as_counts_sums_and_means(tmp_path):
    schema = so.Schema(
        {"place": so.tables.Levels(["n", "s"])}, user=None, values={"pay": so.tables.Value(0, 100, step=1)}
    )
    rows = {"place": ["n"] * 60 + ["s"] * 40, "pay": [50] * 100}
    release = so.plan(schema.counts(), so.PureDP(epsilon=5.0)).release(so.tabulate(rows, schema, request_id="x"))
    read = pq.read_table(release.save(tmp_path / "a.parquet")).to_pydict()
    assert read["place"] == ["n", "s"] and abs(read["count"][0] - 60) < 20 and "pay_mean" in read
    assert so.Release.load(tmp_path / "a.parquet").values.tolist() == release.values.tolist()
    for call in (lambda: release.consistent(total=100), lambda: release.quantile(0.5), release.moments):
        with pytest.raises(so.SordinoError):
            call()


def test_names_in_files_are_not_altered_unseen(tmp_path):
    pd = pytest.importorskip("pandas")
    days = pd.Series([1, 2, 3], index=pd.date_range("2026-01-01", periods=3))
    release = so.plan(so.Histogram(3), PURE).release(days)
    path = release.save(tmp_path / "a.parquet")
    table = pq.read_table(path)
    later = pa.array(pd.date_range("2030-01-01", periods=3))
    pq.write_table(table.set_column(0, "index", later).replace_schema_metadata(table.schema.metadata), path)
    with pytest.raises(so.errors.PlanFileError, match="altered"):
        so.Release.load(path)


@pytest.mark.parametrize("kind", ["periods", "intervals", "mixed", "missing", "several"])
def test_labels_of_any_type_leave(kind, tmp_path):
    pd = pytest.importorskip("pandas")
    index = {
        "periods": lambda: pd.period_range("2026-01", periods=3, freq="M"),
        "intervals": lambda: pd.interval_range(0, 3),
        "mixed": lambda: pd.Index([1, "b", None], dtype=object),
        "missing": lambda: pd.DatetimeIndex(["2026-01-01", None, "2026-01-03"]),
        "several": lambda: pd.MultiIndex.from_product([["a"], [1, 2, 3]]),
    }[kind]()
    release = so.plan(so.Histogram(3), PURE).release(pd.Series([1, 2, 3], index=index))
    assert release.to_arrow().num_rows == 3
    for library in ("pandas", "polars", "pyarrow"):
        assert len(release.to_frame(library=library)) == 3
    assert so.Release.load(release.save(tmp_path / "a.arrow")).values.tolist() == release.values.tolist()


def test_public_margins_leave_a_trace(tmp_path):
    release = so.plan(so.Marginals([2, 3], k=2), PURE).release(np.arange(6))
    found = release.consistent(invariants={(0,): [5, 10]})
    assert found.consistency.invariants == ((0,),)
    assert so.Release.load(found.save(tmp_path / "a.arrow")).consistency == found.consistency


def test_records_are_written_with_their_distances(tmp_path):
    release = so.plan(so.Marginals([2, 3, 2], k=2), PURE).release(np.arange(12)).consistent(whole=True)
    people = release.records(seed=1)
    table = pq.read_table(people.save(tmp_path / "a.parquet"))
    assert table.num_rows == len(people) and b"distance" in table.schema.metadata[b"sordino.records"]
    with pytest.raises(so.errors.InvalidParameterError):
        people.save(tmp_path / "a.csv")
