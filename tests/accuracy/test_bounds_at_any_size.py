"""Lower bounds of tables too large to be written out: nested groups of any sizes, intervals, few answers, weights."""

import math

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import sordino as so
from sordino.accuracy import diagonal_bound, nuclear_norms
from sordino.accuracy.factorizations import dense
from sordino.accuracy.nuclear_norms import singular_mean
from sordino.workloads import Intervals, Union

ONE = so.GaussianDP(mu=1.0)


def least(workload):
    """Return the least root mean squared error, up to 1e-6."""
    found = so.optimal.factorize(workload, gap=1e-6)
    return found.certificate.lower * (1.0 + found.gap)


def districts(cells, seed):
    """Return random cuts of the line, each level one of the level below."""
    rng, levels, starts = np.random.default_rng(seed), [np.arange(cells)], np.arange(cells)
    while len(starts) > 4:
        starts = np.r_[0, np.sort(rng.choice(starts[1:], len(starts) // 5, replace=False))]
        levels.append(np.searchsorted(starts, np.arange(cells), side="right") - 1)
    return levels


@pytest.mark.parametrize("cells", [1025, 2**15, 2**18])
@pytest.mark.parametrize("weighed", [False, True])
def test_uneven_groups_of_any_number_are_within_their_bound(cells, weighed):
    levels = districts(cells, 1)
    plan = so.plan(so.GroupBy(levels, weights=[3.0**k for k in range(len(levels))] if weighed else None), ONE)
    assert plan.mechanism == "laminar-gaussian" and plan.bound_kind == "proved"
    assert 1.0 <= plan.optimality < 1.003
    # A little more than the search proves of so many cells as are written out.
    few = so.GroupBy(districts(400, 1))
    assert diagonal_bound._nested_diagonal(few) == pytest.approx(least(few), rel=3e-3)
    assert diagonal_bound._nested_diagonal(few) <= least(few)


def test_a_heavy_total_beside_many_cells_is_near_its_bound():
    cells = 2**16
    plan = so.plan(so.Histogram(cells) | float(cells) * so.GroupBy([np.zeros(cells, dtype=int)]), ONE)
    assert 1.0 <= plan.optimality < 1.001


def test_a_group_beside_a_total_proves_no_more_than_there_is():
    one = np.full(2048, -1)
    one[0] = 0
    plan = so.plan(so.GroupBy([one, np.zeros(2048, dtype=int)], weights=[1e7, 1.0]), ONE)
    assert 1.0 <= plan.optimality < 1.001


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 60), st.integers(1, 80), st.integers(0, 2**32 - 1), st.booleans(), st.integers(2, 40))
def test_some_cells_bound_intervals_of_all(cells, count, seed, weighed, chosen):
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.integers(0, cells, (count, 2)), axis=1)
    weights = np.exp(3.0 * rng.normal(size=count)) if weighed else None
    workload = Intervals(ends[:, 0], ends[:, 1], cells, weights=weights)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diagonal_bound, "MOST_CELLS", chosen)
        found = diagonal_bound._intervals_diagonal(workload)
        patch.setattr(diagonal_bound, "_MOST_OF_BLOCKS", cells * chosen**2 // 2)
        in_blocks = diagonal_bound._intervals_diagonal(workload)
    best = least(workload)
    assert found <= best and in_blocks <= best
    if chosen >= cells and np.linalg.cond(dense(workload.merged)) < 1e3:
        assert found >= 0.9 * best


def test_intervals_of_more_cells_have_a_bound():
    rng = np.random.default_rng(2)
    ends = np.sort(rng.integers(0, 1400, (5000, 2)), axis=1)
    for weights in (None, rng.random(5000) + 0.1):
        plan = so.plan(Intervals(ends[:, 0], ends[:, 1], 1400, weights=weights), ONE)
        assert plan.bound_kind == "proved" and 1.0 <= plan.optimality < 1.06


@pytest.mark.parametrize("cells", [20_000, 60_000])
def test_short_intervals_of_many_cells_are_near_their_bound(cells):
    rng = np.random.default_rng(3)
    first = rng.integers(0, cells, 4 * cells)
    last = np.minimum(first + rng.integers(0, 20, 4 * cells), cells - 1)
    plan = so.plan(Intervals(first, last, cells), ONE)
    assert plan.mechanism == "balanced-gaussian" and 1.0 <= plan.optimality < 1.05


def test_blocks_of_very_many_cells_are_not_decomposed(monkeypatch):
    """Of 2^26 cells they are of five cells each, and would take an hour."""
    places = np.arange(2, 2**21, 2)
    workload = Intervals(places - 2, places, 2**21)
    found = []
    squares = diagonal_bound._squares_of_intervals
    monkeypatch.setattr(diagonal_bound, "_squares_of_intervals", lambda *all: found.append(all[-1]) or squares(*all))
    assert diagonal_bound._intervals_diagonal(workload) > 0.0
    assert found == [diagonal_bound.MOST_CELLS]


@pytest.mark.parametrize("weights", [None, np.linspace(0.1, 9.0, 12)])
def test_few_answers_are_within_their_bound_at_any_number_of_cells(weights):
    rng = np.random.default_rng(3)
    normal = rng.normal(size=(12, 2**15))
    few = scipy.sparse.random(12, 2**15, 0.01, random_state=4, format="csr")
    for matrix in (normal, few):
        plan = so.plan(so.Matrix(matrix, weights=weights), ONE)
        assert plan.mechanism == "balanced-gaussian" and 1.0 <= plan.optimality < 1.006
        found = plan.fit.factorization
        assert np.linalg.norm(found.matrix, axis=0).max() <= 1.0 + 1e-12
        # An oracle of the error from what is measured, and of the bound from its weights.
        A = dense(so.Matrix(matrix)) * np.sqrt(np.ones((12, 1)) if weights is None else weights[:, None])
        asked = 12.0 if weights is None else weights.sum()
        error = np.linalg.norm(A @ np.linalg.pinv(found.matrix)) / np.sqrt(asked)
        assert plan.rmse == pytest.approx(error, rel=1e-3)
        (v,) = found.certificate.cell_weights
        assert found.certificate.lower == pytest.approx(
            np.linalg.norm(A * np.sqrt(v), "nuc") / np.sqrt(asked), rel=1e-9
        )


def test_weights_of_rows_are_in_the_singular_values():
    rng = np.random.default_rng(5)
    A, weights = rng.normal(size=(40, 30)), np.exp(rng.normal(size=40))
    value, name = singular_mean(so.Matrix(A, weights=weights))
    assert name == "SVD bound"
    known = np.linalg.norm(A * np.sqrt(weights)[:, None], "nuc") / np.sqrt(30 * weights.sum())
    assert value == pytest.approx(known, rel=1e-9)
    assert value <= least(so.Matrix(A, weights=weights))


@pytest.mark.parametrize("length", [1, 2, 7, 64])
def test_singular_values_of_ranges_are_cosecants(length):
    value, _ = singular_mean(so.AllRanges(length))
    A = dense(so.AllRanges(length))
    known = np.linalg.norm(A, "nuc") / np.sqrt(A.size)
    assert known * (1 - 1e-10) <= value <= known


@pytest.mark.parametrize(
    ("length", "first"),
    [(length, first) for length in (2, 3, 1025, 30_000, 2**20) for first in (1, 2, 1024) if first < length],
)
def test_what_is_left_of_running_sums_is_no_more_than_it_is(length, first):
    """Long running sums have the first half cosecants one by one, and a lower bound of the others, close to them."""
    angles = (2 * np.arange(first + 1, length + 1) - 1) * np.pi / (4 * length + 2)
    known = math.fsum(0.5 / np.sin(angles))
    found = nuclear_norms._least_rest(length, first)
    assert found <= known * (1 + 1e-14)
    # The next term is 7/5760 h^4 times the third derivative of a half cosecant, nearly -3/x^4.
    assert found >= known * (1 - 0.008 / (first**4 * math.log(length / first)) - 1e-14)


def test_long_running_sums_go_on_from_short_ones(monkeypatch):
    """One by one, and with the rest at once."""
    value, name = singular_mean(so.RunningSum(50_000))
    monkeypatch.setattr(nuclear_norms, "_MOST_LISTED", 49_999)
    at_once, same = singular_mean(so.RunningSum(50_000))
    assert name == same == "SVD bound"
    assert value * (1 - 1e-12) <= at_once <= value * (1 + 1e-15)


@pytest.mark.parametrize("kind", ["normals", "walks", "small rank", "steep", "not quite wide"])
def test_products_of_rows_prove_what_singular_values_do(kind):
    rng = np.random.default_rng(6)
    A = rng.normal(size=(30, 3000))
    if kind == "walks":
        A = np.cumsum(A, axis=1)
    elif kind == "small rank":
        A = A[:, :3] @ A[:3]
    elif kind == "steep":
        A *= np.logspace(0, -9, 30)[:, None]
    elif kind == "not quite wide":
        A = np.tile(A, (30, 1))[:700, :1030] + rng.normal(size=(700, 1030))
    workload = so.Matrix(A)
    _, values, rows = np.linalg.svd(A, full_matrices=False)
    kept = values > 1e-12 * values[0]
    mean = values.sum() / np.sqrt(A.size)
    diagonal = np.linalg.norm(values[kept] @ rows[kept] ** 2) / np.sqrt(len(A))
    for found, known in ((singular_mean(workload)[0], mean), (diagonal_bound.diagonal_mean(workload), diagonal)):
        assert known * (1 - 1e-5) <= found <= known


def test_answers_too_many_to_be_listed_have_no_bound_of_groups():
    union = Union([so.AllRanges(2**15), so.Histogram(2**15)], weights=[1.0, 2.0**26])
    assert diagonal_bound._nested_diagonal(union) == 0.0
