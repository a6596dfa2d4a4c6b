"""Strategies of least error for any matrix, their certificates, bounds, and projections onto what is public."""

from sordino.accuracy.bounds import Bound, Spectrum, spectrum
from sordino.accuracy.discrepancy import Discrepancy, discrepancy, lower_bounds
from sordino.accuracy.factorizations import Certificate, Factorization
from sordino.mechanisms.linear.projections import Projection
from sordino.mechanisms.linear.search import factorize
from sordino.workloads.constraints import PublicBound, PublicTotal, SignedBound

__all__ = [
    "Bound",
    "Certificate",
    "Discrepancy",
    "Factorization",
    "Projection",
    "PublicBound",
    "PublicTotal",
    "SignedBound",
    "Spectrum",
    "discrepancy",
    "factorize",
    "lower_bounds",
    "spectrum",
]
