"""An attack on summaries of points: the literal Laplace mechanism spends more than its epsilon, an exact one does not.

The attacker knows all points but one, which is `x` or `x'`. She fixes an event beforehand, that the output speaks for
`x` by more than `epsilon`, and counts how often it happens with `x` and with `x'`. Epsilon-privacy allows a ratio of
`exp(epsilon)` of the two probabilities, for every event.
"""

import math

import numpy as np
import pytest
import scipy.stats

import smooth_oracles as oracles

ALPHA = 1e-6
"""Probability that an epsilon-private mechanism is accused."""
DRAWS = 1_000_000
N = 20


def measured_epsilon(draw, log_ratio, epsilon, draws, alpha):
    """A lower bound of the epsilon of a mechanism, wrong with probability at most `alpha`.

    Both probabilities of the event are bounded by Clopper and Pearson, at `alpha / 2` each. The bound holds whatever
    `log_ratio` is; a wrong one only makes a poor attack.

    Args:
        draw: From whether the point is `x'`, and a number, to that many independent outputs.
        log_ratio: From outputs to the logarithms of their densities with `x` over those with `x'`.
        epsilon: The event is a log-ratio of `epsilon` or more.
        draws: Outputs for each of the two.
        alpha: Of the bound.
    """
    # Where the ratio is bounded by epsilon, it is often equal to it: rounding must not decide what is counted.
    threshold = epsilon * (1 - 1e-9)
    hits, alarms = (int((log_ratio(draw(other, draws)) >= threshold).sum()) for other in (False, True))
    if hits == 0:
        return -math.inf
    least = scipy.stats.beta.ppf(alpha / 2, hits, draws - hits + 1)
    most = scipy.stats.beta.isf(alpha / 2, alarms + 1, draws - alarms) if alarms < draws else 1.0
    return math.log(least / most)


def measured_epsilon_exceeds(draw, log_ratio, epsilon, draws, alpha):
    """Whether the mechanism is not epsilon-private; wrong with probability at most `alpha` if it is."""
    return measured_epsilon(draw, log_ratio, epsilon, draws, alpha) > epsilon


def laplace_summary(x, other, index_set, scale, seed=1):
    """The attack on means of monomials with Laplace noise of one scale: `draw` and `log_ratio`."""
    rng = np.random.default_rng(seed)
    known = np.random.default_rng(0).uniform(-1, 1, (N - 1, len(x)))
    means = [oracles.exact_sums(np.vstack([known, point]), index_set) / N for point in (x, other)]

    def draw(of_other, count):
        return means[of_other] + rng.laplace(scale=scale, size=(count, len(index_set)))

    def log_ratio(outputs):
        return (np.abs(outputs - means[1]) - np.abs(outputs - means[0])).sum(axis=1) / scale

    return draw, log_ratio


def flipped(t):
    """One dimension, `t` monomials: the corner, and what is farthest from it."""
    return np.ones(1), np.cos([oracles.kappa(t)[1]]), oracles.tensor_set(1, t)


def opposite(d):
    """Monomials `1, x_1, ..., x_d`: opposite corners."""
    return np.ones(d), -np.ones(d), oracles.graded_set(d, d + 1)


# The name, the points and monomials, epsilon, and the exact sensitivity over the number of monomials.
CASES = [
    pytest.param(flipped(3), 3.0, 25 / 24, id="three-monomials"),
    pytest.param(opposite(5), 3.0, 10 / 6, id="low-degree"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("points", "epsilon", "ratio"), CASES)
def test_the_points_are_the_worst(points, epsilon, ratio):
    x, other, index_set = points
    phi = oracles.monomials(np.stack([x, other]), index_set)
    assert np.abs(phi[0] - phi[1]).sum() == pytest.approx(ratio * len(index_set), rel=1e-9)
    assert oracles.searched_sensitivity(index_set, 1) == pytest.approx(ratio * len(index_set), rel=1e-7)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(("points", "epsilon", "ratio"), CASES)
def test_the_literal_mechanism_spends_more_than_its_epsilon(points, epsilon, ratio):
    attack = laplace_summary(*points, len(points[2]) / (N * epsilon))
    assert measured_epsilon_exceeds(*attack, epsilon, DRAWS, ALPHA)
    # And what it really spends is not exceeded, even where it is spent.
    assert not measured_epsilon_exceeds(*attack, ratio * epsilon, DRAWS, ALPHA)


@pytest.mark.statistical
@pytest.mark.parametrize(("points", "epsilon", "ratio"), CASES)
def test_the_exact_sensitivity_withstands_the_attack_narrowly(points, epsilon, ratio):
    attack = laplace_summary(*points, ratio * len(points[2]) / (N * epsilon))
    measured = measured_epsilon(*attack, epsilon, DRAWS, ALPHA)
    # The attack is as good as it can be: with a little less noise it would have succeeded.
    assert 0.93 * epsilon < measured <= epsilon


@pytest.mark.statistical
def test_the_attack_knows_the_epsilon_of_randomized_response():
    """Known answer: a bit, flipped with probability `1 / (1 + e^2)`, is 2-private and no better."""
    rng = np.random.default_rng(1)

    def draw(of_other, count):
        return of_other ^ (rng.random(count) < 1 / (1 + math.exp(2)))

    def log_ratio(bits):
        return np.where(bits, -2.0, 2.0)

    assert 1.95 < measured_epsilon(draw, log_ratio, 2.0, 100_000, ALPHA) <= 2
    assert not measured_epsilon_exceeds(draw, log_ratio, 2.0, 100_000, ALPHA)
    # Nothing is counted that cannot happen.
    assert measured_epsilon(draw, log_ratio, 2.1, 1000, ALPHA) == -math.inf
