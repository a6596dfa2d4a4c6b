"""Queries along the attributes of records: against the same queries of the full table, and known errors."""

import itertools
import math

import numpy as np
import pytest

import sordino as so
from sordino.accuracy.chain_bound import chain_mean
from sordino.accuracy.factorizations import dense
from sordino.privacy.calibration import gaussian_mu
from sordino.workloads import MarginalQueries

PRIVACY = so.ApproxDP(epsilon=1.0, delta=1e-6)
MULTIPLIER = 1.0 / gaussian_mu(PRIVACY)
PURE = so.PureDP(epsilon=1.0)
R, S, H = so.AllRanges, so.RunningSum, so.Histogram
MIXED = MarginalQueries([R(5), H(3), S(4), H(2)], sets=[[0, 1], [2], [1, 2, 3], []], weights=[1.0, 2.0, 0.5, 4.0])


def records(workload, count, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, np.array(workload.levels), (count, len(workload.levels)))


def table_of(workload, codes):
    table = np.zeros(workload.levels, dtype=np.int64)
    np.add.at(table, tuple(codes.T), 1)
    return table


def truth(workload, codes):
    return dense(workload) @ table_of(workload, codes).reshape(-1)


def as_union(workload):
    """The same queries as products of the full table: totals along the attributes that a set has not."""
    total = [so.GroupBy([[0] * levels]) for levels in workload.levels]
    factors = [[own if i in chosen else total[i] for i, own in enumerate(workload.queries)] for chosen in workload.sets]
    parts = [
        weight * (so.Kronecker(each) | so.Kronecker(each)).parts[0]
        for each, weight in zip(factors, workload.weights, strict=True)
    ]
    union = parts[0]
    for part in parts[1:]:
        union |= part
    return union


def test_answers_are_those_of_products_of_the_full_table():
    np.testing.assert_array_equal(dense(MIXED), dense(as_union(MIXED)))
    np.testing.assert_array_equal(MIXED.answer_weights(), as_union(MIXED).answer_weights())


def test_sets_are_taken_apart():
    values = np.arange(float(MIXED.core.answers_len))
    parts = MIXED.split(values)
    assert {chosen: part.shape for chosen, part in parts.items()} == {
        (0, 1): (15, 3),
        (2,): (4,),
        (1, 2, 3): (3, 4, 2),
        (): (),
    }
    assert MIXED.table_shapes == ((15, 3), (4,), (3, 4, 2), ())


@pytest.mark.parametrize("mechanism", ["residual-gaussian", "weighted-tree-laplace"])
@pytest.mark.parametrize("loud", [so.GaussianDP(mu=1e3), so.PureDP(epsilon=1e3)])
def test_what_is_released_is_the_truth_but_for_the_noise(mechanism, loud):
    if mechanism.endswith("gaussian") and isinstance(loud, so.PureDP):
        pytest.skip("Gaussian noise is not pure")
    plan = so.plan(MIXED, loud, mechanism=mechanism)
    codes = records(MIXED, 200)
    np.testing.assert_allclose(plan.release(codes).values, truth(MIXED, codes), atol=20 * plan.rmse + 1e-6)
    np.testing.assert_allclose(
        plan.release(table_of(MIXED, codes)).values, truth(MIXED, codes), atol=20 * plan.rmse + 1e-6
    )


@pytest.mark.statistical
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("mechanism", "privacy"), [("residual", PRIVACY), ("weighted-tree", PURE)])
def test_errors_are_as_planned(mechanism, privacy):
    """400 releases with fixed keys: mean squares over their variances, 5 standard deviations of their mean around 1."""
    plan = so.plan(MIXED, privacy, mechanism=mechanism)
    codes = records(MIXED, 50)
    known = truth(MIXED, codes)
    squares = np.zeros(len(known))
    for key in range(400):
        with so.testing.deterministic_noise(key.to_bytes(32, "little")):
            squares += (plan.release(codes).values - known) ** 2 / 400
    ratio = squares / plan.fit.stderr**2
    assert abs(ratio.mean() - 1.0) < 0.1
    assert ratio.max() < 1.0 + 5 * math.sqrt((2 if privacy is PRIVACY else 5) / 400)
    weights = MIXED.answer_weights()
    assert plan.rmse == pytest.approx(math.sqrt(np.average(plan.fit.stderr**2, weights=weights)), rel=1e-12)


def test_levels_alone_are_marginals():
    levels = [3, 4, 2, 5]
    queries = MarginalQueries([H(n) for n in levels], k=2, weights=[1.0, 2.0, 1.0, 3.0, 1.0, 1.0])
    tables = so.Marginals(levels, k=2, weights=[1.0, 2.0, 1.0, 3.0, 1.0, 1.0])
    np.testing.assert_array_equal(dense(queries), dense(tables))
    ours, theirs = (
        so.plan(workload, PRIVACY, mechanism=name).rmse
        for workload, name in ((queries, "residual"), (tables, "fourier"))
    )
    assert ours == pytest.approx(theirs, rel=1e-5)
    assert chain_mean(queries) == pytest.approx(theirs / MULTIPLIER, rel=1e-5), "the bound is attained"


@pytest.mark.parametrize(
    ("queries", "sets", "over"),
    [
        ([R(16), R(16)], [(0,), (1,)], 1.0145),
        ([R(12), H(12)], [(0, 1), (0,), (1,)], 1.022),
        ([R(8)] * 3, list(itertools.combinations(range(3), 2)), 1.029),
        ([S(5)] * 3, list(itertools.combinations(range(3), 2)), 1.057),
    ],
)
def test_error_over_the_least(queries, sets, over):
    workload = MarginalQueries(queries, sets=sets)
    least = so.plan(workload, PRIVACY, mechanism="optimal").rmse
    plan = so.plan(workload, PRIVACY, mechanism="residual")
    assert least * 0.9999 < plan.rmse <= over * least
    # The chain bound, which small tables do not need, is one.
    assert chain_mean(workload) * MULTIPLIER <= least
    assert chain_mean(workload) * MULTIPLIER >= 0.86 * least


def test_a_hundred_attributes_and_no_full_table():
    workload = MarginalQueries([R(10) if i % 2 else H(10) for i in range(100)], k=2)
    plan = so.plan(workload, PRIVACY)
    assert plan.mechanism == "residual-gaussian"
    assert plan.fit.bound.name == "chain bound"
    assert plan.fit.optimality < 1.16
    codes = records(workload, 1000)
    ranges = workload.split(plan.release(codes).values)[1, 3]
    assert ranges.shape == (55, 55)
    assert abs(ranges[9, 9] - 1000) < 6 * plan.fit.max_stderr, "the first range to the tenth value is all records"


def test_queries_that_are_a_total_or_no_ranges():
    total, odd = so.GroupBy([[0, 0, 0]]), so.Matrix([[1.0, -2.0, 0.5], [0.0, 1.0, 1.0]])
    workload = MarginalQueries([total, odd, H(3)], sets=[[0, 1], [1, 2]])
    codes = records(workload, 30)
    for privacy, mechanism in ((so.GaussianDP(mu=1e3), "residual"), (so.PureDP(epsilon=1e3), "weighted-tree")):
        plan = so.plan(workload, privacy, mechanism=mechanism)
        np.testing.assert_allclose(plan.release(codes).values, truth(workload, codes), atol=20 * plan.rmse + 1e-6)


def test_further_queries_follow():
    plan = so.plan(MIXED, so.GaussianDP(mu=1e3), mechanism="residual")
    codes = records(MIXED, 100)
    release = plan.release(codes)
    asked = MarginalQueries([H(5), H(3), H(4), H(2)], sets=[[0], [1, 3]])
    answer = release.answer(asked)
    np.testing.assert_allclose(answer.values, truth(asked, codes), atol=20 * plan.fit.max_stderr)


def test_files_and_reprs(tmp_path):
    plan = so.plan(MIXED, PRIVACY, mechanism="residual")
    assert so.Plan.load(plan.save(tmp_path / "plan.json")).digest == plan.digest
    assert "AllRanges(length=5)" in repr(MIXED)
    release = plan.release(records(MIXED, 10))
    back = so.Release.load(release.save(tmp_path / "release.arrow"))
    np.testing.assert_array_equal(back.values, release.values)
    assert so.workloads.workload_from_spec("marginal_queries", MIXED.spec()) == MIXED


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: MarginalQueries([], k=1), so.errors.InvalidParameterError),
        (lambda: MarginalQueries([3, 4], k=1), so.errors.DataTypeError),
        (lambda: MarginalQueries([R(3), H(2)]), so.errors.InvalidParameterError),
        (lambda: MarginalQueries([R(3), H(2)], k=3), so.errors.InvalidParameterError),
        (lambda: MarginalQueries([R(3), H(2)], sets=[[0, 2]]), so.errors.InvalidParameterError),
        (lambda: MarginalQueries([R(3), H(2)], sets=[[0], [0]]), so.errors.InvalidParameterError),
        (lambda: MarginalQueries([R(3), H(1)], k=1), so.errors.InvalidParameterError),
        (lambda: MarginalQueries([R(10_000), R(10_000)], k=2), so.errors.InvalidParameterError),
        (lambda: MarginalQueries([so.SortedHistogram(3), H(2)], k=1), so.errors.InvalidParameterError),
        (lambda: MarginalQueries([so.Marginals([2] * 40, k=2), H(2)], k=1), so.errors.InvalidParameterError),
        (lambda: MarginalQueries([2.0 * R(3) | H(3), H(2)], k=1), so.errors.InvalidParameterError),
        (lambda: MarginalQueries([R(3), H(2)], k=1, weights=[1.0]), so.errors.InvalidParameterError),
        (lambda: MarginalQueries([R(3)] * 2000, k=1), so.errors.InvalidParameterError),
    ],
)
def test_bad_arguments(make, error):
    with pytest.raises(error):
        make()
    assert so.plan(MIXED, PRIVACY).release(records(MIXED, 5)).values.shape == MIXED.answers_shape


def test_queries_that_do_not_tell_all_values_apart():
    """Without what completes them, rounding left an attribute's strategy short and its levels were measured instead."""
    thirds = [so.GroupBy([np.arange(10) * groups // 10]) for groups in (3, 3, 4)]
    workload = MarginalQueries(thirds, k=2)
    plan = so.plan(workload, PRIVACY, mechanism="residual")
    groups = so.plan(MarginalQueries([H(3), H(3), H(4)], k=2), PRIVACY, mechanism="residual")
    assert groups.rmse * 0.9999 < plan.rmse < 1.06 * groups.rmse
    loud = so.plan(workload, so.GaussianDP(mu=1e3), mechanism="residual")
    codes = records(workload, 100)
    np.testing.assert_allclose(loud.release(codes).values, truth(workload, codes), atol=20 * loud.rmse + 1e-6)


def test_one_weight_and_unions_of_the_same_attributes_are_marginal_queries_too():
    queries = [R(20), H(5), S(12)]
    pairs, single = MarginalQueries(queries, k=2), MarginalQueries(queries, k=1)
    plan = so.plan(pairs, PRIVACY, mechanism="residual")
    assert so.plan(2.0 * pairs, PRIVACY, mechanism="residual").rmse == pytest.approx(plan.rmse, rel=1e-9)
    both = so.plan(pairs | single, PRIVACY)
    assert both.mechanism == "residual-gaussian"
    assert both.rmse == pytest.approx(
        so.plan(MarginalQueries(queries, sets=[*pairs.sets, *single.sets]), PRIVACY).rmse, rel=1e-9
    )


def test_queries_that_sum_to_nothing_have_a_bound():
    contrasts = so.Matrix([[1.0, -1.0, 0.0, 0.0], [0.0, 1.0, -1.0, 0.0], [0.0, 0.0, 1.0, -1.0]])
    workload = MarginalQueries([contrasts, H(30), H(30)], k=2)
    assert 1.0 <= so.plan(workload, PRIVACY, mechanism="residual").optimality < 1.02


def test_long_running_sums_beside_their_total():
    plan = so.plan(S(5000) | so.GroupBy([[0] * 5000]), so.GaussianDP(mu=1.0))
    assert math.isfinite(plan.rmse)
    assert plan.explain()


def test_attributes_with_more_values_than_are_searched():
    workload = MarginalQueries([R(1025), H(2)], k=1)
    with pytest.raises(so.errors.UnsupportedMechanismError, match="at most 1024 values"):
        so.plan(workload, PRIVACY, mechanism="residual")
    assert so.plan(workload, PRIVACY).mechanism != "residual-gaussian"


def test_twelve_attributes_in_a_set_and_weights_that_can_be_squared():
    with pytest.raises(so.errors.InvalidParameterError, match="at most 12"):
        MarginalQueries([H(2)] * 13, k=13)
    with pytest.raises(so.errors.InvalidParameterError, match="weights"):
        MarginalQueries([H(2)] * 3, k=2, weights=[1e-307] * 3)


def test_every_mechanism_names_itself():
    for mechanism in (fit.mechanism.name for fit in so.compare(MIXED, PRIVACY).fits):
        assert so.plan(MIXED, PRIVACY, mechanism=mechanism).mechanism == mechanism
