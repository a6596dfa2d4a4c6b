"""Workloads: the linear queries that a release answers. Public, immutable, comparable, serialisable."""

from sordino.workloads.base import Workload, workload_from_spec
from sordino.workloads.continual import Continual
from sordino.workloads.filters import (
    BandPass,
    Convolution,
    Difference,
    ExponentialSmoothing,
    Filter,
    MovingAverage,
    PolynomialDecay,
    RunningAverage,
    RunningSum,
    SlidingWindow,
)
from sordino.workloads.group_by import GroupBy
from sordino.workloads.group_convolution import GroupConvolution
from sordino.workloads.histogram import Histogram
from sordino.workloads.intervals import Intervals
from sordino.workloads.kronecker import Kronecker
from sordino.workloads.marginal_queries import MarginalQueries
from sordino.workloads.marginals import Marginals
from sordino.workloads.matrix import Matrix
from sordino.workloads.of_records import OfRecords
from sordino.workloads.ranges import AllRanges
from sordino.workloads.running_histogram import RunningHistogram
from sordino.workloads.sorted_histogram import SortedHistogram
from sordino.workloads.union import Union

__all__ = [
    "AllRanges",
    "BandPass",
    "Continual",
    "Convolution",
    "Difference",
    "ExponentialSmoothing",
    "Filter",
    "GroupBy",
    "GroupConvolution",
    "Histogram",
    "Intervals",
    "Kronecker",
    "MarginalQueries",
    "Marginals",
    "Matrix",
    "MovingAverage",
    "OfRecords",
    "PolynomialDecay",
    "RunningAverage",
    "RunningHistogram",
    "RunningSum",
    "SlidingWindow",
    "SortedHistogram",
    "Union",
    "Workload",
    "workload_from_spec",
]
