"""Noise for many releases."""

from typing import Any

TITLE = "Noise for 1,000 releases"
QUESTION = "Which noise must each of 1,000 Gaussian releases of sensitivity 1 have, all together (1, 1e-6)-private?"
ERROR = "standard deviation"
RELEASES = 1000


def data() -> int:
    return RELEASES


def truth(releases: int) -> Any:
    return 0.0


def sordino(releases: int) -> Any:
    import sordino as so
    from sordino.privacy.calibration import gaussian_mu

    return releases**0.5 / gaussian_mu(so.ApproxDP(epsilon=1.0, delta=1e-6))


def opendp(releases: int) -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)

    def all_releases(scale: float) -> dp.Measurement:
        composed = dp.c.make_composition([dp.m.make_gaussian(*space, scale=scale)] * releases)
        return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(composed), 1e-6)

    return dp.binary_search_param(all_releases, d_in=1.0, d_out=(1.0, 1e-6), T=float)


def jax_privacy(releases: int) -> Any:
    from jax_privacy.accounting import accountants, analysis, calibrate

    training = analysis.DpsgdTrainingAccountant(dp_accountant_config=accountants.PldAccountantConfig())
    return calibrate.calibrate_noise_multiplier(
        target_epsilon=1.0,
        accountant=training,
        batch_sizes=1,
        num_updates=releases,
        num_samples=1,
        target_delta=1e-6,
        initial_max_noise=1000.0,
    )


def dp_accounting(releases: int) -> Any:
    import dp_accounting
    from dp_accounting import pld

    return dp_accounting.calibrate_dp_mechanism(
        pld.PLDAccountant,
        lambda sigma: dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(sigma), releases),
        target_epsilon=1.0,
        target_delta=1e-6,
        bracket_interval=dp_accounting.ExplicitBracketInterval(10.0, 1000.0),
        tol=0.01,
    )


def diffprivlib(releases: int) -> Any:
    import diffprivlib
    from diffprivlib import mechanisms

    epsilon, delta = diffprivlib.BudgetAccountant(1.0, 1e-6, slack=5e-7).remaining(releases)
    return mechanisms.GaussianAnalytic(epsilon=epsilon, delta=delta, sensitivity=1.0)._scale


def plain_python(releases: int) -> Any:
    from math import log, sqrt

    rho = (sqrt(log(1e6) + 1.0) - sqrt(log(1e6))) ** 2
    return sqrt(releases / (2.0 * rho))


def numpy(releases: int) -> Any:
    import numpy as np

    orders = np.linspace(1.01, 500.0, 100_000)
    conversion = np.log1p(-1.0 / orders) - (np.log(1e-6) + np.log(orders)) / (orders - 1.0)
    return np.sqrt(releases / (2.0 * np.max((1.0 - conversion) / orders)))
