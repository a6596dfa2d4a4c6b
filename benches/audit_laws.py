"""Attack discrete noise on counts, noise that cells have in common, and reports of clients that lie.

As `audit.py`, by likelihood ratios whose threshold is chosen on draws of their own, and lower confidence bounds
(1 - 1e-4 each) that must stay below what is claimed; with less noise than planned they must exceed it.

* *counts*: discrete Laplace noise, at several epsilon; neighbours differ in one cell. The rates of a weighted tree
  differ by row. A single count that a unit raises by several has staircase noise.
* *tables*: common noise, `AddRemove(k, per_cell=1, one_signed=True)`; a unit raises m of d cells by one, for the m of
  the largest loss and, Gaussian, for k. Under Gaussian noise the test is linear and bounds mu; the likelihood of
  discrete noise is summed over the common part.
* *streams*: the same for `Continual(..., dim, cells_per_record)`; all increments are weighed by the discriminant whose
  covariance is estimated from streams of their own.

* *responses*: messages of clients with the first value and with none; what a message says by the definition of waves
  and subsets. Planted are lies that epsilon times 1.25 would need.

Planted are 1.25 times less noise, and 1.25 times less common noise beside cells that keep theirs (discrete: the least
whole ratio of rates that is as much larger); they must be found where they break the claim by so much that these draws
show it. The exit code is 1 if anything fails.

Run `python benches/audit_laws.py`.
"""

import math
from collections.abc import Callable
from itertools import combinations

import numpy as np
from audit import lower_bound
from harness import Row, audited, in_process, main, quick, reported
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import beta, norm

import sordino as so
from sordino import _core
from sordino.mechanisms.stream.catalogue import STREAM_MECHANISMS

Array = NDArray[np.float64]
Draw = Callable[[int], Array]
"""From 0 or 1, without or with the unit, to the losses of many releases."""

_CONFIDENCE = 1e-4
_UNDER = 1.25
_DRAWS = 40_000 if quick() else 100_000
_STREAMS = 40_000 if quick() else 80_000
_CELLS = 10**6
# Of a mu of one: what is above it these draws tell apart.
_SHOWN = 1.07
_STEPS = 8
_EPSILONS = (1.0, 3.0) if quick() else (0.1, 0.5, 1.0, 3.0, 6.0)
_TABLES = ((2, 2), (3, 3)) if quick() else ((2, 2), (3, 3), (5, 5), (10, 10), (24, 10))
# Of more cells the largest loss is met in a corner that these draws do not reach.
_PURE_TABLES = (
    ((2, 2, 1.0), (3, 3, 3.0)) if quick() else ((2, 2, 1.0), (2, 2, 3.0), (3, 3, 3.0), (5, 4, 3.0), (5, 5, 3.0))
)
_SEARCHED = ((so.RunningSum(6), 4),) if quick() else ((so.RunningSum(6), 4), (so.AllRanges(8), 8))
_STREAM_SHAPES = ((3, 3),) if quick() else ((3, 3), (5, 4))


def _split(losses: Array) -> tuple[Array, Array]:
    """Return a fifth to choose the threshold on, and the rest."""
    return losses[: len(losses) // 5], losses[len(losses) // 5 :]


def _epsilon(draw: Draw) -> float:
    """Return a lower confidence bound on epsilon."""
    (train0, fresh0), (train1, fresh1) = (_split(draw(unit)) for unit in (0, 1))
    return lower_bound(train0, train1, fresh0, fresh1, 0.0)


def _mu(draw: Draw) -> float:
    """Return a lower confidence bound on mu, of the test with as many false alarms as misses."""
    (train0, fresh0), (train1, fresh1) = (_split(draw(unit)) for unit in (0, 1))
    threshold = 0.5 * (np.median(train0) + np.median(train1))
    count = len(fresh0)
    alarms, hits = (int((fresh >= threshold).sum()) for fresh in (fresh0, fresh1))
    most = beta.ppf(1.0 - _CONFIDENCE / 2.0, alarms + 1, max(count - alarms, 1e-9))
    least = beta.ppf(_CONFIDENCE / 2.0, max(hits, 1e-9), count - hits + 1)
    return max(float(norm.ppf(least) - norm.ppf(most)), 0.0)


def _row(what: str, symbol: str, figures: list[float], limits: tuple[float, float], shown: list[bool]) -> Row:
    """Return the row of a bound and of those with planted faults.

    Args:
        what: What is attacked.
        symbol: What is bounded.
        figures: The bounds.
        limits: The claim, and what the declared noise has against this neighbour.
        shown: Which faults these draws must show.
    """
    found, *planted = figures
    claim, law = limits
    caught = all(value > claim for value, must in zip(planted, shown, strict=True) if must)
    names = ("1.25 times less noise", "less in common")
    faults = "; ".join(f"{name}: {symbol} ≥ {value:.3f}" for name, value in zip(names, planted, strict=False))
    goal = "below claim and law"
    if any(shown):
        goal += "; less noise is caught" if all(shown) else "; less noise on all is caught" if shown[0] else ""
    said = f"{symbol} ≥ {found:.3f}" + (f" (law {law:.3f})" if law < 0.9999 * claim else "")
    return Row(what, said, faults, found / claim, goal, found < min(claim, law) and caught)


def _refitted(plan: so.Plan, strategy: _core.Strategy, ratio: float) -> _core.Door:
    domain = plan.fit.domain
    return _core.fit(strategy, plan.unit.relation(), domain.max_value, domain.fraction_bits, ratio)


def _values(plan: so.Plan, door: _core.Door, cells: NDArray[np.int64], strategy: _core.Strategy | None = None) -> Array:
    measured = door.measure(strategy or plan.fit.strategy, cells)
    values: Array = np.ldexp(measured.units.astype(np.float64), measured.grid)
    return values


# Counts.


def _cells(epsilon: float) -> Row:
    """Every cell of one large histogram is a release of its own."""
    plan = so.plan(so.Histogram(_CELLS), so.PureDP(epsilon=epsilon), mechanism="identity-laplace")
    assert plan.fit.rows is not None

    def draw(door: _core.Door) -> Draw:
        return lambda unit: np.abs(v := _values(plan, door, np.full(_CELLS, unit, dtype=np.int64))) - np.abs(v - 1.0)

    doors = plan.fit.door, _refitted(plan, plan.fit.strategy, plan.fit.ratio / _UNDER)
    figures = [_epsilon(draw(door)) for door in doors]
    what = f"{plan.mechanism}, one count, {_CELLS:,} releases, claim ({epsilon:g}, 0)"
    return _row(what, "ε", figures, (epsilon, epsilon), [True])


def _tree(mechanism: str, cells: int, epsilon: float) -> Row:
    plan = so.plan(so.RunningSum(cells), so.PureDP(epsilon=epsilon), mechanism=mechanism)
    zero, one = np.zeros(cells, dtype=np.int64), np.eye(cells, dtype=np.int64)
    assert plan.fit.rows is not None
    steps, rates = plan.fit.rows
    strategy, key = plan.fit.strategy, bytes(32)
    base = plan.fit.door.measure(strategy, zero, key).units
    moved = [plan.fit.door.measure(strategy, x, key).units - base for x in one]
    worst = int(np.argmax([rates / steps @ np.abs(move) for move in moved]))
    shift, law = moved[worst], float(rates / steps @ np.abs(moved[worst]))

    def draw(door: _core.Door) -> Draw:
        def losses(unit: int) -> Array:
            values = np.array([_values(plan, door, unit * one[worst]) for _ in range(_DRAWS)])
            found: Array = (np.abs(values) - np.abs(values - shift)) @ (rates / steps)
            return found

        return losses

    doors = plan.fit.door, _refitted(plan, strategy, plan.fit.ratio / _UNDER)
    figures = [_epsilon(draw(door)) for door in doors]
    different = " and ".join(f"{rate:.3g}" for rate in np.unique(rates))
    what = f"{plan.mechanism}, RunningSum on {cells} cells, rates {different}, claim ({epsilon:g}, 0)"
    return _row(what, "ε", figures, (epsilon, law), [True])


def _staircase(records: int, epsilon: float) -> Row:
    """One count that a unit raises by so many."""
    plan = so.plan(so.Histogram(1), so.PureDP(epsilon=epsilon), unit=so.AddRemove(records))
    noise = plan.fit.staircase
    assert noise is not None
    zero, raised = np.zeros(1, dtype=np.int64), np.full(1, records, dtype=np.int64)

    def draw(door: _core.Door) -> Draw:
        found = door.staircase
        assert found is not None
        _, rate, width, first = found

        def stairs(values: Array) -> Array:
            return np.maximum(np.floor((np.abs(values) - first) / width) + 1.0, 0.0) * rate

        def losses(unit: int) -> Array:
            values = np.array([_values(plan, door, raised if unit else zero) for _ in range(_DRAWS)]).reshape(-1)
            return stairs(values) - stairs(values - records)

        return losses

    doors = plan.fit.door, _refitted(plan, plan.fit.strategy, plan.fit.ratio / _UNDER)
    figures = [_epsilon(draw(door)) for door in doors]
    what = f"{plan.mechanism}, one count raised by {records}, staircase, claim ({epsilon:g}, 0)"
    return _row(what, "ε", figures, (epsilon, epsilon), [True])


def _counts() -> list[Row]:
    rows: list[Row] = []
    for records, epsilon in ((5, 1.0), (5, 3.0), (10, 3.0)):
        rows.append(reported(_staircase(records, epsilon)))
    for epsilon in _EPSILONS:
        rows.append(reported(_cells(epsilon)))
    for mechanism, cells in (("tree-laplace", 4), ("weighted-tree-laplace", 16)):
        for epsilon in (1.0, 3.0):
            rows.append(reported(_tree(mechanism, cells, epsilon)))
    return rows


# Noise in common.


def _less_in_common(plan: so.Plan, law: str) -> tuple[_core.Strategy, _core.Door]:
    """Return what measures with less common noise, every cell with noise as planned."""
    core, fitted = plan.workload.core, plan.fit
    if law == "gaussian":
        strategy = _core.Strategy.common(core, law, math.sqrt(fitted.strategy.common_noise) / _UNDER)
    else:
        assert fitted.rows is not None
        rates = fitted.rows[1]
        strategy = _core.Strategy.common(core, law, math.ceil(_UNDER * round(rates[-1] / rates[0])))
    # The ratio of noise to what this strategy would need.
    ratio = fitted.ratio * fitted.door.sensitivity[0] / _refitted(plan, strategy, fitted.ratio).sensitivity[0]
    return strategy, _refitted(plan, strategy, ratio)


def _raised(d: int, m: int) -> NDArray[np.int64]:
    return (np.arange(d) < m).astype(np.int64)


def _draws(plan: so.Plan, made: tuple[_core.Strategy, _core.Door], cells: NDArray[np.int64], times: int = 1) -> Array:
    return np.array([_values(plan, made[1], cells, made[0]) for _ in range(times * _DRAWS)])


def _gaussian_table(d: int, k: int) -> list[Row]:
    plan = so.plan(
        so.Histogram(d),
        so.GaussianDP(mu=1.0),
        unit=so.AddRemove(k, per_cell=1, one_signed=True),
        mechanism="identity-common-gaussian",
    )

    def inverse(made: tuple[_core.Strategy, _core.Door]) -> Array:
        own = made[1].noise ** 2
        found: Array = np.linalg.inv(own * (np.eye(d) + made[0].common_noise * np.ones((d, d))))
        return found

    def mu(made: tuple[_core.Strategy, _core.Door], m: int) -> float:
        v = _raised(d, m)
        return math.sqrt(v @ inverse(made) @ v)

    planned = plan.fit.strategy, plan.fit.door
    all_less = plan.fit.strategy, _refitted(plan, plan.fit.strategy, plan.fit.ratio / _UNDER)
    made = planned, all_less, _less_in_common(plan, "gaussian")
    rows: list[Row] = []
    worst = max(range(1, k + 1), key=lambda m: round(mu(planned, m), 6))
    for m in sorted({worst, k}):
        # Each fault is looked for where it shows most, in so many cells.
        at = (m, m, max(range(1, k + 1), key=lambda m: mu(made[2], m)))

        def draw(each: tuple[_core.Strategy, _core.Door], m: int) -> Draw:
            return lambda unit: _draws(plan, each, unit * _raised(d, m)) @ (inverse(each) @ _raised(d, m))

        figures = [_mu(draw(each, m)) for each, m in zip(made, at, strict=True)]
        law = mu(planned, m)
        shown = [mu(each, m) > _SHOWN for each, m in zip(made[1:], at[1:], strict=True)]
        what = f"{plan.mechanism}, {d} cells, one record raises {m} of at most {k}, claim mu = 1"
        rows.append(reported(_row(what, "µ", figures, (1.0, law), shown)))
    return rows


def _log_likelihood(points: Array, own: float, shared: float) -> Array:
    """Return log P of noise in every cell with noise in common, up to a constant."""
    reach = int(40.0 / min(own, shared)) + 1
    found: Array = np.empty(len(points))
    common = np.arange(-reach, reach + 1, dtype=np.float64)
    for start in range(0, len(points), 10_000):
        part = points[start : start + 10_000]
        exponents = np.repeat(-shared * np.abs(common)[None], len(part), axis=0)
        for column in part.T:
            exponents -= own * np.abs(column[:, None] - common)
        found[start : start + 10_000] = logsumexp(exponents, axis=1)
    return found


def _pure_table(d: int, k: int, epsilon: float) -> Row:
    plan = so.plan(
        so.Histogram(d),
        so.PureDP(epsilon=epsilon),
        unit=so.AddRemove(k, per_cell=1, one_signed=True),
        mechanism="identity-common-laplace",
    )

    def draw(made: tuple[_core.Strategy, _core.Door], m: int) -> Draw:
        rates = made[1].discrete[1]
        own, shared, v = float(rates[0]), float(rates[-1]), _raised(d, m)

        def losses(unit: int) -> Array:
            values = _draws(plan, made, unit * v, 3)
            return _log_likelihood(values - v, own, shared) - _log_likelihood(values, own, shared)

        return losses

    made = (
        (plan.fit.strategy, plan.fit.door),
        (plan.fit.strategy, _refitted(plan, plan.fit.strategy, plan.fit.ratio / _UNDER)),
        _less_in_common(plan, "laplace"),
    )

    def worst(made: tuple[_core.Strategy, _core.Door]) -> list[int]:
        rates = made[1].discrete[1]
        ratio = round(rates[-1] / rates[0])
        losses = {m: min(m, d - m + ratio) for m in range(1, k + 1)}
        return [m for m, loss in losses.items() if loss == max(losses.values())]

    figures = [max(_epsilon(draw(each, m)) for m in worst(each)) for each in made]
    raised = " or ".join(map(str, worst(made[0])))
    what = f"{plan.mechanism}, {d} cells, one record raises {raised} of at most {k}, claim ({epsilon:g}, 0)"
    return _row(what, "ε", figures, (epsilon, epsilon), [True, True])


def _searched_table(workload: so.workloads.Workload, k: int) -> Row:
    """The least error where one record raises several cells, against the change that moves what is measured most."""
    unit = so.AddRemove(k, per_cell=1, one_signed=True)
    plan = so.plan(workload, so.GaussianDP(mu=1.0), unit=unit, mechanism="optimal")
    d, found = math.prod(workload.input_shape), plan.fit.factorization
    assert found is not None
    changes = [np.isin(np.arange(d), raised) for raised in combinations(range(d), k)]
    worst = max(changes, key=lambda v: float(np.linalg.norm(found.matrix @ v))).astype(np.int64)
    moved = found.matrix @ worst
    law = float(np.linalg.norm(moved)) / plan.fit.door.noise
    less = _refitted(plan, plan.fit.strategy, plan.fit.ratio / _UNDER)

    def draw(door: _core.Door) -> Draw:
        return lambda unit: _draws(plan, (plan.fit.strategy, door), unit * worst) @ moved

    figures = [_mu(draw(door)) for door in (plan.fit.door, less)]
    what = f"{plan.mechanism}, {workload!r}, one record raises {k}, claim mu = 1"
    return _row(what, "µ", figures, (1.0, law), [True])


def _tables() -> list[Row]:
    rows: list[Row] = []
    for d, k in _TABLES:
        rows = [*rows, *_gaussian_table(d, k)]
    for workload, k in _SEARCHED:
        rows.append(reported(_searched_table(workload, k)))
    for d, k, epsilon in _PURE_TABLES:
        rows.append(reported(_pure_table(d, k, epsilon)))
    return rows


# Streams.


def _increments(strategy: _core.StreamPlan, door: _core.StreamDoor, first: NDArray[np.int64]) -> Array:
    """Return all that `_STREAMS` streams publish whose first item is `first` and the others zero."""
    dim = len(first)
    items = np.zeros((_STEPS, dim), dtype=np.int64)
    items[0] = first
    flat = items.reshape(-1)
    units: NDArray[np.int64] = np.empty((_STREAMS, _STEPS * dim), dtype=np.int64)
    for row in units:
        stream = _core.Stream(strategy, door, dim)
        stream.prepare(flat)
        held = stream.held()
        assert held is not None
        row[:] = held[3]
    found: Array = np.ldexp(units.astype(np.float64), door.grid)
    return found


def _stream_row(mechanism: str, dim: int, touched: int) -> Row | None:
    workload = so.Continual(so.RunningSum(_STEPS), dim=dim, cells_per_record=touched)
    try:
        plan = so.plan(workload, so.GaussianDP(mu=1.0), mechanism=mechanism)
    except so.errors.UnsupportedMechanismError:
        return None
    fitted = plan.fit
    ratio = fitted.door.common
    if ratio is None:
        return None

    def largest(ratio: float) -> int:
        c = ratio**2 / (1.0 + dim * ratio**2)
        return max(range(1, touched + 1), key=lambda m: round(m - c * m * m, 6))

    def refitted(factor: float, size: float) -> _core.StreamDoor:
        domain = fitted.domain
        return fitted.strategy.fit(fitted.patterns, domain.max_value, domain.fraction_bits, factor, (size, dim))

    less = refitted(fitted.ratio, ratio / _UNDER)
    doors = (
        (fitted.door, largest(ratio)),
        (refitted(fitted.ratio / _UNDER, ratio), largest(ratio)),
        # Every coordinate with noise as planned.
        (refitted(fitted.ratio * fitted.door.scale / less.scale, ratio / _UNDER), largest(ratio / _UNDER)),
    )

    def draw(door: _core.StreamDoor, m: int) -> Draw:
        first = _raised(dim, m)
        shift = np.zeros(_STEPS * dim)
        shift[:dim] = first
        weights = np.linalg.solve(np.cov(_increments(fitted.strategy, door, 0 * first).T), shift)
        return lambda unit: _increments(fitted.strategy, door, unit * first) @ weights

    partly = {"smooth-tree", "honaker-tree"}  # nodes that close later, nodes averaged away
    figures = [_mu(draw(door, m)) for door, m in doors]
    shown = fitted.mechanism.strategy not in partly
    what = f"{plan.mechanism}, RunningSum of {_STEPS} steps, dim {dim}, one record raises {touched}, claim mu = 1"
    return _row(what, "µ", figures, (1.0, 1.0), [shown, shown])


def _streams() -> list[Row]:
    rows: list[Row] = []
    for number, (dim, touched) in enumerate(_STREAM_SHAPES):
        for mechanism in STREAM_MECHANISMS:
            if mechanism.law != "gaussian" or (number > 0 and mechanism.strategy not in {"identity", "square-root"}):
                continue
            row = _stream_row(mechanism.name, dim, touched)
            if row is not None:
                rows.append(reported(row))
    return rows


# Reports of clients.


def _signs(messages: NDArray[np.int64], steps: int) -> Array:
    """Return 1 where what was told is what the first value would tell, -1 where none would: they are half a circle apart."""
    question, told = np.divmod(messages[:, 0], 2)
    index, shift = np.divmod(question, 2 * steps)
    wave = np.sin((2 * index + 1) * np.pi * (0.5 - shift) / steps)
    return np.where((wave > 0.0) == (told == 1), 1.0, -1.0)


def _members(messages: NDArray[np.int64], steps: int) -> Array:
    """Return 1 where the first place alone was told of it and none, -1 where none alone was, else 0."""
    first, none = ((messages == place).any(axis=1) for place in (0, steps))
    return first.astype(np.float64) - none


def _response(mechanism: str, steps: int, epsilon: float) -> Row:
    survey = so.local.LocalSurvey(10, intervals=steps)
    values = np.array([np.nan, 0.5 / steps])

    def draw(planned: float) -> Draw:
        plan = so.plan(survey, so.PureDP(epsilon=planned), mechanism=mechanism)
        said = _signs if mechanism == "waves" else _members
        return lambda unit: said(plan.encode_clients(np.full(_CELLS, values[unit])), steps)

    figures = [_epsilon(draw(planned)) for planned in (epsilon, epsilon * _UNDER)]
    what = f"{mechanism}, {steps} steps, {_CELLS:,} clients, claim ({epsilon:g}, 0)"
    # Of large subsets a tenth is hardly told apart by so many clients.
    return _row(what, "ε", figures, (epsilon, epsilon), [mechanism == "waves" or epsilon > 0.1])


def _responses() -> list[Row]:
    shapes = [("waves", 1), ("waves", 16), ("waves", 100), ("subset-selection", 3), ("subset-selection", 16)]
    return [reported(_response(name, steps, epsilon)) for name, steps in shapes for epsilon in _EPSILONS]


_SECTIONS = {"counts": _counts, "tables": _tables, "streams": _streams, "responses": _responses}


def figures() -> list[Row]:
    """Return all rows."""
    return [row for section in _SECTIONS for row in in_process(__file__, section, threads=1)]


if __name__ == "__main__":
    main(_SECTIONS, audited(figures))
