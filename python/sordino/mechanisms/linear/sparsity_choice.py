"""The private choice of how many coefficients a compressive mechanism keeps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sordino import _core
from sordino.errors import InvalidParameterError
from sordino.mechanisms.linear.measurement import LinearMeasurement

if TYPE_CHECKING:
    from sordino.mechanisms.fits import Request
    from sordino.mechanisms.linear.compression import Compression

__all__ = ["SparsityChoice"]


@dataclass(frozen=True)
class SparsityChoice:
    """`sordino.sketches.ChosenSparsity` at work.

    Attributes:
        compression: Whose sparsity is open.
    """

    compression: Compression

    def scores(self, fitted: LinearMeasurement) -> _core.SparsityScores:
        """Return what is public about the choice: candidates, errors by noise, sensitivity, epsilon.

        The noise of a candidate is what its sketch has on S coefficients, `sqrt(S log2(n/S) k/(k - S))` times the
        standard deviation of one number of the sketch with unit columns; that is the same for all candidates, but for
        Laplace noise on dense columns, where it grows with the root of k.
        """
        request = fitted.request
        cells = request.workload.core.input_len or 0
        options = self.compression.options(cells)
        penalties = [self._penalty(fitted, cells, option) for option in options]
        epsilon = self.compression.shares(request.privacy, fitted.mechanism.law)[0]
        assert epsilon is not None
        domain = fitted.domain
        return _core.SparsityScores(
            list(options), penalties, request.unit.relation(), domain.max_value, domain.fraction_bits, epsilon
        )

    def _penalty(self, fitted: LinearMeasurement, cells: int, option: int) -> float:
        operator = self.compression.chosen(option).operator(cells)
        measurements = operator.description[2]
        law = fitted.mechanism.law
        entries = operator.column_entries
        ratio = self.compression.shares(fitted.request.privacy, law)[1] * fitted.door.sensitivity[0]
        # The sensitivity in units of a column's, which differs from that of the fitted sketch.
        widest = self.compression.operator(cells).column_entries
        single = ratio / widest * math.sqrt(2.0 * entries) if law == "laplace" else ratio / math.sqrt(widest)
        return single * math.sqrt(option * max(math.log2(cells / option), 1.0) * measurements / (measurements - option))

    def try_basis(self, request: Request, cells: Any) -> None:
        """Call a basis of the user's functions on the table, before anything is charged.

        Raises:
            InvalidParameterError: A function fails. What it says is left out: it may be about the table.
        """
        if self.compression.transform.name != "custom":
            return
        table = self._table(request, cells)
        try:
            self.compression.transform.analyze(table.astype(np.float64))
        except Exception:
            raise InvalidParameterError("a function of the basis fails on this table") from None

    def _table(self, request: Request, cells: Any) -> Any:
        """Return all cells, of a table that came as its places and values."""
        if not isinstance(cells, tuple):
            return cells
        table = np.zeros(request.workload.core.input_len or 0, dtype=np.int64)
        table[cells[0]] = cells[1]
        return table

    def select(self, fitted: LinearMeasurement, cells: Any, key: bytes | None) -> int:
        """Return the chosen sparsity: the one look at the data before it is measured."""
        size = fitted.request.workload.core.input_len or 0
        table = self._table(fitted.request, cells)
        index = self.scores(fitted).select(self.compression.transform.core(size), table, _other(key))
        return self.compression.options(size)[index]


def _other(key: bytes | None) -> bytes | None:
    """Return another key than that of the measurement, for deterministic noise."""
    return None if key is None else bytes([key[0] ^ 0x5A, *key[1:]])
