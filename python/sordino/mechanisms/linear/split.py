"""What the parts of a union are measured by, where each has a strategy of its own."""

from __future__ import annotations

from dataclasses import replace

from sordino.errors import UnsupportedMechanismError
from sordino.mechanisms.catalogue import Law
from sordino.mechanisms.fits import Request, fit_all
from sordino.mechanisms.linear.catalogue import MECHANISMS, Mechanism
from sordino.mechanisms.linear.fit import LinearFit
from sordino.mechanisms.linear.fitting import with_best_branching
from sordino.workloads import Union, Workload

__all__ = ["choose_parts"]

# What projects, recovers or shares noise is of a whole plan.
_WHOLE = {"split", "identity-common", "isotonic", "threshold", "compressive"}


def choose_parts(request: Request, law: Law) -> tuple[tuple[str, int], ...]:
    """Return the closed form of least error for each part of a union, and its option: public, costs no privacy.

    Raises:
        UnsupportedMechanismError: The workload is no union of several parts, or a part has no closed form.
    """
    workload = request.workload
    if not isinstance(workload, Union) or len(workload.parts) == 1:
        raise UnsupportedMechanismError("parts are those of a union")
    best = {part: _best(replace(request, workload=part, constraint=None, noise=law)) for part in workload.parts}
    return tuple((fit.mechanism.name, fit.branching) for fit in map(best.__getitem__, workload.parts))


def _best(request: Request) -> LinearFit:
    serving = (mechanism for mechanism in MECHANISMS if _serves(mechanism, request.workload))
    fits, _ = fit_all(serving, request, lambda mechanism: with_best_branching(request, mechanism))
    # Shares are of independent noise; others have a norm on blocks.
    fits = [fit for fit in fits if fit.strategy.geometry in {"l1", "l2"}]
    if not fits:
        raise UnsupportedMechanismError("a part of the union has no closed form with this noise")
    return min(fits, key=lambda fit: fit.error(request.objective))


def _serves(mechanism: Mechanism, workload: Workload) -> bool:
    if not mechanism.automatic or mechanism.strategy in _WHOLE or mechanism.searched(workload):
        return False
    return mechanism.serves(workload)
