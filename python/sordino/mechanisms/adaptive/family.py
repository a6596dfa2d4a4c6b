"""Mechanisms that look: which one is meant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from sordino.errors import PlanFileError
from sordino.mechanisms.adaptive.catalogue import ADAPTIVE_MECHANISMS, AdaptiveMechanism
from sordino.mechanisms.adaptive.fit import AdaptiveFit
from sordino.mechanisms.adaptive.marginals import fit_marginals
from sordino.mechanisms.adaptive.trees import fit_tree
from sordino.mechanisms.catalogue import named
from sordino.mechanisms.family import Column, Family, Progress, Shown, none_serves
from sordino.mechanisms.fits import Request, fit_all
from sordino.workloads.recognition import recognised

__all__ = ["ADAPTIVE"]


class _Adaptive(Family):
    name: ClassVar[str] = "adaptive"
    options: ClassVar[frozenset[str]] = frozenset(("max_value", "integral", "noise"))
    columns: ClassVar[tuple[Column, ...]] = (Column("rmse", 14, ".6g"), Column("rmse_kind", 13, "", "kind"))
    scales: ClassVar[bool] = False

    def check(self, request: Request) -> Request:
        return replace(request, workload=recognised(request.workload))

    def choose(self, request: Request, progress: Progress | None = None) -> AdaptiveFit:
        return _fit(request, named(ADAPTIVE_MECHANISMS, request.mechanism, request.privacy, request.noise))

    def shown(self, request: Request, progress: Progress | None = None) -> Shown:
        fits, refused = fit_all(ADAPTIVE_MECHANISMS, request, lambda mechanism: _fit(request, mechanism))
        if not fits:
            raise none_serves(refused)
        return Shown(sorted(fits, key=lambda fit: fit.rmse), self.choose(request).name, refused)

    def row(self, fit: AdaptiveFit, shown: Shown) -> dict[str, Any]:
        return {"rmse": fit.rmse, "rmse_kind": fit.rmse_kind}

    def refit(self, request: Request, record: Mapping[str, Any]) -> AdaptiveFit:
        fit = self.choose(request)
        if fit.name != record["fitted"]:
            raise PlanFileError("the plan's mechanism is not the one that was asked for")
        return fit


def _fit(request: Request, mechanism: AdaptiveMechanism) -> AdaptiveFit:
    if mechanism.strategy == "adaptive-marginals":
        return fit_marginals(request, mechanism)
    return fit_tree(request, mechanism)


ADAPTIVE = _Adaptive()
