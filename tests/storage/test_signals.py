"""Signals at random moments: what an interrupted call left on its connection is not taken for another's."""

import contextlib
import random
import signal
import time

import pytest

import sordino as so

SECONDS = 4.0


class Late(Exception):
    """What a handler of a signal raises that is no Ctrl-C."""


# A signal between the opening of a connection and whoever holds it leaves that to the collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
@pytest.mark.slow
@pytest.mark.parametrize("error", [KeyboardInterrupt, Late])
def test_charges_are_counted_once_wherever_a_signal_comes(error, where):
    ledger = so.Ledger(so.PureDP(epsilon=1e6), store=so.Store(where, timeout=5.0))

    def handler(*_):
        raise error

    rng, returned, begun = random.Random(1), set(), time.monotonic()
    before = signal.signal(signal.SIGALRM, handler)
    try:
        for attempt in range(10**6):
            if time.monotonic() - begun > SECONDS:
                break
            with contextlib.suppress(error):
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(2e-4, 2.5e-3))
                entry = ledger.charge(so.privacy.PureCost(1e-3), f"r{attempt}")
                signal.setitimer(signal.ITIMER_REAL, 0.0)
                assert entry.request_id == f"r{attempt}"
                returned.add(entry.request_id)
            with contextlib.suppress(error):
                signal.setitimer(signal.ITIMER_REAL, 0.0)
            found = ledger.find(f"r{attempt}")
            assert found is None or found.entry.request_id == f"r{attempt}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    names = [entry.request_id for entry in ledger.history]
    assert len(names) == len(set(names))
    assert returned <= set(names)
    assert attempt > 100
    assert ledger.verify() == ledger.head
