"""The benchmark of ledgers and streams in a store, in its short form: it runs, on both engines."""

import re

import pytest
from bench_runs import rows


def engines(found):
    """Return the engines that rows are about."""
    return {row["what"].partition(",")[0] for row in found}


@pytest.mark.slow
@pytest.mark.parametrize("section", ["charges", "steps", "batches", "opening", "growth", "processes"])
def test_speed(section):
    """Nothing is asserted about time. Each section compares rows of its baseline with those of the store."""
    found = rows("services.py", section)
    assert all(row["ours"] for row in found)
    assert engines(found) == {"SQLite", "PostgreSQL"}


@pytest.mark.slow
def test_a_release_is_two_transactions():
    found = rows("services.py", "releases")
    assert len(found) == 4
    assert all("two transactions" in row["other"] for row in found)


@pytest.mark.slow
def test_rates_of_many_counters_are_those_of_their_times():
    found = rows("services.py", "many counters")
    assert len(found) == 4
    for row in found:
        counters = int(re.search(r"(\d+) live counters", row["what"])[1])
        steps, numbers = (
            float(re.search(rf"([\d.e+,]+) {what}/s", row["ours"])[1].replace(",", ""))
            for what in ("steps", "published numbers")
        )
        assert numbers == pytest.approx(counters * steps, rel=0.02)
