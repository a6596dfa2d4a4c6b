"""Ranges, running sums, products and what is one of them: nearly the least error at every size, and bounds that hold."""

import itertools
import math
import warnings

import numpy as np
import pytest
import scipy.sparse

import sordino as so
from sordino import _core
from sordino.accuracy.diagonal_bound import diagonal_mean
from sordino.accuracy.factorizations import dense
from sordino.accuracy.nuclear_norms import singular_mean
from sordino.mechanisms.linear import fitting
from sordino.workloads import AllRanges, RunningSum, Union
from sordino.workloads.recognition import recognised

ONE = so.GaussianDP(mu=1.0)
APPROX = so.ApproxDP(epsilon=1.0, delta=1e-6)
SIZES = (200, 256, 257, 512, 513, 1024, 1025, 4096)
RNG = np.random.default_rng(5)


@pytest.mark.parametrize(
    "build",
    [
        so.AllRanges,
        so.RunningSum,
        lambda n: so.Kronecker([so.RunningSum(n), so.Histogram(5)]),
        lambda n: so.Kronecker([so.Histogram(2), so.RunningSum(n), so.AllRanges(8)]),
    ],
    ids=["ranges", "sums", "sums by cells", "cells by sums by ranges"],
)
def test_no_size_changes_the_quality(build):
    """From one size to the next the error over the bound moves by less than one percent, and never is two above it."""
    over = [so.plan(build(n), ONE).optimality for n in SIZES]
    assert max(over) < 1.02
    assert np.abs(np.diff(over)).max() < 0.01


@pytest.mark.parametrize(("length", "rmse"), [(64, 6.047), (256, 8.885), (1024, 12.430), (4096, 16.152)])
def test_ranges_under_pure_privacy(length, rmse):
    plan = so.plan(so.AllRanges(length), so.PureDP(epsilon=1.0), mechanism="weighted-tree")
    assert plan.rmse <= rmse * 1.001
    assert plan.optimality is None


@pytest.mark.parametrize(
    ("workload", "rmse"), [(so.AllRanges(365), 8.85), (so.AllRanges(1024), 11.05), (so.RunningSum(365), 7.88)], ids=str
)
def test_sums_of_cells_start_from_the_blocks_of_a_tree(workload, rmse):
    """Never worse than the tree, and without being asked."""
    plan = so.plan(workload, so.PureDP(epsilon=1.0))
    assert plan.mechanism == "p-identity-laplace"
    assert plan.rmse <= rmse


@pytest.mark.parametrize(
    ("workload", "rmse"),
    [
        (so.AllRanges(1024), 14.8506),
        (so.AllRanges(4096), 17.4649),
        (so.RunningSum(365), 11.1466),
        (so.RunningSum(8760), 15.3532),
        (so.RunningSum(2**16), 18.0),
        (so.Kronecker([so.RunningSum(1024), so.Histogram(100)]), 12.5061),
        (so.Kronecker([so.RunningSum(1024), so.RunningSum(64)]), 26.2934),
    ],
    ids=str,
)
def test_reference_values(workload, rmse):
    """Root mean squared errors of the balanced root at epsilon 1, delta 1e-6."""
    plan = so.plan(workload, APPROX, mechanism="balanced")
    assert plan.rmse == pytest.approx(rmse, rel=3e-3)
    assert 1.0 <= plan.optimality < 1.01


def random_workloads():
    for _ in range(12):
        n = int(RNG.integers(2, 14))
        yield so.Matrix(RNG.standard_normal((int(RNG.integers(1, 30)), n)))
        yield so.Matrix((RNG.random((20, n)) < 0.4) + 0.0 * np.eye(20, n) + np.eye(20, n))
        yield so.Matrix(np.exp(3.0 * RNG.standard_normal(9))[:, None] * RNG.standard_normal((9, n)))
        yield so.AllRanges(n) | so.Histogram(n)
        yield so.Kronecker([so.AllRanges(3), so.Matrix(RNG.standard_normal((5, n)))])


def test_the_diagonal_bound_binds_the_optimum():
    """Between the singular values and what a search certifies; and the balanced root does no better than it says."""
    for workload in random_workloads():
        best = so.optimal.factorize(workload, gap=1e-6).certificate
        error = best.lower * (1.0 + 1e-6)
        assert singular_mean(workload)[0] * (1.0 - 1e-9) <= max(diagonal_mean(workload), singular_mean(workload)[0])
        assert diagonal_mean(workload) <= error * (1.0 + 1e-9)
        plan = so.plan(workload, ONE, mechanism="balanced")
        assert plan.optimality >= 1.0 - 1e-9
        assert plan.rmse >= best.lower * (1.0 - 1e-9)  # the noise multiplier is 1


@pytest.mark.parametrize("mechanism", ["balanced-gaussian", "weighted-tree-laplace"])
def test_measured_errors_are_those_planned(mechanism):
    """A thousand releases under known keys: false alarm below 1e-6 at five standard deviations."""
    workloads = [so.AllRanges(9), so.RunningSum(17)]
    workloads.append(
        so.AllRanges(6) | so.Histogram(6) if "tree" in mechanism else so.Kronecker([so.RunningSum(3), so.AllRanges(4)])
    )
    for workload in workloads:
        plan = so.plan(workload, APPROX, mechanism=mechanism)
        x = RNG.integers(0, 50, workload.input_shape)
        truth = np.asarray(workload.core.apply(x.reshape(-1).astype(float))).reshape(-1)
        squares = []
        for key in range(1000):
            with so.testing.deterministic_noise(key.to_bytes(32, "little")):
                squares.append(np.mean((plan.release(x).unbiased.reshape(-1) - truth) ** 2))
        deviation = np.std(squares) / np.sqrt(len(squares))
        assert abs(np.mean(squares) - plan.rmse**2) < 5.0 * deviation


def test_a_record_of_several_cells_of_one_sign_costs_less():
    """Noise of cells that is correlated: one common column beside independent ones; the factor is that of a table."""
    for cells, factor in ((2, 1.154701), (3, 1.341641), (8, 1.906925)):
        single = so.plan(so.Continual(so.RunningSum(6), dim=cells), ONE).fit.bound.value
        both = so.Continual(so.RunningSum(6), dim=cells, cells_per_record=cells)
        signed = so.Continual(so.RunningSum(6), dim=cells, cells_per_record=cells, one_signed=False)
        assert so.plan(both, ONE).fit.bound.value == pytest.approx(single * factor, rel=2e-5)
        assert so.plan(signed, ONE).fit.bound.value == pytest.approx(single * np.sqrt(cells))


MATRICES = {
    "running sums": (np.tri(40), so.RunningSum(40)),
    "cells": (np.eye(7), so.Histogram(7)),
    "ranges": (
        np.array([[i <= k <= j for k in range(6)] for i in range(6) for j in range(i, 6)], float),
        so.AllRanges(6),
    ),
    "filter": (
        np.tril(np.triu(np.ones((9, 9)), -2)) * 0.5,
        so.Convolution([0.5, 0.5, 0.5, 0, 0, 0, 0, 0, 0], 9, "causal"),
    ),
    "ring": (np.roll(np.eye(5), 2, axis=0) * 3.0, so.Convolution([0, 0, 3.0, 0, 0], 5, "circular")),
}


@pytest.mark.parametrize("name", MATRICES)
def test_a_matrix_that_is_another_workload_is_planned_as_it(name):
    A, workload = MATRICES[name]
    for privacy in (ONE, so.PureDP(epsilon=1.0)):
        assert so.plan(so.Matrix(A), privacy).digest == so.plan(workload, privacy).digest
    assert np.array_equal(dense(recognised(so.Matrix(A))), A)
    for other in (A[::-1], A + 1e-12 * np.eye(*A.shape)):
        if not np.array_equal(other, A):
            assert not isinstance(recognised(so.Matrix(other)), so.RunningSum | so.AllRanges | so.Histogram)
    assert recognised(so.Matrix(scipy.sparse.csr_array(A))) == workload
    assert recognised(so.Matrix(A, weights=np.full(len(A), 3.0))) == workload
    uneven = recognised(so.Matrix(A, weights=np.arange(1.0, 1.0 + len(A))))
    assert uneven.kind == ("intervals" if set(np.unique(A)) <= {0.0, 1.0} else "matrix")
    weighted = so.workloads.Union([so.Matrix(A, weights=np.full(len(A), 3.0)), so.Histogram(A.shape[1])])
    assert [part.kind for part in recognised(weighted).parts] == [
        "intervals" if set(np.unique(A)) <= {0.0, 1.0} else "matrix",
        "histogram",
    ]
    assert recognised(weighted).parts[0].answer_weights() is not None
    both = so.Kronecker([so.Matrix(A), so.Histogram(2)])
    assert so.plan(both, ONE).digest == so.plan(so.Kronecker([workload, so.Histogram(2)]), ONE).digest


PRODUCTS = {
    "sums of sums": ([np.tri(40), np.tri(30)], [so.RunningSum(40), so.RunningSum(30)]),
    "sums by cells": ([np.tri(64), np.eye(32)], [so.RunningSum(64), so.Histogram(32)]),
    "three": ([np.tri(16), np.eye(8), np.tri(8)], [so.RunningSum(16), so.Histogram(8), so.RunningSum(8)]),
    "signs": ([RNG.choice([-1.0, 1.0], (20, 30)), np.tri(20)], None),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_matrix_that_is_a_product_is_planned_as_it(name, known_noise):
    factors, known = PRODUCTS[name]
    A = np.ones((1, 1))
    for factor in factors:
        A = np.kron(A, factor)
    found = recognised(so.Matrix(A))
    assert np.array_equal(dense(found), A)
    assert found == so.Kronecker(known, flat=True) if known else isinstance(found, so.Kronecker)
    assert found.input_shape == (A.shape[1],) and found.answers_shape == (len(A),)
    for privacy in (ONE, so.PureDP(epsilon=1.0)):
        plan = so.plan(so.Matrix(A), privacy)
        assert plan.digest == so.plan(found, privacy).digest
        if known:
            assert plan.rmse == pytest.approx(so.plan(so.Kronecker(known), privacy).rmse)
            assert plan.rmse <= so.plan(found, privacy, mechanism="identity").rmse
        x = np.arange(A.shape[1]) % 7
        release = plan.release(x)
        assert (np.abs(release.values - A @ x) <= 11.0 * release.stderr).all()
        if known:  # of fewer queries than cells not every sum is measured
            boxes = release.sum([[[0, 0]], [[3, 40]]])
            assert (np.abs(boxes.values - [x[0], x[3:41].sum()]) <= 11.0 * boxes.stderr).all()
    # Searched for as it is where products know less.
    if len(A) <= 1024 or A.shape[1] <= 1024:
        assert so.plan(so.Matrix(A), so.GaussianDP(mu=1.0), unit=so.ReplaceOne()).workload.kind == "matrix"
    A[-1, -1] += 1e-9
    assert not isinstance(recognised(so.Matrix(A)), so.Kronecker)


@pytest.mark.parametrize("privacy", [so.GaussianDP(mu=1.0), so.PureDP(epsilon=1.0)], ids=lambda p: type(p).__name__)
def test_no_level_of_equal_groups_is_worse_than_another(privacy, known_noise):
    cells = np.arange(1024)
    workload = so.GroupBy([cells // 1024, cells // 64, cells // 8, cells])
    law = "gaussian" if isinstance(privacy, so.GaussianDP) else "laplace"
    even, worst = (
        so.plan(workload, privacy, mechanism="laminar", objective=objective) for objective in ("mean", "max")
    )
    largest = [level.max() for level in workload.split(worst.fit.answers_stderr)]
    assert max(largest) < 1.02 * min(largest)
    assert worst.max_stderr < 0.7 * even.max_stderr and worst.rmse > even.rmse
    # Noise on the answers has the same error everywhere; least squares and weights have less.
    assert worst.max_stderr < so.plan(workload, privacy, mechanism=f"output-{law}").max_stderr
    x = cells % 5
    truth = np.concatenate([np.bincount(label, x) for label in workload.labels])
    release = worst.release(x)
    assert (np.abs(release.values - truth) <= 11.0 * release.stderr).all()


@pytest.mark.parametrize("seed", [2, 4, 11])
def test_chains_of_groups_with_uneven_weights_are_searched_for_twice(seed):
    """Errors that a search without curvatures, of as many evaluations, ends at; from some starts it ends above."""
    sizes = np.arange(1, 41)
    chain = [np.where(np.arange(40) < size, 0, -1) for size in sizes]
    weights = (10.0 ** np.random.default_rng(seed).uniform(-1.0, 1.0, 40)).tolist()
    workload = so.GroupBy(chain, weights=weights)
    plan = so.plan(workload, so.GaussianDP(mu=1.0), mechanism="laminar-gaussian")
    assert plan.fit.ideal_rmse <= {2: 5.87179, 4: 8.87126, 11: 6.34158}[seed] * (1.0 + 1e-6)


@pytest.mark.parametrize("cells", [512, 513, 1024, 1025])
def test_nested_groups_with_weights_of_any_number_of_cells(cells):
    """A balanced root, which serves up to 1,024 cells, has .5 per cent more error than one weight a group."""
    labels, blocks = np.arange(cells), int(math.sqrt(cells))
    rising = np.minimum((np.sqrt(labels / cells) * blocks).astype(int), blocks - 1)
    plan = so.plan(so.GroupBy([labels, rising, 0 * labels], weights=[1.0, 3.0, 10.0]), so.GaussianDP(mu=1.0))
    assert 1.0 <= plan.optimality <= 1.002


@pytest.mark.parametrize("ratio", [1e-3, 1.0, 1e3])
def test_the_bound_of_ranges_and_sums_is_that_of_both(ratio):
    """Of 1,025 cells: it was that of either, and the error up to 1.02 above."""
    cells = 1025
    weights = [1.0, ratio * cells / 2]
    both = so.plan(Union([AllRanges(cells), RunningSum(cells)], weights=weights), so.GaussianDP(mu=1.0))
    assert 1.0 <= both.optimality <= 1.006


@pytest.mark.parametrize("cells", [9_000, 2**17 + 5])
def test_sums_beside_very_many_cells_are_refused(cells):
    labels = np.arange(cells)
    with pytest.raises(so.errors.UnsupportedMechanismError, match="up to 8,192 cells"):
        so.plan(so.GroupBy([labels // 4096]), so.PureDP(epsilon=1.0), mechanism="p-identity-laplace")


def test_products_within_products_are_one():
    flat = so.Kronecker([so.RunningSum(600), so.Histogram(2), so.Histogram(3)])
    nested = so.Kronecker([so.Kronecker([so.RunningSum(600), so.Histogram(2)]), so.Kronecker([so.Histogram(3)])])
    plan, known = so.plan(nested, ONE), so.plan(flat, ONE)
    assert plan.digest == known.digest and plan.optimality < 1.01
    assert plan.workload.answers_shape == nested.answers_shape == (600, 2, 3)
    assert recognised(so.Kronecker([so.Kronecker([so.Matrix(np.tri(9))])])) == so.RunningSum(9)
    small = so.Kronecker([so.Kronecker([so.Matrix(np.tri(5)), so.AllRanges(3)]), so.Matrix(RNG.random((4, 4)))])
    found = so.optimal.factorize(small)
    assert so.plan(small, ONE, factorization=found).mechanism == "optimal-gaussian"
    assert np.allclose(dense(recognised(small)), dense(small))


def test_a_factorization_of_another_workload_is_refused(tmp_path):
    A = RNG.random((9, 9))
    foreign = so.optimal.factorize(so.Matrix(100.0 * A), kind="balanced")
    for workload, mechanism in ((so.AllRanges(9), "balanced"), (so.Matrix(A), "balanced"), (so.AllRanges(5), "auto")):
        with pytest.raises(so.errors.InvalidParameterError, match="another workload"):
            so.plan(workload, ONE, mechanism=mechanism, factorization=foreign)
    own = so.optimal.factorize(so.AllRanges(9), kind="balanced")
    for mechanism in ("identity", "haar"):
        with pytest.raises(so.errors.UnsupportedMechanismError, match="no factorization"):
            so.plan(so.AllRanges(9), ONE, mechanism=mechanism, factorization=own)
    # What is given is measured, also where there is a closed form.
    plan = so.plan(so.AllRanges(9), ONE, factorization=own)
    assert plan.fit.factorization is own
    assert so.Plan.load(plan.save(tmp_path / "plan.json")).digest == plan.digest


@pytest.mark.parametrize(("queries", "cells", "most"), [(100, 2000, 1.01), (16, 20_000, 1.01), (300, 3000, 1.05)])
def test_few_queries_of_many_cells(queries, cells, most):
    A = (
        RNG.standard_normal((queries, cells))
        if queries < 300
        else RNG.standard_normal((300, 20)) @ RNG.random((20, cells))
    )
    plan = so.plan(so.Matrix(A), ONE)
    assert plan.mechanism == "balanced-gaussian"
    assert plan.optimality < most


def test_unions_with_ranges_are_condensed_in_no_time():
    for cells, most in ((420, 1.001), (700, 1.006)):
        plan = so.plan(so.AllRanges(cells) | so.Histogram(cells), ONE)
        assert plan.optimality < most


@pytest.mark.parametrize("length", [20, 900])
def test_targets_are_met_by_what_auto_takes_and_not_exceeded_far(length):
    workload, within = so.AllRanges(length), 9.0
    found = so.privacy_for(workload, within=within, delta=1e-6)
    plan = so.plan(workload, found, objective="max")
    assert plan.fit.largest_half_width(0.95) <= within
    least = so.privacy_for(workload, within=within, delta=1e-6, mechanism=plan.mechanism)
    assert found.epsilon <= least.epsilon * 1.01


# Answers that are not listed.

TABLES = {
    "ranges": (so.AllRanges(9), ONE),
    "ranges, pure": (so.AllRanges(9), so.PureDP(epsilon=1.0)),
    "sums": (so.RunningSum(9), ONE),
    "cells": (so.Histogram((3, 4)), so.PureDP(epsilon=1.0)),
    "product": (so.Kronecker([so.AllRanges(4), so.Histogram((2, 3)), so.RunningSum(3)]), ONE),
    "product, pure": (so.Kronecker([so.AllRanges(4), so.Histogram((2, 3)), so.RunningSum(3)]), so.PureDP(epsilon=1.0)),
    "matrices": (so.Kronecker([so.Matrix(RNG.random((6, 4))), so.AllRanges(3)]), ONE),
}


def all_boxes(shape):
    ends = [[(i, j) for i in range(n) for j in range(i, n)] for n in shape]
    return np.array(list(itertools.product(*ends)))


@pytest.mark.parametrize("name", TABLES)
def test_sums_over_boxes_are_those_of_their_queries(name):
    """Whatever measures the cells: the same values and errors as of the queries one by one."""
    workload, privacy = TABLES[name]
    shape = workload.input_shape
    cells = RNG.integers(0, 50, shape)
    boxes = all_boxes(shape)
    rows = []
    for box in boxes:
        row = np.zeros(shape)
        row[tuple(slice(first, last + 1) for first, last in box)] = 1.0
        rows.append(row.reshape(-1))
    served = 0
    for row in so.compare(workload, privacy).rows:
        plan = so.plan(workload, privacy, mechanism=row["mechanism"])
        if plan.mechanism.startswith(("threshold", "compressive")):
            continue
        release = plan.release(cells)
        try:
            found = release.sum(boxes)
        except so.errors.UnsupportedMechanismError:
            assert plan.mechanism.split("-")[0] in {
                "output",
                "fourier",
                "dense",
                "ellipsoid",
                "tree",
                "haar",
                "square",
            } | {"k"}
            continue
        served += 1
        known = release.answer(so.Matrix(np.array(rows)))
        assert np.allclose(found.values, known.values, rtol=1e-8, atol=1e-6), plan.mechanism
        assert np.allclose(found.stderr, known.stderr, rtol=1e-8), plan.mechanism
        band, other = found.interval(0.9), known.interval(0.9)
        assert (band.upper - band.lower >= (other.upper - other.lower) * (1 - 1e-9)).all()
        wide = found.interval(0.9, simultaneous=True)
        assert (wide.upper > band.upper).all()
    assert served


def test_products_of_ranges_are_planned_by_their_factors():
    """2.8e11 answers: the errors of the factors multiply, and so do the bounds."""
    workload = so.Kronecker([so.AllRanges(1024)] * 2)
    plan = so.plan(workload, ONE)
    assert plan.mechanism == "balanced-gaussian" and plan.optimality < 1.0025
    single = so.plan(so.AllRanges(1024), ONE)
    assert plan.rmse * ONE.mu == pytest.approx((single.rmse * ONE.mu) ** 2, rel=3e-3)
    assert plan.max_stderr * ONE.mu == pytest.approx((single.max_stderr * ONE.mu) ** 2, rel=3e-3)
    one = so.PureDP(epsilon=1.0)
    # Noise of two trees together is on no lattice; of real cells neither. Sums beside cells have fewer bits along two axes.
    tree, trees = (so.plan(w, one, mechanism="weighted-tree", integral=False) for w in (so.AllRanges(1024), workload))
    assert trees.rmse * math.sqrt(2.0) == pytest.approx(tree.rmse**2, rel=1e-3)
    sums, pure = so.plan(so.AllRanges(1024), one, mechanism="p-identity"), so.plan(workload, one)
    assert pure.rmse * math.sqrt(2.0) == pytest.approx(sums.rmse**2, rel=1e-2)  # noise of one axis is on a lattice
    assert pure.mechanism == "p-identity-laplace" and pure.rmse < 0.8 * trees.rmse
    assert np.prod(workload.answers_shape, dtype=float) == (1024 * 1025 / 2) ** 2
    for made in (plan, pure):
        again = so.plan(so.Kronecker([so.AllRanges(1024), so.Kronecker([so.AllRanges(1024)])]), made.privacy)
        assert again.digest == made.digest


@pytest.mark.statistical
def test_released_boxes_have_the_planned_error():
    """20 releases and 400 boxes: the mean square is within 15 % of the plan's, five deviations."""
    workload = so.Kronecker([so.AllRanges(200), so.AllRanges(150)])
    assert not workload.is_listed
    cells = RNG.integers(0, 9, (200, 150))
    ends = np.sort(RNG.integers(0, [[200], [150]], (400, 2, 2)), axis=2)
    truth = np.array([cells[a : b + 1, c : d + 1].sum() for (a, b), (c, d) in ends])
    for privacy in (ONE, so.PureDP(epsilon=1.0)):
        plan = so.plan(workload, privacy)
        scores, covered = [], []
        for seed in range(20):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with so.testing.deterministic_noise(bytes([seed]) * 32):
                    found = plan.release(cells).sum(ends)
            scores.append(((found.values - truth) / found.stderr) ** 2)
            band = found.interval(0.9)
            covered.append(((band.lower <= truth) & (truth <= band.upper)).mean())
        assert np.mean(scores) == pytest.approx(1.0, abs=0.15)
        assert np.mean(covered) > 0.87


@pytest.mark.parametrize("length", [12_000, 65_536])
def test_ranges_of_any_length(length):
    plan = so.plan(so.AllRanges(length), ONE)
    assert plan.mechanism == "balanced-gaussian" and plan.optimality < 1.001 and plan.max_stderr is None
    pure = so.plan(so.AllRanges(length), so.PureDP(epsilon=1.0))
    assert pure.mechanism == "weighted-tree-laplace"
    # Errors grow with the logarithm: no cliff where answers are no longer listed.
    listed = so.plan(so.AllRanges(4096), ONE)
    assert plan.rmse / listed.rmse < 1.05 * math.log(length) / math.log(4096)


def test_the_mean_error_is_the_same_listed_or_not():
    """The closed forms of the means, against the variances of all ranges."""
    for length in (2, 3, 17, 200, 1500):
        for law, name in (("gaussian", "balanced"), ("laplace", "weighted-tree"), ("laplace", "identity")):
            strategy = _core.Strategy(so.AllRanges(length).core, name, law)
            mean, largest = strategy.spread()
            variances = strategy.variances()
            assert mean == pytest.approx(variances.mean(), rel=1e-9)
            assert largest == pytest.approx(variances.max(), rel=1e-9)


def test_answers_that_are_not_listed_are_said_to_be(tmp_path):
    workload = so.Kronecker([so.AllRanges(200), so.AllRanges(150)])
    ledger = so.Ledger(so.GaussianDP(mu=1.0))
    for mechanism in ("output", "threshold", "ellipsoid", "tree", "fourier"):
        with pytest.raises(so.errors.UnsupportedMechanismError):
            so.plan(workload, ONE, mechanism=mechanism)
    with pytest.raises(so.errors.UnsupportedMechanismError):
        so.plan(
            workload, ONE, compression=so.sketches.Compression(measurements=60, sparsity=2), mechanism="compressive"
        )
    with pytest.raises(so.errors.SordinoError):
        so.plan(workload, ONE, constraint=so.optimal.PublicBound(40.0))
    plan = so.plan(workload, ONE)
    release = plan.release(np.zeros((200, 150)), ledger=ledger)
    assert ledger.remaining()["gaussian_mu"] < 1.0
    for asked in (
        lambda: release.values,
        lambda: release.unbiased,
        lambda: release.stderr,
        lambda: release.interval(0.9),
        release.nonnegative,
        lambda: release.answer(workload).values,
        lambda: release.answer(so.AllRanges(30_000)),
        lambda: plan.fit.stderr,
        plan.plot,
        lambda: so.AllRanges(30_000).ranges,
    ):
        with pytest.raises(so.errors.UnsupportedMechanismError):
            asked()
    assert "values" not in repr(release)
    total = release.answer(so.Matrix(np.ones((1, 30_000))))
    assert total.values[0] == pytest.approx(release.sum([[[0, 199], [0, 149]]]).values[0], abs=1e-6)
    assert release.cells.shape == (200, 150)
    loaded = so.ReleasePlan.load(plan.save(tmp_path / "plan.json"))
    assert loaded.digest == plan.digest
    with pytest.raises(so.errors.InvalidParameterError, match="2\\^62"):
        so.Kronecker([so.AllRanges(2**20), so.AllRanges(2**6), so.AllRanges(2**6)])
    with pytest.raises(so.errors.InvalidParameterError, match="weights"):
        so.Kronecker([so.Matrix(np.eye(200), weights=np.arange(1.0, 201.0)), so.AllRanges(1000)])


@pytest.mark.parametrize(
    ("boxes", "error"),
    [
        ([[0, 9]], so.errors.InvalidParameterError),
        ([[5, 4]], so.errors.InvalidParameterError),
        ([[-1, 4]], so.errors.InvalidParameterError),
        ([[0, 1, 2]], so.errors.ShapeError),
        ([0, 1], so.errors.ShapeError),
        ([[0.5, 1.0]], so.errors.DataTypeError),
        ([["a", "b"]], so.errors.DataTypeError),
        ([[[0, 1], [0, 1]]], so.errors.ShapeError),
        ([[0, 2**70]], so.errors.InvalidParameterError),
    ],
)
def test_boxes_are_checked(boxes, error):
    release = so.plan(so.AllRanges(9), ONE).release(np.arange(9))
    with pytest.raises(error):
        release.sum(boxes)
    assert len(release.sum([]).values) == len(release.sum(np.zeros((0, 1, 2), int)).interval(0.9).lower) == 0


def test_auto_gives_up_no_room_for_cells_unasked():
    """What clamps ordinary counts is taken only where a bound is declared, and named otherwise."""
    for workload, privacy, integral in (
        (so.Kronecker([so.AllRanges(60), so.AllRanges(60), so.AllRanges(24)]), so.PureDP(epsilon=1.0), False),
        (so.Kronecker([so.AllRanges(40)] * 4), so.PureDP(epsilon=1.0), True),
        (so.Kronecker([so.AllRanges(40)] * 4), ONE, True),
        (so.Kronecker([so.AllRanges(1024)] * 2), ONE, False),
    ):
        plan = so.plan(workload, privacy, integral=integral)
        assert plan.fit.domain.max_value >= 2**12
        passed = plan.fit.passed_over
        assert (passed is not None) == ("passed over" in plan.explain())
        if passed is not None:
            assert passed.rmse < plan.rmse and passed.domain.max_value < 2**12
            declared = so.plan(workload, privacy, integral=integral, max_value=passed.domain.max_value)
            assert declared.mechanism == passed.name and declared.fit.passed_over is None
        assert so.compare(workload, privacy, integral=integral).chosen == plan.mechanism


def test_weights_have_nothing_in_common():
    """A tree of single cells is the cells."""
    plan = so.plan(so.Kronecker([so.AllRanges(8)] * 5), so.PureDP(epsilon=1.0), mechanism="weighted-tree")
    cells = so.plan(plan.workload, so.PureDP(epsilon=1.0), mechanism="identity")
    assert plan.fit.domain == cells.fit.domain and plan.rmse == pytest.approx(cells.rmse, rel=1e-6)


def test_sums_are_of_what_was_measured_not_of_what_was_recovered():
    cells = np.zeros(4096, dtype=int)
    cells[RNG.integers(0, 4096, 60)] = 12
    full = np.flatnonzero(cells)
    plan = so.plan(so.Histogram(4096), so.ApproxDP(epsilon=1.0, delta=1e-6), mechanism="threshold-gaussian")
    release = plan.release(cells)
    found = release.sum(np.stack([full, full], axis=1))
    assert np.allclose(found.values, release.unbiased[full], atol=1e-6)
    assert not np.allclose(found.values, release.values[full], atol=1e-3)
    ordered = so.plan(so.SortedHistogram(6), so.PureDP(epsilon=1.0)).release([50, 40, 30, 20, 10, 0])
    with pytest.raises(so.errors.UnsupportedMechanismError, match="places"):
        ordered.sum([[0, 1]])
    sketched = so.plan(
        so.Histogram(64), ONE, compression=so.sketches.Compression(sparsity=4), mechanism="compressive-gaussian"
    ).release(np.ones(64))
    with pytest.raises(so.errors.UnsupportedMechanismError):
        sketched.sum([[0, 1]])


@pytest.mark.parametrize(
    ("workload", "box"),
    [
        (so.workloads.Union([so.Histogram((6, 5)), so.AllRanges(30)]), [[1, 4], [2, 3]]),
        (so.Kronecker([so.Histogram((7, 1)), so.RunningSum(20)]), [[0, 6], [0, 0], [3, 9]]),
        (so.Kronecker([so.Histogram((1, 7)), so.RunningSum(1), so.AllRanges(20)]), [[0, 0], [2, 6], [0, 0], [3, 9]]),
    ],
)
def test_boxes_of_tables_with_axes_of_one_cell(workload, box):
    cells = RNG.integers(0, 9, workload.input_shape)
    inside = np.zeros(workload.input_shape)
    inside[tuple(slice(first, last + 1) for first, last in box)] = 1.0
    for privacy in (ONE, so.PureDP(epsilon=1.0)):
        for mechanism in ("auto", "identity", "weighted-tree" if isinstance(privacy, so.PureDP) else "balanced"):
            release = so.plan(workload, privacy, mechanism=mechanism).release(cells)
            found, known = release.sum([box]), release.answer(so.Matrix(inside.reshape(1, -1)))
            assert np.allclose(found.values, known.values) and np.allclose(found.stderr, known.stderr)


def test_sums_where_cells_are_not_estimated():
    release = so.plan(so.RunningSum(16), ONE, mechanism="fourier").release(np.arange(16))
    with pytest.raises(so.errors.UnsupportedMechanismError):
        _ = release.cells
    found, known = release.sum([[0, 3], [2, 2]]), release.answer(so.Matrix([[1.0] * 4 + [0.0] * 12, np.eye(16)[2]]))
    assert np.allclose(found.values, known.values) and np.allclose(found.stderr, known.stderr)


def test_many_axes_of_one_cell_take_no_time():
    shape = (1,) * 30 + (4,)
    release = so.plan(so.Histogram(shape), so.GaussianDP(mu=1e6)).release(np.arange(4.0).reshape(shape))
    assert release.sum([[[0, 0]] * 30 + [[1, 3]]]).values == pytest.approx([6.0], abs=1e-3)


def test_the_largest_error_of_very_many_ranges_is_not_minimised():
    """It is not known: the mean is not given in its place."""
    for workload in (so.AllRanges(12_000), so.Kronecker([so.AllRanges(12_000), so.Histogram(3)])):
        with pytest.raises(so.errors.UnsupportedMechanismError, match="largest error"):
            so.plan(workload, ONE, objective="max")
    assert so.plan(so.Kronecker([so.AllRanges(600), so.AllRanges(500)]), ONE, objective="max").max_stderr is not None


@pytest.mark.parametrize("integral", [True, False])
def test_finer_weights_of_groups_leave_the_room_that_coarse_ones_had(integral):
    groups = so.GroupBy([np.zeros(64, dtype=int), np.arange(64) // 8, np.arange(64)])
    for most in (None, 2**24, 2**36 if integral else 2**20):
        plan = so.plan(groups, so.GaussianDP(mu=1.0), mechanism="laminar-gaussian", max_value=most, integral=integral)
        assert plan.fit.domain.max_value >= (most or 2**24)
    for k in (16, 22):  # the largest sums are just what fits
        one = so.plan(so.GroupBy(np.zeros(2**k, dtype=int)), so.PureDP(epsilon=1.0), mechanism="laminar-laplace")
        assert one.fit.domain.max_value == 2**24
    assert so.GroupBy([[-1, -1], [0, 1]]).answers_shape == (2,)


def test_a_weight_of_all_marginals_changes_nothing():
    workload = so.Marginals([2, 3, 2, 2], k=1)
    alone, weighted = (so.plan(asked, so.PureDP(epsilon=1.0)) for asked in (workload, 3 * workload))
    assert weighted.mechanism == alone.mechanism
    assert weighted.rmse == alone.rmse
    assert weighted.release(np.arange(24).reshape(2, 3, 2, 2)).values.size == np.prod(workload.answers_shape)


@pytest.mark.parametrize(
    ("workload", "most"), [(so.AllRanges(1025), 11.1), (so.AllRanges(4096), 15.5), (so.RunningSum(2048), 11.0)]
)
def test_pure_ranges_have_no_step_where_nothing_is_written_out(workload, most, tmp_path):
    """Weighted sums beside the cells, from the tree's, are still searched for; `test_answers` measures such strategies."""
    plan = so.plan(workload, so.PureDP(epsilon=1.0))
    tree = so.plan(workload, so.PureDP(epsilon=1.0), mechanism="weighted-tree")
    assert plan.mechanism == "p-identity-laplace"
    assert plan.rmse <= most
    assert plan.rmse < tree.rmse
    found = plan.fit.factorization
    assert found.beside_cells
    assert found.factors[0].shape[1] == workload.core.input_len
    loaded = so.Plan.load(plan.save(tmp_path / "plan.json"))
    assert loaded.digest == plan.digest
    x = np.random.default_rng(0).integers(0, 50, workload.core.input_len)
    with so.testing.deterministic_noise(bytes(32)):
        one, other = plan.release(x), loaded.release(x)
    np.testing.assert_array_equal(one.values, other.values)
    truth = so._core.Strategy(workload.core, "identity", "laplace").decode(x.astype(float))
    assert np.sqrt(np.mean((one.values - truth) ** 2)) < 2.0 * plan.rmse


def test_sums_beside_cells_are_what_their_matrix_is():
    workload = so.RunningSum(1100)
    plan = so.plan(workload, so.PureDP(epsilon=1.0))
    matrix = plan.fit.factorization.matrix
    np.testing.assert_allclose(np.abs(matrix).sum(axis=0), 1.0)
    inverse = np.linalg.inv(matrix.T @ matrix)
    sums = np.tril(np.ones((1100, 1100)))
    error = math.sqrt(2.0 * np.einsum("ij,jk,ik->", sums, inverse, sums) / 1100)
    assert plan.rmse <= error * 1.001, "discrete noise is less"
    assert plan.rmse >= 0.9 * error


def test_sums_beside_cells_are_searched_for_ranges_of_4096_cells():
    with pytest.raises(so.errors.UnsupportedMechanismError, match="4096"):
        so.plan(so.AllRanges(5000), so.PureDP(epsilon=1.0), mechanism="p-identity")


def test_what_is_not_searched_for_unasked_is_said():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(1030, 1030)) * np.exp(rng.normal(size=1030))
    one, limit = so.GaussianDP(mu=1.0), "limit          the balanced root of more than 1,024 cells"
    assert limit in so.plan(so.Matrix(A), one).explain()
    assert limit not in so.plan(so.Matrix(A[:, :900]), one).explain()
    assert limit not in so.plan(so.AllRanges(1030), one).explain()
    assert limit not in so.plan(so.Matrix(A), so.PureDP(epsilon=1.0)).explain()


@pytest.mark.parametrize("privacy", [so.GaussianDP(mu=0.3), so.PureDP(epsilon=1.0)])
@pytest.mark.parametrize(
    "workload",
    [
        so.AllRanges(90),
        so.RunningSum(700),
        so.Kronecker([so.AllRanges(12), so.AllRanges(9)]),
        Union([so.AllRanges(40), so.RunningSum(40)]),
        Union([so.RunningSum(40), so.Histogram(40)], weights=[1.0, 5.0]),
    ],
    ids=repr,
)
def test_of_millions_of_answers_errors_are_listed_when_they_are_asked_for(workload, privacy, monkeypatch):
    listed = so.plan(workload, privacy)
    monkeypatch.setattr(fitting, "_LISTED", 0)
    plan = so.plan(workload, privacy)
    assert plan.mechanism == listed.mechanism and plan.explain() == listed.explain()
    assert math.isclose(plan.rmse, listed.rmse, rel_tol=1e-12)
    assert math.isclose(plan.max_stderr, listed.max_stderr, rel_tol=1e-12)
    np.testing.assert_allclose(plan.fit.stderr, listed.fit.stderr, rtol=1e-12)
    release = plan.release(np.zeros(workload.input_shape, dtype=int))
    assert release.interval(0.9).lower.shape == release.values.shape
    np.testing.assert_allclose(release.stderr.reshape(-1), listed.fit.stderr, rtol=1e-12)
