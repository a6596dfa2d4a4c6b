"""The golden table: a change of the house changes no mechanism, no noise, no cost and no released bit."""

import json
import math

import golden
import pytest

STORED = json.loads(golden.TABLE.read_text())
LINES = dict(golden.lines())


def test_every_case_is_there_once():
    assert LINES.keys() == STORED.keys()
    assert len(LINES) > 300


ERRORS = ("rmse", "max_stderr", "optimality")
# How far from each other searches end on two processors, relative to the mean error, and to others: it alone is searched for.
ENDS = {"optimal": (1e-9, 1e-9), "p-identity": (1e-5, 1e-2), "mixed product": (1e-9, 1e-9)}


def same(line, stored, found):
    """All exactly, bits released included; where a search ended elsewhere, as on another processor: nearly these."""
    if stored == found:
        return True
    mechanism = stored.get("mechanism")
    if mechanism is None:
        # The privacy that an error asks for, searched for too.
        return math.isclose(stored["cost"].get("epsilon", 0.0), found["cost"].get("epsilon", 0.0), rel_tol=1e-9)
    if mechanism.startswith("universal-"):
        # Decoded by a decomposition that ends in the last bit elsewhere on another processor; all else is the same.
        return {**stored, "released": None} == {**found, "released": None}
    ends = next((ends for searched, ends in ENDS.items() if searched in f"{line} {mechanism}"), None)
    errors = {name: (stored[name], found.get(name)) for name in ERRORS if isinstance(stored.get(name), str)}
    if ends is None or not all(isinstance(other, str) for _, other in errors.values()):
        return False
    near = all(
        math.isclose(float(one), float(other), rel_tol=ends[name != "rmse"]) for name, (one, other) in errors.items()
    )
    others = stored.keys() - {*errors, "released"}
    return near and all(stored[name] == found.get(name) for name in others)


@pytest.mark.parametrize("name", sorted({name.split(" / ")[0] for name in LINES}))
def test_nothing_changed(name):
    """All entries of a kind together: a thousand tests of milliseconds would take longer to collect than to run."""
    changed = {
        line: (STORED[line], entry)
        for line, make in LINES.items()
        if line.split(" / ")[0] == name and not same(line, STORED[line], entry := make())
    }
    assert not changed
