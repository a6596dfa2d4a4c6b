"""Step stores: on the disk before an answer is returned, no step twice with other items."""

import base64
import json
import os
import threading
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sordino as so

GAUSSIAN = so.GaussianDP(mu=1.0)
KEY = bytes(range(32))
PLAN = so.plan(so.Continual(so.RunningSum(12)), GAUSSIAN)


class Failing(so.streams.InMemoryStepStore):
    """Fails when told to, like a full disk."""

    def __init__(self):
        super().__init__()
        self.failing = False

    def append(self, entry):
        if self.failing:
            raise so.errors.StepStoreError("no space left")
        super().append(entry)


@pytest.fixture(params=["memory", "file"])
def store(request, tmp_path):
    return so.streams.InMemoryStepStore() if request.param == "memory" else so.streams.FileStepStore(tmp_path / "steps")


def increments(entries):
    return np.concatenate([np.frombuffer(entry.units, "<i8") for entry in entries])


def test_entries_are_what_was_published(store):
    with PLAN.open(store=store) as stream:
        answers = [stream.update(3), *stream.update([1, 4]), stream.update(1, step_id="last")]
        entries = store.entries()
    assert [(e.step, e.steps, e.step_id) for e in entries] == [(0, 1, None), (1, 2, None), (3, 1, "last")]
    assert np.concatenate([np.frombuffer(e.values, "<f8") for e in entries]).tolist() == answers
    spacing = 2.0**PLAN.fit.door.grid
    assert np.allclose(np.cumsum(increments(entries)) * spacing, answers, rtol=0, atol=1e-12)


def test_an_answer_is_on_the_disk_before_it_is_returned(tmp_path, monkeypatch):
    order = []
    write, fsync = os.write, os.fsync
    monkeypatch.setattr(os, "write", lambda *a: order.append("write") or write(*a))
    monkeypatch.setattr(os, "fsync", lambda *a: order.append("sync") or fsync(*a))
    stream = PLAN.open(store=so.streams.FileStepStore(tmp_path / "steps"))
    order.clear()
    stream.update(1)
    assert order == ["write", "sync"]
    stream.close()


def test_nobody_sees_an_answer_that_was_not_stored():
    """Whoever saw it could see the same noise on other items after a restart."""
    store = Failing()
    stream = PLAN.open(store=store)
    first = stream.update(7)
    store.failing = True
    with pytest.raises(so.errors.StepStoreError, match="no space") as caught:
        stream.update([5, 6])
    assert "5" not in str(caught.value)
    assert stream.step == 1
    assert len(store.entries()) == 1
    for look in (lambda: stream.value, lambda: stream.interval(0.9), lambda: stream.checkpoint(KEY)):
        with pytest.raises(so.errors.StepStoreError, match="resume"):
            look()
    for again in (lambda: stream.update([5, 6]), lambda: stream.update(1, step_id="x"), stream.resume):
        with pytest.raises(so.errors.StepStoreError):
            again()
    store.failing = False
    answers = stream.resume()
    assert answers.shape == (2,)
    assert stream.value == answers[-1] != first
    assert stream.step == 3
    with pytest.raises(so.errors.InvalidParameterError, match="nothing to resume"):
        stream.resume()


def test_resume_does_not_store_twice():
    class Interrupted(so.streams.InMemoryStepStore):
        def append(self, entry):
            super().append(entry)
            raise KeyboardInterrupt

    store = Interrupted()
    stream = PLAN.open(store=store)
    with pytest.raises(KeyboardInterrupt):
        stream.update(2)
    assert isinstance(float(stream.resume()[0]), float)
    assert len(store.entries()) == 1
    assert stream.step == 1


def test_a_full_disk_loses_nothing(tmp_path, monkeypatch):
    path = tmp_path / "steps"
    stream = PLAN.open(store=so.streams.FileStepStore(path))
    checkpoint = stream.checkpoint(KEY)
    first, size, write = stream.update(1), path.stat().st_size, os.write
    room = [9, 9, 0]
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[: room.pop(0)]))
    with pytest.raises(so.errors.StepStoreError, match="full"):
        stream.update(2)
    assert path.stat().st_size == size
    monkeypatch.setattr(os, "write", write)
    monkeypatch.setattr(os, "fsync", _refuse)
    monkeypatch.setattr(os, "ftruncate", _refuse)
    with pytest.raises(so.errors.StepStoreError, match="Input/output"):
        stream.resume()
    monkeypatch.undo()
    second = stream.resume()[0]
    stream.close()
    again = so.restore(checkpoint, KEY, so.streams.FileStepStore(path), replay=True)
    assert again.update([1, 2]).tolist() == [first, second]
    again.close()


def _refuse(*_arguments):
    raise OSError(5, "Input/output error")


def test_step_id_is_idempotent(store):
    stream = PLAN.open(store=store)
    answers = [stream.update(x, step_id=f"id{x}") for x in range(4)]
    assert [stream.update(99, step_id=f"id{x}") for x in range(4)] == answers
    assert stream.step == 4
    with pytest.raises(so.errors.DuplicateRequestError, match="another number"):
        stream.update([1, 2], step_id="id1")
    with pytest.raises(so.errors.DataTypeError):
        stream.update(1, step_id=5)
    stream.close()
    with pytest.raises(so.errors.StreamClosedError):
        stream.update(0, step_id="id0")
    with pytest.raises(so.errors.InvalidParameterError, match="store"):
        PLAN.open().update(1, step_id="x")


def test_step_ids_catch_up_with_a_stale_checkpoint(store):
    stream = PLAN.open(store=store)
    checkpoint = stream.checkpoint(KEY)
    answers = [stream.update(1, step_id="a"), *stream.update([2, 3], step_id="b")]
    stream.close()
    again = so.restore(checkpoint, KEY, store, replay=True)
    with pytest.raises(so.errors.StepConflictError):
        again.update(8, step_id="a")
    assert again.update(1, step_id="a") == answers[0]
    assert again.update(1, step_id="a") == answers[0]
    with pytest.raises(so.errors.DuplicateRequestError, match="under this step_id"):
        again.update([2, 3], step_id="new name")
    assert again.update(2) == answers[1]
    assert again.update([2, 3], step_id="b").tolist() == answers[1:]
    assert again.step == 3
    again.update(4, step_id="c")
    again.close()


def test_other_items_at_a_released_step_are_refused_and_nothing_is_lost(store):
    stream = PLAN.open(store=store)
    stream.update(10)
    checkpoint = stream.checkpoint(KEY)
    answers = stream.update([4, 5, 6])
    stream.close()
    again = so.restore(checkpoint, KEY, store, replay=True)
    for items in (5, [4, 6], [4, 5, 7], [4, 5, 7, 1]):
        with pytest.raises(so.errors.StepConflictError) as caught:
            again.update(items)
        assert not any(digit in str(caught.value) for digit in "0123456789")
        assert again.step == 1
    with pytest.raises(so.errors.HorizonError, match="covers: 11;"):
        again.update([4, 5, 6, *[0] * 9])
    assert again.step == 1
    assert again.update([4, 5]).tolist() == answers[:2].tolist()
    across = again.update([6, 7])
    assert across[0] == answers[2]
    assert again.step == 5
    again.close()


@given(first=st.lists(st.integers(1, 3), min_size=1, max_size=3), second=st.lists(st.integers(1, 4), max_size=4))
def test_replay_may_be_split_anywhere(first, second):
    items = np.arange(12)
    store = so.streams.InMemoryStepStore()
    stream = PLAN.open(store=store)
    checkpoint, step, answers = stream.checkpoint(KEY), 0, []
    for count in first:
        answers += stream.update(items[step : step + count]).tolist()
        step += count
    stream.close()
    again = so.restore(checkpoint, KEY, store, replay=True)
    step = 0
    for count in second:
        part = items[step : step + count]
        if len(part):
            replayed = again.update(part).tolist()
            overlap = answers[step : step + count]
            assert replayed[: len(overlap)] == overlap
        step += len(part)
    again.close()


def test_an_answer_of_a_batch_across_the_boundary_survives_a_failing_store():
    store = Failing()
    stream = PLAN.open(store=store)
    checkpoint = stream.checkpoint(KEY)
    first = stream.update(1)
    stream.close()
    again = so.restore(checkpoint, KEY, store, replay=True)
    store.failing = True
    with pytest.raises(so.errors.StepStoreError):
        again.update([1, 2])
    store.failing = False
    answers = again.resume()
    assert answers.shape == (2,)
    assert answers[0] == first


def test_one_opening_at_a_time(store, tmp_path):
    stream = PLAN.open(store=store)
    checkpoint = stream.checkpoint(KEY)
    with pytest.raises(so.errors.StepStoreError, match="in use"):
        PLAN.open(store=store)
    with pytest.raises(so.errors.StepStoreError, match="in use"):
        so.restore(checkpoint, KEY, store)
    if isinstance(store, so.streams.FileStepStore):
        with pytest.raises(so.errors.StepStoreError, match="in use"):
            so.restore(checkpoint, KEY, so.streams.FileStepStore(tmp_path / "steps"))
    stream.update(1)
    stream.close()
    with pytest.raises(so.errors.StepStoreError, match="another stream"):
        PLAN.open(store=store)
    again = so.restore(checkpoint, KEY, store, replay=True)
    again.close()


def test_a_store_without_steps_may_be_taken_anew(store):
    ledger = so.Ledger(GAUSSIAN)
    old = PLAN.open(store=store)
    checkpoint = old.checkpoint(KEY)
    old.close()
    ledger.charge(PLAN.cost)
    with pytest.raises(so.errors.BudgetExceededError):
        PLAN.open(ledger, store=store)
    PLAN.open(store=store).close()
    with pytest.raises(so.errors.StepStoreError, match="another stream"):
        so.restore(checkpoint, KEY, store)


def test_two_threads_restoring_one_state(store):
    stream = PLAN.open(store=store)
    stream.update(1)
    checkpoint = stream.checkpoint(KEY)
    stream.close()
    opened, refused = [], []

    def work():
        try:
            opened.append(so.restore(checkpoint, KEY, store))
        except so.errors.StepStoreError:
            refused.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == 1
    assert len(refused) == 3


def test_concurrent_updates_are_stored_once_each_in_order(store):
    plan = so.plan(so.Continual(so.RunningSum(400)), GAUSSIAN)
    stream = plan.open(store=store)

    def work():
        for _ in range(25):
            stream.update([1, 2])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [e.step for e in store.entries()] == list(range(0, 200, 2))
    stream.close()


def lines_of(path):
    return path.read_bytes().split(b"\n")


@pytest.fixture
def used(tmp_path):
    path = tmp_path / "steps"
    stream = PLAN.open(store=so.streams.FileStepStore(path))
    checkpoint = stream.checkpoint(KEY)
    answers = [stream.update(x) for x in (1, 2, 3)]
    stream.close()
    return path, checkpoint, answers


@pytest.mark.parametrize("torn", [b"12345678 {", b"0", b"\0\0\0", "sectors"])
def test_a_line_cut_off_by_a_crash_is_dropped(used, torn):
    path, checkpoint, answers = used
    whole = path.read_bytes()
    if torn == "sectors":
        torn = b"12345678 {".ljust(1024 - len(whole) % 512, b"x") + bytes(512) + b"}\n"
    path.write_bytes(whole + torn)
    again = so.restore(checkpoint, KEY, so.streams.FileStepStore(path), replay=True)
    assert again.update([1, 2, 3]).tolist() == answers
    again.update(4)
    again.close()
    assert path.read_bytes().startswith(whole)
    assert len(lines_of(path)) == 6


@pytest.mark.parametrize("end", [b"", b"x", b"\0", b"\r", b" "])
def test_a_whole_line_was_published_whatever_follows(used, end):
    """Its answer is known: another item on the same noise would tell the difference of the two exactly."""
    path, checkpoint, answers = used
    path.write_bytes(path.read_bytes()[:-1] + end)
    again = so.restore(checkpoint, KEY, so.streams.FileStepStore(path), replay=True)
    with pytest.raises(so.errors.StepConflictError):
        again.update([1, 2, 7])
    assert again.update([1, 2, 3]).tolist() == answers
    again.update(4)
    again.close()
    assert len(lines_of(path)) == 6


def test_no_byte_that_is_altered_drops_a_step(used):
    path, _, _ = used
    whole = path.read_bytes()
    rng = np.random.default_rng(5)
    for place in range(0, len(whole), 3):
        altered = bytearray(whole)
        altered[place] = rng.integers(0, 256)
        path.write_bytes(altered)
        store = so.streams.FileStepStore(path)
        try:
            store.acquire(json.loads(whole.split(b"\n")[0][9:])["stream"], new=False)
        except so.errors.StepStoreError:
            continue
        assert len(store.entries()) == 3
        store.release()


def test_a_gap_and_a_repeated_entry():
    store = so.streams.InMemoryStepStore()
    store.acquire("a", new=True)
    entry = so.streams.StepEntry(0, 2, None, b"", b"")
    for _ in range(2):
        store.append(entry)
    assert store.entries() == (entry,)
    for step in (0, 1, 3):
        with pytest.raises(so.errors.StepStoreError, match="follow"):
            store.append(so.streams.StepEntry(step, 1, None, b"", b""))


def test_what_is_no_regular_file_is_no_store(tmp_path):
    for path in ("/dev/zero", "/dev/null"):
        with pytest.raises(so.errors.StepStoreError):
            PLAN.open(store=so.streams.FileStepStore(path))


@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_an_altered_line_is_refused(used, number):
    """The last one too: it was whole once, so its step was released."""
    path, checkpoint, _ = used
    lines = lines_of(path)
    line = bytearray(lines[number])
    line[30] ^= 1
    lines[number] = bytes(line)
    before = b"\n".join(lines)
    path.write_bytes(before)
    with pytest.raises(so.errors.StepStoreError, match="altered"):
        so.restore(checkpoint, KEY, so.streams.FileStepStore(path), replay=True)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("field", "value"),
    [("id", ["a"]), ("id", 5), ("steps", 0), ("steps", "1"), ("steps", True), ("units", ""), ("values", "AAAA")]
    + [(field, None) for field in ("step", "steps", "units", "values")]
    + [("steps", 2), ("steps", 10**400), ("units", "A" * 22)],
)
def test_lines_of_another_form_are_refused(used, field, value):
    """A checksum finds accidents; a line with a right one may still be no step of this stream."""
    path, checkpoint, _ = used
    lines = lines_of(path)
    record = {**json.loads(lines[3][9:]), field: value}
    if field == "units" and value:
        record["values"] = record["units"] = base64.b64encode(bytes(16)).decode()  # of two counters
    text = json.dumps(record, sort_keys=True, separators=(",", ":")).encode()
    lines[3] = b"%08x " % zlib.crc32(text) + text
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(so.errors.StepStoreError, match=r"altered|form"):
        so.restore(checkpoint, KEY, so.streams.FileStepStore(path), replay=True)


def test_missing_and_repeated_lines_are_refused(used):
    path, checkpoint, _ = used
    header, one, two, three, end = lines_of(path)
    for lines in ([header, one, three, end], [header, two, one, three, end], [header, one, one, two, end]):
        path.write_bytes(b"\n".join(lines))
        with pytest.raises(so.errors.StepStoreError, match="altered"):
            so.restore(checkpoint, KEY, so.streams.FileStepStore(path), replay=True)


@pytest.mark.parametrize("content", [b"a,b\n1,2\n", b"just a line", b"\n"])
def test_other_files_are_left_alone(tmp_path, content):
    path = tmp_path / "data.csv"
    path.write_bytes(content)
    with pytest.raises(so.errors.StepStoreError):
        PLAN.open(store=so.streams.FileStepStore(path))
    assert path.read_bytes() == content


def test_places_that_cannot_be_used(tmp_path):
    ledger = so.Ledger(GAUSSIAN)
    for path in (tmp_path, tmp_path / "no" / "such"):
        with pytest.raises(so.errors.StepStoreError, match="opened"):
            PLAN.open(ledger, store=so.streams.FileStepStore(path))
    with pytest.raises(so.errors.DataTypeError, match="store"):
        PLAN.open(ledger, store=3)
    for path in (tmp_path / "x", "x"):  # of a sordino.Store: its streams have names
        with pytest.raises(so.errors.InvalidParameterError, match="stream_id"):
            PLAN.open(ledger, store=path)
    assert not (tmp_path / "x").exists()
    assert not ledger.history


def test_a_file_is_free_after_close_while_a_fork_lives(used):
    path, checkpoint, _ = used
    stream = so.restore(checkpoint, KEY, so.streams.FileStepStore(path), replay=True)
    ready, done = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.write(ready[1], b"x")
        os.read(done[0], 1)
        os._exit(0)
    os.read(ready[0], 1)
    stream.close()
    so.restore(checkpoint, KEY, so.streams.FileStepStore(path), replay=True).close()
    os.write(done[1], b"x")
    assert os.waitpid(child, 0)[1] == 0


def test_a_fork_cannot_open_a_store_in_memory():
    store = so.streams.InMemoryStepStore()
    stream = PLAN.open(store=store)
    checkpoint = stream.checkpoint(KEY)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            stream.close()
            so.restore(checkpoint, KEY, store)
        except so.errors.ForkError:
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    stream.update(1)


def test_dimensions_are_stored_row_by_row(store):
    plan = so.plan(so.Continual(so.RunningSum(6), dim=3), GAUSSIAN)
    items = np.arange(12).reshape(4, 3)
    stream = plan.open(store=store)
    checkpoint = stream.checkpoint(KEY)
    answers = stream.update(items)
    stream.close()
    again = so.restore(checkpoint, KEY, store, replay=True)
    assert again.update(items[0]).tolist() == answers[0].tolist()
    with pytest.raises(so.errors.StepConflictError):
        again.update(items[2])
    assert again.update(items[1:]).tolist() == answers[1:].tolist()
    again.close()
