"""Smooth queries: one private summary of points answers every smooth question."""

from sordino.smooth.measure import GridMeasure
from sordino.smooth.plan import SmoothPlan
from sordino.smooth.planning import SmoothComparison
from sordino.smooth.queries import Boxes, KernelQueries, MarginalKernels, MomentQueries, Separable
from sordino.smooth.query_classes import CoefficientPrior, GaussianKernels, KSmooth, LaplaceKernels, MaternKernels
from sordino.smooth.release import SmoothAnswers, SmoothRelease
from sordino.smooth.sums import PointSums
from sordino.smooth.workload import SmoothQueries

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
    "SmoothComparison",
    "SmoothPlan",
    "SmoothQueries",
    "SmoothRelease",
]
