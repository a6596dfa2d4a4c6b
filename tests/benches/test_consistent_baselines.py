"""What the benchmarks of consistent tables compare with: the same tables in numpy, and gaps of mirror descent that hold."""

import importlib.util
import itertools
import sys
from pathlib import Path

import numpy as np
import pytest

import sordino as so

# Last, so that no bench hides a module of the tests.
sys.path.append(str(Path(__file__).resolve().parents[2] / "benches"))

import consistent_baselines as baselines

PRIVACY = so.ApproxDP(epsilon=0.5, delta=1e-6)


def released(workload, seed, n=300):
    rng = np.random.default_rng(seed)
    codes = np.stack([np.minimum(rng.geometric(0.4, n) - 1, level - 1) for level in workload.levels], 1)
    return so.plan(workload, PRIVACY, mechanism="output-gaussian").release(codes)


def stderr(release):
    assert np.ptp(release.stderr) == 0.0
    return float(release.stderr.reshape(-1)[0])


def near(found, expected, tolerance=1e-6):
    assert found.keys() == expected.keys()
    for s, table in expected.items():
        np.testing.assert_allclose(found[s], table, rtol=0.0, atol=tolerance)


@pytest.mark.parametrize(
    "workload",
    [
        so.Marginals([4, 3, 5, 2], k=2),
        so.Marginals([2, 3, 4], k=1),
        so.Marginals([3, 2, 4, 3], sets=[(0, 1, 2), (1, 3), (2,)]),
        so.Marginals([6] * 7, k=2),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_the_same_tables_as_sordino(workload, seed, known_noise):
    release = released(workload, seed)
    made, found = release.consistent(), baselines.nearest(workload.levels, release.tables, stderr(release))
    near(found.tables, made.tables)
    assert found.steps == made.consistency.iterations
    # Both are told up to rounding; sordino's is never below what rounding may hide.
    assert found.gap == pytest.approx(made.consistency.gap, rel=1e-6, abs=1e-9)
    assert min(table.min() for table in found.tables.values()) >= 0.0


def plain(levels, tables, stderr):
    found = baselines.plain_nearest(levels, {s: table.ravel().tolist() for s, table in tables.items()}, stderr)
    return {s: np.reshape(cells, tables[s].shape) for s, cells in found.items()}


@pytest.mark.parametrize("sets", [None, [(0, 2), (1, 2)]])
def test_the_same_tables_of_pairs_in_plain_python(sets, known_noise):
    release = released(so.Marginals([4, 3, 5], k=None if sets else 2, sets=sets), 0)
    near(plain((4, 3, 5), release.tables, stderr(release)), release.consistent().tables)


def test_a_total_below_zero_gives_empty_tables():
    tables = {(0, 1): np.full((2, 3), -5.0), (1, 2): np.full((3, 2), -4.0)}
    found = baselines.nearest([2, 3, 2], tables, 1.0)
    assert found.gap == 0.0 and all((table == 0.0).all() for table in found.tables.values())
    assert all((table == 0.0).all() for table in plain([2, 3, 2], tables, 1.0).values())


def test_least_squares_are_the_normal_equations():
    rng, levels = np.random.default_rng(1), [2, 3, 4]
    tables = {s: rng.normal(5.0, size=[levels[i] for i in s]) for s in ((0, 1), (1, 2), (0, 2))}
    # Every table of pairs as a matrix on all cells: margins of its fit are fits of margins.
    cells = list(itertools.product(*(range(level) for level in levels)))
    rows = [[float(all(cell[i] == k for i, k in zip(s, at, strict=True))) for cell in cells]
            for s, table in tables.items() for at in np.ndindex(table.shape)]  # fmt: skip
    measured = np.concatenate([table.ravel() for table in tables.values()])
    fitted = np.array(rows) @ np.linalg.lstsq(np.array(rows), measured, rcond=None)[0]
    found = baselines.least_squares(levels, tables)
    np.testing.assert_allclose(np.concatenate([found[s].ravel() for s in tables]), fitted, atol=1e-12)


def test_half_the_noise_is_that_of_least_squares():
    rng, levels, sets = np.random.default_rng(2), [3, 2, 4], [(0, 1), (1, 2), (0, 2)]
    squares = []
    for _ in range(2000):
        tables = {s: rng.normal(9.0, 2.0, size=[levels[i] for i in s]) for s in sets}
        fitted = baselines.least_squares(levels, tables)
        total = fitted[0, 1].sum()
        squares.append(0.5 * sum(np.sum((t - total / t.size) ** 2) for t in fitted.values()))
    # 17 degrees of freedom: a relative error of .008.
    assert np.mean(squares) == pytest.approx(baselines.half_noise(levels, sets, 2.0), rel=0.04)


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("mbi") is None, reason="Private-PGM is in requirements/bench.txt")
def test_gaps_of_mirror_descent_hold(known_noise):
    import consistent_peers as peers

    workload = so.Marginals([4, 3, 5, 2], k=2)
    release = released(workload, 0)
    looks = peers.gaps(workload.levels, release.tables, stderr(release), 1000)
    distances = [
        0.5 * sum(np.sum((made[s] - table) ** 2) for s, table in release.tables.items()) for _, _, made in looks
    ]
    assert [at for at, _, _ in looks] == list(range(50, 1001, 50))
    # What is left is at most the gap; the nearest tables that only agree are nearer still.
    noise = baselines.half_noise(workload.levels, workload.sets, stderr(release))
    for distance, (_, gap, _) in zip(distances, looks, strict=True):
        assert distance - min(distances) <= gap + 1e-4 * noise
    local = 0.5 * sum(np.sum((release.consistent().tables[s] - t) ** 2) for s, t in release.tables.items())
    assert local <= min(distances) + 2e-3 * noise
    few = peers.estimated(workload.levels, release.tables, stderr(release), 50)
    near(few, looks[0][2], tolerance=1.0)
