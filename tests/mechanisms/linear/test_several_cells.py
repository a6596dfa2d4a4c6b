"""Units that change several cells at once: the least error, and what is charged for it."""

import itertools
import math

import numpy as np
import pytest

import sordino as so

PRIVACY = so.ApproxDP(epsilon=1.0, delta=1e-6)
EIGHT = {
    "histogram": so.Histogram(8),
    "sums": so.RunningSum(8),
    "windows": so.Matrix([[float(0 <= t - j < 3) for j in range(8)] for t in range(8)]),
    "ranges": so.AllRanges(8),
    "cells and total": so.Matrix([*np.eye(8), np.ones(8)]),
    "differences": so.Matrix(np.eye(8) - np.eye(8, k=-1)),
    "marginals": so.Marginals([2, 2, 2], k=2),
}
# Root mean squared error at noise multiplier 1 where 2, 4 or 8 cells rise, within 1e-4, by another implementation.
LEAST = {
    "histogram": (1.3956, 1.8229, 1.9069),
    "sums": (2.5431, 4.0958, 5.3687),
    "windows": (2.1912, 3.1531, 3.5497),
    "ranges": (2.4029, 3.6420, 4.4431),
    "cells and total": (1.7872, 2.6614, 3.2998),
    "differences": (1.7126, 2.0885, 2.0926),
    "marginals": (2.0, 2.7321, 3.0),
}


def raises(cells, per_cell=1, records=None):
    return so.AddRemove(records or cells * per_cell, per_cell=per_cell, one_signed=True)


def moves(cells):
    return so.AddRemove(cells, per_cell=1)


def all_changes(cells, most, signed):
    """Every change of at most so many cells by one."""
    for m in range(1, most + 1):
        for places in itertools.combinations(range(cells), m):
            for signs in itertools.product((1.0, -1.0) if signed else (1.0,), repeat=m):
                v = np.zeros(cells)
                v[list(places)] = signs
                yield v


def largest(matrix, changes):
    return max(np.linalg.norm(matrix @ v) for v in changes)


@pytest.mark.parametrize("name", EIGHT)
@pytest.mark.parametrize("which", range(3))
def test_least_errors_of_eight_cells(name, which):
    most, known = (2, 4, 8)[which], LEAST[name][which]
    workload, unit = EIGHT[name], raises(most)
    found = so.optimal.factorize(workload, unit=unit)
    assert found.gap < 1e-3
    lower = found.certificate.lower
    assert lower <= known + 6e-5 and known <= lower * (1 + found.gap) * (1 + 1.5e-4)
    plan = so.plan(workload, so.GaussianDP(mu=1.0), unit=unit, factorization=found)
    assert math.isclose(plan.rmse, lower * (1 + found.gap), rel_tol=1e-5)
    # The sensitivity is that of all changes, listed.
    true = largest(found.matrix, all_changes(8, most, signed=False))
    assert true <= plan.fit.sensitivity["ideal"] <= true * (1 + 1e-6)
    assert 1.0 <= plan.optimality <= 1 + found.gap + 1e-5


@pytest.mark.parametrize("name", EIGHT)
@pytest.mark.parametrize("most", [2, 5])
def test_mixed_signs(name, most):
    workload, unit = EIGHT[name], moves(most)
    found = so.optimal.factorize(workload, unit=unit)
    plan = so.plan(workload, so.GaussianDP(mu=1.0), unit=unit, factorization=found)
    true = largest(found.matrix, all_changes(8, most, signed=True))
    assert true <= plan.fit.sensitivity["ideal"] <= true * (1 + 1e-6)
    assert found.gap < 1e-3
    no_negative_products = so.optimal.factorize(workload, unit=raises(most))
    assert no_negative_products.certificate.lower <= found.certificate.lower * (1 + found.gap)
    users = so.plan(workload, so.GaussianDP(mu=1.0), unit=so.UserLevel(most), factorization=found)
    assert users.rmse == plan.rmse
    if name == "histogram":  # independent noise
        assert math.isclose(plan.rmse, math.sqrt(most), rel_tol=1e-3)


def test_the_certificate_is_checked_by_hand():
    workload = EIGHT["ranges"]
    found = so.optimal.factorize(workload, unit=raises(3))
    proof = found.certificate
    A = np.array([workload.core.row(t) for t in range(36)])
    v = proof.cell_weights[0] / proof.cell_weights[0].sum()
    bound = np.linalg.norm(A @ proof.changes.T * np.sqrt(v), "nuc") / 6.0
    assert math.isclose(bound, proof.lower, rel_tol=1e-9)
    assert set(np.unique(proof.changes)) <= {0, 1} and proof.changes.sum(axis=1).max() == 3


@pytest.mark.parametrize("cap", [2, 3])
def test_several_records_in_a_cell(cap):
    """Changes scale with what one cell takes; what is left over of them costs no more than a cell more."""
    workload = EIGHT["sums"]
    plans = {
        records: so.plan(workload, so.GaussianDP(mu=1.0), unit=raises(0, cap, records), mechanism="optimal")
        for records in (4 * cap, 4 * cap + 1, 5 * cap)
    }
    one = so.plan(workload, so.GaussianDP(mu=1.0), unit=raises(4), mechanism="optimal")
    assert math.isclose(plans[4 * cap].rmse, cap * one.rmse, rel_tol=1e-6)
    assert plans[4 * cap].rmse < plans[4 * cap + 1].rmse <= plans[5 * cap].rmse * 1.001
    matrix = plans[4 * cap + 1].fit.factorization.matrix
    true = max(
        np.linalg.norm(matrix @ (cap * v + left))
        for v in all_changes(8, 4, signed=False)
        for left in np.eye(8)[np.flatnonzero(v == 0)]
    )
    assert true <= plans[4 * cap + 1].fit.sensitivity["ideal"]


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_what_is_charged_for_any_matrix(seed, signed):
    """Measured as they are, with entries of any signs, dependent and zero columns."""
    rng = np.random.default_rng(seed)
    rows, cells, most = (5, 7, 3) if seed % 2 else (9, 6, 6)
    matrix = rng.integers(-2, 3, (rows, cells)).astype(float) if seed < 3 else rng.normal(size=(rows, cells))
    matrix[:, 1] = -matrix[:, 0]
    matrix[:, 2] = 0.0
    unit = moves(most) if signed else raises(most)
    plan = so.plan(so.Matrix(matrix), so.GaussianDP(mu=1.0), unit=unit, mechanism="output")
    factor = plan.fit.strategy.answer_weights(0, matrix[0]).max()
    true = largest(matrix, all_changes(cells, most, signed)) / factor
    assert true <= plan.fit.sensitivity["ideal"] <= true * (1 + 1e-6)


def test_sixty_four_cells():
    """Where changes cannot be listed: what the proof of the sensitivity costs is said, and small."""
    for workload, most in ((so.RunningSum(64), 16), (so.Matrix(np.eye(64) - np.eye(64, k=-1)), 64)):
        plan = so.plan(workload, PRIVACY, unit=raises(most), mechanism="optimal")
        assert 1.0 < plan.optimality < 1.02
        matrix = plan.fit.factorization.matrix
        rng = np.random.default_rng(0)
        for _ in range(200):
            v = np.zeros(64)
            v[rng.choice(64, most, replace=False)] = 1.0
            assert np.linalg.norm(matrix @ v) <= plan.fit.sensitivity["ideal"]
        text = plan.explain()
        assert "dual over changes of several cells" in text and "certified" in text
        assert "for changes of one cell" not in text


@pytest.mark.slow
def test_256_cells():
    for workload in (so.RunningSum(256), so.Matrix(np.eye(256) - np.eye(256, k=-1))):
        for most in (4, 256):
            assert so.plan(workload, PRIVACY, unit=raises(most), mechanism="optimal").optimality < 1.06


def test_auto_takes_it():
    workload = so.Matrix(np.eye(32) - np.eye(32, k=-1))
    plan = so.plan(workload, PRIVACY, unit=raises(8))
    assert plan.mechanism == "optimal-gaussian"
    single = so.plan(workload, PRIVACY, unit=so.AddRemove(8))
    assert plan.rmse < 0.93 * single.rmse


def test_beyond_the_search():
    """More cells and the largest error have strategies for single cells, whose charge is proved."""
    for workload, unit, asked in (
        (so.RunningSum(300), moves(4), {}),
        (EIGHT["sums"], raises(4), {"objective": "max"}),
    ):
        plan = so.plan(workload, PRIVACY, unit=unit, mechanism="optimal", **asked)
        assert plan.fit.factorization.certificate.changes is None
        single = np.linalg.norm(plan.fit.factorization.matrix, axis=0).max()
        assert single < plan.fit.sensitivity["ideal"] < 0.99 * unit.records * single
        assert "for changes of one cell" in plan.explain()


def test_users_whose_steps_lie_apart():
    """The search is that for steps side by side; its certificate counts as an average of single steps."""
    apart, near = (so.UserLevel(3, min_separation=separation) for separation in (2, 1))
    plans = [so.plan(EIGHT["sums"], PRIVACY, unit=unit, mechanism="optimal") for unit in (apart, near)]
    assert plans[0].rmse == plans[1].rmse
    assert plans[0].optimality > plans[1].optimality
    # A bound that holds for one step holds.
    single = so.plan(EIGHT["sums"], PRIVACY, unit=so.UserLevel(1), mechanism="optimal")
    assert plans[0].fit.bound.value <= single.rmse


def test_cells_are_no_more_than_there_are():
    for unit in (so.UserLevel(1000), so.UserLevel(21, per_step=3), so.AddRemove(30, per_cell=2)):
        plan = so.plan(so.Histogram(9), so.GaussianDP(mu=1.0), unit=unit, mechanism="identity")
        searched = so.plan(so.RunningSum(9), so.GaussianDP(mu=1.0), unit=unit, mechanism="optimal")
        assert 1.0 <= searched.optimality < 1.01
        assert math.isclose(plan.rmse, 3.0 * (unit.per_step if isinstance(unit, so.UserLevel) else 2), rel_tol=1e-6)


def test_mixed_signs_of_many_cells():
    """Never worse than noise on the cells, nor than the strategy for one cell."""
    for cells, most in ((64, 16), (128, 8)):
        unit = moves(most)
        rmse = {
            name: so.plan(so.RunningSum(cells), PRIVACY, unit=unit, mechanism=name).rmse
            for name in ("optimal", "identity-gaussian")
        }
        single = so.optimal.factorize(so.RunningSum(cells))
        rmse["single"] = so.plan(so.RunningSum(cells), PRIVACY, unit=unit, factorization=single).rmse
        assert rmse["optimal"] <= min(rmse.values()) * (1 + 1e-6)


@pytest.mark.parametrize("scale", [1e-140, 1e-80, 1e80, 1e140])
def test_what_is_charged_scales(scale):
    matrix = np.random.default_rng(0).normal(size=(20, 30))
    one, other = (
        so.plan(so.Matrix(matrix * s), so.GaussianDP(mu=1.0), unit=raises(9), mechanism="output") for s in (1.0, scale)
    )
    assert math.isclose(one.rmse * scale, other.rmse, rel_tol=1e-5)


def test_searches_that_end_early():
    for gap in (1.0, 0.5, 0.1):
        assert so.optimal.factorize(so.RunningSum(10), unit=raises(3), gap=gap).gap < gap
    found = so.optimal.factorize(so.RunningSum(40), unit=raises(7), progress=lambda iteration, gap: iteration < 3)
    assert 0.0 < found.gap < 0.6 and found.iterations == 3


@pytest.mark.parametrize("cells", [8, 16, 48])
def test_plans_are_kept(cells, tmp_path):
    """In the file or beside it, changes are small integers in memory and whole ones when read."""
    plan = so.plan(so.RunningSum(cells), PRIVACY, unit=raises(4), mechanism="optimal")
    kept = so.Plan.load(plan.save(tmp_path / "plan.json"))
    assert so.Plan.load(kept.save(tmp_path / "again.json")).digest == plan.digest
    assert kept.digest == plan.digest and kept.optimality == plan.optimality
    proof = kept.fit.factorization.certificate
    assert kept.rmse == plan.rmse
    assert (proof.changes == plan.fit.factorization.certificate.changes).all()


def test_certificates_of_other_units():
    found = so.optimal.factorize(EIGHT["sums"], unit=raises(4))
    for unit in (raises(3), so.AddRemove(4), so.AddRemove(1), so.ReplaceOne(4), so.UserLevel(2, min_separation=2)):
        with pytest.raises(so.errors.InvalidParameterError, match="another unit"):
            so.plan(EIGHT["sums"], PRIVACY, unit=unit, factorization=found)
    assert so.plan(EIGHT["sums"], PRIVACY, unit=moves(5), factorization=found).rmse > 0.0
    signed = so.optimal.factorize(EIGHT["sums"], unit=moves(4))
    if (signed.certificate.changes < 0).any():
        with pytest.raises(so.errors.InvalidParameterError, match="another unit"):
            so.plan(EIGHT["sums"], PRIVACY, unit=raises(4), factorization=signed)
    with pytest.raises(so.errors.DataTypeError):
        so.optimal.factorize(EIGHT["sums"], unit=4)
