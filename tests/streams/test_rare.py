"""Counting rare events: segments under pure privacy, their cost, their error, and where they do not pay."""

import copy
import math
import pickle
import warnings

import numpy as np
import pytest

import sordino as so
from live import plan_live

PURE = so.PureDP(epsilon=1.0)
APPROX = so.ApproxDP(epsilon=1.0, delta=1e-6)
RARE = so.events.RareCount(2**30, max_count=100)
SHORT = so.events.RareCount(4096, max_count=2000)


def key(i):
    return i.to_bytes(32, "little")


def above(privacy=PURE, workload=SHORT, **options):
    return plan_live(workload, privacy, mechanism="above", **options)


def ones(steps, every):
    items = np.zeros(steps, dtype=np.int64)
    items[::every] = 1
    return items


@pytest.fixture(autouse=True)
def _silent():
    """The warning about known noise comes once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# The choice


@pytest.mark.parametrize("steps", [1000, 1024, 4095])
def test_the_planned_largest_error_is_that_of_the_worst_step(steps):
    """A tree has more nodes before its last step; of powers of two the last step has one."""
    plan = so.plan(so.events.RareCount(steps, max_count=50), PURE, mechanism="binary-tree")
    widths = plan.fit.counters.half_width(range(1, steps + 1), 0.95, steps)
    assert plan.fit.max_error == pytest.approx(widths.max())


def test_segments_are_taken_where_they_are_better():
    """Rare events on a long stream; both ways are shown, and the better one is taken."""
    rare, frequent = (so.plan(so.Continual(w), PURE) for w in (RARE, so.events.RareCount(2**30, max_count=10**7)))
    assert rare.mechanism.startswith("above: ")
    assert rare.fit.max_error == rare.fit.alternatives["above"] < rare.fit.alternatives["plain"]
    assert not frequent.mechanism.startswith("above")
    assert frequent.fit.max_error == frequent.fit.alternatives["plain"] <= frequent.fit.alternatives["above"]
    assert frequent.fit.threshold is None
    assert frequent.fit.epsilon is None
    for plan in (rare, frequent):
        assert plan.mechanism in plan.explain()
        assert f"{plan.fit.alternatives['above']:.4g}" in plan.explain()


def test_the_threshold_and_the_segments():
    """At no step does a segment without events end, by the tail of the difference of two Laplace variables."""
    plan, scale, risk = so.plan(so.Continual(RARE), PURE), 2.0 / 0.5, 0.05 / 3.0

    def tail(x):
        return math.exp(-x / scale) * (0.5 + x / (4.0 * scale))

    assert tail(plan.fit.threshold) * 2**30 <= risk < tail(plan.fit.threshold - 1) * 2**30
    assert plan.fit.counters.steps == 4 * 100 // plan.fit.threshold + 16
    sums = plan.fit.counters.half_width([plan.fit.counters.steps], 1.0 - risk, plan.fit.counters.steps)[0]
    late = plan.fit.max_error - plan.fit.threshold - sums
    assert tail(late) * 100 == pytest.approx(risk, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("privacy", [PURE, APPROX], ids=["pure", "approximate"])
def test_counts_of_a_unit_may_come_together_in_a_segment(privacy):
    """`per_cell` bounds what a step changes by, not what a segment does."""
    plans = [
        so.plan(so.events.RareCount(2**20, 20_000), privacy, unit=so.AddRemove(16, per_cell=c), mechanism="above")
        for c in (None, 1)
    ]
    # 16 counts in one item of the running sum: 16 times what one count is charged.
    assert plans[0].fit.counters.sensitivity["ideal"] == plans[1].fit.counters.sensitivity["ideal"]
    single = so.plan(so.events.RareCount(2**20, 20_000), privacy, mechanism="above")
    one = so.plan(
        so.Continual(so.RunningSum(plans[1].fit.counters.steps)),
        single.fit.counters.request.privacy,
        mechanism=plans[1].fit.counters.name,
    )
    assert plans[1].fit.counters.sensitivity["ideal"] == pytest.approx(16 * one.fit.sensitivity["ideal"])


@pytest.mark.slow
def test_segments_never_pay_under_approximate_privacy():
    plan = so.plan(so.Continual(RARE), APPROX)
    assert plan.fit.threshold is None
    assert set(plan.fit.alternatives) == {"plain"}
    many = so.events.RareCount(2**20, max_count=10**4)
    assert above(APPROX, many).fit.max_error > so.plan(so.Continual(many), APPROX).fit.max_error
    with pytest.raises(so.errors.UnsupportedMechanismError, match="PureDP"):
        above(so.GaussianDP(mu=1.0))
    named = so.plan(so.Continual(SHORT), PURE, mechanism="binary-tree")
    assert named.mechanism == "binary-tree-laplace"


@pytest.mark.parametrize("records", [1, 3])
def test_both_halves_together_cost_the_whole(records):
    """Half for where segments end, half for the running sum; k counts of one unit cost k times as much a count."""
    plan = above(unit=so.AddRemove(records))
    assert plan.cost == so.privacy.PureCost(1.0)
    assert plan.fit.epsilon * records + plan.fit.counters.request.privacy.epsilon == pytest.approx(1.0)
    assert plan.fit.counters.request.privacy == so.PureDP(epsilon=0.5)
    assert plan.fit.counters.request.unit == so.AddRemove(records)
    assert plan.guarantee().count("1-differential privacy") == 1
    approximate = above(APPROX)
    assert approximate.cost == so.privacy.ApproxCost(epsilon=1.0, delta=1e-6)
    assert approximate.fit.counters.request.privacy == so.ApproxDP(epsilon=0.5, delta=1e-6)
    for unit in (so.ReplaceOne(1), so.UserLevel(2)):
        with pytest.raises(so.errors.UnsupportedMechanismError, match="AddRemove"):
            above(unit=unit)


# The stream


@pytest.mark.parametrize("privacy", [PURE, APPROX], ids=["pure", "approximate"])
def test_answers_change_only_where_segments_end(privacy, known_noise):
    plan = above(privacy)
    with plan.open() as stream:
        answers = stream.update(ones(4096, 2))
        changes = np.flatnonzero(np.diff(answers, prepend=0.0))
        assert 0 < len(changes) <= plan.fit.counters.steps
        # Segments of ones that come every other step have about tau ones.
        assert np.diff(changes).mean() == pytest.approx(2 * plan.fit.threshold, rel=0.3)
        assert stream.step == 4096
        assert stream.value == answers[-1]
        with pytest.raises(so.errors.HorizonError, match="nothing was released"):
            stream.update(0)
    with plan.open() as parts:
        assert np.array_equal(np.concatenate([parts.update(p) for p in np.split(ones(4096, 2), [1, 9, 2000])]), answers)


def test_many_segments_of_many_ones_rise(known_noise):
    """With little noise the answers do not fall, and lag by at most about tau."""
    plan = above(so.PureDP(epsilon=500.0))
    with plan.open() as stream:
        answers = stream.update(ones(4096, 3))
    truth = np.cumsum(ones(4096, 3))
    assert (np.diff(answers) > -0.5).all()
    assert (truth - answers).max() <= plan.fit.threshold + 2
    assert (answers - truth).max() < 1.0


def test_no_events_no_segments(known_noise):
    """A noisy count comes above tau by chance with probability below 1e-9 a step."""
    with so.plan(so.Continual(RARE), PURE).open() as stream:
        assert not stream.update(np.zeros(10**5, dtype=np.int64)).any()


def test_beyond_the_declared_count_answers_stay(known_noise):
    """Privacy holds: the running sum has no more steps than it has budget for."""
    plan = above(workload=so.events.RareCount(10**4, max_count=50))
    with plan.open() as stream:
        answers = stream.update(np.full(10**4, 1000))
        assert len(np.unique(answers)) <= plan.fit.counters.steps + 1
        assert stream.counters.step == plan.fit.counters.steps
        assert (answers[-100:] == answers[-1]).all()


@pytest.mark.statistical
@pytest.mark.parametrize("every", [1, 2, 7, 4096])
def test_the_planned_error_holds(every):
    """At most 1 in 20 runs is beyond, planned: of 120 fixed keys at most 17, which 6 in 10^5 would exceed."""
    beyond, items = 0, ones(4096, every)[: 2000 * every]
    truth = np.cumsum(items)
    for mechanism in ("above", "auto"):
        plan = so.plan(so.Continual(SHORT), PURE, mechanism=mechanism)
        for i in range(60):
            with so.testing.deterministic_noise(key(i)), plan.open() as stream:
                beyond += np.abs(stream.update(items) - truth).max() > plan.fit.max_error
    assert beyond <= 17


# Input and budgets


@pytest.mark.parametrize("plan", [above(), so.plan(so.Continual(SHORT), APPROX)], ids=["above", "plain"])
def test_what_a_stream_refuses(plan):
    secret = 7777777
    with plan.open() as stream:
        stream.update([1, 0])
        for bad in ("1", [[secret]], 1j, np.array(["1"])):
            with pytest.raises(so.errors.DataTypeError) as raised:
                stream.update(bad)
            assert str(secret) not in str(raised.value)
        with pytest.raises(so.errors.HorizonError):
            stream.update(np.zeros(4095, dtype=np.int64))
        assert stream.step == 2
        for copied in (copy.deepcopy, copy.copy, pickle.dumps):
            with pytest.raises(so.errors.ForkError):
                copied(stream)
        assert stream.update(np.array([], dtype=int)).shape == (0,)
        assert isinstance(stream.update(1), float)
        for extreme in (2**63 - 1, -(2**63), np.uint64(2**64 - 1), True):
            stream.update(extreme)
        assert np.isfinite(stream.value)
    with pytest.raises(so.errors.StreamClosedError):
        stream.update(1)


def test_the_largest_unsigned_count_is_no_negative_one(known_noise):
    with above().open() as stream:
        assert stream.update(np.array([2**64 - 1], np.uint64))[0] > 2**20


def test_workloads_and_plans_that_cannot_be():
    for arguments, error in (
        ((0, 1), so.errors.InvalidParameterError),
        ((1, 0), so.errors.InvalidParameterError),
        ((2**41, 1), so.errors.InvalidParameterError),
        ((4.0, 1), so.errors.DataTypeError),
        ((4, None), so.errors.DataTypeError),
    ):
        with pytest.raises(error):
            so.events.RareCount(*arguments)
    for options in ({"dim": 2}, {"max_value": 4}, {"integral": False}):
        with pytest.raises(so.errors.InvalidParameterError):
            plan_live(SHORT, PURE, **options)
    with pytest.raises(so.errors.DataTypeError):
        so.plan(so.Continual(SHORT), PURE, mechanism=3)
