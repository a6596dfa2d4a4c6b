"""What the parts of a union are measured by, where each has a strategy of its own."""

from __future__ import annotations

from dataclasses import replace

from sordino.errors import InvalidParameterError, UnsupportedMechanismError
from sordino.mechanisms.catalogue import Law
from sordino.mechanisms.fits import Request
from sordino.mechanisms.linear.catalogue import MECHANISMS, Mechanism
from sordino.mechanisms.linear.fit import LinearFit, fit_linear
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
    found: dict[Workload, tuple[str, int]] = {}
    for part in workload.parts:
        if part not in found:
            found[part] = _best(replace(request, workload=part, constraint=None), law)
    return tuple(found[part] for part in workload.parts)


def _best(request: Request, law: Law) -> tuple[str, int]:
    fits: list[LinearFit] = []
    for mechanism in MECHANISMS:
        if mechanism.law != law or not _serves(mechanism, request.workload):
            continue
        for branching in mechanism.branchings(request.workload):
            try:
                fit = fit_linear(request, mechanism, branching)
            except (UnsupportedMechanismError, InvalidParameterError):
                continue
            if fit.strategy.geometry in {"l1", "l2"}:
                fits.append(fit)
    if not fits:
        raise UnsupportedMechanismError("a part of the union has no closed form with this noise")
    best = min(fits, key=lambda fit: fit.error(request.objective))
    return best.mechanism.name, best.branching


def _serves(mechanism: Mechanism, workload: Workload) -> bool:
    if not mechanism.automatic or mechanism.strategy in _WHOLE or mechanism.searched(workload):
        return False
    return mechanism.serves(workload)
