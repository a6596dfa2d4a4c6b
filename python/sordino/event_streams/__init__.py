"""Streams of events: graphs that grow, texts, patterns of events. See `sordino.plan_stream`."""

from sordino.event_streams.cuts import Cut
from sordino.event_streams.graph_function_stream import GraphFunctionStream
from sordino.event_streams.graph_functions import (
    DegreeHistogram,
    EdgeCount,
    SpanningForestCost,
    StarCount,
    TriangleCount,
)
from sordino.event_streams.graph_stream import GraphStream
from sordino.event_streams.plan import EventPlan
from sordino.event_streams.private_graph import ExtremeCut, PrivateGraph
from sordino.event_streams.stream import EventStream
from sordino.event_streams.synthetic_graph import SyntheticGraph
from sordino.event_streams.word_stream import HeavyWord, WordStream
from sordino.event_streams.words import EpisodeCounts, SubstringCounts
from sordino.event_streams.workload import EventWorkload

__all__ = [
    "Cut",
    "DegreeHistogram",
    "EdgeCount",
    "EpisodeCounts",
    "EventPlan",
    "EventStream",
    "EventWorkload",
    "ExtremeCut",
    "GraphFunctionStream",
    "GraphStream",
    "HeavyWord",
    "PrivateGraph",
    "SpanningForestCost",
    "StarCount",
    "SubstringCounts",
    "SyntheticGraph",
    "TriangleCount",
    "WordStream",
]
