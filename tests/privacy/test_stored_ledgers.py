"""Ledgers in a store: one budget, one answer to a request, whatever dies, repeats itself or is slow."""

import contextlib
import json
import multiprocessing
import os
import sys
import threading
from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sordino as so
from faults import ACTIONS, Faulty
from sordino.privacy import ApproxCost, GaussianCost, PureCost
from sordino.privacy.books import StoredBook
from sordino.privacy.lost import adopt
from sordino.privacy.requests import Requests
from sordino.storage import ledgers as rows_of_ledgers
from sordino.storage.upkeep import compact, set_key_id

PURE = so.PureDP(epsilon=4.0)
PLAN = so.plan(so.Histogram(6), so.PureDP(epsilon=1.0))
COUNTS = np.arange(6)
KEY = bytes(range(32))


def ledger_at(where, key=None, **options):
    return so.Ledger(PURE, store=so.Store(where, key=key), **options)


def released(ledger, request_id="a", data=COUNTS, plan=PLAN):
    return plan.release(data, ledger=ledger, request_id=request_id)


# One answer.


@pytest.mark.parametrize("key", [None, KEY])
def test_a_request_has_one_answer_in_every_process(key, where):
    first = released(ledger_at(where, key))
    again = released(ledger_at(where, key), data=COUNTS + 1)  # compared by what was asked, never by data
    np.testing.assert_array_equal(again.values, first.values)
    np.testing.assert_array_equal(np.asarray(again.measured.units), np.asarray(first.measured.units))
    assert again.accounted and again.private
    ledger = ledger_at(where, key)
    assert [entry.request_id for entry in ledger.history] == ["a"] and not ledger.unanswered()
    with pytest.raises(so.errors.DuplicateRequestError) as refused:
        released(ledger, plan=so.plan(so.Histogram(6), so.PureDP(epsilon=0.5)))
    assert (refused.value.charged, refused.value.request_id, refused.value.status) == (True, "a", 409)
    assert ledger.verify() == ledger.head


def test_requests_without_a_name_get_one(where):
    ledger = ledger_at(where)
    for _ in range(2):
        released(ledger, None)
    assert len({entry.request_id for entry in ledger.history} - {None}) == 2


def dead(monkeypatch, ledger, place="answered"):
    """Let the process of a release die where it would keep the answer."""

    class Died(BaseException):
        pass

    def dies(*_):
        raise Died

    with monkeypatch.context() as patched:
        patched.setattr(rows_of_ledgers, place, dies)
        patched.setattr(Requests, "_left", lambda *_: None)
        with pytest.raises(Died):
            released(ledger)


@pytest.mark.parametrize("key", [None, KEY])
def test_what_a_death_left_is_finished(key, where, monkeypatch):
    ledger = ledger_at(where, key)
    dead(monkeypatch, ledger)
    ((left,),) = [ledger.unanswered()]
    assert (left.request_id, left.attempt, left.working) == ("a", 1, False)
    found = released(ledger_at(where, key))
    assert not ledger.unanswered() and len(ledger.history) == 1
    np.testing.assert_array_equal(released(ledger).values, found.values)


def test_the_same_noise_for_the_same_data_alone(where, monkeypatch):
    """With a key a repeat draws the same lattice integers; other data are refused, and nothing of them is said."""
    ledger, drawn = ledger_at(where, KEY), []
    measure = type(PLAN.fit.door).measure

    def seen(door, strategy, values, key=None):
        assert key is not None
        drawn.append(np.asarray(measure(door, strategy, values, key).units).copy())
        return measure(door, strategy, values, key)

    proxy = type("Door", (), {"measure": lambda self, *args: seen(PLAN.fit.door, *args)})()
    monkeypatch.setattr("sordino.releases.making.with_chosen_sparsity", lambda fit, values, key: _with_door(fit, proxy))
    dead(monkeypatch, ledger)
    with pytest.raises(so.errors.InputChangedError) as refused:
        released(ledger_at(where, KEY), data=COUNTS + 1)
    assert refused.value.charged and "5" not in str(refused.value) and "6" not in str(refused.value)
    released(ledger_at(where, KEY))
    assert len(drawn) == 2
    np.testing.assert_array_equal(drawn[0], drawn[1])


class _WithDoor:
    def __init__(self, fit, door):
        self._fit, self.door = fit, door

    def __getattr__(self, name):
        return getattr(self._fit, name)


def _with_door(fit, door):
    return _WithDoor(fit, door)


def test_fresh_noise_is_drawn_a_few_times_at_most(where, monkeypatch):
    for _ in range(3):
        dead(monkeypatch, ledger_at(where))  # each in a process of its own
    ledger = ledger_at(where)
    with pytest.raises(so.errors.RequestLostError) as refused:
        released(ledger)
    assert refused.value.status == 410 and not ledger.unanswered()
    once = ledger_at(where, id="once", recovery="never")
    dead(monkeypatch, ledger_at(where, id="once", recovery="never"))
    with pytest.raises(so.errors.RequestLostError):
        released(once)
    assert len(once.history) == 1


def test_who_works_is_waited_for(where, monkeypatch):
    """Another attempt waits for the lease; the slow owner is fenced, and returns the answer that was kept."""
    ledger, entered, go = ledger_at(where, lease="1 ms"), threading.Event(), threading.Event()
    kept, answers = Requests._kept, []

    def slow(self, row, answer):
        if threading.current_thread() is not threading.main_thread():
            entered.set()
            go.wait(20)
        return kept(self, row, answer)

    monkeypatch.setattr(Requests, "_kept", slow)
    thread = threading.Thread(target=lambda: answers.append(released(ledger)))
    thread.start()
    assert entered.wait(20)
    with pytest.raises(so.errors.RequestInProgressError) as refused:
        monkeypatch.setattr("sordino.privacy.requests.now", lambda: 0)
        released(ledger_at(where))
    assert refused.value.retry > 0 and refused.value.status == 429
    monkeypatch.undo()
    first = released(ledger_at(where))  # the lease is over
    go.set()
    thread.join()
    np.testing.assert_array_equal(answers[0].values, first.values)
    assert len(ledger.history) == 1


def test_answers_expire_and_can_be_given_up(where, monkeypatch):
    ledger = ledger_at(where, keep_answers="1 ms")
    released(ledger, "old")
    released(ledger, "new")
    with pytest.raises(so.errors.AnswerExpiredError) as refused:
        released(ledger, "old")
    assert refused.value.status == 410
    assert compact(ledger.store)["answers"] <= 1
    dead(monkeypatch, ledger_at(where))
    ledger.give_up("a")
    with pytest.raises(so.errors.RequestLostError):
        released(ledger)
    for name in ("a", "old", "never"):
        with pytest.raises(so.errors.RequestLostError):
            ledger.give_up(name)


def test_a_computed_answer_waits_for_the_store(where, monkeypatch):
    """The store goes away after the noise was drawn: a repeat keeps that answer and draws nothing."""
    ledger = ledger_at(where)
    engine = ledger.store.engine
    write, calls = engine.write, []

    def away(script, timeout):
        calls.append(1)
        if len(calls) > 1:
            raise so.errors.StoreError("away", retry=True)
        return write(script, timeout)

    monkeypatch.setattr(engine, "write", away)
    with pytest.raises(so.errors.StoreError) as unknown:
        released(ledger)
    assert unknown.value.charged and unknown.value.request_id == "a"
    monkeypatch.setattr(engine, "write", write)
    monkeypatch.setattr("sordino.releases.making.with_chosen_sparsity", None)  # would be drawn with
    assert released(ledger).values.shape == (6,)


# Faults at every statement.


@pytest.mark.parametrize("key", [None, KEY])
@pytest.mark.parametrize("action", ACTIONS)
def test_a_database_that_fails_anywhere(action, key, where):
    """Whatever goes wrong where: one charge, one answer, nothing lost; what was returned is what is kept."""
    at = 0
    while True:
        at += 1
        ledger = ledger_at(where, key, id=f"l{at}")
        faulty = Faulty(ledger.store.engine, at, action)
        ledger.store.engine = faulty
        seen = []
        for _ in range(2):
            with contextlib.suppress(so.errors.StoreError):
                seen.append(released(ledger).values)
        other = ledger_at(where, key, id=f"l{at}")
        seen.append(released(other).values)
        for values in seen:
            np.testing.assert_array_equal(values, seen[0])
        assert len(other.history) == 1 and not other.unanswered() and other.verify() == other.head
        if not faulty.happened:
            break
    assert at > (5 if "cut" in action else 2)


@pytest.mark.parametrize("action", ACTIONS)
def test_a_stream_whose_database_fails_anywhere(action, where):
    plan, at = so.plan(so.Continual(so.RunningSum(64)), so.PureDP(epsilon=0.5)), 0
    while True:
        at += 1
        store = so.Store(where, key=KEY)
        ledger = so.Ledger(PURE, store=store, id=f"l{at}")
        faulty = Faulty(store.engine, at, action)
        store.engine = faulty
        seen = {}
        stream = None
        for number in range(4):
            with contextlib.suppress(so.SordinoError):
                if stream is None or stream.closed:
                    stream = plan.open(ledger, store=store, stream_id=f"s{at}")
                value = stream.update([number, 1], step_id=number)
                assert seen.setdefault(number, value.tolist()) == value.tolist()
        with contextlib.suppress(so.SordinoError):
            stream.close()
        healthy = so.Store(where, key=KEY)
        with plan.open(so.Ledger(PURE, store=healthy, id=f"l{at}"), store=healthy, stream_id=f"s{at}") as again:
            for number in range(max(seen, default=-1) + 2):
                if number in seen or number == max(seen, default=-1) + 1:
                    value = again.update([number, 1], step_id=number).tolist()
                    assert seen.setdefault(number, value) == value
            assert again.step == 2 * len(seen)
        assert len(so.Ledger.open(healthy, f"l{at}").history) == 1
        if not faulty.happened:
            break
    assert at > 5


# Many processes.


def _spend(where, name, count, results):
    ledger = so.Ledger(so.PureDP(epsilon=1.0), store=where, id="many")
    done = 0
    for number in range(count):
        try:
            ledger.charge(PureCost(2.0**-7), f"{name} {number}")
            done += 1
        except so.errors.BudgetExceededError:
            break
    results.put(done)


def test_processes_share_one_budget(where):
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [context.Process(target=_spend, args=(where, i, 60, results)) for i in range(4)]
    for process in processes:
        process.start()
    spent = sum(results.get(timeout=100) for _ in processes)
    for process in processes:
        process.join()
    ledger = so.Ledger(so.PureDP(epsilon=1.0), store=where, id="many")
    assert spent == 128 == len(ledger.history) and ledger.verify() == ledger.head
    assert ledger.spent["pure"]["epsilon"] == 1.0


def _ask(where, results):
    with contextlib.suppress(so.errors.RequestInProgressError):
        ledger = ledger_at(where, KEY, lease="5 s")
        results.put([released(ledger, f"r{number}").values.tolist() for number in range(4)])
        return
    results.put(None)


@pytest.mark.slow
def test_processes_that_ask_the_same_hear_the_same(where):
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [context.Process(target=_ask, args=(where, results)) for _ in range(6)]
    for process in processes:
        process.start()
    heard = [found for _ in processes if (found := results.get(timeout=100)) is not None]
    for process in processes:
        process.join()
    assert heard and all(found == heard[0] for found in heard)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_children_share_the_ledger_of_their_parent(where):
    ledger = ledger_at(where)
    children = []
    for number in range(3):
        child = os.fork()
        if child == 0:
            code = 1
            with contextlib.suppress(BaseException):
                released(ledger, f"child {number}")
                code = 0
            os._exit(code)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0, 0]
    assert len(ledger.history) == 3 and ledger.verify() == ledger.head


def test_threads_share_a_store(where):
    ledger = ledger_at(where)
    threads = [threading.Thread(target=lambda i=i: released(ledger, f"t{i % 3}")) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ledger.history) == 3 and not ledger.unanswered()


# The account.

COSTS = st.lists(
    st.one_of(
        st.floats(1e-3, 0.4).map(PureCost),
        st.floats(1e-3, 0.3).map(lambda mu: GaussianCost(mu=mu)),
        st.tuples(st.floats(1e-3, 0.3), st.floats(1e-9, 1e-7)).map(lambda pair: ApproxCost(*pair)),
    ),
    max_size=12,
)
TOTALS = [
    (so.PureDP(epsilon=1.0), {}),
    (so.ZeroConcentratedDP(rho=0.2), {}),
    (so.GaussianDP(mu=0.5), {}),
    (so.ApproxDP(epsilon=1.0, delta=1e-6), {}),
    (so.ApproxDP(epsilon=1.0, delta=1e-6), {"reserve_epsilon": 0.2, "reserve_delta": 1e-7}),
    (so.ApproxDP(epsilon=1.0, delta=1e-6), {"pure_as": "gaussian"}),
    (so.ApproxDP(epsilon=1.0, delta=1e-6), {"composition": "basic"}),
]


@pytest.mark.parametrize(("total", "options"), TOTALS, ids=str)
@given(costs=COSTS)
def test_a_stored_ledger_decides_like_one_in_memory(total, options, costs):
    store = so.Store(":memory:")
    memory, stored = so.Ledger(total, **options), so.Ledger(total, **options, store=store)
    for cost in costs:
        outcomes = []
        for ledger in (memory, stored):
            try:
                ledger.charge(cost)
                outcomes.append(None)
            except so.SordinoError as error:
                outcomes.append((type(error), str(error)))
        assert outcomes[0] == outcomes[1]
        assert (memory.spent, memory.remaining()) == (stored.spent, stored.remaining())
    assert stored.verify() == stored.head
    assert [entry.cost for entry in memory.history] == [entry.cost for entry in stored.history]


def test_a_schedule_is_kept(where):
    schedule = [PureCost(0.1), PureCost(0.1), GaussianCost(mu=0.1)]
    total = so.ApproxDP(epsilon=1.0, delta=1e-6)
    so.Ledger(total, schedule=schedule, store=where).charge(PureCost(0.1))
    again = so.Ledger.open(where)
    again.charge(PureCost(0.1))
    with pytest.raises(so.errors.BudgetExceededError):
        again.charge(PureCost(0.1))
    with pytest.raises(so.errors.InvalidParameterError, match="schedule"):
        again.raise_total(so.ApproxDP(epsilon=2.0, delta=1e-6), "more")
    assert again.verify() == again.head


@pytest.mark.parametrize(
    "options",
    [{"total": so.PureDP(epsilon=5.0)}, {"total": so.GaussianDP(mu=4.0)}, {"unit": so.AddRemove(1, label="x")}],
)
def test_other_terms_are_refused(options, where):
    ledger_at(where)
    with pytest.raises(so.errors.TermsError):
        so.Ledger(**{"total": PURE, **options}, store=where)
    with pytest.raises(so.errors.TermsError):
        so.Ledger.open(where, "other")


def test_a_raised_total_is_an_entry(where):
    ledger = ledger_at(where)
    ledger.charge(PureCost(4.0))
    for bad in (so.PureDP(epsilon=3.0), so.GaussianDP(mu=9.0), PURE):
        with pytest.raises(so.errors.InvalidParameterError):
            ledger.raise_total(bad, "why")
    ledger.raise_total(so.PureDP(epsilon=5.0), "a year more")
    ledger.charge(PureCost(1.0))
    assert so.Ledger(so.PureDP(epsilon=5.0), store=where).verify() == ledger.head
    assert [entry.kind for entry in ledger.history] == ["charge", "raise", "charge"]
    mixed = so.Ledger(so.ApproxDP(epsilon=1.0, delta=1e-6), store=where, id="mixed")
    mixed.charge(GaussianCost(mu=0.1))
    with pytest.raises(so.errors.InvalidParameterError, match="split"):
        mixed.raise_total(so.ApproxDP(epsilon=2.0, delta=1e-6), "more")


def test_a_total_can_be_shared_to_the_last_bit(where):
    """rho adds up exactly: three quarters and a quarter are all of it, whatever their square roots."""
    ledger = so.Ledger(so.ZeroConcentratedDP(rho=1.0), store=where)
    ledger.split({name: so.ZeroConcentratedDP(rho=0.2) for name in "abcd"})
    ledger.split({"e": so.ZeroConcentratedDP(rho=ledger.remaining()["rho"])})
    assert ledger.remaining()["rho"] == 0.0 and ledger.verify() == ledger.head
    other = so.Ledger(so.ZeroConcentratedDP(rho=0.3), store=where, id="other")
    other.split({"all": so.ZeroConcentratedDP(rho=0.3)})
    with pytest.raises(so.errors.BudgetExceededError):
        other.charge(so.privacy.GaussianCost(rho=1e-9))


def test_shares_are_charged_as_a_whole(where):
    ledger = ledger_at(where)
    shares = ledger.split({"east": so.PureDP(epsilon=1.0), "west": so.PureDP(epsilon=2.0)})
    assert ledger.remaining() == {"pure_epsilon": 1.0}
    again = ledger.split({"east": so.PureDP(epsilon=1.0)})  # there already
    released(again["east"], "x")
    with pytest.raises(so.errors.BudgetExceededError):
        released(shares["east"], "y")
    with pytest.raises(so.errors.BudgetExceededError):
        ledger.split({"north": so.PureDP(epsilon=0.5), "south": so.PureDP(epsilon=0.75)})
    with pytest.raises(so.errors.TermsError):
        so.Ledger.open(where, "north")
    with pytest.raises(so.errors.TermsError):
        ledger.split({"east": so.PureDP(epsilon=0.5)})
    with pytest.raises(so.errors.UnsupportedCostError):
        ledger.split({"g": so.GaussianDP(mu=0.1)})
    with pytest.raises(so.errors.InvalidParameterError):
        shares["east"].raise_total(so.PureDP(epsilon=2.0), "more")
    assert ledger.verify() == ledger.head and len(ledger.history) == 2
    zcdp = so.Ledger(so.ZeroConcentratedDP(rho=1.0), store=where, id="z")
    zcdp.split({"za": so.ZeroConcentratedDP(rho=0.25), "zb": so.ZeroConcentratedDP(rho=0.5)})
    assert 0.25 - 1e-12 < zcdp.remaining()["rho"] <= 0.25


def test_periods_are_charged_with_their_parent(where):
    year = ledger_at(where)
    days = year.every("1 day", so.PureDP(epsilon=1.0), zone="Europe/Berlin")
    released(days.on("2026-03-29"), "a")
    with pytest.raises(so.errors.BudgetExceededError):
        released(days.on(("2026-03-28", "2026-03-29")), "b")
    assert days.spent("2026-03-28")["pure"]["epsilon"] == 0.0  # nothing was spent anywhere
    released(days.on(("2026-03-30", "2026-04-01")), "b")
    assert year.spent["pure"]["epsilon"] == 2.0
    # The same for another period is something else: its data would be answered for, and it not be charged.
    for other in (days.on("2026-05-05"), year):
        with pytest.raises(so.errors.DuplicateRequestError):
            released(other, "a")
    released(days.on("2026-03-29"), "a")
    with pytest.raises(so.errors.InvalidParameterError):
        days.on(("2026-05-06", "2026-05-05"), "2026-05-01")
    hours = days.on("2026-05-05").every("1 hour", so.PureDP(epsilon=1.0))
    assert len(hours.on("2026-05-05T03:00")._book.also) == 2  # the day too
    assert [len(entry.periods) for entry in year.history] == [1, 3]
    # Days of a zone, whatever its clock does: 23 hours between these midnights.
    spans = year.store.read(lambda t: t.rows("SELECT terms FROM ledger WHERE id LIKE '%/2026-03-29T%'"))
    first = json.loads(spans[0][0])["span"]
    assert first[1] - first[0] == 23 * 3600
    with pytest.raises(so.errors.TermsError, match="parent"):
        so.Ledger.open(where, days.on("2026-03-29")._book.also[0])
    with pytest.raises(so.errors.TermsError):
        year.every("1 day", so.PureDP(epsilon=2.0), zone="Europe/Berlin").on("2026-03-29")
    weeks = year.every("1 week", so.PureDP(epsilon=4.0))
    assert weeks.on("2026-11-22")._book.also[0].split("/")[1].startswith("2026-11-16T00:00:00")
    for bad in ("35 min", "0 days", 5, "fortnight", -1):
        with pytest.raises(so.SordinoError):
            year.every(bad, PURE).on("tomorrow")
    with pytest.raises(so.errors.InvalidParameterError):
        days.on()
    assert year.verify() == year.head


# Integrity.


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE ledger SET sums = replace(sums, '3', '2')",
        "UPDATE ledger SET head = head - 1",
        "UPDATE ledger SET terms = replace(terms, '4.0', '9.0')",
        "UPDATE ledger SET head_hash = x'00'",
        "DROP TRIGGER entry_updated; UPDATE entry SET body = replace(body, '1.0', '0.5')",
        "DROP TRIGGER entry_deleted; DELETE FROM request; DELETE FROM entry WHERE seq = 1",
        "DROP TRIGGER entry_deleted; DELETE FROM request; DELETE FROM entry WHERE seq = 2",
    ],
)
def test_altered_ledgers_are_found(change, tmp_path):
    where = str(tmp_path / "s.db")
    ledger = ledger_at(where)
    for number in range(3):
        ledger.charge(PureCost(1.0), str(number))
    noted = ledger.head
    assert ledger.verify(noted) == noted

    def script(transaction):
        for statement in change.split("; "):
            transaction.rows(statement)

    ledger.store.write(script)
    with pytest.raises((so.errors.StoreCorruptError, so.errors.TermsError)):
        so.Ledger.open(where).verify(noted)


def test_entries_are_only_added(where):
    ledger = ledger_at(where)
    ledger.charge(PureCost(1.0))
    for statement in ("UPDATE entry SET body = ''", "DELETE FROM entry"):
        with pytest.raises(so.errors.StoreError):
            ledger.store.write(lambda transaction, statement=statement: transaction.rows(statement))
    assert ledger.verify() == ledger.head


def test_a_cut_ledger_lacks_the_head_that_was_noted(tmp_path):
    path = tmp_path / "s.db"
    ledger = ledger_at(str(path))
    ledger.charge(PureCost(1.0))
    old = path.read_bytes()
    ledger.charge(PureCost(1.0))
    noted = ledger.head
    ledger.store.close()
    path.write_bytes(old)
    cut = ledger_at(str(path))
    assert cut.verify() != noted
    with pytest.raises(so.errors.StoreCorruptError, match="head"):
        cut.verify(noted)
    # Going on: what may have left is charged, what was open is closed.
    assert adopt(so.Store(str(path), adopting=True), None, "a backup") == {"default": 1}
    assert cut.remaining() == {"pure_epsilon": 0.0} and cut.verify() == cut.head
    for bad in ("x", "1:2", "-1:" + 64 * "0"):
        with pytest.raises(so.errors.InvalidParameterError):
            cut.verify(bad)


@pytest.mark.parametrize(("total", "options"), TOTALS, ids=str)
def test_all_that_was_left_is_charged(total, options):
    store = so.Store(":memory:")
    ledger = so.Ledger(total, **options, store=store)
    ledger.charge(PureCost(0.05))
    adopt(store, None, "all")
    assert all(left < 1e-9 for name, left in ledger.remaining().items() if name != "delta")
    assert {entry.kind for entry in ledger.history[1:]} == {"lost"}


# Stores.


def test_what_is_no_store_is_refused(tmp_path):
    (tmp_path / "text").write_text("no store")
    (tmp_path / "folder").mkdir()
    for bad in (tmp_path / "text", tmp_path / "folder", tmp_path / "missing" / "s.db"):
        with pytest.raises(so.errors.StoreError):
            so.Store(bad)
    import sqlite3

    with contextlib.closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE mine (x)")
    with pytest.raises(so.errors.StoreVersionError):
        so.Store(tmp_path / "other.db")
    store = so.Store(tmp_path / "s.db")
    store.write(lambda transaction: transaction.count("UPDATE meta SET value = '9' WHERE name = 'schema'"))
    with pytest.raises(so.errors.StoreVersionError):
        so.Store(tmp_path / "s.db")
    assert (tmp_path / "s.db").stat().st_mode & 0o077 == 0
    for bad in (5, object()):
        with pytest.raises(so.errors.DataTypeError):
            so.Ledger(PURE, store=bad)


def test_a_log_beside_an_old_sqlite_is_refused(tmp_path):
    import sqlite3

    if sqlite3.sqlite_version_info >= (3, 51, 3):
        pytest.skip("logs are safe here")
    path = tmp_path / "s.db"
    so.Store(path).close()
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA journal_mode=WAL")
    with pytest.raises(so.errors.StoreVersionError, match="write-ahead"):
        so.Store(path)


def test_keys_lie_elsewhere_and_are_their_owners_alone(tmp_path):
    (tmp_path / "keys").mkdir()
    beside, apart = tmp_path / "key", tmp_path / "keys" / "key"
    for path in (beside, apart):
        path.write_bytes(KEY)
        path.chmod(0o600)
    with pytest.raises(so.errors.KeyMissingError, match="folder"):
        so.Store(tmp_path / "s.db", key=so.KeyFile(beside))
    store = so.Store(tmp_path / "s.db", key=so.KeyFile(apart))
    assert store.keys.sealing() == so.Store(tmp_path / "s.db", key=KEY).keys.sealing()
    assert "key" not in repr(so.KeyFile(apart)) and KEY.hex() not in repr(store.keys)
    apart.chmod(0o644)
    with pytest.raises(so.errors.KeyMissingError, match="chmod"):
        store.keys.sealing()
    apart.chmod(0o600)
    apart.write_bytes(b"short")
    with pytest.raises(so.errors.KeyMissingError, match="32 bytes"):
        store.keys.sealing()
    for bad in (b"short", 5, "text"):
        with pytest.raises(so.SordinoError):
            so.Store(tmp_path / "t.db", key=bad)


def test_keys_change(where):
    """New states are sealed under the new key, old ones are opened with the old."""
    keys = {"1": KEY, "2": bytes(32)}
    plan = so.plan(so.Continual(so.RunningSum(8)), so.PureDP(epsilon=0.5))
    with plan.open(store=so.Store(where, key=keys.__getitem__), stream_id="s") as stream:
        stream.update(1)
    set_key_id(so.Store(where, key=keys.__getitem__), "2")
    with so.go_on(so.Store(where, key=keys.__getitem__), "s") as stream:
        stream.update(1)
    del keys["1"]
    with so.go_on(so.Store(where, key=keys.__getitem__), "s") as stream:
        assert stream.step == 2


def test_a_busy_store_is_waited_for_and_no_longer(tmp_path):
    import sqlite3

    path = tmp_path / "s.db"
    ledger = so.Ledger(PURE, store=so.Store(path, timeout=0.2))
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(so.errors.StoreBusyError) as busy:
            ledger.charge(PureCost(1.0))
        assert busy.value.retry and busy.value.status == 503 and busy.value.charged is False
        other.execute("ROLLBACK")
    ledger.charge(PureCost(1.0))


def test_memory_ledgers_have_no_store():
    ledger = so.Ledger(PURE)
    for call in (
        lambda: ledger.head,
        ledger.verify,
        lambda: ledger.split({"a": PURE}),
        lambda: ledger.raise_total(so.PureDP(epsilon=9.0), "x"),
        lambda: ledger.every("1 day", PURE),
        lambda: ledger.give_up("a"),
        lambda: so.Ledger(PURE, recovery="same"),
        lambda: so.Ledger(PURE, store=":memory:", recovery="same"),
    ):
        with pytest.raises(so.errors.InvalidParameterError):
            call()
    ledger.charge(PureCost(1.0), "a")
    assert [found.request_id for found in ledger.unanswered()] == ["a"]


def test_metrics_and_report_show_what_is_public(where):
    ledger = ledger_at(where, KEY)
    released(ledger, 'a "quoted" <b>name</b>')
    plan = so.plan(so.Continual(so.RunningSum(8)), so.PureDP(epsilon=0.5))
    with plan.open(ledger, store=ledger.store, stream_id="s") as stream:
        stream.update(3)
        text = so.metrics(ledger.store)
        assert 'sordino_stream_open{stream="s"} 1' in text
    assert 'sordino_budget_spent{ledger="default",rule="pure",quantity="epsilon"} 1.5' in text
    assert 'sordino_stream_steps{stream="s"} 1' in text
    for line in text.splitlines():
        assert line.startswith("#") or float(line.rpartition(" ")[2]) >= 0
    page = so.report(ledger)
    assert "<b>name" not in page and "&lt;b&gt;" in page and page.count("data:image/png;base64") == 1
    assert so.report(ledger, pictures=False).count("data:image") == 0


def test_a_report_has_answers_of_every_kind(where):
    ledger = so.Ledger(so.PureDP(epsilon=9.0), store=so.Store(where))
    keys = so.plan(so.sketches.KeyCounts(1000, 64), so.PureDP(epsilon=1.0))
    keys.release([3, 5], ledger=ledger, request_id="keys")
    whole = so.plan(so.Continual(so.RunningSum(20)), so.PureDP(epsilon=1.0))
    whole.release(np.arange(20), ledger=ledger, request_id="stream")
    page = so.report(ledger)
    assert "KeyRelease" in page and "the first of 20 answers" in page
    assert page.count("is protected by") >= 2


# Whole streams.

SUMS = so.plan(so.Continual(so.RunningSum(6)), so.PureDP(epsilon=1.0))


def test_a_stored_stream_says_its_own_noise(where):
    """One that was published with more noise than fits now is not read with the errors of this one."""
    from sordino._support.records import joined, packed_record
    from sordino.streams.whole import WHOLE_STREAM, StreamRelease

    found = released(ledger_at(where), plan=SUMS)
    record = WHOLE_STREAM.record(found)
    again = WHOLE_STREAM.read(joined(*packed_record(record)), StreamRelease)
    np.testing.assert_array_equal(again.values, found.values)
    for change in (
        {"plan": record["plan"] | {"doors": [{**record["plan"]["doors"][0], "quarter_units": 2**40}]}},
        {"values": found.values[:, None]},
        {"values": np.zeros(7)},
        {"kind": "release"},
    ):
        plan = change.get("plan")
        if plan is not None:
            plan.pop("digest", None)
        with pytest.raises(so.errors.PlanFileError):
            WHOLE_STREAM.read(joined(*packed_record(record | change)), StreamRelease)


def test_items_of_the_same_bits_are_other_items(where, monkeypatch):
    reals = so.plan(so.Continual(so.RunningSum(6)), so.PureDP(epsilon=1.0), integral=False)
    items, ledger = np.full(6, 1.5), ledger_at(where, KEY)

    class Died(BaseException):
        pass

    def dies(*_):
        raise Died

    with monkeypatch.context() as patched:
        patched.setattr(rows_of_ledgers, "answered", dies)
        patched.setattr(Requests, "_left", lambda *_: None)
        with pytest.raises(Died):
            released(ledger, data=items, plan=reals)
    with pytest.raises(so.errors.InputChangedError):
        released(ledger_at(where, KEY), data=items.view(np.int64), plan=reals)
    assert released(ledger_at(where, KEY), data=items, plan=reals).values.shape == (6,)


def test_a_request_that_was_answered_meanwhile_is_answered(where, monkeypatch):
    """Read as charged, answered by somebody else, and then looked at: neither other data nor lost."""
    for recovery in ("same", "never"):
        ledger = so.Ledger(PURE, id=f"ledger {recovery}", store=so.Store(where, key=KEY), recovery=recovery)
        first, real = released(ledger, "b"), Requests._found
        row = ledger._book.request("b")
        stale = [row._replace(state="charged", answer_hash=None)]

        def found(requests, row, asked, real=real, stale=stale):
            return None if stale and stale.pop() else real(requests, row, asked)

        with monkeypatch.context() as patched:
            patched.setattr(Requests, "_found", found)
            patched.setattr(StoredBook, "request", _read_stale(StoredBook.request, stale[0]))
            np.testing.assert_array_equal(released(ledger, "b", COUNTS + 1).values, first.values)
        assert len(ledger.history) == 1


def _read_stale(real, row):
    """The first read sees what was there before."""
    stale = [row]
    return lambda book, request: stale.pop() if stale else real(book, request)


@pytest.mark.skipif(sys.platform != "linux", reason="file systems of Linux")
def test_shared_folders_are_refused(monkeypatch, tmp_path):
    monkeypatch.setattr("sordino.storage.sqlite._file_system", lambda _: "nfs4")
    with pytest.raises(so.errors.StoreError, match="network"):
        so.Store(tmp_path / "s.db")


def test_from_asyncio(where):
    import asyncio

    ledger = ledger_at(where, KEY)

    async def main():
        first, second = await asyncio.gather(
            so.aio.release(PLAN, COUNTS, ledger=ledger, request_id="x"),
            so.aio.release(PLAN, COUNTS, ledger=ledger, request_id="y"),
        )
        plan = so.plan(so.Continual(so.RunningSum(8)), so.PureDP(epsilon=0.5))
        stream = await so.aio.open(plan, ledger, store=ledger.store, stream_id="s")
        await so.aio.update(stream, 3, step_id=0)
        stream.close()
        # A task that is cancelled: its request is charged once, and a repeat has the answer.
        task = asyncio.create_task(so.aio.release(PLAN, COUNTS, ledger=ledger, request_id="z"))
        await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        for _ in range(100):
            with contextlib.suppress(so.errors.RequestInProgressError):
                return first, second, await so.aio.release(PLAN, COUNTS, ledger=ledger, request_id="z")
            await asyncio.sleep(0.05)

    found = asyncio.run(main())
    assert all(release.values.shape == (6,) for release in found)
    assert sorted(str(entry.request_id)[:1] for entry in ledger.history) == ["s", "x", "y", "z"]


def test_who_asks_while_another_is_charged_hears_the_same(where, monkeypatch):
    """Between the look for a request and its charge somebody else charges and answers it."""
    ledger, other = ledger_at(where), ledger_at(where)
    found = []
    dry_run = type(ledger._book).dry_run

    def meanwhile(book, charge):
        if not found:
            found.append(None)
            found.append(released(other).values)
        dry_run(book, charge)

    monkeypatch.setattr(type(ledger._book), "dry_run", meanwhile)
    np.testing.assert_array_equal(released(ledger).values, found[1])
    assert len(ledger.history) == 1


@pytest.mark.parametrize("bad", ["", "a" * 201, "a\nb", "a\0b", "\ud800"])
def test_names_can_be_kept_anywhere(bad, where):
    """No engine is asked whether it takes them: nothing is charged, and nothing stays pending."""
    plan = so.plan(so.RunningSum(4), so.GaussianDP(mu=1.0))
    store = so.Store(where, key=KEY)
    for ledger in (so.Ledger(so.GaussianDP(mu=5.0)), so.Ledger(so.GaussianDP(mu=5.0), store=store)):
        for call in (
            lambda ledger=ledger: plan.release([1, 2, 3, 4], ledger=ledger, request_id=bad),
            lambda ledger=ledger: ledger.charge(so.privacy.GaussianCost(mu=1.0), bad),
            lambda ledger=ledger: ledger.find(bad + bad),
        ):
            with pytest.raises(so.errors.InvalidParameterError, match="printable"):
                call()
        assert not ledger.history
    live = so.plan(so.Continual(so.RunningSum(4)), so.GaussianDP(mu=1.0))
    with pytest.raises(so.errors.InvalidParameterError, match="printable"):
        live.open(ledger, store=store, stream_id="s", request_id=bad)
    with live.open(ledger, store=store, stream_id="s") as stream:
        with pytest.raises(so.errors.InvalidParameterError, match="printable"):
            stream.update(1, step_id=bad)
        assert not stream.pending
        stream.update(1, step_id="a" * 200)
        assert stream.step == 1


def test_what_no_store_keeps_is_refused_before_the_charge():
    """A basis given by functions cannot be written: a release by it could not be answered."""
    basis = so.sketches.OrthonormalBasis(16, np.array, np.array, 1.0)
    plan = so.plan(so.Histogram(16), so.PureDP(epsilon=1.0), mechanism="threshold", basis=basis)
    ledger = ledger_at(":memory:")
    with pytest.raises(so.errors.UnsupportedMechanismError):
        plan.release(np.arange(16), ledger=ledger, request_id="a")
    assert not ledger.history
    kept_in_memory = so.Ledger(PURE)
    first = plan.release(np.arange(16), ledger=kept_in_memory, request_id="a")
    assert plan.release(np.arange(16), ledger=kept_in_memory, request_id="a") is first


@pytest.mark.parametrize(
    "index",
    [
        lambda pd: pd.date_range("2026-01-01", periods=6),
        lambda pd: pd.date_range("2026-01-01", periods=6, tz="Europe/Berlin"),
        lambda pd: pd.MultiIndex.from_product([["a", "b"], [1, 2.5, None]]),
        lambda pd: pd.Index([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]),
        lambda pd: pd.Index([True, None, 1, "x", 2.5, pd.Timestamp("2026-01-01")], dtype=object),
        lambda pd: pd.date_range("2020-10-25", periods=6, freq="h", tz="Europe/Berlin"),
        lambda pd: pd.Index([2**100, 3, True, ("a", 2**70), 1, 2], dtype=object),
    ],
)
def test_labels_of_a_repeated_request_have_their_types(index):
    pd = pytest.importorskip("pandas")
    ledger, data = ledger_at(":memory:"), pd.Series(COUNTS, index=index(pd))
    first, again = released(ledger, data=data), released(ledger, data=data)
    assert [repr(label) for label in map(_plain, again.labels)] == [repr(label) for label in map(_plain, first.labels)]


def _plain(label):
    """Return a label without the types of pandas, which compare to those of Python."""
    if isinstance(label, tuple):
        return tuple(map(_plain, label))
    if hasattr(label, "isoformat"):
        return label.isoformat()
    return None if label != label else label


def test_times_that_are_none_are_refused():
    hours = ledger_at(":memory:").every("1 hour", so.PureDP(epsilon=1.0), zone="Europe/Berlin")
    with pytest.raises(so.errors.InvalidParameterError, match="a time must be"):
        ledger_at(":memory:").every("5 days", so.PureDP(epsilon=1.0)).on("0001-01-01")
    for bad in ("9999-12-31T23:30", "0001-01-01T00:00", "2026-03-29T02:30"):
        with pytest.raises(so.errors.InvalidParameterError, match="a time must be"):
            hours.on(bad)
    pd = pytest.importorskip("pandas")
    with pytest.raises(so.errors.InvalidParameterError, match="a time must be"):
        hours.on(pd.NaT)
    assert hours.on("2026-10-25T02:30").remaining() == {"pure_epsilon": 1.0}
    # There the clocks do not show midnight: a day is one all the same.
    days = ledger_at(":memory:").every("1 day", so.PureDP(epsilon=1.0), zone="America/Santiago")
    for day in ("2026-09-06", date(2026, 9, 6), pd.Timestamp("2026-09-06"), "2026-09-06T12:00"):
        assert days.on(day).charge(PureCost(0.25)).periods == ("default/2026-09-06T00:00:00-04:00/86400",)


def test_what_is_left_of_periods_is_what_each_of_them_takes():
    days = ledger_at(":memory:").every("1 day", so.PureDP(epsilon=1.0))
    days.on("2026-11-23").charge(PureCost(0.75))
    assert days.on("2026-11-22").remaining() == {"pure_epsilon": 1.0}
    both = days.on(("2026-11-22", "2026-11-24"))
    assert both.remaining() == {"pure_epsilon": 0.25}
    assert both.remaining(share=0.5) == {"pure_epsilon": 0.125}
    both.charge(PureCost(0.25))
    assert both.remaining() == {"pure_epsilon": 0.0}


def test_another_ledger_is_no_period():
    """It may be spent by itself: what is promised for a period would not hold."""
    store = so.Store(":memory:")
    days = so.Ledger(PURE, store=store).every("1 day", so.PureDP(epsilon=1.0))
    so.Ledger(so.PureDP(epsilon=1.0), store=store, id="default/2026-11-22T00:00:00+00:00/86400")
    with pytest.raises(so.errors.TermsError):
        days.on("2026-11-22")


@pytest.mark.parametrize(
    "change",
    ["DELETE FROM request WHERE request = 'a'", "UPDATE request SET seq = 1", "UPDATE request SET asked = x'00'"],
)
def test_requests_are_verified_too(change):
    """Without its row a request would be charged, and answered, again."""
    store = so.Store(":memory:")
    ledger = so.Ledger(PURE, store=store)
    released(ledger)
    ledger.charge(PureCost(0.1))
    days = ledger.every("1 day", so.PureDP(epsilon=1.0))
    days.on("2026-11-22").charge(PureCost(0.1))
    assert ledger.verify() == ledger.head
    adopt(store, PureCost(0.1), "for the test")
    for row in store.read(rows_of_ledgers.ledgers_in):
        StoredBook(store, row.id).verified(None)
    store.write(lambda transaction: transaction.count(change))
    with pytest.raises(so.errors.StoreCorruptError):
        ledger.verify()


def test_a_key_beside_the_store_is_found_behind_links(tmp_path):
    (tmp_path / "store").mkdir()
    key = tmp_path / "store" / "key"
    key.write_bytes(KEY)
    key.chmod(0o600)
    link = tmp_path / "link"
    link.symlink_to(key)
    with pytest.raises(so.errors.KeyMissingError):
        so.Store(tmp_path / "store" / "s.db", key=so.KeyFile(link))


def test_a_label_without_a_number_of_python_becomes_text():
    pd = pytest.importorskip("pandas")
    ledger = ledger_at(":memory:")
    labels = [np.longdouble(1.5), (np.longdouble(2.0), 1), 10**5000, 4, 5, 6]
    data = pd.Series(COUNTS, index=pd.Index(labels, dtype=object))
    released(ledger, data=data)
    assert list(released(ledger, data=data).labels) == ["1.5", ("2.0", 1), 10**5000, 4, 5, 6]
