"""Noise in common in streams whose records raise several coordinates: references, norms, covariances, refusals."""

import itertools
import math

import numpy as np
import pytest

import sordino as so

APPROX = so.ApproxDP(epsilon=1.0, delta=1e-6)
ONE = so.GaussianDP(mu=1.0)


def sums(steps, dim, touched=None, **options):
    return so.Continual(so.RunningSum(steps), dim=dim, cells_per_record=touched or dim, **options)


@pytest.mark.parametrize(("dim", "alone", "together"), [(5, 27.876, 19.99), (10, 39.422, 25.87)])
def test_reference_values(dim, alone, together):
    independent = so.plan(sums(1000, dim, common_noise=False), APPROX)
    shared = so.plan(sums(1000, dim), APPROX)
    assert independent.rmse == pytest.approx(alone, rel=2e-3) and shared.rmse == pytest.approx(together, rel=2e-3)
    assert independent.fit.door.common is None and shared.fit.door.common > 0.5
    assert "on all of them together" in shared.explain()
    assert shared.optimality < 1.01


@pytest.mark.parametrize(
    "mechanism",
    ["identity", "output", "square-root", "binary-tree", "two-diagonals", "time-varying-blt", "blt", "optimal"],
)
@pytest.mark.parametrize(("dim", "touched"), [(2, 2), (4, 3), (5, 5)])
def test_no_record_is_further_than_is_charged(mechanism, dim, touched):
    """By enumeration of the cells that one record raises, under the inverse covariance of a step's noise."""
    plan = so.plan(sums(12, dim, touched), ONE, mechanism=mechanism)
    ratio = plan.fit.door.common
    if ratio is None:
        pytest.skip("nothing to gain")
    inverse = np.linalg.inv(np.eye(dim) + ratio**2 * np.ones((dim, dim)))
    largest = max(
        np.array(v) @ inverse @ np.array(v) for v in itertools.product((0, 1), repeat=dim) if 0 < sum(v) <= touched
    )
    alone = so.plan(sums(12, 1), ONE, mechanism=mechanism)
    column = alone.fit.door.sensitivity[0]
    assert plan.fit.door.sensitivity[0] == pytest.approx(column * math.sqrt(largest), rel=1e-9)
    assert plan.fit.door.sensitivity[0] >= column * math.sqrt(largest) * (1 - 1e-12)
    assert plan.fit.door.scale >= sum(plan.fit.door.sensitivity) * plan.fit.ratio * (1 - 1e-12)
    # More records and steps: triangle inequality.
    three = so.plan(sums(12, dim, touched), ONE, mechanism=mechanism, unit=so.AddRemove(3))
    assert three.fit.door.sensitivity[0] == pytest.approx(3.0 * plan.fit.door.sensitivity[0], rel=1e-9)


@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", ["identity", "square-root", "binary-tree", "two-diagonals", "time-varying-blt"])
def test_covariances_are_as_declared(mechanism, known_noise):
    """1500 streams: standard deviations and correlations of coordinates at every step, at 6 standard errors."""
    dim, steps, repeats = 3, 9, 1500
    plan = so.plan(sums(steps, dim), ONE, mechanism=mechanism)
    share = plan.fit.door.common**2 / (1.0 + plan.fit.door.common**2)
    items = np.random.default_rng(0).integers(0, 5, (steps, dim))
    errors = []
    for seed in range(repeats):
        with so.testing.deterministic_noise(seed.to_bytes(32, "big")):
            errors.append(plan.release(items).values - np.cumsum(items, axis=0))
    errors = np.array(errors)
    spread = 6.0 / math.sqrt(2.0 * repeats)
    assert np.allclose(errors.std(axis=0), plan.fit.std(range(1, steps + 1))[:, None], rtol=spread)
    for t in range(steps):
        correlations = np.corrcoef(errors[:, t].T)[np.triu_indices(dim, 1)]
        assert np.abs(correlations - share).max() < 6.0 / math.sqrt(repeats)


def test_cuts_and_checkpoints_change_nothing(known_noise, tmp_path):
    plan = so.plan(sums(20, 4), ONE)
    assert plan.fit.door.common
    items = np.random.default_rng(1).integers(0, 9, (20, 4))
    whole = plan.release(items).values
    with plan.open() as stream:
        pieces = [stream.update(items[a:b]) for a, b in ((0, 1), (1, 8), (8, 20))]
    assert np.array_equal(np.concatenate([np.atleast_2d(piece) for piece in pieces]), whole)
    again = so.Plan.load(_saved(plan, tmp_path))
    assert again.fit.door.common == plan.fit.door.common and again.fit.is_same(plan.fit)


def _saved(plan, folder):
    plan.save(folder / "plan.json")
    return folder / "plan.json"


@pytest.mark.parametrize(
    "workload",
    [
        sums(50, 5, one_signed=False),
        sums(50, 5, 1),
        sums(50, 5, common_noise=False),
        so.Continual(so.RunningSum(50), dim=5, cells_per_record=5, horizon="soft"),
        so.Continual(so.ExponentialSmoothing(0.9), dim=5, cells_per_record=5),
    ],
    ids=["signs", "one", "not wanted", "soft", "unbounded"],
)
def test_where_there_is_none(workload):
    assert so.plan(workload, ONE).fit.door.common is None


def test_replaced_records_and_pure_noise_have_none():
    assert so.plan(sums(50, 5), ONE, unit=so.ReplaceOne(1)).fit.door.common is None
    assert so.plan(sums(50, 5), so.PureDP(epsilon=1.0)).fit.door.scale > 0
    users = so.plan(sums(50, 5), ONE, unit=so.UserLevel(3, min_separation=5))
    assert users.fit.door.common is not None
