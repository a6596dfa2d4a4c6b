"""Reference values of private convolution: factors, mean squared errors, marginals, to the printed digits.

`factor` is the mean (or largest) squared error over the squared noise multiplier; its values for filters were
computed independently of this code.
"""

import math

import numpy as np
import pytest

import sordino as so
from laplace_noise import of_laplace_noise
from sordino.accuracy.nuclear_norms import singular_mean
from sordino.errors import UnsupportedMechanismError
from sordino.mechanisms.fits import Request
from sordino.mechanisms.linear.catalogue import MECHANISMS
from sordino.mechanisms.linear.fitting import fit_linear as fit
from sordino.privacy.calibration import gaussian_mu

PRIVACY = so.ApproxDP(epsilon=1.0, delta=1e-6)
SIGMA = 1.0 / gaussian_mu(PRIVACY)
# The lattice and rounding of the kernel cost at most this, relatively.
LATTICE = 1e-6


def factor(workload, mechanism="fourier"):
    plan = so.plan(workload, PRIVACY, mechanism=mechanism)
    return (plan.rmse / SIGMA) ** 2, (plan.max_stderr / SIGMA) ** 2


def printed(value, text):
    """Equal to the printed digits: within one unit of the last."""
    digits = text.split("e")[0]
    last = 10.0 ** -(len(digits.split(".")[1]) if "." in digits else 0)
    exponent = 10.0 ** int(text.split("e")[1]) if "e" in text else 1.0
    return abs(value - float(text)) <= last * exponent * 1.001


def kernel(name):
    return {
        "ma24": np.ones(24) / 24,
        "exp.95": 0.95 ** np.arange(256.0),
        "diff": np.array([1.0, -1.0]),
        "prefix": np.ones(256),
    }[name]


@pytest.mark.parametrize(
    ("n", "mean", "largest", "tree", "haar", "svd"),
    [
        (256, "7.0512", "7.5424", "9.624", "8.861", "6.1081"),
        (1024, "9.6635", "10.161", None, None, "8.4657"),
        (4096, None, "13.1688", "18.22", "17.06", "11.2219"),
        (65536, None, "20.3530", "29.50", "27.93", "17.9106"),
    ],
)
def test_running_sum_factors(n, mean, largest, tree, haar, svd):
    workload = so.RunningSum(n)
    got_mean, got_largest = factor(workload)
    assert printed(got_largest, largest)
    if mean:
        assert printed(got_mean, mean)
    assert got_mean < got_largest
    # The ring of 2N: [0.9812 + ln N / pi]^2.
    assert math.isclose(got_largest, (0.9812 + math.log(n) / math.pi) ** 2, rel_tol=1e-4)
    if tree:
        binary = fit(Request(workload, PRIVACY, so.AddRemove(1)), _mechanism("tree-gaussian"), 2)
        assert printed((binary.rmse / SIGMA) ** 2, tree)
        assert printed(factor(workload, "haar")[0], haar)
    assert printed(singular_mean(workload)[0] ** 2, svd)


def test_square_root_of_running_sums():
    """Standard error at step t: sqrt(S_t S_n), S_n the squared norm of the root; S_1024 = 3.272554."""
    plan = so.plan(so.RunningSum(1024), PRIVACY, mechanism="square-root")
    root = np.cumprod(np.append(1.0, (np.arange(1, 1024) - 0.5) / np.arange(1, 1024)))
    sums = np.cumsum(root**2)
    assert math.isclose(sums[-1], 3.272554, abs_tol=5e-7)
    assert np.allclose(plan.fit.answers_stderr / SIGMA, np.sqrt(sums * sums[-1]), rtol=5e-6)
    # Root mean square over the steps.
    assert printed(plan.rmse / SIGMA, "3.1098")


def test_outer_factor_reflects_zeros():
    """h = (1, 2): the mean magnitude is 2.1271; the root of the power series explodes."""
    plan = so.plan(so.Convolution([1.0, 2.0], 256, "causal"), PRIVACY, mechanism="square-root")
    assert printed(plan.max_stderr / SIGMA, "2.1271")


def _mechanism(name):
    return next(m for m in MECHANISMS if m.name == name)


@pytest.mark.parametrize(
    ("name", "mean", "largest", "svd"),
    [
        ("ma24", ".0087604", ".0089851", ".0085481"),
        ("exp.95", "2.69485", "2.71871", "2.67949"),
        ("diff", "1.61932", "1.62112", "1.61753"),
    ],
)
def test_causal_filter_factors(name, mean, largest, svd):
    workload = so.Convolution(kernel(name), 256, "causal")
    got_mean, got_largest = factor(workload)
    assert printed(got_mean, mean) and printed(got_largest, largest)
    assert printed(singular_mean(workload)[0] ** 2, svd)


@pytest.mark.parametrize(
    ("name", "value", "identity"),
    [("ma24", ".0090050", ".041667"), ("exp.95", "2.71871", "10.2564"), ("diff", "1.62114", "2")],
)
def test_circular_filter_factors(name, value, identity):
    n = 4096
    taps = 0.95 ** np.arange(n) if name == "exp.95" else kernel(name)
    taps = np.where(np.abs(taps) < 1e-150, 0.0, taps)
    workload = so.Convolution(taps, n)
    got_mean, got_largest = factor(workload)
    assert printed(got_mean, value) and math.isclose(got_mean, got_largest)
    assert printed(factor(workload, "identity")[0], identity)
    plan = so.plan(workload, PRIVACY, mechanism="fourier")
    assert abs(plan.fit.ideal_optimality - 1.0) < 1e-9
    assert 1.0 - 1e-9 <= plan.optimality <= 1.0 + 2.0 * plan.fit.inflation + 1e-7


def test_closed_forms_of_circular_filters():
    # exp decay a: (2 K(a)/pi)^2; difference: (4/pi)^2.
    from scipy.special import ellipk

    n = 1 << 14
    taps = 0.99 ** np.arange(n)
    taps = np.where(np.abs(taps) < 1e-150, 0.0, taps)
    assert math.isclose(factor(so.Convolution(taps, n))[0], (2 * ellipk(0.99**2) / math.pi) ** 2, rel_tol=1e-5)
    assert math.isclose(factor(so.workloads.Difference(n, boundary="circular"))[0], (4 / math.pi) ** 2, rel_tol=1e-5)


@pytest.mark.parametrize(
    ("name", "n", "independent", "planar", "identity", "output"),
    [
        ("prefix", 256, "1488", "1140", "257", "1.3e5"),
        ("ma24", 256, "2.23", "1.94", ".0833", "2"),
        ("exp.95", 256, "759", "697", "20.5", "800"),
        ("diff", 256, "608", "558", "4", "8"),
        # At position N/4 every odd frequency of the ring of 2N has |cos| + |sin| = sqrt 2: the bound is attained.
        ("prefix", 4096, "2.485e4", "18791", "4097", "3.4e7"),
    ],
)
def test_pure_mean_squared_errors(name, n, independent, planar, identity, output):
    privacy = so.PureDP(epsilon=1.0)
    workload = so.RunningSum(n) if name == "prefix" else so.Convolution(kernel(name), n)
    if name == "exp.95":
        workload = so.ExponentialSmoothing(0.95, n, normalized=False, boundary="circular")
    for mechanism, text in [
        ("fourier", independent),
        ("fourier-planar", planar),
        ("identity", identity),
        ("output", output),
    ]:
        plan = so.plan(workload, privacy, mechanism=mechanism)
        # Floating-point encodes cost up to 1e-4 of noise; the table is for real arithmetic.
        square = (of_laplace_noise(plan) / (1.0 + plan.fit.inflation)) ** 2
        if name == "prefix" and mechanism.startswith("fourier"):
            # The table is read off the ring; least squares on the inputs gains a little at the ends.
            assert 0.98 < square / float(text) < 1.0, (mechanism, square, text)
        else:
            assert printed(square, text), (mechanism, plan.rmse**2, text)


def test_grouped_blocks_beat_planar_and_independent_noise():
    for n, bound in [(256, 863.0), (4096, 13286.0)]:
        privacy = so.PureDP(epsilon=1.0)
        grouped = so.plan(so.RunningSum(n), privacy, mechanism="fourier-grouped").rmse ** 2
        assert grouped < bound * 1.01


@pytest.mark.parametrize(("n", "text"), [(256, "173.2"), (4096, "473.8"), (65536, "1003")])
def test_binary_tree_with_least_squares_under_pure_privacy(n, text):
    request = Request(so.RunningSum(n), so.PureDP(epsilon=1.0), so.AddRemove(1))
    assert printed(of_laplace_noise(fit(request, _mechanism("tree-laplace"), 2)) ** 2, text)


# Columns: epsilon, Fourier mean of max (= ring of 2N), identity, output, tree/LS, Laplace input, Laplace tree/LS.
TABLE = [
    (256, 0.1, 9941, 1.69e5, 3.37e5, 12680, 25700, 17320),
    (256, 1.0, 134.6, 2293, 4569, 171.8, 257, 173.2),
    (256, 5.0, 7.244, 123.4, 245.9, 9.24, 10.28, 6.929),
    (4096, 0.1, 17360, 2.7e6, 5.4e6, 24020, 4.1e5, 47380),
    (4096, 1.0, 235.0, 36560, 73110, 325, 4097, 473.8),
    (4096, 5.0, 12.65, 1968, 3934, 17.5, 163.9, 18.95),
    (65536, 1.0, 363.3, 5.8e5, 1.2e6, 526, 65540, 1003),
]


@pytest.mark.parametrize("row", TABLE)
def test_running_sum_mean_squared_errors(row):
    n, epsilon, fourier, identity, output, tree, laplace, laplace_tree = row
    privacy = so.ApproxDP(epsilon=epsilon, delta=1e-6)
    workload = so.RunningSum(n)
    request = Request(workload, privacy, so.AddRemove(1))
    # Printed with three or four digits.
    assert math.isclose(so.plan(workload, privacy, mechanism="fourier").max_stderr ** 2, fourier, rel_tol=1e-3)
    assert math.isclose(fit(request, _mechanism("identity-gaussian")).rmse ** 2, identity, rel_tol=2e-2)
    assert math.isclose(fit(request, _mechanism("output-gaussian")).rmse ** 2, output, rel_tol=3e-2)
    assert math.isclose(fit(request, _mechanism("tree-gaussian"), 2).rmse ** 2, tree, rel_tol=4e-3)
    assert math.isclose(of_laplace_noise(fit(request, _mechanism("identity-laplace"))) ** 2, laplace, rel_tol=1e-2)
    assert math.isclose(of_laplace_noise(fit(request, _mechanism("tree-laplace"), 2)) ** 2, laplace_tree, rel_tol=4e-3)


@pytest.mark.parametrize(
    ("epsilon", "ma24", "exp95", "diff"),
    [
        (0.1, (11.87, 8.333), (3583, 2051), (2137, 400)),
        (1.0, (0.1607, 0.08333), (48.5, 20.51), (28.9, 4)),
        (5.0, (0.00865, 0.003333), (2.611, 0.8205), (1.557, 0.16)),
    ],
)
def test_short_filters_prefer_laplace_noise_on_the_input(epsilon, ma24, exp95, diff):
    n = 4096
    privacy = so.ApproxDP(epsilon=epsilon, delta=1e-6)
    for workload, (fourier, laplace) in [
        (so.Convolution(np.ones(24) / 24, n), ma24),
        (so.ExponentialSmoothing(0.95, n, normalized=False, boundary="circular"), exp95),
        (so.workloads.Difference(n, boundary="circular"), diff),
    ]:
        assert math.isclose(so.plan(workload, privacy, mechanism="fourier").rmse ** 2, fourier, rel_tol=2e-3)
        cells, chosen = so.plan(workload, privacy, mechanism="identity-laplace"), so.plan(workload, privacy)
        assert math.isclose(of_laplace_noise(cells) ** 2, laplace, rel_tol=1e-3)
        # Sums beside the cells lower it where taps overlap.
        assert chosen.mechanism in {"identity-laplace", "p-identity-laplace"} and chosen.optimality is None
        assert chosen.rmse <= cells.rmse


MARGINALS = [
    (5, 2, "3.353", 4, 10, 8, 101.4, 128, 200, 16),
    (10, 1, "4.331", 5.5, 10, 512, 89.8, 121, 200, 1024),
    (10, 2, "9.273", 14, 45, 256, 926.8, 1568, 4050, 512),
    (10, 3, "13.19", 22, 120, 128, 3970, 7744, 28800, 256),
    (15, 2, "17.48", 30.25, 105, 8192, 3695, 7320, 22050, 16384),
    (15, 3, "34.20", 72, 455, 4096, 32220, 82940, 4.1e5, 8192),
    (20, 2, "27.85", 52.75, 190, 2.6e5, 10170, 22260, 72200, 5.2e5),
    (20, 3, "68.86", 168.9, 1140, 1.3e5, 1.49e5, 4.56e5, 2.6e6, 2.6e5),
]


@pytest.mark.parametrize("row", MARGINALS)
def test_marginals_table(row):
    d, k, optimal, uniform, direct, identity, pure, barak, pure_direct, pure_identity = row
    workload = so.Marginals([2] * d, k=k)
    plan = so.plan(workload, PRIVACY, mechanism="fourier")
    assert printed((plan.rmse / SIGMA) ** 2, optimal)
    # Every cell has the same error, and it is the optimum.
    assert math.isclose(plan.max_stderr, plan.rmse, rel_tol=1e-9)
    assert abs(plan.fit.ideal_optimality - 1.0) < 1e-6 and plan.optimality >= 1.0 - 1e-9
    closed = sum(math.comb(d, j) * math.sqrt(math.comb(d - j, k - j)) for j in range(k + 1))
    assert math.isclose((plan.rmse / SIGMA) ** 2, closed**2 / 4**k / math.comb(d, k), rel_tol=LATTICE)
    for name, value in [("fourier-uniform", uniform), ("output", direct), ("identity", identity)]:
        assert math.isclose(factor(workload, name)[0], value, rel_tol=2e-2), name
    only = so.PureDP(epsilon=1.0)
    for name, value in [
        ("fourier", pure),
        ("fourier-uniform", barak),
        ("output", pure_direct),
        ("identity", pure_identity),
    ]:
        assert math.isclose(of_laplace_noise(so.plan(workload, only, mechanism=name)) ** 2, value, rel_tol=2e-2), name


def test_replacement_sensitivity_of_marginals():
    for d, k, ratio in [(10, 2, 2.056), (20, 3, 2.501)]:
        workload = so.Marginals([2] * d, k=k)
        one = so.plan(workload, PRIVACY, mechanism="fourier").fit.sensitivity["ideal"]
        replace = so.plan(workload, PRIVACY, mechanism="fourier", unit=so.ReplaceOne(1)).fit.sensitivity["ideal"]
        assert math.isclose((replace / one) ** 2, ratio, rel_tol=1e-3)


@pytest.mark.parametrize(
    ("workload", "ratio"),
    [
        (so.RunningSum(256), 2.808),
        (so.RunningSum(4096), 3.098),
        (so.Convolution(np.ones(24) / 24, 256), 2.366),
        (so.ExponentialSmoothing(0.95, 256, boundary="circular"), 2.000),
        (so.workloads.Difference(256, boundary="circular"), 2.667),
    ],
)
def test_replacement_sensitivity_of_filters(workload, ratio):
    one = so.plan(workload, PRIVACY, mechanism="fourier").fit.sensitivity["ideal"]
    replace = so.plan(workload, PRIVACY, mechanism="fourier", unit=so.ReplaceOne(1)).fit.sensitivity["ideal"]
    assert math.isclose((replace / one) ** 2, ratio, rel_tol=1e-3)


def test_mixed_radix_marginals_meet_their_bound():
    for levels, k in [((2, 3, 4), 1), ((2, 3, 4), 2), ((3, 3, 5), 1), ((3, 3, 5), 2)]:
        plan = so.plan(so.Marginals(levels, k=k), PRIVACY, mechanism="fourier")
        assert abs(plan.fit.ideal_optimality - 1.0) < 1e-6
    weighted = so.Marginals([2, 3, 4], sets=[[0], [1, 2], [0, 2]], weights=[1.0, 5.0, 0.2])
    assert abs(so.plan(weighted, PRIVACY, mechanism="fourier").fit.ideal_optimality - 1.0) < 1e-6


def test_composed_laplace_noise():
    """kappa of Laplace noise calibrated by composition: mse = kappa (mean |lambda|)^2."""
    workload = so.workloads.Difference(256, boundary="circular")
    plan = so.plan(workload, PRIVACY, mechanism="fourier-composed")
    mean = float(np.mean(so.optimal.spectrum(workload).magnitudes))
    # 34.75 is the worst of a few positions; all positions are covered here.
    assert 34.70 <= plan.rmse**2 / mean**2 <= 34.95
    assert isinstance(plan.cost, so.privacy.ApproxCost)


def test_compressible_spectra():
    report = so.optimal.spectrum(so.RunningSum(1024))
    assert report.exponent is None or report.compressible_bound >= report.factor
    smooth = so.Convolution(np.exp(-0.5 * (np.arange(64) - 32.0) ** 2 / 36.0), 256)
    report = so.optimal.spectrum(smooth)
    assert report.exponent > 1.0 and report.compressible_bound >= report.factor
    ranks = np.arange(1, len(report.magnitudes) + 1)
    assert (report.magnitudes <= report.constant * ranks**-report.exponent * (1 + 1e-12)).all()


@pytest.mark.parametrize(("steps", "kernel"), [(1500, [1, -4, 6, -4, 1]), (200, [1, -8, 28, -56, 70, -56, 28, -8, 1])])
def test_roots_whose_inverses_grow_are_refused(steps, kernel):
    """Answers were off by a thousand standard errors."""
    workload = so.Convolution([float(tap) for tap in kernel], steps, "causal")
    with pytest.raises(UnsupportedMechanismError, match="double precision"):
        so.plan(workload, PRIVACY, mechanism="square-root")
    assert so.plan(workload, PRIVACY).mechanism != "square-root-gaussian"
