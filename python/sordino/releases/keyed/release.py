"""A released sketch of keys: counts of candidates, as often as wanted, for free."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sordino import _core
from sordino._support.checks import integer, integers, path_of
from sordino.errors import InvalidParameterError
from sordino.mechanisms.linear.compression import sparsity_for
from sordino.mechanisms.linear.recoveries import Explaining, unexplained
from sordino.releases.keyed.file import SKETCH
from sordino.releases.keyed.recovery import counts_of_keys
from sordino.workloads.base import Array

if TYPE_CHECKING:
    from pathlib import Path

    from sordino.mechanisms.keyed.fit import KeyFit

__all__ = ["CandidateCounts", "KeyRelease"]

_MOST_CANDIDATES = 2**22


@dataclass(frozen=True, eq=False)
class CandidateCounts(Explaining):
    """Counts of candidate keys that explain a released sketch.

    Attributes:
        keys: The candidates, as they were given.
        values: Their counts; zero where they were not found.
        residual: l2 norm of what is left unexplained, in units of the count of a key alone.
        noise_level: What noise alone would leave, about.
        noise_bound: What noise alone leaves with probability 0.999 at most, whichever keys were found.
        spoilt: Sums that were left out, because a key that is no candidate is in them.
        elsewhere: l2 norm of the counts that are not among `values`: of other keys, or of candidates that were missed.
            Below a few times `noise_level / k^(1/4)`, k the sums, it is noise.
        ended: Whether the search ended by itself.
    """

    keys: NDArray[np.uint64] = field(repr=False)
    values: Array = field(repr=False)
    residual: float
    noise_level: float
    noise_bound: float
    spoilt: int
    elsewhere: float
    ended: bool

    def top(self, count: int) -> tuple[NDArray[np.uint64], Array]:
        """Return the candidates with the largest counts, and these, the largest first.

        Raises:
            DataTypeError: No integer.
            InvalidParameterError: It is below 1, or there are not so many.
        """
        most = integer("count", count, least=1, most=len(self.keys))
        order = np.argsort(-self.values, kind="stable")[:most]
        return self.keys[order], self.values[order]


@dataclass(frozen=True, eq=False)
class KeyRelease:
    """A published sketch of keys. What is read off it costs no privacy.

    Attributes:
        fit: How it was made.
        measured: What was published: the sums with noise.
        private: False only under `sordino.testing.deterministic_noise`.
        accounted: Whether a ledger was charged.
    """

    fit: KeyFit
    measured: _core.Measured = field(repr=False)
    private: bool = True
    accounted: bool = False

    @cached_property
    def sums(self) -> Array:
        """The sums with noise, shape (measurements,)."""
        return self.fit.strategy.decode(self.measured.values())

    def counts(self, candidates: object, *, sparsity: int | None = None) -> CandidateCounts:
        """Return the counts of candidate keys: free, as often as wanted.

        What is found are the keys that explain the sums. A candidate below what the largest of so many numbers of
        noise is expected to be, `noise sqrt(2 ln m)`, and three standard deviations at least, has zero; noise alone
        exceeds that at times. Keys that are no candidates may have counts as well: few heavy ones are told from the
        others, since they spoil single sums, and many light ones are like noise; `explained` and `elsewhere` say
        so. Which keys are candidates must not depend on the private data but by this release.

        Counts have no intervals: those that are found were chosen for their size. Without keys elsewhere the error of S
        keys together is about `fit.rmse sqrt(S k/(k - S))`, k the sums.

        Args:
            candidates: Different integers from 0 up to, without, the number of keys; at most 2**22.
            sparsity: Keys that are looked for, at most; if None as many as k sums tell from so many candidates,
                `k = 2 S log2(m/S)`.

        Raises:
            DataTypeError: No integers.
            ShapeError: Not one-dimensional.
            InvalidParameterError: There are none or too many, a key does not exist or comes twice, or the sparsity is
                not from 1 to half the number of sums.
            KeyboardInterrupt: Ctrl-C.
        """
        workload = self.fit.workload
        listed = integers("candidates", candidates, least=0, most=workload.keys - 1)
        if not 1 <= len(listed) <= _MOST_CANDIDATES:
            raise InvalidParameterError("candidates must be from 1 to 2**22 keys")
        if len(np.unique(listed)) != len(listed):
            raise InvalidParameterError("candidates must be different keys")
        keys = np.ascontiguousarray(listed, dtype=np.uint64)
        half = max(workload.measurements // 2, 1)
        if sparsity is None:
            wanted = min(sparsity_for(workload.measurements, max(len(keys), 8)), half)
        else:
            wanted = integer("sparsity", sparsity, least=1, most=half)
        scale = math.sqrt(workload.nonzeros)
        noise, law, numbers = self.fit.noise / scale, self.fit.mechanism.law, workload.measurements
        y = self.sums / scale
        found = counts_of_keys(workload.operator, keys, y, noise, law, wanted)
        values = np.zeros(len(keys))
        values[found.support] = found.counts
        square, left = float(found.residual @ found.residual), max(numbers - len(found.support), 1)
        return CandidateCounts(
            keys=keys,
            values=values,
            residual=math.sqrt(square),
            noise_level=noise * math.sqrt(left),
            noise_bound=unexplained(y, noise, law),
            spoilt=found.spoilt,
            elsewhere=math.sqrt(max(square * numbers / left - numbers * noise**2, 0.0)),
            ended=found.ended,
        )

    def save(self, path: str | Path) -> Path:
        """Write the sketch as JSON, large arrays in an `.npz` beside it: public, and all that counts need.

        Raises:
            DataTypeError: `path` is no path.
            InputFileError: The file cannot be written.
        """
        return SKETCH.save(self, path_of(path))

    @staticmethod
    def load(path: str | Path) -> KeyRelease:
        """Read a sketch: its plan is fitted again, and must be the one that it was made with.

        Raises:
            DataTypeError: `path` is no path.
            InputFileError: The file cannot be read.
            PlanFileError: The file is no sketch, was altered, or does not fit its plan.
        """
        return SKETCH.load(path_of(path), KeyRelease)
