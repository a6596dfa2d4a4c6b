"""What a later reading of everything that takes data in found: each line of it stays mended."""

import json
import math
import signal
import threading
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import sordino as so
from command_line import sordino
from records import tabulate
from sordino._support.private_numbers import LIMIT
from sordino.cli.inputs import read_source
from sordino.cli.stream_lines import Interruption, LineParser, LineReader
from sordino.cli.tables import read_chunks, read_columns, real

PURE = so.PureDP(epsilon=1.0)


class Handled(Exception):
    """What a handler of a signal raises."""


def test_a_blank_user_is_nobody_in_every_format(tmp_path):
    """Rows that many people left blank are not those of one person, who would decide what of the others counts."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    said = {"user_column": "who", "max_records": 1, "values_column": "page", "bins": 2}
    text = tmp_path / "u.csv"
    text.write_text('page,who\n0,\n1,\n0,\n1,a\n1,a\n1,"  "\n')
    parquet.write_table(pa.table({"page": [0, 1, 0, 1, 1], "who": [None, None, "", "a", "a"]}), tmp_path / "u.parquet")
    blank = pa.array([None, b" ", b"", b"a", b"a"], pa.binary())
    parquet.write_table(pa.table({"page": [0, 1, 0, 1, 1], "who": blank}), tmp_path / "b.parquet")
    for path in (text, tmp_path / "u.parquet", tmp_path / "b.parquet"):
        assert read_source(path, said).cells.tolist() == [0, 1]


@contextmanager
def written_over(array, *values):
    """Write these values over an array in turn, in another thread."""
    done = threading.Event()

    def write():
        while not done.is_set():
            for value in values:
                array[:] = value

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        done.set()
        writer.join()


def test_codes_that_change_while_they_are_counted_are_somebodys():
    """The core reads a code more than once: it gets a copy, whatever another thread writes."""
    codes = np.zeros((20_000, 2), dtype=np.uint8)
    plan = so.plan(so.Marginals([100, 100], k=1), PURE)
    with written_over(codes, 255, 3):
        for _ in range(20):
            plan.release(codes)


def test_a_table_is_as_long_as_its_bins():
    records = np.full(20_000, 3.0)
    with written_over(records, 1e6, 3.0):
        assert {len(tabulate(records, 4).counts) for _ in range(50)} == {4}


# Where a handler comes into a collection of garbage, Python can only say so.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("users", [[f"user {k}" for k in range(300_000)], list(range(300_000))])
def test_no_record_vanishes_when_a_handler_raises(users):
    """An exception of a handler is no missing user."""

    def handler(*_):
        raise Handled

    before = signal.signal(signal.SIGALRM, handler)
    try:
        for delay in np.linspace(0.01, 0.2, 8):
            try:
                try:
                    signal.setitimer(signal.ITIMER_REAL, delay)
                    counts = tabulate(np.zeros(len(users)), 1, user=users, max_records=1).counts
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except Handled:
                continue
            assert counts.sum() == len(users)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_line_is_null_for_its_own_length(tmp_path):
    """Wherever the blocks end that it comes in: that depends on all lines before it."""
    for length, kept in ((65_000, True), (66_000, False), (120_000, False)):
        for first in (10, 400, 5_000):
            path = tmp_path / "lines"
            path.write_bytes(b"x" * first + b"\n" + b"".join(b"1," + b"y" * length + b"\n" for _ in range(9)) + b"2")
            with path.open("rb") as file, Interruption() as interruption:
                reader, lines = LineReader(file.fileno(), interruption, 1), []
                while (some := reader.read()) is not None:
                    lines += some
            assert [len(line) for line in lines] == [first, *[(length + 2) * kept] * 9, 1]


def test_a_byte_order_mark_is_none_of_the_first_number():
    assert LineParser(1, ()).items([b"\xef\xbb\xbf5", b"6"]).tolist() == [[5.0], [6.0]]
    assert LineParser(1, ("v",)).items([b"\xef\xbb\xbfv", b"6"]).tolist() == [[6.0]]


def test_a_blank_line_of_one_column_is_a_row(tmp_path):
    """A count that is missing moves none of the others."""
    sketches = []
    for missing in ("", '""'):
        path, out = tmp_path / "t.csv", tmp_path / "t.sketch"
        path.write_text(f"count\n5\n{missing}\n7\n9\n\n")
        options = ["--counts-column", "count", "--measurements", 4, "--cells", 5, "--output", out]
        result = sordino("sketch", "build", path, *options)
        assert result.exit_code == 0, result.output
        sketches.append(out.read_bytes())
    assert sketches[0] == sketches[1]
    path.write_text("age\n20\n\n40\n")
    options = ["--column", "age:0..99", "--smooth-order", 2, "--points", 3, "--replace", "--epsilon", 1]
    assert sordino("smooth", "release", path, *options, "--output", tmp_path / "s.json").exit_code == 0
    # Of several columns no row looks like a blank line.
    path.write_text("age,x\n20,1\n\n40,1\n\n")
    assert read_columns(path, ["age"]) == [["20", "40"]] == next(read_chunks(path, ["age"]))


@pytest.mark.parametrize("whole", [0, 1, 7, 2**30, 2**51 - 1, 2**51, 2**52 - 1, 2**52, 2**52 + 1, 2**53 - 2])
def test_text_is_rounded_half_up_at_every_size(whole):
    """Numbers that differ by one stay one apart."""
    for sign in (1, -1):
        for part in ("0", "25", "4999999999999999999999", "5", "50000000000000000001", "75"):
            text = f"{'-' if sign < 0 else ''}{whole}.{part}"
            exact = Fraction(text)
            for entry in (text, Decimal(text)):
                assert int(np.floor(np.longdouble(real(entry)) + 0.5)) == math.floor(exact + Fraction(1, 2)), entry


class Secret(float):
    """A number that says what it is, loudly."""

    def __float__(self):
        raise RuntimeError(f"secret {float.__repr__(self)}")


class Name(str):
    __slots__ = ()

    def __hash__(self):
        raise RuntimeError(f"secret {str.__repr__(self)}")


def test_what_is_made_from_plain_types_is_read_as_any_object():
    sketch = so.sketches.Sketch(8, 4)
    sketch.update([1, Secret(2.0)], [Secret(1.0), 1])
    with so.plan(so.events.EdgeCount(["aa", "bb"], 9), PURE).open() as stream:
        stream.update([Name("aa")], ["bb"])
        assert stream.step == 1


@pytest.mark.parametrize("at", [1, 2])
def test_rare_counts_resume_what_an_interruption_left(at):
    plan = so.plan(so.events.RareCount(10**6, 1), so.PureDP(epsilon=5.0))
    items = [200] * 40
    with so.testing.deterministic_noise(bytes(32)), plan.open() as whole:
        known = whole.update(items).tolist()
    with so.testing.deterministic_noise(bytes(32)), plan.open() as stream:
        publish, calls = stream.counters.update, 0

        def interrupted(item):
            nonlocal calls
            calls += 1
            if calls == at:
                raise Handled
            return publish(item)

        stream.counters.update = interrupted
        with pytest.raises(Handled):
            stream.update(items)
        assert stream.pending
        with pytest.raises(so.errors.StepStoreError):
            stream.update([1, 2])
        stream.resume()
        assert not stream.pending
        assert (stream.step, stream.value) == (40, known[-1])
        with pytest.raises(so.errors.InvalidParameterError):
            stream.resume()


def test_labels_that_are_no_text_are_marked(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"c,l\n1,a\xff\n2,b\n")
    options = ["--counts-column", "c", "--label-column", "l", "--workload", "histogram", "--epsilon", 1]
    for out in ("t.json", "t.csv", "t.parquet", "t.png"):
        given = ["--plot" if out.endswith("png") else "--output", tmp_path / f"out-{out}"]
        result = sordino("release", path, *options, *given)
        assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "out-t.json").read_text())


def test_containers_of_every_kind_get_an_error_of_sordino():
    class Column:
        def to_numpy(self):
            return np.array(["a", "b"], dtype=object)

    assert tabulate([0, 1], 2, user=Column(), max_records=1).counts.tolist() == [1, 1]
    view = memoryview(np.zeros((3, 2)))
    sparse = pytest.importorskip("scipy.sparse")
    plan = so.plan(
        so.smooth.SmoothQueries(2, points=10, bounds=(0, 1), query_class=so.smooth.GaussianKernels([0.3, 0.3])), PURE
    )
    for points in (view, sparse.bsr_array(np.eye(2)), sparse.dia_array(np.eye(2))):
        with pytest.raises(so.errors.SordinoError):
            plan.release(points)
    with pytest.raises(so.errors.DataTypeError):
        so.Ledger(so.ApproxDP(epsilon=1.0, delta=1e-6), schedule=view)


def test_weights_are_read_whatever_numpy_is_asked_to_raise():
    with so.plan(so.events.WeightedGraph(5, 20, max_weight=1e300), PURE).open() as stream, np.errstate(all="raise"):
        stream.update([0, 1], [1, 2], [1e-300, float("nan")])
        assert stream.step == 2


def test_a_missing_name_is_not_called_none(tmp_path):
    path = tmp_path / "g.csv"
    path.write_text("from,to\nA\n")
    counts = []
    for vertices in ("A,B,None", "A,B,C", "²"):
        options = ["--of", "edges", "--source", "from", "--target", "to", "--vertices", vertices, "--epsilon", 1e6]
        result = sordino("events", "count", path, *options)
        counts.append(None if result.exit_code else round(json.loads(result.stdout)["answers"]["value"][0]))
    assert counts == [0, 0, None]


def test_a_client_who_cannot_be_compared_is_left_out():
    class Odd:
        __hash__ = object.__hash__

        def __eq__(self, other):
            raise RuntimeError

    plan = so.plan(so.local.LocalSurvey(9), PURE)
    server = plan.server()
    report = plan.encode_client(0.5)
    for client in (float("nan"), Odd(), {1}, "a"):
        server.add(report, client)
    assert server.accepted == 1


def test_a_carriage_return_ends_no_row(tmp_path):
    """A note that holds some, as pandas writes them, is one field of one record."""
    pd = pytest.importorskip("pandas")
    said = {"values_column": "v", "bins": 6}
    cells = []
    for note in ("hi", "hi\r5\r5\r5", "\r\r", "5\r"):
        path = tmp_path / "t.csv"
        pd.DataFrame({"v": ["1", "2"], "note": ["a", note]}).to_csv(path, index=False)
        cells.append(read_source(path, said).cells.tolist())
    assert cells == [[0, 1, 1, 0, 0, 0]] * 4
    path.write_bytes(b'note,v\r\nhi,5\r\n"a\r\nb",2\r\nx\ry,3\n')
    assert read_columns(path, ["note", "v"]) == [["hi", "a\r\nb", "x\ry"], ["5", "2", "3"]]
    assert [real(text) for text in ("5\r", "1e1000000000000000000", "-1e99999999999999999999", "inf")] == [
        5.0, LIMIT, -LIMIT, math.inf,
    ]  # fmt: skip


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_instants_of_every_unit_are_told_apart(tmp_path, unit):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    users = pa.array([0, 2**61 if unit != "s" else 2**40, 0], pa.timestamp(unit))
    parquet.write_table(pa.table({"who": users, "page": [1, 0, 1]}), tmp_path / "u.parquet")
    said = {"user_column": "who", "max_records": 1, "values_column": "page", "bins": 2}
    assert read_source(tmp_path / "u.parquet", said).cells.tolist() == [1, 1]
    said = {"events_column": "who", "start": "1970-01-01", "end": "1970-01-03", "every": "1d"}
    assert read_source(tmp_path / "u.parquet", said).cells.tolist() == [2, 0]


def test_an_unnamed_report_does_not_hide_the_last_name():
    plan = so.plan(so.local.LocalSurvey(9), PURE)
    reports = plan.encode_clients([0.1, 0.5, 0.9])
    server = plan.server()
    server.add(reports[0], "a")
    server.add(reports[2])
    server.add(reports[1], "a")
    assert server.accepted == 2
    other = plan.server()
    other.add(reports[1], "a")
    with pytest.raises(so.errors.InvalidParameterError, match="both servers"):
        server.merge(other)
    for names in (["a", None, "b"], np.array(["a", None, "b"], dtype=object), ["a", float("nan"), "b"]):
        several = plan.server()
        several.add_many(reports, clients=names)
        assert several.accepted == 2


@pytest.mark.parametrize("nobody", ["NA", "nan", "NaN", "NULL", "None", "<NA>", "#N/A", "\\N", " NaT "])
def test_who_says_nobody_is_nobody(tmp_path, nobody):
    path = tmp_path / "u.csv"
    path.write_text(f"u,v\n{nobody},0\n{nobody},1\nx,2\n")
    said = {"user_column": "u", "max_records": 1, "values_column": "v", "bins": 3}
    assert read_source(path, said).cells.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("text", "counts"), [(b"aaa", [3, 0]), (b"\raa", [2, 0]), (b"\ra\n", [1, 1]), (b"\r\n\xffa", [1, 1])]
)
def test_every_character_of_a_text_is_one_letter(tmp_path, text, counts):
    """Whatever stands beside it."""
    path = tmp_path / "t.txt"
    path.write_bytes(text)
    options = [
        "--of",
        "substrings",
        "--alphabet",
        "ab\n",
        "--longest",
        1,
        "--epsilon",
        1e6,
        "--word",
        "a",
        "--word",
        "\n",
    ]
    result = sordino("events", "count", path, *options)
    assert result.exit_code == 0, result.output
    assert np.rint(json.loads(result.stdout)["answers"]["value"]).tolist() == counts


def test_a_survey_refuses_a_unit():
    for unit in (so.AddRemove(5), so.ReplaceOne(3)):
        with pytest.raises(so.errors.InvalidParameterError, match="survey"):
            so.plan(so.local.LocalSurvey(9), PURE, unit=unit)
    assert so.plan(so.local.LocalSurvey(9), PURE).fit.request.unit == so.ReplaceOne(label="one report")
