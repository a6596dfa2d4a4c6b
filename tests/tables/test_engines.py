"""One table from every engine: generated rows of every type, permuted, in parts, with all that is strange in them."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import sordino as so

T = so.tables
pa = pytest.importorskip("pyarrow")
duckdb = pytest.importorskip("duckdb")
pytest.importorskip("pyarrow.parquet")

LOCAL = {"unit": "hour", "zone": "Europe/Berlin"}
DIMENSIONS = {
    "integers": {"k": T.Integers(-1, 6)},
    "levels": {"c": T.Levels(["a", "ä", "o'n", ""], other="rest"), "k": T.Levels([3, 1, -2])},
    "many levels": {"c": T.Levels([*(f"v{i}" for i in range(100)), "o'n", "ä"], other="rest"), "b": T.Integers(0, 1)},
    "edges": {"x": T.Edges([-2.5, -1, 0, 0.5, 3])},
    "clocks": {"local": T.Times("2026-10-24", "2026-10-27", **LOCAL), "b": T.Levels([True, False])},
    "instants": {"utc": T.Times("2026-10-23", "2026-10-28", unit="day", zone="Europe/Berlin")},
    "nanoseconds": {"ns": T.Times("2026-10-24", "2026-10-27", unit="hour", zone="America/New_York")},
    "dates": {"day": T.Times("2026-10-01", "2026-12-01", unit="month", zone="Africa/Cairo")},
    "whole floats": {"x": T.Integers(-3, 3)},
    "floats of the shorter kind": {"f": T.Edges([-1.0, 0.1, 2.0])},
}
USERS = ("u", "name", "unsigned", None)
VALUES = (None, {"x": T.Value(-2.0, 3.0, step=0.25)}, {"k": T.Value(-1, 5)})


def rows(rng, count):
    """Nulls, not-a-number, both zeros, infinities, users at both ends, empty names, both hours when clocks change."""

    def some(values, kind=None):
        return pa.array(values, kind, mask=rng.random(count) < 0.05)

    users = rng.integers(-3, 40, count)
    users[rng.random(count) < 0.02], users[rng.random(count) < 0.02] = np.iinfo(np.int64).max, np.iinfo(np.int64).min
    names = np.array(["", "ä", "user one", "a'b", "x\\y", *(f"u{i}" for i in range(30))], dtype=object)
    moments = np.datetime64("2026-10-22", "us") + rng.integers(0, 8 * 86_400 * 10**6, count)
    x = np.where(rng.random(count) < 0.5, np.floor(rng.normal(0, 3, count) * 2) / 2, rng.normal(0, 3, count))
    for odd in (np.nan, -0.0, np.inf, -np.inf):
        x[rng.random(count) < 0.03] = odd
    texts = np.array(["a", "b", "ä", "o'n", ""], dtype=object)
    return pa.table(
        {
            "u": some(users),
            "name": some(names[rng.integers(0, len(names), count)]),
            "unsigned": some(rng.integers(2**63 - 20, 2**63 + 20, count, dtype=np.uint64)),
            "local": some(moments),
            "utc": some(moments).cast(pa.timestamp("us", tz="UTC")),
            "ns": some(moments).cast(pa.timestamp("ns")),
            "day": some(moments).cast(pa.date32(), safe=False),
            "x": some(x),
            "f": some(x.astype(np.float32)),
            "k": some(rng.integers(-2, 9, count)),
            "c": some(texts[rng.integers(0, 5, count)]),
            "b": some(rng.random(count) < 0.5),
        }
    )


def cases(seed):
    rng = np.random.default_rng(seed)
    for dimensions in DIMENSIONS.values():
        for user in USERS:
            for values in VALUES:
                bounds = so.Bounds(*(int(rng.integers(1, most)) for most in (6, 4, 12)))
                yield so.Schema(dimensions, user=user, bounds=bounds if user else None, values=values), rng


def in_duckdb(table, schema):
    connection = duckdb.connect()
    connection.register("records", table)
    return so.tabulate(connection.table("records"), schema, request_id="r")


def test_duckdb_makes_the_table_of_the_core():
    full = 0
    for schema, rng in cases(0):
        table = rows(rng, 300)
        expected = so.tabulate(table, schema, request_id="r").counts
        full += expected.any()
        assert (in_duckdb(table.take(rng.permutation(300)), schema).counts == expected).all(), schema
    assert full > 115


def test_parts_of_frames_of_every_library_are_one_table():
    pl, pd = pytest.importorskip("polars"), pytest.importorskip("pandas")
    for schema, rng in list(cases(1))[::3]:
        table = rows(rng, 200)
        expected = so.tabulate(table, schema, request_id="r").counts
        chunks = table.take(rng.permutation(200)).to_batches(max_chunksize=int(rng.integers(1, 80)))
        for same in (chunks, pa.Table.from_batches(chunks).to_reader(), pl.from_arrow(table), [pl.from_arrow(c) for c in chunks],
                     table.to_pandas(types_mapper=pd.ArrowDtype), duckdb.from_arrow(table)):  # fmt: skip
            assert (so.tabulate(same, schema, request_id="r").counts == expected).all(), (schema, type(same))
        encoded = table.set_column(table.schema.get_field_index("c"), "c", table["c"].dictionary_encode())
        assert (so.tabulate(encoded, schema, request_id="r").counts == expected).all()


def test_one_user_more_or_less_from_duckdb():
    for schema, rng in list(cases(2))[::17]:
        if schema.user is None:
            continue
        table = rows(rng, 60)
        whole = in_duckdb(table, schema).counts
        for gone in set(table[schema.user].to_pylist()) - {None}:
            left = table.filter(
                pa.compute.invert(
                    pa.compute.fill_null(
                        pa.compute.equal(table[schema.user], pa.scalar(gone, table[schema.user].type)), False
                    )
                )
            )
            change = whole - in_duckdb(left, schema).counts
            assert change.min() >= 0 and change.sum() <= schema.unit.records
            assert change.max() <= (schema.unit.per_cell or schema.unit.records)


def test_files(tmp_path):
    rng = np.random.default_rng(3)
    table = rows(rng, 500)
    schema = so.Schema(
        {"c": T.Levels(["a", "ä", "o'n"], other="rest"), "local": T.Times("2026-10-24", "2026-10-27", **LOCAL)},
        user="u",
        bounds=so.Bounds(3, 2, 5),
        values={"x": T.Value(-2.0, 3.0, step=0.25)},
    )
    expected = so.tabulate(table, schema, request_id="r").counts
    pq, csv = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow.csv")
    pq.write_table(table, tmp_path / "all.parquet")
    for number, start in enumerate((0, 100, 350)):
        folder = tmp_path / "parts" / f"p={number}"
        folder.mkdir(parents=True)
        pq.write_table(table.slice(start, (100, 250, 150)[number]), folder / "part.parquet")
    files = sorted((tmp_path / "parts").glob("*/*.parquet"))
    for paths in (tmp_path / "all.parquet", str(tmp_path / "*.parquet"), tmp_path / "parts", files):
        found = so.tabulate(paths, schema, request_id="r", memory="200MB", temporary=tmp_path)
        assert (found.counts == expected).all()
    numbers = so.Schema(
        {"k": T.Integers(-1, 6), "x": T.Edges([-2.5, -1, 0, 0.5, 3])}, user="u", bounds=so.Bounds(3, 2, 5)
    )
    csv.write_csv(table.select(["k", "x", "u"]), tmp_path / "all.csv")
    # Of a file of text users are text: the same people, kept in another order where they are cut.
    text = table.set_column(0, "u", table["u"].cast(pa.string()))
    expected = so.tabulate(text, numbers, request_id="r").counts
    assert (so.tabulate(tmp_path / "all.csv", numbers, request_id="r").counts == expected).all()


def test_text_of_a_file_is_read_line_by_line(tmp_path):
    """One strange line more changes how no other line is read."""
    lines = [
        "at,k,u", "2026-07-01T03:30:00,1,a", "2026-07-01T01:30:00Z,2.5,b", '2026-07-01 05:30:00+02:00,+3,"c"', "2026-07-01,0003,d",
    ]  # fmt: skip
    schema = so.Schema(
        {"at": T.Times("2026-07-01", "2026-07-02", unit="hour", zone="Europe/Berlin")}, user="u", bounds=so.Bounds(1)
    )
    whole = so.Schema({"k": T.Integers(0, 4)}, user="u", bounds=so.Bounds(1))
    path = tmp_path / "rows.csv"
    strange = [
        "yesterday,x,e", "2026-13-01T00:00,1e3,f", "2026-07-01T07:00:00,2,,,", "9" * 40 + "," + "9" * 40 + ",g", '",",\'', "'",
        '"', '"open,1,h', 'a"b,"c""', "\x00", "\r", "\udcff,1,\udcff", "x" * 3_000_000, "294247-01-10T04:00:54,1,i", "infinity,nan,j",
    ]  # fmt: skip
    for place in range(len(lines)):
        for more in [[], *([line] for line in strange), strange]:
            path.write_text(
                "\n".join([*lines[: place + 1], *more, *lines[place + 1 :]]) + "\n", errors="surrogateescape"
            )
            assert set(np.flatnonzero(so.tabulate(path, schema, request_id="r").counts)) - {7} == {0, 3, 5}
            counts = so.tabulate(path, whole, request_id="r").counts
            assert (counts - [0, 1, 0, 2, 0] >= 0).all() and counts.sum() <= 3 + len(more)
    plain = path.read_bytes()
    import gzip

    (tmp_path / "rows.csv.gz").write_bytes(gzip.compress(plain))
    for same in (tmp_path / "rows.csv.gz", str(tmp_path / "rows.c*v"), [path]):
        assert (so.tabulate(same, whole, request_id="r").counts == counts).all()
    # Whoever writes quotes into a file that others are in takes nobody away.
    counted = so.Schema({"c": T.Levels(["a", "b"], other="o")}, user="u", bounds=so.Bounds(1))
    others = "".join(f"u{i},{'ab'[i % 2]}\n" for i in range(10))
    for first, last in (("',\"',\"\n", '\',"\'b"""\n'), ("','\n", ""), ('"\n', '"\n')):
        path.write_text("u,c\n" + first + others + last)
        counts = so.tabulate(path, counted, request_id="r").counts
        assert counts[:2].tolist() == [5, 5] and counts.sum() <= 11
    # A quoted field is what stands in it, and its user is nobody else.
    path.write_bytes(b'u,c\n"a b",a\n"a\0b",a\n"a\rb",a\n"a,b",a\n')
    assert so.tabulate(path, counted, request_id="r").counts.tolist() == [4, 0, 0]


def test_fields_are_as_long_as_they_are(tmp_path):
    """In an interpreter of its own: a limit of the csv module is set by whoever imports something else."""
    (tmp_path / "a.csv").write_text('k,note\n1,"' + "x" * 200_000 + '"\n')
    code = (
        "import csv, sys, sordino as so; csv.field_size_limit(1000);"
        "schema = so.Schema({'k': so.tables.Integers(0, 4)}, user=None);"
        "print(so.tabulate(sys.argv[1], schema, request_id='r').counts.sum())"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "a.csv")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.stdout == "1\n", done.stderr


def test_files_of_several_types_are_refused(tmp_path):
    """The first of them would decide for all; names of folders are text, whatever they are."""
    pq = pytest.importorskip("pyarrow.parquet")
    schema = so.Schema({"c": T.Integers(0, 19)}, user="user", bounds=so.Bounds(1))
    many = pa.table({"user": np.repeat(np.arange(6), 20), "c": np.tile(np.arange(20), 6), "other": [0.5] * 120})
    folder = tmp_path / "several"
    folder.mkdir()
    pq.write_table(many, folder / "b.parquet")
    counts = so.tabulate(folder, schema, request_id="r").counts
    for user, c, other in ((["7"], [0], [0.5]), ([7], [4.5], [0.5]), (np.array([5], np.int8), [0], [0.5])):
        pq.write_table(pa.table({"user": user, "c": c, "other": other}), folder / "a.parquet")
        with pytest.raises(so.errors.InputFileError, match="several types"):
            so.tabulate(folder, schema, request_id="r")
    pq.write_table(pa.table({"user": [7], "c": [0], "other": ["x"]}), folder / "a.parquet")  # nobody reads that column
    assert so.tabulate(folder, schema, request_id="r").counts.sum() == counts.sum() + 1
    hive = tmp_path / "hive"
    for name in ("0", "1", "x"):
        (hive / f"user={name}").mkdir(parents=True)
        pq.write_table(pa.table({"c": list(range(20))}), hive / f"user={name}" / "f.parquet")
        found = so.tabulate(hive, schema, request_id="r").counts
        alone = so.tabulate({"user": [name] * 20, "c": list(range(20))}, schema, request_id="r").counts
        assert (found - alone >= 0).all()
    with pytest.raises(so.errors.DataTypeError, match="text"):
        so.tabulate(hive, so.Schema({"user": T.Integers(0, 9)}, user=None), request_id="r")


def test_the_query_by_itself():
    schema, rng = next(cases(5))
    table = rows(rng, 200)
    connection = duckdb.connect()
    connection.register("records", table)
    found = connection.sql(
        T.sql(schema, "(select * from records)", {"u": "integer", "k": "integer"}, request_id="r")
    ).fetchall()
    expected = so.tabulate(table, schema, request_id="r").counts
    assert {cell: count for cell, count in found if count} == {k: n for k, n in enumerate(expected.tolist()) if n}
    assert "shiftright" in T.sql(schema, "records", {"u": "text", "k": "real"}, request_id="r", dialect="spark")
    for error, kinds in ((so.errors.DataTypeError, {"u": "real", "k": "integer"}), (so.errors.DataTypeError, {"k": "integer"}),
                         (so.errors.InvalidParameterError, {"u": "int", "k": "integer"})):  # fmt: skip
        with pytest.raises(error):
            T.sql(schema, "records", kinds, request_id="r")


def test_no_collation_and_no_setting_tells_who_is_who():
    connection = duckdb.connect()
    connection.execute("set default_order = 'desc'")
    connection.execute("create table t(u varchar collate nocase, x int, place varchar collate nocase)")
    connection.execute("insert into t select u, range, u from range(20), (values ('ann'), ('ANN')) as v(u)")
    few = so.Schema({"x": T.Integers(0, 19), "place": T.Levels(["ann"], other="o")}, user="u", bounds=so.Bounds(2))
    many = so.Schema({"place": T.Levels(["ann", "ANN", *(f"l{i}" for i in range(40))])}, user=None)
    for schema in (few, many):
        relation = connection.sql("from t")
        table = pa.table(relation.to_arrow_table())
        assert (
            so.tabulate(relation, schema, request_id="r").counts == so.tabulate(table, schema, request_id="r").counts
        ).all()


@pytest.mark.parametrize(
    ("sql", "dimension"),
    [
        ("make_timestamp_ns(-1)", T.Times("1969-12-31", "1970-01-02", unit="day", zone="UTC")),
        (
            "timestamp '294247-01-10 04:00:54.775806'",
            T.Times("2025-01-01", "2026-01-01", unit="hour", zone="America/New_York"),
        ),
        ("timestamp 'infinity'", T.Times("2025-01-01", "2026-01-01", unit="hour", zone="America/New_York")),
        ("(-0.35)::decimal(9,2)", T.Edges([-1.0, -0.35, 0.0])),
        ("'9007199254740993.00'::decimal(38,2)", T.Levels([2**53, 2**53 + 1])),
        ("4611686018427387905::decimal(19,0)", T.Levels([2**62 + 1], other="o")),
        ("1e20::decimal(38,0)", T.Edges([0.0, 1e25])),
        ("3::decimal(38,20)", T.Integers(0, 5)),
        ("2.5::decimal(4,1)", T.Integers(0, 5)),
        ("9223372036854775807", T.Levels([2**63 - 1], other="o")),
        ("'infinity'::double", T.Integers(0, 5)),
    ],
)
def test_entries_at_the_ends(sql, dimension):
    schema = so.Schema({"x": dimension}, user=None)
    relation = duckdb.sql(f"select {sql} as x")
    of_core = so.tabulate(relation.to_arrow_table(), schema, request_id="r").counts
    assert (so.tabulate(relation, schema, request_id="r").counts == of_core).all()


def test_decimals_are_what_they_are():
    from decimal import Decimal

    values = [Decimal(i) / 100 for i in range(1, 20_000, 7)]
    column = pa.array(values, pa.decimal128(9, 2))
    edges = T.Edges([0.0, *(float(v) for v in values), 1e6])
    assert set(so.tabulate({"x": column}, so.Schema({"x": edges}, user=None), request_id="r").counts[1:]) == {1}


def test_what_cannot_be_read_is_said_without_a_word_of_it(tmp_path):
    schema = so.Schema({"k": T.Integers(0, 4)}, user="u", bounds=so.Bounds(1))
    (tmp_path / "broken.parquet").write_bytes(b"SECRET" * 100)
    for paths in (
        tmp_path / "missing.parquet",
        tmp_path / "broken.parquet",
        [tmp_path / "a.csv", tmp_path / "b.parquet"],
    ):
        with pytest.raises(so.errors.InputFileError) as raised:
            so.tabulate(paths, schema, request_id="r")
        assert "SECRET" not in str(raised.value) and raised.value.__cause__ is None
    relation = duckdb.sql("select 'SECRET' as k, 1 as u")
    with pytest.raises(so.errors.DataTypeError, match="cast it to integers"):
        so.tabulate(relation, schema, request_id="r")
    failing = duckdb.sql("select cast(k as integer) as k, 1 as u from (values ('SECRET')) as t(k)")
    with pytest.raises(so.errors.InputFileError) as raised:
        so.tabulate(failing, schema, request_id="r")
    assert "SECRET" not in str(raised.value)
    with pytest.raises(so.errors.DataTypeError, match="one column"):
        so.tabulate(duckdb.sql("select 1 as k"), schema, request_id="r")


def test_progress_is_told_in_bytes_of_files(tmp_path):
    import gzip

    schema = so.Schema({"k": T.Integers(0, 3)}, user=None)
    (tmp_path / "a.csv").write_text("k\n" + "".join(f"{i % 5}\n" for i in range(600_000)) + "x" * 10_000_000)
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"k\n1\n"))
    paths = [tmp_path / "a.csv", tmp_path / "b.csv.gz"]
    size = sum(path.stat().st_size for path in paths)
    told = []
    table = so.tabulate(paths, schema, request_id="r", progress=lambda *said: told.append(said))
    assert table.counts.tolist() == [120_000, 120_001, 120_000, 120_000]
    assert told == [(2**22, size), (2**23, size), (size, size)]
    # Files of the same size tell the same, however many rows are in them.
    (tmp_path / "a.csv").write_text("k\n1" + " " * (1_200_000 + 10_000_000 - 1))
    again = []
    so.tabulate(paths, schema, request_id="r", progress=lambda *said: again.append(said))
    assert again == told
    with pytest.raises(so.errors.DataTypeError, match="callable"):
        so.tabulate(paths, schema, request_id="r", progress=5)
    with pytest.raises(OSError, match="mine"):
        so.tabulate(paths, schema, request_id="r", progress=lambda *_: exec('raise OSError("mine")'))
    broken = tmp_path / "c.csv.gz"
    broken.write_bytes(b"\x1f\x8b\x08\0" + b"\0" * 6 + b"\x07" * 30)
    with pytest.raises(so.errors.InputFileError):
        so.tabulate(broken, schema, request_id="r")
    os.mkfifo(tmp_path / "pipe.csv")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe.csv").write_text("k\n1\n"))
    writer.start()
    assert so.tabulate(tmp_path / "pipe.csv", schema, request_id="r").counts.sum() == 1
    writer.join()
    folder = tmp_path / "parts" / "day=1"
    folder.mkdir(parents=True)
    pa.parquet.write_table(pa.table({"k": [1, 2]}), folder / "x.parquet")
    told.clear()
    so.tabulate(tmp_path / "parts", schema, request_id="r", progress=lambda *said: told.append(said))
    assert told == [(0, (folder / "x.parquet").stat().st_size)]
