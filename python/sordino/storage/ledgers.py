"""Where a ledger keeps its entries. The rules of what may be spent live in `sordino.privacy.ledger`."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

from sordino._support.processes import this_process
from sordino._support.uncopied import Uncopied
from sordino.errors import ForkError

__all__ = ["InMemoryStorage", "LedgerEntry", "LedgerStorage"]


@dataclass(frozen=True, kw_only=True)
class LedgerEntry:
    """One charge. It holds public facts only: no data, no answer, no time.

    Attributes:
        sequence: Position in the ledger, from 0.
        cost: What was spent: one of `sordino.privacy`.
        request_id: The caller's name of the request, or None; unique within a ledger.
        label: Free text for people.
        unit: What the cost protects (`sordino.privacy`), None where the caller alone knows.
        rule: Name of the rule by which it was charged: charges by different rules do not add up.
        split: What the first Gaussian cost fixed under an `ApproxDP` total: limits of epsilon, of delta and of mu.
    """

    sequence: int
    cost: Any
    request_id: str | None
    label: str
    unit: Any = None
    rule: str | None = None
    split: tuple[Fraction, Fraction, float] | None = None


class LedgerStorage(Protocol):
    """What a ledger needs from a storage. One storage serves one ledger at a time."""

    def append(self, entry: LedgerEntry) -> None:
        """Keep `entry` for good before returning; the charge counts, and noise is drawn, only after that."""
        ...

    def entries(self) -> tuple[LedgerEntry, ...]:
        """Return everything that was appended, in order."""
        ...


class InMemoryStorage(Uncopied):
    """Entries in a list, gone when the process ends: the budget is then forgotten, not renewed."""

    _no_copy = "a storage cannot be copied or pickled: two ledgers would spend the same budget"

    def __init__(self) -> None:
        self._entries: list[LedgerEntry] = []
        self._process = this_process()

    def append(self, entry: LedgerEntry) -> None:
        """Append `entry`.

        Raises:
            ForkError: The storage belongs to another process.
        """
        self._require_own()
        self._entries.append(entry)

    def entries(self) -> tuple[LedgerEntry, ...]:
        """Return everything that was appended, in order.

        Raises:
            ForkError: The storage belongs to another process.
        """
        self._require_own()
        return tuple(self._entries)

    def _require_own(self) -> None:
        if this_process() != self._process:
            raise ForkError(self._no_copy)
