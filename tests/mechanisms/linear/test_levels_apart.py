"""Levels of groups that cross, each run of nested ones by its own strategy."""

import math

import numpy as np
import pytest

import sordino as so
from known_noise import columns, released
from sordino.accuracy.factorizations import dense
from sordino.workloads import Union

ONE = so.GaussianDP(mu=1.0)
CELLS = 3000
LEVELS = [np.arange(CELLS), np.arange(CELLS) // 7, np.arange(CELLS) % 50]


def test_runs_are_nested_and_ask_the_same():
    workload = so.GroupBy([[0, 1, 2, 3], [0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 0, 0]], weights=[1.0, 2.0, 3.0, 4.0])
    runs = workload.nested_runs
    assert [len(run.labels) for run in runs] == [2, 2] and all(run.nested for run in runs)
    assert np.array_equal(dense(Union(runs)), dense(workload))
    assert runs[0].nested_runs == (runs[0],)


def test_levels_without_any_group_are_in_no_run():
    empty, pairs, parities = np.full(6, -1), np.arange(6) // 2, np.arange(6) % 2
    for levels in ([empty, pairs, parities], [pairs, empty, parities], [pairs, parities, empty]):
        workload = so.GroupBy(levels)
        assert np.array_equal(dense(Union(workload.nested_runs)), dense(workload))
        assert so.plan(workload, ONE, mechanism="split-gaussian").rmse == pytest.approx(1.414, rel=0.01)


def test_many_cells_have_less_error_than_noise_on_each():
    workload = so.GroupBy(LEVELS)
    plan = so.plan(workload, ONE)
    assert plan.mechanism == "split-gaussian"
    assert 1.0 <= plan.optimality < 1.1
    beside = so.plan(Union([workload, so.RunningSum(CELLS)], [1.0, 0.1]), ONE, mechanism="split-gaussian")
    assert len(beside.fit.parts) == 3
    assert plan.rmse < 0.81 * so.plan(workload, ONE, mechanism="identity-gaussian").rmse


@pytest.mark.parametrize("privacy", [ONE, so.PureDP(epsilon=1.0)], ids=["gaussian", "pure"])
@pytest.mark.parametrize("beside", [False, True])
def test_they_are_private_and_state_their_errors(privacy, beside, tmp_path):
    rng = np.random.default_rng(5)
    workload = so.GroupBy([rng.integers(-1, 4, 24), np.arange(24) // 3, np.arange(24) // 6], weights=[2.0, 1.0, 1.0])
    workload = Union([workload, so.RunningSum(24)], [1.0, 3.0]) if beside else workload
    plan = so.plan(workload, privacy, mechanism="split")
    B, A = columns(plan), dense(workload)
    order, deviation = (2, 1.0) if privacy is ONE else (1, math.sqrt(2.0))
    assert np.linalg.norm(B, order, axis=0).max() <= sum(plan.fit.door.sensitivity) * (1 + 1e-12)
    inverse = np.linalg.lstsq(B.T, A.T, rcond=None)[0]
    assert np.allclose(B.T @ inverse, A.T)
    assert (plan.fit.stderr >= np.linalg.norm(inverse, axis=0) * deviation * plan.fit.door.noise * (1 - 1e-6)).all()
    again = so.Plan.load(plan.save(tmp_path / "plan.json"))
    assert again.digest == plan.digest
    x = np.arange(24) % 5
    assert np.array_equal(released(again, x).values, released(plan, x).values)
    loud = so.plan(workload, so.PureDP(epsilon=1e6) if privacy is not ONE else so.GaussianDP(mu=1e6), mechanism="split")
    assert released(loud, x).values == pytest.approx(A @ x, abs=1e-3)


def test_bounds_of_the_runs_add_up():
    labels = [np.arange(20), np.arange(20) // 4, np.arange(20) % 3]
    workload = so.GroupBy(labels)
    runs = workload.nested_runs
    apart = math.sqrt(sum(run.core.answers_len * so.plan(run, ONE).fit.bound.value ** 2 for run in runs))
    best = so.optimal.factorize(workload, gap=1e-6).certificate.lower * math.sqrt(workload.core.answers_len)
    assert apart <= best * (1 + 1e-5)
