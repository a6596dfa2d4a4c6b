"""Marginals that are measured where an estimate is furthest off: errors, budgets, what is said and what is refused."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sordino as so

PURE = so.PureDP(epsilon=1.0)
APPROX = so.ApproxDP(epsilon=1.0, delta=1e-6)
LEVELS = (3, 2, 4, 3)


def records(attributes, levels, n, seed):
    """Return codes of which every other attribute follows the one before in half of the records."""
    rng = np.random.default_rng(seed)
    codes = np.minimum(rng.geometric(0.3, (n, attributes)) - 1, levels - 1)
    for i in range(1, attributes, 2):
        tied = rng.random(n) < 0.5
        codes[tied, i] = (3 * codes[tied, i - 1] + i) % levels
    return codes.astype(np.uint8)


def true_tables(codes, levels, sets):
    found = {}
    for s in sets:
        shape = tuple(levels[i] for i in s)
        flat = np.ravel_multi_index(tuple(codes[:, i].astype(int) for i in s), shape)
        found[s] = np.bincount(flat, minlength=math.prod(shape)).reshape(shape)
    return found


def adaptive(workload, privacy=APPROX, **options):
    return so.plan(workload, privacy, mechanism="adaptive-marginals", **options)


CODES = np.array([[0, 1, 2, 0], [2, 1, 3, 1], [1, 0, 0, 2], [0, 1, 2, 0], [0, 1, 2, 0]], dtype=np.uint8)


@given(st.binary(min_size=32, max_size=32), st.booleans(), st.sampled_from([1, 2, 3]), st.booleans())
@settings(max_examples=40, deadline=None)
def test_tables_agree(key, gaussian, k, shrink):
    with so.testing.deterministic_noise(key):
        release = adaptive(so.Marginals(LEVELS, k=k), APPROX if gaussian else PURE).release(CODES)
    tables = release.agreeing(shrink=shrink, total=5.0).tables
    assert set(tables) == set(itertools.combinations(range(4), k))
    for s, table in tables.items():
        assert (table >= 0.0).all() and table.sum() == pytest.approx(5.0)
        for other, more in tables.items():
            common = sorted(set(s) & set(other))
            margins = [
                each.sum(axis=tuple(axis for axis, i in enumerate(of) if i not in common))
                for of, each in ((s, table), (other, more))
            ]
            assert margins[0] == pytest.approx(margins[1], abs=1e-6)


@given(st.binary(min_size=32, max_size=32), st.booleans())
@settings(max_examples=40, deadline=None)
def test_no_more_than_the_budget_is_spent(key, gaussian):
    """By hand: shares of what was measured, and of choices, a ninth of the share of each table that was chosen."""
    with so.testing.deterministic_noise(key):
        release = adaptive(so.Marginals(LEVELS, k=2), APPROX if gaussian else PURE).release(CODES)
    noise, looks = release.fit.door.noise, release.looks
    spent = [
        (noise / look.stderr) ** 2 if gaussian else 2.0 * noise * math.asinh(math.sqrt(0.5) / look.stderr)
        for look in looks
    ]
    assert [look.attributes for look in looks[:4]] == [(0,), (1,), (2,), (3,)]
    assert 0.7 < sum(spent) <= 1.0 + 1e-6
    if not gaussian:  # nothing is levelled: every later table was chosen
        assert sum(spent) + sum(spent[4:]) / 9.0 == pytest.approx(1.0, abs=1e-4)


def test_many_attributes_have_a_third_of_the_error():
    """16 attributes of 8 levels, 5,000 records: against all pairs at once, made consistent and shrunk; 3 draws."""
    codes = records(16, 8, 5000, 1)
    workload = so.Marginals([8] * 16, k=2)
    truth = np.concatenate([t.reshape(-1) for t in true_tables(codes, [8] * 16, workload.sets).values()])
    for privacy, most in ((so.ApproxDP(epsilon=0.5, delta=1e-6), 0.75), (PURE, 0.6)):
        ours, others = [], []
        for seed in range(3):
            with so.testing.deterministic_noise(bytes([seed]) * 32):
                ours.append(np.mean((adaptive(workload, privacy).release(codes).values - truth) ** 2))
                released = so.plan(workload, privacy).release(codes).consistent(shrink="independence")
                others.append(np.mean((released.values - truth) ** 2))
        assert math.sqrt(np.mean(ours)) < most * math.sqrt(np.mean(others))


@pytest.mark.parametrize("privacy", [PURE, APPROX])
def test_intervals_of_measured_tables_cover(privacy):
    """Given what was chosen: two thousand cells or more at .9, 6 standard errors; whole numbers are covered more often."""
    codes = records(6, 4, 400, 2)
    workload = so.Marginals([4] * 6, k=2)
    truth = true_tables(codes, [4] * 6, [*workload.sets, *((i,) for i in range(6))])
    inside = []
    for seed in range(20):
        with so.testing.deterministic_noise(bytes([seed, 7]) * 16):
            release = adaptive(workload, privacy).release(codes)
        for look in release.looks:
            found = look.interval(0.9)
            inside += list(
                ((found.lower <= truth[look.attributes]) & (truth[look.attributes] <= found.upper)).reshape(-1)
            )
            assert (look.interval(0.9, simultaneous=True).upper > found.upper).all()
    share, error = np.mean(inside), math.sqrt(0.09 / len(inside))
    assert len(inside) > 2000 and share > 0.9 - 6 * error
    assert share < 0.9 + 6 * error or privacy is PURE


def test_with_little_noise_the_tables_are_true():
    codes = records(4, 3, 300, 3)
    workload = so.Marginals([3] * 4, k=2)
    truth = np.concatenate([t.reshape(-1) for t in true_tables(codes, [3] * 4, workload.sets).values()])
    for privacy in (so.PureDP(epsilon=2000.0), so.GaussianDP(mu=500.0)):
        release = adaptive(workload, privacy).release(codes).agreeing(shrink=False)
        assert release.values == pytest.approx(truth, abs=1.0)


def test_records_tables_and_a_total():
    codes = records(5, 4, 800, 4)
    table = np.zeros((4,) * 5, dtype=int)
    np.add.at(table, tuple(codes.T.astype(int)), 1)
    workload = so.Marginals([4] * 5, sets=[(0, 1), (2,), (), (1, 3, 4)], weights=[1.0, 2.0, 1.0, 1.0])
    with so.testing.deterministic_noise(bytes(32)):
        first = adaptive(workload).release(codes.astype(np.int64))
    with so.testing.deterministic_noise(bytes(32)):
        second = adaptive(workload).release(table.reshape(-1))
    assert np.array_equal(first.values, second.values)
    assert first.tables[()] == pytest.approx(first.consistency.total)
    fixed = first.agreeing(total=800.0)
    assert fixed.consistency.total == pytest.approx(800.0) and fixed.consistency.converged
    assert fixed.agreeing(total=800.0).values == pytest.approx(fixed.values)
    people = adaptive(so.Marginals([4] * 5, k=2)).release(codes).records(seed=3)
    assert people.codes.shape[1] == 5


def test_frames_and_files(tmp_path):
    release = adaptive(so.Marginals(LEVELS, k=2)).release(CODES)
    frame = release.to_frame(library="pandas")
    assert list(frame["value"]) == release.values.tolist() and len(frame) == release.values.size
    changed = release.agreeing(total=5.0, shrink=False)
    found = so.adaptive.MarginalsRelease.load(changed.save(tmp_path / "marginals.json"))
    assert np.array_equal(found.values, changed.values) and found.total == 5.0 and not found.shrunk
    assert "measured" in release._repr_html_() and release.rmse_kind == "noise only"


def test_a_store_answers_again(tmp_path):
    ledger = so.Ledger(so.ApproxDP(epsilon=1.5, delta=1e-5), store=so.Store(str(tmp_path / "store.db"), key=bytes(32)))
    plan = adaptive(so.Marginals(LEVELS, k=2))
    first = plan.release(CODES, ledger=ledger, request_id="a")
    again = plan.release(CODES, ledger=ledger, request_id="a")
    assert np.array_equal(first.values, again.values) and len(ledger.history) == 1
    assert "adaptive-marginals" in str(so.report(ledger))


def test_a_choice_that_cannot_be_made_is_refused_before_it_is_charged():
    workload = so.Marginals((3,) * 50, k=2)
    for unit, epsilon in ((so.AddRemove(1000), 1e-3), (so.ReplaceOne(1000), 1e-3)):
        with pytest.raises(so.errors.InvalidParameterError):
            adaptive(workload, so.PureDP(epsilon=epsilon), unit=unit)
    release = adaptive(workload, so.PureDP(epsilon=0.1), unit=so.AddRemove(10)).release(np.zeros((9, 50), dtype=int))
    assert release.values.size == workload.core.answers_len


def test_tables_are_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    release = adaptive(so.Marginals(LEVELS, k=2)).release(CODES)
    assert release.plot(tmp_path / "tables.png").axes


def test_what_a_plan_says():
    plan = adaptive(so.Marginals([4] * 12, k=2))
    assert "furthest off" in plan.explain() and "few attributes" not in plan.explain()
    assert "few attributes" in adaptive(so.Marginals(LEVELS, k=2)).explain()
    assert "minutes" in adaptive(so.Marginals([30] * 26, k=2)).explain() and "minutes" not in plan.explain()
    assert plan.mechanism == "adaptive-marginals-gaussian" and plan.optimality is None
    assert plan.rmse == pytest.approx(plan.fit.door.noise * math.sqrt(66))
    assert {row["mechanism"] for row in plan.compare().rows} == {
        "adaptive-marginals-gaussian",
        "adaptive-marginals-laplace",
    }
    moved = adaptive(so.Marginals(LEVELS, k=2), unit=so.ReplaceOne(1))
    one = adaptive(so.Marginals(LEVELS, k=2))
    assert moved.fit.door.noise == pytest.approx(math.sqrt(2.0) * one.fit.door.noise, rel=1e-6)


def test_what_is_refused():
    refused = so.errors.UnsupportedMechanismError
    for workload in (so.AllRanges(8), so.Histogram((2, 2)), so.Marginals([2, 2], k=0), so.Marginals([100] * 8, k=3)):
        with pytest.raises(refused):
            adaptive(workload)
    with pytest.raises(refused):
        adaptive(so.Marginals([2] * 8, k=7))
    with pytest.raises(refused):
        adaptive(so.Marginals(LEVELS, k=2), integral=False)
    with pytest.raises(refused):
        so.plan(so.Marginals(LEVELS, k=2), PURE, mechanism="adaptive-marginals-gaussian")
    release = adaptive(so.Marginals(LEVELS, k=2)).release(CODES)
    for total in (-1.0, 1e300):
        with pytest.raises(so.errors.InvalidParameterError):
            release.agreeing(total=total)
    with pytest.raises(refused):
        adaptive(so.Marginals(LEVELS, k=3)).release(CODES).records()
    for data in (None, [[0, 1]], np.zeros((5, 4)) + 0.5j, "text"):
        with pytest.raises(so.SordinoError):
            adaptive(so.Marginals(LEVELS, k=2)).release(data)
