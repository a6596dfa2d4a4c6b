"""From records to counts with bounded contributions."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sordino._checks import integer
from sordino.errors import DataTypeError, InvalidParameterError, ShapeError
from sordino.units import AddRemove
from sordino.workloads.base import length_of, numbers

__all__ = ["Tabulated", "tabulate"]


class Tabulated:
    """Counts with the unit that they satisfy.

    Attributes:
        counts: Records in each bin, int64, shape (bins,).
        unit: `AddRemove(max_records, label='one user')`, or `AddRemove(1)` without users.
    """

    def __init__(self, counts: NDArray[np.int64], unit: AddRemove) -> None:
        self.counts = counts
        self.unit = unit

    def to_numpy(self) -> NDArray[np.int64]:
        """Return the counts; a release takes the object itself as well."""
        return self.counts

    def __repr__(self) -> str:
        return f"Tabulated(<{len(self.counts)} private counts>, unit={self.unit!r})"


def tabulate(
    records: object,
    bins: object,
    *,
    user: object = None,
    max_records: int | None = None,
    label: str | None = None,
) -> Tabulated:
    """Count records in bins, keeping at most `max_records` records of each user.

    Which records of a user are kept depends on that user's records alone (the first ones in the order given),
    so adding or removing a user changes the counts by at most `max_records` in total.

    Args:
        records: Shape (n,): numbers for edges, or integer codes. Missing and out-of-range records are null: they
            count nowhere, silently, and still use up their user's allowance.
        bins: Number of bins (records are codes 0, 1, ...), or increasing edges of half-open bins
            `[edge_i, edge_(i+1))`. Public: never take them from the data.
        user: Shape (n,): whose record it is; anything hashable or an integer array. Records without one (None, NaN)
            are null. Needs `max_records`.
        max_records: Records of one user that count.
        label: What is protected, for the unit; 'one user' or 'one record' if None.

    Returns:
        Counts and the unit they satisfy.

    Raises:
        DataTypeError: An argument is of the wrong type.
        ShapeError: Records and users differ in number.
        InvalidParameterError: Bins are not increasing, or `user` and `max_records` do not come together.
    """
    if (user is None) != (max_records is None):
        raise InvalidParameterError("user and max_records go together")
    values = _column("records", records)
    if isinstance(bins, int | np.integer) and not isinstance(bins, bool):
        count = length_of("bins", bins)
        cells = _codes(values, count)
    else:
        edges = numbers("bins", bins)
        if len(edges) < 2 or not np.isfinite(edges).all() or (np.diff(edges) <= 0).any():
            raise InvalidParameterError("edges must be finite and strictly increasing, at least two")
        count = len(edges) - 1
        reals = _reals(values)
        cells = np.searchsorted(edges, reals, side="right") - 1
        cells[(cells >= count) | np.isnan(reals)] = -1
    unit = AddRemove(1, label=label or "one record")
    if user is not None and max_records is not None:
        limit = integer("max_records", max_records, least=1)
        users, missing = _users(user, len(cells))
        cells = np.where((_rank_within(users) < limit) & ~missing, cells, -1)
        unit = AddRemove(limit, label=label or "one user")
    counts = np.bincount(cells[cells >= 0], minlength=count).astype(np.int64)
    return Tabulated(counts, unit)


def _column(name: str, data: object) -> NDArray[Any]:
    try:
        convert = getattr(data, "to_numpy", None)
        array = np.asarray(convert() if callable(convert) else data)
    except Exception:
        raise DataTypeError(f"{name} must be a one-dimensional array") from None
    if array.ndim != 1:
        raise ShapeError(f"{name} must have one dimension, got {array.ndim}")
    return array


def _reals(values: NDArray[Any]) -> NDArray[np.float64]:
    """Numbers; what is no number is missing."""
    if values.dtype.kind in "iubf":
        return values.astype(np.float64)
    out = np.full(len(values), np.nan)
    for i, value in enumerate(values):
        try:
            out[i] = float(value)
        except (TypeError, ValueError, OverflowError):
            continue
    return out


def _codes(values: NDArray[Any], count: int) -> NDArray[np.int64]:
    reals = _reals(values)
    sound = (reals >= 0) & (reals < count) & (reals == np.floor(reals))
    return np.where(sound, reals, -1.0).astype(np.int64)


def _users(user: object, count: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return whose record each is, and where that is missing: such records belong to nobody and cannot be bounded."""
    users = _column("user", user)
    if len(users) != count:
        raise ShapeError("user must have one entry for each record")
    if users.dtype.kind == "O":
        # Not-a-number, of whatever type, differs from itself.
        missing = np.array([name is None or bool(name != name) for name in users], dtype=bool)  # noqa: PLR0124
    elif users.dtype.kind in "fmM":
        missing = np.isnan(users) if users.dtype.kind == "f" else np.isnat(users)
    else:
        missing = np.zeros(count, dtype=bool)
    return users, missing


def _rank_within(users: NDArray[Any]) -> NDArray[np.int64]:
    """How many earlier records each record's user has."""
    count = len(users)
    try:
        _, group = np.unique(users, return_inverse=True)
    except TypeError:
        names: dict[Any, int] = {}
        try:
            group = np.array([names.setdefault(name, len(names)) for name in users])
        except TypeError:
            raise DataTypeError("users must be hashable") from None
    order = np.argsort(group, kind="stable")
    ordered = group[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if count else np.zeros(0, dtype=np.int64)
    lengths = np.diff(np.r_[starts, count])
    ranks = np.empty(count, dtype=np.int64)
    ranks[order] = np.arange(count) - np.repeat(starts, lengths)
    return ranks
