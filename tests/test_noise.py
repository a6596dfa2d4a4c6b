"""The sampler for research."""

import numpy as np
import pytest

import sordino as so


@pytest.mark.statistical
def test_moments(known_noise):
    """Means and variances of 10^6 draws at 6 standard errors (known key)."""
    n = 1_000_000
    g = so.noise.gaussian(n, 1000.0) / 1000.0
    assert abs(g.mean()) < 6 / np.sqrt(n) and abs(g.var() - 1) < 6 * np.sqrt(2 / n)
    z = so.noise.laplace(n, 1000.0) / 1000.0
    assert abs(z.mean()) < 6 * np.sqrt(2 / n) and abs(z.var() - 2) < 6 * np.sqrt(20 / n)
    assert g.dtype == np.float64 and so.noise.gaussian(3, 1.0).dtype == np.int64
    assert so.noise.gaussian(0, 1.0).shape == (0,)


def test_fresh_by_default_and_known_under_a_key(known_noise):
    assert np.array_equal(so.noise.gaussian(50, 2.0**40), so.noise.gaussian(50, 2.0**40))


def test_never_the_same_twice():
    assert not np.array_equal(so.noise.gaussian(50, 2.0**40), so.noise.gaussian(50, 2.0**40))


@pytest.mark.parametrize("size", [0.0, -1.0, 0.3, float("nan"), float("inf"), 2.0**47, "x", True, None])
def test_sizes_out_of_range(size):
    for draw in (so.noise.gaussian, so.noise.laplace):
        with pytest.raises(so.SordinoError):
            draw(3, size)


def test_counts_out_of_range():
    for count in (-1, 1.5, "x"):
        with pytest.raises(so.SordinoError):
            so.noise.gaussian(count, 1.0)
