"""The bench of optimality: errors of peers are those of their matrices, and what `auto` takes for few cells meets its goals."""

import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from bench_runs import rows

import sordino as so
from sordino import _core

# Last, so that no bench hides a module of the tests.
sys.path.append(str(Path(__file__).resolve().parents[2] / "benches"))

import optimality_peers as peers

GAUSSIAN = so.GaussianDP(mu=1.0)


def queries(workload):
    """Return the queries as rows, weighted so that their squared errors add up to the mean."""
    A, weights = _core.dense(workload.core), workload.answer_weights()
    weights = np.ones(len(A)) if weights is None else weights
    return A * np.sqrt(weights / weights.sum())[:, None]


def nodes(leaves, branching):
    """Return the nodes of a complete tree of so many leaves as rows."""
    levels = [np.eye(leaves)]
    while len(levels[-1]) > 1:
        levels.append(levels[-1].reshape(-1, branching, leaves).sum(axis=1))
    return np.vstack(levels), len(levels)


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
@pytest.mark.parametrize(
    "workload",
    [
        so.AllRanges(21),
        so.RunningSum(21),
        so.SlidingWindow(5, 21),
        so.MovingAverage(6, 21, boundary="same"),
        so.SlidingWindow(8, 21, boundary="valid"),
        so.AllRanges(21) | 3.0 * so.Histogram(21),
        so.Matrix(np.tri(21), weights=1.0 + np.arange(21)),
    ],
    ids=lambda workload: workload.kind,
)
def test_trees_are_least_squares_over_all_nodes(workload, law):
    found = []
    for branching in (2, 4, 8, 16):
        leaves = branching ** math.ceil(math.log(21, branching))
        B, levels = nodes(leaves, branching)
        A = np.pad(queries(workload), ((0, 0), (0, leaves - 21)))
        noise = levels if law == "gaussian" else 2.0 * levels**2
        found.append(math.sqrt(noise * np.trace(A @ np.linalg.inv(B.T @ B) @ A.T)))
    assert peers.tree(workload, law) == pytest.approx(min(found), rel=1e-9)


@pytest.mark.parametrize(
    "workload",
    [
        so.Marginals([2, 3, 4], k=1),
        so.Marginals([2] * 6, k=3),
        so.Marginals([2, 3, 4], k=1) | 2.0 * so.Marginals([2, 3, 4], sets=[(0, 1), (1, 2)], weights=[1.0, 5.0]),
    ],
    ids=["1-way", "3-way", "weighted union"],
)
def test_residual_planner_has_the_least_error_of_marginals(workload):
    nuclear = np.linalg.norm(queries(workload), "nuc") / math.sqrt(math.prod(workload.input_shape))
    assert peers.residual_planner(workload) == pytest.approx(nuclear, rel=1e-9)


def test_residual_planner_answers_marginals_alone():
    assert peers.residual_planner(so.RunningSum(8)) is None


@pytest.mark.parametrize(
    "workload",
    [
        so.AllRanges(64),
        so.RunningSum(48),
        so.Kronecker([so.AllRanges(8), so.RunningSum(6)]),
        so.Kronecker([so.AllRanges(6), so.Histogram(4)]) | so.Kronecker([so.Matrix(np.ones((1, 6))), so.RunningSum(4)]),
        so.Marginals([2] * 5, k=2),
    ],
    ids=["ranges", "sums", "product", "union", "marginals"],
)
def test_hdmm_is_between_the_bound_and_noise_on_the_cells(workload):
    found, A = peers.hdmm(workload, "gaussian"), queries(workload)
    nuclear = np.linalg.norm(A, "nuc") / math.sqrt(A.shape[1])
    assert nuclear <= found * (1.0 + 1e-9)
    assert found < np.linalg.norm(A)
    assert peers.hdmm(workload, "laplace") <= math.sqrt(2.0) * np.linalg.norm(A) * (1.0 + 1e-6)


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_p_identity_errors_are_those_of_the_matrix(law):
    W = queries(so.AllRanges(40)).T @ queries(so.AllRanges(40))
    total, G = peers.p_identity(W, law)
    # Columns of the strategy have norm 1: as `[I; Theta] D` it is given by its Gram matrix up to rotation.
    if law == "gaussian":
        np.testing.assert_allclose(np.diag(G), 1.0, rtol=1e-12)
    assert total == pytest.approx((1.0 if law == "gaussian" else 2.0) * np.trace(W @ np.linalg.inv(G)), rel=1e-9)


def test_hdmm_leaves_long_axes_alone():
    assert peers.hdmm(so.RunningSum(2**16), "gaussian") is None


@pytest.mark.parametrize("workload", [so.RunningSum(50), so.ExponentialSmoothing(0.9, 50)], ids=["sums", "decay"])
def test_square_roots_multiply_to_the_filter(workload):
    taps = workload.kernel[:50]
    root = peers.root_taps(taps, 50)
    np.testing.assert_allclose(np.convolve(root, root)[:50], taps, atol=1e-12)
    error = so.plan(workload, GAUSSIAN, mechanism="square-root").fit.ideal_rmse
    assert peers.square_root(workload) == pytest.approx(error, rel=1e-6)


def test_filters_whose_root_grows_have_none():
    assert peers.square_root(so.Convolution([1.0, 3.0], 400, boundary="causal")) is None
    assert peers.square_root(so.Convolution([-1.0, 0.5], 40, boundary="causal")) is None


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("jax_privacy") is None, reason="it is in requirements/bench.txt")
@pytest.mark.parametrize("family", ["ranges and sums", "products", "marginals", "unions"])
def test_few_cells_are_near_the_bound(family):
    found = [row for row in rows("optimality.py", family) if row["what"].endswith(", Gaussian")]
    assert len(found) >= 6
    assert all(row["met"] for row in found)
