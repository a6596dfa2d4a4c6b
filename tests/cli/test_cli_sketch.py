"""`sordino sketch`: build, merge, release; and what releases of changed answers write."""

import csv
import json
import os
import stat
import subprocess
import sys

import numpy as np
import pytest

import sordino as so
from command_line import sordino, write
from sordino.cli import tables

CELLS, K = 256, 96
SIZES = ["--cells", CELLS, "--measurements", K, "--seed", 5]
RECORDS = ["--cells-column", "page", *SIZES]
PURE = ["--epsilon", 1, "--sparsity", 8]


@pytest.fixture
def places():
    return np.repeat(np.arange(CELLS), np.where(np.arange(CELLS) < 64, 40, 3))


@pytest.fixture
def truth(places):
    return np.bincount(places, minlength=CELLS)


@pytest.fixture
def sketched(tmp_path, truth):
    path = tmp_path / "all.sketch"
    sketch = so.sketches.Sketch(CELLS, K, seed=5)
    sketch.add(truth)
    return sketch.save(path)


def expected(truth):
    sketch = so.sketches.Sketch(CELLS, K, seed=5)
    sketch.add(truth)
    return sketch.to_bytes()


# Building.


def test_records(tmp_path, places, truth):
    path = write(tmp_path / "log.csv", ["who", "page"], [("x", place) for place in places])
    out = tmp_path / "a.sketch"
    result = sordino("sketch", "build", path, *RECORDS, "--output", out)
    assert result.exit_code == 0, result.output
    assert out.read_bytes() == expected(truth)
    assert not result.stdout
    assert "as private as the data" in result.stderr


@pytest.mark.skipif(os.name != "posix", reason="rights of files are those of POSIX")
def test_only_the_owner_reads_a_sketch(tmp_path, sketched):
    out = tmp_path / "b.sketch"
    out.write_bytes(b"")
    out.chmod(0o644)
    assert sordino("sketch", "merge", sketched, "--output", out).exit_code == 0
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


def test_pieces_make_the_same_sketch(tmp_path, places, truth, monkeypatch):
    monkeypatch.setattr(tables, "_CHUNK", 7)
    path = write(tmp_path / "log.csv", ["page"], [(place,) for place in places])
    out = tmp_path / "a.sketch"
    assert sordino("sketch", "build", path, *RECORDS, "--output", out).exit_code == 0
    assert out.read_bytes() == expected(truth)


def test_amounts_from_the_standard_input(tmp_path, truth):
    lines = ["hits,page", *(f"{count},{cell}" for cell, count in enumerate(truth)), "5,3", "-5,3", ""]
    out = tmp_path / "a.sketch"
    result = sordino(
        "sketch", "build", "-", *RECORDS, "--amounts-column", "hits", "--output", out, text="\n".join(lines)
    )
    assert result.exit_code == 0, result.output
    # What was taken away again is gone from the sums; the bytes still say how many records came and went.
    twice = so.sketches.Sketch(CELLS, K, seed=5)
    twice.add(truth)
    twice.update([3, 3], [5, -5])
    assert out.read_bytes() == twice.to_bytes()


def test_malformed_records_are_null_items(tmp_path):
    rows = [
        (3, 2),
        *((place, 1) for place in ("", "x", -1, CELLS, 2.5, "inf")),
        *((4, amount) for amount in ("", 0.5, "nan", 1e300)),
        (5,),
    ]
    path, out = write(tmp_path / "log.csv", ["page", "hits"], rows), tmp_path / "a.sketch"
    result = sordino("sketch", "build", path, *RECORDS, "--amounts-column", "hits", "--output", out)
    assert result.exit_code == 0, result.output
    known = so.sketches.Sketch(CELLS, K, seed=5)
    known.update([3, 4, 4], [2, 1, 2**53])  # rounded half up, and clamped
    assert out.read_bytes() == known.to_bytes()


def test_counts(tmp_path, truth):
    path, out = write(tmp_path / "table.csv", ["count"], [(count,) for count in truth]), tmp_path / "a.sketch"
    options = ["--counts-column", "count", "--measurements", K, "--seed", 5, "--output", out]
    assert sordino("sketch", "build", path, *options).exit_code == 0
    assert out.read_bytes() == expected(truth)
    assert sordino("sketch", "build", path, *options, "--cells", CELLS).exit_code == 0
    assert sordino("sketch", "build", path, *options, "--cells", CELLS + 1).exit_code == 3


def test_counts_that_are_none_are_zero(tmp_path, truth):
    """What an entry holds is private: a command that fails for it would say so."""
    out, given = tmp_path / "a.sketch", [str(count) for count in truth]
    given[:4], known = ["", "Zbigniew", "1.5", "1e300"], truth.copy()
    known[:4] = 0, 0, 2, 2**53
    path = write(tmp_path / "table.csv", ["count"], [(count,) for count in given])
    options = ["--counts-column", "count", "--measurements", K, "--seed", 5, "--output", out]
    assert sordino("sketch", "build", path, *options).exit_code == 0
    assert out.read_bytes() == expected(known)


def test_parquet(tmp_path, places, truth):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path, out = tmp_path / "log.parquet", tmp_path / "a.sketch"
    pq.write_table(pa.table({"page": [*places.tolist(), None], "other": [0] * (len(places) + 1)}), path)
    assert sordino("sketch", "build", path, *RECORDS, "--output", out).exit_code == 0
    assert out.read_bytes() == expected(truth)


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["--cells", 10], 2, "--measurements"),
        (["--measurements", 5], 2, "what a row is"),
        (["--cells-column", "page", "--counts-column", "page", "--measurements", 5], 2, "what a row is"),
        (["--cells-column", "page", "--measurements", 5], 2, "--cells"),
        (["--counts-column", "page", "--amounts-column", "page", "--measurements", 5], 2, "--amounts-column"),
        (["--cells-column", "page", "--cells", 4, "--measurements", 5], 2, "measurements"),
        (["--cells-column", "page", "--cells", 10, "--measurements", 5, "--seed", -1], 2, "seed"),
        (["--cells-column", "page", "--cells", 10, "--measurements", 5, "--nonzeros", 0], 2, "nonzeros"),
        (["--cells-column", "other", "--cells", 10, "--measurements", 5], 3, "'other'"),
    ],
)
def test_build_refuses(tmp_path, options, code, says):
    path = write(tmp_path / "log.csv", ["page", "name"], [(1, "Zbigniew"), (2, 3), (3, 4)])
    out = tmp_path / "a.sketch"
    result = sordino("sketch", "build", path, *options, "--output", out)
    assert result.exit_code == code, result.output
    assert says in result.stderr
    assert "Zbigniew" not in result.stderr
    assert not out.exists()


def test_files_that_are_not_there(tmp_path):
    out = tmp_path / "a.sketch"
    assert sordino("sketch", "build", tmp_path / "no.csv", *RECORDS, "--output", out).exit_code == 3
    assert sordino("sketch", "build", tmp_path, *RECORDS, "--output", out).exit_code == 3
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    assert sordino("sketch", "build", empty, *RECORDS, "--output", out).exit_code == 3
    assert sordino("sketch", "merge", tmp_path / "no.sketch", "--output", out).exit_code == 3
    assert sordino("sketch", "merge", empty, "--output", out).exit_code == 3
    assert sordino("sketch", "merge", "--output", out).exit_code == 2
    assert not out.exists()


# Merging.


def test_merge(tmp_path, places, truth):
    parts = []
    for i in range(3):
        part = so.sketches.Sketch(CELLS, K, seed=5)
        part.update(places[i::3])
        parts.append(part.save(tmp_path / f"{i}.sketch"))
    out = tmp_path / "all.sketch"
    result = sordino("sketch", "merge", *parts, "--output", out)
    assert result.exit_code == 0, result.output
    assert out.read_bytes() == expected(truth)


def test_what_cannot_be_merged(tmp_path, sketched):
    other = so.sketches.Sketch(CELLS, K, seed=6).save(tmp_path / "other.sketch")
    out = tmp_path / "out.sketch"
    result = sordino("sketch", "merge", sketched, other, "--output", out)
    assert (result.exit_code, "seed" in result.stderr) == (2, True)
    result = sordino("sketch", "merge", sketched, tmp_path / "." / "all.sketch", "--output", out)
    assert (result.exit_code, "twice" in result.stderr) == (2, True)
    assert not out.exists()


def test_damaged_sketches_are_refused(tmp_path, sketched):
    data = bytearray(sketched.read_bytes())
    data[len(data) // 2] ^= 1
    sketched.write_bytes(data)
    result = sordino("sketch", "release", sketched, *PURE)
    assert (result.exit_code, "damaged" in result.stderr) == (3, True)


# Releasing.


@pytest.mark.parametrize("suffix", [".json", ".csv", ".parquet"])
def test_release(tmp_path, sketched, truth, known_noise, suffix):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    out = tmp_path / f"table{suffix}"
    result = sordino("sketch", "release", sketched, *PURE, "--unit", "one visit", "--output", out)
    assert result.exit_code == 0, result.output
    plan = so.plan(
        so.Histogram(CELLS),
        so.PureDP(epsilon=1.0),
        unit=so.AddRemove(1, label="one visit"),
        mechanism="compressive",
        compression=so.sketches.Compression(measurements=K, sparsity=8, seed=5),
    )
    own = plan.release(truth)
    assert result.stdout == f"{plan.explain()}\n"
    assert np.sqrt(np.mean((own.values - truth) ** 2)) < 4.0 * plan.rmse
    if suffix == ".json":
        record = json.loads(out.read_text())
        columns = record["answers"]
        assert record["plan_digest"] == plan.digest
        assert record["explanation"] == plan.explain().splitlines()
        assert record["recovery"]["coefficients"] == len(own.recovery.support)
        assert record["rmse_kind"] == "noise only"
        assert not {"level", "stderr"} & record.keys()
    elif suffix == ".csv":
        with out.open(newline="") as file:
            rows = list(csv.DictReader(file))
        columns = {"label": [int(row["label"]) for row in rows], "value": [float(row["value"]) for row in rows]}
    else:
        columns = dict(zip(["label", "value"], tables.read_columns(out, ["label", "value"]), strict=True))
    assert columns["label"] == list(range(CELLS))
    np.testing.assert_array_equal(columns["value"], own.values)


def test_release_merges_and_prints(tmp_path, places, truth, known_noise):
    parts = []
    for i in range(2):
        part = so.sketches.Sketch(CELLS, K, seed=5)
        part.update(places[i::2])
        parts.append(part.save(tmp_path / f"{i}.sketch"))
    result = sordino("sketch", "release", *parts, *PURE)
    assert result.exit_code == 0, result.output
    values = json.loads(result.stdout)["answers"]["value"]
    assert np.sqrt(np.mean((np.array(values) - truth) ** 2)) < 2.0
    assert not result.stderr


@pytest.mark.parametrize(
    ("options", "mechanism", "promise"),
    [
        (["--epsilon", 1], "compressive-laplace", "1-differential"),
        (["--epsilon", 1, "--delta", 1e-6], "compressive-gaussian", "delta"),
        (["--rho", 0.1, "--mechanism", "compressive-laplace"], "compressive-laplace", "concentrated"),
        (["--mu", 0.5], "compressive-gaussian", "Gaussian"),
    ],
)
def test_plan_only_reads_sizes(tmp_path, sketched, options, mechanism, promise):
    more = ["--basis", "cosine", "--recovery", "basis-pursuit", "--records", 2, "--plan"]
    result = sordino("sketch", "release", sketched, *options, *more)
    assert result.exit_code == 0, result.output
    for part in (f"{mechanism}, as asked", "basis-pursuit", "cosine", f"{K} numbers in place of {CELLS}"):
        assert part in result.stdout
    assert promise in result.stdout or "DP" in result.stdout
    assert "as private" not in result.stderr


def test_a_saved_plan(tmp_path, sketched):
    plan = tmp_path / "plan.json"
    assert sordino("sketch", "release", sketched, *PURE, "--save-plan", plan).exit_code == 0
    result = sordino("sketch", "release", sketched, "--plan-file", plan, "--plan")
    assert (result.exit_code, result.stdout) == (0, f"{so.Plan.load(plan).explain()}\n")
    assert sordino("sketch", "release", sketched, "--plan-file", plan, "--epsilon", 1).exit_code == 2
    other = so.sketches.Sketch(CELLS, K, seed=6).save(tmp_path / "other.sketch")
    assert sordino("sketch", "release", other, "--plan-file", plan).exit_code == 2
    table = so.plan(so.Histogram(CELLS), so.PureDP(epsilon=1.0)).save(tmp_path / "table.json")
    assert sordino("sketch", "release", sketched, "--plan-file", table).exit_code == 4


def test_data_that_is_not_sparse_is_told(tmp_path, known_noise):
    sketch = so.sketches.Sketch(CELLS, K, seed=5)
    sketch.add(np.random.default_rng(1).integers(0, 10_000, CELLS))
    path = sketch.save(tmp_path / "a.sketch")
    result = sordino("sketch", "release", path, *PURE)
    assert result.exit_code == 0
    assert "not so sparse" in result.stderr


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], 2),
        (["--epsilon", 1, "--rho", 1], 2),
        (["--epsilon", -1], 2),
        (["--epsilon", 1, "--mechanism", "threshold"], 2),
        (["--epsilon", 1, "--mechanism", "compressive-gaussian"], 4),
        (["--epsilon", 1, "--sparsity", K], 2),
        (["--epsilon", 1, "--basis", "wavelet"], 2),
        (["--epsilon", 1, "--output", "table.txt"], 2),
        (["--epsilon", 1, "--output", "nowhere/table.csv"], 3),
    ],
)
def test_release_refuses_before_the_door(tmp_path, sketched, monkeypatch, options, code):
    def door(*_arguments, **_options):
        raise AssertionError("nothing may be measured")

    monkeypatch.setattr(so.ReleasePlan, "release", door)
    monkeypatch.chdir(tmp_path)
    result = sordino("sketch", "release", sketched, *options)
    assert result.exit_code == code, result.output
    assert not result.stdout
    assert len(result.stderr.splitlines()) == 1


def test_the_group_says_what_it_does():
    result = sordino("sketch", "--help")
    assert result.exit_code == 0
    assert {"build", "merge", "release"} <= set(result.output.split())
    assert "as private as the data" in " ".join(result.output.split())


def test_a_process_from_end_to_end(tmp_path, places, truth):
    def call(*arguments, text=None):
        return subprocess.run(
            [
                sys.executable,
                "-W",
                "error",
                "-c",
                "from sordino.cli import main; main()",
                "sketch",
                *map(str, arguments),
            ],
            cwd=tmp_path,
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    lines = "page\n" + "".join(f"{place}\n" for place in places)
    assert call("build", "-", *RECORDS, "--output", "a.sketch", text=lines).returncode == 0
    assert (tmp_path / "a.sketch").read_bytes() == expected(truth)
    done = call("release", "a.sketch", "--epsilon", 50, "--sparsity", 8, "--output", "table.csv")
    assert (done.returncode, done.stderr) == (0, "")
    with (tmp_path / "table.csv").open(newline="") as file:
        values = [float(row["value"]) for row in csv.DictReader(file)]
    assert np.abs(np.array(values) - truth).max() < 1.0


# Changed answers of `sordino release`.


def test_changed_answers_come_with_the_unbiased_ones(tmp_path, known_noise):
    """Intervals are around the unbiased answers: they mean nothing without them."""
    path = write(tmp_path / "table.csv", ["count"], [(100,)] * 64)
    out = tmp_path / "out.csv"
    options = ["--counts-column", "count", "--mechanism", "threshold", "--epsilon", 1, "--output", out]
    result = sordino("release", path, *options)
    assert result.exit_code == 0, result.output
    with out.open(newline="") as file:
        rows = [{name: float(entry) for name, entry in row.items()} for row in csv.DictReader(file)]
    assert any(row["value"] != row["unbiased"] for row in rows)
    for row in rows:
        assert row["upper"] - row["unbiased"] == pytest.approx(row["unbiased"] - row["lower"])
