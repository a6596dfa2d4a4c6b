"""What is planned is what comes out: variances, errors, intervals, for every mechanism of every family."""

import itertools
import math

import cases
import numpy as np
import pytest

import sordino as so

TABLES = cases.table_mechanisms()
NAMES = [f"{mechanism}-{table}-{type(privacy).__name__}-{asked}" for table, privacy, mechanism, asked in TABLES]
EXACT = [case for case in TABLES if cases.table_plan(*case).fit.rmse_kind == "exact"]
BLUR = np.array([math.comb(33, k) for k in range(34)]) / 2.0**33
SIX = [0.05, 0.1, 0.35, 0.3, 0.15, 0.05]
# Filters with ends whose least squares are hard: zero rows, and a blur whose inverse is as good as none.
HARD = [
    so.Convolution(SIX, 16, "causal"),
    so.Convolution(SIX, 16, "same"),
    so.Convolution([0.0, 0.0, 1.0, 0.5], 16, "causal"),
    so.Convolution([1, 1, 0, 0, 0, 0, 0, 0, 0], 16, "same"),
    so.Convolution(BLUR, 64, "same"),
]


def own_weights(strategy, rows):
    return np.stack([strategy.answer_weights(t, np.ascontiguousarray(row)) for t, row in enumerate(rows)])


def check_variances(plan):
    """Weights of answers, decoding of unit vectors and stated variances are of one estimator."""
    strategy, workload = plan.fit.strategy, plan.workload
    variances, unit = strategy.variances(), strategy.unit_variances()
    assert np.isfinite(variances).all() and (variances >= 0.0).all()
    if strategy.geometry == "body":  # a bound for every direction
        return
    if isinstance(workload, so.Marginals) and plan.fit.mechanism.strategy == "output":
        return  # tables read off as they were measured; they answer nothing by weights
    rows = [workload.core.row(t) for t in range(len(variances))]
    weights = own_weights(strategy, rows)
    expected = weights**2 @ unit + strategy.common_noise * weights.sum(axis=1) ** 2
    np.testing.assert_allclose(expected, variances, rtol=1e-7, atol=1e-12 * variances.max())


@pytest.mark.parametrize("case", EXACT, ids=[n for n, c in zip(NAMES, TABLES, strict=True) if c in EXACT])
def test_variances_are_those_of_the_answers(case):
    check_variances(cases.table_plan(*case))


@pytest.mark.parametrize("mechanism", ["fourier-gaussian", "fourier-laplace", "fourier-composed", "fourier-planar",
                                       "fourier-grouped", "identity-laplace", "p-identity-laplace"])  # fmt: skip
@pytest.mark.parametrize("workload", HARD, ids=["causal", "same", "late", "early", "blur"])
def test_variances_where_least_squares_are_hard(workload, mechanism):
    privacy = cases.APPROX if mechanism in {"fourier-gaussian", "fourier-composed"} else cases.PURE
    plan = so.plan(workload, privacy, mechanism=mechanism)
    check_variances(plan)
    length = workload.input_shape[0]
    table = np.random.default_rng(0).integers(0, 1000, length)
    release = plan.release(table)
    interval = release.interval(0.95)
    assert np.isfinite(interval.upper).all()
    # An answer that reads nothing is 0, and known.
    empty = ~np.array([np.any(workload.core.row(t)) for t in range(length)])
    assert np.abs((interval.upper - interval.lower)[empty]).max(initial=0.0) < 1e-6
    try:
        again = release.answer(so.Matrix(np.stack([workload.core.row(t) for t in range(length)])))
    except so.errors.UnsupportedMechanismError:  # said, not answered with junk
        return
    truth = np.array([workload.core.row(t) @ table for t in range(length)])
    assert (np.abs(again.values - truth) <= 12.0 * again.stderr + 1e-6).all()


def check_widest_interval(plan):
    interval = plan.release(np.zeros(plan.workload.input_shape, dtype=np.int64)).interval(0.95)
    widest = (interval.upper - interval.lower).max() / 2.0
    # Of very many answers with nearly the largest error eight are looked at.
    few = plan.workload.core.answers_len <= 300
    assert math.isclose(plan.fit.largest_half_width(0.95), widest, rel_tol=1e-6 if few else 1e-3)


@pytest.mark.parametrize("case", EXACT, ids=[n for n, c in zip(NAMES, TABLES, strict=True) if c in EXACT])
def test_the_widest_interval_is_known_beforehand(case):
    check_widest_interval(cases.table_plan(*case))


@pytest.mark.parametrize(
    ("workload", "unit", "mechanism"),
    [
        (3 * so.Histogram(1) | so.Histogram(1), 5, "auto"),
        (so.Matrix([[3.0], [1.0]]), 5, "identity"),
        (so.Matrix([[9.0, 0, 0], [0, 1, 0], [0, 0, 1]]), 1, "output"),
        (so.Matrix([[3.0, -2, 0], [1, 1, 1]]), 1, "k-norm"),
        (so.Matrix([[2.0, 0, 0], [1.1, 1.1, 1.1]]), 1, "identity"),  # the widest is not that of the largest error
    ],
)
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_the_widest_interval_is_anywhere(workload, unit, mechanism, epsilon):
    check_widest_interval(so.plan(workload, so.PureDP(epsilon=epsilon), unit=so.AddRemove(unit), mechanism=mechanism))


@pytest.mark.statistical
@pytest.mark.parametrize("case", EXACT[:: max(len(EXACT) // 120, 1)])
def test_errors_are_as_planned(case):
    """60 releases at fixed seeds: the mean square of n answers is within six of its standard deviations.

    A normal answer's square has relative variance 2, a Laplace one's 5; answers of one release are up to fully
    correlated. Any seed passes but for one in 10^7.
    """
    plan = cases.table_plan(*case)
    data = cases.TABLES[case[0]][1]
    squares, truth = [], exact(plan, data)
    for seed in range(60):
        with so.testing.deterministic_noise(bytes([seed]) * 32):
            squares.append(np.mean((plan.release(data).unbiased - truth) ** 2))
    assert abs(np.mean(squares) / np.mean(plan.fit.answers_stderr**2) - 1.0) < 6.0 * math.sqrt(5.0 / 60.0)


def exact(plan, data):
    """Return the answers without noise, by the rows of the workload."""
    workload = plan.workload
    if isinstance(workload, so.workloads.OfRecords):
        table = np.zeros(workload.levels)
        for record in np.asarray(data):
            table[tuple(record)] += 1
        data = table
    flat = np.asarray(data, dtype=np.float64).reshape(-1)
    rows = np.stack([workload.core.row(t) for t in range(workload.core.answers_len)])
    return (rows @ flat).reshape(plan.fit.answers_stderr.shape)


@pytest.mark.statistical
@pytest.mark.parametrize("case", EXACT[:: max(len(EXACT) // 60, 1)])
def test_intervals_hold_as_often_as_they_say(case):
    """Of 200 releases at fixed seeds an interval of level .9 misses at most 40 times: a chance of 2e-5 an answer."""
    plan = cases.table_plan(*case)
    data = cases.TABLES[case[0]][1]
    truth = exact(plan, data)
    inside = np.zeros(truth.shape)
    width = None
    for seed in range(200):
        with so.testing.deterministic_noise(seed.to_bytes(2, "big") * 16):
            release = plan.release(data)
        if width is None:
            interval = release.interval(0.9)
            width = interval.upper - release.unbiased
        inside += np.abs(release.unbiased - truth) <= width + 1e-9
    assert inside.min() >= 160


@pytest.mark.parametrize("case", [case for case in cases.STREAMS if case.grows], ids=lambda case: case.name)
def test_streams_count_what_happens(case):
    """With hardly any noise, every update grows the sum by what it brings."""
    with case.loud.open() as stream:
        case.update(stream)
        before = case.total(stream)
        for count in range(1, 4):
            case.update(stream)
            assert case.total(stream) - before == pytest.approx(count * case.grows, abs=0.05)
        assert stream.step == 4 * case.steps


@pytest.mark.statistical
@pytest.mark.parametrize("case", cases.filter_streams())
def test_errors_of_streams_are_as_planned(case):
    """The mean square over all steps of 64 streams side by side, at a fixed seed; six standard deviations."""
    name, privacy, mechanism = case
    plan = so.plan(so.Continual(cases.FILTERS[name], dim=64), privacy, mechanism=mechanism)
    with so.testing.deterministic_noise(cases.KEY):
        released = plan.release(np.zeros((24, 64), dtype=np.int64)).values
    # Streams of one plan charge 64 coordinates alike: the noise is that of one.
    planned = plan.fit.std(np.arange(1, 25))
    ratio = np.mean(released**2) / np.mean(planned**2)
    assert abs(ratio - 1.0) < 6.0 * math.sqrt(5.0 / 64.0)


def test_the_table_of_cases_is_not_small():
    assert len(TABLES) > 400
    assert len(set(itertools.chain.from_iterable([[c[2]] for c in TABLES]))) >= 30
