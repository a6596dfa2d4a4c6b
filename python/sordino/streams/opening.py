"""From a fit to an open stream: which class publishes what."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sordino import _core
from sordino.errors import DataTypeError, InvalidParameterError, UnsupportedMechanismError
from sordino.mechanisms.fits import Fit
from sordino.mechanisms.stream.fit import StreamFit
from sordino.mechanisms.stream.rare import RareFit
from sordino.mechanisms.stream.table import TableFit
from sordino.streams.base import OpenStream
from sordino.streams.counter import Stream, open_stream
from sordino.streams.events import EventStream
from sordino.streams.graph import GraphStream
from sordino.streams.graph_function import GraphFunctionStream
from sordino.streams.kept import Kept
from sordino.streams.rare import RareStream
from sordino.streams.table import HistogramStream
from sordino.streams.words import WordStream
from sordino.workloads.events.graph_functions import GraphFunction
from sordino.workloads.events.weighted_graph import WeightedGraph
from sordino.workloads.events.words import WordCounts

if TYPE_CHECKING:
    from sordino.storage.steps import StepStore

__all__ = ["attached", "check_store", "event_stream", "opened_stream"]

_EVENTS: tuple[tuple[type, Callable[..., EventStream]], ...] = (
    (WeightedGraph, GraphStream),
    (GraphFunction, GraphFunctionStream),
    (WordCounts, WordStream),
)


def event_stream(fit: StreamFit, counters: Any, private: bool | None = None, kept: Kept | None = None) -> EventStream:
    """Return the stream of a kind of events, over counters; in a store by its row, if it is read by coordinate."""
    found = next(made for kind, made in _EVENTS if isinstance(fit.events, kind))
    return found(fit, counters, private, kept)


def check_store(fit: Fit, store: StepStore | None) -> None:
    """Refuse a store where nothing is stored step by step.

    Raises:
        InvalidParameterError: It is given.
    """
    if store is None:
        return
    if isinstance(fit, StreamFit) and fit.lazy:
        raise InvalidParameterError("what is read lazily is not stored step by step: plan with reads='dense'")
    if isinstance(fit, TableFit) and fit.pan_private:
        raise InvalidParameterError("a pan-private stream keeps no key: it has no checkpoints and needs no store")
    if isinstance(fit, RareFit):
        raise InvalidParameterError("counts of rare events are not stored step by step")


def opened_stream(fit: Fit, store: StepStore | None, key: bytes | None) -> OpenStream:
    """Open a stream under a fresh key, or a known one; nothing is charged here.

    Raises:
        StepStoreError: The store is in use, or belongs to another stream.
        EntropyError: The operating system gives no randomness.
    """
    private = key is None
    match fit:
        case TableFit(pan_private=True, counters=counters):
            tree = _core.PanPrivateTree(counters.strategy, counters.door, counters.dim, key)
            return HistogramStream(fit, tree, private)
        case TableFit(counters=counters):
            return HistogramStream(fit, open_stream(counters, store, key))
        case RareFit(counters=counters, threshold=None):
            return RareStream(fit, None, open_stream(counters, None, key))
        case RareFit(counters=counters, threshold=int(threshold), epsilon=float(epsilon)):
            other = None if key is None else bytes(b ^ 0xA5 for b in key)
            above = _core.AboveThreshold(threshold, 1, epsilon, other)
            return RareStream(fit, above, open_stream(counters, None, key))
        case StreamFit(events=None):
            return open_stream(fit, store, key)
        case StreamFit(lazy=True):
            return event_stream(fit, _core.LazyStream(fit.strategy, fit.door, fit.coordinates, key), private)
        case StreamFit():
            return event_stream(fit, open_stream(fit, store, key))
    raise UnsupportedMechanismError("this plan opens no stream")


def attached(fit: Fit, counters: object, replay: object) -> OpenStream:
    """Go on with counters that `sordino.restore` brought back.

    Raises:
        DataTypeError: They are no stream, or `replay` cannot be called.
        InvalidParameterError: The counters are those of another plan, or other steps were taken in.
        UnsupportedMechanismError: What was published before the checkpoint is not in it.
    """
    if not isinstance(counters, Stream):
        raise DataTypeError("counters must be what sordino.restore returned")
    if isinstance(fit, TableFit) and fit.representation in {"per-item", "differenced"}:
        raise UnsupportedMechanismError(f"{fit.representation} keeps what it published, which is not in a checkpoint")
    own = fit.counters if isinstance(fit, TableFit) else fit
    if (isinstance(fit, TableFit) and fit.pan_private) or not counters.fit.is_same(own):
        raise InvalidParameterError("these counters belong to another plan")
    if isinstance(fit, TableFit):
        return HistogramStream(fit, counters)
    if not isinstance(fit, StreamFit) or fit.events is None:
        raise InvalidParameterError("nothing is attached to counters alone: sordino.restore returns the stream")
    if not callable(replay):
        raise DataTypeError("replay must be a function of a stream")
    if counters._whole:
        raise InvalidParameterError("these counters belong to a stream of events already: restore them anew")
    stream = event_stream(fit, counters)
    try:
        stream.replay(replay)
    except BaseException:
        counters._whole = False  # it may be tried again
        raise
    return stream
