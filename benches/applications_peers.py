"""Functions of a whole graph by networkx and igraph: what a stream costs if each step counts anew.

A graph is a list of `(u, v)` or `(u, v, weight)` on the vertices `0..n-1`: self-loops and repeats are dropped, of which
forests keep the cheapest. `*_graph` makes the library's own form of it, which may be timed apart.
"""

import math
from collections.abc import Iterable

import igraph
import networkx as nx

__all__ = [
    "igraph_forest_cost",
    "igraph_graph",
    "igraph_stars",
    "igraph_triangles",
    "networkx_forest_cost",
    "networkx_graph",
    "networkx_stars",
    "networkx_triangles",
]

Edge = tuple[int, ...]


def _cheapest(edges: Iterable[Edge]) -> dict[tuple[int, int], int]:
    """Distinct edges and their least weights; without weights all are 1."""
    found: dict[tuple[int, int], int] = {}
    for u, v, *weight in edges:
        if u != v:
            key, w = (min(u, v), max(u, v)), weight[0] if weight else 1
            found[key] = min(w, found.get(key, w))
    return found


def networkx_graph(edges: Iterable[Edge], n: int) -> "nx.Graph[int]":
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(n))
    graph.add_weighted_edges_from((u, v, w) for (u, v), w in _cheapest(edges).items())
    return graph


def networkx_triangles(graph: "nx.Graph[int]") -> int:
    return int(sum(nx.triangles(graph).values())) // 3


def networkx_stars(graph: "nx.Graph[int]", leaves: int) -> int:
    return sum(math.comb(degree, leaves) for _, degree in graph.degree())


def networkx_forest_cost(graph: "nx.Graph[int]") -> int:
    return int(sum(w for _, _, w in nx.minimum_spanning_tree(graph).edges(data="weight")))


def igraph_graph(edges: Iterable[Edge], n: int) -> igraph.Graph:
    found = _cheapest(edges)
    return igraph.Graph(n=n, edges=list(found), edge_attrs={"weight": list(found.values())})


def igraph_triangles(graph: igraph.Graph) -> int:
    return len(graph.list_triangles())


def igraph_stars(graph: igraph.Graph, leaves: int) -> int:
    return sum(math.comb(degree, leaves) for degree in graph.degree())


def igraph_forest_cost(graph: igraph.Graph) -> int:
    return int(sum(graph.spanning_tree(weights="weight").es["weight"]))
