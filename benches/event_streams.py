"""Streams of edges and letters, counters read by coordinate, reports of clients: time and memory.

Baselines that are neither private nor fast: the same incremental algorithms in plain Python, item by item. Peers:
networkx and igraph, which have no incremental form, so *one* count of the last graph from its edges is set against one
insertion; who publishes after every edge pays that each time. "Exact part" is what an item changes, without noise;
"whole stream" is `update` from Python with every edge or letter a step, budget, noise and answers included.

Run `python benches/event_streams.py`.
"""

import itertools
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import igraph
import numpy as np
from applications_baselines import Episodes, Forest, Stars, Substrings, Triangles
from applications_peers import (
    igraph_graph,
    igraph_stars,
    igraph_triangles,
    networkx_graph,
    networkx_stars,
    networkx_triangles,
)
from harness import Row, amount, in_process, main, noted, once, quick, race, turns, versus
from numpy.typing import NDArray

import sordino as so
from sordino import _core

__all__ = ["figures", "four_classes", "letters", "markov", "power_law_edges", "random_edges"]

_PRIVACY = so.ApproxDP(epsilon=1.0, delta=1e-6)
_TEXT = Path(__file__).resolve().parent.parent / "examples" / "data" / "alice.txt"
_VERTICES = 10**3 if quick() else 10**4
_EDGES = 5000 if quick() else 10**5
_LETTERS = 50_000 if quick() else 2_500_000
_LONGEST = 5
_ALPHABET = "abcdefghijklmnopqrstuvwxyz "

Integers = NDArray[np.int64]


def random_edges(vertices: int, edges: int, seed: int = 1) -> tuple[Integers, Integers]:
    """Return both ends of edges between vertices drawn evenly."""
    u, v = np.random.default_rng(seed).integers(0, vertices, (2, edges))
    return u, v


def power_law_edges(vertices: int, edges: int, seed: int = 1) -> tuple[Integers, Integers]:
    """Return edges whose ends are drawn with weights `rank^(-2/3)`: degrees follow a power law of exponent 2.5."""
    weights = np.arange(1, vertices + 1) ** (-2.0 / 3.0)
    ends = np.searchsorted(np.cumsum(weights) / weights.sum(), np.random.default_rng(seed).random((2, edges)))
    u, v = np.random.default_rng(seed).permutation(vertices)[np.minimum(ends, vertices - 1)]
    return u, v


@cache
def letters() -> Integers:
    """Return *Alice's Adventures in Wonderland* as letters: 26 and the gap; runs of anything else are one gap."""
    text = "".join(c if c in _ALPHABET else " " for c in _TEXT.read_text().lower())
    return np.array([_ALPHABET.index(c) for c in " ".join(text.split())], dtype=np.int64)


def four_classes(text: Integers) -> Integers:
    """Return vowels, consonants to m, other consonants, and gaps as letters 0 to 3."""
    kinds = [0 if c in "aeiou" else 3 if c == " " else 1 if c <= "m" else 2 for c in _ALPHABET]
    return np.array(kinds, dtype=np.int64)[text]


def markov(length: int, seed: int = 1) -> Integers:
    """Return a text in which every letter follows the three before it as in the book: chains in a row."""
    text, rng, chains = letters(), np.random.default_rng(seed), 1000
    contexts = (np.roll(text, 3) * 27 + np.roll(text, 2)) * 27 + np.roll(text, 1)
    order = np.argsort(contexts, kind="stable")
    followers, counts = text[order], np.bincount(contexts, minlength=27**3)
    starts = np.cumsum(counts) - counts
    state, out = contexts[rng.integers(0, len(text), chains)], np.empty((length // chains + 1, chains), dtype=np.int64)
    for row in out:
        row[:] = followers[starts[state] + (rng.random(chains) * counts[state]).astype(np.int64)]
        state = state % 27**2 * 27 + row
    return np.ascontiguousarray(out.T).reshape(-1)[:length]


def _opened(plan: so.StreamPlan) -> Any:
    """Return an open stream, of the kind of its workload."""
    return plan.open()


def _ends(items: int) -> NDArray[np.uint64]:
    return np.arange(1, items + 1, dtype=np.uint64)


def _rate(what: str, seconds: float, items: str, least: float | None = None) -> Row:
    """Return the row of a rate: `seconds` an item, at least so many millions of them a second if there is a goal."""
    ours = f"{1e-6 / seconds:.3g} M {items}/s, {amount(seconds)} each"
    return noted(
        what, ours, seconds, None if least is None else 1e-6 / least, f"≥ {least:g} M {items}/s" if least else ""
    )


def _mebibytes(count: int) -> str:
    return f"{count / 2**20:.3g} MiB"


# Triangles and stars.


def _incremental(make: Callable[[], Any], pairs: list[tuple[int, int]]) -> Callable[[], object]:
    def run() -> int:
        counter = make()
        for u, v in pairs:
            counter.insert(u, v)
        return int(counter.count)

    return run


def _functions() -> list[Row]:
    """Edge by edge on two graphs, with and without a degree bound."""
    graphs = {"random": random_edges(_VERTICES, _EDGES), "power law": power_law_edges(_VERTICES, _EDGES)}
    return [row for (name, (u, v)), k in itertools.product(graphs.items(), (0, 3)) for row in _function(name, u, v, k)]


def _function(name: str, u: Integers, v: Integers, k: int) -> list[Row]:
    """Return the rows of triangles, or of k-stars, on a graph."""
    rows = []
    pairs, ends = list(zip(u.tolist(), v.tolist(), strict=True)), _ends(_EDGES)
    function, called = ("star_count", f"{k}-stars") if k else ("triangle_count", "triangles")
    recounts: dict[str, Callable[[], int]] = {
        "networkx": lambda: networkx_triangles(networkx_graph(pairs, _VERTICES)),
        "igraph": lambda: igraph_triangles(igraph_graph(pairs, _VERTICES)),
    }
    if k:
        recounts = {
            "networkx": lambda: networkx_stars(networkx_graph(pairs, _VERTICES), k),
            "igraph": lambda: igraph_stars(igraph_graph(pairs, _VERTICES), k),
        }
    again, counts = turns(recounts, 3)
    for bound in (None, 30):
        options: dict[str, Any] = {"max_degree": bound} if bound else {}
        make: Any = partial(so.events.StarCount, k) if k else so.events.TriangleCount
        plan = so.plan(so.Continual(make(_VERTICES, _EDGES, **options)), _PRIVACY, mechanism="blt")

        def exact_part(bound: int | None = bound) -> tuple[Integers, int]:
            encoder = _core.GraphEvents(function, _VERTICES, bound, k)
            return encoder.rows(0, u, v, ends), encoder.bytes

        def whole_stream(plan: so.StreamPlan = plan) -> object:
            return _opened(plan).update(u, v)

        times = race(
            {
                "exact": exact_part,
                "whole": whole_stream,
                "python": _incremental(partial(Stars, k) if k else Triangles, pairs),
            },
            7,
        )
        exact, whole, python = (times[key] / _EDGES for key in ("exact", "whole", "python"))
        changes, state = exact_part()
        if bound is None and any(count != int(changes.sum()) for count in counts.values()):
            raise RuntimeError(f"{called} differ: {int(changes.sum())}, {counts}")
        bounded = f"degrees ≤ {bound}" if bound else "any degree"
        what = f"{called}, {name}, {_EDGES:,} edges on {_VERTICES:,} vertices, {bounded}"
        rows += [
            _rate(f"{what}, exact part; {_mebibytes(state)}", exact, "edges", 1.0),
            _rate(f"{what}, whole stream (buffered counter)", whole, "edges", 1.0),
        ]
        if bound is None:
            rows.append(versus(f"{what}, exact part", exact, "plain Python, incremental", python, per="/edge"))
            rows += [
                versus(f"{what}, an insertion", whole, f"{peer}, one count of the last graph", seconds)
                for peer, seconds in again.items()
            ]
    return rows


# Spanning forests.


def _forest_of(source: Integers, target: Integers, weights: Integers, vertices: int) -> Forest:
    """Return the baseline with the forest of these edges, without inserting them one by one."""
    pairs = list(zip(source.tolist(), target.tolist(), strict=True))
    graph = igraph.Graph(n=vertices, edges=pairs, edge_attrs={"weight": weights.tolist()})
    forest = Forest()
    for edge in graph.spanning_tree(weights="weight").es:
        if edge.source != edge.target:
            forest.insert_known(edge.source, edge.target, edge["weight"])
    return forest


def _forest() -> list[Row]:
    """The cost of an insertion when there are twice as many edges as vertices."""
    rows = []
    for vertices in (10**2, 10**3) if quick() else (10**3, 10**4, 10**5, 10**6):
        edges, batch, rng = 2 * vertices, 2000, np.random.default_rng(2)
        (u, v), w = random_edges(vertices, edges), rng.integers(1, 2**16, edges)
        ours, baseline = _core.SpanningForest(vertices, 2**16), _forest_of(u, v, w, vertices)
        building, _ = once(lambda ours=ours, u=u, v=v, w=w, edges=edges: ours.rows(0, u, v, w, _ends(edges)))
        pool = [(*rng.integers(0, vertices, (2, batch)), rng.integers(1, 2**16, batch)) for _ in range(64)]
        few = max(min(200, 10**5 // vertices), 1)
        batches, singles = zip(itertools.count(edges, batch), itertools.cycle(pool)), itertools.cycle(pool)

        def insert(ours: Any = ours, batches: Any = batches, batch: int = batch) -> None:
            step, events = next(batches)
            ours.rows(step, *events, _ends(batch))

        def plain(baseline: Forest = baseline, singles: Any = singles, few: int = few) -> None:
            for edge in zip(*(ends[:few].tolist() for ends in next(singles)), strict=True):
                baseline.insert(*edge)

        times = race({"ours": insert, "python": plain}, 3)
        what = f"spanning forest, {vertices:,} vertices, an insertion"
        each = times["ours"] / batch
        rows += [
            versus(what, each, "plain Python, search of the path", times["python"] / few),
            noted(
                f"{what}, growth; {_mebibytes(ours.bytes)}",
                f"{each * 1e9 / np.log2(vertices):.3g} ns per log2 n; {amount(building / edges)} while it is built",
            ),
        ]
    return rows


# Words.


def _texts() -> dict[str, tuple[Integers, int]]:
    """Texts, and how many letters there are."""
    repeated = np.resize(letters(), _LETTERS)
    drawn = np.random.default_rng(3).integers(0, 27, _LETTERS)
    return {
        "4 classes of letters, Alice again and again": (four_classes(repeated), 4),
        "4 letters at random": (drawn % 4, 4),
        "27 letters, Alice again and again": (repeated, 27),
        "27 letters, Markov chain of order 3": (markov(_LETTERS), 27),
        "27 letters at random": (drawn, 27),
    }


def _following(make: Callable[[], Any], text: Integers) -> Callable[[], object]:
    listed = text.tolist()

    def run() -> None:
        counter = make()
        for letter in listed:
            counter.follow(letter)

    return run


def _substrings() -> list[Row]:
    """Words of up to five letters: every letter a step, counts read when they are asked for."""
    rows, few = [], min(_LETTERS, 50_000)
    for name, (text, alphabet) in _texts().items():
        workload = so.events.SubstringCounts(alphabet, _LONGEST, length=_LETTERS)
        plan = so.plan(so.Continual(workload, reads="lazy"), _PRIVACY, unit=so.ReplaceOne(), mechanism="blt")
        whole = np.array([_LETTERS], dtype=np.uint64)
        contestants: dict[str, Callable[[], object]] = {
            "lazy": lambda plan=plan, text=text: _opened(plan).update(text),
            "python": _following(partial(Substrings, alphabet, _LONGEST), text[:few]),
        }
        if alphabet == 4:
            contestants["dense"] = lambda text=text, whole=whole: _core.Words("substring_counts", 4, _LONGEST).rows(
                0, text, whole
            )
        times = race(contestants, 5)
        stream = _opened(plan)
        stream.update(text)
        what = f"substrings of up to {_LONGEST} letters, {name}"
        lazy = times["lazy"] / _LETTERS
        memory = f"{plan.fit.coordinates:,} counters, {_mebibytes(stream.counters.bytes)}"
        if "dense" in times:
            rows.append(_rate(f"{what}, exact part, one table", times["dense"] / _LETTERS, "letters", 5.0))
        rows += [
            _rate(f"{what}, whole stream, read by coordinate; {memory}", lazy, "letters", 5.0),
            versus(f"{what}, whole stream", lazy, "plain Python, exact part", times["python"] / few, per="/letter"),
        ]
    return rows


def _episodes() -> list[Row]:
    """The cost of a letter against the words that it can end."""
    rows = []
    count = 2000 if quick() else 50_000
    for alphabet, longest in (
        ((2, 3), (4, 2)) if quick() else ((4, 2), (4, 3), (4, 4), (4, 5), (27, 2), (27, 3), (27, 4))
    ):
        text = np.random.default_rng(4).integers(0, alphabet, count)
        ends = alphabet ** (longest - 1)
        some = min(count, max(10**7 // ends // longest, 1000))
        few = min(some, max(10**5 // ends, 200))
        once_all, part = np.array([some], dtype=np.uint64), text[:some]
        times = race(
            {
                "ours": lambda a=alphabet, n=longest, part=part, e=once_all: _core.Words("episode_counts", a, n).rows(
                    0, part, e
                ),
                "python": _following(partial(Episodes, alphabet, longest), text[:few]),
            },
            5,
        )
        each, encoder = times["ours"] / some, _core.Words("episode_counts", alphabet, longest)
        encoder.rows(0, part, once_all)
        what = f"episodes of up to {longest} of {alphabet} letters, random text, exact part"
        rows += [
            versus(what, each, "plain Python", times["python"] / few, per="/letter"),
            noted(f"{what}; {_mebibytes(encoder.bytes)}", f"{each * 1e9 / ends:.3g} ns per |U|^(l - 1) = {ends:,}"),
        ]
    return rows


# Reads.


def _reads() -> list[Row]:
    """Counters of a graph of 100,000 vertices, computed when they are read."""
    rows, vertices = [], 10**3 if quick() else 10**5
    # Trees have most nodes to add up one step before a power of two.
    for steps in (2**8 - 1,) if quick() else (2**6 - 1, 2**10 - 1, 2**14 - 1, 2**18 - 1):
        u, v = random_edges(vertices, steps)
        reads = {}
        for mechanism in ("blt", "two-diagonals", "binary-tree"):
            workload = so.events.WeightedGraph(vertices, steps)
            plan = so.plan(so.Continual(workload, reads="lazy"), _PRIVACY, mechanism=mechanism)
            stream = _opened(plan)
            stream.update(u, v)
            some = max(min(10**6 // steps, 1000), 4)
            places = np.random.default_rng(5).integers(0, plan.fit.coordinates, some)
            each = race({"read": partial(stream.read, places)}, 5)["read"] / some
            reads[plan.mechanism] = each, plan.max_stderr
        rows += [
            noted(
                f"a counter of {vertices:,} vertices after {steps:,} steps, {mechanism}",
                f"{amount(each, '/read')}, {amount(each / steps)} a step; largest standard error {error:.4g}",
            )
            for mechanism, (each, error) in reads.items()
        ]
    for steps, mechanism in ((1, "auto"), (365, "binary-tree"), (365, "blt")):
        vertices, many = 10**3 if quick() else 10**5, 10
        plan = so.plan(
            so.Continual(so.events.WeightedGraph(vertices, steps), reads="lazy"), _PRIVACY, mechanism=mechanism
        )
        stream = _opened(plan)
        stream.update(*random_edges(vertices, steps))
        seconds, _ = once(partial(stream.cut, range(many)))  # of a million counters
        pairs = many * (vertices - many)
        what = f"cut of {many} of {vertices:,} vertices, after step {steps}, {plan.mechanism}, read by coordinate"
        state = f"{pairs:,} counters, {_mebibytes(stream.counters.bytes)}"
        rows.append(noted(f"{what}; {state}", f"{amount(seconds)}, {amount(seconds / pairs)} a counter"))
    return rows


def _dense() -> list[Row]:
    """All pairs of 2,000 vertices at every step."""
    vertices, steps = 100 if quick() else 2000, 64
    plan = so.plan(so.Continual(so.events.WeightedGraph(vertices, steps), reads="dense"), _PRIVACY, mechanism="blt")
    stream, rng = _opened(plan), np.random.default_rng(6)
    edges, pairs = iter(np.random.default_rng(7).integers(0, vertices, (steps, 2, 100))), plan.fit.coordinates
    totals = np.zeros(pairs)

    def normals() -> None:
        totals[:] += rng.normal(0.0, 10.0, pairs)

    times = race({"ours": lambda: stream.update(*next(edges), together=True), "numpy": normals}, 7)
    what = f"all {pairs:,} pairs of {vertices:,} vertices, a step of 100 edges ({plan.mechanism})"
    state = _mebibytes(plan.fit.memory)
    return [versus(f"{what}; {state} of state", times["ours"], "numpy normals added to totals, unsafe", times["numpy"])]


# The local model.


def _local() -> list[Row]:
    """Reports of clients, and adding them up."""
    sizes = (10**4,) if quick() else (10**4, 200_000, 10**6)
    return [
        row
        for size, name in itertools.product(sizes, ("waves", "blt", "identity", "binary-tree"))
        for row in _survey(size, name)
    ]


def _survey(clients: int, mechanism: str) -> list[Row]:
    values = np.random.default_rng(8).beta(2.0, 5.0, 300 if quick() else 4000)
    plan = so.plan(so.local.LocalSurvey(clients), _PRIVACY, mechanism=mechanism)
    w, rng = plan.fit.survey.intervals, np.random.default_rng(9)
    cells = np.minimum((values * w).astype(int), w - 1)

    def unsafe() -> None:
        rows = rng.normal(0.0, 10.0, (len(values), w))
        rows[np.arange(len(values)), cells] += 1.0

    messages, server = plan.encode_clients(values), plan.server()
    times = race(
        {
            "encode": lambda: plan.encode_clients(values),
            "one": lambda: plan.encode_client(0.3),
            "add": lambda: server.add_many(messages),
            "unsafe": unsafe,
        },
        5,
    )
    what = f"local survey of {clients:,} clients, {plan.mechanism}, messages of {plan.fit.message_bytes:,} bytes"
    each = {key: times[key] / len(values) for key in ("encode", "add", "unsafe")}
    other = "numpy normals on one-hot rows, unsafe"
    return [
        versus(f"{what}, reports in batches", each["encode"], other, each["unsafe"], per="/report"),
        noted(
            f"{what}, one report alone; the server's sum",
            f"{amount(times['one'])} a client; {1e-3 / each['add']:.3g} k reports/s",
        ),
    ]


_SECTIONS = {
    "functions": _functions,
    "forest": _forest,
    "substrings": _substrings,
    "episodes": _episodes,
    "reads": _reads,
    "dense": _dense,
    "local": _local,
}


def figures() -> list[Row]:
    """Return all rows."""
    return [row for section in _SECTIONS for row in in_process(__file__, section, threads=1)]


if __name__ == "__main__":
    main(_SECTIONS, figures)
