"""Counts of all short words of a text: substrings, and episodes.

A word of at most l letters over a public alphabet of u letters has one counter. Every letter is a step. An unknown
letter is a null item: a step in which nothing ends; a substring does not go on across it.

**Substrings.** A word is counted at every place where its letters stand one after another. One letter is in j windows
of length j, which show the same word at different steps only in a run. With the strategy C without negative products of
columns, `n_j` the norm of the sum of j columns in a row and `n_1` that of one,

    replaced:  ||(C x I)(d - d')||^2 <= sum_{j <= l} (j n_1^2 + n_j^2) <= l (l + 1) (l + 2)/3 n_1^2,
    null:      ||(C x I)(d - d')||^2 <= sum_{j <= l} n_j^2             <= l (l + 1) (2 l + 1)/6 n_1^2:

two windows that agree before the change cannot agree after it (their common letter at the changed place has changed in
one of them only). A step without a letter is one with a null letter. With several letters a step the bound on the right
is used for replaced letters; a letter may be missing from its step, whose other letters then join: n_1^2 times the sum
of j^2 + (j - 1)^2.

**Episodes.** An episode is counted at every minimal occurrence: its letters in this order, others in between allowed,
no shorter occurrence inside. Every place of a letter in an episode gives or takes one occurrence, or, of few
episodes, both, so

    replaced:  sum_{j <= l} (2 N_j + 2 Q_j + X_j) n_1^2,        null: sum_{j <= l} (N_j + Q_j) n_1^2,

    N_j = j u^(j-1) for j <= 2,  N_3 = 3 u^2 + u (u - 1)/2,  N_j = (2 j - 3) u^(j-1) + u^(j-2) (u - 1)/2 beyond,
    Q_j = 2 (j - 3)^2 u^(j-2) + 4 (j - 3) u^(j-3) for j >= 4,  X_j = 4 (j - 1)(j - 2) u^(j-2) for j >= 3, else 0.

Inserting or deleting a letter, so that letters move to other steps, is not protected: it would change every later step.

Source: Fichtenberger, Henzinger and Upadhyay 2023, Corollaries 4 and 5, with the sensitivities proved in the
documentation ("Errata: Constant matters").
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from sordino import _core
from sordino._support.checks import flag, integer
from sordino.errors import DataTypeError, InvalidParameterError
from sordino.privacy.participation import Pattern
from sordino.privacy.units import ReplaceOne
from sordino.workloads.base import steps_of
from sordino.workloads.events.base import Change, EventWorkload, Property, change, counted, times
from sordino.workloads.events.names import characters, indices, names_of, vertex_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sordino.privacy.units import Unit
    from sordino.workloads.base import Spec

__all__ = ["EpisodeCounts", "SubstringCounts", "WordCounts"]

_MOST_LETTERS = 2**20
_MOST_WORDS = 2**40
_MOST_EPISODES = 2**26
_LONGEST = 64


class WordCounts(EventWorkload):
    """Counts of all words of at most `longest` letters; the subclasses say of what.

    Args:
        alphabet: Number of letters, which are then 0, 1, ...; or their names, such as a string of characters.
        longest: l, letters of the longest word.
        length: Number of steps, None if it is not known.
        batches: Whether a step may hold several letters; sensitivities are then a little larger.

    Raises:
        DataTypeError: An argument is of the wrong type.
        InvalidParameterError: A number is out of range, or there are too many words.
    """

    _most: ClassVar[int] = _MOST_WORDS

    def __init__(
        self, alphabet: int | str | Sequence[str], longest: int, length: int | None = None, *, batches: bool = False
    ) -> None:
        self.letters, self.names = names_of("alphabet", alphabet, least=1, most=_MOST_LETTERS)
        self.longest = integer("longest", longest, least=1)
        self.batches = flag("batches", batches)
        self.length = steps_of("length", length)
        if self.longest > _LONGEST or self.coordinates > self._most:
            raise InvalidParameterError(
                f"there may be at most 2**{self._most.bit_length() - 1} words, of at most {_LONGEST} letters: declare "
                "a smaller alphabet or shorter words"
            )

    @property
    def coordinates(self) -> int:
        """Words of 1 to `longest` letters: the shorter ones first, each length in the order of the alphabet."""
        return sum(self.letters**j for j in range(1, self.longest + 1))

    @property
    def largest(self) -> int:
        """Most that one event changes a counter by."""
        return 1

    def index(self, word: Sequence[int] | Sequence[str]) -> int:
        """Return the index of a word's counter.

        Args:
            word: A string, or a sequence of letters.

        Raises:
            DataTypeError: It is no sequence of letters.
            InvalidParameterError: The word is empty, too long, or has a letter that is not in the alphabet.
        """
        try:
            letters = indices("word", list(word), self.letters, self.names).tolist()
        except TypeError:
            raise DataTypeError("a word must be a string, or a sequence of letters") from None
        if not 1 <= len(letters) <= self.longest or min(letters) < 0:
            raise InvalidParameterError(f"a word has 1 to {self.longest} letters of the alphabet")
        place = -1
        for letter in letters:
            place = (place + 1) * self.letters + letter
        return place

    def word(self, index: int) -> tuple[int, ...] | str | tuple[str, ...]:
        """Return the word of a counter: letters, or a string if every letter has one character.

        Raises:
            InvalidParameterError: There is no such index.
        """
        rest = integer("index", index, least=0)
        if rest >= self.coordinates:
            raise InvalidParameterError("there is no word of such an index")
        letters = []
        while rest >= 0:
            rest, letter = divmod(rest, self.letters)
            letters.append(letter)
            rest -= 1
        letters.reverse()
        if self.names is None:
            return tuple(letters)
        named = tuple(self.names[letter] for letter in letters)
        return "".join(named) if characters(self.names) else named

    @abstractmethod
    def _bound(self, replaced: bool) -> tuple[int, int, int]:
        """Return the sum of squared rises and falls, the l1 norm, and the number of counters touched."""

    def changes(self, unit: Unit, counters: _core.StreamPlan) -> tuple[Change, ...]:
        """Return what the unit changes: the general bound."""
        square, l1, touched = self._bound(isinstance(unit, ReplaceOne))
        weight = times(unit)
        touched = min(touched * weight, self.coordinates)
        return (
            change(
                rises=square,
                falls=0,
                l1=l1,
                touched=touched,
                weight=weight,
                no_negative_products=counters.no_negative_products,
            ),
        )

    def assumes(self, counters: _core.StreamPlan) -> Property:
        """Say which property of the strategy the sensitivity uses."""
        return "no negative products of columns" if counters.no_negative_products else "general"

    def protected(self, unit: Unit) -> str:
        """Say what is protected, as the subject of a sentence."""
        number = times(unit)
        if isinstance(unit, ReplaceOne):
            return "What one letter is" if number == 1 else f"What {number} letters are"
        return counted(unit, "a letter or nothing at one step", "letters or nothing at so many steps")

    @property
    def things(self) -> str:
        """What a unit counts, several of them."""
        return "letters"

    def encoder(self) -> _core.Words:
        """Return what turns letters into changes of the counters."""
        return _core.Words(self.kind, self.letters, self.longest)

    def spec(self) -> Spec:
        """Return the constructor's arguments."""
        return {
            "alphabet": vertex_names(self.letters, self.names),
            "longest": self.longest,
            "length": self.length,
            "batches": self.batches,
        }


class SubstringCounts(WordCounts):
    """How often every word of at most `longest` letters stands in the text so far.

    Args:
        alphabet: Number of letters, or their names, such as a string of characters.
        longest: Letters of the longest word.
        length: Number of steps, None if it is not known.
        batches: Whether a step may hold several letters.
    """

    kind: ClassVar[str] = "substring_counts"

    def _bound(self, replaced: bool) -> tuple[int, int, int]:
        n = self.longest
        if replaced:
            return n * (n + 1) * (n + 2) // 3, n * (n + 1), n * (n + 1)
        if self.batches:
            # Nothing may be no letter at all, so that those before and after it in the step join: j - 1 new words of j.
            return sum(j * j + (j - 1) * (j - 1) for j in range(1, n + 1)), n * n, n * n
        return n * (n + 1) * (2 * n + 1) // 6, n * (n + 1) // 2, n * (n + 1) // 2

    def changes(self, unit: Unit, counters: _core.StreamPlan) -> tuple[Change, ...]:
        """Return what the unit changes: by norms of columns in a row, where every letter is a step."""
        general = super().changes(unit, counters)
        if self.batches or not counters.no_negative_products:
            return general
        weight, lengths = times(unit), range(1, self.longest + 1)
        touched = {j: min(j * weight, self.coordinates) for j in lengths}
        runs = tuple(Pattern(j, weight, 1, 1, 1, touched[j]) for j in lengths)
        replaced = isinstance(unit, ReplaceOne)
        others = tuple(Pattern(1, weight, 1, j, j, touched[j]) for j in lengths) if replaced else ()
        return (runs + others, *general)


class EpisodeCounts(WordCounts):
    """How many minimal occurrences every episode of at most `longest` letters has in the text so far.

    Args:
        alphabet: Number of letters, or their names, such as a string of characters.
        longest: Letters of the longest episode.
        length: Number of steps, None if it is not known.
        batches: Whether a step may hold several letters.
    """

    kind: ClassVar[str] = "episode_counts"
    _most: ClassVar[int] = _MOST_EPISODES

    def _bound(self, replaced: bool) -> tuple[int, int, int]:
        u, square, l1, touched = self.letters, 0, 0, 0
        for j in range(1, self.longest + 1):
            once, twice, crossed = _changes(u, j)
            square += 2 * (once + twice) + crossed if replaced else once + twice
            l1 += 2 * once if replaced else once
            touched += u**j - max(u - (2 if replaced else 1), 0) ** j
        return square, l1, min(l1, touched)


def _changes(u: int, j: int) -> tuple[int, int, int]:
    """Return what a letter changes in the counts of episodes of j letters out of u.

    That is: how often a count rises or falls, twice the pairs of rises of one count and of its falls, and for a letter
    in place of another twice the pairs of a rise by one and a fall by the other, twice.
    """
    if j < 3:
        return j * u ** (j - 1), 0, 0
    crossed = 4 * (j - 1) * (j - 2) * u ** (j - 2)
    if j == 3:
        return 3 * u * u + u * (u - 1) // 2, 0, crossed
    once = (2 * j - 3) * u ** (j - 1) + u ** (j - 3) * (u * (u - 1) // 2)
    return once, 2 * (j - 3) ** 2 * u ** (j - 2) + 4 * (j - 3) * u ** (j - 3), crossed
