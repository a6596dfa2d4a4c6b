"""Mechanisms that look, on the command line: plans, releases, pictures, and what is refused before anything is spent."""

import csv
import json

import pytest

from command_line import done, sordino, write

ARGUMENTS = ("--epsilon", 1)


@pytest.fixture
def counts(tmp_path):
    return write(tmp_path / "counts.csv", ["n"], [[40 if i % 9 == 0 else 0] for i in range(64)])


@pytest.fixture
def people(tmp_path):
    return write(tmp_path / "people.csv", ["a", "b", "c"], [[i % 3, i % 4, "xy"[i % 2]] for i in range(60)])


@pytest.mark.parametrize("workload", ["histogram", "running-sum", "all-ranges"])
def test_a_tree_is_released(counts, tmp_path, workload):
    asked = ("--workload", workload, *ARGUMENTS, "--mechanism", "path-budget-tree")
    assert "noise only" in done("plan", "--length", 64, *asked).output
    output, picture = tmp_path / "out.csv", tmp_path / "out.png"
    done("release", counts, "--counts-column", "n", *asked, "--output", output, "--plot", picture)
    with output.open() as file:
        rows = list(csv.DictReader(file))
    assert "value" in rows[0] and "stderr" not in rows[0] and picture.stat().st_size > 1000
    record = json.loads(done("release", counts, "--counts-column", "n", *asked).output)
    assert record["mechanism"] == "path-budget-tree-laplace" and record["rmse_kind"] == "noise only"
    assert "level" not in record


def test_marginals_are_chosen(people, tmp_path):
    columns = ("--column", "a:0..2", "--column", "b:0..3", "--column", "c:x|y", "--marginals", 2)
    output, picture = tmp_path / "out.csv", tmp_path / "out.png"
    done("release", people, *columns, *ARGUMENTS, "--mechanism", "adaptive-marginals", "--output", output,
         "--plot", picture)  # fmt: skip
    with output.open() as file:
        assert len(list(csv.DictReader(file))) == 12 + 6 + 8
    assert picture.stat().st_size > 1000


def test_the_truth_beside_a_tree_is_that_of_cells(counts, tmp_path):
    asked = ("--counts-column", "n", *ARGUMENTS, "--mechanism", "path-budget-tree", "--insecure-show-truth")
    shown = sordino("release", counts, "--workload", "histogram", *asked, "--plot", tmp_path / "truth.png")
    assert shown.exit_code == 0 and (tmp_path / "truth.png").exists()
    refused = sordino("release", counts, "--workload", "running-sum", *asked, "--plot", tmp_path / "sums.png")
    assert refused.exit_code != 0 and "its table" in refused.output and not (tmp_path / "sums.png").exists()
