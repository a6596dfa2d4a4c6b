"""The examples run as a user runs them."""

import csv
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


def test_marginals(tmp_path):
    text = run("marginals.py", cwd=tmp_path)
    assert "fourier-gaussian, chosen by auto" in text
    assert "is the same in all its 19 tables: True" in text


@pytest.mark.parametrize("name", ["quickstart.py", "marginals.py"])
def test_short_examples_are_short(name):
    assert len((EXAMPLES / name).read_text().splitlines()) < 40


def test_demo(tmp_path):
    pytest.importorskip("matplotlib")
    text = run("demo.py", "--out", "pictures", cwd=tmp_path)
    out = tmp_path / "pictures"
    pictures = list(out.glob("*.png"))
    assert len(pictures) == 13
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)
    with (out / "table.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 8
    for row in rows:
        # Errors of neighbouring answers go together, so one run may be off; a factor of five it is not.
        assert 0.2 < float(row["this run's rmse"]) / float(row["promised rmse"]) < 5.0
    assert "== ledger: ApproxDP(epsilon=2.5, delta=1e-06) for everything together ==" in text
    assert (out / "table.md").read_text() in text
    moments = [line.strip("| ").split(" | ") for line in (out / "departures_live.md").read_text().splitlines()[2:]]
    assert [moment[1] for moment in moments][-1] == "328,521"
    for _, truth, published, stderr in moments:
        assert abs(float(published.replace(",", "")) - float(truth.replace(",", ""))) < 6.0 * float(stderr)
