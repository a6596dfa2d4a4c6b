"""Workloads: what they compute, equality, and refusals."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sordino as so
from conformance import cases
from sordino.accuracy.nuclear_norms import singular_mean
from sordino.errors import PlanFileError
from sordino.workloads import workload_from_spec


def dense(workload):
    return np.stack([workload.core.row(t) for t in range(workload.core.answers_len)])


def naive(kernel, n, boundary):
    """The definition, entry by entry."""
    A = np.zeros((n, n))
    center = (len(kernel) - 1) // 2 if boundary == "same" else 0
    for t in range(n):
        for j, h in enumerate(kernel):
            i = t + center - j
            if boundary == "circular":
                A[t, i % n] += h
            elif 0 <= i < n:
                A[t, i] += h
    return A[len(kernel) - 1 :] if boundary == "valid" else A


def test_the_oracle_on_a_known_case():
    assert naive([1, 2], 3, "causal").tolist() == [[1, 0, 0], [2, 1, 0], [0, 2, 1]]
    assert naive([1, 2, 3], 3, "same").tolist() == [[2, 1, 0], [3, 2, 1], [0, 3, 2]]


@given(st.integers(1, 12), st.sampled_from(["circular", "causal", "same", "valid"]), st.data())
def test_filters_are_their_definition(n, boundary, data):
    taps = data.draw(st.integers(1, n))
    tap = st.floats(-4, 4).filter(lambda h: h == 0 or abs(h) > 1e-3)
    kernel = data.draw(st.lists(tap, min_size=taps, max_size=taps).filter(any))
    workload = so.Convolution(kernel, n, boundary)
    assert np.allclose(dense(workload), naive(kernel, n, boundary))
    assert workload.answers_shape == (workload.core.answers_len,)


@pytest.mark.parametrize(("n", "taps"), [(600, 2), (600, 50), (600, 301), (600, 600), (1000, 30)])
def test_bounds_of_filters_without_a_warm_up_are_below_the_truth(n, taps):
    rng = np.random.default_rng(0)
    for kernel in (np.ones(taps), rng.normal(size=taps)):
        workload = so.Convolution(kernel, n, "valid")
        A = dense(workload)
        truth = np.linalg.norm(A, "nuc") / np.sqrt(A.size)
        assert 0.0 < singular_mean(workload)[0] <= truth * (1 + 1e-9)


def test_without_a_warm_up_there_are_whole_windows_only():
    """Answers, errors and labels of the steps that have a whole window; a stream has all steps."""
    x = np.arange(40) ** 2 % 17
    whole, valid = so.MovingAverage(7, 40), so.MovingAverage(7, 40, boundary="valid")
    for mechanism in ("identity-gaussian", "fourier-gaussian", "square-root-gaussian", "output-gaussian"):
        plans = [so.plan(w, so.GaussianDP(mu=1.0), mechanism=mechanism) for w in (whole, valid)]
        assert np.array_equal(plans[1].fit.answers_stderr, plans[0].fit.answers_stderr[6:])
    release = so.plan(valid, so.GaussianDP(mu=1e6)).release(pd.Series(x, index=pd.date_range("2024-01-01", periods=40)))
    assert np.allclose(release.values, np.convolve(x, np.ones(7) / 7, "valid"), atol=1e-4)
    assert release.labels[0] == pd.Timestamp("2024-01-07") and len(release.labels) == 34
    assert release.to_frame()["index"][0] == pd.Timestamp("2024-01-07")
    assert so.plan(valid, so.GaussianDP(mu=1.0)).release(x).to_frame()["index"][0] == 6
    with pytest.raises(so.errors.UnsupportedMechanismError):
        so.plan(so.Continual(valid), so.GaussianDP(mu=1.0))


@pytest.mark.parametrize(("n", "window"), [(300, 300), (2000, 1999), (100_000, 100_000)])
def test_few_answers_of_long_windows_are_measured_themselves(n, window):
    """Noise on m answers, each a count of all but m - 1 steps: a record changes each of them by 1."""
    workload, m = so.SlidingWindow(window, n, boundary="valid"), n - window + 1
    plan = so.plan(workload, so.PureDP(epsilon=1.0))
    assert plan.rmse <= 1.4143 * m
    x = np.arange(n) % 5
    exact = so.plan(workload, so.PureDP(epsilon=1e3), mechanism="output-laplace").release(x)
    assert np.array_equal(exact.values, np.convolve(x, np.ones(window), "valid"))


def test_queries_have_names(tmp_path):
    """In frames, files and pictures; such a matrix stays as it is written, one without names does not."""
    frame = pd.DataFrame(np.tril(np.ones((3, 3))), index=["a", "b", "total"])
    workload = so.Matrix(frame, names=frame.index)
    assert workload == so.Matrix(frame.to_numpy(), names=["a", "b", "total"]) != so.Matrix(frame.to_numpy())
    assert so.Matrix(frame).names is None and so.plan(
        so.Matrix(frame), so.PureDP(epsilon=1.0)
    ).workload == so.RunningSum(3)
    plan = so.plan(workload, so.PureDP(epsilon=1.0))
    assert plan.workload == workload == so.Plan.load(plan.save(tmp_path / "plan.json")).workload
    release = plan.release([1, 2, 3])
    assert release.labels == ["a", "b", "total"] == release.to_frame()["query"].tolist()
    for suffix in ("arrow", "parquet"):
        assert so.Release.load(release.save(tmp_path / f"r.{suffix}")).labels == release.labels
    figure = release.plot()
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == release.labels
    for names in (["a"], ["a", "a", "b"], ["a", "b", ""], ["a", "b", "c\n"]):
        with pytest.raises(so.errors.InvalidParameterError):
            so.Matrix(np.eye(3), names=names)
    with pytest.raises(so.errors.DataTypeError):
        so.Matrix(np.eye(3), names=[1, 2, 3])


def test_named_filters():
    n = 10
    assert np.allclose(dense(so.RunningSum(n)), np.tril(np.ones((n, n))))
    assert np.allclose(dense(so.MovingAverage(3, n)), naive([1 / 3] * 3, n, "causal"))
    assert np.allclose(dense(so.MovingAverage(3, n, "same")), naive([1 / 3] * 3, n, "same"))
    assert np.allclose(dense(so.workloads.Difference(n, 2)), naive([1, -2, 1], n, "causal"))
    assert np.allclose(dense(so.ExponentialSmoothing(0.5, n)), naive(0.5 ** np.arange(1, n + 1), n, "causal"))
    assert np.allclose(dense(so.workloads.PolynomialDecay(2.0, n)), naive((np.arange(n) + 1.0) ** -2, n, "causal"))
    band = dense(so.workloads.BandPass(0.1, 0.2, n))
    assert np.allclose(band @ band, band), "an ideal filter is a projection"


def test_group_convolution_and_predicates():
    # Conjunction of bits 0 and 2: the answers are the cells of that marginal, in every coset.
    d = 4
    workload = so.workloads.GroupConvolution.from_predicate(lambda bits: bits[0] and bits[2], d)
    rng = np.random.default_rng(0)
    x = rng.integers(0, 9, (2,) * d)
    answers = (dense(workload) @ x.reshape(-1)).reshape((2,) * d)
    marginal = x.sum(axis=(1, 3))
    for a in np.ndindex(*(2,) * d):
        # b satisfies the conjunction with a xor b iff b0 = not a0 and b2 = not a2.
        assert answers[a] == marginal[1 - a[0], 1 - a[2]]
    threshold = so.workloads.GroupConvolution.from_predicate(lambda bits: sum(bits) >= 2, 3)
    assert threshold.kernel.sum() == 4
    ring = so.workloads.GroupConvolution(np.arange(5.0))
    assert np.allclose(dense(ring), naive(np.arange(5.0), 5, "circular"))


def test_marginals_are_sums():
    levels = (2, 3, 2)
    workload = so.Marginals(levels, sets=[[2, 0], [1], []])
    assert workload.sets == ((0, 2), (1,), ())
    x = np.arange(12).reshape(levels)
    y = dense(workload) @ x.reshape(-1)
    assert y.tolist() == [*x.sum(axis=1).reshape(-1), *x.sum(axis=(0, 2)), x.sum()]
    assert so.Marginals(levels, k=2).sets == ((0, 1), (0, 2), (1, 2))


EQUAL = [
    (so.Histogram(3), so.Histogram((3,))),
    (so.Convolution([1, 2]), so.Convolution(np.array([1.0, 2.0]))),
    (so.Marginals([2, 2], k=1), so.Marginals([2, 2], sets=[[0], [1]])),
]
# Every workload of tables and filters, and some of other shapes.
ALL = [
    *(workload for workload, _ in cases.TABLES.values()),
    *cases.FILTERS.values(),
    so.Histogram((2, 3)),
    so.Convolution(np.linspace(1, 2, 700), 2000, "same"),
    so.ExponentialSmoothing(0.3, 9, normalized=False),
    so.Marginals([2, 3], sets=[[0, 1]], weights=[2.5]),
    so.Matrix([[1.0, 2.0]]),
]


def test_equality_and_hash():
    for a, b in EQUAL:
        assert a == b and hash(a) == hash(b)
    assert len(set(ALL)) == len(ALL)
    assert so.Histogram(3) != 3 and so.Histogram(9) != so.RunningSum(9)


@pytest.mark.parametrize("workload", ALL, ids=lambda w: w.kind)
def test_specs_rebuild(workload):
    again = workload_from_spec(workload.kind, workload.spec())
    assert again == workload and repr(again) == repr(workload) and len(repr(workload)) < 300
    with pytest.raises(PlanFileError):
        workload_from_spec(workload.kind, {"unknown": 1})
    with pytest.raises(PlanFileError):
        workload_from_spec("no such kind", {})


def test_arrays_are_copied_and_read_only():
    kernel = np.ones(3)
    workload = so.Convolution(kernel, 5)
    kernel[0] = 7
    assert workload.kernel[0] == 1
    with pytest.raises(ValueError, match="read-only"):
        workload.kernel[0] = 7


REFUSED = [
    (lambda: so.Histogram(0), so.errors.InvalidParameterError),
    (lambda: so.Histogram(2**40), so.errors.InvalidParameterError),
    (lambda: so.Histogram((2**20, 2**20)), so.errors.InvalidParameterError),
    (lambda: so.Histogram(2.5), so.errors.DataTypeError),
    (lambda: so.Histogram(True), so.errors.DataTypeError),
    (lambda: so.Histogram(()), so.errors.DataTypeError),
    (lambda: so.MovingAverage(0, 5), so.errors.InvalidParameterError),
    (lambda: so.MovingAverage(6, 5), so.errors.InvalidParameterError),
    (lambda: so.MovingAverage(10**12, 10**12), so.errors.InvalidParameterError),
    (lambda: so.MovingAverage(2, 5, "weird"), so.errors.InvalidParameterError),
    (lambda: so.Convolution([0.0, 0.0]), so.errors.InvalidParameterError),
    (lambda: so.Convolution([]), so.errors.InvalidParameterError),
    (lambda: so.Convolution([float("nan")]), so.errors.InvalidParameterError),
    (lambda: so.Convolution([float("inf"), 1.0]), so.errors.InvalidParameterError),
    (lambda: so.Convolution([1e-300]), so.errors.InvalidParameterError),
    (lambda: so.Convolution([1e300]), so.errors.InvalidParameterError),
    (lambda: so.Convolution("abc"), so.errors.DataTypeError),
    (lambda: so.Convolution([[1.0]]), so.errors.DataTypeError),
    (lambda: so.Convolution([1.0] * 9, 5), so.errors.InvalidParameterError),
    (lambda: so.Convolution([1.0] * 10, 5, "same"), so.errors.InvalidParameterError),
    (lambda: so.ExponentialSmoothing(1.0, 5), so.errors.InvalidParameterError),
    (lambda: so.ExponentialSmoothing(float("nan"), 5), so.errors.InvalidParameterError),
    (lambda: so.ExponentialSmoothing(0.5, 5, boundary="same"), so.errors.InvalidParameterError),
    (lambda: so.workloads.PolynomialDecay(-1.0, 5), so.errors.InvalidParameterError),
    (lambda: so.workloads.BandPass(0.3, 0.2, 9), so.errors.InvalidParameterError),
    (lambda: so.workloads.BandPass(0.41, 0.42, 5), so.errors.InvalidParameterError),
    (lambda: so.workloads.Difference(5, 0), so.errors.InvalidParameterError),
    (lambda: so.workloads.Difference(5, 17), so.errors.InvalidParameterError),
    (lambda: so.RunningSum(-1), so.errors.InvalidParameterError),
    (lambda: so.workloads.GroupConvolution(5.0), so.errors.InvalidParameterError),
    (lambda: so.workloads.GroupConvolution(np.zeros((2, 2))), so.errors.InvalidParameterError),
    (lambda: so.workloads.GroupConvolution.from_predicate(lambda bits: True, 30), so.errors.InvalidParameterError),
    (lambda: so.workloads.GroupConvolution.from_predicate(lambda bits: "x", 2), so.errors.DataTypeError),
    (lambda: so.Marginals([2, 2]), so.errors.InvalidParameterError),
    (lambda: so.Marginals([2, 1], k=1), so.errors.InvalidParameterError),
    (lambda: so.Marginals([2, 2], k=3), so.errors.InvalidParameterError),
    (lambda: so.Marginals([2, 2], sets=[[2]]), so.errors.InvalidParameterError),
    (lambda: so.Marginals([2, 2], sets=[[0], [0]]), so.errors.InvalidParameterError),
    (lambda: so.Marginals([2, 2], sets=[[0]], weights=[0.0]), so.errors.InvalidParameterError),
    (lambda: so.Marginals([2, 2], sets=[[0]], weights=[1.0, 2.0]), so.errors.InvalidParameterError),
    (lambda: so.Marginals([2, 2], sets=[]), so.errors.InvalidParameterError),
    (lambda: so.Marginals("22", k=1), so.errors.DataTypeError),
    (lambda: so.Matrix(np.zeros((0, 3))), so.errors.InvalidParameterError),
    (lambda: so.Matrix([1.0, 2.0]), so.errors.DataTypeError),
    (lambda: so.Matrix([[1.0], [2.0, 3.0]]), so.errors.DataTypeError),
]


@pytest.mark.parametrize("index", range(len(REFUSED)))
def test_nonsense_is_refused(index):
    make, error = REFUSED[index]
    with pytest.raises(error) as caught:
        make()
    assert isinstance(caught.value, so.SordinoError) and 10 < len(str(caught.value)) < 300
