"""Guarantees, units, costs and their composition."""

from sordino.privacy.costs import ApproxCost, ApproximateGaussianCost, GaussianCost, PureCost
from sordino.privacy.guarantees import ApproxDP, GaussianDP, PureDP, ZeroConcentratedDP
from sordino.privacy.ledger import Ledger
from sordino.privacy.units import AddRemove, ReplaceOne, UserLevel

__all__ = [
    "AddRemove",
    "ApproxCost",
    "ApproxDP",
    "ApproximateGaussianCost",
    "GaussianCost",
    "GaussianDP",
    "Ledger",
    "PureCost",
    "PureDP",
    "ReplaceOne",
    "UserLevel",
    "ZeroConcentratedDP",
]
