"""The benchmarks of consistent tables, in their short form: they run, and ours is nearer than what it begins with."""

import importlib.util

import pytest
from bench_runs import rows

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("mbi") is None or importlib.util.find_spec("statsmodels") is None,
        reason="they are in requirements/bench.txt",
    ),
]


def test_errors():
    found = rows("consistent.py", "errors anes96")
    ratios = {row["other"].split(":")[0]: row["ratio"] for row in found if ": consistent()" in row["what"]}
    assert ratios["least squares"] < 1.0
    assert ratios["clip at zero"] < 1.0
    assert all(row["met"] for row in found if row["goal"])


@pytest.mark.parametrize("section", ["times fair", "single fair", "hundred 1", "hundred numpy"])
def test_speed(section):
    """Nothing is asserted about time."""
    assert all(row["ours"] for row in rows("consistent.py", section))
