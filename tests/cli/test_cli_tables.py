"""The command line: commands, files, exit codes, and what no message may say."""

import csv
import importlib
import json
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

import sordino as so
from command_line import sordino, write
from sordino.cli.inputs import SOURCE_OPTIONS, read_source
from sordino.cli.truth import true_answers

AVERAGE = ["--workload", "moving-average", "--window", "7", "--length", "100"]
APPROX = ["--epsilon", "1", "--delta", "1e-6"]
SECRET = "Zbigniew-4711"


@pytest.fixture
def daily(tmp_path):
    start = datetime(2026, 1, 1)
    rows = [((start + timedelta(days=day)).date().isoformat(), 40 + day % 7) for day in range(100)]
    return write(tmp_path / "daily.csv", ["day", "flights"], rows)


def source(path, **options):
    return read_source(path, dict.fromkeys(SOURCE_OPTIONS) | options)


# Planning.


@pytest.mark.parametrize(
    ("options", "workload"),
    [
        (["moving-average", "--window", 7], so.MovingAverage(7, 20)),
        (["moving-average", "--window", 7, "--boundary", "same"], so.MovingAverage(7, 20, "same")),
        (["running-sum"], so.RunningSum(20)),
        (["exponential-smoothing", "--decay", 0.5], so.ExponentialSmoothing(0.5, 20)),
        (["polynomial-decay", "--exponent", 2], so.workloads.PolynomialDecay(2.0, 20)),
        (["difference"], so.workloads.Difference(20)),
        (["difference", "--order", 2, "--boundary", "circular"], so.workloads.Difference(20, 2, "circular")),
        (["band-pass", "--low", 0, "--high", 0.2], so.workloads.BandPass(0.0, 0.2, 20)),
        (["convolution", "--kernel", "1,-2,1"], so.Convolution([1.0, -2.0, 1.0], 20)),
        (["histogram"], so.Histogram(20)),
    ],
)
def test_every_workload_can_be_said(options, workload, tmp_path):
    path = tmp_path / "plan.json"
    result = sordino("plan", "--workload", *options, "--length", 20, *APPROX, "--save", path)
    assert result.exit_code == 0, result.output
    assert so.Plan.load(path).workload == workload


@pytest.mark.parametrize(
    ("options", "privacy"),
    [
        (["--epsilon", 0.5], so.PureDP(epsilon=0.5)),
        (["--epsilon", 0.5, "--delta", 1e-7], so.ApproxDP(epsilon=0.5, delta=1e-7)),
        (["--rho", 0.1], so.ZeroConcentratedDP(rho=0.1)),
        (["--mu", 0.2], so.GaussianDP(mu=0.2)),
    ],
)
def test_every_privacy_can_be_said(options, privacy, tmp_path):
    path = tmp_path / "plan.json"
    assert sordino("plan", *AVERAGE, *options, "--save", path).exit_code == 0
    assert so.Plan.load(path).privacy == privacy


def test_plan_options_reach_the_plan(tmp_path):
    path = tmp_path / "plan.json"
    options = [
        "--unit",
        "one flight",
        "--records",
        3,
        "--replace",
        "--mechanism",
        "identity",
        "--objective",
        "max",
    ]
    result = sordino("plan", *AVERAGE, *APPROX, *options, "--max-value", 500, "--real", "--save", path)
    assert result.exit_code == 0, result.output
    plan = so.Plan.load(path)
    assert plan.unit == so.ReplaceOne(3, label="one flight")
    assert (plan.mechanism, plan.request.objective, plan.fit.domain.max_value, plan.request.integral) == (
        "identity-gaussian",
        "max",
        500,
        False,
    )


def test_plan_prints_plain_facts():
    result = sordino("plan", *AVERAGE, *APPROX, "--unit", "one flight")
    plan = so.plan(so.MovingAverage(7, 100), so.ApproxDP(epsilon=1.0, delta=1e-6))
    assert "\x1b" not in result.output
    assert result.output.isascii()
    assert f"{plan.rmse:.6g}" in result.output
    assert "one flight" in result.output
    assert not result.stderr


def test_plan_as_json():
    record = json.loads(sordino("plan", *AVERAGE, *APPROX, "--json").output)
    plan = so.plan(so.MovingAverage(7, 100), so.ApproxDP(epsilon=1.0, delta=1e-6))
    assert record["rmse"] == plan.rmse
    assert record["digest"] == plan.digest
    kernel = ["--workload", "convolution", "--kernel", "1,2", "--length", 5, "--mu", 1]
    assert json.loads(sordino("plan", *kernel, "--json").output)["request"]["workload"]["spec"]["kernel"] == [1.0, 2.0]


def test_compare():
    result = sordino("compare", *AVERAGE, *APPROX)
    comparison = so.compare(so.MovingAverage(7, 100), so.ApproxDP(epsilon=1.0, delta=1e-6))
    assert result.output == f"{comparison}\n"
    record = json.loads(sordino("compare", *AVERAGE, *APPROX, "--json").output)
    assert record["chosen"] == comparison.chosen
    assert [row["rmse"] for row in record["mechanisms"]] == [row["rmse"] for row in comparison.rows]


def test_explain_a_file_and_options(tmp_path):
    path = tmp_path / "plan.json"
    sordino("plan", *AVERAGE, *APPROX, "--save", path)
    expected = so.Plan.load(path).explain() + "\n"
    assert sordino("explain", path).output == expected
    assert sordino("explain", *AVERAGE, *APPROX).output == expected
    assert sordino("explain", path, "--epsilon", 2).exit_code == 2


@pytest.mark.parametrize("command", ["plan", "compare", "explain", "release"])
def test_help_has_examples(command):
    result = sordino(command, "--help")
    assert result.exit_code == 0
    assert f"    sordino {command} " in result.output


def test_no_command_shows_the_commands():
    result = sordino()
    assert result.exit_code == 0
    assert "release" in result.output
    assert sordino("--version").output == f"sordino, version {so.__version__}\n"


# Releasing.


def test_release_counts_as_json(daily):
    result = sordino("release", daily, "--counts-column", "flights", "--label-column", "day", *AVERAGE[:4], *APPROX)
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    answers = record["answers"]
    assert answers["label"][:2] == ["2026-01-01", "2026-01-02"]
    assert len(answers["value"]) == 100
    assert answers["lower"][50] < answers["value"][50] < answers["upper"][50]
    assert abs(answers["value"][50] - 43.0) < 12.0
    assert record["private"] is True
    assert record["accounted"] is False


def test_release_with_a_saved_plan_as_csv(daily, tmp_path):
    plan, out = tmp_path / "plan.json", tmp_path / "out.csv"
    sordino("plan", *AVERAGE, *APPROX, "--save", plan)
    result = sordino("release", daily, "--counts-column", "flights", "--plan", plan, "--output", out, "--level", 0.9)
    assert result.exit_code == 0, result.output
    assert not result.output
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert list(rows[0]) == ["label", "value", "stderr", "lower", "upper"]
    assert [row["label"] for row in rows] == [str(row) for row in range(100)]
    width = float(rows[50]["upper"]) - float(rows[50]["lower"])
    assert 3.0 < width / float(rows[50]["stderr"]) < 4.0
    assert sordino("release", daily, "--counts-column", "flights", "--plan", plan, *APPROX).exit_code == 2


def test_counts_without_a_workload_are_a_histogram(daily, tmp_path):
    plan = tmp_path / "plan.json"
    assert sordino("release", daily, "--counts-column", "flights", "--epsilon", 1, "--save-plan", plan).exit_code == 0
    assert so.Plan.load(plan).workload == so.Histogram(100)


def test_a_declared_length_is_held_to(daily):
    result = sordino("release", daily, "--counts-column", "flights", "--length", 99, "--epsilon", 1)
    assert result.exit_code == 3


def test_real_counts(tmp_path):
    path = write(tmp_path / "real.csv", ["x"], [[0.25], [1e9], [-3.5]])
    result = sordino("release", path, "--counts-column", "x", "--epsilon", 1000, "--real", "--max-value", 64)
    assert json.loads(result.stdout)["answers"]["value"] == pytest.approx([0.25, 64.0, -3.5], abs=0.1)


def test_events_are_counted_in_bins_of_time(tmp_path):
    times = [
        "2026-01-01T00:00",
        "2026-01-01 00:59:59.999999",
        "2026-01-01T01:00:00Z",
        "2026-01-01T02:30+01:00",
        "2025-12-31T23:59:59",
        "2026-01-01T03:00",
        SECRET,
        "",
        "9999-12-31T23:59-23:59",
    ]
    path = write(tmp_path / "events.csv", ["time", "who"], [[time, "a"] for time in times])
    span = {"start": "2026-01-01", "end": "2026-01-01T03:00", "every": "1h"}
    found = source(path, events_column="time", **span)
    assert found.cells.tolist() == [2, 2, 0]
    assert found.labels.tolist() == ["2026-01-01T00:00:00", "2026-01-01T01:00:00", "2026-01-01T02:00:00"]
    assert "2, 2" not in repr(found)
    bounded = source(path, events_column="time", user_column="who", max_records=3, **span)
    assert bounded.cells.tolist() == [2, 1, 0]


def test_users_bound_the_unit(tmp_path):
    path = write(tmp_path / "values.csv", ["v", "who"], [[1, "a"], [1, "a"], [1, ""], [2, "b"], [SECRET, "b"]])
    plan = tmp_path / "plan.json"
    options = ["--values-column", "v", "--bins", 3, "--user-column", "who", "--max-records", 1]
    result = sordino("release", path, *options, "--epsilon", 1000, "--save-plan", plan)
    assert np.rint(json.loads(result.stdout)["answers"]["value"]).tolist() == [0, 1, 1]  # who is blank is nobody
    assert so.Plan.load(plan).unit == so.AddRemove(1, one_signed=True, label="one user")
    options[-1] = 2
    assert sordino("release", path, *options, "--plan", plan).exit_code == 2
    assert sordino("release", path, *options, "--epsilon", 1, "--records", 1).exit_code == 2


def test_several_cells_of_a_user(tmp_path):
    """A user counts once a cell at most, and the noise is for that; a plan that was saved for it serves, others do not."""
    path = write(tmp_path / "values.csv", ["v", "who"], [[v, who] for who in "abc" for v in (0, 0, 1, 1, 2, 2)])
    plan, other = tmp_path / "plan.json", tmp_path / "other.json"
    rows = ["--values-column", "v", "--bins", 3, "--user-column", "who", "--max-records", 3]
    once = [*rows, "--per-cell", 1]
    result = sordino("release", path, *once, "--epsilon", 1000, "--save-plan", plan)
    assert np.rint(json.loads(result.stdout)["answers"]["value"]).tolist() == [3, 3, 3]
    unit = so.Plan.load(plan).unit
    assert unit == so.AddRemove(3, per_cell=1, one_signed=True, label="one user")
    assert sordino("release", path, *once, "--plan", plan).exit_code == 0
    assert sordino("release", path, *rows, "--plan", plan).exit_code == 2  # nothing bounds a cell
    assert sordino("release", path, *rows[:-1], 4, "--per-cell", 2, "--plan", plan).exit_code == 2
    # Where nobody is known nothing is enforced: the plan has said what a cell may hold.
    assert sordino("release", path, *rows[:4], "--per-cell", 1, "--plan", plan).exit_code == 2
    so.plan(so.Histogram(3), so.PureDP(epsilon=1.0), unit=so.UserLevel(1, per_step=3)).save(other)
    assert sordino("release", path, *rows, "--plan", other).exit_code == 2  # of several cells it says nothing
    assert sordino("release", path, *rows, "--per-cell", 0, "--epsilon", 1).exit_code == 2
    described = ["--workload", "histogram", "--length", 10, "--records", 10, "--per-cell", 1, *APPROX]
    assert sordino("plan", *described, "--one-signed", "--noise", "gaussian", "--save", other).exit_code == 0
    found = so.Plan.load(other)
    assert found.unit == so.AddRemove(10, per_cell=1, one_signed=True) and found.mechanism == "identity-common-gaussian"
    for wrong in (["--replace"], ["--noise", "cauchy"], ["--per-cell", 0]):
        assert sordino("plan", *described[:-6], "--per-cell", 1, *APPROX, *wrong).exit_code == 2
    assert sordino("compare", *described, "--noise", "laplace").exit_code == 2
    records = ["--marginals", 1, "--column", "v:0|1|2", "--user-column", "who", "--max-records", 3]
    assert sordino("release", path, *records, "--per-cell", 1, *APPROX).exit_code == 2


def test_values_between_edges(tmp_path):
    values = [[-1], [0], [4.9], [5], [9.99], [10], ["nan"], [SECRET]]
    path = write(tmp_path / "values.csv", ["v"], values)
    found = source(path, values_column="v", edges=(0.0, 5.0, 10.0))
    assert found.cells.tolist() == [2, 2]
    assert found.labels.tolist() == [0.0, 5.0]
    result = sordino("release", path, "--values-column", "v", "--edges", "0,5,10", "--epsilon", 1)
    assert result.exit_code == 0, result.output


def test_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "data.parquet"
    nanoseconds = [1_767_225_600_000_000_001, None, 2**62, -(2**62)]
    columns = {
        "counts": pa.array([5, 6, 7, 8]),
        "gaps": pa.array([5, None, 7, 8]),
        "when": pa.array(nanoseconds, pa.timestamp("ns")),
        "there": pa.array(nanoseconds, pa.timestamp("ns", tz="America/New_York")),
        "text": pa.array(["2026-01-01T00:30", None, SECRET, "2026-01-01"]),
    }
    pq.write_table(pa.table(columns), path)
    assert source(path, counts_column="counts").cells.tolist() == [5, 6, 7, 8]
    span = {"start": "2026-01-01", "end": "2026-01-02", "every": "12h"}
    assert source(path, events_column="when", **span).cells.tolist() == [1, 0]
    assert source(path, events_column="there", **span).cells.tolist() == [1, 0]
    assert source(path, events_column="text", **span).cells.tolist() == [2, 0]
    assert source(path, values_column="gaps", bins=8).cells.sum() == 2
    with pytest.raises(so.errors.InputFileError, match="'gaps' must hold a finite number"):
        source(path, counts_column="gaps")
    with pytest.raises(so.errors.InputFileError, match="one column 'nowhere'"):
        source(path, counts_column="nowhere")
    path.write_bytes(b"PAR1" + SECRET.encode())
    with pytest.raises(so.errors.InputFileError, match="as Parquet") as caught:
        source(path, counts_column="counts")
    assert SECRET not in str(caught.value)


# Pictures.


@pytest.mark.slow
def test_pictures(daily, tmp_path):
    pytest.importorskip("matplotlib")
    release = ["release", daily, "--counts-column", "flights", "--label-column", "day", *AVERAGE[:4], *APPROX]
    commands = {
        "plan": ["plan", *AVERAGE, *APPROX],
        "bars": ["compare", *AVERAGE, *APPROX],
        "release": release,
        "truth": [*release, "--insecure-show-truth"],
    }
    for name, command in commands.items():
        path = tmp_path / f"{name}.png"
        result = sordino(*command, "--plot", path)
        assert result.exit_code == 0, result.output
        assert path.read_bytes().startswith(b"\x89PNG")
        assert ("NOT private" in result.stderr) == (name == "truth")


def test_the_truth_needs_its_flag(daily, tmp_path, monkeypatch):
    commands = importlib.import_module("sordino.cli.commands")
    drawn = []
    monkeypatch.setattr(commands, "draw_truth", lambda *arguments: drawn.append(arguments))
    options = ["release", daily, "--counts-column", "flights", "--epsilon", 1]
    assert sordino(*options, "--plot", tmp_path / "a.png").exit_code == 0
    assert not drawn
    assert sordino(*options, "--insecure-show-truth").exit_code == 2
    assert sordino(*options, "--plot", tmp_path / "a.png", "--insecure-show-truth").exit_code == 0
    assert (tmp_path / "a.png").stat().st_mode & 0o077 == 0  # private data, for its owner alone
    assert len(drawn) == 1


@pytest.mark.parametrize(
    "workload",
    [
        so.MovingAverage(4, 9),
        so.MovingAverage(4, 9, "same"),
        so.RunningSum(9),
        so.workloads.BandPass(0.1, 0.3, 9),
        so.Convolution([1.0, 2.0, 4.0], 9),
        so.Histogram(9),
        so.Matrix(np.arange(18.0).reshape(2, 9)),
    ],
    ids=repr,
)
def test_the_truth_is_the_truth(workload):
    cells = np.array([3, 1, 4, 1, 5, 900, 2, 6, 5])
    plan = so.plan(workload, so.PureDP(epsilon=1.0), max_value=10)
    rows = np.stack([workload.core.row(i) for i in range(workload.core.answers_len)])
    np.testing.assert_allclose(true_answers(plan, cells), rows @ np.minimum(cells, 10), atol=1e-9)


# Refusals.


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        (2, ["bogus"]),
        (2, ["plan", "--bogus"]),
        (2, ["plan", *AVERAGE]),
        (2, ["plan", *AVERAGE, "--epsilon", "x"]),
        (2, ["plan", *AVERAGE, "--epsilon", "-1"]),
        (2, ["plan", *AVERAGE, "--delta", "1e-6"]),
        (2, ["plan", *AVERAGE, "--epsilon", "1", "--rho", "1"]),
        (2, ["plan", *AVERAGE, "--epsilon", "1", "--decay", "0.5"]),
        (2, ["plan", "--workload", "moving-average", "--length", "9", "--epsilon", "1"]),
        (2, ["plan", "--workload", "running-sum", "--epsilon", "1"]),
        (2, ["plan", "--length", "9", "--epsilon", "1"]),
        (2, ["plan", "--workload", "convolution", "--kernel", "1,x", "--length", "9", "--epsilon", "1"]),
        (2, ["plan", *AVERAGE, "--epsilon", "1", "--mechanism", "bogus"]),
        (2, ["compare", *AVERAGE, "--epsilon", "1", "--mechanism", "identity"]),
        (4, ["plan", *AVERAGE, "--epsilon", "1", "--mechanism", "identity-gaussian"]),
        (3, ["explain", "nowhere.json"]),
        (3, ["plan", *AVERAGE, "--epsilon", "1", "--save", "nowhere/plan.json"]),
        (2, ["release", "nowhere.csv", "--epsilon", "1"]),
        (2, ["release", "nowhere.csv", "--counts-column", "a", "--bins", "2", "--epsilon", "1"]),
        (2, ["release", "nowhere.csv", "--values-column", "a", "--epsilon", "1"]),
        (2, ["release", "nowhere.csv", "--values-column", "a", "--bins", "0", "--epsilon", "1"]),
        (2, ["release", "nowhere.csv", "--values-column", "a", "--edges", "2,1", "--epsilon", "1"]),
        (2, ["release", "nowhere.csv", "--values-column", "a", "--bins", "2", "--max-records", "1"]),
        (2, ["release", "nowhere.csv", "--events-column", "a", "--epsilon", "1"]),
        (2, ["release", "nowhere.csv", "--counts-column", "a", "--epsilon", "1", "--level", "1"]),
        (2, ["release", "nowhere.csv", "--counts-column", "a", "--epsilon", "1", "--output", "out.xlsx"]),
        (3, ["release", "nowhere.csv", "--counts-column", "a", "--epsilon", "1", "--output", "no/out.csv"]),
        (3, ["release", "nowhere.csv", "--counts-column", "a", "--epsilon", "1"]),
    ],
)
def test_refusals_are_one_line_and_a_code(code, arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = sordino(*arguments)
    assert result.exit_code == code, result.output
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert not result.stdout


@pytest.mark.parametrize(
    ("start", "end", "every"),
    [
        ("yesterday", "2026-01-02", "1h"),
        ("2026-01-02", "2026-01-01", "1h"),
        ("2026-01-01", "2026-01-02", "7h"),
        ("2026-01-01", "2026-01-02", "0h"),
        ("2026-01-01", "2026-01-02", "hour"),
        ("0001-01-01", "9999-01-01", "1s"),
    ],
)
def test_bins_of_time_are_checked(start, end, every, tmp_path):
    with pytest.raises(so.errors.InvalidParameterError, match=r"--(start|every)"):
        source(tmp_path / "none.csv", events_column="a", start=start, end=end, every=every)


def test_no_entropy_is_code_5(daily, monkeypatch):
    def fail(*_arguments, **_options):
        raise so.errors.EntropyError("no randomness")

    monkeypatch.setattr(so.ReleasePlan, "release", fail)
    assert sordino("release", daily, "--counts-column", "flights", "--epsilon", 1).exit_code == 5


def test_a_spent_budget_is_code_4(daily, monkeypatch):
    def fail(*_arguments, **_options):
        raise so.errors.BudgetExceededError("the budget\nis spent")

    monkeypatch.setattr(so.ReleasePlan, "release", fail)
    result = sordino("release", daily, "--counts-column", "flights", "--epsilon", 1)
    assert (result.exit_code, result.stderr) == (4, "Error: the budget is spent\n")


@pytest.mark.parametrize("entry", [SECRET, "", "nan", "inf"])
def test_a_malformed_count_names_the_column_only(entry, tmp_path):
    rows = [[1], [2], [entry], [4711]]
    path = write(tmp_path / "counts.csv", ["flights", "x"], [[*row, "y"] for row in rows])
    result = sordino("release", path, "--counts-column", "flights", "--epsilon", 1)
    assert result.exit_code == 3
    assert result.output == "Error: the column 'flights' must hold a finite number in every row\n"


@pytest.mark.parametrize(
    "text",
    [
        f'n\n1\n"{SECRET}',
        f"{SECRET}\n1\n",
        f"n,n\n{SECRET},1\n",
        f"n\n{SECRET}",
        f"n\n{'9' * 200_000}{SECRET}\n",
        f"n\n\x00{SECRET}\xff\n",
        "",
        "\n",
        "n\n",
    ],
)
def test_no_error_shows_what_is_in_the_file(text, tmp_path):
    path = tmp_path / "odd.csv"
    path.write_bytes(text.encode("latin-1"))
    result = sordino("release", path, "--counts-column", "n", "--epsilon", 1)
    assert result.exit_code == 3
    assert result.stderr.count("\n") == 1
    assert SECRET not in result.output
    assert "Traceback" not in result.output
    chain = result.exception
    while chain is not None:
        assert SECRET not in str(chain)
        chain = chain.__cause__


def test_another_number_of_rows_than_planned(daily, tmp_path):
    plan = tmp_path / "plan.json"
    sordino("plan", "--workload", "running-sum", "--length", 7, "--epsilon", 1, "--save", plan)
    assert sordino("release", daily, "--counts-column", "flights", "--plan", plan).exit_code == 3


# As installed.


def installed(*arguments, **options):
    program = Path(sys.executable).with_name("sordino")
    if not program.exists():
        pytest.skip("the command is not installed beside this Python")
    command = [str(program), *(str(argument) for argument in arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **options)


@pytest.mark.slow
def test_the_installed_command(daily, tmp_path):
    done = installed("plan", *AVERAGE, *APPROX, "--save", tmp_path / "plan.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    done = installed("explain", tmp_path / "plan.json")
    assert done.stdout == so.Plan.load(tmp_path / "plan.json").explain() + "\n"
    done = installed("release", daily, "--counts-column", "flights", "--plan", tmp_path / "plan.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(json.loads(done.stdout)["answers"]["value"]) == 100
    done = installed("compare", *AVERAGE, "--epsilon", "x")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("missing", ["click", "rich"])
def test_without_the_extra_one_line_says_so(missing):
    program = f"import sys; sys.modules[{missing!r}] = None; from sordino.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr == f"sordino: the command line needs {missing}: pip install 'sordino[cli]'\n"


@pytest.mark.slow
def test_plans_do_not_need_matplotlib():
    program = (
        "import sys; sys.modules['matplotlib'] = None; sys.argv = ['sordino', *sys.argv[1:]];"
        "from sordino.cli import main; main()"
    )
    command = [sys.executable, "-c", program, "plan", *AVERAGE, *APPROX]
    assert subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0
    done = subprocess.run([*command, "--plot", "x.png"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "sordino[plot]" in done.stderr
