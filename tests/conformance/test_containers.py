"""Containers that numpy would guess about: what an entry is depends on the entry alone, and costs memory of its own."""

import contextlib
import copy
import signal
import tracemalloc
from collections import UserList, deque
from decimal import Decimal

import numpy as np
import pytest

import sordino as so
from records import tabulate

SHARP = so.GaussianDP(mu=1e6)
BOX = {"points": 9, "bounds": ((0.0, 1.0), (0.0, 1.0)), "query_class": so.smooth.GaussianKernels(0.5)}


def takers():
    pairs = so.plan(so.Marginals([2, 2], k=2), SHARP)
    live = so.plan(so.RunningHistogram(3, 9), SHARP)
    points = so.plan(so.smooth.SmoothQueries(2, **BOX), so.PureDP(epsilon=1.0))
    survey = so.plan(so.local.LocalSurvey(1000, (0.0, 1.0), intervals=4), so.PureDP(epsilon=1.0))
    edges = so.plan(so.events.EdgeCount(["a", "b"], 4), SHARP)
    return {
        "tabulate": (lambda data: tabulate(data, 3), [1, 2]),
        "users": (lambda data: tabulate([0, 1], 2, user=data, max_records=1), [1, 2]),
        "table": (so.plan(so.Histogram(2), SHARP).release, [1, 2]),
        "records": (pairs.release, [[0, 1], [1, 0]]),
        "cells of a stream": (lambda data: live.open().update(data), [1, 2]),
        "items": (lambda data: so.plan(so.Continual(so.RunningSum(9)), SHARP).open().update(data), [1, 2]),
        "points": (points.sums, [[0.1, 0.2], [0.3, 0.4]]),
        "clients": (survey.encode_clients, [0.1, 0.2]),
        "vertices": (lambda data: edges.open().update(data, data), ["a", "b"]),
        "sketch": (lambda data: so.sketches.Sketch(8, 4).update(data), [1, 2]),
    }


@pytest.mark.parametrize("name", takers())
@pytest.mark.parametrize("container", [deque, UserList])
def test_containers_of_no_array_library_are_refused_by_their_type(name, container):
    """Whatever they hold: numpy would take one type for all entries."""
    take, data = takers()[name]
    take(data)
    for other in (data, [*data, None], [*data, "x"], [True, *data]):
        with pytest.raises((so.errors.DataTypeError, so.errors.ShapeError)):  # of points: an iterable of batches
            take(container(other))


@pytest.mark.parametrize("more", [[], [None], [[0, "x"]], [[1, 1, 1]], [{0: 1, 1: 1}]])
def test_a_row_is_read_the_same_beside_any_other(more):
    pa = pytest.importorskip("pyarrow")
    plan = so.plan(so.Marginals([2, 2], k=2), SHARP)
    for row in (pa.array([True, False]), pa.array([1, 0]).dictionary_encode(), np.array([True, False]), (1, 0)):
        found = np.rint(plan.release([row] * 1000 + [[0, 0]] + more).values).reshape(-1)
        assert found.tolist() == [1, 0, 1000, 0], type(row)


def peak(do):
    """Return the most bytes that Python and numpy held at once."""
    tracemalloc.start()
    try:
        do()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("reader", ["tabulate", "records", "table", "vertices", "lists"])
def test_a_long_text_takes_memory_once(reader):
    """Not once for every entry beside it."""
    note = "x" * 4000
    with so.plan(so.events.EdgeCount(["a", "b"], 20_001), SHARP).open() as edges:
        read, one = {
            "tabulate": (lambda entries: tabulate(entries, 3), 1),
            "records": (so.plan(so.Marginals([2, 2], k=2), SHARP).release, [0, 1]),
            "table": (so.plan(so.Histogram(20_001), SHARP).release, 1),
            "vertices": (lambda entries: edges.update(entries, entries, together=True), "a"),
            "lists": (so.plan(so.Histogram((20_001, 2)), SHARP).release, [1, 1]),
        }[reader]
        odd = [note, 1] if isinstance(one, list) else note

        def taken():
            with contextlib.suppress(so.errors.DataTypeError):
                read([one] * 20_000 + [odd])

        assert peak(taken) < 30e6


class Column:
    """A column whose conversion gives a mask."""

    def __init__(self, how):
        setattr(self, how, lambda *_arguments, **_options: np.ma.masked_array([1, 99, 1], mask=[0, 1, 0]))
        if how == "__array__":
            type(self).__array__ = lambda *_arguments, **_options: np.ma.masked_array([1, 99, 1], mask=[0, 1, 0])

    def __len__(self):
        return 3


@pytest.mark.parametrize("how", ["to_numpy", "__array__"])
def test_masks_that_a_conversion_makes_are_refused(how):
    column = type(how, (Column,), {})(how)
    for take in (
        lambda: tabulate(column, 100),
        lambda: tabulate([0, 1, 1], 2, user=column, max_records=1),
        lambda: so.plan(so.Histogram(3), SHARP).release(column),
    ):
        with pytest.raises(so.errors.DataTypeError, match="mask"):
            take()


def test_masks_deep_in_lists_are_refused():
    masked = np.ma.array([5, 600], mask=[0, 1])
    with pytest.raises(so.errors.DataTypeError, match="mask"):
        so.plan(so.Histogram((1, 1, 2)), SHARP).release([[masked]])


def test_users_behind_a_dictionary_of_arrow():
    pa = pytest.importorskip("pyarrow")
    for names in ([10**15, 10**15, 7, 7], ["a", "a", "b", "b"]):
        users = pa.array(names).dictionary_encode()
        assert tabulate([0, 0, 1, 1], 2, user=users, max_records=2).counts.tolist() == [2, 2]
        chunked = pa.chunked_array([users, users])
        assert tabulate([0, 0, 1, 1] * 2, 2, user=chunked, max_records=3).counts.tolist() == [3, 3]


def test_missing_scalars_of_arrow_are_nobody():
    pa = pytest.importorskip("pyarrow")
    users = list(pa.array(["a", None, None]))
    assert tabulate([0, 1, 1], 2, user=users, max_records=1).counts.tolist() == [1, 0]


def test_tables_of_users_are_refused():
    pa = pytest.importorskip("pyarrow")
    for table in (pa.table({"u": ["a", "b"]}), pa.record_batch({"u": ["a", "b"]})):
        with pytest.raises(so.errors.ShapeError):
            tabulate([0, 1], 2, user=table, max_records=1)


class Odd:
    def __init__(self, shape):
        self._shape = shape

    @property
    def shape(self):
        if self._shape is ValueError:
            raise ValueError("SECRET")
        return self._shape


@pytest.mark.parametrize("shape", [None, 3, ValueError])
def test_points_beside_objects_with_odd_shapes(shape):
    plan = so.plan(so.smooth.SmoothQueries(2, **BOX), so.PureDP(epsilon=1.0))
    assert plan.sums([[0.1, 0.2], Odd(shape)]).core.count == 1


def test_copies_of_point_sums_are_their_own():
    sums = so.plan(so.smooth.SmoothQueries(2, **BOX), so.PureDP(epsilon=1.0)).sums([[0.1, 0.2]])
    for other in (copy.copy(sums), copy.deepcopy(sums)):
        other.update([[0.3, 0.4]])
        assert (sums.core.count, other.core.count) == (1, 2)


class Named(str):
    """Text of a caller's own class: its code runs as it is read."""

    __slots__ = ()


# Where a handler comes into a collection of garbage, Python can only say so.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_exception_of_a_handler_takes_no_record():
    """Where it cannot be told from the entry's own, the entry is read once more."""

    def handler(*_signal):
        raise ValueError("of a handler")

    users = [Named(f"user {i % 500}") for i in range(4000)]
    before = signal.signal(signal.SIGALRM, handler)
    raised = 0
    try:
        for trial in range(60):
            try:
                try:  # inner, for the alarm that comes as the clock is stopped
                    signal.setitimer(signal.ITIMER_REAL, 1e-4 * 2 ** (trial % 12))
                    counts = tabulate([0] * len(users), 1, user=users, max_records=5).counts
                    assert counts[0] == 2500
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0.0)
            except (ValueError, so.errors.SordinoError):  # as a reader says it
                raised += 1
    finally:
        signal.signal(signal.SIGALRM, before)
    assert raised < 60


def test_nesting_without_end_is_no_entry():
    """A list in lists a thousand deep, and one that holds itself."""
    deep = []
    for _ in range(1000):
        deep = [deep]
    ring = []
    ring.append(ring)
    pairs = so.plan(so.Marginals([2, 2], k=2), SHARP)
    for odd in (deep, ring):
        assert tabulate([0, 1, odd], 2).counts.tolist() == [1, 1]
        assert np.rint(pairs.release([[0, 1], odd, [0, odd]]).values).reshape(-1).tolist() == [0, 1, 0, 0]
        for take, data in (takers()[name] for name in ("points", "clients", "vertices", "sketch", "cells of a stream")):
            take([*data, odd])


@pytest.mark.parametrize("last", [b"zoe", b"zo\xeb"])
def test_text_that_is_no_utf8_is_text(last):
    pa, pd = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    raw = pa.array([b"ann", b"bob", last, last], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 4, raw.buffers())
    series = pd.Series(pd.arrays.ArrowExtensionArray(text))
    for users in (text, pa.chunked_array([text]), series):
        assert tabulate([0, 1, 1, 1], 2, user=users, max_records=1).counts.tolist() == [1, 2]
        with pytest.raises(so.errors.DataTypeError, match="cast it to integers"):
            tabulate(users, 2)
        with so.plan(so.events.EdgeCount(["ann", "bob"], 9), SHARP).open() as stream:
            assert len(stream.update(users, users)) == 4


def test_categories_of_numbers_that_miss_one():
    pd = pytest.importorskip("pandas")
    plan = so.plan(so.smooth.SmoothQueries(2, **BOX), so.PureDP(epsilon=1.0))
    pairs = so.plan(so.Marginals([9, 9], k=1), SHARP)
    for missing in (7, None):
        frame = pd.DataFrame({"a": pd.Series([5, 6, missing], dtype="category"), "n": [1, 2, 3]})
        with np.errstate(all="raise"):
            assert plan.sums(frame).core.count == 2 + (missing is not None)
            assert round(pairs.release(frame).values[:9].sum()) == 2 + (missing is not None)


def test_a_report_of_long_text_takes_memory_once():
    survey = so.local.LocalSurvey(1000, (0.0, 1.0), intervals=4)
    server = so.plan(survey, so.PureDP(epsilon=1.0), mechanism="identity").server()
    note = "x" * 20_000

    def taken():
        server.add([note] + [0] * 20_000)
        server.add_many([[1, 1, 1, 1]] * 20_000 + [[note, 0, 0, 0]])

    assert peak(taken) < 30e6 and server.accepted == 20_000


def test_a_long_text_in_lists_of_lists():
    plan = so.plan(so.Histogram((100, 100)), SHARP)
    rows = [[0] * 100 for _ in range(100)]
    plan.release(rows)
    rows[3][4] = "x" * 10**7
    with pytest.raises(so.errors.DataTypeError) as caught:
        plan.release(rows)
    assert len(str(caught.value)) < 200


def test_long_decimals_as_members():
    long = Decimal("1." + "0" * 10**6 + "1")
    counts = so.sketches.Sketch(8, 4)
    counts.update([1, long, Decimal("2.000"), Decimal("1e400"), Decimal("nan")])
    expected = so.sketches.Sketch(8, 4)
    expected.update([1, 2])
    assert counts.to_bytes() == expected.to_bytes()


def test_an_array_without_axes_among_batches_of_points():
    plan = so.plan(so.smooth.SmoothQueries(2, **BOX), so.PureDP(epsilon=1.0))
    with pytest.raises(so.errors.DataTypeError):
        plan.sums([np.zeros((3, 2)), np.array(5.0)])


@pytest.mark.parametrize("column", ["datetime64[ns]", "datetime64[s]", "timedelta64[ns]", "complex128"])
@pytest.mark.parametrize("missing", [True, None])
def test_a_column_of_times_is_refused_whatever_stands_beside_it(column, missing):
    pd = pytest.importorskip("pandas")
    pairs = so.plan(so.Marginals((2, 3), k=1), SHARP)
    points = so.plan(so.smooth.SmoothQueries(2, **BOX), so.PureDP(epsilon=1.0))
    frame = pd.DataFrame({"a": pd.array([True, missing], dtype="boolean"), "b": np.array([1, 2]).astype(column)})
    for take in (pairs.release, points.sums, so.plan(so.Histogram((2, 2)), SHARP).release):
        with pytest.raises(so.errors.DataTypeError):
            take(frame)


@pytest.mark.parametrize("missing", [True, None])
def test_a_column_of_arrays_is_refused_whatever_stands_beside_it(missing):
    pl = pytest.importorskip("polars")
    points = so.plan(so.smooth.SmoothQueries(2, **BOX), so.PureDP(epsilon=1.0))
    frame = pl.DataFrame({"a": [True, missing], "b": pl.Series([[1, 2], [3, 4]], dtype=pl.Array(pl.Int64, 2))})
    with pytest.raises(so.errors.DataTypeError):
        points.sums(frame)


def test_a_row_of_another_length_is_not_listed():
    plan = so.plan(so.smooth.SmoothQueries(2, **BOX), so.PureDP(epsilon=1.0))
    pairs = so.plan(so.Marginals([2, 2], k=2), SHARP)

    def taken():
        assert plan.sums([(0.1, 0.2), range(10**12)]).core.count == 1
        pairs.release([[0, 1], range(10**12)])

    assert peak(taken) < 30e6
