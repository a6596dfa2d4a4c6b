"""Attack every mechanism: tell a release of `x = 0` from one of `x = e_j`, and bound epsilon from below.

For each mechanism and small workload the worst cell `j` is found from noiseless differences, both inputs are
measured 10^5 times under fresh keys (40,000 times in a short run), and the exact log-likelihood ratio is
thresholded (Neyman and Pearson: no test of one release is better). The threshold is chosen on draws of its own.
With `p1`, `p0` the chances of a value above it, `log((p1 - delta)/p0)` is a lower bound on epsilon; with
Clopper-Pearson bounds for both it holds with confidence 1 - 1e-4.

It is held against two figures, and must stay below both:

* the *claim*: (3, 0) or (3, 0.05) as planned;
* the *law*: the exact epsilon at delta = 0.05 of the declared noise on the measured difference. It is below the
  claim where the worst case is met in a corner that no feasible number of draws reaches (Laplace noise on many
  numbers), and so a sharper test of the sampler and the lattice.

The audit must also bite: with 1.25 times less noise than planned the bound must exceed the law everywhere, and
the claim wherever the claim can be reached. The exit code is 1 if anything fails. With some hundred comparisons
at 1e-4 a false alarm is to be expected in less than one run in a hundred. Common noise needs another unit:
`audit_laws.py` attacks it.

Run `python benches/audit.py`.
"""

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from harness import Row, audited, in_process, main, quick, reported
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.signal import fftconvolve
from scipy.spatial import ConvexHull
from scipy.stats import beta

import sordino as so
from sordino import _core
from sordino.mechanisms.linear.catalogue import MECHANISMS, Mechanism
from sordino.privacy.calibration import epsilon_of_mu
from sordino.privacy.laplace_composition import laplace_composition_delta

Array = NDArray[np.float64]

_EPSILON, _DELTA = 3.0, 0.05
_DRAWS = 40_000 if quick() else 100_000
_TRAINING = _DRAWS // 4
_CONFIDENCE = 1e-4
_UNDER = 1.25
_REFERENCE = 2_000_000
# A corner of at most this many Laplace coordinates is met often enough to reach the claim at delta = 0.
_REACHABLE = 3
# The hull of the columns has few enough facets up to this rank.
_MOST_RANK = 6


def _workloads() -> list[so.workloads.Workload]:
    rng = np.random.default_rng(1)
    few: list[so.workloads.Workload] = [
        so.RunningSum(16),
        so.workloads.BandPass(0.25, 0.25, 16),
        so.Marginals([2] * 4, k=2),
        so.SortedHistogram(16),
        so.GroupBy([np.arange(8) // 4, np.arange(8)]),
        so.RunningSum(8) | so.Histogram(8),
        so.workloads.MarginalQueries([so.Histogram(2), so.AllRanges(3), so.RunningSum(2)], k=2),
    ]
    if quick():
        return few
    return [
        *few,
        so.MovingAverage(5, 32, boundary="circular"),
        so.MovingAverage(5, 16),
        so.Marginals([2, 3, 2], k=2),
        so.workloads.GroupConvolution(rng.random((3, 4, 2))),
        so.workloads.GroupConvolution(rng.random((2, 2, 2, 2))),
        so.Matrix(np.tri(6)),
    ]


@dataclass(frozen=True)
class _Target:
    """A fitted plan, its worst neighbour, and how likely each made a release."""

    plan: so.Plan
    cells: NDArray[np.int64]
    difference: Array
    blocks: tuple[int, ...]
    hull: ConvexHull | None = None

    def norm(self, values: Array) -> Array:
        """Return the K-norm of each row, for the hull of all differences and their negatives."""
        assert self.hull is not None
        facets = self.hull.equations
        norms: Array = (values @ (facets[:, :-1] / -facets[:, -1:]).T).max(axis=1)
        return norms

    @property
    def noise(self) -> float:
        return self.plan.fit.door.noise

    @property
    def weights(self) -> Array | float:
        """One over the Laplace scale of each row: of discrete noise the rate over the step."""
        rows = self.plan.fit.rows
        return 1.0 / self.noise if rows is None else rows[1] / rows[0]

    @property
    def law(self) -> str:
        geometry: str = self.plan.fit.strategy.geometry
        return geometry

    def _sizes(self, values: Array) -> Array:
        """Return the norm of each row of a block: Euclidean, of a box the largest magnitude."""
        sizes: Array = np.linalg.norm(values, axis=1, ord=np.inf if self.law == "boxes" else 2)
        return sizes

    def loss(self, values: Array) -> Array:
        """Return the log-likelihood ratio of `x = e_j` over `x = 0` at each release, shape (draws,)."""
        d, b = self.difference, self.noise
        match self.law:
            case "l2":
                losses: Array = (values @ d - 0.5 * (d @ d)) / b**2
            case "l1":
                losses = ((np.abs(values) - np.abs(values - d)) * self.weights).sum(axis=1)
            case "body":
                losses = (self.norm(values) - self.norm(values - d)) / b
            case _:
                losses = np.zeros(len(values))
                start = 0
                for length in self.blocks:
                    part = values[:, start : start + length]
                    moved = part - d[start : start + length]
                    losses += (self._sizes(part) - self._sizes(moved)) / b
                    start += length
        return losses

    def exact_epsilon(self) -> float:
        """Return an upper bound on epsilon at `_DELTA` of the declared noise on this difference."""
        d, b = self.difference, self.noise
        match self.law:
            case "l2":
                return epsilon_of_mu(float(np.linalg.norm(d)) / b, _DELTA)
            case "l1" if (rows := self.plan.fit.rows) is not None:
                losses, chances = discrete_losses(np.rint(np.abs(d) / rows[0]).astype(np.int64), rows[1])

                def delta(epsilon: float) -> float:
                    return float(chances @ np.maximum(-np.expm1(epsilon - losses), 0.0))

                return _epsilon(delta, float(losses.max()))
            case "l1":
                shifts = np.abs(d[d != 0.0])[None]
                return _epsilon(lambda e: laplace_composition_delta(shifts, b, e), float(shifts.sum()) / b)
            case _:
                losses = self.loss(self._reference())

                def delta(epsilon: float) -> float:
                    gains = np.maximum(-np.expm1(epsilon - losses), 0.0)
                    return float(gains.mean() + 4.5 * gains.std() / math.sqrt(len(gains)))

                return _epsilon(delta, float(losses.max()))

    def _reference(self) -> Array:
        """Return releases of `x = e_j` with spherical Laplace, box or K-norm noise in floating point."""
        rng = np.random.default_rng(7)
        rank = len(self.difference)
        count = _REFERENCE // rank
        if self.hull is not None:  # a facet by the volume of its cone, a point of it, a distance
            corners = self.hull.points[self.hull.simplices]
            volumes = np.abs(np.linalg.det(corners))
            facet = rng.choice(len(corners), size=count, p=volumes / volumes.sum())
            shares = rng.dirichlet(np.ones(rank), count)
            points: Array = np.einsum("ik,ikd->id", shares, corners[facet])
            return points * rng.gamma(rank, self.noise, (count, 1)) + self.difference
        parts = []
        for length in self.blocks:
            direction = (
                rng.normal(size=(count, length)) if self.law == "blocks" else rng.uniform(-1, 1, (count, length))
            )
            direction /= self._sizes(direction)[:, None]
            parts.append(direction * rng.gamma(length, self.noise, (count, 1)))
        noise: Array = np.concatenate(parts, axis=1).astype(np.float64)
        return noise + self.difference

    def reachable(self) -> bool:
        """Return whether 10^5 draws can come near the claim."""
        if isinstance(self.plan.privacy, so.ApproxDP):
            return self.exact_epsilon() > 0.95 * _EPSILON
        return self.law == "body" or (self.law == "l1" and int(np.count_nonzero(self.difference)) <= _REACHABLE)


# Sums of losses that are told apart to all digits; of more they are on a grid.
_MANY, _GRID = 10**6, 1e-4


def _on_grid(losses: Array, chances: Array) -> Array:
    return np.bincount(np.rint((losses - losses.min()) / _GRID).astype(np.int64), chances)


def discrete_losses(shifts: NDArray[np.int64], rates: Array) -> tuple[Array, Array]:
    """Return the log-likelihood ratios that discrete noise on shifted rows can have, and their chances."""
    losses, chances = np.zeros(1), np.ones(1)
    for shift, rate in zip(shifts[shifts > 0], rates[shifts > 0], strict=True):
        q = math.exp(-rate)
        between = np.arange(1 - shift, 0)
        own = rate * np.concatenate([[shift, -shift], shift + 2.0 * between])
        mass = np.concatenate([[1.0, q**shift], (1.0 - q) * q ** np.abs(between)]) / (1.0 + q)
        if losses.size * own.size < _MANY:
            sums = np.round(losses[:, None] + own, 10)
            losses, places = np.unique(sums, return_inverse=True)
            chances = np.bincount(places.ravel(), (chances[:, None] * mass).ravel())
        else:  # rows of many steps: the same to a ten-thousandth
            one, other = (_on_grid(*law) for law in ((losses, chances), (own, mass)))
            chances = np.maximum(fftconvolve(one, other), 0.0)
            losses = losses.min() + own.min() + _GRID * np.arange(len(chances))
    return losses, chances


def _epsilon(delta: Callable[[float], float], most: float) -> float:
    """Solve delta(epsilon) = `_DELTA`."""
    low, most = 1e-6, 0.99 * most  # near the largest loss the bound on delta may give up and say 1
    return low if delta(low) <= _DELTA else float(brentq(lambda e: delta(e) - _DELTA, low, most, xtol=1e-6))


def _draw(strategy: _core.Strategy, door: _core.Door, cells: NDArray[np.int64], count: int) -> Array:
    """Return `count` releases of the same cells under fresh keys, shape (count, measured)."""
    units: NDArray[np.int64] = np.empty((count, strategy.measured_len), dtype=np.int64)
    grid = 0
    for row in units:
        measured = door.measure(strategy, cells)
        row[:] = measured.units
        grid = measured.grid
    values: Array = np.ldexp(units.astype(np.float64), grid)
    return values


def _one(cells: int, j: int) -> NDArray[np.int64]:
    one: NDArray[np.int64] = np.zeros(cells, dtype=np.int64)
    one[j] = 1
    return one


def _difference(strategy: _core.Strategy, door: _core.Door, cells: int, j: int) -> Array:
    """Return what a record in cell `j` changes: with one key twice, the difference of releases is noiseless."""
    key = bytes(32)
    base, apart = (door.measure(strategy, x, key) for x in (0 * _one(cells, j), _one(cells, j)))
    d: Array = np.ldexp((apart.units - base.units).astype(np.float64), base.grid)
    return d


def _target(plan: so.Plan) -> _Target:
    """Find the worst neighbour."""
    strategy, door = plan.fit.strategy, plan.fit.door
    zero: NDArray[np.int64] = np.zeros(plan.workload.core.input_len or 0, dtype=np.int64)
    variances = strategy.unit_variances()  # of blocks m + 1, of boxes (m + 1) (m + 2)/3
    lengths = np.rint(variances - 1.0 if strategy.geometry == "blocks" else np.sqrt(3.0 * variances + 0.25) - 1.5)
    blocks: list[int] = []
    while strategy.geometry in {"blocks", "boxes"} and sum(blocks) < len(lengths):
        blocks.append(int(lengths[sum(blocks)]))
    worst, cells = -1.0, zero
    difference: Array = np.zeros(0)
    hull = None
    if strategy.geometry == "body":
        columns = np.array([_difference(strategy, door, len(zero), j) for j in range(len(zero))])
        hull = ConvexHull(np.concatenate([columns, -columns]))
    for j in range(len(zero)):
        d = _difference(strategy, door, len(zero), j)
        match strategy.geometry:
            case "l2":
                size = float(np.linalg.norm(d))
            case "l1" if plan.fit.mechanism.strategy != "fourier-composed":
                rows = plan.fit.rows
                size = float((np.abs(d) * (1.0 if rows is None else rows[1] / rows[0])).sum())
            case "l1":
                size = laplace_composition_delta(np.abs(d)[None], door.noise, _EPSILON)
            case "body":
                size = 1.0
            case _:
                order = np.inf if strategy.geometry == "boxes" else 2
                size = float(sum(np.linalg.norm(part, ord=order) for part in np.split(d, np.cumsum(blocks)[:-1])))
        if size > worst * (1.0 + 1e-9):
            worst, cells, difference = size, _one(len(zero), j), d
    return _Target(plan, cells, difference, tuple(blocks), hull)


def lower_bound(train0: Array, train1: Array, fresh0: Array, fresh1: Array, delta: float) -> float:
    """Return a lower confidence bound on epsilon at `delta`; the threshold is chosen on the training draws."""

    def bound(zeros: NDArray[np.int64], ones: NDArray[np.int64], count: int) -> Array:
        upper = beta.ppf(1.0 - _CONFIDENCE / 2.0, zeros + 1, np.maximum(count - zeros, 1e-9))
        lower = np.where(ones > 0, beta.ppf(_CONFIDENCE / 2.0, ones, count - ones + 1), 0.0)
        gain = np.maximum(lower - delta, 0.0)
        bounds: Array = np.log(np.maximum(gain, 1e-300)) - np.log(np.minimum(upper, 1.0))
        return bounds

    thresholds = np.quantile(train1, np.linspace(0.0, 0.999, 400)) - 1e-9
    counts = [len(train) - np.searchsorted(np.sort(train), thresholds) for train in (train0, train1)]
    # With the confidence of the training draws alone: a threshold that few of them passed is not trusted.
    best = bound(counts[0], counts[1], len(train0)).argmax()
    zeros, ones = (np.array([(fresh >= thresholds[best]).sum()]) for fresh in (fresh0, fresh1))
    return max(float(bound(zeros, ones, len(fresh0))[0]), 0.0)


def _attack(target: _Target, door: _core.Door, deltas: tuple[float, ...]) -> tuple[float, ...]:
    strategy = target.plan.fit.strategy
    zero = np.zeros_like(target.cells)
    losses = [target.loss(_draw(strategy, door, cells, _TRAINING + _DRAWS)) for cells in (zero, target.cells)]
    train0, train1 = (loss[:_TRAINING] for loss in losses)
    fresh0, fresh1 = (loss[_TRAINING:] for loss in losses)
    return tuple(lower_bound(train0, train1, fresh0, fresh1, delta) for delta in deltas)


def _planted(plan: so.Plan) -> _core.Door:
    """Return the plan's door with too little noise."""
    fitted = plan.fit
    domain = fitted.domain
    return _core.fit(
        fitted.strategy, plan.unit.relation(), domain.max_value, domain.fraction_bits, fitted.ratio / _UNDER
    )


def _plans(workload: so.workloads.Workload, mechanism: Mechanism) -> list[so.Plan]:
    """Return what is planned for (3, 0.05) and for pure 3, once if both get the same noise."""
    plans: dict[tuple[int, int], so.Plan] = {}
    # Attacked is what is measured, before it is projected; any constraint will do.
    constraint = so.optimal.PublicBound(1000) if mechanism.projected else None
    sketch: Literal["sparse", "bernoulli"] = "sparse" if mechanism.law == "laplace" else "bernoulli"
    compression = so.sketches.Compression(measurements=6, sparsity=2, sketch=sketch, nonzeros=2)
    for privacy in (so.PureDP(epsilon=_EPSILON), so.ApproxDP(epsilon=_EPSILON, delta=_DELTA)):
        if not (mechanism.allows(privacy) and mechanism.serves(workload)):
            continue
        try:
            plan = so.plan(workload, privacy, mechanism=mechanism.name, constraint=constraint, compression=compression)
        except so.errors.UnsupportedMechanismError:
            continue
        if plan.fit.strategy.geometry == "body" and plan.fit.strategy.measured_len > _MOST_RANK:
            continue
        plans.setdefault((plan.fit.door.grid, plan.fit.door.quarter_units), plan)
    return list(plans.values())


def _row(plan: so.Plan) -> Row:
    target = _target(plan)
    claimed_delta = _DELTA if isinstance(plan.privacy, so.ApproxDP) else 0.0
    law = target.exact_epsilon()
    deltas = (claimed_delta, _DELTA)
    at_claim, at_law = _attack(target, plan.fit.door, deltas)
    planted_claim, planted_law = _attack(target, _planted(plan), deltas)
    sound = at_claim < _EPSILON and at_law < min(law, _EPSILON)
    caught = planted_law > law and (planted_claim > _EPSILON or not target.reachable())
    workload = f"{type(plan.workload).__name__} on {plan.workload.core.input_len} cells"
    return Row(
        f"{plan.mechanism}, {workload}, claim ({_EPSILON:g}, {claimed_delta:g})",
        f"ε ≥ {at_claim:.3f}; at δ = {_DELTA:g}: ε ≥ {at_law:.3f} (law {law:.3f})",
        f"1.25 times less noise: ε ≥ {planted_claim:.3f}; at δ = {_DELTA:g}: ε ≥ {planted_law:.3f}",
        at_law / law,
        "below claim and law; less noise is caught",
        sound and caught,
    )


def _attacks(number: int) -> list[Row]:
    """Return the rows of one workload."""
    rows: list[Row] = []
    for mechanism in MECHANISMS:
        # Noise on cells or on a sketch does not depend on the queries; what is projected is attacked unprojected, too.
        apart = mechanism.measures in {"identity", "compressive"} or (quick() and mechanism.projected)
        ordered = isinstance(_workloads()[number], so.SortedHistogram)
        if (ordered and mechanism.strategy != "isotonic") or (number > 0 and apart and not ordered):
            continue
        rows += [reported(_row(plan)) for plan in _plans(_workloads()[number], mechanism)]
    return rows


def attacks() -> list[Row]:
    """Return all rows, workloads side by side."""
    numbers = range(len(_workloads()))
    with ThreadPoolExecutor(os.cpu_count()) as processes:
        found = processes.map(lambda number: in_process(__file__, str(number), threads=1), numbers)
        rows = [row for part in found for row in part]
    seen = {row.what.partition(",")[0] for row in rows}
    missing = {m.name for m in MECHANISMS if m.measures != "identity-common"} - seen
    if missing:
        rows.append(Row(f"not audited: {', '.join(sorted(missing))}", "", goal="all mechanisms", met=False))
    return rows


if __name__ == "__main__":
    main({str(number): partial(_attacks, number) for number in range(len(_workloads()))}, audited(attacks))
