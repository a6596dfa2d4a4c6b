"""The mechanisms for smooth queries by name.

A full name is `strategy-noise`; the strategy alone means Gaussian noise where the privacy allows it.

=============  =======================================================================================================
`kernel`       a class of kernels: noise in their reproducing-kernel space; mostly the least error
`chebyshev`    the same noise on every Chebyshev sum
`weighted`     noise on Chebyshev sums in proportion to how much they matter to the class
`histogram`    counts of a coarse grid: few numbers, at small n under pure privacy hard to beat
`moments`      means, variances and covariances alone
=============  =======================================================================================================
"""

from dataclasses import dataclass

from sordino.mechanisms.catalogue import Entry
from sordino.workloads.smooth.base import SmoothQueries
from sordino.workloads.smooth.query_classes import KernelClass

__all__ = ["SMOOTH_MECHANISMS", "SmoothMechanism"]


@dataclass(frozen=True)
class SmoothMechanism(Entry):
    """A way of summing over points, with a law of noise; the strategy says what is summed."""

    def serves(self, workload: SmoothQueries) -> bool:
        """Return whether it is made for these queries."""
        if self.strategy == "kernel":
            return workload.declared is not None or isinstance(workload.query_class, KernelClass)
        return workload.declared is None


SMOOTH_MECHANISMS: tuple[SmoothMechanism, ...] = (
    SmoothMechanism("kernel-gaussian", "kernel", "gaussian"),
    SmoothMechanism("chebyshev-laplace", "chebyshev", "laplace"),
    SmoothMechanism("chebyshev-gaussian", "chebyshev", "gaussian"),
    SmoothMechanism("weighted-laplace", "weighted", "laplace"),
    SmoothMechanism("weighted-gaussian", "weighted", "gaussian"),
    SmoothMechanism("histogram-laplace", "histogram", "laplace"),
    SmoothMechanism("histogram-gaussian", "histogram", "gaussian"),
    SmoothMechanism("moments-laplace", "moments", "laplace"),
    SmoothMechanism("moments-gaussian", "moments", "gaussian"),
)
"""All of them, the simpler ones first: that is how ties are broken."""
