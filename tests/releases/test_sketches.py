"""Sketches at many places: linear bit for bit, refused where they do not belong together, silent about the data."""

import copy
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sordino as so

PURE = so.PureDP(epsilon=1.0)
KINDS = ("sparse", "bernoulli", "hadamard")
CELLS, K = 50, 20
SECRET = 98765432123


def make(kind="sparse", **options):
    return so.sketches.Sketch(CELLS, K, **{"sketch": kind, "nonzeros": 3, "seed": 7} | options)


def sums(sketch):
    return sketch.core.sums().tolist()


def exact(sketch, table):
    """The sums in Python's integers."""
    columns = [sketch.operator.column(j).tolist() for j in range(CELLS)]
    return [sum(column[i] * int(x) for column, x in zip(columns, table, strict=True)) for i in range(K)]


@given(
    st.sampled_from(KINDS),
    st.lists(st.tuples(st.integers(0, CELLS - 1), st.integers(-(2**50), 2**50)), max_size=40),
    st.randoms(use_true_random=False),
)
def test_any_way_to_the_same_data_gives_the_same_bytes_of_sums(kind, records, order):
    table = np.zeros(CELLS, dtype=np.int64)
    for cell, count in records:
        table[cell] += count
    at_once, one_by_one, places = make(kind), make(kind), [make(kind) for _ in range(3)]
    at_once.add(table)
    assert sums(at_once) == exact(at_once, table)
    for cell, count in order.sample(records, len(records)):
        one_by_one.update(cell, count)
        order.choice(places).update([cell], [count])
    assert sums(one_by_one) == sums(at_once)
    merged = places[2] + places[0]
    merged += places[1]
    assert sums(merged) == sums(at_once)
    # And all of it taken away again leaves nothing.
    for cell, count in records:
        merged.update(cell, -count)
    assert sums(merged) == [0] * K


@pytest.mark.parametrize("kind", KINDS)
def test_a_released_sketch_is_a_released_table(kind, known_noise):
    compression = so.sketches.Compression(measurements=K, sparsity=2, sketch=kind, nonzeros=3, seed=7)
    table = np.random.default_rng(1).integers(0, 1000, CELLS)
    for privacy in (PURE, so.GaussianDP(mu=1.0)):
        plan = so.plan(so.Histogram(CELLS), privacy, mechanism="compressive", compression=compression)
        sketch = make(kind)
        assert sketch.operator == plan.sketch().operator
        sketch.update(np.repeat(np.arange(CELLS), table))
        before = sketch.to_bytes()
        release = plan.release(sketch)
        assert np.array_equal(release.measured.units, plan.release(table).measured.units)
        assert np.array_equal(release.values, plan.release(table).values)
        # A release neither changes nor uses up the sketch: what counts is the ledger.
        assert sketch.to_bytes() == before


def test_a_sketch_pays_once_for_each_release():
    plan = so.plan(
        so.Histogram(CELLS), PURE, mechanism="compressive", compression=so.sketches.Compression(measurements=K)
    )
    ledger, sketch = so.Ledger(so.PureDP(epsilon=2.5)), plan.sketch()
    first = plan.release(sketch, ledger=ledger, request_id="a")
    assert plan.release(sketch, ledger=ledger, request_id="a") is first
    plan.release(sketch, ledger=ledger, request_id="b")
    with pytest.raises(so.errors.BudgetExceededError):
        plan.release(sketch, ledger=ledger, request_id="c")
    assert len(ledger.history) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_files_and_pickles(kind, tmp_path):
    sketch = make(kind, seed=2**64 - 1)
    sketch.update([1, 5, 5], [3, -4, 2**40])
    path = sketch.save(tmp_path / "sketch")
    assert path.read_bytes() == sketch.to_bytes()
    for again in (
        so.sketches.Sketch.load(path),
        so.sketches.Sketch.load(str(path)),
        so.sketches.Sketch.from_bytes(sketch.to_bytes()),
        so.sketches.Sketch.from_bytes(bytearray(sketch.to_bytes())),
        pickle.loads(pickle.dumps(sketch)),
        copy.deepcopy(sketch),
        copy.copy(sketch),
    ):
        assert again.to_bytes() == sketch.to_bytes()
        assert again.operator == sketch.operator
        again.update(2)
        assert again.to_bytes() != sketch.to_bytes()
    with pytest.raises(so.errors.InputFileError):
        so.sketches.Sketch.load(tmp_path / "none")
    with pytest.raises(so.errors.InputFileError):
        sketch.save(tmp_path)


def test_every_damaged_byte_is_seen():
    sketch = make()
    sketch.update([1, 5, 5], [3, -4, SECRET])
    data = sketch.to_bytes()
    for i in range(len(data)):
        for flip in (1, 0x80):
            damaged = data[:i] + bytes([data[i] ^ flip]) + data[i + 1 :]
            with pytest.raises(so.errors.InvalidParameterError) as caught:
                so.sketches.Sketch.from_bytes(damaged)
            assert str(SECRET) not in str(caught.value)
    for size in range(len(data)):
        with pytest.raises(so.errors.InvalidParameterError):
            so.sketches.Sketch.from_bytes(data[:size])
    for bad in (data + data[:8], data * 2, b"", bytes(64), bytes(1000)):
        with pytest.raises(so.errors.InvalidParameterError):
            so.sketches.Sketch.from_bytes(bad)
    for bad in ("text", None, 5, [1, 2], np.zeros(3)):
        with pytest.raises((so.errors.DataTypeError, so.errors.InvalidParameterError)):
            so.sketches.Sketch.from_bytes(bad)


def test_sketches_of_other_data_structures_do_not_mix():
    variants = [
        make(),
        make(seed=8),
        make(nonzeros=4),
        make("bernoulli"),
        make("hadamard"),
        so.sketches.Sketch(CELLS + 1, K, nonzeros=3, seed=7),
        so.sketches.Sketch(CELLS, K + 1, nonzeros=3, seed=7),
    ]
    for a, b in itertools.permutations(variants, 2):
        a.update(3, SECRET)
        before = a.to_bytes()
        with pytest.raises(so.errors.InvalidParameterError, match="kind, seed or size") as caught:
            a + b
        with pytest.raises(so.errors.InvalidParameterError, match="kind, seed or size"):
            a.__iadd__(b)
        assert str(SECRET) not in str(caught.value)
        assert a.to_bytes() == before
        a.update(3, -SECRET)
    plan = so.plan(
        so.Histogram(CELLS),
        PURE,
        mechanism="compressive",
        compression=so.sketches.Compression(measurements=K, sparsity=2, nonzeros=3, seed=7),
    )
    ledger = so.Ledger(PURE)
    for other in variants[1:]:
        with pytest.raises(so.errors.InvalidParameterError, match="kind, seed or size"):
            plan.release(other, ledger=ledger)
    real = so.plan(
        so.Histogram(CELLS),
        PURE,
        mechanism="compressive",
        integral=False,
        compression=so.sketches.Compression(measurements=K, sparsity=2, nonzeros=3, seed=7),
    )
    with pytest.raises(so.errors.InvalidParameterError, match="integral"):
        real.release(variants[0], ledger=ledger)
    for mechanism in ("identity", "threshold"):
        with pytest.raises(so.errors.UnsupportedMechanismError, match="compressive"):
            so.plan(so.Histogram(CELLS), PURE, mechanism=mechanism).release(variants[0], ledger=ledger)
    assert not ledger.history
    for bad in (3, None, "sketch", np.zeros(K)):
        with pytest.raises(TypeError):
            variants[0] + bad


@pytest.mark.parametrize(
    ("cells", "counts"),
    [
        ([0, 1], [SECRET]),
        ([0], [SECRET, 1]),
        ([[0, 1]], [SECRET, 1]),
        ([0, 1], [[SECRET, 1]]),
        ("3", SECRET),
        (3j, SECRET),
        (np.array(["3"]), [SECRET]),
        ([0], np.array([SECRET], dtype="M8[s]")),
        (np.ma.masked_array([SECRET], [True]), None),
    ],
    ids=range(9),
)
def test_bad_updates_add_nothing_and_say_nothing(cells, counts):
    sketch = make()
    sketch.update([1, 2], [SECRET, -SECRET])
    before = sketch.to_bytes()
    with pytest.raises(so.SordinoError) as caught:
        sketch.update(cells, counts)
    assert sketch.to_bytes() == before
    assert str(SECRET) not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize(
    "table",
    [
        np.full(CELLS - 1, SECRET),
        np.full((CELLS, 1), SECRET),
        np.full(CELLS, str(SECRET)),
        np.full(CELLS, SECRET * 1j),
        SECRET,
        None,
    ],
    ids=range(6),
)
def test_bad_tables_add_nothing_and_say_nothing(table):
    sketch = make()
    sketch.update(4)
    before = sketch.to_bytes()
    with pytest.raises(so.SordinoError) as caught:
        sketch.add(table)
    assert sketch.to_bytes() == before
    assert str(SECRET) not in str(caught.value)


def test_nothing_is_refused_by_its_size_and_no_sum_overflows():
    """Totals beyond 64 bits are kept; counts are clamped; a cell that does not exist is a null item."""
    a, b = make(), make()
    for _ in range(600):
        a.update([0, CELLS, -1, 10**30], [2**53, 1, 1, 1])
        b.update(0, 10**30)
    assert a.to_bytes() == b.to_bytes()
    a += a
    b.add([2**70] + [0] * (CELLS - 1))
    assert a.to_bytes() != b.to_bytes()
    for _ in range(1200):
        a.update(0, -(2**64))
        b.update([0, 10], [-(2**53), float("nan")])
    b.update(0, 5)
    a.update([None, 0, 2.5], [7, 5, 9])
    for _ in range(599):
        b.update(0, 2**53)
    assert a.to_bytes() == b.to_bytes()
    assert so.sketches.Sketch.from_bytes(a.to_bytes()).to_bytes() == a.to_bytes()
    c = make()
    c.update(0, 2**60)
    c += c
    assert sums(c) == [2 * x for x in exact(c, [2**53] + [0] * (CELLS - 1))]


@pytest.mark.parametrize(
    "arguments",
    [
        {"measurements": 0},
        {"measurements": CELLS + 1},
        {"measurements": 2.0},
        {"cells": 0},
        {"cells": -5},
        {"cells": 2**27, "measurements": 4},
        {"cells": "50"},
        {"nonzeros": 0},
        {"nonzeros": 21},
        {"sketch": "dense"},
        {"seed": -1},
        {"seed": 2**64},
        {"seed": None},
    ],
    ids=str,
)
def test_bad_sketches_are_refused(arguments):
    with pytest.raises((so.errors.InvalidParameterError, so.errors.DataTypeError)):
        so.sketches.Sketch(**{"cells": CELLS, "measurements": K} | arguments)


def test_what_is_shown_of_a_sketch_is_public():
    sketch = make()
    sketch.update(0, SECRET)
    for shown in (repr(sketch), str(sketch), repr(sketch.core), f"{sketch}"):
        assert str(SECRET) not in shown
    assert repr(sketch) == repr(make()) == "<Sketch sparse: 20 sums of 50 cells, seed 7>"
    assert (sketch.cells, sketch.measurements) == (CELLS, K)
    with pytest.raises(AttributeError):
        sketch.sums = 3


def test_columns_of_numbers_are_taken_from_anywhere():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    cells, counts = [3, 9, 3], [5, -1, 2]
    expected = make()
    expected.update(cells, counts)
    for kind in (np.array, tuple, pandas.Series, polars.Series, lambda v: np.array(v, dtype=np.int16)):
        sketch = make()
        sketch.update(kind(cells), kind(counts))
        assert sums(sketch) == sums(expected)
    strided = make()
    strided.update(np.array([3, 0, 9, 0, 3, 0])[::2], np.array([5, 0, -1, 0, 2, 0])[::2])
    assert sums(strided) == sums(expected)
    gone, one = make(), make()
    gone.update(pandas.Series([1, None]))
    one.update(1)
    assert sums(gone) == sums(one)
    empty = make()
    empty.update([])
    assert sums(empty) == [0] * K
