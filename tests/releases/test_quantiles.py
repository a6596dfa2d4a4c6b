"""Quantiles and means: intervals that cover at their level, on cells where a share is just reached, and what is refused."""

import math

import numpy as np
import pytest

import sordino as so

PURE = so.PureDP(epsilon=0.2)
GAUSS = so.GaussianDP(mu=0.3)
EDGES = np.linspace(0.0, 10.0, 41)
COUNTS = np.histogram(np.random.default_rng(0).gamma(2.0, 1.0, 3000), EDGES)[0]
SUMS = np.cumsum(COUNTS)
MIDDLES = 0.5 * (EDGES[1:] + EDGES[:-1])


@pytest.mark.filterwarnings("ignore:deterministic noise")
@pytest.mark.parametrize(
    ("workload", "privacy", "draws"),
    [
        (so.Histogram(40), PURE, 150),
        (so.RunningSum(40), GAUSS, 400),
        (so.Histogram(40), GAUSS, 400),
        (so.AllRanges(40), GAUSS, 400),
    ],
)
def test_intervals_cover(workload, privacy, draws):
    """At level .8, with 400 draws the least share seen is .72: false alarm 1e-4 (of 150 draws .67)."""
    plan = so.plan(workload, privacy)
    hits = np.zeros(6)
    mean = (MIDDLES * COUNTS).sum() / 3000
    variance = ((MIDDLES - mean) ** 2 * COUNTS).sum() / 3000
    for seed in range(draws):
        with so.testing.deterministic_noise(seed.to_bytes(32, "little")):
            release = plan.release(COUNTS)
        for k, share in enumerate((0.1, 0.5, 0.9)):
            found = release.quantile(share, level=0.8, edges=EDGES, total=3000 if k == 2 else None)
            hits[k] += found.lower <= np.argmax(share * 3000 <= SUMS) <= found.upper
            assert found.ends[0] <= found.value <= found.ends[1] or not found.lower <= found.cell <= found.upper
        if seed < 100 and privacy is GAUSS:
            moments = release.moments(edges=EDGES, level=0.8)
            hits[3] += moments.mean_interval[0] <= mean <= moments.mean_interval[1]
            hits[4] += moments.variance_interval[0] <= variance <= moments.variance_interval[1]
            hits[5] += abs(moments.mean - mean) < 1.0
    assert (hits[:3] >= (0.72 if draws == 400 else 0.67) * draws).all(), hits
    assert privacy is PURE or (hits[3] >= 63 and hits[4] >= 63 and hits[5] == 100), hits


def test_where_the_truth_is_told():
    """With next to no noise: exact cells, ties included, and values in proportion."""
    release = so.plan(so.Histogram(4), so.GaussianDP(mu=1e6)).release([10, 10, 0, 20])
    for share, cell in ((0.1, 0), (0.24, 0), (0.26, 1), (0.6, 3), (0.99, 3)):
        found = release.quantile(share, edges=[0, 1, 2, 3, 7])
        assert found.cell == cell and found.lower <= cell <= found.upper and found.share == share
    assert math.isclose(release.quantile(0.6, edges=[0, 1, 2, 3, 7]).value, 3.8, rel_tol=1e-4)
    assert (
        release.quantile(0.5).value is None and release.quantile(0.5).lower == 1
    )  # where a share is just reached, up to the next that has records
    moments = release.moments(values=[0.0, 1.0, 2.0, 3.0])
    assert (
        moments.binning == 0.0
        and math.isclose(moments.mean, 1.75, rel_tol=1e-4)
        and math.isclose(moments.variance, 1.6875, rel_tol=1e-4)
    )
    assert math.isclose(moments.std, math.sqrt(1.6875), rel_tol=1e-4) and math.isclose(
        moments.count, 40.0, rel_tol=1e-4
    )
    assert release.moments(edges=[0, 1, 2, 3, 7]).binning == 2.0


def test_too_few_records_say_nothing():
    release = so.plan(so.Histogram(30), so.PureDP(epsilon=0.01)).release(np.zeros(30, dtype=int))
    moments = release.moments(values=np.arange(30.0))
    assert 0.0 <= moments.mean_interval[0] <= moments.mean_interval[1] <= 29.0
    found = release.quantile(0.5)
    assert 0 <= found.lower <= found.upper <= 29


@pytest.mark.parametrize("cells", [1, 2, 600, 2**16])
def test_one_cell_and_many(cells):
    release = so.plan(so.Histogram(cells), GAUSS).release(np.ones(cells, dtype=int) * 50)
    found = release.quantile(0.5, level=1.0 - 1e-9)
    assert found.lower <= (cells - 1) // 2 <= found.upper
    moments = release.moments(values=np.arange(cells, dtype=float), level=1.0 - 1e-9)
    assert moments.mean_interval[0] <= 0.5 * (cells - 1) <= moments.mean_interval[1]


def test_what_is_refused():
    release = so.plan(so.Histogram(4), PURE).release([1, 2, 3, 4])
    wrong, shape, kind = so.errors.InvalidParameterError, so.errors.ShapeError, so.errors.DataTypeError
    for call, error in (
        (lambda: release.quantile(0.0), wrong),
        (lambda: release.quantile(1.0), wrong),
        (lambda: release.quantile(math.nan), wrong),
        (lambda: release.quantile("half"), kind),
        (lambda: release.quantile(0.5, level=1.0), wrong),
        (lambda: release.quantile(0.5, edges=[0, 1, 2]), shape),
        (lambda: release.quantile(0.5, edges=[0, 1, 1, 2, 3]), wrong),
        (lambda: release.quantile(0.5, total=-1), wrong),
        (release.moments, wrong),
        (lambda: release.moments(edges=[0, 1, 2, 3, 4], values=[0, 1, 2, 3]), wrong),
        (lambda: release.moments(values=[0, 1]), shape),
    ):
        with pytest.raises(error):
            call()
    table = so.plan(so.Histogram([2, 2]), PURE).release([[1, 2], [3, 4]])
    filtered = so.plan(so.MovingAverage(window=3, length=9), GAUSS, mechanism="output-gaussian").release(np.ones(9))
    for release in (table, filtered):
        with pytest.raises(so.errors.UnsupportedMechanismError):
            release.quantile(0.5)
        with pytest.raises(so.errors.UnsupportedMechanismError):
            release.moments(values=np.arange(9.0))
