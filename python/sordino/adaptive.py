"""Mechanisms that look: what is measured later depends on what was published before."""

from sordino.mechanisms.adaptive.fit import TreeFit
from sordino.releases.adaptive.tree import TreeNodes, TreeRelease

__all__ = ["TreeFit", "TreeNodes", "TreeRelease"]
