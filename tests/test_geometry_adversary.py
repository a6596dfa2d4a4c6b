"""Attacks on the searched strategies and everything around them: neighbours by brute force, cases at the edge."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog

import sordino as so
from geometry import dense
from sordino import mechanisms
from sordino.mechanisms import MECHANISMS

APPROX = so.ApproxDP(epsilon=1.0, delta=1e-6)
PURE = so.PureDP(epsilon=1.0)
FACTORED = [m for m in MECHANISMS if m.factored]
GAUSSIAN = [m for m in FACTORED if m.law == "gaussian"]
LAPLACE = [m for m in FACTORED if m.law == "laplace"]


def named(cases):
    return [m.name for m in cases]


def constraint_of(mechanism):
    return so.PublicBound(50) if mechanism.projected else None


def planned(workload, mechanism, **more):
    privacy = PURE if mechanism.law == "laplace" else APPROX
    return so.plan(workload, privacy, mechanism=mechanism.name, constraint=constraint_of(mechanism), **more)


def norm_of(plan):
    """The norm that the noise of a plan is calibrated to, from its factorization alone."""
    found, geometry = plan.factorization, plan.fitted.strategy.geometry
    if geometry == "l2":
        return np.linalg.norm
    if geometry == "l1":
        return lambda z: np.abs(z).sum()
    if geometry == "blocks":
        edges = np.cumsum(found.blocks)[:-1]
        return lambda z: sum(np.linalg.norm(part) for part in np.split(z, edges))
    assert geometry == "body"
    B = found.matrix

    def gauge(z):
        if not z.any():
            return 0.0
        solved = linprog(np.ones(2 * B.shape[1]), A_eq=np.hstack([B, -B]), b_eq=z, bounds=(0, None))
        assert solved.status == 0
        return solved.fun

    return gauge


QUERIES = np.array([[1.0, 1, 0, -1], [0, 2, 1, 0.5], [1, 0, 0, 0.25]])
WORKLOADS = {
    "matrix": so.Matrix(QUERIES),
    "weighted": so.Matrix(QUERIES, weights=[1e-3, 1.0, 1e3]),
    "union": so.RunningSum(4) | 5 * so.Matrix(QUERIES),
    "product": so.Kronecker([so.RunningSum(2), so.Matrix([[1.0, 1], [1, -1], [0, 3]])]),
}
# What one protected thing can change, as a brute-force list of differences of a table of four cells.
UNITS = {
    "one": (so.AddRemove(1), lambda d: np.abs(d).sum() <= 1),
    "three": (so.AddRemove(3), lambda d: np.abs(d).sum() <= 3),
    "capped": (so.AddRemove(3, per_cell=2), lambda d: np.abs(d).sum() <= 3 and np.abs(d).max() <= 2),
    # Clamping shrinks either side of a move.
    "moved": (so.ReplaceOne(1), lambda d: d[d > 0].sum() <= 1 and -d[d < 0].sum() <= 1),
    "moved twice": (so.ReplaceOne(2), lambda d: d[d > 0].sum() <= 2 and -d[d < 0].sum() <= 2),
}
DIFFERENCES = [np.array(d) for d in itertools.product(range(-3, 4), repeat=4)]


@pytest.mark.parametrize("mechanism", named(FACTORED))
@pytest.mark.parametrize("unit", UNITS)
def test_neighbours_are_never_farther_apart_than_the_noise_covers(mechanism, unit, known_noise):
    """Measured under the same noise, clamping and lattice included."""
    how = next(m for m in MECHANISMS if m.name == mechanism)
    relation, allowed = UNITS[unit]
    differences = [d for d in DIFFERENCES if allowed(d)]
    # The gauge of K-norm noise is a linear program: the extreme points of the relation are enough.
    extreme = [d for d in differences if np.count_nonzero(d) <= 2]
    for name, workload in WORKLOADS.items():
        plan = planned(workload, how, unit=relation, max_value=2)
        norm, total = norm_of(plan), sum(plan.sensitivity.values())
        slow = plan.fitted.strategy.geometry == "body"
        # At the edge of the domain, so that differences are cut.
        tables = [np.array([2, -2, 1, 0])] if slow else [np.zeros(4, int), np.array([2, -2, 1, 0]), np.full(4, 2)]
        largest = 0.0
        for x in tables:
            at = measured(plan, x)
            for d in extreme[:: 1 + 3 * slow] if slow else differences:
                largest = max(largest, norm(measured(plan, x + d) - at))
        # The gauge is that of the matrix in doubles, and of a solver's accuracy.
        assert largest <= total * (1.0 + (1e-6 if slow else 1e-12)), name
        ratio = plan.fitted.door.noise / plan.fitted.ratio
        assert ratio >= total * (1.0 - 1e-12), name
        assert total <= plan.sensitivity["ideal"] * (1.0 + 1e-5), name
        B, records = plan.factorization.matrix, relation.records
        column = max(norm(b) for b in B.T)
        assert plan.sensitivity["ideal"] >= (1 if unit == "capped" else records) * column * (1.0 - 1e-9), name
        if unit in {"one", "three"}:
            assert plan.sensitivity["ideal"] <= records * column * (1.0 + 1e-9), name


def measured(plan, x):
    shaped = np.asarray(x).reshape(plan.workload.input_shape)
    cells = np.ascontiguousarray(shaped.reshape(-1), dtype=np.int64)
    return plan.fitted.door.measure(plan.fitted.strategy, cells, bytes(32)).values()
