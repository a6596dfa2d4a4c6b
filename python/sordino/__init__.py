"""Differentially private linear queries: exact noise, least error, certificates.

A public *workload* becomes a public *plan* (mechanism, noise, expected error, certificate); a plan turned on
private data makes one *release*.

    >>> import sordino as so
    >>> workload = so.MovingAverage(window=7, length=365)
    >>> plan = so.plan(workload, so.ApproxDP(epsilon=1.0, delta=1e-6), unit=so.AddRemove(1, label="one flight"))
    >>> plan.mechanism
    'identity-laplace'

What most people type is here; the rest is in `sordino.events`, `smooth`, `local`, `streams`, `sketches`, `optimal`,
`adaptive`, `training`, `workloads`, `privacy`, `tables` and `errors`.
"""

import os
from importlib import import_module
from threading import RLock
from typing import TYPE_CHECKING, Any

from sordino._core import __version__

if TYPE_CHECKING:
    from sordino import (
        adaptive,
        aio,
        errors,
        events,
        local,
        noise,
        optimal,
        privacy,
        sketches,
        smooth,
        streams,
        tables,
        testing,
        training,
        workloads,
    )
    from sordino.errors import SordinoError
    from sordino.plans.comparison import Comparison
    from sordino.plans.plan import Plan, ReleasePlan, StreamPlan, SurveyPlan
    from sordino.plans.planner import compare, plan, privacy_for
    from sordino.privacy import (
        AddRemove,
        ApproxDP,
        GaussianDP,
        Ledger,
        PureDP,
        ReplaceOne,
        UserLevel,
        ZeroConcentratedDP,
    )
    from sordino.releases.interval import Interval
    from sordino.releases.release import Release
    from sordino.reporting.metrics import metrics
    from sordino.reporting.page import report
    from sordino.storage.keys import KeyFile
    from sordino.storage.store import Store
    from sordino.streams import Stream, go_on, restore
    from sordino.tables import Bounds, Schema, tabulate
    from sordino.workloads import (
        AllRanges,
        Continual,
        Convolution,
        ExponentialSmoothing,
        GroupBy,
        Histogram,
        Kronecker,
        Marginals,
        Matrix,
        MovingAverage,
        RunningAverage,
        RunningHistogram,
        RunningSum,
        SlidingWindow,
        SortedHistogram,
    )

__all__ = [
    "AddRemove",
    "AllRanges",
    "ApproxDP",
    "Bounds",
    "Comparison",
    "Continual",
    "Convolution",
    "ExponentialSmoothing",
    "GaussianDP",
    "GroupBy",
    "Histogram",
    "Interval",
    "KeyFile",
    "Kronecker",
    "Ledger",
    "Marginals",
    "Matrix",
    "MovingAverage",
    "Plan",
    "PureDP",
    "Release",
    "ReleasePlan",
    "ReplaceOne",
    "RunningAverage",
    "RunningHistogram",
    "RunningSum",
    "Schema",
    "SlidingWindow",
    "SordinoError",
    "SortedHistogram",
    "Store",
    "Stream",
    "StreamPlan",
    "SurveyPlan",
    "UserLevel",
    "ZeroConcentratedDP",
    "__version__",
    "adaptive",
    "aio",
    "compare",
    "errors",
    "events",
    "go_on",
    "local",
    "metrics",
    "noise",
    "optimal",
    "plan",
    "privacy",
    "privacy_for",
    "report",
    "restore",
    "sketches",
    "smooth",
    "streams",
    "tables",
    "tabulate",
    "testing",
    "training",
    "workloads",
]

# Where names are made that are no modules: what is imported above for those who read types is fetched by those who run.
_MADE_IN = {
    "SordinoError": "errors",
    "Comparison": "plans.comparison",
    "Plan": "plans.plan",
    "ReleasePlan": "plans.plan",
    "StreamPlan": "plans.plan",
    "SurveyPlan": "plans.plan",
    "compare": "plans.planner",
    "plan": "plans.planner",
    "privacy_for": "plans.planner",
    "AddRemove": "privacy",
    "ApproxDP": "privacy",
    "GaussianDP": "privacy",
    "Ledger": "privacy",
    "PureDP": "privacy",
    "ReplaceOne": "privacy",
    "UserLevel": "privacy",
    "ZeroConcentratedDP": "privacy",
    "Interval": "releases.interval",
    "Release": "releases.release",
    "metrics": "reporting.metrics",
    "report": "reporting.page",
    "KeyFile": "storage.keys",
    "Store": "storage.store",
    "Stream": "streams",
    "go_on": "streams",
    "restore": "streams",
    "Bounds": "tables",
    "Schema": "tables",
    "tabulate": "tables",
    "AllRanges": "workloads",
    "Continual": "workloads",
    "Convolution": "workloads",
    "ExponentialSmoothing": "workloads",
    "GroupBy": "workloads",
    "Histogram": "workloads",
    "Kronecker": "workloads",
    "Marginals": "workloads",
    "Matrix": "workloads",
    "MovingAverage": "workloads",
    "RunningAverage": "workloads",
    "RunningHistogram": "workloads",
    "RunningSum": "workloads",
    "SlidingWindow": "workloads",
    "SortedHistogram": "workloads",
}


# A package and its modules import each other: threads that came from both sides would find halves of them.
_FETCHING = RLock()
if hasattr(os, "register_at_fork"):
    # Whoever forks waits for what is being fetched: in the child nobody would end it.
    os.register_at_fork(before=_FETCHING.acquire, after_in_parent=_FETCHING.release, after_in_child=_FETCHING.release)


def __getattr__(name: str) -> Any:
    """Fetch a name when it is first asked for: whoever only imports sordino waits for nothing."""
    if name not in __all__:
        raise AttributeError(f"module 'sordino' has no attribute {name!r}")
    with _FETCHING:
        if name not in _MADE_IN:
            return import_module(f"sordino.{name}")
        found = getattr(import_module(f"sordino.{_MADE_IN[name]}"), name)
        globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
