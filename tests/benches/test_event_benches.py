"""The benchmarks of event streams, in their short form: they run, and their verdicts are those of theory."""

import re

import pytest
from bench_runs import rows


@pytest.fixture(autouse=True)
def _libraries():
    """The benchmarks of streams are imported by those of errors."""
    for library in ("igraph", "networkx", "matplotlib"):
        pytest.importorskip(library)


def test_the_chosen_counters_have_less_error_than_trees():
    found = rows("event_errors.py", "planned")
    assert len(found) == 7
    assert all(row["ratio"] < 0.5 for row in found)


def test_printed_sensitivities_of_words_are_too_small():
    found = {row["what"]: row["ratio"] for row in rows("event_errors.py", "sensitivities")}
    substrings = [ratio for what, ratio in found.items() if "substrings" in what]
    # One letter: sqrt(2). Then 1.39 and more, growing with the length.
    assert substrings[0] == pytest.approx(2**0.5, rel=1e-3)
    assert substrings[1] == pytest.approx(1.39, abs=0.02)
    assert substrings[1:] == sorted(substrings[1:])
    assert substrings[-1] > 2.4
    assert all(ratio > 1.0 for what, ratio in found.items() if "episodes" in what)
    assert all(ratio == pytest.approx(5**0.5 / 3.0, rel=1e-3) for what, ratio in found.items() if "enforced" in what)


def test_measured_errors_are_the_planned_ones():
    found = rows("event_errors.py", "measured")
    assert len(found) == 3
    assert all(row["met"] for row in found)


def test_cuts_stay_within_their_bounds_and_leave_the_corollary():
    found = rows("event_errors.py", "cuts")
    assert all(row["met"] for row in found if row["goal"])
    # The corollary fails from 300 vertices on; the short run has 100 and comes close.
    assert next(row["ratio"] for row in found if "Corollary" in row["what"]) == pytest.approx(0.88, abs=0.06)


def test_segments_are_planned_worse_than_one_running_sum_under_approximate_privacy():
    found = [row for row in rows("event_errors.py", "sparse") if "approximate" in row["what"]]
    planned = [[float(re.search(r"\(([\d.e+]+)\)", row[side])[1]) for side in ("ours", "other")] for row in found]
    assert len(planned) == 3
    assert all(segments > 1.5 * plain for segments, plain in planned)


def test_risk_needs_its_constant():
    found = [row for row in rows("event_errors.py", "local") if "local survey" in row["what"]]
    assert len(found) == 6
    assert all(row["ratio"] < 0.7 for row in found)


@pytest.mark.parametrize("section", ["flights", "substrings", "episodes"])
def test_real_streams_stay_within_their_intervals(section):
    bounded = [row for row in rows("event_errors.py", section) if row["goal"]]
    assert bounded
    assert all(row["met"] for row in bounded)


@pytest.mark.slow
@pytest.mark.parametrize("section", ["functions", "forest", "substrings", "episodes", "reads", "dense", "local"])
def test_speed(section):
    """Nothing is asserted about time."""
    assert all(row["ours"] for row in rows("event_streams.py", section))
