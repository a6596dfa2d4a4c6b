"""Differentially private linear queries: exact noise, least error, certificates.

A public *workload* becomes a public *plan* (mechanism, noise, expected error, certificate); a plan turned on
private data makes one *release*.

    >>> import sordino as so
    >>> workload = so.MovingAverage(window=7, length=365)
    >>> plan = so.plan(workload, so.ApproxDP(epsilon=1.0, delta=1e-6), unit=so.AddRemove(1, label="one flight"))
    >>> plan.mechanism
    'identity-laplace'
"""

from sordino import noise, testing
from sordino._core import __version__
from sordino.accounting import Ledger
from sordino.bounds import Bound, Spectrum, spectrum
from sordino.errors import (
    BudgetExceededError,
    DataTypeError,
    DuplicateRequestError,
    EntropyError,
    ForkError,
    InputFileError,
    InvalidParameterError,
    MissingDependencyError,
    PlanFileError,
    ShapeError,
    SordinoError,
    UnsupportedEventError,
    UnsupportedMechanismError,
)
from sordino.events import ApproxEvent, GaussianEvent, PureEvent
from sordino.planning import Comparison, compare, plan, privacy_for
from sordino.plans import Plan
from sordino.privacy import ApproxDP, GaussianDP, PureDP, ZeroConcentratedDP
from sordino.release import Interval, Release
from sordino.tabulation import Tabulated, tabulate
from sordino.units import AddRemove, ReplaceOne, UserLevel
from sordino.workloads import (
    BandPass,
    Convolution,
    Difference,
    ExponentialSmoothing,
    GroupConvolution,
    Histogram,
    Marginals,
    Matrix,
    MovingAverage,
    PolynomialDecay,
    RunningSum,
    Workload,
)

__all__ = [
    "AddRemove",
    "ApproxDP",
    "ApproxEvent",
    "BandPass",
    "Bound",
    "BudgetExceededError",
    "Comparison",
    "Convolution",
    "DataTypeError",
    "Difference",
    "DuplicateRequestError",
    "EntropyError",
    "ExponentialSmoothing",
    "ForkError",
    "GaussianDP",
    "GaussianEvent",
    "GroupConvolution",
    "Histogram",
    "InputFileError",
    "Interval",
    "InvalidParameterError",
    "Ledger",
    "Marginals",
    "Matrix",
    "MissingDependencyError",
    "MovingAverage",
    "Plan",
    "PlanFileError",
    "PolynomialDecay",
    "PureDP",
    "PureEvent",
    "Release",
    "ReplaceOne",
    "RunningSum",
    "ShapeError",
    "SordinoError",
    "Spectrum",
    "Tabulated",
    "UnsupportedEventError",
    "UnsupportedMechanismError",
    "UserLevel",
    "Workload",
    "ZeroConcentratedDP",
    "__version__",
    "compare",
    "noise",
    "plan",
    "privacy_for",
    "spectrum",
    "tabulate",
    "testing",
]
