"""What is left out before it is fitted could not have been taken."""

import math

import numpy as np
import pytest

import sordino as so
from sordino.accuracy.bounds import gaussian_bound, norm_bound
from sordino.accuracy.nuclear_norms import filter_sums, magnitudes, spectral_roots
from sordino.mechanisms.linear import family, floors
from sordino.mechanisms.linear.effort import affords
from sordino.workloads import (
    AllRanges,
    Convolution,
    ExponentialSmoothing,
    GroupBy,
    Kronecker,
    Matrix,
    RunningSum,
    SlidingWindow,
    Union,
)
from sordino.workloads.constraints import PublicBound

GAUSSIAN = so.GaussianDP(mu=0.25)
LAPLACE = so.ApproxDP(epsilon=1.0, delta=1e-6)
RNG = np.random.default_rng(0)
WORKLOADS = [
    AllRanges(70),
    RunningSum(200),
    ExponentialSmoothing(0.9, 300),
    SlidingWindow(7, 300),
    SlidingWindow(2, 600),
    so.Histogram(50),
    Union([RunningSum(64), so.Histogram(64)]),
    Kronecker([AllRanges(8), AllRanges(12)]),
    Union([Kronecker([AllRanges(6), AllRanges(7)]), Kronecker([AllRanges(6), so.Histogram(7)])]),
    Matrix(RNG.integers(0, 2, (40, 30)).astype(float)),
    Matrix(RNG.normal(size=(3, 50))),
    Matrix(RNG.normal(size=(1, 9))),
    GroupBy([np.arange(60), np.arange(60) // 7, np.arange(60) // 21]),
    GroupBy([np.arange(60) // 30, np.zeros(60, dtype=int)]),
]
REQUESTS = [
    (GAUSSIAN, {}),
    (GAUSSIAN, {"unit": so.ReplaceOne()}),
    (GAUSSIAN, {"objective": "max"}),
    (LAPLACE, {}),
    (LAPLACE, {"unit": so.AddRemove(3), "max_value": 1000}),
    (LAPLACE, {"noise": "gaussian"}),
    (so.PureDP(epsilon=1.0), {}),
    (so.PureDP(epsilon=0.2), {"unit": so.ReplaceOne(), "objective": "max"}),
    (so.ZeroConcentratedDP(rho=8.0), {"integral": False}),
    (so.ApproxDP(epsilon=9.0, delta=1e-3), {}),
]


@pytest.fixture
def ruled_out(monkeypatch):
    """Names of the mechanisms that were not fitted, every workload being long."""
    names = []
    rule_out = floors.Floors.rule_out

    def told(self, mechanism, fits):
        found = rule_out(self, mechanism, fits)
        names.extend([mechanism.name] if found else [])
        return found

    monkeypatch.setattr(floors, "LONG", 0)
    monkeypatch.setattr(floors.Floors, "rule_out", told)
    return names


@pytest.mark.parametrize(("privacy", "options"), REQUESTS)
def test_what_is_taken_is_the_same(privacy, options, ruled_out, monkeypatch):
    taken = [so.plan(workload, privacy=privacy, **options) for workload in WORKLOADS]
    assert ruled_out
    monkeypatch.setattr(floors.Floors, "rule_out", lambda self, mechanism, fits: False)
    for plan, workload in zip(taken, WORKLOADS, strict=True):
        other = so.plan(workload, privacy=privacy, **options)
        assert (plan.mechanism, plan.rmse) == (other.mechanism, other.rmse), workload


@pytest.mark.parametrize("integral", [True, False])
@pytest.mark.parametrize("mu", [0.25, 6.0])
@pytest.mark.parametrize("workload", [w for w in WORKLOADS if w.core.answers_len > 1], ids=repr)
def test_pure_noise_has_at_least_that_much_more_error_than_gaussian_noise(workload, mu, integral):
    request = so.plan(workload, privacy=so.GaussianDP(mu=mu), integral=integral).fit.request
    shown = family.LINEAR.shown(request)
    least = norm_bound(workload, request.privacy, request.unit).value
    known = floors.Floors(request)
    ratio = known.of_one("laplace") / known.of_one("gaussian")
    assert math.isclose(least, ratio * gaussian_bound(workload, request.privacy, request.unit).value)
    # The search for the least Gaussian error has a sharper bound.
    least = max(least, ratio * shown.bound.value)
    pure = [fit for fit in shown.fits if fit.mechanism.law == "laplace" and not fit.is_biased]
    assert len(pure) >= 2
    for fit in pure:
        assert fit.rmse >= least * (1 - 1e-9), fit.name


LONG = 2**16 + 3


@pytest.mark.parametrize(
    "workload",
    [
        RunningSum(LONG),
        ExponentialSmoothing(0.99, LONG),
        SlidingWindow(168, LONG),
        SlidingWindow(LONG // 2, LONG),
        Convolution(np.cos(2 * np.pi * np.arange(LONG) * 5 / LONG) + 0.2),
        Convolution(np.cos(np.pi * np.arange(2**17) / 2)),
        Convolution(RNG.normal(size=9), length=LONG, boundary="same"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("privacy", [so.PureDP(epsilon=1.0), so.ApproxDP(epsilon=0.3, delta=1e-6)], ids=repr)
def test_noise_on_fourier_coefficients_has_no_less_error_than_their_floor(workload, privacy):
    for name in ("fourier-laplace", "fourier-planar", "fourier-grouped"):
        for unit in (so.AddRemove(), so.AddRemove(3), so.ReplaceOne()):
            fit = so.plan(workload, privacy, mechanism=name, unit=unit, max_value=10).fit
            least = floors.Floors(fit.request).of(fit.mechanism)
            assert least <= fit.rmse
            assert least > 0.4 * fit.rmse or unit != so.AddRemove()


@pytest.mark.parametrize(
    "workload",
    [RunningSum(5), RunningSum(1000), SlidingWindow(7, 301), Convolution(RNG.normal(size=300))],
    ids=repr,
)
def test_roots_are_those_of_the_spectrum(workload):
    values = magnitudes(workload)
    known = np.sum(values ** (2 / 3)) ** 1.5 / len(values)
    assert 0.998 * known < spectral_roots(workload) < known
    assert math.isclose(spectral_roots(workload), filter_sums(workload).roots, rel_tol=1e-9)


def test_the_bound_of_pure_noise_is_attained_and_said():
    plan = so.plan(so.Histogram(40), so.PureDP(epsilon=0.7))
    bound = norm_bound(plan.workload, so.PureDP(epsilon=0.7), so.AddRemove())
    assert math.isclose(bound.value, plan.rmse, rel_tol=1e-9)
    ranges = so.plan(AllRanges(1024), so.PureDP(epsilon=1.0)).explain()
    assert "bound          4.7694 (diagonal bound, pure noise of a norm)\n" in ranges
    assert "at most 2.31 times the least rmse of such noise" in ranges
    # A stair has less than noise of a norm.
    stair = so.plan(Matrix([[1.0] * 9]), so.PureDP(epsilon=3.0), unit=so.AddRemove(8))
    assert stair.fit.staircase is not None
    assert "noise of a norm" not in stair.explain()


def test_gaussian_noise_is_not_fitted_where_its_bound_is_above_laplace_noise(ruled_out):
    plan = so.plan(SlidingWindow(16, 1000), privacy=LAPLACE)
    assert plan.mechanism == "p-identity-laplace"
    assert {"fourier-gaussian", "square-root-gaussian", "balanced-gaussian"} <= set(ruled_out)
    assert plan.fit.bounds[0].value * plan.fit.tie >= plan.rmse


def test_noise_on_answers_is_not_fitted_where_columns_are_longer_than_rows(ruled_out):
    labels = np.arange(60)
    for workload, out in [(GroupBy([labels, labels // 7, labels // 21]), True), (GroupBy([labels // 30]), False)]:
        ruled_out.clear()
        plan = so.plan(workload, privacy=GAUSSIAN)
        assert ("output-gaussian" in ruled_out) == out
        assert (plan.mechanism == "output-gaussian") == (not out)


@pytest.mark.parametrize("privacy", [GAUSSIAN, so.PureDP(epsilon=1.0)])
def test_noise_on_answers_has_no_less_error_than_its_floor(privacy):
    """Groups of one and of two cells: noise on the answers has 1.22 times less error than noise on the cells."""
    labels = np.repeat(np.arange(6000), np.tile([1, 2], 3000))
    plan = so.plan(GroupBy([labels]), privacy=privacy)
    answers = so.plan(GroupBy([labels]), privacy=privacy, mechanism="output")
    cells = so.plan(GroupBy([labels]), privacy=privacy, mechanism="identity")
    floor = floors.Floors(plan.fit.request)._of_answers(answers.fit.mechanism.law, [cells.fit])
    assert 0.5 * answers.rmse <= floor <= answers.rmse * (1.0 + 1e-9)
    assert plan.rmse <= answers.rmse * plan.fit.tie


def test_noise_on_answers_may_be_the_least_where_records_move():
    """All columns are long, and near each other: what is long in them is the total, which does not change."""
    labels = np.arange(60)
    workload = GroupBy([labels, 0 * labels], weights=[1.0, 1000.0])
    plan = so.plan(workload, privacy=GAUSSIAN, unit=so.ReplaceOne())
    answers = so.plan(workload, privacy=GAUSSIAN, unit=so.ReplaceOne(), mechanism="output")
    assert plan.rmse <= answers.rmse * plan.fit.tie


def test_searches_of_pure_noise_are_not_made_where_gaussian_noise_has_less_error(monkeypatch):
    monkeypatch.setattr(floors, "LONG", math.inf)
    for workload in (AllRanges(1500), ExponentialSmoothing(0.99, 3000)):
        plan = so.plan(workload, privacy=GAUSSIAN)
        assert plan.mechanism.endswith("gaussian")
        reports = []
        so.plan(workload, privacy=GAUSSIAN, progress=reports.append)
        assert not reports, "no search was made"


def test_other_privacies_and_projections_choose_among_all(ruled_out):
    """What is ruled out at one privacy may be the best at another, and what is best may take no constraint."""
    workload, within = SlidingWindow(3, 600), {"rmse": 500.0, "delta": 1e-3}
    assert so.privacy_for(workload, **within).epsilon < 1e-3
    plan = so.plan(so.SortedHistogram(300), LAPLACE, constraint=PublicBound(1000.0))
    assert plan.mechanism == "identity-laplace"
    assert not ruled_out


def test_rings_are_not_searched_for_by_their_taps():
    short = Convolution([1.0, 0.5, 0.25], 2**20 + 2, "circular")
    assert not affords(
        so.plan(short, so.PureDP(epsilon=1.0), mechanism="identity").fit.request, "laplace", "p-identity"
    )


def test_one_number_has_noise_in_stairs_which_is_not_bounded_so():
    request = so.plan(Matrix([[1.0] * 9]), privacy=GAUSSIAN).fit.request
    fits = family.LINEAR._fitted(request, None, all_of_them=False)
    assert {fit.mechanism.law for fit in fits} == {"gaussian", "laplace"}
