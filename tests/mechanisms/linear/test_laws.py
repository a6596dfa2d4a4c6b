"""What is drawn is of the law that is charged for, whatever is asked for by name."""

import numpy as np
import pytest

import sordino as so
from sordino.errors import SordinoError, UnsupportedMechanismError
from sordino.mechanisms.linear.catalogue import MECHANISMS
from sordino.privacy.costs import GaussianCost
from sordino.workloads import (
    AllRanges,
    Convolution,
    ExponentialSmoothing,
    GroupBy,
    Intervals,
    Kronecker,
    MarginalQueries,
    Marginals,
    Matrix,
    RunningSum,
    SlidingWindow,
    Union,
)

RNG = np.random.default_rng(0)
RING = Convolution([2.0, 1.0, 0.5], length=8, boundary="circular")
WORKLOADS = [
    so.Histogram(8),
    AllRanges(8),
    RunningSum(8),
    SlidingWindow(3, 8),
    ExponentialSmoothing(0.5, 8),
    RING,
    Convolution([2.0, 1.0, 0.5], length=8, boundary="valid"),
    GroupBy([[0, 0, 1, 1, 2, 2, 3, 3], [0, 0, 0, 0, 1, 1, 1, 1]]),
    Intervals([0, 2, 4], [3, 5, 7], 8),
    Marginals([2, 2, 2], k=2),
    MarginalQueries([so.Histogram(2), RunningSum(4)], k=2),
    Matrix(RNG.integers(0, 2, (6, 8)).astype(float)),
    Kronecker([RunningSum(4), so.Histogram(2)]),
    Kronecker([AllRanges(4), RunningSum(3)]),
    Union([RunningSum(8), so.Histogram(8)]),
    Union([RunningSum(8)]),
    Union([so.Histogram(8)]),
    Union([RING, so.Histogram(8)]),
    Union([SlidingWindow(2, 8), SlidingWindow(3, 8)], weights=[1.0, 3.0]),
    Union([AllRanges(8), so.Histogram(8)]),
    Union([Kronecker([AllRanges(4), AllRanges(3)]), Kronecker([AllRanges(4), so.Histogram(3)])]),
]
PRIVACY = [
    so.PureDP(epsilon=1.0),
    so.ApproxDP(epsilon=1.0, delta=1e-6),
    so.ZeroConcentratedDP(rho=0.5),
    so.GaussianDP(mu=1.0),
]


@pytest.mark.parametrize("workload", WORKLOADS, ids=repr)
@pytest.mark.parametrize("privacy", PRIVACY, ids=repr)
def test_noise_is_of_the_law_that_is_charged_for(workload, privacy):
    names = {name for m in MECHANISMS if m.strategy != "fourier-composed" for name in (m.name, m.strategy)}
    fitted = 0
    for name in sorted(names):
        for unit in (so.AddRemove(), so.AddRemove(3, per_cell=1, one_signed=True)):
            try:
                fit = so.plan(workload, privacy, mechanism=name, unit=unit).fit
            except SordinoError:
                continue
            fitted += 1
            geometry, law = fit.strategy.geometry, fit.mechanism.law
            assert geometry == "common" or (geometry == "l2") == (law == "gaussian"), name
            assert isinstance(fit.cost, GaussianCost) == (law == "gaussian"), name
            drawn = next(line for line in fit.lines() if line.startswith("noise "))
            assert ("Gaussian" in drawn) == (law == "gaussian"), name
    assert fitted >= 3


@pytest.mark.parametrize("workload", [w for w in WORKLOADS if isinstance(w, Union)], ids=repr)
def test_fourier_noise_on_unions_is_gaussian_or_refused(workload):
    for options in ({"mechanism": "fourier-laplace"}, {"mechanism": "fourier", "noise": "laplace"}):
        for privacy in PRIVACY:
            with pytest.raises(UnsupportedMechanismError):
                so.plan(workload, privacy, **options)
    with pytest.raises(UnsupportedMechanismError):
        so.plan(workload, so.PureDP(epsilon=1.0), mechanism="fourier")
