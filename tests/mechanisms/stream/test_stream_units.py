"""Sensitivities of streams against a matrix that is read off the published noise, and brute force over neighbours."""

import itertools
import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sordino as so
from live import plan_live

GAUSSIAN = so.GaussianDP(mu=1.0)
PURE = so.PureDP(epsilon=1.0)
KEY = bytes(range(32))
N = 7

FED_BACK = [
    (so.RunningSum(N), "identity"),
    (so.RunningSum(N), "blt"),
    (so.RunningSum(N), "two-diagonals"),
    (so.RunningSum(N), "time-varying-blt"),
    (so.RunningSum(N), "square-root"),
    (so.RunningSum(N), "normalized-square-root"),
    (so.RunningSum(N), "optimal"),
    (so.RunningAverage(N), "blt"),
    (so.RunningAverage(N), "time-varying-blt"),
    (so.ExponentialSmoothing(0.8, N), "blt"),
    (so.ExponentialSmoothing(0.8, N), "square-root"),
    (so.SlidingWindow(3, N), "comb"),
    (so.SlidingWindow(3, N), "outer"),
    (so.Convolution([1.0, -2.0, 0.5], N, "causal"), "outer"),
    (so.Convolution([0.5, 1.0, 2.0], N, "causal"), "outer"),
]
TREES = ["output", "binary-tree", "honaker-tree", "smooth-tree"]

UNITS = [
    so.AddRemove(1),
    so.AddRemove(3),
    so.AddRemove(5, per_cell=2),
    so.AddRemove(4, per_cell=1),
    so.ReplaceOne(1),
    so.ReplaceOne(2),
    so.UserLevel(1),
    so.UserLevel(2, 3),
    so.UserLevel(3, 2),
    so.UserLevel(3, 2, 2),
    so.UserLevel(9),
]


@pytest.fixture(autouse=True)
def _known(known_noise):
    """Noise that both streams of a comparison share."""


@cache
def strategy(workload, mechanism, objective="mean", unit=None):
    """C with noise of scale 1, from what streams of zeros publish: `C v = k`, k from the stream with `C = I`.

    256 coordinates are as many equations for every row; the residual says how well a linear C explains them.
    """
    dim = 256
    plan = so.plan(so.Continual(workload, dim=dim), GAUSSIAN, unit=unit, mechanism=mechanism, objective=objective)
    white = so.plan(so.Continual(so.SlidingWindow(1, N), dim=dim), GAUSSIAN, mechanism="identity")
    store, plain = so.streams.InMemoryStepStore(), so.streams.InMemoryStepStore()
    for p, kept in ((plan, store), (white, plain)):
        with p.open(store=kept) as stream:
            stream.update(np.zeros((N, dim)))
    v, k = (
        np.frombuffer(kept.entries()[0].units, "<i8").reshape(N, dim) * 2.0**p.fit.door.grid / p.fit.door.noise
        for p, kept in ((plan, store), (white, plain))
    )
    C = np.zeros((N, N))
    for t in range(N):
        # v_t = r_t k_t - sum_(s<t) c_ts v_s, and C has rows (c_ts, 1)/r_t.
        known = np.vstack([k[t], -v[:t]])
        found, *_ = np.linalg.lstsq(known.T, v[t], rcond=None)
        assert np.abs(found @ known - v[t]).max() < 1e-4
        C[t, :t], C[t, t] = found[1:] / found[0], 1.0 / found[0]
    return C


def nodes(mechanism):
    """C of a tree by definition: a row for every node, with the items below it."""
    n = N
    match mechanism:
        case "output":
            return np.tril(np.ones((n, n)))
        case "binary-tree" | "honaker-tree":
            rows = [
                [1.0 if start <= t < start + width else 0.0 for t in range(n)]
                for width in (1, 2, 4)
                for start in range(0, n - width + 1, width)
            ]
            return np.array(rows)
        case "subtraction-tree":
            return np.vstack([np.eye(n), [[1.0 if (t + 1) // 3 == j else 0.0 for t in range(n)] for j in range(3)]])
    raise ValueError(mechanism)


def steps_of(unit):
    """Changes of a series of one coordinate that the unit allows: the extreme ones."""
    match unit:
        case so.AddRemove(records=records, per_cell=None):
            for t in range(N):
                yield {t: records}
        case so.AddRemove(records=records, per_cell=cap):
            whole, rest = divmod(records, cap)
            for places in itertools.permutations(range(N), min(whole + (rest > 0), N)):
                sizes = [cap] * whole + [rest]
                for signs in itertools.product((1, -1), repeat=len(places)):
                    yield {t: s * m for t, s, m in zip(places, signs, sizes, strict=False) if m}
        case so.ReplaceOne(records=records):
            for a, b in itertools.product(range(N), repeat=2):
                yield {a: 0} if a == b else {a: -records, b: records}
            for a in range(N):  # clamping may hide the other side
                yield {a: records}
        case so.UserLevel(max_participations=count, min_separation=separation, per_step=weight):
            for m in range(1, count + 1):
                for places in itertools.combinations(range(N), m):
                    if all(b - a >= separation for a, b in itertools.pairwise(places)):
                        for signs in itertools.product((1, -1), repeat=m - 1):
                            yield dict(zip(places, (weight, *(s * weight for s in signs)), strict=True))


def largest(C, unit, norm):
    changes = np.zeros((N, 0))
    columns = []
    for change in steps_of(unit):
        column = np.zeros(N)
        for t, size in change.items():
            column[t] = size
        columns.append(column)
    changes = np.unique(np.array(columns), axis=0).T
    return np.linalg.norm(C @ changes, ord=norm, axis=0).max()


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize(("workload", "mechanism"), FED_BACK)
def test_no_neighbour_is_further_than_the_sensitivity(workload, mechanism, unit):
    plan = so.plan(so.Continual(workload), GAUSSIAN, unit=unit, mechanism=mechanism)
    # What a user does several times decides which C is fitted.
    C = strategy(workload, mechanism, unit=unit if isinstance(unit, so.UserLevel) else None)
    assert np.abs(C - np.tril(C)).max() == 0.0
    found = largest(C, unit, 2)
    assert found <= plan.fit.sensitivity["ideal"] * (1.0 + 1e-5)
    # Nor is it far too large where it is claimed to be exact.
    if isinstance(unit, so.AddRemove) and unit.per_cell is None and workload.kind == "running_sum":
        assert plan.fit.sensitivity["ideal"] <= found * (1.0 + 1e-4)
    assert plan.fit.door.noise >= plan.fit.noise_multiplier * sum(plan.fit.sensitivity.values()) * (1.0 - 1e-12)


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("mechanism", ["output", "binary-tree", "honaker-tree"])
def test_no_neighbour_is_further_on_trees(mechanism, unit):
    plan = so.plan(so.Continual(so.RunningSum(N)), GAUSSIAN, unit=unit, mechanism=mechanism)
    assert largest(nodes(mechanism), unit, 2) <= plan.fit.sensitivity["ideal"] * (1.0 + 1e-12)


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("mechanism", ["identity", "output", "binary-tree", "subtraction-tree"])
def test_no_neighbour_is_further_in_l1(mechanism, unit):
    option = 3 if mechanism == "subtraction-tree" else None
    plan = so.plan(so.Continual(so.RunningSum(N)), PURE, unit=unit, mechanism=mechanism, degree=option)
    C = np.eye(N) if mechanism == "identity" else nodes(mechanism)
    assert largest(C, unit, 1) <= plan.fit.sensitivity["ideal"] * (1.0 + 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("workload", "mechanism"), FED_BACK)
@pytest.mark.parametrize(("dim", "touched", "signed"), [(2, 1, False), (3, 1, True), (3, 2, False), (3, 2, True)])
def test_no_replaced_record_of_several_coordinates_is_further(workload, mechanism, dim, touched, signed):
    """All pairs of steps and of records: u leaves at step a, w enters at step b."""
    values = (-1, 0, 1) if signed else (0, 1)
    records = [np.array(u) for u in itertools.product(values, repeat=dim) if np.count_nonzero(u) <= touched]
    C = strategy(workload, mechanism)
    gram = C.T @ C
    worst = max(
        gram[a, a] * (u @ u) + gram[b, b] * (w @ w) - 2.0 * gram[a, b] * (u @ w)
        for a in range(N)
        for b in range(N)
        for u in records
        for w in records
    )
    plan = so.plan(
        so.Continual(workload, dim=dim, cells_per_record=touched, one_signed=not signed),
        GAUSSIAN,
        unit=so.ReplaceOne(1),
        mechanism=mechanism,
    )
    assert math.sqrt(worst) <= plan.fit.sensitivity["ideal"] * (1.0 + 1e-5)


@pytest.mark.parametrize(
    "mechanism",
    ["blt", "two-diagonals", "time-varying-blt", "square-root", "binary-tree", "smooth-tree", "output"],
)
@pytest.mark.parametrize("b", [1, 4, 9])
def test_sensitivities_of_a_live_histogram(mechanism, b):
    """sqrt(b) if a record comes or goes, sqrt(2b) if it is replaced, 2 sqrt(b) if its entries have signs."""

    def sensitivity(unit, **more):
        plan = plan_live(
            so.RunningSum(64),
            GAUSSIAN,
            unit=unit,
            mechanism=mechanism,
            dim=20,
            cells_per_record=b,
            common_noise=False,
            **more,
        )
        return plan.fit.sensitivity["ideal"] / norm

    norm = so.plan(so.Continual(so.RunningSum(64)), GAUSSIAN, mechanism=mechanism).fit.sensitivity["ideal"]
    assert sensitivity(so.AddRemove(1)) == pytest.approx(math.sqrt(b), rel=1e-12)
    assert sensitivity(so.AddRemove(1), one_signed=False) == pytest.approx(math.sqrt(b), rel=1e-12)
    assert sensitivity(so.ReplaceOne(1)) == pytest.approx(math.sqrt(2 * b), rel=1e-12)
    assert sensitivity(so.ReplaceOne(1), one_signed=False) == pytest.approx(2.0 * math.sqrt(b), rel=1e-12)
    assert sensitivity(so.AddRemove(3)) == pytest.approx(3.0 * math.sqrt(b), rel=1e-12)


@pytest.mark.parametrize("b", [1, 4])
def test_laplace_counts_every_coordinate(b):
    def sensitivity(unit, **more):
        return plan_live(so.RunningSum(64), PURE, unit=unit, mechanism="identity", **more).fit.sensitivity["ideal"]

    for signed in (False, True):
        assert sensitivity(so.AddRemove(1), dim=8, cells_per_record=b, one_signed=not signed) == b
        assert sensitivity(so.ReplaceOne(1), dim=8, cells_per_record=b, one_signed=not signed) == 2 * b
        assert sensitivity(so.UserLevel(3, 2, 5), dim=8, cells_per_record=b, one_signed=not signed) == 15 * b


def test_sensitivity_and_noise_of_rounded_reals():
    """A record moves a rounded entry by at most one step of the grid more than its own size, in every coordinate."""
    for dim, touched in ((1, 1), (5, 3)):
        plan = so.plan(
            so.Continual(so.RunningSum(16), dim=dim, cells_per_record=touched, common_noise=False),
            GAUSSIAN,
            mechanism="identity",
            integral=False,
            max_value=8,
        )
        step = 2.0**-plan.fit.domain.fraction_bits
        assert plan.fit.sensitivity["encoding"] == pytest.approx(step * math.sqrt(touched), rel=1e-6)


NAMES = ["identity", "output", "blt", "two-diagonals", "time-varying-blt", "binary-tree", "square-root", "optimal"]


@given(
    mechanism=st.sampled_from(NAMES),
    count=st.integers(1, 6),
    separation=st.integers(1, 9),
    weight=st.integers(1, 3),
    touched=st.integers(1, 3),
)
def test_errors_grow_with_what_a_unit_may_do(mechanism, count, separation, weight, touched):
    def rmse(count=count, separation=separation, weight=weight, touched=touched):
        unit = so.UserLevel(count, separation, weight)
        plan = so.plan(
            so.Continual(so.RunningSum(20), dim=4, cells_per_record=touched, common_noise=False),
            GAUSSIAN,
            unit=unit,
            mechanism=mechanism,
        )
        return plan.rmse

    base, slack = rmse(), 1.001  # a `blt` is fitted to the unit, nearly as well for each
    assert rmse(count=count + 1) * slack >= base
    assert rmse(separation=separation + 1) <= base * slack
    assert rmse(weight=weight + 1) == pytest.approx(base * (weight + 1) / weight, rel=1e-6)
    assert rmse(touched=touched + 1) == pytest.approx(base * math.sqrt((touched + 1) / touched), rel=1e-6)
    assert base <= rmse(count=1) * count * slack


@given(records=st.integers(1, 30), cap=st.integers(1, 30))
def test_a_cap_on_a_cell_never_costs(records, cap):
    for mechanism in ("identity", "blt", "binary-tree"):
        free = so.plan(so.Continual(so.RunningSum(12)), GAUSSIAN, unit=so.AddRemove(records), mechanism=mechanism)
        capped = so.plan(
            so.Continual(so.RunningSum(12)), GAUSSIAN, unit=so.AddRemove(records, per_cell=cap), mechanism=mechanism
        )
        assert capped.fit.sensitivity["ideal"] <= free.fit.sensitivity["ideal"] * (1.0 + 1e-12)


def test_separation_beyond_the_stream_is_one_participation():
    once = so.plan(so.Continual(so.RunningSum(10)), GAUSSIAN, mechanism="blt")
    far = so.plan(so.Continual(so.RunningSum(10)), GAUSSIAN, mechanism="blt", unit=so.UserLevel(50, 10))
    assert far.fit.sensitivity["ideal"] == once.fit.sensitivity["ideal"]


def test_bounds_hold_for_units_that_cannot_use_up_their_records():
    """Forty records, at most one a step, of a stream of two steps: two can differ, no more."""
    for length in (1, 2, 5):
        unit = so.AddRemove(40, per_cell=1)
        for row in so.compare(so.Continual(so.RunningSum(length)), GAUSSIAN, unit=unit).rows:
            assert row["optimality"] is None or row["optimality"] >= 1.0 - 1e-9


def test_units_that_no_stream_can_have():
    for arguments in ({"dim": 0}, {"cells_per_record": 0}, {"dim": 2, "cells_per_record": 3}, {"dim": 2**28 + 1}):
        with pytest.raises(so.errors.InvalidParameterError):
            plan_live(so.RunningSum(4), GAUSSIAN, **arguments)
    for arguments in (
        {"dim": 1.0},
        {"cells_per_record": "1"},
        {"one_signed": 1},
        {"integral": "yes"},
        {"unit": "user"},
    ):
        with pytest.raises(so.errors.DataTypeError):
            plan_live(so.RunningSum(4), GAUSSIAN, **arguments)
