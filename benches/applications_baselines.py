"""Counts on streams of edges and letters in plain Python, item by item, as a careful user would write them.

Each class takes items and keeps what the next one needs; what an item changes is returned. Graphs are simple:
self-loops and repeated edges change nothing. Forests are those of multigraphs. Nothing here is private.
"""

import math
from collections import defaultdict

__all__ = ["Episodes", "Forest", "Stars", "Substrings", "Triangles"]

Word = tuple[int, ...]


class Triangles:
    """Triangles of a simple graph: a new edge closes one with each common neighbour."""

    def __init__(self) -> None:
        self.count = 0
        self._neighbours: defaultdict[int, set[int]] = defaultdict(set)

    def insert(self, u: int, v: int) -> int:
        """Return the number of new triangles."""
        at_u, at_v = self._neighbours[u], self._neighbours[v]
        if u == v or v in at_u:
            return 0
        new = len(at_u & at_v)
        at_u.add(v)
        at_v.add(u)
        self.count += new
        return new


class Stars:
    """Stars of `leaves` leaves in a simple graph, `sum_v C(d_v, k)`."""

    def __init__(self, leaves: int) -> None:
        self.count = 0
        self._leaves = leaves
        self._neighbours: defaultdict[int, set[int]] = defaultdict(set)

    def insert(self, u: int, v: int) -> int:
        """Return the number of new stars: `C(d_u, k - 1) + C(d_v, k - 1)`."""
        at_u, at_v = self._neighbours[u], self._neighbours[v]
        if u == v or v in at_u:
            return 0
        new = math.comb(len(at_u), self._leaves - 1) + math.comb(len(at_v), self._leaves - 1)
        at_u.add(v)
        at_v.add(u)
        self.count += new
        return new


class Forest:
    """Cost of the minimum spanning forest: a cheaper edge replaces the dearest on the path between its ends.

    The path is searched in depth, so that an insertion takes as long as there are vertices in the tree.
    """

    def __init__(self) -> None:
        self.cost = 0
        self._weights: defaultdict[int, dict[int, int]] = defaultdict(dict)

    def _dearest(self, u: int, v: int) -> tuple[int, int, int] | None:
        """The heaviest edge `(weight, a, b)` on the path from `u` to `v`; None if there is no path."""
        stack = [(u, u, (-1, u, u))]
        while stack:
            at, came_from, dearest = stack.pop()
            if at == v:
                return dearest
            for to, weight in self._weights[at].items():
                if to != came_from:
                    stack.append((to, at, max(dearest, (weight, at, to))))
        return None

    def insert_known(self, u: int, v: int, weight: int) -> None:
        """Insert an edge whose ends are known not to be connected."""
        self._weights[u][v] = self._weights[v][u] = weight
        self.cost += weight

    def insert(self, u: int, v: int, weight: int) -> int:
        """Return the change of the cost."""
        if u == v:
            return 0
        change, dearest = weight, self._dearest(u, v)
        if dearest is not None:
            most, a, b = dearest
            if most <= weight:
                return 0
            del self._weights[a][b], self._weights[b][a]
            change -= most
        self._weights[u][v] = self._weights[v][u] = weight
        self.cost += change
        return change


class Substrings:
    """Words of at most `longest` letters, by how often they occurred without a gap."""

    def __init__(self, alphabet: int, longest: int) -> None:
        self.counts: defaultdict[Word, int] = defaultdict(int)
        self._alphabet = alphabet
        self._longest = longest
        self._last: Word = ()

    def follow(self, letter: int) -> list[Word]:
        """Return the words that end at this letter; an unknown one ends all that are under way."""
        if not 0 <= letter < self._alphabet:
            self._last = ()
            return []
        self._last = (*self._last, letter)[-self._longest :]
        ended = [self._last[i:] for i in range(len(self._last))]
        for word in ended:
            self.counts[word] += 1
        return ended


class Episodes:
    """Words of at most `longest` letters, by their minimal occurrences as subsequences.

    `latest[e]` is the latest start of an occurrence of `e` so far; only words that occurred have one. Letter `c`
    extends each shorter word `e` with `latest[e] > latest[ec]`, longest words first. Minimal occurrences are those of
    Mannila, Toivonen and Verkamo (1997).
    """

    def __init__(self, alphabet: int, longest: int) -> None:
        self.counts: defaultdict[Word, int] = defaultdict(int)
        self._alphabet = alphabet
        self._time = 0
        self._latest: list[dict[Word, int]] = [{} for _ in range(longest)]

    def follow(self, letter: int) -> list[Word]:
        """Return the episodes with a new minimal occurrence that ends at this letter."""
        self._time += 1
        if not 0 <= letter < self._alphabet:
            return []
        new = []
        for shorter, longer in zip(self._latest[-2::-1], self._latest[:0:-1], strict=True):
            for word, start in shorter.items():
                extended = (*word, letter)
                if start > longer.get(extended, 0):
                    longer[extended] = start
                    new.append(extended)
        self._latest[0][(letter,)] = self._time
        new.append((letter,))
        for word in new:
            self.counts[word] += 1
        return new
