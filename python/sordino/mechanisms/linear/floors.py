"""Which mechanisms cannot have less error than one that is fitted already, where fitting them takes seconds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

from sordino.accuracy.bounds import gaussian_bound, least_pure_deviation
from sordino.mechanisms.catalogue import Law
from sordino.mechanisms.fits import TIE, Request
from sordino.mechanisms.linear.catalogue import MECHANISMS, Mechanism
from sordino.mechanisms.linear.fit import LinearFit
from sordino.privacy.calibration import noise_ratio, pure_epsilon
from sordino.privacy.guarantees import PureDP

__all__ = ["LONG", "USUAL_CELLS", "Floors"]

LONG = 2**17 - 1
"""Cells beyond which planning takes seconds."""

USUAL_CELLS = 2**12
"""Bound of cells that is not given up for less error where none is declared."""

# What a later mechanism could still take off an error, relative to it.
_HAIR = 1.0001


class Floors:
    """The least errors of both laws of noise: see `sordino.accuracy.bounds.norm_bound`.

    Args:
        request: What is asked for.
        near: Gaussian fits whose bound is known.
    """

    def __init__(self, request: Request, near: Sequence[LinearFit] = ()) -> None:
        self._request = request
        self._near = near

    def of_one(self, law: Law) -> float:
        """Return the least standard deviation of noise for a sensitivity of 1."""
        privacy = self._request.privacy
        if law == "gaussian":
            return math.inf if isinstance(privacy, PureDP) else noise_ratio(privacy, law)
        return least_pure_deviation(pure_epsilon(privacy))

    @cached_property
    def _gaussian(self) -> float:
        request = self._request
        known = [fit.bound for fit in self._near] or [gaussian_bound(request.workload, request.privacy, request.unit)]
        return max(0.0 if bound is None else bound.value for bound in known)

    def rule_out(self, mechanism: Mechanism, fits: Sequence[LinearFit]) -> bool:
        """Return whether fitting takes long and cannot change what is taken: not by more than a hair."""
        request = self._request
        cells = request.workload.core.input_len or 0
        wide = [fit for fit in fits if request.max_value is not None or fit.domain.max_value >= USUAL_CELLS]
        known = [fit for fit in wide if not fit.is_biased]
        if not known or request.unit.changes is not None or isinstance(request.privacy, PureDP):
            return False
        laplace = mechanism.law == "laplace"
        more = self.of_one("laplace") / self.of_one("gaussian") if laplace else 1.0
        searched = laplace and more > 1.0 and mechanism.searched(request.workload)
        if not (cells > LONG or searched) or request.workload.core.answers_len == 1:
            return False
        best = min(known, key=lambda fit: fit.error(request.objective))
        simpler = MECHANISMS.index(mechanism) < MECHANISMS.index(best.mechanism)
        return more * self._gaussian * (1.0 / TIE if simpler else _HAIR) >= best.error(request.objective)
