"""Plain definitions of what is counted on streams of edges and letters: computed anew from each prefix.

A stream is a list of items; `None` and every malformed item is a null item, which changes nothing but takes its step.
An edge is `(u, v)` or `(u, v, weight)` on the vertices `0..n-1`, with integer weights; a letter is an integer below
`u`. Values are integer arrays with one row for each step. Nothing is shared with the package, nothing is fast.
"""

import itertools
import math

import numpy as np

# Graphs.


def is_edge(item, n):
    """Neither null nor a self-loop nor of an unknown vertex."""
    return item is not None and item[0] != item[1] and all(0 <= v < n for v in item[:2])


def pair(item):
    """The edge without its direction and weight."""
    return min(item[:2]), max(item[:2])


def edge_sets(stream, n):
    """The set of distinct edges after each step."""
    return [{pair(item) for item in stream[: t + 1] if is_edge(item, n)} for t in range(len(stream))]


def degrees(edges, n):
    return [sum(v in edge for edge in edges) for v in range(n)]


def edge_counts(stream, n):
    """`|E|`: `(T,)`."""
    return np.array([len(edges) for edges in edge_sets(stream, n)], int)


def triangle_counts(stream, n):
    """Sets of three vertices with three edges: `(T,)`."""

    def count(edges):
        return sum(edges.issuperset(itertools.combinations(abc, 2)) for abc in itertools.combinations(range(n), 3))

    return np.array([count(edges) for edges in edge_sets(stream, n)], int)


def star_counts(stream, n, k):
    """Stars of `k` leaves, `sum_v C(d_v, k)`: `(T,)`."""
    return np.array([sum(math.comb(d, k) for d in degrees(edges, n)) for edges in edge_sets(stream, n)], int)


def degree_histograms(stream, n, max_degree):
    """How many vertices have each degree `0..max_degree`: `(T, max_degree + 1)`."""
    rows = [[degrees(edges, n).count(d) for d in range(max_degree + 1)] for edges in edge_sets(stream, n)]
    return np.array(rows, int).reshape(len(stream), max_degree + 1)


def bounded(stream, n, max_degree):
    """The online rule: an edge stays iff it is among the first `max_degree` distinct ones at both endpoints."""
    order = list(dict.fromkeys(pair(item) for item in stream if is_edge(item, n)))
    first = {v: [edge for edge in order if v in edge][:max_degree] for v in range(n)}
    return [item if is_edge(item, n) and all(pair(item) in first[v] for v in pair(item)) else None for item in stream]


def is_weighted_edge(item, n, least, most):
    return is_edge(item, n) and least <= item[2] <= most


def forest_costs(stream, n, max_weight):
    """Cost of a minimum spanning forest of the multigraph, by Kruskal's rule: `(T,)`."""

    def cost(items):
        part, total = list(range(n)), 0
        for u, v, w in sorted(items, key=lambda item: item[2]):
            if part[u] != part[v]:
                total += w
                joined = part[v]
                part = [part[u] if p == joined else p for p in part]
        return total

    valid = [is_weighted_edge(item, n, 0, max_weight) for item in stream]
    prefixes = range(1, len(stream) + 1)
    return np.array([cost(list(itertools.compress(stream[:t], valid))) for t in prefixes], int)


def cut_weights(stream, n, side, other=None, least=0, most=1):
    """Weight of all edges so far between two disjoint sets; `other` is by default the complement: `(T,)`."""
    other = set(range(n)) - set(side) if other is None else set(other)

    def crosses(item):
        return (item[0] in side and item[1] in other) or (item[0] in other and item[1] in side)

    changes = [item[2] if is_weighted_edge(item, n, least, most) and crosses(item) else 0 for item in stream]
    return np.cumsum(changes)


# Words.


def words(u, longest):
    """All words of `1..longest` letters, by length, then lexicographically."""
    return [word for length in range(1, longest + 1) for word in itertools.product(range(u), repeat=length)]


def is_letter(item, u):
    return item is not None and 0 <= item < u


def substring_counts(text, u, longest):
    """How often each of `words` has occurred without a gap: `(T, words)`."""

    def ends(t, word):
        return t + 1 >= len(word) and tuple(text[t + 1 - len(word) : t + 1]) == word

    counted = words(u, longest)
    return np.cumsum([[ends(t, word) for word in counted] for t in range(len(text))], axis=0, dtype=int)


def subsequences(text, u, longest):
    letters = [item for item in text if is_letter(item, u)]
    return {word for length in range(1, longest + 1) for word in itertools.combinations(letters, length)}


def episode_counts(text, u, longest):
    """How many minimal intervals contain each of `words` as a subsequence: `(T, words)`.

    Minimal: neither the interval without its first time nor the one without its last contains it.
    """
    index = {word: k for k, word in enumerate(words(u, longest))}
    increments = np.zeros((len(text), len(index)), int)
    for t in range(len(text)):
        for s in range(t + 1):
            new = subsequences(text[s : t + 1], u, longest)
            new -= subsequences(text[s + 1 : t + 1], u, longest)
            new -= subsequences(text[s:t], u, longest)
            for word in new:
                increments[t, index[word]] += 1
    return np.cumsum(increments, axis=0)


# Neighbours.


def event_neighbours(stream):
    """One item made null."""
    for t, item in enumerate(stream):
        if item is not None:
            yield [*stream[:t], None, *stream[t + 1 :]]


def edge_neighbours(stream):
    """All items of one edge made null."""
    for edge in dict.fromkeys(pair(item) for item in stream if item is not None):
        yield [None if item is None or pair(item) == edge else item for item in stream]


def node_neighbours(stream):
    """All items of one vertex made null."""
    for vertex in dict.fromkeys(v for item in stream if item is not None for v in item[:2]):
        yield [None if item is None or vertex in item[:2] else item for item in stream]


def replaced_letters(text, u):
    """One letter replaced by another."""
    for t, item in enumerate(text):
        for letter in range(u):
            if letter != item:
                yield [*text[:t], letter, *text[t + 1 :]]


def nulled_letters(text):
    """One letter made null."""
    yield from event_neighbours(text)


# Sensitivities.


def increments(values):
    """`d_t` from running values: `(T,)` or `(T, coordinates)`, as `(T, coordinates)`, from zero on."""
    values = np.asarray(values)
    values = values.reshape(len(values), -1)
    return np.diff(values, axis=0, prepend=np.zeros((1, values.shape[1]), values.dtype))


def square_root_factor(T):
    """The lower-triangular Toeplitz `C` with `C @ C` all ones on and below the diagonal; `f_k = C(2k, k) / 4^k`."""
    f = np.cumprod([1.0, *((2 * k - 1) / (2 * k) for k in range(1, T))])
    return np.array([[f[t - s] if s <= t else 0.0 for s in range(T)] for t in range(T)])


def difference_norm(C, one, two):
    """`|(C x I)(d - d')|_2` of increments `(T,)` or `(T, coordinates)`."""
    return float(np.linalg.norm(C @ (np.asarray(one) - np.asarray(two))))
