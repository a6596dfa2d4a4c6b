"""Locks of SQLite belong to a process: whoever opens a store must not take away those of another thread."""

import contextlib
import os
import subprocess
import sys
import threading
import time

import pytest

import sordino as so
from sordino.storage.sqlite import _made

_OTHER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=0.0, isolation_level=None)
try:
    connection.execute("BEGIN IMMEDIATE")
except sqlite3.OperationalError:
    print("locked")
else:
    print("free")
"""


def _seen_from_elsewhere(path):
    return subprocess.run(
        [sys.executable, "-c", _OTHER, path], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_another_store_in_the_same_process_leaves_a_transaction_its_locks(tmp_path):
    path = str(tmp_path / "store.db")
    seen = []

    def script(transaction):
        transaction.rows("SELECT count(*) FROM meta")
        seen.append(_seen_from_elsewhere(path))
        # Whatever an opening does before SQLite itself opens the file; its own transaction must wait for this one.
        _made(tmp_path / "store.db")
        seen.append(_seen_from_elsewhere(path))

    store = so.Store(path)
    store.write(script)
    assert seen == ["locked", "locked"]
    assert _seen_from_elsewhere(path) == "free"


def _forked(work):
    """Run work in a child; return it. Its code is what work returns, 1 if it raises."""
    child = os.fork()
    if child == 0:
        code = 1
        with contextlib.suppress(BaseException):
            code = work() or 0
        os._exit(code)
    return child


def _code(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _charge(ledger):
    ledger.charge(so.privacy.PureCost(1.0))


@pytest.mark.parametrize("how", ["read", "write"])
def test_a_child_is_not_locked_out_by_a_transaction_of_another_thread(how, tmp_path):
    """A fork waits for it: what SQLite believes to hold would be copied, and never let go of in the child."""
    store = so.Store(str(tmp_path / "store.db"), timeout=5.0)
    ledger = so.Ledger(so.PureDP(epsilon=100.0), store=store)
    inside = threading.Event()

    def script(transaction):
        transaction.rows("SELECT count(*) FROM meta")
        inside.set()
        time.sleep(0.3)

    other = threading.Thread(target=getattr(store, how), args=(script,))
    other.start()
    inside.wait()
    child = _forked(lambda: _charge(ledger))
    _charge(ledger)
    other.join()
    assert _code(child) == 0
    assert len(ledger.history) == 2
    assert ledger.verify() == ledger.head


def test_a_fork_in_the_middle_of_a_transaction_goes_on(tmp_path):
    """The parent commits what it had begun; the child would see it, and is refused."""
    store = so.Store(str(tmp_path / "store.db"), timeout=5.0)
    ledger = so.Ledger(so.PureDP(epsilon=100.0), store=store)

    def refused():
        with pytest.raises(so.errors.ForkError):
            _charge(ledger)

    def script(transaction):
        transaction.count("INSERT INTO meta (name, value) VALUES ('a', 'b')")
        return _code(_forked(refused))

    assert store.write(script) == 0
    ((found,),) = store.read(lambda transaction: transaction.rows("SELECT value FROM meta WHERE name = 'a'"))
    assert found == "b"
    _charge(ledger)
    assert len(ledger.history) == 1


def test_a_store_that_is_opened_while_a_fork_waits_is_waited_for_too(tmp_path):
    """Until the fork is over nobody else begins: the child could never use that file."""
    first, second = so.Store(str(tmp_path / "a.db")), str(tmp_path / "b.db")
    ledger = so.Ledger(so.PureDP(epsilon=100.0), store=so.Store(second, timeout=5.0))
    inside = threading.Event()

    def slow(transaction):
        transaction.rows("SELECT 1")
        inside.set()
        time.sleep(0.5)

    def opened_meanwhile():
        time.sleep(0.2)
        so.Store(second).write(lambda transaction: (transaction.rows("SELECT 1"), time.sleep(0.5)))

    threads = [threading.Thread(target=first.read, args=(slow,)), threading.Thread(target=opened_meanwhile)]
    for thread in threads:
        thread.start()
    inside.wait()

    def charged_and_forked():
        _charge(ledger)
        # Forks of a child do not wait for threads that are not there.
        begun = time.monotonic()
        return _code(_forked(lambda: _charge(ledger))) or int(time.monotonic() - begun > 10.0)

    assert _code(_forked(charged_and_forked)) == 0
    for thread in threads:
        thread.join()
    assert len(ledger.history) == 2


def test_a_file_is_made_for_its_owner_alone_and_nothing_is_left_beside_it(tmp_path):
    with so.Store(tmp_path / "store.db"):
        assert (tmp_path / "store.db").stat().st_mode & 0o777 == 0o600
        assert not [each for each in tmp_path.iterdir() if not each.name.startswith("store.db")]
