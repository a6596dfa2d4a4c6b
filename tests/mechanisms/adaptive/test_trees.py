"""Trees that grow where records are: the rule by hand, what follows from what was published, and what is said of it."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sordino as so

PURE = so.PureDP(epsilon=1.0)
APPROX = so.ApproxDP(epsilon=1.0, delta=1e-6)
KEY = bytes(range(32))
SQUARE = so.Kronecker([so.AllRanges(16), so.AllRanges(16)])


def tree(workload, privacy=PURE, mechanism="path-budget-tree", **options):
    return so.plan(workload, privacy, mechanism=mechanism, **options)


# The rule, step by step in plain Python: what the core grows from the same published numbers.


def parts(first, end, fan):
    cuts = [first + k * (end - first) // fan for k in range(fan + 1)]
    return list(itertools.pairwise(cuts))


def grown_by_hand(published, shape, epsilon):
    """Return boxes, what each was measured with, and in what order: of Laplace noise."""
    numbers, found = iter(published), []
    level = [(tuple((0, n) for n in shape), 0.02, 0.98)]
    while level:
        below = []
        for box, share, left in level:
            value = next(numbers)
            found.append((box, share, value))
            sides = [end - first for first, end in box]
            worth = max(value, 0.0) * left * epsilon / 3.0
            if left == 0.0:
                continue
            live = [side for side in sides if side > 1]
            k = math.sqrt(worth) if len(live) > 1 else worth
            if not live or k < 1.5:
                found.append((box, left, next(numbers)))
                continue
            if len(live) > 1:
                most = 4 if k >= 3 and max(sides) >= 4 else 2
            elif max(sides) <= 16 and 1.5 * k >= max(sides):
                most = max(sides)
            else:
                most = max(f for f in (2, 4, 8) if f <= max(min(8, 1.5 * k), 2))
            fans = [min(side, most) for side in sides]
            last = k < 1.5 * most or fans == sides
            part = 0.4
            if len(live) > 1:
                levels = next(n for n in range(1, 99) if most**n >= min(k, max(sides)))
                part = 1.0 / sum(4.0 ** (n / 3.0) for n in range(levels))
            given = left if last else left * part
            cut = [parts(first, end, fan) for (first, end), fan in zip(box, fans, strict=True)]
            boxes = [(a,) for a in cut[0]] if len(cut) == 1 else [(a, b) for a in cut[0] for b in cut[1]]
            below += [(each, given, left - given) for each in boxes]
        level = below
    assert next(numbers, None) is None
    return found


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("shape", [(64,), (50,), (16, 16), (9, 23), (30, 2)])
def test_the_tree_grows_by_its_rule(shape, seed):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(rng.choice([0.0, 0.3, 9.0, 60.0], size=shape))
    with so.testing.deterministic_noise(rng.bytes(32)):
        release = tree(so.Histogram(shape)).release(counts)
    published = release.measured.values()
    hand = grown_by_hand(published, shape, 1.0)
    nodes = release.nodes
    boxes = {tuple(map(tuple, box)) for box in nodes.boxes.tolist()}
    assert boxes == {tuple((first, end - 1) for first, end in box) for box, _, _ in hand}
    last = {box: (share, value) for box, share, value in hand}
    covered = np.zeros(shape)
    for box, value, stderr in zip(nodes.boxes.tolist(), nodes.unbiased, nodes.stderr, strict=True):
        if np.isnan(value):  # it decided on its parts
            continue
        covered[tuple(slice(first, last + 1) for first, last in box)] += 1.0
        share, expected = last[tuple((first, end + 1) for first, end in box)]
        assert value == expected
        assert stderr == pytest.approx(math.sqrt(0.5) / math.sinh(0.5 * share), rel=1e-6)
    assert (covered == 1.0).all()  # one of the leaves
    # Every cell's path has spent all of the budget.
    spent = np.zeros(shape)
    for box, share, _ in hand:
        spent[tuple(slice(first, end) for first, end in box)] += share
    assert spent == pytest.approx(np.ones(shape), abs=1e-6)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=40), st.binary(min_size=32, max_size=32), st.booleans())
@settings(max_examples=60, deadline=None)
def test_answers_are_read_off_one_table(counts, key, gaussian):
    with so.testing.deterministic_noise(key):
        release = tree(so.RunningSum(len(counts)), APPROX if gaussian else PURE).release(counts)
    cells, nodes = release.cells, release.nodes
    assert (cells >= 0.0).all() and release.values == pytest.approx(np.cumsum(cells))
    for (first, last), count in zip(nodes.boxes[:, 0], nodes.counts, strict=True):
        assert cells[first : last + 1].sum() == pytest.approx(count, abs=1e-6)
    ranges = release.answer(so.AllRanges(len(counts)))
    assert ranges.values == pytest.approx(release.sum(so.AllRanges(len(counts)).ranges))
    assert ranges.answer(so.RunningSum(len(counts))).values == pytest.approx(release.values)


def test_with_little_noise_it_is_the_table():
    counts = np.arange(256).reshape(16, 16)
    for mechanism, privacy in (("path-budget-tree", so.PureDP(epsilon=1e5)), ("path-budget-tree", so.GaussianDP(mu=1e5)),
                               ("full-tree", so.PureDP(epsilon=1e5))):  # fmt: skip
        release = tree(SQUARE, privacy, mechanism, max_value=1000).release(counts)
        assert release.cells == pytest.approx(counts, abs=1e-3)
        assert release.query(np.sum) == pytest.approx(counts.sum(), abs=1e-3)


def test_a_product_of_many_ranges_is_asked_by_boxes():
    with so.testing.deterministic_noise(KEY):
        release = tree(so.Kronecker([so.AllRanges(1024)] * 2)).release(np.ones((1024, 1024), dtype=int))
    assert release.sum([[[0, 1023], [0, 1023]]]) == pytest.approx(2**20, abs=1000)
    with pytest.raises(so.errors.UnsupportedMechanismError):
        _ = release.values


# Statistics: fixed seeds, rates of false alarm in the comments.


@pytest.mark.parametrize("privacy", [PURE, APPROX])
def test_intervals_of_nodes_cover(privacy):
    """Of what was not divided, given where the tree has grown: in all, and of nodes below the top that are empty.

    Thousands of intervals at .9, 6 standard errors: nodes that were divided by a mistake would be found among the empty ones.
    """
    rng = np.random.default_rng(5)
    counts = np.zeros(256, dtype=int)
    counts[rng.choice(64, 20, replace=False)] = 400
    inside, empty = [], []
    for _ in range(150):
        with so.testing.deterministic_noise(rng.bytes(32)):
            nodes = tree(so.Histogram(256), privacy).release(counts).nodes
        found = nodes.interval(0.9)
        truth = np.array([counts[first : last + 1].sum() for first, last in nodes.boxes[:, 0]])
        known = np.isfinite(nodes.unbiased)
        within = (found.lower <= truth) & (truth <= found.upper)
        inside += list(within[known])
        empty += list(within[known & (truth == 0) & (nodes.depths == 1)])
        together = nodes.interval(0.9, simultaneous=True)
        assert (together.upper - together.lower > found.upper - found.lower)[known].all()
    for some in (inside, empty):
        share, error = np.mean(some), math.sqrt(0.09 / len(some))
        assert len(some) > 500 and share > 0.9 - 6 * error
    share, error = np.mean(inside), math.sqrt(0.09 / len(inside))
    assert len(inside) > 4000
    assert share < 0.9 + 6 * error or privacy is PURE  # whole numbers are covered more often than asked


def test_sparse_series_have_half_the_error():
    """140 heavy cells of 4,096: running sums against a tree, and the best, that do not look; 8 draws, far from limits."""
    rng = np.random.default_rng(3)
    privacy = so.PureDP(epsilon=0.1)
    counts = np.zeros(4096, dtype=int)
    counts[rng.choice(4096, 140, replace=False)] = rng.geometric(1 / 180, 140)
    truth, squares = np.cumsum(counts), []
    plan = tree(so.RunningSum(4096), privacy)
    for _ in range(8):
        with so.testing.deterministic_noise(rng.bytes(32)):
            squares.append(np.mean((plan.release(counts).values - truth) ** 2))
    assert math.sqrt(np.mean(squares)) < 0.75 * so.plan(so.RunningSum(4096), privacy, mechanism="weighted-tree").rmse
    assert math.sqrt(np.mean(squares)) < 0.85 * so.plan(so.RunningSum(4096), privacy).rmse


def test_dense_tables_have_the_error_that_is_said():
    """So many records that every cell is reached: 30 draws of 5 kinds; the mean of squares is within a tenth or so."""
    rng = np.random.default_rng(4)
    for workload, privacy in ((so.AllRanges(64), PURE), (so.RunningSum(64), APPROX), (so.Histogram((8, 8)), PURE)):
        plan = tree(workload, privacy)
        counts = rng.poisson(5000, size=workload.input_shape)
        truth = workload.core.apply(counts.reshape(-1).astype(float))
        squares = []
        for _ in range(60):
            with so.testing.deterministic_noise(rng.bytes(32)):
                squares.append(np.mean((plan.release(counts).values.reshape(-1) - truth) ** 2))
        assert math.sqrt(np.mean(squares)) == pytest.approx(plan.rmse, rel=0.15)


# What is said, and what is refused.


def test_what_a_plan_says():
    plan = tree(so.AllRanges(100), APPROX)
    assert plan.fit.rmse_kind == "noise only" and plan.optimality is None and plan.max_stderr is None
    assert plan.bound_kind == "none" and plan.mechanism == "path-budget-tree-gaussian"
    assert "where records are" in plan.explain() and "noise only" in plan.explain()
    assert {row["mechanism"] for row in tree(SQUARE).compare().rows} == {
        "path-budget-tree-laplace",
        "full-tree-laplace",
    }
    assert so.plan(so.AllRanges(100), PURE).mechanism not in {row["mechanism"] for row in plan.compare().rows}
    epsilon = so.privacy_for(so.AllRanges(100), rmse=20.0, mechanism="path-budget-tree").epsilon
    assert tree(so.AllRanges(100), so.PureDP(epsilon=epsilon)).rmse == pytest.approx(20.0, rel=2e-3)
    release = plan.release(np.arange(100))
    assert "nodes" in release._repr_html_() and release.rmse_kind == "noise only"


@pytest.mark.parametrize("total, said", [(300, True), (10**7, False)])
def test_sparse_data_is_advised_to_look(total, said):
    for constraint, unit in ((so.optimal.PublicTotal(total), so.ReplaceOne(1)), (so.optimal.PublicBound(total), None)):
        plan = so.plan(so.AllRanges(100), PURE, constraint=constraint, unit=unit)
        assert ("path-budget-tree" in plan.explain()) == said
    assert "path-budget-tree" not in so.plan(so.AllRanges(100), PURE).explain()


def test_advice_never_stops_a_plan():
    plan = so.plan(
        so.Histogram(64), so.PureDP(epsilon=1e-8), constraint=so.optimal.PublicBound(10), effort="closed_form"
    )
    assert "identity-laplace" in plan.explain()


def test_a_full_tree_decides_nothing():
    plan = tree(so.Histogram((8, 8)), mechanism="full-tree")
    assert "look" not in plan.explain() and "every cell" in plan.explain()
    nodes = plan.release(np.ones((8, 8), dtype=int)).nodes
    assert np.isfinite(nodes.unbiased[1:]).all() and np.isnan(nodes.unbiased[0])


def test_units_scale_the_noise():
    one = tree(so.AllRanges(64)).fit.door.noise
    assert tree(so.AllRanges(64), unit=so.AddRemove(5, per_cell=1)).fit.door.noise == pytest.approx(5 * one, rel=1e-6)
    assert tree(so.AllRanges(64), unit=so.ReplaceOne(1)).fit.door.noise == pytest.approx(2 * one, rel=1e-6)
    gaussian = tree(so.AllRanges(64), APPROX).fit.door.noise
    moved = tree(so.AllRanges(64), APPROX, unit=so.ReplaceOne(1)).fit.door.noise
    assert moved == pytest.approx(math.sqrt(2.0) * gaussian, rel=1e-6)


def test_what_is_no_tree_is_refused():
    refused = so.errors.UnsupportedMechanismError
    for workload in (
        so.MovingAverage(3, 8),
        so.Marginals([2, 2], k=1),
        so.Histogram((2, 2, 2)),
        so.Histogram(4) | so.AllRanges(4),
    ):
        with pytest.raises(refused):
            tree(workload)
    with pytest.raises(refused):
        tree(so.AllRanges(8), mechanism="full-tree")
    with pytest.raises(refused):
        tree(SQUARE, so.GaussianDP(mu=1.0), mechanism="full-tree", noise="gaussian")
    with pytest.raises(refused):
        tree(so.AllRanges(8), mechanism="path-budget-tree-gaussian")
    with pytest.raises(refused):
        tree(so.AllRanges(8), integral=False)
    with pytest.raises(so.errors.InvalidParameterError):
        tree(so.AllRanges(8), constraint=so.optimal.PublicBound(9))
    with pytest.raises(refused):
        so.privacy_for(so.AllRanges(8), max_stderr=3.0, mechanism="path-budget-tree")
    release = tree(so.AllRanges(8)).release(np.arange(8))
    with pytest.raises(so.errors.ShapeError):
        release.answer(so.Histogram(9))
    with pytest.raises(refused):
        release.answer(so.SortedHistogram(8))


def test_input_of_many_forms():
    sparse = pytest.importorskip("scipy.sparse")
    pandas = pytest.importorskip("pandas")
    counts = np.array([0, 7, 0, 0, 5, 0, 0, 300])
    forms = [counts, counts.astype(np.uint8) * 1, counts.tolist(), pandas.Series(counts, index=list("abcdefgh"))]
    forms[1] = counts.astype(np.int16)
    forms.append(sparse.coo_array(counts.reshape(1, 8)))
    found = []
    for form in forms:
        with so.testing.deterministic_noise(KEY):
            found.append(tree(so.Histogram(8)).release(form))
    assert all(np.array_equal(each.cells, found[0].cells) for each in found)
    assert list(found[3].labels) == list("abcdefgh") and list(found[3].to_frame()["index"]) == list("abcdefgh")
    assert found[0].labels is None


def test_a_ledger_is_charged_once(tmp_path):
    ledger = so.Ledger(so.PureDP(epsilon=1.5), store=so.Store(str(tmp_path / "store.db"), key=KEY))
    plan = tree(so.AllRanges(16))
    first = plan.release(np.arange(16), ledger=ledger, request_id="a")
    again = plan.release(np.arange(16), ledger=ledger, request_id="a")
    assert np.array_equal(first.cells, again.cells) and len(ledger.history) == 1 and first.accounted
    with pytest.raises(so.errors.BudgetExceededError):
        plan.release(np.arange(16), ledger=ledger, request_id="b")


def test_labels_come_again(tmp_path):
    pandas = pytest.importorskip("pandas")
    ledger = so.Ledger(so.PureDP(epsilon=1.5), store=so.Store(str(tmp_path / "store.db"), key=KEY))
    column = pandas.Series([1, 2, 3, 4], index=list("abcd"))
    for _ in range(2):
        release = tree(so.Histogram(4)).release(column, ledger=ledger, request_id="a")
        assert list(release.labels) == list("abcd")
    assert list(so.adaptive.TreeRelease.load(release.save(tmp_path / "tree")).labels) == list("abcd")


def test_files_of_trees(tmp_path):
    plan = tree(SQUARE)
    release = plan.release(np.ones((16, 16), dtype=int))
    path = release.save(tmp_path / "tree.json")
    found = so.adaptive.TreeRelease.load(path)
    assert np.array_equal(found.cells, release.cells) and found.fit.is_same(release.fit)
    record = json.loads(path.read_text())
    assert record["kind"] == "tree-release"
    with pytest.raises(so.errors.PlanFileError):
        so.smooth.SmoothRelease.load(path)


def test_a_map_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    for workload, counts in ((SQUARE, np.eye(16, dtype=int) * 90), (so.RunningSum(30), np.arange(30))):
        figure = tree(workload).release(counts).plot(tmp_path / "tree.png")
        assert "where records are" in figure.axes[0].get_title(loc="left") or figure.axes
    with pytest.raises(so.errors.UnsupportedMechanismError):
        tree(SQUARE).plot()
