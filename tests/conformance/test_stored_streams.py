"""Every kind of stream in a store: gone on with behind its last step, published once, by one owner."""

import contextlib
import gc
import os
import time
import warnings

import cases
import numpy as np
import pytest
from interrupts import interrupted

import sordino as so
from sordino import _core
from sordino.privacy.lost import adopt
from sordino.storage.upkeep import set_key_id
from sordino.streams import kept

STREAMS = [case for case in cases.STREAMS if case.name != "pan-private"]
EACH = pytest.mark.parametrize("case", STREAMS, ids=lambda case: case.name)


class Named:
    """A stream whose updates have a name."""

    def __init__(self, stream, step_id):
        self._stream, self._step_id = stream, step_id
        self.step = stream.step

    def update(self, *events, **options):
        return self._stream.update(*events, step_id=self._step_id, **options)


def update(case, stream, step_id):
    return case.update(Named(stream, step_id))


def store_at(where):
    return so.Store(where, key=cases.KEY)


def opened(case, where, **options):
    return case.loud.open(store=store_at(where), stream_id="s", **options)


@EACH
def test_it_goes_on_behind_its_last_step(case, where):
    """Closed, dropped as by a crash, taken over: the numbers are those of one stream, but for little noise."""
    with opened(case, where) as stream:
        update(case, stream, 0)
        first = case.total(stream)
        update(case, stream, 1)
        seen, step = case.total(stream), stream.step
    stream = so.go_on(store_at(where), "s")
    assert (stream.step, case.total(stream)) == (step, seen)
    update(case, stream, 2)
    seen, step = case.total(stream), stream.step
    with opened(case, where, take_over=True) as again:
        assert (again.step, case.total(again)) == (step, seen)
        update(case, again, 3)
        assert round(case.total(again) - first) == 3 * case.grows
        assert again.step == 4 * case.steps
    with pytest.raises(so.errors.StreamTakenError):
        update(case, stream, 4)
    assert stream.closed


@EACH
def test_a_repeated_step_is_published_once(case, where):
    with opened(case, where) as stream:
        fed = Named(stream, "a")
        first = case.update(fed)
        step, seen = stream.step, case.total(stream)
        again = case.update(fed)
        np.testing.assert_array_equal(again, first)
        assert (stream.step, case.total(stream)) == (step, seen)
    with opened(case, where) as stream:
        np.testing.assert_array_equal(case.update(fed.__class__(stream, "a")), first)
        assert stream.step == step
        update(case, stream, "b")
        assert stream.step == 2 * step


@EACH
def test_it_is_charged_once_with_its_row(case, where):
    store = store_at(where)
    total, options = cases.room(case.plan.cost)
    ledger = so.Ledger(total, store=store, **options)
    for _ in range(2):
        with case.plan.open(ledger, store=store, stream_id="s") as stream:
            assert stream.accounted and stream.private
    assert [entry.cost for entry in ledger.history] == [case.plan.cost]
    with pytest.raises(so.errors.BudgetExceededError):
        case.plan.open(ledger, store=store, stream_id="t")
    with pytest.raises(so.errors.InvalidParameterError, match="no stream"):
        so.go_on(store, "t")
    assert ledger.verify() == ledger.head


@EACH
def test_one_that_is_taken_over_while_it_is_opened_is_not_called_damaged(case, where, monkeypatch):
    """Between any two reads of whoever opens it, somebody else takes it over, publishes and compacts."""
    with opened(case, where, keep_steps="1 ms") as stream:
        update(case, stream, 0)
    read, reads = so.Store.read, iter(range(1000))
    step_ids = iter(range(1, 1000))

    def interrupted(store, script):
        if next(reads) == at:
            with opened(case, where, take_over=True) as other:
                update(case, other, next(step_ids))
        return read(store, script)

    for at in range(10):
        reads = iter(range(1000))
        with monkeypatch.context() as patched, contextlib.suppress(so.errors.StreamTakenError):
            patched.setattr(so.Store, "read", interrupted)
            with opened(case, where, take_over=True) as stream:
                patched.undo()
                update(case, stream, next(step_ids))
        if next(reads) <= at:
            break
    else:
        pytest.fail("more reads than were tried")


@EACH
def test_what_is_finished_stays_finished(case, where):
    with opened(case, where) as stream:
        update(case, stream, 1)
        stream.finish()
        assert stream.closed
    with pytest.raises(so.errors.InvalidParameterError, match="finished"):
        opened(case, where)
    left = store_at(where).read(lambda transaction: transaction.rows("SELECT count(*) FROM sealed"))
    assert left == [(0,)]


@EACH
def test_a_store_that_fails_is_asked_again(case, where, monkeypatch):
    """Nothing is lost and nothing is said: the batch waits, and its own name ends it."""
    with opened(case, where) as stream:
        update(case, stream, 1)
        seen = case.total(stream)
        fed, engine = Named(stream, 2), _engine_of(stream)

        def away(*_):
            raise so.errors.StoreError("away", retry=True)

        with monkeypatch.context() as patched:
            patched.setattr(engine, "write", away)
            with pytest.raises(so.errors.StoreError, match="away"):
                case.update(fed)
        if stream.pending:
            with pytest.raises(so.errors.StepStoreError):
                update(case, stream, 3)
        case.update(fed)
        assert not stream.pending and stream.step == 2 * case.steps
        assert round(case.total(stream) - seen) == case.grows


def _engine_of(stream):
    kept = getattr(stream, "_kept", None)
    if kept is None:
        kept = getattr(stream, "counters", stream)._steps.kept
    return kept.store.engine


@EACH
def test_who_is_alive_keeps_it(case, where):
    with opened(case, where) as stream:
        with pytest.raises(so.errors.StreamInUseError) as refused:
            opened(case, where)
        assert refused.value.retry > 0 and refused.value.status == 409
        update(case, stream, 1)
    del stream
    stream = opened(case, where)
    del stream  # dropped, not closed
    gc.collect()
    opened(case, where).close()


@pytest.mark.slow
@EACH
def test_an_interrupted_step_is_taken_once_or_can_be_ended(case, tmp_path):
    """A signal at any place of an update: its name ends it, and the next owner finds the same."""
    places = range(1, 30000, 11)
    store = store_at(str(tmp_path / "s.db"))
    for count, at in enumerate(places):
        with case.loud.open(store=store, stream_id=f"s{at}") as stream:
            update(case, stream, "a")
            first = case.total(stream)
            fed = Named(stream, "b")
            gc.collect()  # what is dropped meanwhile would take the signal for itself
            inside = interrupted(lambda fed=fed: case.update(fed), at)
            # Also where the caller gives up, and somebody else goes on.
            if count % 2 and inside:
                case.update(fed)
            case.total(stream) if not stream.pending else None
        with so.go_on(store, f"s{at}") as stream:
            fed._stream, fed.step = stream, stream.step
            if stream.step == case.steps:
                case.update(fed)
            else:
                fed.step = case.steps
                case.update(fed)  # known: nothing is published
            assert stream.step == 2 * case.steps
            assert round(case.total(stream) - first) == case.grows
        if not inside:
            break
    assert 3 < count < len(places) - 1


@pytest.mark.parametrize("reads", ["dense", "lazy"])
def test_nothing_private_is_at_rest(reads, tmp_path):
    """No file of the store holds the key or an event, packed or not."""
    events = np.array([777_777, 888_888, 999_999])
    workload = so.events.SubstringCounts(10**6, 1, 64) if reads == "lazy" else so.events.EdgeCount(10**6, 64)
    plan = so.plan(so.Continual(workload, reads=reads), cases.LOUD)
    with plan.open(store=store_at(str(tmp_path / "s.db")), stream_id="s") as stream:
        for number in range(3):
            arguments = (events,) if reads == "lazy" else (events, events + 1)
            stream.update(*arguments, step_id=number)
    content = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert cases.KEY not in content
    for event in events:
        assert int(event).to_bytes(8, "little") not in content and int(event).to_bytes(4, "little") not in content
    sizes = so.Store(str(tmp_path / "s.db")).read(lambda t: t.rows("SELECT length(changes) FROM step"))
    assert {size & (size - 1) for ((size),) in ((s[0] - 40,) for s in sizes)} == {0}


@pytest.mark.parametrize("key", [None, bytes(32)])
def test_without_its_key_a_stream_is_not_gone_on_with(key, where):
    plan = so.plan(so.Continual(so.RunningSum(8)), so.GaussianDP(mu=1.0))
    with plan.open(store=store_at(where), stream_id="s") as stream:
        stream.update(3)
    error = so.errors.KeyMissingError if key is None else so.errors.WrongKeyError
    for go_on in (lambda store: so.go_on(store, "s"), lambda store: plan.open(store=store, stream_id="s")):
        with pytest.raises(error):
            go_on(so.Store(where, key=key))
    with pytest.raises(so.errors.KeyMissingError):
        plan.open(store=so.Store(where), stream_id="t")
    with so.go_on(store_at(where), "s") as stream:  # nobody took it away
        assert stream.step == 1


def test_another_key_of_the_same_id_takes_and_seals_nothing(where):
    plan = so.plan(so.Continual(so.RunningSum(8)), so.GaussianDP(mu=1.0))
    ledger = so.Ledger(so.GaussianDP(mu=9.0), store=store_at(where))
    with plan.open(ledger, store=ledger.store, stream_id="s") as stream:
        other = so.Store(where, key=bytes(32))
        theirs = so.Ledger.open(other, recovery="same")
        for work in (
            lambda: so.go_on(other, "s", take_over=True),
            lambda: plan.open(theirs, store=other, stream_id="t"),
            lambda: so.plan(so.Histogram(2), so.GaussianDP(mu=1.0)).release([1, 2], ledger=theirs, request_id="a"),
        ):
            with pytest.raises(so.errors.WrongKeyError):
                work()
        stream.update(1)
        assert stream.step == 1
    assert len(ledger.history) == 1


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("step", "answers = zeroblob(16)"),
        ("step", "units = zeroblob(16)"),
        ("step", "step_id = '=other' WHERE first = 2"),
        ("sealed", "bytes = zeroblob(200)"),
        ("sealed", "generation = generation + 1"),
        ("stream", "step = step + 2"),
        ("stream", "step = step - 2"),
        ("stream", "head_hash = zeroblob(32)"),
        ("stream", "plan = zeroblob(9)"),
    ],
)
def test_altered_rows_are_refused(table, change, tmp_path):
    where = str(tmp_path / "s.db")
    plan = so.plan(so.Continual(so.RunningSum(64)), so.GaussianDP(mu=1.0))
    stream = plan.open(store=store_at(where), stream_id="s")
    for number in range(3):
        stream.update([1, 2], step_id=number)
    _engine_of(stream).close()  # as by a crash: the state is an old one
    stream._steps.kept.store.working.end(stream._steps.kept.row.token)
    store = store_at(where)
    known = so.go_on(store, "s")
    assert known.step == 6
    known.close()
    store.write(lambda transaction: transaction.count(f"UPDATE {table} SET {change}"))
    refusals = (so.errors.StoreCorruptError, so.errors.WrongKeyError, so.errors.StepForgottenError)
    with pytest.raises(refusals) as refused:
        so.go_on(store, "s").value  # noqa: B018
        with so.go_on(store, "s") as stream:
            stream.update([1, 2], step_id=1)
    assert refused.value.status in {500, 410}


def test_a_large_state_is_gone_on_with_by_small_keys(where):
    """Each owner leaves a key, not another state, until the steps behind it weigh as much; both give the same past."""
    plan = so.plan(so.Continual(so.RunningSum(8192)), so.GaussianDP(mu=1.0), mechanism="square-root")
    store = store_at(where)
    first = plan.open(store=store, stream_id="s")
    first.update(np.ones(6000, dtype=np.int64))

    def sealed():
        rows = store.read(lambda transaction: transaction.rows("SELECT kind, step FROM sealed ORDER BY kind, step"))
        return sorted(set(rows))

    owners = [first]
    assert sealed() == [("state", 6000)]
    for turn in range(3):
        owners.append(so.go_on(store, "s", take_over=True))
        assert sealed() == [*(("key", 6000 + 2 * i) for i in range(turn + 1)), ("state", 6000)]
        owners[-1].update([1, 2])
    owners.append(so.go_on(store, "s", take_over=True))
    # Who was overtaken has the same past in memory: under one key both would publish the same.
    before, after = (owner._core for owner in owners[-2:])
    with pytest.raises(so.errors.CheckpointError):
        after.take_key(cases.KEY, b"elsewhere", before.sealed_key(cases.KEY, b"here"))
    items = np.arange(100, dtype=np.int64)
    after.take_key(cases.KEY, b"here", before.sealed_key(cases.KEY, b"here"))
    assert np.array_equal(before.update(items, True), after.update(items, True))
    # Fenced owners and keys that are missing.
    with pytest.raises(so.errors.StreamTakenError):
        owners[0].update(1)
    store.write(lambda transaction: transaction.count("DELETE FROM sealed WHERE kind = 'key' AND step = 6002"))
    with pytest.raises(so.errors.StoreCorruptError):
        so.go_on(store, "s", take_over=True)


def large(where, **options):
    """A stream whose state is not written by every owner."""
    plan = so.plan(so.Continual(so.RunningSum(8192), dim=16), so.GaussianDP(mu=1.0), mechanism="square-root")
    stream = plan.open(store=store_at(where), stream_id="s", **options)
    stream.update(np.ones((500, 16), dtype=np.int64))
    return stream


def test_keys_are_bound_to_the_plan_as_it_was(where, monkeypatch):
    """Another numpy computes the facts of a plan anew, and may change a last bit: streams go on."""
    stream = large(where)
    for own in ("here", "elsewhere"):
        monkeypatch.setattr(type(stream.fit), "digest", property(lambda fit, own=own: own))
        with so.go_on(store_at(where), "s", take_over=True) as again:
            again.update(np.ones((1, 16), dtype=np.int64))
            again._steps.kept.weight = 10**9  # as by a crash: no state is left
            again._steps.leave_state = lambda: None
    assert so.go_on(store_at(where), "s").step == 502


def test_states_are_under_the_key_in_force_when_streams_are_opened(where):
    """However large; and all keys that are needed are asked for before anything is taken."""
    ring = {"1": bytes(range(32)), "2": bytes(range(1, 33))}

    def known(*ids):
        def key(key_id):
            if key_id not in ids:
                raise so.errors.KeyMissingError("this key was destroyed")
            return ring[key_id]

        return so.Store(where, key=key)

    large(where).close()
    store = known("1", "2")
    set_key_id(store, "2")
    rows = lambda what: store.read(lambda transaction: transaction.rows(what))  # noqa: E731
    before = rows("SELECT generation, key_id FROM stream")
    with pytest.raises(so.errors.KeyMissingError):
        so.go_on(known("2"), "s")
    assert rows("SELECT generation, key_id FROM stream") == before
    so.go_on(store, "s").close()
    assert rows("SELECT DISTINCT key_id FROM sealed") == [("2",)]
    assert so.go_on(known("2"), "s").step == 500


@pytest.mark.parametrize("together", [False, True])
def test_steps_that_were_kept_unheard_take_no_state_along(together, where, monkeypatch):
    """An exception behind the commit, and the same again when a state is due: it was not written, so nothing is forgotten."""
    stream = large(where, keep_steps="1 ms")
    kept, items = stream._steps.kept, np.ones((2, 16), dtype=np.int64)
    write, kept.behind = kept.store.engine.write, 0.0

    def interrupted_behind(script, timeout):
        write(script, timeout)
        raise KeyboardInterrupt

    def publish():
        if not together:
            return stream.update(items, step_id="a")
        return so.streams.publish_together([(stream, items, "a")])[0]

    monkeypatch.setattr(kept.store.engine, "write", interrupted_behind)
    with pytest.raises(KeyboardInterrupt):
        publish()
    monkeypatch.setattr(kept.store.engine, "write", write)
    kept.behind = 1.0
    time.sleep(0.01)
    answers = publish()
    assert stream.step == 502 and kept.row.checkpoint_step == 500
    kept.compact()
    with so.go_on(store_at(where), "s", take_over=True) as again:
        assert again.step == 502 and np.array_equal(again.update(items, step_id="a"), answers)


@pytest.mark.slow
@pytest.mark.parametrize("code", ["53100", "25006", "57014", "54000"])
def test_what_postgresql_refuses_is_known_to_be_refused(code, where):
    if not where.startswith("postgresql"):
        pytest.skip("of PostgreSQL")
    store = store_at(where)
    ledger = so.Ledger(so.PureDP(epsilon=50.0), store=store)
    plan = so.plan(so.Continual(so.RunningSum(8)), so.PureDP(epsilon=1.0))
    stream = plan.open(store=store, stream_id="s")
    ledger.charge(so.privacy.PureCost(0.5))

    def refuse(transaction):
        transaction.rows(
            f"CREATE FUNCTION refused() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE='{code}'; END $$"
        )
        for table in ("entry", "step"):
            transaction.rows(f"CREATE TRIGGER refused BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION refused()")

    store.write(refuse)
    for work in (lambda: ledger.charge(so.privacy.PureCost(0.5)), lambda: stream.update(1)):
        with pytest.raises(so.errors.StoreError) as refused:
            work()
        assert not isinstance(refused.value, so.errors.OutcomeUnknownError) and refused.value.charged is False
    for table in ("entry", "step"):
        store.write(lambda transaction, table=table: transaction.rows(f"DROP TRIGGER refused ON {table}"))
    ledger.charge(so.privacy.PureCost(0.5))
    assert stream.resume().shape == (1,) and len(ledger.history) == 2 and ledger.verify() == ledger.head


def test_who_was_overtaken_still_learns_what_was_published(where):
    plan = so.plan(so.Continual(so.RunningSum(8)), so.PureDP(epsilon=1.0))
    first = plan.open(store=store_at(where), stream_id="s")
    first.update(1, step_id="a")
    second = so.go_on(store_at(where), "s", take_over=True)
    answer = second.update(1, step_id="b")
    assert first.update(1, step_id="b") == answer
    with pytest.raises(so.errors.StreamTakenError):
        first.update(1, step_id="c")


def test_what_is_much_at_once_reaches_the_store(where):
    """Statements larger than what a connection holds at once."""
    plan = so.plan(so.Continual(so.RunningSum(2**21)), so.GaussianDP(mu=1.0), mechanism="blt", degree=2)
    with plan.open(store=store_at(where), stream_id="s", keep_steps=None) as stream:
        answers = stream.update(np.ones(2**20, dtype=np.int64), step_id="a")
        assert np.array_equal(stream.update(np.ones(2**20, dtype=np.int64), step_id="a"), answers)
    with so.go_on(store_at(where), "s") as stream:
        assert np.array_equal(stream.update(np.ones(2**20, dtype=np.int64), step_id="a"), answers)
        stream.update(np.ones(2**20, dtype=np.int64))
        assert stream.step == 2**21


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_opens_the_store_anew_and_not_the_stream(where):
    """Connections of a parent are not used and not closed by its children; streams are of one process."""
    store = store_at(where)
    ledger = so.Ledger(so.PureDP(epsilon=1.0), store=store)
    plan = so.plan(so.Continual(so.RunningSum(8)), so.PureDP(epsilon=0.25))
    with plan.open(ledger, store=store, stream_id="s") as stream:
        stream.update(1)
        child = os.fork()
        if child == 0:
            code = 1
            with contextlib.suppress(BaseException):
                warnings.simplefilter("ignore")
                ledger.charge(so.privacy.PureCost(0.25))
                try:
                    stream.update(1)
                except so.errors.ForkError:
                    try:
                        plan.open(ledger, store=store, stream_id="s")
                    except so.errors.StreamInUseError:
                        code = 0
            os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        stream.update(1)
        assert stream.step == 2
    assert len(ledger.history) == 2 and ledger.verify() == ledger.head


@EACH
def test_lost_commits_share_no_noise(case, tmp_path):
    """A store that is set back, or copied: the step that left and was forgotten comes again with fresh noise."""
    where = tmp_path / "s.db"
    # Rare counts change where a segment ends, the others at every step: with so much noise that two draws are equal
    # once in a thousand runs at most.
    rare = case.options.get("mechanism") == "above"
    plan = case.make(cases.PURE if rare else so.PureDP(epsilon=1e-6) if case.pure else so.GaussianDP(mu=1e-7))
    with plan.open(store=store_at(str(where)), stream_id="s") as stream:
        update(case, stream, 0)
    with so.go_on(store_at(str(where)), "s") as stream:
        update(case, stream, 1)
        seen = case.total(stream)
    old = where.read_bytes()
    totals = []
    for _ in range(3):
        with so.go_on(store_at(str(where)), "s") as stream:
            assert case.total(stream) == seen
            found = []
            for name in range(2, 30 if rare else 12):
                update(case, stream, name)
                found.append(case.total(stream))
        # Also what a stream says that goes on behind them.
        assert case.total(so.go_on(store_at(str(where)), "s")) == found[-1]
        totals.append(found)
        where.write_bytes(old)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert (any if rare else all)(a != b for a, b in zip(totals[one], totals[other], strict=True))


@pytest.mark.parametrize("reads", ["lazy", "dense"])
@pytest.mark.parametrize("mechanism", ["subtraction-tree-laplace", "binary-tree", "smooth-tree"])
def test_noise_that_was_drawn_ahead_does_not_come_again(mechanism, reads, tmp_path):
    """Set back to any step: after `adopt` no later step has the noise that it had, or nobody goes on."""
    where = tmp_path / "s.db"
    words = so.Continual(so.events.SubstringCounts("ab", 1, 64), reads=reads)
    plan = so.plan(words, so.PureDP(epsilon=1e-6), mechanism=mechanism)
    assert plan.fit.name.startswith(mechanism)

    def counts(stream, steps):
        found = []
        for _ in range(steps):
            stream.update("a")
            found.append(float(stream.count(["a"])[0]))
        return found

    for before in range(1, 15):
        where.unlink(missing_ok=True)
        with plan.open(store=store_at(str(where)), stream_id="s") as stream:
            counts(stream, before)
        old = where.read_bytes()
        with so.go_on(store_at(str(where)), "s") as stream:
            lost = counts(stream, 16)
        where.write_bytes(old)
        store = store_at(str(where))
        adopt(store, None, "restored")
        if mechanism == "subtraction-tree-laplace":
            with pytest.raises(so.errors.InvalidParameterError, match="lost"):
                so.go_on(store, "s")
            assert store.read(lambda transaction: transaction.rows("SELECT * FROM sealed")) == []
            continue
        with so.go_on(store, "s") as stream:
            assert not set(lost) & set(counts(stream, 16))


@pytest.mark.slow
def test_many_steps_open_quickly_and_are_forgotten(where):
    """Old answers go, numbers of queues stay known, a state is never far."""
    plan = so.plan(so.Continual(so.RunningSum(2**20)), so.GaussianDP(mu=1.0))
    with plan.open(store=store_at(where), stream_id="s", keep_steps="1 ms") as stream:
        for number in range(3000):
            stream.update(1, step_id=number)
        with pytest.raises(so.errors.StepForgottenError) as forgotten:
            stream.update(1, step_id=0)
        assert forgotten.value.status == 410
        assert stream.step == 3000
    ((steps,),) = store_at(where).read(lambda transaction: transaction.rows("SELECT count(*) FROM step"))
    assert steps < 2000
    with so.go_on(store_at(where), "s") as stream:
        assert stream.step == 3000
        with pytest.raises(so.errors.StepForgottenError):
            stream.update(1, step_id=17)
        stream.update(1, step_id=3000)


def test_events_that_were_forgotten_are_not_lost(where, monkeypatch):
    """Compaction moves the events of old steps into rows of their own."""
    monkeypatch.setattr(kept, "_LEAST", 0)
    plan = so.plan(so.events.TriangleCount(400, 500, max_degree=6), so.GaussianDP(mu=1e6))
    with plan.open(store=store_at(where), stream_id="s", keep_steps="1 ms") as stream:
        for number in range(60):
            stream.update([3 * number, 3 * number + 1], [3 * number + 1, 3 * number + 2], step_id=number)
    ((steps,),) = store_at(where).read(lambda transaction: transaction.rows("SELECT count(*) FROM step"))
    assert steps < 60
    # How many events there were is not said by how many bytes there are.
    lengths = store_at(where).read(
        lambda transaction: transaction.rows(
            "SELECT length(bytes) FROM sealed WHERE kind = 'events' UNION ALL SELECT length(changes) FROM step"
        )
    )
    around = len(_core.seal(bytes(32), b"", b""))
    assert len(lengths) > steps
    assert all((length - around).bit_count() == 1 for (length,) in lengths)
    with so.go_on(store_at(where), "s") as stream:
        stream.update([3 * number for number in range(60)], [3 * number + 2 for number in range(60)])
        assert round(stream.value) == 60


def test_streams_are_published_together(where):
    plan = so.plan(so.Continual(so.RunningSum(64), dim=2), so.GaussianDP(mu=1e6))
    store = store_at(where)
    streams = [plan.open(store=store, stream_id=f"s{i}") for i in range(5)]
    updates = [(stream, [[i, 1], [i, 1]], 7) for i, stream in enumerate(streams)]
    first = so.streams.publish_together(updates)
    np.testing.assert_array_equal(so.streams.publish_together(updates), first)
    assert [round(float(answers[-1, 0])) for answers in first] == [0, 2, 4, 6, 8]
    assert {stream.step for stream in streams} == {2}
    # One that somebody else took is reported, the others go on.
    other = plan.open(store=store_at(where), stream_id="s3", take_over=True)
    after = so.streams.publish_together([(stream, [[1, 1]], 8) for stream in streams])
    assert isinstance(after[3], so.errors.StreamTakenError) and streams[3].closed
    assert [stream.step for stream in streams if not stream.closed] == [3, 3, 3, 3] and other.step == 2
    # Refused before any of them goes on.
    with pytest.raises(so.errors.HorizonError):
        so.streams.publish_together([(streams[0], [[1, 1]], 9), (streams[1], np.ones((99, 2)), 9)])
    assert streams[0].step == 3 and not streams[0].pending
    for bad in (
        [(streams[0], [[1, 1]], 9), (streams[0], [[1, 1]], 9)],
        [(plan.open(), [[1, 1]], None)],
        [(streams[0], [[1, 1]])],
    ):
        with pytest.raises(so.SordinoError):
            so.streams.publish_together(bad)
    assert so.streams.publish_together([]) == []
    for stream in (*streams, other):
        stream.close()


def test_who_lost_a_stream_forgets_nothing_of_it(where, monkeypatch):
    """Taken over between a step and the compaction behind it."""
    monkeypatch.setattr(kept, "_LEAST", 0)
    plan = so.plan(so.events.TriangleCount(400, 500, max_degree=6), so.GaussianDP(mu=1e6))
    stream = plan.open(store=store_at(where), stream_id="s", keep_steps="1 ms")
    compact, others = kept.Kept.compact, []

    def taken_before(self):
        if not others:
            others.append(None)
            others[0] = so.go_on(store_at(where), "s", take_over=True)
        compact(self)

    monkeypatch.setattr(kept.Kept, "compact", taken_before)
    step = 0
    with contextlib.suppress(so.errors.StreamTakenError):
        while not others:
            stream.update([3 * step, 3 * step + 1], [3 * step + 1, 3 * step + 2], step_id=step)
            step += 1
    assert others
    others[0].close()
    with so.go_on(store_at(where), "s") as again:  # all its events are there
        again.update([3 * number for number in range(step)], [3 * number + 2 for number in range(step)])
        assert round(again.value) == step


def test_the_key_of_a_lazy_stream_belongs_to_its_plan(where):
    """With a weaker plan the same draws would be read in another size: two reads would say the sums."""
    for name, mu in (("s", 1.0), ("weaker", 50.0)):
        words = so.Continual(so.events.SubstringCounts("ab", 2, 64), reads="lazy")
        plan = so.plan(words, so.GaussianDP(mu=mu))
        plan.open(store=store_at(where), stream_id=name).close()
    store = store_at(where)
    weaker = "SELECT plan FROM stream WHERE id = 'weaker'"
    store.write(lambda transaction: transaction.count(f"UPDATE stream SET plan = ({weaker}) WHERE id = 's'"))
    with pytest.raises(so.errors.WrongKeyError):
        so.go_on(store, "s")
