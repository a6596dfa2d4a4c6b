"""Keys that nobody lists: the noise of their sketch, counts of candidates, keys that are no candidates."""

import math

import numpy as np
import pytest

import sordino as so

PURE = so.PureDP(epsilon=1.0)
APPROX = so.ApproxDP(epsilon=1.0, delta=1e-6)
KEYS = so.sketches.KeyCounts(2**40, 2048)


def draws(seed, count):
    rng = np.random.default_rng(seed)
    keys = np.unique(rng.integers(0, 2**40, count + 100))
    rng.shuffle(keys)
    return rng, keys[:count]


def released(plan, keys, counts=None, seed=0):
    sketch = plan.sketch()
    sketch.update(keys, counts)
    with so.testing.deterministic_noise(bytes([seed]) * 32):
        return plan.release(sketch)


@pytest.mark.parametrize("unit", [so.AddRemove(1), so.AddRemove(3), so.AddRemove(3, per_cell=1), so.ReplaceOne(2)])
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_neighbours_are_as_far_apart_as_said(law, unit):
    """By the columns of all keys of a small sketch; of many keys nothing is known but that two may share no sum."""
    small = so.sketches.KeyCounts(24, 12, nonzeros=3)
    fit = so.plan(small, APPROX, unit=unit, noise=law).fit
    order = 1 if law == "laplace" else 2
    columns = np.array([small.operator.column(key) for key in range(24)], dtype=float)
    norm = lambda d: np.abs(d).sum() if order == 1 else math.sqrt((d * d).sum())  # noqa: E731 - two norms
    one = max(norm(column) for column in columns)
    pair = max(norm(a - b) for a in columns for b in columns)
    largest = unit.records * (pair if isinstance(unit, so.ReplaceOne) else one)
    assert fit.door.sensitivity[0] <= largest * (1.0 + 1e-12)
    if unit == so.AddRemove(1):
        assert fit.door.sensitivity[0] == pytest.approx(one)
    elif isinstance(unit, so.ReplaceOne):
        assert fit.door.sensitivity[0] == pytest.approx(largest)
    huge = so.plan(so.sketches.KeyCounts(2**53, 12, nonzeros=3), APPROX, unit=unit, noise=law).fit
    assert huge.door.sensitivity[0] >= fit.door.sensitivity[0] * (1.0 - 1e-12)


@pytest.mark.statistical
@pytest.mark.parametrize("privacy", [PURE, APPROX], ids=["laplace", "gaussian"])
def test_sums_have_the_noise_that_was_planned(privacy):
    """Variance over 30 releases of 2048 sums, at 6 standard errors (kurtosis 6): below 1e-8 had keys been random."""
    plan = so.plan(KEYS, privacy, noise="laplace" if privacy is PURE else "gaussian")
    _, keys = draws(1, 500)
    sketch = plan.sketch()
    sketch.update(keys)
    truth = sketch.core.sums()
    noise = np.array([released(plan, keys, seed=seed).sums - truth for seed in range(30)])
    assert abs((noise**2).mean() / plan.fit.noise**2 - 1.0) < 6.0 * math.sqrt(5.0 / noise.size)
    assert abs(noise.mean()) < 6.0 * plan.fit.noise / math.sqrt(noise.size)


@pytest.mark.statistical
@pytest.mark.parametrize("privacy", [PURE, APPROX], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("candidates", [200, 20_000])
def test_candidates_are_counted(privacy, candidates):
    """Error at most twice that of noise with the keys known, and nothing unexplained: held for all of 6 seeds."""
    plan = so.plan(KEYS, privacy, noise="laplace" if privacy is PURE else "gaussian")
    oracle = plan.rmse * math.sqrt(30 * 2048 / (2048 - 30))
    for seed in range(6):
        rng, keys = draws(seed, candidates)
        counts = np.rint(np.exp(rng.uniform(math.log(60.0), math.log(5000.0), 30))).astype(np.int64)
        found = released(plan, keys[:30], counts, seed).counts(keys)
        truth = np.zeros(candidates)
        truth[:30] = counts
        assert found.explained
        assert np.linalg.norm(found.values - truth) <= 2.0 * oracle
        assert (np.flatnonzero(found.values) >= 30).sum() <= 5  # noise that looks like a key
        order = rng.permutation(candidates)
        other = released(plan, keys[:30], counts, seed).counts(keys[order])
        np.testing.assert_allclose(other.values, found.values[order], atol=1e-6)
        top, values = found.top(3)
        assert set(top.tolist()) <= set(keys[:30].tolist())
        assert (np.diff(values) <= 0.0).all()


@pytest.mark.statistical
@pytest.mark.parametrize("seed", range(4))
def test_keys_that_are_no_candidates_are_told_from_them(seed):
    """Ten heavy ones spoil single sums; tens of thousands of light ones are like noise. Both are said."""
    plan = so.plan(KEYS, PURE)
    rng, keys = draws(seed, 5000)
    counts = rng.integers(100, 4000, 20)
    truth = np.zeros(5000)
    truth[:20] = counts
    oracle = plan.rmse * math.sqrt(20 * 2048 / (2048 - 20))
    heavy = np.r_[keys[:20], rng.integers(0, 2**40, 10)], np.r_[counts, np.full(10, 1000)]
    found = released(plan, *heavy, seed).counts(keys)
    assert not found.explained
    assert not found.converged
    assert 40 <= found.spoilt <= 160
    assert np.linalg.norm(found.values - truth) <= 2.0 * oracle
    assert found.elsewhere == pytest.approx(1000.0 * math.sqrt(10), rel=0.1)
    light = np.r_[keys[:20], rng.integers(0, 2**40, 60_000)], np.r_[counts, np.ones(60_000, dtype=np.int64)]
    found = released(plan, *light, seed).counts(keys)
    assert not found.explained
    assert found.elsewhere == pytest.approx(math.sqrt(60_000), rel=0.25)
    spread = math.hypot(plan.rmse, math.sqrt(60_000 / 2048)) * math.sqrt(20 * 2048 / (2048 - 20))
    assert np.linalg.norm(found.values - truth) <= 2.0 * spread


def test_without_noise_counts_are_exact():
    plan = so.plan(KEYS, so.ZeroConcentratedDP(rho=1e6))
    rng, keys = draws(7, 1000)
    counts = rng.integers(1, 10**6, 40)
    found = released(plan, keys[:40], counts).counts(keys)
    np.testing.assert_allclose(found.values[:40], counts, rtol=1e-6, atol=0.05)
    assert np.abs(found.values[40:]).max() < 0.05


def test_columns_of_keys_are_those_of_small_sketches():
    """The same words, whatever the number of keys: a sketch of fewer is a part of it."""
    few, many = so.sketches.KeyCounts(1000, 64, seed=9), so.sketches.KeyCounts(2**53, 64, seed=9)
    for key in (0, 1, 999):
        np.testing.assert_array_equal(few.operator.column(key), many.operator.column(key))
    sketch = so.plan(many, PURE).sketch()
    sketch.update([2**53 - 1, 5, 2**53, -1])
    expected = many.operator.column(2**53 - 1) + many.operator.column(5)
    np.testing.assert_array_equal(sketch.core.sums(), expected)
    again = so.sketches.Sketch.from_bytes(sketch.to_bytes())
    np.testing.assert_array_equal(again.core.sums(), expected)
    np.testing.assert_array_equal((sketch + again).core.sums(), 2 * expected)


def test_files_and_what_does_not_fit(tmp_path, known_noise):
    plan = so.plan(so.sketches.KeyCounts(2**40, 64), PURE)
    release = plan.release([3, 3, 2**39])
    release.save(tmp_path / "keys.json")
    loaded = so.sketches.KeyRelease.load(tmp_path / "keys.json")
    np.testing.assert_array_equal(loaded.sums, release.sums)
    plan.save(tmp_path / "plan.json")
    assert so.ReleasePlan.load(tmp_path / "plan.json").fit.is_same(plan.fit)
    for bad, error in (
        ([], so.errors.InvalidParameterError),
        ([3, 3], so.errors.InvalidParameterError),
        ([2**40], so.errors.InvalidParameterError),
        ([-1], so.errors.InvalidParameterError),
        ([0.5], so.errors.DataTypeError),
        ([[1]], so.errors.ShapeError),
    ):
        with pytest.raises(error):
            release.counts(bad)
    for sparsity in (0, 33):
        with pytest.raises(so.errors.InvalidParameterError):
            release.counts([1], sparsity=sparsity)
    for size, sums in ((0, 1), (2**53 + 1, 8), (8, 9), (2**30, 2**23)):
        with pytest.raises(so.errors.InvalidParameterError):
            so.sketches.KeyCounts(size, sums)
    other = so.plan(so.sketches.KeyCounts(2**40, 64, seed=1), PURE).sketch()
    with pytest.raises(so.errors.InvalidParameterError):
        plan.release(other)
    with pytest.raises(so.errors.UnsupportedMechanismError):
        so.plan(so.sketches.KeyCounts(2**40, 64), PURE, integral=False)
    with pytest.raises(so.errors.DataTypeError):
        plan.release(None)


def test_no_more_keys_are_found_than_are_looked_for():
    """Also where others spoil the sums, and missed ones come back."""
    plan = so.plan(so.sketches.KeyCounts(2**40, 1024, seed=3), PURE)
    known = np.arange(5000) * 104729
    release = released(plan, known[:25], np.full(25, 500))
    for sparsity in (1, 2, 5):
        assert (release.counts(known, sparsity=sparsity).values != 0.0).sum() <= sparsity


@pytest.mark.statistical
def test_few_candidates_without_records_have_no_counts():
    """Of one or two candidates noise passes three standard deviations in less than one of a hundred releases; 60 of them
    have more than five that do with probability below 1e-4."""
    plan = so.plan(so.sketches.KeyCounts(2**40, 1024, seed=4), PURE)
    found = [released(plan, [], seed=seed).counts([5, 77]).values.any() for seed in range(60)]
    assert sum(found) <= 5
