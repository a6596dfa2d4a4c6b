"""Handlers of signals in the middle of a call, and children that compute: nothing hangs, counts twice or is dropped."""

import multiprocessing
import signal
import threading

import cases
import numpy as np
import pytest
from interrupts import within

import sordino as so

STREAMS = pytest.mark.parametrize("case", cases.STREAMS, ids=lambda case: case.name)
alarms = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs alarms")


def check_reentry(case, opened):
    """A handler that updates the same stream: it is refused, or its update counts as any other."""
    for at in range(1, 3000):
        with opened() as stream:
            taken = []

            def handler(stream=stream, taken=taken):
                try:
                    case.update(stream)
                    taken.append(True)
                except (so.errors.BusyError, so.errors.StepStoreError):
                    pass

            if not within(lambda stream=stream: case.update(stream), at, handler):
                break
            updates = 1 + len(taken)
            assert stream.step == updates * case.steps, at
            before = case.total(stream)
            case.update(stream)
            assert stream.step == (updates + 1) * case.steps, at
            assert case.total(stream) - before == pytest.approx(case.grows, abs=0.05), at
    assert 2 < at < 2999


@STREAMS
def test_a_handler_may_update_the_stream_that_is_updated(case):
    check_reentry(case, case.loud.open)


@pytest.mark.parametrize("stored", [False, True])
def test_a_handler_may_read_the_value(stored):
    """Whatever the place: the value before or after the step, or, with a store, that it is not stored yet."""
    plan = so.plan(so.Continual(so.RunningSum(64)), cases.LOUD)
    for at in range(1, 3000):
        seen = []

        def handler(seen=seen):
            try:
                seen.append(stream.value)
            except so.errors.StepStoreError:
                seen.append(None)

        with plan.open(store=so.streams.InMemoryStepStore() if stored else None) as stream:
            stream.update(3)
            if not within(lambda stream=stream: stream.update([4, 5]), at, handler):
                break
            assert seen[0] is None or round(seen[0]) in {3, 12}
            assert stream.step == 3 and round(stream.value) == 12
    assert 2 < at < 2999


@pytest.mark.parametrize("stored", [False, True])
def test_a_handler_may_use_the_ledger_that_is_charged(stored):
    for at in range(1, 3000):
        ledger = so.Ledger(cases.PURE, store=":memory:" if stored else None)
        charged = []

        def handler(ledger=ledger, charged=charged):
            try:
                ledger.charge(so.privacy.PureCost(0.25))
                charged.append(True)
            except so.errors.BusyError:
                pass

        if stored and at % 7:
            continue  # thousands of places
        if not within(lambda ledger=ledger: ledger.charge(so.privacy.PureCost(0.25)), at, handler):
            break
        assert len(ledger.history) == 1 + len(charged)
        assert ledger.spent["pure"]["epsilon"] == 0.25 * (1 + len(charged))
    assert 2 < at < 2999


@alarms
@pytest.mark.parametrize("stored", [False, True])
def test_a_long_batch_ends_between_two_steps(stored):
    """What was published is that of an uninterrupted stream; the rest can be given again."""
    plan = so.plan(so.Continual(so.RunningSum(1 << 17), dim=24), so.GaussianDP(mu=1.0), mechanism="square-root")
    rows = np.random.default_rng(0).integers(0, 9, (1 << 16, 24))
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with so.testing.deterministic_noise(cases.KEY):
            stream = plan.open(store=so.streams.InMemoryStepStore() if stored else None)
            whole = plan.open()
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            for _ in range(100):
                stream.update(rows)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    if stored and stream.pending:
        stream.resume()
    done = stream.step
    assert 0 < done < 1 << 17
    fed = np.concatenate([rows, rows])[: done + 1]
    expected = whole.update(fed)
    stream.update(rows[done % len(rows)])
    np.testing.assert_array_equal(stream.value, expected[-1])


@alarms
def test_items_that_change_meanwhile_change_nothing():
    """A handler writes to the array of the batch: the call has a copy."""
    plan = so.plan(so.Continual(so.RunningSum(1 << 18), dim=8), so.PureDP(epsilon=1e6), integral=False, max_value=9)
    rows = np.ones((1 << 17, 8))

    def spoil(*_):
        rows[:] = np.nan

    before = signal.signal(signal.SIGALRM, spoil)
    try:
        with plan.open() as stream:
            signal.setitimer(signal.ITIMER_REAL, 0.06)
            stream.update(rows)
            assert stream.step == 1 << 17
            assert np.abs(stream.value - (1 << 17)).max() < 1.0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def compute(queue):
    queue.put(float(so.plan(so.Histogram(2**18), cases.LOUD).release(np.ones(2**18, dtype=np.int64)).values.mean()))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_children_compute_after_their_parent_did():
    """Threads of the parent are not there in the child: it has its own."""
    so.plan(so.Histogram(2**18), cases.LOUD).release(np.ones(2**18, dtype=np.int64))
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=compute, args=(queue,))
    child.start()
    try:
        assert queue.get(timeout=30) == pytest.approx(1.0, abs=1e-3)
    finally:
        child.kill()
        child.join()


def test_two_streams_of_events_never_share_their_counters(tmp_path):
    plan = so.plan(so.events.EdgeCount(9, 16), cases.APPROX)
    store = so.streams.FileStepStore(tmp_path / "steps")
    with plan.open(store=store) as stream:
        stream.update([1], [2])
        kept = stream.counters.checkpoint(cases.KEY)
    counters = so.restore(kept, cases.KEY, store)
    with pytest.raises(so.errors.InvalidParameterError):
        plan.attach(counters, replay=lambda s: None)
    one = plan.attach(counters, replay=lambda s: s.update([1], [2]))
    with pytest.raises(so.errors.InvalidParameterError, match="already"):
        plan.attach(counters, replay=lambda s: s.update([1], [2]))
    one.close()


def test_servers_take_turns():
    plan = so.plan(cases.SURVEY, cases.PURE, mechanism="identity")
    reports = plan.encode_clients(np.full(400, 0.3))
    server = plan.server()
    threads = [
        threading.Thread(target=lambda part=part: [server.add(r) for r in part]) for part in np.split(reports, 4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.accepted == 400
    np.testing.assert_array_equal(server._reports.sums, reports.sum(axis=0))
