"""Record-level input with bounded contributions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sordino as so


def test_counts_of_codes_and_edges():
    table = so.tabulate([0, 1, 1, 2, 7, -1, float("nan")], 3)
    assert table.counts.tolist() == [1, 2, 1] and table.unit == so.AddRemove(1, label="one record")
    table = so.tabulate([0.0, 0.5, 1.0, 2.0, 9.0, None], [0.0, 1.0, 2.0])
    assert table.counts.tolist() == [2, 1]
    assert so.tabulate(["1", "x", None, 1.5], 3).counts.tolist() == [0, 1, 0]
    assert so.tabulate([], 3).counts.tolist() == [0, 0, 0]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-1, 4)), max_size=40), st.integers(1, 4), st.integers(0, 5))
def test_one_user_changes_at_most_max_records(rows, limit, user):
    """Brute force: removing any user moves the counts by at most the unit says, in l1."""

    def counts(kept):
        users = [u for u, _ in kept]
        return so.tabulate([c for _, c in kept], 4, user=users, max_records=limit)

    full, without = counts(rows), counts([row for row in rows if row[0] != user])
    assert np.abs(full.counts - without.counts).sum() <= limit == full.unit.records
    assert full.counts.sum() <= sum(0 <= c < 4 for _, c in rows)


def test_users_of_any_kind():
    tuples = np.empty(3, dtype=object)
    tuples[:] = [("a",), "b", ("a",)]
    for users in (["a", "b", "a"], [1, 2, 1], np.array(["a", "b", "a"], dtype=object), tuples):
        assert so.tabulate([0, 0, 0], 1, user=users, max_records=1).counts.tolist() == [2]


def test_records_without_a_user_are_null():
    nan = float("nan")
    for users in (np.array(["a", nan, float("nan"), None], dtype=object), np.array([1.0, nan, nan, nan])):
        assert so.tabulate([0] * 4, 1, user=users, max_records=1).counts.tolist() == [1]
    # Otherwise one person's record would displace another's.
    assert so.tabulate([0, 1], 2, user=[nan, nan], max_records=1).counts.tolist() == [0, 0]


def test_refusals():
    for bad, error in [
        (lambda: so.tabulate([1], 0), so.errors.InvalidParameterError),
        (lambda: so.tabulate([1], 2**50), so.errors.InvalidParameterError),
        (lambda: so.tabulate([1], [1.0]), so.errors.InvalidParameterError),
        (lambda: so.tabulate([1], [2.0, 1.0]), so.errors.InvalidParameterError),
        (lambda: so.tabulate([1], [0.0, float("inf")]), so.errors.InvalidParameterError),
        (lambda: so.tabulate([[1]], 2), so.errors.ShapeError),
        (lambda: so.tabulate([1], 2, user=[1]), so.errors.InvalidParameterError),
        (lambda: so.tabulate([1], 2, user=[1, 2], max_records=1), so.errors.ShapeError),
        (lambda: so.tabulate([1], 2, user=[1], max_records=0), so.errors.InvalidParameterError),
        (lambda: so.tabulate([1], "abc"), so.errors.DataTypeError),
    ]:
        with pytest.raises(error):
            bad()


def test_end_to_end():
    rng = np.random.default_rng(0)
    table = so.tabulate(rng.integers(0, 20, 1000), 20, user=rng.integers(0, 200, 1000), max_records=3)
    plan = so.plan(so.RunningSum(20), so.ApproxDP(epsilon=1.0, delta=1e-6), unit=table.unit)
    assert plan.release(table.counts).values.shape == (20,)
    assert plan.release(table).values.shape == (20,)


@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 4)), max_size=25),
    limit=st.integers(1, 6),
    each=st.integers(1, 4),
    user=st.integers(0, 3),
)
def test_one_user_raises_few_cells_by_little(rows, limit, each, user):
    """Whoever leaves lowers each count by at most `per_cell`, and raises none: by those of their records that counted."""

    def counts(rows):
        return so.tabulate(
            [record for _, record in rows], 4, user=[who for who, _ in rows], max_records=limit, per_cell=each
        )

    table = counts(rows)
    assert table.unit == so.AddRemove(limit, per_cell=each, one_signed=True, label="one user")
    change = table.counts - counts([row for row in rows if row[0] != user]).counts
    assert change.min(initial=0) >= 0 and change.max(initial=0) <= each and change.sum() <= limit
    counted, expected = 0, np.zeros(4, dtype=np.int64)
    for who, record in rows:
        if who == user and counted < limit:
            if 0 <= record < 4 and expected[record] >= each:
                continue
            counted += 1
            if 0 <= record < 4:
                expected[record] += 1
    assert (change == expected).all()


def test_a_table_of_people_has_common_noise():
    table = so.tabulate(np.arange(40) % 10, 10, user=np.arange(40) // 10, max_records=10, per_cell=1)
    assert table.counts.tolist() == [4] * 10
    plan = so.plan(so.Histogram(10), so.ApproxDP(epsilon=1.0, delta=1e-6), unit=table.unit)
    assert plan.mechanism == "identity-common-gaussian"
    with pytest.raises(so.errors.InvalidParameterError, match="per_cell needs user"):
        so.tabulate([1, 2], 3, per_cell=1)
