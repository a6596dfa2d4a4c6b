"""Filters under pure privacy: block after block of cells is measured alike, beside it weighted sums of each block."""

import math

import numpy as np
import pytest

import sordino as so
from known_noise import columns, released
from sordino.accuracy.factorizations import dense
from sordino.mechanisms.linear.measurement import door_of
from sordino.workloads import (
    BandPass,
    Convolution,
    Difference,
    ExponentialSmoothing,
    PolynomialDecay,
    Union,
)

PURE = so.PureDP(epsilon=1.0)


def bell(width, length, boundary):
    taps = np.exp(-0.5 * np.square(np.arange(-3 * width, 3 * width + 1) / width))
    return Convolution(taps, length, boundary)


FILTERS = [
    ExponentialSmoothing(0.95, 300),
    ExponentialSmoothing(0.8, 257, boundary="circular"),
    bell(5, 301, "same"),
    bell(4, 256, "valid"),
    bell(6, 384, "circular"),
    PolynomialDecay(0.5, 263),
    # Taps before or behind the ends are 10^8 times those that an answer asks for.
    Convolution(np.r_[1e8 * np.ones(40), np.ones(48)], 300, "same"),
    Convolution(0.9 ** np.arange(401), 260, "same"),
    Convolution(np.r_[np.zeros(40), 1.0, 0.5, -0.25, np.linspace(1.0, 0.0, 30)], 290, "causal"),
    Union([ExponentialSmoothing(0.95, 280), so.Histogram(280), bell(3, 280, "valid")], [1.0, 0.1, 2.0]),
    Union([bell(5, 270, "same"), ExponentialSmoothing(0.9, 270, boundary="circular"), so.SlidingWindow(30, 270)]),
]


def by_blocks(workload, block, **options):
    """Return the plan with blocks of so many cells, with sums as they come."""
    found = so.optimal.factorize(workload, kind="p-identity", law="laplace")
    rng = np.random.default_rng(block)
    sums = np.vstack([np.ones(block) * 0.3, rng.uniform(0.0, 0.5, (3, block)) * (rng.uniform(size=(3, block)) < 0.6)])
    own = type(found)("p-identity", "laplace", "mean", (sums,), beside_cells=(True,))
    return so.plan(workload, so.PureDP(**options), mechanism="p-identity", factorization=own)


@pytest.mark.parametrize("workload", FILTERS, ids=lambda w: f"{w.kind}-{w.core.input_len}")
@pytest.mark.parametrize("epsilon", [0.1, 20.0])
@pytest.mark.parametrize("block", [7, 64, 200])
def test_blocks_are_private_and_state_their_errors(workload, epsilon, block, tmp_path):
    plan = by_blocks(workload, block, epsilon=epsilon)
    cells = workload.core.input_len
    B, door = columns(plan), plan.fit.door
    norms = np.abs(B).sum(axis=0)
    assert norms.max() <= sum(door.sensitivity) * (1 + 1e-12)
    assert norms.min() >= norms.max() * (1 - 1e-6)
    apart = door_of(plan.fit.strategy, so.ReplaceOne(1), plan.fit.domain, plan.fit.ratio).sensitivity
    assert sum(apart) >= 2.0 * norms.max() * (1 - 1e-12)
    noise = door.noise * np.sqrt(plan.fit.strategy.unit_variances())
    A = dense(workload)
    weighted = B / noise[:, None]
    # Cells beyond the end are zero: what is known of them is not used.
    known = -(-cells // block) * block
    whole = np.zeros((len(B), known))
    whole[:, :cells] = weighted
    first = weighted.reshape(known // block, -1, cells)[0][:, :block]
    whole[-len(first) :, known - block :] = first
    covariance = np.linalg.inv(whole.T @ whole)[:cells, :cells]
    assert np.allclose(plan.fit.stderr**2, np.einsum("ij,jk,ik->i", A, covariance, A), rtol=1e-6)
    x = np.arange(cells) * 7 % 10
    release = released(plan, x)
    assert np.abs(release.values - A @ x).max() < 12.0 * plan.fit.stderr.max() + 1e-6
    rows = np.random.default_rng(1).normal(size=(3, cells))
    found = release.answer(so.Matrix(rows))
    assert np.allclose(found.stderr**2, np.einsum("ij,jk,ik->i", rows, covariance, rows), rtol=1e-6)
    box = release.sum([(3, cells - 2)])
    inside = np.zeros(cells)
    inside[3 : cells - 1] = 1.0
    assert np.allclose(box.stderr**2, inside @ covariance @ inside, rtol=1e-6)
    again = so.Plan.load(plan.save(tmp_path / "plan.json"))
    assert again.digest == plan.digest and (released(again, x).values == release.values).all()


@pytest.mark.parametrize(
    ("workload", "most"),
    [
        (ExponentialSmoothing(0.99, 2**14), 0.65),
        (bell(5, 2**13, "same"), 0.6),
        (bell(5, 1001, "circular"), 0.6),
        (PolynomialDecay(0.5, 2**12), 0.85),
        (Union([ExponentialSmoothing(0.95, 3000), ExponentialSmoothing(0.99, 3000)]), 0.9),
        (bell(5, 256, "same"), 0.6),
    ],
)
def test_filters_have_less_error_than_noise_on_the_cells(workload, most):
    plan = so.plan(workload, PURE)
    assert plan.mechanism == "p-identity-laplace"
    assert plan.rmse < most * so.plan(workload, PURE, mechanism="identity").rmse
    assert so.plan(workload, PURE, integral=False, max_value=100).rmse < 1.03 * plan.rmse
    assert plan.fit.inflation < 1e-3


def test_no_step_where_all_is_no_longer_searched_for_at_once():
    for make in (lambda n: ExponentialSmoothing(0.99, n), lambda n: bell(5, n, "same")):
        few, many, more = (so.plan(make(n), PURE).rmse for n in (512, 513, 770))
        assert many < 1.01 * few and more < 1.02 * few


def test_filters_whose_answers_hardly_overlap_keep_noise_on_the_cells():
    for workload in (Difference(2000, 1), Convolution([1.0], 700, "causal"), BandPass(0.1, 0.15, 512)):
        plan = so.plan(workload, PURE)
        assert plan.mechanism == "identity-laplace"


@pytest.mark.parametrize(
    ("sums", "epsilon", "most"), [((1, 4), 1e-3, 1), ((2, 4), 1e-3, 1), ((1, 32), 1e-3, 1), ((1, 4), 0.01, 10)]
)
def test_noise_on_fractions_is_never_clamped(sums, epsilon, most):
    """Rows of one large step have noise in units of one, which are too many where the grid had to be coarser."""
    found = so.optimal.factorize(ExponentialSmoothing(0.9, 128), kind="p-identity", law="laplace")
    own = type(found)("p-identity", "laplace", "mean", (np.ones(sums),), beside_cells=(True,))
    workload = Convolution(np.ones(5) / 5 + np.arange(5) * 0.01, 32, "causal")
    privacy = so.PureDP(epsilon=epsilon)
    plan = so.plan(workload, privacy, mechanism="p-identity", integral=False, max_value=most, factorization=own)
    measured = released(plan, np.zeros(32)).measured.values()
    assert len(np.unique(measured)) > 0.9 * len(measured)
    spread = np.sqrt(np.mean(np.square(measured / np.sqrt(plan.fit.strategy.unit_variances()))))
    assert 0.5 < spread / plan.fit.door.noise < 1.7


def test_what_is_not_searched_for_unasked_is_said():
    limit = "limit          sums beside the cells are searched for by name alone"
    long, few = ExponentialSmoothing(1 - 1e-6, 2**20 + 2**14), ExponentialSmoothing(0.99, 2**10)
    assert limit in so.plan(long, PURE).explain()
    # What counts is the taps: those of this one end.
    ending = so.plan(ExponentialSmoothing(0.99, 2**20 + 1), PURE)
    assert ending.mechanism == "p-identity-laplace"
    assert limit not in ending.explain()
    assert limit in so.plan(few, PURE, effort="closed_form").explain()
    assert limit not in so.plan(few, PURE).explain()
    assert limit not in so.plan(so.RunningSum(2**13), PURE).explain()


def test_blocks_are_of_filters_alone():
    found = so.optimal.factorize(ExponentialSmoothing(0.95, 600), kind="p-identity", law="laplace")
    assert found.factors[0].shape[1] < 600
    for other in (so.AllRanges(600), so.Matrix(np.eye(600)[:5]), so.Kronecker([so.Histogram(2), so.RunningSum(300)])):
        with pytest.raises(so.errors.UnsupportedMechanismError, match="filters"):
            so.plan(other, PURE, mechanism="p-identity", factorization=found)
    longer = so.plan(ExponentialSmoothing(0.95, 900), PURE, mechanism="p-identity", factorization=found)
    assert math.isclose(longer.rmse, so.plan(longer.workload, PURE).rmse, rel_tol=1e-3)
