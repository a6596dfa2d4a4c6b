"""`sordino events` and `sordino local` as a user runs them: files in, files out."""

import csv
import json

import numpy as np
import pytest

import sordino as so
from command_line import done, sordino, write

# Nearly no noise: what is counted shows.
EXACT = ["--mu", 1e4]
K4 = [(0, 1, 4), (1, 2, 1), (0, 2, 2), (2, 3, 5), (1, 3, 3), (0, 3, 1)]
ENDS = ["--source", "from", "--target", "to", "--vertices", 4]


def answers(*arguments):
    return json.loads(done("events", "count", *arguments).stdout)["answers"]


@pytest.fixture
def edges(tmp_path):
    malformed = [(2, 2, 1), ("x", 1, 1), (9, 1, 1), (1, "", 1)]
    return write(tmp_path / "edges.csv", ["from", "to", "w"], [*K4, *malformed])


# Graphs.


@pytest.mark.parametrize(
    ("kind", "options", "truth"),
    [
        ("edges", [], [1, 2, 3, 4, 5, 6]),
        ("triangles", [], [0, 0, 1, 1, 2, 4]),
        ("stars", ["--k", 2], [0, 1, 3, 5, 8, 12]),
        ("forest", ["--weight", "w", "--max-weight", 8], [4, 5, 3, 8, 6, 4]),
    ],
)
def test_functions_of_a_graph(edges, kind, options, truth):
    last = answers(edges, "--of", kind, *ENDS, *options, *EXACT)
    assert last["step"] == [1]
    assert last["value"] == pytest.approx(truth[-1:], abs=0.1)
    every = answers(edges, "--of", kind, *ENDS, *options, *EXACT, "--every-step", 64)
    # Malformed rows are steps that change nothing.
    assert every["value"] == pytest.approx([*truth, *[truth[-1]] * 4], abs=0.1)
    assert every["step"] == list(range(1, 11))
    assert every["stderr"][0] < every["stderr"][-1]
    for value, lower, upper in zip(every["value"], every["lower"], every["upper"], strict=True):
        assert lower <= value <= upper


def test_degrees(edges):
    found = answers(edges, "--of", "degrees", *ENDS, "--max-degree", 3, *EXACT)
    assert found["count"] == ["degree 0", "degree 1", "degree 2", "degree 3"]
    assert found["value"] == pytest.approx([0, 0, 0, 4], abs=0.1)


def test_cuts_of_named_vertices_as_csv(tmp_path):
    routes = [("EWR", "ATL"), ("EWR", "ATL"), ("JFK", "ATL"), ("EWR", "nowhere")]
    file = write(tmp_path / "routes.csv", ["origin", "dest"], routes)
    out = tmp_path / "cuts.csv"
    shape = ["--of", "cuts", "--source", "origin", "--target", "dest", "--vertices", "EWR,JFK,ATL"]
    sides = ["--side", "EWR", "--side", "EWR,JFK"]
    done("events", "count", file, *shape, *sides, *EXACT, "--every-step", 100, "--output", out)
    with out.open(newline="") as opened:
        rows = list(csv.DictReader(opened))
    assert [row["count"] for row in rows[:2]] == ["EWR", "EWR+JFK"]
    assert [float(row["value"]) for row in rows] == pytest.approx([1, 1, 2, 2, 2, 3, 2, 3], abs=0.1)
    assert all(float(row["lower"]) <= float(row["value"]) <= float(row["upper"]) for row in rows)
    once = answers(file, *shape, *sides, *EXACT)
    assert once["value"] == pytest.approx([2, 3], abs=0.1)


def test_weights_of_cuts(edges):
    found = answers(edges, "--of", "cuts", *ENDS, "--weight", "w", "--max-weight", 8, "--side", 0, *EXACT)
    assert found["value"] == pytest.approx([7], abs=0.1)


@pytest.mark.slow
def test_once_has_less_noise_than_every_step(edges):
    noisy = ["--of", "triangles", *ENDS, "--epsilon", 1, "--delta", 1e-6]
    once, every = answers(edges, *noisy), answers(edges, *noisy, "--every-step", 10**6)
    assert once["stderr"][0] < every["stderr"][-1]


def test_more_rows_than_steps_are_refused_and_nothing_is_said(edges):
    result = sordino("events", "count", edges, "--of", "edges", *ENDS, *EXACT, "--every-step", 5)
    assert result.exit_code == 4
    assert "value" not in result.output


# Words.


def test_substrings(tmp_path):
    (tmp_path / "text.txt").write_text("abaab")
    text = [tmp_path / "text.txt", "--of", "substrings", "--alphabet", "abc", "--longest", 3, *EXACT]
    found = answers(*text)
    counts = dict(zip(found["count"], np.round(found["value"]).tolist(), strict=True))
    seen = {word: count for word, count in counts.items() if count}
    assert seen == {"a": 3, "b": 2, "ab": 2, "aa": 1, "ba": 1, "aab": 1, "aba": 1, "baa": 1}
    chosen = answers(*text, "--word", "ab", "--word", "cc")
    assert chosen["count"] == ["ab", "cc"]
    assert chosen["value"] == pytest.approx([2, 0], abs=0.1)


def test_episodes_of_a_column(tmp_path):
    kinds = ["login", "error", "error", "logout", "login", "unheard of", "logout"]
    file = write(tmp_path / "log.csv", ["kind"], [[kind] for kind in kinds])
    shape = ["--of", "episodes", "--column", "kind", "--alphabet", "login,error,logout", "--longest", 2]
    found = answers(file, *shape, *EXACT, "--word", "login,logout", "--word", "error,logout")
    assert found["count"] == ["login,logout", "error,logout"]
    assert found["value"] == pytest.approx([2, 1], abs=0.1)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--of", "triangles", "--source", "from", "--target", "to"],  # no vertices
        ["--of", "triangles", *ENDS, "--alphabet", "abc"],
        ["--of", "triangles", *ENDS, "--weight", "w"],
        ["--of", "edges", *ENDS, "--k", 2],
        ["--of", "cuts", *ENDS],  # no side
        ["--of", "cuts", *ENDS, "--side", 7],
        ["--of", "edges", *ENDS, "--side", 0],
        ["--of", "substrings", "--longest", 2],
        ["--of", "substrings", "--alphabet", "ab", "--longest", 2, "--vertices", 4],
        ["--of", "substrings", "--alphabet", "ab", "--longest", 2, "--word", "abb"],
        ["--of", "substrings", "--alphabet", "ab", "--longest", 2, "--every-step", 9],
        ["--of", "edges", *ENDS, "--node"],  # not promised
    ],
)
def test_what_is_refused(edges, arguments):
    result = sordino("events", "count", edges, *arguments, *EXACT)
    assert result.exit_code in {2, 4}, result.output
    assert "Traceback" not in result.output


def test_plan_reads_nothing(tmp_path):
    plan = ["--of", "triangles", *ENDS, "--max-degree", 2, "--epsilon", 1, "--delta", 1e-6, "--plan"]
    assert "guarantee" in done("events", "count", tmp_path / "nothing.csv", *plan).stdout
    missing = sordino("events", "count", tmp_path / "nothing.csv", *plan[:-1])
    assert missing.exit_code == 3


# Surveys.


@pytest.fixture
def survey(tmp_path):
    out = tmp_path / "survey.json"
    planned = ["--clients", 6, "--bounds", "0..1", "--intervals", 4, "--mu", 1e4]
    assert "guarantee" in done("local", "plan", *planned, "--output", out).stdout
    return out


def test_a_survey_from_plan_to_median(tmp_path, survey):
    values = write(tmp_path / "values.csv", ["v"], [[0.05], [0.3], [0.3], [0.55], [0.9]])
    done("local", "encode", survey, "--input", values, "--column", "v", "--output", tmp_path / "five.npz")
    line = done("local", "encode", survey, "--value", 0.95).stdout
    assert len(json.loads(line)) == 4
    (tmp_path / "one.jsonl").write_text(line + "no report\n[1, 2]\n{}\n")
    out = tmp_path / "answer.json"
    files = [tmp_path / "five.npz", tmp_path / "one.jsonl"]
    said = done("local", "aggregate", survey, *files, "--quantile", 0.25, "--output", out).stdout
    assert "clients       6" in said
    record = json.loads(out.read_text())
    assert record["clients"] == 6
    assert record["shares"] == pytest.approx([1 / 6, 1 / 2, 2 / 3, 1], abs=1e-2)
    assert record["median"] == pytest.approx(0.5, abs=0.1)
    assert record["quantiles"]["0.25"] == pytest.approx(0.3125, abs=0.01)
    assert len(record["risk"]) == 5
    # The same as in Python.
    plan = so.SurveyPlan.load(survey)
    server = plan.server()
    server.add(json.loads(line))
    assert server.accepted == 1


def test_a_loss(tmp_path):
    plan = tmp_path / "huber.json"
    done("local", "plan", "--clients", 100, "--bounds", "0..10", "--huber", 1, "--mu", 1e4, "--output", plan)
    values = write(tmp_path / "values.csv", ["v"], [[6.0]] * 20)
    done("local", "encode", plan, "--input", values, "--column", "v", "--output", tmp_path / "r.jsonl")
    said = done("local", "aggregate", plan, tmp_path / "r.jsonl").stdout
    minimiser = float(said.split("minimiser")[1])
    assert minimiser == pytest.approx(6.0, abs=0.2)
    assert sordino("local", "aggregate", plan, tmp_path / "r.jsonl", "--quantile", 0.5).exit_code == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["encode", "{plan}"],
        ["encode", "{plan}", "--value", 1, "--input", "x.csv", "--column", "v"],
        ["plan", "--clients", 6, "--bounds", "0-1", "--mu", 1],
        ["plan", "--clients", 6, "--bounds", "1..0", "--mu", 1],
        ["aggregate", "{plan}", "missing.npz"],
        ["aggregate", "{plan}", "{plan}"],  # no report in it
    ],
)
def test_surveys_refuse(survey, arguments):
    filled = [survey if argument == "{plan}" else argument for argument in arguments]
    result = sordino("local", *filled)
    assert result.exit_code in {2, 3}, result.output
    assert "Traceback" not in result.output


def test_a_plan_that_was_altered_is_refused(survey):
    record = json.loads(survey.read_text())
    record["request"]["privacy"]["mu"] = 1.0
    survey.write_text(json.dumps(record))
    assert sordino("local", "encode", survey, "--value", 0.5).exit_code == 3
