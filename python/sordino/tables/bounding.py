"""What bounds cost and what they leave out, before a release: from public facts, or from a charged look at the data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sordino._support.checks import integer, open_unit, positive, sequence
from sordino.errors import DataTypeError, InvalidParameterError
from sordino.plans.planner import plan
from sordino.privacy.guarantees import Privacy
from sordino.privacy.ledger import Ledger
from sordino.privacy.units import AddRemove
from sordino.tables.columns import Text
from sordino.tables.readers import frames_of
from sordino.tables.schema import Bounds, Schema
from sordino.workloads import RunningSum

__all__ = ["BoundsComparison", "compare_bounds", "private_activity"]

# Numbers of rows are told apart by powers of two up to this.
_POWERS = 32


@dataclass(frozen=True)
class BoundsComparison:
    """Bounds side by side.

    Attributes:
        rows: For each its `bounds`, the `unit` that follows, `mechanism`, `rmse`, and `left_out`: the least share of
            rows that is left out if users are as active as was guessed, None without a guess.
    """

    rows: tuple[dict[str, Any], ...]

    def __str__(self) -> str:
        lines = [f"{'cells':>9}{'in each':>9}{'in all':>9}{'rmse':>12}{'left out':>10}  mechanism"]
        for row in self.rows:
            bounds, out = row["bounds"], row["left_out"]
            said = "-" if out is None else f"{out:.1%}"
            counts = f"{bounds.max_cells:>9,}{bounds.per_cell:>9,}{bounds.records:>9,}"
            lines.append(f"{counts}{row['rmse']:>12.6g}{said:>10}  {row['mechanism']}")
        return "\n".join(lines)


def compare_bounds(
    schema: Schema,
    bounds: Sequence[Bounds],
    privacy: Privacy,
    *levels: str,
    rows_per_user: Mapping[int, float] | None = None,
) -> BoundsComparison:
    """Return what bounds cost in noise, and what they must leave out: touches no data, costs nothing.

    Noise is what `plan` says of it. What is left out is a bias that no release shows; it is known only for a guess of
    how active users are, and at least `1 - sum p_n min(n, max_records)/sum p_n n`, more where a user's rows fall
    together.

    Args:
        schema: With users; its own bounds do not matter.
        bounds: Which.
        privacy: The guarantee of the release.
        levels: As for `Schema.group_by`; all cells without any.
        rows_per_user: A public guess: numbers of rows, and the share of users who have so many.

    Raises:
        DataTypeError: An argument is of the wrong type.
        InvalidParameterError: The schema has no users, there are no bounds, or the guess is none.
    """
    if not isinstance(schema, Schema):
        raise DataTypeError("schema must be a sordino.Schema")
    chosen = sequence("bounds", bounds, "sordino.Bounds")
    if not chosen or not all(isinstance(each, Bounds) for each in chosen):
        raise DataTypeError("bounds must be a sequence of sordino.Bounds")
    guess = _guess(rows_per_user)
    rows = []
    for each in chosen:
        own = schema.with_bounds(each)
        made = plan(own.group_by(*levels) if levels else own.counts(), privacy)
        left_out = None
        if guess is not None:
            left_out = 1.0 - sum(p * min(n, each.records) for n, p in guess) / sum(p * n for n, p in guess)
        rows.append(
            {"bounds": each, "unit": own.unit, "mechanism": made.mechanism, "rmse": made.rmse, "left_out": left_out}
        )
    return BoundsComparison(tuple(rows))


def _guess(rows_per_user: object) -> list[tuple[int, float]] | None:
    if rows_per_user is None:
        return None
    if not isinstance(rows_per_user, Mapping) or not rows_per_user:
        raise DataTypeError("rows_per_user must be a mapping from numbers of rows to shares of users")
    return [
        (integer("rows of a user", n, least=1, most=2**53), positive("a share of users", share))
        for n, share in rows_per_user.items()
    ]


def private_activity(
    data: object,
    schema: Schema,
    privacy: Privacy,
    quantiles: Iterable[float] = (0.5, 0.9, 0.99),
    *,
    ledger: Ledger | None = None,
    request_id: str | None = None,
) -> list[int]:
    """Return how many rows users have: for each quantile the power of two below which so many of them are, privately.

    For bounds where nothing is known: every user counts once, in the power of two of its number of rows, so that a user
    more or less changes one of 32 counts by one; their running totals are released. What bounds are chosen by it are
    public, and its cost is part of the whole.

    Args:
        data: As `tabulate` takes it for the core.
        schema: Says who is a user.
        privacy: The guarantee of this look.
        quantiles: Each strictly between 0 and 1.
        ledger: Where the cost is charged; None leaves the look unaccounted.
        request_id: Name of the request, charged at most once.

    Raises:
        DataTypeError: An argument is of the wrong type, or the users are in a column that they are not read from.
        InvalidParameterError: The schema has no users, or a quantile is out of range.
        BudgetExceededError: The ledger's total would be exceeded.
        UnitError: The ledger protects another thing.
        DuplicateRequestError: The request was made before, for something else.
    """
    if not isinstance(schema, Schema):
        raise DataTypeError("schema must be a sordino.Schema")
    if schema.user is None:
        raise InvalidParameterError("schema must have users")
    wanted = [open_unit("a quantile", q) for q in sequence("quantiles", quantiles, "numbers")]
    unit = AddRemove(1, one_signed=True, label=schema.label)
    look = plan(RunningSum(_POWERS), privacy, unit=unit)
    release = look.release(_users_by_power(data, schema.user), ledger=ledger, request_id=request_id)
    totals = np.maximum.accumulate(release.values)
    return [2 ** int(np.argmax(totals >= q * totals[-1])) for q in wanted]


def _users_by_power(data: object, user: str) -> NDArray[np.int64]:
    """Return how many users have 1, 2, up to 4, up to 8, ... rows: private."""
    rows: dict[Any, int] = {}
    for frame in frames_of(data, [user]):
        kind, names, known = frame[user].users(f"the users in {user!r}")
        if isinstance(names, Text):
            for name, there in zip(names.entries(), known.tolist(), strict=True):
                if there:
                    rows[name] = rows.get(name, 0) + 1
        else:
            different, counts = np.unique(names[known], return_counts=True)
            for name, count in zip(different.tolist(), counts.tolist(), strict=True):
                rows[kind, name] = rows.get((kind, name), 0) + count
    table = np.zeros(_POWERS, dtype=np.int64)
    for count in rows.values():
        table[min((count - 1).bit_length(), _POWERS - 1)] += 1
    return table
