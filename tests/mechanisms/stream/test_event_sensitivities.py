"""Sensitivities of counts of events by brute force: no small neighbours differ by more than what is charged.

What is compared are the changes that reach the counters, as the encoders of the package give them, through the matrix
that the mechanism measures; that the encoders are right is another test.
"""

import itertools
import math
from functools import cache

import numpy as np
import pytest
from test_stream_units import N, nodes, strategy

import application_oracles as oracles
import sordino as so
from sordino import _core
from sordino.workloads.events import words

MU = so.GaussianDP(mu=1.0)
PURE = so.PureDP(epsilon=1.0)
GAUSSIAN = [
    "identity",
    "output",
    "binary-tree",
    "honaker-tree",
    "square-root",
    "blt",
    "two-diagonals",
    "time-varying-blt",
    "normalized-square-root",
    "optimal",
]
LAPLACE = ["identity", "output", "binary-tree", "subtraction-tree"]
# Steps of N events: each its own, some together, the first ones together.
SINGLE = tuple(range(1, N + 1))
BATCHES = [SINGLE, (2, 4, 6, 7, 7, 7, 7), (0, 3, 3, 7, 7, 7, 7), (7,) * N]

pytestmark = pytest.mark.usefixtures("known_noise")


@cache
def measured(mechanism, objective="mean"):
    """C, a row for every number that gets noise."""
    if mechanism == "identity":
        return np.eye(N)
    if mechanism in ("output", "binary-tree", "subtraction-tree"):
        return nodes(mechanism)
    if mechanism == "honaker-tree":
        return nodes("binary-tree")
    if mechanism == "square-root":
        return oracles.square_root_factor(N)
    return strategy(so.RunningSum(N), mechanism, objective)


# Streams, up to the names of vertices


def graphs(n, steps, repeats=True):
    """All streams of so many items on n vertices that appear in the order 0, 1, ...; null items included."""

    def grow(stream, seen):
        if len(stream) == steps:
            yield stream
            return
        if repeats:
            yield from grow((*stream, None), seen)
        for u in range(min(seen + 1, n)):
            for v in range(u + 1, min(max(seen, u + 1) + 1, n)):
                if repeats or (u, v) not in stream:
                    yield from grow((*stream, (u, v)), max(seen, v + 1))

    yield from grow((), 0)


def with_degrees(streams, n, most):
    """Only streams that keep a promise."""
    for stream in streams:
        edges = {item for item in stream if item is not None}
        if max(oracles.degrees(edges, n)) <= most:
            yield stream


def padded(stream):
    return (*stream, *(None,) * (N - len(stream)))


def encoded(workload, stream, ends):
    """Changes of the counters, shape (N, counters)."""
    items = padded(stream)
    if isinstance(workload, words.WordCounts):
        letters = np.array([-1 if item is None else item for item in items], dtype=np.int64)
        rows = workload.encoder().rows(0, letters, np.array(ends, dtype=np.uint64))
        return rows.reshape(N, -1)
    ends = np.array(ends, dtype=np.uint64)
    u, v = (np.array([-1 if item is None else item[i] for item in items], dtype=np.int64) for i in (0, 1))
    encoder = workload.encoder()
    if isinstance(encoder, _core.SpanningForest):
        w = np.array([0 if item is None else item[2] for item in items], dtype=np.int64)
        return encoder.rows(0, u, v, w, ends).reshape(N, -1)
    if encoder is not None:
        return encoder.rows(0, u, v, ends).reshape(N, -1)
    # A synthetic graph: an event is one change.
    found, start = np.zeros((N, workload.coordinates), dtype=np.int64), 0
    for row, end in zip(found, ends.tolist(), strict=True):
        for item in items[start:end]:
            if item is not None:
                row[workload.pairs(np.array(item[0]), np.array(item[1]))] += item[2]
        start = end
    return found


def differences(workload, pairs, ends=SINGLE):
    """Distinct d - d' of all these pairs, shape (pairs, N, counters)."""
    known = {}

    def changes(stream):
        if stream not in known:
            known[stream] = encoded(workload, stream, ends)
        return known[stream]

    found = {(changes(one) - changes(two)).astype(np.int32).tobytes() for one, two in pairs}
    return np.array([np.frombuffer(d, dtype=np.int32) for d in sorted(found)]).reshape(len(found), N, -1)


def largest(mechanism, found, order):
    """Most of ||(C x I)(d - d')|| over all pairs."""
    moved = np.abs(np.einsum("rt,ptc->prc", measured(mechanism), found.astype(float)))
    return float((moved.sum(axis=(1, 2)) if order == 1 else np.sqrt((moved**2).sum(axis=(1, 2)))).max())


def check(workload, unit, found, least=0.0, mechanisms=None):
    """Nothing is beyond what is charged; and for some mechanism the bound is not further off than `least`."""
    tightest = 0.0
    for privacy, order, names in ((MU, 2, GAUSSIAN), (PURE, 1, LAPLACE)):
        for mechanism in names if mechanisms is None else mechanisms:
            option = 3 if mechanism == "subtraction-tree" else None
            plan = so.plan(so.Continual(workload), privacy, unit=unit, mechanism=mechanism, degree=option)
            charged = plan.fit.door.sensitivity[0]
            needed = largest(mechanism, found, order)
            # Strategies are read off noise, or solved for, to six digits.
            assert needed <= charged * (1.0 + 1e-5), (mechanism, needed, charged)
            assert plan.fit.door.scale >= charged * plan.fit.ratio * (1.0 - 1e-12)
            tightest = max(tightest, needed / charged)
    assert tightest >= least, tightest


def fixed(pairs):
    return [(tuple(one), tuple(two)) for one, two in pairs]


@cache
def edge_pairs(n, steps, repeats, promised=None):
    streams = graphs(n, steps, repeats)
    if promised is not None:
        streams = with_degrees(streams, n, promised)
    return fixed((s, t) for s in streams for t in oracles.edge_neighbours(s))


@cache
def node_pairs(n, steps, repeats, promised):
    streams = with_degrees(graphs(n, steps, repeats), n, promised)
    return fixed((s, t) for s in streams for t in oracles.node_neighbours(s))


@cache
def replaced_pairs(n, steps, promised=None):
    """Streams with an edge each that the other one lacks: two that a third one is left of."""
    bases = {}
    for one, rest in edge_pairs(n, steps, True, promised):
        bases.setdefault(rest, []).append(one)
    # All relabelings of one side: the other edge may be anywhere.
    rng = np.random.default_rng(3)
    found = []
    for rest, ones in bases.items():
        vertices = {v for item in rest if item for v in item}
        free = [v for v in range(n) if v not in vertices]
        for one, two in itertools.product(ones, repeat=2):
            moved = dict(zip(free, rng.permutation(free).tolist(), strict=True))
            moved = [item and oracles.pair((moved.get(item[0], item[0]), moved.get(item[1], item[1]))) for item in two]
            found.append((one, tuple(moved)))
    return fixed(found)


# Functions of graphs. The last number: how much of what is charged some neighbours need, at least.

EDGE_LEVEL = [
    (so.events.EdgeCount, {}, (4, 5, True), 1.0),
    (so.events.EdgeCount, {"max_degree": 2, "unchecked": True}, (5, 5, True), 1.0),
    (so.events.EdgeCount, {"max_degree": 2}, (6, 6, False), 1.0),
    (so.events.TriangleCount, {}, (4, 6, False), 1.0),
    (so.events.TriangleCount, {"max_degree": 2, "unchecked": True}, (5, 5, True), 1.0),
    (so.events.TriangleCount, {"max_degree": 2}, (5, 6, False), 0.44),
    (so.events.StarCount, {}, (4, 6, False), 1.0),
    (so.events.StarCount, {"max_degree": 2, "unchecked": True}, (5, 5, True), 1.0),
    (so.events.StarCount, {"max_degree": 2}, (6, 6, False), 1.0),
    (so.events.DegreeHistogram, {"max_degree": 3, "unchecked": True}, (4, 6, False), 1.0),
    (so.events.DegreeHistogram, {"max_degree": 2, "unchecked": True}, (5, 5, True), 1.0),
    (so.events.DegreeHistogram, {"max_degree": 2}, (6, 6, False), 0.66),
    (so.events.DegreeHistogram, {"max_degree": 1}, (6, 5, True), 1.0),
]


def made(kind, n, options, k=None):
    if kind is so.events.StarCount:
        return so.events.StarCount(2 if k is None else k, n, N, **options)
    return kind(n, N, **options)


def promise(options):
    return options["max_degree"] if options.get("unchecked") else None


@pytest.mark.parametrize(("kind", "options", "size", "least"), EDGE_LEVEL)
def test_no_edge_changes_more_than_is_charged(kind, options, size, least):
    """An edge with all its events: every place, every repetition, every order of the others, dropped ones included."""
    n, steps, repeats = size
    workload = made(kind, n, options)
    pairs = edge_pairs(n, steps, repeats, promise(options))
    check(workload, so.AddRemove(1), differences(workload, pairs), least)


@pytest.mark.parametrize("ends", BATCHES[1:])
@pytest.mark.parametrize(("kind", "options", "size", "_least"), EDGE_LEVEL)
def test_nor_where_edges_come_together(kind, options, size, _least, ends):
    n, _, repeats = size
    workload = made(kind, n, options)
    pairs = edge_pairs(n, 5, repeats, promise(options))
    check(workload, so.AddRemove(1), differences(workload, pairs, ends), mechanisms=["identity", "binary-tree"])


@pytest.mark.parametrize(("kind", "options", "_size", "_least"), EDGE_LEVEL[1::2])
def test_no_edge_in_place_of_another_changes_more_than_is_charged(kind, options, _size, _least):
    workload = made(kind, 5, options)
    pairs = replaced_pairs(5, 4, promise(options))
    check(workload, so.ReplaceOne(1), differences(workload, pairs), 0.15)


def test_three_stars():
    """A 3-star needs degree 3: five vertices, a promised bound, and one that is enforced."""
    for options, least in (({}, 0.3), ({"max_degree": 3, "unchecked": True}, 0.7), ({"max_degree": 3}, 0.3)):
        workload = so.events.StarCount(3, 5, N, **options)
        pairs = edge_pairs(5, 6, False, promise(options))
        check(workload, so.AddRemove(1), differences(workload, pairs), least)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "bound", "least"),
    [
        (so.events.EdgeCount, 2, 1.0),
        (so.events.EdgeCount, 3, 1.0),
        (so.events.TriangleCount, 2, 1.0),
        (so.events.TriangleCount, 3, 1.0),
        (so.events.StarCount, 2, 1.0),
        (so.events.StarCount, 3, 0.75),
        (so.events.DegreeHistogram, 2, 0.4),
        (so.events.DegreeHistogram, 3, 0.4),
    ],
)
def test_no_vertex_changes_more_than_is_charged(kind, bound, least):
    """A vertex with all its edges, where no vertex has more than the promised number of them."""
    workload = made(kind, 5, {"max_degree": bound, "unchecked": True, "level": "node"})
    pairs = node_pairs(5, 5, True, bound) if bound == 2 else node_pairs(5, 6, False, bound)
    check(workload, so.AddRemove(1), differences(workload, pairs), least)
    for ends in BATCHES[1:]:
        check(workload, so.AddRemove(1), differences(workload, pairs, ends), mechanisms=["identity", "binary-tree"])


@pytest.mark.parametrize("k", [2, 3])
def test_units_of_several_edges_are_charged_together(k):
    """So many edges with all their events: brute force by leaving out sets of them."""
    workload = so.events.DegreeHistogram(4, N, max_degree=3, unchecked=True)
    pairs = []
    for stream in graphs(4, 5, repeats=False):
        for gone in itertools.combinations(stream, k):
            pairs.append((stream, tuple(None if item in gone else item for item in stream)))
    check(workload, so.AddRemove(k), differences(workload, pairs), 0.4)


# The forest

WEIGHTS = (0, 2, 4)


@cache
def forests(level):
    """Multigraphs with weights on three vertices, all of them; on four, a sample of 20,000."""
    edges = [(u, v, w) for u, v in itertools.combinations(range(3), 2) for w in WEIGHTS]
    streams = list(itertools.product([None, *edges], repeat=4))[:: 1 if level == "event" else 3]
    rng = np.random.default_rng(5)
    more = [(u, v, w) for u, v in itertools.combinations(range(4), 2) for w in WEIGHTS]
    streams += [tuple(more[i] for i in row) for row in rng.integers(0, len(more), (4000, 7))]
    neighbours = oracles.event_neighbours if level == "event" else oracles.node_neighbours
    if level == "node":
        # A bound on the edges of a vertex, repetitions included.
        def fits(stream):
            return all(sum(item is not None and v in item[:2] for item in stream) <= 3 for v in range(4))

        streams = [stream for stream in streams if fits(stream)]
    return fixed((s, t) for s in streams for t in neighbours(s))


@pytest.mark.slow
@pytest.mark.parametrize("ends", BATCHES)
@pytest.mark.parametrize(("level", "least"), [("event", 0.7), ("node", 0.3)])
def test_no_weighted_edge_changes_the_forest_by_more_than_is_charged(level, least, ends):
    options = {"max_weight": 4.0, "weight_bits": 2}
    if level == "node":
        options |= {"level": "node", "max_degree": 3, "unchecked": True}
        if ends != SINGLE:
            return
    workload = so.events.SpanningForestCost(4, N, **options)
    found = differences(workload, forests(level), ends)
    check(workload, so.AddRemove(1), found, least if ends == SINGLE else 0.0)


def test_no_replaced_weighted_edge_changes_the_forest_by_more_than_is_charged():
    edges = [(u, v, w) for u, v in itertools.combinations(range(3), 2) for w in WEIGHTS]
    rng = np.random.default_rng(6)
    pairs = []
    for _ in range(20_000):
        stream = [edges[i] for i in rng.integers(0, len(edges), N)]
        other, t = list(stream), int(rng.integers(N))
        other[t] = edges[int(rng.integers(len(edges)))]
        pairs.append((tuple(stream), tuple(other)))
    workload = so.events.SpanningForestCost(3, N, max_weight=4.0, weight_bits=2)
    check(workload, so.ReplaceOne(1), differences(workload, pairs), 0.3)


# The synthetic graph


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("unit", [so.AddRemove(1), so.AddRemove(2), so.ReplaceOne(1), so.ReplaceOne(2)], ids=str)
def test_no_event_changes_a_synthetic_graph_by_more_than_is_charged(unit, signed):
    """All places of one or two events, in both streams: events of other steps cancel."""
    values = (-2, 0, 2) if signed else (0, 1, 2)
    edges = [None, *((u, v, w) for u, v in itertools.combinations(range(3), 2) for w in values)]
    places = [0, 3, N - 1]
    pairs = []
    if isinstance(unit, so.ReplaceOne):
        options = list(itertools.product(edges, edges))
    else:
        options = [(edge, None) for edge in edges]
    for changed in itertools.product(options, repeat=unit.records):
        for at in itertools.combinations(places, unit.records):
            one, two = [None] * N, [None] * N
            for t, (a, b) in zip(at, changed, strict=True):
                one[t], two[t] = a, b
            pairs.append((tuple(one), tuple(two)))
    workload = so.events.WeightedGraph(3, N, max_weight=2.0, weight_bits=1, one_signed=not signed)
    for ends in BATCHES:
        found = differences(workload, pairs, ends)
        check(workload, unit, found, 1.0 - 1e-5 if ends == SINGLE else 0.0)


# Words


@cache
def texts(u, steps):
    return list(itertools.product([None, *range(u)], repeat=steps))


def word_pairs(u, steps, unit):
    if isinstance(unit, so.ReplaceOne):
        return fixed((s, t) for s in texts(u, steps) for t in oracles.replaced_letters(s, u))
    return fixed((s, t) for s in texts(u, steps) for t in oracles.nulled_letters(s))


@pytest.mark.parametrize("unit", [so.AddRemove(1), so.ReplaceOne(1)], ids=str)
@pytest.mark.parametrize(
    ("kind", "u", "longest", "least"),
    [
        (so.events.SubstringCounts, 2, 1, 0.99),
        (so.events.SubstringCounts, 2, 2, 0.95),
        (so.events.SubstringCounts, 2, 3, 0.85),
        (so.events.SubstringCounts, 2, 4, 0.70),
        (so.events.EpisodeCounts, 2, 1, 0.99),
        (so.events.EpisodeCounts, 2, 2, 0.75),
        (so.events.EpisodeCounts, 2, 3, 0.50),
        (so.events.EpisodeCounts, 2, 4, 0.30),
        (so.events.EpisodeCounts, 3, 2, 0.80),
    ],
)
def test_no_letter_changes_more_than_is_charged(kind, u, longest, least, unit):
    workload = kind(u, longest, N)
    check(workload, unit, differences(workload, word_pairs(u, 6 + (longest <= 3), unit)), least)


@pytest.mark.parametrize("unit", [so.AddRemove(1), so.ReplaceOne(1)], ids=str)
@pytest.mark.parametrize(("kind", "longest"), [(so.events.SubstringCounts, 3), (so.events.EpisodeCounts, 2)])
@pytest.mark.parametrize("ends", BATCHES[1:])
def test_nor_where_letters_come_together(kind, longest, unit, ends):
    workload = kind(2, longest, N, batches=True)
    found = differences(workload, word_pairs(2, 6, unit), ends)
    check(workload, unit, found, mechanisms=["identity", "binary-tree", "output"])


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize(("u", "longest", "least"), [(3, 3, 0.5), (10, 3, 0.5), (4, 4, 0.2), (2, 6, 0.1), (26, 2, 0.7)])
def test_letters_among_many_change_no_more_episodes(u, longest, least, replaced):
    """Long texts of permutations of the alphabet, in which a letter changes most episodes that have it."""
    workload = so.events.EpisodeCounts(u, longest, 1)
    square, l1, touched = workload._bound(replaced)
    rng, most = np.random.default_rng(u + longest), 0.0

    def rises(letters):
        ends = np.arange(1, len(letters) + 1, dtype=np.uint64)
        return workload.encoder().rows(0, letters.astype(np.int64), ends).reshape(len(letters), -1)

    for _ in range(40):
        order = rng.permutation(u)
        turns = [order, order[::-1], rng.permutation(u), rng.integers(u, size=u)]
        picked = rng.integers(len(turns), size=2 * longest)
        text = np.concatenate([turns[i] for i in picked[:longest]] + [[-1]] + [turns[i] for i in picked[longest:]])
        place = longest * u
        with_letter, other = text.copy(), text.copy()
        with_letter[place] = rng.integers(u)
        if replaced:
            other[place] = (with_letter[place] + 1 + rng.integers(u - 1)) % u
        moved = rises(with_letter).astype(np.int64) - rises(other)
        changed = np.maximum(moved, 0).sum(axis=0) ** 2 + np.maximum(-moved, 0).sum(axis=0) ** 2
        assert changed.sum() <= square
        assert np.abs(moved).sum() <= l1
        assert np.count_nonzero(np.abs(moved).sum(axis=0)) <= touched
        most = max(most, np.abs(moved).sum() / l1)
    assert most >= least, most


def test_two_letters_are_charged_twice():
    """Any two letters replaced at once."""
    workload, pairs = so.events.SubstringCounts(2, 2, N), []
    for text in itertools.product(range(2), repeat=N):
        for a, b in itertools.combinations(range(N), 2):
            other = list(text)
            other[a], other[b] = 1 - other[a], 1 - other[b]
            pairs.append((text, tuple(other)))
    check(workload, so.ReplaceOne(2), differences(workload, pairs), 0.6)


@pytest.mark.parametrize("separation", [1, 3])
def test_users_of_several_events(separation):
    """Two events of a user, so far apart: of a graph any two, of a text any two letters made null."""
    unit = so.UserLevel(2, separation)
    places = [(a, b) for a in range(N) for b in range(a + separation, N)]
    graph = so.events.WeightedGraph(3, N, max_weight=2.0, weight_bits=1, one_signed=False)
    events = [(u, v, w) for u, v in itertools.combinations(range(3), 2) for w in (-2, 1, 2)]
    pairs = []
    for (a, b), (one, two) in itertools.product(places, itertools.product(events, repeat=2)):
        stream = [None] * N
        stream[a], stream[b] = one, two
        pairs.append((tuple(stream), (None,) * N))
    check(graph, unit, differences(graph, pairs), 0.99)
    words, pairs = so.events.SubstringCounts(2, 2, N), []
    for text, (a, b) in itertools.product(itertools.product(range(2), repeat=N), places):
        other = [None if t in (a, b) else letter for t, letter in enumerate(text)]
        pairs.append((text, tuple(other)))
    check(words, unit, differences(words, pairs), 0.6)
    functions = so.events.TriangleCount(4, N, max_degree=3, unchecked=True)
    pairs = [
        (stream, tuple(None if item in gone else item for item in stream))
        for stream in graphs(4, 6, repeats=False)
        for gone in itertools.combinations(stream, 2)
    ]
    check(functions, unit, differences(functions, pairs), 0.7)


def test_streams_without_an_end_are_charged_for_all_that_follows():
    """The strategy for ever, over its first steps: what neighbours differ by there is a part of what is charged."""
    C = strategy(so.RunningSum(), "blt")
    cases = [
        (so.events.TriangleCount(5, max_degree=2), so.AddRemove(1), edge_pairs(5, 5, True)),
        (so.events.DegreeHistogram(5, max_degree=2, unchecked=True), so.AddRemove(1), edge_pairs(5, 5, True, 2)),
        (so.events.SubstringCounts(2, 3), so.ReplaceOne(1), word_pairs(2, 6, so.ReplaceOne(1))),
        (so.events.EpisodeCounts(2, 2), so.AddRemove(1), word_pairs(2, 6, so.AddRemove(1))),
    ]
    for workload, unit, pairs in cases:
        plan = so.plan(so.Continual(workload), MU, unit=unit, mechanism="blt")
        assert plan.workload.horizon == "unbounded"
        found = np.einsum("rt,ptc->prc", C, differences(workload, pairs).astype(float))
        needed = float(np.sqrt((found**2).sum(axis=(1, 2))).max())
        assert 0.25 * plan.fit.door.sensitivity[0] <= needed <= plan.fit.door.sensitivity[0]


# Closed forms and tables


def times_a_column(workload, unit=None, mechanism="square-root", privacy=MU):
    return so.plan(so.Continual(workload), privacy, unit=unit, mechanism=mechanism).fit.relative_sensitivity


def test_sensitivities_have_their_closed_forms():
    """Over the norm of one column of the square root, whose columns have products that fall with the distance."""
    n, D, k = 100, 10, 3
    promised = {"max_degree": D, "unchecked": True}
    node = promised | {"level": "node"}
    root = math.sqrt(6 * D - 4)
    expected = [
        (so.events.EdgeCount(n, 64), 1.0),
        (so.events.EdgeCount(n, 64, max_degree=D), math.sqrt(5.0)),
        (so.events.EdgeCount(n, 64, **node), D),
        (so.events.TriangleCount(n, 64), n - 2),
        (so.events.TriangleCount(n, 64, **promised), D - 1),
        (so.events.TriangleCount(n, 64, max_degree=D), math.sqrt(5.0) * (D - 1)),
        (so.events.TriangleCount(n, 64, **node), math.comb(D, 2)),
        (so.events.StarCount(k, n, 64, **promised), 2 * math.comb(D - 1, k - 1)),
        (so.events.StarCount(k, n, 64, **node), math.comb(D, k) + D * math.comb(D - 1, k - 1)),
        (so.events.DegreeHistogram(n, 64, **promised), 2.0 * root),
        (so.events.DegreeHistogram(n, 64, max_degree=D), 6.0 * root),
        (so.events.DegreeHistogram(n, 64, **node), D * root + math.sqrt(2 * D + 1)),
        (so.events.SpanningForestCost(n, 64, max_weight=5.0), math.sqrt(2.0) * 5.0),
        (so.events.WeightedGraph(n, 64, max_weight=3.0), 3.0),
        (so.events.SubstringCounts(4, 1, 64), 1.0),
        (so.events.EpisodeCounts(4, 1, 64), 1.0),
        (so.events.EpisodeCounts(4, 2, 64), 3.0),
    ]
    for workload, value in expected:
        # Node-level histograms round a cross product up to an integer.
        assert times_a_column(workload) == pytest.approx(value, rel=1e-3 if "node" in repr(workload) else 1e-9)
        assert times_a_column(workload) >= value * (1.0 - 1e-9)
    forest = so.events.SpanningForestCost(n, 64, max_weight=5.0, level="node", max_degree=D, unchecked=True)
    assert times_a_column(forest) == pytest.approx(math.sqrt(2.0) * 5.0 * D)


@pytest.mark.parametrize("mechanism", ["square-root", "binary-tree", "identity"])
def test_a_replaced_event_of_a_synthetic_graph(mechanism):
    for signed, value in ((False, math.sqrt(2.0)), (True, 2.0)):
        workload = so.events.WeightedGraph(50, 64, max_weight=7.0, one_signed=not signed)
        assert times_a_column(workload, so.ReplaceOne(1), mechanism) == pytest.approx(7.0 * value)
        assert times_a_column(workload, so.ReplaceOne(1), mechanism, MU) == pytest.approx(7.0 * value)
        if mechanism != "square-root":
            assert times_a_column(workload, so.ReplaceOne(1), mechanism, PURE) == pytest.approx(14.0)


# l, replaced: Toeplitz and safe; one letter less: Toeplitz and safe. Of the square root with 2^16 steps.
SUBSTRINGS = [
    (1, 1.4142, 1.4142, 1.0, 1.0),
    (2, 2.7790, 2.8284, 2.173, 2.236),
    (3, 4.3359, 4.4721, 3.578, 3.742),
    (5, 7.9546, 8.3666, 6.948, 7.416),
    (10, 19.351, 20.976, 17.87, 19.62),
    (20, 49.55, 55.50, 47.38, 53.57),
    (50, 179.3, 210.2, 175.7, 207.2),
]


@pytest.mark.parametrize(("longest", "replaced", "safe", "null", "safe_null"), SUBSTRINGS)
def test_sensitivities_of_substrings(longest, replaced, safe, null, safe_null):
    """In norms of a column: sharp where each letter is a step, safe where several may come at once."""
    one, batches = (so.events.SubstringCounts(1, longest, 2**16, batches=b) for b in (False, True))
    for unit, sharp in ((so.ReplaceOne(1), replaced), (so.AddRemove(1), null)):
        assert times_a_column(one, unit) == pytest.approx(sharp, rel=3e-4)
    assert times_a_column(batches, so.ReplaceOne(1)) == pytest.approx(safe, rel=3e-4)
    n = longest
    assert safe_null == pytest.approx(math.sqrt(n * (n + 1) * (2 * n + 1) / 6), rel=3e-4)
    assert times_a_column(batches, so.ReplaceOne(1)) == pytest.approx(math.sqrt(n * (n + 1) * (n + 2) / 3))
    # A letter may be missing from its step: those beside it join.
    joined = sum(j * j + (j - 1) ** 2 for j in range(1, n + 1))
    assert times_a_column(batches, so.AddRemove(1)) == pytest.approx(math.sqrt(joined))


@pytest.mark.parametrize("longest", [1, 2, 3])
def test_a_letter_that_is_missing_from_its_step(longest):
    """All texts of five letters in one or two steps: what is left joins, and the charge covers it, in l1 and by (*)."""
    workload = so.events.SubstringCounts(2, longest, 2, batches=True)
    square, l1, _ = workload._bound(replaced=False)
    worst_square, worst_l1 = 0, 0

    def counts(parts):
        encoder = workload.encoder()
        letters = np.array([letter for part in parts for letter in part], dtype=np.int64)
        ends = np.cumsum([len(part) for part in parts]).astype(np.uint64)
        return encoder.rows(0, letters, ends).reshape(len(parts), -1)

    for text in itertools.product((0, 1), repeat=5):
        for cut in (0, 2, 3):
            one = [text[:cut], text[cut:]]
            for place in range(5):
                other = [text[: min(cut, place)] + text[place + 1 : cut], text[cut:]]
                if place >= cut:
                    other = [text[:cut], text[cut:place] + text[place + 1 :]]
                change = counts(one) - counts(other)
                rises, falls = np.maximum(change, 0).sum(axis=0), np.maximum(-change, 0).sum(axis=0)
                worst_square = max(worst_square, int((rises**2 + falls**2).sum()))
                worst_l1 = max(worst_l1, int(np.abs(change).sum()))
    assert worst_l1 <= l1
    assert worst_square <= square
    assert worst_l1 == l1  # attained


def test_events_of_a_vertex_that_come_again():
    """On the node level the forest's bound is on events, and the plan says so."""
    plan = so.plan(
        so.events.SpanningForestCost(4, 9, max_degree=2, level="node", unchecked=True), so.GaussianDP(mu=1.0)
    )
    assert "more than 2 events" in plan.guarantee()


def test_many_letters_share_the_rounding():
    """The rounding of noise is charged for every counter that all letters of a unit touch."""
    rounding = [
        so.plan(
            so.events.SubstringCounts(4, 5, 2**12),
            so.GaussianDP(mu=1.0),
            unit=so.ReplaceOne(k),
            mechanism="square-root",
        ).fit.patterns
        for k in (1, 8)
    ]
    one, many = (sum(pattern.touched for pattern in patterns) for patterns in rounding)
    assert many == 8 * one


@pytest.mark.parametrize(("u", "longest", "square"), [(2, 2, 10), (2, 3, 52), (2, 4, 264), (3, 2, 14), (3, 3, 98)])
def test_sensitivities_of_episodes(u, longest, square):
    assert times_a_column(so.events.EpisodeCounts(u, longest, 64), so.ReplaceOne(1)) == pytest.approx(math.sqrt(square))


# Local surveys: another value of a client


# w, norm of a column of the square root, largest norm of a difference of two columns.
EXCHANGES = [
    (4, 1.2200, 1.3650),
    (16, 1.3942, 1.6634),
    (64, 1.5456, 1.9119),
    (256, 1.6826, 2.1307),
    (1024, 1.8090, 2.3287),
]


def exchange(C, order=2):
    """By definition: all pairs of columns, and each alone."""
    w = C.shape[1]
    pairs = max(np.linalg.norm(C[:, [a]] - C[:, a + 1 :], ord=order, axis=0).max() for a in range(w - 1))
    return max(float(pairs), float(np.linalg.norm(C, ord=order, axis=0).max()))


@pytest.mark.parametrize(("w", "column", "printed"), EXCHANGES)
def test_norms_of_exchanges(w, column, printed):
    plan = so.plan(so.local.LocalSurvey(100, intervals=w), MU, mechanism="square-root")
    charged = plan.fit.report.fit.door.sensitivity[0]
    assert charged == pytest.approx(printed, abs=6e-5)
    C = oracles.square_root_factor(w)
    assert np.linalg.norm(C[:, 0]) == pytest.approx(column, abs=6e-5)
    if w <= 256:
        assert exchange(C) <= charged * (1.0 + 1e-9)
        assert charged == pytest.approx(exchange(C), rel=1e-5)


def test_no_other_value_changes_a_report_by_more_than_is_charged():
    """For every strategy; for other losses too, whose increments are mixtures of those."""
    for privacy, order, names in ((MU, 2, GAUSSIAN), (PURE, 1, LAPLACE)):
        for mechanism in names:
            if mechanism == "subtraction-tree":  # its branching is chosen by the plan
                continue
            C = measured(mechanism, "max")
            plan = so.plan(so.local.LocalSurvey(100, intervals=N), privacy, mechanism=mechanism)
            charged = plan.fit.report.fit.door.sensitivity[0]
            assert exchange(C, order) <= charged * (1.0 + 1e-5)
            # Exact where all columns are one column, shifted; two columns without common rows elsewhere.
            exact = mechanism in ("identity", "output", "square-root", "blt")
            slack = 1e-3 if exact else 0.25
            assert charged <= exchange(C, order) * (1.0 + slack), mechanism
            huber = so.local.LocalSurvey(100, loss=so.local.LocalLoss.huber(0.3), intervals=N)
            found = huber.increments(np.linspace(0.0, 1.0, 101)) / huber.largest
            assert (found >= 0).all()
            assert (found.sum(axis=1) <= 1.0).all()
            moved = np.linalg.norm((found[:, None] - found[None]) @ C.T, ord=order, axis=2)
            # The budget of the sum is a part of the whole: only its sensitivity counts here.
            split = so.plan(huber, privacy, mechanism=mechanism).fit.report.fit.door.sensitivity[0] / huber.largest
            assert moved.max() <= split * (1.0 + 1e-5)
