"""Through the door with a known key: neighbours come out no further apart than the noise is for.

Noise under one key is the same for both, so the difference of what is measured is that of the encodes, rounding
included: exact, for every mechanism. By brute force over a record in every cell, added and removed.
"""

import math

import cases
import numpy as np
import pytest

import sordino as so

TABLES = cases.table_mechanisms()
NAMES = [f"{mechanism}-{table}-{type(privacy).__name__}-{asked}" for table, privacy, mechanism, asked in TABLES]
SECRET = 86753


def measured(plan, data):
    with so.testing.deterministic_noise(cases.KEY):
        return plan.release(data).measured.values()


def size(plan, difference):
    """Return the norm of a difference that the plan's noise is for, in the unit of a record."""
    geometry = plan.fit.strategy.geometry
    if geometry not in {"blocks", "boxes"}:
        return float(np.linalg.norm(difference, ord=2 if geometry == "l2" else 1))
    # Of a row in m rows with a common radius: m + 1, and (m + 1)(m + 2)/3.
    variances, total, start = plan.fit.strategy.unit_variances(), 0.0, 0
    while start < len(difference):
        rows = round(variances[start] - 1.0 if geometry == "blocks" else math.sqrt(3.0 * variances[start] + 0.25) - 1.5)
        total += float(np.linalg.norm(difference[start : start + rows], ord=2 if geometry == "blocks" else np.inf))
        start += rows
    return total


def loss(plan, difference):
    """Return the largest privacy loss of discrete noise for this difference: whole steps, each of its row's rate."""
    steps, rates = plan.fit.rows
    moved = difference / steps
    assert np.array_equal(moved, np.rint(moved))
    return float(np.abs(moved) @ rates)


def neighbours(plan, data):
    """Return all tables, or lists of records, with one record more, less, or another one."""
    if isinstance(plan.workload, so.workloads.OfRecords):
        for level in np.ndindex(2, 3, 2):
            yield np.concatenate([data, [level]])
        for place in range(len(data)):
            yield np.delete(data, place, axis=0)
        return
    replaced = isinstance(plan.unit, so.ReplaceOne)
    for place in np.ndindex(data.shape):
        other = data.copy()
        other[place] += 1
        if replaced:
            other[np.unravel_index(np.argmax(data), data.shape)] -= 1
        yield np.sort(other) if isinstance(plan.workload, so.SortedHistogram) else other


@pytest.mark.parametrize("case", TABLES, ids=NAMES)
def test_no_record_moves_more_than_is_charged(case):
    plan, data = cases.table_plan(*case), cases.TABLES[case[0]][1]
    if plan.fit.strategy.geometry in {"body", "common"}:
        pytest.skip("norms of bodies are held by the Rust tests, common noise by test_common_noise.py")
    before = measured(plan, data)
    # Of the ideal strategy, of the encode, of rounding to the lattice.
    bound = float(sum(plan.fit.door.sensitivity))
    differences = [measured(plan, other) - before for other in neighbours(plan, data)]
    most = max(size(plan, difference) for difference in differences)
    assert 0.3 * bound < most <= bound * (1.0 + 1e-9)
    if getattr(plan.fit, "rows", None) is not None:
        assert isinstance(plan.cost, so.privacy.PureCost)
        assert max(loss(plan, difference) for difference in differences) <= plan.cost.epsilon * (1.0 + 1e-12)


@pytest.mark.parametrize("case", cases.STREAMS, ids=lambda case: case.name)
def test_noise_of_streams_does_not_depend_on_items(case):
    """Under one key two streams with the same items say the same; noise is a function of key and step."""
    with so.testing.deterministic_noise(cases.KEY):
        answers = []
        for _ in range(2):
            with case.plan.open() as stream:
                case.update(stream)
                case.update(stream)
                answers.append(case.total(stream))
    assert answers[0] == answers[1]


def test_noise_of_points_does_not_depend_on_them():
    plan = so.plan(cases.SMOOTH, cases.APPROX, unit=so.ReplaceOne(1))
    bound = float(sum(plan.fit.door.sensitivity))
    before = measured(plan, cases.POINTS)
    for place in np.linspace(-1.2, 1.2, 49):
        for which in range(len(cases.POINTS)):
            other = cases.POINTS.copy()
            other[which] = place
            assert size(plan, measured(plan, other) - before) <= bound * (1.0 + 1e-9)


@pytest.mark.parametrize("spender", [s for s in cases.RELEASES if s.hostile], ids=lambda spender: spender.name)
def test_no_private_value_is_in_a_message(spender):
    """Whatever is wrong with data, nothing that they hold is said, nor how many there are."""
    texts = []
    for data in ([SECRET] * 7 + ["x"], [SECRET, None, "y"], np.full(SECRET % 97, float(SECRET)), {SECRET: SECRET},
                 np.full((3, 3, 3), SECRET), [SECRET + 1j], [[SECRET], [SECRET, SECRET]], f"{SECRET}"):  # fmt: skip
        try:
            texts.append(repr(spender.spend(spender.plan, data, None, None)))
        except so.SordinoError as error:
            texts.append(f"{error} {error.__cause__} {error.__context__ if not error.__suppress_context__ else ''}")
    assert not [text for text in texts if str(SECRET) in text]
