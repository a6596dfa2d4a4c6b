"""Fawaz, Muthukrishnan & Nikolov, who have no figures and tables: their theorems' errors beside ours."""

import math

import numpy as np

import sordino as so
from papers.result import Result

__all__ = ["PICTURES", "results"]

PICTURES = ()
_PRIVACY = so.ApproxDP(epsilon=1.0, delta=1e-6)


def _theorem(taps: np.ndarray) -> float:
    """Return the mean squared error of formula (3), for a circular filter."""
    return float(4.0 * math.log(1.0 / _PRIVACY.delta) * (np.abs(np.fft.fft(taps)).mean() / _PRIVACY.epsilon) ** 2)


def _filters(n: int) -> dict[str, np.ndarray]:
    window, decay = np.zeros(n), 0.95 ** np.arange(n)
    window[:24] = 1.0 / 24.0
    difference = np.zeros(n)
    difference[:2] = 1.0, -1.0
    return {"moving average of 24": window, "decay 0.95": decay, "difference": difference}


def _circular(n: int) -> list[Result]:
    found = []
    for name, taps in _filters(n).items():
        plan = so.plan(so.Convolution(taps, length=n, boundary="circular"), _PRIVACY, mechanism="fourier-gaussian")
        assert plan.optimality is not None
        found.append(
            Result(
                "Theorem 5, (3)",
                f"mean squared error of the {name}, N = {n:,}, (1, 1e-6)",
                f"{_theorem(taps):.4g}",
                f"{plan.rmse**2:.4g}",
                "Gaussian noise in the real basis, exactly calibrated; real noise on complex coefficients, as printed, is not private",
            )
        )
        found.append(
            Result(
                "Theorem 6",
                f"root mean squared error of the {name} over the least of any Gaussian mechanism",
                "at most logarithms of N and of the rank, times a constant",
                f"{plan.optimality:.3f}",
                "the spectral bound is attained: the optimum is known, not up to logarithms",
            )
        )
    return found


def _running_sums() -> list[Result]:
    found = []
    for bits in (8, 12, 16):
        n = 2**bits
        padded = np.r_[np.ones(n), np.zeros(n)]
        plan = so.plan(so.RunningSum(n), _PRIVACY, mechanism="fourier-gaussian")
        bound = so.plan(so.RunningSum(n), _PRIVACY).fit.bound
        assert bound is not None
        found.append(
            Result(
                "Section 5.1",
                f"mean squared error of running sums, N = {n:,}",
                f"O(1); by formula (3): {_theorem(padded):.4g}",
                f"{plan.rmse**2:.4g}; no Gaussian mechanism is below {bound.value**2:.4g}",
                "the coefficients fall by 1/k, not at once: their sum grows by ln N, the error by ln² N",
            )
        )
    return found


def _windows() -> Result:
    n = 4096
    errors = []
    for width in (4, 32, 256):
        taps = np.zeros(n)
        taps[:width] = 1.0
        errors.append(
            so.plan(so.Convolution(taps, length=n, boundary="circular"), _PRIVACY, mechanism="fourier-gaussian")
        )
    return Result(
        "Related work",
        f"mean squared error of sums over windows of 4, 32, 256, N = {n:,}",
        "constant per query",
        ", ".join(f"{plan.rmse**2:.4g}" for plan in errors),
        "it grows by the squared logarithm of the window",
    )


def results() -> list[Result]:
    return [*_circular(1024), *_running_sums(), _windows()]
