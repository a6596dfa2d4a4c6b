"""What is published while it arrives: open streams, and where their steps are kept."""

from sordino.mechanisms.stream.fit import StreamFit
from sordino.mechanisms.stream.table import TableFit
from sordino.storage.steps import FileStepStore, InMemoryStepStore, StepEntry, StepStore
from sordino.streams.base import OpenStream
from sordino.streams.counter import Stream, restore
from sordino.streams.stored import go_on
from sordino.streams.table import HistogramStream
from sordino.streams.together import publish_together
from sordino.streams.whole import StreamRelease

__all__ = [
    "FileStepStore",
    "HistogramStream",
    "InMemoryStepStore",
    "OpenStream",
    "StepEntry",
    "StepStore",
    "Stream",
    "StreamFit",
    "StreamRelease",
    "TableFit",
    "go_on",
    "publish_together",
    "restore",
]
