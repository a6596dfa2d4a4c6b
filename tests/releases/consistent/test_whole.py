"""Whole numbers, public facts, hierarchies from the top down, shares of the total, records."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sordino as so
from marginal_tables import LEVELS, agrees, records, truth_of

APPROX = so.ApproxDP(epsilon=0.5, delta=1e-6)
PURE = so.PureDP(epsilon=0.5)
PAIRS = so.Marginals(LEVELS, k=2)


def whole(values):
    return (values == np.rint(values)).all() and values.min() >= 0.0


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sets", [None, [(0, 1), (1, 2), (3,)], [(0,), (1,), ()]])
def test_pairs_in_whole_numbers_have_common_margins(seed, sets, known_noise):
    workload = PAIRS if sets is None else so.Marginals(LEVELS, sets=sets)
    release = so.plan(workload, APPROX, mechanism="fourier").release(records(seed))
    for kwargs in ({}, {"total": 400}, {"shrink": "independence"}, {"norm": "noise"}, {"total": 0}, {"total": 3}):
        real, made = release.consistent(**kwargs), release.consistent(whole=True, **kwargs)
        assert whole(made.values)
        agrees(made.tables, made.consistency.total)
        assert all(table.sum() == round(real.consistency.total) for table in made.tables.values())
        largest = np.abs(made.values - real.values).max()
        assert math.isclose(made.consistency.whole, largest) and largest < 1.5
        assert (made.unbiased == release.unbiased).all()


def test_a_table_that_says_all_others(known_noise):
    workload = so.Marginals([3, 4, 2], sets=[(0, 1, 2), (0, 2), (1,)])
    release = so.plan(workload, APPROX).release(records(0, levels=[3, 4, 2]))
    made = release.consistent(whole=True, total=400)
    assert whole(made.values)
    agrees(made.tables, 400)
    assert all(table.sum() == 400 for table in made.tables.values())
    for kwargs in ({"whole": "unbiased"}, {"whole": True, "invariants": {(1,): [100] * 4}}):
        with pytest.raises(so.errors.UnsupportedMechanismError, match="three attributes"):
            release.consistent(total=400, **kwargs)
    pair = so.plan(so.Marginals([3, 4], sets=[(0, 1), (0,)]), APPROX).release(records(0, levels=[3, 4]))
    real = pair.consistent(total=400)
    made, again = (pair.consistent(whole="unbiased", total=400, seed=5) for _ in range(2))
    assert whole(made.values) and (again.values == made.values).all()
    agrees(made.tables, 400)
    assert np.abs(made.values - real.values).max() < 1.0 + 1e-6


def test_whole_numbers_that_cannot_be_promised(known_noise):
    workload = so.Marginals([3, 4, 2, 2], k=3)
    release = so.plan(workload, APPROX).release(records(0, levels=[3, 4, 2, 2]))
    with pytest.raises(so.errors.UnsupportedMechanismError, match="three attributes"):
        release.consistent(whole=True)
    pairs = so.plan(PAIRS, APPROX).release(records(0))
    with pytest.raises(so.errors.UnsupportedMechanismError, match="one table"):
        pairs.consistent(whole="unbiased")
    with pytest.raises(so.errors.UnsupportedMechanismError, match="bounds"):
        pairs.consistent(whole=True, bounds={(0, 1): (0.0, 100.0)})
    with pytest.raises(so.errors.InvalidParameterError, match="whole total"):
        pairs.consistent(whole=True, total=10.5)
    with pytest.raises(so.errors.InvalidParameterError):
        pairs.consistent(whole="yes")
    with pytest.raises(so.errors.DataTypeError):
        pairs.consistent(whole=1.5)


def test_whole_numbers_by_chance_are_unbiased():
    release = so.plan(so.Histogram(6), so.GaussianDP(mu=1.0)).release([3, 0, 1, 2, 0, 5])
    real = release.consistent(total=11)
    draws = [release.consistent(total=11, whole="unbiased", seed=seed).values for seed in range(4000)]
    assert all(whole(draw) and draw.sum() == 11 for draw in draws[:50])
    # Five standard errors: false alarm below 1e-5.
    assert np.abs(np.mean(draws, axis=0) - real.values).max() < 5.0 * 0.5 / math.sqrt(4000)


@pytest.mark.parametrize("kind", [True, "unbiased"])
def test_running_sums_and_histograms_in_whole_numbers(kind, known_noise):
    rng = np.random.default_rng(1)
    x = rng.poisson(1.0, 80)
    sums = so.plan(so.RunningSum(80), APPROX).release(x).consistent(whole=kind, total=int(x.sum()))
    assert whole(sums.values) and (np.diff(sums.values) >= 0.0).all() and sums.values[-1] == x.sum()
    cells = so.plan(so.Histogram(80), APPROX).release(x).consistent(whole=kind, total=int(x.sum()))
    assert whole(cells.values) and cells.values.sum() == x.sum()
    free = so.plan(so.Histogram(80), APPROX).release(x).consistent(whole=kind)
    assert whole(free.values) and abs(free.values.sum() - max(free.unbiased.sum(), 0.0)) <= 1.0


# Public facts.


def test_margins_zeros_and_bounds_hold(known_noise):
    codes = records(0)
    codes[:, 3] = (codes[:, 0] == 0).astype(int)  # a table of which half the cells are empty
    release = so.plan(PAIRS, APPROX).release(codes)
    margin = np.bincount(codes[:, 0], minlength=4)
    impossible = np.zeros((4, 2), dtype=bool)
    impossible[0, 0] = impossible[1:, 1] = True
    made = release.consistent(invariants={(0,): margin}, zeros={(0, 3): impossible}, bounds={(1, 2): (1.0, 80.0)})
    agrees(made.tables, 400)
    assert made.consistency.total == 400 and made.consistency.converged and not made.tables[0, 3][impossible].any()
    np.testing.assert_allclose(made.tables[0, 1].sum(axis=1), margin, atol=1e-7)
    assert made.tables[1, 2].min() >= 1.0 and made.tables[1, 2].max() <= 80.0 and made.values.min() >= 0.0
    whole_numbers = release.consistent(invariants={(0,): margin}, zeros={(0, 3): impossible}, whole=True)
    assert whole(whole_numbers.values) and not whole_numbers.tables[0, 3][impossible].any()
    assert (whole_numbers.tables[0, 2].sum(axis=1) == margin).all()
    agrees(whole_numbers.tables, 400)
    # What is known makes the rest better: in the mean of twenty draws.
    truth, errors = truth_of(PAIRS, codes), []
    for seed in range(20):
        with so.testing.deterministic_noise(seed.to_bytes(32, "little")):
            release = so.plan(PAIRS, APPROX).release(codes)
        plain = release.consistent(total=400)
        more = release.consistent(invariants={(0,): margin}, zeros={(0, 3): impossible})
        errors.append([np.linalg.norm(plain.values - truth), np.linalg.norm(more.values - truth)])
    assert np.mean(errors, axis=0)[1] < 0.95 * np.mean(errors, axis=0)[0]


def test_a_zero_of_a_margin_is_one_of_all_tables(known_noise):
    release = so.plan(PAIRS, APPROX).release(records(0))
    made = release.consistent(zeros={(1,): np.array([False, True, False])})
    assert not made.tables[0, 1][:, 1].any() and not made.tables[1, 2][1].any() and not made.tables[1, 3][1].any()
    agrees(made.tables, made.consistency.total)


def test_facts_that_are_refused(known_noise):
    release = so.plan(PAIRS, APPROX).release(records(0))
    wrong = so.errors.InvalidParameterError
    for kwargs, error in (
        ({"invariants": {(0,): [1, 2, 3]}}, so.errors.ShapeError),
        ({"invariants": {(0,): [1, 2, 3, -1]}}, wrong),
        ({"invariants": {(0,): [100, 100, 100, 100]}, "total": 7}, wrong),
        ({"invariants": {(0,): [100] * 4, (1,): [100] * 3}}, wrong),
        ({"invariants": {(0, 1): np.full((4, 3), 5.0), (0,): [10, 20, 15, 15]}}, wrong),
        ({"invariants": {(1, 0): np.ones((3, 4))}}, wrong),
        ({"invariants": {(0, 1, 2): np.ones((4, 3, 5))}}, wrong),
        ({"invariants": [1]}, so.errors.DataTypeError),
        ({"invariants": {(0,): [1e200] * 4}}, wrong),
        ({"invariants": {(0.0,): [1] * 4}}, wrong),
        ({"invariants": {(0,): [0.5] * 4}, "whole": True}, wrong),
        ({"zeros": {(0, 1): [[True], [True, False]]}}, so.errors.DataTypeError),
        ({"zeros": {(0,): [0, 1, 0, 0]}}, so.errors.DataTypeError),
        ({"zeros": {(0,): [True]}}, so.errors.ShapeError),
        ({"zeros": {(0,): [True] * 4}}, wrong),  # nobody is anywhere
        ({"bounds": {(0,): (0.0, 1.0)}}, wrong),
        ({"bounds": {(0, 1): (2.0, 1.0)}}, wrong),
        ({"bounds": {(0, 1): (0.0, np.ones(7))}}, so.errors.ShapeError),
        ({"bounds": {(0, 1): 5.0}}, so.errors.DataTypeError),
        ({"bounds": {(0, 1): (50.0, np.inf)}, "total": 400}, wrong),  # twelve cells of fifty are more
        ({"seed": -1}, wrong),
    ):
        with pytest.raises(error):
            release.consistent(**kwargs)
    histogram = so.plan(so.Histogram(4), APPROX).release([1, 2, 3, 4])
    with pytest.raises(wrong, match="of marginals"):
        histogram.consistent(zeros={(0,): np.array([True, False, False, False])})


def test_cells_that_are_fixed_to_something_else_are_refused(known_noise):
    """What conjugate gradients make of a system without a solution is no answer."""
    table = np.array([[50.0, 50.0, 1.0], [40.0, 50.0, 9.0]])
    release = so.plan(so.Marginals([2, 3], sets=[(0, 1)]), APPROX).release(records(1, levels=[2, 3]))
    assert (release.consistent(total=200, bounds={(0, 1): (table, table)}).values == table.ravel()).all()
    for total in (10, 199, 201, 1e12, None):
        with pytest.raises(so.errors.InvalidParameterError, match="within all limits"):
            release.consistent(total=total, bounds={(0, 1): (table, table)})


def test_nobody_in_a_group_is_in_none_of_its_cells(known_noise):
    release = so.plan(so.Marginals([3, 2, 2], k=2), APPROX).release(np.random.default_rng(0).integers(0, 2, (200, 3)))
    row = np.array([[False, False], [False, False], [True, True]])
    for kwargs in ({"invariants": {(0,): [100, 100, 0]}}, {"zeros": {(0, 1): row}}):
        for kind in (False, True):
            made = release.consistent(whole=kind, **kwargs)
            assert not made.tables[0, 1][2].any() and not made.tables[0, 2][2].any()
            agrees(made.tables, made.consistency.total)


def test_large_counts_stay_whole(known_noise):
    counts = np.array([9 * 10**11, 10**11, 7, 3])
    release = so.plan(so.Histogram(4), so.PureDP(epsilon=3.0), max_value=10**12).release(counts)
    made = release.consistent(total=10**12 + 10, whole=True)
    assert made.consistency.whole < 1.0 and made.values.sum() == 10**12 + 10
    with pytest.raises(so.errors.UnsupportedMechanismError, match="2\\*\\*40"):
        release.consistent(total=2**41, whole=True)


# From the top down.


@pytest.mark.filterwarnings("ignore:deterministic noise")
@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.integers(1, 3), st.integers(0, 2**32), st.booleans())
def test_groups_add_up(cells, levels, seed, complete):
    """Nested groups in any order, with cells in none of them: sums of cells that are not negative."""
    rng = np.random.default_rng(seed)
    fine = np.sort(rng.integers(0, max(cells // 2, 1), cells))
    labels = [fine // 3**k for k in range(levels)]
    if not complete:
        labels[0] = np.where(rng.random(cells) < 0.3, -1, labels[0])
        labels[0][0] = 0
    rng.shuffle(labels)
    workload = so.GroupBy(labels, weights=rng.uniform(0.5, 3.0, levels))
    with so.testing.deterministic_noise(seed.to_bytes(32, "little")):
        release = so.plan(workload, PURE, effort="closed_form").release(rng.poisson(2.0, cells))
    with_total = {"total": 31} if (np.stack(labels) >= 0).any(axis=0).all() else {}
    if not with_total:
        with pytest.raises(so.errors.InvalidParameterError, match="in no group"):
            release.consistent(total=31)
    for kwargs in ({}, with_total, {"whole": True}, {"whole": True, **with_total}):
        made = release.consistent(**kwargs)
        parts = [values / weight for values, weight in zip(workload.split(made.values), workload.weights, strict=True)]
        assert min(part.min() for part in parts) >= 0.0
        for (one, a), (other, b) in itertools.permutations(list(zip(labels, parts, strict=True)), 2):
            for group in range(len(a)):
                inner = np.unique(other[one == group])
                whole_groups = [
                    g for g in inner if g >= 0 and set(np.flatnonzero(other == g)) <= set(np.flatnonzero(one == group))
                ]
                covered = set(np.flatnonzero(one == group)) == {
                    c for g in whole_groups for c in np.flatnonzero(other == g)
                }
                assert sum(b[g] for g in whole_groups) <= a[group] + 1e-7
                if covered and whole_groups:
                    assert math.isclose(sum(b[g] for g in whole_groups), a[group], rel_tol=1e-9, abs_tol=1e-7)
        if "whole" in kwargs:
            assert all(np.allclose(part, np.rint(part), atol=1e-9) for part in parts)


@pytest.mark.parametrize("cells", [1, 7, 8, 9, 65, 600])
def test_ranges_of_cells_that_are_not_negative(cells, known_noise):
    rng = np.random.default_rng(cells)
    x = rng.poisson(0.3, cells)
    release = so.plan(so.AllRanges(cells), PURE).release(x)
    for kwargs in ({}, {"total": int(x.sum())}, {"whole": True, "total": int(x.sum())}):
        made = release.consistent(**kwargs)
        first = np.flatnonzero(so.AllRanges(cells).ranges[:, 0] == 0)
        steps = np.diff(made.values[first], prepend=0.0)  # the cells
        assert steps.min() >= -1e-9
        ranges = so.AllRanges(cells).ranges
        sums = np.r_[0.0, np.cumsum(steps)]
        np.testing.assert_allclose(made.values, sums[ranges[:, 1] + 1] - sums[ranges[:, 0]], atol=1e-6)
        if "total" in kwargs:
            assert math.isclose(made.values[first[-1]], x.sum(), abs_tol=1e-6)
    if cells == 600:
        ends = so.AllRanges(cells).ranges
        sums = np.r_[0, np.cumsum(x)]
        truth = sums[ends[:, 1] + 1] - sums[ends[:, 0]]
        assert np.linalg.norm(made.values - truth) < 0.8 * np.linalg.norm(release.values - truth)


def test_four_children_of_six(known_noise):
    """The fixture: (5, -2, 3, 1) under 6 are (4, 0, 2, 0)."""
    from sordino import _core

    starts = np.array([0, 4, 4, 4, 4, 4])
    assert _core.top_down(starts, np.array([5.0, -2.0, 3.0, 1.0]), np.ones(4), 6.0).tolist() == [4.0, 0.0, 2.0, 0.0]
    for broken in ([0, 4, 4, 4, 4], [0, 4, 4, 4, 4, 5], [0, 2, 1, 4, 4, 4], [-1, 4, 4, 4, 4, 4], [0, 0, 4, 4, 4, 4]):
        with pytest.raises(so.errors.ShapeError):
            _core.top_down(np.array(broken), np.ones(4), np.ones(4), 6.0)


# What the total is worth.


@pytest.mark.parametrize("law", [so.ApproxDP(epsilon=0.5, delta=1e-6), so.GaussianDP(mu=1.0), so.PureDP(epsilon=1.0)])
def test_a_share_for_the_total(law):
    levels = [20, 30, 25, 10]
    plain = so.plan(so.Marginals(levels, k=2), law, mechanism="fourier")
    shared = so.plan(so.Marginals(levels, k=2, total_share=0.02), law, mechanism="fourier")
    assert 1.0 < shared.rmse / plain.rmse < 1.03
    total = so.Marginals(levels, sets=[()])
    codes = np.zeros((0, 4), dtype=int)
    errors = [float(plan.release(codes).answer(total).stderr[0]) for plan in (plain, shared)]
    assert errors[1] < 0.4 * errors[0]
    assert so.Plan.from_record(shared.record()).digest == shared.digest != plain.digest
    for wrong in (-0.1, 0.6, math.nan):
        with pytest.raises(so.errors.InvalidParameterError):
            so.Marginals(levels, k=2, total_share=wrong)


# Records.


def counted(codes, s, levels):
    table = np.zeros([levels[i] for i in s])
    np.add.at(table, tuple(codes[:, i] for i in s), 1)
    return table


def test_records_have_the_margins_and_come_near_to_pairs(known_noise):
    codes = records(0, n=3000)
    release = so.plan(PAIRS, so.GaussianDP(mu=2.0)).release(codes).consistent(whole=True)
    made = release.records(seed=3)
    assert len(made) == release.consistency.total and made.codes.shape == (len(made), 4)
    for i in range(4):
        margin = next(table for s, table in release.tables.items() if s[0] == i or s[1] == i)
        s = next(s for s in release.tables if i in s)
        np.testing.assert_array_equal(counted(made.codes, (i,), LEVELS), margin.sum(axis=1 - s.index(i)))
    assert len(made.tree) == 3 and set(made.distance) == set(PAIRS.sets)
    for s, table in release.tables.items():
        assert math.isclose(made.distance[s], np.abs(counted(made.codes, s, LEVELS) - table).sum() / 2 / len(made))
    assert max(made.distance.values()) < 0.03
    assert (release.records(seed=3).codes == made.codes).all()
    assert (release.records(seed=4).codes != made.codes).any()
    fewer = release.records(100, seed=3)
    assert len(fewer) == 100 and len(release.records(0)) == 0 and len(release.records(1)) == 1


def test_records_of_a_tree_of_pairs_are_exact(known_noise):
    workload = so.Marginals(LEVELS, sets=[(0, 1), (1, 2), (0, 3)])
    release = so.plan(workload, so.GaussianDP(mu=1.0)).release(records(1)).consistent(whole=True)
    made = release.records()
    assert set(made.distance.values()) == {0.0}
    single = so.Marginals(LEVELS, sets=[(0, 1), (2,)])  # an attribute that nothing is said of, and one in no table
    made = so.plan(single, so.GaussianDP(mu=1.0)).release(records(1)).consistent().records()
    assert made.codes.shape[1] == 3 and made.names == ("attribute 0", "attribute 1", "attribute 2")


def test_records_as_frames_have_the_names_of_their_schema():
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    schema = so.Schema({"place": so.tables.Levels(["north", "south"]), "age": so.tables.Integers(0, 4)}, user=None)
    rng = np.random.default_rng(0)
    table = so.tabulate(
        {"place": rng.choice(["north", "south"], 500), "age": rng.integers(0, 5, 500)}, schema, request_id="r"
    )
    release = so.plan(schema.marginals(2), so.GaussianDP(mu=1.0)).release(table).consistent()
    made = release.records()
    frame = made.to_frame(library="pandas")
    assert list(frame.columns) == ["place", "age"] and set(frame["place"]) <= {"north", "south"}
    assert isinstance(frame, pd.DataFrame) and isinstance(made.to_frame(library="pyarrow"), pa.Table)
    assert "codes" not in repr(made)


def test_records_that_are_refused(known_noise):
    release = so.plan(PAIRS, APPROX).release(records(0))
    with pytest.raises(so.errors.UnsupportedMechanismError, match="consistent"):
        release.records()
    made = release.consistent()
    for wrong, error in (((-1,), so.errors.InvalidParameterError), (("a",), so.errors.DataTypeError)):
        with pytest.raises(error):
            made.records(*wrong)
    constant = so.plan(so.Histogram(6), APPROX, unit=so.ReplaceOne(), constraint=so.optimal.PublicTotal(3300))
    few = constant.release([100, 100, 100, 1000, 1000, 1000]).answer(so.GroupBy([0, 0, 1, -1, -1, -1])).consistent()
    assert abs(few.values.sum() - few.unbiased.sum()) < 1e-6  # the total is not that of these groups
    triples = so.plan(so.Marginals([2, 2, 2], k=3), APPROX).release(records(0, levels=[2, 2, 2])).consistent()
    with pytest.raises(so.errors.UnsupportedMechanismError, match="pairs"):
        triples.records()
