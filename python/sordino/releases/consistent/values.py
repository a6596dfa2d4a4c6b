"""Consistent answers of whatever workload: what serves which, and what all of them share."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from sordino._support.checks import flag, integer, one_of, real
from sordino.errors import DataTypeError, InvalidParameterError, UnsupportedMechanismError
from sordino.releases.answers import Answers
from sordino.releases.consistent.hierarchies import consistent_groups, consistent_ranges
from sordino.releases.consistent.marginals import consistent_tables
from sordino.releases.consistent.report import Consistency, Known, Norm, Shrink, Whole, Wishes
from sordino.releases.consistent.series import consistent_cells, consistent_sums
from sordino.workloads import AllRanges, GroupBy, Histogram, Marginals, RunningSum
from sordino.workloads.base import Array
from sordino.workloads.constraints import PublicTotal, SignedBound

__all__ = ["consistent_values", "wishes_of"]

_MOST_RECORDS = 2.0**53


def wishes_of(
    release: Answers,
    *,
    total: object,
    shrink: Shrink | None,
    norm: Norm,
    whole: Whole,
    seed: object,
    invariants: Known | None,
    zeros: Known | None,
    bounds: Known | None,
) -> Wishes:
    """Return what was asked for.

    Raises:
        DataTypeError: An option is of the wrong type.
        InvalidParameterError: One is out of range.
        UnsupportedMechanismError: Cells may be negative.
    """
    one_of("norm", norm, get_args(Norm))
    if shrink is not None:
        one_of("shrink", shrink, get_args(Shrink))
    if isinstance(whole, str):
        one_of("whole", whole, ("unbiased",))
    else:
        whole = flag("whole", whole)
    given = _total(release, total)
    if given is not None and whole and given != round(given):
        raise InvalidParameterError("whole numbers have a whole total")
    drawn = secrets.randbits(64) if seed is None else integer("seed", seed, least=0, most=2**64 - 1)
    known = (_known(name, value) for name, value in (("invariants", invariants), ("zeros", zeros), ("bounds", bounds)))
    return Wishes(given, total is not None, shrink, norm, whole, drawn, *known)


def _known(name: str, value: object) -> Known:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise DataTypeError(f"{name} must be a dictionary by sets of attributes")
    return value


def _total(release: Answers, total: object) -> float | None:
    """Return a public number of records, if one is known."""
    if isinstance(release.fit.request.constraint, SignedBound):
        raise UnsupportedMechanismError("cells that may be negative have no consistent counts")
    if not release.fit.request.integral and release.fit.request.constraint is None:
        raise UnsupportedMechanismError(
            "cells that are real numbers may be negative: declare a public bound or total of what is not (constraint=)"
        )
    if total is not None:
        found = real("total", total)
        if not 0.0 <= found <= _MOST_RECORDS:
            raise InvalidParameterError("total must not be negative, and at most 2**53")
        return found
    constraint = release.fit.request.constraint
    return constraint.total if isinstance(constraint, PublicTotal) else None


def consistent_values(release: Answers, wishes: Wishes) -> tuple[Array, Consistency]:
    """Return the values, and how they were made.

    Raises:
        DataTypeError: An option is of the wrong type.
        InvalidParameterError: One means nothing for these queries, or no tables are as it says.
        UnsupportedMechanismError: Nothing is known to be consistent for these queries.
    """
    workload = release.workload
    serve: Any = next((serve for kind, serve in _SERVES.items() if type(workload) is kind), None)
    if workload.layout is not None and workload.layout.channels is not None:
        raise UnsupportedMechanismError("amounts are no counts: of these, ask for counts in a plan of their own")
    if serve is None:
        named = ", ".join(kind.__name__ for kind in _SERVES)
        raise UnsupportedMechanismError(f"consistent() serves {named}, not {type(workload).__name__}")
    if wishes.of_tables and serve is not consistent_tables:
        raise InvalidParameterError("shrink, norm, invariants, zeros and bounds are of marginals")
    values, report = serve(release, workload, wishes)
    moved = float(np.sqrt(np.mean((values.reshape(-1) - release.unbiased.reshape(-1)) ** 2)))
    known = {
        name: tuple(sorted(tuple(key) for key in getattr(wishes, name))) for name in ("invariants", "zeros", "bounds")
    }
    return values.reshape(release.unbiased.shape), replace(report, moved=moved, **known)


_SERVES = {
    Marginals: consistent_tables,
    RunningSum: consistent_sums,
    Histogram: consistent_cells,
    GroupBy: consistent_groups,
    AllRanges: consistent_ranges,
}
