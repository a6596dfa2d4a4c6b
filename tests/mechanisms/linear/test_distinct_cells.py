"""Cells that no query tells apart, under pure privacy: their sum is measured, with weighted sums of such sums."""

import math

import numpy as np
import pytest

import sordino as so
from known_noise import columns, released
from sordino.accuracy.factorizations import dense
from sordino.workloads import Union

RNG = np.random.default_rng(11)

WORKLOADS = [
    so.GroupBy([[0, 0, 0, 0, 1, 1, 1, 1], [0, 1] * 4]),
    so.GroupBy([RNG.integers(0, 3, 60), RNG.integers(0, 4, 60)], weights=[1.0, 3.0]),
    so.GroupBy([[0, 0, -1, 1, 1, -1, 0], [0, 1, -1, 1, 0, -1, 0]]),  # a cell that nobody asks for
    so.Matrix(np.repeat(RNG.normal(size=(5, 6)), 3, axis=1)),
    so.Matrix([[1, 1, 0, 0, 0, 0, 0, 0], [0, 0.5, 1, 0, 0, 2, 0, 1], [1] * 8]),
    so.Matrix([[0.0, 2.0, 2.0, 0.0]]),
    Union([so.GroupBy([[0, 0, 1, 1, 1]]), so.Matrix([[1.0, 1.0, 1.0, 1.0, 2.0]])], [1.0, 50.0]),
]


@pytest.mark.parametrize("workload", WORKLOADS, ids=repr)
@pytest.mark.parametrize("integral", [True, False])
def test_sums_of_them_are_private_and_state_their_errors(workload, integral, tmp_path):
    options = {} if integral else {"integral": False, "max_value": 1}
    plan = so.plan(workload, so.PureDP(epsilon=0.05), mechanism="p-identity", **options)
    B, A = columns(plan), dense(workload)
    door = plan.fit.door
    norms = np.abs(B).sum(axis=0)
    assert norms.max() <= sum(door.sensitivity) * (1 + 1e-12)
    assert norms.min() >= norms.max() * (1 - 1e-3)  # nothing is given away
    errors = np.linalg.norm(A @ np.linalg.pinv(B), axis=1) * math.sqrt(2.0) * door.noise
    assert plan.fit.stderr == pytest.approx(errors, rel=2e-3)
    x = np.arange(A.shape[1]) % 2
    again = so.Plan.load(plan.save(tmp_path / "plan.json"))
    assert again.digest == plan.digest
    assert np.array_equal(released(again, x).values, released(plan, x).values)
    loud = so.plan(workload, so.PureDP(epsilon=1e6), mechanism="p-identity", **options)
    assert released(loud, x).values == pytest.approx(A @ x, abs=1e-2)


@pytest.mark.parametrize(
    "workload",
    [
        WORKLOADS[0],
        so.GroupBy([np.arange(200) // 20 % 5, np.arange(200) // 20 // 5]),
        so.Matrix(np.repeat(np.arange(100).reshape(10, 10) % 3, 20, axis=1)),
    ],
    ids=repr,
)
def test_they_cost_next_to_no_error(workload):
    """No more than noise on their sums alone, and a hundredth for what is left to the cells."""
    plan = so.plan(workload, so.PureDP(epsilon=1.0))
    assert plan.mechanism == "p-identity-laplace"
    distinct = np.unique(dense(workload), axis=1)
    alone = math.sqrt(2.0 * np.square(distinct).sum() / len(distinct))
    assert plan.rmse < 1.01 * alone
    assert plan.rmse < 0.85 * so.plan(workload, so.PureDP(epsilon=1.0), mechanism="identity").rmse


def test_cells_that_nobody_asks_for_are_no_start():
    asked = np.hstack([np.eye(3), np.zeros((3, 2))])
    found = so.optimal.factorize(so.Matrix(asked), kind="p-identity", law="laplace")
    assert np.abs(found.matrix).sum(axis=0) == pytest.approx(np.ones(5))


def test_searches_of_them_end_where_they_are_told_to():
    calls = []
    asked = WORKLOADS[4]
    found = so.optimal.factorize(
        asked, kind="p-identity", law="laplace", progress=lambda k, gap: bool(calls.append(k)) or k < 3
    )
    assert len(calls) <= 6
    assert so.plan(asked, so.PureDP(epsilon=1.0), mechanism="p-identity", factorization=found).rmse < math.inf
