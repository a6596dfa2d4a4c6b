"""How answers were made consistent: what was asked for, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["Consistency", "Known", "Norm", "Set", "Shrink", "Whole", "Wishes"]

Norm = Literal["answers", "noise"]
Shrink = Literal["independence"]
Whole = bool | Literal["unbiased"]
Set = tuple[int, ...]
Known = Mapping[tuple[int, ...], Any]


@dataclass(frozen=True)
class Consistency:
    """How answers were made consistent.

    Attributes:
        total: Records that all tables hold.
        gap: Half the squared distance to what was published, shrunk if that was asked for, is at most so much above the
            least, in units of half the squared noise; 0 where the nearest is known in closed form.
        converged: Whether the gap is as small as was meant, a thousandth; otherwise more answers may be worse.
        mixed: The share of uniform tables that was mixed in, so that no cell is negative.
        iterations: Of the search.
        moved: Root mean square of what answers changed by.
        whole: Largest change of an answer by whole numbers, of those that were consistent; None without them.
        shrunk: What each table's association was multiplied by, for sets of attributes; below .5: mostly noise.
        never_worse: Whether the root mean square error over all answers is at most what it was: on every draw, or in
            expectation if answers were shrunk. It rests on a total that is public and on a search that converged, and
            is said before whole numbers.
        invariants: Sets of attributes whose margins were taken as public: they are exact, and the guarantee says
            nothing of them.
        zeros: Sets of attributes with cells that were taken to be empty.
        bounds: Sets of attributes whose cells were bounded.
    """

    total: float
    gap: float = 0.0
    converged: bool = True
    mixed: float = 0.0
    iterations: int = 0
    moved: float = 0.0
    whole: float | None = None
    shrunk: dict[Set, float] = field(default_factory=dict, repr=False)
    never_worse: bool = False
    invariants: tuple[Set, ...] = ()
    zeros: tuple[Set, ...] = ()
    bounds: tuple[Set, ...] = ()


@dataclass(frozen=True)
class Wishes:
    """What was asked of consistent answers, checked where no workload is needed.

    Attributes:
        total: Number of records, if it is public.
        asked_total: Whether the caller named it, and not the plan's constraint.
        shrink: Towards what, if anything.
        norm: Of distances.
        whole: Whether answers are whole numbers, and whether by chance.
        seed: Of that chance.
        invariants: Margins that are public.
        zeros: Cells that no record can be in.
        bounds: Least and largest values of cells.
    """

    total: float | None
    asked_total: bool
    shrink: Shrink | None
    norm: Norm
    whole: Whole
    seed: int
    invariants: Known
    zeros: Known
    bounds: Known

    @property
    def of_tables(self) -> bool:
        """Whether something was asked for that means marginals."""
        return self.shrink is not None or self.norm != "answers" or bool(self.invariants or self.zeros or self.bounds)
