"""An open stream of the counts of all short words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sordino import _core
from sordino._support.checks import flag, integer, open_unit, positive, sequence
from sordino.errors import InvalidParameterError, ShapeError
from sordino.streams.events import EventStream, _Part, step_ends
from sordino.workloads.events.names import indices
from sordino.workloads.events.words import WordCounts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sordino.mechanisms.stream.fit import StreamFit
    from sordino.streams.kept import Kept
    from sordino.workloads.base import Array

__all__ = ["HeavyWord", "WordStream"]


@dataclass(frozen=True)
class HeavyWord:
    """A word that is frequent by its noisy count.

    Attributes:
        word: Its letters, or a string.
        count: Noisy count.
    """

    word: Any
    count: float


class WordStream(EventStream):
    """An open stream of the counts of all short words; `StreamPlan.open` makes it."""

    def __init__(self, fit: StreamFit, counters: Any, private: bool | None = None, kept: Kept | None = None) -> None:
        super().__init__(fit, counters, private, kept)
        assert isinstance(fit.events, WordCounts)
        self._workload = fit.events
        self._encoder = fit.events.encoder()

    def close(self) -> None:
        """Wipe key, noise and what is remembered of events; the stream refuses everything from now on."""
        super().close()
        self._encoder.close()

    def update(self, letters: object, *, together: bool = False, step_id: str | int | None = None) -> None:
        """Take in letters, and publish the counts after them.

        An unknown letter is a null item: a step passes in which nothing ends.

        Args:
            letters: A string, a letter, or a sequence of letters.
            together: Whether all of them (there may be none) are one step; otherwise each is a step. Several letters
                in a step need `batches=True`.
            step_id: Name of this batch: given again, nothing is published. Needs a store;
                in a `sordino.Store` it may be an integer that grows.

        Raises:
            DataTypeError: Not letters by their type.
            ShapeError: Several letters in one step of a workload without batches.
            HorizonError: More steps than are left.
            StreamClosedError: The stream was closed.
            ForkError: The stream belongs to another process.
            StepStoreError: The store did not keep a step: call `resume`, which publishes the rest of the batch too.
        """
        workload = self._workload
        found = indices("letters", letters, workload.letters, workload.names)
        flag("together", together)
        if together and len(found) > 1 and not workload.batches:
            raise ShapeError("several letters in a step need batches=True: the noise was made for one")
        if together and len(found) == 0 and not workload.batches:
            found = np.array([-1])  # nothing is a null letter: what is before and after does not join
        ends = step_ends(len(found), together)
        with self._guard():
            if self._published_as(step_id) is None:
                self._check(len(ends))
                self._publish_all((found.astype(np.int64),), ends, step_id)

    def _feed(self, part: _Part) -> None:
        (letters,) = part.events
        if isinstance(self.counters, _core.LazyStream):
            self._encoder.feed(self.counters, letters, part.ends)
        else:
            self._publish(self._encoder.rows(part.start, letters, part.ends), part)

    def count(self, words: Iterable[Sequence[int] | str]) -> Array:
        """Return the noisy counts of these words after the last step.

        Which words are asked for may depend on what was read before, not on the text.

        Args:
            words: Strings, or sequences of letters.

        Raises:
            DataTypeError: No sequence of words.
            InvalidParameterError: No such word, or no step was published.
            StreamClosedError: The stream was closed.
            ForkError: The stream belongs to another process.
        """
        return self.read([self._workload.index(word) for word in sequence("words", words, "words")])

    def half_width(self, level: float, words: int | None = None) -> float:
        """Return the half width of intervals around counts after the last step.

        Args:
            level: Strictly between 0 and 1.
            words: How many words chosen beforehand must hold together; None for all words, also ones chosen after
                looking.

        Raises:
            InvalidParameterError: The level is out of range, or no step was published.
        """
        if self.step == 0:
            raise InvalidParameterError("nothing was published yet")
        answers = self.fit.coordinates if words is None else integer("words", words, least=1)
        return float(self.fit.half_width([self.step], level, answers)[0])

    def heavy_hitters(self, threshold: float | None = None, *, level: float = 0.95) -> list[HeavyWord]:
        """Return the words whose noisy count is at least a threshold, the most frequent first.

        Found by noisy counts alone: all words of one letter are read, then those of two letters that go on from a word
        that was found, and so on, since no word is more frequent than its beginning.

        Args:
            threshold: Least noisy count; twice the half width for all words at this level if None. Then with
                probability `level` every word that is found occurs, with at least half the threshold, and every word
                that occurs at least one and a half times as often as the threshold is found.
            level: Strictly between 0 and 1.

        Raises:
            InvalidParameterError: The threshold is not positive, the level is out of range, or no step was published.
            StreamClosedError: The stream was closed.
            ForkError: The stream belongs to another process.
        """
        level = open_unit("level", level)
        threshold = 2.0 * self.half_width(level) if threshold is None else positive("threshold", threshold)
        workload = self._workload
        u, offset = workload.letters, 0
        places = np.arange(u, dtype=np.int64)
        found: list[tuple[float, int]] = []
        for length in range(1, workload.longest + 1):
            counts = self.read(offset + places)
            heavy = counts >= threshold
            found += zip(counts[heavy].tolist(), (offset + places[heavy]).tolist(), strict=True)
            if not heavy.any() or length == workload.longest:
                break
            if int(heavy.sum()) * u > 2**26:
                raise InvalidParameterError("more than 2**26 words go on from frequent ones: raise the threshold")
            places = (places[heavy][:, None] * u + np.arange(u)).reshape(-1)
            offset += u**length
        found.sort(key=lambda pair: (-pair[0], pair[1]))
        return [HeavyWord(workload.word(index), count) for count, index in found]
