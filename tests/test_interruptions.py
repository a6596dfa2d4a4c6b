"""A signal at any instruction of an update: the step is taken or not, `step` says which, and nothing counts twice.

Signals are looked for where the interpreter does: after a call, at the start of a function, at a jump backwards. Here
an exception is raised at each of these places in turn, in the code of the library alone.
"""

import dis
import sys
import threading
import warnings

import numpy as np
import pytest

import sordino as so

PLACES = ("CALL", "CALL_FUNCTION_EX", "RESUME", "JUMP_BACKWARD")
LOUD = so.PureDP(epsilon=1e6)
LIBRARY = str(so.__path__[0])


class Interrupted(BaseException):
    """What a handler raises."""


def interrupted(call, at):
    """Call, raising at the `at`-th place where a signal may come in; return whether there were so many."""
    seen, previous = 0, {}

    def trace(frame, event, _argument):
        nonlocal seen
        # Not in the store: behind a `return` inside `with`, the place after a call is behind the end of the block for
        # an exception of a trace, which it is not for a signal: the store's plain lock would stay held.
        if not frame.f_code.co_filename.startswith(LIBRARY) or frame.f_code.co_filename.endswith("step_store.py"):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            before = previous.get(frame)
            if before in PLACES:
                seen += 1
                if seen == at:
                    sys.settrace(None)
                    raise Interrupted
            previous[frame] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
        return trace

    sys.settrace(trace)
    try:
        call()
    except Interrupted:
        return True
    finally:
        sys.settrace(None)
    return False


def stored(plan):
    return plan.open(store=so.InMemoryStepStore())


STREAMS = {
    "one": (so.RunningSum(64), {}, lambda s: s.update(3), lambda p: p.open(), [3]),
    "batch": (so.RunningSum(64), {}, lambda s: s.update([3, 4]), lambda p: p.open(), [3, 7]),
    "stored": (so.RunningSum(64), {}, lambda s: s.update([3, 4]), stored, [3, 7]),
    "named": (so.RunningSum(64), {}, lambda s: s.update([3, 4], step_id="a"), stored, [3, 7]),
    "above": (so.SparseCount(64, 64), {"mechanism": "above"}, lambda s: s.update([3, 3]), lambda p: p.open(), [3, 6]),
    "plain": (
        so.SparseCount(64, 64),
        {"mechanism": "binary-tree"},
        lambda s: s.update([3, 3]),
        lambda p: p.open(),
        [3, 6],
    ),
    "histogram": (so.RunningHistogram(4, 9), {}, lambda s: s.update(2), lambda p: p.open(), [1]),
    "once": (so.RunningHistogram(4, 4, once=True), {}, lambda s: s.update(5), lambda p: p.open(), [5]),
    "pan-private": (so.RunningHistogram(4, 9), {"pan_private": True}, lambda s: s.update(2), lambda p: p.open(), [1]),
}


def total(stream):
    if isinstance(stream, so.HistogramStream):
        return float(stream.noisy().sum())
    return float(stream.value)


@pytest.mark.parametrize("name", STREAMS)
def test_an_update_is_taken_once_or_not_at_all(name):
    workload, options, update, open_stream, answers = STREAMS[name]
    plan = so.plan_stream(workload, LOUD, **options)
    for at in range(1, 2000):
        stream = open_stream(plan)
        if not interrupted(lambda stream=stream: update(stream), at):
            break
        if getattr(stream, "pending", False):
            with pytest.raises(so.StepStoreError):
                stream.update(1)
            stream.resume()
        if stream.step == 0:
            update(stream)
        assert stream.step == len(answers), (name, at)
        assert round(total(stream)) == answers[-1], (name, at)
        # What comes next follows.
        update(stream) if name != "named" else stream.update([3, 4], step_id="b")
        assert round(total(stream)) == 2 * answers[-1], (name, at)
        stream.close()
    assert 2 < at < 1999


@pytest.mark.parametrize("name", ["stored", "named"])
def test_a_store_never_has_a_gap(name):
    _, _, update, _, _ = STREAMS[name]
    plan = so.plan_stream(so.RunningSum(64), LOUD)
    for at in range(1, 2000):
        store = so.InMemoryStepStore()
        stream = plan.open(store=store)
        stream.update(1)
        if not interrupted(lambda stream=stream: update(stream), at):
            break
        if stream.pending:
            stream.resume()
        ends = [entry.step + entry.steps for entry in store.entries()]
        assert [entry.step for entry in store.entries()] == [0, *ends[:-1]]
        assert ends[-1] == stream.step
        stream.close()


class Failing(so.InMemoryStepStore):
    """Fails at one append."""

    def __init__(self, at):
        super().__init__()
        self.left = at

    def append(self, entry):
        self.left -= 1
        if self.left == 0:
            raise so.StepStoreError("full")
        super().append(entry)


@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize("which", ["graph", "words"])
def test_no_event_of_a_batch_is_dropped_after_a_failure(which, at, monkeypatch):
    """Parts of a batch that come after the one that was not stored are published by `resume`."""
    monkeypatch.setattr("sordino.event_streams.stream._LAID_OUT", 12)
    graph = which == "graph"
    workload = so.SyntheticGraph(4, 16, max_weight=1.0) if graph else so.SubstringCounts("ab", 2, 16)
    batch = ([0, 1, 2, 0, 1, 2], [1, 2, 3, 2, 3, 0]) if graph else ("abbaab",)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with so.testing.deterministic_noise(bytes(32)):
            plan = so.plan_stream(workload, LOUD, reads="dense")
            stream, whole = plan.open(store=Failing(at)), plan.open()
            with pytest.raises(so.StepStoreError):
                stream.update(*batch)
            with pytest.raises(so.StepStoreError):
                stream.update(*batch)
            stream.resume()
            whole.update(*batch)
    assert stream.step == whole.step == 6
    places = np.arange(plan.coordinates)
    assert np.array_equal(stream.read(places), whole.read(places))


def test_other_items_than_those_of_an_interrupted_update_are_refused():
    plan = so.plan_stream(so.SparseCount(64, 64), LOUD, mechanism="above")
    refused = 0
    for at in range(1, 200):
        stream = plan.open()
        if not interrupted(lambda stream=stream: stream.update([3, 3]), at):
            break
        if stream.step == 0 and stream._above.step:
            refused += 1
            with pytest.raises(so.StepStoreError):
                stream.update([3, 4])
            assert round(stream.update([3, 3])[-1]) == 6
    assert refused


@pytest.mark.parametrize("compression", [None, so.Compression(measurements=8, sparsity=2)])
def test_a_histogram_stream_is_one_for_all_threads(compression):
    options = {} if compression is None else {"compression": compression}
    plan = so.plan_stream(so.RunningHistogram(32, 32, once=compression is None), LOUD, **options)
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
        plan = so.plan_stream(so.RunningHistogram(6, 6, once=True), LOUD, mechanism=mechanism)
        stream = plan.open(store=Failing(2))
        stream.update(10)
        with pytest.raises(so.StepStoreError):
            stream.update(20)
        stream.counters.resume()
        stream.update(30)
        stream.update(40)
        assert np.rint(stream.noisy()).tolist() == [10, 20, 30, 40, 0, 0]
