"""Which mechanisms cannot have less error than one that is fitted already, where fitting them takes seconds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

from sordino.accuracy.bounds import gaussian_bound
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
    """The least errors of both laws of noise.

    Pure noise with density proportional to `exp(-epsilon ‖z‖_K)`, K a symmetric convex body of d dimensions that holds
    all changes, has `(d + 1)(d + 2)/epsilon²` times the covariance of K. If K reaches h in some direction, it has at
    least the variance `2 h²/((d + 1)(d + 2))` there, that of a double cone, since roots of order d - 1 of its sections
    are concave (Brunn and Minkowski). So K lies within the ellipsoid of `(d + 1)(d + 2)/2` times its covariance, by
    which Gaussian noise could be chosen. Hence pure noise, independent Laplace noise too, has at least
    `sqrt(2)/epsilon` times the least error of Gaussian noise at noise multiplier 1, and what bounds that bounds it.

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
        # Discrete noise on whole numbers has less than sqrt(2)/epsilon.
        epsilon = pure_epsilon(privacy)
        return 1.0 / (math.sqrt(2.0) * math.sinh(epsilon / 2.0)) if epsilon < 1000.0 else 0.0

    @cached_property
    def _gaussian(self) -> float:
        request = self._request
        known = [fit.bound for fit in self._near] or [gaussian_bound(request.workload, request.privacy, request.unit)]
        return max(0.0 if bound is None else bound.value for bound in known)

    def rule_out(self, mechanism: Mechanism, fits: Sequence[LinearFit]) -> bool:
        """Return whether fitting takes long and cannot change what is taken: not by more than a hair."""
        request = self._request
        cells = request.workload.core.input_len or 0
        known = [fit for fit in fits if request.max_value is not None or fit.domain.max_value >= USUAL_CELLS]
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
