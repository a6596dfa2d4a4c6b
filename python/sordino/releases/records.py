"""Records whose tables are those that were published, or come near to them."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sordino import _core
from sordino._support.checks import integer
from sordino.errors import UnsupportedMechanismError
from sordino.releases.consistent.report import Consistency
from sordino.releases.consistent.whole import whole_pairs, whole_total
from sordino.releases.frames import made_frame, write_table
from sordino.workloads import Marginals, Workload
from sordino.workloads.base import Array

__all__ = ["Records", "records_of"]

_MOST_RECORDS = 2**30 - 1
_MOST_LEVELS = 2**16
_MOST_CODES = 2**31
_SWEEPS = 100
Pair = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Records:
    """Records that were made of published tables: a function of these and of public chance.

    One-way tables are exactly those of the whole tables that were published. Of pairs there may be records in cells
    that are empty in their table, also where no record can be: `distance` counts them like others. What tables do not
    say, such as those of three attributes, is nothing but what attributes along `tree` imply: no standard error
    describes an analysis of it.

    Attributes:
        codes: Shape (records, attributes): the value of each attribute, int32.
        names: Of the attributes.
        labels: Of their values, None where nothing names them.
        tree: Pairs of attributes whose tables were exact before values were exchanged.
        distance: For each published pair the share of records by which their table is off: half the sum of absolute
            differences to the whole table, over the number of records.
        seed: Of the chance: the same records again, from the same release.
    """

    codes: NDArray[np.int32] = field(repr=False)
    names: tuple[str, ...]
    labels: tuple[tuple[str, ...] | None, ...] = field(repr=False)
    tree: tuple[Pair, ...] = field(repr=False)
    distance: dict[Pair, float] = field(repr=False)
    seed: int = field(repr=False)

    def __len__(self) -> int:
        return len(self.codes)

    def to_frame(self, *, library: str | None = None) -> Any:
        """Return a frame with a column for each attribute, of names where there are any.

        Args:
            library: 'pandas', 'polars' or 'pyarrow'; the first of them that is installed if None.

        Raises:
            InvalidParameterError: Another library.
            MissingDependencyError: It is not installed.
        """
        return made_frame(self._columns(), library)

    def save(self, path: str | Path) -> Path:
        """Write the records as Arrow IPC or Parquet, a column for each attribute, of names where there are any.

        The distances of the pairs, the tree and the seed are in the metadata, as JSON.

        Args:
            path: Ending in `.arrow` or `.parquet`.

        Raises:
            InvalidParameterError: Another ending.
            InputFileError: The file cannot be written.
            MissingDependencyError: pyarrow is not installed.
        """
        facts = {
            "distance": [[list(pair), share] for pair, share in self.distance.items()],
            "tree": [list(pair) for pair in self.tree],
            "seed": self.seed,
        }
        return write_table(path, self._columns(), {b"sordino.records": json.dumps(facts).encode()}, "records")

    def _columns(self) -> dict[str, Any]:
        return {
            name: own.astype(np.int64) if labels is None else np.array(labels, dtype=object)[own]
            for name, own, labels in zip(self.names, self.codes.T, self.labels, strict=True)
        }


class ConsistentTables(Protocol):
    """Whatever has marginal tables that agree."""

    @property
    def workload(self) -> Workload:
        """What was asked."""

    @property
    def consistency(self) -> Consistency | None:
        """How they were made consistent, None if they were not."""

    @property
    def tables(self) -> dict[tuple[int, ...], Array]:
        """Tables by their attributes."""


def records_of(release: ConsistentTables, count: object, seed: object) -> Records:
    """Return records with the one-way tables of a release, and tables of pairs that come near to its own.

    Raises:
        UnsupportedMechanismError: The answers are no tables of one and two attributes, or were not made consistent.
        DataTypeError: Count or seed are no integers.
        InvalidParameterError: They are out of range.
    """
    workload: Any = release.workload
    report = release.consistency
    if not isinstance(workload, Marginals) or report is None:
        raise UnsupportedMechanismError("records are made of consistent marginals: release.consistent().records()")
    if not any(len(s) == 2 for s in workload.sets) or any(len(s) > 2 for s in workload.sets):
        raise UnsupportedMechanismError("records are made of tables of pairs of attributes, and of one")
    if max(workload.levels) > _MOST_LEVELS:
        raise UnsupportedMechanismError(f"records have attributes of at most {_MOST_LEVELS} values")
    attributes = sorted({i for s in workload.sets for i in s})
    most = min(_MOST_RECORDS, _MOST_CODES // len(attributes))
    n = whole_total(report.total) if count is None else integer("count", count, least=0, most=most)
    n = integer("count", n, least=0, most=most)
    drawn = secrets.randbits(63) if seed is None else integer("seed", seed, least=0, most=2**63 - 1)
    tables = release.tables
    whole = whole_pairs(tables, n, {})  # tables that are whole already stay as they are
    pairs = [s for s in tables if len(s) == 2]
    place = {attribute: k for k, attribute in enumerate(attributes)}
    tree = _tree(pairs, tables)
    codes = _allotted(tree, whole, attributes, n, np.random.default_rng(drawn))
    targets = np.concatenate([whole[s].reshape(-1) for s in pairs])
    own = [[place[i], place[j]] for i, j in pairs]
    levels = [workload.levels[i] for i in attributes]
    _core.exchange(codes, levels, own, targets, _SWEEPS, drawn)
    names, labels = _names(workload, attributes)
    distance = {s: _distance(codes[:, ij], whole[s], n) for s, ij in zip(pairs, own, strict=True)}
    return Records(codes.astype(np.int32), names, labels, tuple(tree), distance, drawn)


def _tree(pairs: Sequence[Any], tables: dict[tuple[int, ...], Array]) -> list[Pair]:
    """Return a forest of pairs that say most of each other (Chow and Liu 1968), from its roots outwards."""
    found: list[Pair] = []
    group = {i: i for s in pairs for i in s}

    def top(i: int) -> int:
        while group[i] != i:
            i = group[i]
        return i

    for i, j in sorted(pairs, key=lambda s: -_information(tables[s])):
        if top(i) != top(j):
            group[top(i)] = top(j)
            found.append((i, j))
    ordered: list[Pair] = []
    reached: set[int] = set()
    left = list(found)
    while left:
        step = next((e for e in left if (e[0] in reached) != (e[1] in reached)), None)
        if step is None:
            step = left[0]
            reached.add(step[0])
        left.remove(step)
        parent, child = step if step[0] in reached else step[::-1]
        reached.add(child)
        ordered.append((parent, child))
    return ordered


def _information(table: Array) -> float:
    """Return the mutual information of a table's attributes, in nats."""
    total = float(table.sum())
    if total <= 0.0:
        return 0.0
    shares = table / total
    product = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    there = shares > 0.0
    return float(np.sum(shares[there] * np.log(shares[there] / product[there])))


def _allotted(
    tree: Iterable[Pair], whole: dict[tuple[int, ...], Any], attributes: list[int], n: int, rng: np.random.Generator
) -> NDArray[np.uint16]:
    """Return records whose tables along the tree are exact: to those of each value the multiset that its row says."""
    place = {attribute: k for k, attribute in enumerate(attributes)}
    codes = np.zeros((n, len(attributes)), dtype=np.uint16)
    done: set[int] = set()
    margins = {i: _margin(whole, i) for i in attributes}

    def start(i: int) -> None:
        codes[:, place[i]] = rng.permutation(np.repeat(np.arange(len(margins[i])), margins[i]))
        done.add(i)

    for parent, child in tree:
        if parent not in done:
            start(parent)
        table = whole[parent, child] if (parent, child) in whole else whole[child, parent].T
        order = np.lexsort((rng.random(n), codes[:, place[parent]]))
        values = np.tile(np.arange(table.shape[1]), table.shape[0])
        codes[order, place[child]] = np.repeat(values, table.reshape(-1))
        done.add(child)
    for i in attributes:
        if i not in done:
            start(i)
    return codes


def _margin(whole: dict[tuple[int, ...], Any], i: int) -> NDArray[np.int64]:
    s = next(s for s in whole if i in s)
    found: NDArray[np.int64] = whole[s].sum(axis=tuple(axis for axis, other in enumerate(s) if other != i))
    return found


def _distance(codes: NDArray[np.uint16], table: NDArray[np.int64], n: int) -> float:
    counted = np.zeros(table.shape, dtype=np.int64)
    np.add.at(counted, tuple(codes.T), 1)
    return float(np.abs(counted - table).sum()) / (2.0 * max(n, 1))


def _names(workload: Marginals, attributes: list[int]) -> tuple[tuple[str, ...], tuple[tuple[str, ...] | None, ...]]:
    """Return what a schema calls attributes and their values; numbers otherwise."""
    named: dict[int, tuple[str, tuple[str, ...]]] = {}
    if workload.layout is not None:
        for s, block in zip(workload.sets, workload.layout.blocks, strict=True):
            for i, axis in zip(s, block, strict=True):
                if len(axis) == 1 and axis[0].level is not None:
                    named[i] = (axis[0].level, axis[0].labels)
    names = tuple(named[i][0] if i in named else f"attribute {i}" for i in attributes)
    return names, tuple(named[i][1] if i in named else None for i in attributes)
