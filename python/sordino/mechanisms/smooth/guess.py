"""What costs nothing: to answer as if all points were spread evenly within the bounds."""

from __future__ import annotations

import math

import numpy as np

from sordino.workloads.smooth.base import SmoothQueries
from sordino.workloads.smooth.queries import KernelQueries
from sordino.workloads.smooth.query_classes import KernelClass

__all__ = ["guess_error"]

# Centres of declared queries whose products are looked at, and nodes on an axis.
_MOST_CENTRES = 2**11
_NODES = 512


def guess_error(workload: SmoothQueries) -> float | None:
    """Return the root mean square over the queries of what the even guess is off by at most, None if it is not known.

    If every point is uniform on the bounds, however they depend on each other, `E (mean_i f(x_i) - E_U f)^2 <= Var_U f`
    (Jensen), with equality where all points coincide. So a release with a larger error is beaten by the guess on
    average over every such distribution.
    """
    kind = workload.query_class
    match kind:
        case KernelClass():
            axes = kind.axes(workload.cube)
            square, mean = math.prod(axis.square for axis in axes), math.prod(axis.guess for axis in axes)
            return math.sqrt(max(square - mean, 0.0))
        case KernelQueries():
            return _declared(workload, kind)
        case _:
            return None


def _declared(workload: SmoothQueries, queries: KernelQueries) -> float | None:
    cube, weights = workload.cube, queries.weights
    centres = queries.standard(cube)
    if len(centres) > _MOST_CENTRES:
        return None
    u, shares = np.polynomial.legendre.leggauss(_NODES)
    products, means = np.ones((len(centres), len(centres))), np.ones(len(centres))
    for j, scale in enumerate(queries.kernels.scales(cube)):
        values = queries.kernels.profile_of(np.abs(u[:, None] - centres[None, :, j]) / scale)
        weighted = values * (0.5 * shares)[:, None]
        products *= values.T @ weighted
        means *= weighted.sum(axis=0)
    # Centres of a query stand together.
    each = weights.shape[1]
    blocks = (products - np.outer(means, means)).reshape(len(weights), each, len(weights), each)
    variances = np.einsum("qc,qcqd,qd->q", weights, blocks, weights)
    return math.sqrt(max(float(variances.mean()), 0.0))
