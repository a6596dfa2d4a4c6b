"""Sparse data: projections onto public constraints, the paper's algorithms, and what breaks if n is read from data."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sordino as so
from geometry import dense, marginals, prefix, signs
from sordino.privacy.calibration import gaussian_mu

PRIVACY = so.ApproxDP(epsilon=1.0, delta=1e-6)
SIGMA = 1.0 / gaussian_mu(PRIVACY)
TRIALS = 20


def zipf(n, cells, rng):
    """n records by Zipf's law of exponent 1.1 on a random order of the cells."""
    p = 1.0 / np.arange(1, cells + 1) ** 1.1
    return rng.multinomial(n, (p / p.sum())[rng.permutation(cells)])


def mean_square(plan, n, trials, project=True):
    A, rng = dense(plan.workload), np.random.default_rng(1)
    errors = []
    for trial in range(trials):
        x = zipf(n, A.shape[1], rng)
        with so.testing.deterministic_noise(bytes([trial]) * 32):
            release = plan.release(x)
        values = release.values if project else release.unbiased
        errors.append(np.mean((values.reshape(-1) - A @ x) ** 2))
    return float(np.mean(errors)), float(np.std(errors) / math.sqrt(trials))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "constraint", [so.optimal.PublicBound(30), so.optimal.SignedBound(30), so.optimal.PublicTotal(30)]
)
def test_projection_solves_its_program(constraint):
    """Brute force by the optimality conditions: the gap is what the release says, the answers belong to the cells."""
    unit = so.ReplaceOne(1) if isinstance(constraint, so.optimal.PublicTotal) else so.AddRemove(1)
    workload = so.Matrix(signs(6, 15, seed=2))
    plan = so.plan(workload, PRIVACY, unit=unit, mechanism="sparse", constraint=constraint)
    with so.testing.deterministic_noise(bytes(32)):
        release = plan.release(np.array([30] + [0] * 14))
    projection = release.projection
    x = np.zeros(15)
    x[projection.cells] = projection.weights
    np.testing.assert_allclose(release.values, workload.A @ x, atol=1e-8)
    assert not np.allclose(release.values, release.unbiased)
    B, y = plan.fit.factorization.factors[0], release.measured.values()
    gradient = B.T @ (B @ x - y)
    least = -np.abs(gradient).max() if isinstance(constraint, so.optimal.SignedBound) else gradient.min()
    if isinstance(constraint, so.optimal.PublicBound):
        least = min(least, 0.0)
    gap = gradient @ x - constraint.size * least
    expected = plan.fit.factorization.factors[0].shape[0] * plan.fit.door.noise**2
    assert -1e-9 <= gap / expected <= 1.01e-3
    assert projection.gap == pytest.approx(gap / expected, rel=1e-3, abs=1e-9)
    if isinstance(constraint, so.optimal.SignedBound):
        assert np.abs(x).sum() <= 30 * (1 + 1e-9)
    else:
        assert x.min() >= 0
        assert x.sum() <= 30 * (1 + 1e-9)
    if isinstance(constraint, so.optimal.PublicTotal):
        assert x.sum() == pytest.approx(30)


@pytest.mark.filterwarnings("ignore")
@given(seed=st.integers(0, 10**6), n=st.integers(1, 50))
def test_projection_never_leaves_the_constraint_and_keeps_intervals(seed, n):
    rng = np.random.default_rng(seed)
    workload = so.Matrix(rng.normal(size=(4, 9)))
    plan = so.plan(workload, PRIVACY, mechanism="sparse", constraint=so.optimal.PublicBound(n))
    x = rng.multinomial(n, np.ones(9) / 9)
    with so.testing.deterministic_noise(bytes([seed % 256]) * 32):
        release = plan.release(x)
        plain = so.plan(workload, PRIVACY, mechanism="optimal").release(x)
    assert release.projection.weights.min(initial=0.0) >= 0
    assert release.projection.weights.sum() <= n * (1 + 1e-9)
    np.testing.assert_allclose(release.unbiased, plain.unbiased)
    np.testing.assert_allclose(release.stderr, plain.stderr)
    interval = release.interval(0.9)
    np.testing.assert_allclose((interval.lower + interval.upper) / 2, release.unbiased)
    assert release.post_processing == ("projected",)
    assert plan.fit.rmse_kind == "noise only"
    assert plan.optimality is None


def test_few_records_gain_most():
    """The rows n = 10 of the reference table: projection in the norm of the noise, on the simplex with one slack."""
    plan = so.plan(so.RunningSum(256), PRIVACY, mechanism="sparse", constraint=so.optimal.PublicBound(10))
    projected, error = mean_square(plan, 10, TRIALS)
    plain, _ = mean_square(plan, 10, TRIALS, project=False)
    assert projected < 8.8 + 4 * error + 1.0
    assert plain > 90


SPARSE = [
    # workload, n, cov simplex (total), cov bound, Alg 3 printed; mean squared error per query of 20 trials
    (lambda: marginals(2), 10, 9.24, 9.2, 159.1),
    (lambda: marginals(2), 100, 68.3, 68.1, 265.6),
    (lambda: marginals(2), 1000, 101.6, 108.8, 262.4),
    (lambda: so.RunningSum(256), 10, 8.75, 8.8, 267.4),
    (lambda: so.RunningSum(256), 100, 35.4, 35.4, 246.0),
    (lambda: so.RunningSum(256), 1000, 63.2, 63.5, 254.9),
    (lambda: so.RunningSum(256), 10000, 84.3, 91.5, 235.3),
    (lambda: so.Matrix(signs(64, 4096)), 10, 40.6, 41.0, 775.0),
    (lambda: so.Matrix(signs(64, 4096)), 100, 765.0, 765.0, 4354.0),
    (lambda: so.Matrix(signs(64, 4096)), 1000, 1172.0, 1172.0, 4546.0),
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("workload", "n", "_simplex", "bound", "algorithm3"), SPARSE)
def test_sparse_table(workload, n, _simplex, bound, algorithm3):
    """Within 4 standard errors of both simulations, theirs taken as large as ours; 20 rows, false alarm below 1 %."""
    plan = so.plan(workload(), PRIVACY, mechanism="sparse", constraint=so.optimal.PublicBound(n))
    value, error = mean_square(plan, n, TRIALS)
    assert abs(value - bound) <= 4 * math.sqrt(2) * max(error, 0.05 * bound)
    plan = so.plan(workload(), PRIVACY, mechanism="sparse-printed", constraint=so.optimal.SignedBound(n))
    value, error = mean_square(plan, n, TRIALS)
    # Eigenspaces are kept whole here, all of R^64 for the signs: less noise than any cut through them.
    if isinstance(plan.workload, so.Marginals) or len(plan.fit.factorization.blocks) == 1:
        assert value <= algorithm3 + 4 * math.sqrt(2) * max(error, 0.05 * algorithm3)
    else:
        assert abs(value - algorithm3) <= 4 * math.sqrt(2) * max(error, 0.06 * algorithm3)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n", [3, 40, 4000])
def test_universal_bound_holds(n):
    workload = so.Matrix(signs(24, 300, seed=1))
    plan = so.plan(workload, PRIVACY, mechanism="universal", constraint=so.optimal.SignedBound(n))
    assert plan.fit.rmse_kind == "upper bound"
    value, error = mean_square(plan, n, TRIALS)
    assert value <= plan.rmse**2 + 4 * error
    radius = np.sqrt(24.0)
    formula = 2 * n * radius**2 * SIGMA * math.sqrt(2 * math.log(600)) / 24
    assert plan.rmse**2 <= formula * 1.01 + 2e-3 * 24 * SIGMA**2
    # With many records the noise alone is less: rank r, standard deviation r sigma on each of 24 coordinates.
    assert plan.rmse**2 <= 24 * SIGMA**2 * 1.15


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mechanism", ["sparse", "universal"])
def test_pure_projections(mechanism):
    privacy = so.PureDP(epsilon=1.0)
    plan = so.plan(so.RunningSum(32), privacy, mechanism=mechanism, constraint=so.optimal.PublicBound(5))
    value, _ = mean_square(plan, 5, TRIALS)
    plain, _ = mean_square(plan, 5, TRIALS, project=False)
    assert value < 0.5 * plain


def test_a_total_read_from_the_data_is_published_by_the_projection():
    """The trap: with n = |x|_1 of the data, a row of ones is answered exactly, whatever the noise."""
    rows = np.vstack([np.ones(8), prefix(8)[2]])
    for records in (20, 21):
        x = np.array([records - 10, 10, 0, 0, 0, 0, 0, 0])
        plan = so.plan(
            so.Matrix(rows),
            PRIVACY,
            unit=so.ReplaceOne(1),
            mechanism="sparse",
            constraint=so.optimal.PublicTotal(int(x.sum())),
        )
        released = plan.release(x).values[0]
        assert abs(released - records) < 1e-6, "neighbours under add/remove are told apart with certainty"
    with pytest.raises(so.errors.InvalidParameterError, match="ReplaceOne"):
        so.plan(so.Matrix(rows), PRIVACY, mechanism="sparse", constraint=so.optimal.PublicTotal(20))


@pytest.mark.filterwarnings("ignore")
def test_a_bound_that_the_data_contradicts_is_not_betrayed():
    """Nothing is said, nothing is refused: that would tell the total."""
    plan = so.plan(so.RunningSum(16), PRIVACY, mechanism="sparse", constraint=so.optimal.PublicBound(5))
    release = plan.release(np.full(16, 100))
    assert release.projection.weights.sum() <= 5 * (1 + 1e-9)
    assert release.interval(0.999).lower[-1] > 1000, "intervals stay around the unprojected answers"


def test_constraints_need_a_projecting_mechanism_and_the_other_way_round():
    with pytest.raises(so.errors.UnsupportedMechanismError, match="constraint"):
        so.plan(so.RunningSum(8), PRIVACY, mechanism="sparse")
    with pytest.raises(so.errors.UnsupportedMechanismError, match="own way"):
        so.plan(so.Histogram(8), PRIVACY, mechanism="threshold", constraint=so.optimal.PublicBound(5))
    with pytest.raises(so.errors.UnsupportedMechanismError, match="no table"):
        so.plan(so.Marginals([2, 3], k=1), PRIVACY, mechanism="fourier", constraint=so.optimal.PublicBound(5))
    chosen, made = (
        so.plan(so.RunningSum(8), PRIVACY, mechanism=name, constraint=so.optimal.PublicBound(5))
        for name in ("auto", "sparse")
    )
    assert chosen.rmse <= made.rmse, "noise on cells of whole counts is less than that of a search of so few"
    for value in (0, -1, math.nan, math.inf):
        with pytest.raises(so.errors.InvalidParameterError):
            so.optimal.PublicBound(value)
    with pytest.raises(so.errors.DataTypeError):
        so.optimal.PublicTotal("many")
    with pytest.raises(so.errors.DataTypeError):
        so.plan(so.RunningSum(8), PRIVACY, constraint=5)


RING = so.MovingAverage(5, 24, boundary="circular")
TORUS = so.workloads.GroupConvolution(np.arange(8.0).reshape(4, 2))
NESTED = so.GroupBy([np.arange(24) // 6, np.arange(24) // 2])
BOTH = so.AllRanges(24) | so.Histogram(24)
GRID = so.Kronecker([so.RunningSum(6), so.AllRanges(4)])
PURE = so.PureDP(epsilon=1.0)
# Every strategy of tables that is not made for a constraint.
NAMED = [
    (so.RunningSum(24), "identity", PRIVACY),
    (so.RunningSum(24), "output", PURE),
    (RING, "output", PRIVACY),
    (so.Matrix(signs(6, 15)), "output", PRIVACY),
    (RING, "fourier", PRIVACY),
    (RING, "fourier", PURE),
    (RING, "fourier-planar", PURE),
    (RING, "fourier-grouped", PURE),
    (RING, "fourier-composed", PRIVACY),
    (TORUS, "fourier", PRIVACY),
    (so.RunningSum(24), "tree", PURE),
    (so.RunningSum(24), "haar", PURE),
    (so.RunningSum(24), "square-root", PRIVACY),
    (so.MovingAverage(5, 24, boundary="valid"), "square-root", PRIVACY),
    (so.AllRanges(24), "balanced", PRIVACY),
    (GRID, "balanced", PRIVACY),
    (GRID, "weighted-tree", PURE),
    (so.AllRanges(24), "weighted-tree", PURE),
    (NESTED, "laminar", PRIVACY),
    (NESTED, "laminar", PURE),
    (BOTH, "split", PRIVACY),
    (so.Matrix(signs(6, 15)), "optimal", PRIVACY),
    (so.Matrix(signs(6, 15)), "p-identity", PURE),
    (so.Matrix(signs(6, 15)), "ellipsoid", PURE),
    (so.Matrix(signs(3, 15)), "k-norm", PURE),
    (so.Matrix(signs(6, 15)), "dense", PURE),
]


def columns(plan):
    """What is measured of each cell, by weights of the measured numbers in none: by releases with the same noise."""
    cells = plan.workload.core.input_len
    shape = plan.workload.input_shape
    with so.testing.deterministic_noise(bytes(32)):
        empty = plan.release(np.zeros(shape, int)).measured.values()
        full = [plan.release((2**12 * np.eye(cells, dtype=int)[j]).reshape(shape)) for j in range(cells)]
    return np.array([release.measured.values() - empty for release in full]).T / 2**12


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("workload", "mechanism", "privacy"), NAMED)
def test_every_mechanism_projects_onto_what_is_public(workload, mechanism, privacy, tmp_path):
    """The projected table is within the constraint, and no other is nearer: by the optimality conditions, densely."""
    x = np.zeros(workload.input_shape, int)
    x.reshape(-1)[::4] = 5
    n = int(x.sum())
    plan = so.plan(workload, privacy, mechanism=mechanism, constraint=so.optimal.PublicBound(n))
    free = so.plan(workload, privacy, mechanism=mechanism)
    assert plan.mechanism == free.mechanism
    assert plan.fit.door.grid == free.fit.door.grid
    assert plan.fit.rmse_kind == "noise only"
    with so.testing.deterministic_noise(bytes(32)):
        release, same = plan.release(x), free.release(x)
    np.testing.assert_array_equal(release.unbiased, same.values)
    table = np.zeros(x.size)
    table[release.projection.cells] = release.projection.weights
    assert table.min() >= 0.0
    assert table.sum() <= n * (1 + 1e-9)
    core = workload.core
    answers = so._core.Strategy(core, "identity", "gaussian").decode(table).reshape(workload.answers_shape)
    np.testing.assert_allclose(release.values, answers, atol=1e-9 * n)
    strategy, door = plan.fit.strategy, plan.fit.door
    weights = 1.0 / (door.noise * np.sqrt(strategy.unit_variances()))
    B, y = columns(free) * weights[:, None], release.measured.values() * weights
    slopes = B.T @ (B @ table - y)
    gap = slopes @ table - n * min(slopes.min(), 0.0)
    # In squares of the noise of one number. The search ends by the distance, whose gap is within a thousandth.
    assert gap <= 0.1 * len(y) + 1e-6
    loaded = so.Plan.load(plan.save(tmp_path / "plan.json"))
    assert loaded.digest == plan.digest
    back = so.Release.load(release.save(tmp_path / "release.arrow"))
    np.testing.assert_array_equal(back.values, release.values)


@pytest.mark.filterwarnings("ignore")
def test_noise_in_common_is_part_of_the_norm():
    """Cells that all moved up together moved by the common noise: the projection takes it away."""
    unit = so.AddRemove(12, per_cell=1, one_signed=True)
    plan = so.plan(
        so.Histogram(40), PRIVACY, unit=unit, mechanism="identity-common", constraint=so.optimal.PublicBound(200)
    )
    x = np.zeros(40, int)
    x[:4] = 50
    with so.testing.deterministic_noise(bytes(32)):
        release = plan.release(x)
    y, noise, common = release.measured.values(), plan.fit.door.noise, plan.fit.strategy.common_noise
    inverse = np.linalg.inv(noise**2 * (np.eye(40) + common * np.ones((40, 40))))
    table = np.zeros(40)
    table[release.projection.cells] = release.projection.weights
    slopes = inverse @ (table - y)
    assert slopes @ table - 200 * min(slopes.min(), 0.0) <= 0.1


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("workload", "n", "most"),
    [
        (so.MovingAverage(4096, 2**16, boundary="circular"), 1000, 0.65),
        (so.RunningSum(2**14), 1000, 0.75),
        (so.AllRanges(2048), 500, 0.75),
        (so.Histogram(2**16), 1000, 0.5),
        (so.Kronecker([so.RunningSum(64), so.Histogram(100)]), 500, 0.5),
    ],
    ids=["windows", "sums", "ranges", "cells", "product"],
)
def test_few_records_in_many_cells_have_less_error(workload, n, most):
    """Sizes where no strategy is searched for: `auto` takes the best one that there is, and projects. No interval."""
    plan = so.plan(workload, PRIVACY, constraint=so.optimal.PublicBound(n))
    cells = workload.core.input_len
    x = zipf(n, cells, np.random.default_rng(1)).reshape(workload.input_shape)
    decode = so._core.Strategy(workload.core, "identity", "gaussian").decode
    truth = decode(x.reshape(-1).astype(float)).reshape(workload.answers_shape)
    squares = []
    for key in range(4):
        with so.testing.deterministic_noise(bytes([key]) * 32):
            release = plan.release(x)
        squares.append([np.mean((values - truth) ** 2) for values in (release.values, release.unbiased)])
    projected, measured = np.sqrt(np.mean(squares, axis=0))
    assert projected <= most * measured, (projected, measured)


@pytest.mark.filterwarnings("ignore")
def test_ties_of_whole_noise_end():
    """Entries that tied but for rounding kept the projection going round for ever, behind the charge."""
    plan = so.plan(
        so.Histogram(10), PURE, mechanism="identity", unit=so.ReplaceOne(1), constraint=so.optimal.PublicTotal(7)
    )
    for key in range(200):
        with so.testing.deterministic_noise(key.to_bytes(32, "little")):
            values = plan.release(np.array([1, 0, 0, 1, 0, 1, 1, 0, 1, 0])).values
        assert values.sum() == pytest.approx(7)


def test_nothing_is_refused_behind_the_charge():
    """The lattice of the plan is fine for its unit alone."""
    plan = so.plan(
        so.Histogram(8),
        PURE,
        unit=so.AddRemove(10),
        max_value=2**50,
        mechanism="identity",
        constraint=so.optimal.PublicBound(100),
    )
    ledger = so.Ledger(so.PureDP(epsilon=2.0))
    assert plan.release(np.zeros(8, int), ledger=ledger).projection is not None


@pytest.mark.parametrize(
    ("workload", "options"),
    [
        (so.Marginals([2] * 12, k=1), {}),
        (so.Marginals([10] * 3, k=1), {}),
        (so.Kronecker([so.RunningSum(1024)] * 2), {"integral": False}),
        (so.Kronecker([so.RunningSum(2)] * 14), {}),
        (so.Kronecker([so.RunningSum(128)] * 3), {}),
        (so.RunningSum(2048), {}),
    ],
)
def test_auto_is_no_worse_with_a_constraint(workload, options):
    """Neither in error nor in the cells that are clamped; of marginals only where what is best cannot be projected."""
    free = so.plan(workload, PRIVACY, **options)
    bound = so.plan(workload, PRIVACY, constraint=so.optimal.PublicBound(1000), **options)
    most = 2.5 if isinstance(workload, so.Marginals) else 1.01
    assert bound.rmse <= most * free.rmse
    assert bound.fit.domain.max_value >= min(free.fit.domain.max_value, 2**12)
    assert (bound.fit.passed_over is None) == (free.fit.passed_over is None)
    chosen = so.compare(workload, PRIVACY, constraint=so.optimal.PublicBound(1000), effort="closed_form", **options)
    assert (
        chosen.chosen
        == so.plan(
            workload, PRIVACY, constraint=so.optimal.PublicBound(1000), effort="closed_form", **options
        ).mechanism
    )
    assert {row["rmse_kind"] for row in chosen.rows} <= {"noise only", "upper bound"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("mechanism", "n"), [("auto", 10**5), ("haar", 10**6), ("tree", 10**7), ("weighted-tree", 10**7)]
)
def test_many_records_are_projected_as_near_as_promised(mechanism, n):
    """Steps are differences of large images: their rounding was taken for curvature, and the search stood still."""
    plan = so.plan(so.RunningSum(600), PURE, mechanism=mechanism, constraint=so.optimal.PublicBound(n))
    with so.testing.deterministic_noise(bytes(32)):
        release = plan.release(np.random.default_rng(0).multinomial(n, np.full(600, 1 / 600)))
    assert release.projection.gap <= 1e-3
    assert release.projection.iterations < 1000


@pytest.mark.filterwarnings("ignore")
def test_saved_plans_project_as_before(tmp_path):
    plan = so.plan(so.RunningSum(40), PRIVACY, constraint=so.optimal.PublicBound(7))
    loaded = so.Plan.load(plan.save(tmp_path / "plan.json"))
    assert loaded.digest == plan.digest
    x = zipf(7, 40, np.random.default_rng(0))
    with so.testing.deterministic_noise(bytes(32)):
        np.testing.assert_array_equal(loaded.release(x).values, plan.release(x).values)


def test_answering_zero_is_said_to_be_better():
    plan = so.plan(so.Matrix(signs(8, 20)), PRIVACY, constraint=so.optimal.PublicBound(2))
    assert "answer of zero" in plan.explain()
    assert (
        "answer of zero"
        not in so.plan(so.Matrix(signs(8, 20)), PRIVACY, constraint=so.optimal.PublicBound(500)).explain()
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mechanism", ["optimal", "identity", "output"])
def test_sparse_input_is_measured_like_dense_input(mechanism):
    sparse = pytest.importorskip("scipy.sparse")
    cells = 3000
    workload = so.Matrix(signs(5, cells))
    plan = so.plan(workload, PRIVACY, mechanism=mechanism)
    x = np.zeros(cells, dtype=np.int64)
    x[[7, 1500, 2999]] = [3, -2, 10**9]
    with so.testing.deterministic_noise(bytes(32)):
        expected = plan.release(x).values
        for given in (sparse.coo_array(x), sparse.csr_matrix(x), sparse.csc_matrix(x[:, None])):
            np.testing.assert_array_equal(plan.release(given).values, expected)
        # Entries said twice add up; the order does not matter.
        twice = sparse.coo_matrix(([10**9, 1, 2, -2], ([0] * 4, [2999, 7, 7, 1500])), shape=(1, cells))
        np.testing.assert_array_equal(plan.release(twice).values, expected)
    ledger = so.Ledger(PRIVACY)
    for wrong in (sparse.csr_matrix(x[:-1]), sparse.csr_matrix(np.ones((2, cells)))):
        with pytest.raises(so.errors.ShapeError):
            plan.release(wrong, ledger=ledger)
    with pytest.raises(so.errors.InvalidParameterError):
        plan.release(sparse.csr_matrix(np.where(x == 3, np.nan, 0.0)), ledger=ledger)
    assert not ledger.history


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "workload",
    [
        so.workloads.ExponentialSmoothing(0.95, 600),
        so.Kronecker([so.RunningSum(20), so.AllRanges(16)]),
        so.Kronecker([so.RunningSum(20), so.GroupBy([[0] * 16])])
        | so.Kronecker([so.GroupBy([[0] * 20]), so.RunningSum(16)]),
        so.RunningSum(1030),
    ],
    ids=["filter", "product", "union", "line"],
)
@pytest.mark.parametrize("integral", [True, False])
def test_sums_beside_cells_are_projected_in_their_own_units(workload, integral):
    x = np.zeros(math.prod(workload.input_shape))
    x[::97] = 3.0
    truth = workload.core.apply(x)
    bound = so.optimal.PublicBound(int(x.sum()))
    pure = so.PureDP(epsilon=1.0)
    plan = so.plan(workload, pure, mechanism="sparse", constraint=bound, integral=integral, max_value=100)
    assert plan.fit.factorization.beside_cells
    errors = {"values": [], "unbiased": []}
    for trial in range(4):
        with so.testing.deterministic_noise(bytes([trial]) * 32):
            release = plan.release(x.reshape(workload.input_shape))
        for name, each in errors.items():
            each.append(np.mean((getattr(release, name).reshape(-1) - truth) ** 2))
    # With so few records the nearest input is much nearer.
    assert np.mean(errors["values"]) < 0.6 * np.mean(errors["unbiased"])
    assert np.mean(errors["unbiased"]) < 3.0 * plan.rmse**2
