"""Streams of events through the public interface: exact small answers, any order of items, lazy as dense."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import application_oracles as oracles
import sordino as so

# Noise that rounds away.
LOUD = so.GaussianDP(mu=1e6)
MU = so.GaussianDP(mu=1.0)
K4 = [(0, 1, 4), (1, 2, 1), (0, 2, 2), (2, 3, 5), (1, 3, 3), (0, 3, 1)]
CUTS = [(0, 1, 1.0), (1, 2, 0.5), (0, 1, 0.25), (2, 3, 1.0), (0, 3, 0.75)]


@pytest.fixture(autouse=True)
def _known(known_noise):
    """No test can fail by chance."""


def columns(items):
    return [list(column) for column in zip(*items, strict=True)]


def rounded(answers):
    """The exact answers: hardly any noise is left."""
    found = np.rint(answers)
    np.testing.assert_allclose(answers, found, atol=0.05)
    return found.astype(int).tolist()


# The complete graph of four vertices, edge by edge

FUNCTIONS = [
    (so.events.EdgeCount(4, 6), [1, 2, 3, 4, 5, 6]),
    (so.events.TriangleCount(4, 6), [0, 0, 1, 1, 2, 4]),
    (so.events.StarCount(2, 4, 6), [0, 1, 3, 5, 8, 12]),
    (so.events.StarCount(3, 4, 6), [0, 0, 0, 1, 2, 4]),
    (
        so.events.DegreeHistogram(4, 6, max_degree=3),
        [[2, 2, 0, 0], [1, 2, 1, 0], [1, 0, 3, 0], [0, 1, 2, 1], [0, 0, 2, 2], [0, 0, 0, 4]],
    ),
    (so.events.SpanningForestCost(4, 6, max_weight=8.0, weight_bits=3), [4, 5, 3, 8, 6, 4]),
]


@pytest.mark.parametrize(("workload", "expected"), FUNCTIONS, ids=lambda v: getattr(v, "kind", ""))
def test_the_complete_graph_of_four_vertices(workload, expected):
    u, v, w = columns(K4)
    weighted = isinstance(workload, so.events.SpanningForestCost)
    plan = so.plan(so.Continual(workload), LOUD)
    with plan.open() as stream:
        assert stream.value is None
        assert stream.interval(0.9) is None
        assert rounded(stream.update(u, v, w) if weighted else stream.update(u, v)) == expected
        assert stream.step == 6
        assert rounded(stream.value) == expected[-1]
        interval = stream.interval(0.95, simultaneous=True)
        assert np.all(interval.lower < np.array(expected[-1]) + 0.1)
        assert np.all(interval.upper > np.array(expected[-1]) - 0.1)
    with plan.open() as stream:
        for item, answer in zip(K4, expected, strict=True):
            one = stream.update(*item) if weighted else stream.update(*item[:2])
            assert isinstance(one, float) == (np.ndim(answer) == 0)
            assert rounded(one) == answer


def test_cuts_by_hand():
    for reads in ("dense", "lazy"):
        plan = so.plan(so.Continual(so.events.WeightedGraph(4, 5), reads=reads), LOUD)
        assert plan.workload.reads == reads
        found = []
        with plan.open() as stream:
            for event in CUTS:
                stream.update(*event)
                found.append([stream.cut([0]).value, stream.cut([1, 0]).value, stream.cut([0], [3]).value])
            weights = stream.weights([0, 1, 2, 3], [1, 0, 3, 0])
            graph = stream.graph()
        expected = [[1, 0, 0], [1, 0.5, 0], [1.25, 0.5, 0], [1.25, 0.5, 0], [2, 1.25, 0.75]]
        np.testing.assert_allclose(found, expected, atol=1e-3)
        np.testing.assert_allclose(weights, [1.25, 1.25, 1.0, 0.75], atol=1e-3)
        matrix = [[0, 1.25, 0, 0.75], [1.25, 0, 0.5, 0], [0, 0.5, 0, 1], [0.75, 0, 1, 0]]
        np.testing.assert_allclose(graph.matrix(), matrix, atol=1e-3)
        np.testing.assert_allclose(graph.degrees(), [2.0, 1.75, 1.5, 1.75], atol=1e-3)
        np.testing.assert_allclose(graph.cut([0, 2]).value, 3.5, atol=1e-3)


def test_extreme_cuts_are_the_best_of_all():
    rng = np.random.default_rng(2)
    n = 7
    u, v = np.triu_indices(n, 1)
    w = rng.uniform(0, 1, len(u))
    with so.plan(so.events.WeightedGraph(n, 1), LOUD).open() as stream:
        stream.update(u, v, w, together=True)
        graph = stream.graph()
    cuts = [graph.cut(list(s)) for k in range(1, n) for s in itertools.combinations(range(n), k)]
    assert graph.minimum_cut().cut.value == pytest.approx(min(c.value for c in cuts))
    assert graph.maximum_cut().cut.value == pytest.approx(max(c.value for c in cuts))
    assert graph.sparsest_cut().ratio == pytest.approx(min(c.value / (c.side * c.other) for c in cuts))
    for best in (graph.minimum_cut(), graph.maximum_cut(), graph.sparsest_cut()):
        assert best.exact
        assert best.cut.value == pytest.approx(graph.cut(list(best.side)).value)
    least, interval = graph.minimum_degree(0.9)
    assert least == pytest.approx(graph.degrees().min())
    assert interval.lower <= least <= interval.upper
    a, b, weights = graph.edges(least=0.5)
    assert np.array_equal(weights, graph.pairs[np.abs(graph.pairs) >= 0.5])
    assert np.array_equal(graph.matrix()[a, b], weights)
    assert np.allclose(graph.to_scipy().todense(), graph.matrix())


WORDS = [
    (so.events.SubstringCounts, "abaab", 3, {"a": 3, "aa": 1, "aab": 1, "ab": 2, "aba": 1, "b": 2, "ba": 1, "baa": 1}),
    (
        so.events.EpisodeCounts,
        "ababb",
        3,
        {"a": 2, "aa": 1, "aab": 1, "ab": 2, "aba": 1, "abb": 2, "b": 3, "ba": 1, "bab": 1, "bb": 2, "bbb": 1},
    ),
    (
        so.events.EpisodeCounts,
        "abcab",
        2,
        {"a": 2, "b": 2, "c": 1, "aa": 1, "ab": 2, "ac": 1, "ba": 1, "bb": 1, "bc": 1, "ca": 1, "cb": 1},
    ),
]


@pytest.mark.parametrize("reads", ["dense", "lazy"])
@pytest.mark.parametrize(("kind", "text", "longest", "expected"), WORDS)
def test_words_by_hand(kind, text, longest, expected, reads):
    workload = kind("abc", longest, len(text))
    plan = so.plan(so.Continual(workload, reads=reads), LOUD)
    with plan.open() as stream:
        stream.update(text)
        counts = rounded(stream.read(np.arange(workload.coordinates)))
        assert {workload.word(i): count for i, count in enumerate(counts) if count} == expected
        assert rounded(stream.count(list(expected))) == list(expected.values())
        heavy = stream.heavy_hitters(1.5)
        # Only words whose beginnings are heavy are looked at, which is all that are heavy.
        assert {word.word: round(word.count) for word in heavy} == {w: c for w, c in expected.items() if c >= 2}
        assert [word.count for word in heavy] == sorted((word.count for word in heavy), reverse=True)


def test_words_have_indices_and_back():
    for alphabet, letters in (("abc", "abc"), (3, (0, 1, 2)), (["x", "yy", "z"], ("x", "yy", "z"))):
        workload = so.events.SubstringCounts(alphabet, 3)
        words = [w for k in range(1, 4) for w in itertools.product(letters, repeat=k)]
        assert [workload.index(word) for word in words] == list(range(workload.coordinates))
        assert [tuple(workload.word(i)) for i in range(workload.coordinates)] == words


# Any stream


N_VERTICES, LONGEST = 6, 14
FOREST = {"max_weight": 8.0, "weight_bits": 3}
vertex = st.integers(-1, N_VERTICES)
events = st.lists(st.tuples(vertex, vertex, st.integers(-1, 9)), min_size=1, max_size=LONGEST)
cuts = st.lists(st.integers(0, LONGEST), max_size=4)


def chunks(length, places):
    """Ends of steps of any number of events, none included."""
    return [*sorted(min(place, length) for place in places), length]


def fed(stream, items, ends, weighted, names=None):
    """Answers after each step."""
    answers, start = [], 0
    for end in ends:
        u, v, w = columns(items[start:end]) if end > start else ([], [], [])
        if names is not None:
            u, v = ([names[x] if 0 <= x < len(names) else "nobody" for x in side] for side in (u, v))
        more = ([float("nan") if x < 0 else float(x) for x in w],) if weighted else ()
        answers.append(stream.update(u, v, *more, together=True))
        start = end
    return np.array(answers)


@pytest.mark.slow
@pytest.mark.parametrize("max_degree", [None, 1, 2, 4])
@given(items=events, places=cuts, named=st.booleans())
def test_functions_of_any_graph_are_those_of_its_prefixes(max_degree, items, places, named):
    n, ends = N_VERTICES, chunks(len(items), places)
    names = [f"v{i}" for i in range(n)] if named else None
    kept = items if max_degree is None else oracles.bounded(items, n, max_degree)
    weights = [item if item[2] >= 0 else None for item in items]
    cases = [
        (so.events.EdgeCount, {}, oracles.edge_counts(kept, n)),
        (so.events.TriangleCount, {}, oracles.triangle_counts(kept, n)),
        (so.events.StarCount, {"k": 2}, oracles.star_counts(kept, n, 2)),
        (so.events.StarCount, {"k": 3}, oracles.star_counts(kept, n, 3)),
    ]
    if max_degree is None:
        cases.append((so.events.SpanningForestCost, FOREST, oracles.forest_costs(weights, n, 8)))
    else:
        cases.append((so.events.DegreeHistogram, {}, oracles.degree_histograms(kept, n, max_degree)))
    for kind, options, truth in cases:
        bound = {} if kind is so.events.SpanningForestCost else {"max_degree": max_degree}
        workload = kind(vertices=names or n, length=len(ends), **options, **bound)
        plan = so.plan(so.Continual(workload), LOUD)
        with plan.open() as stream:
            answers = fed(stream, items, ends, kind is so.events.SpanningForestCost, names)
        first = np.zeros(truth.shape[1:], int)
        if kind is so.events.DegreeHistogram:
            first[0] = n
        assert rounded(answers) == [(truth[end - 1] if end else first).tolist() for end in ends]


@given(items=events, places=cuts, signed=st.booleans(), dense=st.booleans(), side=st.sets(st.integers(0, 5)))
def test_cuts_of_any_graph(items, places, signed, dense, side):
    n, ends = N_VERTICES, chunks(len(items), places)
    items = [(u, v, w - 5 if signed else w) for u, v, w in items]
    least = -4 if signed else 0
    workload = so.events.WeightedGraph(n, len(ends), max_weight=4.0, weight_bits=2, one_signed=not signed)
    side = sorted(side)[: n - 1] or [0]
    truth = oracles.cut_weights(items, n, set(side), least=least, most=4)
    plan = so.plan(so.Continual(workload, reads="dense" if dense else "lazy"), LOUD)
    start = 0
    with plan.open() as stream:
        for end in ends:
            u, v, w = columns(items[start:end]) if end > start else ([], [], [])
            stream.update(u, v, [float(x) for x in w], together=True)
            np.testing.assert_allclose(stream.cut(side).value, truth[end - 1] if end else 0.0, atol=1e-2)
            start = end
        pairs = dict.fromkeys(itertools.combinations(range(n), 2), 0)
        for u, v, w in items:
            if oracles.is_weighted_edge((u, v, w), n, least, 4):
                pairs[min(u, v), max(u, v)] += w
        np.testing.assert_allclose(stream.graph().pairs, list(pairs.values()), atol=1e-2)
        # Pairs come in the order of the upper triangle.
        np.testing.assert_allclose(stream.weights(*columns(pairs)), list(pairs.values()), atol=1e-2)


@given(
    text=st.lists(st.integers(-1, 3), min_size=1, max_size=12),
    places=cuts,
    longest=st.integers(1, 3),
    dense=st.booleans(),
    episodes=st.booleans(),
    named=st.booleans(),
)
def test_words_of_any_text(text, places, longest, dense, episodes, named):
    """Letters 0 to 2; -1 and 3 are unknown. With names too, and several letters a step."""
    ends = chunks(len(text), places)
    kind, oracle = (
        (so.events.EpisodeCounts, oracles.episode_counts)
        if episodes
        else (so.events.SubstringCounts, oracles.substring_counts)
    )
    workload = kind("xyz" if named else 3, longest, len(ends), batches=True)
    truth = oracle([x if x >= 0 else None for x in text], 3, longest)
    items = "".join("xyz?"[x] for x in text) if named else text
    start = 0
    with so.plan(so.Continual(workload, reads="dense" if dense else "lazy"), LOUD).open() as stream:
        for end in ends:
            stream.update(items[start:end], together=True)
            expected = truth[end - 1].tolist() if end else [0] * workload.coordinates
            assert rounded(stream.read(np.arange(workload.coordinates))) == expected
            start = end


def test_vertices_and_letters_by_any_integer_type():
    for dtype in (np.int8, np.uint8, np.int32, np.uint64, np.int64, object):
        ids = np.array([0, 1, 2], dtype=np.int64).astype(dtype)
        with so.plan(so.events.EdgeCount(3, 3), LOUD).open() as stream:
            assert rounded(stream.update(ids, np.roll(ids, 1))) == [1, 2, 3]
    with so.plan(so.events.EdgeCount(3, 2), LOUD).open() as stream:
        # Beyond every index, and beyond what a signed one holds: a null item. So is what is no index in a list.
        assert rounded(stream.update(np.array([2**64 - 1, 0], np.uint64), np.array([0, 1], np.uint64))) == [0, 1]


def test_items_that_are_none_are_null_items():
    """Whatever else is in the list."""
    for bad in (None, 2**70, -1, 2**63, "x", 1.5, True):
        with so.plan(so.events.EdgeCount(3, 2), LOUD).open() as stream:
            assert rounded(stream.update([bad, 0], [1, 1])) == [0, 1]
        with so.plan(so.events.WeightedGraph(["a", "b"], 2), LOUD).open() as graph:
            graph.update([bad, "a"], ["b", "b"], [0.5, 0.25])
            assert graph.weights(["a"], ["b"])[0] == pytest.approx(0.25, abs=1e-3)
    with so.plan(so.events.WeightedGraph(2, 2), LOUD).open() as graph:
        graph.update([0, 0], [1, 1], [None, 0.5])
        assert graph.weights([0], [1])[0] == pytest.approx(0.5, abs=1e-3)
    with so.plan(so.events.SubstringCounts(3, 2, 4), LOUD).open() as text:
        text.update([0, 2**70, 1, 0])
        assert rounded(text.count([[0, 1], [1, 0]])) == [0, 1]


@pytest.mark.parametrize("reads", ["dense", "lazy"])
def test_a_step_without_a_letter_is_one_with_a_null_letter(reads):
    """Else the letters before and after it would join, which the sensitivity of letters one by one does not cover."""
    with so.plan(so.Continual(so.events.SubstringCounts("ab", 2, 4), reads=reads), LOUD).open() as text:
        text.update("a")
        text.update("", together=True)
        text.update("b")
        assert rounded(text.count(["a", "b", "ab"])) == [1, 1, 0]
    with so.plan(so.Continual(so.events.SubstringCounts("ab", 2, 4, batches=True), reads=reads), LOUD).open() as text:
        for part in ("a", "", "b"):
            text.update(part, together=True)
        assert rounded(text.count(["a", "b", "ab"])) == [1, 1, 1]


# Lazy and dense


MECHANISMS = ["identity", "output", "binary-tree", "square-root", "blt", "two-diagonals", "time-varying-blt"]


def letters_of(steps, seed=1):
    return np.random.default_rng(seed).integers(-1, 3, steps)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_what_is_read_lazily_depends_on_nothing_but_the_step(mechanism):
    """Not on how letters are split, on what was read before, on the order, nor on how often."""
    steps = 23
    workload, text = so.events.SubstringCounts(3, 3, steps), letters_of(steps)
    plan = so.plan(so.Continual(workload, reads="lazy"), MU, mechanism=mechanism)
    everything = np.arange(workload.coordinates)
    with plan.open() as stream:
        stream.update(text)
        expected = stream.read(everything)
        assert np.array_equal(stream.read(everything), expected)
        assert np.array_equal(stream.read(everything[::-1]), expected[::-1])
        assert np.array_equal(stream.read(np.array([5, 5, 2])), expected[[5, 5, 2]])
    with plan.open() as stream:
        for part in np.split(text, [1, 2, 9]):
            stream.update(part)
            seen = stream.read(everything[::3])
            assert np.array_equal(stream.read(everything[::3]), seen)
        assert np.array_equal(np.concatenate([stream.read(everything[:7]), stream.read(everything[7:])]), expected)
    with so.testing.deterministic_noise(bytes(range(32))), plan.open() as stream:
        stream.update(text)
        assert not np.array_equal(stream.read(everything), expected)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("reads", ["dense", "lazy"])
def test_two_streams_under_one_key_differ_by_the_truth(mechanism, reads):
    """The noise cancels: it does not depend on the letters."""
    steps, longest = 11, 2
    workload = so.events.SubstringCounts(3, longest, steps)
    plan = so.plan(so.Continual(workload, reads=reads), MU, mechanism=mechanism)
    one, two = letters_of(steps, 1), letters_of(steps, 2)
    truths = [oracles.substring_counts([x if x >= 0 else None for x in text], 3, longest) for text in (one, two)]
    with plan.open() as first, plan.open() as second:
        for t in range(steps):
            first.update(one[t : t + 1])
            second.update(two[t : t + 1])
            moved = first.read(np.arange(12)) - second.read(np.arange(12))
            np.testing.assert_allclose(moved, (truths[0] - truths[1])[t], atol=1e-3)


def test_dense_streams_do_not_care_how_items_are_split():
    for workload in (so.events.DegreeHistogram(6, 12, max_degree=2), so.events.TriangleCount(6, 12)):
        rng = np.random.default_rng(4)
        u, v = rng.integers(-1, 7, (2, 12))
        plan = so.plan(so.Continual(workload), MU)
        with plan.open() as whole, plan.open() as parts:
            expected = whole.update(u, v)
            found = [parts.update(u[i:j], v[i:j]) for i, j in ((0, 0), (0, 1), (1, 6), (6, 12))]
            assert np.array_equal(np.concatenate(found), expected)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_lazy_noise_is_the_noise_of_a_sequential_stream(mechanism):
    """Means, variances and correlations over 44,850 counters at four steps, lazily and densely.

    At 6 standard errors with fixed keys: below 1e-6 in all had they been random.
    """
    n, steps, read = 300, 9, (1, 4, 6, 9)
    errors = {}
    for reads in ("dense", "lazy"):
        plan = so.plan(so.Continual(so.events.WeightedGraph(n, steps), reads=reads), MU, mechanism=mechanism)
        rows = []
        with plan.open() as stream:
            for t in range(1, steps + 1):
                stream.update([0], [1], [0.0])
                if t in read:
                    rows.append(stream.read(np.arange(plan.fit.coordinates)))
        errors[reads] = np.array(rows)
        count = plan.fit.coordinates
        ratios = np.mean(errors[reads] ** 2, axis=1) / plan.fit.std(read) ** 2
        np.testing.assert_allclose(ratios, 1.0, atol=6.0 * math.sqrt(2.0 / count))
        assert np.abs(errors[reads].mean(axis=1) / plan.fit.std(read)).max() < 6.0 / math.sqrt(count)
    one, two = (np.corrcoef(errors[reads]) for reads in ("dense", "lazy"))
    assert np.abs(one - two).max() < 6.0 * math.sqrt(2.0 / count)
    # Neighbouring counters have nothing to do with each other.
    for reads in ("dense", "lazy"):
        last = errors[reads][-1]
        assert abs(np.corrcoef(last[1:], last[:-1])[0, 1]) < 6.0 / math.sqrt(count)


def test_large_graphs_take_the_room_of_their_events():
    """5e9 pairs of vertices: no table of them, neither for events nor for cuts."""
    n, steps = 100_000, 500
    plan = so.plan(so.events.WeightedGraph(n, steps), MU)
    assert plan.workload.reads == "lazy"
    rng = np.random.default_rng(5)
    with plan.open() as stream:
        stream.update(*rng.integers(0, n, (2, steps)))
        assert stream.counters.bytes < 2**20
        cut = stream.cut([7], range(20, 30))
        assert (cut.side, cut.other) == (1, 10)
        assert cut.stderr == pytest.approx(stream.stderr * math.sqrt(10.0))
        assert stream.weights([0, n - 1], [1, n - 2]).shape == (2,)
        with pytest.raises(so.errors.UnsupportedMechanismError, match="cut"):
            stream.graph()
    functions = so.plan(so.events.TriangleCount(n, steps, max_degree=5), MU)
    with functions.open() as stream:
        assert stream.update(*rng.integers(0, n, (2, steps))).shape == (steps,)


def test_an_unknown_length():
    for workload in (so.events.EdgeCount(5), so.events.WeightedGraph(5), so.events.SubstringCounts(2, 2)):
        plan = so.plan(so.Continual(workload), LOUD)
        assert plan.workload.horizon == "unbounded"
        with plan.open() as stream:
            for _ in range(3):
                if isinstance(workload, so.events.SubstringCounts):
                    stream.update([0, 1])
                else:
                    stream.update([0, 1], [1, 2])
            assert stream.step == 6
            assert stream.stderr == plan.fit.std([6])[0]


def test_more_samples_than_one_key_has_are_refused_by_the_plan() -> None:
    privacy = so.ApproxDP(epsilon=1.0, delta=1e-6)
    with pytest.raises(so.errors.InvalidParameterError, match="declare fewer steps"):
        so.plan(so.events.WeightedGraph(10_000), privacy)  # no length: 2^40 steps
    assert so.plan(so.events.WeightedGraph(10_000, 2**30), privacy).workload.reads == "lazy"


@pytest.mark.parametrize("vertices", [15, 40])
def test_cuts_of_small_released_graphs_are_proved_best(vertices):
    plan = so.plan(so.Continual(so.events.WeightedGraph(vertices, 16)), so.ZeroConcentratedDP(rho=1.0))
    with plan.open() as stream:
        stream.update([0], [1])
        graph = stream.graph()
    for cut in (graph.minimum_cut(), graph.maximum_cut(), graph.sparsest_cut()):
        assert cut.exact
    for side in (np.arange(vertices // 2), np.arange(0, vertices, 3)):
        weight = graph.cut(side).value
        assert graph.minimum_cut().cut.value - 1e-9 <= weight <= graph.maximum_cut().cut.value + 1e-9
