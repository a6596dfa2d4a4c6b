"""Sparse matrices, all ranges, unions and Kronecker products: what they compute, weigh, measure and refuse."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse
from hypothesis import assume, given
from hypothesis import strategies as st

import sordino as so
from sordino import _core
from sordino.accuracy.nuclear_norms import singular_mean
from sordino.errors import PlanFileError
from sordino.workloads import workload_from_spec
from sordino.workloads.matrix import CompressedRows

APPROX = so.ApproxDP(epsilon=1.0, delta=1e-6)
PURE = so.PureDP(epsilon=1.0)


def dense(workload):
    """The definition, from the definitions of parts and factors."""
    match workload:
        case so.workloads.Union():
            return np.concatenate([dense(part) for part in workload.parts])
        case so.Kronecker():
            A = np.ones((1, 1))
            for factor in workload.factors:
                A = np.kron(A, dense(factor))
            return A
        case so.AllRanges():
            cells = np.arange(workload.length)
            return np.stack([(i <= cells) & (cells <= j) for i in cells for j in cells[i:]]).astype(float)
        case so.Matrix(A=CompressedRows() as A):
            return scipy.sparse.csr_array((A.data, A.indices, A.indptr), shape=A.shape).toarray()
        case so.Matrix():
            return workload.A
        case so.Histogram():
            return np.eye(math.prod(workload.shape))
        case so.RunningSum():
            return np.tril(np.ones((workload.length, workload.length)))
        case so.Marginals(levels=levels):
            levels_of = np.stack(np.unravel_index(np.arange(math.prod(levels)), levels), axis=1)
            return np.array(
                [
                    (levels_of[:, list(chosen)] == cell).all(axis=1)
                    for chosen, shape in zip(workload.sets, workload.table_shapes, strict=True)
                    for cell in np.ndindex(*shape)
                ],
                dtype=float,
            )
    raise AssertionError(workload)


def weights_of(workload):
    """Answer weights from their definition."""
    match workload:
        case so.workloads.Union():
            pairs = zip(workload.parts, workload.weights, strict=True)
            return np.concatenate([weight * weights_of(part) for part, weight in pairs])
        case so.Kronecker():
            weights = np.ones(1)
            for factor in workload.factors:
                weights = np.kron(weights, weights_of(factor))
            return weights
        case so.Matrix() if workload.weights is not None:
            return np.asarray(workload.weights)
        case so.Marginals():
            sizes = [math.prod(shape) for shape in workload.table_shapes]
            return np.repeat(workload.weights, sizes)
    return np.ones(workload.core.answers_len)


def test_the_oracles_on_known_cases():
    pair = so.Matrix([[2.0, 3.0]], weights=[5.0])
    assert dense(so.Kronecker([so.RunningSum(2), pair])).tolist() == [[2, 3, 0, 0], [2, 3, 2, 3]]
    assert dense(pair | so.AllRanges(2)).tolist() == [[2, 3], [1, 0], [1, 1], [0, 1]]
    assert dense(so.Marginals([2, 2], k=1)).tolist() == [[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]]
    assert weights_of(so.Kronecker([2 * so.Histogram(2), 3 * pair])).tolist() == [30, 30]


@st.composite
def leaves(draw, cells):
    kind = draw(st.integers(0, 5))
    if kind == 0:
        return so.Histogram(cells)
    if kind == 1:
        return so.RunningSum(cells)
    if kind == 2:
        return so.AllRanges(cells)
    if kind == 3 and cells == 6:
        return so.Marginals([2, 3], k=1, weights=draw(st.sampled_from([None, [1.0, 2.0], [3.0, 3.0]])))
    rows = draw(st.integers(1, 4))
    entry = st.sampled_from([0.0, 0.0, 1.0, -2.0, 0.3])
    A = np.array(draw(st.lists(entry, min_size=rows * cells, max_size=rows * cells))).reshape(rows, cells)
    assume(A.any())
    weights = draw(st.sampled_from([None, np.arange(1.0, rows + 1)]))
    return so.Matrix(scipy.sparse.coo_array(A) if kind == 4 else A, weights)


@st.composite
def composed(draw, cells=None, depth=2):
    cells = draw(st.sampled_from([1, 2, 3, 4, 6, 8])) if cells is None else cells
    kind = draw(st.integers(0, 2)) if depth else 2
    if kind == 0:
        parts = [draw(composed(cells, depth - 1)) for _ in range(draw(st.integers(1, 3)))]
        assume(len({part.input_shape for part in parts if len(part.input_shape) > 1}) < 2)
        return so.workloads.Union(parts, draw(st.sampled_from([None, [0.5, 2.0, 7.0][: len(parts)]])))
    if kind == 1:
        first = draw(st.sampled_from([d for d in range(1, cells + 1) if cells % d == 0]))
        return so.Kronecker([draw(composed(first, depth - 1)), draw(composed(cells // first, depth - 1))])
    return draw(leaves(cells))


@given(composed())
def test_queries_weights_and_specs(workload):
    A, weights = dense(workload), weights_of(workload)
    m, n = A.shape
    assert math.prod(workload.input_shape) == n and math.prod(workload.answers_shape) == m
    assert np.allclose([workload.core.row(t) for t in range(m)], A)
    x = np.arange(n) % 5 - 1.0
    assert np.allclose(workload.core.apply(x), A @ x)
    found = workload.answer_weights()
    assert (weights == 1.0).all() if found is None else np.allclose(found, weights)
    again = workload_from_spec(workload.kind, workload.spec())
    assert again == workload and hash(again) == hash(workload) and repr(again) == repr(workload)
    assert len(repr(workload)) < 300
    R = _core.condensed(workload.core, found)
    assert R.shape[0] <= min(m, n) and np.allclose(R.T @ R, A.T @ (weights[:, None] * A), atol=1e-10)


@given(composed())
def test_the_bound_is_the_nuclear_norm(workload):
    A, weights = dense(workload), weights_of(workload)
    exact = np.linalg.norm(np.sqrt(weights)[:, None] * A, "nuc") / math.sqrt(weights.sum() * A.shape[1])
    value, _ = singular_mean(workload)
    assert 0 < value <= exact * (1 + 1e-13) and math.isclose(value, exact, rel_tol=1e-9)


def test_bounds_that_are_not_exact_say_so():
    long = so.Convolution(np.ones(1100), 1100, "causal")
    value, name = singular_mean(so.Kronecker([long, so.Histogram(2)]))
    assert name == "SVD bound (dual)" and math.isclose(value, singular_mean(long)[0], rel_tol=1e-9)
    both = so.AllRanges(1100) | so.Histogram(1100)
    for large in [both, so.Kronecker([both, so.Histogram(2)]), so.Histogram(1100) | long]:
        assert singular_mean(large) == (0.0, "no bound")
    # That of ranges has a closed form at any length.
    value, name = singular_mean(so.Kronecker([so.AllRanges(1100), so.Histogram(2)]))
    assert name == "SVD bound" and math.isclose(value, singular_mean(so.AllRanges(1100))[0], rel_tol=1e-9)
    alone = singular_mean(so.RunningSum(5000))
    assert singular_mean(3 * so.RunningSum(5000)) == alone


WORKLOADS = [
    so.Matrix(scipy.sparse.csr_array([[0.0, 2.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0], [0.0, -1.0, 0.5, 0.0]])),
    so.Matrix(scipy.sparse.coo_array([[0.1, 0.0, 0.7], [0.0, -0.3, 0.0]]), weights=[1.0, 4.0]),
    so.AllRanges(6),
    so.Histogram(6) | 2 * so.RunningSum(6) | so.Matrix([[1.0, 0.0, 0.5, 0.0, 0.0, -1.0]]),
    so.Histogram((2, 3)) | so.Marginals([2, 3], k=1, weights=[1.0, 3.0]),
    so.Kronecker([so.RunningSum(4), so.Histogram(3)]),
    so.Kronecker([so.AllRanges(3), so.Histogram((2, 2)) | so.Matrix([[1.0, 1.0, 1.0, 1.0]])]),
]


@pytest.mark.parametrize("workload", WORKLOADS, ids=repr)
@pytest.mark.parametrize("privacy", [APPROX, PURE, so.GaussianDP(mu=1.0)], ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("mechanism", ["identity", "output", "auto"])
def test_releases_answer_with_the_declared_noise(workload, privacy, mechanism, known_noise):
    x = np.random.default_rng(1).integers(0, 50, workload.input_shape)
    truth = (dense(workload) @ x.reshape(-1)).reshape(workload.answers_shape)
    plan = so.plan(workload, privacy, mechanism=mechanism)
    release = plan.release(x)
    assert release.values.shape == release.stderr.shape == workload.answers_shape
    # Laplace tails: P(|z| > 11) < 2e-7 for one answer.
    assert (np.abs(release.values - truth) <= 11.0 * release.stderr).all()
    assert math.isclose(
        plan.rmse**2, np.average(plan.fit.answers_stderr.reshape(-1) ** 2, weights=weights_of(workload))
    )
    if mechanism == "identity":
        # The same noise on the cells, whatever is asked of them.
        cells = so.plan(so.Histogram(x.size), privacy, mechanism=mechanism).release(x.reshape(-1))
        assert np.allclose(release.values.reshape(-1), dense(workload) @ cells.values)
        assert np.allclose(release.stderr.reshape(-1), cells.stderr[0] * np.linalg.norm(dense(workload), axis=1))
    interval = release.interval(0.9)
    asked = release.stderr > 0
    assert (interval.lower[asked] < release.values[asked]).all() and (interval.upper >= release.values).all()
    assert (interval.lower[~asked] == 0).all() and (interval.upper[~asked] == 0).all()


@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", ["identity-laplace", "output-laplace", "output-gaussian"])
@pytest.mark.parametrize("workload", WORKLOADS[2:6], ids=repr)
def test_the_variance_is_the_declared_one(workload, mechanism):
    """1000 releases under known keys; mean squares at 6.5 standard errors, sqrt((kurtosis - 1)/1000), kurtosis <= 6."""
    plan = so.plan(workload, APPROX, mechanism=mechanism)
    x, rounds = np.zeros(workload.input_shape, dtype=np.int64), 1000
    total = np.zeros(workload.answers_shape)
    for i in range(rounds):
        with so.testing.deterministic_noise(i.to_bytes(32, "little")):
            total += plan.release(x).values ** 2
    asked = plan.fit.answers_stderr > 0
    assert np.abs(total[asked] / rounds / plan.fit.answers_stderr[asked] ** 2 - 1.0).max() < 6.5 * math.sqrt(
        5.0 / rounds
    )
    assert (total[~asked] == 0).all()


@given(composed(cells=4, depth=1), st.sampled_from(["output-laplace", "output-gaussian"]))
def test_output_noise_covers_brute_force_neighbours(workload, mechanism):
    """Largest change of the answers over all pairs of neighbours on four cells, against the noise."""
    workload = 1 * workload if isinstance(workload, so.Histogram | so.RunningSum) else workload
    A, ratio = dense(workload), 1.0
    order = 1 if mechanism.endswith("laplace") else 2
    privacy = so.PureDP(epsilon=ratio) if order == 1 else so.GaussianDP(mu=ratio)
    changes = {
        so.AddRemove(1): list(np.eye(4)),
        so.AddRemove(2): [a + s * b for a in np.eye(4) for b in np.eye(4) for s in (1, -1)],
        so.ReplaceOne(1): [a - s * b for a in np.eye(4) for b in np.eye(4) for s in (0, 1)],
    }
    for unit, differences in changes.items():
        plan = so.plan(workload, privacy, unit=unit, mechanism=mechanism)
        needed = max(np.linalg.norm(A @ change, order) for change in differences)
        # Of discrete noise the privacy rests on the scale, not on the variance.
        noise = plan.fit.answers_stderr.max() / plan.fit.door.noise * plan.fit.door.scale
        noise /= math.sqrt(2.0) if order == 1 else 1.0
        assert needed * (1 - 1e-9) <= noise * ratio <= needed * (1 + 1e-4) + 1e-9, unit


def test_sparse_and_dense_matrices_are_released_alike(known_noise):
    rng = np.random.default_rng(5)
    A = rng.normal(size=(40, 30)) * (rng.random((40, 30)) < 0.1)
    A[7] = 0.0
    x = rng.integers(0, 99, 30)
    for unit, mechanism in itertools.product(
        [so.AddRemove(3), so.ReplaceOne(1)], ["output-laplace", "output-gaussian"]
    ):
        plans = [so.plan(so.Matrix(B), APPROX, unit=unit, mechanism=mechanism) for B in (A, scipy.sparse.csr_array(A))]
        assert math.isclose(plans[0].fit.sensitivity["ideal"], plans[1].fit.sensitivity["ideal"], rel_tol=1e-12)
        values = [plan.release(x).values for plan in plans]
        assert np.allclose(*values, atol=1e-3 * plans[0].rmse)
    # A further query in the row space, from the sparse strategy written out.
    release = plans[1].release(x)
    total = release.answer(so.Matrix(A[:1] + A[3:4]))
    assert abs(total.values[0] - (A[0] + A[3]) @ x) < 8.0 * total.stderr[0]


def test_sparse_forms_are_one():
    A = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]])
    unsorted = scipy.sparse.csr_array(
        (np.array([3.0, 1.0, 2.0, 0.0]), np.array([2, 0, 1, 0]), np.array([0, 0, 4])), shape=(2, 3)
    )
    twice = scipy.sparse.coo_array((np.array([1.0, 1.0, 1, 3]), ([0, 0, 1, 1], [1, 1, 0, 2])), shape=(2, 3))
    forms = [
        scipy.sparse.csr_array(A),
        scipy.sparse.csc_matrix(A),
        twice,
        scipy.sparse.dok_array(A),
        CompressedRows((2, 3), np.array([0, 1, 3]), np.array([1, 0, 2]), np.array([2.0, 1.0, 3.0])),
    ]
    assert len({so.Matrix(form) for form in forms}) == 1
    assert np.array_equal(dense(so.Matrix(forms[0])), A)
    assert dense(so.Matrix(unsorted)).tolist() == [[0, 0, 0], [1, 2, 3]]
    with pytest.raises(ValueError, match="read-only"):
        so.Matrix(forms[0]).A.data[0] = 7.0
    wide = so.Matrix(scipy.sparse.csr_array(([1.0], ([0], [2**26 - 1])), shape=(2**20, 2**26)))
    assert wide.core.input_len == 2**26 and "entries" in repr(wide)


def test_unions_flatten_under_operators_and_come_apart():
    a, b, c = so.Histogram((2, 3)), so.RunningSum(6), so.AllRanges(6)
    union = a | 3 * (b | 2 * c)
    assert union == so.workloads.Union([a, b, c], weights=[1, 3, 6]) == (a | 3 * b) | 6 * c
    assert union.input_shape == (2, 3) and union.part_shapes == ((2, 3), (6,), (21,))
    pieces = union.split(np.arange(33))
    assert [piece.shape for piece in pieces] == [(2, 3), (6,), (21,)]
    assert np.concatenate([piece.reshape(-1) for piece in pieces]).tolist() == list(range(33))
    assert so.workloads.Union([a | b, c]).part_shapes == ((12,), (21,))
    assert np.float64(2.0) * a == a * 2 == so.workloads.Union([a], [2]) and 1 * a != a
    assert np.array_equal((3 * a).core.apply(np.arange(6.0)), np.arange(6.0)), "answers are not scaled"
    assert so.AllRanges(3).ranges.tolist() == [[0, 0], [0, 1], [0, 2], [1, 1], [1, 2], [2, 2]]
    for bad in [
        lambda: a | 3,
        lambda: "x" | a,
        lambda: a * b,
        lambda: "x" * a,
        lambda: np.ones(2) * a,
        lambda: True * a,
    ]:
        with pytest.raises(TypeError):
            bad()
    with pytest.raises(so.errors.ShapeError):
        union.split(np.zeros(32))


def test_weights_move_the_choice_not_the_answers():
    """A weighted union reports the weighted mean, and `max` ignores weights."""
    cells, sums = so.Histogram(64), so.RunningSum(64)
    plans = [so.plan(cells | w * sums, APPROX, mechanism="identity") for w in (1e-9, 1.0, 1e9)]
    rmse = [plan.rmse for plan in plans]
    assert rmse[0] < rmse[1] < rmse[2] and len({plan.max_stderr for plan in plans}) == 1
    assert math.isclose(rmse[0], so.plan(cells, APPROX, mechanism="identity").rmse, rel_tol=1e-6)
    assert math.isclose(rmse[2], so.plan(sums, APPROX, mechanism="identity").rmse, rel_tol=1e-6)


def nested(depth):
    workload = so.Histogram(2)
    for _ in range(depth):
        workload = so.workloads.Union([workload])
    return workload


class NoMatrix:
    def tocsr(self):
        raise RuntimeError


def compressed(shape=(2, 3), indptr=(0, 1, 2), indices=(0, 2), data=(1.0, 2.0)):
    return CompressedRows(shape, np.array(indptr), np.array(indices), np.array(data))


A, H = so.Matrix([[1.0, 2.0]]), so.Histogram(2)
REFUSED = [
    (lambda: so.Matrix(scipy.sparse.csr_array((0, 3))), so.errors.InvalidParameterError),
    (lambda: so.Matrix(scipy.sparse.csr_array((2, 3))), so.errors.InvalidParameterError),
    (lambda: so.Matrix(scipy.sparse.csr_array([[float("nan"), 1.0]])), so.errors.InvalidParameterError),
    (lambda: so.Matrix(scipy.sparse.csr_array([[1e300, 1.0]])), so.errors.InvalidParameterError),
    (lambda: so.Matrix(scipy.sparse.csr_array([[1j, 1.0]])), so.errors.DataTypeError),
    (lambda: so.Matrix(scipy.sparse.csr_array((2**27, 2))), so.errors.InvalidParameterError),
    (lambda: so.Matrix(scipy.sparse.coo_array([1.0, 2.0])), so.errors.DataTypeError),
    (lambda: so.Matrix(NoMatrix()), so.errors.DataTypeError),
    (lambda: so.Matrix(compressed(indptr=(0, 2, 1))), so.errors.InvalidParameterError),
    (lambda: so.Matrix(compressed(indptr=(1, 1, 2))), so.errors.InvalidParameterError),
    (lambda: so.Matrix(compressed(indptr=(0, 2))), so.errors.InvalidParameterError),
    (lambda: so.Matrix(compressed(indptr=(0, 1, 3))), so.errors.InvalidParameterError),
    (lambda: so.Matrix(compressed(indices=(0, 3))), so.errors.InvalidParameterError),
    (lambda: so.Matrix(compressed(indices=(-1, 2))), so.errors.InvalidParameterError),
    (lambda: so.Matrix(compressed(indices=(0.0, 2.0))), so.errors.DataTypeError),
    (lambda: so.Matrix(compressed(data=(1.0, 2.0, 3.0))), so.errors.InvalidParameterError),
    (lambda: so.Matrix(compressed(data=("a", "b"))), so.errors.DataTypeError),
    (lambda: so.Matrix([[float("nan"), 1.0]]), so.errors.InvalidParameterError),
    (lambda: so.Matrix(np.zeros((2, 2))), so.errors.InvalidParameterError),
    (lambda: so.Matrix(np.ones((1, 2, 3))), so.errors.DataTypeError),
    (
        lambda: so.Matrix(np.lib.stride_tricks.as_strided(np.ones(1), (2**26 + 1, 1), (0, 0))),
        so.errors.InvalidParameterError,
    ),
    (lambda: so.Matrix([[1.0]], weights=[0.0]), so.errors.InvalidParameterError),
    (lambda: so.Matrix([[1.0]], weights=[float("nan")]), so.errors.InvalidParameterError),
    (lambda: so.Matrix([[1.0]], weights=[1e200]), so.errors.InvalidParameterError),
    (lambda: so.Matrix([[1.0]], weights=[1.0, 1.0]), so.errors.InvalidParameterError),
    (lambda: so.Matrix([[1.0]], weights=1.0), so.errors.DataTypeError),
    (lambda: so.Matrix([[1.0]], weights="a"), so.errors.DataTypeError),
    (lambda: so.AllRanges(0), so.errors.InvalidParameterError),
    (lambda: so.AllRanges(2**26 + 1), so.errors.InvalidParameterError),
    (lambda: so.AllRanges(2.0), so.errors.DataTypeError),
    (lambda: so.workloads.Union([]), so.errors.InvalidParameterError),
    (lambda: so.workloads.Union(3), so.errors.DataTypeError),
    (lambda: so.workloads.Union([H, 3]), so.errors.DataTypeError),
    (lambda: so.workloads.Union(H), so.errors.DataTypeError),
    (lambda: so.workloads.Union([H, so.Histogram(3)]), so.errors.InvalidParameterError),
    (lambda: so.Histogram((2, 3)) | so.Histogram((3, 2)), so.errors.InvalidParameterError),
    (lambda: so.workloads.Union([H], weights=[1.0, 2.0]), so.errors.InvalidParameterError),
    (lambda: so.workloads.Union([H], weights=["a"]), so.errors.DataTypeError),
    (lambda: so.workloads.Union([so.AllRanges(2**26)] * 2**12), so.errors.InvalidParameterError),
    (lambda: so.workloads.Union([so.Marginals([2] * 40, k=1)]), so.errors.InvalidParameterError),
    (lambda: nested(17), so.errors.InvalidParameterError),
    (lambda: 0 * H, so.errors.InvalidParameterError),
    (lambda: -1.0 * H, so.errors.InvalidParameterError),
    (lambda: float("inf") * H, so.errors.InvalidParameterError),
    (lambda: 1e100 * (1e100 * H), so.errors.InvalidParameterError),
    (lambda: H | so.RunningSum(), so.errors.UnsupportedMechanismError),
    (lambda: so.Kronecker([]), so.errors.InvalidParameterError),
    (lambda: so.Kronecker(H), so.errors.DataTypeError),
    (lambda: so.Kronecker([H, "a"]), so.errors.DataTypeError),
    (lambda: so.Kronecker([so.Histogram(2**20)] * 2), so.errors.InvalidParameterError),
    (
        lambda: so.Kronecker([so.AllRanges(2**20), so.AllRanges(2**6), so.AllRanges(2**6)]),
        so.errors.InvalidParameterError,
    ),
    (lambda: so.Kronecker([so.Matrix([[1e-100]])] * 2), so.errors.InvalidParameterError),
    (lambda: so.Kronecker([so.Marginals([2] * 40, k=1)]), so.errors.InvalidParameterError),
    (lambda: so.Kronecker([1e100 * H, 1e100 * H]), so.errors.InvalidParameterError),
]


@pytest.mark.slow
@pytest.mark.parametrize("index", range(len(REFUSED)))
def test_nonsense_is_refused(index):
    make, error = REFUSED[index]
    with pytest.raises(error) as caught:
        make()
    assert isinstance(caught.value, so.SordinoError) and 10 < len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("union", {}),
        ("union", {"parts": 3}),
        ("union", {"parts": [3]}),
        ("union", {"parts": [{"kind": "histogram"}]}),
        ("union", {"parts": [{"kind": "histogram", "spec": {"shape": 0}}]}),
        ("union", {"parts": [{"kind": "magic", "spec": {}}], "weights": [1.0]}),
        ("union", {"parts": [{"kind": "histogram", "spec": {"shape": [2]}}], "weights": ["a"]}),
        ("kronecker", {"factors": None}),
        ("kronecker", {"factors": [{"kind": "union", "spec": {"parts": []}}]}),
        ("matrix", {"A": {"shape": [1, 1]}}),
        ("matrix", {"A": {"shape": 1, "indptr": np.zeros(2), "indices": np.zeros(1), "data": np.ones(1)}}),
        (
            "matrix",
            {"A": {"shape": [1, 1], "indptr": np.array([0, np.nan]), "indices": np.zeros(1), "data": np.ones(1)}},
        ),
        ("all_ranges", {"length": "a"}),
    ],
)
def test_broken_specs_are_refused(kind, spec):
    with pytest.raises(PlanFileError):
        workload_from_spec(kind, spec)


@pytest.mark.parametrize(
    "workload",
    [
        *WORKLOADS,
        so.Kronecker([so.Convolution(np.linspace(0.1, 1, 900)), 2 * so.Histogram(2)]),
        so.Matrix(scipy.sparse.random_array((300, 90), density=0.1, rng=1), weights=np.arange(1, 301)),
    ],
    ids=lambda w: w.kind,
)
def test_plans_come_back_from_files(workload, tmp_path, known_noise):
    plan = so.plan(workload, APPROX)
    again = so.Plan.load(plan.save(tmp_path / "plan.json"))
    assert again.workload == workload and again.digest == plan.digest and again.explain() == plan.explain()
    x = np.ones(workload.input_shape)
    assert np.array_equal(again.release(x).values, plan.release(x).values)


def test_deep_files_are_refused(tmp_path):
    for text in ['{"parts": [' * 100_000, "[" * 100_000 + "]" * 100_000]:
        (tmp_path / "deep.json").write_text(text)
        with pytest.raises(PlanFileError):
            so.Plan.load(tmp_path / "deep.json")


def test_condensed_refuses_and_scales():
    with pytest.raises(so.errors.ShapeError):
        _core.condensed(so.AllRanges(3).core, np.ones(5))
    with pytest.raises(so.errors.InvalidParameterError):
        _core.condensed(so.AllRanges(3).core, np.zeros(6))
    with pytest.raises(so.errors.UnsupportedMechanismError):
        _core.condensed(so.Histogram(2**14).core)
    # 18496 rows become 256; their squares sum to that of the lengths of the ranges, squared.
    R = _core.condensed(so.Kronecker([so.AllRanges(16), so.AllRanges(16)]).core)
    assert R.shape == (256, 256)
    assert math.isclose(np.linalg.norm(R) ** 2, sum(k * (17 - k) for k in range(1, 17)) ** 2)
