"""Workloads: the linear queries that a release answers. Public, immutable, comparable, serialisable."""

from sordino.workloads.base import Workload, workload_from_spec
from sordino.workloads.filters import (
    BandPass,
    Boundary,
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
from sordino.workloads.group import GroupConvolution
from sordino.workloads.histogram import Histogram
from sordino.workloads.marginals import Marginals
from sordino.workloads.matrix import Matrix

__all__ = [
    "BandPass",
    "Boundary",
    "Convolution",
    "Difference",
    "ExponentialSmoothing",
    "Filter",
    "GroupConvolution",
    "Histogram",
    "Marginals",
    "Matrix",
    "MovingAverage",
    "PolynomialDecay",
    "RunningAverage",
    "RunningSum",
    "SlidingWindow",
    "Workload",
    "workload_from_spec",
]
