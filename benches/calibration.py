"""From a guarantee to noise: time of `gaussian_mu` against searches of OpenDP, dp-accounting and plain Python.

Every contestant answers the same question: the Gaussian noise of sensitivity 1 for (epsilon, delta). Answers
differ: how much more noise the others add is given beside their time.

Run `python benches/calibration.py`.
"""

import math
from collections.abc import Callable
from functools import partial

import dp_accounting
import numpy as np
import opendp.prelude as dp
from harness import Row, amount, in_process, main, noted, quick, race, versus

import sordino as so
from sordino.privacy.calibration import gaussian_mu, laplace_composition_ratio

_TARGETS = ((1.0, 1e-6), (0.1, 1e-9)) if quick() else ((1.0, 1e-6), (0.1, 1e-9), (8.0, 1e-5))


def _opendp(epsilon: float, delta: float) -> float:
    """Return the noise by the search that OpenDP's documentation recommends."""
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)

    def measurement(scale: float) -> dp.Measurement:
        curve = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=scale))
        return dp.c.make_fix_delta(curve, delta)

    return float(dp.binary_search_param(measurement, d_in=1.0, d_out=(epsilon, delta)))


def _accounting(kind: type[dp_accounting.PrivacyAccountant], epsilon: float, delta: float) -> float:
    """Return the noise by dp-accounting's calibration."""
    return float(dp_accounting.calibrate_dp_mechanism(kind, dp_accounting.GaussianDpEvent, epsilon, delta, tol=1e-6))


def _in_plain_python(epsilon: float, delta: float) -> float:
    """Return the noise by bisection on the exact curve of Balle and Wang (2018); rounded to neither side."""

    def below(z: float) -> float:
        return 0.5 * math.erfc(-z / math.sqrt(2.0))

    least, most = 1e-3, 1e3
    while most > least * (1.0 + 1e-12):
        noise = math.sqrt(least * most)
        needed = below(0.5 / noise - epsilon * noise) - math.exp(epsilon) * below(-0.5 / noise - epsilon * noise)
        least, most = (noise, most) if needed > delta else (least, noise)
    return most


def _gaussian() -> list[Row]:
    dp.enable_features("contrib")
    peers: dict[str, Callable[[float, float], float]] = {
        "OpenDP binary_search_param over make_gaussian, zCDP to (ε, δ)": _opendp,
        "dp-accounting calibrate_dp_mechanism, PLD": partial(_accounting, dp_accounting.pld.PLDAccountant),
        "dp-accounting calibrate_dp_mechanism, RDP": partial(_accounting, dp_accounting.rdp.RdpAccountant),
        "plain Python: bisection, math.erfc, not rounded up": _in_plain_python,
    }
    rows = []
    for epsilon, delta in _TARGETS:
        privacy = so.ApproxDP(epsilon=epsilon, delta=delta)
        noise = 1.0 / gaussian_mu(privacy)
        assert abs(_in_plain_python(epsilon, delta) / noise - 1.0) < 1e-8
        times = race(
            {
                "ours": partial(gaussian_mu, privacy),
                **{name: partial(peer, epsilon, delta) for name, peer in peers.items()},
            },
            7,
        )
        for name, peer in peers.items():
            more = peer(epsilon, delta) / noise - 1.0
            rows.append(
                versus(
                    f"gaussian_mu, (ε, δ) = ({epsilon:g}, {delta:g})",
                    times["ours"],
                    f"{name} (noise {more:+.2%})",
                    times[name],
                    goal=0.01 if peer is _opendp else None,
                )
            )
    return rows


def _composition() -> list[Row]:
    rows = []
    for length in (16,) if quick() else (16, 64, 256):
        taps = np.abs(np.fft.rfft(np.ones(length // 4), length))
        one = np.repeat(np.sqrt(taps), 2)[1 : length + 1]
        columns = np.stack([one * (1.0 + 0.01 * np.cos(r + np.arange(length))) for r in range(length)])
        privacy = so.ApproxDP(epsilon=1.0, delta=1e-6)
        times = race({"ours": partial(laplace_composition_ratio, columns, privacy)}, 5)
        what = f"laplace_composition_ratio, {length} positions of {length} coordinates, (1, 1e-6)"
        rows.append(noted(what, amount(times["ours"])))
    return rows


def figures() -> list[Row]:
    """Return all rows."""
    return in_process(__file__, "gaussian", threads=1) + in_process(__file__, "composition", threads=1)


if __name__ == "__main__":
    main({"gaussian": _gaussian, "composition": _composition}, figures)
