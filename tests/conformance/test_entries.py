"""One record more does not change how the others are read: what an entry is depends on the entry alone."""

from array import array
from decimal import Decimal
from fractions import Fraction

import cases
import numpy as np
import pandas as pd
import pytest

import sordino as so
from records import tabulate
from sordino._support.private_numbers import amounts_or, members_or, reals_or

ENTRIES = [
    0, 1, 3, -2, 2**64, -(2**70), True, False, np.True_, 1.0, 2.5, float("nan"), float("inf"), -float("inf"), None,
    "1", "a", b"1", 1j, np.float16(1.5), np.float32(0.7), np.float64(0.1), np.longdouble(2), np.int8(-1),
    np.uint64(2**63),
    Decimal("1.5"), Decimal("NaN"), Decimal("1e400"), Fraction(1, 3), Fraction(10**400), pd.NA, pd.NaT,
    np.datetime64("NaT"), np.timedelta64(3), pd.Timestamp("2026-01-01"), object(), (), [1], {}, np.array([1, 2]),
]  # fmt: skip
READERS = {"members": members_or, "amounts": amounts_or, "reals": reals_or}


def same(a, b):
    return a == b or (a != a and b != b)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_an_entry_is_read_as_it_is_beside_any_other(read):
    alone = [read("x", [entry, 0])[0] for entry in ENTRIES]
    for i, entry in enumerate(ENTRIES):
        for other in ENTRIES:
            for found in (read("x", [entry, other, 0])[0], read("x", [other, 0, entry])[2]):
                assert same(found, alone[i]), (entry, other)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", ["?", "b", "B", "h", "H", "i", "I", "l", "L", "e", "f", "d", "g", ">i4", ">f8"])
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_arrays_are_read_as_lists_of_their_entries(read, dtype):
    values = [0, 1, 1, 3, 100] + ([0.5, np.inf, -np.inf, np.nan] if np.dtype(dtype).kind == "f" else [])
    array = np.array(values).astype(dtype)
    listed = read("x", [*array, None])[:-1]
    np.testing.assert_array_equal(read("x", array), listed)
    np.testing.assert_array_equal(read("x", array.astype(object)), listed)
    np.testing.assert_array_equal(read("x", np.stack([array, array], axis=1)[:, 0]), listed)


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_columns_are_read_alike_with_and_without_a_missing_entry(read):
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    for values in ([1, 0, 2], [True, False, True], [1.0, 0.0, 2.0]):
        expected = read("x", values)
        for make in (
            pl.Series,
            pa.array,
            pd.Series,
            lambda v: pd.Series(v).convert_dtypes(),
            lambda v: pa.chunked_array([v]),
        ):
            np.testing.assert_array_equal(read("x", make(values)), expected)
            np.testing.assert_array_equal(read("x", make([*values, None]))[:-1], expected)
    days = pd.Series(pd.to_datetime(["2026-01-01"])).dt.tz_localize("UTC")
    for column in (pl.Series([None]).cast(pl.Time), pl.Series(["a"]), days, pa.array([1]).cast(pa.timestamp("s"))):
        with pytest.raises(so.errors.DataTypeError):
            read("x", column)


ROWS = {
    "codes": lambda rows: so.plan(so.Marginals([2, 3], k=2), cases.LOUD).release(rows),
    "points": lambda rows: so.plan(SMOOTH, cases.LOUD).sums(rows),
}
SMOOTH = so.smooth.SmoothQueries(
    2, points=9, bounds=((0.0, 1.0), (0.0, 1.0)), query_class=so.smooth.GaussianKernels(0.5)
)


@pytest.mark.parametrize("take", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize(
    "row", [None, [1], [1, 1, 1], ["x", 1], [1j, 1], [None, None], "ab", [np.timedelta64(1), 0], [[1], 1], [True, 1]]
)
def test_no_row_of_a_list_is_refused(take, row):
    take([[1, 1], row])
    take([row, [0, 1]])


def test_codes_are_counted_alike_beside_a_record_that_is_none():
    plan = so.plan(so.Marginals([2, 3], k=2), cases.LOUD)
    with so.testing.deterministic_noise(cases.KEY):
        counts = [
            np.rint(plan.release([*[[True, 1]] * 50, *more]).values).tolist()
            for more in ([], [[None, None]], [["x", 2]])
        ]
    assert counts[0] == counts[1] == counts[2]
    assert max(counts[0]) == 50


def test_records_are_tabulated_alike_beside_text():
    for records in ([True] * 3, [np.float32(0.7)] * 3, [np.float16(0.7)] * 3, [Decimal("0.7")] * 3):
        for edges in (2, [0.0, 0.7, 1.0]):
            alone = tabulate(records, edges).counts
            for other in ("x", None, 5.0, pd.NA):
                assert tabulate([*records, other], edges).counts.tolist() == alone.tolist()


def test_what_a_list_is_does_not_depend_on_one_entry():
    """Flat tables and tables in tables stay tables, whatever a cell holds; lists of rows stay lists of rows."""
    plan = so.plan(so.Marginals([2, 3], k=2), cases.LOUD)
    table = [7, 50, 51, 52, 53, 54]
    with so.testing.deterministic_noise(cases.KEY):
        base = plan.release(table).values
        for entry, moved in ((8, 1), (Decimal(7), 0), (Fraction(15, 2), 1), (2**64, None), (2**64 - 1, None)):
            values = plan.release([entry, *table[1:]]).values
            np.testing.assert_allclose(values.reshape(-1)[1:], base.reshape(-1)[1:])
            assert moved is None or round(float(values.reshape(-1)[0] - base.reshape(-1)[0])) == moved
        cube = so.plan(so.Marginals([2, 2, 2], k=3), cases.LOUD)
        found = [cube.release([[[1, 2], [3, 4]], [[5, 6], [7, last]]]).values.reshape(-1) for last in (8, Decimal(9))]
        assert np.rint(found[1] - found[0]).tolist() == [0] * 7 + [1]
    for entry in (None, "x", float("nan"), [7], np.array([7])):
        with pytest.raises(so.SordinoError):
            plan.release([entry, *table[1:]])


def test_counts_of_any_dtype_are_clamped_alike():
    for more in ([], [None], [1.5], ["x"]):
        found = amounts_or("x", [2**60, -(2**54), *more])[:2]
        assert found.tolist() == [2**53, -(2**53)]
    assert amounts_or("x", np.array([2**60, -(2**54)])).tolist() == [2**53, -(2**53)]
    assert reals_or("x", [1e305, np.longdouble("1e305")]).tolist() == [1e305, 1e305]
    assert reals_or("x", [np.longdouble("1e305"), None])[0] == 1e305
    assert np.isfinite(reals_or("x", np.array([np.longdouble("1e4000")])))[0]


class Lying:
    """What says of itself what it likes."""

    def __init__(self, *names):
        self.names = names

    def __getattribute__(self, name):
        if name in object.__getattribute__(self, "names"):
            raise RuntimeError("secret")
        return object.__getattribute__(self, name)

    def __len__(self):
        raise RuntimeError("secret")

    def __iter__(self):
        raise RuntimeError("secret")

    def __float__(self):
        raise RuntimeError("secret")

    def __array__(self, *_arguments, **_options):
        raise RuntimeError("secret")


@pytest.mark.parametrize("row", [Lying(), np.array(0.5), pd.DataFrame(np.ones((2, 3))), dict, np.ones((2, 2)), {1, 2}])
@pytest.mark.parametrize("take", ROWS.values(), ids=ROWS)
def test_no_object_leaves_its_errors_behind(request, take, row):
    if "points" in request.node.callspec.id and len(getattr(row, "shape", ())) == 2:
        with pytest.raises(so.errors.DataTypeError):  # a batch beside a point
            take([[1, 1], row])
    else:
        take([[1, 1], row])
    for read in READERS.values():
        read("x", [row, 1])
    tabulate([0, row], 1, user=["a", row], max_records=1)
    with so.plan(so.events.EdgeCount(4, 9), cases.LOUD).open() as stream:
        assert round(float(np.sum(stream.update([row, 1], [2, 2])[-1]))) == 1


def test_an_unhashable_user_is_nobody():
    assert tabulate([0, 0, 0], 1, user=["a", ["b"], "a"], max_records=1).counts.tolist() == [1]


def test_a_list_of_batches_is_one_of_points():
    plan = so.plan(SMOOTH, cases.LOUD)
    whole = np.linspace(0, 1, 18).reshape(9, 2)
    assert plan.sums([whole[:5], whole[5:]]).to_bytes() == plan.sums(whole).to_bytes()


def test_one_missing_entry_does_not_make_a_container_one():
    """Containers that are compared by value differ from themselves where they hold a not-a-number."""
    pa = pytest.importorskip("pyarrow")
    values = [1.0, 0.0, float("nan")]
    for make in (lambda v: array("d", v), lambda v: memoryview(array("d", v)), pa.array):
        for read in READERS.values():
            np.testing.assert_array_equal(read("x", make(values)), read("x", values))
    plan = so.plan(so.Marginals([2, 3], k=2), cases.LOUD)
    for last in (0.0, float("nan"), None):
        plan.release(pa.table({"a": [1.0, 0.0, last], "b": [1.0, 1.0, 2.0]}))


def test_an_empty_batch_is_one():
    pl = pytest.importorskip("polars")
    plan = so.plan(SMOOTH, cases.LOUD)
    whole = np.linspace(0, 1, 18).reshape(9, 2)
    expected = plan.sums(whole).to_bytes()
    for empty in (np.array([]), [], np.empty((0, 2))):
        assert plan.sums([whole[:5], whole[5:], empty]).to_bytes() == expected
    assert plan.sums([pl.DataFrame(whole[:5]), pl.DataFrame(whole[5:])]).to_bytes() == expected


def test_batches_stand_alone():
    """A row or a missing part beside batches made null points of all of them."""
    plan = so.plan(SMOOTH, cases.LOUD)
    batch = np.full((3, 2), 0.5)
    for other in ([0.1, 0.2], None, np.array([0.1, 0.2]), 3.0):
        with pytest.raises(so.errors.DataTypeError):
            plan.sums([batch, batch, other])


@pytest.mark.parametrize("odd", [2**64, None, Decimal(1), Fraction(1, 2)])
def test_a_list_without_a_row_is_refused_whatever_its_entries(odd):
    plan, cube = so.plan(SMOOTH, cases.LOUD), so.plan(so.Marginals([2, 2], k=1), cases.LOUD)
    for entry in (0.5, odd):
        for rows in ([0.5, entry], [[0.5, 0.5, 0.5], [0.1, 0.1, entry]], [[[0.5, 0.1], [0.5, entry]]]):
            with pytest.raises(so.errors.ShapeError):
                plan.sums(rows)
        with pytest.raises(so.errors.ShapeError):
            cube.release([[0, 1, 0], [1, 0, entry]])
        with pytest.raises(so.errors.ShapeError):
            plan.sums(iter([[0.5, entry]]))


def test_spans_of_time_are_no_numbers_in_any_unit():
    for unit in ("ps", "ns", "us", "s", "Y", "M", "generic"):
        span = np.timedelta64(5, unit)
        assert amounts_or("x", [span, 3]).tolist() == [0, 3]
        assert members_or("x", [span, 3]).tolist() == [-1, 3]
        assert np.isnan(reals_or("x", [span, 3])[0])
        assert tabulate([span, 1], 6).counts.tolist() == [0, 1, 0, 0, 0, 0]


def test_text_is_no_number_whatever_it_says():
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    plan = so.plan(so.Histogram(2), cases.LOUD)
    for said in (["5", "3"], ["5", "x"]):
        for column in (pd.Series(said, dtype="str"), pd.Series(said, dtype=object), np.array(said, dtype=object),
                       pl.Series(said), pa.array(said), pd.Series(said, dtype="category")):  # fmt: skip
            with pytest.raises(so.errors.DataTypeError):
                plan.release(column)
            with (
                so.plan(so.Continual(so.RunningSum(4)), cases.LOUD).open() as stream,
                pytest.raises(so.errors.DataTypeError),
            ):
                stream.update(column)


def test_users_are_integers_or_text():
    """Whoever is called by a time casts it: Python's dates are of microseconds, and two users would be one."""
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    numbers = [1_000_000_000] * 3 + [1_000_000_001] * 3
    columns = [pl.Series(numbers).cast(kind) for kind in (pl.Datetime("ns"), pl.Duration("ns"), pl.Time)]
    columns += [pa.array(numbers, kind) for kind in (pa.timestamp("ns"), pa.time64("ns"), pa.duration("ns"))]
    columns += [pd.Series(column, dtype=pd.ArrowDtype(column.type)) for column in columns[3:]]
    columns += [pa.chunked_array([columns[3]])]
    for column in columns:
        with pytest.raises(so.errors.DataTypeError, match="cast it to integers or text"):
            tabulate([0] * 3 + [1] * 3, 2, user=column, max_records=3)
        if hasattr(column, "cast") and hasattr(column, "type"):
            assert tabulate([0] * 3 + [1] * 3, 2, user=column.cast(pa.int64()), max_records=3).counts.tolist() == [3, 3]


def test_bounded_counts_go_nowhere_without_a_unit():
    counts = tabulate([0] * 5, 3, user=[1] * 5, max_records=5)
    takers = [
        lambda: so.plan(so.RunningHistogram(3, 3), cases.LOUD).open().update([0, 1, 2], counts),
        lambda: so.plan(so.RunningHistogram(3, 3, once=True), cases.LOUD).open().update(counts),
        lambda: so.plan(so.events.RareCount(9, 9), cases.LOUD).open().update(counts),
        lambda: so.sketches.Sketch(3, 3, nonzeros=1).update([0, 1, 2], counts),
        lambda: so.sketches.Sketch(3, 3, nonzeros=1).add(counts),
        lambda: so.plan(so.Continual(so.RunningSum(9)), cases.LOUD).open().update(counts),
    ]
    for take in takers:
        with pytest.raises(so.errors.InvalidParameterError):
            take()


def test_no_private_value_in_the_chain_of_an_error():
    plan = so.plan(so.Histogram(2), cases.LOUD)
    with pytest.raises(so.SordinoError) as raised:
        plan.release(np.array([b"alice", 3], dtype=object))
    assert raised.value.__context__ is None
    assert raised.value.__cause__ is None


def test_rows_that_panic_are_null():
    pl = pytest.importorskip("polars")
    plan = so.plan(so.Marginals([2, 2], k=1), cases.LOUD)
    for day in (5, 2**30):
        plan.release([pl.Series([day, 0]).cast(pl.Date), [0, 1]])


def test_a_field_named_index_is_no_label():
    from collections import namedtuple

    assert so.plan(so.Histogram(3), cases.LOUD).release(namedtuple("C", "index v w")(7, 8, 9)).index is None


def test_large_decimals_stay_apart():
    assert tabulate([Decimal("5e85"), 5e85], [1e80, 1e90]).counts.tolist() == [2]
    assert reals_or("x", [Decimal("1e-70"), 1e-70]).tolist() == [1e-70, 1e-70]
