"""Marginals from larger tables: noise, errors and sensitivities against matrices written out, and what the search reaches."""

import itertools

import numpy as np
import pytest

import sordino as so

PURE = so.PureDP(epsilon=1.0)

SMALL = {
    "pairs": so.Marginals([2, 3, 2, 4], k=2),
    "one and two": so.Marginals([3, 2, 3], sets=[(), (0,), (1,), (0, 1), (1, 2)], weights=[1.0, 2.0, 1.0, 5.0, 1.0]),
    "total": so.Marginals([3, 4, 2], sets=[(), (2,)]),
    "apart": so.Marginals([3, 4, 2, 2], sets=[(0, 1), (2, 3)]),
}


def queries(workload):
    """The tables wanted, cell by cell, from the definition."""
    levels = workload.levels
    places = np.stack(np.unravel_index(np.arange(np.prod(levels)), levels), axis=1)
    return np.array(
        [
            (places[:, list(chosen)] == cell).all(axis=1)
            for chosen in workload.sets
            for cell in itertools.product(*(range(levels[i]) for i in chosen))
        ],
        dtype=float,
    )


@pytest.mark.parametrize("workload", SMALL.values(), ids=SMALL)
def test_noise_and_sensitivity_are_those_of_the_matrix(workload, known_noise):
    plan = so.plan(workload, PURE, mechanism="table-cover")
    strategy, door = plan.fit.strategy, plan.fit.door
    shape, n = workload.levels, int(np.prod(workload.levels))

    def measured(x):
        found = door.measure(strategy, x, bytes(32))
        return np.ldexp(found.units.astype(float), found.grid)

    zero = measured(np.zeros(n, np.int64))
    B = np.stack([measured(row) - zero for row in 4096 * np.eye(n, dtype=np.int64)], axis=1) / 4096.0
    assert np.abs(B).sum(axis=0).max() == pytest.approx(door.sensitivity[0], rel=1e-9)
    moved = so.plan(workload, PURE, unit=so.ReplaceOne(), mechanism="table-cover").fit.door.sensitivity[0]
    apart = max(np.abs(B[:, i] - B[:, j]).sum() for i in range(n) for j in range(i))
    assert apart <= moved * (1.0 + 1e-9) and moved <= 2.0 * door.sensitivity[0]
    A = queries(workload)
    noise = door.noise**2 * np.asarray(strategy.unit_variances())
    covariance = np.linalg.pinv((B.T / noise) @ B, hermitian=True, rcond=1e-12)
    assert np.allclose(plan.fit.answers_stderr.reshape(-1) ** 2, np.einsum("tj,jk,tk->t", A, covariance, A), rtol=1e-6)
    # The weights of an answer are those of least squares, and decode to it.
    x = np.random.default_rng(1).integers(0, 50, n)
    for t in (0, len(A) // 2, len(A) - 1):
        for weights in (strategy.answer_weights(t, A[t]), strategy.weights(A[t])):
            assert weights @ (B @ x) == pytest.approx(A[t] @ x)
            assert np.sum(weights**2 * noise) == pytest.approx(plan.fit.answers_stderr.reshape(-1)[t] ** 2, rel=1e-6)
    # Of a table and of its records the same, under one key.
    records = np.repeat(np.stack(np.unravel_index(np.arange(n), shape), axis=1), x, axis=0)
    with so.testing.deterministic_noise(bytes(32)):
        of_table = plan.release(x.reshape(shape)).values
    with so.testing.deterministic_noise(bytes(32)):
        of_records = plan.release(records).values
    assert np.array_equal(of_table, of_records)
    assert (np.abs(of_table.reshape(-1) - A @ x) <= 11.0 * plan.fit.answers_stderr.reshape(-1)).all()


@pytest.mark.parametrize(
    ("levels", "k", "most"),
    [([4] * 10, 2, 34.6), ([2, 16, 4, 8] * 2, 2, 22.8), ([16] * 5, 2, 13.5), ([10] * 6, 1, 8.13), ([4] * 5, 2, 9.42)],
)
def test_errors_that_were_found_by_other_means(levels, k, most):
    plan = so.plan(so.Marginals(levels, k=k), PURE)
    assert plan.mechanism == "table-cover-laplace" and plan.rmse < most
    assert plan.optimality is None


@pytest.mark.parametrize("seed", range(8))
def test_it_is_never_worse_than_the_wanted_tables_or_the_cells(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 7))
    levels = rng.integers(2, 7, d).tolist()
    sets = {tuple(sorted(rng.choice(d, rng.integers(0, min(d, 3) + 1), replace=False).tolist())) for _ in range(6)}
    workload = so.Marginals(levels, sets=sorted(sets), weights=rng.uniform(0.1, 9.0, len(sets)))
    cover, output, cells = (
        so.plan(workload, PURE, mechanism=name).rmse for name in ("table-cover", "output", "identity")
    )
    assert cover <= min(output, cells) * 1.003  # shares in whole numbers


def test_a_hundred_attributes_without_a_full_table(known_noise, tmp_path):
    workload = so.Marginals([3] * 100, sets=[(i, (i + 1) % 100) if i < 99 else (0, 99) for i in range(100)])
    plan = so.plan(workload, PURE)
    assert plan.mechanism == "table-cover-laplace"
    assert plan.rmse < 0.8 * so.plan(workload, PURE, mechanism="output").rmse
    records = np.random.default_rng(1).integers(0, 3, (2000, 100))
    release = plan.release(records)
    truth = np.concatenate([np.bincount(records[:, a] * 3 + records[:, b], minlength=9) for a, b in workload.sets])
    assert (np.abs(release.values.reshape(-1) - truth) <= 12.0 * release.stderr.reshape(-1)).all()
    assert so.Plan.load(plan.save(tmp_path / "plan.json")).digest == plan.digest
    half = release.interval(0.9)
    assert (half.upper > half.lower).all()


def test_consistent_tables_are_made_of_it(known_noise):
    workload = so.Marginals([4] * 6, k=2)
    plan = so.plan(workload, PURE)
    assert plan.mechanism == "table-cover-laplace"
    records = np.random.default_rng(1).integers(0, 4, (5000, 6))
    tables = workload.split(plan.release(records).consistent().values).values()
    assert all(table.min() >= 0.0 for table in tables)
    sums = [float(table.sum()) for table in tables]
    assert max(sums) == pytest.approx(min(sums)) and abs(sums[0] - 5000.0) < 200.0


def test_shares_of_the_total_are_refused():
    with pytest.raises(so.errors.UnsupportedMechanismError):
        so.plan(so.Marginals([3, 3], k=1, total_share=0.1), PURE, mechanism="table-cover")
