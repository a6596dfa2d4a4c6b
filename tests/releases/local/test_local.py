"""Reports of clients: exact small answers, losses, what servers ignore, files, accuracy end to end."""

import copy
import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sordino as so
from sordino._support.records import record_digest
from sordino.privacy.calibration import gaussian_mu, pure_epsilon
from surveys import APPROX, PURE, PURES, estimated

# Noise that rounds away.
LOUD = so.GaussianDP(mu=1e6)
SIX = [0.05, 0.3, 0.3, 0.55, 0.9, 0.95]


@pytest.fixture(autouse=True)
def _known(known_noise):
    """No test can fail by chance."""


# Six clients by hand


def test_six_clients():
    """Shares 1/6, 1/2, 2/3, 1; the derivative of the risk is twice that, less 1."""
    found = estimated(so.plan(so.local.LocalSurvey(6, intervals=4), LOUD), SIX)
    shares = np.array([1 / 6, 1 / 2, 2 / 3, 1.0])
    slopes = np.array([-2 / 3, 0.0, 1 / 3, 1.0])
    np.testing.assert_allclose(found.shares, shares, atol=1e-4)
    np.testing.assert_allclose(found.cdf, shares, atol=1e-4)
    np.testing.assert_allclose(found.derivative, slopes, atol=1e-4)
    # Right-hand sums: E[d] = 5/12 with every client at the left end of its cell, then slopes to the left of a point.
    right = np.array([5 / 12, 1 / 4, 1 / 4, 1 / 3, 7 / 12])
    np.testing.assert_allclose(right[1:], 5 / 12 + np.cumsum(slopes) / 4)
    # Here clients are in the middle of their cells, and sums go by trapezoids: half a cell more, half a slope less.
    np.testing.assert_allclose(found.risk[1:], right[1:] - slopes / 8, atol=1e-4)
    assert found.level == pytest.approx(5 / 12 + 1 / 8, abs=1e-4)
    assert found.risk[0] == found.level
    middles = np.array([1, 3, 3, 5, 7, 7]) / 8
    expected = [np.abs(theta - middles).mean() for theta in (0.0, 0.25, 0.5, 0.75, 1.0)]
    np.testing.assert_allclose(found.risk, expected, atol=1e-4)
    assert found.median == pytest.approx(0.5, abs=1e-3)
    assert found.minimiser == pytest.approx(0.5, abs=1e-3)
    assert found.quantile(1 / 3) == pytest.approx(0.375, abs=1e-3)
    assert found.quantile(1 / 12) == pytest.approx(0.125, abs=1e-3)
    assert found.quantile(5 / 6) == pytest.approx(0.875, abs=1e-3)
    assert found.risk_at(0.375) == pytest.approx((found.risk[1] + found.risk[2]) / 2)
    assert found.clients == 6
    np.testing.assert_allclose(found.grid, [0.25, 0.5, 0.75, 1.0])
    for q in (0.0, 1.0, -1.0, math.nan):
        with pytest.raises(so.errors.InvalidParameterError):
            found.quantile(q)
    for theta in (-0.01, 1.01, math.nan):
        with pytest.raises(so.errors.InvalidParameterError):
            found.risk_at(theta)


@pytest.mark.parametrize("mechanism", ["blt", "identity-laplace", "subset-selection"])
@given(values=st.lists(st.floats(-9.0, 30.0), min_size=1, max_size=12), w=st.integers(1, 17))
def test_shares_are_those_at_or_below_each_point(mechanism, values, w):
    """Within any bounds; values beyond are clamped, also those exactly on the grid. Of waves, the noise never ends."""
    survey = so.local.LocalSurvey(len(values), (-2.0, 14.0), intervals=w)
    on_grid = [*values, *survey.grid.tolist(), -2.0, 14.0]
    privacy = LOUD if mechanism == "blt" else so.PureDP(epsilon=1e5)
    found = estimated(so.plan(survey, privacy, mechanism=mechanism), on_grid)
    clamped = np.clip(on_grid, -2.0, 14.0)
    expected = [(clamped <= theta).mean() for theta in survey.grid]
    np.testing.assert_allclose(found.shares, expected, atol=0.01)


def test_the_grid_costs_no_more_than_the_noise():
    for privacy, rate in ((APPROX, 1.0), (so.PureDP(epsilon=0.5), 0.5)):
        plan = so.plan(so.local.LocalSurvey(10_000), privacy)
        assert plan.fit.survey.intervals == math.ceil(rate * 100)
    assert so.plan(so.local.LocalSurvey(1), APPROX).fit.survey.intervals == 2
    assert so.plan(so.local.LocalSurvey(10**12), APPROX).fit.survey.intervals == 2**13


# Losses


def huber(away, width):
    away = np.abs(away)
    return np.where(away < width, away**2 / (2 * width), away - width / 2)


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-5.0, 3.0)])
def test_huber(bounds):
    low, high = bounds
    width = 0.3 * (high - low)
    values = low + (high - low) * np.random.default_rng(1).beta(2, 4, 300)
    survey = so.local.LocalSurvey(300, bounds, loss=so.local.LocalLoss.huber(width), intervals=64)
    plan = so.plan(survey, LOUD)
    assert plan.fit.numbers == 65
    assert plan.fit.message_bytes == 8 * 65
    found = estimated(plan, values)
    points = np.array([low, *survey.grid])
    truth = np.array([huber(theta - values, width).mean() for theta in points])
    slopes = np.array([np.clip((theta - values) / width, -1, 1).mean() for theta in survey.grid])
    np.testing.assert_allclose(found.derivative, slopes, atol=1e-3)
    assert found.level == pytest.approx(truth[0], rel=1e-3)
    assert np.abs(found.risk - truth).max() < 0.01 * (high - low)
    assert abs(found.minimiser - points[truth.argmin()]) <= (high - low) / 64
    for use in (lambda: found.cdf, lambda: found.median, lambda: found.interval(0.9, population=True)):
        with pytest.raises(so.errors.UnsupportedMechanismError):
            use()


def quadratic(theta, value):
    return np.asarray(theta - value)


def test_a_loss_by_functions():
    """(theta - d)^2/2 on [0, 1]: its minimiser is the mean; with and without its level."""
    values = np.random.default_rng(2).beta(5, 2, 200)
    for value in (None, lambda theta, d: (theta - d) ** 2 / 2):
        loss = so.local.LocalLoss("quadratic", quadratic, value)
        assert loss.level == (value is not None)
        plan = so.plan(so.local.LocalSurvey(200, loss=loss, intervals=50), LOUD)
        assert plan.fit.numbers == 50 + (value is not None)
        found = estimated(plan, values)
        assert found.minimiser == pytest.approx(values.mean(), abs=0.01)
        truth = np.array([((theta - values) ** 2 / 2).mean() for theta in (0.0, *found.grid)])
        shift = 0.0 if value is not None else truth[0]
        assert (found.level is None) == (value is None)
        np.testing.assert_allclose(found.risk, truth - shift, atol=0.01)
        with pytest.raises(so.errors.InvalidParameterError, match="functions"):
            plan.save("nowhere.json")


BAD_LOSSES = [
    lambda theta, _: 2.0 * np.ones_like(theta),
    lambda theta, _: -np.asarray(theta),
    lambda theta, _: np.full_like(theta, np.nan),
    lambda _theta, _: np.zeros(3),
]


@pytest.mark.parametrize("derivative", BAD_LOSSES)
def test_a_loss_that_is_none_is_refused_before_anything_is_charged(derivative):
    survey = so.local.LocalSurvey(9, loss=so.local.LocalLoss("bad", derivative), intervals=8)
    with pytest.raises(so.errors.InvalidParameterError, match="derivative"):
        so.plan(survey, APPROX)


def test_no_value_is_refused():
    """That would say something of it: not-a-number is a null item, infinities are clamped, whatever the loss does."""

    def odd(theta, value):  # fits at public values, and nowhere else
        return np.sign(theta - 0.5) if round(value * 16) == value * 16 else np.full_like(theta, np.nan)

    for loss in (None, so.local.LocalLoss.huber(0.2), so.local.LocalLoss("odd", odd)):
        survey = so.local.LocalSurvey(9, loss=loss, intervals=8)
        so.plan(survey, APPROX)
        rows = survey.increments(np.array([math.nan, math.inf, -math.inf, 0.3]))
        assert not rows[0].any()
        assert (rows >= 0).all()
        assert (rows.sum(axis=1) <= survey.largest).all()
        if loss is None or loss.name == "huber":
            assert np.array_equal(rows[1:3], survey.increments(np.array([1.0, 0.0])))
    level = so.local.LocalSurvey(9, loss=so.local.LocalLoss.huber(0.2), intervals=8).starts(
        np.array([math.nan, 0.0, math.inf])
    )
    assert level.tolist()[:2] == [0, 0]
    for mechanism, numbers in (("waves", 1), ("subset-selection", 1), ("blt", 3)):
        plan = so.plan(so.local.LocalSurvey(9), APPROX, mechanism=mechanism)
        assert plan.encode_client(math.nan).shape == (numbers,)


@given(
    values=st.lists(st.floats(-1.0, 2.0), min_size=1, max_size=5),
    w=st.integers(1, 40),
    knots=st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=6),
)
def test_increments_are_a_mixture_of_single_ones(values, w, knots):
    """Not negative, and at most one client in all: for any derivative that does not decrease."""
    steps = np.sort(knots)

    def derivative(theta, value):
        return steps[np.clip(((theta - value + 1.0) / 2.0 * len(steps)).astype(int), 0, len(steps) - 1)]

    for loss in (so.local.LocalLoss("stairs", derivative), so.local.LocalLoss.huber(0.2), None):
        survey = so.local.LocalSurvey(9, loss=loss, intervals=w)
        rows = survey.increments(np.array(values))
        assert rows.shape == (len(values), w)
        assert rows.dtype == np.int64
        assert (rows >= 0).all()
        assert (rows.sum(axis=1) <= survey.largest).all()
        if loss is None:
            assert (rows.sum(axis=1) == 1).all()
        elif loss.value is not None:
            starts = survey.starts(np.array(values))
            assert ((starts >= 0) & (starts <= survey.largest)).all()


def test_the_budget_of_a_loss_with_a_level_is_that_of_both_parts():
    survey = so.local.LocalSurvey(100, loss=so.local.LocalLoss.huber(0.3), intervals=20)
    guarantees = (APPROX, so.GaussianDP(mu=0.5), so.ZeroConcentratedDP(rho=0.1), PURE)
    for privacy, mechanism in itertools.product(guarantees, ("blt", "identity-laplace", "waves", "subset-selection")):
        if isinstance(privacy, so.PureDP) and mechanism == "blt":
            continue
        plan = so.plan(survey, privacy, mechanism=mechanism)
        # Reports of running sums have a guarantee of their own, responses an epsilon.
        one, two = (part if hasattr(part, "epsilon") else part.fit.request.privacy for part in plan.fit.parts)
        if mechanism == "blt":
            assert math.hypot(one.mu, two.mu) <= gaussian_mu(privacy)
            assert math.hypot(one.mu, two.mu) == pytest.approx(gaussian_mu(privacy), rel=1e-9)
        else:
            # Under Gaussian guarantees as well: two pure reports cost what their sum costs, which the ledger is told.
            assert plan.cost == so.privacy.PureCost(pure_epsilon(privacy))
            assert Fraction(one.epsilon) + Fraction(two.epsilon) <= Fraction(plan.cost.epsilon)
            assert one.epsilon + two.epsilon == pytest.approx(plan.cost.epsilon, rel=1e-12)
        if plan.fit.level.name.startswith("identity"):
            # Another value changes the level by at most one client: a number from 0 to 1.
            assert plan.fit.level.fit.door.sensitivity[0] == plan.fit.survey.largest
        assert plan.fit.survey.starts(np.array([-9.0, 0.0, 0.5, 1.0, 9.0])).max() <= plan.fit.survey.largest


# Reports


def test_reports_are_charged_to_the_client():
    plan = so.plan(so.local.LocalSurvey(100), APPROX)
    with pytest.raises(so.errors.InvalidParameterError, match="deterministic"):
        plan.encode_client(0.5, ledger=so.Ledger(APPROX))
    for bad, error in (
        ("a", so.errors.DataTypeError),
        ("0.7", so.errors.DataTypeError),
        ([0.5], so.errors.ShapeError),
        (1j, so.errors.DataTypeError),
    ):
        with pytest.raises(error) as raised:
            plan.encode_client(bad)
        assert "0.5" not in str(raised.value)
    message = plan.encode_client(0.5)
    assert message.shape == (plan.fit.numbers,)
    assert message.dtype == np.int64
    assert plan.encode_clients([]).shape == (0, plan.fit.numbers)


def test_clients_have_noise_of_their_own():
    """Also beyond one chunk, and the level's noise is another than that of the sum."""
    plan = so.plan(so.local.LocalSurvey(100, loss=so.local.LocalLoss.huber(0.3), intervals=2), APPROX, mechanism="blt")
    messages = plan.encode_clients(np.full(2**14 + 50, 0.5))
    assert len(np.unique(messages, axis=0)) == len(messages)
    one, two = messages[: 2**14, 0], messages[: 2**14, 2]
    assert abs(np.corrcoef(one, two)[0, 1]) < 6.0 / 2**7
    assert abs(np.corrcoef(messages[:50, 0], messages[2**14 :, 0])[0, 1]) < 6.0 / math.sqrt(50)


# Servers


MALFORMED = [
    None,
    "report",
    [1, 2, 3],
    [1, 2, 3, 4, 5],
    [[1, 2], [3]],
    [0.5, 0.5, 0.5, 0.5],
    [math.nan] * 4,
    [2**62] * 4,
    [-(2**63)] * 4,
    [2**70] * 4,
    np.full(4, 2**64 - 1, np.uint64),
    [[[1, 2, 3, 4]]],
    {"a": 1},
    object(),
    7,
    [],
]


@pytest.mark.parametrize("malformed", MALFORMED, ids=lambda m: repr(m)[:20])
def test_malformed_reports_are_ignored_silently(malformed, capfd, caplog):
    plan = so.plan(so.local.LocalSurvey(6, intervals=4), LOUD)
    good = plan.encode_clients(SIX)
    server, other = plan.server(), plan.server()
    server.add_many(good)
    for add in (server.add, server.add_many):
        add(malformed)
    server.add(malformed, client="mallory")
    other.add_many([*good, malformed, good[0]])
    assert server.accepted == 6
    assert other.accepted == 7
    np.testing.assert_allclose(server.estimate().shares, [1 / 6, 1 / 2, 2 / 3, 1], atol=1e-4)
    assert capfd.readouterr() == ("", "")
    assert not caplog.records
    # A malformed report does not use up its client's turn.
    server.add(good[0], client="mallory")
    assert server.accepted == 7


def test_a_client_counts_once():
    plan = so.plan(so.local.LocalSurvey(6, intervals=4), LOUD)
    good = plan.encode_clients(SIX)
    server = plan.server()
    server.add_many(good, clients=range(6))
    for _ in range(3):
        server.add(good[0], client=0)
        server.add_many(good, clients=range(6))
    server.add(good[0], client=[])
    assert server.accepted == 6
    np.testing.assert_allclose(server.estimate().shares, [1 / 6, 1 / 2, 2 / 3, 1], atol=1e-4)
    with pytest.raises(so.errors.InvalidParameterError, match="as many"):
        server.add_many(good, clients=range(5))


def test_servers_merge():
    plan = so.plan(so.local.LocalSurvey(6, intervals=4), LOUD)
    good = plan.encode_clients(SIX)
    whole, left, right = plan.server(), plan.server(), plan.server()
    whole.add_many(good)
    left.add_many(good[:2], clients="ab")
    right.add_many(good[2:], clients="cdef")
    left.merge(right)
    assert left.accepted == 6
    np.testing.assert_allclose(left.estimate().shares, whole.estimate().shares, rtol=1e-12)
    left.add(good[2], client="c")
    assert left.accepted == 6
    with pytest.raises(so.errors.InvalidParameterError, match="before"):
        left.merge(right)
    for other in (APPROX, so.GaussianDP(mu=1.0)):
        with pytest.raises(so.errors.InvalidParameterError, match="plans"):
            left.merge(so.plan(so.local.LocalSurvey(6, intervals=4), other).server())
    with pytest.raises(so.errors.DataTypeError):
        left.merge("server")
    with pytest.raises(so.errors.InvalidParameterError, match="no reports"):
        plan.server().estimate()


@pytest.mark.parametrize("privacy", [APPROX, PURE, so.GaussianDP(mu=0.1)], ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("loss", [None, so.local.LocalLoss.huber(0.3)], ids=["absolute", "huber"])
@pytest.mark.parametrize("mechanism", ["waves", "subset-selection", "identity"])
def test_no_honest_report_is_left_out(privacy, loss, mechanism):
    plan = so.plan(so.local.LocalSurvey(1000, loss=loss), privacy, mechanism=mechanism)
    server = plan.server()
    server.add_many(plan.encode_clients(np.linspace(0, 1, 3000)))
    assert server.accepted == 3000


# Files


@pytest.mark.parametrize(("privacy", "mechanism"), [(APPROX, "blt"), *((PURE, m) for m in PURES)])
@pytest.mark.parametrize("loss", [None, so.local.LocalLoss.huber(0.7)], ids=["absolute", "huber"])
def test_plans_go_through_files(privacy, mechanism, loss, tmp_path):
    plan = so.plan(so.local.LocalSurvey(400, (-1.0, 3.0), loss=loss), privacy, mechanism=mechanism)
    again = so.SurveyPlan.load(plan.save(tmp_path / "plan.json"))
    assert again.explain() == plan.explain()
    assert again.privacy == privacy
    values = np.linspace(-1, 3, 9)
    assert np.array_equal(again.encode_clients(values), plan.encode_clients(values))
    assert np.array_equal(again.fit.std(), plan.fit.std())
    server = again.server()
    server.add_many(plan.encode_clients(values))
    server.merge(plan.server())
    assert server.accepted == 9


@pytest.mark.parametrize("mechanism", ["blt", *PURES])
def test_altered_plans_are_refused(mechanism, tmp_path):
    """Whoever sends the file cannot make clients take less noise than the guarantee in it asks for."""
    plan = so.plan(
        so.local.LocalSurvey(400, loss=so.local.LocalLoss.huber(0.3), intervals=16), APPROX, mechanism=mechanism
    )
    path = plan.save(tmp_path / "plan.json")
    record = json.loads(path.read_text())
    weaker = so.plan(plan.fit.survey, so.ApproxDP(epsilon=5.0, delta=1e-6), mechanism=mechanism)
    other = json.loads(weaker.save(tmp_path / "weaker.json").read_text())
    altered = [
        record | {"request": other["request"], "digest": record["digest"]},
        record | {"doors": other["doors"]},
        record | {"doors": record["doors"][:1]},
        record | {"cost": other["cost"]},
        record | {"schema": 1},
        record | {"family": "stream"},
        {key: value for key, value in record.items() if key != "doors"},
    ]
    for place, changed in enumerate(altered):
        if place:
            changed.pop("digest", None)
            changed["digest"] = record_digest(changed)
        path.write_text(json.dumps(changed))
        with pytest.raises(so.errors.PlanFileError):
            so.SurveyPlan.load(path)
    with pytest.raises(so.errors.PlanFileError):
        so.SurveyPlan.load(so.plan(so.events.EdgeCount(4, 4), APPROX).save(path))
    with pytest.raises(so.errors.InputFileError):
        so.SurveyPlan.load(tmp_path / "none.json")


# Arguments


def test_surveys_and_plans_that_cannot_be():
    for make, error in (
        (lambda: so.local.LocalSurvey(0), so.errors.InvalidParameterError),
        (lambda: so.local.LocalSurvey(2.5), so.errors.DataTypeError),
        (lambda: so.local.LocalSurvey(9, (1.0, 1.0)), so.errors.InvalidParameterError),
        (lambda: so.local.LocalSurvey(9, (-math.inf, 1.0)), so.errors.InvalidParameterError),
        (lambda: so.local.LocalSurvey(9, 3.0), so.errors.DataTypeError),
        (lambda: so.local.LocalSurvey(9, (0.0, 1.0, 2.0)), so.errors.DataTypeError),
        (lambda: so.plan(so.local.LocalSurvey(9), APPROX).fit.std(0), so.errors.InvalidParameterError),
        (lambda: so.plan(so.local.LocalSurvey(9), APPROX).fit.half_width(0.9, 1.5), so.errors.DataTypeError),
        (lambda: so.local.LocalSurvey(9, (-1e308, 1e308)), so.errors.InvalidParameterError),
        (lambda: so.local.LocalSurvey(9, intervals=0), so.errors.InvalidParameterError),
        (lambda: so.local.LocalSurvey(9, intervals=2**13 + 1), so.errors.InvalidParameterError),
        (lambda: so.local.LocalSurvey(9, loss="absolute"), so.errors.DataTypeError),
        (lambda: so.local.LocalSurvey(9).grid, so.errors.InvalidParameterError),
        (lambda: so.local.LocalLoss.huber(0.0), so.errors.InvalidParameterError),
        (lambda: so.local.LocalLoss("x", 3), so.errors.DataTypeError),
        (lambda: so.local.LocalLoss("absolute", quadratic), so.errors.InvalidParameterError),
        (lambda: so.plan("survey", APPROX), so.errors.DataTypeError),
        (lambda: so.plan(so.local.LocalSurvey(9), "privacy"), so.errors.DataTypeError),
        (lambda: so.plan(so.local.LocalSurvey(9), PURE, mechanism="square-root"), so.SordinoError),
    ):
        with pytest.raises(error):
            make()


# Accuracy


@pytest.mark.statistical
def test_accuracy_end_to_end_with_the_constant_and_without():
    """20,000 clients at (1, 1e-6): risks within 0.1 with the constant, and off by E[d] without it."""
    n = 20_000
    values = np.random.default_rng(3).beta(2, 5, n)
    plan = so.plan(so.local.LocalSurvey(n), APPROX)
    found = estimated(plan, values)
    points = np.array([0.0, *found.grid])
    truth = np.array([np.abs(theta - values).mean() for theta in points])
    with_level = np.abs(found.risk - truth).max()
    without = np.abs(found.risk - found.level - truth).max()
    assert with_level < 0.12
    assert without > 0.2 > with_level
    assert without == pytest.approx(values.mean(), abs=0.2)
    assert abs(found.median - np.median(values)) < 0.1
    # Their noise is as planned: 141 shares at 5 standard errors, all correlated.
    shares = np.array([(values <= theta).mean() for theta in found.grid])
    assert np.abs((found.shares - shares) / found.stderr).max() < 5.0


def test_one_running_sum_is_much_better_than_a_noisy_one_hot():
    errors = {
        name: so.plan(so.local.LocalSurvey(10**6, intervals=1000), APPROX, mechanism=name).max_stderr * 1e3
        for name in ("square-root", "identity", "binary-tree")
    }
    best = so.plan(so.local.LocalSurvey(10**6, intervals=1000), APPROX).max_stderr * 1e3
    # In standard deviations of the derivative, 2 shares - 1: 35.5 and 378, as computed elsewhere.
    assert 2.0 * errors["square-root"] == pytest.approx(35.5, abs=0.05)
    assert 2.0 * errors["identity"] == pytest.approx(378, abs=0.5)
    assert best <= errors["square-root"] * 1.01
    assert errors["binary-tree"] > 2.0 * best


def test_no_report_is_merged_twice():
    """Not with itself, not the same server again, not by way of a third one."""
    plan = so.plan(so.local.LocalSurvey(100), APPROX)
    one, two, three = plan.server(), plan.server(), plan.server()
    for server in (one, two, three):
        server.add(plan.encode_client(0.5))
    one.merge(two)
    three.merge(two)
    for other in (one, two, three):
        with pytest.raises(so.errors.InvalidParameterError, match="before"):
            one.merge(other)
    assert one.accepted == 2
    with pytest.raises(so.errors.ForkError):
        copy.copy(one)


def test_a_survey_that_is_not_enough_says_so():
    """A half is within a half of every share: where intervals are wider, the plan says how many clients it takes."""
    survey = so.local.LocalSurvey(clients=10_000, bounds=(0.0, 1.0), intervals=100)
    plan = so.plan(survey, PURE, mechanism="identity")
    width = plan.fit.largest_half_width(0.95)
    assert width > 0.5
    (line,) = [line for line in plan.explain().splitlines() if line.startswith("not enough")]
    clients = int(line.split("±0.5: ")[1].split(" ")[0].replace(",", ""))
    assert "intervals=100" in line
    assert 0.05 < plan.fit.half_width(0.95, clients).max() <= 0.1
    asked = so.local.LocalSurvey(clients=clients, bounds=(0.0, 1.0), intervals=100)
    enough = so.plan(asked, PURE, mechanism="identity")
    assert "not enough" not in enough.explain()
