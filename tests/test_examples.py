"""The examples run as a user runs them."""

import base64
import csv
import hashlib
import importlib
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(name, *arguments, cwd):
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


def test_quickstart(tmp_path):
    text = run("quickstart.py", cwd=tmp_path)
    assert "identity-laplace, chosen by auto" in text
    assert "95 % interval" in text


@pytest.mark.slow
def test_marginals(tmp_path):
    text = run("marginals.py", cwd=tmp_path)
    assert "fourier-gaussian, chosen by auto" in text
    assert "is the same in all its 19 tables: True" in text


@pytest.mark.slow
def test_any_matrix(tmp_path):
    text = run("any_matrix.py", cwd=tmp_path)
    assert "optimal-gaussian, chosen by auto" in text
    assert "of the least error, certified" in text
    total = re.search(r"all shops: ([0-9.]+), standard error ([0-9.]+), true ([0-9]+)", text)
    published, stderr, true = map(float, total.groups())
    assert abs(published - true) < 6.0 * stderr


@pytest.mark.slow
def test_sketch_services(tmp_path):
    text = run("sketch_services.py", cwd=tmp_path)
    assert "compressive-laplace, as asked" in text
    sent, cells = map(int, re.search(r"each service: (\d+) in place of (\d+)", text).groups())
    assert sent < cells / 25
    sketch, zero = map(float, re.search(r"from the sketch: ([0-9.]+) \(an answer of zero: ([0-9.]+)\)", text).groups())
    threshold = float(re.search(r"with a threshold: ([0-9.]+)", text)[1])
    # The table is found; all cells say more.
    assert sketch < zero / 10
    assert threshold < sketch
    assert "1 charged" in text
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_smooth_services(tmp_path):
    text = run("smooth_services.py", cwd=tmp_path)
    assert "kernel-gaussian, chosen by auto" in text
    error, planned = map(float, re.search(r"error ([0-9.]+), as planned ([0-9.]+)", text).groups())
    # Errors of neighbouring kernels go together, so one run may be off; a factor of three it is not.
    assert planned / 3 < error < 3 * planned
    drawn, true = map(float, re.search(r"synthetic patients: ([0-9.]+), of the patients ([0-9.]+)", text).groups())
    assert abs(drawn - true) < 1.5
    assert "1 charged" in text
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_event_services(tmp_path):
    text = run("event_services.py", cwd=tmp_path)
    cuts = re.findall(r"to Florida by day \d+: (\d+) ± (\d+), true (\d+)", text)
    assert len(cuts) == 4
    for published, stderr, true in (map(float, cut) for cut in cuts):
        assert abs(published - true) < 6.0 * stderr + 1.0
    # The least busy airport of the list is Sarasota, with 1203 flights.
    least, low, high = map(float, re.search(r"airport: (\d+) flights, 95 %: (\d+) to (\d+)", text).groups())
    assert abs(least - 1203.0) < 2.0 * (high - low)
    assert "lightest cut: SRQ" in text
    assert "1 charged" in text
    width = float(re.search(r"± (\d+) for all", text)[1])
    published, true = map(float, re.search(r"'the': published (\d+), true (\d+)", text).groups())
    assert abs(published - true) < 2.0 * width
    median, true = map(float, re.search(r"median wait: ([0-9.]+) minutes, true ([0-9.]+)", text).groups())
    assert abs(median - true) < 5.0
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quickstart.py", "marginals.py", "any_matrix.py"])
def test_short_examples_are_short(name):
    assert len((EXAMPLES / name).read_text().splitlines()) < 40


@pytest.mark.slow
def test_demo(tmp_path):
    pytest.importorskip("matplotlib")
    text = run("demo.py", "--out", "pictures", cwd=tmp_path)
    out = tmp_path / "pictures"
    pictures = list(out.glob("*.png"))
    assert len(pictures) == 17
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)
    with (out / "table.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 11
    for row in rows:
        # Errors of neighbouring answers go together, so one run may be off; a factor of five it is not.
        assert 0.2 < float(row["this run's rmse"]) / float(row["promised rmse"]) < 5.0
    assert "== ledger: ApproxDP(epsilon=3.0, delta=1e-06) for everything about one voter ==" in text
    assert (out / "table.md").read_text() in text
    assert "bounds leave out 20" in text  # per cent, of public data; the same in every run
    moments = [line.strip("| ").split(" | ") for line in (out / "departures_live.md").read_text().splitlines()[2:]]
    assert [moment[1] for moment in moments][-1] == "328,521"
    for _, truth, published, stderr in moments:
        assert abs(float(published.replace(",", "")) - float(truth.replace(",", ""))) < 6.0 * float(stderr)
    by_name = {row["queries"]: row for row in rows}
    assert by_name["visits: all ranges"]["mechanism"] == "optimal-gaussian"
    assert float(by_name["visits: all ranges"]["over the bound"]) == pytest.approx(1.0, abs=0.001)
    projected = by_name["survey: tables of two questions, projected"]
    assert projected["mechanism"] == "sparse-gaussian"
    assert projected["this run's rmse"] != by_name["survey: the same, not projected"]["this run's rmse"]


@pytest.mark.slow
def test_data_is_what_its_page_says():
    page = (EXAMPLES / "data" / "README.md").read_text()
    files = [file for file in (EXAMPLES / "data").iterdir() if file.suffix in {".csv", ".txt"}]
    assert len(files) == 5
    for file in files:
        content = file.read_bytes()
        header = file.suffix == ".csv"
        rows, size = len(content.splitlines()) - header, len(content)
        assert size < 900_000
        assert f"| `{file.name}` | {rows:,}{'' if header else ' (no header)'} | {size:,} |" in page
        assert f"{hashlib.sha256(content).hexdigest()}  {file.name}" in page


def test_the_notebook_shows_what_it_says(monkeypatch):
    """Run cell by cell: text and cards are those that are kept in it, pictures are of the same size and not empty."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    monkeypatch.syspath_prepend(str(EXAMPLES.parent / "scripts"))
    path = EXAMPLES / "published.ipynb"
    shown = importlib.import_module("notebook").outputs(path)
    kept = [cell["outputs"] for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    pictures = 0
    for own, before in zip(shown, kept, strict=True):
        assert [set(each.get("data", {})) for each in own] == [set(each.get("data", {})) for each in before]
        for each, old in zip(own, before, strict=True):
            if "image/png" not in each.get("data", {}):
                assert each == old
                continue
            now, then = (
                matplotlib.image.imread(io.BytesIO(base64.b64decode(o["data"]["image/png"]))) for o in (each, old)
            )
            assert now.shape == then.shape and now.std() > 0.05
            pictures += 1
    assert pictures >= 5
