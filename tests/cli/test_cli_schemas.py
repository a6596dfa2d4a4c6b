"""`sordino table`: files and a schema in, labelled answers out; what is malformed is said without a word of the records."""

import csv
import json

import numpy as np
import pytest

import sordino as so
from command_line import sordino

SCHEMA = """
user = "who"
label = "one guest"
[bounds]
max_cells = 3
per_cell = 2
[dimensions.at]
times = { start = "2026-07-01", stop = "2026-07-04", unit = "hour", zone = "Europe/Berlin" }
[dimensions.kind]
levels = ["a", "b"]
other = "rest"
"""
LOUD = ["--mu", 1e6]


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "schema.toml").write_text(SCHEMA)
    for name in ("one", "two"):
        lines = ["at,kind,who"]
        for _ in range(200):
            lines.append(
                f"2026-07-0{rng.integers(1, 5)}T{rng.integers(0, 24):02d}:30,{rng.choice(list('abc'))},u{rng.integers(0, 60)}"
            )
        (tmp_path / f"{name}.csv").write_text("\n".join([*lines, "yesterday,a,SECRET"]) + "\n")
    return tmp_path


def test_a_release_of_files(files):
    schema = so.Schema.from_toml(files / "schema.toml")
    inputs = [files / "one.csv", files / "two.csv"]
    options = ["--schema", files / "schema.toml", "--level", "at.day", "--level", "kind", "--request-id", "r"]
    result = sordino("table", "release", *inputs, *options, *LOUD, "--output", files / "out.csv")
    assert result.exit_code == 0, result.output
    with (files / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    table = so.tabulate(inputs, schema, request_id="r").to_numpy().reshape(3, 24, 3).sum(axis=1)
    assert [row["at.day"] for row in rows[::3]] == ["2026-07-01", "2026-07-02", "2026-07-03"]
    assert [round(float(row["value"])) for row in rows] == table.reshape(-1).tolist()
    assert list(rows[0]) == ["at.day", "kind", "value", "stderr", "lower", "upper"]
    plan = files / "plan.json"
    result = sordino("table", "plan", *options[:6], *LOUD, "--save", plan)
    assert result.exit_code == 0 and "one guest" in result.output and schema.digest in result.output
    # In another order of the files; the same request keeps the same records.
    result = sordino("table", "release", *inputs[::-1], *options[:2], "--request-id", "r", "--plan", plan)
    found = json.loads(result.stdout)
    assert np.rint(found["answers"]["value"]).tolist() == table.reshape(-1).tolist()
    assert found["schema_digest"] == schema.digest and "SECRET" not in result.output
    for suffix in ("json", "parquet"):
        out = files / f"out.{suffix}"
        assert sordino("table", "release", *inputs, *options, *LOUD, "--output", out).exit_code == 0 and out.exists()


def test_amounts_and_cells(files):
    (files / "schema.toml").write_text(
        SCHEMA.replace('["a", "b"]\nother = "rest"', '["a", "b"]') + "[values.paid]\nlow = 0.0\nhigh = 8.0\n"
    )
    (files / "rows.csv").write_text(
        "at,kind,who,paid\n" + "2026-07-01T00:30,a,x,3\n2026-07-01T00:40,a,y,99\n2026-07-01T00:40,b,y,nan\n"
    )
    options = ["--schema", files / "schema.toml", "--request-id", "r", *LOUD]
    found = json.loads(sordino("table", "release", files / "rows.csv", *options, "--level", "kind").stdout)["answers"]
    assert np.rint(found["count"]).tolist() == [2, 0] and np.rint(found["paid_sum"]).tolist() == [11, 0]
    assert found["paid_mean"][0] == pytest.approx(5.5, abs=0.01) and found["paid_mean"][1] is None
    assert len(json.loads(sordino("table", "release", files / "rows.csv", *options).stdout)["answers"]["count"]) == 144


def test_refusals(files):
    options = ["--schema", files / "schema.toml", "--request-id", "r"]
    inputs = [files / "one.csv"]
    good = ["table", "release", *inputs, *options, *LOUD]
    other = files / "other.toml"
    other.write_text(SCHEMA.replace("max_cells = 3", "max_cells = 4"))
    plan = files / "plan.json"
    assert sordino("table", "plan", "--schema", other, "--rho", 1, "--save", plan).exit_code == 0
    so.plan(so.Histogram(4), so.PureDP(epsilon=1.0)).save(files / "plain.json")
    for code, arguments in [
        (2, [*good, "--level", "at.year2"]),
        (2, [*good, "--level", "kind", "--marginals", 1]),
        (2, [*good, "--records", 3]),
        (2, [*good, "--unit", "one thing"]),
        (2, [*good, "--plan", plan]),
        (2, ["table", "release", *inputs, *options]),
        (2, ["table", "release", *inputs, "--schema", files / "schema.toml", *LOUD]),
        (2, ["table", "release", *inputs, *options, "--plan", plan]),  # of another schema
        (2, ["table", "release", *inputs, *options, "--plan", files / "plain.json"]),
        (3, ["table", "release", files / "missing.csv", *options, *LOUD]),
        (3, ["table", "release", *inputs, "--schema", files / "missing.toml", "--request-id", "r", *LOUD]),
        (2, [*good, "--output", files / "out.txt"]),
    ]:
        result = sordino(*arguments)
        assert result.exit_code == code, (arguments, result.output)
        assert "Traceback" not in result.output and "SECRET" not in result.output
