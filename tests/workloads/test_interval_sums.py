"""Intervals of a line: answers, noise and sensitivities from their definition, and the matrix that they are."""

import numpy as np
import pytest
import scipy.sparse

import sordino as so
from sordino import _core
from sordino.accuracy.diagonal_bound import diagonal_mean
from sordino.workloads import Intervals
from sordino.workloads.recognition import recognised

APPROX, PURE = so.ApproxDP(epsilon=1.0, delta=1e-6), so.PureDP(epsilon=1.0)


def matrix(workload):
    """The definition."""
    cells = np.arange(workload.length)
    return np.array([(i <= cells) & (cells <= j) for i, j in zip(workload.first, workload.last, strict=True)], float)


def some(count, length, seed=1, **options):
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.integers(0, length, (count, 2)), axis=1)
    return Intervals(ends[:, 0], ends[:, 1], length, **options)


SMALL = {
    "some": some(9, 12),
    "gaps": Intervals([2, 2, 8], [4, 3, 8], 11),
    "one": Intervals([0], [6], 7),
    "one cell": Intervals([3], [3], 5),
    "nested": Intervals([0, 0, 4, 4], [7, 3, 7, 5], 8),
    "weighed": some(9, 12, seed=2, weights=np.arange(1.0, 10.0)),
    "every cell": Intervals(range(6), range(6), 6),
}


FAR = {"far apart": Intervals([10, 250], [400, 300], 900), "far from the ends": Intervals([500], [700], 900)}


@pytest.mark.parametrize("workload", (SMALL | FAR).values(), ids=SMALL | FAR)
def test_the_same_intervals_of_fewer_cells(workload):
    A = matrix(workload)
    # Representatives: each column that is not zero, once for each run.
    kept = [j for j in range(A.shape[1]) if A[:, j].any() and (j == 0 or not np.array_equal(A[:, j], A[:, j - 1]))]
    uncovered = [j for j in range(A.shape[1]) if not A[:, j].any()]
    distinct = workload.core.distinct_cells()
    if len(kept) < A.shape[1]:
        assert (distinct[0].tolist(), distinct[1]) == (kept, min(uncovered, default=None))
    else:
        assert distinct is None
    assert np.array_equal(matrix(workload.merged), A[:, kept])
    assert np.array_equal(_core.dense(workload.core), A)
    assert workload.merged.merged is workload.merged


@pytest.mark.parametrize("mechanism", ["weighted-tree-laplace", "balanced-gaussian", "p-identity-laplace", "optimal"])
@pytest.mark.parametrize("workload", SMALL.values(), ids=SMALL)
def test_noise_and_sensitivity_are_those_of_the_matrix(workload, mechanism, known_noise):
    """What is measured of every pair of neighbours is as far apart as is said, and decodes to the answers."""
    A, n = matrix(workload), workload.length
    for unit in (so.AddRemove(), so.ReplaceOne(), so.AddRemove(3, per_cell=1)):
        try:
            plan = so.plan(workload, APPROX, unit=unit, mechanism=mechanism)
        except so.errors.UnsupportedMechanismError:
            assert mechanism == "p-identity-laplace" or workload.merged.length == 1
            continue
        strategy, door = plan.fit.strategy, plan.fit.door

        def measured(x, strategy=strategy, door=door):
            found = door.measure(strategy, x, bytes(32))
            return np.ldexp(found.units.astype(float), found.grid)

        zero = measured(np.zeros(n, np.int64))
        # Of many records, so that the lattice counts for little.
        many = 4096 * np.eye(n, dtype=np.int64)
        B = np.stack([measured(row) - zero for row in many], axis=1) / 4096.0
        order = 1 if strategy.geometry == "l1" else 2
        changes = {
            so.AddRemove(): list(np.eye(n)),
            so.ReplaceOne(): [np.eye(n)[i] - np.eye(n)[j] for i in range(n) for j in range(n) if i != j],
        }.get(unit)
        if changes is None:
            rng = np.random.default_rng(5)
            changes = [rng.permutation(np.r_[np.ones(min(3, n)), np.zeros(n - min(3, n))]) for _ in range(60)]
            changes += [np.r_[np.zeros(k), np.ones(min(3, n)), np.zeros(n)][:n] for k in range(n - min(3, n) + 1)]
        largest = max(np.linalg.norm(B @ change, ord=order) for change in changes)
        assert largest <= plan.fit.door.sensitivity[0] * (1.0 + 1e-8)
        if isinstance(unit, so.AddRemove) and unit.records == 1:
            assert largest >= plan.fit.door.sensitivity[0] * (1.0 - 1e-6)
        x = np.random.default_rng(1).integers(0, 9, n)
        release = plan.release(x)
        assert (np.abs(release.values - A @ x) <= 11.0 * release.stderr).all()
        # The answers of least variance from what is measured.
        noise = plan.fit.door.noise**2 * np.asarray(strategy.unit_variances())
        covariance = np.linalg.pinv((B.T / noise) @ B)
        assert np.allclose(release.stderr**2, np.einsum("tj,jk,tk->t", A, covariance, A), rtol=1e-5)


@pytest.mark.parametrize("privacy", [APPROX, PURE, so.GaussianDP(mu=1.0)], ids=lambda p: type(p).__name__)
def test_long_lines_of_few_intervals_cost_no_more_than_their_cells(privacy):
    few, long = some(40, 100), some(40, 100)
    long = Intervals(few.first * 5000, few.last * 5000 + 4999, 500_000)
    plans = [so.plan(workload, privacy) for workload in (few, long)]
    assert plans[0].mechanism == plans[1].mechanism
    assert plans[1].rmse == pytest.approx(plans[0].rmse, rel=1e-3)
    x = np.arange(500_000) % 3
    release = plans[1].release(x)
    truth = np.concatenate([[0], np.cumsum(x)])
    truth = truth[long.last + 1] - truth[long.first]
    assert (np.abs(release.values - truth) <= 11.0 * release.stderr).all()


@pytest.mark.parametrize(("count", "length"), [(1500, 1200), (300, 2**20), (3000, 5000)])
def test_many_intervals_are_answered_near_the_bound_and_not_from_noise_on_the_cells(count, length):
    workload = some(count, length)
    for privacy in (APPROX, PURE):
        plan = so.plan(workload, privacy)
        cells = so.plan(workload, privacy, mechanism="identity")
        assert plan.rmse < 0.6 * cells.rmse
        if plan.fit.mechanism.law == "gaussian" and workload.merged.length <= 1024:
            assert plan.optimality is not None and plan.optimality < 1.02
    gaussian = so.plan(workload, so.GaussianDP(mu=1.0), mechanism="balanced")
    if workload.merged.length <= 1024:
        assert gaussian.rmse < 1.05 * diagonal_mean(workload.merged)


@pytest.mark.parametrize("count", [20_000, 100_000, 400_000])
def test_many_intervals_of_many_cells_have_hardly_more_error_than_all_ranges(count):
    """Weights of columns are in steps from 46,341 cells on: variances are those of the weights of answers."""
    workload = some(count, 2**17)
    plan = so.plan(workload, so.GaussianDP(mu=1.0))
    assert plan.fit.mechanism.name == "balanced-gaussian"
    ranges = so.AllRanges(workload.merged.length)
    assert plan.rmse < 1.003 * so.plan(ranges, so.GaussianDP(mu=1.0)).rmse
    beside, known = (so.Kronecker([own, so.Histogram(3)]) for own in (workload.merged, ranges))
    assert so.plan(beside, so.GaussianDP(mu=1.0)).rmse < 1.004 * so.plan(known, so.GaussianDP(mu=1.0)).rmse
    assert plan.rmse == pytest.approx(np.sqrt(np.mean(plan.fit.answers_stderr**2)), rel=1e-12)
    assert plan.max_stderr == plan.fit.answers_stderr.max()
    for k in (0, 1, count // 2):
        row = np.zeros(2**17)
        row[workload.first[k] : workload.last[k] + 1] = 1.0
        weights = plan.fit.strategy.weights(row)
        known = plan.fit.door.noise * np.linalg.norm(weights)
        assert plan.fit.answers_stderr[k] == pytest.approx(known, rel=1e-9)


def test_steps_of_weights_lose_less_than_half_a_percent():
    sums = so.plan(so.RunningSum(60_000), so.GaussianDP(mu=1.0), mechanism="balanced")
    workload = Intervals(np.zeros(60_000, dtype=int), np.arange(60_000), 60_000)
    assert so.plan(workload, so.GaussianDP(mu=1.0), mechanism="balanced").rmse < 1.005 * sums.rmse


def test_where_gaussian_noise_is_not_planned_the_plan_says_so():
    for workload in (so.AllRanges(2**23 + 1), so.AllRanges(2**23 + 1) | so.Histogram(2**23 + 1)):
        plan = so.plan(workload, so.GaussianDP(mu=1.0))
        assert plan.fit.mechanism.law == "laplace" and "merge cells" in plan.explain()
        assert "merge cells" not in so.plan(workload, PURE).explain()
    cells = so.plan(so.AllRanges(2**23 + 1), so.GaussianDP(mu=1.0), noise="gaussian")
    assert cells.fit.mechanism.name == "identity-gaussian" and "merge cells" in cells.explain()


def test_weights_count():
    """Errors go where weights are."""
    first, last = np.arange(60), np.minimum(np.arange(60) + 9, 59)
    heavy = np.where(np.arange(60) < 10, 100.0, 1.0)
    for privacy in (APPROX, PURE):
        even, own = (so.plan(Intervals(first, last, 60, weights=w), privacy) for w in (None, heavy))
        assert own.rmse == pytest.approx(np.sqrt(np.average(own.fit.answers_stderr**2, weights=heavy)))
        assert own.rmse < np.sqrt(np.average(even.fit.answers_stderr**2, weights=heavy))
    long = some(2000, 3000, weights=np.linspace(1.0, 9.0, 2000))
    for mechanism in ("weighted-tree-laplace", "balanced-gaussian"):
        plan = so.plan(long, APPROX, mechanism=mechanism)
        assert plan.rmse == pytest.approx(np.sqrt(np.average(plan.fit.answers_stderr**2, weights=long.weights)))


def test_matrices_of_intervals_are_planned_as_them():
    for workload in SMALL.values():
        A = matrix(workload)
        if workload.weights is None and A.shape[0] == A.shape[1]:
            continue  # another workload, of which more is known
        for given in (A, scipy.sparse.csr_array(A)):
            assert recognised(so.Matrix(given, weights=workload.weights)) == workload
        plans = [so.plan(each, PURE) for each in (so.Matrix(A, weights=workload.weights), workload)]
        assert plans[0].digest == plans[1].digest
    names = ["a", "b", "c"]
    assert recognised(so.Matrix(matrix(SMALL["gaps"]), names=names)).kind == "matrix"
    for other in ([[1.0, 0.0, 1.0]], [[1.0, 2.0, 0.0]], [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]], [[-1.0, -1.0, 0.0]]):
        assert recognised(so.Matrix(other)).kind == "matrix"
        assert recognised(so.Matrix(scipy.sparse.csr_array(other))).kind == "matrix"


@pytest.mark.parametrize("length", [60, 1500])
def test_matrices_are_not_merged_where_units_change_several_cells(length):
    workload = some(20, length, seed=3)
    A, unit, one = matrix(workload), so.AddRemove(3, per_cell=1), so.GaussianDP(mu=1.0)
    plan = so.plan(so.Matrix(A), one, unit=unit)
    assert plan.workload.kind == "matrix"
    # With names it is planned as it is written.
    named = so.plan(so.Matrix(A, names=[f"q{k}" for k in range(len(A))]), one, unit=unit)
    assert plan.mechanism == named.mechanism and plan.rmse == pytest.approx(named.rmse, rel=1e-6)
    assert so.plan(so.Matrix(A), one).workload.kind == "intervals"


def test_what_is_found_for_a_matrix_measures_its_cells():
    workload = some(20, 60, seed=3)
    given = so.Matrix(matrix(workload))
    for each, cells in ((given, 60), (workload, workload.merged.length)):
        found = so.optimal.factorize(each)
        assert found.matrix.shape[1] == cells
        assert found.build(each).measured_len == len(found.matrix)
        plan = so.plan(each, APPROX, factorization=found)
        assert plan.mechanism == "optimal-gaussian" and plan.optimality < 1.01


@pytest.mark.parametrize("mechanism", ["auto", "sparse", "universal"])
@pytest.mark.parametrize("privacy", [so.GaussianDP(mu=1.0), PURE], ids=lambda p: type(p).__name__)
def test_a_public_total_counts_cells_that_no_interval_has(mechanism, privacy, known_noise):
    x = np.array([5, 5, 5, 0, 985])
    for given in (Intervals([0, 0], [1, 2], 5), so.Matrix([[1.0, 1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 0.0, 0.0]])):
        plan = so.plan(
            given, privacy, mechanism=mechanism, constraint=so.optimal.PublicTotal(1000), unit=so.ReplaceOne()
        )
        release = plan.release(x)
        assert (np.abs(release.values - [10, 15]) < 60.0).all()
        found = release.projection
        if len(found.cells):
            assert found.weights.sum() == pytest.approx(1000.0) and found.weights[found.cells > 2].sum() > 900.0


def test_unions_with_cells_and_sums(known_noise):
    lines = some(400, 1500)
    for workload in (lines | so.Histogram(1500), lines | 2.0 * so.RunningSum(1500), so.AllRanges(1500) | lines):
        for privacy in (APPROX, PURE):
            plan = so.plan(workload, privacy)
            assert plan.rmse < so.plan(workload, privacy, mechanism="identity").rmse
    small = some(20, 40) | so.RunningSum(40)
    x = np.arange(40)
    for mechanism in ("weighted-tree-laplace", "p-identity-laplace", "optimal-gaussian"):
        release = so.plan(small, APPROX, mechanism=mechanism).release(x)
        truth = np.concatenate([matrix(small.parts[0]) @ x, np.cumsum(x)])
        assert (np.abs(release.values - truth) <= 11.0 * release.stderr).all()


def test_projections_name_cells_of_the_line():
    workload = Intervals([0, 0, 500], [999, 499, 899], 1000)
    x = np.zeros(1000, int)
    x[700] = 30
    for mechanism in ("auto", "sparse"):
        plan = so.plan(workload, APPROX, mechanism=mechanism, constraint=so.optimal.PublicBound(50))
        found = plan.release(x).projection
        assert found is not None and set(found.cells.tolist()) <= set(range(1000))
        assert plan.release(x).values.shape == (3,)


def test_frames_and_files_have_the_ends(tmp_path):
    workload = Intervals([0, 2], [1, 5], 6, weights=[1.0, 2.0])
    plan = so.plan(workload, APPROX)
    plan.save(tmp_path / "plan.json")
    assert so.Plan.load(tmp_path / "plan.json").digest == plan.digest
    frame = plan.release(range(6)).to_frame(library="pandas")
    assert frame["first"].tolist() == [0, 2] and frame["last"].tolist() == [1, 5]
    assert so.workloads.workload_from_spec("intervals", workload.spec()) == workload


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (([0], [1, 2], 3), so.errors.InvalidParameterError),
        (([1], [0], 3), so.errors.InvalidParameterError),
        (([0], [3], 3), so.errors.InvalidParameterError),
        (([], [], 3), so.errors.InvalidParameterError),
        (([-1], [1], 3), so.errors.InvalidParameterError),
        (([0.5], [1], 3), so.errors.DataTypeError),
        (([[0]], [[1]], 3), so.errors.ShapeError),
        (([0], [1], 0), so.errors.InvalidParameterError),
        (([0], [2**40], 3), so.errors.InvalidParameterError),
        (([0], [1], 3, [0.0]), so.errors.InvalidParameterError),
        (([0], [1], 3, [1.0, 2.0]), so.errors.InvalidParameterError),
    ],
)
def test_bad_intervals_are_refused(arguments, error):
    with pytest.raises(error):
        Intervals(*arguments)
