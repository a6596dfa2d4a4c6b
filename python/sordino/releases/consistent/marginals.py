"""Marginal tables that agree, none of whose cells is negative: in real numbers, and in whole ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sordino import _core
from sordino.errors import UnsupportedMechanismError
from sordino.releases.answers import Answers
from sordino.releases.consistent.known import kept_residuals, limits_of
from sordino.releases.consistent.parts import Sizes, below_of, centred, margin_of, within
from sordino.releases.consistent.report import Consistency, Norm, Set, Wishes
from sordino.releases.consistent.whole import whole_tables
from sordino.workloads import Marginals
from sordino.workloads.base import Array

__all__ = ["consistent_tables"]

# The gap that is left, as a share of half the squared noise: the error is .03 % above that of the nearest tables.
_GAP = 1e-3
_ITERATIONS = 2000
# Least share of all records that a value is taken to have where it is multiplied.
_LEAST_SHARE = 1e-4
# Subsets of a set are looked at one by one.
_MOST_AXES = 16
# Of a table beside the heaviest.
_LEAST_WEIGHT = 1e-100


def _measured(
    release: Answers, workload: Marginals, below: list[Set], wishes: Wishes
) -> tuple[float, dict[Set, Array], Array]:
    """Return the total, the residuals of all sets as they were measured, and the variances of their entries.

    Noise is white within the residuals of a set, and uncorrelated between sets; a variance is that of `v_T` in the
    covariance `v_T Π_T`.
    """
    sizes, fit = Sizes(workload.levels), release.fit
    if fit.mechanism.measures == "output":
        return _of_tables(release, workload, below, wishes.norm)
    if fit.mechanism.measures == "identity":
        found: list[float] | None = [sizes.outside(tuple(range(len(sizes.levels))), t) for t in below]
        unit = float(fit.strategy.unit_variances()[0])
    else:
        found, unit = fit.strategy.residual_variances(below), 1.0
    asked = fit.request.workload
    regrouped = found is not None and isinstance(asked, Marginals) and asked.levels != workload.levels
    if found is None or (regrouped and fit.mechanism.measures != "identity"):
        if wishes.norm == "noise" or wishes.shrink is not None:
            raise UnsupportedMechanismError(
                "noise of another structure than that of these marginals: for shrink and norm='noise' plan them by "
                "'fourier', 'output' or 'identity'"
            )
        return _of_tables(release, workload, below, wishes.norm)  # whatever the noise, the answers' norm can be taken
    # Tables agree: of each set the residual is in any table above it.
    total, residuals = 0.0, {}
    for s, table in workload.split(release.unbiased).items():
        total = float(table.sum())
        for t in within(s):
            if t not in residuals:
                residuals[t] = centred(margin_of(s, table, t))
    return total, residuals, fit.door.noise**2 * unit * np.array(found, dtype=np.float64)


def _of_tables(
    release: Answers, workload: Marginals, below: list[Set], norm: Norm
) -> tuple[float, dict[Set, Array], Array]:
    """Return the same of tables that were measured one by one: the nearest that agree, in the same norm."""
    sizes, errors = Sizes(workload.levels), workload.split(release.stderr)
    sums = {t: np.zeros(sizes.shape(t)) for t in below}
    weights, squares = dict.fromkeys(below, 0.0), dict.fromkeys(below, 0.0)
    total, precisions = 0.0, 0.0
    most = max(workload.weights)
    for (s, table), own_weight in zip(workload.split(release.unbiased).items(), workload.weights, strict=True):
        weight = max(own_weight / most, _LEAST_WEIGHT)
        variance = float(np.mean(errors[s] ** 2))
        precision = 1.0 / (variance * table.size)
        total, precisions = total + precision * table.sum(), precisions + precision
        for t in within(s):
            outside = sizes.outside(s, t)
            own = variance * outside
            share = 1.0 / own if norm == "noise" else weight / outside
            sums[t] += share * margin_of(s, table, t)
            weights[t] += share
            squares[t] += share**2 * own
    variances = np.array([squares[t] / weights[t] ** 2 for t in below])
    return float(total / precisions), {t: centred(sums[t]) / weights[t] for t in below}, variances


def _shrunk(
    total: float, residuals: dict[Set, Array], variances: dict[Set, float], sizes: Sizes
) -> tuple[dict[Set, Array], dict[Set, float]]:
    """Return residuals nearer to those of independent attributes, by James and Stein, and by which factors."""
    shares = {}
    for (i,) in (t for t in residuals if len(t) == 1):
        margin = np.maximum(residuals[i,] + total / sizes.levels[i], _LEAST_SHARE * max(total, 1.0))
        shares[i] = margin / margin.sum()
    found, factors = dict(residuals), {}
    for t, y in residuals.items():
        free = sizes.free(t)
        if len(t) < 2 or free < 3:
            continue
        product = np.array(total)
        for i in t:
            product = np.multiply.outer(product, shares[i])
        target = centred(product)
        distance = float(np.sum((y - target) ** 2))
        factors[t] = max(0.0, 1.0 - (free - 2) * variances[t] / distance) if distance > 0.0 else 0.0
        found[t] = target + factors[t] * (y - target)
    return found, factors


def _metric(sizes: Sizes, workload: Marginals, below: list[Set], norm: Norm, variances: Array) -> Array:
    """Return the weight of the squared distance of each set's residuals."""
    weights = dict.fromkeys(below, 0.0)
    for s, weight in zip(workload.sets, workload.weights, strict=True):
        for t in within(s):
            weights[t] += weight / sizes.outside(s, t)
    of_answers = np.array([weights[t] for t in below])
    if norm == "answers":
        return of_answers
    known = variances > 0.0
    found: Array = np.where(known, 1.0 / np.where(known, variances, 1.0), of_answers)
    return found


def consistent_tables(release: Answers, workload: Marginals, wishes: Wishes) -> tuple[Array, Consistency]:
    """Return the tables that agree, are as was wished and are nearest to the released ones."""
    if any(len(s) > _MOST_AXES for s in workload.sets):
        raise UnsupportedMechanismError(f"consistent() serves tables of at most {_MOST_AXES} attributes")
    sizes, below = Sizes(workload.levels), below_of(workload.sets)
    measured, residuals, variances = _measured(release, workload, below, wishes)
    total = max(measured, 0.0) if wishes.total is None else wishes.total
    kept, total = kept_residuals(sizes, below, wishes, total)
    residuals |= kept
    factors: dict[Set, float] = {}
    if wishes.shrink is not None:
        residuals, factors = _shrunk(total, residuals, dict(zip(below, variances.tolist(), strict=True)), sizes)
        residuals |= kept
    metric = _metric(sizes, workload, below, wishes.norm, variances)
    free = np.array([sizes.free(t) for t in below], dtype=np.float64)
    known = np.array([t in kept for t in below], dtype=np.bool_)
    noise = 0.5 * float(np.sum((metric * free * variances)[~known]))
    empty, limits = limits_of(sizes, workload, wishes)
    flat, gap, mixed, iterations = _core.nearest_tables(
        list(workload.levels),
        [list(s) for s in workload.sets],
        [list(t) for t in below],
        np.concatenate([np.zeros(0), *(residuals[t].reshape(-1) for t in below)]),
        np.where(known, np.inf, metric),
        total,
        _GAP * noise,
        _ITERATIONS,
        limits,
    )
    share = gap / noise if noise > 0.0 else gap
    report = Consistency(
        total,
        gap=share,
        converged=share <= 1.01 * _GAP,
        mixed=mixed,
        iterations=iterations,
        shrunk=factors,
        never_worse=share <= 1.01 * _GAP
        and wishes.norm == "answers"
        and (wishes.total is not None or bool(wishes.invariants))
        and (wishes.shrink is None or release.fit.mechanism.law == "gaussian"),
    )
    if not wishes.whole:
        return flat, report
    whole = whole_tables(workload, flat, total, empty, wishes)
    return whole, replace(report, total=float(round(total)), whole=float(np.abs(whole - flat).max(initial=0.0)))
