"""The command line for any queries: matrices, ranges, tables of declared columns, constraints, searches."""

import csv
import io
import itertools
import json
import os
import signal
import subprocess
import sys
import zipfile

import numpy as np
import pyarrow.parquet
import pytest

import command_line
import sordino as so
from command_line import sordino, write
from sordino.cli.attributes import parse_attributes
from sordino.cli.inputs import SOURCE_OPTIONS, read_source
from sordino.cli.matrices import read_matrix

APPROX = ["--epsilon", "1", "--delta", "1e-6"]
SHARP = ["--epsilon", "10000"]
SECRET = "Zbigniew-4711"
A = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0], [0.0, 0.0, 0.0, -2.0]])
COLUMNS = ["--column", "sex:f|m", "--column", "region:north|south|east", "--column", "age:0,18,65,120"]
HEADER = ["sex", "region", "age", "who"]
RECORDS = [
    ["f", "north", "17", "ann"],
    ["f", "north", "18", "ann"],
    ["m", "south", "64.9", "bob"],
    [" m", "east ", "0", "bob"],
    ["m", "east", "119", "cem"],
    ["f", "south", "65", "cem"],
    ["x", "south", "65", "dan"],
    ["f", SECRET, "65", "dan"],
    ["f", "south", "120", "eve"],
    ["f", "south", SECRET, "eve"],
    ["f", "", "3", "eve"],
    ["f"],
    ["m", "east", "-1", "eve"],
]


def done(*arguments):
    return command_line.done(*arguments).stdout


def refused(code, *arguments):
    result = sordino(*arguments)
    assert result.exit_code == code, result.output
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert not result.stdout
    return result.stderr


def rows_of(path):
    return list(csv.DictReader(io.StringIO(path.read_text())))


@pytest.fixture
def counts(tmp_path):
    return write(tmp_path / "counts.csv", ["day", "n"], [[f"day {i}", 10 * i] for i in range(4)])


@pytest.fixture
def survey(tmp_path):
    return write(tmp_path / "survey.csv", HEADER, RECORDS)


@pytest.fixture
def queries(tmp_path):
    np.savez(tmp_path / "queries.npz", A=A, weights=[1.0, 2.0, 3.0])
    return tmp_path / "queries.npz"


# Matrices.


def compressed(**changed):
    arrays = {"data": [3.0, 4.0], "indices": [1, 0], "indptr": [0, 1, 2], "shape": [2, 3], "format": b"csr"}
    return {name: array for name, array in (arrays | changed).items() if array is not None}


def test_every_kind_of_file_is_read(tmp_path):
    path = tmp_path / "q.npy"
    np.save(path, A)
    assert read_matrix(path) == so.Matrix(A)
    path = tmp_path / "q.npz"
    np.savez_compressed(path, anything=A)
    assert read_matrix(path) == so.Matrix(A)
    np.savez(path, A=A, weights=[1, 2, 3])
    assert read_matrix(path) == so.Matrix(A, weights=[1.0, 2.0, 3.0])
    np.savez(path, **compressed(weights=[1.0, 2.0]))
    found = read_matrix(path)
    assert repr(found.A) == "<sparse matrix of shape (2, 3), 2 entries>"
    assert np.array_equal(found.core.apply(np.array([1.0, 10.0, 100.0])), [30.0, 4.0])
    assert np.array_equal(found.weights, [1.0, 2.0])


def test_what_scipy_saves_is_read(tmp_path):
    sparse = pytest.importorskip("scipy.sparse")
    path = tmp_path / "q.npz"
    for kind in (sparse.csr_matrix, sparse.csr_array):
        sparse.save_npz(path, kind(A))
        assert read_matrix(path) == so.Matrix(sparse.csr_matrix(A))
    sparse.save_npz(path, sparse.coo_matrix(A))
    with pytest.raises(so.errors.InputFileError, match="tocsr"):
        read_matrix(path)


def test_scipy_is_not_needed(tmp_path):
    np.savez(tmp_path / "q.npz", **compressed())
    program = "import sys; sys.modules['scipy'] = None; from sordino.cli import main; main()"
    command = [sys.executable, "-c", program, "plan", "--matrix", str(tmp_path / "q.npz"), *APPROX]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (finished.returncode, finished.stderr) == (0, "")
    assert "sparse matrix of shape (2, 3)" in finished.stdout


@pytest.mark.parametrize(
    ("code", "arrays"),
    [
        (2, {"A": A * np.nan}),
        (2, {"A": A - np.inf}),
        (2, {"A": 0.0 * A}),
        (2, {"A": np.ones((0, 3))}),
        (2, {"A": np.ones((3, 0))}),
        (2, {"A": np.ones(3)}),
        (2, {"A": np.ones((1, 2, 3))}),
        (2, {"A": A + 1j}),
        (2, {"A": A.astype(str)}),
        (2, {"A": np.array([["2026-01-01"]], dtype="datetime64[D]")}),
        (2, {"A": A, "weights": [1.0, 2.0]}),
        (2, {"A": A, "weights": [1.0, 2.0, -3.0]}),
        (2, {"A": A, "weights": [1.0, 2.0, np.nan]}),
        (2, compressed(indices=[1, 3])),
        (2, compressed(indptr=[0, 2, 1])),
        (2, compressed(data=[0.0, 0.0])),
        (2, compressed(data=[np.nan, 1.0])),
        (2, compressed(shape=[2, 3, 4])),
        (3, compressed(format=b"csc")),
        (3, compressed(indptr=None)),
        (3, {"first": A, "second": A}),
        (3, {}),
    ],
)
def test_what_a_matrix_must_be(code, arrays, tmp_path):
    np.savez(tmp_path / "q.npz", **arrays)
    refused(code, "plan", "--matrix", tmp_path / "q.npz", *APPROX)


def test_files_that_are_no_matrix(queries, tmp_path):
    whole = queries.read_bytes()
    np.save(tmp_path / "whole.npy", A)
    header = io.BytesIO()
    shape = {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**9)}
    np.lib.format.write_array_header_1_0(header, shape)
    broken = {
        "cut.npz": whole[: len(whole) // 2],
        "flipped.npz": whole[:150] + bytes([whole[150] ^ 255]) + whole[151:],
        "cut.npy": (tmp_path / "whole.npy").read_bytes()[:140],
        "huge.npy": header.getvalue(),
        "text.npy": b"1 2 3\n",
        "empty.npz": b"",
    }
    for name, content in broken.items():
        (tmp_path / name).write_bytes(content)
        refused(3, "compare", "--matrix", tmp_path / name, *APPROX)
    with zipfile.ZipFile(tmp_path / "odd.npz", "w") as archive:
        archive.writestr("A.npy", b"no array")
    refused(3, "plan", "--matrix", tmp_path / "odd.npz", *APPROX)
    refused(3, "explain", "--matrix", tmp_path / "nowhere.npz", *APPROX)
    refused(3, "plan", "--matrix", tmp_path, *APPROX)


class Trap:
    """Would make a file if it were unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def test_nothing_is_unpickled(tmp_path):
    trap = np.array([[Trap(tmp_path / "sprung")]], dtype=object)
    np.save(tmp_path / "q.npy", trap, allow_pickle=True)
    np.savez(tmp_path / "q.npz", A=trap)
    for name in ("q.npy", "q.npz"):
        refused(3, "plan", "--matrix", tmp_path / name, *APPROX)
    assert not (tmp_path / "sprung").exists()


def test_a_matrix_is_answered(counts, queries, tmp_path):
    out = tmp_path / "out.csv"
    done("release", counts, "--counts-column", "n", "--matrix", queries, *SHARP, "--output", out)
    rows = rows_of(out)
    assert list(rows[0]) == ["label", "value", "stderr", "lower", "upper"]
    assert [row["label"] for row in rows] == ["0", "1", "2"]
    assert [float(row["value"]) for row in rows] == pytest.approx([10.0, 15.0, -60.0], abs=0.1)


def test_queries_are_not_called_like_cells(counts, tmp_path):
    np.save(tmp_path / "square.npy", np.eye(4) - np.eye(4, k=1))
    np.save(tmp_path / "pairs.npy", np.eye(4) + np.eye(4, k=1))
    options = ["--counts-column", "n", "--label-column", "day", *SHARP]
    assert json.loads(done("release", counts, *options))["answers"]["label"][0] == "day 0"
    record = json.loads(done("release", counts, *options, "--matrix", tmp_path / "square.npy"))
    assert record["answers"]["label"] == [0, 1, 2, 3]
    record = json.loads(done("release", counts, *options, "--matrix", tmp_path / "pairs.npy"))
    assert record["answers"]["first"] == ["day 0", "day 1", "day 2", "day 3"]
    assert record["answers"]["last"] == ["day 1", "day 2", "day 3", "day 3"]


def test_queries_are_said_once(queries, counts):
    refused(2, "plan", "--matrix", queries, "--workload", "histogram", *APPROX)
    refused(2, "plan", "--matrix", queries, "--marginals", 2, *COLUMNS, *APPROX)
    assert "--window" in refused(2, "plan", "--matrix", queries, "--window", 3, *APPROX)
    assert "--boundary" in refused(2, "plan", "--marginals", 2, *COLUMNS, "--boundary", "same", *APPROX)
    refused(2, "plan", *APPROX)


def test_a_matrix_for_other_cells(counts, tmp_path):
    np.save(tmp_path / "q.npy", A[:, :3])
    refused(3, "release", counts, "--counts-column", "n", "--matrix", tmp_path / "q.npy", *APPROX)
    refused(3, "plan", "--matrix", tmp_path / "q.npy", "--length", 4, *APPROX)


@pytest.mark.parametrize(
    ("mechanism", "privacy"),
    [("optimal", APPROX), ("dense", APPROX), ("p-identity", SHARP), ("k-norm", SHARP), ("sparse", APPROX)],
)
def test_searched_strategies_are_saved(mechanism, privacy, counts, queries, tmp_path):
    plan, out = tmp_path / "plan.json", tmp_path / "out.json"
    constraint = ["--public-bound", 60] if mechanism == "sparse" else []
    said = done("plan", "--matrix", queries, *privacy, "--mechanism", mechanism, *constraint, "--save", plan)
    assert f"{mechanism}-" in said
    assert done("explain", plan) == so.Plan.load(plan).explain() + "\n"
    done("release", counts, "--counts-column", "n", "--plan", plan, "--output", out)
    record = json.loads(out.read_text())
    assert record["plan_digest"] == so.Plan.load(plan).digest
    assert len(record["answers"]["value"]) == 3
    assert "--matrix" in refused(2, "release", counts, "--counts-column", "n", "--plan", plan, "--matrix", queries)


# Ranges.


def test_all_ranges_of_a_column(tmp_path):
    ages = [0, 1, 1, 3, 3, 3, SECRET, 4, -1]
    path = write(tmp_path / "ages.csv", ["age"], [[age] for age in ages])
    out = tmp_path / "out.csv"
    options = ["--values-column", "age", "--bins", 4, "--workload", "all-ranges", *SHARP]
    done("release", path, *options, "--output", out)
    found = {(int(row["first"]), int(row["last"])): float(row["value"]) for row in rows_of(out)}
    table = [1, 2, 0, 3]
    wanted = {(i, j): sum(table[i : j + 1]) for i in range(4) for j in range(i, 4)}
    assert found == pytest.approx(wanted, abs=0.1)
    answers = json.loads(done("release", path, *options[:2], "--edges", "0,1,4", *options[4:]))["answers"]
    assert (answers["first"], answers["last"]) == ([0.0, 0.0, 1.0], [0.0, 1.0, 1.0])
    assert answers["value"] == pytest.approx([1.0, 6.0, 5.0], abs=0.1)
    assert SECRET not in out.read_text()


# Tables of columns.


def published(text):
    """Tables by their columns: levels, and numbers nested like the table."""
    answers = json.loads(text)["answers"]
    numbers = {name: answers.pop(name) for name in ("value", "unbiased", "stderr", "lower", "upper") if name in answers}
    rows = {}
    for place, row in enumerate(zip(*answers.values(), strict=True)):
        rows.setdefault(tuple(name for name, level in zip(answers, row, strict=True) if level is not None), []).append(
            place
        )
    found = {}
    for names, places in rows.items():
        levels = [list(dict.fromkeys(answers[name][place] for place in places)) for name in names]
        shape = [len(each) for each in levels]
        nested = {name: np.reshape([column[p] for p in places], shape).tolist() for name, column in numbers.items()}
        found[names] = {"levels": levels, **nested}
    return found


def test_marginals_of_declared_columns(survey):
    tables = published(done("release", survey, "--marginals", 2, *COLUMNS, *SHARP))
    assert list(tables) == [("sex", "region"), ("sex", "age"), ("region", "age")]
    # Six records have declared levels in all three columns; the others count nowhere.
    assert np.rint(tables["sex", "region"]["value"]).tolist() == [[2, 1, 0], [0, 1, 2]]
    assert np.rint(tables["sex", "age"]["value"]).tolist() == [[1, 1, 1], [1, 1, 1]]
    assert np.rint(tables["region", "age"]["value"]).tolist() == [[1, 1, 0], [0, 1, 1], [1, 0, 1]]
    assert tables["region", "age"]["levels"] == [["north", "south", "east"], ["[0, 18)", "[18, 65)", "[65, 120)"]]
    assert np.shape(tables["region", "age"]["upper"]) == (3, 3)


def test_marginals_as_csv(survey, tmp_path):
    out = tmp_path / "out.csv"
    done("release", survey, "--marginals", 2, *COLUMNS, *SHARP, "--output", out)
    rows = rows_of(out)
    assert list(rows[0]) == ["sex", "region", "age", "value", "stderr", "lower", "upper"]
    found = {(row["sex"], row["region"], row["age"]): round(float(row["value"])) for row in rows}
    assert len(found) == 2 * 3 + 2 * 3 + 3 * 3
    assert found["f", "north", ""] == 2
    assert found["m", "", "[65, 120)"] == 1
    assert found["", "south", "[65, 120)"] == 1
    assert SECRET not in out.read_text()


def test_unknown_levels_say_nothing(survey, tmp_path):
    known = write(tmp_path / "known.csv", HEADER, RECORDS[:6])
    options = ["--marginals", 1, *COLUMNS, *SHARP]
    for path in (survey, known):
        result = sordino("release", path, *options)
        assert (result.exit_code, result.stderr) == (0, "")
        assert np.rint(published(result.stdout)["sex",]["value"]).tolist() == [3, 3]
    none = write(tmp_path / "none.csv", HEADER, [])
    assert np.rint(published(done("release", none, *options))["sex",]["value"]).tolist() == [0, 0]


def test_records_of_users_are_bounded(survey, tmp_path):
    plan = tmp_path / "plan.json"
    options = [*COLUMNS, "--user-column", "who", "--max-records", 1]
    text = done("release", survey, "--marginals", 1, *options, *SHARP, "--save-plan", plan)
    assert np.rint(published(text)["sex",]["value"]).tolist() == [1, 2]
    assert so.Plan.load(plan).unit == so.AddRemove(1, one_signed=True, label="one user")
    assert done("release", survey, "--plan", plan, *options)
    refused(2, "release", survey, "--plan", plan, *COLUMNS, "--user-column", "who", "--max-records", 2)
    refused(2, "release", survey, "--marginals", 1, *COLUMNS, "--user-column", "who", *SHARP)
    refused(2, "release", survey, "--marginals", 1, *COLUMNS, "--user-column", "who", "--max-records", 0, *SHARP)


def test_plans_know_the_levels(survey, tmp_path):
    plan = tmp_path / "plan.json"
    done("plan", "--marginals", 2, *COLUMNS, *SHARP, "--save", plan)
    assert so.Plan.load(plan).workload == so.Marginals([2, 3, 3], k=2)
    assert "2 marginal" not in done("compare", "--marginals", 2, *COLUMNS, *SHARP)
    assert published(done("release", survey, "--plan", plan, *COLUMNS))["sex", "region"]["levels"][0] == ["f", "m"]
    refused(3, "release", survey, "--plan", plan, *COLUMNS[:2], *COLUMNS[4:])
    refused(2, "explain", plan, *COLUMNS)
    cells = write(tmp_path / "cells.csv", ["n"], [[i] for i in range(18)])
    numbered = published(done("release", cells, "--counts-column", "n", "--plan", plan))
    assert np.rint(numbered["0", "1"]["value"]).tolist() == [[3, 12, 21], [30, 39, 48]]
    assert numbered["0", "1"]["levels"] == [[0, 1], [0, 1, 2]]


def test_other_queries_about_columns(survey, tmp_path):
    two = COLUMNS[:4]
    whole = published(done("release", survey, *two, *SHARP))["sex", "region"]
    assert np.rint(whole["value"]).tolist() == [[2, 3, 0], [0, 1, 3]]
    out = tmp_path / "out.csv"
    done("release", survey, *two, *SHARP, "--output", out)
    assert [(row["sex"], row["region"]) for row in rows_of(out)] == list(
        itertools.product(["f", "m"], ["north", "south", "east"])
    )
    np.save(tmp_path / "q.npy", np.array([[1.0, 1.0, 1.0, 0.0, 0.0, 0.0]]))
    women = json.loads(done("release", survey, *two, "--matrix", tmp_path / "q.npy", *SHARP))["answers"]
    assert women["value"] == pytest.approx([5.0], abs=0.1)
    ages = ["--column", "age:17..19", "--workload", "all-ranges"]
    answers = json.loads(done("release", survey, *ages, *SHARP))["answers"]
    assert list(zip(answers["first"], answers["last"], strict=True))[1] == (17, 18)
    assert np.rint(answers["value"]).tolist() == [1, 2, 2, 1, 1, 0]
    refused(3, "release", survey, *two, "--workload", "all-ranges", "--length", 5, *SHARP)
    assert "2**26" in refused(2, "plan", "--workload", "histogram", *huge(), *SHARP)


def huge():
    return [part for i in range(4) for part in ("--column", f"c{i}:0..999")]


def test_a_huge_domain_needs_no_table(tmp_path):
    path = write(tmp_path / "wide.csv", [f"c{i}" for i in range(4)], [[i, 999, 0, 5] for i in range(1000)])
    result = sordino("plan", "--marginals", 1, *huge(), *APPROX)
    assert result.exit_code == 0, result.output
    tables = published(done("release", path, "--marginals", 1, *huge(), "--rho", 1000))
    assert np.rint(tables["c1",]["value"])[-1] == 1000


@pytest.mark.parametrize(
    "text",
    [
        "age",
        "age:",
        ":f|m",
        "age:f",
        "age:1..1",
        "age:9..0",
        "age:0..99999999",
        "age:a|a",
        "age:a||b",
        "age:1,2",
        "age:1,2,2",
        "age:1,x,3",
        "age:0,1,inf",
        "age:nan,1,2",
    ],
)
def test_levels_must_be_said(text):
    assert "--column" in refused(2, "plan", "--marginals", 1, "--column", text, *APPROX)


def test_columns_are_said_once(survey):
    refused(2, "plan", "--marginals", 1, "--column", "sex:f|m", "--column", "sex:a|b", *APPROX)
    refused(2, "plan", "--marginals", 2, *APPROX)
    refused(2, "plan", "--marginals", 4, *COLUMNS, *APPROX)
    refused(2, "plan", "--marginals", 2, *COLUMNS, "--length", 9, *APPROX)
    refused(2, "release", survey, *COLUMNS, "--values-column", "age", "--bins", 3, *APPROX)
    refused(2, "release", survey, *COLUMNS, "--label-column", "age", *APPROX)
    assert "'height'" in refused(3, "release", survey, "--column", "height:0..9", "--marginals", 1, *APPROX)


def test_kinds_of_levels():
    names, numbers, bins = parse_attributes(["x:b| a", "y:-2..2", "z:0,0.5,10"])
    assert names.codes(["a", "b", "c", None, " a ", ""]).tolist() == [1, 0, -1, -1, 1, -1]
    assert numbers.codes(["-2", 2, "0.0", "0.5", "3", "nan", None]).tolist() == [0, 4, 2, -1, -1, -1, -1]
    assert bins.codes([0, "0.5", 9.99, 10, -0.1, "nan", "inf"]).tolist() == [0, 1, 1, -1, -1, -1, -1]
    assert list(bins.levels) == ["[0, 0.5)", "[0.5, 10)"]


def test_columns_of_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "survey.parquet"
    pq.write_table(pa.table({"sex": ["f", None, "m"], "age": pa.array([1, 2, None])}), path)
    options = dict.fromkeys(SOURCE_OPTIONS) | {"column": ("sex:f|m", "age:1..2")}
    source = read_source(path, options)
    assert source.cells.tolist() == [[0, 0], [-1, 1], [1, -1]]
    assert "0" not in repr(source)


def test_a_column_called_like_a_number_of_the_output(tmp_path):
    path = write(tmp_path / "odd.csv", ["value"], [["1"], ["2"]])
    options = ["--column", "value:1|2", "--marginals", 1, *SHARP]
    answers = json.loads(done("release", path, *options))["answers"]
    done("release", path, *options, "--output", tmp_path / "out.csv")
    rows = rows_of(tmp_path / "out.csv")
    assert list(answers) == list(rows[0]) == ["value (level)", "value", "stderr", "lower", "upper"]
    assert answers["value (level)"] == [row["value (level)"] for row in rows] == ["1", "2"]
    assert np.rint(answers["value"]).tolist() == [1, 1]


@pytest.mark.parametrize("swapped", [False, True])
def test_columns_called_like_numbers_and_like_their_levels_stay_apart(swapped, tmp_path):
    """No label is lost, and none stands beside another's number: in the command line and in frames."""
    levels = {"value": ["a", "b"], "value (level)": ["x", "y", "z"]}
    if swapped:
        levels = dict(reversed(levels.items()))
    rows = [[own[i % len(own)] for own in levels.values()] for i in range(12)]
    path = write(tmp_path / "odd.csv", list(levels), rows)
    options = [word for name, own in levels.items() for word in ("--column", f"{name}:{'|'.join(own)}")]
    answers = json.loads(done("release", path, *options, *SHARP))["answers"]
    called = {"value": "value (level) (level)", "value (level)": "value (level)"}
    assert list(answers) == [*(called[name] for name in levels), "value", "stderr", "lower", "upper"]
    cells = list(zip(*(answers[called[name]] for name in ("value", "value (level)")), strict=True))
    assert sorted(cells) == [(one, other) for one in "ab" for other in "xyz"]
    schema = so.Schema({name: so.tables.Levels(own) for name, own in levels.items()}, user=None)
    frame = so.plan(schema.counts(), so.PureDP(epsilon=1.0)).release(np.zeros(6, dtype=int)).to_frame(library="pandas")
    assert sorted(zip(frame[called["value"]], frame["value (level)"], strict=True)) == sorted(cells)


def test_levels_called_like_a_number_are_kept_in_files(tmp_path):
    for name in ("value", "unbiased", "stderr", "lower", "upper"):
        schema = so.Schema({name: so.tables.Levels(["a", "b"])}, user=None)
        release = so.plan(schema.counts(), so.PureDP(epsilon=1.0)).release([1, 2])
        for made in (release, release.consistent()):
            path = made.save(tmp_path / f"{name}.parquet")
            columns = pyarrow.parquet.read_table(path).to_pydict()
            assert columns[f"{name} (level)"] == ["a", "b"] and columns["value"] == made.values.tolist()
            assert so.Release.load(path).values.tolist() == made.values.tolist()


def test_filters_without_a_warm_up_name_their_steps(tmp_path):
    path = write(tmp_path / "days.csv", ["day", "n"], [[f"2026-01-{day:02}", str(day)] for day in range(1, 11)])
    options = ["--counts-column", "n", "--workload", "moving-average", "--window", 4, "--boundary", "valid", *SHARP]
    answers = json.loads(done("release", path, "--label-column", "day", *options))["answers"]
    assert answers["label"] == [f"2026-01-{day:02}" for day in range(4, 11)]
    assert answers["value"] == pytest.approx([2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5], abs=0.1)
    picture = tmp_path / "picture.svg"
    done("release", path, *options, "--plot", picture, "--insecure-show-truth", "--output", tmp_path / "out.csv")
    assert [row["label"] for row in rows_of(tmp_path / "out.csv")] == [str(step) for step in range(3, 10)]


# Constraints and effort.


def test_constraints_reach_the_plan(queries, tmp_path):
    plan = tmp_path / "plan.json"
    options = ["plan", "--matrix", queries, *APPROX, "--save", plan]
    for given, constraint in [
        (["--public-bound", 100], so.optimal.PublicBound(100)),
        (["--signed-bound", 2.5], so.optimal.SignedBound(2.5)),
        (["--public-total", 100, "--replace"], so.optimal.PublicTotal(100)),
    ]:
        text = done(*options, *given)
        assert str(constraint) in text
        assert so.Plan.load(plan).request.constraint == constraint
    assert "--replace" in refused(2, *options, "--public-total", 100)
    refused(2, *options, "--public-bound", 100, "--signed-bound", 100)
    refused(2, *options, "--public-bound", 0)
    refused(4, *options, "--mechanism", "sparse")
    assert "projected onto" in done(*options, "--mechanism", "optimal", "--public-bound", 9)
    refused(4, *options, "--mechanism", "threshold", "--public-bound", 9)
    record = json.loads(done("compare", "--matrix", queries, *APPROX, "--public-bound", 100, "--json"))
    kinds = {row["mechanism"]: row["rmse_kind"] for row in record["mechanisms"]}
    assert kinds["sparse-gaussian"] == "noise only"


def test_projected_answers_come_with_the_unbiased_ones(counts, queries, tmp_path):
    options = ["release", counts, "--counts-column", "n", "--matrix", queries, "--mu", 1e-5, "--public-bound", 60]
    # So much noise that no input has the unbiased answers.
    record = json.loads(done(*options))
    assert record["projection"]["constraint"] == {"kind": "bound", "bound": 60.0}
    assert record["projection"]["gap"] >= 0.0
    assert record["rmse_kind"] == "noise only"
    answers = {name: np.array(column) for name, column in record["answers"].items()}
    assert np.allclose((answers["lower"] + answers["upper"]) / 2.0, answers["unbiased"])
    # No input within the bound has other answers.
    low, high = 60.0 * np.minimum(A.min(axis=1), 0.0), 60.0 * np.maximum(A.max(axis=1), 0.0)
    assert ((low - 1e-6 <= answers["value"]) & (answers["value"] <= high + 1e-6)).all()
    assert not np.allclose(answers["value"], answers["unbiased"])
    done(*options, "--output", tmp_path / "out.csv")
    assert list(rows_of(tmp_path / "out.csv")[0]) == ["label", "value", "unbiased", "stderr", "lower", "upper"]


def test_effort(queries):
    options = ["compare", "--matrix", queries, *APPROX, "--json"]
    names = {row["mechanism"] for row in json.loads(done(*options))["mechanisms"]}
    assert "optimal-gaussian" in names
    record = json.loads(done(*options, "--effort", "closed-form"))
    assert {row["mechanism"] for row in record["mechanisms"]} < names
    assert "optimal-gaussian" in record["refused"]
    named = done("plan", "--matrix", queries, *APPROX, "--effort", "closed-form", "--mechanism", "optimal")
    assert "of the least error" in named
    refused(2, "plan", "--matrix", queries, *APPROX, "--effort", "some")


# Searches on a terminal.


class Terminal:
    """A command whose standard error is a terminal."""

    def __init__(self, *arguments):
        pty = pytest.importorskip("pty")
        self.seen = b""
        self._read, write_end = pty.openpty()
        program = [sys.executable, "-c", "from sordino.cli import main; main()", *map(str, arguments)]
        self.process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=write_end)
        os.close(write_end)

    def read(self):
        """Return whether there was more to read."""
        try:
            more = os.read(self._read, 4096)
        except OSError:  # a terminal whose other end is closed
            more = b""
        self.seen += more
        return bool(more)

    def end(self):
        while self.read():
            pass
        out, _ = self.process.communicate(timeout=60)
        os.close(self._read)
        return self.process.returncode, out.decode()


@pytest.fixture
def long_search(tmp_path):
    np.save(tmp_path / "large.npy", np.random.default_rng(0).normal(size=(600, 300)))
    return ["--matrix", tmp_path / "large.npy", "--mechanism", "optimal", "--objective", "max", "--rho", 1]


@pytest.mark.slow
def test_a_terminal_shows_how_far_a_search_is(queries):
    options = ["--matrix", queries, "--mechanism", "optimal", "--rho", 1]
    terminal = Terminal("plan", *options)
    code, out = terminal.end()
    assert code == 0
    assert b"planning: iteration 1, certified within" in terminal.seen
    assert "optimal-gaussian" in out
    assert "iteration 1," not in out
    silent = Terminal("plan", *options, "--no-progress")
    assert silent.end() == (0, out)
    assert silent.seen == b""
    assert not sordino("plan", *options).stderr


def test_a_search_can_be_interrupted(long_search):
    terminal = Terminal("plan", *long_search)
    while b"iteration" not in terminal.seen and terminal.read():
        pass
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == (130, "")
    assert terminal.seen.endswith(b"Error: interrupted\r\n")
    assert b"Traceback" not in terminal.seen


def test_an_interruption_is_one_line(queries, monkeypatch):
    def interrupt(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(so, "plan", interrupt)
    assert refused(130, "plan", "--matrix", queries, *APPROX) == "Error: interrupted\n"


# Pictures.


@pytest.mark.slow
def test_pictures(counts, queries, survey, tmp_path):
    pytest.importorskip("matplotlib")
    matrix = ["release", counts, "--counts-column", "n", "--matrix", queries, *APPROX]
    ranges = ["release", counts, "--counts-column", "n", "--label-column", "day", "--workload", "all-ranges", *APPROX]
    commands = {
        "plan": ["plan", "--matrix", queries, *APPROX],
        "bars": ["compare", "--matrix", queries, *APPROX, "--public-bound", 60],
        "matrix": matrix,
        "projected": [*matrix, "--public-bound", 60],
        "truth": [*matrix, "--insecure-show-truth"],
        "ranges": ranges,
        "tables": ["release", survey, "--marginals", 2, *COLUMNS, *APPROX],
    }
    for name, command in commands.items():
        done(*command, "--plot", tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_truth_that_cannot_be_drawn_is_refused_before_anything_is_spent(counts, monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(so.ReleasePlan, "release", lambda *_arguments, **_options: pytest.fail("spent"))
    options = ["--counts-column", "n", "--workload", "all-ranges", *APPROX, "--insecure-show-truth"]
    refused(4, "release", counts, *options, "--plot", tmp_path / "out.png")
