"""Plans: the choice, its reasons, comparison, the inverse question, group privacy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sordino as so

APPROX = so.ApproxDP(epsilon=1.0, delta=1e-6)


def test_moving_average_of_a_year_takes_laplace_noise_and_says_why():
    plan = so.plan(so.MovingAverage(window=7, length=365), APPROX, unit=so.AddRemove(1, label="one flight"))
    assert plan.mechanism == "identity-laplace" and plan.optimality is None and plan.fit.ideal_optimality is None
    assert plan.rmse < plan.fit.bound.value == float(plan.fit.bound)
    text = plan.explain()
    assert "Laplace noise does" in text and "one flight" in text and "no optimality ratio" in text
    assert "up to a constant" in text


def test_the_trap_of_scale_and_standard_deviation():
    """Laplace noise of epsilon 1 has variance 2, discrete Laplace noise 1/(2 sinh²(1/2))."""
    plan = so.plan(so.Histogram(1), so.PureDP(epsilon=1.0))
    assert math.isclose(plan.rmse**2, 1.8413471884155848, rel_tol=1e-12)
    assert 1.0 <= plan.fit.door.scale <= 1.0 + 1e-12


@pytest.mark.slow
def test_auto_takes_the_least_error_and_the_simpler_of_ties():
    for workload in [so.RunningSum(100), so.MovingAverage(64, 256), so.Marginals([2] * 6, k=2), so.Histogram(5)]:
        for privacy in [APPROX, so.PureDP(epsilon=1.0), so.GaussianDP(mu=0.5), so.ZeroConcentratedDP(rho=0.1)]:
            for objective, column in [("mean", "rmse"), ("max", "max_stderr")]:
                table = so.compare(workload, privacy, objective=objective)
                chosen = so.plan(workload, privacy, objective=objective)
                assert table.chosen == chosen.mechanism
                automatic = [row for row in table.rows if "uniform" not in row["mechanism"]]
                least = min(row[column] for row in automatic)
                assert getattr(chosen, column) <= 1.01 * least
                known = [row[column] for row in table.rows if row["rmse_kind"] != "noise only"]
                assert known == sorted(known) == [row[column] for row in table.rows][: len(known)]
    # At epsilon = 1, windows of 75 and more prefer the Fourier mechanism on a ring.
    for window, mechanism in ((48, "identity-laplace"), (80, "fourier-gaussian")):
        ring = so.MovingAverage(window, 4096, "circular")
        assert so.plan(ring, APPROX, effort="closed_form").mechanism == mechanism
        assert so.plan(ring, APPROX).rmse <= so.plan(ring, APPROX, effort="closed_form").rmse
    closed = so.plan(so.RunningSum(64), APPROX, effort="closed_form")
    assert closed.mechanism == "weighted-tree-laplace"
    assert so.plan(so.RunningSum(64), APPROX).mechanism == "p-identity-laplace"
    assert so.plan(so.RunningSum(1 << 15), APPROX).mechanism == "balanced-gaussian"
    assert so.plan(so.MovingAverage(2, 9), so.PureDP(epsilon=1.0)).mechanism.endswith("laplace")
    # Weights that grow with age: early answers are small, and so are their errors under a causal factor.
    growing = so.Convolution(np.arange(1.0, 257.0), 256, "causal")
    assert so.plan(growing, APPROX, effort="closed_form").mechanism == "square-root-gaussian"


def test_who_names_a_mechanism_gets_it_or_a_clear_refusal():
    workload = so.MovingAverage(7, 50)
    assert so.plan(workload, APPROX, mechanism="fourier").mechanism == "fourier-gaussian"
    assert so.plan(workload, so.PureDP(epsilon=1.0), mechanism="fourier").mechanism == "fourier-laplace"
    for name in ["haar", "tree", "fourier-uniform"]:
        with pytest.raises(so.errors.UnsupportedMechanismError):
            so.plan(workload, APPROX, mechanism=name)
    with pytest.raises(so.errors.UnsupportedMechanismError):
        so.plan(workload, so.PureDP(epsilon=1.0), mechanism="identity-gaussian")
    with pytest.raises(so.errors.UnsupportedMechanismError):
        so.plan(workload, so.PureDP(epsilon=1.0), mechanism="fourier-composed")
    with pytest.raises(so.errors.InvalidParameterError, match="unknown mechanism"):
        so.plan(workload, APPROX, mechanism="magic")


@pytest.mark.parametrize("privacy", [APPROX, so.GaussianDP(mu=0.3), so.ZeroConcentratedDP(rho=0.7)])
@pytest.mark.parametrize("n", [1, 2, 3, 8, 31, 32, 100, 1000])
def test_circular_plans_are_optimal(privacy, n):
    rng = np.random.default_rng(n)
    plan = so.plan(so.Convolution(rng.normal(size=n)), privacy, mechanism="fourier")
    assert abs(plan.fit.ideal_optimality - 1.0) < 1e-9
    assert 1.0 - 1e-9 < plan.optimality <= 1.0 + 2.0 * plan.fit.inflation + 1e-7
    assert plan.fit.inflation < 1e-6 and plan.max_stderr == pytest.approx(plan.rmse)


@pytest.mark.slow
def test_certificates_never_exceed_the_error():
    rng = np.random.default_rng(7)
    for workload in [
        so.RunningSum(50),
        so.RunningSum(700),
        so.MovingAverage(30, 700),
        so.MovingAverage(31, 700, "same"),
        so.ExponentialSmoothing(0.99, 800),
        so.Convolution(rng.normal(size=40), 600, "causal"),
        so.workloads.GroupConvolution(rng.normal(size=(3, 5))),
        so.Marginals([2, 3, 4, 5], sets=[[0, 1], [2, 3], [1]], weights=[1, 2, 3]),
        so.Matrix(rng.normal(size=(6, 9))),
    ]:
        for row in so.compare(workload, APPROX).rows:
            assert row["optimality"] is None or row["optimality"] >= 1.0 - 1e-9, (workload, row)
        for unit in [so.ReplaceOne(2), so.AddRemove(3, per_cell=1), so.UserLevel(4, 2)]:
            plan = so.plan(workload, APPROX, unit=unit, mechanism="identity-gaussian")
            assert plan.optimality >= 1.0 - 1e-9


def test_the_dual_bound_is_close_to_the_singular_values():
    from sordino.accuracy.nuclear_norms import singular_mean

    for workload in [so.RunningSum(400), so.MovingAverage(24, 400), so.ExponentialSmoothing(0.9, 400)]:
        exact, _ = singular_mean(workload)
        longer = so.Convolution(workload.kernel, 600, "causal")
        dual, name = singular_mean(longer)
        assert name.endswith("(dual)")
        A = np.stack([longer.core.row(t) for t in range(600)])
        true = np.linalg.norm(A, "nuc") / 600
        assert 0.8 * true < dual <= true * (1 + 1e-12)
        assert exact > 0


def test_unbiased_bounds():
    rho = 0.5
    plan = so.plan(
        so.workloads.Difference(64, boundary="circular"), so.ZeroConcentratedDP(rho=rho), mechanism="fourier"
    )
    bound = next(b for b in plan.fit.bounds if b.name == "unbiased, zCDP")
    assert math.isclose((plan.rmse / bound.value) ** 2, math.expm1(2 * rho) / (2 * rho), rel_tol=1e-5)
    pure = so.plan(so.Histogram(4), so.PureDP(epsilon=1.0))
    bound = next(b for b in pure.fit.bounds if b.name == "unbiased, pure")
    assert math.isclose(bound.value**2, 1 / (4 * math.sinh(0.5) ** 2)) and pure.rmse > bound.value
    assert pure.fit.bound.name == "least error of a count" and pure.optimality == pytest.approx(1.0, abs=1e-9)
    assert so.plan(so.RunningSum(4), so.PureDP(epsilon=1.0)).fit.bound is None


def test_units_change_the_noise_as_they_must():
    def rmse(unit, mechanism="identity-gaussian"):
        return so.plan(so.Histogram(100), APPROX, unit=unit, mechanism=mechanism).rmse

    one = rmse(so.AddRemove(1))
    assert math.isclose(rmse(so.AddRemove(4)), 4 * one, rel_tol=1e-5)
    assert math.isclose(rmse(so.AddRemove(4, per_cell=1)), 2 * one, rel_tol=1e-5)
    assert math.isclose(rmse(so.ReplaceOne(1)), math.sqrt(2) * one, rel_tol=1e-5)
    assert math.isclose(rmse(so.UserLevel(9)), 3 * one, rel_tol=1e-5)
    # Of discrete Laplace noise the rate is halved.
    assert math.isclose(rmse(so.AddRemove(1), "identity-laplace"), math.sqrt(0.5) / math.sinh(0.5), rel_tol=1e-12)
    assert math.isclose(rmse(so.ReplaceOne(1), "identity-laplace"), math.sqrt(0.5) / math.sinh(0.25), rel_tol=1e-12)


def test_group_privacy_in_one_sentence():
    plan = so.plan(so.Histogram(5), so.PureDP(epsilon=0.5), unit=so.AddRemove(2, label="two visits"))
    assert "0.5-differential privacy" in plan.guarantee() and "two visits" in plan.guarantee()
    assert "1-differential privacy" in plan.guarantee(records=3)
    gaussian = so.plan(so.RunningSum(500), APPROX, mechanism="fourier")
    assert "(1, 1e-06)" in gaussian.guarantee()
    from sordino.privacy.calibration import epsilon_of_mu, gaussian_mu

    assert f"({epsilon_of_mu(3 * gaussian_mu(APPROX), 1e-6):.6g}, 1e-06)" in gaussian.guarantee(records=3)
    concentrated = so.plan(so.RunningSum(500), so.ZeroConcentratedDP(rho=0.1), mechanism="fourier")
    assert "0.9-zero" in concentrated.guarantee(records=3)
    with pytest.raises(so.errors.InvalidParameterError):
        plan.guarantee(records=0)


@pytest.mark.parametrize(
    ("unit", "records", "units"),
    [
        (so.AddRemove(5, per_cell=1), 5, 5),
        (so.AddRemove(5, per_cell=2), 5, 3),
        (so.AddRemove(5), 6, 2),
        (so.UserLevel(4, per_step=2), 3, 2),
        (so.ReplaceOne(2), 3, 2),
    ],
)
def test_group_privacy_counts_records_in_one_cell(unit, records, units):
    """A cap per cell makes the noise smaller, so records of one cell need more units."""
    plan = so.plan(so.Histogram(10), so.GaussianDP(mu=1.0), unit=unit)
    assert f"{units}-Gaussian" in plan.guarantee(records)
    # All in one cell: the mean moves by `records`, which the promise must cover.
    assert records / plan.max_stderr <= units * (1 + 1e-9)


@pytest.mark.slow
@given(st.floats(0.5, 500.0), st.sampled_from([None, 1e-6, 1e-9]), st.sampled_from(["rmse", "max_stderr"]))
def test_privacy_for_meets_its_target_and_hardly_more(target, delta, name):
    workload = so.RunningSum(64)
    privacy = so.privacy_for(workload, delta=delta, **{name: target})
    assert isinstance(privacy, so.PureDP if delta is None else so.ApproxDP)
    plan = so.plan(workload, privacy, objective="mean" if name == "rmse" else "max")
    assert target * (1 - 2e-2) <= getattr(plan, name) <= target


def test_privacy_for_refuses_nonsense():
    workload = so.Histogram(4)
    for arguments in [
        {},
        {"rmse": 1.0, "max_stderr": 1.0},
        {"rmse": -1.0},
        {"rmse": float("nan")},
        {"rmse": 1.0, "delta": 1.5},
        {"rmse": 1e-200},
    ]:
        with pytest.raises(so.errors.InvalidParameterError):
            so.privacy_for(workload, **arguments)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"workload": "histogram"}, so.errors.DataTypeError),
        ({"privacy": 1.0}, so.errors.DataTypeError),
        ({"unit": 1}, so.errors.DataTypeError),
        ({"objective": "median"}, so.errors.InvalidParameterError),
        ({"max_value": 0}, so.errors.InvalidParameterError),
        ({"max_value": 2**60}, so.errors.InvalidParameterError),
        ({"max_value": 1.5}, so.errors.DataTypeError),
        ({"integral": 1}, so.errors.DataTypeError),
        ({"mechanism": 3}, so.errors.DataTypeError),
        ({"workload": so.RunningSum(2**20), "max_value": 2**53, "mechanism": "tree"}, so.errors.InvalidParameterError),
    ],
)
def test_bad_requests_are_refused(arguments, error):
    call = {"workload": so.RunningSum(8), "privacy": so.PureDP(epsilon=1.0), **arguments}
    with pytest.raises(error):
        so.plan(call.pop("workload"), call.pop("privacy"), **call)


@given(
    st.one_of(st.none(), st.integers(), st.floats(), st.text(max_size=4), st.lists(st.floats(), max_size=3)),
    st.one_of(st.none(), st.integers(), st.floats(), st.text(max_size=4)),
    st.one_of(st.none(), st.integers(), st.floats(), st.text(max_size=4)),
)
def test_no_panic_crosses_the_border(a, b, c):
    """Any argument to any public entry: a result, or an error of our own."""
    release = so.plan(so.Histogram(3), so.PureDP(epsilon=1.0)).release([1, 2, 3])
    for entry in [
        lambda: so.Histogram(a),
        lambda: so.MovingAverage(a, b, c),
        lambda: so.Convolution(a, b, c),
        lambda: so.ExponentialSmoothing(a, b, c),
        lambda: so.workloads.PolynomialDecay(a, b),
        lambda: so.workloads.BandPass(a, b, c),
        lambda: so.workloads.Difference(a, b, c),
        lambda: so.RunningSum(a),
        lambda: so.workloads.GroupConvolution(a),
        lambda: so.Marginals([2, 3], k=a),
        lambda: so.Marginals([2, 3], sets=[[a]], weights=[b]),
        lambda: so.Matrix(a, b),
        lambda: so.Matrix([[1.0, 2.0]], weights=a),
        lambda: so.AllRanges(a if not isinstance(a, int) else min(a, 1000)),
        lambda: so.workloads.Union(a, b),
        lambda: so.workloads.Union([so.Histogram(2), a], [b, c]),
        lambda: so.Kronecker([so.Histogram(2), a]),
        lambda: a * so.Histogram(2),
        lambda: (so.Histogram(2) | so.RunningSum(2)).split(a),
        lambda: so.AddRemove(a, b, c),
        lambda: so.ReplaceOne(a, b),
        lambda: so.UserLevel(a, b, c),
        lambda: so.PureDP(epsilon=a),
        lambda: so.ApproxDP(epsilon=a, delta=b),
        lambda: so.plan(so.Histogram(3), so.PureDP(epsilon=1.0), unit=a, mechanism=b, max_value=c),
        lambda: so.plan(so.Histogram(3), so.PureDP(epsilon=1.0)).release(a),
        lambda: release.interval(a),
        lambda: release.answer(a),
        lambda: so.noise.gaussian(a if not isinstance(a, int) else min(a, 100), b),
        lambda: so.noise.laplace(3, a),
        lambda: so.tabulate(a, b, request_id=a),
        lambda: so.Bounds(a, b),
        lambda: so.Plan.load(a if isinstance(a, str) else "missing"),
    ]:
        try:
            entry()
        except so.SordinoError as error:
            assert "panic" not in str(error).lower()
