"""Every open stream, ledger, store and server belongs to one process and one object, and ends when it is closed."""

import contextlib
import copy
import os
import pickle
import signal
import threading
import time

import cases
import numpy as np
import pytest

import sordino as so

STREAMS = pytest.mark.parametrize("case", cases.STREAMS, ids=lambda case: case.name)
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
OWNED = {
    "ledger": (lambda: so.Ledger(cases.PURE), lambda thing: thing.charge(so.privacy.PureCost(0.1))),
    "store of ledgers": (lambda: so.Store(":memory:"), None),
    "store in a file": (lambda: so.streams.FileStepStore("never-made"), None),
    "store in memory": (so.streams.InMemoryStepStore, lambda thing: thing.acquire("a", new=True)),
    "server": (lambda: so.plan(cases.SURVEY, cases.PURE).server(), None),
}


@STREAMS
def test_a_stream_is_not_copied(case):
    with case.plan.open() as stream:
        for way in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(so.errors.ForkError):
                way(stream)
        assert stream.step == 0


@pytest.mark.parametrize("name", OWNED)
def test_nor_is_anything_else_that_counts(name):
    thing = OWNED[name][0]()
    for way in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(so.errors.ForkError):
            way(thing)


@STREAMS
def test_a_closed_stream_refuses(case):
    stream = case.plan.open()
    case.update(stream)
    stream.close()
    stream.close()
    assert stream.closed
    with pytest.raises(so.errors.StreamClosedError):
        case.update(stream)
    assert stream.step == case.steps
    assert "closed" in repr(stream) or str(case.steps) in repr(stream)


def status(call, seconds=5.0):
    """Return what became of a call in a forked child: 'done', 'refused', 'raised' or 'hangs'."""
    child = os.fork()
    if child == 0:  # nothing of the tests runs on in the child
        code = 3
        with contextlib.suppress(BaseException):
            try:
                call()
                code = 1
            except so.errors.ForkError:
                code = 2
        os._exit(code)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found, code = os.waitpid(child, os.WNOHANG)
        if found:
            return {1: "done", 2: "refused"}.get(os.waitstatus_to_exitcode(code), "raised")
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hangs"


@forks
@STREAMS
def test_a_child_has_no_part_in_it(case):
    """It is refused, also while a thread of its parent is inside; closing, and looking, hang nowhere."""
    with case.plan.open() as stream:
        assert status(lambda: case.update(stream)) == "refused"
        assert status(stream.close) in {"done", "refused"}
        assert status(lambda: (stream.step, stream.closed, repr(stream))) in {"done", "refused"}
        case.update(stream)
        assert stream.step == case.steps


@forks
@pytest.mark.parametrize("name", [name for name, (_, use) in OWNED.items() if use is not None])
def test_nor_in_what_counts(name):
    make, use = OWNED[name]
    thing = make()
    assert status(lambda: use(thing)) == "refused"
    use(thing)


@STREAMS
def test_threads_take_turns(case):
    """Four threads, five updates each: every step once, and the sum is that of all."""
    if case.name in {"edges", "triangles", "stars", "degrees", "forest"}:
        pytest.skip("its events are made of the step that comes next")
    with case.loud.open() as stream:
        case.update(stream)
        before = case.total(stream)
        threads = [threading.Thread(target=lambda: [case.update(stream) for _ in range(5)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert stream.step == 21 * case.steps
        assert case.total(stream) - before == pytest.approx(20 * case.grows, abs=0.2)


@STREAMS
def test_a_horizon_ends_it_with_nothing_lost(case):
    if case.name == "unbounded":
        pytest.skip("it has none")
    with case.loud.open() as stream:
        done = 0
        with pytest.raises(so.errors.HorizonError):
            for _ in range(100):
                case.update(stream)
                done += case.steps
        assert stream.step == done
        np.testing.assert_allclose(np.isfinite(case.total(stream)), True)
