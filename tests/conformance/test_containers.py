"""Containers that numpy would guess about: what an entry is depends on the entry alone, and costs memory of its own."""

import copy
import resource
import signal
import subprocess
import sys
from collections import UserList, deque

import numpy as np
import pytest

import sordino as so

SHARP = so.GaussianDP(mu=1e6)
BOX = {"points": 9, "bounds": ((0.0, 1.0), (0.0, 1.0)), "query_class": so.smooth.GaussianKernels(0.5)}


def takers():
    pairs = so.plan(so.Marginals([2, 2], k=2), SHARP)
    live = so.plan(so.RunningHistogram(3, 9), SHARP)
    points = so.plan(so.smooth.SmoothQueries(2, **BOX), so.PureDP(epsilon=1.0))
    survey = so.plan(so.local.LocalSurvey(1000, (0.0, 1.0), intervals=4), so.PureDP(epsilon=1.0))
    edges = so.plan(so.events.EdgeCount(["a", "b"], 4), SHARP)
    return {
        "tabulate": (lambda data: so.tabulate(data, 3), [1, 2]),
        "users": (lambda data: so.tabulate([0, 1], 2, user=data, max_records=1), [1, 2]),
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


MEMORY = """
import resource, sys
import sordino as so
note = sys.argv[1:] and "x" * 4000
plans = so.plan(so.Histogram(50_001), so.GaussianDP(mu=1.0)), so.plan(so.Marginals([2, 2], k=2), so.GaussianDP(mu=1.0))
edges = so.plan(so.events.EdgeCount(["a", "b"], 50_001, ), so.GaussianDP(mu=1.0)).open()
so.tabulate([1] * 50_000 + [note or 1], 3)
plans[1].release([[0, 1]] * 20_000 + [[note or 0, 1]])
edges.update(["a"] * 50_000 + [note or "b"], ["b"] * 50_001)
try:
    plans[0].release([1] * 50_000 + [note or 1])
except so.errors.DataTypeError:
    pass
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def test_a_long_text_takes_memory_once():
    """Not once for every record beside it."""
    used = [
        int(subprocess.run([sys.executable, "-c", MEMORY, *said], check=True, capture_output=True).stdout)
        for said in ([], ["note"])
    ]
    assert used[1] < used[0] + 100, used
    assert resource.getrusage(resource.RUSAGE_SELF)


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
        lambda: so.tabulate(column, 100),
        lambda: so.tabulate([0, 1, 1], 2, user=column, max_records=1),
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
    second = 10**9
    users = pa.array([second, second, second + 1, second + 1], pa.time64("ns")).dictionary_encode()
    assert so.tabulate([0, 0, 1, 1], 2, user=users, max_records=2).counts.tolist() == [2, 2]
    for ticks in ([10**15, 7], [5, 7]):
        users = pa.array(ticks, pa.timestamp("s")).dictionary_encode()
        assert so.tabulate([0, 1], 2, user=users, max_records=1).counts.tolist() == [1, 1]
        chunked = pa.chunked_array([users, users])
        assert so.tabulate([0, 1, 0, 1], 2, user=chunked, max_records=1).counts.tolist() == [1, 1]


def test_missing_scalars_of_arrow_are_nobody():
    pa = pytest.importorskip("pyarrow")
    users = list(pa.array(["a", None, None]))
    assert so.tabulate([0, 1, 1], 2, user=users, max_records=1).counts.tolist() == [1, 0]


def test_tables_of_users_are_refused():
    pa = pytest.importorskip("pyarrow")
    for table in (pa.table({"u": ["a", "b"]}), pa.record_batch({"u": ["a", "b"]})):
        with pytest.raises(so.errors.ShapeError):
            so.tabulate([0, 1], 2, user=table, max_records=1)


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


def test_an_exception_of_a_handler_takes_no_record():
    """Where it cannot be told from the entry's own, the entry is read once more."""

    def handler(*_signal):
        raise ValueError("of a handler")

    users = [Named(f"user {i % 500}") for i in range(4000)]
    before = signal.signal(signal.SIGALRM, handler)
    raised = 0
    try:
        for trial in range(60):
            signal.setitimer(signal.ITIMER_REAL, 1e-4 * (1 + trial % 12))
            try:
                counts = so.tabulate([0] * len(users), 1, user=users, max_records=5).counts
                assert counts[0] == 2500
            except ValueError:
                raised += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0.0)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert raised < 60
