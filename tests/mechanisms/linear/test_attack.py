"""The literal Algorithm 1 of the paper publishes half of the input exactly; the mechanism built here does not."""

import numpy as np

import sordino as so


def literal(x, h, epsilon, delta, rng):
    """Real Laplace noise on complex coefficients, as printed."""
    n = len(x)
    hat = np.fft.fft(h) / np.sqrt(n)
    gamma = 2 * np.log(1 / delta) * np.abs(hat).sum() / (epsilon**2 * n)
    noise = rng.laplace(scale=np.sqrt(gamma / np.abs(hat)))
    return np.fft.ifft(np.sqrt(n) * hat * (np.fft.fft(x) / np.sqrt(n) + noise)) * np.sqrt(n)


def antisymmetric(answers, h):
    """What the attacker recovers: (x_j - x_-j)/2 from the imaginary part of the coefficients."""
    n = len(h)
    coefficients = np.fft.fft(answers) / np.fft.fft(h)
    return np.fft.ifft(1j * coefficients.imag).real[:n]


def test_the_literal_algorithm_leaks_and_ours_does_not(known_noise):
    rng = np.random.default_rng(5)
    n = 64
    x = rng.integers(0, 1000, n)
    h = 0.7 ** np.arange(n)
    truth = (x - x[-np.arange(n) % n]) / 2
    leaked = antisymmetric(literal(x, h, 0.1, 1e-6, rng), h)
    assert np.abs(leaked - truth).max() < 1e-8
    plan = so.plan(so.Convolution(h), so.ApproxDP(epsilon=0.1, delta=1e-6), mechanism="fourier")
    ours = antisymmetric(plan.release(x).values, h)
    # The attacker sees noise of the size of the mechanism's own on every entry.
    assert np.abs(ours - truth).mean() > 5.0
