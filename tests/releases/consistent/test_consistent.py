"""Consistent answers: fixtures, theorems on every draw, options that are refused, and what the numbers mean."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sordino as so
from marginal_tables import LEVELS, agrees, records, truth_of
from sordino.releases.consistent.marginals import _measured
from sordino.releases.consistent.parts import below_of

APPROX = so.ApproxDP(epsilon=0.5, delta=1e-6)
PURE = so.PureDP(epsilon=0.5)
MARGINALS = [
    (so.Marginals(LEVELS, k=2), "fourier", APPROX),
    (so.Marginals(LEVELS, k=2), "fourier", PURE),
    (so.Marginals(LEVELS, k=2), "output", APPROX),
    (so.Marginals(LEVELS, k=2), "output", PURE),
    (so.Marginals(LEVELS, k=2), "identity", APPROX),
    (so.Marginals(LEVELS, sets=[(0, 1), (1, 2, 3), (0,)], weights=[1.0, 3.0, 0.5]), "fourier", APPROX),
    (so.Marginals(LEVELS, sets=[(0, 1, 2), (1, 3), ()]), "output", APPROX),
    (so.Marginals(LEVELS, sets=[(0, 1), (0, 2), (1, 2), (0,)], weights=[1.0, 30.0, 0.1, 5.0]), "output", APPROX),
    (so.Marginals([2, 3, 2], k=1), "fourier", APPROX),
]
TOTAL = 400  # of `records`
OTHERS = [
    (so.Marginals([4, 3, 5], sets=[(0,), (1,), ()]), "optimal-gaussian", APPROX),
    (so.Marginals([4, 3, 5], k=2, weights=[1.0, 5.0, 0.2]), "optimal-gaussian", APPROX),
    (so.Marginals([4, 3], k=1), "p-identity", PURE),
]


@pytest.mark.parametrize(
    ("workload", "mechanism", "privacy", "norm"),
    [(*case, norm) for case in MARGINALS for norm in ("answers", "noise")] + [(*case, "answers") for case in OTHERS],
)
@pytest.mark.parametrize("seed", range(3))
def test_tables_agree_and_the_theorem_holds_on_every_draw(workload, mechanism, privacy, norm, seed, known_noise):
    codes = records(seed, levels=workload.levels)
    release = so.plan(workload, privacy, mechanism=mechanism).release(codes)
    truth = truth_of(workload, codes)
    weights = np.ones(truth.size) if workload.answer_weights() is None else workload.answer_weights()

    def error(values):
        return math.sqrt(np.average((values - truth) ** 2, weights=weights))

    for made in (
        release.consistent(norm=norm),
        release.consistent(total=400, norm=norm),
        release.consistent(total=0, norm=norm),
        *(
            []
            if any(case[0] is workload for case in OTHERS)
            else [release.consistent(shrink="independence", norm=norm)]
        ),
    ):
        report = made.consistency
        assert made.values.min() >= 0.0 and report.gap <= 1.01e-3 and 0.0 <= report.mixed <= 1.0
        agrees(made.tables, report.total)
        for table in made.tables.values():
            assert math.isclose(table.sum(), report.total, rel_tol=1e-9, abs_tol=1e-9)
        assert (made.unbiased == release.unbiased).all() and (made.stderr == release.stderr).all()
        assert made.post_processing == ("consistent",)
        assert math.isclose(report.moved, np.sqrt(np.mean((made.values - release.values) ** 2)), rel_tol=1e-9)
    if norm == "answers":
        # With the true total: not further, up to the gap, which is a share of the noise. Of tables that do not agree
        # least squares is a projection too.
        gap = (
            math.sqrt(2.0 * release.consistent(total=400).consistency.gap)
            * so.plan(workload, privacy, mechanism=mechanism).rmse
        )
        assert error(release.consistent(total=400).values) <= error(release.values) + gap
    assert release.answer(workload).consistency is None


def test_the_generated_table_of_four_attributes(known_noise):
    """The errors that an independent prototype measured: .5 and .43 of the noise."""
    rng = np.random.default_rng(0)
    levels, n = [20, 30, 25, 10], 5000
    columns = []
    for level in levels:
        share = 1.0 / np.arange(1, level + 1) ** 1.2
        columns.append(rng.choice(level, n, p=share / share.sum()))
    codes = np.stack(columns, 1)
    half = rng.random(n) < 0.5
    codes[half, 1] = 3 * codes[half, 0] // 2
    half = rng.random(n) < 0.5
    codes[half, 3] = 10 * codes[half, 2] // 25
    workload = so.Marginals(levels, k=2)
    truth = truth_of(workload, codes)
    release = so.plan(workload, APPROX, mechanism="output-gaussian").release(codes)

    def error(values):
        return math.sqrt(np.mean((values - truth) ** 2))

    plain, shrunk = release.consistent(), release.consistent(shrink="independence")
    assert abs(error(plain.values) / 9.97 - 1.0) < 0.05
    assert abs(error(shrunk.values) / 8.45 - 1.0) < 0.05
    assert error(np.maximum(release.values, 0.0)) > 1.4 * error(plain.values)
    factors = shrunk.consistency.shrunk
    assert set(factors) == set(workload.sets) and factors[0, 1] > 2 * factors[1, 2]


@pytest.mark.filterwarnings("ignore:deterministic noise")
@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(0, 2**32), st.floats(0, 50))
def test_histograms_are_projected_onto_the_simplex(cells, seed, total):
    plan = so.plan(so.Histogram(cells), so.GaussianDP(mu=0.5), mechanism="identity-gaussian")
    with so.testing.deterministic_noise(seed.to_bytes(32, "little")):
        release = plan.release(np.zeros(cells, dtype=int))
    made = release.consistent(total=total)
    assert made.values.min() >= 0.0 and math.isclose(made.values.sum(), total, abs_tol=1e-9)
    if total > 1e-6:  # the same number was taken from all that are left, and no less from those that are not
        lowered = release.values - made.values
        kept = made.values > 0.0
        assert np.ptp(lowered[kept]) < 1e-9
        assert (lowered[~kept] <= lowered[kept].min() + 1e-9).all()
    free = release.consistent()
    assert math.isclose(free.values.sum(), max(release.values.sum(), 0.0), abs_tol=1e-9)


@pytest.mark.parametrize("privacy", [APPROX, PURE])
def test_running_sums_never_fall_and_come_no_further_from_the_truth(privacy, known_noise):
    rng = np.random.default_rng(1)
    for k in range(20):
        x = rng.poisson(rng.uniform(0, 3), 60)
        release = so.plan(so.RunningSum(60), privacy).release(x)
        made = release.consistent(total=int(x.sum()))
        assert (np.diff(made.values) >= 0.0).all() and made.values.min() >= 0.0 and made.values.max() <= x.sum()
        truth = np.cumsum(x)
        assert np.linalg.norm(made.values - truth) <= np.linalg.norm(release.values - truth) * (1.0 + 1e-12), k


@pytest.mark.filterwarnings("ignore:deterministic noise")
@pytest.mark.parametrize(("workload", "mechanism", "privacy"), MARGINALS[:6])
def test_residuals_have_the_variances_that_are_used(workload, mechanism, privacy, norm="answers"):
    """Of what 1,500 releases of an empty table say; the mean over all residuals of a set has a relative error of .04."""
    plan, key = so.plan(workload, privacy, mechanism=mechanism), itertools.count()
    below = below_of(workload.sets)
    sums = np.zeros(len(below))
    for _ in range(1500):
        with so.testing.deterministic_noise(next(key).to_bytes(32, "little")):
            release = plan.release(np.zeros((0, len(workload.levels)), dtype=int))
        _, residuals, variances = _measured(release, workload, below, SimpleNamespace(norm=norm, shrink=None))
        sums += [np.sum(residuals[t] ** 2) for t in below]
    free = np.array([math.prod(workload.levels[i] - 1 for i in t) for t in below])
    # Five standard deviations of a chi-square, four times as much for Laplace noise; false alarms below 1e-4.
    assert (np.abs(sums / 1500 / (free * variances) - 1.0) < 10.0 * np.sqrt(2.0 / (1500 * free))).all()


def test_what_a_reader_found(known_noise):
    """Weights of tables that do not agree, regrouped attributes, reports that outlive, shapes, signs, public totals."""
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 3, (20_000, 3))
    weighted = so.Marginals([3, 3, 3], sets=[(0,), (0, 1)], weights=[1000.0, 1.0])
    truth = truth_of(weighted, codes)
    for seed in range(60):
        with so.testing.deterministic_noise(seed.to_bytes(32, "little")):
            release = so.plan(weighted, APPROX, mechanism="output").release(codes)
        made = release.consistent(total=20_000)
        errors = [
            np.average((v - truth) ** 2, weights=weighted.answer_weights()) for v in (made.values, release.values)
        ]
        assert errors[0] <= errors[1] * (1.0 + 1e-9) + 2.0 * made.consistency.gap * errors[1]
    regrouped = so.plan(so.Marginals([4, 3, 5], k=3), APPROX, mechanism="fourier").release(records(0, levels=[4, 3, 5]))
    regrouped = regrouped.answer(so.Marginals([12, 5], k=2))
    assert regrouped.consistent().values.min() >= 0.0
    for kwargs in ({"norm": "noise"}, {"shrink": "independence"}):
        with pytest.raises(so.errors.UnsupportedMechanismError, match="structure"):
            regrouped.consistent(**kwargs)
    assert made.rounded().consistency is None and made.consistency.converged
    table = so.plan(so.Histogram([4, 5]), PURE).release(np.ones((4, 5), dtype=int)).consistent(total=20)
    assert table.values.shape == (4, 5) and math.isclose(table.values.sum(), 20.0)
    sums = so.plan(so.RunningSum(10), PURE).release(np.ones(10, dtype=int)).consistent(total=10)
    assert sums.values[-1] == sums.consistency.total == 10.0 and (np.diff(sums.values) >= 0.0).all()
    signed = so.plan(so.Histogram(8), PURE, constraint=so.optimal.SignedBound(300)).release(np.arange(8) - 4)
    with pytest.raises(so.errors.UnsupportedMechanismError, match="negative"):
        signed.consistent()


def test_what_the_planned_error_says_of_values(known_noise):
    release = so.plan(so.Marginals(LEVELS, k=2), APPROX, mechanism="fourier-gaussian").release(records(0))
    assert release.rmse_kind == release.fit.rmse_kind
    for kwargs, kind in (
        ({}, "noise only"),  # the total is as noisy as ever
        ({"total": 400}, "upper bound"),
        ({"total": 400, "shrink": "independence"}, "upper bound"),
        ({"total": 400, "norm": "noise"}, "noise only"),
        ({"total": 400, "whole": True}, "noise only"),
        ({"invariants": {(0,): np.bincount(records(0)[:, 0], minlength=4)}}, "upper bound"),
    ):
        assert release.consistent(**kwargs).rmse_kind == kind
    laplace = so.plan(so.Marginals(LEVELS, k=2), PURE, mechanism="output").release(records(0))
    assert laplace.consistent(total=400, shrink="independence").rmse_kind == "noise only"
    assert laplace.consistent(total=400).rmse_kind == "upper bound"
    sums = so.plan(so.RunningSum(9), PURE).release(np.ones(9, dtype=int))
    assert sums.consistent().rmse_kind == "upper bound" and sums.monotone().rmse_kind == "noise only"
    assert sums.answer(so.Histogram(9)).rmse_kind == "noise only"


def test_what_is_refused():
    many = so.Marginals([2] * 17, sets=[tuple(range(17))])
    release = so.plan(many, APPROX, mechanism="identity").release(np.zeros((3, 17), dtype=int))
    with pytest.raises(so.errors.UnsupportedMechanismError, match="16 attributes"):
        release.consistent()
    release = so.plan(so.Marginals(LEVELS, k=2), APPROX).release(records(0))
    for wrong in ({"total": -1}, {"shrink": "all"}, {"norm": "l1"}):
        with pytest.raises(so.errors.InvalidParameterError):
            release.consistent(**wrong)
    with pytest.raises(so.errors.DataTypeError):
        release.consistent(total="many")
    filtered = so.plan(so.MovingAverage(window=3, length=8), APPROX).release(np.ones(8))
    with pytest.raises(so.errors.UnsupportedMechanismError, match="MovingAverage"):
        filtered.consistent()
    crossing = so.GroupBy([[0, 0, 1, 1], [0, 1, 1, 0]])
    with pytest.raises(so.errors.UnsupportedMechanismError, match="cross"):
        so.plan(crossing, APPROX).release(np.ones(4)).consistent()
    for sums in (so.RunningSum(8), so.AllRanges(8), so.Marginals([2, 2], k=1), so.GroupBy([0, 0, 1])):
        cells = np.ones(sums.input_shape, dtype=int).reshape(-1)
        with pytest.raises(so.errors.UnsupportedMechanismError, match="consistent"):
            so.plan(sums, APPROX).release(cells).nonnegative()
    histogram = so.plan(so.Histogram(8), APPROX).release(np.ones(8))
    with pytest.raises(so.errors.InvalidParameterError, match="marginals"):
        histogram.consistent(shrink="independence")


def test_a_hundred_attributes():
    """4,950 tables, which no full table holds: feasible, with a gap that is told."""
    rng = np.random.default_rng(0)
    codes = np.minimum(rng.geometric(0.35, (2000, 100)) - 1, 9)
    workload = so.Marginals([10] * 100, k=2)
    made = so.plan(workload, so.GaussianDP(mu=1.0)).release(codes).consistent(total=2000)
    assert made.values.min() >= 0.0 and made.consistency.gap <= 1e-3 and made.consistency.iterations < 200
    some = {s: made.tables[s] for s in list(made.tables)[::500]}
    agrees(some, 2000)


def test_a_search_that_did_not_end_promises_nothing():
    weights = [1e6, 1, 1, 1, 1, 1e-6]
    plan = so.plan(
        so.Marginals([6] * 4, k=2, weights=weights), so.ApproxDP(epsilon=0.3, delta=1e-6), mechanism="fourier"
    )
    codes = np.random.default_rng(1).integers(0, 6, (300, 4))
    found = plan.release(codes).consistent(total=300)
    assert found.consistency.never_worse == found.consistency.converged
    assert found.consistency.converged or found.rmse_kind == "noise only"


def test_what_breaks_sums_is_refused():
    """A clip of answers that have cells in common; counts of what may be negative."""
    pure = so.PureDP(epsilon=0.1)
    two = so.Kronecker([so.Histogram(3), so.GroupBy([[0, 0, 1]])])
    for workload in (two, so.Histogram(4) | so.RunningSum(4), so.Matrix(np.tri(4)), so.Marginals([2, 2], k=1)):
        release = so.plan(workload, pure).release(np.zeros(workload.input_shape, dtype=int))
        with pytest.raises(so.errors.UnsupportedMechanismError, match="clip"):
            release.nonnegative()
    for workload in (so.Histogram(4), so.MovingAverage(2, 4), so.Kronecker([so.Histogram(2), so.Histogram(3)])):
        release = so.plan(workload, pure).release(np.zeros(workload.input_shape, dtype=int))
        assert release.nonnegative().values.min() >= 0.0
    real = so.plan(so.Histogram(8), pure, integral=False, max_value=5).release(np.arange(8) - 4.0)
    with pytest.raises(so.errors.UnsupportedMechanismError, match="negative"):
        real.consistent()


def test_a_plan_says_how_the_total_is_known():
    said = so.plan(so.Marginals([4, 5], k=1), so.GaussianDP(mu=1.0), mechanism="fourier").explain()
    assert "hardly measured: total_share=.02" in said
    shared = so.plan(so.Marginals([4, 5], k=1, total_share=0.02), so.GaussianDP(mu=1.0), mechanism="fourier")
    assert "the total has its share" in shared.explain()
    other = so.plan(so.Marginals([4, 5], k=1, total_share=0.02), so.PureDP(epsilon=1.0), mechanism="output")
    assert "means nothing here" in other.explain()


@pytest.mark.parametrize("case", [case for case in MARGINALS if case[1] == "fourier"], ids=str)
@pytest.mark.parametrize("total", [None, 300, 500])
@pytest.mark.parametrize("seed", range(4))
def test_a_total_that_is_off_costs_what_it_is_off_by(case, total, seed, known_noise):
    """Theorem 1 where the total is not the true one: twice its share of the answers' own size, on every draw."""
    workload, mechanism, privacy = case
    codes = records(seed, levels=workload.levels)
    plan = so.plan(workload, privacy, mechanism=mechanism)
    release, truth = plan.release(codes), truth_of(workload, codes)
    made = release.consistent() if total is None else release.consistent(total=total)
    sizes = np.repeat([float(t.size) for t in made.tables.values()], [t.size for t in made.tables.values()])
    before = release.values + (made.consistency.total - _total(release)) / sizes
    weights = np.ones(truth.size) if workload.answer_weights() is None else workload.answer_weights()
    norm = lambda v: math.sqrt(np.average(v**2, weights=weights))  # noqa: E731
    off = 2.0 * abs(made.consistency.total / TOTAL - 1.0) * norm(truth)
    gap = math.sqrt(2.0 * made.consistency.gap) * plan.rmse
    assert norm(made.values - truth) <= norm(before - truth) + off + gap + 1e-9


def _total(release):
    """What the tables of a release that agree say of the total."""
    first = release.workload.sets[0]
    return release.values[: math.prod(release.workload.levels[i] for i in first)].sum()


@pytest.mark.parametrize("tied", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("rho", [0.002, 0.1])
def test_shrinking_has_no_more_error_on_average_whatever_the_data(tied, rho):
    """Theorem 2: below the plan's rmse in expectation, for attributes without, with some and with all association.

    The mean of 150 draws exceeds its expectation by more than five of its standard errors once in 3e6.
    """
    rng = np.random.default_rng(0)
    levels, n = (6, 5, 4), 2000
    codes = np.stack([rng.integers(0, size, n) for size in levels], axis=1)
    for i in (1, 2):
        same = rng.random(n) < tied
        codes[same, i] = codes[same, 0] % levels[i]
    workload = so.Marginals(levels, k=2)
    plan = so.plan(workload, so.ZeroConcentratedDP(rho=rho), mechanism="output-gaussian")
    truth, squares = truth_of(workload, codes), []
    for draw in range(150):
        with so.testing.deterministic_noise(draw.to_bytes(32, "little")):
            shrunk = plan.release(codes).consistent(shrink="independence", total=n)
        squares.append(np.mean((shrunk.values - truth) ** 2))
    error = np.std(squares, ddof=1) / math.sqrt(len(squares))
    assert np.mean(squares) - 5.0 * error <= plan.rmse**2
