"""Products whose axes are measured each in its own way: matrices, closed forms, and intervals on the cells that they tell apart."""

import numpy as np
import pytest

import sordino as so
from sordino import _core
from sordino.workloads import Intervals

GAUSSIAN, PURE = so.GaussianDP(mu=1.0), so.PureDP(epsilon=1.0)
UNITS = [so.AddRemove(), so.ReplaceOne(), so.AddRemove(3, per_cell=1)]
LONG = 1025  # cells of an axis that is not searched along


def some(count, length, seed=1):
    ends = np.sort(np.random.default_rng(seed).integers(0, length, (count, 2)), axis=1)
    return Intervals(ends[:, 0], ends[:, 1], length)


def normal(rows, columns):
    return so.Matrix(np.random.default_rng(7).normal(size=(rows, columns)))


# Workloads, and how far above the bound, which no certificate of a search sharpens here.
MIXED = {
    "intervals by cells": (so.Kronecker([some(2000, 300), so.Histogram(5000)]), 1.005),
    "few intervals by cells": (so.Kronecker([some(20, 300), so.Histogram(5000)]), 1.03),
    "cells by matrix": (so.Kronecker([so.Histogram(2000), normal(30, 20)]), 1.01),
    "wide matrix by sums": (so.Kronecker([normal(20, 40), so.RunningSum(2000)]), 1.05),
    "matrix by ranges": (so.Kronecker([normal(300, 200), so.AllRanges(2000)]), 1.01),
    "few intervals by ranges": (so.Kronecker([some(20, 300), so.AllRanges(2000)]), 1.03),
    "ranges by matrix by ranges": (so.Kronecker([so.AllRanges(1500), normal(10, 8), so.AllRanges(1500)]), 1.02),
    "two matrices by cells": (so.Kronecker([normal(30, 20), some(300, 100), so.Histogram(5000)]), 1.02),
    "matrix by groups": (so.Kronecker([normal(30, 20), so.GroupBy([np.arange(2000) // 40])]), 1.01),
    "cells and ranges by cells": (so.Kronecker([so.Histogram(2000) | so.AllRanges(2000), so.Histogram(30)]), 1.005),
    "sums by merged intervals": (so.Kronecker([so.RunningSum(2000), some(200, 10_000)]), 1.03),
}


@pytest.mark.parametrize(("workload", "most"), MIXED.values(), ids=MIXED)
def test_no_axis_makes_the_others_worse(workload, most):
    """They had noise on every cell, 3 to 40 times the bound, where an axis was too long to be searched along."""
    plan = so.plan(workload, GAUSSIAN)
    assert plan.mechanism == "balanced-gaussian"
    assert plan.fit.domain.max_value >= 4096
    assert plan.fit.optimality < most


SMALL = {
    "matrix by cells": so.Kronecker([so.Matrix([[1.0, 0.5], [0.0, 2.0]]), so.Histogram(LONG)]),
    "sums by wide matrix": so.Kronecker([so.RunningSum(LONG), so.Matrix([[1.0, -0.5, 1.0]])]),
    "intervals by sums": so.Kronecker([Intervals([0, 0], [3, 1], 6), so.RunningSum(LONG)]),
    "two of each": so.Kronecker([so.Matrix([[1.0, 0.5], [0.0, 2.0]]), so.RunningSum(LONG), some(3, 4)]),
}


def encoded(plan):
    """What is measured of so many records in a cell."""

    def measured(x):
        found = plan.fit.door.measure(plan.fit.strategy, np.ascontiguousarray(x).reshape(-1), bytes(32))
        return np.ldexp(found.units.astype(float), found.grid)

    zero = measured(np.zeros(plan.workload.input_shape, np.int64))
    return lambda x: measured(x) - zero


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("workload", SMALL.values(), ids=SMALL)
def test_neighbours_answers_and_variances(workload, unit):
    """Pairs of neighbours are no further apart than is said, answers are those of the definition, and of their variance."""
    plan = so.plan(workload, GAUSSIAN, unit=unit, mechanism="balanced")
    shape, rng = workload.input_shape, np.random.default_rng(3)
    of, many = encoded(plan), 4096
    cells = np.prod(shape)
    largest = 0.0
    for _ in range(60):
        x, places = np.zeros(cells, np.int64), rng.permutation(cells)[:3]
        x[places[:3] if unit.records == 3 else places[:1]] = many
        if isinstance(unit, so.ReplaceOne):
            x[places[1]] = -many
        largest = max(largest, float(np.linalg.norm(of(x))) / many)
    assert 0.2 * plan.fit.door.sensitivity[0] <= largest <= plan.fit.door.sensitivity[0] * (1.0 + 1e-8)
    x = rng.integers(0, 9, shape)
    truth = x
    for axis, factor in enumerate(workload.factors):
        truth = np.moveaxis(np.tensordot(_core.dense(factor.core), truth, (1, axis)), 0, axis)
    release = plan.release(x)
    assert (np.abs(release.values - truth) <= 11.0 * release.stderr).all()
    # Without noise the estimates are the answers; weights of an answer have its variance.
    strategy = plan.fit.strategy
    back = strategy.decode(strategy.multiplied(x.reshape(-1).astype(float)))
    assert np.allclose(back, truth.reshape(-1), rtol=1e-7, atol=1e-6)
    variances = strategy.variances()
    for t in rng.integers(0, len(variances), 5):
        row = np.ones(1)
        for factor, place in zip(workload.factors, np.unravel_index(t, workload.answers_shape), strict=True):
            row = np.kron(row, _core.dense(factor.core)[place])
        weights = strategy.weights(row)
        assert np.sum(np.square(weights)) == pytest.approx(variances[t], rel=1e-6)


def test_a_mixed_plan_is_saved(tmp_path):
    plan = so.plan(SMALL["two of each"], GAUSSIAN)
    plan.save(tmp_path / "plan.json")
    loaded = so.Plan.load(tmp_path / "plan.json")
    assert (loaded.mechanism, loaded.rmse, loaded.digest) == (plan.mechanism, plan.rmse, plan.digest)
    found = plan.fit.factorization
    assert found.closed_forms
    with pytest.raises(so.errors.UnsupportedMechanismError):
        _ = found.matrix


def days(count, each):
    """All ranges of days, of cells of which each has many."""
    first, last = np.triu_indices(count)
    return Intervals(first * each, (last + 1) * each - 1, count * each)


MERGED = {
    "by cells": (so.Histogram(10), 30, 144),
    "by ranges": (so.AllRanges(8), 30, 144),
    "long": (so.Histogram(3), 1500, 20),
    "long by ranges": (so.AllRanges(4), 1500, 20),
}


@pytest.mark.parametrize("privacy", [GAUSSIAN, PURE, so.ApproxDP(epsilon=1.0, delta=1e-6)], ids=str)
@pytest.mark.parametrize(("other", "count", "each"), MERGED.values(), ids=MERGED)
def test_cells_that_are_alike_along_an_axis_cost_nothing(other, count, each, privacy):
    """Minutes of which days are asked for: trees or roots of all minutes had up to four times the error."""
    plans = [so.plan(so.Kronecker([along, other]), privacy) for along in (days(count, 1), days(count, each))]
    assert plans[1].rmse == pytest.approx(plans[0].rmse, rel=3e-3)
    x = np.random.default_rng(0).integers(0, 5, plans[1].workload.input_shape)
    release = plans[1].release(x)
    sums = np.add.reduceat(x, np.arange(0, count * each, each), axis=0)
    truth = _core.dense(so.Kronecker([so.AllRanges(count), other]).core) @ sums.reshape(-1) if count < 100 else None
    if truth is not None:
        assert (np.abs(release.values.reshape(-1) - truth) <= 11.0 * release.stderr.reshape(-1)).all()
    boxes = [((3 * each, 7 * each - 1), (0, 1)), ((0, count * each - 1), (1, 2)), ((each, 2 * each - 1), (0, 0))]
    found = release.sum(np.array(boxes))
    true = [x[a : b + 1, c : d + 1].sum() for (a, b), (c, d) in boxes]
    assert (np.abs(found.values - true) <= 11.0 * found.stderr).all()
    assert (found.stderr > 0.1).all()


def test_parts_of_merged_cells_cannot_be_told():
    """Sums of merged cells are told of any number of boxes; what is in one of their cells is not."""
    release = so.plan(so.Kronecker([days(1500, 20), so.Histogram(3)]), GAUSSIAN).release(np.ones((30_000, 3), np.int64))
    first = 20 * np.arange(1000)
    boxes = np.stack([np.stack([first, first + 99], axis=1), np.tile([0, 2], (1000, 1))], axis=1)
    found = release.sum(boxes)
    assert (np.abs(found.values - 300.0) <= 11.0 * found.stderr).all()
    with pytest.raises(so.errors.UnsupportedMechanismError):
        release.sum([((0, 40), (0, 2))])
    with pytest.raises(so.errors.UnsupportedMechanismError):
        _ = release.cells


def test_cells_as_large_as_may_be_leave_the_digits_of_wide_matrices():
    """Rounded rows of two were not quite those that queries are made of: 41 standard errors off at the default bound."""
    workload = so.Kronecker([normal(2, 5), normal(3, 6), so.RunningSum(LONG)])
    plan = so.plan(workload, GAUSSIAN)
    assert plan.mechanism == "balanced-gaussian"
    x = np.random.default_rng(0).integers(0, 2, workload.input_shape).reshape(-1) * float(plan.fit.domain.max_value)
    truth = np.kron(workload.factors[0].A, workload.factors[1].A) @ np.cumsum(x.reshape(30, LONG), axis=1)
    lost = plan.fit.strategy.decode(plan.fit.strategy.multiplied(x)) - truth.reshape(-1)
    assert (np.abs(lost) <= 0.02 * np.sqrt(plan.fit.strategy.variances()) * plan.fit.door.noise).all()
    with pytest.raises(so.errors.UnsupportedMechanismError, match="digits"):
        so.plan(workload, GAUSSIAN, mechanism="balanced", max_value=8 * plan.fit.domain.max_value)
    # Cells along one more axis, millions of answers: they take no bits of the others, which had noise on every cell.
    workload = so.Kronecker([*workload.factors, so.Histogram(700)])
    more = so.plan(workload, GAUSSIAN)
    assert (more.mechanism, more.rmse) == ("balanced-gaussian", pytest.approx(plan.rmse, rel=1e-2))
    x = float(more.fit.domain.max_value) * np.ones(workload.input_shape).reshape(-1)
    lost = more.fit.strategy.decode(more.fit.strategy.multiplied(x)) - workload.core.apply(x)
    assert np.abs(lost).max() <= 0.05 * more.rmse
