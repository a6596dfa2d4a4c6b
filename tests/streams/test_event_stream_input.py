"""What a stream of events takes, ignores silently, and refuses; budgets, checkpoints, plan files."""

import copy
import inspect
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import sordino as so
from live import plan_live
from sordino._support.records import record_digest
from sordino.workloads.events import words

LOUD = so.GaussianDP(mu=1e6)
MU = so.GaussianDP(mu=1.0)
PURE = so.PureDP(epsilon=1.0)
SECRET = 77777777
KEY = bytes(range(32))

GRAPHS = [
    so.events.EdgeCount(4, 9),
    so.events.TriangleCount(4, 9, max_degree=2),
    so.events.StarCount(2, 4, 9),
    so.events.DegreeHistogram(4, 9, max_degree=2),
    so.events.SpanningForestCost(4, 9, max_weight=4.0, weight_bits=2),
    so.events.WeightedGraph(4, 9, max_weight=4.0, weight_bits=2),
    so.events.WeightedGraph(4, 9, max_weight=4.0, weight_bits=2, one_signed=False),
]
WORDS = [so.events.SubstringCounts("ab", 2, 9), so.events.EpisodeCounts("ab", 2, 9)]
ALL = [
    *((workload, "dense") for workload in GRAPHS + WORDS),
    *((workload, "lazy") for workload in GRAPHS[5:] + WORDS),
]


def named(case):
    workload, reads = case
    return f"{workload.kind}-{reads}"


def is_words(workload):
    return isinstance(workload, words.WordCounts)


def opened(workload, reads="dense", privacy=LOUD, **options):
    return so.plan(so.Continual(workload, reads=reads), privacy).open(**options)


def feed(stream, count=1):
    """So many ordinary steps."""
    if is_words(stream.fit.events):
        stream.update(("ab" * count)[:count])
    else:
        stream.update([0] * count, [1] * count)


def now(stream):
    return np.rint(stream.read(np.arange(stream.fit.coordinates))).tolist()


# Null items: a step passes, nothing is said


@pytest.mark.parametrize("case", ALL, ids=named)
def test_malformed_items_are_null_and_their_step_is_published(case, known_noise, capfd, caplog):
    workload, reads = case
    with opened(workload, reads) as stream:
        feed(stream)
        before = now(stream)
        if is_words(workload):
            for nothing in ("?", "é", "", [None], [7], [-1], np.array([2**63], np.uint64)):
                steps = stream.step
                stream.update(nothing)
                assert stream.step == steps + len(nothing)
                assert now(stream) == before
        else:
            for u, v in ((2, 2), (0, 4), (-1, 1), (2**62, 0), ([], [])):
                steps = stream.step
                stream.update(u, v)
                assert stream.step == steps + np.size(u)
                assert now(stream) == before
        if "max_weight" in workload.spec():
            bad = [np.nan, np.inf, -np.inf]
            for weight in (*bad, 4.0001, -4.0001, 1e300, *((-1.0,) if getattr(workload, "one_signed", True) else ())):
                with opened(workload, reads) as other:
                    feed(other)
                    other.update(1, 2, weight)
                    assert other.step == 2
                    assert now(other) == before
    assert capfd.readouterr() == ("", "")
    assert not caplog.records


def test_null_items_take_noise_like_others(known_noise):
    """What is published after them is a new noisy answer, not the old one."""
    with so.plan(so.events.EdgeCount(4, 9), MU).open() as stream:
        answers = stream.update([0, 2, 4, -1], [1, 2, 1, 1])
        assert len(set(answers.tolist())) == 4


# Malformed calls: nothing is released, nothing is taken in


def bad_calls(workload):
    """Calls that raise, by what."""
    if is_words(workload):
        return [
            ((np.array([b"a"]),), {}, so.errors.DataTypeError),
            ((1j,), {}, so.errors.DataTypeError),
            (([["a", "b"]],), {}, so.errors.ShapeError),
            (("ab",), {"together": True}, so.errors.ShapeError),
            (("a",), {"together": 1}, so.errors.DataTypeError),
            (("ab" * 5,), {}, so.errors.HorizonError),
        ]
    found = [
        (([0, 1], [1]), {}, so.errors.ShapeError),
        (([[0]], [[1]]), {}, so.errors.ShapeError),
        ((np.array(["a"]), np.array(["b"])), {}, so.errors.DataTypeError),
        ((1j, 1), {}, so.errors.DataTypeError),
        ((0, 1), {"together": "no"}, so.errors.DataTypeError),
        ((np.arange(10), np.arange(10)), {}, so.errors.HorizonError),
    ]
    if "max_weight" in workload.spec():
        return [
            *found,
            ((0, 1, "heavy"), {}, so.errors.DataTypeError),
            ((0, 1, 1j), {}, so.errors.DataTypeError),
            (([0, 1], [1, 2], [1.0]), {}, so.errors.ShapeError),
            (([0, 1], [1, 2], [[1.0, 2.0]]), {}, so.errors.ShapeError),
        ]
    return [*found, ((0, 1, 1.0), {}, so.errors.InvalidParameterError)]


@pytest.mark.parametrize("case", ALL, ids=named)
def test_malformed_calls_change_nothing(case, known_noise):
    workload, reads = case
    calls = bad_calls(workload)
    with opened(workload, reads, MU) as stream, opened(workload, reads, MU) as untouched:
        for one in (stream, untouched):
            feed(one)
        for positional, options, error in calls:
            with pytest.raises(error) as raised:
                stream.update(*positional, **options)
            assert str(SECRET) not in str(raised.value)
            assert raised.value.__cause__ is None
            assert stream.step == 1
            assert not stream.closed
        # Whatever comes next is what it would have been, the encoder's graph or text included.
        for one in (stream, untouched):
            feed(one, 8)
        everything = np.arange(stream.fit.coordinates)
        assert np.array_equal(stream.read(everything), untouched.read(everything))
        with pytest.raises(so.errors.HorizonError, match="nothing was released"):
            feed(stream)


@pytest.mark.parametrize("case", ALL, ids=named)
def test_messages_never_say_what_was_given(case):
    """Numbers and names of items, and of vertices beyond the public ones, are private."""
    workload, reads = case
    secret = np.array([SECRET, SECRET + 1, SECRET])
    with opened(workload, reads) as stream:
        named = np.array(["secretive"] * 3)
        calls = (
            [(secret * 1j,), ([["secretive"]],), (["a"] * 20,)]
            if is_words(workload)
            else [
                (secret, secret[:2]),
                (secret * 1j, secret),
                (secret, named),
                (np.tile(secret, 9),) * 2,
            ]
        )
        for call in calls:
            with pytest.raises(so.SordinoError) as raised:
                stream.update(*call)
            for private in (str(SECRET), "secretive", "object at"):
                assert private not in str(raised.value)
            assert raised.value.__suppress_context__ or raised.value.__context__ is None
        feed(stream)
        assert "1" in repr(stream)
        assert str(stream) == repr(stream)


@pytest.mark.parametrize("case", ALL, ids=named)
def test_streams_have_no_copies(case):
    workload, reads = case
    with opened(workload, reads) as stream:
        for copied in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(so.errors.ForkError):
                copied(stream)


FORK = """
import os
import sordino as so
for workload, reads in (
    (so.events.EdgeCount(4, 9), "dense"), (so.events.WeightedGraph(4, 9), "lazy"), (so.events.SubstringCounts(2, 2, 9), "lazy")
):
    stream = so.plan(so.Continual(workload, reads=reads), so.GaussianDP(mu=1.0)).open()
    items = ([0],) if workload.kind == "substring_counts" else (0, 1)
    stream.update(*items)
    child = os.fork()
    if child == 0:
        refused = 0
        for use in (lambda: stream.update(*items), lambda: stream.read([0])):
            try:
                use()
            except so.errors.ForkError:
                refused += 1
        os._exit(0 if refused == (2 if reads == "lazy" else 1) or refused == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0, (workload, reads)
    stream.update(*items)
    assert stream.step == 2
stream = so.plan(so.events.RareCount(99, 9), so.PureDP(epsilon=1.0), mechanism="above").open()
child = os.fork()
if child == 0:
    try:
        stream.update(1)
    except so.errors.ForkError:
        os._exit(0)
    os._exit(1)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_stream_stays_in_its_process():
    run = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_deletions_are_refused_where_no_noise_covers_them():
    for workload in GRAPHS[:5]:
        with opened(workload) as stream:
            with pytest.raises(so.errors.UnsupportedMechanismError, match="one_signed=False"):
                stream.delete(0, 1)
            assert stream.step == 0
    with opened(GRAPHS[6]) as stream:
        stream.update([0, 0], [1, 1], [3.0, -3.0])
        np.testing.assert_allclose(stream.weights(0, 1), 0.0, atol=1e-2)


def test_reading_what_does_not_exist():
    for workload, reads in ALL:
        with opened(workload, reads) as stream:
            with pytest.raises(so.errors.InvalidParameterError, match="nothing was published"):
                stream.read([0])
            feed(stream)
            for places in ([-1], [stream.fit.coordinates]):
                with pytest.raises(so.errors.InvalidParameterError):
                    stream.read(places)
            for places in (0, [[0]]):
                with pytest.raises(so.errors.ShapeError):
                    stream.read(places)
            for places in ([0.5], ["a"]):
                with pytest.raises(so.errors.DataTypeError):
                    stream.read(places)
            assert stream.read([]).shape == (0,)
    with opened(GRAPHS[5], "lazy") as stream:
        with pytest.raises(so.errors.InvalidParameterError):
            stream.cut([0])
        with pytest.raises(so.errors.InvalidParameterError):
            stream.graph()
        feed(stream)
        for sides in (([],), ([0, 0],), ([4],), ([-1],), ([0], [0]), ([0], []), ([0, 1, 2, 3],)):
            with pytest.raises(so.errors.InvalidParameterError):
                stream.cut(*sides)
        for pair in ((0, 0), (0, 4), ([0, 1], [1, 1])):
            with pytest.raises(so.errors.InvalidParameterError):
                stream.weights(*pair)
        graph = stream.graph()
        for side in ([], [0, 0], [4], [-1], [0, 1, 2, 3]):
            with pytest.raises(so.errors.InvalidParameterError):
                graph.cut(side)
        for side, error in ((0, so.errors.ShapeError), ([0.0], so.errors.DataTypeError)):
            with pytest.raises(error):
                graph.cut(side)
        for level in (0.0, 1.0, np.nan):
            for interval in (stream.cut([0]).interval, stream.cut([0]).interval_afterwards, graph.minimum_degree):
                with pytest.raises(so.errors.InvalidParameterError):
                    interval(level)
        with pytest.raises(so.errors.InvalidParameterError):
            stream.cut([0]).interval(0.9, answers=0)
        with pytest.raises(so.errors.DataTypeError):
            stream.cut([0]).interval_afterwards(0.9, every_step=1)
    with opened(WORDS[0]) as stream:
        with pytest.raises(so.errors.InvalidParameterError):
            stream.half_width(0.9)
        stream.update("a")
        for words in (0, -1, 1.5, "a", True):
            with pytest.raises(so.SordinoError):
                stream.half_width(0.9, words)
        for words in ([5], [None]):
            with pytest.raises(so.errors.DataTypeError):
                stream.count(words)
        for word in ("", "aaa", "c", [0.5]):
            with pytest.raises(so.errors.InvalidParameterError):
                stream.count([word])
        with pytest.raises(so.errors.InvalidParameterError):
            stream.heavy_hitters(-1.0)
        with pytest.raises(so.errors.InvalidParameterError):
            stream.fit.events.word(6)


BAD_WORKLOADS = [
    (lambda: so.events.EdgeCount(1), so.errors.InvalidParameterError),
    (lambda: so.events.EdgeCount(4.0), so.errors.DataTypeError),
    (lambda: so.events.EdgeCount(["a", "a"]), so.errors.InvalidParameterError),
    (lambda: so.events.EdgeCount(["a", 1]), so.errors.DataTypeError),
    (lambda: so.events.EdgeCount(4, 0), so.errors.InvalidParameterError),
    (lambda: so.events.EdgeCount(4, max_degree=4), so.errors.InvalidParameterError),
    (lambda: so.events.EdgeCount(4, max_degree=0), so.errors.InvalidParameterError),
    (lambda: so.events.EdgeCount(4, level="vertex"), so.errors.InvalidParameterError),
    (lambda: so.events.EdgeCount(4, level="node"), so.errors.InvalidParameterError),
    (lambda: so.events.EdgeCount(4, level="node", max_degree=2), so.errors.InvalidParameterError),
    (lambda: so.events.EdgeCount(4, unchecked=True), so.errors.InvalidParameterError),
    (lambda: so.events.EdgeCount(4, max_degree=2, unchecked="no"), so.errors.DataTypeError),
    (lambda: so.events.StarCount(1, 4), so.errors.InvalidParameterError),
    (lambda: so.events.StarCount(65, 100), so.errors.InvalidParameterError),
    (lambda: so.events.StarCount(30, 10**6), so.errors.InvalidParameterError),
    (lambda: so.events.DegreeHistogram(4), so.errors.InvalidParameterError),
    (lambda: so.events.SpanningForestCost(4, max_weight=0.0), so.errors.InvalidParameterError),
    (lambda: so.events.SpanningForestCost(4, max_weight=np.inf), so.errors.InvalidParameterError),
    (lambda: so.events.SpanningForestCost(4, weight_bits=31), so.errors.InvalidParameterError),
    (lambda: so.events.SpanningForestCost(4, max_degree=2), so.errors.InvalidParameterError),
    (lambda: so.events.WeightedGraph(2**20 + 1), so.errors.InvalidParameterError),
    (lambda: so.events.WeightedGraph(4, one_signed=1), so.errors.DataTypeError),
    (lambda: so.events.WeightedGraph(4, weight_bits=-1), so.errors.InvalidParameterError),
    (lambda: so.events.SubstringCounts(0, 2), so.errors.InvalidParameterError),
    (lambda: so.events.SubstringCounts("", 2), so.errors.InvalidParameterError),
    (lambda: so.events.SubstringCounts("aa", 2), so.errors.InvalidParameterError),
    (lambda: so.events.SubstringCounts("ab", 0), so.errors.InvalidParameterError),
    (lambda: so.events.SubstringCounts("ab", 64), so.errors.InvalidParameterError),
    (lambda: so.events.SubstringCounts(1, 65), so.errors.InvalidParameterError),
    (lambda: so.events.SubstringCounts("ab", 2, batches=1), so.errors.DataTypeError),
    (lambda: so.events.EpisodeCounts(30, 6), so.errors.InvalidParameterError),
]


@pytest.mark.parametrize(
    ("make", "error"), BAD_WORKLOADS, ids=lambda v: inspect.getsource(v)[13:50] if callable(v) else ""
)
def test_workloads_that_cannot_be(make, error):
    with pytest.raises(error):
        make()


def test_plans_that_cannot_be():
    graph, words = so.events.TriangleCount(4, 9), so.events.SubstringCounts(26, 5, 9)
    for workload, options, error in (
        (graph, {"dim": 2}, so.errors.InvalidParameterError),
        (graph, {"dim": 2, "one_signed": False}, so.errors.InvalidParameterError),
        (graph, {"max_value": 3}, so.errors.InvalidParameterError),
        (graph, {"reads": "sparse"}, so.errors.InvalidParameterError),
        (graph, {"reads": "lazy"}, so.errors.UnsupportedMechanismError),
        (words, {"reads": "dense"}, so.errors.UnsupportedMechanismError),
        (graph, {"mechanism": "fourier"}, so.SordinoError),
        (graph, {"horizon": "late"}, so.errors.InvalidParameterError),
        (so.events.TriangleCount(4), {"horizon": "hard"}, so.errors.InvalidParameterError),
        (so.RunningSum(4), {"reads": "lazy"}, so.errors.InvalidParameterError),
    ):
        with pytest.raises(error):
            plan_live(workload, MU, **options)
    with pytest.raises(so.errors.UnsupportedMechanismError, match="as it is"):
        so.plan(so.Continual(so.local.LocalSurvey(9, intervals=4)), MU).open()


# Budgets


def test_deterministic_noise_is_never_accounted(known_noise):
    for workload, reads in ALL:
        plan, ledger = so.plan(so.Continual(workload, reads=reads), PURE), so.Ledger(PURE)
        with pytest.raises(so.errors.InvalidParameterError, match="deterministic"):
            plan.open(ledger)
        assert not ledger.history
        with plan.open() as stream:
            assert not stream.private


# Stores and checkpoints


def test_lazy_streams_have_no_store():
    for workload in (GRAPHS[5], WORDS[0]):
        ledger = so.Ledger(MU)
        with pytest.raises(so.errors.InvalidParameterError, match="dense"):
            so.plan(so.Continual(workload, reads="lazy"), MU).open(ledger, store=so.streams.InMemoryStepStore())
        assert not ledger.history


EVENTS = [(0, 1), (1, 2), (0, 2), (2, 3), (2, 2), (1, 3), (0, 3), (0, 1), (1, 2)]


@pytest.mark.parametrize("workload", [*GRAPHS, *WORDS], ids=lambda w: w.kind)
def test_a_restored_stream_goes_on_where_it_was(workload, tmp_path):
    plan, path = so.plan(so.Continual(workload, reads="dense"), LOUD), tmp_path / "steps"

    def events(start, stop):
        def take(stream):
            if is_words(workload):
                stream.update("abbaababb"[start:stop])
            elif start < stop:
                u, v = zip(*EVENTS[start:stop], strict=True)
                stream.update(list(u), list(v))

        return take

    with plan.open() as whole:
        events(0, 9)(whole)
        expected = now(whole)
    ledger = so.Ledger(LOUD)
    store = so.streams.FileStepStore(path)
    stream = plan.open(ledger, store=store)
    events(0, 5)(stream)
    kept = now(stream)
    checkpoint = stream.counters.checkpoint(KEY)
    stream.close()
    again = so.streams.FileStepStore(path)
    counters = so.restore(checkpoint, KEY, again)
    for replay, error in (
        (None, so.errors.DataTypeError),
        (events(0, 4), so.errors.InvalidParameterError),
        (events(0, 6), so.errors.InvalidParameterError),
    ):
        with pytest.raises(error):
            plan.attach(counters, replay)
    with pytest.raises(so.errors.DataTypeError):
        plan.attach("counters", events(0, 5))
    other = so.plan(so.Continual(workload, reads="dense"), MU)
    with pytest.raises(so.errors.InvalidParameterError, match="another plan"):
        other.attach(counters, events(0, 5))
    attached = plan.attach(counters, events(0, 5))
    assert attached.step == 5
    assert now(attached) == kept
    assert len(ledger.history) == 1
    events(5, 9)(attached)
    assert now(attached) == expected
    with pytest.raises(so.errors.HorizonError):
        feed(attached)
    attached.close()


class Failing(so.streams.InMemoryStepStore):
    """Keeps nothing while it is broken."""

    broken = False

    def append(self, *arguments, **options):
        if self.broken:
            raise so.errors.StepStoreError("disk full")
        return super().append(*arguments, **options)


@pytest.mark.parametrize(
    "workload", [so.events.EdgeCount(4, 9), so.events.WeightedGraph(4, 9), so.events.SubstringCounts("ab", 2, 9)]
)
def test_events_are_neither_lost_nor_doubled_by_a_store_that_fails(workload):
    """After `resume` the step is published; what is refused meanwhile is not taken in."""
    store = Failing()
    with (
        so.plan(so.Continual(workload, reads="dense"), LOUD).open(store=store) as stream,
        opened(workload) as untouched,
    ):
        calls = ["a", "b", "a", "b"] if is_words(workload) else [(0, 1), (1, 2), (0, 2), (2, 3)]

        def update(one, item):
            one.update(item) if isinstance(item, str) else one.update(*item)

        update(stream, calls[0])
        store.broken = True
        with pytest.raises(so.errors.StepStoreError):
            update(stream, calls[1])
        with pytest.raises(so.errors.StepStoreError):
            update(stream, calls[2])
        store.broken = False
        stream.counters.resume()
        assert stream.step == 2
        update(stream, calls[2])
        update(stream, calls[3])
        for item in calls:
            update(untouched, item)
        assert stream.step == 4
        assert now(stream) == now(untouched)


def test_a_conflict_leaves_no_torn_stream(tmp_path):
    """An old checkpoint with other events than were released: refused, and what follows too."""
    plan, path = so.plan(so.events.EdgeCount(4, 9), MU), tmp_path / "steps"
    with plan.open(store=so.streams.FileStepStore(path)) as stream:
        stream.update(0, 1)
        old = stream.counters.checkpoint(KEY)
        stream.update([1, 2], [2, 3])
        released = stream.value
    counters = so.restore(old, KEY, so.streams.FileStepStore(path), replay=True)
    attached = plan.attach(counters, lambda s: s.update(0, 1))
    with pytest.raises(so.errors.StepConflictError):
        attached.update(0, 1)
    with pytest.raises(so.errors.StreamClosedError, match="again"):
        attached.update(1, 2)
    again = plan.attach(counters, lambda s: s.update(0, 1))
    assert again.update([1, 2], [2, 3])[-1] == released
    assert again.update(0, 2) != released
    again.close()


# Plan files


@pytest.mark.parametrize("case", ALL, ids=named)
@pytest.mark.parametrize("unit", [so.AddRemove(2), so.ReplaceOne(1)], ids=["add", "replace"])
def test_plans_go_through_files(case, unit, tmp_path, known_noise):
    workload, reads = case
    plan = so.plan(so.Continual(workload, reads=reads), MU, unit=unit)
    path = plan.save(tmp_path / "plan.json")
    again = so.StreamPlan.load(path)
    assert again.workload.workload == workload
    assert (again.unit, again.privacy, again.workload.reads, again.mechanism) == (unit, MU, reads, plan.mechanism)
    assert again.explain() == plan.explain()
    assert again.digest == plan.digest
    with plan.open() as one, again.open() as two:
        feed(one, 3)
        feed(two, 3)
        everything = np.arange(plan.fit.coordinates)
        assert np.array_equal(one.read(everything), two.read(everything))


def sealed(path, record):
    """Written by somebody who knows how digests are made."""
    record.pop("digest", None)
    path.write_text(json.dumps(record | {"digest": record_digest(record)}))
    return path


def numbers_in(record, keys=()):
    """All numbers of a record, with the way to them."""
    items = record.items() if isinstance(record, dict) else enumerate(record) if isinstance(record, list) else ()
    for key, value in items:
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield (*keys, key), value
        else:
            yield from numbers_in(value, (*keys, key))


def with_changed(record, keys, value):
    changed = copy.deepcopy(record)
    at = changed
    for key in keys[:-1]:
        at = at[key]
    at[keys[-1]] = value
    return changed


@pytest.mark.parametrize(
    "workload", [so.events.TriangleCount(9, 9, max_degree=3), so.events.SubstringCounts("ab", 3, 9)]
)
def test_no_file_understates_the_noise(workload, tmp_path):
    """Each number of the file halved or doubled, under a right digest: refused, or a plan with noise enough."""
    plan = so.plan(so.Continual(workload, reads="dense"), MU, unit=so.ReplaceOne(1))
    path = plan.save(tmp_path / "plan.json")
    text = path.read_text()
    path.write_text(text.replace(plan.workload.workload.kind, "edge_count"))
    with pytest.raises(so.errors.PlanFileError):
        so.StreamPlan.load(path)
    record = json.loads(text)
    refused = 0
    for keys, value in numbers_in(record):
        for other in (value / 2 if isinstance(value, float) else value // 2, value * 2):
            if other == value:
                continue
            try:
                loaded = so.StreamPlan.load(sealed(path, with_changed(record, keys, other)))
            except so.SordinoError:
                refused += 1
                continue
            honest = so.plan(
                loaded.workload,
                loaded.privacy,
                unit=loaded.unit,
                mechanism=loaded.mechanism,
            )
            assert loaded.fit.door.noise >= honest.fit.door.noise * (1.0 - 1e-9)
    assert refused >= 4


def test_files_of_other_plans(tmp_path):
    plain = so.plan(so.Continual(so.RunningSum(9)), MU).save(tmp_path / "plain.json")
    with pytest.raises(so.errors.PlanFileError, match="StreamPlan"):
        so.ReleasePlan.load(plain)
    event = so.plan(so.events.EdgeCount(4, 9), MU).save(tmp_path / "event.json")
    with pytest.raises(so.errors.PlanFileError):
        so.SurveyPlan.load(event)
    with pytest.raises(so.errors.InputFileError):
        so.StreamPlan.load(tmp_path / "none.json")
    for text in ("", "{}", "[]", "null", '{"digest": 1}'):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(so.errors.PlanFileError):
            so.StreamPlan.load(tmp_path / "bad.json")
