"""Unions whose parts together leave cells alike: what is measured, how far neighbours are apart, and what it costs."""

import itertools

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import sordino as so
from sordino import _core
from sordino.workloads import Intervals

GAUSSIAN, PURE = so.GaussianDP(mu=1.0), so.PureDP(epsilon=1.0)
UNITS = [so.AddRemove(), so.ReplaceOne(), so.AddRemove(3, per_cell=1), so.AddRemove(4, per_cell=2)]


def days(count, each):
    return Intervals(each * np.arange(count), each * np.arange(1, count + 1) - 1, count * each)


def all_ranges(count, each):
    first, last = np.triu_indices(count)
    return Intervals(first * each, (last + 1) * each - 1, count * each)


def total(cells):
    return so.GroupBy([[0] * cells])


def months(cells, each, first=0):
    labels = np.arange(cells) // each
    return so.GroupBy([np.where(np.arange(cells) < first, -1, labels - labels[first])])


# Of so many cells for each that is told apart, one or several.
UNIONS = {
    "line": lambda k: days(6, k) | Intervals([k], [4 * k - 1], 6 * k),
    "line and matrices": lambda k: (
        so.Matrix(np.kron([[1.0, 0.5, 0.5, 0.0], [0.0, 0.0, 2.0, 1.0]], np.ones(k)))
        | so.Matrix(scipy.sparse.csr_matrix(np.kron([[0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0]], np.ones(k))))
        | Intervals([0], [2 * k - 1], 4 * k)
    ),
    "line with a gap": lambda k: Intervals([0, 4 * k], [k - 1, 5 * k - 1], 7 * k) | months(7 * k, 2 * k, 4 * k),
    "groups of one cell each": lambda k: months(6 * k, k) | all_ranges(6, k),
    "a union in a union": lambda k: so.workloads.Union([days(4, k) | total(4 * k), 2.0 * months(4 * k, 2 * k)]),
    "products": lambda k: (
        2.0 * so.Kronecker([days(5, k), so.Histogram(3)]) | so.Kronecker([total(5 * k), so.AllRanges(3)])
    ),
    "products along both": lambda k: (
        so.Kronecker([all_ranges(3, k), total(2 * k)])
        | so.Kronecker([months(3 * k, k), days(2, k)])
        | so.Kronecker([total(3 * k), total(2 * k)])
    ),
    "along an axis": lambda k: so.Kronecker([days(4, k) | Intervals([k], [3 * k - 1], 4 * k), so.RunningSum(2)]),
    "flat": lambda k: (
        so.Kronecker([days(3, k), so.Histogram(2)], flat=True)
        | so.Kronecker([total(3 * k), so.Histogram(2)], flat=True)
    ),
}
NAMES = [
    "auto",
    "optimal",
    "balanced-gaussian",
    "split-gaussian",
    "p-identity-laplace",
    "weighted-tree-laplace",
    "laminar-laplace",
]


@pytest.mark.parametrize("union", UNIONS.values(), ids=UNIONS)
def test_merged_cells_are_those_that_no_part_tells_apart(union):
    fine, coarse = union(3), union(1)
    assert np.array_equal(_core.dense(fine.merged.core), _core.dense(coarse.merged.core))
    assert fine.merged.answer_weights() is None or np.array_equal(fine.merged.answer_weights(), fine.answer_weights())
    assert fine.merged.merged is fine.merged
    A = _core.dense(fine.core)
    firsts, left_out = fine.core.distinct_cells()
    assert np.array_equal(A[:, firsts], _core.dense(fine.merged.core))
    assert (left_out is None) == bool(A.any(axis=0).all())
    assert left_out is None or not A[:, left_out].any()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("union", UNIONS.values(), ids=UNIONS)
def test_neighbours_answers_and_variances(union, name):
    """All pairs of neighbours are as far apart as is said at most; answers have the least variance of what is measured."""
    workload, served = union(2), False
    A, n = _core.dense(workload.core), workload.core.input_len
    for unit, privacy in itertools.product(UNITS, [GAUSSIAN, PURE]):
        try:
            plan = so.plan(workload, privacy, unit=unit, mechanism=name)
        except so.errors.SordinoError:
            continue
        served = True
        strategy, door = plan.fit.strategy, plan.fit.door

        def measured(x, strategy=strategy, door=door):
            found = door.measure(strategy, x, bytes(32))
            return np.ldexp(found.units.astype(float), found.grid)

        zero = measured(np.zeros(n, np.int64))
        B = np.stack([measured(row) - zero for row in 4096 * np.eye(n, dtype=np.int64)], axis=1) / 4096.0
        changes = changes_of(unit, n)
        largest = max(np.linalg.norm(B @ change, ord=1 if strategy.geometry == "l1" else 2) for change in changes)
        assert largest <= door.sensitivity[0] * (1.0 + 1e-8)
        if unit == so.AddRemove() and not plan.mechanism.startswith("split"):  # whose columns are largest apart
            assert largest >= door.sensitivity[0] * (1.0 - 1e-6)
        x = np.random.default_rng(1).integers(0, 9, workload.input_shape)
        release = plan.release(x)
        truth, stderr = A @ x.reshape(-1), release.stderr.reshape(-1)
        assert (np.abs(release.values.reshape(-1) - truth) <= 11.0 * stderr).all()
        noise = door.noise**2 * np.asarray(strategy.unit_variances())
        covariance = np.linalg.pinv((B.T / noise) @ B)
        if plan.mechanism.startswith("split"):
            continue  # each part from its own
        assert np.allclose(stderr**2, np.einsum("tj,jk,tk->t", A, covariance, A), rtol=1e-4)
    assert served or name in {"balanced-gaussian", "weighted-tree-laplace", "laminar-laplace", "split-gaussian"}


def changes_of(unit, n):
    """All that a unit may do to so many cells, or much of it."""
    every = np.eye(n)
    if isinstance(unit, so.ReplaceOne):
        return [every[i] - every[j] for i, j in itertools.permutations(range(n), 2)]
    if unit.records == 1:
        return list(every)
    count, cap = unit.records // unit.per_cell, unit.per_cell
    some = itertools.islice(itertools.combinations(range(n), count), 400)
    return [cap * every[list(chosen)].sum(axis=0) for chosen in some]


@pytest.mark.parametrize("privacy", [GAUSSIAN, PURE, so.ApproxDP(epsilon=1.0, delta=1e-6)], ids=str)
@pytest.mark.parametrize("union", UNIONS.values(), ids=UNIONS)
def test_cells_that_are_alike_cost_nothing(union, privacy):
    """Minutes of which days are asked for: they had noise of their own, up to five times the least error."""
    fine, coarse = so.plan(union(50), privacy), so.plan(union(1), privacy)
    # Whole numbers, whose noise is a little less, are measured of few sums.
    assert fine.rmse <= coarse.rmse * (1.004 if privacy == GAUSSIAN else 1.03)
    x = np.random.default_rng(0).integers(0, 5, fine.workload.input_shape)
    release = fine.release(x)
    truth = fine.workload.core.apply(x.reshape(-1).astype(float))
    assert (np.abs(release.values.reshape(-1) - truth) <= 11.0 * release.stderr.reshape(-1)).all()


@pytest.mark.parametrize("privacy", [GAUSSIAN, PURE], ids=str)
def test_long_lines_of_groups_beside_intervals_have_their_closed_form(privacy):
    """Groups that are merged to one cell each are cells, which trees and roots go with."""
    first, last = np.sort(np.random.default_rng(2).integers(0, 5000, (50_000, 2)), axis=1).T
    workload = Intervals(8 * first, 8 * last + 7, 40_000) | months(40_000, 8)
    plan = so.plan(workload, privacy)
    assert plan.mechanism in {"balanced-gaussian", "weighted-tree-laplace"}
    x = np.random.default_rng(0).integers(0, 5, 40_000)
    release = plan.release(x)
    assert (np.abs(release.values - workload.core.apply(x.astype(float))) <= 11.0 * release.stderr).all()


@pytest.mark.parametrize("privacy", [GAUSSIAN, PURE], ids=str)
def test_parts_are_measured_apart_on_the_merged_cells(privacy):
    """Each part had noise on all cells of the table: 14.4 for 2.15."""
    plans = [
        so.plan(
            so.Kronecker([days(64, k), so.Histogram(64)]) | so.Kronecker([total(64 * k), so.AllRanges(64)]),
            privacy,
            mechanism="split",
        )
        for k in (1, 16)
    ]
    assert plans[1].rmse == pytest.approx(plans[0].rmse, rel=1e-3)
    x = np.random.default_rng(0).integers(0, 5, (1024, 64))
    release = plans[1].release(x)
    truth = plans[1].workload.core.apply(x.reshape(-1).astype(float))
    assert (np.abs(release.values.reshape(-1) - truth) <= 11.0 * release.stderr.reshape(-1)).all()
    with pytest.raises(so.errors.SordinoError):
        _core.Strategy.of_merged_cells(plans[1].workload.core, plans[1].fit.strategy)  # of all cells
    with pytest.raises(so.errors.SordinoError):
        _core.Strategy.of_merged_cells(plans[0].workload.core, plans[0].fit.strategy)  # nothing is merged


def test_sums_are_of_whole_merged_cells():
    workload = so.Kronecker([days(30, 24), so.Histogram(10)]) | so.Kronecker([total(720), so.AllRanges(10)])
    x = np.random.default_rng(0).integers(0, 5, (720, 10))
    release = so.plan(workload, GAUSSIAN).release(x)
    found = release.sum([((24, 95), (0, 4)), ((0, 719), (9, 9))])
    truth = [x[24:96, :5].sum(), x[:, 9].sum()]
    assert (np.abs(found.values - truth) <= 11.0 * found.stderr).all()
    assert (found.stderr > 0.1).all()
    with pytest.raises(so.errors.UnsupportedMechanismError):
        release.sum([((24, 96), (0, 4))])


@pytest.mark.parametrize("privacy", [GAUSSIAN, PURE], ids=str)
@pytest.mark.parametrize("mechanism", ["auto", "split"])
@pytest.mark.parametrize("union", [UNIONS["line"], UNIONS["products"], UNIONS["products along both"]])
def test_plans_and_releases_are_saved(union, mechanism, privacy, tmp_path):
    plan = so.plan(union(40), privacy, mechanism=mechanism)
    plan.save(tmp_path / "plan.json")
    loaded = so.Plan.load(tmp_path / "plan.json")
    assert (loaded.mechanism, loaded.rmse, loaded.digest) == (plan.mechanism, plan.rmse, plan.digest)
    release = plan.release(np.ones(plan.workload.input_shape, np.int64))
    release.save(tmp_path / "release.arrow")
    assert np.array_equal(so.Release.load(tmp_path / "release.arrow").values, release.values)


@pytest.mark.parametrize("privacy", [GAUSSIAN, PURE], ids=str)
def test_tables_are_projected_onto_cells_of_the_whole_table(privacy):
    """The cells that are told are those of the table, not of the merged one."""
    for workload in (
        so.Kronecker([Intervals([0, 2], [7, 3], 10), so.Histogram(2)]),
        Intervals([0, 2], [7, 3], 10) | so.GroupBy([[0] * 4 + [-1] * 6]),
    ):
        x = np.zeros(workload.input_shape, np.int64)
        x[2] = 5
        plan = so.plan(workload, privacy, constraint=so.optimal.PublicBound(10))
        release = plan.release(x)
        table = np.zeros(x.size)
        table[release.projection.cells] = release.projection.weights
        assert np.allclose(workload.core.apply(table), release.values.reshape(-1), atol=1e-6)


@st.composite
def lines(draw, cells):
    kind = draw(st.integers(0, 3))
    if kind == 0:
        ends = draw(st.lists(st.tuples(st.integers(0, cells - 1), st.integers(0, cells - 1)), min_size=1, max_size=4))
        return Intervals([min(pair) for pair in ends], [max(pair) for pair in ends], cells)
    labels = draw(st.lists(st.integers(-1, 2), min_size=cells, max_size=cells).filter(lambda row: max(row) >= 0))
    if kind == 1:
        return so.GroupBy([labels])
    A = np.array([labels, labels[::-1]], float)
    return so.Matrix(A if kind == 2 else scipy.sparse.csr_matrix(A)) if A.any() else total(cells)


@st.composite
def unions(draw):
    cells, parts = draw(st.integers(2, 9)), draw(st.integers(1, 3))
    along = [draw(lines(cells)) for _ in range(parts)]
    if draw(st.booleans()):
        other = draw(st.integers(1, 4))
        second = [draw(st.sampled_from([so.Histogram(other), so.RunningSum(other), total(other)])) for _ in along]
        along = [so.Kronecker(pair) for pair in zip(along, second, strict=True)]
    return so.workloads.Union(along, [draw(st.sampled_from([1.0, 0.5, 3.0])) for _ in along])


@given(unions())
@settings(max_examples=150, deadline=None, derandomize=True)
def test_queries_of_merged_cells_are_the_same_queries(workload):
    A, merged = _core.dense(workload.core) + 0.0, workload.merged
    distinct = workload.core.distinct_cells()
    if distinct is None:
        assert merged is workload
        return
    firsts, _ = distinct
    assert np.array_equal(A[:, firsts], _core.dense(merged.core))
    # Every column is one of them or zero.
    known = {A[:, j].tobytes() for j in firsts} | {np.zeros(len(A)).tobytes()}
    assert {A[:, j].tobytes() for j in range(A.shape[1])} <= known
    weights = workload.answer_weights()
    assert merged.answer_weights() is weights is None or np.array_equal(merged.answer_weights(), weights)


@pytest.mark.parametrize("privacy", [GAUSSIAN, PURE], ids=str)
def test_nested_groups_keep_their_closed_form(privacy):
    """A search on the merged cells took ten times as long and ended a little above it."""
    cells = np.arange(2**20)
    plan = so.plan(so.GroupBy([cells // 2**12]) | so.GroupBy([cells // 2**16]) | total(2**20), privacy)
    assert plan.mechanism.startswith("laminar")
