"""Counts of graphs, texts and rare events while they come."""

from sordino.mechanisms.stream.rare import RareFit
from sordino.releases.cuts import Cut
from sordino.releases.private_graph import ExtremeCut, PrivateGraph
from sordino.streams.events import EventStream
from sordino.streams.graph import GraphStream
from sordino.streams.graph_function import GraphFunctionStream
from sordino.streams.rare import RareStream
from sordino.streams.words import HeavyWord, WordStream
from sordino.workloads.events.graph_functions import (
    DegreeHistogram,
    EdgeCount,
    SpanningForestCost,
    StarCount,
    TriangleCount,
)
from sordino.workloads.events.weighted_graph import WeightedGraph
from sordino.workloads.events.words import EpisodeCounts, SubstringCounts
from sordino.workloads.rare import RareCount

__all__ = [
    "Cut",
    "DegreeHistogram",
    "EdgeCount",
    "EpisodeCounts",
    "EventStream",
    "ExtremeCut",
    "GraphFunctionStream",
    "GraphStream",
    "HeavyWord",
    "PrivateGraph",
    "RareCount",
    "RareFit",
    "RareStream",
    "SpanningForestCost",
    "StarCount",
    "SubstringCounts",
    "TriangleCount",
    "WeightedGraph",
    "WordStream",
]
