"""Attacks on the searched strategies and everything around them: neighbours by brute force, cases at the edge."""

import copy
import itertools
import math
import pickle
import threading
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import coo_array
from scipy.stats import beta, gamma, kstest

import sordino as so
from geometry import dense
from sordino.mechanisms.linear.catalogue import MECHANISMS

APPROX = so.ApproxDP(epsilon=1.0, delta=1e-6)
PURE = so.PureDP(epsilon=1.0)
FACTORED = [m for m in MECHANISMS if m.factored]
GAUSSIAN = [m for m in FACTORED if m.law == "gaussian"]
LAPLACE = [m for m in FACTORED if m.law == "laplace"]


def named(cases):
    return [m.name for m in cases]


def constraint_of(mechanism):
    return so.optimal.PublicBound(50) if mechanism.projected else None


def planned(workload, mechanism, **more):
    privacy = PURE if mechanism.law == "laplace" else APPROX
    return so.plan(workload, privacy, mechanism=mechanism.name, constraint=constraint_of(mechanism), **more)


def norm_of(plan):
    """The norm that the noise of a plan is calibrated to, from its factorization alone."""
    found, geometry = plan.fit.factorization, plan.fit.strategy.geometry
    if geometry == "l2":
        return np.linalg.norm
    if geometry == "l1":
        return lambda z: np.abs(z).sum()
    if geometry == "blocks":
        edges = np.cumsum(found.blocks)[:-1]
        return lambda z: sum(np.linalg.norm(part) for part in np.split(z, edges))
    assert geometry == "body"
    B = found.matrix

    def gauge(z):
        if not z.any():
            return 0.0
        solved = linprog(np.ones(2 * B.shape[1]), A_eq=np.hstack([B, -B]), b_eq=z, bounds=(0, None))
        assert solved.status == 0
        return solved.fun

    return gauge


QUERIES = np.array([[1.0, 1, 0, -1], [0, 2, 1, 0.5], [1, 0, 0, 0.25]])
WORKLOADS = {
    "matrix": so.Matrix(QUERIES),
    "weighted": so.Matrix(QUERIES, weights=[1e-3, 1.0, 1e3]),
    "union": so.RunningSum(4) | 5 * so.Matrix(QUERIES),
    "product": so.Kronecker([so.RunningSum(2), so.Matrix([[1.0, 1], [1, -1], [0, 3]])]),
}
# What one protected thing can change, as a brute-force list of differences of a table of four cells.
UNITS = {
    "one": (so.AddRemove(1), lambda d: np.abs(d).sum() <= 1),
    "three": (so.AddRemove(3), lambda d: np.abs(d).sum() <= 3),
    "capped": (so.AddRemove(3, per_cell=2), lambda d: np.abs(d).sum() <= 3 and np.abs(d).max() <= 2),
    # Clamping shrinks either side of a move.
    "moved": (so.ReplaceOne(1), lambda d: d[d > 0].sum() <= 1 and -d[d < 0].sum() <= 1),
    "moved twice": (so.ReplaceOne(2), lambda d: d[d > 0].sum() <= 2 and -d[d < 0].sum() <= 2),
}
DIFFERENCES = [np.array(d) for d in itertools.product(range(-3, 4), repeat=4)]


def whole(matrix):
    """Return what is measured of whole counts: the matrix with 28 bits, in integers."""
    return np.round(np.ldexp(matrix, 28 - math.ceil(math.log2(np.abs(matrix).max()))))


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", named(FACTORED))
@pytest.mark.parametrize("unit", UNITS)
def test_neighbours_are_never_farther_apart_than_the_noise_covers(mechanism, unit, known_noise):
    """Measured under the same noise, clamping and lattice included."""
    how = next(m for m in MECHANISMS if m.name == mechanism)
    relation, allowed = UNITS[unit]
    differences = [d for d in DIFFERENCES if allowed(d)]
    # The gauge of K-norm noise is a linear program: the extreme points of the relation are enough.
    extreme = [d for d in differences if np.count_nonzero(d) <= 2]
    for name, workload in WORKLOADS.items():
        plan = planned(workload, how, unit=relation, max_value=2)
        norm, total = norm_of(plan), sum(plan.fit.sensitivity.values())
        slow = plan.fit.strategy.geometry == "body"
        # At the edge of the domain, so that differences are cut.
        tables = [np.array([2, -2, 1, 0])] if slow else [np.zeros(4, int), np.array([2, -2, 1, 0]), np.full(4, 2)]
        largest = 0.0
        for x in tables:
            at = measured(plan, x)
            for d in extreme[:: 1 + 3 * slow] if slow else differences:
                largest = max(largest, norm(measured(plan, x + d) - at))
        # The gauge is that of the matrix in doubles, and of a solver's accuracy.
        assert largest <= total * (1.0 + (1e-6 if slow else 1e-12)), name
        ratio = plan.fit.door.scale / plan.fit.ratio
        assert ratio >= total * (1.0 - 1e-12), name
        assert total <= plan.fit.sensitivity["ideal"] * (1.0 + 1e-5), name
        B, records = plan.fit.factorization.matrix, relation.records
        if plan.fit.rows is not None:
            B = whole(B)
        column = max(norm(b) for b in B.T)
        assert plan.fit.sensitivity["ideal"] >= (1 if unit == "capped" else records) * column * (1.0 - 1e-9), name
        if unit in {"one", "three"}:
            assert plan.fit.sensitivity["ideal"] <= records * column * (1.0 + 1e-9), name


def measured(plan, x):
    shaped = np.asarray(x).reshape(plan.workload.input_shape)
    cells = np.ascontiguousarray(shaped.reshape(-1), dtype=np.int64)
    return plan.fit.door.measure(plan.fit.strategy, cells, bytes(32)).values()


def draws(plan, table, count, seed=0):
    """Measured values of many releases under keys of their own, shape (count, measured)."""
    cells = np.ascontiguousarray(np.asarray(table).reshape(-1), dtype=np.int64)
    door, strategy = plan.fit.door, plan.fit.strategy
    keys = (int(seed * 1_000_003 + k).to_bytes(8, "little") + bytes(24) for k in range(count))
    return np.stack([door.measure(strategy, cells, key).values() for key in keys])


def answers_of(plan, measured):
    return np.stack([plan.fit.strategy.decode(row) for row in measured])


STATISTICAL = ["optimal-gaussian", "ellipsoid-laplace", "dense-laplace", "p-identity-laplace", "k-norm-laplace"]
MANY = 4000


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", STATISTICAL)
@pytest.mark.parametrize("workload", ["union", "product"])
def test_stated_errors_and_intervals_hold(mechanism, workload):
    """Fixed keys; each comparison would fail for one key in 10^5 or fewer."""
    how = next(m for m in MECHANISMS if m.name == mechanism)
    plan = planned(WORKLOADS[workload], how)
    x = np.array([3, 0, 7, 1])
    truth = dense(plan.workload) @ x
    errors = answers_of(plan, draws(plan, x, MANY)) - truth
    stated = plan.fit.answers_stderr.reshape(-1)
    assert plan.fit.rmse_kind == ("upper bound" if mechanism == "k-norm-laplace" else "exact")
    # The fourth moment of every law here is below 8 times the squared second: the relative standard error of a
    # variance is below sqrt(7/MANY) = 0.042.
    ratios = (errors**2).mean(axis=0) / stated**2
    slack = 4.5 * math.sqrt(7.0 / MANY)
    assert (ratios < 1.0 + slack).all()
    if plan.fit.rmse_kind == "exact":
        assert (ratios > 1.0 - slack).all()
    # The mean: unbiased.
    assert (np.abs(errors.mean(axis=0)) < 5.0 * stated / math.sqrt(MANY)).all()
    release = plan.release(x)
    for level in (0.5, 0.9, 0.99):
        for together in (False, True):
            interval = release.interval(level, simultaneous=together)
            half = (interval.upper - interval.lower).reshape(-1) / 2
            covered = np.abs(errors) <= half
            share = covered.all(axis=1).mean() if together else covered.mean(axis=0).min()
            assert share >= level - 4.5 * math.sqrt(level * (1 - level) / MANY)
            if mechanism == "optimal-gaussian" and not together:
                assert share <= level + 4.5 * math.sqrt(level * (1 - level) / MANY)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", STATISTICAL)
def test_releases_of_worst_neighbours_cannot_be_told_apart_better_than_promised(mechanism):
    """The exact likelihood ratio, thresholded where an independent half of the draws does best.

    Clopper and Pearson's bounds for both shares: a correct mechanism fails once in 2·10^5.
    """
    how = next(m for m in MECHANISMS if m.name == mechanism)
    epsilon, delta = 1.5, 0.05 if how.law == "gaussian" else 0.0
    privacy = so.PureDP(epsilon=epsilon) if how.law == "laplace" else so.ApproxDP(epsilon=epsilon, delta=delta)
    plan = so.plan(so.Matrix([[1.0, 1, 0], [0, 1, 3]]), privacy, mechanism=mechanism)
    norm, B, scale = norm_of(plan), plan.fit.factorization.matrix, plan.fit.door.noise
    j = int(np.argmax([norm(b) for b in B.T]))
    x = np.zeros(3, int)
    neighbour = x + np.eye(3, dtype=int)[j]
    count = 4000
    samples = [draws(plan, table, 2 * count, seed) for seed, table in ((1, x), (2, neighbour))]
    lattice = 2.0**plan.fit.door.grid
    for sample in samples:
        # Whatever is published lies on the same lattice.
        assert np.array_equal(np.round(sample / lattice) * lattice, sample)
    if plan.fit.strategy.geometry == "body":
        # In the plane the gauge is the largest of the facets' functions.
        points = [s * b for b in B.T for s in (1, -1)]
        pairs = [np.stack(pair) for pair in itertools.combinations(points, 2)]
        duals = [np.linalg.solve(pair, [1, 1]) for pair in pairs if abs(np.linalg.det(pair)) > 1e-9]
        facets = np.array([d for d in duals if all(d @ p <= 1 + 1e-9 for p in points)])
        assert abs((B.T @ facets.T).max() - 1.0) < 1e-9

    def size(z):
        if plan.fit.strategy.geometry == "body":
            return (z @ facets.T).max(axis=1)
        return np.array([norm(row) for row in z])

    def log_ratio(z):
        # Values above zero speak for the neighbour.
        if how.law == "gaussian":
            return (size(z) ** 2 - size(z - B[:, j]) ** 2) / (2.0 * scale**2)
        return (size(z) - size(z - B[:, j])) / scale

    ratios = [log_ratio(sample) for sample in samples]
    if how.law == "laplace":
        assert max(np.abs(r).max() for r in ratios) <= epsilon * (1.0 + 1e-6)
    for a, b in (ratios, [-ratios[1], -ratios[0]]):
        # The test of least error is no blank.
        assert (b > 0).mean() - (a > 0).mean() > 0.15
        thresholds = np.quantile(b[:count], np.linspace(0.02, 0.98, 49))
        told = [((b[:count] > t).mean() - delta) / ((a[:count] > t).mean() + 2e-3) for t in thresholds]
        t = thresholds[int(np.argmax(told))]
        hit, false = int((b[count:] > t).sum()), int((a[count:] > t).sum())
        least = beta.ppf(1e-6, hit, count - hit + 1) if hit else 0.0
        most = beta.ppf(1.0 - 1e-6, false + 1, count - false)
        assert least - delta <= math.exp(epsilon) * most
        # With noise of two thirds the mechanism would be caught where the cone of the likelihood is wide.
        if mechanism in {"k-norm-laplace", "p-identity-laplace"}:
            assert math.log(hit / false) > 0.85 * epsilon


PRIVACIES = [
    so.PureDP(epsilon=0.02),
    so.PureDP(epsilon=1.0),
    so.PureDP(epsilon=12.0),
    so.ApproxDP(epsilon=0.1, delta=1e-6),
    so.ApproxDP(epsilon=2.0, delta=0.3),
    so.ZeroConcentratedDP(rho=0.5),
    so.GaussianDP(mu=0.05),
    so.GaussianDP(mu=3.0),
]


@pytest.mark.parametrize("privacy", PRIVACIES, ids=repr)
@pytest.mark.parametrize("name", [*WORKLOADS, "wide", "skewed"])
def test_no_bound_is_above_any_mechanism(name, privacy):
    extra = {
        "wide": so.Matrix(np.random.default_rng(3).choice([-1.0, 1.0], size=(3, 20))),
        "skewed": so.Matrix(np.diag([1.0, 1e-3, 1e3])),
    }
    workload = extra.get(name) or WORKLOADS[name]
    lower = [b for b in so.optimal.lower_bounds(workload, privacy) if not b.up_to_constant]
    assert len(lower) == (2 if isinstance(privacy, so.PureDP) else 1)
    compared = so.compare(workload, privacy)
    real = so.compare(workload, privacy, integral=False)
    for row in real.rows:
        for bound in lower:
            assert 0.0 <= bound.value <= row["rmse"] * (1.0 + 1e-9), (bound, row)
    for row in compared.rows:
        for bound in lower:
            # Of whole counts no more can be told apart than their steps.
            assert bound.mechanisms.endswith("for real data") or bound.value <= row["rmse"] * (1.0 + 1e-9), (bound, row)
        if row["mechanism"].endswith("gaussian"):
            assert compared.bound.value <= row["rmse"] * (1.0 + 1e-9), row
            assert row["optimality"] >= 1.0 - 1e-9
    # Answering zero: exact on the empty database, as wrong as the answers are on the largest of n records.
    A, weights = dense(workload), workload.answer_weights()
    for records in (1, 3):
        worst = records * np.sqrt(np.average(A**2, axis=0, weights=weights).max())
        found = so.optimal.lower_bounds(workload, privacy, records=records)
        assert found[0].value <= worst * (1.0 + 1e-9)
        assert found[0].value <= lower[0].value * (1.0 + 1e-9)


CAPPED = [so.AddRemove(4), so.AddRemove(4, per_cell=1), so.AddRemove(5, per_cell=2), so.ReplaceOne(2)]


@pytest.mark.parametrize("unit", CAPPED)
@pytest.mark.parametrize("objective", ["mean", "max"])
def test_the_gaussian_bound_is_below_every_diagonal_strategy(unit, objective):
    """Strategies `diag(b)`: their sensitivity is known in closed form for every unit."""
    A = np.diag([1000.0, 1.0, 1.0, 1.0])
    plan = so.plan(so.Matrix(A), so.GaussianDP(mu=1.0), unit=unit, mechanism="optimal", objective=objective)
    records, cap = unit.records, getattr(unit, "per_cell", None) or unit.records
    pieces = [cap] * (records // cap) + [records % cap]
    for power in (0.0, 0.25, 0.5, 1.0):
        b = np.diag(A) ** power
        if isinstance(unit, so.ReplaceOne):
            sensitivity = records * math.hypot(*np.sort(b)[-2:])
        else:
            sensitivity = math.sqrt(sum((p * v) ** 2 for p, v in zip(pieces, np.sort(b)[::-1], strict=False)))
        stderr = sensitivity * np.diag(A) / b
        error = math.sqrt((stderr**2).mean()) if objective == "mean" else stderr.max()
        assert plan.fit.bound.value <= error * (1.0 + 1e-9)


def hereditary_discrepancy(A):
    signs = {k: np.array(list(itertools.product((-1, 1), repeat=k))) for k in range(1, A.shape[1] + 1)}
    best = 0.0
    for k, colours in signs.items():
        for S in itertools.combinations(range(A.shape[1]), k):
            best = max(best, np.abs(A[:, S] @ colours.T).max(axis=0).min())
    return best


@pytest.mark.parametrize("seed", range(12))
def test_the_interval_contains_the_hereditary_discrepancy(seed):
    rng = np.random.default_rng(seed)
    m, n = rng.integers(1, 7), rng.integers(1, 7)
    A = [rng.choice([-1.0, 0, 1], (m, n)), rng.normal(size=(m, n)), np.tril(np.ones((m, n)))][seed % 3]
    A[0, 0] += not A.any()
    found, truth = so.optimal.discrepancy(so.Matrix(A)), hereditary_discrepancy(A)
    assert found.lower <= truth * (1.0 + 1e-9)
    assert found.upper >= truth * (1.0 - 1e-9)
    assert found.found == pytest.approx(np.abs(A @ found.signs).max())
    assert set(found.signs.tolist()) <= {-1, 1}
    low, high = found.gamma_2
    assert low <= high
    for value, size in (found.determinant, found.spectral, found.weighted):
        assert 0.0 <= value <= truth * (1.0 + 1e-9)
        assert 1 <= size <= min(m, n)


COMPOSED = {
    "nested": so.Kronecker([so.Kronecker([so.RunningSum(2), so.RunningSum(2)]), so.Matrix([[1.0, 2], [0, 1], [3, 3]])]),
    "of a union": so.Kronecker([so.RunningSum(2) | 3 * so.Matrix([[1.0, -1]]), so.AllRanges(3)]),
    "of marginals": so.Kronecker([so.Marginals([2, 3], k=1), so.RunningSum(2)]),
    "five factors": so.Kronecker([so.RunningSum(2)] * 5),
    "weighted": so.Kronecker([so.Matrix(np.eye(2), weights=[1, 1e6]), so.Matrix(np.tril(np.ones((3, 3))))]),
    "scaled": so.Kronecker([so.Matrix(np.tril(np.ones((3, 3))) * 1e-100), so.Matrix(np.eye(2) * 1e100)]),
    "dependent": so.Kronecker([so.Matrix([[1.0, 1], [2, 2]]), so.RunningSum(3)]),
    "union": 1e-6 * so.RunningSum(5) | 1e6 * so.Histogram(5),
    "single": so.Matrix([[2.5]]),
    "wide": so.Matrix(np.random.default_rng(1).normal(size=(3, 100))),
    "tall": so.Matrix(np.random.default_rng(2).normal(size=(30, 1))),
    "zero column": so.Matrix([[1.0, 0, 2], [0, 0, 1]]),
    "zero row": so.Matrix([[1.0, 0, 2], [0, 0, 0]]),
    "columns of many sizes": so.Matrix(QUERIES * 10.0 ** np.array([-8, -4, 0, 4])),
    "rows of many sizes": so.Matrix(QUERIES * 10.0 ** np.array([[-3], [0], [3]])),
    "tiny": so.Matrix(QUERIES * 1e-140),
    "huge": so.Matrix(QUERIES * 1e140),
    "nearly dependent": so.Matrix([[1, 0, 1], [0, 1, 1], [1, 1, 2 + 1e-9]]),
    "repeated columns": so.Matrix(np.hstack([QUERIES, QUERIES, -QUERIES])),
    "weights of 12 digits": so.Matrix(QUERIES, weights=[1e-6, 1.0, 1e6]),
}


@pytest.mark.parametrize("name", COMPOSED)
@pytest.mark.parametrize("mechanism", named(FACTORED))
def test_stated_errors_are_those_of_the_measured_matrix(name, mechanism, tmp_path, known_noise):
    how, workload = next(m for m in MECHANISMS if m.name == mechanism), COMPOSED[name]
    if (mechanism, name) == ("k-norm-laplace", "five factors"):
        pytest.skip("rank above 16")
    plan = planned(workload, how)
    x = np.arange(math.prod(workload.input_shape)).reshape(workload.input_shape) % 3
    A = dense(workload)
    release = plan.release(x)
    stderr = plan.fit.answers_stderr.reshape(-1)
    truth = A @ x.reshape(-1)
    # A zero row has no noise, and needs none.
    assert (np.abs(release.unbiased.reshape(-1) - truth) <= 9.0 * stderr + 1e-9 * np.abs(truth)).all()
    assert ((stderr > 0) == (np.abs(A).sum(axis=1) > 0)).all()
    found = plan.fit.factorization
    if found is None:
        # A closed form: what it measures is no matrix here, and the answers above are held to its errors.
        own = stderr
    elif plan.fit.rows is None:
        L = A @ np.linalg.pinv(found.matrix)
        own = plan.fit.door.noise * np.sqrt((L**2) @ plan.fit.strategy.unit_variances())
    else:  # whole numbers: least squares of rows with discrete noise of their own
        B = whole(found.matrix)
        steps, rates = plan.fit.rows
        assert (steps == np.gcd.reduce(B.astype(np.int64), axis=1)).all()
        noise = steps**2 / (2.0 * np.sinh(rates / 2.0) ** 2)
        assert ((rates / steps) @ np.abs(B)).max() <= plan.cost.epsilon * (1.0 + 1e-12)
        own = np.sqrt(np.einsum("ij,jk,ik->i", A, np.linalg.pinv(B.T / noise @ B), A))
    if plan.fit.strategy.geometry == "body":
        # The bound by the width of the body, and the one by its radius.
        assert (stderr <= own * (1.0 + 1e-6)).all()
    else:
        np.testing.assert_allclose(stderr, own, rtol=1e-5)
    if mechanism != "universal-gaussian":
        assert plan.rmse == pytest.approx(np.sqrt(np.average(stderr**2, weights=workload.answer_weights())))
    if mechanism == "optimal-gaussian":
        assert 1.0 - 1e-9 <= plan.optimality <= (1.0 + found.gap) * (1.0 + 1e-4)
    elif plan.optimality is not None:
        assert plan.optimality >= 1.0 - 1e-9
    again = so.Plan.load(plan.save(tmp_path / "plan.json"))
    assert (again.digest, again.explain(), again.rmse) == (plan.digest, plan.explain(), plan.rmse)


def test_bounds_at_small_epsilon_do_not_count_to_its_inverse():
    queries = so.RunningSum(16)
    scaled = [so.optimal.lower_bounds(queries, so.PureDP(epsilon=e))[0].value * e for e in (1e-2, 1e-6, 1e-11)]
    assert max(scaled) / min(scaled) < 1.0001
    # As many copies as the records allow: no fewer cells are better than what trying all of them finds.
    A = np.tril(np.ones((12, 12)))
    privacy, records = so.PureDP(epsilon=0.2), 30
    best = 0.0
    for t in range(1, 31):
        factor = t * math.exp(0.1 * t) / (1.0 + math.exp(0.2 * t))
        for k in range(1, min(12, records // t) + 1):
            least = np.linalg.svd(A[:, -k:], compute_uv=False)[-1]
            best = max(best, factor * math.sqrt(k / 12) * least)
    assert so.optimal.lower_bounds(so.Matrix(A), privacy, records=records)[0].value >= 0.9 * best


def test_plans_do_not_depend_on_what_was_searched_before():
    queries = so.AllRanges(21)
    ledger = so.Ledger(so.ApproxDP(epsilon=9.0, delta=1e-3))

    def planned_again():
        return so.plan(queries, APPROX, constraint=so.optimal.PublicBound(50))

    before = planned_again()
    release = before.release(np.ones(21, int), ledger=ledger, request_id="report")
    so.optimal.factorize(queries, gap=1e-8)
    so.optimal.factorize(queries, iterations=1)
    assert planned_again().digest == before.digest
    assert planned_again().release(np.ones(21, int), ledger=ledger, request_id="report") is release
    so.optimal.factorize(queries, kind="p-identity", law="laplace", iterations=1)
    found = so.plan(queries, PURE, mechanism="p-identity").fit.factorization
    assert found.iterations > 1
    with pytest.raises(ValueError, match="read-only"):
        found.factors[0][:] = 0.0


BAD_DATA = [
    (np.full(3, 77123), so.errors.ShapeError),
    (np.full((2, 2, 2), 77123), so.errors.ShapeError),
    (np.array([77123.0, np.nan, 1, 2]), so.errors.InvalidParameterError),
    (np.array([77123.0, np.inf, 1, 2]), so.errors.InvalidParameterError),
    (["77123", "a", "b", "c"], so.errors.DataTypeError),
    (np.array([77123 + 1j, 0, 0, 0]), so.errors.DataTypeError),
    (None, so.errors.DataTypeError),
    (coo_array(([77123.0, np.nan], ([0, 0], [1, 2])), shape=(1, 4)), so.errors.InvalidParameterError),
    (coo_array(([77123], ([0], [1])), shape=(1, 5)), so.errors.ShapeError),
]


@pytest.mark.parametrize("mechanism", named(FACTORED))
def test_refused_data_costs_nothing_and_is_not_told(mechanism):
    how = next(m for m in MECHANISMS if m.name == mechanism)
    plan = planned(WORKLOADS["matrix"], how)
    ledger = so.Ledger(so.ApproxDP(epsilon=50.0, delta=1e-3))
    before = repr(ledger)
    for data, error in BAD_DATA:
        with pytest.raises(error) as caught:
            plan.release(data, ledger=ledger, request_id="one")
        assert "77123" not in str(caught.value)
        assert caught.value.__cause__ is None
    assert repr(ledger) == before
    release = plan.release(np.array([77123, 0, 1, 2]), ledger=ledger, request_id="one")
    assert repr(ledger) != before
    shown = repr(release) + repr(release.projection) + plan.explain() + repr(plan)
    assert "77123" not in shown
    assert plan.release(np.zeros(4, int), ledger=ledger, request_id="one") is release


@pytest.mark.parametrize("mechanism", [m.name for m in FACTORED if m.projected])
@pytest.mark.parametrize("bound", [1e-9, 1.0, 1e6, 1e18, 1e300])
def test_projections_serve_any_public_bound(mechanism, bound, known_noise):
    """Everything that can refuse refuses before the charge; a bound that binds nothing changes little."""
    how = next(m for m in MECHANISMS if m.name == mechanism)
    privacy = PURE if how.law == "laplace" else APPROX
    for constraint in (
        so.optimal.PublicBound(bound),
        so.optimal.SignedBound(bound),
        so.optimal.PublicTotal(min(bound, 600.0)),
    ):
        plan = so.plan(
            so.AllRanges(6), privacy, mechanism=mechanism, constraint=constraint, unit=so.ReplaceOne(1), max_value=100
        )
        release = plan.release(np.full(6, 10))
        assert np.isfinite(release.values).all()
        assert release.projection is not None
        with pytest.raises(so.errors.InvalidParameterError, match="total"):
            so.plan(
                so.AllRanges(6), privacy, constraint=so.optimal.PublicTotal(601), unit=so.ReplaceOne(1), max_value=100
            )
        if bound <= 1.0:
            assert np.abs(release.values).max() <= bound * (1.0 + 1e-9) or mechanism.startswith("sparse-printed")
        elif bound >= 1e6 and isinstance(constraint, so.optimal.SignedBound):
            error = np.abs(release.values - release.unbiased) / plan.fit.answers_stderr
            assert error.max() < 0.5


def test_a_projection_depends_on_the_measurement_alone(known_noise):
    """The same published numbers are projected alike, whatever the data was."""
    plan = so.plan(so.AllRanges(6), APPROX, constraint=so.optimal.PublicBound(20))
    release = plan.release(np.array([9, 0, 0, 0, 1, 0]))
    other = plan.release(np.zeros(6, int))
    moved = replace(other, measured=release.measured)
    assert np.array_equal(moved.projected().values, release.values)
    assert np.array_equal(moved.projected().projection.cells, release.projection.cells)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", ["k-norm-laplace", "ellipsoid-laplace", "dense-laplace"])
@pytest.mark.parametrize("rank", [1, 2, 6])
def test_norms_of_the_noise_follow_their_gamma_law(mechanism, rank):
    """In r dimensions the density exp(-norm) has norms of law Gamma(r); fixed keys, p-values below 1e-6 fail."""
    rng = np.random.default_rng(rank)
    queries = np.hstack([rng.normal(size=(rank, 2 * rank)), 1e-3 * rng.normal(size=(rank, 3))])
    plan = so.plan(so.Matrix(queries), PURE, mechanism=mechanism)
    found, norm = plan.fit.factorization, norm_of(plan)
    noise = draws(plan, np.zeros(queries.shape[1], int), 400, seed=rank) / plan.fit.door.noise
    blocks = [rank] if mechanism == "k-norm-laplace" else list(found.blocks)
    assert sum(blocks) == rank
    parts = np.split(noise, np.cumsum(blocks)[:-1], axis=1)
    for size, part in zip(blocks, parts, strict=True):
        sizes = [norm(z) for z in part] if mechanism == "k-norm-laplace" else np.linalg.norm(part, axis=1)
        assert kstest(sizes, gamma(size).cdf).pvalue > 1e-6
    # Symmetric, and no coordinate says anything about the sign of another.
    signs = np.sign(noise)
    assert np.abs(signs.mean(axis=0)).max() < 5.0 / math.sqrt(len(noise))
    if mechanism != "k-norm-laplace":
        products = signs.T @ signs / len(noise) - np.eye(rank)
        assert np.abs(products).max() < 5.0 / math.sqrt(len(noise))


def test_threads_share_the_memory_of_searches():
    found, raised = [], []

    def search():
        try:
            for n in range(5, 30):
                found.append((n, so.optimal.factorize(so.AllRanges(n)).factors[0].tobytes()))
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not raised
    assert len(found) == 100
    assert len(set(found)) == 25


def test_factorizations_are_copied_and_pickled():
    found = so.optimal.factorize(so.AllRanges(6))
    plan = so.plan(so.AllRanges(6), APPROX, factorization=found)
    for other in (copy.deepcopy(found), pickle.loads(pickle.dumps(found)), replace(found)):
        again = so.plan(so.AllRanges(6), APPROX, factorization=other)
        assert again.digest == plan.digest


@pytest.mark.parametrize(
    "change",
    [
        {"law": "laplace"},
        {"body": True},
        {"kind": "k-norm"},
        {"blocks": (6,)},
        {"blocks": (7,)},
        {"excess": 0.5},
        {"excess": 2.0},
        {"factors": (np.eye(5),)},
        {"factors": (np.ones((6, 6)),)},
        {"factors": (np.eye(6)[:5],)},
        {"factors": (np.full((6, 6), np.nan),)},
        {"factors": ()},
    ],
    ids=repr,
)
def test_changed_factorizations_are_refused(change):
    found = so.optimal.factorize(so.AllRanges(6))
    for mechanism in ("auto", "optimal"):
        with pytest.raises(so.SordinoError):
            so.plan(so.AllRanges(6), APPROX, mechanism=mechanism, factorization=replace(found, **change))


@pytest.mark.parametrize("excess", [0.5, 1.0 - 1e-9, 0.0, -1.0, math.nan, math.inf])
def test_no_factorization_asks_for_less_noise_than_its_sensitivity(excess):
    found = so.optimal.factorize(so.AllRanges(6), kind="dense-printed")
    with pytest.raises(so.SordinoError):
        so.plan(so.AllRanges(6), APPROX, mechanism="dense-printed", factorization=replace(found, excess=excess))


def test_the_choice_shown_is_the_choice_made():
    queries = [
        so.Histogram(6),
        so.AllRanges(9),
        so.Marginals([2, 3, 2], k=2),
        so.MovingAverage(3, 12),
        *WORKLOADS.values(),
    ]
    for workload, privacy in itertools.product(queries, PRIVACIES[1:5]):
        for objective, effort in itertools.product(("mean", "max"), ("optimize", "closed_form")):
            plan = so.plan(workload, privacy, objective=objective, effort=effort)
            compared = plan.compare()
            assert compared == replace(compared, chosen=plan.mechanism)
            column = "rmse" if objective == "mean" else "max_stderr"
            least = min(row[column] for row in compared.rows if not row["mechanism"].endswith(("printed", "rescaled")))
            assert plan.fit.error(objective) <= 1.01 * least * (1.0 + 1e-9)


@pytest.mark.parametrize("mechanism", [m.name for m in FACTORED if m.strategy != "k-norm"])
def test_neighbours_of_real_data_are_covered_with_their_rounding(mechanism):
    how = next(m for m in MECHANISMS if m.name == mechanism)
    rng = np.random.default_rng(4)
    for unit, bound in itertools.product((so.AddRemove(1), so.ReplaceOne(1)), (1, 2**10, None)):
        plan = planned(so.Matrix(QUERIES * [[0.1], [1], [3]]), how, integral=False, max_value=bound, unit=unit)
        norm, total, top = norm_of(plan), sum(plan.fit.sensitivity.values()), float(plan.fit.domain.max_value)
        for _ in range(60):
            x = rng.uniform(-1, 1, 4) * rng.choice([1.0, top, 1e-9])
            x = np.sign(x) * top if rng.random() < 0.3 else x
            j, k = rng.choice(4, 2, replace=False)
            moved = x.copy()
            moved[j] += 1.0
            moved[k] -= isinstance(unit, so.ReplaceOne)
            door, strategy = plan.fit.door, plan.fit.strategy
            first, second = (door.measure(strategy, cells, bytes(32)).values() for cells in (x, moved))
            assert norm(second - first) <= total * (1.0 + 1e-12)


@pytest.mark.parametrize("objective", ["mean", "max"])
def test_products_reach_every_gap_and_search_equal_factors_once(objective):
    part, seen = so.AllRanges(7), []
    single = so.optimal.factorize(part, objective=objective, gap=1e-9).certificate.lower
    for count, gap in ((2, 1e-9), (3, 1.0), (2, 1e-4)):
        product = so.Kronecker([part] * count)
        found = so.optimal.factorize(product, objective=objective, gap=gap, progress=lambda i, g: seen.append(i))
        assert found.gap <= max(gap, 1e-9 * count) * (1.0 + 1e-6) + 1e-10
        assert found.certificate.lower <= single**count * (1.0 + 1e-8)
        assert found.certificate.lower * (1.0 + found.gap) >= single**count * (1.0 - 1e-9)
        assert all(np.array_equal(factor, found.factors[0]) for factor in found.factors)
    assert seen.count(1) == 3
