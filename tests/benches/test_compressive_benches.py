"""The benchmarks of sketches, in their short form: they run, and their verdicts are those of theory."""

import pytest
from bench_runs import rows


@pytest.mark.slow
@pytest.mark.parametrize("section", ["static", "choice", "memory", "streams", "phase"])
def test_errors(section):
    pytest.importorskip("scipy")
    found = rows("compressive_errors.py", section)
    assert found
    if section in {"static", "streams"}:
        # Cells with a threshold have less error than any sketch.
        assert all(row["ratio"] > 1.0 for row in found)


@pytest.mark.slow
@pytest.mark.parametrize("section", ["dense", "hadamard", "sparse", "updates", "adjoints", "bases", "growth"])
def test_speed(section):
    """Nothing is asserted about time."""
    pytest.importorskip("scipy")
    assert all(row["ours"] for row in rows("compressive.py", section))


@pytest.mark.slow
@pytest.mark.parametrize("section", ["recovery from sparse", "recovery from hadamard", "isotonic"])
def test_speed_beside_scikit_learn(section):
    pytest.importorskip("sklearn")
    assert all(row["ours"] for row in rows("compressive.py", section))
