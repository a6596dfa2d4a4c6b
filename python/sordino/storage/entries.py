"""One charge of a ledger, as it is kept. The rules of what may be spent live in `sordino.privacy.ledger`."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

__all__ = ["LedgerEntry"]


@dataclass(frozen=True, kw_only=True)
class LedgerEntry:
    """One charge. It holds public facts only: no data, no answer.

    Attributes:
        sequence: Position in the ledger, from 0.
        cost: What was spent: one of `sordino.privacy`.
        request_id: The caller's name of the request, or None; unique within a ledger.
        label: Free text for people.
        unit: What the cost protects (`sordino.privacy`), None where the caller alone knows.
        rule: Name of the rule by which it was charged: charges by different rules do not add up.
        split: What the first Gaussian cost fixed under an `ApproxDP` total: limits of epsilon, of delta and of mu.
        second: When it was charged, in seconds UTC; None in memory.
        kind: 'charge'; in a store also 'share' (the total of another ledger), 'lost' (what may have been forgotten) or
            'raise' (of the total, of no cost).
        periods: Ledgers of periods that were charged with it.
    """

    sequence: int
    cost: Any
    request_id: str | None
    label: str
    unit: Any = None
    rule: str | None = None
    split: tuple[Fraction, Fraction, float] | None = None
    second: int | None = None
    kind: str = "charge"
    periods: tuple[str, ...] = ()
