"""What bounds cost, from public facts; how active users are, from a charged look."""

import numpy as np
import pytest

import sordino as so

T = so.tables
A = so.ApproxDP(epsilon=1.0, delta=1e-6)


def schema(bounds=None):
    return so.Schema(
        {"cell": T.Integers(0, 9)}, user="who", bounds=bounds or so.Bounds(1), label="one guest", values=None
    )


def test_bounds_side_by_side():
    choices = [so.Bounds(1), so.Bounds(4, 2, 6), so.Bounds(10, 10)]
    guess = {1: 0.5, 4: 0.25, 50: 0.25}
    found = T.compare_bounds(schema(), choices, A, rows_per_user=guess)
    assert [row["bounds"] for row in found.rows] == choices
    for row, kept in zip(found.rows, (1.0, 0.5 + 1.0 + 1.5, 0.5 + 1.0 + 12.5), strict=True):
        own = so.plan(schema(row["bounds"]).counts(), A)
        assert (row["unit"], row["mechanism"], row["rmse"]) == (own.unit, own.mechanism, own.rmse)
        assert row["left_out"] == pytest.approx(1.0 - kept / 14.0)
    assert "identity" in str(found) and str(found).count("\n") == 3
    totals = T.compare_bounds(schema(), choices, A, "cell.total")
    assert all(row["left_out"] is None for row in totals.rows) and "-" in str(totals)
    # A bound on cells that a user cannot reach costs nothing.
    assert T.compare_bounds(schema(), [so.Bounds(500, 1, 3)], A).rows[0]["unit"].records == 3


@pytest.mark.parametrize("users", ["integers", "text", "unsigned", "batches"])
def test_how_active_users_are(users):
    sizes = np.array([1] * 500 + [3] * 300 + [20] * 190 + [1000] * 10)
    who = np.repeat(np.arange(len(sizes)), sizes)
    data = {"who": {"text": who.astype(str), "unsigned": who.astype(np.uint64)}.get(users, who)}
    if users == "batches":
        data = [{"who": part} for part in np.array_split(np.random.default_rng(0).permutation(who), 7)]
    ledger = so.Ledger(so.PureDP(epsilon=50.0), unit=schema().unit)
    found = T.private_activity(
        data, schema(), so.PureDP(epsilon=40.0), [0.4, 0.7, 0.9, 0.999], ledger=ledger, request_id="r"
    )
    assert found == [1, 4, 32, 1024]
    assert len(ledger.history) == 1
    assert T.private_activity(data, schema(), so.PureDP(epsilon=40.0), [0.4], ledger=ledger, request_id="r") == [1]
    assert len(ledger.history) == 1  # answered from what was measured
    assert T.private_activity({"who": np.array([], dtype=int)}, schema(), so.PureDP(epsilon=40.0), [0.5])[0] <= 2**31


def test_refusals():
    nobody = so.Schema({"cell": T.Integers(0, 9)}, user=None)
    wrong, kinds = so.errors.InvalidParameterError, so.errors.DataTypeError
    for error, call in [
        (wrong, lambda: T.compare_bounds(nobody, [so.Bounds(1)], A)),
        (kinds, lambda: T.compare_bounds(schema(), [], A)),
        (kinds, lambda: T.compare_bounds(schema(), [3], A)),
        (kinds, lambda: T.compare_bounds(schema(), [so.Bounds(1)], A, rows_per_user={})),
        (wrong, lambda: T.compare_bounds(schema(), [so.Bounds(1)], A, rows_per_user={0: 1.0})),
        (wrong, lambda: T.private_activity({"who": [1]}, nobody, A)),
        (wrong, lambda: T.private_activity({"who": [1]}, schema(), A, [1.0])),
        (kinds, lambda: T.private_activity({"who": np.array([0.5])}, schema(), A)),
    ]:
        with pytest.raises(error):
            call()
