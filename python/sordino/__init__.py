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
from sordino.bases import Cosine, Haar, OrthonormalBasis, Standard
from sordino.bounds import Bound, Spectrum, spectrum
from sordino.compression import ChosenSparsity, Compression
from sordino.constraints import PublicBound, PublicTotal, SignedBound
from sordino.errors import (
    BudgetExceededError,
    CheckpointError,
    DataTypeError,
    DuplicateRequestError,
    EntropyError,
    ForkError,
    HorizonError,
    InputFileError,
    InvalidParameterError,
    MissingDependencyError,
    PlanFileError,
    ShapeError,
    SordinoError,
    StepConflictError,
    StepStoreError,
    StreamClosedError,
    UnsupportedEventError,
    UnsupportedMechanismError,
)
from sordino.events import ApproxEvent, GaussianEvent, PureEvent
from sordino.factorizations import Certificate, Factorization
from sordino.geometry import Discrepancy, discrepancy, lower_bounds
from sordino.histogram_streams import HistogramStream, HistogramStreamComparison, HistogramStreamPlan
from sordino.planning import Comparison, compare, plan, privacy_for
from sordino.plans import Plan
from sordino.privacy import ApproxDP, GaussianDP, PureDP, ZeroConcentratedDP
from sordino.projections import Projection
from sordino.recoveries import RecoveryResult
from sordino.release import Interval, Release
from sordino.searches import factorize
from sordino.sketches import Sketch
from sordino.smooth import (
    Boxes,
    CoefficientPrior,
    GaussianKernels,
    GridMeasure,
    KernelQueries,
    KSmooth,
    LaplaceKernels,
    MarginalKernels,
    MaternKernels,
    MomentQueries,
    PointSums,
    Separable,
    SmoothAnswers,
    SmoothComparison,
    SmoothPlan,
    SmoothQueries,
    SmoothRelease,
)
from sordino.step_store import FileStepStore, InMemoryStepStore, StepEntry, StepStore
from sordino.stream_planning import StreamComparison, compare_stream, plan_stream
from sordino.stream_plans import StreamPlan, StreamRelease
from sordino.streams import Stream, restore
from sordino.tabulation import Tabulated, tabulate
from sordino.units import AddRemove, ReplaceOne, UserLevel
from sordino.workloads import (
    AllRanges,
    BandPass,
    Convolution,
    Difference,
    ExponentialSmoothing,
    GroupConvolution,
    Histogram,
    Kronecker,
    Marginals,
    Matrix,
    MovingAverage,
    PolynomialDecay,
    RunningAverage,
    RunningHistogram,
    RunningSum,
    SlidingWindow,
    SortedHistogram,
    Union,
    Workload,
)

__all__ = [
    "AddRemove",
    "AllRanges",
    "ApproxDP",
    "ApproxEvent",
    "BandPass",
    "Bound",
    "Boxes",
    "BudgetExceededError",
    "Certificate",
    "CheckpointError",
    "ChosenSparsity",
    "CoefficientPrior",
    "Comparison",
    "Compression",
    "Convolution",
    "Cosine",
    "DataTypeError",
    "Difference",
    "Discrepancy",
    "DuplicateRequestError",
    "EntropyError",
    "ExponentialSmoothing",
    "Factorization",
    "FileStepStore",
    "ForkError",
    "GaussianDP",
    "GaussianEvent",
    "GaussianKernels",
    "GridMeasure",
    "GroupConvolution",
    "Haar",
    "Histogram",
    "HistogramStream",
    "HistogramStreamComparison",
    "HistogramStreamPlan",
    "HorizonError",
    "InMemoryStepStore",
    "InputFileError",
    "Interval",
    "InvalidParameterError",
    "KSmooth",
    "KernelQueries",
    "Kronecker",
    "LaplaceKernels",
    "Ledger",
    "MarginalKernels",
    "Marginals",
    "MaternKernels",
    "Matrix",
    "MissingDependencyError",
    "MomentQueries",
    "MovingAverage",
    "OrthonormalBasis",
    "Plan",
    "PlanFileError",
    "PointSums",
    "PolynomialDecay",
    "Projection",
    "PublicBound",
    "PublicTotal",
    "PureDP",
    "PureEvent",
    "RecoveryResult",
    "Release",
    "ReplaceOne",
    "RunningAverage",
    "RunningHistogram",
    "RunningSum",
    "Separable",
    "ShapeError",
    "SignedBound",
    "Sketch",
    "SlidingWindow",
    "SmoothAnswers",
    "SmoothComparison",
    "SmoothPlan",
    "SmoothQueries",
    "SmoothRelease",
    "SordinoError",
    "SortedHistogram",
    "Spectrum",
    "Standard",
    "StepConflictError",
    "StepEntry",
    "StepStore",
    "StepStoreError",
    "Stream",
    "StreamClosedError",
    "StreamComparison",
    "StreamPlan",
    "StreamRelease",
    "Tabulated",
    "Union",
    "UnsupportedEventError",
    "UnsupportedMechanismError",
    "UserLevel",
    "Workload",
    "ZeroConcentratedDP",
    "__version__",
    "compare",
    "compare_stream",
    "discrepancy",
    "factorize",
    "lower_bounds",
    "noise",
    "plan",
    "plan_stream",
    "privacy_for",
    "restore",
    "spectrum",
    "tabulate",
    "testing",
]
