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
from sordino._core import __version__
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
from sordino.report import metrics, report
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
