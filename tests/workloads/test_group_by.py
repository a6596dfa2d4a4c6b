"""Sums over groups: what they answer, which levels are nested, and the least error of hierarchies."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sordino as so
from sordino.accuracy.factorizations import dense

ONE = so.GaussianDP(mu=1.0)
RNG = np.random.default_rng(6)


def hierarchy(*sizes):
    """Levels of equal blocks, from all cells to single ones."""
    cells, levels = math.prod(sizes), []
    block = cells
    for size in (1, *sizes):
        block //= size
        levels.append(np.arange(cells) // block)
    return levels


def test_answers_are_weighted_sums_of_the_groups():
    workload = so.GroupBy([[0, 0, 1, -1], [1, 0, 3, 3]], weights=[2.0, 0.5])
    assert dense(workload).tolist() == [
        [2, 2, 0, 0], [0, 0, 2, 0],
        [0, 0.5, 0, 0], [0.5, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0.5, 0.5],
    ]  # fmt: skip
    assert workload.groups.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1], [1, 2], [1, 3]]
    assert [part.tolist() for part in workload.split(np.arange(6.0))] == [[0, 1], [2, 3, 4, 5]]
    assert workload.level_sizes == (2, 4) and workload.answers_shape == (6,) and workload.input_shape == (4,)
    assert so.GroupBy([0, 1, 0]) == so.GroupBy([[0, 1, 0]]) != so.GroupBy([0, 1, 1])
    with pytest.raises(so.errors.ShapeError):
        workload.split(np.arange(5.0))
    loud = so.plan(workload, so.GaussianDP(mu=1e6)).release([5, 7, 1, 2])
    assert np.allclose(loud.values, [24, 2, 3.5, 2.5, 0, 1.5], atol=1e-3)


@given(st.lists(st.lists(st.integers(-1, 3), min_size=6, max_size=6), min_size=1, max_size=3))
def test_nested_levels_are_told(labels):
    """By the groups as sets; and the strategy of nested groups serves these alone."""
    array = np.array(labels)
    if (array < 0).all(axis=1).any():
        return
    workload = so.GroupBy(array)
    sets = [frozenset(np.flatnonzero(level == g)) for level in array for g in range(level.max() + 1)]
    nested = all(a <= b or b <= a or not a & b for a in sets for b in sets)
    assert workload.nested == nested
    if nested:
        plan = so.plan(workload, ONE, mechanism="laminar")
        best = so.plan(workload, ONE, mechanism="optimal")
        assert plan.rmse <= best.rmse * 1.02
        release = plan.release(np.arange(6))
        assert np.allclose(release.stderr, plan.fit.stderr)
    else:
        with pytest.raises(so.errors.UnsupportedMechanismError, match="nested"):
            so.plan(workload, ONE, mechanism="laminar")


@pytest.mark.parametrize(
    ("sizes", "optimum"),
    [((4, 4, 4), 149.450892), ((4, 8, 16), 843.5874), ((12, 30), 511.2706), ((7, 24), 249.8864)],
)
def test_equal_levels_have_the_least_error(sizes, optimum):
    workload = so.GroupBy(hierarchy(*sizes))
    plan = so.plan(workload, ONE, mechanism="laminar")
    assert plan.rmse**2 * workload.core.answers_len == pytest.approx(optimum, rel=1e-4)
    assert plan.fit.bound.value**2 * workload.core.answers_len == pytest.approx(optimum, rel=1e-6)
    assert 1.0 <= plan.optimality < 1.0001


def test_a_million_cells():
    """Sixteen in each group, five levels: .515 of the error of noise on the cells, with its certificate."""
    workload = so.GroupBy(hierarchy(16, 16, 16, 16, 16))
    privacy = so.ApproxDP(epsilon=1.0, delta=1e-6)
    plan = so.plan(workload, privacy, mechanism="laminar-gaussian")
    assert plan.rmse == pytest.approx(5.152, abs=1e-3) and plan.optimality < 1.0001
    assert so.plan(workload, privacy, mechanism="identity-gaussian").rmse == pytest.approx(10.020, abs=1e-3)
    release = plan.release(np.ones(2**20, dtype=np.int64))
    assert release.values.shape == (1118481,)


def test_weights_of_levels_move_the_error():
    labels = [np.arange(3000), np.arange(3000) // 60, np.zeros(3000, dtype=int)]
    errors = {}
    for weights in ([1, 1, 1], [1, 1, 20]):
        workload = so.GroupBy(labels, weights=weights)
        plan = so.plan(workload, so.ApproxDP(epsilon=1.0, delta=1e-6), mechanism="laminar-gaussian")
        parts = workload.split(plan.fit.stderr)
        errors[weights[2]] = [part.mean() / weight for part, weight in zip(parts, weights, strict=True)]
        assert plan.optimality < 1.001 if plan.optimality is not None else len(labels[0]) > 1024
    assert errors[20][2] < errors[1][2] / 3 and errors[20][0] < errors[1][0] * 1.2


def test_groups_of_other_sizes_have_weights_of_their_own():
    """Four records, one of a cell: a group is charged for as many as it has cells, and disjoint ones are weighed by that."""
    sizes = np.array([3, 1, 8, 1, 8, 2])
    changes = np.minimum(4, sizes)
    unit = so.AddRemove(4, per_cell=1)
    disjoint = so.GroupBy([np.repeat(np.arange(6), sizes)])
    plan = so.plan(disjoint, ONE, unit=unit, mechanism="laminar-gaussian")
    assert plan.rmse == pytest.approx(math.sqrt(4 * changes.mean()), rel=1e-4)
    # Small groups and large ones, and all of them: as one kind they had 4.48.
    labels = np.repeat(np.arange(40), [1] * 30 + [50] * 10)
    total = so.GroupBy([labels, np.zeros(len(labels), int)])
    assert so.plan(total, ONE, unit=unit, mechanism="laminar-gaussian").rmse < 3.125


def test_unions_and_matrices_of_groups():
    """Error weights of parts count, answers stay; the matrix of a hierarchy is planned as well as the hierarchy."""
    groups = so.GroupBy(np.arange(600) // 20)
    for workload in (so.Histogram(600) | groups, so.Histogram(600) | 50.0 * groups):
        plan = so.plan(workload, ONE, mechanism="laminar")
        assert 1.0 <= plan.optimality < 1.001
    labels = hierarchy(5, 6, 7)
    matrix, named = so.Matrix(dense(so.GroupBy(labels))), so.GroupBy(labels)
    assert so.plan(matrix, ONE, mechanism="laminar").rmse == so.plan(named, ONE, mechanism="laminar").rmse
    assert so.plan(so.Matrix(dense(named)), ONE).rmse <= so.plan(named, ONE, mechanism="laminar").rmse * 1.0001


def test_products_of_hierarchies():
    one, other = so.GroupBy(hierarchy(4, 4, 4)), so.GroupBy(hierarchy(7, 24))
    plan = so.plan(so.Kronecker([one, other]), ONE, mechanism="balanced")
    assert plan.optimality < 1.001
    squares = [so.plan(part, ONE, mechanism="laminar").rmse for part in (one, other)]
    assert plan.rmse == pytest.approx(squares[0] * squares[1], rel=1e-3)
    pure = so.plan(so.Kronecker([one, so.AllRanges(30)]), so.PureDP(epsilon=1.0), mechanism="weighted-tree")
    for made in (plan, pure):
        cells = RNG.integers(0, 9, made.workload.input_shape)
        release = made.release(cells)
        truth = made.workload.core.apply(cells.reshape(-1).astype(float)).reshape(release.values.shape)
        scores = (release.values - truth) / release.stderr
        assert 0.5 < np.sqrt((scores**2).mean()) < 1.6


def test_coarse_groups_need_no_cells():
    """Where no group tells cells apart, nothing is measured of them one by one."""
    workload = so.GroupBy([np.arange(1000) // 100, np.zeros(1000, dtype=int)])
    plan = so.plan(workload, ONE, mechanism="laminar")
    assert plan.fit.strategy.measured_len == 11
    release = plan.release(np.ones(1000))
    with pytest.raises(so.errors.UnsupportedMechanismError):
        _ = release.cells
    with pytest.raises(so.errors.UnsupportedMechanismError):
        release.sum([[0, 5]])
    assert release.answer(so.GroupBy(np.arange(1000) // 500)).values.shape == (2,)


@pytest.mark.parametrize(
    ("labels", "weights", "error"),
    [
        ([], None, so.errors.ShapeError),
        ([[]], None, so.errors.ShapeError),
        ([[[0]]], None, so.errors.ShapeError),
        ([[0, 1], [0]], None, so.errors.DataTypeError),
        (["a", "b"], None, so.errors.DataTypeError),
        ([0.5, 1.0], None, so.errors.DataTypeError),
        ([-2, 0], None, so.errors.InvalidParameterError),
        ([-1, -1], None, so.errors.InvalidParameterError),
        ([0, 2**26], None, so.errors.InvalidParameterError),
        ([0, 2**70], None, so.errors.InvalidParameterError),
        ([0, 1], [1.0, 2.0], so.errors.InvalidParameterError),
        ([0, 1], [0.0], so.errors.InvalidParameterError),
        ([0, 1], ["a"], so.errors.DataTypeError),
    ],
)
def test_labels_are_checked(labels, weights, error):
    with pytest.raises(error):
        so.GroupBy(labels, weights=weights)


def test_plans_of_groups_are_saved(tmp_path):
    workload = so.GroupBy(hierarchy(3, 4), weights=[3.0, 1.0, 1.0])
    for mechanism in ("laminar", "optimal"):
        plan = so.plan(workload, ONE, mechanism=mechanism)
        again = so.ReleasePlan.load(plan.save(tmp_path / f"{mechanism}.json"))
        assert again.digest == plan.digest and again.workload == workload
