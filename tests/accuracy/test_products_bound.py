"""Singular values of unions of products, by subspaces that no query joins."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import sordino as so
from sordino.accuracy.factorizations import dense
from sordino.accuracy.modes_bound import sum_of_roots
from sordino.accuracy.nuclear_norms import singular_mean
from sordino.accuracy.products_bound import products_mean
from sordino.workloads import Intervals, Union

ONE = so.GaussianDP(mu=1.0)


def total(length):
    return so.GroupBy([np.zeros(length, dtype=int)])


@st.composite
def factors(draw, length):
    kind = draw(st.integers(0, 6))
    labels = np.minimum(np.arange(length) // 2, 1)
    return [
        so.RunningSum(length),
        so.AllRanges(length),
        so.Histogram(length),
        total(length),
        so.GroupBy([labels], weights=[3.0]),
        so.Matrix(np.vander(np.linspace(-1.0, 1.0, length), 2).T * draw(st.sampled_from([1.0, 1e-3, 1e3]))),
        Intervals([0, length // 2], [length // 2, length - 1], length, weights=[1.0, 4.0]),
    ][kind]


@st.composite
def unions(draw):
    sizes = draw(st.lists(st.integers(1, 5), min_size=2, max_size=3))
    parts = [so.Kronecker([draw(factors(n)) for n in sizes]) for _ in range(draw(st.integers(1, 3)))]
    if draw(st.booleans()):
        parts.append(so.Histogram(int(np.prod(sizes))))
    return Union(parts, [draw(st.sampled_from([1e-6, 0.25, 1.0, 1e4])) for _ in parts])


@settings(max_examples=150, deadline=None)
@given(unions())
def test_the_nuclear_norm_is_that_of_the_matrix(workload):
    A = dense(workload)
    weights = workload.answer_weights()
    weights = np.ones(len(A)) if weights is None else weights
    nuclear = np.linalg.norm(np.sqrt(weights)[:, None] * A, "nuc")
    known = nuclear / np.sqrt(A.shape[1] * weights.sum())
    found = products_mean(workload)
    assert found <= known * (1 + 1e-9)
    # Of each singular value a millionth of the largest may be left out.
    assert found >= known * (1 - 2e-6 * A.shape[1])


@settings(max_examples=150, deadline=None)
@given(unions())
def test_modes_have_the_same_nuclear_norm(workload):
    parts = [part.factors if isinstance(part, so.Kronecker) else () for part in workload.parts]
    cells = tuple(so.Histogram(factor.core.input_len) for factor in parts[0])
    parts = [part or cells for part in parts]
    grams = {own: gram(own) for part in parts for own in part}
    found = sum_of_roots(parts, grams, workload.weights)
    A, weights = dense(workload), workload.answer_weights()
    known = np.linalg.norm(A if weights is None else np.sqrt(weights)[:, None] * A, "nuc")
    assert found <= known * (1 + 1e-9)
    # None where something is asked along three axes, or queries along an axis have no modes in common.
    assert found == 0.0 or found >= known * (1 - 2e-5 - 2e-6 * A.shape[1])


def gram(workload):
    A, weights = dense(workload), workload.answer_weights()
    A = A if weights is None else np.sqrt(weights)[:, None] * A
    return A.T @ A


@pytest.mark.parametrize("heavy", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("query", [so.AllRanges, so.RunningSum])
def test_modes_of_longer_axes(query, heavy):
    table = so.Kronecker([query(18), so.Histogram(16)])
    mixed = so.Kronecker([total(18), query(16)])
    workload = Union([table, so.Kronecker([query(18), query(16)]), mixed], [1.0, heavy, 3.0])
    parts = [part.factors for part in workload.parts]
    found = sum_of_roots(parts, {own: gram(own) for part in parts for own in part}, workload.weights)
    known = np.linalg.norm(np.sqrt(workload.answer_weights())[:, None] * dense(workload), "nuc")
    assert known * (1 - 1e-3) <= found <= known * (1 + 1e-9)


def test_shifts_are_above_what_rounding_loses():
    factors = [
        [total(5), so.Histogram(8), so.Histogram(5)],
        [total(5), so.ExponentialSmoothing(0.96183093656167, 8), total(5)],
        [so.Histogram(5), total(8), so.Histogram(5)],
    ]
    workload = Union([so.Kronecker(own) for own in factors], [1.2870793073121466e-11, 134623.10065746738, 1.0])
    known = np.linalg.norm(np.sqrt(workload.answer_weights())[:, None] * dense(workload), "nuc")
    assert 0.0 < sum_of_roots(factors, {own: gram(own) for part in factors for own in part}, workload.weights) <= known


def margins(query, side):
    return [so.Kronecker([query(side), total(side)]), so.Kronecker([total(side), query(side)])]


def pairs(query, side):
    q, t = query(side), total(side)
    return Union([so.Kronecker([q, q, t]), so.Kronecker([q, t, q]), so.Kronecker([t, q, q])])


@pytest.mark.parametrize(
    ("workload", "most"),
    [
        (Union([so.Kronecker([so.AllRanges(64), so.Histogram(64)]), *margins(so.AllRanges, 64)]), 1.03),
        (Union(margins(so.AllRanges, 256)), 1.012),
        (Union(margins(so.AllRanges, 600)), 1.012),
        (Union([so.Kronecker([so.AllRanges(128), so.Histogram(128)]), *margins(so.AllRanges, 128)]), 1.03),
        (Union([so.Kronecker([so.RunningSum(100)] * 2), *margins(so.RunningSum, 100)]), 1.03),
        (pairs(so.RunningSum, 16), 1.062),
        (pairs(so.AllRanges, 32), 1.02),
    ],
    ids=[
        "ranges of groups",
        "ranges of either axis",
        "of long axes",
        "ranges of many groups",
        "prefixes of both axes",
        "prefixes of pairs",
        "boxes of pairs",
    ],
)
def test_tables_of_sets_of_axes_are_near_the_bound(workload, most):
    plan = so.plan(workload, ONE)
    assert plan.mechanism == "balanced-gaussian"
    assert 1.0 <= plan.optimality < most


def test_what_takes_too_long_or_is_no_product_has_none():
    assert (
        products_mean(Union([so.Kronecker([so.AllRanges(128), so.AllRanges(128)]), *margins(so.RunningSum, 128)]))
        == 0.0
    )
    assert products_mean(Union(margins(so.AllRanges, 1025))) == 0.0
    assert products_mean(Union([so.AllRanges(20), so.RunningSum(20)])) == 0.0
    assert products_mean(Union([so.Kronecker([so.AllRanges(4), total(6)]), so.RunningSum(24)])) == 0.0
    rows = so.Kronecker([so.Matrix(sparse.random(60_000, 1000, 0.003, "csr", rng=1)), total(4)])
    rows = Union([rows, so.Kronecker([total(1000), so.AllRanges(4)])])
    assert products_mean(rows) == 0.0
    assert "bound" in so.plan(rows, so.PureDP(epsilon=1.0)).explain()  # nor is it refused for want of a bound
    many = Union([so.Kronecker([so.Histogram(2)] * 10), so.Kronecker([total(2)] * 10)])
    assert products_mean(many) == 0.0
    workload = Union([*margins(so.RunningSum, 16), so.Kronecker([so.RunningSum(16), so.Histogram(16)])])
    assert singular_mean(workload)[1] == "SVD bound"


def test_rests_of_sets_are_tried_where_an_axis_has_dependent_columns():
    """Long axes are not searched for twice, unless what is found along one of them is poor."""
    pairs = so.GroupBy([np.arange(600) // 2])
    workload = Union(
        [
            so.Kronecker([pairs, so.AllRanges(4)]),
            so.Kronecker([pairs, total(4)]),
            so.Kronecker([total(600), so.AllRanges(4)]),
        ],
        [1.0, 100.0, 1.0],
    )
    assert so.plan(workload, ONE).optimality < 1.01
