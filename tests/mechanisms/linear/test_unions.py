"""Unions of any size: one root for what is asked of one line, a share for each part of others, no cliff."""

import hashlib
import json
import math
import warnings

import numpy as np
import pytest
import scipy.sparse
import scipy.stats

import sordino as so
from sordino.accuracy.diagonal_bound import diagonal_mean
from sordino.accuracy.factorizations import dense

ONE = so.GaussianDP(mu=1.0)
LOUD = so.GaussianDP(mu=1e6)
PURE = so.PureDP(epsilon=1.0)
FALSE_ALARM = 1e-9


def total(cells):
    return so.GroupBy([np.zeros(cells, dtype=int)])


def released(plan, cells, number):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with so.testing.deterministic_noise(bytes([number] * 32)):
            return plan.release(cells)


def margins(side, kind):
    return so.Kronecker([kind(side), total(side)]) | so.Kronecker([total(side), kind(side)])


@pytest.mark.parametrize(
    ("build", "most"),
    [
        (lambda n: so.AllRanges(n) | so.Histogram(n), 1.001),
        (lambda n: so.AllRanges(n) | (n * n / 16) * so.Histogram(n), 1.001),
        (lambda n: so.RunningSum(n) | so.Histogram(n), 1.006),
        (lambda n: 0.5 * so.Histogram(n) | 3 * so.RunningSum(n), 1.006),
    ],
    ids=["ranges, cells", "ranges, heavy cells", "sums, cells", "weighted"],
)
def test_queries_with_modes_in_common_are_within_their_bound(build, most):
    """Certified at every size, from one size to the next by less than a percent."""
    over = [so.plan(build(n), ONE).optimality for n in (256, 513, 1025, 2**15)]
    assert max(over) < most
    assert np.abs(np.diff(over)).max() < 0.01


@pytest.mark.parametrize(
    ("build", "rise"),
    [
        (lambda n: so.AllRanges(n) | n * so.RunningSum(n), 1.02),
        (lambda n: so.RunningSum(n) | n * total(n), 1.2),
        (lambda n: so.AllRanges(n) | so.RunningSum(n) | so.Histogram(n) | total(n), 1.02),
    ],
    ids=["ranges, sums", "sums, total", "all"],
)
def test_other_queries_of_a_line_have_no_cliff(build, rise):
    """The optimum is known up to 512 cells; errors grow with the logarithm of the length, and by no more than `rise`."""
    small, large = (so.plan(build(n), ONE) for n in (512, 2048))
    growth = max(so.plan(kind(2048), ONE).rmse / so.plan(kind(512), ONE).rmse for kind in (so.RunningSum, so.AllRanges))
    assert large.rmse <= rise * growth * small.rmse
    assert large.fit.bound.value < large.rmse


@pytest.mark.parametrize("privacy", [ONE, PURE], ids=["gaussian", "pure"])
def test_parts_measured_one_by_one_are_within_two_plans(privacy):
    """Ranges along either axis of 65,536 cells: at most what two plans at half the budget have."""
    both = so.plan(margins(256, so.AllRanges), privacy, mechanism="split")
    chosen = so.plan(margins(256, so.AllRanges), privacy)
    alone = so.plan(so.Kronecker([so.AllRanges(256), total(256)]), privacy)
    cells = so.plan(margins(256, so.AllRanges), privacy, mechanism="identity")
    times = math.sqrt(2.0) if privacy == ONE else 2.0
    # Tables that are decoded together have less.
    assert chosen.mechanism == ("balanced-gaussian" if privacy == ONE else "p-identity-laplace")
    assert chosen.rmse < 0.98 * both.rmse <= times * alone.rmse * 1.01
    assert both.rmse < 0.1 * cells.rmse
    assert "part 1" in both.explain()


def test_shares_are_the_best_ones():
    """Parts of unequal errors and weights: `sum sqrt(E)` of the whole, as the shares of least error give."""
    first, second = so.Kronecker([so.RunningSum(64), total(8)]), so.Kronecker([total(64), so.AllRanges(8)])
    workload = 5.0 * first | second
    plan = so.plan(workload, ONE, mechanism="split")
    errors = [
        weight * part.core.answers_len * so.plan(part, ONE, effort="closed_form").rmse ** 2
        for part, weight in zip(workload.parts, workload.weights, strict=True)
    ]
    asked = sum(w * p.core.answers_len for p, w in zip(workload.parts, workload.weights, strict=True))
    least = sum(math.sqrt(e) for e in errors) / math.sqrt(asked)
    assert least * (1.0 - 1e-6) <= plan.rmse <= least * 1.002


@pytest.mark.parametrize("privacy", [ONE, PURE], ids=["gaussian", "pure"])
@pytest.mark.parametrize("name", ["line", "margins", "tables"])
def test_measured_errors_are_those_planned(privacy, name):
    """Chi-square of Gaussian errors; a mean of squares of others, by the false-alarm rate of a normal with room."""
    workload = (
        so.RunningSum(1100) | 9.0 * so.Histogram(1100) | total(1100) if name == "line" else margins(40, so.RunningSum)
    )
    together = "balanced" if privacy == ONE else "p-identity"
    alone = name == "margins" or (name == "line" and privacy == PURE)
    plan = so.plan(workload, privacy, mechanism="split" if alone else together)
    cells = np.arange(math.prod(workload.input_shape)).reshape(workload.input_shape) % 7
    truth = np.concatenate([dense(part) @ cells.reshape(-1) for part in workload.parts])
    release = released(plan, cells, 0)
    assert np.abs(release.values - truth).max() < 12.0 * plan.max_stderr
    wide = release.interval(0.95)
    covered = np.mean((wide.lower <= truth) & (truth <= wide.upper))
    assert covered > 0.8
    squares = [np.mean(((released(plan, cells, k).values - truth) / plan.fit.stderr) ** 2) for k in range(60)]
    spread = np.std(squares, ddof=1) / math.sqrt(len(squares))
    assert abs(np.mean(squares) - 1.0) <= spread * scipy.stats.t.isf(FALSE_ALARM / 2, len(squares) - 1)


def test_plans_of_parts_come_back_from_files(tmp_path):
    plan = so.plan(margins(40, so.AllRanges), ONE, mechanism="split")
    plan.save(tmp_path / "plan.json")
    again = so.Plan.load(tmp_path / "plan.json")
    assert (again.mechanism, again.rmse, again.fit.parts) == (plan.mechanism, plan.rmse, plan.fit.parts)
    cells = np.ones((40, 40), dtype=int)
    assert (released(plan, cells, 0).values == released(again, cells, 0).values).all()


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record.pop("parts"),
        lambda record: record["parts"].pop(),
        lambda record: record["parts"][0].__setitem__(0, "identity-laplace"),
        lambda record: record["parts"][0].__setitem__(0, "no such"),
        lambda record: record["parts"][0].__setitem__(1, 2.7),
        lambda record: record["parts"][0].__setitem__(1, 5),
        lambda record: record["parts"][0].__setitem__(1, True),
    ],
)
def test_altered_parts_are_refused(tmp_path, change):
    path = so.plan(margins(6, so.AllRanges), ONE, mechanism="split").save(tmp_path / "plan.json")
    record = json.loads(path.read_text())
    record.pop("digest")
    change(record)
    content = json.dumps(record, sort_keys=True, separators=(",", ":"))
    path.write_text(json.dumps({**record, "digest": hashlib.sha256(content.encode()).hexdigest()}))
    with pytest.raises(so.errors.PlanFileError):
        so.Plan.load(path)


def test_filters_are_axes_of_products():
    """A ring and cells attain the bound of the ring, at any size."""
    ring = so.MovingAverage(30, 2**13, boundary="circular")
    assert so.plan(so.Kronecker([ring, so.Histogram(8)]), ONE).optimality == pytest.approx(1.0, abs=1e-6)
    window = so.Kronecker([so.MovingAverage(7, 2**12), so.RunningSum(8)])
    assert so.plan(window, ONE).optimality < 1.03


def test_more_answers_than_are_listed():
    """Ranges of a million cells, and the cells: the mean is known, an answer is computed when asked for."""
    workload = so.AllRanges(2**15) | 1e5 * so.Histogram(2**15)
    plan = so.plan(workload, ONE)
    assert plan.optimality < 1.001
    cells = np.arange(2**15) % 5
    release = released(plan, cells, 0)
    asked = release.answer(so.GroupBy([np.arange(2**15) // 2**13]))
    assert np.abs(asked.values - cells.reshape(4, -1).sum(axis=1)).max() < 12.0 * asked.stderr.max()
    with pytest.raises(so.errors.UnsupportedMechanismError):
        workload.answer_weights()
    with pytest.raises(so.errors.InvalidParameterError):
        so.workloads.Union([workload, total(2**15)])
    with pytest.raises(so.SordinoError):
        _ = release.values


def test_bounds_of_many_queries_are_below_those_of_few_written_out():
    """The closed form against a decomposition, where both are known."""
    for parts in (
        so.RunningSum(1025) | 4.0 * so.Histogram(1025),
        so.AllRanges(1025) | 50.0 * so.RunningSum(1025),
    ):
        W = sum(weight * gram(part) for part, weight in zip(parts.parts, parts.weights, strict=True))
        values, vectors = np.linalg.eigh(W)
        s = (vectors**2) @ np.sqrt(values)
        asked = sum(w * p.core.answers_len for p, w in zip(parts.parts, parts.weights, strict=True))
        exact = math.sqrt(float(np.sum(s * s)) / asked)
        assert 0.85 * exact <= diagonal_mean(parts) <= exact * (1.0 + 1e-9)


def gram(part):
    if isinstance(part, so.AllRanges):
        place = np.arange(1, part.length + 1)
        return np.minimum.outer(place, place) * (part.length + 1 - np.maximum.outer(place, place)).astype(float)
    A = dense(part)
    return A.T @ A


def test_marginals_joined_are_marginals():
    """Table for table the same plan, at any number of cells; of two attributes a table of counts stays one."""
    levels = [4, 3, 5]
    joined = so.Marginals(levels, k=1) | 2.0 * so.Marginals(levels, sets=[(0, 1), (1, 2)])
    one = so.Marginals(levels, sets=[(0,), (1,), (2,), (0, 1), (1, 2)], weights=[1, 1, 1, 2, 2])
    assert so.plan(joined, ONE).digest == so.plan(one, ONE).digest
    counts = np.arange(60).reshape(levels)
    assert (released(so.plan(joined, ONE), counts, 1).values == released(so.plan(one, ONE), counts, 1).values).all()
    pair = so.Marginals([4, 3], k=1) | so.Marginals([4, 3], k=2)
    table = np.arange(12).reshape(4, 3)
    release = so.plan(pair, LOUD).release(table)
    assert np.abs(release.values - np.concatenate([table.sum(1), table.sum(0), table.reshape(-1)])).max() < 0.01
    again = so.Marginals(levels, k=1) | so.Marginals(levels, k=1)
    assert so.plan(again, ONE).workload == again


@pytest.mark.parametrize("kind", [so.AllRanges, so.RunningSum])
def test_parts_may_measure_cells_and_products_of_many_units(kind):
    """What one part measures has forty bits more than what the other does."""
    for shape in ((3, 1), (64, 64), (128, 64)):
        boxes, cells = so.Kronecker([kind(side) for side in shape]), so.Histogram(shape)
        plan = so.plan(boxes | cells, ONE, mechanism="split")
        errors = [p.core.answers_len * so.plan(p, ONE, effort="closed_form").rmse ** 2 for p in (boxes, cells)]
        asked = boxes.core.answers_len + cells.core.answers_len
        assert plan.rmse <= 1.01 * sum(map(math.sqrt, errors)) / math.sqrt(asked)


def test_totals_along_other_axes_take_no_bits():
    """Three margins of a cube of 64,000 cells: shares of a third each."""
    side, axes = 40, range(3)
    one = so.Kronecker([so.AllRanges(side), total(side), total(side)])
    three = [so.Kronecker([so.AllRanges(side) if k == own else total(side) for k in axes]) for own in axes]
    plan = so.plan(three[0] | three[1] | three[2], ONE, mechanism="split")
    assert plan.rmse <= 1.01 * math.sqrt(3.0) * so.plan(one, ONE).rmse


def test_unions_within_unions_are_one():
    margin = margins(40, so.AllRanges)
    cells = so.Histogram((40, 40))
    within = so.workloads.Union([margin, cells], weights=[2.0, 3.0])
    assert so.plan(within, ONE).digest == so.plan(2.0 * margin | 3.0 * cells, ONE).digest


def test_products_do_not_depend_on_the_order_of_their_axes():
    one, other = so.MovingAverage(7, 40), so.RunningSum(8)
    first, second = (so.plan(so.Kronecker(pair), ONE, mechanism="balanced") for pair in ((one, other), (other, one)))
    assert first.fit.domain == second.fit.domain
    assert first.rmse == pytest.approx(second.rmse, rel=1e-6)
    cells = np.arange(320).reshape(40, 8)
    near = [so.plan(w, LOUD, mechanism="balanced") for w in (so.Kronecker([one, other]), so.Kronecker([other, one]))]
    answers = near[0].release(cells).values, near[1].release(cells.T).values
    assert np.abs(answers[0] - answers[1].T).max() < 0.1


def test_parts_that_list_their_answers_go_with_ranges_that_do_not():
    n = 12_000
    workload = so.AllRanges(n) | 100.0 * so.MovingAverage(7, n)
    plan = so.plan(workload, ONE, mechanism="split")
    assert plan.rmse < 1.5 * plan.fit.bound.value


def test_long_centred_filters_have_a_diagonal_bound():
    workload = so.MovingAverage(7, 600, boundary="same")
    bound = diagonal_mean(workload)
    A = dense(workload)
    values, vectors = np.linalg.eigh(A.T @ A)
    exact = float(np.linalg.norm((vectors**2) @ np.sqrt(np.maximum(values, 0.0)))) / math.sqrt(600)
    assert 0.98 * exact <= bound <= exact * (1.0 + 1e-9)


@pytest.mark.parametrize("privacy", [ONE, PURE], ids=["gaussian", "pure"])
def test_shares_for_the_largest_error_make_that_of_all_parts_equal(privacy):
    first, second = so.Kronecker([so.RunningSum(64), total(8)]), so.Kronecker([total(64), so.AllRanges(8)])
    mean, most = (so.plan(first | second, privacy, mechanism="split", objective=o) for o in ("mean", "max"))
    assert most.max_stderr < mean.max_stderr and mean.rmse < most.rmse
    largest = [stderr.max() for stderr in (first | second).split(most.fit.answers_stderr)]
    assert largest[0] == pytest.approx(largest[1], rel=0.02)


def test_amounts_have_room_in_tables_and_in_streams():
    """As many people who add the most as people who are counted: 2**24, before the lattice asks for less."""
    unit = so.AddRemove(12_800)
    assert so.plan(so.Histogram(8), PURE, unit=unit).fit.domain.max_value == 2**24 * 2**13
    steps = so.UserLevel(1, per_step=12_800)
    stream = so.plan(so.Continual(so.RunningSum(64)), PURE, unit=steps)
    assert stream.fit.domain.max_value > 2**24


def two_of_three(side, ones):
    """Ranges of any two of three axes, whatever the third is."""
    sets = ((0, 1), (0, 2), (1, 2))
    parts = [so.Kronecker([so.AllRanges(side) if axis in set_ else ones(side) for axis in range(3)]) for set_ in sets]
    return parts[0] | parts[1] | parts[2]


def test_the_order_of_axes_costs_no_room():
    """Totals come before roots, which may leave floats: cells may be as large wherever the total stands."""
    plans = [so.plan(part, ONE, mechanism="balanced") for part in two_of_three(12, total).parts]
    assert len({(plan.rmse, plan.fit.domain.max_value) for plan in plans}) == 1
    union = so.plan(two_of_three(12, total), ONE, mechanism="split")
    assert union.fit.domain.max_value >= 2**20
    assert union.fit.passed_over is None
    assert union.rmse < 0.3 * so.plan(two_of_three(12, total), ONE, mechanism="identity").rmse
    cells = np.random.default_rng(3).integers(0, 2**12, (12, 12, 12))
    found = released(so.plan(two_of_three(12, total), LOUD, mechanism="split"), cells, 5)
    sums = cells.sum(axis=0)
    first, last = np.triu_indices(12)
    pad = np.zeros((13, 13), dtype=int)
    pad[1:, 1:] = sums.cumsum(axis=0).cumsum(axis=1)
    a, b = np.meshgrid(range(len(first)), range(len(first)), indexing="ij")
    truth = (
        pad[last[a] + 1, last[b] + 1]
        - pad[first[a], last[b] + 1]
        - pad[last[a] + 1, first[b]]
        + pad[first[a], first[b]]
    )
    np.testing.assert_allclose(found.values[-truth.size :], truth.reshape(-1), atol=0.1)


def test_a_row_of_ones_is_the_total_of_its_axis():
    for ones in (
        lambda side: so.Matrix(np.ones((1, side))),
        lambda side: so.Matrix(scipy.sparse.csr_array(np.ones((1, side)))),
    ):
        assert so.plan(two_of_three(6, ones), ONE).digest == so.plan(two_of_three(6, total), ONE).digest
    pair = (so.Kronecker([so.AllRanges(40), one]) for one in (so.Matrix([[1.0]]), total(1)))
    assert len({so.plan(asked, ONE, effort="closed_form").rmse for asked in pair}) == 1


@pytest.mark.parametrize("side", [12, 32])
@pytest.mark.parametrize("queries", [so.AllRanges, so.RunningSum])
def test_what_products_have_in_common_is_measured_once(queries, side):
    """Less than any shares of the parts, the same answers, a proved bound; weights of parts are those of sets."""
    asked = [queries(side), queries(side), total(side)]
    parts = [so.Kronecker([asked[i] for i in order]) for order in ((0, 1, 2), (0, 2, 1), (2, 0, 1))]
    union = 2.0 * parts[0] | parts[1] | parts[2]
    plan, apart = (so.plan(union, ONE, mechanism=name) for name in ("residual", "split"))
    assert plan.rmse < 0.95 * apart.rmse
    assert plan.fit.bound.value < plan.rmse
    # Of few answers a search for the least error still pays.
    assert so.plan(union, ONE).rmse <= 1.01 * plan.rmse
    cells = np.random.default_rng(3).integers(0, 2**12, (side,) * 3)
    own, other = (so.plan(union, LOUD, mechanism=name) for name in ("residual", "split"))
    tolerance = 20 * (own.fit.max_stderr + other.fit.max_stderr)
    np.testing.assert_allclose(own.release(cells).values, other.release(cells).values, atol=tolerance)


def test_products_of_other_queries_have_nothing_in_common():
    side = 12
    different = so.Kronecker([so.AllRanges(side), so.Histogram(side)]) | so.Kronecker(
        [so.RunningSum(side), total(side)]
    )
    repeated = margins(side, so.AllRanges) | so.Kronecker([so.AllRanges(side), total(side)])
    weighed = so.Kronecker([so.AllRanges(side), so.GroupBy([[0] * side], weights=[2.0])]) | so.Histogram((side, side))
    for union in (different, repeated, weighed, so.AllRanges(side) | so.Histogram(side)):
        with pytest.raises(so.errors.UnsupportedMechanismError, match="same attributes"):
            so.plan(union, ONE, mechanism="residual")
