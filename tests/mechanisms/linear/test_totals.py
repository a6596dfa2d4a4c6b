"""A total that counts beside ranges and running sums, and windows that lie in the series, under Gaussian noise."""

import math

import numpy as np
import pytest

import sordino as so
from known_noise import columns
from sordino import _core
from sordino.accuracy.factorizations import dense
from sordino.workloads import Intervals, Union

ONE = so.GaussianDP(mu=1.0)
LINES = pytest.mark.parametrize("queries", [so.RunningSum, so.AllRanges], ids=["sums", "ranges"])


def total(length):
    return so.GroupBy([np.zeros(length, dtype=int)])


def weighed(queries, length, times):
    """Return queries and the total, which counts so many times as much as all of them."""
    line = queries(length)
    return Union([line, total(length)], [1.0, times * line.core.answers_len])


@LINES
@pytest.mark.parametrize("times", [100.0, 1.0, 0.1, 1e-3])
def test_a_total_makes_no_step_where_roots_are_not_written_out(queries, times):
    plans = [so.plan(weighed(queries, length, times), ONE) for length in (1024, 1025, 4097, 2**15)]
    assert plans[0].optimality < 1.011
    assert all(plan.mechanism == "balanced-gaussian" and plan.optimality < 1.021 for plan in plans)
    assert plans[1].rmse < 1.02 * plans[0].rmse


@LINES
@pytest.mark.parametrize("times", [1e9, 30.0, 0.3])
@pytest.mark.parametrize("length", [1025, 1200])
def test_answers_errors_and_bound_are_those_of_the_matrix(queries, times, length):
    workload = weighed(queries, length, times) if queries is so.RunningSum else weighed(queries, length // 8, times)
    plan = so.plan(workload, ONE, mechanism="balanced") if queries is so.RunningSum else None
    strategy = (
        _core.Strategy.balanced_union(workload.core, list(workload.weights)) if plan is None else plan.fit.strategy
    )
    A, cells = dense(workload), workload.core.input_len
    B = np.array([strategy.multiplied(unit) for unit in np.eye(cells)]).T
    X = np.linalg.lstsq(B.T, A.T, rcond=None)[0].T
    variances = np.sum(X * X, axis=1)
    assert strategy.variances() == pytest.approx(variances, rel=1e-6)
    y = np.random.default_rng(3).normal(size=cells)
    assert strategy.decode(y) == pytest.approx(X @ y, rel=1e-6, abs=1e-6 * np.abs(X @ y).max())
    if times > 1e6:  # the matrix has no digits left for the others
        return
    # The bound is the root's diagonal, nearly.
    weights = workload.answer_weights()
    values, vectors = np.linalg.eigh(A.T @ (weights[:, None] * A))
    known = vectors**2 @ np.sqrt(np.maximum(values, 0.0))
    found = _core.root_diagonal(workload.core, list(workload.weights))
    assert (found <= known * (1 + 1e-9)).all()
    assert found == pytest.approx(known, rel=4e-6)


def test_a_record_that_is_replaced_changes_no_total():
    """All pairs of columns of a short line, a bound for a long one."""
    for length in (1500, 5000):
        workload = weighed(so.RunningSum, length, 100.0)
        strategy = _core.Strategy.balanced_union(workload.core, list(workload.weights))
        few = [0, 1, length // 2, length - 2, length - 1]
        measured = np.array([strategy.multiplied(np.eye(1, length, j)[0]) for j in few])
        apart = max(np.linalg.norm(a - b) for a in measured for b in measured)
        door = _core.fit(strategy, so.ReplaceOne().relation(), 1, 0, 1.0)
        single = _core.fit(strategy, so.AddRemove().relation(), 1, 0, 1.0)
        assert apart <= door.sensitivity[0] * (1 + 1e-9)
        # Clamping may turn a replacement into a removal.
        assert door.sensitivity[0] < 1.001 * single.sensitivity[0]


def test_an_interval_of_all_cells_is_a_total():
    length = 2000
    heavy = Union([so.RunningSum(length), Intervals([0], [length - 1], length)], [1.0, 3.0 * length])
    assert so.plan(heavy, ONE).rmse == pytest.approx(so.plan(weighed(so.RunningSum, length, 3.0), ONE).rmse, rel=1e-6)


# How much more error the ring of twice the series had, at least.
@pytest.mark.parametrize(("part", "saved"), [(0.5, 1.12), (0.75, 1.2), (0.34, 1.02), (0.25, 1.02)])
def test_windows_of_a_part_of_the_series_have_a_ring_of_their_own(part, saved):
    length = 1500
    window = int(part * length)
    workload = so.SlidingWindow(window, length, boundary="valid")
    plan = so.plan(workload, ONE, mechanism="fourier")
    assert so.plan(workload, ONE).rmse <= plan.rmse * 1.005
    twice = _core.Strategy(workload.core, "fourier", "gaussian", 2)
    before = math.sqrt(twice.variances().mean()) * _core.fit(twice, so.AddRemove().relation(), 1, 0, 1.0).sensitivity[0]
    assert before > saved * plan.rmse
    A = np.unique(dense(workload), axis=1)  # cells in the middle are alike
    values, vectors = np.linalg.eigh(A.T @ A)
    least = np.linalg.norm(vectors**2 @ np.sqrt(np.maximum(values, 0.0))) / math.sqrt(len(A))
    assert plan.rmse < 1.08 * least
    assert plan.fit.bound.value <= least * (1 + 1e-9)


@pytest.mark.parametrize("window", [1, 2, 11, 12, 13, 14, 23, 24])
@pytest.mark.parametrize("unit", [so.AddRemove(), so.ReplaceOne(), so.AddRemove(3, per_cell=1)], ids=str)
def test_windows_protect_and_err_as_stated(window, unit):
    workload = so.SlidingWindow(window, 24, boundary="valid")
    plan = so.plan(workload, ONE, unit=unit, mechanism="fourier")
    B, A = columns(plan), dense(workload)
    scale = plan.fit.door.noise
    if isinstance(unit, so.ReplaceOne):
        largest = max(np.linalg.norm(a - b) for a in B.T for b in B.T)
    else:
        most = 3 if unit != so.AddRemove() else 1
        cells = np.argsort(-np.linalg.norm(B, axis=0))[:most]
        largest = max(np.linalg.norm(B[:, cells].sum(axis=1)), np.linalg.norm(B[:, :most].sum(axis=1)))
    assert largest <= plan.fit.door.sensitivity[0] * (1 + 1e-9)
    assert np.linalg.norm(A @ np.linalg.pinv(B), axis=1) * scale == pytest.approx(plan.fit.stderr, rel=1e-6)


def test_rows_that_depend_on_each_other_give_no_bound_too_high():
    rng = np.random.default_rng(0)
    row = rng.integers(0, 100, 1500).astype(float)
    for copies, scale in ((6, 10.0**7.5), (4, 1e5), (5, 10.0**6.25)):
        workload = Union([so.RunningSum(1500), so.Matrix(np.repeat(row[None], copies, axis=0) * scale)])
        plan = so.plan(workload, ONE)
        assert 1.0 <= plan.optimality < 4.0


def test_other_windows_are_answered_where_little_is_won_by_a_ring_of_few_frequencies():
    length = 1000
    release = so.plan(so.SlidingWindow(28, length, boundary="valid"), ONE).release(np.zeros(length, dtype=int))
    assert np.isfinite(release.answer(so.SlidingWindow(7, length, boundary="valid")).values).all()


@pytest.mark.parametrize(("length", "window", "records"), [(24, 14, 20), (1500, 755, 1000)])
def test_cells_are_merged_where_that_errs_less_for_the_unit(length, window, records):
    workload, unit = so.SlidingWindow(window, length, boundary="valid"), so.AddRemove(records, per_cell=1)
    plan = so.plan(workload, ONE, unit=unit, mechanism="fourier")
    twice = _core.Strategy(workload.core, "fourier", "gaussian", 2)
    before = math.sqrt(twice.variances().mean()) * _core.fit(twice, unit.relation(), 1, 0, 1.0).sensitivity[0]
    assert plan.rmse <= before * (1 + 1e-3)
