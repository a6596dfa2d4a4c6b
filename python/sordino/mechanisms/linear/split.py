"""What the parts of a union are measured by, where each has a strategy of its own."""

from __future__ import annotations

from dataclasses import replace

from sordino.errors import UnsupportedMechanismError
from sordino.mechanisms.catalogue import Law
from sordino.mechanisms.fits import Request, fit_all
from sordino.mechanisms.linear.along_axes import along_axes
from sordino.mechanisms.linear.catalogue import MECHANISMS, Mechanism, parts_of
from sordino.mechanisms.linear.effort import affords
from sordino.mechanisms.linear.fit import LinearFit
from sordino.mechanisms.linear.fitting import with_best_branching
from sordino.mechanisms.linear.measurement import Part

__all__ = ["choose_parts"]

# What projects, recovers or shares noise is of a whole plan.
_WHOLE = {"split", "identity-common", "isotonic", "threshold", "compressive"}
# What is searched for where closed forms have more error, unless it is for all parts at once: takes seconds for many.
# Along axes one strategy for all parts may be better than one each, or worse.
_SEARCHED = "p-identity"


def choose_parts(request: Request, law: Law) -> tuple[Part, ...]:
    """Return how each part is measured with the least error: public, costs no privacy.

    Raises:
        UnsupportedMechanismError: The workload has no parts, or a part has no strategy of its own.
    """
    workload = parts_of(request.workload, request.unit)
    if workload is None:
        raise UnsupportedMechanismError("parts are those of a union")
    products = along_axes(request.workload.merged)
    searches = (products is not None and not products.few_cells) or not affords(request, law, _SEARCHED)
    own = {part: replace(request, workload=part, constraint=None, noise=law) for part in workload.parts}
    best = {part: _best(asked, searches) for part, asked in own.items()}
    return tuple(
        Part(fit.mechanism.name, fit.branching, fit.factorization) for fit in map(best.__getitem__, workload.parts)
    )


def _best(request: Request, searches: bool) -> LinearFit:
    serving = (mechanism for mechanism in MECHANISMS if _serves(mechanism, request, searches))
    fits, _ = fit_all(serving, request, lambda mechanism: with_best_branching(request, mechanism))
    # Shares are of independent noise; others have a norm on blocks.
    fits = [fit for fit in fits if fit.strategy.geometry in {"l1", "l2"}]
    if not fits:
        raise UnsupportedMechanismError("a part of the union has no strategy with this noise")
    return min(fits, key=lambda fit: fit.error(request.objective))


def _serves(mechanism: Mechanism, request: Request, searches: bool) -> bool:
    if not mechanism.automatic or mechanism.strategy in _WHOLE or not mechanism.serves(request.workload):
        return False
    if not mechanism.searched(request.workload):
        return True
    return searches and mechanism.strategy == _SEARCHED and affords(request, mechanism.law, _SEARCHED)
