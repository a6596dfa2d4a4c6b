"""Randomised responses: lies, messages and estimates against what is said of them; ends, files, few clients."""

import decimal
import math
from fractions import Fraction

import numpy as np
import pytest

import sordino as so
from sordino.privacy.calibration import flips_of_pure
from surveys import APPROX, PURE, PURES, estimated


@pytest.fixture(autouse=True)
def _known(known_noise):
    """No test can fail by chance."""


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 5.0, 20.0, 27.7, 40.0, 800.0])
@pytest.mark.parametrize("odds", [Fraction(1), Fraction(1, 3), Fraction(8192, 5)])
def test_lies_are_as_likely_as_they_must_be(epsilon, odds):
    """Never fewer than e^-epsilon asks for, by decimals of 60 digits, and hardly more."""
    with decimal.localcontext(prec=60):
        least = decimal.Decimal(odds.numerator) / odds.denominator
        least = least / (decimal.Decimal(epsilon).exp() + least) * 2**40
        found = flips_of_pure(epsilon, odds)
        assert least <= found <= least * (1 + decimal.Decimal(2) ** -47) + 1


@pytest.mark.parametrize(("steps", "epsilon"), [(1, 1.0), (2, 0.5), (3, 1.0), (5, 2.0), (6, 4.0)])
@pytest.mark.parametrize("mechanism", ["waves", "subset-selection"])
def test_messages_tell_values_apart_by_no_more_than_epsilon(mechanism, steps, epsilon):
    """Frequencies of every message from every place, against the plan's epsilon; 5 standard errors, a fixed key."""
    plan = so.plan(so.local.LocalSurvey(10, intervals=steps), so.PureDP(epsilon=epsilon), mechanism=mechanism)
    clients, places = 120_000, [*(plan.fit.survey.grid - 0.5 / steps), math.nan]
    told = [np.unique(plan.encode_clients(np.full(clients, x)), axis=0, return_counts=True) for x in places]
    counts = [dict(zip(map(tuple, messages.tolist()), found.tolist(), strict=True)) for messages, found in told]
    worst = 0.0
    for message in set().union(*counts):
        seen = np.array([found.get(message, 0) for found in counts], dtype=float)
        # The larger one less 5 errors, the smaller one more: enough for a few thousand comparisons.
        assert seen.max() - 5.0 * math.sqrt(seen.max()) <= math.exp(epsilon) * (
            seen.min() + 5.0 * math.sqrt(seen.min() + 1.0)
        )
        worst = max(worst, seen.max() / max(seen.min(), 1.0))
    assert worst > 0.8 * math.exp(epsilon)  # the budget is used


@pytest.mark.parametrize("mechanism", PURES)
@pytest.mark.parametrize("loss", [None, so.local.LocalLoss.huber(0.3)], ids=["absolute", "huber"])
@pytest.mark.parametrize(("steps", "epsilon"), [(1, 1.0), (4, 0.7), (9, 3.0), (30, 1.5)])
def test_estimates_have_the_error_that_is_said(mechanism, loss, steps, epsilon):
    """Means and variances over 4,000 surveys of three clients; 6 standard errors."""
    runs, values = 4000, np.array([0.07, 0.42, 0.93])
    survey = so.local.LocalSurvey(3, loss=loss, intervals=steps)
    plan = so.plan(survey, so.PureDP(epsilon=epsilon), mechanism=mechanism)
    truth = np.cumsum(survey.increments(values).mean(axis=0)) / survey.largest
    reports = plan.encode_clients(np.tile(values, runs)).reshape(runs, 3, plan.fit.numbers)
    found, levels = [], []
    for three in reports:
        server = plan.server()
        server.add_many(three)
        estimate = server.estimate()
        found.append(estimate.shares)
        levels.append(estimate.level)
    errors, said = np.array(found) - truth, plan.fit.std(3)
    assert np.abs(errors.mean(axis=0)).max() <= 6.0 * said.max() / math.sqrt(runs)
    seen, slack = np.var(errors, axis=0) / said**2, 6.0 * math.sqrt(8.0 / runs)
    assert seen.max() <= 1.0 + slack
    if mechanism == "waves" and loss is None:
        assert seen.min() >= 1.0 - slack  # exact, whatever the values
    if loss is not None:
        level, spread = survey.starts(values).mean() / 2**16, np.std(levels) / math.sqrt(runs)
        assert abs(np.mean(levels) - level) <= 6.0 * spread


def test_waves_and_subsets_have_less_error():
    """Page figures: 10,000 clients, largest standard error of a share; what is taken, and how far behind the others are."""
    for epsilon, steps, name, error, times in (
        (0.5, 50, "waves", 0.0704, 3.2),
        (1.0, 16, "waves", 0.0291, 3.3),
        (1.0, 100, "waves", 0.0419, 3.1),
        (2.0, 16, "subset-selection", 0.0164, 3.0),
        (4.0, 16, "subset-selection", 0.00551, 4.0),
    ):
        survey = so.local.LocalSurvey(10_000, intervals=steps)
        plan = so.plan(survey, so.ApproxDP(epsilon=epsilon, delta=1e-6))
        assert plan.mechanism == name
        assert plan.max_stderr == pytest.approx(error, rel=2e-3)
        others = [
            row["max_stderr"] for row in plan.compare().rows if row["mechanism"] not in {"waves", "subset-selection"}
        ]
        assert min(others) > times * plan.max_stderr
        assert plan.cost == so.privacy.PureCost(epsilon)


@pytest.mark.parametrize("mechanism", ["waves", "subset-selection"])
def test_intervals_of_responses_cover(mechanism):
    """Bernstein's are valid for one client as for many: none of 300 surveys may miss more often than 5 %."""
    for clients in (1, 5, 400):
        survey = so.local.LocalSurvey(clients, intervals=6)
        plan = so.plan(survey, so.PureDP(epsilon=1.5), mechanism=mechanism)
        values = np.linspace(0.05, 0.95, clients)
        truth = (values[:, None] <= survey.grid).mean(axis=0)
        missed = 0
        for _ in range(300):
            interval = estimated(plan, values).interval(0.95)
            missed += not ((interval.lower <= truth) & (truth <= interval.upper)).all()
        assert missed <= 15


def test_what_no_client_tells():
    """Codes beyond the last, sets out of order or with a place twice, places that are not there."""
    survey = so.local.LocalSurvey(9, intervals=5)
    waves = so.plan(survey, PURE, mechanism="waves").server()
    for bad in ([-1], [waves.fit.report.core.codes], [0.5], [1, 2], [2**62]):
        waves.add(bad)
    assert waves.accepted == 0
    waves.add([waves.fit.report.core.codes - 1])
    assert waves.accepted == 1
    plan = so.plan(so.local.LocalSurvey(9, intervals=9), PURE, mechanism="subset-selection")
    size, server = plan.fit.numbers, plan.server()
    assert size > 1
    good = list(range(10 - size, 10))
    for bad in (good[::-1], [*good[:-1], good[-2]], [*good[:-1], 10], [-1, *good[1:]]):
        server.add(bad)
    assert server.accepted == 0
    server.add(good)
    assert server.accepted == 1


def test_responses_that_cannot_be():
    with pytest.raises(so.errors.UnsupportedMechanismError, match="too small"):
        so.plan(so.local.LocalSurvey(9, intervals=5), so.PureDP(epsilon=2e-12), mechanism="waves")
    with pytest.raises(so.errors.InvalidParameterError, match="waves, subset-selection"):
        so.plan(so.local.LocalSurvey(9), PURE, mechanism="wave")
    plan = so.plan(so.local.LocalSurvey(100_000, intervals=1000), APPROX, noise="gaussian")
    assert plan.mechanism == "blt-gaussian"


@pytest.mark.parametrize("steps", [1, 2, 3, 64])
def test_where_every_message_would_be_a_lie(steps):
    """Refused before anything is charged, or planned so that clients can report; compared where it is planned."""
    survey = so.local.LocalSurvey(100, intervals=steps)
    for epsilon in (1e-12, 2e-12, 4e-12, 1e-11, 1e-10):
        for mechanism in ("auto", "waves", "subset-selection"):
            try:
                plan = so.plan(survey, so.PureDP(epsilon=epsilon), mechanism=mechanism)
            except so.errors.UnsupportedMechanismError as error:
                assert "too small" in str(error)
                continue
            assert plan.encode_client(0.5).shape == (plan.fit.numbers,)
            assert math.isfinite(plan.max_stderr)
        assert (
            so.compare(survey, so.PureDP(epsilon=epsilon)).chosen
            == so.plan(survey, so.PureDP(epsilon=epsilon)).mechanism
        )


def test_comparisons_have_what_is_taken():
    for privacy in (so.ZeroConcentratedDP(rho=0.5), so.GaussianDP(mu=2.0), APPROX, PURE):
        for steps in (1, 2, 3, 8, 40):
            survey = so.local.LocalSurvey(1000, intervals=steps)
            plan, shown = so.plan(survey, privacy), so.compare(survey, privacy)
            assert shown.rows[0]["mechanism"] == plan.mechanism == shown.chosen
            assert shown.rows[0]["max_stderr"] == plan.max_stderr


def test_what_servers_must_know_is_in_the_file():
    """Sizes of subsets and frequencies of waves; and what was asked for is what is fitted."""
    subsets = so.plan(so.local.LocalSurvey(100, intervals=16), PURE, mechanism="subset-selection")
    waves = so.plan(so.local.LocalSurvey(100, intervals=16), PURE, mechanism="waves")
    named = subsets.record()
    for changed in (
        named | {"parameters": {"size": 1}, "doors": [{"grid": -40, "quarter_units": 2**39}]},
        waves.record() | {"parameters": {"frequencies": "harmonic"}},
        named | {"fitted": "waves", "parameters": {"frequencies": "totient"}},
        named | {"request": named["request"] | {"noise": "laplace"}},
        # As private, but whoever adds up counts other lies.
        waves.record() | {"doors": [{"grid": -40, "quarter_units": 2 * waves.fit.report.flips}]},
    ):
        with pytest.raises(so.errors.PlanFileError):
            so.SurveyPlan.from_record(changed)
    with pytest.raises(so.errors.UnsupportedMechanismError, match="noise"):
        so.plan(so.local.LocalSurvey(100), PURE, mechanism="waves", noise="laplace")


def test_few_clients():
    """No interval is wider than what one client can do, and the clients that would do are counted as intervals are."""
    for clients in (1, 3, 10, 100):
        plan = so.plan(so.local.LocalSurvey(clients, intervals=16), so.PureDP(epsilon=0.5), mechanism="waves")
        assert plan.fit.largest_half_width(0.95) <= plan.fit.report.largest
        (line,) = [line for line in plan.explain().splitlines() if line.startswith("not enough")]
        assert " 50,000 clients" in line
        assert plan.fit.half_width(0.95, 50_000).max() <= 0.1 < plan.fit.half_width(0.95, 40_000).max()


@pytest.mark.parametrize("told", [[True], np.array([True]), np.ma.masked_array([3], mask=[True]), np.array([[True]])])
def test_what_is_no_number_is_no_report(told):
    server = so.plan(so.local.LocalSurvey(9, intervals=5), PURE, mechanism="waves").server()
    server.add(told)
    server.add_many(told)
    assert server.accepted == 0


def test_rows_under_a_mask_are_left_out():
    server = so.plan(so.local.LocalSurvey(9, intervals=5), PURE, mechanism="waves").server()
    server.add_many(np.ma.masked_array([[3], [4], [5]], mask=[[False], [True], [False]]))
    assert server.accepted == 2
    server.add_many(np.ma.masked_array([[3], [4]]))
    assert server.accepted == 4
