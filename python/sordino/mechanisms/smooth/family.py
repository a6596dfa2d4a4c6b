"""Points: which mechanism is taken, and which are shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from sordino.errors import PlanFileError, UnsupportedMechanismError
from sordino.mechanisms.catalogue import named, recorded
from sordino.mechanisms.family import Column, Family, Progress, Shown, none_serves
from sordino.mechanisms.fits import Request, fit_all, least_error
from sordino.mechanisms.smooth.catalogue import SMOOTH_MECHANISMS
from sordino.mechanisms.smooth.fit import SmoothFit
from sordino.mechanisms.smooth.measurement import queries
from sordino.mechanisms.smooth.sizing import fit_smooth
from sordino.privacy.guarantees import PureDP
from sordino.privacy.units import AddRemove, Unit
from sordino.workloads.smooth.base import MOST_FEATURES
from sordino.workloads.smooth.query_classes import KSmooth

__all__ = ["SMOOTH"]


class _Smooth(Family):
    name: ClassVar[str] = "smooth"
    options: ClassVar[frozenset[str]] = frozenset(("noise", "objective"))
    unit: ClassVar[Unit] = AddRemove(1, label="one point")
    columns: ClassVar[tuple[Column, ...]] = (
        Column("rmse", 12, ".4g"),
        Column("noise", 12, ".4g"),
        Column("truncation", 12, ".4g"),
        Column("features", 12, ""),
    )
    scales: ClassVar[bool] = False

    def choose(self, request: Request, progress: Progress | None = None) -> SmoothFit:
        if request.mechanism != "auto":
            return fit_smooth(request, named(SMOOTH_MECHANISMS, request.mechanism, request.privacy, request.noise))
        return _best(request, _all_fits(request)[0])

    def shown(self, request: Request, progress: Progress | None = None) -> Shown:
        fits, refused = _all_fits(request)
        return Shown(sorted(fits, key=lambda fit: fit.rmse), _best(request, fits).name, refused)

    def row(self, fit: SmoothFit, shown: Shown) -> dict[str, Any]:
        return {
            "rmse": fit.rmse,
            "noise": fit.noise,
            "truncation": fit.truncation,
            "features": fit.features.features,
            "sizes": fit.sizes,
        }

    def refit(self, request: Request, record: Mapping[str, Any]) -> SmoothFit:
        workload, sizes, mixings = queries(request), record["sizes"], record["mixings"]
        mechanism = recorded(SMOOTH_MECHANISMS, record["fitted"])
        asked = request.mechanism
        if asked != "auto" and named(SMOOTH_MECHANISMS, asked, request.privacy, request.noise) is not mechanism:
            raise PlanFileError("the plan's mechanism is not the one that was asked for")
        if not all(type(size) is int and size > 0 for size in sizes) or len(sizes) not in {0, workload.dimension}:
            raise PlanFileError("the plan's sizes are out of range")
        several = 1 if workload.declared is not None else workload.dimension
        if not all(
            isinstance(mixing, np.ndarray) and mixing.ndim == 2 and mixing.size <= MOST_FEATURES for mixing in mixings
        ):
            raise PlanFileError("the plan's features of a kernel are out of range")
        if len(mixings) != (several if mechanism.strategy == "kernel" else 0):
            raise PlanFileError("the plan's features of a kernel are not there, or too many")
        fit = fit_smooth(request, mechanism, tuple(sizes) or None, mixings)
        if list(fit.sizes) != sizes:
            raise PlanFileError("the plan's sizes are not those that fitting gives")
        return fit


SMOOTH = _Smooth()


def _best(request: Request, fits: list[SmoothFit]) -> SmoothFit:
    """Return what `auto` takes: for a class of all smooth functions only mechanisms with a bound over the class.

    Raises:
        UnsupportedMechanismError: None is left.
    """
    if isinstance(queries(request).query_class, KSmooth):
        fits = [fit for fit in fits if fit.mechanism.strategy != "histogram"]
    if not fits:
        raise UnsupportedMechanismError("no mechanism bounds its error over this class: ask fewer coordinates")
    if request.objective == "mean" or queries(request).declared is not None:
        return least_error(fits, "mean")
    bounds = [(bound, fit) for fit in fits if (bound := fit.class_bound) is not None]
    if not bounds:
        raise UnsupportedMechanismError("no mechanism bounds its error over a whole class of these queries")
    return min(bounds, key=lambda pair: pair[0])[1]


def _all_fits(request: Request) -> tuple[list[SmoothFit], dict[str, str]]:
    """Fit the mechanisms that serve; say of the others that should why they do not.

    Raises:
        UnsupportedMechanismError: None serves.
    """
    workload = queries(request)
    serving = [m for m in SMOOTH_MECHANISMS if m.serves(workload)]
    fits, refused = fit_all(serving, request, lambda mechanism: fit_smooth(request, mechanism))
    if not fits and workload.declared is not None and isinstance(request.privacy, PureDP):
        refused["kernel-gaussian"] = "declared queries are answered with Gaussian noise, which cannot give PureDP"
    if not fits:
        raise none_serves(refused, "queries")
    return fits, refused
