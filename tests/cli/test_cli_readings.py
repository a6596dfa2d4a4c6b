"""What readers with fresh eyes found on the command line: fields, labels, outputs, plans of other kinds."""

import json
import os

import numpy as np
import pytest

import sordino as so
from command_line import done, sordino, write
from sordino._support.files import atomic_write
from sordino.cli.inputs import read_source

SHARP = so.GaussianDP(mu=1e5)


def rows(path, lines):
    path.write_bytes(b"v,u\n" + b"".join(line + b"\n" for line in lines))
    return path


@pytest.mark.parametrize("user", [b'" "', b'"\r"', b'"NA\r"', b'"\r NULL"', b"\xc2\xa0"])
def test_a_carriage_return_makes_nobody_a_user(user, tmp_path):
    options = {"values_column": "v", "bins": 2, "user_column": "u", "max_records": 1}
    file = rows(tmp_path / "u.csv", [b"0," + user, b"1," + user, b'1,"\rx"'])
    assert read_source(file, options).cells.tolist() == [0, 1]


def test_a_carriage_return_beside_a_field_is_blank(tmp_path):
    levels = rows(tmp_path / "l.csv", [b'"a\r",x', b'"\rb",x', b"b,x"])
    done("release", levels, "--column", "v:a|b", "--mu", 1e5, "--output", tmp_path / "o.csv")
    assert [round(float(line.split(",")[1])) for line in (tmp_path / "o.csv").read_text().splitlines()[1:]] == [1, 2]
    times = rows(tmp_path / "t.csv", [b'"2026-01-01T00:00\r",x'])
    options = {"events_column": "v", "start": "2026-01-01", "end": "2026-01-02", "every": "1d"}
    assert read_source(times, options).cells.tolist() == [1]


def test_sorted_counts_have_no_names(tmp_path):
    so.plan(so.SortedHistogram(3), SHARP).save(tmp_path / "s.json")
    counts = write(tmp_path / "c.csv", ["n", "l"], [(5, "x"), (1, "y"), (3, "z")])
    told = done("release", counts, "--counts-column", "n", "--label-column", "l", "--plan", tmp_path / "s.json")
    answers = json.loads(told.stdout)["answers"]
    assert answers["label"] == [0, 1, 2] and np.allclose(answers["value"], [1, 3, 5], atol=0.1)
    values = write(tmp_path / "v.csv", ["s"], [["f"]] * 5 + [["m"]] * 2 + [["n"]])
    done("release", values, "--column", "s:f|m|n", "--plan", tmp_path / "s.json", "--output", tmp_path / "o.csv")
    assert [line.split(",")[0] for line in (tmp_path / "o.csv").read_text().splitlines()] == ["label", "0", "1", "2"]


@pytest.mark.parametrize("value", ["nan", "inf", "24,5", "1 000", ""])
def test_a_client_without_a_number_reports_like_others_and_is_not_quoted(value, tmp_path):
    plan, file = tmp_path / "p.json", tmp_path / "v.csv"
    done("local", "plan", "--clients", 1000, "--bounds", "0..60", "--intervals", 8, "--epsilon", 1, "--output", plan)
    for said in (value, " 24.5 "):
        assert len(json.loads(done("local", "encode", plan, "--value", said).output)) == 1
        write(file, ["v", "x"], [(3, 0), (said, 0)])
        told = done("local", "encode", plan, "--input", file, "--column", "v").output
        assert len(told.splitlines()) == 2


def test_text_that_was_not_marked_as_text(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "b.parquet"
    users = pa.array([b"\xff", b"\xfe", b"NA", b"\xff"])
    pq.write_table(pa.table({"v": pa.array([b"a", b"b", b"b", b"a"]), "u": users}), path)
    options = {"column": ["v:a|b"], "user_column": "u", "max_records": 1}
    assert read_source(path, options).cells.reshape(-1).tolist() == [0, 1, -1, -1]


def test_times_are_no_numbers(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    for unit in ("s", "ns"):
        pq.write_table(pa.table({"v": pa.array([1, 2], pa.timestamp(unit))}), tmp_path / "t.parquet")
        assert not read_source(tmp_path / "t.parquet", {"values_column": "v", "bins": 3}).cells.any()


def test_a_new_file_is_whole_or_not_there(tmp_path, monkeypatch):
    def killed(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "link", killed)
    with pytest.raises(KeyboardInterrupt):
        atomic_write(tmp_path / "key", b"secret", "key", private=True, new=True)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    atomic_write(tmp_path / "key", b"secret", "key", private=True, new=True)
    with pytest.raises(so.errors.InputFileError):
        atomic_write(tmp_path / "key", b"other", "key", private=True, new=True)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"secret"]
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600


def test_plans_of_another_kind_are_refused(tmp_path):
    points = so.smooth.SmoothQueries(1, points=100, bounds=[(0, 1)], query_class=so.smooth.GaussianKernels(0.3))
    so.plan(points, SHARP).save(tmp_path / "points.json")
    so.plan(so.Histogram(2), SHARP).save(tmp_path / "cells.json")
    file = write(tmp_path / "c.csv", ["n"], [[1], [2]])
    told = sordino("release", file, "--counts-column", "n", "--plan", tmp_path / "points.json")
    assert told.exit_code == 2 and "points" in told.stderr
    plan, output = tmp_path / "cells.json", tmp_path / "o.json"
    told = sordino("smooth", "release", file, "--column", "n:0..1", "--plan-file", plan, "--output", output)
    assert told.exit_code == 2 and "points" in told.stderr and not output.exists()


def test_a_largest_weight_of_zero_is_zero(tmp_path):
    edges = write(tmp_path / "e.csv", ["a", "b", "w"], [(0, 1, 0.9)])
    columns = ["--source", "a", "--target", "b", "--weight", "w"]
    told = sordino(
        "events", "count", edges, "--of", "cuts", "--vertices", 3, *columns, "--max-weight", 0, "--side", "0", "--mu", 1
    )
    assert told.exit_code == 2 and "max_weight" in told.stderr


def test_two_outputs_are_two_files(tmp_path):
    file, output = write(tmp_path / "c.csv", ["n"], [[1], [2]]), tmp_path / "o.json"
    (tmp_path / "sub").mkdir()
    for other in (output, tmp_path / "sub" / ".." / "o.json"):
        told = sordino("release", file, "--counts-column", "n", "--mu", 1, "--output", output, "--save-plan", other)
        assert told.exit_code == 2 and "two outputs" in told.stderr and not output.exists()


def test_a_sketch_under_two_names_is_one(tmp_path):
    sketch, other = tmp_path / "a.sketch", tmp_path / "b.sketch"
    file = write(tmp_path / "r.csv", ["k"], [["1"], ["2"]])
    done("sketch", "build", file, "--cells-column", "k", "--cells", 64, "--measurements", 16, "--output", sketch)
    os.link(sketch, other)
    told = sordino("sketch", "merge", sketch, other, "--output", tmp_path / "c.sketch")
    assert told.exit_code == 2 and "twice" in told.stderr


def test_labels_are_no_formulas(tmp_path):
    pytest.importorskip("matplotlib")
    file = write(tmp_path / "c.csv", ["n", "a$b"], [(5, r"$\frac$"), (1, "x$"), (3, "z")])
    for workload in ("histogram", "all-ranges"):
        options = ["--counts-column", "n", "--label-column", "a$b", "--workload", workload, "--mu", 1]
        done("release", file, *options, "--output", tmp_path / "o.json", "--plot", tmp_path / "p.png")


def test_a_long_label_takes_memory_once(tmp_path):
    file = write(tmp_path / "c.csv", ["n", "l"], [(1, "x" * 10**6), *[(1, "y")] * 20_000])
    source = read_source(file, {"counts_column": "n", "label_column": "l"})
    assert len(source.labels) == 20_001 and source.labels.nbytes < 10**6


def test_an_output_is_not_the_input(tmp_path):
    file = write(tmp_path / "c.csv", ["n"], [[1], [2]])
    before = file.read_bytes()
    os.link(file, tmp_path / "d.csv")
    for arguments in (
        ["release", file, "--counts-column", "n", "--mu", 1, "--output", tmp_path / "d.csv"],
        ["release", file, "--counts-column", "n", "--mu", 1, "--save-plan", file],
        ["sketch", "build", file, "--counts-column", "n", "--measurements", 4, "--output", file],
    ):
        told = sordino(*arguments)
        assert told.exit_code == 2 and "input" in told.stderr and file.read_bytes() == before
