"""From records to counts with bounded contributions."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sordino._support.checks import integer, numbers, text
from sordino._support.columns import listed_column
from sordino._support.private_numbers import array_of, attempt, entries_of, is_missing, real_of, reals_or
from sordino._support.protocols import TableLike
from sordino.errors import DataTypeError, InvalidParameterError, ShapeError
from sordino.privacy.units import AddRemove, ReplaceOne, Unit, UserLevel
from sordino.workloads.base import length_of

__all__ = ["Tabulated", "tabulate", "within_allowance"]


class Tabulated(TableLike):
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

    def require(self, unit: Unit) -> None:
        """Refuse a plan that protects less than what one user can change here.

        Raises:
            DataTypeError: No unit.
            InvalidParameterError: Several of the plan's units are needed to cover what one user can change.
        """
        if not isinstance(unit, AddRemove | ReplaceOne | UserLevel):
            raise DataTypeError("unit must be AddRemove, ReplaceOne or UserLevel")
        most = self.unit.records
        if unit.units_in(most) > 1:
            raise InvalidParameterError(
                f"{self.unit.label} can change these counts by {most}, all in one cell: plan with "
                f"unit=sordino.AddRemove({most}), which is the `unit` of what tabulate returned"
            )

    def __repr__(self) -> str:
        return f"Tabulated(<{len(self.counts)} private counts>, unit={self.unit!r})"


def tabulate(
    records: object,
    bins: object,
    *,
    user: object = None,
    max_records: int | None = None,
    per_cell: int | None = None,
    label: str | None = None,
) -> Tabulated:
    """Count records in bins, keeping at most `max_records` records of each user.

    Which records of a user are kept depends on that user's records alone (the first ones in the order given),
    so adding or removing a user changes the counts by at most `max_records` in total. With `per_cell` no more than so
    many of them are in one bin, the first ones: the unit then says that, and that all of them only raise counts.

    Args:
        records: Shape (n,): numbers for edges, or integer codes. Missing and out-of-range records are null: they
            count nowhere, silently, and still use up their user's allowance.
        bins: Number of bins (records are codes 0, 1, ...), or increasing edges of half-open bins
            `[edge_i, edge_(i+1))`. Public: never take them from the data.
        user: Shape (n,): whose record it is; anything hashable or an integer array. Users are the same if they are
            equal and have the same hash, as in a `dict`: give all of them in one type. Records without one (None,
            not-a-number, not-a-time, or a tuple that holds such) are null. Needs `max_records`.
        max_records: Records of one user that count.
        per_cell: Records of one user that count in one bin, if fewer; further ones use up nothing. Needs `user`.
        label: What is protected, for the unit; 'one user' or 'one record' if None.

    Returns:
        Counts and the unit they satisfy.

    Raises:
        DataTypeError: An argument is of the wrong type, or records are dates or categories: give their codes.
        ShapeError: Records and users differ in number.
        InvalidParameterError: Bins are not increasing, `user` and `max_records` do not come together, or there is a
            `per_cell` without them.
    """
    if (user is None) != (max_records is None):
        raise InvalidParameterError("user and max_records go together")
    if per_cell is not None and user is None:
        raise InvalidParameterError("per_cell needs user and max_records")
    said = "" if label is None else text("label", label)
    reals = _reals(records)
    if isinstance(bins, int | np.integer) and not isinstance(bins, bool):
        count = length_of("bins", bins)
        cells = _codes(reals, count)
    else:
        edges = numbers("bins", bins)
        if len(edges) < 2 or not np.isfinite(edges).all() or (np.diff(edges) <= 0).any():
            raise InvalidParameterError("edges must be finite and strictly increasing, at least two")
        count = len(edges) - 1
        cells = np.searchsorted(edges, reals, side="right") - 1
        cells[(cells >= count) | np.isnan(reals)] = -1
    unit = AddRemove(1, label=said or "one record")
    if user is not None and max_records is not None:
        limit = integer("max_records", max_records, least=1)
        groups = _groups(user, len(cells))
        unit = AddRemove(limit, label=said or "one user")
        if per_cell is not None:
            each = integer("per_cell", per_cell, least=1)
            further = (cells >= 0) & (_rank_within(groups * (count + 1) + cells) >= each)
            cells, groups = cells[~further], groups[~further]
            unit = AddRemove(limit, per_cell=each, one_signed=True, label=unit.label)
        cells = np.where(_allowed(groups, limit), cells, -1)
    counts = np.bincount(cells[cells >= 0], minlength=count).astype(np.int64)
    return Tabulated(counts, unit)


# Columns that hold no numbers, by the beginning of what their dtypes are called in pandas, polars and Arrow.
_NO_RECORDS = "records must be numbers: give codes 0, 1, ... of what is none, such as dates, categories"
_NO_NUMBERS = ("category", "categorical", "dictionary", "enum", "period", "interval", "date", "time", "duration")


def _column(name: str, data: object) -> NDArray[Any]:
    array = array_of(name, data, "a one-dimensional array")
    if array.ndim != 1:
        raise ShapeError(f"{name} must have one dimension, got {array.ndim}")
    return array


def _reals(records: object) -> NDArray[np.float64]:
    """Return numbers; what is no number is missing.

    Raises:
        DataTypeError: A column of a type that holds no numbers.
    """
    if isinstance(records, list | tuple):
        values = entries_of("records", records)
        # Types are not private, as little as those of columns: a list without a single number is a mistake.
        known = [value for value in values.flat if not is_missing(value)] if values.dtype.kind == "O" else []
        if known and not any(isinstance(v, int | float | str | np.generic) or hasattr(v, "__float__") for v in known):
            raise DataTypeError(_NO_RECORDS)
    else:
        dtype = str(getattr(records, "dtype", getattr(records, "type", ""))).lower()
        values = _column("records", records)
        if values.dtype.kind in "mMcV" or dtype.startswith(_NO_NUMBERS):
            raise DataTypeError(_NO_RECORDS)
    if values.ndim != 1:
        raise ShapeError(f"records must have one dimension, got {values.ndim}")
    if values.dtype.kind in "USO":
        return np.array([_real(value) for value in values], dtype=np.float64)
    return reals_or("records", values).copy()  # read more than once: nobody else may write there


def _real(value: Any) -> float:
    found, error = attempt(float if isinstance(value, str | bytes) else real_of, value)
    return np.nan if error is not None else found


def _codes(reals: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    sound = (reals >= 0) & (reals < count) & (reals == np.floor(reals))
    return np.where(sound, reals, -1.0).astype(np.int64)


def _groups(user: object, count: int) -> NDArray[np.int64]:
    """Return a number for each record's user, -1 where that is missing: nobody's records cannot be bounded.

    Plain numbers and strings are sorted. Everything else is told apart by hash and equality alone: an order that holds
    only between some users would tear their records apart.
    """
    dtype = getattr(user, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind in "iubUSfmM":
        users = _column("user", user)
        if len(users) != count:
            raise ShapeError("user must have one entry for each record")
        groups = np.full(count, -1, dtype=np.int64)
        known = users == users  # noqa: PLR0124 - not-a-number and not-a-time differ from themselves
        groups[known] = np.unique(users[known], return_inverse=True)[1].reshape(-1)
        return groups
    listed = _listed(user)
    if len(listed) != count:
        raise ShapeError("user must have one entry for each record")
    names: dict[Any, int] = {}

    def named(name: Any) -> int:
        return -1 if is_missing(name) else names.setdefault(name, len(names))

    def group(name: Any) -> int:
        found, error = attempt(named, name, names)
        return -1 if error is not None else found  # no name at all: it has no hash, or cannot be compared

    return np.fromiter(map(group, listed), dtype=np.int64, count=count)


def _listed(user: object) -> list[Any]:
    """Return users one by one, as they are.

    An array would turn not-a-number beside text into text, and large integers beside a missing one into floats.

    Raises:
        DataTypeError: No sequence, or one with a mask.
        ShapeError: More than one dimension.
    """
    if isinstance(user, list | tuple):
        return list(user)
    if isinstance(user, np.ndarray) or not any(hasattr(user, name) for name in ("to_pylist", "to_list")):
        _column("user", user)
    elif getattr(user, "ndim", 1) != 1 or hasattr(user, "columns"):
        raise ShapeError("user must have one dimension")
    user = _instants(user)
    if not any(hasattr(user, name) for name in ("to_pylist", "to_list", "tolist")):
        return list(_column("user", user))
    try:
        return listed_column(user)
    except (TypeError, ValueError, NotImplementedError):
        raise DataTypeError("user has a column of dates that cannot be read: give their integers") from None


def _instants(column: Any) -> Any:
    """Return the integers behind a column of dates and times of polars or Arrow; other columns as they are.

    Python's own dates are of microseconds, and of 9,999 years: users that differ by less would be one.

    Raises:
        DataTypeError: The library does not say its integers.
    """
    try:
        if hasattr(column, "to_physical"):
            return column.to_physical() if str(column.dtype).startswith(_TIMES) else column
        behind = getattr(getattr(column, "array", None), "__arrow_array__", None)
        found = column if behind is None or not str(column.dtype).endswith("[pyarrow]") else behind()
        if str(getattr(found, "type", "")).startswith(("dictionary", "run_end_encoded")):
            found = found.cast(found.type.value_type)
        kind = str(getattr(found, "type", ""))
        if kind.startswith(("timestamp", "time", "date", "duration")):
            found = found.cast("int32" if kind.startswith(("date32", "time32")) else "int64")
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # polars panics
        raise DataTypeError("user has a column of dates that cannot be read: give their integers") from None
    return found


_TIMES = ("Date", "Time", "Duration")


def within_allowance(user: object, count: int, limit: int) -> NDArray[np.bool_]:
    """Return which of so many records are among the first `limit` of their user; those of nobody are not.

    Raises:
        DataTypeError: Users cannot be told apart.
        ShapeError: Not as many users as records.
    """
    return _allowed(_groups(user, count), limit)


def _allowed(groups: NDArray[np.int64], limit: int) -> NDArray[np.bool_]:
    return (groups >= 0) & (_rank_within(groups) < limit)


def _rank_within(group: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many earlier records each record's user has."""
    count = len(group)
    order = np.argsort(group, kind="stable")
    ordered = group[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if count else np.zeros(0, dtype=np.int64)
    lengths = np.diff(np.r_[starts, count])
    ranks = np.empty(count, dtype=np.int64)
    ranks[order] = np.arange(count) - np.repeat(starts, lengths)
    return ranks
