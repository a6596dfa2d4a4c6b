"""The compressive mechanism on a table: sensitivities by brute force, bases, recoveries, private sparsity, files."""

import hashlib
import itertools
import json
import math
import warnings

import numpy as np
import pytest
import scipy.fft
import scipy.linalg
import scipy.special
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

import sordino as so
from live import plan_live
from sordino import _core
from sordino.mechanisms.linear.compression import compression_from_json, measurements_for, sparsity_for
from sordino.mechanisms.linear.recoveries import hard_threshold, noise_bound, recover
from sordino.privacy.calibration import mu_of_pure

PURE = so.PureDP(epsilon=1.0)
APPROX = so.ApproxDP(epsilon=1.0, delta=1e-6)
ZERO = so.ZeroConcentratedDP(rho=0.5)
MU = so.GaussianDP(mu=1.0)
KINDS = ("sparse", "bernoulli", "hadamard")
ALGORITHMS = ("cosamp", "hard-thresholding", "basis-pursuit")
BASES = {"haar": so.sketches.Haar(), "cosine": so.sketches.Cosine(), "standard": so.sketches.Standard()}
KEY = bytes(range(32))


def key(i):
    return i.to_bytes(32, "little")


def plan_of(cells, privacy, compression, **options):
    law = "laplace" if privacy is PURE else "gaussian"
    return so.plan(so.Histogram(cells), privacy, mechanism=f"compressive-{law}", compression=compression, **options)


def columns(operator):
    """The matrix of signs, column by column: the naive oracle."""
    return np.stack([operator.column(j) for j in range(operator.description[1])], axis=1)


def haar_matrix(n):
    """Rows are the elements, coarse ones first: the textbook recursion."""
    if n == 1:
        return np.ones((1, 1))
    coarse = np.kron(haar_matrix(n // 2), [1.0, 1.0])
    fine = np.kron(np.eye(n // 2), [1.0, -1.0])
    return np.vstack([coarse, fine]) / math.sqrt(2.0)


# Operators


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("cells", "k", "nonzeros"), [(1, 1, 1), (7, 5, 2), (40, 17, 4), (64, 64, 8), (100, 65, 3)])
def test_operators_are_their_matrix_of_signs(kind, cells, k, nonzeros):
    operator = _core.SketchOperator(kind, cells, k, 11, nonzeros)
    Phi, rng = columns(operator), np.random.default_rng(0)
    entries = nonzeros if kind == "sparse" else k
    assert operator.column_entries == entries
    assert np.array_equal(np.abs(Phi).sum(axis=0), np.full(cells, entries))
    assert set(np.unique(Phi)) <= {-1, 0, 1}
    x, y = rng.normal(size=cells), rng.normal(size=k)
    np.testing.assert_allclose(operator.apply(x), Phi @ x / math.sqrt(entries), atol=1e-12)
    np.testing.assert_allclose(operator.adjoint(y), Phi.T @ y / math.sqrt(entries), atol=1e-12)
    table = rng.integers(-(2**53), 2**53, cells)
    sketch = _core.Sketch(operator)
    sketch.add_table(table)
    assert [int(v) for v in sketch.sums()] == [
        sum(int(a) * int(b) for a, b in zip(row, table, strict=True)) for row in Phi
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_seeds_make_other_matrices_and_nothing_else_does(kind):
    make = lambda seed: columns(_core.SketchOperator(kind, 64, 32, seed, 4))  # noqa: E731
    assert np.array_equal(make(5), make(5))
    for other in (0, 6, 5 + 2**32, 5 + 2**63):
        assert not np.array_equal(make(5), make(other))


# Sensitivities, by brute force, through the public API


UNITS = [
    so.AddRemove(1),
    so.AddRemove(3),
    so.AddRemove(2, per_cell=1),
    so.AddRemove(3, per_cell=2),
    so.ReplaceOne(1),
    so.ReplaceOne(2),
    so.UserLevel(2, 2, 1),
]


def changes(unit, cells):
    """Extreme points of what neighbours differ by."""
    if isinstance(unit, so.ReplaceOne):
        for i, j in itertools.permutations(range(cells), 2):
            yield {i: unit.records, j: -unit.records}
        # Clamping may hide one side of a move.
        yield from ({i: unit.records} for i in range(cells))
        return
    per_cell = getattr(unit, "per_cell", None) or getattr(unit, "per_step", None) or unit.records
    whole, rest = divmod(unit.records, min(per_cell, unit.records))
    parts = [min(per_cell, unit.records)] * whole + [rest] * (rest > 0)
    for places in itertools.permutations(range(cells), len(parts)):
        for signs in itertools.product((1, -1), repeat=len(parts)):
            yield {place: sign * part for place, sign, part in zip(places, signs, parts, strict=True)}


@pytest.mark.parametrize("privacy", [PURE, MU], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_no_neighbours_are_further_apart_than_declared(kind, unit, privacy):
    """Measured twice under one key the noise cancels: what is left are the neighbours' sketches."""
    cells, k = 9, 6
    plan = plan_of(
        cells, privacy, so.sketches.Compression(measurements=k, sparsity=1, sketch=kind, nonzeros=3), unit=unit
    )
    strategy, door = plan.fit.strategy, plan.fit.door
    x = np.random.default_rng(1).integers(5, 50, cells)
    before = door.measure(strategy, x, KEY).values()
    order = 1 if privacy is PURE else 2
    largest = 0.0
    for change in changes(unit, cells):
        y = x.copy()
        for place, amount in change.items():
            y[place] += amount
        moved = door.measure(strategy, y, KEY).values() - before
        # Exact: whole numbers, whatever the noise.
        assert np.array_equal(moved, np.rint(moved))
        largest = max(largest, float(np.linalg.norm(moved, order)))
    declared = plan.fit.sensitivity["ideal"]
    assert largest <= declared * (1.0 + 1e-12)
    if isinstance(unit, so.AddRemove) and unit.per_cell is None:
        assert largest >= declared * (1.0 - 1e-12)
    if isinstance(unit, so.ReplaceOne):
        # All pairs were compared.
        assert largest >= declared * (1.0 - 1e-12)
    assert plan.fit.sensitivity["encoding"] == plan.fit.sensitivity["rounding"] == 0.0
    ratio = 1.0 / (1.0 if privacy is PURE else privacy.mu)
    assert door.scale >= ratio * largest * (1.0 - 1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_clamped_cells_are_no_further_apart(kind):
    """At the bound of a cell, beyond it and at the ends of 64 bits; a sketch clamps its sums instead."""
    plan = plan_of(8, PURE, so.sketches.Compression(measurements=6, sparsity=1, sketch=kind, nonzeros=2), max_value=10)
    strategy, door = plan.fit.strategy, plan.fit.door
    tables = [np.full(8, v) for v in (9, 10, 11, -10, -11, 2**53, -(2**53), 2**63 - 2, -(2**63) + 2)]
    for x in tables:
        before = door.measure(strategy, x, KEY).values()
        for j in range(8):
            y = x.copy()
            y[j] += 1
            assert np.abs(door.measure(strategy, y, KEY).values() - before).sum() <= plan.fit.sensitivity["ideal"]
    for value in (9, 11, 79, 80, 81, 2**50):
        sketches = [plan.sketch(), plan.sketch()]
        for sketch in sketches:
            sketch.update(0, value)
        sketches[1].update(3)
        a, b = (door.measure(strategy, sketch.core, KEY).values() for sketch in sketches)
        assert np.abs(a - b).sum() <= plan.fit.sensitivity["ideal"]


@pytest.mark.parametrize(
    "unit", [so.AddRemove(1), so.AddRemove(2), so.AddRemove(2, per_cell=1), so.ReplaceOne(1)], ids=str
)
@pytest.mark.parametrize("privacy", [PURE, MU], ids=["laplace", "gaussian"])
def test_sorting_moves_no_tables_apart(unit, privacy, known_noise):
    """Every table of 4 cells from 0 to 2 (thus all ties), every neighbour."""
    plan = so.plan(so.SortedHistogram(4), privacy, unit=unit)
    order = 1 if plan.mechanism.endswith("laplace") else 2
    largest = 0.0
    for table in itertools.product(range(3), repeat=4):
        before = plan.release(list(table)).unbiased
        for change in changes(unit, 4):
            other = list(table)
            for place, amount in change.items():
                other[place] += amount
            moved = np.linalg.norm(np.rint(plan.release(other).unbiased - before), order)
            largest = max(largest, float(moved))
        if largest > plan.fit.sensitivity["ideal"] * (1.0 + 1e-12):
            break
    assert largest <= plan.fit.sensitivity["ideal"] * (1.0 + 1e-12)


# Bases


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 48, 64, 100])
def test_bases_are_their_dense_definitions(n):
    x, size = np.random.default_rng(n).normal(size=n), so.sketches.Haar().size(n)
    padded = np.concatenate([x, np.zeros(size - n)])
    assert size == 2 ** math.ceil(math.log2(n))
    np.testing.assert_allclose(so.sketches.Cosine().analyze(x), scipy.fft.dct(x, norm="ortho"), atol=1e-12)
    np.testing.assert_allclose(so.sketches.Haar().analyze(x), haar_matrix(size) @ padded, atol=1e-12)
    np.testing.assert_allclose(so.sketches.Standard().analyze(x), x, atol=0.0)
    for basis in BASES.values():
        np.testing.assert_allclose(basis.synthesize(basis.analyze(x))[:n], x, atol=1e-12)
        assert math.isclose(np.linalg.norm(basis.analyze(x)), np.linalg.norm(x), rel_tol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 4, 24, 64, 256])
@pytest.mark.parametrize("name", list(BASES))
def test_what_a_record_changes_in_all_coefficients(name, n):
    basis = BASES[name]
    largest = max(np.abs(basis.analyze(np.eye(n)[j])).sum() for j in range(n))
    assert largest <= basis.column_l1(n) * (1.0 + 1e-12)
    # Cosines: the bound is that of the worst length; Haar: of the padded table.
    assert basis.column_l1(n) <= 1.12 * largest or n < 4


def test_published_values_of_the_basis_constants():
    """Haar: `n^-1/2 + sum 2^(-l/2)`; cosines: near `(2 sqrt 2/pi) sqrt n`."""
    for n, haar, cosine in ((2**12, 2.3921, 57.6), (2**16, 2.4087, 230.5)):
        assert so.sketches.Haar().column_l1(n) == pytest.approx(haar, abs=5e-5)
        assert so.sketches.Cosine().column_l1(n) == pytest.approx(cosine, abs=0.05)
    assert so.sketches.Standard().column_l1(2**12) == 1.0


def rotation(n):
    return scipy.linalg.qr(np.random.default_rng(3).normal(size=(n, n)))[0]


def custom(n, **options):
    Q = rotation(n)
    return so.sketches.OrthonormalBasis(n, lambda x: Q.T @ x, lambda c: Q @ c, math.sqrt(n), **options)


def test_a_basis_of_ones_own(known_noise):
    n = 64
    Q, basis = rotation(n), custom(n)
    x = np.rint(1000.0 * Q[:, [3, 20]] @ [5.0, -7.0])
    np.testing.assert_allclose(basis.analyze(x), Q.T @ x, atol=1e-9)
    compression = so.sketches.Compression(measurements=40, sparsity=2, basis=basis, recovery="basis-pursuit")
    for recovery in ALGORITHMS:
        compression = so.sketches.Compression(measurements=40, sparsity=2, basis=basis, recovery=recovery)
        release = plan_of(n, PURE, compression).release(x)
        assert set(release.recovery.support) == {3, 20}
        assert np.linalg.norm(release.values - x) < 0.02 * np.linalg.norm(x)
    # Views, lists and integers are arrays of numbers too.
    flipped = so.sketches.OrthonormalBasis(4, lambda x: x[::-1], lambda c: list(c[::-1]), 1.0)
    assert np.array_equal(flipped.analyze([1, 2, 3, 4]), [4, 3, 2, 1])


class CustomFailureError(Exception):
    pass


def failing_after(calls):
    left = [calls]

    def function(x):
        left[0] -= 1
        if left[0] < 0:
            raise CustomFailureError("of the caller")
        return x.copy()

    return function


def test_exceptions_of_a_basis_arrive_as_they_are(known_noise):
    with pytest.raises(CustomFailureError, match="of the caller"):
        so.sketches.OrthonormalBasis(8, failing_after(0), np.copy, 1.0)
    basis = so.sketches.OrthonormalBasis(64, failing_after(20), np.copy, 1.0)
    plan = plan_of(64, PURE, so.sketches.Compression(measurements=40, sparsity=4, basis=basis))
    with pytest.raises(CustomFailureError, match="of the caller"):
        for _ in range(5):
            plan.release(np.arange(64))


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda x: x[:4], so.errors.ShapeError),
        (lambda x: x.reshape(2, 4), so.errors.ShapeError),
        (lambda x: 2.0 * x, so.errors.InvalidParameterError),
        (lambda x: x[::-1], so.errors.InvalidParameterError),
        (np.sort, so.errors.InvalidParameterError),
        (lambda x: x.astype(np.float32), so.errors.InvalidParameterError),
        (lambda x: x * np.nan, so.errors.UnsupportedMechanismError),
        (lambda x: x + 0j, so.errors.DataTypeError),
        (lambda x: None, so.errors.DataTypeError),
        (lambda x: "coefficients", so.errors.DataTypeError),
        (3, so.errors.DataTypeError),
    ],
)
def test_functions_that_are_no_basis_are_refused(function, error):
    with pytest.raises(error):
        so.sketches.OrthonormalBasis(8, function, np.copy, math.sqrt(8))


def test_bounds_of_a_basis_that_cannot_hold_are_refused():
    """A bound too small would make the private choice of a sparsity cost more than it says."""
    with pytest.raises(so.errors.InvalidParameterError, match="bound is too small"):
        so.sketches.OrthonormalBasis(8, np.copy, np.copy, 0.5)
    Q = rotation(64)
    with pytest.raises(so.errors.InvalidParameterError, match="bound is too small"):
        so.sketches.OrthonormalBasis(64, lambda x: Q.T @ x, lambda c: Q @ c, 2.0)
    for bad in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(so.errors.InvalidParameterError):
            so.sketches.OrthonormalBasis(8, np.copy, np.copy, bad)


# Recovery


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("basis", ["haar", "cosine"])
@pytest.mark.parametrize("kind", KINDS)
def test_without_noise_sparse_tables_are_recovered_exactly(kind, basis, algorithm):
    """`k >= 4 S log2(n/S)`: enough for every algorithm and sketch, seeds not chosen."""
    n, s = 256, 4
    k = math.ceil(4 * s * math.log2(n / s))
    for seed in range(5):
        rng = np.random.default_rng(seed)
        c = np.zeros(n)
        c[rng.choice(n, s, replace=False)] = rng.choice([-1.0, 1.0], s) * rng.uniform(1.0, 3.0, s)
        x = BASES[basis].synthesize(c)
        operator = _core.SketchOperator(kind, n, k, seed, 8)
        found = recover(operator, BASES[basis], operator.apply(x), 0.0, "laplace", algorithm, s)
        np.testing.assert_allclose(found.values, x, atol=1e-10 * np.linalg.norm(x))
        assert np.array_equal(found.support, np.flatnonzero(c))
        assert found.residual <= 1e-10 * np.linalg.norm(x)
        assert found.explained


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_recoveries_of_nothing_and_of_everything_too_much(algorithm):
    operator = _core.SketchOperator("sparse", 64, 32, 0, 4)
    found = recover(operator, so.sketches.Haar(), np.zeros(32), 1.0, "laplace", algorithm, 4)
    assert np.array_equal(found.values, np.zeros(64))
    # White noise cannot be explained: the residual says so.
    y = np.random.default_rng(1).normal(size=32) * 1000.0
    found = recover(operator, so.sketches.Haar(), y, 0.01, "gaussian", algorithm, 2)
    assert np.isfinite(found.values).all()
    assert found.residual > 100 * found.noise_level
    assert not found.explained
    assert not found.converged
    for bad in (np.full(32, np.nan), np.full(32, np.inf), np.zeros(31)):
        with pytest.raises(so.SordinoError):
            recover(operator, so.sketches.Haar(), bad, 1.0, "laplace", algorithm, 2)


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
@pytest.mark.parametrize("count", [8, 32, 128, 1024])
def test_what_noise_leaves_at_most(law, count):
    """Against chi-square, and simulated norms: below 1e-6 had the seed been random (16 of 10,000 expected at most)."""
    bound = noise_bound(count, 3.0, law)
    if law == "gaussian":
        assert bound == pytest.approx(3.0 * math.sqrt(scipy.stats.chi2.ppf(0.999, count)), rel=0.003)
    rng = np.random.default_rng(count)
    draw = rng.normal if law == "gaussian" else lambda size: rng.laplace(scale=math.sqrt(0.5), size=size)
    norms = 3.0 * np.sqrt(sum((draw(size=10_000) ** 2 for _ in range(count)), np.zeros(10_000)))
    assert scipy.stats.binom.sf(int((norms > bound).sum()) - 1, 10_000, 0.0016) > 1e-6


def _noisy(seed, n, k, coefficients, law, size):
    rng = np.random.default_rng(seed)
    c = np.zeros(n)
    c[rng.choice(n, coefficients, replace=False)] = rng.choice([-1.0, 1.0], coefficients) * size
    operator = _core.SketchOperator("sparse", n, k, seed, 4)
    noise = rng.normal(size=k) if law == "gaussian" else rng.laplace(scale=math.sqrt(0.5), size=k)
    return c, operator, operator.apply(c) + noise


@pytest.mark.statistical
@pytest.mark.parametrize("law", ["gaussian", "laplace"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_recovery_says_whether_it_explains(algorithm, law):
    """As sparse as is looked for: at most 2 of 60 are called unexplained (0.06 expected). Four times as many: none
    converged."""
    n, s = 1024, 8
    k = 2 * measurements_for(s, n)
    basis, doubted = so.sketches.Standard(), 0
    for seed in range(60):
        c, operator, y = _noisy(seed, n, k, s, law, 40.0)
        found = recover(operator, basis, y, 1.0, law, algorithm, s)
        doubted += not found.explained
        assert not found.explained or np.linalg.norm(found.values - c) < 4.0 * math.sqrt(2.0 * s)
        _, operator, y = _noisy(seed, n, k, 4 * s, law, 40.0)
        assert not recover(operator, basis, y, 1.0, law, algorithm, s).converged
    assert doubted <= 2


@pytest.mark.parametrize("algorithm", ["cosamp", "hard-thresholding"])
def test_what_is_above_the_noise_is_fitted_again(algorithm):
    """Looked for are eight times as many coefficients as there are: the error is that of those, alone."""
    n, k, s = 2048, 512, 64
    errors = []
    for seed in range(12):
        c, operator, y = _noisy(seed, n, k, 8, "gaussian", 60.0)
        found = recover(operator, so.sketches.Standard(), y, 1.0, "gaussian", algorithm, s)
        columns_of = np.column_stack([operator.column(int(j)) for j in found.support]) / math.sqrt(
            operator.column_entries
        )
        expected, *_ = np.linalg.lstsq(columns_of, y, rcond=None)
        np.testing.assert_allclose(found.coefficients, expected, atol=1e-3)
        assert found.residual == pytest.approx(np.linalg.norm(y - columns_of @ expected), rel=1e-6)
        errors.append(np.linalg.norm(found.values - c))
    assert math.sqrt(np.mean(np.square(errors))) < 1.5 * math.sqrt(8 * k / (k - 8))


def test_a_basis_pursuit_that_is_cut_has_not_converged():
    c, operator, y = _noisy(3, 1024, 256, 24, "gaussian", 40.0)
    basis = so.sketches.Standard()
    assert not recover(operator, basis, y, 1.0, "gaussian", "basis-pursuit", 8).converged
    found = recover(operator, basis, y, 1.0, "gaussian", "basis-pursuit", None)
    assert found.converged
    assert set(np.flatnonzero(c)) <= set(found.support.tolist())


def test_thresholds_say_when_they_drop_more_than_noise():
    """Many cells just below the threshold are lost together, and the residual says so."""
    rng = np.random.default_rng(1)
    noise = rng.normal(size=4096)
    basis = so.sketches.Standard()
    assert hard_threshold(noise, basis, 1.0, "gaussian").converged
    assert not hard_threshold(noise + 2.0, basis, 1.0, "gaussian").converged


def test_progress_is_told_and_can_end_a_recovery(known_noise):
    plan = plan_of(256, PURE, so.sketches.Compression(measurements=96, sparsity=8))
    release = plan.release(np.arange(256) % 97)
    told = []
    release.reconstructed(progress=lambda i, r: told.append((i, r)))
    assert told
    assert all(i >= 0 and math.isfinite(r) for i, r in told)
    ended = release.reconstructed(progress=lambda i, r: False)
    assert not ended.recovery.converged
    assert ended.recovery.iterations <= release.recovery.iterations

    def failing(i, r):
        raise CustomFailureError

    with pytest.raises(CustomFailureError):
        release.reconstructed(progress=failing)


@given(st.integers(8, 2**20), st.data())
def test_sizes_allow_each_other(cells, data):
    s = data.draw(st.integers(1, max(int(cells / math.e / 4), 1)))
    k = measurements_for(s, cells)
    assert 1 <= k <= cells
    wanted = 2.0 * s * max(math.log2(cells / s), 1.0)
    assert k == max(min(math.ceil(wanted), cells // 2), min(2 * s, cells), 1)
    back = sparsity_for(k, cells)
    assert 1 <= back <= cells / math.e
    if wanted <= cells // 2:
        assert back >= s
    if back > 1:
        assert 2.0 * back * max(math.log2(cells / back), 1.0) <= k
        assert 2 * back <= k
    if k >= 2:
        assert so.sketches.Compression(measurements=k).sizes(cells) == (k, back)


# Noise


@pytest.mark.statistical
@pytest.mark.parametrize("privacy", [PURE, APPROX, ZERO], ids=["laplace", "approximate", "concentrated"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_sums_have_the_noise_that_was_planned(kind, privacy):
    """Variance over 400 keys of 24 sums at 6 standard errors (kurtosis at most 6): below 1e-8 had keys been random."""
    k, rounds = 24, 400
    plan = plan_of(64, privacy, so.sketches.Compression(measurements=k, sparsity=2, sketch=kind))
    x = np.arange(64)
    truth = columns(plan.request.compression.operator(64)) @ x
    draws = np.stack([plan.fit.door.measure(plan.fit.strategy, x, key(i)).values() - truth for i in range(rounds)])
    factor = 2.0 if privacy is PURE else 1.0
    planned = factor * plan.fit.door.noise**2
    error = math.sqrt(5.0 / (rounds * k))
    assert abs((draws**2).mean() / planned - 1.0) < 6.0 * error
    assert abs(draws.mean()) < 6.0 * math.sqrt(planned / (rounds * k))
    # Independent: no two sums share noise.
    correlation = np.corrcoef(draws.T) - np.eye(k)
    assert np.abs(correlation).max() < 6.0 / math.sqrt(rounds)


@pytest.mark.statistical
@pytest.mark.parametrize("privacy", [PURE, APPROX], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_error_of_sparse_data_is_the_planned_one(kind, privacy, known_noise):
    """Within 25 % of `rmse`, averaged over 40 fixed keys, for a table of 6 large plateaus' coefficients."""
    n, s = 512, 6
    c = np.zeros(n)
    c[[0, 1, 2, 5, 9, 30]] = [6e5, -4e5, 5e5, 3e5, -3e5, 4e5]
    x = np.rint(so.sketches.Haar().synthesize(c))
    plan = plan_of(n, privacy, so.sketches.Compression(measurements=128, sparsity=s, sketch=kind))
    assert plan.fit.rmse_kind == "noise only"
    squares = []
    for i in range(40):
        with so.testing.deterministic_noise(key(i)):
            squares.append(np.mean((plan.release(x).values - x) ** 2))
    assert math.sqrt(np.mean(squares)) == pytest.approx(plan.rmse, rel=0.25)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=30), st.integers(0, 2**32))
def test_isotonic_regression_is_never_further_from_the_truth(cells, i):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with so.testing.deterministic_noise(key(i)):
            release = so.plan(so.SortedHistogram(len(cells)), PURE, mechanism="isotonic").release(cells)
    truth = np.sort(cells)
    assert (np.diff(release.values) >= 0.0).all()
    assert np.linalg.norm(release.values - truth) <= np.linalg.norm(release.unbiased - truth) * (1.0 + 1e-12)
    # The nearest one: what is left is orthogonal to it, and sums are kept.
    rest = release.unbiased - release.values
    assert abs(rest.sum()) < 1e-8
    assert abs(rest @ release.values) < 1e-6


@pytest.mark.parametrize("basis", list(BASES))
def test_a_threshold_keeps_what_is_above_the_noise(basis, known_noise):
    n = 64
    plan = so.plan(so.Histogram(n), PURE, mechanism="threshold", basis=basis)
    release = plan.release(np.repeat([300, 20, 90, 0], n // 4))
    noise = math.sqrt(2.0) * plan.fit.door.noise
    coefficients = BASES[basis].analyze(release.measured.values())
    kept = np.abs(coefficients) > noise * math.sqrt(2.0 * math.log(n))
    kept[0] |= basis != "standard"
    assert np.array_equal(release.recovery.support, np.flatnonzero(kept))
    np.testing.assert_allclose(release.values, BASES[basis].synthesize(np.where(kept, coefficients, 0.0)), atol=1e-9)
    np.testing.assert_allclose(release.unbiased, release.measured.values())
    assert np.array_equal(release.values, release.thresholded(basis).values)
    assert release.post_processing == ("thresholded",)


# The private choice


CHOICE = so.sketches.Compression(
    measurements=64, sparsity=so.sketches.ChosenSparsity(share=0.3, candidates=(1, 2, 4, 8, 16))
)


@pytest.mark.parametrize("share", [1e-6, 0.1, 0.5, 0.999])
@pytest.mark.parametrize("privacy", [PURE, APPROX, ZERO, MU, so.PureDP(epsilon=0.037), so.GaussianDP(mu=0.21)], ids=str)
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_choice_and_measurement_together_cost_the_budget(share, privacy, law):
    compression = so.sketches.Compression(measurements=64, sparsity=so.sketches.ChosenSparsity(share=share))
    plain = so.sketches.Compression(measurements=64, sparsity=4)
    if law == "gaussian" and isinstance(privacy, so.PureDP):
        with pytest.raises(so.errors.UnsupportedMechanismError):
            so.plan(so.Histogram(256), privacy, mechanism="compressive-gaussian", compression=compression)
        return
    plan, other = (
        so.plan(so.Histogram(256), privacy, mechanism=f"compressive-{law}", compression=c) for c in (compression, plain)
    )
    epsilon, ratio, event = compression.shares(privacy, law)
    assert epsilon > 0.0
    assert plan.cost == event
    assert plan.fit.ratio == ratio > other.fit.ratio
    if law == "laplace":
        whole = event.epsilon
        assert epsilon + 1.0 / ratio <= whole
        assert epsilon + 1.0 / ratio >= whole * (1.0 - 1e-12)
        assert event == other.cost
    elif isinstance(privacy, so.ApproxDP):
        # Basic composition of (epsilon_1, 0) and (epsilon_2, delta).
        rest = so.ApproxDP(epsilon=privacy.epsilon - epsilon, delta=privacy.delta)
        assert event == so.privacy.ApproxCost(privacy.epsilon, privacy.delta)
        assert scipy_delta(rest.epsilon, 1.0 / ratio) <= privacy.delta * (1.0 + 1e-9)
        assert scipy_delta(rest.epsilon, (1.0 + 1e-6) / ratio) > privacy.delta
    else:
        whole = privacy.mu if isinstance(privacy, so.GaussianDP) else math.sqrt(2.0 * privacy.rho)
        spent = mu_of_pure(epsilon) ** 2 + ratio**-2
        assert spent <= whole**2 * (1.0 + 1e-15)
        assert spent >= whole**2 * (1.0 - 1e-9)
        assert event == other.cost


def scipy_delta(epsilon, mu):
    a, b = mu / 2.0 - epsilon / mu, -mu / 2.0 - epsilon / mu
    return scipy.special.ndtr(a) - math.exp(epsilon) * scipy.special.ndtr(b)


def scores_of(plan, x):
    """`-(||c - c_S||_1/sqrt S + noise)`, written down anew."""
    n, k = 128, 64
    c = np.sort(np.abs(plan.request.compression.transform.analyze(np.asarray(x, dtype=float))))[::-1]
    single = plan.fit.door.noise * math.sqrt(2.0) / math.sqrt(4.0)
    return np.array(
        [
            -(c[s:].sum() / math.sqrt(s) + single * math.sqrt(s * math.log2(n / s) * k / (k - s)))
            for s in (1, 2, 4, 8, 16)
        ]
    )


def winners(scores, scale):
    """Exact probabilities of the noisy maximum with exponential noise of this scale, by quadrature."""
    # No score can win below the largest, where the integrand is smooth from.
    grid = np.linspace(scores.max(), scores.max() + 40.0 * scale, 50_001)
    z = (grid[None, :] - scores[:, None]) / scale
    density = np.exp(-z) / scale
    below = -np.expm1(-z)
    others = np.stack([np.prod(np.delete(below, i, axis=0), axis=0) for i in range(len(scores))])
    return np.trapezoid(density * others, grid, axis=1)


@pytest.mark.statistical
def test_the_choice_has_the_probabilities_of_the_noisy_maximum():
    """4000 fixed keys against quadrature; chi-squared above 40 with 4 degrees of freedom has probability 4e-8."""
    plan = plan_of(128, PURE, CHOICE)
    x = np.repeat([0, 30, 70, 35, 10, 90, 55, 20], 16) + np.arange(128) % 5
    choice, rounds = plan.fit.open_choice, 4000
    sensitivity = choice.scores(plan.fit).sensitivity(so.sketches.Haar().core(128))
    exact = winners(scores_of(plan, x), 2.0 * sensitivity / 0.3)
    assert exact.sum() == pytest.approx(1.0, abs=1e-6)
    assert np.sort(exact)[-2] > 0.05, "a choice that is no choice tests nothing"
    drawn = [choice.select(plan.fit, x, key(i)) for i in range(rounds)]
    counts = np.array([drawn.count(s) for s in (1, 2, 4, 8, 16)])
    expected = rounds * exact
    assert ((counts - expected) ** 2 / expected).sum() < 40.0


@pytest.mark.parametrize("unit", [so.AddRemove(1), so.AddRemove(2), so.ReplaceOne(1)], ids=str)
@pytest.mark.parametrize("basis", list(BASES))
def test_the_choice_is_private_by_its_exact_probabilities(basis, unit):
    """Scores of neighbours within the sensitivity, and every outcome within e^epsilon."""
    compression = so.sketches.Compression(measurements=64, sparsity=CHOICE.sparsity, basis=basis)
    plan = plan_of(128, PURE, compression, unit=unit)
    x = np.repeat([0, 3, 7, 3, 1, 9, 5, 2], 16)
    x[77:] += 1
    sensitivity = plan.fit.open_choice.scores(plan.fit).sensitivity(BASES[basis].core(128))
    # Uniform: that of S = 1, and it belongs to the basis.
    records = unit.records * (2 if isinstance(unit, so.ReplaceOne) else 1)
    assert sensitivity == pytest.approx(records * BASES[basis].column_l1(128), rel=1e-3)
    before = scores_of(plan, x)
    first, scale = winners(before, 2.0 * sensitivity / 0.3), 2.0 * sensitivity / 0.3
    moved = 0.0
    for i, j in zip(range(0, 128, 9), range(3, 131, 9), strict=True):
        for sign in (1, -1):
            y = x.copy()
            y[i] += sign * unit.records
            if isinstance(unit, so.ReplaceOne):
                y[j % 128] -= sign
            after = scores_of(plan, y)
            moved = max(moved, np.abs(after - before).max())
        ratio = np.log(winners(after, scale) / first)
        assert np.abs(ratio).max() <= 0.3 + 1e-6
    assert 0.1 * sensitivity < moved <= sensitivity


def test_the_choice_is_charged_once_with_the_noise():
    plan = plan_of(128, PURE, CHOICE)
    ledger = so.Ledger(so.PureDP(epsilon=1.5))
    release = plan.release(np.arange(128), ledger=ledger, request_id="a")
    assert [entry.cost for entry in ledger.history] == [plan.cost] == [so.privacy.PureCost(1.0)]
    again = plan.release(np.arange(128), ledger=ledger, request_id="a")
    assert again is release
    # An equal plan made elsewhere asks the same; the one with the choice made asks something else.
    assert plan_of(128, PURE, CHOICE).release(np.arange(128), ledger=ledger, request_id="a") is release
    with pytest.raises(so.errors.DuplicateRequestError):
        plan_of(128, PURE, so.sketches.Compression(measurements=64, sparsity=4)).release(
            np.arange(128), ledger=ledger, request_id="a"
        )
    assert len(ledger.history) == 1
    # Refused before anything is drawn: the basis is not called on the data.
    basis = so.sketches.OrthonormalBasis(128, failing_after(5), np.copy, 1.0)
    costly = plan_of(128, PURE, so.sketches.Compression(measurements=64, sparsity=CHOICE.sparsity, basis=basis))
    with pytest.raises(so.errors.BudgetExceededError):
        costly.release(np.arange(128), ledger=ledger)
    assert len(ledger.history) == 1
    assert release.fit.request.compression._chosen in (1, 2, 4, 8, 16)
    assert release.fit.cost == plan.cost
    assert release.recovery.support.size <= release.fit.request.compression._chosen


def test_a_basis_of_ones_own_is_answered_from_the_ledger_too():
    for compression in (
        so.sketches.Compression(measurements=40, sparsity=2, basis=custom(64)),
        so.sketches.Compression(
            measurements=40, sparsity=so.sketches.ChosenSparsity(candidates=(1, 2)), basis=custom(64)
        ),
    ):
        plan, ledger = plan_of(64, PURE, compression), so.Ledger(PURE)
        release = plan.release(np.arange(64), ledger=ledger, request_id="a")
        assert plan.release(np.arange(64), ledger=ledger, request_id="a") is release
        with pytest.raises(so.errors.DuplicateRequestError):
            plan_of(64, PURE, compression).release(np.arange(64), ledger=ledger, request_id="a")


def test_a_choice_needs_the_table():
    plan = plan_of(128, PURE, CHOICE)
    with pytest.raises(so.errors.UnsupportedMechanismError, match="needs the table"):
        plan.sketch()
    sketch = so.sketches.Sketch(128, 64)
    ledger = so.Ledger(PURE)
    with pytest.raises(so.errors.UnsupportedMechanismError, match="needs the table"):
        plan.release(sketch, ledger=ledger)
    assert not ledger.history
    with pytest.raises(so.errors.InvalidParameterError, match="still to come"):
        so.plan(so.RunningHistogram(128, 8), PURE, compression=CHOICE)


def test_the_choice_takes_every_kind_of_table(known_noise):
    scipy_sparse = pytest.importorskip("scipy.sparse")
    table = np.repeat([0, 0, 7000, 0], 32)
    chosen = [
        plan_of(128, PURE, CHOICE).release(data).fit.request.compression._chosen
        for data in (table, table.tolist(), scipy_sparse.coo_array(table), table.astype(np.uint8) * 0 + table)
    ]
    assert len(set(chosen)) == 1
    real = plan_of(128, PURE, CHOICE, integral=False).release(table + 0.25)
    assert real.fit.request.compression._chosen in (1, 2, 4, 8, 16)


# Bad input


SECRET = 98765432123


@pytest.mark.parametrize(
    "data",
    [
        np.full(65, SECRET),
        np.full((8, 8, 1), SECRET),
        np.full((32, 2), SECRET),
        [str(SECRET)] * 64,
        np.full(64, SECRET + 0j),
        [SECRET] * 63 + [math.nan],
        [float(SECRET)] * 63 + [math.inf],
        [[SECRET], [SECRET, 1]],
        {"a": SECRET},
        None,
        str(SECRET),
        SECRET,
    ],
    ids=range(12),
)
def test_bad_tables_cost_nothing_and_say_nothing(data):
    ledger = so.Ledger(PURE)
    for mechanism in ("compressive", "threshold"):
        plan = so.plan(
            so.Histogram(64),
            PURE,
            mechanism=mechanism,
            compression=so.sketches.Compression(measurements=32, sparsity=2),
        )
        with pytest.raises(so.SordinoError) as caught:
            plan.release(data, ledger=ledger, request_id="a")
        assert str(SECRET) not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert not ledger.history


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"measurements": 0},
        {"measurements": -1},
        {"measurements": 2.5},
        {"measurements": True},
        {"measurements": "64"},
        {"measurements": math.nan},
        {"sparsity": 0},
        {"sparsity": 1.5},
        {"sparsity": "haar"},
        {"sparsity": 3, "basis": "fourier"},
        {"sparsity": 3, "basis": 7},
        {"sparsity": 3, "sketch": "gaussian"},
        {"sparsity": 3, "recovery": "magic"},
        {"sparsity": 3, "nonzeros": 0},
        {"sparsity": 3, "nonzeros": 1.0},
        {"sparsity": 3, "seed": -1},
        {"sparsity": 3, "seed": 2**64},
        {"sparsity": 3, "seed": "a"},
    ],
    ids=str,
)
def test_bad_compressions_are_refused(arguments):
    with pytest.raises((so.errors.InvalidParameterError, so.errors.DataTypeError)):
        so.sketches.Compression(**arguments)


@pytest.mark.parametrize(
    "compression",
    [
        so.sketches.Compression(measurements=65),
        so.sketches.Compression(sparsity=24),
        so.sketches.Compression(sparsity=2**40),
        so.sketches.Compression(measurements=8, sparsity=5),
        so.sketches.Compression(measurements=1),
        so.sketches.Compression(measurements=10, nonzeros=11),
        so.sketches.Compression(measurements=64, sparsity=4, nonzeros=65),
        so.sketches.Compression(sparsity=so.sketches.ChosenSparsity(candidates=(1, 24))),
        so.sketches.Compression(measurements=6, sparsity=so.sketches.ChosenSparsity(candidates=(4, 8))),
    ],
    ids=str,
)
def test_sizes_that_do_not_fit_are_refused(compression):
    with pytest.raises((so.errors.InvalidParameterError, so.errors.UnsupportedMechanismError)):
        plan_of(64, PURE, compression)


@pytest.mark.parametrize(
    "arguments", [(0.0,), (1.0,), (math.nan,), ("x",), (0.1, ()), (0.1, (0, 1)), (0.1, (2, 1)), (0.1, (1.5,))], ids=str
)
def test_bad_choices_are_refused(arguments):
    with pytest.raises((so.errors.InvalidParameterError, so.errors.DataTypeError)):
        so.sketches.ChosenSparsity(*arguments)


def test_plans_refuse_what_they_cannot_use():
    for bad in (64, "haar", {"measurements": 3}):
        with pytest.raises(so.errors.DataTypeError):
            so.plan(so.Histogram(64), PURE, compression=bad)
    for bad in (0, -8, 1.5, "8"):
        with pytest.raises((so.errors.InvalidParameterError, so.errors.DataTypeError)):
            so.plan(so.Histogram(64), PURE, memory=bad)
    with pytest.raises(so.errors.InvalidParameterError, match="room for two"):
        so.plan(so.Histogram(64), PURE, memory=15)
    with pytest.raises(so.errors.InvalidParameterError, match="more numbers than the memory"):
        so.plan(so.Histogram(64), PURE, memory=80, compression=so.sketches.Compression(measurements=16))
    with pytest.raises(so.errors.UnsupportedMechanismError):
        so.plan(so.Histogram(64), PURE, mechanism="compressive")
    with pytest.raises(so.errors.UnsupportedMechanismError):
        so.plan(so.SortedHistogram(64), PURE, memory=100)
    with pytest.raises(so.errors.UnsupportedMechanismError):
        so.plan(so.Histogram(64), PURE, mechanism="isotonic")


def test_a_sorted_histogram_stands_alone(known_noise):
    """As a part of other workloads nothing would sort it; nor can noisy cells be sorted afterwards, unbiased."""
    for make in (
        lambda: so.workloads.Union([so.SortedHistogram(6), so.Histogram(6)]),
        lambda: so.SortedHistogram(6) | so.Histogram(6),
        lambda: 2 * so.SortedHistogram(6),
        lambda: so.Kronecker([so.SortedHistogram(6), so.Histogram(2)]),
        lambda: so.workloads.Union([so.RunningHistogram(6, 3)]),
    ):
        with pytest.raises(so.errors.InvalidParameterError, match="stands alone"):
            make()
    release = so.plan(so.Histogram(6), PURE).release([5, 1, 9, 2, 0, 0])
    with pytest.raises(so.errors.UnsupportedMechanismError):
        release.answer(so.SortedHistogram(6))


# Releases


@pytest.mark.parametrize("privacy", [PURE, APPROX], ids=["laplace", "gaussian"])
def test_a_sketch_has_no_unbiased_answers(privacy, known_noise):
    plan = plan_of(64, privacy, so.sketches.Compression(measurements=32, sparsity=2))
    release = plan.release(np.arange(64))
    refused = {
        "unbiased": lambda: release.unbiased,
        "interval": lambda: release.interval(0.9),
        "simultaneous": lambda: release.interval(0.9, simultaneous=True),
        "own": lambda: release.answer(so.Histogram(64)),
        "other": lambda: release.answer(so.RunningSum(64)),
        "threshold": release.thresholded,
    }
    for name, call in refused.items():
        with pytest.raises(so.errors.UnsupportedMechanismError):
            call()
            pytest.fail(name)
    assert release.query(np.sum) == pytest.approx(release.cells.sum())
    assert np.array_equal(release.values, release.cells)
    with pytest.raises(so.errors.InvalidParameterError, match="same kind, seed and size"):
        release.reconstructed(so.sketches.Compression(measurements=32, sparsity=2, seed=1))
    with pytest.raises(so.errors.DataTypeError):
        release.reconstructed(3)
    other = release.reconstructed(
        so.sketches.Compression(measurements=32, sparsity=1, recovery="basis-pursuit", basis="cosine")
    )
    assert other.recovery.algorithm == "basis-pursuit"
    assert (release.nonnegative().values >= 0.0).all()


@pytest.mark.statistical
@pytest.mark.parametrize("recovery", ["cosamp", "hard-thresholding"])
@pytest.mark.parametrize("coefficients", [40, 20, 5, 0])
def test_the_planned_error_holds_for_all_data_that_are_sparse(recovery, coefficients, known_noise):
    """Room for coefficients that the data do not have used to fill with the largest of the noise: 1.5 to 2.6 times."""
    cells, rng = 4096, np.random.default_rng(0)
    compression = so.sketches.Compression(measurements=1024, sparsity=40, recovery=recovery)
    plan = so.plan(
        so.Histogram(cells), so.ZeroConcentratedDP(rho=0.5), mechanism="compressive", compression=compression
    )
    found = np.zeros(cells)
    places = 1 + rng.choice(511, coefficients, replace=False)
    found[places] = 1000 * np.sqrt(cells / 2 ** np.floor(np.log2(places)))
    table = np.rint(so.sketches.Haar().synthesize(found)).astype(np.int64)
    errors = []
    for trial in range(4):
        with so.testing.deterministic_noise(bytes([trial]) * 32):
            errors.append(np.mean((plan.release(table).values - table) ** 2))
    assert np.sqrt(np.mean(errors)) <= 1.05 * plan.rmse


@pytest.mark.parametrize("workload", [so.RunningSum(64), so.Marginals([4, 4, 4], k=2), so.Histogram((8, 8))], ids=str)
def test_other_workloads_are_answered_from_the_recovered_table(workload, known_noise):
    plan = so.plan(
        workload, PURE, mechanism="compressive", compression=so.sketches.Compression(measurements=40, sparsity=3)
    )
    release = plan.release(np.repeat([900, 100], 32).reshape(workload.input_shape))
    rows = np.stack([workload.core.row(t) for t in range(workload.core.answers_len)])
    expected = (rows @ release.cells.reshape(-1)).reshape(workload.answers_shape)
    np.testing.assert_allclose(release.values, expected, rtol=1e-9, atol=1e-6)
    assert plan.max_stderr is None
    with pytest.raises(so.errors.UnsupportedMechanismError, match="sketch"):
        _ = plan.fit.answers_stderr
    with pytest.raises(so.errors.UnsupportedMechanismError, match="sketch"):
        _ = release.stderr


@pytest.mark.parametrize(
    ("workload", "mechanism"),
    [
        (so.Histogram(64), "compressive"),
        (so.Histogram((8, 8)), "compressive"),
        (so.Histogram(1024), "compressive"),
        (so.RunningSum(64), "compressive"),
        (so.AllRanges(12), "compressive"),
        (so.Marginals([4, 4, 4], k=2), "compressive"),
        (so.Histogram(64), "threshold"),
        (so.SortedHistogram(64), "isotonic"),
    ],
    ids=str,
)
def test_everything_that_shows_a_plan_or_a_release(workload, mechanism, known_noise, tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    measurements = min(32, workload.core.input_len)
    for privacy in (PURE, APPROX):
        plan = so.plan(
            workload,
            privacy,
            mechanism=mechanism,
            compression=so.sketches.Compression(measurements=measurements, sparsity=2, nonzeros=2)
            if mechanism == "compressive"
            else None,
        )
        release = plan.release(np.zeros(workload.input_shape, dtype=int))
        assert mechanism in plan.explain()
        assert mechanism in repr(plan)
        assert mechanism in repr(release)
        assert mechanism in str(plan.compare())
        assert plan.digest == so.Plan.load(plan.save(tmp_path / "plan.json")).digest
        for draw in (plan.plot, release.plot, plan.compare().plot):
            draw()
        pyplot.close("all")


# Files


def tampered(path, change):
    """Change a saved plan and sign it anew, as an adversary would."""
    record = json.loads(path.read_text())
    record.pop("digest")
    change(record)
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False)
    path.write_text(json.dumps(record | {"digest": hashlib.sha256(text.encode()).hexdigest()}))
    return path


SAVED = so.sketches.Compression(
    measurements=50, sparsity=7, basis="cosine", sketch="hadamard", nonzeros=3, seed=2**64 - 1, recovery="basis-pursuit"
)


@pytest.mark.parametrize(
    "compression",
    [SAVED, CHOICE, CHOICE.chosen(4), so.sketches.Compression(sparsity=so.sketches.ChosenSparsity())],
    ids=str,
)
def test_compressions_survive_a_file(compression, tmp_path):
    assert compression_from_json(json.loads(json.dumps(compression.saved))) == compression
    for privacy in (PURE, APPROX, MU):
        plan = plan_of(128, privacy, compression, unit=so.ReplaceOne(2), objective="max")
        loaded = so.Plan.load(plan.save(tmp_path / "plan.json"))
        assert loaded.request.compression == compression
        assert loaded.digest == plan.digest
        assert loaded.cost == plan.cost
        assert (loaded.fit.door.noise, loaded.rmse) == (plan.fit.door.noise, plan.rmse)
        with so.testing.deterministic_noise(KEY):
            x = np.arange(128)
            assert np.array_equal(loaded.release(x).values, plan.release(x).values)


def test_digests_tell_compressions_apart():
    changes = (
        {"measurements": 51},
        {"sparsity": 8},
        {"basis": "haar"},
        {"sketch": "bernoulli"},
        {"seed": 0},
        {"recovery": "cosamp"},
        {"sparsity": so.sketches.ChosenSparsity(0.1, (1, 7))},
        {"sparsity": so.sketches.ChosenSparsity(0.2, (1, 7))},
    )
    names = ("measurements", "sparsity", "basis", "sketch", "nonzeros", "seed", "recovery")
    own = {name: getattr(SAVED, name) for name in names}
    variants = [SAVED, *(so.sketches.Compression(**own | change) for change in changes)]
    assert len({plan_of(128, PURE, each).digest for each in variants}) == len(variants)


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r["request"]["compression"].update(measurements=64),
        lambda r: r["request"]["compression"].update(measurements=129),
        lambda r: r["request"]["compression"].update(measurements=None, sparsity=None),
        lambda r: r["request"]["compression"].update(measurements="50"),
        lambda r: r["request"]["compression"].update(sparsity=26),
        lambda r: r["request"]["compression"].update(sparsity=-1),
        lambda r: r["request"]["compression"].update(seed=-1),
        lambda r: r["request"]["compression"].update(seed=2**64),
        lambda r: r["request"]["compression"].update(basis="custom"),
        lambda r: r["request"]["compression"].update(basis=["haar"]),
        lambda r: r["request"]["compression"].update(sketch="dense"),
        lambda r: r["request"]["compression"].update(recovery=None),
        lambda r: r["request"]["compression"].update(chosen=0),
        lambda r: r["request"]["compression"].update(choice=[]),
        # A choice out of nowhere costs, and leaves less to the sketch.
        lambda r: r["request"]["compression"].update(choice={"share": 0.5, "candidates": None}, sparsity=None),
        lambda r: r["request"]["compression"].pop("seed"),
        lambda r: r["request"].pop("compression"),
        lambda r: r["request"].update(compression=None),
        lambda r: r["request"].update(memory="much"),
        lambda r: r["request"].update(memory=-5),
        lambda r: r["request"].update(basis=7),
        lambda r: r["cost"].update(epsilon=0.5),
        lambda r: r["request"]["privacy"].update(epsilon=0.5),
        lambda r: r["request"]["unit"].update(records=2),
        lambda r: r["doors"][0].update(quarter_units=r["doors"][0]["quarter_units"] - 1),
        lambda r: r["request"]["workload"].update(kind="sorted_histogram", spec={"cells": 128}),
    ],
)
def test_tampered_plans_are_refused(change, tmp_path):
    path = plan_of(128, PURE, SAVED).save(tmp_path / "plan.json")
    with pytest.raises(so.errors.PlanFileError):
        so.Plan.load(tampered(path, change))
    # Without another signature any change is seen.
    record = json.loads(plan_of(128, PURE, SAVED).save(path).read_text())
    record["request"]["compression"]["seed"] = 5
    path.write_text(json.dumps(record))
    with pytest.raises(so.errors.PlanFileError, match="altered"):
        so.Plan.load(path)


def test_the_share_of_a_choice_cannot_grow_in_a_file(tmp_path):
    path = plan_of(128, PURE, CHOICE).save(tmp_path / "plan.json")

    def grow(record):
        record["request"]["compression"]["choice"]["share"] = 0.4

    with pytest.raises(so.errors.PlanFileError, match="less noise"):
        so.Plan.load(tampered(path, grow))
    for bad in (1.0, 0.0, "a", None, math.pi):

        def spoil(record, bad=bad):
            record["request"]["compression"]["choice"]["share"] = bad

        path = plan_of(128, PURE, CHOICE).save(path)
        with pytest.raises(so.errors.PlanFileError):
            so.Plan.load(tampered(path, spoil))


def test_thresholds_in_files(tmp_path):
    plan = so.plan(so.Histogram(64), PURE, mechanism="threshold", basis="cosine")
    path = plan.save(tmp_path / "plan.json")
    assert so.Plan.load(path).request.basis == so.sketches.Cosine()
    assert so.plan(so.Histogram(64), PURE, mechanism="threshold").digest != plan.digest
    for bad in ("custom", "fourier", 3, None, ["haar"]):
        plan.save(path)
        with pytest.raises(so.errors.PlanFileError):
            so.Plan.load(tampered(path, lambda r, bad=bad: r["request"].update(basis=bad)))


def test_a_basis_of_ones_own_is_not_saved(tmp_path):
    plans = [
        plan_of(64, PURE, so.sketches.Compression(measurements=40, sparsity=2, basis=custom(64))),
        so.plan(so.Histogram(64), PURE, mechanism="threshold", basis=custom(64)),
    ]
    for plan in plans:
        for call in (lambda plan=plan: plan.save(tmp_path / "plan.json"), lambda plan=plan: plan.digest):
            with pytest.raises(so.errors.UnsupportedMechanismError, match="given by functions"):
                call()
        assert not list(tmp_path.iterdir())
        assert "custom" in plan.explain()


# What auto takes


@pytest.mark.parametrize("privacy", [PURE, APPROX, ZERO, MU], ids=str)
@pytest.mark.parametrize("workload", [so.Histogram(64), so.RunningSum(64), so.Marginals([4, 4, 4], k=1)], ids=str)
def test_auto_takes_no_sketch_for_its_error(workload, privacy):
    """Although the noise of a very sparse recovery is shown as less."""
    compression = so.sketches.Compression(measurements=32, sparsity=1)
    without = so.plan(workload, privacy)
    assert so.plan(workload, privacy, compression=compression).mechanism == without.mechanism
    comparison = so.compare(workload, privacy, compression=compression)
    assert comparison.chosen == without.mechanism
    rows = [row["mechanism"] for row in comparison.rows]
    # Recoveries last, and both are shown.
    guesses = [i for i, name in enumerate(rows) if name.startswith(("compressive", "threshold"))]
    assert guesses == list(range(len(rows) - len(guesses), len(rows)))
    assert any(name.startswith("compressive") for name in rows)


@pytest.mark.parametrize("privacy", [PURE, APPROX], ids=str)
def test_auto_takes_a_sketch_for_want_of_memory(privacy):
    assert so.plan(so.Histogram(64), privacy, memory=512).mechanism.startswith("identity")
    plan = so.plan(so.Histogram(64), privacy, memory=511)
    assert plan.mechanism.startswith("compressive")
    assert 8 * plan.fit.strategy.measured_len <= 511
    assert so.compare(so.Histogram(64), privacy, memory=511).chosen == plan.mechanism
    assert plan.compare().chosen == plan.mechanism
    own = so.sketches.Compression(measurements=20, sparsity=2)
    assert so.plan(so.Histogram(64), privacy, memory=200, compression=own).fit.strategy.measured_len == 20


@pytest.mark.parametrize("privacy", [PURE, APPROX, ZERO, MU], ids=str)
def test_auto_sorts_with_isotonic_regression(privacy):
    assert so.plan(so.SortedHistogram(64), privacy).mechanism.startswith("isotonic")
    assert so.compare(so.SortedHistogram(64), privacy).chosen.startswith("isotonic")


def test_a_basis_of_other_cells_costs_nothing():
    """It is refused by the plan, not by a release that was charged."""
    basis = so.sketches.OrthonormalBasis(4, np.copy, np.copy, 1.0)
    with pytest.raises(so.errors.InvalidParameterError, match="4 cells, not 8"):
        so.plan(so.Histogram(8), PURE, mechanism="threshold", basis=basis)
    compression = so.sketches.Compression(measurements=4, nonzeros=2, basis=basis)
    with pytest.raises(so.errors.InvalidParameterError, match="4 cells, not 8"):
        plan_of(8, PURE, compression)
    for options in ({"compression": compression}, {"basis": basis}):
        with pytest.raises(so.errors.InvalidParameterError, match="4 cells, not 8"):
            plan_live(so.RunningHistogram(8, 4), PURE, **options)


def test_numbers_of_numpy_are_numbers():
    plain = so.sketches.Compression(measurements=32, sparsity=3, seed=5, nonzeros=3)
    own = so.sketches.Compression(
        measurements=np.int64(32), sparsity=np.int32(3), seed=np.uint64(5), nonzeros=np.int8(3)
    )
    assert plan_of(64, PURE, own).digest == plan_of(64, PURE, plain).digest
    choices = [so.sketches.ChosenSparsity(np.float32(0.25), [np.int64(1), 2]), so.sketches.ChosenSparsity(0.25, (1, 2))]
    assert len({plan_of(64, PURE, so.sketches.Compression(sparsity=choice)).digest for choice in choices}) == 1
    with pytest.raises(so.errors.DataTypeError):
        so.sketches.ChosenSparsity(0.1, 5)
