"""The comparison with other libraries, in its short form: every contestant runs, and lines are counted as said."""

import importlib.util
import sys

import pytest
from bench_runs import BENCHES, rows

JOBS = sorted(path.stem for path in (BENCHES / "compare").glob("*.py") if path.stem != "__init__")
PEERS = ("opendp", "jax_privacy", "mbi", "diffprivlib", "dp_accounting")


def of(name):
    """Return the figures of a job by contestant."""
    return {figure["contestant"]: figure for figure in rows("comparison.py", name)}


def test_there_are_twelve_jobs_with_both_baselines():
    assert len(JOBS) == 12
    for name in JOBS:
        text = (BENCHES / "compare" / f"{name}.py").read_text()
        assert all(f"\ndef {contestant}(" in text for contestant in ("sordino", "plain_python", "numpy"))


def test_lines_are_those_of_code(monkeypatch):
    def example(data):
        """Not counted."""
        # Nor is this.

        total = sum(
            data,
        )
        return total

    monkeypatch.setattr(sys, "path", [str(BENCHES), *sys.path])
    spec = importlib.util.spec_from_file_location("comparison", BENCHES / "comparison.py")
    comparison = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "comparison", comparison)
    spec.loader.exec_module(comparison)
    assert comparison.lines(example) == 4


@pytest.mark.slow
@pytest.mark.skipif(
    any(importlib.util.find_spec(peer) is None for peer in PEERS), reason="they are in requirements/bench.txt"
)
@pytest.mark.parametrize("name", JOBS)
def test_every_contestant_does_the_job(name):
    """Nothing is asserted about time; no error is so large that the answer would be to another question."""
    found = of(name)
    assert {"sordino", "plain_python", "numpy"} <= set(found)
    least = min(figure["error"] for figure in found.values())
    assert all(0.0 < figure["error"] < 20.0 * least for figure in found.values())
    assert all(figure["lines"] >= 1 for figure in found.values())
