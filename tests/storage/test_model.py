"""The protocol of requests and streams as a model: two processes, every order of their transactions, every fault."""

import numpy as np
import pytest

import sordino as so
from schedules import exhausted, explored
from sordino.storage.upkeep import compact

COUNTS = np.arange(4)
TABLE = so.plan(so.Histogram(4), so.PureDP(epsilon=1.0))
COUNTER = so.plan(so.Continual(so.RunningSum(16)), so.PureDP(epsilon=1.0))


def asks(process, store, request_id="a", **options):
    ledger = so.Ledger.open(store, **options)
    for _ in range(2):  # whoever gets no answer asks again
        try:
            process.left.append(TABLE.release(COUNTS, ledger=ledger, request_id=request_id).values.tolist())
        except so.errors.StoreError:
            continue
        return


def check_request(store, processes):
    """One charge, one answer, the total kept, and what has no answer can be finished."""
    ledger = so.Ledger.open(store)
    assert len(ledger.history) <= 1 and ledger.verify() == ledger.head
    left = [answer for process in processes for answer in process.left]
    if left:
        assert len(ledger.history) == 1
    try:
        left.append(TABLE.release(COUNTS, ledger=ledger, request_id="a").values.tolist())
    except (so.errors.RequestLostError, so.errors.RequestInProgressError):
        assert not left
        return
    assert all(answer == left[0] for answer in left)
    assert not ledger.unanswered()


def asks_for_another(process, store):
    asks(process, store, process.name)


def check_budget(store, processes):
    """Two requests, and a total for one: who was charged was charged once, and nobody else was answered."""
    ledger = so.Ledger.open(store)
    history = ledger.history
    assert len(history) <= 1 and ledger.verify() == ledger.head
    assert ledger.spent["pure"]["epsilon"] <= 1.0
    for process in processes:
        assert not process.left or [entry.request_id for entry in history] == [process.name]


def asks_for_two(process, store):
    """The second is charged by what is known of the ledger, which is not read."""
    ledger = so.Ledger.open(store)
    for request_id in (f"{process.name} 1", f"{process.name} 2"):
        TABLE.release(COUNTS, ledger=ledger, request_id=request_id)
        process.left.append(request_id)


def check_three(store, processes):
    """Four requests, and a total for three: what left was charged, and no more than the total."""
    ledger = so.Ledger.open(store)
    assert len(ledger.history) <= 3 and ledger.verify() == ledger.head
    left = [request_id for process in processes for request_id in process.left]
    assert set(left) <= {entry.request_id for entry in ledger.history}
    assert len(left) + len(ledger.unanswered()) <= len(ledger.history)


def asks_for_a_while(process, store):
    asks(process, store, keep_answers="30 min")


def forgets(_, store):
    compact(store)


def check_forgotten(store, processes):
    """Once an answer was forgotten, nobody draws noise for its charge again."""
    ledger = so.Ledger.open(store)
    assert len(ledger.history) <= 1 and ledger.verify() == ledger.head
    left = [answer for process in processes for answer in process.left]
    try:
        left.append(TABLE.release(COUNTS, ledger=ledger, request_id="a").values.tolist())
    except so.errors.AnswerExpiredError:
        assert len(ledger.history) == 1
    except so.errors.RequestInProgressError:
        assert not left
    assert all(answer == left[0] for answer in left)


def publishes(process, store, tries=2, **options):
    ledger = so.Ledger.open(store)
    for _ in range(tries):
        try:
            stream = COUNTER.open(ledger, store=store, stream_id="s", take_over=True, **options)
            for number in (0, 1):
                process.left.append((number, stream.update(1, step_id=number)))
        except so.errors.StoreError:
            continue
        return


def check_stream(store, processes):
    """Every step once, in whatever process; nothing that left is missing."""
    ledger = so.Ledger.open(store)
    assert len(ledger.history) <= 1 and ledger.verify() == ledger.head
    seen = {}
    for number, value in (pair for process in processes for pair in process.left):
        assert seen.setdefault(number, value) == value
    with COUNTER.open(ledger, store=store, stream_id="s", take_over=True) as stream:
        assert stream.step >= len(seen)
        for number in (0, 1):
            try:
                value = stream.update(1, step_id=number)
            except so.errors.StepForgottenError:
                continue  # and it is not published again
            assert seen.setdefault(number, value) == value
        assert stream.step == 2


def publishes_once(process, store):
    publishes(process, store, tries=1)


def publishes_for_a_while(process, store):
    publishes(process, store, tries=1, keep_steps="30 min")


# A process may die where a stream that is dropped gives its row back.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
# What two processes do, what must hold then, and how the store is made.
REQUESTS = {
    "one request": ([asks, asks], check_request, {"late": 1}),
    "one request, drawn anew": ([asks, asks], check_request, {"key": None, "late": 1}),
    "two requests, a total for one": ([asks_for_another, asks_for_another], check_budget, {"total": 1.0}),
    "four requests, a total for three": ([asks_for_two] * 2, check_three, {"total": 3.0, "key": None}),
    "an answer that is forgotten": ([asks_for_a_while, forgets], check_forgotten, {"late": 1}),
}
STREAMS = {
    "a stream": ([publishes_once] * 2, check_stream, {}),
    "a stream whose steps are forgotten": ([publishes_for_a_while] * 2, check_stream, {"late": 1}),
}
MODELS = REQUESTS | STREAMS


@pytest.fixture
def often(monkeypatch):
    """States are kept with every step, so that old steps are forgotten as soon as their time has come."""
    monkeypatch.setattr("sordino.streams.kept.Kept.due", lambda self, entry: True)


@pytest.mark.parametrize(
    ("work", "check"), [(asks, check_request), (publishes, check_stream)], ids=["request", "stream"]
)
def test_every_single_fault(work, check, monkeypatch):
    """One process, one fault anywhere, all of them; then two processes, the first runs of each order."""
    runs, all_of_them = explored([work], check, monkeypatch, faults=1, most=10**6)
    assert all_of_them and runs > 10
    runs, _ = explored([work, work], check, monkeypatch, faults=1, most=60)
    assert 30 < runs <= 60


@pytest.mark.parametrize("name", REQUESTS)
def test_every_state_of_requests(name, monkeypatch):
    """Two processes in every order of their transactions, those that only read as well."""
    works, check, options = REQUESTS[name]
    found = exhausted(works, check, monkeypatch, faults=0, reads=True, **options)
    assert found.states > 50 and found.ends > 8


def test_every_state_of_a_stream(monkeypatch):
    """Two processes that take it from each other, in every order of their transactions."""
    works, check, options = STREAMS["a stream"]
    found = exhausted(works, check, monkeypatch, faults=0, **options)
    assert found.states > 500 and found.ends > 100


@pytest.mark.slow
@pytest.mark.parametrize("name", REQUESTS)
def test_every_state_of_requests_with_faults(name, monkeypatch):
    """The same with a fault anywhere."""
    works, check, options = REQUESTS[name]
    found = exhausted(works, check, monkeypatch, faults=1, reads=True, **options)
    assert found.states > 350 and found.ends > 150


@pytest.mark.slow
@pytest.mark.parametrize("name", STREAMS)
def test_every_state_of_streams(name, monkeypatch, often):
    """A state with every step, old steps forgotten; with two processes that read in between."""
    works, check, options = STREAMS[name]
    found = exhausted(works, check, monkeypatch, faults=0, reads=name == "a stream", **options)
    assert found.states > 5000 and found.ends > 1000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("work", "check"), [(asks, check_request), (publishes, check_stream)], ids=["request", "stream"]
)
def test_every_pair_of_faults_of_one(work, check, monkeypatch):
    """One process with two faults anywhere; then two processes with up to three, the first runs."""
    runs, all_of_them = explored([work], check, monkeypatch, faults=2, most=10**6)
    assert all_of_them and runs > 50
    runs, all_of_them = explored([work, work], check, monkeypatch, faults=3, most=2500)
    assert all_of_them or runs == 2500
