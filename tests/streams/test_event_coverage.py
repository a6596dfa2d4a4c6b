"""Intervals of counts of events, cuts, words and reports hold as often as they say, and errors are as planned.

All with fixed keys. Had they been random, each comparison would fail with probability below 1e-6 by chance.
"""

import itertools
import math
import warnings

import numpy as np
import pytest
from scipy.stats import binom

import sordino as so

MU = so.GaussianDP(mu=1.0)
PURE = so.PureDP(epsilon=1.0)
CHANCE = 1e-6
LEVEL = 0.9

pytestmark = pytest.mark.statistical


@pytest.fixture(autouse=True)
def _silent():
    """The warning about known noise comes once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def key(i):
    return (10**6 + i).to_bytes(32, "little")


def opened(plan, i):
    with so.testing.deterministic_noise(key(i)):
        return plan.open()


def holds(misses, runs, level=LEVEL, *, exact=False):
    """No more misses than the level says; if `exact`, not far fewer."""
    assert misses <= binom.isf(CHANCE, runs, 1.0 - level), (misses, runs)
    if exact:
        assert misses >= binom.ppf(CHANCE, runs, 1.0 - level), (misses, runs)


def misses(interval, truth):
    """Whether it misses anything."""
    return bool(np.any(interval.lower > truth) or np.any(interval.upper < truth))


EVENTS = [(0, 1), (1, 2), (0, 2), (2, 3), (1, 3), (0, 3), (3, 4)]
FUNCTIONS = [
    (so.events.EdgeCount(5, 8), 7),
    (so.events.TriangleCount(5, 8), 4),
    (so.events.StarCount(2, 5, 8), 15),
    (so.events.SpanningForestCost(5, 8, max_weight=2.0), 8.0),
    (so.events.DegreeHistogram(5, 8, max_degree=4), [0, 1, 0, 3, 1]),
]


@pytest.mark.slow
@pytest.mark.parametrize("privacy", [MU, PURE], ids=["gaussian", "laplace"])
@pytest.mark.parametrize(("workload", "truth"), FUNCTIONS, ids=lambda v: getattr(v, "kind", ""))
def test_functions_of_graphs(workload, truth, privacy):
    """Intervals of one counter and of all together; variances at three steps."""
    runs, plan = 400, so.plan(so.Continual(workload), privacy)
    truth = np.array(truth, dtype=float)
    u, v = map(list, zip(*EVENTS, strict=True))
    single = together = 0
    values = []
    for i in range(runs):
        with opened(plan, i) as stream:
            answers = stream.update(u, v)
            values.append(answers[[0, 3, 6]])
            interval = stream.interval(LEVEL)
            single += misses(interval, truth) if truth.ndim == 0 else not interval.lower[1] <= 1 <= interval.upper[1]
            together += misses(stream.interval(LEVEL, simultaneous=True), truth)
    holds(single, runs, exact=True)
    holds(together, runs, exact=truth.ndim == 0)
    values = np.array(values)
    values = values.reshape(runs, 3, -1)
    count = runs * values.shape[2]
    # Kurtosis of a Laplace variate is 6, of a sum of them less.
    spread = math.sqrt((2.0 if privacy is MU else 5.0) / count)
    found = values.var(axis=0).mean(axis=1) / plan.fit.std([1, 4, 7]) ** 2
    np.testing.assert_allclose(found, 1.0, atol=6.0 * spread)


# Cuts


N = 5
SETS = [
    (side, other)
    for labels in itertools.product((0, 1, 2), repeat=N)
    if (side := [v for v in range(N) if labels[v] == 1]) and (other := [v for v in range(N) if labels[v] == 2])
]


@pytest.mark.slow
@pytest.mark.parametrize("privacy", [MU, PURE], ids=["gaussian", "laplace"])
@pytest.mark.parametrize("steps", [1, 6])
def test_cuts_chosen_beforehand_and_afterwards(privacy, steps):
    """All 180 pairs of disjoint sets, at the last step and at all steps; by the union bound they hold more often."""
    runs, plan = 300, so.plan(so.events.WeightedGraph(N, steps), privacy)
    assert len(SETS) == 3**N - 2 * 2**N + 1
    u, v = np.triu_indices(N, 1)
    indicator = np.array(
        [[(a in s and b in p) or (b in s and a in p) for a, b in zip(u, v, strict=True)] for s, p in SETS]
    )
    beforehand = three = last = every = degree = extreme = 0
    widths, furthest = {}, 0.0
    for i in range(runs):
        anywhere = False
        with opened(plan, i) as stream:
            for t in range(1, steps + 1):
                stream.update(0, 1, 0.0)
                if t not in widths:
                    found = [stream.cut(*pair) for pair in SETS]
                    widths[t] = [
                        np.array(
                            [np.ptp([*_ends(cut.interval_afterwards(LEVEL, every_step=e))]) / 2.0 for cut in found]
                        )
                        for e in (False, True)
                    ]
                errors = np.abs(indicator @ stream.read(np.arange(plan.fit.coordinates)))
                anywhere |= bool((errors > widths[t][1]).any())
            every += anywhere
            last += bool((errors > widths[steps][0]).any())
            furthest = max(furthest, float((errors / widths[steps][0]).max()))
            beforehand += misses(stream.cut([0, 1], [3]).interval(LEVEL), 0.0)
            three += any(misses(stream.cut(s).interval(LEVEL, answers=3), 0.0) for s in ([0], [1, 2], [3]))
            graph = stream.graph()
            degree += misses(graph.minimum_degree(LEVEL)[1], 0.0)
            extreme += any(
                misses(best.interval(LEVEL), 0.0)
                for best in (graph.minimum_cut(), graph.maximum_cut(), graph.sparsest_cut())
            )
    holds(beforehand, runs, exact=True)
    for count in (three, last, every, degree, extreme):
        holds(count, runs)
    # Nor are they beyond all measure.
    assert furthest > 0.5


def _ends(interval):
    return interval.lower, interval.upper


def test_the_standard_error_of_a_cut():
    runs, plan = 400, so.plan(so.Continual(so.events.WeightedGraph(9, 4), reads="lazy"), MU)
    values = []
    for i in range(runs):
        with opened(plan, i) as stream:
            stream.update([0] * 3, [1] * 3, 0.0)
            cut = stream.cut([0, 1, 2], [4, 7])
            values.append(cut.value)
    assert cut.stderr == pytest.approx(plan.fit.std([3])[0] * math.sqrt(6.0))
    assert np.var(values) / cut.stderr**2 == pytest.approx(1.0, abs=6.0 * math.sqrt(2.0 / runs))


# Words


@pytest.mark.slow
@pytest.mark.parametrize("reads", ["dense", "lazy"])
@pytest.mark.parametrize("privacy", [MU, PURE], ids=["gaussian", "laplace"])
def test_words(privacy, reads):
    """One word, all words, and what is said of frequent ones."""
    runs, text = 300, [0] * 150 + [1, 0] * 20 + [2]
    plan = so.plan(so.Continual(so.events.SubstringCounts(3, 2, len(text)), reads=reads), privacy)
    plain = so.plan(so.Continual(plan.workload.workload, reads="dense"), so.GaussianDP(mu=1e6))
    with plain.open() as stream:
        stream.update(text)
        truth = np.rint(stream.read(np.arange(12)))
    one = all_words = heavy = 0
    for i in range(runs):
        with opened(plan, i) as stream:
            stream.update(text)
            errors = np.abs(stream.read(np.arange(12)) - truth)
            one += errors[5] > stream.half_width(LEVEL, words=1)
            all_words += errors.max() > stream.half_width(LEVEL)
            threshold = 2.0 * stream.half_width(LEVEL)
            found = {plan.fit.events.index(word.word) for word in stream.heavy_hitters(level=LEVEL)}
            wrong = any(truth[index] < threshold / 2.0 for index in found)
            missing = any(truth[index] >= 1.5 * threshold and index not in found for index in range(12))
            heavy += wrong or missing
    holds(one, runs, exact=True)
    holds(all_words, runs)
    holds(heavy, runs)


# Reports


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "reached"),
    # Intervals of responses are by Bernstein's inequality; subsets say the largest error of what a value may be.
    [("blt", 0.9), ("identity-laplace", 0.9), ("waves", 0.6), ("subset-selection", 0.5)],
)
def test_reports(mechanism, reached):
    """All shares together, of the clients and of where they came from; the standard error of each share."""
    runs, n = 200, 400
    privacy = so.ApproxDP(epsilon=2.0, delta=1e-6)
    plan = so.plan(so.local.LocalSurvey(n, intervals=12), privacy, mechanism=mechanism)
    rng = np.random.default_rng(7)
    asked = population = 0
    errors = []
    for i in range(runs):
        values = rng.beta(2, 3, n)
        server = plan.server()
        with so.testing.deterministic_noise(key(i)):
            server.add_many(plan.encode_clients(values))
        found = server.estimate()
        truth = np.array([(values <= theta).mean() for theta in found.grid])
        # The distribution function of beta(2, 3).
        x = found.grid
        source = x**2 * (6.0 - 8.0 * x + 3.0 * x**2)
        asked += misses(found.interval(LEVEL), truth)
        population += misses(found.interval(LEVEL, population=True), source)
        errors.append(found.shares - truth)
    width = plan.fit.half_width(LEVEL, n)
    holds(asked, runs)
    holds(population, runs)
    assert np.abs(errors / width).max() > reached
    spread = math.sqrt(2.0 / runs)  # sums over 400 clients are nearly normal
    variances = np.var(errors, axis=0) / found.stderr**2
    assert variances.max() <= 1.0 + 6.0 * spread
    assert variances.min() >= 1.0 - 6.0 * spread or mechanism == "subset-selection"
    assert np.abs(np.mean(errors, axis=0) / found.stderr).max() < 6.0 / math.sqrt(runs)
    np.testing.assert_allclose(plan.fit.std(4 * n) * 2.0, plan.fit.std(n))
