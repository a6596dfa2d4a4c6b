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
from sordino.accuracy.bounds import Bound, Spectrum, spectrum
from sordino.accuracy.discrepancy import Discrepancy, discrepancy, lower_bounds
from sordino.accuracy.factorizations import Certificate, Factorization
from sordino.errors import (
    BudgetExceededError,
    BusyError,
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
    UnsupportedCostError,
    UnsupportedMechanismError,
)
from sordino.mechanisms.linear.compression import ChosenSparsity, Compression
from sordino.mechanisms.linear.projections import Projection
from sordino.mechanisms.linear.recoveries import RecoveryResult
from sordino.mechanisms.linear.search import factorize
from sordino.plans.events import EventPlan
from sordino.plans.histogram import HistogramStream, HistogramStreamComparison, HistogramStreamPlan
from sordino.plans.local import LocalPlan
from sordino.plans.plan import Plan
from sordino.plans.planner import Comparison, compare, plan, privacy_for
from sordino.plans.smooth import SmoothPlan
from sordino.plans.smooth_planner import SmoothComparison
from sordino.plans.sparse import SparseCount, SparsePlan, SparseStream
from sordino.plans.stream import StreamPlan, StreamRelease
from sordino.plans.stream_planner import StreamComparison, compare_stream, plan_stream
from sordino.plans.survey_planner import plan_local
from sordino.privacy.costs import ApproxCost, GaussianCost, PureCost
from sordino.privacy.guarantees import ApproxDP, GaussianDP, PureDP, ZeroConcentratedDP
from sordino.privacy.ledger import Ledger
from sordino.privacy.units import AddRemove, ReplaceOne, UserLevel
from sordino.releases.cuts import Cut
from sordino.releases.local.estimate import LocalEstimate
from sordino.releases.local.server import LocalServer
from sordino.releases.private_graph import ExtremeCut, PrivateGraph
from sordino.releases.release import Interval, Release
from sordino.releases.sketches import Sketch
from sordino.releases.smooth.grid_measure import GridMeasure
from sordino.releases.smooth.point_sums import PointSums
from sordino.releases.smooth.release import SmoothAnswers, SmoothRelease
from sordino.storage.steps import FileStepStore, InMemoryStepStore, StepEntry, StepStore
from sordino.streams.counter import Stream, restore
from sordino.streams.events import EventStream
from sordino.streams.graph import GraphStream
from sordino.streams.graph_function import GraphFunctionStream
from sordino.streams.words import HeavyWord, WordStream
from sordino.tables.tabulation import Tabulated, tabulate
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
from sordino.workloads.bases import Cosine, Haar, OrthonormalBasis, Standard
from sordino.workloads.constraints import PublicBound, PublicTotal, SignedBound
from sordino.workloads.events.graph_functions import (
    DegreeHistogram,
    EdgeCount,
    SpanningForestCost,
    StarCount,
    TriangleCount,
)
from sordino.workloads.events.weighted_graph import SyntheticGraph
from sordino.workloads.events.words import EpisodeCounts, SubstringCounts
from sordino.workloads.local.loss import LocalLoss
from sordino.workloads.local.survey import LocalSurvey
from sordino.workloads.smooth.base import SmoothQueries
from sordino.workloads.smooth.queries import Boxes, KernelQueries, MarginalKernels, MomentQueries, Separable
from sordino.workloads.smooth.query_classes import (
    CoefficientPrior,
    GaussianKernels,
    KSmooth,
    LaplaceKernels,
    MaternKernels,
)

__all__ = [
    "AddRemove",
    "AllRanges",
    "ApproxCost",
    "ApproxDP",
    "BandPass",
    "Bound",
    "Boxes",
    "BudgetExceededError",
    "BusyError",
    "Certificate",
    "CheckpointError",
    "ChosenSparsity",
    "CoefficientPrior",
    "Comparison",
    "Compression",
    "Convolution",
    "Cosine",
    "Cut",
    "DataTypeError",
    "DegreeHistogram",
    "Difference",
    "Discrepancy",
    "DuplicateRequestError",
    "EdgeCount",
    "EntropyError",
    "EpisodeCounts",
    "EventPlan",
    "EventStream",
    "ExponentialSmoothing",
    "ExtremeCut",
    "Factorization",
    "FileStepStore",
    "ForkError",
    "GaussianCost",
    "GaussianDP",
    "GaussianKernels",
    "GraphFunctionStream",
    "GraphStream",
    "GridMeasure",
    "GroupConvolution",
    "Haar",
    "HeavyWord",
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
    "LocalEstimate",
    "LocalLoss",
    "LocalPlan",
    "LocalServer",
    "LocalSurvey",
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
    "PrivateGraph",
    "Projection",
    "PublicBound",
    "PublicTotal",
    "PureCost",
    "PureDP",
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
    "SpanningForestCost",
    "SparseCount",
    "SparsePlan",
    "SparseStream",
    "Spectrum",
    "Standard",
    "StarCount",
    "StepConflictError",
    "StepEntry",
    "StepStore",
    "StepStoreError",
    "Stream",
    "StreamClosedError",
    "StreamComparison",
    "StreamPlan",
    "StreamRelease",
    "SubstringCounts",
    "SyntheticGraph",
    "Tabulated",
    "TriangleCount",
    "Union",
    "UnsupportedCostError",
    "UnsupportedMechanismError",
    "UserLevel",
    "WordStream",
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
    "plan_local",
    "plan_stream",
    "privacy_for",
    "restore",
    "spectrum",
    "tabulate",
    "testing",
]
