"""Private-PGM (`mbi`) on tables that were measured one by one: mirror descent over models of all records.

McKenna, Sheldon & Miklau, "Graphical-model based estimation and inference for differential privacy", ICML 2019. Its tables are those
of some records' distribution, where ours only agree; both are the nearest of their kind in the same squared distance.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import mbi
import numpy as np
from mbi import approximate_oracles, estimation
from numpy.typing import NDArray

__all__ = ["approximated", "estimated", "gaps"]

Array = NDArray[np.float64]
Set = tuple[int, ...]
Tables = dict[Set, Array]


def _asked(
    levels: Sequence[int], tables: Mapping[Set, Array], stderr: float
) -> tuple[mbi.Domain, list[mbi.LinearMeasurement]]:
    measurements = [mbi.LinearMeasurement(table.ravel(), s, stddev=stderr) for s, table in tables.items()]
    return mbi.Domain(list(range(len(levels))), list(levels)), measurements


def _fetched(model: Any, sets: Sequence[Set]) -> Tables:
    return {s: np.asarray(model.project(s).datavector(flatten=False)) for s in sets}


def estimated(levels: Sequence[int], tables: Mapping[Set, Array], stderr: float, steps: int) -> Tables:
    """Return the tables of the model after so many steps of mirror descent, from nothing.

    Args:
        levels: Levels of the attributes.
        tables: Measured tables by their attributes.
        stderr: Of every cell.
        steps: A multiple of fifty.
    """
    model = estimation.MirrorDescent().estimate(*_asked(levels, tables, stderr), iters=steps)
    return _fetched(model, list(tables))


def approximated(levels: Sequence[int], tables: Mapping[Set, Array], stderr: float, steps: int) -> Tables:
    """Return the same by convex generalised belief propagation, whose tables agree only in the limit."""
    domain, measurements = _asked(levels, tables, stderr)
    total = estimation.minimum_variance_unbiased_total(measurements)
    model = approximate_oracles.ApproxMirrorDescent(stepsize=stderr**2 / total)
    return _fetched(model.estimate(domain, measurements, iters=steps), list(tables))


def _gap(levels: Sequence[int], tables: Mapping[Set, Array], measured: Mapping[Set, Array]) -> float:
    """Return what half the squared distance is at most above that of the nearest tables of any records.

    The gradient says by how much: records that are all in the cell where the gradients of its pairs are least, together.
    """
    slopes = {s: table - measured[s] for s, table in tables.items()}
    cells = np.zeros(levels)
    for s, slope in slopes.items():
        cells += slope.reshape([level if i in s else 1 for i, level in enumerate(levels)])
    total = float(next(iter(tables.values())).sum())
    return sum(float(np.vdot(slopes[s], table)) for s, table in tables.items()) - total * float(cells.min())


def gaps(
    levels: Sequence[int], tables: Mapping[Set, Array], stderr: float, steps: int
) -> list[tuple[int, float, Tables]]:
    """Return steps, the gap and the tables every fifty steps of mirror descent."""
    found: list[tuple[int, float, Tables]] = []

    def looked(marginals: Any) -> None:
        own = _fetched(marginals, list(tables))
        found.append(((len(found) + 1) * estimation.CALLBACK_EVERY, _gap(levels, own, tables), own))

    estimation.MirrorDescent().estimate(*_asked(levels, tables, stderr), iters=steps, callback_fn=looked)
    return found
