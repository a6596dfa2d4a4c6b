"""A signal at any instruction of an update: the step is taken or not, `step` says which, and nothing counts twice."""

import threading
import warnings
from dataclasses import replace

import cases
import numpy as np
import pytest
from interrupts import interrupted

import sordino as so
from live import plan_live

LOUD = so.PureDP(epsilon=1e6)
STREAMS = pytest.mark.parametrize("case", cases.STREAMS, ids=lambda case: case.name)
NAMED = replace(cases.STREAMS[0], name="named", update=lambda s: s.update([3, 4], step_id=str(s.step)))
STORED = pytest.mark.parametrize("case", [NAMED, *(c for c in cases.STREAMS if c.stored)], ids=lambda case: case.name)


def settled(case, stream):
    """Bring an interrupted update to its end, and return whether it was taken."""
    if getattr(stream, "pending", False):
        stream.resume()
    if stream.step == case.steps:
        return
    assert stream.step == 0
    case.update(stream)


def check_every_place(case, opened):
    """Interrupt the first update at every place; then everything is as if it had not been."""
    with opened() as whole:
        case.update(whole)
        first = case.total(whole)
        case.update(whole)
        second = case.total(whole)
    for at in range(1, 3000):
        with opened() as stream:
            if not interrupted(lambda stream=stream: case.update(stream), at):
                break
            settled(case, stream)
            assert stream.step == case.steps, at
            assert case.total(stream) == pytest.approx(first, abs=0.05), at
            case.update(stream)
            assert case.total(stream) == pytest.approx(second, abs=0.05), at
    assert 2 < at < 2999


@STREAMS
def test_an_update_is_taken_once_or_not_at_all(case):
    check_every_place(case, case.loud.open)


@STORED
def test_an_update_that_is_stored_is_taken_once_or_not_at_all(case):
    check_every_place(case, lambda: case.loud.open(store=so.streams.InMemoryStepStore()))


@STORED
def test_a_store_never_has_a_gap(case):
    for at in range(1, 3000):
        store = so.streams.InMemoryStepStore()
        with case.loud.open(store=store) as stream:
            case.update(stream)
            if not interrupted(lambda stream=stream: case.update(stream), at):
                break
            if stream.pending:
                stream.resume()
            ends = [entry.step + entry.steps for entry in store.entries()]
            assert [entry.step for entry in store.entries()] == [0, *ends[:-1]]
            assert ends[-1] == stream.step


class Failing(so.streams.InMemoryStepStore):
    """Fails at one append."""

    def __init__(self, at):
        super().__init__()
        self.left = at

    def append(self, entry):
        self.left -= 1
        if self.left == 0:
            raise so.errors.StepStoreError("full")
        super().append(entry)


@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize("which", ["graph", "words"])
def test_no_event_of_a_batch_is_dropped_after_a_failure(which, at, monkeypatch):
    """Parts of a batch that come after the one that was not stored are published by `resume`."""
    monkeypatch.setattr("sordino.streams.events._LAID_OUT", 12)
    graph = which == "graph"
    workload = so.events.WeightedGraph(4, 16, max_weight=1.0) if graph else so.events.SubstringCounts("ab", 2, 16)
    batch = ([0, 1, 2, 0, 1, 2], [1, 2, 3, 2, 3, 0]) if graph else ("abbaab",)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with so.testing.deterministic_noise(bytes(32)):
            plan = so.plan(so.Continual(workload, reads="dense"), LOUD)
            stream, whole = plan.open(store=Failing(at)), plan.open()
            with pytest.raises(so.errors.StepStoreError):
                stream.update(*batch)
            with pytest.raises(so.errors.StepStoreError):
                stream.update(*batch)
            stream.resume()
            whole.update(*batch)
    assert stream.step == whole.step == 6
    places = np.arange(plan.fit.coordinates)
    assert np.array_equal(stream.read(places), whole.read(places))


def test_other_items_than_those_of_an_interrupted_update_are_refused():
    plan = so.plan(so.events.RareCount(64, 64), LOUD, mechanism="above")
    refused = 0
    for at in range(1, 200):
        stream = plan.open()
        if not interrupted(lambda stream=stream: stream.update([3, 3]), at):
            break
        if stream.step == 0 and stream._above.step:
            refused += 1
            with pytest.raises(so.errors.StepStoreError):
                stream.update([3, 4])
            assert round(stream.update([3, 3])[-1]) == 6
    assert refused


@pytest.mark.parametrize("compression", [None, so.sketches.Compression(measurements=8, sparsity=2)])
def test_a_histogram_stream_is_one_for_all_threads(compression):
    options = {} if compression is None else {"compression": compression}
    plan = plan_live(so.RunningHistogram(32, 32, once=compression is None), LOUD, **options)
    stream = plan.open()
    threads = [threading.Thread(target=lambda: [stream.update(1) for _ in range(8)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stream.step == 32
    if compression is None:
        assert np.rint(stream.noisy()).tolist() == [1.0] * 32


def test_a_resumed_step_is_in_the_table_that_arrives():
    for mechanism in ("per-item", "differenced"):
        plan = so.plan(so.RunningHistogram(6, 6, once=True), LOUD, mechanism=mechanism)
        stream = plan.open(store=Failing(2))
        stream.update(10)
        with pytest.raises(so.errors.StepStoreError):
            stream.update(20)
        stream.counters.resume()
        stream.update(30)
        stream.update(40)
        assert np.rint(stream.noisy()).tolist() == [10, 20, 30, 40, 0, 0]
