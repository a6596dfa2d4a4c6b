"""Smooth queries of points: classes, queries, and what a release of them is."""

from sordino.mechanisms.smooth.fit import SmoothFit
from sordino.releases.smooth.grid_measure import GridMeasure
from sordino.releases.smooth.point_sums import PointSums
from sordino.releases.smooth.release import SmoothAnswers, SmoothRelease
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
    "Boxes",
    "CoefficientPrior",
    "GaussianKernels",
    "GridMeasure",
    "KSmooth",
    "KernelQueries",
    "LaplaceKernels",
    "MarginalKernels",
    "MaternKernels",
    "MomentQueries",
    "PointSums",
    "Separable",
    "SmoothAnswers",
    "SmoothFit",
    "SmoothQueries",
    "SmoothRelease",
]
