"""Calibration: the safe side proved with mpmath, reference values, monotonicity, dp_accounting."""

import math
import time
from fractions import Fraction

import dp_accounting
import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given
from hypothesis import strategies as st

from sordino._support.normal_tails import log_gaussian_delta
from sordino.errors import (
    DataTypeError,
    InvalidParameterError,
    PlanFileError,
    ShapeError,
    UnsupportedCostError,
    UnsupportedMechanismError,
)
from sordino.privacy.calibration import (
    Noise,
    cost,
    delta_of_mu,
    epsilon_of_mu,
    gaussian_mu,
    laplace_composition_ratio,
    mu_of_pure,
    noise_ratio,
    pure_epsilon,
    pure_of_mu,
    rho_of_pure,
)
from sordino.privacy.costs import ApproxCost, Cost, GaussianCost, PureCost, cost_from_json
from sordino.privacy.guarantees import ApproxDP, GaussianDP, Privacy, PureDP, ZeroConcentratedDP
from sordino.privacy.laplace_composition import laplace_composition_delta

EPSILONS = [1e-9, 1e-4, 0.1, 1.0, 5.0, 40.0, 1e3]
DELTAS = [1e-300, 1e-50, 1e-12, 1e-6, 0.1, 0.9]


def exact_delta(epsilon: float, mu: float) -> mpmath.mpf:
    epsilon, mu = mpmath.mpf(epsilon), mpmath.mpf(mu)
    high, low = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
    return mpmath.ncdf(high) - mpmath.exp(epsilon) * mpmath.ncdf(low)


# Balle-Wang standard deviation over sensitivity at delta = 1e-6, computed independently to eight digits.
@pytest.mark.parametrize(("epsilon", "ratio"), [(0.1, 36.304690), (1.0, 4.2246789), (5.0, 0.98004900)])
def test_reference_noise_ratios(epsilon: float, ratio: float) -> None:
    privacy = ApproxDP(epsilon=epsilon, delta=1e-6)
    assert noise_ratio(privacy, "gaussian") == pytest.approx(ratio, rel=2e-8)


@pytest.mark.parametrize(("epsilon", "variance"), [(0.1, 1318.0305), (1.0, 17.847912), (5.0, 0.96049600)])
def test_reference_variances(epsilon: float, variance: float) -> None:
    assert noise_ratio(ApproxDP(epsilon=epsilon, delta=1e-6), "gaussian") ** 2 == pytest.approx(variance, rel=1e-7)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_gaussian_mu_is_safe_and_tight(epsilon: float, delta: float) -> None:
    mu = gaussian_mu(ApproxDP(epsilon=epsilon, delta=delta))
    with mpmath.workdps(70):
        assert exact_delta(epsilon, mu) <= delta
        assert exact_delta(epsilon, mu * (1.0 + 1e-10)) > delta
    assert log_gaussian_delta(epsilon, mu).upper <= math.log(delta)


def test_gaussian_mu_takes_under_a_millisecond() -> None:
    privacy = ApproxDP(epsilon=0.7, delta=1e-8)
    best = math.inf
    for _ in range(20):
        start = time.perf_counter()
        gaussian_mu(privacy)
        best = min(best, time.perf_counter() - start)
    assert best < 1e-3


@given(epsilon=st.floats(1e-12, 1e6), log_delta=st.floats(-700.0, -1e-3), step=st.floats(1.0 + 1e-6, 10.0))
def test_gaussian_mu_is_monotone(epsilon: float, log_delta: float, step: float) -> None:
    delta = math.exp(log_delta)
    mu = gaussian_mu(ApproxDP(epsilon=epsilon, delta=delta))
    assert 0.0 < mu < math.inf
    # Up to the 1e-12 or so by which the safe side differs from the optimum.
    least = mu * (1.0 - 1e-11)
    if epsilon * step <= 1e6:
        assert gaussian_mu(ApproxDP(epsilon=epsilon * step, delta=delta)) >= least
    if delta * step < 1.0:
        assert gaussian_mu(ApproxDP(epsilon=epsilon, delta=delta * step)) >= least


@given(rho=st.floats(1e-12, 1e6))
def test_concentrated_parameters_are_exact_lower_bounds(rho: float) -> None:
    privacy = ZeroConcentratedDP(rho=rho)
    mu = gaussian_mu(privacy)
    assert Fraction(mu) ** 2 <= 2 * Fraction(rho) < Fraction(mu * (1.0 + 1e-15)) ** 2
    epsilon = pure_epsilon(privacy)
    assert epsilon >= mu and rho_of_pure(epsilon) <= Fraction(rho) < rho_of_pure(epsilon * (1.0 + 1e-13))
    assert Fraction(noise_ratio(privacy, "gaussian")) * Fraction(mu) >= 1


def test_the_other_guarantees() -> None:
    assert gaussian_mu(GaussianDP(mu=0.3)) == 0.3
    assert pure_epsilon(PureDP(epsilon=0.3)) == 0.3
    assert pure_epsilon(ApproxDP(epsilon=0.3, delta=1e-6)) == 0.3
    with pytest.raises(UnsupportedMechanismError, match="pure"):
        gaussian_mu(PureDP(epsilon=1.0))


def test_laplace_for_epsilon_one_on_one_count_has_variance_two() -> None:
    ratio = noise_ratio(PureDP(epsilon=1.0), "laplace")
    assert 2.0 * ratio**2 == 2.0
    assert noise_ratio(PureDP(epsilon=1.0), "block") == ratio
    with pytest.raises(InvalidParameterError, match="noise"):
        noise_ratio(PureDP(epsilon=1.0), "uniform")  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", [1e-12, 1e-5, 0.01, 0.5, 1.0, 3.0, 20.0, 700.0, 1e4, 1e6])
def test_pure_and_gaussian_parameters_are_inverse_and_safe(epsilon: float) -> None:
    mu = mu_of_pure(epsilon)
    with mpmath.workdps(60):
        half = mpmath.mpf(mu) / 2
        reached = mpmath.log(mpmath.ncdf(half) / (mpmath.erfc(half / mpmath.sqrt(2)) / 2))
        assert epsilon <= reached <= epsilon * (1 + mpmath.mpf(10) ** -11)
    back = pure_of_mu(mu)
    assert mu_of_pure(back) <= mu
    assert back <= epsilon
    assert back == pytest.approx(epsilon, rel=1e-11)


def test_pure_implies_gaussian_on_the_whole_privacy_curve() -> None:
    # The privacy curve of randomized response lies below that of the GDP that it implies.
    for epsilon in (0.1, 1.0, 4.0):
        mu = mu_of_pure(epsilon)
        truth = 1.0 / (1.0 + math.exp(-epsilon))
        for other in np.linspace(0.0, epsilon, 41):
            assert truth - math.exp(other) * (1.0 - truth) <= delta_of_mu(mu, float(other)) + 1e-14


@given(mu=st.floats(1e-6, 50.0), log_delta=st.floats(-600.0, -0.01))
def test_epsilon_of_mu_is_safe_and_tight(mu: float, log_delta: float) -> None:
    delta = math.exp(log_delta)
    epsilon = epsilon_of_mu(mu, delta)
    if epsilon == 0.0:
        assert delta_of_mu(mu, 0.0) <= delta * (1.0 + 1e-14)
        return
    assert log_gaussian_delta(epsilon, mu).upper <= math.log(delta) * (1.0 - 1e-15)
    # A tenth of the last digits of delta back, the curve is above the target again.
    assert log_gaussian_delta(epsilon * (1.0 - 1e-9), mu).value > math.log(delta) - 1e-9 or epsilon < 1e-9


@given(epsilon=st.floats(1e-3, 100.0), log_delta=st.floats(-600.0, -0.7))
def test_epsilon_of_mu_inverts_gaussian_mu(epsilon: float, log_delta: float) -> None:
    delta = math.exp(log_delta)
    mu = gaussian_mu(ApproxDP(epsilon=epsilon, delta=delta))
    assert epsilon_of_mu(mu, delta) == pytest.approx(epsilon, rel=1e-8)
    assert delta_of_mu(mu, epsilon) <= delta * (1.0 + 1e-12)


def test_delta_of_mu_is_never_zero_and_at_most_one() -> None:
    assert delta_of_mu(1e-3, 1e3) > 0.0
    assert delta_of_mu(1e3, 0.0) == 1.0


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_agrees_with_dp_accounting(epsilon: float) -> None:
    ratio = noise_ratio(ApproxDP(epsilon=epsilon, delta=1e-6), "gaussian")
    pessimistic = privacy_loss_distribution.from_gaussian_mechanism(ratio, value_discretization_interval=1e-4)
    assert pessimistic.get_delta_for_epsilon(epsilon) == pytest.approx(1e-6, rel=2e-3)


EVENTS: list[tuple[Privacy, Noise, Cost]] = [
    (PureDP(epsilon=0.5), "laplace", PureCost(0.5)),
    (ApproxDP(epsilon=0.5, delta=1e-6), "block", PureCost(0.5)),
    (ZeroConcentratedDP(rho=0.1), "gaussian", GaussianCost(rho=0.1)),
    (GaussianDP(mu=0.7), "gaussian", GaussianCost(mu=0.7)),
]


@pytest.mark.parametrize(("privacy", "noise", "expected"), EVENTS)
def test_events(privacy: Privacy, noise: Noise, expected: Cost) -> None:
    assert cost(privacy, noise) == expected
    assert cost_from_json(expected.to_json()) == expected


def test_event_fields() -> None:
    assert GaussianCost(rho=0.1).mu_squared == 2 * Fraction(0.1)
    assert GaussianCost(mu=0.1).mu_squared == Fraction(0.1) ** 2
    for gaussian in (GaussianCost(rho=0.1), GaussianCost(mu=0.1), GaussianCost(mu=3.0)):
        multiplier = Fraction(gaussian.noise_multiplier)
        assert (
            multiplier**2 * gaussian.mu_squared
            <= 1
            < (multiplier * (1 + Fraction(1, 10**15))) ** 2 * gaussian.mu_squared
        )
    with pytest.raises(InvalidParameterError, match="exactly one"):
        GaussianCost()
    with pytest.raises(InvalidParameterError, match="exactly one"):
        GaussianCost(mu=1.0, rho=0.5)
    with pytest.raises(PlanFileError):
        cost_from_json({"kind": "gaussian", "mu": -1.0})
    assert cost_from_json(ApproxCost(1.0, 1e-6).to_json()) == ApproxCost(1.0, 1e-6)


def test_conversion_to_dp_accounting() -> None:
    assert GaussianCost(mu=0.5).to_dp_event() == dp_accounting.GaussianDpEvent(2.0)
    accountant = dp_accounting.pld.PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_ONE)
    accountant.compose(PureCost(1.0).to_dp_event())
    accountant.compose(PureCost(0.5).to_dp_event())
    assert accountant.get_epsilon(0.0) == pytest.approx(1.5, abs=1e-3)
    with pytest.raises(UnsupportedCostError):
        ApproxCost(1.0, 1e-6).to_dp_event()


def composed_delta(losses: list[float], epsilon: float) -> float:
    """delta of a composition of Laplace mechanisms by dp_accounting, pessimistic.

    The grid has the atoms of the loss distributions on it; off the grid dp_accounting is visibly pessimistic.
    """
    interval = min(losses) / round(min(losses) / 1e-4)
    composed = privacy_loss_distribution.identity(value_discretization_interval=interval)
    for loss in losses:
        composed = composed.compose(
            privacy_loss_distribution.from_laplace_mechanism(1.0 / loss, value_discretization_interval=interval)
        )
    return float(composed.get_delta_for_epsilon(epsilon))


@pytest.mark.slow
@pytest.mark.parametrize(
    "row", [[1.0, 1.0], [1.0, 0.1], [1.0, 0.5, 0.25, 0.125], [1.0] * 12, [3.0] + [0.3] * 20], ids=len
)
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.3, 1e-3), (5.0, 1e-9), (1.0, 0.2)])
def test_composition_agrees_with_dp_accounting(row: list[float], epsilon: float, delta: float) -> None:
    ratio = laplace_composition_ratio([row], ApproxDP(epsilon=epsilon, delta=delta))
    # dp_accounting errs upward too.
    assert composed_delta([shift / ratio for shift in row], epsilon) <= delta * 1.01 + 2e-14
    smaller = ratio / 1.001
    assert composed_delta([shift / smaller for shift in row], epsilon) > delta


@pytest.mark.parametrize("loss", [0.5, 1.5, 4.0])
def test_composition_of_one_mechanism_is_the_closed_form(loss: float) -> None:
    epsilon = 0.75 * loss
    exact = -math.expm1(0.5 * (epsilon - loss))
    bound = laplace_composition_delta([[loss]], 1.0, epsilon)
    assert exact <= bound <= exact * 1.01
    assert laplace_composition_delta([[loss]], 1.0, loss * 1.0001) == 0.0


def fourier_columns(modulus: np.ndarray) -> np.ndarray:
    """Shifts of the real orthonormal Fourier basis with weights sqrt(modulus[k]); shape (N, N)."""
    length = 2 * (len(modulus) - 1)
    position = np.arange(length)
    weight = np.sqrt(modulus)
    columns = [
        np.full(length, weight[0] / math.sqrt(length)),
        np.full(length, weight[-1] / math.sqrt(length)),
    ]
    for k in range(1, length // 2):
        angle = 2.0 * np.pi * k * position / length
        columns += [weight[k] * math.sqrt(2.0 / length) * np.abs(wave) for wave in (np.cos(angle), np.sin(angle))]
    return np.stack(columns, axis=1)


def spectrum(kernel: np.ndarray) -> np.ndarray:
    return np.abs(np.fft.rfft(kernel))


# kappa = 2 t**2/(squared column norm); from an independent numerical inversion over a few positions.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "kappa"),
    [
        (np.repeat([1.0, 0.0], 256), 30.01),
        (np.r_[np.ones(24), np.zeros(232)], 32.95),
        (0.95 ** np.arange(256), 33.49),
        (np.r_[1.0, -1.0, np.zeros(254)], 34.75),
    ],
    ids=["running sum", "moving average", "decay", "difference"],
)
def test_fourier_basis_with_laplace_noise(kernel: np.ndarray, kappa: float) -> None:
    columns = fourier_columns(spectrum(kernel))
    ratio = laplace_composition_ratio(columns, ApproxDP(epsilon=1.0, delta=1e-6))
    assert 2.0 * ratio**2 / (columns**2).sum(axis=1).max() == pytest.approx(kappa, rel=3e-3)


def test_many_equal_small_shifts_approach_the_gaussian_limit() -> None:
    privacy = ApproxDP(epsilon=1.0, delta=1e-6)
    ratio = laplace_composition_ratio(np.ones((1, 4096)), privacy)
    # sum (1/t)**2 -> mu**2 from below, as the loss distribution tends to a normal one.
    assert math.sqrt(4096) / ratio == pytest.approx(gaussian_mu(privacy), rel=0.02)


def test_composition_scales_and_takes_the_worst_row() -> None:
    privacy = ApproxDP(epsilon=1.0, delta=1e-6)
    one = laplace_composition_ratio([[1.0, 1.0, 0.0]], privacy)
    both = laplace_composition_ratio([[0.0, 0.0, 0.5], [1.0, 0.0, 1.0], [0.0, 0.0, 0.0]], privacy)
    assert both == pytest.approx(one, rel=1e-3)
    assert laplace_composition_ratio(np.array([[1e9, 1e9]]), privacy) == pytest.approx(1e9 * one, rel=1e-3)
    assert laplace_composition_ratio([[1e-200, 1e-200]], privacy) == pytest.approx(1e-200 * one, rel=1e-3)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ([1.0], ShapeError),
        (np.zeros((0, 3)), ShapeError),
        ([[0.0, 0.0]], InvalidParameterError),
        ([[-1.0]], InvalidParameterError),
        ([[math.inf]], InvalidParameterError),
        ([["a"]], DataTypeError),
        ([[True]], DataTypeError),
    ],
)
def test_composition_refuses(columns: object, expected: type[Exception]) -> None:
    with pytest.raises(expected):
        laplace_composition_ratio(columns, ApproxDP(epsilon=1.0, delta=1e-6))  # type: ignore[arg-type]


@pytest.mark.slow
def test_composition_on_a_long_transform() -> None:
    columns = fourier_columns(spectrum(np.repeat([1.0, 0.0], 1024)))
    ratio = laplace_composition_ratio(columns, ApproxDP(epsilon=1.0, delta=1e-6))
    assert 30.0 < 2.0 * ratio**2 / (columns**2).sum(axis=1).max() < 2.0 * 17.848
