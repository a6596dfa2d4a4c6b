"""`sordino smooth`: a summary of a file of points, saved, read and asked."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

import sordino as so
from command_line import done, sordino, write
from sordino.cli import tables
from sordino.mechanisms.smooth import sizing as fitting

N = 5000
COLUMNS = ["--column", "age:18..100", "--column", "weight:30..200"]
KERNELS = ["--bandwidth", 8, "--bandwidth", 12, "--points", N]
APPROXIMATE = ["--epsilon", 1, "--delta", 1e-6]
PLANNED = [*COLUMNS, *KERNELS, *APPROXIMATE]


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(4)
    return np.column_stack([rng.normal(50, 12, N), rng.normal(80, 15, N)])


@pytest.fixture
def visits(tmp_path, points):
    rows = [("x", age, weight) for age, weight in points.tolist()]
    return write(tmp_path / "visits.csv", ["who", "age", "weight"], rows)


@pytest.fixture
def summary(tmp_path, visits):
    out = tmp_path / "summary.json"
    done("smooth", "release", visits, *PLANNED, "--output", out)
    return out


def kernel_average(points, place):
    return np.exp(-0.5 * (((points - place) / (8, 12)) ** 2).sum(axis=1)).mean()


def within(answers, truth, errors=6.0):
    """The released average is near the true one, at the standard error that it comes with."""
    off = abs(answers["value"] - truth)
    return off <= errors * answers["stderr"] + answers["truncation"]


def asked(*arguments):
    record = json.loads(done("smooth", "query", *arguments).stdout)
    columns = record["answers"]
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return record, rows


# Release, and what it can be asked.


def test_places(summary, points):
    record, rows = asked(summary, "--at", "45,80", "--at", "60,95")
    assert record["mechanism"] == "kernel-gaussian"
    assert record["private"] is True
    assert record["points"] == pytest.approx(N, abs=200)
    assert [(row["age"], row["weight"]) for row in rows] == [(45.0, 80.0), (60.0, 95.0)]
    for row in rows:
        assert within(row, kernel_average(points, (row["age"], row["weight"])))
        assert row["stderr"] < 0.01
        assert row["lower"] < row["value"] < row["upper"]


def test_a_file_of_places(tmp_path, summary, points):
    # Columns are found by name, whatever their order.
    places = write(tmp_path / "places.csv", ["weight", "note", "age"], [(80, "a", 45), (95, "b", 60)])
    out = tmp_path / "answers.csv"
    result = done("smooth", "query", summary, "--at-file", places, "--output", out)
    assert not result.stdout
    rows = read(out)
    assert list(rows[0]) == ["age", "weight", "value", "stderr", "truncation", "lower", "upper"]
    for row, place in zip(rows, ((45, 80), (60, 95)), strict=True):
        assert within({name: float(value) for name, value in row.items()}, kernel_average(points, place))


def test_moments_and_boxes(summary, points):
    _, rows = asked(summary, "--moment", "1,0", "--moment", "0,1")
    for row, truth in zip(rows, np.clip(points, (18, 30), (100, 200)).mean(axis=0), strict=True):
        assert within(row, truth)
        assert abs(row["value"] / truth - 1.0) < 0.1
    _, rows = asked(summary, "--box", "40..60,..", "--box", "..,100..", "--smoothing", 3, "--smoothing", 6)
    for row, j, low, high, soft in ((rows[0], 0, 40, 60, 3), (rows[1], 1, 100, 1e9, 6)):
        x = points[:, j]
        truth = np.mean(0.5 * (np.tanh((x - low) / (2 * soft)) - np.tanh((x - high) / (2 * soft))))
        assert within(row, truth)


def test_density_and_another_bandwidth(summary, points):
    _, (row,) = asked(summary, "--at", "50,80", "--density")
    # Kernels this far from the bounds integrate to one.
    volume = 2 * np.pi * 8 * 12
    assert row["value"] == pytest.approx(kernel_average(points, (50, 80)) / volume, rel=0.05)
    _, (row,) = asked(summary, "--at", "50,80", "--bandwidth", 16, "--bandwidth", 24)
    truth = np.exp(-0.5 * (((points - (50, 80)) / (16, 24)) ** 2).sum(axis=1)).mean()
    assert within(row, truth)


def test_projected(summary):
    record, (row,) = asked(summary, "--at", "99,199", "--projected")
    assert record["post_processing"] == ["projected"]
    assert 0.0 <= row["value"] <= 1.0


@pytest.mark.filterwarnings("ignore:deterministic noise")
def test_the_summary_is_the_release(tmp_path, visits, points):
    """Asked on the command line or in Python, read or never written: the same numbers."""
    out = tmp_path / "s.json"
    with so.testing.deterministic_noise(bytes(32)):
        done("smooth", "release", visits, *PLANNED, "--output", out)
        workload = so.smooth.SmoothQueries(
            2, points=N, bounds=[(18, 100), (30, 200)], query_class=so.smooth.GaussianKernels((8.0, 12.0))
        )
        own = so.plan(workload, so.ApproxDP(epsilon=1, delta=1e-6), unit=so.AddRemove(1, label="one record"))
        release = own.release(points)
    loaded = so.smooth.SmoothRelease.load(out)
    assert loaded.names == ("age", "weight")
    assert loaded.private is False
    assert np.array_equal(loaded.measured.units, release.measured.units)
    assert loaded.fit.digest == release.fit.digest
    at = so.smooth.GaussianKernels((8.0, 12.0)).at([[45.0, 80.0]])
    assert np.array_equal(loaded.query(at).values, release.query(at).values)


def test_functions_of_a_class_of_derivatives(tmp_path, visits):
    out = tmp_path / "s.json"
    options = [*COLUMNS, "--smooth-order", 4, "--points", N, *APPROXIMATE, "--mechanism", "chebyshev", "--degree", 5]
    done("smooth", "release", visits, *options, "--output", out)
    release = so.smooth.SmoothRelease.load(out)
    assert release.fit.sizes == (5, 5)
    assert sordino("smooth", "query", out, "--at", "45,80").exit_code == 2
    _, rows = asked(out, "--at", "45,80", "--bandwidth", 40)
    assert 0.0 < rows[0]["value"] < 1.0


def test_declared_queries_in_many_columns(tmp_path):
    rng = np.random.default_rng(8)
    names = [f"x{j}" for j in range(20)]
    points = rng.uniform(-1, 1, (2000, 20))
    path = write(tmp_path / "wide.csv", names, points.tolist())
    centres = rng.uniform(-1, 1, (30, 20))
    file, out = write(tmp_path / "centres.csv", names, centres.tolist()), tmp_path / "s.json"
    columns = [option for name in names for option in ("--column", f"{name}:-1..1")]
    kernels = ["--bandwidth", 3, "--centres-file", file, "--points", 2000]
    done("smooth", "release", path, *columns, *kernels, *APPROXIMATE, "--output", out)
    _, rows = asked(out, "--declared")
    for row, centre in zip(rows, centres, strict=True):
        assert within(row, np.exp(-0.5 * (((points - centre) / 3) ** 2).sum(axis=1)).mean())
    assert sordino("smooth", "query", out, "--at", ",".join(["0"] * 20)).exit_code == 4


# What a row is.


def test_rows_without_numbers_are_no_points(tmp_path, points, monkeypatch):
    monkeypatch.setattr(tables, "_CHUNK", 7)
    rows = [*points[:100].tolist(), ("", 80), (50, "x"), ("nan", 70), ("inf", 70), (50,), (1000, -3)]
    path, out = write(tmp_path / "a.csv", ["age", "weight"], rows), tmp_path / "s.json"
    seen = {}
    release = so.ReleasePlan.release

    def watched(plan, data, **options):
        seen["sums"] = plan.sums(data)
        return release(plan, seen["sums"], **options)

    monkeypatch.setattr(so.ReleasePlan, "release", watched)
    result = done("smooth", "release", path, *PLANNED, "--output", out)
    # Out of bounds is a point still.
    assert seen["sums"].core.count == 102
    assert "102" not in result.output


def test_public_numbers_of_points(tmp_path, visits, points):
    out = tmp_path / "s.json"
    replace = [*PLANNED, "--replace", "--output", out]
    done("smooth", "release", visits, *replace)
    record, (row,) = asked(out, "--at", "45,80")
    assert record["points"] == N
    assert within(row, kernel_average(points, (45, 80)))
    fewer = write(tmp_path / "fewer.csv", ["age", "weight"], points[:-1].tolist())
    assert sordino("smooth", "release", fewer, *replace).exit_code == 2
    holes = write(tmp_path / "holes.csv", ["age", "weight"], [*points[:-1].tolist(), (50, "")])
    done("smooth", "release", holes, *replace)  # in the middle of the bounds


def test_parquet_and_standard_input(tmp_path, points, visits):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path, out = tmp_path / "v.parquet", tmp_path / "s.json"
    pq.write_table(pa.table({"age": [*points[:, 0].tolist(), None], "weight": [*points[:, 1].tolist(), 1.0]}), path)
    truth = kernel_average(points, (45, 80))
    for source, text in ((path, None), ("-", visits.read_text())):
        done("smooth", "release", source, *PLANNED, "--output", out, text=text)
        _, (row,) = asked(out, "--at", "45,80")
        assert within(row, truth)
    answers = tmp_path / "a.parquet"
    done("smooth", "query", out, "--at", "45,80", "--output", answers)
    assert pq.read_table(answers).column_names[:3] == ["age", "weight", "value"]


# Plans and pictures.


def test_plans_touch_no_data(tmp_path):
    plan = tmp_path / "plan.json"
    result = done("smooth", "release", tmp_path / "absent.csv", *PLANNED, "--plan")
    assert "kernel-gaussian, chosen by auto" in result.stdout
    assert "histogram-laplace" in result.stdout
    assert not plan.exists()


def test_saved_plans(tmp_path, visits):
    plan, out = tmp_path / "plan.json", tmp_path / "s.json"
    done("smooth", "release", visits, *PLANNED, "--save-plan", plan, "--output", out)
    done("smooth", "release", visits, *COLUMNS, "--plan-file", plan, "--output", out)
    assert so.smooth.SmoothRelease.load(out).fit.digest == so.ReleasePlan.load(plan).digest
    others = ["--column", "age:18..100", "--column", "weight:30..201"]
    for options in ([*others], [*COLUMNS, "--epsilon", 2]):
        assert sordino("smooth", "release", visits, *options, "--plan-file", plan, "--output", out).exit_code == 2


def test_pictures(tmp_path, visits):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "density.png"
    done("smooth", "release", visits, *PLANNED, "--output", tmp_path / "s.json", "--plot", picture)
    assert picture.read_bytes().startswith(b"\x89PNG")


# Files that are no summaries.


def test_altered_summaries(tmp_path, summary, visits):
    record = json.loads(summary.read_text())
    other = tmp_path / "other.json"
    record["private"] = False
    other.write_text(json.dumps(record))
    result = sordino("smooth", "query", other, "--at", "45,80")
    assert result.exit_code == 3
    assert "altered" in result.output
    for text in ("", "[]", "{}", '{"schema": 1}'):
        other.write_text(text)
        assert sordino("smooth", "query", other, "--at", "45,80").exit_code == 3
    assert sordino("smooth", "query", tmp_path / "absent.json", "--at", "45,80").exit_code == 3


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"units": {"integers": [1, 2], "shape": [2]}}, "another number of sums"),
        ({"units": {"array": [1.5], "shape": [1]}}, "no integers"),
        ({"units": 3}, "no integers"),
        ({"grid": 5}, "other noise"),
        ({"features": "00" * 8}, "on this machine"),
        ({"names": ["age", "weight"]}, "names"),
        ({"kind": "plan"}, "not a saved summary"),
        ({"plan": {}}, "no plan"),
    ],
)
def test_summaries_that_do_not_fit_their_plan(tmp_path, change, says):
    """Made by somebody who knows how to make a digest."""
    from sordino._support.records import write_record

    workload = so.smooth.SmoothQueries(1, points=50, bounds=(0, 1), query_class=so.smooth.GaussianKernels(0.3))
    plan = so.plan(workload, so.PureDP(epsilon=1))
    path = plan.release(np.linspace(0, 1, 50)).save(tmp_path / "s.json")
    record = json.loads(path.read_text())
    del record["digest"]
    write_record(record | change, path)
    with pytest.raises(so.errors.PlanFileError, match=says):
        so.smooth.SmoothRelease.load(path)


def test_large_summaries_have_a_file_beside_them(tmp_path):
    points = np.random.default_rng(1).uniform(-1, 1, (3000, 3))
    workload = so.smooth.SmoothQueries(
        3, points=3000, bounds=(-1, 1), query_class=so.smooth.GaussianKernels(0.5), degree=9
    )
    release = so.plan(workload, so.ZeroConcentratedDP(rho=0.5), mechanism="chebyshev").release(points)
    path = release.save(tmp_path / "s.json")
    (beside,) = tmp_path.glob("s.json.*.npz")
    assert beside.exists()
    loaded = so.smooth.SmoothRelease.load(path)
    assert np.array_equal(loaded.measured.units, release.measured.units)
    assert np.array_equal(loaded.sums, release.sums)
    beside.unlink()
    with pytest.raises(so.errors.PlanFileError, match="missing"):
        so.smooth.SmoothRelease.load(path)


def test_other_machines_may_find_other_eigenvectors(tmp_path, monkeypatch):
    """Files carry the features of a kernel: what was made elsewhere is read with the features from there."""
    points = np.random.default_rng(2).normal(0, 0.3, (4000, 2))
    workload = so.smooth.SmoothQueries(2, points=4000, bounds=(-1, 1), query_class=so.smooth.GaussianKernels(0.6))
    privacy, found = so.ApproxDP(epsilon=1, delta=1e-6), fitting.kernel_axis

    def elsewhere(*arguments):
        axis = found(*arguments)
        return replace(axis, mixing=np.ascontiguousarray(axis.mixing * (-1.0) ** np.arange(len(axis.mixing))[:, None]))

    with monkeypatch.context() as patched:
        patched.setattr(fitting, "kernel_axis", elsewhere)
        plan = so.plan(workload, privacy, mechanism="kernel")
    release = plan.release(points)
    loaded = so.smooth.SmoothRelease.load(release.save(tmp_path / "s.json"))
    at = so.smooth.GaussianKernels(0.6).at([[0.1, 0.0]])
    assert np.array_equal(loaded.query(at).values, release.query(at).values)
    # Sums for the plan that was sent merge; for one that was fitted here they do not.
    sent = so.ReleasePlan.load(plan.save(tmp_path / "p.json"))
    assert (plan.sums(points) + sent.sums(points)).core.count == 8000
    with pytest.raises(so.errors.InvalidParameterError, match="other features"):
        plan.sums() + so.plan(workload, privacy, mechanism="kernel").sums(points)


# Refusals.


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--column", "age", *KERNELS, *APPROXIMATE], "never taken from the data"),
        (["--column", "age:18..x", *KERNELS, *APPROXIMATE], "never taken from the data"),
        (["--column", "age:18..inf", *KERNELS, *APPROXIMATE], "never taken from the data"),
        (["--column", "age:100..18", "--bandwidth", 8, "--points", 5, *APPROXIMATE], "below"),
        (["--column", "age:0..1", "--column", "age:0..2", *KERNELS, *APPROXIMATE], "twice"),
        (["--column", "value:0..1", *KERNELS, *APPROXIMATE], "of their own"),
        ([*KERNELS, *APPROXIMATE], "--column"),
        ([*COLUMNS, "--bandwidth", 8, *APPROXIMATE], "--points"),
        ([*COLUMNS, "--points", N, *APPROXIMATE], "--bandwidth"),
        ([*COLUMNS, *KERNELS], "privacy"),
        ([*COLUMNS, *KERNELS, *APPROXIMATE, "--smooth-order", 3], "class of its own"),
        ([*COLUMNS, *KERNELS, *APPROXIMATE, "--smooth-bound", 3], "--smooth-order"),
        ([*COLUMNS, *KERNELS, *APPROXIMATE, "--objective", "max"], "--objective"),
        ([*COLUMNS, *KERNELS, *APPROXIMATE, "--degree", "much"], "degree"),
        ([*COLUMNS, *KERNELS, *APPROXIMATE, "--mechanism", "tree"], "mechanism"),
        ([*COLUMNS, *KERNELS, *APPROXIMATE, "--degree", 20000, "--mechanism", "chebyshev"], "degree"),
        (
            [
                *COLUMNS,
                "--column",
                "lab:0..9",
                "--bandwidth",
                1,
                "--points",
                9,
                *APPROXIMATE,
                "--degree",
                600,
                "--mechanism",
                "chebyshev",
            ],
            "memory",
        ),
        ([*COLUMNS, "--bandwidth", 1, "--bandwidth", 1, "--bandwidth", 1, "--points", 5, *APPROXIMATE], "bandwidth"),
    ],
)
def test_releases_are_refused(tmp_path, visits, options, says):
    result = sordino("smooth", "release", visits, *options, "--output", tmp_path / "s.json")
    assert result.exit_code in (2, 4)
    assert says in result.output
    assert len(result.output.strip().splitlines()) == 1
    assert not (tmp_path / "s.json").exists()


def test_outputs_are_checked_first(tmp_path, visits):
    for output in (tmp_path / "s.csv", tmp_path / "absent" / "s.json"):
        assert sordino("smooth", "release", visits, *PLANNED, "--output", output).exit_code in (2, 3)
    assert sordino("smooth", "release", visits, *PLANNED).exit_code == 2
    assert (
        sordino("smooth", "release", tmp_path / "absent.csv", *PLANNED, "--output", tmp_path / "s.json").exit_code == 3
    )


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--at", "45"],
        ["--at", "45,x"],
        ["--at", "45,80", "--moment", "1,0"],
        ["--at", "45,80", "--smoothing", 1],
        ["--at", "45,80", "--kernel", "laplace"],
        ["--at", "45,80", "--density", "--kernel", "laplace", "--bandwidth", 3],
        ["--moment", "1,0.5"],
        ["--moment", "1,0", "--density"],
        ["--box", "40..60,.."],
        ["--box", "40..60", "--smoothing", 1],
        ["--box", "40,60", "--smoothing", 1],
        ["--box", "60..40,..", "--smoothing", 1],
        ["--box", "40..x,..", "--smoothing", 1],
        ["--at", "45,80", "--level", 1],
        ["--at", "45,80", "--output", "a.txt"],
    ],
)
def test_questions_are_refused(summary, options):
    result = sordino("smooth", "query", summary, *options)
    assert result.exit_code == 2, result.output


def test_places_must_be_numbers(tmp_path, summary):
    for rows in ([(45, "x")], [], [(45, "")]):
        path = write(tmp_path / "p.csv", ["age", "weight"], rows)
        assert sordino("smooth", "query", summary, "--at-file", path).exit_code == 3
    path = write(tmp_path / "p.csv", ["age"], [(45,)])
    assert sordino("smooth", "query", summary, "--at-file", path).exit_code == 3


def test_declared_only_where_declared(summary):
    assert sordino("smooth", "query", summary, "--declared").exit_code == 4
