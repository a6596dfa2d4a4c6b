"""Mechanisms that look: what is measured later depends on what was published before."""

from sordino.mechanisms.adaptive.marginals import AdaptiveMarginalsFit
from sordino.mechanisms.adaptive.trees import TreeFit
from sordino.releases.adaptive.marginals import MarginalsRelease, MeasuredTable
from sordino.releases.adaptive.tree import TreeNodes, TreeRelease

__all__ = ["AdaptiveMarginalsFit", "MarginalsRelease", "MeasuredTable", "TreeFit", "TreeNodes", "TreeRelease"]
