"""Counts of keys out of so many that nobody lists them."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar, NoReturn

from sordino import _core
from sordino._support.checks import integer
from sordino.errors import UnsupportedMechanismError
from sordino.workloads.base import Spec, Workload

__all__ = ["KeyCounts"]

_MOST_KEYS = 2**53
_MOST_SUMS = 2**22
_MOST_NONZEROS = 64


class KeyCounts(Workload):
    """How often each key occurs, of so many possible keys that no table of them is made: hashes, addresses, words.

    Records are added to a sketch of k sums, which is released once; the counts of candidate keys are read off it, as
    often as wanted. Which keys are candidates is public, and must not come from the private data by another way.

    Args:
        keys: Number of possible keys: integers from 0 up to, without, this, at most 2**53.
        measurements: k, sums that are kept.
        nonzeros: s, sums that a key is in; with 8 a key that is not among the candidates hides hardly any that is.
        seed: Of the sketch: public. Sketches with one seed can be added.

    Raises:
        DataTypeError: An argument is no integer.
        InvalidParameterError: An argument is out of range.
    """

    kind: ClassVar[str] = "key_counts"
    linear: ClassVar[bool] = False

    def __init__(self, keys: int, measurements: int, *, nonzeros: int = 8, seed: int = 0) -> None:
        self.keys = integer("keys", keys, least=1, most=_MOST_KEYS)
        self.measurements = integer("measurements", measurements, least=1, most=min(self.keys, _MOST_SUMS))
        self.nonzeros = integer("nonzeros", nonzeros, least=1, most=min(_MOST_NONZEROS, self.measurements))
        self.seed = integer("seed", seed, least=0, most=2**64 - 1)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Possible keys."""
        return (self.keys,)

    @property
    def is_listed(self) -> bool:
        """Never: its answers are read off a release."""
        return False

    def _build(self) -> NoReturn:
        raise UnsupportedMechanismError("keys are counted by a sketch: there is no table of them")

    @cached_property
    def operator(self) -> _core.SketchOperator:
        """The sketch in the core."""
        return _core.SketchOperator("sparse", self.keys, self.measurements, self.seed, self.nonzeros)

    def spec(self) -> Spec:
        """Return the constructor's arguments."""
        return {
            "keys": self.keys,
            "measurements": self.measurements,
            "nonzeros": self.nonzeros,
            "seed": self.seed,
        }
