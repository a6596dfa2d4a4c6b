"""Cells and weighted sums of them along the axes of products, and of the parts of unions, under pure privacy."""

import hashlib
import json
import math
import warnings

import numpy as np
import pytest

import sordino as so
from sordino.accuracy.factorizations import dense
from sordino.mechanisms.linear.measurement import door_of
from sordino.workloads import Intervals, Union

PURE = so.PureDP(epsilon=1.0)


def total(cells):
    return so.GroupBy([np.zeros(cells, dtype=int)])


PRODUCTS = [
    so.Kronecker([so.RunningSum(20), so.AllRanges(14)]),
    so.Kronecker([so.Histogram(3), so.RunningSum(30), total(4)]),
    so.Kronecker([so.SlidingWindow(9, 31), so.GroupBy([[0, 0, 0, 1, 1, 2, 2, 2, 2], list(range(9))])]),
    so.Kronecker(
        [Intervals([0, 1, 2, 3, 0], [3, 4, 5, 5, 2], 6, weights=[1.0, 2.0, 1.0, 5.0, 3.0]), so.RunningSum(48)]
    ),
    so.Kronecker([so.Matrix([[1.0, -2.0, 0.0], [0.0, 0.5, 3.0], [1.0, 1.0, 1.0]]), so.AllRanges(40), so.Histogram(2)]),
    so.Kronecker([so.AllRanges(300), so.RunningSum(1), total(2)]),
]

MARGINS = [so.Kronecker([so.AllRanges(20), total(18)]), so.Kronecker([total(20), so.RunningSum(18)])]
GROUPS = so.GroupBy([[0, 0, 1, 1, 1, 2, 2, 2], list(range(8))])
UNIONS = [
    so.Kronecker([so.AllRanges(20), so.RunningSum(18)]) | Union(MARGINS),
    Union(MARGINS, [1.0, 9.0]),  # cells are not determined
    so.Histogram((20, 18)) | 4.0 * Union(MARGINS) | so.Kronecker([total(20), total(18)]),
    Union([so.Kronecker([so.RunningSum(7), so.RunningSum(8), total(6)]),
              so.Kronecker([so.RunningSum(7), total(8), so.AllRanges(6)]),
              so.Kronecker([total(7), so.RunningSum(8), so.AllRanges(6)])]),
    Union([so.Kronecker([GROUPS, so.SlidingWindow(5, 33)]),
              so.Kronecker([so.Matrix(np.random.default_rng(2).normal(size=(5, 8))), so.Histogram(33)]),
              so.Kronecker([so.Histogram(8), Intervals([0, 4, 9], [32, 12, 9], 33, weights=[1.0, 3.0, 1.0])])]),
    so.Kronecker([so.Histogram(8), so.GroupBy([0, -1] * 20)]) | so.Kronecker([total(8), so.Histogram(40)]),
]  # fmt: skip


def released(plan, cells):
    with warnings.catch_warnings(), so.testing.deterministic_noise(bytes(range(32))):
        warnings.simplefilter("ignore")
        return plan.release(cells)


def columns(plan, cells):
    """Return what one record in each cell changes under known noise, shape (measured, cells)."""
    shape = plan.workload.input_shape
    base = released(plan, np.zeros(shape, dtype=int)).measured.values()
    one = np.eye(cells, dtype=int)
    return np.stack([released(plan, row.reshape(shape)).measured.values() - base for row in one], axis=1)


@pytest.mark.parametrize("workload", PRODUCTS + UNIONS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 30.0, 1e4])
def test_products_are_private_and_state_their_errors(workload, epsilon):
    plan = so.plan(workload, so.PureDP(epsilon=epsilon), mechanism="p-identity")
    cells = math.prod(workload.input_shape)
    B = columns(plan, cells)
    norms = np.abs(B).sum(axis=0)
    door = plan.fit.door
    assert norms.max() <= sum(door.sensitivity) * (1 + 1e-12)
    assert sum(door.sensitivity) <= door.sensitivity[0] * (1 + 1e-4)
    assert norms.min() >= norms.max() * (1 - 1e-3)  # but for totals nothing is given away
    moved = door_of(plan.fit.strategy, so.ReplaceOne(1), plan.fit.domain, plan.fit.ratio).sensitivity[0]
    assert moved >= 2.0 * norms.max() * (1 - 1e-12)
    A = dense(workload)
    inverse, noise = np.linalg.pinv(B), math.sqrt(2.0) * door.noise
    if small := epsilon < 1.0:  # else noise on whole numbers is not near enough to the continuous law
        assert np.allclose(plan.fit.stderr, noise * np.linalg.norm(A @ inverse, axis=1), rtol=1e-3)
    x = np.arange(cells).reshape(workload.input_shape) * 7 % 10
    release = released(plan, x)
    assert np.abs(release.values.reshape(-1) - A @ x.reshape(-1)).max() < 12.0 * plan.fit.stderr.max() + 1e-6
    rows = np.random.default_rng(1).normal(size=(3, cells))
    if small and np.linalg.matrix_rank(B) == cells:
        found = release.answer(so.Matrix(rows))
        assert np.allclose(found.stderr, noise * np.linalg.norm(rows @ inverse, axis=1), rtol=1e-3)


@pytest.mark.parametrize("workload", PRODUCTS[:4] + UNIONS)
def test_plans_come_back_from_files(workload, tmp_path):
    plan = so.plan(workload, PURE, mechanism="p-identity")
    again = so.Plan.load(plan.save(tmp_path / "plan.json"))
    assert (again.digest, again.rmse) == (plan.digest, plan.rmse)
    x = np.ones(workload.input_shape, dtype=int)
    assert (released(plan, x).values == released(again, x).values).all()
    found = plan.fit.factorization
    measured = columns(plan, math.prod(workload.input_shape))
    ideal = found.matrix
    # Whole numbers of at most 2^28 units, less empty rows.
    assert len(measured) <= len(ideal) and found.entries == ideal.size
    kept = np.abs(ideal).max(axis=1) > 1e-2
    assert kept.sum() <= len(measured)
    assert np.allclose(np.abs(ideal).sum(axis=0), 1.0)


@pytest.mark.parametrize(
    ("size", "most"),
    [((32, 32), 0.83), ((64, 256), 0.8), ((1024, 1024), 0.77), ((4096, 4), 0.92), ((20, 20, 20), 0.8)],
)
def test_products_have_less_error_than_trees(size, most):
    workload = so.Kronecker([so.RunningSum(n) for n in size])
    plan, trees = so.plan(workload, PURE), so.plan(workload, PURE, mechanism="weighted-tree")
    assert plan.mechanism == "p-identity-laplace" and plan.rmse < most * trees.rmse
    assert plan.fit.inflation < 1e-3
    # Of cells that are no integers a tree measures in floating point.
    assert so.plan(workload, PURE, integral=False).mechanism in {"weighted-tree-laplace", "identity-laplace"}


@pytest.mark.parametrize(
    "workload",
    [
        so.RunningSum(1500),
        so.AllRanges(600),
        so.Kronecker([so.RunningSum(40), so.AllRanges(12)]),
        so.Histogram(300) | so.AllRanges(300),
    ],
)
def test_what_is_made_for_the_mean_may_have_the_least_largest_error(workload):
    worst = so.plan(workload, PURE, objective="max")
    mean, trees = so.plan(workload, PURE), so.plan(workload, PURE, mechanism="weighted-tree")
    assert worst.max_stderr <= mean.max_stderr
    assert worst.max_stderr < 0.95 * trees.max_stderr


def test_axes_that_are_too_long_keep_their_trees():
    workload = so.Kronecker([so.RunningSum(2**14), so.AllRanges(4)])
    assert so.plan(workload, PURE).mechanism == "weighted-tree-laplace"
    with pytest.raises(so.errors.UnsupportedMechanismError, match="4096"):
        so.plan(workload, PURE, mechanism="p-identity")
    with pytest.raises(so.errors.UnsupportedMechanismError, match="sums"):
        so.plan(so.Kronecker([so.Histogram(40), total(20)]), PURE, mechanism="p-identity")


@pytest.mark.parametrize(
    "axis",
    [
        Intervals([0, 5, 3], [12, 9, 14], 16),
        Intervals([0, 0], [7, 15], 16),
        so.GroupBy([[0] * 4 + [1] * 4 + [2] * 8, [0] * 8 + [1] * 8]),
    ],
)
def test_axes_with_cells_that_are_not_told_apart_keep_their_digits(axis):
    """Sums would have all the weight there, and what they leave to the cells would be rounding."""
    workload = so.Kronecker([axis, so.RunningSum(24)])
    plan = so.plan(workload, PURE)
    cells = np.random.default_rng(0).integers(0, plan.fit.domain.max_value // 10, (16, 24))
    noise = released(plan, np.zeros_like(cells)).values
    lost = released(plan, cells).values - noise - (dense(workload) @ cells.reshape(-1)).reshape(noise.shape)
    assert np.abs(lost).max() < 1e-3 * plan.fit.stderr.min()
    with pytest.raises(so.errors.UnsupportedMechanismError, match="digits"):
        so.plan(workload, PURE, mechanism="p-identity")


def test_a_total_of_some_cells_is_what_is_measured():
    some = so.GroupBy([[0, -1, 0]], weights=[3.0])
    plan = so.plan(so.Kronecker([so.RunningSum(100), some]), PURE, mechanism="p-identity")
    measured = columns(plan, 300)
    ideal = plan.fit.factorization.matrix
    assert ((measured == 0.0).all(axis=0) == (ideal == 0.0).all(axis=0)).all()
    assert (np.arange(300) % 3 == 1).tolist() == (ideal == 0.0).all(axis=0).tolist()


def both(side):
    return 3.0 * so.Kronecker([so.RunningSum(side)] * 2) | so.Kronecker([so.RunningSum(side), total(side)])


def test_parts_of_unions_are_searched_for(tmp_path):
    workload = both(32)
    plan = so.plan(workload, PURE, mechanism="split")
    assert [part.mechanism for part in plan.fit.parts] == ["p-identity-laplace"] * 2
    B = columns(plan, 1024)
    assert np.abs(B).sum(axis=0).max() <= sum(plan.fit.door.sensitivity) * (1 + 1e-12)
    again = so.Plan.load(plan.save(tmp_path / "plan.json"))
    x = np.arange(1024).reshape(32, 32) % 11
    release = released(plan, x)
    assert (release.values == released(again, x).values).all()
    truth = np.concatenate([dense(part) @ x.reshape(-1) for part in workload.parts])
    assert np.abs(release.values - truth).max() < 12.0 * plan.max_stderr


def altered(plan, path, change):
    record = json.loads(plan.save(path).read_text())
    record.pop("digest")
    change(record)
    content = json.dumps(record, sort_keys=True, separators=(",", ":"))
    path.write_text(json.dumps({**record, "digest": hashlib.sha256(content.encode()).hexdigest()}))
    return path


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record["factorization"].__setitem__("beside_cells", [True]),
        lambda record: record["factorization"].__setitem__("beside_cells", [True, 1]),
        lambda record: record["factorization"].__setitem__("beside_cells", [False, True]),
        lambda record: record["factorization"].__setitem__("beside_cells", {}),
        lambda record: record["factorization"].__setitem__("beside_cells", True),
        lambda record: record["factorization"]["factors"].pop(),
        lambda record: record["factorization"]["factors"].reverse(),
        lambda record: record["factorization"].__setitem__("kind", "ellipsoid"),
        lambda record: record["factorization"].__setitem__("law", "gaussian"),
    ],
)
def test_altered_products_are_refused(change, tmp_path):
    plan = so.plan(so.Kronecker([so.RunningSum(20), so.AllRanges(14)]), PURE, mechanism="p-identity")
    with pytest.raises(so.errors.PlanFileError):
        so.Plan.load(altered(plan, tmp_path / "plan.json", change))


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record["parts"][0].pop(),
        lambda record: record["parts"][0].append(record["parts"][0][2]),
        lambda record: record["parts"][0].__setitem__(2, None),
        lambda record: record["parts"][0].__setitem__(2, {}),
        lambda record: record["parts"][0].__setitem__(2, record["parts"][1][2]),
        lambda record: record["parts"][0].__setitem__(0, "weighted-tree-laplace"),
        lambda record: record["parts"][0][2].__setitem__("kind", "balanced"),
        lambda record: record["parts"][0][2].__setitem__("factors", []),
        # So heavy that estimates would have no digits, and variances below zero.
        lambda record: record["parts"][0][2].__setitem__("factors", [[[1e14] * 17]] * 2),
        lambda record: record.__setitem__("parts", {}),
        lambda record: record.__setitem__("parts", None),
    ],
)
def test_altered_searched_parts_are_refused(change, tmp_path):
    with pytest.raises(so.errors.PlanFileError):
        so.Plan.load(altered(so.plan(both(17), PURE, mechanism="split"), tmp_path / "plan.json", change))
