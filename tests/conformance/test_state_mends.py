"""What a reading of everything that keeps state found, mended: each a test that failed before."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import sordino as so
from command_line import sordino
from sordino.streams.counter import Stream

KEY = bytes(32)
SHARP = so.GaussianDP(mu=1e6)
EVENTS = {
    "words": (
        so.events.SubstringCounts("ab", 2, 64),
        lambda n: (list("abba" * n)[:n],),
        lambda s: s.count(["a", "ab"]),
    ),
    "episodes": (
        so.events.EpisodeCounts("ab", 2, 64),
        lambda n: (list("abba" * n)[:n],),
        lambda s: s.count(["a", "ab"]),
    ),
    "edges": (so.events.EdgeCount(40, 64), lambda n: (list(range(n)), [39] * n), lambda s: s.value),
    "degrees": (
        so.events.DegreeHistogram(40, 64, max_degree=3, unchecked=True),
        lambda n: (list(range(0, 2 * n, 2))[:n], list(range(1, 2 * n + 1, 2))[:n]),
        lambda s: s.value,
    ),
    "forest": (
        so.events.SpanningForestCost(40, 64, max_weight=1.0),
        lambda n: (list(range(n)), list(range(1, n + 1)), [0.5] * n),
        lambda s: s.value,
    ),
    "weights": (
        so.events.WeightedGraph(6, 64, max_weight=1.0),
        lambda n: ([i % 5 for i in range(n)], [5] * n, [1.0] * n),
        lambda s: s.weights([0, 1, 2], [5, 5, 5]),
    ),
}


@pytest.mark.parametrize("name", EVENTS)
@pytest.mark.parametrize("interrupted", [False, True])
def test_a_batch_of_events_that_goes_on_from_published_steps_is_taken_once(name, interrupted, monkeypatch):
    """An old checkpoint, a batch half of which was published, and an exception right behind that half."""
    workload, batch, read = EVENTS[name]
    plan = so.plan(so.Continual(workload, reads="dense") if name == "words" else workload, SHARP)
    with plan.open() as known:
        known.update(*batch(16))
        expected = np.asarray(read(known))
    store = so.streams.InMemoryStepStore()
    with plan.open(store=store) as stream:
        saved = stream.counters.checkpoint(KEY)
        stream.update(*batch(11))
    again = plan.attach(so.restore(saved, KEY, store, replay=True), lambda _stream: None)
    replay, raised = Stream._replay, []

    def late(self, *arguments):
        values = replay(self, *arguments)
        if interrupted and not raised:
            raised.append(True)
            raise KeyboardInterrupt
        return values

    monkeypatch.setattr(Stream, "_replay", late)
    with again as stream:
        with contextlib.suppress(KeyboardInterrupt):
            stream.update(*batch(16))
        if stream.pending:
            stream.resume()
        assert bool(raised) == interrupted
        assert stream.step == stream.counters.step == 16
        assert np.allclose(read(stream), expected, atol=0.01)


def test_a_store_that_closes_badly_closes_nothing_else(tmp_path, monkeypatch):
    store = so.streams.FileStepStore(tmp_path / "s")
    store.acquire("x", new=True)
    close = os.close

    def broken(descriptor):
        close(descriptor)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "close", broken)
    with pytest.raises(KeyboardInterrupt):
        store.release()
    monkeypatch.undo()
    with (tmp_path / "other").open("wb", buffering=0) as other:  # which may have the number
        store.release()
        other.write(b"x")


def test_an_interrupted_close_gives_the_store_back_the_next_time(tmp_path, monkeypatch):
    path = tmp_path / "s"
    stream = so.plan(so.Continual(so.RunningSum(4)), SHARP).open(store=so.streams.FileStepStore(path))
    release, raised = so.streams.FileStepStore.release, []

    def late(self):
        if not raised:
            raised.append(True)
            raise KeyboardInterrupt
        release(self)

    monkeypatch.setattr(so.streams.FileStepStore, "release", late)
    with pytest.raises(KeyboardInterrupt):
        stream.close()
    stream.close()
    stream.close()
    other = so.streams.FileStepStore(path)
    with pytest.raises(so.errors.StepStoreError, match="another stream"):
        other.acquire("y", new=False)  # not in use any more


@pytest.mark.parametrize("kept", [1, 9, 20, 40])
def test_a_first_line_that_a_crash_cut_off_is_no_store(kept, tmp_path):
    path = tmp_path / "s"
    with so.plan(so.Continual(so.RunningSum(4)), SHARP).open(store=so.streams.FileStepStore(path)):
        pass
    path.write_bytes(path.read_bytes()[:kept])
    plan = so.plan(so.Continual(so.RunningSum(4)), SHARP)
    with plan.open(store=so.streams.FileStepStore(path)) as stream:
        stream.update(3)
    path.write_bytes(b"x" * kept)
    with pytest.raises(so.errors.StepStoreError):
        plan.open(store=so.streams.FileStepStore(path))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_storage_in_memory_is_of_one_process():
    storage = so.Store(":memory:")
    child = os.fork()
    if child == 0:
        try:
            so.Ledger(so.PureDP(epsilon=1.0), store=storage)
        except so.errors.ForkError:
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    so.Ledger(so.PureDP(epsilon=1.0), store=storage)


@pytest.mark.parametrize("names", [("x", "x"), ("x", "x.steps"), ("x", "./x")])
def test_state_key_and_steps_are_three_files(names, tmp_path):
    state, key = (tmp_path / name for name in names)
    said = sordino("stream", "--workload", "running-sum", "--mu", 1, "--state", state, "--key-file", key, text="1\n2\n")
    assert said.exit_code == 2 and "two files" in said.stderr and not any(tmp_path.iterdir())


@pytest.mark.parametrize("rest", [b"34\n", None])
def test_a_line_that_was_begun_is_read_to_its_end(rest, tmp_path):
    """A signal comes in the middle of a line; the next run goes on behind it."""
    program = (
        "import sys; from sordino.cli.commands import application; "
        "application(['stream', '--workload', 'running-sum', '--mu', '1e6', '--state', sys.argv[1], '--key-file', sys.argv[2]])"
    )
    state, key = tmp_path / "s", tmp_path / "k"
    reader, writer = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", program, str(state), str(key)], stdin=reader, stdout=subprocess.PIPE, text=True
    ) as run:
        os.write(writer, b"1\n2\n12")
        assert run.stdout is not None
        assert run.stdout.readline() == "step,value\n"
        run.stdout.readline(), run.stdout.readline()
        run.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        if rest is not None:
            os.write(writer, rest + b"7\n")
        last = run.stdout.read()
        assert run.wait(20) == 0
    if rest is None:
        assert last == ""
    else:
        step, value = last.strip().split(",")
        assert step == "3" and round(float(value)) == 1 + 2 + 1234
        left = os.read(reader, 99)
        assert left == b"7\n"
    os.close(reader)
    os.close(writer)


def fed(text, *arguments):
    """Return what `sordino stream` said of a text on its standard input."""
    reader, writer = os.pipe()
    os.write(writer, text)
    os.close(writer)
    before = os.dup(0)
    os.dup2(reader, 0)
    try:
        return sordino("stream", *arguments)
    finally:
        os.dup2(before, 0)
        os.close(before)
        os.close(reader)


def test_a_run_that_begins_while_another_ends_does_not_write_an_old_state(tmp_path, monkeypatch):
    """The state is read before the store is locked: what the other run saved in between counts."""
    options = ["--workload", "running-sum", "--mu", 1e6, "--state", tmp_path / "s", "--key-file", tmp_path / "k"]
    assert fed(b"1\n2\n", *options).exit_code == 0
    restore, others = so.restore, []

    def late(*arguments, **named):
        if not others:  # the other run goes on, and ends
            others.append(None)
            others.append(fed(b"3\n4\n", *options[4:]))
        return restore(*arguments, **named)

    def last(said):
        assert said.exit_code == 0, said.output
        step, value = said.stdout.splitlines()[-1].split(",")
        return int(step), round(float(value))

    monkeypatch.setattr(so, "restore", late)
    said = fed(b"5\n", *options[4:])
    assert last(others[1]) == (4, 10) and last(said) == (5, 15)
    monkeypatch.undo()
    assert last(fed(b"6\n", *options[4:])) == (6, 21)


@pytest.mark.parametrize("kind", ["array", "list", "pandas", "polars", "arrow", "buffer"])
def test_one_malformed_report_takes_no_other_along(kind):
    plan = so.plan(so.local.LocalSurvey(1000, (0.0, 60.0), intervals=4), so.PureDP(epsilon=1.0))
    reports = plan.encode_clients(np.arange(60.0))

    def table(array):
        if kind in {"array", "list"}:
            return array if kind == "array" else array.tolist()
        if kind == "buffer":
            return memoryview(np.ascontiguousarray(array))
        if kind == "arrow":
            pa = pytest.importorskip("pyarrow")
            return pa.table({str(i): array[:, i] for i in range(array.shape[1])})
        library = pytest.importorskip(kind)
        return library.DataFrame({str(i): array[:, i] for i in range(array.shape[1])})

    large = reports.copy()
    large[0] = 2**60
    missing = reports.astype(np.float64)
    missing[1] = np.nan
    for array, accepted in ((reports, 60), (large, 59), (missing, 59 if kind != "list" else 0)):
        for clients in (None, range(60)):
            server = plan.server()
            server.add_many(table(array), clients)
            assert server.accepted == accepted, clients
    if kind == "pandas":
        frame = table(reports).astype(object)
        frame.iloc[3, 1] = "x"
        server = plan.server()
        server.add_many(frame)
        assert server.accepted == 59
