"""Which mechanisms cannot have less error than one that is fitted already, where fitting them takes seconds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

from sordino.accuracy.bounds import gaussian_bound, least_pure_deviation
from sordino.accuracy.nuclear_norms import spectral_roots
from sordino.mechanisms.catalogue import Law
from sordino.mechanisms.fits import USUAL_CELLS, Request, least_error
from sordino.mechanisms.linear.catalogue import LONG_AXIS, MECHANISMS, Mechanism
from sordino.mechanisms.linear.fit import LinearFit
from sordino.privacy.calibration import noise_ratio, pure_epsilon
from sordino.privacy.guarantees import GaussianDP, PureDP
from sordino.privacy.units import ReplaceOne
from sordino.workloads import Filter, Histogram

__all__ = ["LONG", "Floors"]

LONG = 2**17 - 1
"""Cells beyond which planning takes seconds."""

# Mechanisms with noise on Fourier coefficients.
_SPECTRAL = {"fourier", "fourier-planar", "fourier-grouped"}
# Steps beyond which their answers are read off the ring.
_ON_RING = 2**16
# An error over the bound up to which tables of sets of axes are taken for as good as they get.
_NEAR = 1.05
# What a later mechanism could still take off an error, relative to it.
_HAIR = 1.0001


class Floors:
    """The least errors of both laws of noise, and of what is known of single mechanisms.

    See `sordino.accuracy.bounds.norm_bound`. Laplace noise on the Fourier coefficients of a filter has no less than
    `(Σ_k |λ_k|^(2/3))^(3/2)/(L epsilon)` on a ring of L where answers are read off the ring. A block of m coefficients
    that share a radius, of column norm `u/sqrt(L)`, has the variance `(m + 1)/epsilon²` each. So it takes at least
    `(m + 1) M²/(L u epsilon)²` of the mean square, `M = Σ |λ_k|` over the block (Cauchy and Schwarz), where all `u`
    have the sum `sqrt(L)` for a sensitivity of 1; and `m M²` is no less than the cube of the block's part of the sum
    (Hölder).

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
    def _of_sensitivity(self) -> float:
        """The least error for a sensitivity of 1."""
        request = self._request
        if self._near:
            return max(0.0 if fit.bound is None else fit.bound.value for fit in self._near) / self.of_one("gaussian")
        bound = gaussian_bound(request.workload, GaussianDP(mu=1.0), request.unit)
        return 0.0 if bound is None else bound.value

    def of(self, mechanism: Mechanism) -> float:
        """Return the least error that a mechanism may have."""
        workload, privacy, least = self._request.workload, self._request.privacy, 0.0
        # Under pure privacy cells alone have as little error as the bound, which takes time.
        if isinstance(workload, Histogram) or not isinstance(privacy, PureDP):
            least = self.of_one(mechanism.law) * self._of_sensitivity
        spectral = mechanism.law == "laplace" and mechanism.strategy in _SPECTRAL
        if spectral and isinstance(workload, Filter) and workload.steps > _ON_RING:
            of_one = noise_ratio(privacy, "laplace") * self._request.unit.least_norm(1)
            least = max(least, of_one * spectral_roots(workload))
        return least

    def _of_answers(self, law: Law, fits: Sequence[LinearFit]) -> float:
        """Return the least error of noise on the answers: no less than the root mean square of the columns' norms.

        It is known from the error of noise on the cells, whose variances are the squares of the rows' norms. Where
        records move, columns count by their differences, of which it says nothing.
        """
        request, core = self._request, self._request.workload.core
        cells = next((fit for fit in fits if fit.mechanism.strategy == "identity"), None)
        if cells is None or isinstance(request.unit, ReplaceOne) or request.workload.answer_weights() is not None:
            return 0.0
        # Laplace noise of scale 1 has the variance 2.
        square = (cells.rmse / cells.door.noise) ** 2 / (2.0 if cells.mechanism.law == "laplace" else 1.0)
        return self.of_one(law) * math.sqrt(square * core.answers_len / (core.input_len or math.inf))

    def rule_out(self, mechanism: Mechanism, fits: Sequence[LinearFit]) -> bool:
        """Return whether fitting takes long and cannot change what is taken: not by more than a hair."""
        request = self._request
        cells = request.workload.core.input_len or 0
        wide = [fit for fit in fits if request.max_value is not None or fit.domain.max_value >= USUAL_CELLS]
        known = [fit for fit in wide if not fit.is_biased]
        if not known or request.unit.changes is not None or request.workload.core.answers_len == 1:
            return False
        if mechanism.name == "residual-gaussian" and any(map(_knows_rests, fits)):
            return True
        best = min(known, key=lambda fit: fit.error(request.objective))
        simpler = MECHANISMS.index(mechanism) < MECHANISMS.index(best.mechanism)
        # What is better by less than a tie is not taken, but may let go of something simpler in a tie with the best.
        alone = least_error(sorted(known, key=lambda fit: MECHANISMS.index(fit.mechanism)), request.objective) is best
        share = 1.0 / best.tie if simpler else best.tie if alone else _HAIR
        enough = best.error(request.objective) / share
        if mechanism.strategy == "output" and self._of_answers(mechanism.law, known) >= enough:
            return True
        worse = mechanism.law == "laplace" and self.of_one("laplace") > self.of_one("gaussian")
        if cells <= LONG and not (worse and mechanism.searched(request.workload)):
            return False
        return self.of(mechanism) >= enough


def _knows_rests(fit: LinearFit) -> bool:
    """Return whether tables of sets of axes are measured, near the bound, along an axis whose search takes long.

    They know all that rests of sets do, and are better but where the roots along an axis are not (dependent columns).
    """
    found = fit.factorization
    if found is None or not found.shares or (fit.optimality or math.inf) > _NEAR:
        return False
    return any(rows.shape[1] > LONG_AXIS for rows in found.factors)
