"""What the benchmarks of edge and letter streams compare with counts what the definitions count."""

import sys
from pathlib import Path

import numpy as np
import pytest

import application_oracles as oracles

# Last, so that no bench hides a module of the tests.
sys.path.append(str(Path(__file__).resolve().parents[2] / "benches"))

import applications_baselines as baselines

N, MAX_WEIGHT = 7, 9


def random_edges(seed, steps=25):
    """With self-loops and repeats among them."""
    rng = np.random.default_rng(seed)
    drawn = np.column_stack([rng.integers(0, N, (steps, 2)), rng.integers(0, MAX_WEIGHT + 1, steps)])
    return [tuple(map(int, item)) for item in drawn]


def random_text(seed, u, steps=20):
    """With letters that are unknown among them."""
    return np.random.default_rng(seed).integers(0, u + 1, steps).tolist()


@pytest.mark.parametrize("seed", range(10))
def test_graphs_edge_by_edge(seed):
    stream = random_edges(seed)
    triangles, stars, forest = baselines.Triangles(), baselines.Stars(3), baselines.Forest()
    changes = [(triangles.insert(u, v), stars.insert(u, v), forest.insert(u, v, w)) for u, v, w in stream]
    counts = [
        oracles.triangle_counts(stream, N),
        oracles.star_counts(stream, N, 3),
        oracles.forest_costs(stream, N, MAX_WEIGHT),
    ]
    assert np.cumsum(changes, axis=0).tolist() == np.column_stack(counts).tolist()
    assert (triangles.count, stars.count, forest.cost) == tuple(c[-1] for c in counts)


@pytest.mark.parametrize(("u", "longest"), [(1, 3), (2, 1), (2, 3), (3, 2), (3, 3)])
@pytest.mark.parametrize("kind", ["substrings", "episodes"])
def test_words_letter_by_letter(kind, u, longest):
    make = baselines.Substrings if kind == "substrings" else baselines.Episodes
    definition = oracles.substring_counts if kind == "substrings" else oracles.episode_counts
    for seed in range(5):
        text = random_text(seed, u)
        counter, rows = make(u, longest), definition(text, u, longest)
        for letter, row in zip(text, oracles.increments(rows), strict=True):
            found = counter.follow(letter)
            assert [found.count(word) for word in oracles.words(u, longest)] == row.tolist()
        assert [counter.counts.get(word, 0) for word in oracles.words(u, longest)] == rows[-1].tolist()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", ["networkx", "igraph"])
def test_libraries_of_graphs(name, seed):
    pytest.importorskip("networkx")
    pytest.importorskip("igraph")
    import applications_peers as peers

    stream = random_edges(seed)
    graph = getattr(peers, f"{name}_graph")(stream, N)
    assert getattr(peers, f"{name}_triangles")(graph) == oracles.triangle_counts(stream, N)[-1]
    assert getattr(peers, f"{name}_stars")(graph, 3) == oracles.star_counts(stream, N, 3)[-1]
    assert getattr(peers, f"{name}_forest_cost")(graph) == oracles.forest_costs(stream, N, MAX_WEIGHT)[-1]
