"""Cells and weighted sums of them along the axes of products, and of the parts of unions, under pure privacy."""

import hashlib
import json
import math

import numpy as np
import pytest

import sordino as so
from known_noise import columns, released
from sordino.accuracy.factorizations import dense
from sordino.mechanisms.linear.measurement import door_of
from sordino.workloads import Intervals, Union

PURE = so.PureDP(epsilon=1.0)


def total(cells):
    return so.GroupBy([np.zeros(cells, dtype=int)])


PRODUCTS = [
    so.Kronecker([so.RunningSum(20), so.AllRanges(14)]),
    so.Kronecker([so.Histogram(3), so.RunningSum(30), total(4)]),
    so.Kronecker([so.SlidingWindow(9, 31), so.GroupBy([[0, 0, 0, 1, 1, 2, 2, 2, 2], list(range(9))])]),
    so.Kronecker(
        [Intervals([0, 1, 2, 3, 0], [3, 4, 5, 5, 2], 6, weights=[1.0, 2.0, 1.0, 5.0, 3.0]), so.RunningSum(48)]
    ),
    so.Kronecker([so.Matrix([[1.0, -2.0, 0.0], [0.0, 0.5, 3.0], [1.0, 1.0, 1.0]]), so.AllRanges(40), so.Histogram(2)]),
    so.Kronecker([so.AllRanges(300), so.RunningSum(1), total(2)]),
]

MARGINS = [so.Kronecker([so.AllRanges(20), total(18)]), so.Kronecker([total(20), so.RunningSum(18)])]
GROUPS = so.GroupBy([[0, 0, 1, 1, 1, 2, 2, 2], list(range(8))])
UNIONS = [
    so.Kronecker([so.AllRanges(20), so.RunningSum(18)]) | Union(MARGINS),
    Union(MARGINS, [1.0, 9.0]),  # cells are not determined
    so.Histogram((20, 18)) | 4.0 * Union(MARGINS) | so.Kronecker([total(20), total(18)]),
    Union([so.Kronecker([so.RunningSum(7), so.RunningSum(8), total(6)]),
              so.Kronecker([so.RunningSum(7), total(8), so.AllRanges(6)]),
              so.Kronecker([total(7), so.RunningSum(8), so.AllRanges(6)])]),
    Union([so.Kronecker([GROUPS, so.SlidingWindow(5, 33)]),
              so.Kronecker([so.Matrix(np.random.default_rng(2).normal(size=(5, 8))), so.Histogram(33)]),
              so.Kronecker([so.Histogram(8), Intervals([0, 4, 9], [32, 12, 9], 33, weights=[1.0, 3.0, 1.0])])]),
    so.Kronecker([so.Histogram(8), so.GroupBy([0, -1] * 20)]) | so.Kronecker([total(8), so.Histogram(40)]),
]  # fmt: skip


@pytest.mark.parametrize("workload", PRODUCTS + UNIONS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 30.0, 1e4])
def test_products_are_private_and_state_their_errors(workload, epsilon):
    plan = so.plan(workload, so.PureDP(epsilon=epsilon), mechanism="p-identity")
    cells = math.prod(workload.input_shape)
    B = columns(plan)
    norms = np.abs(B).sum(axis=0)
    door = plan.fit.door
    assert norms.max() <= sum(door.sensitivity) * (1 + 1e-12)
    assert sum(door.sensitivity) <= door.sensitivity[0] * (1 + 1e-4)
    assert norms.min() >= norms.max() * (1 - 1e-3)  # but for totals nothing is given away
    moved = door_of(plan.fit.strategy, so.ReplaceOne(1), plan.fit.domain, plan.fit.ratio).sensitivity[0]
    assert moved >= 2.0 * norms.max() * (1 - 1e-12)
    A = dense(workload)
    inverse, noise = np.linalg.pinv(B), math.sqrt(2.0) * door.noise
    if small := epsilon < 1.0:  # else noise on whole numbers is not near enough to the continuous law
        assert np.allclose(plan.fit.stderr, noise * np.linalg.norm(A @ inverse, axis=1), rtol=1e-3)
    x = np.arange(cells).reshape(workload.input_shape) * 7 % 10
    release = released(plan, x)
    assert np.abs(release.values.reshape(-1) - A @ x.reshape(-1)).max() < 12.0 * plan.fit.stderr.max() + 1e-6
    rows = np.random.default_rng(1).normal(size=(3, cells))
    if small and np.linalg.matrix_rank(B) == cells:
        found = release.answer(so.Matrix(rows))
        assert np.allclose(found.stderr, noise * np.linalg.norm(rows @ inverse, axis=1), rtol=1e-3)


@pytest.mark.parametrize("workload", [*PRODUCTS, *UNIONS, so.RunningSum(1100)])
def test_fractions_are_measured_too(workload):
    """A record adds at most 1, of whatever the cell has; estimates are of the cells, not of what they are rounded to."""
    plan = so.plan(workload, PURE, mechanism="p-identity", integral=False, max_value=9)
    rng = np.random.default_rng(5)
    shape, most = workload.input_shape, sum(plan.fit.door.sensitivity)
    x = rng.uniform(0.0, 8.0, shape)
    base = released(plan, x)
    for j in rng.choice(math.prod(shape), 40):
        for added in (1.0, -1.0, 0.3, 2.0**-31, 1.0 - 2.0**-53):
            other = x.copy()
            other.flat[j] = min(max(other.flat[j] + added, 0.0), 9.0)
            moved = released(plan, other).measured.values() - base.measured.values()
            assert np.abs(moved).sum() <= most * (1 + 1e-12)
    noise = base.values - released(plan, np.zeros(shape)).values
    lost = np.abs(noise - workload.core.apply(x.reshape(-1)).reshape(noise.shape))
    assert (lost <= 1e-3 * plan.fit.stderr.reshape(noise.shape)).all()
    assert plan.fit.inflation < 1e-3


def test_tables_of_few_cells_have_less_error_than_all_of_them_at_once():
    def either(side):
        ranges, total_of = so.AllRanges(side), total(side)
        return Union([so.Kronecker([ranges, total_of]), so.Kronecker([total_of, ranges])])

    # HDMM's marginals have as much: 4.378 and 5.937.
    for side, most in ((8, 4.379), (16, 5.938)):
        plan = so.plan(either(side), PURE)
        assert plan.mechanism == "p-identity-laplace" and plan.rmse < most
        assert plan.fit.factorization.kind == "p-identity-tables"
    # What is searched for at once is better where cells are wanted too, or noise on whole numbers is far below one.
    cells = so.plan(either(8) | so.Kronecker([so.AllRanges(8)] * 2), PURE, mechanism="p-identity")
    assert cells.fit.factorization.kind == "p-identity"
    with pytest.raises(so.errors.UnsupportedMechanismError, match="p-identity-tables"):
        so.optimal.factorize(either(17), kind="p-identity", law="laplace")
    with pytest.raises(so.errors.UnsupportedMechanismError, match="unions of products"):
        so.optimal.factorize(so.AllRanges(8), kind="p-identity-tables", law="laplace")


def pairs(queries, side):
    """Return queries of every pair of three axes."""
    q, t = queries(side), total(side)
    return Union([so.Kronecker([q, q, t]), so.Kronecker([q, t, q]), so.Kronecker([t, q, q])])


LARGE = [
    so.Kronecker([so.RunningSum(35), so.AllRanges(31)])
    | 3.0 * so.Kronecker([so.RunningSum(35), total(31)])
    | so.Histogram((35, 31)),
    so.Kronecker([so.AllRanges(36), total(30)]) | so.Kronecker([total(36), so.RunningSum(30)]),
    so.Kronecker([so.GroupBy([[0, 1] * 18, [0] * 12 + [1] * 24]), so.RunningSum(30)])
    | so.Kronecker([so.Histogram(36), so.Matrix(np.random.default_rng(3).normal(size=(30, 30)))]),
    pairs(so.RunningSum, 11),
]


@pytest.mark.parametrize("workload", LARGE)
def test_gaussian_tables_are_private_and_state_their_errors(workload, tmp_path):
    plan = so.plan(workload, so.GaussianDP(mu=0.5), mechanism="balanced")
    cells = math.prod(workload.input_shape)
    B = columns(plan)
    door = plan.fit.door
    norms = np.linalg.norm(B, axis=0)
    assert norms.max() <= sum(door.sensitivity) * (1 + 1e-9)
    assert norms.min() >= norms.max() * (1 - 1e-3)
    moved = door_of(plan.fit.strategy, so.ReplaceOne(1), plan.fit.domain, plan.fit.ratio).sensitivity
    gram = B.T @ B
    assert sum(moved) ** 2 >= (np.add.outer(np.diag(gram), np.diag(gram)) - 2.0 * gram).max() * (1 - 1e-9)
    A = dense(workload)
    inverse = np.linalg.pinv(B, rcond=1e-8)  # columns are rounded to the lattice
    assert np.allclose(plan.fit.stderr, door.noise * np.linalg.norm(A @ inverse, axis=1), rtol=1e-3)
    mean = np.average(plan.fit.stderr**2, weights=workload.answer_weights())
    assert math.isclose(plan.rmse, math.sqrt(mean), rel_tol=1e-9)
    assert math.isclose(plan.max_stderr, plan.fit.stderr.max(), rel_tol=1e-9)
    x = np.arange(cells).reshape(workload.input_shape) * 7 % 10
    release = released(plan, x)
    assert np.abs(release.values.reshape(-1) - A @ x.reshape(-1)).max() < 8.0 * plan.fit.stderr.max()
    again = so.Plan.load(plan.save(tmp_path / "plan.json"))
    assert (again.digest, again.rmse) == (plan.digest, plan.rmse)
    assert (released(again, x).values == release.values).all()
    matrix = plan.fit.factorization.matrix
    assert matrix.shape[1] == cells and plan.fit.factorization.entries == matrix.size
    assert np.allclose(np.linalg.norm(matrix, axis=0), 1.0, rtol=1e-3)


@pytest.mark.parametrize(
    ("workload", "privacy", "most"),
    [
        (pairs(so.AllRanges, 16), PURE, 0.76),
        (pairs(so.RunningSum, 25), PURE, 0.83),
        (pairs(so.RunningSum, 16), so.GaussianDP(mu=1.0), 0.95),
        (LARGE[0], so.GaussianDP(mu=1.0), 0.95),
        (so.Kronecker([so.RunningSum(256)] * 2) | so.Kronecker([so.RunningSum(256), total(256)]), PURE, 0.95),
    ],
)
def test_tables_measured_together_have_less_error(workload, privacy, most):
    """Than any strategy that was known before: parts with shares, and residuals of attributes."""
    plan = so.plan(workload, privacy)
    assert plan.mechanism in {"p-identity-laplace", "balanced-gaussian"}
    for other in ("split", "residual", "identity"):
        try:
            known = so.plan(workload, privacy, mechanism=other)
        except so.errors.UnsupportedMechanismError:
            continue
        assert plan.rmse < most * known.rmse


@pytest.mark.parametrize("workload", PRODUCTS[:4] + UNIONS)
def test_plans_come_back_from_files(workload, tmp_path):
    plan = so.plan(workload, PURE, mechanism="p-identity")
    again = so.Plan.load(plan.save(tmp_path / "plan.json"))
    assert (again.digest, again.rmse) == (plan.digest, plan.rmse)
    x = np.ones(workload.input_shape, dtype=int)
    assert (released(plan, x).values == released(again, x).values).all()
    found = plan.fit.factorization
    measured = columns(plan)
    ideal = found.matrix
    # Whole numbers of at most 2^28 units, less empty rows.
    assert len(measured) <= len(ideal) and found.entries == ideal.size
    kept = np.abs(ideal).max(axis=1) > 1e-2
    assert kept.sum() <= len(measured)
    assert np.allclose(np.abs(ideal).sum(axis=0), 1.0)


@pytest.mark.parametrize(
    ("size", "most"),
    [((32, 32), 0.83), ((64, 256), 0.8), ((1024, 1024), 0.77), ((4096, 4), 0.92), ((20, 20, 20), 0.8)],
)
def test_products_have_less_error_than_trees(size, most):
    workload = so.Kronecker([so.RunningSum(n) for n in size])
    plan, trees = so.plan(workload, PURE), so.plan(workload, PURE, mechanism="weighted-tree")
    assert plan.mechanism == "p-identity-laplace" and plan.rmse < most * trees.rmse
    assert plan.fit.inflation < 1e-3
    # Cells that are no integers are counted in fractions: noise is not discrete, all else the same.
    fractions = so.plan(workload, PURE, integral=False, max_value=100)
    assert fractions.mechanism == plan.mechanism and plan.rmse <= fractions.rmse < 1.0025 * plan.rmse


@pytest.mark.parametrize(
    "workload",
    [
        so.RunningSum(1500),
        so.AllRanges(600),
        so.Kronecker([so.RunningSum(40), so.AllRanges(12)]),
        so.Histogram(300) | so.AllRanges(300),
    ],
)
def test_what_is_made_for_the_mean_may_have_the_least_largest_error(workload):
    worst = so.plan(workload, PURE, objective="max")
    mean, trees = so.plan(workload, PURE), so.plan(workload, PURE, mechanism="weighted-tree")
    assert worst.max_stderr <= mean.max_stderr
    assert worst.max_stderr < 0.95 * trees.max_stderr


def test_axes_that_are_too_long_keep_their_trees():
    workload = so.Kronecker([so.RunningSum(2**14), so.AllRanges(4)])
    assert so.plan(workload, PURE).mechanism == "weighted-tree-laplace"
    with pytest.raises(so.errors.UnsupportedMechanismError, match="4096"):
        so.plan(workload, PURE, mechanism="p-identity")
    with pytest.raises(so.errors.UnsupportedMechanismError, match="sums"):
        so.plan(so.Kronecker([so.Histogram(40), total(20)]), PURE, mechanism="p-identity")


@pytest.mark.parametrize(
    "axis",
    [
        Intervals([0, 5, 3], [12, 9, 14], 16),
        Intervals([0, 0], [7, 15], 16),
        so.GroupBy([[0] * 4 + [1] * 4 + [2] * 8, [0] * 8 + [1] * 8]),
    ],
)
def test_axes_with_cells_that_are_not_told_apart_keep_their_digits(axis):
    """Sums would have all the weight there, and what they leave to the cells would be rounding."""
    workload = so.Kronecker([axis, so.RunningSum(24)])
    for mechanism in ("auto", "p-identity"):
        plan = so.plan(workload, PURE, mechanism=mechanism)
        cells = np.random.default_rng(0).integers(0, plan.fit.domain.max_value // 10, (16, 24))
        noise = released(plan, np.zeros_like(cells)).values
        lost = released(plan, cells).values - noise - (dense(workload) @ cells.reshape(-1)).reshape(noise.shape)
        assert np.abs(lost).max() < 1e-3 * plan.fit.stderr.min()


def test_a_total_of_some_cells_is_what_is_measured():
    some = so.GroupBy([[0, -1, 0]], weights=[3.0])
    plan = so.plan(so.Kronecker([so.RunningSum(100), some]), PURE, mechanism="p-identity")
    measured = columns(plan)
    ideal = plan.fit.factorization.matrix
    assert ((measured == 0.0).all(axis=0) == (ideal == 0.0).all(axis=0)).all()
    assert (np.arange(300) % 3 == 1).tolist() == (ideal == 0.0).all(axis=0).tolist()


def both(side):
    return 3.0 * so.Kronecker([so.RunningSum(side)] * 2) | so.Kronecker([so.RunningSum(side), total(side)])


def test_parts_of_unions_are_searched_for(tmp_path):
    workload = both(32)
    plan = so.plan(workload, PURE, mechanism="split")
    assert [part.mechanism for part in plan.fit.parts] == ["p-identity-laplace"] * 2
    B = columns(plan)
    assert np.abs(B).sum(axis=0).max() <= sum(plan.fit.door.sensitivity) * (1 + 1e-12)
    again = so.Plan.load(plan.save(tmp_path / "plan.json"))
    x = np.arange(1024).reshape(32, 32) % 11
    release = released(plan, x)
    assert (release.values == released(again, x).values).all()
    truth = np.concatenate([dense(part) @ x.reshape(-1) for part in workload.parts])
    assert np.abs(release.values - truth).max() < 12.0 * plan.max_stderr


def heavy(cells, weight):
    """Return a total of this weight, and all cells."""
    return so.GroupBy([np.zeros(cells, dtype=int), np.arange(cells)], weights=[weight, 1.0])


def uneven(ratio, shape):
    margins = [
        so.Kronecker([so.RunningSum(shape[0]), total(shape[1])]),
        so.Kronecker([total(shape[0]), so.RunningSum(shape[1])]),
    ]
    return Union([*margins, so.Histogram(shape)], [ratio, ratio, 1.0 / ratio])


@pytest.mark.parametrize("epsilon", [1.0, 100.0])
@pytest.mark.parametrize(
    "workload",
    [
        so.Kronecker([heavy(8, 100.0)] * 3) | so.Kronecker([total(8), total(8), so.RunningSum(8)]),
        so.Kronecker([heavy(20, 1e6), so.Histogram(20)]) | so.Kronecker([total(20), so.RunningSum(20)]),
        so.Kronecker([so.Matrix([[1.0] * 19 + [1.00005]]), so.RunningSum(20)]) | so.Kronecker([total(20), so.RunningSum(20)]),
        uneven(1e3, (20, 20)),
        uneven(1e6, (20, 20)),
        uneven(1e6, (40, 30)),
    ],
)  # fmt: skip
def test_no_answer_is_read_off_tables_that_do_not_know_it(workload, epsilon):
    """However heavy others are; and what precise tables lose in rounding is not in the answers of others."""
    privacies = [(so.PureDP(epsilon=epsilon), "p-identity")]
    if math.prod(workload.input_shape) > 1024:
        privacies.append((so.GaussianDP(mu=epsilon), "balanced"))
    for privacy, mechanism in privacies:
        try:
            plan = so.plan(workload, privacy, mechanism=mechanism)
        except so.errors.UnsupportedMechanismError as error:
            assert "digits" in str(error)
            plan = so.plan(workload, privacy)
        cells = np.random.default_rng(0).integers(0, plan.fit.domain.max_value, workload.input_shape)
        lost = released(plan, cells).values - released(plan, np.zeros_like(cells)).values
        lost = lost.reshape(-1) - dense(workload) @ cells.reshape(-1)
        assert (np.abs(lost) <= 0.02 * plan.fit.stderr).all()


@pytest.mark.parametrize("weight", [1e3, 1e6, 1e8])
@pytest.mark.parametrize("most", [None, 2**31])
def test_heavy_rows_leave_their_digits_to_others(weight, most):
    """Or such tables are refused, and `auto` plans something else."""
    half = so.GroupBy([np.arange(36) // 18, np.arange(36)], weights=[weight, 1.0])
    workload = so.Kronecker([half, total(30)]) | so.Kronecker([total(36), so.RunningSum(30)])
    given = {} if most is None else {"max_value": most}
    for privacy, mechanism in ((so.GaussianDP(mu=100.0), "balanced"), (PURE, "p-identity")):
        plans = [so.plan(workload, privacy, **given)]
        try:
            plans.append(so.plan(workload, privacy, mechanism=mechanism, **given))
        except so.errors.UnsupportedMechanismError as error:
            assert "digits" in str(error)
        for plan in plans:
            if plan.mechanism.startswith("identity"):
                continue  # sums of cells as large are rounded, whatever is measured
            cells = np.random.default_rng(1).integers(0, plan.fit.domain.max_value, (36, 30))
            lost = released(plan, cells).values - released(plan, np.zeros_like(cells)).values
            lost = lost.reshape(-1) - dense(workload) @ cells.reshape(-1)
            assert (np.abs(lost) <= 0.05 * plan.fit.stderr).all()


def test_queries_that_no_table_knows_are_refused_in_their_own_scale():
    half = so.GroupBy([np.arange(36) // 18, np.arange(36)], weights=[1e6, 1.0])
    workload = so.Kronecker([half, total(30)]) | so.Kronecker([total(36), so.RunningSum(30)])
    plan = so.plan(workload, so.GaussianDP(mu=1.0), mechanism="balanced")
    release = released(plan, np.ones((36, 30), dtype=int))
    known = np.kron(np.eye(36)[0] - np.eye(36)[1], np.ones(30))
    assert plan.fit.factorization.shares[-1] == 0.0
    release.answer(so.Matrix(known[None]))
    unknown = np.kron(np.where(np.arange(36) < 18, 1.0, -1.0), np.eye(30)[0])
    for size in (1.0, 1e-3, 1e-6):
        with pytest.raises(so.errors.UnsupportedMechanismError):
            release.answer(so.Matrix((known + size * unknown)[None]))


@pytest.mark.parametrize("size", [1e-100, 1e-10, 1e10, 1e100, 1e149])
def test_entries_far_from_one_are_refused(size, tmp_path):
    plan = so.plan(LARGE[0], so.GaussianDP(mu=0.5), mechanism="balanced")

    def change(record):
        found = record["factorization"]
        found["factors"] = [(size * np.array(factor)).tolist() for factor in plan.fit.factorization.factors]

    with pytest.raises(so.errors.PlanFileError):
        so.Plan.load(altered(plan, tmp_path / "plan.json", change))


@pytest.mark.parametrize("privacy", [PURE, so.GaussianDP(mu=1.0)])
def test_unions_of_one_product_are_planned(privacy):
    product = so.Kronecker([so.RunningSum(40), so.AllRanges(30)])
    one, weighted = so.plan(Union([product]), privacy), so.plan(3.0 * product, privacy)
    assert math.isclose(one.rmse, weighted.rmse, rel_tol=1e-6)
    assert one.rmse < 1.02 * so.plan(product, privacy).rmse


def test_searches_of_tables_end_when_they_are_told_to():
    calls = []

    def stop(*step):
        calls.append(step)
        return False

    for kind, law in (("p-identity-tables", "laplace"), ("balanced", "gaussian")):
        found = so.optimal.factorize(7.0 * LARGE[0] | LARGE[0].parts[2], kind=kind, law=law, progress=stop)
        assert sum(found.shares) > 0.5
    assert 1 <= len(calls) <= 4


def test_laplace_tables_are_not_those_of_another_guarantee(tmp_path):
    """Shares in a file of another mechanism would put Laplace noise under a Gaussian guarantee."""
    workload = so.Kronecker([so.Histogram(16), so.GroupBy(np.arange(18) // 2)]) | so.Histogram((16, 18))
    plan = so.plan(workload, so.GaussianDP(mu=0.1), mechanism="optimal")

    def change(found):
        found.update(factors=[[[0.0] * 16], [[0.0] * 18]], shares=[0.0, 0.0, 0.0, 1.0], certificate=None, gap=None)

    for law, beside in (("gaussian", []), ("laplace", [True, True]), ("laplace", [])):

        def forge(record, law=law, beside=beside):
            change(record["factorization"])
            record["factorization"].update(law=law, beside_cells=beside)

        with pytest.raises(so.errors.PlanFileError):
            so.Plan.load(altered(plan, tmp_path / "plan.json", forge))


@pytest.mark.parametrize("privacy", [PURE, so.GaussianDP(mu=1.0)])
@pytest.mark.parametrize(
    "change",
    [
        lambda found: found.__setitem__("shares", found["shares"][:-1]),
        lambda found: found.__setitem__("shares", [0.0] * 4),
        lambda found: found.__setitem__("shares", [-1.0, *found["shares"][1:]]),
        lambda found: found.__setitem__("shares", [2.0, *found["shares"][1:]]),
        lambda found: found.__setitem__("shares", ["1", *found["shares"][1:]]),
        lambda found: found.__setitem__("shares", {}),
        lambda found: found.__setitem__("shares", None),
        lambda found: found.__setitem__("shares", [0.0, 0.5, 0.5, 0.0]),  # cells are asked for
        lambda found: found.__setitem__("shares", [1e-300, 0.0, 0.0, 1.0]),
        lambda found: found.__setitem__("beside_cells", [True, False]),
        lambda found: found.__setitem__("factors", found["factors"][::-1]),
        lambda found: found["factors"].pop(),
        lambda found: found.__setitem__("factors", [[[1.0] * 35], found["factors"][1]]),
        lambda found: found.__setitem__("law", "laplace" if found["law"] == "gaussian" else "gaussian"),
    ],
)
def test_altered_tables_are_refused_or_as_private(privacy, change, tmp_path):
    mechanism = "p-identity" if privacy is PURE else "balanced"
    plan = so.plan(LARGE[0], privacy, mechanism=mechanism)
    path = altered(plan, tmp_path / "plan.json", lambda record: change(record["factorization"]))
    try:
        forged = so.Plan.load(path)
    except so.errors.PlanFileError:
        return
    B = columns(forged)
    norms = np.abs(B).sum(axis=0) if privacy is PURE else np.linalg.norm(B, axis=0)
    assert norms.max() <= sum(forged.fit.door.sensitivity) * (1 + 1e-9)
    assert math.isfinite(forged.rmse)


def altered(plan, path, change):
    record = json.loads(plan.save(path).read_text())
    record.pop("digest")
    change(record)
    content = json.dumps(record, sort_keys=True, separators=(",", ":"))
    path.write_text(json.dumps({**record, "digest": hashlib.sha256(content.encode()).hexdigest()}))
    return path


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record["factorization"].__setitem__("beside_cells", [True]),
        lambda record: record["factorization"].__setitem__("beside_cells", [True, 1]),
        lambda record: record["factorization"].__setitem__("beside_cells", [False, True]),
        lambda record: record["factorization"].__setitem__("beside_cells", {}),
        lambda record: record["factorization"].__setitem__("beside_cells", True),
        lambda record: record["factorization"]["factors"].pop(),
        lambda record: record["factorization"]["factors"].reverse(),
        lambda record: record["factorization"].__setitem__("kind", "ellipsoid"),
        lambda record: record["factorization"].__setitem__("law", "gaussian"),
    ],
)
def test_altered_products_are_refused(change, tmp_path):
    plan = so.plan(so.Kronecker([so.RunningSum(20), so.AllRanges(14)]), PURE, mechanism="p-identity")
    with pytest.raises(so.errors.PlanFileError):
        so.Plan.load(altered(plan, tmp_path / "plan.json", change))


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record["parts"][0].pop(),
        lambda record: record["parts"][0].append(record["parts"][0][2]),
        lambda record: record["parts"][0].__setitem__(2, None),
        lambda record: record["parts"][0].__setitem__(2, {}),
        lambda record: record["parts"][0].__setitem__(2, record["parts"][1][2]),
        lambda record: record["parts"][0].__setitem__(0, "weighted-tree-laplace"),
        lambda record: record["parts"][0][2].__setitem__("kind", "balanced"),
        lambda record: record["parts"][0][2].__setitem__("factors", []),
        # So heavy that estimates would have no digits, and variances below zero.
        lambda record: record["parts"][0][2].__setitem__("factors", [[[1e14] * 17]] * 2),
        lambda record: record.__setitem__("parts", {}),
        lambda record: record.__setitem__("parts", None),
    ],
)
def test_altered_searched_parts_are_refused(change, tmp_path):
    with pytest.raises(so.errors.PlanFileError):
        so.Plan.load(altered(so.plan(both(17), PURE, mechanism="split"), tmp_path / "plan.json", change))
