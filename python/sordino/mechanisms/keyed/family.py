"""Keys: which law of noise is taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from sordino.mechanisms.catalogue import named, recorded
from sordino.mechanisms.family import Column, Family, Progress, Shown, none_serves
from sordino.mechanisms.fits import Request, fit_all, least_error
from sordino.mechanisms.keyed.fit import KEYED_MECHANISMS, KeyFit, fit_keys

__all__ = ["KEYED"]


class _Keyed(Family):
    name: ClassVar[str] = "keyed"
    options: ClassVar[frozenset[str]] = frozenset(("max_value", "integral", "noise"))
    columns: ClassVar[tuple[Column, ...]] = (Column("rmse", 14, ".6g"), Column("noise", 14, ".6g"))
    scales: ClassVar[bool] = False

    def choose(self, request: Request, progress: Progress | None = None) -> KeyFit:
        if request.mechanism != "auto":
            return fit_keys(request, named(KEYED_MECHANISMS, request.mechanism, request.privacy, request.noise))
        return least_error(_all(request)[0], "mean")

    def shown(self, request: Request, progress: Progress | None = None) -> Shown:
        fits, refused = _all(request)
        return Shown(sorted(fits, key=lambda fit: fit.rmse), least_error(fits, "mean").name, refused)

    def row(self, fit: KeyFit, shown: Shown) -> dict[str, Any]:
        return {"rmse": fit.rmse, "noise": fit.noise}

    def refit(self, request: Request, record: Mapping[str, Any]) -> KeyFit:
        return fit_keys(request, recorded(KEYED_MECHANISMS, record["fitted"]))


def _all(request: Request) -> tuple[list[KeyFit], dict[str, str]]:
    fits, refused = fit_all(KEYED_MECHANISMS, request, lambda mechanism: fit_keys(request, mechanism))
    if not fits:
        raise none_serves(refused)
    return fits, refused


KEYED = _Keyed()
